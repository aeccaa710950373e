//! What happens between the messages of a pipeline: others change the tables, the client says nothing, settings change, savepoints are gone back to.

use crate::support::{
    World, bind, bind_texts, describe, execute, execute_rows, flush, message, parse,
    query, sync, told,
};

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
