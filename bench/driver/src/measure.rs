//! Threads that run transactions, and what is counted of them.
//!
//! Concurrency: a thread always ends with a message, even when it fails or panics, and whoever
//! fails asks the others to stop: nobody waits for one that is gone.

use crate::control::{Control, Stage, Totals};
use crate::hold::{Held, HeldSummary, HoldPlan, hold};
use crate::{Failure, disk, interrupt, machine};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vellum_base::random::Random;
use vellum_workload::engine::{Engine, Result as EngineResult, Session, Table, TxOptions};

/// What one thread runs.
pub(crate) trait Client {
    /// Draws the next transaction; returns the position of its class.
    fn draw(&mut self) -> usize;

    /// Runs it once; `now` is the date in microseconds of the epoch. Returns false if it rolled
    /// itself back as it was meant to. After an error it is rolled back.
    fn attempt<S: Session>(&mut self, session: &mut S, now: u64) -> EngineResult<bool>;

    /// How often a transaction that lost a conflict is tried at most, where nobody can have made it lose.
    fn attempts_max(&self) -> Option<u32> {
        None
    }
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
    /// Of how many transactions one is timed. Reading the clock takes some 50 ns here: nothing
    /// beside a TPC-C transaction, a twentieth of a point read.
    pub(crate) timed_every: u64,
    /// Where one more transaction writes a row and then stays idle.
    pub(crate) idle_row: Option<(Table, &'p [u8])>,
    /// Old snapshots beside the run.
    pub(crate) hold: Option<HoldPlan<'p>>,
    /// A small table whose pages are counted.
    pub(crate) counted: Option<Table>,
    /// Whose size is sampled.
    pub(crate) directory: &'p Path,
}

impl Plan<'_> {
    /// Threads that stay until the run is over.
    fn bystanders(&self) -> u32 {
        u32::from(self.idle_row.is_some()) + self.hold.map_or(0, |hold| hold.holders)
    }
}

/// What happened in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Seconds since the start.
    pub(crate) s: u64,
    /// Transactions.
    pub(crate) tx: u64,
    /// Attempts that lost a conflict.
    pub(crate) aborts: u64,
    /// Rows, where the workload counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) rows: u64,
    pub(crate) log_bytes: u64,
    pub(crate) pages_read: u64,
    pub(crate) pages_written: u64,
    /// At the end of the second, as all that follow.
    pub(crate) resident_mib: u64,
    /// What the files of the database occupy.
    pub(crate) disk_bytes: u64,
    /// Leaf pages of the main index of the workload's one small table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) leaf_pages: Option<u64>,
    /// Old versions, while snapshots are held: "table kind" (and "table kind bytes") to number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) old_versions: BTreeMap<String, u64>,
    /// There were more than the engine looks at for a sample: some are missing here, or in what holders pin.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) old_versions_incomplete: bool,
    /// Who holds them back, while snapshots are held, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) holders: Vec<HolderSample>,
    /// What else the engine counts.
    #[serde(borrow, flatten)]
    pub(crate) more: BTreeMap<&'static str, u64>,
}

/// Seconds in each of which old versions and holders are looked at; later in every tenth. A look goes through thousands of pages for each holder, 25 ms a second
/// beside ten of them: of a run that is bound to one processor that is taken from the transactions, and is no cost of the snapshots.
const LOOKED_EACH: u64 = 30;
const LOOKED_EVERY: u64 = 10;

/// Holders in a sample, at most: the oldest, and the transaction that happens to run.
const HOLDERS_MAX: usize = 16;

/// One who holds old versions back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HolderSample {
    transaction: String,
    class: &'static str,
    writer: bool,
    age_ticks: u64,
    age_s: f64,
    versions: u64,
    version_bytes: u64,
}

/// The oldest holders, and whether all that they pin was counted.
fn holders<E: Engine>(engine: &E) -> (Vec<HolderSample>, bool) {
    let holders = engine.holders();
    let complete = holders.iter().all(|holder| holder.complete);
    let holders = holders.into_iter().take(HOLDERS_MAX);
    let samples = holders
        .map(|holder| HolderSample {
            transaction: holder.transaction,
            class: holder.class,
            writer: holder.writer,
            age_ticks: holder.age_ticks,
            age_s: (holder.age_s * 10.0).round() / 10.0,
            versions: holder.versions,
            version_bytes: holder.version_bytes,
        })
        .collect();
    (samples, complete)
}

/// Old versions by table and kind, as a sample has them, and whether these are all.
fn old_versions<E: Engine>(engine: &E) -> (BTreeMap<String, u64>, bool) {
    let mut sums = BTreeMap::new();
    let (lines, complete) = engine.old_versions();
    for line in lines {
        let table = line.table.as_deref().unwrap_or("(none)");
        sums.insert(format!("{table} {}", line.kind), line.count);
        sums.insert(format!("{table} {} bytes", line.kind), line.bytes);
    }
    (sums, complete)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Latencies and counts of one class.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    /// How many of them rolled themselves back, as they were meant to.
    pub(crate) rolled_back: u64,
    /// Nanoseconds, other attempts of the same transaction included.
    pub(crate) latency: Histogram<u64>,
}

impl Class {
    /// How many committed.
    pub(crate) fn succeeded(&self) -> u64 {
        self.count - self.rolled_back
    }
}

/// What a run measured.
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) transactions: u64,
    pub(crate) aborts: u64,
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
    /// What old snapshots saw.
    pub(crate) held: HeldSummary,
    /// It was ended by a signal.
    pub(crate) interrupted: bool,
}

/// How often it is looked whether a signal came.
const INTERRUPT_TICK: Duration = Duration::from_millis(100);

/// What one thread hands back.
struct ThreadResult {
    /// Transactions by class.
    counts: Vec<u64>,
    /// Those of them that rolled themselves back.
    rolled_back: Vec<u64>,
    latencies: Vec<Histogram<u64>>,
}

enum Message {
    Ready(Result<(), Failure>),
    Done(Result<Ended, Failure>),
}

/// What a thread that ended did.
enum Ended {
    Client(ThreadResult),
    Holder(Held),
    IdleWriter,
}

/// Runs `plan` on `engine`: `make` makes the client of each thread, `on_sample` gets each second.
///
/// # Errors
/// The first failure of any thread, or of `on_sample`; all threads have ended then.
pub(crate) fn measure<'c, E: Engine, C: Client>(
    engine: &E,
    plan: &Plan<'_>,
    control: &'c Control,
    make: impl Fn(&mut E::Session<'_>, u32, &'c Control) -> EngineResult<C> + Sync,
    mut on_sample: impl FnMut(&Sample) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    assert_eq!(
        control.threads(),
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
                let work = || idle_writer(engine, control, table, key, &send);
                report(&send, control, work);
            });
        }
        for index in 0..plan.hold.map_or(0, |hold| hold.holders) {
            let send = send.clone();
            scope.spawn(move || {
                let ready = || _ = send.send(Message::Ready(Ok(())));
                let plan = plan.hold.as_ref().expect("who is held has a plan");
                let work = || hold(engine, plan, control, index, ready).map(Ended::Holder);
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

/// Sends what `work` ends with, a panic included.
fn report(
    send: &Sender<Message>,
    control: &Control,
    work: impl FnOnce() -> Result<Ended, Failure>,
) {
    // Unwind safety: after a panic nothing is looked at but counters.
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Failure::panicked(panic.as_ref())));
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
) -> Result<Ended, Failure> {
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
    let (mut transactions, mut aborts) = (0, 0);
    let mut counts = vec![0; plan.classes.len()];
    let mut rolled_back = counts.clone();
    let mut timed_in = 1;
    // Only for pauses: what is written follows from the workload's own.
    let mut random = Random::new(u64::from(thread) + 1);
    'transactions: while !control.stopped() && budget > 0 {
        let class = client.draw();
        timed_in -= 1;
        let timed = timed_in == 0;
        if timed && plan.timed_every > 1 {
            began = Instant::now();
        }
        let date = start_date + (began - start).as_micros() as u64;
        let mut attempts = 0_u32;
        loop {
            match client.attempt(&mut session, date) {
                Ok(committed) => {
                    rolled_back[class] += u64::from(!committed);
                    break;
                }
                Err(error) if error.is_retryable() => {
                    aborts += 1;
                    counters.set_aborts(aborts);
                    if control.stopped() {
                        break 'transactions;
                    }
                    attempts += 1;
                    if client.attempts_max() == Some(attempts) {
                        return Err(Failure::Fruitless {
                            class: plan.classes[class],
                            attempts,
                            source: error,
                        });
                    }
                    back_off(attempts, &mut random);
                }
                Err(error) => {
                    let action = format!("run {}", plan.classes[class]);
                    return Err(Failure::engine(&action)(error));
                }
            }
        }
        if timed {
            // Where all are timed, the end of one is the beginning of the next: one reading each.
            let ended = Instant::now();
            latencies[class].saturating_record((ended - began).as_nanos() as u64);
            began = ended;
            timed_in = plan.timed_every;
        }
        counts[class] += 1;
        transactions += 1;
        counters.set_transactions(transactions);
        budget -= 1;
    }
    Ok(Ended::Client(ThreadResult {
        counts,
        rolled_back,
        latencies,
    }))
}

/// A short random pause before a transaction that lost a conflict is run again: the winner may need this thread's core
/// to finish, and two losers shall not meet again. As long as an embedder who lets the engine run it again waits.
fn back_off(attempts: u32, random: &mut Random) {
    let most = 20_u64 << attempts.min(8);
    std::thread::sleep(Duration::from_micros(random.below(most)));
}

fn idle_writer<E: Engine>(
    engine: &E,
    control: &Control,
    table: Table,
    key: &[u8],
    send: &Sender<Message>,
) -> Result<Ended, Failure> {
    let failed = |source| Failure::Engine {
        action: "keep an idle writer".to_owned(),
        source,
    };
    let mut session = engine.open_session().map_err(failed)?;
    session.begin(TxOptions::READ_WRITE).map_err(failed)?;
    session.upsert(table, key, b"idle").map_err(failed)?;
    let _ = send.send(Message::Ready(Ok(())));
    control.await_stage(Stage::Over);
    session.rollback().map_err(failed)?;
    Ok(Ended::IdleWriter)
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
    for _ in 0..plan.threads + plan.bystanders() {
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
    let mut counts = vec![0; plan.classes.len()];
    let mut rolled_back = counts.clone();
    let mut running = plan.threads;
    let (mut beside, mut held) = (plan.bystanders(), HeldSummary::default());
    let mut samples = Vec::new();
    let (mut last, mut last_statistics) = (Totals::default(), at_start.clone());
    let mut second = 1;
    let mut interrupted = false;
    while running > 0 {
        if interrupt::requested() {
            interrupted = true;
            control.stop();
        }
        let tick = start + Duration::from_secs(second);
        let left = tick.saturating_duration_since(Instant::now());
        match receive.recv_timeout(left.min(INTERRUPT_TICK)) {
            Ok(Message::Done(result)) => {
                let result = match result? {
                    Ended::Client(result) => result,
                    // Snapshots may be released before the end.
                    Ended::Holder(one) => {
                        held.add(one);
                        beside -= 1;
                        continue;
                    }
                    Ended::IdleWriter => return Err(gone()),
                };
                for (sum, more) in latencies.iter_mut().zip(&result.latencies) {
                    sum.add(more).expect("histograms of one shape");
                }
                add(&mut counts, &result.counts);
                add(&mut rolled_back, &result.rolled_back);
                running -= 1;
            }
            Ok(Message::Ready(_)) | Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            Err(RecvTimeoutError::Timeout) if Instant::now() < tick => {}
            Err(RecvTimeoutError::Timeout) => {
                let (totals, statistics) = (control.totals(), engine.statistics());
                let is_last = matches!(plan.limit, Limit::Seconds(limit) if second >= limit);
                let looks = second <= LOOKED_EACH || second % LOOKED_EVERY == 0 || is_last;
                let ((old_versions, all), (holders, all_pinned)) = match plan.hold {
                    Some(_) if looks => (old_versions(engine), holders(engine)),
                    _ => ((BTreeMap::new(), true), (Vec::new(), true)),
                };
                let sample = Sample {
                    s: second,
                    tx: totals.transactions - last.transactions,
                    aborts: totals.aborts - last.aborts,
                    rows: totals.rows - last.rows,
                    log_bytes: statistics
                        .log_bytes
                        .saturating_sub(last_statistics.log_bytes),
                    pages_read: statistics
                        .pages_read
                        .saturating_sub(last_statistics.pages_read),
                    pages_written: statistics
                        .pages_written
                        .saturating_sub(last_statistics.pages_written),
                    resident_mib: machine::resident_mib(),
                    disk_bytes: disk::bytes(plan.directory),
                    leaf_pages: plan.counted.and_then(|table| engine.leaf_pages(table)),
                    old_versions,
                    old_versions_incomplete: !(all && all_pinned),
                    holders,
                    more: statistics.more.iter().copied().collect(),
                };
                (last, last_statistics) = (totals, statistics);
                if is_last {
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
    control.stop();
    control.enter(Stage::Over);
    while beside > 0 {
        match receive.recv().map_err(|_| gone())? {
            Message::Done(Ok(Ended::Holder(one))) => held.add(one),
            Message::Done(Ok(Ended::IdleWriter)) => {}
            Message::Done(Err(failure)) => return Err(failure),
            Message::Ready(_) | Message::Done(Ok(Ended::Client(_))) => return Err(gone()),
        }
        beside -= 1;
    }
    Ok(Measured {
        seconds,
        transactions: totals.transactions,
        aborts: totals.aborts,
        rows: totals.rows,
        classes: plan
            .classes
            .iter()
            .zip(counts.into_iter().zip(rolled_back))
            .zip(latencies)
            .map(|((name, (count, rolled_back)), latency)| Class {
                name,
                count,
                rolled_back,
                latency,
            })
            .collect(),
        samples,
        log_bytes: at_end.log_bytes.saturating_sub(at_start.log_bytes),
        pages_read: at_end.pages_read.saturating_sub(at_start.pages_read),
        pages_written: at_end.pages_written.saturating_sub(at_start.pages_written),
        more: at_end.more,
        processor: (
            processor.0 - processor_at_start.0,
            processor.1 - processor_at_start.1,
        ),
        held,
        interrupted,
    })
}

/// Adds to each sum what one thread counted.
fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_workload::engine::EngineError;
    use vellum_workload::reference::Reference;

    /// Loses whatever it tries.
    struct Loser;

    impl Client for Loser {
        fn draw(&mut self) -> usize {
            0
        }

        fn attempt<S: Session>(&mut self, _: &mut S, _now: u64) -> EngineResult<bool> {
            Err(EngineError::Conflict)
        }

        fn attempts_max(&self) -> Option<u32> {
            Some(3)
        }
    }

    #[test]
    fn who_loses_though_nobody_else_is_there_gives_up() {
        let plan = Plan {
            classes: &["load"],
            threads: 1,
            limit: Limit::Operations(1),
            timed_every: 1,
            idle_row: None,
            hold: None,
            counted: None,
            directory: Path::new("."),
        };
        let control = Control::new(1);
        let measured = measure(
            &Reference::new(),
            &plan,
            &control,
            |_, _, _| Ok(Loser),
            |_| Ok(()),
        );
        let Err(failure) = measured else {
            panic!("it cannot succeed")
        };
        assert_eq!(failure.exit_code(), 1);
        let told = failure.to_string();
        assert!(
            told.starts_with("cannot run load: conflict") && told.contains(", 3 times, "),
            "{told}"
        );
    }
}
