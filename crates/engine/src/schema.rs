//! Tables and indexes: making, dropping, finding them, inside transactions.
//!
//! A DDL statement writes catalog rows, lists or unlists the roots of trees, and appends a shape to the table's
//! chain (`table::Shape`). Rolling back makes the shape void; catalog rows and lists are reverted like any row.
//!
//! Invariants:
//! - D1 Whoever changes a table's shape has written the table's catalog row first, so two never do it at once.
//! - D2 Table ids are never used for another table while the database is open, and never a persisted one.
//! - D3 A table is forgotten when no snapshot that is open or can be drawn finds its catalog row. Handles keep their
//!   shapes.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::known_tables::KnownTables;
use crate::transaction::Transaction;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use vellum_base::{PageId, StorageError, TableId};
use vellum_btree::{LeafCopy, Seek, Tree, TreeKind};
use vellum_catalog::entry::{
    index_key, index_prefix, name_in_key, name_is_valid, prefix_end, table_key, table_prefix,
};
use vellum_catalog::{IndexEntry, TableEntry};
use vellum_gc::Horizon;
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU32, Ordering};
use vellum_table::{Index as IndexShape, KeyDescription, Shape, ShapeChange};
use vellum_txn::VersionStamp;
use vellum_version::row::{Shape as RowShape, newest};
use vellum_version::{Change, Current, Scan, ScannedRow, VersionError, View};

/// A handle of a table. Cheap to clone; usable in every transaction of the same open database that sees the table.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) base: Arc<Shape>,
}

impl Table {
    /// The table's name.
    pub fn name(&self) -> &str {
        &self.base.name
    }
}

/// A handle of an index. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) table: Table,
    pub(crate) id: TableId,
    pub(crate) name: Arc<str>,
}

impl Index {
    /// The index's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// All tables that this run has seen, by id: the starts of their shapes.
#[derive(Debug)]
pub(crate) struct Tables {
    next: AtomicU32,
    by_id: KnownTables,
    /// Shapes of dropped tables, in the order of the drops: their tables are forgotten when everybody sees that (D3).
    dropped: Mutex<VecDeque<Arc<Shape>>>,
}

/// Dropped tables that are looked at for each that is dropped.
const FORGET_STEP: usize = 64;

impl Tables {
    pub fn new(next: u32) -> Self {
        Self {
            next: AtomicU32::new(next),
            by_id: KnownTables::new(),
            dropped: Mutex::new(VecDeque::new()),
        }
    }

    /// D3. Forgets dropped tables, a bounded number.
    pub fn forget(&self, horizon: &Horizon<'_>) {
        let mut dropped = self.dropped.lock();
        for _ in 0..FORGET_STEP {
            let Some(shape) = dropped.front() else {
                return;
            };
            // In this order: of what was rolled back "frozen" may be true once its slot has committed again, and what makes that
            // true comes after the shape was made void. (Void asked first, the drop could be rolled back between the two,
            // and a table that is there would be forgotten.)
            let seen = shape.made_by().is_none_or(|by| horizon.is_frozen(by));
            vellum_sync::test_point!("schema: between frozen and void");
            if !shape.is_void() {
                if !seen {
                    return;
                }
                self.by_id.remove(shape.id);
            }
            dropped.pop_front();
        }
    }

    /// Forgets a table whose making was rolled back; does nothing for a later shape.
    pub fn forget_void(&self, shape: &Arc<Shape>) {
        self.by_id.remove_first(shape);
    }

    /// The next id that was never given out.
    pub fn next_id(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    fn draw_id(&self) -> TableId {
        TableId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn insert(&self, shape: Arc<Shape>) {
        self.by_id.insert(shape);
    }

    fn get(&self, id: TableId) -> Option<Arc<Shape>> {
        self.by_id.get(id)
    }

    /// Names of tables by the root pages of their trees and their indexes' trees, as of the newest shapes.
    pub fn names_by_tree(&self) -> BTreeMap<PageId, String> {
        let mut names = BTreeMap::new();
        for base in self.by_id.all() {
            let Some(shape) = base.resolve(|_| true).filter(|shape| !shape.dropped) else {
                continue;
            };
            let indexes = shape.indexes.iter().map(|index| &index.tree);
            for tree in indexes.chain([&shape.tree]) {
                names.insert(tree.root(), shape.name.to_string());
            }
        }
        names
    }

    /// Reads the catalog after recovery, when every row has one version.
    pub fn load(&self, engine: &Engine) -> Result<()> {
        let mut tables: BTreeMap<TableId, (TableEntry, Arc<str>)> = BTreeMap::new();
        let mut indexes: BTreeMap<TableId, Vec<IndexShape>> = BTreeMap::new();
        let mut highest = 0;
        for_each_row(&engine.catalog, |key, body| {
            let damaged = || damaged_catalog(&engine.catalog);
            let name: Arc<str> = name_in_key(key).ok_or_else(damaged)?.into();
            if key.starts_with(&table_prefix()) {
                let entry = TableEntry::decode(body).ok_or_else(damaged)?;
                highest = highest.max(entry.id.get());
                tables.insert(entry.id, (entry, name));
            } else {
                let owner = key.get(1..).and_then(|rest| rest.first_chunk());
                let owner = TableId(u32::from_be_bytes(*owner.ok_or_else(damaged)?));
                let entry = IndexEntry::decode(body).ok_or_else(damaged)?;
                highest = highest.max(entry.id.get());
                let tree = Tree::open(&engine.context, entry.root, TreeKind::Rows);
                let shape = IndexShape {
                    id: entry.id,
                    name,
                    tree,
                    key: entry.key,
                };
                indexes.entry(owner).or_default().push(shape);
            }
            Ok(())
        })?;
        for (id, (entry, name)) in tables {
            let tree = Tree::open(&engine.context, entry.root, TreeKind::Rows);
            let mut own = indexes.remove(&id).unwrap_or_default();
            own.sort_by_key(|index| index.id);
            self.insert(Arc::new(Shape::new(id, name, tree, own, None)));
        }
        // An index of a table that there is not.
        if !indexes.is_empty() {
            return Err(damaged_catalog(&engine.catalog).into());
        }
        self.next.fetch_max(highest + 1, Ordering::Relaxed);
        Ok(())
    }
}

fn damaged_catalog(catalog: &Tree) -> StorageError {
    StorageError::Corruption {
        file: "data".into(),
        page: Some(catalog.root()),
        what: "catalog row",
        expected: 0,
        found: 0,
    }
}

/// Calls `each` with key and body of every live row, newest versions, whoever wrote them.
pub(crate) fn for_each_row(
    tree: &Tree,
    mut each: impl FnMut(&[u8], &[u8]) -> std::result::Result<(), StorageError>,
) -> std::result::Result<(), StorageError> {
    let mut leaf = LeafCopy::new(tree.context().page_size());
    let mut key = Vec::new();
    tree.read_leaf(Seek::First, &mut leaf)?;
    loop {
        for index in 0..leaf.len() {
            let row = leaf.payload(index);
            let (header, body) = newest(row).ok_or_else(|| damaged_catalog(tree))?;
            if !header.shape.tombstone {
                leaf.key(index, &mut key);
                each(&key, body)?;
            }
        }
        let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
            return Ok(());
        };
        tree.read_leaf(Seek::AtOrAfter(&fence), &mut leaf)?;
    }
}

impl Transaction {
    /// Makes an empty table.
    ///
    /// # Errors
    /// `TableExists`, `InvalidArgument` for a name that is empty or longer than 255 bytes, `Conflict`, `ReadOnly`,
    /// storage errors. The transaction stays usable but for `Conflict`.
    pub fn create_table(&self, name: &str) -> Result<Table> {
        check_name(name)?;
        self.write_operation(|| {
            self.all_or_nothing(|| {
                let engine = self.engine();
                let key = table_key(name);
                if self.read_catalog(&key)?.is_some() {
                    return Err(Error::TableExists { name: name.into() });
                }
                let tree = self.new_tree()?;
                let entry = TableEntry {
                    id: engine.tables.draw_id(),
                    root: tree.root(),
                };
                let made_by = self.put_catalog(&key, &entry.encode(), name)?;
                let tree = tree.adopt()?;
                let made = Some(made_by);
                let shape = Arc::new(Shape::new(entry.id, name.into(), tree, Vec::new(), made));
                engine.tables.insert(shape.clone());
                self.note_shape(&shape);
                Ok(Table { base: shape })
            })
        })
    }

    /// The table of this name, as the transaction sees it.
    ///
    /// # Errors
    /// `NoSuchTable`, storage errors.
    pub fn table(&self, name: &str) -> Result<Table> {
        self.read_operation(|| {
            let missing = || Error::NoSuchTable { name: name.into() };
            let bytes = self.read_catalog(&table_key(name))?.ok_or_else(missing)?;
            let damaged = || damaged_catalog(&self.engine().catalog);
            let entry = TableEntry::decode(&bytes).ok_or_else(damaged)?;
            let base = self.engine().tables.get(entry.id).ok_or_else(missing)?;
            Ok(Table { base })
        })
    }

    /// Names of all tables that the transaction sees, ascending.
    ///
    /// # Errors
    /// Storage errors.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.names_under(&table_prefix())
    }

    /// Names of all indexes of a table that the transaction sees, ascending.
    ///
    /// # Errors
    /// `NoSuchTable`, storage errors.
    pub fn indexes(&self, table: &Table) -> Result<Vec<String>> {
        let id = self.shape_of_statement(table)?.id;
        self.names_under(&index_prefix(id))
    }

    /// Drops a table with its indexes. Transactions with an older snapshot still see it; its pages are given
    /// back when no snapshot does.
    ///
    /// # Errors
    /// `NoSuchTable`, `Conflict`, `ReadOnly`, storage errors.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let table = self.table(name)?;
        self.write_operation(|| {
            self.all_or_nothing(|| {
                let shape = self.shape_of(&table)?;
                vellum_sync::test_point!("schema: before the catalog row");
                let dropped_by = self.delete_catalog(&table_key(name), name)?;
                check_newest(shape)?;
                for index in &shape.indexes {
                    self.delete_catalog(&index_key(shape.id, &index.name), name)?;
                    self.disown_tree(index.tree.root(), &shape.name)?;
                }
                self.disown_tree(shape.tree.root(), &shape.name)?;
                let dropped = Shape::append(shape, ShapeChange::Drop, dropped_by);
                self.note_shape(&dropped);
                let tables = &self.engine().tables;
                tables.dropped.lock().push_back(dropped);
                tables.forget(&Horizon::published(self.inner().domain()));
                Ok(())
            })
        })
    }

    /// Declares an index of a table and fills it from the rows that are there. Concurrent writers of the table
    /// conflict until this transaction ends.
    ///
    /// # Errors
    /// `TableExists` if the table has an index of this name, `KeyExists` where a unique index would hold two
    /// rows, `KeyTooLong`, `Conflict` if a row was written by a transaction that this one does not see, `ReadOnly`,
    /// storage errors.
    pub fn create_index(&self, table: &Table, name: &str, key: KeyDescription) -> Result<Index> {
        check_name(name)?;
        self.write_operation(|| {
            self.all_or_nothing(|| {
                let engine = self.engine();
                let shape = self.shape_of(table)?;
                let changed_by = self.lock_shape(shape)?;
                let index_name = index_key(shape.id, name);
                if self.read_catalog(&index_name)?.is_some() {
                    return Err(Error::TableExists { name: name.into() });
                }
                let tree = self.new_tree()?;
                let id = engine.tables.draw_id();
                let entry = IndexEntry {
                    id,
                    root: tree.root(),
                    key: key.clone(),
                };
                self.put_catalog(&index_name, &entry.encode(), name)?;
                let tree = tree.adopt()?;
                let index = IndexShape {
                    id,
                    name: name.into(),
                    tree,
                    key,
                };
                let change = ShapeChange::AddIndex(index.clone());
                self.note_shape(&Shape::append(shape, change, changed_by));
                self.fill_index(shape, &index)?;
                Ok(Index {
                    table: table.clone(),
                    id,
                    name: index.name,
                })
            })
        })
    }

    /// The index of this name of a table, as the transaction sees it.
    ///
    /// # Errors
    /// `NoSuchTable` if there is no such table or index, storage errors.
    pub fn index(&self, table: &Table, name: &str) -> Result<Index> {
        let shape = self.shape_of_statement(table)?;
        let found = shape.indexes.iter().find(|index| &*index.name == name);
        let index = found.ok_or_else(|| Error::NoSuchTable { name: name.into() })?;
        Ok(Index {
            table: table.clone(),
            id: index.id,
            name: index.name.clone(),
        })
    }

    /// Drops an index.
    ///
    /// # Errors
    /// `NoSuchTable`, `Conflict`, `ReadOnly`, storage errors.
    pub fn drop_index(&self, table: &Table, name: &str) -> Result<()> {
        let index = self.index(table, name)?;
        self.write_operation(|| {
            self.all_or_nothing(|| {
                let shape = self.shape_of(table)?;
                let found = shape.indexes.iter().find(|other| other.id == index.id);
                let root = found
                    .map(|index| index.tree.root())
                    .ok_or_else(|| Error::NoSuchTable { name: name.into() })?;
                let changed_by = self.lock_shape(shape)?;
                self.delete_catalog(&index_key(shape.id, name), name)?;
                self.disown_tree(root, &shape.name)?;
                let change = ShapeChange::RemoveIndex(index.id);
                self.note_shape(&Shape::append(shape, change, changed_by));
                Ok(())
            })
        })
    }

    /// D1: writes the table's catalog row as it is. The shape is the newest then, and stays it.
    pub(crate) fn lock_shape(&self, shape: &Shape) -> Result<VersionStamp> {
        let key = table_key(&shape.name);
        let missing = || Error::NoSuchTable {
            name: shape.name.to_string(),
        };
        let row = self.read_catalog(&key)?.ok_or_else(missing)?;
        vellum_sync::test_point!("schema: before the catalog row");
        let changed_by = self.overwrite_catalog(&key, &row, &shape.name)?;
        check_newest(shape)?;
        Ok(changed_by)
    }

    /// Gives up a tree of the table `table`: its pages go when no snapshot sees it.
    pub(crate) fn disown_tree(&self, root: PageId, table: &Arc<str>) -> Result<()> {
        Ok(self.engine().store.disown_tree(self.inner(), root, table)?)
    }

    /// Reads a catalog row.
    pub(crate) fn read_catalog(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (engine, operation) = (self.engine(), self.operation()?);
        let view = View::of_statement(&operation);
        let (mut row, mut delta) = (Vec::new(), Vec::new());
        let found = engine
            .store
            .read(&view, &engine.catalog, key, &mut row, &mut delta)?;
        Ok(found.map(|visible| row.split_off(visible.start)))
    }

    /// Inserts a catalog row.
    fn put_catalog(&self, key: &[u8], body: &[u8], name: &str) -> Result<VersionStamp> {
        self.write_catalog(key, |current| match current {
            Some(_) => Err(VersionError::KeyExists),
            None => Ok(Change::Put(RowShape::INLINE, body)),
        })
        .map_err(|error| match error {
            Error::KeyExists { .. } => Error::TableExists { name: name.into() },
            other => other,
        })
    }

    /// Replaces a catalog row.
    pub(crate) fn overwrite_catalog(
        &self,
        key: &[u8],
        body: &[u8],
        name: &str,
    ) -> Result<VersionStamp> {
        let put = Change::Put(RowShape::INLINE, body);
        self.change_catalog(key, put, name)
    }

    fn delete_catalog(&self, key: &[u8], name: &str) -> Result<VersionStamp> {
        self.change_catalog(key, Change::Delete, name)
    }

    fn change_catalog(&self, key: &[u8], to: Change<'_>, name: &str) -> Result<VersionStamp> {
        self.write_catalog(key, |current| match current {
            Some(_) => Ok(to),
            None => Err(VersionError::KeyExists),
        })
        .map_err(|error| match error {
            Error::KeyExists { .. } => Error::NoSuchTable { name: name.into() },
            other => other,
        })
    }

    fn write_catalog<'c>(
        &self,
        key: &[u8],
        decide: impl FnMut(Option<Current<'_>>) -> vellum_version::Result<Change<'c>>,
    ) -> Result<VersionStamp> {
        let (engine, operation) = (self.engine(), self.operation()?);
        let view = View::of_statement(&operation);
        let mut scratch = vellum_version::Scratch::default();
        let written = engine
            .store
            .write(&view, &engine.catalog, key, &mut scratch, decide)?;
        Ok(self.inner().version(written.command)?)
    }

    /// The table as a statement that starts now sees it.
    fn shape_of_statement<'s>(&self, table: &'s Table) -> Result<&'s Shape> {
        let operation = self.operation()?;
        self.inner().statement();
        self.shape_in(&operation, table)
    }

    fn names_under(&self, prefix: &[u8]) -> Result<Vec<String>> {
        self.read_operation(|| {
            let (engine, inner) = (self.engine(), self.inner());
            let (store, catalog) = (&engine.store, &engine.catalog);
            // One snapshot for all of them, also under read committed.
            let first = self.operation()?;
            let (command, snapshot) = {
                inner.statement();
                (inner.commands_seen(), inner.open_snapshot())
            };
            drop(first);
            let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
            let range = (Bound::Included(prefix.to_vec()), end);
            let mut scan = Scan::new(engine.context.page_size(), range);
            let mut names = Vec::new();
            let name = |row: ScannedRow<'_>| {
                let name = name_in_key(row.key).map(str::to_owned);
                name.ok_or_else(|| damaged_catalog(catalog))
            };
            loop {
                // Counted leaf by leaf (R10).
                let operation = self.operation()?;
                let view = View::new(&operation, snapshot.snapshot(), command);
                let mut found = scan.next_within(store, &view, catalog)?.map(name);
                if found.is_none() && !scan.is_under_way() {
                    return Ok(names);
                }
                while let Some(name_of_one) = found {
                    names.push(name_of_one?);
                    found = scan.next_at_hand(store, &view, catalog)?.map(name);
                }
                drop(operation);
                vellum_sync::test_point!("schema: between two leaves of names");
            }
        })
    }

    /// Enters every row of the table into a new index (T2: latch, then read, each leaf). Counted for each leaf that is read, and for each row of it that is judged
    /// and entered (R10): who was withdrawn is told so, and not that a row which it sees is none of its own.
    fn fill_index(&self, shape: &Shape, index: &IndexShape) -> Result<()> {
        let engine = self.engine();
        // One snapshot from before the first leaf is read, also under read committed. "Committed by now" would be
        // asked too late: the writer of a row in the copy may have reverted it, and its slot committed since.
        let inner = self.inner();
        inner.statement();
        let snapshot = inner.open_snapshot();
        let builds_on = |version: &VersionStamp| {
            inner.is_own(version)
                || inner.visible(version, snapshot.snapshot(), inner.commands_drawn())
        };
        let mut leaf = LeafCopy::new(engine.context.page_size());
        let (mut key, mut row, mut large) = (Vec::new(), Vec::new(), Vec::new());
        let mut filler = vellum_table::IndexFiller::new(&engine.store, index);
        let mut from = Vec::new();
        loop {
            {
                let _operation = self.operation()?;
                drop(shape.tree.write(&from)?);
                shape.tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
                let store = &engine.store;
                if store.may_miss_buried(snapshot.snapshot(), &shape.tree) {
                    // A row that this transaction sees may have left the leaf: a later writer's delete, as below.
                    return Err(Error::Conflict);
                }
            }
            for at in leaf.position()..leaf.len() {
                let mut operation = self.operation()?;
                leaf.key(at, &mut key);
                row.clear();
                row.extend_from_slice(leaf.payload(at));
                let (header, body) = newest(&row).ok_or_else(|| damaged_catalog(&shape.tree))?;
                if let Some(writer) = header.writer
                    && !builds_on(&writer.version)
                {
                    return Err(Error::Conflict);
                }
                if header.shape.tombstone {
                    continue;
                }
                if header.shape.overflow {
                    let most = index.key.value_bytes();
                    let store = &engine.store;
                    store.read_chain_start(&mut operation, body, most, &mut large)?;
                    filler.add(&operation, &key, &large)?;
                } else {
                    filler.add(&operation, &key, body)?;
                }
            }
            let Some(fence) = leaf.upper_fence() else {
                return Ok(());
            };
            from.clear();
            from.extend_from_slice(fence);
            vellum_sync::test_point!("schema: between two leaves of an index that is filled");
        }
    }
}

/// Refuses a shape that somebody changed since it was looked up. Asked once the table's catalog row is written (D1):
/// under read committed that write succeeds although the row was changed, and the change committed, in between.
fn check_newest(shape: &Shape) -> Result<()> {
    if shape.is_newest() {
        Ok(())
    } else {
        Err(Error::Conflict)
    }
}

fn check_name(name: &str) -> Result<()> {
    if name_is_valid(name) {
        return Ok(());
    }
    let what = format!("a name of {} bytes (1 to 255 are allowed)", name.len());
    Err(Error::InvalidArgument { what })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::{Config, Database};
    use std::sync::Arc;
    use vellum_io::MemoryDirectory;

    #[test]
    fn table_that_every_snapshot_sees_is_judged_once() {
        let config = Config::default()
            .pool_bytes(4 << 20)
            .background_threads(false);
        let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
        let old = database.begin().unwrap();
        // The snapshot is that of the first read.
        assert!(old.table("t").is_err());
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        let get = |key: &[u8]| {
            let tx = database.begin().unwrap();
            tx.get(&table, key, |value| value.to_vec()).unwrap()
        };
        while database.step().unwrap() {}
        assert_eq!(get(b"k"), None);
        assert!(
            !table.base.is_settled(),
            "an older snapshot does not see it"
        );
        assert!(old.get(&table, b"k", |_| ()).is_err());
        drop(old);
        database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
        while database.step().unwrap() {}
        assert_eq!(get(b"k"), Some(b"v".to_vec()));
        assert!(table.base.is_settled());
    }

    #[test]
    fn ten_thousand_tables_that_came_and_went_are_forgotten() {
        let mut config = Config::default()
            .pool_bytes(4 << 20)
            .background_threads(false);
        config.slots_max = 8;
        let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
        let known = || database.engine().tables.by_id.all().len();
        let old = database.retry(|tx| tx.create_table("old")).unwrap();
        let reader = database.begin().unwrap();
        database.retry(|tx| tx.drop_table("old")).unwrap();
        for round in 0..10_000 {
            let tx = database.begin().unwrap();
            tx.create_table("t").unwrap();
            if round % 3 == 0 {
                tx.rollback().unwrap();
                continue;
            }
            tx.commit().unwrap();
            database.retry(|tx| tx.drop_table("t")).unwrap();
            if round == 200 {
                assert!(
                    known() > 100,
                    "an old snapshot sees the first, which is in front"
                );
                assert!(reader.get(&old, b"k", |_| ()).unwrap().is_none());
                break;
            }
        }
        reader.commit().unwrap();
        for round in 200..10_000 {
            database.retry(|tx| tx.create_table("t").map(drop)).unwrap();
            database.retry(|tx| tx.drop_table("t")).unwrap();
            assert!(
                round < 300 || known() < 200,
                "{} tables known in round {round}",
                known()
            );
        }
        while database.step().unwrap() {}
        assert!(known() <= 1, "{}", known());
        assert!(database.verify().unwrap().is_sound());
    }
}
