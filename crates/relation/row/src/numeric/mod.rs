//! Exact decimal numbers, `numeric`.
//!
//! Layout: a number of at most 18 digits is a coefficient and a scale in two words (`Small`);
//! everything longer is a run of base-10000 digits on the heap (`Big`), as the protocol's binary
//! format has them. The arithmetic of small numbers is that of machine integers.
//!
//! Invariants:
//! - I1: a number is `Small` exactly if its digits (scale included) fit: one value with one scale
//!   has one form, so that equality of forms is equality of what is printed.
//! - I2: `Big` has no zero digit at either end of its run (see `digits`).
//!
//! The scale is the count of decimal digits after the point that are shown; it is no part of the
//! value (1.0 = 1.00) but is kept.

mod arithmetic;
mod convert;
mod digits;
mod magnitude;
pub(crate) mod order;
mod power;
mod round;
mod stored;
pub(crate) mod text;
mod wire;

pub(crate) use digits::Digits;
pub use power::GoOn;

/// The largest number of digits after the point that a value shows.
pub const SCALE_MAX: u32 = 16383;
/// The largest coefficient of a small number: eighteen nines.
pub(crate) const SMALL_MAX: i64 = 999_999_999_999_999_999;
/// The largest scale of a small number.
pub(crate) const SMALL_SCALE_MAX: u8 = 18;

/// 10^n for n in 0..=18.
pub(crate) const POWERS_OF_TEN: [i64; 19] = {
    let mut powers = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// An exact decimal number, `NaN`, or an infinity. 16 bytes; clones without allocation up to 18
/// digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numeric(pub(crate) Repr);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    /// coefficient / 10^scale
    Small {
        coefficient: i64,
        scale: u8,
    },
    Big(Box<Digits>),
    NegInfinity,
    Infinity,
    NaN,
}

/// A number that may still lie in the bytes of a row.
#[derive(Clone, Copy, Debug)]
pub enum NumericRef<'a> {
    /// coefficient / 10^scale; at most 18 digits, scale at most 18.
    Small {
        /// The digits.
        coefficient: i64,
        /// How many of them stand after the point.
        scale: u8,
    },
    /// A longer one.
    Long(LongNumeric<'a>),
    /// `-Infinity`
    NegInfinity,
    /// `Infinity`
    Infinity,
    /// `NaN`
    NaN,
}

/// A number of more than 18 digits, on the heap or in a row.
#[derive(Clone, Copy, Debug)]
pub struct LongNumeric<'a>(pub(crate) Long<'a>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Long<'a> {
    Digits(&'a Digits),
    /// Stored bytes, checked when they were first looked at (see `stored`).
    Stored(&'a [u8]),
}

impl NumericRef<'_> {
    /// Bytes that a number of its own takes on the heap.
    pub(crate) fn heap_bytes(self) -> usize {
        match self {
            NumericRef::Long(LongNumeric(Long::Digits(digits))) => {
                size_of::<Digits>() + size_of_val(digits.digits.as_slice())
            }
            NumericRef::Long(LongNumeric(Long::Stored(bytes))) => size_of::<Digits>() + bytes.len(),
            _ => 0,
        }
    }
}

impl Numeric {
    /// Not a number; larger than every number when sorted.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Larger than every finite number.
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// Smaller than every number.
    pub const NEG_INFINITY: Numeric = Numeric(Repr::NegInfinity);
    /// 0
    pub const ZERO: Numeric = Numeric(Repr::Small {
        coefficient: 0,
        scale: 0,
    });

    /// `coefficient / 10^scale`, shown with `scale` digits after the point.
    pub fn from_scaled(coefficient: i128, scale: u16) -> Self {
        debug_assert!(u32::from(scale) <= SCALE_MAX);
        match (i64::try_from(coefficient), u8::try_from(scale)) {
            (Ok(coefficient), Ok(scale))
                if coefficient.unsigned_abs() <= SMALL_MAX as u64 && scale <= SMALL_SCALE_MAX =>
            {
                Self(Repr::Small { coefficient, scale })
            }
            _ => Self::from_digits(Digits::from_scaled(coefficient, scale)),
        }
    }

    /// The form that I1 demands.
    pub(crate) fn from_digits(digits: Digits) -> Self {
        match digits.to_small() {
            Some((coefficient, scale)) => Self(Repr::Small { coefficient, scale }),
            None => Self(Repr::Big(Box::new(digits))),
        }
    }

    /// Its borrowed form.
    #[inline]
    pub fn as_ref(&self) -> NumericRef<'_> {
        match &self.0 {
            Repr::Small { coefficient, scale } => NumericRef::Small {
                coefficient: *coefficient,
                scale: *scale,
            },
            Repr::Big(digits) => NumericRef::Long(LongNumeric(Long::Digits(digits))),
            Repr::NegInfinity => NumericRef::NegInfinity,
            Repr::Infinity => NumericRef::Infinity,
            Repr::NaN => NumericRef::NaN,
        }
    }

    /// Whether it is `NaN`.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// Digits shown after the point; zero for what is no finite number.
    pub fn scale(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, .. } => u32::from(*scale),
            Repr::Big(digits) => u32::from(digits.scale),
            _ => 0,
        }
    }
}

impl NumericRef<'_> {
    /// A value of its own.
    pub fn to_numeric(self) -> Numeric {
        match self {
            NumericRef::Small { coefficient, scale } => Numeric(Repr::Small { coefficient, scale }),
            NumericRef::Long(LongNumeric(Long::Digits(digits))) => {
                Numeric(Repr::Big(Box::new(digits.clone())))
            }
            NumericRef::Long(LongNumeric(Long::Stored(bytes))) => {
                Numeric::from_digits(Digits::from_stored(bytes))
            }
            NumericRef::NegInfinity => Numeric::NEG_INFINITY,
            NumericRef::Infinity => Numeric::INFINITY,
            NumericRef::NaN => Numeric::NAN,
        }
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Self::from_scaled(i128::from(value), 0)
    }
}

impl From<i32> for Numeric {
    fn from(value: i32) -> Self {
        Self(Repr::Small {
            coefficient: i64::from(value),
            scale: 0,
        })
    }
}
