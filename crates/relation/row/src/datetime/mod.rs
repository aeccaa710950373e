//! Dates, times, instants and intervals.
//!
//! Layout: as in PostgreSQL: days or microseconds since 2000-01-01, the extreme values being the
//! infinities; an interval is months, days and microseconds, three numbers that do not mix.

mod abbreviations;
mod arithmetic;
pub mod calendar;
mod clock;
mod extract;
mod input;
mod moment;
mod parse;
mod span;
mod tokens;
mod truncate;
mod write;
mod write_span;
mod zone;

pub use calendar::Day;
pub use extract::extract;
pub use zone::{Offset, TimeZone};

/// Microseconds of a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
/// Microseconds of an hour.
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
/// Microseconds of a day of 24 hours.
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

/// Days since 2000-01-01. From 4713-11-24 BC to 5874897-12-31, and the infinities.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Date(pub i32);

/// Microseconds since midnight, 0 ..= 86,400,000,000 (24:00:00 is a time of its own).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time(pub i64);

/// Microseconds since 2000-01-01 00:00:00: in UTC for `timestamptz`, of an unnamed place for
/// `timestamp`. From 4713-11-24 BC to 294276-12-31, and the infinities.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(pub i64);

/// A span of time. The derived equality is that of the three numbers; SQL's is
/// [`Interval::span`]'s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Months; twelve are a year.
    pub months: i32,
    /// Days; not always 24 hours.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Date {
    /// Later than every date.
    pub const INFINITY: Date = Date(i32::MAX);
    /// Earlier than every date.
    pub const NEG_INFINITY: Date = Date(i32::MIN);

    /// Whether it is a day and no infinity.
    pub fn is_finite(self) -> bool {
        self != Self::INFINITY && self != Self::NEG_INFINITY
    }
}

impl Timestamp {
    /// Later than every instant.
    pub const INFINITY: Timestamp = Timestamp(i64::MAX);
    /// Earlier than every instant.
    pub const NEG_INFINITY: Timestamp = Timestamp(i64::MIN);

    /// Whether it is an instant and no infinity.
    pub fn is_finite(self) -> bool {
        self != Self::INFINITY && self != Self::NEG_INFINITY
    }
}

impl Interval {
    /// Its length in microseconds with months of 30 days of 24 hours: what intervals are compared
    /// by.
    pub fn span(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    /// An interval of this length, with as many months, then days, as there are in it; `None` if no
    /// interval is so long.
    pub fn of_span(span: i128) -> Option<Self> {
        let take = |rest: i128, unit: i128| {
            let count = (rest / unit).clamp(i128::from(i32::MIN), i128::from(i32::MAX));
            (count as i32, rest - count * unit)
        };
        let day = i128::from(MICROS_PER_DAY);
        let (months, rest) = take(span, 30 * day);
        let (days, rest) = take(rest, day);
        Some(Self {
            months,
            days,
            micros: i64::try_from(rest).ok()?,
        })
    }
}
