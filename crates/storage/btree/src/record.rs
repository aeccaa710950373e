//! Log records of the tree: kinds 16..=63. Encoding is here and in whoever appends; decoding is
//! here; applying them is `redo`.
//!
//! One record changes one page; all records of one structure change share a GSN, so a change
//! touches a page with at most one record.
//!
//! Layout of the redo bytes (little-endian):
//!
//! | kind | name | bytes |
//! | --- | --- | --- |
//! | 16 | insert | key length u16, key, row |
//! | 17 | replace | key length u16, key, row |
//! | 18 | patch | key length u16, key, { offset u16, length u16, bytes }* into the reduced row |
//! | 19 | remove | key length u16, key |
//! | 20 | image | low u16, high u16, page bytes 4..low, page bytes high.. |
//! | 21 | keep below | separator: rows below it stay, it becomes the upper fence |
//! | 22 | keep from | separator: rows from it on stay, it becomes the lower fence |
//! | 23 | insert separator | left child u64, right child u64, separator |
//! | 24 | remove separator | child u64 that serves both ranges, separator |
//! | 25 | bitmap | { bit u32 with the value in bit 31 }* |
//! | 26 | link chain | page id u64 of the next page of an overflow chain |
//! | 27 | trim | 0: remove rows below, 1: from; u8, key |
//! | 28 | clean | { length u16, key suffix }*: rows that a cleaner removed |
//!
//! Rows are in reduced form (`RowFormat`); images hold rows as they were in the page, and redo
//! reduces them.
//!
//! Invariants:
//! - L1 Decoding is total: any bytes give an operation or `None`.

use vellum_base::PageId;
use vellum_base::codec::Reader;
use vellum_buffer::{PageBuf, PageRead, PageWrite};

/// A row was added.
pub const INSERT: u8 = 16;
/// A row's payload was replaced.
pub const REPLACE: u8 = 17;
/// Bytes of a row's payload were overwritten.
pub const PATCH: u8 = 18;
/// A row was removed.
pub const REMOVE: u8 = 19;
/// A page was written as a whole.
pub const IMAGE: u8 = 20;
/// A page lost its upper rows and got a new upper fence.
pub const KEEP_BELOW: u8 = 21;
/// A page lost its lower rows and got a new lower fence.
pub const KEEP_FROM: u8 = 22;
/// An inner page got a separator.
pub const INSERT_SEPARATOR: u8 = 23;
/// An inner page lost a separator.
pub const REMOVE_SEPARATOR: u8 = 24;
/// Allocation bits changed.
pub const BITMAP: u8 = 25;
/// A page of an overflow chain got a successor.
pub const LINK: u8 = 26;
/// Rows on one side of a key were removed.
pub const TRIM: u8 = 27;
/// Rows were removed by a cleaner.
pub const CLEAN: u8 = 28;

/// Every kind that [`Operation::decode`] knows.
pub const KINDS: [u8; 13] = [
    INSERT,
    REPLACE,
    PATCH,
    REMOVE,
    IMAGE,
    KEEP_BELOW,
    KEEP_FROM,
    INSERT_SEPARATOR,
    REMOVE_SEPARATOR,
    BITMAP,
    LINK,
    TRIM,
    CLEAN,
];

/// In a bitmap record: the page is in use from now on.
pub const BIT_SET: u32 = 1 << 31;

/// Which rows a trim removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Rows below the key.
    Below,
    /// Rows from the key on.
    From,
}

/// Decoded redo bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation<'r> {
    /// [`INSERT`]: key, row.
    Insert(&'r [u8], &'r [u8]),
    /// [`REPLACE`]: key, row.
    Replace(&'r [u8], &'r [u8]),
    /// [`PATCH`]: key, edits.
    Patch(&'r [u8], Edits<'r>),
    /// [`REMOVE`]: key.
    Remove(&'r [u8]),
    /// [`IMAGE`].
    Image(Image<'r>),
    /// [`KEEP_BELOW`]: separator.
    KeepBelow(&'r [u8]),
    /// [`KEEP_FROM`]: separator.
    KeepFrom(&'r [u8]),
    /// [`INSERT_SEPARATOR`].
    InsertSeparator {
        /// Child for keys below.
        left: PageId,
        /// Child for keys from the separator on.
        right: PageId,
        /// The key between.
        separator: &'r [u8],
    },
    /// [`REMOVE_SEPARATOR`].
    RemoveSeparator {
        /// Child that takes both ranges.
        child: PageId,
        /// The key between.
        separator: &'r [u8],
    },
    /// [`BITMAP`].
    Bitmap(Bits<'r>),
    /// [`LINK`].
    Link(PageId),
    /// [`TRIM`].
    Trim(Side, &'r [u8]),
    /// [`CLEAN`].
    Clean(Suffixes<'r>),
}

impl<'r> Operation<'r> {
    /// Decodes the redo bytes of a record. `None` if they are not of that kind.
    pub fn decode(kind: u8, redo: &'r [u8]) -> Option<Self> {
        let mut reader = Reader::new(redo);
        let key = |reader: &mut Reader<'r>| {
            let length = reader.u16()?;
            reader.bytes(length.into())
        };
        Some(match kind {
            INSERT => Self::Insert(key(&mut reader)?, reader.rest()),
            REPLACE => Self::Replace(key(&mut reader)?, reader.rest()),
            PATCH => Self::Patch(key(&mut reader)?, Edits::checked(reader.rest())?),
            REMOVE => {
                let key = key(&mut reader)?;
                if !reader.rest().is_empty() {
                    return None;
                }
                Self::Remove(key)
            }
            IMAGE => Self::Image(Image::decode(&mut reader)?),
            KEEP_BELOW => Self::KeepBelow(redo),
            KEEP_FROM => Self::KeepFrom(redo),
            INSERT_SEPARATOR => Self::InsertSeparator {
                left: PageId(reader.u64()?),
                right: PageId(reader.u64()?),
                separator: reader.rest(),
            },
            REMOVE_SEPARATOR => Self::RemoveSeparator {
                child: PageId(reader.u64()?),
                separator: reader.rest(),
            },
            BITMAP if redo.len().is_multiple_of(4) => Self::Bitmap(Bits(redo)),
            LINK if redo.len() == 8 => Self::Link(PageId(reader.u64()?)),
            TRIM => {
                let side = match reader.u8()? {
                    0 => Side::Below,
                    1 => Side::From,
                    _ => return None,
                };
                Self::Trim(side, reader.rest())
            }
            CLEAN => Self::Clean(Suffixes::checked(redo)?),
            _ => return None,
        })
    }
}

/// Edits of a patch record: `(offset, bytes)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edits<'r>(&'r [u8]);

impl<'r> Edits<'r> {
    fn checked(bytes: &'r [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            reader.u16()?;
            let length = reader.u16()?;
            reader.bytes(length.into())?;
        }
        Some(Self(bytes))
    }
}

impl<'r> Iterator for Edits<'r> {
    type Item = (usize, &'r [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.0);
        let (offset, length) = (reader.u16()?, reader.u16()?);
        let bytes = reader.bytes(length.into())?;
        self.0 = reader.rest();
        Some((offset.into(), bytes))
    }
}

/// Changes of a bitmap record: `(bit, in use)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits<'r>(&'r [u8]);

impl Iterator for Bits<'_> {
    type Item = (usize, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, tail) = self.0.split_first_chunk::<4>()?;
        self.0 = tail;
        let word = u32::from_le_bytes(*head);
        Some(((word & !BIT_SET) as usize, word & BIT_SET != 0))
    }
}

/// Key suffixes of a clean record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suffixes<'r>(&'r [u8]);

impl<'r> Suffixes<'r> {
    fn checked(bytes: &'r [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            let length = reader.u16()?;
            reader.bytes(length.into())?;
        }
        Some(Self(bytes))
    }
}

impl<'r> Iterator for Suffixes<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.0);
        let length = reader.u16()?;
        let bytes = reader.bytes(length.into())?;
        self.0 = reader.rest();
        Some(bytes)
    }
}

/// A page without its free middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'r> {
    low: &'r [u8],
    high: &'r [u8],
}

/// First byte of a page that an image holds: the checksum is not part of it.
const IMAGE_FROM: usize = 4;

impl<'r> Image<'r> {
    fn decode(reader: &mut Reader<'r>) -> Option<Self> {
        let (low, high) = (usize::from(reader.u16()?), usize::from(reader.u16()?));
        let rest = reader.rest();
        if low < IMAGE_FROM || high < low {
            return None;
        }
        let (low, high) = rest.split_at_checked(low - IMAGE_FROM)?;
        Some(Self { low, high })
    }

    /// Writes the page. False if the image is of another page size.
    pub fn restore(&self, page: &mut PageBuf) -> bool {
        let size = page.size();
        if IMAGE_FROM + self.low.len() + self.high.len() > size {
            return false;
        }
        page.clear();
        page.write(IMAGE_FROM, self.low);
        page.write(size - self.high.len(), self.high);
        true
    }
}

/// The four parts that make an image of `page` from what lies below `low` and from `high` on.
pub(crate) struct ImageParts<'p> {
    bounds: [u8; 4],
    low: &'p [u8],
    high: &'p [u8],
}

impl<'p> ImageParts<'p> {
    pub(crate) fn new(page: &'p PageBuf, low: usize, high: usize) -> Self {
        let mut bounds = [0; 4];
        bounds[..2].copy_from_slice(&u16::try_from(low).expect("inside a page").to_le_bytes());
        bounds[2..].copy_from_slice(&u16::try_from(high).expect("inside a page").to_le_bytes());
        let bytes = page.as_bytes();
        Self {
            bounds,
            low: &bytes[IMAGE_FROM..low],
            high: &bytes[high..],
        }
    }

    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        [&self.bounds, self.low, self.high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::codec::Put;
    use vellum_base::random::Random;

    #[test]
    fn image_restores_all_but_checksum_and_free_middle() {
        let mut page = PageBuf::new(4096);
        for offset in 0..4096 {
            page.set_u8(offset, offset as u8 | 1);
        }
        let parts = ImageParts::new(&page, 100, 4000);
        let bytes = parts.parts().concat();
        let Some(Operation::Image(image)) = Operation::decode(IMAGE, &bytes) else {
            panic!("an image")
        };
        let mut restored = PageBuf::new(4096);
        restored.set_u8(2000, 9);
        assert!(image.restore(&mut restored));
        for offset in 0..4096 {
            let kept = (4..100).contains(&offset) || offset >= 4000;
            assert_eq!(
                restored.u8_at(offset),
                if kept { page.u8_at(offset) } else { 0 }
            );
        }
        assert!(!image.restore(&mut PageBuf::new(128)), "another page size");
    }

    #[test]
    fn operations_read_back() {
        let mut bytes = Vec::new();
        bytes.put_u16(3);
        bytes.put(b"key");
        bytes.put_u16(7);
        bytes.put_u16(2);
        bytes.put(b"xy");
        let Some(Operation::Patch(key, mut edits)) = Operation::decode(PATCH, &bytes) else {
            panic!("a patch")
        };
        assert_eq!(
            (key, edits.next(), edits.next()),
            (&b"key"[..], Some((7, &b"xy"[..])), None)
        );
        assert_eq!(Operation::decode(REMOVE, &bytes), None, "trailing bytes");
        assert_eq!(
            Operation::decode(REMOVE, &bytes[..5]),
            Some(Operation::Remove(b"key"))
        );
        assert_eq!(Operation::decode(40, b""), None);
    }

    #[test]
    fn prop_any_bytes_decode_or_are_refused() {
        let seed = crate::testing::seed("prop_any_bytes_decode_or_are_refused");
        let mut random = Random::new(seed);
        let mut page = PageBuf::new(4096);
        for _ in 0..20_000 {
            let mut bytes = vec![0; random.below(64) as usize];
            random.fill(&mut bytes);
            // Small length fields, so that decoding goes further than the first check.
            for at in (0..bytes.len()).step_by(2).skip(1).step_by(2) {
                bytes[at] = 0;
            }
            let kind = random.between(10, 64) as u8;
            let operation = Operation::decode(kind, &bytes);
            assert!(operation.is_none() || KINDS.contains(&kind), "{kind}");
            match operation {
                Some(Operation::Patch(_, edits)) => assert!(edits.count() <= bytes.len()),
                Some(Operation::Bitmap(bits)) => assert_eq!(bits.count() * 4, bytes.len()),
                Some(Operation::Clean(suffixes)) => assert!(suffixes.count() <= bytes.len()),
                Some(Operation::Image(image)) => {
                    image.restore(&mut page);
                }
                _ => {}
            }
        }
    }
}
