//! A file of the log: rounds are written past the page cache where the file system allows it, and read through it.
//!
//! Overwriting and fdatasync of one block takes about three quarters of the time when the kernel has no copy to write
//! back (docs/design/0002-io.md); rounds are whole aligned blocks. Records are read back at any offset, seldom, and the
//! kernel drops what it has cached of a range that is written directly.

use std::sync::Arc;
use vellum_base::Result;
use vellum_io::{Directory, File, OpenOptions};

/// One file, opened twice.
#[derive(Debug)]
struct SegmentFile {
    direct: Arc<dyn File>,
    cached: Arc<dyn File>,
}

/// Opens a file of the log for writing rounds and reading records. `options`: as for the reading side.
pub(crate) fn open(dir: &dyn Directory, name: &str, options: OpenOptions) -> Result<Arc<dyn File>> {
    let cached = dir.open(name, options)?;
    if options.read_only {
        return Ok(cached);
    }
    let direct = dir.open(name, OpenOptions::existing().direct())?;
    Ok(Arc::new(SegmentFile { direct, cached }))
}

impl File for SegmentFile {
    fn name(&self) -> &Arc<str> {
        self.cached.name()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.cached.read_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.direct.write_at(bytes, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.direct.sync_data()
    }

    fn len(&self) -> Result<u64> {
        self.cached.len()
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.cached.set_len(length)
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<()> {
        self.cached.allocate(offset, length)
    }

    fn is_direct(&self) -> bool {
        self.direct.is_direct()
    }
}
