//! Roles, and what they may do.

use super::client::{Client, database, database_in};
use std::sync::Arc;
use vellum_io::MemoryDirectory;
use vellum_sql::{Password, SessionOptions};

const VERIFIER: &str = "SCRAM-SHA-256$4096:c2FsdA==$a:b";

/// What a server would make of a password, but without its cryptography.
fn kept(password: &str) -> Option<Password> {
    Some(match password {
        "" => Password::Empty,
        verifier if verifier == VERIFIER => Password::Verifier(verifier.to_owned()),
        other => Password::Verifier(format!("kept of {other}")),
    })
}

#[test]
fn roles_are_made_changed_and_dropped() {
    let database = database();
    database.set_password_maker(kept);
    let mut client = Client::of(&database);
    client.ok("create role readers; create user ann password 'SCRAM-SHA-256$4096:c2FsdA==$a:b' in role readers connection limit 3");
    assert_eq!(
        client.ok("select rolname, rolcanlogin, rolsuper, rolconnlimit from pg_roles where rolname !~ '^pg_' order by 1"),
        "ann|t|f|3\nreaders|f|f|-1\nvellum|t|t|-1"
    );
    assert_eq!(
        database.role("ann").unwrap().verifier.as_deref(),
        Some(VERIFIER)
    );
    assert_eq!(
        client.ok("select rolpassword from pg_roles where rolname = 'ann'"),
        "********"
    );
    client.ok("alter user ann with encrypted password null nologin valid until '2020-01-01'");
    let ann = database.role("ann").unwrap();
    assert!(ann.verifier.is_none() && !ann.login && ann.valid_until.is_some());
    assert_eq!(client.state("create role ann"), "42710");
    assert_eq!(client.state("create role pg_x"), "42939");
    assert_eq!(client.state("drop role nobody"), "42704");
    assert_eq!(client.state("drop role vellum"), "55006");
    assert_eq!(client.state("grant ann to ann"), "0LP01");
    assert_eq!(client.state("grant ann to readers"), "0LP01");
    // With the transaction, as other definitions.
    client.ok("begin; create role bob; rollback");
    assert_eq!(client.state("alter role bob login"), "42704");
    client.ok("create table t (id int); grant select on t to ann");
    assert_eq!(client.state("drop role ann"), "2BP01");
    client.ok("revoke all on t from ann; drop role ann; drop role readers");
    assert_eq!(
        client.ok("select count(*) from pg_roles where rolname !~ '^pg_'"),
        "1"
    );
}

#[test]
fn an_empty_password_is_none_and_a_hash_of_another_kind_is_kept() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create role ann");
    // Nobody has said how to keep one.
    for password in ["x", "", VERIFIER] {
        let text = format!("alter role ann password '{password}'");
        assert_eq!(client.state(&text), "0A000", "{password}");
    }
    database.set_password_maker(kept);
    let empty = "empty string is not a valid password, clearing password";
    // The last is PostgreSQL's hash of the empty one.
    let hash = "md5900150983cd24fb0d6963f7d28e17f72";
    let of_empty = "md57e0d7f8a5d96c24ffcc840f31bce72b2";
    let upper = hash.to_uppercase().replace("MD5", "md5");
    let longer = format!("{hash}0");
    for (password, stored, notices) in [
        (VERIFIER, Some(VERIFIER.to_owned()), vec![]),
        ("", None, vec![empty]),
        ("x", Some("kept of x".to_owned()), vec![]),
        (
            hash,
            Some(hash.to_owned()),
            vec!["role \"ann\" cannot log in by an MD5 password"],
        ),
        (of_empty, None, vec![empty]),
        (&upper, Some(format!("kept of {upper}")), vec![]),
        (&longer, Some(format!("kept of {longer}")), vec![]),
    ] {
        let heard = client.hear(&format!("alter role ann password '{password}'"));
        assert_eq!(heard.notices, notices, "{password}");
        let ann = database.role("ann").unwrap();
        assert_eq!(ann.verifier, stored, "{password}");
    }
}

#[test]
fn a_role_does_what_it_was_granted_and_no_more() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create table t (id int primary key, n serial); insert into t values (1, 1), (2, 2);
         create view v as select id from t; create sequence s;
         create role readers; create user ann; create user bob; grant readers to ann",
    );
    let mut ann = Client::of_user(&database, "ann");
    for denied in [
        "select * from t",
        "insert into t (id) values (3)",
        "update t set n = 0",
        "delete from t",
        "truncate t",
        "drop table t",
        "select * from t for update",
        "select * from t for key share",
        "alter table t add column x int",
        "create index on t (n)",
        "create table u (id int)",
        "create schema x",
        "select * from v",
        "select nextval('s')",
        "select * from pg_authid",
        "create role eve",
        "alter role vellum password null",
        "alter role ann superuser",
        "grant select on t to bob",
        "drop role bob",
        "grant readers to bob",
    ] {
        assert_eq!(ann.state(denied), "42501", "{denied}");
    }
    assert_eq!(
        ann.fails("select * from t").1,
        "permission denied for table t"
    );
    assert_eq!(ann.fails("drop table t").1, "must be owner of table t");
    assert_eq!(
        ann.ok("select count(*) from pg_class where relname = 't'"),
        "1"
    );
    assert_eq!(ann.ok("show is_superuser"), "off");
    // By way of a role that it is a member of; a view reads for its owner.
    client.ok("grant select on v to readers");
    assert_eq!(ann.ok("select * from v order by 1"), "1\n2");
    assert_eq!(ann.state("select * from t"), "42501");
    // Rows are locked by those who may change them.
    client.ok("grant select on t to bob");
    let mut bob = Client::of_user(&database, "bob");
    assert_eq!(bob.ok("select id from t where id = 1"), "1");
    for lock in ["update", "no key update", "share", "key share"] {
        let text = format!("select id from t where id = 1 for {lock}");
        assert_eq!(bob.state(&text), "42501", "{lock}");
    }
    client.ok("grant update on t to bob");
    assert_eq!(bob.ok("select id from t where id = 1 for update"), "1");
    client.ok("revoke all on t from bob");
    client.ok("grant insert on t to ann; grant usage on sequence t_n_seq to ann");
    ann.ok("insert into t (id) values (3)");
    assert_eq!(
        ann.state("insert into t (id) values (4) returning id"),
        "42501"
    );
    client.ok("grant select, update on t to public");
    ann.ok("update t set n = 5 where id = 3");
    assert_eq!(
        ann.ok(
            "select has_table_privilege('t', 'UPDATE'), has_table_privilege('bob', 't', 'DELETE')"
        ),
        "t|f"
    );
    client.ok("revoke select on t from public");
    assert_eq!(ann.state("select * from t"), "42501");
    // Who has the option gives it on.
    client.ok("grant delete on t to ann with grant option");
    ann.ok("grant delete on t to bob");
    assert_eq!(
        client.ok("select relacl from pg_class where relname = 't'"),
        "{vellum=arwdDxt/vellum,ann=ad*/vellum,=w/vellum,bob=d/ann}"
    );
    let mut bob = Client::of_user(&database, "bob");
    bob.ok("delete from t");
    // What one makes, one owns.
    client.ok("grant create on schema public to ann");
    ann.ok(
        "create table own (id int); insert into own values (1); alter table own add column x int",
    );
    assert_eq!(bob.state("select * from own"), "42501");
    assert_eq!(bob.state("drop table own"), "42501");
    ann.ok("grant select on own to bob");
    assert_eq!(bob.ok("select id from own"), "1");
    // Prepared statements are asked each time.
    bob.ok("prepare p as select id from own");
    ann.ok("revoke select on own from bob");
    assert_eq!(bob.state("execute p"), "42501");
    ann.ok("drop table own");
}

#[test]
fn rights_outlive_the_database_program() {
    let directory = std::sync::Arc::new(vellum_io::MemoryDirectory::new());
    {
        let database = super::client::database_in(&directory);
        let mut client = Client::of(&database);
        client.ok("create table t (id int); create user ann; grant select on t to ann");
        client.ok(
            "create table c (a int, b int); grant select (a), update (b) on c to ann;
             alter default privileges grant select on tables to ann;
             alter table c replica identity full; create index i on c (a); cluster c using i;
             create table p (id int primary key, up int references p); alter table p disable trigger all",
        );
    }
    let database = super::client::database_in(&directory);
    let mut ann = Client::of_user(&database, "ann");
    assert_eq!(ann.ok("select count(*) from t"), "0");
    assert_eq!(ann.state("delete from t"), "42501");
    assert_eq!(ann.ok("select a from c"), "");
    ann.ok("update c set b = 1 where a = 1");
    for denied in ["select b from c", "update c set a = 1", "select * from c"] {
        assert_eq!(ann.state(denied), "42501", "{denied}");
    }
    let mut client = Client::of(&database);
    client.ok("insert into p values (1, 7); create table later (id int)");
    assert_eq!(ann.ok("select count(*) from later"), "0");
    assert_eq!(
        client.ok(
            "select relreplident, indisclustered from pg_class c join pg_index i on i.indrelid = c.oid where c.relname = 'c'"
        ),
        "f|t"
    );
}

#[test]
fn who_may_not_connect_gets_no_session() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create user ann; create user bob; revoke connect on database vellum from public; grant connect on database vellum to bob");
    let session = |user: &str| {
        let options = SessionOptions {
            user: user.to_owned(),
            database: "vellum".to_owned(),
            ..SessionOptions::default()
        };
        database.session(options)
    };
    let error = session("ann").err().unwrap();
    assert_eq!(error.sqlstate().to_string(), "42501");
    assert_eq!(error.message(), "permission denied for database \"vellum\"");
    assert!(session("bob").is_ok() && session("vellum").is_ok());
}

#[test]
fn a_session_takes_roles_that_its_user_belongs_to() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create role readers; create role writers; create role others; create user ann; create user bob;
         grant readers to ann; grant writers to readers; create table t (id int); grant insert on t to writers; grant select on t to readers",
    );
    let who = "select current_user, session_user, current_setting('role'), current_setting('is_superuser')";
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    let heard = client.hear("set role writers");
    assert_eq!(
        heard.statuses,
        [("is_superuser".to_owned(), "off".to_owned())],
        "what is as before is not told"
    );
    assert_eq!(client.ok(who), "writers|vellum|writers|off");
    assert_eq!(client.state("select * from t"), "42501");
    client.ok("insert into t values (1)");
    // The user of the session decides what it may become, not the role that it is in.
    client.ok("set role others; reset role");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    client.ok("set session authorization ann");
    assert_eq!(client.ok(who), "ann|ann|none|off");
    client.ok("set role readers");
    assert_eq!(client.ok("select count(*) from t"), "1");
    assert_eq!(client.state("set role others"), "42501");
    assert_eq!(client.state("set role nobody"), "22023");
    client.ok("set role none");
    assert_eq!(client.ok(who), "ann|ann|none|off");
    client.ok("reset session authorization");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    client.ok("begin; set local role readers");
    assert_eq!(client.ok("select current_user"), "readers");
    client.ok("commit");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");
    client.ok("set role = 'writers'");
    client.ok("discard all");
    assert_eq!(client.ok(who), "vellum|vellum|none|on");

    let mut ann = Client::of_user(&database, "ann");
    assert_eq!(ann.state("set session authorization bob"), "42501");
    ann.ok("set session authorization ann; set role writers");
    assert_eq!(ann.ok(who), "writers|ann|writers|off");
    ann.ok("create temp table own (i int); insert into own values (1); insert into t values (2)");
    assert_eq!(ann.state("select * from t"), "42501");
    assert_eq!(ann.state("create table in_public (i int)"), "42501");
    ann.ok("reset role");
    assert_eq!(ann.ok("select count(*) from t"), "2");
}

/// The values of some settings, as SHOW tells them.
fn shown(client: &mut Client, names: &[&str]) -> String {
    let values = names.iter().map(|name| client.ok(&format!("show {name}")));
    values.collect::<Vec<_>>().join("|")
}

#[test]
fn sessions_begin_with_what_is_kept_for_their_role_and_the_database() {
    let directory = Arc::new(MemoryDirectory::new());
    let names = ["statement_timeout", "timezone", "search_path", "a.b"];
    {
        let database = database_in(&directory);
        let mut client = Client::of(&database);
        client
            .ok("create role ann login; create role bob login; create role chief login createrole");
        client.ok("alter role all set statement_timeout = '7s'; alter database vellum set statement_timeout to 8000");
        client.ok(
            "alter database vellum set timezone to 'Europe/Berlin'; alter role all set a.b = 'all'",
        );
        client
            .ok("alter user ann set search_path to x, \"Y\"; alter role ann set timezone = 'UTC'");
        client.ok("alter role ann in database vellum set a.b to 'here'; alter role ann set a.b to 'anywhere'");
        // Sessions keep what they have begun with.
        assert_eq!(shown(&mut client, &["statement_timeout"]), "0");
        assert_eq!(client.state("alter role ann set nothing = 1"), "42704");
        assert_eq!(
            client.state("alter role ann set statement_timeout = 'x'"),
            "22023"
        );
        assert_eq!(
            client.state("alter role ann set server_version = '1'"),
            "55P02"
        );
        assert_eq!(client.state("alter role eve set timezone = 'UTC'"), "42704");
        assert_eq!(
            client.state("alter database other set timezone = 'UTC'"),
            "3D000"
        );
        assert_eq!(
            client.state("alter role ann set local timezone = 'UTC'"),
            "42601"
        );
        assert_eq!(
            client.state("begin read only; alter role ann reset all"),
            "25006"
        );
        client.ok("rollback; begin; alter role ann reset all; rollback");
        client.ok("set work_mem = '5MB'; alter role bob set work_mem from current");
        assert_eq!(
            client.ok(
                "select setdatabase, coalesce(rolname, '-'), setconfig from pg_db_role_setting
                 left join pg_roles r on r.oid = setrole order by 1, 2"
            ),
            "0|-|{statement_timeout=7s,a.b=all}
0|ann|{\"search_path=x, \\\"Y\\\"\",TimeZone=UTC,a.b=anywhere}
0|bob|{work_mem=5MB}
5|-|{statement_timeout=8000,TimeZone=Europe/Berlin}
5|ann|{a.b=here}"
        );
        assert_eq!(
            client.ok("select rolconfig from pg_roles where rolname = 'bob'"),
            "{work_mem=5MB}"
        );
    }
    // Another start reads them.
    let database = database_in(&directory);
    let mut ann = Client::of_user(&database, "ann");
    assert_eq!(shown(&mut ann, &names), "8s|UTC|x, \"Y\"|here");
    let mut bob = Client::of_user(&database, "bob");
    assert_eq!(
        shown(&mut bob, &names),
        "8s|Europe/Berlin|\"$user\", public|all"
    );
    // What the session began with is what RESET goes back to.
    bob.ok("set work_mem = '6MB'; set timezone = 'UTC'; reset work_mem; reset timezone");
    assert_eq!(
        shown(&mut bob, &["work_mem", "timezone"]),
        "5MB|Europe/Berlin"
    );
    bob.ok("set work_mem = '6MB'; reset all");
    assert_eq!(shown(&mut bob, &["work_mem", "a.b"]), "5MB|all");
    // Their own everybody may change, others' few.
    bob.ok("alter role bob set timezone = 'Asia/Tokyo'; alter role current_user reset work_mem");
    for denied in [
        "alter role ann set timezone = 'UTC'",
        "alter role all set timezone = 'UTC'",
        "alter database vellum reset all",
    ] {
        assert_eq!(bob.state(denied), "42501", "{denied}");
    }
    let mut chief = Client::of_user(&database, "chief");
    chief.ok("alter role ann reset search_path");
    assert_eq!(
        chief.state("alter role vellum set timezone = 'UTC'"),
        "42501"
    );
    let mut bob = Client::of_user(&database, "bob");
    assert_eq!(
        shown(&mut bob, &["work_mem", "timezone"]),
        "64MB|Asia/Tokyo"
    );
    // They go with the role.
    let mut client = Client::of(&database);
    client.ok(
        "alter database vellum reset all; alter role all reset all; drop role ann; drop role bob",
    );
    assert_eq!(client.ok("select count(*) from pg_db_role_setting"), "0");
}

#[test]
fn on_conflict_needs_the_rights_of_what_it_may_do() {
    let mut client = Client::new();
    client.ok("create table sec (id int primary key, secret text); create role u");
    client.ok("create view sv as select * from sec; insert into sec values (1, 'x')");
    let update = |name: &str| {
        format!("insert into {name} values (1, 'x') on conflict (id) do update set secret = 'y'")
    };
    for name in ["sec", "sv"] {
        client.ok(&format!("grant insert on {name} to u; set role u"));
        let nothing = format!("insert into {name} values (1, 'x') on conflict do nothing");
        let target = format!("insert into {name} values (1, 'x') on conflict (id) do nothing");
        client.ok(&nothing);
        assert_eq!(client.state(&target), "42501");
        assert_eq!(client.state(&update(name)), "42501");
        client.ok(&format!(
            "reset role; grant select on {name} to u; set role u"
        ));
        client.ok(&target);
        assert_eq!(client.state(&update(name)), "42501");
        client.ok(&format!(
            "reset role; grant update on {name} to u; set role u"
        ));
        client.ok(&update(name));
        client.ok(&format!("reset role; revoke all on {name} from u"));
    }
    // Below a view it is its owner's right that counts.
    client.ok("create role o; grant insert, select on sec to o; alter view sv owner to o");
    client.ok("grant insert, select, update on sv to u; set role u");
    assert_eq!(
        client.failure(&update("sv")).message(),
        "permission denied for table sec"
    );
    client.ok("reset role; grant update on sec to o; set role u");
    client.ok(&update("sv"));
}

#[test]
fn an_update_that_reads_its_row_needs_to_select() {
    let mut client = Client::new();
    client.ok("create table ct (id int, a int, b int, c int[]); create role u");
    client.ok("create view cv as select * from ct where id > 0");
    client.ok("insert into ct values (1, 2, 3, '{1}'); grant update on ct, cv to u; set role u");
    for name in ["ct", "cv"] {
        for value in [
            "b",
            "a + 1",
            "(select b)",
            "(select x from (select b) t (x))",
        ] {
            let sql = format!("update {name} set a = {value}");
            assert_eq!(client.state(&sql), "42501", "{sql}");
        }
        assert_eq!(
            client.state(&format!("update {name} set c[1] = b")),
            "42501"
        );
        for set in [
            "a = 1",
            "a = default",
            "a = (select 1)",
            "c[1] = 2, c[2] = 4",
        ] {
            client.ok(&format!("update {name} set {set}"));
        }
    }
    client.ok("reset role");
    assert_eq!(client.ok("select * from ct"), "1|1|3|{2,4}");
}

#[test]
fn a_refused_row_shows_what_was_given_to_who_may_not_read() {
    let mut client = Client::new();
    client.ok("create table ct (id int not null, a int check (a > 0), b int default 5)");
    client.ok("create view cv as select * from ct where id < 100 with check option");
    client.ok("insert into ct values (1, 1); create role u; grant insert, update on ct, cv to u");
    let detail = |client: &mut Client, sql: &str| {
        let failure = client.failure(sql);
        failure.fields().detail.as_deref().map(str::to_owned)
    };
    let cases = [
        ("update ct set a = -1", "(a) = (-1)", "(1, -1, 5)"),
        (
            "insert into ct (a, id) values (-5, 2)",
            "(id, a) = (2, -5)",
            "(2, -5, 5)",
        ),
        ("insert into ct (a) values (2)", "(a) = (2)", "(null, 2, 5)"),
        ("update cv set id = 200", "(id) = (200)", "(200, 1, 5)"),
        (
            "insert into cv (id) values (200)",
            "(id) = (200)",
            "(200, null, 5)",
        ),
    ];
    for (sql, given, all) in cases {
        client.ok("set role u");
        let told = format!("Failing row contains {given}.");
        assert_eq!(detail(&mut client, sql), Some(told), "{sql}");
        client.ok("reset role");
        let told = format!("Failing row contains {all}.");
        assert_eq!(detail(&mut client, sql), Some(told), "{sql}");
    }
    client.ok("set role u");
    assert_eq!(detail(&mut client, "insert into ct default values"), None);
}

#[test]
fn explain_needs_the_rights_of_its_statement() {
    let mut client = Client::new();
    client.ok("create table ct (id int); create role u; set role u");
    for sql in [
        "explain select * from ct",
        "explain (format json) delete from ct",
        "explain select distinct on (id) id from ct",
    ] {
        assert_eq!(client.state(sql), "42501", "{sql}");
    }
}

#[test]
fn keys_are_told_to_who_may_read_the_table() {
    let mut client = Client::new();
    client.ok("create table pk (id int primary key, b text unique default 'b')");
    client.ok("create table fk (id int references pk); insert into pk values (1); insert into fk values (1)");
    client.ok("create role u; grant insert, update, delete on pk, fk to u");
    let cases = [
        (
            "insert into pk values (2)",
            None,
            "Key (b)=(b) already exists.",
        ),
        (
            "insert into pk values (1, 'c')",
            None,
            "Key (id)=(1) already exists.",
        ),
        (
            "insert into fk values (7)",
            Some("Key is not present in table \"pk\"."),
            "Key (id)=(7) is not present in table \"pk\".",
        ),
        (
            "update pk set id = 5",
            Some("Key is still referenced from table \"fk\"."),
            "Key (id)=(1) is still referenced from table \"fk\".",
        ),
        (
            "delete from pk",
            Some("Key is still referenced from table \"fk\"."),
            "Key (id)=(1) is still referenced from table \"fk\".",
        ),
    ];
    for (sql, without, with) in cases {
        client.ok("set role u");
        assert_eq!(
            client.failure(sql).fields().detail.as_deref(),
            without,
            "{sql}"
        );
        client.ok("reset role");
        assert_eq!(
            client.failure(sql).fields().detail.as_deref(),
            Some(with),
            "{sql}"
        );
    }
}

/// Which columns a view reads is not noted: a right on one of them is not enough, whoever it is that needs it.
#[test]
fn a_right_on_a_column_does_not_show_others_through_views() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create table secret (a int, b text); insert into secret values (1, 'x'); create user ann; create schema anns authorization ann;
         grant select (a) on secret to ann; create view inv with (security_invoker) as select * from secret; grant select on inv to ann",
    );
    let mut ann = Client::of_user(&database, "ann");
    ann.ok("create view anns.own as select * from secret; create view anns.over as select * from anns.own");
    for denied in [
        "select b from secret",
        "select b from anns.own",
        "select a from anns.own",
        "select count(*) from anns.own",
        "select b from anns.over",
        "select a from inv",
        "select count(*) from inv",
        "begin; lock table secret in access share mode",
    ] {
        assert_eq!(ann.state(denied), "42501", "{denied}");
        ann.ok("rollback");
    }
    assert_eq!(ann.ok("select a from secret"), "1");
    assert_eq!(ann.ok("select count(*) from secret"), "1");
}

#[test]
fn what_was_given_on_can_be_taken_away_and_goes_with_who_gave_it() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create table t (a int); create user ann; create user bob; create user eve; grant select on t to ann with grant option",
    );
    let mut ann = Client::of_user(&database, "ann");
    let mut bob = Client::of_user(&database, "bob");
    ann.ok("grant select on t to bob with grant option");
    assert_eq!(
        bob.state("grant select on t to ann with grant option"),
        "0LP01"
    );
    let acl = "select relacl from pg_class where relname = 't'";
    client.ok("revoke select on t from ann cascade");
    assert_eq!(client.ok(acl), "{vellum=arwdDxt/vellum}");
    client.ok("grant select on t to ann with grant option");
    ann.ok("grant select on t to bob");
    client.ok("drop owned by ann");
    assert_eq!(client.ok(acl), "{vellum=arwdDxt/vellum}");
    client.ok("drop role ann");
    // Nothing is given by who may not.
    let mut eve = Client::of_user(&database, "eve");
    eve.ok("grant create on database vellum to bob");
    assert_eq!(client.ok("select datacl from pg_database"), "~");
    // What is said of a schema goes with it.
    client.ok("create schema s; alter default privileges in schema s grant select on tables to bob; drop schema s");
    assert_eq!(client.ok("select count(*) from pg_default_acl"), "0");
    client.ok("drop role bob; drop role eve");
}

#[test]
fn a_right_that_is_taken_is_gone_in_transactions_that_are_open() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok(
        "create table t (id int); insert into t values (1); create sequence s; create schema x; create table x.t (id int);
         create role ann login; create role boss superuser login;
         grant select on t, x.t to ann; grant usage on sequence s to ann; grant usage on schema x to ann",
    );
    let mut ann = Client::of_user(&database, "ann");
    let mut boss = Client::of_user(&database, "boss");
    for session in [&mut ann, &mut boss] {
        session.ok("begin isolation level repeatable read; select id from t");
    }
    ann.ok("select nextval('s'); select * from x.t");
    boss.ok("select rolname from pg_authid; savepoint a");
    client.ok(
        "revoke select on t from ann; revoke usage on sequence s from ann; revoke usage on schema x from ann;
         alter role boss nosuperuser; insert into t values (2)",
    );
    for text in [
        "select id from t",
        "select nextval('s')",
        "select * from x.t",
    ] {
        ann.ok("savepoint a");
        assert_eq!(ann.state(text), "42501", "{text}");
        ann.ok("rollback to a");
    }
    for text in [
        "select id from t",
        "select rolname from pg_authid",
        "create role eve",
        "create schema y",
        "drop table t",
        "select set_config('session_replication_role', 'replica', false)",
    ] {
        assert_eq!(boss.state(text), "42501", "{text}");
        boss.ok("rollback to a");
    }
    // The snapshot is as it was, and what is given counts as well.
    client.ok("grant select on t to ann, boss");
    assert_eq!(ann.ok("select id from t"), "1");
    assert_eq!(boss.ok("select id from t"), "1");
    // With changes of the catalog of its own.
    ann.ok("create temporary table own (id int)");
    client.ok("revoke select on t from ann");
    assert_eq!(ann.state("select id from t"), "42501");
    ann.ok("rollback");
    boss.ok("rollback");
}

#[test]
fn a_session_belongs_to_a_role_and_not_to_its_name() {
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int); create role ann login; create role staff; grant staff to ann; grant select on t to staff");
    let mut ann = Client::of_user(&database, "ann");
    let mut other = Client::of_user(&database, "ann");
    let mut taken = Client::of_user(&database, "ann");
    ann.ok("select * from t");
    other.ok("begin isolation level repeatable read; select * from t");
    taken.ok("set role staff; select * from t");
    client.ok("drop role ann; create role ann superuser login");
    for session in [&mut ann, &mut other] {
        assert_eq!(session.state("select * from t"), "42501");
        session.ok("rollback");
        for text in [
            "select * from pg_authid",
            "select * from t",
            "create role eve",
            "set role vellum",
            "set role staff",
            "set role ann",
            "set session authorization vellum",
        ] {
            assert_eq!(session.state(text), "42501", "{text}");
        }
        session.ok("reset role");
        session.ok("set session authorization default");
        session.ok("reset all");
        assert_eq!(session.state("select * from pg_authid"), "42501");
        assert_eq!(
            session.ok("select current_user, current_setting('is_superuser')"),
            "|off"
        );
    }
    // That role is there; going back to who was logged in gives nothing.
    taken.ok("select * from t; reset role");
    assert_eq!(taken.state("select * from t"), "42501");
    drop((ann, other, taken));
    let mut new = Client::of_user(&database, "ann");
    new.ok("select * from pg_authid");
}
