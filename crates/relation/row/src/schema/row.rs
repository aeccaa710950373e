//! Writing rows, reading columns of them, and changing columns where they stand.
//!
//! Bytes come from disk: whatever they are, reading one ends in a value or in XX001.

use super::layout::{NUMERIC_NAN, Place, VERSION_BYTES, WIDE, fixed_scale};
use super::{Column, Layout, Schema};
use crate::array::ArrayRef;
use crate::datetime::{Date, Interval, MICROS_PER_DAY, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::json::JsonbRef;
use crate::network::Inet;
use crate::numeric::{NumericRef, SMALL_MAX};
use crate::types::Type;
use crate::user::EnumValue;
use crate::value::ValueRef;
use std::ops::Range;

/// A row whose columns are read where they lie. Nothing is decoded before it is asked for, nothing
/// is allocated.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    bytes: &'a [u8],
    schema: &'a Schema,
    layout: &'a Layout,
    wide: bool,
}

/// A column as it stands in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored<'a> {
    /// Null.
    Null,
    /// A value of fixed width, little-endian, with what follows it in the row. A `numeric(p,s)` is the number of its units.
    Fixed(&'a [u8]),
    /// One of varying width, or one that the row was written without: for [`RowView::get`].
    Other,
}

impl Stored<'_> {
    /// The units of the largest number of a `numeric(p,s)` that stands in a row as units; the least has the same, negative.
    pub const UNITS_MAX: i64 = SMALL_MAX;
    /// What stands there for `NaN`, above all units.
    pub const NOT_A_NUMBER: i64 = NUMERIC_NAN;

    /// Whether units that stand in a row are those of a number, or of `NaN`.
    #[inline]
    pub fn is_units(units: i64) -> bool {
        Self::is_coefficient(units) || units == NUMERIC_NAN
    }

    /// Whether the units of a `numeric` that stands in a row are those of a number.
    #[inline]
    pub fn is_coefficient(units: i64) -> bool {
        (-SMALL_MAX..=SMALL_MAX).contains(&units)
    }
}

/// Where a column of fixed width stands in the rows of one version: looked up once for many rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedPlace {
    version: u16,
    /// Of the bit that says null.
    byte: u16,
    mask: u8,
    at: u16,
}

/// How [`Schema::assign`] changed a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assigned {
    /// The length is the same and only the ranges that were named changed.
    InPlace,
    /// The row was written anew, under the current version.
    Rewritten,
}

fn damaged() -> SqlError {
    SqlError::damaged("row")
}

impl Schema {
    /// Appends the row of these values, one a position, to `out`. Columns that are not stored are
    /// passed over. Costs one pass; allocates only if `out` must grow.
    ///
    /// # Errors
    /// 54000 if the values are longer than 4 GiB; XX000 if a value is not of its column's type and
    /// modifier (`out` is then of no use).
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<()> {
        debug_assert_eq!(values.len(), self.len(), "one value a column");
        let start = out.len();
        if !self.encode_as(values, out, false)? {
            out.truncate(start);
            if !self.encode_as(values, out, true)? {
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT, "row is too big"));
            }
        }
        debug_assert!(self.view(&out[start..]).is_ok());
        Ok(())
    }

    /// False if the offsets do not fit.
    fn encode_as(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>, wide: bool) -> Result<bool> {
        let mut writer = RowWriter::new(self, out, wide);
        for value in values {
            if !writer.push(*value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends a row to `out`, value by value. Of rows whose offsets fit 16 bits; [`RowWriter::push`] says no otherwise.
    pub fn writer<'w>(&'w self, out: &'w mut Vec<u8>) -> RowWriter<'w> {
        RowWriter::new(self, out, false)
    }

    /// A view of a row that was written under this or an earlier version. Looks at the version word
    /// and the length only.
    ///
    /// # Errors
    /// XX001 if these are not the bytes of a row.
    #[inline]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Result<RowView<'a>> {
        let word = bytes.first_chunk::<2>().ok_or_else(damaged)?;
        let word = u16::from_le_bytes(*word);
        let layout = self
            .layouts
            .get(usize::from(word & !WIDE))
            .ok_or_else(damaged)?;
        let wide = word & WIDE != 0;
        if bytes.len() < layout.varying_start(wide) {
            return Err(damaged());
        }
        Ok(RowView {
            bytes,
            schema: self,
            layout,
            wide,
        })
    }

    /// Sets the columns at these positions. If the row's length stays, it is changed in place and
    /// `ranges` gets the byte ranges that changed, in order and apart; else it is written anew.
    ///
    /// # Errors
    /// XX001 if `row` is damaged; as [`Self::encode`]. The row is then of no use.
    pub fn assign(
        &self,
        row: &mut Vec<u8>,
        changes: &[(usize, ValueRef<'_>)],
        ranges: &mut Vec<Range<usize>>,
    ) -> Result<Assigned> {
        ranges.clear();
        let view = self.view(row)?;
        let mut scratch = Vec::new();
        let current = std::ptr::eq(view.layout, self.current());
        if !current || !view.keeps_length(changes, &mut scratch)? {
            let mut values = Vec::with_capacity(self.len());
            for position in 0..self.len() {
                values.push(view.get(position)?);
            }
            for (position, value) in changes {
                values[*position] = *value;
            }
            let mut next = Vec::with_capacity(row.len() + 16);
            self.encode(&values, &mut next)?;
            *row = next;
            return Ok(Assigned::Rewritten);
        }
        let layout = self.current();
        let wide = view.wide;
        for (position, value) in changes {
            let column = self.column(*position);
            match layout.places[*position] {
                Place::Absent => {}
                Place::Fixed { bit, at } => {
                    let mut bytes = [0u8; 16];
                    let width =
                        super::layout::fixed_width(column.ty, column.typmod).ok_or_else(damaged)?;
                    if !value.is_null() {
                        write_fixed(column, *value, &mut bytes)?;
                    }
                    let at = usize::from(at);
                    if row[at..at + width] != bytes[..width] {
                        row[at..at + width].copy_from_slice(&bytes[..width]);
                        ranges.push(at..at + width);
                    }
                    if set_null(row, bit, value.is_null()) {
                        let at = VERSION_BYTES + usize::from(bit) / 8;
                        ranges.push(at..at + 1);
                    }
                }
                Place::Varying { bit, index } => {
                    let at = varying_range(row, layout, wide, index).ok_or_else(damaged)?;
                    scratch.clear();
                    if !value.is_null() {
                        write_varying(column, *value, &mut scratch)?;
                    }
                    if row[at.clone()] != scratch[..] {
                        row[at.clone()].copy_from_slice(&scratch);
                        ranges.push(at);
                    }
                    if set_null(row, bit, value.is_null()) {
                        let at = VERSION_BYTES + usize::from(bit) / 8;
                        ranges.push(at..at + 1);
                    }
                }
            }
        }
        ranges.sort_by_key(|range| range.start);
        ranges.dedup_by(|next, range| {
            let touch = next.start <= range.end;
            if touch {
                range.end = range.end.max(next.end);
            }
            touch
        });
        Ok(Assigned::InPlace)
    }

    /// The bytes that the column at `position` has in every row of the current version; `None` if its
    /// width varies or it is not stored. The bit that says null stands elsewhere.
    pub fn fixed_range(&self, position: usize) -> Option<Range<usize>> {
        let column = self.column(position);
        match self.current().places[position] {
            Place::Fixed { at, .. } => {
                let width = super::layout::fixed_width(column.ty, column.typmod)?;
                Some(usize::from(at)..usize::from(at) + width)
            }
            Place::Varying { .. } | Place::Absent => None,
        }
    }

    /// Where a column stands in rows of the current version; `None` if its width varies or it is not stored.
    pub fn fixed_place(&self, position: usize) -> Option<FixedPlace> {
        match self.current().places[position] {
            Place::Fixed { bit, at } => Some(FixedPlace {
                version: self.version,
                byte: VERSION_BYTES as u16 + bit / 8,
                mask: 1 << (bit % 8),
                at,
            }),
            Place::Varying { .. } | Place::Absent => None,
        }
    }

    #[inline]
    fn current(&self) -> &Layout {
        &self.layouts[usize::from(self.version)]
    }
}

/// A row that is being written, from the first column to the last.
#[derive(Debug)]
pub struct RowWriter<'w> {
    schema: &'w Schema,
    layout: &'w Layout,
    out: &'w mut Vec<u8>,
    start: usize,
    values_at: usize,
    wide: bool,
    position: usize,
}

impl<'w> RowWriter<'w> {
    fn new(schema: &'w Schema, out: &'w mut Vec<u8>, wide: bool) -> Self {
        let layout = schema.current();
        let start = out.len();
        let word = schema.version | if wide { WIDE } else { 0 };
        let values_at = layout.varying_start(wide);
        out.resize(start + values_at, 0);
        out[start..start + VERSION_BYTES].copy_from_slice(&word.to_le_bytes());
        Self {
            schema,
            layout,
            out,
            start,
            values_at,
            wide,
            position: 0,
        }
    }

    /// The value of the next column. False if the offsets do not fit: the bytes that were appended are of no use then.
    ///
    /// # Errors
    /// XX000 if it is not of its column's type and modifier.
    ///
    /// # Panics
    /// If there is no other column.
    #[inline]
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<bool> {
        let (out, start) = (&mut *self.out, self.start);
        let column = self.schema.column(self.position);
        let place = self.layout.places[self.position];
        self.position += 1;
        match place {
            Place::Absent => {}
            Place::Fixed { bit, at } => {
                let row = &mut out[start..];
                if value.is_null() {
                    set_null(row, bit, true);
                } else {
                    write_fixed(column, value, &mut row[usize::from(at)..])?;
                }
            }
            Place::Varying { bit, index } => {
                if value.is_null() {
                    set_null(&mut out[start..], bit, true);
                } else {
                    write_varying(column, value, out)?;
                }
                let end = out.len() - start - self.values_at;
                let width = if self.wide { 4 } else { 2 };
                let at = start + self.layout.fixed_end + usize::from(index) * width;
                if self.wide {
                    let Ok(end) = u32::try_from(end) else {
                        return Ok(false);
                    };
                    out[at..at + 4].copy_from_slice(&end.to_le_bytes());
                } else {
                    let Ok(end) = u16::try_from(end) else {
                        return Ok(false);
                    };
                    out[at..at + 2].copy_from_slice(&end.to_le_bytes());
                }
            }
        }
        Ok(true)
    }
}

impl<'a> RowView<'a> {
    /// The version that the row was written under.
    pub fn version(self) -> u16 {
        u16::from_le_bytes([self.bytes[0], self.bytes[1]]) & !WIDE
    }

    /// The value of the column at a position. A constant number of steps, no allocation.
    ///
    /// # Errors
    /// XX001 if the row is damaged.
    #[inline]
    pub fn get(self, position: usize) -> Result<ValueRef<'a>> {
        let column = self.schema.column(position);
        match self.layout.places[position] {
            Place::Absent => Ok(column.missing.as_ref()),
            Place::Fixed { bit, .. } | Place::Varying { bit, .. } if self.is_null_at(bit) => {
                Ok(ValueRef::Null)
            }
            Place::Fixed { at, .. } => {
                read_fixed(column, &self.bytes[usize::from(at)..]).ok_or_else(damaged)
            }
            Place::Varying { index, .. } => {
                let at =
                    varying_range(self.bytes, self.layout, self.wide, index).ok_or_else(damaged)?;
                read_varying(column, &self.bytes[at]).ok_or_else(damaged)
            }
        }
    }

    /// The column at a position as its bytes stand there, unchecked.
    #[inline]
    pub fn stored(self, position: usize) -> Stored<'a> {
        match self.layout.places[position] {
            Place::Absent => Stored::Other,
            Place::Fixed { bit, .. } | Place::Varying { bit, .. } if self.is_null_at(bit) => {
                Stored::Null
            }
            Place::Fixed { at, .. } => Stored::Fixed(&self.bytes[usize::from(at)..]),
            Place::Varying { .. } => Stored::Other,
        }
    }

    /// As [`RowView::stored`], of a column whose place is known; `None` if the row is of another version.
    #[inline]
    pub fn stored_at(self, place: FixedPlace) -> Option<Stored<'a>> {
        if self.version() != place.version {
            return None;
        }
        // Both are there: [`Schema::view`] has looked at the length.
        if self.bytes.get(usize::from(place.byte))? & place.mask != 0 {
            return Some(Stored::Null);
        }
        Some(Stored::Fixed(self.bytes.get(usize::from(place.at)..)?))
    }

    /// The bytes of a column of varying width; `None` if it is null, stands elsewhere, is of fixed width or damaged: [`RowView::get`] tells.
    #[inline]
    pub fn varying(self, position: usize) -> Option<&'a [u8]> {
        match self.layout.places[position] {
            Place::Varying { bit, index } if !self.is_null_at(bit) => {
                let at = varying_range(self.bytes, self.layout, self.wide, index)?;
                self.bytes.get(at)
            }
            _ => None,
        }
    }

    /// How many columns the row's schema has.
    #[inline]
    pub fn columns(self) -> usize {
        self.schema.len()
    }

    /// Whether the column at a position is null, without looking at its value.
    #[inline]
    pub fn is_null(self, position: usize) -> bool {
        match self.layout.places[position] {
            Place::Absent => self.schema.column(position).missing.is_null(),
            Place::Fixed { bit, .. } | Place::Varying { bit, .. } => self.is_null_at(bit),
        }
    }

    /// The bytes of the column's value in this row; `None` if it is not in the row. The bit that says
    /// null and the ends of values of varying width stand elsewhere.
    ///
    /// # Errors
    /// XX001 if the row is damaged.
    pub fn range(self, position: usize) -> Result<Option<Range<usize>>> {
        let column = self.schema.column(position);
        match self.layout.places[position] {
            Place::Absent => Ok(None),
            Place::Fixed { at, .. } => {
                let width = super::layout::fixed_width(column.ty, column.typmod);
                let at = usize::from(at);
                Ok(width.map(|width| at..at + width))
            }
            Place::Varying { index, .. } => {
                varying_range(self.bytes, self.layout, self.wide, index)
                    .map(Some)
                    .ok_or_else(damaged)
            }
        }
    }

    /// Whether all of these changes can be made without moving a byte.
    fn keeps_length(
        self,
        changes: &[(usize, ValueRef<'_>)],
        scratch: &mut Vec<u8>,
    ) -> Result<bool> {
        for (position, value) in changes {
            let Place::Varying { index, .. } = self.layout.places[*position] else {
                continue;
            };
            let at =
                varying_range(self.bytes, self.layout, self.wide, index).ok_or_else(damaged)?;
            scratch.clear();
            if !value.is_null() {
                write_varying(self.schema.column(*position), *value, scratch)?;
            }
            if scratch.len() != at.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn is_null_at(self, bit: u16) -> bool {
        self.bytes[VERSION_BYTES + usize::from(bit) / 8] & (1 << (bit % 8)) != 0
    }
}

/// Sets or clears a null bit; whether it changed.
fn set_null(row: &mut [u8], bit: u16, null: bool) -> bool {
    let byte = &mut row[VERSION_BYTES + usize::from(bit) / 8];
    let before = *byte;
    let mask = 1 << (bit % 8);
    *byte = if null { before | mask } else { before & !mask };
    *byte != before
}

#[inline]
fn varying_range(row: &[u8], layout: &Layout, wide: bool, index: u16) -> Option<Range<usize>> {
    let index = usize::from(index);
    let end_of = |index: usize| -> Option<usize> {
        if wide {
            let at = layout.fixed_end + index * 4;
            let bytes = row.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        } else {
            let at = layout.fixed_end + index * 2;
            let bytes = row.get(at..at + 2)?.try_into().ok()?;
            Some(usize::from(u16::from_le_bytes(bytes)))
        }
    };
    let from = layout.varying_start(wide);
    let start = if index == 0 { 0 } else { end_of(index - 1)? };
    let end = end_of(index)?;
    (start <= end && from + end <= row.len()).then(|| from + start..from + end)
}

#[cold]
fn misfit(column: &Column, value: ValueRef<'_>) -> SqlError {
    let ty = value.ty().map_or("null", Type::sql_name);
    let message = format!(
        "value of type {ty} does not fit column \"{}\" of type {}",
        column.name,
        column.ty.format(column.typmod)
    );
    SqlError::new(SqlState::INTERNAL, message)
}

/// Writes a value that is not null to the front of `out`.
fn write_fixed(column: &Column, value: ValueRef<'_>, out: &mut [u8]) -> Result<()> {
    if !value.fits(column.ty) {
        return Err(misfit(column, value));
    }
    let mut put = |bytes: &[u8]| out[..bytes.len()].copy_from_slice(bytes);
    match value {
        ValueRef::Bool(value) => put(&[u8::from(value)]),
        ValueRef::Int2(value) => put(&value.to_le_bytes()),
        ValueRef::Int4(value) => put(&value.to_le_bytes()),
        ValueRef::Int8(value) => put(&value.to_le_bytes()),
        ValueRef::Oid(value) => put(&value.to_le_bytes()),
        ValueRef::Float4(value) => put(&value.to_le_bytes()),
        ValueRef::Float8(value) => put(&value.to_le_bytes()),
        ValueRef::Date(value) => put(&value.0.to_le_bytes()),
        ValueRef::Time(value) => put(&value.0.to_le_bytes()),
        ValueRef::Timestamp(value) | ValueRef::Timestamptz(value) => put(&value.0.to_le_bytes()),
        ValueRef::Interval(value) => {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&value.micros.to_le_bytes());
            bytes[8..12].copy_from_slice(&value.days.to_le_bytes());
            bytes[12..].copy_from_slice(&value.months.to_le_bytes());
            put(&bytes);
        }
        ValueRef::Uuid(value) => put(&value),
        ValueRef::Enum(value) => put(&value.position.to_le_bytes()),
        ValueRef::Numeric(number) => {
            let scale = fixed_scale(column.typmod);
            let units = match number {
                NumericRef::Small {
                    coefficient,
                    scale: own,
                } if Some(own) == scale => coefficient,
                NumericRef::NaN => NUMERIC_NAN,
                _ => return Err(misfit(column, value)),
            };
            put(&units.to_le_bytes());
        }
        _ => return Err(misfit(column, value)),
    }
    Ok(())
}

#[inline]
fn read_fixed<'a>(column: &Column, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
    let four = || bytes.first_chunk::<4>().copied();
    let eight = || bytes.first_chunk::<8>().copied();
    Some(match column.ty {
        Type::Bool => match bytes.first()? {
            0 => ValueRef::Bool(false),
            1 => ValueRef::Bool(true),
            _ => return None,
        },
        Type::Int2 => ValueRef::Int2(i16::from_le_bytes(*bytes.first_chunk()?)),
        Type::Int4 => ValueRef::Int4(i32::from_le_bytes(four()?)),
        Type::Int8 | Type::Xid8 => ValueRef::Int8(i64::from_le_bytes(eight()?)),
        ty if ty.is_oid() => ValueRef::Oid(u32::from_le_bytes(four()?)),
        Type::Float4 => ValueRef::Float4(f32::from_le_bytes(four()?)),
        Type::Float8 => ValueRef::Float8(f64::from_le_bytes(eight()?)),
        Type::Date => ValueRef::Date(Date(i32::from_le_bytes(four()?))),
        Type::Time => {
            let micros = i64::from_le_bytes(eight()?);
            if !(0..=MICROS_PER_DAY).contains(&micros) {
                return None;
            }
            ValueRef::Time(Time(micros))
        }
        Type::Timestamp => ValueRef::Timestamp(Timestamp(i64::from_le_bytes(eight()?))),
        Type::Timestamptz => ValueRef::Timestamptz(Timestamp(i64::from_le_bytes(eight()?))),
        Type::Interval => {
            let word = |at: usize| Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
            ValueRef::Interval(Interval {
                micros: i64::from_le_bytes(eight()?),
                days: word(8)?,
                months: word(12)?,
            })
        }
        Type::Uuid => ValueRef::Uuid(*bytes.first_chunk()?),
        Type::Enum(of) => ValueRef::Enum(EnumValue {
            of,
            position: i64::from_le_bytes(eight()?),
        }),
        Type::Numeric => {
            let scale = fixed_scale(column.typmod)?;
            match i64::from_le_bytes(eight()?) {
                NUMERIC_NAN => ValueRef::Numeric(NumericRef::NaN),
                coefficient if (-SMALL_MAX..=SMALL_MAX).contains(&coefficient) => {
                    ValueRef::Numeric(NumericRef::Small { coefficient, scale })
                }
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Appends the bytes of a value that is not null.
fn write_varying(column: &Column, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !value.fits(column.ty) {
        return Err(misfit(column, value));
    }
    match value {
        ValueRef::Text(text) | ValueRef::Char(text) | ValueRef::Json(text) => {
            out.extend_from_slice(text.as_bytes());
        }
        ValueRef::Bytea(bytes) | ValueRef::Jsonb(JsonbRef(bytes)) => out.extend_from_slice(bytes),
        ValueRef::Numeric(number) => number.store(out),
        ValueRef::Array(array) => out.extend_from_slice(array.bytes()),
        ValueRef::Inet(value) | ValueRef::Cidr(value) => value.store(out),
        _ => return Err(misfit(column, value)),
    }
    Ok(())
}

#[inline]
fn read_varying<'a>(column: &Column, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
    Some(match column.ty {
        ty if ty.is_plain_text() => ValueRef::Text(str::from_utf8(bytes).ok()?),
        Type::Char => ValueRef::Char(str::from_utf8(bytes).ok()?),
        Type::Json => ValueRef::Json(str::from_utf8(bytes).ok()?),
        Type::Bytea => ValueRef::Bytea(bytes),
        Type::Jsonb => ValueRef::Jsonb(JsonbRef(bytes)),
        ty if ty.element().is_some() => {
            ValueRef::Array(ArrayRef::from_stored(bytes).filter(|array| array.ty() == ty)?)
        }
        Type::Numeric => ValueRef::Numeric(NumericRef::from_stored(bytes)?),
        Type::Inet => ValueRef::Inet(Inet::from_stored(bytes)?),
        Type::Cidr => ValueRef::Cidr(Inet::from_stored(bytes).filter(|own| own.is_network())?),
        _ => return None,
    })
}

/// Appends a value of a column's type as it stands in a row, without the bit for null.
pub(super) fn write_plain(column: &Column, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    match super::layout::fixed_width(column.ty, column.typmod) {
        Some(width) => {
            let at = out.len();
            out.resize(at + width, 0);
            write_fixed(column, value, &mut out[at..])
        }
        None => write_varying(column, value, out),
    }
}

/// Reads what [`write_plain`] wrote.
pub(super) fn read_plain<'a>(column: &Column, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
    match super::layout::fixed_width(column.ty, column.typmod) {
        Some(width) if bytes.len() == width => read_fixed(column, bytes),
        Some(_) => None,
        None => read_varying(column, bytes),
    }
}
