//! Writing to fat rows, and turning rows fat: what form a row has after a write.
//!
//! Paper: LeanStore §3.3, §3.5 (update operation).
//!
//! An update of a fat row writes header, body and one old version: in the place of the one before it, if nobody sees that
//! (`displace`), else into slack that the row has; where the body gets another length, the old versions move. When that is used up, versions are pruned; only what is still needed then makes the row grow. A row whose versions do not fit the bound is
//! turned back into a chain.
//!
//! Invariants:
//! - F5 A row turns fat only with its whole chain (F1), in an update or delete by somebody who did not make the newest version: so
//!   what stands in a fat row was put there as a delta, or straight into it, by one rule for all. (Not in updates alone: where
//!   each transaction deletes the row and inserts it again, its newest version is the inserter's own or is deleted next.)
//! - F8 A row turns fat only if the body that is replaced would fit before the same old versions: undo puts it there, and
//!   cannot fail.
//! - F7 What goes into a row loses its shortcut: the row holds all that is left of its chain.
//! - F6 Open snapshots are collected with no latch held: collecting waits for slots that begin. A list may be as old
//!   as one likes (gc, I2).

use crate::delta::{self, DeltaName, Home};
use crate::error::{Result, VersionError, damaged};
use crate::fat::convert::Chain;
use crate::fat::decompose::{Gone, old_versions};
use crate::fat::displace::displace;
use crate::fat::estimate;
use crate::fat::form::{FatScratch, Form, Kind, body_length, version_length};
use crate::fat::layout::{BODY_AT, FatRow, OldVersion, Step};
use crate::fat::prune::{Pruned, encode_versions, prune, versions_bytes};
use crate::pair;
use crate::row::{Header, STAMPED_HEADER};
use crate::shortcut::{Onward, Shortcut};
use crate::store::VersionStore;
use crate::write::Change;
use smallvec::SmallVec;
use std::ops::Range;
use vellum_base::planted::Bug;
use vellum_btree::{LeafWrite, Tree, max_inline_payload};
use vellum_gc::{Horizon, is_dead_between};
use vellum_metrics::Counter;
use vellum_txn::{ActiveSnapshots, Domain, Transaction, VersionStamp, promotion_ticks};

/// Full fat rows that a slot's writers prune under one oldest OLTP snapshot, before they ask for promotion: a millisecond's work.
const PRUNED_FULL: u64 = 256;

/// Whose row it is that a write is about, for what is decided here.
pub(crate) struct Place<'p> {
    pub transaction: &'p Transaction,
    pub tree: &'p Tree,
    pub key: &'p [u8],
    /// Open snapshots were collected for this write.
    pub is_listed: bool,
}

/// A row's form, and the header of the version that is replaced, as it will be kept.
pub(crate) type Planned = (Form, Header);

impl Place<'_> {
    fn domain(&self) -> &Domain {
        self.transaction.domain()
    }

    pub(crate) fn page_size(&self) -> usize {
        self.tree.context().page_size()
    }

    /// Longest image that stands in a row.
    pub(crate) fn image_max(&self) -> usize {
        self.page_size() / 32
    }

    /// Longest fat row with a body of this length.
    fn row_max(&self, body: usize) -> usize {
        let page_size = self.page_size();
        let bound = (page_size / 4).max(BODY_AT + body + page_size / 16);
        // So that it can be buried as it is, should it be deleted.
        bound.min(max_inline_payload(page_size, pair::length(self.key.len())))
    }

    /// Room for versions to come. Under one old snapshot each takes the place of the one before it (`displace`), and all that
    /// this is needed for is a bad moment; scans copy it with the row, and it fills leaves: with twice as much a scan of hot rows went
    /// through half as many leaves again.
    fn slack_for(&self, version: usize) -> usize {
        (2 * version).min(self.page_size() / 12).max(version)
    }

    fn plain(&self) -> Form {
        if self.transaction.reads_commit_stamps() {
            // The estimate's bytes are for the commit timestamp (`stamping`).
            return Form::NEW;
        }
        Form::Plain {
            updates: 0,
            since: self.oldest_bits(),
            onward: Onward::Chain,
        }
    }

    /// What tells one oldest transaction from another, for the estimate.
    fn oldest_bits(&self) -> u16 {
        self.domain().watermarks().oldest_tx.get() as u16
    }

    /// The versions without those that nobody needs, by what is known already; `None` if they are damaged.
    fn prune_by_known<'r>(
        &self,
        active: &ActiveSnapshots,
        newest: VersionStamp,
        old: &[OldVersion<'r>],
    ) -> Option<Pruned<'r>> {
        let domain = self.domain();
        let horizon = Horizon::published(domain);
        let oldest = active.oldest();
        prune(newest, old, |version, newer| match version {
            Some(version) => {
                horizon.is_in_dead_zone(version, newer)
                    || is_dead_between(domain, active, version, newer)
            }
            None => domain.is_committed_before(newer, oldest),
        })
    }
}

/// The bytes from the first to the last that differ.
fn difference(old: &[u8], new: &[u8]) -> Range<usize> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    start..old.len() - ends.take_while(|(a, b)| a == b).count()
}

impl VersionStore {
    /// Decides what form a row that exists has after a write. `None`: first open snapshots must be collected, which waits,
    /// so not under this latch (F6). Leaves in `scratch` what goes into the row.
    ///
    /// May change delta indexes in ways that the row as it is does not mind.
    #[inline]
    pub(crate) fn plan(
        &self,
        place: &Place<'_>,
        leaf: &LeafWrite<'_, '_>,
        before: &Header,
        old_body: &[u8],
        change: &Change<'_>,
        scratch: &mut FatScratch,
    ) -> Result<Option<Planned>> {
        if before.fat {
            return self.plan_fat(place, leaf, before, old_body, change, scratch);
        }
        if !self.options().fat {
            // Nobody estimates, and the bytes may be somebody else's (`stamping`).
            let plain = Header {
                fat: false,
                ..*before
            };
            return Ok(Some((Form::NEW, plain)));
        }
        let marks = place.domain().watermarks();
        let since = marks.oldest_tx.get() as u16;
        let mut onward = Onward::Chain;
        if !marks.newest_olap.is_zero() && self.options().shortcuts {
            onward = self.onward(place, marks.newest_olap, before, old_body, change)?;
        }
        let is_own = || {
            let writer = before.writer;
            writer.is_some_and(|writer| place.transaction.is_own(&writer.version))
        };
        let stamp = match before.shortcut {
            Shortcut::Link(_) if !is_own() => Some(place.transaction.stamp()?),
            _ => None,
        };
        let chosen = self.options().fat_updates;
        let estimate = estimate::next(before, &onward, since, stamp, chosen);
        if estimate.is_due
            && (chosen.is_some() || estimate.exceeds(place.domain().slots_in_use()))
            && !is_own()
            && !matches!(change, Change::Nothing)
        {
            return self.plan_conversion(place, before, old_body, change, scratch);
        }
        let plain = Header {
            fat: false,
            ..*before
        };
        let form = Form::Plain {
            updates: estimate.updates,
            since,
            onward,
        };
        Ok(Some((form, plain)))
    }

    /// Longest body of an old version that stands in a row. Twice the longest image: a body of that length, what an old snapshot sees and
    /// what was replaced last fit a row.
    fn whole_max(&self, page_size: usize) -> usize {
        #[cfg(test)]
        if self.copies_all {
            return 0;
        }
        page_size / 16
    }

    /// How the replaced version is kept, with its image in the scratch, and where the body changes.
    fn kind_of(
        &self,
        place: &Place<'_>,
        before: &Header,
        old_body: &[u8],
        change: &Change<'_>,
        scratch: &mut FatScratch,
    ) -> Kind {
        scratch.spans.clear();
        let has_ranges = match change {
            Change::Patch(ranges, _) => {
                scratch.spans.extend(ranges.iter().cloned());
                scratch.image.len() <= place.image_max()
            }
            Change::Put(shape, body) if body.len() == old_body.len() && *shape == before.shape => {
                scratch.image.clear();
                let span = difference(old_body, body);
                let is_short = span.len() + delta::RANGE_BYTES <= place.image_max();
                if is_short {
                    delta::encode_image(old_body, std::slice::from_ref(&span), &mut scratch.image);
                }
                scratch.spans.push(span);
                is_short
            }
            Change::Put(_, body) => {
                scratch.spans.push(0..body.len());
                false
            }
            Change::Nothing | Change::Delete => false,
        };
        match has_ranges {
            _ if before.shape.tombstone => Kind::Same,
            true => Kind::Ranges,
            false if old_body.len() <= self.whole_max(place.page_size()) => Kind::Whole,
            false => Kind::Copy,
        }
    }

    fn plan_fat(
        &self,
        place: &Place<'_>,
        leaf: &LeafWrite<'_, '_>,
        before: &Header,
        old_body: &[u8],
        change: &Change<'_>,
        scratch: &mut FatScratch,
    ) -> Result<Option<Planned>> {
        let kind = self.kind_of(place, before, old_body, change, scratch);
        let replaced = version_length(before, kind, &scratch.image, old_body);
        let capacity = leaf.payload_len();
        let mut lengths = [0; 4];
        leaf.payload_read(STAMPED_HEADER, &mut lengths);
        let (_, versions) = crate::fat::layout::lengths(lengths);
        let look = &mut scratch.row;
        let spare = self.has(Bug::DisplacedTooMuch);
        let all = versions;
        let longest = self.whole_max(place.page_size()).max(place.image_max());
        let versions = displace(
            place,
            leaf,
            old_body.len(),
            (all, longest),
            before,
            look,
            spare,
        );
        let plain = Header {
            fat: false,
            ..*before
        };
        let body = body_length(change);
        // Damaged lengths are found where the row is written anew.
        let has_room = BODY_AT + body + versions + replaced <= capacity
            && BODY_AT + old_body.len() + versions <= capacity;
        if has_room {
            let moves = body != old_body.len();
            if moves {
                scratch.versions.resize(versions, 0);
                leaf.payload_read(BODY_AT + old_body.len(), &mut scratch.versions);
            }
            if versions < all {
                let metrics = self.context().metrics();
                metrics.increment(Counter::VersionsDisplaced);
            }
            let form = Form::Patched {
                versions,
                kind,
                moves,
            };
            return Ok(Some((form, plain)));
        }
        let mut row = std::mem::take(&mut scratch.row);
        leaf.copy_payload(&mut row);
        let planned = self.plan_rebuild(place, plain, &row, change, (kind, replaced), scratch);
        scratch.row = row;
        planned
    }

    #[cold]
    fn plan_rebuild(
        &self,
        place: &Place<'_>,
        before: Header,
        row: &[u8],
        change: &Change<'_>,
        (kind, replaced): (Kind, usize),
        scratch: &mut FatScratch,
    ) -> Result<Option<Planned>> {
        let broken = || damaged("fat row", place.tree.root());
        let fat = FatRow::decode(row).ok_or_else(broken)?;
        let newest = before.writer.ok_or_else(broken)?.version;
        let body = body_length(change);
        let old = old_versions(&fat).ok_or_else(broken)?;
        let slack = place.slack_for(replaced);
        let mut pruned = if place.is_listed {
            self.prune_by_list(place.domain(), &scratch.active, newest, &old)
                .ok_or_else(broken)?
        } else {
            let pruned = place
                .prune_by_known(&scratch.active, newest, &old)
                .ok_or_else(broken)?;
            let needed = BODY_AT + body + versions_bytes(&pruned.kept) + replaced;
            if needed + slack / 2 > row.len() {
                return Ok(None);
            }
            pruned
        };
        if pruned.dropped > 0 {
            self.request_promotion_for_fat(place);
        }
        // With room for one more version, or each update would come here.
        let most = place
            .row_max(body)
            .saturating_sub(BODY_AT + body + replaced);
        if versions_bytes(&pruned.kept) > most {
            let room = (most.saturating_sub(replaced), most);
            self.spill(place.tree.root(), newest, fat.body, &mut pruned, room)?;
        }
        self.keep_in_row(
            place,
            before,
            (row.len(), fat.body),
            &pruned,
            body,
            (kind, replaced),
            None,
            scratch,
        )
    }

    /// Asks for promotion where an old OLTP snapshot makes that versions of fat rows stay until the rows are full, whether what is known suffices to drop them
    /// then or the list of snapshots is collected. These versions are few, and in nobody's way; but each second or third update writes its row anew.
    #[cold]
    fn request_promotion_for_fat(&self, place: &Place<'_>) {
        let marks = place.domain().watermarks();
        let Some(versions) = self.slot(place.transaction.slot()) else {
            return;
        };
        let urgency = versions.note_pruned(marks.oldest_oltp) / PRUNED_FULL;
        let behind = marks.clock.get() - marks.oldest_oltp.get();
        if urgency > 0 && behind > promotion_ticks(urgency) {
            place.domain().request_promotion(urgency);
        }
    }

    fn plan_conversion(
        &self,
        place: &Place<'_>,
        before: &Header,
        old_body: &[u8],
        change: &Change<'_>,
        scratch: &mut FatScratch,
    ) -> Result<Option<Planned>> {
        if !place.is_listed {
            return Ok(None);
        }
        // What does not fit with whole bodies may fit with copies.
        let whole_max = self.whole_max(place.page_size());
        let planned =
            self.plan_conversion_of(place, before, old_body, change, whole_max, scratch)?;
        if planned.is_some() {
            return Ok(planned);
        }
        self.plan_conversion_of(place, before, old_body, change, 0, scratch)
    }

    /// The same, by a list, with full copies of at most `whole_max` bytes in the row. `None` if what is needed does not fit: never if that is zero.
    fn plan_conversion_of(
        &self,
        place: &Place<'_>,
        before: &Header,
        old_body: &[u8],
        change: &Change<'_>,
        whole_max: usize,
        scratch: &mut FatScratch,
    ) -> Result<Option<Planned>> {
        let broken = || damaged("fat row", place.tree.root());
        let Some(writer) = before.writer else {
            return Ok(Some((place.plain(), *before)));
        };
        let kind = self.kind_of(place, before, old_body, change, scratch);
        let root = place.tree.root();
        let chain = self.read_chain_of(place.domain(), &scratch.active, root, before, whole_max)?;
        let mut before = before.alone();
        let replaced = version_length(&before, kind, &scratch.image, old_body);
        if chain.is_cut {
            self.cut_down(place, writer.version, &chain, scratch)?;
            // The next update goes on.
            let again = Form::Plain {
                updates: u8::MAX,
                since: place.oldest_bits(),
                onward: Onward::Chain,
            };
            return Ok(Some((again, before)));
        }
        if let Some(writer) = &mut before.writer {
            writer.first |= chain.ends_first && chain.names.is_empty();
        }
        let old: SmallVec<[OldVersion<'_>; 16]> = chain.versions().collect();
        let pruned = self
            .prune_by_list(place.domain(), &scratch.active, writer.version, &old)
            .ok_or_else(broken)?;
        let body = body_length(change);
        // The body that is replaced may be a copy while those before it are whole.
        let named = version_length(&before, Kind::Copy, &scratch.image, old_body);
        let least = BODY_AT + body + versions_bytes(&pruned.kept) + replaced.min(named);
        if least > place.row_max(body) && whole_max > 0 {
            return Ok(None);
        }
        self.keep_in_row(
            place,
            before,
            (0, old_body),
            &pruned,
            body,
            (kind, replaced),
            Some(&chain),
            scratch,
        )
    }

    /// Takes out of the newest part of a long chain what nobody needs. It stays a chain (F5), which goes on behind its oldest
    /// version by that one's own header, so that one stays.
    #[cold]
    fn cut_down(
        &self,
        place: &Place<'_>,
        newest: VersionStamp,
        chain: &Chain,
        scratch: &mut FatScratch,
    ) -> Result<()> {
        let old: SmallVec<[OldVersion<'_>; 16]> = chain.versions().collect();
        let stays = old.last().and_then(|last| last.header.writer);
        let pruned = prune(newest, &old, |version, newer| match version {
            Some(version) if stays.is_none_or(|stays| stays.version != *version) => {
                is_dead_between(place.domain(), &scratch.active, version, newer)
            }
            _ => false,
        });
        let tree = place.tree.root();
        let pruned = pruned.ok_or_else(|| damaged("delta", tree))?;
        self.rewrite_copies(tree, &chain.rewritten(&pruned))?;
        forget_chain(chain, &pruned, &mut scratch.gone);
        self.put_chain(tree, newest, &pruned.kept, &mut scratch.gone)
    }

    /// The form of a row whose old versions were pruned; `capacity`: its length now; `old_body`: its body; `chain`: where they are now, if not
    /// in the row. What does not fit the row is a chain from then on, of what is needed.
    #[allow(
        clippy::too_many_arguments,
        reason = "what the row is, and what it becomes"
    )]
    fn keep_in_row(
        &self,
        place: &Place<'_>,
        mut before: Header,
        (capacity, old_body): (usize, &[u8]),
        pruned: &Pruned<'_>,
        body: usize,
        (mut kind, mut replaced): (Kind, usize),
        chain: Option<&Chain>,
        scratch: &mut FatScratch,
    ) -> Result<Option<Planned>> {
        let tree = place.tree.root();
        match chain {
            None => self.rewrite_copies(tree, &pruned.rewrites)?,
            Some(chain) => self.rewrite_copies(tree, &chain.rewritten(pruned))?,
        }
        match chain {
            None => {
                scratch.gone.clear();
                let gone = pruned.gone.iter().copied();
                scratch.gone.extend(gone.map(DeltaName::lasting));
            }
            Some(chain) => forget_chain(chain, pruned, &mut scratch.gone),
        }
        if let Some(writer) = &mut before.writer {
            writer.first |= pruned.newest_is_first;
        }
        let kept = versions_bytes(&pruned.kept);
        let max = place.row_max(body);
        if kind == Kind::Whole && BODY_AT + body + kept + replaced > max {
            kind = Kind::Copy;
            replaced = version_length(&before, kind, &scratch.image, old_body);
        }
        let needed = BODY_AT + body + kept + replaced;
        // F8.
        let reverted = BODY_AT + old_body.len() + kept;
        let limit = max_inline_payload(place.page_size(), place.key.len());
        if pruned.kept.is_empty() || needed > max || reverted > limit {
            // Nobody needs what is older than the version that is replaced; or it does not fit.
            if let Some(writer) = before.writer {
                self.put_chain(tree, writer.version, &pruned.kept, &mut scratch.gone)?;
            }
            return Ok(Some((place.plain(), before)));
        }
        scratch.versions.clear();
        encode_versions(&pruned.kept, &mut scratch.versions);
        let good = (needed + place.slack_for(replaced)).min(max);
        // A row that has about the right length keeps it: it stays where it is in the leaf.
        let stays = (needed + place.slack_for(replaced) / 2..=2 * good).contains(&capacity);
        let slack = if stays { capacity } else { good } - needed;
        Ok(Some((Form::Rebuilt { slack, kind }, before)))
    }
}

/// A chain stands in the row now: its deltas go, but for the copies that the row names. Those of transient ones are beside them (V76).
fn forget_chain(chain: &Chain, pruned: &Pruned<'_>, gone: &mut Gone) {
    gone.clear();
    let is_named = |version: &VersionStamp| {
        let mut kept = pruned.kept.iter();
        kept.any(|kept| kept.as_old().step == Step::Copy(*version))
    };
    for name in &chain.names {
        if name.home == Home::Transient {
            gone.push(*name);
        }
        if !is_named(&name.version) {
            gone.push(DeltaName::lasting(name.version));
        }
    }
}

/// A row that exists and cannot be read.
pub(crate) fn broken_row(tree: &Tree) -> VersionError {
    damaged("row", tree.root()).into()
}
