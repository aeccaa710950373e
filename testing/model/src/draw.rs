//! Keys and values that collide, share prefixes and reach the limits.

use crate::step::{Key, KeyRange, Value};
use std::ops::Bound;
use vellum_base::random::Random;

/// What the keys of one table look like.
#[derive(Clone, Debug)]
pub enum KeyStyle {
    /// So many numbers, as eight bytes big-endian.
    Numbers(u64),
    /// So many numbers behind a prefix of so many bytes.
    Prefixed(u64, usize),
    /// Strings over {00, a, ff} of up to so many bytes: many are prefixes of others.
    Prefixes(usize),
    /// One key of each length from zero to the limit.
    Lengths(usize),
}

impl KeyStyle {
    /// A random style for keys of at most `limit` bytes.
    pub fn draw(random: &mut Random, limit: usize) -> Self {
        match random.below(8) {
            0..3 => Self::Numbers([4, 30, 300, 3000][random.below(4) as usize]),
            3..5 => {
                let longest = limit as u64 - 8;
                let prefix = if random.chance(1, 2) {
                    longest
                } else {
                    random.below(longest)
                };
                Self::Prefixed([10, 100, 1000][random.below(3) as usize], prefix as usize)
            }
            5..7 => Self::Prefixes(random.between(1, 7) as usize),
            _ => Self::Lengths(limit),
        }
    }

    /// A random key.
    pub fn key(&self, random: &mut Random) -> Key {
        match *self {
            Self::Numbers(count) => Key(skewed(random, count).to_be_bytes().to_vec()),
            Self::Prefixed(count, prefix) => {
                let mut key = vec![b'p'; prefix];
                key.extend_from_slice(&skewed(random, count).to_be_bytes());
                Key(key)
            }
            Self::Prefixes(longest) => {
                let length = random.between(0, longest as u64);
                Key((0..length)
                    .map(|_| [0, b'a', 0xff][random.below(3) as usize])
                    .collect())
            }
            Self::Lengths(longest) => Key(vec![b'l'; random.between(0, longest as u64) as usize]),
        }
    }

    /// A range of keys: everything, half of it, between two keys, one key, nothing.
    pub fn range(&self, random: &mut Random) -> KeyRange {
        match random.below(8) {
            0..3 => (Bound::Unbounded, Bound::Unbounded),
            3 => (self.bound(random), Bound::Unbounded),
            4 => (Bound::Unbounded, self.bound(random)),
            5 => {
                let key = self.key(random);
                (Bound::Included(key.clone()), Bound::Included(key))
            }
            _ => {
                let (a, b) = (self.bound(random), self.bound(random));
                let key = |bound: &Bound<Key>| match bound {
                    Bound::Included(key) | Bound::Excluded(key) => key.clone(),
                    Bound::Unbounded => Key::default(),
                };
                // One in eight is upside down and holds nothing.
                if (key(&a) > key(&b)) ^ random.chance(1, 8) {
                    (b, a)
                } else {
                    (a, b)
                }
            }
        }
    }

    fn bound(&self, random: &mut Random) -> Bound<Key> {
        let key = self.key(random);
        if random.chance(1, 2) {
            Bound::Included(key)
        } else {
            Bound::Excluded(key)
        }
    }
}

/// A number below `bound`; small ones come up much more often (hot rows).
pub fn skewed(random: &mut Random, bound: u64) -> u64 {
    let wide = random.below(bound);
    if random.chance(1, 3) {
        wide % bound.min(5)
    } else {
        wide
    }
}

/// What the values of one history look like.
#[derive(Clone, Copy, Debug)]
pub enum ValueStyle {
    /// All of one length: updates find room in place.
    Fixed(u32),
    /// From nothing to this length.
    UpTo(u32),
    /// Short ones, and one in eight up to this length.
    SomeUpTo(u32),
    /// Up to this length, of the same few bytes as [`KeyStyle::Prefixes`].
    Words(u32),
}

impl ValueStyle {
    /// A random style for a page size.
    pub fn draw(random: &mut Random, page_size: u32) -> Self {
        match random.below(7) {
            0 => Self::Fixed([0, 8, 100, 700][random.below(4) as usize]),
            1..3 => Self::UpTo(64),
            3 => Self::UpTo(page_size / 4),
            4 => Self::SomeUpTo(page_size + 100),
            5 => Self::SomeUpTo(5 * page_size),
            _ => Self::SomeUpTo(page_size / 2),
        }
    }

    /// A random value.
    pub fn value(self, random: &mut Random) -> Value {
        let length = match self {
            Self::Fixed(length) => length,
            Self::UpTo(longest) | Self::Words(longest) => {
                random.between(0, u64::from(longest)) as u32
            }
            Self::SomeUpTo(longest) if random.chance(1, 8) => {
                random.between(0, u64::from(longest)) as u32
            }
            Self::SomeUpTo(_) => random.below(40) as u32,
        };
        Value {
            length,
            seed: random.next_u64() as u32,
            few: matches!(self, Self::Words(_)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_within_the_limit_and_reach_both_ends() {
        let mut random = Random::new(11);
        let (mut shortest, mut longest) = (usize::MAX, 0);
        for _ in 0..300 {
            let style = KeyStyle::draw(&mut random, 512);
            for _ in 0..50 {
                let length = style.key(&mut random).0.len();
                (shortest, longest) = (shortest.min(length), longest.max(length));
            }
        }
        assert_eq!((shortest, longest), (0, 512));
    }

    #[test]
    fn values_of_one_seed_differ_by_length_everywhere() {
        let a = Value {
            length: 40,
            seed: 3,
            few: false,
        }
        .bytes();
        let b = Value {
            length: 48,
            seed: 3,
            few: false,
        }
        .bytes();
        assert_eq!((a.len(), b.len()), (40, 48));
        assert_ne!(a[..], b[..40]);
        assert_ne!(a[0..8], a[8..16]);
    }
}
