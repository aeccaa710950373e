//! Giving back space: neighbours are joined when one is nearly empty, inner pages share children
//! when they cannot be joined, a root with one child takes its content back. A leaf takes an empty
//! one on its left also when it is not small itself: the empty one had no room for it while it was
//! full (`needs_prefix`; 0005, "The first leaf of a queue").
//!
//! Concurrency: as in `split`: parent, left and right are latched by upgrading optimistic reads,
//! parent first, left before right; nothing waits. All of this is optional work: after a few
//! lost races it is left to whoever comes next.

use crate::change::Change;
use crate::context::Journal;
use crate::descend::Target;
use crate::node::build::{Builder, Frame, entry, frame_of, join, lower_fence, upper_fence};
use crate::node::layout::{NodeRead, OPEN_LOWER, OPEN_UPPER};
use crate::tree::Tree;
use vellum_base::{PageId, Result, StorageError};
use vellum_buffer::{Exclusive, PageBuf, PageRead};
use vellum_metrics::Counter;
use vellum_sync::Backoff;

/// Attempts before a merge is left to somebody else.
const ATTEMPTS: u32 = 6;

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A page was given back.
    Joined,
    /// Children moved over from a neighbour.
    Shared,
    /// There is nothing to do, or it does not fit.
    Nothing,
    /// The page has no neighbour under its parent.
    Alone,
    /// Something changed underneath.
    Changed,
}

/// True if a page should be joined with a neighbour.
#[inline]
pub(crate) fn is_underfull<P: PageRead + ?Sized>(page: &P) -> bool {
    page.shape().count == 0 || bytes_of_records(page) < page.size() / 4
}

fn bytes_of_records<P: PageRead + ?Sized>(page: &P) -> usize {
    let fences = page.fences();
    page.used_bytes()
        .saturating_sub(fences.lower + fences.upper)
}

/// Bytes that a page may have after a join of two that both have records: a page that is nearly full again would soon be split again.
const fn worth(page_size: usize) -> usize {
    page_size / 8 * 7
}

/// True if a page's records do not fit a page whose keys share nothing of their front, as those of the first and the last page of a
/// level do. An empty page there can be joined with its neighbour only when that says no: a queue's first leaf is empty before the
/// second, which is full, has lost a row.
#[inline]
pub(crate) fn needs_prefix<P: PageRead + ?Sized>(page: &P) -> bool {
    let (shape, prefix) = (page.shape(), page.fences().prefix);
    prefix * shape.count > shape.free
}

/// True if two neighbours are surely not worth joining, or do not fit. A joined page has what both have, and their keys share no more of
/// their front than they did, so no record gets shorter.
fn are_too_full<P: PageRead + ?Sized>(left: &P, right: &P) -> bool {
    let (low, high) = (left.shape(), right.shape());
    if low.count > 0 && high.count > 0 {
        return bytes_of_records(left) + bytes_of_records(right) > worth(left.size());
    }
    // Inner pages with one child are joined, or given another one, whatever their neighbour has.
    let shares_nothing = low.open & OPEN_LOWER != 0 || high.open & OPEN_UPPER != 0;
    low.level == 0 && shares_nothing && (needs_prefix(left) || needs_prefix(right))
}

impl Tree {
    /// Joins the leaf of `key` with a neighbour if it is nearly empty, and the pages above likewise.
    /// Reserves log space; the caller holds no latch. Losing a race is no error.
    ///
    /// # Errors
    /// I/O, out of log space. The tree is well formed whatever happened. Who joins behind a removal has removed all the same: see
    /// [`Tree::join_if_possible`].
    pub fn rebalance(&self, key: &[u8], journal: Option<Journal<'_>>) -> Result<()> {
        let journal = self.journal(journal);
        let mut level = 0;
        loop {
            match self.rebalance_level(key, level, journal)? {
                Outcome::Joined => level += 1,
                Outcome::Alone => {
                    // The parent has one child: it must be joined first, and before it whoever is above it and alone as well. (Long
                    // keys leave pages with one child beside full ones; their neighbours may go later, up to below the root.)
                    let mut above = level + 1;
                    loop {
                        match self.rebalance_level(key, above, journal)? {
                            Outcome::Joined | Outcome::Shared => break,
                            Outcome::Alone => above += 1,
                            Outcome::Nothing | Outcome::Changed => return Ok(()),
                        }
                    }
                }
                Outcome::Nothing | Outcome::Shared | Outcome::Changed => return Ok(()),
            }
        }
    }

    /// As [`Tree::rebalance`], for collectors, who have removed something and go on: leaves stay apart where the neighbour cannot be read or the log
    /// has no room.
    ///
    /// # Errors
    /// What stands in the way of whatever comes next: no memory, which costs whoever asks seconds, a failed flush. What was removed is removed.
    pub fn join_if_possible(&self, key: &[u8], journal: Option<Journal<'_>>) -> Result<()> {
        match self.rebalance(key, journal) {
            Err(error @ (StorageError::MemoryLimit { .. } | StorageError::Poisoned)) => Err(error),
            _ => Ok(()),
        }
    }

    /// One page that is joined, or a reason why not.
    pub(crate) fn rebalance_level(
        &self,
        key: &[u8],
        level: u8,
        journal: Option<Journal<'_>>,
    ) -> Result<Outcome> {
        let mut backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            self.reserve_change(journal)?;
            match self.try_rebalance(Target::Covering(key), level, journal)? {
                Outcome::Changed => backoff.wait(),
                outcome => return Ok(outcome),
            }
        }
        Ok(Outcome::Changed)
    }

    /// As [`Tree::rebalance_level`], one attempt, for any target. Log space is reserved.
    pub(crate) fn try_rebalance(
        &self,
        target: Target<'_>,
        level: u8,
        journal: Option<Journal<'_>>,
    ) -> Result<Outcome> {
        let context = &**self.context();
        let Some(path) = self.try_descend(target, level)? else {
            let root = context.pool().optimistic(self.root())?;
            let above = root.shape().level < level && root.validate();
            return Ok(if above {
                Outcome::Nothing
            } else {
                Outcome::Changed
            });
        };
        let Some(above) = path.parent else {
            return self.shrink_root(journal);
        };
        let count = above.shape().count;
        let index = target.child_index(&above, count);
        let nothing = |is_so: bool| {
            if is_so {
                Outcome::Nothing
            } else {
                Outcome::Changed
            }
        };
        let is_small = is_underfull(&path.page);
        // A leaf that is not small takes an empty one on its left, if that is what was waited for (`needs_prefix`).
        let may_take_left = level == 0 && index > 0 && !needs_prefix(&path.page);
        if !is_small && !may_take_left {
            return Ok(nothing(path.page.validate()));
        }
        if count == 0 {
            return Ok(if above.validate() {
                Outcome::Alone
            } else {
                Outcome::Changed
            });
        }
        let mut with_right = is_small && index < count;
        let neighbour = loop {
            let neighbour = above.child(if with_right { index + 1 } else { index - 1 }, count);
            if !above.validate() {
                return Ok(Outcome::Changed);
            }
            let neighbour = above.follow(neighbour)?;
            if !above.validate() {
                return Ok(Outcome::Changed);
            }
            // Most often, and found out without copying the two.
            let is_too_full = match with_right {
                true => are_too_full(&path.page, &neighbour),
                false if is_small && index == count => are_too_full(&neighbour, &path.page),
                false => neighbour.shape().count > 0,
            };
            if !is_too_full {
                break neighbour;
            }
            if !neighbour.validate() {
                return Ok(Outcome::Changed);
            }
            if !with_right || !may_take_left {
                return Ok(nothing(path.page.validate()));
            }
            with_right = false;
        };
        let (left, right) = if with_right {
            (path.page, neighbour)
        } else {
            (neighbour, path.page)
        };
        let separator_index = if with_right { index } else { index - 1 };
        let Some(mut parent) = above.try_exclusive() else {
            return Ok(Outcome::Changed);
        };
        let Some(mut left) = left.try_exclusive() else {
            return Ok(Outcome::Changed);
        };
        let Some(right) = right.try_exclusive() else {
            return Ok(Outcome::Changed);
        };
        debug_assert_eq!(parent.child(separator_index, count), left.page_id());
        debug_assert_eq!(parent.child(separator_index + 1, count), right.page_id());
        let (low, high) = (copy(&left), copy(&right));
        let between = copy(&parent);
        self.check_child(&between, separator_index, (left.page_id(), &low))?;
        self.check_child(&between, separator_index + 1, (right.page_id(), &high))?;
        let mut joined = PageBuf::to_overwrite(context.page_size());
        // An empty page costs more than a full one.
        let is_worth = |joined: &PageBuf| {
            let spare = low.shape().count == 0 || high.shape().count == 0;
            spare || joined.used_bytes() <= worth(joined.size())
        };
        if join(&low, &high, &mut joined) && is_worth(&joined) {
            let mut redo = left.page_id().get().to_le_bytes().to_vec();
            redo.extend_from_slice(&entry(&between, separator_index).key());
            let kept = left.page_id();
            let mut change = Change::new(context, self.root(), journal);
            change.add_image(&mut left, &joined);
            change.remove_separator(&mut parent, separator_index, kept, &redo);
            change.free(right);
            change.commit()?;
            self.count_leaves(level, Counter::LeafMerges);
            return Ok(Outcome::Joined);
        }
        let one_child = if with_right {
            low.shape().count
        } else {
            high.shape().count
        } == 0;
        if level > 0 && one_child {
            let pages = Neighbours {
                parent,
                left,
                right,
                separator_index,
            };
            return self.share_children(pages, &low, &high, journal);
        }
        Ok(Outcome::Nothing)
    }

    /// Spreads the children of two inner pages, evenly if that fits: what is done for a page with one child whose
    /// neighbour is too full to take it.
    ///
    /// The neighbour's keys may share a long prefix that they lose beside the other page's, so an even share can be too much; one
    /// child always fits (S1): the page with one child has no key, and what the neighbour's new fence takes, the key that became it took
    /// before. [`Outcome::Nothing`] is left for a parent without room for any of the new separators.
    fn share_children<'t>(
        &'t self,
        mut pages: Neighbours<'t>,
        low: &PageBuf,
        high: &PageBuf,
        journal: Option<Journal<'_>>,
    ) -> Result<Outcome> {
        let above = copy(&pages.parent);
        let share = Share::new((low, high), &above, pages.separator_index);
        let (even, count) = (share.keys.len() / 2, share.keys.len());
        let found = if low.shape().count == 0 {
            (1..=even).rev().find_map(|middle| share.at(middle))
        } else {
            (even..count - 1).find_map(|middle| share.at(middle))
        };
        let Some([new_low, new_high, new_above]) = found else {
            return Ok(Outcome::Nothing);
        };
        let mut change = Change::new(self.context(), self.root(), journal);
        change.add_image(&mut pages.left, &new_low);
        change.add_image(&mut pages.right, &new_high);
        change.add_image(&mut pages.parent, &new_above);
        change.commit()?;
        Ok(Outcome::Shared)
    }

    /// Takes the content of the root's only child into the root, until there are two or the root is a
    /// leaf. Log space for the first step is reserved.
    pub(crate) fn shrink_root(&self, journal: Option<Journal<'_>>) -> Result<Outcome> {
        let first = self.shrink_root_once(journal)?;
        let mut last = first;
        while last == Outcome::Joined {
            self.reserve_change(journal)?;
            last = self.shrink_root_once(journal)?;
        }
        Ok(first)
    }

    fn shrink_root_once(&self, journal: Option<Journal<'_>>) -> Result<Outcome> {
        let context = &**self.context();
        let root = context.pool().optimistic(self.root())?;
        let shape = root.shape();
        let child = root.rightmost();
        if !root.validate() {
            return Ok(Outcome::Changed);
        }
        if shape.level == 0 || shape.count > 0 {
            return Ok(Outcome::Nothing);
        }
        let child = root.follow(child)?;
        let Some(mut root) = root.try_exclusive() else {
            return Ok(Outcome::Changed);
        };
        let Some(child) = child.try_exclusive() else {
            return Ok(Outcome::Changed);
        };
        let content = copy(&child);
        self.check_child(&copy(&root), 0, (child.page_id(), &content))?;
        let mut change = Change::new(context, self.root(), journal);
        change.add_image(&mut root, &content);
        change.free(child);
        change.commit()?;
        Ok(Outcome::Joined)
    }
}

/// The children of two neighbouring inner pages, to be spread anew.
struct Share<'p> {
    low: &'p PageBuf,
    high: &'p PageBuf,
    above: &'p PageBuf,
    separator_index: usize,
    /// The keys of both pages with the separator between them; child i lies left of key i.
    keys: Vec<Vec<u8>>,
    children: Vec<PageId>,
}

impl<'p> Share<'p> {
    fn new(
        (low, high): (&'p PageBuf, &'p PageBuf),
        above: &'p PageBuf,
        separator_index: usize,
    ) -> Self {
        let (low_count, high_count) = (low.shape().count, high.shape().count);
        let mut keys: Vec<Vec<u8>> = (0..low_count).map(|i| entry(low, i).key()).collect();
        let mut children: Vec<PageId> = (0..=low_count).map(|i| low.child(i, low_count)).collect();
        keys.push(entry(above, separator_index).key());
        keys.extend((0..high_count).map(|i| entry(high, i).key()));
        children.extend((0..=high_count).map(|i| high.child(i, high_count)));
        Self {
            low,
            high,
            above,
            separator_index,
            keys,
            children,
        }
    }

    /// The two pages, and the one above them, with key `middle` as the separator; `None` if one of them does not fit.
    fn at(&self, middle: usize) -> Option<[PageBuf; 3]> {
        let up = &self.keys[middle];
        let base = frame_of(self.low);
        let low = Frame {
            lower: lower_fence(self.low),
            upper: Some(up),
            rightmost: self.children[middle],
            ..base
        };
        let high = Frame {
            lower: Some(up),
            upper: upper_fence(self.high),
            rightmost: self.children[self.keys.len()],
            ..base
        };
        Some([
            self.page(&low, 0..middle)?,
            self.page(&high, middle + 1..self.keys.len())?,
            self.above_with(up)?,
        ])
    }

    fn page(&self, frame: &Frame<'_>, keys: std::ops::Range<usize>) -> Option<PageBuf> {
        let mut page = PageBuf::to_overwrite(self.low.size());
        let mut builder = Builder::new(&mut page, frame);
        let fits = keys.into_iter().all(|number| {
            let child = self.children[number].get().to_le_bytes();
            builder.push((&self.keys[number], &[]), &[&child])
        });
        builder.finish();
        fits.then_some(page)
    }

    fn above_with(&self, up: &[u8]) -> Option<PageBuf> {
        let mut page = PageBuf::to_overwrite(self.above.size());
        let frame = frame_of(self.above);
        let mut builder = Builder::new(&mut page, &frame);
        let fits = (0..self.above.shape().count).all(|number| {
            let entry = entry(self.above, number);
            let key = if number == self.separator_index {
                (up, &[][..])
            } else {
                (entry.prefix, entry.suffix)
            };
            builder.push(key, &[entry.payload])
        });
        builder.finish();
        fits.then_some(page)
    }
}

/// Two neighbours and their parent, latched.
struct Neighbours<'p> {
    parent: Exclusive<'p>,
    left: Exclusive<'p>,
    right: Exclusive<'p>,
    separator_index: usize,
}

pub(crate) fn copy<P: PageRead + ?Sized>(page: &P) -> PageBuf {
    let mut copy = PageBuf::to_overwrite(page.size());
    page.copy_to(&mut copy);
    copy
}
