//! Measures the tree alone, in memory: `cargo run --release -p vellum-btree --example measure [rows]`.
//!
//! Prints nanoseconds a lookup, insert, update, append, and rows a second of scans and bulk loads,
//! for rows of 8-byte keys and 100-byte payloads.
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]

use std::sync::Arc;
use vellum_base::clock::monotonic_nanos;
use vellum_base::random::Random;
use vellum_base::{Gsn, SlotId, Timestamp};
use vellum_btree::{
    Journal, LeafCopy, Logging, RowRedo, Seek, Tree, TreeContext, TreeKind, row_log_bytes,
};
use vellum_buffer::{Pool, PoolConfig, Space};
use vellum_io::{Directory, MemoryDirectory, OpenOptions};
use vellum_wal::{Log, LogConfig, LogSpace, LogStart};

/// Recycles the log at once: there is no checkpoint here.
struct Forget(std::sync::Weak<Log>);

impl LogSpace for Forget {
    fn make_space(&self) -> vellum_base::Result<bool> {
        let Some(log) = self.0.upgrade() else {
            return Ok(false);
        };
        log.flush_round()?;
        Ok(log.release_before(log.position())? > 0)
    }
}

/// Runs `body` several times and reports the best: other work on the machine only makes it slower.
fn best(what: &str, operations: u64, mut body: impl FnMut()) {
    let nanos = (0..5)
        .map(|_| {
            let start = monotonic_nanos();
            body();
            monotonic_nanos() - start
        })
        .min()
        .unwrap();
    let each = nanos as f64 / operations as f64;
    println!("{what:32} {each:9.1} ns   {:8.2} M/s", 1000.0 / each);
}

fn report(what: &str, operations: u64, start: u64) {
    let nanos = monotonic_nanos() - start;
    let each = nanos as f64 / operations as f64;
    println!("{what:32} {each:9.1} ns   {:8.2} M/s", 1000.0 / each);
}

fn scan(tree: &Tree, page_size: usize) -> (u64, u64) {
    let mut leaf = LeafCopy::new(page_size);
    let (mut rows, mut sum) = (0, 0_u64);
    let mut fence: Vec<u8> = Vec::new();
    tree.read_leaf(Seek::First, &mut leaf).unwrap();
    loop {
        for index in leaf.position()..leaf.len() {
            let payload = leaf.payload(index);
            sum = sum.wrapping_add(u64::from(payload[0]));
            rows += 1;
        }
        match leaf.upper_fence() {
            Some(upper) => {
                fence.clear();
                fence.extend_from_slice(upper);
            }
            None => return (rows, sum),
        }
        tree.read_leaf(Seek::AtOrAfter(&fence), &mut leaf).unwrap();
    }
}

fn main() {
    let rows: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_000_000);
    let page_size = 8192;
    let directory = Arc::new(MemoryDirectory::new());
    let config = LogConfig {
        slots_max: 4,
        log_bytes_max: 128 << 20,
        ..LogConfig::default()
    };
    let clock = Arc::new(|| Timestamp(1));
    let log = Arc::new(Log::create(directory.clone(), config, clock, LogStart::first()).unwrap());
    log.set_log_space(Arc::new(Forget(Arc::downgrade(&log))));
    let file = directory.open("data", OpenOptions::create()).unwrap();
    let pool = Pool::create_file(file, log.clone(), &PoolConfig::new(page_size, 1 << 30)).unwrap();
    let pool = Arc::new(pool);
    let space = Arc::new(Space::load(pool.clone(), Gsn(1)).unwrap());
    let context = Arc::new(TreeContext::new(pool, space));
    let slot = log.slot(SlotId(0));
    let journal = Some(Journal::forward(slot));
    let mut random = Random::new(1);
    let payload = [7_u8; 100];

    let tree = Tree::create(&context, journal, TreeKind::Plain, None).unwrap();
    let start = monotonic_nanos();
    let load = Journal::forward(slot);
    let mut loader = tree.bulk_loader(100);
    for number in 0..rows {
        loader
            .push(&(number * 2).to_be_bytes(), &[&payload], load)
            .unwrap();
    }
    loader.finish(load).unwrap();
    report("bulk load", rows, start);

    let mut out = Vec::new();
    let count = 2_000_000;
    best("get, uniform", count / 4, || {
        for _ in 0..count / 4 {
            let key = (random.below(rows) * 2).to_be_bytes();
            assert!(tree.get(&key, &mut out).unwrap());
        }
    });
    best("get, of 1000 rows", count / 4, || {
        for number in 0..count / 4 {
            let key = (number % 1000 * 2).to_be_bytes();
            assert!(tree.get(&key, &mut out).unwrap());
        }
    });
    best("scan", rows, || assert_eq!(scan(&tree, page_size).0, rows));

    let update = |key: &[u8]| {
        let row: [&[u8]; 1] = [&payload[..16]];
        slot.reserve(row_log_bytes(key.len(), 40)).unwrap();
        let mut leaf = tree.write(key).unwrap();
        let edits = [(0_u16, row[0])];
        let logging = Logging::Record {
            slot,
            flags: 0,
            redo: RowRedo::Patch(&edits),
            undo: &[],
        };
        leaf.patch(&[(0, row[0])], logging);
    };
    best("patch 16 bytes, uniform, logged", count / 4, || {
        for _ in 0..count / 4 {
            update(&(random.below(rows) * 2).to_be_bytes());
        }
    });

    let start = monotonic_nanos();
    let inserts = rows / 4;
    for _ in 0..inserts {
        tree.put(
            &(random.below(rows * 2) | 1).to_be_bytes(),
            &payload,
            journal,
        )
        .unwrap();
    }
    report("insert, uniform, logged", inserts, start);

    // The first time, the pool's memory is touched for the first time.
    for what in [
        "append of 40 bytes, new pages",
        "append of 40 bytes, used pages",
    ] {
        let temporary = Tree::create(&context, None, TreeKind::Temporary, None).unwrap();
        let mut appender = temporary.appender();
        let start = monotonic_nanos();
        for number in 0..count {
            let mut key = [0; 12];
            key[..8].copy_from_slice(&number.to_be_bytes());
            appender
                .append(&key, &[&payload[..28]], Logging::None, None)
                .unwrap();
        }
        report(what, count, start);
        let start = monotonic_nanos();
        while !temporary.drop_pages(64, None, None).unwrap() {}
        report("remove all, a row", count, start);
    }
}
