//! Temporary relations: who sees them, and when they go. What is expected is what PostgreSQL 15 does.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::SimulatedDirectory;

#[test]
fn a_temporary_table_is_its_sessions_own() {
    let database = database();
    let mut one = Client::of(&database);
    let mut other = Client::of(&database);
    one.ok("create temp table t (id serial primary key, n int unique, check (n > 0))");
    one.ok("create index on t (n desc); insert into t (n) values (5), (6)");
    assert_eq!(one.ok("select id, n from t order by n"), "1|5\n2|6");
    assert_eq!(one.state("insert into t (n) values (0)"), "23514");
    assert_eq!(one.state("insert into t (n) values (5)"), "23505");
    assert_eq!(other.state("select * from t"), "42P01");
    other.ok("create temporary table t (x text); insert into t values ('own')");
    assert_eq!(other.ok("select * from t"), "own");
    assert_eq!(other.ok("select * from pg_temp.t"), "own");
    assert_eq!(one.ok("select count(*) from pg_temp.t"), "2");
    let schema =
        one.ok("select relnamespace::regnamespace from pg_class where oid = 't'::regclass");
    assert!(schema.starts_with("pg_temp_"), "{schema}");
    assert_eq!(
        other.fails(&format!("select * from {schema}.t")),
        (
            "0A000".to_owned(),
            "cannot access temporary tables of other sessions".to_owned()
        )
    );
    assert_eq!(
        other.state(&format!("create table {schema}.u (i int)")),
        "42P16"
    );
    assert_eq!(
        one.ok("select relpersistence, pg_my_temp_schema() = relnamespace, pg_is_other_temp_schema(relnamespace) from pg_class where relname = 't' and pg_table_is_visible(oid)"),
        "t|t|f"
    );
    one.ok(
        "create type pg_temp.own as enum ('a'); create temporary table labelled (m pg_temp.own)",
    );
    drop(one);
    assert_eq!(
        other.ok("select count(*) from pg_type where typname in ('own', '_own')"),
        "0"
    );
    assert_eq!(
        other.ok("select count(*) from pg_class where relpersistence = 't' and relkind <> 'S'"),
        "1"
    );
    assert_eq!(
        other.ok("select count(*) from pg_namespace where nspname like 'pg_temp%'"),
        "1"
    );
    drop(other);
    let mut last = Client::of(&database);
    assert_eq!(
        last.ok("select count(*) from pg_namespace where nspname like 'pg_temp%'"),
        "0"
    );
}

#[test]
fn temporary_names_come_first() {
    let mut client = Client::new();
    client.ok("create table t (n int); insert into t values (1); create view v as select n from t");
    client.ok("create temp table t (n int, m int); insert into t values (2, 3)");
    assert_eq!(client.ok("select * from t"), "2|3");
    assert_eq!(client.ok("select * from public.t"), "1");
    assert_eq!(client.ok("select * from v"), "1");
    assert_eq!(client.ok("select current_schema"), "public");
    assert_eq!(client.ok("select current_schemas(false)"), "{public}");
    client.ok("set search_path = public, pg_temp");
    assert_eq!(client.ok("select * from t"), "1");
    client.ok("create table made (i int); reset search_path");
    assert_eq!(
        client.ok("select 'made'::regclass, relpersistence from pg_class where relname = 'made'"),
        "made|p"
    );
    // The prepared statement means the other table from then on.
    client.ok("drop table t");
    assert_eq!(client.ok("select * from t"), "1");
    client.ok("create temp sequence s; create temp view w as select 7 as n");
    assert_eq!(
        client.ok("select nextval('s'), nextval('pg_temp.s'), n from w"),
        "1|2|7"
    );
    client.ok("create table pg_temp.of_schema (i int)");
    assert_eq!(
        client.ok("select table_type, commit_action from information_schema.tables where table_name = 'of_schema'"),
        "LOCAL TEMPORARY|PRESERVE"
    );
    let heard = client.hear("create view u as select * from of_schema");
    assert_eq!(heard.notices, ["view \"u\" will be a temporary view"]);
    client.ok("drop view u; discard temp");
    assert_eq!(client.state("select * from of_schema"), "42P01");
    assert_eq!(client.state("select * from w"), "42P01");
    for refused in [
        "create temp table public.x (i int)",
        "create table x (i int) on commit drop",
        "create temp table k (i int primary key); create table r (i int references k)",
        "create table q (i int primary key); create temp table r (i int references q)",
    ] {
        assert_eq!(client.state(refused), "42P16", "{refused}");
    }
    client.ok(
        "create temp table k (i int primary key, up int references k); insert into k values (1, 1)",
    );
    client
        .ok("create temp table r (i int references k on delete cascade); insert into r values (1)");
    client.ok("update k set up = null; delete from k");
    assert_eq!(client.ok("select count(*) from r"), "0");
}

#[test]
fn on_commit_empties_or_drops() {
    let mut client = Client::new();
    client.ok("create temp table d (n int primary key) on commit delete rows");
    client.ok("create index on d (n desc)");
    client.ok("insert into d values (1)");
    assert_eq!(client.ok("select count(*) from d"), "0");
    client.ok(
        "begin; insert into d select g from generate_series(1, 1000) g; delete from d where n = 5",
    );
    assert_eq!(client.ok("select count(*) from d"), "999");
    client.ok("commit");
    assert_eq!(client.ok("select count(*) from d"), "0");
    client.ok("begin; insert into d values (1); savepoint s; insert into d values (2); rollback to s; insert into d values (2)");
    assert_eq!(client.ok("select count(*) from d where n > 0"), "2");
    client.ok("commit; insert into d values (1), (2)");
    assert_eq!(client.ok("select count(*) from d"), "0");

    client.ok("begin; create temp table p (n int) on commit drop; insert into p values (3)");
    assert_eq!(client.ok("select * from p"), "3");
    client.ok("commit");
    assert_eq!(client.state("select * from p"), "42P01");
    // In a transaction of its own it is gone at once.
    client.ok("create temp table p (n int) on commit drop");
    assert_eq!(client.state("select * from p"), "42P01");
    client.ok("begin; create temp table p (n int) on commit drop; rollback");
    client.ok("create temp table p (n int) on commit preserve rows; insert into p values (4)");
    assert_eq!(client.ok("select * from p"), "4");
    client.ok("begin; drop table d; rollback; insert into d values (1)");
    assert_eq!(client.ok("select count(*) from d"), "0");
    client.ok("begin; create temp table a (n int primary key) on commit drop; create temp table b (n int references a) on commit drop; insert into a values (1); insert into b values (1); commit");
    assert_eq!(client.state("select * from b"), "42P01");
}

#[test]
fn temporary_relations_are_gone_after_a_crash() {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("create temp table t (id serial primary key, n int unique); insert into t (n) select g from generate_series(1, 2000) g");
    client.ok("create temp view v as select * from t; create table kept (i int)");
    // What the disk has while the session is open.
    let crashed = Arc::new(directory.process_kill());
    drop(client);
    drop(database);
    for directory in [crashed, directory] {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        assert_eq!(
            client.ok("select count(*) from pg_namespace where nspname like 'pg_temp%'"),
            "0"
        );
        assert_eq!(
            client.ok("select string_agg(relname, ' ') from pg_class where oid >= 16384"),
            "kept"
        );
        client.ok("create temp table t (i int); insert into t values (1)");
    }
}

#[test]
fn a_table_is_made_of_a_query() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, n numeric(6, 2)); insert into t values (1, 1.5), (2, 2.25)");
    let heard =
        client.hear("create table u as select id, n * 2 as twice, 'x' as word from t where id > 1");
    assert_eq!(heard.tags, ["SELECT 1"]);
    assert_eq!(client.ok("select * from u"), "2|4.50|x");
    assert_eq!(
        client.ok("select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute where attrelid = 'u'::regclass and attnum > 0 order by attnum"),
        "id|integer|f\ntwice|numeric|f\nword|text|f"
    );
    client.ok("create temp table w (a, b) as select id, n from t order by id desc");
    assert_eq!(client.ok("select a, b from w order by a"), "1|1.50\n2|2.25");
    assert_eq!(
        client.ok("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'w'::regclass and attname = 'b'"),
        "numeric(6,2)"
    );
    let heard = client.hear("select count(*) as n, max(id) into x from t");
    assert_eq!(heard.tags, ["SELECT 1"]);
    assert_eq!(client.ok("select n, max from x"), "2|2");
    let heard = client.hear("create table if not exists x as select 1");
    assert_eq!(heard.tags, ["CREATE TABLE AS"]);
    assert_eq!(heard.notices, ["relation \"x\" already exists, skipping"]);
    assert_eq!(client.state("create table x as select 1"), "42P07");
    assert_eq!(client.state("create table y (a, b) as select 1"), "42601");
    assert_eq!(
        client.state("create table y as select 1 as a, 2 as a"),
        "42701"
    );
    assert_eq!(client.state("create table y as select 1/0 as a"), "22012");
    assert_eq!(client.state("select * from y"), "42P01");
    client.ok("begin; create table y as select * from t; rollback");
    assert_eq!(client.state("select * from y"), "42P01");
    // In a block with all that it reads and makes.
    client.ok(
        "begin; insert into t values (3, 0); create temp table z on commit drop as select * from t",
    );
    assert_eq!(client.ok("select count(*) from z"), "3");
    client.ok("commit");
    assert_eq!(client.state("select * from z"), "42P01");
    assert_eq!(client.state("create table y (a, b)"), "42601");
    client.ok("create table y (a, b) as values (1, 'x'), (2, null)");
    assert_eq!(client.ok("select b, a from y order by a"), "x|1\n~|2");
}

/// Whether a prepared statement is compiled when it is run.
fn is_compiled(database: &vellum_sql::SqlDatabase, client: &mut Client) -> bool {
    let before = database.statements_compiled();
    client.ok("execute s");
    database.statements_compiled() > before
}

#[test]
fn temporary_relations_leave_plans_of_other_sessions_alone() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok("create table t (n int primary key)");
    for client in [&mut one, &mut other] {
        client.ok("prepare s as select 1 from t");
        client.ok("execute s");
        assert!(!is_compiled(&database, client));
    }
    for text in [
        "create temp table t (x text, unique (x)); create temp sequence s",
        "alter table t add column y int; create temp view v as select 1 as n",
        "drop view v; drop table t",
    ] {
        one.ok(text);
        assert!(is_compiled(&database, &mut one), "{text}");
        assert!(!is_compiled(&database, &mut one), "{text}");
        assert!(!is_compiled(&database, &mut other), "{text}");
    }
    drop(one);
    assert!(!is_compiled(&database, &mut other), "the end of a session");
    let mut one = Client::of(&database);
    for text in ["create index on t (n)", "create view v as select 1 as n"] {
        one.ok(text);
        assert!(is_compiled(&database, &mut other), "{text}");
    }
    // What is lasting is seen, in one transaction with what is not.
    one.ok(
        "begin; create temp table u (n int); alter table t add column m int; drop table u; commit",
    );
    assert!(is_compiled(&database, &mut other));
}
