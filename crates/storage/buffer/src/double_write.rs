//! The double-write area: how a page that was torn by a power cut is put right.
//!
//! Layout: two halves of `1 + batch_pages` pages (geometry.rs). A half's first page, little-endian:
//! ```text
//!    0 u32 checksum (of the page, seeded with its id)    4..24 zero    24 8 bytes "VELLUMDW"
//!   32 u64 number of the batch    40 u32 images    44..64 zero
//!   64 for each image: u64 page, u32 its checksum
//! ```
//! and then the images, as they go to their places.
//!
//! Invariants:
//! - D1 Batch n is written to half `n % 2` and synced before any of its pages is written in place.
//! - D2 Half `n % 2` is overwritten by batch n+2 only after the sync of batch n+1, which came after
//!   batch n's writes in place: those are durable by then. If they failed, they are repeated
//!   before anything else is written. So a page that can be torn has a whole image in the area.
//! - D3 An image counts only if the header is whole, the image is whole, and its checksum is the one in the
//!   header: a header of batch n+2 over images of batch n shows nothing.
//! - D4 The area's newest image of a page is the newest that was ever begun to be written in place
//!   as a durable page: older ones are overwritten first (D2).
//! - D5 What is in the file under a page's id is one of: all changes up to its GSN; a later life of
//!   the page, whose GSN is above every record of the earlier one; torn version data, which
//!   redo steps over, or a torn page of a load that nothing names. Never a life that lacks changes which a completed checkpoint claims: a
//!   page that is used again while changes of its last life were not yet written is *owed*, that is
//!   written like a durable page by the next checkpoint or eviction, or by [`Pool::write_unnamed`]; and truncation of the file
//!   writes the pages that it cuts off, so that an image in the area is never behind them.
//! - D6 Repair puts an image in place only after it is durable itself. A process that was killed between the write of a half
//!   and its sync has left the half to the kernel alone: its images can be read, and a power cut while they are put in place
//!   could tear a page that was whole, and its only image.
//!
//! Crash, by where it happens:
//! - while a half is written: nothing of the batch is in place; the half is ignored or its images are
//!   what is going to be written anyway.
//! - while pages are written in place: torn pages are restored, pages not yet written too.
//! - during repair: repair writes what it found in the area, which stays as it is: it is repeated.
//! - version data in place without double write: D5, [`Pool::redo`]. Leaves of a load, before anything names them: the same.
//!
//! Cost: every durable page but a load's new ones is written twice, the first time sequentially; one sync a batch. The alternative,
//! full-page images in the log, is counted beside it ([`crate::PoolStatistics`]).

use crate::config::count;
use crate::geometry::Geometry;
use crate::page::{self, Check};
use crate::pool::Pool;
use std::collections::BTreeMap;
use vellum_base::codec::Reader;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, PageId, Result, StorageError};
use vellum_io::{AlignedBuf, File};

const MAGIC: &[u8; 8] = b"VELLUMDW";
/// No file has seen so many batches: a number at or above it is damage, whatever the checksum says.
const BATCH_NUMBER_MAX: u64 = 1 << 62;
const ENTRIES_AT: usize = 64;
const ENTRY_BYTES: usize = 12;
const _: () = assert!(ENTRIES_AT + ENTRY_BYTES * crate::PoolConfig::BATCH_MAX <= 4096);

/// The header of a half.
#[derive(Debug, PartialEq, Eq)]
struct Half {
    batch: u64,
    images: Vec<(PageId, u32)>,
}

/// Composes the header page of a half.
pub(crate) fn compose(
    shape: Geometry,
    batch: u64,
    images: impl ExactSizeIterator<Item = (PageId, u32)>,
    bytes: &mut [u8],
) {
    debug_assert!(images.len() <= shape.batch_pages && bytes.len() == shape.page_size);
    bytes.fill(0);
    bytes[24..32].copy_from_slice(MAGIC);
    bytes[32..40].copy_from_slice(&batch.to_le_bytes());
    let number = u32::try_from(images.len()).expect("at most BATCH_MAX");
    bytes[40..44].copy_from_slice(&number.to_le_bytes());
    for ((page, sum), entry) in images.zip(bytes[ENTRIES_AT..].chunks_exact_mut(ENTRY_BYTES)) {
        entry[..8].copy_from_slice(&page.get().to_le_bytes());
        entry[8..].copy_from_slice(&sum.to_le_bytes());
    }
    page::seal(shape.double_write_half(batch % 2), bytes);
}

/// Reads the header of a half; `None` if it is not whole.
fn read_half(file: &dyn File, shape: Geometry, half: u64) -> Result<Option<Half>> {
    let at = shape.double_write_half(half);
    let mut bytes = AlignedBuf::zeroed(shape.page_size)?;
    file.read_at(&mut bytes, shape.offset(at))?;
    if page::check(at, &bytes) != Check::Good || &bytes[24..32] != MAGIC {
        return Ok(None);
    }
    let found = decode(&bytes, shape).filter(|found| found.batch % 2 == half);
    if let Some(Half { batch, .. }) = &found
        && *batch >= BATCH_NUMBER_MAX
    {
        return Err(StorageError::Corruption {
            file: file.name().clone(),
            page: Some(at),
            what: "number of a batch",
            expected: BATCH_NUMBER_MAX,
            found: *batch,
        });
    }
    Ok(found)
}

fn decode(bytes: &[u8], shape: Geometry) -> Option<Half> {
    let mut reader = Reader::new(bytes.get(32..44)?);
    let (batch, number) = (reader.u64()?, reader.u32()? as usize);
    if number > shape.batch_pages {
        return None;
    }
    let mut reader = Reader::new(bytes.get(ENTRIES_AT..)?);
    let images = (0..number)
        .map(|_| Some((PageId(reader.u64()?), reader.u32()?)))
        .collect::<Option<_>>()?;
    Some(Half { batch, images })
}

/// The number that the next batch gets.
pub(crate) fn next_batch(file: &dyn File, shape: Geometry) -> Result<u64> {
    let mut next = 0;
    for half in 0..2 {
        if let Some(found) = read_half(file, shape, half)? {
            next = next.max(found.batch + 1);
        }
    }
    Ok(next)
}

/// The image of a page that counts.
struct Image {
    gsn: Gsn,
    batch: u64,
    bytes: AlignedBuf,
}

impl Pool {
    /// Restores torn pages from the double-write area. For an open after a crash, before any page is
    /// accessed; repeating it does no harm. Returns how many pages were restored. Durable on return.
    ///
    /// # Errors
    /// I/O errors. A page without an image that counts is not looked at: reading it tells.
    pub fn repair_torn_pages(&self) -> Result<u64> {
        debug_assert_eq!(
            self.free_frames(),
            self.frames(),
            "repair comes before any access"
        );
        if planted::has(Bug::TornPagesKept) {
            return Ok(0);
        }
        let mut best: BTreeMap<PageId, Image> = BTreeMap::new();
        for half in 0..2 {
            let Some(found) = read_half(&*self.file, self.shape, half)? else {
                continue;
            };
            for (index, &(page, sum)) in found.images.iter().enumerate() {
                // Beyond the end: cut off since. The area and the file header are never images.
                let restorable = page.get() < self.file_pages()
                    && (!self.shape.is_reserved(page) || self.shape.is_bitmap(page));
                if !restorable {
                    continue;
                }
                let at = PageId(self.shape.double_write_half(half).get() + 1 + index as u64);
                let mut bytes = AlignedBuf::zeroed(self.shape.page_size)?;
                self.file.read_at(&mut bytes, self.shape.offset(at))?;
                let whole = page::check(page, &bytes) == Check::Good
                    && page::stored_checksum(&bytes) == sum;
                let (gsn, batch) = (page::stored_gsn(&bytes), found.batch);
                let newer = best
                    .get(&page)
                    .is_none_or(|known| (known.gsn, known.batch) < (gsn, batch));
                if whole && newer {
                    best.insert(page, Image { gsn, batch, bytes });
                }
            }
        }
        // D6: what was read may be in the kernel's memory only.
        self.file.sync_data()?;
        let mut repaired = 0;
        let mut in_place = AlignedBuf::zeroed(self.shape.page_size)?;
        for (page, image) in best {
            let offset = self.shape.offset(page);
            self.file.read_at(&mut in_place, offset)?;
            let good = page::check(page, &in_place) == Check::Good;
            if !good || page::stored_gsn(&in_place) < image.gsn {
                self.file.write_at(&image.bytes, offset)?;
                repaired += 1;
            }
        }
        // Also without repairs: what the last process wrote in place must be durable before its
        // images are overwritten (D2).
        self.file.sync_data()?;
        count(&self.counters.repaired, repaired);
        Ok(repaired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_of_a_half_is_read_back() {
        for page_size in [4096, 8192, 16384] {
            let shape = Geometry {
                page_size,
                batch_pages: 256,
            };
            let images: Vec<_> = (0..256).map(|i| (PageId(1 << 40 | i), i as u32)).collect();
            let mut bytes = vec![0; page_size];
            compose(shape, 7, images.iter().copied(), &mut bytes);
            assert_eq!(page::check(shape.double_write_half(1), &bytes), Check::Good);
            assert_eq!(decode(&bytes, shape), Some(Half { batch: 7, images }));
            bytes[40..44].copy_from_slice(&257_u32.to_le_bytes());
            assert_eq!(decode(&bytes, shape), None);
        }
    }

    #[test]
    fn regress_batch_with_an_impossible_number_is_damage() {
        use vellum_io::{Directory, MemoryDirectory, OpenOptions};
        let shape = Geometry {
            page_size: 4096,
            batch_pages: 4,
        };
        let directory = MemoryDirectory::new();
        let file = directory.open("data", OpenOptions::create()).unwrap();
        file.allocate(0, shape.offset(shape.first_free())).unwrap();
        let mut bytes = AlignedBuf::zeroed(4096).unwrap();
        compose(shape, u64::MAX, std::iter::empty(), &mut bytes);
        let at = shape.double_write_half(1);
        file.write_at(&bytes, shape.offset(at)).unwrap();
        let next = next_batch(&*file, shape);
        assert!(
            matches!(next, Err(StorageError::Corruption { .. })),
            "{next:?}"
        );
    }
}
