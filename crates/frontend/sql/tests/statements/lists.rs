//! Lists that come with parameters: IN and ANY, with other lists for each run, and by indexes.

use super::client::{Client, Heard};
use vellum_sql::Parameters;

fn bound(client: &mut Client, values: &[&str]) -> String {
    let values: Vec<Option<&[u8]>> = values
        .iter()
        .map(|value| (*value != "~").then_some(value.as_bytes()))
        .collect();
    let parameters = Parameters {
        formats: &[],
        values: &values,
    };
    let session = &mut client.session;
    session.bind("", "s", parameters, &[]).unwrap();
    let mut heard = Heard::default();
    session.execute("", 0, &mut heard).unwrap();
    session.sync().unwrap();
    heard.text()
}

#[test]
fn an_array_is_looked_through_anew_for_each_run() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s int)");
    client.ok("insert into t select g, g % 50 from generate_series(1, 1000) g; insert into t values (2000)");
    let text = "select count(*) filter (where s = any ($1)), count(*) filter (where not s = any ($1)), count(*) filter (where s <> all ($1)) from t";
    client.session.parse("s", text, &[1007]).unwrap();
    for (array, wanted) in [
        ("{1,2,3,4,5,6,7,8,9,10}", "200|800|800"),
        ("{11,12,13,14,15,16,17,18,19,20,11}", "200|800|800"),
        ("{1,2,3,4,5,6,7,8,9,10,null}", "200|0|0"),
        ("{1,2}", "40|960|960"),
        ("{}", "0|1001|1001"),
        ("~", "0|0|0"),
        ("{{1,2,3,4,5},{6,7,8,9,10}}", "200|800|800"),
    ] {
        assert_eq!(bound(&mut client, &[array]), wanted, "{array}");
    }
}

#[test]
fn a_list_of_parameters_is_looked_through_anew_for_each_run() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s text)");
    client.ok("insert into t select g, 'x' || g % 50 from generate_series(1, 1000) g");
    let list: Vec<String> = (1..=12).map(|number| format!("${number}")).collect();
    let list = list.join(", ");
    let text = format!(
        "select count(*) filter (where s in ({list})), count(*) filter (where s not in ({list})) from t"
    );
    client.session.parse("s", &text, &[]).unwrap();
    let named = |from: usize| {
        (from..from + 12)
            .map(|number| format!("x{number}"))
            .collect::<Vec<_>>()
    };
    for (from, wanted) in [(0, "240|760"), (40, "200|800"), (60, "0|1000")] {
        let names = named(from);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(bound(&mut client, &names), wanted, "{from}");
    }
    let mut names = named(0);
    names[3] = "~".to_owned();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(bound(&mut client, &names), "220|0");
}

/// The leaves of trees that a query has touched.
fn leaves(client: &mut Client, sql: &str) -> u64 {
    let told = client.ok(&format!("explain (analyze, format json) {sql}"));
    let (_, behind) = told.split_once("\"Leaves Touched\": ").expect("leaves");
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn an_array_is_looked_up_in_an_index() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s text)");
    client.ok("insert into t select g, repeat('x', 100) || g from generate_series(1, 20000) g; create index on t (s)");
    let all = leaves(&mut client, "select count(s || id) from t");
    for sql in [
        "select * from t where id = any ('{5,7,19999}')",
        "select * from t where id = any (array[5,7,19999]::bigint[])",
        "select * from t where s = any (array[repeat('x', 100) || '5'])",
        "delete from t where id = any ('{30001}')",
    ] {
        let some = leaves(&mut client, sql);
        assert!(some * 10 < all, "{sql}: {some} of {all}");
    }
}

/// Symptom: queries of WITH that nothing reads were bound without any limit, and nobody was heard meanwhile.
#[test]
fn regress_queries_of_with_have_a_limit_together() {
    let mut client = Client::new();
    // Each reads the one in front of it thrice, and is looked at, at the top, for itself.
    let mut text = "with a0 as (select 1 as x)".to_owned();
    for number in 1..=9 {
        let before = number - 1;
        text.push_str(&format!(
            ", a{number} as (select p.x from a{before} p, a{before} q, a{before} r)"
        ));
    }
    for number in 0..200 {
        text.push_str(&format!(", u{number} as (select x from a5)"));
    }
    text.push_str(" select 1");
    assert_eq!(client.state(&text), "54001");
    // Many that are plain are no trouble.
    let plain: Vec<String> = (0..500)
        .map(|number| format!("p{number} as (select {number} as x)"))
        .collect();
    assert_eq!(
        client.ok(&format!("with {} select x from p499", plain.join(", "))),
        "499"
    );
}

#[test]
fn a_query_of_with_that_stands_behind_is_told() {
    let mut client = Client::new();
    for text in [
        "with a as (select * from b), b as (select 1 as x) select 1",
        "with a as (select * from b), b as (select 1 as x) select * from a",
        "with b as (select * from b) select * from b",
        "with c as (select * from (with a as (select * from b), b as (select 1) select * from a) q) select * from c",
    ] {
        let error = client.failure(text);
        assert_eq!(error.message(), "relation \"b\" does not exist", "{text}");
        let detail = "There is a WITH item named \"b\", but it cannot be referenced from this part of the query.";
        assert_eq!(error.fields().detail.as_deref(), Some(detail), "{text}");
        let hint = "Use WITH RECURSIVE, or re-order the WITH items to remove forward references.";
        assert_eq!(error.fields().hint.as_deref(), Some(hint), "{text}");
    }
    let error = client.failure("with a as (select * from d), b as (select 1) select * from a");
    assert_eq!(error.fields().hint, None);
}

#[test]
fn a_statement_that_is_being_compiled_hears_its_timeout() {
    let mut client = Client::new();
    let terms: Vec<String> = (0..1500)
        .map(|number| format!("(select count(*) from pg_class where oid = {number})"))
        .collect();
    // It is compiled, and not run.
    let text = format!("prepare p as select {}", terms.join(", "));
    client.ok("set statement_timeout = 1");
    let (state, message) = client.fails(&text);
    assert_eq!(
        (&*state, &*message),
        ("57014", "canceling statement due to statement timeout")
    );
}

/// Symptom: an array that came with the parameters was kept as a set beside the memory that its statement may have.
#[test]
fn regress_lists_that_come_with_parameters_are_memory_of_the_statement() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, s int)");
    client.ok("insert into t select g, g from generate_series(1, 20) g; set work_mem = '64kB'");
    let text = "select count(*) from t where s + 0 = any ($1)";
    client.session.parse("s", text, &[1007]).unwrap();
    let array = |count: usize| {
        let numbers: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
        format!("{{{}}}", numbers.join(","))
    };
    assert_eq!(bound(&mut client, &[&array(100)]), "20");
    let long = array(100_000);
    let values = [Some(long.as_bytes())];
    let parameters = Parameters {
        formats: &[],
        values: &values,
    };
    let session = &mut client.session;
    session.bind("", "s", parameters, &[]).unwrap();
    let mut heard = Heard::default();
    let failed = session.execute("", 0, &mut heard).unwrap_err();
    assert_eq!(failed.sqlstate().to_string(), "53200");
    session.sync().unwrap();
    assert_eq!(bound(&mut client, &[&array(100)]), "20");
    client.ok("set work_mem = '4MB'");
    assert_eq!(bound(&mut client, &[&long]), "20");
}
