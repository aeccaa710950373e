//! What operators keep counts as memory of the statement, whatever keeps it.

use super::client::{Client, database};

/// 20,000 rows, of half a kilobyte of text and of JSON each.
fn filled(client: &mut Client) {
    client.ok("CREATE TABLE t (a int, b text, j jsonb)");
    client.ok(
        "INSERT INTO t SELECT g, repeat('x', 500) || g, to_jsonb(repeat('y', 500) || g) FROM generate_series(1, 20000) g",
    );
}

/// Symptom: windows over all rows of their partition took as much memory as there is, whatever `work_mem` said. Cause: DataFusion keeps their rows and counts none. Guard: they are counted below
/// the step, twice.
#[test]
fn regress_windows_count_the_rows_that_they_keep() {
    let mut client = Client::new();
    filled(&mut client);
    client.ok("SET work_mem = '4MB'");
    for window in [
        "count(*) OVER ()",
        "ntile(3) OVER (ORDER BY a)",
        "sum(a) OVER (PARTITION BY a % 2)",
        "count(*) OVER (ORDER BY a ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    ] {
        let sql = format!("SELECT max(b), sum(n) FROM (SELECT {window} AS n, b FROM t) x");
        assert_eq!(client.state(&sql), "53200", "{window}");
        let few = sql.replace("FROM t)", "FROM t WHERE a <= 100)");
        assert!(client.ok(&few).starts_with("xxx"), "{window}");
    }
    client.ok("SET work_mem = '128MB'");
    let sql = "SELECT length(max(b)), sum(n) FROM (SELECT count(*) OVER () AS n, b FROM t) x";
    assert_eq!(client.ok(sql), "504|400000000");
    // Where it is begun anew with more, eight times a small amount is enough.
    let directory = tempfile::tempdir().unwrap();
    let database = database();
    database.set_spill_directory(directory.path().join("spill"));
    let mut client = Client::of(&database);
    filled(&mut client);
    client.ok("SET work_mem = '4MB'");
    assert_eq!(client.ok(sql), "504|400000000");
}

/// Symptom: `array_agg` with an order, or DISTINCT, of JSON was not refused. Cause: only texts and bytes were counted.
#[test]
fn regress_aggregates_count_what_they_gather() {
    let mut client = Client::new();
    filled(&mut client);
    client.ok("SET work_mem = '4MB'");
    for gathered in [
        "array_agg(j ORDER BY a)",
        "array_agg(DISTINCT j)",
        "array_agg(ARRAY[b] ORDER BY a)",
    ] {
        let sql = format!("SELECT cardinality({gathered}), count(*) OVER () FROM t");
        assert_eq!(client.state(&sql), "53200", "{gathered}");
        let few = sql.replace("FROM t", "FROM t WHERE a <= 100");
        assert_eq!(client.ok(&few), "100|1", "{gathered}");
    }
}
