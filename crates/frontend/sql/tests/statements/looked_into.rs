//! What is not everybody's to see and to say: schemas, roles, the server.

use super::client::{Client, database};
use vellum_sql::SqlDatabase;

fn clients<const N: usize>(setup: &str) -> (SqlDatabase, [Client; N]) {
    let database = database();
    let clients = [(); N].map(|()| Client::of(&database));
    Client::of(&database).ok(setup);
    (database, clients)
}

/// Symptom: who owned something could drop and see it without the right to look into its schema.
#[test]
fn regress_who_may_not_look_into_a_schema_finds_nothing_there() {
    let (database, [mut owner]) = clients(
        "create role o login; create schema sc; create type sc.m as enum ('a'); create domain sc.d as int;
         create table sc.x (a int constraint c check (a > 0)); create view sc.v as select 1 as n; create index i on sc.x (a);
         create sequence sc.q;
         alter table sc.x owner to o; alter view sc.v owner to o; alter sequence sc.q owner to o; alter type sc.m owner to o;
         alter domain sc.d owner to o;
         create table t (id int default nextval('sc.q'::regclass), c oid default 'sc.x'::regclass);
         create view w as select 'sc.x'::regclass as r; grant insert, select on t to o; grant select on w to o",
    );
    let mut o = Client::of_user(&database, "o");
    let error = (
        "42501".to_owned(),
        "permission denied for schema sc".to_owned(),
    );
    for sql in [
        "drop table sc.x",
        "drop table if exists sc.x",
        "drop table if exists sc.nothing",
        "drop table sc.nothing",
        "alter table sc.x add y int",
        "alter table if exists sc.x add y int",
        "alter table sc.x rename to y",
        "drop view sc.v",
        "alter view sc.v rename to u",
        "drop index sc.i",
        "alter index sc.i rename to j",
        "drop sequence sc.q",
        "alter sequence sc.q restart",
        "drop type sc.m",
        "alter type sc.m add value 'b'",
        "drop domain sc.d",
        "alter domain sc.d set not null",
        "comment on table sc.x is 'a'",
        "comment on column sc.x.a is 'a'",
        "comment on constraint c on sc.x is 'a'",
        "comment on type sc.m is 'a'",
        "truncate sc.x",
        "select 'sc.x'::regclass",
        "select to_regclass('sc.x')",
        "select ('sc.' || 'x')::regclass",
        "select has_table_privilege('sc.x', 'select')",
        "select pg_get_serial_sequence('sc.x', 'a')",
        "grant select on sc.x to public",
        "grant usage on type sc.m to public",
        "create index on sc.x (a)",
        "cluster sc.x",
        "copy sc.x to stdout",
    ] {
        assert_eq!(o.fails(sql), error, "{sql}");
    }
    // Nor is it named by what is made elsewhere.
    owner.ok("create schema own authorization o; create table own.n (a int); alter table own.n owner to o");
    for sql in [
        "create view own.v as select * from sc.x",
        "create or replace view own.v as select 1 as n from public.t, sc.v",
        "create table own.l (like sc.x)",
        "create table own.t (a sc.m)",
        "create table own.t (a sc.d)",
        "create table own.t (a sc.m[])",
        "alter table own.n add b sc.m",
        "alter table own.n alter a type sc.d",
        "create domain own.d as sc.m",
        "create table own.c (a int references sc.x)",
    ] {
        assert_eq!(o.fails(sql), error, "{sql}");
    }
    // What was written by others is theirs.
    assert_eq!(o.ok("insert into t default values returning id"), "1");
    assert_eq!(o.ok("select r::oid = (select c from t) from w"), "t");
    // Names without a schema are not looked up there.
    o.ok("set search_path = sc, public");
    assert_eq!(o.state("drop table x"), "42P01");
    assert_eq!(o.state("select * from x"), "42P01");
    assert_eq!(
        o.ok("select current_schemas(false), to_regclass('x'), current_schema()"),
        "{public}|~|public"
    );
    o.ok("set search_path = sc");
    assert_eq!(o.state("create table y (a int)"), "3F000");
    owner.ok("grant usage on schema sc to o");
    assert_eq!(o.ok("select current_schema(), 'sc.x'::regclass"), "sc|x");
    o.ok("drop index sc.i");
}

/// Symptom: a role that may make roles, or none at all, said something of superusers and of the database.
#[test]
fn regress_comments_on_roles_and_on_the_database_are_not_everybodys() {
    let (database, [mut owner]) =
        clients("create role cr login createrole; create role w login; create role su superuser");
    let [mut cr, mut w] = ["cr", "w"].map(|role| Client::of_user(&database, role));
    let denied = |what: &str| ("42501".to_owned(), what.to_owned());
    assert_eq!(
        cr.fails("comment on role su is 'x'"),
        denied("must be superuser")
    );
    cr.ok("comment on role w is 'x'; comment on role cr is 'x'");
    assert_eq!(
        w.fails("comment on role su is 'x'"),
        denied("must be superuser")
    );
    assert_eq!(
        w.fails("comment on role w is 'x'"),
        denied("must have CREATEROLE privilege")
    );
    let name = w.ok("select current_database()");
    assert_eq!(
        w.fails(&format!("comment on database {name} is 'x'")),
        denied(&format!("must be owner of database {name}"))
    );
    owner.ok(&format!(
        "comment on role su is 'x'; comment on database {name} is 'x'"
    ));
}

#[test]
fn regress_what_superusers_may_see_and_do_is_refused_others() {
    let (database, [mut owner]) = clients(
        "create role w login; create role m login in role pg_monitor; create view v as select 1 as n;
         grant select on v to w",
    );
    let [mut w, mut m] = ["w", "m"].map(|role| Client::of_user(&database, role));
    for (word, name) in [
        ("view", "pg_file_settings"),
        ("view", "pg_hba_file_rules"),
        ("view", "pg_ident_file_mappings"),
        ("view", "pg_config"),
        ("view", "pg_shmem_allocations"),
        ("view", "pg_backend_memory_contexts"),
        ("view", "pg_replication_origin_status"),
        ("table", "pg_user_mapping"),
        ("table", "pg_largeobject"),
        ("table", "pg_statistic_ext_data"),
        ("function", "pg_reload_conf"),
        ("function", "pg_stat_reset"),
    ] {
        let sql = match word {
            "function" => format!("select {name}()"),
            _ => format!("select * from {name}"),
        };
        let error = (
            "42501".to_owned(),
            format!("permission denied for {word} {name}"),
        );
        assert_eq!(w.fails(&sql), error);
        owner.ok(&sql);
    }
    m.ok("select * from pg_shmem_allocations");
    let shown =
        "select view_definition is null from information_schema.views where table_name = 'v'";
    assert_eq!(w.ok(shown), "t");
    assert_eq!(owner.ok(shown), "f");
}

/// Symptom: `-1`, which is none and the default, was `42601`.
#[test]
fn regress_connection_limit_may_be_minus_one() {
    let mut client = Client::new();
    let limit = "select rolconnlimit from pg_roles where rolname = 'q'";
    client.ok("create role q login connection limit 5 valid until '2030-01-01'");
    assert_eq!(client.ok(limit), "5");
    for sql in [
        "alter role q connection limit -1",
        "alter role q valid until '2031-01-01' connection limit - 1 nologin",
        "drop role q; create user q with connection limit -1 createdb",
        "drop role q; create role q valid until 'infinity' connection limit -1; comment on role q is 'a'",
    ] {
        client.ok("alter role q connection limit 5");
        client.ok(sql);
        assert_eq!(client.ok(limit), "-1", "{sql}");
    }
    assert_eq!(client.state("alter role q connection limit -2"), "22023");
}
