//! The bytes of a fat row.
//!
//! Paper: LeanStore §3.3, Figure 8. Differences: no slots; the versions stand in the order of their making and each
//! ends with its length, so that an update appends and a reader goes back from the newest.
//!
//! Layout (little-endian):
//! ```text
//! 0..18    header of the newest version, with the flag FAT (see `row`)
//! 18..20   u16  bytes of the body
//! 20..22   u16  bytes of the old versions
//! 22..     body of the newest version
//! then     old versions, the oldest first; each:
//!            u8   how to get there from the next newer version:
//!                 1 nothing (the same bytes, or a tombstone), 2 byte ranges, 3 full copy, 4 whole body
//!            ..   header of the version (1 or 18 bytes)
//!            ..   2: for each range `u32 offset, u32 length, bytes` (see `delta`)
//!                 3: whose delta it is: u16 slot, u64 stamp, u32 command
//!                 4: the body
//!            u16  bytes of this version, these two included
//! then     slack: bytes without meaning
//! ```
//!
//! Invariants:
//! - F1 Old versions are complete: a snapshot that sees neither the newest version nor any old one sees no row. So the
//!   oldest version is the first of the row, or seen by every snapshot.
//! - F2 A version is made by ranges only if it is as long as the next newer one, and that is no tombstone. A tombstone has no body,
//!   so it is made by nothing.

use crate::row::{Flags, Header, STAMPED_HEADER};
use crate::shortcut::Shortcut;
use vellum_base::codec::Reader;
use vellum_base::{SlotId, Timestamp};
use vellum_txn::VersionStamp;

/// Where the body of a fat row starts.
pub const BODY_AT: usize = STAMPED_HEADER + 4;

/// Bytes of an old version beside its header and its ranges or body.
pub const VERSION_OVERHEAD: usize = 1 + 2;

/// Bytes of the name of a full copy.
pub const NAME_BYTES: usize = 2 + 8 + 4;

const SAME: u8 = 1;
const RANGES: u8 = 2;
const COPY: u8 = 3;
const WHOLE: u8 = 4;

/// How an old version's body is made from the body of the next newer one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<'r> {
    /// It is the same, or the version is a tombstone and has none.
    Same,
    /// These bytes are written over it (see `delta::apply_image`).
    Ranges(&'r [u8]),
    /// It is not: the delta with this name holds the whole body.
    Copy(VersionStamp),
    /// It is not: this is the whole body.
    Whole(&'r [u8]),
}

/// An old version inside a fat row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OldVersion<'r> {
    /// Its header, as it was when it was the newest.
    pub header: Header,
    /// How its body is made.
    pub step: Step<'r>,
}

/// The bytes are no fat row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// A fat row, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatRow<'r> {
    /// Header of the newest version.
    pub header: Header,
    /// Its body.
    pub body: &'r [u8],
    /// The old versions.
    pub versions: &'r [u8],
    /// Unused bytes behind them.
    pub slack: usize,
}

/// Lengths of body and old versions, from the bytes behind the header.
#[inline]
pub fn lengths(bytes: [u8; 4]) -> (usize, usize) {
    (
        usize::from(u16::from_le_bytes([bytes[0], bytes[1]])),
        usize::from(u16::from_le_bytes([bytes[2], bytes[3]])),
    )
}

/// The bytes that say how long body and old versions are.
///
/// # Panics
/// If they do not fit a page.
#[inline]
pub fn encode_lengths(body: usize, versions: usize) -> [u8; 4] {
    let fits = "a row fits a page";
    let (body, versions) = (u16::try_from(body), u16::try_from(versions));
    let (body, versions) = (
        body.expect(fits).to_le_bytes(),
        versions.expect(fits).to_le_bytes(),
    );
    [body[0], body[1], versions[0], versions[1]]
}

/// The body of the newest version of a fat row; `None` if the bytes are no fat row.
#[inline]
pub fn body(row: &[u8]) -> Option<&[u8]> {
    let (body, _) = lengths(*row.get(STAMPED_HEADER..)?.first_chunk()?);
    row.get(BODY_AT..BODY_AT + body)
}

impl<'r> FatRow<'r> {
    /// Takes a row with the flag FAT apart; `None` if the lengths cannot be.
    #[inline]
    pub fn decode(row: &'r [u8]) -> Option<Self> {
        let header = Header::decode(row)?;
        if !header.fat {
            return None;
        }
        let (body, versions) = lengths(*row.get(STAMPED_HEADER..)?.first_chunk()?);
        let rest = row.get(BODY_AT..)?;
        let (body, rest) = rest.split_at_checked(body)?;
        let (versions, slack) = rest.split_at_checked(versions)?;
        Some(Self {
            header,
            body,
            versions,
            slack: slack.len(),
        })
    }

    /// Body and old versions of a fat row; `None` if it is none, or the lengths cannot be.
    #[inline]
    pub(crate) fn parts(row: &'r [u8]) -> Option<(&'r [u8], OldVersions<'r>)> {
        if !Header::is_of_fat(row) {
            return None;
        }
        let (body, versions) = lengths(*row.get(STAMPED_HEADER..)?.first_chunk()?);
        let rest = row.get(BODY_AT..)?;
        let (body, rest) = rest.split_at_checked(body)?;
        Some((body, OldVersions::new(rest.get(..versions)?)))
    }

    /// Bytes of the old versions, from the part of a fat row that ends with its body.
    #[inline]
    pub fn decode_versions(front: &[u8]) -> Option<usize> {
        let lengths = lengths(*front.get(STAMPED_HEADER..)?.first_chunk()?);
        Some(lengths.1)
    }

    /// The old versions, from the newest to the oldest.
    #[inline]
    pub fn old_versions(&self) -> OldVersions<'r> {
        OldVersions::new(self.versions)
    }

    /// True if everything in it can be read: for `verify`.
    pub fn is_sound(&self) -> bool {
        let mut length = Some(self.body.len());
        let mut newer = self.header.shape;
        for version in self.old_versions() {
            let Ok(version) = version else {
                return false;
            };
            match version.step {
                Step::Same => {}
                Step::Copy(_) => length = None,
                Step::Whole(_) if version.header.shape.tombstone => return false,
                Step::Whole(body) => length = Some(body.len()),
                Step::Ranges(image) => {
                    if newer.tombstone || !image_fits(image, length) {
                        return false;
                    }
                }
            }
            newer = version.header.shape;
        }
        true
    }
}

/// Whether the ranges of an image lie in a body of that length, if it is known.
fn image_fits(image: &[u8], length: Option<usize>) -> bool {
    let mut reader = Reader::new(image);
    while !reader.rest().is_empty() {
        let (Some(offset), Some(bytes)) = (reader.u32(), reader.prefixed()) else {
            return false;
        };
        if length.is_some_and(|length| offset as usize + bytes.len() > length) {
            return false;
        }
    }
    true
}

/// Goes over the old versions of a fat row, from the newest to the oldest.
#[derive(Clone, Debug)]
pub struct OldVersions<'r> {
    rest: &'r [u8],
}

impl<'r> OldVersions<'r> {
    /// Over bytes that [`FatRow::versions`] gave.
    #[inline]
    pub fn new(versions: &'r [u8]) -> Self {
        Self { rest: versions }
    }

    /// The versions that are still to come.
    pub fn rest(&self) -> &'r [u8] {
        self.rest
    }

    /// As much of the next one as who looks for a version asks. `None` behind the oldest one, and where the bytes are none.
    #[inline(always)]
    pub(crate) fn glance(&mut self) -> Option<Glance<'r>> {
        let length = usize::from(u16::from_le_bytes(*self.rest.last_chunk()?));
        let start = self.rest.len().checked_sub(length)?;
        let (rest, version) = self.rest.split_at(start);
        self.rest = rest;
        let (version, _) = version.split_last_chunk::<2>()?;
        let (kind, version) = version.split_first()?;
        let (flags, name, header) = Header::glance(version)?;
        Some(Glance {
            kind: *kind,
            flags,
            name,
            rest: &version[header..],
        })
    }
}

/// An old version, as far as who looks for one asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance<'r> {
    kind: u8,
    /// Of its header.
    pub flags: Flags,
    /// Its name, if it is stamped.
    pub name: VersionStamp,
    rest: &'r [u8],
}

impl<'r> Glance<'r> {
    /// How its body is made; `None` if the bytes do not say.
    #[inline(always)]
    pub fn step(&self) -> Option<Step<'r>> {
        match self.kind {
            RANGES => Some(Step::Ranges(self.rest)),
            SAME if self.rest.is_empty() => Some(Step::Same),
            COPY => decode_name(self.rest).map(Step::Copy),
            WHOLE => Some(Step::Whole(self.rest)),
            _ => None,
        }
    }
}

impl<'r> Iterator for OldVersions<'r> {
    type Item = Result<OldVersion<'r>, Malformed>;

    // Readers look at a part of each version only: see `Header::decode`.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Some(tail) = self.rest.last_chunk::<2>() else {
            let cut = !std::mem::take(&mut self.rest).is_empty();
            return cut.then_some(Err(Malformed));
        };
        let length = usize::from(u16::from_le_bytes(*tail));
        if length > VERSION_OVERHEAD
            && let Some(start) = self.rest.len().checked_sub(length)
        {
            let (rest, version) = self.rest.split_at(start);
            if let Some(version) = decode_version(&version[..length - 2]) {
                self.rest = rest;
                return Some(Ok(version));
            }
        }
        self.rest = &[];
        Some(Err(Malformed))
    }
}

#[inline(always)]
fn decode_version(bytes: &[u8]) -> Option<OldVersion<'_>> {
    let (kind, rest) = bytes.split_first()?;
    // As it stands in a row (`Header::alone`): with what `head` has no place for it is damaged.
    let is_alone = |header: &Header| !header.fat && header.shortcut == Shortcut::None;
    let header = Header::decode(rest).filter(is_alone)?;
    let rest = &rest[header.length()..];
    let step = match *kind {
        SAME if rest.is_empty() => Step::Same,
        RANGES => Step::Ranges(rest),
        COPY => Step::Copy(decode_name(rest)?),
        WHOLE => Step::Whole(rest),
        _ => return None,
    };
    Some(OldVersion { header, step })
}

fn decode_name(bytes: &[u8]) -> Option<VersionStamp> {
    let mut reader = Reader::new(bytes);
    let name = VersionStamp {
        slot: SlotId(reader.u16()?),
        stamp: Timestamp(reader.u64()?),
        command: reader.u32()?,
    };
    reader.rest().is_empty().then_some(name)
}

impl OldVersion<'_> {
    /// Bytes that it takes in a row.
    #[inline]
    pub fn length(&self) -> usize {
        VERSION_OVERHEAD
            + self.header.length()
            + match self.step {
                Step::Same => 0,
                Step::Ranges(bytes) | Step::Whole(bytes) => bytes.len(),
                Step::Copy(_) => NAME_BYTES,
            }
    }

    /// Appends it to the old versions of a row: it is newer than all of them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head());
        if let Step::Ranges(bytes) | Step::Whole(bytes) = self.step {
            out.extend_from_slice(bytes);
        }
        let length = u16::try_from(self.length()).expect("a version fits a page");
        out.extend_from_slice(&length.to_le_bytes());
    }

    /// What stands before its ranges or body and its length.
    #[inline]
    pub fn head(&self) -> VersionHead {
        debug_assert!(!self.header.fat, "an old version is no row");
        let header = self.header.encode();
        let mut head = VersionHead {
            bytes: [0; VersionHead::MAX],
            length: 1 + header.len(),
        };
        head.bytes[0] = match self.step {
            Step::Same => SAME,
            Step::Ranges(_) => RANGES,
            Step::Copy(_) => COPY,
            Step::Whole(_) => WHOLE,
        };
        head.bytes[1..head.length].copy_from_slice(&header);
        if let Step::Copy(name) = self.step {
            let at = head.length;
            head.bytes[at..at + 2].copy_from_slice(&name.slot.get().to_le_bytes());
            head.bytes[at + 2..at + 10].copy_from_slice(&name.stamp.get().to_le_bytes());
            head.bytes[at + 10..at + NAME_BYTES].copy_from_slice(&name.command.to_le_bytes());
            head.length += NAME_BYTES;
        }
        head
    }
}

/// The bytes that an old version starts with.
#[derive(Clone, Copy, Debug)]
pub struct VersionHead {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl VersionHead {
    const MAX: usize = 1 + STAMPED_HEADER + NAME_BYTES;
}

impl std::ops::Deref for VersionHead {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta;
    use crate::row::Shape;

    fn version(stamp: u64) -> VersionStamp {
        VersionStamp::new(SlotId(3), Timestamp(stamp), 7)
    }

    fn row(body: &[u8], versions: &[u8], slack: usize) -> Vec<u8> {
        let header = Header {
            fat: true,
            ..Header::stamped(Shape::INLINE, version(9), false)
        };
        let mut row = header.encode().to_vec();
        row.extend_from_slice(&encode_lengths(body.len(), versions.len()));
        row.extend_from_slice(body);
        row.extend_from_slice(versions);
        row.resize(row.len() + slack, 0xee);
        row
    }

    #[test]
    fn versions_are_read_from_the_newest_to_the_oldest() {
        let mut image = Vec::new();
        delta::encode_image(b"0123456789", std::slice::from_ref(&(2..5)), &mut image);
        let old = [
            OldVersion {
                header: Header::frozen(Shape::DELETED),
                step: Step::Same,
            },
            OldVersion {
                header: Header::stamped(Shape::INLINE, version(2), false),
                step: Step::Copy(version(5)),
            },
            OldVersion {
                header: Header::stamped(Shape::INLINE, version(3), false),
                step: Step::Whole(b"of another length"),
            },
            OldVersion {
                header: Header::stamped(Shape::INLINE, version(4), false),
                step: Step::Whole(b""),
            },
            OldVersion {
                header: Header::stamped(Shape::INLINE, version(5), false),
                step: Step::Ranges(&image),
            },
        ];
        let mut bytes = Vec::new();
        for version in &old {
            let before = bytes.len();
            version.encode(&mut bytes);
            assert_eq!(bytes.len() - before, version.length());
        }
        let row = row(b"body456789", &bytes, 5);
        let fat = FatRow::decode(&row).unwrap();
        assert_eq!((fat.body, fat.slack), (&b"body456789"[..], 5));
        let read: Vec<_> = fat.old_versions().map(Result::unwrap).collect();
        assert!(read.iter().eq(old.iter().rev()));
        assert!(fat.is_sound());
        let mut reduced = Vec::new();
        assert!(crate::row::reduce(&row, &mut reduced));
        assert_eq!(reduced, b"\0body456789", "redo knows the newest only");
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_read_beyond() {
        let mut bytes = Vec::new();
        let old = OldVersion {
            header: Header::stamped(Shape::INLINE, version(2), false),
            step: Step::Copy(version(5)),
        };
        old.encode(&mut bytes);
        let whole = row(b"body", &bytes, 0);
        for end in 0..whole.len() {
            assert_eq!(FatRow::decode(&whole[..end]), None, "cut at {end}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 2, 3, 200, 255] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                if let Some(fat) = FatRow::decode(&damaged) {
                    assert!(fat.old_versions().count() < 40, "it ends");
                    let _ = fat.is_sound();
                }
            }
        }
        for (header, is_sound) in [(old.header, true), (Header::frozen(Shape::DELETED), false)] {
            let mut bytes = Vec::new();
            let step = Step::Whole(b"whole");
            OldVersion { header, step }.encode(&mut bytes);
            let row = row(b"body", &bytes, 0);
            assert_eq!(FatRow::decode(&row).unwrap().is_sound(), is_sound);
        }
        let broken = row(b"body", b"\x01", 0);
        assert!(!FatRow::decode(&broken).unwrap().is_sound());
        let mut outside = Vec::new();
        delta::encode_image(b"0123456789", std::slice::from_ref(&(2..5)), &mut outside);
        let mut bytes = Vec::new();
        OldVersion {
            header: old.header,
            step: Step::Ranges(&outside),
        }
        .encode(&mut bytes);
        let outside = bytes;
        assert!(
            !FatRow::decode(&row(b"body", &outside, 0))
                .unwrap()
                .is_sound()
        );
        // Of the body that stands before them, ranges are part.
        for (whole, is_sound) in [(&[0; 5][..], true), (&[0; 4][..], false)] {
            let (mut bytes, step) = (outside.clone(), Step::Whole(whole));
            let header = old.header;
            OldVersion { header, step }.encode(&mut bytes);
            let row = row(b"body", &bytes, 0);
            assert_eq!(FatRow::decode(&row).unwrap().is_sound(), is_sound);
        }
    }

    #[test]
    fn bytes_of_a_whole_body_are_those_of_the_format() {
        let mut bytes = Vec::new();
        OldVersion {
            header: Header::stamped(Shape::INLINE, version(2), true),
            step: Step::Whole(b"abc"),
        }
        .encode(&mut bytes);
        let header = [1 | 8, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0];
        let expected = [&[4][..], &header, b"abc", &[24, 0]].concat();
        assert_eq!(bytes, expected);
    }
}
