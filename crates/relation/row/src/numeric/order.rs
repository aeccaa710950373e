//! Order, equality and hash of numbers, whatever their scales. `NaN` equals itself and is above
//! everything.

use super::digits::{BASE, BASE_DIGITS};
use super::{Long, LongNumeric, Numeric, NumericRef, POWERS_OF_TEN, Repr};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A small number in base-10000 digits, without the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallDigits {
    pub negative: bool,
    pub weight: i32,
    pub count: usize,
    digits: [u16; 6],
}

impl SmallDigits {
    pub fn new(coefficient: i64, scale: u8) -> Self {
        let mut rest = coefficient.unsigned_abs();
        let groups = (i32::from(scale) + BASE_DIGITS - 1) / BASE_DIGITS;
        let shift = (groups * BASE_DIGITS - i32::from(scale)) as usize;
        // From the last to the first.
        let mut reversed = [0u16; 6];
        let mut count = 0;
        if shift > 0 {
            let low = POWERS_OF_TEN[BASE_DIGITS as usize - shift].unsigned_abs();
            reversed[0] = ((rest % low) * POWERS_OF_TEN[shift].unsigned_abs()) as u16;
            (rest, count) = (rest / low, 1);
        }
        while rest > 0 {
            reversed[count] = (rest % u64::from(BASE)) as u16;
            rest /= u64::from(BASE);
            count += 1;
        }
        let weight = count as i32 - 1 - groups;
        let used = &reversed[..count];
        let trailing = used.iter().take_while(|digit| **digit == 0).count();
        let used = &used[trailing..];
        let leading = used.iter().rev().take_while(|digit| **digit == 0).count();
        let used = &used[..used.len() - leading];
        let mut digits = [0; 6];
        for (place, digit) in digits.iter_mut().zip(used.iter().rev()) {
            *place = *digit;
        }
        Self {
            negative: coefficient < 0,
            weight: if used.is_empty() {
                0
            } else {
                weight - leading as i32
            },
            count: used.len(),
            digits,
        }
    }

    pub fn digits(&self) -> &[u16] {
        &self.digits[..self.count]
    }
}

/// What `NumericRef::with_parts` shows of a number.
pub(crate) enum Parts<'p> {
    Finite {
        negative: bool,
        weight: i32,
        digits: &'p [u16],
    },
    NegInfinity,
    Infinity,
    NaN,
}

impl NumericRef<'_> {
    /// Calls `f` with sign, weight and digits; the digits of zero are none.
    pub(crate) fn with_parts<R>(self, f: impl FnOnce(Parts<'_>) -> R) -> R {
        match self {
            NumericRef::Small { coefficient, scale } => {
                let small = SmallDigits::new(coefficient, scale);
                f(Parts::Finite {
                    negative: small.negative,
                    weight: small.weight,
                    digits: small.digits(),
                })
            }
            NumericRef::Long(LongNumeric(Long::Digits(digits))) => f(Parts::Finite {
                negative: digits.negative,
                weight: digits.weight,
                digits: &digits.digits,
            }),
            NumericRef::Long(LongNumeric(Long::Stored(bytes))) => {
                let digits = super::Digits::from_stored(bytes);
                f(Parts::Finite {
                    negative: digits.negative,
                    weight: digits.weight,
                    digits: &digits.digits,
                })
            }
            NumericRef::NegInfinity => f(Parts::NegInfinity),
            NumericRef::Infinity => f(Parts::Infinity),
            NumericRef::NaN => f(Parts::NaN),
        }
    }

    /// The order of SQL.
    pub fn compare(self, other: NumericRef<'_>) -> Ordering {
        if let (
            NumericRef::Small {
                coefficient: a,
                scale: s,
            },
            NumericRef::Small {
                coefficient: b,
                scale: t,
            },
        ) = (self, other)
        {
            if s == t {
                return a.cmp(&b);
            }
            let scale = s.max(t);
            let align = |value: i64, own: u8| {
                i128::from(value) * i128::from(POWERS_OF_TEN[usize::from(scale - own)])
            };
            return align(a, s).cmp(&align(b, t));
        }
        self.with_parts(|a| other.with_parts(|b| compare_parts(&a, &b)))
    }

    /// Feeds what equal numbers have in common to a hasher.
    pub fn feed<H: Hasher>(self, state: &mut H) {
        self.with_parts(|parts| match parts {
            Parts::Finite {
                negative,
                weight,
                digits,
            } => {
                state.write_u8(u8::from(negative));
                state.write_i32(weight);
                digits.hash(state);
            }
            Parts::NegInfinity => state.write_u8(2),
            Parts::Infinity => state.write_u8(3),
            Parts::NaN => state.write_u8(4),
        });
    }
}

fn rank(parts: &Parts<'_>) -> u8 {
    match parts {
        Parts::NegInfinity => 0,
        Parts::Finite { digits: [], .. } => 2,
        Parts::Finite { negative: true, .. } => 1,
        Parts::Finite { .. } => 3,
        Parts::Infinity => 4,
        Parts::NaN => 5,
    }
}

fn compare_parts(a: &Parts<'_>, b: &Parts<'_>) -> Ordering {
    let ranks = rank(a).cmp(&rank(b));
    match (a, b) {
        (
            Parts::Finite {
                negative,
                weight: v,
                digits: x,
            },
            Parts::Finite {
                weight: w,
                digits: y,
                ..
            },
        ) if ranks == Ordering::Equal => {
            // Without zeros at the ends, the order of digits is that of slices.
            let size = v.cmp(w).then_with(|| x.cmp(y));
            if *negative { size.reverse() } else { size }
        }
        _ => ranks,
    }
}

impl Numeric {
    /// The order of SQL.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        self.as_ref().compare(other.as_ref())
    }

    /// Whether it has no digits behind the point but zeros.
    pub fn is_whole(&self) -> bool {
        match &self.0 {
            Repr::Small { coefficient, scale } => {
                coefficient % POWERS_OF_TEN[usize::from(*scale)] == 0
            }
            Repr::Big(digits) => digits.digits.len() as i32 <= digits.weight + 1,
            _ => false,
        }
    }
}
