//! DECLARE, FETCH, MOVE, CLOSE.

use super::client::{Client, database};

fn with_rows() -> Client {
    let mut client = Client::new();
    client.ok(
        "create table t (id int primary key); insert into t select g from generate_series(1, 5) g",
    );
    client
}

#[test]
fn a_cursor_goes_where_it_is_told_to() {
    let mut client = with_rows();
    client.ok("begin; declare c scroll cursor for select id from t order by id");
    for (step, rows, tag) in [
        ("fetch c", "1", "FETCH 1"),
        ("fetch next from c", "2", "FETCH 1"),
        ("fetch 2 in c", "3\n4", "FETCH 2"),
        ("fetch prior c", "3", "FETCH 1"),
        ("fetch relative -1 from c", "2", "FETCH 1"),
        ("fetch relative 0 c", "2", "FETCH 1"),
        ("fetch 0 c", "2", "FETCH 1"),
        ("fetch absolute -1 from c", "5", "FETCH 1"),
        ("fetch c", "", "FETCH 0"),
        ("fetch c", "", "FETCH 0"),
        ("fetch backward 2 from c", "5\n4", "FETCH 2"),
        ("fetch backward all in c", "3\n2\n1", "FETCH 3"),
        ("fetch backward c", "", "FETCH 0"),
        ("fetch forward all c", "1\n2\n3\n4\n5", "FETCH 5"),
        ("fetch first c", "1", "FETCH 1"),
        ("move 2 in c", "", "MOVE 2"),
        ("fetch c", "4", "FETCH 1"),
        ("move last c", "", "MOVE 1"),
        ("move forward all from c", "", "MOVE 0"),
        ("fetch last c", "5", "FETCH 1"),
        ("fetch absolute 9 c", "", "FETCH 0"),
        ("fetch absolute 0 c", "", "FETCH 0"),
        ("fetch -1 c", "", "FETCH 0"),
        ("fetch all c", "1\n2\n3\n4\n5", "FETCH 5"),
    ] {
        let heard = client.hear(step);
        assert_eq!(
            (heard.text().as_str(), heard.tags[0].as_str()),
            (rows, tag),
            "{step}"
        );
    }
    client.ok("close c");
    assert_eq!(client.state("fetch c"), "34000");
}

#[test]
fn a_cursor_without_scroll_goes_forward_only() {
    let mut client = with_rows();
    client.ok("begin; declare c no scroll cursor for select id from t order by id");
    assert_eq!(client.ok("fetch 2 c"), "1\n2");
    assert_eq!(client.ok("fetch absolute 4 c"), "4");
    client.ok("savepoint s");
    assert_eq!(client.state("fetch prior c"), "55000");
    client.ok("rollback to s");
    assert_eq!(client.state("fetch all c"), "55000");
    client.ok("rollback; begin; declare c no scroll cursor for select id from t order by id");
    assert_eq!(client.hear("fetch 0 c").tags, ["FETCH 0"]);
    assert_eq!(client.ok("fetch c"), "1");
    assert_eq!(client.state("fetch 0 c"), "55000");
}

#[test]
fn a_cursor_sees_what_was_there_when_it_was_declared() {
    let mut client = with_rows();
    client.ok("begin; declare c cursor for select id from t order by id");
    client.ok("delete from t where id > 1");
    assert_eq!(client.ok("fetch all c"), "1\n2\n3\n4\n5");
}

#[test]
fn only_a_cursor_with_hold_outlives_its_transaction() {
    let mut client = with_rows();
    assert_eq!(client.state("declare c cursor for select 1"), "25P01");
    client.ok("declare h cursor with hold for select id from t order by id");
    client.ok("begin; declare c cursor for select 1; declare lost cursor with hold for select 1");
    assert_eq!(client.state("declare c cursor for select 1"), "42P03");
    client.ok("rollback");
    assert_eq!(client.ok("fetch h"), "1");
    assert_eq!(client.state("fetch lost"), "34000");
    client.ok("begin; declare c cursor for select 1; savepoint s; declare d cursor for select 2; rollback to s");
    assert_eq!(client.ok("fetch c"), "1");
    assert_eq!(client.state("fetch d"), "34000");
    client.ok("rollback");
    assert_eq!(client.ok("fetch h"), "2");
    client.ok("close all");
    assert_eq!(client.state("fetch h"), "34000");
}

/// Symptom: `53200` for a cursor over more rows than `work_mem` holds, and a server whose memory grew with the rows of a portal that is
/// fetched in pieces. Cause: all rows were kept in memory. Guard: `session/row_store`.
#[test]
fn a_cursor_and_a_portal_may_have_more_rows_than_memory_holds() {
    let directory = tempfile::tempdir().unwrap();
    for spills in [true, false] {
        let database = database();
        if spills {
            database.set_spill_directory(directory.path().join("spill"));
        }
        let mut client = Client::of(&database);
        client.ok("create table t (id int primary key, body text)");
        client.ok("set work_mem = '1MB'");
        let returning = "insert into t select g, repeat('x', 1000) || g from generate_series(1, 8000) g returning id";
        let declare = "declare c scroll cursor with hold for select id, body from t order by id";
        if !spills {
            client.ok(
                "insert into t select g, repeat('x', 1000) || g from generate_series(1, 8000) g",
            );
            assert_eq!(client.state(declare), "53200");
            assert_eq!(
                client.state("update t set body = body || 'y' returning body"),
                "53200"
            );
            assert_eq!(
                client.ok("select count(*) from t where body like '%y'"),
                "0"
            );
            continue;
        }
        let returned = client.ok(returning);
        assert!(returned.starts_with("1\n2\n") && returned.ends_with("\n7999\n8000"));
        client.ok(declare);
        client.ok("delete from t");
        let row = |id: u32| format!("{id}|{}{id}", "x".repeat(1000));
        assert_eq!(client.ok("fetch c"), row(1));
        assert_eq!(client.ok("fetch absolute 7000 from c"), row(7_000));
        assert_eq!(
            client.ok("fetch backward 2 from c"),
            format!("{}\n{}", row(6_999), row(6_998))
        );
        assert_eq!(client.ok("fetch last c"), row(8_000));
        assert_eq!(client.ok("fetch absolute 2 from c"), row(2));
        let all = client.ok("fetch all c");
        assert!(all.lines().eq((3..=8_000).map(row)));
        client.ok("close c");
    }
}

#[test]
fn a_cursor_hands_out_values_of_every_type_as_the_query_does() {
    let mut client = Client::new();
    client.ok("create table t (a int, b text, primary key (a)); create index t_b on t (b, a)");
    client.ok("insert into t values (1, 'one'), (2, null)");
    for query in [
        "select true, null, 1::smallint, 2, 3::bigint, 1.5::real, 'NaN'::float8, 12345678901234567890.123::numeric, 'NaN'::numeric, 1::numeric(9,2)",
        "select 'a', 'b'::varchar(3), 'c'::char(5), '\\x00ff'::bytea, date '2024-02-29', date 'infinity', time '23:59:59.5', interval '1 mon 2 days -3 hours'",
        "select timestamp '2024-02-29 01:02:03.25', timestamptz '2024-02-29 01:02:03+02', '6ecd8c99-4036-403d-bf84-cf8400f67836'::uuid",
        "select '{\"a\": [1, 2.50, null]}'::json, '{\"b\": 1, \"a\": [1, 2.50, null]}'::jsonb, array[1, null, 3], array['x y', null], '{{1,2},{3,4}}'::int[]",
        "select 1 as x, 2 as x, 't'::regclass, 'integer'::regtype, 26::oid, row(1, 'a', null)",
        "select indkey, indclass, indoption from pg_index order by indexrelid",
        "select relname, relkind, relacl from pg_class order by oid",
        "select * from t full join (values (2, 'zwei'), (3, 'drei')) v (a, c) on t.a = v.a order by t.a, v.a",
        "select from t",
    ] {
        let told = client.ok(query);
        client.ok(&format!("begin; declare c cursor for {query}"));
        assert_eq!(client.ok("fetch all c"), told, "{query}");
        client.ok("commit");
    }
}

#[test]
fn cursors_are_shown_until_they_are_closed() {
    let mut client = Client::new();
    let shown = "select name, statement, is_holdable, is_binary, is_scrollable, creation_time <= now() + interval '1 hour' from pg_cursors";
    assert_eq!(client.ok(shown), "");
    client.ok("begin");
    client.ok("declare b no scroll cursor for select 1;");
    client.ok("declare a binary scroll cursor with hold for select 2");
    assert_eq!(
        client.ok(&format!("{shown} order by name")),
        "a|declare a binary scroll cursor with hold for select 2|t|t|t|t\n\
         b|declare b no scroll cursor for select 1;|f|f|f|t"
    );
    client.ok("commit");
    assert_eq!(client.ok("select name from pg_cursors"), "a");
    client.ok("close a");
    assert_eq!(client.ok("select count(*) from pg_cursors"), "0");
}
