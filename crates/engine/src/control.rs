//! The control file: where recovery starts. Small, replaced atomically.
//!
//! Layout (little-endian, 128 bytes):
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 8 | magic `VELLUMCT` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | page size in bytes |
//! | 16 | 8 | incarnation: how often the database was opened for writing |
//! | 24 | 8 | checkpoint: log segment |
//! | 32 | 8 | checkpoint: offset in it |
//! | 40 | 8 | checkpoint: number of the first round to redo |
//! | 48 | 8 | a timestamp above which nothing was drawn before the checkpoint |
//! | 56 | 8 | incarnation of the log at the checkpoint |
//! | 64 | 8 | root page of the catalog |
//! | 72 | 8 | root page of `pending_free` |
//! | 80 | 8 | root page of `undo` |
//! | 88 | 4 | next table id |
//! | 92 | 1 | 1: closed cleanly, nothing to redo or undo |
//! | 93 | 3 | zero |
//! | 96 | 8 | the hardened horizon (C) that was known at the checkpoint |
//! | 104 | 8 | the durable GSN (M) that was known at the checkpoint |
//! | 112 | 8 | log segment where analysis starts: the oldest that the undo of a live transaction needed |
//! | 120 | 4 | zero |
//! | 124 | 4 | CRC-32C of bytes 0..124 |
//!
//! Crash: the file is the old or the new one, whole (`io::Directory::write_atomic`). It names a
//! checkpoint only after every page change before that checkpoint is in the data file.

use vellum_base::checksum::checksum;
use vellum_base::codec::{Put, Reader};
use vellum_base::{Gsn, PageId, Result, StorageError, Timestamp};
use vellum_io::Directory;
use vellum_wal::{LogPosition, Verdict};

/// Name of the control file in the database directory.
pub const CONTROL_FILE: &str = "control";

const MAGIC: u64 = u64::from_le_bytes(*b"VELLUMCT");
const FORMAT_VERSION: u32 = 1;
const BYTES: usize = 128;
const CHECKED: usize = BYTES - 4;
const CLEAN_AT: usize = 92;
/// Bytes that are zero.
const FIXED: [usize; 7] = [93, 94, 95, 120, 121, 122, 123];

/// The content of the control file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Page size in bytes.
    pub page_size: u32,
    /// How often the database was opened for writing; zero while it is being made.
    pub incarnation: u64,
    /// Where redo starts.
    pub checkpoint: LogPosition,
    /// Above every timestamp that was drawn before the checkpoint.
    pub timestamp_floor: Timestamp,
    /// What was durable at the checkpoint, at least.
    pub known: Verdict,
    /// Where analysis starts: the oldest segment that the undo of a live transaction needed.
    pub analysis_segment: u64,
    /// Root page of the catalog.
    pub catalog: PageId,
    /// Root page of `pending_free`.
    pub pending_free: PageId,
    /// Root page of `undo`.
    pub undo: PageId,
    /// The next table id that was never given out (at the checkpoint).
    pub next_table: u32,
    /// Closed cleanly: nothing to redo or undo.
    pub clean: bool,
}

impl Control {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BYTES);
        out.put_u64(MAGIC);
        out.put_u32(FORMAT_VERSION);
        out.put_u32(self.page_size);
        out.put_u64(self.incarnation);
        out.put_u64(self.checkpoint.segment);
        out.put_u64(self.checkpoint.offset);
        out.put_u64(self.checkpoint.round);
        out.put_u64(self.timestamp_floor.get());
        out.put_u64(self.known.incarnation);
        out.put_u64(self.catalog.get());
        out.put_u64(self.pending_free.get());
        out.put_u64(self.undo.get());
        out.put_u32(self.next_table);
        out.put_u8(u8::from(self.clean));
        out.put(&[0; 3]);
        out.put_u64(self.known.c.get());
        out.put_u64(self.known.m.get());
        out.put_u64(self.analysis_segment);
        out.resize(CHECKED, 0);
        out.put_u32(checksum(0, &out));
        debug_assert_eq!(out.len(), BYTES);
        out
    }

    /// Reads the bytes of the file.
    ///
    /// # Errors
    /// `ForeignFormat` for another program's or a newer file, `Corruption` for a damaged one.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let foreign = |what: String| StorageError::ForeignFormat {
            file: CONTROL_FILE.into(),
            what,
        };
        let corrupt = |what, expected, found| StorageError::Corruption {
            file: CONTROL_FILE.into(),
            page: None,
            what,
            expected,
            found,
        };
        // The file is replaced as a whole: what is shorter or longer was damaged, however much of it is left.
        let short = || {
            corrupt(
                "length of the control file",
                BYTES as u64,
                bytes.len() as u64,
            )
        };
        let magic = MAGIC.to_le_bytes();
        if !bytes.starts_with(&magic[..bytes.len().min(magic.len())]) {
            return Err(foreign("no control file of this program".into()));
        }
        let mut reader = Reader::new(bytes);
        reader.u64().ok_or_else(short)?;
        let version = reader.u32().ok_or_else(short)?;
        if version != FORMAT_VERSION {
            return Err(foreign(format!(
                "format version {version}, this build reads {FORMAT_VERSION}"
            )));
        }
        let (body, sum) = bytes.split_at_checked(CHECKED).ok_or_else(short)?;
        let found = <[u8; 4]>::try_from(sum)
            .map(u32::from_le_bytes)
            .map_err(|_| short())?;
        let expected = checksum(0, body);
        if found != expected {
            return Err(corrupt("checksum", expected.into(), found.into()));
        }
        let at = |place: usize| u64::from(body.get(place).copied().unwrap_or(0));
        if at(CLEAN_AT) > 1 {
            let what = "byte 92, closed in good order";
            return Err(corrupt(what, 1, at(CLEAN_AT)));
        }
        if let Some(place) = FIXED.into_iter().find(|place| at(*place) != 0) {
            let what = "bytes 93 to 96 and 120 to 124";
            return Err(corrupt(what, 0, at(place)));
        }
        let mut read = || -> Option<Self> {
            let page_size = reader.u32()?;
            let incarnation = reader.u64()?;
            let (segment, offset, round) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let timestamp_floor = Timestamp(reader.u64()?);
            let known_incarnation = reader.u64()?;
            let catalog = PageId(reader.u64()?);
            let pending_free = PageId(reader.u64()?);
            let undo = PageId(reader.u64()?);
            let next_table = reader.u32()?;
            let clean = reader.u8()? == 1;
            reader.bytes(3)?;
            let known = Verdict {
                incarnation: known_incarnation,
                last_round: round.saturating_sub(1),
                c: Timestamp(reader.u64()?),
                m: Gsn(reader.u64()?),
            };
            let checkpoint = LogPosition {
                segment,
                offset,
                round,
            };
            let analysis_segment = reader.u64()?;
            Some(Self {
                analysis_segment,
                page_size,
                incarnation,
                checkpoint,
                timestamp_floor,
                known,
                catalog,
                pending_free,
                undo,
                next_table,
                clean,
            })
        };
        read().ok_or_else(short)
    }

    /// Reads the control file; `None` if there is none.
    ///
    /// # Errors
    /// As [`Control::decode`], and I/O.
    pub fn read(directory: &dyn Directory) -> Result<Option<Self>> {
        if !directory.exists(CONTROL_FILE)? {
            return Ok(None);
        }
        Self::decode(&directory.read_all(CONTROL_FILE)?).map(Some)
    }

    /// Replaces the control file; durable on return.
    ///
    /// # Errors
    /// I/O, a full disk, a poisoned directory: the old file stays.
    pub fn write(&self, directory: &dyn Directory) -> Result<()> {
        directory.write_atomic(CONTROL_FILE, &self.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Control {
        Control {
            page_size: 8192,
            incarnation: 3,
            checkpoint: LogPosition {
                segment: 4,
                offset: 5,
                round: 6,
            },
            timestamp_floor: Timestamp(7),
            analysis_segment: 3,
            known: Verdict {
                incarnation: 2,
                last_round: 5,
                c: Timestamp(13),
                m: Gsn(14),
            },
            catalog: PageId(9),
            pending_free: PageId(10),
            undo: PageId(11),
            next_table: 12,
            clean: true,
        }
    }

    #[test]
    fn control_file_is_read_as_it_was_written() {
        assert_eq!(Control::decode(&control().encode()).unwrap(), control());
    }

    #[test]
    fn every_flipped_bit_of_the_control_file_is_refused() {
        let bytes = control().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Control::decode(&damaged).is_err(), "bit {bit}");
        }
        // It is a database, and damaged: not another program's file, and not nothing.
        let longer = [&bytes[..], b"\n"].concat();
        for length in (0..bytes.len()).chain([longer.len()]) {
            let error = Control::decode(&longer[..length]).unwrap_err();
            let is_damage =
                matches!(error, StorageError::Corruption { found, .. } if found == length as u64);
            assert!(is_damage, "{length} bytes: {error}");
        }
    }

    #[test]
    fn fixed_bytes_that_are_not_as_they_must_be_are_refused_though_the_checksum_is_right() {
        let sealed = |place: usize, byte: u8| {
            let mut bytes = control().encode();
            bytes[place] = byte;
            let sum = checksum(0, &bytes[..CHECKED]);
            bytes[CHECKED..].copy_from_slice(&sum.to_le_bytes());
            Control::decode(&bytes)
        };
        for (place, byte) in [(CLEAN_AT, 2)].into_iter().chain(FIXED.map(|at| (at, 1))) {
            let error = sealed(place, byte).unwrap_err().to_string();
            assert!(error.contains("byte"), "{place}: {error}");
        }
        assert!(!sealed(CLEAN_AT, 0).unwrap().clean);
    }

    #[test]
    fn newer_and_foreign_files_are_named() {
        let mut newer = control().encode();
        newer[8] = 2;
        let error = Control::decode(&newer).unwrap_err().to_string();
        assert!(error.contains("format version 2"), "{error}");
        let error = Control::decode(b"#!/bin/sh and so on").unwrap_err();
        assert!(matches!(error, StorageError::ForeignFormat { .. }));
    }
}
