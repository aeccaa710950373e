//! Views: what they keep, and what keeps them.

use super::client::Client;

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
        " SELECT t.n FROM a.t;"
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
