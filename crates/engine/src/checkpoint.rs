//! Checkpoints: the log before a position is no longer needed; and carrying undo forward (R9).
//!
//! Paper: "Rethinking Logging, Checkpoints, and Recovery" (SIGMOD 2020): pages are written round the pool in small
//! steps, nobody is stopped. Differences: one scan of all frames a checkpoint, whose start is the new position.
//!
//! A checkpoint: (1) note the log's position P; (2) write every page that was dirty when the scan began; (3) if the
//! log runs full, carry forward the undo of live transactions in the oldest segments, a bounded amount; delete
//! what was carried for transactions that ended or were compensated meanwhile; (4) make both durable;
//! (5) write the control file: redo starts at P, analysis at the oldest segment A that undo still needs;
//! (6) release the segments before both.
//!
//! Carrying writes about as many log bytes as the undo that it frees, but these need no carrying again and go
//! with the next checkpoint; so a bounded step always gets on, however large the transaction.
//!
//! Invariants:
//! - K1 The control file names P only after every change below P is in the data file.
//! - K2 A segment is released only after what undo needs of it is durable elsewhere, and after carried copies
//!   whose voiding (commit, abort, compensation) it holds are durably gone.
//! - K3 One checkpoint at a time; who needs log space meanwhile waits for it.
//! - K4 A segment that a backup under way needs is copied before it is released (backup.rs).
//!
//! Crash: before (5) recovery starts at the old position, whose segments are all there; after it at P. Carried copies
//! are ordinary logged rows, so they are there or not with the log.

use crate::backup::{Backups, LogCopy};
use crate::control::Control;
use crate::engine::{Engine, SystemSlot};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Arc, Weak};
use vellum_base::{Gsn, Result, StorageError, Timestamp};
use vellum_btree::{Journal, LeafCopy, Seek};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Mutex, MutexGuard};
use vellum_version::undo::{carried_key, carried_piece_bytes};
use vellum_wal::{LogPosition, LogSpace, Purpose, SlotLog};

/// How full the log is, in per cent of its limit, when undo is carried forward.
const CARRY_PRESSURE: u64 = 50;
/// Pages written in one step of a checkpoint.
const STEP_PAGES: usize = 64;

/// The state of checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    control: Mutex<Control>,
    /// Log bytes that had been written when the last checkpoint began.
    log_bytes_at_last: AtomicU64,
    /// Checkpoints since the database was opened.
    done: AtomicU64,
    backups: Backups,
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
        }
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
        let written = self.log.statistics().bytes_written;
        let last = self.checkpointer.log_bytes_at_last.load(Ordering::Relaxed);
        written.saturating_sub(last) >= self.config.checkpoint_log_bytes || self.log.pressure() > 60
    }

    /// Makes a checkpoint, waiting for one that is under way first. Blocks for its I/O; nobody else does.
    ///
    /// # Errors
    /// I/O, space: the last checkpoint stays the one that counts.
    pub fn checkpoint(&self) -> Result<()> {
        self.checkpoint_with(false, self.checkpointer.control.lock())
    }

    /// The last checkpoint of a database that is closed in good order: nothing to redo or undo.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`]: the database opens with a recovery then.
    pub fn checkpoint_clean(&self) -> Result<()> {
        self.checkpoint_with(true, self.checkpointer.control.lock())
    }

    fn checkpoint_with(&self, clean: bool, mut control: MutexGuard<'_, Control>) -> Result<()> {
        let _inside = Inside::enter();
        let written = self.log.statistics().bytes_written;
        let (position, known) = self.log.known_position();
        // Above every timestamp and GSN in records before the position.
        let timestamp_floor = self.clock.now();
        let mut scan = self.pool.checkpoint_begin();
        while !self.pool.checkpoint_step(&mut scan, STEP_PAGES)? {}
        self.carry_forward(position)?;
        let oldest = self
            .log
            .oldest_live_segment()
            .unwrap_or(u64::MAX)
            .min(position.segment);
        let next = Control {
            checkpoint: position,
            known,
            timestamp_floor,
            analysis_segment: oldest,
            next_table: self.tables.next_id(),
            clean,
            ..*control
        };
        next.write(&*self.directory)?;
        *control = next;
        self.checkpointer.backups.before_release(oldest);
        self.log.release_before(LogPosition {
            segment: oldest,
            ..position
        })?;
        self.checkpointer
            .log_bytes_at_last
            .store(written, Ordering::Relaxed);
        self.checkpointer.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// K2. Carries the oldest segments while the log is fuller than it should be.
    fn carry_forward(&self, position: LogPosition) -> Result<()> {
        let log = self.system_slot(SystemSlot::Checkpoint);
        // What a checkpoint may take is bounded in bytes of log: copies of long records take thrice their own.
        let written = self.log.statistics().bytes_written;
        let budget = self.config.log_segment_bytes / 2;
        let mut carried = false;
        while self.log.pressure() > CARRY_PRESSURE
            && self.log.statistics().bytes_written - written < budget
        {
            let oldest = self.log.oldest_live_segment();
            let Some(segment) = oldest.filter(|segment| *segment < position.segment) else {
                break;
            };
            match self.carry_segment(segment, log) {
                Ok(_) => carried = true,
                // What was carried gives back its segments, and with them room for the rest.
                Err(StorageError::OutOfSpace { .. }) if carried => break,
                Err(error) => return Err(error),
            }
            if self.log.oldest_live_segment() == oldest {
                break;
            }
        }
        let live: HashSet<Timestamp> = (0..self.manager.slots_in_use())
            .filter_map(|id| {
                self.log
                    .slot(vellum_base::SlotId(id as u16))
                    .lock()
                    .live_transaction()
            })
            .map(|(stamp, _)| stamp)
            .collect();
        if self.drop_carried(log, |stamp, _| !live.contains(&stamp))? {
            // Durable before the segments go.
            self.log.flush_round()?;
        }
        Ok(())
    }

    /// Carries the undo that lies in `segment` and before; returns how many bytes were copied.
    fn carry_segment(&self, segment: u64, log: &SlotLog) -> Result<u64> {
        let next = LogPosition {
            segment: segment + 1,
            ..LogPosition::default()
        };
        let (mut carried, mut bytes) = (Vec::new(), 0);
        for id in self.log.slots_before(next) {
            let slot = self.log.slot(id);
            let Some(mut carry) = slot.carry(next.segment) else {
                continue;
            };
            // Copies of what was compensated since they were made go before there are new ones: what is written
            // after a rollback to a savepoint lies above what that compensated, and is not void.
            if carry.void_copies < Gsn::MAX {
                let void = |stamp, gsn| stamp == carry.stamp && gsn >= carry.void_copies;
                self.drop_carried(log, void)?;
            }
            // They come newest first and are kept by GSN: turned round, they are appends, which log a fraction of
            // what splits in the middle would. A segment of them fits into what memory may hold beside the pool.
            let mut records = Vec::new();
            while let Some(record) = carry.records.next_record()? {
                let small = vellum_version::undo::for_undo(&record)?;
                let mut bytes = Vec::with_capacity(small.length());
                small.encode_to(&mut bytes);
                records.push((record.header.gsn, bytes));
            }
            for (gsn, record) in records.iter().rev() {
                // Compensated meanwhile: void.
                if *gsn < slot.lock().lowest_compensated() {
                    self.carry_record(carry.stamp, *gsn, record, log)?;
                    bytes += record.len() as u64;
                }
            }
            carried.push((slot, carry.stamp, carry.to));
        }
        // Durable before anybody relies on the copies.
        self.log.flush_round()?;
        for (slot, stamp, to) in carried {
            slot.lock().set_carried(stamp, to);
        }
        Ok(bytes)
    }

    /// Puts what undo needs of one record (key and undo bytes) into the `undo` tree, in pieces.
    fn carry_record(&self, stamp: Timestamp, gsn: Gsn, record: &[u8], log: &SlotLog) -> Result<()> {
        let journal = Journal {
            slot: log,
            purpose: Purpose::Checkpoint,
        };
        let piece_bytes = carried_piece_bytes(self.pool.page_size());
        for (piece, chunk) in record.chunks(piece_bytes).enumerate() {
            let piece = u8::try_from(piece).expect("a record is a few quarters of a page");
            let key = carried_key(stamp, gsn, piece);
            self.carried.put(&key, chunk, Some(journal))?;
        }
        Ok(())
    }

    /// Deletes the carried copies that are void by stamp and GSN. True if there were any.
    ///
    /// At both ends of the tree whole leaves at a time: the copies of one large transaction take as many log bytes
    /// to delete one by one as its rollback takes, more than is set aside for a checkpoint.
    fn drop_carried(
        &self,
        log: &SlotLog,
        is_void: impl Fn(Timestamp, Gsn) -> bool,
    ) -> Result<bool> {
        let mut leaf = LeafCopy::new(self.pool.page_size());
        self.carried.read_leaf(Seek::First, &mut leaf)?;
        if leaf.is_empty() && leaf.upper_fence().is_none() {
            return Ok(false);
        }
        let is_void = |key: &[u8]| match (read_u64(key, 0), read_u64(key, 8)) {
            (Some(stamp), Some(gsn)) => is_void(Timestamp(stamp), Gsn(gsn)),
            _ => true,
        };
        let mut key = Vec::new();
        // The first and the last copy that stays, and the void ones between, which are few: those of a
        // transaction that is neither the oldest nor the newest with copies.
        let (mut first, mut last) = (None, Vec::new());
        let (mut between, mut maybe_between, mut any) = (Vec::new(), Vec::new(), false);
        loop {
            for index in 0..leaf.len() {
                leaf.key(index, &mut key);
                if is_void(&key) {
                    any = true;
                    if first.is_some() {
                        maybe_between.push(key.clone());
                    }
                } else {
                    first.get_or_insert_with(|| key.clone());
                    last.clone_from(&key);
                    between.append(&mut maybe_between);
                }
            }
            let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
                break;
            };
            self.carried.read_leaf(Seek::AtOrAfter(&fence), &mut leaf)?;
        }
        let journal = Some(Journal {
            slot: log,
            purpose: Purpose::Checkpoint,
        });
        if any {
            let below = first.unwrap_or_else(|| vec![u8::MAX; 18]);
            while !self.carried.remove_below(&below, STEP_PAGES, journal)? {}
            // The first key above the last that stays.
            last.push(0);
            while !self.carried.remove_from(&last, STEP_PAGES, journal)? {}
            for key in between {
                self.carried.delete(&key, journal)?;
            }
        }
        Ok(any)
    }
}

fn read_u64(key: &[u8], at: usize) -> Option<u64> {
    key.get(at..)?
        .first_chunk()
        .map(|bytes| u64::from_be_bytes(*bytes))
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
        loop {
            let live = engine.log.oldest_live_segment();
            let control = engine.checkpointer.control.lock();
            // Somebody else's checkpoint may have done it while this waited.
            if engine.log.oldest_segment() == before {
                engine.checkpoint_with(false, control)?;
            }
            if engine.log.oldest_segment() != before {
                return Ok(true);
            }
            if engine.log.oldest_live_segment() == live {
                return Ok(false);
            }
        }
    }
}
