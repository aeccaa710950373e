// node-postgres at a server that the environment names (PGHOST ...); prints what it sees. `node.out` is what it prints at PostgreSQL 15.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
// The modules are where NODE_PATH says.
const { Client, Pool } = require('pg');
const { from: copyFrom, to: copyTo } = require('pg-copy-streams');

const say = (...words) => console.log(words.map((word) => (typeof word === 'string' ? word : JSON.stringify(word))).join(' '));

const shown = (value) => {
  if (Buffer.isBuffer(value)) return `bytes ${value.toString('hex')}`;
  if (value instanceof Date) return `date ${value.toISOString()}`;
  return typeof value === 'string' ? value : JSON.stringify(value);
};

const fields = (error) =>
  ['severity', 'code', 'message', 'detail', 'hint', 'position', 'schema', 'table', 'column', 'constraint']
    .filter((name) => error[name] !== undefined)
    .map((name) => `${name}: ${error[name]}`)
    .join(' | ');

async function connect(more = {}) {
  const client = new Client(more);
  client.on('error', () => {});
  await client.connect();
  return client;
}

const values = () =>
  fs
    .readFileSync(path.join(__dirname, 'types.txt'), 'utf8')
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.indexOf('\t')), line.slice(line.indexOf('\t') + 1)]);

async function everyType(client) {
  say('# types: in text, in binary');
  for (const binary of [false, true]) {
    for (const [type, text] of values()) {
      const got = await client.query({ text: `select cast($1 as text)::${type} as v, $2::${type} as w`, values: [text, text], binary });
      const field = got.fields[0];
      say(type, text, '->', field.dataTypeID, field.dataTypeSize, field.dataTypeModifier, field.format, shown(got.rows[0].v), shown(got.rows[0].w));
    }
  }
  say('# parameters');
  for (const value of [1, 1.5, 10n ** 20n, 'text', true, null, new Date(0), Buffer.from([0, 255]), { a: [1] }, [1, 2], ['a', null]]) {
    const kind = value === null ? 'text' : { number: 'numeric', bigint: 'numeric', string: 'text', boolean: 'boolean' }[typeof value];
    const type = kind ?? (value instanceof Date ? 'timestamptz' : Buffer.isBuffer(value) ? 'bytea' : Array.isArray(value) ? 'text[]' : 'jsonb');
    const got = await client.query(`select $1::${type} as v`, [value]);
    say(type, shown(got.rows[0].v));
  }
}

async function prepared(client) {
  say('# prepared statements');
  await client.query('create table item (id int primary key, name text not null, n numeric(8,2) check (n > 0))');
  for (let i = 1; i <= 5; i++) {
    const got = await client.query({ name: 'insert', text: 'insert into item values ($1, $2, $3) returning *', values: [i, `item ${i}`, i / 4] });
    say(got.command, got.rowCount, got.rows);
  }
  const select = { name: 'select', text: 'select * from item where id = $1' };
  say((await client.query({ ...select, values: [1] })).rows);
  await client.query('alter table item add column more int default 3');
  try {
    say((await client.query({ ...select, values: [1] })).rows);
  } catch (error) {
    say(fields(error));
  }
  say((await client.query({ name: 'other', text: 'select * from item where id = any($1) order by id', values: [[1, 2, 9]] })).rows);
  say((await client.query({ text: 'select id, name from item order by id', rowMode: 'array' })).rows);
  say('# several statements in one message');
  const many = await client.query("select 1 as a; insert into item values (6, 'six', 1); select 'b' as b");
  say(many.map((one) => [one.command, one.rowCount, one.rows]));
  say('# batches: one statement for many rows, and very many parameters');
  const ids = Array.from({ length: 100 }, (_, i) => i + 100);
  const rows = ids.map((id, i) => `($${2 * i + 1}, $${2 * i + 2}, 1)`).join(',');
  say((await client.query(`insert into item values ${rows}`, ids.flatMap((id) => [id, `batch ${id}`]))).rowCount);
  const list = Array.from({ length: 20000 }, (_, i) => i);
  say((await client.query(`select count(*)::int from item where id in (${list.map((i) => `$${i + 1}`).join(',')})`, list)).rows);
}

async function copies(client) {
  say('# COPY');
  await client.query('create table copied (id int, t text)');
  const into = client.query(copyFrom('copy copied from stdin'));
  await pipeline(Readable.from(['1\to', 'ne\n2\t\\N\n', '3\tthree\n']), into);
  say(into.rowCount);
  const lines = Array.from({ length: 5000 }, (_, i) => `${i},"a ""quoted"" ${i}"\n`);
  const csv = client.query(copyFrom('copy copied from stdin (format csv)'));
  await pipeline(Readable.from(lines), csv);
  say(csv.rowCount);
  for (const how of ['', '(format csv, header)', '(format binary)']) {
    const parts = [];
    await pipeline(client.query(copyTo(`copy (select * from copied where id between 1 and 3 order by id, t) to stdout ${how}`)), async function (source) {
      for await (const part of source) parts.push(part);
    });
    say(how === '(format binary)' ? Buffer.concat(parts).toString('hex') : Buffer.concat(parts).toString());
  }
  try {
    await pipeline(Readable.from(['x\ty\n']), client.query(copyFrom('copy copied from stdin')));
  } catch (error) {
    say(fields(error));
  }
  say((await client.query('select count(*)::int from copied')).rows);
}

async function errors(client) {
  say('# errors');
  await client.query('create table part (id int primary key, item int constraint of_item references item)');
  const statements = [
    'selec 1', 'select 1/0', 'select nope', 'select * from nope', "insert into item values (1, 'again', 1)", 'insert into item values (7, null, 1)',
    "insert into item values (7, 'x', -1)", 'insert into part values (1, 77)', "select 'x'::int", 'select nope(1)',
    'drop table nope', 'alter table item add column id int', "select date '2024-02-30'", 'rollback to nope', 'select 1 +',
  ];
  for (const text of statements) {
    for (const queryMode of ['simple', 'extended']) {
      try {
        await client.query({ text, queryMode });
        say(text, 'no error');
      } catch (error) {
        say(text, '->', fields(error));
      }
    }
  }
  try {
    await client.query('select $1::int', ['one']);
  } catch (error) {
    say(fields(error));
  }
  client.on('notice', (notice) => say(fields(notice)));
  await client.query('drop table if exists nope');
}

async function transactions(client) {
  say('# transactions');
  await client.query('begin');
  await client.query('delete from item where id > 3');
  await client.query('savepoint s');
  await client.query('delete from item').catch((error) => say(fields(error)));
  await client.query('rollback to s');
  say((await client.query('select count(*)::int from item')).rows);
  await client.query('rollback');
  await client.query('begin isolation level repeatable read');
  say((await client.query('select name from item where id = 1')).rows);
  const other = await connect();
  await other.query("update item set name = 'theirs' where id = 1");
  say((await client.query('select name from item where id = 1')).rows);
  await client.query("update item set name = 'mine' where id = 1").catch((error) => say(fields(error)));
  await client.query('select 1').catch((error) => say(fields(error)));
  say((await client.query('commit')).command);
  await other.end();
  const pool = new Pool({ max: 4 });
  const got = await Promise.all(Array.from({ length: 20 }, (_, i) => pool.query('select $1::int as i', [i])));
  say(got.map((one) => one.rows[0].i));
  await pool.end();
}

async function cancelling(client) {
  say('# cancelling');
  const other = await connect();
  const pid = other.processID;
  for (const how of ['select pg_cancel_backend($1)', 'select pg_terminate_backend($1)']) {
    const sleeping = other.query('select pg_sleep(600)').then(
      () => 'no error',
      (error) => fields(error),
    );
    while ((await client.query("select 1 from pg_stat_activity where pid = $1 and state = 'active'", [pid])).rowCount === 0);
    say((await client.query(how, [pid])).rows);
    say(await sleeping);
  }
  const hasty = await connect({ statement_timeout: 20 });
  await hasty.query('select pg_sleep(600)').catch((error) => say(fields(error)));
  await hasty.end();
}

async function enums(client) {
  say('# enums');
  await client.query("create type mood as enum ('sad', 'ok', 'happy')");
  await client.query('create table moods (id int, mood mood, many mood[])');
  await client.query('insert into moods values ($1, $2, $3), (2, $4, null)', [1, 'happy', ['sad', null], 'ok']);
  say((await client.query('select * from moods order by mood')).rows);
  say((await client.query('select id from moods where mood > $1 and mood = any ($2) order by id', ['sad', ['ok', 'happy']])).rows);
  say((await client.query({ name: 'one', text: 'select mood from moods where id = $1', values: [2] })).rows);
  await client.query('insert into moods values (3, $1)', ['none']).catch((error) => say(fields(error)));
  await client.query('drop type mood').catch((error) => say(fields(error)));
  await client.query('drop table moods; drop type mood');
}

async function main() {
  say('# connecting');
  const client = await connect({ application_name: 'a client' });
  say((await client.query("select current_user, current_database(), current_setting('application_name') as name")).rows);
  await client.query("set timezone = 'UTC'");
  for (const part of [everyType, prepared, copies, errors, transactions, cancelling, enums]) await part(client);
  await client.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
