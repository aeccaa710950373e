//! Roles, and what they may do.

use super::client::{Client, database};

const VERIFIER: &str = "SCRAM-SHA-256$4096:c2FsdA==$a:b";

#[test]
fn roles_are_made_changed_and_dropped() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role readers; create user ann password 'SCRAM-SHA-256$4096:c2FsdA==$a:b' in role readers connection limit 3");
    assert_eq!(
        client.ok("select rolname, rolcanlogin, rolsuper, rolconnlimit from pg_roles where rolname !~ '^pg_' order by 1"),
        "ann|t|f|3\nreaders|f|f|-1\nvellum|t|t|-1"
    );
    assert_eq!(
        database.role("ann").unwrap().unwrap().verifier.as_deref(),
        Some(VERIFIER)
    );
    assert_eq!(
        client.ok("select rolpassword from pg_roles where rolname = 'ann'"),
        "********"
    );
    client.ok("alter user ann with encrypted password null nologin valid until '2020-01-01'");
    let ann = database.role("ann").unwrap().unwrap();
    assert!(ann.verifier.is_none() && !ann.login && ann.valid_until.is_some());
    assert_eq!(client.state("create role ann"), "42710");
    assert_eq!(client.state("create role pg_x"), "42939");
    assert_eq!(client.state("drop role nobody"), "42704");
    assert_eq!(client.state("drop role vellum"), "55006");
    assert_eq!(client.state("grant ann to ann"), "0LP01");
    assert_eq!(client.state("grant ann to readers"), "0LP01");
    // With the transaction, as other definitions.
    client.ok("begin; create role bob; rollback");
    assert_eq!(client.state("alter role bob login"), "42704");
    client.ok("create table t (id int); grant select on t to ann");
    assert_eq!(client.state("drop role ann"), "2BP01");
    client.ok("revoke all on t from ann; drop role ann; drop role readers");
    assert_eq!(
        client.ok("select count(*) from pg_roles where rolname !~ '^pg_'"),
        "1"
    );
}

#[test]
fn a_role_does_what_it_was_granted_and_no_more() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create table t (id int primary key, n serial); insert into t values (1, 1), (2, 2);
         create view v as select id from t; create sequence s;
         create role readers; create user ann; create user bob; grant readers to ann",
    );
    let mut ann = Client::of_user(&database, "ann");
    for denied in [
        "select * from t",
        "insert into t (id) values (3)",
        "update t set n = 0",
        "delete from t",
        "truncate t",
        "drop table t",
        "select * from t for update",
        "select * from t for key share",
        "alter table t add column x int",
        "create index on t (n)",
        "create table u (id int)",
        "create schema x",
        "select * from v",
        "select nextval('s')",
        "select * from pg_authid",
        "create role eve",
        "alter role vellum password null",
        "alter role ann superuser",
        "grant select on t to bob",
        "drop role bob",
        "grant readers to bob",
    ] {
        assert_eq!(ann.state(denied), "42501", "{denied}");
    }
    assert_eq!(
        ann.fails("select * from t").1,
        "permission denied for table t"
    );
    assert_eq!(ann.fails("drop table t").1, "must be owner of table t");
    assert_eq!(
        ann.ok("select count(*) from pg_class where relname = 't'"),
        "1"
    );
    assert_eq!(ann.ok("show is_superuser"), "off");
    // By way of a role that it is a member of; a view reads for its owner.
    client.ok("grant select on v to readers");
    assert_eq!(ann.ok("select * from v order by 1"), "1\n2");
    assert_eq!(ann.state("select * from t"), "42501");
    // Rows are locked by those who may change them.
    client.ok("grant select on t to bob");
    let mut bob = Client::of_user(&database, "bob");
    assert_eq!(bob.ok("select id from t where id = 1"), "1");
    for lock in ["update", "no key update", "share", "key share"] {
        let text = format!("select id from t where id = 1 for {lock}");
        assert_eq!(bob.state(&text), "42501", "{lock}");
    }
    client.ok("grant update on t to bob");
    assert_eq!(bob.ok("select id from t where id = 1 for update"), "1");
    client.ok("revoke all on t from bob");
    client.ok("grant insert on t to ann; grant usage on sequence t_n_seq to ann");
    ann.ok("insert into t (id) values (3)");
    assert_eq!(
        ann.state("insert into t (id) values (4) returning id"),
        "42501"
    );
    client.ok("grant select, update on t to public");
    ann.ok("update t set n = 5 where id = 3");
    assert_eq!(
        ann.ok(
            "select has_table_privilege('t', 'UPDATE'), has_table_privilege('bob', 't', 'DELETE')"
        ),
        "t|f"
    );
    client.ok("revoke select on t from public");
    assert_eq!(ann.state("select * from t"), "42501");
    // Who has the option gives it on.
    client.ok("grant delete on t to ann with grant option");
    ann.ok("grant delete on t to bob");
    assert_eq!(
        client.ok("select relacl from pg_class where relname = 't'"),
        "{vellum=arwdDxt/vellum,ann=ad*/vellum,=w/vellum,bob=d/ann}"
    );
    let mut bob = Client::of_user(&database, "bob");
    bob.ok("delete from t");
    // What one makes, one owns.
    client.ok("grant create on schema public to ann");
    ann.ok(
        "create table own (id int); insert into own values (1); alter table own add column x int",
    );
    assert_eq!(bob.state("select * from own"), "42501");
    assert_eq!(bob.state("drop table own"), "42501");
    ann.ok("grant select on own to bob");
    assert_eq!(bob.ok("select id from own"), "1");
    // Prepared statements are asked each time.
    bob.ok("prepare p as select id from own");
    ann.ok("revoke select on own from bob");
    assert_eq!(bob.state("execute p"), "42501");
    ann.ok("drop table own");
}

#[test]
fn rights_outlive_the_database_program() {
    let directory = std::sync::Arc::new(vellum_io::MemoryDirectory::new());
    {
        let database = super::client::database_in(&directory);
        let mut client = Client::of(&database);
        client.ok("create table t (id int); create user ann; grant select on t to ann");
    }
    let database = super::client::database_in(&directory);
    let mut ann = Client::of_user(&database, "ann");
    assert_eq!(ann.ok("select count(*) from t"), "0");
    assert_eq!(ann.state("delete from t"), "42501");
}

#[test]
fn a_session_takes_roles_that_its_user_belongs_to() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create role readers; create role writers; create role others; create user ann; create user bob;
         grant readers to ann; grant writers to readers; create table t (id int); grant insert on t to writers; grant select on t to readers",
    );
    let who = "select current_user, session_user, current_setting('role'), current_setting('is_superuser')";
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    let heard = client.hear("set role writers");
    assert_eq!(
        heard.statuses,
        [
            ("is_superuser".to_owned(), "off".to_owned()),
            ("session_authorization".to_owned(), "vellum".to_owned())
        ]
    );
    assert_eq!(client.ok(who), "writers|vellum|writers|off");
    assert_eq!(client.state("select * from t"), "42501");
    client.ok("insert into t values (1)");
    // The user of the session decides what it may become, not the role that it is in.
    client.ok("set role others; reset role");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    client.ok("set session authorization ann");
    assert_eq!(client.ok(who), "ann|ann|none|off");
    client.ok("set role readers");
    assert_eq!(client.ok("select count(*) from t"), "1");
    assert_eq!(client.state("set role others"), "42501");
    assert_eq!(client.state("set role nobody"), "22023");
    client.ok("set role none");
    assert_eq!(client.ok(who), "ann|ann|none|off");
    client.ok("reset session authorization");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    client.ok("begin; set local role readers");
    assert_eq!(client.ok("select current_user"), "readers");
    client.ok("commit");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    client.ok("set role = 'writers'; discard all");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");

    let mut ann = Client::of_user(&database, "ann");
    assert_eq!(ann.state("set session authorization bob"), "42501");
    ann.ok("set session authorization ann; set role writers");
    assert_eq!(ann.ok(who), "writers|ann|writers|off");
    ann.ok("create temp table own (i int); insert into own values (1); insert into t values (2)");
    assert_eq!(ann.state("select * from t"), "42501");
    assert_eq!(ann.state("create table in_public (i int)"), "42501");
    ann.ok("reset role");
    assert_eq!(ann.ok("select count(*) from t"), "2");
}
