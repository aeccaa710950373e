//! What is told of what depends on what is dropped: as PostgreSQL 15 tells it.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;

fn family() -> Client {
    let mut client = Client::new();
    client.ok(
        "create table p (id int primary key, u text unique, n int, g int generated always as (n*2) stored, s serial);
         create table c (id int primary key, p int references p, u text references p (u));
         create view v1 as select id, u from p;
         create view v2 as select n from p;
         create view v3 as select v1.id, v2.n from v1, v2;
         create table d (x int default nextval('p_s_seq'));
         alter table p add constraint self foreign key (n) references p (id)",
    );
    client
}

/// Message and detail of what fails.
fn refused(client: &mut Client, sql: &str) -> (String, String) {
    let error = client.failure(sql);
    let fields = error.fields();
    assert_eq!(
        fields.hint.as_deref(),
        Some("Use DROP ... CASCADE to drop the dependent objects too."),
        "{sql}"
    );
    assert_eq!(error.sqlstate().to_string(), "2BP01", "{sql}");
    (
        error.message().to_owned(),
        fields.detail.clone().unwrap_or_default(),
    )
}

#[test]
fn all_that_depends_is_listed() {
    let mut client = family();
    for (sql, what, lines) in [
        (
            "drop table p",
            "table p",
            &[
                "default value for column x of table d depends on sequence p_s_seq",
                "constraint c_p_fkey on table c depends on table p",
                "constraint c_u_fkey on table c depends on table p",
                "view v1 depends on table p",
                "view v2 depends on table p",
                "view v3 depends on view v2",
            ][..],
        ),
        (
            "alter table p drop column id",
            "column id of table p",
            &[
                "constraint c_p_fkey on table c depends on column id of table p",
                "view v1 depends on column id of table p",
                "view v3 depends on view v1",
                "constraint self on table p depends on column id of table p",
            ],
        ),
        (
            "alter table p drop column n",
            "column n of table p",
            &[
                "column g of table p depends on column n of table p",
                "view v2 depends on column n of table p",
                "view v3 depends on view v2",
            ],
        ),
        (
            "alter table p drop column s",
            "column s of table p",
            &["default value for column x of table d depends on sequence p_s_seq"],
        ),
        (
            "alter table p drop constraint p_pkey",
            "constraint p_pkey on table p",
            &[
                "constraint c_p_fkey on table c depends on index p_pkey",
                "constraint self on table p depends on index p_pkey",
            ],
        ),
        (
            "drop sequence p_s_seq",
            "sequence p_s_seq",
            &[
                "default value for column s of table p depends on sequence p_s_seq",
                "default value for column x of table d depends on sequence p_s_seq",
            ],
        ),
        ("drop view v1", "view v1", &["view v3 depends on view v1"]),
    ] {
        let (message, detail) = refused(&mut client, sql);
        let expected = format!("cannot drop {what} because other objects depend on it");
        assert_eq!(message, expected, "{sql}");
        assert_eq!(detail, lines.join("\n"), "{sql}");
    }
    let together = "cannot drop desired object(s) because other objects depend on them";
    let (message, detail) = refused(&mut client, "drop view v1, v2");
    assert_eq!(
        (message.as_str(), detail.as_str()),
        (together, "view v3 depends on view v1")
    );
    let (message, detail) = refused(&mut client, "drop table p, c");
    assert_eq!(message, together);
    assert!(
        detail.starts_with(
            "default value for column x of table d depends on sequence p_s_seq\nview v1"
        ),
        "{detail}"
    );
}

#[test]
fn cascade_tells_once_what_goes_along() {
    for (sql, notice) in [
        ("drop table p cascade", "drop cascades to 6 other objects"),
        (
            "drop table p, c cascade",
            "drop cascades to 4 other objects",
        ),
        (
            "alter table p drop column n cascade",
            "drop cascades to 3 other objects",
        ),
        (
            "alter table p drop column id cascade",
            "drop cascades to 4 other objects",
        ),
        (
            "alter table p drop column s cascade",
            "drop cascades to default value for column x of table d",
        ),
        (
            "alter table p drop constraint p_pkey cascade",
            "drop cascades to 2 other objects",
        ),
        (
            "drop sequence p_s_seq cascade",
            "drop cascades to 2 other objects",
        ),
        ("drop view v1, v2 cascade", "drop cascades to view v3"),
    ] {
        let mut client = family();
        client
            .ok("insert into p values (1, 'a', 1), (2, 'b', 1); insert into c values (1, 1, 'a')");
        // Rolled back, all of it is there again.
        client.ok("begin");
        assert_eq!(client.hear(sql).notices, [notice], "{sql}");
        client.ok("rollback");
        assert_eq!(client.ok("select count(*) from v3"), "4");
        assert_eq!(client.state("insert into c values (2, 3, 'a')"), "23503");
        assert_eq!(client.hear(sql).notices, [notice], "{sql}");
        client.ok("select * from d; insert into d default values");
    }
}

#[test]
fn a_schema_names_what_is_in_it_and_what_reads_that() {
    let mut client = Client::new();
    client.ok(
        "create schema s; create table s.t (id int primary key, q serial); create view s.v as select * from s.t;
         create view pv as select * from s.v; create table pc (x int references s.t); create sequence s.sq;
         create table pd (x int default nextval('s.t_q_seq'))",
    );
    let (message, detail) = refused(&mut client, "drop schema s");
    assert_eq!(
        message,
        "cannot drop schema s because other objects depend on it"
    );
    let lines = [
        "table s.t depends on schema s",
        "default value for column x of table pd depends on sequence s.t_q_seq",
        "constraint pc_x_fkey on table pc depends on table s.t",
        "view s.v depends on schema s",
        "view pv depends on view s.v",
        "sequence s.sq depends on schema s",
    ];
    assert_eq!(detail, lines.join("\n"));
    let notices = client.hear("drop schema s cascade").notices;
    assert_eq!(notices, ["drop cascades to 6 other objects"]);
    client.ok("insert into pc values (1); insert into pd default values");
    assert_eq!(client.state("select * from pv"), "42P01");
}

#[test]
fn what_is_no_such_thing_says_what_it_is() {
    let mut client = family();
    for (sql, message, hint) in [
        (
            "drop view p",
            "\"p\" is not a view",
            "Use DROP TABLE to remove a table.",
        ),
        (
            "drop table v1",
            "\"v1\" is not a table",
            "Use DROP VIEW to remove a view.",
        ),
        (
            "drop index c",
            "\"c\" is not an index",
            "Use DROP TABLE to remove a table.",
        ),
        (
            "drop table c_pkey",
            "\"c_pkey\" is not a table",
            "Use DROP INDEX to remove an index.",
        ),
    ] {
        let error = client.failure(sql);
        assert_eq!(error.message(), message);
        assert_eq!(error.fields().hint.as_deref(), Some(hint));
    }
    let error = client.failure("drop index p_pkey");
    assert_eq!(
        error.message(),
        "cannot drop index p_pkey because constraint p_pkey on table p requires it"
    );
}

/// Tables that refer to each other go when their transaction commits.
#[test]
fn temporary_tables_go_together() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create temp table k (id int primary key)");
    client.ok("begin; create temp table a (id int primary key) on commit drop; create temp table b (id int references a) on commit drop; create temp view w as select * from a");
    let heard = client.hear("commit");
    assert!(heard.notices.is_empty(), "{:?}", heard.notices);
    assert_eq!(client.state("select * from w"), "42P01");
    client.ok("select * from k; create temp view x as select * from k; discard temp");
    assert_eq!(client.state("select * from k"), "42P01");
}

/// Symptom: the index went and the foreign key stayed: `XX000` where it was looked at, and the database could not be opened again.
#[test]
fn regress_a_foreign_key_keeps_the_columns_that_its_index_includes() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok(
        "create type mood as enum ('sad'); create domain small as int;
         create table p (a int, c int, m mood, d small, primary key (a) include (c, m, d), u int);
         create unique index on p (u) include (c);
         create table ch (a int references p (a), u int references p (u));
         insert into p values (1, 2, 'sad', 3, 4); insert into ch values (1, 4)",
    );
    let on_key = "constraint ch_a_fkey on table ch depends on index p_pkey";
    let on_index = "constraint ch_u_fkey on table ch depends on index p_u_c_idx";
    for (sql, what, lines) in [
        (
            "alter table p drop column c",
            "column c of table p",
            &[on_key, on_index][..],
        ),
        (
            "drop type mood",
            "type mood",
            &["column m of table p depends on type mood", on_key],
        ),
        (
            "drop domain small",
            "type small",
            &["column d of table p depends on type small", on_key],
        ),
    ] {
        let (message, detail) = refused(&mut client, sql);
        let expected = format!("cannot drop {what} because other objects depend on it");
        assert_eq!(message, expected);
        assert_eq!(detail, lines.join("\n"), "{sql}");
    }
    let notices = client.hear("drop type mood cascade").notices;
    assert_eq!(notices, ["drop cascades to 2 other objects"]);
    let notices = client.hear("alter table p drop column c cascade").notices;
    assert_eq!(
        notices,
        ["drop cascades to constraint ch_u_fkey on table ch"]
    );
    client.ok("insert into p values (1, 3, 4); insert into ch values (7, 8)");
    drop((client, database));
    let database = database_in(&directory);
    assert_eq!(database.keys_left_out(), [""; 0]);
    assert_eq!(Client::of(&database).ok("select count(*) from p, ch"), "4");
}

/// What an earlier build could leave behind.
#[test]
fn a_foreign_key_whose_target_is_gone_is_left_out_when_the_database_is_opened() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client.ok("create table p (a int primary key); create table ch (a int references p, b int)");
    assert_eq!(client.state("insert into ch values (1)"), "23503");
    let oid: u32 = client.ok("select 'p'::regclass::oid").parse().unwrap();
    let removed = database.engine().retry(|transaction| {
        let table = transaction.table("sql.catalog")?;
        let mut key = vec![2];
        key.extend_from_slice(&oid.to_be_bytes());
        transaction.delete(&table, &key)
    });
    assert!(removed.unwrap());
    drop((client, database));
    for left_out in [&["ch_a_fkey of public.ch"][..], &[]] {
        let database = database_in(&directory);
        assert_eq!(database.keys_left_out(), left_out);
        let mut client = Client::of(&database);
        // Whatever is said of the table, it is kept without the key.
        client.ok("insert into ch values (1); alter table ch alter b set default 1");
    }
}

/// Symptom: the view was kept, and `42803` from then on.
#[test]
fn regress_a_primary_key_is_kept_by_views_that_group_by_it() {
    let mut client = Client::new();
    client.ok(
        "create table t (id int, n text, c int, primary key (id) include (c));
         create view v as select id, n, count(*) from t group by id;
         create view w as select v.id, t.n from v, t;
         create view other as select n, count(*) from t group by n;
         create table r (id int references t)",
    );
    for (sql, what) in [
        (
            "alter table t drop constraint t_pkey",
            "constraint t_pkey on table t",
        ),
        ("alter table t drop column c", "column c of table t"),
    ] {
        let (message, detail) = refused(&mut client, sql);
        let expected = format!("cannot drop {what} because other objects depend on it");
        assert_eq!(message, expected);
        let lines = [
            "constraint r_id_fkey on table r depends on index t_pkey",
            "view v depends on constraint t_pkey on table t",
            "view w depends on view v",
        ];
        assert_eq!(detail, lines.join("\n"), "{sql}");
    }
    let notices = client.hear("alter table t drop column c cascade").notices;
    assert_eq!(notices, ["drop cascades to 3 other objects"]);
    client.ok("insert into r values (1); select * from other");
    assert_eq!(client.state("select * from v"), "42P01");
}

/// Symptom: the key stood on whichever index came first, and the one that it was made on could be dropped beside it.
#[test]
fn regress_a_foreign_key_stands_on_the_index_that_was_there_when_it_was_made() {
    let mut client = Client::new();
    client.ok("create table t (a int, b int not null, constraint one unique (b)); create table r (x int references t (b))");
    client.ok("alter table t add constraint two unique (b); alter table t add constraint own primary key (b)");
    let index = "select conindid::regclass from pg_constraint where conname = 'r_x_fkey'";
    assert_eq!(client.ok(index), "one");
    let error = client.failure("alter table t drop constraint one");
    assert_eq!(error.sqlstate().to_string(), "2BP01");
    client.ok("alter table t drop constraint two; alter table t drop constraint own");
    client.ok("alter table t add constraint own primary key (b); insert into t values (1, 1); insert into r values (1)");
    assert_eq!(client.state("insert into r values (2)"), "23503");
    let heard = client.hear("alter table t drop constraint one cascade");
    assert_eq!(
        heard.notices,
        ["drop cascades to constraint r_x_fkey on table r"]
    );
    client.ok("insert into r values (2)");
}
