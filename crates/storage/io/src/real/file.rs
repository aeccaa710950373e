//! One open file of the file system.

use super::ring::Rings;
use crate::{ALIGNMENT, AlignedBuf, File, OpenOptions, Poison, exact, is_aligned};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::fs;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use vellum_base::{Result, StorageError};

/// Entries in one vectored write; the limit of Linux.
const SLICES_MAX: usize = 1024;
/// Bytes of zeroes in one write where space cannot be reserved otherwise.
const ZEROES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct RealFile {
    pub(super) name: Arc<str>,
    pub(super) file: fs::File,
    pub(super) options: OpenOptions,
    pub(super) is_direct: bool,
    pub(super) poison: Arc<Poison>,
    /// For batches of direct reads and of scattered direct writes.
    pub(super) rings: Rings,
}

impl RealFile {
    fn error(&self, action: &'static str, source: io::Error) -> StorageError {
        StorageError::io(action, &self.name, source)
    }

    /// To be asked before every change.
    fn check_change(&self, action: &'static str) -> Result<()> {
        if self.options.read_only {
            return Err(self.error(action, io::ErrorKind::PermissionDenied.into()));
        }
        self.poison.check()
    }

    /// Checked whether or not the file got direct I/O, so that tests on any file system find a
    /// caller that would fail on others.
    fn assert_aligned(&self, bytes: &[u8], offset: u64) {
        assert!(
            !self.options.direct || is_aligned(bytes, offset),
            "direct I/O on {}: offset {offset}, {} bytes at {:p}",
            self.name,
            bytes.len(),
            bytes.as_ptr()
        );
    }

    fn write_exact(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        exact::write(bytes, offset, |bytes, offset| {
            self.file.write_at(bytes, offset)
        })
    }

    /// Writes entries that continue each other from `offset` on.
    fn write_run(&self, offset: u64, run: &[(u64, &[u8])]) -> io::Result<()> {
        if let [(offset, bytes)] = run {
            return self.write_exact(bytes, *offset);
        }
        let slices: Vec<IoSlice<'_>> = run.iter().map(|(_, bytes)| IoSlice::new(bytes)).collect();
        let written = retry_on_intr(|| rustix::io::pwritev(&self.file, &slices, offset))?;
        exact::write_rest(run, written, |bytes, offset| {
            self.write_exact(bytes, offset)
        })
    }

    /// Writes runs that lie apart, all at once. False if that cannot be had: then nothing may be taken for written.
    fn write_scattered(&self, runs: &[(u64, &[u8])]) -> io::Result<bool> {
        let Some(left_over) = self.rings.write(&self.file, runs)? else {
            return Ok(false);
        };
        for (run, done) in left_over {
            let (offset, bytes) = runs[run];
            self.write_exact(&bytes[done..], offset + done as u64)?;
        }
        Ok(true)
    }

    /// Extends the file up to `end` by writing zeroes: existing bytes must stay, so holes inside
    /// the file are left as they are.
    fn write_zeroes(&self, end: u64) -> Result<()> {
        let alignment = ALIGNMENT as u64;
        let zeroes = AlignedBuf::zeroed(ZEROES)?;
        let length = self.len()?;
        let mut at = length;
        if self.options.direct && !length.is_multiple_of(alignment) {
            at = length.next_multiple_of(alignment);
            self.set_len(at)?;
        }
        while at < end {
            let count = (end - at).min(ZEROES as u64);
            // Bounded by a constant that is an usize.
            let bytes = &zeroes[..count as usize];
            self.write_exact(bytes, at)
                .map_err(|source| self.error("allocate", source))?;
            at += count;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.assert_aligned(out, offset);
        exact::read(out, offset, |out, offset| self.file.read_at(out, offset))
            .map_err(|source| self.error("read", source))
    }

    fn read_batch(&self, runs: &mut [(u64, &mut [u8])]) -> Result<()> {
        for (offset, out) in runs.iter() {
            self.assert_aligned(out, *offset);
        }
        // Buffered reads are copies, of which one after the other is as good.
        if self.is_direct && runs.len() > 1 {
            let left_over = self
                .rings
                .read(&self.file, runs)
                .map_err(|source| self.error("read", source))?;
            if let Some(left_over) = left_over {
                for (run, done) in left_over {
                    let (offset, out) = &mut runs[run];
                    self.read_at(&mut out[done..], *offset + done as u64)?;
                }
                return Ok(());
            }
        }
        for (offset, out) in runs {
            self.read_at(out, *offset)?;
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.assert_aligned(bytes, offset);
        self.check_change("write")?;
        self.write_exact(bytes, offset)
            .map_err(|source| self.error("write", source))
    }

    fn write_batch(&self, runs: &[(u64, &[u8])]) -> Result<()> {
        self.check_change("write")?;
        for &(offset, bytes) in runs {
            self.assert_aligned(bytes, offset);
        }
        let apart =
            |pair: &[(u64, &[u8])]| pair[0].0.wrapping_add(pair[0].1.len() as u64) != pair[1].0;
        // Buffered writes are copies, and what continues each other is one call: both gain nothing.
        if self.is_direct && runs.windows(2).any(apart) {
            let written = self
                .write_scattered(runs)
                .map_err(|source| self.error("write", source))?;
            if written {
                return Ok(());
            }
        }
        let mut rest = runs;
        while let Some(&(offset, _)) = rest.first() {
            let mut end = offset;
            let mut count = 0;
            for &(offset, bytes) in rest.iter().take(SLICES_MAX) {
                if offset != end {
                    break;
                }
                end += bytes.len() as u64;
                count += 1;
            }
            let (run, later) = rest.split_at(count);
            self.write_run(offset, run)
                .map_err(|source| self.error("write", source))?;
            rest = later;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.poison.check()?;
        self.poison.after_sync(&self.name, self.file.sync_data())
    }

    fn len(&self) -> Result<u64> {
        let metadata = self
            .file
            .metadata()
            .map_err(|source| self.error("stat", source))?;
        Ok(metadata.len())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.check_change("set length")?;
        self.file
            .set_len(length)
            .map_err(|source| self.error("set length", source))
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<()> {
        self.check_change("allocate")?;
        if length == 0 {
            return Ok(());
        }
        let Some(end) = offset.checked_add(length) else {
            return Err(self.error("allocate", io::ErrorKind::FileTooLarge.into()));
        };
        let empty = FallocateFlags::empty();
        match retry_on_intr(|| fallocate(&self.file, empty, offset, length)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeroes(end),
            Err(error) => Err(self.error("allocate", error.into())),
        }
    }

    fn is_direct(&self) -> bool {
        self.is_direct
    }
}

#[cfg(test)]
impl RealFile {
    /// The fallback of `allocate`, which few file systems still need.
    pub(super) fn extend_by_zeroes(&self, end: u64) -> Result<()> {
        self.write_zeroes(end)
    }
}
