//! Several sessions at once, at random: what they leave keeps every constraint, and nobody is told of a deadlock that is none.
//!
//! The seed chooses what each session does, not how they interleave: `VELLUM_SEED` tries the same again, `VELLUM_ROUNDS` (transactions of a session) tries longer.
//!
//! Not checked: which transactions succeed, and in which order they took effect.

use super::client::{Client, Heard, assert_sound, database};
use std::thread;
use vellum_base::random::Random;
use vellum_base::replay;
use vellum_sql::SqlDatabase;

const SESSIONS: u64 = 4;

/// Runs a text; its SQLSTATE if it fails.
fn tries(client: &mut Client, sql: &str) -> Result<String, String> {
    let mut heard = Heard::default();
    match client.session.simple_query(sql, &mut heard) {
        Ok(_) => Ok(heard.text()),
        Err(error) => Err(error.sqlstate().to_string()),
    }
}

/// Has several sessions work at once, each with numbers of its own.
fn together(database: &SqlDatabase, seed: u64, work: impl Fn(&mut Client, &mut Random) + Sync) {
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let work = &work;
            scope.spawn(move || {
                let mut random = Random::new(seed ^ (session << 32));
                work(&mut Client::of(database), &mut random);
            });
        }
    });
}

fn one_of<'c>(random: &mut Random, choices: &[&'c str]) -> &'c str {
    choices[random.below(choices.len() as u64) as usize]
}

/// Each transaction works at one row, and none that shares it wants it for itself: there can be no circle.
#[test]
fn regress_there_is_no_deadlock_over_one_row() {
    let (seed, rounds) = (replay::seed(), replay::rounds(4000));
    println!("VELLUM_SEED={seed} VELLUM_ROUNDS={rounds}");
    let database = database();
    let mut setup = Client::of(&database);
    setup.ok(
        "create table t (id int primary key, u int unique, n int not null);
        insert into t select g, g, 0 from generate_series(1, 3) g",
    );
    together(&database, seed, |client, random| {
        for _ in 0..rounds {
            let id = random.between(1, 3);
            let repeatable = random.chance(1, 4);
            let level = if repeatable {
                "repeatable read"
            } else {
                "read committed"
            };
            let alone = one_of(random, &["update", "no key update"]);
            let shared = one_of(random, &["share", "key share"]);
            let waits = one_of(random, &["", "", "skip locked"]);
            let lock = |strength| format!("select n from t where id = {id} for {strength} {waits}");
            let update = format!("update t set n = n + 1 where id = {id}");
            let delete = format!("delete from t where id = {id}");
            let (work, end) = match random.below(8) {
                0 => (vec![delete], "rollback"),
                1 => (vec![update.clone(), delete], "rollback"),
                2 => (vec![lock(shared)], "commit"),
                3 => (vec![lock(alone)], one_of(random, &["commit", "rollback"])),
                4 => (vec![lock("update"), update], "commit"),
                5 => (vec![lock("update"), delete], "rollback"),
                6 => {
                    let back = format!("insert into t values ({id}, {id}, 0)");
                    (vec![delete, back], "commit")
                }
                _ => (vec![update], one_of(random, &["commit", "rollback"])),
            };
            client.ok(&format!("begin isolation level {level}"));
            let mut end = end;
            for sql in work {
                match tries(client, &sql) {
                    Ok(_) => {}
                    // The first writer wins.
                    Err(state) if repeatable && state == "40001" => {
                        end = "rollback";
                        break;
                    }
                    Err(state) => panic!("{level}: {sql}: {state}"),
                }
            }
            client.ok(end);
        }
    });
    assert_eq!(setup.ok("select id, u from t order by id"), "1|1\n2|2\n3|3");
    assert_eq!(setup.ok("select deadlocks from pg_stat_database"), "0");
}

const KEYS: u64 = 8;

/// Parents by a primary key and by a unique one, and children with each action; what may be checked late is.
const FAMILY: &str = "
    create table parent (id int primary key, u int unique, n int not null default 0);
    create table keeps (id int primary key, p int references parent);
    create table follows (id int primary key, p int references parent on delete cascade on update cascade);
    create index on follows (p);
    create table forgets (id int primary key, p int references parent (u) on delete set null on update set null);
    create index on forgets (p);
    create table later (id int primary key, p int references parent deferrable initially deferred,
        k int unique deferrable initially deferred);
    create table nested (id int primary key, f int references follows on delete cascade);
    create index on nested (f);";

const CHILDREN: [(&str, &str); 4] = [
    ("keeps", "id"),
    ("follows", "id"),
    ("forgets", "u"),
    ("later", "id"),
];

/// A change of the family.
fn change(random: &mut Random) -> String {
    let mut key = || random.between(1, KEYS);
    let (id, other, third) = (key(), key(), key());
    let (child, _) = CHILDREN[random.below(4) as usize];
    let conflict = one_of(
        random,
        &[
            "",
            "",
            "on conflict do nothing",
            "on conflict (u) do update set n = parent.n + 1",
            "on conflict (id) do update set u = excluded.u",
        ],
    );
    match random.below(14) {
        0..=2 => format!("insert into parent values ({id}, {other}) {conflict}"),
        3 => format!("delete from parent where id = {id}"),
        4 => format!("delete from parent where u = {id}"),
        5 => format!("update parent set id = {id} where id = {other}"),
        6 => format!("update parent set u = {id} where u = {other}"),
        7 => format!("update parent set n = n + 1 where id = {id}"),
        8 | 9 if child == "later" => format!("insert into later values ({id}, {other}, {third})"),
        8 | 9 => format!("insert into {child} values ({id}, {other})"),
        10 => format!("update {child} set p = {other} where id = {id}"),
        11 => format!("delete from {child} where id = {id}"),
        12 => format!("insert into nested values ({id}, {other})"),
        _ => format!("update later set k = {other} where id = {id}"),
    }
}

/// What a transaction sees that no constraint allows; nothing.
fn wrongs(client: &mut Client) -> String {
    let mut found = String::new();
    let mut look = |what: &str, sql: &str| match tries(client, sql) {
        Ok(rows) if rows.is_empty() => {}
        Ok(rows) => found.push_str(&format!("{what}: {rows}\n")),
        Err(state) => found.push_str(&format!("{what}: {state}\n")),
    };
    let references = CHILDREN
        .iter()
        .map(|(child, key)| (*child, "p", "parent", *key));
    for (child, column, target, key) in references.chain([("nested", "f", "follows", "id")]) {
        look(
            &format!("orphans in {child}"),
            &format!(
                "select c.id, c.{column} from {child} c where c.{column} is not null
                 and not exists (select from {target} t where t.{key} + 0 = c.{column})"
            ),
        );
    }
    for (table, column) in [("parent", "u"), ("later", "k")] {
        look(
            &format!("duplicates in {table}"),
            &format!(
                "select {column}, count(*) from {table} where {column} is not null group by 1 having count(*) > 1"
            ),
        );
    }
    // By the index, and by the table.
    for (table, column) in [
        ("parent", "u"),
        ("later", "k"),
        ("follows", "p"),
        ("forgets", "p"),
        ("nested", "f"),
    ] {
        for key in 1..=KEYS {
            look(
                &format!("index of {table}"),
                &format!(
                    "select {key}, (select count(*) from {table} where {column} = {key}) as by_index,
                     (select count(*) from {table} where {column} + 0 = {key}) as by_table
                     where (select count(*) from {table} where {column} = {key})
                       <> (select count(*) from {table} where {column} + 0 = {key})"
                ),
            );
        }
    }
    found
}

#[test]
fn constraints_hold_whatever_sessions_do_at_once() {
    let (seed, rounds) = (replay::seed(), replay::rounds(150));
    println!("VELLUM_SEED={seed} VELLUM_ROUNDS={rounds}");
    let database = database();
    let mut setup = Client::of(&database);
    setup.ok(FAMILY);
    let may_fail = ["23503", "23505", "40001", "40P01", "21000"];
    together(&database, seed, |client, random| {
        for round in 0..rounds {
            let level = one_of(
                random,
                &["read committed", "read committed", "repeatable read"],
            );
            client.ok(&format!("begin isolation level {level}"));
            for _ in 0..random.between(1, 4) {
                let by_savepoint = random.chance(1, 3);
                if by_savepoint {
                    client.ok("savepoint s");
                }
                let sql = change(random);
                let failed = match tries(client, &sql) {
                    Ok(_) => false,
                    Err(state) => {
                        assert!(may_fail.contains(&&*state), "{level}: {sql}: {state}");
                        true
                    }
                };
                if by_savepoint && (failed || random.chance(1, 3)) {
                    client.ok("rollback to s");
                } else if failed {
                    break;
                }
            }
            let end = one_of(random, &["commit", "commit", "rollback"]);
            if let Err(state) = tries(client, end) {
                assert!(may_fail.contains(&&*state), "{level}: {end}: {state}");
            }
            // What one snapshot shows beside the others' work.
            if round % 16 == 0 {
                client.ok("begin isolation level repeatable read, read only");
                assert_eq!(wrongs(client), "", "in a snapshot");
                client.ok("commit");
            }
        }
    });
    assert_eq!(wrongs(&mut setup), "");
    assert_sound(&database);
    let left = setup.ok("select count(*) from parent");
    println!("{left} parents are left");
}
