//! `to_date`, `to_timestamp` and `to_number`: what is read by a pattern.

use super::template::{DAYS, MONTHS, Node, ROMAN, nodes};
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

/// The fields that were read.
#[derive(Default, Debug)]
struct Fields {
    year: Option<i32>,
    century: Option<i32>,
    /// Digits of a year that was cut short.
    short_year: bool,
    before_christ: bool,
    month: Option<i32>,
    day: Option<i32>,
    year_day: Option<i32>,
    week: Option<i32>,
    month_week: Option<i32>,
    iso_year: Option<i32>,
    iso_week: Option<i32>,
    /// 1 for Monday.
    iso_day: Option<i32>,
    iso_year_day: Option<i32>,
    julian: Option<i32>,
    hour: i32,
    half_day_clock: bool,
    afternoon: Option<bool>,
    minute: i32,
    second: i32,
    seconds_of_day: Option<i32>,
    micros: i64,
    zone: Option<(i32, i32)>,
}

struct Reader<'t> {
    rest: &'t str,
    whole: &'t str,
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

    /// Digits behind a point: as many as count, and how many they were.
    fn fraction(&mut self, field: &str, width: usize) -> Result<i64> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let used = digits.min(width);
        let value: i64 = match self.rest[..used].parse() {
            Ok(value) => value,
            Err(_) => {
                self.number(field, width, true)?;
                0
            }
        };
        self.rest = &self.rest[used..];
        Ok(value * 10i64.pow(6 - used as u32))
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
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        100..=519 => year + 2000,
        520..=999 => year + 1000,
        year => year,
    }
}

fn is_separator(char: char) -> bool {
    char.is_ascii_graphic() && !char.is_ascii_alphanumeric()
}

/// The fields of a text that is written by a pattern.
fn read(text: &str, pattern: &str) -> Result<Fields> {
    let nodes = nodes(pattern);
    let mut fields = Fields::default();
    let mut reader = Reader {
        rest: text,
        whole: text,
    };
    for (number, node) in nodes.iter().enumerate() {
        let (name, fill) = match node {
            Node::Field { name: "FX", .. } => continue,
            Node::Field { name, fill, .. } => (*name, *fill),
            Node::Text { char, quoted } => {
                let separator = !quoted && (char.is_whitespace() || is_separator(*char));
                let first = reader.rest.chars().next();
                match first {
                    Some(own) if !separator || own.is_whitespace() || is_separator(own) => {
                        // A sign may belong to the number behind.
                        reader.rest = &reader.rest[own.len_utf8()..];
                    }
                    _ => {}
                }
                continue;
            }
        };
        if reader.rest.trim().is_empty() {
            // The pattern may be longer than the text.
            break;
        }
        if !matches!(
            name,
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6"
        ) {
            reader.rest = reader.rest.trim_start_matches(|c: char| c.is_whitespace());
        }
        // Whether the number has an end of its own.
        let open = fill
            || match nodes.get(number + 1) {
                None => true,
                Some(Node::Text { char, quoted }) => {
                    !quoted && !char.is_ascii_digit() || *quoted && !char.is_ascii_digit()
                }
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
                        | "P.M."
                        | "PM"
                        | "RM"
                        | "TZ"
                ),
            };
        field(name, open, &mut reader, &mut fields)?;
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
    }
    debug_assert!(reader.whole.len() >= reader.rest.len());
    Ok(fields)
}

fn field(name: &str, open: bool, reader: &mut Reader<'_>, fields: &mut Fields) -> Result<()> {
    let mut number = |width| reader.number(name, width, open);
    match name {
        "YYYY" => fields.year = Some(number(4)?),
        "YYY" | "YY" | "Y" => {
            fields.year = Some(near_2020(number(name.len())?));
            fields.short_year = name != "YYY";
        }
        "Y,YYY" => {
            let thousands = reader.number(name, 9, true)?;
            reader.rest = reader.rest.strip_prefix(',').unwrap_or(reader.rest);
            let rest = reader.number(name, 3, false)?;
            let year = thousands
                .checked_mul(1000)
                .and_then(|year| year.checked_add(rest));
            fields.year = Some(year.ok_or_else(|| {
                let message = format!("value for \"{name}\" in source string is out of range");
                fault("22008", message)
            })?);
        }
        "IYYY" => fields.iso_year = Some(number(4)?),
        "IYY" | "IY" | "I" => fields.iso_year = Some(near_2020(number(name.len())?)),
        "CC" => fields.century = Some(number(2)?),
        "MM" => fields.month = Some(number(2)?),
        "DD" => fields.day = Some(number(2)?),
        "DDD" => fields.year_day = Some(number(3)?),
        "IDDD" => fields.iso_year_day = Some(number(3)?),
        "D" => {
            let day = number(1)?;
            // 1 is Sunday there.
            fields.iso_day = Some(if day == 1 { 7 } else { day - 1 });
        }
        "ID" => fields.iso_day = Some(number(1)?),
        "WW" => fields.week = Some(number(2)?),
        "W" => fields.month_week = Some(number(1)?),
        "IW" => fields.iso_week = Some(number(2)?),
        "Q" => {
            // It is read and says nothing.
            number(1)?;
        }
        "J" => fields.julian = Some(number(7)?).filter(|day| *day != 0),
        "HH" | "HH12" => {
            fields.hour = number(2)?;
            fields.half_day_clock = true;
        }
        "HH24" => fields.hour = number(2)?,
        "MI" => fields.minute = number(2)?,
        "SS" => fields.second = number(2)?,
        "SSSS" | "SSSSS" => fields.seconds_of_day = Some(number(5)?),
        "MS" => fields.micros += reader.fraction(name, 3)?,
        "US" => fields.micros += reader.fraction(name, 6)?,
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let width = name.as_bytes()[2] - b'0';
            fields.micros += reader.fraction(name, usize::from(width))?;
        }
        "MONTH" => fields.month = Some(reader.name(name, &MONTHS, None)? as i32 + 1),
        "MON" => fields.month = Some(reader.name(name, &MONTHS, Some(3))? as i32 + 1),
        "RM" => fields.month = Some(reader.name(name, &ROMAN, None)? as i32 + 1),
        "DAY" | "DY" => {
            let width = (name == "DY").then_some(3);
            let day = reader.name(name, &DAYS, width)?;
            fields.iso_day = Some(if day == 0 { 7 } else { day as i32 });
        }
        "A.M." | "P.M." => {
            fields.afternoon = Some(reader.name(name, &["a.m.", "p.m."], None)? == 1);
            fields.half_day_clock = true;
        }
        "AM" | "PM" => {
            fields.afternoon = Some(reader.name(name, &["am", "pm"], None)? == 1);
            fields.half_day_clock = true;
        }
        "A.D." | "B.C." => {
            fields.before_christ = reader.name(name, &["a.d.", "b.c."], None)? == 1;
        }
        "AD" | "BC" => fields.before_christ = reader.name(name, &["ad", "bc"], None)? == 1,
        "TZH" => {
            let negative = reader.rest.starts_with('-');
            reader.rest = reader.rest.trim_start_matches(['+', '-', ' ']);
            let hours = reader.number(name, 2, false)?;
            let minutes = fields.zone.map_or(0, |(_, minutes)| minutes);
            fields.zone = Some((if negative { -hours } else { hours }, minutes));
        }
        "TZM" => {
            let minutes = reader.number(name, 2, false)?;
            fields.zone = Some((fields.zone.map_or(0, |(hours, _)| hours), minutes));
        }
        "TZ" | "OF" => {
            let message = format!("formatting field \"{name}\" is only supported in to_char");
            return Err(fault("0A000", message));
        }
        _ => {}
    }
    Ok(())
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
        let own = self.year.map(i64::from);
        let mut year = own.unwrap_or(0);
        if let Some(century) = self.century.map(i64::from) {
            year = match (own, self.short_year) {
                (Some(year), true) => {
                    let part = year % 100;
                    if part == 0 {
                        century * 100
                    } else {
                        (century - 1) * 100 + part
                    }
                }
                (Some(year), false) => year,
                (None, _) => (century - 1) * 100 + 1,
            };
        }
        if self.before_christ && year > 0 {
            1 - year
        } else if year < 0 {
            year + 1
        } else {
            year
        }
    }

    /// The day, since 2000-01-01.
    fn day_number(&self, text: &str) -> Result<i64> {
        let wrong = || Self::out_of_range(text);
        if let Some(julian) = self.julian {
            return Ok(i64::from(julian) - i64::from(calendar::EPOCH_JULIAN));
        }
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
        if let Some(year) = self.iso_year.or(self.iso_week.and(self.year)) {
            if let Some(day) = self.iso_year_day {
                return Ok(first_monday(year) + i64::from(day) - 1);
            }
            let week = self.iso_week.unwrap_or(1);
            if !(1..=53).contains(&week) {
                return Err(wrong());
            }
            let day = self.iso_day.unwrap_or(1);
            return Ok(first_monday(year) + i64::from(week - 1) * 7 + i64::from(day - 1));
        }
        let year = i32::try_from(self.year()).map_err(|_| wrong())?;
        let first = Day {
            year,
            month: 1,
            day: 1,
        }
        .number();
        let days = 365 + i32::from(calendar::is_leap(year));
        let first_of = |week: i32| (i64::from(week) - 1) * 7 + 1;
        let year_day = self.week.map(first_of).or(self.year_day.map(i64::from));
        if let Some(day) = year_day
            && self.day.is_none()
        {
            if !(1..=i64::from(days)).contains(&day) {
                return Err(wrong());
            }
            return Ok(first + day - 1);
        }
        let day = self.day.map(i64::from).or(self.month_week.map(first_of));
        let day = day.map(|day| i32::try_from(day).map_err(|_| wrong()));
        let day = day.transpose()?;
        let day = Day {
            year,
            month: self.month.unwrap_or(1),
            day: day.unwrap_or(1),
        };
        if day.is_real() {
            Ok(day.number())
        } else {
            Err(wrong())
        }
    }

    /// Microseconds since midnight.
    fn clock(&self, text: &str) -> Result<i64> {
        let (mut hour, mut minute, mut second) = (self.hour, self.minute, self.second);
        if let Some(seconds) = self.seconds_of_day {
            (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        }
        if self.half_day_clock {
            if !(1..=12).contains(&hour) && (self.hour != 0 || self.afternoon.is_none()) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                return Err(bad(message)
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            if self.afternoon == Some(true) && hour < 12 {
                hour += 12;
            } else if self.afternoon == Some(false) && hour == 12 {
                hour = 0;
            }
        }
        let sound =
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        if !sound {
            return Err(Self::out_of_range(text));
        }
        let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
        Ok(seconds * MICROS_PER_SECOND + self.micros)
    }
}

fn to_date(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let fields = read(text, a.text(1))?;
    fields.clock(text)?;
    let day = fields.day_number(text)?;
    // Far outside there are no years to count.
    if i32::try_from(day).is_err() {
        return Err(fault("22008", format!("date out of range: \"{text}\"")));
    }
    Ok(Value::Date(Date::of_day(Day::of_number(day))?))
}

fn to_timestamp(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let fields = read(text, a.text(1))?;
    let day = fields.day_number(text)?;
    let wrong = || fault("22008", format!("timestamp out of range: \"{text}\""));
    let clock = fields.clock(text)?;
    let wall = day.checked_mul(MICROS_PER_DAY);
    let wall = wall.and_then(|midnight| midnight.checked_add(clock));
    let wall = wall.and_then(Timestamp::checked).ok_or_else(wrong)?;
    let instant = match fields.zone {
        None => wall.to_instant(&a.settings.time_zone)?,
        Some((hours, minutes)) => {
            let minutes = if hours < 0 { -minutes } else { minutes };
            let east = i64::from(hours * 60 + minutes) * 60 * MICROS_PER_SECOND;
            Timestamp::checked(wall.0 - east).ok_or_else(wrong)?
        }
    };
    Ok(Value::Timestamptz(instant))
}
