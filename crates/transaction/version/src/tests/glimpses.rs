//! Scans that begin with a glimpse of their leaf: whatever happens to it between two steps, they go on where they stand.

use super::world::{World, seed, view};
use crate::{KeyRange, Scan};
use std::ops::Bound;
use vellum_base::random::Random;
use vellum_btree::Tree;
use vellum_sync::test_point::TestPoints;
use vellum_txn::Transaction;

const PAGE: usize = 4096;
const KEYS: u64 = 300;

fn key(number: u64) -> Vec<u8> {
    vec![(number / 16) as u8, (number % 16) as u8]
}

/// What a snapshot saw, in key order.
type Seen = Vec<(Vec<u8>, Vec<u8>)>;

/// A scan, and where it stands among the rows of its range: the next one forward is `at`, backward `at - 1`; or on row `at` itself.
struct Walk {
    scan: Scan,
    rows: Seen,
    stands: Stands,
}

#[derive(Clone, Copy, Debug)]
enum Stands {
    Fresh,
    /// Between two rows: that many are below.
    Between(usize),
    On(usize),
}

impl Walk {
    fn new(seen: &Seen, range: KeyRange) -> Self {
        let inside = |key: &Vec<u8>| {
            let above = match &range.0 {
                Bound::Included(start) => key >= start,
                Bound::Excluded(start) => key > start,
                Bound::Unbounded => true,
            };
            above
                && match &range.1 {
                    Bound::Included(end) => key <= end,
                    Bound::Excluded(end) => key < end,
                    Bound::Unbounded => true,
                }
        };
        let rows = seen.iter().filter(|(key, _)| inside(key)).cloned();
        Self {
            rows: rows.collect(),
            scan: Scan::new(PAGE, range),
            stands: Stands::Fresh,
        }
    }

    /// The row that a step finds, if it is one that must find a row.
    fn wanted(&self, forward: bool) -> Option<usize> {
        let (above, below) = match self.stands {
            Stands::Fresh => (0, self.rows.len()),
            Stands::Between(below) => (below, below),
            Stands::On(at) => (at + 1, at),
        };
        if forward {
            (above < self.rows.len()).then_some(above)
        } else {
            below.checked_sub(1)
        }
    }

    fn step(&mut self, world: &World, tx: &Transaction, tree: &Tree, random: &mut Random) {
        let forward = random.below(10) < 6;
        let at_hand = random.below(4);
        let wanted = self.wanted(forward);
        let _operation = tx.operation().unwrap();
        let view = view(tx);
        let (store, scan) = (&world.store, &mut self.scan);
        let found = match (at_hand, forward) {
            // Without an operation: nothing says so but the copy.
            (0, _) => scan.step_at_hand(&view, forward).then(|| scan.current()),
            (1, true) => scan.next_at_hand(store, &view, tree).unwrap(),
            (1, false) => scan.prev_at_hand(store, &view, tree).unwrap(),
            (_, true) => scan.next(store, &view, tree).unwrap(),
            (_, false) => scan.prev(store, &view, tree).unwrap(),
        };
        let found = found.map(|row| (row.key.to_vec(), row.body.to_vec()));
        match found {
            Some(found) => {
                let wanted = wanted.expect("the range has no further row that way");
                assert_eq!(found, self.rows[wanted]);
                self.stands = Stands::On(wanted);
            }
            None if at_hand < 2 => {}
            None => {
                assert_eq!(wanted, None);
                self.stands = Stands::Between(if forward { self.rows.len() } else { 0 });
            }
        }
    }
}

fn bound(random: &mut Random) -> Bound<Vec<u8>> {
    let key = key(random.below(KEYS));
    match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn seen(world: &World, tx: &Transaction, tree: &Tree) -> Seen {
    let read = |number| Some((key(number), world.get(tx, tree, &key(number))?));
    (0..KEYS).filter_map(read).collect()
}

#[test]
fn prop_scans_go_on_where_they_stand_whatever_is_written_between_two_steps() {
    let seed = seed("prop_scans_go_on_where_they_stand_whatever_is_written");
    let mut random = Random::new(seed);
    for round in 0..12 {
        let world = World::new(PAGE, 256);
        let tree = world.table();
        let mut walks: Vec<(Transaction, Vec<Walk>)> = Vec::new();
        for _ in 0..400 {
            match random.below(10) {
                0..5 => {
                    let tx = world.begin();
                    for _ in 0..=random.below(6) {
                        let key = key(random.below(KEYS));
                        let body = vec![random.below(250) as u8; random.below(90) as usize];
                        if random.below(3) == 0 {
                            world.delete(&tx, &tree, &key).unwrap();
                        } else {
                            world.put(&tx, &tree, &key, &body).unwrap();
                        }
                    }
                    if random.below(5) == 0 {
                        world.rollback(tx);
                    } else {
                        world.commit(tx);
                    }
                }
                5 => {
                    world.collect();
                }
                6 if walks.len() < 4 => {
                    let tx = world.begin();
                    let rows = seen(&world, &tx, &tree);
                    let walk = |_| Walk::new(&rows, (bound(&mut random), bound(&mut random)));
                    let of_snapshot = (0..4).map(walk).collect();
                    walks.push((tx, of_snapshot));
                }
                7 if !walks.is_empty() && round % 3 > 0 => {
                    let (tx, _) = walks.swap_remove(random.below(walks.len() as u64) as usize);
                    world.rollback(tx);
                }
                _ => {
                    for (tx, walks) in &mut walks {
                        for walk in walks {
                            walk.step(&world, tx, &tree, &mut random);
                        }
                    }
                }
            }
        }
        walks.into_iter().for_each(|(tx, _)| world.rollback(tx));
    }
}

/// The leaf changes between two records of one step: what was looked at before is of no use any more, and the step begins again.
#[test]
fn leaf_that_changes_within_a_step_is_read_again() {
    for forward in [true, false] {
        let world = std::sync::Arc::new(World::new(PAGE, 64));
        let tree = world.table();
        let tx = world.begin();
        for number in 0..20 {
            world.put(&tx, &tree, &key(number), b"old").unwrap();
        }
        world.commit(tx);
        // Nobody is older: tombstones that a commit leaves are stepped over, here and there.
        let holder = world.begin();
        let tx = world.begin();
        for number in [0, 1, 2, 17, 18, 19] {
            world.delete(&tx, &tree, &key(number)).unwrap();
        }
        world.commit(tx);
        let reader = world.begin();
        let points = TestPoints::new();
        let changed = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        {
            let (world, tree, changed) = (world.clone(), tree.clone(), changed.clone());
            points.on("scan: between two records of a glimpse", move || {
                if changed.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2 {
                    let tx = world.begin();
                    for number in [3, 16] {
                        world.put(&tx, &tree, &key(number), b"new").unwrap();
                    }
                    world.put(&tx, &tree, &[0, 1, 1], b"new").unwrap();
                    world.put(&tx, &tree, &[1, 2, 1], b"new").unwrap();
                    world.commit(tx);
                }
            });
        }
        let _entered = points.enter();
        let mut scan = Scan::new(PAGE, (Bound::Unbounded, Bound::Unbounded));
        let _operation = reader.operation().unwrap();
        let view = view(&reader);
        let row = if forward {
            scan.next(&world.store, &view, &tree)
        } else {
            scan.prev(&world.store, &view, &tree)
        };
        let row = row
            .unwrap()
            .map(|row| (row.key.to_vec(), row.body.to_vec()));
        let wanted = key(if forward { 3 } else { 16 });
        assert_eq!(row, Some((wanted, b"old".to_vec())));
        assert!(changed.load(std::sync::atomic::Ordering::Relaxed) >= 3);
        drop(_operation);
        drop(holder);
    }
}

/// Symptom: a scan of rows 25, 26 and 27 returned 25 and 27. Cause: the rest of a glimpse was copied while a writer moved the rows of the leaf; the
/// copy was found out, but the record that the scan stood on had been written over, and the scan went on behind the key that was
/// there now. Guard: a scan goes on behind the key that it returned, and a copy that was found out is void.
#[test]
fn regress_scan_beside_a_writer_skips_no_row_when_its_glimpse_cannot_be_completed() {
    let world = World::new(PAGE, 64);
    let tree = world.table();
    let tx = world.begin();
    for number in 0..30 {
        world.put(&tx, &tree, &key(number), &[0; 40]).unwrap();
    }
    world.commit(tx);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..30_000_usize {
                let tx = world.begin();
                // Rows of changing length: the leaf is compacted again and again.
                let body = vec![round as u8; 20 + round * 7 % 60];
                world
                    .put(&tx, &tree, &key(round as u64 * 11 % 30), &body)
                    .unwrap();
                world.commit(tx);
                if round % 64 == 0 {
                    world.collect();
                }
            }
            is_over.store(true, relaxed);
        });
        let mut from = 0;
        while !is_over.load(relaxed) {
            from = (from + 1) % 27;
            let tx = world.begin();
            let _operation = tx.operation().unwrap();
            let view = view(&tx);
            let start = Bound::Included(key(from));
            let mut scan = Scan::new(PAGE, (start, Bound::Unbounded));
            for number in from..from + 3 {
                let row = scan.next(&world.store, &view, &tree).unwrap();
                assert_eq!(row.map(|row| row.key.to_vec()), Some(key(number)));
            }
            drop(_operation);
            world.rollback(tx);
        }
        writer.join().unwrap();
    });
}
