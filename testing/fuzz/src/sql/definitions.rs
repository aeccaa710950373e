//! Rows of the SQL catalog that nobody wrote: the engine's tables in which definitions, roles, sequences and statistics stand are changed row by row, under
//! right checksums; then the database is opened, and everything that is defined there is used, changed and dropped.
//!
//! There are answers: a catalog that cannot be read is `XX001`, and a statement that meets what cannot be has an error of its own. None panics or hangs, and the
//! engine below stays sound.
//!
//! Not checked: that answers are right; nobody can know.

use super::{Heard, States, engine, judge, session, statements};
use crate::damage::in_time;
use crate::mutate::mutate;
use std::sync::Arc;
use vellum::Database;
use vellum_base::random::Random;
use vellum_io::SimulatedDirectory;
use vellum_sql::{SqlDatabase, SqlError, sqlstate};

/// The engine's tables that SQL keeps for itself.
pub const TABLES: [&str; 4] = [
    "sql.catalog",
    "sql.roles",
    "sql.sequences",
    "sql.statistics",
];

/// What is defined beside the tables of [`statements`].
const DEFINED: [&str; 14] = [
    "create role ada login password null connection limit 3; create role eve in role ada; grant ada to vellum",
    "create schema s authorization ada",
    "create sequence s.q start 5 increment by 3 maxvalue 20 cycle; select nextval('s.q')",
    "create table s.p (id int generated always as identity primary key, a int default 7 check (a > 0), b text default upper('b'), c text)",
    "create table s.k (p int references s.p on delete cascade on update set null, q int unique, r serial)",
    "insert into s.p (a, c) values (1, 'x'), (2, 'y'); insert into s.k values (1, 1), (2, 2)",
    "create view s.v as select p.id, k.q from s.p join s.k on k.p = p.id",
    "create view s.w (x) as select count(*) from s.v",
    "grant select, insert on s.p to eve; grant usage on schema s to eve; revoke all on s.k from public",
    "comment on table s.p is 'parents'; comment on column s.p.a is 'a number'; comment on schema s is 'ours'",
    "alter table s.p add column d numeric(4,2) default 1.5; alter table s.p drop column d",
    "create index on s.p (a desc nulls last, c)",
    "create table s.wide (a smallint, b bigint, c real, d float8, e numeric(9,3), f bytea, g date, h time, i timestamp, j timestamptz, k interval, l jsonb, m uuid, n char(5))",
    "analyze",
];

/// What is asked of a database whose definitions were changed.
const USED: [&str; 26] = [
    "select * from t order by id limit 5",
    "insert into t values (900, 1, 'x', 3.25, 1, '2024-01-01')",
    "update t set a = a + 1, n = n + 0.01 where id < 9",
    "delete from t where b = 'b1'",
    "select * from t where a = 3 and b = 'b3'; select * from c where s = 'a'",
    "insert into line select 1, id, 9, 1, 1 from orders where d = 1; delete from orders where d = 2",
    "insert into note (body) values ('{}'); select * from note",
    "select * from s.p, s.k where p.id = k.p",
    "insert into s.p (a, c) values (3, 'z'); insert into s.k values (3, 3); update s.p set a = 0",
    "delete from s.p where id = 1",
    "select * from s.v; select * from s.w",
    "select nextval('s.q'), nextval('s.q'), nextval('s.k_r_seq'), last_value from s.q",
    "insert into s.wide values (1, 2, 3, 4, 5, '\\x06', '2024-01-01', '01:02', '2024-01-01', '2024-01-01', '1 day', '[]', null, 'n'); select * from s.wide",
    "select c.relname, a.attname, a.atttypid, a.attnum, pg_get_expr(d.adbin, d.adrelid) from pg_class c join pg_attribute a on a.attrelid = c.oid left join pg_attrdef d on d.adrelid = c.oid",
    "select indexrelid, indkey, pg_get_indexdef(indexrelid) from pg_index; select conname, pg_get_constraintdef(oid) from pg_constraint",
    "select * from pg_namespace; select * from pg_roles; select * from pg_auth_members; select * from pg_description; select * from pg_stats",
    "select table_name, column_name, data_type from information_schema.columns; select * from information_schema.table_privileges",
    "select viewname, definition from pg_views; select * from pg_sequences",
    "select has_table_privilege('eve', 's.p', 'select'), obj_description('s.p'::regclass)",
    "set role eve; select * from s.p",
    "reset role; alter table t add column z int default 5; update t set z = 6 where id = 1",
    "alter table s.p rename column a to aa; alter table s.p add check (aa < 100); alter table s.k add primary key (q)",
    "create index on t (z); drop index t_n_idx; analyze t",
    "alter role ada connection limit 5; grant select on t to ada; revoke ada from eve; drop role eve",
    "truncate line; drop view s.w; alter sequence s.q restart with 7",
    "drop schema s cascade; drop table t, c, note cascade; drop owned by ada; drop role ada; create table t (id int primary key); insert into t values (1)",
];

/// Makes the database, closed by a kill.
///
/// # Errors
/// What a statement says.
pub fn make() -> Result<SimulatedDirectory, String> {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = super::open(&directory)?;
    let mut session = session(&database)?;
    let corpus = statements::Corpus::read().map_err(|error| error.to_string())?;
    let defined = DEFINED.into_iter().map(str::to_owned);
    let mut refused = String::new();
    for text in corpus.setup.into_iter().chain(defined) {
        if let Err(error) = session.simple_query(&text, &mut Heard::default()) {
            refused.push_str(&format!("{text}: {error}\n"));
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    database
        .engine()
        .checkpoint()
        .map_err(|error| error.to_string())?;
    Ok(directory.process_kill())
}

type Row = (Vec<u8>, Vec<u8>);

fn rows(database: &Database, table: &str) -> vellum::Result<Vec<Row>> {
    let transaction = database.begin()?;
    let table = transaction.table(table)?;
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        rows.push((key.to_vec(), value.to_vec()));
    }
    Ok(rows)
}

/// What the keys of the names that schemas have taken begin with.
const SCHEMA_NAMES: [u8; 5] = [3, 0, 0, 0, 0];

/// Changes some rows; which, and how: those of names of schemas, or others. The two are apart since the former came later: what a seed does stays.
fn damage(database: &Database, random: &mut Random, schemas: bool) -> vellum::Result<String> {
    // Half of them definitions: of those there are most, and most depends on them.
    let name = match random.below(8) {
        0..=4 => TABLES[0],
        number => TABLES[number as usize - 4],
    };
    let mut all = rows(database, name)?;
    let schemas = schemas && name == TABLES[0];
    all.retain(|(key, _)| (name == TABLES[0] && key.starts_with(&SCHEMA_NAMES)) == schemas);
    let pick = |random: &mut Random| all[random.below(all.len() as u64) as usize].clone();
    let mut what = format!("{name}: ");
    for _ in 0..random.between(1, 2) {
        let ((key, mut value), (_, other)) = (pick(random), pick(random));
        let mut new_key = key.clone();
        let mut removes = false;
        match random.below(10) {
            // One number or byte, so that most of it still is what it was.
            0..=4 if !value.is_empty() => {
                crate::damage::scribble(random, &mut value);
            }
            5 | 6 => mutate(random, &mut value, &other),
            7 => {
                let width = random.between(1, 12) as usize;
                let (from, at) = (
                    random.below(other.len().max(1) as u64) as usize,
                    random.below(value.len().max(1) as u64) as usize,
                );
                let width = width
                    .min(other.len() - from.min(other.len()))
                    .min(value.len() - at);
                value[at..at + width].copy_from_slice(&other[from..from + width]);
            }
            // Of another object: its oid, its column, its name.
            8 => mutate(random, &mut new_key, &key),
            9 => removes = true,
            _ => value = other,
        }
        new_key.truncate(200);
        what.push_str(&format!(
            "{key:?} → {new_key:?}: {value:?}, gone: {removes}; "
        ));
        database.retry(|transaction| {
            let table = transaction.table(name)?;
            if new_key != key || removes {
                transaction.delete(&table, &key)?;
            }
            if !removes && !new_key.is_empty() {
                transaction.upsert(&table, &new_key, &value)?;
            }
            Ok(())
        })?;
    }
    Ok(what)
}

/// Changes rows of a copy's catalog and uses it. How often which SQLSTATE was told; `open` where the catalog was not opened.
///
/// # Errors
/// A panic, a hang, an error that says that something inside is wrong, an engine that is not sound; with the seed.
pub fn change(disk: &SimulatedDirectory, seed: u64) -> Result<States, String> {
    let directory = Arc::new(disk.process_kill());
    let mut random = Random::new(seed);
    let engine = engine(&directory)?;
    let what =
        damage(&engine, &mut random, seed.is_multiple_of(13)).map_err(|error| error.to_string())?;
    in_time(move || use_all(engine)).map_err(|why| format!("seed {seed}: {what}\n{why}"))
}

fn use_all(engine: Database) -> Result<States, String> {
    let mut states = States::new();
    let mut count = |state: String| *states.entry(state).or_default() += 1;
    let below = engine.clone();
    match SqlDatabase::open(engine) {
        Err(error) => {
            let state = told(&error).map_err(|why| format!("open: {why}"))?;
            count(format!("open {state}"));
        }
        Ok(database) => match session(&database) {
            Err(error) => count(format!("session: {error}")),
            Ok(mut session) => {
                for text in USED {
                    let state = match session.simple_query(text, &mut Heard::default()) {
                        Ok(_) => "00000".to_owned(),
                        Err(error) => told(&error).map_err(|why| format!("{text}: {why}"))?,
                    };
                    count(state);
                }
            }
        },
    }
    let report = below.verify().map_err(|error| format!("verify: {error}"))?;
    match report.is_sound() {
        true => Ok(states),
        false => Err(format!("is not sound: {report:?}")),
    }
}

/// Rows hold what their definition, as it is now, says that they cannot: a NULL in a column of a key. Told as an internal error, when the row is written
/// into an index.
const IN_ROWS: &str = "null in a key without nulls";

/// Damage may be told as such, beside what statements say that are right or wrong.
fn told(error: &SqlError) -> Result<String, String> {
    if error.sqlstate() == sqlstate::DATA_CORRUPTED || error.message().starts_with(IN_ROWS) {
        return Ok(error.sqlstate().to_string());
    }
    judge(error)
}
