"""asyncpg at a server that the environment names (PGHOST ...); prints what it sees. `async.out` is what it prints at PostgreSQL 15.

asyncpg takes and gives all values in binary, prepares every statement, and asks the catalogs for each type that it does not know.
"""

import asyncio
import json
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import asyncpg
from asyncpg.introspection import INTRO_LOOKUP_TYPES

HERE = Path(__file__).parent


def say(*words):
    print(*words, flush=True)


def values():
    for line in (HERE / "types.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t", 1)


async def fails(work):
    """What an error says but for places in the text and lines of the server's source."""
    try:
        await work
    except asyncpg.PostgresError as error:
        named = ("detail", "schema_name", "table_name", "column_name", "data_type_name", "constraint_name")
        told = [f"{name}: {getattr(error, name)}" for name in named if getattr(error, name, None) is not None]
        say(type(error).__name__, error.sqlstate, "|", error.args[0], "|", *told)
    except Exception as error:
        say(type(error).__name__)
    else:
        say("no error")


async def connecting(conn):
    say("# connecting")
    say(conn.get_server_version().major, conn.get_settings().client_encoding, conn.get_settings().TimeZone)
    say(await conn.fetchrow("select current_user, current_setting('application_name')"))


async def types(conn):
    say("# types: what each is, and the same sent back alone and in an array")
    for ty, text in values():
        value = await conn.fetchval(f"select $1::text::{ty}", text)
        back = await conn.fetchval(f"select $1::{ty}::text", value)
        say(ty, repr(value), repr(back))
        if not ty.endswith("[]"):
            array = await conn.fetchval(f"select $1::{ty}[]", [value, None])
            say("    ", repr(array), await conn.fetchval(f"select $1::{ty}[]::text", array))
    say(await conn.fetchval("select $1::int[]", [[1, 2], [3, 4]]))
    say(await conn.fetchval("select array[1,2]::oid[]"), await conn.fetchval("select 'pg_class'::regclass"))
    say(await conn.fetchval("select array['a','b']::name[]"), await conn.fetchval("select '{}'::timestamptz[]"))


async def records(conn):
    say("# records")
    await conn.execute("create table p (id int primary key, name text, at date)")
    await conn.execute("insert into p values (1, 'a \"quoted\", one', '2024-02-29'), (2, null, null)")
    say(await conn.fetchval("select row(1, 'b', null, 2.50, array[1,2])"))
    say(await conn.fetchval("select row()"), await conn.fetchval("select row(row(1, 't'), true)"))
    say(await conn.fetch("select (s.r).f1, s.r from (select row(id, at) as r from p) s order by 1"))
    say(await conn.fetch("select row(name, id) from p order by id"))
    await fails(conn.fetchval("select $1::record", (1, 2)))
    await conn.execute("drop table p")


async def introspection(conn):
    say("# types that are looked up")
    rows = await conn.fetch(INTRO_LOOKUP_TYPES, [1007, 1231, 3807])
    for row in sorted(rows, key=lambda row: row["oid"]):
        say(*(f"{name}={row[name]}" for name in row.keys()))


async def statements(conn):
    say("# statements")
    await conn.execute("create table t (id serial primary key, name varchar(10) not null unique, n numeric(8,2), at timestamptz default '2024-01-01 00:00+00', extra jsonb)")
    statement = await conn.prepare("insert into t (name, n) values ($1, $2) returning id, n")
    say([(p.name, p.kind) for p in statement.get_parameters()], [(a.name, a.type.name) for a in statement.get_attributes()])
    say(await statement.fetchrow("one", Decimal("1.5")), statement.get_statusmsg())
    say(await statement.fetchval("two", None))
    await conn.executemany("insert into t (name, n) values ($1, $2)", [(f"m{n}", n) for n in range(5)])
    say(await conn.fetchmany("insert into t (name) values ($1) returning name", [("f1",), ("f2",)]) if hasattr(conn, "fetchmany") else "-")
    say(await conn.fetchval("select count(*) from t"), await conn.execute("update t set n = n + 1 where n is not null"))
    say(await conn.execute("select 1; select 2"), await conn.execute("delete from t where name like 'm%'"))
    await fails(conn.executemany("insert into t (name) values ($1)", [("x",), ("one",), ("y",)]))
    say(await conn.fetchval("select count(*) from t where name in ('x', 'y')"))
    say(await conn.fetch("select name from t where name = any($1::text[]) order by name", ["one", "two", "three"]))
    say(await conn.fetchrow("select * from unnest($1::int[], $2::text[]) as u(a, b) order by a desc", [1, 2], ["x", "y"]))
    await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    say(await conn.fetchval("update t set extra = $1 where name = 'one' returning extra", {"a": [1, None]}))
    await conn.reset_type_codec("jsonb", schema="pg_catalog")
    explain = await conn.prepare("select 1")
    say(explain.get_query(), explain.get_name() != "", await explain.fetchval())
    for n in range(3):
        say(await conn.fetchval("select $1::int + 1", n))
    await conn.execute("alter table t add column more int default 7")
    say((await conn.fetchrow("select * from t where name = 'one'"))["more"])


async def errors(conn):
    say("# errors")
    await fails(conn.execute("insert into t (name) values ('one')"))
    await fails(conn.execute("insert into t (name) values (null)"))
    await fails(conn.execute("insert into t (name) values ('longer than ten')"))
    await fails(conn.fetch("select nothing from t"))
    await fails(conn.fetch("select * from nothing"))
    await fails(conn.fetch("select 1/$1::int", 0))
    await fails(conn.fetch("selec 1"))
    await fails(conn.fetch("select $1::int", "a"))
    await fails(conn.fetch("select $1::int", 1, 2))
    await fails(conn.execute("set nothing = 1"))


async def transactions(conn):
    say("# transactions")
    try:
        async with conn.transaction():
            await conn.execute("update t set n = 0")
            raise KeyError
    except KeyError:
        say(await conn.fetchval("select count(*) from t where n = 0"))
    async with conn.transaction(isolation="repeatable_read", readonly=True, deferrable=True):
        say(await conn.fetchval("show transaction_isolation"), await conn.fetchval("show transaction_read_only"))
        await fails(conn.execute("update t set n = 0"))
    async with conn.transaction():
        await conn.execute("insert into t (name) values ('kept')")
        try:
            async with conn.transaction():
                await conn.execute("insert into t (name) values ('kept')")
        except asyncpg.UniqueViolationError:
            say("inner rolled back", conn.is_in_transaction())
    say(await conn.fetchval("select count(*) from t where name = 'kept'"))
    tr = conn.transaction()
    await tr.start()
    await fails(conn.execute("select 1/0"))
    await fails(conn.execute("select 1"))
    await tr.rollback()
    say(conn.is_in_transaction())


async def cursors(conn):
    say("# cursors")
    async with conn.transaction():
        got = [r[0] async for r in conn.cursor("select g from generate_series(1, $1::int) g", 7, prefetch=3)]
        say(got)
        cursor = await conn.cursor("select g from generate_series(1, 10) g")
        say(await cursor.fetch(2), await cursor.forward(3), await cursor.fetchrow(), len(await cursor.fetch(100)))
        statement = await conn.prepare("select name from t order by name")
        say([r[0] async for r in statement.cursor()])
    await fails(conn.cursor("select 1").__aiter__().__anext__())


async def copies(conn):
    say("# copy")
    await conn.execute("create table c (a int, b text, d timestamptz, e numeric, f int[], g uuid, h bool, i bytea)")
    rows = [
        (1, "x", datetime(2024, 2, 29, 12, tzinfo=timezone.utc), Decimal("1.50"), [1, None], uuid.UUID(int=7), True, b"\x00\xff"),
        (2, None, None, None, None, None, None, None),
    ]
    say(await conn.copy_records_to_table("c", records=rows), await conn.copy_records_to_table("c", records=[(3, "y")], columns=["a", "b"]))
    say(await conn.fetch("select * from c order by a"))

    async def lines():
        yield b"4\tz\n5\t"
        yield b"\\N\n"

    say(await conn.copy_to_table("c", source=lines(), columns=["a", "b"]))
    got = []

    async def take(piece):
        got.append(piece)

    say(await conn.copy_from_query("select a, b from c where a > $1 order by a", 2, output=take, format="csv"), b"".join(got))
    got.clear()
    say(await conn.copy_from_table("c", columns=["a"], output=take), b"".join(got))
    await fails(conn.copy_records_to_table("c", records=[("no number", "b")], columns=["a", "b"]))
    await fails(conn.copy_records_to_table("nothing", records=[(1,)]))


async def cancelling(conn):
    say("# cancelling")
    try:
        await conn.fetch("select pg_sleep(30)", timeout=0.3)
    except asyncio.TimeoutError:
        say("timed out", await conn.fetchval("select 1"))
    task = asyncio.ensure_future(conn.fetch("select pg_sleep(30)"))
    await asyncio.sleep(0.3)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        say("cancelled", await conn.fetchval("select 2"))
    await conn.execute("set statement_timeout = '100ms'")
    await fails(conn.fetch("select pg_sleep(30)"))
    await conn.execute("reset statement_timeout")


async def listening(conn):
    say("# listening")
    heard = asyncio.get_running_loop().create_future()
    await conn.add_listener("news", lambda *said: heard.done() or heard.set_result(said[2:]))
    await conn.execute("notify news, 'text'")
    say(await asyncio.wait_for(heard, 10))
    notices = []
    conn.add_log_listener(lambda _, message: notices.append((message.severity, message.message)))
    await conn.execute("drop table if exists nowhere")
    await asyncio.sleep(0.1)
    say(notices)
    await conn.reset()


async def enums(conn):
    say("# enums")
    await conn.execute("create type mood as enum ('sad', 'ok', 'happy')")
    await conn.execute("create table moods (id int primary key, mood mood, many mood[])")
    insert = await conn.prepare("insert into moods values ($1, $2, $3)")
    say([(ty.name, ty.kind, ty.schema) for ty in insert.get_parameters()])
    await insert.executemany([(1, "happy", ["sad", None]), (2, "sad", []), (3, None, None)])
    await conn.copy_records_to_table("moods", records=[(4, "ok", ["ok"]), (5, "sad", None)])
    say([tuple(row) for row in await conn.fetch("select * from moods order by mood, id")])
    say(await conn.fetchval("select array_agg(id order by id) from moods where mood = $1", "sad"))
    say(await conn.fetchval("select array_agg(id order by id) from moods where mood = any ($1::mood[])", ["ok", "happy"]))
    say(await conn.fetchval("select row(mood, 1) from moods where id = 1"))
    await fails(conn.execute("insert into moods values (6, $1, null)", "none"))
    await fails(conn.execute("drop type mood"))
    await conn.execute("drop table moods")
    await conn.execute("drop type mood")
    await conn.reload_schema_state()


async def pools():
    say("# pools")
    async with asyncpg.create_pool(min_size=2, max_size=4) as pool:
        async def one(n):
            async with pool.acquire() as conn, conn.transaction():
                await conn.execute("insert into t (name) values ($1)", f"pool{n}")
                return n
        say(sorted(await asyncio.gather(*(one(n) for n in range(12)))))
        say(await pool.fetchval("select count(*) from t where name like 'pool%'"))


async def main():
    conn = await asyncpg.connect(server_settings={"application_name": "async", "timezone": "UTC"})
    await connecting(conn)
    await types(conn)
    await records(conn)
    await introspection(conn)
    await statements(conn)
    await errors(conn)
    await transactions(conn)
    await cursors(conn)
    await copies(conn)
    await cancelling(conn)
    await listening(conn)
    await enums(conn)
    await pools()
    await conn.execute("drop table t, c")
    await conn.close()


asyncio.run(main())
