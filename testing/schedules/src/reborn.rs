//! A table that is dropped and made again, on pages of the ones before, while snapshots of several ages scan it and what was deleted of it moves to
//! graveyards; and beside it rows that are written anew, whose old versions between two snapshots are swept.
//!
//! Invariants that are checked:
//! - C7 A snapshot sees one making of the table in one of its stages, the same from its begin to its end: by scans both ways, by keys, by the
//!   index, by count. It is no earlier one than what was committed before it began.
//! - C8 The rows that are written together are seen as one transaction wrote them.
//! - C9 Without snapshots nothing old is left: no deleted row in an index or a graveyard, no old version.
//!
//! What is not checked: README.

use super::options;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use vellum::{
    Class, Config, Database, KeyDescription, KeyPart, Result, Source, TableReport, Transaction,
};
use vellum_io::SimulatedDirectory;
use vellum_sync::thread;

const TABLE: &str = "reborn";
const INDEX: &str = "by stage and number";
/// Rows of a making: two leaves.
const ROWS: u32 = 8;
const ROW_BYTES: usize = 500;
/// Stages of a making: whole; every second row deleted; one of these is there again.
const STAGES: u32 = 3;
const HOT: &str = "hot";
/// Of these, and their before-images, a few fill a leaf.
const HOT_ROWS: u32 = 4;
const HOT_BYTES: usize = 800;

/// What happened in a schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    /// Makings whose table, or index, has the root of an earlier one.
    pub reused: u64,
    /// Looks at such a one by a snapshot that sees what others had deleted since, or dropped.
    pub old_looks: u64,
    /// Deleted rows that went to a graveyard.
    pub moved: u64,
    /// Transactions that were promoted.
    pub promotions: u64,
    /// Old versions that went although an older snapshot was open.
    pub swept: u64,
}

impl Happened {
    /// Adds what happened in another.
    pub fn add(&mut self, other: &Self) {
        self.reused += other.reused;
        self.old_looks += other.old_looks;
        self.moved += other.moved;
        self.promotions += other.promotions;
        self.swept += other.swept;
    }

    /// # Panics
    /// If something did not happen: schedules without it would say nothing about it.
    pub fn is_all(&self) {
        let Self {
            reused,
            old_looks,
            moved,
            promotions,
            swept,
        } = *self;
        let all = [reused, old_looks, moved, promotions, swept];
        assert!(all.iter().all(|count| *count > 0), "{self:?}");
    }
}

/// How far the table has come: makings and stages, counted together.
#[derive(Debug, Default)]
struct Reached {
    point: u32,
    /// Rounds of looks by held snapshots.
    rounds: u64,
    reused: HashSet<u32>,
    old_looks: u64,
}

struct Shared {
    database: Database,
    reached: Mutex<Reached>,
}

/// Few frames, and rows that do not turn fat: their before-images are what is swept.
fn config() -> Config {
    let mut config = super::config();
    config.versions.fat_updates = Some(250);
    config
}

/// The row with this number at a stage of a making; `None`: it is deleted.
fn row(making: u32, stage: u32, number: u32) -> Option<Vec<u8>> {
    let deleted = number % 2 == making % 2;
    let again = number / 2 == 1;
    let written = match stage {
        0 => 0,
        1 if deleted => return None,
        1 => 0,
        _ if deleted && again => 2,
        _ if deleted => return None,
        _ => 0,
    };
    let mut row = vec![making as u8; ROW_BYTES + written as usize];
    row[..4].copy_from_slice(&(written as u32).to_be_bytes());
    row[4..8].copy_from_slice(&number.to_be_bytes());
    row[8..12].copy_from_slice(&making.to_be_bytes());
    Some(row)
}

fn rows(point: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (making, stage) = (point / STAGES, point % STAGES);
    let all = (0..ROWS).filter_map(|number| {
        let row = row(making, stage, number)?;
        Some((number.to_be_bytes().to_vec(), row))
    });
    all.collect()
}

impl Shared {
    fn reached(&self) -> std::sync::MutexGuard<'_, Reached> {
        // Nothing that a schedule drives happens while it is held.
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a transaction until nobody is in its way.
    fn retry<R>(&self, mut work: impl FnMut(&Transaction) -> Result<R>) -> R {
        loop {
            let tx = self.database.begin_with(options(Class::Auto));
            let tx = tx.expect("a slot is free");
            match work(&tx).and_then(|done| tx.commit().map(|()| done)) {
                Ok(done) => return done,
                Err(error) if error.is_retryable() => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Makes the table; the one that was there is dropped.
    fn make(&self, making: u32) {
        self.retry(|tx| {
            if making > 0 {
                tx.drop_table(TABLE)?;
            }
            let table = tx.create_table(TABLE)?;
            let columns = KeyPart {
                source: Source::Value,
                start: 0,
                end: Some(8),
            };
            let key = KeyDescription::new(vec![columns], true).expect("a key of one part");
            tx.create_index(&table, INDEX, key)?;
            for (key, row) in rows(making * STAGES) {
                tx.insert(&table, &key, &row)?;
            }
            Ok(())
        });
        self.reached().point = making * STAGES;
    }

    /// Takes the table to the next stage.
    fn advance(&self, point: u32) {
        self.retry(|tx| {
            let table = tx.table(TABLE)?;
            let now: HashMap<_, _> = rows(point).into_iter().collect();
            let before: HashMap<_, _> = rows(point - 1).into_iter().collect();
            for number in 0..ROWS {
                let key = number.to_be_bytes();
                match (before.get(&key[..]), now.get(&key[..])) {
                    (Some(_), None) => assert!(tx.delete(&table, &key)?, "C7: {number}"),
                    (None, Some(row)) => tx.insert(&table, &key, row)?,
                    _ => {}
                }
            }
            Ok(())
        });
        self.reached().point = point;
    }

    /// Roots of the newest making: of its table and of its index.
    fn roots(&self) -> [u64; 2] {
        let report = self.database.verify().expect("it can be verified");
        assert!(report.is_sound(), "C4: {:?}", report.findings);
        let with_index = |table: &&TableReport| table.indexes.len() == 1;
        let table = report.tables.iter().find(with_index);
        let table = table.expect("the table with an index");
        [table.tree.root, table.indexes[0].tree.root]
    }

    /// The one that drops and makes.
    fn dropper(&self, makings: u32) {
        let mut known = HashSet::new();
        for making in 0..makings {
            if making > 0 {
                self.make(making);
            }
            let roots = self.roots();
            if roots.iter().any(|root| known.contains(root)) {
                self.reached().reused.insert(making);
            }
            known.extend(roots);
            for stage in 1..STAGES {
                // Somebody has looked at each stage, and holds a snapshot of it.
                let rounds = self.reached().rounds;
                while self.reached().rounds == rounds {
                    thread::yield_now();
                }
                self.advance(making * STAGES + stage);
                self.database.step().expect("background work");
            }
        }
    }

    /// The one that writes rows anew, all of them together.
    fn writer(&self, rounds: u32) {
        for round in 1..=rounds {
            let row = vec![round as u8; HOT_BYTES + (round % 2) as usize];
            self.retry(|tx| {
                let table = tx.table(HOT)?;
                let mut keys = 0..HOT_ROWS;
                keys.try_for_each(|number| tx.upsert(&table, &number.to_be_bytes(), &row).map(drop))
            });
        }
    }

    /// A snapshot, and the points between which it must lie.
    fn begin(&self, class: Class) -> Snapshot {
        let least = self.reached().point;
        let transaction = self.database.begin_with(options(class));
        Snapshot {
            transaction: transaction.expect("a slot is free"),
            least,
            sees: None,
        }
    }
}

/// A snapshot that is held, and what it saw.
struct Snapshot {
    transaction: Transaction,
    least: u32,
    sees: Option<(u32, Vec<u8>)>,
}

impl Snapshot {
    fn look(&mut self, shared: &Shared) {
        let found = self.table().expect("C7: it can be read");
        let hot = self.hot().expect("C8: it can be read");
        let (_, first) = found.first().expect("C7: some rows are always there");
        let making = first[8..12].first_chunk().expect("four bytes");
        let making = u32::from_be_bytes(*making);
        let stage = (0..STAGES).find(|stage| rows(making * STAGES + stage) == found);
        let stage = stage.unwrap_or_else(|| panic!("C7: no stage of making {making}: {found:?}"));
        let point = making * STAGES + stage;
        assert!(point >= self.least, "C7: {point} is before {}", self.least);
        let seen = self.sees.get_or_insert_with(|| (point, hot.clone()));
        assert_eq!(*seen, (point, hot), "C7, C8: one snapshot");
        let mut reached = shared.reached();
        if point < reached.point && reached.reused.contains(&making) {
            reached.old_looks += 1;
        }
    }

    /// The table's rows, by every path.
    fn table(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let tx = &self.transaction;
        let table = tx.table(TABLE)?;
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        let mut cursor = tx.cursor(&table, ..)?;
        while let Some((key, row)) = cursor.next()? {
            forward.push((key.to_vec(), row.to_vec()));
        }
        let mut cursor = tx.cursor(&table, ..)?;
        while let Some((key, row)) = cursor.prev()? {
            backward.push((key.to_vec(), row.to_vec()));
        }
        backward.reverse();
        assert_eq!(forward, backward, "C7: both ways");
        assert_eq!(tx.count(&table, ..)?, forward.len() as u64, "C7: count");
        for (key, row) in &forward {
            let by_key = tx.get(&table, key, <[u8]>::to_vec)?;
            assert_eq!(by_key.as_ref(), Some(row), "C7: by key");
        }
        let index = tx.index(&table, INDEX)?;
        let mut entries = Vec::new();
        let mut cursor = tx.index_cursor(&index, ..)?;
        while let Some((_, key)) = cursor.next()? {
            entries.push(key.to_vec());
        }
        let mut back = Vec::new();
        let mut cursor = tx.index_cursor(&index, ..)?;
        while let Some((_, key)) = cursor.prev()? {
            back.push(key.to_vec());
        }
        back.reverse();
        assert_eq!(entries, back, "C7: the index, both ways");
        entries.sort_unstable();
        let keys = forward.iter().map(|(key, _)| key.clone());
        assert!(entries.into_iter().eq(keys), "C7: the index");
        Ok(forward)
    }

    /// C8: what all of the rows are.
    fn hot(&self) -> Result<Vec<u8>> {
        let table = self.transaction.table(HOT)?;
        let mut all = Vec::new();
        let mut cursor = self.transaction.cursor(&table, ..)?;
        while let Some((_, row)) = cursor.next()? {
            all.push(row.to_vec());
        }
        assert_eq!(all.len(), HOT_ROWS as usize, "C8");
        assert!(all.iter().all(|row| *row == all[0]), "C8: {all:?}");
        Ok(all.swap_remove(0))
    }
}

/// One schedule's work, on a disk that is empty: so many makings of the table.
///
/// # Panics
/// If something does not hold.
pub fn run(disk: &SimulatedDirectory, makings: u32) -> Happened {
    let database = Database::open_directory(Arc::new(disk.clone()), config()).expect("it opens");
    let shared = Arc::new(Shared {
        database,
        reached: Mutex::default(),
    });
    let database = &shared.database;
    shared.retry(|tx| tx.create_table(HOT));
    shared.retry(|tx| {
        let table = tx.table(HOT)?;
        let mut keys = 0..HOT_ROWS;
        keys.try_for_each(|number| tx.insert(&table, &number.to_be_bytes(), &[0; HOT_BYTES]))
    });
    shared.make(0);
    let mut held = vec![shared.begin(Class::Olap), shared.begin(Class::Auto)];
    while database.step().expect("background work") {}
    let work: [Box<dyn FnOnce() + Send>; 3] = [
        Box::new({
            let shared = shared.clone();
            move || shared.dropper(makings)
        }),
        Box::new({
            let shared = shared.clone();
            move || shared.writer(3 * makings)
        }),
        Box::new({
            let shared = shared.clone();
            move || {
                for _ in 0..makings {
                    for _ in 0..8 {
                        shared.database.step().expect("background work");
                    }
                    shared.database.checkpoint().expect("a checkpoint");
                }
            }
        }),
    ];
    let threads = work.map(thread::spawn);
    // Who goes makes room: a dropped table is given back when nobody sees it any more.
    while shared.reached().point < makings * STAGES - 1 {
        for snapshot in &mut held {
            snapshot.look(&shared);
        }
        held.remove(0);
        let round = shared.reached().rounds;
        let class = if round.is_multiple_of(2) {
            Class::Olap
        } else {
            Class::Auto
        };
        held.push(shared.begin(class));
        shared.reached().rounds += 1;
    }
    for thread in threads {
        thread.join().expect("one that works");
    }
    while database.step().expect("background work") {}
    for snapshot in &mut held {
        snapshot.look(&shared);
    }
    drop(held);
    while database.step().expect("background work") {}
    let mut last = shared.begin(Class::Oltp);
    last.look(&shared);
    drop(last);
    while database.step().expect("background work") {}
    let seen = database.statistics();
    let left = (seen.rows_buried, seen.version_deltas, seen.version_copies);
    assert_eq!(left, (0, 0, 0), "C9");
    let report = database.verify().expect("it can be verified");
    for table in report.tables {
        let indexes = table.indexes.iter().map(|index| index.tree.tombstones);
        let deleted = table.tree.tombstones + indexes.sum::<u64>();
        assert_eq!(deleted, 0, "C9: table with root {}", table.tree.root);
    }
    let reached = shared.reached();
    assert_eq!(reached.point, makings * STAGES - 1, "the last stage");
    Happened {
        reused: reached.reused.len() as u64,
        old_looks: reached.old_looks,
        moved: seen.rows_moved,
        promotions: seen.promotions,
        swept: seen.deltas_swept,
    }
}
