//! Extensions: what is told of what keeps them, and that they are as lasting and as shared as tables.

use super::client::{Client, Heard, database, database_in};
use std::sync::Arc;
use std::thread;
use vellum_io::MemoryDirectory;

/// What calls functions of an extension in each of the ways that there are.
const CALLERS: &str = "create schema s;
    create extension \"uuid-ossp\" with schema s;
    create table s.t (id uuid default s.uuid_generate_v4(), x text check (s.uuid_generate_v5(s.uuid_nil(), x) <> s.uuid_nil()),
        g uuid generated always as (s.uuid_generate_v5(s.uuid_nil(), x)) stored);
    create index ti on s.t (s.uuid_generate_v3(s.uuid_nil(), x));
    create table u (id uuid default s.uuid_generate_v4(), x text check (s.uuid_generate_v5(s.uuid_nil(), x) <> s.uuid_nil()),
        g uuid generated always as (s.uuid_generate_v5(s.uuid_nil(), x)) stored);
    create index ui on u (x) where s.uuid_generate_v3(s.uuid_nil(), x) is not null;
    create view v as select s.uuid_nil() as a, id from u";

#[test]
fn what_calls_functions_of_an_extension_keeps_it_and_goes_with_it() {
    let mut client = Client::new();
    client.ok(CALLERS);
    let refused = client.failure("drop extension \"uuid-ossp\"");
    assert_eq!(
        refused.message(),
        "cannot drop extension uuid-ossp because other objects depend on it"
    );
    let callers = [
        "view v depends on function s.uuid_nil()",
        "index s.ti depends on function s.uuid_generate_v3(uuid,text)",
        "index ui depends on function s.uuid_generate_v3(uuid,text)",
        "default value for column id of table s.t depends on function s.uuid_generate_v4()",
        "default value for column id of table u depends on function s.uuid_generate_v4()",
        "column g of table s.t depends on function s.uuid_generate_v5(uuid,text)",
        "constraint t_x_check on table s.t depends on function s.uuid_generate_v5(uuid,text)",
        "column g of table u depends on function s.uuid_generate_v5(uuid,text)",
        "constraint u_x_check on table u depends on function s.uuid_generate_v5(uuid,text)",
    ];
    let fields = refused.fields();
    let detail = fields.detail.clone().unwrap_or_default();
    let told: Vec<&str> = detail.lines().collect();
    assert_eq!(told, callers);
    assert_eq!(
        fields.hint.as_deref(),
        Some("Use DROP ... CASCADE to drop the dependent objects too.")
    );
    let refused = client.failure("drop schema s");
    let detail = refused.fields().detail.clone().unwrap_or_default();
    let told: Vec<&str> = detail.lines().collect();
    let mut of_schema = vec!["extension uuid-ossp depends on schema s"];
    of_schema.extend(
        callers
            .iter()
            .filter(|line| !line.contains("s.t ") && !line.contains("s.ti ")),
    );
    of_schema.push("table s.t depends on schema s");
    assert_eq!(told, of_schema);
    let heard = client.hear("begin; drop schema s cascade; rollback");
    assert_eq!(heard.notices, ["drop cascades to 7 other objects"]);
    let heard = client.hear("drop extension if exists nosuch, \"uuid-ossp\" cascade");
    assert_eq!(
        heard.notices,
        [
            "extension \"nosuch\" does not exist, skipping",
            "drop cascades to 9 other objects"
        ]
    );
    assert_eq!(
        client.ok("insert into u values (default, 'x') returning *"),
        "~|x"
    );
    assert_eq!(client.state("select * from v"), "42P01");
}

#[test]
fn messages_and_notices_are_those_of_postgresql() {
    let mut client = Client::new();
    let heard = client.hear("create extension pgcrypto; create extension if not exists pgcrypto");
    assert_eq!(
        heard.notices,
        ["extension \"pgcrypto\" already exists, skipping"]
    );
    assert_eq!(heard.notice_states, ["42710"]);
    for (sql, message) in [
        (
            "select public.nosuch('a', 1)",
            "function public.nosuch(unknown, integer) does not exist",
        ),
        (
            "select public.digest(1, 2)",
            "function public.digest(integer, integer) does not exist",
        ),
        (
            "select digest('a', 'b')",
            "Cannot use \"b\": No such hash algorithm",
        ),
        (
            "select encrypt('a', 'b', 'c')",
            "Cannot use \"c\": No such cipher algorithm",
        ),
        (
            "select decrypt_iv('a', 'b', 'c', 'aes')",
            "decrypt_iv error: Decryption failed",
        ),
        ("select gen_salt('x')", "gen_salt: Unknown salt algorithm"),
        (
            "select gen_salt('bf', 3)",
            "gen_salt: Incorrect number of rounds",
        ),
        ("select crypt('a', 'b')", "invalid salt"),
        ("select gen_random_bytes(0)", "Length not in range"),
        (
            "create extension nosuch",
            "extension \"nosuch\" is not available",
        ),
        (
            "create extension \"uuid-ossp\" version '9'",
            "extension \"uuid-ossp\" has no installation script nor update path for version \"9\"",
        ),
        (
            "alter extension pgcrypto update to '9'",
            "extension \"pgcrypto\" has no update path from version \"1.3\" to version \"9\"",
        ),
        (
            "alter extension plpgsql set schema public",
            "extension \"plpgsql\" does not support SET SCHEMA",
        ),
        (
            "create extension \"uuid-ossp\" schema pg_temp",
            "schema \"pg_temp\" does not exist",
        ),
    ] {
        assert_eq!(client.fails(sql).1, message, "{sql}");
    }
    let heard = client.hear("alter extension pgcrypto update");
    assert_eq!(
        heard.notices,
        ["version \"1.3\" of extension \"pgcrypto\" is already installed"]
    );
    client.ok("create role r; set role r");
    for (sql, message) in [
        (
            "drop extension pgcrypto",
            "must be owner of extension pgcrypto",
        ),
        (
            "create extension \"uuid-ossp\"",
            "permission denied to create extension \"uuid-ossp\"",
        ),
    ] {
        let told = client.fails(sql);
        assert_eq!((&*told.0, &*told.1), ("42501", message));
    }
}

#[test]
fn a_salt_of_des_is_none() {
    let mut client = Client::new();
    client.ok("create extension pgcrypto");
    for sql in [
        "select gen_salt('des')",
        "select gen_salt('xdes')",
        "select crypt('x', 'ab')",
        "select crypt('x', '_J9..rasm')",
        "select crypt('x', '$2y$06$abcdefghijklmnopqrstuu')",
        "select encrypt('x', 'k', 'bf')",
    ] {
        assert_eq!(client.state(sql), "22023", "{sql}");
    }
    assert_eq!(client.state("select pgp_sym_encrypt('x', 'k')"), "42883");
}

#[test]
fn rounds_of_bcrypt_are_ended_by_who_cancels_them() {
    let mut client = Client::new();
    client.ok("create extension pgcrypto; set statement_timeout = 50");
    let slow = "select crypt('x', '$2a$31$abcdefghijklmnopqrstuu')";
    assert_eq!(client.state(slow), "57014");
    assert_eq!(
        client.state(&format!(
            "select length({}) from generate_series(1, 2)",
            &slow[7..]
        )),
        "57014"
    );
}

#[test]
fn values_are_drawn_for_each_row_and_in_each_path() {
    let mut client = Client::new();
    client.ok("create extension \"uuid-ossp\"; create extension pgcrypto");
    client.ok("create table t (n int primary key, u uuid); insert into t select g from generate_series(1, 200) g");
    for sql in [
        "select count(distinct u) from (select uuid_generate_v4() u from t) x",
        "select count(distinct u) from (select uuid_generate_v1mc() u from t a join t b using (n)) x",
        "select count(distinct u) from (select gen_random_bytes(16) u, count(*) from t group by n) x",
        "select count(distinct u) from (select public.gen_random_uuid() u from t order by n) x",
        "update t set u = uuid_generate_v4(); select count(distinct u) from t",
        "alter table t add column v uuid default uuid_generate_v4(); select count(distinct v) from t",
        "create table c as select uuid_generate_v1() w from t; select count(distinct w) from c",
    ] {
        assert_eq!(client.ok(sql), "200", "{sql}");
    }
    // Of one value for the statement all would be found.
    let found = client.ok("select count(*) from t where uuid_generate_v4()::text < '8'");
    assert!(
        (20..180).contains(&found.parse::<i32>().unwrap()),
        "{found}"
    );
}

#[test]
fn an_extension_lasts() {
    let directory = Arc::new(MemoryDirectory::new());
    {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        client.ok(CALLERS);
        client.ok("create extension pgcrypto; comment on extension pgcrypto is 'ours'");
        client.ok("create schema other; alter extension \"uuid-ossp\" set schema other");
        client.ok("begin; drop extension pgcrypto; rollback");
        client.ok(
            "begin; drop extension \"uuid-ossp\" cascade; create extension \"uuid-ossp\"; rollback",
        );
    }
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(
        client.ok("select extname, extversion, extnamespace::regnamespace, obj_description(oid) from pg_extension where oid > 16384 order by 1"),
        "pgcrypto|1.3|public|ours\nuuid-ossp|1.1|other|generate universally unique identifiers (UUIDs)"
    );
    assert_eq!(
        client.ok("insert into s.t (x) values ('a') returning g = other.uuid_generate_v5(other.uuid_nil(), x)"),
        "t"
    );
    client.ok("drop extension \"uuid-ossp\" cascade; drop extension pgcrypto");
    drop((client, database));
    let database = database_in(&directory);
    let mut client = Client::of(&database);
    assert_eq!(client.ok("select extname from pg_extension"), "plpgsql");
    assert_eq!(
        client.ok("select count(*) from pg_description where classoid = 'pg_extension'::regclass"),
        "1"
    );
}

#[test]
fn others_see_an_extension_when_it_has_committed() {
    let database = database();
    let [mut a, mut b] = [(); 2].map(|()| Client::of(&database));
    b.ok("create schema s");
    a.ok("begin; create extension \"uuid-ossp\"");
    assert_eq!(a.ok("select uuid_nil()::text < '1'"), "t");
    assert_eq!(b.state("select uuid_nil()"), "42883");
    assert_eq!(b.ok("select count(*) from pg_extension"), "1");
    a.ok("commit");
    b.ok("prepare p as select uuid_nil()::text < '1'");
    assert_eq!(b.ok("execute p"), "t");
    a.ok("alter extension \"uuid-ossp\" set schema s");
    assert_eq!(b.state("execute p"), "42883");
    a.ok("alter extension \"uuid-ossp\" set schema public");
    assert_eq!(b.ok("execute p"), "t");
    b.ok("begin isolation level repeatable read; select 1");
    a.ok("drop extension \"uuid-ossp\"");
    assert_eq!(b.ok("execute p"), "t");
    b.ok("commit");
    assert_eq!(b.state("execute p"), "42883");
}

/// Says something while another client's transaction is open, which ends by `end`: tags, or the SQLSTATE.
fn beside(mut client: Client, sql: &str, other: &mut Client, end: &str) -> Vec<String> {
    let text = sql.to_owned();
    let waiter = thread::spawn(move || {
        let mut heard = Heard::default();
        match client.session.simple_query(&text, &mut heard) {
            Ok(_) => heard.tags,
            Err(error) => vec![error.sqlstate().to_string()],
        }
    });
    other.ok(end);
    waiter.join().unwrap()
}

#[test]
fn two_that_make_one_extension_end_as_if_one_had_come_after_the_other() {
    for (sql, end, told) in [
        ("create extension pgcrypto", "commit", "42710"),
        ("create extension pgcrypto", "rollback", "CREATE EXTENSION"),
        (
            "create extension if not exists pgcrypto",
            "commit",
            "CREATE EXTENSION",
        ),
    ] {
        let database = database();
        let [mut a, b] = [(); 2].map(|()| Client::of(&database));
        a.ok("begin; create extension pgcrypto");
        assert_eq!(beside(b, sql, &mut a, end), [told], "{sql}, {end}");
        assert_eq!(a.ok("select count(*) from pg_extension"), "2");
    }
}

#[test]
fn an_extension_is_not_dropped_while_something_is_made_that_calls_it() {
    for (made, used) in [
        (
            "create table t (u uuid default uuid_generate_v4())",
            "2BP01",
        ),
        ("create view v as select uuid_nil()", "2BP01"),
        ("create domain d as uuid default uuid_nil()", "2BP01"),
        ("create table t (n int)", "DROP EXTENSION"),
    ] {
        let database = database();
        let [mut a, b] = [(); 2].map(|()| Client::of(&database));
        a.ok("create extension \"uuid-ossp\"");
        a.ok("begin");
        a.ok(made);
        let told = beside(b, "drop extension \"uuid-ossp\"", &mut a, "commit");
        assert_eq!(told, [used], "{made}");
        // The other way round.
        let database = super::client::database();
        let [mut a, b] = [(); 2].map(|()| Client::of(&database));
        a.ok("create extension \"uuid-ossp\"");
        a.ok("begin; drop extension \"uuid-ossp\"");
        let told = beside(b, made, &mut a, "commit");
        assert_eq!(told == ["42883"], used == "2BP01", "{made}: {told:?}");
    }
}

#[test]
fn who_cannot_look_into_the_schema_calls_none_of_its_functions_but_in_defaults() {
    let mut client = Client::new();
    client.ok("create schema s; create extension \"uuid-ossp\" schema s; create role r");
    client
        .ok("create table t (n int, u uuid default s.uuid_nil()); grant all on t to r; set role r");
    assert_eq!(client.state("select s.uuid_nil()"), "42501");
    client.ok("insert into t values (1)");
    client.ok("reset role; grant usage on schema s to r; set role r");
    assert_eq!(client.ok("select s.uuid_nil() = u from t"), "t");
    client.ok("reset role; revoke all on t from r; revoke usage on schema s from r");
    client.ok("grant create on schema public to r; set role r");
    // Whoever owns an extension is not dropped.
    client.ok("reset role; revoke create on schema public from r; alter role r createdb");
    // Who may make databases may do so no more than others.
    client.ok("set role r");
    assert_eq!(client.state("create extension pgcrypto"), "42501");
    assert_eq!(client.state("create schema mine"), "42501");
    client.ok("reset role; grant create on database vellum to r; set role r");
    client.ok("create extension pgcrypto; reset role");
    assert_eq!(client.state("drop role r"), "2BP01");
    client.ok("set role r; drop extension pgcrypto; reset role");
    client.ok("revoke create on database vellum from r; drop role r");
}

/// Symptom: CREATE INDEX over a hash of 2^31 rounds could not be ended by anything but SIGKILL. Cause: what computes an index's columns has no ear for cancels.
#[test]
fn regress_hashes_that_nobody_could_end_are_refused() {
    let mut client = Client::new();
    client.ok("create extension pgcrypto; create table t (x text); insert into t values ('a')");
    let salt = |cost| format!("crypt(x, '$2a${cost}$abcdefghijklmnopqrstuu')");
    for sql in [
        format!("create index on t ({})", salt("31")),
        format!(
            "alter table t add y text generated always as ({}) stored",
            salt("13")
        ),
        format!("alter table t alter x type text using {}", salt("31")),
    ] {
        assert_eq!(client.state(&sql), "54000", "{sql}");
    }
    client.ok(&format!("create index on t ({})", salt("04")));
    // Where a cancel is heard they run as long as they like.
    client.ok("set statement_timeout = 100");
    assert_eq!(
        client.state(&format!("select {} from t", salt("31"))),
        "57014"
    );
}
