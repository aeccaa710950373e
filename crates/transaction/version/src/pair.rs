//! Keys of a graveyard: the pair (key, stamp of the delete), in bytes that sort as the pair does.
//!
//! Layout: the key in groups of eight bytes, each followed by a marker: `9` if another group follows, else the
//! number of bytes in the group that count (the others are zero); then `stamp u64 big-endian`.
//!
//! Invariants:
//! - P1 Pairs sort by key first, then by stamp, whatever bytes the keys hold and whichever is a prefix of which.
//! - P2 A pair is at most an eighth longer than its key, and 17 bytes.

use vellum_base::Timestamp;

const GROUP: usize = 8;
const MORE: u8 = GROUP as u8 + 1;
const STAMP_BYTES: usize = 8;

/// Bytes of the pair of a key of `key_len` bytes.
pub(crate) const fn length(key_len: usize) -> usize {
    let groups = if key_len == 0 {
        1
    } else {
        key_len.div_ceil(GROUP)
    };
    groups * (GROUP + 1) + STAMP_BYTES
}

/// Longest key whose pair has at most `max` bytes.
pub(crate) const fn key_max(max: usize) -> usize {
    (max - STAMP_BYTES) / (GROUP + 1) * GROUP
}

/// Replaces `out` by a bound: pairs of keys below `key` are below it, all others at or above.
pub(crate) fn lowest(key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut groups = key.chunks(GROUP).peekable();
    if key.is_empty() {
        out.resize(GROUP + 1, 0);
    }
    while let Some(group) = groups.next() {
        out.extend_from_slice(group);
        out.resize(out.len() + GROUP - group.len(), 0);
        out.push(if groups.peek().is_some() {
            MORE
        } else {
            group.len() as u8
        });
    }
}

/// Replaces `out` by a bound: pairs of keys above `key` are above it, all others below (no stamp is as high).
pub(crate) fn highest(key: &[u8], out: &mut Vec<u8>) {
    encode(key, Timestamp::MAX, out);
}

/// Replaces `out` by the pair.
pub(crate) fn encode(key: &[u8], stamp: Timestamp, out: &mut Vec<u8>) {
    lowest(key, out);
    out.extend_from_slice(&stamp.get().to_be_bytes());
    debug_assert_eq!(out.len(), length(key.len()), "P2");
}

/// Replaces `key` by the key of a pair; `None` if the bytes are no pair.
pub(crate) fn decode_key(pair: &[u8], key: &mut Vec<u8>) -> Option<()> {
    key.clear();
    let mut rest = pair;
    loop {
        let (group, tail) = rest.split_first_chunk::<GROUP>()?;
        let (&marker, tail) = tail.split_first()?;
        rest = tail;
        if marker == MORE {
            key.extend_from_slice(group);
            continue;
        }
        let (counts, padding) = group.split_at_checked(usize::from(marker))?;
        key.extend_from_slice(counts);
        let sound = padding.iter().all(|byte| *byte == 0) && rest.len() == STAMP_BYTES;
        return sound.then_some(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    fn pair(key: &[u8], stamp: u64) -> Vec<u8> {
        let mut out = Vec::new();
        encode(key, Timestamp(stamp), &mut out);
        out
    }

    #[test]
    fn prop_pairs_sort_as_pairs_and_give_their_keys_back() {
        let mut random = Random::new(7);
        let mut draw = || {
            let length = random.below(20) as usize;
            // Few different bytes, the extreme ones among them.
            let key: Vec<u8> = (0..length)
                .map(|_| [0, 0, 1, 8, 9, 255][random.below(6) as usize])
                .collect();
            (key, random.below(3) << 40)
        };
        for _ in 0..20_000 {
            let (one, other) = (draw(), draw());
            let (a, b) = (pair(&one.0, one.1), pair(&other.0, other.1));
            assert_eq!(a.cmp(&b), one.cmp(&other), "{one:?} {other:?}");
            assert_eq!(a.len(), length(one.0.len()));
            let mut key = Vec::new();
            assert_eq!(decode_key(&a, &mut key), Some(()));
            assert_eq!(key, one.0);
            let mut bound = Vec::new();
            lowest(&other.0, &mut bound);
            assert_eq!(a < bound, one.0 < other.0);
            highest(&other.0, &mut bound);
            assert_eq!(a > bound, one.0 > other.0);
        }
    }

    #[test]
    fn longest_key_has_the_longest_pair_that_fits() {
        for max in [64, 1024, 2048, 4096] {
            let longest = key_max(max);
            assert!(length(longest) <= max && max < length(longest + 1), "{max}");
        }
    }

    #[test]
    fn foreign_bytes_are_no_pair() {
        let good = pair(b"123456789", 5);
        let mut key = Vec::new();
        for cut in 0..good.len() {
            assert_eq!(decode_key(&good[..cut], &mut key), None);
        }
        let mut padded = good.clone();
        padded[15] = 1;
        assert_eq!(decode_key(&padded, &mut key), None, "padding is zero");
        let mut marked = good;
        marked[8] = 200;
        assert_eq!(decode_key(&marked, &mut key), None);
    }
}
