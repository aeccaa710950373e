//! The corpus: statements with what PostgreSQL 15 answers, through sessions.
//!
//! `tests/corpus/*.slt`: one record a statement, in the form of sqllogictest; errors by SQLSTATE, empty text as `(empty)`. The answers are a server's, not
//! ours: whoever adds records asks one (collation C, time zone UTC).

use super::client::{Client, Heard, database, findings};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner};
use vellum_sql::SqlError;

struct Session(Client);

/// An error as records name it.
#[derive(Debug)]
struct State(SqlError);

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.sqlstate(), self.0.message())
    }
}

impl std::error::Error for State {}

impl DB for Session {
    type Error = State;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, State> {
        let mut heard = Heard::default();
        self.0
            .session
            .simple_query(sql, &mut heard)
            .map_err(State)?;
        if heard.fields.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let text = |column: &Option<Vec<u8>>| match column {
            None => "NULL".to_owned(),
            Some(bytes) if bytes.is_empty() => "(empty)".to_owned(),
            Some(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        };
        let row = |row: &Vec<Option<Vec<u8>>>| row.iter().map(text).collect();
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Text; heard.fields.len()],
            rows: heard.rows.iter().map(row).collect(),
        })
    }
}

fn run(name: &str, text: &str) {
    let records: Vec<Record<DefaultColumnType>> = sqllogictest::parse(text).unwrap();
    let database = database();
    let mut runner = Runner::new(|| {
        let client = Client::of(&database);
        async { Ok(Session(client)) }
    });
    let mut failures = Vec::new();
    let mut count = 0;
    for record in records {
        count += usize::from(matches!(
            record,
            Record::Statement { .. } | Record::Query { .. }
        ));
        if let Err(error) = runner.run(record) {
            failures.push(error.to_string());
        }
    }
    assert!(count > 20, "{name}: {count} records");
    let shown: Vec<&str> = failures.iter().take(20).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{name}: {} of {count} records\n{}",
        failures.len(),
        shown.join("\n")
    );
    // Whatever they have changed, indexes and the catalog go with it.
    assert_eq!(findings(&database), [""; 0], "{name}");
}

macro_rules! corpus {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), include_str!(concat!("../corpus/", stringify!($name), ".slt")));
            }
        )*
    };
}

corpus!(
    absent,
    accepted,
    aggregates,
    analytics,
    arbiters,
    arithmetic,
    asked_once,
    brackets,
    built_in_roles,
    call_forms,
    calls,
    casts,
    catalog_clients,
    catalog_tools,
    changes,
    client_forms,
    code,
    collate_forms,
    collations,
    compared_rows,
    corners,
    correlated,
    cursor_forms,
    dates,
    deferred,
    definitions,
    documents,
    domains,
    drawn,
    drops,
    edges,
    enum_indexes,
    enums,
    everybody,
    executed,
    exists_keys,
    extensions,
    found,
    functions,
    gather,
    general,
    generated,
    grouping,
    guards,
    index_marks,
    index_methods,
    indexes,
    inferred,
    information_views,
    inherited_rights,
    items,
    join_forms,
    joins,
    joins_nested,
    json_rows,
    kept_collations,
    list_sets,
    lists,
    logic,
    made_names,
    merge,
    moments,
    name_edges,
    named_oids,
    named_oids_compared,
    named_oids_kept,
    names_in_texts,
    networks,
    nullif,
    nulls_distinct,
    odd_types,
    oid_names,
    operand_forms,
    outer_groups,
    outer_types,
    padded_patterns,
    parameters,
    patterns,
    pgcrypto,
    precedence,
    qualified_names,
    read_patterns,
    record_forms,
    recursive,
    replica_role,
    rights,
    row_edges,
    row_fields,
    row_locks,
    row_values,
    rows_as_json,
    rows_in_rows,
    same_names,
    schema_names,
    schemas,
    sequences_altered,
    settings,
    signatures,
    small_forms,
    spellings,
    star_rows,
    stars_outside,
    subscripts,
    syntax,
    tables,
    text,
    tool_forms,
    triggers_off,
    type_names,
    unions,
    unread,
    upserts,
    view_changes,
    view_defaults,
    views,
    window_distances,
    window_names,
    window_ranges,
    with_once,
    writing,
    xact_forms,
    xact_numbers
);
