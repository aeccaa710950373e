//! Statistics, and what they are used for.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;
use vellum_sql::SqlDatabase;

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

/// A query that wants statistics of both tables.
const WANTS: &str = "SELECT count(*) FROM many m, few f WHERE m.few = f.id + 0";

/// How many tables statistics are kept of.
fn kept(database: &SqlDatabase) -> usize {
    let count = database.engine().retry(|transaction| {
        let table = transaction.table("sql.statistics")?;
        transaction.count(&table, ..)
    });
    usize::try_from(count.unwrap()).unwrap()
}

/// Symptom: `40001` whenever the transaction was tried: the row of what its own query had found was newer than its snapshot.
#[test]
fn regress_who_keeps_its_snapshot_drops_a_table_that_it_has_asked() {
    let database = database();
    let mut client = Client::of(&database);
    filled(&mut client);
    client.ok("BEGIN ISOLATION LEVEL REPEATABLE READ");
    client.ok("CREATE TEMP TABLE x ON COMMIT DROP AS SELECT id FROM few");
    assert_eq!(
        client.ok("SELECT count(*) FROM x, many m WHERE m.few = x.id + 0"),
        "3000"
    );
    client.ok("COMMIT");
    client.ok("BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(client.ok(WANTS), "3000");
    assert_eq!(kept(&database), 2);
    client.ok("DROP TABLE many; DROP TABLE few; COMMIT");
    assert_eq!(kept(&database), 0);
}

#[test]
fn statistics_are_kept_of_tables_that_all_sessions_have_and_that_last() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("BEGIN");
    filled(&mut client);
    assert_eq!(client.ok(WANTS), "3000");
    client.ok("ANALYZE many; ROLLBACK; CREATE TEMP TABLE t AS SELECT 1 AS id; ANALYZE t");
    assert_eq!(kept(&database), 0);
    filled(&mut client);
    client.ok("BEGIN; ANALYZE; ROLLBACK");
    assert_eq!(kept(&database), 2);
    // As a crash leaves it that comes between the commit of a DROP and what follows.
    let left = database.engine().retry(|transaction| {
        let table = transaction.table("sql.statistics")?;
        transaction.upsert(
            &table,
            &1_000_000u32.to_be_bytes(),
            b"of a table that is gone",
        )
    });
    left.unwrap();
    drop((client, database));
    let database = database_in(&directory);
    assert_eq!(kept(&database), 2);
    let told = Client::of(&database).ok("SELECT reltuples FROM pg_class WHERE relname = 'many'");
    assert_eq!(told, "3000");
}

/// Symptom: `40001`, which lost a whole block, and DROP TABLE waited for a transaction that had only analyzed.
#[test]
fn regress_analyze_is_in_nobodys_way_and_nobody_in_its() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    filled(&mut a);
    b.ok("SET lock_timeout = 50");
    a.ok("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    b.ok(WANTS);
    a.ok("ANALYZE many");
    b.ok("ANALYZE many");
    a.ok("ANALYZE; COMMIT; BEGIN; ANALYZE many");
    b.ok("DROP TABLE many");
    // What is gone gets none.
    a.ok("COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    b.ok("DROP TABLE few");
    a.ok("ANALYZE few; COMMIT");
    assert_eq!(kept(&database), 0);
}
