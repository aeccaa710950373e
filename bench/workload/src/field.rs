//! Rows as fixed layouts: each column is a constant offset into the bytes of a value.
//!
//! Numbers are little-endian, text is padded with zero bytes. A row is always read and written as
//! an array of its exact length ([`exact`], [`exact_mut`]), so that a column's offset is checked
//! when the program is compiled and not when it runs.

use std::marker::PhantomData;
use std::ops::Range;

/// A whole number inside a row.
#[derive(Clone, Copy, Debug)]
pub struct Number<T> {
    offset: usize,
    kind: PhantomData<T>,
}

macro_rules! number {
    ($type:ty) => {
        impl Number<$type> {
            const SIZE: usize = size_of::<$type>();

            /// The column that starts at `offset`.
            pub const fn at(offset: usize) -> Self {
                Self {
                    offset,
                    kind: PhantomData,
                }
            }

            /// The first byte behind it.
            pub const fn end(self) -> usize {
                self.offset + Self::SIZE
            }

            /// The bytes that it occupies.
            pub const fn range(self) -> Range<usize> {
                self.offset..self.end()
            }

            /// Its value in `row`.
            #[inline(always)]
            pub fn get(self, row: &[u8]) -> $type {
                let mut bytes = [0; Self::SIZE];
                bytes.copy_from_slice(&row[self.range()]);
                <$type>::from_le_bytes(bytes)
            }

            /// Stores `value` in `row`.
            #[inline(always)]
            pub fn set(self, row: &mut [u8], value: $type) {
                row[self.range()].copy_from_slice(&value.to_le_bytes());
            }

            /// Stores what `change` makes of the value in `row`.
            #[inline(always)]
            pub fn change(self, row: &mut [u8], change: impl FnOnce($type) -> $type) {
                self.set(row, change(self.get(row)));
            }
        }
    };
}

number!(u8);
number!(u16);
number!(u32);
number!(u64);
number!(i64);

/// Text of up to `capacity` bytes without zero bytes, padded with zero bytes.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    offset: usize,
    capacity: usize,
}

impl Text {
    /// The column of `capacity` bytes that starts at `offset`.
    pub const fn at(offset: usize, capacity: usize) -> Self {
        Self { offset, capacity }
    }

    /// The first byte behind it.
    pub const fn end(self) -> usize {
        self.offset + self.capacity
    }

    /// The bytes that it occupies.
    pub const fn range(self) -> Range<usize> {
        self.offset..self.end()
    }

    /// All bytes, padding included.
    #[inline(always)]
    pub fn padded(self, row: &[u8]) -> &[u8] {
        &row[self.range()]
    }

    /// All bytes, padding included, to be changed.
    #[inline(always)]
    pub fn padded_mut(self, row: &mut [u8]) -> &mut [u8] {
        &mut row[self.range()]
    }

    /// The text in `row`, without padding.
    pub fn get(self, row: &[u8]) -> &[u8] {
        let bytes = self.padded(row);
        &bytes[..bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len())]
    }

    /// Stores `text` in `row`.
    ///
    /// # Panics
    /// If it is longer than the column or contains a zero byte.
    #[inline]
    pub fn set(self, row: &mut [u8], text: &[u8]) {
        debug_assert!(!text.contains(&0));
        let bytes = &mut row[self.range()];
        bytes[..text.len()].copy_from_slice(text);
        bytes[text.len()..].fill(0);
    }
}

/// Bytes of any values.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    offset: usize,
    length: usize,
}

impl Bytes {
    /// The column of `length` bytes that starts at `offset`.
    pub const fn at(offset: usize, length: usize) -> Self {
        Self { offset, length }
    }

    /// The first byte behind it.
    pub const fn end(self) -> usize {
        self.offset + self.length
    }

    /// The bytes that it occupies.
    pub const fn range(self) -> Range<usize> {
        self.offset..self.end()
    }

    /// Its bytes in `row`, to be changed.
    #[inline(always)]
    pub fn get_mut(self, row: &mut [u8]) -> &mut [u8] {
        &mut row[self.range()]
    }
}

/// `row` as an array of the length that its table's rows have.
///
/// # Panics
/// If the length differs: the engine returned something that was never stored.
#[inline(always)]
pub fn exact<const N: usize>(row: &[u8]) -> &[u8; N] {
    match row.first_chunk() {
        Some(array) if row.len() == N => array,
        _ => wrong_length(row.len(), N),
    }
}

/// As [`exact`], to be changed.
///
/// # Panics
/// If the length differs.
#[inline(always)]
pub fn exact_mut<const N: usize>(row: &mut [u8]) -> &mut [u8; N] {
    let length = row.len();
    match row.first_chunk_mut() {
        Some(array) if length == N => array,
        _ => wrong_length(length, N),
    }
}

#[cold]
#[inline(never)]
fn wrong_length(found: usize, expected: usize) -> ! {
    panic!("the engine returned a row of {found} bytes, {expected} were stored")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Number<u32> = Number::<u32>::at(0);
    const BALANCE: Number<i64> = Number::<i64>::at(ID.end());
    const NAME: Text = Text::at(BALANCE.end(), 6);

    #[test]
    fn columns_do_not_touch_each_other() {
        let mut row = [0xff; NAME.end()];
        NAME.set(&mut row, b"name");
        BALANCE.set(&mut row, -5);
        ID.set(&mut row, 7);
        assert_eq!(
            (ID.get(&row), BALANCE.get(&row), NAME.get(&row)),
            (7, -5, &b"name"[..])
        );
        assert_eq!(NAME.padded(&row), b"name\0\0");
        BALANCE.change(&mut row, |balance| balance - 1);
        assert_eq!((BALANCE.get(&row), NAME.get(&row)), (-6, &b"name"[..]));
        NAME.set(&mut row, b"longer");
        assert_eq!(NAME.get(&row), b"longer");
        assert_eq!(
            (ID.range(), BALANCE.range(), NAME.range()),
            (0..4, 4..12, 12..18)
        );
    }

    #[test]
    #[should_panic(expected = "a row of 3 bytes, 4 were stored")]
    fn row_of_another_length_is_refused() {
        let _ = exact::<4>(&[1, 2, 3]);
    }

    #[test]
    #[should_panic(expected = "a row of 5 bytes, 4 were stored")]
    fn longer_row_is_refused_too() {
        let _ = exact_mut::<4>(&mut [1, 2, 3, 4, 5]);
    }
}
