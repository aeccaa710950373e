//! EXPLAIN in forms that programs read, and its options.

use super::client::Client;

fn client() -> Client {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, b text)");
    client.ok("insert into t select g, 'x' || g from generate_series(1, 100) g");
    client
}

#[test]
fn a_plan_is_told_as_json_yaml_and_xml() {
    let mut client = client();
    let point = "select * from t where a = 1";
    let json = r#"[
  {
    "Plan": {
      "Node Type": "Index Scan",
      "Parallel Aware": false,
      "Async Capable": false,
      "Scan Direction": "Forward",
      "Index Name": "t_pkey",
      "Relation Name": "t",
      "Alias": "t"
    },
    "Path": "fast"
  }
]"#;
    let heard = client.hear(&format!("explain (format json, costs off) {point}"));
    assert_eq!(heard.text(), json);
    assert_eq!(heard.types[0], 114);
    let yaml = [
        "- Plan: ",
        "    Node Type: \"Index Scan\"",
        "    Parallel Aware: false",
        "    Async Capable: false",
        "    Scan Direction: \"Forward\"",
        "    Index Name: \"t_pkey\"",
        "    Relation Name: \"t\"",
        "    Schema: \"public\"",
        "    Alias: \"t\"",
        "    Plan Rows: 1",
        "  Path: \"fast\"",
    ];
    let told = client.ok(&format!("explain (format yaml, verbose) {point}"));
    assert_eq!(told, yaml.join("\n"));
    let heard = client.hear(&format!("explain (format 'XML') {point}"));
    assert!(heard.text().contains("<Node-Type>Index Scan</Node-Type>"));
    assert_eq!(heard.types[0], 142);
    let heard = client.hear(&format!("explain (format text) {point}"));
    assert!(heard.text().starts_with("Index Lookup using t_pkey on t"));
    assert_eq!(heard.types[0], 25);
}

#[test]
fn a_plan_that_was_run_says_what_came_of_it() {
    let mut client = client();
    let told = client.ok("explain (analyze, format json) select * from t where a < 10");
    for part in [
        "\"Actual Rows\": 9,",
        "\"Actual Total Time\": ",
        "\"Planning Time\": ",
        "\"Triggers\": [\n    ],",
        "\"Execution Time\": ",
        "\"Leaves Touched\": ",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let quiet = client.ok(
        "explain (analyze 1, format json, summary off, timing 'off') select * from t where a < 10",
    );
    assert!(!quiet.contains("Time"), "{quiet}");
    let change = "update t set b = 'y' where a = 3";
    let told = client.ok(&format!("explain (format json) {change}"));
    assert!(told.contains("\"Node Type\": \"ModifyTable\",\n      \"Operation\": \"Update\""));
    assert_eq!(client.ok("select b from t where a = 3"), "x3");
    let told = client.ok(&format!("explain (format json, analyze true) {change}"));
    assert!(told.contains("\"Actual Rows\": 1,"), "{told}");
    assert_eq!(client.ok("select b from t where a = 3"), "y");
    // What no program runs.
    let joined = "select x.b, count(*) from t x join t y on x.b = y.b group by x.b";
    let told = client.ok(&format!("explain (format json, analyze) {joined}"));
    assert!(told.contains("\"Path\": \"general\""), "{told}");
    assert!(told.contains("\"Path Reason\": "), "{told}");
    assert!(told.contains("\"Plans\": ["), "{told}");
    assert!(told.contains("Exec\""), "{told}");
    assert!(told.contains("\"Actual Rows\": 100"), "{told}");
    let plan = client.ok(&format!("explain (format json) {joined}"));
    assert!(!plan.contains("Actual"), "{plan}");
}

#[test]
fn options_are_those_of_postgresql() {
    let mut client = client();
    for options in [
        "analyze, verbose, costs, settings, buffers, wal, timing, summary, format json",
        "analyze on, verbose off, costs false, settings true, buffers 0, wal 1",
        "timing off, wal off, summary on, format yaml",
    ] {
        client.ok(&format!("explain ({options}) select 1"));
    }
    for (options, state, message, place) in [
        (
            "foo",
            "42601",
            "unrecognized EXPLAIN option \"foo\"",
            Some(10),
        ),
        (
            "costs, format foo",
            "22023",
            "unrecognized value for EXPLAIN option \"format\": \"foo\"",
            Some(17),
        ),
        ("format", "42601", "format requires a parameter", None),
        (
            "analyze maybe",
            "42601",
            "analyze requires a Boolean value",
            None,
        ),
        ("costs 2", "42601", "costs requires a Boolean value", None),
        ("wal", "22023", "EXPLAIN option WAL requires ANALYZE", None),
        (
            "timing",
            "22023",
            "EXPLAIN option TIMING requires ANALYZE",
            None,
        ),
    ] {
        let error = client.failure(&format!("explain ({options}) select 1"));
        let found = (error.sqlstate().to_string(), error.message().to_owned());
        assert_eq!(found, (state.to_owned(), message.to_owned()), "{options}");
        assert_eq!(error.fields().position, place, "{options}");
    }
}

#[test]
fn a_plan_runs_nothing() {
    let mut client = client();
    client.ok("create sequence s; create table w (id int)");
    let next = "(select nextval('s') as id)";
    for sql in [
        "explain with w as (insert into w values (50) returning id) select distinct on (id) id from w",
        "explain (format json) with w as (insert into w values (50) returning id) select id from w order by id, random()",
        &format!("explain with n as {next} select distinct on (n.id) n.id from n join n m on true"),
        "explain select distinct on (a) a, (select nextval('s')) from t",
        "explain select distinct on (a) a, (select nextval('s') from generate_series(1, 3) limit 1) from t",
        "explain select distinct on (g) g from generate_series(1, nextval('s')) g limit nextval('s')",
        "explain select distinct on (g) g from unnest(array[nextval('s')]) g",
        "explain values (nextval('s')) union select a from t order by 1",
        "explain select distinct on (x.a) x.a from t x, (select z.n from t y, lateral (select nextval('s') as n from t where a = y.a) z) q",
        "explain select distinct on (a) a from t where a in (select nextval('s'))",
        &format!(
            "explain with recursive r (id) as (select nextval('s') union all select id + 1 from r where id < 3) select distinct on (r.id) r.id from r, {next} n"
        ),
    ] {
        client.ok(sql);
        assert_eq!(client.ok("select count(*) from w"), "0", "{sql}");
        assert_eq!(client.ok("select is_called from s"), "f", "{sql}");
    }
    client.ok("explain analyze with w as (insert into w values (50) returning id) select distinct on (id) id from w");
    assert_eq!(client.ok("select count(*) from w"), "1");
}

#[test]
fn a_statement_that_was_prepared_is_explained_by_its_name() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, n int); insert into t values (1, 10), (2, 20)");
    client.ok("prepare p (int) as select n from t where id = $1; prepare w as delete from t");
    let shown = client.ok("explain execute p (1)");
    assert_eq!(shown, client.ok("explain select n from t where id = 1"));
    assert!(
        client
            .ok("explain (verbose, format json) execute p (null)")
            .contains("\"Plan\"")
    );
    assert!(
        client
            .ok("explain analyze execute p (2)")
            .contains("SELECT 1")
    );
    client.ok("explain execute w");
    assert_eq!(client.ok("select count(*) from t"), "2");
    assert_eq!(client.state("explain execute p"), "42601");
    assert_eq!(client.state("explain execute nothing"), "26000");
    assert_eq!(client.state("explain execute p ('x')"), "22P02");
}

/// Symptom: a FULL JOIN beside a LATERAL took thirty times as long as a LEFT JOIN. Cause: a query that was bound behind the join took over that the query around it was for DataFusion.
#[test]
fn regress_a_query_of_from_behind_a_full_join_has_a_path_of_its_own() {
    let mut client = client();
    let from = "t full join (select a + 1 as a, b from t where a < 50) u on t.a = u.a cross join lateral (select t.a + u.a as s) l";
    let told = client.ok(&format!("explain select * from {from}"));
    assert!(told.contains("Full Join: Subquery Scan\n"), "{told}");
    assert!(told.contains("Path: fast (compiled program)"), "{told}");
    assert!(!told.contains("general"), "{told}");
    let counted = client.ok(&format!("select count(*), count(s) from {from}"));
    assert_eq!(counted, "100|49");
    let from = "t join lateral (select t.a as x) l on true join (select p.a from t p full join t q on p.a = q.a + 1) u on u.a = t.a";
    let told = client.ok(&format!("explain select * from {from}"));
    assert!(
        told.contains("Subquery Scan (general, for a full join)"),
        "{told}"
    );
    assert_eq!(client.ok(&format!("select count(*) from {from}")), "100");
}
