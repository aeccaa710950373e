//! DROP ROLE beside transactions that make the role an owner, give it rights or members.

use super::client::{Client, Heard, database};
use vellum_sql::SqlDatabase;

/// A database with the roles `ann`, whom statements name, and `bob`, a schema that is open to them, and a table that others own.
fn peopled() -> (SqlDatabase, Client, Client) {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role ann login; create role bob; create schema s; create table t (a int)");
    client.ok("create schema open; grant create, usage on schema open to public");
    let other = Client::of(&database);
    (database, client, other)
}

/// What names `ann`, and whether it keeps her.
const NAMES: [(&str, bool); 17] = [
    (
        "set role ann; create table open.x (n int); reset role",
        true,
    ),
    (
        "set role ann; create type open.x as enum (); reset role",
        true,
    ),
    (
        "set role ann; create temp table x (n int); reset role",
        true,
    ),
    ("alter table t owner to ann", true),
    ("grant select on t to ann", true),
    ("grant select (a) on t to ann", true),
    ("grant usage on schema s to ann", true),
    ("grant create on database vellum to ann", true),
    ("alter schema s owner to ann", true),
    ("create schema mine authorization ann", true),
    (
        "alter default privileges grant select on tables to ann",
        true,
    ),
    (
        "alter default privileges for role ann grant select on tables to bob",
        true,
    ),
    (
        "alter table t owner to bob; reassign owned by bob to ann",
        true,
    ),
    ("grant ann to bob", false),
    ("create role carl in role ann", false),
    ("alter role ann set work_mem = '8MB'", false),
    ("comment on role ann is 'x'", false),
];

#[test]
fn regress_a_role_is_not_dropped_beside_whoever_names_it() {
    let locked = "select distinct locktype, database, classid from pg_locks where granted and objid = (select oid from pg_roles where rolname = 'ann')";
    for (names, keeps) in NAMES {
        let (_database, mut a, mut b) = peopled();
        b.ok("set lock_timeout = 50");
        for end in ["rollback", "commit"] {
            a.ok("begin");
            a.ok(names);
            assert_eq!(b.state("drop role ann"), "55P03", "{names}");
            assert_eq!(b.ok(locked), "object|0|1260", "{names}");
            a.ok(end);
            if keeps && end == "commit" {
                assert_eq!(b.state("drop role ann"), "2BP01", "{names}");
            } else {
                b.ok("begin; drop role ann; rollback");
            }
        }
    }
}

#[test]
fn regress_a_role_that_is_waited_for_is_looked_at_anew() {
    for (begin, names) in [
        ("", "grant select on t to ann"),
        (
            "begin isolation level repeatable read; select 1",
            "alter table t owner to ann",
        ),
    ] {
        let (_database, mut a, mut b) = peopled();
        a.ok("begin");
        a.ok(names);
        b.ok(begin);
        let waiter = std::thread::spawn(move || b.state("drop role ann"));
        while a.ok("select count(*) from pg_locks where not granted") == "0" {
            std::thread::yield_now();
        }
        a.ok("commit");
        assert_eq!(waiter.join().unwrap(), "2BP01", "{names}");
    }
}

#[test]
fn regress_whoever_names_a_role_that_is_being_dropped_waits_and_finds_none() {
    for (names, _) in NAMES {
        let (_database, mut a, mut b) = peopled();
        b.ok("set lock_timeout = 50; begin; savepoint s");
        a.ok("begin; drop role ann");
        let done = b.session.simple_query(names, &mut Heard::default());
        let state = done.err().map(|error| error.sqlstate().to_string());
        assert_eq!(state.as_deref(), Some("55P03"), "{names}");
        b.ok("rollback to s; reset role");
        a.ok("commit");
        let state = match names.starts_with("set role") {
            true => "22023",
            false => "42704",
        };
        assert_eq!(b.state(names), state, "{names}");
    }
}

/// Symptom: under repeatable read a role was dropped that had got something since the snapshot.
#[test]
fn regress_a_role_is_kept_by_what_it_has_got_since_the_snapshot() {
    for (names, keeps) in NAMES {
        let (_database, mut a, mut b) = peopled();
        a.ok("begin isolation level repeatable read; select 1");
        b.ok(names);
        // What it has to write that others have written since is a conflict.
        let state = if keeps { "2BP01" } else { "40001" };
        assert_eq!(a.state("drop role ann"), state, "{names}");
    }
}

/// A session may be there longer than its role.
#[test]
fn who_is_gone_makes_nothing() {
    let (database, mut a, _) = peopled();
    let mut ann = Client::of_user(&database, "ann");
    a.ok("drop role ann");
    assert_eq!(ann.state("create table open.x (n int)"), "42704");
    a.ok("create role ann");
    let owned = "select count(*) from pg_class where relowner = 'ann'::regrole";
    assert_eq!(a.ok(owned), "0");
}

/// Symptom: who had been a superuser, or a member, took a role in a block that it had no right to any more, and kept it behind COMMIT. Cause: in a block that had changed the catalog the
/// roles were those of the statement before. Guard: they are those of now.
#[test]
fn regress_set_role_in_a_block_goes_by_the_roles_of_now() {
    let (database, mut a, _) = peopled();
    a.ok("create role boss superuser; create role eve superuser login; create role guild; grant guild to ann");
    let mut eve = Client::of_user(&database, "eve");
    let mut ann = Client::of_user(&database, "ann");
    eve.ok("begin; create table open.of_eve (n int)");
    ann.ok("begin; create table open.of_ann (n int)");
    a.ok("alter role eve nosuperuser; revoke guild from ann");
    assert_eq!(eve.state("set role boss"), "42501");
    assert_eq!(ann.state("set role guild"), "42501");
}

/// Symptom: what was made under repeatable read had a right of a role that was gone, for whoever may come to have its number. Cause: default privileges were those of the snapshot.
#[test]
fn regress_default_privileges_are_those_of_now() {
    let (_database, mut a, mut b) = peopled();
    a.ok("alter default privileges grant select on tables to ann; alter default privileges grant usage on schemas to ann");
    b.ok("begin isolation level repeatable read; select 1");
    a.ok("drop owned by ann; drop role ann");
    b.ok("create table fresh (n int); create schema young; commit");
    let rights = "select relacl is null or relacl::text not like '%=r/%' from pg_class where relname = 'fresh' union all select nspacl is null or nspacl::text not like '%=U/%' from pg_namespace where nspname = 'young'";
    assert_eq!(a.ok(rights), "t\nt");
}
