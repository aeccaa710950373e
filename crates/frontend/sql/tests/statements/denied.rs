//! What a role without rights is told: at once, whoever is in its way, and it keeps nobody out.

use super::client::{Client, Heard, database};
use std::thread::{self, JoinHandle};
use vellum_sql::SqlDatabase;

/// Everything is the first role's in a schema that all may look into; `own` is a schema in which `ca` may make tables.
const SETUP: &str = "create role ca login; create schema sc; grant usage on schema sc to ca; create schema own authorization ca;
    create type sc.mood as enum ('a'); create domain sc.d as int;
    create table sc.t (id int primary key, n int, m sc.mood, k sc.d); create index i on sc.t (n);
    create view sc.v as select 1 as n; create sequence sc.q; insert into sc.t values (1, 1)";

/// What needs a gate, and a right that `ca` does not have.
const DENIED: [&str; 40] = [
    "truncate sc.t",
    "truncate only sc.t restart identity cascade",
    "do $$begin truncate sc.t; end$$",
    "alter table sc.t add z int",
    "alter table sc.t drop n",
    "alter table sc.t rename n to z",
    "alter table sc.t rename to z",
    "alter table sc.t owner to ca",
    "alter table sc.t set schema own",
    "alter table sc.t disable trigger all",
    "alter table sc.t alter n type bigint",
    "alter table sc.t add unique (n)",
    "alter table sc.t cluster on t_pkey",
    "alter table if exists sc.t set (fillfactor = 50)",
    "create index on sc.t (n)",
    "cluster sc.t using t_pkey",
    "cluster sc.t",
    "create table own.e (id int references sc.t)",
    "alter table own.c add foreign key (id) references sc.t",
    "drop table sc.t",
    "drop table if exists sc.t cascade",
    "drop index sc.i",
    "alter index sc.i rename to z",
    "alter index sc.i set (fillfactor = 50)",
    "insert into sc.t values (9)",
    "insert into sc.t select 1 where false",
    "update sc.t set n = 1",
    "delete from sc.t",
    "with w as (delete from sc.t returning id) select * from w",
    "merge into sc.t using (values (1)) as s (id) on t.id = s.id when matched then delete",
    "select * from sc.t for update",
    "lock table sc.t; select 1",
    "copy sc.t from stdin",
    "copy (delete from sc.t returning id) to stdout",
    "alter type sc.mood add value 'b'",
    "drop type sc.mood cascade",
    "alter domain sc.d set not null",
    "create or replace view sc.v as select 2 as n",
    "alter sequence sc.q restart",
    "drop schema sc cascade",
];

fn clients<const N: usize>(setup: &str) -> (SqlDatabase, [Client; N]) {
    let database = database();
    let clients = [(); N].map(|()| Client::of(&database));
    Client::of(&database).ok(setup);
    (database, clients)
}

/// The SQLSTATE of what must fail, before a COPY was told to begin.
#[track_caller]
fn denied(client: &mut Client, sql: &str) -> String {
    let mut heard = Heard::default();
    let done = client.session.simple_query(sql, &mut heard);
    assert_eq!(heard.copies, 0, "{sql}");
    let error = done
        .err()
        .unwrap_or_else(|| panic!("{sql}: {}", heard.text()));
    error.sqlstate().to_string()
}

#[test]
fn regress_who_has_no_right_waits_for_nobody() {
    let (database, [mut owner]) = clients(SETUP);
    let mut ca = Client::of_user(&database, "ca");
    ca.ok("create table own.c (id int); set lock_timeout = 200");
    // Alone, and as a writer.
    for held in [
        "lock table sc.t; create or replace view sc.v as select 3 as n; alter sequence sc.q restart;
         alter type sc.mood add value 'c'; alter domain sc.d set default 1; alter table sc.t alter n set default 2",
        "insert into sc.t values (2); create table own.held (m sc.mood, d sc.d, n int default nextval('sc.q'))",
    ] {
        owner.ok(&format!("begin; {held}"));
        for sql in DENIED {
            assert_eq!(denied(&mut ca, sql), "42501", "{sql}, beside {held}");
        }
        // What stands for itself.
        assert_eq!(denied(&mut ca, "create index concurrently on sc.t (n)"), "42501");
        owner.ok("rollback");
    }
}

#[test]
fn regress_who_has_no_right_keeps_nobody_out() {
    let (database, [mut owner]) = clients(SETUP);
    let mut ca = Client::of_user(&database, "ca");
    ca.ok("create table own.c (id int)");
    owner.ok("set lock_timeout = '2s'");
    for end in ["", "rollback to a"] {
        for sql in DENIED {
            ca.ok("begin; savepoint a");
            assert_eq!(denied(&mut ca, sql), "42501", "{sql}");
            if !end.is_empty() {
                ca.ok(end);
            }
            owner.ok("begin; alter table sc.t add z int; insert into sc.t values (3); drop view sc.v;
                drop sequence sc.q; alter type sc.mood add value 'b'; drop schema sc cascade; rollback");
            ca.ok("rollback");
        }
    }
}

/// Symptom: TRUNCATE … CASCADE asked for a right on the tables that it named only, and RESTART IDENTITY for none on the sequences.
#[test]
fn regress_truncate_asks_for_the_rights_on_all_that_it_empties() {
    let (database, [mut owner]) = clients(
        "create role ca login; create table p (id serial primary key); create table c (id int references p);
         insert into p default values; insert into c values (1); grant truncate on p to ca",
    );
    let mut ca = Client::of_user(&database, "ca");
    let denied = |what: &str| ("42501".to_owned(), what.to_owned());
    assert_eq!(
        ca.fails("truncate p cascade"),
        denied("permission denied for table c")
    );
    owner.ok("grant truncate on c to ca");
    assert_eq!(
        ca.fails("truncate p restart identity cascade"),
        denied("must be owner of sequence p_id_seq")
    );
    assert_eq!(owner.ok("select count(*) from c"), "1");
    ca.ok("truncate p cascade");
    assert_eq!(owner.ok("insert into p default values returning id"), "2");
}

fn aside(mut client: Client, sql: &'static str) -> JoinHandle<(Client, String)> {
    thread::spawn(move || {
        let told = match client.session.simple_query(sql, &mut Heard::default()) {
            Ok(progress) => format!("{progress:?}"),
            Err(error) => error.sqlstate().to_string(),
        };
        (client, told)
    })
}

#[test]
fn regress_a_right_that_is_lost_while_a_gate_is_waited_for_is_lost() {
    for sql in [
        "insert into t values (2)",
        "delete from t",
        "truncate t",
        "copy t from stdin",
        "begin; lock table t in exclusive mode",
        "begin isolation level repeatable read; select 1; insert into t values (2)",
        "begin isolation level repeatable read; select 1; truncate t",
    ] {
        let (database, [mut owner, mut watch]) = clients(
            "create role g; create role ca login in role g; create table t (id int primary key);
             grant insert, delete, truncate on t to g",
        );
        let ca = Client::of_user(&database, "ca");
        owner.ok("begin; lock table t");
        let waits = aside(ca, sql);
        while watch.ok("select count(*) from pg_locks where not granted") != "1" {
            thread::yield_now();
        }
        watch.ok("revoke g from ca");
        owner.ok("commit");
        assert_eq!(waits.join().unwrap().1, "42501", "{sql}");
        // It is not held either.
        watch.ok("set lock_timeout = '2s'; alter table t add n int");
    }
}

/// Symptom: COPY FROM asked with its first row, and without rows never.
#[test]
fn regress_a_copy_asks_before_it_begins() {
    let (database, [mut owner]) = clients(
        "create role ca login; create table t (id int, n int); create view v as select 1 as n",
    );
    let mut ca = Client::of_user(&database, "ca");
    for sql in [
        "copy t from stdin",
        "copy t (id) from stdin (format binary)",
        "copy t from stdin where id > 1",
        "copy t to stdout",
        "copy (select id from t) to stdout (format csv, header)",
        "copy (insert into t values (1) returning id) to stdout",
    ] {
        assert_eq!(denied(&mut ca, sql), "42501", "{sql}");
    }
    // Rights on columns are enough for these.
    owner.ok("grant insert (id), select (n) on t to ca");
    assert_eq!(denied(&mut ca, "copy t from stdin"), "42501");
    assert_eq!(denied(&mut ca, "copy t to stdout"), "42501");
    assert_eq!(ca.copy("copy t (id) from stdin", "1\n", 9).tags, ["COPY 1"]);
    assert_eq!(ca.hear("copy t (n) to stdout").tags, ["COPY 1"]);
    // Who only reads.
    owner.ok("begin read only");
    assert_eq!(
        owner.fails("copy t from stdin"),
        (
            "25006".to_owned(),
            "cannot execute COPY FROM in a read-only transaction".to_owned()
        )
    );
    owner.ok("rollback; begin read only");
    let sql = "copy (insert into t values (1) returning id) to stdout";
    assert_eq!(denied(&mut owner, sql), "25006");
    owner.ok("rollback; begin read only");
    assert_eq!(owner.hear("copy t to stdout").tags, ["COPY 1"]);
    owner.ok("rollback");
    // The right comes first, as in PostgreSQL.
    ca.ok("begin read only");
    assert_eq!(denied(&mut ca, "copy t from stdin"), "42501");
    ca.ok("rollback; begin read only");
    assert_eq!(denied(&mut ca, "insert into t values (1)"), "25006");
}
