//! How long the chain of a plain row may be, and how often it is written to: what decides when it turns fat. One byte of a
//! stamped row's header.
//!
//! Paper: LeanStore §3.3 (detecting long version chains). Without a link the byte is the paper's: updates while the oldest
//! transaction stayed the same. Behind a [link](crate::shortcut) a chain does not grow with updates, so it holds two counts of
//! four bits:
//! - *links*: how often the row began to link to a delta of its own. Each leaves one to the chain of the snapshots before.
//! - *heat*: how many of the last updates came [soon](SOON_TICKS) after the one before. A row that every other transaction writes to is
//!   cheaper fat, though its chain is short: its old snapshots need no look into a delta index, its writers leave no delta that is swept.
//!   Not so a row that is written to now and then: there is one for every hot one a thousand times, and the slack of a fat row is some
//!   hundreds of bytes. Late updates take from the heat what soon ones gave to it, so now and then two soon ones do not add up; and what is hot
//!   is bounded: rows written to by the last `SOON_TICKS / 2` transactions.

use crate::row::Header;
use crate::shortcut::{Onward, Shortcut};
use vellum_base::Timestamp;

/// Updates of a row without a link that are waited for at least, if nothing else was chosen.
const UPDATES_LEAST: u8 = 16;

/// Largest count of updates that can be waited for.
const UPDATES_MAX: usize = 250;

/// Largest count of links, and largest heat.
const NIBBLE_MAX: u8 = 15;

/// An update that comes no later after the one before is soon: two ticks are one transaction.
const SOON_TICKS: u64 = 16_384;

/// What the header of a row's next version will say, and whether the row is to turn fat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Estimate {
    /// The byte.
    pub updates: u8,
    /// Due by that byte alone.
    pub is_due: bool,
    is_linked: bool,
}

impl Estimate {
    /// Whether a row that is due turns fat where so many slots are in use: a row without a link that every transaction writes to is
    /// updated between two passes, too, when nobody holds a snapshot.
    #[inline]
    pub fn exceeds(&self, slots_in_use: usize) -> bool {
        self.is_linked || usize::from(self.updates) > slots_in_use.min(UPDATES_MAX)
    }
}

/// The two counts of a row with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Linked {
    links: u8,
    heat: u8,
}

impl Linked {
    fn decode(byte: u8) -> Self {
        Self {
            links: byte >> 4,
            heat: byte & NIBBLE_MAX,
        }
    }

    fn encode(self) -> u8 {
        self.links.min(NIBBLE_MAX) << 4 | self.heat.min(NIBBLE_MAX)
    }
}

/// The estimate of the version that replaces `before` and goes on by `onward`. `since`: the low bits of oldest_tx; `stamp`: of the
/// transaction that writes it, if it did not write the one before; `chosen`: how many updates are waited for, if somebody chose.
#[inline]
pub(crate) fn next(
    before: &Header,
    onward: &Onward,
    since: u16,
    stamp: Option<Timestamp>,
    chosen: Option<u8>,
) -> Estimate {
    // A row with a bound has none: the bound's code takes its place.
    let mut counts = match (before.writer, before.shortcut) {
        (Some(_), Shortcut::Link(_)) => Linked::decode(before.updates),
        (Some(_), Shortcut::None) if before.since == since => Linked {
            links: before.updates,
            heat: 0,
        },
        _ => Linked { links: 0, heat: 0 },
    };
    let links_past = matches!(onward, Onward::Past(Shortcut::Link(_)));
    if !links_past {
        counts.links = counts.links.saturating_add(1);
    } else if let (Some(stamp), Some(writer)) = (stamp, before.writer) {
        let age = stamp.get().saturating_sub(writer.version.stamp.get());
        counts.heat = match age <= SOON_TICKS {
            true => counts.heat.saturating_add(1).min(NIBBLE_MAX),
            false => counts.heat.saturating_sub(1),
        };
    }
    if links_past || matches!(onward, Onward::Own(_)) {
        let most = counts.links.min(NIBBLE_MAX).max(counts.heat);
        return Estimate {
            updates: counts.encode(),
            is_due: most > chosen.unwrap_or(NIBBLE_MAX - 1),
            is_linked: true,
        };
    }
    Estimate {
        updates: counts.links,
        is_due: counts.links > chosen.unwrap_or(UPDATES_LEAST),
        is_linked: false,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::row::Shape;
    use crate::shortcut::{EVERYTHING, Link};
    use vellum_base::SlotId;
    use vellum_txn::VersionStamp;

    fn version(stamp: u64) -> VersionStamp {
        VersionStamp::new(SlotId(1), Timestamp(stamp), 0)
    }

    fn past() -> Onward {
        Onward::Past(Shortcut::Link(Link {
            version: version(1),
            cover: EVERYTHING,
        }))
    }

    /// Writes `updates` versions, so many ticks apart, and says after how many the row was due.
    fn due_after(onward: &Onward, apart: u64, updates: u32, chosen: Option<u8>) -> Option<u32> {
        let mut before = Header::stamped(Shape::INLINE, version(9), false);
        before.shortcut = past().shortcut(version(9));
        for update in 1..=updates {
            let stamp = Timestamp(9 + u64::from(update) * apart);
            let estimate = next(&before, onward, 3, Some(stamp), chosen);
            if estimate.is_due {
                return Some(update);
            }
            before = Header::stamped(Shape::INLINE, version(stamp.get()), false);
            before.shortcut = onward.shortcut(version(stamp.get()));
            before.updates = estimate.updates;
        }
        None
    }

    #[test]
    fn a_row_with_a_link_is_due_when_it_is_updated_all_the_time() {
        assert_eq!(due_after(&past(), 2, 1000, None), Some(15));
        assert_eq!(due_after(&past(), SOON_TICKS, 1000, None), Some(15));
        assert_eq!(due_after(&past(), SOON_TICKS + 1, 10_000, None), None);
        assert_eq!(due_after(&past(), 2, 1000, Some(3)), Some(4));
        assert_eq!(due_after(&past(), 2, 1000, Some(250)), None);
    }

    #[test]
    fn a_row_that_links_anew_and_anew_is_due_however_rarely() {
        let own = Onward::Own(EVERYTHING);
        assert_eq!(due_after(&own, 1_000_000, 1000, None), Some(15));
        assert_eq!(due_after(&own, 1_000_000, 1000, Some(0)), Some(1));
    }

    #[test]
    fn late_updates_take_from_the_heat_and_leave_the_links() {
        let mut before = Header::stamped(Shape::INLINE, version(9), false);
        before.shortcut = past().shortcut(version(9));
        before.updates = Linked { links: 5, heat: 1 }.encode();
        let late = Some(Timestamp(10 + SOON_TICKS));
        for expected in [0, 0] {
            let estimate = next(&before, &past(), 0, late, None);
            let linked = Linked {
                links: 5,
                heat: expected,
            };
            assert_eq!(Linked::decode(estimate.updates), linked);
            before.updates = estimate.updates;
        }
        // Who writes the row twice tells nothing.
        let own = next(&before, &past(), 0, None, None);
        assert_eq!(own.updates, before.updates);
        // Without the link the chain is as long as there were links.
        let plain = next(&before, &Onward::Chain, 0, late, None);
        assert_eq!(plain.updates, 6);
    }
}
