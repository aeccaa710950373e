//! Databases of SQL, closed: what is wrong with their indexes and their catalog is found, and what is in them is called as it is in SQL.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};
use vellum::{Config, Database, Table, Transaction};

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let output = world.vellum(&[
            "sql",
            "--data",
            "db",
            "-c",
            "create table people (id int primary key, name text);
             create index people_name on people (lower(name));
             create schema app; create table app.orders (id int primary key);
             insert into people select n, 'Name ' || n from generate_series(1, 50) n;
             insert into app.orders values (7)",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        world
    }

    fn vellum(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_vellum"))
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Changes the first row of the first table of the engine whose name begins so.
    fn damage(
        &self,
        start: &str,
        change: impl Fn(&Transaction, &Table, &[u8]) -> vellum::Result<bool>,
    ) {
        let database = Database::open(self.folder.path().join("db"), Config::default()).unwrap();
        let changed = database.retry(|transaction| {
            let mut names = transaction.tables()?.into_iter();
            let name = names.find(|name| name.starts_with(start)).unwrap();
            let table = transaction.table(&name)?;
            let mut cursor = transaction.cursor(&table, ..)?;
            let key = cursor.next()?.unwrap().0.to_vec();
            drop(cursor);
            change(transaction, &table, &key)
        });
        assert!(changed.unwrap());
        database.close().unwrap();
    }
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text))
        .concat()
}

#[test]
fn an_entry_that_an_index_of_sql_has_lost_is_found() {
    let world = World::new();
    let sound = world.vellum(&["verify", "db"]);
    assert_eq!(sound.status.code(), Some(0), "{}", told(&sound));
    world.damage("sql.index.", |transaction, table, key| {
        transaction.delete(table, key)
    });
    let output = world.vellum(&["verify", "db"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let of = "index \"people_name\" of table \"public.people\": data: ";
    assert!(text.contains(&format!("{of}entry of row ")), "{text}");
    assert!(text.contains("db: 2 findings; "), "{text}");
    let report: serde_json::Value =
        serde_json::from_slice(&world.vellum(&["verify", "--json", "db"]).stdout).unwrap();
    assert_eq!(report["sound"], false);
    assert_eq!(report["findings"].as_array().unwrap().len(), 2);
}

#[test]
fn a_catalog_that_no_server_reads_is_found_and_a_newer_one_is_none_of_this_build() {
    let world = World::new();
    world.damage("sql.catalog", |transaction, table, key| {
        transaction.replace(table, key, &[3])
    });
    let output = world.vellum(&["verify", "db"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("SQL catalog: "), "{}", told(&output));
    // Its rows can still be printed.
    let output = world.vellum(&["dump", "db", "--limit", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    world.damage("sql.catalog", |transaction, table, key| {
        transaction.replace(table, key, &[255])
    });
    for arguments in [
        &["verify", "db"][..],
        &["sql", "--data", "db", "-c", "select 1"],
        &["serve", "--data", "db", "--listen", "127.0.0.1:0"],
    ] {
        let output = world.vellum(arguments);
        assert_eq!(output.status.code(), Some(4), "{}", told(&output));
        assert!(told(&output).contains("newer version"), "{}", told(&output));
    }
}

#[test]
fn tables_and_indexes_are_called_as_they_are_in_sql() {
    let world = World::new();
    let text = told(&world.vellum(&["stat", "db"]));
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place("\nsql.catalog ") < place("\napp.orders "));
    assert!(place("\npublic.people ") < place("\n  index people_name "));
    let report = world.vellum(&["stat", "--json", "db"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let tables = report["tables"].as_array().unwrap();
    let named = |name: &str, index: Option<&str>| {
        let found = tables
            .iter()
            .find(|table| table["relation"] == name && table["relation_index"].as_str() == index);
        found.unwrap()["rows"].as_u64().unwrap()
    };
    assert_eq!(named("public.people", None), 50);
    assert_eq!(named("public.people", Some("people_name")), 50);
    assert_eq!(named("app.orders", None), 1);
    let rows = |name: &str| {
        let output = world.vellum(&["dump", "db", "--table", name]);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        told(&output).lines().count()
    };
    for (name, count) in [
        ("people", 50),
        ("public.people", 50),
        ("people_name", 50),
        ("app.orders", 1),
    ] {
        assert_eq!(rows(name), count, "{name}");
    }
    assert_eq!(
        world
            .vellum(&["dump", "db", "--table", "orders"])
            .status
            .code(),
        Some(1)
    );
    let all = told(&world.vellum(&["dump", "db", "--limit", "1"]));
    assert!(
        all.contains(" (public.people, index people_name)\n"),
        "{all}"
    );
}
