//! FOREIGN KEY.

use super::client::{Client, Heard, database};
use std::thread;

fn family(actions: &str) -> Client {
    let mut client = Client::new();
    client.ok(&format!(
        "create table p (id int primary key, u text unique, n int);
         create table c (id int primary key, p int default 9 references p {actions});
         insert into p values (1, 'a', 0), (2, 'b', 0), (9, 'z', 0);
         insert into c values (10, 1), (11, 1), (20, 2), (30, null)"
    ));
    client
}

#[test]
fn a_row_needs_its_target() {
    let mut client = family("");
    let (state, message) = client.fails("insert into c values (40, 4)");
    assert_eq!(state, "23503");
    assert_eq!(
        message,
        "insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\""
    );
    assert_eq!(client.state("update c set p = 5 where id = 10"), "23503");
    client.ok("update c set p = 2 where id = 10; insert into c values (40, null)");
    let (state, message) = client.fails("delete from p where id = 2");
    assert_eq!(state, "23503");
    assert_eq!(
        message,
        "update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\""
    );
    assert_eq!(client.state("update p set id = 7 where id = 2"), "23503");
    client.ok(
        "update p set n = 1 where id = 2; delete from c where p = 2; delete from p where id = 2",
    );
    assert_eq!(
        client.ok("select id, p from c order by id"),
        "11|1\n30|~\n40|~"
    );
}

#[test]
fn what_refers_to_a_row_follows_it() {
    let mut client = family("on delete cascade on update cascade");
    client.ok("create table g (c int references c on delete cascade, primary key (c)); insert into g values (10), (20)");
    client.ok("update p set id = 3 where id = 1");
    assert_eq!(
        client.ok("select id, p from c order by id"),
        "10|3\n11|3\n20|2\n30|~"
    );
    client.ok("delete from p where id = 3");
    assert_eq!(client.ok("select id from c order by id"), "20\n30");
    assert_eq!(client.ok("select c from g"), "20");
    let mut client = family("on delete set null on update set default");
    client.ok("update p set id = 3 where id = 1; delete from p where id = 2");
    assert_eq!(
        client.ok("select id, p from c order by id"),
        "10|9\n11|9\n20|~\n30|~"
    );
    assert_eq!(client.state("update p set id = 8 where id = 9"), "23503");
}

#[test]
fn a_key_is_checked_when_the_statement_ends() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, up int references t on delete cascade)");
    client.ok("insert into t values (3, 2), (2, 1), (1, null)");
    assert_eq!(client.state("insert into t values (5, 6)"), "23503");
    // Another row takes the key over.
    let mut other = family("");
    other.ok("delete from c where p = 2; update p set id = id - 1 where id < 3");
    assert_eq!(
        other.ok("select p.u from p join c on c.p = p.id where c.id = 10"),
        "b"
    );
    client.ok("delete from t where id = 1");
    assert_eq!(client.ok("select count(*) from t"), "0");
}

#[test]
fn a_key_of_several_columns_and_other_widths_finds_its_target() {
    let mut client = Client::new();
    client.ok("create table p (a int, b text, unique (b, a));
        create table c (x bigint, y varchar(5), foreign key (x, y) references p (a, b) on update cascade);
        create index on c (x, y); insert into p values (1, 'one'), (2, 'two'), (null, 'one')");
    client.ok("insert into c values (1, 'one'), (2, null), (null, 'no')");
    assert_eq!(client.state("insert into c values (1, 'two')"), "23503");
    assert_eq!(
        client.state("insert into c values (1099511627776, 'two')"),
        "23503"
    );
    client.ok("update p set b = 'uno' where a = 1");
    assert_eq!(client.ok("select y from c where x = 1"), "uno");
    for (sql, state) in [
        ("create table d (x int references c (x))", "42830"),
        (
            "create table d (x int, y int, foreign key (x, y) references p (a, b))",
            "42804",
        ),
        ("create table d (x int references p)", "42704"),
        ("create table d (x int references nobody)", "42P01"),
        (
            "create table d (x int, foreign key (x) references p (a, b))",
            "42830",
        ),
        ("drop table p", "2BP01"),
        ("truncate p", "0A000"),
        ("alter table p drop constraint p_b_a_key", "2BP01"),
        ("alter table p drop column a", "2BP01"),
    ] {
        assert_eq!(client.state(sql), state, "{sql}");
    }
    client.ok("alter table c add constraint mine foreign key (y, x) references p (b, a)");
    assert_eq!(client.state("delete from p where a = 1"), "23503");
    client.ok("alter table c drop constraint mine; alter table c drop constraint c_x_y_fkey; delete from p");
    assert_eq!(
        client.state("alter table c add foreign key (x, y) references p (a, b)"),
        "23503"
    );
    client.ok("delete from c; alter table c add foreign key (x, y) references p (a, b)");
    assert_eq!(
        client.hear("drop table p cascade").notices,
        ["drop cascades to constraint c_x_y_fkey on table c"]
    );
    client.ok("insert into c values (5, 'any')");
}

#[test]
fn tables_that_refer_to_each_other_are_dropped_and_truncated_together() {
    let mut client = family("");
    client.ok("truncate p, c; insert into p values (1); insert into c values (1, 1)");
    assert_eq!(
        client.hear("truncate p cascade").notices,
        ["truncate cascades to table \"c\""]
    );
    assert_eq!(client.ok("select count(*) from c"), "0");
    client.ok("drop table p, c");
}

#[test]
fn who_inserts_a_child_and_who_deletes_its_parent_wait_for_each_other() {
    for level in ["read committed", "repeatable read"] {
        for (first, second, state) in [
            (
                "insert into c values (1, 1)",
                "delete from p where id = 1",
                "23503",
            ),
            (
                "delete from p where id = 1",
                "insert into c values (1, 1)",
                "23503",
            ),
        ] {
            let database = database();
            let (mut a, mut b) = (Client::of(&database), Client::of(&database));
            a.ok("create table p (id int primary key, n int); create table c (id int primary key, p int references p);
                insert into p values (1, 0)");
            b.ok(&format!("begin isolation level {level}; select 1 from p"));
            a.ok(&format!("begin; {first}"));
            b.ok("set lock_timeout = 20; savepoint s");
            assert_eq!(b.state(second), "55P03", "{second}");
            b.ok("rollback to s; set lock_timeout = 0");
            let waiter = thread::spawn(move || {
                let done = b.session.simple_query(second, &mut Heard::default());
                done.unwrap_err().sqlstate().to_string()
            });
            a.ok("commit");
            let found = waiter.join().unwrap();
            // The target is there in its snapshot: another try will tell.
            let old = level == "repeatable read" && second.starts_with("insert");
            assert_eq!(found, if old { "40001" } else { state }, "{level}");
            assert_eq!(
                a.ok("select count(*) from c left join p on p.id = c.p where p.id is null"),
                "0"
            );
        }
    }
}

#[test]
fn children_of_one_parent_do_not_wait_for_each_other_nor_for_its_other_columns() {
    let database = database();
    let mut clients = [(); 3].map(|()| Client::of(&database));
    let [a, b, c] = &mut clients;
    a.ok("create table p (id int primary key, n int); create table c (id int primary key, p int references p);
        insert into p values (1, 0)");
    a.ok("begin; insert into c values (1, 1)");
    b.ok("set lock_timeout = 20; begin; insert into c values (2, 1)");
    c.ok("set lock_timeout = 20; begin; update p set n = n + 1");
    a.ok("insert into c values (3, 1); commit");
    b.ok("commit");
    c.ok("commit");
    assert_eq!(a.ok("select count(*) from c"), "3");
}

/// Waits until a session waits for another one.
fn until_one_waits(client: &mut Client) {
    while client.ok("select count(*) from pg_locks where not granted") == "0" {
        thread::yield_now();
    }
}

/// The snapshot of a statement that takes its time is old: beneath a row that is not committed it shows one that is gone, or none where one is by now.
#[test]
fn regress_a_target_beneath_a_row_that_is_not_committed_is_looked_at_as_of_now() {
    for (before, meanwhile, uncommitted, expected) in [
        (
            "insert into p values (1, 0)",
            "delete from p where id = 1",
            "insert into p values (1, 0)",
            "23503",
        ),
        (
            "",
            "insert into p values (1, 0)",
            "update p set n = 1 where id = 1",
            "",
        ),
    ] {
        for end in ["rollback", "commit"] {
            let database = database();
            let mut clients = [(); 3].map(|()| Client::of(&database));
            let [a, b, c] = &mut clients;
            a.ok("create table p (id int primary key, n int); create table c (id int primary key, p int references p)");
            b.ok(&format!("{before}; select pg_advisory_lock(7)"));
            thread::scope(|scope| {
                let child = scope.spawn(|| {
                    let sql = "insert into c select 1, 1 from pg_advisory_lock(7)";
                    let done = a.session.simple_query(sql, &mut Heard::default());
                    let state = done.map_err(|error| error.sqlstate().to_string());
                    state.err().unwrap_or_default()
                });
                until_one_waits(b);
                b.ok(meanwhile);
                c.ok(&format!("begin; {uncommitted}"));
                b.ok("select pg_advisory_unlock(7)");
                assert_eq!(child.join().unwrap(), expected, "{uncommitted}");
            });
            c.ok(end);
            let orphans = "select count(*) from c left join p on p.id = c.p where p.id is null";
            assert_eq!(c.ok(orphans), "0", "{uncommitted}, {end}");
        }
    }
}

#[test]
fn regress_a_target_that_was_deleted_since_an_old_snapshot_is_gone_though_another_inserts_it() {
    for end in ["rollback", "commit"] {
        let database = database();
        let mut clients = [(); 3].map(|()| Client::of(&database));
        let [a, b, c] = &mut clients;
        a.ok(
            "create table p (id int primary key); create table c (id int primary key, p int references p);
             insert into p values (1)",
        );
        a.ok("begin isolation level repeatable read; select count(*) from p");
        b.ok("delete from p where id = 1");
        c.ok("begin; insert into p values (1)");
        assert_eq!(a.state("insert into c values (1, 1)"), "40001", "{end}");
        c.ok(end);
        a.hear("rollback");
    }
}

/// An index may have a column twice, and none of another column of the key.
#[test]
fn regress_children_of_another_key_are_left_alone_whatever_indexes_there_are() {
    for index in ["", "(a, a)", "(a, b)", "(b, a)", "(b, b, a)", "(a, a, b)"] {
        let mut client = Client::new();
        client.ok("create table p (a int, b int, primary key (a, b));
             create table c (id int primary key, a int, b int,
                foreign key (a, b) references p on delete cascade on update cascade);
             insert into p values (1, 1), (1, 2), (2, 1);
             insert into c values (11, 1, 1), (12, 1, 2), (21, 2, 1)");
        if !index.is_empty() {
            client.ok(&format!("create index on c {index}"));
        }
        client.ok("update p set b = 7 where b = 2");
        let children = "select id, a, b from c order by id";
        assert_eq!(client.ok(children), "11|1|1\n12|1|7\n21|2|1", "{index}");
        client.ok("delete from p where a = 1 and b = 1");
        assert_eq!(client.ok(children), "12|1|7\n21|2|1", "{index}");
    }
}

/// A referred key is another one as soon as its image is; a foreign key is not, as in PostgreSQL.
#[test]
fn regress_actions_follow_a_key_that_is_equal_and_has_another_form() {
    for (ty, old, new, shown) in [
        ("numeric", "1.0", "1.00", "1.00"),
        ("float8", "0", "'-0'", "-0"),
        ("interval", "'1 month'", "'30 days'", "30 days"),
    ] {
        for (action, expected) in [
            ("cascade", Some(shown)),
            ("set null", Some("~")),
            ("restrict", None),
            ("no action", Some("")),
        ] {
            let mut client = Client::new();
            client.ok(&format!(
                "create table p (k {ty} primary key);
                 create table c (id int primary key, k {ty} references p on update {action});
                 insert into p values ({old}); insert into c values (1, {old})"
            ));
            let before = client.ok("select k from c");
            let change = format!("update p set k = {new}");
            match expected {
                None => assert_eq!(client.state(&change), "23503", "{ty}"),
                Some(expected) => {
                    client.ok(&change);
                    let expected = match expected {
                        "" => before.as_str(),
                        other => other,
                    };
                    assert_eq!(client.ok("select k from c"), expected, "{ty}, {action}");
                    assert_eq!(client.ok("select k from p"), shown, "{ty}, {action}");
                }
            }
        }
    }
}

/// Its own snapshot has the child elsewhere.
#[test]
fn regress_a_child_that_others_moved_to_a_key_holds_it_against_an_old_delete() {
    for action in ["", "on delete cascade", "on delete set null"] {
        let database = database();
        let (mut a, mut b) = (Client::of(&database), Client::of(&database));
        a.ok(&format!(
            "create table p (id int primary key); create table c (id int primary key, p int references p {action});
             insert into p values (1), (2); insert into c values (7, 1)"
        ));
        b.ok("begin isolation level repeatable read; select 1 from c");
        a.ok("update c set p = 2");
        let expected = if action.is_empty() { "23503" } else { "40001" };
        assert_eq!(b.state("delete from p where id = 2"), expected);
        b.ok("rollback; begin isolation level repeatable read; delete from c; delete from p where id = 2; commit");
    }
}

#[test]
fn regress_who_deletes_a_parent_waits_for_who_deletes_its_child() {
    for level in ["read committed", "repeatable read"] {
        for (end, expected) in [("commit", ""), ("rollback", "23503")] {
            let database = database();
            let (mut a, mut b) = (Client::of(&database), Client::of(&database));
            a.ok("create table p (id int primary key); create table c (id int primary key, p int references p);
                insert into p values (1), (2); insert into c values (7, 2)");
            b.ok(&format!("begin isolation level {level}; select 1 from c"));
            a.ok("begin; delete from c");
            b.ok("set lock_timeout = 20; savepoint s");
            assert_eq!(b.state("delete from p where id = 2"), "55P03");
            b.ok("rollback to s; set lock_timeout = 0");
            let waiter = thread::spawn(move || {
                let sql = "delete from p where id = 2";
                let done = b.session.simple_query(sql, &mut Heard::default());
                let state = done.map_err(|error| error.sqlstate().to_string());
                b.ok(if state.is_ok() { "commit" } else { "rollback" });
                state.err().unwrap_or_default()
            });
            a.ok(end);
            assert_eq!(waiter.join().unwrap(), expected, "{level} {end}");
        }
    }
}

/// Symptom: a false `40001`, at once, though the other rolls back.
#[test]
fn regress_a_delete_that_follows_to_a_child_waits_for_who_changes_that() {
    for action in ["cascade", "set null"] {
        for (end, expected) in [("commit", "40001"), ("rollback", "")] {
            let database = database();
            let (mut a, mut b) = (Client::of(&database), Client::of(&database));
            a.ok(&format!(
                "create table p (id int primary key);
                 create table c (id int primary key, p int references p on delete {action}, x int);
                 insert into p values (1); insert into c values (7, 1, 0)"
            ));
            b.ok("begin isolation level repeatable read; select 1 from c");
            a.ok("begin; update c set x = 5");
            b.ok("set lock_timeout = 20; savepoint s");
            assert_eq!(b.state("delete from p"), "55P03", "{action}");
            b.ok("rollback to s; set lock_timeout = 0");
            let waiter = thread::spawn(move || {
                let done = b
                    .session
                    .simple_query("delete from p", &mut Heard::default());
                let state = done.map_err(|error| error.sqlstate().to_string());
                b.ok(if state.is_ok() { "commit" } else { "rollback" });
                state.err().unwrap_or_default()
            });
            a.ok(end);
            assert_eq!(waiter.join().unwrap(), expected, "{action} {end}");
            let left = a.ok("select (select count(*) from p), (select count(p) from c)");
            let unchanged = expected == "40001";
            assert_eq!(left, if unchanged { "1|1" } else { "0|0" });
        }
    }
}

#[test]
fn a_foreign_key_that_is_added_to_a_large_table_is_looked_at_to_its_end() {
    let mut client = Client::new();
    // More than is read at a time.
    client.ok(
        "create table p (id int primary key); create table c (id int primary key, p int, note text);
         insert into p select generate_series(1, 100);
         insert into c select g, g % 100 + 1, repeat('x', 200) from generate_series(1, 45000) g;
         insert into c values (45001, 101, 'no target')",
    );
    let (state, message) = client.fails("alter table c add foreign key (p) references p");
    assert_eq!(state, "23503");
    assert_eq!(
        message,
        "insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\""
    );
    client.ok("delete from c where id = 45001; alter table c add foreign key (p) references p");
    assert_eq!(client.state("insert into c values (45001, 101)"), "23503");
}

/// Symptom: `53200`. Cause: all rows that refer to a key were found before the first was looked at.
#[test]
fn regress_a_key_that_many_refer_to_stays_however_little_memory_there_is() {
    for action in ["no action", "restrict"] {
        let mut client = Client::new();
        client.ok(&format!(
            "create table p (id int primary key);
             create table c (id int primary key, p int references p on delete {action} on update {action}, note text);
             insert into p values (1), (2);
             insert into c select g, 1, repeat('x', 100) from generate_series(1, 5000) g;
             set work_mem = '64kB'"
        ));
        assert_eq!(client.state("delete from p where id = 1"), "23503");
        assert_eq!(client.state("update p set id = 3 where id = 1"), "23503");
        client.ok("delete from p where id = 2");
    }
}

#[test]
fn targets_of_many_rows_are_looked_at_wherever_they_come_from() {
    let mut client = Client::new();
    client.ok(
        "create table p (id int primary key); create table c (id int primary key, p int references p);
         insert into p select generate_series(1, 100);
         create table tree (id int primary key, up int references tree)",
    );
    let many = "insert into c select g, case when g = 9999 then 101 else g % 100 + 1 end from generate_series(1, 10000) g";
    assert_eq!(client.state(many), "23503");
    client.ok(&many.replace("9999", "0"));
    assert_eq!(client.state("update c set p = p + 1"), "23503");
    client.ok("update c set p = 101 - p");
    // Each refers to one that comes behind it, the last to none.
    client.ok("insert into tree select g, nullif(g + 1, 10001) from generate_series(1, 10000) g order by 1");
    let hole = "insert into tree select g, g + 1 from generate_series(10002, 20000) g order by 1";
    assert_eq!(client.state(hole), "23503");
    // The targets of some are deleted by the same statement.
    let taken = "with gone as (delete from p where id = 7) insert into c select g, g % 100 + 1 from generate_series(10001, 20000) g";
    assert_eq!(client.state(taken), "23503");
    assert_eq!(client.ok("select count(*), max(id) from c"), "10000|10000");
}

#[test]
fn more_rows_than_memory_holds_follow_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let database = database();
    database.set_spill_directory(directory.path().join("spill"));
    let mut client = Client::of(&database);
    client.ok(
        "create table p (id int primary key);
         create table c (id int primary key, p int references p on delete cascade on update cascade, note text);
         create table n (id int primary key, p int references p on delete set null on update cascade, note text);
         insert into p select generate_series(1, 3);
         insert into c select g, 1 + g % 2, repeat('x', 400) || g from generate_series(1, 8000) g;
         insert into n select id, p, note from c;
         set work_mem = '64kB'",
    );
    client.ok("update p set id = 4 where id = 1");
    assert_eq!(
        client.ok("select p, count(*), min(id), max(id) from c group by p order by p"),
        "2|4000|1|7999\n4|4000|2|8000"
    );
    client.ok("delete from p where id = 2");
    assert_eq!(client.ok("select count(*), min(p) from c"), "4000|4");
    assert_eq!(client.ok("select count(*), count(p) from n"), "8000|4000");
}

/// Symptom: `53200`. Cause: rows that are sorted were still counted as kept, and all that refer to a key were found again beside the transaction.
#[test]
fn more_rows_than_memory_holds_follow_a_key_under_repeatable_read() {
    let directory = tempfile::tempdir().unwrap();
    let database = database();
    database.set_spill_directory(directory.path().join("spill"));
    let mut client = Client::of(&database);
    client.ok(
        "create table p (id int primary key);
         create table c (id int primary key, p int references p on delete cascade on update cascade, note text);
         create table g (id int primary key, c int references c on delete cascade);
         create table k (id int primary key, p int references p, note text);
         insert into p select generate_series(1, 4);
         insert into c select g, 1 + g % 2, repeat('x', 400) || g from generate_series(1, 8000) g;
         insert into g select id, id from c;
         insert into k select g, 3, repeat('x', 400) || g from generate_series(1, 8000) g;
         create index on c (p); create index on g (c);
         set work_mem = '64kB'",
    );
    client.ok("begin isolation level repeatable read; update p set id = 5 where id = 1; delete from p where id = 2; commit");
    assert_eq!(client.ok("select p, count(*) from c group by p"), "5|4000");
    assert_eq!(client.ok("select count(*) from g"), "4000");
    client.ok("begin isolation level repeatable read");
    assert_eq!(client.state("delete from p where id = 3"), "23503");
    client.ok("rollback");
    client.ok(
        "begin isolation level repeatable read; delete from k; delete from p where id = 3; commit",
    );
    assert_eq!(client.ok("select id from p order by id"), "4\n5");
}

/// Symptom: whoever emptied or altered a table kept writers out of those that it refers to, and of those that refer to it, whatever they wrote.
#[test]
fn regress_an_update_that_leaves_keys_alone_needs_no_other_table() {
    let database = super::client::database();
    let [mut a, mut b] = [(); 2].map(|()| Client::of(&database));
    a.ok(
        "create table p (id int primary key, u int unique, v int, w int generated always as (v + 1) stored unique);
         create table c (id int primary key, p int references p on update cascade, u int references p (u), w int references p (w), x int);
         create table f (a int, b int, x int);
         create unique index on p (id, u); alter table f add foreign key (a, b) references p (id, u) match full;
         insert into p values (1, 1, 1), (2, 2, 2); insert into c values (1, 1, 1, 2, 0); insert into f values (1, 1, 0)",
    );
    b.ok("set lock_timeout = 100");
    let mut beside = |held: &str, goes: &[&str], waits: &[&str]| {
        a.ok(&format!("begin; {held}"));
        for sql in goes {
            b.ok(&format!("begin; {sql}; rollback"));
        }
        for sql in waits {
            assert_eq!(b.state(sql), "55P03", "{held}: {sql}");
        }
        a.ok("rollback");
    };
    beside(
        "truncate c",
        &[
            "insert into p values (8, 8, 8)",
            "insert into p values (1, 1, 1) on conflict (id) do nothing",
        ],
        &[
            "update p set id = 9 where id = 2",
            "update p set u = 9 where id = 2",
            "update p set v = 9 where id = 2",
            "delete from p where id = 2",
            "insert into p values (1, 1, 1) on conflict (id) do update set u = 9",
        ],
    );
    beside(
        "lock table p",
        &["update c set x = 1"],
        &[
            "update c set p = 2",
            "update c set x = 1, u = 2",
            "insert into c values (2, 1, 1, 2, 0)",
        ],
    );
    beside("lock table c, f", &["insert into p values (8, 8, 8)"], &[]);
    a.ok("alter table p drop column w cascade");
    let mut beside = |held: &str, goes: &str| {
        a.ok(&format!("begin; {held}"));
        b.ok(goes);
        a.ok("commit");
    };
    for held in ["truncate c", "alter table c add y int", "lock table c, f"] {
        beside(held, "update p set v = v + 1");
    }
    assert_eq!(b.ok("select sum(v) from p"), "9");
    // What it leaves alone is looked at all the same by who changes it.
    b.ok("insert into c values (1, 1, 1, 0); delete from f");
    assert_eq!(b.state("update p set u = 7 where id = 1"), "23503");
    b.ok("update p set v = 3, id = 7 where id = 1");
    assert_eq!(b.ok("select p from c"), "7");
    assert_eq!(b.state("update c set x = 3, u = 77"), "23503");
    super::client::assert_sound(&database);
}
