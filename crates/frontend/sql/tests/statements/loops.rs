//! Joins by nested loops, of which one side does not fit into memory.

use super::client::{Client, database};
use std::path::Path;
use vellum_sql::SqlDatabase;

/// As many as are read in parts, where there is more than one processor.
const ROWS: u64 = 60_000;
/// Rows of 2 MB, which are more together than any attempt but the last takes into memory.
const WIDE: u64 = 40;

fn spilling(directory: &Path) -> SqlDatabase {
    let database = database();
    database.set_spill_directory(directory.join("spill"));
    database
}

/// Symptom: EXISTS, NOT EXISTS and LEFT JOIN returned each row as often as the right side had parts; RIGHT JOIN lost its rows. Cause: DataFusion's join by nested loops goes through the right side part by
/// part where the left one is in files, and each part hands on what it has found, and what not; what is to be said of right rows it forgets where the last piece is full. Guard: `query/loops`, NL1.
#[test]
fn regress_rows_of_joins_in_files_come_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::of(&spilling(directory.path()));
    client.ok("create table wide (id int primary key, x int, t text); create table long (id int primary key, k int)");
    client.ok(&format!(
        "insert into wide select g, g * 1000, repeat('x', 2000000) || g from generate_series(1, {WIDE}) g"
    ));
    client.ok(&format!(
        "insert into long select g, g from generate_series(1, {ROWS}) g"
    ));
    client.ok("analyze wide; analyze long; set work_mem = '1MB'");
    let of_wide = "select count(*), sum(length(t)) from wide where";
    let all = format!("{WIDE}|80000071");
    for (condition, found) in [
        (
            "not exists (select 1 from long where wide.x < long.k - 1000000)",
            &*all,
        ),
        (
            "exists (select 1 from long where wide.x > long.k + 20000)",
            "20|40000040",
        ),
        (
            "id < 0 or exists (select 1 from long where wide.x > long.k + 20000)",
            "20|40000040",
        ),
    ] {
        assert_eq!(
            client.ok(&format!("{of_wide} {condition}")),
            found,
            "{condition}"
        );
    }
    for (join, found) in [
        ("wide left join long on wide.x < long.k - 1000000", &*all),
        (
            "wide left join long on wide.x < long.k - 58998",
            "41|82000072",
        ),
    ] {
        let sql = format!("select count(*), sum(length(t)) from {join}");
        assert_eq!(client.ok(&sql), found, "{join}");
    }
    // The last of what is read of the one side in pieces fills the memory for a piece.
    for (join, found) in [
        (
            "wide right join long on wide.x < long.k - 59990 and wide.id + long.id > 0",
            "60000|~",
        ),
        (
            "long left join wide on wide.x < long.k - 59990 and wide.id + long.id > 0",
            "60000|~",
        ),
        (
            "wide right join long on wide.x = long.k + wide.id * 0 and wide.x < long.k + 1",
            "60000|80000071",
        ),
    ] {
        let sql = format!("select count(*), sum(length(t)) from {join}");
        assert_eq!(client.ok(&sql), found, "{join}");
    }
    // Groups of parts that are exchanged cannot be read twice (NL3), so this one has to fit.
    let grouped = "select count(*), sum(length(t)) from wide right join (select k, max(id) y from long group by k) a on wide.x < a.y - 2900000 and wide.id + a.y > 0 join long other on other.k = a.k";
    assert_eq!(client.state(grouped), "53200");
    client.ok("set work_mem = '256MB'");
    assert_eq!(client.ok(grouped), format!("{ROWS}|~"));
    client.ok("set work_mem = '1MB'");
    // The first rows of an order on the left.
    let first = "select count(*), sum(length(t)) from (select * from wide order by x limit 30) w left join long on w.x < long.k - 1000000";
    assert_eq!(client.ok(first), "30|60000051");
    // PostgreSQL has no FULL JOIN with such a condition at all.
    let full = "select count(*), sum(length(t)) from wide full join long on wide.x < long.k - 59990 and wide.id + long.id > 0";
    assert_eq!(client.state(full), "53200");
}

/// Symptom: a cursor under read committed went on with a later snapshot, and its own transaction's DROP or TRUNCATE took the rest of its rows. Cause: such a join drops its left side half read, and
/// reads it once more; either counted as read to the end, and with as many as there are scans nothing was thought to be read any more. Guard: what may be read again is never done with (NL2).
#[test]
fn regress_a_cursor_over_a_join_in_files_keeps_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let database = spilling(directory.path());
    let mut client = Client::of(&database);
    let mut other = Client::of(&database);
    client.ok("create table few (id int primary key, x int, t text); create table many (id int primary key, y int)");
    client.ok("insert into few select i, (i * 7919) % 45000, repeat(i::text, 1200) from generate_series(1, 1200) i");
    client.ok(
        "insert into many select i, i from generate_series(1, 45000) i; analyze few; analyze many",
    );
    let joined = "select many.id, few.id, length(few.t) from few join many on few.x < many.y and few.x + 9 > many.y";
    let rows = client.hear(joined).rows.len();
    client.ok("set work_mem = '1MB'");
    let old = |client: &mut Client| {
        let text = client.ok("fetch all c");
        let ids = text
            .lines()
            .map(|row| row.split('|').next().unwrap().parse::<u64>().unwrap());
        let ids: Vec<u64> = ids.collect();
        assert!(
            ids.iter().all(|id| *id <= 45_000),
            "rows of a later snapshot"
        );
        assert_eq!(ids.len(), rows - 2);
    };
    client.ok(&format!("begin; declare c cursor for {joined}"));
    assert_eq!(client.hear("fetch 2 c").rows.len(), 2);
    other.ok("update many set id = id + 100000");
    old(&mut client);
    client.ok("commit");
    other.ok("update many set id = id - 100000");
    for (level, taken) in [
        ("repeatable read", "truncate many"),
        ("read committed", "drop table many"),
    ] {
        client.ok(&format!(
            "begin isolation level {level}; declare c cursor for {joined}"
        ));
        assert_eq!(client.hear("fetch 2 c").rows.len(), 2);
        client.ok(taken);
        old(&mut client);
        client.ok("rollback");
    }
}
