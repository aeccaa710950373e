//! Where the columns stand in a row.
//!
//! Layout (little-endian, nothing aligned):
//!
//! ```text
//! u16 version; its highest bit: offsets are u32 instead of u16
//! one bit a stored column, set for null (lowest bit first)
//! the columns of fixed width, in order; zeros for null
//! for each column of varying width the end of its bytes, counted from the end of these offsets
//! the bytes of the columns of varying width, in order
//! ```
//!
//! So a column of fixed width has one place whatever the row holds, and one of varying width is two
//! offsets away. `numeric(p,s)` with `p` at most 18 and `s` in `0..=p` is of fixed width: an `i64` that
//! counts units of `10^-s`, with [`NUMERIC_NAN`] for `NaN` (an infinity has no place in such a column).
//!
//! Not here: reading and writing values (`row`).

use super::Column;
use crate::types::{Type, Typmod};

/// The last version a schema can have: rows name their version in 15 bits.
pub const VERSION_MAX: u16 = 0x7fff;
/// The bit of the version word that makes offsets u32.
pub(super) const WIDE: u16 = 0x8000;
/// `NaN` in a `numeric` of fixed width.
pub(super) const NUMERIC_NAN: i64 = i64::MAX;

/// Bytes of the version word.
pub(super) const VERSION_BYTES: usize = 2;

/// Where a column stands in the rows of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// `bit` of the null bitmap; the value at `at`.
    Fixed { bit: u16, at: u16 },
    /// The value between the ends `index - 1` and `index`.
    Varying { bit: u16, index: u16 },
    /// Not in these rows.
    Absent,
}

/// The rows of one version of a schema.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// For each live column.
    pub places: Vec<Place>,
    /// First byte behind the columns of fixed width.
    pub fixed_end: usize,
    /// Columns of varying width, dropped ones included.
    pub varying: usize,
}

/// Bytes of a column in the fixed part of a row; `None` for a column of varying width.
pub(crate) fn fixed_width(ty: Type, typmod: Typmod) -> Option<usize> {
    Some(match ty {
        Type::Bool => 1,
        Type::Int2 => 2,
        Type::Int4 | Type::Float4 | Type::Date => 4,
        ty if ty.is_oid() => 4,
        Type::Int8
        | Type::Xid8
        | Type::Float8
        | Type::Time
        | Type::Timestamp
        | Type::Timestamptz => 8,
        Type::Enum(_) => 8,
        Type::Interval | Type::Uuid => 16,
        Type::Numeric => {
            fixed_scale(typmod)?;
            8
        }
        // Text of every kind, addresses, arrays.
        _ => return None,
    })
}

/// The scale of a `numeric(p,s)` whose values are eight bytes wide.
pub(crate) fn fixed_scale(typmod: Typmod) -> Option<u8> {
    let (precision, scale) = typmod.precision_scale()?;
    (precision <= 18 && (0..=precision).contains(&scale)).then_some(scale as u8)
}

impl Layout {
    pub fn new(version: u16, all: &[Column], live: &[usize]) -> Self {
        let stored = all
            .iter()
            .filter(|column| column.stands_in(version))
            .count();
        let mut at = VERSION_BYTES + stored.div_ceil(8);
        let (mut bit, mut index) = (0u16, 0u16);
        let mut places = Vec::with_capacity(live.len());
        for column in all {
            let place = if !column.stands_in(version) {
                Place::Absent
            } else {
                let place = match fixed_width(column.ty, column.typmod) {
                    Some(width) => {
                        let place = Place::Fixed { bit, at: at as u16 };
                        at += width;
                        place
                    }
                    None => {
                        index += 1;
                        Place::Varying {
                            bit,
                            index: index - 1,
                        }
                    }
                };
                bit += 1;
                place
            };
            if !column.is_dropped() {
                places.push(place);
            }
        }
        // 1600 columns of 16 bytes and their bitmap are below 64 KiB.
        debug_assert!(at <= usize::from(u16::MAX) && places.len() == live.len());
        Self {
            places,
            fixed_end: at,
            varying: usize::from(index),
        }
    }

    /// First byte of the values of varying width.
    pub fn varying_start(&self, wide: bool) -> usize {
        self.fixed_end + self.varying * if wide { 4 } else { 2 }
    }
}
