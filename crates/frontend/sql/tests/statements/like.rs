//! CREATE TABLE (LIKE …), … AS … WITH NO DATA, and OWNER TO: what is expected is what PostgreSQL 15 does.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;

const CONSTRAINTS: &str = "select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = '{}'::regclass order by 1";
const INDEXES: &str = "select indexdef from pg_indexes where tablename = '{}' order by 1";
const COLUMNS: &str = "select attname, format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = '{}'::regclass and attnum > 0 and not attisdropped order by attnum";

fn about(client: &mut Client, query: &str, table: &str) -> String {
    client.ok(&query.replace("{}", table))
}

#[test]
fn a_table_is_made_like_another_one() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("create table p (id int primary key);
        create table l (gone text, id int generated always as identity (start 5), a int default 5 check (a > 0), \"B\" varchar(7) not null,
            p int references p, primary key (id), unique (\"B\", a));
        create index on l (a desc, \"B\" nulls first); create unique index on l (p);
        alter table l drop column gone;
        comment on column l.a is 'of a'; comment on constraint l_a_check on l is 'of the check'");
    client.ok("create table m (like l including all)");
    assert_eq!(
        about(&mut client, COLUMNS, "m"),
        "id|integer|t|a|~|~\na|integer|f||5|of a\nB|character varying(7)|t||~|~\np|integer|f||~|~"
    );
    assert_eq!(
        about(&mut client, CONSTRAINTS, "m"),
        "l_a_check|c|CHECK ((a > 0))\nm_B_a_key|u|UNIQUE (\"B\", a)\nm_pkey|p|PRIMARY KEY (id)"
    );
    assert_eq!(
        about(&mut client, INDEXES, "m"),
        "CREATE INDEX \"m_a_B_idx\" ON public.m USING btree (a DESC, \"B\" NULLS FIRST)\n\
         CREATE UNIQUE INDEX \"m_B_a_key\" ON public.m USING btree (\"B\", a)\n\
         CREATE UNIQUE INDEX m_p_idx ON public.m USING btree (p)\n\
         CREATE UNIQUE INDEX m_pkey ON public.m USING btree (id)"
    );
    assert_eq!(
        client.ok("select obj_description(oid, 'pg_constraint') from pg_constraint where conrelid = 'm'::regclass and contype = 'c'"),
        "of the check"
    );
    // Numbers of its own, from the same start.
    client.ok("insert into l (\"B\", p) values ('x', null)");
    assert_eq!(
        client.ok("insert into m (\"B\") values ('x') returning id, a"),
        "5|5"
    );
    assert_eq!(
        client.state("insert into m (id, \"B\") values (1, 'y')"),
        "428C9"
    );
    assert_eq!(
        client.state("insert into m (\"B\", a) values ('y', 0)"),
        "23514"
    );
    assert_eq!(client.state("insert into m (\"B\") values ('x')"), "23505");
    client.ok("drop table l");
    client.ok("insert into m (\"B\", p) values ('z', 1)");
    drop((client, database));
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(
        client.ok("select id, a, \"B\", p from m where p = 1"),
        "8|5|z|1"
    );
}

#[test]
fn what_like_copies_is_said_by_its_options() {
    let mut client = Client::new();
    client.ok("create table l (id serial primary key, a int default 5 check (a > 0), b text); create view v as select a, b as \"Wide\" from l");
    client.ok("create table m (x int, like public.l, y int default 1)");
    assert_eq!(
        about(&mut client, COLUMNS, "m"),
        "x|integer|f||~|~\nid|integer|t||~|~\na|integer|f||~|~\nb|text|f||~|~\ny|integer|f||1|~"
    );
    assert_eq!(about(&mut client, CONSTRAINTS, "m"), "");
    client.ok(
        "create table n (like \"l\" including defaults including constraints excluding defaults)",
    );
    assert_eq!(
        about(&mut client, CONSTRAINTS, "n"),
        "l_a_check|c|CHECK ((a > 0))"
    );
    assert_eq!(client.ok("insert into n (id) values (1) returning a"), "~");
    client.ok("create table o (like l including all excluding all)");
    assert_eq!(about(&mut client, INDEXES, "o"), "");
    // A serial column's default is the other's sequence.
    client.ok("create temp table q (like l including defaults)");
    assert_eq!(client.ok("insert into q default values returning id"), "1");
    assert_eq!(client.ok("insert into l default values returning id"), "2");
    client.ok("create table w (like v including all)");
    assert_eq!(
        about(&mut client, COLUMNS, "w"),
        "a|integer|f||~|~\nWide|text|f||~|~"
    );
    client.ok("begin; create table z (like l including all); rollback");
    client.ok("create sequence s");
    for (sql, state) in [
        ("create table z (like nothing)", "42P01"),
        ("create table z (like s)", "42809"),
        ("create table z (like l including nonsense)", "42601"),
        ("create table z (like l including)", "42601"),
        ("create table z (a int, like l)", "42701"),
        (
            "create table z (like l including indexes, primary key (a))",
            "42P16",
        ),
        ("create table z (\"like\" nothing)", "42704"),
    ] {
        assert_eq!(client.state(sql), state, "{sql}");
    }
    client.ok(
        "create table z (\"like\" int generated always as identity, like l including comments)",
    );
    let database = database();
    let mut owner = Client::of(&database);
    owner.ok("create table l (a int); create role r; grant create on schema public to r");
    let mut other = Client::of_user(&database, "r");
    assert_eq!(other.state("create table m (like l)"), "42501");
    owner.ok("grant select on l to r");
    other.ok("create table m (like l)");
}

#[test]
fn a_table_is_made_of_a_query_without_its_rows() {
    let mut client = Client::new();
    for (sql, tag, rows) in [
        (
            "create table a as select 1 / (g - g) as n from generate_series(1, 3) g with no data",
            "CREATE TABLE AS",
            "0",
        ),
        (
            "create temp table b (x) as select g from generate_series(1, 3) g limit 2 with no data",
            "CREATE TABLE AS",
            "0",
        ),
        (
            "create table if not exists c as (select 1 as n) with data",
            "SELECT 1",
            "1",
        ),
        (
            "create local temporary table d as select 1 as n with no data;",
            "CREATE TABLE AS",
            "0",
        ),
    ] {
        assert_eq!(client.hear(sql).tags, [tag], "{sql}");
        let name = sql.split(" as ").next().unwrap().trim_end_matches(" (x)");
        let name = name.split(' ').next_back().unwrap();
        assert_eq!(
            client.ok(&format!("select count(*) from {name}")),
            rows,
            "{sql}"
        );
    }
    assert_eq!(
        client.ok("select pg_typeof(n) from (select n from a union all select 1) u"),
        "integer"
    );
    client.ok("begin; create table e as select 1 as n with no data; rollback");
    assert_eq!(client.state("select * from e"), "42P01");
    assert_eq!(client.state("select 1 with no data"), "42601");
}

#[test]
fn regress_a_table_is_given_to_its_new_owner() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role one; create role two; create role three; grant one to three; grant two to three;
        grant create on schema public to one");
    let mut one = Client::of_user(&database, "one");
    one.ok("create table t (id serial, n int); create index on t (n); grant select on t to two");
    assert_eq!(one.fails("alter table t owner to nobody").0, "42704");
    assert_eq!(
        one.fails("alter table t owner to two"),
        (
            "42501".to_owned(),
            "must be member of role \"two\"".to_owned()
        )
    );
    let mut three = Client::of_user(&database, "three");
    assert_eq!(
        three.fails("alter table t owner to two"),
        (
            "42501".to_owned(),
            "permission denied for schema public".to_owned()
        )
    );
    client.ok("grant create on schema public to two");
    three.ok("begin; alter table t owner to two; rollback");
    one.ok("insert into t (n) values (1)");
    three.ok("alter table t owner to two");
    assert_eq!(
        client.ok("select relname, relowner::regrole from pg_class where relname in ('t', 't_id_seq', 't_n_idx') order by 1"),
        "t|two\nt_id_seq|two\nt_n_idx|two"
    );
    assert_eq!(
        client.ok("select relacl from pg_class where relname = 't'"),
        "{two=arwdDxt/two}"
    );
    assert_eq!(one.state("select * from t"), "42501");
    assert_eq!(one.state("drop table t"), "42501");
    let mut two = Client::of_user(&database, "two");
    two.ok("insert into t (n) values (2); alter table t owner to current_user; drop table t");
    assert_eq!(
        client.ok("select count(*) from pg_class where relname like 't_id_seq'"),
        "0"
    );
}
