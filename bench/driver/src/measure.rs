//! Threads that run transactions, and what is counted of them.
//!
//! States of a run (`Stage`): everybody prepares, `Waiting`; all are ready, `Running`; all are
//! done, `Over`, which only the idle writer waits for. `Control::stop` asks for the end; a thread
//! looks at it between transactions and between attempts of one.
//!
//! Concurrency: each thread counts in a cache line of its own, which the sampler reads. A thread
//! always sends exactly two messages, ready and done, even when it fails or panics: nobody waits
//! for one that is gone.

use crate::{Failure, machine};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vellum_workload::engine::{Engine, Result as EngineResult, Session, Table, TxOptions};

/// What one thread runs.
pub(crate) trait Client {
    /// Draws the next transaction; returns the position of its class.
    fn draw(&mut self) -> usize;

    /// Runs it once; `now` is the date in microseconds of the epoch. Returns false if it rolled
    /// itself back as it was meant to. After an error it is rolled back.
    fn attempt<S: Session>(&mut self, session: &mut S, now: u64) -> EngineResult<bool>;
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// After this time.
    Seconds(u64),
    /// After this many transactions of all threads.
    Operations(u64),
}

/// What is to be run.
pub(crate) struct Plan<'p> {
    /// Names of the kinds of transactions.
    pub(crate) classes: &'p [&'static str],
    pub(crate) threads: u32,
    pub(crate) limit: Limit,
    /// Where one more transaction writes a row and then stays idle.
    pub(crate) idle_row: Option<(Table, &'p [u8])>,
}

/// What a thread has done so far. Written by it alone, read by the sampler.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    transactions: AtomicU64,
    aborts: AtomicU64,
    rows: AtomicU64,
}

impl Counters {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Waiting,
    Running,
    Over,
}

impl Control {
    fn new(threads: u32) -> Self {
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

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The counters of one thread.
    pub(crate) fn counters(&self, thread: u32) -> &Counters {
        &self.counters[thread as usize]
    }

    fn enter(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.changed.notify_all();
    }

    fn await_stage(&self, wanted: Stage) {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.changed
                .wait_while(stage, |stage| *stage < wanted)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for counters in &self.counters {
            totals.transactions += counters.transactions.load(Ordering::Relaxed);
            totals.aborts += counters.aborts.load(Ordering::Relaxed);
            totals.rows += counters.rows.load(Ordering::Relaxed);
        }
        totals
    }
}

#[derive(Clone, Copy, Default)]
struct Totals {
    transactions: u64,
    aborts: u64,
    rows: u64,
}

/// What happened in one second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the start.
    pub(crate) s: u64,
    /// Transactions.
    pub(crate) tx: u64,
    /// Attempts that lost a conflict.
    pub(crate) aborts: u64,
    /// Rows, where the workload counts them.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) rows: u64,
    pub(crate) log_bytes: u64,
    pub(crate) pages_read: u64,
    pub(crate) pages_written: u64,
    /// At the end of the second.
    pub(crate) resident_mib: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Latencies and counts of one class.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// Nanoseconds, other attempts of the same transaction included.
    pub(crate) latency: Histogram<u64>,
}

/// What a run measured.
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) transactions: u64,
    pub(crate) aborts: u64,
    pub(crate) rolled_back: u64,
    pub(crate) rows: u64,
    pub(crate) classes: Vec<Class>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) log_bytes: u64,
    pub(crate) pages_read: u64,
    pub(crate) pages_written: u64,
    /// Other counters of the engine, at the end.
    pub(crate) more: Vec<(&'static str, u64)>,
    /// Processor seconds in user code and in the kernel.
    pub(crate) processor: (f64, f64),
}

/// What one thread hands back.
struct ThreadResult {
    latencies: Vec<Histogram<u64>>,
    rolled_back: u64,
}

enum Message {
    Ready(Result<(), Failure>),
    Done(Result<Option<ThreadResult>, Failure>),
}

/// Runs `plan` on `engine`: `make` makes the client of each thread, `on_sample` gets each second.
///
/// # Errors
/// The first failure of any thread, or of `on_sample`; all threads have ended then.
pub(crate) fn measure<'c, E: Engine, C: Client>(
    engine: &E,
    plan: &Plan<'_>,
    control: &'c ControlFor,
    make: impl Fn(&mut E::Session<'_>, u32, &'c Control) -> EngineResult<C> + Sync,
    mut on_sample: impl FnMut(&Sample) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let control = &control.0;
    assert_eq!(
        control.counters.len(),
        plan.threads as usize,
        "a control for these threads"
    );
    let (send, receive) = channel();
    std::thread::scope(|scope| {
        for thread in 0..plan.threads {
            let (send, make) = (send.clone(), &make);
            scope.spawn(move || {
                let work = || work(engine, plan, control, thread, make, &send);
                report(&send, control, work);
            });
        }
        if let Some((table, key)) = plan.idle_row {
            let send = send.clone();
            scope.spawn(move || {
                let work = || idle_writer(engine, control, table, key, &send).map(|()| None);
                report(&send, control, work);
            });
        }
        drop(send);
        let watched = watch(engine, plan, control, &receive, &mut on_sample);
        // Whatever happened: nobody waits any more, and the scope joins everybody.
        control.stop();
        control.enter(Stage::Over);
        watched
    })
}

/// The shared part of a run, made before it so that clients can refer to it.
pub(crate) struct ControlFor(Control);

impl ControlFor {
    /// For as many threads as the plan has.
    pub(crate) fn threads(threads: u32) -> Self {
        Self(Control::new(threads))
    }
}

/// Sends what `work` ends with, a panic included.
fn report(
    send: &Sender<Message>,
    control: &Control,
    work: impl FnOnce() -> Result<Option<ThreadResult>, Failure>,
) {
    // Unwind safety: after a panic nothing is looked at but counters.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Failure::Panicked(text.unwrap_or("no message").to_owned()))
    });
    if result.is_err() {
        control.stop();
    }
    // The receiver is gone only after a failure that it returns already.
    let _ = send.send(Message::Done(result));
}

fn work<'c, 'e, E: Engine, C: Client>(
    engine: &'e E,
    plan: &Plan<'_>,
    control: &'c Control,
    thread: u32,
    make: &impl Fn(&mut E::Session<'e>, u32, &'c Control) -> EngineResult<C>,
    send: &Sender<Message>,
) -> Result<Option<ThreadResult>, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let mut client =
        make(&mut session, thread, control).map_err(Failure::engine("prepare a thread"))?;
    let mut latencies = Vec::new();
    for _ in plan.classes {
        latencies.push(new_histogram());
    }
    let mut budget = match plan.limit {
        Limit::Seconds(_) => u64::MAX,
        Limit::Operations(all) => {
            let threads = u64::from(plan.threads);
            all / threads + u64::from(u64::from(thread) < all % threads)
        }
    };
    let _ = send.send(Message::Ready(Ok(())));
    control.await_stage(Stage::Running);

    let counters = control.counters(thread);
    let (start, start_date) = (Instant::now(), epoch_micros());
    let mut began = start;
    let (mut transactions, mut aborts, mut rolled_back) = (0, 0, 0);
    'transactions: while !control.stopped() && budget > 0 {
        let class = client.draw();
        let date = start_date + (began - start).as_micros() as u64;
        let mut attempts = 0_u32;
        loop {
            match client.attempt(&mut session, date) {
                Ok(committed) => {
                    rolled_back += u64::from(!committed);
                    break;
                }
                Err(error) if error.is_retryable() => {
                    aborts += 1;
                    counters.aborts.store(aborts, Ordering::Relaxed);
                    if control.stopped() {
                        break 'transactions;
                    }
                    back_off(&mut attempts);
                }
                Err(error) => {
                    let action = format!("run {}", plan.classes[class]);
                    return Err(Failure::Engine {
                        action,
                        source: error,
                    });
                }
            }
        }
        // One reading of the clock a transaction: the end of one is the beginning of the next.
        let ended = Instant::now();
        latencies[class].saturating_record((ended - began).as_nanos() as u64);
        began = ended;
        transactions += 1;
        counters.transactions.store(transactions, Ordering::Relaxed);
        budget -= 1;
    }
    Ok(Some(ThreadResult {
        latencies,
        rolled_back,
    }))
}

/// The winner of a conflict may need this thread's core to finish.
fn back_off(attempts: &mut u32) {
    *attempts += 1;
    if *attempts < 4 {
        for _ in 0..1 << *attempts {
            std::hint::spin_loop();
        }
    } else {
        std::thread::yield_now();
    }
}

fn idle_writer<E: Engine>(
    engine: &E,
    control: &Control,
    table: Table,
    key: &[u8],
    send: &Sender<Message>,
) -> Result<(), Failure> {
    let failed = |source| Failure::Engine {
        action: "keep an idle writer".to_owned(),
        source,
    };
    let mut session = engine.open_session().map_err(failed)?;
    session.begin(TxOptions::READ_WRITE).map_err(failed)?;
    session.upsert(table, key, b"idle").map_err(failed)?;
    let _ = send.send(Message::Ready(Ok(())));
    control.await_stage(Stage::Over);
    session.rollback().map_err(failed)
}

/// Starts the run when all are ready, samples it, ends it, and adds up.
fn watch<E: Engine>(
    engine: &E,
    plan: &Plan<'_>,
    control: &Control,
    receive: &Receiver<Message>,
    on_sample: &mut impl FnMut(&Sample) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let gone = || Failure::Panicked("a thread ended without a word".to_owned());
    for _ in 0..plan.threads + u32::from(plan.idle_row.is_some()) {
        match receive.recv().map_err(|_| gone())? {
            Message::Ready(ready) => ready?,
            Message::Done(Err(failure)) => return Err(failure),
            Message::Done(Ok(_)) => return Err(gone()),
        }
    }

    let at_start = engine.statistics();
    let processor_at_start = machine::processor_seconds();
    let start = Instant::now();
    control.enter(Stage::Running);

    let mut latencies: Vec<_> = plan.classes.iter().map(|_| new_histogram()).collect();
    let (mut running, mut rolled_back) = (plan.threads, 0);
    let mut samples = Vec::new();
    let (mut last, mut last_statistics) = (Totals::default(), at_start.clone());
    let mut second = 1;
    while running > 0 {
        let tick = start + Duration::from_secs(second);
        match receive.recv_timeout(tick.saturating_duration_since(Instant::now())) {
            Ok(Message::Done(result)) => {
                let Some(result) = result? else {
                    return Err(gone());
                };
                for (sum, more) in latencies.iter_mut().zip(&result.latencies) {
                    sum.add(more).expect("histograms of one shape");
                }
                rolled_back += result.rolled_back;
                running -= 1;
            }
            Ok(Message::Ready(_)) | Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            Err(RecvTimeoutError::Timeout) => {
                let (totals, statistics) = (control.totals(), engine.statistics());
                let sample = Sample {
                    s: second,
                    tx: totals.transactions - last.transactions,
                    aborts: totals.aborts - last.aborts,
                    rows: totals.rows - last.rows,
                    log_bytes: statistics.log_bytes - last_statistics.log_bytes,
                    pages_read: statistics.pages_read - last_statistics.pages_read,
                    pages_written: statistics.pages_written - last_statistics.pages_written,
                    resident_mib: machine::resident_mib(),
                };
                (last, last_statistics) = (totals, statistics);
                if matches!(plan.limit, Limit::Seconds(limit) if second >= limit) {
                    control.stop();
                }
                on_sample(&sample)?;
                samples.push(sample);
                second += 1;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (processor, totals) = (machine::processor_seconds(), control.totals());
    let at_end = engine.statistics();
    Ok(Measured {
        seconds,
        transactions: totals.transactions,
        aborts: totals.aborts,
        rolled_back,
        rows: totals.rows,
        classes: plan
            .classes
            .iter()
            .zip(latencies)
            .map(|(name, latency)| Class { name, latency })
            .collect(),
        samples,
        log_bytes: at_end.log_bytes - at_start.log_bytes,
        pages_read: at_end.pages_read - at_start.pages_read,
        pages_written: at_end.pages_written - at_start.pages_written,
        more: at_end.more,
        processor: (
            processor.0 - processor_at_start.0,
            processor.1 - processor_at_start.1,
        ),
    })
}

/// From a nanosecond to an hour, to one per cent.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds are constant and legal")
}

/// The date, for rows; at least 1, since zero means: not delivered.
pub(crate) fn epoch_micros() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX).max(1)
}
