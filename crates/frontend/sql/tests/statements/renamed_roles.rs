//! Roles that are called otherwise: what is theirs, and their sessions, are theirs by oid. And roles under repeatable read, which are those of now.

use super::client::{Client, assert_sound, database, database_in, findings};
use std::sync::Arc;
use vellum_io::MemoryDirectory;
use vellum_sql::{FIRST_ROLE, SessionOptions, SqlDatabase};

/// A transaction whose snapshot is drawn.
const BEGIN: &str = "begin isolation level repeatable read; select 1";

/// A client of a role whose session has this process id.
fn client_of(database: &SqlDatabase, user: &str, process_id: i32) -> Client {
    let options = SessionOptions {
        user: user.to_owned(),
        database: FIRST_ROLE.to_owned(),
        process_id,
        ..SessionOptions::default()
    };
    Client {
        session: database.session(options).unwrap(),
    }
}

/// Waits until a session waits for another.
fn until_one_waits(client: &mut Client) {
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    while client.ok(waits) == "0" {
        std::thread::yield_now();
    }
}

/// Symptom: the owner was kept by the name as it was, which no role had any more, or another one that was made later: that one owned it.
#[test]
fn regress_what_is_made_beside_a_rename_belongs_to_the_role() {
    for level in ["read committed", "repeatable read"] {
        let database = database();
        let (mut a, mut s) = (Client::of(&database), Client::of(&database));
        s.ok("create role ann1 login; grant create on schema public to ann1; create table t (n int); set lock_timeout = 50");
        a.ok("set lock_timeout = 50");
        let mut own = Client::of_user(&database, "ann1");
        for client in [&mut a, &mut own] {
            client.ok(&format!("begin isolation level {level}; select 1"));
        }
        s.ok("begin; alter role ann1 rename to ann2");
        a.ok("create schema sx authorization ann1; grant select on t to ann1");
        own.ok("create table own4 (i int)");
        s.ok("commit");
        a.ok("commit");
        own.ok("create table own5 (i int); commit");
        s.ok("create role ann1 login");
        assert_eq!(
            s.ok(
                "select nspowner::regrole from pg_namespace where nspname = 'sx';
                  select distinct relowner::regrole from pg_class where relname in ('own4', 'own5');
                  select tableowner from pg_tables where tablename = 'own4';
                  select relacl from pg_class where relname = 't'"
            ),
            "ann2\nann2\nann2\n{vellum=arwdDxt/vellum,ann2=r/vellum}"
        );
        let mut other = Client::of_user(&database, "ann1");
        assert_eq!(other.state("create table sx.t (i int)"), "42501");
        assert_eq!(other.state("select * from own4"), "42501");
        assert_eq!(s.state("drop role ann2"), "2BP01");
        assert_sound(&database);
    }
}

/// Symptom: it ran again as a role of the old name, which is nobody: `42501`.
#[test]
fn regress_a_statement_that_has_waited_goes_on_as_the_role_that_was_renamed() {
    let database = database();
    let (mut s, mut c) = (Client::of(&database), Client::of(&database));
    s.ok("create role dan login; create table gt (k int primary key, x int); insert into gt values (1, 1)");
    s.ok("grant select, update on gt to dan; grant create on schema public to dan");
    for (holds, does) in [
        ("update gt set x = 2", "update gt set x = x + 10"),
        (
            "create table made (n int)",
            "create table if not exists made (n int)",
        ),
    ] {
        let mut dan = Client::of_user(&database, "dan");
        s.ok("begin");
        s.ok(holds);
        let waiter = std::thread::spawn(move || dan.hear(does).text());
        until_one_waits(&mut c);
        c.ok("alter role dan rename to dan2");
        s.ok("commit");
        assert_eq!(waiter.join().unwrap(), "", "{does}");
        c.ok("alter role dan2 rename to dan");
    }
    assert_eq!(s.ok("select x from gt"), "12");
}

/// Symptom: `42704` for what the session makes, `42501` for a view of the role.
#[test]
fn regress_an_older_snapshot_has_roles_as_they_are_called_now() {
    let database = database();
    let mut s = Client::of(&database);
    s.ok("create role ann1 login; grant create on schema public to ann1; create table gt (n int); create view gv as select * from gt; grant select on gt to ann1; alter view gv owner to ann1; create role g");
    let (mut own, mut a) = (Client::of_user(&database, "ann1"), Client::of(&database));
    own.ok(BEGIN);
    a.ok(BEGIN);
    s.ok("alter role ann1 rename to ann3");
    own.ok("create table own3 (i int)");
    assert_eq!(
        own.ok("select current_user, session_user, 'ann3'::regrole, to_regrole('ann1')"),
        "ann3|ann3|ann3|~"
    );
    a.ok("select * from gv");
    assert_eq!(
        a.ok("select viewowner from pg_views where viewname = 'gv'"),
        "ann3"
    );
    // The old name is nobody's.
    for text in [
        "grant g to ann1",
        "grant ann1 to g",
        "grant select on gt to ann1",
        "alter role ann1 createdb",
        "drop role ann1",
        "alter role ann1 rename to x",
        "alter role ann1 set work_mem = '1MB'",
        "create schema authorization ann1",
        "comment on role ann1 is 'x'",
    ] {
        a.ok("savepoint a");
        assert_eq!(a.state(text), "42704", "{text}");
        a.ok("rollback to a");
    }
    a.ok("grant select on gt to ann3; alter role ann3 set work_mem = '1MB'; commit");
    own.ok("commit");
    assert_eq!(
        s.ok("select relowner::regrole from pg_class where relname = 'own3'; select rolconfig from pg_roles where rolname = 'ann3'"),
        "ann3\n{work_mem=1MB}"
    );
    assert_sound(&database);
}

/// Symptom: `42704`.
#[test]
fn regress_an_older_snapshot_knows_roles_that_were_made_since() {
    for (text, state) in [
        ("create schema authorization new1", "00000"),
        ("create schema s authorization new1", "00000"),
        ("alter table t owner to new1", "00000"),
        (
            "create table u (n int); alter table u owner to new1",
            "00000",
        ),
        ("grant select on t to new1", "00000"),
        ("grant select (n) on t to new1", "00000"),
        (
            "alter default privileges for role new1 grant select on tables to old1",
            "00000",
        ),
        ("grant new1 to old1", "00000"),
        ("alter role new1 set work_mem = '1MB'", "00000"),
        ("comment on role new1 is 'x'", "00000"),
        ("set role new1", "00000"),
        (
            "select has_table_privilege('new1', 't', 'select'), pg_has_role('new1', 'member')",
            "00000",
        ),
        ("reassign owned by old1 to new1", "00000"),
        // Its row is newer than the snapshot.
        ("drop role new1", "40001"),
        ("alter role new1 createdb", "40001"),
        ("alter role new1 rename to new2", "40001"),
        ("grant old1 to new1", "40001"),
        ("create role new1", "42710"),
        ("alter role old1 rename to new1", "42710"),
    ] {
        let database = database();
        let (mut a, mut s) = (Client::of(&database), Client::of(&database));
        s.ok("create role old1; create table t (n int); create table o (n int); alter table o owner to old1");
        a.ok(BEGIN);
        s.ok("create role new1");
        if state == "00000" {
            a.ok(text);
            a.ok("commit");
            assert_sound(&database);
        } else {
            assert_eq!(a.state(text), state, "{text}");
            a.ok("rollback");
        }
    }
}

/// Symptom: what was kept by the old name was another role's from then on, and the session went on with rights that it said it had not.
#[test]
fn regress_a_session_is_of_its_role_whatever_that_is_called() {
    let database = database();
    let mut s = Client::of(&database);
    s.ok("create role cl login; create role g; grant g to cl");
    let mut b = client_of(&database, "cl", 7);
    b.ok("select 1");
    s.ok("alter role cl rename to cl2");
    let who = "select session_user, current_user; select usename, usesysid::regrole from pg_stat_activity where pid = 7";
    assert_eq!(b.ok(who), "cl2|cl2\ncl2|cl2");
    assert_eq!(
        s.ok(
            "create role cl; select usename, usesysid::regrole from pg_stat_activity where pid = 7"
        ),
        "cl2|cl2"
    );
    // Another role is called so now; its own name is another one.
    assert_eq!(b.state("set session authorization cl"), "42501");
    b.ok("set session authorization cl2");
    assert_eq!(b.ok(who), "cl2|cl2\ncl2|cl2");
    b.ok("set role g; select set_config('role', 'g', false); reset role; reset session authorization");
    assert_eq!(b.ok(who), "cl2|cl2\ncl2|cl2");
    b.ok("set role g");
    b.ok("discard all");
    assert_eq!(b.ok(who), "cl2|cl2\ncl2|cl2");
    s.ok("create table t (n int); alter table t owner to cl2; create role h");
    b.ok("alter table t owner to session_user");
    assert_eq!(b.state("alter role cl2 rename to cl3"), "0A000");
    assert_eq!(b.state("drop role cl"), "42501");
    s.ok("set session authorization cl2; set role g; reset role; reset session authorization");
    // Who is gone has no name.
    s.ok("drop owned by cl2; drop role cl2");
    assert_eq!(
        s.ok("select usename, usesysid::text <> '10' from pg_stat_activity where pid = 7"),
        "~|t"
    );
    assert_eq!(b.ok("select session_user, current_user"), "|");
}

/// Symptom: a superuser that had been renamed stayed one under the name of another role, which could see what it did, and end it.
#[test]
fn regress_a_superuser_that_is_renamed_is_no_other_role() {
    let database = database();
    let mut s = Client::of(&database);
    s.ok("create role su1 superuser login; create table sec (n int)");
    let mut b = client_of(&database, "su1", 8);
    b.ok("select 'secret'");
    s.ok("alter role su1 rename to su2; create role su1 login");
    let mut other = Client::of_user(&database, "su1");
    assert_eq!(
        other.ok("select usename, query from pg_stat_activity where pid = 8"),
        "su2|<insufficient privilege>"
    );
    for end in ["pg_terminate_backend", "pg_cancel_backend"] {
        let error = other.failure(&format!("select {end}(8)"));
        assert_eq!(error.sqlstate().to_string(), "42501");
        assert!(error.message().starts_with("must be a superuser to"));
    }
    b.ok("set session authorization su1");
    assert_eq!(
        b.ok("select session_user, current_user; show is_superuser"),
        "su1|su1\noff"
    );
    assert_eq!(b.state("select count(*) from sec"), "42501");
    assert_eq!(b.state("create role x"), "42501");
    b.ok("reset session authorization; select count(*) from sec");
    assert_eq!(
        b.ok("select session_user, current_user; show is_superuser"),
        "su2|su2\non"
    );
}

/// Symptom: it waited for all who wrote anything of the role's, and kept others out: `55P03`.
#[test]
fn regress_a_rename_waits_for_no_writer() {
    let database = database();
    let (mut a, mut b) = (Client::of(&database), Client::of(&database));
    a.ok("create role ann; create schema s authorization ann; create table t (n int); alter table t owner to ann; create type mood as enum ('ok'); alter type mood owner to ann");
    a.ok("set lock_timeout = 50");
    b.ok("set lock_timeout = 50; begin; insert into t values (1); create table s.u (m mood)");
    a.ok("begin; alter role ann rename to eve");
    b.ok("insert into t values (2); create table s.v (m mood); grant select on t to ann; commit");
    a.ok("commit");
    assert_eq!(
        a.ok("select count(*) from t; select relacl from pg_class where relname = 't'"),
        "2\n{eve=arwdDxt/eve}"
    );
    // Who changes the role itself is waited for.
    b.ok("begin; alter role eve createdb");
    assert_eq!(a.state("alter role eve rename to ann"), "55P03");
    b.ok("rollback");
    a.ok("alter group eve rename to ann");
    assert_eq!(a.state("alter group nobody rename to x"), "42704");
}

/// The value of a row as earlier builds wrote it: with the name of its owner, and the version without its highest bit.
fn with_owner_called(key: &[u8], value: &[u8], name: &str) -> Option<Vec<u8>> {
    let text = |at: usize| {
        let length = value.get(at..at + 4)?.try_into().ok()?;
        Some(at + 4 + u32::from_le_bytes(length) as usize)
    };
    let (version, at) = match key[0] {
        1 => (value[0] & 127, text(1)?),
        2 => (value[0] & 127, text(6)?),
        7 => (1, 9),
        _ => return None,
    };
    let mut earlier = vec![version];
    earlier.extend_from_slice(&value[1..at]);
    earlier.extend_from_slice(&u32::try_from(name.len()).unwrap().to_le_bytes());
    earlier.extend_from_slice(name.as_bytes());
    earlier.extend_from_slice(&value[at + 4..]);
    Some(earlier)
}

/// The versions of the rows that have an owner, with their keys' kinds.
fn versions(database: &SqlDatabase) -> Vec<(u8, u8)> {
    let read = database.engine().retry(|transaction| {
        let table = transaction.table("sql.catalog")?;
        let mut cursor = transaction.cursor(&table, ..)?;
        let mut all = Vec::new();
        while let Some((key, value)) = cursor.next()? {
            if [1, 2, 7].contains(&key[0]) {
                all.push((key[0], value[0]));
            }
        }
        Ok(all)
    });
    read.unwrap()
}

#[test]
fn a_catalog_that_has_owners_by_name_is_written_anew_when_it_is_opened() {
    let directory = Arc::new(MemoryDirectory::new());
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    client
        .ok("create role ann login; create schema s authorization ann; create extension pgcrypto");
    client.ok("set role ann; create table s.t (id serial primary key, n text); create view s.v as select * from s.t; create type s.mood as enum ('ok'); create domain s.d as int check (value > 0); reset role");
    client.ok("create table others (n int); grant select on others to ann; create schema lost; create table lost.t (n int)");
    let lost: Vec<u32> = ["'lost'::regnamespace::oid", "'lost.t'::regclass::oid"]
        .map(|oid| client.ok(&format!("select {oid}")).parse().unwrap())
        .to_vec();
    let anns = "select oid from pg_class where relowner = 'ann'::regrole union select oid from pg_type where typowner = 'ann'::regrole
         union select oid from pg_namespace where nspowner = 'ann'::regrole";
    let anns: Vec<u32> = client
        .ok(anns)
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    drop(client);
    let changed = database.engine().retry(|transaction| {
        let table = transaction.table("sql.catalog")?;
        let mut rows = Vec::new();
        let mut cursor = transaction.cursor(&table, ..)?;
        while let Some((key, value)) = cursor.next()? {
            rows.push((key.to_vec(), value.to_vec()));
        }
        drop(cursor);
        for (key, value) in rows {
            let oid = key.get(1..5).map(|oid| oid.try_into().unwrap());
            let oid = oid.map_or(0, u32::from_be_bytes);
            let name = match oid {
                oid if anns.contains(&oid) => "ann",
                oid if lost.contains(&oid) => "nobody",
                _ => "vellum",
            };
            if let Some(earlier) = with_owner_called(&key, &value, name) {
                transaction.upsert(&table, &key, &earlier)?;
            }
        }
        Ok(())
    });
    changed.unwrap();
    // Whoever only reads it knows the owners, too.
    assert_sound(&database);
    assert!(
        versions(&database)
            .iter()
            .all(|(_, version)| *version < 128)
    );
    drop(database);
    for called in ["ann", "eve"] {
        let database = database_in(&directory);
        let rows = versions(&database);
        assert!(rows.len() > 8);
        for (kind, version) in rows {
            assert!(
                version >= 128 || (kind, version) == (7, 2),
                "{kind} {version}"
            );
        }
        assert_sound(&database);
        let mut client = Client::of(&database);
        let owners = "select distinct relowner::regrole from pg_class where relnamespace = 's'::regnamespace;
             select distinct typowner::regrole from pg_type where typname in ('mood', 'd');
             select nspowner::regrole from pg_namespace where nspname = 's';
             select extowner::regrole from pg_extension where extname = 'pgcrypto'";
        assert_eq!(
            client.ok(owners),
            format!("{called}\n{called}\n{called}\nvellum")
        );
        // What a name that no role has was left with.
        client.ok("create role nobody");
        assert_eq!(
            client.ok("select nspowner::regrole from pg_namespace where nspname = 'lost'; select relowner::regrole from pg_class where oid = 'lost.t'::regclass"),
            "vellum\nvellum"
        );
        client.ok("drop role nobody");
        let mut own = Client::of_user(&database, called);
        own.ok("insert into s.t (n) values ('x'); alter table s.t add x s.mood; alter table s.t drop x");
        if called == "ann" {
            client.ok("alter role ann rename to eve; create role ann login");
        } else {
            let mut other = Client::of_user(&database, "ann");
            assert_eq!(other.state("select * from s.t"), "42501");
        }
    }
}

#[test]
fn an_owner_that_is_not_there_is_found() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create schema s; create table s.t (n int)");
    let oid: u32 = client.ok("select 's.t'::regclass::oid").parse().unwrap();
    let garbled = database.engine().retry(|transaction| {
        let table = transaction.table("sql.catalog")?;
        let key = [&[2][..], &oid.to_be_bytes()].concat();
        let mut value = transaction.get(&table, &key, <[u8]>::to_vec)?.unwrap();
        // Behind version, kind, schema and a name of one letter.
        value[11..15].copy_from_slice(&99_999u32.to_le_bytes());
        transaction.replace(&table, &key, &value).map(drop)
    });
    garbled.unwrap();
    let found = findings(&database);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("the owner of relation \"s.t\", role 99999, is not there"),
        "{found:#?}"
    );
}
