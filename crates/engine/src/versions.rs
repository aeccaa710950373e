//! Old versions by table and kind, and the pages that a table's rows take.

use crate::database::Database;
use crate::error::Result;
use crate::schema::Table;
use crate::transaction::Transaction;
use std::collections::BTreeMap;
use vellum_btree::{LeafCopy, Seek};
pub use vellum_version::{Tally, VersionKind, VersionSums};

/// The old versions of one table, those of its indexes included.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TableVersions {
    /// The table's name, also of one that is dropped, as long as a tree of it waits for a snapshot. `None` for what belongs to the catalog, and for what is left of
    /// trees that are gone.
    pub table: Option<String>,
    /// How many of each kind, and their bytes.
    pub sums: VersionSums,
}

/// The old versions of all tables.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OldVersions {
    /// Those of each table that has any, tables with the most bytes first.
    pub tables: Vec<TableVersions>,
    /// All were counted. `false`: there are more deleted rows, or more pages with versions in rows, than one look goes through, or some of these pages are not in memory, and
    /// what is there is missing ([`Statistics::version_bytes_in_rows`](crate::Statistics::version_bytes_in_rows) tells all in one sum); or a table was dropped of late, and maintenance
    /// has not counted all of its pages yet.
    pub complete: bool,
    /// Pages that were evicted with versions in rows and have not been read since: what is in them is not counted above. Those that an earlier process left in the file
    /// are not among them: no snapshot sees what is there.
    pub pages_out: u64,
}

/// Leaves that are looked at before an operation is lowered (R10). Few where tests are run: they meet that often.
const LEAVES_AT_ONCE: u32 = if cfg!(debug_assertions) { 1 } else { 16 };

/// Pages of lists that a census looks at, at most, and pages with versions in rows.
pub(crate) const PAGES_MAX: usize = 4096;

impl Database {
    /// Old versions by table and kind. Before-images are counted when they are made and collected, pages of dropped tables by maintenance, from its next step
    /// behind the drop's commit on; for tombstones this looks at up to 4,096 pages, and for versions in rows at as many (some ten milliseconds), and says so if there are more.
    ///
    /// # Errors
    /// Storage errors.
    pub fn versions(&self) -> Result<OldVersions> {
        let engine = self.engine();
        let names = engine.tables.names_by_tree();
        let mut tables: BTreeMap<Option<String>, VersionSums> = BTreeMap::new();
        let (census, complete) = engine.store.census(engine.manager.domain(), PAGES_MAX)?;
        for (tree, sums) in census {
            let of_dropped = || Some(engine.store.table_of_dropped(tree)?.to_string());
            let name = names.get(&tree).cloned().or_else(of_dropped);
            tables.entry(name).or_default().add_all(&sums);
        }
        let mut tables: Vec<_> = tables
            .into_iter()
            .map(|(table, sums)| TableVersions { table, sums })
            .collect();
        tables.retain(|table| table.sums.total().count > 0);
        tables.sort_by_key(|table| std::cmp::Reverse(table.sums.total().bytes));
        Ok(OldVersions {
            tables,
            complete,
            pages_out: engine.pool.fat_pages_out(),
        })
    }
}

impl Transaction {
    /// Leaf pages of a table's main index, which every operation on it goes through. Looks at each of them, some hundred
    /// nanoseconds a page in memory.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn leaf_pages(&self, table: &Table) -> Result<u64> {
        let (tree, _snapshot) = self.read_operation(|| {
            let operation = self.operation()?;
            let tree = self.shape_in(&operation, table)?.tree.clone();
            // Under read committed, too, the tree stays to the end.
            Ok((tree, self.inner().open_snapshot()))
        })?;
        let mut leaf = LeafCopy::new(self.engine().context.page_size());
        let (mut pages, mut from) = (0, Vec::new());
        loop {
            // Counted for a few leaves at a time (R10).
            let is_done = self.read_operation(|| {
                let _operation = self.operation()?;
                for _ in 0..LEAVES_AT_ONCE {
                    tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
                    pages += 1;
                    let Some(fence) = leaf.upper_fence() else {
                        return Ok(true);
                    };
                    from.clear();
                    from.extend_from_slice(fence);
                }
                Ok(false)
            })?;
            if is_done {
                return Ok(pages);
            }
            vellum_sync::test_point!("leaf pages: between two steps");
        }
    }
}
