//! What a delta index holds: the before-image of one version, and who wrote the version before.
//!
//! Paper: LeanStore §3.3 "Delta Index". One index a slot there, two here (`delta_index`), keyed `(stamp, command)`; the entry of
//! a version gives back what the row was before that version.
//!
//! Layout of the key: `stamp u64 big-endian, command u32 big-endian`.
//!
//! Layout of an entry (little-endian):
//! ```text
//! 0     u8  kind: 1 byte ranges (the body's length did not change), 2 full copy; bit 2: transient
//! 1..   the predecessor's row header (1, 18 or 32 bytes, see `row`)
//! then  kind 1: for each range: u32 offset, u32 length, that many bytes
//!       kind 2: the body
//! then  transient: u64 root page of the row's tree, u64 bound: snapshots at or below it do not need the entry
//!       (see `shortcut`)
//! ```

use crate::row::Header;
use std::ops::Range;
use vellum_base::codec::Reader;
use vellum_base::{PageId, Timestamp};
use vellum_txn::VersionStamp;

/// Bytes of a key.
pub const KEY_BYTES: usize = 12;

/// Bytes of an entry beside header and image, at most.
pub const ENTRY_OVERHEAD: usize = 1 + TRAILER_BYTES;

const RANGES: u8 = 1;
const FULL: u8 = 2;
const TRANSIENT: u8 = 4;
const TRAILER_BYTES: usize = 16;

/// In which of its slot's delta indexes a delta is (`delta_index`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Home {
    /// In that of those that are needed while some snapshot is older than they are.
    Lasting,
    /// In that of the transient ones.
    Transient,
}

/// Where a delta is: that of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeltaName {
    /// The version that replaced what the delta gives back.
    pub version: VersionStamp,
    /// In which index.
    pub home: Home,
}

impl DeltaName {
    /// That of a version among those that are not transient.
    pub const fn lasting(version: VersionStamp) -> Self {
        Self {
            version,
            home: Home::Lasting,
        }
    }
}

/// The key of the entry that belongs to version `(stamp, command)` of the index's slot.
#[inline]
pub fn key(stamp: Timestamp, command: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&stamp.get().to_be_bytes());
    key[8..].copy_from_slice(&command.to_be_bytes());
    key
}

/// The stamp and command that a key names.
pub fn decode_key(key: &[u8]) -> Option<(Timestamp, u32)> {
    let (stamp, rest) = key.split_first_chunk::<8>()?;
    let command = <[u8; 4]>::try_from(rest).ok()?;
    Some((
        Timestamp(u64::from_be_bytes(*stamp)),
        u32::from_be_bytes(command),
    ))
}

/// Builds an entry that keeps only what `ranges` of the old body cover.
/// The ranges lie inside `body`.
pub fn encode_ranges(before: &Header, body: &[u8], ranges: &[Range<usize>], out: &mut Vec<u8>) {
    debug_assert!(!before.fat, "a delta names a version, not a row");
    out.push(RANGES);
    out.extend_from_slice(&before.encode());
    encode_image(body, ranges, out);
}

/// Builds an entry from an image that was made before (see [`encode_image`]).
pub fn encode_ranges_of(before: &Header, image: &[u8], out: &mut Vec<u8>) {
    out.push(RANGES);
    out.extend_from_slice(&before.encode());
    out.extend_from_slice(image);
}

/// Builds an entry that keeps the whole old body.
pub fn encode_full(before: &Header, body: &[u8], out: &mut Vec<u8>) {
    debug_assert!(!before.fat, "a delta names a version, not a row");
    out.push(FULL);
    out.extend_from_slice(&before.encode());
    out.extend_from_slice(body);
}

/// True for an entry that keeps the whole old body. Its first byte is enough.
#[inline]
pub fn is_full(entry: &[u8]) -> bool {
    entry.first().is_some_and(|kind| kind & !TRANSIENT == FULL)
}

/// Makes a transient entry of one that is complete: of a row of `tree`, not needed by snapshots at or below `bound`.
pub fn make_transient(tree: PageId, bound: Timestamp, entry: &mut Vec<u8>) {
    debug_assert!(!entry.is_empty() && !is_transient(entry));
    entry[0] |= TRANSIENT;
    entry.extend_from_slice(&tree.get().to_le_bytes());
    entry.extend_from_slice(&bound.get().to_le_bytes());
}

/// Makes an entry of a transient one that is kept as any other.
pub fn make_lasting(entry: &mut Vec<u8>) {
    debug_assert!(is_transient(entry));
    entry[0] &= !TRANSIENT;
    entry.truncate(entry.len().saturating_sub(TRAILER_BYTES).max(1));
}

/// True for a transient entry. Its first byte is enough.
#[inline]
pub fn is_transient(entry: &[u8]) -> bool {
    entry.first().is_some_and(|kind| kind & TRANSIENT != 0)
}

/// Tree and bound of a transient entry; `None` for any other.
pub fn transient(entry: &[u8]) -> Option<(PageId, Timestamp)> {
    let trailer: &[u8; TRAILER_BYTES] = entry.last_chunk().filter(|_| is_transient(entry))?;
    let mut reader = Reader::new(trailer);
    Some((PageId(reader.u64()?), Timestamp(reader.u64()?)))
}

/// Kind, and what stands behind it, without what makes an entry transient.
#[inline]
fn parts(entry: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, rest) = entry.split_first()?;
    if kind & TRANSIENT == 0 {
        return Some((*kind, rest));
    }
    let rest = rest.get(..rest.len().checked_sub(TRAILER_BYTES)?)?;
    Some((kind & !TRANSIENT, rest))
}

/// Bytes of a before-image beside the body's own bytes, for each range.
pub const RANGE_BYTES: usize = 8;

/// Length of the before-image of `ranges`.
#[inline]
pub fn image_bytes(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(|range| RANGE_BYTES + range.len()).sum()
}

/// True if `ranges` ascend with more than [`RANGE_BYTES`] between them: then their before-image is at most
/// [`RANGE_BYTES`] longer than the body, however many there are.
pub fn are_apart(ranges: &[Range<usize>]) -> bool {
    ranges
        .windows(2)
        .all(|pair| pair[0].end + RANGE_BYTES < pair[1].start)
}

/// Appends `ranges` of `body` in the form of a before-image.
pub fn encode_image(body: &[u8], ranges: &[Range<usize>], out: &mut Vec<u8>) {
    for range in ranges {
        let bytes = &body[range.clone()];
        out.extend_from_slice(&(range.start as u32).to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// Writes an image made by [`encode_image`] over `body`; `None` if it does not fit there.
pub fn apply_image(image: &[u8], body: &mut [u8]) -> Option<()> {
    let mut reader = Reader::new(image);
    while !reader.rest().is_empty() {
        let offset = usize::try_from(reader.u32()?).ok()?;
        let length = usize::try_from(reader.u32()?).ok()?;
        let bytes = reader.bytes(length)?;
        body.get_mut(offset..offset.checked_add(length)?)?
            .copy_from_slice(bytes);
    }
    Some(())
}

/// Where the bytes of an image of one range lie; `None` for several, or none.
#[inline]
pub fn only_range(image: &[u8]) -> Option<Range<usize>> {
    let (offset, rest) = image.split_first_chunk()?;
    let (length, bytes) = rest.split_first_chunk()?;
    let offset = u32::from_le_bytes(*offset) as usize;
    let length = u32::from_le_bytes(*length) as usize;
    (bytes.len() == length).then(|| offset..offset.saturating_add(length))
}

/// Turns `body` into the body of the predecessor and returns the predecessor's header.
/// `None` if the entry is damaged.
pub fn apply(entry: &[u8], body: &mut Vec<u8>) -> Option<Header> {
    let (kind, rest) = parts(entry)?;
    let header = Header::decode(rest)?;
    let image = &rest[header.length()..];
    match kind {
        RANGES => apply_image(image, body)?,
        FULL => {
            body.clear();
            body.extend_from_slice(image);
        }
        _ => return None,
    }
    Some(header)
}

/// Where the body of an entry that is a full copy starts and ends; `None` for any other.
pub fn full_body(entry: &[u8]) -> Option<Range<usize>> {
    let (kind, rest) = parts(entry)?;
    if kind != FULL {
        return None;
    }
    Some(1 + Header::decode(rest)?.length()..1 + rest.len())
}

/// An entry taken apart: the predecessor's header, and its image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry<'e> {
    /// Byte ranges of the predecessor.
    Ranges(Header, &'e [u8]),
    /// The whole body.
    Full(Header, &'e [u8]),
}

/// Takes an entry apart; `None` if it is damaged.
pub fn decode(entry: &[u8]) -> Option<Entry<'_>> {
    let (kind, rest) = parts(entry)?;
    let header = Header::decode(rest)?;
    let image = &rest[header.length()..];
    match kind {
        RANGES => Some(Entry::Ranges(header, image)),
        FULL => Some(Entry::Full(header, image)),
        _ => None,
    }
}

/// The predecessor's header alone.
pub fn predecessor(entry: &[u8]) -> Option<Header> {
    Header::decode(entry.get(1..)?)
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a row's changes are a list of ranges"
)]
mod tests {
    use super::*;
    use crate::row::Shape;
    use vellum_base::SlotId;

    fn header() -> Header {
        let version = VersionStamp {
            slot: SlotId(2),
            stamp: Timestamp(9),
            command: 1,
        };
        Header::stamped(Shape::INLINE, version, false)
    }

    #[test]
    fn keys_sort_by_stamp_then_command() {
        assert!(key(Timestamp(1), u32::MAX) < key(Timestamp(2), 0));
        assert!(key(Timestamp(2), 0) < key(Timestamp(2), 1));
        assert_eq!(
            decode_key(&key(Timestamp(258), 7)),
            Some((Timestamp(258), 7))
        );
        assert_eq!(decode_key(b"short"), None);
    }

    #[test]
    fn ranges_give_back_the_old_bytes() {
        let old = b"0123456789".to_vec();
        let mut entry = Vec::new();
        encode_ranges(&header(), &old, &[0..2, 7..10], &mut entry);
        let mut body = b"xx23456yyy".to_vec();
        assert_eq!(apply(&entry, &mut body), Some(header()));
        assert_eq!(body, old);
    }

    #[test]
    fn full_copy_gives_back_another_length() {
        let mut entry = Vec::new();
        encode_full(&Header::frozen(Shape::DELETED), b"", &mut entry);
        let mut body = b"live".to_vec();
        assert_eq!(
            apply(&entry, &mut body),
            Some(Header::frozen(Shape::DELETED))
        );
        assert!(body.is_empty());
    }

    #[test]
    fn damaged_entries_are_refused() {
        let mut entry = Vec::new();
        encode_ranges(&header(), b"0123456789", &[7..10], &mut entry);
        assert_eq!(
            apply(&entry, &mut b"short".to_vec()),
            None,
            "range outside the body"
        );
        assert_eq!(
            apply(&entry[..entry.len() - 1], &mut b"0123456789".to_vec()),
            None
        );
        assert_eq!(apply(&[], &mut Vec::new()), None);
        assert_eq!(apply(&[9, 0], &mut Vec::new()), None, "unknown kind");
        assert_eq!(apply(&[RANGES | TRANSIENT, 0], &mut Vec::new()), None);
    }

    #[test]
    fn transient_entry_gives_back_the_same_bytes_and_says_for_whom_it_is() {
        for full in [false, true] {
            let old = b"0123456789".to_vec();
            let mut entry = Vec::new();
            if full {
                encode_full(&header(), &old, &mut entry);
            } else {
                encode_ranges(&header(), &old, &[0..2, 7..10], &mut entry);
            }
            assert_eq!(transient(&entry), None);
            make_transient(PageId(7), Timestamp(99), &mut entry);
            assert_eq!(transient(&entry), Some((PageId(7), Timestamp(99))));
            assert_eq!((is_full(&entry), is_full(&entry[..1])), (full, full));
            let mut body = b"xx23456yyy".to_vec();
            assert_eq!(apply(&entry, &mut body), Some(header()));
            assert_eq!(body, old);
            let copy = full_body(&entry).map(|range| &entry[range]);
            assert_eq!(copy, full.then_some(&old[..]));
        }
    }
}
