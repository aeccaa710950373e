//! Advisory locks: for the session, for the transaction, among others, in circles; `lastval`.

use super::client::{Client, Heard, database};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use vellum_sql::{SessionOptions, SqlDatabase};
use vellum_sync::test_point::TestPoints;

fn client(database: &SqlDatabase, process_id: i32) -> Client {
    let options = SessionOptions {
        user: "vellum".to_owned(),
        database: "vellum".to_owned(),
        process_id,
        ..SessionOptions::default()
    };
    Client {
        session: database.session(options).unwrap(),
    }
}

fn clients<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    let mut number = 0;
    let clients = [(); N].map(|()| {
        number += 1;
        client(&database, number)
    });
    (database, clients)
}

const SHOWN: &str = "select classid, objid, objsubid, mode, granted, pid from pg_locks
    where locktype = 'advisory' order by 1, 2, 3, 5 desc, 6";

#[test]
fn a_lock_of_the_session_outlives_its_transactions_and_is_released_as_often_as_it_was_taken() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("begin; select pg_advisory_lock(7); savepoint s; select pg_advisory_lock(7)");
    a.ok("rollback to s; rollback");
    assert_eq!(b.ok("select pg_try_advisory_lock(7)"), "f");
    assert_eq!(b.ok("select pg_try_advisory_lock_shared(7)"), "f");
    assert_eq!(
        b.ok("select pg_try_advisory_lock(0, 7)"),
        "t",
        "another space"
    );
    assert_eq!(a.ok("select pg_advisory_unlock(7)"), "t");
    assert_eq!(b.ok("select pg_try_advisory_lock(7)"), "f");
    assert_eq!(a.ok("select pg_advisory_unlock(7)"), "t");
    assert_eq!(b.ok("select pg_try_advisory_lock(7)"), "t");
    let heard = a.hear("select pg_advisory_unlock(7), pg_advisory_unlock_shared(8)");
    assert_eq!(heard.text(), "f|f");
    assert_eq!(
        heard.notices,
        [
            "you don't own a lock of type ExclusiveLock",
            "you don't own a lock of type ShareLock"
        ]
    );
    drop(b);
    assert_eq!(
        a.ok("select pg_try_advisory_lock(7)"),
        "t",
        "the session is gone"
    );
}

#[test]
fn a_lock_of_the_transaction_goes_with_it_or_its_savepoint() {
    let (_database, [mut a, mut b]) = clients();
    for end in ["commit", "rollback"] {
        a.ok("begin; select pg_advisory_xact_lock(1)");
        a.ok("savepoint s; select pg_advisory_xact_lock(2)");
        assert_eq!(b.ok("select pg_try_advisory_xact_lock(2)"), "f");
        a.ok("rollback to s");
        assert_eq!(b.ok("select pg_try_advisory_xact_lock(2)"), "t");
        assert_eq!(b.ok("select pg_try_advisory_xact_lock(1)"), "f");
        assert_eq!(
            a.ok("select pg_advisory_unlock(1)"),
            "f",
            "none of the session"
        );
        a.ok(end);
        assert_eq!(b.ok("select pg_try_advisory_xact_lock(1)"), "t", "{end}");
    }
    // One of a statement alone goes with it.
    a.ok("select pg_advisory_xact_lock(3)");
    assert_eq!(b.ok("select pg_try_advisory_lock(3)"), "t");
    a.ok("begin; select pg_advisory_xact_lock(4)");
    assert_eq!(a.state("select 1/0"), "22012");
    assert_eq!(
        b.ok("select pg_try_advisory_lock(4)"),
        "t",
        "the block has failed"
    );
}

#[test]
fn locks_are_shown_as_postgresql_shows_them() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("select pg_advisory_lock(-5), pg_advisory_lock_shared(1, -2)");
    a.ok("begin; select pg_advisory_xact_lock(-5)");
    b.ok("select pg_advisory_lock_shared(1, -2)");
    assert_eq!(
        a.ok(SHOWN),
        "1|4294967294|2|ShareLock|t|1\n1|4294967294|2|ShareLock|t|2\n\
         4294967295|4294967291|1|ExclusiveLock|t|1"
    );
    a.ok("select pg_advisory_unlock_all()");
    assert_eq!(
        b.ok(SHOWN),
        "1|4294967294|2|ShareLock|t|2\n4294967295|4294967291|1|ExclusiveLock|t|1"
    );
    a.ok("commit");
    b.ok("discard all");
    assert_eq!(b.ok(SHOWN), "");
}

/// Waits until a session waits for a number.
fn until_waiting(client: &mut Client, count: usize) {
    let sql = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    while client.ok(sql) != count.to_string() {
        thread::yield_now();
    }
}

#[test]
fn who_comes_later_waits_behind_who_waits() {
    let (_database, [mut a, mut b, mut c, mut d]) = clients();
    a.ok("select pg_advisory_lock_shared(9)");
    let alone = thread::spawn(move || {
        b.ok("select pg_advisory_lock(9)");
        b
    });
    until_waiting(&mut a, 1);
    assert_eq!(c.ok("select pg_try_advisory_lock_shared(9)"), "f");
    while d.ok("select pg_blocking_pids(2)") != "{1}" {
        thread::yield_now();
    }
    let shares = thread::spawn(move || {
        c.ok("select pg_advisory_lock_shared(9)");
        c
    });
    until_waiting(&mut a, 2);
    a.ok("select pg_advisory_unlock_shared(9)");
    let mut b = alone.join().unwrap();
    until_waiting(&mut a, 1);
    b.ok("select pg_advisory_unlock(9)");
    shares.join().unwrap();
}

#[test]
fn waits_end_by_limits_and_leave_nothing_behind() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("select pg_advisory_lock(1)");
    b.ok("set lock_timeout = 20");
    assert_eq!(b.state("select pg_advisory_lock(1)"), "55P03");
    b.ok("set lock_timeout = 0; set statement_timeout = 20");
    assert_eq!(b.state("select pg_advisory_xact_lock(1)"), "57014");
    assert_eq!(a.ok(SHOWN), "0|1|1|ExclusiveLock|t|1");
}

/// Both sides of a circle, as states: one has to be `40P01`, the other nothing.
fn circle(mut a: Client, mut b: Client, first: &'static str, second: &'static str) {
    let run = |client: &mut Client, sql: &str| {
        let mut heard = Heard::default();
        let done = client.session.simple_query(sql, &mut heard);
        let state = done.map_or_else(|error| error.sqlstate().to_string(), |_| String::new());
        client.ok(if state.is_empty() {
            "commit"
        } else {
            "rollback"
        });
        client.ok("select pg_advisory_unlock_all()");
        state
    };
    let one = thread::spawn(move || run(&mut a, first));
    let other = thread::spawn(move || run(&mut b, second));
    let mut states = [one.join().unwrap(), other.join().unwrap()];
    states.sort();
    assert_eq!(states, ["", "40P01"], "{first} / {second}");
}

#[test]
fn circles_of_numbers_rows_and_tables_are_found() {
    for (before_a, before_b, first, second) in [
        (
            "begin; select pg_advisory_lock(1)",
            "begin; select pg_advisory_xact_lock(2)",
            "select pg_advisory_lock(2)",
            "select pg_advisory_xact_lock(1)",
        ),
        (
            "begin; update t set n = 1 where id = 1",
            "begin; select pg_advisory_lock(1)",
            "select pg_advisory_lock(1)",
            "update t set n = 2 where id = 1",
        ),
        (
            "begin; lock table t",
            "select pg_advisory_lock(1); begin",
            "select pg_advisory_xact_lock(1)",
            "lock table t",
        ),
        (
            "begin; select pg_advisory_lock_shared(1)",
            "begin; select pg_advisory_lock_shared(1)",
            "select pg_advisory_lock(1)",
            "select pg_advisory_lock(1)",
        ),
    ] {
        let (_database, [mut a, mut b]) = clients();
        a.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
        a.ok(before_a);
        b.ok(before_b);
        circle(a, b, first, second);
    }
}

#[test]
fn a_statement_that_is_run_again_takes_and_releases_once() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
    b.ok("select pg_advisory_lock(6), pg_advisory_lock(6)");
    a.ok("begin; update t set n = 1 where id = 1");
    let waiter = thread::spawn(move || {
        let sql = "update t set n = n + 1
            where id = 1 and pg_advisory_lock(5)::text = '' and pg_advisory_unlock(6)";
        b.ok(sql);
        b
    });
    while a.ok("select pg_blocking_pids(2)") != "{1}" {
        thread::yield_now();
    }
    a.ok("commit");
    let mut b = waiter.join().unwrap();
    assert_eq!(b.ok("select n from t"), "2");
    assert_eq!(
        b.ok("select pg_advisory_unlock(5), pg_advisory_unlock(6)"),
        "t|t"
    );
    let heard = b.hear("select pg_advisory_unlock(5), pg_advisory_unlock(6)");
    assert_eq!(heard.text(), "f|f");
}

#[test]
fn lastval_is_of_the_sequence_that_was_drawn_of_last() {
    let (_database, [mut a, mut b]) = clients();
    assert_eq!(a.state("select lastval()"), "55000");
    a.ok("create sequence s; create sequence t start 10");
    a.ok("select nextval('s'), nextval('t'); select nextval('s')");
    assert_eq!(a.ok("select lastval(), currval('t')"), "2|10");
    a.ok("select setval('t', 70)");
    assert_eq!(a.ok("select lastval(), currval('t')"), "2|70");
    assert_eq!(b.state("select lastval()"), "55000", "of each session");
    a.ok("create table r (id serial, x int); insert into r (x) values (1), (2)");
    assert_eq!(a.ok("select lastval()"), "2");
    a.ok("drop table r");
    assert_eq!(a.state("select lastval()"), "55000");
    a.ok("select nextval('s'); discard sequences");
    assert_eq!(a.state("select lastval()"), "55000");
}

#[test]
fn regress_a_rollback_undoes_restart_identity() {
    let directory = std::sync::Arc::new(vellum_io::MemoryDirectory::new());
    let database = super::client::database_in(&directory);
    let mut a = Client::of(&database);
    a.ok("create table t (id serial, g int generated always as identity (start 5))");
    a.ok("insert into t default values; insert into t default values");
    a.ok("begin; truncate t restart identity; insert into t default values");
    assert_eq!(a.ok("select * from t"), "1|5");
    a.ok("rollback; insert into t default values");
    assert_eq!(a.ok("select * from t order by 1"), "1|5\n2|6\n3|7");
    a.ok("begin; savepoint s; truncate t restart identity; rollback to s");
    a.ok("insert into t default values; commit");
    assert_eq!(a.ok("select max(id), max(g) from t"), "4|8");
    a.ok("truncate t restart identity; insert into t default values");
    assert_eq!(a.ok("select * from t"), "1|5");
    assert_eq!(
        a.ok("select last_value from pg_sequences order by 1"),
        "1\n5"
    );
    drop((a, database));
    let database = super::client::database_in(&directory);
    let mut a = Client::of(&database);
    a.ok("insert into t default values");
    // What was drawn ahead is skipped by a restart, and nothing is given out twice.
    assert_eq!(
        a.ok("select count(distinct id), count(distinct g), min(id), min(g) from t"),
        "2|2|1|5"
    );
    assert_eq!(a.ok("select max(id) < 100 from t"), "t");
}

/// Symptom: `40P01` without a circle. Cause: who waited had been given the lock, and had not looked yet, when the other one came to wait for it. Guard: W4 of `lock/waits`.
#[test]
fn regress_a_lock_that_was_given_back_is_waited_for_by_nobody() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
    b.ok("begin; select pg_advisory_lock(7)");
    let points = TestPoints::new();
    let entered = points.pause("advisory: a wait is entered");
    let waits = thread::spawn(move || {
        let _entered = points.enter();
        a.ok("begin; update t set n = 1; select pg_advisory_lock(7)");
        a
    });
    entered.wait_reached();
    assert_eq!(b.ok("select pg_advisory_unlock(7)"), "t");
    let (tell, told) = channel();
    let updates = thread::spawn(move || {
        let mut heard = Heard::default();
        let done = b.session.simple_query("update t set n = n + 1", &mut heard);
        let done = done.map(|_| heard.tags).map_err(|error| error.to_string());
        tell.send(()).unwrap();
        (b, done)
    });
    // It is not to be answered before the other one has ended.
    let early = told.recv_timeout(Duration::from_millis(100));
    entered.release();
    let mut a = waits.join().unwrap();
    a.ok("commit");
    let (mut b, done) = updates.join().unwrap();
    assert_eq!(done, Ok(vec!["UPDATE 1".to_owned()]));
    assert!(early.is_err());
    b.ok("commit");
    assert_eq!(b.ok("select n from t"), "2");
}
