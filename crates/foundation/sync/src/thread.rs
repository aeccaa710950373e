//! Threads. Nothing below `engine` starts one (tests do); the layers below only yield and park.

use std::time::Duration;

#[cfg(loom)]
pub use loom::thread::{JoinHandle, Thread, ThreadId, current, park, spawn, yield_now};
#[cfg(shuttle)]
pub use shuttle::thread::{JoinHandle, Thread, ThreadId, current, park, spawn, yield_now};
#[cfg(not(any(loom, shuttle)))]
pub use std::thread::{JoinHandle, Thread, ThreadId, current, park, spawn, yield_now};

/// Threads that borrow from their maker: for work that ends before the call does (recovery's redo).
#[cfg(shuttle)]
pub use shuttle::thread::scope;
#[cfg(not(any(loom, shuttle)))]
pub use std::thread::scope;

/// Parks for at most `duration`, or until unparked. As with std, it may return early for no
/// reason; under loom and shuttle it returns after letting others run.
#[inline]
pub fn park_timeout(duration: Duration) {
    #[cfg(any(loom, shuttle))]
    {
        let _ = duration;
        yield_now();
    }
    #[cfg(not(any(loom, shuttle)))]
    std::thread::park_timeout(duration);
}

/// Sleeps; under loom and shuttle, yields.
#[inline]
pub fn sleep(duration: Duration) {
    #[cfg(any(loom, shuttle))]
    {
        let _ = duration;
        yield_now();
    }
    #[cfg(not(any(loom, shuttle)))]
    std::thread::sleep(duration);
}
