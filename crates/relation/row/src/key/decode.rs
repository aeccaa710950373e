//! Bytes of keys back to values.

use super::encode::{
    INFINITY, ITEMS_END, JSON_ARRAY, JSON_EMPTY_ARRAY, JSON_FALSE, JSON_NULL, JSON_NUMBER,
    JSON_OBJECT, JSON_STRING, JSON_TRUE, NAN, NAN_UNITS, NEG_INFINITY, NEGATIVE, POSITIVE,
    SPAN_BIAS, SPAN_BYTES, WEIGHT_BIAS, ZERO,
};
use super::{KeyColumn, NULL_LAST, PRESENT};
use crate::array::{Array, Dimension};
use crate::datetime::{Date, Interval, MICROS_PER_DAY, Time, Timestamp};
use crate::json::{self, Jsonb};
use crate::network::{Inet, KEY_V4, KEY_V6};
use crate::numeric::{Digits, Numeric, NumericRef, SCALE_MAX, SMALL_MAX};
use crate::schema::fixed_scale;
use crate::strings;
use crate::types::Type;
use crate::user::EnumValue;
use crate::value::{Value, ValueRef};

/// How deep a `jsonb` key may be nested.
const DEPTH_MAX: usize = 1500;

/// Bytes that may stand inverted.
struct Bytes<'k, 'a> {
    rest: &'k mut &'a [u8],
    mask: u8,
}

impl<'a> Bytes<'_, 'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>()?;
        *self.rest = tail;
        Some(head.map(|byte| byte ^ self.mask))
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.u32().map(|value| (value ^ 1 << 31) as i32)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.u64().map(|value| (value ^ 1 << 63) as i64)
    }

    fn text(&mut self) -> Option<String> {
        let end = self.rest.iter().position(|byte| *byte == self.mask)?;
        let (head, tail) = self.rest.split_at(end);
        *self.rest = &tail[1..];
        let bytes = head.iter().map(|byte| byte ^ self.mask).collect();
        String::from_utf8(bytes).ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Some(out),
                    0xff => out.push(0),
                    _ => return None,
                },
                byte => out.push(byte),
            }
        }
    }

    /// An address.
    fn address(&mut self) -> Option<Inet> {
        let family = self.byte()?;
        // The family, the address twice, the length of the prefix.
        let mut key = [family; 34];
        let end = match family {
            KEY_V4 => 10,
            KEY_V6 => 34,
            _ => return None,
        };
        for byte in &mut key[1..end] {
            *byte = self.byte()?;
        }
        Inet::from_key(&key[..end])
    }

    fn number(&mut self) -> Option<Numeric> {
        let negative = match self.byte()? {
            NEG_INFINITY => return Some(Numeric::NEG_INFINITY),
            INFINITY => return Some(Numeric::INFINITY),
            NAN => return Some(Numeric::NAN),
            ZERO => return Some(Numeric::ZERO),
            NEGATIVE => true,
            POSITIVE => false,
            _ => return None,
        };
        let mask = if negative { 0xffff } else { 0 };
        let weight = i32::from(self.u16()? ^ mask) - WEIGHT_BIAS;
        let mut digits = Vec::new();
        loop {
            match self.u16()? ^ mask {
                0 => break,
                digit @ 1..=10_000 => digits.push(digit - 1),
                _ => return None,
            }
        }
        // The least scale that shows all digits.
        let last = *digits.last()?;
        let zeros = (0..4)
            .take_while(|power| last % 10u16.pow(power + 1) == 0)
            .count();
        let places = (digits.len() as i32 - 1 - weight) * 4 - zeros as i32;
        let scale = places.max(0) as u32;
        if last == 0 || digits[0] == 0 || scale > SCALE_MAX {
            return None;
        }
        Some(Numeric::from_digits(Digits::normalized(
            negative,
            weight,
            scale as u16,
            digits,
        )))
    }
}

/// Takes a column from the front of the bytes.
pub(super) fn column(column: &KeyColumn, rest: &mut &[u8]) -> Option<Value> {
    if column.nullable {
        let (first, tail) = rest.split_first()?;
        *rest = tail;
        if *first == column.null_byte() {
            return Some(Value::Null);
        }
        if *first != PRESENT {
            return None;
        }
    }
    let mut bytes = Bytes {
        rest,
        mask: column.mask(),
    };
    body(column, &mut bytes)
}

fn body(column: &KeyColumn, bytes: &mut Bytes<'_, '_>) -> Option<Value> {
    Some(match column.ty {
        Type::Bool => match bytes.byte()? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            _ => return None,
        },
        Type::Int2 => Value::Int2((bytes.u16()? ^ 1 << 15) as i16),
        Type::Int4 => Value::Int4(bytes.i32()?),
        Type::Int8 | Type::Xid8 => Value::Int8(bytes.i64()?),
        ty if ty.is_oid() => Value::Oid(bytes.u32()?),
        Type::Float4 => {
            let bits = bytes.u32()?;
            let bits = if bits >> 31 == 1 {
                bits ^ 1 << 31
            } else {
                !bits
            };
            Value::Float4(f32::from_bits(bits))
        }
        Type::Float8 => {
            let bits = bytes.u64()?;
            let bits = if bits >> 63 == 1 {
                bits ^ 1 << 63
            } else {
                !bits
            };
            Value::Float8(f64::from_bits(bits))
        }
        Type::Numeric => match fixed_scale(column.typmod) {
            None => Value::Numeric(bytes.number()?),
            Some(scale) => match bytes.i64()? {
                NAN_UNITS => Value::Numeric(Numeric::NAN),
                coefficient if (-SMALL_MAX..=SMALL_MAX).contains(&coefficient) => {
                    let small = NumericRef::Small { coefficient, scale };
                    ValueRef::Numeric(small).to_value()
                }
                _ => return None,
            },
        },
        ty if ty.is_plain_text() => Value::Text(bytes.text()?.into()),
        Type::Char => {
            let text = bytes.text()?;
            Value::Char(strings::to_char(&text, column.typmod, false).ok()?)
        }
        Type::Bytea => Value::Bytea(bytes.bytes()?.into()),
        Type::Date => Value::Date(Date(bytes.i32()?)),
        Type::Time => {
            let micros = bytes.i64()?;
            if !(0..=MICROS_PER_DAY).contains(&micros) {
                return None;
            }
            Value::Time(Time(micros))
        }
        Type::Timestamp => Value::Timestamp(Timestamp(bytes.i64()?)),
        Type::Timestamptz => Value::Timestamptz(Timestamp(bytes.i64()?)),
        Type::Interval => {
            let mut wide = [0; 16];
            wide[16 - SPAN_BYTES..].copy_from_slice(&bytes.array::<SPAN_BYTES>()?);
            Value::Interval(Interval::of_span(i128::from_be_bytes(wide) - SPAN_BIAS)?)
        }
        Type::Uuid => Value::Uuid(bytes.array()?),
        Type::Inet => Value::Inet(bytes.address()?),
        Type::Cidr => Value::Cidr(bytes.address().filter(|own| own.is_network())?),
        Type::Enum(of) => Value::Enum(EnumValue {
            of,
            position: bytes.i64()?,
        }),
        Type::Jsonb => {
            let mut text = String::new();
            json(bytes, &mut text, 0)?;
            Value::Jsonb(Jsonb::parse(&text).ok()?)
        }
        ty => {
            // What has no elements either has no keys.
            let element = ty.element()?;
            let (dimensions, items) = array(&KeyColumn::of_element(element), bytes)?;
            Value::Array(match ty {
                Type::Array(_) => Array::shaped(element, &dimensions, &items).ok()?,
                _ => Array::vector(element, &items),
            })
        }
    })
}

/// The dimensions and the elements of an array.
fn array(element: &KeyColumn, bytes: &mut Bytes<'_, '_>) -> Option<(Vec<Dimension>, Vec<Value>)> {
    let mut items = Vec::new();
    loop {
        match bytes.byte()? {
            ITEMS_END => break,
            PRESENT => items.push(body(element, bytes)?),
            NULL_LAST => items.push(Value::Null),
            _ => return None,
        }
    }
    let mut dimensions = Vec::new();
    let mut count = 1usize;
    for _ in 0..bytes.byte()? {
        let (length, lower) = (bytes.i32()?, bytes.i32()?);
        count = count.checked_mul(usize::try_from(length).ok()?)?;
        dimensions.push(Dimension { length, lower });
    }
    let whole = match dimensions.is_empty() {
        true => items.is_empty(),
        // A vector has a dimension also where it is empty.
        false => count == items.len(),
    };
    whole.then_some((dimensions, items))
}

/// Appends the text of a `jsonb` value.
fn json(bytes: &mut Bytes<'_, '_>, out: &mut String, depth: usize) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match bytes.byte()? {
        JSON_EMPTY_ARRAY if depth == 0 => out.push_str("[]"),
        JSON_NULL => out.push_str("null"),
        JSON_FALSE => out.push_str("false"),
        JSON_TRUE => out.push_str("true"),
        JSON_STRING => json::write_string(&bytes.text()?, out),
        JSON_NUMBER => bytes.number()?.as_ref().write(out),
        JSON_ARRAY => {
            out.push('[');
            for index in 0..bytes.u32()? {
                if index > 0 {
                    out.push(',');
                }
                json(bytes, out, depth + 1)?;
            }
            out.push(']');
        }
        JSON_OBJECT => {
            out.push('{');
            for index in 0..bytes.u32()? {
                if index > 0 {
                    out.push(',');
                }
                json::write_string(&bytes.text()?, out);
                out.push(':');
                json(bytes, out, depth + 1)?;
            }
            out.push('}');
        }
        _ => return None,
    }
    Some(())
}
