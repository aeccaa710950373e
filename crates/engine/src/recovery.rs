//! Bringing a database back: analysis, redo, undo, clean-up.
//!
//! Paper: LeanStore §3.4. Rules R8 and R9 of docs/design/0006-transactions.md.
//!
//! 1. Torn pages are restored from the double-write area.
//! 2. The log is read: from the oldest segment that undo may need, by `txn::Analysis`, for losers; then from the
//!    checkpoint on, in windows, for redo, page by page on two threads.
//! 3. The log begins a new incarnation in segments of its own; its first record names the verdict.
//! 4. Losers are undone in descending GSN over all of them, each step logged: by the log, then by what was carried forward.
//! 5. Carried undo is deleted, what `pending_free` still lists is freed, the catalog is read.
//! 6. A checkpoint ends recovery; only then are old segments released.
//!
//! Invariants:
//! - Y1 Nothing before 3 changes a file except by writing pages that redo made (whose records are durable: a killed
//!   process may have left the last of them to the kernel, so they are synced first) and restoring torn ones:
//!   recovery can be cut off anywhere and starts again.
//! - Y2 Redo memory is bounded by a window of the log.
//! - Y3 Undo that may not find room in the log is carried forward before it begins (carry.rs). When nothing is left but
//!   what was carried, recovery needs no old segment, and makes checkpoints like anybody else when it finds no log. Such a
//!   checkpoint records how far each loser is undone before it releases the compensations that say so.
//! - Y4 Before that, undo goes by the log, and makes checkpoints so that what a recovery of this recovery redoes is bounded. They
//!   release nothing: analysis starts where it started.
//! - Y5 No page that only garbage has keeps the database shut: what cannot be read of what is listed stays listed, and maintenance tries it again.

use crate::carry::Unowned;
use crate::checkpoint::STEP_PAGES;
use crate::control::Control;
use crate::engine::{Engine, SystemSlot, system_slot};
use crate::error::Result;
use std::sync::Arc;
use vellum_base::{Gsn, PageId, Result as StorageResult, StorageError, Timestamp};
use vellum_btree::{Journal, Redo};
use vellum_buffer::Pool;
use vellum_io::Directory;
use vellum_sync::thread;
use vellum_txn::{Analysis, Loser, Outcome, Undo, log_verdict, loser_records, undo_losers};
use vellum_version::Reverter;
use vellum_version::carried::{Copies, drop_ended, rows, void};
use vellum_version::collect::Reducer;
use vellum_wal::{
    LogPosition, LogReader, LogStart, Purpose, Record, RedoWindows, SegmentFiles, Verdict,
};

/// Bytes of log records in one window of redo.
const WINDOW_BYTES: usize = 16 << 20;
/// Threads that redo pages.
const REDO_THREADS: usize = 2;
/// Records that are undone between two looks whether a checkpoint is due.
const RECORDS_A_LOOK: u32 = 1024;

/// What is known after redo.
pub(crate) struct Recovered {
    analysis: Analysis,
    reader: LogReader,
    files: Arc<SegmentFiles>,
    /// The oldest segment that undo may need.
    keep_from_segment: u64,
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
        reader.make_durable()?;
        // What did pages miss?
        let end = reader.ends().last().map_or(Gsn::MAX, |last| last.m);
        let redo = Redo::new(pool.clone(), Some(Arc::new(Reducer))).until(end.max(control.known.m));
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
            keep_from_segment: segment,
        })
    }

    /// The highest timestamp that may be on disk.
    pub fn highest(&self) -> Timestamp {
        self.analysis.highest()
    }

    /// What the new incarnation of the log starts with.
    pub fn log_start(&self) -> LogStart {
        self.reader.start_after(self.keep_from_segment)
    }

    /// Steps 3 to 5. `give_log_space` lets checkpoints be made from now on by who finds no log space.
    pub fn undo(mut self, engine: &Engine, give_log_space: impl Fn()) -> Result<()> {
        let slot = system_slot(&engine.config, SystemSlot::Checkpoint);
        if let Some(verdict) = self.reader.ends().last() {
            log_verdict(&engine.log, slot, *verdict)?;
            engine.log.flush_round()?;
        }
        for row in rows(&engine.carried, None)? {
            self.analysis.carried(row.stamp);
        }
        let Outcome { mut losers, .. } = self.analysis.finish();
        let log = engine.log.slot(slot);
        if outgrows_the_log(engine, &losers) && carry_losers(engine, &self.files, &losers)? {
            losers = losers.iter().map(Loser::carried).collect();
        }
        engine.checkpointer.set_losers(Some(&losers));
        engine.checkpointer.keep_from(self.keep_from_segment);
        let mut progress = Progress {
            engine,
            reverter: Reverter::recovering(&engine.store, log, &engine.carried),
            until_look: RECORDS_A_LOOK,
            give_log_space: &give_log_space,
        };
        undo_losers(&engine.log, slot, &self.files, &losers, &mut progress)?;
        engine.checkpointer.set_losers(None);
        engine.checkpointer.keep_from(u64::MAX);
        // Nobody is left who needs copies of undo. Their chains are listed.
        let journal = Journal::new(log, Purpose::Checkpoint);
        drop_ended(&engine.carried, |_| false, journal, &mut Vec::new())?;
        // What checkpoints have not freed yet is listed, too, and must not be freed twice.
        *engine.checkpointer.unowned() = Unowned::default();
        // Y5.
        engine.store.free_all_listed(log, Purpose::Undo)?;
        engine.tables.load(engine)?;
        Ok(())
    }
}

/// True if the log and the undo of what it has of the losers may be more than a full log together: then that is carried
/// forward first. Otherwise it would cost as much as the undo itself. A compensation is about as long as what it
/// compensates, and pages that are joined are logged, too.
fn outgrows_the_log(engine: &Engine, losers: &[Loser]) -> bool {
    let bytes: u64 = losers
        .iter()
        .map(|loser| loser.end.get() - loser.first.get())
        .sum();
    bytes > engine.config.log_segment_bytes / 2
        && engine.log.bytes_in_use() + bytes / 2 * 3 > engine.config.log_bytes_max
}

/// Y3. Copies what undo of the losers needs of the log; false (and nothing is changed) if there is no room for it:
/// undo then goes by the log, in the space that was set aside for it.
fn carry_losers(engine: &Engine, files: &Arc<SegmentFiles>, losers: &[Loser]) -> Result<bool> {
    let full = |error: &StorageError| matches!(error, StorageError::OutOfSpace { .. });
    let mut all = Vec::new();
    for loser in losers {
        let mut copies = Copies::new(&engine.context, loser.stamp);
        let copied = loser_records(files, loser, &mut |record| copies.push(record))
            .and_then(|void_from| copies.finish().map(|()| void_from));
        match copied {
            Ok(void_from) => all.push((copies, void_from.min(loser.void_from))),
            Err(error) if full(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    let mut scan = engine.pool.checkpoint_begin();
    while !engine.pool.checkpoint_step(&mut scan, STEP_PAGES)? {}
    let journal = Journal::new(
        engine.system_slot(SystemSlot::Checkpoint),
        Purpose::Checkpoint,
    );
    let mut unowned = engine.checkpointer.unowned();
    let roots = &mut unowned.roots;
    for (copies, void_from) in all {
        let of = (copies.stamp(), void_from);
        let linked = void(&engine.carried, of, journal, roots).and_then(|_| {
            let (store, tree) = (&engine.store, &engine.carried);
            copies.link(store, tree, journal, roots, &mut |_| ())
        });
        match linked {
            Ok(_) => {}
            // What is linked so far is beside the log's own records, which undo meets first.
            Err(error) if full(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    engine.log.flush_round()?;
    Ok(true)
}

/// Undo that tells checkpoints how far it is, and makes those that bound redo (Y4).
struct Progress<'e> {
    engine: &'e Engine,
    reverter: Reverter<'e>,
    until_look: u32,
    give_log_space: &'e dyn Fn(),
}

impl Undo for Progress<'_> {
    fn undo(&mut self, record: &Record<'_>) -> StorageResult<()> {
        self.reverter.undo(record)?;
        if let Some(stamp) = record.stamp() {
            let undone = record.header.gsn;
            self.engine.checkpointer.note_undone(stamp, undone);
        }
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = RECORDS_A_LOOK;
            if self.engine.redo_is_long() {
                self.engine.checkpoint()?;
            }
        }
        Ok(())
    }

    fn ahead(&mut self, pages: &[PageId]) {
        self.reverter.ahead(pages);
    }

    /// Y3: from here on no old segment is needed.
    fn log_is_done(
        &mut self,
        undone: &mut dyn Iterator<Item = (Timestamp, Gsn)>,
    ) -> StorageResult<()> {
        let engine = self.engine;
        if rows(&engine.carried, None)?.is_empty() {
            return Ok(());
        }
        for (stamp, down_to) in undone {
            engine.checkpointer.note_undone(stamp, down_to);
        }
        engine.checkpointer.keep_from(u64::MAX);
        (self.give_log_space)();
        engine.checkpoint()?;
        engine.log.set_unbounded(false);
        Ok(())
    }

    fn carried(&mut self, stamp: Timestamp, below: Gsn, out: &mut Vec<u8>) -> StorageResult<bool> {
        let found = self.reverter.carried(stamp, below, out)?;
        if !found {
            // All of it.
            self.engine.checkpointer.note_undone(stamp, Gsn::ZERO);
        }
        Ok(found)
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
