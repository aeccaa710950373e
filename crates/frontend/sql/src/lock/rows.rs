//! Locks on rows that no version stands for: FOR UPDATE, FOR SHARE and their like, and a foreign key's hold on its target.
//!
//! Invariants:
//! - L1 Locks of two transactions on one row go together ([`Strength::conflicts`]).
//! - L2 A writer places its version, then looks for locks; a locker enters its lock, then looks for versions. Each with a
//!   sequentially consistent fence between: one of them sees the other (a Dekker pair).
//! - L3 `Runtime::row_locks` counts the locks on rows of a relation and on entries of its indexes: where it is zero a
//!   writer looks no further.
//!
//! Concurrency: a map in parts, each under its latch, held for one look. Locks are the transaction's until it ends, or until it rolls
//! back to a savepoint from before.

use super::Waits;
use crate::catalog::{Oid, Runtime};
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use vellum::TransactionId;
use vellum_base::maps::HashMap;
use vellum_sync::Mutex;
use vellum_sync::atomic::{Ordering, fence};

/// Parts of the map.
const PARTS: usize = 64;

/// How strong a lock is. What changes a row has a strength, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Strength {
    /// The row stays, with its key: a foreign key's hold.
    KeyShare,
    /// The row stays as it is.
    Share,
    /// It is going to change, but not in a key; an UPDATE that leaves keys alone.
    NoKeyUpdate,
    /// It is going to change or to go; a DELETE.
    Update,
}

impl Strength {
    /// As SQL says it.
    pub fn words(self) -> &'static str {
        match self {
            Self::KeyShare => "KEY SHARE",
            Self::Share => "SHARE",
            Self::NoKeyUpdate => "NO KEY UPDATE",
            Self::Update => "UPDATE",
        }
    }

    /// Whether two transactions cannot hold these on one row.
    pub fn conflicts(self, other: Self) -> bool {
        match self.min(other) {
            Self::KeyShare => self.max(other) == Self::Update,
            Self::Share => self.max(other) >= Self::NoKeyUpdate,
            Self::NoKeyUpdate | Self::Update => true,
        }
    }
}

/// A row of a table, or an entry of a unique index, by its engine key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RowName {
    /// Of the table, or of the index.
    pub oid: Oid,
    pub key: Box<[u8]>,
}

type Holders = Vec<(TransactionId, Strength)>;

/// All of them.
#[derive(Debug)]
pub(crate) struct RowLocks {
    parts: Box<[Mutex<HashMap<RowName, Holders>>]>,
}

impl Default for RowLocks {
    fn default() -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl RowLocks {
    fn part(&self, name: &RowName) -> &Mutex<HashMap<RowName, Holders>> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        &self.parts[hasher.finish() as usize % PARTS]
    }

    /// Who holds what does not go with `strength`, `own` left out.
    pub fn blockers(
        &self,
        name: &RowName,
        own: TransactionId,
        strength: Strength,
    ) -> Vec<TransactionId> {
        let part = self.part(name).lock();
        part.get(name)
            .map_or_else(Vec::new, |holders| in_the_way(holders, own, strength))
    }

    /// All that are held: what is locked, by whom, how strongly.
    pub fn all(&self) -> Vec<(RowName, TransactionId, Strength)> {
        let mut all = Vec::new();
        for part in &self.parts {
            for (name, holders) in &*part.lock() {
                let holders = holders.iter();
                all.extend(holders.map(|(id, strength)| (name.clone(), *id, *strength)));
            }
        }
        all
    }

    fn release(&self, held: &Held, own: TransactionId) {
        let mut part = self.part(&held.name).lock();
        if let Some(holders) = part.get_mut(&held.name) {
            let at = holders
                .iter()
                .position(|holder| *holder == (own, held.strength));
            debug_assert!(at.is_some(), "what is held is in the map");
            if let Some(at) = at {
                holders.swap_remove(at);
            }
            if holders.is_empty() {
                part.remove(&held.name);
            }
        }
        held.runtime.row_locks.fetch_sub(1, Ordering::Release);
    }
}

fn in_the_way(
    holders: &[(TransactionId, Strength)],
    own: TransactionId,
    strength: Strength,
) -> Vec<TransactionId> {
    let others = holders.iter().filter(|(id, _)| *id != own);
    let conflicting = others.filter(|(_, held)| held.conflicts(strength));
    conflicting.map(|(id, _)| *id).collect()
}

/// A lock that a transaction holds.
#[derive(Debug)]
struct Held {
    name: RowName,
    strength: Strength,
    runtime: Arc<Runtime>,
}

/// The locks of a transaction, in the order in which it took them, and what it has told those that wait. Released, and forgotten, when dropped.
#[derive(Debug)]
pub(crate) struct HeldLocks {
    locks: Arc<RowLocks>,
    waits: Arc<Waits>,
    own: TransactionId,
    held: RefCell<Vec<Held>>,
    has_reverted: Cell<bool>,
}

impl HeldLocks {
    /// Those of a transaction that begins.
    pub fn new(locks: Arc<RowLocks>, waits: Arc<Waits>, own: TransactionId) -> Self {
        Self {
            locks,
            waits,
            own,
            held: RefCell::default(),
            has_reverted: Cell::new(false),
        }
    }

    /// Whose they are.
    pub fn own(&self) -> TransactionId {
        self.own
    }

    /// The map that they are in.
    pub fn locks(&self) -> &RowLocks {
        &self.locks
    }

    /// How many there are: a point to go back to.
    pub fn count(&self) -> usize {
        self.held.borrow().len()
    }

    /// Takes a lock (L1); false if others are in the way. What is looked at afterwards is looked at behind the fence of L2.
    pub fn take(&self, runtime: &Arc<Runtime>, name: &RowName, strength: Strength) -> bool {
        let mut part = self.locks.part(name).lock();
        let holders = part.entry(name.clone()).or_default();
        if !in_the_way(holders, self.own, strength).is_empty() {
            return false;
        }
        let enough = |(id, held): &(TransactionId, Strength)| *id == self.own && *held >= strength;
        if !holders.iter().any(enough) {
            holders.push((self.own, strength));
            runtime.row_locks.fetch_add(1, Ordering::SeqCst);
            self.held.borrow_mut().push(Held {
                name: name.clone(),
                strength,
                runtime: runtime.clone(),
            });
        }
        drop(part);
        fence(Ordering::SeqCst);
        true
    }

    /// Releases what was taken after there were `count`; whoever waits for that looks again.
    pub fn release_to(&self, count: usize) {
        let released = self.held.borrow_mut().split_off(count);
        for held in &released {
            self.locks.release(held, self.own);
        }
        if !released.is_empty() {
            let names: Vec<&RowName> = released.iter().map(|held| &held.name).collect();
            self.waits.released(self.own, &names);
        }
    }

    /// The transaction has reverted what these commands wrote, and goes on; whoever waits for that looks again.
    pub fn reverted(&self, commands: Range<u64>) {
        if !commands.is_empty() {
            self.has_reverted.set(true);
            self.waits.reverted(self.own, commands);
        }
    }

    /// Whether a writer that has placed its version must look for locks (L2, L3).
    pub fn must_look(runtime: &Runtime) -> bool {
        fence(Ordering::SeqCst);
        runtime.row_locks.load(Ordering::SeqCst) != 0
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        self.release_to(0);
        if self.has_reverted.get() {
            self.waits.forget(self.own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strengths_conflict_as_in_postgresql() {
        use Strength::{KeyShare, NoKeyUpdate, Share, Update};
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let expected = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (a, row) in all.into_iter().zip(expected) {
            for (b, conflict) in all.into_iter().zip(row) {
                assert_eq!(a.conflicts(b), conflict, "{a:?} {b:?}");
            }
        }
    }
}
