//! Portals of commands that return rows, and cursors as portals: Execute with limits, again, behind FETCH; what `pg_cursors` shows of them.

use super::client::{Client, Heard};
use vellum_sql::{Format, Parameters, Progress};

/// Binds a statement to a portal `p`.
fn bind(client: &mut Client, sql: &str) {
    let session = &mut client.session;
    session.parse("", sql, &[]).unwrap();
    session.bind("p", "", Parameters::default(), &[]).unwrap();
}

/// Executes a portal; its rows, and how it ended: the tag, or `...`.
#[track_caller]
fn execute(client: &mut Client, portal: &str, rows: u32) -> (String, String) {
    let mut heard = Heard::default();
    let progress = client.session.execute(portal, rows, &mut heard).unwrap();
    assert_eq!(progress == Progress::Suspended, heard.tags.is_empty());
    let end = heard.tags.pop().unwrap_or_else(|| "...".to_owned());
    (heard.text(), end)
}

fn sync(client: &mut Client) {
    client.session.sync().unwrap();
}

fn pair(rows: &str, end: &str) -> (String, String) {
    (rows.to_owned(), end.to_owned())
}

#[test]
fn a_command_that_returns_rows_has_no_more_when_it_is_executed_again() {
    let mut client = Client::new();
    client
        .ok("create table t (a int); prepare e as select 7; prepare i as insert into t values (8)");
    for (sql, rows, tag, again) in [
        ("show datestyle", "ISO, MDY", "SHOW", "SHOW"),
        ("execute e", "7", "SELECT 1", "SELECT 0"),
        ("values (1), (2)", "1\n2", "SELECT 2", "SELECT 0"),
        (
            "insert into t values (9) returning a",
            "9",
            "INSERT 0 1",
            "INSERT 0 0",
        ),
    ] {
        bind(&mut client, sql);
        assert_eq!(execute(&mut client, "p", 0), pair(rows, tag), "{sql}");
        assert_eq!(execute(&mut client, "p", 0), pair("", again), "{sql}");
        sync(&mut client);
    }
    bind(&mut client, "explain analyze insert into t values (1)");
    assert_eq!(execute(&mut client, "p", 0).1, "EXPLAIN");
    assert_eq!(execute(&mut client, "p", 0), pair("", "EXPLAIN"));
    sync(&mut client);
    bind(&mut client, "execute i");
    assert_eq!(execute(&mut client, "p", 0), pair("", "INSERT 0 1"));
    let error = client.session.execute("p", 0, &mut Heard::default());
    assert_eq!(error.unwrap_err().message(), "portal \"p\" cannot be run");
    sync(&mut client);
    assert_eq!(client.ok("select a from t order by a"), "1\n9");
}

#[test]
fn rows_of_commands_and_of_changes_come_in_pieces() {
    let mut client = Client::new();
    client.ok(
        "create table t (a int); begin; declare c cursor for select g from generate_series(1, 5) g",
    );
    bind(&mut client, "fetch 4 c");
    assert_eq!(execute(&mut client, "p", 1), pair("1", "..."));
    assert_eq!(execute(&mut client, "p", 1), pair("2", "..."));
    assert_eq!(execute(&mut client, "p", 0), pair("3\n4", "FETCH 2"));
    assert_eq!(execute(&mut client, "p", 0), pair("", "FETCH 0"));
    sync(&mut client);
    client.session.close_portal("p");
    bind(
        &mut client,
        "insert into t values (9), (8), (7) returning a",
    );
    assert_eq!(execute(&mut client, "p", 1), pair("9", "..."));
    assert_eq!(execute(&mut client, "p", 1), pair("8", "..."));
    assert_eq!(execute(&mut client, "p", 0), pair("7", "INSERT 0 1"));
    assert_eq!(execute(&mut client, "p", 0), pair("", "INSERT 0 0"));
    client.session.close_portal("p");
    // What returns nothing counts all.
    bind(&mut client, "insert into t values (1), (2)");
    assert_eq!(execute(&mut client, "p", 1), pair("", "INSERT 0 2"));
    sync(&mut client);
    client.ok("commit");
    let lines = client.ok("explain (costs off) select 1 union select 2");
    bind(&mut client, "explain (costs off) select 1 union select 2");
    let (first, end) = execute(&mut client, "p", 1);
    assert_eq!((Some(&*first), &*end), (lines.lines().next(), "..."));
    let (rest, end) = execute(&mut client, "p", 0);
    assert_eq!((format!("{first}\n{rest}"), &*end), (lines, "EXPLAIN"));
    sync(&mut client);
}

#[test]
fn a_declared_cursor_is_executed_and_closed_as_a_portal() {
    let mut client = Client::new();
    client.ok("begin; declare c scroll cursor for select g as n from generate_series(1, 5) g");
    let (fields, formats) = client.session.describe_portal("c").unwrap().unwrap();
    assert_eq!((&*fields[0].name, formats.len()), ("n", 0));
    assert_eq!(execute(&mut client, "c", 2), pair("1\n2", "..."));
    assert_eq!(client.ok("fetch prior c"), "1");
    assert_eq!(execute(&mut client, "c", 3), pair("2\n3\n4", "..."));
    assert_eq!(execute(&mut client, "c", 3), pair("5", "SELECT 1"));
    assert_eq!(execute(&mut client, "c", 0), pair("", "SELECT 0"));
    // One name, whoever has given it.
    client.session.parse("", "select 1", &[]).unwrap();
    let taken = client.session.bind("c", "", Parameters::default(), &[]);
    assert_eq!(taken.unwrap_err().sqlstate().as_str(), "42P03");
    client.ok("rollback");
    client.ok("begin; declare c cursor for select 1");
    client.session.close_portal("c");
    let gone = client.session.execute("c", 0, &mut Heard::default());
    assert_eq!(gone.unwrap_err().sqlstate().as_str(), "34000");
    client.ok("rollback");
}

#[test]
fn portals_are_fetched_and_shown_among_the_cursors() {
    let mut client = Client::new();
    client.ok("create table t (a int); begin; declare c cursor for select 1");
    for (portal, sql) in [
        ("q", "select g from generate_series(1, 5) g"),
        ("s", "show work_mem"),
        ("i", "insert into t values (3), (4) returning a"),
        ("n", "insert into t values (5)"),
    ] {
        client.session.parse("", sql, &[]).unwrap();
        client
            .session
            .bind(portal, "", Parameters::default(), &[])
            .unwrap();
    }
    let shown = "select name, is_holdable, is_binary from pg_cursors order by name";
    assert_eq!(client.ok(shown), "c|f|f\ni|f|f\nn|f|f\nq|f|f\ns|f|f");
    // That of the statement itself is among them.
    bind(
        &mut client,
        "select name, statement from pg_cursors where name in ('p', 'q') order by 1",
    );
    let (rows, _) = execute(&mut client, "p", 0);
    assert!(
        rows.starts_with("p|select name, statement from pg_cursors"),
        "{rows}"
    );
    assert!(
        rows.ends_with("\nq|select g from generate_series(1, 5) g"),
        "{rows}"
    );
    assert_eq!(execute(&mut client, "q", 1), pair("1", "..."));
    assert_eq!(client.ok("fetch 2 q"), "2\n3");
    assert_eq!(client.ok("fetch s"), client.ok("show work_mem"));
    assert_eq!(client.ok("fetch i"), "3");
    assert_eq!(client.ok("fetch all i"), "4");
    // Through a portal itself.
    client.session.close_portal("p");
    bind(&mut client, "fetch all q");
    assert_eq!(execute(&mut client, "p", 0), pair("4\n5", "FETCH 2"));
    assert_eq!(client.state("fetch n"), "0A000");
    client.ok("rollback");
}

/// Binds a statement to a portal, its results in these formats.
fn bind_in(client: &mut Client, portal: &str, sql: &str, formats: &[Format]) {
    let session = &mut client.session;
    session.parse("", sql, &[]).unwrap();
    session
        .bind(portal, "", Parameters::default(), formats)
        .unwrap();
}

/// What PostgreSQL 15 sends: a text of the simple protocol gets a binary cursor's rows in binary, and a portal's in text; who binds a FETCH, or executes a
/// cursor, gets what was bound, whatever the cursor or the portal says of itself.
#[test]
fn rows_are_told_in_the_formats_of_who_fetches() {
    const TEXT: [&str; 2] = ["323538", "6162"];
    const BINARY: [&str; 2] = ["00000102", "6162"];
    let hex = |heard: &Heard| -> Vec<String> {
        let bytes = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let columns = heard.rows.iter().flatten();
        columns
            .flat_map(|column| column.as_ref().map(bytes))
            .collect()
    };
    let query = "select 258, 'ab' from generate_series(1, 20)";
    let mut client = Client::new();
    client.ok(&format!(
        "begin; declare b binary cursor for {query}; declare t cursor for {query}"
    ));
    bind_in(&mut client, "pb", query, &[Format::Binary]);
    bind_in(&mut client, "pt", query, &[]);
    // Begun in the formats that it was bound in, and fetched in others.
    for portal in ["pb", "pt"] {
        let mut heard = Heard::default();
        client.session.execute(portal, 1, &mut heard).unwrap();
        let own = if portal == "pb" { BINARY } else { TEXT };
        assert_eq!(hex(&heard), own, "{portal}");
    }
    for name in ["b", "t", "pb", "pt"] {
        let heard = client.hear(&format!("fetch {name}"));
        let (own, format) = match name {
            "b" => (BINARY, Format::Binary),
            _ => (TEXT, Format::Text),
        };
        assert_eq!(hex(&heard), own, "{name}");
        let all = |format| heard.formats.iter().all(|own| *own == format);
        assert!(all(format), "{name}: {:?}", heard.formats);
        for (formats, told) in [
            (&[][..], TEXT),
            (&[Format::Text][..], TEXT),
            (&[Format::Binary][..], BINARY),
            (&[Format::Binary, Format::Text][..], BINARY),
            (&[Format::Text, Format::Binary][..], TEXT),
        ] {
            bind_in(&mut client, "", &format!("fetch {name}"), formats);
            let described = client.session.describe_portal("").unwrap().unwrap();
            assert_eq!(&*described.1, formats, "{name}");
            let mut heard = Heard::default();
            client.session.execute("", 0, &mut heard).unwrap();
            assert_eq!(hex(&heard), told, "{name} {formats:?}");
            assert_eq!(heard.tags, ["FETCH 1"]);
        }
    }
    for (cursor, told) in [("b", TEXT), ("t", TEXT), ("pb", BINARY), ("pt", TEXT)] {
        let mut heard = Heard::default();
        client.session.execute(cursor, 1, &mut heard).unwrap();
        assert_eq!(hex(&heard), told, "{cursor}");
    }
    // Of commands, and of changes that return rows.
    client.ok("create table m (a int)");
    bind_in(&mut client, "s", "show work_mem", &[Format::Binary]);
    let insert = "insert into m values (258), (259) returning a";
    bind_in(&mut client, "i", insert, &[Format::Binary]);
    assert_eq!(client.ok("fetch s"), client.ok("show work_mem"));
    assert_eq!(client.ok("fetch i"), "258");
    bind_in(&mut client, "", "fetch i", &[Format::Binary]);
    let mut heard = Heard::default();
    client.session.execute("", 0, &mut heard).unwrap();
    assert_eq!(hex(&heard), ["00000103"]);
    client.ok("rollback");
}

/// A portal of FETCH of itself, or of one that leads back to it, was asked for its columns until the stack ended, and with it the server.
#[test]
fn portals_that_fetch_each_other_are_refused() {
    let refused = |client: &mut Client, portal: &str| {
        let error = client.session.describe_portal(portal).unwrap_err();
        assert_eq!(error.sqlstate().to_string(), "0A000", "{error:?}");
        sync(client);
    };
    let mut client = Client::new();
    bind(&mut client, "fetch p");
    refused(&mut client, "p");
    let session = &mut client.session;
    for (portal, text) in [("p", "fetch q"), ("q", "fetch p")] {
        session.parse("", text, &[]).unwrap();
        session
            .bind(portal, "", Parameters::default(), &[])
            .unwrap();
    }
    refused(&mut client, "p");
    let session = &mut client.session;
    session.parse("s", "fetch p", &[]).unwrap();
    session.parse("", "execute s", &[]).unwrap();
    session.bind("p", "", Parameters::default(), &[]).unwrap();
    refused(&mut client, "p");
    bind(&mut client, "fetch p");
    let error = client.session.execute("p", 0, &mut Heard::default());
    assert_eq!(error.unwrap_err().sqlstate().to_string(), "34000");
    sync(&mut client);
    assert_eq!(client.ok("select 1"), "1");
}

#[test]
fn what_was_said_to_listen_to_stays_said_when_the_transaction_becomes_another() {
    let mut client = Client::new();
    client.ok("begin; listen c; set transaction isolation level repeatable read; commit");
    assert_eq!(client.ok("select pg_listening_channels()"), "c");
    client.ok("begin; unlisten c; begin read only; commit");
    assert_eq!(client.ok("select pg_listening_channels()"), "");
}

/// PostgreSQL's answers: what was made before a savepoint goes on behind ROLLBACK TO, whether the block has failed or not; what was made behind it is gone, and what has failed is not run again.
#[test]
fn portals_and_cursors_go_on_behind_a_return_to_a_savepoint() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key); insert into t select generate_series(1, 6); create table u (id int primary key)");
    let run = |client: &mut Client, step: &str| -> String {
        let mut heard = Heard::default();
        let done = match step.strip_prefix("execute ") {
            Some(rows) => client
                .session
                .execute("p", rows.parse().unwrap(), &mut heard),
            None => client.session.simple_query(step, &mut heard),
        };
        match done {
            Ok(_) => heard.text(),
            Err(error) => error.sqlstate().to_string(),
        }
    };
    let queries = [
        "select id from t order by id",
        "select id from t group by id order by id",
        "select t.id from t full join u on t.id = u.id order by 1",
    ];
    let failing = "select 10 / (id - 3) from t order by id";
    let cases: [(&[&str], &[(&str, &str)]); 6] = [
        (
            &["bind", "execute 1", "savepoint s"],
            &[
                ("select 1 / 0", "22012"),
                ("execute 1", "25P02"),
                ("rollback to s", ""),
                ("execute 1", "2"),
                ("fetch 1 p", "3"),
            ],
        ),
        (
            &[
                "bind",
                "savepoint s",
                "insert into u values (7)",
                "execute 1",
            ],
            &[
                ("select 1 / 0", "22012"),
                ("rollback to s", ""),
                ("execute 1", "2"),
                ("fetch 1 p", "3"),
            ],
        ),
        (
            &["bind", "savepoint s", "execute 1"],
            &[("rollback to s", ""), ("execute 1", "2")],
        ),
        (
            &["savepoint s", "bind", "execute 1"],
            &[
                ("select 1 / 0", "22012"),
                ("execute 1", "25P02"),
                ("rollback to s", ""),
                ("execute 1", "34000"),
            ],
        ),
        (
            &[
                "savepoint r",
                "savepoint s",
                "bind",
                "execute 1",
                "release s",
                "execute 1",
            ],
            &[("rollback to r", ""), ("execute 1", "34000")],
        ),
        (
            &["declare", "fetch p", "savepoint s"],
            &[
                ("select 1 / 0", "22012"),
                ("fetch p", "25P02"),
                ("rollback to s", ""),
                ("fetch p", "2"),
            ],
        ),
    ];
    let begin = |client: &mut Client, level: &str, query: &str, steps: &[&str]| {
        client.ok(&format!("begin isolation level {level}"));
        for step in steps {
            match *step {
                "bind" => bind(client, query),
                "declare" => drop(client.ok(&format!("declare p cursor for {query}"))),
                step => drop(run(client, step)),
            }
        }
    };
    for level in ["read committed", "repeatable read"] {
        for query in queries {
            for (steps, expected) in cases {
                begin(&mut client, level, query, steps);
                for (step, answer) in expected {
                    assert_eq!(
                        run(&mut client, step),
                        *answer,
                        "{steps:?} {step}: {query}, {level}"
                    );
                }
                client.ok("rollback");
            }
        }
        for (made, step) in [
            ("bind", "execute 1"),
            ("bind", "fetch p"),
            ("declare", "fetch p"),
        ] {
            begin(
                &mut client,
                level,
                failing,
                &[made, "fetch 2 p", "savepoint s"],
            );
            assert_eq!(run(&mut client, step), "22012");
            for again in [step, "fetch p", "move p"] {
                client.ok("rollback to s");
                assert_eq!(run(&mut client, again), "55000", "{made}, {step}, {again}");
            }
            client.ok("rollback to s");
            assert_eq!(client.ok("select name from pg_cursors"), "p");
            client.ok("close p; rollback");
        }
    }
}
