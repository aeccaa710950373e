//! Carrying undo forward (R9): what keeps a live transaction from pinning the log.
//!
//! When the log runs full, the undo of live transactions in its oldest segments is copied into chains of the data file
//! (`version::carried`), and these segments are used again. Steps of a checkpoint, in its order:
//! [`Engine::copy_undo`] before its scan, so that the scan brings the copies into the file; [`Engine::link_copies`] and
//! [`Engine::drop_copies`] after it; [`Engine::free_copies`] at its end.
//!
//! Invariants:
//! - K9 Copies go when the end of their transaction is hardened, not when it is in a buffer. Interleaving otherwise: a round reads its clock;
//!   a transaction commits above it; a checkpoint drops its copies, and that is in the round, behind the slots it has visited. Power is
//!   cut: the commit is lost, and so is the undo of what the segments no longer have.
//! - K5 Carrying asks nobody for more than it finds: where there are no pages for copies, or no log for a link, the
//!   checkpoint goes on without, and releases what it can.
//! - K6 Copies count for nobody before they are linked, their link is durable, and `SlotGuard::set_carried` says so, in
//!   this order.
//! - K7 Records that are compensated after they were copied are linked all the same. Their compensations lie above what
//!   is carried ([`Copied::to`]), so who reads down to the copies has met them and goes on below what they void; and
//!   before the log gives them up, the next copying voids what they name (`Copied::void_copies`).
//! - K10 Copies that nobody needs fail no checkpoint: it counts once its control file does. Who waits for log space waits for segments, not for pages of the
//!   data file.
//!
//! Crash: copies that are not linked are free pages; linked ones without `set_carried` are beside the log's own
//! records, which a recovery reads first, with the same content.

use crate::engine::{Engine, SystemSlot};
use vellum_base::maps::HashSet;
use vellum_base::{Gsn, Lsn, PageId, Result, SlotId, StorageError, Timestamp};
use vellum_btree::Journal;
use vellum_version::carried::{self, Copies};
use vellum_version::collect::Patience;
use vellum_version::concerns_one;
use vellum_wal::{LogPosition, Purpose};

/// How full the log is, in per cent of its limit, when undo is carried forward.
const CARRY_PRESSURE: u64 = 50;
/// Which part of the log keeps its undo where it is when there is a choice: most of it will be void soon.
const KEPT_PART: u64 = 8;
/// Which part of the log's size is given back in pages of dropped copies by one checkpoint.
const FREED_PART: u64 = 4;

/// How much undo a checkpoint leaves where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// All while the log is not full; then that of the newest segments.
    Newest,
    /// None but that of the current segment.
    Nothing,
}

/// Chains of copies that were dropped: listed, and to be given back.
#[derive(Debug, Default)]
pub(crate) struct Unowned {
    /// Their roots, the next one last.
    pub roots: Vec<PageId>,
    /// Those of which something could not be read.
    aside: Vec<PageId>,
    patience: Patience,
}

/// Copies of one live transaction's undo.
#[derive(Debug)]
pub(crate) struct Copied {
    slot: SlotId,
    to: Lsn,
    void_copies: Gsn,
    copies: Copies,
}

impl Engine {
    /// Copies undo of live transactions into pages that nobody knows.
    ///
    /// # Errors
    /// I/O, `Corruption` of the log.
    pub fn copy_undo(&self, keep: Keep) -> Result<Vec<Copied>> {
        let kept = match keep {
            Keep::Newest if self.log.pressure() <= CARRY_PRESSURE => return Ok(Vec::new()),
            Keep::Newest => self.config.log_bytes_max / self.config.log_segment_bytes / KEPT_PART,
            Keep::Nothing => 0,
        };
        let before = LogPosition {
            segment: self.log.position().segment.saturating_sub(kept),
            ..LogPosition::default()
        };
        let mut all = Vec::new();
        for slot in self.log.slots_before(before) {
            match self.copy_slot(slot, before.segment) {
                Ok(copied) => all.extend(copied),
                // K5.
                Err(StorageError::OutOfSpace { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    fn copy_slot(&self, slot: SlotId, before: u64) -> Result<Option<Copied>> {
        let Some(mut carry) = self.log.slot(slot).carry(before) else {
            return Ok(None);
        };
        let mut copies = Copies::new(&self.context, carry.stamp);
        while let Some(record) = carry.records.next_record()? {
            copies.push(&record)?;
        }
        copies.finish()?;
        Ok(Some(Copied {
            slot,
            to: carry.to,
            void_copies: carry.void_copies,
            copies,
        }))
    }

    /// Makes copies count that are in the file by now, durably.
    ///
    /// # Errors
    /// I/O.
    pub fn link_copies(&self, all: Vec<Copied>) -> Result<()> {
        let mut unowned = self.checkpointer.unowned();
        let mut linked = Vec::new();
        for copied in all {
            let (slot, stamp, to) = (copied.slot, copied.copies.stamp(), copied.to);
            match self.link(copied, &mut unowned.roots) {
                Ok(true) => linked.push((slot, stamp, to)),
                Ok(false) => {}
                // K5.
                Err(StorageError::OutOfSpace { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        if !linked.is_empty() {
            // K6.
            self.log.flush_round()?;
            for (slot, stamp, to) in linked {
                self.log.slot(slot).lock().set_carried(stamp, to);
            }
        }
        Ok(())
    }

    /// False if the transaction has ended.
    fn link(&self, copied: Copied, unowned: &mut Vec<PageId>) -> Result<bool> {
        let stamp = copied.copies.stamp();
        let live = self.log.slot(copied.slot).lock().live_transaction();
        if live.is_none_or(|live| live.0 != stamp) {
            return Ok(false);
        }
        let journal = self.carry_journal();
        // Copies of what was compensated since they were made go before there are new ones: what is written after a
        // rollback to a savepoint lies above what that compensated, and is not void.
        if copied.void_copies < Gsn::MAX {
            carried::void(&self.carried, (stamp, copied.void_copies), journal, unowned)?;
        }
        let mut note = |chain| self.checkpointer.backups().note_chain(chain);
        let (store, tree) = (&self.store, &self.carried);
        copied
            .copies
            .link(store, tree, journal, unowned, &mut note)?;
        Ok(true)
    }

    fn carry_journal(&self) -> Journal<'_> {
        Journal::new(
            self.system_slot(SystemSlot::Checkpoint),
            Purpose::Checkpoint,
        )
    }

    /// Drops the copies of transactions that have ended, and of what a recovery has undone, durably: before the segments go
    /// that say so (K2).
    ///
    /// # Errors
    /// I/O, log space.
    pub fn drop_copies(&self) -> Result<()> {
        if carried::rows(&self.carried, None)?.is_empty() {
            return Ok(());
        }
        let losers = self.checkpointer.losers().unwrap_or_default();
        let mut live: HashSet<Timestamp> = (0..self.manager.slots_ever())
            .filter_map(|id| self.log.slot(SlotId(id as u16)).lock().live_transaction())
            .map(|(stamp, _)| stamp)
            .collect();
        live.extend(
            losers
                .iter()
                .filter(|loser| !loser.1.is_zero())
                .map(|loser| *loser.0),
        );
        // K9: who is not live now has its end in a log buffer, perhaps; so may what a recovery has undone.
        self.log.flush_round()?;
        let mut unowned = self.checkpointer.unowned();
        let roots = &mut unowned.roots;
        let mut any = false;
        for (stamp, undone) in &losers {
            if !undone.is_zero() {
                let void = (*stamp, *undone);
                any |= carried::void(&self.carried, void, self.carry_journal(), roots)?;
            }
        }
        let is_live = |stamp| live.contains(&stamp);
        any |= carried::drop_ended(&self.carried, is_live, self.carry_journal(), roots)?;
        if any {
            self.log.flush_round()?;
        }
        Ok(())
    }

    /// True while a chain of dropped copies that could not be read waits to be tried again.
    pub fn has_unreadable_copies(&self) -> bool {
        self.checkpointer.unowned().patience.has_failed()
    }

    /// Gives back chains of dropped copies, a bounded amount. For who holds the checkpointer; they are listed, so
    /// what is left here is found again. One that cannot be read keeps no other (K10): it is put aside, and tried again by who is not `lazy`, after ever more
    /// calls. True if there were any.
    ///
    /// # Errors
    /// I/O, `Corruption`: the first. What ends the call: a lack of memory, a failed flush.
    pub fn free_copies(&self, lazy: bool) -> Result<bool> {
        let mut unowned = self.checkpointer.unowned();
        let Unowned {
            roots,
            aside,
            patience,
        } = &mut *unowned;
        let retries = patience.is_over(lazy);
        if retries {
            // Taken last.
            roots.splice(0..0, aside.drain(..));
        }
        let log = self.system_slot(SystemSlot::Checkpoint);
        let pages = self.config.log_bytes_max / FREED_PART / self.config.page_size as u64;
        let mut steps = 1 + pages / vellum_version::pending::FREE_STEP as u64;
        let (mut any, mut first) = (false, None);
        while let Some(root) = roots.last()
            && steps > 0
        {
            any = true;
            match self.store.free_chain_step(*root, log, Purpose::Optional) {
                Ok(whole) => {
                    steps -= 1;
                    if whole {
                        roots.pop();
                    }
                }
                // Later, when there is log.
                Err(StorageError::OutOfSpace { .. }) => {
                    any = false;
                    break;
                }
                // Not counted: of those that are tried again, none may be left for a call that takes it for a new one.
                Err(error) => {
                    let concerns_one = concerns_one(&error);
                    first.get_or_insert(error);
                    if !concerns_one {
                        break;
                    }
                    aside.extend(roots.pop());
                }
            }
        }
        if retries {
            patience.end_round(!aside.is_empty());
        } else if !aside.is_empty() {
            patience.fail();
        }
        first.map_or(Ok(any), Err)
    }
}
