//! The space of old versions: how much it may be, and what happens where it is more.
//!
//! Paper: none; versions.md ("Rules for all kinds"), transactions.md R10.
//!
//! Invariants:
//! - B1 Only who takes space is refused, never who gives it back: rollbacks, commits, collection, and dropping tables go on.
//! - B3 What is limited is what a snapshot can make grow: pages of old versions and of graveyards, overflow chains that no newest version
//!   refers to, pages of dropped tables and indexes, and old versions in rows, in however many pages: a step of maintenance looks at a part of them and goes on
//!   where the last one ended (`vellum_version::RowsLook`). Pages that were evicted with versions in rows are not read for it: each counts as the mean of those in memory.
//! - B2 A snapshot is withdrawn only if it is the oldest (where dropped trees alone are too many: of those that keep some), and if what the last withdrawal has set free is collected: while the space falls, or the last
//!   collection left some for the next, nobody else is to blame.
//! - B4 One that is younger than what a request to promote early asks for goes only if more than half of the budget was replaced since it was drawn, by
//!   others than those who are still at work: a transaction of any size takes two ticks. So not whose own writes are all there is, and not who
//!   is about to end anyway.
//!
//! - B5 Nobody is withdrawn for a dropped tree that does not wait for him, and nobody is refused for one that waits for no snapshot (V70): its pages are being given back, or wait for a round of the
//!   log, for a writer that was withdrawn or is not rolled back, for their turn, or cannot be read. (Interleaving otherwise: a table of 50 GB is dropped, and nobody sees it any more; it takes a minute to
//!   give its pages back, the space is above the limit, and whoever is the oldest goes for it. Or: one of its pages cannot be read, and writers are refused until a restart.)
//! - B6 Of versions in rows only those count for refusing and withdrawing that somebody needed when they were looked at; others stay there until their row is written to, or its page is
//!   evicted, and no end of a snapshot takes them away. And nobody is withdrawn for versions in rows before all of them were looked at since he became the one whose turn it is. (Interleaving
//!   otherwise: a snapshot that needs 300 MiB of them ends; the sum is as it was until the next look; the next one goes for it, and the one after that.) Where no page with versions in rows is
//!   in memory, those of evicted pages count for nobody.
//!
//! Concurrency: the flag that writers read is set by collections and by maintenance; a writer may go on for a moment
//! when the space is used up, and be refused for a moment when it is there again. What dropped trees take is summed up by maintenance, once a step.

use crate::database::Database;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::holders::TransactionId;
use crate::transaction::Transaction;
use crate::versions::PAGES_MAX;
use std::collections::VecDeque;
use std::time::Duration;
use vellum_metrics::Counter;
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vellum_txn::Holder;
use vellum_version::{InRows, RowsLook};

/// What happens where old versions take more than [`Config::version_bytes_max`](crate::Config::version_bytes_max).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum VersionPolicy {
    /// Nothing: their pages are evicted to disk like any others, as long as there is disk.
    #[default]
    Spill,
    /// Who changes rows gets [`Error::VersionSpace`] until old snapshots have ended; its transaction stays usable.
    RefuseWriter,
    /// The oldest snapshot is withdrawn, then the next; whose it was gets [`Error::SnapshotTooOld`] with its next
    /// operation.
    SnapshotTooOld,
}

/// A snapshot that was withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Withdrawn {
    /// Whose it was: [`Transaction::id`](crate::Transaction::id).
    pub transaction: TransactionId,
    /// The clock when it was drawn.
    pub snapshot: u64,
    /// Ticks of the clock since.
    pub age_ticks: u64,
    /// How long the transaction was known to be open.
    pub age: Duration,
    /// Bytes that old versions took.
    pub version_bytes: u64,
}

/// Withdrawals that are remembered.
const REMEMBERED: usize = 32;
/// Steps of maintenance in which the space has not fallen before there is another withdrawal.
const STEPS_BETWEEN: u32 = 2;
/// The same, while collections leave garbage for the next: of so many entries some would have given a page back.
const STEPS_BETWEEN_MAX: u32 = 64;
/// Frames that a step of maintenance looks at for versions in rows, and pages that it copies: 0.6 ms at most, and a round over a pool of 2 GiB takes seven seconds, or, with such rows
/// in every page, two minutes.
const LOOK_USUAL: (usize, usize) = (2_048, 128);
/// The same, where the budget is used up, and somebody waits for what is found: 5 ms at most.
const LOOK_HURRIED: (usize, usize) = (32_768, 1_024);
/// Steps of maintenance that a young snapshot is the oldest, before what is kept for it is looked for (B4).
const STEPS_BETWEEN_ASKED: u32 = 3;
/// Pages of its list of work in which a writer that is refused is looked for large values.
const LOOKED_AT: usize = 64;
/// From how many ticks on a snapshot is withdrawn whatever is kept for it, where promotion is off.
const AGE_MIN: u64 = 6_250;

/// The state of the budget.
#[derive(Debug, Default)]
pub(crate) struct VersionBudget {
    /// Writers are refused.
    refuses: AtomicBool,
    /// The last collection left garbage that it could have taken.
    backlog: AtomicBool,
    withdrawn: AtomicU64,
    /// The look at old versions in rows. Steps of maintenance only.
    look: Mutex<Look>,
    /// What that has found.
    in_rows: FoundInRows,
    /// Bytes of dropped trees that are kept for some holder, when last looked at.
    in_dropped: AtomicU64,
    recent: Mutex<Recent>,
}

/// The look at old versions in rows, and what tells whether there can be any.
#[derive(Debug, Default)]
struct Look {
    rows: RowsLook,
    /// Rows that had turned fat when that number was last seen to change, and how far the look was then.
    made: u64,
    since: u64,
}

impl Look {
    /// Whether a round has found nothing, and no row has turned fat since it began: `made` have by now. (Before the first one there is nothing to look for: what
    /// stands in the file from an earlier process was made plain by recovery, or nobody needs it.)
    /// `out`: pages with such rows that are not in memory, and may come back.
    fn finds_nothing(&mut self, made: u64, out: u64) -> bool {
        if made != self.made || out > 0 {
            (self.made, self.since) = (made, self.rows.moment());
        }
        let found = self.rows.sum().pages > 0;
        made == 0 || !found && out == 0 && self.rows.is_whole_since(self.since)
    }
}

/// What the look at old versions in rows has found, for who asks without waiting.
#[derive(Debug, Default)]
struct FoundInRows {
    bytes: AtomicU64,
    /// Of these, what somebody needs.
    needed: AtomicU64,
    /// Bytes of them in a page, on average, when there were any last.
    bytes_a_page: AtomicU64,
    /// The same of those that somebody needs; zero while no such page is in memory (B6).
    needed_a_page: AtomicU64,
}

impl FoundInRows {
    fn note(&self, found: InRows) {
        let mean = |bytes: u64| bytes.checked_div(found.pages);
        self.bytes.store(found.bytes, Ordering::Relaxed);
        self.needed.store(found.needed, Ordering::Relaxed);
        if let Some(mean) = mean(found.bytes) {
            self.bytes_a_page.store(mean, Ordering::Relaxed);
        }
        let needed = mean(found.needed).unwrap_or(0);
        self.needed_a_page.store(needed, Ordering::Relaxed);
    }

    /// With those in `out` pages that are not in memory.
    fn all(&self, out: u64) -> u64 {
        self.bytes.load(Ordering::Relaxed) + out * self.bytes_a_page.load(Ordering::Relaxed)
    }

    /// Of these, what somebody needs.
    fn all_needed(&self, out: u64) -> u64 {
        self.needed.load(Ordering::Relaxed) + out * self.needed_a_page.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Withdrawn>,
    /// Steps since the last withdrawal in which the space has not fallen.
    steps: u32,
    /// The least space since then; zero where there was none since the space was within the budget.
    lowest: u64,
    /// A young snapshot that is the oldest, and for how many steps it has been.
    young: Option<(vellum_txn::TransactionId, u32)>,
    /// Whose turn it is, with his snapshot, and how far the look at versions in rows was when it became his (B6).
    turn: Option<(vellum_txn::TransactionId, u64, u64)>,
}

impl Recent {
    /// Whether what the last withdrawal has set free is collected (B2). Asked once a step.
    fn is_settled(&mut self, bytes: u64, backlog: bool) -> bool {
        if bytes < self.lowest {
            (self.lowest, self.steps) = (bytes, 0);
            return false;
        }
        self.steps = self.steps.saturating_add(1);
        let enough = if backlog {
            STEPS_BETWEEN_MAX
        } else {
            STEPS_BETWEEN
        };
        self.lowest == 0 || self.steps > enough
    }

    /// Whether it is time to look for what is kept for a young snapshot, which is the oldest (B4). Asked once a step.
    fn suspects(&mut self, id: vellum_txn::TransactionId) -> bool {
        let steps = match self.young {
            Some((known, steps)) if known == id => steps + 1,
            _ => 1,
        };
        self.young = Some((id, steps % STEPS_BETWEEN_ASKED));
        steps == STEPS_BETWEEN_ASKED
    }

    /// How far the look at versions in rows was when it became this one's turn; `now` if it did just now.
    fn turn_since(&mut self, holder: &Holder, now: u64) -> u64 {
        let snapshot = holder.oldest.get();
        match self.turn {
            Some((id, oldest, since)) if (id, oldest) == (holder.id, snapshot) => since,
            _ => {
                self.turn = Some((holder.id, snapshot, now));
                now
            }
        }
    }
}

impl VersionBudget {
    /// Notes whether a collection left garbage that the next can take.
    pub fn note_collection(&self, backlog: bool) {
        self.backlog.store(backlog, Ordering::Relaxed);
    }

    /// Whether the last collection left garbage that the next can take.
    pub fn has_backlog(&self) -> bool {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Snapshots that were withdrawn so far.
    pub fn withdrawn(&self) -> u64 {
        self.withdrawn.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Bytes of old versions (B3), in memory or not, needed or not. Looks at each dropped tree: for who is asked.
    pub fn version_bytes(&self) -> u64 {
        let dropped = self.store.dropped_total(self.manager.domain());
        self.bytes_in_pages() + self.bytes_in_rows() + dropped.bytes
    }

    /// Bytes of old versions in rows: as they were found by the last round of looks, those of pages that are not in memory by the mean of the others.
    pub fn bytes_in_rows(&self) -> u64 {
        let out = self.pool.fat_pages_out();
        self.version_budget.in_rows.all(out)
    }

    /// Bytes of pages of old versions, and of overflow chains.
    fn bytes_in_pages(&self) -> u64 {
        self.space.counts().temporary * self.config.page_size as u64 + self.store.chain_bytes()
    }

    /// What counts for the budget (B6), but for dropped trees.
    fn bytes_beside_dropped(&self) -> u64 {
        let out = self.pool.fat_pages_out();
        self.bytes_in_pages() + self.version_budget.in_rows.all_needed(out)
    }

    /// Bytes that writers are refused for (B5): a few words are read.
    fn bytes_held(&self) -> u64 {
        self.bytes_beside_dropped() + self.version_budget.in_dropped.load(Ordering::Relaxed)
    }

    /// B5, of dropped trees.
    fn look_at_dropped(&self) {
        let kept = self
            .store
            .dropped_bytes_kept_for(self.manager.domain(), &self.manager.holders());
        self.version_budget
            .in_dropped
            .store(kept, Ordering::Relaxed);
    }

    /// B3, of versions in rows: a part of them.
    fn look_at_rows(&self) {
        let budget = &self.version_budget;
        let Some(mut look) = budget.look.try_lock() else {
            return;
        };
        let limited = self.config.version_policy != VersionPolicy::Spill;
        let made = self.context.metrics().get(Counter::FatTuplesMade);
        // A load of each frame's page, whose line is in no cache: most databases have no such row for most of the time. Where there is a limit, B6 asks for rounds.
        if !limited && look.finds_nothing(made, self.pool.fat_pages_out()) {
            return;
        }
        let hurried = limited && self.bytes_held() > self.config.version_bytes_max;
        let (frames, pages) = if hurried { LOOK_HURRIED } else { LOOK_USUAL };
        let holders = self.manager.holders();
        self.store
            .look_further(&mut look.rows, &holders, frames, pages);
        budget.in_rows.note(look.rows.sum());
    }

    /// B6: whether all versions in rows were looked at since it became this one's turn.
    fn has_looked_for(&self, holder: &Holder, recent: &mut Recent) -> bool {
        let look = self.version_budget.look.lock();
        let since = recent.turn_since(holder, look.rows.moment());
        look.rows.is_whole_since(since)
    }

    /// Brings the flag that writers read up to date; true if they are refused.
    pub fn note_version_space(&self) -> bool {
        if self.config.version_policy != VersionPolicy::RefuseWriter {
            return false;
        }
        let over = self.bytes_held() > self.config.version_bytes_max;
        self.version_budget.refuses.store(over, Ordering::Relaxed);
        over
    }

    /// A step of maintenance, after a collection: B2. True if a snapshot was withdrawn.
    pub fn keep_version_budget(&self) -> bool {
        // The figures are told whatever the policy.
        self.look_at_rows();
        if self.config.version_policy == VersionPolicy::Spill {
            return false;
        }
        if self.config.version_policy == VersionPolicy::RefuseWriter {
            self.look_at_dropped();
            self.note_version_space();
            return false;
        }
        let limit = self.config.version_bytes_max;
        let mut recent = self.version_budget.recent.lock();
        let version_bytes = self.version_bytes();
        if version_bytes <= limit {
            recent.lowest = 0;
            return false;
        }
        let holders = self.manager.holders();
        let (at, dropped) = self.whose_dropped(&holders);
        let bytes = self.bytes_beside_dropped() + dropped;
        if bytes <= limit {
            recent.lowest = 0;
            return false;
        }
        let backlog = self.version_budget.has_backlog();
        if !recent.is_settled(bytes, backlog) {
            return false;
        }
        let now = self.clock.now().get();
        let youngest = match self.config.promote_after_ticks {
            u64::MAX => AGE_MIN,
            usual => usual / 16,
        };
        let Some(holder) = holders.get(at) else {
            return false;
        };
        let without_rows = self.bytes_in_pages() + dropped;
        if !self.has_looked_for(holder, &mut recent) && without_rows <= limit {
            return false;
        }
        let age_ticks = now.saturating_sub(holder.oldest.get());
        if age_ticks < youngest.max(1)
            && !(recent.suspects(holder.id) && self.is_much_kept_for(holder, &holders))
        {
            return false;
        }
        if !self.manager.withdraw(holder.id) {
            return false;
        }
        if recent.events.len() == REMEMBERED {
            recent.events.pop_front();
        }
        recent.events.push_back(Withdrawn {
            transaction: holder.id.into(),
            snapshot: holder.oldest.get(),
            age_ticks,
            age: holder.age,
            version_bytes,
        });
        (recent.lowest, recent.steps) = (bytes, 0);
        self.version_budget
            .withdrawn
            .fetch_add(1, Ordering::Relaxed);
        true
    }

    /// B5: whose turn it is, and the bytes of dropped trees that count: not those that stay, or go, whoever is withdrawn. The oldest one's, mostly. Where it is dropped trees alone
    /// that are too many, that of the oldest one of whom some are kept: one that was there before them sees none.
    fn whose_dropped(&self, holders: &[Holder]) -> (usize, u64) {
        let kept_for = |holders: &[Holder]| {
            let domain = self.manager.domain();
            self.store.dropped_bytes_kept_for(domain, holders)
        };
        let oldest = &holders[..holders.len().min(1)];
        if self.bytes_beside_dropped() > self.config.version_bytes_max {
            return (0, kept_for(oldest));
        }
        let keeps = |holder: &Holder| kept_for(std::slice::from_ref(holder)) > 0;
        let at = holders.iter().position(keeps).unwrap_or(0);
        (at, kept_for(holders))
    }

    /// B4, of one of those who hold versions back. Looks at up to [`PAGES_MAX`] pages of lists, and of rows; no, if they cannot be read.
    fn is_much_kept_for(&self, holder: &Holder, holders: &[Holder]) -> bool {
        let running = holders.iter().map(|it| (it.id.slot, it.oldest)).collect();
        let kept = self
            .store
            .replaced_since(holder.oldest, &running, PAGES_MAX);
        let domain = self.manager.domain();
        let dropped = self
            .store
            .dropped_bytes_kept_for(domain, std::slice::from_ref(holder));
        kept.is_ok_and(|kept| kept.bytes + dropped > self.config.version_bytes_max / 2)
    }
}

impl Transaction {
    /// B1: refuses a writer of rows where the space is used up.
    #[inline]
    pub(crate) fn check_version_space(&self) -> Result<()> {
        if self.engine().version_budget.refuses.load(Ordering::Relaxed) {
            return self.refuse_writer();
        }
        Ok(())
    }

    #[cold]
    fn refuse_writer(&self) -> Result<()> {
        let engine = self.engine();
        // Asked again: what has become free meanwhile is good for this one already.
        if !engine.note_version_space() {
            return Ok(());
        }
        let (inner, bytes) = (self.inner(), engine.bytes_held());
        let own = match inner.has_written() {
            true => {
                let (slot, stamp) = (inner.slot(), inner.stamp()?);
                engine.store.replaced_by(slot, stamp, LOOKED_AT)? > bytes / 2
            }
            false => false,
        };
        Err(Error::VersionSpace {
            bytes,
            limit: engine.config.version_bytes_max,
            own,
        })
    }
}

impl Database {
    /// The last snapshots (at most 32) that were withdrawn under [`VersionPolicy::SnapshotTooOld`], oldest first.
    pub fn withdrawn_snapshots(&self) -> Vec<Withdrawn> {
        let recent = self.engine().version_budget.recent.lock();
        recent.events.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;
    use std::time::Duration;
    use vellum_base::{SlotId, Timestamp};
    use vellum_txn::{Holder, TransactionId};

    fn holder(number: u64, snapshot: u64) -> Holder {
        let slot = SlotId(1);
        Holder {
            id: TransactionId { slot, number },
            olap: true,
            writer: false,
            oldest: Timestamp(snapshot),
            newest: Timestamp(snapshot),
            age: Duration::ZERO,
        }
    }

    /// B6: what the one before needed is told as needed until all was looked at again.
    #[test]
    fn whose_turn_it_is_has_the_look_begin_anew_with_each_snapshot_that_becomes_the_oldest() {
        let mut recent = Recent::default();
        let (first, second) = (holder(1, 10), holder(2, 20));
        assert_eq!(recent.turn_since(&first, 5), 5);
        assert_eq!(recent.turn_since(&first, 9), 5);
        assert_eq!(recent.turn_since(&second, 12), 12);
        assert_eq!(recent.turn_since(&second, 30), 12);
        // A statement's snapshot moves on under read committed: what the last one needed this one need not.
        assert_eq!(recent.turn_since(&holder(2, 25), 31), 31);
    }
}
