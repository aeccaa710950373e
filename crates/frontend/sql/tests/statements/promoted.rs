//! Sessions that are old: their transaction was promoted, and what it sees of deleted rows is in graveyards, of indexes too.
//!
//! Answers are those of PostgreSQL 15 at the same level, but for one: a key that was deleted after the snapshot of a repeatable read transaction is free
//! there, and here its insert is `40001` (first writer wins: docs/design/0018-row-locks.md).

use super::client::{Client, Heard, database_that_promotes};
use vellum_sql::{
    CommandTag, CopyShape, Field, Fields, Format, OutputRow, Parameters, Progress, Sink,
    SqlDatabase, Told,
};

const REPEATABLE: &str = "repeatable read";
const COMMITTED: &str = "read committed";

/// Time passes for old transactions, and all background work is done.
fn settle(database: &SqlDatabase) {
    let mut client = Client::of(database);
    client.ok("create table if not exists ticks (n int)");
    for n in 0..5 {
        client.ok(&format!("insert into ticks values ({n})"));
    }
    while database.engine().step().unwrap() {}
}

/// What an old session (`level`) is answered that has looked at `tables`, by a statement after another has run `change`: rows, or an
/// SQLSTATE. Each statement of the change is a transaction; where the session was promoted all that was deleted is buried behind each.
fn answer(promoted: bool, level: &str, change: &str, statement: &str) -> String {
    let database = database_that_promotes(promoted);
    let (mut other, mut old) = (Client::of(&database), Client::of(&database));
    other.ok("create table p (id int primary key);
         create table c (id int primary key, p int references p);
         create table t (id int primary key, u int unique, n int); create index on t (n);
         insert into p values (1), (2); insert into c values (20, 2);
         insert into t values (1, 1, 10), (2, 2, 20)");
    old.ok(&format!(
        "begin isolation level {level}; select 1 from p; select 1 from t"
    ));
    let before = database.engine().statistics();
    for change in change.split(';') {
        other.ok(change);
        settle(&database);
    }
    let after = database.engine().statistics();
    assert_eq!(after.rows_moved > before.rows_moved, promoted, "{change}");
    assert_eq!(after.promotions > before.promotions, promoted, "{change}");
    let mut heard = Heard::default();
    match old.session.simple_query(statement, &mut heard) {
        Ok(progress) => {
            assert_eq!(progress, Progress::Complete);
            old.ok("commit");
            let orphans = "select count(*) from c left join p on p.id = c.p where p.id is null";
            assert_eq!(other.ok(orphans), "0", "{change}; {statement}");
            heard.text()
        }
        Err(error) => error.sqlstate().to_string(),
    }
}

/// Each: what another session does, what the old one asks, and the answers under repeatable read and read committed.
#[track_caller]
fn answers(cases: &[(&str, &str, &str, &str)]) {
    for (change, statement, repeatable, committed) in cases {
        for promoted in [false, true] {
            for (level, expected) in [(REPEATABLE, repeatable), (COMMITTED, committed)] {
                let told = answer(promoted, level, change, statement);
                assert_eq!(
                    told, *expected,
                    "{level}, promoted: {promoted}: {change}; {statement}"
                );
            }
        }
    }
}

#[test]
fn a_lock_on_a_buried_row_is_a_serialization_failure() {
    let delete = "delete from t where id = 1";
    let by = |path, strength| format!("select id from t where {path} for {strength}");
    for sql in ["update", "no key update", "share", "key share"].map(|how| by("id = 1", how)) {
        answers(&[(delete, &sql, "40001", "")]);
    }
    for sql in ["u = 1", "n = 10", "n between 5 and 15"].map(|path| by(path, "update")) {
        answers(&[(delete, &sql, "40001", "")]);
    }
    answers(&[
        (
            delete,
            "select id from t where id = 1 for update skip locked",
            "40001",
            "",
        ),
        (
            delete,
            "select id from t where id = 1 for update nowait",
            "40001",
            "",
        ),
        (delete, "select id from t where id = 2 for update", "2", "2"),
        (delete, "select id from t order by n", "1\n2", "2"),
        // Buried, and there again, twice.
        (
            "delete from t where id = 1; insert into t values (1, 1, 30); delete from t where id = 1",
            "select id from t where id = 1 for update",
            "40001",
            "",
        ),
        (delete, "update t set n = 5 where n = 10", "40001", ""),
        (delete, "delete from t where u = 1", "40001", ""),
    ]);
}

#[test]
fn a_row_that_refers_to_a_buried_one_is_refused() {
    let delete = "delete from p where id = 1";
    answers(&[
        (delete, "insert into c values (1, 1)", "40001", "23503"),
        (delete, "update c set p = 1", "40001", "23503"),
        (delete, "insert into c values (1, 3)", "23503", "23503"),
        (delete, "insert into c values (1, 2)", "", ""),
        // Its own delete.
        (
            "delete from t where id = 1",
            "delete from p where id = 1; insert into c values (1, 1)",
            "23503",
            "23503",
        ),
    ]);
}

#[test]
fn regress_a_row_that_is_gone_forbids_no_delete_of_what_it_referred_to() {
    answers(&[
        (
            "delete from c",
            "delete from p where id = 2 returning id",
            "2",
            "2",
        ),
        // It has a row of its own there, too.
        (
            "delete from c",
            "insert into c values (21, 2); delete from p where id = 2",
            "23503",
            "23503",
        ),
        (
            "delete from c; insert into c values (20, 2)",
            "delete from p where id = 2",
            "23503",
            "23503",
        ),
        (
            "insert into c values (10, 1); delete from c where id = 10; delete from t where id = 1",
            "delete from p where id = 1 returning id",
            "1",
            "1",
        ),
    ]);
}

#[test]
fn regress_a_unique_key_whose_row_is_buried_is_no_duplicate() {
    let delete = "delete from t where id = 1";
    answers(&[
        (
            delete,
            "insert into t values (1, 9, 9) returning id",
            "40001",
            "1",
        ),
        (
            delete,
            "insert into t values (9, 1, 9) returning id",
            "40001",
            "9",
        ),
        (delete, "update t set u = 1 returning id", "40001", "2"),
        (
            delete,
            "insert into t values (1, 9, 9) on conflict do nothing returning id",
            "40001",
            "1",
        ),
        (
            delete,
            "insert into t values (9, 1, 9) on conflict do nothing returning id",
            "40001",
            "9",
        ),
        (
            delete,
            "insert into t values (9, 1, 9) on conflict (u) do update set n = 5 returning id",
            "40001",
            "9",
        ),
        // The key alone is gone.
        (
            "update t set u = 7 where id = 1",
            "insert into t values (9, 1, 9) returning id",
            "40001",
            "9",
        ),
        // Others have it by now: no conflict that running again would mend.
        (
            "delete from t where id = 1; insert into t values (5, 1, 9)",
            "insert into t values (9, 1, 9)",
            "23505",
            "23505",
        ),
        (delete, "insert into t values (9, 2, 9)", "23505", "23505"),
    ]);
}

/// Rows 1 to 600 over many pages, in an index by another order, and an old session.
fn many(promotes: bool) -> (SqlDatabase, Client, Client) {
    let database = database_that_promotes(promotes);
    let (mut other, old) = (Client::of(&database), Client::of(&database));
    other.ok(
        "create table t (id int primary key, n int, pad text); create index on t (n);
         insert into t select g, (g * 7) % 600, repeat('x', 60) from generate_series(1, 600) g",
    );
    (database, other, old)
}

const ALL: std::ops::RangeInclusive<i32> = 1..=600;

/// Deletes rows on both sides of everywhere, makes some anew and deletes some of those, and buries what went.
fn meddle(database: &SqlDatabase, other: &mut Client) {
    let before = database.engine().statistics();
    other.ok("delete from t where id % 3 <> 1");
    settle(database);
    other.ok("insert into t select g, g, 'new' from generate_series(3, 600, 6) g");
    other.ok("update t set n = -n where id % 9 = 1");
    settle(database);
    other.ok("delete from t where id > 250 and id < 420 or id > 590 or id < 5");
    settle(database);
    let after = database.engine().statistics();
    assert_eq!(after.promotions - before.promotions, 1);
    assert_eq!(after.tombstones, 0);
    assert!(after.rows_moved - before.rows_moved > 900, "{after:?}");
}

fn numbers(rows: &str) -> Vec<i32> {
    rows.lines().map(|row| row.parse().unwrap()).collect()
}

/// Rows of a cursor or portal in the index's order, as the first snapshot has them.
fn by_n() -> Vec<i32> {
    let mut all: Vec<i32> = ALL.collect();
    all.sort_by_key(|id| (id * 7) % 600);
    all
}

#[test]
fn a_portal_that_stands_in_the_middle_goes_on_with_the_rows_of_its_snapshot() {
    for (sql, expected) in [
        ("select id from t order by id", ALL.collect()),
        ("select id from t order by id desc", ALL.rev().collect()),
        ("select id from t order by n", by_n()),
        (
            "select id from t order by n desc",
            by_n().into_iter().rev().collect::<Vec<_>>(),
        ),
    ] {
        let (database, mut other, mut old) = many(true);
        old.ok("begin isolation level repeatable read");
        let mut portal = |name: &str| {
            old.session.parse("", sql, &[]).unwrap();
            let parameters = Parameters::default();
            old.session.bind(name, "", parameters, &[]).unwrap();
        };
        portal("before");
        portal("behind");
        let mut heard = Heard::default();
        let mut go_on = |name: &str, rows: u32| {
            let progress = old.session.execute(name, rows, &mut heard).unwrap();
            (progress, numbers(&std::mem::take(&mut heard).text()))
        };
        let (progress, mut found) = go_on("before", 300);
        assert_eq!((progress, found.len()), (Progress::Suspended, 300));
        meddle(&database, &mut other);
        loop {
            let (progress, more) = go_on("before", 70);
            found.extend(more);
            if progress == Progress::Complete {
                break;
            }
        }
        assert_eq!(found, expected, "{sql}");
        // One that has not begun by then.
        let (mut progress, mut found) = go_on("behind", 100);
        while progress == Progress::Suspended {
            let (now, more) = go_on("behind", 250);
            found.extend(more);
            progress = now;
        }
        assert_eq!(found, expected, "{sql}");
    }
}

#[test]
fn a_cursor_that_stands_in_the_middle_goes_both_ways_over_the_rows_of_its_snapshot() {
    for (order, expected) in [("id", ALL.collect()), ("n", by_n())] {
        let (database, mut other, mut old) = many(true);
        old.ok(&format!(
            "begin isolation level repeatable read; declare c scroll cursor for select id from t order by {order}"
        ));
        let ahead = numbers(&old.ok("fetch 300 from c"));
        assert_eq!(ahead, expected[..300]);
        meddle(&database, &mut other);
        old.ok(&format!(
            "declare d scroll cursor for select id from t order by {order}"
        ));
        assert_eq!(
            numbers(&old.ok("fetch forward 100 from c")),
            expected[300..400]
        );
        let back: Vec<i32> = expected[..399].iter().rev().copied().collect();
        assert_eq!(numbers(&old.ok("fetch backward all from c")), back);
        assert_eq!(numbers(&old.ok("fetch all from c")), expected);
        assert_eq!(numbers(&old.ok("fetch 450 from d")), expected[..450]);
        let back: Vec<i32> = expected[..449].iter().rev().copied().collect();
        assert_eq!(numbers(&old.ok("fetch backward all from d")), back);
    }
}

/// A client that takes its time over a row, while others work.
struct Slow<'w> {
    heard: Heard,
    /// At the row with this number, counted from one.
    at: usize,
    work: Option<Box<dyn FnMut() + 'w>>,
}

impl Sink for Slow<'_> {
    fn row_description(&mut self, fields: &[Field], formats: &[Format]) -> Told {
        self.heard.row_description(fields, formats)
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        self.heard.row(row)?;
        if self.heard.rows.len() == self.at
            && let Some(mut work) = self.work.take()
        {
            work();
        }
        Ok(())
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        self.heard.command_complete(tag)
    }

    fn empty_query(&mut self) -> Told {
        self.heard.empty_query()
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        self.heard.notice(notice)
    }

    fn copy_in(&mut self, shape: &CopyShape) -> Told {
        self.heard.copy_in(shape)
    }

    fn copy_out(&mut self, shape: &CopyShape) -> Told {
        self.heard.copy_out(shape)
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Told {
        self.heard.copy_data(bytes)
    }

    fn copy_done(&mut self) -> Told {
        self.heard.copy_done()
    }
}

/// The client takes rows as they are found, so all of it happens in the middle of one statement's scan.
#[test]
fn a_statement_whose_transaction_is_promoted_in_mid_scan_tells_the_rows_of_its_snapshot() {
    let reversed = |mut rows: Vec<i32>| {
        rows.reverse();
        rows
    };
    for level in [REPEATABLE, COMMITTED] {
        for (sql, expected) in [
            ("select id from t order by id", ALL.collect()),
            ("select id from t order by id desc", ALL.rev().collect()),
            ("select id from t order by n", by_n()),
            ("select id from t order by n desc", reversed(by_n())),
            (
                "select a.id from t a join t b on b.id = a.id order by a.id",
                ALL.collect(),
            ),
        ] {
            for at in [1, 270] {
                let (database, mut other, mut old) = many(true);
                old.ok(&format!("begin isolation level {level}"));
                let meddles = || meddle(&database, &mut other);
                let mut slow = Slow {
                    heard: Heard::default(),
                    at,
                    work: Some(Box::new(meddles)),
                };
                old.session.simple_query(sql, &mut slow).unwrap();
                assert!(slow.work.is_none(), "{sql}");
                assert_eq!(numbers(&slow.heard.text()), expected, "{level} {at} {sql}");
            }
        }
    }
}

#[test]
fn every_path_of_an_old_session_finds_what_is_buried() {
    let (database, mut other, mut old) = many(true);
    let questions = [
        "select count(*), sum(id), sum(length(pad)) from t",
        "select id from t where id between 200 and 300 order by id",
        "select id from t where id between 200 and 300 order by id desc",
        "select n from t where n > 100 and n <= 333 order by n",
        "select n from t where n > 100 and n <= 333 order by n desc",
        "select n from t order by n limit 5",
        "select n from t order by n desc limit 5",
        "select min(n), max(n), min(id), max(id) from t",
        "select id, pad from t where n = 41",
        "select id from t where n in (3, 4, 5, 6, 600) order by id",
        "select id from t where id = 599",
        "select id from t where id > 598",
        "select count(*) from t a join t b on a.n = b.id",
        "select id % 4, count(*) from t group by 1 order by 1",
        "select id, row_number() over (order by n desc) from t where id < 7 order by id",
    ];
    old.ok("begin isolation level repeatable read");
    let before = questions.map(|sql| old.ok(sql));
    meddle(&database, &mut other);
    for (sql, before) in questions.into_iter().zip(before) {
        assert_eq!(old.ok(sql), before, "{sql}");
        assert_ne!(other.ok(sql), before, "{sql}: it has changed since");
    }
}
