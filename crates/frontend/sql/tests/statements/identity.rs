//! Whose a session is, when roles are renamed, and when they are made anew in a transaction that is rolled back.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;

#[test]
fn a_role_that_is_renamed_keeps_what_it_owns_and_may() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok(
        "create role ann login createdb; create role staff; grant staff to ann; create schema anns authorization ann;
         create table t (id int); grant select on t to ann; alter role ann set work_mem = '5MB';
         alter default privileges for role ann grant select on tables to staff",
    );
    let mut ann = Client::of_user(&database, "ann");
    ann.ok("create table anns.own (id serial primary key, m int); create view anns.v as select * from t; create type anns.mood as enum ('ok'); create domain anns.d as int");
    ann.ok("begin isolation level repeatable read; select * from anns.v");
    ann.ok("commit");
    assert_eq!(client.ok("alter role ann rename to eve"), "");
    // The session is the same role's.
    assert_eq!(
        ann.ok("select current_user; select * from t; insert into anns.own default values"),
        "eve"
    );
    ann.ok("create table anns.later (id int); drop table anns.later");
    assert_eq!(
        client.ok(
            "select string_agg(distinct pg_get_userbyid(relowner), ',') from pg_class where relnamespace = 'anns'::regnamespace;
             select distinct pg_get_userbyid(typowner) from pg_type where typname in ('mood', 'd');
             select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'anns'"
        ),
        "eve\neve\neve"
    );
    assert_eq!(
        client.ok("select relacl from pg_class where relname = 't'; select pg_get_userbyid(defaclrole) from pg_default_acl;
                   select rolname, rolcreatedb, rolconfig from pg_roles where rolname in ('ann', 'eve')"),
        "{vellum=arwdDxt/vellum,eve=r/vellum}\neve\neve|t|{work_mem=5MB}"
    );
    // The old name is free, and means another.
    client.ok("create role ann login");
    let mut other = Client::of_user(&database, "ann");
    assert_eq!(other.state("select * from anns.own"), "42501");
    assert_eq!(other.state("alter table anns.own add x int"), "42501");
    drop((ann, other, client));
    drop(database);
    let database = database_in(&directory);
    let mut eve = Client::of_user(&database, "eve");
    assert_eq!(
        eve.ok("select count(*) from anns.own; show work_mem; alter table anns.own add x int"),
        "1\n5MB"
    );
    let mut client = Client::of(&database);
    assert_eq!(client.state("drop role eve"), "2BP01");
    client.ok("drop owned by eve cascade; drop role eve");
}

#[test]
fn a_rename_is_undone_with_its_transaction() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role ann login; create schema anns authorization ann");
    client.ok("begin; alter role ann rename to eve");
    assert_eq!(
        client.ok("select rolname from pg_roles where rolname in ('ann', 'eve')"),
        "eve"
    );
    client.ok("rollback");
    assert_eq!(
        client.ok("select rolname from pg_roles where rolname in ('ann', 'eve')"),
        "ann"
    );
    let mut ann = Client::of_user(&database, "ann");
    ann.ok("create table anns.t (id int)");
}

#[test]
fn who_may_rename_whom() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create role ann login; create role maker login createrole; create role boss superuser login; create role bob;
         create role hashed password 'md5c08d9b4d7b3cf0a1b4b5b9b5b9b5b9b5'",
    );
    for (text, state) in [
        ("alter role nobody rename to x", "42704"),
        ("alter role bob rename to ann", "42710"),
        ("alter role bob rename to pg_bob", "42939"),
        ("alter role bob rename to public", "42939"),
        ("alter role pg_monitor rename to x", "42939"),
        ("alter role vellum rename to x", "0A000"),
    ] {
        assert_eq!(client.state(text), state, "{text}");
    }
    client.ok("set role bob");
    let error = client.failure("alter role bob rename to x");
    assert_eq!(error.message(), "current user cannot be renamed");
    assert_eq!(
        client.failure("alter role vellum rename to x").message(),
        "session user cannot be renamed"
    );
    client.ok("reset role");
    let heard = client.hear("alter user hashed rename to unhashed");
    assert_eq!(
        heard.notices,
        ["MD5 password cleared because of role rename"]
    );
    assert_eq!(
        client.ok("select rolpassword from pg_authid where rolname = 'unhashed'"),
        "~"
    );
    let mut ann = Client::of_user(&database, "ann");
    assert_eq!(
        ann.failure("alter role bob rename to x").message(),
        "permission denied to rename role"
    );
    let mut maker = Client::of_user(&database, "maker");
    assert_eq!(
        maker.failure("alter role boss rename to x").message(),
        "must be superuser to rename superusers"
    );
    assert_eq!(maker.state("alter role maker rename to x"), "0A000");
    maker.ok("alter role bob rename to robert");
    let mut boss = Client::of_user(&database, "boss");
    assert_eq!(boss.state("alter role vellum rename to x"), "0A000");
}

#[test]
fn a_role_that_is_gone_back_to_is_the_one_that_was_taken() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role r; create table t (id int); grant select on t to r; set role r");
    // Its name is another role's, in a transaction that is rolled back.
    client.ok("begin; reset role; drop owned by r; drop role r; create role r; set role r");
    assert_eq!(client.state("select * from t"), "42501");
    client.ok("rollback");
    assert_eq!(client.ok("select current_user; select * from t"), "r");
    // The same to a savepoint, and with SET LOCAL.
    client.ok("begin; savepoint a; reset role; drop owned by r; drop role r; create role r; set role r; rollback to a; select * from t; commit");
    assert_eq!(client.ok("select current_user; select * from t"), "r");
    client.ok(
        "begin; set local role none; drop owned by r; drop role r; create role r; set local role r",
    );
    assert_eq!(client.ok("select current_user"), "r");
    client.ok("commit");
    // That one is gone, whatever is called so now.
    assert_eq!(client.ok("select current_user"), "");
    assert_eq!(client.state("select * from t"), "42501");
    client.ok("reset role; grant select on t to r; set role r; select * from t");
}

#[test]
fn a_session_user_that_is_gone_back_to_is_the_one_that_was_taken() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role r; create table t (id int); grant select on t to r; set session authorization r");
    client.ok("begin; set session authorization default; drop owned by r; drop role r; create role r; set session authorization r");
    assert_eq!(client.state("select * from t"), "42501");
    client.ok("rollback");
    assert_eq!(
        client.ok("select session_user, current_user; select * from t"),
        "r|r"
    );
}
