//! Where errors of a COPY are, as PostgreSQL says it; what is refused before anything is copied.

use super::client::{Client, Heard};
use vellum_sql::{Progress, SqlError};

/// What a COPY from the client ends with.
#[track_caller]
fn refused(client: &mut Client, sql: &str, data: &[u8]) -> SqlError {
    let mut heard = Heard::default();
    let session = &mut client.session;
    let begun = session.simple_query(sql, &mut heard).unwrap();
    assert_eq!(begun, Progress::CopyIn);
    let sent = session.copy_data(data);
    sent.and_then(|()| session.copy_done(&mut heard).map(drop))
        .unwrap_err()
}

#[test]
fn an_error_tells_its_line_or_its_column() {
    let mut client = Client::new();
    client.ok("create table t (a int, b text, c int); create table e (a int primary key)");
    client.ok("create table r (a int references e); create table k (a int check (a > 0))");
    let long = "x".repeat(200);
    let cut = format!("COPY e, line 1, column a: \"{}...\"", "x".repeat(100));
    let missing = |column: &str| format!("missing data for column \"{column}\"");
    let integer = |text: &str| format!("invalid input syntax for type integer: \"{text}\"");
    let header = "column name mismatch in header line field 3: got \"x\", expected \"c\"";
    let encoding = "invalid byte sequence for encoding \"UTF8\": 0xff";
    let cases: &[(&str, &[u8], &str, &str)] = &[
        (
            "t from stdin",
            b"1\n",
            &missing("b"),
            "COPY t, line 1: \"1\"",
        ),
        (
            "t from stdin",
            b"1\t2\t3\n1\t2\n",
            &missing("c"),
            "COPY t, line 2: \"1\t2\"",
        ),
        (
            "t (a, b) from stdin",
            b"1\n",
            &missing("b"),
            "COPY t, line 1: \"1\"",
        ),
        (
            "t from stdin csv",
            b"1,2\n",
            &missing("c"),
            "COPY t, line 1: \"1,2\"",
        ),
        (
            "t from stdin csv",
            b"\n",
            &missing("b"),
            "COPY t, line 1: \"\"",
        ),
        // What is there is read before something is missed.
        (
            "t from stdin",
            b"x\n",
            &integer("x"),
            "COPY t, line 1, column a: \"x\"",
        ),
        (
            "t from stdin csv force not null a",
            b"\n",
            &integer(""),
            "COPY t, line 1, column a: \"\"",
        ),
        (
            "t from stdin",
            b"1\t2\t3\t4\n",
            "extra data after last expected column",
            "COPY t, line 1: \"1\t2\t3\t4\"",
        ),
        (
            "t from stdin",
            b"1\t2\t3\nx\tb\t2\n",
            &integer("x"),
            "COPY t, line 2, column a: \"x\"",
        ),
        (
            "t from stdin",
            b"1\t\\\\\tx\n",
            &integer("x"),
            "COPY t, line 1, column c: \"x\"",
        ),
        (
            "t from stdin",
            b"2\tb\t\n",
            &integer(""),
            "COPY t, line 1, column c: \"\"",
        ),
        (
            "t from stdin csv",
            b"1,2,\"x\"\n",
            &integer("x"),
            "COPY t, line 1, column c: \"x\"",
        ),
        ("e from stdin", long.as_bytes(), &integer(&long), &cut),
        (
            "t from stdin",
            b"1\t\\xff\t3\n",
            encoding,
            "COPY t, line 1: \"1\t\\xff\t3\"",
        ),
        ("t from stdin", b"1\t\xff\t3\n", encoding, "COPY t, line 1"),
        (
            "t from stdin (format csv, header match)",
            b"a,b,x\n",
            header,
            "COPY t, line 1: \"a,b,x\"",
        ),
        (
            "e from stdin",
            b"1\n1\n",
            "duplicate key value violates unique constraint \"e_pkey\"",
            "COPY e, line 2",
        ),
        (
            "e from stdin",
            b"1\n\\N\n",
            "null value in column \"a\" of relation \"e\" violates not-null constraint",
            "COPY e, line 2: \"\\N\"",
        ),
        (
            "k from stdin",
            b"1\n2\n-1\n",
            "new row for relation \"k\" violates check constraint \"k_a_check\"",
            "COPY k, line 3: \"-1\"",
        ),
        (
            "r from stdin",
            b"1\n",
            "insert or update on table \"r\" violates foreign key constraint \"r_a_fkey\"",
            "",
        ),
    ];
    for (what, data, message, context) in cases {
        let error = refused(&mut client, &format!("copy {what}"), data);
        assert_eq!(error.message(), *message, "{what}");
        let seen = error.fields().context.as_deref().unwrap_or_default();
        assert_eq!(seen, *context, "{what}");
    }
    let mut heard = Heard::default();
    client
        .session
        .simple_query("copy t from stdin", &mut heard)
        .unwrap();
    let error = client.session.copy_fail("why");
    assert_eq!(error.fields().context.as_deref(), Some("COPY t, line 1"));
    client
        .session
        .simple_query("copy t from stdin", &mut heard)
        .unwrap();
    client.session.copy_data(b"1\t2\t3\n").unwrap();
    let error = client.session.copy_broken(b'Q');
    assert_eq!(error.sqlstate().as_str(), "08P01");
    assert_eq!(
        error.message(),
        "unexpected message type 0x51 during COPY from stdin"
    );
    assert_eq!(error.fields().context.as_deref(), Some("COPY t, line 2"));
    assert_eq!(client.ok("select count(*) from t"), "0");
}

#[test]
fn a_change_that_returns_nothing_is_refused_before_it_runs() {
    let mut client = Client::new();
    client.ok("create table t (a int); insert into t values (1)");
    for (sql, message) in [
        (
            "update t set a = 2",
            "COPY query must have a RETURNING clause",
        ),
        ("delete from t", "COPY query must have a RETURNING clause"),
        (
            "insert into t values (2)",
            "COPY query must have a RETURNING clause",
        ),
        (
            "merge into t using t s on false when matched then delete",
            "MERGE not supported in COPY",
        ),
    ] {
        let seen = client.fails(&format!("copy ({sql}) to stdout"));
        assert_eq!(seen, ("0A000".to_owned(), message.to_owned()), "{sql}");
    }
    assert_eq!(client.ok("select a from t"), "1");
    let heard = client.hear("copy (update t set a = 3 returning a) to stdout");
    assert_eq!(
        (heard.copied, heard.tags),
        (b"3\n".to_vec(), vec!["COPY 1".to_owned()])
    );
}

#[test]
fn freeze_is_for_tables_of_the_transaction() {
    let mut client = Client::new();
    client.ok("create table t (a int)");
    let (state, message) = client.fails("copy t from stdin (freeze)");
    assert_eq!(state, "55000");
    assert!(
        message.starts_with(
            "cannot perform COPY FREEZE because the table was not created or truncated"
        )
    );
    for before in [
        "truncate t",
        "create table n (a int)",
        "drop table t; create table t (a int)",
    ] {
        client.ok(&format!("begin; {before}"));
        let name = if before.contains('n') && before.starts_with("create") {
            "n"
        } else {
            "t"
        };
        client.copy(&format!("copy {name} from stdin (freeze)"), "1\n", 9);
        client.ok("rollback");
    }
    client.copy("copy t from stdin (freeze false)", "1\n", 9);
    assert_eq!(client.hear("copy t to stdout (freeze)").copied, b"1\n");
}

#[test]
fn what_looks_like_the_end_of_csv_is_quoted_where_it_stands_alone() {
    let mut client = Client::new();
    let mut csv = |query: &str| {
        let copied = client.hear(&format!("copy ({query}) to stdout csv")).copied;
        String::from_utf8(copied).unwrap()
    };
    assert_eq!(csv(r"select '\.', 'a'"), "\\.,a\n");
    assert_eq!(csv(r"select '\.'"), "\"\\.\"\n");
    assert_eq!(
        csv(r"values ('x\.'), ('\.x'), (''), (null)"),
        "x\\.\n\\.x\n\"\"\n\n"
    );
}
