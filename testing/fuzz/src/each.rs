//! Every byte of a page and of a chunk of each kind, one after the other, before whoever reads it first: the pool, and the log's reader. A
//! recovery for each of them would take an hour ([`crate::damage`] does that for the heads and for a sample; for all of them if it is asked
//! to).
//!
//! A kind of page is what its head says (kind, flags, tree): inner nodes and leaves of the catalog, of tables, of indexes and of the lists, chains,
//! bitmaps; of an [`Aged`](crate::aged::Aged) database also deltas, graveyards and leaves with fat rows. A kind of chunk is a kind of record that it holds.
//!
//! Not here: what comes of what was read.

use crate::corpus::{self, DATA, PAGE};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use vellum_base::random::Random;
use vellum_base::{Gsn, Lsn, PageId, Result, StorageError};
use vellum_buffer::page::kind;
use vellum_buffer::{Pool, PoolConfig};
use vellum_io::{Directory, OpenOptions, SimulatedDirectory};
use vellum_wal::{DurableGsn, LogPosition, LogReader, Record, RoundData, Verdict};

/// What the head of a page says of its kind: kind, flags, tree.
pub type PageKind = (u8, u8, u64);

/// One page of each kind: its number. A page that was never written has no bytes to damage.
///
/// # Errors
/// I/O.
pub fn pages(disk: &SimulatedDirectory) -> Result<BTreeMap<PageKind, u64>> {
    let data = corpus::bytes_of(disk, DATA)?;
    let mut kinds = BTreeMap::new();
    for (number, page) in (0..).zip(data.chunks_exact(PAGE)) {
        let tree = u64::from_le_bytes(*page[16..].first_chunk().expect("a page has a head"));
        let own = ![kind::FREE, kind::FILE_HEADER].contains(&page[4]);
        if own && is_whole(number, page) {
            kinds.entry((page[4], page[5], tree)).or_insert(number);
        }
    }
    Ok(kinds)
}

/// Whether a page has its checksum: the copies in the double-write area are of other places.
fn is_whole(number: u64, page: &[u8]) -> bool {
    let sum = vellum_buffer::page::page_checksum(PageId(number), page);
    page[..4] == sum.to_le_bytes()
}

/// Nothing is written through the pool, so nothing is asked of a log.
struct NoLog;

impl DurableGsn for NoLog {
    fn durable_gsn(&self) -> Gsn {
        Gsn::MAX
    }

    fn make_durable(&self, _: Gsn) -> Result<()> {
        Ok(())
    }
}

/// A pool over the data file, as recovery begins with one.
///
/// # Errors
/// What the pool says.
pub fn pool(disk: &SimulatedDirectory) -> Result<Pool> {
    let file = disk.open(DATA, OpenOptions::existing())?;
    let mut config = PoolConfig::new(PAGE, 64 * PAGE as u64);
    config.pages_max = 1 << 16;
    Pool::open(file, Arc::new(NoLog), &config)
}

/// Flips each bit of each byte of a page, one after the other; the pool must refuse the page by its number each time, and read it when it is
/// as it was. How many were tried.
///
/// # Errors
/// Which flip was not noticed.
pub fn flip_page(
    disk: &SimulatedDirectory,
    pool: &Pool,
    page: u64,
) -> std::result::Result<u64, String> {
    let mut tried = 0;
    for at in 0..PAGE {
        for bit in 0..8 {
            let flip = || disk.flip_bit(DATA, page * PAGE as u64 + at as u64, bit);
            flip().map_err(|error| error.to_string())?;
            match pool.shared(PageId(page)) {
                Err(StorageError::Corruption {
                    page: Some(told), ..
                }) if told == PageId(page) => {}
                Err(error) => return Err(format!("byte {at}, bit {bit}: {error}")),
                Ok(_) => return Err(format!("byte {at}, bit {bit}: is not noticed")),
            }
            flip().map_err(|error| error.to_string())?;
            tried += 1;
        }
    }
    match pool.shared(PageId(page)) {
        Ok(_) => Ok(tried),
        Err(error) => Err(format!("as it was: {error}")),
    }
}

/// A stretch of a segment: its file, and which bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The segment's name.
    pub file: String,
    /// Its bytes.
    pub bytes: Range<usize>,
}

/// The shortest chunk with a record of each kind, with the trailer of a round behind one of them, and the header of a segment.
///
/// # Errors
/// I/O.
pub fn chunks(disk: &SimulatedDirectory) -> Result<Vec<Stretch>> {
    const HEAD: usize = 80;
    let mut kinds: BTreeMap<u8, Stretch> = BTreeMap::new();
    let mut found = Vec::new();
    for file in corpus::segments(disk)? {
        let bytes = corpus::bytes_of(disk, &file)?;
        let chunks = corpus::chunks(&bytes);
        if let (Some((at, length)), true) = (chunks.last(), found.is_empty()) {
            let end = (at + HEAD + length).next_multiple_of(8);
            let stretch = |bytes| Stretch {
                file: file.clone(),
                bytes,
            };
            found.push(stretch(0..88));
            found.push(stretch(end..end + 64));
        }
        for (at, length) in chunks {
            let stretch = Stretch {
                file: file.clone(),
                bytes: at..at + HEAD + length,
            };
            let mut rest = &bytes[at + HEAD..at + HEAD + length];
            while let Some(record) = Record::decode(rest, Lsn(0)) {
                let known = kinds
                    .entry(record.header.kind)
                    .or_insert_with(|| stretch.clone());
                if known.bytes.len() > length + HEAD {
                    *known = stretch.clone();
                }
                rest = &rest[record.length()..];
            }
        }
    }
    for stretch in kinds.into_values() {
        if !found.contains(&stretch) {
            found.push(stretch);
        }
    }
    Ok(found)
}

/// Every round of the log from the start of a segment on, as recovery reads it; 0: from the oldest on.
///
/// # Errors
/// What the reader says.
pub fn rounds_from(disk: &SimulatedDirectory, segment: u64) -> Result<Vec<RoundData>> {
    let from = LogPosition {
        segment,
        ..LogPosition::default()
    };
    let mut reader = LogReader::open(disk, from, Verdict::default())?;
    let mut rounds = Vec::new();
    while let Some(round) = reader.next_round()? {
        rounds.push(round);
    }
    Ok(rounds)
}

/// Flips one bit of a byte of the log, reads all of it, and flips the bit back. What is read are rounds as they were written; those that are missing
/// in the end were not yet known to be durable. True if the reader said that something is damaged.
///
/// # Errors
/// What was read instead.
pub fn flip_log(
    disk: &SimulatedDirectory,
    whole: &[RoundData],
    file: &str,
    at: usize,
    bit: u8,
) -> std::result::Result<bool, String> {
    let place = format!("{file}, byte {at}, bit {bit}");
    let flip = || {
        let flipped = disk.flip_bit(file, at as u64, bit);
        flipped.map_err(|error| format!("{place}: {error}"))
    };
    flip()?;
    let read = rounds_from(disk, whole[0].position.segment);
    flip()?;
    match read {
        Err(StorageError::Corruption { .. } | StorageError::ForeignFormat { .. }) => Ok(true),
        Err(error) => Err(format!("{place}: {error}")),
        Ok(read) if whole.starts_with(&read) => {
            // The last round is the only one that nothing behind it tells of.
            match whole.len() - read.len() {
                0 | 1 => Ok(false),
                missing => Err(format!("{place}: {missing} rounds are gone in silence")),
            }
        }
        Ok(_) => Err(format!("{place}: rounds are read that nobody wrote")),
    }
}

/// A place in a page, and a bit.
pub fn place(random: &mut Random) -> (usize, u8) {
    (random.below(PAGE as u64) as usize, random.below(8) as u8)
}
