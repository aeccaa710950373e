//! Functions of dates, times, instants and intervals, and `to_char`.

use super::{Arguments, Entry, fault, invalid, lenient, numeral, strict, template, volatile};
use crate::error::{Result, SqlError};
use vellum_row::datetime::{
    Date, Day, Interval, MICROS_PER_DAY, MICROS_PER_SECOND, Time, TimeZone, Timestamp,
};
use vellum_row::{CastContext, Type, Typmod, Value, ValueRef, cast};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    volatile(274, "timeofday", "", "text", |a| {
        shown_instant(a, crate::session::clock_time(), "Dy Mon DD HH24:MI:SS.US YYYY TZ")
    }),
    strict(2058, "age", "timestamp timestamp", "interval", |a| Ok(Value::Interval(a.instant(0).age(a.instant(1))?))),
    strict(1199, "age", "timestamptz timestamptz", "interval", |a| {
        Ok(Value::Interval(wall(a, a.instant(0)).age(wall(a, a.instant(1)))?))
    }),
    strict(2059, "age", "timestamp", "interval", |a| Ok(Value::Interval(today(a).age(a.instant(0))?))),
    strict(1386, "age", "timestamptz", "interval", |a| Ok(Value::Interval(today(a).age(wall(a, a.instant(0)))?))),
    strict(2020, "date_trunc", "text timestamp", "timestamp", |a| Ok(Value::Timestamp(a.instant(1).truncate(a.text(0), None)?))),
    strict(1217, "date_trunc", "text timestamptz", "timestamptz", |a| {
        Ok(Value::Timestamptz(a.instant(1).truncate(a.text(0), Some(&a.settings.time_zone))?))
    }),
    strict(1284, "date_trunc", "text timestamptz text", "timestamptz", |a| {
        let zone = TimeZone::find(a.text(2))?;
        Ok(Value::Timestamptz(a.instant(1).truncate(a.text(0), Some(&zone))?))
    }),
    strict(1218, "date_trunc", "text interval", "interval", |a| Ok(Value::Interval(a.interval(1).truncate(a.text(0))?))),
    strict(6177, "date_bin", "interval timestamp timestamp", "timestamp", |a| Ok(Value::Timestamp(a.instant(1).bin(a.interval(0), a.instant(2))?))),
    strict(6178, "date_bin", "interval timestamptz timestamptz", "timestamptz", |a| Ok(Value::Timestamptz(a.instant(1).bin(a.interval(0), a.instant(2))?))),
    strict(1373, "isfinite", "date", "bool", |a| Ok(Value::Bool(a.date(0).is_finite()))),
    strict(2048, "isfinite", "timestamp", "bool", |a| Ok(Value::Bool(a.instant(0).is_finite()))),
    strict(1389, "isfinite", "timestamptz", "bool", |a| Ok(Value::Bool(a.instant(0).is_finite()))),
    strict(1390, "isfinite", "interval", "bool", |_| Ok(Value::Bool(true))),
    strict(1295, "justify_days", "interval", "interval", |a| Ok(Value::Interval(a.interval(0).justify(false, true)?))),
    strict(1175, "justify_hours", "interval", "interval", |a| Ok(Value::Interval(a.interval(0).justify(true, false)?))),
    strict(2711, "justify_interval", "interval", "interval", |a| Ok(Value::Interval(a.interval(0).justify(true, true)?))),
    strict(3846, "make_date", "int4 int4 int4", "date", |a| Ok(Value::Date(date_of(a.int(0), a.int(1), a.int(2))?))),
    strict(3847, "make_time", "int4 int4 float8", "time", |a| Ok(Value::Time(time_of(a, 0)?))),
    strict(3461, "make_timestamp", "int4 int4 int4 int4 int4 float8", "timestamp", |a| Ok(Value::Timestamp(timestamp_of(a)?))),
    strict(3462, "make_timestamptz", "int4 int4 int4 int4 int4 float8", "timestamptz", |a| {
        Ok(Value::Timestamptz(timestamp_of(a)?.to_instant(&a.settings.time_zone)?))
    }),
    strict(3463, "make_timestamptz", "int4 int4 int4 int4 int4 float8 text", "timestamptz", |a| {
        Ok(Value::Timestamptz(timestamp_of(a)?.to_instant(&TimeZone::find(a.text(6))?)?))
    }),
    strict(0, "make_interval", "", "interval", make_interval),
    strict(0, "make_interval", "int4", "interval", make_interval),
    strict(0, "make_interval", "int4 int4", "interval", make_interval),
    strict(0, "make_interval", "int4 int4 int4", "interval", make_interval),
    strict(0, "make_interval", "int4 int4 int4 int4", "interval", make_interval),
    strict(0, "make_interval", "int4 int4 int4 int4 int4", "interval", make_interval),
    strict(0, "make_interval", "int4 int4 int4 int4 int4 int4", "interval", make_interval),
    strict(3464, "make_interval", "int4 int4 int4 int4 int4 int4 float8", "interval", make_interval),
    strict(2069, "timezone", "text timestamp", "timestamptz", |a| {
        Ok(Value::Timestamptz(a.instant(1).to_instant(&TimeZone::find(a.text(0))?)?))
    }),
    strict(1159, "timezone", "text timestamptz", "timestamp", |a| {
        shown_on_wall(&TimeZone::find(a.text(0))?, a.instant(1))
    }),
    strict(2070, "timezone", "interval timestamp", "timestamptz", |a| {
        Ok(Value::Timestamptz(a.instant(1).to_instant(&zone_of(a.interval(0))?)?))
    }),
    strict(1026, "timezone", "interval timestamptz", "timestamp", |a| {
        shown_on_wall(&zone_of(a.interval(0))?, a.instant(1))
    }),
    strict(1158, "to_timestamp", "float8", "timestamptz", of_epoch),
    lenient(1304, "overlaps", "timestamptz timestamptz timestamptz timestamptz", "bool", overlaps),
    lenient(1305, "overlaps", "timestamptz interval timestamptz interval", "bool", overlaps),
    lenient(1306, "overlaps", "timestamptz timestamptz timestamptz interval", "bool", overlaps),
    lenient(1307, "overlaps", "timestamptz interval timestamptz timestamptz", "bool", overlaps),
    lenient(2041, "overlaps", "timestamp timestamp timestamp timestamp", "bool", overlaps),
    lenient(2042, "overlaps", "timestamp interval timestamp interval", "bool", overlaps),
    lenient(2043, "overlaps", "timestamp timestamp timestamp interval", "bool", overlaps),
    lenient(2044, "overlaps", "timestamp interval timestamp timestamp", "bool", overlaps),
    lenient(1308, "overlaps", "time time time time", "bool", overlaps),
    strict(2049, "to_char", "timestamp text", "text", to_char),
    strict(1770, "to_char", "timestamptz text", "text", to_char),
    strict(1768, "to_char", "interval text", "text", to_char),
    strict(1772, "to_char", "numeric text", "text", numeral::to_char),
    strict(1773, "to_char", "int4 text", "text", numeral::to_char),
    strict(1774, "to_char", "int8 text", "text", numeral::to_char),
    strict(1775, "to_char", "float4 text", "text", numeral::to_char),
    strict(1776, "to_char", "float8 text", "text", numeral::to_char),
    strict(2029, "date", "timestamp", "date", |a| cast_to(a, Type::Date)),
    strict(1178, "date", "timestamptz", "date", |a| cast_to(a, Type::Date)),
];

fn cast_to(a: &Arguments<'_>, ty: Type) -> Result<Value> {
    debug_assert!(a.at(0).ty().is_some_and(|own| {
        vellum_row::cast_between(own, ty).is_some_and(|least| least <= CastContext::Explicit)
    }));
    Ok(cast(a.at(0), ty, Typmod::NONE, true, a.settings)?)
}

/// What a clock in the session's zone shows.
fn wall(a: &Arguments<'_>, at: Timestamp) -> Timestamp {
    on_wall(&a.settings.time_zone, at)
}

/// The same as a value.
///
/// # Errors
/// `22008` for one out of range.
fn shown_on_wall(zone: &TimeZone, at: Timestamp) -> Result<Value> {
    let shown = on_wall(zone, at);
    if shown.is_finite() && Timestamp::checked(shown.0).is_none() {
        return Err(fault("22008", "timestamp out of range"));
    }
    Ok(Value::Timestamp(shown))
}

fn on_wall(zone: &TimeZone, at: Timestamp) -> Timestamp {
    if at.is_finite() {
        Timestamp(zone.wall(at))
    } else {
        at
    }
}

/// Midnight of the day on which the transaction began.
fn today(a: &Arguments<'_>) -> Timestamp {
    let now = wall(a, a.settings.now);
    Timestamp(now.0 - now.0.rem_euclid(MICROS_PER_DAY))
}

fn zone_of(interval: Interval) -> Result<TimeZone> {
    if interval.months != 0 || interval.days != 0 {
        let text = "interval time zone must not include months or days";
        return Err(invalid(text));
    }
    Ok(TimeZone::fixed(
        (interval.micros / MICROS_PER_SECOND) as i32,
    ))
}

#[cold]
fn out_of_range(text: impl Into<String>) -> SqlError {
    fault("22008", text)
}

fn date_of(year: i32, month: i32, day: i32) -> Result<Date> {
    let wrong = || {
        let era = if year < 0 { " BC" } else { "" };
        let year = year.unsigned_abs();
        out_of_range(format!(
            "date field value out of range: {year}-{month:02}-{day:02}{era}"
        ))
    };
    // Years before the first are counted from -1 back.
    let counted = if year < 0 {
        year.checked_add(1)
    } else {
        Some(year).filter(|year| *year != 0)
    };
    let found = Day {
        year: counted.ok_or_else(wrong)?,
        month,
        day,
    };
    if !found.is_real() {
        return Err(wrong());
    }
    Ok(Date::of_day(found)?)
}

fn time_of(a: &Arguments<'_>, at: usize) -> Result<Time> {
    let (hour, minute, second) = (a.int(at), a.int(at + 1), a.float(at + 2));
    let sound =
        (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second)
            || hour == 24 && minute == 0 && second == 0.0;
    if !sound {
        let shown = format!("{hour}:{minute:02}:{second:02}");
        return Err(out_of_range(format!(
            "time field value out of range: {shown}"
        )));
    }
    let micros = (second * 1e6).round_ties_even() as i64;
    Ok(Time(
        (i64::from(hour) * 60 + i64::from(minute)) * 60 * MICROS_PER_SECOND + micros,
    ))
}

fn timestamp_of(a: &Arguments<'_>) -> Result<Timestamp> {
    let date = date_of(a.int(0), a.int(1), a.int(2))?;
    let midnight = date.to_timestamp()?;
    let found = midnight.0.checked_add(time_of(a, 3)?.0);
    let found = found.and_then(Timestamp::checked);
    found.ok_or_else(|| out_of_range("timestamp out of range"))
}

fn make_interval(a: &Arguments<'_>) -> Result<Value> {
    let wrong = || out_of_range("interval out of range");
    let months = i64::from(a.int(0)) * 12 + i64::from(a.int(1));
    let days = i64::from(a.int(2)) * 7 + i64::from(a.int(3));
    let seconds = a.float(6);
    if !seconds.is_finite() {
        return Err(wrong());
    }
    let micros = (i64::from(a.int(4)) * 60 + i64::from(a.int(5))) * 60 * MICROS_PER_SECOND;
    let more = (seconds * 1e6).round_ties_even();
    Ok(Value::Interval(Interval {
        months: i32::try_from(months).map_err(|_| wrong())?,
        days: i32::try_from(days).map_err(|_| wrong())?,
        micros: micros.checked_add(more as i64).ok_or_else(wrong)?,
    }))
}

fn of_epoch(a: &Arguments<'_>) -> Result<Value> {
    let seconds = a.float(0);
    let wrong = || out_of_range(format!("timestamp out of range: \"{seconds}\""));
    if seconds.is_nan() {
        return Err(out_of_range("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(Value::Timestamptz(if seconds > 0.0 {
            Timestamp::INFINITY
        } else {
            Timestamp::NEG_INFINITY
        }));
    }
    if !(-210_866_803_200.0..9_224_318_016_000.0).contains(&seconds) {
        return Err(wrong());
    }
    let epoch = 946_684_800.0;
    Ok(Value::Timestamptz(Timestamp(
        ((seconds - epoch) * 1e6).round_ties_even() as i64,
    )))
}

/// Whether two spans, each from a time to another or of a length, have a time in common.
fn overlaps(a: &Arguments<'_>) -> Result<Value> {
    let end = |start: usize| -> Result<Option<i64>> {
        Ok(match (a.at(start), a.at(start + 1)) {
            (_, ValueRef::Timestamp(at) | ValueRef::Timestamptz(at)) => Some(at.0),
            (_, ValueRef::Time(time)) => Some(time.0),
            (ValueRef::Timestamp(at), ValueRef::Interval(length)) => Some(at.plus(length, None)?.0),
            (ValueRef::Timestamptz(at), ValueRef::Interval(length)) => {
                Some(at.plus(length, Some(&a.settings.time_zone))?.0)
            }
            _ => None,
        })
    };
    let start = |number: usize| match a.at(number) {
        ValueRef::Timestamp(at) | ValueRef::Timestamptz(at) => Some(at.0),
        ValueRef::Time(time) => Some(time.0),
        _ => None,
    };
    // The known end of a span that has just one comes first; the others are put in order.
    let ordered = |from: Option<i64>, to: Option<i64>| match (from, to) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some((one, None)),
        (Some(from), Some(to)) => Some((from.min(to), Some(from.max(to)))),
    };
    let first = ordered(start(0), end(0)?);
    let second = ordered(start(2), end(2)?);
    let (Some(first), Some(second)) = (first, second) else {
        return Ok(Value::Null);
    };
    let ((from, to), (other, other_to)) = (first, second);
    let holds = |early_to: Option<i64>, late: i64, late_to: Option<i64>| match early_to {
        None => Value::Null,
        Some(to) if late < to => Value::Bool(true),
        Some(_) if late_to.is_none() => Value::Null,
        Some(_) => Value::Bool(false),
    };
    Ok(match from.cmp(&other) {
        std::cmp::Ordering::Greater => holds(other_to, from, to),
        std::cmp::Ordering::Less => holds(to, other, other_to),
        std::cmp::Ordering::Equal if to.is_none() || other_to.is_none() => Value::Null,
        std::cmp::Ordering::Equal => Value::Bool(true),
    })
}

/// An instant in the session's zone, by a template of `to_char`.
fn shown_instant(a: &Arguments<'_>, at: Timestamp, form: &str) -> Result<Value> {
    let zone = a.settings.time_zone.offset_info_at(at);
    let clock = template::Clock::of_wall(wall(a, at), Some(zone));
    template::shown(form, &clock).map(Value::text)
}

fn to_char(a: &Arguments<'_>) -> Result<Value> {
    if a.text(1).is_empty() {
        return Ok(Value::text(""));
    }
    let clock = match a.at(0) {
        ValueRef::Interval(interval) => template::Clock::of_interval(interval),
        ValueRef::Timestamptz(at) if at.is_finite() => {
            let zone = a.settings.time_zone.offset_info_at(at);
            template::Clock::of_wall(wall(a, at), Some(zone))
        }
        ValueRef::Timestamp(at) if at.is_finite() => template::Clock::of_wall(at, None),
        _ => return Ok(Value::Null),
    };
    template::shown(a.text(1), &clock).map(Value::text)
}
