//! How a declared secondary index makes its key from a row: byte ranges of the row's key and value.
//!
//! Layout (little-endian), as persisted in the catalog: `u8 version, u8 unique, u16 parts`, then for each part
//! `u8 source (0 key, 1 value), u32 start, u32 end` (`u32::MAX`: to the end of the key or value). Version 2 if a part is escaped, else 1.
//!
//! Layout of an entry's key: the parts in order, then the row's key unless the index is unique. A part to the end that something follows
//! is *escaped*: each byte 00 of it as 00 ff, and 00 00 behind it. All others are as they are: their lengths are the same in every entry, or
//! nothing follows.
//!
//! Invariants:
//! - D1 Entries compare as (parts, row's key) compare one by one, and are equal only if all of these are: where an escaped part ends,
//!   00 00 is below whatever another has there (00 ff, or a byte above 00).

use std::ops::{Bound, Range};
use vellum_base::codec::{Put, Reader};

/// Where the bytes of a part come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The row's key.
    Key,
    /// The row's value.
    Value,
}

/// One run of bytes of an index key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// Where the bytes come from.
    pub source: Source,
    /// First byte.
    pub start: u32,
    /// One past the last byte; `None` for "up to the end". Where anything follows such a part in an entry (another part, or the row's key
    /// in an index that is not unique), its bytes are escaped there: 00 is written as 00 ff, and 00 00 ends it. So entries are told apart
    /// and are in the order of the parts; [`KeyDescription::search`] writes parts in that form.
    pub end: Option<u32>,
}

/// What an index is keyed by: parts, which are compared as bytes, the first one first.
///
/// The key of an entry is the parts and, unless the index is unique, the row's key. Parts of fixed length stand there as they are;
/// so does a part to the end with nothing behind it; one with something behind it is escaped (see [`KeyPart::end`]). The bounds of a
/// cursor over an index have the same form: [`KeyDescription::search`] and [`KeyDescription::range`] make them.
///
/// A row whose key or value is too short for a part has no entry in the index.
///
/// An entry's key, escapes included, has at most 896, 1,808 or 3,632 bytes with pages of 4, 8 or
/// 16 KiB (seven eighths of a quarter page, so that it can be buried), less where the primary key, which shares its page row, is long.
/// A write that would make a longer one is refused with `KeyTooLong`, which names the limit, and changes nothing; so is making an index
/// of rows that have one. To index long values, declare a part of them: `end: Some(…)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyDescription {
    parts: Vec<KeyPart>,
    unique: bool,
}

/// The most parts an index may have.
pub const PARTS_MAX: usize = 32;
const VERSION: u8 = 1;
/// The version of a description with an escaped part. As version 1 it had entries that were not escaped.
const VERSION_ESCAPED: u8 = 2;
/// How a byte 00 goes on in an escaped part,
const ZERO: u8 = 0xff;
/// and how it goes on behind its last byte.
const END: u8 = 0;

impl KeyDescription {
    /// An index over `parts`; no two rows may agree on them if `unique`.
    /// `None` if there is no part, more than [`PARTS_MAX`], or a part that can hold no byte.
    pub fn new(parts: Vec<KeyPart>, unique: bool) -> Option<Self> {
        let sound = |part: &KeyPart| {
            part.end
                .is_none_or(|end| part.start < end && end < u32::MAX)
                && part.start < u32::MAX
        };
        let fits = !parts.is_empty() && parts.len() <= PARTS_MAX;
        (fits && parts.iter().all(sound)).then_some(Self { parts, unique })
    }

    /// Whether no two rows may agree on the parts.
    pub fn unique(&self) -> bool {
        self.unique
    }

    /// The parts in order.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Whether the part of this number is escaped: its length is not the same in all entries, and something follows it.
    fn is_escaped(&self, part: usize) -> bool {
        self.parts[part].end.is_none() && (part + 1 < self.parts.len() || !self.unique)
    }

    fn put_part(&self, part: usize, bytes: &[u8], out: &mut Vec<u8>) {
        if self.is_escaped(part) {
            for run in bytes.split_inclusive(|byte| *byte == 0) {
                out.extend_from_slice(run);
                if run.last() == Some(&0) {
                    out.push(ZERO);
                }
            }
            out.extend_from_slice(&[0, END]);
        } else {
            out.extend_from_slice(bytes);
        }
    }

    /// Appends the index columns of a row to `out`, as they stand in an entry; false (and `out` as it was) if the row is too
    /// short to have any.
    pub fn columns(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
        // First: a part of a long value is not copied for nothing.
        if !self.has_entry(key, value) {
            return false;
        }
        for (number, part) in self.parts.iter().enumerate() {
            let from = match part.source {
                Source::Key => key,
                Source::Value => value,
            };
            let start = part.start as usize;
            let end = part.end.map_or(from.len(), |end| end as usize);
            self.put_part(number, &from[start..end], out);
        }
        true
    }

    /// Puts the key of a row's entry into `out`; false if the row has none.
    pub fn entry(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        if !self.columns(key, value, out) {
            return false;
        }
        if !self.unique {
            out.extend_from_slice(key);
        }
        true
    }

    /// How many bytes of a row's value, from its first on, make its entry; more change nothing.
    pub fn value_bytes(&self) -> usize {
        let ends = self
            .parts
            .iter()
            .filter(|part| part.source == Source::Value)
            .map(|part| part.end.map_or(usize::MAX, |end| end as usize));
        ends.max().unwrap_or(0)
    }

    /// Whether a row has an entry: its key and value are long enough for every part.
    pub(crate) fn has_entry(&self, key: &[u8], value: &[u8]) -> bool {
        self.parts.iter().all(|part| {
            let from = match part.source {
                Source::Key => key.len(),
                Source::Value => value.len(),
            };
            part.end.unwrap_or(part.start) as usize <= from
        })
    }

    /// A length that a row's entry has at least, if it has one.
    pub(crate) fn entry_bytes_min(&self, key: &[u8], value: &[u8]) -> usize {
        let bytes = self.parts.iter().map(|part| {
            let from = match part.source {
                Source::Key => key.len(),
                Source::Value => value.len(),
            };
            let end = part.end.map_or(from, |end| from.min(end as usize));
            end.saturating_sub(part.start as usize)
        });
        bytes.sum()
    }

    /// What the entries begin with whose first parts are `parts`; in an index that is not unique, an entry is that and the row's key.
    /// It is also a bound: entries whose parts are below `parts` are below it, and no other.
    ///
    /// `None` if these are more parts than the index has, or one has not the length that its place says.
    pub fn search(&self, parts: &[&[u8]]) -> Option<Vec<u8>> {
        if parts.len() > self.parts.len() {
            return None;
        }
        let mut out = Vec::new();
        for (number, (bytes, part)) in parts.iter().zip(&self.parts).enumerate() {
            if part
                .end
                .is_some_and(|end| (end - part.start) as usize != bytes.len())
            {
                return None;
            }
            self.put_part(number, bytes, &mut out);
        }
        Some(out)
    }

    /// The range of all entries whose first parts are `parts` and no others. `None` as in [`KeyDescription::search`].
    pub fn range(&self, parts: &[&[u8]]) -> Option<(Bound<Vec<u8>>, Bound<Vec<u8>>)> {
        let first = self.search(parts)?;
        let end = if self.unique && parts.len() == self.parts.len() {
            // All of the entry: what begins so may be another.
            Bound::Included(first.clone())
        } else {
            prefix_end(&first).map_or(Bound::Unbounded, Bound::Excluded)
        };
        Some((Bound::Included(first), end))
    }

    /// Whether a change of these ranges of the value can change the index columns.
    pub fn touched_by(&self, ranges: &[Range<usize>]) -> bool {
        self.parts
            .iter()
            .filter(|part| part.source == Source::Value)
            .any(|part| {
                let end = part.end.map_or(usize::MAX, |end| end as usize);
                ranges
                    .iter()
                    .any(|r| r.start < end && (part.start as usize) < r.end)
            })
    }

    fn version(&self) -> u8 {
        if (0..self.parts.len()).any(|part| self.is_escaped(part)) {
            VERSION_ESCAPED
        } else {
            VERSION
        }
    }

    /// The persisted form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.version(), u8::from(self.unique)];
        out.put_u16(self.parts.len() as u16);
        for part in &self.parts {
            out.put_u8(match part.source {
                Source::Key => 0,
                Source::Value => 1,
            });
            out.put_u32(part.start);
            out.put_u32(part.end.unwrap_or(u32::MAX));
        }
        out
    }

    /// Reads the persisted form; `None` if it is not one.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let version = reader.u8()?;
        let unique = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let count = reader.u16()?;
        let mut parts = Vec::with_capacity(usize::from(count).min(PARTS_MAX));
        for _ in 0..count {
            let source = match reader.u8()? {
                0 => Source::Key,
                1 => Source::Value,
                _ => return None,
            };
            let start = reader.u32()?;
            let end = Some(reader.u32()?).filter(|end| *end != u32::MAX);
            parts.push(KeyPart { source, start, end });
        }
        Self::new(parts, unique).filter(|read| read.version() == version)
    }
}

/// The first key after all that start with `prefix`; `None` if there is no such key.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a row's changes are a list of ranges"
)]
mod tests {
    use super::*;

    fn description() -> KeyDescription {
        let parts = vec![
            KeyPart {
                source: Source::Value,
                start: 2,
                end: Some(4),
            },
            KeyPart {
                source: Source::Key,
                start: 1,
                end: None,
            },
        ];
        KeyDescription::new(parts, true).unwrap()
    }

    #[test]
    fn columns_are_the_parts_in_order_and_short_rows_have_none() {
        let mut out = b"x".to_vec();
        assert!(description().columns(b"key", b"value", &mut out));
        assert_eq!(out, b"xluey");
        assert!(!description().columns(b"key", b"val", &mut out));
        assert_eq!(out, b"xluey");
    }

    #[test]
    fn persisted_form_is_read_back_and_damage_is_refused() {
        let bytes = description().encode();
        assert_eq!(
            KeyDescription::decode(&mut Reader::new(&bytes)),
            Some(description())
        );
        assert_eq!(
            KeyDescription::decode(&mut Reader::new(&bytes[..bytes.len() - 1])),
            None
        );
        let mut newer = bytes.clone();
        newer[0] = 3;
        assert_eq!(KeyDescription::decode(&mut Reader::new(&newer)), None);
    }

    fn to_the_end(source: Source) -> KeyPart {
        KeyPart {
            source,
            start: 0,
            end: None,
        }
    }

    #[test]
    fn a_part_to_the_end_was_written_otherwise_in_version_1() {
        let escaped = KeyDescription::new(vec![to_the_end(Source::Value)], false).unwrap();
        let mut bytes = escaped.encode();
        assert_eq!(
            KeyDescription::decode(&mut Reader::new(&bytes)),
            Some(escaped)
        );
        bytes[0] = 1;
        assert_eq!(KeyDescription::decode(&mut Reader::new(&bytes)), None);
        // Nothing follows it in a unique index.
        let plain = KeyDescription::new(vec![to_the_end(Source::Value)], true).unwrap();
        assert_eq!(plain.encode()[0], 1);
    }

    /// All words of at most three bytes over a few.
    fn words() -> Vec<Vec<u8>> {
        let mut words = vec![Vec::new()];
        for from in 0..40 {
            let word: Vec<u8> = words[from % words.len()].clone();
            if word.len() < 3 && words.len() < 40 {
                for byte in [0, b'a', 0xff] {
                    words.push([&word[..], &[byte]].concat());
                }
            }
        }
        words.sort();
        words.dedup();
        words
    }

    #[test]
    fn entries_compare_as_parts_and_keys_do_and_ranges_hold_what_they_say() {
        let bounded = KeyPart {
            source: Source::Key,
            start: 0,
            end: Some(1),
        };
        let (value, key) = (to_the_end(Source::Value), to_the_end(Source::Key));
        for (parts, unique) in [
            (vec![value], false),
            (vec![value], true),
            (vec![value, key], true),
            (vec![value, key], false),
            (vec![value, bounded], true),
            (vec![bounded, value], false),
        ] {
            let index = KeyDescription::new(parts, unique).unwrap();
            let mut rows = Vec::new();
            for (v, k) in words().iter().flat_map(|v| {
                let v = v.clone();
                words().into_iter().map(move |k| (v.clone(), k))
            }) {
                let mut entry = Vec::new();
                if !index.entry(&k, &v, &mut entry) {
                    continue;
                }
                let mut all: Vec<Vec<u8>> = index
                    .parts()
                    .iter()
                    .map(|part| match part.source {
                        Source::Value => v.clone(),
                        Source::Key => k[..part.end.map_or(k.len(), |end| end as usize)].to_vec(),
                    })
                    .collect();
                let parts = all.clone();
                if !unique {
                    all.push(k);
                }
                rows.push((all, entry, parts));
            }
            rows.sort();
            for pair in rows.windows(2) {
                assert_eq!(pair[0].0 < pair[1].0, pair[0].1 < pair[1].1, "{index:?}");
                assert_eq!(pair[0].0 == pair[1].0, pair[0].1 == pair[1].1, "{index:?}");
            }
            for (_, _, parts) in rows.iter().step_by(7) {
                for count in 1..=parts.len() {
                    let asked: Vec<&[u8]> = parts[..count].iter().map(|p| &p[..]).collect();
                    let range = index.range(&asked).unwrap();
                    for (_, entry, other) in &rows {
                        let inside = std::ops::RangeBounds::contains(&range, entry);
                        assert_eq!(inside, other[..count] == parts[..count], "{index:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_search_by_what_no_entry_has_is_refused() {
        let index = description();
        assert_eq!(index.search(&[b"x"]), None);
        assert_eq!(index.search(&[b"xy", b"", b""]), None);
        assert_eq!(index.search(&[]), Some(vec![]));
    }

    #[test]
    fn only_ranges_that_overlap_a_value_part_touch_the_index() {
        assert!(description().touched_by(&[3..9]));
        assert!(!description().touched_by(&[0..2, 4..9]));
    }

    #[test]
    fn empty_and_reversed_parts_are_refused() {
        assert_eq!(KeyDescription::new(vec![], false), None);
        let reversed = KeyPart {
            source: Source::Key,
            start: 3,
            end: Some(3),
        };
        assert_eq!(KeyDescription::new(vec![reversed], false), None);
    }
}
