//! What happens between the messages of a pipeline: others change the tables, the client says nothing, settings change, savepoints are gone back to.

use crate::support::{
    Raw, World, bind, bind_texts, close, describe, execute, execute_rows, flush, message, parse,
    query, sync, told,
};
use std::time::Duration;

/// Waits until so many sessions wait for a lock.
fn wait_for_waiting(client: &mut postgres::Client, count: i64) {
    let sql = "select count(*) from pg_locks where not granted";
    while client.query_one(sql, &[]).unwrap().get::<_, i64>(0) < count {
        std::thread::yield_now();
    }
}

fn number(client: &mut postgres::Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

/// Symptom: rows were compared with a value of another type; all of them, or none, were deleted.
#[test]
fn regress_what_was_bound_is_not_run_by_other_types() {
    let world = World::trusting();
    let (mut a, mut b) = (world.raw(), world.client());
    b.batch_execute("create table t (n int); insert into t select generate_series(1, 9)")
        .unwrap();
    let delete = "delete from t where n < $1";
    for (ty, answer, left) in [("text", "E42883", 9), ("bigint", "C", 5)] {
        b.batch_execute("alter table t alter n type int using n::int")
            .unwrap();
        a.send(&[parse("", delete), bind_texts("", "", &["5"]), flush()].concat());
        assert_eq!(a.next_kinds(2), "12");
        b.batch_execute(&format!("alter table t alter n type {ty}"))
            .unwrap();
        a.send(&[execute(""), sync()].concat());
        assert_eq!(told(&a.until_ready()), answer, "{ty}");
        assert_eq!(number(&mut b, "select count(*) from t"), left, "{ty}");
    }
    // The same of a statement that was prepared before, whose parameters its client knows.
    b.batch_execute("alter table t alter n type int").unwrap();
    a.send(&[parse("d", delete), describe('S', "d"), sync()].concat());
    assert_eq!(a.kinds(), "1tn");
    b.batch_execute("alter table t alter n type bigint")
        .unwrap();
    let binary = [
        &b"\0d\0\0\x01\0\x01\0\x01\0\0\0\x04"[..],
        &7i32.to_be_bytes(),
        &[0, 0],
    ]
    .concat();
    a.send(&[message(b'B', &binary), execute(""), sync()].concat());
    assert_eq!(a.kinds(), "2C");
    assert_eq!(number(&mut b, "select count(*) from t"), 3);
    b.batch_execute("alter table t alter n type text").unwrap();
    a.send(&[message(b'B', &binary), execute(""), sync()].concat());
    assert_eq!(told(&a.until_ready()), "E42883");
}

/// Symptom: rows had more columns than their description.
#[test]
fn regress_rows_are_those_that_were_described() {
    let world = World::trusting();
    let (mut a, mut b) = (world.raw(), world.client());
    b.batch_execute("create table t (n int); insert into t values (1), (2)")
        .unwrap();
    let refused = "E0A000";
    for (sql, rows, answer) in [
        ("select * from t", 0, refused),
        ("select * from t", 1, refused),
        ("insert into t default values returning *", 0, refused),
        ("select n from t", 0, "D D C"),
        ("delete from t where n is null", 0, "C"),
    ] {
        a.send(&[parse("", sql), bind("", ""), describe('P', ""), flush()].concat());
        assert!(a.next_kinds(3).starts_with("12"));
        b.batch_execute("alter table t add m text").unwrap();
        a.send(&[execute_rows("", rows), sync()].concat());
        assert_eq!(told(&a.until_ready()), answer, "{sql}");
        b.batch_execute("alter table t drop m").unwrap();
    }
    // Described when it has changed.
    a.send(&[parse("", "select * from t"), bind("", ""), flush()].concat());
    assert_eq!(a.next_kinds(2), "12");
    b.batch_execute("alter table t add m text").unwrap();
    a.send(&[describe('P', ""), sync()].concat());
    assert_eq!(told(&a.until_ready()), refused);
}

/// Symptom: a table that is only read could be changed while the statement waited for a row of another one.
#[test]
fn regress_what_waits_goes_on_by_the_types_of_its_parameters() {
    let world = World::trusting();
    let (mut a, mut b, mut c) = (world.raw(), world.client(), world.client());
    b.batch_execute(
        "create table t (id int primary key, n int); create table u (id int primary key, n int);
         insert into t values (1, 1), (2, 2); insert into u values (1, 1), (2, 2)",
    )
    .unwrap();
    c.batch_execute("begin; update t set n = 3 where id = 2")
        .unwrap();
    let delete = "delete from t using u where t.id = u.id and u.n < $1";
    let all = [
        parse("", delete),
        bind_texts("", "", &["5"]),
        execute(""),
        sync(),
    ];
    a.send(&all.concat());
    wait_for_waiting(&mut b, 1);
    b.batch_execute("alter table u alter n type text").unwrap();
    c.batch_execute("commit").unwrap();
    assert_eq!(told(&a.until_ready()), "1 2 E42883");
    assert_eq!(number(&mut b, "select count(*) from t"), 2);
}

/// Symptom: as above. Literals can be read anew, as those of a text that had not been parsed before it waited.
#[test]
fn regress_literals_are_read_by_the_types_that_a_statement_has_waited_for() {
    let world = World::trusting();
    let (mut a, mut b) = (world.raw(), world.client());
    b.batch_execute("create table t (id int primary key, n int)")
        .unwrap();
    for id in 1..=5 {
        assert_eq!(
            a.answers(&format!("insert into t values ('{id}', '{id}')")),
            "C"
        );
    }
    let changes = [
        (
            "alter table t alter n type text",
            "insert into t values ('6', 'six')",
        ),
        (
            "alter table t alter id type text",
            "insert into t values ('seven', '7')",
        ),
    ];
    for (alter, insert) in changes {
        b.batch_execute(&format!("begin; {alter}")).unwrap();
        a.send(&query(&insert.replace("six", "6").replace("seven", "70")));
        wait_for_waiting(&mut world.client(), 1);
        b.batch_execute("commit").unwrap();
        assert_eq!(told(&a.until_ready()), "C");
        assert_eq!(
            a.answers(insert),
            if insert.contains("six") {
                "E23505"
            } else {
                "C"
            }
        );
    }
    let sum = "select count(*) from t where n || id in ('66', '770', '7seven')";
    assert_eq!(number(&mut b, sum), 3);
}

#[test]
fn who_changes_a_table_waits_for_the_rows_of_a_copy() {
    let world = World::trusting();
    let (mut a, mut b) = (world.raw(), world.raw());
    assert_eq!(a.answers("create table t (n int)"), "C");
    a.send(&query("copy t from stdin"));
    assert_eq!(a.next_kinds(1), "G");
    b.send(&query("alter table t alter n type text"));
    wait_for_waiting(&mut world.client(), 1);
    a.send(&[message(b'd', b"1\n2\n"), message(b'c', b"")].concat());
    assert_eq!(a.kinds(), "C");
    assert_eq!(b.kinds(), "C");
    assert_eq!(a.answers("insert into t values ('three')"), "C");
    assert_eq!(a.answers("copy t to stdout"), "H d d d c C");
}

/// Sends a byte every now and then until the connection ends; what it was told then.
fn trickle(raw: &mut Raw) -> String {
    let bytes = query(&"-".repeat(2000));
    let wait = Duration::from_millis(50);
    raw.socket.set_read_timeout(Some(wait)).unwrap();
    for byte in bytes {
        if std::io::Write::write_all(&mut raw.socket, &[byte]).is_err()
            || raw.socket.peek(&mut [0]).is_ok()
        {
            break;
        }
    }
    raw.socket
        .set_read_timeout(Some(crate::support::LONG))
        .unwrap();
    told(&raw.until_end())
}

/// Symptom: each byte let it hold its locks for as long again.
#[test]
fn regress_bytes_of_a_message_that_does_not_end_are_silence() {
    let world = World::trusting();
    let mut raw = world.raw();
    let set = "set idle_in_transaction_session_timeout = 700; set idle_session_timeout = 600";
    assert_eq!(raw.answers(set), "C C");
    let mut other = world.raw();
    assert_eq!(other.answers(set), "C C");
    assert_eq!(raw.answers("begin"), "C");
    assert_eq!(trickle(&mut raw), "E25P03");
    assert_eq!(trickle(&mut other), "E57P05");
}

/// Symptom: as above, of whatever wakes a connection.
#[test]
fn regress_who_is_told_something_has_said_nothing() {
    let world = World::trusting();
    let mut raw = world.raw();
    assert_eq!(
        raw.answers("listen n; set idle_session_timeout = 700"),
        "C C"
    );
    let mut other = world.client();
    // Some two minutes.
    for _ in 0..1200 {
        other.batch_execute("notify n").unwrap();
        let answer = raw.receive().unwrap();
        if answer.kind == b'E' {
            assert_eq!(answer.sqlstate(), "57P05");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it is never sent away");
}

/// Symptom: the limit of sessions without a transaction counted, which was none.
#[test]
fn regress_a_pipeline_that_rests_with_a_transaction_is_idle_in_it() {
    let world = World::trusting_with(|settings| settings.idle_in_transaction_timeout_seconds = 1);
    let mut raw = world.raw();
    assert_eq!(raw.answers("create table t (n int)"), "C");
    let insert = [
        parse("", "insert into t values (1)"),
        bind("", ""),
        execute(""),
    ]
    .concat();
    raw.send(&[insert, flush()].concat());
    assert_eq!(told(&raw.until_end()), "1 2 C E25P03");
    let mut raw = world.raw();
    assert_eq!(raw.answers("insert into t values (1)"), "C");
    assert_eq!(raw.answers("copy t to stdout"), "H d c C");
}

/// The clock runs from the first message of a statement to the end of its Execute.
#[test]
fn regress_a_pipeline_has_one_statement_timeout_and_hears_of_it_between_messages() {
    let world = World::trusting();
    let mut raw = world.raw();
    let set = |raw: &mut Raw, ms: u32| {
        assert_eq!(raw.answers(&format!("set statement_timeout = {ms}")), "C");
    };
    set(&mut raw, 400);
    let select = "select generate_series(1, 5)";
    for (begin, kinds) in [
        (parse("", select), "1"),
        ([parse("", select), bind("", "")].concat(), "12"),
        (
            [parse("", select), bind("", ""), execute_rows("", 2)].concat(),
            "12DDs",
        ),
    ] {
        raw.send(&[begin, flush()].concat());
        assert_eq!(raw.next_kinds(kinds.len()), kinds);
        // Nothing is said any more.
        assert_eq!(raw.receive().unwrap().sqlstate(), "57014", "{kinds}");
        raw.send(&[execute(""), sync()].concat());
        assert_eq!(raw.kinds(), "", "{kinds}");
    }
    // Of messages that come one after the other, too.
    raw.send(&[parse("", select), flush()].concat());
    assert_eq!(raw.next_kinds(1), "1");
    let late = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        raw.send(&[bind("", ""), flush()].concat());
        Some(raw.receive().unwrap()).filter(|message| message.kind != b'2')
    });
    assert_eq!(late.unwrap().sqlstate(), "57014");
    raw.assert_alive();
    // Messages that nothing is done for find nothing; Sync does.
    raw.send(&[parse("", select), flush()].concat());
    assert_eq!(raw.next_kinds(1), "1");
    let mut told_by = 'S';
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(100));
        raw.send(&[close('S', "nowhere"), flush()].concat());
        let message = raw.receive().unwrap();
        // Unless it has paused for so long that the server looks by itself.
        if message.kind != b'3' {
            assert_eq!(message.sqlstate(), "57014");
            told_by = 'E';
            break;
        }
    }
    raw.send(&sync());
    let told_last = if told_by == 'S' { "E57014" } else { "" };
    assert_eq!(told(&raw.until_ready()), told_last);
    // What is done has no clock any more.
    set(&mut raw, 1500);
    raw.send(&[parse("", "select 1"), bind("", ""), execute(""), flush()].concat());
    assert_eq!(raw.next_kinds(4), "12DC");
    std::thread::sleep(Duration::from_millis(1800));
    raw.assert_alive();
    // Compiling, waiting and running are one.
    set(&mut raw, 500);
    let nap = "select pg_sleep(0.3)";
    raw.send(&[parse("", nap), flush()].concat());
    assert_eq!(raw.next_kinds(1), "1");
    std::thread::sleep(Duration::from_millis(250));
    raw.send(&[bind("", ""), execute(""), sync()].concat());
    assert_eq!(told(&raw.until_ready()), "2 E57014");
    set(&mut raw, 0);
    raw.assert_alive();
}

/// The settings that were told of.
fn statuses(raw: &mut Raw, text: &str) -> String {
    raw.send(&query(text));
    let messages = raw.until_ready();
    statuses_in(&messages)
}

fn statuses_in(messages: &[crate::support::Message]) -> String {
    let statuses = messages.iter().filter(|message| message.kind == b'S');
    let text = |message: &crate::support::Message| {
        String::from_utf8_lossy(&message.body).replace('\0', " ")
    };
    statuses.map(text).collect()
}

#[test]
fn clients_are_told_of_settings_whatever_has_changed_them() {
    let world = World::trusting();
    let mut raw = world.raw();
    assert_eq!(
        statuses(
            &mut raw,
            "set application_name = 'x'; set datestyle = german"
        ),
        "application_name x DateStyle German, DMY "
    );
    assert_eq!(
        statuses(&mut raw, "set application_name = 'x'"),
        "",
        "as before"
    );
    assert_eq!(
        statuses(&mut raw, "discard all"),
        "application_name  DateStyle ISO, MDY "
    );
    let sql = "select application_name = '' from pg_stat_activity where pid = pg_backend_pid()";
    raw.send(&query(sql));
    assert!(raw.until_ready()[1].body.ends_with(b"t"));
    // What is not made to last is taken back, and told.
    let read_only = "default_transaction_read_only ";
    assert_eq!(
        statuses(
            &mut raw,
            "begin; set session characteristics as transaction read only"
        ),
        format!("{read_only}on ")
    );
    assert_eq!(statuses(&mut raw, "rollback"), format!("{read_only}off "));
    raw.send(&query("show default_transaction_read_only"));
    assert!(raw.until_ready()[1].body.ends_with(b"off"));
    let both =
        "set session characteristics as transaction isolation level repeatable read, read only";
    assert_eq!(statuses(&mut raw, both), format!("{read_only}on "));
    raw.send(&query("show default_transaction_isolation"));
    assert!(raw.until_ready()[1].body.ends_with(b"repeatable read"));
    assert_eq!(
        statuses(&mut raw, "discard all"),
        format!("{read_only}off ")
    );
}

/// Symptom: they came with the next statement.
#[test]
fn regress_settings_that_a_copy_takes_back_are_told_at_its_end() {
    let world = World::trusting();
    let mut raw = world.raw();
    assert_eq!(raw.answers("create table t (n int)"), "C");
    assert_eq!(
        statuses(&mut raw, "begin; set datestyle = german"),
        "DateStyle German, DMY "
    );
    raw.send(&query("copy t from stdin"));
    assert_eq!(raw.next_kinds(1), "G");
    raw.send(&message(b'f', b"never mind\0"));
    let messages = raw.until_ready();
    assert_eq!(messages[0].sqlstate(), "57014");
    assert_eq!(statuses_in(&messages), "DateStyle ISO, MDY ");
    assert_eq!(raw.answers("rollback"), "C");
    // In the middle of a text.
    raw.send(&query("copy t from stdin; set datestyle = german"));
    assert_eq!(raw.next_kinds(1), "G");
    raw.send(&message(b'c', b""));
    assert_eq!(statuses_in(&raw.until_ready()), "DateStyle German, DMY ");
}

/// Symptom: a portal went on telling rows that were undone.
#[test]
fn regress_portals_that_were_bound_behind_a_savepoint_go_with_it() {
    let world = World::trusting();
    let mut raw = world.raw();
    assert_eq!(raw.answers("create table t (n int); begin"), "C C");
    let insert = "insert into t values (1), (2), (3) returning n";
    let bound = |portal: &str| [parse("", insert), bind(portal, "")].concat();
    raw.send(&[bound("before"), sync()].concat());
    assert_eq!(raw.kinds(), "12");
    assert_eq!(raw.answers("savepoint s"), "C");
    raw.send(
        &[
            bound("behind"),
            execute_rows("behind", 1),
            execute_rows("before", 1),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(raw.kinds(), "12DsDs");
    assert_eq!(raw.answers("rollback to s"), "C");
    // What was bound before goes on, as in PostgreSQL, with what it has found.
    raw.send(&[execute_rows("before", 1), sync()].concat());
    assert_eq!(raw.kinds(), "Ds");
    raw.send(&[execute_rows("behind", 1), sync()].concat());
    assert_eq!(told(&raw.until_ready()), "E34000");
    assert_eq!(raw.answers("rollback"), "C");
}
