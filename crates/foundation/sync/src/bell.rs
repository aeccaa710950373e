//! A flag that one thread waits for and others raise.

use std::time::Duration;

use crate::{Condvar, Mutex};

/// A flag with a bell. A ring that comes before the wait is kept; several count as one.
///
/// ```
/// let bell = vellum_sync::Bell::default();
/// bell.ring();
/// bell.wait();
/// assert!(!bell.take());
/// ```
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl Bell {
    /// Ends the wait of the one who waits, or the next one.
    pub fn ring(&self) {
        *self.rung.lock() = true;
        self.condition.notify_one();
    }

    /// Waits for a ring.
    pub fn wait(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            rung = self.condition.wait(rung);
        }
        *rung = false;
    }

    /// As [`Bell::wait`], for about `duration`; false if nobody rang. Under loom and shuttle it is not over before somebody rings.
    pub fn wait_timeout(&self, duration: Duration) -> bool {
        let mut rung = self.rung.lock();
        while !*rung {
            let (guard, timed_out) = self.condition.wait_timeout(rung, duration);
            rung = guard;
            if timed_out {
                break;
            }
        }
        std::mem::take(&mut *rung)
    }

    /// Takes a ring, if there was one; does not wait.
    pub fn take(&self) -> bool {
        std::mem::take(&mut *self.rung.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arc, thread};

    #[test]
    fn loom_ring_is_never_lost_between_look_and_wait() {
        crate::model(50, || {
            let bell = Arc::new(Bell::default());
            let theirs = bell.clone();
            let rings = thread::spawn(move || theirs.ring());
            bell.wait();
            assert!(!bell.take(), "a ring counts once");
            rings.join().unwrap();
        });
    }

    #[cfg(not(any(loom, shuttle)))]
    #[test]
    fn a_ring_is_kept_and_nobody_rings_for_ever() {
        let bell = Bell::default();
        assert!(!bell.wait_timeout(Duration::from_millis(1)));
        bell.ring();
        bell.ring();
        assert!(bell.wait_timeout(Duration::from_secs(3600)));
        assert!(!bell.take());
    }
}
