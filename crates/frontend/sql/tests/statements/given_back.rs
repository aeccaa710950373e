//! Gates that were taken behind a savepoint are given back with what was done there, and no others.

use super::client::{Client, Heard, assert_sound, database};
use std::thread::{self, JoinHandle};
use vellum_base::random::Random;
use vellum_base::replay;
use vellum_sql::SqlDatabase;

const SETUP: &str = "create type mood as enum ('a', 'b'); create schema s;
    create table t (id int primary key, n int, m mood); insert into t values (1, 1, 'a'), (2, 2, 'b');
    create table u (id int primary key); insert into u values (1)";

/// What takes the gate of `t`, of a type or of a schema, alone or with others.
const TAKES: [&str; 17] = [
    "lock table t",
    "lock table t in row exclusive mode",
    "insert into t values (3, 3, 'a')",
    "update t set n = 5",
    "delete from t",
    "truncate t",
    "alter table t add z int default 7",
    "alter table t alter n type bigint",
    "alter table t rename to z",
    "create unique index z on t (n)",
    "drop table t",
    "create table z (id int references t)",
    "create view z as select * from t",
    "create table s.z (m mood)",
    "alter type mood rename value 'a' to 'z'",
    "drop schema s",
    "create table z as select * from t; insert into t select id + 10, n, m from z",
];

/// What others do then, each in a transaction of its own: none of it waits.
const OTHERS: [&str; 5] = [
    "insert into t values (9, 9, 'b')",
    "alter table t add other int default 4",
    "create unique index other on t (n)",
    "alter type mood rename value 'b' to 'c'",
    "create table s.other (n int)",
];

fn clients<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    Client::of(&database).ok(SETUP);
    let clients = [(); N].map(|()| Client::of(&database));
    (database, clients)
}

#[test]
fn regress_rollback_to_gives_gates_back() {
    for takes in TAKES {
        // By hand, by an error, and by a block that handles one.
        for end in [
            "rollback to a",
            "rollback to b; rollback to a; release a",
            "select 1 / 0",
            "",
        ] {
            let (database, [mut a, mut b]) = clients();
            b.ok("set lock_timeout = '2s'");
            a.ok("begin; insert into u values (2)");
            if end.is_empty() {
                let statements = takes.replace('\'', "''");
                a.ok(&format!(
                    "do 'begin {statements}; raise ''no''; exception when others then end'"
                ));
            } else {
                a.ok(&format!("savepoint a; savepoint b; {takes}"));
                match end {
                    "select 1 / 0" => assert_eq!(a.state(end), "22012"),
                    _ => drop(a.ok(end)),
                }
            }
            for other in OTHERS {
                b.ok(other);
            }
            if end == "select 1 / 0" {
                a.ok("rollback to a");
            }
            // It sees what they have done, and goes on.
            assert_eq!(
                a.ok("select count(*), sum(other) from t"),
                "3|12",
                "{takes}, {end}"
            );
            assert_eq!(
                a.state("insert into t values (10, 9, 'c')"),
                "23505",
                "{takes}"
            );
            a.ok("rollback");
            assert_eq!(
                b.ok("select string_agg(concat(id, n, m), ' ' order by id) from t"),
                "11a 22c 99c",
                "{takes}, {end}"
            );
            assert_sound(&database);
        }
    }
}

#[test]
fn what_was_done_there_is_done_again_behind_it() {
    for takes in TAKES {
        let (database, [mut a, mut b]) = clients();
        b.ok("set lock_timeout = 100");
        a.ok(&format!(
            "begin; savepoint a; {takes}; rollback to a; {takes}"
        ));
        let kept = match takes {
            "alter type mood rename value 'a' to 'z'" => "alter type mood rename value 'b' to 'c'",
            "drop schema s" | "create table s.z (m mood)" => "drop schema s",
            _ => "alter table t add other int",
        };
        assert_eq!(b.state(kept), "55P03", "{takes}");
        a.ok("commit");
        b.ok("set lock_timeout = '30s'");
        // What is there then may not be altered so any more.
        let _ = b.session.simple_query(kept, &mut Heard::default());
        assert_sound(&database);
    }
}

/// What was written before the savepoint keeps its gates, as it held them.
#[test]
fn what_was_taken_before_a_savepoint_is_kept() {
    for (before, behind) in [
        ("insert into t values (3, 3, 'a')", "lock table t"),
        ("insert into t values (3, 3, 'a')", "truncate t"),
        (
            "insert into t values (3, 3, 'a')",
            "alter table t add z int",
        ),
        ("update t set n = 3", "insert into t values (3, 3, 'a')"),
        (
            "create view v as select * from t",
            "drop view v; alter table t drop n",
        ),
        (
            "savepoint c; insert into t values (3, 3, 'a'); release c",
            "drop table t",
        ),
    ] {
        let (database, [mut a, mut b]) = clients();
        b.ok("set lock_timeout = 100");
        a.ok(&format!("begin; {before}; savepoint a; {behind}"));
        assert_eq!(b.state("alter table t add other int"), "55P03", "{before}");
        a.ok("rollback to a");
        // Others write, but change no definition.
        b.ok("insert into t values (4, 4, 'b')");
        for change in [
            "alter table t add other int",
            "create index on t (n)",
            "truncate t",
            "drop table t",
        ] {
            assert_eq!(b.state(change), "55P03", "{before}, {behind}, {change}");
        }
        a.ok("commit");
        b.ok("drop view if exists v; alter table t add other int; insert into t values (5, 5, 'a', 5)");
        assert_sound(&database);
    }
    // Alone before it, alone behind it.
    let (_database, [mut a, mut b]) = clients();
    b.ok("set lock_timeout = 100");
    a.ok("begin; alter table t add z int; savepoint a; insert into t values (3, 3, 'a', 3); lock table u; rollback to a");
    assert_eq!(b.state("insert into t values (4, 4, 'b')"), "55P03");
    b.ok("insert into u values (4)");
    a.ok("release a; commit");
    b.ok("insert into t values (4, 4, 'b', 4)");
}

/// Says something on a thread of its own: its SQLSTATE, or nothing.
fn aside(mut client: Client, sql: &'static str) -> JoinHandle<(Client, String)> {
    thread::spawn(move || {
        let done = client.session.simple_query(sql, &mut Heard::default());
        let state = done.err().map(|error| error.sqlstate().to_string());
        (client, state.unwrap_or_default())
    })
}

fn until_they_wait(client: &mut Client, count: &str) {
    while client.ok("select count(*) from pg_locks where not granted") != count {
        thread::yield_now();
    }
}

#[test]
fn who_waits_for_a_gate_that_is_given_back_goes_on() {
    for (behind, waits) in [
        ("lock table t", "insert into t values (9, 9, 'a')"),
        (
            "insert into t values (9, 9, 'a')",
            "alter table t add other int",
        ),
        ("alter table t add z int", "alter table t add z int"),
        ("drop schema s", "create table s.z (n int)"),
    ] {
        let (database, [mut a, b, mut watch]) = clients();
        a.ok(&format!(
            "begin; insert into u values (7); savepoint a; {behind}"
        ));
        let b = aside(b, waits);
        until_they_wait(&mut watch, "1");
        a.ok("rollback to a");
        assert_eq!(b.join().unwrap().1, "", "{behind}");
        a.ok("commit");
        assert_sound(&database);
    }
}

/// A circle over a gate that was given back, and whose waiter has not looked since, is none.
#[test]
fn no_circle_goes_over_a_gate_that_was_given_back() {
    for _ in 0..20 {
        let (_database, [mut a, mut b, mut watch]) = clients();
        for client in [&mut a, &mut b] {
            client.ok("set lock_timeout = '30s'");
        }
        b.ok("begin; update u set id = 5 where id = 1");
        a.ok("begin; savepoint a; lock table t");
        let b = aside(b, "insert into t values (9, 9, 'a'); commit");
        until_they_wait(&mut watch, "1");
        // At once: whoever waits looks every 20 ms.
        let a = aside(a, "rollback to a; update u set id = 6 where id = 1; commit");
        assert_eq!(b.join().unwrap().1, "");
        assert_eq!(a.join().unwrap().1, "");
        assert_eq!(watch.ok("select deadlocks from pg_stat_database"), "0");
    }
}

/// What the session is shown to hold is what it holds.
#[test]
fn gates_that_were_given_back_are_not_shown() {
    let (_database, [mut a, mut watch]) = clients();
    let held =
        "select string_agg(mode, ' ' order by mode) from pg_locks where relation = 't'::regclass";
    a.ok("begin; insert into t values (3, 3, 'a')");
    let before = watch.ok(held);
    a.ok("savepoint a; lock table t; lock table u");
    assert_ne!(watch.ok(held), before);
    a.ok("rollback to a");
    assert_eq!(watch.ok(held), before);
    assert_eq!(
        watch.ok("select count(*) from pg_locks where relation = 'u'::regclass"),
        "0"
    );
    a.ok("rollback");
    assert_eq!(watch.ok(held), "~");
}

#[test]
fn under_repeatable_read_what_others_change_meanwhile_is_not_written_any_more() {
    let (_database, [mut a, mut b]) = clients();
    b.ok("set lock_timeout = '2s'");
    a.ok("begin isolation level repeatable read; select count(*) from t; savepoint a; insert into t values (3, 3, 'a')");
    a.ok("rollback to a");
    b.ok("alter table t add z int not null default 1");
    assert_eq!(a.ok("select * from t where id = 1"), "1|1|a");
    assert_eq!(a.state("insert into t values (3, 3, 'a')"), "40001");
    a.ok("rollback to a; insert into u values (3); commit");
    assert_eq!(b.ok("select count(*) from u"), "2");
}

/// A load ends with its savepoint, and keeps nobody out behind it.
#[test]
fn a_load_behind_a_savepoint_is_given_back() {
    let (database, [mut a, mut b]) = clients();
    b.ok("set lock_timeout = '2s'");
    a.ok("begin; savepoint a; truncate t");
    let rows: String = (1..=400).map(|id| format!("{id}\t{id}\ta\n")).collect();
    assert_eq!(
        a.copy("copy t from stdin", &rows, 1 << 16).tags,
        ["COPY 400"]
    );
    a.ok("rollback to a");
    b.ok("insert into t values (9, 9, 'a'); delete from t where id = 1");
    assert_eq!(a.ok("select count(*) from t"), "2");
    a.ok("insert into t values (10, 10, 'b'); commit");
    assert_eq!(
        b.ok("select string_agg(id::text, ' ' order by id) from t"),
        "2 9 10"
    );
    assert_sound(&database);
}

/// Sessions at random over two tables, with savepoints, definitions and rows: none hangs, and what is left is sound.
#[test]
fn prop_gates_are_given_back_at_random() {
    let (seed, rounds) = (replay::seed(), replay::rounds(30));
    println!("VELLUM_SEED={seed} runs it again");
    let database = database();
    Client::of(&database).ok(SETUP);
    let threads: Vec<_> = (0..3u64)
        .map(|number| {
            let mut client = Client::of(&database);
            thread::spawn(move || {
                let mut random = Random::new(seed ^ (number + 1));
                client.ok("set lock_timeout = '20s'");
                let mut said = Vec::new();
                for round in 0..rounds {
                    let mut failed = false;
                    for step in [
                        "begin",
                        "",
                        "savepoint a",
                        "",
                        "savepoint b",
                        "",
                        "",
                        "",
                        "",
                        "end",
                    ] {
                        let key = 1000 * (number + 1) + random.below(50);
                        let any = [
                            format!(
                                "insert into t values ({key}, {round}, 'a') on conflict do nothing"
                            ),
                            format!("update t set n = n + 1 where id = {key}"),
                            format!("delete from t where id = {key}"),
                            "alter table t add z int default 3".to_owned(),
                            "alter table t drop column if exists z".to_owned(),
                            "create index if not exists i on t (n)".to_owned(),
                            "drop index if exists i".to_owned(),
                            "truncate u".to_owned(),
                            format!("insert into u values ({key}) on conflict do nothing"),
                            "lock table u in share mode".to_owned(),
                            "rollback to a".to_owned(),
                            "rollback to b".to_owned(),
                        ];
                        let sql = match step {
                            "" => any[random.below(any.len() as u64) as usize].clone(),
                            "end" if random.below(3) == 0 => "rollback".to_owned(),
                            "end" => "commit".to_owned(),
                            step => step.to_owned(),
                        };
                        let done = client.session.simple_query(&sql, &mut Heard::default());
                        said.push(sql);
                        if let Err(error) = done {
                            let state = error.sqlstate().to_string();
                            assert!(
                                ["40P01", "40001", "42701", "3B001", "25P02", "42P07"]
                                    .contains(&&*state),
                                "{error}: {said:?}, seed {seed}"
                            );
                            failed = true;
                        }
                    }
                    if failed {
                        let _ = client
                            .session
                            .simple_query("rollback", &mut Heard::default());
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_sound(&database);
    let mut client = Client::of(&database);
    assert_eq!(
        client.ok("select count(*) from pg_locks where locktype = 'relation'"),
        "0"
    );
}
