//! LISTEN, NOTIFY, UNLISTEN: what is heard, when, and in which order.

use super::client::{Client, database};
use vellum_sql::{SessionOptions, SqlDatabase};

fn client(database: &SqlDatabase, process_id: i32) -> Client {
    let options = SessionOptions {
        user: "vellum".to_owned(),
        database: "vellum".to_owned(),
        process_id,
        ..SessionOptions::default()
    };
    Client {
        session: database.session(options).unwrap(),
    }
}

fn clients<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    let mut number = 0;
    let clients = [(); N].map(|()| {
        number += 1;
        client(&database, number)
    });
    (database, clients)
}

/// What a client may be told now.
fn heard(client: &mut Client) -> String {
    let told = client.session.take_notifications().into_iter();
    let told = told.map(|news| format!("{}:{}:{}", news.process_id, news.channel, news.payload));
    told.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_said_is_heard_when_it_is_committed_and_between_transactions() {
    let (_database, [mut a, mut b]) = clients();
    a.ok("listen news");
    assert_eq!(a.ok("select pg_listening_channels()"), "news");
    b.ok("notify news; notify other, 'nobody'");
    assert_eq!(heard(&mut a), "2:news:");
    b.ok("begin; notify news, 'one'; select pg_notify('news', 'two')");
    assert_eq!(heard(&mut a), "", "not committed");
    b.ok("notify news, 'one'; savepoint s; notify news, 'three'; rollback to s");
    b.ok("commit");
    a.ok("begin");
    assert_eq!(heard(&mut a), "", "in a transaction");
    assert_eq!(a.state("select 1/0"), "22012");
    assert_eq!(heard(&mut a), "", "in one that has failed");
    a.ok("rollback");
    assert_eq!(heard(&mut a), "2:news:one 2:news:two");
    b.ok("begin; notify news, 'lost'; rollback");
    assert_eq!(heard(&mut a), "");
    a.ok("notify news, 'to myself'");
    assert_eq!(heard(&mut a), "1:news:to myself");
}

#[test]
fn who_listens_does_so_from_its_commit_to_its_end() {
    let (database, [mut a, mut b]) = clients();
    a.ok("begin; listen x; listen \"Y\"; savepoint s; listen z; rollback to s");
    b.ok("notify x, 'early'");
    assert_eq!(a.ok("select count(*) from pg_listening_channels()"), "0");
    a.ok("notify \"Y\", 'own'; commit");
    assert_eq!(
        a.ok("select * from pg_listening_channels() order by 1"),
        "Y\nx"
    );
    assert_eq!(heard(&mut a), "1:Y:own");
    a.ok("begin; listen q; rollback; begin; unlisten x; rollback");
    b.ok("notify q, 'no'; notify x, 'yes'");
    assert_eq!(heard(&mut a), "2:x:yes");
    a.ok("unlisten x");
    b.ok("notify x; notify \"Y\"");
    assert_eq!(heard(&mut a), "2:Y:");
    a.ok("unlisten *");
    assert_eq!(a.ok("select count(*) from pg_listening_channels()"), "0");
    a.ok("listen x");
    a.ok("discard all");
    b.ok("notify x");
    assert_eq!(heard(&mut a), "");
    let mut c = client(&database, 3);
    c.ok("listen x");
    drop(c);
    assert_eq!(b.ok("notify x; select pg_notification_queue_usage()"), "0");
}

#[test]
fn what_cannot_be_said_is_refused_as_in_postgresql() {
    let (_database, [mut a]) = clients();
    for (sql, message) in [
        ("select pg_notify('', 'x')", "channel name cannot be empty"),
        (
            "select pg_notify(null, 'x')",
            "channel name cannot be empty",
        ),
        (
            "select pg_notify(repeat('x', 64), '')",
            "channel name too long",
        ),
        (
            "select pg_notify('x', repeat('x', 8000))",
            "payload string too long",
        ),
    ] {
        assert_eq!(
            a.fails(sql),
            ("22023".to_owned(), message.to_owned()),
            "{sql}"
        );
    }
    a.ok("select pg_notify(repeat('x', 63), repeat('y', 7999)), pg_notify('z', null)");
    assert_eq!(a.state("notify a 5"), "42601");
    a.ok("begin");
    assert_eq!(a.state("select 1/0"), "22012");
    for sql in ["listen a", "notify a", "unlisten a"] {
        assert_eq!(a.state(sql), "25P02");
    }
}

#[test]
fn all_hear_messages_in_one_order() {
    let (database, [mut a, mut b]) = clients();
    a.ok("listen n");
    b.ok("listen n");
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let database = &database;
            scope.spawn(move || {
                let mut client = client(database, 10 + writer);
                for number in 0..30 {
                    client.ok(&format!("notify n, '{writer}.{number}'"));
                }
            });
        }
    });
    let all = heard(&mut a);
    assert_eq!(all.split(' ').count(), 90);
    assert_eq!(heard(&mut b), all);
}

#[test]
fn who_does_not_take_its_messages_bounds_what_may_be_said() {
    let (_database, [mut a, mut b, mut c]) = clients();
    a.ok("listen n");
    a.ok("begin");
    let fill =
        "select count(pg_notify('n', g || repeat('x', 7000))) from generate_series(1, 5000) g";
    b.ok(fill);
    assert_eq!(b.ok("select pg_notification_queue_usage() > 0.5"), "t");
    assert_eq!(b.state(fill), "54000");
    c.ok("notify other");
    a.ok("commit");
    assert_eq!(a.session.take_notifications().len(), 5000);
    b.ok("notify n");
    assert_eq!(heard(&mut a), "2:n:");
}
