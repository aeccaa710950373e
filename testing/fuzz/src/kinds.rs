//! Every kind of record that is defined, and a log in which each has a round of its own: chunks so short that every byte of them can be flipped.
//!
//! The records are made up here, in the layouts of their decoders: the log's reader does not look into them. What recovery makes of records that a
//! database wrote: [`crate::corpus`], which has not all of the kinds.

use crate::corpus::{self, PAGE};
use std::collections::BTreeSet;
use std::sync::Arc;
use vellum_base::codec::Put;
use vellum_base::{Gsn, Lsn, PageId, Result, SlotId, Timestamp};
use vellum_btree::record::{self, Operation};
use vellum_io::SimulatedDirectory;
use vellum_txn::TransactionRecord;
use vellum_wal::{Log, LogConfig, LogStart, Record, RecordHeader, Verdict};

/// The slot that writes.
const SLOT: SlotId = SlotId(0);
/// Log space that is enough for any of the records.
const RECORD_BYTES: usize = 256;

/// Kinds of all records: of trees and of transactions.
pub fn defined() -> BTreeSet<u8> {
    let of_trees = record::KINDS.into_iter();
    of_trees.chain(TransactionRecord::KINDS).collect()
}

/// Kinds of the records in a log.
///
/// # Errors
/// I/O.
pub fn found(disk: &SimulatedDirectory) -> Result<BTreeSet<u8>> {
    let mut kinds = BTreeSet::new();
    for segment in corpus::segments(disk)? {
        let bytes = corpus::bytes_of(disk, &segment)?;
        let records = corpus::records(&bytes).into_iter();
        kinds.extend(records.filter_map(kind_of));
    }
    Ok(kinds)
}

/// The kind of a record of the log.
pub fn kind_of(record: &[u8]) -> Option<u8> {
    Record::decode(record, Lsn(8)).map(|record| record.header.kind)
}

/// Redo bytes of a record of a kind.
fn redo(kind: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let stamp = Timestamp(7);
    let of_transaction = match kind {
        1 => Some(TransactionRecord::Begin { stamp, slot: SLOT }),
        2 => Some(TransactionRecord::Commit {
            stamp,
            commit_ts: Timestamp(9),
        }),
        3 => Some(TransactionRecord::Abort { stamp }),
        4 => Some(TransactionRecord::Verdict(Verdict::default())),
        _ => None,
    };
    if let Some(record) = of_transaction {
        record.encode(&mut bytes);
        return bytes;
    }
    let key = b"a key";
    match kind {
        record::INSERT | record::REPLACE | record::REMOVE => {
            bytes.put_u16(key.len() as u16);
            bytes.put(key);
            if kind != record::REMOVE {
                bytes.put(b"a row");
            }
        }
        record::PATCH => {
            bytes.put_u16(key.len() as u16);
            bytes.put(key);
            bytes.put_u16(3);
            bytes.put_u16(2);
            bytes.put(b"xy");
        }
        record::IMAGE => {
            bytes.put_u16(12);
            bytes.put_u16(PAGE as u16 - 8);
            bytes.put(&[3; 16]);
        }
        record::KEEP_BELOW | record::KEEP_FROM => bytes.put(key),
        record::INSERT_SEPARATOR => {
            bytes.put_u64(5);
            bytes.put_u64(6);
            bytes.put(key);
        }
        record::REMOVE_SEPARATOR => {
            bytes.put_u64(5);
            bytes.put(key);
        }
        record::BITMAP => bytes.put(&(record::BIT_SET | 9).to_le_bytes()),
        record::LINK => bytes.put_u64(5),
        record::TRIM => {
            bytes.put(&[1]);
            bytes.put(key);
        }
        record::CLEAN => {
            bytes.put_u16(key.len() as u16);
            bytes.put(key);
        }
        _ => panic!("no record of kind {kind} is made here"),
    }
    assert!(
        Operation::decode(kind, &bytes).is_some(),
        "kind {kind} has another layout now"
    );
    bytes
}

/// Inputs of decoders of records: of each kind one.
///
/// # Errors
/// What the log says.
pub fn inputs(target: &str) -> Result<Vec<Vec<u8>>> {
    match target {
        "tree record" => {
            let inputs = record::KINDS.iter();
            Ok(inputs
                .map(|kind| [&[*kind], &redo(*kind)[..]].concat())
                .collect())
        }
        "log record" | "transaction record" => {
            let disk = make_log()?;
            let mut inputs = Vec::new();
            for segment in corpus::segments(&disk)? {
                let bytes = corpus::bytes_of(&disk, &segment)?;
                inputs.extend(corpus::records(&bytes).into_iter().map(<[u8]>::to_vec));
            }
            Ok(inputs)
        }
        _ => Ok(Vec::new()),
    }
}

/// A log with a round for each kind of record.
///
/// # Errors
/// What the log says.
pub fn make_log() -> Result<SimulatedDirectory> {
    let disk = SimulatedDirectory::new();
    let config = LogConfig {
        slots_max: 4,
        slot_buffer_bytes: 16 * PAGE,
        segment_bytes: 64 * PAGE as u64,
        log_bytes_max: 8 * 64 * PAGE as u64,
    };
    let clock = Arc::new(|| Timestamp(1));
    let log = Log::create(Arc::new(disk.clone()), config, clock, LogStart::first())?;
    for kind in defined() {
        let slot = log.slot(SLOT);
        slot.reserve(RECORD_BYTES)?;
        let mut latch = slot.lock();
        let header = RecordHeader {
            kind,
            flags: 0,
            page: PageId::ZERO,
            tree: PageId::ZERO,
            gsn: latch.draw(Gsn::ZERO),
        };
        latch.append(&header, &[&redo(kind)], &[]);
        drop(latch);
        log.flush_round()?;
    }
    Ok(disk.process_kill())
}
