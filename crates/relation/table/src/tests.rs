//! Tests of tables on the whole stack below them, in memory.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::rows::moved_apart;
use crate::{
    Buffers, Index, KeyDescription, KeyPart, Mode, Rows, Shape, ShapeChange, Source, TableError,
};
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::Duration;
use vellum_base::random::Random;
use vellum_base::{Gsn, SlotId, TableId, Timestamp};
use vellum_btree::{Journal, Tree, TreeContext, TreeKind, max_key};
use vellum_buffer::{Pool, PoolConfig, Space};
use vellum_io::{Directory, MemoryDirectory, OpenOptions};
use vellum_txn::{
    Clock, Config, Durability, Isolation, Manager, Options, Transaction, VersionStamp,
};
use vellum_version::collect::{Freezer, Reducer};
use vellum_version::delta::{RANGE_BYTES, are_apart};
use vellum_version::{Reverter, Scan, VersionStore, View};
use vellum_wal::{Log, LogConfig, LogStart};

const SLOTS: u16 = 4;

struct World {
    log: Arc<Log>,
    manager: Manager,
    store: VersionStore,
    carried: Tree,
}

impl World {
    fn new() -> Self {
        let directory = Arc::new(MemoryDirectory::new());
        let config = LogConfig {
            slots_max: SLOTS + 1,
            slot_buffer_bytes: 128 << 10,
            segment_bytes: 1 << 20,
            log_bytes_max: 16 << 20,
        };
        let clock = Arc::new(Clock::above(Timestamp::ZERO));
        let ticks = clock.clone();
        let now = Arc::new(move || ticks.now());
        let log = Arc::new(Log::create(directory.clone(), config, now, LogStart::first()).unwrap());
        let file = directory.open("data", OpenOptions::create()).unwrap();
        let config = PoolConfig::new(4096, 64 * 4096);
        let pool = Arc::new(Pool::create_file(file, log.clone(), &config).unwrap());
        let space = Arc::new(Space::load(pool.clone(), Gsn(1)).unwrap());
        let config = Config {
            slots_max: SLOTS,
            ..Config::default()
        };
        let manager = Manager::new(log.clone(), clock, config);
        let context = TreeContext::new(pool, space)
            .with_rows(Arc::new(Reducer))
            .with_cleaner(Arc::new(Freezer::new(manager.domain().clone())));
        let context = Arc::new(context);
        let journal = Some(Journal::forward(log.slot(SlotId(SLOTS))));
        let plain = || Tree::create(&context, journal, TreeKind::Plain, None).unwrap();
        let (pending, carried) = (plain(), plain());
        let store = VersionStore::new(context, SLOTS, pending);
        Self {
            log,
            manager,
            store,
            carried,
        }
    }

    fn tree(&self) -> Tree {
        let journal = Some(Journal::forward(self.log.slot(SlotId(SLOTS))));
        Tree::create(self.store.context(), journal, TreeKind::Rows, None).unwrap()
    }

    fn index(&self, id: u32, range: Range<u32>, unique: bool) -> Index {
        let part = KeyPart {
            source: Source::Value,
            start: range.start,
            end: Some(range.end),
        };
        Index {
            id: TableId(id),
            name: format!("i{id}").into(),
            tree: self.tree(),
            key: KeyDescription::new(vec![part], unique).unwrap(),
        }
    }

    fn table(&self, indexes: Vec<Index>) -> Shape {
        Shape::new(TableId(1), "t".into(), self.tree(), indexes, None)
    }

    fn begin(&self, isolation: Isolation) -> Transaction {
        let options = Options {
            isolation,
            durability: Durability::Async,
            ..Options::default()
        };
        self.manager.begin(options, Duration::MAX).unwrap()
    }

    fn on<R>(
        &self,
        transaction: &Transaction,
        shape: &Shape,
        work: impl FnOnce(&mut Rows<'_>) -> R,
    ) -> R {
        work(&mut Rows {
            store: &self.store,
            carried: &self.carried,
            transaction,
            operation: transaction.operation().unwrap(),
            shape,
            buffers: &mut Buffers::default(),
        })
    }

    fn entries(&self, transaction: &Transaction, tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut scan = Scan::new(4096, (Bound::Unbounded, Bound::Unbounded));
        let mut entries = Vec::new();
        let operation = transaction.operation().unwrap();
        let view = View::of_statement(&operation);
        while let Some(row) = scan.next(&self.store, &view, tree).unwrap() {
            entries.push((row.key.to_vec(), row.body.to_vec()));
        }
        entries
    }

    fn rollback(&self, transaction: Transaction) {
        let log = self.log.slot(transaction.slot());
        let mut reverter = Reverter::running(&self.store, log, &self.carried);
        transaction.rollback(&mut reverter).unwrap();
    }
}

#[test]
fn t4_a_put_that_a_unique_index_refuses_leaves_row_indexes_and_chains_as_they_were() {
    let world = World::new();
    let indexes = vec![world.index(2, 0..2, false), world.index(3, 2..4, true)];
    let shape = world.table(indexes);
    let tx = world.begin(Isolation::Snapshot);
    let put =
        |key: &[u8], value: &[u8], mode| world.on(&tx, &shape, |rows| rows.put(key, value, mode));
    put(b"a", b"xx11", Mode::Insert).unwrap();
    put(b"b", &[&b"yy22"[..], &[9; 6000]].concat(), Mode::Insert).unwrap();
    let state = || {
        let trees = [&shape.tree, &shape.indexes[0].tree, &shape.indexes[1].tree];
        trees.map(|tree| world.entries(&tx, tree))
    };
    let before = state();
    for (key, value) in [
        (b"a", b"zz22".to_vec()),
        (b"b", b"zz11".to_vec()),
        (b"c", [&b"zz11"[..], &[8; 7000]].concat()),
    ] {
        let refused = put(key, &value, Mode::Upsert);
        assert!(
            matches!(refused, Err(TableError::KeyExists { .. })),
            "{refused:?}"
        );
        assert_eq!(state(), before);
    }
    let refused = world.on(&tx, &shape, |rows| {
        rows.update(b"a", &[2..4], &mut |value| {
            value[2..4].copy_from_slice(b"22")
        })
    });
    assert!(
        matches!(refused, Err(TableError::KeyExists { .. })),
        "{refused:?}"
    );
    assert_eq!(state(), before);
    put(b"a", b"zz33", Mode::Replace).unwrap();
    assert_ne!(state(), before);
    world.rollback(tx);
}

#[test]
fn t5_entries_follow_their_rows_through_every_kind_of_change_and_back() {
    let world = World::new();
    let shape = world.table(vec![world.index(2, 0..2, false)]);
    let tx = world.begin(Isolation::Snapshot);
    let mut random = Random::new(7);
    let check = || {
        let rows = world.entries(&tx, &shape.tree);
        let mut expected: Vec<_> = rows
            .iter()
            .filter_map(|(key, _)| {
                let columns = world
                    .on(&tx, &shape, |rows| {
                        rows.get(key, |value| value.get(..2).map(<[u8]>::to_vec))
                    })
                    .unwrap()
                    .unwrap()?;
                Some(([columns, key.clone()].concat(), key.clone()))
            })
            .collect();
        expected.sort();
        assert_eq!(world.entries(&tx, &shape.indexes[0].tree), expected);
    };
    for round in 0..400 {
        let key = [b'k', random.below(20) as u8];
        let length = [0, 1, 2, 30, 5000][random.below(5) as usize];
        let mut value = vec![0; length];
        random.fill(&mut value);
        let savepoint = tx.savepoint();
        world.on(&tx, &shape, |rows| match random.below(3) {
            0 => drop(rows.delete(&key).unwrap()),
            1 => drop(rows.put(&key, &value, Mode::Upsert).unwrap()),
            _ => drop(rows.update(&key, &[0..1], &mut |value| value[0] = 77)),
        });
        if round % 7 == 0 {
            crate::revert_to(&world.store, &world.carried, &tx, &savepoint).unwrap();
        }
        if round % 10 == 0 {
            check();
        }
    }
    check();
    world.rollback(tx);
    let reader = world.begin(Isolation::Snapshot);
    assert_eq!(world.entries(&reader, &shape.tree), []);
    assert_eq!(world.entries(&reader, &shape.indexes[0].tree), []);
}

#[test]
fn t6_a_change_runs_again_on_what_another_commit_made_of_the_row_also_a_large_one() {
    let world = World::new();
    for length in [16, 9000] {
        let shape = world.table(Vec::new());
        let tx = world.begin(Isolation::Snapshot);
        world
            .on(&tx, &shape, |rows| {
                rows.put(b"k", &vec![0; length], Mode::Insert)
            })
            .unwrap();
        tx.commit_deferred().unwrap();
        let tx = world.begin(Isolation::ReadCommitted);
        let mut calls = 0;
        let found = world.on(&tx, &shape, |rows| {
            rows.update(b"k", &[0..1], &mut |value| {
                calls += 1;
                if calls == 1 {
                    // Meanwhile: another value, of another length.
                    let other = world.begin(Isolation::Snapshot);
                    world
                        .on(&other, &shape, |rows| {
                            rows.put(b"k", &vec![50; length + 1], Mode::Replace)
                        })
                        .unwrap();
                    other.commit_deferred().unwrap();
                }
                value[0] += 1;
            })
        });
        assert!(found.unwrap());
        assert_eq!(calls, 2);
        let value = world.on(&tx, &shape, |rows| rows.get(b"k", <[u8]>::to_vec));
        let value = value.unwrap().unwrap();
        assert_eq!(value.len(), length + 1);
        assert_eq!(value[..2], [51, 50]);
        tx.commit_deferred().unwrap();
    }
}

#[test]
fn entry_that_shares_its_row_with_a_long_primary_key_is_refused_before_it_is_too_long() {
    let world = World::new();
    let shape = world.table(vec![world.index(2, 0..600, false)]);
    let tx = world.begin(Isolation::Snapshot);
    let key = vec![1; max_key(4096) / 2];
    let put = world.on(&tx, &shape, |rows| rows.put(&key, &[2; 600], Mode::Insert));
    let Err(TableError::KeyTooLong { length, limit }) = put else {
        panic!("{put:?}");
    };
    assert!(length > limit && limit > 800, "{length} and {limit}");
    assert_eq!(world.entries(&tx, &shape.tree), []);
    world.rollback(tx);
}

fn version(stamp: u64, command: u32) -> VersionStamp {
    VersionStamp {
        slot: SlotId(1),
        stamp: Timestamp(stamp),
        command,
    }
}

#[test]
fn t3_a_void_change_is_seen_by_nobody_and_the_next_one_is_built_on_what_was_before() {
    let world = World::new();
    let base = world.table(Vec::new());
    let add = ShapeChange::AddIndex(world.index(2, 0..1, false));
    let first = Shape::append(&base, add, version(5, 0));
    assert!(!base.is_newest() && first.is_newest());
    first.make_void();
    assert!(base.is_newest(), "T2: writers go on");
    assert!(base.resolve(|_| true).unwrap().indexes.is_empty());
    let add = ShapeChange::AddIndex(world.index(3, 0..1, false));
    let second = Shape::append(&base, add, version(6, 0));
    let dropped = Shape::append(&second, ShapeChange::Drop, version(9, 2));
    let resolve = |up_to: u64| {
        base.resolve(|made_by| made_by.stamp.get() <= up_to)
            .unwrap()
    };
    assert!(resolve(5).indexes.is_empty());
    assert_eq!(resolve(6).indexes.len(), 1);
    assert_eq!(resolve(8).indexes[0].id, TableId(3));
    assert!(resolve(9).dropped && !resolve(8).dropped);
    // From a handle in the middle of the chain, too.
    assert!(second.resolve(|_| true).unwrap().dropped);
    assert!(second.resolve(|_| false).is_none());
    dropped.make_void();
    assert!(!second.resolve(|_| true).unwrap().dropped && second.is_newest());
}

#[test]
fn t8_a_settled_shape_is_judged_no_more_and_those_behind_it_are() {
    let world = World::new();
    let base = world.table(Vec::new());
    assert!(base.is_settled(), "older than every snapshot");
    let add = ShapeChange::AddIndex(world.index(2, 0..1, false));
    let first = Shape::append(&base, add, version(5, 0));
    assert!(!first.is_settled());
    assert_eq!(base.resolve(|_| false).unwrap().indexes.len(), 0);
    first.settle();
    assert_eq!(base.resolve(|_| false).unwrap().indexes.len(), 1);
    let dropped = Shape::append(&first, ShapeChange::Drop, version(9, 2));
    assert!(!base.resolve(|_| false).unwrap().dropped && !dropped.is_settled());
    assert!(
        base.resolve(|made_by| made_by.stamp.get() == 9)
            .unwrap()
            .dropped
    );
}

#[test]
fn t8_shapes_before_a_settled_one_are_judged_no_more_either() {
    let world = World::new();
    let base = world.table(Vec::new());
    let closed = Shape::append(&base, ShapeChange::Close, version(5, 0));
    let add = ShapeChange::AddIndex(world.index(2, 0..1, false));
    let newest = Shape::append(&base, add, version(5, 1));
    newest.settle();
    assert!(!closed.is_settled(), "nobody used it");
    let unasked = |_: &VersionStamp| -> bool { panic!("judged") };
    for from in [&base, &*closed, &*newest] {
        let found = from.resolve(unasked).expect("everybody sees it");
        assert!(std::ptr::eq(found, &*newest));
    }
    // What follows is judged, as ever.
    let dropped = Shape::append(&base, ShapeChange::Drop, version(9, 0));
    assert!(!base.resolve(|_| false).unwrap().dropped);
    assert!(base.resolve(|_| true).unwrap().dropped && !dropped.is_void());
}

#[test]
fn prop_ranges_that_are_moved_apart_cover_the_same_bytes_in_a_bounded_image() {
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let length = 1 + random.below(300) as usize;
        let ranges: Vec<_> = (0..random.below(40))
            .map(|_| {
                let start = random.below(length as u64 + 1) as usize;
                start..start + random.below((length - start) as u64 + 1) as usize
            })
            .collect();
        let moved = moved_apart(&ranges);
        assert!(are_apart(&moved), "{ranges:?} became {moved:?}");
        for range in &ranges {
            let covers =
                |other: &Range<usize>| other.start <= range.start && range.end <= other.end;
            assert!(
                range.is_empty() || moved.iter().any(covers),
                "{range:?} of {ranges:?}"
            );
        }
        assert!(moved.iter().all(|range| range.end <= length));
        assert!(vellum_version::delta::image_bytes(&moved) <= length + 2 * RANGE_BYTES);
    }
}
