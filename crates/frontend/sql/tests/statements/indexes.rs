//! Partial indexes and indexes on expressions. What PostgreSQL answers is in the corpus (`indexes`); here is which paths are taken, what waits for
//! what, and what sessions with other settings find.

use super::client::{Client, database};
use std::thread;

fn plan(client: &mut Client, sql: &str) -> String {
    client.ok(&format!("explain {sql}"))
}

fn jobs() -> Client {
    let mut client = Client::new();
    client.ok(
        "create table t (id int primary key, state text, n int, a text, done bool);
         create index by_ready on t (n) where state = 'ready';
         create index by_a on t (lower(a), n desc);
         create index by_known on t (a) where n is not null;
         create index by_done on t (a, n) where done and n > 10;
         insert into t select g, case when g % 2 = 0 then 'ready' else 'new' end, g % 50, 'A' || g % 7, g % 3 = 0 from generate_series(1, 200) g",
    );
    client
}

#[test]
fn a_partial_index_is_a_path_only_where_its_predicate_follows() {
    let mut client = jobs();
    for (sql, index) in [
        (
            "select id from t where state = 'ready' and n = 4",
            "by_ready",
        ),
        (
            "select id from t where state = 'ready' and n > 4",
            "by_ready",
        ),
        (
            "select id from t where state = 'ready' order by n limit 3",
            "by_ready",
        ),
        (
            "select id from t where n in (1, 4) and 'ready' = state",
            "by_ready",
        ),
        (
            "update t set done = false where state = 'ready' and n = 4",
            "by_ready",
        ),
        (
            "delete from t where state = 'ready' and n = 400",
            "by_ready",
        ),
        (
            "select x.id from t y join t x on x.n = y.id where x.state = 'ready' and y.id = 4",
            "by_ready",
        ),
        ("select id from t where a = 'A1' and n = 2", "by_known"),
        (
            "select id from t where a = 'A1' and n in (2, 3)",
            "by_known",
        ),
        (
            "select id from t where a = 'A1' and n > 10 and done",
            "by_done",
        ),
        (
            "select id from t where a = 'A1' and n >= 11 and done = true",
            "by_done",
        ),
        (
            "select id from t where a = 'A1' and n = 12 and done is true",
            "by_done",
        ),
        ("select id from t where lower(a) = 'a1'", "by_a"),
        ("select id from t where lower(a) = 'a1' and n < 5", "by_a"),
        ("select id from t order by lower(a), n desc limit 5", "by_a"),
        (
            "select id from t where lower(a) = 'a3' order by n desc limit 5",
            "by_a",
        ),
        (
            "select id from t where lower(a) = 'a3' order by lower(a), n limit 5",
            "by_a",
        ),
        (
            "select y.id from t x join t y on lower(y.a) = x.state where x.id = 4",
            "by_a",
        ),
    ] {
        let told = plan(&mut client, sql);
        assert!(told.contains(index), "{sql}: {told}");
    }
    for sql in [
        "select id from t where n = 4",
        "select id from t where state = 'new' and n = 4",
        "select id from t where state = 'ready' or n = 4",
        "select id from t where state <> 'ready' and n = 4",
        "select id from t where state = 'ready'",
        "select id from t order by n limit 3",
        "select id from t where a = 'A1'",
        "select id from t where a = 'A1' and n is null",
        "select id from t where a = 'A1' and done",
        "select id from t where upper(a) = 'a1'",
        "select id from t where a = 'A1' and coalesce(n, 0) = 0",
        "select id from t where lower(state) = 'a1'",
        "select id from t x where a = 'A1' and exists (select from t y where y.n > 11 and y.done and y.id = x.id)",
    ] {
        let told = plan(&mut client, sql);
        let partial = ["by_ready", "by_known", "by_done", "by_a"];
        assert!(
            !partial.iter().any(|name| told.contains(name)),
            "{sql}: {told}"
        );
    }
    // The other side of an outer join may be missing: the condition is no part of what joins it.
    let told = plan(
        &mut client,
        "select * from t x left join t y on y.n = x.id where x.id = 4 and (y.state = 'ready' or y.id is null)",
    );
    assert!(!told.contains("by_ready"), "{told}");
}

/// Expressions name columns and nothing else: the table may be called otherwise.
/// Of a table with a partial index: whether a query with this condition goes through it.
fn goes_through(client: &mut Client, condition: &str) -> bool {
    let sql = format!("select x from t where k = 1 and {condition}");
    plan(client, &sql).contains("partial")
}

#[test]
fn lists_and_truth_are_seen_to_follow() {
    let mut client = Client::new();
    client.ok("create table t (x int, b bool, k int)");
    for (predicate, follows, does_not) in [
        (
            "x in (1, 2, 3)",
            vec!["x in (3, 1)", "x = 2"],
            vec!["x in (3, 4)", "x > 2", "x < 3"],
        ),
        ("x < 4", vec!["x in (1, 2, 3)"], vec!["x in (1, 4)"]),
        ("x < 3", vec!["x in (1, 2)"], vec!["x in (1, 2, 3)"]),
        ("b", vec!["b = true", "b", "b is true"], vec!["not b"]),
        ("b = true", vec!["b"], vec!["b is not false"]),
        ("b is true", vec!["b"], vec!["b is not false"]),
        (
            "not b",
            vec!["b = false", "b is false"],
            vec!["b = true", "b is not true", "b"],
        ),
        ("b = false", vec!["not b"], vec!["b is not true"]),
        ("b is not null", vec!["not b", "b"], vec!["b is not true"]),
    ] {
        client.ok(&format!("create index partial on t (k) where {predicate}"));
        for condition in follows {
            let found = goes_through(&mut client, condition);
            assert!(found, "{condition} implies {predicate}");
        }
        for condition in does_not {
            let found = goes_through(&mut client, condition);
            assert!(!found, "{condition} does not imply {predicate}");
        }
        client.ok("drop index partial");
    }
}

/// What is said to follow does: for all comparisons with small numbers, by all small numbers.
#[test]
fn what_follows_is_true_of_every_value() {
    type Holds = fn(&i32, &i32) -> bool;
    let all: [(&str, Holds); 6] = [
        ("=", |a, b| a == b),
        ("<>", |a, b| a != b),
        ("<", |a, b| a < b),
        ("<=", |a, b| a <= b),
        (">", |a, b| a > b),
        (">=", |a, b| a >= b),
    ];
    let mut client = Client::new();
    client.ok(
        "create table t (x int, k int); insert into t select x, 1 from generate_series(-1, 5) x",
    );
    let mut seen = 0;
    for (asked, bound) in all
        .iter()
        .flat_map(|one| (0..5).map(move |bound| (one.0, bound)))
    {
        client.ok(&format!(
            "create index partial on t (k) where x {asked} {bound}"
        ));
        for ((given, holds), value) in all
            .iter()
            .flat_map(|one| (0..5).map(move |value| (one, value)))
        {
            let condition = format!("x {given} {value}");
            if !goes_through(&mut client, &condition) {
                continue;
            }
            seen += 1;
            let wanted = (-1..=5).filter(|x| holds(x, &value)).count();
            let sql = format!("select count(*) from t where k = 1 and {condition}");
            let found = client.ok(&sql);
            assert_eq!(found, wanted.to_string(), "{condition}, x {asked} {bound}");
        }
        client.ok("drop index partial");
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn an_index_outlives_the_name_of_its_table() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, a text, b int); create unique index i on t (lower(t.a), (t.b + 1)) where t.b > 0; insert into t values (1, 'X', 1)");
    client.ok("create index k on t (a) where t.b in (1, 2, 3)");
    client.ok("alter table t rename to u; alter table u rename column b to \"B\"");
    assert_eq!(client.state("insert into u values (2, 'x', 1)"), "23505");
    assert_eq!(
        client.ok("select pg_get_indexdef('i'::regclass)"),
        "CREATE UNIQUE INDEX i ON public.u USING btree (lower(a), ((\"B\" + 1))) WHERE (\"B\" > 0)"
    );
    let told = plan(
        &mut client,
        "select id from u where \"B\" = 2 order by a limit 1",
    );
    assert!(told.contains("using k"), "{told}");
}

/// A column, or an expression, may stand twice in an index.
#[test]
fn what_is_twice_in_an_index_is_compared_once() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, a text, b int); create index i on t (lower(a), lower(a) desc); create index k on t (b, b) where a > 'a'");
    client.ok("insert into t values (1, 'x', 1), (2, 'X', 1), (3, 'y', 2), (4, 'Z', 1)");
    for (sql, index, found) in [
        ("select id from t where id > 1 and lower(a) = 'x'", "i", "2"),
        (
            "select id from t where lower(a) = 'x' and b < 5 order by id",
            "i",
            "1\n2",
        ),
        ("select id from t where b = 1 and a > 'a'", "k", "1"),
    ] {
        let told = plan(&mut client, sql);
        assert!(told.contains(&format!("using {index}")), "{sql}: {told}");
        assert_eq!(client.ok(sql), found, "{sql}");
    }
    client.ok("update t set b = 9 where lower(a) = 'x' and id = 2");
    assert_eq!(client.ok("select id from t where b = 9"), "2");
}

/// Every query finds with the indexes what it finds without.
#[test]
fn indexes_and_rows_say_the_same() {
    let mut client = jobs();
    let queries = [
        "select id from t where state = 'ready' and n > 4 order by id",
        "select id from t where a = 'A1' and n > 10 and done order by id",
        "select id from t where lower(a) = 'a1' and n < 5 order by id",
        "select id from t where lower(a) in ('a1', 'a2') order by id",
        "select id from t where a = 'A1' and n = 2 order by id",
        "select id, lower(a) from t order by lower(a), n desc, id limit 50",
    ];
    let changes = [
        "update t set state = 'ready' where id % 5 = 0",
        "update t set a = upper(a) || 'x', n = n + 1 where id % 4 = 1",
        "update t set n = null where id % 9 = 0",
        "update t set done = not done where id % 2 = 1",
        "delete from t where id % 10 = 3",
        "insert into t values (1001, 'ready', 30, 'A1', true), (1002, 'x', null, null, null)",
        "insert into t values (1001, 'new', 3, 'A1', true) on conflict (id) do update set state = 'new', n = 99",
        "begin; update t set state = 'ready', a = 'A1', n = 77; rollback",
        "begin; savepoint s; delete from t; rollback to s; update t set n = 12 where id = 6; commit",
        "truncate t",
        "insert into t select g, 'ready', g, 'A' || g % 3, true from generate_series(1, 60) g",
    ];
    let mut copy = Client::new();
    copy.ok("create table t (id int primary key, state text, n int, a text, done bool)");
    copy.ok("insert into t select g, case when g % 2 = 0 then 'ready' else 'new' end, g % 50, 'A' || g % 7, g % 3 = 0 from generate_series(1, 200) g");
    for change in changes {
        client.ok(change);
        copy.ok(change);
        for query in queries {
            assert_eq!(client.ok(query), copy.ok(query), "{change}; {query}");
        }
    }
}

#[test]
fn duplicates_are_told_with_what_the_index_computes() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, a text, b int); create unique index i on t (lower(a), (b + 1)) where b > 0; insert into t values (1, 'X', 1), (2, 'x', 0), (3, 'x', 0)");
    let error = client.failure("insert into t values (4, 'x', 1)");
    assert_eq!(
        error.message(),
        "duplicate key value violates unique constraint \"i\""
    );
    let detail = error.fields().detail.clone().unwrap_or_default();
    assert_eq!(detail, "Key (lower(a), (b + 1))=(x, 2) already exists.");
    let error = client.failure("create unique index j on t (upper(a)) where b = 0");
    assert_eq!(error.message(), "could not create unique index \"j\"");
    let detail = error.fields().detail.clone().unwrap_or_default();
    assert_eq!(detail, "Key (upper(a))=(X) is duplicated.");
    let error = client.failure("create index on t (a) where random() > 0.5");
    assert_eq!(
        error.message(),
        "functions in index predicate must be marked IMMUTABLE"
    );
    let error = client.failure("create index on t (zzz)");
    assert_eq!(error.message(), "column \"zzz\" does not exist");
}

/// A literal that reads the session's settings is kept as what it meant.
#[test]
fn an_index_means_the_same_in_every_session() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, at timestamptz, d date); set timezone = 'Asia/Tokyo'; set datestyle = 'ISO, DMY'");
    client.ok("create index i on t (d) where at >= '2020-01-01'; create index k on t (id) where d > '01/02/2020'");
    let mut other = Client::of(&database);
    assert_eq!(
        other.ok("select pg_get_indexdef('i'::regclass)"),
        "CREATE INDEX i ON public.t USING btree (d) WHERE (at >= '2019-12-31 15:00:00+00'::timestamp with time zone)"
    );
    assert_eq!(
        other.ok("select pg_get_indexdef('k'::regclass, 0, true)"),
        "CREATE INDEX k ON t USING btree (id) WHERE d > '2020-02-01'::date"
    );
    other.ok("insert into t values (1, '2019-12-31 15:00:00+00', '2020-02-02'), (2, '2019-12-31 14:59:00+00', '2020-01-15')");
    let sql = "select id from t where at >= '2020-01-01' and d > '2000-01-01'";
    assert!(plan(&mut client, sql).contains("using i"));
    assert_eq!(client.ok(sql), "1");
    let sql = "select id from t where at >= '2019-12-31' and d > '2000-01-01' order by id";
    assert!(!plan(&mut other, sql).contains("using i"));
    assert_eq!(other.ok(sql), "1\n2");
    let sql = "select id from t where d > '2020-02-01' order by id limit 1";
    assert_eq!(other.ok(sql), "1");
}

#[test]
fn who_would_be_second_in_a_partial_index_waits_for_the_first() {
    let database = database();
    let mut first = Client::of(&database);
    first.ok("create table t (id int primary key, a text, live bool); create unique index i on t (lower(a)) where live");
    first.ok("insert into t values (1, 'x', false); begin; insert into t values (2, 'X', true)");
    let mut second = Client::of(&database);
    // Not in the index: it meets nobody.
    second.ok("insert into t values (3, 'x', false)");
    let waits = thread::spawn(move || second.state("update t set live = true where id = 3"));
    thread::sleep(std::time::Duration::from_millis(50));
    first.ok("commit");
    assert_eq!(waits.join().unwrap(), "23505");
    first.ok("begin; update t set live = false where id = 2");
    let mut second = Client::of(&database);
    let waits =
        thread::spawn(move || second.ok("insert into t values (4, 'X', true) returning id"));
    thread::sleep(std::time::Duration::from_millis(50));
    first.ok("commit");
    assert_eq!(waits.join().unwrap(), "4");
}

#[test]
fn old_snapshots_read_without_an_index_that_they_do_not_see() {
    let database = database();
    let mut old = Client::of(&database);
    old.ok("create table t (id int primary key, a text, n int); insert into t select g, 'A' || g, g from generate_series(1, 100) g");
    old.ok("begin isolation level repeatable read; select count(*) from t");
    let mut other = Client::of(&database);
    other.ok("create index i on t (lower(a)) where n > 50; delete from t where id = 60");
    assert!(
        !plan(
            &mut old,
            "select id from t where lower(a) = 'a60' and n > 50"
        )
        .contains("using i")
    );
    assert_eq!(
        old.ok("select id from t where lower(a) = 'a60' and n > 50"),
        "60"
    );
    old.ok("commit");
    let told = plan(
        &mut old,
        "select id from t where lower(a) = 'a61' and n > 50",
    );
    assert!(told.contains("using i"), "{told}");
    assert_eq!(
        old.ok("select id from t where lower(a) = 'a60' and n > 50"),
        ""
    );
    assert_eq!(
        old.ok("select id from t where lower(a) = 'a61' and n > 50"),
        "61"
    );
}

#[test]
fn what_refers_to_a_row_is_not_looked_for_in_a_partial_index() {
    let mut client = Client::new();
    client.ok("create table p (id int primary key); create table c (id int primary key, p int references p on delete cascade, live bool); create index on c (p) where live");
    client.ok("insert into p values (1), (2); insert into c values (1, 1, false), (2, 1, true), (3, 2, null)");
    client.ok("delete from p where id = 1");
    assert_eq!(client.ok("select id from c"), "3");
}
