//! What the tests of this crate share: a database of pool, space and log in memory.

use crate::{Journal, LeafCopy, Redo, RowFormat, Seek, Tree, TreeContext, TreeKind};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use vellum_base::{Gsn, SlotId, Timestamp};
use vellum_buffer::{Pool, PoolConfig, Space};
use vellum_io::{Directory, MemoryDirectory, OpenOptions};
use vellum_wal::{
    Log, LogConfig, LogPosition, LogReader, LogSpace, LogStart, RedoWindows, Verdict,
};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The seed of a random test, from `VELLUM_SEED` or fresh, printed with the way to replay it.
pub(crate) fn seed(test: &str) -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with: VELLUM_SEED={seed} cargo test -p vellum-btree {test}");
    seed
}

/// Rows of tests: a byte 1 and a stamp of 8 bytes, or a byte 0; then the body.
#[derive(Debug)]
pub(crate) struct TestRows;

impl RowFormat for TestRows {
    fn reduce(&self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(body) = body(payload) else {
            return false;
        };
        out.push(0);
        out.extend_from_slice(body);
        true
    }
}

/// The body of a row of [`TestRows`].
pub(crate) fn body(payload: &[u8]) -> Option<&[u8]> {
    match payload.split_first()? {
        (0, body) => Some(body),
        (1, rest) => rest.get(8..),
        _ => None,
    }
}

/// Recycles the log without any checkpoint: for tests that replay nothing.
struct Forget(std::sync::Weak<Log>);

impl LogSpace for Forget {
    fn make_space(&self) -> vellum_base::Result<bool> {
        let Some(log) = self.0.upgrade() else {
            return Ok(false);
        };
        log.flush_round()?;
        log.release_before(log.position())
            .map(|segments| segments > 0)
    }
}

pub(crate) struct World {
    pub directory: Arc<MemoryDirectory>,
    pub log: Arc<Log>,
    pub context: Arc<TreeContext>,
    pub pool: Arc<Pool>,
    pub space: Arc<Space>,
}

pub(crate) fn pool_config(page_size: usize, frames: u64) -> PoolConfig {
    PoolConfig {
        page_size,
        pool_bytes: frames * page_size as u64,
        pages_max: if cfg!(shuttle) { 4096 } else { 1 << 20 },
        batch_pages: 4,
        // Of several threads that find no frame, all but one wait.
        evictors_max: 1,
    }
}

impl World {
    pub(crate) fn new(page_size: usize, frames: u64) -> Self {
        Self::make(page_size, frames, true, |context| context)
    }

    /// With `forget`, log space is recycled at once.
    pub(crate) fn make(
        page_size: usize,
        frames: u64,
        forget: bool,
        adapt: impl FnOnce(TreeContext) -> TreeContext,
    ) -> Self {
        let directory = Arc::new(MemoryDirectory::new());
        let config = LogConfig {
            slots_max: 16,
            slot_buffer_bytes: 128 << 10,
            segment_bytes: 1 << 20,
            log_bytes_max: if forget { 4 << 20 } else { 512 << 20 },
        };
        let clock = Arc::new(|| Timestamp(1));
        let log = Log::create(directory.clone(), config, clock, LogStart::first()).unwrap();
        let log = Arc::new(log);
        if forget {
            log.set_log_space(Arc::new(Forget(Arc::downgrade(&log))));
        }
        let file = directory.open("data", OpenOptions::create()).unwrap();
        let pool = Pool::create_file(file, log.clone(), &pool_config(page_size, frames)).unwrap();
        Self::with(directory, log, Arc::new(pool), adapt)
    }

    fn with(
        directory: Arc<MemoryDirectory>,
        log: Arc<Log>,
        pool: Arc<Pool>,
        adapt: impl FnOnce(TreeContext) -> TreeContext,
    ) -> Self {
        let space = Arc::new(Space::load(pool.clone(), Gsn(1)).unwrap());
        let context = TreeContext::new(pool.clone(), space.clone()).with_rows(Arc::new(TestRows));
        Self {
            directory,
            log,
            context: Arc::new(adapt(context)),
            pool,
            space,
        }
    }

    pub(crate) fn journal(&self, slot: u16) -> Option<Journal<'_>> {
        Some(Journal::forward(self.log.slot(SlotId(slot))))
    }

    pub(crate) fn tree(&self, kind: TreeKind) -> Tree {
        Tree::create(&self.context, self.journal(0), kind, None).unwrap()
    }

    /// Pages in use by trees.
    pub(crate) fn pages_in_use(&self) -> u64 {
        let counts = self.space.counts();
        counts.durable + counts.temporary
    }
}

/// All records of a log in the order of redo: `(header, redo bytes)`.
pub(crate) type Records = Vec<(vellum_wal::RecordHeader, Vec<u8>)>;

pub(crate) fn records(directory: &MemoryDirectory) -> Records {
    let reader = LogReader::open(directory, LogPosition::default(), Verdict::default()).unwrap();
    let mut windows = RedoWindows::new(reader, 1 << 20);
    let mut all = Records::new();
    while let Some(window) = windows.next_window().unwrap() {
        for (_, record) in window.records() {
            all.push((record.header, record.redo.to_vec()));
        }
    }
    all
}

/// A database that recovery finds: a data file (empty if `None`) in which everything up to a GSN is
/// there, and what redo of the later `records` up to and including `cut` makes of it.
pub(crate) fn recovered(
    page_size: usize,
    frames: u64,
    file: Option<&(Gsn, MemoryDirectory)>,
    records: &Records,
    cut: Gsn,
) -> World {
    let directory = Arc::new(MemoryDirectory::new());
    let clock = Arc::new(|| Timestamp(1));
    let highest = records
        .iter()
        .map(|(header, _)| header.gsn)
        .max()
        .unwrap_or_default();
    let start = LogStart {
        first_gsn: Gsn(highest.get() + 1000),
        ..LogStart::first()
    };
    let config = LogConfig {
        slots_max: 16,
        slot_buffer_bytes: 128 << 10,
        segment_bytes: 1 << 20,
        log_bytes_max: 4 << 20,
    };
    let log = Arc::new(Log::create(directory.clone(), config, clock, start).unwrap());
    log.set_log_space(Arc::new(Forget(Arc::downgrade(&log))));
    let copy = directory.open("data", OpenOptions::create()).unwrap();
    let pool = match file {
        Some((_, old)) => {
            let old = old.open("data", OpenOptions::existing()).unwrap();
            let mut bytes = vec![0; old.len().unwrap() as usize];
            old.read_at(&mut bytes, 0).unwrap();
            copy.write_at(&bytes, 0).unwrap();
            Pool::open(copy, log.clone(), &pool_config(page_size, frames)).unwrap()
        }
        None => Pool::create_file(copy, log.clone(), &pool_config(page_size, frames)).unwrap(),
    };
    let pool = Arc::new(pool);
    let redo = Redo::new(pool.clone(), Some(Arc::new(TestRows)));
    let from = file.map_or(Gsn::ZERO, |(from, _)| *from);
    for (header, bytes) in records
        .iter()
        .filter(|(header, _)| header.gsn > from && header.gsn <= cut)
    {
        if Redo::owns(header.kind) {
            redo.apply(header, bytes).unwrap();
        }
    }
    redo.finish().unwrap();
    World::with(directory, log, pool, |context| context)
}

/// Everything in a tree, by a forward cursor.
pub(crate) fn contents(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut leaf = LeafCopy::new(tree.context().page_size());
    tree.read_leaf(Seek::First, &mut leaf).unwrap();
    loop {
        let mut key = Vec::new();
        for index in leaf.position()..leaf.len() {
            leaf.key(index, &mut key);
            all.push((key.clone(), leaf.payload(index).to_vec()));
        }
        let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
            return all;
        };
        tree.read_leaf(Seek::AtOrAfter(&fence), &mut leaf).unwrap();
    }
}

/// Everything in a tree, by a backward cursor, last first.
pub(crate) fn contents_backward(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut leaf = LeafCopy::new(tree.context().page_size());
    tree.read_leaf(Seek::Last, &mut leaf).unwrap();
    loop {
        let mut key = Vec::new();
        for index in (0..leaf.position()).rev() {
            leaf.key(index, &mut key);
            all.push((key.clone(), leaf.payload(index).to_vec()));
        }
        let Some(fence) = leaf.lower_fence().map(<[u8]>::to_vec) else {
            return all;
        };
        tree.read_leaf(Seek::Before(&fence), &mut leaf).unwrap();
    }
}

/// Verifies the tree; returns its pages.
pub(crate) fn assert_sound(tree: &Tree) -> crate::TreeStatistics {
    let mut seen = HashSet::new();
    let mut findings = Vec::new();
    let mut rows = Vec::new();
    let statistics = tree
        .verify_rows(
            &mut |page| seen.insert(page),
            &mut |finding| findings.push(finding),
            &mut |page, key, payload| {
                assert!(!page.is_zero());
                rows.push((key.to_vec(), payload.to_vec()));
                Ok(())
            },
        )
        .unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    assert!(rows == contents(tree), "the walk hands over the rows");
    assert_eq!(statistics.pages_total(), seen.len() as u64);
    statistics
}

pub(crate) fn assert_is(tree: &Tree, model: &Model) {
    let statistics = assert_sound(tree);
    assert_eq!(statistics.rows, model.len() as u64);
    let all = contents(tree);
    assert_eq!(all.len(), model.len());
    for ((key, payload), (wanted_key, wanted)) in all.iter().zip(model) {
        assert_eq!(key, wanted_key);
        assert_eq!(payload, wanted);
    }
    let mut backward = contents_backward(tree);
    backward.reverse();
    assert!(backward == all, "backward is forward reversed");
}
