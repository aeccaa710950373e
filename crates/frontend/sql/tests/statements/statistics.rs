//! Statistics, and what they are used for.

use super::client::{Client, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;

fn filled(client: &mut Client) {
    client.ok("CREATE TABLE few (id int PRIMARY KEY, name text)");
    client.ok("CREATE TABLE many (id int PRIMARY KEY, few int, big int, note text)");
    client.ok("INSERT INTO few SELECT n, 'name' || n FROM generate_series(1, 10) AS g(n)");
    client.ok(
        "INSERT INTO many SELECT n, n % 10 + 1, n, CASE WHEN n % 4 = 0 THEN 'x' END FROM generate_series(1, 3000) AS g(n)",
    );
}

const SEEN: &str = "SELECT attname, null_frac, n_distinct, histogram_bounds FROM pg_stats WHERE tablename = 'many' ORDER BY attname";

#[test]
fn analyze_tells_rows_distinct_values_nulls_and_bounds() {
    let directory = Arc::new(MemoryDirectory::new());
    let mut client = Client::of(&database_in(&directory));
    filled(&mut client);
    assert_eq!(
        client.ok("SELECT reltuples FROM pg_class WHERE relname = 'many'"),
        "-1"
    );
    client.ok("ANALYZE many");
    assert_eq!(
        client.ok("SELECT reltuples FROM pg_class WHERE relname = 'many'"),
        "3000"
    );
    assert_eq!(
        client.ok(SEEN),
        "big|0|-1|{1,3000}\nfew|0|10|{1,10}\nid|0|-1|{1,3000}\nnote|0.75|1|{x,x}"
    );
    assert_eq!(
        client.ok(
            "SELECT count(*), sum(stawidth) FROM pg_statistic WHERE starelid = 'many'::regclass"
        ),
        "4|13"
    );
    assert_eq!(client.state("ANALYZE nope"), "42P01");
    client.ok("DROP TABLE many");
    assert_eq!(client.ok(SEEN), "");
}

#[test]
fn statistics_survive_and_go_with_their_table() {
    let directory = Arc::new(MemoryDirectory::new());
    let first = database_in(&directory);
    let mut client = Client::of(&first);
    filled(&mut client);
    client.ok("ANALYZE");
    let before = client.ok(SEEN);
    drop(client);
    drop(first);
    let second = database_in(&directory);
    let mut client = Client::of(&second);
    assert_eq!(client.ok(SEEN), before);
    assert_eq!(
        client.ok("SELECT reltuples FROM pg_class WHERE relname = 'few'"),
        "10"
    );
}

#[test]
fn a_query_makes_what_is_missing_and_the_larger_table_is_read_past_the_smaller() {
    let mut client = Client::new();
    filled(&mut client);
    let sql = "SELECT count(*) FROM many m, few f WHERE m.few = f.id + 0 AND m.big = m.id AND f.name LIKE 'name%'";
    let plan = client.ok(&format!("EXPLAIN {sql}"));
    assert!(
        plan.contains("Scan: many") && plan.contains("rows="),
        "{plan}"
    );
    assert_eq!(
        client.ok("SELECT reltuples FROM pg_class WHERE relname = 'many'"),
        "3000"
    );
    // The built side stands first.
    let order = client
        .ok("EXPLAIN SELECT count(*) FROM many m, few f WHERE m.few = f.id + 0 AND f.name > 'a'");
    assert!(
        order.find("Scan: few") < order.find("Scan: many"),
        "{order}"
    );
}

fn pages_touched(told: &str) -> u64 {
    let touched = told
        .lines()
        .find_map(|line| line.strip_prefix("Touched: pages="));
    let (pages, _) = touched.unwrap().split_once(' ').unwrap();
    pages.parse().unwrap()
}

#[test]
fn explain_analyze_runs_and_tells_what_came() {
    let mut client = Client::new();
    filled(&mut client);
    client.ok("ANALYZE");
    let told = client.ok("EXPLAIN ANALYZE SELECT f.name, count(*) FROM many m JOIN few f ON m.few = f.id + 0 GROUP BY f.name");
    assert!(told.contains("actual rows=3000"), "{told}");
    assert!(told.contains("actual rows=10 "), "{told}");
    assert!(
        told.contains("Execution Time: ") && told.contains("Pages: "),
        "{told}"
    );
    // 3,010 rows are in some pages, one is in one.
    let pages = pages_touched(&told);
    assert!((3..3000).contains(&pages), "{told}");
    let told = client.ok("EXPLAIN ANALYZE SELECT * FROM many WHERE id = 7");
    assert!(told.contains(" versions=0"), "{told}");
    let few = pages_touched(&told);
    assert!(0 < few && few < pages, "{told}");
    let told = client.ok("EXPLAIN (ANALYZE) DELETE FROM many WHERE id <= 5");
    assert!(told.contains("Result: DELETE 5"), "{told}");
    assert_eq!(client.ok("SELECT count(*) FROM many"), "2995");
    client.ok("EXPLAIN (ANALYZE off) DELETE FROM many WHERE id <= 50");
    assert_eq!(client.ok("SELECT count(*) FROM many"), "2995");
}
