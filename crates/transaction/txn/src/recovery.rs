//! Verdicts: which transactions of a crashed database never happened, and their undo.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.4 (recovery).
//! Differences: the verdict follows from one consistent cut (C, M) an incarnation, not from per-worker counters;
//! undo is logged (compensation records), so that a crash during recovery does not judge again.
//!
//! Invariants:
//! - I1 (R8) Records of an incarnation above its M do not exist. A transaction is a winner if a commit record at or below
//!   M carries a timestamp below C; it is over if an abort record says so (in its own or a later incarnation); all others
//!   are losers.
//! - I2 An incarnation's (C, M) is fixed by the first recovery that reads it. Later ones find it in the log and use
//!   it; what they find by themselves must agree.
//! - I3 Losers are undone in descending GSN over all of them. A compensation record of a later
//!   incarnation voids everything of its transaction at or above the GSN it names, because recovery undoes from
//!   the top.
//! - I4 The clock starts above every timestamp seen, of winners, of losers and of records that do not exist (R1).
//!
//! Crash: analysis changes nothing. Undo may stop anywhere: the next recovery finds the compensation
//! records that are at or below their incarnation's M and goes on below them.
//!
//! Not here: reading segments (`wal`), redo (`btree`), undo (`undo_losers`).

use crate::record::TransactionRecord;
use crate::rollback::corrupt;
use std::collections::{HashMap, HashSet};
use vellum_base::{Gsn, Lsn, Result, SlotId, Timestamp};
use vellum_wal::{ChunkPosition, Record, Verdict};

/// A transaction that never happened, and where its records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loser {
    /// Its stamp.
    pub stamp: Timestamp,
    /// Its slot in its own incarnation; `None` if only carried-forward records are left.
    pub slot: Option<SlotId>,
    /// The incarnation that it ran in.
    pub incarnation: u64,
    /// Where its first record that the log still has starts.
    pub first: Lsn,
    /// Where its last record ends.
    pub end: Lsn,
    /// The chunk that holds its last record.
    pub last_chunk: ChunkPosition,
    /// Records at or above this GSN were undone by an earlier recovery; `Gsn::MAX` for none.
    pub void_from: Gsn,
}

/// What analysis found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Transactions to undo, ascending by stamp.
    pub losers: Vec<Loser>,
    /// The highest timestamp seen: start the clock above it, and let the restart floor be the clock's first
    /// value.
    pub highest: Timestamp,
    /// The highest GSN seen, of records that exist.
    pub highest_gsn: Gsn,
}

/// Reads the records of all incarnations that the log still holds, oldest first, and judges.
///
/// Feed [`Analysis::enter`] before the records of each incarnation; its records in an order in which those of
/// one slot ascend; then, once the tree of carried records is readable, each of those.
#[derive(Debug, Default)]
pub struct Analysis {
    verdict: Verdict,
    entered: HashMap<u64, Verdict>,
    open: HashMap<Timestamp, Loser>,
    /// Ended transactions whose begin the log no longer has: the only ones that could still have
    /// carried records.
    ended_without_begin: HashSet<Timestamp>,
    highest: Timestamp,
    highest_gsn: Gsn,
}

impl Analysis {
    /// An analysis that has seen nothing. `floor`: a timestamp that the clock is known to have passed (from the
    /// checkpoint), because recycled segments cannot tell.
    pub fn new(floor: Timestamp) -> Self {
        Self {
            highest: floor,
            ..Self::default()
        }
    }

    /// Says that the records to come belong to the incarnation of `verdict`, which judges them (I1).
    ///
    /// # Errors
    /// `Corruption` if incarnations do not ascend.
    pub fn enter(&mut self, verdict: Verdict) -> Result<()> {
        if verdict.incarnation <= self.verdict.incarnation {
            let (last, this) = (self.verdict.incarnation, verdict.incarnation);
            return Err(corrupt("order of incarnations", last + 1, this));
        }
        self.see(verdict.c);
        self.highest_gsn = self.highest_gsn.max(verdict.m);
        self.entered.insert(verdict.incarnation, verdict);
        self.verdict = verdict;
        Ok(())
    }

    /// Takes in one record, which lies in `chunk` of `slot`.
    ///
    /// # Errors
    /// `Corruption` for a malformed record of a transaction, or a recorded verdict that contradicts the one the
    /// incarnation was entered with (I2).
    pub fn observe(
        &mut self,
        slot: SlotId,
        chunk: ChunkPosition,
        record: &Record<'_>,
    ) -> Result<()> {
        let transaction = TransactionRecord::decode(record)?;
        let stamp = match transaction {
            Some(TransactionRecord::Begin { stamp, .. } | TransactionRecord::Abort { stamp }) => {
                stamp
            }
            Some(TransactionRecord::Commit { stamp, commit_ts }) => {
                self.see(commit_ts);
                stamp
            }
            Some(TransactionRecord::Verdict(verdict)) => return self.check(&verdict),
            None => match record.stamp() {
                Some(stamp) => stamp,
                None => return Ok(()),
            },
        };
        // I4: also of records that do not exist.
        self.see(stamp);
        if record.header.gsn > self.verdict.m {
            return Ok(());
        }
        match transaction {
            Some(TransactionRecord::Commit { commit_ts, .. }) if commit_ts >= self.verdict.c => {
                self.extend(stamp, slot, chunk, record);
            }
            Some(TransactionRecord::Commit { .. } | TransactionRecord::Abort { .. }) => {
                if self.open.remove(&stamp).is_none() {
                    self.ended_without_begin.insert(stamp);
                }
            }
            _ => self.extend(stamp, slot, chunk, record),
        }
        Ok(())
    }

    fn extend(
        &mut self,
        stamp: Timestamp,
        slot: SlotId,
        chunk: ChunkPosition,
        record: &Record<'_>,
    ) {
        let incarnation = self.verdict.incarnation;
        let loser = self.open.entry(stamp).or_insert(Loser {
            stamp,
            slot: Some(slot),
            incarnation,
            first: record.lsn,
            end: record.lsn,
            last_chunk: chunk,
            void_from: Gsn::MAX,
        });
        if loser.incarnation == incarnation {
            loser.end = Lsn(record.lsn.get() + record.length() as u64);
            loser.last_chunk = chunk;
        } else if let Some(gsn) = record.compensated() {
            // I3: an earlier recovery came this far.
            loser.void_from = loser.void_from.min(gsn);
        }
    }

    /// Takes in a carried-forward record: a transaction that nothing says has ended is a loser.
    pub fn observe_carried(&mut self, stamp: Timestamp) {
        self.see(stamp);
        if self.ended_without_begin.contains(&stamp) {
            return;
        }
        self.open.entry(stamp).or_insert(Loser {
            stamp,
            slot: None,
            incarnation: 0,
            first: Lsn::ZERO,
            end: Lsn::ZERO,
            last_chunk: ChunkPosition::default(),
            void_from: Gsn::MAX,
        });
    }

    /// The verdict.
    pub fn finish(self) -> Outcome {
        let mut losers: Vec<Loser> = self.open.into_values().collect();
        losers.sort_unstable_by_key(|loser| loser.stamp);
        Outcome {
            losers,
            highest: self.highest,
            highest_gsn: self.highest_gsn,
        }
    }

    fn check(&self, recorded: &Verdict) -> Result<()> {
        match self.entered.get(&recorded.incarnation) {
            Some(entered) if entered != recorded => Err(corrupt(
                "verdict of an incarnation",
                recorded.c.get(),
                entered.c.get(),
            )),
            _ => Ok(()),
        }
    }

    fn see(&mut self, timestamp: Timestamp) {
        self.highest = self.highest.max(timestamp);
    }
}
