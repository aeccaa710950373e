//! Old versions by table and kind.

use crate::database::Database;
use std::collections::BTreeMap;
pub use vellum_version::{Tally, VersionKind, VersionSums};

/// The old versions of one table, those of its indexes included.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TableVersions {
    /// The table's name; `None` for what belongs to the catalog, and to trees of tables that are gone.
    pub table: Option<String>,
    /// How many of each kind, and their bytes.
    pub sums: VersionSums,
}

impl Database {
    /// Old versions by table and kind, tables with the most bytes first. Counted when they are made and collected, so this
    /// costs no look at any page: some microseconds a worker slot that has made versions.
    pub fn versions(&self) -> Vec<TableVersions> {
        let engine = self.engine();
        let names = engine.tables.names_by_tree();
        let mut tables: BTreeMap<Option<String>, VersionSums> = BTreeMap::new();
        for (tree, sums) in engine.store.versions_by_tree() {
            let name = names.get(&tree).cloned();
            tables.entry(name).or_default().add_all(&sums);
        }
        let mut tables: Vec<_> = tables
            .into_iter()
            .map(|(table, sums)| TableVersions { table, sums })
            .collect();
        tables.retain(|table| table.sums.total().count > 0);
        tables.sort_by_key(|table| std::cmp::Reverse(table.sums.total().bytes));
        tables
    }
}
