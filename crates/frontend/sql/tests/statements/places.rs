//! Where errors are said to be in the text of a statement: where PostgreSQL 15 says so.
//!
//! `places.txt`: a statement a line, then its SQLSTATE and its place in characters (0: none), parted by tabs. They are a server's, not ours: whoever
//! adds some asks one.

use super::client::Client;

const SETUP: &str = "create table t (id int primary key, n int, s text, d date, b bool, a int[]); create table u (id int, n int)";

#[test]
fn errors_are_where_postgresql_says_that_they_are() {
    let mut client = Client::new();
    client.ok(SETUP);
    let mut wrong = Vec::new();
    let lines = include_str!("places.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut parts = line.split('\t');
        let [sql, state, place] = [(); 3].map(|()| parts.next().unwrap());
        client.ok("begin");
        let error = client.failure(sql);
        client.ok("rollback");
        let own = error.fields().position.unwrap_or(0).to_string();
        if (error.sqlstate().as_str(), &*own) != (state, place) {
            wrong.push(format!("{line}: {own}, {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_not_allowed_somewhere_is_said_with_where_that_is() {
    let mut client = Client::new();
    client.ok(SETUP);
    for (sql, message) in [
        (
            "select 1 from t where count(*) > 1",
            "aggregate functions are not allowed in WHERE",
        ),
        (
            "select 1 from t join u on count(*) > 1",
            "aggregate functions are not allowed in JOIN conditions",
        ),
        (
            "select count(*) filter (where sum(n) > 1) from t",
            "aggregate functions are not allowed in FILTER",
        ),
        (
            "select count(count(*)) from t",
            "aggregate function calls cannot be nested",
        ),
        (
            "create table x (a int check (sum(a) > 1))",
            "aggregate functions are not allowed in check constraints",
        ),
        (
            "create table x (a int default sum(1))",
            "aggregate functions are not allowed in DEFAULT expressions",
        ),
        (
            "select 1 from t where row_number() over () > 1",
            "window functions are not allowed in WHERE",
        ),
        (
            "select 1 from t having row_number() over () > 1",
            "window functions are not allowed in HAVING",
        ),
    ] {
        assert_eq!(client.fails(sql).1, message, "{sql}");
    }
    let heard = client.hear("create table if not exists t (a int); alter table t add if not exists n int; drop table if exists no.t");
    assert_eq!(heard.notice_states, ["42P07", "42701", "00000"]);
    let notices = heard.notices;
    assert_eq!(
        notices,
        [
            "relation \"t\" already exists, skipping",
            "column \"n\" of relation \"t\" already exists, skipping",
            "schema \"no\" does not exist, skipping",
        ]
    );
    for (sql, message) in [
        (
            "set work_mem = '1kB'",
            "1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)",
        ),
        (
            "set extra_float_digits = 9",
            "9 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)",
        ),
        (
            "set client_min_messages = 'x'",
            "invalid value for parameter \"client_min_messages\": \"x\"",
        ),
        (
            "set datestyle = 'x'",
            "invalid value for parameter \"DateStyle\": \"x\"",
        ),
        (
            "copy t to stdout with (delimiter 'ab')",
            "COPY delimiter must be a single one-byte character",
        ),
        (
            "copy t to stdout with (format csv, delimiter '\"')",
            "COPY delimiter and quote must be different",
        ),
        (
            "create table x (a int, b int default a)",
            "cannot use column reference in DEFAULT expression",
        ),
    ] {
        assert_eq!(client.fails(sql).1, message, "{sql}");
    }
    let hint = client
        .failure("set work_mem = '1 parsec'")
        .fields()
        .hint
        .clone();
    assert!(
        hint.unwrap()
            .starts_with("Valid units for this parameter are \"B\"")
    );
}

#[test]
fn show_all_says_what_settings_are_about() {
    let mut client = Client::new();
    let heard = client.hear("show all");
    assert_eq!(heard.fields, ["name", "setting", "description"]);
    let row = |name: &str| {
        let mut rows = heard
            .text()
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter();
        rows.find(|row| row.starts_with(&format!("{name}|")))
            .unwrap()
    };
    assert_eq!(
        row("max_connections"),
        "max_connections|1|Sessions that there may be at a time."
    );
    let same = "select name || '|' || short_desc from pg_settings where name = 'max_connections'";
    assert_eq!(
        client.ok(same),
        "max_connections|Sessions that there may be at a time."
    );
    assert_eq!(
        client.ok("select count(*) from pg_settings where short_desc = name"),
        "0"
    );
}
