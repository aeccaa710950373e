//! Blocking locks with one interface over std, loom and shuttle: no poison, booleans for timeouts.
//!
//! In the normal build these are std's futex locks: 4 to 8 bytes beside the data, one
//! compare-exchange each for an uncontended lock and unlock.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

#[cfg(loom)]
use loom::sync as imp;
#[cfg(shuttle)]
use shuttle::sync as imp;
#[cfg(not(any(loom, shuttle)))]
use std::sync as imp;

pub use imp::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Declares a constructor that is `const` where the implementation's is.
macro_rules! constructor {
    ($(#[$doc:meta])* fn new($($arg:ident: $type:ty)?) -> Self $body:block) => {
        $(#[$doc])*
        #[cfg(not(any(loom, shuttle)))]
        pub const fn new($($arg: $type)?) -> Self $body
        $(#[$doc])*
        #[cfg(any(loom, shuttle))]
        pub fn new($($arg: $type)?) -> Self $body
    };
}

/// Mutual exclusion.
#[derive(Default)]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    constructor! {
        /// An unlocked mutex.
        fn new(value: T) -> Self {
            Self(imp::Mutex::new(value))
        }
    }

    /// Waits until the mutex is free and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// The value, without locking: `&mut self` shows that nobody else can have it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value itself.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&*guard).finish(),
            None => f.write_str("Mutex(locked)"),
        }
    }
}

/// Many readers or one writer.
#[derive(Default)]
pub struct RwLock<T>(imp::RwLock<T>);

impl<T> RwLock<T> {
    constructor! {
        /// An unlocked lock.
        fn new(value: T) -> Self {
            Self(imp::RwLock::new(value))
        }
    }

    /// Waits until no writer has the lock and takes it shared.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody has the lock and takes it alone.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock shared if no writer has it.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the lock alone if nobody has it.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poison)) => Some(poison.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value itself.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_tuple("RwLock").field(&*guard).finish(),
            None => f.write_str("RwLock(locked)"),
        }
    }
}

/// Waits for a change of what a [`Mutex`] guards. Wake-ups may be spurious: callers loop.
#[derive(Default)]
pub struct Condvar(imp::Condvar);

impl Condvar {
    constructor! {
        /// A condition that nobody waits for.
        fn new() -> Self {
            Self(imp::Condvar::new())
        }
    }

    /// Gives the mutex back, waits for a notification, takes the mutex again.
    #[inline]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Condvar::wait`], for at most `duration`; the flag is true where the time ran out. Under
    /// loom and shuttle it never does.
    #[inline]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, result) = self
            .0
            .wait_timeout(guard, duration)
            .unwrap_or_else(PoisonError::into_inner);
        (guard, result.timed_out())
    }

    /// Waits while `condition` holds.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Wakes one waiter, if there is one.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes every waiter.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_panic_under_a_lock_leaves_it_usable() {
        let mutex = Arc::new(Mutex::new(1));
        let inner = mutex.clone();
        let result = std::thread::spawn(move || {
            let mut guard = inner.lock();
            *guard = 2;
            panic!("on purpose");
        })
        .join();
        assert!(result.is_err());
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.try_lock().map(|guard| *guard), Some(2));
    }

    #[test]
    fn try_lock_fails_while_the_mutex_is_held() {
        let mutex = Mutex::new(());
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        assert_eq!(format!("{mutex:?}"), "Mutex(locked)");
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_writer_excludes_readers_and_readers_share() {
        let lock = RwLock::new(5);
        {
            let one = lock.read();
            let two = lock.try_read();
            assert_eq!(*one + *two.unwrap(), 10);
            assert!(lock.try_write().is_none());
        }
        *lock.write() = 6;
        let writer = lock.try_write().unwrap();
        assert!(lock.try_read().is_none());
        assert_eq!(*writer, 6);
    }

    #[test]
    fn a_wait_that_nobody_ends_times_out() {
        let (mutex, condvar) = (Mutex::new(()), Condvar::new());
        let mut guard = mutex.lock();
        loop {
            let (again, timed_out) = condvar.wait_timeout(guard, Duration::from_millis(1));
            guard = again;
            if timed_out {
                break;
            }
        }
    }

    #[test]
    fn locks_are_as_small_as_a_futex_allows() {
        assert!(size_of::<Mutex<()>>() <= 8);
        assert!(size_of::<Condvar>() <= 8);
        assert!(size_of::<RwLock<()>>() <= 12);
    }
}

#[cfg(test)]
mod model_tests {
    use super::*;
    use crate::{Arc, thread};

    fn hand_over() {
        let shared = Arc::new((Mutex::new(0_u32), Condvar::new()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            *theirs.0.lock() = 1;
            theirs.1.notify_one();
        });
        let guard = shared.1.wait_while(shared.0.lock(), |value| *value == 0);
        assert_eq!(*guard, 1);
        drop(guard);
        producer.join().unwrap();
    }

    #[test]
    fn loom_notification_is_never_lost_between_check_and_wait() {
        crate::model(50, hand_over);
    }

    #[test]
    fn shuttle_notification_is_never_lost_between_check_and_wait() {
        crate::model(500, hand_over);
    }
}
