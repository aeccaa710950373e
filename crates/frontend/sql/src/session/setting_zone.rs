//! The setting TimeZone: a zone by its name, by hours east of Greenwich, or by an interval.

use super::setting_value::invalid;
use crate::error::{Result, SqlError};
use vellum_row::datetime::TimeZone;
use vellum_row::{IntervalFields, Typmod};

/// Offsets from Greenwich are less than a week.
const HOURS_MAX: f64 = 24.0 * 7.0;

/// The zone that a value of the setting says.
///
/// # Errors
/// `22023`.
pub(super) fn zone_of(value: &str) -> Result<TimeZone> {
    let trimmed = value.trim();
    let wrong = || invalid("timezone", value);
    // What SET TIME ZONE INTERVAL says, as it is written.
    let word = trimmed.get(..8);
    if word.is_some_and(|word| word.eq_ignore_ascii_case("interval")) {
        return of_seconds(f64::from(seconds_of(trimmed)?), &wrong);
    }
    if let Ok(hours) = trimmed.parse::<f64>() {
        return of_seconds((hours * 3600.0).trunc(), &wrong);
    }
    let zone = TimeZone::named(value).ok_or_else(wrong)?;
    if !zone.has_whole_minutes() {
        let message = format!("time zone \"{value}\" appears to use leap seconds");
        return Err(
            SqlError::new(crate::sqlstate::INVALID_PARAMETER_VALUE, message)
                .with_detail("PostgreSQL does not support leap seconds."),
        );
    }
    Ok(zone)
}

/// Seconds of an interval that is written out.
fn seconds_of(value: &str) -> Result<i32> {
    let mut quotes = value.splitn(3, '\'');
    let text = quotes.nth(1).unwrap_or_default();
    let fields = quotes.next().unwrap_or_default().trim();
    let fields = match &*fields.to_uppercase() {
        "" => None,
        "HOUR" => Some(IntervalFields::HOUR),
        "MINUTE" => Some(IntervalFields::MINUTE),
        "HOUR TO MINUTE" => Some(IntervalFields::HOUR_TO_MINUTE),
        _ => {
            let text = "time zone interval must be HOUR or HOUR TO MINUTE";
            return Err(SqlError::syntax(text));
        }
    };
    let read = vellum_row::input(
        vellum_row::Type::Interval,
        Typmod::of_interval(fields, None)?,
        text,
        &vellum_row::Settings::default(),
    )?;
    let vellum_row::Value::Interval(interval) = read else {
        return Err(SqlError::internal("no interval"));
    };
    let what = match (interval.months, interval.days) {
        (0, 0) => return Ok(i32::try_from(interval.micros / 1_000_000).unwrap_or(i32::MAX)),
        (0, _) => "days",
        _ => "months",
    };
    let detail = format!("Cannot specify {what} in time zone interval.");
    Err(invalid("timezone", value).with_detail(detail))
}

/// The zone that is so many seconds east of Greenwich. Its name is a POSIX rule, whose sign is the other way round.
fn of_seconds(seconds: f64, wrong: &dyn Fn() -> SqlError) -> Result<TimeZone> {
    let out_of_range = || wrong().with_detail("UTC timezone offset is out of range.");
    if seconds.is_nan() || seconds.abs() >= HOURS_MAX * 3600.0 {
        return Err(out_of_range());
    }
    let far = seconds.abs() as u32;
    let (hours, minutes, rest) = (far / 3600, far / 60 % 60, far % 60);
    let mut name = format!("{hours:02}");
    if minutes > 0 || rest > 0 {
        name.push_str(&format!(":{minutes:02}"));
    }
    if rest > 0 {
        name.push_str(&format!(":{rest:02}"));
    }
    let (own, other) = if seconds < 0.0 {
        ('-', '+')
    } else {
        ('+', '-')
    };
    TimeZone::named(&format!("<{own}{name}>{other}{name}")).ok_or_else(out_of_range)
}
