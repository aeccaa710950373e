//! DECLARE, FETCH, MOVE, CLOSE.

use super::client::Client;

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
    assert_eq!(client.ok("fetch all c"), "5");
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
