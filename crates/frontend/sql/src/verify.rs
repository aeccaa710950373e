//! Does the catalog say what there is, and do indexes have exactly the entries of their tables' rows? What `verify` of the engine cannot know: to it
//! an index of SQL is a table like any other.
//!
//! Checked: the catalog can be read, and has what its foreign keys refer to, and the roles that things belong to; the engine has the tables that it names, and no others of such names; what indexes compute can be bound; every
//! row decodes, and stands under the key of its columns; indexes and tables agree, both ways, partial ones and expressions included.
//!
//! Table and index are walked once each, and [`EntrySums`] are compared. Only if they differ, entries are looked up one by one to name those that
//! are wrong. Memory: a row and its entries.
//!
//! Does NOT check: constraints (NOT NULL, CHECK, foreign keys, deferrable keys); rows of the catalog that say who is called what; pages, trees and
//! chains, which the engine does.

use crate::catalog::{self, Catalog, Relation, Store};
use crate::error::{Result, SqlError};
use crate::expr::RowRef;
use crate::rows::{self, Shape};
use std::collections::BTreeSet;
use std::sync::Arc;
use vellum::{Database, EntrySums, Finding, Transaction, TransactionOptions};

/// What the names of all engine tables begin with that belong to SQL.
const PREFIX: &str = "sql.";
/// What the names begin with of those that hold rows of tables, and entries of indexes.
const HOLDS_ROWS: [&str; 2] = ["sql.table.", "sql.index."];
/// What findings of the catalog are about.
const CATALOG: &str = "SQL catalog";

/// Whether an engine table of this name belongs to SQL.
pub fn is_of_sql(table: &str) -> bool {
    table.starts_with(PREFIX)
}

/// What an engine table holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StoredRelation {
    /// Name of the engine table.
    pub storage: String,
    /// The table whose rows, or whose index's entries, it holds: schema and name, as they are, with a point between them.
    pub table: String,
    /// The name of the index whose entries it holds; `None` for rows.
    pub index: Option<String>,
}

/// What the engine's tables hold that the catalog names, by their names. Empty where nothing of SQL is. Blocks for reading the catalog.
///
/// # Errors
/// What the engine reports; `XX001` for a catalog that cannot be read, `0A000` for one of a newer version.
pub fn stored_relations(engine: &Database) -> Result<Vec<StoredRelation>> {
    let reader = reader(engine)?;
    let mut all = Vec::new();
    if !reader.tables()?.iter().any(|name| name == Store::TABLE) {
        return Ok(all);
    }
    let (catalog, _) = Store::load(&reader, 1)?;
    for relation in catalog.relations() {
        let Some(own) = relation.table() else {
            continue;
        };
        let table = full_name(&catalog, relation);
        all.push(StoredRelation {
            storage: own.storage.name.to_string(),
            table: table.clone(),
            index: None,
        });
        for index in &own.indexes {
            all.extend(index.storage.as_ref().map(|storage| StoredRelation {
                storage: storage.name.to_string(),
                table: table.clone(),
                index: Some(index.name.to_string()),
            }));
        }
    }
    all.sort();
    Ok(all)
}

/// Checks the catalog, and indexes against their tables, in one snapshot; nothing is changed. Every finding goes to `find`. For a database
/// whose definitions nobody changes at the moment, and for one that has no SQL, of which there is nothing to be found.
///
/// Blocks for reading every row and every entry of an index.
///
/// # Errors
/// I/O errors, memory; `0A000` for a catalog of a newer version. Damage is no error.
pub fn verify(engine: &Database, find: &mut dyn FnMut(Finding)) -> Result<()> {
    let reader = reader(engine)?;
    let tables: BTreeSet<String> = reader.tables()?.into_iter().collect();
    // Where there is none, its making was cut off before that, or something is left that nobody names.
    let is_there = tables.contains(Store::TABLE);
    let catalog = match is_there {
        true => Store::load(&reader, 1),
        false => Ok((Catalog::default(), Vec::new())),
    };
    let mut check = Check {
        reader: &reader,
        tables: &tables,
        find,
    };
    let catalog = match catalog {
        Ok((catalog, left_out)) => {
            for key in left_out {
                let what = format!("the foreign key {key} refers to what is not there");
                check.found(CATALOG, &what, (1, 0));
            }
            for (what, owner) in catalog.owned_by_nobody() {
                let what = format!("the owner of {what}, role {owner}, is not there");
                check.found(CATALOG, &what, (1, 0));
            }
            catalog
        }
        Err(error) if error.sqlstate() == crate::sqlstate::FEATURE_NOT_SUPPORTED => {
            return Err(error);
        }
        Err(error) => return check.tell(CATALOG, "it", error),
    };
    if is_there && let Err(error) = catalog::check_sequences(&reader) {
        check.tell(CATALOG, "where sequences stand", error)?;
    }
    let relations = catalog.relations();
    check.unnamed(&relations);
    for relation in relations {
        check.table(relation, &full_name(&catalog, relation))?;
    }
    Ok(())
}

fn reader(engine: &Database) -> Result<Transaction> {
    Ok(engine.begin_with(TransactionOptions::default().read_only(true))?)
}

fn full_name(catalog: &Catalog, relation: &Relation) -> String {
    let schema = catalog.namespace_name(relation.namespace);
    format!("{schema}.{}", relation.name)
}

struct Check<'c> {
    reader: &'c Transaction,
    /// Names of all tables of the engine.
    tables: &'c BTreeSet<String>,
    find: &'c mut dyn FnMut(Finding),
}

/// The entries that a table's rows make in one index; `None` once something kept one of them from being made.
type Expected = Option<EntrySums>;

impl Check<'_> {
    fn found(&mut self, object: &str, what: &str, values: (u64, u64)) {
        (self.find)(Finding::of_rows(object, what, values));
    }

    /// Tells that something cannot be read, and why; what says nothing about the content comes back.
    fn tell(&mut self, object: &str, what: &str, error: SqlError) -> Result<()> {
        let state = error.sqlstate();
        // The disk, memory, limits.
        if ["53", "58", "72"].contains(&&state.as_str()[..2]) {
            return Err(error);
        }
        self.found(object, &format!("{what} cannot be read: {error}"), (1, 0));
        Ok(())
    }

    /// What holds rows or entries that nothing in the catalog names.
    fn unnamed(&mut self, relations: &[&Arc<Relation>]) {
        let named = relations.iter().filter_map(|relation| relation.table());
        let named = named.flat_map(|table| table.storages());
        let named: BTreeSet<&str> = named.map(|storage| &*storage.name).collect();
        let tables = self.tables;
        for name in tables.iter().filter(|name| !named.contains(name.as_str())) {
            if HOLDS_ROWS.iter().any(|start| name.starts_with(start)) {
                let what = format!("a relation whose rows are in {name:?}");
                self.found(CATALOG, &what, (1, 0));
            }
        }
    }

    fn table(&mut self, relation: &Arc<Relation>, name: &str) -> Result<()> {
        let Some(table) = relation.table() else {
            return Ok(());
        };
        let object = format!("table {name:?}");
        let tables = self.tables;
        let missing = |name: &str| !tables.contains(name);
        let mut complete = true;
        for storage in table.storages().filter(|storage| missing(&storage.name)) {
            let what = format!("its part {:?}", storage.name);
            self.found(&object, &what, (1, 0));
            complete = false;
        }
        let shape = match Shape::of(relation) {
            Ok(shape) if complete => shape,
            Ok(_) => return Ok(()),
            Err(error) => return self.tell(&object, "its definition", error),
        };
        let expected = match self.expected(&shape, &object) {
            Ok(expected) => expected,
            Err(error) => return self.tell(&object, "all of its rows", error),
        };
        for (number, expected) in expected.into_iter().enumerate() {
            let index = &table.indexes[number];
            let Some(expected) = expected.filter(|_| index.storage.is_some()) else {
                continue;
            };
            let of = format!("index {:?} of {object}", &*index.name);
            if let Err(error) = self.index(&shape, number, expected, &of) {
                self.tell(&of, "all of its entries", error)?;
            }
        }
        Ok(())
    }

    /// Looks at every row, and sums up the entries that they make in each index.
    fn expected(&mut self, shape: &Shape, object: &str) -> Result<Vec<Expected>> {
        let table = shape.table();
        let mut expected: Vec<Expected> = vec![Some(EntrySums::default()); table.indexes.len()];
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let reader = self.reader;
        let mut cursor = reader.cursor(table.storage.table(reader)?, ..)?;
        while let Some((row_key, bytes)) = cursor.next()? {
            let row = match read(shape, row_key, bytes, &mut key) {
                Ok(row) => row,
                Err(error) => {
                    self.tell(object, &format!("row {}", Finding::shown(row_key)), error)?;
                    expected.fill(None);
                    continue;
                }
            };
            for (number, index) in table.indexes.iter().enumerate() {
                let Some(sums) = expected[number]
                    .as_mut()
                    .filter(|_| index.storage.is_some())
                else {
                    continue;
                };
                match rows::entry(&shape.keys[number], row, row_key, &mut key, &mut value) {
                    Ok(true) => sums.add(&key, &value),
                    Ok(false) => {}
                    Err(error) => {
                        let of = format!("index {:?} of {object}", &*index.name);
                        self.tell(
                            &of,
                            &format!("what row {} makes", Finding::shown(row_key)),
                            error,
                        )?;
                        expected[number] = None;
                    }
                }
            }
        }
        Ok(expected)
    }

    /// Compares an index with what its table's rows make.
    fn index(&mut self, shape: &Shape, number: usize, expected: EntrySums, of: &str) -> Result<()> {
        let Some(storage) = &shape.table().indexes[number].storage else {
            return Ok(());
        };
        let (reader, mut sums) = (self.reader, EntrySums::default());
        let mut cursor = reader.cursor(storage.table(reader)?, ..)?;
        while let Some((key, value)) = cursor.next()? {
            sums.add(key, value);
        }
        if sums == expected {
            return Ok(());
        }
        let values = (expected.count, sums.count);
        self.found(of, "entries that agree with the table", values);
        self.explain(shape, number, of)
    }

    /// Names what an index lacks and what it has too much. All rows make their entries.
    fn explain(&mut self, shape: &Shape, number: usize, of: &str) -> Result<()> {
        let table = shape.table();
        let Some(storage) = &table.indexes[number].storage else {
            return Ok(());
        };
        let reader = self.reader;
        let (held, entries) = (table.storage.table(reader)?, storage.table(reader)?);
        let keys = &shape.keys[number];
        let (mut key, mut value, mut other) = (Vec::new(), Vec::new(), Vec::new());
        let mut cursor = reader.cursor(held, ..)?;
        while let Some((row_key, bytes)) = cursor.next()? {
            let row = RowRef::Stored(table.schema.view(bytes)?);
            let makes = rows::entry(keys, row, row_key, &mut key, &mut value)?;
            if makes && !(reader.get_into(entries, &key, &mut other)? && other == value) {
                self.found(
                    of,
                    &format!("entry of row {}", Finding::shown(row_key)),
                    (1, 0),
                );
            }
        }
        let (mut row, mut made) = (Vec::new(), Vec::new());
        let mut cursor = reader.cursor(entries, ..)?;
        while let Some((entry, about)) = cursor.next()? {
            let agrees = match rows::primary_key_of(entry, about) {
                Ok(row_key) if reader.get_into(held, row_key, &mut row)? => {
                    let row = RowRef::Stored(table.schema.view(&row)?);
                    rows::entry(keys, row, row_key, &mut key, &mut made)?
                        && entry == key
                        && about == made
                }
                _ => false,
            };
            if !agrees {
                self.found(
                    of,
                    &format!("row of entry {}", Finding::shown(entry)),
                    (1, 0),
                );
            }
        }
        Ok(())
    }
}

/// A row, all of whose columns can be read, and whose key is that of its columns.
fn read<'r>(
    shape: &'r Shape,
    row_key: &[u8],
    bytes: &'r [u8],
    key: &mut Vec<u8>,
) -> Result<RowRef<'r>> {
    let schema = &shape.table().schema;
    let view = schema.view(bytes)?;
    for position in 0..schema.len() {
        view.get(position)?;
    }
    let row = RowRef::Stored(view);
    let belongs = match shape.has_key() {
        true => {
            key.clear();
            shape.keys[0].encode(row, key)?;
            key.as_slice() == row_key
        }
        // A number that was drawn.
        false => row_key.len() == size_of::<u64>(),
    };
    match belongs {
        true => Ok(row),
        false => Err(SqlError::new(
            crate::sqlstate::DATA_CORRUPTED,
            "it stands under the key of another one",
        )),
    }
}
