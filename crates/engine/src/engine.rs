//! The parts of an open database, put together.
//!
//! Invariants:
//! - E1 Slots at or above `Config::slots_max` belong to the engine: [`SystemSlot`] says which does what. Each has one
//!   user at a time, under a lock of its own.
//! - E2 Whoever holds an `Arc<Engine>` may use it; threads are owned by `Database`, never from in here, so the
//!   engine's end is the end of its last user.

use crate::background::Maintenance;
use crate::checkpoint::Checkpointer;
use crate::config::Config;
use crate::schema::Tables;
use crate::version_budget::VersionBudget;
use std::sync::{Arc, OnceLock};
use vellum_base::{Gsn, Result, SlotId};
use vellum_btree::{Tree, TreeContext};
use vellum_buffer::{Pool, Space};
use vellum_io::{Directory, LockGuard};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_txn::{Clock, Manager};
use vellum_version::VersionStore;
use vellum_wal::{DurableGsn, Log, SlotLog};

/// Slots of the engine itself, counted from `Config::slots_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SystemSlot {
    /// Recovery, creation, checkpoints with what they carry forward.
    Checkpoint = 0,
    /// What maintenance frees, under `Engine::maintenance`.
    Maintenance = 1,
}

/// How many there are.
pub(crate) const SYSTEM_SLOTS: u16 = 2;

/// Name of the data file.
pub(crate) const DATA_FILE: &str = "data";
/// Name of the folder of log segments.
pub(crate) const LOG_FOLDER: &str = "log";
/// Name of the file that [`Directory::try_lock`] locks.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// An open database without threads.
#[derive(Debug)]
pub(crate) struct Engine {
    pub config: Config,
    pub directory: Arc<dyn Directory>,
    pub log: Arc<Log>,
    pub clock: Arc<Clock>,
    pub pool: Arc<Pool>,
    pub space: Arc<Space>,
    pub context: Arc<TreeContext>,
    pub manager: Arc<Manager>,
    pub store: VersionStore,
    /// The catalog's rows.
    pub catalog: Tree,
    /// Undo records that were carried forward (R9).
    pub carried: Tree,
    pub tables: Tables,
    pub checkpointer: Checkpointer,
    pub version_budget: VersionBudget,
    /// One `verify`, `truncate` or freeing by maintenance at a time.
    pub maintenance: Mutex<Maintenance>,
    /// A thread of the engine has panicked.
    pub given_up: AtomicBool,
    /// The directory is ours until the engine ends.
    pub _lock: LockGuard,
}

impl Engine {
    /// True once nothing may be written any more: a flush failed, the log has ended, or a thread of the engine panicked.
    pub fn is_poisoned(&self) -> bool {
        // Acquire: pairs with the release in `give_up`.
        self.directory.poisoned() || self.log.has_failed() || self.given_up.load(Ordering::Acquire)
    }

    /// Takes no writes any more.
    pub fn give_up(&self) {
        // Release: pairs with the acquire in `is_poisoned`.
        self.given_up.store(true, Ordering::Release);
    }

    /// The log of a slot of the engine itself.
    pub fn system_slot(&self, slot: SystemSlot) -> &SlotLog {
        self.log.slot(system_slot(&self.config, slot))
    }
}

/// The id of a slot of the engine itself.
pub(crate) fn system_slot(config: &Config, slot: SystemSlot) -> SlotId {
    SlotId(config.slots_max + slot as u16)
}

/// What the pool asks of the log, from before there is a log: redo changes pages by records that are all
/// durable.
#[derive(Debug, Default)]
pub(crate) struct LogOfPool {
    log: OnceLock<Arc<Log>>,
}

impl LogOfPool {
    /// From now on the pool asks this log.
    pub fn set(&self, log: Arc<Log>) {
        assert!(self.log.set(log).is_ok(), "a database has one log");
    }
}

impl DurableGsn for LogOfPool {
    fn durable_gsn(&self) -> Gsn {
        self.log.get().map_or(Gsn::MAX, |log| log.durable_gsn())
    }

    fn make_durable(&self, gsn: Gsn) -> Result<()> {
        self.log.get().map_or(Ok(()), |log| log.make_durable(gsn))
    }
}
