//! The snapshots that are open, as one pass saw them.
//!
//! Invariants:
//! - I1 (R2) The clock value C was read before any slot. A snapshot that is open or will be drawn is
//!   either in the list or at or above C.
//! - I2 A list may be reused as long as one likes: it then names snapshots that are gone, which keeps
//!   garbage longer, and C says what it knows nothing about.

use vellum_base::Timestamp;

/// A list of open snapshots that carries the clock value of its pass. Reuse it: it keeps its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveSnapshots {
    clock: Timestamp,
    snapshots: Vec<Timestamp>,
}

impl ActiveSnapshots {
    /// An empty list, which knows nothing: its clock is zero, so nothing may be pruned by it.
    pub const fn new() -> Self {
        Self {
            clock: Timestamp::ZERO,
            snapshots: Vec::new(),
        }
    }

    /// A list from its parts, for tests of what uses it.
    pub fn from_parts(clock: Timestamp, snapshots: impl IntoIterator<Item = Timestamp>) -> Self {
        let mut list = Self {
            clock,
            snapshots: snapshots.into_iter().collect(),
        };
        list.seal();
        list
    }

    /// The clock value C that was read before the slots: nothing whose life reaches C may be pruned.
    #[inline]
    pub fn clock(&self) -> Timestamp {
        self.clock
    }

    /// The open snapshots below C, ascending, each once.
    #[inline]
    pub fn snapshots(&self) -> &[Timestamp] {
        &self.snapshots
    }

    /// The oldest snapshot that is open or can still be drawn.
    #[inline]
    pub fn oldest(&self) -> Timestamp {
        self.snapshots.first().copied().unwrap_or(self.clock)
    }

    /// True if a snapshot that is open or can still be drawn lies in `(after, up_to]`: such a one
    /// sees a version that was committed at `after` and replaced by a commit at `up_to`.
    pub fn any_within(&self, after: Timestamp, up_to: Timestamp) -> bool {
        if up_to >= self.clock {
            return true;
        }
        let first = self
            .snapshots
            .partition_point(|&snapshot| snapshot <= after);
        self.snapshots
            .get(first)
            .is_some_and(|&snapshot| snapshot <= up_to)
    }

    pub(crate) fn restart(&mut self, clock: Timestamp) {
        self.clock = clock;
        self.snapshots.clear();
    }

    pub(crate) fn push(&mut self, snapshot: Timestamp) {
        self.snapshots.push(snapshot);
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.snapshots.truncate(count);
    }

    pub(crate) fn count(&self) -> usize {
        self.snapshots.len()
    }

    /// Ends a collection: ascending, each once, those at or above C dropped (C covers them).
    pub(crate) fn seal(&mut self) {
        let clock = self.clock;
        self.snapshots.retain(|&snapshot| snapshot < clock);
        self.snapshots.sort_unstable();
        self.snapshots.dedup();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn r2_what_reaches_the_clock_of_the_pass_counts_as_seen() {
        let ts = Timestamp;
        let list = ActiveSnapshots::from_parts(ts(20), [ts(5), ts(9), ts(5), ts(20)]);
        assert_eq!(list.snapshots(), [ts(5), ts(9)]);
        assert!(
            list.any_within(ts(4), ts(5)),
            "committed at 4 and replaced at 5: 5 sees it"
        );
        assert!(
            !list.any_within(ts(5), ts(8)),
            "committed at 5: snapshot 5 is strictly below"
        );
        assert!(!list.any_within(ts(9), ts(19)));
        assert!(
            list.any_within(ts(9), ts(20)),
            "a snapshot at C can still be drawn"
        );
        assert!(
            ActiveSnapshots::new().any_within(ts(1), ts(2)),
            "an empty list knows nothing"
        );
        assert_eq!(list.oldest(), ts(5));
    }
}
