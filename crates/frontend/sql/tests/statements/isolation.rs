//! Two and three sessions.

use super::client::{Client, database};
use std::thread;
use vellum_sql::TransactionStatus;

#[test]
fn a_failed_block_refuses_everything_but_its_end() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key)");
    client.ok("begin");
    client.ok("insert into t values (1)");
    client.ok("savepoint s");
    assert_eq!(client.state("insert into t values (1)"), "23505");
    assert_eq!(client.session.status(), TransactionStatus::Failed);
    assert_eq!(client.state("select 1"), "25P02");
    client.ok("rollback to s");
    assert_eq!(client.session.status(), TransactionStatus::InBlock);
    client.ok("insert into t values (2)");
    client.ok("commit");
    assert_eq!(client.ok("select * from t"), "1\n2");
    client.ok("begin");
    assert_eq!(client.state("select 1/0"), "22012");
    assert_eq!(client.hear("commit").tags, ["ROLLBACK"]);
    assert_eq!(client.session.status(), TransactionStatus::Idle);
    assert_eq!(client.state("begin isolation level serializable"), "0A000");
    assert_eq!(client.state("savepoint s"), "25P01");
}

#[test]
fn statements_of_one_text_are_one_transaction() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key)");
    assert_eq!(
        client.state("insert into t values (1); insert into t values (1)"),
        "23505"
    );
    assert_eq!(client.ok("select count(*) from t"), "0");
}

#[test]
fn repeatable_read_sees_its_begin_and_read_committed_each_statement() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create table t (id int primary key, n int); insert into t values (1, 1)");
    b.ok("begin isolation level repeatable read");
    assert_eq!(b.ok("select n from t"), "1");
    let mut c = Client::of(&database);
    c.ok("begin");
    assert_eq!(c.ok("select n from t"), "1");
    a.ok("update t set n = 2");
    assert_eq!(b.ok("select n from t"), "1");
    assert_eq!(c.ok("select n from t"), "2");
    assert_eq!(b.state("update t set n = 3"), "40001");
    b.ok("rollback");
    c.ok("update t set n = n + 10");
    c.ok("commit");
    assert_eq!(a.ok("select n from t"), "12");
}

/// Its snapshot is older than what others committed before it took the table: rows written anew from it would undo that.
#[test]
fn regress_definitions_changed_in_an_old_snapshot_undo_nothing_that_others_committed() {
    for change in [
        "alter table t alter column n type text",
        "create index on t (n)",
        "alter table t add check (n > 0)",
        "alter table t add unique (n)",
    ] {
        for other in [
            "insert into t values (3, 3)",
            "update t set n = 20 where id = 2",
            "delete from t where id = 1",
            "delete from t",
        ] {
            let database = database();
            let (mut a, mut b) = (Client::of(&database), Client::of(&database));
            a.ok("create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)");
            b.ok("begin isolation level repeatable read");
            assert_eq!(b.ok("select count(*) from t"), "2");
            a.ok(other);
            let now = a.ok("select * from t order by id");
            assert_eq!(b.state(change), "40001", "{change} after {other}");
            b.ok("rollback");
            assert_eq!(a.ok("select * from t order by id"), now);
            // Who has seen it may.
            b.ok("begin isolation level repeatable read");
            b.ok(change);
            b.ok("commit");
            assert_eq!(a.ok("select * from t order by id"), now);
        }
    }
}

/// The target of a row may be gone for all but the old snapshot.
#[test]
fn regress_foreign_key_added_in_an_old_snapshot_finds_the_targets_that_are_there() {
    for parent in ["delete from p where id = 1", "delete from p"] {
        let database = database();
        let (mut a, mut b) = (Client::of(&database), Client::of(&database));
        a.ok("create table p (id int primary key); insert into p values (1), (2)");
        a.ok("create table c (id int primary key, p int); insert into c values (1, 1)");
        b.ok("begin isolation level repeatable read");
        assert_eq!(b.ok("select count(*) from p"), "2");
        a.ok(parent);
        let add = "alter table c add foreign key (p) references p";
        assert_eq!(b.state(add), "40001");
        b.ok("rollback");
        assert_eq!(a.state(add), "23503");
    }
}

#[test]
fn read_committed_waits_and_loses_no_update() {
    let database = database();
    let mut setup = Client::of(&database);
    setup.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
    let adders: Vec<_> = (0..4)
        .map(|_| {
            let mut client = Client::of(&database);
            thread::spawn(move || {
                for _ in 0..50 {
                    client.ok("begin");
                    client.ok("update t set n = n + 1 where id = 1");
                    client.ok("commit");
                }
            })
        })
        .collect();
    for adder in adders {
        adder.join().unwrap();
    }
    assert_eq!(setup.ok("select n from t"), "200");
}

#[test]
fn a_lock_timeout_ends_a_wait() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
    a.ok("begin; update t set n = 1");
    b.ok("set lock_timeout = 50");
    assert_eq!(b.state("update t set n = 2"), "55P03");
    assert_eq!(b.state("drop table t"), "55P03");
    b.ok("set lock_timeout = 0; set statement_timeout = 50");
    assert_eq!(b.state("update t set n = 2"), "57014");
    a.ok("commit");
    assert_eq!(a.ok("select n from t"), "1");
}

#[test]
fn an_index_that_others_make_is_kept_up() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create table t (id int primary key, n int); insert into t values (1, 1)");
    b.ok("begin isolation level repeatable read; select 1 from t");
    a.ok("create index on t (n)");
    assert_eq!(
        b.ok("select id from t where n = 1"),
        "1",
        "its image has no index"
    );
    assert_eq!(
        b.state("insert into t values (2, 2)"),
        "40001",
        "it would miss the index"
    );
    b.ok("rollback");
    b.ok("begin; select 1");
    a.ok("create index on t (n, id)");
    b.ok("insert into t values (2, 2); commit");
    assert_eq!(a.ok("select id from t where n = 2"), "2");
}

#[test]
fn a_read_only_transaction_writes_nothing() {
    let mut client = Client::new();
    client.ok("create table t (id int)");
    client.ok("begin read only");
    assert_eq!(client.state("insert into t values (1)"), "25006");
    client.ok("rollback; begin read only");
    assert_eq!(client.state("drop table t"), "25006");
    client.ok("rollback");
}

#[test]
fn regress_the_first_statement_of_a_block_sees_what_was_committed_before_it() {
    let database = database();
    let (mut a, mut b, mut c) = (
        Client::of(&database),
        Client::of(&database),
        Client::of(&database),
    );
    a.ok("create table t (id int primary key, n int); insert into t values (1, 1)");
    b.ok("begin");
    c.ok("begin isolation level repeatable read");
    a.ok("update t set n = 2");
    assert_eq!(b.ok("select n from t"), "2");
    assert_eq!(c.ok("select n from t"), "2");
    a.ok("update t set n = 3");
    assert_eq!(b.ok("select n from t"), "3");
    assert_eq!(c.ok("select n from t"), "2");
}
