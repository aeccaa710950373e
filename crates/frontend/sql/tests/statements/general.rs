//! Queries that no program runs: the same answers, by other means.

use super::client::Client;

fn shop() -> Client {
    let mut client = Client::new();
    client.ok("CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, land char(4))");
    client.ok("CREATE TABLE orders (id int PRIMARY KEY, who int, total numeric(10,2), day date)");
    client.ok(
        "INSERT INTO customer VALUES (1, 'ann', 'de'), (2, 'bob', 'fr'), (3, 'cid', 'de'), (4, 'dan', NULL)",
    );
    client.ok(
        "INSERT INTO orders VALUES (1, 1, 10.50, '2024-01-01'), (2, 1, 0.50, '2024-01-02'), \
         (3, 2, 7.00, '2024-01-02'), (4, 3, NULL, '2024-01-03'), (5, NULL, 1.00, NULL)",
    );
    client
}

#[test]
fn joins_without_an_index_are_grouped_and_sorted() {
    let mut client = shop();
    let sql = "SELECT c.name, count(*), count(o.total), sum(o.total), avg(o.total), min(o.day), max(o.total) \
               FROM customer c JOIN orders o ON o.who = c.id GROUP BY c.name ORDER BY 4 DESC, 1";
    // The other way round there is an index.
    let expected = "cid|1|0|~|~|2024-01-03|~\n\
                    ann|2|2|11.00|5.5000000000000000|2024-01-01|10.50\n\
                    bob|1|1|7.00|7.0000000000000000|2024-01-02|7.00";
    assert_eq!(client.ok(sql), expected);
    let plan = client.ok(&format!("EXPLAIN {sql}"));
    assert!(plan.contains("general"), "{plan}");
    let same = sql.replace("customer c JOIN orders o ON", "orders o JOIN customer c ON");
    assert_eq!(client.ok(&same), expected);
    let plan = client.ok(&format!("EXPLAIN {same}"));
    assert!(plan.contains("fast"), "{plan}");
}

#[test]
fn outer_joins_keep_rows_without_partner() {
    let mut client = shop();
    assert_eq!(
        client.ok(
            "SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.who = c.id AND o.total > 1 \
             ORDER BY c.name, o.id NULLS FIRST"
        ),
        "ann|1\nbob|3\ncid|~\ndan|~"
    );
    assert_eq!(
        client.ok(
            "SELECT c.name FROM customer c LEFT JOIN orders o ON o.who = c.id WHERE o.id IS NULL"
        ),
        "dan"
    );
}

#[test]
fn correlated_subqueries_are_joins() {
    let mut client = shop();
    for (sql, expected) in [
        (
            "SELECT name FROM customer c WHERE EXISTS (SELECT FROM orders o WHERE o.who = c.id AND o.total > 5) ORDER BY 1",
            "ann\nbob",
        ),
        (
            "SELECT name FROM customer c WHERE NOT EXISTS (SELECT FROM orders o WHERE o.who = c.id) ORDER BY 1",
            "dan",
        ),
        (
            "SELECT id FROM orders o WHERE total = (SELECT max(total) FROM orders i WHERE i.who = o.who) ORDER BY 1",
            "1\n3",
        ),
        (
            "SELECT name, (SELECT count(*) FROM orders o WHERE o.who = c.id) FROM customer c ORDER BY 1",
            "ann|2\nbob|1\ncid|1\ndan|0",
        ),
        (
            "SELECT name, (SELECT o.day FROM orders o WHERE o.who = c.id ORDER BY o.id DESC LIMIT 1) FROM customer c ORDER BY 1",
            "ann|2024-01-02\nbob|2024-01-02\ncid|2024-01-03\ndan|~",
        ),
    ] {
        assert_eq!(client.ok(sql), expected, "{sql}");
    }
    let many = "SELECT (SELECT o.id FROM orders o WHERE o.who = c.id) FROM customer c";
    assert_eq!(client.state(many), "21000");
}

#[test]
fn errors_are_those_of_expressions() {
    let mut client = shop();
    let join = "FROM customer c JOIN orders o ON o.who = c.id";
    assert_eq!(
        client.state(&format!("SELECT 1 / (c.id - 1) {join}")),
        "22012"
    );
    assert_eq!(
        client.state(&format!("SELECT 2147483647 + c.id {join}")),
        "22003"
    );
    assert_eq!(
        client.ok(&format!(
            "SELECT count(*) {join} WHERE c.id <> 1 AND 1 / (c.id - 1) > 0"
        )),
        "1"
    );
}

#[test]
fn own_changes_are_seen_and_those_of_others_are_not() {
    let mut client = shop();
    client.ok("BEGIN; INSERT INTO orders VALUES (6, 4, 3.00, NULL)");
    let sql = "SELECT c.name FROM customer c JOIN orders o ON o.who = c.id WHERE o.total = 3";
    assert_eq!(client.ok(sql), "dan");
    client.ok("ROLLBACK");
    assert_eq!(client.ok(sql), "");
}
