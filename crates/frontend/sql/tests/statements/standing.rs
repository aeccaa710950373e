//! Cursors and portals over queries that operators run: these stand still between two FETCHes.

use super::client::{Client, Heard, database};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use vellum_sql::{Parameters, Progress, SqlDatabase};

const LEVELS: [&str; 2] = ["read committed", "repeatable read"];
const ROWS: u64 = 60_000;
const OPEN: &str = "select transactions_open from vellum_slots";

/// A table that is read in parts, where there is more than one processor.
fn filled(database: &SqlDatabase) -> Client {
    let mut client = Client::of(database);
    client.ok("create table big (id int primary key, n int, note text)");
    client.ok(&format!(
        "insert into big select g, g * 7919 % {ROWS}, 'n' || g || repeat('x', 60) from generate_series(1, {ROWS}) g"
    ));
    client.ok("analyze big");
    client
}

fn spilling(directory: &Path) -> SqlDatabase {
    let database = database();
    database.set_spill_directory(directory.join("spill"));
    database
}

/// Files that this process has open below a directory: those of operators have no name any more when they are read.
fn files(directory: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    open.filter(|path| path.starts_with(directory)).count()
}

/// Operators end when they give way.
#[track_caller]
fn soon(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// All of them are sorted before the first one is told.
const SORTED: &str = "select id, n, note from big order by n, id";
/// Rows of the second side come by as they are read.
const JOINED: &str = "select a.id, b.n from big a join big b on a.n = b.n and a.note = b.note";

#[test]
fn a_query_of_operators_returns_the_same_rows_in_pieces() {
    let database = database();
    let mut client = filled(&database);
    let sum = |rows: &str| -> (u64, u64) {
        let first = |row: &str| row.split('|').next().unwrap().parse::<u64>().unwrap();
        let rows = rows.lines().map(first);
        rows.fold((0, 0), |(count, sum), id| (count + 1, sum + id))
    };
    let all = (ROWS, ROWS * (ROWS + 1) / 2);
    let sorted = client.ok(SORTED);
    for level in LEVELS {
        for (query, sizes) in [(SORTED, [1000, 25_000]), (JOINED, [1, 9000])] {
            for size in sizes {
                client.ok(&format!(
                    "begin isolation level {level}; declare c cursor for {query}"
                ));
                let mut rows = client.ok(&format!("fetch {size} c"));
                for step in [&*format!("fetch {size} c"), "fetch 3 c", "fetch all c"] {
                    rows.push('\n');
                    rows.push_str(&client.ok(step));
                }
                assert_eq!(sum(&rows), all, "{query}: {size}, {level}");
                assert!(query != SORTED || rows == sorted, "{size}, {level}");
                // Back, over what was read before.
                client.ok("move absolute 2 in c");
                let again = client.ok("fetch 3 c");
                assert!(again.lines().eq(rows.lines().skip(2).take(3)));
                client.ok("commit");
            }
        }
    }
    let session = &mut client.session;
    session.parse("", JOINED, &[]).unwrap();
    session.bind("", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    while session.execute("", 5000, &mut heard).unwrap() == Progress::Suspended {}
    session.sync().unwrap();
    assert_eq!(sum(&heard.text()), all);
}

/// The snapshot is kept as long as tables are read, and no longer.
#[test]
fn a_query_that_stands_still_keeps_its_snapshot_until_its_tables_are_read() {
    let database = database();
    let mut client = filled(&database);
    let mut other = Client::of(&database);
    client.ok(&format!("begin; declare c cursor for {JOINED}"));
    assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
    assert_eq!(client.ok(OPEN), "2");
    other.ok("delete from big where id % 2 = 0; insert into big values (100000, 1, 'new')");
    assert_eq!(client.hear("fetch all c").rows.len() as u64, ROWS - 10);
    assert_eq!(client.ok(OPEN), "1");
    client.ok("commit");
    let sorted = client.ok(SORTED);
    client.ok(&format!("begin; declare c cursor for {SORTED}"));
    let mut rows = client.ok("fetch 10 c");
    assert_eq!(client.ok(OPEN), "1", "it has sorted all there is");
    other.ok("truncate big");
    rows.push('\n');
    rows.push_str(&client.ok("fetch all c"));
    assert!(rows == sorted);
    client.ok("commit");
}

/// Under repeatable read it reads the transaction's own snapshot, with what that had written by DECLARE.
#[test]
fn a_query_that_stands_still_sees_what_its_transaction_had_written() {
    let database = database();
    let mut client = filled(&database);
    client.ok("begin isolation level repeatable read; delete from big where id > 50000");
    client.ok(&format!("declare c cursor for {JOINED}"));
    client.ok("fetch 10 c; delete from big where id <= 20000; savepoint s; delete from big");
    client.ok("fetch 10 c; rollback to s");
    assert_eq!(client.hear("fetch all c").rows.len(), 50_000 - 20);
    client.ok("rollback; analyze big");
    // What a definition takes away is read before.
    client.ok("begin isolation level repeatable read");
    client.ok(&format!("declare c cursor for {JOINED}"));
    client.ok("fetch 10 c; drop table big");
    assert_eq!(client.hear("fetch all c").rows.len() as u64, ROWS - 10);
    client.ok("rollback");
}

#[test]
fn what_a_query_has_in_files_goes_with_its_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let database = spilling(directory.path());
    let mut client = filled(&database);
    client.ok("set work_mem = '8MB'");
    let none = || files(directory.path()) == 0;
    // What reads ahead may have come to the end of them all by the time that somebody looks.
    let mut seen = 0;
    for end in [
        "close c",
        "close all",
        "commit",
        "rollback",
        "rollback to s",
        "select 1 / 0",
        "fetch 60000 c",
    ] {
        client.ok(&format!(
            "begin; savepoint s; declare c no scroll cursor for {SORTED}"
        ));
        assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
        seen += usize::from(!none());
        if end == "select 1 / 0" {
            assert_eq!(client.state(end), "22012");
        } else {
            client.hear(end);
        }
        if end == "fetch 60000 c" {
            client.ok("close c");
        }
        soon(end, none);
        client.ok("rollback");
    }
    assert!(seen > 0, "it is sorted in files");
    client.ok(&format!("begin; declare c cursor for {SORTED}"));
    client.ok("fetch 10 c");
    drop(client);
    soon("the session has ended", none);
}

#[test]
fn an_error_ends_the_query_and_its_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let database = spilling(directory.path());
    let mut client = filled(&database);
    client.ok("set work_mem = '8MB'");
    let failing = "select 1 / (id - 59000), note from (select id, note from big order by n, id offset 1) x order by note, id";
    for level in LEVELS {
        client.ok(&format!("begin isolation level {level}"));
        client.ok(&format!("declare c cursor for {failing}"));
        client.ok("savepoint s");
        assert_eq!(client.state("fetch all c"), "22012");
        soon("files", || files(directory.path()) == 0);
        client.ok("rollback to s");
        let refused = ("55000".to_owned(), "portal \"c\" cannot be run".to_owned());
        assert_eq!(client.fails("fetch c"), refused);
        client.ok("rollback to s");
        client.ok("close c; rollback");
    }
}

#[test]
fn each_fetch_has_the_time_of_a_statement_and_can_be_cancelled() {
    let database = database();
    let mut client = filled(&database);
    // Pairs of all rows, next to none of which is told.
    let pairs = "select a.id from big a join big b on a.id + b.id = 3 or (a.id <> b.id and a.note = b.note)";
    client.ok(&format!("begin; declare c cursor for {JOINED}"));
    client.ok("fetch 10 c; set statement_timeout = '500ms'");
    for _ in 0..3 {
        assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
        thread::sleep(Duration::from_millis(300));
    }
    client.ok(&format!("declare d cursor for {pairs}; savepoint s"));
    assert_eq!(client.state("fetch all d"), "57014");
    client.ok("rollback to s");
    assert_eq!(client.state("fetch d"), "55000");
    client.ok("rollback to s; set statement_timeout = 0");
    client.ok(&format!("declare e cursor for {pairs}"));
    let handle = client.session.cancel_handle();
    let cancels = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        handle.cancel();
    });
    assert_eq!(client.state("fetch all e"), "57014");
    cancels.join().unwrap();
    // The other one goes on.
    client.ok("rollback to s");
    assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
    client.ok("rollback");
}

/// As in PostgreSQL, where that is what COMMIT does.
#[test]
fn a_cursor_with_hold_is_run_to_its_end_when_its_transaction_commits() {
    let database = database();
    let mut client = filled(&database);
    for level in LEVELS {
        client.ok(&format!("begin isolation level {level}"));
        client.ok(&format!("declare c cursor with hold for {JOINED}"));
        client.ok("declare p cursor with hold for select id from big order by id");
        assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
        assert_eq!(client.ok("fetch 2 p"), "1\n2");
        client.ok("commit");
        assert_eq!(client.ok(OPEN), "1");
        let mut other = Client::of(&database);
        other.ok("begin; delete from big");
        assert_eq!(client.hear("fetch all c").rows.len() as u64, ROWS - 10);
        assert_eq!(client.ok("fetch 2 p; close all"), "3\n4");
        other.ok("rollback");
        // What fails there is the commit.
        client.ok(&format!("begin isolation level {level}"));
        client.ok("declare c cursor with hold for select 1 / (id - 500) from big order by id");
        client.ok("create table made (id int)");
        assert_eq!(client.ok("fetch c"), "0");
        assert_eq!(client.state("commit"), "22012");
        assert_eq!(client.state("fetch c"), "34000");
        assert_eq!(client.state("select * from made"), "42P01");
        client.ok("rollback");
    }
    let error = client.state("declare c cursor with hold for select 1 / (id - 500) from big");
    assert_eq!(error, "22012");
}

/// Two snapshots a session, and the others are run to their end.
#[test]
fn queries_that_cannot_stand_still_are_run_to_their_end() {
    let database = database();
    let mut client = filled(&database);
    client.ok("begin");
    for (cursor, open) in [("a", "2"), ("b", "3"), ("c", "3")] {
        client.ok(&format!("declare {cursor} cursor for {JOINED}"));
        assert_eq!(client.hear(&format!("fetch 2 {cursor}")).rows.len(), 2);
        assert_eq!(client.ok(OPEN), open);
    }
    for cursor in ["a", "b", "c"] {
        let rest = client.hear(&format!("fetch all {cursor}")).rows.len() as u64;
        assert_eq!(rest, ROWS - 2);
    }
    client.ok("commit; create table small (id int primary key, n int); insert into small select g, g from generate_series(1, 300) g");
    // A subquery that is run for each row.
    let asked = "select id, (select max(x.n) from small x where x.n < small.n limit 1) from small order by n desc";
    let whole = client.ok(asked);
    for level in LEVELS {
        client.ok(&format!("begin isolation level {level}"));
        client.ok(&format!("declare c cursor for {asked}"));
        let mut rows = client.ok("fetch 3 c");
        rows.push('\n');
        rows.push_str(&client.ok("fetch all c"));
        assert_eq!(rows, whole);
        client.ok("commit");
    }
}
