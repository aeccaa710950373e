//! Cutting instants and intervals off at a field (`date_trunc`), bins of instants (`date_bin`), and the span between two of them in years, months and days
//! (`age`).

use super::calendar::{self, days_in_month};
use super::extract::Field;
use super::{
    Day, Interval, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, TimeZone,
    Timestamp, abbreviations,
};
use crate::error::{Result, SqlError, SqlState};
use crate::types::Type;

fn field_of(name: &str, ty: Type) -> Result<Field> {
    let name = name.to_lowercase();
    Field::find(&name).ok_or_else(|| {
        let message = format!("unit \"{name}\" not recognized for type {}", ty.sql_name());
        SqlError::new(SqlState::INVALID_PARAMETER, message)
    })
}

#[cold]
fn unsupported(name: &str, ty: Type) -> SqlError {
    let name = name.to_lowercase();
    let message = format!("unit \"{name}\" not supported for type {}", ty.sql_name());
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// Microseconds of the fields below a day.
fn unit_of(field: Field) -> Option<i64> {
    Some(match field {
        Field::Microseconds => 1,
        Field::Milliseconds => 1000,
        Field::Second => MICROS_PER_SECOND,
        Field::Minute => MICROS_PER_MINUTE,
        Field::Hour => MICROS_PER_HOUR,
        _ => return None,
    })
}

/// The first day of the field that a day is in; `None` for fields that cut nothing.
fn first_day(field: Field, number: i64) -> Option<i64> {
    let day = Day::of_number(number);
    // Centuries and millennia begin with their year 1, decades with 0.
    let first_year = |length: i32| match day.year {
        year if year > 0 => (year + length - 1) / length * length - (length - 1),
        year => -((length - 1 - (year - 1)) / length * length) + 1,
    };
    let (year, month) = match field {
        Field::Day => return Some(number),
        Field::Week => {
            let since_monday = (i64::from(calendar::weekday(number)) + 6) % 7;
            return Some(number - since_monday);
        }
        Field::Month => (day.year, day.month),
        Field::Quarter => (day.year, (day.month - 1) / 3 * 3 + 1),
        Field::Year => (day.year, 1),
        Field::Decade if day.year > 0 => (day.year / 10 * 10, 1),
        Field::Decade => (-((8 - (day.year - 1)) / 10) * 10, 1),
        Field::Century => (first_year(100), 1),
        Field::Millennium => (first_year(1000), 1),
        _ => return None,
    };
    Some(
        Day {
            year,
            month,
            day: 1,
        }
        .number(),
    )
}

impl Timestamp {
    /// The beginning of the field that an instant lies in: on the wall of a zone, if one is given.
    ///
    /// # Errors
    /// 22023 for a name that is no field's, 0A000 for a field that cuts nothing, 22008 if there is no such instant.
    pub fn truncate(self, name: &str, zone: Option<&TimeZone>) -> Result<Timestamp> {
        let ty = if zone.is_some() {
            Type::Timestamptz
        } else {
            Type::Timestamp
        };
        let field = field_of(name, ty)?;
        let wall = zone.map_or(self.0, |zone| zone.wall(self));
        if let Some(unit) = unit_of(field) {
            let into = wall.rem_euclid(unit);
            return if self.is_finite() {
                Ok(Timestamp(self.0 - into))
            } else {
                Ok(self)
            };
        }
        let first = first_day(field, wall.div_euclid(MICROS_PER_DAY));
        let first = first.ok_or_else(|| unsupported(name, ty))?;
        if !self.is_finite() {
            return Ok(self);
        }
        let wall = first.checked_mul(MICROS_PER_DAY);
        let instant = match zone {
            Some(zone) => wall.and_then(|wall| zone.instant(wall)),
            None => wall,
        };
        instant
            .and_then(Timestamp::checked)
            .ok_or_else(Timestamp::out_of_range)
    }

    /// The beginning of the bin of a width, counted from an origin.
    ///
    /// # Errors
    /// 0A000 for widths of months, 22008 for one that is not above zero and for infinite origins.
    pub fn bin(self, width: Interval, origin: Timestamp) -> Result<Timestamp> {
        let told = |text: &'static str| SqlError::new(SqlState::DATETIME_OVERFLOW, text);
        if !self.is_finite() {
            return Ok(self);
        }
        if !origin.is_finite() {
            return Err(told("origin out of range"));
        }
        if width.months != 0 {
            let text = "timestamps cannot be binned into intervals containing months or years";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        let micros = i64::from(width.days)
            .checked_mul(MICROS_PER_DAY)
            .and_then(|days| days.checked_add(width.micros))
            .ok_or_else(|| told("interval out of range"))?;
        if micros <= 0 {
            return Err(told("stride must be greater than zero"));
        }
        let since = self
            .0
            .checked_sub(origin.0)
            .ok_or_else(|| told("interval out of range"))?;
        since
            .div_euclid(micros)
            .checked_mul(micros)
            .and_then(|whole| whole.checked_add(origin.0))
            .and_then(Timestamp::checked)
            .ok_or_else(|| told("timestamp out of range"))
    }

    /// The span from `other` to this in years, months and days of the calendar; both are clocks on a wall.
    ///
    /// # Errors
    /// 22008 for an infinity.
    pub fn age(self, other: Timestamp) -> Result<Interval> {
        if !self.is_finite() || !other.is_finite() {
            return Err(Timestamp::out_of_range());
        }
        let back = self < other;
        let (early, late) = if back { (self, other) } else { (other, self) };
        let parts = |at: Timestamp| {
            let day = Day::of_number(at.0.div_euclid(MICROS_PER_DAY));
            (day, at.0.rem_euclid(MICROS_PER_DAY))
        };
        let ((from, from_clock), (to, to_clock)) = (parts(early), parts(late));
        let mut micros = to_clock - from_clock;
        let mut days = to.day - from.day;
        let mut months = (to.year - from.year) * 12 + to.month - from.month;
        if micros < 0 {
            micros += MICROS_PER_DAY;
            days -= 1;
        }
        while days < 0 {
            // Of the month of the earlier one.
            days += days_in_month(from.year, from.month);
            months -= 1;
        }
        let age = Interval {
            months,
            days,
            micros,
        };
        if back { age.negate() } else { Ok(age) }
    }
}

impl Interval {
    /// The interval without what is below a field.
    ///
    /// # Errors
    /// 22023 for a name that is no field's, 0A000 for a field that cuts nothing.
    pub fn truncate(self, name: &str) -> Result<Interval> {
        let field = field_of(name, Type::Interval)?;
        if let Some(unit) = unit_of(field) {
            let micros = self.micros / unit * unit;
            return Ok(Interval { micros, ..self });
        }
        let months = match field {
            Field::Day => return Ok(Interval { micros: 0, ..self }),
            Field::Month => 1,
            Field::Quarter => 3,
            Field::Year => 12,
            Field::Decade => 120,
            Field::Century => 1200,
            Field::Millennium => 12_000,
            Field::Week => {
                return Err(unsupported(name, Type::Interval)
                    .with_detail("Months usually have fractional weeks."));
            }
            _ => return Err(unsupported(name, Type::Interval)),
        };
        Ok(Interval {
            months: self.months / months * months,
            days: 0,
            micros: 0,
        })
    }

    /// With days of 24 hours, if `hours`, and months of 30 days, if `days`; then all of one sign.
    ///
    /// # Errors
    /// 22008 if a field is out of range.
    pub fn justify(self, hours: bool, days: bool) -> Result<Interval> {
        let overflow = || SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range");
        let (mut months, mut own_days, mut micros) =
            (i64::from(self.months), i64::from(self.days), self.micros);
        if hours {
            if days && own_days != 0 && (own_days > 0) == (micros > 0) {
                months += own_days / 30;
                own_days %= 30;
            }
            own_days += micros / MICROS_PER_DAY;
            micros %= MICROS_PER_DAY;
        }
        if days {
            months += own_days / 30;
            own_days %= 30;
            if months > 0 && (own_days < 0 || hours && own_days == 0 && micros < 0) {
                own_days += 30;
                months -= 1;
            } else if months < 0 && (own_days > 0 || hours && own_days == 0 && micros > 0) {
                own_days -= 30;
                months += 1;
            }
        }
        if hours {
            if own_days > 0 && micros < 0 {
                micros += MICROS_PER_DAY;
                own_days -= 1;
            } else if own_days < 0 && micros > 0 {
                micros -= MICROS_PER_DAY;
                own_days += 1;
            }
        }
        Ok(Interval {
            months: i32::try_from(months).map_err(|_| overflow())?,
            days: i32::try_from(own_days).map_err(|_| overflow())?,
            micros,
        })
    }
}

impl TimeZone {
    /// The zone of a name or of an abbreviation that input takes.
    ///
    /// # Errors
    /// 22023 if there is none.
    pub fn find(name: &str) -> Result<TimeZone> {
        let plain = name.to_lowercase();
        let short = abbreviations::find(&plain).map(TimeZone::fixed);
        let short = short.or_else(|| abbreviations::zone(&plain));
        short.or_else(|| TimeZone::named(name)).ok_or_else(|| {
            let message = format!("time zone \"{name}\" not recognized");
            SqlError::new(SqlState::INVALID_PARAMETER, message)
        })
    }
}
