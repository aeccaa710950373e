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

/// Symptom: numbers of some ten bytes, of which there were not many, came to gigabytes of JSON. Cause: the numbers were counted, and not the text that they were to be.
#[test]
fn regress_aggregates_of_json_count_the_text_that_they_come_to() {
    let mut client = Client::new();
    client.ok("CREATE TABLE t (a int, j jsonb)");
    client
        .ok("INSERT INTO t SELECT g, ('1e' || (130000 + g))::jsonb FROM generate_series(1, 700) g");
    client.ok("SET work_mem = '4MB'");
    for gathered in [
        "json_agg(j)",
        "jsonb_agg(j)",
        "json_agg(j ORDER BY a)",
        "json_object_agg(a, j)",
        "jsonb_object_agg(a, j)",
    ] {
        for around in ["", ", count(*) OVER ()"] {
            let sql = format!("SELECT length({gathered}::text){around} FROM t");
            assert_eq!(client.state(&sql), "53200", "{sql}");
            let few = sql.replace("FROM t", "FROM t WHERE a <= 3");
            assert!(client.ok(&few).starts_with("3900"), "{few}");
        }
    }
}

/// What was counted while rows were sorted is not counted again where they are joined.
#[test]
fn aggregates_in_an_order_need_no_room_for_their_rows_twice() {
    let mut client = Client::new();
    filled(&mut client);
    client.ok("SET work_mem = '24MB'");
    for (joined, length) in [
        ("length(string_agg(b, ',' ORDER BY a))", "10108893"),
        ("length(json_agg(b ORDER BY a)::text)", "10168894"),
    ] {
        assert_eq!(client.ok(&format!("SELECT {joined} FROM t")), length);
    }
}
