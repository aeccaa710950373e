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
