//! Rows of eight-byte keys and values of one size, or of sizes that updates change: point reads, updates, read-modify-writes, bulk
//! loads, scans of all rows and of ranges.
//!
//! Layout of a value: `0 u64 key` (little-endian), `8 u64 counter` (how often it was updated), then
//! bytes that follow from both; shorter values are a prefix of that. So whoever reads a row can
//! tell whether it is the right one, and a sum of the counters tells whether an update was lost. Sizes that change follow from both, too.

mod client;
mod load;
mod read;
#[cfg(test)]
mod tests;

pub use client::{Client, Mix};
pub use load::{Order, load};
pub use read::{Scanned, scan, scan_range, shape, verify};

use crate::engine::{Table, TableSpec};
use std::ops::RangeInclusive;

/// The rows.
pub const ROWS: Table = Table::at(0);
/// One row that an idle writer keeps locked; nobody else touches it.
pub const IDLE: Table = Table::at(1);
/// All tables, in the order of their positions.
pub const TABLES: &[TableSpec] = &[
    TableSpec {
        table: ROWS,
        name: "kv_rows",
        is_queue: false,
    },
    TableSpec {
        table: IDLE,
        name: "kv_idle",
        is_queue: false,
    },
];

/// Key of row `id`.
#[inline]
pub fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// Writes the value of row `id` after `counter` updates over `value`, keeping its length.
#[inline]
pub fn write_value(value: &mut [u8], id: u64, counter: u64) {
    let (first, rest) = value.split_at_mut(value.len().min(8));
    first.copy_from_slice(&id.to_le_bytes()[..first.len()]);
    let (second, rest) = rest.split_at_mut(rest.len().min(8));
    second.copy_from_slice(&counter.to_le_bytes()[..second.len()]);
    // Cheap, and different for every row and every update.
    let fill = (id ^ counter.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in rest.chunks_mut(8) {
        let length = chunk.len();
        chunk.copy_from_slice(&fill.to_le_bytes()[..length]);
    }
}

/// How often a value was updated; zero where it is too short to tell.
#[inline]
pub fn counter(value: &[u8]) -> u64 {
    match value.get(8..16) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        None => 0,
    }
}

/// Bytes of the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    least: usize,
    /// Bytes of the longest ones, and of those that were loaded.
    most: usize,
}

impl Sizes {
    /// Sizes in this range; each update draws one.
    pub fn within(sizes: &RangeInclusive<usize>) -> Self {
        Self {
            least: *sizes.start(),
            most: *sizes.end(),
        }
    }

    /// Updates change them.
    pub fn vary(&self) -> bool {
        self.least < self.most
    }

    /// Bytes of the value of row `id` after `counter` updates.
    #[inline]
    pub fn of(&self, id: u64, counter: u64) -> usize {
        if counter == 0 || !self.vary() {
            return self.most;
        }
        let mixed = (id ^ counter.rotate_left(32)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        let sizes = (self.most - self.least + 1) as u64;
        self.least + (mixed % sizes) as usize
    }
}

impl From<usize> for Sizes {
    fn from(size: usize) -> Self {
        Self::within(&(size..=size))
    }
}

/// True if `value` is what [`write_value`] wrote for row `id`, of a size that it has after so many updates.
pub fn is_value(value: &[u8], id: u64, sizes: impl Into<Sizes>) -> bool {
    let (counter, size) = (counter(value), value.len());
    if size != sizes.into().of(id, counter) {
        return false;
    }
    let fill = (id ^ counter.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let same = |part: &[u8], number: u64| part == &number.to_le_bytes()[..part.len()];
    same(&value[..size.min(8)], id)
        && (size < 16 || value[16..].chunks(8).all(|chunk| same(chunk, fill)))
}
