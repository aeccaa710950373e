//! Numbers in the bytes of rows and of `jsonb`.
//!
//! Layout (little-endian): `u8 kind`, then for kind 0 (small) `u8 scale, i64 coefficient`, for
//! kinds 1 and 2 (long, positive and negative) what [`digits`](super::digits) says; kinds 3, 4 and 5
//! (NaN, Infinity, -Infinity) stand alone. A small number has one length, so that most updates keep
//! a row's length.

use super::{Digits, Long, LongNumeric, NumericRef, SMALL_MAX, SMALL_SCALE_MAX};

const SMALL: u8 = 0;
const NAN: u8 = 3;
const INFINITY: u8 = 4;
const NEG_INFINITY: u8 = 5;

impl<'a> NumericRef<'a> {
    /// Appends the stored form.
    pub fn store(self, out: &mut Vec<u8>) {
        match self {
            NumericRef::Small { coefficient, scale } => {
                out.extend_from_slice(&[SMALL, scale]);
                out.extend_from_slice(&coefficient.to_le_bytes());
            }
            NumericRef::Long(LongNumeric(Long::Digits(digits))) => digits.store(out),
            NumericRef::Long(LongNumeric(Long::Stored(bytes))) => out.extend_from_slice(bytes),
            NumericRef::NaN => out.push(NAN),
            NumericRef::Infinity => out.push(INFINITY),
            NumericRef::NegInfinity => out.push(NEG_INFINITY),
        }
    }

    /// The number of a stored form; `None` if the bytes are none.
    #[inline]
    pub fn from_stored(bytes: &'a [u8]) -> Option<Self> {
        match bytes {
            [SMALL, scale, rest @ ..] => {
                let coefficient = i64::from_le_bytes(rest.try_into().ok()?);
                let sound =
                    *scale <= SMALL_SCALE_MAX && (-SMALL_MAX..=SMALL_MAX).contains(&coefficient);
                sound.then_some(NumericRef::Small {
                    coefficient,
                    scale: *scale,
                })
            }
            [NAN] => Some(NumericRef::NaN),
            [INFINITY] => Some(NumericRef::Infinity),
            [NEG_INFINITY] => Some(NumericRef::NegInfinity),
            _ => Digits::is_stored(bytes)
                .then_some(NumericRef::Long(LongNumeric(Long::Stored(bytes)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Numeric;
    use super::*;

    #[test]
    fn stored_numbers_are_read_back_and_damage_is_refused() {
        let numbers = [
            Numeric::from(0i32),
            Numeric::from_scaled(-SMALL_MAX as i128, 18),
            Numeric::from_scaled(SMALL_MAX as i128 + 1, 0),
            Numeric::from_scaled(-(10i128.pow(30)) - 7, 13),
            Numeric::from_scaled(5, 19),
            Numeric::from_scaled(5, 16383),
            Numeric::NAN,
            Numeric::INFINITY,
            Numeric::NEG_INFINITY,
        ];
        for number in numbers {
            let mut bytes = Vec::new();
            number.as_ref().store(&mut bytes);
            let back = NumericRef::from_stored(&bytes).unwrap().to_numeric();
            assert_eq!(back, number);
            bytes.push(0);
            assert!(NumericRef::from_stored(&bytes).is_none());
        }
        assert!(NumericRef::from_stored(&[]).is_none());
        assert!(
            NumericRef::from_stored(&[1, 0, 0, 0, 0, 0x10, 0x27]).is_none(),
            "digit 10000"
        );
        assert!(NumericRef::from_stored(&[0, 19, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn digits_from_disk_that_stand_behind_the_scale_do_not_count() {
        // 0.1234 with scale 2, which no writer makes.
        let mut bytes = vec![1, 2, 0];
        bytes.extend_from_slice(&(-1i16).to_le_bytes());
        bytes.extend_from_slice(&1234u16.to_le_bytes());
        let number = NumericRef::from_stored(&bytes).unwrap().to_numeric();
        assert_eq!(number, Numeric::from_scaled(12, 2));
    }
}
