//! Statements of the extended protocol, as a server's connection runs them, for a profiler to count: `--example statements -- KIND COUNT`.
//!
//! `valgrind --tool=callgrind --toggle-collect='*measured*'` counts nothing else. KIND: `lookup`, `update`, `insert`, `transfer` (the
//! seven statements of pgbench's TPC-B); each is bound, described, run and ended by Sync.

use std::error::Error;
use std::hint::black_box;
use vellum::{Config, Database};
use vellum_sql::{
    CommandTag, CopyShape, FIRST_ROLE, Field, Fields, Format, OutputRow, Parameters, Session,
    SessionOptions, Sink, SqlDatabase, Told,
};

const ROWS: u64 = 100_000;

/// Takes everything, keeps nothing.
struct Nowhere(u64);

impl Sink for Nowhere {
    fn row_description(&mut self, _: &[Field], _: &[Format]) -> Told {
        Ok(())
    }
    fn row(&mut self, row: OutputRow<'_>) -> Told {
        self.0 += row.iter().count() as u64;
        Ok(())
    }
    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        black_box(tag);
        Ok(())
    }
    fn empty_query(&mut self) -> Told {
        Ok(())
    }
    fn notice(&mut self, _: &Fields) -> Told {
        Ok(())
    }
    fn copy_in(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }
    fn copy_out(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }
    fn copy_data(&mut self, _: &[u8]) -> Told {
        Ok(())
    }
    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}

const SELECT: &str = "SELECT abalance FROM accounts WHERE aid = $1";
const UPDATE: &str = "UPDATE accounts SET abalance = abalance + $1 WHERE aid = $2";
const INSERT: &str =
    "INSERT INTO history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)";
const TELLER: &str = "UPDATE tellers SET tbalance = tbalance + $1 WHERE tid = $2";
const BRANCH: &str = "UPDATE branches SET bbalance = bbalance + $1 WHERE bid = $2";

/// One statement, as drivers send it.
fn run(session: &mut Session, name: &str, values: &[&str], sink: &mut Nowhere) {
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_bytes())).collect();
    let parameters = Parameters {
        formats: &[],
        values: &values,
    };
    session
        .bind("", name, parameters, &[Format::Text])
        .expect("bound");
    black_box(session.describe_portal("").expect("described"));
    session.execute("", 0, sink).expect("run");
    session.sync().expect("ended");
}

#[inline(never)]
fn measured(session: &mut Session, kind: &str, count: u64, sink: &mut Nowhere) {
    for number in 0..count {
        let aid = (number * 7919 % ROWS).to_string();
        let (tid, bid) = ((number % 200).to_string(), (number % 20).to_string());
        match kind {
            "lookup" => run(session, "select", &[&aid], sink),
            "update" => run(session, "update", &["5", &aid], sink),
            "insert" => run(session, "insert", &[&tid, &bid, &aid, "5"], sink),
            _ => {
                run(session, "begin", &[], sink);
                run(session, "update", &["5", &aid], sink);
                run(session, "select", &[&aid], sink);
                run(session, "teller", &["5", &tid], sink);
                run(session, "branch", &["5", &bid], sink);
                run(session, "insert", &[&tid, &bid, &aid, "5"], sink);
                run(session, "end", &[], sink);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let kind = arguments.first().map_or("lookup", String::as_str);
    let count: u64 = arguments.get(1).map_or(Ok(1000), |count| count.parse())?;
    let directory = tempfile::tempdir()?;
    let mut config = Config::default().pool_bytes(256 << 20);
    config.data_bytes_max = 1 << 30;
    let database = SqlDatabase::open(Database::open(directory.path(), config)?)?;
    let options = SessionOptions {
        user: FIRST_ROLE.to_owned(),
        ..SessionOptions::default()
    };
    let mut session = database.session(options)?;
    let mut sink = Nowhere(0);
    let made = format!(
        "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
         CREATE TABLE tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
         CREATE TABLE branches (bid int PRIMARY KEY, bbalance int, filler char(88));
         CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
         INSERT INTO accounts SELECT i, i % 20, 0, '' FROM generate_series(0, {ROWS} - 1) i;
         INSERT INTO tellers SELECT i, i % 20, 0, '' FROM generate_series(0, 199) i;
         INSERT INTO branches SELECT i, 0, '' FROM generate_series(0, 19) i;
         SET synchronous_commit = off"
    );
    session.simple_query(&made, &mut sink)?;
    for (name, text) in [
        ("select", SELECT),
        ("update", UPDATE),
        ("insert", INSERT),
        ("teller", TELLER),
        ("branch", BRANCH),
        ("begin", "BEGIN"),
        ("end", "END"),
    ] {
        session.parse(name, text, &[])?;
        session.sync()?;
    }
    // Caches of the session, and of the allocator.
    for _ in 0..3 {
        run(&mut session, "select", &["1"], &mut sink);
    }
    measured(&mut session, kind, count, &mut sink);
    println!("{kind}: {count}, {} columns", sink.0);
    Ok(())
}
