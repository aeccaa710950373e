//! Backup of an open database: a copy that opens like after a crash, while everything goes on.
//!
//! 1. A checkpoint is made, and its control file is noted: redo starts at its position P, analysis at segment A. From
//!    now on no segment from A on is used again before it is copied ([`LogCopy`]).
//! 2. Pages are copied through the pool, one after the other: those whose bits are set in their bitmap page, as
//!    each of them is at that moment.
//! 3. Chains of carried undo that were linked since step 1 are copied (B5). One more flush round. The log up to its end
//!    E is copied.
//! 4. Everything is synced and the copied log is read once; only then the control file of step 1 is written.
//!
//! Invariants:
//! - B1 The copy is what a crash at E could have left, had the control file of step 1 still been there: every
//!   page as it was at some time after P, and every log record from P (from A, for undo) to E.
//! - B2 Every change in a copied page is in the copied log or older than P: a page's changes are logged before its latch is
//!   given back, and the round of step 3 begins after the last copy.
//! - B3 The target is no database before its control file is there, which is written last, atomically. Who
//!   fails removes what it wrote. (Not after a failed sync, which lets nobody write there any more. If that was the last of all, of
//!   the folder with the control file's name, the target is the whole copy, or none after a power cut.)
//! - B5 What a chain of carried undo holds is in no log record. So no checkpoint, which alone links such chains, runs
//!   from when the last of them is copied to when the end of the log is.
//! - B4 A target that fails (full, gone) fails the backup and nothing else.
//! - B6 Loads link leaves whose content is in no log record. From before step 1 on they log it; what they linked earlier has its bits by
//!   then, so step 2 copies it.
//!
//! Why pages that change their use meanwhile do no harm: a page that is allocated after its bitmap was looked at is
//! made by a record after P; one that was freed is skipped or copied, and no record builds on it before one that
//! makes it anew; version data is skipped by its flag.
//!
//! Concurrency: one backup at a time, others wait. A page is latched, shared, while it is copied. The log's
//! segments are copied as they fill, at the latest by the checkpoint that wants to release them: a writer that waits
//! for log space waits for that copy, never for the backup.
//!
//! Crash: of the source: the target has no control file. Of the target's machine: steps 4 and B3.

mod log_copy;

pub(crate) use log_copy::{Backups, LogCopy};

use crate::control::{CONTROL_FILE, Control};
use crate::database::Database;
use crate::engine::{DATA_FILE, Engine, LOG_FOLDER, LogOfPool};
use crate::error::{Error, Result};
use crate::open;
use std::path::Path;
use std::sync::Arc;
use vellum_base::maps::HashSet;
use vellum_base::{PageId, Result as StorageResult, StorageError};
use vellum_btree::overflow;
use vellum_buffer::{
    BITMAP_BITS_AT, PageBuf, PageHeader, PageRead, Pool, PoolConfig, bitmap, kind,
    page::page_checksum,
};
use vellum_io::{AlignedBuf, Directory, Entry, EntryKind, File, OpenOptions, RealDirectory};

/// How often chains that were linked meanwhile are copied before checkpoints have to wait for the last ones.
const CHAIN_PASSES: usize = 2;
/// Bytes that are written to the target at once.
const RUN_BYTES: usize = 1 << 20;

impl Database {
    /// Copies the database, as it is at the end of the call, into a directory that is made, or empty. Transactions
    /// go on meanwhile. What was committed before the call is in the copy; what is open at the end
    /// is not: the copy recovers when it is opened.
    ///
    /// Blocks for reading every page in use and for writing it to the target. The target takes about the size of the
    /// data file and of the log written meanwhile.
    ///
    /// # Errors
    /// `ForeignFormat` if the target is not empty, `InvalidArgument` if it is this database's directory or lies in it, under whatever
    /// name; `Locked` if somebody has it open; `Corruption` if a page of this
    /// database is damaged; `OutOfSpace`, `Io` of either (files of the target are named so). The target
    /// then holds no database, and this database is as it was. (If the very last sync of the target's folder fails, the whole copy is
    /// there, until a power cut perhaps.)
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let own = &self.engine().directory;
        // The log's folder may be a link to somewhere else.
        if own.holds("", path) || own.holds(LOG_FOLDER, path) {
            // Nobody looks for a copy there, and nothing but the database belongs there.
            return Err(Error::InvalidArgument {
                what: "the target of a backup must lie outside the database's directory".into(),
            });
        }
        let target = RealDirectory::create(path).map_err(of_target)?;
        self.backup_to(Arc::new(target))
            .map_err(|error| open::with_path(error, path))
    }

    /// As [`Database::backup`], into any [`Directory`].
    ///
    /// # Errors
    /// As [`Database::backup`].
    pub fn backup_to(&self, target: Arc<dyn Directory>) -> Result<()> {
        let (_lock, ()) = open::lock_if(&*target, check_target)?;
        let engine = self.engine();
        let result = engine.backup(&target);
        if result.is_err() {
            // Nothing to add to the first error: without a control file the rest is no database.
            let _ = remove_copy(&*target);
        }
        Ok(result?)
    }
}

/// Refuses a target with anything in it. An empty folder of the log is what a backup that failed leaves.
fn check_target(target: &dyn Directory) -> Result<()> {
    let mut entries = target.entries("")?;
    let is_log = |entry: &Entry| entry.name == LOG_FOLDER && entry.kind == EntryKind::Directory;
    if entries.iter().any(is_log) && target.entries(LOG_FOLDER)?.is_empty() {
        entries.retain(|entry| !is_log(entry));
    }
    open::check_empty(&entries)
}

/// Says of an error that it is about the target.
fn of_target(error: StorageError) -> StorageError {
    let named = |file: Arc<str>| -> Arc<str> { format!("backup target: {file}").into() };
    match error {
        StorageError::Io {
            action,
            file,
            source,
        } => StorageError::Io {
            action,
            file: named(file),
            source,
        },
        StorageError::OutOfSpace { file } => StorageError::OutOfSpace { file: named(file) },
        StorageError::Corruption {
            file,
            page,
            what,
            expected,
            found,
        } => StorageError::Corruption {
            file: named(file),
            page,
            what,
            expected,
            found,
        },
        other => other,
    }
}

/// Removes the files of a copy that failed.
fn remove_copy(target: &dyn Directory) -> StorageResult<()> {
    // What makes it a database goes first.
    let mut names = vec![
        CONTROL_FILE.to_owned(),
        DATA_FILE.to_owned(),
        format!("{CONTROL_FILE}.tmp"),
    ];
    if target.exists(LOG_FOLDER)? {
        let inside = target.list(LOG_FOLDER)?;
        names.extend(
            inside
                .into_iter()
                .map(|name| format!("{LOG_FOLDER}/{name}")),
        );
    }
    for name in names {
        if target.exists(&name)? {
            target.remove(&name)?;
        }
    }
    Ok(())
}

impl Engine {
    fn backup(&self, target: &Arc<dyn Directory>) -> StorageResult<()> {
        let _one = self.checkpointer.backups().begin();
        // B6.
        let _images = self.context.require_images();
        self.checkpoint()?;
        target.create_dir(LOG_FOLDER).map_err(of_target)?;
        let copy = |control: &Control| {
            LogCopy::new(
                target.clone(),
                self.log.files().clone(),
                control.analysis_segment,
            )
        };
        let (control, log) = self.checkpointer.pin_log(copy);
        let data = self.copy_pages(target, &log)?;
        let mut run = Run::new(data.clone(), self.config.page_size)?;
        let backups = self.checkpointer.backups();
        for _ in 0..CHAIN_PASSES {
            for _ in 0..backups.chains() {
                // What is written to the target is written without the lock.
                let quiet = self.checkpointer.hold();
                let pages = self.read_chain(backups.next_chain())?;
                drop(quiet);
                run.push_all(pages)?;
            }
        }
        log.copy_before(self.log.position().segment);
        // B5.
        let quiet = self.checkpointer.hold();
        let mut rest = Vec::new();
        while backups.chains() > 0 {
            rest.append(&mut self.read_chain(backups.next_chain())?);
        }
        self.log.flush_round()?;
        let end = log.finish(&self.log)?;
        drop(quiet);
        run.push_all(rest)?;
        run.flush()?;
        let synced = data
            .sync_data()
            .and_then(|()| target.sync_dir(LOG_FOLDER))
            .and_then(|()| target.sync_dir(""));
        synced.map_err(of_target)?;
        log_copy::read_back(&**target, &control, end).map_err(of_target)?;
        let control = Control {
            clean: false,
            ..control
        };
        control.write(&**target).map_err(of_target)
    }

    /// Step 2.
    fn copy_pages(
        &self,
        target: &Arc<dyn Directory>,
        log: &LogCopy,
    ) -> StorageResult<Arc<dyn File>> {
        let shape = self.pool.geometry();
        let file = make_data_file(&**target, &self.pool).map_err(of_target)?;
        let mut run = Run::new(file.clone(), shape.page_size)?;
        let (mut bits, mut copied) = (PageBuf::new(shape.page_size), PageBuf::new(shape.page_size));
        let mut group = 0;
        // The file may grow meanwhile, and shrink.
        while shape.bitmap_page(group).get() < self.pool.file_pages() {
            let at = shape.bitmap_page(group);
            group += 1;
            match self.pool.shared(at) {
                Ok(page) => page.copy_to(&mut bits),
                // Cut off meanwhile, with all pages that it is about.
                Err(_) if at.get() >= self.pool.file_pages() => break,
                Err(error) => return Err(error),
            }
            if bits.kind() != kind::FREE {
                run.push(at, &mut bits)?;
            }
            for (index, byte) in bits.as_bytes()[BITMAP_BITS_AT..].iter().enumerate() {
                for bit in (0..8).filter(|bit| byte & (1 << bit) != 0) {
                    let page = PageId(at.get() + index as u64 * 8 + bit);
                    if self.copy_page(page, &mut copied)? && run.push(page, &mut copied)? {
                        // Now and then: what has filled meanwhile need not wait for a checkpoint.
                        log.copy_before(self.log.position().segment);
                        log.check()?;
                    }
                }
            }
        }
        run.flush()?;
        let length = shape.offset(PageId(self.pool.file_pages()));
        file.allocate(0, length).map_err(of_target)?;
        Ok(file)
    }

    /// Reads a chain of carried undo, if it is still there. For who holds the checkpointer, which alone frees such chains.
    fn read_chain(&self, root: Option<PageId>) -> StorageResult<Vec<(PageId, PageBuf)>> {
        let mut copies = Vec::new();
        let Some(root) = root else {
            return Ok(copies);
        };
        let listed = root.get().to_be_bytes();
        if !self.store.pending_free().get(&listed, &mut Vec::new())? {
            return Ok(copies);
        }
        let (mut pages, mut seen) = (Vec::new(), HashSet::default());
        overflow::verify(&self.context, root, &mut |page| {
            pages.push(page);
            seen.insert(page)
        })?;
        for page in pages {
            let mut copied = PageBuf::new(self.config.page_size);
            if self.copy_page(page, &mut copied)? {
                copies.push((page, copied));
            }
        }
        Ok(copies)
    }

    /// Copies a page that was in use a moment ago; false if it need not be in the copy.
    fn copy_page(&self, page: PageId, into: &mut PageBuf) -> StorageResult<bool> {
        match self.pool.shared(page) {
            Ok(guard) => guard.copy_to(into),
            Err(error @ StorageError::Corruption { .. }) => {
                // Freed meanwhile, and the file may have been cut, or its place is being used for something else.
                let (at, bit) = self.pool.geometry().bitmap_of(page);
                return match self.pool.shared(at) {
                    Ok(bits) if bitmap::is_set(&bits, bit) => Err(error),
                    Ok(_) => Ok(false),
                    Err(_) if at.get() >= self.pool.file_pages() => Ok(false),
                    Err(error) => Err(error),
                };
            }
            Err(error) => return Err(error),
        }
        Ok(!into.is_temporary() && into.kind() != kind::FREE)
    }
}

/// Makes the target's data file: header, and space for the pages that there are.
fn make_data_file(target: &dyn Directory, source: &Pool) -> StorageResult<Arc<dyn File>> {
    let shape = source.geometry();
    let file = target.open(DATA_FILE, OpenOptions::create_new().direct())?;
    let pool_bytes = PoolConfig::FRAMES_MIN * shape.page_size as u64;
    let mut config = PoolConfig::new(shape.page_size, pool_bytes);
    config.batch_pages = shape.batch_pages;
    config.pages_max = shape.first_free().get() + 64;
    drop(Pool::create_file(
        file.clone(),
        Arc::new(LogOfPool::default()),
        &config,
    )?);
    // A target that is too small is found now and not after hours.
    file.allocate(0, shape.offset(PageId(source.file_pages())))?;
    Ok(file)
}

/// Pages that follow each other, to be written at once.
struct Run {
    file: Arc<dyn File>,
    page_size: usize,
    bytes: AlignedBuf,
    first: PageId,
    count: usize,
}

impl Run {
    fn new(file: Arc<dyn File>, page_size: usize) -> StorageResult<Self> {
        let bytes = AlignedBuf::zeroed(RUN_BYTES)?;
        Ok(Self {
            file,
            page_size,
            bytes,
            first: PageId::ZERO,
            count: 0,
        })
    }

    /// Adds a page, with its checksum; true if what was there before was written.
    fn push(&mut self, page: PageId, content: &mut PageBuf) -> StorageResult<bool> {
        let full = (self.count + 1) * self.page_size > self.bytes.len();
        let gap = self.first.get() + self.count as u64 != page.get();
        let written = self.count > 0 && (full || gap);
        if written {
            self.flush()?;
        }
        if self.count == 0 {
            self.first = page;
        }
        let at = self.count * self.page_size;
        let place = &mut self.bytes[at..at + self.page_size];
        place.copy_from_slice(content.as_bytes());
        let sum = page_checksum(page, place);
        place[..4].copy_from_slice(&sum.to_le_bytes());
        self.count += 1;
        Ok(written)
    }

    fn push_all(&mut self, pages: Vec<(PageId, PageBuf)>) -> StorageResult<()> {
        for (page, mut content) in pages {
            self.push(page, &mut content)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> StorageResult<()> {
        let bytes = &self.bytes[..self.count * self.page_size];
        self.count = 0;
        if bytes.is_empty() {
            return Ok(());
        }
        let offset = self.first.get() * self.page_size as u64;
        self.file.write_at(bytes, offset).map_err(of_target)
    }
}
