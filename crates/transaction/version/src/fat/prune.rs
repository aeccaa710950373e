//! Throwing versions away from the middle of a chain: which go, and how the others are reached without them.
//!
//! Paper: LeanStore §3.3 (precise garbage collection, attribute-wise merge). Differences: who is dead is asked of the
//! commit logs (`gc`), never guessed from stamps, which are not even ordered where read-committed writers are.
//!
//! A version that goes leaves its ranges to the next older one, whose bytes win where both have some: from the next newer
//! version one gets to the older one by writing first the one's ranges, then the other's. A full copy needs nothing of
//! what is newer. Where a version with a full copy goes and the next older one stands on it with ranges, the copy is
//! rewritten: it becomes the full copy of the older one, under the same name. A whole body in the row takes the ranges, and nothing is rewritten.
//!
//! Concurrency: a reader may still go by the row as it was before. If it wants the older version it finds the
//! rewritten copy and writes ranges over it that are in it already: the same bytes. If it wants the one that went, its
//! snapshot sees that, and it did not go. A copy that is gone sends it back to the row.
//!
//! Not here: taking copies away and rewriting them (`VersionStore`); nothing here knows a tree.

use crate::delta;
use crate::fat::layout::{OldVersion, Step};
use crate::row::{Header, Writer};
use smallvec::SmallVec;
use std::borrow::Cow;
use vellum_base::codec::Reader;
use vellum_txn::VersionStamp;

/// How a version that stays is made from the next newer one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeptStep<'r> {
    /// As [`Step::Same`].
    Same,
    /// As [`Step::Ranges`].
    Ranges(Cow<'r, [u8]>),
    /// As [`Step::Copy`].
    Copy(VersionStamp),
    /// As [`Step::Whole`].
    Whole(Cow<'r, [u8]>),
}

/// A version that stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept<'r> {
    /// Its header.
    pub header: Header,
    /// How its body is made.
    pub step: KeptStep<'r>,
}

/// A full copy that becomes that of an older version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewrite<'r> {
    /// Its name, which stays.
    pub name: VersionStamp,
    /// Header of the older version.
    pub header: Header,
    /// Ranges to write over it.
    pub image: Cow<'r, [u8]>,
}

/// What pruning leaves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pruned<'r> {
    /// The old versions that stay, from the newest to the oldest.
    pub kept: Vec<Kept<'r>>,
    /// How many went.
    pub dropped: usize,
    /// The newest version of the row became the first: nobody can see that there was one before it.
    pub newest_is_first: bool,
    /// Full copies to rewrite before the row changes.
    pub rewrites: Vec<Rewrite<'r>>,
    /// Full copies that nothing needs once the row has changed.
    pub gone: SmallVec<[VersionStamp; 4]>,
}

/// What the versions that went since the last that stays leave to the next one.
enum Carry<'r> {
    Nothing,
    Ranges(Cow<'r, [u8]>),
    /// The copy of one of them, and what is to be written over it.
    Copy(VersionStamp, Cow<'r, [u8]>),
    /// The body of one of them.
    Whole(Cow<'r, [u8]>),
}

/// Drops every version of `old` (from the newest to the oldest) that `is_dead` names, given it (`None`: a frozen one,
/// committed before everything) and the next newer version that stays; `newest` is the row's. `None` if the versions are damaged: ranges do
/// not lie in the body that they are written over.
pub fn prune<'r>(
    newest: VersionStamp,
    old: &[OldVersion<'r>],
    mut is_dead: impl FnMut(Option<&VersionStamp>, &VersionStamp) -> bool,
) -> Option<Pruned<'r>> {
    let mut pruned = Pruned::default();
    let mut newer = newest;
    let mut carry = Carry::Nothing;
    for version in old {
        let name = version.header.writer.map(|writer| writer.version);
        if is_dead(name.as_ref(), &newer) {
            pruned.dropped += 1;
            carry = leave(carry, version, &mut pruned)?;
            if version.header.writer.is_some_and(|writer| writer.first) {
                make_first(&mut pruned);
            }
            continue;
        }
        let step = take_over(
            std::mem::replace(&mut carry, Carry::Nothing),
            version,
            &mut pruned,
        )?;
        pruned.kept.push(Kept {
            header: version.header,
            step,
        });
        if let Some(name) = name {
            newer = name;
        }
    }
    forget(carry, &mut pruned);
    debug_assert_eq!(pruned.kept.len() + pruned.dropped, old.len());
    Some(pruned)
}

/// A version goes: what it leaves, with what was left to it.
fn leave<'r>(
    carry: Carry<'r>,
    version: &OldVersion<'r>,
    pruned: &mut Pruned<'r>,
) -> Option<Carry<'r>> {
    Some(match version.step {
        Step::Same => carry,
        Step::Copy(name) => {
            forget(carry, pruned);
            Carry::Copy(name, Cow::Borrowed(&[]))
        }
        Step::Whole(body) => {
            forget(carry, pruned);
            Carry::Whole(Cow::Borrowed(body))
        }
        Step::Ranges(image) => match carry {
            Carry::Nothing => Carry::Ranges(Cow::Borrowed(image)),
            Carry::Ranges(newer) => Carry::Ranges(merge(newer, image)),
            Carry::Copy(name, newer) => Carry::Copy(name, merge(newer, image)),
            Carry::Whole(body) => Carry::Whole(written_over(body, image)?),
        },
    })
}

/// What is left to a version that needs nothing of it: a copy goes.
fn forget<'r>(carry: Carry<'r>, pruned: &mut Pruned<'r>) {
    if let Carry::Copy(unused, _) = carry {
        pruned.gone.push(unused);
    }
}

/// The body with the ranges written over it.
fn written_over<'r>(mut body: Cow<'r, [u8]>, image: &[u8]) -> Option<Cow<'r, [u8]>> {
    if !image.is_empty() {
        delta::apply_image(image, body.to_mut())?;
    }
    Some(body)
}

/// A version stays: how it is made from the next newer one that stays.
fn take_over<'r>(
    carry: Carry<'r>,
    version: &OldVersion<'r>,
    pruned: &mut Pruned<'r>,
) -> Option<KeptStep<'r>> {
    let image = match version.step {
        Step::Copy(name) => {
            forget(carry, pruned);
            return Some(KeptStep::Copy(name));
        }
        Step::Whole(body) => {
            forget(carry, pruned);
            return Some(KeptStep::Whole(Cow::Borrowed(body)));
        }
        Step::Same if version.header.shape.tombstone => {
            forget(carry, pruned);
            return Some(KeptStep::Same);
        }
        Step::Same => &[],
        Step::Ranges(image) => image,
    };
    Some(match carry {
        Carry::Nothing if version.step == Step::Same => KeptStep::Same,
        Carry::Nothing => KeptStep::Ranges(Cow::Borrowed(image)),
        Carry::Ranges(newer) => KeptStep::Ranges(merge(newer, image)),
        Carry::Whole(body) => KeptStep::Whole(written_over(body, image)?),
        Carry::Copy(name, newer) => {
            pruned.rewrites.push(Rewrite {
                name,
                header: version.header,
                image: merge(newer, image),
            });
            KeptStep::Copy(name)
        }
    })
}

/// The first version of a row went: nobody can tell the next newer one from it, where "before" is concerned.
fn make_first(pruned: &mut Pruned<'_>) {
    match pruned.kept.last_mut() {
        Some(Kept { header, .. }) => {
            if let Some(Writer { first, .. }) = &mut header.writer {
                *first = true;
            }
        }
        None => pruned.newest_is_first = true,
    }
}

type Pieces<'i> = SmallVec<[(usize, &'i [u8]); 8]>;

fn pieces(image: &[u8]) -> Pieces<'_> {
    let mut reader = Reader::new(image);
    let mut pieces = Pieces::new();
    while let (Some(offset), Some(bytes)) = (reader.u32(), reader.prefixed()) {
        pieces.push((offset as usize, bytes));
    }
    pieces
}

/// True if nothing is left of `newer` where `older` is written after it.
pub fn covers(older: &[u8], newer: &[u8]) -> bool {
    let (below, above) = (pieces(newer), pieces(older));
    let end = |(offset, bytes): &(usize, &[u8])| offset + bytes.len();
    below.iter().all(|piece| {
        let mut above = above.iter();
        above.any(|cover| cover.0 <= piece.0 && end(piece) <= end(cover))
    })
}

/// The image that does what writing `newer` and then `older` does.
pub fn merge<'i>(newer: Cow<'i, [u8]>, older: &'i [u8]) -> Cow<'i, [u8]> {
    if newer.is_empty() {
        return Cow::Borrowed(older);
    }
    if older.is_empty() {
        return newer;
    }
    if covers(older, &newer) {
        // The usual case: every update writes the same columns.
        return Cow::Borrowed(older);
    }
    let (below, above) = (pieces(&newer), pieces(older));
    let end = |(offset, bytes): &(usize, &[u8])| offset + bytes.len();
    let mut spans: SmallVec<[(usize, usize); 16]> = below
        .iter()
        .chain(&above)
        .map(|piece| (piece.0, end(piece)))
        .collect();
    spans.sort_unstable();
    let mut joined: SmallVec<[(usize, usize); 16]> = SmallVec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => joined.push(span),
        }
    }
    let mut out = Vec::with_capacity(newer.len() + older.len());
    for (start, stop) in joined {
        out.extend_from_slice(&(start as u32).to_le_bytes());
        out.extend_from_slice(&((stop - start) as u32).to_le_bytes());
        let at = out.len();
        out.resize(at + stop - start, 0);
        for (offset, bytes) in below.iter().chain(&above) {
            if (start..stop).contains(offset) {
                let to = at + offset - start;
                out[to..to + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
    Cow::Owned(out)
}

impl<'r> Kept<'r> {
    /// As it stands in a row.
    pub fn as_old(&self) -> OldVersion<'_> {
        OldVersion {
            header: self.header,
            step: match &self.step {
                KeptStep::Same => Step::Same,
                KeptStep::Ranges(image) => Step::Ranges(image),
                KeptStep::Copy(name) => Step::Copy(*name),
                KeptStep::Whole(body) => Step::Whole(body),
            },
        }
    }
}

/// Bytes that versions take in a row.
pub fn versions_bytes(kept: &[Kept<'_>]) -> usize {
    kept.iter().map(|kept| kept.as_old().length()).sum()
}

/// Appends versions (from the newest to the oldest) in the form of a row: the oldest first.
pub fn encode_versions(kept: &[Kept<'_>], out: &mut Vec<u8>) {
    for kept in kept.iter().rev() {
        kept.as_old().encode(out);
    }
}

#[cfg(test)]
mod tests;
