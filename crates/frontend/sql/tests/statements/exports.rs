//! Snapshots that transactions export, and transactions that begin at them. What PostgreSQL 15 says of each was looked up there.

use super::client::{Client, Heard, database, database_that_promotes};
use vellum_sql::SqlDatabase;

const BEGIN: &str = "begin isolation level repeatable read";

fn sessions(database: &SqlDatabase) -> [Client; 3] {
    [1, 2, 3].map(|number| Client::of_session(database, number))
}

/// SET TRANSACTION SNAPSHOT of an identifier.
fn import(identifier: &str) -> String {
    format!("set transaction snapshot '{identifier}'")
}

/// SQLSTATE and message of a statement that fails.
fn refused(client: &mut Client, text: &str) -> String {
    let (state, message) = client.fails(text);
    format!("{state} {message}")
}

#[test]
fn an_exported_snapshot_is_seen_by_who_imports_it_as_long_as_they_like() {
    for level in ["read committed", "repeatable read"] {
        let database = database();
        let [mut a, mut b, mut c] = sessions(&database);
        a.ok("create table t (n int); insert into t values (1)");
        a.ok(&format!(
            "begin isolation level {level}; insert into t values (100)"
        ));
        let first = a.ok("select pg_export_snapshot()");
        c.ok("insert into t values (2)");
        let own = a.ok("select count(*) from t");
        assert_eq!(own, if level.starts_with("read") { "3" } else { "2" });
        // Nothing of what the exporting transaction has written.
        for text in ["insert into t values (10)", "delete from t"] {
            b.ok(BEGIN);
            b.ok(&import(&first));
            assert_eq!(b.ok("select n from t"), "1");
            b.ok(text);
            b.ok("rollback");
        }
        b.ok(BEGIN);
        b.ok(&import(&first));
        let second = b.ok("select pg_export_snapshot()");
        a.ok("commit");
        c.ok("delete from t where n = 1");
        assert_eq!(
            b.ok("select n from t; show transaction_isolation"),
            "1\nrepeatable read"
        );
        // The exporting transaction has to be open, and has imported its snapshot itself here.
        c.ok(BEGIN);
        let message = format!("22023 invalid snapshot identifier: \"{first}\"");
        assert_eq!(refused(&mut c, &import(&first)), message);
        assert_eq!(c.state("select 1"), "25P02");
        c.ok("rollback");
        c.ok(BEGIN);
        c.ok(&import(&second));
        assert_eq!(c.ok("select n from t"), "1");
        b.ok("rollback");
        assert_eq!(c.ok("select n from t"), "1");
        assert_eq!(c.state("update t set n = 3"), "40001");
        c.ok("rollback");
        c.ok(BEGIN);
        assert_eq!(c.state(&import(&second)), "22023");
        c.ok("rollback");
        assert_eq!(c.ok("select n from t order by n"), "2\n100");
    }
}

/// Symptom: who had the slot of the transaction that wrote before it exported, and committed since, saw its rows.
#[test]
fn regress_importers_in_any_slot_see_nothing_of_what_committed_since() {
    let database = database();
    let [mut a, mut b, _] = sessions(&database);
    a.ok("create table t (n int)");
    a.ok("begin; insert into t values (1)");
    let first = a.ok("select pg_export_snapshot()");
    b.ok(BEGIN);
    b.ok(&import(&first));
    let second = b.ok("select pg_export_snapshot()");
    a.ok("commit");
    let mut others: Vec<Client> = (4..12)
        .map(|number| Client::of_session(&database, number))
        .collect();
    for other in &mut others {
        other.ok(BEGIN);
        other.ok(&import(&second));
        assert_eq!(other.ok("select count(*) from t"), "0");
    }
    assert_eq!(a.ok("select count(*) from t"), "1");
}

#[test]
fn what_cannot_import_is_told_why() {
    let database = database();
    let [mut a, mut b, _] = sessions(&database);
    a.ok("create table t (n int)");
    a.ok("begin");
    let first = a.ok("select pg_export_snapshot()");
    let second = a.ok("select pg_export_snapshot()");
    assert!(first.ends_with("-1") && second.ends_with("-2"));
    let set = import(&first);
    let level = "0A000 a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ";
    let late = "25001 SET TRANSACTION SNAPSHOT must be called before any query";
    b.ok("begin");
    assert_eq!(refused(&mut b, &set), level);
    b.ok("rollback; begin");
    assert_eq!(refused(&mut b, &import("garbage")), level);
    b.ok("rollback");
    for before in [
        "select 1",
        "savepoint s",
        "declare c cursor for select 1",
        &set,
    ] {
        b.ok(BEGIN);
        b.ok(before);
        assert_eq!(refused(&mut b, &set), late, "{before}");
        b.ok("rollback");
    }
    for before in [
        "show search_path",
        "set search_path to public",
        "listen x",
        "notify x",
    ] {
        b.ok(BEGIN);
        b.ok(before);
        b.ok(&set);
        b.ok("select count(*) from t; commit");
    }
    for (text, refusal) in [
        (
            "'garbage'",
            "22023 invalid snapshot identifier: \"garbage\"",
        ),
        ("''", "22023 invalid snapshot identifier: \"\""),
        ("1", "42601 syntax error at or near \"1\""),
    ] {
        b.ok(BEGIN);
        let text = format!("set transaction snapshot {text}");
        assert_eq!(refused(&mut b, &text), refusal);
        b.ok("rollback");
    }
    b.ok(BEGIN);
    let local = format!("set local transaction snapshot '{first}'");
    assert_eq!(
        refused(&mut b, &local),
        "0A000 SET LOCAL TRANSACTION SNAPSHOT is not implemented"
    );
    b.ok("rollback");
    for written in [format!("e'{first}'"), format!("$${first}$$")] {
        b.ok(BEGIN);
        b.ok(&format!("set session transaction snapshot {written}"));
        b.ok("rollback");
    }
    let within = "25001 cannot export a snapshot from a subtransaction";
    b.ok(BEGIN);
    b.ok(&set);
    b.ok("savepoint s");
    assert_eq!(refused(&mut b, "select pg_export_snapshot()"), within);
    b.ok("rollback");
    let code = "do $$ begin begin perform pg_export_snapshot(); exception when others then raise exception '%', sqlerrm; end; end $$";
    assert_eq!(
        refused(&mut b, code),
        "P0001 cannot export a snapshot from a subtransaction"
    );
    // Outside of a block it is warned of, and looked at.
    let mut heard = Heard::default();
    let alone = b.session.simple_query(&set, &mut heard);
    assert_eq!(alone.unwrap_err().sqlstate().to_string(), "0A000");
    assert_eq!(heard.notice_states, ["25P01"]);
    b.ok("set default_transaction_isolation = 'repeatable read'");
    b.ok(&set);
    assert_eq!(b.state(&import("x")), "22023");
    b.ok(&set);
    assert_eq!(b.ok("select count(*) from t"), "0");
}

#[test]
fn what_was_said_of_an_importing_transaction_stays() {
    let database = database();
    let [mut a, mut b, _] = sessions(&database);
    a.ok("create table t (n int)");
    a.ok("begin");
    let set = import(&a.ok("select pg_export_snapshot()"));
    b.ok("begin isolation level repeatable read read only");
    b.ok(&set);
    assert_eq!(b.state("insert into t values (1)"), "25006");
    b.ok("rollback; begin isolation level repeatable read read only");
    b.ok(&set);
    assert_eq!(
        refused(&mut b, "set transaction read write"),
        "25001 transaction read-write mode must be set before any query"
    );
    b.ok("rollback");
    b.ok(BEGIN);
    b.ok(&set);
    b.ok("set transaction read only; set transaction isolation level repeatable read");
    assert_eq!(
        refused(&mut b, "set transaction isolation level read committed"),
        "25001 SET TRANSACTION ISOLATION LEVEL must be called before any query"
    );
    b.ok("rollback");
}

/// An error takes the snapshot away with the transaction, but not behind a savepoint.
#[test]
fn a_snapshot_goes_with_the_transaction_that_exported_it() {
    let database = database();
    let [mut a, mut b, _] = sessions(&database);
    let mut is_there = |identifier: &str| {
        b.ok(BEGIN);
        let done = b
            .session
            .simple_query(&import(identifier), &mut Heard::default());
        b.ok("rollback");
        done.is_ok()
    };
    a.ok("begin");
    let identifier = a.ok("select pg_export_snapshot()");
    a.ok("savepoint s");
    assert_eq!(a.state("select 1/0"), "22012");
    assert!(is_there(&identifier));
    a.ok("rollback to s");
    assert!(is_there(&identifier));
    a.ok("rollback");
    assert!(!is_there(&identifier));
    a.ok("begin");
    let identifier = a.ok("select pg_export_snapshot()");
    assert_eq!(a.state("select 1/0"), "22012");
    assert!(!is_there(&identifier));
    a.ok("rollback");
    let identifier = a.ok("select pg_export_snapshot()");
    assert!(!is_there(&identifier), "its transaction was the statement");
    a.ok("begin");
    let identifier = a.ok("select pg_export_snapshot()");
    drop(a);
    assert!(!is_there(&identifier));
}

#[test]
fn the_catalog_of_an_exported_snapshot_is_that_of_the_snapshot() {
    for level in ["read committed", "repeatable read"] {
        let database = database();
        let [mut a, mut b, mut c] = sessions(&database);
        a.ok("create table t (n int); create index i on t (n); insert into t values (1)");
        a.ok(&format!("begin isolation level {level}; select 1"));
        c.ok("create table later (n int)");
        a.ok("create table own (n int); alter table t add m int");
        c.ok("create table latest (n int)");
        let first = a.ok("select pg_export_snapshot()");
        c.ok("create table last (n int)");
        a.ok("create table own_too (n int)");
        let second = a.ok("select pg_export_snapshot()");
        a.ok("select count(*) from own");
        let tables = |b: &mut Client, identifier: &str| {
            b.ok(BEGIN);
            b.ok(&import(identifier));
            assert_eq!(b.ok("select * from t"), "1");
            let query = "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1";
            let found = b.ok(query).replace('\n', " ");
            b.ok("rollback");
            found
        };
        let (of_first, of_second) = (tables(&mut b, &first), tables(&mut b, &second));
        match level {
            "read committed" => {
                assert_eq!(of_first, "later latest t");
                assert_eq!(of_second, "last later latest t");
            }
            _ => assert_eq!((of_first.as_str(), of_second.as_str()), ("t", "t")),
        }
        // What has changed since is not written by who does not see it.
        b.ok(BEGIN);
        b.ok(&import(&second));
        a.ok("commit");
        assert_eq!(b.ok("select * from t"), "1");
        assert_eq!(b.state("insert into t values (2)"), "40001");
        b.ok("rollback");
        // Its own go on being made over that image.
        a.ok("begin");
        let third = a.ok("select pg_export_snapshot()");
        c.ok("create table other (n int)");
        b.ok(BEGIN);
        b.ok(&import(&third));
        b.ok("create table mine (n int); insert into mine values (1); commit");
        assert_eq!(c.ok("select count(*) from mine, other"), "0");
    }
}

/// Identifiers of one snapshot take one slot; each snapshot takes one as long as its transaction is open.
#[test]
fn slots_of_exported_snapshots_come_back() {
    let database = database();
    let [mut a, mut b, _] = sessions(&database);
    let slots = |b: &mut Client| {
        let slots = b.ok("select transactions_open from vellum_slots");
        slots.parse::<u32>().unwrap()
    };
    let before = slots(&mut b);
    a.ok(BEGIN);
    a.ok("select pg_export_snapshot() from generate_series(1, 100)");
    assert_eq!(slots(&mut b), before + 2);
    a.ok("commit; begin; select pg_export_snapshot()");
    b.ok("create table t (n int)");
    a.ok("select pg_export_snapshot()");
    assert_eq!(slots(&mut b), before + 3);
    a.ok("commit");
    assert_eq!(slots(&mut b), before);
}

/// Versions that only importers need are kept for them, whoever has gone.
#[test]
fn importers_see_all_rows_beside_writers_and_collectors() {
    for promotes in [false, true] {
        let database = database_that_promotes(promotes);
        let [mut a, mut b, mut c] = sessions(&database);
        a.ok("create table t (id int primary key, n int)");
        a.ok("insert into t select i, 0 from generate_series(1, 300) i");
        let mut identifier = None::<String>;
        for round in 0..30 {
            let (holder, importer) = match round % 2 {
                0 => (&mut a, &mut b),
                _ => (&mut b, &mut a),
            };
            importer.ok(BEGIN);
            if let Some(identifier) = identifier.take() {
                importer.ok(&import(&identifier));
            }
            identifier = Some(importer.ok("select pg_export_snapshot()"));
            if round > 0 {
                holder.ok("commit");
            }
            c.ok("update t set n = n + 1");
            c.ok(&format!("delete from t where id % 30 = {round}"));
            for _ in 0..5 {
                let _ = database.engine().step();
            }
            assert_eq!(importer.ok("select count(*), sum(n) from t"), "300|0");
        }
    }
}
