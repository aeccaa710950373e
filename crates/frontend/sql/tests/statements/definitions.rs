//! DDL.

use super::client::{Client, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;
use vellum_sql::SqlDatabase;

#[test]
fn ddl_is_undone_with_its_transaction() {
    let mut client = Client::new();
    client.ok("create table kept (id int primary key, n int)");
    client.ok("insert into kept values (1, 1)");
    client.ok("begin");
    client.ok("create table t (id int primary key)");
    client.ok("insert into t values (1)");
    client.ok("create index i on kept (n)");
    client.ok("alter table kept add column extra text default 'x'");
    assert_eq!(client.ok("select * from kept"), "1|1|x");
    client.ok("savepoint s");
    client.ok("drop table kept");
    assert_eq!(client.state("select * from kept"), "42P01");
    client.ok("rollback to s");
    assert_eq!(client.ok("select * from kept where n = 1"), "1|1|x");
    client.ok("rollback");
    assert_eq!(client.state("select * from t"), "42P01");
    assert_eq!(client.ok("select * from kept"), "1|1");
    client.ok("create table t (id int); drop table t; create table t (id text)");
    client.ok("insert into t values ('a')");
}

#[test]
fn the_catalog_is_there_after_a_restart() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("create schema s");
    client.ok(
        "create table s.t (id serial primary key, n numeric(8,2) default 1.5 check (n > 0), u varchar(5) unique)",
    );
    client.ok("create index on s.t (n desc)");
    client.ok("create view v as select id, n * 2 as twice from s.t");
    client.ok("insert into s.t (u) values ('a'), ('b')");
    client.ok("alter table s.t add column later date default '2024-01-01'");
    client.ok("alter table s.t drop column u");
    client.ok("create table plain (a int); insert into plain values (1), (2)");
    drop(client);
    drop(database);
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(
        client.ok("select * from s.t order by id"),
        "1|1.50|2024-01-01\n2|1.50|2024-01-01"
    );
    assert_eq!(client.ok("select twice from v where id = 2"), "3.00");
    assert_eq!(client.state("insert into s.t (n) values (-1)"), "23514");
    let next: i64 = client
        .ok("insert into s.t (n) values (3) returning id")
        .parse()
        .unwrap();
    assert!(next > 2, "{next}");
    client.ok("insert into plain values (3)");
    assert_eq!(client.ok("select a from plain"), "1\n2\n3");
    assert!(
        client
            .ok("explain select * from s.t order by n desc limit 1")
            .contains("t_n_idx")
    );
}

#[test]
fn a_primary_key_comes_later_and_orders_the_table() {
    for order in ["", " order by -g"] {
        let mut client = Client::new();
        client.ok("create table t (id int, n int)");
        client.ok(&format!(
            "insert into t select g, g % 7 from generate_series(1, 300) g{order}"
        ));
        client.ok("create index on t (n)");
        client.ok("alter table t add primary key (id)");
        assert!(
            client
                .ok("explain select * from t where id = 5")
                .contains("Index Lookup")
        );
        assert_eq!(client.ok("select n from t where id = 5"), "5");
        assert_eq!(
            client.ok("select count(*), min(id) from t where n = 3"),
            "43|3"
        );
        assert_eq!(client.state("insert into t values (7, 1)"), "23505");
        assert_eq!(client.state("insert into t values (null, 1)"), "23502");
        assert_eq!(client.state("alter table t add primary key (n)"), "42P16");
    }
    let mut client = Client::new();
    client.ok("create table t (id int); insert into t values (1), (1)");
    assert_eq!(client.state("alter table t add primary key (id)"), "23505");
    client.ok("create table u (id int); insert into u values (1), (null)");
    assert_eq!(client.state("alter table u add primary key (id)"), "23502");
    client.ok("create table b (id int); insert into b select g from generate_series(1, 3000) g");
    client.ok("alter table b add primary key (id)");
    assert_eq!(client.ok("select count(*), max(id) from b"), "3000|3000");
}

#[test]
fn tables_are_altered_without_writing_rows() {
    let mut client = Client::new();
    client.ok("create table t (a int, b text)");
    client.ok("insert into t values (1, 'x')");
    client.ok("alter table t add column c int default 7, drop column b");
    assert_eq!(client.ok("select * from t"), "1|7");
    client.ok("insert into t values (2, 3)");
    client.ok("alter table t rename column c to d");
    client.ok("alter table t rename to u");
    assert_eq!(client.ok("select d from u order by a"), "7\n3");
    client.ok("alter table u alter column d set not null");
    assert_eq!(client.state("insert into u values (3, null)"), "23502");
    client.ok("alter table u alter d drop not null, alter a set default 9");
    client.ok("insert into u (d) values (null)");
    assert_eq!(client.ok("select a from u where d is null"), "9");
    assert_eq!(client.state("alter table u alter d set not null"), "23502");
    assert_eq!(client.state("alter table u add check (a < 5)"), "23514");
    client.ok("alter table u add constraint c check (a < 50)");
    assert_eq!(client.state("insert into u values (50)"), "23514");
    client.ok("alter table u drop constraint c");
    client.ok("insert into u values (50)");
}

#[test]
fn drops_name_what_is_not_there() {
    let mut client = Client::new();
    assert_eq!(client.state("drop table t"), "42P01");
    let heard = client.hear("drop table if exists a, b, c");
    assert_eq!(heard.notices.len(), 3);
    assert_eq!(heard.tags, ["DROP TABLE"]);
    client.ok("create table t (id int primary key)");
    assert_eq!(client.state("create table t (id int)"), "42P07");
    assert_eq!(
        client
            .hear("create table if not exists t (id int)")
            .notices
            .len(),
        1
    );
    assert_eq!(client.state("drop view t"), "42809");
    assert_eq!(client.state("drop index t_pkey"), "2BP01");
    assert_eq!(client.state("create table nix.t (id int)"), "3F000");
    assert_eq!(client.state("create table e (id nix)"), "42704");
    assert_eq!(client.state("create table e (id int, id int)"), "42701");
    client.ok("create schema s; create table s.t (id int)");
    assert_eq!(client.state("drop schema s"), "2BP01");
    client.ok("set search_path = s, public; insert into t values (5)");
    assert_eq!(client.ok("select * from s.t"), "5");
    client.ok("drop schema s cascade");
    assert_eq!(client.ok("select count(*) from t"), "0");
}

#[test]
fn a_primary_key_goes_and_its_rows_stay() {
    let mut client = Client::new();
    client.ok(
        "create table t (a int, b int, c text unique, primary key (b, a));
        insert into t select g, 10 - g, 'r' || g from generate_series(1, 5) g",
    );
    client.ok("alter table t drop constraint t_pkey");
    assert_eq!(client.ok("select a from t where c = 'r3'"), "3");
    assert_eq!(client.state("insert into t values (null, 1, 'x')"), "23502");
    client.ok("insert into t values (1, 9, 'again')");
    assert_eq!(client.ok("select count(*), sum(b) from t"), "6|44");
    client.ok("delete from t where c = 'again'; alter table t add primary key (a)");
    assert_eq!(client.ok("select c from t where a = 5"), "r5");
    client.ok("alter table t drop column a");
    assert_eq!(
        client.ok("select b, c from t where b < 7 order by b"),
        "5|r5\n6|r4"
    );
    client.ok("create table o (id int primary key); create table d (id int references o)");
    assert_eq!(
        client.state("alter table o drop constraint o_pkey"),
        "2BP01"
    );
}

#[test]
fn names_of_columns_and_constraints_change_everywhere() {
    let mut client = Client::new();
    client.ok("create table t (a int check (a > 0 and t.a < 100), text text, constraint long check (text::text <> 'a' and length(text) < 5), unique (a))");
    client.ok("alter table t rename column a to \"B c\"");
    assert_eq!(client.state("insert into t values (0, 'x')"), "23514");
    assert_eq!(client.state("insert into t values (100, 'x')"), "23514");
    client.ok("insert into t values (5, 'x')");
    assert_eq!(client.ok("select \"B c\" from t"), "5");
    // The name stands for a type, too.
    assert_eq!(
        client.state("alter table t rename column text to words"),
        "0A000"
    );
    client.ok("alter table t rename constraint long to short; alter table t rename constraint t_a_key to only");
    let (state, message) = client.fails("insert into t values (6, 'too long')");
    assert_eq!(
        (state.as_str(), message.contains("\"short\"")),
        ("23514", true)
    );
    let (state, message) = client.fails("insert into t values (5, 'y')");
    assert_eq!(
        (state.as_str(), message.contains("\"only\"")),
        ("23505", true)
    );
    assert_eq!(
        client.state("alter table t rename constraint nobody to x"),
        "42704"
    );
    assert_eq!(
        client.state("alter table t rename constraint only to short"),
        "42710"
    );
}

#[test]
fn a_column_gets_another_type_with_its_rows_keys_and_checks() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, n text default '7', v varchar(3), check (length(v) < 3))");
    client.ok("create unique index on t (n); create index on t (v desc)");
    client.ok("insert into t values (1, '10', 'a'), (2, '9', 'b'), (3, null, null)");
    assert_eq!(
        client.fails("alter table t alter column n type int"),
        (
            "42804".to_owned(),
            "column \"n\" cannot be cast automatically to type integer".to_owned()
        )
    );
    client.ok("alter table t alter n type bigint using n::bigint");
    assert_eq!(
        client.ok("select id from t order by n nulls first"),
        "3\n2\n1"
    );
    assert_eq!(client.ok("select id from t where n = 9"), "2");
    client.ok("insert into t (id) values (4)");
    assert_eq!(client.ok("select n + 1 from t where id = 4"), "8");
    assert_eq!(client.state("insert into t values (5, 9)"), "23505");
    // A conversion that makes two of one.
    assert_eq!(
        client.state("alter table t alter n type int using 1"),
        "23505"
    );
    assert_eq!(client.ok("select count(*) from t where n = 9"), "1");
    client.ok("alter table t alter v type text using v || v");
    assert_eq!(client.ok("select v from t where v = 'aa'"), "aa");
    assert_eq!(
        client.state("alter table t alter v type text using v || v"),
        "23514"
    );
    client.ok("alter table t alter id type smallint, alter v set data type varchar(2)");
    assert_eq!(
        client.state("alter table t alter v type varchar(1) using v"),
        "22001"
    );
    assert_eq!(
        client.ok("select id, n, v from t order by id"),
        "1|10|aa\n2|9|bb\n3|~|~\n4|7|~"
    );
    client.ok("create table u (t smallint references t)");
    client.ok("alter table t alter id type int");
    assert_eq!(
        client.state("alter table t alter id type text using id::text"),
        "42804"
    );
    assert_eq!(client.state("create table w (r record)"), "42P16");
    client.ok("begin; alter table t alter n type text; rollback");
    assert_eq!(client.ok("select sum(n) from t"), "26");
}

#[test]
fn regress_a_table_of_many_pieces_is_written_anew_row_by_row() {
    let mut client = Client::new();
    // Twelve megabytes: a table is moved in pieces of four.
    client.ok("create table t (id int, n int, pad text)");
    client.ok(
        "insert into t select g, g, repeat(chr(65 + g % 26), 40000) from generate_series(1, 300) g",
    );
    let whole = "select count(*), count(distinct id), sum(n), sum(length(pad)) from t";
    client.ok("alter table t alter n type bigint using n * 2");
    assert_eq!(client.ok(whole), "300|300|90300|12000000");
    client.ok("create table d (id int, pad text)");
    // Descending, so that the new order is another one.
    client.ok("insert into d select id, pad from t order by id desc");
    client.ok("alter table d add primary key (id)");
    assert_eq!(
        client.ok("select count(*), min(id), max(id), sum(length(pad)) from d"),
        "300|1|300|12000000"
    );
    assert_eq!(
        client.ok("select count(*) from d where pad <> repeat(chr(65 + id % 26), 40000)"),
        "0"
    );
    client.ok("alter table d drop constraint d_pkey");
    assert_eq!(client.ok("select count(distinct id) from d"), "300");
    assert_eq!(client.state("insert into d values (null, '')"), "23502");
    client.ok("insert into d values (1, 'twice')");
    assert_eq!(client.state("alter table d add primary key (id)"), "23505");
}

#[test]
fn comments_stay_with_what_they_are_about() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, n int, constraint big check (n > 0), constraint up foreign key (n) references t); create index by_n on t (n); create view v as select id as a from t; create sequence s; create schema other; create role r");
    client.ok("comment on table t is 'a table'; comment on column t.n is 'a column'; comment on index by_n is 'an index'; comment on index t_pkey is 'a key'");
    client.ok("comment on constraint big on t is 'a check'; comment on constraint t_pkey on public.t is 'the key'; comment on constraint up on t is 'a parent'");
    client.ok("comment on view v is 'a view'; comment on column v.a is 'of a view'; comment on sequence s is 'numbers'; comment on schema other is 'another'; comment on role r is 'a role'; comment on database vellum is 'this'");
    assert_eq!(
        client.ok("select obj_description('t'::regclass), obj_description('t'::regclass, 'pg_class'), obj_description('t'::regclass, 'pg_constraint'), col_description('t'::regclass, 2), col_description('t'::regclass, 1)"),
        "a table|a table|~|a column|~"
    );
    assert_eq!(
        client.ok("select conname, obj_description(oid, 'pg_constraint') from pg_constraint where conrelid = 't'::regclass order by 1"),
        "big|a check\nt_pkey|the key\nup|a parent"
    );
    assert_eq!(
        client.ok("select shobj_description(oid, 'pg_authid') from pg_authid where rolname = 'r'"),
        "a role"
    );
    assert_eq!(
        client.ok("select shobj_description(oid, 'pg_database') from pg_database"),
        "this"
    );
    let all = "select c.relname, d.objsubid, d.description from pg_description d join pg_class c on d.objoid = c.oid and d.classoid = 'pg_class'::regclass order by 1, 2";
    let told = "by_n|0|an index\ns|0|numbers\nt|0|a table\nt|2|a column\nt_pkey|0|a key\nv|0|a view\nv|1|of a view";
    assert_eq!(client.ok(all), told);
    for (refused, state) in [
        ("comment on table nobody is 'x'", "42P01"),
        ("comment on view t is 'x'", "42809"),
        ("comment on table by_n is 'x'", "42809"),
        ("comment on column t.nobody is 'x'", "42703"),
        ("comment on constraint nobody on t is 'x'", "42704"),
        ("comment on schema nobody is 'x'", "3F000"),
        ("comment on role nobody is 'x'", "42704"),
        ("comment on type nobody is 'x'", "42704"),
    ] {
        assert_eq!(client.state(refused), state, "{refused}");
    }
    client.ok("begin; comment on table t is 'another'; rollback; comment on schema public is null");
    drop(client);
    drop(database);
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(client.ok(all), told);
    let of_public = "select obj_description('public'::regnamespace, 'pg_namespace') is null";
    assert_eq!(client.ok(of_public), "t");
    client.ok("alter table t rename column n to m; alter table t rename to renamed; comment on view v is null; comment on sequence s is ''");
    assert_eq!(
        client.ok("select col_description('renamed'::regclass, 2)"),
        "a column"
    );
    client.ok("drop index by_n; alter table renamed drop constraint up");
    client.ok("alter table renamed drop column m; drop schema other; drop role r");
    assert_eq!(
        client.ok("select d.description from pg_description d where objoid >= 16384 order by 1"),
        "a key\na table\nof a view\nthe key"
    );
    client.ok("drop view v; drop table renamed");
    assert_eq!(
        client.ok("select description from pg_description where objoid >= 16384"),
        ""
    );
    assert_eq!(
        client.ok("select description from pg_shdescription"),
        "this"
    );
}

#[test]
fn a_column_that_comes_later_numbers_the_rows_that_are_there() {
    let mut client = Client::new();
    client.ok("create table t (k text primary key, n int); insert into t values ('a', 3), ('b', 2), ('c', 1)");
    client.ok("create index on t (n); alter table t add column id serial, add column g bigint generated always as identity (start 10 increment by 5)");
    assert_eq!(
        client.ok("select * from t order by n"),
        "c|1|3|20\nb|2|2|15\na|3|1|10"
    );
    client.ok("insert into t values ('d', 0)");
    assert_eq!(client.ok("select id, g from t where k = 'd'"), "4|25");
    assert_eq!(
        client.state("insert into t (k, g) values ('e', 1)"),
        "428C9"
    );
    assert_eq!(
        client.state("insert into t (k, id) values ('e', null)"),
        "23502"
    );
    client.ok("create table h (x int); insert into h select g from generate_series(1, 500) g; alter table h add column id bigserial primary key");
    assert_eq!(
        client.ok("select count(*), min(id), max(id), sum(x) from h"),
        "500|1|500|125250"
    );
    assert_eq!(client.ok("select x from h where id = 77"), "77");
    client.ok("create table e (x int); alter table e add column id smallserial unique; insert into e values (1)");
    assert_eq!(client.ok("select * from e"), "1|1");
    client.ok("begin; alter table h add column again serial; rollback; insert into h values (501)");
    assert_eq!(client.ok("select count(*), max(id) from h"), "501|501");
    assert_eq!(
        client.state(
            "alter table h add column small smallint generated by default as identity (start 32700)"
        ),
        "2200H"
    );
}

#[test]
fn options_of_sequences_come_in_any_order() {
    let mut client = Client::new();
    client.ok(
        "create sequence s start with -1 no maxvalue cycle cache 1 minvalue -3 increment by -2",
    );
    assert_eq!(
        client.ok("select seqstart, seqincrement, seqmin, seqmax, seqcycle from pg_sequence where seqrelid = 's'::regclass"),
        "-1|-2|-3|-1|t"
    );
}

/// How many sequences have a row that says how far they are.
fn rows_of_sequences(database: &SqlDatabase) -> usize {
    let transaction = database.engine().begin().unwrap();
    let table = transaction.table("sql.sequences").unwrap();
    let mut cursor = transaction.cursor(&table, ..).unwrap();
    std::iter::from_fn(|| cursor.next().unwrap().map(drop)).count()
}

#[test]
fn regress_sequences_that_are_gone_leave_no_rows() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("create table kept (id serial); insert into kept default values");
    let alone = rows_of_sequences(&database);
    let makes = "create sequence s; select nextval('s'); create table t (id serial, n int generated always as identity); insert into t default values";
    for (before, after) in [
        ("", "drop sequence s; drop table t"),
        ("begin;", "drop sequence s; drop table t; commit"),
        ("begin;", "rollback"),
        ("begin; savepoint a;", "rollback to a; commit"),
        (
            "create schema x; set search_path = x;",
            "drop schema x cascade; reset search_path",
        ),
    ] {
        client.ok(&format!("{before} {makes}"));
        assert_eq!(rows_of_sequences(&database), alone + 3, "{before}");
        client.ok(after);
        assert_eq!(rows_of_sequences(&database), alone, "{after}");
    }
    // A drop that is undone keeps what was drawn; whoever has an older snapshot goes on drawing, and writes no row.
    client.ok("create sequence s");
    client.ok("begin; drop sequence s; rollback");
    assert_eq!(client.ok("select nextval('s'), nextval('s')"), "1|2");
    let mut old = Client::of(&database);
    old.ok("begin isolation level repeatable read; select 1");
    client.ok("drop sequence s");
    let drawn =
        old.ok("select count(nextval('s')), max(nextval('s')) from generate_series(1, 100)");
    assert_eq!(drawn, "100|202");
    assert_eq!(rows_of_sequences(&database), alone);
    old.ok("commit");
    // What a crash left behind goes when the database is opened.
    let transaction = database.engine().begin().unwrap();
    let table = transaction.table("sql.sequences").unwrap();
    transaction
        .insert(&table, &99_999_u32.to_be_bytes(), &[0; 8])
        .unwrap();
    transaction.commit().unwrap();
    assert_eq!(rows_of_sequences(&database), alone + 1);
    drop((client, old, database));
    let database = database_in(&directory);
    assert_eq!(rows_of_sequences(&database), alone);
    let mut client = Client::of(&database);
    let next: i64 = client.ok("select nextval('kept_id_seq')").parse().unwrap();
    assert!(next > 1, "{next}");
}

/// A sequence is a relation of one row, as at PostgreSQL.
#[test]
fn regress_a_sequence_can_be_read() {
    let mut a = Client::new();
    a.ok("create sequence s start 7 increment 3");
    let read = "select last_value, is_called from s";
    assert_eq!(a.ok(read), "7|f");
    a.ok("select nextval('s')");
    assert_eq!(a.ok(read), "7|t");
    a.ok("select nextval('s'), setval('s', 20, false)");
    assert_eq!(a.ok(read), "20|f");
    assert_eq!(a.ok("select nextval('s'), nextval('s')"), "20|23");
    assert_eq!(a.ok("select x.last_value from s x"), "23");
    assert_eq!(a.ok("select count(*), max(last_value) from s"), "1|23");
    a.ok("create table t (id serial, v int); insert into t (v) select generate_series(1, 4)");
    let next = "select max(id) = (select last_value from t_id_seq) from t";
    assert_eq!(a.ok(next), "t");
    assert_eq!(a.state("insert into s values (1)"), "42809");
    assert_eq!(a.state("update s set last_value = 1"), "42809");
    assert_eq!(a.state("delete from s"), "42809");
    assert_eq!(a.state("select nothing from s"), "42703");
    a.ok("create role reader; set role reader");
    assert_eq!(a.state(read), "42501");
    assert_eq!(a.ok("select count(*) from vellum_sequences"), "0");
    a.ok("reset role; grant select on sequence s to reader; set role reader");
    assert_eq!(a.ok(read), "23|t");
}
