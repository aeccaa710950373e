//! Cursors and portals whose queries are run as their rows are asked for.

use super::client::{Client, Heard, database, database_with};
use std::thread;
use vellum::Config;
use vellum_sql::{Parameters, Progress, SqlDatabase};
use vellum_sync::test_point::TestPoints;

const LEVELS: [&str; 2] = ["read committed", "repeatable read"];

fn with_rows(database: &SqlDatabase) -> Client {
    let mut client = Client::of(database);
    client.ok("create table t (id int primary key, g int, n int);
        create index on t (g, id); create index on t (n);
        insert into t select i, i % 7, i from generate_series(1, 500) i;
        create table u (t int, k int, primary key (t, k));
        insert into u select i, k from generate_series(1, 500) i, generate_series(1, 3) k where i % 4 <> 0 and k <= i % 4");
    client
}

/// Queries whose rows come as they are read.
const QUERIES: &[&str] = &[
    "select id, n from t",
    "select id from t order by id",
    "select id from t order by id desc",
    "select id, g from t where g = 3",
    "select id, g from t where g = 3 order by id desc",
    "select g, id from t order by g, id",
    "select g, id from t order by g desc, id desc",
    "select id from t where g in (5, 2, 9) and n % 2 = 0",
    "select id from t where id in (7, 3, 499, 1000, 20)",
    "select n from t where n between 100 and 300 order by n",
    "select n from t where n > 450 order by n desc limit 30 offset 7",
    "select id from t order by id limit 100 offset 3",
    "select id from t order by id limit 0",
    "select id from t where id = 77",
    "select id from t where false",
    "select t.id, u.k from t join u on u.t = t.id order by t.id",
    "select t.id, u.k from t left join u on u.t = t.id order by t.id",
    "select t.id, u.k from t left join u on u.t = t.id where t.g = 1 order by t.id limit 99 offset 2",
    // Operators stand still.
    "select t.id, u.k from t full join u on u.t = t.id and u.k = 2 order by t.id, u.k",
    "select id, sum(n) over (partition by g order by id) from t order by id",
    "select distinct on (g) g, id from t order by g, id desc",
    "select g, n % 3, count(*) from t group by rollup (g, n % 3) order by 1, 2, 3",
    "select a.id, b.id from t a join t b on a.n % 50 = b.n % 40 order by a.id, b.id limit 700 offset 3",
    "select id from t where exists (select from u where u.t = t.id and u.k = 3) order by n % 7, id",
    "select x.id, g from (select id, rank() over (order by n % 9, id) r from t) x join t on t.id = x.r order by x.id",
    // Others are run to their end.
    "select id, (select k from u where u.t = t.id order by k desc limit 1) from t order by n % 10, id",
    "select g, count(*) from t group by g order by g",
    "select distinct g from t order by g",
    "select id from t order by n % 10, id",
    "select generate_series(1, 10)",
    "select id from t where n = (select max(n) from t)",
];

#[test]
fn a_cursor_that_is_fetched_in_pieces_returns_what_its_query_returns() {
    let database = database();
    let mut client = with_rows(&database);
    for query in QUERIES {
        let whole = client.ok(query);
        for level in LEVELS {
            for size in [1, 2, 3, 50, 1000] {
                client.ok(&format!("begin isolation level {level}"));
                client.ok(&format!("declare c cursor for {query}"));
                let mut rows = Vec::new();
                loop {
                    let heard = client.hear(&format!("fetch {size} c"));
                    rows.extend(heard.text().lines().map(str::to_owned));
                    if heard.rows.len() < size {
                        break;
                    }
                }
                assert_eq!(rows.join("\n"), whole, "{query}: {size}, {level}");
                assert_eq!(
                    client.ok("fetch backward all c").lines().count(),
                    rows.len()
                );
                assert_eq!(client.ok("fetch all c"), whole, "{query}");
                client.ok("commit");
            }
        }
    }
}

#[test]
fn a_portal_that_is_fetched_in_pieces_returns_what_its_query_returns() {
    let database = database();
    let mut client = with_rows(&database);
    for query in QUERIES {
        let whole = client.ok(query);
        for size in [1, 3, 1000] {
            let session = &mut client.session;
            session.parse("", query, &[]).unwrap();
            session.bind("", "", Parameters::default(), &[]).unwrap();
            let mut heard = Heard::default();
            while session.execute("", size, &mut heard).unwrap() == Progress::Suspended {}
            session.sync().unwrap();
            assert_eq!(heard.text(), whole, "{query}: {size}");
        }
    }
}

/// As in PostgreSQL: what would fail is not reached.
#[test]
fn no_row_is_read_before_it_is_asked_for() {
    let database = database();
    let mut client = with_rows(&database);
    let query = "select 100 / (id - 300) from t order by id";
    for level in LEVELS {
        let begin = format!("begin isolation level {level}");
        client.ok(&begin);
        client.ok(&format!("declare c cursor for {query}"));
        for _ in 0..29 {
            assert_eq!(client.hear("fetch 10 c").rows.len(), 10);
        }
        assert_eq!(client.hear("fetch 9 c").rows.len(), 9);
        client.ok("savepoint s");
        assert_eq!(client.state("fetch c"), "22012", "{level}");
        for step in ["fetch c", "fetch backward 2 c", "move first in c"] {
            client.ok("rollback to s");
            let refused = ("55000".to_owned(), "portal \"c\" cannot be run".to_owned());
            assert_eq!(client.fails(step), refused, "{level}");
        }
        client.ok("rollback to s; close c; commit");
    }
}

#[test]
fn pieces_see_what_was_there_when_the_cursor_was_declared() {
    let database = database();
    let mut other = with_rows(&database);
    let mut client = Client::of(&database);
    let whole = other.ok("select id, n from t order by id");
    for level in LEVELS {
        for written in [false, true] {
            client.ok(&format!("begin isolation level {level}"));
            let mut expected = whole.clone();
            if written {
                // Its own writes from before are seen.
                client.ok("insert into t values (501, 0, 0)");
                expected.push_str("\n501|0");
            }
            client.ok("declare c cursor for select id, n from t order by id");
            let mut rows = client.ok("fetch 5 c");
            other.ok("update t set n = -n where id > 3; insert into t values (1000, 0, 0); delete from t where id = 400");
            client.ok(
                "savepoint s; insert into t values (900, 0, 0); update t set n = 5 where id = 3",
            );
            for step in ["fetch 10 c", "fetch 100 c"] {
                rows.push('\n');
                rows.push_str(&client.ok(step));
            }
            client.ok("rollback to s; delete from t where id = 2");
            rows.push('\n');
            rows.push_str(&client.ok("fetch all c"));
            assert_eq!(rows, expected, "{level}, {written}");
            assert_eq!(
                client.ok("fetch absolute -1 c"),
                expected.lines().last().unwrap()
            );
            client.ok("rollback");
            other.ok("update t set n = id; delete from t where id = 1000; insert into t values (400, 400 % 7, 400)");
        }
    }
}

#[test]
fn definitions_that_change_between_pieces_change_no_rows() {
    let database = database();
    let mut other = with_rows(&database);
    let mut client = Client::of(&database);
    for (change, own) in [
        ("create index on t (id desc)", true),
        ("create index on t (id desc)", false),
        ("alter table t add column c int default 1", false),
        ("alter table t alter column n type text", false),
        ("drop table u", false),
    ] {
        client.ok("begin; declare c cursor for select id, n, g from t order by id");
        let mut rows = client.ok("fetch 5 c");
        if own {
            client.ok(change);
        } else {
            other.ok(change);
        }
        rows.push('\n');
        rows.push_str(&client.ok("fetch all c"));
        client.ok("rollback");
        let expected: Vec<String> = (1..=500)
            .map(|id| format!("{id}|{id}|{}", id % 7))
            .collect();
        assert_eq!(rows, expected.join("\n"), "{change}");
    }
}

/// A table that is larger than `work_mem` is read through a portal where there is no place for files.
#[test]
fn a_portal_keeps_no_more_than_is_asked_for() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, body text);
        insert into t select g, repeat('x', 1000) || g from generate_series(1, 3000) g; set work_mem = '64kB'");
    let session = &mut client.session;
    session.parse("", "select id, body from t", &[]).unwrap();
    session.bind("", "", Parameters::default(), &[]).unwrap();
    let mut heard = Heard::default();
    while session.execute("", 10, &mut heard).unwrap() == Progress::Suspended {}
    session.sync().unwrap();
    assert_eq!(heard.rows.len(), 3000);
}

/// Symptom: a join of one row with many was read anew from its beginning for each FETCH. Guard: PI3 of `session/pieces`.
#[test]
fn regress_one_row_with_many_partners_is_not_read_again_and_again() {
    let database = database();
    let mut client = with_rows(&database);
    client.ok("create table v (t int, k int, primary key (t, k));
        insert into v select 1, k from generate_series(1, 20000) k");
    client.ok(
        "begin; declare c cursor for select t.id, v.k from t join v on v.t = t.id order by t.id",
    );
    let open = "select transactions_open from vellum_slots";
    assert_eq!(client.ok(open), "2");
    for number in 1..500 {
        let rows = client.ok("fetch 10 c");
        assert!(
            rows.starts_with(&format!("1|{}\n", number * 10 - 9)),
            "{rows}"
        );
    }
    // The rest was read, and its snapshot given back.
    assert_eq!(client.ok(open), "1");
    assert_eq!(client.hear("fetch all c").rows.len(), 20_000 - 4990);
    client.ok("commit");
}

/// Symptom: cursors took all places for transactions, those that are kept back for superusers, too, and waited for one. Guard: PI2 of `session/pieces`.
#[test]
fn regress_cursors_leave_places_to_others() {
    let mut config = Config::default()
        .pool_bytes(16 << 20)
        .background_threads(false);
    config.slots_max = 8;
    config.slots_reserved = 4;
    let database = database_with(config);
    let mut one = Client::of_session(&database, 1);
    one.ok("create table t (id int primary key); insert into t select generate_series(1, 100)");
    let open = "select transactions_open from vellum_slots";
    one.ok("begin");
    for (cursor, expected) in [("a", "2"), ("b", "3"), ("c", "3")] {
        one.ok(&format!("declare {cursor} cursor for select id from t"));
        assert_eq!(one.ok(open), expected, "two a session");
    }
    let whose = "select distinct pid from vellum_snapshots";
    assert_eq!(one.ok(whose), "1");
    let mut two = Client::of_session(&database, 2);
    two.ok("begin");
    for cursor in ["a", "b"] {
        two.ok(&format!("declare {cursor} cursor for select id from t"));
        assert_eq!(two.ok(open), "4", "the others are kept back");
    }
    for client in [&mut one, &mut two] {
        for cursor in ["a", "b"] {
            assert_eq!(client.ok(&format!("fetch 2 {cursor}")), "1\n2");
            assert_eq!(client.hear(&format!("fetch all {cursor}")).rows.len(), 98);
        }
    }
    assert_eq!(one.ok(open), "2");
}

/// Symptom: `XX001`. Cause: a piece under repeatable read found no table any more. Guard: PI4 of `session/pieces`.
#[test]
fn regress_own_definitions_between_pieces_take_no_rows_away() {
    for level in LEVELS {
        for change in [
            "drop table t",
            "truncate t",
            "alter table t alter column n type text",
            "alter table t drop column n",
            "drop index t_g_id_idx",
            "drop schema public cascade",
        ] {
            let database = database();
            let mut client = with_rows(&database);
            let whole = client.ok("select id, n from t where g = 3 order by id");
            client.ok(&format!("begin isolation level {level}"));
            client.ok("declare c cursor for select id, n from t where g = 3 order by id");
            let mut rows = client.ok("fetch 2 c");
            client.ok("declare f cursor for select 100 / (id - 300) from t order by id");
            client.ok(&format!("savepoint s; {change}"));
            rows.push('\n');
            rows.push_str(&client.ok("fetch 3 c"));
            client.ok("rollback to s");
            rows.push('\n');
            rows.push_str(&client.ok("fetch all c"));
            assert_eq!(rows, whole, "{change}, {level}");
            // What another one fails with is told where it is asked for.
            client.ok(change);
            assert_eq!(client.hear("fetch 299 f").rows.len(), 299);
            assert_eq!(client.state("fetch f"), "22012", "{change}, {level}");
            client.ok("rollback");
        }
    }
}

/// Symptom: a row was missed. Cause: the row that a portal stood at was taken back, and the next one passed over in its place. Guard: PC2 of `exec/pieces`. And where the block had failed the portal
/// could not be run any more.
#[test]
fn regress_rows_that_were_taken_back_are_passed_over_for_no_others() {
    for fails in [false, true] {
        let database = database();
        let mut client = with_rows(&database);
        let execute = |client: &mut Client| {
            let mut heard = Heard::default();
            let done = client.session.execute("p", 1, &mut heard);
            done.map(|_| heard.text())
                .map_err(|error| error.sqlstate().to_string())
        };
        client.ok("begin isolation level repeatable read");
        let query = "select t.id, u.k from t left join u on u.t = t.id order by t.id";
        client.session.parse("", query, &[]).unwrap();
        let session = &mut client.session;
        session.bind("p", "", Parameters::default(), &[]).unwrap();
        client
            .ok("savepoint s; insert into t values (0, 0, 0); insert into u values (0, 1), (0, 2)");
        assert_eq!(execute(&mut client).unwrap(), "0|1");
        if fails {
            assert_eq!(client.state("select 1 / 0"), "22012");
        }
        client.ok("rollback to s");
        for expected in ["1|1", "2|1", "2|2"] {
            assert_eq!(execute(&mut client).unwrap(), expected, "{fails}");
        }
        client.ok("rollback");
    }
}

/// The same, where the row's condition reads a setting.
#[test]
fn regress_a_row_that_goes_with_a_setting_takes_no_other_along() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, at timestamptz);
        set timezone = 'UTC'; insert into t values (1, '2000-01-01 23:00+00'), (2, '2000-01-01 10:00+00'), (3, '2000-01-01 11:00+00')");
    for level in LEVELS {
        client.ok(&format!("begin isolation level {level}"));
        client.ok(
            "declare c cursor for select id from t where at::date = date '2000-01-01' order by id",
        );
        assert_eq!(client.ok("fetch c"), "1");
        client.ok("set local timezone = 'Europe/Berlin'");
        assert_eq!(client.ok("fetch all c"), "2\n3", "{level}");
        client.ok("rollback");
    }
}

/// Symptom: a pipeline ended before what a portal had told in it was durable. Cause: the session's snapshot, until which its end waits, was older than the portal's. Guard: `begin_pieces`.
#[test]
fn regress_the_session_reads_as_late_as_its_cursor() {
    let database = database();
    let mut other = Client::of(&database);
    other.ok("create table t (id int primary key); insert into t values (1)");
    let mut client = Client::of_session(&database, 7);
    let points = TestPoints::new();
    let drawn = points.pause("pieces: a snapshot is drawn");
    let declares = thread::spawn(move || {
        let _entered = points.enter();
        client.ok("begin; declare c cursor for select id from t");
        client
    });
    drawn.wait_reached();
    other.ok("insert into t values (2)");
    drawn.release();
    let mut client = declares.join().unwrap();
    let snapshots = "select count(*), count(distinct snapshot) from vellum_snapshots where pid = 7";
    assert_eq!(other.ok(snapshots), "2|1");
    assert_eq!(client.ok("fetch all c"), "1\n2");
    client.ok("commit");
}
