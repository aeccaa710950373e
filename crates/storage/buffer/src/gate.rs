//! Who evicts because he found no free frame: a few threads at a time, while the others wait for what they free.
//!
//! Each of hundreds of threads that want a frame would write a batch of its own, one batch after the other: the last got his
//! frame when all had written, from a pool that was half empty by then.
//!
//! Invariants:
//! - Q1 At most `most` threads are inside. Whoever frees frames wakes as many who wait; whoever leaves, or was woken and goes
//!   away with or without a frame, wakes one more. Who begins to wait just as frames are freed may miss that; then whoever leaves
//!   wakes him, or [`PATIENCE`] ends.
//! - Q2 Who comes to take a frame leaves those alone that others wait for: else those who have pages at hand would take them from who
//!   waits, perhaps with a latch that all the others want next.
//! - Q3 Who has waited in vain for [`PATIENCE`] drops clean pages himself, outside: writes that take long hold up no reader.
//!
//! Concurrency: a mutex around the number, held for nothing else. Who waits may hold latches of pages: those inside only try latches
//! (evict.rs, E2), so they come out.

use std::time::Duration;
use vellum_sync::atomic::{AtomicUsize, Ordering};
use vellum_sync::{CachePadded, Condvar, Mutex};

/// After how long a waiting thread helps himself.
const PATIENCE: Duration = Duration::from_millis(20);

/// The way to evicting.
pub(crate) struct Gate {
    inside: Mutex<usize>,
    /// Threads that wait; changed under the mutex. Read at every miss.
    waiting: CachePadded<AtomicUsize>,
    change: Condvar,
    most: usize,
}

/// What came of wanting to evict.
pub(crate) enum Entry<'g> {
    /// Evict, and drop this behind it.
    Inside(Inside<'g>),
    /// There may be frames now.
    Woken,
    /// Nobody has freed any for a while.
    InVain,
}

impl Gate {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            inside: Mutex::new(0),
            waiting: CachePadded::new(AtomicUsize::new(0)),
            change: Condvar::new(),
            most,
        }
    }

    /// How many threads wait for a frame. Relaxed: a hint.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Goes in if there is room, or waits for a while.
    pub(crate) fn enter(&self) -> Entry<'_> {
        let mut inside = self.inside.lock();
        if *inside < self.most {
            *inside += 1;
            return Entry::Inside(Inside { gate: self });
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (_inside, in_vain) = self.change.wait_timeout(inside, PATIENCE);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if in_vain { Entry::InVain } else { Entry::Woken }
    }

    /// Tells those who wait that frames were freed.
    #[inline]
    pub(crate) fn freed(&self, frames: usize) {
        let waiting = self.waiting();
        if waiting > 0 {
            self.wake(frames.min(waiting));
        }
    }

    /// For who was woken and goes: somebody else may have to look.
    pub(crate) fn pass_on(&self) {
        self.freed(1);
    }

    #[cold]
    fn wake(&self, threads: usize) {
        for _ in 0..threads {
            self.change.notify_one();
        }
    }
}

/// A thread that evicts, until it is dropped.
pub(crate) struct Inside<'g> {
    gate: &'g Gate,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        *self.gate.inside.lock() -= 1;
        self.gate.change.notify_one();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn few_are_inside_and_all_come_to_be() {
        let gate = Gate::new(2);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let here = loop {
                            if let Entry::Inside(here) = gate.enter() {
                                break here;
                            }
                        };
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(here);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2);
        assert_eq!(*gate.inside.lock(), 0);
    }

    #[test]
    fn who_leaves_by_an_error_makes_room() {
        let gate = Gate::new(1);
        let failing = || -> Result<(), ()> {
            let Entry::Inside(_inside) = gate.enter() else {
                return Ok(());
            };
            Err(())
        };
        for _ in 0..3 {
            assert_eq!(failing(), Err(()));
        }
        let inside = gate.enter();
        assert!(matches!(inside, Entry::Inside(_)));
        assert!(!matches!(gate.enter(), Entry::Inside(_)));
    }
}
