//! Deferred constraints of several sessions, in the extended protocol and over COPY. What PostgreSQL answers to one session is in the corpus
//! (`deferred`).

use super::client::{Client, Heard, database};
use std::thread;
use vellum_sql::SqlDatabase;

/// Children whose parents are looked at when the transaction commits, a key that may be shared until then, and so many clients.
fn family<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    let mut clients = [(); N].map(|()| Client::of(&database));
    clients[0].ok("create table p (id int primary key, n int);
        create table c (id int primary key, p int references p deferrable initially deferred);
        create table k (id int primary key, u int unique deferrable initially deferred, v int unique deferrable);
        insert into p values (1, 0), (2, 0);
        insert into k values (1, 1, 1), (2, 2, 2)");
    (database, clients)
}

/// The tags of a text, or the SQLSTATE of its error.
fn told(client: &mut Client, sql: &str) -> Vec<String> {
    let mut heard = Heard::default();
    match client.session.simple_query(sql, &mut heard) {
        Ok(_) => heard.tags,
        Err(error) => vec![error.sqlstate().to_string()],
    }
}

/// Says something that has to wait until another client says `then`.
fn waits(
    mut client: Client,
    sql: &'static str,
    other: &mut Client,
    then: &str,
) -> (Client, Vec<String>) {
    let waiter = thread::spawn(move || {
        let told = told(&mut client, sql);
        (client, told)
    });
    other.ok(then);
    waiter.join().unwrap()
}

#[test]
fn a_commit_sees_what_others_have_committed() {
    let (_database, [mut a, mut b]) = family();
    a.ok("begin; insert into c values (1, 3)");
    b.ok("insert into p values (3, 0)");
    a.ok("commit");
    assert_eq!(b.ok("select * from c"), "1|3");
    // Nothing is held before: the parent may go meanwhile.
    a.ok("begin; insert into c values (2, 2)");
    b.ok("delete from p where id = 2");
    assert_eq!(a.state("commit"), "23503");
    assert_eq!(a.ok("select count(*) from c"), "1");
    a.ok("begin; delete from p where id = 1");
    b.ok("begin; insert into c values (3, 1)");
    assert_eq!(b.ok("select count(*) from c"), "2");
    a.ok("commit");
    assert_eq!(b.state("commit"), "23503");
}

#[test]
fn a_commit_waits_for_who_deletes_a_parent() {
    for (end, expected) in [("commit", "23503"), ("rollback", "COMMIT")] {
        let (_database, [mut a, mut b]) = family();
        a.ok("begin; delete from p where id = 1");
        b.ok("begin; insert into c values (1, 1)");
        let (mut b, told) = waits(b, "commit", &mut a, end);
        assert_eq!(told, [expected]);
        let left = if end == "commit" { "0" } else { "1" };
        assert_eq!(b.ok("select count(*) from c"), left);
    }
}

#[test]
fn what_was_checked_is_held_until_the_transaction_ends() {
    let (_database, [mut a, mut b]) = family();
    a.ok("begin; insert into c values (1, 1); set constraints all immediate");
    b.ok("set lock_timeout = 20");
    assert_eq!(b.state("delete from p where id = 1"), "55P03");
    b.ok("update p set n = 1 where id = 1");
    a.ok("rollback");
    b.ok("delete from p where id = 1");
}

#[test]
fn under_repeatable_read_what_is_there_now_decides() {
    let (_database, [mut a, mut b]) = family();
    a.ok("begin isolation level repeatable read; insert into c values (1, 2)");
    b.ok("delete from p where id = 2");
    assert_eq!(
        a.state("commit"),
        "40001",
        "it sees the parent that is gone"
    );
    a.ok("begin isolation level repeatable read; delete from p where id = 1");
    assert_eq!(b.ok("select count(*) from p"), "1");
    a.ok("rollback");
    a.ok("begin isolation level repeatable read; select * from k");
    b.ok("insert into k values (3, 3, 3)");
    a.ok("insert into k values (4, 3, 4)");
    assert_eq!(a.state("commit"), "23505", "of a row that it does not see");
    a.ok("begin isolation level repeatable read; select * from k");
    b.ok("delete from k where id = 3");
    a.ok("insert into k values (4, 3, 4); commit");
}

#[test]
fn of_two_that_take_one_key_the_second_waits_for_the_first() {
    for (end, expected) in [("commit", "23505"), ("rollback", "COMMIT")] {
        let (_database, [mut a, mut b]) = family();
        a.ok("begin; insert into k values (3, 3, 3)");
        b.ok("begin; insert into k values (4, 3, 4)");
        let (mut b, told) = waits(b, "commit", &mut a, end);
        assert_eq!(told, [expected]);
        assert_eq!(b.ok("select count(*) from k where u = 3"), "1");
    }
    for (end, expected) in [("commit", "23505"), ("rollback", "INSERT 0 1")] {
        let (_database, [mut a, b]) = family();
        a.ok("begin; insert into k values (3, 3, 3)");
        let (mut b, told) = waits(b, "insert into k values (4, 4, 3)", &mut a, end);
        assert_eq!(told, [expected]);
        assert_eq!(b.ok("select count(*) from k where v = 3"), "1");
    }
}

/// Symptom: two deletes that both had children fall back on one default left two of them under a deferrable key. Cause: keys were claimed
/// before a statement's actions were taken, and those put rows under keys, too.
#[test]
fn keys_that_actions_come_to_are_claimed() {
    for timing in ["immediate", "deferred"] {
        for (end, expected) in [("commit", "23505"), ("rollback", "COMMIT")] {
            let (_database, [mut a, mut b]) = family();
            a.ok(&format!(
                "create table q (id int primary key);
                 create table d (id int primary key, f int default 0 references q on delete set default,
                     unique (f) deferrable initially {timing});
                 insert into q values (0), (1), (2); insert into d values (1, 1), (2, 2)"
            ));
            a.ok("begin; delete from q where id = 1");
            b.ok("begin");
            let (mut b, told) = waits(b, "delete from q where id = 2; commit", &mut a, end);
            assert_eq!(told.last().map(String::as_str), Some(expected), "{timing}");
            b.ok("rollback");
            assert_eq!(b.ok("select count(*) from d where f = 0"), "1", "{timing}");
        }
    }
}

#[test]
fn who_takes_a_key_waits_for_who_gives_it_up() {
    for (end, expected) in [("commit", "INSERT 0 1"), ("rollback", "23505")] {
        let (_database, [mut a, b]) = family();
        a.ok("begin; delete from k where id = 2");
        let (mut b, told) = waits(b, "insert into k values (3, 3, 2)", &mut a, end);
        assert_eq!(told, [expected]);
        assert_eq!(b.ok("select count(*) from k where v = 2"), "1");
    }
}

#[test]
fn a_key_that_was_claimed_and_taken_back_is_free() {
    let (_database, [mut a, mut b]) = family();
    a.ok("begin; savepoint s; insert into k values (3, 3, 3); rollback to s");
    b.ok("insert into k values (3, 3, 3)");
    a.ok("commit");
    assert_eq!(a.ok("select count(*) from k"), "3");
}

#[test]
fn keys_that_are_swapped_by_many_end_as_a_permutation() {
    let (database, [mut a]) = family();
    a.ok("insert into k select g, g, g from generate_series(3, 20) g");
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let mut client = Client::of(&database);
            thread::spawn(move || {
                for round in 0..30 {
                    let (one, other) = (1 + (worker * 7 + round) % 20, 1 + (worker + round * 3) % 20);
                    if one == other {
                        continue;
                    }
                    let sql = format!(
                        "update k set u = case id when {one} then (select u from k where id = {other})
                             else (select u from k where id = {one}) end where id in ({one}, {other})"
                    );
                    if told(&mut client, &sql)[0].starts_with("UPDATE") && round % 5 == 0 {
                        client.ok("begin");
                        let sql = format!("update k set u = 100 where id = {one}");
                        told(&mut client, &sql);
                        client.ok("rollback");
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(
        a.ok("select count(*), count(distinct u), min(u), max(u) from k"),
        "20|20|1|20"
    );
}

#[test]
fn a_copy_leaves_its_checks_to_the_commit() {
    let (_database, [mut a]) = family();
    a.ok("begin");
    let lines: String = (0..1000).map(|n| format!("{n}\t{}\n", 1 + n % 3)).collect();
    a.copy("copy c from stdin", &lines, 1000);
    a.ok("insert into p values (3, 0); commit");
    assert_eq!(a.ok("select count(*) from c"), "1000");
    a.ok("begin");
    a.copy("copy c from stdin", "2000\t9\n", 100);
    assert_eq!(a.state("commit"), "23503");
}

#[test]
fn a_statement_outside_a_block_is_checked_when_it_ends() {
    let (_database, [mut a]) = family();
    assert_eq!(a.state("insert into c values (1, 9)"), "23503");
    a.ok("insert into c values (1, 9); insert into p values (9, 0)");
    assert_eq!(
        a.state("insert into c values (2, 8); insert into p values (7, 0)"),
        "23503"
    );
    assert_eq!(a.ok("select count(*) from p"), "3");
    a.session
        .parse("", "insert into c values (3, 8)", &[])
        .unwrap();
    a.session
        .bind("", "", vellum_sql::Parameters::default(), &[])
        .unwrap();
    let mut heard = Heard::default();
    a.session.execute("", 0, &mut heard).unwrap();
    let error = a.session.sync().unwrap_err();
    assert_eq!(error.sqlstate().to_string(), "23503");
    assert_eq!(a.ok("select count(*) from c"), "1");
}

#[test]
fn an_error_at_commit_ends_the_block() {
    let (_database, [mut a]) = family();
    a.ok("begin; insert into c values (1, 9)");
    assert_eq!(a.state("commit"), "23503");
    assert_eq!(a.session.status(), vellum_sql::TransactionStatus::Idle);
    a.ok("begin; insert into c values (1, 9)");
    assert_eq!(a.state("set constraints all immediate"), "23503");
    assert_eq!(a.state("select 1"), "25P02");
    assert_eq!(a.hear("commit").tags, ["ROLLBACK"]);
}

#[test]
fn checks_do_not_grow_with_rows_of_one_key() {
    let (_database, [mut a]) = family();
    a.ok("begin; insert into c select g, 1 + g % 2 from generate_series(1, 20000) g");
    a.ok("update c set p = 3 - p; set constraints all immediate");
    // The locks that the checks took: one a parent.
    let held = "select count(*) from vellum_locks";
    let before: u32 = a.ok(held).parse().unwrap();
    assert!(before < 10, "{before} locks");
    a.ok("commit");
}
