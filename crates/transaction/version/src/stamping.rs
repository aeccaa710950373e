//! Rows that carry the commit timestamp of their writer: the second visit of `txn::Protocol::Stamping`.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1 "Write Set Stamping". For measurements only: the product's protocol
//! never visits a row twice.
//!
//! Layout: the chain estimate of a stamped header (3 bytes) holds `commit timestamp - stamp`, zero for "not visited". So a
//! row keeps its length, and its version its name, by which its before-image is found. A transaction that took more than 2^24
//! ticks does not fit, and is judged by the commit log like any row that was not visited. Without fat rows
//! nobody else uses the chain estimate; [`stamps_rows`] is asked before it is read as a commit timestamp.
//!
//! Crash: the change is not logged. Redo reduces rows before it redoes anything, and what is reduced has no stamp.
//!
//! Latches: one row's leaf at a time.

use crate::read::View;
use crate::row::{Header, STAMPED_HEADER};
use std::sync::{Arc, Weak};
use vellum_base::{Result, SlotId, Timestamp};
use vellum_btree::{Tree, TreeContext, TreeKind};
use vellum_txn::{CommitStamper, VersionStamp, WriteSet};

/// What three bytes hold.
const TICKS_MAX: u64 = (1 << 24) - 1;

/// The commit timestamp that a row carries, if any.
#[inline]
fn commit_of(header: &Header, version: &VersionStamp) -> Option<Timestamp> {
    let ticks = u64::from(header.since) | u64::from(header.updates) << 16;
    (ticks > 0).then(|| Timestamp(version.stamp.get() + ticks))
}

/// True where rows carry commit timestamps.
#[inline]
pub(crate) fn stamps_rows(view: &View<'_>) -> bool {
    view.transaction.reads_commit_stamps()
}

/// Whether `view` sees `version`, which wrote the row with this header.
#[cold]
pub(crate) fn sees(view: &View<'_>, header: &Header, version: &VersionStamp) -> bool {
    // Before the restart, and in a fat row, which is from before it too, the three bytes are something else.
    let here = version.stamp >= view.transaction.domain().restart_floor() && !header.fat;
    match commit_of(header, version).filter(|_| here) {
        Some(commit_ts) => commit_ts < view.snapshot,
        None => view.sees(version),
    }
}

/// Visits the rows of write sets.
#[derive(Debug)]
pub struct RowStamper {
    /// Not owned: trees know who judges their rows, and that knows who is asked here.
    context: Weak<TreeContext>,
}

impl RowStamper {
    /// For the trees of `context`.
    pub fn new(context: &Arc<TreeContext>) -> Self {
        Self {
            context: Arc::downgrade(context),
        }
    }
}

impl CommitStamper for RowStamper {
    fn stamp(&self, slot: SlotId, stamp: Timestamp, commit_ts: Timestamp, writes: &WriteSet) {
        let ticks = commit_ts.get() - stamp.get();
        let Some(context) = self.context.upgrade().filter(|_| ticks <= TICKS_MAX) else {
            return;
        };
        let mut row = Vec::new();
        for (root, key) in writes.rows() {
            let tree = Tree::open(&context, root, TreeKind::Rows);
            // A row that cannot be read is judged by the commit log, by whoever can read it.
            let _ = visit(&tree, key, slot, stamp, ticks, &mut row);
        }
    }
}

/// Writes `ticks` into the header of the row, if its newest version is by `(slot, stamp)`.
fn visit(
    tree: &Tree,
    key: &[u8],
    slot: SlotId,
    stamp: Timestamp,
    ticks: u64,
    row: &mut Vec<u8>,
) -> Result<()> {
    let mut leaf = tree.write(key)?;
    if !leaf.found() {
        return Ok(());
    }
    leaf.copy_payload(row);
    let Some(header) = Header::decode(row) else {
        // Whoever reads the row reports it.
        return Ok(());
    };
    let ours = !header.fat
        && header
            .writer
            .is_some_and(|writer| writer.version.slot == slot && writer.version.stamp == stamp);
    if ours {
        let stamped = Header {
            updates: (ticks >> 16) as u8,
            since: ticks as u16,
            ..header
        };
        debug_assert_eq!(
            header.length(),
            STAMPED_HEADER,
            "no shortcuts in this experiment"
        );
        row[..header.length()].copy_from_slice(&stamped.encode());
        leaf.shrink_unlogged(row);
    }
    Ok(())
}

/// Notes a row that was written, for the visit. Rows of other trees than tables and indexes are not visited: redo does
/// not reduce them, so nothing may change there that is not logged.
#[inline]
pub(crate) fn note(view: &View<'_>, tree: &Tree, key: &[u8], command: u32) {
    if stamps_rows(view) && tree.kind() == TreeKind::Rows {
        view.transaction.wrote(tree.root(), key, command);
    }
}
