//! Files for what does not fit into memory and is no operator's: rows that a client has yet to fetch, entries of an index that is made.

use crate::engine::Engine;
use datafusion::execution::disk_manager::DiskManager;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

/// How much all temporary files may take together: those here, and those of operators, whose manager counts its own and is told what is left.
///
/// Concurrency: the manager is told under the lock, so that what it knows is of the last change.
#[derive(Debug)]
pub(crate) struct Room {
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    bytes_max: u64,
    /// Bytes of the files here.
    written: u64,
}

impl Counts {
    /// What operators may take.
    fn left(&self) -> u64 {
        match self.bytes_max {
            u64::MAX => u64::MAX,
            most => most.saturating_sub(self.written),
        }
    }

    fn tell(&self, disks: &DiskManager) {
        // Fails where nothing may be spilled.
        let _ = disks.set_max_temp_directory_size(self.left());
    }
}

impl Room {
    pub fn without_end() -> Self {
        let counts = Counts {
            bytes_max: u64::MAX,
            written: 0,
        };
        Self {
            counts: Mutex::new(counts),
        }
    }

    pub fn limit(&self, bytes_max: u64) {
        self.counts().bytes_max = bytes_max;
    }

    /// What operators may take.
    pub fn left(&self) -> u64 {
        self.counts().left()
    }

    fn take(&self, bytes: u64, disks: &DiskManager) -> io::Result<()> {
        let mut counts = self.counts();
        let written = counts.written.saturating_add(bytes);
        if written.saturating_add(disks.used_disk_space()) > counts.bytes_max {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        counts.written = written;
        counts.tell(disks);
        Ok(())
    }

    fn give_back(&self, bytes: u64, disks: &DiskManager) {
        let mut counts = self.counts();
        debug_assert!(counts.written >= bytes, "they were taken");
        counts.written = counts.written.saturating_sub(bytes);
        counts.tell(disks);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that goes when it is dropped. What a killed process leaves lies in the directory for spills, which is emptied before it is used.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile,
    length: u64,
    room: Arc<Room>,
    disks: Arc<DiskManager>,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        self.room.give_back(self.length, &self.disks);
    }
}

impl TemporaryFile {
    /// Puts bytes behind those that are there, and returns where they begin. Nothing is synced.
    ///
    /// # Errors
    /// Those of the operating system, and [`io::ErrorKind::QuotaExceeded`] where temporary files take what they may; the bytes are not there then, as far as later
    /// calls go.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let (at, length) = (self.length, bytes.len() as u64);
        self.room.take(length, &self.disks)?;
        // The file without its name: errors are told to clients, whom the server's directories do not concern.
        let file = self.file.as_file_mut();
        let written = file.seek(SeekFrom::Start(at));
        if let Err(error) = written.and_then(|_| file.write_all(bytes)) {
            self.room.give_back(length, &self.disks);
            return Err(error);
        }
        self.length += length;
        Ok(at)
    }

    /// Reads as many bytes from `at` on as `into` has room for.
    ///
    /// # Errors
    /// Those of the operating system, also if there are not so many.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let file = self.file.as_file_mut();
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)
    }
}

impl Engine {
    /// A new file beside those of queries; `None` where nothing may be spilled.
    ///
    /// # Errors
    /// What the system says.
    pub fn temporary_file(&self) -> io::Result<Option<TemporaryFile>> {
        let Some(directory) = self.spill_directory().map_err(io::Error::other)? else {
            return Ok(None);
        };
        // The system's quota, which has no number here, is not what temporary files may take.
        let file = NamedTempFile::new_in(directory).map_err(|error| match error.kind() {
            io::ErrorKind::QuotaExceeded => io::ErrorKind::StorageFull,
            kind => kind,
        })?;
        let (room, disks) = self.room().map_err(io::Error::other)?;
        Ok(Some(TemporaryFile {
            file,
            length: 0,
            room,
            disks,
        }))
    }
}
