//! A closed directory: looked at without changing a byte of it.
//!
//! States of the files: closed in good order (the data file is whole by itself) or due for recovery (pages may be torn,
//! older than the log or newer than what counts). In the first case the data file is read as it is. In the second
//! the recovery is rehearsed: run on an overlay whose writes stay in memory ([`OverlayDirectory`]), and what it
//! makes is looked at. So a finding is always a finding: it will be there after the next open.
//!
//! Concurrency: the lock of the directory is held shared, so that nobody opens it meanwhile; several may look.

use super::walk::{self, Roots};
use super::{Finding, LogReport, Recovery, Report};
use crate::config::{Config, DATA_BYTES_MAX};
use crate::control::{CONTROL_FILE, Control};
use crate::database::Database;
use crate::engine::{DATA_FILE, LOG_FOLDER};
use crate::error::{Error, Result};
use crate::open;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use vellum_base::{Gsn, StorageError};
use vellum_btree::TreeContext;
use vellum_buffer::{Pool, PoolConfig, Space};
use vellum_io::{Directory, OpenOptions, OverlayDirectory, RealDirectory};
use vellum_wal::{DurableGsn, LogPosition, LogReader, Verdict};

/// Bytes of the smallest page, whatever the control file says.
const SMALLEST_PAGE: u64 = 4096;
/// Bytes of a pool that is not made smaller however small the file is.
const SMALLEST_POOL: u64 = 64 << 20;

/// A log that was read to its end and gets nothing more: what a pool is told that writes nothing.
struct LogToItsEnd {
    newest: Gsn,
}

impl DurableGsn for LogToItsEnd {
    fn durable_gsn(&self) -> Gsn {
        self.newest
    }

    fn make_durable(&self, _: Gsn) -> vellum_base::Result<()> {
        Ok(())
    }
}

/// How a closed directory is looked at.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Memory for pages, in bytes.
    pub pool_bytes: u64,
    /// Memory for what a recovery that is due would write, in bytes.
    pub memory_bytes: u64,
    /// Whether indexes are compared with their tables. Everything else is checked in any case.
    pub compare_indexes: bool,
}

impl Default for Inspection {
    fn default() -> Self {
        Self {
            pool_bytes: 256 << 20,
            memory_bytes: 1 << 30,
            compare_indexes: true,
        }
    }
}

impl Inspection {
    /// Limits the memory for pages.
    #[must_use]
    pub fn pool_bytes(mut self, bytes: u64) -> Self {
        self.pool_bytes = bytes;
        self
    }

    /// Limits the memory for what a recovery would write.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Whether indexes are compared with their tables.
    #[must_use]
    pub fn compare_indexes(mut self, on: bool) -> Self {
        self.compare_indexes = on;
        self
    }
}

/// Checks the closed database in `directory`. Writes nothing, whatever it finds.
///
/// # Errors
/// `Locked` if it is open, `ForeignFormat` if there is no database (or one of another version), I/O errors. Damage
/// is no error: it is in the report.
pub fn verify_directory(directory: Arc<dyn Directory>) -> Result<Report> {
    inspect_directory(directory, Inspection::default())
}

/// As [`verify_directory`], for a directory of the file system.
///
/// # Errors
/// As [`verify_directory`].
pub fn verify_path(path: impl AsRef<Path>, inspection: Inspection) -> Result<Report> {
    let path = path.as_ref();
    let directory = Arc::new(RealDirectory::open(path)?);
    inspect_directory(directory, inspection).map_err(|error| open::with_path(error, path))
}

/// As [`verify_directory`], with settings.
///
/// # Errors
/// As [`verify_directory`]; `MemoryLimit` if the memory for pages is too small.
pub fn inspect_directory(directory: Arc<dyn Directory>, inspection: Inspection) -> Result<Report> {
    let _lock = directory.try_lock_shared()?;
    open::check_kinds(&*directory, &directory.entries("")?)?;
    let mut report = Report::default();
    let control = match Control::read(&*directory) {
        Ok(control) => existing(&*directory, control)?,
        Err(error) => {
            report.find(Finding::of("database", error)?);
            return Ok(report);
        }
    };
    report.page_bytes = control.page_size.into();
    let Some((log, newest)) = read_log(&*directory, &control, &mut report)? else {
        report.recovery = Recovery::Failed;
        return Ok(report);
    };
    report.log = Some(log);
    let ended = LogToItsEnd { newest };
    let Some(pool) = open_pool(&*directory, &control, ended, inspection, &mut report)? else {
        return Ok(report);
    };
    if log.closed_cleanly && log.rounds == 0 {
        let space = Arc::new(Space::unread(pool.clone()));
        let context = Arc::new(TreeContext::new(pool, space));
        let roots = Roots {
            catalog: control.catalog,
            pending_free: control.pending_free,
            undo: control.undo,
        };
        let walked = walk::report(&context, &roots, inspection.compare_indexes)?;
        return Ok(merged(report, walked));
    }
    drop(pool);
    rehearse(directory, inspection, report)
}

/// The control file of a directory; refuses one without a database.
pub(crate) fn existing(directory: &dyn Directory, control: Option<Control>) -> Result<Control> {
    let none = |what: &str| {
        Err(Error::ForeignFormat {
            file: CONTROL_FILE.into(),
            what: what.to_owned(),
        })
    };
    match control {
        None => {
            // With files of a database, or of somebody else, beside where it would be.
            open::check_empty(&directory.entries("")?)?;
            none("there is no database here")
        }
        Some(control) if control.incarnation == 0 => {
            none("this database was never made to the end")
        }
        Some(control) => Ok(control),
    }
}

/// Findings and log of one report, figures of another.
fn merged(before: Report, mut walked: Report) -> Report {
    walked.log = before.log;
    walked.recovery = before.recovery;
    let later = std::mem::replace(&mut walked.findings, before.findings);
    for finding in later {
        walked.find(finding);
    }
    walked
}

/// Reads the log from the checkpoint on, and up to which GSN it has records; `None` (and a finding) if recovery could not.
fn read_log(
    directory: &dyn Directory,
    control: &Control,
    report: &mut Report,
) -> Result<Option<(LogReport, Gsn)>> {
    let mut log = LogReport {
        checkpoint_segment: control.checkpoint.segment,
        checkpoint_offset: control.checkpoint.offset,
        closed_cleanly: control.clean,
        ..LogReport::default()
    };
    if directory.exists(LOG_FOLDER)? {
        for name in directory.list(LOG_FOLDER)? {
            let file = directory.open(&format!("{LOG_FOLDER}/{name}"), OpenOptions::read_only())?;
            log.segments += 1;
            log.bytes += file.len()?;
        }
    }
    let mut read = || -> vellum_base::Result<Gsn> {
        // As recovery does: from the oldest undo on, then from the checkpoint on.
        let segment = control.analysis_segment;
        let from = LogPosition {
            segment,
            ..LogPosition::default()
        };
        let mut analysis = LogReader::open(directory, from, Verdict::default())?;
        while analysis.next_round()?.is_some() {}
        let mut reader = LogReader::open(directory, control.checkpoint, control.known)?;
        while let Some(round) = reader.next_round()? {
            let bytes: usize = round.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
            log.rounds += u64::from(bytes > 0);
            log.record_bytes += bytes as u64;
        }
        let end = reader.ends().last().map_or(Gsn::ZERO, |last| last.m);
        Ok(end.max(control.known.m))
    };
    match read() {
        Ok(newest) => Ok(Some((log, newest))),
        Err(error) => {
            report.find(Finding::of("log", error)?);
            report.log = Some(log);
            Ok(None)
        }
    }
}

/// A pool over the data file that never writes to it; `None` (and a finding) if there is no such file.
fn open_pool(
    directory: &dyn Directory,
    control: &Control,
    log: LogToItsEnd,
    inspection: Inspection,
    report: &mut Report,
) -> Result<Option<Arc<Pool>>> {
    let opened = directory
        .open(DATA_FILE, OpenOptions::read_only().direct())
        .and_then(|file| {
            let page_size = control.page_size as usize;
            let bytes = inspection.pool_bytes.min(useful_pool(file.len()?));
            let mut config = PoolConfig::new(page_size, bytes);
            // No address beyond the file is needed.
            let pages = file.len()? / SMALLEST_PAGE;
            config.pages_max = pages.max(4 * PoolConfig::BATCH_MAX as u64);
            Pool::open(file, Arc::new(log), &config)
        });
    let finding = match opened {
        Ok(pool) if pool.page_size() as u64 == u64::from(control.page_size) => {
            return Ok(Some(Arc::new(pool)));
        }
        Ok(pool) => {
            let values = (control.page_size.into(), pool.page_size() as u64);
            Finding::new("database", None, "page size of the data file", values)
        }
        Err(StorageError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Finding::new("database", None, "the data file is missing", (1, 0))
        }
        Err(error) => Finding::of("database", error)?,
    };
    report.find(finding);
    Ok(None)
}

/// Recovers in memory and looks at the result.
fn rehearse(
    directory: Arc<dyn Directory>,
    inspection: Inspection,
    mut report: Report,
) -> Result<Report> {
    let config = Config::default()
        .pool_bytes(inspection.pool_bytes)
        .background_threads(false);
    let config = detached_config(&*directory, config, inspection.memory_bytes)?;
    let overlay = OverlayDirectory::new(directory, inspection.memory_bytes);
    let walked = open::open(Arc::new(overlay), config)
        .and_then(|(engine, _)| engine.verify_with(inspection.compare_indexes));
    match walked {
        Ok(walked) => {
            report.recovery = Recovery::Rehearsed;
            Ok(merged(report, walked))
        }
        Err(Error::OutOfSpace { .. }) => {
            report.recovery = Recovery::TooLarge;
            Ok(report)
        }
        Err(Error::Corruption {
            file,
            page,
            what,
            expected,
            found,
        }) => {
            report.recovery = Recovery::Failed;
            let error = StorageError::Corruption {
                file,
                page,
                what,
                expected,
                found,
            };
            report.find(Finding::of("recovery", error)?);
            Ok(report)
        }
        Err(error) => Err(error),
    }
}

/// A pool that has every page of a file of this length has no use for more; each page of it costs memory beside its own.
fn useful_pool(data_bytes: u64) -> u64 {
    data_bytes.max(SMALLEST_POOL)
}

/// By how much a file that holds no more may be longer: files grow ahead of what is written to them.
const GROWTH: u64 = 1 << 30;

/// A configuration for a database whose changes vanish: as large as its data file is, and as what `memory_bytes` may add.
fn detached_config(
    directory: &dyn Directory,
    mut config: Config,
    memory_bytes: u64,
) -> vellum_base::Result<Config> {
    config.create = false;
    config.background_threads = false;
    // That there is none is found where it is opened.
    if directory.exists(DATA_FILE)? {
        let file = directory.open(DATA_FILE, OpenOptions::read_only())?;
        let bytes = file.len()?.saturating_add(memory_bytes);
        config.pool_bytes = config.pool_bytes.min(useful_pool(bytes));
        // Addresses are reserved for all of it, and a process may be allowed few.
        let grown = bytes.saturating_add(GROWTH);
        config.data_bytes_max = config.data_bytes_max.min(grown).max(bytes);
        config.data_bytes_max = config.data_bytes_max.min(DATA_BYTES_MAX);
    }
    Ok(config)
}

impl Database {
    /// Opens a closed database without ever changing its files: recovery, if it is due, and everything that is
    /// written later stay in memory and vanish with the handle. For looking at a database, dumping
    /// it, or copying it. It runs without background threads, and nobody can open the directory
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Database::open`]; `OutOfSpace` if changes (those of the recovery included) take more than
    /// `memory_bytes`.
    pub fn open_detached(
        path: impl AsRef<Path>,
        config: Config,
        memory_bytes: u64,
    ) -> Result<Self> {
        let path = path.as_ref();
        let below = Arc::new(RealDirectory::open(path)?);
        existing(&*below, Control::read(&*below)?)?;
        let config = detached_config(&*below, config, memory_bytes)?;
        let overlay = OverlayDirectory::new(below, memory_bytes);
        Self::open_directory(Arc::new(overlay), config)
            .map_err(|error| open::with_path(error, path))
    }
}
