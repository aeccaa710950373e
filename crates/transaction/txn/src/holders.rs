//! Who holds versions back: the open transactions, with their ages; and taking their snapshots away.
//!
//! Paper: none; transactions.md R10 ("snapshot too old").
//!
//! Invariants:
//! - I1 A withdrawal names a transaction by slot and number: it never meets the next one in the slot (`slot` I4).
//! - I2 A withdrawn writer counts as hidden before its snapshots stop counting, and until it is rolled back or committed:
//!   `Domain::has_hidden_writer`.
//!
//! Concurrency: a look at one slot after the other, as a pass; a holder may be gone when its description is read. Ages
//! in seconds begin when a pass first sees a transaction.

use crate::domain::Domain;
use crate::slot::{Seen, Withdrawal};
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_base::{SlotId, Timestamp};

/// What tells a transaction from all others of a run of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId {
    /// Its slot.
    pub slot: SlotId,
    /// How many transactions the slot had run, this one included.
    pub number: u64,
}

/// An open transaction and the snapshots that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Which transaction.
    pub id: TransactionId,
    /// It counts as analytical.
    pub olap: bool,
    /// It has written.
    pub writer: bool,
    /// Its oldest open snapshot.
    pub oldest: Timestamp,
    /// Its newest open snapshot.
    pub newest: Timestamp,
    /// How long passes have known it.
    pub age: Duration,
}

impl Domain {
    /// Every transaction whose snapshots count, oldest snapshot first. Waits (briefly) for slots that are just beginning,
    /// so the caller holds no latch. Some ten nanoseconds a slot in use.
    pub fn holders(&self) -> Vec<Holder> {
        let now = monotonic_nanos();
        let mut holders = Vec::new();
        for (index, slot) in self.slots.used().iter().enumerate() {
            let words = &slot.words;
            let number = words.number();
            let (mut oldest, mut newest) = (Timestamp::MAX, Timestamp::ZERO);
            let mut backoff = vellum_sync::Backoff::new();
            let olap = loop {
                let seen = words.look(|snapshot| {
                    oldest = oldest.min(snapshot);
                    newest = newest.max(snapshot);
                });
                match seen {
                    Seen::Busy => {
                        (oldest, newest) = (Timestamp::MAX, Timestamp::ZERO);
                        backoff.wait();
                    }
                    Seen::Idle => break None,
                    Seen::Running { olap } => break Some(olap),
                }
            };
            let writer = words.is_writer();
            // Another transaction by now, or none any more: what was read belongs to nobody.
            let Some(olap) = olap.filter(|_| words.number() == number && !newest.is_zero()) else {
                continue;
            };
            let since = words.seen_at(number).unwrap_or(now);
            holders.push(Holder {
                id: TransactionId {
                    slot: SlotId(index as u16),
                    number,
                },
                olap,
                writer,
                oldest,
                newest,
                age: Duration::from_nanos(now.saturating_sub(since)),
            });
        }
        holders.sort_by_key(|holder| (holder.oldest, holder.id));
        holders
    }

    /// True while a writer is open whose oldest snapshot does not see an end and whose newest is above `made`: it may have seen what was made by
    /// that stamp and is gone by that end, and written there, by a snapshot between the two that it has given up since. (Its snapshots never go back. Those
    /// that do not count are not looked at: [`Domain::has_hidden_writer`].) Waits (briefly) for slots that are just beginning, so the caller holds no
    /// latch.
    pub fn has_writer_spanning(
        &self,
        made: Timestamp,
        sees_end: impl Fn(Timestamp) -> bool,
    ) -> bool {
        self.slots.open_slots().any(|slot| {
            let mut backoff = vellum_sync::Backoff::new();
            let (mut oldest, mut newest);
            loop {
                (oldest, newest) = (Timestamp::MAX, Timestamp::ZERO);
                let seen = slot.words.look(|snapshot| {
                    oldest = oldest.min(snapshot);
                    newest = newest.max(snapshot);
                });
                match seen {
                    Seen::Busy => backoff.wait(),
                    Seen::Idle => return false,
                    Seen::Running { .. } => break,
                }
            }
            // The snapshots first: who becomes a writer after that writes by one that sees the end.
            slot.words.is_writer() && newest > made && !sees_end(oldest)
        })
    }

    /// Takes the snapshots of a transaction away: they count no more, and its next operation fails. False if an
    /// operation is running (ask again), or if it has ended or was withdrawn before.
    ///
    /// # Panics
    /// In builds with debug assertions, if the settings do not allow withdrawals: operations may not be counted then.
    pub fn withdraw(&self, id: TransactionId) -> bool {
        debug_assert!(self.may_withdraw(), "every operation must be counted");
        if !self.may_withdraw() {
            return false;
        }
        let mut backoff = vellum_sync::Backoff::new();
        loop {
            match self.slots.withdraw(id.slot, id.number) {
                Withdrawal::Done => return true,
                Withdrawal::Gone => return false,
                // Between two operations of a busy transaction lies little time.
                Withdrawal::Busy if !backoff.should_park() => backoff.wait(),
                Withdrawal::Busy => return false,
            }
        }
    }
}
