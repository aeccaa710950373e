//! Oids that are shown as names, in the data of a COPY. What PostgreSQL answers to statements is in the corpus (`named_oids`).

use super::client::{Client, Heard};
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
