//! Oids that are shown as names, in the data of a COPY and after a restart. What PostgreSQL answers to statements is in the corpus (`named_oids`).

use super::client::{Client, Heard, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;
use vellum_sql::Progress;

const COLUMNS: &str = "c regclass, t regtype, p regproc, pd regprocedure, n regnamespace, r regrole, co regcollation, a regclass[]";

const LINES: &str = "s.t\tinteger\tnow\tlower(text)\ts\tpg_monitor\t\"C\"\t{s.t,pg_class}
\"Odd Name\"\ttimestamp with time zone\tpg_catalog.now\tnow()\tpublic\tpg_monitor\t\"POSIX\"\t{NULL,\"\\\\\"Odd Name\\\\\"\"}
1259\t23\t1299\t1299\t11\t-\t950\t{}
-\t-\t-\t-\t-\t-\t-\t{-}
pg_class\tint4[]\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N
";

/// As PostgreSQL 15 writes them.
const SHOWN: &str = "s.t\tinteger\tnow\tlower(text)\ts\tpg_monitor\t\"C\"\t{s.t,pg_class}
\"Odd Name\"\ttimestamp with time zone\tnow\tnow()\tpublic\tpg_monitor\t\"POSIX\"\t{NULL,\"\\\\\"Odd Name\\\\\"\"}
pg_class\tinteger\tnow\tnow()\tpg_catalog\t-\t\"C\"\t{}
-\t-\t-\t-\t-\t-\t-\t{-}
pg_class\tinteger[]\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N
";

fn with_table() -> Client {
    let mut client = Client::new();
    client.ok("create schema s; create table s.t (a int); create table \"Odd Name\" (a int)");
    client.ok(&format!("create table k ({COLUMNS})"));
    client
}

fn copied(client: &mut Client, sql: &str) -> Vec<u8> {
    client.hear(sql).copied
}

#[test]
fn names_come_in_as_text_as_csv_and_in_binary() {
    let mut client = with_table();
    client.copy("copy k from stdin", LINES, 7);
    let text = copied(&mut client, "copy k to stdout");
    assert_eq!(String::from_utf8(text.clone()).unwrap(), SHOWN);
    for format in ["csv", "binary"] {
        let data = copied(&mut client, &format!("copy k to stdout {format}"));
        client.ok("truncate k");
        let mut heard = Heard::default();
        let sql = format!("copy k from stdin {format}");
        let begun = client.session.simple_query(&sql, &mut heard).unwrap();
        assert_eq!(begun, Progress::CopyIn);
        client.session.copy_data(&data).unwrap();
        client.session.copy_done(&mut heard).unwrap();
        assert_eq!(copied(&mut client, "copy k to stdout"), text, "{format}");
    }
}

#[test]
fn names_are_read_where_rows_are_loaded() {
    let mut client = with_table();
    client.ok("create table l (id int primary key, c regclass, n regnamespace)");
    let lines: String = (0..3000)
        .map(|id| match id % 3 {
            0 => format!("{id}\ts.t\ts\n"),
            1 => format!("{id}\t1259\t11\n"),
            _ => format!("{id}\t-\tpg_catalog\n"),
        })
        .collect();
    client.copy("copy l from stdin", &lines, 1 << 12);
    assert_eq!(
        client.ok("select c, n, count(*) from l group by c, n order by min(id)"),
        "s.t|s|1000\npg_class|pg_catalog|1000\n-|pg_catalog|1000"
    );
}

#[test]
fn a_name_of_nothing_is_told_with_its_column() {
    let mut client = with_table();
    let cases = [
        ("c", "nope", "42P01", "relation \"nope\" does not exist"),
        ("t", "nope", "42704", "type \"nope\" does not exist"),
        ("p", "nope", "42883", "function \"nope\" does not exist"),
        (
            "p",
            "length",
            "42725",
            "more than one function named \"length\"",
        ),
        (
            "pd",
            "nope()",
            "42883",
            "function \"nope()\" does not exist",
        ),
        ("n", "nope", "3F000", "schema \"nope\" does not exist"),
        ("r", "nope", "42704", "role \"nope\" does not exist"),
        (
            "c",
            "a.b.c.d",
            "42601",
            "improper relation name (too many dotted names): a.b.c.d",
        ),
        ("a", "{nope}", "42P01", "relation \"nope\" does not exist"),
    ];
    for (column, name, state, message) in cases {
        let mut heard = Heard::default();
        let sql = format!("copy k ({column}) from stdin");
        client.session.simple_query(&sql, &mut heard).unwrap();
        let data = format!("\\N\n{name}\n");
        let sent = client.session.copy_data(data.as_bytes());
        let error = sent.and_then(|()| client.session.copy_done(&mut heard).map(drop));
        let error = error.unwrap_err();
        assert_eq!(error.sqlstate().to_string(), state, "{name}");
        assert_eq!(error.message(), message);
        let place = format!("COPY k, line 2, column {column}: \"{name}\"");
        assert_eq!(error.fields().context.as_deref(), Some(&*place));
    }
}

#[test]
fn constants_of_names_survive_a_restart() {
    let directory = Arc::new(MemoryDirectory::new());
    let told = "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'd'::regclass order by adnum;
        select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'd'::regclass order by conname;
        select pg_get_indexdef('di'::regclass); select pg_get_viewdef('v')";
    let before = {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        client.ok(
            "create schema s; create table s.t (a int); create index ti on s.t (a);
            create table d (id int primary key, c regclass default 's.t', t regtype default 'int4', i regclass default 's.ti',
                check (c <> 'pg_class'::regclass), check (t in ('int4', 'int8')));
            create index di on d (id) where c = 's.t'::regclass;
            create view v as select id, c = 's.t'::regclass as same from d where t = 'int4'::regtype",
        );
        client.ok("insert into d values (1)");
        client.ok("alter table s.t rename to t2; alter table s.t2 rename to t; alter index s.ti rename to tj");
        client.ok(told)
    };
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(client.ok(told), before);
    client.ok("insert into d values (2)");
    assert_eq!(
        client.ok("select * from d order by id; select * from v order by id"),
        "1|s.t|integer|s.tj\n2|s.t|integer|s.tj\n1|t\n2|t"
    );
    assert_eq!(
        client.state("insert into d values (3, 'pg_class')"),
        "23514"
    );
    assert_eq!(
        client.state("insert into d values (3, 's.t', 'text')"),
        "23514"
    );
    assert_eq!(client.state("drop table s.t"), "2BP01");
    super::client::assert_sound(&database);
}
