//! The latch order, checked at run time in builds with debug assertions and free in others.
//!
//! A latch is taken together with a [`RankToken`]; the token asserts that this thread holds nothing
//! of a higher rank, which makes a cycle of waiting threads impossible. Latches may be released
//! in any order (lock coupling releases the parent first).
//!
//! Invariants:
//! - I1 A thread takes latches in ascending rank. Ranks that say "one at a time" are not taken
//!   twice.
//! - I2 Within a rank taken by [`RankToken::acquire_ordered`], keys ascend strictly.
//! - I3 A `try_lock` that never waits cannot close a cycle: it may use [`RankToken::tried`], which
//!   skips I1 and I2 but counts for whatever is taken afterwards.
//!
//! Concurrency: the stack is thread-local; a token cannot leave its thread.
//!
//! Not here: that parents come before children and left before right within one rank of tree
//! pages; the descent asserts that where it knows what is a parent.

use std::marker::PhantomData;

/// Ranks, lowest (taken first) to highest (taken last); see docs/design/0001, "Latch order".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rank {
    /// The lock that serializes flush rounds. A round takes slot latches, so it comes first; nobody
    /// who holds a page or a slot latch may wait for a round.
    Round,
    /// Pages of table trees and of indexes: parent before child, left before right.
    TableTree,
    /// Pages of delta, tombstone and system trees.
    SystemTree,
    /// Pages of the allocation bitmap, in page order.
    Bitmap,
    /// The latch of a slot's log; one at a time.
    SlotLatch,
    /// Short mutexes inside a crate under which nothing else is taken; one at a time.
    Innermost,
}

#[cfg(debug_assertions)]
#[cfg(debug_assertions)]
impl Rank {
    /// True where a thread holds at most one latch of this rank.
    const fn is_single(self) -> bool {
        matches!(self, Self::Round | Self::SlotLatch | Self::Innermost)
    }
}

/// Proof that a latch of some rank was taken in order; dropped with the latch.
#[derive(Debug)]
#[must_use = "the token stands for the latch and must live as long"]
pub struct RankToken {
    #[cfg(debug_assertions)]
    rank: Rank,
    #[cfg(debug_assertions)]
    key: u64,
    // A token belongs to the stack of the thread that made it.
    not_send: PhantomData<*const ()>,
}

impl RankToken {
    /// Notes that this thread is about to wait for a latch of `rank`.
    ///
    /// # Panics
    /// With debug assertions, if that breaks I1.
    #[inline]
    pub fn acquire(rank: Rank) -> Self {
        #[cfg(debug_assertions)]
        stack::check(rank, None);
        Self::pushed(rank, 0)
    }

    /// As [`RankToken::acquire`], for latches of one rank that are taken in ascending order of
    /// `key` (a page id).
    ///
    /// # Panics
    /// With debug assertions, if that breaks I1 or I2.
    #[inline]
    pub fn acquire_ordered(rank: Rank, key: u64) -> Self {
        #[cfg(debug_assertions)]
        stack::check(rank, Some(key));
        Self::pushed(rank, key)
    }

    /// Notes a latch that was taken without waiting (I3).
    #[inline]
    pub fn tried(rank: Rank) -> Self {
        Self::pushed(rank, 0)
    }

    #[inline]
    fn pushed(rank: Rank, key: u64) -> Self {
        #[cfg(debug_assertions)]
        {
            stack::push(rank, key);
            Self {
                rank,
                key,
                not_send: PhantomData,
            }
        }
        #[cfg(not(debug_assertions))]
        {
            let _ = (rank, key);
            Self {
                not_send: PhantomData,
            }
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for RankToken {
    fn drop(&mut self) {
        stack::pop(self.rank, self.key);
    }
}

/// Asserts (with debug assertions) that this thread holds no latch of `rank` or above, where it is
/// about to wait for I/O, space or another thread.
#[inline]
pub fn assert_may_wait_below(rank: Rank) {
    #[cfg(debug_assertions)]
    if let Some(highest) = stack::highest() {
        assert!(
            highest < rank,
            "waits while holding {highest:?}, which is not below {rank:?}"
        );
    }
    #[cfg(not(debug_assertions))]
    let _ = rank;
}

/// Asserts (with debug assertions) that this thread holds no latch at all.
#[inline]
pub fn assert_none_held() {
    assert_may_wait_below(Rank::Round);
}

#[cfg(debug_assertions)]
mod stack {
    use super::Rank;
    use std::cell::RefCell;

    // The model checkers run all threads of a test on one thread of the system: their own
    // thread-locals are needed.
    #[cfg(loom)]
    loom::thread_local! {
        static HELD: RefCell<Vec<(Rank, u64)>> = RefCell::new(Vec::new());
    }
    #[cfg(shuttle)]
    shuttle::thread_local! {
        static HELD: RefCell<Vec<(Rank, u64)>> = RefCell::new(Vec::new());
    }
    #[cfg(not(any(loom, shuttle)))]
    thread_local! {
        static HELD: RefCell<Vec<(Rank, u64)>> = const { RefCell::new(Vec::new()) };
    }

    /// `None` only while the thread is being torn down, when the order no longer matters.
    fn with<R>(body: impl FnOnce(&mut Vec<(Rank, u64)>) -> R) -> Option<R> {
        HELD.try_with(|held| body(&mut held.borrow_mut())).ok()
    }

    pub(super) fn highest() -> Option<Rank> {
        with(|held| held.iter().map(|entry| entry.0).max()).flatten()
    }

    pub(super) fn check(rank: Rank, key: Option<u64>) {
        // The verdict leaves the borrow before it panics: unwinding drops tokens, which borrow.
        let offender = with(|held| {
            held.iter().copied().find(|&(other, other_key)| {
                other > rank
                    || other == rank
                        && (rank.is_single() || key.is_some_and(|key| other_key >= key))
            })
        })
        .flatten();
        if let Some((other, other_key)) = offender {
            panic!("latch order: {rank:?} {key:?} taken while holding {other:?} {other_key}");
        }
    }

    pub(super) fn push(rank: Rank, key: u64) {
        with(|held| held.push((rank, key)));
    }

    pub(super) fn pop(rank: Rank, key: u64) {
        with(|held| {
            if let Some(position) = held.iter().rposition(|&entry| entry == (rank, key)) {
                held.swap_remove(position);
            }
        });
    }
}

#[cfg(all(test, debug_assertions, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn ascending_ranks_pass_and_release_in_any_order_is_noticed() {
        let parent = RankToken::acquire(Rank::TableTree);
        let child = RankToken::acquire(Rank::TableTree);
        drop(parent);
        let system = RankToken::acquire(Rank::SystemTree);
        drop(child);
        drop(system);
        assert_none_held();
        drop(RankToken::acquire(Rank::Round));
    }

    #[test]
    #[should_panic(expected = "latch order")]
    fn lower_rank_under_a_higher_one_panics() {
        let _slot = RankToken::acquire(Rank::SlotLatch);
        let _page = RankToken::acquire(Rank::TableTree);
    }

    #[test]
    #[should_panic(expected = "latch order")]
    fn second_slot_latch_panics() {
        let _one = RankToken::acquire(Rank::SlotLatch);
        let _two = RankToken::acquire(Rank::SlotLatch);
    }

    #[test]
    #[should_panic(expected = "latch order")]
    fn bitmap_pages_out_of_page_order_panic() {
        let _two = RankToken::acquire_ordered(Rank::Bitmap, 2);
        let _one = RankToken::acquire_ordered(Rank::Bitmap, 1);
    }

    #[test]
    fn bitmap_pages_in_page_order_pass() {
        let _one = RankToken::acquire_ordered(Rank::Bitmap, 1);
        let _two = RankToken::acquire_ordered(Rank::Bitmap, 2);
    }

    #[test]
    #[should_panic(expected = "latch order")]
    fn tried_latch_counts_for_what_is_taken_afterwards() {
        let _slot = RankToken::acquire(Rank::Bitmap);
        let _tried = RankToken::tried(Rank::SlotLatch);
        let _again = RankToken::acquire(Rank::SlotLatch);
    }

    #[test]
    #[should_panic(expected = "waits while holding")]
    fn waiting_for_io_under_a_slot_latch_panics() {
        let _slot = RankToken::acquire(Rank::SlotLatch);
        assert_may_wait_below(Rank::SlotLatch);
    }

    #[test]
    fn a_panic_of_the_check_leaves_the_stack_usable() {
        let result = std::panic::catch_unwind(|| {
            let _slot = RankToken::acquire(Rank::SlotLatch);
            let _page = RankToken::acquire(Rank::Round);
        });
        assert!(result.is_err());
        assert_none_held();
    }
}
