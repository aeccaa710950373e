//! Background work: steps that a test can drive one by one, and the threads that drive them otherwise.
//!
//! | thread | waits for | does |
//! | --- | --- | --- |
//! | log | a wanted flush round | flush rounds for polled waits and half-full rings |
//! | evict | the pool's low-water mark, or pages being made | eviction, memory for pages that are made next |
//! | checkpoint | a tick, log pressure | checkpoints |
//! | maintain | a tick | passes, collection of idle slots, the count of dropped tables' pages, fat rows of cold pages, rollback of abandoned writers, growth of the file, huge pages under what stays in memory, hardening of asynchronous commits |
//!
//! Recovery undoes beside the first two alone.
//!
//! Collection that has to read from the disk ends its step after [`STEP_PAGES`] pages, goes on with the next slot after that, and rests three times as long as it took ([`Pace`]), so what an old
//! snapshot has left of a database larger than its pool takes about a quarter of one thread's reads from who works, however many slots it is in. (Without: 26 MiB of versions went in a second, in which TPC-C made 0.4 of its rate.)
//! Not where snapshots or writers give way when there are too many old versions: who is to blame there is found by what collections leave.
//!
//! A tick bounds how long an idle database keeps garbage and how much an asynchronous commit can lose; nobody
//! waits for one.

use crate::VersionPolicy;
use crate::engine::{Engine, SystemSlot};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_base::{Result, SlotId, StorageError};
use vellum_gc::{Budget, Horizon};
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_sync::{Bell, Mutex};
use vellum_txn::{ActiveSnapshots, TransactionError};
use vellum_version::{Reverter, VersionError};

/// How long an asynchronous commit can stay in memory while nothing else flushes.
const MAINTENANCE_TICK: Duration = Duration::from_millis(50);
/// How often it is looked whether a checkpoint is due.
const CHECKPOINT_TICK: Duration = Duration::from_millis(20);
/// Work-list entries of one idle slot in one step.
const IDLE_ITEMS: u32 = 4096;
/// Steps of collection in one tick, while there is more that could be collected.
const IDLE_STEPS: u32 = 8;
/// Bytes of rows of one idle slot in one step.
const IDLE_BYTES: u64 = 16 << 20;
/// Pages in one step of maintenance: so many of dropped trees are counted, and when so many were read from the disk, by whomever, a collection that is paced goes
/// on to no further slot.
const STEP_PAGES: u64 = 64;

impl Engine {
    /// One unit of every kind of background work. True if there was something to do.
    pub fn background_step(&self) -> Result<bool> {
        // Whatever else rests: who has fallen behind is found here where nobody commits often enough.
        self.manager.note_time();
        self.manager.pass();
        self.manager.close_unused_slots();
        let mut busy = self.roll_back_parked()?;
        busy |= self.collect_idle()?;
        busy |= self.count_dropped(STEP_PAGES as usize)?;
        busy |= self.make_fat_plain()?;
        busy |= self.keep_version_budget();
        if self.log.flush_round()?.bytes > 0 {
            busy = true;
        }
        if self.pool.free_frames() < self.pool.low_water() {
            let evicted = self.pool.evict_step(self.pool.high_water())?;
            // In a pool of a few frames the step itself reads what the next one has to make room for: that would go on for ever.
            busy |= evicted > 0 && self.pool.free_frames() < self.pool.low_water();
        }
        if self.space.runs_short() {
            // A disk that is full is found by who needs the space.
            busy |= self.space.grow().is_ok();
        }
        if self.checkpoint_is_due() {
            self.checkpoint()?;
            busy = true;
        }
        busy |= self.free_copies_now()?;
        busy |= self.pool.join_step();
        busy |= self.pool.get_memory_ahead();
        Ok(busy)
    }

    /// Reverts writers that were dropped and could not be rolled back then. True if there were any.
    ///
    /// # Errors
    /// The first error of a writer that stays parked; the others are rolled back.
    pub fn roll_back_parked(&self) -> Result<bool> {
        let (mut any, mut first) = (false, None);
        for slot in self.manager.parked_slots() {
            let Some(parked) = self.manager.take_parked(slot) else {
                continue;
            };
            let log = self.log.slot(slot);
            let mut reverter = Reverter::running(&self.store, log, &self.carried);
            match parked.rollback(&mut reverter) {
                Ok(()) => any = true,
                Err(error) => first = first.or(Some(error)),
            }
        }
        first.map_or(Ok(any), Err)
    }

    /// Frees chains and trees that transactions made and do not keep: those that could not be freed at once, and those of
    /// writers that were parked. In the log of the engine's own slot: a writer's is somebody else's by now. For who holds
    /// `maintenance`.
    pub fn free_given_up(&self) -> Result<bool> {
        let live = || {
            let slots = (0..self.manager.slots_ever() as u16).map(SlotId);
            let live = slots.filter_map(|id| self.log.slot(id).lock().live_transaction());
            live.map(|live| live.0).collect()
        };
        let log = self.system_slot(SystemSlot::Maintenance);
        match self.store.free_ownerless_and(live, log) {
            // When there is log again.
            Err(StorageError::OutOfSpace { .. }) => Ok(false),
            freed => freed,
        }
    }

    /// Collects garbage of slots that nobody uses, or somebody for long. True if there was any. Does nothing while `maintenance` is taken:
    /// who looks at the whole database wants it to rest.
    pub fn collect_idle(&self) -> Result<bool> {
        self.collect_idle_within(u64::MAX)
    }

    /// The same, of as many slots as are gone through until `reads_max` pages were read from the disk, one at least.
    fn collect_idle_within(&self, reads_max: u64) -> Result<bool> {
        match self.maintenance.try_lock() {
            Some(mut turn) => self.collect_slots(&mut turn, reads_max),
            None => Ok(false),
        }
    }

    /// Counts pages of dropped trees, behind a collection: what that frees need not be counted. True if there are more.
    fn count_dropped(&self, pages_max: usize) -> Result<bool> {
        let Some(_one) = self.maintenance.try_lock() else {
            return Ok(false);
        };
        let counted = self.store.count_dropped(self.manager.domain(), pages_max);
        counted.map_err(storage)
    }

    /// Turns the fat rows of pages back into chains that eviction came by: then these pages can go. True if there were
    /// any.
    pub fn make_fat_plain(&self) -> Result<bool> {
        let Some(_one) = self.maintenance.try_lock() else {
            return Ok(false);
        };
        let pages = self.pool.take_fat_pages();
        if pages.is_empty() {
            return Ok(false);
        }
        let domain = self.manager.domain();
        let mut active = ActiveSnapshots::new();
        domain.active_snapshots(&mut active);
        let log = self.system_slot(SystemSlot::Maintenance);
        let (mut any, mut first) = (false, None);
        for page in pages {
            let turned = self.store.decompose_page(domain, &active, page, log);
            match turned.map_err(storage) {
                Ok(turned) => any |= turned > 0,
                // They stay as they are, and are evicted so if need be.
                Err(StorageError::OutOfSpace { .. }) => {}
                // Those behind it are named once only.
                Err(error) => first = first.or(Some(error)),
            }
        }
        log.withdraw();
        first.map_or(Ok(any), Err)
    }

    /// As [`Engine::collect_idle`], for who holds `maintenance`.
    pub(crate) fn collect_idle_alone(&self, turn: &mut Maintenance) -> Result<bool> {
        self.collect_slots(turn, u64::MAX)
    }

    fn collect_slots(&self, turn: &mut Maintenance, reads_max: u64) -> Result<bool> {
        let reads = || self.pool.statistics().faults;
        let reads_before = reads();
        let horizon = Horizon::refreshed(self.manager.domain());
        self.tables.forget(&horizon);
        // A page that cannot be read keeps what hangs on it; the garbage of others goes all the same.
        let forgotten = self.store.forget_dropped(|| self.clock.now());
        let mut first = forgotten.map_err(storage).err();
        let (mut any, mut backlog) = (false, false);
        // One for all slots. Who has it in this step is asked last in the next.
        let (mut far, mut behind_far) = (true, None);
        match self.free_given_up() {
            Ok(freed) => any |= freed,
            Err(error) => first = first.or(Some(error)),
        }
        let slots = self.manager.slots_ever();
        for _ in 0..slots {
            let slot = SlotId((turn.next_slot % slots) as u16);
            turn.next_slot = (turn.next_slot + 1) % slots;
            // What ran in a slot before its long transaction left garbage, too; that is collected on our own account.
            let lease = self.manager.lease_idle(slot);
            let log = match &lease {
                Some(lease) => self.log.slot(lease.slot()),
                None => self.system_slot(SystemSlot::Maintenance),
            };
            let mut budget = Budget::new(IDLE_ITEMS, IDLE_BYTES);
            if !far {
                budget = budget.without_far_look();
            }
            let collected = self
                .store
                .collect(self.manager.domain(), slot, log, &mut budget)
                .map_err(storage);
            if far && !budget.has_far_look() {
                (far, behind_far) = (false, Some(turn.next_slot));
            }
            match collected {
                Ok(collected) => {
                    let has_worked = collected.more || collected.work > 0;
                    any |= has_worked;
                    backlog |= collected.more;
                    if has_worked && reads() - reads_before >= reads_max {
                        // Others may have more: they are next.
                        (backlog, behind_far) = (true, None);
                        break;
                    }
                }
                // Garbage can wait until a checkpoint has made room.
                Err(StorageError::OutOfSpace { .. }) => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        if let Some(next) = behind_far {
            turn.next_slot = next;
        }
        self.system_slot(SystemSlot::Maintenance).withdraw();
        self.version_budget.note_collection(backlog);
        first.map_or(Ok(any), Err)
    }
}

/// What one at a time does: who collects, or looks at the whole database.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    /// The slot that is collected next.
    next_slot: usize,
}

/// Collection meets nothing but storage errors.
fn storage(error: VersionError) -> StorageError {
    match error {
        VersionError::Storage(error)
        | VersionError::Transaction(TransactionError::Storage(error)) => error,
        _ => StorageError::MemoryLimit { what: "collection" },
    }
}

/// What the threads share.
#[derive(Debug, Default)]
struct Control {
    stop: AtomicBool,
    evict: Bell,
    checkpoint: Bell,
    maintain: Bell,
    failed: Mutex<Failures>,
}

/// What the threads do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Flush rounds of the log.
    Flush,
    /// Writing of pages, to make room for others.
    Evict,
    /// Checkpoints, without which the log fills.
    Checkpoint,
    /// Rollback of transactions that were given up.
    RollBack,
    /// Collection of old versions.
    Collect,
    /// The count of what dropped tables keep.
    CountDropped,
    /// Old versions out of rows of pages that are to go.
    MakeFatPlain,
    /// Freeing of copies that a transaction larger than the log has left.
    FreeCopies,
    /// To be there: failed for good once a thread has panicked.
    Live,
}

impl Work {
    /// All, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Flush,
        Self::Evict,
        Self::Checkpoint,
        Self::RollBack,
        Self::Collect,
        Self::CountDropped,
        Self::MakeFatPlain,
        Self::FreeCopies,
        Self::Live,
    ];

    /// Its name: words joined by underscores.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Evict => "evict",
            Self::Checkpoint => "checkpoint",
            Self::RollBack => "roll_back",
            Self::Collect => "collect",
            Self::CountDropped => "count_dropped",
            Self::MakeFatPlain => "make_fat_plain",
            Self::FreeCopies => "free_copies",
            Self::Live => "thread",
        }
    }
}

/// The first error of each kind of work, until that succeeds again.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<(Work, StorageError)>);

impl Failures {
    fn note(&mut self, work: Work, result: Result<()>) {
        match result {
            Ok(()) => self.0.retain(|(failed, _)| *failed != work),
            Err(_) if self.has(work) => {}
            Err(error) => self.0.push((work, error)),
        }
    }

    /// Forgets what a closing database has done itself by now, and what the next open does: garbage that could not be freed stays listed.
    pub fn made_good(&mut self, clean: bool) {
        for work in [Work::Flush, Work::RollBack] {
            self.note(work, Ok(()));
        }
        if clean {
            // Every page that is to be in the file is there.
            for work in [
                Work::Evict,
                Work::Checkpoint,
                Work::Collect,
                Work::CountDropped,
                Work::FreeCopies,
            ] {
                self.note(work, Ok(()));
            }
        }
    }

    fn has(&self, work: Work) -> bool {
        self.0.iter().any(|(failed, _)| *failed == work)
    }

    /// The error that came first, of those that are left.
    ///
    /// # Errors
    /// That.
    pub fn first(self) -> Result<()> {
        self.0
            .into_iter()
            .next()
            .map_or(Ok(()), |(_, error)| Err(error))
    }
}

impl Control {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn note(&self, work: Work, result: Result<()>) {
        self.failed.lock().note(work, result);
    }

    /// The same of work that tries again what failed only after ever more steps. Until that succeeds, or has gone (`is_waiting` says no), its failure
    /// stands, whatever steps come to in between.
    fn note_patient(&self, work: Work, result: Result<()>, is_waiting: impl FnOnce() -> bool) {
        let stands = result.is_ok() && self.failed.lock().has(work) && is_waiting();
        if !stands {
            self.note(work, result);
        }
    }
}

/// The threads of an open database.
#[derive(Debug)]
pub(crate) struct Background {
    engine: Arc<Engine>,
    control: Arc<Control>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Background {
    /// Starts the threads that do nothing but write what is there: log and evict. A recovery has them beside it; all others would
    /// make checkpoints or collect between its steps.
    ///
    /// # Errors
    /// `Io` if the system gives no thread; those that were started are stopped again.
    pub fn start_writers(engine: &Arc<Engine>) -> Result<Self> {
        let control = Arc::new(Control::default());
        let bell = control.clone();
        engine.pool.set_wake(Box::new(move || bell.evict.ring()));
        let mut this = Self {
            engine: engine.clone(),
            control,
            threads: Vec::new(),
        };
        let started = this
            .spawn("vellum-log", serve_log)
            .and_then(|()| this.spawn("vellum-evict", evict));
        this.or_stop(started)
    }

    /// Starts the other threads, of a database that is as it should be.
    ///
    /// # Errors
    /// As [`Background::start_writers`]; all threads are stopped.
    pub fn start_others(mut self) -> Result<Self> {
        let started = self
            .spawn("vellum-checkpoint", make_checkpoints)
            .and_then(|()| self.spawn("vellum-maintain", maintain));
        self.or_stop(started)
    }

    fn or_stop(self, started: io::Result<()>) -> Result<Self> {
        match started {
            Ok(()) => Ok(self),
            Err(error) => {
                let _ = self.stop();
                Err(StorageError::io(
                    "start of a thread",
                    &"process".into(),
                    error,
                ))
            }
        }
    }

    fn spawn(&mut self, name: &str, work: fn(&Engine, &Control)) -> io::Result<()> {
        let (engine, control) = (self.engine.clone(), self.control.clone());
        let builder = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(builder.spawn(move || {
            let dies = Dies {
                engine: &engine,
                control: &control,
            };
            work(&engine, &control);
            std::mem::forget(dies);
        })?);
        Ok(())
    }

    /// What fails now, each with its first error since it last succeeded.
    pub fn failures(&self) -> Vec<(Work, StorageError)> {
        self.control.failed.lock().0.clone()
    }

    /// Stops the threads and waits for their ends; returns what failed and has not succeeded since.
    pub fn stop(mut self) -> Failures {
        self.halt()
    }

    fn halt(&mut self) -> Failures {
        // Release: pairs with the acquire in `stopped`.
        self.control.stop.store(true, Ordering::Release);
        self.engine.log.stop_serving();
        self.control.evict.ring();
        self.control.checkpoint.ring();
        self.control.maintain.ring();
        for thread in self.threads.drain(..) {
            let Err(panic) = thread.join() else {
                continue;
            };
            // It has printed why, and `Dies` has noted it. Where assertions are on, whoever closes the database fails with it.
            if cfg!(debug_assertions) && !std::thread::panicking() {
                std::panic::resume_unwind(panic);
            }
        }
        std::mem::take(&mut *self.control.failed.lock())
    }
}

impl Drop for Background {
    /// Where a recovery fails beside the threads.
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let _ = self.halt();
        }
    }
}

/// Dropped by a thread that panics: what it did is done by nobody from now on, and what it was doing may be half done. The database
/// takes no more writes, as after a failed flush, and who waits for the thread goes on without it.
struct Dies<'t> {
    engine: &'t Engine,
    control: &'t Control,
}

impl Drop for Dies<'_> {
    fn drop(&mut self) {
        self.engine.give_up();
        self.control.note(Work::Live, Err(StorageError::Poisoned));
        // Who polls leads rounds itself where nobody serves; who polled before is woken by the end of this one.
        self.engine.log.stop_serving();
        let _ = self.engine.log.flush_round();
    }
}

fn serve_log(engine: &Engine, control: &Control) {
    while !control.stopped() {
        match engine.log.serve_one() {
            Ok(true) => control.note(Work::Flush, Ok(())),
            Ok(false) => return,
            Err(error) => {
                let poisoned = engine.is_poisoned();
                control.note(Work::Flush, Err(error));
                if poisoned {
                    return;
                }
                // A full disk may have room later; who needs the round leads one itself meanwhile.
                control.maintain.wait_timeout(MAINTENANCE_TICK);
            }
        }
    }
}

fn evict(engine: &Engine, control: &Control) {
    loop {
        control.evict.wait();
        while !control.stopped() && engine.pool.free_frames() < engine.pool.high_water() {
            match engine.pool.evict_step(engine.pool.high_water()) {
                Ok(0) => break,
                Ok(_) => control.note(Work::Evict, Ok(())),
                Err(error) => {
                    control.note(Work::Evict, Err(error));
                    break;
                }
            }
        }
        while !control.stopped() && engine.pool.get_memory_ahead() {}
        if control.stopped() {
            return;
        }
    }
}

fn make_checkpoints(engine: &Engine, control: &Control) {
    while !control.stopped() {
        control.checkpoint.wait_timeout(CHECKPOINT_TICK);
        if !control.stopped() && engine.checkpoint_is_due() && !engine.is_poisoned() {
            control.note(Work::Checkpoint, engine.checkpoint());
        }
    }
}

/// When collection goes on.
#[derive(Debug, Default)]
struct Pace {
    /// By the monotonic clock, zero if it does not rest.
    resting_until: u64,
}

impl Pace {
    /// How many times as long as it took a step that read from the disk is rested from.
    const REST: u64 = 3;
    /// The longest rest, in nanoseconds: a step that a busy disk has held up says nothing about the next.
    const REST_MAX: u64 = 2_000_000_000;

    fn is_over(&self, now: u64) -> bool {
        now >= self.resting_until
    }

    /// Notes a step from `began` to `now`; true if the next may follow at once.
    fn note(&mut self, began: u64, now: u64, has_read: bool) -> bool {
        let rest = now.saturating_sub(began).saturating_mul(Self::REST);
        self.resting_until = if has_read {
            now + rest.min(Self::REST_MAX)
        } else {
            0
        };
        !has_read
    }
}

/// Steps of collection, while there is more.
fn collect(engine: &Engine, control: &Control, pace: &mut Pace) {
    let paced = engine.config.version_policy == VersionPolicy::Spill;
    let mut began = monotonic_nanos();
    if paced && !pace.is_over(began) {
        return;
    }
    for _ in 0..IDLE_STEPS {
        // Who else reads makes us rest, too: it is he who would wait for us.
        let reads = engine.pool.statistics().faults;
        let reads_max = if paced { STEP_PAGES } else { u64::MAX };
        let collected = engine.collect_idle_within(reads_max).map(drop);
        let goes_on = collected.is_ok() && engine.version_budget.has_backlog();
        control.note_patient(Work::Collect, collected, || {
            engine.store.has_unreadable_garbage()
        });
        let now = monotonic_nanos();
        let has_read = engine.pool.statistics().faults != reads;
        let follows = pace.note(began, now, has_read);
        if !goes_on || paced && !follows || control.stopped() {
            break;
        }
        began = now;
    }
}

/// A step of the count of dropped trees. It rests for itself: a large table that is dropped does not slow collection, nor what else a round of maintenance does.
fn count_dropped(engine: &Engine, control: &Control, pace: &mut Pace) {
    let began = monotonic_nanos();
    if !pace.is_over(began) {
        return;
    }
    let reads = engine.pool.statistics().faults;
    let counted = engine.count_dropped(STEP_PAGES as usize).map(drop);
    control.note_patient(Work::CountDropped, counted, || {
        engine.store.has_uncounted_pages()
    });
    let has_read = engine.pool.statistics().faults != reads;
    pace.note(began, monotonic_nanos(), has_read);
}

fn maintain(engine: &Engine, control: &Control) {
    let (mut pace, mut pace_of_counts) = (Pace::default(), Pace::default());
    while !control.stopped() {
        control.maintain.wait_timeout(MAINTENANCE_TICK);
        if control.stopped() || engine.is_poisoned() {
            continue;
        }
        engine.manager.note_time();
        engine.manager.pass();
        engine.manager.close_unused_slots();
        control.note(Work::RollBack, engine.roll_back_parked().map(drop));
        collect(engine, control, &mut pace);
        count_dropped(engine, control, &mut pace_of_counts);
        control.note(Work::MakeFatPlain, engine.make_fat_plain().map(drop));
        engine.keep_version_budget();
        let freed = engine.free_copies_now().map(drop);
        control.note_patient(Work::FreeCopies, freed, || engine.has_unreadable_copies());
        control.note(Work::Flush, engine.log.flush_round().map(drop));
        engine.pool.join_step();
        if engine.space.runs_short() {
            // A disk that is full is found by who needs the space.
            let _ = engine.space.grow();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::{Background, Control, Pace, collect, count_dropped};
    use crate::engine::Engine;
    use crate::{Class, Config, Database, Error, TransactionOptions};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use vellum_io::MemoryDirectory;
    use vellum_txn::Durability;

    #[test]
    fn collection_that_reads_rests_three_times_as_long_as_it_took_and_no_longer_than_two_seconds() {
        let (mut pace, began) = (Pace::default(), 1_000_000_000);
        let ms = |count: u64| began + count * 1_000_000;
        assert!(pace.is_over(began));
        assert!(pace.note(began, ms(100), false) && pace.is_over(ms(100)));
        assert!(!pace.note(began, ms(100), true));
        assert!(!pace.is_over(ms(399)) && pace.is_over(ms(400)));
        assert!(!pace.note(began, ms(60_000), true));
        assert!(!pace.is_over(ms(61_999)) && pace.is_over(ms(62_000)));
    }

    /// A large table that is dropped does not slow collection, nor that its count.
    #[test]
    fn collection_and_the_count_of_dropped_tables_rest_each_for_itself() {
        let config = Config::default()
            .pool_bytes(8 << 20)
            .background_threads(false);
        let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        database.retry(|tx| tx.create_table("other")).unwrap();
        database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
        let old = database
            .begin_with(TransactionOptions::default().class(Class::Olap))
            .unwrap();
        let engine = old.token.engine.clone();
        let control = Control::default();
        let rests = || Pace {
            resting_until: u64::MAX,
        };
        let told = || {
            let now = database.statistics();
            (now.rows_moved, now.dropped_pages)
        };
        let dropped = |name: &str| database.retry(|tx| tx.drop_table(name)).unwrap();
        database.retry(|tx| tx.delete(&table, b"k")).unwrap();
        dropped("other");
        let moved = told().0;
        // The count rests, and collection goes on.
        collect(&engine, &control, &mut Pace::default());
        count_dropped(&engine, &control, &mut rests());
        let (moved_since, pages) = told();
        assert!(moved_since > moved && pages == 0);
        // The other way round.
        dropped("t");
        collect(&engine, &control, &mut rests());
        count_dropped(&engine, &control, &mut Pace::default());
        assert_eq!(told(), (moved_since, 2));
        collect(&engine, &control, &mut Pace::default());
        assert!(told().0 > moved_since, "there was something to collect");
    }

    fn panics(_: &Engine, _: &Control) {
        panic!("for the test");
    }

    #[test]
    fn a_thread_that_panics_ends_all_writing_and_whoever_closes_is_told() {
        let config = Config::default().pool_bytes(8 << 20);
        let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
        let table = database
            .retry(|tx| {
                let table = tx.create_table("t")?;
                tx.insert(&table, b"k", b"v")?;
                Ok(table)
            })
            .unwrap();
        let begun = database.begin().unwrap();
        begun.insert(&table, b"begun", b"v").unwrap();
        let engine = begun.token.engine.clone();
        let mut threads = Background {
            engine,
            control: Arc::default(),
            threads: Vec::new(),
        };
        threads.spawn("vellum-test", panics).unwrap();
        while !threads.threads[0].is_finished() {
            std::thread::yield_now();
        }
        // What was committed can be read; nothing is written, committed or promised any more.
        let tx = database.begin().unwrap();
        assert_eq!(tx.get(&table, b"k", <[u8]>::len).unwrap(), Some(1));
        assert!(matches!(
            tx.insert(&table, b"l", b"v"),
            Err(Error::Poisoned)
        ));
        drop(tx);
        assert!(matches!(begun.commit(), Err(Error::Poisoned)));
        assert!(matches!(database.checkpoint(), Err(Error::Poisoned)));
        let options = TransactionOptions::default().durability(Durability::Sync);
        let tx = database.begin_with(options).unwrap();
        assert!(tx.delete(&table, b"k").is_err());
        drop(tx);
        let stopped = catch_unwind(AssertUnwindSafe(|| threads.stop()));
        // Where assertions are on it goes on in whoever stops the threads.
        match stopped {
            Ok(failures) => assert!(failures.first().is_err()),
            Err(panic) => {
                assert_eq!(panic.downcast_ref::<&str>(), Some(&"for the test"));
            }
        }
        assert!(matches!(database.close(), Err(Error::Poisoned)));
    }
}
