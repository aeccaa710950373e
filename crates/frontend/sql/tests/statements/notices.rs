//! What a client is told beside its answers, and what it does not want to be told of.

use super::client::{Client, Heard};

#[track_caller]
fn told(client: &mut Client, sql: &str) -> Vec<String> {
    client.hear(sql).notices
}

#[test]
fn what_is_below_client_min_messages_is_not_told() {
    let mut client = Client::new();
    let notice = "table \"nothing\" does not exist, skipping";
    let warning = "there is no transaction in progress";
    for (level, notices, warnings) in [
        ("debug5", true, true),
        ("debug1", true, true),
        ("log", true, true),
        ("info", true, true),
        ("notice", true, true),
        ("warning", false, true),
        ("error", false, false),
    ] {
        client.ok(&format!("set client_min_messages = {level}"));
        let heard = told(&mut client, "drop table if exists nothing");
        assert_eq!(heard, vec![notice; usize::from(notices)], "{level}");
        let heard = told(&mut client, "commit");
        assert_eq!(heard, vec![warning; usize::from(warnings)], "{level}");
    }
}

#[test]
fn no_way_to_a_notice_leads_around_the_level() {
    let mut client = Client::new();
    client.ok(
        "create table t (a int primary key); create table c (a int references t); create role r",
    );
    let long = "x".repeat(70);
    let texts = [
        "create table if not exists t (a int)".to_owned(),
        "create table if not exists t as select 1".to_owned(),
        "create index if not exists t_pkey on t (a)".to_owned(),
        format!("select 1 as {long}"),
        "truncate t cascade".to_owned(),
        "begin; begin; rollback".to_owned(),
        "rollback".to_owned(),
        "set local work_mem = '1MB'".to_owned(),
        "set transaction read only".to_owned(),
        "set constraints all deferred".to_owned(),
        "select pg_advisory_unlock(1)".to_owned(),
        "prepare transaction 'x'".to_owned(),
        "set role r; analyze t; reset role".to_owned(),
        "drop table t cascade".to_owned(),
    ];
    client.ok("begin");
    for text in &texts[..5] {
        assert_eq!(told(&mut client, text).len(), 1, "{text}");
    }
    client.ok("rollback");
    client.ok("set client_min_messages = error");
    for text in &texts {
        assert_eq!(told(&mut client, text), [""; 0], "{text}");
    }
}

#[test]
fn a_level_is_one_of_the_transaction_and_of_the_login() {
    let mut client = Client::with(vellum_sql::SessionOptions {
        settings: vec![("client_min_messages".to_owned(), "error".to_owned())],
        ..vellum_sql::SessionOptions::default()
    });
    assert_eq!(told(&mut client, "commit"), [""; 0]);
    client.ok("begin; set local client_min_messages = notice");
    assert_eq!(told(&mut client, "begin").len(), 1);
    client.ok("commit");
    assert_eq!(told(&mut client, "commit"), [""; 0]);
}

#[test]
fn what_counts_in_a_block_only_is_warned_of_outside() {
    let mut client = Client::new();
    for (sql, what) in [
        ("set local work_mem = '1MB'", "SET LOCAL"),
        ("set local time zone 3", "SET LOCAL"),
        ("set local role none", "SET LOCAL"),
        ("set transaction read only", "SET TRANSACTION"),
        ("set constraints all deferred", "SET CONSTRAINTS"),
    ] {
        let heard = client.hear(sql);
        let warning = format!("{what} can only be used in transaction blocks");
        assert_eq!(heard.notices, [warning], "{sql}");
        assert_eq!(heard.notice_states, ["25P01"], "{sql}");
        for within in [
            format!("begin; {sql}; rollback"),
            format!("select 1; {sql}"),
        ] {
            assert_eq!(told(&mut client, &within), [""; 0], "{within}");
        }
    }
    // In a text of its own a statement is alone, whatever was said before.
    client.ok("select 1; select 2");
    let mut heard = Heard::default();
    let session = &mut client.session;
    session
        .parse("", "set local work_mem = '1MB'", &[])
        .unwrap();
    let none = vellum_sql::Parameters::default();
    session.bind("", "", none, &[]).unwrap();
    session.execute("", 0, &mut heard).unwrap();
    session.sync().unwrap();
    assert_eq!(heard.notices.len(), 1);
    for (sql, what) in [
        ("commit and chain", "COMMIT AND CHAIN"),
        ("abort and chain", "ROLLBACK AND CHAIN"),
        ("savepoint s", "SAVEPOINT"),
        ("release s", "RELEASE SAVEPOINT"),
        ("rollback to s", "ROLLBACK TO SAVEPOINT"),
        ("lock table pg_class", "LOCK TABLE"),
        ("declare c cursor for select 1", "DECLARE CURSOR"),
    ] {
        let error = client.failure(sql);
        let text = format!("{what} can only be used in transaction blocks");
        assert_eq!(
            (error.message(), error.sqlstate().as_str()),
            (&*text, "25P01"),
            "{sql}"
        );
    }
}

#[test]
fn settings_are_told_by_their_own_names_and_as_they_are_kept() {
    let mut client = Client::new();
    for (sql, name, value) in [
        (
            "set timezone = 'europe/berlin'",
            "TimeZone",
            "Europe/Berlin",
        ),
        ("set time zone '+10'", "TimeZone", "<+10>-10"),
        ("set datestyle = 'german'", "DateStyle", "German, DMY"),
        (
            "set intervalstyle = 'ISO_8601'",
            "IntervalStyle",
            "iso_8601",
        ),
    ] {
        let heard = client.hear(sql);
        assert_eq!(heard.statuses, [(name.to_owned(), value.to_owned())]);
        let heard = client.hear(&format!("show {name}"));
        assert_eq!((&*heard.fields[0], &*heard.text()), (name, value));
    }
    assert_eq!(client.hear("show time zone").fields, ["TimeZone"]);
    assert_eq!(client.hear("show \"timezone\"").fields, ["TimeZone"]);
    assert_eq!(client.hear("show work_mem").fields, ["work_mem"]);
    let all = client.ok("show all");
    assert!(all.contains("DateStyle|German, DMY|"), "{all}");
    let error = client.failure("set datestyle = 'iso, sql'");
    let detail = error.fields().detail.as_deref();
    assert_eq!(detail, Some("Conflicting \"datestyle\" specifications."));
    let error = client.failure("set timezone = '+10:00:30'");
    let text = "time zone \"+10:00:30\" appears to use leap seconds";
    assert_eq!(error.message(), text);
    let error = client.failure("set timezone = '200'");
    let detail = error.fields().detail.as_deref();
    assert_eq!(detail, Some("UTC timezone offset is out of range."));
}

#[test]
fn code_tells_what_it_raises_and_no_rows() {
    let mut client = Client::new();
    let heard = client.hear(
        "do $$ begin raise notice 'a % b %% c %', 1 + 1, null; raise warning 'w' using errcode = '01004', hint = 'h', detail = 'd'; \
         raise debug 'nobody hears'; perform 1; perform 1/0; exception when others then raise info '% %', sqlstate, sqlerrm; end $$",
    );
    assert_eq!(
        heard.notices,
        ["a 2 b % c <NULL>", "w", "22012 division by zero"]
    );
    assert_eq!(heard.notice_states, ["00000", "01004", "00000"]);
    assert_eq!((heard.tags, heard.rows.len()), (vec!["DO".to_owned()], 0));
    // An error in a text within has no place in the statement's.
    let error = client.failure("do $$ begin insert into nosuch values (1); end $$");
    assert_eq!(
        (error.sqlstate().as_str(), error.fields().position),
        ("42P01", None)
    );
}

#[test]
fn code_has_no_transactions_cursors_and_copies_of_its_own() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key)");
    for (code, state) in [
        ("commit;", "0A000"),
        ("savepoint s;", "0A000"),
        ("start transaction;", "0A000"),
        ("prepare transaction 'x';", "0A000"),
        ("copy t to stdout;", "0A000"),
        ("execute 'declare c cursor for select 1';", "0A000"),
        ("execute 'commit';", "0A000"),
        ("create index concurrently on t (id);", "0A000"),
        ("vacuum;", "25001"),
        ("execute 'do $x$ begin perform 1/0; end $x$';", "22012"),
    ] {
        let text = format!("do $$ begin insert into t values (1); {code} end $$");
        assert_eq!(client.state(&text), state, "{code}");
        assert_eq!(client.ok("select count(*) from t"), "0", "{code}");
    }
    // One in each other, without an end.
    let mut text = "null;".to_owned();
    for depth in 0..100 {
        text = format!("execute $a{depth}$do $b{depth}$ begin {text} end $b{depth}$ $a{depth}$;");
    }
    assert_eq!(client.state(&format!("do $$ begin {text} end $$")), "54001");
    client.ok("do $$ begin execute $a$do $b$ begin execute $c$do 'begin null; end'$c$; end $b$ $a$; end $$");
}

#[test]
fn code_tells_what_it_raises_and_what_its_statements_tell() {
    let mut client = Client::new();
    let heard = told(
        &mut client,
        "do $$ begin raise notice E'a\\tb % %%', 1; raise info $a$i$a$; raise notice '%', N'it''s'; raise notice using message = 'm'; raise notice unique_violation; \
         perform pg_advisory_unlock(77); raise debug 'd'; end $$",
    );
    let warning = "you don't own a lock of type ExclusiveLock";
    assert_eq!(
        heard,
        ["a\tb 1 %", "i", "it's", "m", "unique_violation", warning]
    );
    client.ok("set client_min_messages = error");
    let heard = told(
        &mut client,
        "do $$ begin raise info 'i'; raise warning 'w'; end $$",
    );
    assert_eq!(heard, ["i"]);
}

#[test]
fn code_has_one_statement_timeout_which_it_does_not_handle() {
    let mut client = Client::new();
    client.ok("create table t (a int)");
    client.ok("set statement_timeout = 200");
    let each = "perform pg_sleep(0.15);";
    for code in [
        format!("begin insert into t values (1); {each} {each} end"),
        format!("begin begin {each} {each} exception when query_canceled then null; end; end"),
        format!("begin {each} {each} exception when others then insert into t values (2); end"),
    ] {
        assert_eq!(client.state(&format!("do $$ {code} $$")), "57014", "{code}");
    }
    client.ok("set statement_timeout = 0");
    client.ok("do $$ begin set local statement_timeout = 1; perform pg_sleep(0.02); end $$");
    client.ok("do $$ begin if exists (select from t) then raise exception 'rows'; end if; end $$");
}

#[test]
fn code_in_code_has_the_stack_that_its_statements_need() {
    let mut client = Client::new();
    let sum = vec!["1"; 2000].join("+");
    let mut code = format!("select {sum}");
    for number in 0..19 {
        let (begins, ends) = ("begin ".repeat(45), "end; ".repeat(45));
        let tag = format!("$a{number}$");
        code = format!("do {tag} {begins} execute $x{number}${code}$x{number}$; {ends} {tag}");
    }
    client.ok(&code);
}

#[test]
fn what_need_not_be_there_is_told_by_its_name_alone() {
    let mut client = Client::new();
    for sql in [
        "alter table if exists \"Nothing\" add a int",
        "alter table if exists public.\"Nothing\" rename to x",
        "alter table if exists public.\"Nothing\" drop constraint if exists x",
        "alter index if exists \"Nothing\" rename to x",
        "alter sequence if exists public.\"Nothing\" restart",
        "alter view if exists \"Nothing\" rename to x",
    ] {
        let told = client.hear(sql).notices;
        assert_eq!(
            told,
            ["relation \"Nothing\" does not exist, skipping"],
            "{sql}"
        );
    }
}
