//! Waiting for something short that another thread is about to do.

/// Escalating wait for a loop that retries: spins a few rounds, then yields, then sleeps briefly, so
/// that a preempted holder gets the processor. Under loom and shuttle every step is one yield.
///
/// ```
/// # use vellum_sync::{Backoff, atomic::{AtomicBool, Ordering}};
/// # let free = AtomicBool::new(true);
/// let mut backoff = Backoff::new();
/// while !free.load(Ordering::Acquire) {
///     backoff.wait();
/// }
/// ```
#[derive(Debug, Default)]
pub struct Backoff {
    step: u32,
}

impl Backoff {
    /// Steps that spin: 1 + 2 + … + 32 pauses, about a microsecond in all.
    const SPIN_STEPS: u32 = 6;
    /// Steps that yield after those.
    #[cfg(not(any(loom, shuttle)))]
    const YIELD_STEPS: u32 = 10;

    /// A wait that starts with spinning.
    pub const fn new() -> Self {
        Self { step: 0 }
    }

    /// Starts over, after progress was made.
    pub fn reset(&mut self) {
        self.step = 0;
    }

    /// True once spinning has not helped: a caller that can park should do so now.
    pub const fn should_park(&self) -> bool {
        self.step >= Self::SPIN_STEPS
    }

    /// Waits a little longer than the last time (at most a millisecond).
    #[inline]
    pub fn wait(&mut self) {
        #[cfg(any(loom, shuttle))]
        crate::thread::yield_now();
        #[cfg(not(any(loom, shuttle)))]
        self.wait_really();
        self.step = self.step.saturating_add(1);
    }

    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    fn wait_really(&self) {
        if self.step < Self::SPIN_STEPS {
            for _ in 0..1_u32 << self.step {
                std::hint::spin_loop();
            }
        } else if self.step < Self::SPIN_STEPS + Self::YIELD_STEPS {
            std::thread::yield_now();
        } else {
            let doublings = (self.step - Self::SPIN_STEPS - Self::YIELD_STEPS).min(5);
            std::thread::sleep(std::time::Duration::from_micros(32 << doublings));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn waiting_asks_for_parking_only_after_spinning_and_reset_starts_over() {
        let mut backoff = Backoff::new();
        for _ in 0..Backoff::SPIN_STEPS {
            assert!(!backoff.should_park());
            backoff.wait();
        }
        assert!(backoff.should_park());
        for _ in 0..Backoff::YIELD_STEPS + 2 {
            backoff.wait();
        }
        backoff.reset();
        assert!(!backoff.should_park());
    }
}
