//! Turning a chained row fat: its chain is followed, and what somebody still sees is put into the row.
//!
//! Paper: LeanStore §3.3 (detecting long version chains, FatTuple). Differences: the whole chain goes into the row or
//! nothing does; deltas that are in the row are taken out of their indexes, where nobody would find them before the
//! oldest snapshot ends. A chain that is longer than one follows at once is cut down first, a piece with each attempt: it stays a
//! chain meanwhile.

use crate::delta::{self, DeltaName, Entry, Home};
use crate::error::{Result, damaged};
use crate::fat::layout::{OldVersion, Step};
use crate::fat::prune::{Pruned, Rewrite};
use crate::row::{Header, Writer};
use crate::shortcut::Shortcut;
use crate::store::VersionStore;
use std::ops::Range;
use vellum_base::PageId;
use vellum_btree::LeafHints;
use vellum_txn::{ActiveSnapshots, Domain};

/// Deltas that are followed at once. A chain is longer only where one transaction made it so.
const CHAIN_MAX: usize = 1024;

/// A chain, read from its delta indexes.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Their deltas, from the newest to the oldest.
    pub names: Vec<DeltaName>,
    links: Vec<Link>,
    bytes: Vec<u8>,
    /// Nobody sees anything before its oldest version, or (if it has none) before the row's newest one.
    pub ends_first: bool,
    /// The newest part of a longer one: behind its oldest version the chain goes on as it was.
    pub is_cut: bool,
}

#[derive(Debug)]
struct Link {
    /// As it stands in a fat row.
    header: Header,
    /// As it was in its row or delta.
    older: Header,
    how: How,
    /// Where in `Chain::bytes` that is.
    bytes: Range<usize>,
}

/// How a version of a chain stands in a fat row.
#[derive(Clone, Copy, Debug)]
enum How {
    /// A tombstone, by nothing.
    Same,
    Ranges,
    Whole,
    /// By its delta, which stays.
    Copy,
}

impl Chain {
    /// Its versions, from the newest to the oldest, as they stand in a fat row.
    pub fn versions(&self) -> impl Iterator<Item = OldVersion<'_>> {
        let last = self.links.len().wrapping_sub(1);
        let links = self.names.iter().zip(&self.links).enumerate();
        links.map(move |(index, (name, link))| {
            let bytes = &self.bytes[link.bytes.clone()];
            let step = match link.how {
                How::Same => Step::Same,
                How::Ranges => Step::Ranges(bytes),
                How::Whole => Step::Whole(bytes),
                How::Copy => Step::Copy(name.version),
            };
            let goes_on = self.is_cut && index == last;
            let mut header = if goes_on { link.older } else { link.header };
            if let Some(writer) = &mut header.writer {
                writer.first |= self.ends_first && index == last;
            }
            OldVersion { header, step }
        })
    }

    /// The copies that pruning rewrites, as deltas of the chain. The row may stay what it is (its leaf has no room, a delta
    /// index has none), and then its chain goes on behind them: by the shortcut that the older version had, unless it
    /// became the first. (Interleaving without that: N's copy becomes that of V, whose own delta was swept since it links to
    /// an older one; the leaf is split; the chain that is read again ends with V, and what is before V is lost.)
    pub fn rewritten<'p>(&self, pruned: &Pruned<'p>) -> Vec<Rewrite<'p>> {
        let mut rewrites = pruned.rewrites.clone();
        for Rewrite { header, .. } in &mut rewrites {
            let Some(version) = header.writer.map(|writer| writer.version) else {
                continue;
            };
            let is_of = |header: &Header| header.writer.is_some_and(|w| w.version == version);
            if let Some(kept) = pruned.kept.iter().find(|kept| is_of(&kept.header)) {
                *header = kept.header;
            }
            let link = self.links.iter().find(|link| is_of(&link.older));
            if let (Some(link), Some(Writer { first: false, .. })) = (link, header.writer) {
                header.shortcut = link.older.shortcut;
            }
        }
        rewrites
    }

    /// Takes a delta in; true if the row will name it: a full copy of more than `whole_max` bytes.
    fn push(&mut self, name: DeltaName, entry: &[u8], whole_max: usize) -> Option<bool> {
        let (header, how, bytes): (_, _, &[u8]) = match delta::decode(entry)? {
            Entry::Ranges(header, image) => (header, How::Ranges, image),
            Entry::Full(header, _) if header.shape.tombstone => (header, How::Same, &[]),
            Entry::Full(header, body) if body.len() <= whole_max => (header, How::Whole, body),
            Entry::Full(header, _) => (header, How::Copy, &[]),
        };
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.names.push(name);
        self.links.push(Link {
            header: header.alone(),
            older: header,
            how,
            bytes: from..self.bytes.len(),
        });
        Some(matches!(how, How::Copy))
    }
}

impl VersionStore {
    /// Reads the chain behind a plain row's newest version, down to the first version, or one that every snapshot in
    /// `active` sees, or as far as is followed at once. Full copies of at most `whole_max` bytes are taken out of their deltas. The caller
    /// holds the leaf's latch: a delta that is not there has been collected.
    pub(crate) fn read_chain_of(
        &self,
        domain: &Domain,
        active: &ActiveSnapshots,
        tree: PageId,
        newest: &Header,
        whole_max: usize,
    ) -> Result<Chain> {
        let mut chain = Chain::default();
        let mut entry = Vec::new();
        let mut hints = LeafHints::default();
        let mut newer = *newest;
        while let Some(Writer { version, first }) = newer.writer {
            if first || domain.is_committed_before(&version, active.oldest()) {
                break;
            }
            if chain.names.len() == CHAIN_MAX {
                chain.is_cut = true;
                break;
            }
            let Some(name) = self.delta_behind(&newer, &mut entry, &mut hints, false)? else {
                chain.ends_first = matches!(newer.shortcut, Shortcut::Absent(_));
                break;
            };
            let broken = || damaged("delta", tree);
            let stays = chain.push(name, &entry, whole_max).ok_or_else(broken)?;
            if stays && name.home == Home::Transient {
                // The row will name it, so that it is not swept any more. While the row is what it is, its chain goes by the transient one (V76).
                delta::make_lasting(&mut entry);
                self.put_delta(tree, &name.version, &entry)?;
            }
            newer = chain.links.last().expect("just pushed").older;
        }
        Ok(chain)
    }

    /// Reads the delta by which the chain goes on behind the version of this header, for somebody who wants all that is
    /// left of it: its own, or if that was swept the one that it links to. `None` if the chain ends here: nobody sees anything
    /// older, or everyone sees this version. Nothing about the row changes while this looks, but that deltas are swept.
    pub(crate) fn delta_behind(
        &self,
        header: &Header,
        entry: &mut Vec<u8>,
        hints: &mut LeafHints,
        near: bool,
    ) -> Result<Option<DeltaName>> {
        let link = match header.shortcut {
            // V46.
            Shortcut::Link(link) => Some(DeltaName::lasting(link.version)),
            _ => None,
        };
        for name in header.delta().into_iter().chain(link) {
            if self.read_delta(&name, entry, hints, near)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}
