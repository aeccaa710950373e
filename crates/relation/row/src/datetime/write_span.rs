//! Intervals as text, in the four styles.

use super::write::{write_padded, write_seconds};
use super::{Interval, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::settings::IntervalStyle;

/// An interval's fields, each with its own sign.
#[derive(Clone, Copy)]
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    /// Seconds in microseconds.
    second: i64,
}

impl Fields {
    fn has_time(&self) -> bool {
        self.hour != 0 || self.minute != 0 || self.second != 0
    }

    fn all(&self) -> [i64; 6] {
        [
            self.year,
            self.month,
            self.day,
            self.hour,
            self.minute,
            self.second,
        ]
    }
}

fn push_number(value: i64, out: &mut String) {
    crate::integer::write_i64(value, out);
}

/// `04:05:06.7`, without sign.
fn push_clock(fields: &Fields, hour_digits: usize, out: &mut String) {
    write_padded(fields.hour.abs(), hour_digits, out);
    out.push(':');
    write_padded(fields.minute.abs(), 2, out);
    out.push(':');
    write_seconds(fields.second.abs(), 2, out);
}

impl Interval {
    fn fields(self) -> Fields {
        Fields {
            year: i64::from(self.months / 12),
            month: i64::from(self.months % 12),
            day: i64::from(self.days),
            hour: self.micros / MICROS_PER_HOUR,
            minute: self.micros / MICROS_PER_MINUTE % 60,
            second: self.micros % MICROS_PER_MINUTE,
        }
    }

    /// Appends the interval in the session's style.
    pub fn write(self, style: IntervalStyle, out: &mut String) {
        let fields = self.fields();
        match style {
            IntervalStyle::Postgres => write_postgres(&fields, out),
            IntervalStyle::PostgresVerbose => write_verbose(&fields, out),
            IntervalStyle::SqlStandard => write_sql(fields, out),
            IntervalStyle::Iso8601 => write_iso(&fields, out),
        }
    }
}

fn write_postgres(fields: &Fields, out: &mut String) {
    let (mut first, mut after_negative) = (true, false);
    for (value, name) in [
        (fields.year, "year"),
        (fields.month, "mon"),
        (fields.day, "day"),
    ] {
        if value == 0 {
            continue;
        }
        if !first {
            out.push(' ');
        }
        if after_negative && value > 0 {
            out.push('+');
        }
        push_number(value, out);
        out.push(' ');
        out.push_str(name);
        if value != 1 {
            out.push('s');
        }
        (first, after_negative) = (false, value < 0);
    }
    if first || fields.has_time() {
        if !first {
            out.push(' ');
        }
        if fields.hour < 0 || fields.minute < 0 || fields.second < 0 {
            out.push('-');
        } else if after_negative {
            out.push('+');
        }
        push_clock(fields, 2, out);
    }
}

fn write_verbose(fields: &Fields, out: &mut String) {
    out.push('@');
    let (mut first, mut ago) = (true, false);
    let units = [
        (fields.year, "year"),
        (fields.month, "mon"),
        (fields.day, "day"),
        (fields.hour, "hour"),
        (fields.minute, "min"),
    ];
    for (value, name) in units {
        if value == 0 {
            continue;
        }
        // The first one's sign is that of all; the others are relative to it.
        if first {
            ago = value < 0;
        }
        let value = if ago { -value } else { value };
        out.push(' ');
        push_number(value, out);
        out.push(' ');
        out.push_str(name);
        if value != 1 {
            out.push('s');
        }
        first = false;
    }
    if fields.second != 0 {
        out.push(' ');
        if fields.second < 0 {
            if first {
                ago = true;
            } else if !ago {
                out.push('-');
            }
        } else if ago {
            out.push('-');
        }
        write_seconds(fields.second.abs(), 1, out);
        out.push_str(if fields.second.abs() == MICROS_PER_SECOND {
            " sec"
        } else {
            " secs"
        });
        first = false;
    }
    if first {
        out.push_str(" 0");
    }
    if ago {
        out.push_str(" ago");
    }
}

fn write_sql(mut fields: Fields, out: &mut String) {
    let negative = fields.all().iter().any(|value| *value < 0);
    let positive = fields.all().iter().any(|value| *value > 0);
    let year_month = fields.year != 0 || fields.month != 0;
    let day_time = fields.day != 0 || fields.has_time();
    if !negative && !positive {
        out.push('0');
        return;
    }
    if (negative && positive) || (year_month && day_time) {
        // Not an interval of SQL: every part gets its sign.
        let sign = |below: bool| if below { '-' } else { '+' };
        out.push(sign(fields.year < 0 || fields.month < 0));
        push_number(fields.year.abs(), out);
        out.push('-');
        push_number(fields.month.abs(), out);
        out.push(' ');
        out.push(sign(fields.day < 0));
        push_number(fields.day.abs(), out);
        out.push(' ');
        out.push(sign(
            fields.hour < 0 || fields.minute < 0 || fields.second < 0,
        ));
        push_clock(&fields, 1, out);
        return;
    }
    if negative {
        out.push('-');
        fields.year = -fields.year;
        fields.month = -fields.month;
        fields.day = -fields.day;
    }
    if year_month {
        push_number(fields.year, out);
        out.push('-');
        push_number(fields.month, out);
    } else {
        if fields.day != 0 {
            push_number(fields.day, out);
            out.push(' ');
        }
        push_clock(&fields, 1, out);
    }
}

fn write_iso(fields: &Fields, out: &mut String) {
    if fields.all().iter().all(|value| *value == 0) {
        out.push_str("PT0S");
        return;
    }
    out.push('P');
    let part = |value: i64, mark: char, out: &mut String| {
        if value != 0 {
            push_number(value, out);
            out.push(mark);
        }
    };
    part(fields.year, 'Y', out);
    part(fields.month, 'M', out);
    part(fields.day, 'D', out);
    if fields.has_time() {
        out.push('T');
        part(fields.hour, 'H', out);
        part(fields.minute, 'M', out);
        if fields.second != 0 {
            if fields.second < 0 {
                out.push('-');
            }
            write_seconds(fields.second.abs(), 1, out);
            out.push('S');
        }
    }
}
