//! Named places in the code where a test may stop a thread.
//!
//! `test_point!("leaf split: new leaf linked")` is nothing in a normal build. Under shuttle it is
//! a scheduling point. With the feature `test-points` (set it in `[dev-dependencies]`) it calls
//! what the test has registered in a `TestPoints`, for threads that entered that set: tests that
//! run in parallel do not disturb each other.
//!
//! ```
//! # #[cfg(feature = "test-points")] {
//! use vellum_sync::test_point::TestPoints;
//! let points = TestPoints::new();
//! let pause = points.pause("between the halves");
//! let entered = points.clone();
//! let writer = std::thread::spawn(move || {
//!     let _scope = entered.enter();
//!     vellum_sync::test_point!("between the halves");
//! });
//! pause.wait_reached();
//! // … look at the half-done state …
//! pause.release();
//! writer.join().unwrap();
//! # }
//! ```

/// Marks a place by name; see [`mod@crate::test_point`].
#[macro_export]
macro_rules! test_point {
    ($name:expr) => {
        $crate::test_point::hit($name)
    };
}

/// What [`test_point!`] calls.
#[inline(always)]
pub fn hit(name: &'static str) {
    #[cfg(shuttle)]
    crate::thread::yield_now();
    #[cfg(all(any(test, feature = "test-points"), not(any(loom, shuttle))))]
    enabled::hit(name);
    let _ = name;
}

#[cfg(all(any(test, feature = "test-points"), not(any(loom, shuttle))))]
pub use enabled::{Entered, Pause, TestPoints};

#[cfg(all(any(test, feature = "test-points"), not(any(loom, shuttle))))]
mod enabled {
    use crate::{Condvar, Mutex};
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::fmt;
    use std::sync::Arc;

    type Callback = Arc<dyn Fn() + Send + Sync>;

    thread_local! {
        static ENTERED: RefCell<Vec<TestPoints>> = const { RefCell::new(Vec::new()) };
    }

    /// Callbacks by name, for the threads that entered. Clones share them.
    #[derive(Clone, Default)]
    pub struct TestPoints {
        callbacks: Arc<Mutex<BTreeMap<&'static str, Callback>>>,
    }

    impl fmt::Debug for TestPoints {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("TestPoints")
        }
    }

    impl TestPoints {
        /// A set without callbacks.
        pub fn new() -> Self {
            Self::default()
        }

        /// Calls `callback` whenever a thread that entered passes `name`; replaces an earlier one.
        pub fn on(&self, name: &'static str, callback: impl Fn() + Send + Sync + 'static) {
            self.callbacks.lock().insert(name, Arc::new(callback));
        }

        /// Forgets the callback of `name`.
        pub fn off(&self, name: &'static str) {
            self.callbacks.lock().remove(name);
        }

        /// Stops the first thread that passes `name` until [`Pause::release`]; later passes
        /// go on at once.
        pub fn pause(&self, name: &'static str) -> Pause {
            let pause = Pause::default();
            let theirs = pause.clone();
            self.on(name, move || theirs.pass());
            pause
        }

        /// Makes this thread listen to the set until the guard is dropped.
        pub fn enter(&self) -> Entered {
            ENTERED.with(|entered| entered.borrow_mut().push(self.clone()));
            Entered {
                not_send: std::marker::PhantomData,
            }
        }
    }

    /// See [`TestPoints::enter`].
    #[derive(Debug)]
    #[must_use = "the thread leaves the set when the guard is dropped"]
    pub struct Entered {
        not_send: std::marker::PhantomData<*const ()>,
    }

    impl Drop for Entered {
        fn drop(&mut self) {
            ENTERED.with(|entered| entered.borrow_mut().pop());
        }
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    enum Stage {
        #[default]
        Armed,
        Reached,
        Released,
    }

    /// A thread that waits, or will wait, at a test point.
    #[derive(Clone, Debug, Default)]
    pub struct Pause {
        state: Arc<(Mutex<Stage>, Condvar)>,
    }

    impl Pause {
        fn pass(&self) {
            let (stage, changed) = &*self.state;
            let mut guard = stage.lock();
            if *guard == Stage::Armed {
                *guard = Stage::Reached;
                changed.notify_all();
                drop(changed.wait_while(guard, |stage| *stage != Stage::Released));
            }
        }

        /// Waits until a thread stands at the point (or was released there).
        pub fn wait_reached(&self) {
            let (stage, changed) = &*self.state;
            drop(changed.wait_while(stage.lock(), |stage| *stage == Stage::Armed));
        }

        /// Lets the thread go on; if none has come yet, none will stop.
        pub fn release(&self) {
            let (stage, changed) = &*self.state;
            *stage.lock() = Stage::Released;
            changed.notify_all();
        }
    }

    pub(super) fn hit(name: &'static str) {
        // The callback runs outside all borrows: it may pass test points itself.
        let found: Vec<Callback> = ENTERED
            .try_with(|entered| {
                let entered = entered.borrow();
                entered
                    .iter()
                    .filter_map(|set| set.callbacks.lock().get(name).cloned())
                    .collect()
            })
            .unwrap_or_default();
        for callback in found {
            callback();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::TestPoints;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn only_threads_that_entered_call_back() {
        let points = TestPoints::new();
        let count = Arc::new(AtomicU32::new(0));
        let counter = count.clone();
        points.on("here", move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        test_point!("here");
        assert_eq!(count.load(Ordering::Relaxed), 0);
        let scope = points.enter();
        test_point!("here");
        test_point!("elsewhere");
        std::thread::spawn(|| test_point!("here")).join().unwrap();
        drop(scope);
        test_point!("here");
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn paused_thread_stands_until_it_is_released() {
        let points = TestPoints::new();
        let pause = points.pause("middle");
        let passed = Arc::new(AtomicU32::new(0));
        let (entered, theirs) = (points.clone(), passed.clone());
        let thread = std::thread::spawn(move || {
            let _scope = entered.enter();
            theirs.store(1, Ordering::SeqCst);
            test_point!("middle");
            theirs.store(2, Ordering::SeqCst);
            test_point!("middle");
        });
        pause.wait_reached();
        assert_eq!(passed.load(Ordering::SeqCst), 1);
        pause.release();
        thread.join().unwrap();
        assert_eq!(passed.load(Ordering::SeqCst), 2);
    }
}
