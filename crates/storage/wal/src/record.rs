//! Log records: one record changes one page, or marks an event of a transaction.
//!
//! Layout (little-endian; a record is not padded):
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | length of the whole record |
//! | 4 | 1 | kind (1..=15 `txn`, 16..=63 `btree`) |
//! | 5 | 1 | flags |
//! | 6 | 2 | length of the redo bytes |
//! | 8 | 8 | GSN |
//! | 16 | 8 | page, 0 for none |
//! | 24 | 8 | tree (root page id), 0 for none |
//! | 32 | | redo bytes, then undo bytes |
//!
//! An undoable record starts its undo bytes with `stamp u64, command u32`; a compensation record
//! with `stamp u64, compensated gsn u64`.
//!
//! Invariants:
//! - I1 Decoding is total: any bytes give a record or `None`.
//! - I2 A record lies inside one chunk (see `frame`).
//!
//! Not here: what redo and undo bytes mean (`btree`, `version`, `txn`).

use vellum_base::{Gsn, Lsn, PageId, Timestamp};

/// Bytes of a record's header.
pub const RECORD_HEADER_BYTES: usize = 32;

/// The record has undo bytes that rollback must apply.
pub const FLAG_UNDOABLE: u8 = 1;
/// The record redoes an undo step; its undo bytes name what it compensates.
pub const FLAG_COMPENSATION: u8 = 1 << 1;
/// The first record of its structure change.
pub const FLAG_FIRST: u8 = 1 << 2;
/// More records of the same structure change (and GSN) follow.
pub const FLAG_MORE: u8 = 1 << 3;
/// All flags that this version knows.
pub const FLAGS_KNOWN: u8 = FLAG_UNDOABLE | FLAG_COMPENSATION | FLAG_FIRST | FLAG_MORE;

/// Longest redo part of a record.
pub const REDO_BYTES_MAX: usize = u16::MAX as usize;

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// What kind of change; the owner of the number decodes redo and undo.
    pub kind: u8,
    /// A set of `FLAG_…`.
    pub flags: u8,
    /// The page that the record changes; [`PageId::ZERO`] for an event of a transaction.
    pub page: PageId,
    /// Root page of the tree that the page belongs to; [`PageId::ZERO`] for none.
    pub tree: PageId,
    /// Sequence number, drawn by [`crate::SlotGuard::draw`].
    pub gsn: Gsn,
}

impl RecordHeader {
    /// True if `flag` is set.
    #[inline]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The 32 bytes of the header of a record with that much redo and undo.
    #[inline]
    pub(crate) fn encode(&self, redo: usize, undo: usize) -> [u8; RECORD_HEADER_BYTES] {
        debug_assert!(redo <= REDO_BYTES_MAX);
        let length = u32::try_from(RECORD_HEADER_BYTES + redo + undo)
            .expect("a reserved record is far below 4 GiB");
        let mut out = [0; RECORD_HEADER_BYTES];
        out[0..4].copy_from_slice(&length.to_le_bytes());
        out[4] = self.kind;
        out[5] = self.flags;
        out[6..8].copy_from_slice(&(redo as u16).to_le_bytes());
        out[8..16].copy_from_slice(&self.gsn.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.page.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.tree.0.to_le_bytes());
        out
    }
}

/// A decoded record; redo and undo point into the bytes that it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The fixed part.
    pub header: RecordHeader,
    /// What to do to the page again after a crash.
    pub redo: &'a [u8],
    /// What to do to roll the change back.
    pub undo: &'a [u8],
    /// Where the record starts in its slot's log.
    pub lsn: Lsn,
}

impl<'a> Record<'a> {
    /// Decodes the record at the front of `bytes`, which lies at `lsn`. `None` if the bytes are
    /// no record.
    pub fn decode(bytes: &'a [u8], lsn: Lsn) -> Option<Self> {
        let head = bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
        let word = |at: usize| {
            let mut value = [0; 8];
            value.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(value)
        };
        let length = word(0) as u32 as usize;
        let redo_length = usize::from(u16::from_le_bytes([head[6], head[7]]));
        if length < RECORD_HEADER_BYTES + redo_length || head[5] & !FLAGS_KNOWN != 0 {
            return None;
        }
        let body = bytes.get(RECORD_HEADER_BYTES..length)?;
        let (redo, undo) = body.split_at_checked(redo_length)?;
        let header = RecordHeader {
            kind: head[4],
            flags: head[5],
            gsn: Gsn(word(8)),
            page: PageId(word(16)),
            tree: PageId(word(24)),
        };
        Some(Self {
            header,
            redo,
            undo,
            lsn,
        })
    }

    /// Bytes of the whole record in the log.
    #[inline]
    pub fn length(&self) -> usize {
        RECORD_HEADER_BYTES + self.redo.len() + self.undo.len()
    }

    /// Appends the record in its form in the log to `out`.
    pub fn encode_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header.encode(self.redo.len(), self.undo.len()));
        out.extend_from_slice(self.redo);
        out.extend_from_slice(self.undo);
    }

    /// The stamp that starts the undo bytes of an undoable or compensation record. `None` for
    /// other records and where the bytes are too short.
    pub fn stamp(&self) -> Option<Timestamp> {
        if !self.header.has(FLAG_UNDOABLE | FLAG_COMPENSATION) {
            return None;
        }
        self.undo
            .first_chunk()
            .map(|b| Timestamp(u64::from_le_bytes(*b)))
    }

    /// The GSN down to which (inclusive) a compensation record voids its transaction's records.
    pub fn compensated(&self) -> Option<Gsn> {
        if !self.header.has(FLAG_COMPENSATION) {
            return None;
        }
        self.undo
            .get(8..)?
            .first_chunk()
            .map(|b| Gsn(u64::from_le_bytes(*b)))
    }
}

/// The records of a run of bytes, in order; ends early (with `broken` set) at bytes that are no
/// record.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    lsn: Lsn,
    broken: bool,
}

impl<'a> Records<'a> {
    /// Records from `bytes`, the first of which lies at `lsn`.
    pub fn new(bytes: &'a [u8], lsn: Lsn) -> Self {
        Self {
            bytes,
            lsn,
            broken: false,
        }
    }

    /// True once bytes were met that are no record.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if self.bytes.is_empty() || self.broken {
            return None;
        }
        let Some(record) = Record::decode(self.bytes, self.lsn) else {
            self.broken = true;
            return None;
        };
        let length = record.length();
        // A chunk that says it stands at the end of all positions is damaged, whatever its checksum.
        let Some(next) = self.lsn.0.checked_add(length as u64) else {
            self.broken = true;
            return None;
        };
        self.bytes = &self.bytes[length..];
        self.lsn = Lsn(next);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    #[test]
    fn regress_records_at_the_end_of_all_positions_are_damage() {
        let bytes = sample(0, b"redo", b"");
        let mut records = Records::new(&bytes, Lsn(u64::MAX - 1));
        assert!(records.next().is_none(), "no overflow, and no record");
    }

    fn sample(flags: u8, redo: &[u8], undo: &[u8]) -> Vec<u8> {
        let header = RecordHeader {
            kind: 17,
            flags,
            page: PageId(3),
            tree: PageId(2),
            gsn: Gsn(99),
        };
        let mut bytes = header.encode(redo.len(), undo.len()).to_vec();
        bytes.extend_from_slice(redo);
        bytes.extend_from_slice(undo);
        bytes
    }

    #[test]
    fn record_reads_back_and_names_what_it_compensates() {
        let mut undo = 7_u64.to_le_bytes().to_vec();
        undo.extend_from_slice(&55_u64.to_le_bytes());
        let bytes = sample(FLAG_COMPENSATION, b"redo", &undo);
        let record = Record::decode(&bytes, Lsn(10)).expect("a valid record");
        assert_eq!((record.redo, record.undo), (&b"redo"[..], &undo[..]));
        assert_eq!(record.stamp(), Some(Timestamp(7)));
        assert_eq!(record.compensated(), Some(Gsn(55)));
        assert_eq!(record.length(), bytes.len());
    }

    #[test]
    fn truncated_record_is_no_record() {
        let bytes = sample(0, b"abc", b"defg");
        for cut in 0..bytes.len() {
            assert!(
                Record::decode(&bytes[..cut], Lsn(0)).is_none(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn prop_garbage_never_panics_and_never_reads_outside() {
        let seed = vellum_base::replay::seed();
        println!("replay with VELLUM_SEED={seed} cargo test -p vellum-wal prop_garbage");
        let mut random = Random::new(seed);
        for _ in 0..2000 {
            let mut bytes = sample(FLAG_UNDOABLE, b"some redo bytes", b"undo bytes");
            for _ in 0..random.between(1, 6) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            for record in Records::new(&bytes, Lsn(0)) {
                let _ = (record.stamp(), record.compensated());
                assert!(record.length() <= bytes.len());
            }
        }
    }
}
