//! Cursors and portals whose queries are run as their rows are asked for.

use super::client::{Client, Heard, database};
use vellum_sql::{Parameters, Progress, SqlDatabase};

const LEVELS: [&str; 2] = ["read committed", "repeatable read"];

fn with_rows(database: &SqlDatabase) -> Client {
    let mut client = Client::of(database);
    client.ok("create table t (id int primary key, g int, n int);
        create index on t (g, id); create index on t (n);
        insert into t select i, i % 7, i from generate_series(1, 500) i;
        create table u (t int, k int, primary key (t, k));
        insert into u select i, k from generate_series(1, 500) i, generate_series(1, 3) k where i % 4 <> 0 and k <= i % 4");
    client
}

/// Queries whose rows come as they are read.
const QUERIES: &[&str] = &[
    "select id, n from t",
    "select id from t order by id",
    "select id from t order by id desc",
    "select id, g from t where g = 3",
    "select id, g from t where g = 3 order by id desc",
    "select g, id from t order by g, id",
    "select g, id from t order by g desc, id desc",
    "select id from t where g in (5, 2, 9) and n % 2 = 0",
    "select id from t where id in (7, 3, 499, 1000, 20)",
    "select n from t where n between 100 and 300 order by n",
    "select n from t where n > 450 order by n desc limit 30 offset 7",
    "select id from t order by id limit 100 offset 3",
    "select id from t order by id limit 0",
    "select id from t where id = 77",
    "select id from t where false",
    "select t.id, u.k from t join u on u.t = t.id order by t.id",
    "select t.id, u.k from t left join u on u.t = t.id order by t.id",
    "select t.id, u.k from t left join u on u.t = t.id where t.g = 1 order by t.id limit 99 offset 2",
    // Others are run to their end.
    "select g, count(*) from t group by g order by g",
    "select distinct g from t order by g",
    "select id from t order by n % 10, id",
    "select generate_series(1, 10)",
    "select id from t where n = (select max(n) from t)",
];

#[test]
fn a_cursor_that_is_fetched_in_pieces_returns_what_its_query_returns() {
    let database = database();
    let mut client = with_rows(&database);
    for query in QUERIES {
        let whole = client.ok(query);
        for level in LEVELS {
            for size in [1, 2, 3, 50, 1000] {
                client.ok(&format!("begin isolation level {level}"));
                client.ok(&format!("declare c cursor for {query}"));
                let mut rows = Vec::new();
                loop {
                    let heard = client.hear(&format!("fetch {size} c"));
                    rows.extend(heard.text().lines().map(str::to_owned));
                    if heard.rows.len() < size {
                        break;
                    }
                }
                assert_eq!(rows.join("\n"), whole, "{query}: {size}, {level}");
                assert_eq!(
                    client.ok("fetch backward all c").lines().count(),
                    rows.len()
                );
                assert_eq!(client.ok("fetch all c"), whole, "{query}");
                client.ok("commit");
            }
        }
    }
}

#[test]
fn a_portal_that_is_fetched_in_pieces_returns_what_its_query_returns() {
    let database = database();
    let mut client = with_rows(&database);
    for query in QUERIES {
        let whole = client.ok(query);
        for size in [1, 3, 1000] {
            let session = &mut client.session;
            session.parse("", query, &[]).unwrap();
            session.bind("", "", Parameters::default(), &[]).unwrap();
            let mut heard = Heard::default();
            while session.execute("", size, &mut heard).unwrap() == Progress::Suspended {}
            session.sync().unwrap();
            assert_eq!(heard.text(), whole, "{query}: {size}");
        }
    }
}

/// As in PostgreSQL: what would fail is not reached.
#[test]
fn no_row_is_read_before_it_is_asked_for() {
    let database = database();
    let mut client = with_rows(&database);
    let query = "select 100 / (id - 300) from t order by id";
    for level in LEVELS {
        let begin = format!("begin isolation level {level}");
        client.ok(&begin);
        client.ok(&format!("declare c cursor for {query}"));
        for _ in 0..29 {
            assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
        }
        assert_eq!(client.hear("fetch 9 c").rows.len(), 9);
        client.ok("savepoint s");
        for _ in 0..2 {
            assert_eq!(client.state("fetch c"), "22012", "{level}");
            client.ok("rollback to s");
        }
        assert_eq!(client.hear("fetch backward 2 c").rows.len(), 2);
        client.ok("commit");
    }
}

#[test]
fn pieces_see_what_was_there_when_the_cursor_was_declared() {
    let database = database();
    let mut other = with_rows(&database);
    let mut client = Client::of(&database);
    let whole = other.ok("select id, n from t order by id");
    for level in LEVELS {
        for written in [false, true] {
            client.ok(&format!("begin isolation level {level}"));
            let mut expected = whole.clone();
            if written {
                // Its own writes from before are seen.
                client.ok("insert into t values (501, 0, 0)");
                expected.push_str("\n501|0");
            }
            client.ok("declare c cursor for select id, n from t order by id");
            let mut rows = client.ok("fetch 5 c");
            other.ok("update t set n = -n where id > 3; insert into t values (1000, 0, 0); delete from t where id = 400");
            client.ok(
                "savepoint s; insert into t values (900, 0, 0); update t set n = 5 where id = 3",
            );
            for step in ["fetch 10 c", "fetch 100 c"] {
                rows.push('\n');
                rows.push_str(&client.ok(step));
            }
            client.ok("rollback to s; delete from t where id = 2");
            rows.push('\n');
            rows.push_str(&client.ok("fetch all c"));
            assert_eq!(rows, expected, "{level}, {written}");
            assert_eq!(
                client.ok("fetch absolute -1 c"),
                expected.lines().last().unwrap()
            );
            client.ok("rollback");
            other.ok("update t set n = id; delete from t where id = 1000; insert into t values (400, 400 % 7, 400)");
        }
    }
}

#[test]
fn definitions_that_change_between_pieces_change_no_rows() {
    let database = database();
    let mut other = with_rows(&database);
    let mut client = Client::of(&database);
    for (change, own) in [
        ("create index on t (id desc)", true),
        ("create index on t (id desc)", false),
        ("alter table t add column c int default 1", false),
        ("alter table t alter column n type text", false),
        ("drop table u", false),
    ] {
        client.ok("begin; declare c cursor for select id, n, g from t order by id");
        let mut rows = client.ok("fetch 5 c");
        if own {
            client.ok(change);
        } else {
            other.ok(change);
        }
        rows.push('\n');
        rows.push_str(&client.ok("fetch all c"));
        client.ok("rollback");
        let expected: Vec<String> = (1..=500)
            .map(|id| format!("{id}|{id}|{}", id % 7))
            .collect();
        assert_eq!(rows, expected.join("\n"), "{change}");
    }
}

/// A table that is larger than `work_mem` is read through a portal where there is no place for files.
#[test]
fn a_portal_keeps_no_more_than_is_asked_for() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, body text);
        insert into t select g, repeat('x', 1000) || g from generate_series(1, 3000) g; set work_mem = '64kB'");
    let session = &mut client.session;
    session.parse("", "select id, body from t", &[]).unwrap();
    session.bind("", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    while session.execute("", 10, &mut heard).unwrap() == Progress::Suspended {}
    session.sync().unwrap();
    assert_eq!(heard.rows.len(), 3000);
}
