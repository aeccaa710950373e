//! Chains and trees that a transaction made and does not keep: an operation failed, or a rollback listed them again.
//!
//! States of one: being reverted (a row of its transaction may still refer to it) --[`VersionStore::free_given_up`], or the
//! end of the transaction--> without an owner --> freed. What cannot be freed when it loses its owner is freed by maintenance.
//!
//! Invariants:
//! - V56 Freeing takes nothing of what a live transaction has set aside for its rollback: it is `Purpose::Optional`, and waits
//!   for nobody.
//! - V57 A tree goes before the chains that its transaction gave up: no row of a listed tree refers to a page that is free. One
//!   frees at a time, so a tree is on the list or gone, never on the way.
//!
//! Concurrency: the list has its own mutex, held for a look. `freeing` is held while pages are freed; a transaction that finds
//! it taken leaves its own to maintenance and never waits.
//!
//! Crash: everything here is listed in `pending_free` (V18), and recovery frees what is.

use crate::pending::PendingKind;
use crate::store::VersionStore;
use vellum_base::{PageId, Result, StorageError, Timestamp};
use vellum_sync::Mutex;
use vellum_txn::Transaction;
use vellum_wal::{Purpose, SlotLog};

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// The stamp of who made it.
    by: Timestamp,
    root: PageId,
    kind: PendingKind,
    /// No row refers to it, whatever its maker is doing.
    ownerless: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    items: Mutex<Vec<Item>>,
    freeing: Mutex<()>,
}

impl GivenUp {
    fn add(&self, by: Timestamp, root: PageId, kind: PendingKind) {
        self.items.lock().push(Item {
            by,
            root,
            kind,
            ownerless: false,
        });
    }

    /// Takes those without an owner off the list, trees first. For who holds `freeing`.
    fn take_ownerless(&self) -> Vec<Item> {
        let mut taken = Vec::new();
        self.items.lock().retain(|item| {
            if item.ownerless {
                taken.push(*item);
            }
            !item.ownerless
        });
        taken.sort_by_key(|item| item.kind == PendingKind::Chain);
        taken
    }
}

impl VersionStore {
    /// Notes that `transaction` made this chain or tree, which is listed, and does not adopt it: it is to be freed once no
    /// row of the transaction refers to it.
    pub fn give_up(&self, transaction: &Transaction, root: PageId, kind: PendingKind) {
        if let Ok(stamp) = transaction.stamp() {
            self.given_up().add(stamp, root, kind);
        }
    }

    /// The same of one that a rollback listed again. The row that refers to it may be reverted later.
    pub(crate) fn relisted(&self, by: Timestamp, root: PageId, kind: PendingKind) {
        self.given_up().add(by, root, kind);
    }

    /// Frees what `transaction` has given up, no row of which refers to it: the caller has reverted all that did. What cannot
    /// be freed now, for whatever reason, is left to maintenance ([`VersionStore::free_ownerless_and`]).
    pub fn free_given_up(&self, transaction: &Transaction) {
        let Ok(stamp) = transaction.stamp() else {
            return;
        };
        let mut any = false;
        for item in &mut *self.given_up().items.lock() {
            if item.by == stamp {
                (item.ownerless, any) = (true, true);
            }
        }
        if any && let Some(_one) = self.given_up().freeing.try_lock() {
            let log = transaction.domain().log().slot(transaction.slot());
            let _ = self.free_all(self.given_up().take_ownerless(), log);
        }
    }

    /// Frees what nobody owns, and what transactions have given up that are none of `live()`. True if there was anything.
    ///
    /// # Errors
    /// The first error of one that could not be freed; the others are. It is still listed: call again. `OutOfSpace` ends the
    /// call: the rest will not fit into the log either.
    pub fn free_ownerless_and(
        &self,
        live: impl FnOnce() -> Vec<Timestamp>,
        log: &SlotLog,
    ) -> Result<bool> {
        let _one = self.given_up().freeing.lock();
        let taken = {
            let mut items = self.given_up().items.lock();
            if items.is_empty() {
                return Ok(false);
            }
            // Asked after the list was latched: who is on it and not live has ended.
            let live = live();
            for item in &mut *items {
                item.ownerless |= !live.contains(&item.by);
            }
            drop(items);
            self.given_up().take_ownerless()
        };
        self.free_all(taken, log)
    }

    /// For who holds `freeing`.
    fn free_all(&self, items: Vec<Item>, log: &SlotLog) -> Result<bool> {
        let any = !items.is_empty();
        let (mut left, mut owners_of_trees) = (Vec::new(), Vec::new());
        let (mut first, mut over) = (None, false);
        for item in items {
            // V57: trees came first.
            if over || item.kind == PendingKind::Chain && owners_of_trees.contains(&item.by) {
                left.push(item);
                continue;
            }
            // V56.
            if let Err(error) = self.free_listed(item.root, item.kind, log, Purpose::Optional) {
                over = matches!(
                    error,
                    StorageError::OutOfSpace { .. } | StorageError::Poisoned
                );
                first = first.or(Some(error));
                if item.kind != PendingKind::Chain {
                    owners_of_trees.push(item.by);
                }
                left.push(item);
            }
        }
        self.given_up().items.lock().extend(left);
        first.map_or(Ok(any), Err)
    }
}
