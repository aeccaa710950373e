//! Text to `date`, `time`, `timestamp`, `timestamptz`: ranges, modifiers, errors.

use super::calendar::{DAY_MIN, TIMESTAMP_DAY_END};
use super::moment::Parsed;
use super::parse::{Goal, parse};
use super::tokens::Fault;
use super::{Date, MICROS_PER_DAY, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::settings::Settings;
use crate::types::Typmod;

/// The error that PostgreSQL gives for a fault in text of a type.
pub(super) fn fault_error(fault: Fault, text: &str, type_name: &str) -> SqlError {
    let out_of_range =
        |state, what: &str| SqlError::new(state, format!("{what} out of range: \"{text}\""));
    match fault {
        Fault::Format => SqlError::new(
            SqlState::INVALID_DATETIME,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        ),
        Fault::Field => out_of_range(SqlState::DATETIME_OVERFLOW, "date/time field value"),
        Fault::MonthOrDay => out_of_range(SqlState::DATETIME_OVERFLOW, "date/time field value")
            .with_hint("Perhaps you need a different \"datestyle\" setting."),
        Fault::Interval => out_of_range(SqlState::INTERVAL_OVERFLOW, "interval field value"),
        Fault::Displacement => out_of_range(
            SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
            "time zone displacement",
        ),
        Fault::UnknownZone(name) => SqlError::new(
            SqlState::INVALID_PARAMETER,
            format!("time zone \"{name}\" not recognized"),
        ),
    }
}

impl Date {
    /// Reads a date.
    ///
    /// # Errors
    /// 22007 for other text, 22008 for a date there is not.
    pub fn parse(text: &str, settings: &Settings) -> Result<Self> {
        let parsed = parse(text, Goal::DateTime, settings)
            .map_err(|fault| fault_error(fault, text, "date"))?;
        parsed.date().ok_or_else(|| {
            let message = format!("date out of range: \"{text}\"");
            SqlError::new(SqlState::DATETIME_OVERFLOW, message)
        })
    }
}

impl Time {
    /// Reads a time of day.
    ///
    /// # Errors
    /// 22007 for other text, 22008 for a time there is not.
    pub fn parse(text: &str, typmod: Typmod, settings: &Settings) -> Result<Self> {
        let parsed =
            parse(text, Goal::Time, settings).map_err(|fault| fault_error(fault, text, "time"))?;
        Ok(parsed.time().coerce(typmod))
    }

    /// Rounded to the digits of the modifier.
    #[must_use]
    pub fn coerce(self, typmod: Typmod) -> Self {
        Time(round(self.0, typmod.fraction()))
    }
}

/// Rounded to fractional digits of the second, halves away from zero.
pub(super) fn round(micros: i64, digits: Option<u32>) -> i64 {
    match digits {
        Some(digits) if digits < 6 => {
            let unit = 10i64.pow(6 - digits);
            let half = if micros < 0 { -(unit / 2) } else { unit / 2 };
            (micros.saturating_add(half) / unit) * unit
        }
        _ => micros,
    }
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_OVERFLOW,
        format!("timestamp out of range: \"{text}\""),
    )
}

impl Timestamp {
    /// The instant so many microseconds from 2000-01-01; `None` if there is none.
    pub fn checked(micros: i64) -> Option<Self> {
        let first = i64::from(DAY_MIN) * MICROS_PER_DAY;
        let end = i64::from(TIMESTAMP_DAY_END) * MICROS_PER_DAY;
        (first..end).contains(&micros).then_some(Self(micros))
    }

    /// Reads a `timestamp`; a zone is read over.
    ///
    /// # Errors
    /// 22007 for other text, 22008 for an instant there is not.
    pub fn parse(text: &str, typmod: Typmod, settings: &Settings) -> Result<Self> {
        Self::read(text, typmod, settings, "timestamp", Parsed::wall)
    }

    /// Reads a `timestamptz`; without a zone it is in the session's.
    ///
    /// # Errors
    /// 22007 for other text, 22008 for an instant there is not.
    pub fn parse_with_zone(text: &str, typmod: Typmod, settings: &Settings) -> Result<Self> {
        let name = "timestamp with time zone";
        Self::read(text, typmod, settings, name, |parsed| {
            parsed.instant(settings)
        })
    }

    fn read(
        text: &str,
        typmod: Typmod,
        settings: &Settings,
        type_name: &str,
        micros: impl Fn(&Parsed) -> Option<i64>,
    ) -> Result<Self> {
        let parsed = parse(text, Goal::DateTime, settings)
            .map_err(|fault| fault_error(fault, text, type_name))?;
        match parsed.special() {
            Some(special) => Ok(special),
            None => micros(&parsed)
                .and_then(Timestamp::checked)
                .ok_or_else(|| out_of_range(text))?
                .coerce(typmod),
        }
    }

    /// Rounded to the digits of the modifier.
    ///
    /// # Errors
    /// 22008 if rounding leaves the range of instants.
    pub fn coerce(self, typmod: Typmod) -> Result<Self> {
        if !self.is_finite() {
            return Ok(self);
        }
        Timestamp::checked(round(self.0, typmod.fraction()))
            .ok_or_else(|| SqlError::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range"))
    }
}
