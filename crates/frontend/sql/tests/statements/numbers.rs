//! Numbers of transactions, and what snapshots tell of them, between sessions.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;

/// Who reads by numbers, as outboxes are read: what is below the snapshot's lowest number in progress does not change any more.
#[test]
fn what_is_below_xmin_is_all_there() {
    let database = database();
    let mut client = Client::of(&database);
    client
        .ok("create table box (id int primary key, x xid8 not null default pg_current_xact_id())");
    let mut slow = Client::of(&database);
    let mut fast = Client::of(&database);
    let read = "select coalesce(string_agg(id::text, ',' order by x, id), '') from box where x < pg_snapshot_xmin(pg_current_snapshot())";
    slow.ok("begin; insert into box (id) values (1)");
    fast.ok("insert into box (id) values (2)");
    assert_eq!(client.ok("select string_agg(id::text, ',') from box"), "2");
    assert_eq!(client.ok(read), "", "who is before it is in progress");
    let shown = client.ok("select pg_current_snapshot()");
    let number = slow.ok("select pg_current_xact_id()");
    assert!(
        shown.starts_with(&format!("{number}:")) && shown.ends_with(&format!(":{number}")),
        "{shown}"
    );
    slow.ok("commit");
    assert_eq!(client.ok(read), "1,2");
    // A rollback is an end, too.
    slow.ok("begin; insert into box (id) values (3)");
    fast.ok("insert into box (id) values (4)");
    assert_eq!(client.ok(read), "1,2");
    slow.ok("rollback");
    assert_eq!(client.ok(read), "1,2,4");
    // So is a session's.
    slow.ok("begin; insert into box (id) values (5)");
    fast.ok("insert into box (id) values (6)");
    assert_eq!(client.ok(read), "1,2,4");
    drop(slow);
    assert_eq!(client.ok(read), "1,2,4,6");
}

#[test]
fn an_old_snapshot_tells_what_had_ended_for_it() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (x xid8)");
    let mut writer = Client::of(&database);
    let number = writer.ok("begin; insert into t values (pg_current_xact_id()) returning x");
    let mut old = Client::of(&database);
    let before = old.ok("begin isolation level repeatable read; select pg_current_snapshot()");
    let seen = format!(
        "select pg_visible_in_snapshot('{number}', pg_current_snapshot()), pg_xact_status('{number}')"
    );
    assert_eq!(old.ok(&seen), "f|in progress");
    writer.ok("commit");
    // What it sees has not changed, what became of the other has.
    assert_eq!(old.ok(&seen), "f|committed");
    assert_eq!(
        old.ok("select count(*) from t; select pg_current_snapshot()"),
        format!("0\n{before}")
    );
    assert_eq!(client.ok(&seen), "t|committed");
    old.ok("commit");
    assert_eq!(old.ok(&seen), "t|committed");
    let aborted = writer.ok("begin; select pg_current_xact_id()");
    writer.ok("rollback");
    assert_eq!(
        client.ok(&format!("select pg_xact_status('{aborted}')")),
        "aborted"
    );
    // One that fails at its end, too.
    client.ok("create table parent (id int primary key); create table child (p int references parent deferrable initially deferred)");
    let failed = writer.ok("begin; insert into child values (1); select pg_current_xact_id()");
    assert_eq!(writer.state("commit"), "23503");
    assert_eq!(
        client.ok(&format!("select pg_xact_status('{failed}')")),
        "aborted"
    );
    assert_eq!(
        client.state("select pg_xact_status('9000000000000000000')"),
        "22023"
    );
}

#[test]
fn numbers_grow_also_over_a_restart() {
    let directory = Arc::new(MemoryDirectory::new());
    let mut last = 0;
    for _ in 0..3 {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        client.ok("create table if not exists t (x xid8)");
        for _ in 0..3 {
            let number = client.ok("insert into t values (pg_current_xact_id()) returning x");
            let number: u64 = number.parse().unwrap();
            assert!(number > last, "{number} behind {last}");
            last = number;
        }
        assert_eq!(
            client.ok("select bool_and(x < pg_snapshot_xmin(pg_current_snapshot())) from t"),
            "t"
        );
    }
}

#[test]
fn ends_that_are_forgotten_are_known_to_be() {
    let database = database();
    let mut client = Client::of(&database);
    let first = client.ok("select pg_current_xact_id()");
    let status = format!("select pg_xact_status('{first}')");
    assert_eq!(client.ok(&status), "committed");
    let mut old = Client::of(&database);
    old.ok("begin isolation level repeatable read; select pg_current_snapshot()");
    for _ in 0..10_001 {
        client.ok("select pg_current_xact_id()");
    }
    assert_eq!(client.ok(&status), "~");
    assert_eq!(old.state("select pg_current_snapshot()"), "54000");
    client.ok("select pg_current_snapshot()");
}
