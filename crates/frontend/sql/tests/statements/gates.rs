//! Statements that change the catalog while others do: what waits for somebody's change goes on with what that has left, and whoever drops something finds what was made meanwhile.

use super::client::{Client, Heard, database};
use std::thread;
use std::time::Duration;
use vellum_sql::SqlDatabase;

const MOOD: &str = "create type mood as enum ('sad', 'ok', 'happy')";

/// So many clients of one database.
fn clients<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    let clients = [(); N].map(|()| Client::of(&database));
    (database, clients)
}

/// Says something beside another client that says `then`, which is in its way if it has not said so by then. Notices and tags of it, or the SQLSTATE of its error.
#[track_caller]
fn waits(mut client: Client, sql: &str, other: &mut Client, then: &str) -> (Client, Vec<String>) {
    let text = sql.to_owned();
    let waiter = thread::spawn(move || {
        let mut heard = Heard::default();
        let told = match client.session.simple_query(&text, &mut heard) {
            Ok(_) => [heard.notices, heard.tags].concat(),
            Err(error) => vec![error.sqlstate().to_string()],
        };
        (client, told)
    });
    other.ok(then);
    waiter.join().unwrap()
}

/// Definitions that say a label, and how each of them is used.
const LABELLED: [(&str, &str, &str); 6] = [
    (
        "create table u (m mood default 'LABEL')",
        "insert into u values (default) returning m",
        "LABEL",
    ),
    (
        "create table u (m mood check (m <> 'LABEL'))",
        "insert into u values ('ok') returning m",
        "ok",
    ),
    (
        "create table u (n int, m mood generated always as (case n when 1 then 'LABEL'::mood end) stored)",
        "insert into u values (1) returning m",
        "LABEL",
    ),
    (
        "alter table t alter m set default 'LABEL'",
        "insert into t values (3) returning m",
        "LABEL",
    ),
    (
        "alter table t add l mood default 'LABEL'",
        "insert into t values (3) returning l",
        "LABEL",
    ),
    (
        "create index i on t (id) where m = 'LABEL'",
        "select count(*) from t where m = 'LABEL'",
        "1",
    ),
];

#[test]
fn regress_what_waits_for_a_label_to_be_renamed_is_made_with_the_labels_that_are_then() {
    for (definition, used, answer) in LABELLED {
        let with = |text: &str, label| text.replace("LABEL", label);
        // In a transaction that has changed the catalog before, too.
        for begin in ["begin", "begin; create table other (n int)"] {
            for (label, end, told) in [
                ("gloomy", "commit", None),
                ("sad", "commit", Some("22P02")),
                ("sad", "rollback", None),
                ("gloomy", "rollback", Some("22P02")),
            ] {
                let (_database, [mut a, mut b]) = clients();
                a.ok(MOOD);
                a.ok("create table t (id int, m mood); insert into t values (1, 'sad'), (2, 'ok')");
                b.ok(begin);
                a.ok("begin; alter type mood rename value 'sad' to 'gloomy'");
                let definition = with(definition, label);
                let (mut b, heard) = waits(b, &definition, &mut a, end);
                if let Some(state) = told {
                    assert_eq!(heard, [state], "{definition}, {end}");
                    continue;
                }
                assert_eq!(heard.len(), 1, "{definition}, {end}: {heard:?}");
                b.ok("commit");
                assert_eq!(
                    a.ok(&with(used, label)),
                    with(answer, label),
                    "{used}, {end}"
                );
                // What is kept is renamed with the label.
                a.ok(&format!("alter type mood rename value '{label}' to 'low'"));
                assert_eq!(a.ok(&with(used, "low")), with(answer, "low"), "{used}");
            }
        }
    }
}

#[test]
fn regress_a_view_that_waits_for_a_label_to_be_renamed_is_bound_anew() {
    for (end, told) in [("commit", "22P02"), ("rollback", "CREATE VIEW")] {
        let (_database, [mut a, mut b]) = clients();
        a.ok(MOOD);
        a.ok("create table t (id int, m mood); insert into t values (1, 'sad')");
        a.ok("begin; alter type mood rename value 'sad' to 'gloomy'");
        // A label that is not there yet is none, as in PostgreSQL.
        let view = "create view v as select id from t where m =";
        assert_eq!(b.state(&format!("{view} 'gloomy'")), "22P02");
        let (mut b, heard) = waits(b, &format!("{view} 'sad'"), &mut a, end);
        assert_eq!(heard, [told]);
        if told == "CREATE VIEW" {
            a.ok("alter type mood rename value 'sad' to 'gloomy'");
            assert_eq!(b.ok("select id from v"), "1");
        }
    }
}

#[test]
fn a_definition_with_an_older_image_of_a_type_is_refused() {
    let (_database, [mut a, mut b]) = clients();
    a.ok(MOOD);
    b.ok("begin isolation level repeatable read; select 1");
    a.ok("alter type mood rename value 'sad' to 'gloomy'");
    assert_eq!(b.state("create table u (m mood default 'sad')"), "40001");
    b.ok("rollback; begin isolation level repeatable read");
    b.ok("create table u (m mood default 'gloomy'); commit");
    assert_eq!(a.ok("insert into u values (default) returning m"), "gloomy");
}

#[test]
fn a_view_holds_the_types_of_its_literals() {
    let (_database, [mut a, mut b]) = clients();
    a.ok(MOOD);
    a.ok("create table t (id int, m mood, l mood[])");
    b.ok("set lock_timeout = 50");
    for query in [
        "select id from t where m = 'sad'",
        "select id from t where 'sad' < m or m is null",
        "select case when id = 1 then 'sad' else m end as m from t",
        "select id from t where l = '{sad}'",
        "select id from t where m in ('sad', 'ok')",
    ] {
        a.ok(&format!("begin; create view v as {query}"));
        let rename = "alter type mood rename value 'sad' to 'gloomy'";
        assert_eq!(b.state(rename), "55P03", "{query}");
        a.ok("rollback");
    }
    // What it reads without a word about the type does not hold it.
    a.ok("begin; create view v as select m from t");
    b.ok("alter type mood rename value 'sad' to 'gloomy'");
    a.ok("commit");
}

#[test]
fn regress_a_drop_takes_what_was_made_while_it_waited() {
    for (made, drop, notice) in [
        (
            "create view v as select m from s.t",
            "drop type s.mood cascade",
            "drop cascades to 2 other objects",
        ),
        (
            "create view v as select m from s.t",
            "alter table s.t drop m cascade",
            "drop cascades to view v",
        ),
        (
            "create view v as select m from s.t",
            "drop schema s cascade",
            "drop cascades to 3 other objects",
        ),
        (
            "create table s.v (n int)",
            "drop schema s cascade",
            "drop cascades to 3 other objects",
        ),
        (
            "create type s.v as enum ()",
            "drop schema s cascade",
            "drop cascades to 3 other objects",
        ),
        (
            "create table v (m s.mood)",
            "drop type s.mood cascade",
            "drop cascades to 2 other objects",
        ),
    ] {
        for begin in ["begin", "begin; create table other (n int)"] {
            let (_database, [mut a, mut b]) = clients();
            a.ok("create schema s; create type s.mood as enum ('sad', 'ok'); create table s.t (id int, m s.mood)");
            a.ok(begin);
            b.ok("begin");
            b.ok(made);
            let (mut a, heard) = waits(a, drop, &mut b, "commit");
            assert_eq!(heard[0], notice, "{made}; {drop}");
            a.ok("commit");
            let left = "select count(*) from pg_class where relname = 'v' and relkind = 'v'";
            assert_eq!(b.ok(left), "0", "{made}; {drop}");
            if made == "create view v as select m from s.t" {
                b.ok("create view v as select 1");
            }
        }
    }
}

#[test]
fn regress_without_cascade_it_is_refused() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("create schema s");
    b.ok("begin; create table s.t (n int)");
    let (mut a, heard) = waits(a, "drop schema s", &mut b, "commit");
    assert_eq!(heard, ["2BP01"]);
    a.ok("drop schema s cascade");
    // The other way round.
    for made in [
        "create table s.u (n int)",
        "create view s.u as select 1 as n",
        "create sequence s.u",
        "create type s.u as enum ()",
        "create table s.u as select 1 as n",
    ] {
        let (_database, [mut a, mut b]) = clients();
        a.ok("create schema s; begin; drop schema s");
        b.ok("begin");
        let (mut b, heard) = waits(b, made, &mut a, "commit");
        assert_eq!(heard, ["3F000"], "{made}");
        b.ok("rollback");
    }
}

#[test]
fn what_is_there_twice_behind_a_wait_is_said() {
    let (_database, [mut a, b]) = clients();
    a.ok("create table t (n int)");
    a.ok("begin; alter table t add column m int");
    let (b, heard) = waits(b, "alter table t add column m int", &mut a, "commit");
    assert_eq!(heard, ["42701"]);
    a.ok("begin; drop table t");
    let (mut b, heard) = waits(b, "drop table if exists t", &mut a, "commit");
    assert_eq!(
        heard,
        ["table \"t\" does not exist, skipping", "DROP TABLE"]
    );
    a.ok("create table t (n int); begin; alter table t rename to u");
    b.ok("set search_path = public");
    let (_, heard) = waits(b, "alter table t add column m int", &mut a, "commit");
    assert_eq!(heard, ["42P01"]);
}

#[test]
fn regress_who_has_changed_the_catalog_sees_what_others_change_since() {
    let (_database, [mut a, mut b]) = clients();
    b.ok("create table t (id int primary key, n int); create role r; insert into t select i, i from generate_series(1, 100) i");
    // Rows go into an index that was made since.
    a.ok("begin; create table x (n int)");
    b.ok("create unique index i on t (n)");
    a.ok("insert into t values (101, 101)");
    assert_eq!(a.state("insert into t values (102, 101)"), "23505");
    a.ok("rollback; begin; create table x (n int); insert into x values (1)");
    b.ok("alter table t add column c int default 7");
    a.ok("insert into t values (101, 101)");
    a.ok("grant select on t to r; savepoint s; create table y (n int)");
    b.ok("create table z (n int default 5)");
    a.ok("rollback to s; insert into z values (default); commit");
    assert_eq!(b.ok("select id, c from t where n = 101"), "101|7");
    assert_eq!(b.ok("select x.n, z.n from x, z"), "1|5");
    b.ok("set role r");
    assert_eq!(b.ok("select min(c) from t"), "7");
    // Under repeatable read it does not.
    a.ok("begin isolation level repeatable read; create table w (n int)");
    b.ok("reset role; alter table t add column d int");
    assert_eq!(a.state("select d from t"), "42703");
    a.ok("rollback");
}

#[test]
fn what_a_statement_had_done_before_it_began_again_is_not_there_twice() {
    let (_database, [mut a, mut b]) = clients();
    a.ok(MOOD);
    a.ok("create table t (id int); insert into t values (1), (2)");
    b.ok("begin; create temp table k (n int) on commit drop");
    a.ok("begin; alter type mood rename value 'sad' to 'gloomy'");
    let sql = "create table u (id serial, n int generated by default as identity, m mood default 'gloomy', unique (n))";
    let (b, heard) = waits(b, sql, &mut a, "commit");
    assert_eq!(heard, ["CREATE TABLE"]);
    let mut b = b;
    b.ok("commit; begin");
    a.ok("begin; alter type mood rename value 'gloomy' to 'low'");
    let sql = "alter table t add s serial, add m mood default 'low'";
    let (mut b, heard) = waits(b, sql, &mut a, "commit");
    assert_eq!(heard, ["ALTER TABLE"]);
    b.ok("commit");
    assert_eq!(a.ok("select * from t order by id"), "1|1|low\n2|2|low");
    assert_eq!(
        a.ok("insert into u (m) values ('ok') returning *"),
        "1|1|ok"
    );
    let sequences = "select count(*) from pg_class where relkind = 'S'";
    assert_eq!(a.ok(sequences), "3");
    assert_eq!(b.state("select * from k"), "42P01");
}

#[test]
fn who_makes_a_name_that_another_is_making_waits_for_that() {
    for (made, also, taken) in [
        ("create table v (n int)", "create table v (m text)", "42P07"),
        (
            "create table v (n int)",
            "create view v as select 1",
            "42P07",
        ),
        (
            "create table v (n int)",
            "create table v as select 1 as n",
            "42P07",
        ),
        (
            "create sequence v",
            "create table u (n int primary key); create index v on u (n)",
            "42P07",
        ),
        (
            "create table v (n int)",
            "alter table t rename to v",
            "42P07",
        ),
        (
            "create type v as enum ()",
            "create type v as enum ()",
            "42710",
        ),
        ("create schema v", "create schema v", "42P06"),
        ("create role v", "create role v", "42710"),
    ] {
        for begin in ["begin", "begin; create table other (n int)"] {
            for end in ["commit", "rollback"] {
                let (_database, [mut a, mut b]) = clients();
                a.ok("create table t (n int); create schema s");
                a.ok("begin");
                a.ok(made);
                b.ok(begin);
                let (mut b, heard) = waits(b, also, &mut a, end);
                if end == "commit" {
                    assert_eq!(heard, [taken], "{made}; {also}");
                    continue;
                }
                assert!(!heard[0].starts_with("4"), "{made}; {also}: {heard:?}");
                b.ok("commit");
                assert_eq!(
                    a.state(also.rsplit("; ").next().unwrap()).as_str() == taken,
                    !also.starts_with("alter")
                );
            }
        }
    }
    let (_database, [mut a, b]) = clients();
    a.ok("begin; create table v (n int)");
    let (mut b, heard) = waits(b, "create table if not exists v (m int)", &mut a, "commit");
    let notice = "relation \"v\" already exists, skipping";
    assert_eq!(heard, [notice, "CREATE TABLE"]);
    // A name that goes is there until that is committed, and nobody waits for it.
    a.ok("begin; drop table v");
    assert_eq!(b.state("create table v (m int)"), "42P07");
    a.ok("commit");
    b.ok("create table v (m int)");
    assert_eq!(a.ok("select count(m) from v"), "0");
}

#[test]
fn a_name_that_is_dropped_and_made_again_is_one_schemas() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("create schema s");
    a.ok("begin; drop schema s; create schema s; rollback");
    assert_eq!(b.state("create schema s"), "42P06");
    a.ok("begin; drop schema s; create schema s; commit; drop schema s; create schema s");
    assert_eq!(b.state("create schema s"), "42P06");
}

#[test]
fn a_wait_for_a_name_ends_when_its_time_is_over() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("begin; create table v (n int)");
    assert_eq!(
        b.state("set lock_timeout = 10; create table v (n int)"),
        "55P03"
    );
    assert_eq!(
        b.state("set lock_timeout = 0; set statement_timeout = 10; create table v (n int)"),
        "57014"
    );
    // Under repeatable read what another has committed since is none of this one's.
    b.ok("set statement_timeout = 0; begin isolation level repeatable read; select 1");
    let (mut b, heard) = waits(b, "create table v (n int)", &mut a, "commit");
    assert_eq!(heard, ["40001"]);
    b.ok("rollback");
}

/// Definitions whose default draws from a sequence, what drops that, and what it says once the default is there and once it is not.
const DRAWING: [(&str, &str, &str); 8] = [
    (
        "create table u (n int default nextval('s'))",
        "drop sequence s",
        "DROP SEQUENCE",
    ),
    (
        "alter table t alter n set default nextval('s')",
        "drop sequence s",
        "DROP SEQUENCE",
    ),
    (
        "alter table t add m int default nextval('s')",
        "drop sequence s",
        "DROP SEQUENCE",
    ),
    (
        "create domain d as int default nextval('s')",
        "drop sequence s",
        "DROP SEQUENCE",
    ),
    (
        "alter view v alter n set default nextval('s')",
        "drop sequence s",
        "DROP SEQUENCE",
    ),
    (
        "create table u (n int default nextval('k_id_seq'))",
        "drop table k",
        "DROP TABLE",
    ),
    (
        "create table u (n int default nextval('k_id_seq'))",
        "alter table k drop id",
        "ALTER TABLE",
    ),
    (
        "create table u (n int default nextval('i_id_seq'))",
        "alter table i alter id drop identity",
        "ALTER TABLE",
    ),
];

#[test]
fn regress_a_default_and_a_drop_of_its_sequence_wait_for_each_other() {
    for (made, drop, dropped) in DRAWING {
        for (end, told) in [("commit", "2BP01"), ("rollback", dropped)] {
            let (_database, [mut a, mut b]) = clients();
            a.ok("create sequence s; create table t (n int); insert into t values (1); create view v as select n from t");
            a.ok("create table k (id serial, n int); create table i (id int generated always as identity, n int)");
            b.ok("set lock_timeout = 50");
            a.ok("begin");
            a.ok(made);
            assert_eq!(b.state(drop), "55P03", "{made}");
            b.ok("set lock_timeout = 0");
            let (mut b, heard) = waits(b, drop, &mut a, end);
            assert_eq!(heard, [told], "{made}; {end}");
            if end == "rollback" {
                continue;
            }
            // The other way round.
            a.ok("drop domain if exists d; drop table if exists u; alter table t alter n drop default, drop column if exists m; alter view v alter n drop default");
            b.ok("begin");
            b.ok(drop);
            a.ok("set lock_timeout = 50");
            assert_eq!(a.state(made), "55P03", "{made}");
            a.ok("set lock_timeout = 0");
            let (mut a, heard) = waits(a, made, &mut b, "commit");
            assert_eq!(heard, ["42P01"], "{made}");
            a.ok("insert into t (n) values (2)");
        }
    }
}

#[test]
fn a_default_that_was_there_keeps_nobody_from_its_sequence() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("create sequence s; create table t (n int default nextval('s'))");
    b.ok("set lock_timeout = 50");
    a.ok("begin; alter table t add m int; alter table t alter m set default 3");
    b.ok("alter sequence s increment 5; begin; alter sequence s increment 1");
    a.ok("alter table t alter n set not null; commit");
    b.ok("commit");
}

/// Says something in a thread of its own; the tags, or the SQLSTATE of the error.
fn aside(mut client: Client, sql: &'static str) -> thread::JoinHandle<(Client, String)> {
    thread::spawn(move || {
        let mut heard = Heard::default();
        let done = client.session.simple_query(sql, &mut heard);
        let told = match done {
            Ok(_) => heard.tags.join(", "),
            Err(error) => error.sqlstate().to_string(),
        };
        (client, told)
    })
}

/// Waits until so many sessions wait.
fn until_they_wait(client: &mut Client, count: &str) {
    let sql = "select count(*) from pg_locks where not granted";
    while client.ok(sql) != count {
        thread::sleep(Duration::from_millis(2));
    }
}

const CHANGES: [&str; 4] = [
    "alter table t add z int default 7",
    "create index on t (n)",
    "truncate t",
    "begin; lock table t in exclusive mode; commit",
];

#[test]
fn who_comes_to_write_waits_behind_who_waits_to_be_alone() {
    for change in CHANGES {
        let (_database, [mut a, b, c, mut watch]) = clients();
        a.ok("create table t (id int primary key, n int); insert into t values (1, 0)");
        a.ok("begin; insert into t values (2, 0)");
        let b = aside(b, change);
        until_they_wait(&mut watch, "1");
        let c = aside(c, "insert into t values (3, 0)");
        until_they_wait(&mut watch, "2");
        // Who writes it already goes on, also to other rows.
        a.ok("insert into t values (4, 0); update t set n = 1");
        let waiting = "select count(*) from pg_locks where not granted";
        assert_eq!(watch.ok(waiting), "2", "{change}");
        a.ok("commit");
        let told = [b, c].map(|client| client.join().unwrap().1);
        assert_eq!(told[1], "INSERT 0 1", "{change}");
        assert!(!told[0].starts_with(|first: char| first.is_ascii_digit()));
        let rows = if change.starts_with("truncate") {
            "1"
        } else {
            "4"
        };
        assert_eq!(a.ok("select count(*) from t"), rows, "{change}");
        if change.starts_with("alter") {
            assert_eq!(a.ok("select count(*) from t where z = 7"), "4");
        }
    }
}

#[test]
fn a_writer_goes_past_who_waits_to_be_alone_rather_than_close_a_circle() {
    // Whether the other waits for the writer already when it comes, or only then.
    for other_first in [true, false] {
        let (_database, [mut setup, mut a, b, mut c, mut watch]) = clients();
        setup.ok("create table t (id int primary key, n int); create table u (id int primary key, n int);
            insert into u values (1, 0)");
        a.ok("begin; insert into t values (1, 0)");
        c.ok("begin; update u set n = 1");
        let b = aside(b, "alter table t add z int");
        until_they_wait(&mut watch, "1");
        let update = "update u set n = 2";
        let (a, mut c) = if other_first {
            let a = aside(a, update);
            until_they_wait(&mut watch, "2");
            c.ok("insert into t values (2, 0)");
            (a, c)
        } else {
            let c = aside(c, "insert into t values (2, 0)");
            until_they_wait(&mut watch, "2");
            let a = aside(a, update);
            let (c, told) = c.join().unwrap();
            assert_eq!(told, "INSERT 0 1");
            (a, c)
        };
        c.ok("commit");
        let (mut a, told) = a.join().unwrap();
        assert_eq!(told, "UPDATE 1", "other first: {other_first}");
        a.ok("commit");
        assert_eq!(b.join().unwrap().1, "ALTER TABLE");
        assert_eq!(setup.ok("select count(*) from t where z is null"), "2");
    }
}

#[test]
fn writers_go_on_when_who_waited_to_be_alone_gives_up() {
    let (_database, [mut a, mut b, c, mut watch]) = clients();
    a.ok("create table t (id int primary key, n int)");
    a.ok("begin; insert into t values (1, 0)");
    b.ok("set lock_timeout = 300");
    let b = aside(b, "truncate t");
    until_they_wait(&mut watch, "1");
    let c = aside(c, "insert into t values (2, 0)");
    assert_eq!(b.join().unwrap().1, "55P03");
    assert_eq!(c.join().unwrap().1, "INSERT 0 1");
    a.ok("commit");
    assert_eq!(watch.ok("select count(*) from t"), "2");
}
