//! Writes of versioned rows.
//!
//! Paper: LeanStore §3.5 (update operation). Order under the leaf's latch and why: docs/design/0007-versions.md.
//!
//! Invariants:
//! - V8 A row is overwritten only by who sees its newest version (first writer wins); under read committed
//!   by anybody once that version is committed. A deleted version counts wherever it is: in the leaf, in the graveyard
//!   (looked at under the leaf's latch), or dropped (known by the index's note).
//! - V9 The delta is in the index before the leaf names it (and leaves after the leaf was reverted).
//! - V10 Whatever can fail for space (log space, room in the leaf, room in the delta index) comes before the
//!   change of the leaf, which cannot fail.
//!
//! Latches: the row's leaf, then a leaf of the own slot's temporary trees, then the slot latch.

use crate::delta;
use crate::error::{Result, VersionError};
use crate::fat::form::{FatScratch, Form, Replaced, shape_of};
use crate::fat::layout::{BODY_AT, encode_lengths, lengths};
use crate::fat::update::{Place, broken_row};
use crate::read::View;
use crate::row::{HEADER_MAX, Header, STAMPED_HEADER, Shape};
use crate::shortcut::{self, EVERYTHING, Onward, Shortcut};
use crate::stamping;
use crate::store::{SlotVersions, VersionStore};
use crate::undo_record::{self, Revert};
use crate::work::{DISOWN_PART, Work, tombstone_head, work_key};
use smallvec::SmallVec;
use std::ops::Range;
use vellum_base::Timestamp;
use vellum_base::planted::{self, Bug};
use vellum_btree::{Journal, LeafHints, LeafWrite, Logging, RowRedo, Tree};
use vellum_metrics::Counter;
use vellum_txn::{Isolation, Transaction, VersionStamp};
use vellum_wal::FLAG_UNDOABLE;

/// What a write does to a row, decided under the leaf's latch.
#[derive(Clone, Copy, Debug)]
pub enum Change<'c> {
    /// Nothing.
    Nothing,
    /// Puts a version with this shape and body in the row's place (or makes the row).
    Put(Shape, &'c [u8]),
    /// Writes these ranges of this body, whose length and other bytes are as they were. The ranges are
    /// [apart](delta::are_apart).
    Patch(&'c [Range<usize>], &'c [u8]),
    /// Leaves a tombstone.
    Delete,
}

/// The newest version of a live row.
#[derive(Clone, Copy, Debug)]
pub struct Current<'c> {
    /// The body is a chain reference.
    pub overflow: bool,
    /// The body.
    pub body: &'c [u8],
}

/// What a write did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The row was live before.
    pub existed: bool,
    /// Something was written.
    pub changed: bool,
    /// The version's command, for the work that its replaced parts leave behind.
    pub command: u32,
}

/// Buffers of writes, kept from one to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The newest version as it was: its row, without the old versions of a fat one.
    row: Vec<u8>,
    /// Where its body starts.
    body_start: usize,
    shape: Option<Shape>,
    writer: Option<VersionStamp>,
    entry: Vec<u8>,
    fat: FatScratch,
    /// The leaves that were used last.
    pub hints: LeafHints,
}

impl Scratch {
    /// The body of the version that the last write replaced.
    pub fn replaced(&self) -> Option<(Shape, &[u8])> {
        Some((self.shape?, &self.row[self.body_start..]))
    }

    /// Notes that `row` holds the newest version, with this header.
    #[inline]
    fn note_newest(&mut self, header: &Header) {
        self.fat.gone.clear();
        self.shape = Some(header.shape);
        self.writer = header.writer.map(|writer| writer.version);
        self.body_start = header.body_at();
    }

    /// The name of that version; `None` if it was frozen.
    pub fn replaced_version(&self) -> Option<VersionStamp> {
        self.writer
    }
}

impl VersionStore {
    /// Writes one row. `decide` gets the newest version (`None`: no row, or a deleted one) and says
    /// what shall become of it; it runs under the leaf's latch, maybe more than once, so it is never user
    /// code.
    ///
    /// Waits for log space before it latches; never for another transaction.
    ///
    /// # Errors
    /// `Conflict`; what `decide` returns; storage errors. The row is unchanged then.
    #[inline]
    pub fn write<'c>(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
        scratch: &mut Scratch,
        mut decide: impl FnMut(Option<Current<'_>>) -> Result<Change<'c>>,
    ) -> Result<Written> {
        let transaction = view.transaction;
        let mut writer = Writer::new(self, view, tree, key)?;
        loop {
            // V10: a record holds the key, a row and a before-image, none longer than 3/8 of a page.
            writer.slot.reserve(row_budget(tree))?;
            let leaf = tree.write_near(key, &mut scratch.hints)?;
            let before = newest(&leaf, tree, view, scratch)?;
            let existed = before.is_some_and(|header| !header.shape.tombstone);
            // Under read committed what is committed is no conflict, and only that leaves the main index.
            let looks_further = before.is_none()
                && view.olap
                && transaction.options().isolation != Isolation::ReadCommitted;
            if looks_further && self.conflicts_with_buried(view, tree, key)? {
                return Err(VersionError::Conflict);
            }
            let change = decide(before.filter(|_| existed).map(|header| Current {
                overflow: header.shape.overflow,
                body: &scratch.row[scratch.body_start..],
            }))?;
            if matches!(change, Change::Nothing) {
                return Ok(Written {
                    existed,
                    changed: false,
                    command: 0,
                });
            }
            if looks_further && self.may_miss_dropped(view, tree, key) {
                return Err(VersionError::Conflict);
            }
            match writer.change(leaf, before, &change, scratch)? {
                Attempt::Done(command) => {
                    return Ok(Written {
                        existed,
                        changed: true,
                        command,
                    });
                }
                Attempt::Unlisted => {
                    let active = &mut scratch.fat.active;
                    transaction.domain().active_snapshots(active);
                    writer.place.is_listed = true;
                }
                Attempt::NoRoom(length) => {
                    let journal = match change {
                        Change::Delete => Journal::delete(writer.slot),
                        _ => Journal::forward(writer.slot),
                    };
                    tree.make_room(key, length, Some(journal))?;
                    scratch.hints.forget(tree.root());
                }
            }
        }
    }

    /// Patches the row that the last lookup with the scratch's hints found under `key`, if its leaf is as it was then.
    /// `row` is that row as it was read, with its header, and its body from `body_start` on; it is swapped for the scratch's.
    /// Returns whether it was done; `false`: nothing was changed, and [`VersionStore::write`] decides.
    ///
    /// Unchanged leaf: the newest version is the one that was read, so nothing is searched, copied, or compared again (V8 holds
    /// by what the view saw; a version that it read through a chain is not the newest one, and is left to `write`). `decide` runs
    /// under the latch, as that of `write`.
    ///
    /// # Errors
    /// As [`VersionStore::write`].
    #[inline]
    pub fn patch_found<'c>(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
        scratch: &mut Scratch,
        (row, body_start): (&mut Vec<u8>, usize),
        decide: impl FnOnce() -> Result<Change<'c>>,
    ) -> Result<bool> {
        // A body without a header before it was reached through a chain.
        let Some(position) = scratch.hints.found().filter(|_| body_start > 0) else {
            return Ok(false);
        };
        let mut writer = Writer::new(self, view, tree, key)?;
        // V10, before the latch.
        writer.slot.reserve(row_budget(tree))?;
        let Some(leaf) = tree.write_found(key, position) else {
            return Ok(false);
        };
        let header = Header::decode(row).filter(|header| header.body_at() == body_start);
        let Some(header) = header.filter(|header| !header.shape.tombstone) else {
            return Ok(false);
        };
        if let Some(writer) = header.writer
            && !may_overwrite(view, &header, &writer.version)
        {
            return Ok(false);
        }
        let change = decide()?;
        std::mem::swap(&mut scratch.row, row);
        scratch.note_newest(&header);
        debug_assert!(
            {
                // A buffer that is filled anew before it is used: a check that allocates hides what the update does.
                let now = &mut scratch.entry;
                copy_newest(&leaf, now).is_some_and(|now| now == header) && *now == scratch.row
            },
            "the leaf is as it was read"
        );
        let attempt = writer.change(leaf, Some(header), &change, scratch);
        if !matches!(attempt, Ok(Attempt::Done(_))) {
            // Who called goes on with the row.
            std::mem::swap(&mut scratch.row, row);
        }
        Ok(matches!(attempt?, Attempt::Done(_)))
    }

    /// Puts something on the own slot's work list, to be done when version (own stamp, `command`) is
    /// seen by everyone.
    pub(crate) fn add_work(
        &self,
        transaction: &Transaction,
        command: u32,
        work: &Work,
    ) -> Result<()> {
        let versions = self.slot_or_create(transaction.slot())?;
        let stamp = transaction.stamp()?;
        let key = work_key(stamp, command, DISOWN_PART);
        Ok(versions.append_work(stamp, &key, work)?)
    }
}

/// What became of one attempt to change a row.
enum Attempt {
    /// It is changed, by this command.
    Done(u32),
    /// Open snapshots must be collected first.
    Unlisted,
    /// The leaf has no room for a row of this length.
    NoRoom(usize),
}

/// A write of one row.
struct Writer<'w> {
    store: &'w VersionStore,
    view: &'w View<'w>,
    stamp: Timestamp,
    slot: &'w vellum_wal::SlotLog,
    versions: &'w SlotVersions,
    place: Place<'w>,
}

impl<'w> Writer<'w> {
    #[inline]
    fn new(
        store: &'w VersionStore,
        view: &'w View<'w>,
        tree: &'w Tree,
        key: &'w [u8],
    ) -> Result<Self> {
        let transaction = view.transaction;
        Ok(Self {
            store,
            view,
            stamp: transaction.stamp()?,
            slot: transaction.domain().log().slot(transaction.slot()),
            versions: store.slot_or_create(transaction.slot())?,
            place: Place {
                transaction,
                tree,
                key,
                is_listed: false,
            },
        })
    }

    /// Carries a decision out, under the leaf's latch. `before`: the header of the newest version, which is in the scratch.
    #[inline]
    fn change(
        &mut self,
        mut leaf: LeafWrite<'_, '_>,
        before: Option<Header>,
        change: &Change<'_>,
        scratch: &mut Scratch,
    ) -> Result<Attempt> {
        let Place {
            transaction,
            tree,
            key,
            ..
        } = self.place;
        let old_body = &scratch.row[scratch.body_start..];
        scratch.fat.image.clear();
        if let Change::Patch(ranges, _) = change {
            debug_assert!(
                delta::are_apart(ranges),
                "the log record is bounded by that"
            );
            delta::encode_image(old_body, ranges, &mut scratch.fat.image);
        }
        let planned = match &before {
            None => Some((Form::NEW, None)),
            Some(before) => self
                .store
                .plan(
                    &self.place,
                    &leaf,
                    before,
                    old_body,
                    change,
                    &mut scratch.fat,
                )?
                .map(|(form, before)| (form, Some(before))),
        };
        let Some((form, kept)) = planned else {
            return Ok(Attempt::Unlisted);
        };
        // By the header as it is kept: one with a link is longer, and the bound of the row is for what is written.
        let length = form.row_length(change, kept.as_ref(), old_body, &scratch.fat);
        if let Some(length) = length.filter(|length| !leaf.fits(*length)) {
            return Ok(Attempt::NoRoom(length));
        }
        let command = transaction.next_command()?;
        let version = VersionStamp {
            slot: transaction.slot(),
            stamp: self.stamp,
            command,
        };
        let row = Row {
            before: kept,
            body_start: scratch.body_start,
            form,
            version,
            slot: self.slot,
        };
        row.keep_before_image(self.versions, tree, key, change, scratch)?;
        vellum_sync::test_point!("write: between delta and row");
        row.apply(&mut leaf, change, scratch);
        if before.is_some_and(|before| before.fat == form.is_plain()) {
            let metrics = self.store.context().metrics();
            metrics.increment(if form.is_plain() {
                Counter::FatTuplesDecomposed
            } else {
                Counter::FatTuplesMade
            });
        }
        if !scratch.fat.gone.is_empty() {
            self.store.remove_deltas(tree.root(), &scratch.fat.gone);
            scratch.fat.gone.clear();
        }
        stamping::note(self.view, tree, key, command);
        Ok(Attempt::Done(command))
    }
}

/// Log bytes that one write of a row may take, key, row, before-image and headers together.
fn row_budget(tree: &Tree) -> usize {
    tree.context().page_size() * 2
}

/// Reads the newest version under the latch into the scratch; its header, if there is a row. Checks V8.
#[inline]
fn newest(
    leaf: &LeafWrite<'_, '_>,
    tree: &Tree,
    view: &View<'_>,
    scratch: &mut Scratch,
) -> Result<Option<Header>> {
    scratch.fat.gone.clear();
    if !leaf.found() {
        scratch.row.clear();
        (scratch.body_start, scratch.shape) = (0, None);
        scratch.writer = None;
        return Ok(None);
    }
    let header = copy_newest(leaf, &mut scratch.row).ok_or_else(|| broken_row(tree))?;
    scratch.note_newest(&header);
    if let Some(writer) = header.writer
        && !may_overwrite(view, &header, &writer.version)
        && !(planted::has(Bug::NoConflictCheck)
            && view.transaction.domain().is_committed(&writer.version))
    {
        view.transaction.note_conflict(writer.version);
        return Err(VersionError::Conflict);
    }
    Ok(Some(header))
}

/// Copies header and body of a leaf's row, without a fat one's old versions; `None` if it is no row.
#[inline]
pub(crate) fn copy_newest(leaf: &LeafWrite<'_, '_>, row: &mut Vec<u8>) -> Option<Header> {
    let mut head = [0; HEADER_MAX];
    let length = leaf.payload_len();
    let known = length.min(HEADER_MAX);
    leaf.payload_read(0, &mut head[..known]);
    let header = Header::decode(&head[..known])?;
    let end = if header.fat {
        let lengths = lengths(*head[STAMPED_HEADER..].first_chunk()?);
        Some(BODY_AT + lengths.0).filter(|end| known >= BODY_AT && *end <= length)?
    } else {
        length
    };
    row.resize(end, 0);
    leaf.payload_read(0, row);
    Some(header)
}

pub(crate) fn may_overwrite(view: &View<'_>, header: &Header, version: &VersionStamp) -> bool {
    let transaction = view.transaction;
    if transaction.is_own(version) {
        return true;
    }
    match transaction.options().isolation {
        Isolation::Snapshot | Isolation::Statement => view.sees_row(header, version),
        // The leaf is latched, so the version stays the newest while this asks.
        Isolation::ReadCommitted => transaction.domain().is_committed(version),
    }
}

/// A row that is about to change.
struct Row<'w> {
    /// Header of the version that is replaced, as it is kept.
    before: Option<Header>,
    /// Where the old body starts in `Scratch::row`.
    body_start: usize,
    form: Form,
    version: VersionStamp,
    slot: &'w vellum_wal::SlotLog,
}

impl Row<'_> {
    /// V9: puts the before-image into the own delta index, and a deletion on the work list.
    #[inline]
    fn keep_before_image(
        &self,
        versions: &SlotVersions,
        tree: &Tree,
        key: &[u8],
        change: &Change<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(before) = self.before else {
            return Ok(());
        };
        let old_body = &scratch.row[self.body_start..];
        if !self.form.holds_replaced() {
            scratch.entry.clear();
            let onward = self.form.onward();
            match (change, onward) {
                (Change::Patch(..), Onward::Own(cover)) if cover != EVERYTHING => {
                    let ranges = shortcut::covered(cover, old_body.len());
                    delta::encode_ranges(&before, old_body, &ranges, &mut scratch.entry);
                }
                // Never longer than the full copy, for which there is room (`inline_body_max`).
                (Change::Patch(..), Onward::Chain | Onward::Past(_))
                    if self.form.is_plain() && scratch.fat.image.len() <= old_body.len() =>
                {
                    delta::encode_ranges_of(&before, &scratch.fat.image, &mut scratch.entry);
                }
                _ => delta::encode_full(&before, old_body, &mut scratch.entry),
            }
            if let Onward::Past(shortcut) = onward
                && let Some(bound) = shortcut.bound()
            {
                delta::make_transient(tree.root(), bound, &mut scratch.entry);
            }
            versions.append_delta(tree.root(), &self.version, &scratch.entry)?;
        }
        if matches!(change, Change::Delete) {
            let name = delta::key(self.version.stamp, self.version.command);
            // Of a fat row the collector asks the row.
            let has_one = |first: bool| first || planted::has(Bug::BornLate);
            let only = before
                .writer
                .filter(|old| has_one(old.first) && self.form.is_plain());
            let born = only.map(|old| old.version.stamp);
            versions.append_tombstone(&name, &tombstone_head(tree.root(), born), key)?;
        }
        Ok(())
    }

    /// Changes the leaf and logs it. Cannot fail.
    #[inline]
    fn apply(&self, leaf: &mut LeafWrite<'_, '_>, change: &Change<'_>, scratch: &Scratch) {
        let old_body = &scratch.row[self.body_start..];
        let shape = shape_of(change, self.before);
        let reduced = [shape.reduced_flags()];
        let VersionStamp { stamp, command, .. } = self.version;
        match change {
            Change::Nothing => {}
            Change::Patch(ranges, body) => {
                let image = &scratch.fat.image;
                let prefix = undo_record::prefix(stamp, command, &Revert::Ranges(image));
                let mut edits: SmallVec<[(u16, &[u8]); 8]> = SmallVec::new();
                for range in *ranges {
                    edits.push(((range.start + 1) as u16, &body[range.clone()]));
                }
                let undo: [&[u8]; 2] = [&prefix, image];
                let logging = self.logging(RowRedo::Patch(&edits), &undo);
                self.put(leaf, shape, body, Some(ranges), scratch, logging);
            }
            Change::Put(..) | Change::Delete => {
                let body = if let Change::Put(_, body) = change {
                    *body
                } else {
                    &[]
                };
                let redo_row: [&[u8]; 2] = [&reduced, body];
                match self.before {
                    None => {
                        let prefix = undo_record::prefix(stamp, command, &Revert::Remove);
                        let undo: [&[u8]; 1] = [&prefix];
                        let logging = self.logging(RowRedo::Row(&redo_row), &undo);
                        let header = Header::stamped(shape, self.version, true).encode();
                        leaf.insert(&[&header, body], logging);
                    }
                    Some(before) => {
                        let revert = Revert::Whole(before.shape, old_body);
                        let prefix = undo_record::prefix(stamp, command, &revert);
                        let old_reduced = [before.shape.reduced_flags()];
                        let undo: [&[u8]; 3] = [&prefix, &old_reduced, old_body];
                        let logging = self.logging(RowRedo::Row(&redo_row), &undo);
                        self.put(leaf, shape, body, None, scratch, logging);
                    }
                }
            }
        }
    }

    /// Puts the new version where the old one is. `spans`: where the body differs, if it is as long as it was.
    #[inline]
    fn put(
        &self,
        leaf: &mut LeafWrite<'_, '_>,
        shape: Shape,
        body: &[u8],
        spans: Option<&[Range<usize>]>,
        scratch: &Scratch,
        logging: Logging<'_>,
    ) {
        let mut header = Header::stamped(shape, self.version, false);
        let before = self.before.unwrap_or(header);
        let (image, old_body) = (&scratch.fat.image, &scratch.row[self.body_start..]);
        match self.form {
            Form::Plain {
                updates,
                since,
                onward,
            } => {
                header.shortcut = onward.shortcut(self.version);
                match header.shortcut {
                    Shortcut::None => (header.updates, header.since) = (updates, since),
                    Shortcut::Absent(_) => {}
                    Shortcut::Link(_) => header.updates = updates,
                }
                let header = header.encode();
                // Where the body stays where it is, too.
                let Some(spans) = spans.filter(|_| self.body_start == header.len()) else {
                    leaf.replace(&[&header, body], logging);
                    return;
                };
                let mut writes: SmallVec<[(usize, &[u8]); 8]> = SmallVec::new();
                writes.push((0, &header));
                for span in spans {
                    writes.push((header.len() + span.start, &body[span.clone()]));
                }
                leaf.patch(&writes, logging);
            }
            Form::Patched {
                versions,
                kind,
                moves,
            } => {
                header.fat = true;
                let header = header.encode();
                let replaced = Replaced::encode(&before, kind, self.version, image, old_body);
                let lengths = encode_lengths(body.len(), versions + replaced.length());
                let mut writes: SmallVec<[(usize, &[u8]); 8]> = SmallVec::new();
                writes.push((0, &header));
                writes.push((STAMPED_HEADER, &lengths));
                for span in &scratch.fat.spans {
                    writes.push((BODY_AT + span.start, &body[span.clone()]));
                }
                if moves {
                    writes.push((BODY_AT + body.len(), &scratch.fat.versions));
                }
                let mut at = BODY_AT + body.len() + versions;
                for part in replaced.parts() {
                    writes.push((at, part));
                    at += part.len();
                }
                leaf.patch(&writes, logging);
                leaf.mark_fat();
            }
            Form::Rebuilt { slack, kind } => {
                header.fat = true;
                let header = header.encode();
                let replaced = Replaced::encode(&before, kind, self.version, image, old_body);
                let old = &scratch.fat.versions;
                let lengths = encode_lengths(body.len(), old.len() + replaced.length());
                let [first, second, third] = replaced.parts();
                let slack = vec![0; slack];
                let row: [&[u8]; 8] = [&header, &lengths, body, old, first, second, third, &slack];
                leaf.replace(&row, logging);
                leaf.mark_fat();
            }
        }
    }

    fn logging<'l>(&'l self, redo: RowRedo<'l>, undo: &'l [&'l [u8]]) -> Logging<'l> {
        Logging::Record {
            slot: self.slot,
            flags: FLAG_UNDOABLE,
            redo,
            undo,
        }
    }
}

/// Longest body that is kept in the row; longer values go to an overflow chain. Its before-image fits
/// into the delta index, too.
pub fn inline_body_max(page_size: usize, key_len: usize) -> usize {
    vellum_btree::max_inline_payload(page_size, key_len.max(delta::KEY_BYTES))
        .saturating_sub(STAMPED_HEADER + 1)
}
