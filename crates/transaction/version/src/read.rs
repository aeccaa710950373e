//! Which version of a row does a snapshot see, and what are its bytes.
//!
//! Paper: LeanStore §3.1 (Listing 1) and §3.3. The rule itself is `txn::visibility`; this walks the chain.
//!
//! Invariants:
//! - V4 A chain lookup that finds nothing is never the end of the chain: the writer aborted, or the
//!   version became visible to everyone and its delta was collected. Reading starts again at the head.
//! - V5 The bytes that are handed out belong to one version, whole: head and deltas are private copies
//!   that were validated, and a delta names its successor, so a chain that changes meanwhile is noticed by V4.
//!
//!   A version that an old snapshot has a shortcut past (`shortcut`) may lose its delta: such a snapshot never asks for it.
//! - V31 What an OLAP view does not find in the main index it looks for in the graveyard, in this order (V23).
//!
//! Concurrency: no latch is held between head and delta. The interleaving that matters: a reader copies
//! head H (writer T, invisible), T aborts (leaf reverted, then delta removed), the reader finds no delta:
//! V4. If T's delta is found, it was read before T's removal, and what it describes is what the leaf
//! was before T, which is right for this reader whether T aborts or not.

use crate::delta::{self, DeltaName};
use crate::error::{Result, damaged};
use crate::fat;
use crate::fat::layout::BODY_AT;
use crate::row::{FROZEN_HEADER, Header, STAMPED_HEADER, Shape, Writer};
use crate::shortcut::{EVERYTHING, Shortcut};
use crate::stamping;
use crate::store::VersionStore;
use std::ops::Range;
use vellum_base::Timestamp;
use vellum_base::planted::{self, Bug};
use vellum_btree::{LeafHints, Tree};
use vellum_txn::{Operation, Transaction, VersionStamp};

/// From where an operation looks at rows: a snapshot, and the command at which its statement began (it does not see what
/// its own transaction writes later). Borrows the operation (R10), so that its class holds.
#[derive(Clone, Copy)]
pub struct View<'t> {
    /// Whose view it is.
    pub transaction: &'t Transaction,
    /// What is committed below this timestamp is seen.
    pub snapshot: Timestamp,
    /// Own versions of commands below this one are seen.
    pub command: u32,
    /// Its transaction is analytical: what it needs may be in a graveyard. Read when the operation was counted.
    pub olap: bool,
}

impl<'t> View<'t> {
    /// What `operation` sees of `snapshot`, an open one of its transaction, from before `command`.
    #[inline]
    pub fn new(operation: &'t Operation<'_>, snapshot: Timestamp, command: u32) -> Self {
        Self {
            transaction: operation.transaction(),
            snapshot,
            command,
            olap: operation.is_olap(),
        }
    }

    /// What private copies are judged by outside of an operation; for nothing else.
    #[inline]
    pub fn of_copy(transaction: &'t Transaction, snapshot: Timestamp, command: u32) -> Self {
        Self {
            transaction,
            snapshot,
            command,
            olap: true,
        }
    }

    /// What a statement that starts now sees.
    #[inline]
    pub fn of_statement(operation: &'t Operation<'_>) -> Self {
        let transaction = operation.transaction();
        Self::new(
            operation,
            transaction.statement(),
            transaction.commands_seen(),
        )
    }

    /// Whether the view sees a version.
    #[inline]
    pub fn sees(&self, version: &VersionStamp) -> bool {
        self.transaction
            .visible(version, self.snapshot, self.command)
    }

    /// The shortcut that the view can take from a version that it does not see (V47).
    #[inline]
    fn shortcut<'h>(&self, header: &'h Header, version: &VersionStamp) -> Option<&'h Shortcut> {
        let bound = header.shortcut.bound()?;
        let is_for = self.snapshot <= bound || planted::has(Bug::ShortcutTooFar);
        (is_for && !self.transaction.is_own(version)).then_some(&header.shortcut)
    }

    /// Whether the view sees `version`, whose row has this header.
    #[inline]
    pub(crate) fn sees_row(&self, header: &Header, version: &VersionStamp) -> bool {
        if stamping::stamps_rows(self) {
            return stamping::sees(self, header, version);
        }
        self.sees(version)
    }
}

/// Where in a buffer the visible version's body stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visible {
    /// Inline value or chain reference.
    pub overflow: bool,
    /// Offset of the body in the buffer.
    pub start: usize,
    /// Where it ends. Behind it are a fat row's old versions; [`VersionStore::resolve`] leaves nothing there.
    pub end: usize,
}

/// What a head row says to a view.
enum Head {
    /// This version is the one, with its body there.
    Seen(Header, Range<usize>),
    /// Older ones must be looked at.
    Chain(Header, Writer),
    /// The row did not exist yet.
    Absent,
}

/// A chain is longer than this only if something is broken: each restart needs a writer or
/// collector that made progress meanwhile.
pub(crate) const RESTARTS_MAX: u32 = 1_000_000;

impl VersionStore {
    /// Looks a key up. The body of the visible version is left in `row` behind the returned
    /// start; `delta` is scratch space. `None`: the view sees no row.
    ///
    /// Latches nothing; may wait for a page that is read from disk.
    #[inline]
    pub fn read(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
        row: &mut Vec<u8>,
        delta: &mut Vec<u8>,
    ) -> Result<Option<Visible>> {
        self.read_near(
            view,
            tree,
            key,
            row,
            delta,
            &mut LeafHints::default(),
            false,
        )
    }

    /// As [`VersionStore::read`], remembering the leaf; tries the remembered one first if `near`.
    #[inline]
    #[allow(
        clippy::too_many_arguments,
        reason = "buffers of the caller, which it keeps apart"
    )]
    pub fn read_near(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
        row: &mut Vec<u8>,
        delta: &mut Vec<u8>,
        hints: &mut LeafHints,
        near: bool,
    ) -> Result<Option<Visible>> {
        for _ in 0..RESTARTS_MAX {
            view.transaction.touch(1, 0);
            let reversed = view.olap && planted::has(Bug::GraveyardFirst);
            if reversed
                && let Resolved::Visible(visible) = self.read_buried(view, tree, key, row, delta)?
            {
                return Ok(Some(visible));
            }
            vellum_sync::test_point!("read: before the leaf");
            let resolved = if tree.get_near(key, row, hints, near)? {
                self.resolve(view, tree, row, delta, None)?
            } else {
                Resolved::Absent
            };
            let resolved = match resolved {
                Resolved::Absent if view.olap && !reversed => {
                    self.read_buried(view, tree, key, row, delta)?
                }
                other => other,
            };
            match resolved {
                Resolved::Visible(visible) => return Ok(Some(visible)),
                Resolved::Absent => return Ok(None),
                Resolved::Changed => {}
            }
        }
        Err(damaged("version chain", tree.root()).into())
    }

    /// Finds the version of a row (a private copy of a leaf's payload) that the view sees, and leaves
    /// its body in `row`. `hints`: of who reads many rows, whose deltas were likely made together.
    #[inline]
    pub fn resolve(
        &self,
        view: &View<'_>,
        tree: &Tree,
        row: &mut Vec<u8>,
        delta: &mut Vec<u8>,
        hints: Option<&mut LeafHints>,
    ) -> Result<Resolved> {
        if Header::is_of_cold(row) {
            // Most rows are, and a whole header of each would be decoded for nothing.
            return Ok(cold(row));
        }
        match judge(view, row).ok_or_else(|| damaged("row header", tree.root()))? {
            Head::Seen(header, body) => {
                row.truncate(body.end);
                Ok(seen(&header, body))
            }
            Head::Absent => Ok(Resolved::Absent),
            Head::Chain(header, _) if header.fat => self.resolve_fat(view, tree, row, delta),
            Head::Chain(header, writer) => {
                row.drain(..header.length());
                let next = next(view, &header, &writer);
                self.walk(view, tree, next, row, delta, hints)
            }
        }
    }

    /// Walks from an invisible version, whose body is `body`, to older ones: over the delta that comes [`next`].
    fn walk(
        &self,
        view: &View<'_>,
        tree: &Tree,
        (mut name, mut is_copy): (DeltaName, bool),
        body: &mut Vec<u8>,
        entry: &mut Vec<u8>,
        mut hints: Option<&mut LeafHints>,
    ) -> Result<Resolved> {
        loop {
            vellum_sync::test_point!("read: between version and delta");
            view.transaction.touch(0, 1);
            let found = match &mut hints {
                Some(hints) => self.read_delta(&name, entry, hints, true)?,
                None => self.find_delta(&name, entry)?,
            };
            if !found || is_copy && !delta::is_full(entry) {
                return Ok(Resolved::Changed);
            }
            let header = delta::apply(entry, body).ok_or_else(|| damaged("delta", tree.root()))?;
            match header.writer {
                Some(older) if !view.sees_row(&header, &older.version) => {
                    if is_absent(view, &header, &older) {
                        return Ok(Resolved::Absent);
                    }
                    (name, is_copy) = next(view, &header, &older);
                }
                _ if header.shape.tombstone => return Ok(Resolved::Absent),
                _ => {
                    return Ok(Resolved::Visible(Visible {
                        overflow: header.shape.overflow,
                        start: 0,
                        end: body.len(),
                    }));
                }
            }
        }
    }
}

/// The answer of [`VersionStore::resolve`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// The visible version's body is in the buffer.
    Visible(Visible),
    /// The view sees no row here.
    Absent,
    /// The chain changed under the reader: read the head again.
    Changed,
}

/// Whether a leaf's row can be handed out as it is, without a chain: its body's offset and shape.
/// `None` where [`VersionStore::resolve`] must decide. The fast way of scans.
#[inline(always)]
pub fn visible_as_is(view: &View<'_>, row: &[u8]) -> Option<Resolved> {
    if Header::is_of_cold(row) {
        return Some(cold(row));
    }
    visible_as_stamped(view, row)
}

/// What everybody sees of a [cold](Header::is_of_cold) row.
#[inline(always)]
fn cold(row: &[u8]) -> Resolved {
    Resolved::Visible(Visible {
        overflow: false,
        start: FROZEN_HEADER,
        end: row.len(),
    })
}

/// As [`visible_as_is`], of a row that is not cold. Apart from that, so that the one byte of those that are is looked at without a call.
#[inline]
fn visible_as_stamped(view: &View<'_>, row: &[u8]) -> Option<Resolved> {
    if !stamping::stamps_rows(view) {
        // What was written since the start and is seen: so of whole tables, once they were loaded.
        if let Some(version) = Header::of_plain(row)
            && view.sees(&version)
        {
            return Some(Resolved::Visible(Visible {
                overflow: false,
                start: STAMPED_HEADER,
                end: row.len(),
            }));
        }
        // All rows of a hot table. To decode a whole header of each took nearly as long as to copy the rows.
        if let Some(version) = Header::of_plain_fat(row) {
            if !view.sees(&version) {
                return None;
            }
            let length = fat::layout::body(row)?.len();
            return Some(Resolved::Visible(Visible {
                overflow: false,
                start: BODY_AT,
                end: BODY_AT + length,
            }));
        }
        // At the head of a queue are those of the last transactions.
        if let Some(version) = Header::of_tombstone(row)
            && view.sees(&version)
        {
            return Some(Resolved::Absent);
        }
    }
    visible_by_header(view, row)
}

/// As [`visible_as_is`], by the whole header, whatever row it is of.
#[inline]
pub(crate) fn visible_by_header(view: &View<'_>, row: &[u8]) -> Option<Resolved> {
    match judge(view, row)? {
        Head::Seen(header, body) => Some(seen(&header, body)),
        Head::Absent => Some(Resolved::Absent),
        Head::Chain(..) => None,
    }
}

#[inline]
fn judge(view: &View<'_>, row: &[u8]) -> Option<Head> {
    let header = Header::decode(row)?;
    Some(match header.writer {
        Some(writer) if !view.sees_row(&header, &writer.version) => {
            if is_absent(view, &header, &writer) {
                Head::Absent
            } else {
                Head::Chain(header, writer)
            }
        }
        _ if header.fat => {
            let length = fat::layout::body(row)?.len();
            Head::Seen(header, BODY_AT..BODY_AT + length)
        }
        _ => Head::Seen(header, header.length()..row.len()),
    })
}

/// True if a view that does not see the version of this header sees no older one either.
#[inline]
fn is_absent(view: &View<'_>, header: &Header, writer: &Writer) -> bool {
    writer.first
        || matches!(
            view.shortcut(header, &writer.version),
            Some(Shortcut::Absent(_))
        )
}

/// The delta that a view goes on with that does not see the version of this header; and whether that is a full copy for sure. (If it is none,
/// the row has turned fat and back since, and the version that it belongs to may be of another length than this one.)
#[inline]
fn next(view: &View<'_>, header: &Header, writer: &Writer) -> (DeltaName, bool) {
    match view.shortcut(header, &writer.version) {
        // V46.
        Some(Shortcut::Link(link)) => (DeltaName::lasting(link.version), link.cover == EVERYTHING),
        _ => (header.delta_of(writer), false),
    }
}

#[inline]
fn seen(header: &Header, body: Range<usize>) -> Resolved {
    let Shape {
        tombstone,
        overflow,
    } = header.shape;
    if tombstone {
        Resolved::Absent
    } else {
        Resolved::Visible(Visible {
            overflow,
            start: body.start,
            end: body.end,
        })
    }
}
