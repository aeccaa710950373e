//! The decoders, each as a function of bytes: it answers, whatever the bytes are. Where there is an encoder, what was decoded is encoded and
//! decoded again, and must be the same.
//!
//! Not here: the control file, frames of the log, the double-write area and the file's header, whose decoders are private: they are reached
//! by opening files ([`crate::damage`]).

use crate::corpus::{self, PAGE};
use crate::relation;
use vellum_base::codec::Reader;
use vellum_base::{Lsn, PageId, SlotId, Timestamp};
use vellum_btree::node::build::entry;
use vellum_btree::node::check::check_node;
use vellum_btree::overflow::ChainRef;
use vellum_btree::record::Operation;
use vellum_buffer::{PageBuf, PageHeader, kind};
use vellum_catalog::{IndexEntry, TableEntry};
use vellum_io::SimulatedDirectory;
use vellum_table::KeyDescription;
use vellum_txn::{TransactionRecord, VersionStamp};
use vellum_version::fat::layout::{FatRow, OldVersion, Step, encode_lengths};
use vellum_version::pending::PendingKind;
use vellum_version::row::{self, Header, Shape};
use vellum_version::{delta, undo_record};
use vellum_wal::Record;

/// One decoder.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it reads.
    pub name: &'static str,
    /// Runs it; true if the bytes were such.
    pub run: fn(&[u8]) -> bool,
}

/// Every target of this package, the storage's and the relations'.
pub fn all() -> impl Iterator<Item = Target> {
    TARGETS.into_iter().chain(relation::TARGETS)
}

/// Those of storage, versions and the engine's catalog.
const TARGETS: [Target; 12] = [
    Target {
        name: "page",
        run: page,
    },
    Target {
        name: "log record",
        run: log_record,
    },
    Target {
        name: "tree record",
        run: tree_record,
    },
    Target {
        name: "transaction record",
        run: transaction_record,
    },
    Target {
        name: "undo record",
        run: undo,
    },
    Target {
        name: "row",
        run: stored_row,
    },
    Target {
        name: "fat row",
        run: fat_row,
    },
    Target {
        name: "delta",
        run: delta_entry,
    },
    Target {
        name: "delta key",
        run: delta_key,
    },
    Target {
        name: "chain",
        run: chain,
    },
    Target {
        name: "catalog entry",
        run: catalog_entry,
    },
    Target {
        name: "key description",
        run: key_description,
    },
];

fn page(bytes: &[u8]) -> bool {
    let mut page = PageBuf::new(PAGE);
    let length = bytes.len().min(PAGE);
    page.as_bytes_mut()[..length].copy_from_slice(&bytes[..length]);
    let good = check_node(&page).is_ok();
    // Also what is no node is looked at: an optimistic reader meets torn ones.
    for index in 0..64 {
        let entry = entry(&page, index);
        let key = entry.key();
        assert!(key.len() <= 2 * PAGE && entry.payload.len() <= PAGE);
        if good && page.kind() == kind::LEAF {
            stored_row(entry.payload);
        }
    }
    // The others have no form but their kind.
    good || [kind::BITMAP, kind::OVERFLOW].contains(&page.kind())
}

fn log_record(bytes: &[u8]) -> bool {
    let Some(record) = Record::decode(bytes, Lsn(8)) else {
        return false;
    };
    assert!(record.length() <= bytes.len());
    tree_operation(record.header.kind, record.redo);
    let _ = TransactionRecord::decode(&record);
    undo(record.undo);
    true
}

fn tree_operation(kind: u8, redo: &[u8]) -> bool {
    let Some(operation) = Operation::decode(kind, redo) else {
        return false;
    };
    match operation {
        Operation::Patch(_, edits) => {
            let covered: usize = edits.map(|(_, bytes)| bytes.len()).sum();
            assert!(covered <= redo.len());
        }
        Operation::Bitmap(bits) => assert!(bits.count() <= redo.len() / 4),
        Operation::Clean(suffixes) => assert!(suffixes.count() <= redo.len()),
        Operation::Insert(_, row) | Operation::Replace(_, row) => drop(stored_row(row)),
        _ => {}
    }
    true
}

/// The first byte is the kind.
fn tree_record(bytes: &[u8]) -> bool {
    bytes
        .split_first()
        .is_some_and(|(kind, redo)| tree_operation(*kind, redo))
}

fn transaction_record(bytes: &[u8]) -> bool {
    let record = Record::decode(bytes, Lsn(8));
    record.is_some_and(|record| matches!(TransactionRecord::decode(&record), Ok(Some(_))))
}

fn undo(bytes: &[u8]) -> bool {
    let Some(record) = undo_record::decode(bytes) else {
        return false;
    };
    if let undo_record::Revert::Ranges(image) = record.revert {
        let mut body = vec![7; 300];
        undo_record::apply_ranges(image, &mut body);
        assert_eq!(body.len(), 300, "ranges change no length");
    }
    true
}

fn stored_row(bytes: &[u8]) -> bool {
    let mut reduced = Vec::new();
    row::reduce(bytes, &mut reduced);
    let Some(header) = Header::decode(bytes) else {
        return false;
    };
    assert!(reduced.len() <= bytes.len(), "a reduced row is not longer");
    let encoded = header.encode();
    assert_eq!(Header::decode(&encoded), Some(header));
    fat_row(bytes);
    true
}

fn fat_row(bytes: &[u8]) -> bool {
    let Some(row) = FatRow::decode(bytes) else {
        return false;
    };
    let mut taken = 0;
    for old in row.old_versions() {
        taken += 1;
        assert!(taken <= bytes.len(), "versions end with the row");
        if old.is_err() {
            break;
        }
    }
    row.is_sound()
}

fn delta_entry(bytes: &[u8]) -> bool {
    let mut body = vec![7; 200];
    let header = delta::apply(bytes, &mut body);
    assert!(header.is_none() || delta::predecessor(bytes) == header);
    assert!(body.len() <= 200.max(bytes.len()));
    header.is_some()
}

fn delta_key(bytes: &[u8]) -> bool {
    let Some((stamp, command)) = delta::decode_key(bytes) else {
        return false;
    };
    assert_eq!(delta::key(stamp, command), bytes);
    true
}

fn chain(bytes: &[u8]) -> bool {
    let kind = PendingKind::decode(bytes);
    assert!(kind.is_none_or(|kind| kind.payload() == bytes));
    let Some(chain) = ChainRef::decode(bytes) else {
        return false;
    };
    assert!(chain.root != PageId::ZERO);
    assert_eq!(chain.encode(), bytes);
    true
}

fn catalog_entry(bytes: &[u8]) -> bool {
    let name = vellum_catalog::entry::name_in_key(bytes);
    assert!(name.is_none_or(|name| name.len() < bytes.len()));
    let table = TableEntry::decode(bytes);
    assert!(table.as_ref().is_none_or(|entry| entry.encode() == bytes));
    let index = IndexEntry::decode(bytes);
    assert!(index.as_ref().is_none_or(|entry| entry.encode() == bytes));
    table.is_some() || index.is_some()
}

fn key_description(bytes: &[u8]) -> bool {
    let Some(key) = KeyDescription::decode(&mut Reader::new(bytes)) else {
        return false;
    };
    let encoded = key.encode();
    assert_eq!(
        KeyDescription::decode(&mut Reader::new(&encoded)).as_ref(),
        Some(&key)
    );
    let mut columns = Vec::new();
    key.columns(b"a key", &[1; 90], &mut columns);
    key.touched_by(&[0..4]);
    true
}

/// A fat row with this body and old versions of every kind; on disk there are none while a row can be made plain.
fn fat(body: &[u8]) -> Vec<u8> {
    let name = VersionStamp {
        slot: SlotId(2),
        stamp: Timestamp(77),
        command: 3,
    };
    let mut header = Header::stamped(Shape::INLINE, name, false);
    header.fat = true;
    let before = Header::stamped(Shape::INLINE, name, false);
    let mut image = Vec::new();
    if body.len() >= 12 {
        delta::encode_image(body, &[0..3, 11..12], &mut image);
    }
    let steps = [
        Step::Copy(name),
        Step::Ranges(&image),
        Step::Same,
        Step::Whole(body),
    ];
    let mut versions = Vec::new();
    for step in steps {
        let header = before;
        OldVersion { header, step }.encode(&mut versions);
    }
    let mut row = header.encode().to_vec();
    row.extend_from_slice(&encode_lengths(body.len(), versions.len()));
    row.extend_from_slice(body);
    row.extend_from_slice(&versions);
    row.extend_from_slice(&[0; 9]);
    row
}

/// Inputs of each target, cut out of the files of a database: every target has some that it knows.
///
/// # Errors
/// I/O.
pub fn inputs(disk: &SimulatedDirectory) -> vellum_base::Result<Vec<Vec<Vec<u8>>>> {
    let data = corpus::bytes_of(disk, corpus::DATA)?;
    let pages: Vec<Vec<u8>> = data.chunks_exact(PAGE).map(<[u8]>::to_vec).collect();
    let mut rows = Vec::new();
    for bytes in &pages {
        let mut page = PageBuf::new(PAGE);
        page.as_bytes_mut().copy_from_slice(bytes);
        if page.kind() == kind::LEAF && check_node(&page).is_ok() {
            rows.extend((0..24).map(|index| entry(&page, index).payload.to_vec()));
        }
    }
    let mut log: Vec<Vec<u8>> = Vec::new();
    for segment in corpus::segments(disk)? {
        let bytes = corpus::bytes_of(disk, &segment)?;
        log.extend(corpus::records(&bytes).into_iter().map(<[u8]>::to_vec));
    }
    let decoded: Vec<Record<'_>> = log
        .iter()
        .filter_map(|bytes| Record::decode(bytes, Lsn(8)))
        .collect();
    let tree = decoded
        .iter()
        .map(|record| [&[record.header.kind], record.redo].concat());
    let undo: Vec<Vec<u8>> = decoded.iter().map(|record| record.undo.to_vec()).collect();
    // The bodies of rows are catalog entries, references to chains, and what the tables hold.
    let bodies = |length: usize| {
        rows.iter()
            .filter_map(move |row| row.get(length..))
            .map(<[u8]>::to_vec)
    };
    let bodies: Vec<Vec<u8>> = bodies(1).chain(bodies(18)).collect();
    let mut deltas: Vec<Vec<u8>> = Vec::new();
    let before = Header::frozen(Shape::INLINE);
    for body in &bodies {
        let (mut ranges, mut full) = (Vec::new(), Vec::new());
        if body.len() >= 12 {
            delta::encode_ranges(&before, body, &[0..3, 11..12], &mut ranges);
        }
        delta::encode_full(&before, body, &mut full);
        deltas.extend([ranges, full]);
    }
    let keys = (0..64_u32).map(|n| delta::key(Timestamp(u64::from(n) << n), n).to_vec());
    let descriptions = bodies
        .iter()
        .filter_map(|body| body.get(13..))
        .map(<[u8]>::to_vec);
    Ok(all()
        .map(|target| match target.name {
            "page" => pages.clone(),
            "log record" | "transaction record" => log.clone(),
            "tree record" => tree.clone().collect(),
            "undo record" => undo.clone(),
            "row" => rows.clone(),
            "fat row" => bodies.iter().map(|body| fat(body)).collect(),
            "delta" => deltas.clone(),
            "delta key" => keys.clone().collect(),
            "key description" => descriptions.clone().collect(),
            name => relation::inputs(name).unwrap_or_else(|| bodies.clone()),
        })
        .collect())
}
