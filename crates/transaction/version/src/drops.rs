//! What an index remembers of rows that were dropped: may an insert that finds no row have missed one?
//!
//! Dropped rows are as many as a queue is busy, and notes must not be. So two sketches are kept, and a key is suspected only
//! where both name it:
//! - *Stretches*: the dropped keys lie in at most [`STRETCHES_MAX`] stretches of the key space. Where there would be more, the
//!   two with the least room between them are joined; so the widest gaps stay known. A queue's rows, a log's, those of each
//!   tenant are one stretch; a key at the tail lies in none, and one that its writer keeps back for itself in a gap.
//! - *Cells*: a key falls to one cell of each of two lanes, by its hash, and each cell has the newest note of its keys. There are the more,
//!   up to [`WIDTH_MAX`] a lane, the more keys are noted that an open snapshot may miss.
//!
//! Each note has a time (the oldest OLTP snapshot when the row went): who is not below it sees the delete. What is at or below
//! the oldest open snapshot is forgotten.
//!
//! Invariants:
//! - D1 A noted key lies in a stretch, and falls to cells, whose times are not below its own, as long as a snapshot is open below that.
//! - D2 Stretches ascend and do not touch; `smallest` is at most the least gap between two.

use smallvec::SmallVec;
use vellum_base::Timestamp;
use vellum_base::checksum::checksum;

/// Stretches of an index: gaps between dropped keys that are known, and one.
const STRETCHES_MAX: usize = 256;
/// Cells of a lane at first: 4 KiB of them.
const WIDTH_MIN: usize = 512;
/// Cells of a lane at most: 512 KiB for both lanes. Some ten thousand keys in no order, dropped while one snapshot is open, are told
/// from others in nine of ten cases.
const WIDTH_MAX: usize = 1 << 15;
const LANES: usize = 2;

type Key = SmallVec<[u8; 24]>;

/// The rows that an index dropped.
#[derive(Debug)]
pub(crate) struct Drops {
    stretches: Vec<Stretch>,
    smallest: Gap,
    /// The oldest open snapshot when stretches were last looked through for old ones.
    swept: Timestamp,
    /// The lanes of cells, one behind the other.
    cells: Vec<u64>,
    /// Cells that have come into use since they were last counted.
    used: usize,
    newest: Timestamp,
    recent: Recent,
}

/// A key that was noted of late, and its hash: the next one of a queue has the same.
#[derive(Debug, Default)]
struct Recent {
    key: Key,
    hash: u32,
}

impl Recent {
    /// [`hash_of`] the key, without computing it if the last one has the same.
    fn hash_of(&mut self, key: &[u8]) -> u32 {
        let is_near = match (key.split_last(), self.key.split_last()) {
            (Some((last, rest)), Some((recent, same))) => {
                usize::from(last ^ recent) < NEAR && rest == same
            }
            _ => false,
        };
        if !is_near {
            self.hash = hash_of(key);
            self.key = Key::from_slice(key);
        }
        self.hash
    }
}

/// Keys from one to another, both included.
#[derive(Debug)]
struct Stretch {
    low: Key,
    high: Key,
    /// Who is below it may not see the delete of a row in here.
    below: Timestamp,
    /// What lies between this one and the next; [`Gap::WIDEST`] behind the last.
    gap: Gap,
}

/// How much room is between two keys, read as binary fractions: the exponent (a power of two, negative), and the digits behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Gap(i32, u64);

impl Gap {
    const WIDEST: Self = Self(i32::MAX, 0);

    fn between(low: &[u8], high: &[u8]) -> Self {
        let same = common(low, high);
        let difference = digits(high, same).saturating_sub(digits(low, same));
        let zeros = difference.leading_zeros();
        // A shift by all 64 is of zero.
        let first = difference.checked_shl(zeros).unwrap_or(0);
        Self(-(8 * same as i32 + zeros as i32), first)
    }
}

/// How many bytes two keys begin with alike.
fn common(left: &[u8], right: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(a), Some(b)) = (left[at..].first_chunk(), right[at..].first_chunk()) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return at + differ.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = left[at..].iter().zip(&right[at..]);
    at + rest.take_while(|(a, b)| a == b).count()
}

/// The eight bytes of `key` from `at` on, zeros behind its end, as a number.
fn digits(key: &[u8], at: usize) -> u64 {
    let rest = &key[at..];
    if let Some(eight) = rest.first_chunk() {
        return u64::from_be_bytes(*eight);
    }
    match key.last_chunk() {
        _ if rest.is_empty() => 0,
        // A load and a shift: most keys have eight bytes.
        Some(eight) => u64::from_be_bytes(*eight) << (8 * (8 - rest.len())),
        None => {
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(eight)
        }
    }
}

impl Drops {
    pub fn new() -> Self {
        Self {
            stretches: Vec::new(),
            smallest: Gap::WIDEST,
            swept: Timestamp::ZERO,
            cells: vec![0; LANES * WIDTH_MIN],
            used: 0,
            newest: Timestamp::ZERO,
            recent: Recent::default(),
        }
    }

    /// Notes that the row of `key` is dropped, whose delete every snapshot at or above `below` sees. No snapshot is open below
    /// `oldest`.
    pub fn note(&mut self, key: &[u8], below: Timestamp, oldest: Timestamp) {
        if self.newest <= oldest && !self.newest.is_zero() {
            // Nobody is left whom any of it concerns.
            *self = Self::new();
        }
        self.newest = self.newest.max(below);
        self.note_in_cells(key, below, oldest);
        self.note_in_stretches(key, below, oldest);
    }

    /// True if some row may have been dropped whose delete `snapshot` does not see.
    pub fn may_concern_any(&self, snapshot: Timestamp) -> bool {
        snapshot < self.newest
    }

    /// True if a row of this key may have been dropped whose delete `snapshot` does not see.
    pub fn may_concern(&self, key: &[u8], snapshot: Timestamp) -> bool {
        if !self.may_concern_any(snapshot) {
            return false;
        }
        let at = self.first_not_below(key);
        let stretch = self.stretches.get(at);
        let within = stretch.is_some_and(|it| it.low.as_slice() <= key && snapshot < it.below);
        let width = self.width();
        within && cells_of(key, hash_of(key), width).all(|cell| snapshot.get() < self.cells[cell])
    }

    fn width(&self) -> usize {
        self.cells.len() / LANES
    }

    fn note_in_cells(&mut self, key: &[u8], below: Timestamp, oldest: Timestamp) {
        let width = self.width();
        for cell in cells_of(key, self.recent.hash_of(key), width) {
            let time = &mut self.cells[cell];
            self.used += usize::from(*time <= oldest.get());
            *time = (*time).max(below.get());
        }
        // An eighth of them: of other keys one in sixty-four is suspected.
        let crowded = LANES * width / 8;
        if self.used >= crowded && width < WIDTH_MAX {
            self.used = self
                .cells
                .iter()
                .filter(|time| **time > oldest.get())
                .count();
            if self.used >= crowded {
                // A key's cell is that of before, or as far behind the old end.
                let lanes = self.cells.chunks(width);
                self.cells = lanes.flat_map(|lane| lane.repeat(2)).collect();
                self.used *= 2;
            }
        }
    }

    /// The first stretch that does not end below `key`.
    fn first_not_below(&self, key: &[u8]) -> usize {
        // Most queues are dropped in order: it is the last one, or behind that.
        match self.stretches.last() {
            Some(last) if last.high.as_slice() < key => self.stretches.len(),
            Some(last) if last.low.as_slice() <= key => self.stretches.len() - 1,
            _ => self
                .stretches
                .partition_point(|stretch| stretch.high.as_slice() < key),
        }
    }

    fn note_in_stretches(&mut self, key: &[u8], below: Timestamp, oldest: Timestamp) {
        let at = self.first_not_below(key);
        if let Some(stretch) = self.stretches.get_mut(at)
            && stretch.low.as_slice() <= key
        {
            stretch.below = stretch.below.max(below);
            return;
        }
        let before = at.checked_sub(1).map(|left| &self.stretches[left]);
        let left = before.map_or(Gap::WIDEST, |left| Gap::between(&left.high, key));
        let after = self.stretches.get(at);
        let right = after.map_or(Gap::WIDEST, |right| Gap::between(key, &right.low));
        if self.stretches.len() == STRETCHES_MAX && left.min(right) <= self.smallest {
            // It would be joined with a neighbour at once.
            self.smallest = self.smallest.min(left.max(right));
            if left <= right {
                let stretch = &mut self.stretches[at - 1];
                match stretch.high.len() == key.len() {
                    true => stretch.high.copy_from_slice(key),
                    false => stretch.high = Key::from_slice(key),
                }
                (stretch.below, stretch.gap) = (stretch.below.max(below), right);
            } else {
                let stretch = &mut self.stretches[at];
                stretch.low = Key::from_slice(key);
                stretch.below = stretch.below.max(below);
                if at > 0 {
                    self.stretches[at - 1].gap = left;
                }
            }
            return;
        }
        if at > 0 {
            self.stretches[at - 1].gap = left;
        }
        let new = Stretch {
            low: Key::from_slice(key),
            high: Key::from_slice(key),
            below,
            gap: right,
        };
        self.stretches.insert(at, new);
        self.smallest = self.smallest.min(left).min(right);
        if self.stretches.len() > STRETCHES_MAX {
            self.thin_out(oldest);
        }
    }

    /// Makes one stretch less, at least: those go that concern nobody, else the two that are nearest to each other are joined.
    #[cold]
    fn thin_out(&mut self, oldest: Timestamp) {
        if self.swept < oldest {
            self.swept = oldest;
            self.stretches.retain(|stretch| stretch.below > oldest);
            for at in 1..self.stretches.len() {
                let (left, right) = (&self.stretches[at - 1], &self.stretches[at]);
                self.stretches[at - 1].gap = Gap::between(&left.high, &right.low);
            }
            if let Some(last) = self.stretches.last_mut() {
                last.gap = Gap::WIDEST;
            }
        }
        if self.stretches.len() > STRETCHES_MAX {
            let gaps = self.stretches.iter().map(|stretch| stretch.gap);
            let nearest = gaps.enumerate().min_by_key(|(_, gap)| *gap);
            let (at, _) = nearest.expect("more than there may be");
            // Not the last: it has the widest gap, and there are others.
            let joined = self.stretches.remove(at + 1);
            let stretch = &mut self.stretches[at];
            stretch.below = stretch.below.max(joined.below);
            (stretch.high, stretch.gap) = (joined.high, joined.gap);
        }
        let gaps = self.stretches.iter().map(|stretch| stretch.gap);
        self.smallest = gaps.min().unwrap_or(Gap::WIDEST);
    }
}

/// Cells side by side, of keys that differ in their last bits alone: eight cache lines of them, which the processor fetches ahead.
const NEAR: usize = 64;

/// What decides, with the last bits of a key, where its cells are: a hash of the rest.
fn hash_of(key: &[u8]) -> u32 {
    let (last, rest) = key.split_last().unwrap_or((&0, &[]));
    checksum((usize::from(*last) / NEAR) as u64, rest)
}

/// The cells of a key with this hash, one in each lane. Keys that follow each other (a queue's) have them side by side in each lane: what is
/// dropped in order waits for memory once in [`NEAR`] times. Of keys that all end alike the hash decides which of those, too. (Not two
/// checksums with different seeds: these differ by the same bits for all keys.)
fn cells_of(key: &[u8], hash: u32, width: usize) -> impl Iterator<Item = usize> {
    debug_assert!(width.is_power_of_two(), "doubled from one");
    let last = usize::from(key.last().copied().unwrap_or(0));
    (0..LANES).map(move |lane| {
        let hash = (hash >> (16 * lane)) as usize & 0xffff;
        let group = hash & (width / NEAR - 1);
        lane * width + group * NEAR + (last ^ (hash >> GROUP_BITS)) % NEAR
    })
}

/// Bits of a hash that decide among the groups of the widest lanes.
const GROUP_BITS: u32 = (WIDTH_MAX / NEAR).ilog2();

const _: () = assert!(
    GROUP_BITS as usize + NEAR.ilog2() as usize <= 16 && LANES <= 2,
    "bits of a checksum"
);
const _: () = assert!(WIDTH_MIN.is_power_of_two() && WIDTH_MIN >= NEAR);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    /// D1, D2 against what was noted, whatever the keys are, while snapshots come and go.
    #[test]
    fn prop_what_was_noted_is_suspected_as_long_as_a_snapshot_may_miss_it() {
        let seed = crate::tests::world_seed("prop_what_was_noted_is_suspected");
        let mut random = Random::new(seed);
        for kind in 0..4 {
            let mut drops = Drops::new();
            let mut noted: Vec<(Vec<u8>, u64)> = Vec::new();
            let (mut now, mut oldest) = (10, 1);
            for round in 0..6000_u64 {
                let key = match kind {
                    0 => round.to_be_bytes().to_vec(),
                    1 => random.next_u64().to_be_bytes().to_vec(),
                    // Of any length, prefixes of each other, with the extreme bytes.
                    2 => {
                        let length = random.below(20) as usize;
                        let byte = |_| [0, 0, 1, 255][random.below(4) as usize];
                        (0..length).map(byte).collect()
                    }
                    // Long, and different only where they end.
                    _ => [&[9; 300][..], &random.below(5000).to_be_bytes()].concat(),
                };
                now += random.below(3);
                if random.chance(1, 500) {
                    oldest = oldest.max(now - random.below(10));
                    noted.retain(|(_, below)| *below > oldest);
                }
                drops.note(&key, Timestamp(now), Timestamp(oldest));
                if now > oldest {
                    noted.push((key, now));
                }
                if round % 97 == 0 {
                    for (key, below) in &noted {
                        assert!(drops.may_concern(key, Timestamp(below - 1)), "{key:?}");
                    }
                }
            }
            let stretches = &drops.stretches;
            assert!(stretches.len() <= STRETCHES_MAX && drops.width() <= WIDTH_MAX);
            for pair in stretches.windows(2) {
                let [left, right] = pair else { unreachable!() };
                assert!(left.low <= left.high && left.high < right.low, "D2");
                assert_eq!(left.gap, Gap::between(&left.high, &right.low));
                assert!(drops.smallest <= left.gap, "D2");
            }
            drops.note(b"x", Timestamp(now + 2), Timestamp(now + 1));
            assert!(drops.stretches.len() == 1 && drops.width() == WIDTH_MIN);
            assert!(
                noted
                    .iter()
                    .all(|(key, _)| !drops.may_concern(key, Timestamp(now + 1)))
            );
        }
    }

    /// Hash by hash, and gap by gap, as they are defined.
    #[test]
    fn prop_short_ways_lead_where_the_long_ones_do() {
        let mut random = Random::new(crate::tests::world_seed("prop_short_ways"));
        let mut recent = Recent::default();
        let mut before: Vec<u8> = Vec::new();
        for _ in 0..20_000 {
            let mut key = before.clone();
            match random.below(4) {
                0 => key.truncate(random.below(20) as usize),
                1 => key.extend((0..random.below(18)).map(|_| random.below(256) as u8)),
                // The next one, or one that is near.
                _ => {
                    if let Some(last) = key.last_mut() {
                        *last = last.wrapping_add(random.below(80) as u8);
                    }
                }
            }
            key.truncate(40);
            assert_eq!(recent.hash_of(&key), hash_of(&key), "{before:?} {key:?}");
            let same = before.iter().zip(&key).take_while(|(a, b)| a == b).count();
            assert_eq!(common(&before, &key), same);
            let mut eight = [0; 8];
            for (to, from) in eight.iter_mut().zip(&key[same..]) {
                *to = *from;
            }
            assert_eq!(digits(&key, same), u64::from_be_bytes(eight));
            before = key;
        }
    }

    #[test]
    fn gaps_are_ordered_as_the_numbers_that_keys_are() {
        let key = |number: u64| number.to_be_bytes();
        let gap = |low: u64, high: u64| Gap::between(&key(low), &key(high));
        assert_eq!(gap(254, 255), gap(255, 256));
        assert!(gap(255, 257) > gap(256, 257) && gap(1, 1 << 40) > gap(0, 1 << 20));
        assert!(Gap::between(b"a", b"a\0") < Gap::between(b"a", b"a\0\0\x01"));
        assert!(Gap::between(&[1; 400], &[&[1; 399][..], &[2]].concat()) < gap(1, 2));
        assert!(gap(0, u64::MAX) < Gap::WIDEST);
    }
}
