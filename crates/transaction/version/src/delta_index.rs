//! One of a slot's two delta indexes: before-images by the name of the version that replaced what they are of, and their accounts.
//!
//! Paper: LeanStore §3.3 (one index a slot). Here a slot has two: one for deltas that are needed as long as some snapshot is older than
//! them, and one for those that are transient (`shortcut`), which go a few thousand transactions later although an old snapshot holds the
//! others back. In one index they would stand between those that stay, so that each transaction writes to pages that are in no cache; by
//! themselves they are few at any time, and the pages that are given up take the next ones.
//!
//! Invariants:
//! - V76 The delta of version N is in the transient index if the header of N has a shortcut that is no link to N; in the other one
//!   where it has none, or one to N ([`Header::delta`](crate::row::Header::delta)). So who comes by a header knows where to look. A row that turns fat and back has
//!   no shortcuts from then on: who has copied a header before finds what was there, as if he had been faster, or nothing, and reads the row again. A copy that a fat
//!   row names is in the index of those that stay, where it is put while the row may still stay what it is: beside the transient one, which goes with the change of the row. (Where
//!   the row stays, nobody comes to the copy: its version has a shortcut. It goes when everyone sees that version.)
//! - V77 Nothing is put into the transient index but by its slot's transaction, at the right edge: a name that was taken out of it does
//!   not come back.
//!
//! Concurrency: the right edge is behind a mutex, which each append holds while it waits for a page. All else goes by leaves' latches.

use crate::accounts::{Accounts, Totals};
use crate::delta::{self, Home};
use crate::error::{FirstError, damaged};
use crate::store::take_temporary;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use vellum_base::{PageId, Result, Timestamp};
use vellum_btree::{Appender, LeafHints, LeafWrite, Logging, Tree};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Mutex, MutexGuard};
use vellum_txn::VersionStamp;

/// A delta index.
#[derive(Debug)]
pub(crate) struct DeltaIndex {
    /// By `delta::key`.
    pub tree: Tree,
    /// Where the slot's transaction appends (V6: nobody waits for it).
    edge: Mutex<Edge>,
    /// What is in it: readable while the edge's owner waits for a page.
    totals: Arc<Totals>,
    /// Below this stamp all was taken out, but for what a lazy collection may leave.
    collected: AtomicU64,
}

/// The right edge of a delta index, and what the index holds.
#[derive(Debug)]
struct Edge {
    appender: Appender,
    accounts: Accounts,
    bounds: Bounds,
}

/// What is known of the bounds of transient deltas without a look at them.
#[derive(Debug)]
struct Bounds {
    /// The stamp of the newest one.
    newest: Timestamp,
    /// Those of later stamps than this ...
    behind: Timestamp,
    /// ... have bounds at or above this.
    least: Timestamp,
}

/// A before-image of a slot, to be taken out by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Named {
    /// In which of the slot's indexes it is.
    pub home: Home,
    /// Its `delta::key`.
    pub name: [u8; delta::KEY_BYTES],
    /// The index that it is of, for the accounts.
    pub tree: PageId,
}

/// Leaves of a delta index that should be joined with a neighbour, by names that are theirs.
type Small = SmallVec<[usize; 16]>;

impl AsRef<[u8]> for Named {
    fn as_ref(&self) -> &[u8] {
        &self.name
    }
}

impl DeltaIndex {
    /// An empty one in this tree.
    pub fn new(tree: Tree) -> Self {
        let accounts = Accounts::new();
        Self {
            totals: accounts.totals(),
            edge: Mutex::new(Edge {
                appender: tree.appender(),
                accounts,
                bounds: Bounds {
                    newest: Timestamp::ZERO,
                    behind: Timestamp::ZERO,
                    least: Timestamp::MAX,
                },
            }),
            collected: AtomicU64::new(0),
            tree,
        }
    }

    /// Adds the before-image of a new version of a row of `tree`.
    #[inline]
    pub fn append(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        self.append_to_edge(tree, name, entry).map(drop)
    }

    #[inline]
    fn append_to_edge(
        &self,
        tree: PageId,
        name: &VersionStamp,
        entry: &[u8],
    ) -> Result<MutexGuard<'_, Edge>> {
        let key = delta::key(name.stamp, name.command);
        let mut edge = self.edge.lock();
        edge.appender.append(&key, &[entry], Logging::None, None)?;
        edge.accounts
            .add(tree, name.stamp, delta::is_full(entry), entry.len());
        Ok(edge)
    }

    /// As [`DeltaIndex::append`], a transient one.
    #[inline]
    pub fn append_transient(&self, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        let transient = delta::transient(entry);
        let (tree, bound) =
            transient.ok_or_else(|| damaged("transient delta", self.tree.root()))?;
        let bounds = &mut self.append_to_edge(tree, name, entry)?.bounds;
        debug_assert!(bounds.newest <= name.stamp, "one after the other");
        bounds.newest = name.stamp;
        bounds.least = bounds.least.min(bound);
        Ok(())
    }

    /// The stamp above which all transient deltas that are there have bounds at or above `bound` (V78). Those up to it have to be looked at one by one.
    pub fn transient_above(&self, bound: Timestamp) -> Timestamp {
        let edge = &mut *self.edge.lock();
        let bounds = &mut edge.bounds;
        if bounds.least < bound {
            (bounds.behind, bounds.least) = (bounds.newest, Timestamp::MAX);
            edge.accounts.close(bounds.behind);
        }
        bounds.behind
    }

    /// Takes transient deltas out without a look at them, whose keys are at or above `from` and whose stamps are below `dead`: whole leaves, two or
    /// more at a time, and whole epochs of the accounts, so that some stay. Those of stamps above `behind` are forgotten here all the same. False if there are more; and how many are forgotten.
    pub fn take_within(
        &self,
        behind: Timestamp,
        from: &[u8],
        dead: Timestamp,
        pages: usize,
    ) -> Result<(bool, u64)> {
        let dead = self.account(|accounts| accounts.whole_below(dead));
        let key = delta::key(dead, 0);
        let done = self.tree.remove_most_between(from, &key, pages, None)?;
        let mut count = 0;
        if done {
            count = self.edge.lock().accounts.forget_within(behind, dead);
        }
        Ok((done, count))
    }

    /// Puts a before-image where it belongs, or in the place of the one of that name.
    pub fn put(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        let key = delta::key(name.stamp, name.command);
        let replaced = loop {
            let mut leaf = self.tree.write(&key)?;
            if !leaf.fits(entry.len()) {
                drop(leaf);
                self.tree.make_room(&key, entry.len(), None)?;
                continue;
            }
            if !leaf.found() {
                leaf.insert(&[entry], Logging::None);
                break None;
            }
            let replaced = described(&leaf);
            leaf.replace(&[entry], Logging::None);
            break Some(replaced);
        };
        let mut edge = self.edge.lock();
        if let Some((full, length)) = replaced {
            edge.accounts.forget(tree, name.stamp, full, length);
        }
        edge.accounts
            .add(tree, name.stamp, delta::is_full(entry), entry.len());
        Ok(())
    }

    /// Takes a before-image out by its name; false if it is not there. It is out of the accounts, too, then.
    pub fn take(&self, tree: PageId, name: &VersionStamp, hints: &mut LeafHints) -> Result<bool> {
        let key = delta::key(name.stamp, name.command);
        let taken = take_temporary(&self.tree, &key, hints, described)?;
        if let Some((full, length)) = taken {
            let mut edge = self.edge.lock();
            edge.accounts.forget(tree, name.stamp, full, length);
        }
        Ok(taken.is_some())
    }

    /// Takes before-images out by their names, which ascend; some may not be there. Those of a leaf at once: much less work than
    /// [`DeltaIndex::take`] for each. Returns how many are gone.
    ///
    /// `joins`: leaves that become small, or empty, are joined with a neighbour: once all are done, for
    /// two that are empty are joined for next to nothing, and one that is empty with one that is about to be for all that it has.
    ///
    /// # Errors
    /// The first one. Those whose leaf cannot be read stay; the others are gone, but where memory or space ran out (V59).
    pub fn take_each(&self, names: &[Named], joins: bool) -> crate::Result<u64> {
        let mut small = Small::new();
        let taken = self.take_from_leaves(names, &mut small);
        // V59.
        let mut first = FirstError::default();
        for at in small.into_iter().filter(|_| joins) {
            let joined = self.tree.join_if_possible(&names[at].name, None);
            first.note(joined.map_err(Into::into));
        }
        let taken = taken?;
        first.into_result().map(|()| taken)
    }

    /// Returns how many are gone. Leaves that have just become small, or are empty, come to `small`, each by the place of a name that is theirs.
    fn take_from_leaves(&self, names: &[Named], small: &mut Small) -> crate::Result<u64> {
        debug_assert!(names.is_sorted_by(|a, b| a.name < b.name));
        let (mut taken, mut done) = (0, 0);
        // V59.
        let mut first = FirstError::default();
        while done < names.len() {
            let mut gone: SmallVec<[(usize, bool, usize); 32]> = SmallVec::new();
            let mut leaf = match self.tree.write(&names[done].name) {
                Ok(leaf) => leaf,
                Err(error) => {
                    first.note_of_one::<()>(Err(error.into()))?;
                    done += self.of_one_leaf(&names[done..]);
                    continue;
                }
            };
            let before = leaf.fill();
            let seen = leaf.remove_each(&names[done..], |index, kind, length| {
                gone.push((done + index, delta::is_full(&[kind]), length));
                true
            });
            if leaf.should_join(before) {
                small.push(done);
            }
            drop(leaf);
            let gone = gone.into_iter();
            taken += gone.len() as u64;
            self.edge
                .lock()
                .accounts
                .forget_each(gone.map(|(index, full, length)| {
                    let Named { tree, ref name, .. } = names[index];
                    let stamp = delta::decode_key(name).map_or(Timestamp::ZERO, |it| it.0);
                    (tree, stamp, full, length)
                }));
            // Once more for what is in the next leaf.
            done += seen.max(1);
        }
        first.into_result().map(|()| taken)
    }

    /// How many of `names` belong to the leaf of the first, which cannot be read: to read it again for each would cost as many reads.
    #[cold]
    fn of_one_leaf(&self, names: &[Named]) -> usize {
        let keys: SmallVec<[&[u8]; 32]> = names.iter().map(|it| &it.name[..]).collect();
        let mut leaves: SmallVec<[PageId; 32]> = smallvec![PageId::ZERO; keys.len()];
        self.tree.find_leaves(&keys, &mut leaves);
        let first = leaves.first().filter(|leaf| !leaf.is_zero());
        let same = leaves.iter().take_while(|leaf| Some(*leaf) == first);
        same.count().max(1)
    }

    /// Takes the before-images of stamps below `dead` out, whole leaves at a time; false if there are more. `lazy`: those
    /// in the leaves of the last ones may stay. They are forgotten here all the same: who is counted is who is needed.
    pub fn take_below(&self, dead: Timestamp, pages: usize, lazy: bool) -> Result<bool> {
        // Relaxed: one collector at a time (V15).
        if lazy && dead.get() <= self.collected.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let key = delta::key(dead, 0);
        let done = if lazy {
            self.tree.remove_most_below(&key, pages, None)?
        } else {
            self.tree.remove_below(&key, pages, None)?
        };
        if done {
            self.collected.fetch_max(dead.get(), Ordering::Relaxed);
            self.edge.lock().accounts.forget_below(dead);
        }
        Ok(done)
    }

    /// How many there are, and of which kind.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Looks at the accounts.
    pub fn account<R>(&self, look: impl FnOnce(&Accounts) -> R) -> R {
        look(&self.edge.lock().accounts)
    }
}

/// Whether the before-image that the leaf is positioned at is a full copy, and its length.
fn described(leaf: &LeafWrite<'_, '_>) -> (bool, usize) {
    let mut kind = [0; 1];
    let length = leaf.payload_len();
    leaf.payload_read(0, &mut kind[..length.min(1)]);
    (delta::is_full(&kind), length)
}
