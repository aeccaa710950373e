//! Opening a directory: make a database, or bring one back.
//!
//! States of a directory: empty → (control file with incarnation 0) being made → (control file with a checkpoint) a
//! database. A directory that is being made is made again from the start; anything else is refused untouched.
//!
//! Crash: until the control file names the first checkpoint, the next open starts over.

use crate::background::Background;
use crate::checkpoint::{Checkpointer, SpaceByCheckpoint};
use crate::config::{Config, VersionOptions};
use crate::control::{CONTROL_FILE, Control};
use crate::engine::{
    DATA_FILE, Engine, LOCK_FILE, LOG_FOLDER, LogOfPool, SYSTEM_SLOTS, SystemSlot, system_slot,
};
use crate::error::{Error, Result};
use crate::recovery::Recovered;
use crate::schema::Tables;
use crate::version_budget::{VersionBudget, VersionPolicy};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use vellum_base::{Gsn, PageId, StorageError, Timestamp};
use vellum_btree::{Journal, Tree, TreeContext, TreeKind};
use vellum_buffer::{Addresses, Pool, PoolConfig, Space};
use vellum_io::{Directory, Entry, EntryKind, File, LockGuard, OpenOptions};
use vellum_sync::Mutex;
use vellum_sync::atomic::AtomicBool;
use vellum_txn::{Clock, Config as ManagerConfig, Manager, Protocol};
use vellum_version::collect::{Freezer, Reducer};
use vellum_version::{RowStamper, VersionStore};
use vellum_wal::{Log, LogConfig, LogPosition, LogStart, Purpose, Verdict};

/// Opens or makes the database in `directory`, and starts its threads if it is to have some.
pub(crate) fn open(
    directory: Arc<dyn Directory>,
    config: Config,
) -> Result<(Arc<Engine>, Option<Background>)> {
    config.check()?;
    let look = |directory: &dyn Directory| {
        let entries = directory.entries("")?;
        let control = if entries.iter().any(|entry| entry.name == CONTROL_FILE) {
            check_kinds(directory, &entries)?;
            Control::read(directory)?.filter(|control| control.incarnation > 0)
        } else {
            check_empty(&entries)?;
            None
        };
        if control.is_none() && !config.create {
            return Err(Error::ForeignFormat {
                file: CONTROL_FILE.into(),
                what: "there is no database here, and none is to be made".into(),
            });
        }
        // Recovery would write to the data file before it finds that it can make no segment.
        directory.check_writable(LOG_FOLDER)?;
        let page_size = control.map(|control| control.page_size as usize);
        let addresses = reserve(&config, page_size.unwrap_or(config.page_size))?;
        Ok((control, addresses))
    };
    let (lock, (control, addresses)) = lock_if(&*directory, look)?;
    let (engine, writers) = match control {
        Some(control) => recover(directory, config, control, addresses, lock)?,
        None => {
            let engine = create(directory, config, addresses, lock)?;
            let writers = start_writers(&engine)?;
            (engine, writers)
        }
    };
    let background = writers.map(Background::start_others).transpose()?;
    Ok((engine, background))
}

fn start_writers(engine: &Arc<Engine>) -> Result<Option<Background>> {
    let wanted = engine.config.background_threads;
    let started = wanted.then(|| Background::start_writers(engine));
    Ok(started.transpose()?)
}

/// Reserves addresses for the largest data file, which other databases of the process and its limits may have left none for.
fn reserve(config: &Config, page_size: usize) -> Result<Addresses> {
    let mut config = config.clone();
    config.page_size = page_size;
    config.check()?;
    Addresses::reserve(&pool_config(&config)).map_err(|error| Error::InvalidArgument {
        what: format!(
            "data_bytes_max {}: this process has not so many addresses left; other databases that it has open and its limits \
             (ulimit -v) take part in that ({error})",
            config.data_bytes_max
        ),
    })
}

/// Locks a directory that passes a look at it. The look comes first, so that a directory of somebody else's gets no lock
/// file, and again under the lock, which counts.
pub(crate) fn lock_if<R>(
    directory: &dyn Directory,
    look: impl Fn(&dyn Directory) -> Result<R>,
) -> Result<(LockGuard, R)> {
    if look(directory).is_err() {
        // Somebody may just be making a database here, or exchange the names of its control files, of which a listing may then
        // show neither: again while nobody does.
        let _nobody = directory.try_lock_shared()?;
        look(directory)?;
    }
    let lock = directory.try_lock()?;
    let found = look(directory)?;
    Ok((lock, found))
}

/// What a file system makes at its root.
const LOST_AND_FOUND: &str = "lost+found";

/// Refuses a directory with anything in it, of whatever kind, but what stands there before the control file does.
pub(crate) fn check_empty(entries: &[Entry]) -> Result<()> {
    let temporary = format!("{CONTROL_FILE}.tmp");
    let is_ours = |entry: &&Entry| {
        entry.kind == EntryKind::File && (entry.name == LOCK_FILE || entry.name == temporary)
    };
    let Some(entry) = entries.iter().find(|entry| !is_ours(entry)) else {
        return Ok(());
    };
    let what = match (entry.name.as_str(), entry.kind) {
        (LOST_AND_FOUND, EntryKind::Directory) => {
            "the directory is the root of a file system; make one inside it for the database".into()
        }
        (name, kind) if kind != EntryKind::File && (name == LOCK_FILE || name == temporary) => {
            return Err(kind.unfit(name).into());
        }
        (_, EntryKind::File) => {
            "the directory holds files but no control file of a database".into()
        }
        (_, kind) => format!(
            "it is {}, and the directory has no control file of a database",
            kind.text()
        ),
    };
    Err(Error::ForeignFormat {
        file: entry.name.as_str().into(),
        what,
    })
}

/// Refuses a directory where something that is no regular file has the name of one of a database's files: before
/// recovery writes to the first of them, or a database that is made again removes it. The log's folder may be a link to another.
pub(crate) fn check_kinds(directory: &dyn Directory, entries: &[Entry]) -> Result<()> {
    let temporary = format!("{CONTROL_FILE}.tmp");
    for entry in entries {
        let name = entry.name.as_str();
        if name == LOG_FOLDER {
            let leads_nowhere = || Error::ForeignFormat {
                file: LOG_FOLDER.into(),
                what: format!("it is {}, and leads to no directory", entry.kind.text()),
            };
            let inside = match directory.entries(LOG_FOLDER) {
                Err(StorageError::Io { source, .. })
                    if matches!(
                        source.kind(),
                        ErrorKind::NotADirectory | ErrorKind::NotFound
                    ) =>
                {
                    return Err(leads_nowhere());
                }
                inside => inside?,
            };
            // Others' directories do no harm: that of a file system's root is one. Segments have names of eight digits.
            let is_unfit = |other: &&Entry| {
                other.kind != EntryKind::File
                    && other.name.len() == 8
                    && other.name.bytes().all(|byte| byte.is_ascii_digit())
            };
            if let Some(other) = inside.iter().find(is_unfit) {
                let name = format!("{LOG_FOLDER}/{}", other.name);
                return Err(other.kind.unfit(&name).into());
            }
        } else if [LOCK_FILE, CONTROL_FILE, DATA_FILE, &temporary].contains(&name)
            && entry.kind != EntryKind::File
        {
            return Err(entry.kind.unfit(name).into());
        }
    }
    Ok(())
}

/// What the log is configured with.
fn log_config(config: &Config) -> LogConfig {
    LogConfig {
        slots_max: config.slots_max + SYSTEM_SLOTS,
        slot_buffer_bytes: config.slot_buffer_bytes,
        segment_bytes: config.log_segment_bytes,
        log_bytes_max: config.log_bytes_max,
    }
}

fn pool_config(config: &Config) -> PoolConfig {
    let used = config.pool_bytes.min(config.data_bytes_max);
    let mut pool = PoolConfig::new(config.page_size, used);
    pool.pages_max = config.data_bytes_max / config.page_size as u64;
    // A batch is never more than a quarter of the pool.
    let frames = config.pool_bytes / config.page_size as u64;
    pool.batch_pages = pool
        .batch_pages
        .min(usize::try_from(frames / 4).unwrap_or(64))
        .max(1);
    pool
}

/// The clock as the log reads it.
fn read_clock(clock: &Arc<Clock>) -> vellum_wal::Clock {
    let clock = clock.clone();
    Arc::new(move || clock.now())
}

fn create(
    directory: Arc<dyn Directory>,
    config: Config,
    addresses: Addresses,
    lock: LockGuard,
) -> Result<Arc<Engine>> {
    let making = Control {
        page_size: config.page_size as u32,
        incarnation: 0,
        checkpoint: LogPosition::default(),
        timestamp_floor: Timestamp::ZERO,
        analysis_segment: 0,
        known: Verdict::default(),
        catalog: PageId::ZERO,
        pending_free: PageId::ZERO,
        undo: PageId::ZERO,
        next_table: 1,
        clean: false,
    };
    // What an interrupted attempt left. On disk this may be the file that is named as the control file: it is not written into.
    let temporary = format!("{CONTROL_FILE}.tmp");
    if directory.exists(&temporary)? {
        directory.remove(&temporary)?;
    }
    making.write(&*directory)?;
    // The log syncs the names that are made and removed here, those in its folder too, before it writes anything ([`Log::create`]).
    if directory.exists(DATA_FILE)? {
        directory.remove(DATA_FILE)?;
    }
    if directory.exists(LOG_FOLDER)? {
        for name in directory.list(LOG_FOLDER)? {
            directory.remove(&format!("{LOG_FOLDER}/{name}"))?;
        }
    }
    let file = directory.open(DATA_FILE, OpenOptions::create_new().direct())?;
    let clock = Arc::new(Clock::above(Timestamp::ZERO));
    let log_of_pool = Arc::new(LogOfPool::default());
    let pool = Arc::new(Pool::create_file_at(
        Some(addresses),
        file,
        log_of_pool.clone(),
        &pool_config(&config),
    )?);
    let start = LogStart::first();
    let log = Log::create(
        directory.clone(),
        log_config(&config),
        read_clock(&clock),
        start,
    )?;
    let log = Arc::new(log);
    log_of_pool.set(log.clone());
    let space = Arc::new(Space::load(pool.clone(), Gsn::ZERO)?);
    let parts = Parts {
        directory,
        config,
        lock,
        clock,
        pool,
        space,
        log,
        control: making,
    };
    parts.assemble(Timestamp::ZERO, |context, parts| {
        let log = parts
            .log
            .slot(system_slot(&parts.config, SystemSlot::Checkpoint));
        let journal = Some(Journal::new(log, Purpose::Checkpoint));
        parts.control.catalog = Tree::create(context, journal, TreeKind::Rows, None)?.root();
        parts.control.pending_free = Tree::create(context, journal, TreeKind::Plain, None)?.root();
        parts.control.undo = Tree::create(context, journal, TreeKind::Plain, None)?.root();
        parts.control.incarnation = 1;
        Ok(())
    })
}

fn recover(
    directory: Arc<dyn Directory>,
    mut config: Config,
    control: Control,
    addresses: Addresses,
    lock: LockGuard,
) -> Result<(Arc<Engine>, Option<Background>)> {
    config.page_size = control.page_size as usize;
    config.check()?;
    let opened = directory.open(DATA_FILE, OpenOptions::existing().direct());
    let file: Arc<dyn File> = opened.map_err(|error| match error {
        // There is a control file: it is not that there is no database.
        StorageError::Io { source, .. } if source.kind() == ErrorKind::NotFound => missing_data(),
        other => other,
    })?;
    let bytes = file.len()?;
    if bytes / config.page_size as u64 > config.data_bytes_max / config.page_size as u64 {
        return Err(Error::InvalidArgument {
            what: format!(
                "data_bytes_max {} is below the {bytes} bytes that the data file has",
                config.data_bytes_max
            ),
        });
    }
    let log_of_pool = Arc::new(LogOfPool::default());
    let pool = Arc::new(Pool::open_at(
        Some(addresses),
        file,
        log_of_pool.clone(),
        &pool_config(&config),
    )?);
    if pool.page_size() != config.page_size {
        return Err(StorageError::Corruption {
            file: DATA_FILE.into(),
            page: None,
            what: "page size",
            expected: config.page_size as u64,
            found: pool.page_size() as u64,
        }
        .into());
    }
    let recovered = Recovered::redo(&directory, &control, &pool)?;
    let highest = recovered.highest();
    if highest >= Clock::LIMIT {
        return Err(StorageError::Corruption {
            file: LOG_FOLDER.into(),
            page: None,
            what: "highest timestamp",
            expected: Clock::LIMIT.get(),
            found: highest.get(),
        }
        .into());
    }
    let clock = Arc::new(Clock::above(highest));
    let start = recovered.log_start();
    let restart_floor = clock.now();
    let log = Log::create(
        directory.clone(),
        log_config(&config),
        read_clock(&clock),
        start,
    )?;
    let log = Arc::new(log);
    // Until losers are undone, or their undo is carried, nothing of the log can go.
    log.set_unbounded(true);
    log_of_pool.set(log.clone());
    let space = Arc::new(Space::load(pool.clone(), Gsn(start.first_gsn.get()))?);
    let control = Control {
        incarnation: start.incarnation,
        clean: false,
        ..control
    };
    let parts = Parts {
        directory,
        config,
        lock,
        clock,
        pool,
        space,
        log,
        control,
    };
    let engine = parts.assemble(restart_floor, |_, _| Ok(()))?;
    // What undo writes goes to the file beside it, as it did when it was written first.
    let writers = start_writers(&engine)?;
    recovered.undo(&engine, || give_log_space(&engine))?;
    give_log_space(&engine);
    engine.checkpoint()?;
    engine.log.set_unbounded(false);
    Ok((engine, writers))
}

/// What is wrong where a control file has no data file beside it.
fn missing_data() -> StorageError {
    StorageError::Corruption {
        file: DATA_FILE.into(),
        page: None,
        what: "the data file is missing",
        expected: 1,
        found: 0,
    }
}

/// From now on who finds no log space makes a checkpoint. Not before losers are undone, or all that undo needs of them
/// is carried: otherwise a checkpoint would give back what undo still has to read, and the next open would
/// not know that they lost.
fn give_log_space(engine: &Arc<Engine>) {
    let hook = SpaceByCheckpoint::new(Arc::downgrade(engine));
    engine.log.set_log_space(Arc::new(hook));
}

/// What an engine is put together from.
struct Parts {
    directory: Arc<dyn Directory>,
    config: Config,
    lock: LockGuard,
    clock: Arc<Clock>,
    pool: Arc<Pool>,
    space: Arc<Space>,
    log: Arc<Log>,
    control: Control,
}

impl Parts {
    /// Puts the engine together; `prepare` runs once trees can be used. A new database gets its first
    /// checkpoint here.
    fn assemble(
        mut self,
        restart_floor: Timestamp,
        prepare: impl FnOnce(&Arc<TreeContext>, &mut Self) -> Result<()>,
    ) -> Result<Arc<Engine>> {
        let manager = Arc::new(Manager::new(
            self.log.clone(),
            self.clock.clone(),
            ManagerConfig {
                slots_max: self.config.slots_max,
                restart_floor,
                promote_after: self.config.promote_after_ticks,
                may_withdraw: self.config.version_policy == VersionPolicy::SnapshotTooOld,
                protocol: self.config.protocol,
            },
        ));
        let context = TreeContext::new(self.pool.clone(), self.space.clone())
            .with_rows(Arc::new(Reducer))
            .with_cleaner(Arc::new(Freezer::new(manager.domain().clone())));
        let context = Arc::new(context);
        if self.config.protocol == Protocol::Stamping {
            let stamper = Box::new(RowStamper::new(&context));
            manager.domain().set_commit_stamper(stamper);
        }
        let is_new = self.control.incarnation == 0;
        prepare(&context, &mut self)?;
        let Self {
            directory,
            config,
            lock,
            clock,
            pool,
            space,
            log,
            control,
        } = self;
        let pending_free = Tree::open(&context, control.pending_free, TreeKind::Plain);
        let engine = Arc::new(Engine {
            store: VersionStore::with_options(
                context.clone(),
                config.slots_max,
                pending_free,
                VersionOptions {
                    // Nobody goes by it where there is no limit.
                    chains_of_dropped: config.versions.chains_of_dropped
                        && config.version_policy != VersionPolicy::Spill,
                    ..config.versions
                },
            ),
            catalog: Tree::open(&context, control.catalog, TreeKind::Rows),
            carried: Tree::open(&context, control.undo, TreeKind::Plain),
            tables: Tables::new(control.next_table),
            checkpointer: Checkpointer::new(control),
            version_budget: VersionBudget::default(),
            maintenance: Mutex::default(),
            config,
            directory,
            log,
            clock,
            pool,
            space,
            context,
            manager,
            given_up: AtomicBool::new(false),
            _lock: lock,
        });
        if is_new {
            give_log_space(&engine);
            engine.checkpoint()?;
        }
        Ok(engine)
    }
}

/// Names the directory in an error about its lock.
pub(crate) fn with_path(error: Error, path: &std::path::Path) -> Error {
    match error {
        Error::Locked { pid, .. } => Error::Locked {
            path: PathBuf::from(path),
            pid,
        },
        other => other,
    }
}
