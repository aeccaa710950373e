//! Sums and differences of dates, times, instants and intervals.
//!
//! An interval is added months first, then days, then microseconds; a day that the month does not have
//! becomes its last. With a zone, months and days are added on the wall there, microseconds are not.
//! The infinities absorb what is added.

use super::calendar::{DAY_END, DAY_MIN, days_in_month};
use super::{Date, Day, Interval, MICROS_PER_DAY, Time, TimeZone, Timestamp};
use crate::error::{Result, SqlError, SqlState};

#[cold]
fn overflow(message: &'static str) -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, message)
}

#[cold]
fn interval_overflow() -> SqlError {
    overflow("interval out of range")
}

impl Date {
    /// Midnight of the date.
    ///
    /// # Errors
    /// 22008 if it is behind the last instant.
    pub fn to_timestamp(self) -> Result<Timestamp> {
        match self {
            Date::INFINITY => return Ok(Timestamp::INFINITY),
            Date::NEG_INFINITY => return Ok(Timestamp::NEG_INFINITY),
            Date(_) => {}
        }
        i64::from(self.0)
            .checked_mul(MICROS_PER_DAY)
            .and_then(Timestamp::checked)
            .ok_or_else(|| overflow("date out of range for timestamp"))
    }

    /// The instant of midnight in a zone.
    ///
    /// # Errors
    /// 22008 if there is no such instant.
    pub fn to_instant(self, zone: &TimeZone) -> Result<Timestamp> {
        let midnight = self.to_timestamp()?;
        if !midnight.is_finite() {
            return Ok(midnight);
        }
        zone.instant(midnight.0)
            .and_then(Timestamp::checked)
            .ok_or_else(|| overflow("date out of range for timestamp"))
    }

    /// The date so many days later.
    ///
    /// # Errors
    /// 22008 if there is none.
    pub fn add_days(self, days: i64) -> Result<Date> {
        if !self.is_finite() {
            return Ok(self);
        }
        let sum = i64::from(self.0) + days;
        match i32::try_from(sum) {
            Ok(sum) if (DAY_MIN..DAY_END).contains(&sum) => Ok(Date(sum)),
            _ => Err(overflow("date out of range")),
        }
    }

    /// Days from `other` to this date.
    ///
    /// # Errors
    /// 22008 if one of them is an infinity.
    pub fn days_since(self, other: Date) -> Result<i32> {
        if !self.is_finite() || !other.is_finite() {
            return Err(overflow("cannot subtract infinite dates"));
        }
        // Finite dates are closer together than 2^31 days.
        Ok(self.0.wrapping_sub(other.0))
    }
}

impl Time {
    /// The time of day an interval later; only its microseconds count.
    #[must_use]
    pub fn plus(self, interval: Interval) -> Time {
        let micros = interval.micros % MICROS_PER_DAY;
        Time((self.0 + micros).rem_euclid(MICROS_PER_DAY))
    }
}

impl Timestamp {
    /// 22008.
    #[cold]
    pub(crate) fn out_of_range() -> SqlError {
        overflow("timestamp out of range")
    }

    /// The instant at which a clock in a zone shows this.
    ///
    /// # Errors
    /// 22008 if there is none.
    pub fn to_instant(self, zone: &TimeZone) -> Result<Timestamp> {
        if !self.is_finite() {
            return Ok(self);
        }
        zone.instant(self.0)
            .and_then(Timestamp::checked)
            .ok_or_else(Self::out_of_range)
    }

    /// An interval later; on the wall of a zone, if one is given.
    ///
    /// # Errors
    /// 22008 if there is no such instant.
    pub fn plus(self, interval: Interval, zone: Option<&TimeZone>) -> Result<Timestamp> {
        if !self.is_finite() {
            return Ok(self);
        }
        let mut micros = self.0;
        let on_wall = |micros: i64, change: &dyn Fn(i64) -> Option<i64>| -> Result<i64> {
            let wall = zone.map_or(micros, |zone| zone.wall(Timestamp(micros)));
            let moved = change(wall).ok_or_else(Self::out_of_range)?;
            let instant = match zone {
                Some(zone) => zone.instant(moved),
                None => Some(moved),
            };
            let instant = instant
                .and_then(Timestamp::checked)
                .ok_or_else(Self::out_of_range)?;
            Ok(instant.0)
        };
        if interval.months != 0 {
            micros = on_wall(micros, &|wall| {
                let day = Day::of_number(wall.div_euclid(MICROS_PER_DAY));
                let months = i64::from(day.year) * 12 + i64::from(day.month - 1);
                let months = months + i64::from(interval.months);
                let year = i32::try_from(months.div_euclid(12)).ok()?;
                let month = months.rem_euclid(12) as i32 + 1;
                let day = Day {
                    year,
                    month,
                    day: day.day.min(days_in_month(year, month)),
                };
                day.number()
                    .checked_mul(MICROS_PER_DAY)?
                    .checked_add(wall.rem_euclid(MICROS_PER_DAY))
            })?;
        }
        if interval.days != 0 {
            micros = on_wall(micros, &|wall| {
                wall.checked_add(i64::from(interval.days).checked_mul(MICROS_PER_DAY)?)
            })?;
        }
        micros
            .checked_add(interval.micros)
            .and_then(Timestamp::checked)
            .ok_or_else(Self::out_of_range)
    }

    /// The time from `other` to this, in days of 24 hours and microseconds.
    ///
    /// # Errors
    /// 22008 if one of them is an infinity or the interval is too long.
    pub fn since(self, other: Timestamp) -> Result<Interval> {
        if !self.is_finite() || !other.is_finite() {
            return Err(overflow("cannot subtract infinite timestamps"));
        }
        let micros = self.0.checked_sub(other.0).ok_or_else(interval_overflow)?;
        Ok(Interval {
            months: 0,
            // 64 bits of microseconds are fewer than 2^31 days.
            days: (micros / MICROS_PER_DAY) as i32,
            micros: micros % MICROS_PER_DAY,
        })
    }
}

impl Interval {
    /// The sum, field by field.
    ///
    /// # Errors
    /// 22008 if a field is out of range.
    pub fn plus(self, other: Interval) -> Result<Interval> {
        let sum = (
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.micros.checked_add(other.micros),
        );
        match sum {
            (Some(months), Some(days), Some(micros)) => Ok(Interval {
                months,
                days,
                micros,
            }),
            _ => Err(interval_overflow()),
        }
    }

    /// The difference, field by field.
    ///
    /// # Errors
    /// 22008 if a field is out of range.
    pub fn minus(self, other: Interval) -> Result<Interval> {
        let difference = (
            self.months.checked_sub(other.months),
            self.days.checked_sub(other.days),
            self.micros.checked_sub(other.micros),
        );
        match difference {
            (Some(months), Some(days), Some(micros)) => Ok(Interval {
                months,
                days,
                micros,
            }),
            _ => Err(interval_overflow()),
        }
    }

    /// The same backwards.
    ///
    /// # Errors
    /// 22008 if a field has no negative.
    pub fn negate(self) -> Result<Interval> {
        Interval::default().minus(self)
    }

    /// So many times as long. Fractions of months become days, of days microseconds.
    ///
    /// # Errors
    /// 22008 if a field is out of range.
    pub fn multiply(self, factor: f64) -> Result<Interval> {
        self.scaled(|field| field * factor)
    }

    /// The part of it.
    ///
    /// # Errors
    /// 22012 for division by zero, 22008 if a field is out of range.
    pub fn divide(self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(SqlError::division_by_zero());
        }
        self.scaled(|field| field / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        // To microseconds, to lose what binary fractions add.
        let rounded = |seconds: f64| (seconds * 1e6).round_ties_even() / 1e6;
        let whole = |value: f64| -> Result<i32> {
            if value.is_nan() || value > f64::from(i32::MAX) || value < f64::from(i32::MIN) {
                return Err(interval_overflow());
            }
            Ok(value as i32)
        };
        let months_exact = scale(f64::from(self.months));
        let days_exact = scale(f64::from(self.days));
        let months = whole(months_exact)?;
        let mut days = whole(days_exact)?;
        let days_of_months = rounded((months_exact - f64::from(months)) * 30.0);
        let rest = days_exact - f64::from(days) + days_of_months - days_of_months.trunc();
        let mut seconds = rounded(rest * 86_400.0);
        if seconds.abs() >= 86_400.0 {
            let more = (seconds / 86_400.0).trunc();
            days = days
                .checked_add(more as i32)
                .ok_or_else(interval_overflow)?;
            seconds -= more * 86_400.0;
        }
        days = days
            .checked_add(days_of_months as i32)
            .ok_or_else(interval_overflow)?;
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        let limit = 9_223_372_036_854_775_808.0;
        if micros.is_nan() || micros < -limit || micros >= limit {
            return Err(interval_overflow());
        }
        Ok(Interval {
            months,
            days,
            micros: micros as i64,
        })
    }
}
