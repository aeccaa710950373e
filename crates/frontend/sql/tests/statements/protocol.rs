//! The extended protocol.

use super::client::{Client, Heard};
use vellum_sql::{Format, Parameters, Progress, SessionOptions, SqlError, TransactionStatus};

fn bind(client: &mut Client, statement: &str, values: &[Option<&[u8]>], formats: &[Format]) {
    let parameters = Parameters { formats, values };
    client
        .session
        .bind("", statement, parameters, formats)
        .unwrap();
}

#[test]
fn parameters_get_the_types_that_they_meet() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s varchar(10), n numeric, d timestamptz)");
    let session = &mut client.session;
    for (sql, types) in [
        (
            "select * from t where id = $1 and s like $2",
            &[23u32, 25][..],
        ),
        (
            "insert into t values ($1, $2, $3, $4)",
            &[23, 1043, 1700, 1184],
        ),
        (
            "update t set n = n + $1 where id in ($2, $3)",
            &[1700, 23, 23],
        ),
        ("select $1::int8, $2::text || 'x'", &[20, 25]),
        ("select 1 from t limit $1", &[20]),
    ] {
        session.parse("", sql, &[]).unwrap();
        assert_eq!(
            &*session.describe_statement("").unwrap().parameters,
            types,
            "{sql}"
        );
    }
    let fields = session.describe_statement("").unwrap().fields.unwrap();
    assert_eq!(
        (fields[0].name.as_str(), fields[0].type_oid),
        ("?column?", 23)
    );
    session
        .parse("x", "insert into t values ($1)", &[0])
        .unwrap();
    assert!(session.describe_statement("x").unwrap().fields.is_none());
    assert_eq!(
        session
            .parse("x", "select 1", &[])
            .unwrap_err()
            .sqlstate()
            .as_str(),
        "42P05"
    );
    session.sync().unwrap();
}

#[test]
fn binary_parameters_come_back_in_binary() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s text)");
    let formats = [Format::Binary];
    client
        .session
        .parse("i", "insert into t values ($1, $2) returning id, s", &[20])
        .unwrap();
    let mut heard = Heard::default();
    for id in 1i64..4 {
        bind(
            &mut client,
            "i",
            &[Some(&id.to_be_bytes()), Some(b"hi")],
            &formats,
        );
        assert_eq!(
            client.session.execute("", 0, &mut heard).unwrap(),
            Progress::Complete
        );
    }
    client.session.sync().unwrap();
    assert_eq!(heard.rows.len(), 3);
    assert_eq!(heard.rows[2][0].as_deref(), Some(&3i32.to_be_bytes()[..]));
    assert_eq!(heard.tags, ["INSERT 0 1"; 3]);
    // The key of four bytes is found by a parameter of eight.
    client
        .session
        .parse("s", "select s from t where id = $1", &[20])
        .unwrap();
    bind(&mut client, "s", &[Some(&2i64.to_be_bytes())], &formats);
    let mut heard = Heard::default();
    client.session.execute("", 0, &mut heard).unwrap();
    assert_eq!(heard.text(), "hi");
    client.session.sync().unwrap();
    // A byte that is not there is one all the same.
    let sql = "select ''::\"char\", 'a'::\"char\", $1::\"char\" = ''";
    client.session.parse("c", sql, &[]).unwrap();
    bind(&mut client, "c", &[Some(&[0])], &formats);
    let mut heard = Heard::default();
    client.session.execute("", 0, &mut heard).unwrap();
    let row: Vec<_> = heard.rows[0].iter().map(|value| value.as_deref()).collect();
    assert_eq!(row, [Some(&[0][..]), Some(b"a"), Some(&[1])]);
    client.session.sync().unwrap();
    assert_eq!(client.session.status(), TransactionStatus::Idle);
}

#[test]
fn a_portal_may_find_more_rows_than_memory_holds() {
    let directory = tempfile::tempdir().unwrap();
    let database = super::client::database();
    database.set_spill_directory(directory.path().join("spill"));
    let mut client = Client::of(&database);
    client.ok("set work_mem = '1MB'");
    let session = &mut client.session;
    let text = "select g, repeat('x', 1000) || g from generate_series(1, 8000) g";
    session.parse("", text, &[]).unwrap();
    session.bind("p", "", Parameters::default(), &[]).unwrap();
    let mut rows = 0;
    loop {
        let mut heard = Heard::default();
        let progress = session.execute("p", 999, &mut heard).unwrap();
        for line in heard.text().lines() {
            rows += 1;
            assert_eq!(line, format!("{rows}|{}{rows}", "x".repeat(1000)));
        }
        if progress == Progress::Complete {
            assert_eq!(heard.tags, ["SELECT 8"]);
            break;
        }
    }
    assert_eq!(rows, 8_000);
    session.sync().unwrap();
}

#[test]
fn a_portal_tells_its_rows_before_what_it_fails_with() {
    let mut client = Client::new();
    let session = &mut client.session;
    let text = "select 10 / (3 - g) from generate_series(1, 5) g";
    session.parse("", text, &[]).unwrap();
    session.bind("p", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    for _ in 0..2 {
        let progress = session.execute("p", 1, &mut heard).unwrap();
        assert_eq!(progress, Progress::Suspended);
    }
    let error = session.execute("p", 1, &mut heard).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "22012");
    assert_eq!(heard.text(), "5\n10");
    session.sync().unwrap();
    // All at once.
    session.bind("p", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    let error = session.execute("p", 100, &mut heard).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "22012");
    assert_eq!(heard.text(), "5\n10");
    session.sync().unwrap();
}

#[test]
fn a_portal_is_fetched_in_pieces() {
    let mut client = Client::new();
    let session = &mut client.session;
    session
        .parse("", "select g from generate_series(1, 5) g", &[])
        .unwrap();
    session.bind("p", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    assert_eq!(
        session.execute("p", 2, &mut heard).unwrap(),
        Progress::Suspended
    );
    assert_eq!(
        session.execute("p", 2, &mut heard).unwrap(),
        Progress::Suspended
    );
    assert_eq!(
        session.execute("p", 2, &mut heard).unwrap(),
        Progress::Complete
    );
    assert_eq!(heard.text(), "1\n2\n3\n4\n5");
    assert_eq!(heard.tags, ["SELECT 1"]);
    session.sync().unwrap();
    let gone = session.execute("p", 0, &mut heard).unwrap_err();
    assert_eq!(
        gone.sqlstate().as_str(),
        "34000",
        "portals end with their transaction"
    );
    session.sync().unwrap();
}

#[test]
fn an_error_before_sync_takes_all_back() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key)");
    let mut heard = Heard::default();
    let session = &mut client.session;
    session
        .parse("i", "insert into t values ($1)", &[])
        .unwrap();
    let one: [Option<&[u8]>; 1] = [Some(b"1")];
    let parameters = Parameters {
        formats: &[],
        values: &one,
    };
    session.bind("", "i", parameters, &[]).unwrap();
    session.execute("", 0, &mut heard).unwrap();
    session.bind("", "i", parameters, &[]).unwrap();
    assert_eq!(
        session
            .execute("", 0, &mut heard)
            .unwrap_err()
            .sqlstate()
            .as_str(),
        "23505"
    );
    session.sync().unwrap();
    assert_eq!(client.ok("select count(*) from t"), "0");
}

#[test]
fn a_prepared_statement_survives_ddl() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, n int); insert into t values (1, 7)");
    client
        .session
        .parse("s", "select n from t where id = $1", &[])
        .unwrap();
    client.session.sync().unwrap();
    for ddl in [
        "create index on t (n)",
        "alter table t add column x int",
        "drop index t_n_idx",
    ] {
        client.ok(ddl);
        let mut heard = Heard::default();
        bind(&mut client, "s", &[Some(b"1")], &[]);
        client.session.execute("", 0, &mut heard).unwrap();
        client.session.sync().unwrap();
        assert_eq!(heard.text(), "7", "{ddl}");
    }
    // Drivers prepare it anew when they read where the error comes from.
    client.ok("alter table t alter column n type text");
    let mut told = Heard::default();
    let parameters = Parameters {
        formats: &[],
        values: &[Some(b"1")],
    };
    let bound = client.session.bind("", "s", parameters, &[]);
    let error = bound.and_then(|()| client.session.execute("", 0, &mut told).map(drop));
    let error = error.unwrap_err();
    let known = (error.sqlstate().to_string(), error.fields().routine);
    assert_eq!(known, ("0A000".to_owned(), Some("RevalidateCachedQuery")));
    client.session.sync().unwrap();
}

#[test]
fn a_cancel_ends_a_long_statement() {
    let mut client = Client::new();
    let handle = client.session.cancel_handle();
    let stopper = std::thread::spawn(move || {
        // Asked again until it is heard: a cancel before the statement is forgotten.
        for _ in 0..100_000 {
            handle.cancel();
            std::thread::yield_now();
        }
    });
    let sql = "select count(*) from generate_series(1, 1000000000) g";
    assert_eq!(client.state(sql), "57014");
    stopper.join().unwrap();
    assert_eq!(client.ok("select 1"), "1");
}

#[test]
fn a_reset_goes_back_to_what_the_session_was_begun_with_and_is_undone() {
    let mut client = Client::with(SessionOptions {
        settings: vec![("work_mem".to_owned(), "4242kB".to_owned())],
        ..SessionOptions::default()
    });
    let begun_with = client.ok("show work_mem");
    let default = client.ok("show statement_timeout");
    let seen = |client: &mut Client| {
        let names = ["work_mem", "statement_timeout", "own.word", "role"];
        names.map(|name| client.ok(&format!("show {name}")))
    };
    let change = "set work_mem = '9MB'; set statement_timeout = '9min'; set own.word = 'said'";
    client.ok(&format!("create role r; {change}; set role r"));
    let changed = seen(&mut client);
    client.ok("begin; reset all");
    let reset = [&begun_with, &default, "", "r"].map(str::to_owned);
    assert_eq!(seen(&mut client), reset);
    client.ok("rollback");
    assert_eq!(seen(&mut client), changed);
    client.ok("begin; savepoint s; reset all; rollback to s");
    assert_eq!(seen(&mut client), changed);
    client.ok("commit; reset work_mem");
    assert_eq!(client.ok("show work_mem"), begun_with);
    client.ok("begin; reset all; commit");
    assert_eq!(seen(&mut client), reset);
    client.ok(change);
    client.ok("discard all");
    assert_eq!(client.ok("show work_mem"), begun_with);
    assert_eq!(client.ok("show statement_timeout"), default);
    assert_eq!(client.ok("show role"), "none");
}

#[test]
fn settings_are_shown_reported_and_reset() {
    let mut client = Client::new();
    let heard = client.hear("set application_name = 'x'; set timezone to 'Europe/Berlin'");
    assert_eq!(
        heard.statuses[0],
        ("application_name".to_owned(), "x".to_owned())
    );
    assert_eq!(client.ok("show timezone"), "Europe/Berlin");
    client.ok("begin; set local timezone = 'UTC'; commit");
    assert_eq!(client.ok("show timezone"), "Europe/Berlin");
    assert_eq!(client.state("set nix = 1"), "42704");
    assert_eq!(client.state("set timezone = 'Nowhere/There'"), "22023");
    client.ok("reset timezone");
    assert_eq!(client.ok("select current_setting('timezone')"), "UTC");
    assert_eq!(
        client.ok("show transaction isolation level"),
        "read committed"
    );
    let shown = "begin isolation level read uncommitted; show transaction_isolation; commit";
    assert_eq!(client.ok(shown), "read uncommitted");
    client.ok("set session characteristics as transaction isolation level read uncommitted");
    let of_session = "select current_setting('transaction_isolation'), current_setting('default_transaction_isolation')";
    assert_eq!(client.ok(of_session), "read uncommitted|read uncommitted");
    client.ok("reset default_transaction_isolation");
    client.ok("prepare p (int) as select $1 + 1; ");
    assert_eq!(client.ok("execute p (41)"), "42");
    client.ok("deallocate p");
    assert_eq!(client.state("execute p (1)"), "26000");
}

/// Symptom: the second Execute of a portal that has inserted answered `INSERT 0 0`. Guard: what has written cannot be run again; what has rows has no more.
#[test]
fn regress_a_portal_that_has_written_is_not_run_again() {
    let mut client = Client::new();
    client.ok("create table t (id int)");
    let session = &mut client.session;
    session.parse("", "insert into t values (1)", &[]).unwrap();
    session.bind("", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    session.execute("", 0, &mut heard).unwrap();
    let error = session.execute("", 0, &mut heard).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "55000");
    assert_eq!(error.message(), "portal \"\" cannot be run");
    session.sync().unwrap();
    assert_eq!(client.ok("select count(*) from t"), "0");
    let session = &mut client.session;
    let text = "insert into t values (2) returning id";
    session.parse("", text, &[]).unwrap();
    session.bind("", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    session.execute("", 0, &mut heard).unwrap();
    session.execute("", 0, &mut heard).unwrap();
    session.sync().unwrap();
    assert_eq!(heard.rows.len(), 1);
    assert_eq!(client.ok("select * from t"), "2");
}

#[test]
fn declare_and_explain_take_parameters() {
    let mut client = Client::new();
    client.ok(
        "create table t (id int primary key); insert into t select g from generate_series(1, 9) g",
    );
    client.ok("begin");
    let declare = "declare c cursor for select id from t where id < $1 order by id";
    client.session.parse("", declare, &[]).unwrap();
    let described = client.session.describe_statement("").unwrap();
    assert_eq!(*described.parameters, [23]);
    assert!(described.fields.is_none());
    let formats = [Format::Text];
    bind(&mut client, "", &[Some(b"3")], &formats);
    let mut heard = Heard::default();
    client.session.execute("", 0, &mut heard).unwrap();
    assert_eq!(heard.tags, ["DECLARE CURSOR"]);
    assert_eq!(client.ok("fetch all from c"), "1\n2");
    client.ok("commit");
    // Of a query that a program runs, and of one that none does.
    for query in [
        "select id from t where id = $1",
        "select count(*) from t group by id % $1",
    ] {
        let text = format!("explain analyze {query}");
        client.session.parse("", &text, &[]).unwrap();
        let described = client.session.describe_statement("").unwrap();
        assert_eq!((*described.parameters).len(), 1, "{query}");
        assert_eq!(described.fields.unwrap().len(), 1, "{query}");
        bind(&mut client, "", &[Some(b"3")], &formats);
        let mut heard = Heard::default();
        client.session.execute("", 0, &mut heard).unwrap();
        let rows = if query.contains("group") { 3 } else { 1 };
        assert!(
            heard.text().contains(&format!("Result: SELECT {rows}")),
            "{query}: {}",
            heard.text()
        );
    }
    // A statement that has none is not given any.
    client.session.parse("", "show work_mem", &[]).unwrap();
    let values: &[Option<&[u8]>] = &[Some(b"3")];
    let parameters = Parameters {
        formats: &formats,
        values,
    };
    let error = client.session.bind("", "", parameters, &[]).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "08P01");
    client.session.sync().unwrap();
    // By the simple protocol there is nothing to take.
    assert_eq!(client.state("explain select $1::int"), "42P02");
    assert_eq!(
        client.state("begin; declare c cursor for select $1::int"),
        "42P02"
    );
}

#[test]
fn a_statement_that_executes_itself_is_refused() {
    let mut client = Client::new();
    for sql in ["prepare p as execute p", "prepare p as show work_mem"] {
        assert_eq!(client.state(sql), "42601", "{sql}");
    }
    let session = &mut client.session;
    session.parse("s", "execute s", &[]).unwrap();
    assert_eq!(
        session
            .describe_statement("s")
            .unwrap_err()
            .sqlstate()
            .as_str(),
        "0A000"
    );
    session.sync().unwrap();
    assert_eq!(client.state("execute s"), "0A000");
}

#[test]
fn execute_is_described_by_the_rows_of_what_it_runs() {
    let mut client = Client::new();
    client.ok("create table t (a int, b text); insert into t values (1, 'x')");
    client.ok("prepare pp (int) as select a, b as c from t where a = $1");
    client.ok("prepare w as insert into t values (2, 'y'); prepare r as insert into t values (3, 'z') returning a");
    client.session.parse("x", "show work_mem", &[]).unwrap();
    client.session.sync().unwrap();
    for (sql, names) in [
        ("execute pp (1)", Some(vec!["a", "c"])),
        ("execute w", None),
        ("execute r", Some(vec!["a"])),
        ("execute x", Some(vec!["work_mem"])),
    ] {
        let session = &mut client.session;
        session.parse("", sql, &[]).unwrap();
        session
            .bind("", "", vellum_sql::Parameters::default(), &[])
            .unwrap();
        let of_statement = session.describe_statement("").unwrap().fields;
        let of_portal = session.describe_portal("").unwrap();
        let shown = |fields: &[vellum_sql::Field]| -> Vec<String> {
            fields.iter().map(|field| field.name.clone()).collect()
        };
        let names = names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of_statement.map(|fields| shown(&fields)), names, "{sql}");
        assert_eq!(of_portal.map(|(fields, _)| shown(&fields)), names, "{sql}");
        session.sync().unwrap();
    }
    let session = &mut client.session;
    session.parse("", "execute nowhere", &[]).unwrap();
    let error = session.describe_statement("").unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "26000");
}

#[test]
fn a_client_names_the_encoding_of_its_texts() {
    let mut client = Client::new();
    for (name, told) in [
        ("sql_ascii", "SQL_ASCII"),
        ("utf-8", "UTF8"),
        ("SQLASCII", "SQL_ASCII"),
        ("unicode", "UTF8"),
    ] {
        let heard = client.hear(&format!("set client_encoding = '{name}'"));
        let status = ("client_encoding".to_owned(), told.to_owned());
        assert_eq!(heard.statuses, [status], "{name}");
        assert_eq!(client.ok("show client_encoding"), told);
        assert_eq!(
            client.ok("select pg_client_encoding(), getdatabaseencoding()"),
            format!("{told}|UTF8")
        );
        assert_eq!(client.ok("select 'ä'"), "ä", "nothing is converted");
    }
    for name in ["bogus", ""] {
        let message = format!("invalid value for parameter \"client_encoding\": \"{name}\"");
        let refused = ("22023".to_owned(), message);
        assert_eq!(client.fails(&format!("set names '{name}'")), refused);
    }
    assert_eq!(client.state("set names 'latin1'"), "0A000");
    let begun = Client::with(SessionOptions {
        settings: vec![("client_encoding".to_owned(), "SQL_ASCII".to_owned())],
        ..SessionOptions::default()
    });
    let told = begun.session.parameter_statuses();
    assert!(told.contains(&("client_encoding", "SQL_ASCII".to_owned())));
}

/// Parse, Bind, Execute with one parameter of a declared type, as text; the rows as text, or the error.
fn with_parameter(
    client: &mut Client,
    sql: &str,
    oid: u32,
    value: &str,
) -> Result<String, SqlError> {
    let mut heard = Heard::default();
    let session = &mut client.session;
    let values = [Some(value.as_bytes())];
    let parameters = Parameters {
        formats: &[],
        values: &values,
    };
    session.parse("", sql, &[oid])?;
    session.bind("", "", parameters, &[])?;
    session.execute("", 0, &mut heard)?;
    Ok(heard.text())
}

#[test]
fn create_table_as_takes_parameters() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, n numeric(6,2)); insert into t select g, g / 2.0 from generate_series(1, 9) g");
    for (number, sql) in [
        "create table made_1 as select id, n from t where id > $1 order by id",
        "create temp table made_2 (a, b) as select id, n from t where id > $1",
        "select id, n into made_3 from t where id > $1",
        "create table made_4 as with w as (select * from t where id > $1) select id, n from w",
        "create table made_5 as with w as (delete from t where id > $1 returning *) select id, n from w",
    ]
    .into_iter()
    .enumerate()
    {
        client.session.parse("", sql, &[]).unwrap();
        let described = client.session.describe_statement("").unwrap();
        assert_eq!(*described.parameters, [23], "{sql}");
        assert!(described.fields.is_none(), "{sql}");
        bind(&mut client, "", &[Some(b"7")], &[]);
        let mut heard = Heard::default();
        client.session.execute("", 0, &mut heard).unwrap();
        client.session.sync().unwrap();
        assert_eq!(heard.tags, ["SELECT 2"], "{sql}");
        let made = format!("select * from made_{} order by 1", number + 1);
        assert_eq!(client.ok(&made), "8|4.00\n9|4.50", "{sql}");
    }
    // One whose type nobody says is a text; a value alone is one, too.
    let made = "create table made_6 as select $1 as v, 1 as one";
    assert!(with_parameter(&mut client, made, 0, "x").is_ok());
    client.session.sync().unwrap();
    assert_eq!(client.ok("select v, pg_typeof(v) from made_6"), "x|text");
    assert_eq!(
        client.state("create table made_7 as select $1::int"),
        "42P02"
    );
}

#[test]
fn parameters_may_be_names_of_what_has_an_oid() {
    let mut client = Client::new();
    client.ok("create table t (id int); create schema s; create table s.\"T\" ()");
    for (oid, value, shown) in [
        (2205, "t", "t"),
        (2205, "s.\"T\"", "s.\"T\""),
        (2205, "pg_catalog.pg_class", "pg_class"),
        (2205, "1259", "pg_class"),
        (2205, "-", "-"),
        (2206, "int4", "integer"),
        (24, "now", "now"),
        (4089, "public", "public"),
        (4096, "vellum", "vellum"),
        (2210, "{t,NULL,pg_class}", "{t,NULL,pg_class}"),
    ] {
        let told = with_parameter(&mut client, "select $1", oid, value);
        assert_eq!(told.unwrap(), shown, "{oid} {value}");
    }
    for (oid, value, state) in [
        (2205, "nosuch", "42P01"),
        (2205, "a b", "42602"),
        (2206, "nosuch", "42704"),
        (4089, "nosuch", "3F000"),
        (2210, "{nosuch}", "42P01"),
    ] {
        let error = with_parameter(&mut client, "select $1", oid, value).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), state, "{oid} {value}");
    }
    for (sql, oid) in [
        ("select $1::regclass", 2205u32),
        ("select cast($1 as regtype)", 2206),
        ("select 1 from pg_class where oid = $1::regclass", 2205),
        ("select $1::oid::regclass", 26),
        ("select $1::text::regclass", 25),
    ] {
        client.session.parse("", sql, &[]).unwrap();
        let told = client.session.describe_statement("").unwrap();
        assert_eq!(&*told.parameters, [oid], "{sql}");
    }
    let found = with_parameter(
        &mut client,
        "select relname from pg_class where oid = $1::regclass",
        0,
        "t",
    );
    assert_eq!(found.unwrap(), "t");
    client.session.sync().unwrap();
    client.ok("prepare p (regclass) as select $1::text");
    assert_eq!(client.ok("execute p('t')"), "t");
}

#[test]
fn declared_types_have_to_be_types() {
    let mut client = Client::new();
    client.ok("create domain d as int4 check (value > 0); create type mood as enum ('ok')");
    for (oid, state, message) in [
        (99_999, "42704", "type with OID 99999 does not exist"),
        (600, "0A000", "the type point is not supported"),
        (1017, "0A000", "the type point[] is not supported"),
        (2276, "0A000", "cannot accept a value of type any"),
    ] {
        let error = client.session.parse("", "select $1", &[oid]).unwrap_err();
        assert_eq!(
            (error.sqlstate().as_str(), error.message()),
            (state, message)
        );
    }
    for (oid, told) in [(0, 25), (705, 25), (20, 20)] {
        client.session.parse("", "select $1", &[oid]).unwrap();
        let parameters = client.session.describe_statement("").unwrap().parameters;
        assert_eq!(&*parameters, [told]);
    }
    client.session.sync().unwrap();
    let oid = |client: &mut Client, name: &str| {
        let sql = format!("select oid from pg_type where typname = '{name}'");
        client.ok(&sql).parse::<u32>().unwrap()
    };
    for (name, value) in [("d", "5"), ("mood", "ok")] {
        let oid = oid(&mut client, name);
        assert_eq!(
            with_parameter(&mut client, "select $1", oid, value).unwrap(),
            value
        );
    }
}

#[test]
fn a_wrong_parameter_says_which_one_it_is() {
    let mut client = Client::new();
    let session = &mut client.session;
    session.parse("s", "select $1, $2", &[23, 23]).unwrap();
    session.sync().unwrap();
    for (portal, value, format, state, message, context) in [
        (
            "",
            &b"x"[..],
            Format::Text,
            "22P02",
            "invalid input syntax for type integer: \"x\"",
            "unnamed portal parameter $2 = '...'",
        ),
        (
            "p",
            b"x",
            Format::Text,
            "22P02",
            "invalid input syntax for type integer: \"x\"",
            "portal \"p\" parameter $2 = '...'",
        ),
        (
            "",
            b"\xff",
            Format::Text,
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0xff",
            "unnamed portal parameter $2",
        ),
        (
            "",
            &[0; 8],
            Format::Binary,
            "22P03",
            "incorrect binary data format in bind parameter 2",
            "unnamed portal parameter $2",
        ),
        (
            "",
            &[0; 2],
            Format::Binary,
            "08P01",
            "insufficient data left in message",
            "unnamed portal parameter $2",
        ),
    ] {
        let values = [None, Some(value)];
        let parameters = Parameters {
            formats: &[format],
            values: &values,
        };
        let error = session.bind(portal, "s", parameters, &[]).unwrap_err();
        assert_eq!(
            (error.sqlstate().as_str(), error.message()),
            (state, message)
        );
        assert_eq!(error.fields().context.as_deref(), Some(context));
        session.sync().unwrap();
    }
}

/// Parse, Bind and Execute of a pipeline, with the data that a COPY asks for.
fn piped(client: &mut Client, sql: &str) -> Result<Progress, SqlError> {
    let mut heard = Heard::default();
    let session = &mut client.session;
    let parameters = Parameters {
        formats: &[],
        values: &[],
    };
    session.parse("", sql, &[])?;
    session.bind("", "", parameters, &[])?;
    match session.execute("", 0, &mut heard)? {
        Progress::CopyIn => {
            session.copy_data(b"1\ta\n")?;
            session.copy_done(&mut heard)
        }
        done => Ok(done),
    }
}

/// Symptom: what a pipeline did up to a COPY was committed, whatever came behind. Cause: the end of the data ended the transaction, as it does for a text.
#[test]
fn regress_a_copy_in_a_pipeline_is_of_its_transaction() {
    let mut client = Client::new();
    client.ok("create table k (a int primary key); create table c (a int, b text)");
    for (last, rows) in [("select 1 / 0", "0|0"), ("select 1", "1|1")] {
        piped(&mut client, "insert into k values (1)").unwrap();
        piped(&mut client, "copy c from stdin").unwrap();
        let fails = piped(&mut client, last).is_err();
        client.session.sync().unwrap();
        let counted = client.ok("select (select count(*) from k), (select count(*) from c)");
        assert_eq!((fails, counted.as_str()), (rows == "0|0", rows));
    }
}

#[test]
fn a_portal_of_a_command_is_run_once() {
    let mut client = Client::new();
    client.ok("create table k (a int)");
    let mut twice = |sql: &str| {
        piped(&mut client, sql).unwrap();
        let again = client.session.execute("", 0, &mut Heard::default());
        client.session.sync().unwrap();
        again.map_err(|error| (error.sqlstate().to_string(), error.message().to_owned()))
    };
    assert!(twice("show work_mem").is_ok());
    let refused = ("55000".to_owned(), "portal \"\" cannot be run".to_owned());
    for sql in [
        "copy (insert into k values (1) returning a) to stdout",
        "create table l (a int)",
    ] {
        assert_eq!(twice(sql).unwrap_err(), refused, "{sql}");
    }
    // The first time is undone, too: one pipeline is one transaction.
    assert_eq!(client.ok("select count(*) from k"), "0");
}

#[test]
fn marks_of_constraints_have_parameters() {
    let mut client = Client::new();
    client.ok(
        "create table p (id int primary key); create table c (p int constraint k references p)",
    );
    let session = &mut client.session;
    let sql = "update pg_constraint set convalidated = $1 where conname = $2";
    session.parse("", sql, &[]).unwrap();
    let described = session.describe_statement("").unwrap();
    assert_eq!(described.parameters[0], 16);
    assert_eq!(described.parameters.len(), 2);
    assert!(described.fields.is_none());
    bind(&mut client, "", &[Some(b"false"), Some(b"k")], &[]);
    let mut told = Heard::default();
    client.session.execute("", 0, &mut told).unwrap();
    assert_eq!(told.tags, ["UPDATE 1"]);
    client.session.sync().unwrap();
}
