//! Settings that are names, and lists of names.

use super::client::{Client, database};
use vellum_sql::SessionOptions;

#[test]
fn a_search_path_is_a_list_of_names() {
    let mut client = Client::new();
    for (set, shown) in [
        ("set search_path to 'a b'", "\"a b\""),
        ("set search_path to ''", "\"\""),
        (
            "set search_path = A, \"B\", 'C', \"$user\"",
            "a, \"B\", \"C\", \"$user\"",
        ),
        ("set search_path to 'a,b'", "\"a,b\""),
        (
            "set search_path to 'select', 'pu\"b'",
            "\"select\", \"pu\"\"b\"",
        ),
        ("set search_path to default", "\"$user\", public"),
        (
            "select set_config('search_path', ' A , \"B\"\"c\" ', false)",
            " A , \"B\"\"c\" ",
        ),
        ("select set_config('search_path', '', false)", ""),
    ] {
        client.ok(set);
        assert_eq!(client.ok("show search_path"), shown, "{set}");
    }
    for list in ["\"x", "a b", "a,,b", "a,"] {
        let error = client.failure(&format!(
            "select set_config('search_path', '{list}', false)"
        ));
        let message = format!("invalid value for parameter \"search_path\": \"{list}\"");
        assert_eq!(
            (error.sqlstate().as_str(), error.message()),
            ("22023", &*message)
        );
        assert_eq!(
            error.fields().detail.as_deref(),
            Some("List syntax is invalid.")
        );
        let begun = database().session(options("search_path", list)).err();
        assert_eq!(begun.unwrap().sqlstate().as_str(), "22023", "{list}");
    }
    client.ok("create schema \"a, b\"; create table \"a, b\".t (); set search_path to 'a, b'");
    assert_eq!(
        client.ok("select 't'::regclass, current_schemas(false)"),
        "t|{\"a, b\"}"
    );
}

fn options(name: &str, value: &str) -> SessionOptions {
    SessionOptions {
        user: "vellum".to_owned(),
        settings: vec![(name.to_owned(), value.to_owned())],
        ..SessionOptions::default()
    }
}

#[test]
fn the_name_of_a_program_is_cut_and_readable() {
    let mut client = Client::new();
    let (long, kept) = ("x".repeat(70), "x".repeat(63));
    for (value, name) in [("äb", "??b"), (&*long, &*kept), ("a\tb", "a?b")] {
        for set in [
            format!("set application_name = '{value}'"),
            format!("select set_config('application_name', '{value}', false)"),
        ] {
            client.ok("reset application_name");
            let heard = client.hear(&set);
            assert_eq!(client.ok("show application_name"), name, "{set}");
            let notices: &[String] = match value == long {
                true => &[format!(
                    "identifier \"{long}\" will be truncated to \"{kept}\""
                )],
                false => &[],
            };
            assert_eq!(heard.notices, notices, "{set}");
            assert!(heard.notice_states.iter().all(|state| state == "42622"));
        }
    }
    let begun = Client::with(options("application_name", "ä"));
    let told = begun.session.parameter_statuses();
    assert!(told.contains(&("application_name", "??".to_owned())));
}

#[test]
fn a_client_may_log_in_as_a_role() {
    let database = database();
    let mut chief = Client::of(&database);
    chief.ok("create role ann login; create role crew; grant crew to ann; create role other");
    let begun = |user: &str, name: &str, role: &str| {
        let options = SessionOptions {
            user: user.to_owned(),
            database: "vellum".to_owned(),
            ..options(name, role)
        };
        let session = database.session(options);
        session.map(|session| Client { session })
    };
    for (user, name, role, current) in [
        ("ann", "role", "crew", "crew"),
        ("ann", "role", "none", "ann"),
        ("vellum", "session_authorization", "ann", "ann"),
    ] {
        let mut client = begun(user, name, role).unwrap();
        assert_eq!(client.ok("select current_user"), current);
    }
    for (user, name, role, state) in [
        ("ann", "role", "nosuch", "22023"),
        ("vellum", "session_authorization", "nosuch", "22023"),
        ("ann", "role", "other", "42501"),
        ("ann", "session_authorization", "crew", "42501"),
    ] {
        let error = begun(user, name, role).err().unwrap();
        assert_eq!(error.sqlstate().as_str(), state, "{user} {role}");
    }
}

/// A setting that only superusers change goes by what the role is now, not by what the session was told when it began; RESET ALL asks for no rights, and
/// what was kept for a role its sessions begin with, as in PostgreSQL.
#[test]
fn who_is_no_superuser_any_more_changes_no_foreign_keys() {
    const DENIED: &str = "permission denied to set parameter \"session_replication_role\"";
    let database = database();
    let mut first = Client::of(&database);
    first.ok("create role s superuser login; create role n login");
    let denied = |client: &mut Client, sql: &str| {
        let told = client.fails(sql);
        assert_eq!(told, ("42501".to_owned(), DENIED.to_owned()), "{sql}");
    };
    let shows = |client: &mut Client| client.ok("show session_replication_role");
    let mut other = Client::of_user(&database, "s");
    other.ok("set session_replication_role = replica");
    first.ok("alter role s nosuperuser");
    for sql in [
        "set session_replication_role = origin",
        "set local session_replication_role = origin",
        "reset session_replication_role",
        "select set_config('session_replication_role', 'local', false)",
        "alter role s set session_replication_role = local",
    ] {
        denied(&mut other, sql);
    }
    assert_eq!(shows(&mut other), "replica");
    assert_eq!(other.ok("show is_superuser"), "on");
    other.ok("reset all");
    assert_eq!(shows(&mut other), "origin");
    first.ok("alter role s superuser");
    other.ok("set session_replication_role = local");

    first.ok("set session_replication_role = replica; set role n; set work_mem = '8MB'");
    denied(&mut first, "set session_replication_role = local");
    let told = first.fails("set log_statement = 'all'");
    let text = "permission denied to set parameter \"log_statement\"";
    assert_eq!(told, ("42501".to_owned(), text.to_owned()));
    assert_eq!(shows(&mut first), "replica");
    first.ok("reset all");
    assert_eq!(shows(&mut first), "origin");
    assert_eq!(first.ok("show work_mem; select current_user"), "64MB\nn");
    denied(&mut first, "reset session_replication_role");
    first.ok("reset role");

    first.ok("alter role n set session_replication_role = replica");
    first.ok("alter role n set work_mem = '8MB'");
    let mut begun = Client::of_user(&database, "n");
    assert_eq!(shows(&mut begun), "replica");
    denied(&mut begun, "set session_replication_role = origin");
    denied(&mut begun, "alter role n reset session_replication_role");
    begun.ok("reset all");
    assert_eq!(shows(&mut begun), "replica");
    // What it may not change stays.
    begun.ok("alter role n reset all");
    let kept = "select setconfig from pg_db_role_setting";
    assert_eq!(first.ok(kept), "{session_replication_role=replica}");
    first.ok("alter role n reset all");
    assert_eq!(first.ok(kept), "");
}
