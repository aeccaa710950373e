//! Page 0: says whose file it is and how it is laid out.
//!
//! Layout (little-endian; the checksum covers bytes 4..4096, so that it can be checked before the page size
//! is known; the rest of the page is zero):
//! ```text
//!    0 u32 checksum    4 u8 kind = 1   5 u8 flags = 0   6 u16 zero   8 u64 zero   16 u64 zero
//!   24 8 bytes "VELLUMDB"    32 u32 format version    36 u32 page size    40 u32 batch pages    44.. zero
//! ```
//!
//! Crash: written once, when the file is made; the engine makes the file known (control file) only after the first checkpoint, which
//! syncs it. It never changes, so it needs no torn-write repair.

use crate::geometry::Geometry;
use crate::{PoolConfig, page};
use vellum_base::codec::Reader;
use vellum_base::{PageId, Result, StorageError};
use vellum_io::{AlignedBuf, File};

/// Format version of the data file that this build reads and writes.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"VELLUMDB";
/// Bytes that are read before the page size is known: the smallest page.
const PREFIX: usize = 4096;

/// Writes the header of a new file.
pub(crate) fn write(file: &dyn File, shape: Geometry) -> Result<()> {
    let mut bytes = AlignedBuf::zeroed(shape.page_size)?;
    bytes[4] = page::kind::FILE_HEADER;
    bytes[24..32].copy_from_slice(MAGIC);
    bytes[32..36].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[36..40].copy_from_slice(&number(shape.page_size));
    bytes[40..44].copy_from_slice(&number(shape.batch_pages));
    page::seal(PageId::ZERO, &mut bytes[..PREFIX]);
    file.write_at(&bytes, 0)
}

fn number(value: usize) -> [u8; 4] {
    u32::try_from(value)
        .expect("checked by PoolConfig")
        .to_le_bytes()
}

/// Reads and checks the header of an existing file.
///
/// # Errors
/// `ForeignFormat` if it is not a Vellum data file of this version, `Corruption` if it was one.
pub(crate) fn read(file: &dyn File) -> Result<Geometry> {
    let foreign = |what: String| StorageError::ForeignFormat {
        file: file.name().clone(),
        what,
    };
    let length = file.len()?;
    let corrupt = |what, expected: u64, found: u64| StorageError::Corruption {
        file: file.name().clone(),
        page: Some(PageId::ZERO),
        what,
        expected,
        found,
    };
    if length < PREFIX as u64 {
        return Err(corrupt("length of the file", PREFIX as u64, length));
    }
    let mut bytes = AlignedBuf::zeroed(PREFIX)?;
    file.read_at(&mut bytes, 0)?;
    if &bytes[24..32] != MAGIC {
        return Err(foreign("not a Vellum data file".to_owned()));
    }
    let mut reader = Reader::new(&bytes[32..44]);
    let mut next = || reader.u32().expect("twelve bytes hold three numbers");
    let (version, page_size, batch_pages) = (next(), next() as usize, next() as usize);
    if version != FORMAT_VERSION {
        return Err(foreign(format!(
            "format version {version}, this build knows {FORMAT_VERSION}"
        )));
    }
    match page::check(PageId::ZERO, &bytes) {
        page::Check::Good => {}
        page::Check::Zero => return Err(foreign("an empty header".to_owned())),
        page::Check::Bad(expected, found) => {
            return Err(corrupt("checksum", expected.into(), found.into()));
        }
    }
    let used = 24..44;
    if let Some(at) = (5..PREFIX).find(|at| !used.contains(at) && bytes[*at] != 0) {
        let what = "bytes 5 to 24, and from 44 on, of the file header";
        return Err(corrupt(what, 0, bytes[at].into()));
    }
    if bytes[4] != page::kind::FILE_HEADER {
        let found = bytes[4].into();
        return Err(corrupt("kind of the file header", 1, found));
    }
    if !matches!(page_size, 4096 | 8192 | 16384) {
        return Err(corrupt("page size", 4096, page_size as u64));
    }
    if !(1..=PoolConfig::BATCH_MAX).contains(&batch_pages) {
        return Err(corrupt(
            "batch pages",
            PoolConfig::BATCH_MAX as u64,
            batch_pages as u64,
        ));
    }
    let shape = Geometry {
        page_size,
        batch_pages,
    };
    let least = shape.offset(shape.first_free());
    if length < least {
        return Err(corrupt("length of the file", least, length));
    }
    Ok(shape)
}
