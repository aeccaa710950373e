//! `to_date`, `to_timestamp` and `to_number`: what is read by a pattern.

use super::template::{Case, DAYS, MONTHS, Node, ROMAN, nodes};
use super::{Arguments, Entry, fault, numeral, strict};
use crate::error::{Result, SqlError};
use vellum_row::Value;
use vellum_row::datetime::{
    Date, Day, MICROS_PER_DAY, MICROS_PER_SECOND, Timestamp, calendar, calendar::weekday,
};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(1780, "to_date", "text text", "date", to_date),
    strict(1778, "to_timestamp", "text text", "timestamptz", to_timestamp),
    strict(1777, "to_number", "text text", "numeric", |a| {
        if a.text(1).is_empty() { Ok(Value::Null) } else { numeral::to_number(a) }
    }),
];

/// How the days of a year are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Convention {
    Gregorian,
    IsoWeek,
}

/// The convention that a field belongs to.
fn convention(field: &str) -> Option<Convention> {
    Some(match field {
        "IYYY" | "IYY" | "IY" | "I" | "IW" | "ID" | "IDDD" => Convention::IsoWeek,
        "Y,YYY" | "YYYY" | "YYY" | "YY" | "Y" | "MM" | "MONTH" | "MON" | "RM" | "DDD" | "DD"
        | "D" | "WW" | "W" => Convention::Gregorian,
        _ => return None,
    })
}

/// The fields that were read. What is 0 counts as not said, as in PostgreSQL.
#[derive(Default, Debug)]
struct Fields {
    convention: Option<Convention>,
    year: i32,
    century: i32,
    /// Digits of a year that was cut short.
    short_year: bool,
    /// 1 for BC.
    before_christ: i32,
    month: i32,
    day: i32,
    /// Of the year, in its convention.
    year_day: i32,
    /// Of the year, in its convention.
    week: i32,
    month_week: i32,
    /// 1 for Sunday.
    week_day: i32,
    julian: i32,
    hour: i32,
    half_day_clock: bool,
    /// 1 for PM.
    afternoon: i32,
    minute: i32,
    second: i32,
    seconds_of_day: i32,
    millis: i32,
    micros: i32,
    /// Digits of a second that the result is rounded to, if `FF` says so.
    precision: Option<usize>,
    /// -1 for west of Greenwich, 1 for east; 0 if no zone was read.
    zone_sign: i32,
    zone_hours: i32,
    zone_minutes: i32,
}

/// Sets what a field says.
///
/// # Errors
/// `22007` if another value was set before.
fn set(place: &mut i32, value: i32, field: &str) -> Result<()> {
    if *place != 0 && *place != value {
        let text = format!("conflicting values for \"{field}\" field in formatting string");
        let detail = "This value contradicts a previous setting for the same field type.";
        return Err(bad(text).with_detail(detail));
    }
    *place = value;
    Ok(())
}

struct Reader<'t> {
    rest: &'t str,
    /// The sign in front of the rest.
    before: Option<char>,
    /// How many blanks and separators more than the pattern has stood in front of the rest.
    extra: i32,
}

#[cold]
fn bad(text: String) -> SqlError {
    fault("22007", text)
}

impl Reader<'_> {
    /// A number of so many digits; of as many as there are, if nothing but a separator follows.
    fn number(&mut self, field: &str, width: usize, open: bool) -> Result<i32> {
        self.rest = self.rest.trim_start();
        let rest = self.rest;
        let sign = usize::from(rest.starts_with(['+', '-']) && open);
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let wanted = if open { digits } else { digits.min(width) };
        let shown: String = rest.chars().take(width).collect();
        if wanted == 0 {
            if rest.is_empty() {
                return Err(bad(format!(
                    "source string too short for \"{field}\" formatting field"
                ))
                .with_detail(format!(
                    "Field requires {width} characters, but only 0 remain."
                )));
            }
            return Err(bad(format!("invalid value \"{shown}\" for \"{field}\""))
                .with_detail("Value must be an integer."));
        }
        if wanted < width && !open {
            if rest.len() < width {
                return Err(bad(format!(
                    "source string too short for \"{field}\" formatting field"
                ))
                .with_detail(format!(
                    "Field requires {width} characters, but only {} remain.",
                    rest.len()
                )));
            }
            return Err(
                bad(format!("invalid value \"{shown}\" for \"{field}\"")).with_detail(format!(
                    "Field requires {width} characters, but only {wanted} could be parsed."
                )),
            );
        }
        let text = &rest[..sign + wanted];
        self.rest = &rest[sign + wanted..];
        let range = || {
            let message = format!("value for \"{field}\" in source string is out of range");
            fault("22008", message)
                .with_detail("Value must be in the range -2147483648 to 2147483647.")
        };
        text.parse().map_err(|_| range())
    }

    /// The same, and how many signs of the text it took, blanks in front of it too.
    fn counted(&mut self, field: &str, width: usize, open: bool) -> Result<(i32, usize)> {
        let before = self.rest.len();
        let value = self.number(field, width, open)?;
        Ok((value, before - self.rest.len()))
    }

    /// One of several names, from 0; those that are cut to `width` letters.
    fn name(&mut self, field: &str, names: &[&str], width: Option<usize>) -> Result<usize> {
        self.rest = self.rest.trim_start();
        let mut best: Option<(usize, usize)> = None;
        for (number, name) in names.iter().enumerate() {
            let name = width.map_or(*name, |width| &name[..width.min(name.len())]);
            let own = self.rest.get(..name.len());
            if own.is_some_and(|own| own.eq_ignore_ascii_case(name))
                && best.is_none_or(|(_, length)| name.len() > length)
            {
                best = Some((number, name.len()));
            }
        }
        let (number, length) = best.ok_or_else(|| {
            let end = self.rest.find(|char: char| !char.is_alphanumeric());
            let word = &self.rest[..end.unwrap_or(self.rest.len())];
            bad(format!("invalid value \"{word}\" for \"{field}\"")).with_detail(
                "The given value did not match any of the allowed values for this field.",
            )
        })?;
        self.rest = &self.rest[length..];
        Ok(number)
    }
}

fn near_2020(year: i32) -> i32 {
    match year {
        ..=69 => year.saturating_add(2000),
        70..=99 => year + 1900,
        100..=519 => year + 2000,
        520..=999 => year + 1000,
        year => year,
    }
}

fn is_separator(char: char) -> bool {
    char.is_ascii_graphic() && !char.is_ascii_alphanumeric()
}

impl Reader<'_> {
    /// Passes over one sign.
    fn pass(&mut self) {
        self.before = self.rest.chars().next();
        self.rest = &self.rest[self.before.map_or(0, char::len_utf8)..];
    }

    /// Passes over blanks.
    fn pass_blanks(&mut self) {
        while self.rest.starts_with(char::is_whitespace) {
            self.pass();
            self.extra += 1;
        }
    }

    /// Passes over what stands for a sign of the pattern: for a blank or a separator one of these, if there is one; for any other whatever stands there,
    /// unless more was passed over than the pattern has.
    fn pass_text(&mut self, char: char, quoted: bool) {
        let separator = !quoted && (char.is_whitespace() || is_separator(char));
        if separator {
            let own = |own: char| own.is_whitespace() || is_separator(own);
            match self.rest.starts_with(own) {
                true => self.pass(),
                false => self.extra -= 1,
            }
        } else if self.extra > 0 {
            self.extra -= 1;
        } else {
            self.pass();
        }
    }
}

/// The fields of a text that is written by a pattern.
fn read(text: &str, pattern: &str) -> Result<Fields> {
    let nodes = nodes(pattern);
    let mut fields = Fields::default();
    let mut reader = Reader {
        rest: text,
        before: None,
        extra: 0,
    };
    for (number, node) in nodes.iter().enumerate() {
        if reader.rest.is_empty() {
            // The pattern may be longer than the text.
            break;
        }
        if number == 0 {
            reader.pass_blanks();
        }
        let (name, fill, case) = match node {
            Node::Field { name: "FX", .. } => continue,
            Node::Field {
                name, fill, case, ..
            } => (*name, *fill, *case),
            Node::Text { char, quoted } => {
                reader.pass_text(*char, *quoted);
                continue;
            }
        };
        reader.pass_blanks();
        if let Some(own) = convention(name)
            && *fields.convention.get_or_insert(own) != own
        {
            let hint =
                "Do not mix Gregorian and ISO week date conventions in a formatting template.";
            let error = bad("invalid combination of date conventions".to_owned());
            return Err(error.with_hint(hint));
        }
        // Whether the number has an end of its own.
        let open = fill
            || match nodes.get(number + 1) {
                None => true,
                Some(Node::Text { char, .. }) => !char.is_ascii_digit(),
                Some(Node::Field { name, .. }) => matches!(
                    *name,
                    "A.D."
                        | "A.M."
                        | "AD"
                        | "AM"
                        | "B.C."
                        | "BC"
                        | "DAY"
                        | "DY"
                        | "MONTH"
                        | "MON"
                        | "OF"
                        | "P.M."
                        | "PM"
                        | "RM"
                        | "TZ"
                        | "TZH"
                ),
            };
        field((name, &cased(name, case)), open, &mut reader, &mut fields)?;
        let ordinal = matches!(
            node,
            Node::Field {
                ordinal: Some(_),
                ..
            }
        );
        if ordinal && reader.rest.len() >= 2 && reader.rest.is_char_boundary(2) {
            reader.rest = &reader.rest[2..];
        }
        reader.before = None;
        reader.extra = 0;
        reader.pass_blanks();
    }
    Ok(fields)
}

/// A key word as the pattern has it.
fn cased(name: &str, case: Case) -> String {
    match case {
        Case::Upper => name.to_owned(),
        Case::Lower => name.to_lowercase(),
        Case::Title => format!("{}{}", &name[..1], name[1..].to_lowercase()),
    }
}

/// A field by its name, and as the pattern has it.
fn field(
    (name, shown): (&str, &str),
    open: bool,
    reader: &mut Reader<'_>,
    fields: &mut Fields,
) -> Result<()> {
    let mut number = |width| reader.number(shown, width, open);
    match name {
        "YYYY" | "IYYY" => set(&mut fields.year, number(4)?, shown)?,
        "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
            let (year, length) = reader.counted(shown, name.len(), open)?;
            set(&mut fields.year, year, shown)?;
            if length < 4 {
                fields.year = near_2020(year);
            }
            fields.short_year = name.len() < 3;
        }
        "Y,YYY" => {
            let thousands = reader.number(shown, 9, true)?;
            reader.rest = reader.rest.strip_prefix(',').unwrap_or(reader.rest);
            let rest = reader.number(shown, 3, false)?;
            let year = thousands
                .checked_mul(1000)
                .and_then(|year| year.checked_add(rest));
            let year = year.ok_or_else(|| {
                let message = format!("value for \"{shown}\" in source string is out of range");
                fault("22008", message)
            })?;
            set(&mut fields.year, year, shown)?;
        }
        "CC" => set(&mut fields.century, number(2)?, shown)?,
        "MM" => set(&mut fields.month, number(2)?, shown)?,
        "DD" => set(&mut fields.day, number(2)?, shown)?,
        "DDD" | "IDDD" => set(&mut fields.year_day, number(3)?, shown)?,
        "D" => set(&mut fields.week_day, number(1)?, shown)?,
        "ID" => {
            set(&mut fields.week_day, number(1)?, shown)?;
            // 1 is Monday there.
            fields.week_day = match fields.week_day {
                day if day < 7 => day + 1,
                _ => 1,
            };
        }
        "WW" | "IW" => set(&mut fields.week, number(2)?, shown)?,
        "W" => set(&mut fields.month_week, number(1)?, shown)?,
        "Q" => {
            // It is read and says nothing.
            number(1)?;
        }
        "J" => set(&mut fields.julian, number(1)?, shown)?,
        "HH" | "HH12" => {
            set(&mut fields.hour, number(2)?, shown)?;
            fields.half_day_clock = true;
        }
        "HH24" => set(&mut fields.hour, number(2)?, shown)?,
        "MI" => set(&mut fields.minute, number(2)?, shown)?,
        "SS" => set(&mut fields.second, number(2)?, shown)?,
        "SSSS" | "SSSSS" => set(&mut fields.seconds_of_day, number(name.len())?, shown)?,
        "MS" => {
            let (value, length) = reader.counted(shown, 3, open)?;
            set(&mut fields.millis, value, shown)?;
            fields.millis = value.saturating_mul(scale(3, length));
        }
        "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let precision = name.strip_prefix("FF").and_then(|width| width.parse().ok());
            let width = precision.unwrap_or(6);
            fields.precision = precision.or(fields.precision);
            let (value, length) = reader.counted(shown, width, open)?;
            set(&mut fields.micros, value, shown)?;
            fields.micros = value.saturating_mul(scale(6, length));
        }
        "MONTH" | "MON" => {
            let width = (name == "MON").then_some(3);
            let month = reader.name(shown, &MONTHS, width)? as i32 + 1;
            set(&mut fields.month, month, shown)?;
        }
        "RM" => {
            let month = reader.name(shown, &ROMAN, None)? as i32 + 1;
            set(&mut fields.month, month, shown)?;
        }
        "DAY" | "DY" => {
            let width = (name == "DY").then_some(3);
            // As PostgreSQL compares it: with a number from 0.
            set(
                &mut fields.week_day,
                reader.name(shown, &DAYS, width)? as i32,
                shown,
            )?;
            fields.week_day += 1;
        }
        "A.M." | "P.M." | "AM" | "PM" => {
            let names = match name.contains('.') {
                true => ["a.m.", "p.m."],
                false => ["am", "pm"],
            };
            let late = reader.name(shown, &names, None)? as i32;
            set(&mut fields.afternoon, late, shown)?;
            fields.half_day_clock = true;
        }
        "A.D." | "B.C." | "AD" | "BC" => {
            let names = match name.contains('.') {
                true => ["a.d.", "b.c."],
                false => ["ad", "bc"],
            };
            let before = reader.name(shown, &names, None)? as i32;
            set(&mut fields.before_christ, before, shown)?;
        }
        "TZH" => {
            let sign = match reader.rest.chars().next() {
                Some(own @ ('+' | '-')) => {
                    reader.pass();
                    own
                }
                // It was taken for a separator, though the pattern had none left.
                _ if reader.extra > 0 => reader.before.unwrap_or('+'),
                _ => '+',
            };
            fields.zone_sign = if sign == '-' { -1 } else { 1 };
            set(
                &mut fields.zone_hours,
                reader.number(shown, 2, open)?,
                shown,
            )?;
        }
        "TZM" => {
            if fields.zone_sign == 0 {
                fields.zone_sign = 1;
            }
            set(
                &mut fields.zone_minutes,
                reader.number(shown, 2, open)?,
                shown,
            )?;
        }
        "TZ" | "OF" => {
            let message = format!("formatting field \"{shown}\" is only supported in to_char");
            return Err(fault("0A000", message));
        }
        _ => {}
    }
    Ok(())
}

/// What a number of so many digits behind a point is to be multiplied with, to be one of `width`.
fn scale(width: usize, digits: usize) -> i32 {
    (digits..width).fold(1, |scale, _| scale * 10)
}

impl Fields {
    fn out_of_range(text: &str) -> SqlError {
        fault(
            "22008",
            format!("date/time field value out of range: \"{text}\""),
        )
    }

    /// The year, astronomical.
    fn year(&self) -> i64 {
        let (year, century) = (i64::from(self.year), i64::from(self.century));
        let before = self.before_christ != 0;
        let century = if before { -century } else { century };
        match (self.year, self.century) {
            (0, 0) => 0,
            (0, _) if century >= 0 => (century - 1) * 100 + 1,
            (0, _) => century * 100 + 1,
            (_, own) if own != 0 && self.short_year => match (year % 100, century >= 0) {
                (0, true) => century * 100,
                (0, false) => century * 100 + 1,
                (part, true) => (century - 1) * 100 + part,
                (part, false) => (century + 1) * 100 - part + 1,
            },
            _ => {
                let year = if before { -year } else { year };
                if year < 0 { year + 1 } else { year }
            }
        }
    }

    /// The day, since 2000-01-01.
    fn day_number(&self, text: &str) -> Result<i64> {
        let wrong = || Self::out_of_range(text);
        let mut year = i32::try_from(self.year()).map_err(|_| wrong())?;
        let (mut month, mut day) = (1, 1);
        let iso = self.convention == Some(Convention::IsoWeek);
        // Monday of the first week of a year.
        let first_monday = |year: i32| {
            let fourth = Day {
                year,
                month: 1,
                day: 4,
            }
            .number();
            fourth - (i64::from(weekday(fourth)) + 6) % 7
        };
        let mut year_day = i64::from(self.year_day);
        let found = |number: i64| {
            // Far outside there are no years to count.
            i32::try_from(number).map_err(|_| wrong())?;
            Ok::<_, SqlError>(Day::of_number(number))
        };
        if self.julian != 0 {
            let own = found(i64::from(self.julian) - i64::from(calendar::EPOCH_JULIAN))?;
            (year, month, day) = (own.year, own.month, own.day);
        }
        if self.week != 0 {
            let before = (i64::from(self.week) - 1) * 7;
            if iso {
                // Monday, if none is told; Sunday is the last.
                let days = match self.week_day {
                    0 => 0,
                    own if own > 1 => i64::from(own) - 2,
                    _ => 6,
                };
                let own = found(first_monday(year) + before + days)?;
                (year, month, day) = (own.year, own.month, own.day);
            } else {
                year_day = before + 1;
            }
        }
        let day_of_month = match self.month_week {
            0 => i64::from(self.day),
            week => (i64::from(week) - 1) * 7 + 1,
        };
        if day_of_month != 0 {
            day = i32::try_from(day_of_month).map_err(|_| wrong())?;
        }
        if self.month != 0 {
            month = self.month;
        }
        if year_day != 0 && (month <= 1 || day <= 1) {
            if year == 0 && self.before_christ == 0 {
                return Err(bad(
                    "cannot calculate day of year without year information".to_owned()
                ));
            }
            let first = match iso {
                true => first_monday(year),
                false => Day {
                    year,
                    month: 1,
                    day: 1,
                }
                .number(),
            };
            let own = first + year_day - 1;
            let days = 365 + i64::from(calendar::is_leap(year));
            if !iso && !(1..=days).contains(&year_day) {
                return Err(wrong());
            }
            let own = Day::of_number(own);
            if iso {
                (year, month, day) = (own.year, own.month, own.day);
            } else {
                month = if month <= 1 { own.month } else { month };
                day = if day <= 1 { own.day } else { day };
            }
        }
        let day = Day { year, month, day };
        match day.is_real() {
            true => Ok(day.number()),
            false => Err(wrong()),
        }
    }

    /// Microseconds since midnight.
    fn clock(&self, text: &str) -> Result<i64> {
        // What else is told counts for more than the seconds of the day.
        let of_day = self.seconds_of_day;
        let told = |own: i32, of_day: i32| if own == 0 { of_day } else { own };
        let mut hour = told(self.hour, of_day / 3600);
        let minute = told(self.minute, of_day / 60 % 60);
        let second = told(self.second, of_day % 60);
        if self.half_day_clock {
            if !(1..=12).contains(&hour) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                return Err(bad(message)
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            if self.afternoon != 0 && hour < 12 {
                hour += 12;
            } else if self.afternoon == 0 && hour == 12 {
                hour = 0;
            }
        }
        let micros = i64::from(self.millis) * 1000 + i64::from(self.micros);
        let sound = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROS_PER_SECOND).contains(&micros);
        if !sound {
            return Err(Self::out_of_range(text));
        }
        let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
        Ok(seconds * MICROS_PER_SECOND + micros)
    }

    /// Seconds east of Greenwich; none if no zone was read.
    ///
    /// # Errors
    /// `22009`.
    fn zone(&self, text: &str) -> Result<Option<i64>> {
        let (hours, minutes) = (self.zone_hours, self.zone_minutes);
        if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) {
            let message = format!("time zone displacement out of range: \"{text}\"");
            return Err(fault("22009", message));
        }
        let seconds = i64::from(hours * 60 + minutes) * 60;
        Ok((self.zone_sign != 0).then(|| i64::from(self.zone_sign) * seconds))
    }
}

fn to_date(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let fields = read(text, a.text(1))?;
    fields.clock(text)?;
    let day = fields.day_number(text)?;
    fields.zone(text)?;
    // Far outside there are no years to count.
    if i32::try_from(day).is_err() {
        return Err(fault("22008", format!("date out of range: \"{text}\"")));
    }
    Ok(Value::Date(Date::of_day(Day::of_number(day))?))
}

fn to_timestamp(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let fields = read(text, a.text(1))?;
    let clock = fields.clock(text)?;
    let day = fields.day_number(text)?;
    let zone = fields.zone(text)?;
    let wrong = || fault("22008", format!("timestamp out of range: \"{text}\""));
    let wall = day.checked_mul(MICROS_PER_DAY);
    let wall = wall.and_then(|midnight| midnight.checked_add(clock));
    let wall = wall.and_then(Timestamp::checked).ok_or_else(wrong)?;
    let instant = match zone {
        None => wall.to_instant(&a.settings.time_zone)?,
        Some(east) => Timestamp::checked(wall.0 - east * MICROS_PER_SECOND).ok_or_else(wrong)?,
    };
    let unit = fields
        .precision
        .map_or(1, |precision| i64::from(scale(6, precision)));
    // Half of a unit goes away from 2000.
    let size = (instant.0.abs() + unit / 2) / unit * unit;
    let rounded = Timestamp::checked(size * instant.0.signum()).ok_or_else(wrong)?;
    Ok(Value::Timestamptz(rounded))
}
