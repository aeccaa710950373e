//! COPY in binary; csv with an escape of its own.

use super::client::{Client, Heard};
use vellum_sql::{Progress, SessionOptions};

const TYPES: &str = "id int primary key, n numeric(12, 2), s text, b bytea, f float8, d date, t timestamptz, i interval, j jsonb";

fn with_rows(name: &str) -> Client {
    let mut client = Client::new();
    client.ok(&format!(
        "create table t ({TYPES}); create table {name} ({TYPES});
         insert into t values
            (1, 12.5, 'one', '\\x00ff', 1.5, '2024-02-29', '2024-02-29 12:00+02', '1 mon 2 days', '{{\"a\": [1]}}'),
            (2, null, '', null, 'NaN', 'infinity', null, null, 'null'),
            (3, -0.01, 'ä', '', -0, '1999-12-31', '-infinity', '-00:00:01', '[]')"
    ));
    client
}

/// COPY FROM STDIN in pieces; SQLSTATE if it fails.
fn copy_in(client: &mut Client, table: &str, data: &[u8], piece: usize) -> Result<String, String> {
    let mut heard = Heard::default();
    let sql = format!("copy {table} from stdin (format binary)");
    let begun = client.session.simple_query(&sql, &mut heard).unwrap();
    assert_eq!(begun, Progress::CopyIn);
    let state = |error: vellum_sql::SqlError| error.sqlstate().to_string();
    for piece in data.chunks(piece) {
        client.session.copy_data(piece).map_err(state)?;
    }
    client.session.copy_done(&mut heard).map_err(state)?;
    Ok(heard.tags[0].clone())
}

#[test]
fn rows_go_out_and_come_back_in_binary_however_they_are_cut() {
    for piece in [1, 7, 1 << 20] {
        let mut client = with_rows("u");
        let out = client.hear("copy t to stdout (format binary)");
        assert_eq!(out.tags, ["COPY 3"]);
        assert!(
            out.copied
                .starts_with(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0")
        );
        assert!(out.copied.ends_with(&[0xff, 0xff]));
        assert_eq!(
            copy_in(&mut client, "u", &out.copied, piece).unwrap(),
            "COPY 3"
        );
        let all = |client: &mut Client, name: &str| {
            client.ok(&format!("select * from {name} order by id"))
        };
        assert_eq!(all(&mut client, "u"), all(&mut client, "t"));
        let some = client.hear("copy (select id from t where id < 2) to stdout with binary");
        assert_eq!(
            &some.copied[19..],
            [0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0xff, 0xff]
        );
    }
}

#[test]
fn bytes_that_are_no_rows_are_refused() {
    let mut client = with_rows("u");
    let good = client.hear("copy t to stdout (format binary)").copied;
    let end = good.len() - 2;
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    for (what, data) in [
        ("signature", with(0, b"X")),
        ("flags", with(11, &[0, 1, 0, 0])),
        ("extension", with(15, &[0xff; 4])),
        ("columns", with(19, &[0, 8])),
        ("length", with(21, &[0xff, 0xff, 0xff, 0xfe])),
        ("end", good[..end - 1].to_vec()),
        ("header", good[..12].to_vec()),
        ("more", [&good[..], &[0]].concat()),
    ] {
        assert_eq!(
            copy_in(&mut client, "u", &data, 64).unwrap_err(),
            "22P04",
            "{what}"
        );
    }
    // An integer of three bytes.
    assert_eq!(
        copy_in(&mut client, "u", &with(24, &[3]), 64).unwrap_err(),
        "08P01"
    );
    assert_eq!(client.ok("select count(*) from u"), "0");
    assert_eq!(
        copy_in(&mut client, "u", &good[..end], 64).unwrap(),
        "COPY 3",
        "the end may be left out"
    );
    assert_eq!(
        client.state("copy u from stdin (format binary, delimiter ';')"),
        "42601"
    );
}

/// Symptom: rows that COPY had written were not read ("unterminated CSV quoted field"). Cause: who looked for the ends of lines took an escaped quote for
/// the end of its field, where the escape is not the quote. Guard: `CopyIn::line_end` knows of escapes.
#[test]
fn regress_an_escaped_quote_ends_no_field_of_csv() {
    const FORM: &str = r"(format csv, quote '''', escape '\')";
    let mut client = Client::new();
    client.ok(
        "create table t (id int primary key, s text); create table u (id int primary key, s text)",
    );
    client.ok(r"insert into t values (1, 'it''s'), (2, e'a\nb''c\\'), (3, '\'), (4, e'''\n')");
    let out = client.hear(&format!("copy t to stdout {FORM}"));
    for piece in [1, 5, 1 << 20] {
        let mut heard = Heard::default();
        let sql = format!("copy u from stdin {FORM}");
        client.session.simple_query(&sql, &mut heard).unwrap();
        for piece in out.copied.chunks(piece) {
            client.session.copy_data(piece).unwrap();
        }
        client.session.copy_done(&mut heard).unwrap();
        let all = |client: &mut Client, name: &str| {
            client.ok(&format!("select * from {name} order by id"))
        };
        assert_eq!(all(&mut client, "u"), all(&mut client, "t"));
        client.ok("truncate u");
    }
}

/// Symptom: a client that sent a row without an end took as much memory as it liked. Cause: what has come of a row is kept until its end comes, and nobody
/// asked how much that was. Guard: `SessionOptions::copy_row_bytes_max`.
#[test]
fn regress_a_row_whose_end_does_not_come_is_refused() {
    const MOST: usize = 1 << 20;
    let endless: [(&str, &[u8], &[u8]); 4] = [
        ("text", b"1\t", b"abc"),
        ("csv", b"1,\"", b"a\n,"),
        // An extension of the header, and a field, of 2 GiB.
        (
            "binary",
            b"PGCOPY\n\xff\r\n\0\0\0\0\0\x7f\xff\xff\xff",
            b"\0\0\0",
        ),
        (
            "binary",
            b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x04\0\0\0\x01\x7f\xff\xff\xff",
            b"abc",
        ),
    ];
    for (format, begin, piece) in endless {
        let mut client = Client::with(SessionOptions {
            copy_row_bytes_max: MOST,
            ..SessionOptions::default()
        });
        client.ok("create table t (id int primary key, s text)");
        let mut heard = Heard::default();
        let sql = format!("copy t from stdin (format {format})");
        client.session.simple_query(&sql, &mut heard).unwrap();
        client.session.copy_data(begin).unwrap();
        let piece = piece.repeat(1000);
        let refused = (0..).find_map(|number| {
            assert!(number <= MOST / piece.len(), "{format}: more is taken");
            client.session.copy_data(&piece).err()
        });
        let refused = refused.unwrap();
        assert_eq!(refused.sqlstate().to_string(), "54000", "{format}");
        assert_eq!(client.ok("select count(*) from t"), "0");
    }
}

/// Symptom: what a row cost that came in small pieces grew with the square of its length. Cause: with each piece what had come before was copied, and in
/// binary decoded, again. Guard: it stays where it is, and is decoded when it is whole.
#[test]
fn regress_a_long_row_in_small_pieces_is_taken() {
    const LONG: usize = 8 << 20;
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s text)");
    let mut binary = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x04\0\0\0\x01".to_vec();
    binary.extend_from_slice(&(LONG as u32).to_be_bytes());
    binary.resize(binary.len() + LONG, b'x');
    let text = [b"2\t", &b"x".repeat(LONG)[..], b"\n"].concat();
    for (format, data) in [("binary", binary), ("text", text)] {
        let mut heard = Heard::default();
        let sql = format!("copy t from stdin (format {format})");
        client.session.simple_query(&sql, &mut heard).unwrap();
        for piece in data.chunks(50) {
            client.session.copy_data(piece).unwrap();
        }
        client.session.copy_done(&mut heard).unwrap();
        assert_eq!(heard.tags, ["COPY 1"], "{format}");
    }
    let long = format!("{LONG}\n{LONG}");
    assert_eq!(client.ok("select length(s) from t order by id"), long);
}

/// What a COPY from the client ends with: the message and where it was.
fn copy_error(client: &mut Client, data: &str) -> (String, String) {
    let mut heard = Heard::default();
    let session = &mut client.session;
    let started = session.simple_query("copy t from stdin", &mut heard);
    assert_eq!(started.unwrap(), Progress::CopyIn);
    let sent = session.copy_data(data.as_bytes());
    let error = sent
        .and_then(|()| session.copy_done(&mut heard).map(drop))
        .unwrap_err();
    let context = error.fields().context.clone().unwrap_or_default();
    (error.message().to_owned(), context)
}

#[test]
fn the_first_row_that_is_wrong_is_told_whoever_finds_it() {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, b int not null)");
    client.ok("insert into t values (7, 0)");
    let lines = |wrong: &[(usize, &str)]| {
        let line = |at: usize| {
            let found = wrong.iter().find(|(line, _)| *line == at);
            found.map_or(format!("{}\t1\n", 100 + at), |(_, text)| {
                format!("{text}\n")
            })
        };
        (1..=1000).map(line).collect::<String>()
    };
    let unreadable = (500, "x\t1");
    for (wrong, message, line) in [
        (
            vec![unreadable],
            "invalid input syntax for type integer: \"x\"",
            "500, column a: \"x\"",
        ),
        (
            vec![(497, "7\t1"), unreadable],
            "duplicate key value violates unique constraint \"t_pkey\"",
            "497",
        ),
        (
            vec![(10, "1\t\\N"), (11, "2")],
            "null value in column \"b\" of relation \"t\" violates not-null constraint",
            "10: \"1\t\\N\"",
        ),
        (
            vec![(384, "1"), (385, "7\t1")],
            "missing data for column \"b\"",
            "384: \"1\"",
        ),
        (
            vec![(1000, "7\t1")],
            "duplicate key value violates unique constraint \"t_pkey\"",
            "1000",
        ),
    ] {
        let found = copy_error(&mut client, &lines(&wrong));
        assert_eq!(found, (message.to_owned(), format!("COPY t, line {line}")));
        assert_eq!(client.ok("select count(*) from t"), "1");
    }
    // Of a line that has no end, too.
    let options = SessionOptions {
        copy_row_bytes_max: 1000,
        ..SessionOptions::default()
    };
    let mut short = Client::with(options);
    short.ok("create table t (a int primary key, b int not null)");
    let (message, context) = copy_error(&mut short, &format!("1\t1\n1\t1\n2{}", "0".repeat(1000)));
    assert!(message.starts_with("duplicate key value"), "{message}");
    assert_eq!(context, "COPY t, line 2");
    let mut heard = Heard::default();
    client
        .session
        .simple_query("copy t from stdin", &mut heard)
        .unwrap();
    client.session.copy_data(lines(&[]).as_bytes()).unwrap();
    client.session.copy_done(&mut heard).unwrap();
    assert_eq!(heard.tags, ["COPY 1000"]);
    assert_eq!(
        client.ok("select count(*), sum(a), sum(b) from t"),
        "1001|600507|1000"
    );
}

/// COPY FROM STDIN of text; SQLSTATE if it fails.
fn copy_lines(client: &mut Client, target: &str, lines: &str) -> Result<(), String> {
    let mut heard = Heard::default();
    let sql = format!("copy {target} from stdin");
    client.session.simple_query(&sql, &mut heard).unwrap();
    let state = |error: vellum_sql::SqlError| error.sqlstate().to_string();
    client.session.copy_data(lines.as_bytes()).map_err(state)?;
    client.session.copy_done(&mut heard).map_err(state)?;
    Ok(())
}

#[test]
fn rows_of_a_copy_are_as_inserted_whichever_columns_it_names() {
    let names = ["a", "c", "v", "n", "s", "x"];
    let rows = [
        ["1", "ab", "abc  ", "1.005", "2024-02-29 12:00:00.6", "tab"],
        ["2", "ab   ", "", "-0.004", "1999-12-31 23:59:59.5", ""],
        ["3", "ä", "äöü", "499.994", "infinity", "ende"],
    ];
    let wrongs = [
        ("22001", ["4", "abcdef", "", "1", "epoch", ""]),
        ("22001", ["4", "", "abcd", "1", "epoch", ""]),
        ("22003", ["4", "", "", "999.995", "epoch", ""]),
        ("23514", ["4", "", "", "499.995", "epoch", ""]),
        ("23505", ["3", "", "", "1", "epoch", ""]),
    ];
    let all = [0, 1, 2, 3, 4, 5];
    for order in [&all[..], &[5, 4, 3, 2, 1, 0], &[0, 1, 2, 3, 4], &[1, 3, 0]] {
        for escaped in [false, true] {
            let mut client = Client::new();
            client.ok(
                "create table t (a int primary key, c char(5), v varchar(3), n numeric(5, 2) check (n < 500),
                    s timestamp(0), x text default 'nothing');
                 create table u (like t including all)",
            );
            let list: Vec<&str> = order.iter().map(|at| names[*at]).collect();
            let list = list.join(", ");
            let line = |row: &[&str; 6]| {
                let fields: Vec<String> = order
                    .iter()
                    .map(|at| match row[*at].strip_prefix('a') {
                        Some(rest) if escaped => format!("\\x61{rest}"),
                        _ => row[*at].to_owned(),
                    })
                    .collect();
                fields.join("\t") + "\n"
            };
            let target = if order == all {
                "t"
            } else {
                &format!("t ({list})")
            };
            let lines: String = rows.iter().map(line).collect();
            copy_lines(&mut client, target, &lines).unwrap();
            for row in &rows {
                let values: Vec<String> =
                    order.iter().map(|at| format!("'{}'", row[*at])).collect();
                client.ok(&format!(
                    "insert into u ({list}) values ({})",
                    values.join(", ")
                ));
            }
            let what = format!("{target}, escaped {escaped}");
            let stored = |client: &mut Client, name: &str| {
                client.ok(&format!(
                    "select *, c || '.', octet_length(v) from {name} order by a"
                ))
            };
            assert_eq!(stored(&mut client, "t"), stored(&mut client, "u"), "{what}");
            for (state, row) in &wrongs {
                let named = order.len() > 4 || *state == "23505";
                if named || row[1].len() > 5 || row[3] != "1" {
                    let done = copy_lines(&mut client, target, &line(row));
                    assert_eq!(done, Err((*state).to_owned()), "{what}: {row:?}");
                }
            }
            assert_eq!(client.ok("select count(*) from t"), "3");
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_in_lines_of_any_kind() {
    for line in [
        &b"1\ta\xff\n"[..],
        b"1\ta\0\n",
        b"1\t\\\\a\xff\n",
        b"1\t\\\\a\0\n",
    ] {
        let mut client = Client::new();
        client.ok("create table t (a int primary key, x text)");
        let mut heard = Heard::default();
        client
            .session
            .simple_query("copy t from stdin", &mut heard)
            .unwrap();
        let error = client.session.copy_data(line).unwrap_err();
        assert_eq!(error.sqlstate().to_string(), "22021", "{line:?}");
        let byte = if line.contains(&0) { "0x00" } else { "0xff" };
        let message = format!("invalid byte sequence for encoding \"UTF8\": {byte}");
        assert_eq!(error.message(), message);
    }
}

#[test]
fn elements_of_arrays_in_binary_get_the_modifier_of_their_column() {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, n numeric(5, 2)[])");
    client.ok("create table exact (a int primary key, n numeric[])");
    client.ok("insert into exact values (1, '{1.005, -2.5, null}')");
    let out = client.hear("copy exact to stdout (format binary)");
    copy_in(&mut client, "t", &out.copied, 1000).unwrap();
    assert_eq!(client.ok("select n from t"), "{1.01,-2.50,NULL}");
}

#[test]
fn statements_behind_a_copy_are_run_when_it_has_ended() {
    let mut client = Client::new();
    client.ok("create table t (a int)");
    for tail in [
        "; insert into t values (9); select count(*) from t",
        ";",
        "",
    ] {
        client.ok("truncate t");
        let heard = client.copy(&format!("copy t from stdin{tail}"), "1\n2\n", 3);
        assert_eq!(heard.tags[0], "COPY 2");
        let more = tail.len() > 1;
        assert_eq!(heard.tags.len(), if more { 3 } else { 1 });
        assert_eq!(heard.text(), if more { "3" } else { "" });
    }
    // They are one transaction.
    client.ok("truncate t");
    let mut heard = Heard::default();
    let begun = client
        .session
        .simple_query("copy t from stdin; select 1 / 0", &mut heard);
    assert_eq!(begun.unwrap(), Progress::CopyIn);
    client.session.copy_data(b"1\n").unwrap();
    let error = client.session.copy_done(&mut heard).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "22012");
    assert_eq!(client.ok("select count(*) from t"), "0");
    assert_eq!(client.ok("copy (select 1) to stdout; select 2"), "2");
}

#[test]
fn a_copy_that_waits_for_data_ends_when_it_is_cancelled_or_takes_too_long() {
    const CANCELLED: &str = "canceling statement due to user request";
    const TIMEOUT: &str = "canceling statement due to statement timeout";
    let mut client = Client::new();
    client.ok("create table t (a int)");
    let begin = |client: &mut Client| {
        let begun = client.session.simple_query(
            "copy t from stdin; insert into t values (9)",
            &mut Heard::default(),
        );
        assert_eq!(begun.unwrap(), Progress::CopyIn);
        client.session.copy_data(b"1\n2").unwrap();
        assert!(client.session.end_copy().is_none() && !client.session.is_copy_over());
    };
    // Who waits for the client is woken, and asks; or the client speaks first.
    type End = fn(&mut Client) -> vellum_sql::SqlError;
    let ends: [End; 3] = [
        |client| client.session.end_copy().unwrap(),
        |client| client.session.copy_data(b"3\n").unwrap_err(),
        |client| client.session.copy_done(&mut Heard::default()).unwrap_err(),
    ];
    let woken = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = woken.clone();
    let handle = client.session.cancel_handle();
    handle.when_cancelled(Box::new(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }));
    for end in ends {
        begin(&mut client);
        handle.cancel();
        assert!(client.session.is_copy_over());
        let error = end(&mut client);
        assert_eq!(
            (error.sqlstate().as_str(), error.message()),
            ("57014", CANCELLED)
        );
        assert!(client.session.end_copy().is_none());
        assert_eq!(client.ok("select count(*) from t"), "0");
    }
    assert_eq!(woken.load(std::sync::atomic::Ordering::SeqCst), 3);
    client.ok("set statement_timeout = 50");
    for end in ends {
        begin(&mut client);
        assert!(client.session.deadline().is_some());
        while !client.session.is_copy_over() {
            std::thread::yield_now();
        }
        let error = end(&mut client);
        assert_eq!(
            (error.sqlstate().as_str(), error.message()),
            ("57014", TIMEOUT)
        );
        assert_eq!(client.session.deadline(), None);
    }
    client.ok("set statement_timeout = 0");
    assert_eq!(
        client.copy("copy t from stdin", "1\n2\n", 1).tags,
        ["COPY 2"]
    );
}

#[test]
fn a_copy_that_waits_for_data_is_shown_as_active() {
    let database = super::client::database();
    let mut one = Client::of(&database);
    let mut other = Client::of(&database);
    one.ok("create table t (a int)");
    let state = "select state from pg_stat_activity where query like 'copy t%'";
    let begun = one
        .session
        .simple_query("copy t from stdin", &mut Heard::default());
    assert_eq!(begun.unwrap(), Progress::CopyIn);
    one.session.copy_data(b"1\n").unwrap();
    assert_eq!(other.ok(state), "active");
    one.session.copy_done(&mut Heard::default()).unwrap();
    assert_eq!(other.ok(state), "idle");
}

/// Symptom: COPY of a view and of a sequence told rows, and a column that was named twice came twice. Answers are PostgreSQL 15's.
#[test]
fn regress_copy_tells_rows_of_tables_only_and_each_column_once() {
    let mut client = Client::new();
    client.ok("create table t (a int, b text); create view v as select * from t; create sequence s; create index i on t (a)");
    let mut refused = |text: &str| {
        let mut heard = Heard::default();
        let error = client.session.simple_query(text, &mut heard).unwrap_err();
        assert!(heard.copied.is_empty());
        format!("{} {}", error.sqlstate(), error.message())
    };
    for (text, wanted) in [
        ("copy v to stdout", "42809 cannot copy from view \"v\""),
        ("copy v (a) to stdout", "42809 cannot copy from view \"v\""),
        ("copy s to stdout", "42809 cannot copy from sequence \"s\""),
        ("copy i to stdout", "42809 \"i\" is an index"),
        (
            "copy t (a, b, a) to stdout",
            "42701 column \"a\" specified more than once",
        ),
        (
            "copy t (nope) to stdout",
            "42703 column \"nope\" of relation \"t\" does not exist",
        ),
        (
            "copy pg_class (nope) to stdout",
            "42703 column \"nope\" of relation \"pg_class\" does not exist",
        ),
    ] {
        assert_eq!(refused(text), wanted);
    }
    client.ok("insert into t values (1, 'x')");
    assert_eq!(client.hear("copy t (b, a) to stdout").copied, b"x\t1\n");
}
