//! How a declared secondary index makes its key from a row: byte ranges of the row's key and value.
//!
//! Layout (little-endian), as persisted in the catalog: `u8 version = 1, u8 unique, u16 parts`, then for each part
//! `u8 source (0 key, 1 value), u32 start, u32 end` (`u32::MAX`: to the end of the key or value).

use std::ops::Range;
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
    /// One past the last byte; `None` for "up to the end".
    pub end: Option<u32>,
}

/// What an index is keyed by. Parts are concatenated in order and compared as bytes.
///
/// A row whose key or value is too short for a part has no entry in the index.
///
/// An entry is the parts and, unless the index is unique, the row's key: at most 896, 1,808 or 3,632 bytes with pages of 4, 8 or
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

    /// Appends the index columns of a row to `out`; false (and `out` as it was) if the row is too
    /// short to have any.
    pub fn columns(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
        let before = out.len();
        for part in &self.parts {
            let from = match part.source {
                Source::Key => key,
                Source::Value => value,
            };
            let start = part.start as usize;
            let end = part.end.map_or(from.len(), |end| end as usize);
            match from.get(start..end) {
                Some(bytes) => out.extend_from_slice(bytes),
                None => {
                    out.truncate(before);
                    return false;
                }
            }
        }
        true
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

    /// The persisted form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, u8::from(self.unique)];
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
        if reader.u8()? != VERSION {
            return None;
        }
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
        Self::new(parts, unique)
    }
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
        newer[0] = 2;
        assert_eq!(KeyDescription::decode(&mut Reader::new(&newer)), None);
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
