//! Who waits for a free slot, in order of arrival.
//!
//! Invariants:
//! - I1 A slot that is given back while somebody waits wakes the first waiter that is not awake yet.
//! - I2 A waiter that was woken and leaves without a slot wakes the next one: no wake-up is lost
//!   with a wait that was given up.
//!
//! Concurrency: a Dekker pair. A waiter registers (SeqCst), then looks for a free slot; who gives a
//! slot back frees it (SeqCst, `SlotWords::release`), then looks at the count. One of them sees the
//! other. The queue's mutex is innermost: wakers run outside it.

use std::collections::VecDeque;
use std::task::Waker;
use vellum_sync::atomic::{AtomicUsize, Ordering, fence};
use vellum_sync::{CachePadded, Mutex};

#[derive(Debug)]
struct Entry {
    id: u64,
    woken: bool,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Queue {
    next_id: u64,
    entries: VecDeque<Entry>,
}

/// The queue of those who wait for a slot.
#[derive(Debug)]
pub(crate) struct Waiters {
    registered: CachePadded<AtomicUsize>,
    queue: Mutex<Queue>,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            registered: CachePadded::new(AtomicUsize::new(0)),
            queue: Mutex::new(Queue::default()),
        }
    }

    /// Joins the queue. Look for a slot once more afterwards; end with [`Waiters::leave`].
    pub(crate) fn register(&self, waker: Waker) -> u64 {
        let mut queue = self.queue.lock();
        let id = queue.next_id;
        queue.next_id += 1;
        queue.entries.push_back(Entry {
            id,
            woken: false,
            waker,
        });
        // SeqCst pairs with `wake_next` (see the module).
        self.registered.fetch_add(1, Ordering::SeqCst);
        drop(queue);
        // The looks at the slots are relaxed.
        fence(Ordering::SeqCst);
        id
    }

    /// Asks for another wake-up, at the same place in the queue. Look for a slot once more
    /// afterwards.
    pub(crate) fn rearm(&self, id: u64, waker: &Waker) {
        let mut queue = self.queue.lock();
        if let Some(entry) = queue.entries.iter_mut().find(|entry| entry.id == id) {
            entry.woken = false;
            entry.waker.clone_from(waker);
        }
        drop(queue);
        // The pair again: whoever frees a slot after this finds the entry not woken. The read-modify-write
        // makes it a SeqCst store of this thread.
        self.registered.fetch_add(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Leaves the queue, with or without a slot.
    pub(crate) fn leave(&self, id: u64, with_slot: bool) {
        let mut queue = self.queue.lock();
        let Some(position) = queue.entries.iter().position(|entry| entry.id == id) else {
            debug_assert!(false, "a waiter leaves once");
            return;
        };
        let entry = queue.entries.remove(position);
        self.registered.fetch_sub(1, Ordering::SeqCst);
        drop(queue);
        if !with_slot && entry.is_some_and(|entry| entry.woken) {
            self.wake_next();
        }
    }

    /// Wakes the first waiter that is not awake. Called after a slot was given back.
    #[inline]
    pub(crate) fn wake_next(&self) {
        // SeqCst pairs with `register` (see the module).
        if self.registered.load(Ordering::SeqCst) != 0 {
            self.wake_slowly();
        }
    }

    #[cold]
    fn wake_slowly(&self) {
        let mut queue = self.queue.lock();
        let waker = queue
            .entries
            .iter_mut()
            .find(|entry| !entry.woken)
            .map(|entry| {
                entry.woken = true;
                entry.waker.clone()
            });
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_woken_waiter_that_gives_up_wakes_the_next() {
        let waiters = Waiters::new();
        let counts: Vec<Arc<Count>> = (0..3).map(|_| Arc::new(Count::default())).collect();
        let woken = || {
            counts
                .iter()
                .map(|c| c.0.load(Ordering::SeqCst))
                .collect::<Vec<u32>>()
        };
        waiters.wake_next();
        let ids: Vec<u64> = counts
            .iter()
            .map(|count| waiters.register(count.clone().into()))
            .collect();
        waiters.wake_next();
        assert_eq!(woken(), [1, 0, 0]);
        waiters.leave(ids[1], false);
        assert_eq!(woken(), [1, 0, 0], "it was not woken, so it owes nobody");
        waiters.leave(ids[0], false);
        assert_eq!(woken(), [1, 0, 1]);
        waiters.rearm(ids[2], &counts[2].clone().into());
        waiters.wake_next();
        assert_eq!(woken(), [1, 0, 2]);
        waiters.leave(ids[2], true);
    }
}
