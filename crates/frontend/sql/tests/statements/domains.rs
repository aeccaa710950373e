//! Domains beyond their answers: texts and fields of errors, other sessions, COPY, a restart, the protocol. Answers are in the corpus (`domains`).

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;

const POSINT: &str = "create domain posint as int check (value > 0)";

fn client() -> Client {
    let mut client = Client::new();
    client.ok(POSINT);
    client
}

#[test]
fn errors_say_what_postgresql_says() {
    let mut client = client();
    client.ok(
        "create domain small as posint constraint small_max check (value < 100);
        create domain short as varchar(3) not null; create type mood as enum ('ok');
        create schema s; create domain s.own as int check (value <> 3); create table t (a posint)",
    );
    for (sql, state, message) in [
        (
            "select 0::posint",
            "23514",
            "value for domain posint violates check constraint \"posint_check\"",
        ),
        (
            "select (-5)::small",
            "23514",
            "value for domain small violates check constraint \"posint_check\"",
        ),
        (
            "select 3::s.own",
            "23514",
            "value for domain s.own violates check constraint \"own_check\"",
        ),
        (
            "select null::short",
            "23502",
            "domain short does not allow null values",
        ),
        (
            "create domain posint as int",
            "42710",
            "type \"posint\" already exists",
        ),
        (
            "create table posint (a int)",
            "42710",
            "type \"posint\" already exists",
        ),
        (
            "create domain x as int default 1 default 2",
            "42601",
            "multiple default expressions",
        ),
        (
            "create domain x as int not null null",
            "42601",
            "conflicting NULL/NOT NULL constraints",
        ),
        (
            "create domain x as int primary key",
            "42601",
            "primary key constraints not possible for domains",
        ),
        (
            "create domain x as int check (value > 0) no inherit",
            "42P16",
            "check constraints for domains cannot be marked NO INHERIT",
        ),
        (
            "create domain x as int check (value > 0) initially deferred",
            "0A000",
            "specifying constraint deferrability not supported for domains",
        ),
        (
            "create domain x as int check (value)",
            "42804",
            "argument of CHECK must be type boolean, not type integer",
        ),
        (
            "create domain x as int check (value > (select 1))",
            "0A000",
            "cannot use subquery in check constraint",
        ),
        (
            "create domain x as int constraint c check (value > 0) constraint c check (value < 5)",
            "42710",
            "constraint \"c\" for domain \"x\" already exists",
        ),
        (
            "alter domain posint drop constraint c",
            "42704",
            "constraint \"c\" of domain \"posint\" does not exist",
        ),
        (
            "alter domain posint rename constraint c to d",
            "42704",
            "constraint \"c\" for domain posint does not exist",
        ),
        (
            "alter domain mood set not null",
            "42809",
            "mood is not a domain",
        ),
        ("drop domain mood", "42809", "\"mood\" is not a domain"),
        ("alter domain t set not null", "42809", "t is not a domain"),
        (
            "alter type posint add value 'x'",
            "42809",
            "posint is not an enum",
        ),
        (
            "drop domain nothing",
            "42704",
            "type \"nothing\" does not exist",
        ),
        (
            "create table u (a posint[])",
            "0A000",
            "arrays of domains is not supported",
        ),
        (
            "create index on t ((a::small))",
            "0A000",
            "a cast to a domain in an index is not supported",
        ),
    ] {
        assert_eq!(
            client.fails(sql),
            (state.to_owned(), message.to_owned()),
            "{sql}"
        );
    }
    let error = client.failure("insert into t values (0)");
    let fields = error.fields();
    assert_eq!(fields.schema.as_deref(), Some("public"));
    assert_eq!(fields.data_type.as_deref(), Some("posint"));
    assert_eq!(fields.constraint.as_deref(), Some("posint_check"));
    assert_eq!((&fields.table, &fields.detail), (&None, &None));
    client.ok("insert into t values (4), (6)");
    let error = client.failure("alter domain posint add constraint big check (value > 5)");
    assert_eq!(
        error.message(),
        "column \"a\" of table \"t\" contains values that violate the new constraint"
    );
    assert_eq!(error.fields().column.as_deref(), Some("a"));
    client.ok("insert into t values (null)");
    assert_eq!(
        client.fails("alter domain posint set not null").1,
        "column \"a\" of table \"t\" contains null values"
    );
}

#[test]
fn what_depends_on_a_domain_is_told_and_goes() {
    let mut client = client();
    client.ok(
        "create domain small as posint; create domain odd as int check (value::posint <> 2);
        create table t (id int primary key, a posint, b small, c text default 5::posint::text);
        create view v as select a from t; create view w as select 5::small as x",
    );
    let error = client.failure("drop domain posint");
    assert_eq!(
        error.message(),
        "cannot drop type posint because other objects depend on it"
    );
    let detail = error.fields().detail.clone().unwrap_or_default();
    for line in [
        "type small depends on type posint",
        "column b of table t depends on type small",
        "view w depends on type small",
        "constraint odd_check depends on type posint",
        "column a of table t depends on type posint",
        "view v depends on column a of table t",
        "default value for column c of table t depends on type posint",
    ] {
        assert!(
            detail.lines().any(|own| own == line),
            "{line} is not in {detail}"
        );
    }
    client.ok("drop domain posint cascade");
    assert_eq!(client.ok("insert into t values (1) returning *"), "1|~");
    assert_eq!(client.ok("select 2::odd"), "2");
    assert_eq!(client.state("select 5::small"), "42704");
    assert_eq!(
        client.ok("select count(*) from pg_class where relname in ('v', 'w')"),
        "0"
    );
}

#[test]
fn copy_looks_at_domains() {
    let mut client = client();
    client.ok("alter domain posint set default 7; create table t (id int, a posint)");
    client.copy("copy t from stdin", "1\t5\n2\t\\N\n", 3);
    client.copy("copy t (id) from stdin", "3\n", 3);
    client.copy("copy t (id) from stdin where id > 3 and a > 0", "3\n4\n", 3);
    assert_eq!(
        client.ok("select * from t order by id"),
        "1|5\n2|~\n3|7\n4|7"
    );
    let mut heard = super::client::Heard::default();
    for table in ["t", "fresh"] {
        client.ok("begin; create table fresh (id int, a posint)");
        let copy = format!("copy {table} from stdin");
        client.session.simple_query(&copy, &mut heard).unwrap();
        let failed = client
            .session
            .copy_data(b"5\t-1\n")
            .and_then(|_| client.session.copy_done(&mut heard));
        let error = failed.unwrap_err();
        assert_eq!(error.sqlstate().as_str(), "23514", "{table}");
        assert!(error.message().contains("posint_check"), "{error}");
        client.ok("rollback");
    }
}

#[test]
fn a_constraint_waits_for_writers_and_writers_for_it() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok(POSINT);
    one.ok("create table t (a posint)");
    // Compiled with what the domain asks now.
    for client in [&mut one, &mut other] {
        client.ok("prepare p as insert into t values ($1)");
        client.ok("execute p (50)");
    }
    one.ok("begin; execute p (60)");
    other.ok("set lock_timeout = 50");
    let add = "alter domain posint add constraint few check (value < 55)";
    assert_eq!(other.state(add), "55P03");
    one.ok("commit");
    assert_eq!(other.state(add), "23514");
    one.ok("delete from t where a = 60");
    other.ok("begin");
    other.ok(add);
    one.ok("set lock_timeout = 50");
    assert_eq!(one.state("execute p (60)"), "55P03");
    assert_eq!(one.state("create table u (a posint)"), "55P03");
    other.ok("commit");
    assert_eq!(one.state("execute p (60)"), "23514");
    other.ok("begin");
    other.ok("alter domain posint drop constraint few");
    other.ok("rollback");
    assert_eq!(one.state("execute p (60)"), "23514");
    other.ok("alter domain posint drop constraint few");
    one.ok("execute p (60)");
}

#[test]
fn a_domain_is_not_dropped_while_a_column_of_it_is_made() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok(POSINT);
    one.ok("begin; create table t (a posint)");
    other.ok("set lock_timeout = 50");
    assert_eq!(other.state("drop domain posint"), "55P03");
    one.ok("commit");
    assert_eq!(other.state("drop domain posint"), "2BP01");
    one.ok("drop table t");
    one.ok("begin; drop domain posint");
    assert_eq!(other.state("create table t (a posint)"), "55P03");
    one.ok("commit");
    assert_eq!(other.state("create table t (a posint)"), "42704");
}

#[test]
fn domains_survive_a_restart() {
    let directory = Arc::new(MemoryDirectory::new());
    let told = "select oid, typname, typbasetype::regtype, typnotnull, typdefault from pg_type where typtype = 'd' order by oid";
    let before = {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        client.ok(POSINT);
        client.ok(
            "create domain small as posint not null default 3 constraint few check (value < 9);
            create table t (id int primary key, a posint, b small); insert into t values (1, 2);
            create view v as select b, 4::posint as p from t; comment on domain small is 'few'",
        );
        client.ok(told)
    };
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(client.ok(told), before);
    assert_eq!(client.ok("select * from t"), "1|2|3");
    assert_eq!(client.state("insert into t values (2, 0)"), "23514");
    assert_eq!(client.state("insert into t values (2, 1, 9)"), "23514");
    assert_eq!(client.state("insert into t values (2, 1, null)"), "23502");
    assert_eq!(
        client.ok("select pg_typeof(b), pg_typeof(p), obj_description('small'::regtype) from v"),
        "small|posint|few"
    );
    assert_eq!(client.state("drop domain small"), "2BP01");
}

#[test]
fn clients_are_told_the_type_below() {
    let mut client = client();
    client.ok("create domain name_of as varchar(9); create table t (a posint, b name_of)");
    let session = &mut client.session;
    session
        .parse("i", "insert into t values ($1, $2) returning a, b", &[])
        .unwrap();
    let types = session.describe_statement("i").unwrap();
    let told = types.fields.unwrap();
    let told: Vec<_> = told
        .iter()
        .map(|field| (field.type_oid, field.type_modifier))
        .collect();
    assert_eq!(told, [(23, -1), (1043, 13)]);
}

#[test]
fn only_its_owner_changes_a_domain() {
    let database = database();
    let mut one = Client::of(&database);
    one.ok(POSINT);
    one.ok("create role other login; grant create on schema public to other");
    let mut other = Client::of_user(&database, "other");
    for sql in [
        "alter domain posint set not null",
        "alter domain posint rename to mine",
        "drop domain posint",
        "comment on domain posint is 'mine'",
    ] {
        assert_eq!(
            other.fails(sql),
            (
                "42501".to_owned(),
                "must be owner of type posint".to_owned()
            ),
            "{sql}"
        );
    }
    assert_eq!(other.ok("select 5::posint"), "5");
    one.ok("alter domain posint owner to other");
    other.ok("alter domain posint set not null; drop domain posint");
}

#[test]
fn conditions_that_cast_to_domains_come_to_an_end() {
    let mut client = Client::new();
    client.ok("create domain r as int; create domain over_r as r; create domain by_r as int check (value::r > 0)");
    for own in ["r", "over_r", "by_r"] {
        let sql = format!("alter domain r add check (value::{own} > 0)");
        assert_eq!(
            client.fails(&sql),
            (
                "0A000".to_owned(),
                "a constraint of a domain that casts to it is not supported".to_owned()
            ),
            "{sql}"
        );
    }
    // As high as a text may be, in each other, below such a text.
    let more = " + 1".repeat(3900);
    client.ok(&format!(
        "create domain high0 as int check (value{more} > 0)"
    ));
    for level in 1..=8 {
        let below = level - 1;
        let check = format!("value::high{below}{more} > 0");
        client.ok(&format!("create domain high{level} as int check ({check})"));
    }
    let sql = "create domain high9 as int check (value::high8 > 0)";
    assert_eq!(client.state(sql), "54001");
    assert_eq!(client.ok(&format!("select 1::high8{more}")), "3901");
    let sql = format!("select (-5000)::high8{more}");
    assert_eq!(client.state(&sql), "23514");
    // The one below gets to cast to another: the eighth is asked too deep.
    client.ok("create domain lowest as int check (value <> 0)");
    client.ok("alter domain high0 add check (value::lowest <> 0)");
    assert_eq!(client.state("select 1::high8"), "54001");
    assert_eq!(client.ok("select 1::high7"), "1");
}

#[test]
fn conditions_that_are_asked_again_and_again_are_refused() {
    let mut client = Client::new();
    client.ok("create domain d0 as int check (value > 0)");
    let made = (1..30).take_while(|level| {
        let below = level - 1;
        let check = format!("value::d{below} > 0 and value::d{below} < 9");
        let sql = format!("create domain d{level} as int check ({check})");
        let mut heard = super::client::Heard::default();
        client.session.simple_query(&sql, &mut heard).is_ok()
    });
    let made = made.count();
    assert!((4..=8).contains(&made), "{made}");
    assert_eq!(client.ok(&format!("select 8::d{made}")), "8");
    assert_eq!(client.state(&format!("select 9::d{made}")), "23514");
    let casts = vec!["value::d0 > 0"; 150].join(" and ");
    client.ok(&format!("create domain many as int check ({casts})"));
    let casts = vec!["value::many > 0"; 150].join(" and ");
    let sql = format!("create domain too_many as int check ({casts})");
    assert_eq!(client.state(&sql), "54001");
}

#[test]
fn a_constraint_waits_for_columns_of_domains_over_its_own() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok("create domain d as int; create domain d2 as d; create table old (a int)");
    other.ok("set lock_timeout = 50");
    let add = "alter domain d add constraint plus check (value > 0)";
    for make in [
        "create table t (c d2); insert into t values (-1)",
        "alter table old add column c d2; insert into old (c) values (-1)",
        "create table t as select (-1)::d2 as c",
    ] {
        one.ok("begin");
        one.ok(make);
        assert_eq!(other.state(add), "55P03", "{make}");
        assert_eq!(other.state("drop domain d cascade"), "55P03", "{make}");
        one.ok("commit");
        assert_eq!(other.state(add), "23514", "{make}");
        one.ok("drop table if exists t; drop table old; create table old (a int)");
    }
    other.ok(add);
}

#[test]
fn under_repeatable_read_nothing_of_a_domain_is_missed() {
    let database = database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok("create domain d as int; create type mood as enum ('ok'); create table t (a int); create table own (c d); create table gone (c d)");
    for (make, unmake) in [
        (
            "create table u (c d); insert into u values (-1)",
            "drop table u",
        ),
        (
            "alter table t add column c d",
            "alter table t drop column c",
        ),
        ("create domain d2 as d", "drop domain d2"),
    ] {
        for sql in [
            "alter domain d add check (value > 0)",
            "alter domain d set not null",
            "drop domain d cascade",
        ] {
            one.ok("begin isolation level repeatable read; select 1");
            other.ok(make);
            assert_eq!(one.state(sql), "40001", "{make}; {sql}");
            one.ok("rollback");
            other.ok(unmake);
        }
    }
    one.ok("begin isolation level repeatable read; select 1");
    other.ok("create table u (c mood)");
    assert_eq!(one.state("drop type mood"), "40001");
    one.ok("rollback");
    // What the transaction has done itself is known.
    one.ok("begin isolation level repeatable read; select 1; drop table gone; create table fresh (c d); alter table own add column b d");
    other.ok("alter table t add column b int");
    one.ok("alter domain d add check (value > 0); commit");
}

#[test]
fn what_lasts_is_of_no_temporary_type() {
    let mut client = client();
    client.ok("create domain pg_temp.x as int; create type pg_temp.e as enum ('a'); create table t (a int)");
    for sql in [
        "create table l (a pg_temp.x)",
        "create table l (a pg_temp.e)",
        "create table l (a int check (a::pg_temp.x > 0))",
        "create table l as select 1::pg_temp.x as a",
        "create domain l as pg_temp.x",
        "create view l as select 1::pg_temp.x as a",
        "alter table t add column b pg_temp.x",
        "alter table t alter a type pg_temp.x",
        "alter table t alter a set default 1::pg_temp.x",
        "alter domain posint add check (value::pg_temp.x > 0)",
    ] {
        assert_eq!(client.state(sql), "0A000", "{sql}");
    }
    let error = client.failure("create table l (a pg_temp.x)");
    assert_eq!(
        error.message(),
        "a table that outlives its temporary type x is not supported"
    );
    client.ok("create temporary table s (a pg_temp.x, b posint); create domain pg_temp.y as pg_temp.x; create temporary view v as select 1::pg_temp.y");
}
