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
