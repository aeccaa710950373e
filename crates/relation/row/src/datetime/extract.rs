//! Fields of dates, times, instants and intervals: EXTRACT and `date_part`.
//!
//! Not here: cutting an instant off at a field (`truncate`).

use super::calendar::{self, Day, EPOCH_JULIAN, UNIX_EPOCH_DAYS};
use super::{Date, Interval, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::numeric::Numeric;
use crate::settings::Settings;
use crate::types::Type;
use crate::value::ValueRef;

/// What can be taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Quarter,
    Week,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

impl Field {
    /// By its name in small letters; as in PostgreSQL the first ten letters tell.
    pub fn find(name: &str) -> Option<Self> {
        let end = name.char_indices().nth(10).map_or(name.len(), |(at, _)| at);
        Some(match &name[..end] {
            "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Self::Microseconds,
            "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Self::Milliseconds,
            "s" | "sec" | "second" | "seconds" | "secs" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hour" | "hours" | "hr" | "hrs" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "qtr" | "quarter" => Self::Quarter,
            "w" | "week" | "weeks" => Self::Week,
            "y" | "year" | "years" | "yr" | "yrs" => Self::Year,
            "dec" | "decade" | "decades" | "decs" => Self::Decade,
            "c" | "cent" | "centuries" | "century" => Self::Century,
            "mil" | "millennia" | "millennium" | "mils" => Self::Millennium,
            "j" | "jd" | "julian" => Self::Julian,
            "isoyear" => Self::IsoYear,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "epoch" => Self::Epoch,
            "timezone" => Self::Zone,
            "timezone_h" => Self::ZoneHour,
            "timezone_m" => Self::ZoneMinute,
            _ => return None,
        })
    }

    /// Whether it grows with time: then it is infinite where time is.
    fn grows(self) -> bool {
        matches!(
            self,
            Self::Year
                | Self::Decade
                | Self::Century
                | Self::Millennium
                | Self::Julian
                | Self::IsoYear
                | Self::Epoch
        )
    }
}

fn whole(value: impl Into<i64>) -> Numeric {
    Numeric::from(value.into())
}

fn scaled(value: i128, scale: u16) -> Numeric {
    Numeric::from_scaled(value, scale)
}

/// A field of a value by its name; null where it has none, as an infinite date has no month.
///
/// # Errors
/// 22023 for a name that is no field's; 0A000 for a field that values of this type have not.
pub fn extract(name: &str, value: ValueRef<'_>, settings: &Settings) -> Result<Option<Numeric>> {
    let name = name.to_lowercase();
    let told = |what: &str, state: SqlState| {
        let ty = value.ty().map_or("unknown", Type::sql_name);
        SqlError::new(state, format!("unit \"{name}\" not {what} for type {ty}"))
    };
    let field =
        Field::find(&name).ok_or_else(|| told("recognized", SqlState::INVALID_PARAMETER))?;
    let infinite = |negative: bool| {
        field.grows().then_some(if negative {
            Numeric::NEG_INFINITY
        } else {
            Numeric::INFINITY
        })
    };
    let found = match value {
        ValueRef::Date(date) if !date.is_finite() => {
            of_day(field, 0).map(|_| infinite(date == Date::NEG_INFINITY))
        }
        ValueRef::Date(date) => of_day(field, i64::from(date.0)).map(Some),
        ValueRef::Time(time) => of_time(field, time).map(Some),
        ValueRef::Timestamp(at) if !at.is_finite() => {
            of_wall(field, 0)?.map(|_| infinite(at == Timestamp::NEG_INFINITY))
        }
        ValueRef::Timestamp(at) => of_wall(field, at.0)?.map(Some),
        ValueRef::Timestamptz(at) if !at.is_finite() => {
            of_wall(field, 0)?.map(|_| infinite(at == Timestamp::NEG_INFINITY))
        }
        ValueRef::Timestamptz(at) => {
            let east = settings.time_zone.offset_at(at);
            match field {
                Field::Zone => Some(Some(whole(east))),
                Field::ZoneHour => Some(Some(whole(east / 3600))),
                Field::ZoneMinute => Some(Some(whole(east / 60 % 60))),
                // The instant's own seconds, whatever the zone.
                Field::Epoch => of_wall(field, at.0)?.map(Some),
                _ => of_wall(field, settings.time_zone.wall(at))?.map(Some),
            }
        }
        ValueRef::Interval(interval) => of_interval(field, interval).map(Some),
        _ => None,
    };
    found.ok_or_else(|| told("supported", SqlState::FEATURE_NOT_SUPPORTED))
}

/// Of a day since 2000-01-01; `None` for fields that days have not.
fn of_day(field: Field, number: i64) -> Option<Numeric> {
    let day = Day::of_number(number);
    // There is no year 0: 1 BC is -1.
    let counted = |year: i32| if year > 0 { year } else { year - 1 };
    let years = |length: i32| match day.year {
        year if year > 0 => (year + length - 1) / length,
        year => -((length - 1 - (year - 1)) / length),
    };
    Some(match field {
        Field::Day => whole(day.day),
        Field::Month => whole(day.month),
        Field::Quarter => whole((day.month - 1) / 3 + 1),
        Field::Week => whole(calendar::iso_week(number).1),
        Field::Year => whole(counted(day.year)),
        Field::Decade if day.year >= 0 => whole(day.year / 10),
        Field::Decade => whole(-((8 - (day.year - 1)) / 10)),
        Field::Century => whole(years(100)),
        Field::Millennium => whole(years(1000)),
        Field::Julian => whole(number + i64::from(EPOCH_JULIAN)),
        Field::IsoYear => whole(counted(calendar::iso_week(number).0)),
        Field::DayOfWeek => whole(calendar::weekday(number)),
        Field::IsoDayOfWeek => match calendar::weekday(number) {
            0 => whole(7),
            day => whole(day),
        },
        Field::DayOfYear => whole(calendar::day_of_year(day)),
        Field::Epoch => whole((number + i64::from(UNIX_EPOCH_DAYS)) * 86_400),
        _ => return None,
    })
}

/// Of microseconds since midnight.
fn of_clock(field: Field, micros: i64) -> Option<Numeric> {
    let in_minute = i128::from(micros % MICROS_PER_MINUTE);
    Some(match field {
        Field::Microseconds => scaled(in_minute, 0),
        Field::Milliseconds => scaled(in_minute, 3),
        Field::Second => scaled(in_minute, 6),
        Field::Minute => whole(micros / MICROS_PER_MINUTE % 60),
        Field::Hour => whole(micros / MICROS_PER_HOUR),
        _ => return None,
    })
}

fn of_time(field: Field, time: Time) -> Option<Numeric> {
    match field {
        Field::Epoch => Some(scaled(i128::from(time.0), 6)),
        field => of_clock(field, time.0),
    }
}

/// Of microseconds since 2000-01-01 00:00:00 of the clock on the wall.
fn of_wall(field: Field, micros: i64) -> Result<Option<Numeric>> {
    let (day, clock) = (
        micros.div_euclid(MICROS_PER_DAY),
        micros.rem_euclid(MICROS_PER_DAY),
    );
    Ok(match field {
        Field::Epoch => {
            let before = i128::from(UNIX_EPOCH_DAYS) * i128::from(MICROS_PER_DAY);
            Some(scaled(i128::from(micros) + before, 6))
        }
        Field::Julian => {
            let part = whole(clock).divide(&whole(MICROS_PER_DAY))?;
            Some(whole(day + i64::from(EPOCH_JULIAN)).add(&part)?)
        }
        field => of_clock(field, clock).or_else(|| of_day(field, day)),
    })
}

fn of_interval(field: Field, interval: Interval) -> Option<Numeric> {
    let Interval {
        months,
        days,
        micros,
    } = interval;
    let years = months / 12;
    Some(match field {
        Field::Day => whole(days),
        Field::Month => whole(months % 12),
        Field::Quarter => whole(months % 12 / 3 + 1),
        Field::Year => whole(years),
        Field::Decade => whole(years / 10),
        Field::Century => whole(years / 100),
        Field::Millennium => whole(years / 1000),
        Field::Epoch => {
            // Years of 365.25 days, months of 30.
            let hours =
                i128::from(years) * 8766 + i128::from(months % 12) * 720 + i128::from(days) * 24;
            let span = hours * i128::from(MICROS_PER_HOUR) + i128::from(micros);
            scaled(span, 6)
        }
        field => return of_clock(field, micros),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::input;
    use crate::types::Typmod;

    /// What PostgreSQL 15 answers with time zone Asia/Kathmandu.
    #[test]
    fn fields_are_those_of_postgresql() {
        let cases = [
            ("year", Type::Date, "2001-02-16", "2001"),
            ("quarter", Type::Date, "2001-02-16", "1"),
            ("week", Type::Date, "2005-01-01", "53"),
            ("isoyear", Type::Date, "2005-01-01", "2004"),
            ("dow", Type::Date, "2001-02-18", "0"),
            ("isodow", Type::Date, "2001-02-18", "7"),
            ("doy", Type::Date, "2001-02-16", "47"),
            ("julian", Type::Date, "2001-02-16", "2451957"),
            ("epoch", Type::Date, "1970-01-02", "86400"),
            ("century", Type::Date, "2000-12-16", "20"),
            ("century", Type::Date, "2001-02-16", "21"),
            ("century", Type::Date, "0044-03-15 BC", "-1"),
            ("year", Type::Date, "0044-03-15 BC", "-44"),
            ("decade", Type::Date, "0044-03-15 BC", "-5"),
            ("millennium", Type::Date, "2001-02-16", "3"),
            ("years", Type::Date, "infinity", "Infinity"),
            ("month", Type::Date, "-infinity", "NULL"),
            (
                "second",
                Type::Timestamp,
                "2001-02-16 20:38:40.12",
                "40.120000",
            ),
            (
                "milliseconds",
                Type::Timestamp,
                "2001-02-16 20:38:40.12",
                "40120.000",
            ),
            ("microseconds", Type::Time, "17:12:28.5", "28500000"),
            ("hour", Type::Timestamp, "2001-02-16 20:38:40", "20"),
            ("minute", Type::Timestamp, "1999-02-16 20:38:40", "38"),
            (
                "epoch",
                Type::Timestamp,
                "2001-02-16 20:38:40.12",
                "982355920.120000",
            ),
            (
                "julian",
                Type::Timestamp,
                "2006-01-01 12:00",
                "2453737.50000000000000000000",
            ),
            (
                "timezone",
                Type::Timestamptz,
                "2001-02-16 20:38:40+00",
                "20700",
            ),
            (
                "timezone_hour",
                Type::Timestamptz,
                "2001-02-16 20:38:40+00",
                "5",
            ),
            (
                "timezone_minute",
                Type::Timestamptz,
                "2001-02-16 20:38:40+00",
                "45",
            ),
            ("hour", Type::Timestamptz, "2001-02-16 20:38:40+00", "2"),
            (
                "epoch",
                Type::Timestamptz,
                "2001-02-16 20:38:40+00",
                "982355920.000000",
            ),
            ("epoch", Type::Interval, "5 days 3 hours", "442800.000000"),
            ("epoch", Type::Interval, "1 year", "31557600.000000"),
            ("month", Type::Interval, "2 years 13 months", "1"),
            ("year", Type::Interval, "-13 months", "-1"),
            ("hour", Type::Interval, "100:00:00", "100"),
            ("month", Type::Time, "10:00", "0A000"),
            ("hour", Type::Date, "2001-02-16", "0A000"),
            ("timezone", Type::Timestamp, "2001-02-16 20:38:40", "0A000"),
            ("fortnight", Type::Date, "2001-02-16", "22023"),
        ];
        let settings = Settings {
            time_zone: super::super::TimeZone::named("Asia/Kathmandu").unwrap(),
            ..Settings::default()
        };
        for (field, ty, text, expected) in cases {
            let value = input(ty, Typmod::NONE, text, &settings).unwrap();
            let found = match extract(field, value.as_ref(), &settings) {
                Ok(None) => "NULL".to_owned(),
                Ok(Some(number)) => number.to_string(),
                Err(error) => error.state().as_str().to_owned(),
            };
            assert_eq!(found, expected, "{field} of {ty:?} {text}");
        }
    }
}
