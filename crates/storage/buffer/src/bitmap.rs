//! Bits of an allocation bitmap page (layout: geometry.rs). The log records that change them are
//! `btree`'s: an allocation is part of the structure change that uses the page.

use crate::geometry::BITMAP_BITS_AT;
use crate::page::{PageHeader, PageHeaderMut, kind};
use crate::words::{PageRead, PageWrite};

/// Words before the bits.
const FIRST_WORD: usize = BITMAP_BITS_AT / 8;

/// Where a bit lies: number of the word in the page, mask.
fn position(size: usize, bit: u64) -> (usize, u64) {
    let index = FIRST_WORD + usize::try_from(bit / 64).unwrap_or(usize::MAX / 2);
    assert!(index < size / 8, "bit {bit} is outside the bitmap page");
    (index, 1 << (bit % 64))
}

/// True if the page of this bit is durably in use.
///
/// # Panics
/// If `bit` is not one of the page ([`crate::Geometry::bitmap_of`] gives those).
pub fn is_set(page: &impl PageRead, bit: u64) -> bool {
    let (index, mask) = position(page.size(), bit);
    page.word(index) & mask != 0
}

/// Sets or clears a bit; a page that was never written becomes a bitmap page. Returns what it was
/// before. Idempotent, as redo wants it.
///
/// # Panics
/// As [`is_set`].
pub fn set(page: &mut impl PageWrite, bit: u64, value: bool) -> bool {
    let (index, mask) = position(page.size(), bit);
    if page.kind() == kind::FREE {
        page.set_kind(kind::BITMAP);
    }
    let word = page.word(index);
    page.set_word(index, if value { word | mask } else { word & !mask });
    word & mask != 0
}

/// The bits of a page, 64 at a time, in order.
pub(crate) fn words(page: &impl PageRead) -> impl Iterator<Item = u64> {
    (FIRST_WORD..page.size() / 8).map(|index| page.word(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::PageBuf;

    #[test]
    fn every_bit_of_the_page_is_its_own() {
        let mut page = PageBuf::new(4096);
        let bits = (4096 - 64) * 8;
        for bit in (0..bits).step_by(7).chain([bits - 1]) {
            assert!(!set(&mut page, bit, true), "bit {bit} was set by another");
            assert!(is_set(&page, bit));
        }
        assert_eq!(page.kind(), kind::BITMAP);
        assert!(set(&mut page, 7, false) && !is_set(&page, 7));
        assert!(is_set(&page, 0) && is_set(&page, 14));
        assert_eq!(page.as_bytes()[64] & 1, 1, "bit 0 is the lowest of byte 64");
    }

    #[test]
    #[should_panic(expected = "outside the bitmap page")]
    fn bit_of_the_next_group_panics() {
        is_set(&PageBuf::new(4096), (4096 - 64) * 8);
    }
}
