//! Chains and trees that nobody keeps: a transaction made them and its operation failed, or a rollback listed them again; or they were on the list as the
//! database was opened, and could not be freed then.
//!
//! States of one: being reverted (a row of its transaction may still refer to it) --[`VersionStore::free_given_up`], or the
//! end of the transaction--> without an owner --> freed. What cannot be freed when it loses its owner is freed by maintenance; what cannot be read is
//! tried again by maintenance, after ever more of its steps (V59).
//!
//! Invariants:
//! - V56 Freeing takes nothing of what a live transaction has set aside for its rollback: it is `Purpose::Optional`, and waits
//!   for nobody. (As a database is opened there is no such transaction.)
//! - V57 A tree goes before the chains that its transaction gave up: no row of a listed tree refers to a page that is free. One
//!   frees at a time, so a tree is on the list or gone, never on the way. What was on the list as the database was opened counts as one transaction's: a crash
//!   leaves a dropped tree with a row that still refers to a chain that is listed itself (`pending`), and whoever frees that chain first frees it twice.
//! - V71 A chain has one place: a row of a dropped tree, [`VersionStore::ownerless`], or here. Who takes it from a row takes it out of here before it is
//!   freed. So nobody asks the list whether a chain is still there, whose root may be that of another, which is listed.
//!
//! Concurrency: the list has its own mutex, held for a look. `freeing` is held while pages are freed; a transaction that finds
//! it taken leaves its own to maintenance and never waits.
//!
//! Crash: everything here is listed in `pending_free` (V18), and recovery frees what is.

use crate::collect::Patience;
use crate::error::concerns_one;
use crate::pending::PendingKind;
use crate::store::{SlotVersions, VersionStore};
use std::sync::OnceLock;
use vellum_base::{PageId, Result, StorageError, Timestamp};
use vellum_sync::Mutex;
use vellum_txn::Transaction;
use vellum_wal::{Purpose, SlotLog};

/// Stands for who gave up what was listed as the database was opened.
const BEFORE: Timestamp = Timestamp::ZERO;
/// Stands for who gave up a chain that no row of a listed tree refers to.
const NOBODY: Timestamp = Timestamp::MAX;

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// The stamp of who made it, or what stands for it.
    by: Timestamp,
    root: PageId,
    kind: PendingKind,
    /// No row refers to it, whatever its maker is doing.
    ownerless: bool,
    /// Something of it could not be read.
    failed: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    items: Mutex<Vec<Item>>,
    /// Held by who frees: when those that failed are tried again.
    freeing: Mutex<Patience>,
}

/// What came of freeing.
#[derive(Debug, Default)]
struct Freed {
    /// There was something to free.
    any: bool,
    first: Option<StorageError>,
    /// What ended it before all were tried: the others are no better off.
    over: Option<StorageError>,
}

impl GivenUp {
    fn add(&self, by: Timestamp, root: PageId, kind: PendingKind, ownerless: bool) {
        self.items.lock().push(Item {
            by,
            root,
            kind,
            ownerless,
            failed: false,
        });
    }

    /// A chain that is listed, and that no row refers to any more, cannot be read.
    pub fn add_chain(&self, root: PageId) {
        self.add(NOBODY, root, PendingKind::Chain, true);
    }

    /// V71: a chain is freed by who frees the dropped tree with its row.
    pub fn forget_chain(&self, root: PageId) {
        self.items
            .lock()
            .retain(|item| item.kind != PendingKind::Chain || item.root != root);
    }

    /// Takes those without an owner off the list, trees or (V57) chains. For who holds `freeing`. `retries`: those that failed, too.
    fn take_ownerless(&self, trees: bool, retries: bool) -> Vec<Item> {
        let is_tree = |item: &Item| item.kind != PendingKind::Chain;
        let mut items = self.items.lock();
        let left = items.iter().filter(|item| item.ownerless && is_tree(item));
        let owners_of_trees: Vec<Timestamp> = left.map(|item| item.by).collect();
        let is_due = |item: &mut Item| {
            item.ownerless
                && is_tree(item) == trees
                && (retries || !item.failed)
                && (trees || !owners_of_trees.contains(&item.by))
        };
        items.extract_if(.., is_due).collect()
    }

    pub fn has_failed(&self) -> bool {
        self.items.lock().iter().any(|item| item.failed)
    }
}

impl VersionStore {
    /// True while garbage that could not be read waits to be tried again, after ever more steps of collection: that steps succeed meanwhile does not
    /// mean that it is gone. Waits for collectors that are at work; for who tells of a failure.
    pub fn has_unreadable_garbage(&self) -> bool {
        let set_aside = |versions: &SlotVersions| {
            let collecting = versions.collecting.lock();
            collecting.done.patience.has_failed() || collecting.held.has_failed()
        };
        self.given_up().has_failed() || self.slots().iter().filter_map(OnceLock::get).any(set_aside)
    }

    /// Notes that `transaction` made this chain or tree, which is listed, and does not adopt it: it is to be freed once no
    /// row of the transaction refers to it.
    pub fn give_up(&self, transaction: &Transaction, root: PageId, kind: PendingKind) {
        if let Ok(stamp) = transaction.stamp() {
            self.given_up().add(stamp, root, kind, false);
        }
    }

    /// The same of one that a rollback listed again. The row that refers to it may be reverted later.
    pub(crate) fn relisted(&self, by: Timestamp, root: PageId, kind: PendingKind) {
        self.given_up().add(by, root, kind, false);
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
        if any && let Some(mut patience) = self.given_up().freeing.try_lock() {
            let log = transaction.domain().log().slot(transaction.slot());
            self.free_all(&mut patience, false, log, Purpose::Optional);
        }
    }

    /// Frees what nobody owns, and what transactions have given up that are none of `live()`. True if there was anything.
    ///
    /// # Errors
    /// The first error of one that could not be freed; the others are. It is still listed, and tried again by a later call, after ever more of them. `OutOfSpace`
    /// ends the call: the rest will not fit into the log either. So does a lack of memory.
    pub fn free_ownerless_and(
        &self,
        live: impl FnOnce() -> Vec<Timestamp>,
        log: &SlotLog,
    ) -> Result<bool> {
        let mut patience = self.given_up().freeing.lock();
        {
            let mut items = self.given_up().items.lock();
            if items.is_empty() {
                return Ok(false);
            }
            // Asked after the list was latched: who is on it and not live has ended.
            let live = live();
            for item in &mut *items {
                item.ownerless |= !live.contains(&item.by);
            }
        }
        let retries = patience.is_over(false);
        let freed = self.free_all(&mut patience, retries, log, Purpose::Optional);
        freed.first.map_or(Ok(freed.any), Err)
    }

    /// Frees all that is listed, as a database is opened: no committed row refers to it. What cannot be read stays listed, and is tried again by
    /// maintenance ([`VersionStore::free_ownerless_and`]), which tells the error: it keeps neither the others nor the database.
    ///
    /// # Errors
    /// Of the list itself: I/O, `Corruption`. What nobody gets past: log space, a lack of memory, a failed flush.
    pub fn free_all_listed(&self, log: &SlotLog, purpose: Purpose) -> Result<()> {
        for (root, kind) in self.listed()? {
            self.given_up().add(BEFORE, root, kind, true);
        }
        let mut patience = self.given_up().freeing.lock();
        let freed = self.free_all(&mut patience, false, log, purpose);
        freed.over.map_or(Ok(()), Err)
    }

    /// Frees what has no owner. For who holds `freeing`. `retries`: also what could not be read before.
    fn free_all(
        &self,
        patience: &mut Patience,
        retries: bool,
        log: &SlotLog,
        purpose: Purpose,
    ) -> Freed {
        let given_up = self.given_up();
        let mut freed = Freed::default();
        // V57. Chains are on the list meanwhile (V71).
        for trees in [true, false] {
            let items = given_up.take_ownerless(trees, retries);
            freed.any |= !items.is_empty();
            let mut left = Vec::new();
            for mut item in items {
                if freed.over.is_some() {
                    left.push(item);
                    continue;
                }
                // V56.
                let Err(error) = self.free_listed(item.root, item.kind, log, purpose) else {
                    continue;
                };
                if concerns_one(&error) {
                    item.failed = true;
                } else {
                    freed.over = Some(error.clone());
                }
                freed.first.get_or_insert(error);
                left.push(item);
            }
            given_up.items.lock().extend(left);
        }
        let failed = given_up.has_failed();
        if retries {
            patience.end_round(failed);
        } else if failed {
            patience.fail();
        }
        freed
    }
}
