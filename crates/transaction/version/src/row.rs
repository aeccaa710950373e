//! The form of a row in a leaf: a header that says who wrote it, and the body.
//!
//! Paper: LeanStore §3.3, Figure 7 (chained format). Differences: a row that everyone can see
//! drops all but one byte of its header (*frozen*), so a cold row costs 1 byte instead of 18.
//!
//! Layout (little-endian):
//! ```text
//! 0        u8   flags: bit 0 stamped, bit 1 tombstone, bit 2 overflow, bit 3 first version, bit 4 fat, bit 5 with a
//!               bound, bit 6 with a link
//! stamped only:
//! 1..3     u16  slot of the writer
//! 3..11    u64  stamp of the writing transaction
//! 11..15   u32  command inside that transaction
//! 15       u8   updates since `since`                (chain estimate; with a link: see `fat::estimate`)
//! 16..18   u16  low bits of oldest_tx at the first of these updates (chain estimate); with a link: its cover
//! 15..18        with a bound: its code instead of the estimate (see `shortcut`)
//! 18..32        with a link: u16 slot, u64 stamp, u32 command of the delta that it leads to
//! then the body: the value, or a chain reference (overflow), or nothing (tombstone)
//! ```
//! A fat row (always stamped) goes on differently behind its header: see `fat::layout`. Bounds and links are
//! shortcuts to what old snapshots see: see `shortcut`.
//!
//! Invariants:
//! - V1 A row without bit 0 is visible to every snapshot that exists or can still be drawn.
//! - V2 A stamped row without bit 3 has a predecessor: the delta of its (slot, stamp, command).
//!   In a fat row the row itself holds what is before it instead.
//! - V3 The *reduced* form of a row (what redo writes) has neither stamp nor bits 3 to 6, nor old versions.
//! - V44 A fat row, a first version and a tombstone have no shortcut.

use crate::delta::{DeltaName, Home};
use crate::fat;
use crate::shortcut::{self, Link, Shortcut};
use vellum_base::{SlotId, Timestamp};
use vellum_txn::VersionStamp;

/// Bytes of a frozen (or reduced) header.
pub const FROZEN_HEADER: usize = 1;
/// Bytes of a stamped header.
pub const STAMPED_HEADER: usize = 18;
/// Bytes of the longest header: a stamped one with a link.
pub const HEADER_MAX: usize = STAMPED_HEADER + shortcut::LINK_BYTES;

const STAMPED: u8 = 1;
const TOMBSTONE: u8 = 2;
const OVERFLOW: u8 = 4;
const FIRST: u8 = 8;
/// The flag of a row that holds its old versions itself.
pub(crate) const FAT: u8 = 16;
const BOUND: u8 = 32;
const LINK: u8 = 64;
const KNOWN: u8 = STAMPED | TOMBSTONE | OVERFLOW | FIRST | FAT | BOUND | LINK;

/// What a version is, apart from who wrote it: live or deleted, inline or in an overflow chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// The version says that the row is deleted; it has no body.
    pub tombstone: bool,
    /// The body is a chain reference.
    pub overflow: bool,
}

impl Shape {
    /// A live row with its value in the leaf.
    pub const INLINE: Self = Self {
        tombstone: false,
        overflow: false,
    };
    /// A deleted row.
    pub const DELETED: Self = Self {
        tombstone: true,
        overflow: false,
    };
    /// A live row whose value is an overflow chain.
    pub const CHAINED: Self = Self {
        tombstone: false,
        overflow: true,
    };

    /// The one-byte header of the reduced form.
    #[inline]
    pub fn reduced_flags(self) -> u8 {
        (if self.tombstone { TOMBSTONE } else { 0 }) | (if self.overflow { OVERFLOW } else { 0 })
    }

    /// The shape that a flags byte names; `None` where the byte is not one that is ever written.
    pub fn from_flags(flags: u8) -> Option<Self> {
        let shape = Self {
            tombstone: flags & TOMBSTONE != 0,
            overflow: flags & OVERFLOW != 0,
        };
        (flags & !KNOWN == 0 && !(shape.tombstone && shape.overflow)).then_some(shape)
    }
}

/// Who wrote a version, and whether there is one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer {
    /// The version's name.
    pub version: VersionStamp,
    /// The version has no predecessor: before it, the row did not exist.
    pub first: bool,
}

/// What the first byte of a header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The version has a name.
    #[inline]
    pub(crate) fn is_stamped(self) -> bool {
        self.0 & STAMPED != 0
    }

    /// See [`Writer::first`].
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self.0 & FIRST != 0
    }

    /// See [`Shape::tombstone`].
    #[inline]
    pub(crate) fn is_tombstone(self) -> bool {
        self.0 & TOMBSTONE != 0
    }

    /// See [`Shape::overflow`].
    #[inline]
    pub(crate) fn is_overflow(self) -> bool {
        self.0 & OVERFLOW != 0
    }
}

/// A decoded row header. For what follows it see [`newest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the version is.
    pub shape: Shape,
    /// Its writer; `None` for a frozen row.
    pub writer: Option<Writer>,
    /// The row holds its old versions itself. Only of a row in a leaf, and only a stamped one.
    pub fat: bool,
    /// Chain estimate: how often the row was updated while `since` was the oldest transaction.
    pub updates: u8,
    /// Chain estimate: the low bits of oldest_tx when counting began. Zero with a link.
    pub since: u16,
    /// Where old snapshots go on without looking at the versions that they do not see.
    pub shortcut: Shortcut,
}

/// The name in a stamped header.
#[inline(always)]
fn name(bytes: &[u8; STAMPED_HEADER]) -> VersionStamp {
    let mut stamp = [0; 8];
    stamp.copy_from_slice(&bytes[3..11]);
    VersionStamp {
        slot: SlotId(u16::from_le_bytes([bytes[1], bytes[2]])),
        stamp: Timestamp(u64::from_le_bytes(stamp)),
        command: u32::from_le_bytes([bytes[11], bytes[12], bytes[13], bytes[14]]),
    }
}

impl Header {
    /// The header of a frozen row.
    pub const fn frozen(shape: Shape) -> Self {
        Self {
            shape,
            writer: None,
            fat: false,
            updates: 0,
            since: 0,
            shortcut: Shortcut::None,
        }
    }

    /// The header of a version that `writer` makes now.
    pub const fn stamped(shape: Shape, version: VersionStamp, first: bool) -> Self {
        Self {
            shape,
            writer: Some(Writer { version, first }),
            fat: false,
            updates: 0,
            since: 0,
            shortcut: Shortcut::None,
        }
    }

    /// The header of the same version without what only a row in a leaf has: its old versions, and (since the chain behind
    /// it becomes another) its shortcut.
    pub fn alone(self) -> Self {
        Self {
            fat: false,
            shortcut: Shortcut::None,
            ..self
        }
    }

    /// The version's own delta, if it has a name: where it is, if it is (V76).
    #[inline]
    pub fn delta(&self) -> Option<DeltaName> {
        self.writer.map(|writer| self.delta_of(&writer))
    }

    /// As [`Header::delta`], by its own writer.
    #[inline]
    pub fn delta_of(&self, writer: &Writer) -> DeltaName {
        let version = writer.version;
        let home = match self.shortcut {
            Shortcut::None => Home::Lasting,
            Shortcut::Link(link) if link.version == version => Home::Lasting,
            Shortcut::Absent(_) | Shortcut::Link(_) => Home::Transient,
        };
        DeltaName { version, home }
    }

    /// Bytes that the header takes.
    #[inline]
    pub fn length(&self) -> usize {
        match (self.writer, self.shortcut) {
            (None, _) => FROZEN_HEADER,
            (Some(_), Shortcut::Link(_)) => HEADER_MAX,
            (Some(_), _) => STAMPED_HEADER,
        }
    }

    /// Where the body starts in a row with this header.
    #[inline]
    pub fn body_at(&self) -> usize {
        if self.fat {
            fat::layout::BODY_AT
        } else {
            self.length()
        }
    }

    /// Decodes the header of a row; `None` if the bytes are not one.
    #[inline]
    pub fn decode(row: &[u8]) -> Option<Self> {
        let flags = *row.first()?;
        let shape = Shape::from_flags(flags)?;
        if flags & STAMPED == 0 {
            return (flags & (FIRST | FAT | BOUND | LINK) == 0).then_some(Self::frozen(shape));
        }
        let bytes: &[u8; STAMPED_HEADER] = row.first_chunk()?;
        let version = name(bytes);
        let writer = Some(Writer {
            version,
            first: flags & FIRST != 0,
        });
        if flags & (BOUND | LINK) != 0 {
            return Self::decode_shortcut(flags, shape, version, row);
        }
        // By values throughout: a header that is filled in place is stored and loaded again in pieces of other sizes, which costs readers
        // of fat rows more than all the rest.
        Some(Self {
            shape,
            writer,
            fat: flags & FAT != 0,
            updates: bytes[15],
            since: u16::from_le_bytes([bytes[16], bytes[17]]),
            shortcut: Shortcut::None,
        })
    }

    /// True if the bytes begin as those of a frozen, live row in the leaf do, which most are: everybody sees it (V1).
    #[inline]
    pub(crate) fn is_of_cold(row: &[u8]) -> bool {
        row.first() == Some(&0)
    }

    /// The name of a live row in the leaf that has nothing else in its header: neither versions nor a shortcut. Its body stands behind
    /// [`STAMPED_HEADER`] bytes. For readers, most of which see it and need no more of the header (see [`Header::glance`]).
    #[inline(always)]
    pub(crate) fn of_plain(row: &[u8]) -> Option<VersionStamp> {
        let bytes: &[u8; STAMPED_HEADER] = row.first_chunk()?;
        (bytes[0] & !FIRST == STAMPED).then(|| name(bytes))
    }

    /// As [`Header::of_plain`], of a live fat row that is not its own first version: where its body stands, the row says (`fat::layout`).
    #[inline(always)]
    pub(crate) fn of_plain_fat(row: &[u8]) -> Option<VersionStamp> {
        let bytes: &[u8; STAMPED_HEADER] = row.first_chunk()?;
        (bytes[0] == STAMPED | FAT).then(|| name(bytes))
    }

    /// The name of a tombstone, which has nothing else in its header (V44). For readers, who step over many that they see.
    #[inline(always)]
    pub(crate) fn of_tombstone(row: &[u8]) -> Option<VersionStamp> {
        let bytes: &[u8; STAMPED_HEADER] = row.first_chunk()?;
        (bytes[0] & !FIRST == STAMPED | TOMBSTONE).then(|| name(bytes))
    }

    /// True if the bytes begin as those of a fat row do.
    #[inline]
    pub(crate) fn is_of_fat(row: &[u8]) -> bool {
        (row.first()).is_some_and(|flags| flags & (STAMPED | FAT) == STAMPED | FAT)
    }

    /// The flags of an old version's header that stands in a fat row, its name (if it has one), and how long the header is. `None` if the
    /// bytes are none. For who goes past many versions to one: a whole header is copied about in pieces of other sizes than it was
    /// stored in, which made two thirds of that way.
    #[inline(always)]
    pub(crate) fn glance(bytes: &[u8]) -> Option<(Flags, VersionStamp, usize)> {
        let flags = *bytes.first()?;
        if flags & !(STAMPED | FIRST | TOMBSTONE | OVERFLOW) != 0
            || flags & (TOMBSTONE | OVERFLOW) == TOMBSTONE | OVERFLOW
        {
            return None;
        }
        if flags & STAMPED == 0 {
            let nobody = VersionStamp::new(SlotId(0), Timestamp::ZERO, 0);
            return (flags & FIRST == 0).then_some((Flags(flags), nobody, FROZEN_HEADER));
        }
        Some((Flags(flags), name(bytes.first_chunk()?), STAMPED_HEADER))
    }

    /// Decodes the header of a row with a shortcut.
    #[cold]
    fn decode_shortcut(flags: u8, shape: Shape, version: VersionStamp, row: &[u8]) -> Option<Self> {
        if flags & (FIRST | FAT | TOMBSTONE) != 0 || flags & (BOUND | LINK) == BOUND | LINK {
            return None;
        }
        let code: [u8; 3] = *row.get(15..)?.first_chunk()?;
        let (updates, shortcut) = if flags & BOUND != 0 {
            (
                0,
                Shortcut::Absent(shortcut::decode_bound(version.stamp, code)),
            )
        } else {
            let link = Link {
                version: shortcut::decode_link(row.get(STAMPED_HEADER..HEADER_MAX)?.first_chunk()?),
                cover: u16::from_le_bytes([code[1], code[2]]),
            };
            (code[0], Shortcut::Link(link))
        };
        Some(Self {
            shape,
            writer: Some(Writer {
                version,
                first: false,
            }),
            fat: false,
            updates,
            since: 0,
            shortcut,
        })
    }

    /// Encodes the header; the first [`Header::length`] bytes of the result count.
    #[inline]
    pub fn encode(&self) -> EncodedHeader {
        let mut bytes = [0; HEADER_MAX];
        debug_assert!(
            !self.fat || self.writer.is_some(),
            "a frozen row has no versions"
        );
        debug_assert!(
            self.shortcut == Shortcut::None
                || self.writer.is_some_and(|writer| !writer.first)
                    && !self.fat
                    && !self.shape.tombstone,
            "V44"
        );
        let mut flags = self.shape.reduced_flags();
        if let Some(writer) = self.writer {
            flags |= STAMPED | if writer.first { FIRST } else { 0 };
            flags |= if self.fat { FAT } else { 0 };
            bytes[1..3].copy_from_slice(&writer.version.slot.get().to_le_bytes());
            bytes[3..11].copy_from_slice(&writer.version.stamp.get().to_le_bytes());
            bytes[11..15].copy_from_slice(&writer.version.command.to_le_bytes());
            bytes[15] = self.updates;
            bytes[16..18].copy_from_slice(&self.since.to_le_bytes());
            match &self.shortcut {
                Shortcut::None => {}
                Shortcut::Absent(below) => {
                    flags |= BOUND;
                    let code = shortcut::encode_bound(writer.version.stamp, *below);
                    bytes[15..18].copy_from_slice(&code);
                }
                Shortcut::Link(link) => {
                    flags |= LINK;
                    bytes[16..18].copy_from_slice(&link.cover.to_le_bytes());
                    bytes[STAMPED_HEADER..].copy_from_slice(&shortcut::encode_link(&link.version));
                }
            }
        }
        bytes[0] = flags;
        EncodedHeader {
            bytes,
            length: self.length(),
        }
    }
}

/// The bytes of a header.
#[derive(Clone, Copy, Debug)]
pub struct EncodedHeader {
    bytes: [u8; HEADER_MAX],
    length: usize,
}

impl std::ops::Deref for EncodedHeader {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Header and body of the newest version of a row in a leaf, whatever its form; `None` if the bytes are no row.
#[inline]
pub fn newest(row: &[u8]) -> Option<(Header, &[u8])> {
    let header = Header::decode(row)?;
    let body = if header.fat {
        fat::layout::body(row)?
    } else {
        &row[header.length()..]
    };
    Some((header, body))
}

/// Appends the reduced form of `row` to `out` (V3): the newest version, frozen. False if the bytes are no row: then
/// they are passed on as they are, and `verify` names them.
pub fn reduce(row: &[u8], out: &mut Vec<u8>) -> bool {
    match newest(row) {
        Some((header, body)) => {
            out.push(header.shape.reduced_flags());
            out.extend_from_slice(body);
            true
        }
        None => {
            out.extend_from_slice(row);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(slot: u16, stamp: u64, command: u32) -> VersionStamp {
        VersionStamp {
            slot: SlotId(slot),
            stamp: Timestamp(stamp),
            command,
        }
    }

    #[test]
    fn header_is_decoded_as_it_was_encoded() {
        for shape in [Shape::INLINE, Shape::DELETED, Shape::CHAINED] {
            for header in [
                Header::frozen(shape),
                Header::stamped(shape, version(7, 1 << 50, 3), true),
                Header {
                    updates: 9,
                    since: 77,
                    ..Header::stamped(shape, version(1, 2, 3), false)
                },
                Header {
                    fat: true,
                    ..Header::stamped(shape, version(1, 2, 3), false)
                },
                Header {
                    shortcut: match shape.tombstone {
                        true => Shortcut::None,
                        false => Shortcut::Absent(Timestamp(1000)),
                    },
                    ..Header::stamped(shape, version(1, 5000, 3), false)
                },
                Header {
                    updates: 5,
                    shortcut: match shape.tombstone {
                        true => Shortcut::None,
                        false => Shortcut::Link(Link {
                            version: version(9, 1 << 40, 77),
                            cover: 0x8001,
                        }),
                    },
                    ..Header::stamped(shape, version(1, 1 << 41, 3), false)
                },
            ] {
                let mut row = header.encode().to_vec();
                assert_eq!(row.len(), header.length());
                row.extend_from_slice(b"body");
                assert_eq!(Header::decode(&row), Some(header));
            }
        }
        assert_eq!(Header::frozen(Shape::INLINE).encode().len(), 1);
        assert_eq!(
            Header::stamped(Shape::INLINE, version(1, 1, 1), true)
                .encode()
                .len(),
            18
        );
    }

    #[test]
    fn foreign_bytes_are_no_header() {
        assert_eq!(Header::decode(&[]), None);
        assert_eq!(Header::decode(&[128]), None, "unknown flag");
        for flag in [BOUND, LINK] {
            assert_eq!(
                Header::decode(&[flag]),
                None,
                "a frozen row has no shortcut"
            );
            for other in [FIRST, FAT, TOMBSTONE, BOUND | LINK] {
                let mut row = [0; HEADER_MAX];
                row[0] = STAMPED | flag | other;
                assert_eq!(Header::decode(&row), None, "V44: {flag} with {other}");
            }
        }
        assert_eq!(
            Header::decode(&[&[STAMPED | LINK][..], &[0; HEADER_MAX - 2]].concat()),
            None,
            "cut in its link"
        );
        assert_eq!(
            Header::decode(&[FAT]),
            None,
            "a frozen row holds no versions"
        );
        assert_eq!(
            Header::decode(&[TOMBSTONE | OVERFLOW]),
            None,
            "a tombstone has no chain"
        );
        assert_eq!(
            Header::decode(&[FIRST]),
            None,
            "only a stamped row can be a first version"
        );
        assert_eq!(Header::decode(&[STAMPED, 1, 2, 3]), None, "cut short");
    }

    #[test]
    fn reduced_row_keeps_shape_and_body_only() {
        let mut row = Header::stamped(Shape::CHAINED, version(3, 4, 5), true)
            .encode()
            .to_vec();
        row.extend_from_slice(b"reference");
        let mut out = Vec::new();
        assert!(reduce(&row, &mut out));
        assert_eq!(Header::decode(&out), Some(Header::frozen(Shape::CHAINED)));
        assert_eq!(&out[1..], b"reference");
        let mut twice = Vec::new();
        assert!(reduce(&out, &mut twice));
        assert_eq!(out, twice, "reducing is idempotent");
    }
}
