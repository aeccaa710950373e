//! Intervals read from text: with units (`1 year 2 days 03:04:05`), as SQL has them (`1-2 3 4:05:06`)
//! and as ISO 8601 has them (`P1Y2M3DT4H5M6S`).
//!
//! Tokens are taken from the last to the first, so that a number knows the unit behind it. A fraction of a
//! unit spills into the smaller ones: of a year into months, of a month into days of which it has
//! thirty, of a day into microseconds.

use super::clock::clock;
use super::input::{fault_error, round};
use super::tokens::{Fault, Kind, Token, WORD_BYTES, tokenize};
use super::{Interval, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::error::{Result, SqlError, SqlState};
use crate::settings::{IntervalStyle, Settings};
use crate::types::{IntervalFields, Typmod};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
    /// One that no number can have here.
    Other,
}

impl Unit {
    fn bit(self) -> u32 {
        1 << self as u32
    }
}

const SECONDS: u32 =
    1 << Unit::Second as u32 | 1 << Unit::Millisecond as u32 | 1 << Unit::Microsecond as u32;
const TIME: u32 = SECONDS | 1 << Unit::Minute as u32 | 1 << Unit::Hour as u32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Ignored,
    Ago,
    Unit(Unit),
}

fn word(text: &str) -> Option<Word> {
    let text = text.get(..WORD_BYTES).unwrap_or(text);
    Some(Word::Unit(match text {
        "at" | "on" => return Some(Word::Ignored),
        "ago" => return Some(Word::Ago),
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "d" | "day" | "days" => Unit::Day,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "mon" | "mons" | "month" | "months" | "mm" => Unit::Month,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "w" | "week" | "weeks" => Unit::Week,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        "qtr" | "quarter" | "timezone" | "timezone_h" | "timezone_m" => Unit::Other,
        _ => return None,
    }))
}

/// The sum of what was read.
#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

type Parse<T> = std::result::Result<T, Fault>;

fn add(to: &mut i32, value: i64, scale: i64) -> Parse<()> {
    let value = i32::try_from(value)
        .ok()
        .and_then(|value| value.checked_mul(scale as i32));
    *to = value
        .and_then(|value| to.checked_add(value))
        .ok_or(Fault::Field)?;
    Ok(())
}

impl Sum {
    fn add_micros(&mut self, value: i64, fraction: f64, scale: i64) -> Parse<()> {
        let whole = value
            .checked_mul(scale)
            .and_then(|value| self.micros.checked_add(value));
        self.micros = whole.ok_or(Fault::Field)?;
        self.add_fraction_of_micros(fraction, scale)
    }

    fn add_fraction_of_micros(&mut self, fraction: f64, scale: i64) -> Parse<()> {
        if fraction == 0.0 {
            return Ok(());
        }
        let fraction = fraction * scale as f64;
        let whole = fraction as i64;
        let rest = fraction - whole as f64;
        let carry = if rest > 0.5 {
            1
        } else if rest < -0.5 {
            -1
        } else {
            0
        };
        self.micros = self.micros.checked_add(whole + carry).ok_or(Fault::Field)?;
        Ok(())
    }

    fn add_fraction_of_days(&mut self, fraction: f64, scale: i64) -> Parse<()> {
        if fraction == 0.0 {
            return Ok(());
        }
        let fraction = fraction * scale as f64;
        let whole = fraction as i32;
        self.days = self.days.checked_add(whole).ok_or(Fault::Field)?;
        self.add_fraction_of_micros(fraction - f64::from(whole), MICROS_PER_DAY)
    }

    fn add_years(&mut self, value: i64, fraction: f64, scale: i64) -> Parse<()> {
        add(&mut self.years, value, scale)?;
        let months = (fraction * scale as f64 * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months).ok_or(Fault::Field)?;
        Ok(())
    }

    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Parse<()> {
        match unit {
            Unit::Microsecond => self.add_micros(value, fraction, 1),
            Unit::Millisecond => self.add_micros(value, fraction, 1000),
            Unit::Second => self.add_micros(value, fraction, MICROS_PER_SECOND),
            Unit::Minute => self.add_micros(value, fraction, MICROS_PER_MINUTE),
            Unit::Hour => self.add_micros(value, fraction, MICROS_PER_HOUR),
            Unit::Day => {
                add(&mut self.days, value, 1)?;
                self.add_fraction_of_micros(fraction, MICROS_PER_DAY)
            }
            Unit::Week => {
                add(&mut self.days, value, 7)?;
                self.add_fraction_of_days(fraction, 7)
            }
            Unit::Month => {
                add(&mut self.months, value, 1)?;
                self.add_fraction_of_days(fraction, 30)
            }
            Unit::Year => self.add_years(value, fraction, 1),
            Unit::Decade => self.add_years(value, fraction, 10),
            Unit::Century => self.add_years(value, fraction, 100),
            Unit::Millennium => self.add_years(value, fraction, 1000),
            Unit::Other => Err(Fault::Format),
        }
    }

    fn negate(&mut self) -> Parse<()> {
        let negated = (
            self.years.checked_neg(),
            self.months.checked_neg(),
            self.days.checked_neg(),
            self.micros.checked_neg(),
        );
        let (Some(years), Some(months), Some(days), Some(micros)) = negated else {
            return Err(Fault::Field);
        };
        *self = Sum {
            years,
            months,
            days,
            micros,
        };
        Ok(())
    }

    fn add_clock(&mut self, text: &str, fields: Option<IntervalFields>) -> Parse<()> {
        let (mut hour, mut minute, mut second, micros) = clock(text)?;
        let two_fields = text.matches(':').count() == 1 && !text.contains('.');
        if fields == Some(IntervalFields::MINUTE_TO_SECOND) && two_fields {
            second = minute;
            minute = i32::try_from(hour).map_err(|_| Fault::Field)?;
            hour = 0;
        }
        let rest = i64::from(minute) * MICROS_PER_MINUTE
            + i64::from(second) * MICROS_PER_SECOND
            + i64::from(micros);
        let total = hour
            .checked_mul(MICROS_PER_HOUR)
            .and_then(|hours| hours.checked_add(rest));
        // A clock sets the time: there is none beside it.
        self.micros = total.ok_or(Fault::Field)?;
        Ok(())
    }
}

/// The unit of a number without one, from the fields of the type.
fn unit_of_fields(fields: Option<IntervalFields>) -> Unit {
    match fields {
        Some(IntervalFields::YEAR) => Unit::Year,
        Some(IntervalFields::MONTH | IntervalFields::YEAR_TO_MONTH) => Unit::Month,
        Some(IntervalFields::DAY) => Unit::Day,
        Some(IntervalFields::HOUR | IntervalFields::DAY_TO_HOUR) => Unit::Hour,
        Some(
            IntervalFields::MINUTE | IntervalFields::HOUR_TO_MINUTE | IntervalFields::DAY_TO_MINUTE,
        ) => Unit::Minute,
        _ => Unit::Second,
    }
}

fn with_units(text: &str, fields: Option<IntervalFields>, style: IntervalStyle) -> Parse<Sum> {
    let tokens = tokenize(text)?;
    // In SQL's own style a sign in front of all counts for all, if no other has one.
    let has_sign = |token: &Token| token.text.starts_with(['-', '+']);
    let all_negative = style == IntervalStyle::SqlStandard
        && tokens
            .first()
            .is_some_and(|token| token.text.starts_with('-'))
        && !tokens[1..].iter().any(has_sign);
    let (mut sum, mut seen) = (Sum::default(), 0u32);
    let mut unit: Option<Unit> = None;
    let (mut unit_waits, mut is_ago) = (false, false);
    for token in tokens.iter().rev() {
        let body = &token.text[1.min(token.text.len())..];
        let given = match token.kind {
            Kind::Time => {
                sum.add_clock(&token.text, fields)?;
                if all_negative && sum.micros > 0 {
                    sum.micros = -sum.micros;
                }
                (unit, unit_waits) = (Some(Unit::Day), false);
                TIME
            }
            Kind::Signed if body.contains(':') && clock(body).is_ok() => {
                sum.add_clock(body, fields)?;
                if token.text.starts_with('-') {
                    sum.micros = -sum.micros;
                }
                (unit, unit_waits) = (Some(Unit::Day), false);
                TIME
            }
            Kind::Signed | Kind::Date | Kind::Number => {
                let own = unit.unwrap_or_else(|| unit_of_fields(fields));
                let (own, value, part) = number(&token.text, own, all_negative)?;
                sum.add(own, value, part)?;
                let given = if own == Unit::Second && part != 0.0 {
                    SECONDS
                } else {
                    own.bit()
                };
                // In front of hours stand days; else a number without a unit is of the same.
                unit = Some(if own == Unit::Hour { Unit::Day } else { own });
                unit_waits = false;
                given
            }
            Kind::Word => {
                if unit_waits {
                    return Err(Fault::Format);
                }
                match word(&token.text) {
                    Some(Word::Ignored) => continue,
                    Some(Word::Ago) => {
                        // A number in front of it has no unit.
                        (unit, is_ago) = (Some(Unit::Other), true);
                        0
                    }
                    Some(Word::Unit(own)) => {
                        (unit, unit_waits) = (Some(own), true);
                        0
                    }
                    None => return Err(Fault::Format),
                }
            }
            Kind::SignedWord => return Err(Fault::Format),
        };
        if given & seen != 0 {
            return Err(Fault::Format);
        }
        seen |= given;
    }
    if seen == 0 || unit_waits {
        return Err(Fault::Format);
    }
    if is_ago {
        sum.negate()?;
    }
    Ok(sum)
}

/// A number of a unit, its whole part and its fraction; `1-2` is years and months.
fn number(text: &str, unit: Unit, all_negative: bool) -> Parse<(Unit, i64, f64)> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &unsigned[digits..];
    let mut value: i64 = if digits == 0 {
        0
    } else {
        unsigned[..digits].parse().map_err(|_| Fault::Field)?
    };
    let negative = negative || all_negative;
    let (mut unit, mut part) = (unit, 0.0);
    match rest.as_bytes().first() {
        None if digits > 0 => {}
        Some(b'-') => {
            let months: i64 = rest[1..].parse().map_err(|_| Fault::Format)?;
            if !(0..12).contains(&months) {
                return Err(Fault::Field);
            }
            value = value.checked_mul(12).ok_or(Fault::Field)? + months;
            unit = Unit::Month;
        }
        Some(b'.') => {
            if !rest[1..].bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Fault::Format);
            }
            if rest.len() > 1 {
                part = rest.parse().map_err(|_| Fault::Format)?;
            }
        }
        _ => return Err(Fault::Format),
    }
    if negative {
        (value, part) = (-value, -part);
    }
    Ok((unit, value, part))
}

/// `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`.
fn iso_8601(text: &str) -> Parse<Sum> {
    let mut rest = text.strip_prefix('P').ok_or(Fault::Format)?;
    if rest.is_empty() {
        return Err(Fault::Format);
    }
    let mut sum = Sum::default();
    let (mut in_date, mut has_field) = (true, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (in_date, has_field, rest) = (false, false, time);
            continue;
        }
        let (value, part, after) = iso_number(rest)?;
        let width = rest.bytes().skip_while(|byte| matches!(byte, b'-' | b'+'));
        let width = width.take_while(u8::is_ascii_digit).count();
        let mark = after.bytes().next();
        let unit = match (in_date, mark) {
            (true, Some(b'Y')) => Unit::Year,
            (true, Some(b'M')) => Unit::Month,
            (true, Some(b'W')) => Unit::Week,
            (true, Some(b'D')) => Unit::Day,
            (false, Some(b'H')) => Unit::Hour,
            (false, Some(b'M')) => Unit::Minute,
            (false, Some(b'S')) => Unit::Second,
            // The alternative forms say what a number is by its place.
            (true, Some(b'-' | b'T') | None) if !has_field => {
                rest = iso_date(&mut sum, (value, part), width, after)?;
                continue;
            }
            (false, Some(b':') | None) if !has_field => {
                iso_time(&mut sum, (value, part), width, after)?;
                return Ok(sum);
            }
            _ => return Err(Fault::Format),
        };
        rest = &after[1..];
        sum.add(unit, value, part)?;
        has_field = true;
    }
    Ok(sum)
}

fn iso_number(text: &str) -> Parse<(i64, f64, &str)> {
    let signed = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = signed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(signed.len());
    let body = &signed[..end];
    if !body.bytes().any(|byte| byte.is_ascii_digit()) || body.matches('.').count() > 1 {
        return Err(Fault::Format);
    }
    let (whole, part) = match body.split_once('.') {
        Some((whole, part)) => {
            let part = if part.is_empty() {
                0.0
            } else {
                format!(".{part}").parse().map_err(|_| Fault::Format)?
            };
            (whole, part)
        }
        None => (body, 0.0),
    };
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| Fault::Field)?
    };
    let whole = if i32::try_from(whole).is_ok() {
        whole
    } else {
        return Err(Fault::Field);
    };
    let negative = text.starts_with('-');
    let after = &signed[end..];
    Ok(if negative {
        (-whole, -part, after)
    } else {
        (whole, part, after)
    })
}

/// `YYYYMMDD`, or years, months and days with dashes; what stands behind them, a time or nothing.
fn iso_date<'a>(
    sum: &mut Sum,
    (value, part): (i64, f64),
    width: usize,
    after: &'a str,
) -> Parse<&'a str> {
    let mut rest = after;
    if width == 8 && !rest.starts_with('-') {
        sum.add(Unit::Year, value / 10_000, 0.0)?;
        sum.add(Unit::Month, value / 100 % 100, 0.0)?;
        sum.add(Unit::Day, value % 100, part)?;
        return Ok(rest);
    }
    sum.add(Unit::Year, value, part)?;
    for unit in [Unit::Month, Unit::Day] {
        let Some(next) = rest.strip_prefix('-') else {
            break;
        };
        let (value, part, after) = iso_number(next)?;
        sum.add(unit, value, part)?;
        rest = after;
    }
    if rest.is_empty() || rest.starts_with('T') {
        Ok(rest)
    } else {
        Err(Fault::Format)
    }
}

/// `hhmmss`, or hours, minutes and seconds with colons.
fn iso_time(sum: &mut Sum, (value, part): (i64, f64), width: usize, after: &str) -> Parse<()> {
    if width == 6 && after.is_empty() {
        sum.add(Unit::Hour, value / 10_000, 0.0)?;
        sum.add(Unit::Minute, value / 100 % 100, 0.0)?;
        return sum.add(Unit::Second, value % 100, part);
    }
    sum.add(Unit::Hour, value, part)?;
    let mut rest = after;
    for unit in [Unit::Minute, Unit::Second] {
        let Some(next) = rest.strip_prefix(':') else {
            break;
        };
        let (value, part, after) = iso_number(next)?;
        sum.add(unit, value, part)?;
        rest = after;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Fault::Format)
    }
}

impl Interval {
    /// Reads an interval; a number without a unit is of the last field of the type.
    ///
    /// # Errors
    /// 22007 for other text, 22008 and 22015 for what is out of range.
    pub fn parse(text: &str, typmod: Typmod, settings: &Settings) -> Result<Self> {
        let fields = typmod.interval_fields();
        let sum = match with_units(text, fields, settings.interval_style) {
            Err(Fault::Format) => iso_8601(text),
            other => other,
        };
        let sum = sum.map_err(|fault| {
            let fault = if fault == Fault::Field {
                Fault::Interval
            } else {
                fault
            };
            fault_error(fault, text, "interval")
        })?;
        let months = i64::from(sum.years) * 12 + i64::from(sum.months);
        let Ok(months) = i32::try_from(months) else {
            return Err(SqlError::new(
                SqlState::DATETIME_OVERFLOW,
                "interval out of range",
            ));
        };
        let interval = Interval {
            months,
            days: sum.days,
            micros: sum.micros,
        };
        Ok(interval.coerce(typmod))
    }

    /// As a column of the type holds it: fields below the type's last one are dropped, the second is
    /// rounded.
    #[must_use]
    pub fn coerce(self, typmod: Typmod) -> Self {
        let Interval {
            mut months,
            mut days,
            mut micros,
        } = self;
        if let Some(fields) = typmod.interval_fields() {
            match fields {
                IntervalFields::YEAR => (months, days, micros) = (months / 12 * 12, 0, 0),
                IntervalFields::MONTH | IntervalFields::YEAR_TO_MONTH => (days, micros) = (0, 0),
                IntervalFields::DAY => micros = 0,
                IntervalFields::HOUR | IntervalFields::DAY_TO_HOUR => {
                    micros = micros / MICROS_PER_HOUR * MICROS_PER_HOUR;
                }
                IntervalFields::MINUTE
                | IntervalFields::HOUR_TO_MINUTE
                | IntervalFields::DAY_TO_MINUTE => {
                    micros = micros / MICROS_PER_MINUTE * MICROS_PER_MINUTE;
                }
                _ => {}
            }
        }
        Interval {
            months,
            days,
            micros: round(micros, typmod.interval_fraction()),
        }
    }
}
