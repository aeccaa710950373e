//! EXISTS that is asked for each row: looked up among keys, where that is the same and less work.

use super::client::Client;

const ROWS: u64 = 60_000;

fn filled() -> Client {
    let mut client = Client::new();
    client.ok("create table one (id int primary key, k int, v int); create table other (id int primary key, k int)");
    client.ok(&format!(
        "insert into one select g, g % 1000, g from generate_series(1, {ROWS}) g"
    ));
    // The first rows have none of the keys.
    client.ok(&format!(
        "insert into other select g, case when g < {ROWS} - 500 then -g else g % 500 end from generate_series(1, {ROWS}) g"
    ));
    client
}

/// Symptom: minutes, where PostgreSQL takes half a second. Cause: each row went through the other table. Guard: as many rows as that has are read row by row, no more.
#[test]
fn regress_an_exists_that_is_no_join_is_not_quadratic() {
    let mut client = filled();
    client.ok("set statement_timeout = '100s'");
    let exists = "exists (select 1 from other where other.k = one.k and other.id + 1 > 5)";
    let (half, sum) = ("30000", "sum(case when");
    for (what, count) in [
        (format!("count(*) from one where v < 0 or {exists}"), half),
        (
            format!("count(*) from one where v < 0 or not {exists}"),
            half,
        ),
        (format!("{sum} {exists} then 1 else 0 end) from one"), half),
        (format!("count(*) filter (where {exists}) from one"), half),
    ] {
        assert_eq!(client.ok(&format!("select {what}")), count, "{what}");
    }
    client.ok(&format!("update one set v = -v where v < 0 or {exists}"));
    assert_eq!(client.ok("select count(*) from one where v < 0"), half);
}

/// What takes more memory than lists have is asked row by row as before.
#[test]
fn keys_that_do_not_fit_are_not_kept() {
    let mut client = filled();
    client.ok("set work_mem = '64kB'");
    let sql = "select count(*) from one where (v < 0 or exists (select 1 from other where other.k = one.k and other.id + 1 > 5)) and one.id <= 20";
    assert_eq!(client.ok(sql), "20");
}
