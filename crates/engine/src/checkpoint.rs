//! Checkpoints: the log before a position is no longer needed; and carrying undo forward (R9).
//!
//! Paper: "Rethinking Logging, Checkpoints, and Recovery" (SIGMOD 2020): pages are written round the pool in small
//! steps, nobody is stopped. Differences: one scan of all frames a checkpoint, whose start is the new position.
//!
//! A checkpoint: (1) if the log runs full, copy the undo of live transactions in the oldest segments to pages that
//! nobody knows yet (carry.rs); (2) note the log's position P; (3) write every page that was dirty when the scan
//! began, the copies among them; (4) link the copies; delete what was carried for transactions that ended or were
//! compensated meanwhile; make both durable, and the ends of all transactions that no longer pin a segment;
//! (5) write the control file: redo starts at P, analysis at the oldest segment A that undo still needs; (6) release
//! the segments before both; (7) give back chains of dropped copies, as far as that goes (K10).
//!
//! What a checkpoint logs does not depend on how much it carries: a few hundred bytes a transaction and megabyte
//! (docs/design/0004-log.md, "Why undo never fails for space").
//!
//! Invariants:
//! - K1 The control file names P only after every change below P is in the data file.
//! - K2 A segment is released only after what undo needs of it is durable elsewhere, and after carried copies
//!   whose voiding (commit, abort, compensation) it holds are durably gone. Undo needs nothing of a transaction whose
//!   end is durable; one that has ended for everybody else, but is in a buffer of the log, would be a loser after a crash
//!   whose undo is gone.
//! - K3 One checkpoint at a time; who needs log space meanwhile waits for it.
//! - K4 A segment that a backup under way needs is copied before it is released (backup.rs).
//!
//! Crash: before (5) recovery starts at the old position, whose segments are all there; after it at P. Carried copies
//! are ordinary logged rows, so they are there or not with the log.

use crate::backup::{Backups, LogCopy};
use crate::carry::{Keep, Unowned};
use crate::control::Control;
use crate::engine::{Engine, SystemSlot};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, Result, Timestamp};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Mutex, MutexGuard, test_point};
use vellum_txn::Loser;
use vellum_wal::{LogPosition, LogSpace};

/// Pages written in one step of a checkpoint.
pub(crate) const STEP_PAGES: usize = 64;

/// The state of checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    control: Mutex<Control>,
    /// Log bytes that had been written when the last checkpoint began.
    log_bytes_at_last: AtomicU64,
    /// Checkpoints since the database was opened.
    done: AtomicU64,
    backups: Backups,
    /// Changed by checkpoints alone.
    unowned: Mutex<Unowned>,
    /// While a recovery undoes losers: down to which GSN (inclusive) each is undone.
    losers: Mutex<Option<BTreeMap<Timestamp, Gsn>>>,
    /// While a recovery undoes losers by the log: the oldest segment that this needs; `u64::MAX` otherwise.
    kept_from: AtomicU64,
}

thread_local! {
    /// This thread is inside a checkpoint: it must not wait for one.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Checkpointer {
    pub fn new(control: Control) -> Self {
        Self {
            control: Mutex::new(control),
            log_bytes_at_last: AtomicU64::new(0),
            done: AtomicU64::new(0),
            backups: Backups::default(),
            unowned: Mutex::default(),
            losers: Mutex::new(None),
            kept_from: AtomicU64::new(u64::MAX),
        }
    }

    /// No checkpoint runs until this is given back.
    pub fn hold(&self) -> impl Sized + '_ {
        self.control.lock()
    }

    /// From now on a recovery undoes these losers; with `None`, no more.
    pub fn set_losers(&self, losers: Option<&[Loser]>) {
        let undone =
            |losers: &[Loser]| losers.iter().map(|loser| (loser.stamp, Gsn::MAX)).collect();
        *self.losers.lock() = losers.map(undone);
    }

    /// From now on a recovery undoes losers by what the log has from `segment` on; with `u64::MAX`, no more.
    pub fn keep_from(&self, segment: u64) {
        // Relaxed: recovery makes its checkpoints itself.
        self.kept_from.store(segment, Ordering::Relaxed);
    }

    /// A recovery has undone a loser down to `gsn` at least; zero: all of it.
    pub fn note_undone(&self, stamp: Timestamp, gsn: Gsn) {
        if let Some(undone) =
            (self.losers.lock().as_mut()).and_then(|losers| losers.get_mut(&stamp))
        {
            *undone = gsn.min(*undone);
        }
    }

    /// How far a recovery is, if one is under way.
    pub fn losers(&self) -> Option<BTreeMap<Timestamp, Gsn>> {
        self.losers.lock().clone()
    }

    /// Chains of copies that were dropped.
    pub fn unowned(&self) -> MutexGuard<'_, Unowned> {
        self.unowned.lock()
    }

    /// Backups under way.
    pub fn backups(&self) -> &Backups {
        &self.backups
    }

    /// The last checkpoint's control file. From it on, segments are released only after the copy that `make` makes
    /// for it has them: no checkpoint can release any in between.
    pub fn pin_log(&self, make: impl FnOnce(&Control) -> LogCopy) -> (Control, Arc<LogCopy>) {
        let control = self.control.lock();
        let copy = Arc::new(make(&control));
        self.backups.pin(copy.clone());
        (*control, copy)
    }

    /// Checkpoints since the database was opened.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// True if enough log was written since the last checkpoint, or the log runs full.
    pub fn checkpoint_is_due(&self) -> bool {
        self.redo_is_long() || self.log.pressure() > 60
    }

    /// True if a crash now would have as much redone as the configuration allows.
    pub fn redo_is_long(&self) -> bool {
        let written = self.log.statistics().bytes_written;
        let last = self.checkpointer.log_bytes_at_last.load(Ordering::Relaxed);
        written.saturating_sub(last) >= self.config.checkpoint_log_bytes
    }

    /// Makes a checkpoint, waiting for one that is under way first. Blocks for its I/O; nobody else does.
    ///
    /// # Errors
    /// I/O, space: the last checkpoint stays the one that counts.
    pub fn checkpoint(&self) -> Result<()> {
        if self.is_poisoned() {
            return Err(vellum_base::StorageError::Poisoned);
        }
        self.checkpoint_with(false, Keep::Newest, self.checkpointer.control.lock())
    }

    /// Gives back what dropped copies of undo took, unless a checkpoint is under way, which does it itself. True if
    /// there was any.
    ///
    /// # Errors
    /// As [`Engine::free_copies`].
    pub fn free_copies_now(&self) -> Result<bool> {
        match self.checkpointer.control.try_lock() {
            Some(_control) => self.free_copies(false),
            None => Ok(false),
        }
    }

    /// The last checkpoint of a database that is closed in good order: nothing to redo or undo.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`]: the database opens with a recovery then.
    pub fn checkpoint_clean(&self) -> Result<()> {
        self.checkpoint_with(true, Keep::Newest, self.checkpointer.control.lock())
    }

    fn checkpoint_with(
        &self,
        clean: bool,
        keep: Keep,
        mut control: MutexGuard<'_, Control>,
    ) -> Result<()> {
        let _inside = Inside::enter();
        let written = self.log.statistics().bytes_written;
        let copies = self.copy_undo(keep)?;
        let (position, known) = self.log.known_position();
        // Above every timestamp and GSN in records before the position.
        let timestamp_floor = self.clock.now();
        let mut scan = self.pool.checkpoint_begin();
        while !self.pool.checkpoint_step(&mut scan, STEP_PAGES)? {}
        self.link_copies(copies)?;
        self.drop_copies()?;
        let oldest = self
            .log
            .oldest_live_segment()
            .unwrap_or(u64::MAX)
            .min(position.segment)
            .min(self.checkpointer.kept_from.load(Ordering::Relaxed));
        // K2: who has ended pins no segment, and its end may be in a buffer still.
        self.log.flush_round()?;
        let next = Control {
            checkpoint: position,
            known,
            timestamp_floor,
            analysis_segment: oldest,
            next_table: self.tables.next_id(),
            clean,
            ..*control
        };
        let released = LogPosition {
            segment: oldest,
            ..position
        };
        if planted::has(Bug::LogReleasedEarly) {
            self.log.release_before(released)?;
        }
        test_point!("checkpoint: control file not written");
        next.write(&*self.directory)?;
        *control = next;
        self.checkpointer.backups.before_release(oldest);
        self.log.release_before(released)?;
        self.checkpointer
            .log_bytes_at_last
            .store(written, Ordering::Relaxed);
        self.checkpointer.done.fetch_add(1, Ordering::Relaxed);
        // K10. Maintenance tells what could not be freed, when it tries again.
        let _ = self.free_copies(true);
        self.system_slot(SystemSlot::Checkpoint).withdraw();
        Ok(())
    }
}

/// Gives log space back when a writer finds none.
pub(crate) struct SpaceByCheckpoint {
    engine: Weak<Engine>,
}

impl SpaceByCheckpoint {
    pub fn new(engine: Weak<Engine>) -> Self {
        Self { engine }
    }
}

impl LogSpace for SpaceByCheckpoint {
    fn make_space(&self) -> Result<bool> {
        let Some(engine) = self.engine.upgrade() else {
            return Ok(false);
        };
        if INSIDE.get() {
            // K3: the checkpoint itself; what it needs is set aside for it.
            return Ok(false);
        }
        let before = engine.log.oldest_segment();
        for keep in [Keep::Newest, Keep::Nothing] {
            let control = engine.checkpointer.control.lock();
            // Somebody else's checkpoint may have done it while this waited.
            if engine.log.oldest_segment() == before {
                engine.checkpoint_with(false, keep, control)?;
            }
            if engine.log.oldest_segment() != before {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
