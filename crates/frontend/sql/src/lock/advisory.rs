//! Advisory locks: numbers that applications lock, for the transaction or for the session.
//!
//! Whoever asks waits behind those who came before and whose locks do not go with its own, but for those that wait for what it holds itself. It enters the graph of
//! waits with the transactions of those in its way, every [`LOOK`] anew: a session that holds a lock may be in another transaction by then, or in none. If waiting
//! behind others closes a circle, it goes past those that only wait.
//!
//! Invariants:
//! - A1 Holders of one number are one session, or share it.
//! - A2 Locks of a transaction go with it, or with the savepoint that it goes back to; those of a session stay, whatever its transactions do, until they are released as often
//!   as they were taken. What a statement took before it is run again is given back first; what it released counts as released then.
//!
//! Concurrency: one latch for all of them, held for a look; a bell rings for all who wait whenever one is released.

use super::{Waits, WaitsAt};
use crate::error::{Result, SqlError};
use crate::session::{Activities, Waiting};
use crate::sqlstate;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use vellum::TransactionId;
use vellum_base::maps::HashMap;
use vellum_row::datetime::Timestamp;
use vellum_sync::{Condvar, Mutex};

/// How long a wait parks before it looks who is in its way.
const LOOK: Duration = Duration::from_millis(20);
/// Locks at most, of all sessions: PostgreSQL's table is bounded, too.
const LOCKS_MAX: usize = 1 << 20;

/// What is locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum AdvisoryKey {
    /// One number.
    Long(i64),
    /// Two numbers.
    Pair(i32, i32),
}

impl AdvisoryKey {
    /// `classid`, `objid` and `objsubid` of `pg_locks`.
    pub fn shown(self) -> (u32, u32, i16) {
        match self {
            Self::Long(key) => ((key as u64 >> 32) as u32, key as u32, 1),
            Self::Pair(first, second) => (first as u32, second as u32, 2),
        }
    }
}

/// A lock as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdvisoryLock {
    pub key: AdvisoryKey,
    /// Others may have it, too, in this way.
    pub shared: bool,
    /// It goes with the transaction.
    pub of_transaction: bool,
}

/// Who has a lock.
#[derive(Clone, Copy, Debug)]
struct Holder {
    session: u64,
    shared: bool,
    of_transaction: bool,
    times: u32,
}

/// Who wants one.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    session: u64,
    shared: bool,
    since: Timestamp,
    /// Whether those that came before are no hindrance.
    first: bool,
}

#[derive(Debug, Default)]
struct Entry {
    holders: Vec<Holder>,
    /// In the order in which they came.
    waiters: Vec<Waiter>,
}

impl Entry {
    /// Sessions whose locks are in the way, and those that came before and want what does not go with it.
    fn in_the_way(&self, session: u64, shared: bool) -> (Vec<u64>, Vec<u64>) {
        let conflicts = |other: bool| !(shared && other);
        let others = self.holders.iter();
        let holders = others.filter(|held| held.session != session && conflicts(held.shared));
        let own = |waiter: &&Waiter| {
            let mut held = self.holders.iter().filter(|held| held.session == session);
            held.any(|held| !(held.shared && waiter.shared))
        };
        let place = self.waiters.iter().position(|own| own.session == session);
        let before = &self.waiters[..place.unwrap_or(self.waiters.len())];
        let first = place.is_some_and(|place| self.waiters[place].first);
        let before = before.iter().filter(|_| !first);
        let before = before.filter(|waiter| conflicts(waiter.shared) && !own(waiter));
        (
            holders.map(|held| held.session).collect(),
            before.map(|waiter| waiter.session).collect(),
        )
    }

    fn grant(&mut self, session: u64, lock: AdvisoryLock) {
        let same = |held: &&mut Holder| {
            held.session == session
                && held.shared == lock.shared
                && held.of_transaction == lock.of_transaction
        };
        match self.holders.iter_mut().find(same) {
            Some(held) => held.times = held.times.saturating_add(1),
            None => self.holders.push(Holder {
                session,
                shared: lock.shared,
                of_transaction: lock.of_transaction,
                times: 1,
            }),
        }
    }

    /// False if there is no such lock.
    fn release(&mut self, session: u64, lock: AdvisoryLock) -> bool {
        let at = self.holders.iter().position(|held| {
            held.session == session
                && held.shared == lock.shared
                && held.of_transaction == lock.of_transaction
        });
        let Some(at) = at else {
            return false;
        };
        self.holders[at].times -= 1;
        if self.holders[at].times == 0 {
            self.holders.swap_remove(at);
        }
        true
    }

    /// Whether a session has it in this way, however long: then it has it once more at once.
    fn is_held(&self, session: u64, shared: bool) -> bool {
        let mut held = self.holders.iter();
        held.any(|held| held.session == session && held.shared == shared)
    }

    fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }
}

/// A lock as others see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownLock {
    pub key: AdvisoryKey,
    pub session: u64,
    pub shared: bool,
    /// When its wait began, if it waits.
    pub waits_since: Option<Timestamp>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    entries: Mutex<HashMap<AdvisoryKey, Entry>>,
    released: Condvar,
}

impl AdvisoryLocks {
    /// All that are held or waited for.
    pub fn all(&self) -> Vec<ShownLock> {
        let entries = self.entries.lock();
        let mut all = Vec::new();
        for (key, entry) in &*entries {
            for held in &entry.holders {
                all.push(ShownLock {
                    key: *key,
                    session: held.session,
                    shared: held.shared,
                    waits_since: None,
                });
            }
            for waiter in &entry.waiters {
                all.push(ShownLock {
                    key: *key,
                    session: waiter.session,
                    shared: waiter.shared,
                    waits_since: Some(waiter.since),
                });
            }
        }
        // A session that has one for its transaction and for itself has it once.
        all.sort_by_key(|lock| {
            (
                lock.key,
                lock.session,
                lock.shared,
                lock.waits_since.is_some(),
            )
        });
        all.dedup_by_key(|lock| {
            (
                lock.key,
                lock.session,
                lock.shared,
                lock.waits_since.is_some(),
            )
        });
        all
    }

    /// The sessions that a session waits for, those that are in no transaction too.
    pub fn blockers_of(&self, session: u64) -> Vec<u64> {
        let entries = self.entries.lock();
        let mut found = Vec::new();
        for entry in entries.values() {
            let mut waiters = entry.waiters.iter();
            if let Some(waiter) = waiters.find(|waiter| waiter.session == session) {
                let (holders, before) = entry.in_the_way(session, waiter.shared);
                found.extend(holders.into_iter().chain(before));
            }
        }
        found
    }

    /// Releases what a session holds for itself, or all that it holds.
    pub fn release_all(&self, session: u64, of_transactions: bool) {
        let mut entries = self.entries.lock();
        entries.retain(|_, entry| {
            entry
                .holders
                .retain(|held| held.session != session || held.of_transaction && !of_transactions);
            !entry.is_empty()
        });
        drop(entries);
        self.released.notify_all();
    }

    fn release(&self, session: u64, lock: AdvisoryLock) -> bool {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&lock.key) else {
            return false;
        };
        let released = entry.release(session, lock);
        if entry.is_empty() {
            entries.remove(&lock.key);
        }
        drop(entries);
        self.released.notify_all();
        released
    }
}

/// What a transaction has taken, and its statement.
#[derive(Debug)]
pub(crate) struct HeldAdvisory {
    locks: Arc<AdvisoryLocks>,
    session: u64,
    own: TransactionId,
    /// For the transaction, in their order.
    taken: RefCell<Vec<AdvisoryLock>>,
    statement: RefCell<Statement>,
}

/// What the statement that runs has done to locks of the session.
#[derive(Debug, Default)]
struct Statement {
    taken: Vec<AdvisoryLock>,
    released: Vec<AdvisoryLock>,
    /// What it had released before it was run again.
    released_before: Vec<AdvisoryLock>,
}

impl HeldAdvisory {
    /// Those of a session's transaction that begins.
    pub fn new(locks: Arc<AdvisoryLocks>, session: u64, own: TransactionId) -> Self {
        Self {
            locks,
            session,
            own,
            taken: RefCell::default(),
            statement: RefCell::default(),
        }
    }

    /// How many it has taken for itself: a point to go back to.
    pub fn count(&self) -> usize {
        self.taken.borrow().len()
    }

    /// Releases what it took for itself after there were `count`.
    pub fn release_to(&self, count: usize) {
        let released = self.taken.borrow_mut().split_off(count);
        for lock in released.into_iter().rev() {
            let was_held = self.locks.release(self.session, lock);
            debug_assert!(was_held, "what is taken is in the map");
        }
    }

    /// A statement begins.
    pub fn begin_statement(&self) {
        *self.statement.borrow_mut() = Statement::default();
    }

    /// The statement is undone, and will be run again (A2).
    pub fn undo_statement(&self, count: usize) {
        self.release_to(count);
        let mut statement = self.statement.borrow_mut();
        let Statement {
            taken,
            released,
            released_before,
        } = &mut *statement;
        for lock in taken.drain(..).rev() {
            self.locks.release(self.session, lock);
        }
        released_before.append(released);
    }

    fn note(&self, lock: AdvisoryLock) {
        if lock.of_transaction {
            self.taken.borrow_mut().push(lock);
        } else {
            self.statement.borrow_mut().taken.push(lock);
        }
    }

    /// Takes a lock if nobody is in the way.
    ///
    /// # Errors
    /// `53200` if there are too many.
    pub fn try_take(&self, lock: AdvisoryLock) -> Result<bool> {
        let mut entries = self.locks.entries.lock();
        if entries.len() >= LOCKS_MAX && !entries.contains_key(&lock.key) {
            return Err(SqlError::new(
                sqlstate::OUT_OF_MEMORY,
                "out of shared memory",
            ));
        }
        let entry = entries.entry(lock.key).or_default();
        let (holders, before) = entry.in_the_way(self.session, lock.shared);
        let free = holders.is_empty() && before.is_empty();
        if free || entry.is_held(self.session, lock.shared) {
            entry.grant(self.session, lock);
            drop(entries);
            self.note(lock);
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes a lock, and waits for it.
    ///
    /// # Errors
    /// `40P01`; `57014`, `57P01`, `55P03` while it waits; `53200`.
    pub fn take(
        &self,
        lock: AdvisoryLock,
        (waits, activities): (&Waits, &Activities),
        waiting: &mut Waiting<'_>,
    ) -> Result<()> {
        if self.try_take(lock)? {
            return Ok(());
        }
        waiting.start();
        let done = self.wait(lock, (waits, activities), waiting);
        waits.waits_no_more(self.own);
        let mut entries = self.locks.entries.lock();
        if let Some(entry) = entries.get_mut(&lock.key) {
            entry
                .waiters
                .retain(|waiter| waiter.session != self.session);
            if entry.is_empty() {
                entries.remove(&lock.key);
            }
        }
        drop(entries);
        // Who came later may have waited for this one.
        self.locks.released.notify_all();
        done?;
        self.note(lock);
        Ok(())
    }

    fn wait(
        &self,
        lock: AdvisoryLock,
        (waits, activities): (&Waits, &Activities),
        waiting: &mut Waiting<'_>,
    ) -> Result<()> {
        let mut entries = self.locks.entries.lock();
        let entry = entries.entry(lock.key).or_default();
        entry.waiters.push(Waiter {
            session: self.session,
            shared: lock.shared,
            since: crate::session::clock_time(),
            first: false,
        });
        loop {
            let entry = entries.entry(lock.key).or_default();
            let (holders, before) = entry.in_the_way(self.session, lock.shared);
            if holders.is_empty() && before.is_empty() {
                entry.grant(self.session, lock);
                return Ok(());
            }
            drop(entries);
            waiting.look()?;
            let transactions = |sessions: &[u64]| {
                let sessions = sessions.iter();
                let found = sessions.filter_map(|session| activities.transaction_of(*session));
                found.collect::<Vec<TransactionId>>()
            };
            let held_by = transactions(&holders);
            let behind = held_by.iter().copied().chain(transactions(&before));
            let at = WaitsAt::Advisory(self.session);
            let entered = waits.waits_elsewhere(self.own, at, behind.collect());
            let past = entered.is_err() && !before.is_empty();
            if past {
                waits.counted(waits.waits_elsewhere(self.own, at, held_by))?;
            } else {
                waits.counted(entered)?;
            }
            vellum_sync::test_point!("advisory: a wait is entered");
            entries = self.locks.entries.lock();
            if past {
                let entry = entries.entry(lock.key).or_default();
                let own = |waiter: &&mut Waiter| waiter.session == self.session;
                if let Some(waiter) = entry.waiters.iter_mut().find(own) {
                    waiter.first = true;
                }
                continue;
            }
            // It may have been released since the look.
            let entry = entries.entry(lock.key).or_default();
            if entry.in_the_way(self.session, lock.shared) == (holders, before) {
                (entries, _) = self.locks.released.wait_timeout(entries, LOOK);
            }
        }
    }

    /// Releases a lock of the session; false if it has none such.
    pub fn release(&self, lock: AdvisoryLock) -> bool {
        let mut statement = self.statement.borrow_mut();
        let before = &mut statement.released_before;
        if let Some(at) = before.iter().position(|released| *released == lock) {
            before.swap_remove(at);
            statement.released.push(lock);
            return true;
        }
        if !self.locks.release(self.session, lock) {
            return false;
        }
        // What the statement itself has taken is not there to be given back any more.
        match statement.taken.iter().rposition(|taken| *taken == lock) {
            Some(at) => {
                statement.taken.remove(at);
            }
            None => statement.released.push(lock),
        }
        true
    }

    /// Releases all locks of the session.
    pub fn release_all(&self) {
        self.statement.borrow_mut().taken.clear();
        self.locks.release_all(self.session, false);
    }
}

impl Drop for HeldAdvisory {
    fn drop(&mut self) {
        self.release_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(key: i64, shared: bool) -> AdvisoryLock {
        AdvisoryLock {
            key: AdvisoryKey::Long(key),
            shared,
            of_transaction: false,
        }
    }

    #[test]
    fn who_shares_waits_behind_who_waits_for_it_alone() {
        let mut entry = Entry::default();
        entry.grant(1, lock(5, true));
        entry.waiters.push(Waiter {
            session: 2,
            shared: false,
            since: Timestamp(0),
            first: false,
        });
        assert_eq!(entry.in_the_way(3, true), (vec![], vec![2]));
        assert_eq!(entry.in_the_way(2, false), (vec![1], vec![]));
        // The second waits for what the first holds: the first need not wait for it.
        assert_eq!(entry.in_the_way(1, false), (vec![], vec![]));
    }

    #[test]
    fn a_lock_is_released_as_often_as_it_was_taken() {
        let mut entry = Entry::default();
        entry.grant(1, lock(5, false));
        entry.grant(1, lock(5, false));
        assert!(entry.release(1, lock(5, false)));
        assert!(!entry.is_empty());
        assert!(!entry.release(1, lock(5, true)), "in another way");
        assert!(entry.release(1, lock(5, false)));
        assert!(entry.is_empty());
    }
}
