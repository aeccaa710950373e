//! Removing ranges from an edge: whole leaves go without looking at their rows.
//!
//! One step collapses neighbouring leaves under one parent that lie wholly in the range: the first
//! stays, empty, with the fences of all; the others are given back. Fences of what remains never
//! move inwards, so nothing has to be rebuilt and nothing can fail to fit. What is left in the end
//! is one empty leaf at the edge.
//!
//! Concurrency: a step latches a parent and a bounded number of its leaves. Between steps the tree is
//! whole; readers and writers come in between.
//!
//! Crash: each step is one structure change. Repeating the call goes on where the crash was.

use crate::change::Change;
use crate::context::Journal;
use crate::descend::Target;
use crate::merge::{Outcome, copy};
use crate::node::build::{Builder, Frame, entry, frame_of, lower_fence, rebuild, upper_fence};
use crate::node::layout::NodeRead;
use crate::record::TRIM;
use crate::tree::Tree;
use smallvec::SmallVec;
use vellum_base::{PageId, Result};
use vellum_buffer::{Exclusive, PageBuf};
use vellum_sync::Backoff;

/// Leaves that one step latches, at most.
const BATCH: usize = 16;

/// Leaves that go together at least, where some may stay: two make one empty one; less is not worth a change.
const LEAVES_MIN: usize = 2;

/// Attempts at a step before it is left for the next call.
const ATTEMPTS: u32 = 40;

/// What is removed.
#[derive(Clone, Copy, Debug)]
enum Doomed<'k> {
    Below(&'k [u8]),
    From(&'k [u8]),
    All,
}

impl<'k> Doomed<'k> {
    /// The edge of the tree where the range is.
    fn edge(self) -> Target<'k> {
        match self {
            Self::From(_) => Target::Last,
            Self::Below(_) | Self::All => Target::First,
        }
    }

    /// True if everything between the fences is in the range.
    fn holds(self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> bool {
        match self {
            Self::All => true,
            Self::Below(key) => upper.is_some_and(|upper| upper <= key),
            Self::From(key) => lower.is_some_and(|lower| lower >= key),
        }
    }

    /// How many rows of the leaf at the edge go.
    fn rows(self, page: &impl NodeRead) -> usize {
        let count = page.shape().count;
        match self {
            Self::Below(key) if page.covers(key) => page.find(key).0,
            Self::From(key) if page.covers(key) => count - page.find(key).0.min(count),
            _ => count,
        }
    }

    /// The slots of a leaf that stay.
    fn stays(self, page: &PageBuf) -> std::ops::Range<usize> {
        let count = page.shape().count;
        let below = |key: &[u8]| {
            if page.covers(key) {
                page.find(key).0
            } else if lower_fence(page).is_some_and(|lower| key < lower) {
                0
            } else {
                count
            }
        };
        match self {
            Self::All => 0..0,
            Self::Below(key) => below(key)..count,
            Self::From(key) => 0..below(key),
        }
    }

    fn redo(self) -> Vec<u8> {
        match self {
            Self::Below(key) => [&[0], key].concat(),
            Self::From(key) => [&[1], key].concat(),
            // Everything is at or above the empty key.
            Self::All => vec![1],
        }
    }
}

/// What becomes of the range's rows in the leaves where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Goes,
    /// They may stay until there are more ([`Tree::remove_most_below`]).
    MayStay,
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// So many pages were given back; there may be more.
    Freed(usize),
    /// Nothing is left to give back at this edge.
    Done,
    Changed,
}

/// What a step of [`Tree::remove_most_between`] came to.
#[derive(Debug)]
enum StepBetween {
    Step(Step),
    /// The range goes on under the next parent, from this key on, and there are no two leaves of it under this one.
    Onward(Vec<u8>),
    /// The same, and this parent has but one leaf: it should be joined with a neighbour, which then has others.
    Alone(Vec<u8>),
}

impl Tree {
    /// Removes all rows with keys below `key`, whole leaves at a time. True if all are gone, false if
    /// about `budget` pages were given back and there are more.
    ///
    /// Reserves log space; the caller holds no latch.
    ///
    /// # Errors
    /// I/O, out of log space. What was removed so far stays removed.
    pub fn remove_below(
        &self,
        key: &[u8],
        budget: usize,
        journal: Option<Journal<'_>>,
    ) -> Result<bool> {
        self.remove_doomed(Doomed::Below(key), budget, journal, Rest::Goes)
    }

    /// As [`Tree::remove_below`], for who calls it again and again with keys that ascend: only leaves that are wholly in the
    /// range go, two of them or more at a time, and of a tree that is one full leaf the larger part of it. To remove the last few
    /// rows each time would cost a copy of all the others.
    ///
    /// # Errors
    /// As [`Tree::remove_below`].
    pub fn remove_most_below(
        &self,
        key: &[u8],
        budget: usize,
        journal: Option<Journal<'_>>,
    ) -> Result<bool> {
        self.remove_doomed(Doomed::Below(key), budget, journal, Rest::MayStay)
    }

    /// Removes rows with keys at or above `from` and below `to`, for who calls it again and again with `to` that ascends: only leaves that
    /// are wholly in the range go, two of them or more at a time, and one of them stays, empty. True if no more leaves can go, false if about `budget` pages were given back and there are more.
    ///
    /// # Errors
    /// As [`Tree::remove_below`].
    pub fn remove_most_between(
        &self,
        from: &[u8],
        to: &[u8],
        budget: usize,
        journal: Option<Journal<'_>>,
    ) -> Result<bool> {
        let journal = self.journal(journal);
        let (mut freed, mut attempts) = (0, 0);
        // Where the first leaf is that was not looked at: below it none can go.
        let mut at = from.to_vec();
        let mut backoff = Backoff::new();
        loop {
            if freed >= budget.max(1) || attempts >= ATTEMPTS {
                return Ok(false);
            }
            self.reserve_change(journal)?;
            match self.remove_step_between(&at, to, journal)? {
                StepBetween::Onward(next) => at = next,
                StepBetween::Alone(next) => {
                    self.reserve_change(journal)?;
                    match self.try_rebalance(Target::Covering(&at), 1, journal)? {
                        Outcome::Joined => freed += 1,
                        Outcome::Shared => {}
                        // Its neighbours are as they are: it stays.
                        Outcome::Alone | Outcome::Nothing => at = next,
                        Outcome::Changed => attempts += 1,
                    }
                }
                StepBetween::Step(Step::Freed(pages)) => {
                    freed += pages;
                    attempts = 0;
                    backoff.reset();
                }
                StepBetween::Step(Step::Done) => return Ok(true),
                StepBetween::Step(Step::Changed) => {
                    attempts += 1;
                    backoff.wait();
                }
            }
        }
    }

    /// Removes all rows with keys at or above `key`, as [`Tree::remove_below`].
    ///
    /// # Errors
    /// As [`Tree::remove_below`].
    pub fn remove_from(
        &self,
        key: &[u8],
        budget: usize,
        journal: Option<Journal<'_>>,
    ) -> Result<bool> {
        self.remove_doomed(Doomed::From(key), budget, journal, Rest::Goes)
    }

    /// Gives all pages back, about `budget` of them in this call; true once the root is gone too.
    /// Nobody else uses the tree. After a crash, call it again.
    ///
    /// `entry`: the tree that holds an entry for this one (key: root page id, big-endian). It goes in
    /// the same structure change as the root, so that an entry never names a page that was given
    /// back and used again.
    ///
    /// # Errors
    /// I/O, out of log space. What was given back stays so.
    pub fn drop_pages(
        &self,
        budget: usize,
        journal: Option<Journal<'_>>,
        entry: Option<&Tree>,
    ) -> Result<bool> {
        if !self.remove_doomed(Doomed::All, budget, journal, Rest::Goes)? {
            return Ok(false);
        }
        let journal = self.journal(journal);
        let context = &**self.context();
        self.reserve_change(journal)?;
        let root = context.pool().exclusive(self.root())?;
        if !self.is_leaf(&root) {
            let found = u64::from(root.kind_and_flags().0);
            return Err(context.corrupt(self.root(), "a single leaf remains", 4, found));
        }
        let mut change = Change::new(context, self.root(), journal);
        change.free(root);
        let key = self.root().get().to_be_bytes();
        match entry {
            Some(tree) => {
                let mut leaf = tree.write(&key)?;
                if leaf.found() {
                    change.commit_with_entry(&mut leaf, None)?;
                } else {
                    change.commit()?;
                }
            }
            None => {
                change.commit()?;
            }
        }
        Ok(true)
    }

    fn remove_doomed(
        &self,
        doomed: Doomed<'_>,
        budget: usize,
        journal: Option<Journal<'_>>,
        rest: Rest,
    ) -> Result<bool> {
        let journal = self.journal(journal);
        let mut freed = 0;
        let mut attempts = 0;
        let mut backoff = Backoff::new();
        loop {
            if freed >= budget.max(1) || attempts >= ATTEMPTS {
                return Ok(false);
            }
            self.reserve_change(journal)?;
            match self.remove_step(doomed, journal, rest)? {
                // Children came over, or a page was halved: what is gained by that comes with the next steps.
                Step::Freed(0) => attempts += 1,
                Step::Freed(pages) => {
                    freed += pages;
                    attempts = 0;
                    backoff.reset();
                }
                Step::Done => return Ok(true),
                Step::Changed => {
                    attempts += 1;
                    backoff.wait();
                }
            }
        }
    }

    fn remove_step(
        &self,
        doomed: Doomed<'_>,
        journal: Option<Journal<'_>>,
        rest: Rest,
    ) -> Result<Step> {
        let Some(path) = self.try_descend(doomed.edge(), 0)? else {
            return Ok(Step::Changed);
        };
        let Some(above) = path.parent else {
            return self.trim(doomed, doomed.edge(), journal, rest);
        };
        // Most calls find too little: that is seen without a copy of the page.
        if let (Doomed::Below(key), Rest::MayStay) = (doomed, rest)
            && above.covers(key)
            && Target::Covering(key).child_index(&above, above.shape().count) < LEAVES_MIN
            && above.validate()
        {
            return Ok(Step::Done);
        }
        let parent = copy(&above);
        if !above.validate() {
            return Ok(Step::Changed);
        }
        let count = parent.shape().count;
        // The children that lie wholly in the range are a run at the edge.
        let holds = |child: &usize| {
            let (lower, upper) = fences_of(&parent, *child);
            doomed.holds(lower.as_deref(), upper.as_deref())
        };
        let run = match doomed {
            Doomed::From(_) => {
                let inside = (0..=count).rev().take_while(holds).count();
                count + 1 - inside..count + 1
            }
            Doomed::Below(_) | Doomed::All => 0..(0..=count).take_while(holds).count(),
        };
        match run.len() {
            ..LEAVES_MIN if rest == Rest::MayStay => Ok(Step::Done),
            0 => self.trim(doomed, doomed.edge(), journal, rest),
            1 if count > 0 => self.settle_edge(doomed, &parent, run.start, journal),
            1 => self.climb(doomed, journal),
            _ => {
                let batch = self.batch(run.len());
                let run = match doomed {
                    Doomed::From(_) => run.end - batch..run.end,
                    _ => run.start..run.start + batch,
                };
                let Some(above) = above.try_exclusive() else {
                    return Ok(Step::Changed);
                };
                self.collapse(above, &parent, run, journal)
            }
        }
    }

    /// A step of [`Tree::remove_most_between`].
    fn remove_step_between(
        &self,
        from: &[u8],
        to: &[u8],
        journal: Option<Journal<'_>>,
    ) -> Result<StepBetween> {
        let Some(path) = self.try_descend(Target::Covering(from), 0)? else {
            return Ok(StepBetween::Step(Step::Changed));
        };
        // A single leaf.
        let Some(above) = path.parent else {
            return Ok(StepBetween::Step(Step::Done));
        };
        // Most calls find too little: that is seen without a copy of the page.
        if above.covers(to) {
            let count = above.shape().count;
            let [first, end] =
                [from, to].map(|key| Target::Covering(key).child_index(&above, count));
            if end.saturating_sub(first) < LEAVES_MIN && above.validate() {
                return Ok(StepBetween::Step(Step::Done));
            }
        }
        let parent = copy(&above);
        if !above.validate() {
            return Ok(StepBetween::Step(Step::Changed));
        }
        let count = parent.shape().count;
        let is_inside = |child: usize| {
            let (lower, upper) = fences_of(&parent, child);
            lower.map_or(from.is_empty(), |lower| lower.as_slice() >= from)
                && upper.is_some_and(|upper| upper.as_slice() <= to)
        };
        let covering = Target::Covering(from).child_index(&parent, count);
        // One that begins below the range stays as it is.
        let first = covering + usize::from(!is_inside(covering));
        let inside = (first..=count).take_while(|child| is_inside(*child));
        let run = first..first + inside.count();
        if run.len() >= LEAVES_MIN {
            let run = run.start..run.start + self.batch(run.len());
            let Some(above) = above.try_exclusive() else {
                return Ok(StepBetween::Step(Step::Changed));
            };
            let step = self.collapse(above, &parent, run, journal)?;
            return Ok(StepBetween::Step(step));
        }
        Ok(match upper_fence(&parent) {
            Some(fence) if run.len() == 1 && count == 0 => StepBetween::Alone(fence.to_vec()),
            Some(fence) if run.end > count && fence < to => StepBetween::Onward(fence.to_vec()),
            _ => StepBetween::Step(Step::Done),
        })
    }

    /// How many of so many leaves go at once: all of them are latched, and so need frames.
    fn batch(&self, leaves: usize) -> usize {
        leaves.min((self.context().pool().frames() / 8).clamp(2, BATCH))
    }

    /// Makes leaves `run` of a parent one empty leaf.
    fn collapse<'t>(
        &'t self,
        mut above: Exclusive<'t>,
        parent: &PageBuf,
        run: std::ops::Range<usize>,
        journal: Option<Journal<'_>>,
    ) -> Result<Step> {
        let context = &**self.context();
        let count = parent.shape().count;
        let (first, last) = (run.start, run.end - 1);
        let mut leaves: SmallVec<[Exclusive<'_>; BATCH]> = SmallVec::new();
        for child in run {
            // Waiting is safe: left to right, the parent held; leaves' holders wait for no tree page
            // of this tree. Reading one from disk is what cannot be avoided here.
            leaves.push(context.pool().exclusive(parent.child(child, count))?);
        }
        let kept = leaves.remove(0);
        let below = first.checked_sub(1).map(|left| entry(parent, left).key());
        let above_key = (last < count).then(|| entry(parent, last).key());
        let lower = below.as_deref().or_else(|| lower_fence(parent));
        let upper = above_key.as_deref().or_else(|| upper_fence(parent));
        let mut empty = PageBuf::to_overwrite(context.page_size());
        let leaf_frame = Frame {
            tree: self.root(),
            flags: self.kind().flags(),
            level: 0,
            lower,
            upper,
            rightmost: PageId::ZERO,
        };
        Builder::new(&mut empty, &leaf_frame).finish();
        // Separators inside the run go; what led to its last leaf leads to the one that is kept.
        let mut new_parent = PageBuf::to_overwrite(context.page_size());
        let kept_id = kept.page_id();
        let rightmost = if last == count {
            kept_id
        } else {
            parent.rightmost()
        };
        let mut builder = Builder::new(
            &mut new_parent,
            &Frame {
                rightmost,
                ..frame_of(parent)
            },
        );
        let mut fits = builder.push_range(parent, 0..first);
        if last < count {
            let entry = entry(parent, last);
            fits &= builder.push(
                (entry.prefix, entry.suffix),
                &[&kept_id.get().to_le_bytes()],
            );
            fits &= builder.push_range(parent, last + 1..count);
        }
        assert!(fits, "fewer separators between the same fences");
        builder.finish();
        let freed = leaves.len();
        let mut kept = kept;
        let mut change = Change::new(context, self.root(), journal);
        change.add_image(&mut kept, &empty);
        change.add_image(&mut above, &new_parent);
        for leaf in leaves {
            change.free(leaf);
        }
        change.commit()?;
        Ok(Step::Freed(freed))
    }

    /// One leaf of several under the parent is in the range: empty it, trim the one beside it, and
    /// join the two if that is possible.
    fn settle_edge(
        &self,
        doomed: Doomed<'_>,
        parent: &PageBuf,
        child: usize,
        journal: Option<Journal<'_>>,
    ) -> Result<Step> {
        if self.trim(doomed, doomed.edge(), journal, Rest::Goes)? == Step::Changed {
            return Ok(Step::Changed);
        }
        // The separator between the two leaves names the boundary leaf from either side.
        let from_right = matches!(doomed, Doomed::From(_));
        let between = entry(parent, if from_right { child - 1 } else { child }).key();
        let beside = if from_right {
            Target::Below(&between)
        } else {
            Target::Covering(&between)
        };
        self.reserve_change(journal)?;
        if self.trim(doomed, beside, journal, Rest::Goes)? == Step::Changed {
            return Ok(Step::Changed);
        }
        self.reserve_change(journal)?;
        let _ = self.try_rebalance(doomed.edge(), 0, journal)?;
        Ok(Step::Done)
    }

    /// The parent at the edge has one child, wholly in the range: join that parent with a neighbour,
    /// or the ones above it.
    ///
    /// Ends (S2): pages that are joined or freed are fewer then; of a neighbour that is too full for that, at least one child comes over (S1), and is
    /// freed next. Where the page above has no room for the separator between them, it is halved, and the two stay under one
    /// page: with two separators there is room (keys are at most a quarter of a page, and a page at the edge has one fence), and of three or more
    /// each half keeps one (`plan_inner_split`). Were the two parted, the next step would join
    /// the halves again, for ever.
    fn climb(&self, doomed: Doomed<'_>, journal: Option<Journal<'_>>) -> Result<Step> {
        let mut level = 1;
        loop {
            self.reserve_change(journal)?;
            match self.try_rebalance(doomed.edge(), level, journal)? {
                Outcome::Joined => return Ok(Step::Freed(1)),
                // Children came over: go on with them.
                Outcome::Shared => return Ok(Step::Freed(0)),
                Outcome::Alone => level += 1,
                Outcome::Changed => return Ok(Step::Changed),
                Outcome::Nothing => {
                    // The page above has no room for another separator: halve it and try again.
                    let above = self
                        .try_descend(doomed.edge(), level)?
                        .and_then(|path| path.parent);
                    let Some(above) = above else {
                        return Ok(Step::Changed);
                    };
                    let content = copy(&above);
                    if !above.validate() {
                        return Ok(Step::Changed);
                    }
                    if content.shape().count < 3 {
                        // It had no room: others have changed it since.
                        return Ok(Step::Changed);
                    }
                    let key = entry(&content, 0).key();
                    self.split_until(&key, level + 1, None, journal)?;
                    return Ok(Step::Freed(0));
                }
            }
        }
    }

    /// Removes the rows in the range from one leaf. Log space is reserved.
    fn trim(
        &self,
        doomed: Doomed<'_>,
        target: Target<'_>,
        journal: Option<Journal<'_>>,
        rest: Rest,
    ) -> Result<Step> {
        let Some(path) = self.try_descend(target, 0)? else {
            return Ok(Step::Changed);
        };
        if rest == Rest::MayStay {
            let shape = path.page.shape();
            let few = doomed.rows(&path.page) * 2 <= shape.count;
            let has_room = shape.free > self.context().page_size() / 4;
            if (few || has_room) && path.page.validate() {
                return Ok(Step::Done);
            }
        }
        let Some(mut leaf) = path.page.try_exclusive() else {
            return Ok(Step::Changed);
        };
        let content = copy(&leaf);
        let stays = doomed.stays(&content);
        if stays.len() == content.shape().count {
            return Ok(Step::Done);
        }
        let mut trimmed = PageBuf::to_overwrite(content.as_bytes().len());
        let fits = rebuild(&content, stays, &frame_of(&content), &mut trimmed);
        assert!(fits, "fewer rows between the same fences");
        let redo = doomed.redo();
        let mut change = Change::new(self.context(), self.root(), journal);
        change.add_rebuilt(&mut leaf, &trimmed, TRIM, &[&redo]);
        change.commit()?;
        Ok(Step::Done)
    }
}

/// The fences of a child of an inner page.
fn fences_of(parent: &PageBuf, child: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let count = parent.shape().count;
    let lower = match child.checked_sub(1) {
        Some(left) => Some(entry(parent, left).key()),
        None => lower_fence(parent).map(<[u8]>::to_vec),
    };
    let upper = match child < count {
        true => Some(entry(parent, child).key()),
        false => upper_fence(parent).map(<[u8]>::to_vec),
    };
    (lower, upper)
}
