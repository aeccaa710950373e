//! Rows of large tables that no join has a partner for are left out where they are read: the answers stay.

use super::client::{Client, database};

const ROWS: u64 = 90_000;

fn several() -> bool {
    std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1)
}

/// `big` refers to some hundred numbers, most of which `few` and `other` lack; all of them have nulls, `few` and `big` numbers that share bits of a set.
fn filled() -> Client {
    let mut client = Client::of(&database());
    client.ok(
        "CREATE TABLE big (id int PRIMARY KEY, ref int, wide bigint, small smallint, parent int)",
    );
    client.ok(&format!(
        "INSERT INTO big SELECT g, g * 31 % 997, (g % 50)::bigint << 23, g % 300, g / 2 FROM generate_series(1, {ROWS}) g"
    ));
    client.ok("UPDATE big SET ref = NULL, wide = NULL WHERE id % 100 = 0");
    client.ok("UPDATE big SET wide = -wide WHERE id % 3 = 0");
    client.ok("CREATE TABLE few (k int, w bigint, s smallint, name text)");
    client.ok("INSERT INTO few SELECT g * 17 % 2000 - 40, (g % 9)::bigint << 23, g * 7, 'n' || g FROM generate_series(1, 60) g");
    client.ok("INSERT INTO few VALUES (NULL, NULL, NULL, 'none'), (5, 1, 1, 'twice'), (5, -8388608, 2, 'twice')");
    client.ok("CREATE TABLE other (k int, name text)");
    client.ok("INSERT INTO other SELECT g * 3, 'o' || g FROM generate_series(1, 40) g; INSERT INTO other VALUES (NULL, 'none')");
    client.ok("ANALYZE big; ANALYZE few; ANALYZE other");
    client
}

/// Queries with `=` between the marks of keys: `@a@` is a key as it is, or one that no scan knows.
const QUERIES: &[&str] = &[
    "SELECT count(*), sum(b.id), count(f.name) FROM few f JOIN big b ON @f.k@ = @b.ref@",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f JOIN big b ON @f.w@ = @b.wide@",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f JOIN big b ON @f.s@ = @b.small@",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f JOIN big b ON @f.k@ = @b.ref@ AND @f.s@ = @b.small@",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f JOIN big b ON @f.k@ = @b.ref@ AND f.s > b.small",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f LEFT JOIN big b ON @f.k@ = @b.ref@",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f RIGHT JOIN big b ON @f.k@ = @b.ref@",
    "SELECT count(*), sum(b.id), count(f.name) FROM few f FULL JOIN big b ON @f.k@ = @b.ref@",
    "SELECT count(*), sum(b.id) FROM big b WHERE EXISTS (SELECT FROM few f WHERE @f.k@ = @b.ref@)",
    "SELECT count(*), sum(b.id) FROM big b WHERE NOT EXISTS (SELECT FROM few f WHERE @f.k@ = @b.ref@)",
    "SELECT count(*), count(f.k) FROM few f WHERE EXISTS (SELECT FROM big b WHERE @f.k@ = @b.ref@)",
    "SELECT count(*), count(f.k) FROM few f WHERE NOT EXISTS (SELECT FROM big b WHERE @f.k@ = @b.ref@)",
    "SELECT count(*), count(f.k) FROM few f WHERE @f.k@ IN (SELECT @b.ref@ FROM big b WHERE b.ref IS NOT NULL)",
    "SELECT count(*), count(f.k) FROM few f WHERE @f.k@ NOT IN (SELECT @b.ref@ FROM big b WHERE b.ref IS NOT NULL)",
    "SELECT count(*), count(f.k) FROM few f WHERE @f.k@ NOT IN (SELECT @b.ref@ FROM big b)",
    "SELECT count(*), count(f.k) FROM few f WHERE @f.k@ NOT IN (SELECT @b.ref@ FROM big b WHERE b.ref < 0)",
    // Only rows that come late are there, and none of them has a partner.
    "SELECT count(*), count(f.k) FROM few f WHERE @f.k@ NOT IN (SELECT @b.id@ FROM big b WHERE b.id + b.small > 89900)",
    "SELECT count(*), count(f.k), count(*) FILTER (WHERE hit) FROM (SELECT f.k, EXISTS (SELECT FROM big b WHERE @f.k@ = @b.ref@) OR f.s = 7 AS hit FROM few f) f",
    "SELECT count(*), sum(g.n), sum(g.most) FROM few f JOIN (SELECT ref, count(*) AS n, max(id) AS most FROM big GROUP BY ref) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.n) FROM few f JOIN (SELECT ref, small, count(*) AS n FROM big GROUP BY ref, small) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.n) FROM few f JOIN (SELECT ref, count(*) AS n FROM big GROUP BY GROUPING SETS ((ref), ())) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.id) FROM few f JOIN (SELECT ref, id FROM big ORDER BY id LIMIT 500) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.n) FROM few f JOIN (SELECT ref, row_number() OVER (ORDER BY id) AS n FROM big) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.id) FROM few f JOIN (SELECT DISTINCT ON (small) small, ref, id FROM big ORDER BY small, id) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.id) FROM few f JOIN (SELECT ref, id FROM big UNION ALL SELECT small, -id FROM big) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(b.id), count(o.name) FROM few f JOIN big b ON @f.k@ = @b.ref@ JOIN other o ON @o.k@ = @b.small@",
    "SELECT count(*), sum(g.id), count(g.name) FROM few f JOIN (SELECT b.ref, b.id, o.name FROM big b LEFT JOIN other o ON @o.k@ = @b.small@) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(g.id), count(g.name) FROM few f LEFT JOIN (SELECT b.ref, b.id, o.name FROM big b JOIN other o ON @o.k@ = @b.small@) g ON @f.k@ = @g.ref@",
    "SELECT count(*), sum(b.id), sum(c.id) FROM few f JOIN big b ON @f.k@ = @b.ref@ JOIN big c ON @c.id@ = @b.parent@",
    "SELECT count(*), sum(b.id) FROM big b JOIN big c ON @c.id@ = @b.parent@ WHERE c.ref = 5",
    "SELECT count(*), sum(b.id) FROM (SELECT k FROM few WHERE k < -1000) f JOIN big b ON @f.k@ = @b.ref@",
    "SELECT count(*), sum(b.id) FROM (SELECT k FROM few WHERE k < -1000) f RIGHT JOIN big b ON @f.k@ = @b.ref@",
    "SELECT b.id, f.name FROM few f JOIN big b ON @f.k@ = @b.ref@ ORDER BY b.id DESC, f.name LIMIT 7",
    "SELECT count(*), sum(g.id) FROM few f JOIN (SELECT ref, id, random() < 2 AS all FROM big) g ON @f.k@ = @g.ref@ WHERE g.all",
];

fn with_keys(query: &str, as_they_are: bool) -> String {
    let parts = query.split('@').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 == 1 && !as_they_are {
        true => format!("({part} + 0)"),
        false => part.to_owned(),
    });
    parts.collect()
}

#[test]
fn answers_are_those_of_joins_whose_keys_are_told_to_nobody() {
    let mut client = filled();
    let (mut told, mut wrong) = (0, Vec::new());
    for query in QUERIES {
        let (plain, hidden) = (with_keys(query, true), with_keys(query, false));
        let plan = client.ok(&format!("EXPLAIN {hidden}"));
        assert!(!plan.contains("in keys"), "{hidden}\n{plan}");
        let plan = client.ok(&format!("EXPLAIN {plain}"));
        told += usize::from(plan.contains("in keys"));
        let (found, expected) = (client.ok(&plain), client.ok(&hidden));
        if found != expected {
            wrong.push(format!("{plain}\n{found}, not {expected}\n{plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(told >= 12 || !several(), "{told}");
}

#[test]
fn plan_tells_which_keys_are_asked_about() {
    let mut client = filled();
    let plan = client.ok(&format!("EXPLAIN {}", with_keys(QUERIES[0], true)));
    assert_eq!(plan.contains("Keys: "), several(), "{plan}");
    assert_eq!(plan.contains(" in keys"), several(), "{plan}");
    // Each right row comes out.
    let plan = client.ok(&format!("EXPLAIN {}", with_keys(QUERIES[6], true)));
    assert!(!plan.contains("in keys"), "{plan}");
}

/// K3: what is run again begins without keys.
#[test]
fn recursive_queries_ask_about_no_keys_of_the_round_before() {
    let mut client = filled();
    let sql = "WITH RECURSIVE r (id, depth) AS (SELECT 3, 0 UNION ALL SELECT b.id, depth + 1 FROM r JOIN big b ON b.parent = r.id) \
               SELECT count(*), max(depth), sum(id) FROM r";
    // 3, 6 and 7, 12 to 15, and so on.
    let mut expected: Vec<u64> = vec![3];
    let (mut from, mut next) = (0, 1);
    let mut depth = 0;
    while from < next {
        for index in from..next {
            let id = expected[index];
            expected.extend([2 * id, 2 * id + 1].into_iter().filter(|id| *id <= ROWS));
        }
        (from, next) = (next, expected.len());
        depth += u64::from(from < next);
    }
    let sum: u64 = expected.iter().sum();
    assert_eq!(client.ok(sql), format!("{}|{depth}|{sum}", expected.len()));
}

#[test]
fn what_a_transaction_has_written_finds_its_partners() {
    let mut client = filled();
    let sql = "SELECT count(*), sum(b.id) FROM few f JOIN big b ON f.k = b.ref";
    let before = client.ok(sql);
    client.ok("BEGIN; INSERT INTO few VALUES (996); UPDATE big SET ref = 996 WHERE id < 10");
    let own = client.ok(sql);
    let hidden = "SELECT count(*), sum(b.id) FROM few f JOIN big b ON f.k + 0 = b.ref + 0";
    assert!(own != before && own == client.ok(hidden), "{own}");
    client.ok("ROLLBACK");
    assert_eq!(client.ok(sql), before);
}

/// K2: a sequence goes on by the rows that it is asked for.
#[test]
fn what_counts_its_calls_is_called_for_rows_without_partners_too() {
    let mut client = filled();
    client.ok("CREATE SEQUENCE calls");
    let sql = "SELECT count(*) FROM few f JOIN (SELECT ref, nextval('calls') AS n FROM big) g ON f.k = g.ref WHERE n > 0";
    client.ok(sql);
    assert_eq!(client.ok("SELECT currval('calls')"), ROWS.to_string());
}
