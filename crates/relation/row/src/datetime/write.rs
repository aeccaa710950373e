//! Dates, times and instants as text, in the four styles.

use super::calendar::weekday;
use super::{
    Date, Day, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, Offset, Time,
    Timestamp,
};
use crate::settings::{DateOrder, DateStyle, Settings};

pub(super) const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
pub(super) const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends a number with at least `width` digits.
pub(super) fn write_padded(value: i64, width: usize, out: &mut String) {
    debug_assert!(value >= 0);
    let digit = |place: i64| char::from(b'0' + (place % 10) as u8);
    match width {
        2 if value < 100 => {
            out.push(digit(value / 10));
            out.push(digit(value));
        }
        4 if value < 10_000 => {
            for unit in [1000, 100, 10, 1] {
                out.push(digit(value / unit));
            }
        }
        _ => {
            let digits = value.max(1).ilog10() as usize + 1;
            for _ in digits..width {
                out.push('0');
            }
            crate::integer::write_u64(value.unsigned_abs(), out);
        }
    }
}

/// Appends seconds with their fraction, without zeros at its end.
pub(super) fn write_seconds(micros: i64, width: usize, out: &mut String) {
    debug_assert!(micros >= 0);
    write_padded(micros / MICROS_PER_SECOND, width, out);
    let fraction = micros % MICROS_PER_SECOND;
    if fraction > 0 {
        out.push('.');
        let (mut rest, mut unit) = (fraction, 100_000);
        while rest > 0 {
            out.push(char::from(b'0' + (rest / unit) as u8));
            (rest, unit) = (rest % unit, unit / 10);
        }
    }
}

/// Appends `+hh[:mm[:ss]]`.
pub(super) fn write_zone(seconds_east: i32, with_minutes: bool, out: &mut String) {
    out.push(if seconds_east < 0 { '-' } else { '+' });
    let seconds = i64::from(seconds_east.unsigned_abs());
    write_padded(seconds / 3600, 2, out);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    if minutes != 0 || seconds != 0 || with_minutes {
        out.push(':');
        write_padded(minutes, 2, out);
    }
    if seconds != 0 {
        out.push(':');
        write_padded(seconds, 2, out);
    }
}

fn write_clock(micros: i64, out: &mut String) {
    write_padded(micros / MICROS_PER_HOUR, 2, out);
    out.push(':');
    write_padded(micros / MICROS_PER_MINUTE % 60, 2, out);
    out.push(':');
    write_seconds(micros % MICROS_PER_MINUTE, 2, out);
}

fn year_of_era(day: Day) -> i64 {
    if day.year > 0 {
        i64::from(day.year)
    } else {
        1 - i64::from(day.year)
    }
}

fn write_era(day: Day, out: &mut String) {
    if day.year <= 0 {
        out.push_str(" BC");
    }
}

/// The numbers of a date in the order of a style, with its separator.
fn write_numbers(day: Day, settings: &Settings, separator: char, out: &mut String) {
    let (month, number) = (i64::from(day.month), i64::from(day.day));
    let month_first =
        settings.date_style != DateStyle::German && settings.date_order != DateOrder::Dmy;
    let (first, second) = if month_first {
        (month, number)
    } else {
        (number, month)
    };
    write_padded(first, 2, out);
    out.push(separator);
    write_padded(second, 2, out);
    out.push(separator);
    write_padded(year_of_era(day), 4, out);
}

fn write_iso(day: Day, out: &mut String) {
    write_padded(year_of_era(day), 4, out);
    out.push('-');
    write_padded(i64::from(day.month), 2, out);
    out.push('-');
    write_padded(i64::from(day.day), 2, out);
}

impl Date {
    /// Appends the date in the session's style.
    pub fn write(self, settings: &Settings, out: &mut String) {
        match self {
            Date::INFINITY => return out.push_str("infinity"),
            Date::NEG_INFINITY => return out.push_str("-infinity"),
            Date(_) => {}
        }
        let day = self.day();
        match settings.date_style {
            DateStyle::Iso => write_iso(day, out),
            DateStyle::Sql => write_numbers(day, settings, '/', out),
            DateStyle::Postgres => write_numbers(day, settings, '-', out),
            DateStyle::German => write_numbers(day, settings, '.', out),
        }
        write_era(day, out);
    }
}

impl Time {
    /// Appends the time: `04:05:06.789`.
    pub fn write(self, out: &mut String) {
        write_clock(self.0, out);
    }
}

impl Timestamp {
    /// Appends a `timestamp` in the session's style.
    pub fn write(self, settings: &Settings, out: &mut String) {
        self.write_wall(self.0, None, settings, out);
    }

    /// Appends a `timestamptz` in the session's style and zone.
    pub fn write_with_zone(self, settings: &Settings, out: &mut String) {
        if !self.is_finite() {
            return self.write(settings, out);
        }
        let offset = if settings.date_style == DateStyle::Iso {
            Offset {
                seconds: settings.time_zone.offset_at(self),
                abbreviation: None,
                is_dst: false,
            }
        } else {
            settings.time_zone.offset_info_at(self)
        };
        let wall = self
            .0
            .saturating_add(i64::from(offset.seconds) * MICROS_PER_SECOND);
        self.write_wall(wall, Some(&offset), settings, out);
    }

    fn write_wall(self, wall: i64, offset: Option<&Offset>, settings: &Settings, out: &mut String) {
        match self {
            Timestamp::INFINITY => return out.push_str("infinity"),
            Timestamp::NEG_INFINITY => return out.push_str("-infinity"),
            Timestamp(_) => {}
        }
        let number = wall.div_euclid(MICROS_PER_DAY);
        let micros = wall.rem_euclid(MICROS_PER_DAY);
        let day = Day::of_number(number);
        let zone_name = |gap: &str, out: &mut String| match offset {
            Some(Offset {
                abbreviation: Some(name),
                ..
            }) => {
                out.push(' ');
                out.push_str(name);
            }
            Some(offset) => {
                out.push_str(gap);
                write_zone(offset.seconds, false, out);
            }
            None => {}
        };
        match settings.date_style {
            DateStyle::Iso => {
                write_iso(day, out);
                out.push(' ');
                write_clock(micros, out);
                if let Some(offset) = offset {
                    write_zone(offset.seconds, false, out);
                }
            }
            DateStyle::Sql | DateStyle::German => {
                let separator = if settings.date_style == DateStyle::Sql {
                    '/'
                } else {
                    '.'
                };
                write_numbers(day, settings, separator, out);
                out.push(' ');
                write_clock(micros, out);
                zone_name("", out);
            }
            DateStyle::Postgres => {
                out.push_str(WEEKDAYS[weekday(number) as usize]);
                out.push(' ');
                let month = MONTHS[day.month as usize - 1];
                if settings.date_order == DateOrder::Dmy {
                    write_padded(i64::from(day.day), 2, out);
                    out.push(' ');
                    out.push_str(month);
                } else {
                    out.push_str(month);
                    out.push(' ');
                    write_padded(i64::from(day.day), 2, out);
                }
                out.push(' ');
                write_clock(micros, out);
                out.push(' ');
                write_padded(year_of_era(day), 4, out);
                // A space, lest the sign of the zone be read as part of the year.
                zone_name(" ", out);
            }
        }
        write_era(day, out);
    }
}
