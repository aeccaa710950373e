//! What a database's tables are in SQL: their names there, and whether indexes and the catalog are what they should be.

use crate::args::Memory;
use crate::exit::Failure;
use std::collections::BTreeMap;
use std::path::Path;
use vellum::{Config, Database, Error, Report};
use vellum_sql::{SqlError, StoredRelation, is_of_sql, sqlstate, stored_relations};

/// What SQL has in tables of the engine, by the names of these.
#[derive(Debug, Default)]
pub struct Relations {
    by_storage: BTreeMap<String, StoredRelation>,
}

impl Relations {
    /// Of an open database.
    ///
    /// # Errors
    /// A catalog that cannot be read.
    pub fn of(database: &Database) -> Result<Self, SqlError> {
        let all = stored_relations(database)?.into_iter();
        Ok(Self {
            by_storage: all.map(|one| (one.storage.clone(), one)).collect(),
        })
    }

    /// Of the closed database that a report is about; none where there is no SQL, or its catalog cannot be read. Writes nothing.
    pub fn reported(directory: &Path, memory: &Memory, report: &Report) -> Self {
        if !has_sql(report) {
            return Self::default();
        }
        let opened = open(directory, memory).ok();
        let found = opened.and_then(|database| Self::of(&database).ok());
        found.unwrap_or_default()
    }

    /// What a table of the engine is.
    pub fn get(&self, storage: &str) -> Option<&StoredRelation> {
        self.by_storage.get(storage)
    }

    /// The engine's table with the rows of a relation, or with the entries of an index: by its name in `public`, or behind the name of its schema.
    pub fn storage_of(&self, name: &str) -> Option<&str> {
        let is_it = |full: &str| full == name || full.strip_prefix("public.") == Some(name);
        let found = self.by_storage.values().find(|one| match &one.index {
            None => is_it(&one.table),
            Some(index) => {
                let schema = one.table.split_once('.').map_or("", |(schema, _)| schema);
                is_it(&format!("{schema}.{index}"))
            }
        });
        found.map(|one| &*one.storage)
    }
}

/// Adds to the report of a closed database what is wrong with the catalog of SQL and with its indexes. Writes nothing.
///
/// # Errors
/// I/O errors; too little memory; a catalog of a newer version.
pub fn verify(directory: &Path, memory: &Memory, report: &mut Report) -> Result<(), Failure> {
    // What is damaged below would only be told again.
    if !report.is_sound() || !report.is_complete() || !has_sql(report) {
        return Ok(());
    }
    let database = open(directory, memory).map_err(|error| match error {
        Error::OutOfSpace { .. } => Failure::failed(format!(
            "what opening {} writes, to look at indexes, does not fit into memory: give it more (--memory-mib)",
            directory.display()
        )),
        error => Failure::database(directory, error),
    })?;
    let checked = vellum_sql::verify(&database, &mut |finding| report.find(finding));
    checked.map_err(|error| unreadable(directory, &error))
}

/// An error of opening the catalog, or of looking at what it names.
pub fn unreadable(directory: &Path, error: &SqlError) -> Failure {
    let name = directory.display();
    if error.sqlstate() == sqlstate::FEATURE_NOT_SUPPORTED {
        return Failure::no_database(format!("{name}: {error}"));
    }
    Failure::failed(format!("{name}: {error}"))
}

fn has_sql(report: &Report) -> bool {
    let mut tables = report.tables.iter();
    tables.any(|table| is_of_sql(&table.tree.name))
}

fn open(directory: &Path, memory: &Memory) -> vellum::Result<Database> {
    let mut config = Config::default().pool_bytes(memory.pool_bytes());
    config.create = false;
    Database::open_detached(directory, config, memory.memory_bytes())
}
