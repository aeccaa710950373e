//! Options of COPY, which of them go together, and conditions. What PostgreSQL 15 says.

use super::client::Client;

fn client() -> Client {
    let mut client = Client::new();
    client.ok("create table t (a int, b text, c text default 'd', g int generated always as (a * 2) stored)");
    client
}

/// What an error says, with its SQLSTATE and its place.
#[track_caller]
fn error(client: &mut Client, sql: &str) -> (String, String, Option<u32>) {
    let error = client.failure(sql);
    let place = error.fields().position;
    (
        error.sqlstate().to_string(),
        error.message().to_owned(),
        place,
    )
}

/// Copies lines in; the tag or the error.
fn copied(client: &mut Client, sql: &str, data: &str) -> String {
    let mut heard = super::client::Heard::default();
    let session = &mut client.session;
    let done = session.simple_query(sql, &mut heard);
    let done = done.and_then(|_| session.copy_data(data.as_bytes()));
    match done.and_then(|()| session.copy_done(&mut heard)) {
        Ok(_) => heard.tags.join(","),
        Err(error) => format!("{} {}", error.sqlstate(), error.message()),
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let mut client = client();
    for (options, state, text, place) in [
        (
            "(format binary, header)",
            "0A000",
            "cannot specify HEADER in BINARY mode",
            None,
        ),
        (
            "(format binary, delimiter ',')",
            "42601",
            "cannot specify DELIMITER in BINARY mode",
            None,
        ),
        (
            "(format binary, null ',')",
            "42601",
            "cannot specify NULL in BINARY mode",
            None,
        ),
        (
            "(format csv, format csv)",
            "42601",
            "conflicting or redundant options",
            Some(36),
        ),
        (
            "(header, header false)",
            "42601",
            "conflicting or redundant options",
            Some(32),
        ),
        (
            "csv header header",
            "42601",
            "conflicting or redundant options",
            Some(34),
        ),
        (
            "binary csv",
            "42601",
            "conflicting or redundant options",
            Some(30),
        ),
        (
            "(header match)",
            "0A000",
            "cannot use \"match\" with HEADER in COPY TO",
            None,
        ),
        (
            "(header 2)",
            "42601",
            "header requires a Boolean value or \"match\"",
            None,
        ),
        (
            "(header foo)",
            "42601",
            "header requires a Boolean value or \"match\"",
            None,
        ),
        (
            "(header '1')",
            "42601",
            "header requires a Boolean value or \"match\"",
            None,
        ),
        (
            "(freeze 3)",
            "42601",
            "freeze requires a Boolean value",
            None,
        ),
        (
            "(delimiter)",
            "42601",
            "delimiter requires a parameter",
            None,
        ),
        ("(format)", "42601", "format requires a parameter", None),
        (
            "(format foo)",
            "22023",
            "COPY format \"foo\" not recognized",
            Some(24),
        ),
        (
            "(foo 1)",
            "42601",
            "option \"foo\" not recognized",
            Some(24),
        ),
        (
            "(delimiter 'ab')",
            "0A000",
            "COPY delimiter must be a single one-byte character",
            None,
        ),
        (
            "(delimiter 'ä')",
            "0A000",
            "COPY delimiter must be a single one-byte character",
            None,
        ),
        (
            "(delimiter 1)",
            "22023",
            "COPY delimiter cannot be \"1\"",
            None,
        ),
        (
            "(quote 'ab')",
            "0A000",
            "COPY quote available only in CSV mode",
            None,
        ),
        (
            "(format csv, quote 'ab')",
            "0A000",
            "COPY quote must be a single one-byte character",
            None,
        ),
        (
            "(escape 'x')",
            "0A000",
            "COPY escape available only in CSV mode",
            None,
        ),
        (
            "(format csv, escape \"xx\")",
            "0A000",
            "COPY escape must be a single one-byte character",
            None,
        ),
        (
            "(format csv, quote ',')",
            "22023",
            "COPY delimiter and quote must be different",
            None,
        ),
        (
            "(format csv, null '\"')",
            "0A000",
            "CSV quote character must not appear in the NULL specification",
            None,
        ),
        (
            "(format csv, force_quote a)",
            "22023",
            "argument to option \"force_quote\" must be a list of column names",
            Some(36),
        ),
        (
            "(format csv, force_quote (a, a))",
            "42701",
            "column \"a\" specified more than once",
            None,
        ),
        (
            "(format csv, force_quote (z))",
            "42703",
            "column \"z\" of relation \"t\" does not exist",
            None,
        ),
        (
            "(format csv, force_quote (c))",
            "42P10",
            "FORCE_QUOTE column \"c\" not referenced by COPY",
            None,
        ),
        (
            "(format csv, force_quote (g))",
            "42P10",
            "column \"g\" is a generated column",
            None,
        ),
        (
            "csv force quote \"A\"",
            "42703",
            "column \"A\" of relation \"t\" does not exist",
            None,
        ),
        (
            "(force_quote *)",
            "0A000",
            "COPY force quote available only in CSV mode",
            None,
        ),
        (
            "(format csv, force_null (a))",
            "0A000",
            "COPY force null only available using COPY FROM",
            None,
        ),
        (
            "(format csv, force_not_null (a))",
            "0A000",
            "COPY force not null only available using COPY FROM",
            None,
        ),
        (
            "force null a csv",
            "0A000",
            "COPY force null only available using COPY FROM",
            None,
        ),
        (
            "(encoding foo)",
            "22023",
            "argument to option \"encoding\" must be a valid encoding name",
            Some(24),
        ),
        (
            "encoding ''",
            "22023",
            "argument to option \"encoding\" must be a valid encoding name",
            Some(23),
        ),
        ("()", "42601", "syntax error at or near \")\"", Some(24)),
        (
            "(format csv) csv",
            "42601",
            "syntax error at or near \"csv\"",
            Some(36),
        ),
        (
            "csv (header)",
            "42601",
            "syntax error at or near \"(\"",
            Some(27),
        ),
        (
            "header true",
            "42601",
            "syntax error at or near \"true\"",
            Some(30),
        ),
        (
            "where true",
            "42601",
            "WHERE clause not allowed with COPY TO",
            Some(23),
        ),
    ] {
        let found = error(&mut client, &format!("copy t(a,b) to stdout {options}"));
        let expected = (state.to_owned(), text.to_owned(), place);
        assert_eq!(found, expected, "{options}");
    }
    for (options, state, text) in [
        (
            "(format csv, force_quote (a))",
            "0A000",
            "COPY force quote only available using COPY TO",
        ),
        (
            "(force_null (a))",
            "0A000",
            "COPY force null available only in CSV mode",
        ),
        (
            "(format csv, force_null (a), force_null (b))",
            "42601",
            "conflicting or redundant options",
        ),
        (
            "(format csv, force_null (c))",
            "42P10",
            "FORCE_NULL column \"c\" not referenced by COPY",
        ),
        (
            "(format csv, force_not_null (c))",
            "42P10",
            "FORCE_NOT_NULL column \"c\" not referenced by COPY",
        ),
        (
            "(format csv, force_null *)",
            "22023",
            "argument to option \"force_null\" must be a list of column names",
        ),
    ] {
        let found = error(&mut client, &format!("copy t(a, b) from stdin {options}"));
        assert_eq!((&*found.0, &*found.1), (state, text), "{options}");
    }
    assert_eq!(client.state("copy t (a, a) from stdin"), "42701");
    assert_eq!(
        client.state("copy binary t from stdin (format csv)"),
        "42601"
    );
    assert_eq!(client.state("copy (select 1) from stdin"), "42601");
    let found = error(
        &mut client,
        "copy (select 1 as x) to stdout csv force quote z",
    );
    assert_eq!(found.1, "column \"z\" does not exist");
    assert_eq!(client.state("copy t to stdout (encoding latin1)"), "0A000");
}

#[test]
fn options_are_heard_in_either_spelling() {
    let mut client = client();
    client.ok("insert into t values (1, 'x'), (2, null)");
    for (options, expected) in [
        ("(format csv, force_quote (a))", "\"1\",x\n\"2\",\n"),
        (
            "(format 'csv', force_quote *, header on)",
            "a,b\n\"1\",\"x\"\n\"2\",\n",
        ),
        ("csv force quote b, a header", "a,b\n\"1\",\"x\"\n\"2\",\n"),
        ("with csv force quote *", "\"1\",\"x\"\n\"2\",\n"),
        (
            "csv quote as '|' escape '!' force quote b null as 'n'",
            "1,|x|\n2,n\n",
        ),
        ("(header 1)", "a\tb\n1\tx\n2\t\\N\n"),
        ("(header 0, freeze false)", "1\tx\n2\t\\N\n"),
        ("(header off, encoding 'utf-8')", "1\tx\n2\t\\N\n"),
        ("delimiter as ';' null 'n' encoding 'UTF8'", "1;x\n2;n\n"),
        ("using delimiters ',' null 'n'", "1,x\n2,n\n"),
        ("with", "1\tx\n2\t\\N\n"),
    ] {
        let heard = client.hear(&format!("copy t(a, b) to stdout {options}"));
        assert_eq!(
            String::from_utf8_lossy(&heard.copied),
            expected,
            "{options}"
        );
    }
    let heard = client.hear("copy (select 1 as x, 2 as y) to stdin csv force quote x header");
    assert_eq!(heard.copied, b"x,y\n\"1\",2\n");
}

#[test]
fn what_is_null_in_csv_can_be_said_of_each_column() {
    let mut client = client();
    let options = "(format csv, force_null (a, b), force_not_null (b))";
    let sql = format!("copy t(a, b) from stdin {options}");
    assert_eq!(copied(&mut client, &sql, "1,\"\"\n\"\",\n2,x\n"), "COPY 3");
    assert_eq!(client.ok("select a, b from t"), "1|~\n~|\n2|x");
    let sql = "copy t(a, b) from stdin csv force not null b force null b";
    assert_eq!(copied(&mut client, sql, "5,\n6,\"\"\n"), "COPY 2");
    assert_eq!(client.ok("select a, b from t where a > 4"), "5|\n6|~");
}

#[test]
fn a_header_has_to_match() {
    let mut client = client();
    for (options, data, expected) in [
        (
            "(format csv, header match)",
            "a\n",
            "22P04 wrong number of fields in header line: got 1, expected 2",
        ),
        (
            "(format csv, header match)",
            "a,\"b\",c\n",
            "22P04 wrong number of fields in header line: got 3, expected 2",
        ),
        (
            "(format csv, header match)",
            "a,c\n",
            "22P04 column name mismatch in header line field 2: got \"c\", expected \"b\"",
        ),
        (
            "(format csv, header match, force_not_null (b))",
            "a,\n",
            "22P04 column name mismatch in header line field 2: got null value (\"\"), expected \"b\"",
        ),
        (
            "(header match)",
            "a\t\\N\n",
            "22P04 column name mismatch in header line field 2: got null value (\"\\N\"), expected \"b\"",
        ),
        (
            "(header match)",
            "A\tb\n",
            "22P04 column name mismatch in header line field 1: got \"A\", expected \"a\"",
        ),
        ("(header match)", "a\tb\n1\tx\n", "COPY 1"),
        ("(format csv, header MATCH)", "\"a\",b\n1,x\n", "COPY 1"),
        ("(format csv, header)", "z\n1,x\n", "COPY 1"),
    ] {
        let sql = format!("copy t(a, b) from stdin {options}");
        assert_eq!(copied(&mut client, &sql, data), expected, "{data}");
    }
}

#[test]
fn rows_that_do_not_meet_the_condition_are_left_out() {
    let mut client = client();
    client.ok("create sequence s; create table u (id int generated always as identity, n int, k text default 'k', at int default nextval('s'))");
    let rows: String = (1..=1000).map(|n| format!("{n}\tx{n}\n")).collect();
    let sql = "copy t(a, b) from stdin where a > 990 and t.b <> 'x995' and c = 'd'";
    assert_eq!(copied(&mut client, sql, &rows), "COPY 9");
    assert_eq!(
        client.ok("select sum(a), min(c), sum(g) from t"),
        "8960|d|17920"
    );
    let sql = "copy t(a) from stdin csv where a is null or a < 0; select count(*) from t";
    assert_eq!(copied(&mut client, sql, "1\n-1\n\n"), "COPY 2,SELECT 1");
    assert_eq!(
        copied(&mut client, "copy t from stdin where false", "1\tb\tc\n"),
        "COPY 0"
    );
    assert_eq!(
        copied(&mut client, "copy t from stdin where null", "1\tb\tc\n"),
        "COPY 0"
    );
    // Of a default each row has one value, whether it is read or not.
    let sql = "copy u(n) from stdin where id <> 2 and at < 100";
    assert_eq!(copied(&mut client, sql, "10\n20\n30\n"), "COPY 2");
    assert_eq!(client.ok("select * from u"), "1|10|k|1\n3|30|k|3");
    assert_eq!(
        copied(&mut client, "copy u(n) from stdin where n / 0 > 1", "10\n"),
        "22012 division by zero"
    );
    assert_eq!(
        copied(&mut client, "copy t(a) from stdin where a > 1", "y\n"),
        "22P02 invalid input syntax for type integer: \"y\""
    );
}

#[test]
fn a_condition_is_one_of_the_row_alone() {
    let mut client = client();
    for (condition, state, text, place) in [
        (
            "a > (select 1)",
            "0A000",
            "cannot use subquery in COPY FROM WHERE condition",
            None,
        ),
        (
            "exists (select 1)",
            "0A000",
            "cannot use subquery in COPY FROM WHERE condition",
            None,
        ),
        (
            "count(*) > 1",
            "42803",
            "aggregate functions are not allowed in COPY FROM WHERE conditions",
            Some(30),
        ),
        (
            "row_number() over () > 1",
            "42P20",
            "window functions are not allowed in COPY FROM WHERE conditions",
            Some(30),
        ),
        (
            "generate_series(1, 2) > 1",
            "0A000",
            "set-returning functions are not allowed in COPY FROM WHERE conditions",
            Some(30),
        ),
        (
            "a",
            "42804",
            "argument of WHERE must be type boolean, not type integer",
            Some(30),
        ),
        ("z > 1", "42703", "column \"z\" does not exist", Some(30)),
        (
            "x.a > 1",
            "42P01",
            "missing FROM-clause entry for table \"x\"",
            Some(30),
        ),
        ("a > $1", "42P02", "there is no parameter $1", None),
        (
            "g > 1",
            "42P10",
            "generated columns are not supported in COPY FROM WHERE conditions",
            None,
        ),
        (
            "a > 'x'",
            "22P02",
            "invalid input syntax for type integer: \"x\"",
            Some(34),
        ),
        (
            "default",
            "42601",
            "DEFAULT is not allowed in this context",
            None,
        ),
    ] {
        let found = error(
            &mut client,
            &format!("copy t(a,b) from stdin where {condition}"),
        );
        let place = place.or(found.2);
        let expected = (state.to_owned(), text.to_owned(), place);
        assert_eq!(found, expected, "{condition}");
    }
}

/// Defaults are computed of every row, before its condition; what that reads one must have the right to read.
#[test]
fn conditions_see_defaults_as_they_are_stored() {
    let database = super::client::database();
    let mut client = Client::of(&database);
    client.ok("create table t (id serial, a int, n numeric(5,2) default 1.009, v varchar(2))");
    let sql = "copy t(a, v) from stdin where a > 1 and n = 1.01";
    assert_eq!(copied(&mut client, sql, "1\tx\n2\ty\n3\tz\n"), "COPY 2");
    assert_eq!(client.ok("select id, a, n from t"), "2|2|1.01\n3|3|1.01");
    client.ok("create role r login; create table u (a int); grant insert on u to r");
    let mut other = Client::of_user(&database, "r");
    let told = copied(&mut other, "copy u from stdin where a > 1", "2\n");
    assert!(told.starts_with("42501"), "{told}");
    assert_eq!(copied(&mut other, "copy u from stdin", "2\n"), "COPY 1");
}
