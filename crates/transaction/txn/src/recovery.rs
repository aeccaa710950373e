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
use vellum_base::maps::{HashMap, HashSet};
use vellum_base::{Gsn, Lsn, Result, SlotId, Timestamp};
use vellum_wal::{ChunkPosition, Record, RoundData, Verdict};

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

impl Loser {
    /// The same loser when all that undo needs of it was carried forward.
    #[must_use]
    pub fn carried(&self) -> Self {
        Self {
            stamp: self.stamp,
            slot: None,
            incarnation: 0,
            first: Lsn::ZERO,
            end: Lsn::ZERO,
            last_chunk: ChunkPosition::default(),
            void_from: Gsn::MAX,
        }
    }
}

/// What analysis found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Transactions to undo, ascending by stamp.
    pub losers: Vec<Loser>,
    /// The highest timestamp seen: start the clock above it, and let the restart floor be the clock's first
    /// value.
    pub highest: Timestamp,
    /// How the newest incarnation ended: what recovery makes durable before it undoes anything
    /// ([`crate::log_verdict`]).
    pub verdict: Verdict,
}

/// What one record says about a transaction.
#[derive(Clone, Copy, Debug)]
enum What {
    Begin,
    Commit(Timestamp),
    Abort,
    Change,
    /// It voids what lies at or above this GSN.
    Compensation(Gsn),
}

/// A record that is not judged yet, because its round may be the last one.
#[derive(Clone, Copy, Debug)]
struct Event {
    what: What,
    stamp: Timestamp,
    slot: SlotId,
    chunk: ChunkPosition,
    gsn: Gsn,
    lsn: Lsn,
    end: Lsn,
}

impl Event {
    /// `None` for a record that is none of a transaction's.
    fn of(record: &Record<'_>, slot: SlotId, chunk: ChunkPosition) -> Result<Option<Self>> {
        let (what, stamp) = match TransactionRecord::decode(record)? {
            Some(TransactionRecord::Begin { stamp, .. }) => (What::Begin, stamp),
            Some(TransactionRecord::Abort { stamp }) => (What::Abort, stamp),
            Some(TransactionRecord::Commit { stamp, commit_ts }) => {
                (What::Commit(commit_ts), stamp)
            }
            Some(TransactionRecord::Verdict(_)) => return Ok(None),
            None => match (record.stamp(), record.compensated()) {
                (None, _) => return Ok(None),
                (Some(stamp), Some(gsn)) => (What::Compensation(gsn), stamp),
                (Some(stamp), None) => (What::Change, stamp),
            },
        };
        let (lsn, gsn) = (record.lsn, record.header.gsn);
        let end = Lsn(lsn.get() + record.length() as u64);
        Ok(Some(Self {
            what,
            stamp,
            slot,
            chunk,
            gsn,
            lsn,
            end,
        }))
    }
}

/// A transaction without an end, so far.
#[derive(Debug)]
struct Seen {
    loser: Loser,
    /// The segment of its begin record, if that was read.
    begun_in: Option<u64>,
}

/// Reads the rounds of all incarnations that the log still holds, oldest first, and judges.
///
/// Feed it every round that is kept, not only those behind the checkpoint (a transaction that was live
/// keeps the segments of its records, so all of them are among these, or carried); then, once the
/// tree of carried records is readable, each of those.
///
/// Costs memory for the transactions that are open at a time and for one round.
#[derive(Debug, Default)]
pub struct Analysis {
    /// The newest round: the verdict of its incarnation, unless another round comes.
    verdict: Verdict,
    /// Records of the newest round, and those of earlier ones that are above every cut so far.
    pending: Vec<Event>,
    ends: HashMap<u64, Verdict>,
    open: HashMap<Timestamp, Seen>,
    /// Ended transactions that could still have carried records: those whose begin the log no longer has,
    /// or has in an earlier segment than their end (what is carried lies in a segment that was
    /// full while the transaction lived). A few a segment, however many transactions it holds.
    ended_late: HashSet<Timestamp>,
    highest: Timestamp,
}

impl Analysis {
    /// An analysis that has seen nothing. `floor`: a timestamp that the clock is known to have passed
    /// (from the checkpoint), because recycled segments cannot tell.
    pub fn new(floor: Timestamp) -> Self {
        Self {
            highest: floor,
            ..Self::default()
        }
    }

    /// Takes in the next round.
    ///
    /// # Errors
    /// `Corruption` for rounds out of order, a malformed record of a transaction, or a recorded verdict
    /// that contradicts what was read (I2).
    pub fn round(&mut self, round: &RoundData) -> Result<()> {
        let verdict = Verdict {
            incarnation: round.incarnation,
            last_round: round.number,
            c: round.c,
            m: round.m,
        };
        let last = self.verdict;
        if verdict.incarnation < last.incarnation {
            let (last, this) = (last.incarnation, verdict.incarnation);
            return Err(corrupt("order of incarnations", last, this));
        }
        if verdict.incarnation == last.incarnation {
            if verdict.last_round <= last.last_round || verdict.m < last.m || verdict.c < last.c {
                return Err(corrupt(
                    "order of rounds",
                    last.last_round,
                    verdict.last_round,
                ));
            }
            self.verdict = verdict;
            self.settle(false);
        } else {
            // The last round's own cut judges it: the incarnation ended there.
            self.settle(true);
            self.ends.insert(last.incarnation, last);
            self.verdict = verdict;
        }
        self.see(round.c);
        for chunk in &round.chunks {
            for record in chunk.records() {
                if let Some(TransactionRecord::Verdict(named)) = TransactionRecord::decode(&record)?
                {
                    self.check(&named)?;
                }
                let Some(event) = Event::of(&record, chunk.slot, chunk.position)? else {
                    continue;
                };
                // I4: also of records that turn out not to exist.
                self.see(event.stamp);
                if let What::Commit(commit_ts) = event.what {
                    self.see(commit_ts);
                }
                self.pending.push(event);
            }
        }
        Ok(())
    }

    /// Judges what is pending by the cut (C, M) of `self.verdict` (I1): all of it if that is the `last` cut of its
    /// incarnation. Otherwise what is above the cut waits for a later one: a round that is a part of a
    /// larger flush repeats the cut before it.
    fn settle(&mut self, last: bool) {
        let pending = std::mem::take(&mut self.pending);
        for event in pending {
            if event.gsn > self.verdict.m {
                if !last {
                    self.pending.push(event);
                }
                continue;
            }
            match event.what {
                What::Commit(commit_ts) if commit_ts < self.verdict.c => self.end(&event),
                What::Commit(_) if !last => self.pending.push(event),
                What::Abort => self.end(&event),
                _ => self.extend(&event),
            }
        }
    }

    fn end(&mut self, event: &Event) {
        let seen = self.open.remove(&event.stamp);
        let begun_in = seen.and_then(|seen| seen.begun_in);
        if begun_in != Some(event.chunk.segment) {
            self.ended_late.insert(event.stamp);
        }
    }

    fn extend(&mut self, event: &Event) {
        // Events are settled before the verdict moves on to another incarnation.
        let incarnation = self.verdict.incarnation;
        let begun_in = matches!(event.what, What::Begin).then_some(event.chunk.segment);
        let seen = self.open.entry(event.stamp).or_insert(Seen {
            loser: Loser {
                stamp: event.stamp,
                slot: Some(event.slot),
                incarnation,
                first: event.lsn,
                end: event.end,
                last_chunk: event.chunk,
                void_from: Gsn::MAX,
            },
            begun_in,
        });
        let loser = &mut seen.loser;
        if loser.incarnation == incarnation {
            loser.end = event.end;
            loser.last_chunk = event.chunk;
        } else if let What::Compensation(gsn) = event.what {
            // I3: an earlier recovery came this far.
            loser.void_from = loser.void_from.min(gsn);
        }
    }

    /// Takes in a carried-forward record, after all rounds: a transaction that nothing says has
    /// ended is a loser.
    pub fn carried(&mut self, stamp: Timestamp) {
        self.settle(true);
        self.see(stamp);
        if self.ended_late.contains(&stamp) {
            return;
        }
        self.open.entry(stamp).or_insert(Seen {
            loser: Loser {
                stamp,
                slot: None,
                incarnation: 0,
                first: Lsn::ZERO,
                end: Lsn::ZERO,
                last_chunk: ChunkPosition::default(),
                void_from: Gsn::MAX,
            },
            begun_in: None,
        });
    }

    /// The highest timestamp seen so far.
    pub fn highest(&self) -> Timestamp {
        self.highest
    }

    /// The verdict.
    pub fn finish(mut self) -> Outcome {
        self.settle(true);
        let open = self.open.into_values();
        let mut losers: Vec<Loser> = open.map(|seen| seen.loser).collect();
        losers.sort_unstable_by_key(|loser| loser.stamp);
        Outcome {
            losers,
            highest: self.highest,
            verdict: self.verdict,
        }
    }

    fn check(&self, named: &Verdict) -> Result<()> {
        match self.ends.get(&named.incarnation) {
            Some(read) if read != named => Err(corrupt(
                "verdict of an incarnation",
                named.c.get(),
                read.c.get(),
            )),
            _ => Ok(()),
        }
    }

    fn see(&mut self, timestamp: Timestamp) {
        self.highest = self.highest.max(timestamp);
    }
}
