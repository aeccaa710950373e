//! Which engine runs a workload: Vellum, or a peer that this build has (`bench/peers`).

use crate::cli::{Durability, Holder, IsolationName, Settings, Workload};
use crate::report::Summary;
use crate::{Failure, measure_workload};
use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;
use std::marker::PhantomData;
use vellum_peers::PeerSettings;
#[cfg(feature = "canopydb")]
use vellum_peers::canopydb::{CanopydbEngine, Log};
#[cfg(feature = "lmdb")]
use vellum_peers::lmdb::{LmdbEngine, Writes};
use vellum_workload::engine::{Engine, Result as EngineResult};

/// An engine.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// Vellum
    #[default]
    Vellum,
    /// canopydb: a copy-on-write tree behind a log
    Canopydb,
    /// canopydb without its log: a kill takes what is behind its last checkpoint
    CanopydbNowal,
    /// fjall: log-structured merge trees
    Fjall,
    /// LMDB
    Lmdb,
    /// LMDB that writes pages in its map (MDB_WRITEMAP)
    LmdbWritemap,
    /// PostgreSQL, over the wire to a server of its own
    Postgresql,
    /// redb
    Redb,
    /// RocksDB: log-structured merge trees, with pessimistic transactions
    Rocksdb,
    /// SQLite in WAL mode
    Sqlite,
    /// WiredTiger: B-trees in a cache, with a log
    Wiredtiger,
}

impl EngineName {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vellum => "vellum",
            Self::Canopydb => "canopydb",
            Self::CanopydbNowal => "canopydb-nowal",
            Self::Fjall => "fjall",
            Self::Lmdb => "lmdb",
            Self::LmdbWritemap => "lmdb-writemap",
            Self::Postgresql => "postgresql",
            Self::Redb => "redb",
            Self::Rocksdb => "rocksdb",
            Self::Sqlite => "sqlite",
            Self::Wiredtiger => "wiredtiger",
        }
    }

    /// Name of the feature that builds it.
    pub const fn feature(self) -> &'static str {
        match self {
            Self::CanopydbNowal => Self::Canopydb.name(),
            Self::LmdbWritemap => Self::Lmdb.name(),
            _ => self.name(),
        }
    }

    /// Whether this build has it.
    pub fn is_built(self) -> bool {
        self == Self::Vellum || vellum_peers::BUILT.contains(&self.feature())
    }

    /// Whether it runs in a process of its own, whose processor time and memory nobody here sees.
    pub(crate) const fn is_server(self) -> bool {
        matches!(self, Self::Postgresql)
    }

    /// Whether a transaction that may write keeps all others that may from beginning.
    const fn has_one_writer(self) -> bool {
        matches!(
            self,
            Self::Lmdb | Self::LmdbWritemap | Self::Redb | Self::Sqlite
        )
    }

    /// Why it cannot run this, if so.
    ///
    /// # Errors
    /// A text for the user.
    pub fn check(self, workload: &Workload) -> Result<(), String> {
        let (name, common) = (self.name(), workload.common());
        if self == Self::Vellum {
            return Ok(());
        }
        if self == Self::CanopydbNowal && workload.settings().durability == Durability::Sync {
            return Err(format!(
                "{name} has no log, so nobody can wait for a commit: --durability async, or canopydb"
            ));
        }
        if !self.is_built() {
            return Err(format!(
                "this build has no {name}: build vellum-bench with --features {}",
                self.feature()
            ));
        }
        if let Some(lacking) = vellum_peers::lacking(self.feature()) {
            return Err(format!("{name} cannot run here: there is no {lacking}"));
        }
        let settings = workload.settings();
        if settings.variant != crate::cli::Variant::default()
            || settings.page_size.is_some()
            || settings.file_bytes_max.is_some()
            || settings.version_limit.is_some()
        {
            return Err(format!(
                "--variant, --page-size, --file-gib and --version-mib-max are of vellum, not of {name}"
            ));
        }
        if let Workload::Hekaton(hekaton) = workload
            && hekaton.isolation != IsolationName::Snapshot
        {
            return Err(format!(
                "{name} is asked for snapshots only: no --isolation {}",
                hekaton.isolation.name()
            ));
        }
        let held = workload
            .hold()
            .filter(|hold| hold.hold_snapshot_at.is_some());
        let holds_a_writer =
            held.is_some_and(|hold| matches!(hold.holder, Holder::Idle | Holder::Writer));
        if self.has_one_writer() && (common.idle_writer || holds_a_writer) {
            return Err(format!(
                "{name} has one writer at a time, all others would wait for the one that idles: \
                 no --idle-writer, and --holder olap or scan"
            ));
        }
        Ok(())
    }
}

/// Refuses a list that names an engine twice.
///
/// # Errors
/// A text for the user.
pub(crate) fn check_list(engines: &[EngineName]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match engines.iter().find(|engine| !seen.insert(**engine)) {
        Some(twice) => Err(format!("--engines names {} twice", twice.name())),
        None => Ok(()),
    }
}

/// What a peer is opened with.
fn peer(settings: &Settings) -> PeerSettings {
    PeerSettings {
        data: settings.data.clone(),
        memory_bytes: settings.pool_bytes,
        sync: settings.durability == Durability::Sync,
        sessions: settings.sessions,
        tables: settings.tables,
        writers: settings.writers,
    }
}

/// Who runs workloads on engines.
pub(crate) trait Runner {
    /// Why an engine cannot run this, if so.
    ///
    /// # Errors
    /// A text for the user.
    fn check(&self, engine: EngineName, workload: &Workload) -> Result<(), String>;

    /// Runs a workload, which `words` are on the command line.
    fn measure(
        &mut self,
        engine: EngineName,
        workload: &Workload,
        words: &[String],
        lines: &mut dyn Write,
    ) -> Result<Summary, Failure>;
}

/// The engines of this build; Vellum's place is taken by what `open` opens.
pub(crate) struct Engines<E, F> {
    open: F,
    opened: PhantomData<fn() -> E>,
}

impl<E: Engine, F: FnMut(&Settings) -> EngineResult<E>> Engines<E, F> {
    pub(crate) fn new(open: F) -> Self {
        Self {
            open,
            opened: PhantomData,
        }
    }
}

impl<E: Engine, F: FnMut(&Settings) -> EngineResult<E>> Runner for Engines<E, F> {
    fn check(&self, engine: EngineName, workload: &Workload) -> Result<(), String> {
        engine.check(workload)
    }

    fn measure(
        &mut self,
        engine: EngineName,
        workload: &Workload,
        _: &[String],
        lines: &mut dyn Write,
    ) -> Result<Summary, Failure> {
        measure_on(engine, workload, &mut self.open, lines)
    }
}

/// Runs a workload on an engine; on the one that `open` opens for Vellum.
pub(crate) fn measure_on<E: Engine>(
    engine: EngineName,
    workload: &Workload,
    open: impl FnMut(&Settings) -> EngineResult<E>,
    lines: &mut dyn Write,
) -> Result<Summary, Failure> {
    engine.check(workload).map_err(Failure::Usage)?;
    match engine {
        EngineName::Vellum => measure_workload(engine, workload, open, lines),
        #[cfg(feature = "canopydb")]
        EngineName::Canopydb => measure_workload(
            engine,
            workload,
            |settings: &Settings| CanopydbEngine::open(&peer(settings), Log::Written),
            lines,
        ),
        #[cfg(feature = "canopydb")]
        EngineName::CanopydbNowal => measure_workload(
            engine,
            workload,
            |settings: &Settings| CanopydbEngine::open(&peer(settings), Log::Omitted),
            lines,
        ),
        #[cfg(feature = "fjall")]
        EngineName::Fjall => measure_workload(
            engine,
            workload,
            |settings: &Settings| vellum_peers::fjall::FjallEngine::open(&peer(settings)),
            lines,
        ),
        #[cfg(feature = "lmdb")]
        EngineName::Lmdb => measure_workload(
            engine,
            workload,
            |settings: &Settings| LmdbEngine::open(&peer(settings), Writes::BySystemCalls),
            lines,
        ),
        #[cfg(feature = "lmdb")]
        EngineName::LmdbWritemap => measure_workload(
            engine,
            workload,
            |settings: &Settings| LmdbEngine::open(&peer(settings), Writes::InTheMap),
            lines,
        ),
        #[cfg(feature = "postgresql")]
        EngineName::Postgresql => measure_workload(
            engine,
            workload,
            |settings: &Settings| vellum_peers::postgresql::PostgresqlEngine::open(&peer(settings)),
            lines,
        ),
        #[cfg(feature = "redb")]
        EngineName::Redb => measure_workload(
            engine,
            workload,
            |settings: &Settings| vellum_peers::redb::RedbEngine::open(&peer(settings)),
            lines,
        ),
        #[cfg(feature = "rocksdb")]
        EngineName::Rocksdb => measure_workload(
            engine,
            workload,
            |settings: &Settings| vellum_peers::rocksdb::RocksdbEngine::open(&peer(settings)),
            lines,
        ),
        #[cfg(feature = "sqlite")]
        EngineName::Sqlite => measure_workload(
            engine,
            workload,
            |settings: &Settings| vellum_peers::sqlite::SqliteEngine::open(&peer(settings)),
            lines,
        ),
        #[cfg(feature = "wiredtiger")]
        EngineName::Wiredtiger => measure_workload(
            engine,
            workload,
            |settings: &Settings| vellum_peers::wiredtiger::WiredtigerEngine::open(&peer(settings)),
            lines,
        ),
        #[cfg(not(all(
            feature = "canopydb",
            feature = "fjall",
            feature = "lmdb",
            feature = "postgresql",
            feature = "redb",
            feature = "rocksdb",
            feature = "sqlite",
            feature = "wiredtiger"
        )))]
        other => Err(Failure::Usage(format!(
            "{} is not in this build, for {}",
            other.name(),
            peer(&workload.settings()).data.display()
        ))),
    }
}
