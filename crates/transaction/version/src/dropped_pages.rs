//! Pages of dropped trees that somebody still sees: how many, of what, and whose drop it was.
//!
//! Paper: none; versions.md ("version space is accounted").
//!
//! States of an account: *listed* (the drop is on a list of work) --committed, [`VersionStore::count_dropped`]--> *counting* --the inner pages, then what the
//! rows refer to (only where the budget needs it: it reads every leaf)--> *counted* --first page that is given back--> *going* --the last one--> away. A drop that is reverted ends it in any state.
//!
//! Invariants:
//! - V69 What is counted of a tree is what there is of it: structure changes are told by the tree ([`Tree::watch`]), and new rows cannot come (T2 of `table`). Its
//!   chains change by a rollback only, and by being freed. Who reverts a row says, while its leaf is latched, which chain it referred to and which it refers to now: that counts
//!   where the row's key lies before what was counted; behind that it makes a look at a leaf void that is under way, which is taken again. (The look copies the leaf before the row is
//!   reverted, or after. Before: the row is said to be reverted while the look is under way, or once it is in the account. After: it counts what is there now, unless it had begun before, and then it is void.)
//!   A tree that goes before it was counted counts nothing: nobody holds it.
//!
//! - V70 A tree is kept for a holder that has a snapshot which does not see the drop, and one that sees who made it: for no other does it stay, once that is analytical. A tree
//!   that goes is kept for nobody, nor is any while a writer is hidden (V22).
//!
//! Concurrency: the mutex is innermost but for the trees that are watched, held for a look; a rollback takes it with its leaf latched. Pages are looked at under `dropped`, shared, so that none goes meanwhile; one at a time
//! counts (the engine's maintenance). Crash: nothing is kept: what is pending is freed.

use crate::accounts::Tally;
use crate::collect::Patience;
use crate::error::{FirstError, Result, VersionError, damaged};
use crate::row;
use crate::store::VersionStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::PageId;
use vellum_btree::overflow::ChainRef;
use vellum_btree::{LeafCopy, PageCount, Seek, Tree, TreeKind};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_txn::{Domain, Holder, VersionStamp};

/// How far a tree was counted.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    Listed,
    /// Through its inner pages.
    Inner(PageCount),
    /// Through the leaves before this key, for the chains of their rows.
    Chains(Vec<u8>),
    Counted,
    Going,
}

/// What is counted first: the pages of all trees, then what their rows refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Inner,
    Chains,
}

/// What is known of a dropped tree.
#[derive(Debug)]
struct Account {
    by: VersionStamp,
    /// `None`: every snapshot sees who made it.
    made_by: Option<VersionStamp>,
    table: Arc<str>,
    stage: Stage,
    /// Bytes of the pages of the chains that its rows refer to, as far as they were counted.
    chain_bytes: u64,
    /// A row at or behind where the count of chains stands was reverted since a leaf was looked at last, or is looked at.
    reverted: bool,
    /// A page of it could not be read.
    patience: Patience,
}

impl Account {
    /// Whether there is something of this part to be counted.
    fn is_due(&self, part: Part) -> bool {
        match part {
            Part::Inner => matches!(self.stage, Stage::Listed | Stage::Inner(_)),
            Part::Chains => matches!(self.stage, Stage::Chains(_)),
        }
    }

    /// The stage that a look begins at. That of a count of chains stays where it is meanwhile: rollbacks ask how far it has come.
    fn begin_look(&mut self) -> Stage {
        match &self.stage {
            Stage::Chains(from) => {
                self.reverted = false;
                Stage::Chains(from.clone())
            }
            Stage::Listed | Stage::Inner(_) => std::mem::take(&mut self.stage),
            Stage::Counted => Stage::Counted,
            Stage::Going => Stage::Going,
        }
    }
}

/// A dropped tree, for who adds them up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DroppedTree {
    pub root: PageId,
    by: VersionStamp,
    made_by: Option<VersionStamp>,
    /// Its pages, with those of its rows' chains.
    pub pages: Tally,
    /// Its pages are being given back.
    goes: bool,
}

impl DroppedTree {
    /// V70, where no writer is hidden. Who is not analytical keeps what it does not see, too.
    pub fn is_kept_for(&self, domain: &Domain, holder: &Holder) -> bool {
        let sees = |version: &VersionStamp| domain.is_committed_before(version, holder.newest);
        !self.goes
            && !domain.is_committed_before(&self.by, holder.oldest)
            && (!holder.olap || self.made_by.as_ref().is_none_or(sees))
    }
}

/// The accounts of dropped trees, by root page.
#[derive(Debug, Default)]
pub(crate) struct DroppedPages {
    accounts: Mutex<BTreeMap<PageId, Account>>,
    /// There are some: for rollbacks, which ask with each row. Relaxed: who drops a tree does so long before its pages are counted; a stale "no" would cost the bytes of a chain.
    any: AtomicBool,
}

impl DroppedPages {
    /// `by` drops a tree of this table, which `made_by` has made.
    pub fn add(
        &self,
        root: PageId,
        by: VersionStamp,
        made_by: Option<VersionStamp>,
        table: &Arc<str>,
    ) {
        let account = Account {
            by,
            made_by,
            table: table.clone(),
            stage: Stage::default(),
            chain_bytes: 0,
            reverted: false,
            patience: Patience::default(),
        };
        self.accounts.lock().insert(root, account);
        self.any.store(true, Ordering::Relaxed);
    }

    /// True while pages of one could not be counted, and wait to be looked at again.
    pub fn has_failed(&self) -> bool {
        let accounts = self.accounts.lock();
        accounts
            .values()
            .any(|account| account.patience.has_failed())
    }

    /// The first page of it is given back.
    pub fn goes(&self, root: PageId) {
        if let Some(account) = self.accounts.lock().get_mut(&root) {
            if !matches!(account.stage, Stage::Counted | Stage::Going) {
                account.chain_bytes = 0;
            }
            account.stage = Stage::Going;
        }
    }

    /// A chain of one of its rows is gone.
    pub fn chain_is_gone(&self, root: PageId, bytes: u64) {
        if let Some(account) = self.accounts.lock().get_mut(&root) {
            account.chain_bytes = account.chain_bytes.saturating_sub(bytes);
        }
    }

    /// Whether there is an account of this tree. For who has latched a leaf of it: where there is none, nobody has looked at this leaf yet, nor does before it is
    /// unlatched.
    #[inline]
    fn has(&self, root: PageId) -> bool {
        self.any.load(Ordering::Relaxed) && self.accounts.lock().contains_key(&root)
    }

    /// V69: a row of the tree was reverted, whose leaf is latched. It referred to a chain of `before` bytes, and refers to one of `after`; zero if to none.
    pub fn note_reverted(&self, root: PageId, key: &[u8], before: u64, after: u64) {
        let mut accounts = self.accounts.lock();
        let Some(account) = accounts.get_mut(&root) else {
            return;
        };
        let is_counted = match &account.stage {
            Stage::Chains(from) => key < from.as_slice(),
            Stage::Counted => true,
            // No chain is.
            Stage::Listed | Stage::Inner(_) | Stage::Going => return,
        };
        if is_counted {
            account.chain_bytes = (account.chain_bytes + after).saturating_sub(before);
        } else {
            account.reverted = true;
        }
    }

    /// A tree after `after` of which this part is to be counted, and who dropped it. One that could not be read comes again after 1, 2, 4 ... 256 steps.
    fn next(&self, after: PageId, part: Part) -> Option<(PageId, VersionStamp)> {
        let mut accounts = self.accounts.lock();
        for (root, account) in accounts.range_mut(PageId(after.get() + 1)..) {
            if !account.is_due(part) {
                continue;
            }
            if !account.patience.has_failed() || account.patience.is_over(false) {
                return Some((*root, account.by));
            }
        }
        None
    }

    fn with<R>(
        &self,
        (root, by): (PageId, VersionStamp),
        change: impl FnOnce(&mut Account) -> R,
    ) -> Option<R> {
        let mut accounts = self.accounts.lock();
        let account = accounts.get_mut(&root)?;
        (account.by == by).then(|| change(account))
    }
}

impl VersionStore {
    /// True while pages of a dropped tree could not be counted, and wait to be looked at again: as [`VersionStore::has_unreadable_garbage`].
    pub fn has_uncounted_pages(&self) -> bool {
        self.dropped_pages().has_failed()
    }

    /// Counts pages of dropped trees whose drop is committed, and which nobody gives back yet: goes through about `pages_max` pages, which are read
    /// from disk where need be; the inner pages of all trees before the leaves of any. True if there are more. One at a time calls.
    ///
    /// # Errors
    /// I/O, corruption: the first, once the other trees had their turn. A tree with a page that cannot be read counts as far as it was gone through, and is tried
    /// again later.
    pub fn count_dropped(&self, domain: &Domain, pages_max: usize) -> Result<bool> {
        let mut left = pages_max;
        let mut first = FirstError::default();
        for part in [Part::Inner, Part::Chains] {
            let mut at = PageId::ZERO;
            while let Some((root, by)) = self.dropped_pages().next(at, part) {
                at = root;
                // One that was reverted has no account from before its slot commits again: what is asked here is right, or the account is gone.
                if !domain.is_committed(&by) {
                    continue;
                }
                let tree = Tree::open(self.context(), root, TreeKind::Rows);
                while first
                    .note_of_one(self.count_page(&tree, by, part))?
                    .unwrap_or(false)
                {
                    if left == 0 {
                        return first.into_result().map(|()| true);
                    }
                    left -= 1;
                }
            }
        }
        first.into_result().map(|()| false)
    }

    /// Looks at one page of a tree; false if this part is counted, or is not to be.
    fn count_page(&self, tree: &Tree, by: VersionStamp, part: Part) -> Result<bool> {
        let name = (tree.root(), by);
        let dropped = self.dropped().read();
        if dropped.contains(tree.root()) {
            return Ok(false);
        }
        let chains = self.options().chains_of_dropped;
        let begun = self.dropped_pages().with(name, Account::begin_look);
        let Some(mut stage) = begun else {
            return Ok(false);
        };
        if matches!(stage, Stage::Listed) {
            tree.watch();
            stage = Stage::Inner(PageCount::default());
        }
        let mut bytes = 0;
        let result = match &mut stage {
            Stage::Inner(count) => match tree.count_pages(count, 1) {
                Ok(true) => {
                    stage = match chains {
                        true => Stage::Chains(Vec::new()),
                        false => Stage::Counted,
                    };
                    Ok(())
                }
                other => other.map(drop).map_err(VersionError::from),
            },
            Stage::Chains(from) => self.chains_of_leaf(tree, from).map(|(found, next)| {
                bytes = found;
                stage = next.map_or(Stage::Counted, Stage::Chains);
            }),
            Stage::Listed | Stage::Counted | Stage::Going => Ok(()),
        };
        let goes_on = match part {
            Part::Inner => matches!(stage, Stage::Inner(_)),
            Part::Chains => matches!(stage, Stage::Chains(_)),
        };
        vellum_sync::test_point!("dropped pages: between a page and its account");
        // Nobody has set another meanwhile: none goes, and the drop is committed.
        let is_void = self.dropped_pages().with(name, |account| {
            if result.is_err() || account.patience.has_failed() {
                account.patience.end_round(result.is_err());
            }
            // V69. The same leaf once more.
            let is_void = part == Part::Chains && std::mem::take(&mut account.reverted);
            if !is_void {
                account.chain_bytes += bytes;
                account.stage = stage;
            }
            is_void
        });
        result.map(|()| goes_on || is_void == Some(true))
    }

    /// Bytes of the pages of the chains that rows of the leaf at `from` refer to, and where the next leaf begins.
    fn chains_of_leaf(&self, tree: &Tree, from: &[u8]) -> Result<(u64, Option<Vec<u8>>)> {
        let page_size = self.context().page_size();
        let mut leaf = LeafCopy::new(page_size);
        tree.read_leaf(Seek::AtOrAfter(from), &mut leaf)?;
        let mut bytes = 0;
        for index in leaf.position()..leaf.len() {
            let newest = row::newest(leaf.payload(index));
            let (header, body) = newest.ok_or_else(|| damaged("row header", tree.root()))?;
            if header.shape.overflow {
                let chain = ChainRef::decode(body);
                let chain = chain.ok_or_else(|| damaged("chain reference", tree.root()))?;
                bytes += chain.bytes_of_pages(page_size);
            }
        }
        Ok((bytes, leaf.upper_fence().map(<[u8]>::to_vec)))
    }

    /// Whether the chains of rows of this tree are in an account, or will be: who reverts one says what becomes of its chain ([`DroppedPages::note_reverted`]).
    #[inline]
    pub(crate) fn counts_chains_of(&self, root: PageId) -> bool {
        self.options().chains_of_dropped && self.dropped_pages().has(root)
    }

    /// The dropped trees that are listed, as far as they are counted, and whether all are whose drop is committed.
    pub(crate) fn dropped_trees(&self, domain: &Domain) -> (Vec<DroppedTree>, bool) {
        vellum_sync::test_point!("dropped pages: all accounts are gone through");
        let mut uncounted = Vec::new();
        let accounts = self.dropped_pages().accounts.lock();
        let described = accounts.iter().map(|(root, account)| {
            // Also one whose page is looked at just now.
            if account.is_due(Part::Inner) || account.is_due(Part::Chains) {
                uncounted.push(account.by);
            }
            let pages = Tally {
                count: 0,
                bytes: account.chain_bytes,
            };
            DroppedTree {
                root: *root,
                by: account.by,
                made_by: account.made_by,
                pages,
                goes: matches!(account.stage, Stage::Going),
            }
        });
        let mut trees: Vec<_> = described.collect();
        drop(accounts);
        let page_size = self.context().page_size() as u64;
        for found in &mut trees {
            let tree = Tree::open(self.context(), found.root, TreeKind::Rows);
            found.pages.bytes += tree.watched_pages().unwrap_or(0) * page_size;
            found.pages.count = found.pages.bytes / page_size;
        }
        (trees, !uncounted.iter().any(|by| domain.is_committed(by)))
    }

    /// Pages of dropped trees that are not given back yet, with those of their rows' large values.
    pub fn dropped_total(&self, domain: &Domain) -> Tally {
        let mut total = Tally::default();
        for tree in self.dropped_trees(domain).0 {
            total.add(tree.pages);
        }
        total
    }

    /// V70: bytes of those pages that are kept for one of these at least.
    pub fn dropped_bytes_kept_for(&self, domain: &Domain, holders: &[Holder]) -> u64 {
        if domain.has_hidden_writer() {
            return 0;
        }
        let trees = self.dropped_trees(domain).0.into_iter();
        let kept = trees.filter(|tree| holders.iter().any(|it| tree.is_kept_for(domain, it)));
        kept.map(|it| it.pages.bytes).sum()
    }

    /// The table that a dropped tree belonged to.
    pub fn table_of_dropped(&self, root: PageId) -> Option<Arc<str>> {
        let accounts = self.dropped_pages().accounts.lock();
        accounts.get(&root).map(|account| account.table.clone())
    }

    /// Ends the account of a tree whose drop is reverted, or of the one that had this root page before.
    pub(crate) fn forget_dropped_pages(&self, root: PageId) {
        self.forget_account_if(root, |_| true);
    }

    /// Ends the account of a tree all of whose pages are given back: not that of another, which has its root page by now.
    pub(crate) fn forget_gone_pages(&self, root: PageId) {
        self.forget_account_if(root, |account| matches!(account.stage, Stage::Going));
    }

    fn forget_account_if(&self, root: PageId, ends: impl Fn(&Account) -> bool) {
        let accounts = self.dropped_pages();
        let mut all = accounts.accounts.lock();
        if !all.get(&root).is_some_and(ends) {
            return;
        }
        // First: the root may be that of another tree, which is dropped and watched as soon as it has an account.
        Tree::open(self.context(), root, TreeKind::Rows).unwatch();
        all.remove(&root);
        accounts.any.store(!all.is_empty(), Ordering::Relaxed);
    }
}
