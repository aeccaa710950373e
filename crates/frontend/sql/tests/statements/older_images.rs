//! Definitions under repeatable read: their image of the catalog is as old as their snapshot, whatever others have committed since.

use super::client::{Client, Heard, database};

/// A transaction whose snapshot is drawn.
const BEGIN: &str = "begin isolation level repeatable read; select 1";

/// Symptom: the schema went, and what others had made in it stayed, in no schema.
#[test]
fn regress_a_schema_that_others_have_made_something_in_is_not_dropped() {
    for made in [
        "create table s.t (n int)",
        "create type s.mood as enum ('sad')",
        "create sequence s.sq",
        "create view s.v as select 1 as n",
        "alter table t set schema s",
        "create extension pgcrypto schema s",
    ] {
        for change in [
            "drop schema s",
            "drop schema s cascade",
            "alter schema s rename to r",
            "drop owned by ann",
            "drop owned by ann cascade",
        ] {
            let database = database();
            let (mut a, mut b) = (Client::of(&database), Client::of(&database));
            a.ok("create role ann; create schema s authorization ann; create table t (n int)");
            a.ok(BEGIN);
            b.ok(made);
            assert_eq!(a.state(change), "40001", "{made}; {change}");
            a.ok("rollback");
            let state = match change.ends_with('s') || change.ends_with("ann") {
                true => "2BP01",
                false => "00000",
            };
            let done = a.session.simple_query(change, &mut Heard::default());
            let told =
                done.map_or_else(|error| error.sqlstate().to_string(), |_| "00000".to_owned());
            let renames_extension = change.contains("rename") && made.contains("extension");
            let state = if renames_extension { "0A000" } else { state };
            assert_eq!(told, state, "{made}; {change}");
        }
    }
}

/// The same where the statement begins its transaction, and waits.
#[test]
fn regress_a_schema_is_not_dropped_by_who_has_waited_for_what_is_in_it() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of_session(&database, 2));
    a.ok("create schema s");
    a.ok("begin; create table s.t (n int)");
    let waiter = std::thread::spawn(move || {
        b.ok("set default_transaction_isolation = 'repeatable read'");
        b.state("drop schema s cascade")
    });
    while a.ok("select count(*) from pg_locks where not granted") == "0" {
        std::thread::yield_now();
    }
    a.ok("commit");
    assert_eq!(waiter.join().unwrap(), "40001");
    assert_eq!(a.ok("select count(*) from s.t"), "0");
}

/// What the transaction has made or moved itself is known to it.
#[test]
fn a_schema_goes_with_what_its_own_transaction_has_made_in_it() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create schema s; create schema r; create table s.t (n int); create table s.u (n int)");
    a.ok("create extension pgcrypto schema s");
    a.ok(BEGIN);
    b.ok("create table other (n int)");
    a.ok("alter table s.t set schema r; drop table s.u; create table s.v (n int)");
    a.ok("alter extension pgcrypto set schema r; drop schema s cascade; commit");
    assert_eq!(a.ok("select count(*) from r.t"), "0");
    assert_eq!(b.state("select * from s.v"), "42P01");
}

/// Symptom: what was said of what is made in the schema was kept when it was gone, and kept its roles.
#[test]
fn regress_a_schema_waits_for_what_is_said_of_what_is_made_in_it() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create schema s; create role ann; set lock_timeout = 50");
    b.ok("begin; alter default privileges in schema s grant select on tables to ann");
    assert_eq!(a.state("drop schema s"), "55P03");
    b.ok("commit");
    a.ok("drop schema s; drop role ann");
}

/// Symptom: what had come to read it was kept, and failed from then on (`42P01`).
#[test]
fn regress_a_relation_that_others_have_come_to_read_is_not_dropped() {
    for (made, change, then) in [
        ("create view v as select n from t", "drop table t", "2BP01"),
        (
            "create view v as select n from t",
            "alter table t drop n",
            "2BP01",
        ),
        (
            "create view v as select n from t",
            "alter table t alter n type text",
            "0A000",
        ),
        (
            "create view v as select n, count(*) from t group by id",
            "alter table t drop constraint t_pkey",
            "2BP01",
        ),
        (
            "create view v as select n from t",
            "alter table t rename to u",
            "",
        ),
        (
            "create view v as select n from t",
            "alter table t rename n to m",
            "",
        ),
        ("create view v as select * from w", "drop view w", "2BP01"),
        (
            "create view v as select last_value from sq",
            "drop sequence sq",
            "2BP01",
        ),
        (
            "create table v (n int default nextval('sq'))",
            "drop sequence sq",
            "2BP01",
        ),
        (
            "create domain v as int default nextval('sq')",
            "drop sequence sq",
            "2BP01",
        ),
        (
            "create table v (n int default nextval('sq'))",
            "alter sequence sq rename to q",
            "",
        ),
        (
            "alter view w alter n set default nextval('sq')",
            "drop sequence sq",
            "2BP01",
        ),
    ] {
        let database = database();
        let (mut a, mut b) = (Client::of(&database), Client::of(&database));
        a.ok("create table t (id int primary key, n int); create view w as select 1 as n; create sequence sq");
        a.ok(BEGIN);
        b.ok(made);
        assert_eq!(a.state(change), "40001", "{made}; {change}");
        a.ok("rollback");
        if then.is_empty() {
            a.ok(change);
        } else {
            assert_eq!(a.state(change), then, "{made}; {change}");
        }
    }
}

/// Symptom: what others had made of the label went on saying it, and was `22P02` from then on.
#[test]
fn regress_a_label_that_others_have_come_to_say_is_not_called_otherwise() {
    for (made, says) in [
        ("create table ch (e mood default 'a', x int)", true),
        ("create table ch (e mood check (e <> 'a'))", true),
        (
            "create table ch (t text, e mood generated always as ('a'::mood) stored)",
            true,
        ),
        ("create view v as select * from t where e = 'a'", true),
        (
            "create view v as select * from t; alter view v alter e set default 'a'",
            true,
        ),
        ("alter table t alter e set default 'a'", true),
        ("create domain d as mood default 'a'", true),
        ("create domain d as mood check (value > 'a')", true),
        (
            "create table ch (e mood default 'b', n text default 'a')",
            false,
        ),
        ("create index on t (e) where e = 'a'", false),
        (
            "create view v as select * from t where e = 'b' or n = 'a'",
            false,
        ),
    ] {
        let database = database();
        let (mut a, mut b) = (Client::of(&database), Client::of(&database));
        a.ok("create type mood as enum ('a', 'b'); create table t (e mood, n text)");
        a.ok(BEGIN);
        b.ok(made);
        let change = "alter type mood rename value 'a' to 'z'";
        if says {
            assert_eq!(a.state(change), "40001", "{made}");
            a.ok("rollback");
            a.ok(change);
        } else {
            a.ok(change);
            a.ok("commit");
        }
        for relation in ["t", "ch", "v"] {
            if b.ok(&format!("select to_regclass('{relation}')")) != "~" {
                b.ok(&format!("insert into {relation} default values"));
                b.ok(&format!("select * from {relation}"));
            }
        }
        b.ok("select 'z'::mood");
    }
}

/// Symptom: what was found of the path for the snapshot was looked up by the rights of then.
#[test]
fn regress_the_search_path_goes_by_rights_of_now() {
    let database = database();
    let mut a = Client::of(&database);
    for text in [
        "create schema s1",
        "create schema s2",
        "create table s1.t as select 1 as n",
        "create table s2.t as select 2 as n",
        "create role ann login",
        "grant usage on schema s1, s2 to ann",
        "grant select on s1.t, s2.t to ann",
    ] {
        a.ok(text);
    }
    let mut b = Client::of_user(&database, "ann");
    b.ok("set search_path = s1, s2");
    b.ok("prepare q as select n from t");
    for (change, path) in [
        ("revoke usage on schema s1 from ann", "{s2}"),
        ("grant usage on schema s1 to ann", "{s1,s2}"),
    ] {
        let (before, after) = if path == "{s2}" {
            ("1", "2")
        } else {
            ("2", "1")
        };
        b.ok(BEGIN);
        assert_eq!(b.ok("select n from t"), before);
        assert_eq!(b.ok("execute q"), before);
        a.ok(change);
        assert_eq!(b.ok("select n from t"), after, "{change}");
        assert_eq!(b.ok("execute q"), after, "{change}");
        assert_eq!(b.ok("select current_schemas(false)"), path);
        b.ok("commit");
        assert_eq!(b.ok("select n from t"), after);
    }
}

/// The same of what is made in one, and of what is asked of it.
#[test]
fn regress_rights_on_a_schema_are_those_of_now() {
    let database = database();
    let mut a = Client::of(&database);
    a.ok("create schema s; create role ann login; grant usage, create on schema s to ann");
    let mut b = Client::of_user(&database, "ann");
    let asked = "select has_schema_privilege('s', 'create'), has_schema_privilege('s', 'usage')";
    b.ok(BEGIN);
    assert_eq!(b.ok(asked), "t|t");
    a.ok("revoke usage, create on schema s from ann");
    assert_eq!(b.ok(asked), "f|f");
    assert_eq!(b.state("create table s.t (n int)"), "42501");
    b.ok("rollback");
    b.ok(BEGIN);
    a.ok("grant usage, create on schema s to ann");
    assert_eq!(b.ok(asked), "t|t");
    b.ok("create table s.t (n int); commit");
}

/// Symptom: the owner that the snapshot's image has counted.
#[test]
fn regress_rights_below_a_view_are_of_who_owns_it_now() {
    let database = database();
    let mut a = Client::of(&database);
    for text in [
        "create role bob",
        "create role ann login",
        "create table base (n int)",
        "insert into base values (7)",
        "create view v as select n from base",
        "create view w as select n from v",
        "grant all on v, w to ann",
        "grant all on v to vellum",
    ] {
        a.ok(text);
    }
    let mut b = Client::of_user(&database, "ann");
    for (change, back) in [
        ("alter view v owner to bob", "alter view v owner to vellum"),
        (
            "alter view v set (security_invoker = true)",
            "alter view v reset (security_invoker)",
        ),
    ] {
        for text in [
            "select n from v",
            "select n from w",
            "insert into v values (8)",
            "delete from w",
            "select n from v for update",
        ] {
            b.ok(BEGIN);
            b.ok(text);
            b.ok("rollback");
            b.ok(BEGIN);
            a.ok(change);
            assert_eq!(
                b.fails(text),
                (
                    "42501".to_owned(),
                    "permission denied for table base".to_owned()
                ),
                "{change}; {text}"
            );
            b.ok("rollback");
            b.ok(BEGIN);
            a.ok(back);
            b.ok(text);
            b.ok("rollback");
        }
    }
}
