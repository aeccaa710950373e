//! The log records that mark a transaction's life. Kinds 1..=15 of the log are this crate's.
//!
//! Layout: no page, no tree, no flags, no undo bytes; the redo bytes are (little-endian)
//!
//! | kind | record | redo bytes |
//! | --- | --- | --- |
//! | 1 | begin | `0 u64 stamp`, `8 u16 slot` |
//! | 2 | commit | `0 u64 stamp`, `8 u64 commit timestamp` |
//! | 3 | abort (everything is compensated) | `0 u64 stamp` |
//! | 4 | verdict of an earlier incarnation | `0 u64 incarnation`, `8 u64 last round`, `16 u64 C`, `24 u64 M` |
//! | 5..=15 | not used | |
//!
//! Decoding is total: bytes that are none of these give an error, never a panic.

use vellum_base::codec::{Put, Reader};
use vellum_base::{Gsn, PageId, Result, SlotId, StorageError, Timestamp};
use vellum_wal::{RECORD_HEADER_BYTES, Record, RecordHeader, Verdict};

/// First and last kind of this crate.
pub const KINDS: std::ops::RangeInclusive<u8> = 1..=15;

const BEGIN: u8 = 1;
const COMMIT: u8 = 2;
const ABORT: u8 = 3;
const VERDICT: u8 = 4;

/// A decoded record of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionRecord {
    /// A transaction drew its stamp.
    Begin {
        /// Its stamp.
        stamp: Timestamp,
        /// Its slot.
        slot: SlotId,
    },
    /// It committed.
    Commit {
        /// Its stamp.
        stamp: Timestamp,
        /// When.
        commit_ts: Timestamp,
    },
    /// It was rolled back: every undoable record of it is compensated by now.
    Abort {
        /// Its stamp.
        stamp: Timestamp,
    },
    /// How an earlier incarnation ended, fixed for ever by the recovery that read it first (R8).
    Verdict(Verdict),
}

impl TransactionRecord {
    /// Every kind that is used.
    pub const KINDS: [u8; 4] = [BEGIN, COMMIT, ABORT, VERDICT];

    /// Longest redo part of a record of this crate.
    pub const REDO_BYTES_MAX: usize = 32;

    /// Log bytes to reserve for one record of this crate, whichever it is.
    pub const BYTES_MAX: usize = RECORD_HEADER_BYTES + Self::REDO_BYTES_MAX;

    const fn kind(&self) -> u8 {
        match self {
            Self::Begin { .. } => BEGIN,
            Self::Commit { .. } => COMMIT,
            Self::Abort { .. } => ABORT,
            Self::Verdict(_) => VERDICT,
        }
    }

    /// The header of the record.
    pub fn header(&self, gsn: Gsn) -> RecordHeader {
        RecordHeader {
            kind: self.kind(),
            flags: 0,
            page: PageId::ZERO,
            tree: PageId::ZERO,
            gsn,
        }
    }

    /// Appends the redo bytes to `out`.
    pub fn encode(&self, out: &mut impl Put) {
        match self {
            Self::Begin { stamp, slot } => {
                out.put_u64(stamp.get());
                out.put_u16(slot.get());
            }
            Self::Commit { stamp, commit_ts } => {
                out.put_u64(stamp.get());
                out.put_u64(commit_ts.get());
            }
            Self::Abort { stamp } => out.put_u64(stamp.get()),
            Self::Verdict(verdict) => {
                out.put_u64(verdict.incarnation);
                out.put_u64(verdict.last_round);
                out.put_u64(verdict.c.get());
                out.put_u64(verdict.m.get());
            }
        }
    }

    /// Decodes `record`; `None` for a record of another crate.
    ///
    /// # Errors
    /// [`StorageError::Corruption`] for an unknown kind of this crate or bytes of another length.
    pub fn decode(record: &Record<'_>) -> Result<Option<Self>> {
        if !KINDS.contains(&record.header.kind) {
            return Ok(None);
        }
        let mut reader = Reader::new(record.redo);
        let decoded = Self::decode_redo(record.header.kind, &mut reader);
        match decoded {
            Some(decoded) if reader.rest().is_empty() && record.undo.is_empty() => {
                Ok(Some(decoded))
            }
            _ => Err(StorageError::Corruption {
                file: "log".into(),
                page: None,
                what: "transaction record of this kind and length",
                expected: u64::from(VERDICT),
                found: u64::from(record.header.kind),
            }),
        }
    }

    fn decode_redo(kind: u8, reader: &mut Reader<'_>) -> Option<Self> {
        let mut ts = || reader.u64().map(Timestamp);
        Some(match kind {
            BEGIN => Self::Begin {
                stamp: ts()?,
                slot: SlotId(reader.u16()?),
            },
            COMMIT => Self::Commit {
                stamp: ts()?,
                commit_ts: ts()?,
            },
            ABORT => Self::Abort { stamp: ts()? },
            VERDICT => Self::Verdict(Verdict {
                incarnation: reader.u64()?,
                last_round: reader.u64()?,
                c: Timestamp(reader.u64()?),
                m: Gsn(reader.u64()?),
            }),
            _ => return None,
        })
    }
}

/// Redo bytes on the stack: commit is a hot path.
#[derive(Debug, Default)]
pub(crate) struct RedoBytes {
    bytes: [u8; TransactionRecord::REDO_BYTES_MAX],
    length: usize,
}

impl RedoBytes {
    pub(crate) fn of(record: &TransactionRecord) -> Self {
        let mut out = Self::default();
        record.encode(&mut out);
        out
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Put for RedoBytes {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use vellum_base::Lsn;
    use vellum_base::random::Random;

    fn samples() -> [TransactionRecord; 4] {
        let stamp = Timestamp(7);
        let (c, m) = (Timestamp(5), Gsn(6));
        [
            TransactionRecord::Begin {
                stamp,
                slot: SlotId(3),
            },
            TransactionRecord::Commit {
                stamp,
                commit_ts: Timestamp(9),
            },
            TransactionRecord::Abort { stamp },
            TransactionRecord::Verdict(Verdict {
                incarnation: 1,
                last_round: 4,
                c,
                m,
            }),
        ]
    }

    #[test]
    fn records_read_back_and_other_lengths_are_corruption() {
        assert_eq!(
            samples().map(|sample| sample.kind()),
            TransactionRecord::KINDS
        );
        for sample in samples() {
            let redo = RedoBytes::of(&sample);
            let header = sample.header(Gsn(1));
            let read = |redo| {
                TransactionRecord::decode(&Record {
                    header,
                    redo,
                    undo: &[],
                    lsn: Lsn(0),
                })
            };
            assert_eq!(read(redo.as_slice()).unwrap(), Some(sample));
            assert!(read(&redo.as_slice()[1..]).is_err());
            assert!(read(&[redo.as_slice(), &[0]].concat()).is_err());
        }
    }

    #[test]
    fn prop_any_bytes_decode_or_fail_without_a_panic() {
        let seed = crate::testing::seed("prop_any_bytes");
        let mut random = Random::new(seed);
        for _ in 0..10_000 {
            let mut redo = vec![0; random.below(40) as usize];
            random.fill(&mut redo);
            let mut header = samples()[0].header(Gsn(1));
            header.kind = random.below(20) as u8;
            let record = Record {
                header,
                redo: &redo,
                undo: &[],
                lsn: Lsn(0),
            };
            let decoded = TransactionRecord::decode(&record);
            assert_eq!(matches!(decoded, Ok(None)), !KINDS.contains(&header.kind));
        }
    }
}
