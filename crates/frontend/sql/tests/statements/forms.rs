//! Statements that differ in literals only: they share a program, and say what each would say alone.

use super::client::{Client, Heard};
use vellum_base::random::Random;

const TABLE: &str = "create table t (a int primary key, s smallint, b bigint, n numeric(6,2), f float8, x text, v varchar(4), \
     c char(3), d date, z timestamptz, o bool, unique (s, b), unique (x)); create index on t (n); create index on t (d)";

/// Statements of which each `#` is a literal.
const FORMS: [&str; 26] = [
    "select * from t where a = #",
    "select a, s + #, b - #, n * #, x from t where a = #;",
    "select a from t where s = # and b >= # order by a",
    "select a from t where s=# and b<# order by 1, a + #",
    "select count(*) from t where n = #",
    "select a, x from t where x = # for update",
    "select a from t where d = # order by a limit 2",
    "select a / #, f * # from t where a = #",
    "select a from t where # = a and v = #",
    "select t.a, u.x from t join t u on u.a = t.s where t.a = # order by 2",
    "select s + 1, count(*) from t where s = # group by s + #",
    "select case when b = # then # else # end from t where a = #",
    "select a from t where a = # and c = #",
    "select a from t where a = # and o = #",
    "select a from t where a = # and z > #",
    "select # + a as k, - # from t where a = # order by k",
    "update t set b = b + # where a = #",
    "update t set s = #, v = # where a = # returning a, s, v",
    "update t set n = #, f = #, d = # where a = #",
    "update t set c = #, o = #, x = # where a=# returning *",
    "delete from t where a = # returning a",
    "insert into t values (#, #, #, #, #, #, #, #, #, #, #)",
    "insert into t (a, s, b) values (#, #, #), (#, #, #) returning a",
    "insert into t (a, v, x) values (#, #, lower(#)) on conflict (a) do update set v = #, s = t.s - #",
    "insert into t (a, n, f) values (#, #, #) on conflict do nothing",
    "insert into t (a, d, z, o) values (#, #, #, #)",
];

fn literal(random: &mut Random) -> String {
    let sign = ["", "", "", "-", "- ", "+"][random.below(6) as usize];
    match random.below(16) {
        0..=6 => format!("{sign}{}", random.below(6)),
        7 => format!(
            "{sign}{}",
            [32767_u64, 32768, 40_000, 100_000][random.below(4) as usize]
        ),
        8 => format!("{sign}{}", 2_147_483_646 + random.below(4)),
        9 => format!("{sign}{}", 9_223_372_036_854_775_806 + random.below(4)),
        10 => format!("{sign}{}.{}", random.below(12_000), random.below(1000)),
        11 => ["'2024-02-29'", "'2023-02-29'", "'1 jan 2020 12:30'"][random.below(3) as usize]
            .to_owned(),
        12 => ["'t'", "'off'", "true", "null", "default"][random.below(5) as usize].to_owned(),
        13 => ["'1'", "'-2'", "'3.5'", "' 4 '", "'1e2'"][random.below(5) as usize].to_owned(),
        _ => ["'a'", "'B'", "'a  '", "'it''s'", "''", "'longer'", "'ä'"][random.below(7) as usize]
            .to_owned(),
    }
}

fn statement(random: &mut Random) -> String {
    let form = FORMS[random.below(FORMS.len() as u64) as usize];
    let mut text = String::new();
    for (number, piece) in form.split('#').enumerate() {
        if number > 0 {
            // Mostly keys that are there.
            let plain = random.chance(2, 3);
            text.push_str(&if plain {
                random.below(6).to_string()
            } else {
                literal(random)
            });
        }
        text.push_str(piece);
    }
    text
}

/// All that a client is told of it.
fn said(client: &mut Client, text: &str) -> String {
    let mut heard = Heard::default();
    let done = client.session.simple_query(text, &mut heard);
    let (rows, tags, fields) = (heard.text(), heard.tags, heard.fields);
    match done {
        Ok(_) => format!("{fields:?} {tags:?}\n{rows}"),
        Err(error) => format!("{:?}", error.fields()),
    }
}

#[test]
fn prop_statements_of_one_form_say_what_each_would_say_alone() {
    let seed = vellum_base::replay::seed();
    let rounds = vellum_base::replay::rounds(20);
    eprintln!("VELLUM_SEED={seed}");
    let (mut succeeded, mut failed) = (0, 0);
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let random = &mut Random::new(seed);
        let (mut shared, mut alone) = (Client::new(), Client::new());
        for client in [&mut shared, &mut alone] {
            client.ok(TABLE);
            client.ok("insert into t select i, i % 3, i, i * 1.5, i, 'x' || i, 'v', 'c', '2024-02-28'::date + i, '2024-03-01 12:00+00', i > 2 from generate_series(0, 5) i");
        }
        let mut history = Vec::new();
        for _ in 0..120 {
            let text = statement(random);
            history.push(text.clone());
            let one = said(&mut shared, &text);
            // A comment is enough for a text to be read as it is.
            let other = said(&mut alone, &format!("{text} -- alone"));
            let is_error = one.starts_with("Fields");
            (succeeded, failed) = (
                succeeded + u64::from(!is_error),
                failed + u64::from(is_error),
            );
            assert_eq!(
                one, other,
                "VELLUM_SEED={seed} VELLUM_ROUNDS=1: {history:#?}"
            );
        }
    }
    assert!(
        rounds < 10 || succeeded > rounds * 30 && failed > rounds,
        "{succeeded} succeeded, {failed} failed"
    );
}

#[test]
fn a_statement_in_a_block_is_part_of_it() {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, b int)");
    for a in 0..4 {
        client.ok(&format!("insert into t values ({a}, 0)"));
    }
    client.ok("begin");
    for a in 0..4 {
        assert_eq!(
            client
                .hear(&format!("update t set b = 5 where a = {a}"))
                .tags,
            ["UPDATE 1"]
        );
    }
    assert_eq!(client.state("update t set b = 1 / 0 where a = 1"), "22012");
    assert_eq!(client.state("update t set b = 5 where a = 2"), "25P02");
    client.ok("rollback");
    for a in 0..4 {
        assert_eq!(client.ok(&format!("select b from t where a = {a}")), "0");
    }
    // What others see of it is the text.
    let mut other = String::new();
    for a in 0..4 {
        other = client.ok(&format!(
            "select query from pg_stat_activity, t where a = {a}"
        ));
    }
    assert!(other.contains("a = 3"), "{other}");
}

#[test]
fn what_the_catalog_and_settings_become_counts_for_the_next_statement() {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, d date)");
    for a in 1..4 {
        client.ok(&format!("insert into t values ({a}, '2024-01-0{a}')"));
    }
    let select = |client: &mut Client, a: i32| {
        client.ok(&format!(
            "select * from t where a = {a} and d > '01/02/2020'"
        ))
    };
    assert_eq!(select(&mut client, 1), "1|2024-01-01");
    assert_eq!(select(&mut client, 2), "2|2024-01-02");
    assert_eq!(select(&mut client, 3), "3|2024-01-03");
    client.ok("alter table t add column e text default 'e'");
    assert_eq!(select(&mut client, 1), "1|2024-01-01|e");
    client.ok("set datestyle to german");
    assert_eq!(select(&mut client, 2), "2|02.01.2024|e");
    client.ok("alter table t rename column a to k");
    let (state, message) = client.fails("select * from t where a = 9 and d > '01/02/2020'");
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("42703", "column \"a\" does not exist")
    );
    client.ok("alter table t rename column k to a; alter table t alter column a type text");
    let (state, _) = client.fails("select * from t where a = 1 and d > '01/02/2020'");
    assert_eq!(state, "42883");
}
