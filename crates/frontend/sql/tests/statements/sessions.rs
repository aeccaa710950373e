//! What a session does to another one, and what prepared statements keep.

use super::client::{Client, Heard, database};
use vellum_sql::{Parameters, SessionOptions, SqlDatabase};

fn client(database: &SqlDatabase, user: &str, process_id: i32) -> Client {
    let options = SessionOptions {
        user: user.to_owned(),
        database: "vellum".to_owned(),
        process_id,
        ..SessionOptions::default()
    };
    Client {
        session: database.session(options).unwrap(),
    }
}

/// Runs a statement that sleeps in session 7, does `act` when it does, and returns how the statement ended.
fn while_it_sleeps(database: &SqlDatabase, act: impl FnOnce(&mut Client)) -> (String, String) {
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| client(database, "vellum", 7).fails("select pg_sleep(3600)"));
        let mut other = client(database, "vellum", 8);
        let asleep = "select count(*) from pg_stat_activity where pid = 7 and state = 'active'";
        while other.ok(asleep) != "1" {
            std::thread::yield_now();
        }
        act(&mut other);
        sleeper.join().unwrap()
    })
}

#[test]
fn statements_and_sessions_are_ended_by_their_numbers() {
    let database = database();
    let (state, message) = while_it_sleeps(&database, |other| {
        assert_eq!(other.ok("select pg_cancel_backend(7)"), "t");
    });
    assert_eq!(state, "57014");
    assert_eq!(message, "canceling statement due to user request");
    let (state, _) = while_it_sleeps(&database, |other| {
        assert_eq!(other.ok("select pg_terminate_backend(7)"), "t");
    });
    assert_eq!(state, "57P01");
    let mut one = client(&database, "vellum", 9);
    let heard = one.hear("select pg_cancel_backend(12345)");
    assert_eq!(heard.text(), "f");
    assert_eq!(
        heard.notices,
        ["PID 12345 is not a PostgreSQL server process"]
    );
    assert_eq!(one.ok("select pg_terminate_backend(null)"), "~");
    one.ok("set statement_timeout = 1");
    assert_eq!(one.state("select pg_sleep(3600)"), "57014");
    one.ok("set statement_timeout = 0; select pg_sleep(0), pg_sleep(-1)");
    // Who means its own session hears nothing but that.
    let own = "select pg_cancel_backend(pg_backend_pid())";
    assert_eq!(one.state(own), "57014");
    let own = "select pg_terminate_backend(pg_backend_pid())";
    assert_eq!(one.state(own), "57P01");
}

#[test]
fn who_is_no_superuser_ends_only_sessions_of_roles_that_it_belongs_to() {
    let database = database();
    let mut first = client(&database, "vellum", 1);
    first.ok("create role a login; create role b login; create role c login; grant b to c");
    let _b = client(&database, "b", 3);
    let mut a = client(&database, "a", 2);
    let mut c = client(&database, "c", 4);
    assert_eq!(a.state("select pg_cancel_backend(1)"), "42501");
    assert_eq!(a.state("select pg_cancel_backend(3)"), "42501");
    assert_eq!(a.state("select pg_terminate_backend(3)"), "42501");
    assert_eq!(a.state("select pg_cancel_backend(2)"), "57014");
    assert_eq!(c.ok("select pg_cancel_backend(3)"), "t");
}

#[test]
fn a_named_statement_keeps_its_columns_or_is_refused() {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, b text); insert into t values (1, 'x')");
    let bind = |client: &mut Client, name: &str| {
        let done = client.session.bind("", name, Parameters::default(), &[]);
        let mut heard = Heard::default();
        let done = match done {
            Ok(()) => client.session.execute("", 0, &mut heard).map(|_| ()),
            Err(error) => Err(error),
        };
        let synced = client.session.sync();
        assert!(synced.is_ok());
        done.map(|()| heard.text())
            .map_err(|error| (error.sqlstate().to_string(), error.message().to_owned()))
    };
    client
        .session
        .parse("star", "select * from t", &[])
        .unwrap();
    client.session.parse("one", "select a from t", &[]).unwrap();
    client.ok("prepare p as select * from t");
    assert_eq!(bind(&mut client, "star").unwrap(), "1|x");
    client.ok("create index on t (b)");
    assert_eq!(bind(&mut client, "star").unwrap(), "1|x");
    client.ok("alter table t add column c int default 5");
    let refused = (
        "0A000".to_owned(),
        "cached plan must not change result type".to_owned(),
    );
    assert_eq!(bind(&mut client, "star"), Err(refused.clone()));
    assert_eq!(client.fails("execute p"), refused);
    // What it returns is the same.
    assert_eq!(bind(&mut client, "one").unwrap(), "1");
    client.session.close_statement("star");
    client
        .session
        .parse("star", "select * from t", &[])
        .unwrap();
    assert_eq!(bind(&mut client, "star").unwrap(), "1|x|5");
    assert_eq!(
        client.ok("select name, statement, from_sql from pg_prepared_statements order by 1"),
        "one|select a from t|f\np|prepare p as select * from t|t\nstar|select * from t|f"
    );
}

#[test]
fn a_block_that_has_failed_is_in_nobodys_way() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)");
    a.ok("begin; update t set n = 10 where id = 1");
    assert_eq!(a.state("select 1/0"), "22012");
    // Without waiting.
    b.ok("set lock_timeout = 1; update t set n = n + 5 where id = 1");
    assert_eq!(a.state("rollback to s"), "3B001");
    assert_eq!(a.hear("commit").tags, ["ROLLBACK"]);
    a.ok("begin isolation level repeatable read; update t set n = 20 where id = 2; savepoint s; update t set n = 30 where id = 1");
    assert_eq!(a.state("select 1/0"), "22012");
    b.ok("update t set n = n + 5 where id = 1");
    assert_eq!(b.state("update t set n = 0 where id = 2"), "55P03");
    a.ok("rollback to s");
    assert_eq!(a.ok("select n from t order by id"), "6\n20");
    assert_eq!(a.state("select 1/0"), "22012");
    a.ok("rollback and chain");
    assert_eq!(a.ok("show transaction_isolation"), "repeatable read");
    a.ok("commit");
    assert_eq!(a.ok("select n from t order by id"), "11\n2");
    a.ok("begin isolation level repeatable read");
    assert_eq!(a.state("select 1/0"), "22012");
    a.ok("rollback and chain");
    assert_eq!(a.ok("show transaction_isolation"), "repeatable read");
}
