//! What may stand in transaction blocks only, and what only outside of them: in texts of several statements, and in pipelines.

use super::client::{Client, Heard};
use vellum_sql::{Parameters, SqlError, TransactionStatus};

/// Runs statements one after the other by the extended protocol, up to the first that fails, without a Sync.
fn piped(client: &mut Client, statements: &[&str]) -> Result<Vec<String>, SqlError> {
    let mut heard = Heard::default();
    for sql in statements {
        let session = &mut client.session;
        session.parse("", sql, &[])?;
        session.bind("", "", Parameters::default(), &[])?;
        session.execute("", 0, &mut heard)?;
    }
    Ok(heard.tags)
}

const OUTSIDE: [(&str, &str); 7] = [
    ("vacuum", "VACUUM"),
    ("discard all", "DISCARD ALL"),
    (
        "create index concurrently i on t (a)",
        "CREATE INDEX CONCURRENTLY",
    ),
    ("reindex database vellum", "REINDEX DATABASE"),
    ("reindex schema public", "REINDEX SCHEMA"),
    ("reindex table concurrently t", "REINDEX CONCURRENTLY"),
    ("commit prepared 'x'", "COMMIT PREPARED"),
];

#[test]
fn what_has_a_transaction_of_its_own_is_refused_beside_others() {
    let mut client = Client::new();
    client.ok("create table t (a int)");
    for (sql, what) in OUTSIDE {
        let block = format!("{what} cannot run inside a transaction block");
        for text in [
            format!("insert into t values (1); {sql}"),
            format!("{sql}; select 1"),
            format!("begin; commit; {sql}"),
            format!("begin; {sql}"),
        ] {
            let refused = ("25001".to_owned(), block.clone());
            assert_eq!(client.fails(&text), refused, "{text}");
            client.ok("rollback");
        }
        let error = piped(&mut client, &["insert into t values (1)", sql]).unwrap_err();
        let pipeline = format!("{what} cannot be executed within a pipeline");
        assert_eq!(
            (error.message(), error.sqlstate().as_str()),
            (&*pipeline, "25001"),
            "{sql}"
        );
        client.session.sync().unwrap();
    }
    assert_eq!(client.ok("select count(*) from t"), "0", "all is undone");
}

#[test]
fn what_has_a_transaction_of_its_own_may_be_alone_or_first_or_behind_an_end() {
    let mut client = Client::new();
    client.ok("create table t (a int)");
    for (sql, _) in &OUTSIDE[..6] {
        client.ok(sql);
        if sql.starts_with("create") {
            client.ok("drop index i");
        }
    }
    for statements in [
        &["vacuum"][..],
        &["vacuum", "select 1"],
        &["begin", "select 1", "commit", "vacuum"],
        &["", "vacuum"],
    ] {
        piped(&mut client, statements).unwrap();
        client.session.sync().unwrap();
    }
}

#[test]
fn what_has_a_transaction_of_its_own_commits_before_what_follows_in_a_pipeline() {
    let mut client = Client::new();
    client.ok("create table t (a int); prepare p as select 1");
    // What follows fails, and takes nothing of it back.
    for (first, seen) in [
        (
            "create index concurrently i on t (a)",
            "select count(*) from pg_class where relname = 'i'",
        ),
        (
            "discard all",
            "select 1 - count(*) from pg_prepared_statements",
        ),
    ] {
        let error = piped(&mut client, &[first, "select 1 / 0"]).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "22012");
        client.session.sync().unwrap();
        assert_eq!(client.ok(seen), "1", "{first}");
    }
    // One behind another is the first statement of a transaction again, what stands behind a SHOW is not.
    piped(&mut client, &["vacuum", "vacuum"]).unwrap();
    client.session.sync().unwrap();
    let error = piped(&mut client, &["show work_mem", "vacuum"]).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "25001");
    client.session.sync().unwrap();
}

#[test]
fn a_command_is_told_to_be_done_when_its_commit_is() {
    let mut client = Client::new();
    client.ok("create table p (a int primary key); create table f (a int references p deferrable initially deferred)");
    client.ok("prepare i as insert into f values (1)");
    for sql in [
        "execute i",
        "copy (insert into f values (1) returning a) to stdout",
    ] {
        let mut heard = Heard::default();
        let error = client.session.simple_query(sql, &mut heard).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "23503", "{sql}");
        assert!(heard.tags.is_empty(), "{sql}: {:?}", heard.tags);
    }
}

/// Texts, the SQLSTATE that each ends with (none: well), and the state of the session behind it: as PostgreSQL has it.
#[test]
fn modes_of_begin_count_behind_other_statements() {
    use TransactionStatus::{Failed, Idle, InBlock};
    let mut client = Client::new();
    client.ok("create table t (a int)");
    for (text, state, status) in [
        (
            "select 1; begin read only; insert into t values (1)",
            "25006",
            Failed,
        ),
        (
            "select 1; begin isolation level repeatable read",
            "25001",
            Idle,
        ),
        (
            "select 1; begin isolation level read committed",
            "",
            InBlock,
        ),
        ("select 1; begin read write", "", InBlock),
        (
            "begin; begin read only; insert into t values (1)",
            "25006",
            Failed,
        ),
        (
            "begin; select 1; begin isolation level repeatable read",
            "25001",
            Failed,
        ),
        (
            "begin read only; begin read write; insert into t values (1)",
            "",
            InBlock,
        ),
        (
            "begin read only; select 1; begin read write",
            "25001",
            Failed,
        ),
        (
            "set transaction read only; insert into t values (1)",
            "25006",
            Idle,
        ),
        (
            "select 1; set transaction read only; insert into t values (1)",
            "25006",
            Idle,
        ),
        (
            "begin; savepoint a; set transaction isolation level repeatable read",
            "25001",
            Failed,
        ),
        (
            "begin read only; savepoint a; set transaction read write",
            "25001",
            Failed,
        ),
        (
            "begin; savepoint a; set transaction read only; insert into t values (1)",
            "25006",
            Failed,
        ),
        (
            "begin; savepoint a; set transaction read only; rollback to a; insert into t values (1)",
            "",
            InBlock,
        ),
        (
            "begin; savepoint a; set transaction read only; release a; insert into t values (1)",
            "",
            InBlock,
        ),
        (
            "begin; set transaction_read_only = on; insert into t values (1)",
            "25006",
            Failed,
        ),
        (
            "begin; select 1; set transaction_isolation = 'repeatable read'",
            "25001",
            Failed,
        ),
        ("set transaction_read_only = on", "", Idle),
        ("insert into t values (1)", "", Idle),
    ] {
        let mut heard = Heard::default();
        let done = client.session.simple_query(text, &mut heard);
        let seen = done.err().map(|error| error.sqlstate().to_string());
        assert_eq!(seen.as_deref().unwrap_or_default(), state, "{text}");
        assert_eq!(client.session.status(), status, "{text}");
        client.ok("rollback");
    }
    assert_eq!(client.ok("select count(*) from t"), "1");
    for (text, shown) in [
        ("begin; begin read only; show transaction_read_only", "on"),
        (
            "set transaction isolation level repeatable read; show transaction_isolation",
            "repeatable read",
        ),
        (
            "begin; set transaction_isolation = 'repeatable read'; select 1 where false; show transaction_isolation",
            "repeatable read",
        ),
        (
            "begin isolation level repeatable read; set transaction_isolation to default; show transaction_isolation",
            "read committed",
        ),
    ] {
        assert_eq!(client.ok(text), shown, "{text}");
        client.ok("rollback");
    }
    // The same in a pipeline.
    let error = piped(
        &mut client,
        &["select 1", "begin read only", "insert into t values (1)"],
    );
    assert_eq!(error.unwrap_err().sqlstate().as_str(), "25006");
    client.ok("rollback");
    let error = piped(
        &mut client,
        &[
            "select 1",
            "start transaction isolation level repeatable read",
        ],
    );
    assert_eq!(error.unwrap_err().sqlstate().as_str(), "25001");
    client.ok("rollback");
}

#[test]
fn a_text_of_several_statements_may_lock_tables_and_declare_cursors() {
    let mut client = Client::new();
    client.ok("create table t (a int); insert into t values (1), (2)");
    for text in [
        "lock table t; select count(*) from t",
        "select 1; lock table t in share mode; insert into t values (3); rollback",
    ] {
        client.ok(text);
        assert_eq!(client.session.status(), TransactionStatus::Idle, "{text}");
    }
    let held = "select count(*) from pg_locks where relation = 't'::regclass";
    assert_eq!(client.ok(held), "0", "the lock ends with its text");
    for text in [
        "declare c cursor for select a from t order by a; fetch 2 c",
        "select 1 where false; declare c cursor for select a from t order by a; fetch 2 c",
    ] {
        assert_eq!(client.ok(text), "1\n2", "{text}");
        assert_eq!(client.state("fetch c"), "34000", "it ends with its text");
    }
    // Nobody has begun a block.
    for text in [
        "select 1; savepoint s",
        "lock table t; release s",
        "select 1; rollback to s",
    ] {
        assert_eq!(client.state(text), "25P01", "{text}");
    }
    // A pipeline is no block either.
    for sql in ["lock table t", "declare c cursor for select 1"] {
        let error = piped(&mut client, &["select 1", sql]).unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "25P01", "{sql}");
        client.session.sync().unwrap();
    }
}
