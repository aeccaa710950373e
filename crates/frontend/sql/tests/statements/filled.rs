//! Indexes of tables that have rows: sorted in memory, in a file, or entered one by one.

use super::client::{Client, Heard, database};

/// A table with rows in no order, as many of them as `maintenance_work_mem` does not hold the entries of; and whether there is a place for files.
fn with_rows(spills: Option<&std::path::Path>) -> Client {
    let database = database();
    if let Some(directory) = spills {
        database.set_spill_directory(directory.join("spill"));
    }
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, n int, s text, d numeric)");
    client.ok(
        "insert into t select g, g * 7919 % 9973, repeat(chr(97 + g % 26), 200) || g % 50, case when g % 10 > 0 then g / 7.0 end \
         from generate_series(1, 9000) g",
    );
    client.ok("set maintenance_work_mem = '1MB'");
    client
}

/// What an index finds is what the rows say: read in its order, by a value, and counted.
fn compare(client: &mut Client, name: &str) {
    let by_rows = |client: &mut Client, sql: &str| {
        client.ok(&format!(
            "select md5(string_agg(x::text, ',')) from ({sql}) v(x)"
        ))
    };
    for (order, by) in [
        ("n", "select id from t order by n"),
        ("s desc, id", "select id from t order by s desc, id"),
        (
            "d nulls first, id",
            "select id from t order by d nulls first, id",
        ),
    ] {
        let told = client.ok(&format!("explain {by} limit 1"));
        assert!(told.contains("ndex"), "{name}: {order}: {told}");
        let ordered = by_rows(client, by);
        let sorted = by_rows(
            client,
            &by.replace("order by n", "order by n + 0")
                .replace("order by s desc", "order by s || '' desc")
                .replace("order by d nulls", "order by d + 0 nulls"),
        );
        assert_eq!(ordered, sorted, "{name}: {order}");
    }
    for id in [1, 20, 4711, 9000] {
        let n = client.ok(&format!("select n from t where id = {id}"));
        assert_eq!(
            client.ok(&format!("select id from t where n = {n}")),
            id.to_string()
        );
    }
    client.ok("update t set n = n + 20000, s = 'new' where id % 3 = 0; delete from t where id % 5 = 0; insert into t values (5, 20001)");
    assert_eq!(client.ok("select count(*) from t where n > 20000"), "2401");
    assert_eq!(client.ok("select count(*) from t where s = 'new'"), "2400");
    assert_eq!(client.state("insert into t values (10, 20001)"), "23505");
}

#[test]
fn indexes_are_filled_in_memory_from_a_file_and_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    for (name, memory, spills) in [
        ("memory", "1GB", true),
        ("file", "1MB", true),
        ("one by one", "1MB", false),
    ] {
        let mut client = with_rows(spills.then_some(directory.path()));
        client.ok(&format!("set maintenance_work_mem = '{memory}'"));
        client.ok("create unique index by_n on t (n); create index on t (s desc, id); create index on t (d nulls first, id)");
        compare(&mut client, name);
    }
}

#[test]
fn a_value_that_comes_twice_makes_no_unique_index_wherever_it_is_found() {
    let directory = tempfile::tempdir().unwrap();
    for (memory, spills) in [("1GB", true), ("1MB", true), ("1MB", false)] {
        let mut client = with_rows(spills.then_some(directory.path()));
        client.ok(&format!("set maintenance_work_mem = '{memory}'"));
        client.ok("update t set n = 20000 where id in (17, 8990); update t set s = s || id");
        for sql in [
            "create unique index u on t (n)",
            "alter table t add constraint u unique (n)",
        ] {
            let mut heard = Heard::default();
            let error = client.session.simple_query(sql, &mut heard).unwrap_err();
            let fields = error.fields();
            assert_eq!(error.sqlstate().as_str(), "23505");
            let message = "could not create unique index \"u\"";
            assert_eq!(error.message(), message, "{memory} {spills}");
            assert_eq!(
                fields.detail.as_deref(),
                Some("Key (n)=(20000) is duplicated.")
            );
        }
        // Nulls are no values; and nothing is left of what failed.
        client.ok("update t set n = null where n = 20000; create unique index u on t (n); create unique index v on t (s)");
        assert_eq!(client.ok("select count(*) from t where n is null"), "2");
        assert_eq!(
            client.ok("drop index u; drop index v; select count(*) from t"),
            "9000"
        );
    }
}

/// What others have committed, deleted and not yet committed is seen as by any statement.
#[test]
fn an_index_that_is_filled_has_the_rows_that_are_there() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, n int); insert into t select g, g % 10 from generate_series(1, 1000) g");
    let mut old = Client::of(&database);
    old.ok("begin isolation level repeatable read");
    assert_eq!(old.ok("select count(*) from t where n = 3"), "100");
    client.ok("delete from t where id <= 500; update t set n = 30 where n = 3");
    client.ok("create index by_n on t (n)");
    assert_eq!(client.ok("select count(*) from t where n = 30"), "50");
    assert_eq!(client.ok("select count(*) from t where n = 3"), "0");
    assert_eq!(old.ok("select count(*) from t where n = 3"), "100");
    old.ok("commit");
    client.ok("begin; drop index by_n; insert into t values (1, 30); create index by_n on t (n); insert into t values (2, 30)");
    assert_eq!(client.ok("select count(*) from t where n = 30"), "52");
    client.ok("rollback");
    assert_eq!(client.ok("select count(*) from t where n = 30"), "50");
}
