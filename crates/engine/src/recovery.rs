//! Bringing a database back: analysis, redo, undo, clean-up.
//!
//! Paper: LeanStore §3.4. Rules R8 and R9 of docs/design/0006-transactions.md.
//!
//! 1. Torn pages are restored from the double-write area.
//! 2. The log is read: from the oldest segment that undo may need, by `txn::Analysis`, for losers; then from the
//!    checkpoint on, in windows, for redo, page by page on two threads.
//! 3. The log begins a new incarnation in segments of its own; its first record names the verdict.
//! 4. Losers are undone in descending GSN over all of them, each step logged.
//! 5. What `pending_free` still lists is freed, carried undo is deleted, the catalog is read.
//! 6. A checkpoint ends recovery; only then are old segments released.
//!
//! Invariants:
//! - Y1 Nothing before 3 changes a file except by writing pages that redo made (whose records are durable) and
//!   restoring torn ones: recovery can be cut off anywhere and starts again.
//! - Y2 Redo memory is bounded by a window of the log.

use crate::control::Control;
use crate::engine::{Engine, SystemSlot, system_slot};
use crate::error::Result;
use std::sync::Arc;
use vellum_base::{PageId, Result as StorageResult, StorageError, Timestamp};
use vellum_btree::{Journal, LeafCopy, Redo, Seek, Tree};
use vellum_buffer::Pool;
use vellum_io::Directory;
use vellum_sync::thread;
use vellum_txn::{Analysis, Outcome, log_verdict, undo_losers};
use vellum_version::Reverter;
use vellum_version::collect::Reducer;
use vellum_version::pending::PendingKind;
use vellum_wal::{LogPosition, LogReader, LogStart, Purpose, RedoWindows, SegmentFiles, Verdict};

/// Bytes of log records in one window of redo.
const WINDOW_BYTES: usize = 16 << 20;
/// Threads that redo pages.
const REDO_THREADS: usize = 2;

/// What is known after redo.
pub(crate) struct Recovered {
    analysis: Analysis,
    reader: LogReader,
    files: Arc<SegmentFiles>,
}

impl Recovered {
    /// Steps 1 and 2.
    pub fn redo(
        directory: &Arc<dyn Directory>,
        control: &Control,
        pool: &Arc<Pool>,
    ) -> Result<Self> {
        pool.repair_torn_pages()?;
        // Who lost? Records of live transactions may lie before the checkpoint.
        let segment = control.analysis_segment;
        let from = LogPosition {
            segment,
            ..LogPosition::default()
        };
        let mut reader = LogReader::open(&**directory, from, Verdict::default())?;
        let mut analysis = Analysis::new(control.timestamp_floor);
        while let Some(round) = reader.next_round()? {
            analysis.round(&round)?;
        }
        // What did pages miss?
        let redo = Redo::new(pool.clone(), Some(Arc::new(Reducer)));
        let reader_of_redo = LogReader::open(&**directory, control.checkpoint, control.known)?;
        let mut windows = RedoWindows::new(reader_of_redo, WINDOW_BYTES);
        while let Some(window) = windows.next_window()? {
            let pages: Vec<_> = window.pages().collect();
            apply(&redo, &pages)?;
        }
        redo.finish()?;
        let files = reader.files().clone();
        Ok(Self {
            analysis,
            reader,
            files,
        })
    }

    /// The highest timestamp that may be on disk.
    pub fn highest(&self) -> Timestamp {
        self.analysis.highest()
    }

    /// What the new incarnation of the log starts with.
    pub fn log_start(&self, keep_from_segment: u64) -> LogStart {
        self.reader.start_after(keep_from_segment)
    }

    /// Steps 3 to 5.
    pub fn undo(mut self, engine: &Engine) -> Result<()> {
        let slot = system_slot(&engine.config, SystemSlot::Checkpoint);
        if let Some(verdict) = self.reader.ends().last() {
            log_verdict(&engine.log, slot, *verdict)?;
            engine.log.flush_round()?;
        }
        for_each_key(&engine.carried, |key| {
            if let Some(stamp) = key.first_chunk() {
                self.analysis.carried(Timestamp(u64::from_be_bytes(*stamp)));
            }
            Ok(())
        })?;
        let Outcome { losers, .. } = self.analysis.finish();
        let log = engine.log.slot(slot);
        let mut reverter = Reverter::recovering(&engine.store, log, &engine.carried);
        undo_losers(&engine.log, slot, &self.files, &losers, &mut reverter)?;
        free_pending(engine)?;
        let journal = Some(Journal {
            slot: log,
            purpose: Purpose::Checkpoint,
        });
        let mut keys = Vec::new();
        for_each_key(&engine.carried, |key| {
            keys.push(key.to_vec());
            Ok(())
        })?;
        for key in keys {
            engine.carried.delete(&key, journal)?;
        }
        engine.tables.load(engine)?;
        Ok(())
    }
}

/// Redoes a window, pages spread over threads.
fn apply(
    redo: &Redo,
    pages: &[(PageId, Vec<(vellum_base::SlotId, vellum_wal::Record<'_>)>)],
) -> StorageResult<()> {
    let work = |part: usize| -> StorageResult<()> {
        for (_, records) in pages.iter().skip(part).step_by(REDO_THREADS) {
            for (_, record) in records {
                if Redo::owns(record.header.kind) {
                    redo.apply(&record.header, record.redo)?;
                }
            }
        }
        Ok(())
    };
    if pages.len() < 64 {
        return (0..REDO_THREADS).try_for_each(work);
    }
    thread::scope(|scope| {
        let others: Vec<_> = (1..REDO_THREADS)
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        let mut result = work(0);
        for other in others {
            let ended = other.join().unwrap_or(Err(StorageError::MemoryLimit {
                what: "a thread of recovery ended early",
            }));
            result = result.and(ended);
        }
        result
    })
}

/// Frees every chain and tree that no committed row refers to.
fn free_pending(engine: &Engine) -> Result<()> {
    let mut roots = Vec::new();
    let tree = engine.store.pending_free();
    for_each_key(tree, |key| {
        if let Ok(root) = <[u8; 8]>::try_from(key) {
            roots.push(PageId(u64::from_be_bytes(root)));
        }
        Ok(())
    })?;
    let log = engine.system_slot(SystemSlot::Checkpoint);
    let mut payload = Vec::new();
    // Dropped trees first: a chain that a row there still refers to may be listed by now, and goes with the row.
    for trees in [true, false] {
        for root in &roots {
            if !tree.get(&root.get().to_be_bytes(), &mut payload)? {
                continue;
            }
            let kind = PendingKind::decode(&payload).ok_or_else(|| StorageError::Corruption {
                file: "data".into(),
                page: Some(*root),
                what: "pending_free row",
                expected: 1,
                found: payload.first().copied().unwrap_or(0).into(),
            })?;
            if (kind == PendingKind::Dropped) == trees {
                engine.store.free_listed(*root, kind, log, Purpose::Undo)?;
            }
        }
    }
    Ok(())
}

/// Calls `each` with every key of a system tree.
fn for_each_key(tree: &Tree, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut leaf = LeafCopy::new(tree.context().page_size());
    let mut key = Vec::new();
    tree.read_leaf(Seek::First, &mut leaf)?;
    loop {
        for index in 0..leaf.len() {
            leaf.key(index, &mut key);
            each(&key)?;
        }
        let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
            return Ok(());
        };
        tree.read_leaf(Seek::AtOrAfter(&fence), &mut leaf)?;
    }
}
