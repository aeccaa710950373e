//! What `vellum_versions` and `vellum_snapshots` tell of what an old session keeps, kind by kind, and that it goes with it.

use super::client::{Client, database_that_promotes};
use vellum_sql::{FIRST_ROLE, SessionOptions, SqlDatabase};

/// All background work is done.
fn settle(database: &SqlDatabase) {
    while database.engine().step().unwrap() {}
}

const TABLES: &str = "create table t (id int primary key, n int, a int, s text); create index on t (a);
     create table large (id int primary key, v text); create table gone (id int primary key, v text);
     insert into t select n, 0, n, 'short' from generate_series(1, 20) as g(n);
     insert into large values (1, repeat('large ', 5000));
     insert into gone select n, repeat('x', 100) from generate_series(1, 500) as g(n)";

/// Of tables that the session sees: kind by kind, and whether each has bytes and all were counted.
const VERSIONS: &str =
    "select relation::text, kind, sum(versions)::int, bool_and(bytes > 0), bool_and(complete)
     from vellum_versions where relation is not null group by 1, 2 order by 1, 2";

/// A session with that process id.
fn client(database: &SqlDatabase, process_id: i32) -> Client {
    let options = SessionOptions {
        user: FIRST_ROLE.to_owned(),
        database: FIRST_ROLE.to_owned(),
        process_id,
        ..SessionOptions::default()
    };
    Client {
        session: database.session(options).unwrap(),
    }
}

const OLD: i32 = 7;
const OTHER: i32 = 8;
const YOUNG: i32 = 9;

#[test]
fn versions_are_told_by_table_and_kind_and_charged_to_the_session_that_keeps_them() {
    let database = database_that_promotes(false);
    let (mut other, mut old) = (client(&database, OTHER), client(&database, OLD));
    other.ok(TABLES);
    settle(&database);
    assert_eq!(other.ok(VERSIONS), "");
    old.ok("begin isolation level repeatable read; select count(*) from t");
    // Ten rows whose length stays, and one whose length does not.
    other.ok("update t set n = n + 1 where id <= 10");
    other.ok("update t set s = repeat('y', 100) where id = 11");
    assert_eq!(other.ok(VERSIONS), "t|delta|10|t|t\nt|full_copy|1|t|t");
    // In the table and in its index.
    other.ok("delete from t where id in (12, 13)");
    assert_eq!(
        other.ok(VERSIONS),
        "t|delta|10|t|t\nt|full_copy|5|t|t\nt|tombstone|4|t|t"
    );
    // Another place in the index.
    other.ok("update t set a = a + 100 where id = 14");
    assert_eq!(
        other.ok(VERSIONS),
        "t|delta|11|t|t\nt|full_copy|6|t|t\nt|tombstone|5|t|t"
    );
    let storages =
        "select count(distinct storage) from vellum_versions where relation = 't'::regclass";
    assert_eq!(other.ok(storages), "2");
    other.ok("update large set v = repeat('other ', 5000)");
    let large = "select kind, versions, bytes from vellum_versions where relation = 'large'::regclass and kind = 'chain'";
    // Eight pages.
    assert_eq!(other.ok(large), format!("chain|1|{}", 8 * 4096));
    let (mut young, now) = (client(&database, YOUNG), "select count(*) from t");
    young.ok(&format!("begin isolation level repeatable read; {now}"));
    settle(&database);
    let of = |pid: i32| {
        format!(
            "select analytical, writer, versions, version_bytes > 8 * 4096, age_ticks >= 10, age_seconds >= 0, complete
             from vellum_snapshots where pid = {pid}"
        )
    };
    let kept = other.ok("select sum(versions) from vellum_versions where kind <> 'dropped'");
    assert_eq!(other.ok(&of(OLD)), format!("f|f|{kept}|t|t|t|t"));
    assert_eq!(other.ok(&of(YOUNG)), "f|f|0|f|f|t|t");
    // The oldest is told first.
    let pids = other.ok("select pid from vellum_snapshots");
    assert_eq!(
        pids,
        format!("{OLD}\n{YOUNG}\n{OTHER}"),
        "the asking one, too"
    );
    young.ok("insert into t values (30)");
    assert_eq!(
        other.ok(&format!(
            "select writer from vellum_snapshots where pid = {YOUNG}"
        )),
        "t"
    );
    young.ok("rollback");
    old.ok("commit");
    settle(&database);
    assert_eq!(other.ok(VERSIONS), "");
    assert_eq!(other.ok("select count(*) from vellum_snapshots"), "1");
}

#[test]
fn pages_of_a_dropped_table_are_told_while_a_session_sees_it() {
    let database = database_that_promotes(false);
    let (mut other, mut old) = (client(&database, OTHER), client(&database, OLD));
    other.ok(TABLES);
    settle(&database);
    old.ok("begin isolation level repeatable read; select count(*) from t");
    other.ok("drop table gone");
    settle(&database);
    let dropped = "select relation is null, versions > 15, bytes = versions * 4096, complete from vellum_versions where kind = 'dropped'";
    assert_eq!(other.ok(dropped), "t|t|t|t");
    let kept = format!("select version_bytes > 15 * 4096 from vellum_snapshots where pid = {OLD}");
    assert_eq!(other.ok(&kept), "t");
    assert_eq!(
        other.ok("select version_bytes > 15 * 4096 from vellum_slots"),
        "t"
    );
    old.ok("commit");
    settle(&database);
    assert_eq!(other.ok(dropped), "");
}

#[test]
fn buried_rows_and_versions_in_hot_rows_are_told_of_a_session_that_was_promoted() {
    let database = database_that_promotes(true);
    let (mut other, mut old) = (client(&database, OTHER), client(&database, OLD));
    other.ok(TABLES);
    settle(&database);
    old.ok("begin isolation level repeatable read; select count(*) from t");
    for _ in 0..200 {
        other.ok("update t set n = n + 1 where id = 1");
    }
    settle(&database);
    other.ok("delete from t where id > 18");
    settle(&database);
    let kinds = "select kind, sum(versions) from vellum_versions where relation = 't'::regclass and kind in ('buried', 'tombstone') group by 1";
    assert_eq!(other.ok(kinds), "buried|4", "of the table and of its index");
    let fat = "select sum(versions) > 0, bool_and(bytes > 0) from vellum_versions where relation = 't'::regclass and kind = 'fat'";
    assert_eq!(other.ok(fat), "t|t");
    let holder =
        format!("select analytical, versions >= 5 from vellum_snapshots where pid = {OLD}");
    assert_eq!(other.ok(&holder), "t|t");
    assert_eq!(old.ok("select count(*), sum(n) from t"), "20|0");
    old.ok("commit");
    settle(&database);
    assert_eq!(other.ok(kinds), "");
}
