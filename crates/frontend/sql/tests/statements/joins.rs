//! Joins in parentheses: how they are found, and what is said of names that they do not let see. What they answer: `corpus/joins.slt`, `corpus/joins_nested.slt`.

use super::client::Client;

const TABLES: &str = "create table users (id int primary key, name text);
    create table roles (id int primary key, name text not null);
    create table user_roles (user_id int, role_id int, primary key (user_id, role_id));
    insert into users select g, 'u' || g from generate_series(1, 9) g;
    insert into roles select g, 'r' || g from generate_series(1, 3) g;
    insert into user_roles select g, g % 4 from generate_series(1, 6) g";

fn client() -> Client {
    let mut client = Client::new();
    client.ok(TABLES);
    client
}

#[test]
fn a_join_in_parentheses_is_found_by_keys() {
    let mut client = client();
    let include = "select u.id, r.name from users u left join (user_roles ur join roles r on r.id = ur.role_id) on ur.user_id = u.id";
    for text in [
        format!("{include} where u.id = 4"),
        format!("{include} and r.name <> 'r2' where u.id in (4, 6)"),
        "select u.id, x.name from users u left join (user_roles ur join roles r on r.id = ur.role_id) as x on x.user_id = u.id where u.id = 4".to_owned(),
        "select u.id, r.name from users u join (user_roles ur left join roles r on r.id = ur.role_id) on ur.user_id = u.id where u.id = 4".to_owned(),
    ] {
        let plan = client.ok(&format!("explain {text}"));
        assert!(plan.contains("Path: fast"), "{plan}");
        assert!(plan.contains("using user_roles_pkey"), "{plan}");
        assert!(plan.contains("using roles_pkey"), "{plan}");
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
    assert_eq!(
        client.ok(&format!("{include} where u.id > 3 order by 1")),
        "4|~\n5|r1\n6|r2\n7|~\n8|~\n9|~"
    );
}

#[test]
fn a_join_in_parentheses_without_program_says_why() {
    let mut client = client();
    let right = "select count(*) from users u left join (user_roles ur right join roles r on r.id = ur.role_id) on ur.user_id = u.id";
    let plan = client.ok(&format!("explain {right}"));
    assert!(plan.contains("a right join"), "{plan}");
    assert_eq!(client.ok(right), "9");
    let apart = "select count(*) from users u left join (user_roles ur join roles r on r.name = 'r1') on ur.user_id = u.id";
    let plan = client.ok(&format!("explain {apart}"));
    assert!(plan.contains("a join without an index"), "{plan}");
    assert_eq!(client.ok(apart), "9");
}

#[test]
fn names_that_cannot_be_seen_are_told_with_why() {
    let mut client = client();
    let entry = |table: &str| {
        format!(
            "There is an entry for table \"{table}\", but it cannot be referenced from this part of the query."
        )
    };
    for (text, message, hint) in [
        (
            "select 1 from users u left join (user_roles ur join roles r on r.id = u.id) on true",
            "invalid reference to FROM-clause entry for table \"u\"",
            entry("u"),
        ),
        (
            "select r.id from users u left join (user_roles ur join roles r on true) as x on true",
            "invalid reference to FROM-clause entry for table \"r\"",
            entry("r"),
        ),
        (
            "select 1 from users u left join (user_roles ur join user_roles us on id = 1) on true",
            "column \"id\" does not exist",
            "There is a column named \"id\" in table \"u\", but it cannot be referenced from this part of the query.".to_owned(),
        ),
        (
            "select users.id from users u",
            "invalid reference to FROM-clause entry for table \"users\"",
            "Perhaps you meant to reference the table alias \"u\".".to_owned(),
        ),
        (
            "select 1 from users u where exists (select from roles where id = users.id)",
            "invalid reference to FROM-clause entry for table \"users\"",
            "Perhaps you meant to reference the table alias \"u\".".to_owned(),
        ),
    ] {
        let error = client.failure(text);
        assert_eq!(error.message(), message, "{text}");
        assert_eq!(error.fields().hint, Some(hint), "{text}");
    }
    let lateral =
        "select 1 from users u full join (roles r join lateral (select u.id) l on true) on true";
    let error = client.failure(lateral);
    assert_eq!(error.sqlstate().as_str(), "42P10");
    let detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference.";
    assert_eq!(error.fields().detail.as_deref(), Some(detail));
}
