//! The log's part of a backup: segments are copied before they may be used again.
//!
//! States of a segment, for the copy: needed --copied, in ascending order--> free to go. A copy that fails
//! holds nothing back any more; the backup learns of it from [`LogCopy::check`]. A copy that is done is whole: what a
//! checkpoint releases between its end and the backup's is not added to it.
//!
//! Concurrency: the backup's thread and checkpoints copy under one mutex, innermost but for reading files.
//! Segments before the log's position are complete and do not change.

use super::of_target;
use crate::control::Control;
use crate::engine::LOG_FOLDER;
use std::sync::Arc;
use vellum_base::{PageId, Result, StorageError};
use vellum_io::{AlignedBuf, Directory, File, OpenOptions};
use vellum_sync::{Mutex, MutexGuard};
use vellum_wal::{Log, LogPosition, LogReader, SegmentFiles, Verdict};

/// Bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// The backup of a database that is under way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Backups {
    /// Held by the one backup.
    one: Mutex<()>,
    log: Mutex<Option<Arc<LogCopy>>>,
    /// Chains that were linked since the log was pinned: their content is in no log (`btree::detached`).
    chains: Mutex<Vec<PageId>>,
}

/// A backup under way; its end lets go of the log.
pub(crate) struct Backup<'b> {
    all: &'b Backups,
    _one: MutexGuard<'b, ()>,
}

impl Drop for Backup<'_> {
    fn drop(&mut self) {
        *self.all.log.lock() = None;
    }
}

impl Backups {
    /// Waits for a backup that is under way; then this one is.
    pub fn begin(&self) -> Backup<'_> {
        Backup {
            _one: self.one.lock(),
            all: self,
        }
    }

    /// Notes a chain whose content the log does not have, if a backup is under way.
    pub fn note_chain(&self, root: PageId) {
        if self.log.lock().is_some() {
            self.chains.lock().push(root);
        }
    }

    /// How many chains are noted.
    pub fn chains(&self) -> usize {
        self.chains.lock().len()
    }

    /// Takes a chain out of those that were noted.
    pub fn next_chain(&self) -> Option<PageId> {
        self.chains.lock().pop()
    }

    /// From now on segments from `copy` on are released only after they were copied.
    pub fn pin(&self, copy: Arc<LogCopy>) {
        self.chains.lock().clear();
        *self.log.lock() = Some(copy);
    }

    /// Copies what a backup still needs of the segments before `segment`, which are complete and about to be
    /// released.
    pub fn before_release(&self, segment: u64) {
        let copy = self.log.lock().clone();
        if let Some(copy) = copy {
            copy.copy_before(segment);
        }
    }
}

/// The copy of the log.
#[derive(Debug)]
pub(crate) struct LogCopy {
    target: Arc<dyn Directory>,
    files: Arc<SegmentFiles>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Segments below are copied or not needed; `u64::MAX` once the copy is done.
    next: u64,
    /// Files in the target.
    made: u64,
    error: Option<StorageError>,
}

impl LogCopy {
    /// A copy of the segments from `first` on.
    pub fn new(target: Arc<dyn Directory>, files: Arc<SegmentFiles>, first: u64) -> Self {
        let state = Mutex::new(State {
            next: first,
            made: 0,
            error: None,
        });
        Self {
            target,
            files,
            state,
        }
    }

    /// Copies the segments before `segment`, which are complete. An error ends the copy.
    pub fn copy_before(&self, segment: u64) {
        let mut state = self.state.lock();
        if state.error.is_none()
            && let Err(error) = self.copy_complete(&mut state, segment)
        {
            state.error = Some(error);
        }
    }

    /// The error that ended the copy, if any did.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> Result<()> {
        self.state.lock().error.clone().map_or(Ok(()), Err)
    }

    /// Copies the rest, up to where the log is durable now; returns where that is. Later calls of
    /// [`LogCopy::copy_before`] copy nothing: behind the end nothing may come.
    ///
    /// # Errors
    /// That of an earlier step, or of this one.
    pub fn finish(&self, log: &Log) -> Result<LogPosition> {
        let mut state = self.state.lock();
        if let Some(error) = state.error.clone() {
            return Err(error);
        }
        // Under the mutex, so that nobody has copied more than this. What lies behind it is not part of the copy,
        // and may be being written.
        let end = log.position();
        debug_assert!(state.next <= end.segment);
        self.copy_complete(&mut state, end.segment)?;
        self.copy_segment(&mut state, end.segment, end.offset)?;
        state.next = u64::MAX;
        Ok(end)
    }

    fn copy_complete(&self, state: &mut State, before: u64) -> Result<()> {
        for number in self.files.numbers() {
            if (state.next..before).contains(&number) {
                self.copy_segment(state, number, u64::MAX)?;
            }
        }
        Ok(())
    }

    /// Copies the front of a segment into a file of its own, as long as the segment; durable on return, but for the
    /// name.
    fn copy_segment(&self, state: &mut State, number: u64, bytes: u64) -> Result<()> {
        let source = self.files.get(number)?;
        let name = format!("{LOG_FOLDER}/{:08}", state.made);
        let target = self
            .target
            .open(&name, OpenOptions::create_new())
            .map_err(of_target)?;
        copy_bytes(&*source, &*target, bytes)?;
        target.sync_data().map_err(of_target)?;
        state.made += 1;
        state.next = number + 1;
        Ok(())
    }
}

/// Copies the first `bytes`; zeros follow, written, because the copy's log will use the file again as one of its own.
fn copy_bytes(source: &dyn File, target: &dyn File, bytes: u64) -> Result<()> {
    let length = source.len()?;
    let end = bytes.min(length);
    let mut buffer = AlignedBuf::zeroed(COPY_BYTES.min(length) as usize)?;
    let mut at = 0;
    while at < length {
        let piece = &mut buffer[..COPY_BYTES.min(length - at) as usize];
        let copied = end.saturating_sub(at).min(piece.len() as u64) as usize;
        source.read_at(&mut piece[..copied], at)?;
        piece[copied..].fill(0);
        target.write_at(piece, at).map_err(of_target)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Reads the copied log as a recovery will: every round up to `end` must be there.
pub(super) fn read_back(target: &dyn Directory, control: &Control, end: LogPosition) -> Result<()> {
    let start = LogPosition {
        segment: control.analysis_segment,
        ..LogPosition::default()
    };
    for (from, known) in [
        (start, Verdict::default()),
        (control.checkpoint, control.known),
    ] {
        let mut reader = LogReader::open(target, from, known)?;
        while reader.next_round()?.is_some() {}
        let last = reader.ends().last().map_or(0, |verdict| verdict.last_round);
        if last + 1 != end.round {
            return Err(StorageError::Corruption {
                file: LOG_FOLDER.into(),
                page: None,
                what: "rounds of the copied log",
                expected: end.round - 1,
                found: last,
            });
        }
    }
    Ok(())
}
