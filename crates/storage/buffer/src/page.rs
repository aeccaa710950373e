//! The header that every page starts with (docs/design/0001), and the checksum bound to the page id.
//!
//! Layout: `0 u32 checksum`, `4 u8 kind`, `5 u8 flags`, `6 u16 zero`, `8 u64 gsn`, `16 u64 tree`. The
//! checksum is CRC-32C seeded with the page id, over bytes 4 to the end; it is set when the page is
//! written out and means nothing in memory.
//!
//! A page of nothing but zeroes is valid and has kind [`kind::FREE`]: a place in the file that was
//! never written.

use crate::geometry::BITMAP_BITS_AT;
use crate::words::{PageRead, PageWrite};
use vellum_base::checksum::checksum;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, PageId};

/// Bytes of the header.
pub const PAGE_HEADER_BYTES: usize = 24;

/// What a page is.
pub mod kind {
    /// Free, or never written.
    pub const FREE: u8 = 0;
    /// Page 0.
    pub const FILE_HEADER: u8 = 1;
    /// A group's allocation bitmap.
    pub const BITMAP: u8 = 2;
    /// Inner node of a tree.
    pub const INNER: u8 = 3;
    /// Leaf of a tree.
    pub const LEAF: u8 = 4;
    /// Part of a value that does not fit into a leaf.
    pub const OVERFLOW: u8 = 5;
}

/// Flag bit: version data, which no redo, checkpoint or torn-write repair is for.
pub const FLAG_TEMPORARY: u8 = 1;

/// Flag bit: payloads are plain bytes, not rows.
pub const FLAG_PLAIN: u8 = 2;

/// Flag bit: a leaf with rows that hold old versions. Eviction takes other pages first and names it to whoever can write
/// those rows shorter ([`Pool::take_fat_pages`](crate::Pool::take_fat_pages)). A hint: nothing goes wrong where it is wrong.
pub const FLAG_FAT: u8 = 4;

/// Reading the header. Of an optimistic page, believe it only after validation.
pub trait PageHeader: PageRead {
    /// What the page is ([`kind`]).
    #[inline]
    fn kind(&self) -> u8 {
        self.u8_at(4)
    }

    /// The flag byte.
    #[inline]
    fn flags(&self) -> u8 {
        self.u8_at(5)
    }

    /// True for version data.
    #[inline]
    fn is_temporary(&self) -> bool {
        self.flags() & FLAG_TEMPORARY != 0
    }

    /// GSN of the last log record that changed the page.
    #[inline]
    fn gsn(&self) -> Gsn {
        Gsn(self.word(1))
    }

    /// Root of the tree that the page belongs to; zero where it belongs to none.
    #[inline]
    fn tree(&self) -> PageId {
        PageId(self.word(2))
    }
}

impl<P: PageRead + ?Sized> PageHeader for P {}

/// Writing the header.
pub trait PageHeaderMut: PageWrite {
    /// Sets kind, flags and tree; checksum and GSN become zero.
    fn set_header(&mut self, kind: u8, flags: u8, tree: PageId) {
        self.set_word(0, u64::from(kind) << 32 | u64::from(flags) << 40);
        self.set_word(1, 0);
        self.set_word(2, tree.get());
    }

    /// Sets the kind alone.
    fn set_kind(&mut self, kind: u8) {
        self.set_u8(4, kind);
    }

    /// Notes the log record that changed the page.
    #[inline]
    fn set_gsn(&mut self, gsn: Gsn) {
        self.set_word(1, gsn.get());
    }
}

impl<P: PageWrite + ?Sized> PageHeaderMut for P {}

/// Flag bits that a page of this kind may have; `None` for a kind that no page outside of page 0 has.
fn flags_known(kind: u8) -> Option<u8> {
    match kind {
        kind::LEAF => Some(FLAG_TEMPORARY | FLAG_PLAIN | FLAG_FAT),
        kind::INNER | kind::OVERFLOW => Some(FLAG_TEMPORARY | FLAG_PLAIN),
        kind::BITMAP => Some(0),
        // Whatever it was before it was freed.
        kind::FREE => Some(u8::MAX),
        _ => None,
    }
}

/// Checks what is fixed in the header of a page of any kind but the file header: bytes 6 and 7, flags, and what a bitmap
/// has before its bits. Total: any bytes give an answer. Not here: the GSN, which is compared with the log where pages are read.
///
/// # Errors
/// The first defect.
pub fn check_header<P: PageRead + ?Sized>(page: &P) -> Result<(), Misfit> {
    let expect = |what, expected: u64, found: u64| {
        if found == expected {
            return Ok(());
        }
        Err(Misfit {
            what,
            expected,
            found,
        })
    };
    let kind = page.kind();
    let Some(known) = flags_known(kind) else {
        return expect("kind of a page", kind::LEAF.into(), kind.into());
    };
    if kind == kind::FREE {
        return Ok(());
    }
    expect("bytes 6 and 7 of a page", 0, page.word(0) >> 48)?;
    expect(
        "flags of a page that have no meaning",
        0,
        (page.flags() & !known).into(),
    )?;
    if kind == kind::BITMAP {
        expect("tree of an allocation bitmap", 0, page.tree().get())?;
        for index in PAGE_HEADER_BYTES / 8..BITMAP_BITS_AT / 8 {
            let what = "bytes 24 to 64 of an allocation bitmap";
            expect(what, 0, page.word(index))?;
        }
    }
    Ok(())
}

/// The checksum that page `page` with these bytes must carry.
pub fn page_checksum(page: PageId, bytes: &[u8]) -> u32 {
    checksum(page.get(), &bytes[4..])
}

/// Sets the checksum in the bytes of a page.
pub(crate) fn seal(page: PageId, bytes: &mut [u8]) -> u32 {
    let sum = page_checksum(page, bytes);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// What is wrong with the form of a page: the check, what was expected, what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Which check failed.
    pub what: &'static str,
    /// What should have been there.
    pub expected: u64,
    /// What was there.
    pub found: u64,
}

/// Judges the form of the bytes of a page that was read from the file and whose checksum is right. Total: any bytes give an answer.
pub type PageCheck = fn(&[u8]) -> std::result::Result<(), Misfit>;

/// What the bytes of a page turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// As they were written.
    Good,
    /// Never written.
    Zero,
    /// Neither; the checksum that was expected and the one found.
    Bad(u32, u32),
}

/// Checks the bytes of a page as they came from the file.
pub(crate) fn check(page: PageId, bytes: &[u8]) -> Check {
    let expected = page_checksum(page, bytes);
    let found = stored_checksum(bytes);
    if expected == found || planted::has(Bug::ChecksumIgnored) {
        Check::Good
    } else if bytes.iter().all(|byte| *byte == 0) {
        Check::Zero
    } else {
        Check::Bad(expected, found)
    }
}

/// The checksum that stands in the bytes of a page.
pub(crate) fn stored_checksum(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("a page has a header"))
}

/// The GSN that stands in the bytes of a page.
pub(crate) fn stored_gsn(bytes: &[u8]) -> Gsn {
    Gsn(u64::from_le_bytes(
        *bytes[8..].first_chunk().expect("a page has a header"),
    ))
}
