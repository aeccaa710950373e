//! What the undo bytes of a row's log records say. The key is in the redo bytes.
//!
//! Layout (little-endian):
//! ```text
//! 0..8    u64  stamp of the transaction
//! 8..12   u32  command
//! 12      u8   what to do: 1 remove the row, 2 write byte ranges back, 3 put the whole row back
//! 13..         2: ranges (see `delta::encode_image`); 3: the row in reduced form
//! ```
//!
//! A compensation record's undo bytes: `stamp u64, compensated gsn u64`.

use crate::delta;
use crate::row::{Header, Shape};
use vellum_base::codec::Reader;
use vellum_base::{Gsn, Timestamp};

/// Bytes before the before-image.
pub const PREFIX_BYTES: usize = 13;

const REMOVE: u8 = 1;
const RANGES: u8 = 2;
const WHOLE: u8 = 3;

/// How a change is reverted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revert<'a> {
    /// The change inserted the row: remove it.
    Remove,
    /// The change wrote byte ranges of the body: write the old bytes back.
    Ranges(&'a [u8]),
    /// The change replaced the row: put this shape and body back.
    Whole(Shape, &'a [u8]),
}

/// Decoded undo bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoRecord<'a> {
    /// The transaction.
    pub stamp: Timestamp,
    /// Which of its commands.
    pub command: u32,
    /// How to revert it.
    pub revert: Revert<'a>,
}

/// The first [`PREFIX_BYTES`] of the undo bytes of a change.
pub fn prefix(stamp: Timestamp, command: u32, revert: &Revert<'_>) -> [u8; PREFIX_BYTES] {
    let mut out = [0; PREFIX_BYTES];
    out[..8].copy_from_slice(&stamp.get().to_le_bytes());
    out[8..12].copy_from_slice(&command.to_le_bytes());
    out[12] = match revert {
        Revert::Remove => REMOVE,
        Revert::Ranges(_) => RANGES,
        Revert::Whole(..) => WHOLE,
    };
    out
}

/// Bytes of [`compensation`].
pub const COMPENSATION_BYTES: usize = 16;

/// The undo bytes of the compensation of the record with `gsn`.
pub fn compensation(stamp: Timestamp, gsn: Gsn) -> [u8; COMPENSATION_BYTES] {
    let mut out = [0; COMPENSATION_BYTES];
    out[..8].copy_from_slice(&stamp.get().to_le_bytes());
    out[8..].copy_from_slice(&gsn.get().to_le_bytes());
    out
}

/// Decodes the undo bytes of an undoable record; `None` if they are not such.
pub fn decode(bytes: &[u8]) -> Option<UndoRecord<'_>> {
    let mut reader = Reader::new(bytes);
    let stamp = Timestamp(reader.u64()?);
    let command = reader.u32()?;
    let revert = match reader.u8()? {
        REMOVE if reader.rest().is_empty() => Revert::Remove,
        RANGES => {
            check_image(reader.rest())?;
            Revert::Ranges(reader.rest())
        }
        WHOLE => {
            let header = Header::decode(reader.rest())?;
            let body = &reader.rest()[header.length()..];
            header
                .writer
                .is_none()
                .then_some(Revert::Whole(header.shape, body))?
        }
        _ => return None,
    };
    Some(UndoRecord {
        stamp,
        command,
        revert,
    })
}

fn check_image(image: &[u8]) -> Option<()> {
    let mut reader = Reader::new(image);
    while !reader.rest().is_empty() {
        reader.u32()?;
        reader.prefixed()?;
    }
    Some(())
}

/// Applies a before-image of ranges to a row's body.
pub fn apply_ranges(image: &[u8], body: &mut [u8]) -> Option<()> {
    delta::apply_image(image, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_decoded_as_it_was_encoded() {
        let mut image = Vec::new();
        delta::encode_image(b"0123456789", std::slice::from_ref(&(2..5)), &mut image);
        for (revert, tail) in [
            (Revert::Remove, vec![]),
            (Revert::Ranges(&image), image.clone()),
            (
                Revert::Whole(Shape::DELETED, b""),
                vec![Shape::DELETED.reduced_flags()],
            ),
            (Revert::Whole(Shape::INLINE, b"v"), vec![0, b'v']),
        ] {
            let mut bytes = prefix(Timestamp(8), 3, &revert).to_vec();
            bytes.extend_from_slice(&tail);
            let expected = UndoRecord {
                stamp: Timestamp(8),
                command: 3,
                revert,
            };
            assert_eq!(decode(&bytes), Some(expected));
            assert_eq!(decode(&bytes[..PREFIX_BYTES - 1]), None);
        }
    }

    #[test]
    fn damaged_undo_bytes_are_refused() {
        let mut bytes = prefix(Timestamp(1), 1, &Revert::Remove).to_vec();
        bytes.push(0);
        assert_eq!(decode(&bytes), None, "trailing byte");
        let mut ranges = prefix(Timestamp(1), 1, &Revert::Ranges(&[])).to_vec();
        ranges.extend_from_slice(&[0, 0, 0, 0, 9, 0, 0, 0, 1]);
        assert_eq!(decode(&ranges), None, "range longer than its bytes");
        let mut unknown = bytes.clone();
        unknown[12] = 9;
        assert_eq!(decode(&unknown), None);
    }
}
