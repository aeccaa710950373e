//! Numbers in the protocol's binary format.
//!
//! Layout (big-endian): `u16 digits, i16 weight, u16 sign, u16 scale`, then the base-10000 digits.
//! The sign is 0, 0x4000 for negative, 0xC000 for `NaN`, 0xD000 and 0xF000 for the infinities.

use super::digits::BASE;
use super::order::Parts;
use super::{Digits, Numeric, NumericRef, Repr, SCALE_MAX};
use crate::error::{Result, SqlError, SqlState};

const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEG_INFINITY: u16 = 0xF000;
/// What the infinities name as their scale.
const INFINITY_SCALE: u16 = 0x20;

impl NumericRef<'_> {
    /// Appends the binary format.
    pub fn send(self, out: &mut Vec<u8>) {
        let scale = match self {
            NumericRef::Small { scale, .. } => u16::from(scale),
            NumericRef::Long(_) => self.to_numeric().scale() as u16,
            _ => 0,
        };
        self.with_parts(|parts| {
            let (digits, weight, sign, scale): (&[u16], i16, u16, u16) = match parts {
                Parts::Finite {
                    negative,
                    weight,
                    digits,
                } => {
                    let sign = if negative { NEGATIVE } else { POSITIVE };
                    (digits, weight as i16, sign, scale)
                }
                Parts::NaN => (&[], 0, NAN, 0),
                Parts::Infinity => (&[], 0, INFINITY, INFINITY_SCALE),
                Parts::NegInfinity => (&[], 0, NEG_INFINITY, INFINITY_SCALE),
            };
            for word in [digits.len() as u16, weight as u16, sign, scale] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            for digit in digits {
                out.extend_from_slice(&digit.to_be_bytes());
            }
        });
    }
}

impl Numeric {
    /// Reads the binary format.
    ///
    /// # Errors
    /// 22P03 if sign, scale or a digit is not one, 08P01 if the length is wrong.
    pub fn receive(bytes: &[u8]) -> Result<Numeric> {
        let word = |at: usize| -> Result<u16> {
            let bytes = bytes
                .get(2 * at..2 * at + 2)
                .ok_or_else(crate::binary::short)?;
            Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let invalid = |what: &str| {
            let message = format!("invalid {what} in external \"numeric\" value");
            SqlError::new(SqlState::INVALID_BINARY, message)
        };
        let (count, weight) = (usize::from(word(0)?), word(1)? as i16);
        let (sign, scale) = (word(2)?, word(3)?);
        if !matches!(sign, POSITIVE | NEGATIVE | NAN | INFINITY | NEG_INFINITY) {
            return Err(invalid("sign"));
        }
        if u32::from(scale) > SCALE_MAX {
            return Err(invalid("scale"));
        }
        let mut digits = Vec::with_capacity(count.min(bytes.len() / 2));
        for at in 0..count {
            let digit = word(4 + at)?;
            if u32::from(digit) >= BASE {
                return Err(invalid("digit"));
            }
            digits.push(digit);
        }
        if bytes.len() != 8 + 2 * count {
            return Err(crate::binary::long("numeric"));
        }
        Ok(match sign {
            NAN => Numeric::NAN,
            INFINITY => Numeric::INFINITY,
            NEG_INFINITY => Numeric::NEG_INFINITY,
            _ => {
                let mut digits =
                    Digits::normalized(sign == NEGATIVE, i32::from(weight), scale, digits);
                digits.truncate_to_scale();
                match digits.to_small() {
                    Some((coefficient, scale)) => Numeric(Repr::Small { coefficient, scale }),
                    None => Numeric(Repr::Big(Box::new(digits))),
                }
            }
        })
    }
}
