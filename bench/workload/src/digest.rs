//! What a snapshot sees of a table, in one number: the same snapshot gives the same number for as long as it is
//! open, whatever others write.

use crate::engine::{Direction, Result, Session, Table};

/// What a scan saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Rows.
    pub rows: u64,
    /// Follows from every byte of every key and value, and from their order.
    pub sum: u64,
}

impl Digest {
    /// Adds the next row. Costs a few nanoseconds for a hundred bytes: a scan that is timed may do it.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        let row = words(key).rotate_left(32) ^ words(value);
        self.sum = (self.sum ^ row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A sum of the eight-byte words of `bytes`, the rest of them included. Each word counts by its position.
#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut weight = 1_u64;
    let mut sum = u64::from_le_bytes(last) ^ bytes.len() as u64;
    for chunk in chunks {
        weight = weight.wrapping_add(0x2545_f491_4f6c_dd1e);
        sum = sum.wrapping_add(u64::from_le_bytes(*chunk).wrapping_mul(weight));
    }
    sum
}

/// Reads all rows of `tables` in the open transaction, one table after another. `go_on` is asked after each row.
///
/// # Errors
/// Whatever the engine reports.
pub fn digest<S: Session>(
    session: &mut S,
    tables: &[Table],
    mut go_on: impl FnMut() -> bool,
) -> Result<Digest> {
    let mut digest = Digest::default();
    for &table in tables {
        session.scan(table, &[], Direction::Forward, |key, value| {
            digest.add(key, value);
            go_on()
        })?;
    }
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&[u8], &[u8])]) -> Digest {
        let mut digest = Digest::default();
        for (key, value) in rows {
            digest.add(key, value);
        }
        digest
    }

    #[test]
    fn every_byte_and_the_order_of_rows_count() {
        let value: Vec<u8> = (0..100).collect();
        let base = of(&[(b"a", &value), (b"b", &value)]);
        assert_eq!(base, of(&[(b"a", &value), (b"b", &value)]));
        for at in 0..value.len() {
            let mut other = value.clone();
            other[at] ^= 0x10;
            assert_ne!(base, of(&[(b"a", &value), (b"b", &other)]), "byte {at}");
        }
        let mut swapped = value.clone();
        swapped.rotate_left(8);
        assert_ne!(base, of(&[(b"a", &value), (b"b", &swapped)]));
        assert_ne!(base, of(&[(b"b", &value), (b"a", &value)]));
        assert_ne!(base.rows, of(&[(b"a", &value)]).rows);
        assert_ne!(of(&[(b"a", &[0; 3])]), of(&[(b"a", &[0; 4])]));
    }
}
