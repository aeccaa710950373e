//! Where things stand in the data file: pure arithmetic.
//!
//! Layout: page 0 the file header; group `k` covers pages `1 + k*N .. 1 + (k+1)*N` with
//! `N = (page_size - 64) * 8`, and its first page is its allocation bitmap. In group 0 the
//! double-write area follows the bitmap: two halves of `1 + batch_pages` pages each.
//!
//! Layout of a bitmap page: the page header, zeroes up to byte 64, then bit `i` of the group at bit
//! `i % 8` of byte `64 + i / 8`, set while the group's page `i` is durably in use. The bits of the bitmap
//! page itself and of the double-write area stay zero: they are in use by definition.

use vellum_base::PageId;

/// Bytes before the bits of a bitmap page.
pub const BITMAP_BITS_AT: usize = 64;

/// Shape of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a page.
    pub page_size: usize,
    /// Most images in half of the double-write area.
    pub batch_pages: usize,
}

impl Geometry {
    /// Pages that one bitmap covers, its own included.
    #[inline]
    pub const fn group_pages(&self) -> u64 {
        (self.page_size as u64 - BITMAP_BITS_AT as u64) * 8
    }

    /// The bitmap page that covers `page`, and the page's bit in it.
    ///
    /// # Panics
    /// If `page` is the file header.
    #[inline]
    pub const fn bitmap_of(&self, page: PageId) -> (PageId, u64) {
        assert!(page.0 > 0, "no bitmap covers the file header");
        let index = page.0 - 1;
        (
            PageId(1 + index / self.group_pages() * self.group_pages()),
            index % self.group_pages(),
        )
    }

    /// The bitmap page of a group.
    pub const fn bitmap_page(&self, group: u64) -> PageId {
        PageId(1 + group * self.group_pages())
    }

    /// True for a bitmap page.
    pub const fn is_bitmap(&self, page: PageId) -> bool {
        page.0 > 0 && self.bitmap_of(page).1 == 0
    }

    /// Groups of a file with `pages` pages, the last one possibly short.
    pub const fn groups(&self, pages: u64) -> u64 {
        pages.saturating_sub(1).div_ceil(self.group_pages())
    }

    /// First page of a half of the double-write area.
    pub const fn double_write_half(&self, half: u64) -> PageId {
        PageId(2 + half * self.half_pages())
    }

    /// Pages of a half of the double-write area: a header and the images.
    pub const fn half_pages(&self) -> u64 {
        1 + self.batch_pages as u64
    }

    /// First page after the double-write area: the first that can be given out.
    pub const fn first_free(&self) -> PageId {
        PageId(2 + 2 * self.half_pages())
    }

    /// True for pages that are never given out and have no bit: file header, bitmaps, double-write
    /// area.
    pub const fn is_reserved(&self, page: PageId) -> bool {
        page.0 < self.first_free().0 || self.is_bitmap(page)
    }

    /// Byte offset of a page in the file.
    #[inline]
    pub const fn offset(&self, page: PageId) -> u64 {
        page.0 * self.page_size as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_bit_and_bitmaps_cover_themselves() {
        for page_size in [4096, 8192, 16384] {
            let shape = Geometry {
                page_size,
                batch_pages: 4,
            };
            let count = shape.group_pages();
            assert_eq!(shape.bitmap_of(PageId(1)), (PageId(1), 0));
            assert_eq!(shape.bitmap_of(PageId(count)), (PageId(1), count - 1));
            assert_eq!(shape.bitmap_of(PageId(count + 1)), (PageId(count + 1), 0));
            assert!(shape.is_bitmap(PageId(1)) && shape.is_bitmap(PageId(1 + 3 * count)));
            assert!(!shape.is_bitmap(PageId(0)) && !shape.is_bitmap(PageId(2)));
            assert_eq!(shape.bitmap_page(3), PageId(1 + 3 * count));
            assert_eq!((shape.groups(1), shape.groups(2)), (0, 1));
            assert_eq!((shape.groups(count + 1), shape.groups(count + 2)), (1, 2));
            assert_eq!(shape.first_free(), PageId(12));
            assert!(shape.is_reserved(PageId(11)) && !shape.is_reserved(PageId(12)));
        }
    }
}
