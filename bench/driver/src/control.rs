//! What the threads of a run share: the request to stop, counters, and how far the run is.
//!
//! States ([`Stage`], [`Control::enter`]): everybody prepares, `Waiting`; all are ready, `Running`;
//! all are done, or one has failed, `Over`. [`Control::stop`] asks for the end; a thread looks at it
//! between transactions and between attempts of one.
//!
//! Concurrency: each thread counts in cache lines of its own, which the sampler reads. Counters and
//! the request order nothing: results travel through a channel.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// What a thread has done so far. Written by it alone, read by the sampler.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    transactions: AtomicU64,
    aborts: AtomicU64,
    rows: AtomicU64,
}

impl Counters {
    /// The number of transactions so far.
    #[inline]
    pub(crate) fn set_transactions(&self, count: u64) {
        self.transactions.store(count, Ordering::Relaxed);
    }

    /// The number of attempts so far that lost a conflict.
    #[inline]
    pub(crate) fn set_aborts(&self, count: u64) {
        self.aborts.store(count, Ordering::Relaxed);
    }

    /// Counts rows that were read or written.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows
            .store(self.rows.load(Ordering::Relaxed) + rows, Ordering::Relaxed);
    }
}

/// What the threads of a run share.
#[derive(Debug)]
pub(crate) struct Control {
    stop: AtomicBool,
    counters: Vec<Counters>,
    stage: Mutex<Stage>,
    changed: Condvar,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Threads prepare.
    Waiting,
    /// All were ready: transactions run.
    Running,
    /// Only idle writers and holders of old snapshots wait for this.
    Over,
}

impl Control {
    /// For as many threads as the plan of the run has.
    pub(crate) fn new(threads: u32) -> Self {
        Self {
            stop: AtomicBool::new(false),
            counters: (0..threads).map(|_| Counters::default()).collect(),
            stage: Mutex::new(Stage::Waiting),
            changed: Condvar::new(),
        }
    }

    /// True once the run is to end.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks everybody to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.counters.len()
    }

    /// The counters of one thread.
    pub(crate) fn counters(&self, thread: u32) -> &Counters {
        &self.counters[thread as usize]
    }

    /// Lets everybody go on who waits for this stage.
    pub(crate) fn enter(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.changed.notify_all();
    }

    /// Waits until the run has come to a stage.
    pub(crate) fn await_stage(&self, wanted: Stage) {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.changed
                .wait_while(stage, |stage| *stage < wanted)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Waits until `deadline`, or until the run is over: false then.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        while *stage < Stage::Over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.changed.wait_timeout(stage, left);
            stage = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Sums over all threads.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for counters in &self.counters {
            totals.transactions += counters.transactions.load(Ordering::Relaxed);
            totals.aborts += counters.aborts.load(Ordering::Relaxed);
            totals.rows += counters.rows.load(Ordering::Relaxed);
        }
        totals
    }
}

/// Sums over all threads.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) transactions: u64,
    pub(crate) aborts: u64,
    pub(crate) rows: u64,
}
