//! Views: what they keep, and what keeps them.

use super::client::{Client, database};

#[test]
fn a_view_reads_what_it_was_made_for_whatever_the_search_path_is() {
    let mut client = Client::new();
    client.ok("create schema a; create schema b");
    client.ok("create table a.t (n int); insert into a.t values (1)");
    client.ok("create table b.t (n int); insert into b.t values (2)");
    client.ok("set search_path = a, public");
    client.ok("create view public.v as select t.* from t");
    client.ok("create view public.w as with t as (select 7 as n) select n from t");
    client.ok("set search_path = b, public");
    assert_eq!(client.ok("select n from v"), "1");
    assert_eq!(client.ok("select n from w"), "7");
    client.ok("set search_path = public");
    assert_eq!(client.ok("select n from v"), "1");
    assert_eq!(
        client.ok("select pg_get_viewdef('v'::regclass)"),
        " SELECT t.n\n   FROM a.t;"
    );
}

#[test]
fn what_a_view_reads_is_named_where_it_cannot_be_dropped() {
    let mut client = Client::new();
    client.ok("create table t (a int, b int); create schema s");
    client.ok("create view v as select a from t; create view s.w as select * from v");
    let failure = client.failure("drop table t");
    assert_eq!(failure.sqlstate().to_string(), "2BP01");
    assert_eq!(
        failure.message(),
        "cannot drop table t because other objects depend on it"
    );
    assert_eq!(
        failure.fields().detail.as_deref(),
        Some("view v depends on table t\nview s.w depends on view v")
    );
    assert_eq!(
        client.failure("alter table t drop column a").message(),
        "cannot drop column a of table t because other objects depend on it"
    );
    client.ok("alter table t drop column b");
    assert_eq!(
        client.hear("alter table t drop column a cascade").notices,
        ["drop cascades to 2 other objects"]
    );
    assert_eq!(client.state("select * from s.w"), "42P01");
    client.ok("drop table t");
}

#[test]
fn rights_on_a_view_stay_when_its_query_is_replaced() {
    let mut client = Client::new();
    client.ok("create table t (a int); insert into t values (1); create role r");
    client.ok("create view v as select a from t; grant select on v to r");
    client.ok("create or replace view v as select a, a + 1 as b from t");
    client.ok("set role r");
    assert_eq!(client.ok("select b from v"), "2");
    assert_eq!(
        client.state("create or replace view v as select 1 as a, 1 as b"),
        "42501"
    );
}

#[test]
fn what_was_dropped_with_a_table_is_there_again_after_rollback() {
    let mut client = Client::new();
    client.ok("create table t (a int); insert into t values (3)");
    client.ok("create view v as select a from t; create view w as select a from v");
    client.ok("begin; drop table t cascade");
    assert_eq!(client.state("select a from w"), "42P01");
    client.ok("rollback; begin; alter table t rename column a to b; alter table t rename to u");
    assert_eq!(client.ok("select a from w"), "3");
    client.ok("rollback");
    assert_eq!(client.ok("select w.a, t.a from w, t"), "3|3");
}

/// Message, detail and hint.
#[track_caller]
fn told(client: &mut Client, sql: &str) -> (String, String, String) {
    let error = client.failure(sql);
    let fields = error.fields();
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    (
        error.message().to_owned(),
        part(&fields.detail),
        part(&fields.hint),
    )
}

#[test]
fn what_is_wrong_with_a_change_of_a_view_is_told_as_postgresql_tells_it() {
    let mut client = Client::new();
    client.ok("create table t (a int primary key, b text)");
    client.ok("create view v as select a as x, b as y, a + 1 as z from t where a > 0");
    client.ok(
        "create view w with (check_option = local) as select x, y, z as zz from v where x < 10",
    );
    client.ok("create view u as select * from w with check option");
    client.ok("insert into u (x, y) values (1, 'one')");
    let no_column = "View columns that are not columns of their base relation are not updatable.";
    let grouped = "Views containing GROUP BY are not automatically updatable.";
    client.ok("create view g as select b, count(*) from t group by b");
    let hint = |deed: &str, trigger: &str| {
        format!(
            "To enable {deed} the view, provide an INSTEAD OF {trigger} trigger or an unconditional ON {trigger} DO INSTEAD rule."
        )
    };
    for (sql, message, detail, hint) in [
        (
            "insert into v (z) values (1)",
            "cannot insert into column \"z\" of view \"v\"",
            no_column,
            String::new(),
        ),
        (
            "update u set zz = 1",
            "cannot update column \"z\" of view \"v\"",
            no_column,
            String::new(),
        ),
        (
            "insert into g values ('x', 1)",
            "cannot insert into view \"g\"",
            grouped,
            hint("inserting into", "INSERT"),
        ),
        (
            "update g set b = 'x'",
            "cannot update view \"g\"",
            grouped,
            hint("updating", "UPDATE"),
        ),
        (
            "delete from g",
            "cannot delete from view \"g\"",
            grouped,
            hint("deleting from", "DELETE"),
        ),
        (
            "merge into v using t on x = a when matched then delete",
            "cannot execute MERGE on relation \"v\"",
            "This operation is not supported for views.",
            String::new(),
        ),
        (
            "copy v from stdin",
            "cannot copy to view \"v\"",
            "",
            "To enable copying to a view, provide an INSTEAD OF INSERT trigger.".to_owned(),
        ),
        (
            "insert into u (x, y) values (-5, 'no')",
            "new row violates check option for view \"v\"",
            "Failing row contains (-5, no).",
            String::new(),
        ),
        (
            "update u set x = 10",
            "new row violates check option for view \"w\"",
            "Failing row contains (10, one).",
            String::new(),
        ),
        (
            "update v set xx = 1",
            "column \"xx\" of relation \"v\" does not exist",
            "",
            String::new(),
        ),
        (
            "update v set y = xx",
            "column \"xx\" does not exist",
            "",
            "Perhaps you meant to reference the column \"v.x\".".to_owned(),
        ),
        (
            "create view c as select distinct a from t with local check option",
            "WITH CHECK OPTION is supported only on automatically updatable views",
            "",
            "Views containing DISTINCT are not automatically updatable.".to_owned(),
        ),
        (
            "create view c with (check_option = none) as select a from t",
            "invalid value for enum option \"check_option\": none",
            "Valid values are \"local\" and \"cascaded\".",
            String::new(),
        ),
    ] {
        let expected = (message.to_owned(), detail.to_owned(), hint);
        assert_eq!(told(&mut client, sql), expected, "{sql}");
    }
    let plan = client.ok("explain update u set y = 'q' where x = 5");
    assert!(plan.contains("Index Lookup using t_pkey on t"), "{plan}");
    assert!(plan.contains("Path: fast"), "{plan}");
}

#[test]
fn who_owns_a_view_has_to_have_the_rights_on_what_it_reads_and_writes() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create user own; create user ann; grant create on schema public to own");
    client.ok("create table rt (id int primary key, n int); insert into rt values (1, 1)");
    let mut own = Client::of_user(&database, "own");
    own.ok("create view rv as select id, n from rt where n > 0");
    own.ok("create view ri with (security_invoker) as select id, n from rt where n > 0");
    own.ok("create view rw as select * from ri");
    own.ok("grant all on rv, ri, rw to ann");
    let mut ann = Client::of_user(&database, "ann");
    let denied = |client: &mut Client, sql: &str, what: &str| {
        let error = client.failure(sql);
        assert_eq!(error.sqlstate().to_string(), "42501", "{sql}");
        let expected = format!("permission denied for {what}");
        assert_eq!(error.message(), expected, "{sql}");
    };
    for sql in [
        "select * from rv",
        "update rv set n = 2",
        "insert into rv values (2, 2)",
        "delete from rv",
    ] {
        denied(&mut ann, sql, "table rt");
        denied(&mut client, sql, "table rt");
    }
    client.ok("grant insert, update on rt to own");
    ann.ok("insert into rv values (2, 2); update rv set n = 2");
    for sql in [
        "update rv set n = 2 where id = 1",
        "insert into ri values (3, 3)",
        "insert into rw values (3, 3)",
        "select * from ri",
    ] {
        denied(&mut ann, sql, "table rt");
    }
    client.ok("grant select on rt to own");
    let changed = ann.ok("update rv set n = 3 where id = 1 returning *");
    assert_eq!(changed, "1|3");
    denied(&mut ann, "select * from rw", "table rt");
    client.ok("revoke all on rt from own; grant all on rt to ann");
    denied(&mut ann, "select * from rv", "table rt");
    assert_eq!(ann.ok("insert into ri values (3, 3) returning *"), "3|3");
    assert_eq!(ann.ok("select count(*) from rw"), "3");
    ann.ok("insert into rw values (4, 4)");
    own.ok("revoke update on rv from ann");
    denied(&mut ann, "update rv set n = 1", "view rv");
    denied(&mut client, "select * from rv for update", "table rt");
}

/// `tests/shown/views.txt`: queries, and how PostgreSQL 15 shows the views that have them, plainly and prettily.
#[test]
fn a_view_is_shown_as_postgresql_shows_it() {
    let mut client = Client::new();
    client.ok("create table t (a int, b text, c numeric, d date); create table u (a int, x text)");
    client.ok("create schema so; create table so.w (a int, k int)");
    client.ok("create table \"Q t\" (\"A b\" int, \"select\" int)");
    let mut failures = Vec::new();
    for case in include_str!("../shown/views.txt").split("----\n") {
        let (query, rest) = case.split_once("\n== plain\n").unwrap();
        let (plain, pretty) = rest.split_once("\n== pretty\n").unwrap();
        client.ok(&format!("create view shown as {query}"));
        for (wanted, call) in [
            (plain, "pg_get_viewdef('shown'::regclass)"),
            (pretty.trim_end(), "pg_get_viewdef('shown'::regclass, true)"),
        ] {
            let found = client.ok(&format!("select {call}"));
            if found != wanted {
                failures.push(format!("{query}\n{found}\ninstead of\n{wanted}\n"));
            }
            // What is shown makes the same again.
            client.ok(&format!("create view again as {found}"));
            let again = client.ok(&format!("select {}", call.replace("shown", "again")));
            if again != found {
                failures.push(format!("{query}\n{again}\nagain of\n{found}\n"));
            }
            client.ok("drop view again");
        }
        client.ok("drop view shown");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is not written in lines stays as it is kept; whichever it is, it makes the same view again.
#[test]
fn what_is_shown_of_a_view_makes_the_same_view_again() {
    let mut client = Client::new();
    client.ok("create table t (a int, x text, tags text[], at timestamptz, b int)");
    client.ok("create schema s; create table s.t (a int, y int); create table u (a int, b int)");
    client.ok("insert into t values (2, 'a,b', '{p,q}', '2020-01-01 12:00Z', 1), (1, 'c', '{r}', '2021-01-01 12:00Z', 3)");
    client.ok("insert into s.t values (1, 10), (2, 5); insert into u values (1, 7)");
    for query in [
        "select t.tags[1] as f, tags[1:1] as g, public.t.tags[2] as h from t",
        "select (x::text[])[1] as f from (values ('{m,n}')) v(x)",
        "select (string_to_array(x, ','))[2] as f from t",
        "select (at at time zone 'utc')::date as d from t",
        "select (x || 'z') collate \"C\" as f from t order by x collate \"C\" desc",
        "select (at + interval '1 day') at time zone 'utc' as f from t",
        "select 2 as k, a from t order by 1, a desc",
        "select 2 as k, a from t order by k, a",
        "select 3 as k, a, count(*) from t group by 1, 2 order by 2",
        "select 'all' as l, sum(a) from t group by l",
        "select -1 as k, a from t order by (k), 2",
        "select distinct on (k) 7 as k, a from t order by k, a desc",
        "select t.y, u.b from s.t, u where s.t.a = u.a",
        "select (select x from s.t where y = 10) as f from public.t order by 1",
        "select a, (select b from u where u.a = t.a and b between (select 1) and (select 9)) from t order by a",
    ] {
        client.ok(&format!("create view shown as {query}"));
        for call in ["'shown'::regclass", "'shown'::regclass, true"] {
            let text = client.ok(&format!("select pg_get_viewdef({call})"));
            client.ok(&format!("create view again as {text}"));
            let types = |name: &str| {
                format!(
                    "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = '{name}'::regclass and attnum > 0 order by attnum"
                )
            };
            assert_eq!(
                client.ok(&types("again")),
                client.ok(&types("shown")),
                "{text}"
            );
            let rows = client.ok("select * from shown");
            assert_eq!(client.ok("select * from again"), rows, "{query}\n{text}");
            client.ok("drop view again");
        }
        client.ok("drop view shown");
    }
}

/// An operand of BETWEEN is written twice: four times, if that one is an operand again.
#[test]
fn views_whose_text_would_double_with_each_level_are_shown_as_they_are_kept() {
    let mut client = Client::new();
    let mut query = "select true".to_owned();
    for _ in 0..40 {
        query = format!("select ({query}) between false and true");
    }
    client.ok(&format!("create view deep as {query}"));
    let text = client.ok("select pg_get_viewdef('deep'::regclass)");
    assert!(text.len() < 4 * query.len(), "{}", text.len());
    let star = (0..40).fold("select 1 as a".to_owned(), |inner, _| {
        format!("select * from ({inner}) q")
    });
    client.ok(&format!("create view stars as {star}"));
    client.ok("select pg_get_viewdef('stars'::regclass)");
}

/// Each is told from `0x1` by where it begins, which is looked for once.
#[test]
fn hundreds_of_thousands_of_bit_strings_are_read_in_a_moment() {
    let mut client = Client::new();
    let all = vec!["X'1'"; 200_000].join(",");
    let (state, _) = client.fails(&format!("select {all}"));
    assert_eq!(state, "0A000", "there is no such type yet");
}

/// Symptom: `0A000`.
#[test]
fn regress_what_a_view_reads_beside_a_table_of_its_name_can_be_called_otherwise() {
    let reads = [
        "select a1.t.x, b1.t.y from a1.t join b1.t on a1.t.x = b1.t.x",
        "select x1, y from (select a1.t.x as x1 from a1.t) s, b1.t where b1.t.x = s.x1",
        "select a1.t.x, (select b1.t.y from b1.t where b1.t.x = a1.t.x) from a1.t",
    ];
    let changes = [
        "alter table b1.t rename column x to z",
        "alter table b1.t rename to u",
        "alter schema b1 rename to c1",
        "alter table b1.t set schema a2",
        "alter table a1.t rename to t_1",
        "alter table a1.t rename x to y",
    ];
    for query in reads {
        for change in changes {
            let mut client = Client::new();
            client.ok("create schema a1; create schema b1; create schema a2; create table a1.t (x int); create table b1.t (x int, y int)");
            client.ok("insert into a1.t values (1), (2); insert into b1.t values (1, 10), (3, 30)");
            client.ok(&format!("create view v as {query}"));
            let before = client.ok("select * from v order by 1");
            client.ok(change);
            assert_eq!(
                client.ok("select * from v order by 1"),
                before,
                "{query}; {change}"
            );
            client.ok("create view w as select * from v; drop view w");
        }
    }
}
