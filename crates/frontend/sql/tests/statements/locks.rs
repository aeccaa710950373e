//! Who blocks whom, and who waits in a circle: two and three sessions.

use super::client::{Client, database};
use std::thread;
use vellum_sql::SqlDatabase;

/// A table of rows 1 to 4, each with n = 0 and another unique column, and so many clients.
fn table<const N: usize>() -> (SqlDatabase, [Client; N]) {
    let database = database();
    let mut clients = [(); N].map(|()| Client::of(&database));
    clients[0].ok("create table t (id int primary key, n int, u int unique);
        insert into t select g, 0, g from generate_series(1, 4) g");
    (database, clients)
}

const STRENGTHS: [&str; 4] = ["key share", "share", "no key update", "update"];

#[test]
fn locks_on_rows_go_together_as_in_postgresql() {
    let (_database, [mut a, mut b]) = table();
    b.ok("set lock_timeout = 20");
    let changes = [
        ("update t set n = n + 1 where id = 1", 2),
        ("update t set u = u + 10 where id = 1", 3),
        ("delete from t where id = 1", 3),
    ];
    let conflicts = |held: usize, asked: usize| match held.min(asked) {
        0 => held.max(asked) == 3,
        1 => held.max(asked) >= 2,
        _ => true,
    };
    for (held, word) in STRENGTHS.into_iter().enumerate() {
        a.ok(&format!("begin; select * from t where id = 1 for {word}"));
        for (asked, other) in STRENGTHS.into_iter().enumerate() {
            b.ok("begin");
            let sql = format!("select id from t where id = 1 for {other} nowait");
            if conflicts(held, asked) {
                assert_eq!(b.state(&sql), "55P03", "{word} against {other}");
                assert_eq!(b.hear("rollback").tags, ["ROLLBACK"]);
                let sql = format!("select id from t where id < 3 for {other} skip locked");
                assert_eq!(b.ok(&sql), "2", "{word} against {other}");
            } else {
                assert_eq!(b.ok(&sql), "1", "{word} against {other}");
                b.ok("rollback");
            }
        }
        for (sql, strength) in changes {
            b.ok("begin");
            if conflicts(held, strength) {
                assert_eq!(b.state(sql), "55P03", "{word} against {sql}");
            } else {
                b.ok(sql);
            }
            b.ok("rollback");
        }
        a.ok("rollback");
    }
    // And the other way round: changes against locks.
    for (change, strength) in changes {
        a.ok(&format!("begin; {change}"));
        for (asked, other) in STRENGTHS.into_iter().enumerate() {
            let sql = format!("select id from t where id = 1 for {other} nowait");
            if conflicts(strength, asked) {
                assert_eq!(b.state(&sql), "55P03", "{other} after {change}");
            } else {
                assert_eq!(b.ok(&sql), "1", "{other} after {change}");
            }
        }
        a.ok("rollback");
    }
    assert_eq!(b.ok("select sum(n), count(*) from t"), "0|4");
}

#[test]
fn a_writer_under_repeatable_read_waits_and_fails_only_if_the_other_commits() {
    for (end, expected) in [("commit", Err("40001")), ("rollback", Ok(()))] {
        let (_database, [mut a, mut b]) = table();
        a.ok("begin; update t set n = 10 where id = 1");
        b.ok("begin isolation level repeatable read; select 1 from t");
        let waiter = thread::spawn(move || {
            let mut heard = super::client::Heard::default();
            let sql = "update t set n = n + 1 where id = 1";
            let done = b.session.simple_query(sql, &mut heard);
            (done.map_err(|error| error.sqlstate().to_string()), b)
        });
        a.ok(end);
        let (done, mut b) = waiter.join().unwrap();
        match expected {
            Ok(()) => {
                done.unwrap();
                b.ok("commit");
                assert_eq!(a.ok("select n from t where id = 1"), "1");
            }
            Err(state) => assert_eq!(done.unwrap_err(), state),
        }
    }
}

/// What is seen is gone: another transaction has put a row in its place, or changes what was put there since.
#[test]
fn regress_for_key_share_believes_no_old_row_beneath_one_that_is_not_committed() {
    for (level, gone, changed) in [
        // Its key has stayed, as in PostgreSQL.
        ("repeatable read", Err("40001"), Ok("1|0")),
        ("read committed", Ok(""), Ok("1|5")),
    ] {
        let (_database, [mut a, mut b, mut c]) = table();
        let lock = "select id, n from t where id = 1 for key share";
        let begin = format!("begin isolation level {level}; select count(*) from t");
        let expect = |client: &mut Client, expected: Result<&str, &str>| match expected {
            Ok(rows) => assert_eq!(client.ok(lock), rows, "{level}"),
            Err(state) => assert_eq!(client.state(lock), state, "{level}"),
        };
        a.ok(&begin);
        b.ok("update t set n = 5 where id = 1");
        c.ok("begin; update t set n = 6 where id = 1");
        expect(&mut a, changed);
        a.hear("rollback");
        c.ok("rollback");
        a.ok(&begin);
        b.ok("delete from t where id = 1");
        c.ok("begin; insert into t values (1, 7, 1)");
        expect(&mut a, gone);
        a.hear("rollback");
        c.ok("rollback");
    }
}

/// Under repeatable read a row that was changed since is held for its keys, where these have stayed, and told as the snapshot has it.
#[test]
fn regress_for_key_share_of_an_old_version_whose_keys_stand() {
    let (_database, [mut a, mut b, mut c]) = table();
    for client in [&mut a, &mut b, &mut c] {
        client.ok("set lock_timeout = 100");
    }
    b.ok("drop table t; create table t (id int primary key, u int unique, p int, n int); create unique index on t (p) where n > 0");
    for (change, keys_stay) in [
        ("update t set n = 5 where id = 1", true),
        (
            "update t set n = 5, p = 5, u = u, id = id where id = 1",
            true,
        ),
        ("update t set n = 5; update t set n = 6", true),
        ("update t set u = 5 where id = 1", false),
        ("update t set u = null where id = 1", false),
        ("update t set id = 7 where id = 1", false),
        ("delete from t where id = 1", false),
    ] {
        // Whether another writes the row at the time, too.
        for above in ["", "update t set n = 9 where id = 1"] {
            for strength in ["key share", "share", "no key update", "update"] {
                b.ok("truncate t; insert into t values (1, 1, 1, 1)");
                a.ok("begin isolation level repeatable read; select count(*) from t");
                b.ok(change);
                c.ok(&format!("begin; {above}"));
                let lock = format!("select n from t where id = 1 for {strength}");
                if strength == "key share" && keys_stay {
                    assert_eq!(a.ok(&lock), "1", "{change}");
                    c.ok("commit");
                    b.ok("update t set n = 8 where id = 1");
                    for waits in ["delete from t", "update t set u = 9", "update t set id = 9"] {
                        assert_eq!(b.state(waits), "55P03", "{change}, {waits}");
                    }
                } else {
                    let state = a.state(&lock);
                    let waits = !above.is_empty() && state == "55P03";
                    assert!(state == "40001" || waits, "{change}, {strength}: {state}");
                    c.ok("commit");
                }
                a.ok("rollback");
                b.ok("update t set u = 9, id = 9");
            }
        }
    }
}

#[test]
fn transactions_that_wait_in_a_circle_are_told_and_all_but_one_go_on() {
    for count in [2, 3] {
        let (database, [mut setup]) = table();
        let mut clients: Vec<Client> = (0..count).map(|_| Client::of(&database)).collect();
        for (client, id) in clients.iter_mut().zip(1..) {
            client.ok(&format!("begin; update t set n = 1 where id = {id}"));
        }
        let threads: Vec<_> = clients
            .into_iter()
            .zip(1..)
            .map(|(mut client, id)| {
                thread::spawn(move || {
                    let mut heard = super::client::Heard::default();
                    let next = id % count + 1;
                    let sql = format!("update t set n = 2 where id = {next}");
                    let done = client.session.simple_query(&sql, &mut heard);
                    client.ok(if done.is_ok() { "commit" } else { "rollback" });
                    done.map(|_| ())
                        .map_err(|error| error.sqlstate().to_string())
                })
            })
            .collect();
        let done: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        let failed: Vec<_> = done.iter().filter_map(|done| done.as_ref().err()).collect();
        assert_eq!(failed, ["40P01"], "{count}");
        let left = setup.ok("select count(*) from t where n > 0");
        assert_eq!(left, count.to_string(), "{count}");
    }
}

#[test]
fn a_queue_gives_each_row_to_one_consumer() {
    let (database, [mut setup]) = table();
    setup.ok(
        "create table q (id int primary key); insert into q select g from generate_series(1, 60) g",
    );
    let consumers: Vec<_> = (0..3)
        .map(|_| {
            let mut client = Client::of(&database);
            thread::spawn(move || {
                let mut taken: Vec<i32> = Vec::new();
                loop {
                    let row = client.ok("delete from q where id = (select id from q order by id
                        limit 1 for update skip locked) returning id");
                    match row.as_str() {
                        "" if client.ok("select count(*) from q") == "0" => return taken,
                        "" => {}
                        id => taken.push(id.parse().unwrap()),
                    }
                }
            })
        })
        .collect();
    let mut all: Vec<i32> = consumers
        .into_iter()
        .flat_map(|consumer| consumer.join().unwrap())
        .collect();
    all.sort_unstable();
    assert_eq!(all, (1..=60).collect::<Vec<_>>());
}

/// The form in which queues are written that change what they take: a query of WITH that locks, joined to what is changed, over an order that no index has.
#[test]
fn a_queue_by_a_query_of_with_gives_each_row_to_one_consumer() {
    let (database, [mut setup]) = table();
    setup.ok(
        "create table q (id int primary key, priority int, done bool not null default false);
        insert into q select g, g * 7 % 20 from generate_series(1, 60) g",
    );
    let consumers: Vec<_> = (0..3)
        .map(|_| {
            let mut client = Client::of(&database);
            thread::spawn(move || {
                let mut taken: Vec<i32> = Vec::new();
                loop {
                    let rows = client.ok("with next as (select id from q where not done
                            order by priority desc, id limit 3 for update skip locked)
                        update q set done = true from next where q.id = next.id returning q.id");
                    let before = taken.len();
                    taken.extend(rows.lines().map(|id| id.parse::<i32>().unwrap()));
                    let left = "select count(*) from q where not done";
                    if taken.len() == before && client.ok(left) == "0" {
                        return taken;
                    }
                }
            })
        })
        .collect();
    let taken = consumers
        .into_iter()
        .flat_map(|consumer| consumer.join().unwrap());
    let mut all: Vec<i32> = taken.collect();
    all.sort_unstable();
    assert_eq!(all, (1..=60).collect::<Vec<_>>());
}

/// What no program runs locks as a program does: the tables that are asked for, rows that are returned, as they are by then.
#[test]
fn rows_of_joins_are_locked() {
    let (_database, [mut a, mut b]) = table();
    a.ok("create table u (id int primary key, t int, w text);
        insert into u select g, g % 4 + 1, 'w' from generate_series(1, 8) g");
    b.ok("set lock_timeout = 20");
    let join = "select t.id, u.id from t join u on u.t = t.id";
    // By the order of u.w no index helps: the general way.
    a.ok(&format!(
        "begin; {join} where u.id = 3 order by u.w for update of t"
    ));
    assert_eq!(b.state("update t set n = 1 where id = 4"), "55P03");
    b.ok("update u set w = 'x' where id = 3; update t set n = 1 where id = 3");
    let skipping =
        format!("{join} where t.id > 2 order by u.w, u.id limit 3 for update skip locked");
    assert_eq!(b.ok(&skipping), "3|2\n3|6");
    assert_eq!(
        b.state(&format!("{join} order by 1 for share nowait")),
        "55P03"
    );
    a.ok("rollback");
    // Only what is returned.
    a.ok(&format!(
        "begin; {join} order by u.id desc offset 1 limit 2 for update"
    ));
    assert_eq!(
        b.ok("select id from u order by id for update skip locked"),
        "1\n2\n3\n4\n5"
    );
    a.ok("rollback");
    // A row that another has changed is looked at again, and is no row of the result any more.
    a.ok("begin; update u set t = 1 where id = 2");
    b.ok("set lock_timeout = 0");
    let sql = format!("{join} where t.id = 3 order by u.w for update");
    let waiter = thread::spawn(move || (b.ok(&sql), b));
    a.ok("commit");
    let (rows, mut b) = waiter.join().unwrap();
    assert_eq!(rows, "3|6");
    b.ok("begin isolation level repeatable read; select 1");
    a.ok("update u set w = 'new' where id = 6");
    assert_eq!(b.state(&format!("{join} order by u.w for update")), "40001");
    b.ok("rollback");
    // A plan is asked for: nothing is locked.
    a.ok(&format!("begin; explain {join} order by u.w for update;
        explain with c as (select id from t order by n for update) select * from u, c where u.t = c.id"));
    b.ok("update t set n = 2; update u set w = ''");
}

/// What stands for words that the parser does not know is shown as these.
#[test]
fn locks_of_views_are_shown_as_they_were_written() {
    let (_database, [mut a]) = table();
    for clause in [
        "FOR UPDATE OF x, y",
        "FOR NO KEY UPDATE OF x, \"Y y.\" NOWAIT",
        "FOR KEY SHARE SKIP LOCKED",
        "FOR KEY SHARE OF y",
    ] {
        let tables = "public.t AS x, public.t AS y, public.t AS \"Y y.\"";
        let query = format!("SELECT x.id FROM {tables} {clause}");
        a.ok(&format!("create or replace view v as {query}"));
        let shown = a.ok("select pg_get_viewdef('v'::regclass)");
        let from = "   FROM t x,\n    t y,\n    t \"Y y.\"";
        assert_eq!(shown, format!(" SELECT x.id\n{from}\n {clause};"));
    }
    assert_eq!(
        a.state("select 1 from t x, t y for update of x, public.y"),
        "42601"
    );
}

/// Of a query in FROM and of a view those rows are locked that come out of the query around them.
#[test]
fn rows_of_views_are_locked_where_they_are_returned() {
    let (_database, [mut a, mut b]) = table();
    a.ok("create view v as select id, n + 1 as m from t where id < 4; create view vv as select v.id, w.m from v join v w on w.id = v.id");
    for (query, locked) in [
        ("select * from v where id = 2 for update", "2"),
        ("select m from v order by id desc limit 1 for update", "3"),
        (
            "select x.id from (select * from t) x where n = 0 order by id offset 1 limit 2 for update",
            "1,2,3",
        ),
        ("select * from vv where id > 2 for update of vv", "3"),
        (
            "select id from (select id, n from (select * from v) y, (select 1 as n) z) x where id < 3 for update",
            "1,2",
        ),
        (
            "select t.id from t join v on v.id = t.id + 1 where t.id = 1 for update of v",
            "2",
        ),
        (
            "select t.id from t left join lateral (select t.id + 1 as k) l on true where t.id = 4 for update",
            "4",
        ),
        (
            "select * from (select id from t order by id limit 2) x where id = 1 for update",
            "1,2",
        ),
        (
            "select id from t where id = 4 for share for update of t",
            "4",
        ),
        ("select id from t where id = 3 for update of t, t", "3"),
    ] {
        a.ok(&format!("begin; {query}"));
        let free = b.ok(
            "select string_agg(id::text, ',') from (select id from t for update skip locked) x",
        );
        let all = ["1", "2", "3", "4"].into_iter();
        let held = all.filter(|id| !free.split(',').any(|free| free == *id));
        assert_eq!(held.collect::<Vec<_>>().join(","), locked, "{query}");
        a.ok("rollback");
    }
    assert_eq!(
        a.ok("with u as (update t set n = 5 where id = 1 returning id) select t.id from t join u on true order by 1 for update of t"),
        "2\n3\n4"
    );
}

#[test]
fn a_lock_ends_with_its_transaction_or_its_savepoint() {
    let (_database, [mut a, mut b]) = table();
    let nowait = "select n from t where id = 1 for share nowait";
    a.ok("begin; savepoint s; select * from t where id = 1 for update");
    assert_eq!(b.state(nowait), "55P03");
    a.ok("rollback to s");
    assert_eq!(b.ok(nowait), "0");
    a.ok("select * from t where id = 1 for update; commit");
    assert_eq!(b.ok(nowait), "0");
    a.ok("begin; select * from t where id = 1 for no key update");
    drop(a);
    assert_eq!(b.ok(nowait), "0");
}

#[test]
fn only_rows_that_are_returned_are_locked() {
    let (_database, [mut a, mut b]) = table();
    a.ok("begin; select id from t order by n, id limit 1 offset 1 for update");
    assert_eq!(b.ok("select id from t for update skip locked"), "3\n4");
    a.ok("rollback; begin");
    assert_eq!(
        a.ok("select a.id from t a join t b on b.id = a.id + 1 where a.id = 1 for update of b"),
        "1"
    );
    assert_eq!(b.ok("select id from t for update skip locked"), "1\n3\n4");
    assert_eq!(a.state("select 1 from t for update of nobody"), "42P01");
}

/// PostgreSQL takes LIMIT before and behind the locks.
#[test]
fn limits_may_stand_behind_the_locks() {
    let (_database, [mut a, mut b]) = table();
    a.ok("create table q (id int primary key, n int); insert into q select g, g % 3 from generate_series(1, 9) g");
    for (query, rows) in [
        ("select id from q order by id for update limit 2", "1\n2"),
        (
            "select id from q order by id desc for no key update of q nowait offset 1 limit 1",
            "8",
        ),
        (
            "select id from q order by id for key share skip locked fetch first 3 rows only",
            "1\n2\n3",
        ),
        (
            "select id from q order by id for share for update offset 7",
            "8\n9",
        ),
        (
            "select id from q order by id for update limit (select 1) for share",
            "1",
        ),
        (
            "select id from (select id from q order by id for update limit 4) s order by id desc limit 1",
            "4",
        ),
        (
            "select substring('forlimit' for 3), id from q order by id for update limit 1",
            "for|1",
        ),
        (
            "delete from q where id = (select id from q order by id for update skip locked limit 1) returning id",
            "1",
        ),
        (
            "select count(*) from q; select id from q order by id limit 1 for update",
            "8\n2",
        ),
    ] {
        assert_eq!(a.ok(query), rows, "{query}");
    }
    // Two consumers of a queue.
    let next = "select id from q order by id for update skip locked limit 1";
    a.ok("begin");
    b.ok("begin");
    assert_eq!(a.ok(next), "2");
    assert_eq!(b.ok(next), "3");
    a.ok("commit");
    b.ok("commit");
    assert_eq!(
        a.state("select id from q for update limit 1 limit 2"),
        "42601"
    );
    assert_eq!(
        a.state("select id from q limit 1 for update limit 2"),
        "42601"
    );
    assert_eq!(
        a.state("select id from q for update of nobody limit 1"),
        "42P01"
    );
}

#[test]
fn a_locked_row_is_returned_as_it_is_by_then() {
    let (_database, [mut a, mut b]) = table();
    a.ok("begin; update t set n = 7 where id = 1; delete from t where id = 2");
    let waiter = thread::spawn(move || b.ok("select id, n from t where id < 4 for update"));
    a.ok("commit");
    assert_eq!(waiter.join().unwrap(), "1|7\n3|0");
}

#[test]
fn queries_whose_rows_are_none_of_a_table_lock_nothing() {
    let (_database, [mut a]) = table();
    for sql in [
        "select count(*) from t for update",
        "select distinct n from t for update",
        "select n from t group by n for share",
        "select 1 from t a left join t b on true for update",
    ] {
        assert_eq!(a.state(sql), "0A000", "{sql}");
    }
    a.ok("begin read only");
    assert_eq!(a.state("select * from t for share"), "25006");
}

/// The key is free or taken once the other has ended, not before.
#[test]
fn regress_who_takes_a_unique_key_waits_for_who_gives_it_up() {
    for gives in [
        "delete from t where id = 1",
        "update t set u = 10 where id = 1",
    ] {
        for (takes, if_taken) in [
            ("insert into t values (9, 0, 1) returning id", "23505"),
            ("update t set u = 1 where id = 2 returning id", "23505"),
            (
                "insert into t values (9, 0, 1) on conflict do nothing returning id",
                "",
            ),
        ] {
            for end in ["commit", "rollback"] {
                let (_database, [mut a, mut b]) = table();
                a.ok(&format!("begin; {gives}"));
                b.ok("set lock_timeout = 20");
                assert_eq!(b.state(takes), "55P03", "{takes} after {gives}");
                b.ok("set lock_timeout = 0");
                let waiter = thread::spawn(move || {
                    let mut heard = super::client::Heard::default();
                    let done = b.session.simple_query(takes, &mut heard);
                    done.map_or_else(|error| error.sqlstate().to_string(), |_| heard.text())
                });
                a.ok(end);
                let expected = match end {
                    "commit" if takes.starts_with("insert") => "9",
                    "commit" => "2",
                    _ => if_taken,
                };
                assert_eq!(
                    waiter.join().unwrap(),
                    expected,
                    "{takes} after {gives}, {end}"
                );
            }
        }
    }
}

/// Modes of LOCK TABLE by what they are here: nothing, a writer's, alone.
const TABLE_MODES: [(&str, u8); 8] = [
    ("access share", 0),
    ("row share", 1),
    ("row exclusive", 1),
    ("share update exclusive", 2),
    ("share", 2),
    ("share row exclusive", 2),
    ("exclusive", 2),
    ("access exclusive", 2),
];

#[test]
fn locked_tables_keep_writers_and_each_other_out_but_no_readers() {
    let (_database, [mut a, mut b]) = table();
    b.ok("set lock_timeout = 20");
    for (held, how) in TABLE_MODES {
        a.ok(&format!("begin; lock table only t in {held} mode"));
        assert_eq!(b.ok("select count(*) from t"), "4", "{held}");
        for (asked, strength) in TABLE_MODES {
            let goes = how.min(strength) == 0 || how.max(strength) < 2;
            for nowait in ["", " nowait"] {
                b.ok("begin");
                let sql = format!("lock t in {asked} mode{nowait}");
                if goes {
                    assert_eq!(b.hear(&sql).tags, ["LOCK TABLE"]);
                } else {
                    let (state, message) = b.fails(&sql);
                    assert_eq!(state, "55P03", "{asked} beside {held}");
                    let expected = match nowait {
                        "" => "canceling statement due to lock timeout",
                        _ => "could not obtain lock on relation \"t\"",
                    };
                    assert_eq!(message, expected);
                }
                b.ok("rollback");
            }
        }
        for write in [
            "insert into t values (9)",
            "select * from t where id = 1 for update",
            "create index on t (n)",
        ] {
            b.ok("begin");
            let stays_out = how == 2 || (how == 1 && write.starts_with("create"));
            match stays_out {
                true => assert_eq!(b.state(write), "55P03", "{write} beside {held}"),
                false => drop(b.ok(write)),
            }
            b.ok("rollback");
        }
        a.ok("update t set n = n; commit");
    }
}

#[test]
fn locked_tables_are_refused_as_postgresql_refuses_them() {
    let (database, [mut a, mut b]) = table();
    a.ok("create view v as select 1 as n; create sequence s; create role r");
    assert_eq!(
        a.fails("lock table t"),
        (
            "25P01".to_owned(),
            "LOCK TABLE can only be used in transaction blocks".to_owned()
        )
    );
    for (sql, state) in [
        ("lock table nothing", "42P01"),
        ("lock table s", "42809"),
        ("lock table v", "0A000"),
        ("lock table t in no mode", "42601"),
    ] {
        a.ok("begin");
        assert_eq!(a.state(sql), state, "{sql}");
        a.ok("rollback");
    }
    a.ok("begin read only; lock table pg_class, v in access share mode; lock table t; commit");
    let mut role = Client::of_user(&database, "r");
    for (given, mode, may) in [
        ("select", "access share", true),
        ("select", "row share", false),
        ("insert", "row exclusive", true),
        ("insert", "row share", false),
        ("insert", "access share", false),
        ("truncate", "access exclusive", true),
        ("delete", "share", true),
    ] {
        a.ok(&format!("revoke all on t from r; grant {given} on t to r"));
        role.ok("begin");
        let sql = format!("lock table t in {mode} mode");
        match may {
            true => drop(role.ok(&sql)),
            false => assert_eq!(
                role.fails(&sql),
                (
                    "42501".to_owned(),
                    "permission denied for table t".to_owned()
                ),
                "{given}: {mode}"
            ),
        }
        role.ok("rollback");
    }
    // The snapshot is drawn behind the lock: what was committed meanwhile is seen.
    a.ok("begin isolation level repeatable read");
    b.ok("insert into t values (5, 0, 5); alter table t add column later int default 3");
    a.ok("lock table t in share mode");
    assert_eq!(a.ok("select count(*), max(later) from t"), "5|3");
    assert_eq!(
        a.state("set transaction isolation level read committed"),
        "25001"
    );
    a.ok("rollback");
    // A snapshot that is older than the definition is no good for writing.
    a.ok("begin isolation level repeatable read; select 1");
    b.ok("alter table t drop column later");
    assert_eq!(a.state("lock table t"), "40001");
    a.ok("rollback");
}

#[test]
fn tables_that_are_locked_in_a_circle_are_told() {
    // Two that have locked a table each; two that write one table and want it alone; a table against a row.
    let stories = [
        [
            "lock table t",
            "lock table u",
            "lock table u",
            "lock table t",
        ],
        [
            "insert into t values (10)",
            "insert into t values (11)",
            "lock table t",
            "alter table t add column m int",
        ],
        [
            "lock table u",
            "update t set n = 1 where id = 1",
            "update t set n = 2 where id = 1",
            "insert into u values (1)",
        ],
    ];
    for [first, second, third, fourth] in stories {
        let (_database, [mut a, mut b]) = table();
        a.ok("create table u (n int)");
        for client in [&mut a, &mut b] {
            client.ok("set lock_timeout = '30s'");
        }
        a.ok(&format!("begin; {first}"));
        b.ok(&format!("begin; {second}"));
        let run = |mut client: Client, sql: &'static str| {
            thread::spawn(move || {
                let mut heard = super::client::Heard::default();
                let done = client.session.simple_query(sql, &mut heard);
                client.ok("rollback");
                done.map_err(|error| error.sqlstate().to_string())
            })
        };
        let ends = [run(a, third), run(b, fourth)].map(|thread| thread.join().unwrap());
        let told = ends.iter().filter(|end| **end == Err("40P01".to_owned()));
        assert_eq!(told.count(), 1, "{third}: {ends:?}");
        assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1, "{third}");
    }
}
