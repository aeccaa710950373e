//! Large tables are read in parts by several threads: the same rows, of one snapshot.

use super::client::{Client, database};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use vellum::{Config, Database, TransactionOptions};
use vellum_io::MemoryDirectory;
use vellum_sql::SqlDatabase;

const ROWS: u64 = 120_000;

fn filled(database: &SqlDatabase) -> Client {
    let mut client = Client::of(database);
    client.ok("CREATE TABLE big (id int PRIMARY KEY, grp int, amount numeric(10,2), price float8, day date, note text)");
    client.ok(&format!(
        "INSERT INTO big SELECT g, g % 7, g * 0.01, g, date '2024-01-01' + g % 100, 'n' || g FROM generate_series(1, {ROWS}) g"
    ));
    client.ok("UPDATE big SET grp = NULL WHERE id % 1000 = 0; ANALYZE big");
    client
}

fn several() -> bool {
    std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1)
}

#[test]
fn every_row_of_a_large_table_is_read_once() {
    let mut client = filled(&database());
    let sum = ROWS * (ROWS + 1) / 2;
    let sql = "SELECT count(*), sum(id), sum(amount), count(grp), min(day), max(note), sum(price) FROM big";
    let expected = format!(
        "{ROWS}|{sum}|{}.{:02}|{}|2024-01-01|n99999|{sum}",
        sum / 100,
        sum % 100,
        ROWS - ROWS / 1000
    );
    assert_eq!(client.ok(sql), expected);
    let plan = client.ok(&format!("EXPLAIN {sql}"));
    assert_eq!(plan.contains("parts="), several(), "{plan}");
    for (condition, expected) in [
        ("grp = 3 AND id <= 100000", "14272"),
        ("note LIKE 'n1234%'", "11"),
        ("id > 50000 AND id <= 110000 AND amount >= 600", "50001"),
        ("grp IS NULL OR day = '2024-01-02'", "1320"),
        ("grp IN (1, 2) AND note <> 'n1'", "34251"),
        ("id % 3 = 0 AND price < 31", "10"),
        ("id = 77", "1"),
    ] {
        // The sum keeps it from being a program's, which counts.
        let sql = format!(
            "SELECT count(*) FROM (SELECT id, sum(id) FROM big WHERE {condition} GROUP BY id) x"
        );
        assert_eq!(client.ok(&sql), expected, "{condition}");
    }
    assert_eq!(
        client.ok("SELECT a.grp, count(*) FROM big a JOIN big b ON a.id = b.id + 1 GROUP BY 1 ORDER BY 1 LIMIT 2"),
        "0|17125\n1|17125"
    );
}

#[test]
fn what_the_transaction_wrote_is_read_and_what_others_commit_is_not() {
    let database = database();
    let mut client = filled(&database);
    let sql = "SELECT grp, count(*), max(id) FROM big GROUP BY grp ORDER BY grp";
    let before = client.ok(sql);
    client.ok("BEGIN ISOLATION LEVEL REPEATABLE READ");
    client.ok("DELETE FROM big WHERE id <= 60000; INSERT INTO big VALUES (500000, 9); UPDATE big SET grp = 8 WHERE id = 60001");
    let own = client.ok(sql);
    assert!(own.contains("8|1|60001\n9|1|500000"), "{own}");
    let mut other = Client::of(&database);
    other.ok(
        "UPDATE big SET grp = 5 WHERE id > 60001 AND id < 70000; DELETE FROM big WHERE id > 119000",
    );
    assert_eq!(client.ok(sql), own);
    client.ok("ROLLBACK");
    let after = client.ok(sql);
    assert!(after != before && after.contains("5|"), "{after}");
    assert_eq!(other.ok(sql), after);
}

#[test]
fn rows_are_gathered_in_the_order_of_the_table() {
    let mut client = filled(&database());
    let sql = "SELECT (array_agg(id))[119998], string_agg(note, ',') LIKE 'n1,n2,n3,%' FROM big";
    assert_eq!(client.ok(sql), "119998|t");
    let plan = client.ok(&format!("EXPLAIN {sql}"));
    assert!(!plan.contains("parts="), "{plan}");
}

/// Symptom: `string_agg` left out separators, and `array_agg` gave an order of its own, where anything else in the query was read in parts: its own
/// rows went through several operators, too.
#[test]
fn regress_rows_are_gathered_in_order_beside_what_is_read_in_parts() {
    let mut client = filled(&database());
    client.ok("CREATE TABLE small (id int PRIMARY KEY, note text)");
    client
        .ok("INSERT INTO small SELECT g, 'n' || g FROM generate_series(1, 12000) g; ANALYZE small");
    let notes: Vec<String> = (1..=12000).map(|id| format!("n{id}")).collect();
    let both = "SELECT string_agg(note, ',') FROM small UNION ALL SELECT sum(id)::text FROM big";
    let found = client.ok(both);
    let whole = notes.join(",");
    assert!(found.lines().any(|line| line == whole), "{}", found.len());
    let joined = "SELECT (x.s = y.s) AS texts, (x.a = y.a) AS arrays, count(*) FROM \
         (SELECT string_agg(note, '; ') AS s, array_agg(id) AS a FROM small) x, \
         (SELECT string_agg(note, '; ' ORDER BY id) AS s, array_agg(id ORDER BY id) AS a FROM small) y, big \
         WHERE big.id % 100 = 0 GROUP BY 1, 2";
    assert_eq!(client.ok(joined), "t|t|1200");
    let listed = "SELECT count(*), sum(id) FROM big WHERE note IN (SELECT right(string_agg(note, ','), 6) FROM small)";
    assert_eq!(client.ok(listed), "1|12000");
    // A value that is found before is no reason to read by one.
    let before = "SELECT count(*), sum(id) FROM big WHERE note = (SELECT left(string_agg(note, ','), 2) FROM small)";
    assert_eq!(client.ok(before), "1|1");
    let plan = client.ok(&format!("EXPLAIN {before}"));
    assert_eq!(plan.contains("parts="), several(), "{plan}");
}

#[test]
fn a_reader_that_fails_ends_the_statement_alone() {
    let mut client = filled(&database());
    let failing = "SELECT grp, sum(id) FROM big WHERE 10 / (id - 60000) < 5 GROUP BY grp";
    for _ in 0..3 {
        assert_eq!(client.state(failing), "22012");
    }
    client.ok("SET statement_timeout = 30");
    // Two thousand million pairs, which come in batches.
    let endless = "SELECT count(*), sum(a.id) FROM big a, big b WHERE a.grp = b.grp";
    assert_eq!(client.state(endless), "57014");
    client.ok("RESET statement_timeout");
    assert_eq!(client.ok("SELECT count(DISTINCT day) FROM big"), "100");
}

/// Symptom: `INSERT … SELECT` from a large table by groups failed: the transaction may not write while other threads read its snapshot.
#[test]
fn regress_rows_of_large_tables_are_written_as_they_come() {
    let mut client = filled(&database());
    client.ok("CREATE TABLE sums (grp int, n bigint)");
    client.ok("INSERT INTO sums SELECT grp, count(*) FROM big GROUP BY grp");
    assert_eq!(
        client.ok("SELECT count(*), sum(n) FROM sums"),
        format!("8|{ROWS}")
    );
    client.ok("CREATE TABLE more (day date, s float8)");
    client.ok("INSERT INTO more SELECT day, sum(price) FROM big GROUP BY day RETURNING s");
    assert_eq!(client.ok("SELECT count(*) FROM more"), "100");
    client.ok("UPDATE sums SET n = x.n FROM (SELECT grp, max(id) AS n FROM big GROUP BY grp) x WHERE x.grp = sums.grp");
    assert_eq!(
        client.ok("SELECT max(n) FROM sums WHERE grp IS NOT NULL"),
        "119999"
    );
    client.ok("DELETE FROM big WHERE id IN (SELECT max(id) FROM big GROUP BY day)");
    assert_eq!(
        client.ok("SELECT count(*) FROM big"),
        (ROWS - 100).to_string()
    );
}

/// Runs what must not wait for ever.
#[track_caller]
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(work()));
    let done = told.recv_timeout(Duration::from_secs(120));
    done.expect("it ends, and does not fail")
}

/// Conditions that ask the session, the same for all rows.
const ASKING: [&str; 4] = [
    "a.day < current_date",
    "a.day + 1 <= now() AND a.note <> 'n1'",
    "a.note <> current_setting('search_path')",
    "a.note || version() <> current_user",
];

/// Symptom: a statement waited for ever when it ended while a part of a table was read by a condition such as `day < current_date`: the reader
/// waited for the session's answer, the session for the reader.
#[test]
fn regress_a_statement_ends_that_asks_in_conditions_of_large_tables() {
    let mut client = filled(&database());
    for condition in ASKING {
        let few =
            format!("SELECT a.id FROM big a, big b WHERE a.grp = b.grp AND {condition} LIMIT 3");
        let all = format!("SELECT count(*), sum(a.id) FROM big a WHERE {condition}");
        let endless = format!(
            "SELECT count(*), sum(a.id) FROM big a, big b WHERE a.grp = b.grp AND {condition}"
        );
        let plan = client.ok(&format!("EXPLAIN {endless}"));
        assert_eq!(
            plan.matches("parts=").count(),
            2 * usize::from(several()),
            "{plan}"
        );
        client = ends(move || {
            client.ok("SET statement_timeout = 30");
            for _ in 0..3 {
                assert_eq!(client.state(&endless), "57014");
            }
            client.ok("RESET statement_timeout");
            assert_eq!(client.ok(&few).lines().count(), 3);
            let found = client.ok(&all);
            assert!(
                found.starts_with("120000|") || found.starts_with("119999|"),
                "{found}"
            );
            client
        });
    }
    // What differs from row to row the session is asked while it reads itself.
    let sql = "SELECT count(*), sum(id) FROM big WHERE to_regclass(note) IS NULL";
    let plan = client.ok(&format!("EXPLAIN {sql}"));
    assert!(!plan.contains("parts="), "{plan}");
    assert!(client.ok(sql).starts_with("120000|"));
    // What cannot be answered fails if it is asked for, and only then.
    let failing = "current_setting('no.such') = 'x'";
    assert_eq!(
        client.state(&format!(
            "SELECT count(*), sum(id) FROM big WHERE {failing}"
        )),
        "42704"
    );
    let guarded = format!(
        "SELECT count(*), sum(id) FROM big WHERE CASE WHEN id < 0 THEN {failing} ELSE id = 7 END"
    );
    assert_eq!(client.ok(&guarded), "1|7");
}

/// Symptom: without a free slot the session read the parts itself, and asked itself.
#[test]
fn regress_a_session_that_reads_all_parts_does_not_ask_itself() {
    let mut config = Config::default()
        .pool_bytes(16 << 20)
        .background_threads(false);
    config.slots_max = 8;
    let engine = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
    let mut client = filled(&SqlDatabase::open(engine.clone()).unwrap());
    client.ok("BEGIN; SELECT count(*) FROM big WHERE id < 5");
    let mut held = Vec::new();
    while let Ok(other) =
        engine.begin_with(TransactionOptions::default().slot_timeout(Duration::ZERO))
    {
        held.push(other);
    }
    for condition in ASKING {
        let sql =
            format!("SELECT count(*), sum(a.id) FROM big a WHERE {condition} AND a.id <= 110000");
        let (back, found) = ends(move || {
            let found = client.ok(&sql);
            (client, found)
        });
        assert!(
            found.starts_with("110000|") || found.starts_with("109999|"),
            "{found}"
        );
        client = back;
    }
    drop(held);
}
