//! What the log says is what was done: redo at every cut, from an empty file, from an old copy.

use crate::testing::{
    Records, TestRows, World, assert_sound, body, contents, pool_config, records, recovered, seed,
};
use crate::{Cleaner, Entry, Logging, Redo, RowRedo, Tree, TreeKind, Verdict, row_log_bytes};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::random::Random;
use vellum_base::{Gsn, PageId, SlotId};
use vellum_buffer::Pool;
use vellum_io::{Directory, MemoryDirectory, OpenOptions, SimulatedDirectory};

/// Shrinks every third row, removes tombstones (empty bodies with a mark).
#[derive(Debug)]
struct Sweeper;

impl Cleaner for Sweeper {
    fn judge(&self, _: PageId, payload: &[u8], shorter: &mut Vec<u8>) -> Verdict {
        match body(payload) {
            Some(b"dead") => Verdict::Remove,
            Some(body) if payload[0] == 1 && body.len() % 3 == 0 => {
                shorter.push(0);
                shorter.extend_from_slice(body);
                Verdict::Shrink
            }
            _ => Verdict::Keep,
        }
    }
}

/// Bodies by key, after each GSN that changed them.
#[derive(Default)]
struct History {
    changes: Vec<(Gsn, Vec<u8>, Option<Vec<u8>>)>,
}

impl History {
    fn at(&self, cut: Gsn) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut model = BTreeMap::new();
        for (gsn, key, body) in &self.changes {
            if *gsn <= cut {
                match body {
                    Some(body) => model.insert(key.clone(), body.clone()),
                    None => model.remove(key),
                };
            }
        }
        model
    }
}

fn stamped(body: &[u8]) -> Vec<u8> {
    [&[1], &[0xaa; 8][..], body].concat()
}

/// One random logged change of a row, as `version` makes them.
fn change(world: &World, tree: &Tree, random: &mut Random, history: &mut History) {
    let slot_id = random.below(3) as u16;
    let slot = world.log.slot(SlotId(slot_id));
    let mut key = random.below(700).to_be_bytes().to_vec();
    if random.chance(1, 3) {
        key.extend_from_slice(&[b'l'; 200]);
    }
    loop {
        slot.reserve(row_log_bytes(key.len(), 900)).unwrap();
        let mut leaf = tree.write(&key).unwrap();
        let logged = if !leaf.found() || random.chance(1, 3) {
            let length = if random.chance(1, 10) {
                700
            } else {
                random.below(60)
            };
            let mut new = vec![0; length as usize];
            random.fill(&mut new);
            if random.chance(1, 6) {
                new = b"dead".to_vec();
            }
            let payload = stamped(&new);
            if !leaf.fits(payload.len()) {
                drop(leaf);
                tree.make_room(&key, payload.len(), world.journal(slot_id))
                    .unwrap();
                continue;
            }
            let row: [&[u8]; 2] = [&[0], &new];
            let logging = Logging::Record {
                slot,
                flags: 0,
                redo: RowRedo::Row(&row),
                undo: &[],
            };
            history
                .changes
                .push((Gsn::ZERO, key.clone(), Some(new.clone())));
            if leaf.found() {
                leaf.replace(&[&payload], logging)
            } else {
                leaf.insert(&[&payload], logging)
            }
        } else if random.chance(1, 2) {
            let logging = Logging::Record {
                slot,
                flags: 0,
                redo: RowRedo::Remove,
                undo: &[b"undo"],
            };
            history.changes.push((Gsn::ZERO, key.clone(), None));
            let logged = leaf.remove(logging);
            let underfull = leaf.is_underfull();
            drop(leaf);
            history.changes.last_mut().expect("pushed").0 = logged.gsn;
            if underfull {
                tree.rebalance(&key, world.journal(slot_id)).unwrap();
            }
            return;
        } else {
            let mut old = Vec::new();
            leaf.copy_payload(&mut old);
            let start = if old[0] == 0 { 1 } else { 9 };
            let mut new = old[start..].to_vec();
            let mut edits: Vec<(usize, &[u8])> = Vec::new();
            let mut redo: Vec<(u16, &[u8])> = Vec::new();
            if new.len() >= 4 {
                let at = random.below(new.len() as u64 - 3) as usize;
                new[at..at + 3].copy_from_slice(b"abc");
                edits.push((start + at, b"abc"));
                redo.push((1 + at as u16, b"abc"));
            }
            if start == 9 {
                // The stamp changes in the page and is not logged.
                edits.push((1, b"\x55"));
            }
            let logging = Logging::Record {
                slot,
                flags: 0,
                redo: RowRedo::Patch(&redo),
                undo: &[],
            };
            history
                .changes
                .push((Gsn::ZERO, key.clone(), Some(new.clone())));
            leaf.patch(&edits, logging)
        };
        history.changes.last_mut().expect("pushed").0 = logged.gsn;
        return;
    }
}

fn bodies(tree: &Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    contents(tree)
        .into_iter()
        .map(|(key, payload)| (key, body(&payload).expect("a row").to_vec()))
        .collect()
}

/// Cleaners remove dead rows whenever they like: both sides without them.
fn alive(mut rows: BTreeMap<Vec<u8>, Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    rows.retain(|_, body| body != b"dead");
    rows
}

fn copy_of(world: &World) -> MemoryDirectory {
    let copy = MemoryDirectory::new();
    let from = world
        .directory
        .open("data", OpenOptions::existing())
        .unwrap();
    let mut bytes = vec![0; from.len().unwrap() as usize];
    from.read_at(&mut bytes, 0).unwrap();
    copy.open("data", OpenOptions::create())
        .unwrap()
        .write_at(&bytes, 0)
        .unwrap();
    copy
}

#[test]
fn crash_prop_redo_at_every_cut_gives_the_rows_of_that_cut() {
    let seed = seed("crash_prop_redo_at_every_cut_gives_the_rows_of_that_cut");
    for round in 0..4 {
        let page_size = [4096, 4096, 8192, 16384][round];
        let mut random = Random::new(seed + round as u64);
        let world = World::make(page_size, 16, false, |context| {
            context.with_cleaner(Arc::new(Sweeper))
        });
        let tree = world.tree(TreeKind::Rows);
        world.log.flush_round().unwrap();
        let born = world.log.durable_gsn();
        let mut history = History::default();
        // What a crash finds: everything before the checkpoint, some of what came after.
        let mut copies: Vec<(Gsn, (Gsn, MemoryDirectory))> = Vec::new();
        let mut from = Gsn::ZERO;
        for step in 0..2500 {
            change(&world, &tree, &mut random, &mut history);
            if step % 600 == 300 {
                world.log.flush_round().unwrap();
                from = world.log.durable_gsn();
                let mut scan = world.pool.checkpoint_begin();
                while !world.pool.checkpoint_step(&mut scan, 100).unwrap() {}
            }
            if step % 600 == 599 {
                copies.push((world.log.durable_gsn(), (from, copy_of(&world))));
            }
        }
        world.log.flush_round().unwrap();
        let records = records(&world.directory);
        let last = records
            .iter()
            .map(|(header, _)| header.gsn)
            .max()
            .expect("records");
        assert_eq!(
            alive(bodies(&tree)),
            alive(history.at(last)),
            "the run itself is right"
        );
        let cuts: Vec<Gsn> = (0..12)
            .map(|_| Gsn(random.between(born.get(), last.get())))
            .chain([born, last])
            .collect();
        for (number, cut) in cuts.into_iter().enumerate() {
            // A file may hold only what was durable when it was copied.
            let usable: Vec<_> = copies.iter().filter(|(gsn, _)| *gsn <= cut).collect();
            let file = if number % 3 == 0 {
                None
            } else {
                usable.last().map(|(_, file)| file)
            };
            let found = recovered(page_size, 16, file, &records, cut);
            let tree = Tree::open(&found.context, tree.root(), TreeKind::Rows);
            let statistics = assert_sound(&tree);
            assert_eq!(alive(bodies(&tree)), alive(history.at(cut)), "cut at {cut}");
            assert_eq!(
                found.pages_in_use(),
                statistics.pages_total(),
                "nothing leaks at {cut}"
            );
            assert!(
                contents(&tree)
                    .iter()
                    .all(|(_, row)| file.is_some() || row[0] == 0)
            );
        }
    }
}

#[test]
fn crash_redo_twice_is_redo_once() {
    let world = World::make(4096, 32, false, |context| context);
    let tree = world.tree(TreeKind::Rows);
    let mut random = Random::new(3);
    let mut history = History::default();
    for _ in 0..1500 {
        change(&world, &tree, &mut random, &mut history);
    }
    world.log.flush_round().unwrap();
    let records = records(&world.directory);
    let found = recovered(4096, 16, None, &records, Gsn::MAX);
    let redo = Redo::new(found.pool.clone(), Some(Arc::new(TestRows)));
    for (header, bytes) in &records {
        redo.apply(header, bytes).unwrap();
    }
    redo.finish().unwrap();
    let tree = Tree::open(&found.context, tree.root(), TreeKind::Rows);
    assert_sound(&tree);
    assert_eq!(bodies(&tree), history.at(Gsn::MAX));
}

/// Every structure change is a unit: at any cut the trees are sound and every allocated page belongs
/// to a tree or chain that is reachable or listed.
#[test]
fn crash_any_cut_of_bulk_ranges_chains_and_drops_leaks_nothing() {
    let world = World::make(4096, 64, false, |context| context);
    let journal = world.journal(1);
    let pending = world.tree(TreeKind::Plain);
    let queue = world.tree(TreeKind::Plain);
    world.log.flush_round().unwrap();
    let born = world.log.durable_gsn();
    // The log is all that there is.
    let images = world.context.require_images();
    let load = journal.unwrap();
    let mut loader = queue.bulk_loader(100);
    for number in 0..4000_u64 {
        loader
            .push(&number.to_be_bytes(), &[&[1; 50]], load)
            .unwrap();
    }
    loader.finish(load).unwrap();
    drop(images);
    let loaded = world.log.slot(SlotId(1)).slot_gsn();
    while !queue
        .remove_below(&2500_u64.to_be_bytes(), 7, journal)
        .unwrap()
    {}
    while !queue
        .remove_from(&3500_u64.to_be_bytes(), 7, journal)
        .unwrap()
    {}
    let entry = Entry {
        tree: &pending,
        payload: b"chain",
    };
    let mut writer = crate::overflow::Writer::new(&world.context, journal, Some(entry));
    writer.write(&[7; 60_000]).unwrap();
    let chain = writer.finish().unwrap();
    let entry = Entry {
        tree: &pending,
        payload: b"tree",
    };
    let dropped = Tree::create(&world.context, journal, TreeKind::Plain, Some(entry)).unwrap();
    for number in 0..2000_u64 {
        dropped
            .put(&number.to_be_bytes(), &[3; 30], journal)
            .unwrap();
    }
    while !crate::overflow::free(&world.context, chain.root, 4, journal, Some(&pending)).unwrap() {}
    while !dropped.drop_pages(5, journal, Some(&pending)).unwrap() {}
    world.log.flush_round().unwrap();
    let records = records(&world.directory);
    let mut cuts: Vec<Gsn> = records
        .iter()
        .map(|(header, _)| header.gsn)
        .filter(|gsn| *gsn >= born)
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    // Rows of the tree that is dropped are many and alike.
    let every = cuts.len() / 60;
    let last = *cuts.last().expect("cuts");
    let rows = check_cut(&records, last, pending.root(), queue.root());
    assert_eq!((rows.first(), rows.len()), (Some(&2500), 1000));
    // Trimmed leaves are joined soon, by image: only the cuts in between see what a trim did.
    let trims = records
        .iter()
        .filter(|(header, _)| header.kind == crate::record::TRIM);
    let trims: Vec<Gsn> = trims.map(|(header, _)| header.gsn).collect();
    assert!(trims.len() >= 2);
    for cut in cuts.into_iter().step_by(every).chain(trims) {
        let rows = check_cut(&records, cut, pending.root(), queue.root());
        let stay = rows.first() <= Some(&2500) && rows.last() >= Some(&3499);
        assert!(
            cut < loaded || stay,
            "cut at {cut}: rows outside the ranges stay"
        );
    }
}

/// Returns the keys of the queue.
fn check_cut(records: &Records, cut: Gsn, pending: PageId, queue: PageId) -> Vec<u64> {
    let world = recovered(4096, 64, None, records, cut);
    let pending = Tree::open(&world.context, pending, TreeKind::Plain);
    let queue = Tree::open(&world.context, queue, TreeKind::Plain);
    let mut pages = assert_sound(&pending).pages_total() + assert_sound(&queue).pages_total();
    let rows: Vec<u64> = contents(&queue)
        .iter()
        .map(|(key, _)| u64::from_be_bytes(key.as_slice().try_into().unwrap()))
        .collect();
    assert!(
        rows.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "cut at {cut}: only edges go"
    );
    let journal = world.journal(3);
    let listed = contents(&pending);
    for (key, what) in &listed {
        let root = PageId(u64::from_be_bytes(key.as_slice().try_into().unwrap()));
        let before = world.pages_in_use();
        if what == b"tree" {
            let tree = Tree::open(&world.context, root, TreeKind::Plain);
            let own = assert_sound(&tree).pages_total();
            while !tree.drop_pages(50, journal, Some(&pending)).unwrap() {}
            assert_eq!(world.pages_in_use(), before - own);
        } else {
            let context = &world.context;
            while !crate::overflow::free(context, root, 50, journal, Some(&pending)).unwrap() {}
        }
    }
    assert!(contents(&pending).is_empty());
    let now = assert_sound(&pending).pages_total() + assert_sound(&queue).pages_total();
    pages = pages.min(now);
    assert_eq!(world.pages_in_use(), pages, "cut at {cut}: nothing leaks");
    rows
}

#[test]
fn damaged_records_are_errors() {
    let world = World::make(4096, 32, false, |context| context);
    let tree = world.tree(TreeKind::Rows);
    let mut random = Random::new(8);
    let mut history = History::default();
    for _ in 0..400 {
        change(&world, &tree, &mut random, &mut history);
    }
    world.log.flush_round().unwrap();
    let records = records(&world.directory);
    let mut refused = 0;
    for _ in 0..300 {
        let found = recovered(4096, 16, None, &Records::new(), Gsn::MAX);
        let redo = Redo::new(found.pool.clone(), Some(Arc::new(TestRows)));
        let mut failed = false;
        for (header, bytes) in &records {
            let mut bytes = bytes.clone();
            if random.chance(1, 20) && !bytes.is_empty() {
                let at = random.below(bytes.len().min(60) as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            if redo.apply(header, &bytes).is_err() {
                failed = true;
                break;
            }
        }
        refused += u32::from(failed || redo.finish().is_err());
    }
    assert!(refused > 100, "{refused} of 300 damaged logs were refused");
}

#[test]
fn regress_records_that_name_no_page_of_theirs_or_a_separator_longer_than_keys_are_errors() {
    let world = World::make(4096, 32, false, |context| context);
    let tree = world.tree(TreeKind::Plain);
    for number in 0..20_u64 {
        tree.put(&number.to_be_bytes(), &[7; 40], world.journal(0))
            .unwrap();
    }
    world.log.flush_round().unwrap();
    let records = records(&world.directory);
    let last = records.iter().map(|(header, _)| header.gsn).max().unwrap();
    let of_kind = |kind: u8| records.iter().find(|(header, _)| header.kind == kind);
    let (bitmap, bits) = of_kind(crate::record::BITMAP).unwrap();
    let (image, content) = of_kind(crate::record::IMAGE).unwrap();
    let (insert, row) = of_kind(crate::record::INSERT).unwrap();
    let long = [10_u64.to_be_bytes().to_vec(), vec![1; 4090]].concat();
    let leaf = insert.page;
    let forged: [(u8, PageId, &[u8]); 7] = [
        (insert.kind, PageId(0), row),
        (bitmap.kind, PageId(0), bits),
        (image.kind, PageId(0), content),
        (bitmap.kind, leaf, bits),
        (image.kind, bitmap.page, content),
        (crate::record::KEEP_BELOW, leaf, &long),
        (crate::record::KEEP_FROM, leaf, &long),
    ];
    for (kind, page, redo_bytes) in forged {
        let found = recovered(4096, 16, None, &records, Gsn::MAX);
        let redo = Redo::new(found.pool.clone(), None);
        let header = vellum_wal::RecordHeader {
            kind,
            page,
            gsn: Gsn(last.get() + 1),
            ..*insert
        };
        let applied = redo.apply(&header, redo_bytes);
        assert!(
            matches!(applied, Err(vellum_base::StorageError::Corruption { .. })),
            "kind {kind} on page {page}: {applied:?}"
        );
        redo.finish().unwrap();
    }
}

#[test]
fn regress_redo_on_a_full_disk_does_without_pages_that_are_free_in_the_end() {
    for dropped in [true, false] {
        let world = World::make(4096, 32, false, |context| context);
        let tree = world.tree(TreeKind::Plain);
        for number in 0..500_u64 {
            tree.put(&number.to_be_bytes(), &[7; 40], world.journal(0))
                .unwrap();
        }
        while dropped && !tree.drop_pages(10, world.journal(0), None).unwrap() {}
        world.log.flush_round().unwrap();
        // A file that ends before the tree's pages: it was cut when they were free. Somebody else has what it gave back.
        let disk = SimulatedDirectory::new();
        let file = disk.open("data", OpenOptions::create()).unwrap();
        let pool = Pool::create_file(file, world.log.clone(), &pool_config(4096, 32)).unwrap();
        disk.set_space_limit(Some(disk.used_space()));
        let redo = Redo::new(Arc::new(pool), None);
        for (header, bytes) in records(&world.directory) {
            redo.apply(&header, &bytes).unwrap();
        }
        let end = redo.finish();
        let full = matches!(end, Err(vellum_base::StorageError::OutOfSpace { .. }));
        assert!(if dropped { end.is_ok() } else { full }, "{end:?}");
    }
}
