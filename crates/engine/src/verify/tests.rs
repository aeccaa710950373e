//! Damage that no interface makes: indexes that disagree, pages that leak or have two owners.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use super::Report;
use crate::{Config, Database, KeyDescription, KeyPart, Source};
use std::sync::Arc;
use vellum_base::PageId;
use vellum_btree::{Journal, Logging, RowRedo, Tree, TreeKind};
use vellum_io::MemoryDirectory;
use vellum_version::pending::PendingKind;
use vellum_wal::Purpose;

struct World {
    database: Database,
}

impl World {
    fn new() -> Self {
        let mut config = Config::default()
            .page_size(4096)
            .pool_bytes(64 * 4096)
            .background_threads(false);
        config.slot_buffer_bytes = 64 << 10;
        config.log_segment_bytes = 256 << 10;
        config.log_bytes_max = 4 << 20;
        let directory = Arc::new(MemoryDirectory::new());
        let database = Database::open_directory(directory, config).unwrap();
        database
            .retry(|tx| {
                let table = tx.create_table("t")?;
                let part = KeyPart {
                    source: Source::Value,
                    start: 0,
                    end: Some(1),
                };
                let key = KeyDescription::new(vec![part], false).unwrap();
                tx.create_index(&table, "i", key)?;
                for number in 0u8..200 {
                    let length = if number == 7 { 9000 } else { 10 };
                    tx.insert(&table, &[number], &vec![number; length])?;
                }
                Ok(())
            })
            .unwrap();
        Self { database }
    }

    fn journal(&self) -> Journal<'_> {
        let slot = self
            .database
            .engine()
            .system_slot(crate::engine::SystemSlot::Maintenance);
        Journal::new(slot, Purpose::Checkpoint)
    }

    fn tree(&self, root: u64) -> Tree {
        Tree::open(
            &self.database.engine().context,
            PageId(root),
            TreeKind::Rows,
        )
    }

    fn root_of_table(&self) -> u64 {
        self.database.verify().unwrap().tables[0].tree.root
    }

    fn root_of_index(&self) -> u64 {
        self.database.verify().unwrap().tables[0].indexes[0]
            .tree
            .root
    }

    /// Removes a row without telling anybody.
    fn remove(&self, root: u64, key: &[u8]) {
        let journal = self.journal();
        journal.slot.reserve_for(8192, journal.purpose).unwrap();
        let tree = self.tree(root);
        let mut leaf = tree.write(key).unwrap();
        assert!(leaf.found());
        let redo = RowRedo::Remove;
        leaf.remove(Logging::Record {
            slot: journal.slot,
            flags: 0,
            redo,
            undo: &[],
        });
    }

    /// Puts a row in place of another without telling anybody.
    fn replace(&self, root: u64, key: &[u8], row: &[u8]) {
        let journal = self.journal();
        journal.slot.reserve_for(8192, journal.purpose).unwrap();
        let tree = self.tree(root);
        let mut leaf = tree.write(key).unwrap();
        assert!(leaf.found());
        let row = [row];
        let redo = RowRedo::Row(&row);
        leaf.replace(
            &row,
            Logging::Record {
                slot: journal.slot,
                flags: 0,
                redo,
                undo: &[],
            },
        );
    }

    fn assert_finds(&self, object: &str, what: &str) -> Report {
        let report = self.database.verify().unwrap();
        let found = report
            .findings
            .iter()
            .any(|f| f.object == object && f.what.contains(what));
        assert!(found, "{object}: {what} is not in {:#?}", report.findings);
        report
    }
}

const INDEX: &str = "index \"i\" of table \"t\"";

#[test]
fn entry_that_an_index_lacks_is_named() {
    let world = World::new();
    world.remove(world.root_of_index(), &[42, 42]);
    let report = world.assert_finds(INDEX, "entry of row \"*\"");
    assert_eq!(
        report.findings.len(),
        2,
        "that, and the sums: {:#?}",
        report.findings
    );
}

#[test]
fn entry_without_a_row_is_named() {
    let world = World::new();
    world.remove(world.root_of_table(), &[42]);
    let report = world.assert_finds(INDEX, "row of entry \"**\"");
    assert_eq!(report.findings.len(), 2, "{:#?}", report.findings);
}

#[test]
fn entry_that_names_another_row_is_named_both_ways() {
    let world = World::new();
    let frozen_inline = 0;
    world.replace(world.root_of_index(), &[42, 42], &[frozen_inline, 43]);
    world.assert_finds(INDEX, "entry of row \"*\"");
    world.assert_finds(INDEX, "row of entry \"**\"");
}

#[test]
fn row_with_another_value_than_its_entry_is_named_both_ways() {
    let world = World::new();
    world.replace(world.root_of_table(), &[42], &[0, 99, 99]);
    world.assert_finds(INDEX, "entry of row \"*\"");
    world.assert_finds(INDEX, "row of entry \"**\"");
}

#[test]
fn row_without_header_and_chain_reference_without_chain_are_named() {
    let world = World::new();
    let table = world.root_of_table();
    world.replace(table, &[1], &[0xff, 1, 2]);
    world.assert_finds("table \"t\"", "header of row \"\\x01\"");
    world.replace(table, &[1], &[4, 1, 2]);
    world.assert_finds("table \"t\"", "chain reference of row \"\\x01\"");
    let nowhere = [&[4][..], &u64::to_le_bytes(1 << 40), &u64::to_le_bytes(10)].concat();
    world.replace(table, &[1], &nowhere);
    world.assert_finds("table \"t\"", "page id beyond the file");
}

#[test]
fn chain_that_was_lost_leaks_and_one_with_two_owners_is_named() {
    let world = World::new();
    let table = world.root_of_table();
    let mut row = Vec::new();
    assert!(world.tree(table).get(&[7], &mut row).unwrap());
    let header = vellum_version::row::Header::decode(&row).unwrap();
    let chained = [&[4][..], &row[header.length()..]].concat();
    world.replace(table, &[8], &chained);
    world.assert_finds("table \"t\"", "page reached once");
    world.replace(table, &[7], &[0, 7]);
    world.replace(table, &[8], &[0, 8]);
    let report = world.assert_finds("database", "pages in use that nothing refers to");
    assert_eq!(report.findings[0].found, 3, "pages of 4096 bytes for 9000");
}

#[test]
fn tree_that_nobody_knows_leaks_and_one_in_the_list_does_not() {
    let world = World::new();
    let engine = world.database.engine();
    let tree = Tree::create(&engine.context, Some(world.journal()), TreeKind::Rows, None).unwrap();
    let report = world.assert_finds("database", "pages in use that nothing refers to");
    assert_eq!(report.findings[0].page, Some(tree.root().get()));
    let key = tree.root().get().to_be_bytes();
    let pending = engine.store.pending_free();
    pending
        .put(&key, PendingKind::Tree.payload(), Some(world.journal()))
        .unwrap();
    let report = world.database.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert_eq!(report.pages.pending, 1);
    pending
        .put(b"no page", &[9], Some(world.journal()))
        .unwrap();
    world.assert_finds("pending_free", "row \"no page\"");
}

#[test]
fn chain_in_the_list_and_in_a_tree_of_the_list_has_one_owner_but_not_one_in_a_table() {
    let world = World::new();
    let engine = world.database.engine();
    let tx = world.database.begin().unwrap();
    let tree = engine.store.create_tree(tx.inner()).unwrap();
    let chain = {
        let mut operation = tx.inner().operation().unwrap();
        engine
            .store
            .write_chain(&mut operation, &[1; 9000])
            .unwrap()
    };
    let mut loader = tree.bulk_loader(100);
    let flags = [vellum_version::row::Shape::CHAINED.reduced_flags()];
    loader
        .push(b"k", &[&flags, &chain.encode()], world.journal())
        .unwrap();
    loader.finish(world.journal()).unwrap();
    // Both are listed now, as a load that was rolled back leaves them.
    let report = world.database.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert_eq!(report.pages.pending, 1 + 3);
    // In the middle of a load only the tree is.
    engine.store.adopt(tx.inner(), chain.root).unwrap();
    let report = world.database.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    drop(tx);
    let table = world.database.verify().unwrap().tables[0].tree.root;
    let mut row = Vec::new();
    assert!(world.tree(table).get(&[7], &mut row).unwrap());
    let of_row = u64::from_le_bytes(*row[row.len() - 16..].first_chunk().unwrap());
    let listed = PendingKind::Chain.payload();
    let pending = engine.store.pending_free();
    pending
        .put(&of_row.to_be_bytes(), listed, Some(world.journal()))
        .unwrap();
    world.assert_finds(&format!("pending {of_row}"), "page reached once");
}

#[test]
fn catalog_row_that_is_none_and_index_without_table_are_named() {
    let world = World::new();
    let engine = world.database.engine();
    let catalog = engine.catalog.root().get();
    let table = vellum_catalog::entry::table_key("t");
    let mut row = Vec::new();
    assert!(engine.catalog.get(&table, &mut row).unwrap());
    world.replace(catalog, &table, &[0, 1, 2, 3]);
    world.assert_finds("catalog", "row \"tt\"");
    world.assert_finds("index \"i\"", "table 1 of the index");
    world.assert_finds("database", "pages in use that nothing refers to");
}

#[test]
fn page_that_is_referred_to_and_free_is_named() {
    let world = World::new();
    let engine = world.database.engine();
    let made = Tree::create(&engine.context, Some(world.journal()), TreeKind::Rows, None).unwrap();
    let key = made.root().get().to_be_bytes();
    let pending = engine.store.pending_free();
    pending
        .put(&key, PendingKind::Tree.payload(), Some(world.journal()))
        .unwrap();
    while !made.drop_pages(9, Some(world.journal()), None).unwrap() {}
    let report = world.assert_finds("database", "page is referred to and free");
    assert_eq!(
        report.findings.last().unwrap().page,
        Some(made.root().get())
    );
}

#[test]
fn report_lists_a_thousand_findings_and_counts_the_rest() {
    let mut report = Report::default();
    for number in 0..1005 {
        report.find(super::Finding::new("database", None, "x", (0, number)));
    }
    assert_eq!((report.findings.len(), report.findings_left_out), (1000, 5));
    assert!(!report.is_sound());
}
