//! Shortcuts: the way of old snapshots past versions that they do not see. With them, what is left of a row under an old
//! snapshot is its newest version and those that some old snapshot sees, however often it is updated.
//!
//! Paper: none. LeanStore (§3.3) gets rid of the versions between in fat rows alone, which pays for rows that are updated
//! all the time; here are those that are updated every few seconds, and those that are updated once.
//!
//! A version N that replaces H carries one while analytical snapshots are open. It is one of two facts, true for ever:
//! - *Bound*: who is at or below it, and is not N's own transaction, sees no row. (The row's first version is stamped at or
//!   above the bound, and a commit is later than its stamp.)
//! - *Link* to version L, not newer than N: who is at or below L's stamp, and is not N's own transaction, sees neither L nor
//!   anything newer; and the delta of L, put over the body of N, gives the version before L. So the delta *covers* what was
//!   changed since: it is a full copy, or holds all bytes of those sixteenths of the body in which anything was changed.
//!
//! So the delta of N itself is needed by snapshots between the bound (or L's stamp) and N's commit alone: it is
//! *transient*, and is swept when there are none (`sweep`). The delta of L stays as any delta does.
//!
//! A version links to its own delta when an analytical snapshot may see the one that it replaces; later ones inherit that
//! link, or the first version's bound, until there is a newer analytical snapshot.
//!
//! Layout of the bound's code (3 bytes): ticks from the bound to the version's stamp as `u19 mantissa << u5 exponent`, rounded
//! up (so that the bound is rounded down, which is as true). Of the cover (`u16`): a bit for each sixteenth of the body, all
//! of them for a full copy.
//!
//! Invariants:
//! - V45 A shortcut is right whatever the watermarks were when it was made: those only say whether it is of use.
//! - V46 The delta that a link leads to is never transient, and stays covering while any version links to it: it may be
//!   rewritten to hold more of the same version, under the leaf's latch. A full copy stays one: versions of other lengths may link to it. (A
//!   row that turned fat and back has no links, but a reader may have copied one before: it takes nothing else where its link covers everything.)
//! - V47 Own versions that the statement must not see (later commands) are stepped over one by one: no shortcut there.

use crate::delta::{self, RANGE_BYTES};
use crate::error::{Result, damaged};
use crate::fat::form::body_length;
use crate::fat::update::Place;
use crate::row::{HEADER_MAX, Header};
use crate::store::VersionStore;
use crate::write::Change;
use smallvec::SmallVec;
use std::ops::Range;
use vellum_base::{SlotId, Timestamp};
use vellum_btree::max_inline_payload;
use vellum_txn::VersionStamp;

/// Bytes of a link in a header, beside its cover.
pub const LINK_BYTES: usize = 2 + 8 + 4;

/// The cover of a full copy: whatever a later version looks like, the copy takes its place.
pub const EVERYTHING: u16 = u16::MAX;

/// Parts of a body that are covered or not.
const PARTS: usize = 16;

const MANTISSA_BITS: u32 = 19;
const MANTISSA_MAX: u64 = 1 << MANTISSA_BITS;
/// Farthest that a bound is from its version's stamp.
const TICKS_MAX: u64 = (MANTISSA_MAX - 1) << 31;

/// Where old snapshots go on that do not see a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shortcut {
    /// With the version's own delta.
    #[default]
    None,
    /// At or below this timestamp they see no row.
    Absent(Timestamp),
    /// With another delta.
    Link(Link),
}

/// A shortcut to a delta.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The version whose delta it is. It is for snapshots at or below the stamp.
    pub version: VersionStamp,
    /// What of the body the delta covers.
    pub cover: u16,
}

/// How the chain goes on behind a version that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Onward {
    /// By its delta.
    Chain,
    /// By its delta, which is made to cover this much, and which it links to.
    Own(u16),
    /// For old snapshots by this shortcut: its delta is transient.
    Past(Shortcut),
}

impl Shortcut {
    /// For whom it is: snapshots at or below this timestamp.
    #[inline]
    pub fn bound(&self) -> Option<Timestamp> {
        match self {
            Self::None => None,
            Self::Absent(below) => Some(*below),
            Self::Link(link) => Some(link.version.stamp),
        }
    }
}

impl Onward {
    /// The shortcut of the version `name`.
    #[inline]
    pub fn shortcut(&self, name: VersionStamp) -> Shortcut {
        match *self {
            Self::Chain => Shortcut::None,
            Self::Own(cover) => Shortcut::Link(Link {
                version: name,
                cover,
            }),
            Self::Past(shortcut) => shortcut,
        }
    }

    /// Bytes of the version's header.
    #[inline]
    pub fn header_length(&self) -> usize {
        match self {
            Self::Chain | Self::Past(Shortcut::None | Shortcut::Absent(_)) => {
                crate::row::STAMPED_HEADER
            }
            Self::Own(_) | Self::Past(Shortcut::Link(_)) => HEADER_MAX,
        }
    }
}

/// The code of a bound, rounded down where it must be. It is [not too far away](rounded).
pub(crate) fn encode_bound(stamp: Timestamp, bound: Timestamp) -> [u8; 3] {
    debug_assert!(bound <= stamp, "the bound of an older version");
    debug_assert!(stamp.get() - bound.get() <= TICKS_MAX);
    let ticks = stamp.get().saturating_sub(bound.get());
    let bits = u64::BITS - ticks.leading_zeros();
    let mut exponent = bits.saturating_sub(MANTISSA_BITS);
    let mut mantissa = ticks.div_ceil(1 << exponent);
    if mantissa == MANTISSA_MAX {
        mantissa >>= 1;
        exponent += 1;
    }
    let code = (exponent << MANTISSA_BITS) | mantissa as u32;
    let [low, middle, high, _] = code.to_le_bytes();
    [low, middle, high]
}

/// The bound that a code says.
pub(crate) fn decode_bound(stamp: Timestamp, [low, middle, high]: [u8; 3]) -> Timestamp {
    let code = u32::from_le_bytes([low, middle, high, 0]);
    let mantissa = u64::from(code) & (MANTISSA_MAX - 1);
    Timestamp(
        stamp
            .get()
            .saturating_sub(mantissa << (code >> MANTISSA_BITS)),
    )
}

/// The bound as the header of a version with this stamp can say it; zero, of no use to anybody, where it is too far away.
fn rounded(stamp: Timestamp, bound: Timestamp) -> Timestamp {
    if stamp.get() - bound.get() > TICKS_MAX {
        return Timestamp::ZERO;
    }
    decode_bound(stamp, encode_bound(stamp, bound))
}

pub(crate) fn encode_link(version: &VersionStamp) -> [u8; LINK_BYTES] {
    let mut bytes = [0; LINK_BYTES];
    bytes[..2].copy_from_slice(&version.slot.get().to_le_bytes());
    bytes[2..10].copy_from_slice(&version.stamp.get().to_le_bytes());
    bytes[10..].copy_from_slice(&version.command.to_le_bytes());
    bytes
}

pub(crate) fn decode_link(bytes: &[u8; LINK_BYTES]) -> VersionStamp {
    let mut stamp = [0; 8];
    stamp.copy_from_slice(&bytes[2..10]);
    VersionStamp {
        slot: SlotId(u16::from_le_bytes([bytes[0], bytes[1]])),
        stamp: Timestamp(u64::from_le_bytes(stamp)),
        command: u32::from_le_bytes([bytes[10], bytes[11], bytes[12], bytes[13]]),
    }
}

/// Bytes of one part of a body.
fn part_bytes(body: usize) -> usize {
    body.div_ceil(PARTS).max(1)
}

/// The parts of a body of that length in which ranges lie.
pub(crate) fn cover_of(ranges: &[Range<usize>], body: usize) -> u16 {
    // Rows are shorter than a page: divisions of 32 bits take half the time.
    let part = part_bytes(body) as u32;
    let mut cover = 0_u32;
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        debug_assert!(range.end <= body);
        let (first, last) = (range.start as u32 / part, (range.end - 1) as u32 / part);
        cover |= (2 << last) - (1 << first);
    }
    cover as u16
}

/// All bytes of these parts of a body of that length.
pub(crate) fn covered(cover: u16, body: usize) -> SmallVec<[Range<usize>; 4]> {
    let part = part_bytes(body);
    let mut ranges: SmallVec<[Range<usize>; 4]> = SmallVec::new();
    let (mut rest, mut at) = (u32::from(cover), 0);
    // Run by run, and not part by part: this is done for each row that is written beside an old snapshot.
    while rest != 0 {
        let gap = rest.trailing_zeros();
        let run = (rest >> gap).trailing_ones();
        let start = at + gap as usize;
        at = start + run as usize;
        ranges.push((start * part).min(body)..(at * part).min(body));
        rest >>= gap + run;
    }
    ranges
}

impl Link {
    /// Whether what a change of a body of that length writes lies in what the delta covers.
    fn covers(&self, change: &Change<'_>, body: usize) -> bool {
        match change {
            _ if self.cover == EVERYTHING => true,
            Change::Patch(ranges, _) => cover_of(ranges, body) & !self.cover == 0,
            _ => false,
        }
    }
}

/// What the delta of a version covers that links to it.
fn own_cover(change: &Change<'_>, body: usize) -> u16 {
    let Change::Patch(ranges, _) = change else {
        return EVERYTHING;
    };
    let cover = cover_of(ranges, body);
    let ranges = covered(cover, body);
    if delta::image_bytes(&ranges) + RANGE_BYTES > body {
        return EVERYTHING;
    }
    cover
}

impl VersionStore {
    /// How the chain goes on behind the version that `change` makes of a plain row. Asked while analytical snapshots are
    /// open, the newest of which is `newest_olap`.
    ///
    /// May rewrite the delta of an older version (V46).
    pub(crate) fn onward(
        &self,
        place: &Place<'_>,
        newest_olap: Timestamp,
        before: &Header,
        old_body: &[u8],
        change: &Change<'_>,
    ) -> Result<Onward> {
        debug_assert!(!before.fat);
        if before.shape.tombstone
            || matches!(change, Change::Delete | Change::Nothing)
            || !has_room(place, old_body.len().max(body_length(change)))
        {
            return Ok(Onward::Chain);
        }
        let own = || Ok(Onward::Own(own_cover(change, old_body.len())));
        let Some(writer) = before.writer else {
            return own();
        };
        let stamp = place.transaction.stamp()?;
        let bound = match before.shortcut {
            Shortcut::Absent(below) => below,
            Shortcut::None if writer.first => writer.version.stamp,
            Shortcut::Link(link) if link.version.stamp >= newest_olap => {
                let covers = link.covers(change, old_body.len());
                if covers || self.cover_everything(place, &link.version, old_body)? {
                    let cover = if covers { link.cover } else { EVERYTHING };
                    return Ok(Onward::Past(Shortcut::Link(Link { cover, ..link })));
                }
                return own();
            }
            Shortcut::None | Shortcut::Link(_) => return own(),
        };
        // Under read committed the stamp may be older than the version that it replaces.
        if bound > stamp {
            return own();
        }
        let bound = rounded(stamp, bound);
        if bound < newest_olap {
            return own();
        }
        Ok(Onward::Past(Shortcut::Absent(bound)))
    }

    /// Makes the delta of `version` a full copy; `body` is of a version that links to it. False if it is not there (any
    /// more).
    #[cold]
    fn cover_everything(
        &self,
        place: &Place<'_>,
        version: &VersionStamp,
        body: &[u8],
    ) -> Result<bool> {
        let (mut entry, mut body) = (Vec::new(), body.to_vec());
        let Some(versions) = self.slot(version.slot) else {
            return Ok(false);
        };
        let name = delta::key(version.stamp, version.command);
        if !versions.deltas.tree.get(&name, &mut entry)? {
            return Ok(false);
        }
        debug_assert!(!delta::is_transient(&entry), "V46");
        let tree = place.tree.root();
        let header = delta::apply(&entry, &mut body).ok_or_else(|| damaged("delta", tree))?;
        entry.clear();
        delta::encode_full(&header, &body, &mut entry);
        versions.put_delta(tree, version, &entry)?;
        Ok(true)
    }
}

/// Whether a row with a link fits where the row fits, and so do the deltas that name it. A few bytes below the longest body only
/// it does not.
fn has_room(place: &Place<'_>, body: usize) -> bool {
    let page_size = place.tree.context().page_size();
    HEADER_MAX + body <= max_inline_payload(page_size, place.key.len())
        && delta::ENTRY_OVERHEAD + HEADER_MAX + body
            <= max_inline_payload(page_size, delta::KEY_BYTES)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    #[test]
    fn prop_bound_is_rounded_down_by_at_most_a_few_millionths() {
        let seed = crate::tests::world_seed("prop_bound");
        let mut random = Random::new(seed);
        for _ in 0..100_000 {
            let bits = 1 + random.below(60);
            let stamp = random.below(1 << bits);
            let bound = random.below(stamp + 1);
            let ticks = stamp - bound;
            let said = rounded(Timestamp(stamp), Timestamp(bound)).get();
            assert!(said <= bound, "rounded down");
            if ticks < 1 << 48 {
                assert!(bound - said <= ticks >> 18, "{stamp} {bound} {said}");
            }
            let again = rounded(Timestamp(stamp), Timestamp(said)).get();
            assert_eq!(again, said, "what a header says is what it says again");
        }
        assert_eq!(rounded(Timestamp(9), Timestamp(9)), Timestamp(9));
        assert_eq!(rounded(Timestamp(u64::MAX), Timestamp(5)), Timestamp::ZERO);
    }

    #[test]
    fn prop_covered_parts_hold_the_ranges_they_are_of() {
        let seed = crate::tests::world_seed("prop_covered");
        let mut random = Random::new(seed);
        for _ in 0..20_000 {
            let body = 1 + random.below(600) as usize;
            let mut ranges = Vec::new();
            for _ in 0..random.below(4) {
                let start = random.below(body as u64) as usize;
                let end = start + random.below((body - start) as u64 + 1) as usize;
                ranges.push(start..end);
            }
            let cover = cover_of(&ranges, body);
            let parts = covered(cover, body);
            assert!(parts.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert!(parts.iter().all(|part| part.end <= body));
            for range in ranges.iter().filter(|range| !range.is_empty()) {
                let mut parts = parts.iter();
                assert!(parts.any(|part| part.start <= range.start && range.end <= part.end));
            }
            assert_eq!(cover_of(&parts, body), cover);
        }
    }
}
