//! Is this database what its files say it is? The report, and the check of an open database.
//!
//! | question | where |
//! | --- | --- |
//! | trees, rows, chains, catalog, pages against bitmaps | walk.rs |
//! | indexes against tables | indexes.rs |
//! | a closed directory, which is not written | closed.rs |
//!
//! Checked: every page in use has its checksum, what is fixed in its header, and a GSN that the log knows; every tree is
//! well formed (levels, fences, order); every row decodes; every chain is as long as its reference says; every page that a bitmap says is in use is reached
//! exactly once, and no other; the catalog decodes; indexes and tables agree, both ways; of a closed directory
//! also the control file, the header of the data file and the log from the checkpoint on.
//!
//! Does NOT check: whether the rows are those that were committed; what lies in pages that are not in use; older
//! versions (they are gone after a restart); of an open database, the copies on disk of pages that are in
//! memory, and the GSNs of these (each was checked when the page was read).

mod closed;
mod indexes;
#[cfg(test)]
mod tests;
mod walk;

pub use closed::{Inspection, inspect_directory, verify_directory, verify_path};
pub use indexes::EntrySums;

use crate::background::Maintenance;
use crate::database::Database;
use crate::engine::Engine;
use crate::error::Result;
use std::fmt;
use std::sync::Arc;
use vellum_base::{PageId, StorageError};

/// Findings that a report lists; more are counted.
const FINDINGS_MAX: usize = 1000;
/// How often an open database is looked at again when something wrote to it meanwhile.
const ATTEMPTS: u32 = 3;
/// Steps of collection before an open database is looked at.
const COLLECT_STEPS: u32 = 10_000;

/// What was found, and what there is.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Tables by name.
    pub tables: Vec<TableReport>,
    /// The trees of the database itself: catalog, pending_free, undo.
    pub system: Vec<TreeReport>,
    /// Pages of the data file.
    pub pages: PagesReport,
    /// The log on disk; `None` for an open database.
    pub log: Option<LogReport>,
    /// Whether the files need a recovery, and so what the figures are about.
    pub recovery: Recovery,
    /// Everything that is wrong, up to a thousand entries.
    pub findings: Vec<Finding>,
    /// Findings beyond those.
    pub findings_left_out: u64,
    /// Something wrote while this report was made, or transactions were open that may have been in the middle of
    /// a write: findings may be of the moment only. Never true for a closed directory.
    pub changed_meanwhile: bool,
}

impl Report {
    /// True if nothing wrong was found.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.findings_left_out == 0
    }

    /// True if everything could be looked at: no recovery that does not fit into memory stood in the way.
    pub fn is_complete(&self) -> bool {
        !matches!(self.recovery, Recovery::TooLarge | Recovery::Failed)
    }

    /// Adds a finding: of the walk here, or of a layer above that knows what rows mean.
    pub fn find(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.findings_left_out += 1;
        }
    }
}

/// Whether the files of a closed directory need a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recovery {
    /// No: the database was closed in good order (or is open).
    #[default]
    NotDue,
    /// Yes, and it was run in memory: the report is about what the next open will find, the files are as they
    /// were.
    Rehearsed,
    /// Yes, but it needs more memory than it was given: only control file, header and log were checked.
    TooLarge,
    /// Yes, and it fails: a finding says why. Only control file, header and log were checked.
    Failed,
}

/// A table and its indexes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TableReport {
    /// Rows and pages.
    pub tree: TreeReport,
    /// Overflow chains of its rows.
    pub chains: u64,
    /// Their pages.
    pub chain_pages: u64,
    /// Their bytes of data.
    pub chain_bytes: u64,
    /// Its indexes by number.
    pub indexes: Vec<IndexReport>,
}

/// An index.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IndexReport {
    /// Entries and pages.
    pub tree: TreeReport,
    /// Whether it is unique.
    pub unique: bool,
}

/// One tree.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TreeReport {
    /// Name of the table, index or system tree.
    pub name: String,
    /// Its root page.
    pub root: u64,
    /// Live rows, newest versions.
    pub rows: u64,
    /// Deleted rows whose place was not given back yet.
    pub tombstones: u64,
    /// Levels, a lone leaf being one.
    pub height: u64,
    /// Pages, chains not counted.
    pub pages: u64,
    /// Bytes in use in these pages.
    pub bytes_used: u64,
    /// Bytes of keys and stored rows, keys in full.
    pub row_bytes: u64,
}

/// Pages of the data file by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PagesReport {
    /// All.
    pub file: u64,
    /// In use by trees and chains, as the bitmaps say.
    pub in_use: u64,
    /// In use by old versions, and by loads that are under way; zero for a closed directory.
    pub temporary: u64,
    /// File header, bitmaps, double-write area.
    pub reserved: u64,
    /// Free.
    pub free: u64,
    /// Of those in use: parts of dropped tables and old values that are still to be freed.
    pub pending: u64,
    /// Pages that were read and checked.
    pub checked: u64,
}

/// The log of a closed directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogReport {
    /// Files.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of the segment where recovery starts.
    pub checkpoint_segment: u64,
    /// Offset in it.
    pub checkpoint_offset: u64,
    /// Rounds of records from there on.
    pub rounds: u64,
    /// Bytes of records in them.
    pub record_bytes: u64,
    /// The database was closed in good order.
    pub closed_cleanly: bool,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is part of: a table, an index, a system tree, `database`.
    pub object: String,
    /// File in the database directory.
    pub file: Arc<str>,
    /// Page of the data file.
    pub page: Option<u64>,
    /// Which check failed.
    pub what: String,
    /// What should have been there.
    pub expected: u64,
    /// What was there.
    pub found: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.file)?;
        if let Some(page) = self.page {
            write!(f, ", page {page}")?;
        }
        write!(
            f,
            ": {} (expected {}, found {})",
            self.what, self.expected, self.found
        )
    }
}

impl Finding {
    /// One that is about no page: `values` are what should have been there, and what was.
    pub fn of_rows(object: &str, what: &str, values: (u64, u64)) -> Self {
        Self::new(object, None, what, values)
    }

    /// A key as a finding shows it: what is no printable ASCII is escaped, and its end is left out if it is long.
    pub fn shown(key: &[u8]) -> String {
        walk::shown(key)
    }

    pub(crate) fn new(object: &str, page: Option<PageId>, what: &str, values: (u64, u64)) -> Self {
        Self {
            object: object.to_owned(),
            file: crate::engine::DATA_FILE.into(),
            page: page.map(PageId::get),
            what: what.to_owned(),
            expected: values.0,
            found: values.1,
        }
    }

    /// A storage error as a finding; what says nothing about the content comes back.
    pub(crate) fn of(object: &str, error: StorageError) -> std::result::Result<Self, StorageError> {
        match error {
            StorageError::Corruption {
                file,
                page,
                what,
                expected,
                found,
            } => Ok(Self {
                object: object.to_owned(),
                file,
                page: page.map(PageId::get),
                what: what.to_owned(),
                expected,
                found,
            }),
            other => Err(other),
        }
    }
}

impl Database {
    /// Checks the whole database; nothing is changed. For a database that nobody else writes to at the moment: a
    /// structure change under way looks like damage. If something wrote meanwhile, the check is repeated
    /// up to three times; after that the report says so ([`Report::changed_meanwhile`]). Readers do
    /// not matter.
    ///
    /// Blocks for reading every page that is in use.
    ///
    /// # Errors
    /// I/O errors. Damage is no error: it is in the report.
    pub fn verify(&self) -> Result<Report> {
        self.engine().verify_with(true)
    }
}

impl Engine {
    /// As [`Database::verify`]; `compare_indexes` says whether indexes are compared with their tables.
    pub(crate) fn verify_with(&self, compare_indexes: bool) -> Result<Report> {
        // What background work would do by itself in the middle of it.
        self.roll_back_parked()?;
        let mut turn = self.maintenance.lock();
        let mut attempt = 1;
        loop {
            self.collect_first(&mut turn)?;
            let before = self.records_written()?;
            let busy = self.manager.slots_taken() > 0;
            let mut report = walk::report(&self.context, &self.roots(), compare_indexes)?;
            let counts = self.space.counts();
            report.pages.temporary = counts.temporary + counts.loading;
            report.pages.free = counts.free;
            if counts.durable != report.pages.in_use {
                let values = (report.pages.in_use, counts.durable);
                report.find(Finding::new(
                    "database",
                    None,
                    "pages in use, in memory",
                    values,
                ));
            }
            let busy = busy || self.manager.slots_taken() > 0;
            let changed = self.records_written()? != before;
            report.changed_meanwhile = changed || (busy && !report.is_sound());
            if report.is_sound() || !report.changed_meanwhile || attempt == ATTEMPTS {
                return Ok(report);
            }
            attempt += 1;
        }
    }

    /// What idle slots have left goes, as far as it can be read: the rest is what the walk is to find.
    fn collect_first(&self, turn: &mut Maintenance) -> Result<()> {
        for _ in 0..COLLECT_STEPS {
            match self.collect_idle_alone(turn) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if walk::is_damage(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn roots(&self) -> walk::Roots {
        walk::Roots {
            catalog: self.catalog.root(),
            pending_free: self.store.pending_free().root(),
            undo: self.carried.root(),
        }
    }

    /// Bytes of log records so far: every change of a durable page is one.
    fn records_written(&self) -> Result<u64> {
        self.log.flush_round()?;
        Ok(self.log.statistics().bytes_records)
    }
}
