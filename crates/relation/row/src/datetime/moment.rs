//! What was read from the text of a date or time, and the values it can be.

use super::calendar::{Day, UNIX_EPOCH_DAYS};
use super::{Date, MICROS_PER_DAY, MICROS_PER_SECOND, Time, TimeZone, Timestamp};
use crate::settings::Settings;

/// Which instant the fields describe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    Fields,
    Epoch,
    Infinity,
    NegInfinity,
}

/// The zone that was given.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Seconds east.
    Offset(i32),
    Named(TimeZone),
}

/// The fields that were read.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub moment: Moment,
    pub day: Day,
    /// Microseconds since midnight; a leap second and 24:00 run over.
    pub micros: i64,
    pub zone: Option<Zone>,
}

impl Parsed {
    /// The instant of the fields on the wall; `None` if it is beyond 64 bits.
    pub fn wall(&self) -> Option<i64> {
        self.day
            .number()
            .checked_mul(MICROS_PER_DAY)?
            .checked_add(self.micros)
    }

    /// The instant in the zone that was given, or in the session's.
    pub fn instant(&self, settings: &Settings) -> Option<i64> {
        let wall = self.wall()?;
        match &self.zone {
            Some(Zone::Offset(seconds)) => {
                wall.checked_sub(i64::from(*seconds) * MICROS_PER_SECOND)
            }
            Some(Zone::Named(zone)) => zone.instant(wall),
            None => settings.time_zone.instant(wall),
        }
    }

    /// The time of day.
    pub fn time(&self) -> Time {
        Time(self.micros)
    }

    /// The moment as a date; `None` if there is no such date.
    pub fn date(&self) -> Option<Date> {
        match self.moment {
            Moment::Epoch => Some(Date(-UNIX_EPOCH_DAYS)),
            Moment::Infinity => Some(Date::INFINITY),
            Moment::NegInfinity => Some(Date::NEG_INFINITY),
            Moment::Fields => Date::of_day(self.day).ok(),
        }
    }

    /// The instant of a word, if the text was one.
    pub fn special(&self) -> Option<Timestamp> {
        match self.moment {
            Moment::Fields => None,
            Moment::Epoch => Some(Timestamp(-i64::from(UNIX_EPOCH_DAYS) * MICROS_PER_DAY)),
            Moment::Infinity => Some(Timestamp::INFINITY),
            Moment::NegInfinity => Some(Timestamp::NEG_INFINITY),
        }
    }
}
