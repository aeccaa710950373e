//! Who waits for whom, for what, and since when: as others see it, and when it goes round in a circle.

use super::client::{Client, Heard, database};
use std::thread::{self, JoinHandle};
use vellum_sql::SqlDatabase;
use vellum_sync::test_point::TestPoints;

/// Clients 1, 2, … of one database.
fn clients<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    let mut process_id = 0;
    let clients = [(); N].map(|()| {
        process_id += 1;
        Client::of_session(&database, process_id)
    });
    (database, clients)
}

/// A client that says something on a thread of its own. SQLSTATE of its error, or none.
fn says(client: Client, sql: &str) -> JoinHandle<(Client, Option<String>)> {
    says_at(client, sql, &TestPoints::new())
}

/// The same, on a thread that listens to test points.
fn says_at(
    mut client: Client,
    sql: &str,
    points: &TestPoints,
) -> JoinHandle<(Client, Option<String>)> {
    let (sql, points) = (sql.to_owned(), points.clone());
    thread::spawn(move || {
        let _entered = points.enter();
        let done = client.session.simple_query(&sql, &mut Heard::default());
        let state = done.err().map(|error| error.sqlstate().to_string());
        (client, state)
    })
}

/// Asks until the answer is this one.
#[track_caller]
fn until(client: &mut Client, sql: &str, answer: &str) {
    let begun = std::time::Instant::now();
    loop {
        let now = client.ok(sql);
        if now == answer {
            return;
        }
        assert!(begun.elapsed().as_secs() < 60, "{sql}: {now}");
        thread::yield_now();
    }
}

const BLOCKING: &str = "select pg_blocking_pids(1)";

#[test]
fn whoever_closes_a_circle_over_gates_names_and_rows_gives_up() {
    let update = "update t set n = n + 1 where id = 1";
    let (sad, happy) = (
        "alter type sad rename value 'a' to 'b'",
        "alter type happy rename value 'a' to 'b'",
    );
    // What the first one does, the second one; then what the first one does that waits, and the second one that closes the circle.
    for (first, second, waits, closes) in [
        // Two types; a type and a table; a type and a row.
        (sad, happy, happy, sad),
        (sad, "lock table t", update, "create table u (m sad)"),
        (
            sad,
            "alter table t add c int",
            "alter table t add d int",
            "create table u (m sad)",
        ),
        (sad, update, update, "create table u (m sad)"),
        ("create table u (m sad)", update, update, sad),
        // A schema and a row; a schema and a type.
        (
            "create table s.u (n int)",
            update,
            update,
            "drop schema s cascade",
        ),
        (
            "create table s.u (n int)",
            happy,
            "create table v (m happy)",
            "drop schema s cascade",
        ),
        // Names.
        (
            "create table u (n int)",
            "create table v (n int)",
            "create view v as select 1",
            "create sequence u",
        ),
        ("create schema u", update, update, "create schema u"),
        // A number and a row, a number and a type.
        (
            "select pg_advisory_lock(1)",
            update,
            update,
            "select pg_advisory_lock(1)",
        ),
        (
            sad,
            "select pg_advisory_xact_lock(1)",
            "select pg_advisory_lock(1)",
            "create table u (m sad)",
        ),
    ] {
        let (_database, [mut a, mut b, mut c]) = clients();
        a.ok(
            "create type sad as enum ('a'); create type happy as enum ('a'); create schema s;
              create table t (id int primary key, n int); insert into t values (1, 1)",
        );
        a.ok("begin");
        a.ok(first);
        b.ok("begin");
        b.ok(second);
        let waiter = says(a, waits);
        until(&mut c, BLOCKING, "{2}");
        assert_eq!(
            b.state(closes),
            "40P01",
            "{first}; {second}; {waits}; {closes}"
        );
        b.ok("rollback");
        let (_, told) = waiter.join().unwrap();
        assert_eq!(told, None, "{first}; {second}; {waits}; {closes}");
        assert_eq!(c.ok("select deadlocks from pg_stat_database"), "1");
    }
}

const PLACED: &str = "row locks: a version was placed";
const MET: &str = "row locks: a writer was met";

/// Who holds the row meets the version that another has placed, and is about to take back because of that very lock.
#[test]
fn regress_no_circle_goes_over_a_version_that_was_taken_back() {
    for (lock, change) in [
        ("update", "update t set n = 5 where id = 1"),
        ("update", "delete from t where id = 1"),
        ("share", "update t set n = 5 where id = 1"),
        ("share", "select n from t where id = 1 for update"),
        ("no key update", "select n from t where id = 1 for share"),
    ] {
        let (_database, [mut a, b, mut c]) = clients();
        a.ok("create table t (id int primary key, n int); insert into t values (1, 1)");
        a.ok(&format!("begin; select n from t where id = 1 for {lock}"));
        let points = TestPoints::new();
        let placed = points.pause(PLACED);
        let deletes = says_at(b, "delete from t where id = 1", &points);
        placed.wait_reached();
        let changes = says(a, change);
        until(&mut c, BLOCKING, "{2}");
        placed.release();
        let (mut a, told) = changes.join().unwrap();
        assert_eq!(told, None, "{lock}; {change}");
        a.ok("commit");
        let (_, told) = deletes.join().unwrap();
        assert_eq!(told, None, "{lock}; {change}");
        assert_eq!(c.ok("select count(*) from t"), "0");
        assert_eq!(c.ok("select deadlocks from pg_stat_database"), "0");
    }
}

/// Of two that step back from each other one waits for a lock that the other has not given back yet, and then does.
#[test]
fn regress_no_circle_goes_over_a_lock_that_was_given_back() {
    for ends in ["rollback", "commit"] {
        let (_database, [b, a, mut c]) = clients();
        c.ok("create table t (id int primary key, n int); insert into t values (1, 1)");
        let points = TestPoints::new();
        let placed = points.pause(PLACED);
        let deletes = says_at(b, "begin; delete from t where id = 1", &points);
        placed.wait_reached();
        let met = points.pause(MET);
        let locks = says_at(a, "begin; select n from t where id = 1 for update", &points);
        met.wait_reached();
        placed.release();
        until(&mut c, BLOCKING, "{2}");
        met.release();
        // Whichever of them comes first.
        let finish = |thread: JoinHandle<(Client, Option<String>)>| {
            thread::spawn(move || {
                let (mut client, told) = thread.join().unwrap();
                assert_eq!(told, None, "{ends}");
                client.ok(ends);
            })
        };
        for finished in [finish(deletes), finish(locks)] {
            finished.join().unwrap();
        }
        let left = if ends == "commit" { "0" } else { "1" };
        assert_eq!(c.ok("select count(*) from t"), left);
        assert_eq!(c.ok("select deadlocks from pg_stat_database"), "0");
    }
}

/// Nobody waits for what was taken back with a savepoint, though its writer goes on: who has met it, and who comes to wait only then.
#[test]
fn regress_nobody_waits_for_what_a_savepoint_took_back() {
    let (_database, [mut a, mut b, mut c]) = clients();
    a.ok("set lock_timeout = '30s'");
    b.ok("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)");
    b.ok("begin; update t set n = 3 where id = 2; savepoint s; update t set n = 5 where id = 1");
    let points = TestPoints::new();
    let met = points.pause(MET);
    let locks = says_at(a, "select n from t where id = 1 for update", &points);
    met.wait_reached();
    b.ok("rollback to s");
    met.release();
    let (a, told) = locks.join().unwrap();
    assert_eq!(told, None);
    b.ok("update t set n = 5 where id = 1");
    let locks = says(a, "select n from t where id = 1 for update");
    until(&mut c, BLOCKING, "{2}");
    b.ok("rollback to s");
    let (_, told) = locks.join().unwrap();
    assert_eq!(told, None);
    b.ok("commit");
    assert_eq!(c.ok("select n from t order by id"), "1\n3");
}

#[test]
fn who_waits_for_what_is_shown() {
    let events = "select wait_event_type, wait_event, state from pg_stat_activity where pid = 1";
    let waiting = "select locktype, coalesce(relation::regclass::text, ''), coalesce(classid::regclass::text, ''), mode, \
        waitstart > now() - interval '1 hour' and waitstart <= clock_timestamp() from pg_locks where pid = 1 and not granted";
    // As monitors ask it.
    let blocker = "select blocking.pid, blocking.mode from pg_locks blocked join pg_locks blocking
          on blocking.locktype = blocked.locktype
         and blocking.database is not distinct from blocked.database
         and blocking.relation is not distinct from blocked.relation
         and blocking.transactionid is not distinct from blocked.transactionid
         and blocking.classid is not distinct from blocked.classid
         and blocking.objid is not distinct from blocked.objid
         and blocking.pid <> blocked.pid
       where not blocked.granted and blocking.granted and blocked.pid = 1";
    let update = "update t set n = 2 where id = 1";
    for (holds, wants, event, shown, held) in [
        (
            update,
            update,
            "transactionid",
            "transactionid|||ShareLock|t",
            "ExclusiveLock",
        ),
        (
            "select 1 from t where id = 1 for update",
            update,
            "transactionid",
            "transactionid|||ShareLock|t",
            "ExclusiveLock",
        ),
        (
            "insert into t values (7)",
            "insert into t values (7)",
            "transactionid",
            "transactionid|||ShareLock|t",
            "ExclusiveLock",
        ),
        (
            "create table v (n int)",
            "create table v (n int)",
            "transactionid",
            "transactionid|||ShareLock|t",
            "ExclusiveLock",
        ),
        (
            update,
            "alter table t add c int",
            "relation",
            "relation|t||AccessExclusiveLock|t",
            "RowExclusiveLock",
        ),
        (
            "lock table t",
            update,
            "relation",
            "relation|t||RowExclusiveLock|t",
            "AccessExclusiveLock",
        ),
        (
            "create table v (m mood)",
            "alter type mood rename value 'a' to 'b'",
            "object",
            "object||pg_type|AccessExclusiveLock|t",
            "RowExclusiveLock",
        ),
        (
            "create table s.v (n int)",
            "drop schema s",
            "object",
            "object||pg_namespace|AccessExclusiveLock|t",
            "RowExclusiveLock",
        ),
        (
            "select pg_advisory_xact_lock(1)",
            "select pg_advisory_lock(1)",
            "advisory",
            "advisory||-|ExclusiveLock|t",
            "ExclusiveLock",
        ),
    ] {
        let (_database, [mut a, mut b, mut c]) = clients();
        a.ok("create table t (id int primary key, n int); insert into t values (1, 1); create schema s; create type mood as enum ('a')");
        assert_eq!(c.ok(events), "Client|ClientRead|idle");
        assert_eq!(c.ok(waiting), "");
        b.ok("begin");
        b.ok(holds);
        let waiter = says(a, wants);
        until(&mut c, events, &format!("Lock|{event}|active"));
        until(&mut c, waiting, shown);
        assert_eq!(c.ok(blocker), format!("2|{held}"), "{holds}; {wants}");
        assert_eq!(c.ok(BLOCKING), "{2}");
        let rows = if event == "transactionid" { "1|f" } else { "" };
        let own = "select pid, granted from vellum_locks where waits_for is not null";
        assert_eq!(c.ok(own), rows, "{holds}; {wants}");
        b.ok("rollback");
        let (mut a, told) = waiter.join().unwrap();
        assert_eq!(told, None);
        assert_eq!(c.ok("select count(*) from pg_locks where not granted"), "0");
        assert_eq!(c.ok(events), "Client|ClientRead|idle");
        a.ok("begin");
        assert_eq!(c.ok(events), "Client|ClientRead|idle in transaction");
    }
}

#[test]
fn numbers_of_transactions_are_each_ones_own() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("begin; select 1");
    b.ok("begin; select 1");
    let number = "select txid_current()";
    assert_ne!(a.ok(number), b.ok(number));
    let own = "select count(*) from pg_locks where locktype = 'transactionid' and transactionid = (txid_current() % 4294967296)::text::xid";
    assert_eq!(a.ok(own), "1");
}

#[test]
fn transactions_are_counted() {
    let (_database, [mut a, mut b]) = clients();
    let counts = "select xact_commit, xact_rollback from pg_stat_database";
    let numbers = |client: &mut Client| -> Vec<u64> {
        let told = client.ok(counts);
        told.split('|')
            .map(|number| number.parse().unwrap())
            .collect()
    };
    let before = numbers(&mut b);
    a.ok("create table t (n int); begin; insert into t values (1); commit; begin; rollback");
    assert_eq!(a.state("select 1 / 0"), "22012");
    drop(a);
    let after = numbers(&mut b);
    // With the one that asked before.
    assert_eq!([after[0] - before[0], after[1] - before[1]], [2, 2]);
    let nulls = b.ok("select * from pg_stat_database").matches('~').count();
    assert_eq!(nulls, 1, "there was no failure of a checksum");
}

/// Symptom: who waits for a transaction was rung, and ran its statement again, whenever that gave back any lock. Guard: `lock/waits`: `released`.
#[test]
fn regress_a_lock_that_is_given_back_rings_those_who_wait_for_it() {
    let (_database, [b, mut a, mut c]) = clients();
    c.ok("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0); create sequence s");
    a.ok("begin; select n from t where id = 1 for update");
    let waits = says(b, "update t set n = nextval('s') where id = 1");
    until(&mut c, BLOCKING, "{2}");
    for _ in 0..50 {
        a.ok("savepoint p; select n from t where id = 2 for update; rollback to p");
        until(&mut c, BLOCKING, "{2}");
    }
    a.ok("commit");
    assert_eq!(waits.join().unwrap().1, None);
    assert_eq!(
        c.ok("select n from t where id = 1"),
        "2",
        "as often as it ran"
    );
}

/// Symptom: `lock_timeout` began anew with each ring. Guard: `Waiting::start_for`.
#[test]
fn regress_lock_timeout_is_for_the_wait_for_one_transaction_however_often_it_looks_again() {
    let (_database, [mut b, mut a, mut c]) = clients();
    c.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
    a.ok("begin; select n from t where id = 1 for share");
    b.ok("set lock_timeout = 1500");
    let waits = says(b, "update t set n = 1 where id = 1");
    // What it waits for is given back in part, until it has tried too often.
    while !waits.is_finished() {
        a.ok("savepoint p; select n from t where id = 1 for update; rollback to p");
    }
    assert_eq!(waits.join().unwrap().1.as_deref(), Some("55P03"));
    a.ok("commit");
}

/// Symptom: `23505` for a key that went with its row. Cause: another row has taken the key since the statement's snapshot, and its writer was not asked after. Guard: `Duplicate::outdated`.
#[test]
fn regress_a_key_that_another_row_has_taken_since_is_waited_for() {
    let waits = "select count(*) from pg_locks where not granted";
    for (insert, ends, expected) in [
        (
            "insert into t select 9, 5, 9 ",
            "delete from t where id = 2",
            None,
        ),
        ("insert into t select 9, 5, 9 ", "select 1", Some("23505")),
        (
            "insert into t select 9, 5, 9 ",
            "update t set u = 6 where id = 2",
            None,
        ),
    ] {
        let (_database, [a, mut b, mut c]) = clients();
        c.ok("create table t (id int primary key, u int unique, n int); insert into t values (1, 5, 0)");
        b.ok("select pg_advisory_lock(1)");
        // Its snapshot is drawn, and shows the key at row 1.
        let sql = format!("{insert} from (select pg_advisory_xact_lock(1)) l");
        let inserts = says(a, &sql);
        until(&mut c, waits, "1");
        c.ok("begin; delete from t where id = 1; insert into t values (2, 5, 0); commit");
        c.ok("begin; update t set n = 1 where id = 2");
        b.ok("select pg_advisory_unlock(1)");
        until(&mut b, "select pg_blocking_pids(1)", "{3}");
        c.ok(&format!("{ends}; commit"));
        let (_, told) = inserts.join().unwrap();
        assert_eq!(told.as_deref(), expected, "{ends}");
    }
}
