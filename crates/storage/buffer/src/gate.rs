//! Who evicts because he found no free frame: a few threads at a time, while the others wait for what they free.
//!
//! Each of hundreds of threads that want a frame would write a batch of its own, one batch after the other: the last got his
//! frame when all had written, from a pool that was half empty by then.
//!
//! Invariants:
//! - Q1 At most `most` threads are inside. Who leaves wakes one to come in after him, who frees frames as many as he freed.
//! - Q2 Who comes to take a frame leaves those alone that others wait for: else those who have pages at hand would take them from who
//!   waits, perhaps with a latch that all the others want next.
//!
//! Concurrency: a mutex around the number, held for nothing else. Who waits may hold latches of pages: those inside only try latches
//! (evict.rs, E2), so they come out. A wake-up that is missed costs [`PATIENCE`].

use std::time::Duration;
use vellum_sync::atomic::{AtomicUsize, Ordering};
use vellum_sync::{Condvar, Mutex};

/// How many threads evict at a time for themselves.
pub(crate) const EVICTORS_MAX: usize = 8;

/// After how long a waiting thread looks for a frame that somebody else has freed.
const PATIENCE: Duration = Duration::from_millis(20);

/// The way to evicting.
pub(crate) struct Gate {
    inside: Mutex<usize>,
    /// Threads that wait; changed under the mutex.
    waiting: AtomicUsize,
    change: Condvar,
    most: usize,
}

impl Gate {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            inside: Mutex::new(0),
            waiting: AtomicUsize::new(0),
            change: Condvar::new(),
            most,
        }
    }

    /// How many threads wait for a frame. Relaxed: a hint.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Goes in if there is room. `None` after waiting for a while: there may be frames now.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let mut inside = self.inside.lock();
        if *inside < self.most {
            *inside += 1;
            return Some(Inside { gate: self });
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (_inside, _) = self.change.wait_timeout(inside, PATIENCE);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Tells those who wait that frames were freed.
    pub(crate) fn freed(&self, frames: usize) {
        for _ in 0..frames.min(self.waiting()) {
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
                            if let Some(here) = gate.enter() {
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
            let _inside = gate.enter().ok_or(())?;
            Err(())
        };
        for _ in 0..3 {
            assert_eq!(failing(), Err(()));
        }
        let inside = gate.enter();
        assert!(inside.is_some() && gate.enter().is_none());
    }
}
