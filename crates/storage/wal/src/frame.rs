//! The frames of the log on disk: segment headers, chunks of a slot's records, trailers of rounds.
//!
//! Layout: a segment is a header block, then rounds back to back, each aligned to 4 KiB. A round
//! is chunks (header, records, zeros to a multiple of 8), a trailer, zeros to a multiple of 4 KiB.
//!
//! | segment header | | chunk header | | trailer | |
//! | --- | --- | --- | --- | --- | --- |
//! | 0 | u64 magic `VELLUMLG` | 0 | u32 magic `VLCK` | 0 | u32 magic `VLTR` |
//! | 8 | u32 format version | 4 | u32 crc of 8..80 | 4 | u32 crc of 8..64 |
//! | 12 | u32 crc of the block but this word | 8 | u64 segment number | 8 | u64 segment number |
//! | 16 | u64 segment number | 16 | u64 round | 16 | u64 round |
//! | 24 | u64 incarnation | 24 | u64 last durable round | 24 | u64 last durable round |
//! | 32 | u64 first round | 32 | u64 lsn of the first record | 32 | u64 C |
//! | 40 | u64 segment bytes | 40 | u64 stamp of the transaction in progress | 40 | u64 M |
//! | 48 | u64 previous incarnation | 48 | u32 bytes of records | 48 | u32 bytes of the round |
//! | 56 | u64 its last round | 52 | u32 crc of the records | 52 | u32 number of chunks |
//! | 64 | u64 its C | 56 | u16 slot, u16 attempt | 56 | u32 crc of the chunks' crcs |
//! | 72 | u64 its M | 60 | u32 offset of the slot's chunk before | 60 | u32 attempt |
//! | 80 | u64 last durable round | 64 | u64 its segment, 0 for none | | |
//! | | | 72 | u64 lsn of its first record | | |
//!
//! The attempt counts writes of rounds that failed: a round is written again at its place, and
//! what an earlier attempt left behind it has a lower attempt and is void.
//!
//! Invariants:
//! - I1 A segment's number is used once, ever: it is the generation of the file's content, and the
//!   crcs are seeded with it. What an earlier use of the file left behind fails its crc.
//! - I2 Decoding is total.
//! - I3 What counts something is below [`NUMBER_MAX`] in every log that there can be. Anything else under a right checksum is
//!   damage, and found before somebody adds to it.

use vellum_base::checksum::{checksum, checksum_append};
use vellum_base::{Gsn, Lsn, SlotId, Timestamp};

use crate::config::{BLOCK_BYTES, Verdict};

pub(crate) const CHUNK_HEADER_BYTES: usize = 80;
pub(crate) const TRAILER_BYTES: usize = 64;
const SEGMENT_HEADER_BYTES: usize = 88;
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"VLCK");
const TRAILER_MAGIC: u32 = u32::from_le_bytes(*b"VLTR");
const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"VELLUMLG");
/// The format that this build writes, and the only one that it reads.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// See I3: what adds up two such numbers does not overflow.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// The first number that violates I3.
pub(crate) fn impossible(numbers: &[u64]) -> Option<u64> {
    numbers.iter().copied().find(|number| *number >= NUMBER_MAX)
}

/// Rounds up to the alignment of frames.
pub(crate) const fn align8(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

/// Rounds up to whole blocks.
pub(crate) const fn align_block(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}

fn put32(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Fields at fixed offsets of a head whose length was checked once.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        let mut bytes = [0; 2];
        bytes.copy_from_slice(&self.0[at..at + 2]);
        u16::from_le_bytes(bytes)
    }
    fn u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(bytes)
    }
    fn u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    }
}

/// Header block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub segment: u64,
    pub incarnation: u64,
    pub first_round: u64,
    pub segment_bytes: u64,
    pub previous: Verdict,
    pub last_durable: u64,
}

/// Why a block is no segment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSegment {
    /// Zeros or rubbish: a file that was never or not completely taken into use.
    Unused,
    /// A header of a format that this build does not read.
    Foreign(u32),
    /// A whole header with a number that no segment has (I3).
    Impossible(u64),
}

impl SegmentHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; BLOCK_BYTES as usize];
        put64(&mut out, 0, SEGMENT_MAGIC);
        put32(&mut out, 8, FORMAT_VERSION);
        put64(&mut out, 16, self.segment);
        put64(&mut out, 24, self.incarnation);
        put64(&mut out, 32, self.first_round);
        put64(&mut out, 40, self.segment_bytes);
        put64(&mut out, 48, self.previous.incarnation);
        put64(&mut out, 56, self.previous.last_round);
        put64(&mut out, 64, self.previous.c.0);
        put64(&mut out, 72, self.previous.m.0);
        put64(&mut out, 80, self.last_durable);
        let crc = Self::crc(&out);
        put32(&mut out, 12, crc);
        out
    }

    fn crc(block: &[u8]) -> u32 {
        checksum_append(checksum_append(0, &block[0..12]), &block[16..])
    }

    pub fn decode(block: &[u8]) -> Result<Self, NoSegment> {
        if block.len() < SEGMENT_HEADER_BYTES {
            return Err(NoSegment::Unused);
        }
        let fields = Fields(block);
        if fields.u64(0) != SEGMENT_MAGIC {
            return Err(NoSegment::Unused);
        }
        // The version comes before the crc: another version may sum up differently.
        if fields.u32(8) != FORMAT_VERSION {
            return Err(NoSegment::Foreign(fields.u32(8)));
        }
        if fields.u32(12) != Self::crc(block) {
            return Err(NoSegment::Unused);
        }
        let numbers: [u64; 9] = std::array::from_fn(|index| fields.u64(16 + 8 * index));
        // Segments, incarnations and rounds are counted from 1.
        if let Some(zero) = numbers[..3].iter().find(|number| **number == 0) {
            return Err(NoSegment::Impossible(*zero));
        }
        if let Some(number) = impossible(&numbers) {
            return Err(NoSegment::Impossible(number));
        }
        Ok(Self {
            segment: fields.u64(16),
            incarnation: fields.u64(24),
            first_round: fields.u64(32),
            segment_bytes: fields.u64(40),
            previous: Verdict {
                incarnation: fields.u64(48),
                last_round: fields.u64(56),
                c: Timestamp(fields.u64(64)),
                m: Gsn(fields.u64(72)),
            },
            last_durable: fields.u64(80),
        })
    }
}

/// Header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub segment: u64,
    pub round: u64,
    pub last_durable: u64,
    pub start: Lsn,
    pub stamp: Timestamp,
    pub length: u32,
    pub records_crc: u32,
    pub slot: SlotId,
    pub attempt: u16,
    pub before_segment: u64,
    pub before_offset: u32,
    pub before_start: Lsn,
}

impl ChunkHeader {
    /// Writes the header to `out` (80 bytes); returns its crc.
    pub fn encode(&self, out: &mut [u8]) -> u32 {
        debug_assert_eq!(out.len(), CHUNK_HEADER_BYTES);
        put32(out, 0, CHUNK_MAGIC);
        put64(out, 8, self.segment);
        put64(out, 16, self.round);
        put64(out, 24, self.last_durable);
        put64(out, 32, self.start.0);
        put64(out, 40, self.stamp.0);
        put32(out, 48, self.length);
        put32(out, 52, self.records_crc);
        put32(
            out,
            56,
            u32::from(self.slot.0) | u32::from(self.attempt) << 16,
        );
        put32(out, 60, self.before_offset);
        put64(out, 64, self.before_segment);
        put64(out, 72, self.before_start.0);
        let crc = checksum(self.segment, &out[8..]);
        put32(out, 4, crc);
        crc
    }

    /// See I3.
    pub fn impossible(&self) -> Option<u64> {
        let (start, before) = (self.start.0, self.before_start.0);
        let counted = [self.round, self.last_durable, start, self.stamp.0];
        impossible(&counted).or_else(|| impossible(&[self.before_segment, before]))
    }

    /// The header at the front of `bytes` if it is whole and belongs to `segment`, and its crc.
    pub fn decode(bytes: &[u8], segment: u64) -> Option<(Self, u32)> {
        let head = bytes.get(..CHUNK_HEADER_BYTES)?;
        let fields = Fields(head);
        if fields.u32(0) != CHUNK_MAGIC
            || fields.u64(8) != segment
            || fields.u32(4) != checksum(segment, &head[8..])
        {
            return None;
        }
        let header = Self {
            segment,
            round: fields.u64(16),
            last_durable: fields.u64(24),
            start: Lsn(fields.u64(32)),
            stamp: Timestamp(fields.u64(40)),
            length: fields.u32(48),
            records_crc: fields.u32(52),
            slot: SlotId(fields.u16(56)),
            attempt: fields.u16(58),
            before_offset: fields.u32(60),
            before_segment: fields.u64(64),
            before_start: Lsn(fields.u64(72)),
        };
        Some((header, fields.u32(4)))
    }
}

/// Trailer of a round: what makes it complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub segment: u64,
    pub round: u64,
    pub last_durable: u64,
    pub c: Timestamp,
    pub m: Gsn,
    /// Bytes of the whole round, padding included.
    pub bytes: u32,
    pub chunks: u32,
    /// Crc over the crcs of the chunk headers, in order.
    pub chunks_crc: u32,
    pub attempt: u16,
}

impl Trailer {
    /// Writes the trailer to `out` (64 bytes).
    pub fn encode(&self, out: &mut [u8]) {
        debug_assert_eq!(out.len(), TRAILER_BYTES);
        put32(out, 0, TRAILER_MAGIC);
        put64(out, 8, self.segment);
        put64(out, 16, self.round);
        put64(out, 24, self.last_durable);
        put64(out, 32, self.c.0);
        put64(out, 40, self.m.0);
        put32(out, 48, self.bytes);
        put32(out, 52, self.chunks);
        put32(out, 56, self.chunks_crc);
        put32(out, 60, u32::from(self.attempt));
        let crc = checksum(self.segment, &out[8..]);
        put32(out, 4, crc);
    }

    /// See I3.
    pub fn impossible(&self) -> Option<u64> {
        impossible(&[self.round, self.last_durable, self.c.0, self.m.0])
    }

    /// The trailer at the front of `bytes` if it is whole and belongs to `segment`.
    pub fn decode(bytes: &[u8], segment: u64) -> Option<Self> {
        let head = bytes.get(..TRAILER_BYTES)?;
        let fields = Fields(head);
        if fields.u32(0) != TRAILER_MAGIC
            || fields.u64(8) != segment
            || fields.u32(4) != checksum(segment, &head[8..])
        {
            return None;
        }
        Some(Self {
            segment,
            round: fields.u64(16),
            last_durable: fields.u64(24),
            c: Timestamp(fields.u64(32)),
            m: Gsn(fields.u64(40)),
            bytes: fields.u32(48),
            chunks: fields.u32(52),
            chunks_crc: fields.u32(56),
            attempt: fields.u16(60),
        })
    }
}

/// Continues the crc of chunk crcs.
pub(crate) fn chain_crc(so_far: u32, crc: u32) -> u32 {
    checksum_append(so_far, &crc.to_le_bytes())
}

/// The crc of a chunk's records.
pub(crate) fn records_crc(segment: u64, records: &[u8]) -> u32 {
    checksum(segment, records)
}

/// A frame found at some offset: evidence of what was durable when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub round: u64,
    pub last_durable: u64,
}

/// The round and last durable round that a whole frame header at the front of `bytes` names.
pub(crate) fn evidence(bytes: &[u8], segment: u64) -> Option<Evidence> {
    if let Some((chunk, _)) = ChunkHeader::decode(bytes, segment) {
        return Some(Evidence {
            round: chunk.round,
            last_durable: chunk.last_durable,
        });
    }
    Trailer::decode(bytes, segment).map(|t| Evidence {
        round: t.round,
        last_durable: t.last_durable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_back_and_belong_to_one_segment() {
        let chunk = ChunkHeader {
            segment: 9,
            round: 5,
            last_durable: 4,
            start: Lsn(100),
            stamp: Timestamp(77),
            length: 30,
            records_crc: 1,
            slot: SlotId(3),
            attempt: 2,
            before_segment: 8,
            before_offset: 4096,
            before_start: Lsn(60),
        };
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        let crc = chunk.encode(&mut bytes);
        assert_eq!(ChunkHeader::decode(&bytes, 9), Some((chunk, crc)));
        assert_eq!(ChunkHeader::decode(&bytes, 8), None);
        let trailer = Trailer {
            segment: 9,
            round: 5,
            last_durable: 4,
            c: Timestamp(1),
            m: Gsn(2),
            bytes: 4096,
            chunks: 1,
            chunks_crc: 7,
            attempt: 1,
        };
        let mut bytes = [0; TRAILER_BYTES];
        trailer.encode(&mut bytes);
        assert_eq!(Trailer::decode(&bytes, 9), Some(trailer));
        for bit in 0..TRAILER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Trailer::decode(&flipped, 9), None, "bit {bit}");
        }
    }

    #[test]
    fn segment_header_of_another_version_is_foreign_not_unused() {
        let header = SegmentHeader {
            segment: 4,
            incarnation: 2,
            first_round: 17,
            segment_bytes: 65536,
            previous: Verdict {
                incarnation: 1,
                last_round: 16,
                c: Timestamp(5),
                m: Gsn(6),
            },
            last_durable: 16,
        };
        let mut block = header.encode();
        assert_eq!(SegmentHeader::decode(&block), Ok(header));
        block[8] = 2;
        assert_eq!(SegmentHeader::decode(&block), Err(NoSegment::Foreign(2)));
        block[8] = 1;
        block[20] ^= 1;
        assert_eq!(SegmentHeader::decode(&block), Err(NoSegment::Unused));
    }

    #[test]
    fn regress_segment_header_with_impossible_numbers_is_damage() {
        let header = SegmentHeader {
            segment: 4,
            incarnation: 2,
            first_round: 17,
            segment_bytes: 65536,
            previous: Verdict {
                incarnation: 1,
                last_round: 16,
                c: Timestamp(5),
                m: Gsn(6),
            },
            last_durable: 16,
        };
        for at in (16..88).step_by(8) {
            for number in [u64::MAX, 1 << 63, NUMBER_MAX] {
                let mut block = header.encode();
                put64(&mut block, at, number);
                let crc = SegmentHeader::crc(&block);
                put32(&mut block, 12, crc);
                let found = SegmentHeader::decode(&block);
                assert_eq!(found, Err(NoSegment::Impossible(number)), "byte {at}");
            }
        }
        let first = SegmentHeader {
            first_round: 0,
            ..header
        };
        let found = SegmentHeader::decode(&first.encode());
        assert_eq!(found, Err(NoSegment::Impossible(0)));
    }
}
