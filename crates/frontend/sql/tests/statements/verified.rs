//! Damage of what SQL keeps in the engine's tables is found, and named as SQL names it.

use super::client::{Client, assert_sound, database, findings};
use vellum::{Table, Transaction};
use vellum_sql::{SqlDatabase, stored_relations};

const TABLES: [&str; 5] = [
    "create table people (id int primary key, name text, born date, city text)",
    "create index people_city on people (city) include (name)",
    "create unique index people_name on people (lower(name), id) where born is not null",
    "insert into people select n, 'Name ' || n, case when n % 2 = 0 then '2000-01-01'::date + n end, 'City ' || n % 7
       from generate_series(1, 300) n",
    "create table logged (at timestamptz default now(), what text unique)",
];

fn filled() -> SqlDatabase {
    let database = database();
    let mut client = Client::of(&database);
    for sql in TABLES {
        client.ok(sql);
    }
    client.ok("insert into logged (what) values ('a'), (null), (null)");
    client.ok("update people set city = 'x', name = upper(name) where id % 10 = 0");
    client.ok("delete from people where id > 290");
    drop(client);
    assert_sound(&database);
    database
}

/// The engine table with the rows of `public.NAME`, or with the entries of one of its indexes.
fn storage(database: &SqlDatabase, table: &str, index: Option<&str>) -> String {
    let all = stored_relations(database.engine()).unwrap();
    let table = format!("public.{table}");
    let found = all
        .iter()
        .find(|one| one.table == table && one.index.as_deref() == index);
    found.unwrap().storage.clone()
}

fn first(transaction: &Transaction, table: &Table) -> (Vec<u8>, Vec<u8>) {
    let mut cursor = transaction.cursor(table, ..).unwrap();
    let (key, value) = cursor.next().unwrap().unwrap();
    (key.to_vec(), value.to_vec())
}

/// Does something to an engine table, and says what is found then.
fn found_after(
    table: &str,
    index: Option<&str>,
    damage: impl Fn(&Transaction, &Table) -> vellum::Result<()>,
) -> Vec<String> {
    let database = filled();
    let name = storage(&database, table, index);
    database
        .engine()
        .retry(|transaction| damage(transaction, &transaction.table(&name)?))
        .unwrap();
    assert!(database.engine().verify().unwrap().is_sound());
    findings(&database)
}

fn assert_tells(found: &[String], parts: &[&str]) {
    for part in parts {
        assert!(
            found.iter().any(|finding| finding.contains(part)),
            "{part} is not in {found:#?}"
        );
    }
}

#[test]
fn an_entry_that_an_index_has_lost_is_found() {
    for index in ["people_city", "people_name"] {
        let found = found_after("people", Some(index), |transaction, entries| {
            let (key, _) = first(transaction, entries);
            transaction.delete(entries, &key).map(drop)
        });
        let of = format!("index \"{index}\" of table \"public.people\": data: ");
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_tells(
            &found,
            &[
                &format!("{of}entries that agree with the table"),
                &format!("{of}entry of row "),
            ],
        );
    }
}

#[test]
fn a_row_that_is_gone_and_an_entry_that_says_something_else_are_found() {
    let found = found_after("people", None, |transaction, rows| {
        let (key, _) = first(transaction, rows);
        transaction.delete(rows, &key).map(drop)
    });
    // The first row has no entry in the partial index.
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_tells(&found, &["\"people_city\"", "row of entry "]);
    let found = found_after("logged", Some("logged_what_key"), |transaction, entries| {
        let (key, value) = first(transaction, entries);
        let other = [&value[..value.len() - 1], &[99]].concat();
        transaction.replace(entries, &key, &other).map(drop)
    });
    assert_eq!(found.len(), 3, "{found:#?}");
    assert_tells(&found, &["entry of row ", "row of entry "]);
}

#[test]
fn a_row_under_the_key_of_another_one_is_found_and_one_that_cannot_be_read() {
    let found = found_after("people", None, |transaction, rows| {
        let (key, value) = first(transaction, rows);
        let last = transaction.last_key(rows)?.unwrap();
        assert_ne!(key, last);
        transaction.replace(rows, &last, &value).map(drop)
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_tells(
        &found,
        &["table \"public.people\": data: row ", "of another one"],
    );
    let found = found_after("logged", None, |transaction, rows| {
        let (key, value) = first(transaction, rows);
        transaction.replace(rows, &key, &value[..1]).map(drop)
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_tells(&found, &["table \"public.logged\": data: row "]);
}

#[test]
fn tables_that_only_the_catalog_or_only_the_engine_has_are_found() {
    let database = filled();
    let name = storage(&database, "people", Some("people_city"));
    let changed = database.engine().retry(|transaction| {
        transaction.drop_table(&name)?;
        transaction.create_table("sql.table.99999").map(drop)
    });
    changed.unwrap();
    let found = findings(&database);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_tells(
        &found,
        &[
            &format!("table \"public.people\": data: its part {name:?}"),
            "SQL catalog: data: a relation whose rows are in \"sql.table.99999\"",
        ],
    );
}

#[test]
fn a_row_of_the_catalog_or_of_the_sequences_that_cannot_be_read_is_found() {
    for name in ["sql.catalog", "sql.sequences"] {
        let database = filled();
        let garbled = database.engine().retry(|transaction| {
            let rows = transaction.table(name)?;
            let (key, _) = first(transaction, &rows);
            transaction.replace(&rows, &key, &[3]).map(drop)
        });
        garbled.unwrap();
        let found = findings(&database);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_tells(&found, &["SQL catalog: data: ", "cannot be read"]);
    }
}

#[test]
fn a_database_without_sql_has_nothing_that_could_be_wrong() {
    let directory = std::sync::Arc::new(vellum_io::MemoryDirectory::new());
    let config = vellum::Config::default().background_threads(false);
    let engine = vellum::Database::open_directory(directory, config).unwrap();
    vellum_sql::verify(&engine, &mut |finding| panic!("{finding}")).unwrap();
    assert_eq!(stored_relations(&engine).unwrap(), []);
}
