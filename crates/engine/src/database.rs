//! The handle of an open database.

use crate::background::{Background, Work};
use crate::buffers::KeptBuffers;
use crate::config::Config;
use crate::engine::Engine;
use crate::error::{Family, Result};
use crate::open;
use crate::options::TransactionOptions;
use crate::transaction::{PendingCommit, Transaction};
use std::any::Any;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;
use vellum_base::random::Random;
use vellum_base::{SlotId, StorageError};
use vellum_io::{Directory, RealDirectory};
use vellum_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use vellum_sync::{CachePadded, Mutex, thread};
use vellum_txn::Options;

/// An open database. Cheap to clone; it is closed when the last clone is gone, in good order if no transaction is open then;
/// else the directory stays locked until the last of them ends, and the next opening recovers.
///
/// It belongs to the process that opened it: a child that is forked has none of its threads, shares its files and its lock, and must neither use nor drop it
/// (`exec` is no harm).
#[derive(Clone, Debug)]
pub struct Database {
    shared: Arc<Shared>,
    /// All handles have it but those of what is attached, which would keep the database open, and itself attached, for ever.
    hold: Option<Arc<Hold>>,
}

#[derive(Debug)]
struct Shared {
    engine: Arc<Engine>,
    tokens: Box<[OnceLock<Arc<SlotToken>>]>,
    background: Mutex<Option<Background>>,
    attached: Mutex<Attached>,
}

/// What a layer above keeps with a database.
#[derive(Debug, Default)]
struct Attached {
    /// It, as long as somebody has it.
    known: Option<Weak<dyn Any + Send + Sync>>,
    /// It, as long as somebody has a handle of the database.
    kept: Option<Arc<dyn Any + Send + Sync>>,
}

/// That somebody beside what is attached has a handle. Dropped with the last of these, it lets that go.
#[derive(Debug)]
struct Hold {
    shared: Arc<Shared>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.let_attached_go();
    }
}

/// What a transaction in a slot shares with the next one there. Each slot has one, so that begin and end touch
/// no count that other slots touch.
#[derive(Debug)]
pub(crate) struct SlotToken {
    pub engine: Arc<Engine>,
    state: CachePadded<TokenState>,
}

#[derive(Debug, Default)]
struct TokenState {
    buffers: Mutex<KeptBuffers>,
    /// Writers since the last collection.
    writers: AtomicU32,
    collect_soon: AtomicBool,
    /// Transactions of this slot so far.
    begun: AtomicU64,
}

impl SlotToken {
    pub fn take_buffers(&self) -> KeptBuffers {
        std::mem::take(&mut *self.state.buffers.lock())
    }

    pub fn give_buffers(&self, mut buffers: KeptBuffers) {
        buffers.trim();
        *self.state.buffers.lock() = buffers;
    }

    /// The number of a transaction that begins in this slot. One at a time runs in it.
    pub fn count_begin(&self) -> u64 {
        self.state.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a writer; true if the slot's garbage should be collected with its commit. `deletes`: rows were deleted since it last was.
    pub fn is_collection_due(&self, deletes: bool) -> bool {
        let every = if deletes {
            DELETERS_PER_COLLECTION
        } else {
            WRITERS_PER_COLLECTION
        };
        // One transaction of the slot at a time: relaxed suffices.
        let writers = self.state.writers.load(Ordering::Relaxed) + 1;
        let due = writers >= every || self.state.collect_soon.load(Ordering::Relaxed);
        self.state
            .writers
            .store(if due { 0 } else { writers }, Ordering::Relaxed);
        if due {
            self.state.collect_soon.store(false, Ordering::Relaxed);
        }
        due
    }

    /// The last collection left something.
    pub fn collect_soon(&self) {
        self.state.collect_soon.store(true, Ordering::Relaxed);
    }
}

/// Writers of a slot between two of its collections.
const WRITERS_PER_COLLECTION: u32 = 8;
/// The same where rows were deleted. What a collection takes is taking rows out, one after the other, and the one who commits waits for it: half as many at a time
/// cost no more in all (a queue's transaction takes 23,100 to 24,000 instructions either way; by two 1,200 more). Before-images go by leaves, so that other writers gain nothing by it (an
/// update: 400 more by four).
const DELETERS_PER_COLLECTION: u32 = 4;
/// Tries of [`Database::retry`] before it gives up.
const RETRIES: u32 = 1000;

impl Database {
    /// Opens the database in a directory, or makes one there if the directory is empty or missing. Recovers
    /// from a crash if there was one.
    ///
    /// # Errors
    /// `Locked` if it is open already, `ForeignFormat` if the directory holds something else (nothing is touched
    /// then), `InvalidArgument` for settings that do not fit, `Corruption`, `Io`.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Self> {
        let path = path.as_ref();
        config.check()?;
        let directory = if config.create {
            RealDirectory::create(path)?
        } else {
            RealDirectory::open(path)?
        };
        Self::open_directory(Arc::new(directory), config).map_err(|e| open::with_path(e, path))
    }

    /// Opens the database in any [`Directory`]: in memory, or on a simulated disk.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_directory(directory: Arc<dyn Directory>, config: Config) -> Result<Self> {
        let (engine, background) = open::open(directory, config)?;
        let slots = usize::from(engine.config.slots_max);
        let tokens = (0..slots).map(|_| OnceLock::new()).collect();
        let background = Mutex::new(background);
        let shared = Arc::new(Shared {
            engine,
            tokens,
            background,
            attached: Mutex::default(),
        });
        let hold = Hold {
            shared: shared.clone(),
        };
        Ok(Self {
            shared,
            hold: Some(Arc::new(hold)),
        })
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// What the threads fail to do now.
    pub(crate) fn background_failures(&self) -> Vec<(Work, StorageError)> {
        let background = self.shared.background.lock();
        background
            .as_ref()
            .map_or_else(Vec::new, Background::failures)
    }

    /// What a layer above keeps with the database (the SQL of `vellum_sql`): the value that is there, or else one that
    /// `make` makes. It stays as long as somebody has a handle of the database, or it; the handle that `make` gets, which is for the value itself, does not count.
    /// Whoever asks meanwhile waits, so `make` must not ask itself. A value of another type is replaced for those who ask later.
    ///
    /// # Errors
    /// What `make` reports.
    pub fn attached<T, E>(
        &self,
        make: impl FnOnce(Self) -> std::result::Result<Arc<T>, E>,
    ) -> std::result::Result<Arc<T>, E>
    where
        T: Any + Send + Sync,
    {
        let mut attached = self.shared.attached.lock();
        let known = attached.known.as_ref().and_then(Weak::upgrade);
        if let Some(known) = known.and_then(|known| known.downcast::<T>().ok()) {
            if self.hold.is_some() && attached.kept.is_none() {
                attached.kept = Some(known.clone());
            }
            return Ok(known);
        }
        let made = make(Self {
            shared: self.shared.clone(),
            hold: None,
        })?;
        let shared: Arc<dyn Any + Send + Sync> = made.clone();
        attached.known = Some(Arc::downgrade(&shared));
        let replaced = std::mem::take(&mut attached.kept);
        attached.kept = self.hold.is_some().then_some(shared);
        drop(attached);
        drop(replaced);
        Ok(made)
    }

    /// Begins a transaction under snapshot isolation, durable when its commit returns.
    ///
    /// Blocks while all worker slots are taken, at most [`Config::slot_timeout`].
    ///
    /// # Errors
    /// `Timeout` with the number of slots.
    #[inline]
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`Database::begin`].
    #[inline]
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        let engine = &self.shared.engine;
        let timeout = options.slot_timeout.unwrap_or(engine.config.slot_timeout);
        let mut inner = engine.manager.begin(inner_options(options), timeout)?;
        if options.leaves_reserved && self.is_reserved(inner.slot()) {
            inner = self.begin_elsewhere(inner, options, timeout)?;
        }
        Ok(Transaction::new(self.token(inner.slot()), inner))
    }

    /// Begins a transaction once a slot is free, for callers that must not block.
    pub fn begin_pending(&self, options: TransactionOptions) -> PendingBegin {
        let inner = self
            .shared
            .engine
            .manager
            .begin_pending(inner_options(options));
        PendingBegin {
            database: self.clone(),
            inner,
        }
    }

    #[inline]
    pub(crate) fn token(&self, slot: SlotId) -> Arc<SlotToken> {
        let make = || {
            let state = CachePadded::new(TokenState::default());
            Arc::new(SlotToken {
                engine: self.shared.engine.clone(),
                state,
            })
        };
        self.shared.tokens[usize::from(slot.get())]
            .get_or_init(make)
            .clone()
    }

    /// Runs `work` in a transaction and commits it; again, after a short random pause, as long as it or the
    /// commit fails with an error of the family [`Family::Retry`]. That also holds for such an error of an operation that ended the
    /// transaction and that `work` does not return.
    ///
    /// # Errors
    /// The first other error, or the last one after a thousand tries. The transaction is rolled back then.
    pub fn retry<R>(&self, mut work: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        self.retry_with(TransactionOptions::default(), &mut work)
    }

    /// As [`Database::retry`], with options.
    ///
    /// # Errors
    /// As [`Database::retry`].
    pub fn retry_with<R>(
        &self,
        options: TransactionOptions,
        work: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        let (result, ()) = self.retry_until(options, work, Transaction::commit)?;
        Ok(result)
    }

    /// As [`Database::retry_with`], without waiting for the commit, whatever the durability.
    ///
    /// # Errors
    /// As [`Database::retry_with`], but for what the flush would report.
    pub fn retry_deferred<R>(
        &self,
        options: TransactionOptions,
        work: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<(R, PendingCommit)> {
        self.retry_until(options, work, Transaction::commit_deferred)
    }

    fn retry_until<R, C>(
        &self,
        options: TransactionOptions,
        mut work: impl FnMut(&Transaction) -> Result<R>,
        commit: impl Fn(Transaction) -> Result<C>,
    ) -> Result<(R, C)> {
        let mut random = None;
        let mut tries = 0;
        loop {
            let transaction = self.begin_with(options)?;
            let done = work(&transaction);
            // What `work` kept to itself counts, too: the transaction is over.
            let swallowed = transaction.ended_by().filter(|_| done.is_ok());
            let error = match swallowed.map_or(done, Err) {
                Ok(result) => match commit(transaction) {
                    Ok(committed) => return Ok((result, committed)),
                    Err(error) => error,
                },
                Err(error) => {
                    transaction.rollback()?;
                    error
                }
            };
            tries += 1;
            if error.family() != Family::Retry || tries >= RETRIES {
                return Err(error);
            }
            let random = random.get_or_insert_with(|| Random::new(Random::fresh_seed()));
            let most = 20u64 << tries.min(8);
            thread::sleep(Duration::from_micros(random.below(most)));
        }
    }

    /// Writes every change that is in memory to the data file, so that the log before it is not needed any
    /// more. The background does this by itself; here it is for who wants it now. Blocks for its I/O, and nobody
    /// else.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`, `Poisoned`: the last checkpoint counts.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.shared.engine.checkpoint()?)
    }

    /// Makes everything that was committed so far durable, asynchronous commits included. Blocks for the flush.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`, `Poisoned`.
    pub fn sync(&self) -> Result<()> {
        Ok(self.shared.engine.log.flush_round().map(|_| ())?)
    }

    /// Draws a value of the logical clock, as a commit does: nobody else gets it, every one that is drawn later is larger, and so is what is drawn after a restart if something was committed
    /// since. A snapshot that was drawn before is not above it, one that is drawn later is.
    pub fn draw_time(&self) -> u64 {
        self.shared.engine.clock.draw().get()
    }

    /// One unit of background work, for who runs a database without background threads: collection of idle slots,
    /// rollback of abandoned transactions, eviction, a flush round, a checkpoint if one is due. True if there
    /// was something to do.
    ///
    /// # Errors
    /// Storage errors.
    pub fn step(&self) -> Result<bool> {
        Ok(self.shared.engine.background_step()?)
    }

    /// Cuts free space off the end of the data file; returns how many bytes. A page of version data that lies there (of a slot
    /// that is open or idle) keeps what is before it, too, until the database is opened again. Makes a checkpoint first.
    ///
    /// # Errors
    /// `Io`.
    pub fn truncate(&self) -> Result<u64> {
        let engine = &self.shared.engine;
        let _one = engine.maintenance.lock();
        // Otherwise a recovery makes anew what was cut off, for which there may be no room any more.
        match engine.checkpoint() {
            // Then cutting is what makes room. Redo does without the pages.
            Ok(()) | Err(StorageError::OutOfSpace { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let pages = engine.space.truncate_tail()?;
        Ok(pages * engine.config.page_size as u64)
    }

    /// Closes the database in good order: stops the threads, makes a last checkpoint. Transactions that are still
    /// open stay usable, without background work; the next open recovers then.
    ///
    /// # Errors
    /// What the checkpoint reports, and what a thread met and did not get done later, either: the next open recovers.
    pub fn close(self) -> Result<()> {
        self.shared.let_attached_go();
        self.shared.close()
    }

    /// The settings that the database was opened with.
    pub fn config(&self) -> &Config {
        &self.shared.engine.config
    }
}

impl Shared {
    fn let_attached_go(&self) {
        // Dropped once it is not locked any more: it has a handle of its own.
        let kept = self.attached.lock().kept.take();
        drop(kept);
    }

    fn close(&self) -> Result<()> {
        let background = self.background.lock().take();
        let mut failed = background.map(Background::stop).unwrap_or_default();
        let engine = &self.engine;
        if engine.is_poisoned() {
            // The next open recovers.
            failed.first()?;
            return Err(crate::Error::Poisoned);
        }
        // Abandoned writers: nothing is to be undone after a clean end. What they and failed operations made goes with them.
        engine.roll_back_parked()?;
        {
            let _one = engine.maintenance.lock();
            // What cannot be freed stays listed, and the next start frees it.
            let _ = engine.free_given_up();
        }
        engine.log.flush_round()?;
        let clean = engine.manager.slots_taken() == 0;
        if clean {
            engine.checkpoint_clean()?;
        }
        failed.made_good(clean);
        Ok(failed.first()?)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What fails here is found again by the recovery of the next open.
        let _ = self.close();
    }
}

pub(crate) fn inner_options(options: TransactionOptions) -> Options {
    Options {
        isolation: options.isolation,
        durability: options.durability,
        read_only: options.read_only,
        class: options.class,
    }
}

/// A begin that waits for a worker slot; dropping it gives up.
#[derive(Debug)]
pub struct PendingBegin {
    database: Database,
    inner: vellum_txn::PendingBegin,
}

impl PendingBegin {
    /// The transaction, once a slot is free; until then `waker` is woken when it is worth asking again.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Transaction> {
        let database = &self.database;
        self.inner
            .poll(waker)
            .map(|inner| Transaction::new(database.token(inner.slot()), inner))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use crate::{Config, Database};
    use std::sync::Arc;
    use vellum_io::MemoryDirectory;

    #[test]
    fn a_slot_does_not_keep_the_memory_of_large_values() {
        let config = Config::default()
            .pool_bytes(8 << 20)
            .background_threads(false);
        let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
        let table = database
            .retry(|tx| {
                let table = tx.create_table("t")?;
                tx.insert(&table, b"large", &vec![1; 4 << 20])?;
                tx.insert(&table, b"small", b"v")?;
                Ok(table)
            })
            .unwrap();
        let tx = database.begin().unwrap();
        let token = tx.token.clone();
        assert_eq!(
            tx.get(&table, b"large", <[u8]>::len).unwrap(),
            Some(4 << 20)
        );
        assert_eq!(tx.get(&table, b"small", <[u8]>::len).unwrap(), Some(1));
        tx.commit().unwrap();
        let kept = token.take_buffers().take().value_bytes();
        assert!(kept <= 16 << 10, "{kept} bytes");
    }
}
