//! Files for what does not fit into memory and is no operator's: rows that a client has yet to fetch, entries of an index that is made.

use crate::engine::Engine;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tempfile::NamedTempFile;

/// A file that goes when it is dropped. What a killed process leaves lies in the directory for spills, which is emptied before it is used.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile,
    length: u64,
}

impl TemporaryFile {
    /// Puts bytes behind those that are there, and returns where they begin. Nothing is synced.
    ///
    /// # Errors
    /// Those of the operating system; the bytes are not there then, as far as later calls go.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.length;
        // The file without its name: errors are told to clients, whom the server's directories do not concern.
        let file = self.file.as_file_mut();
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)?;
        self.length += bytes.len() as u64;
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
        let file = NamedTempFile::new_in(directory).map_err(|error| error.kind())?;
        Ok(Some(TemporaryFile { file, length: 0 }))
    }
}
