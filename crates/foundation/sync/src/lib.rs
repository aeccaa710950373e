//! Everything that threads share goes through here, so that one source is compiled three ways:
//!
//! | build | primitives | purpose |
//! | --- | --- | --- |
//! | normal | `std` | production |
//! | `--cfg loom` | `loom` | every interleaving and every allowed reordering of a small protocol |
//! | `--cfg shuttle` | `shuttle` | random schedules of larger compositions, all accesses sequentially consistent |
//!
//! Differences that a caller must know:
//! - `new` of an atomic and of [`Mutex`], [`RwLock`], [`Condvar`] is `const` in the normal build
//!   only: no statics of them.
//! - loom takes a SeqCst *access* for an AcqRel one. A Dekker pair (store, then load the other
//!   side's word) therefore needs `fence(SeqCst)` between the two, on both sides; that is
//!   also what the hardware does for it.
//! - Under loom and shuttle time stands still: [`Condvar::wait_timeout`] never times out there and
//!   [`thread::sleep`] yields.
//! - [`Arc`] is loom's under loom (it reports leaks), and that one does not coerce to `Arc<dyn
//!   Trait>`: for trait objects use `std::sync::Arc`, which every build may share.
//!
//! A panic while a lock is held does not poison it. Data behind a [`Mutex`] is kept consistent at
//! every point that can panic, or the panic is an assertion, after which the process is not
//! trusted with anything but reading its own memory.
//!
//! Not here: page latches (`buffer`), record locks (`txn`).

#[cfg(all(loom, shuttle))]
compile_error!("loom and shuttle are two builds, not one");

mod backoff;
mod bell;
mod lock;
mod padded;
pub mod rank;
pub mod test_point;
pub mod thread;

pub use backoff::Backoff;
pub use bell::Bell;
pub use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use padded::CachePadded;

#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::Arc;

/// Atomic words.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use std::sync::atomic::Ordering;
    #[cfg(not(any(loom, shuttle)))]
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
}

/// Hints to the processor.
pub mod hint {
    /// Says that the caller spins. Under loom and shuttle another thread runs.
    #[inline]
    pub fn spin_loop() {
        #[cfg(loom)]
        loom::hint::spin_loop();
        #[cfg(shuttle)]
        shuttle::hint::spin_loop();
        #[cfg(not(any(loom, shuttle)))]
        std::hint::spin_loop();
    }
}

/// Runs `body` under the checker of this build: loom explores every interleaving, shuttle runs
/// `iterations` random schedules (seed from `VELLUM_SEED`, printed), the normal build runs it
/// `iterations` times on real threads.
pub fn model(iterations: usize, body: impl Fn() + Send + Sync + 'static) {
    #[cfg(loom)]
    {
        let _ = iterations;
        loom::model(body);
    }
    #[cfg(shuttle)]
    {
        let seed = vellum_base::replay::seed();
        println!("shuttle schedules from VELLUM_SEED={seed}");
        model_from(seed, iterations, body);
    }
    #[cfg(not(any(loom, shuttle)))]
    for _ in 0..iterations {
        body();
    }
}

/// Runs `body` in the random schedules of a seed: the same ones, in the same order, for the same seed.
#[cfg(shuttle)]
pub fn model_from(seed: u64, iterations: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    // Opening a database goes deeper than shuttle's usual 32 KiB.
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(20_000_000);
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(seed, iterations);
    shuttle::Runner::new(scheduler, config).run(body);
}
