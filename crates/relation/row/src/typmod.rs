//! The modifiers of types (`numeric(p,s)`, `varchar(n)`, `timestamp(p)`, the fields of an interval) in PostgreSQL's form.
//!
//! Not here: what they do to values (`cast`).

use crate::error::{Result, SqlError, SqlState};
use crate::types::Type;

/// A type's modifier, as in `atttypmod`: -1 for none, else a number whose meaning is the type's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Typmod(pub i32);

/// PostgreSQL counts the length word of a variable-length value into the modifier.
const HEADER: i32 = 4;

/// The longest `varchar(n)` and `char(n)`, in characters.
pub const STRING_LENGTH_MAX: i32 = 10_485_760;
/// The largest precision of `numeric(p,s)`.
pub const NUMERIC_PRECISION_MAX: i32 = 1000;

/// All fields: the range of an interval that names none.
const INTERVAL_FULL_RANGE: i32 = 0x7fff;
const INTERVAL_FULL_PRECISION: i32 = 0xffff;

impl Typmod {
    /// No modifier.
    pub const NONE: Typmod = Typmod(-1);

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.0 < 0
    }

    /// The modifier of `varchar(n)` (or `char(n)`, which messages name by `ty`).
    ///
    /// # Errors
    /// 22023 if `length` is not in 1..=[`STRING_LENGTH_MAX`].
    pub fn of_length(ty: Type, length: i64) -> Result<Self> {
        let name = if ty == Type::Char { "char" } else { "varchar" };
        if length < 1 {
            let message = format!("length for type {name} must be at least 1");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        match i32::try_from(length) {
            Ok(length) if length <= STRING_LENGTH_MAX => Ok(Self(length + HEADER)),
            _ => {
                let message = format!("length for type {name} cannot exceed {STRING_LENGTH_MAX}");
                Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
            }
        }
    }

    /// The modifier of `numeric(precision, scale)`.
    ///
    /// # Errors
    /// 22023 if the precision is not in 1..=1000 or the scale not in -1000..=1000.
    pub fn of_numeric(precision: i64, scale: i64) -> Result<Self> {
        let limit = i64::from(NUMERIC_PRECISION_MAX);
        if !(1..=limit).contains(&precision) {
            let message = format!("NUMERIC precision {precision} must be between 1 and {limit}");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        if !(-limit..=limit).contains(&scale) {
            let message = format!("NUMERIC scale {scale} must be between -{limit} and {limit}");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        let (precision, scale) = (precision as i32, scale as i32);
        Ok(Self(((precision << 16) | (scale & 0x7ff)) + HEADER))
    }

    /// The modifier of `time(p)`, `timestamp(p)` and `timestamptz(p)`. More than six digits are
    /// six, as in PostgreSQL (which warns).
    ///
    /// # Errors
    /// 22023 if `digits` is negative.
    pub fn of_fraction(ty: Type, digits: i64) -> Result<Self> {
        if digits < 0 {
            let (head, tail) = ty.sql_name().split_once(' ').unwrap_or((ty.sql_name(), ""));
            let tail = if tail.starts_with("with ") {
                " WITH TIME ZONE"
            } else {
                ""
            };
            let message = format!(
                "{}({digits}){tail} precision must not be negative",
                head.to_uppercase()
            );
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        Ok(Self(digits.min(6) as i32))
    }

    /// The modifier of an interval of these fields (a set of [`IntervalFields`]) with so many
    /// fractional digits of the second.
    ///
    /// # Errors
    /// 22023 if `digits` is negative.
    pub fn of_interval(fields: Option<IntervalFields>, digits: Option<i64>) -> Result<Self> {
        let range = fields.map_or(INTERVAL_FULL_RANGE, |fields| i32::from(fields.0));
        let digits = match digits {
            Some(digits) if digits < 0 => {
                let message = format!("INTERVAL({digits}) precision must not be negative");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
            Some(digits) => digits.min(6) as i32,
            None => INTERVAL_FULL_PRECISION,
        };
        if range == INTERVAL_FULL_RANGE && digits == INTERVAL_FULL_PRECISION {
            return Ok(Self::NONE);
        }
        Ok(Self((range << 16) | digits))
    }

    /// Characters of `varchar(n)` and `char(n)`.
    pub fn length(self) -> Option<usize> {
        usize::try_from(self.0.checked_sub(HEADER)?).ok()
    }

    /// Precision and scale of `numeric(p,s)`.
    pub fn precision_scale(self) -> Option<(i32, i32)> {
        if self.0 < HEADER {
            return None;
        }
        let packed = self.0 - HEADER;
        // The scale is an eleven-bit number with sign.
        let scale = ((packed & 0x7ff) ^ 1024) - 1024;
        Some(((packed >> 16) & 0xffff, scale))
    }

    /// Fractional digits of the second of `time(p)`, `timestamp(p)`, `timestamptz(p)`.
    pub fn fraction(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }

    /// Fractional digits of the second of an interval, if limited.
    pub fn interval_fraction(self) -> Option<u32> {
        let digits = self.0 & INTERVAL_FULL_PRECISION;
        (!self.is_none() && digits != INTERVAL_FULL_PRECISION).then_some(digits as u32)
    }

    /// The fields of an interval, if limited.
    pub fn interval_fields(self) -> Option<IntervalFields> {
        let range = (self.0 >> 16) & INTERVAL_FULL_RANGE;
        (!self.is_none() && range != INTERVAL_FULL_RANGE).then_some(IntervalFields(range as u16))
    }

    pub(crate) fn format_interval(self) -> String {
        let mut out = "interval".to_owned();
        if let Some(name) = self.interval_fields().and_then(IntervalFields::name) {
            out.push(' ');
            out.push_str(name);
        }
        if let Some(digits) = self.interval_fraction() {
            out.push_str(&format!("({digits})"));
        }
        out
    }
}

/// The fields of an interval type: `interval day to second`. Bits as PostgreSQL numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IntervalFields(pub u16);

impl IntervalFields {
    const MONTH_BIT: u16 = 1 << 1;
    const YEAR_BIT: u16 = 1 << 2;
    const DAY_BIT: u16 = 1 << 3;
    const HOUR_BIT: u16 = 1 << 10;
    const MINUTE_BIT: u16 = 1 << 11;
    const SECOND_BIT: u16 = 1 << 12;

    /// `YEAR`
    pub const YEAR: Self = Self(Self::YEAR_BIT);
    /// `MONTH`
    pub const MONTH: Self = Self(Self::MONTH_BIT);
    /// `DAY`
    pub const DAY: Self = Self(Self::DAY_BIT);
    /// `HOUR`
    pub const HOUR: Self = Self(Self::HOUR_BIT);
    /// `MINUTE`
    pub const MINUTE: Self = Self(Self::MINUTE_BIT);
    /// `SECOND`
    pub const SECOND: Self = Self(Self::SECOND_BIT);
    /// `YEAR TO MONTH`
    pub const YEAR_TO_MONTH: Self = Self(Self::YEAR_BIT | Self::MONTH_BIT);
    /// `DAY TO HOUR`
    pub const DAY_TO_HOUR: Self = Self(Self::DAY_BIT | Self::HOUR_BIT);
    /// `DAY TO MINUTE`
    pub const DAY_TO_MINUTE: Self = Self(Self::DAY_TO_HOUR.0 | Self::MINUTE_BIT);
    /// `DAY TO SECOND`
    pub const DAY_TO_SECOND: Self = Self(Self::DAY_TO_MINUTE.0 | Self::SECOND_BIT);
    /// `HOUR TO MINUTE`
    pub const HOUR_TO_MINUTE: Self = Self(Self::HOUR_BIT | Self::MINUTE_BIT);
    /// `HOUR TO SECOND`
    pub const HOUR_TO_SECOND: Self = Self(Self::HOUR_TO_MINUTE.0 | Self::SECOND_BIT);
    /// `MINUTE TO SECOND`
    pub const MINUTE_TO_SECOND: Self = Self(Self::MINUTE_BIT | Self::SECOND_BIT);

    /// As SQL writes it; `None` if SQL has no such set.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::YEAR => "year",
            Self::MONTH => "month",
            Self::DAY => "day",
            Self::HOUR => "hour",
            Self::MINUTE => "minute",
            Self::SECOND => "second",
            Self::YEAR_TO_MONTH => "year to month",
            Self::DAY_TO_HOUR => "day to hour",
            Self::DAY_TO_MINUTE => "day to minute",
            Self::DAY_TO_SECOND => "day to second",
            Self::HOUR_TO_MINUTE => "hour to minute",
            Self::HOUR_TO_SECOND => "hour to second",
            Self::MINUTE_TO_SECOND => "minute to second",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_those_of_postgresql() {
        assert_eq!(Typmod::of_numeric(12, 2).unwrap(), Typmod(786_438));
        assert_eq!(
            Typmod::of_numeric(3, -2).unwrap().precision_scale(),
            Some((3, -2))
        );
        assert_eq!(Typmod::of_length(Type::Varchar, 10).unwrap(), Typmod(14));
        let format = |ty: Type, typmod: Typmod| ty.format(typmod);
        assert_eq!(
            format(Type::Numeric, Typmod::of_numeric(3, -2).unwrap()),
            "numeric(3,-2)"
        );
        assert_eq!(
            format(Type::Timestamptz, Typmod(3)),
            "timestamp(3) with time zone"
        );
        assert_eq!(format(Type::Char, Typmod::NONE), "bpchar");
        assert_eq!(format(Type::Char, Typmod(5)), "character(1)");
        let fields = Typmod::of_interval(Some(IntervalFields::DAY_TO_SECOND), Some(3)).unwrap();
        assert_eq!(format(Type::Interval, fields), "interval day to second(3)");
        assert_eq!(Typmod::of_interval(None, None).unwrap(), Typmod::NONE);
    }

    #[test]
    fn modifiers_out_of_range_are_refused() {
        let state = |result: Result<Typmod>| result.unwrap_err().state();
        assert_eq!(state(Typmod::of_numeric(0, 0)), SqlState::INVALID_PARAMETER);
        assert_eq!(
            state(Typmod::of_numeric(1, 1001)),
            SqlState::INVALID_PARAMETER
        );
        let none = Typmod::of_length(Type::Char, 0).unwrap_err();
        assert_eq!(none.message(), "length for type char must be at least 1");
        assert_eq!(
            state(Typmod::of_length(Type::Varchar, 10_485_761)),
            SqlState::INVALID_PARAMETER
        );
    }
}
