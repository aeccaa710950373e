//! Enums beyond their answers: texts of errors, transactions, other sessions, a restart, the protocol. Answers are in the corpus (`enums`).

use super::client::{Client, Heard, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;
use vellum_sql::{Format, Parameters, Progress};

const MOOD: &str = "create type mood as enum ('sad', 'ok', 'happy')";

fn client() -> Client {
    let mut client = Client::new();
    client.ok(MOOD);
    client
}

#[test]
fn errors_say_what_postgresql_says() {
    let mut client = client();
    client.ok(
        "create schema s; create type s.mood as enum ('x'); create type \"Odd one\" as enum ()",
    );
    for (sql, state, message) in [
        (
            "select 'none'::mood",
            "22P02",
            "invalid input value for enum mood: \"none\"",
        ),
        (
            "select 'none'::s.mood",
            "22P02",
            "invalid input value for enum s.mood: \"none\"",
        ),
        (
            "select 'a'::\"Odd one\"",
            "22P02",
            "invalid input value for enum \"Odd one\": \"a\"",
        ),
        (
            "select 'ok'::mood = 'x'::s.mood",
            "42883",
            "operator does not exist: mood = s.mood",
        ),
        (
            "select 'ok'::mood::int",
            "42846",
            "cannot cast type mood to integer",
        ),
        (
            "select 'ok'::mood[]::int[]",
            "22P02",
            "malformed array literal: \"ok\"",
        ),
        (
            "select upper('ok'::mood)",
            "42883",
            "function upper(mood) does not exist",
        ),
        (
            "create type mood as enum ()",
            "42710",
            "type \"mood\" already exists",
        ),
        (
            "alter type mood add value 'ok'",
            "42710",
            "enum label \"ok\" already exists",
        ),
        (
            "alter type mood add value 'x' after 'y'",
            "22023",
            "\"y\" is not an existing enum label",
        ),
        (
            "alter type mood rename value 'x' to 'y'",
            "22023",
            "\"x\" is not an existing enum label",
        ),
        (
            "alter type mood rename to \"Odd one\"",
            "42710",
            "type \"Odd one\" already exists",
        ),
        (
            "alter type mood set schema s",
            "42710",
            "type \"mood\" already exists in schema \"s\"",
        ),
        (
            "alter type nothing add value 'x'",
            "42704",
            "type \"nothing\" does not exist",
        ),
        (
            "alter type int4 add value 'x'",
            "42809",
            "integer is not an enum",
        ),
        (
            "drop type nothing",
            "42704",
            "type \"nothing\" does not exist",
        ),
        (
            "drop type int4",
            "2BP01",
            "cannot drop type integer because it is required by the database system",
        ),
        (
            "drop type _mood",
            "2BP01",
            "cannot drop type mood[] because type mood requires it",
        ),
        (
            "create table mood (a int)",
            "42710",
            "type \"mood\" already exists",
        ),
        (
            "create type t as (a int)",
            "0A000",
            "CREATE TYPE of what is no enum is not supported",
        ),
    ] {
        assert_eq!(
            client.fails(sql),
            (state.to_owned(), message.to_owned()),
            "{sql}"
        );
    }
    client.ok("create table t (m mood)");
    let error = client.failure("insert into t values (1)");
    assert_eq!(
        error.message(),
        "column \"m\" is of type mood but expression is of type integer"
    );
    let heard = client.hear("drop type if exists nothing");
    assert_eq!(heard.notices, ["type \"nothing\" does not exist, skipping"]);
    let heard = client.hear("alter type mood add value if not exists 'ok'");
    assert_eq!(
        heard.notices,
        ["enum label \"ok\" already exists, skipping"]
    );
}

#[test]
fn what_depends_on_a_type_is_told_and_goes() {
    let mut client = client();
    client.ok("create table t (id int primary key, m mood, l mood[], x text default 'sad'::mood::text, y text check (y <> 'ok'::mood::text));
         create index on t (id) where m = 'sad'; create index i on t ((m = 'ok'));
         create view v as select m from t; create view w as select 'ok'::mood; create view u as select id from t where m = 'ok'");
    let error = client.failure("drop type mood");
    assert_eq!(
        error.message(),
        "cannot drop type mood because other objects depend on it"
    );
    assert_eq!(
        error
            .fields()
            .detail
            .as_deref()
            .unwrap_or_default()
            .lines()
            .collect::<Vec<_>>(),
        [
            "column l of table t depends on type mood[]",
            "column m of table t depends on type mood",
            "view v depends on column m of table t",
            "default value for column x of table t depends on type mood",
            "constraint t_y_check on table t depends on type mood",
            "view w depends on type mood",
            "view u depends on type mood",
        ]
    );
    let heard = client.hear("drop type mood cascade");
    assert!(
        heard.notices[0].starts_with("drop cascades to "),
        "{:?}",
        heard.notices
    );
    assert_eq!(
        client.ok("insert into t values (1, 'x', 'ok') returning *"),
        "1|x|ok"
    );
    assert_eq!(
        client.ok("select count(*) from pg_class where relname in ('u', 'v', 'w', 'i')"),
        "0"
    );
    client.ok("create schema s; create type s.own as enum ('a')");
    assert_eq!(client.state("drop schema s"), "2BP01");
    client.ok("drop schema s cascade");
    assert_eq!(client.state("select 'a'::s.own"), "3F000");
}

#[test]
fn a_new_value_waits_for_its_commit_and_a_rollback_takes_it_back() {
    let mut client = client();
    client.ok("create table t (m mood)");
    client.ok("begin; alter type mood add value 'new' before 'ok'");
    let error = client.failure("insert into t values ('new')");
    assert_eq!(error.sqlstate().as_str(), "55P04");
    assert_eq!(
        error.message(),
        "unsafe use of new value \"new\" of enum type mood"
    );
    assert_eq!(
        error.fields().hint.as_deref(),
        Some("New enum values must be committed before they can be used.")
    );
    client.ok("rollback");
    assert_eq!(client.state("select 'new'::mood"), "22P02");
    client.ok("begin; alter type mood add value 'other' before 'ok'; commit; insert into t values ('other'), ('sad'), ('ok')");
    assert_eq!(client.ok("select m from t order by m"), "sad\nother\nok");
    client.ok("begin; create type fresh as enum ('a'); savepoint s; alter type fresh rename value 'a' to 'b'; rollback to s");
    assert_eq!(client.ok("select 'a'::fresh; commit"), "a");
    client.ok("begin; create type gone as enum ('a'); rollback");
    assert_eq!(client.state("select 'a'::gone"), "42704");
}

#[test]
fn other_sessions_see_labels_as_their_snapshots_do() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok(MOOD);
    one.ok("create table t (id int, m mood); insert into t values (1, 'ok')");
    other.ok("begin isolation level repeatable read; select * from t");
    one.ok("alter type mood rename value 'ok' to 'fine'; alter type mood add value 'new'");
    one.ok("insert into t values (2, 'new')");
    assert_eq!(other.ok("select * from t"), "1|ok");
    assert_eq!(other.state("select 'new'::mood"), "22P02");
    other.ok("rollback");
    assert_eq!(other.ok("select * from t order by m"), "1|fine\n2|new");
    // A program that was made before.
    other
        .session
        .parse("p", "select m from t where m = 'fine'", &[])
        .unwrap();
    one.ok("alter type mood rename value 'fine' to 'good'");
    let none = Parameters {
        formats: &[],
        values: &[],
    };
    let bound = other.session.bind("", "p", none, &[]);
    assert_eq!(bound.unwrap_err().sqlstate().as_str(), "22P02");
}

#[test]
fn a_type_is_not_dropped_while_a_column_of_it_is_made() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok(MOOD);
    one.ok("begin; create table t (m mood)");
    other.ok("set lock_timeout = 50");
    assert_eq!(other.state("drop type mood"), "55P03");
    one.ok("commit");
    assert_eq!(other.state("drop type mood"), "2BP01");
    one.ok("drop table t");
    one.ok("begin; drop type mood");
    assert_eq!(other.state("create table t (m mood)"), "55P03");
    one.ok("commit");
    assert_eq!(other.state("create table t (m mood)"), "42704");
}

#[test]
fn types_survive_a_restart_with_their_oids_and_their_order() {
    let directory = Arc::new(MemoryDirectory::new());
    let oids = "select oid, typarray, (select string_agg(oid::text, ',' order by enumsortorder) from pg_enum) from pg_type where typname = 'mood'";
    let before = {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        client.ok(MOOD);
        client.ok(
            "create table t (m mood primary key, l mood[] default '{sad}');
             insert into t values ('happy'), ('sad'); alter type mood add value 'low' before 'ok'",
        );
        client.ok(
            "insert into t values ('low'); create view v as select m from t where m > 'sad'::mood",
        );
        let before = client.ok(oids);
        drop(client);
        drop(database);
        before
    };
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(client.ok(oids), before);
    assert_eq!(
        client.ok("select * from t order by m"),
        "sad|{sad}\nlow|{sad}\nhappy|{sad}"
    );
    assert_eq!(client.ok("select * from v order by 1"), "low\nhappy");
    client.ok("insert into t values ('ok')");
    assert_eq!(
        client.ok("select m from t where m >= 'low' order by m desc"),
        "happy\nok\nlow"
    );
}

#[test]
fn parameters_and_rows_are_labels_in_both_formats() {
    let mut client = client();
    client.ok("create table t (m mood, l mood[])");
    let oid: u32 = client.ok("select 'mood'::regtype::oid").parse().unwrap();
    let session = &mut client.session;
    session
        .parse("i", "insert into t values ($1, $2) returning m, l", &[])
        .unwrap();
    let types = session.describe_statement("i").unwrap();
    assert_eq!(&*types.parameters, [oid, oid + 1]);
    let mut list = Vec::new();
    for word in [1u32, 0, oid, 1, 1, 3] {
        list.extend_from_slice(&word.to_be_bytes());
    }
    list.extend_from_slice(b"sad");
    let cases: [(Format, [&[u8]; 2]); 2] = [
        (Format::Text, [b"ok", b"{happy,sad}"]),
        (Format::Binary, [b"ok", &list]),
    ];
    for (format, values) in cases {
        let mut heard = Heard::default();
        let given = values.map(Some);
        let parameters = Parameters {
            formats: &[format],
            values: &given,
        };
        session
            .bind("", "i", parameters, &[Format::Binary])
            .unwrap();
        let done = session.execute("", 0, &mut heard).unwrap();
        assert_eq!(done, Progress::Complete);
        session.sync().unwrap();
    }
    for bad in [&b"OK"[..], b"", b"\xff"] {
        let parameters = Parameters {
            formats: &[Format::Binary, Format::Text],
            values: &[Some(bad), None],
        };
        let state = session.bind("", "i", parameters, &[]).unwrap_err();
        let state = state.sqlstate().as_str().to_owned();
        assert_eq!(state, if bad == b"\xff" { "22021" } else { "22P02" });
        session.sync().unwrap();
    }
    assert_eq!(client.ok("select * from t"), "ok|{happy,sad}\nok|{sad}");
}

#[test]
fn a_definition_names_types_that_are_there() {
    let mut client = client();
    let oid: u32 = client.ok("select 'mood'::regtype::oid").parse().unwrap();
    client.ok(&format!(
        "create table t (m pg_catalog.\"type {oid}\", l pg_catalog.\"type {}\")",
        oid + 1
    ));
    let types = "select string_agg(format_type(atttypid, atttypmod), ',' order by attnum) from pg_attribute where attrelid = 't'::regclass and attnum > 0";
    assert_eq!(client.ok(types), "mood,mood[]");
    for other in [oid + 2, oid + 3, 5, 16, 0] {
        assert_eq!(
            client.fails(&format!("select null::pg_catalog.\"type {other}\"")),
            (
                "42704".to_owned(),
                format!("type \"pg_catalog.type {other}\" does not exist")
            )
        );
    }
}

#[test]
fn copy_reads_and_writes_labels() {
    let mut client = client();
    client.ok("create table t (id int primary key, m mood)");
    client.copy("copy t from stdin", "1\thappy\n2\t\\N\n3\tsad\n", 5);
    assert_eq!(client.ok("select m from t order by m, id"), "sad\nhappy\n~");
    let mut heard = Heard::default();
    client
        .session
        .simple_query("copy t from stdin", &mut heard)
        .unwrap();
    let told = client.session.copy_data(b"4\tnone\n");
    let error = told
        .and_then(|()| client.session.copy_done(&mut heard).map(drop))
        .unwrap_err();
    assert_eq!(
        error.message(),
        "invalid input value for enum mood: \"none\""
    );
}

#[test]
fn only_the_owner_changes_a_type() {
    let database = database();
    let mut first = Client::of(&database);
    first.ok(MOOD);
    first.ok("create role r login; grant create on schema public to r");
    let mut other = Client::of_user(&database, "r");
    for sql in [
        "alter type mood add value 'x'",
        "alter type mood rename to x",
        "drop type mood",
        "comment on type mood is 'x'",
    ] {
        let told = other.fails(sql);
        assert_eq!(
            told,
            ("42501".to_owned(), "must be owner of type mood".to_owned()),
            "{sql}"
        );
    }
    assert_eq!(
        other.ok("select 'ok'::mood; create type own as enum ('a')"),
        "ok"
    );
    assert_eq!(first.state("drop role r"), "2BP01");
    first.ok("alter type mood owner to r");
    other.ok("alter type mood add value 'x'; comment on type mood is 'y'; drop type mood, own");
}
