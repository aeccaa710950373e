//! Dates, times and instants read from text, in all the forms that PostgreSQL takes.
//!
//! The tokens are taken in order; each gives one or more *fields* (a set of bits), and no field may be
//! given twice. Numbers without a mark are year, month or day by what is still missing and by the
//! session's date order.

use super::abbreviations;
use super::calendar::{Day, EPOCH_JULIAN, days_in_month};
use super::clock::{clock, displacement, fraction, leading_number};
use super::moment::{Moment, Parsed, Zone};
use super::tokens::{DateUnit, Fault, Kind, Token, Word, date_word, tokenize, zone_word};
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, TimeZone};
use crate::settings::{DateOrder, Settings};

/// Sets of fields.
mod field {
    pub const YEAR: u32 = 1;
    pub const MONTH: u32 = 2;
    pub const DAY: u32 = 4;
    pub const YEAR_DAY: u32 = 8;
    pub const HOUR: u32 = 16;
    pub const MINUTE: u32 = 32;
    pub const SECOND: u32 = 64;
    pub const ZONE: u32 = 128;
    pub const DAYLIGHT_ZONE: u32 = 256;
    pub const DAYLIGHT: u32 = 512;
    pub const HALF_DAY: u32 = 1024;
    pub const ERA: u32 = 2048;
    pub const WEEKDAY: u32 = 4096;
    pub const DATE: u32 = YEAR | MONTH | DAY;
    pub const TIME: u32 = HOUR | MINUTE | SECOND;
}

/// What the text is a form of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// A date, with a time and zone perhaps.
    DateTime,
    /// A time, with a date and zone perhaps, which say little.
    Time,
}

struct Parser<'a> {
    settings: &'a Settings,
    goal: Goal,
    fields: u32,
    year: i32,
    month: i32,
    day: i32,
    year_day: i32,
    hour: i64,
    minute: i32,
    second: i32,
    fraction: i32,
    zone: Option<Zone>,
    daylight: bool,
    after_noon: Option<bool>,
    before_christ: bool,
    two_digits: bool,
    is_julian: bool,
    text_month: bool,
    unit: Option<DateUnit>,
    moment: Moment,
}

type Parse<T> = Result<T, Fault>;

impl Parser<'_> {
    fn tokens(&mut self, tokens: &[Token]) -> Parse<()> {
        for (index, token) in tokens.iter().enumerate() {
            let Some(given) = self.token(tokens, index, token)? else {
                continue;
            };
            if self.moment != Moment::Fields {
                // Nothing else counts, before or behind.
                return Ok(());
            }
            if given & self.fields != 0 {
                return Err(Fault::Format);
            }
            self.fields |= given;
        }
        Ok(())
    }

    fn has(&self, fields: u32) -> bool {
        self.fields & fields == fields
    }

    /// The fields that the token gives; `None` if it says nothing.
    fn token(&mut self, tokens: &[Token], index: usize, token: &Token) -> Parse<Option<u32>> {
        let text = token.text.as_str();
        match token.kind {
            Kind::Date => self.date_token(tokens, index, text).map(Some),
            Kind::Time => {
                if let Some(unit) = self.unit.take()
                    && unit != DateUnit::Time
                {
                    return Err(Fault::Format);
                }
                self.set_clock(clock(text)?);
                if self.overflows() {
                    return Err(Fault::Field);
                }
                Ok(Some(field::TIME))
            }
            Kind::Signed => {
                self.zone = Some(Zone::Offset(displacement(text)?));
                Ok(Some(field::ZONE))
            }
            Kind::Number => self.number_token(tokens, index, text).map(Some),
            Kind::Word | Kind::SignedWord => self.word_token(tokens, index, text),
        }
    }

    fn date_token(&mut self, tokens: &[Token], index: usize, text: &str) -> Parse<u32> {
        if self.goal == Goal::Time {
            let last = &tokens[tokens.len() - 1];
            let with_time =
                tokens.len() >= 2 && (last.kind == Kind::Date || tokens[1].kind == Kind::Time);
            if index == 0 && with_time {
                return self.date(text);
            }
        } else if self.unit == Some(DateUnit::Julian) {
            let (value, rest) = leading_number(text)?;
            self.unit = None;
            self.set_julian(value);
            self.zone = Some(Zone::Offset(displacement(rest)?));
            return Ok(field::DATE | field::TIME | field::ZONE);
        } else if self.unit.is_none() && !self.has(field::MONTH | field::DAY) {
            return self.date(text);
        }
        // There is a date already, so this is a zone, or a time with an offset at its end.
        let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
        if is_digit || self.unit.is_some() {
            if let Some(unit) = self.unit.take()
                && unit != DateUnit::Time
            {
                return Err(Fault::Format);
            }
            if self.has(field::TIME) {
                return Err(Fault::Format);
            }
            let dash = text.find('-').ok_or(Fault::Format)?;
            self.zone = Some(Zone::Offset(displacement(&text[dash..])?));
            let known = if self.goal == Goal::Time {
                self.fields | field::DATE
            } else {
                self.fields
            };
            let given = self.run_together(&text[..dash], known)?;
            return Ok(given | field::ZONE);
        }
        let zone = TimeZone::named(text).ok_or_else(|| Fault::UnknownZone(text.to_owned()))?;
        self.zone = Some(Zone::Named(zone));
        Ok(field::ZONE)
    }

    fn number_token(&mut self, tokens: &[Token], index: usize, text: &str) -> Parse<u32> {
        let known = match self.goal {
            Goal::DateTime => self.fields,
            Goal::Time => self.fields | field::DATE,
        };
        if let Some(unit) = self.unit.take() {
            return self.unit_number(unit, text, self.fields | field::DATE);
        }
        let point = text.find('.');
        if self.goal == Goal::Time {
            return match point {
                Some(point) => {
                    let last = &tokens[tokens.len() - 1];
                    if index == 0 && tokens.len() >= 2 && last.kind == Kind::Date {
                        self.date(text)
                    } else if point > 2 {
                        self.run_together(text, known)
                    } else {
                        Err(Fault::Format)
                    }
                }
                None if text.len() > 4 => self.run_together(text, known),
                None => self.number(text, known),
            };
        }
        match point {
            Some(_) if self.fields & field::DATE == 0 => self.date(text),
            Some(point) if point > 2 => self.run_together(text, known),
            None if text.len() >= 6
                && (self.fields & field::DATE == 0 || self.fields & field::TIME == 0) =>
            {
                self.run_together(text, known)
            }
            _ => self.number(text, known),
        }
    }

    /// A number behind a unit.
    fn unit_number(&mut self, unit: DateUnit, text: &str, known: u32) -> Parse<u32> {
        let (value, rest) = leading_number(text)?;
        let may_have_fraction =
            matches!(unit, DateUnit::Julian | DateUnit::Time | DateUnit::Second);
        let fraction_follows = rest.starts_with('.') && may_have_fraction;
        if !rest.is_empty() && !fraction_follows {
            return Err(Fault::Format);
        }
        Ok(match unit {
            DateUnit::Year => {
                self.year = value;
                field::YEAR
            }
            // Behind a month and an hour it is a minute.
            DateUnit::Month if self.has(field::MONTH | field::HOUR) => {
                self.minute = value;
                field::MINUTE
            }
            DateUnit::Month => {
                self.month = value;
                field::MONTH
            }
            DateUnit::Day => {
                self.day = value;
                field::DAY
            }
            DateUnit::Hour => {
                self.hour = i64::from(value);
                field::HOUR
            }
            DateUnit::Minute => {
                self.minute = value;
                field::MINUTE
            }
            DateUnit::Second => {
                self.second = value;
                if rest.is_empty() {
                    field::SECOND
                } else {
                    self.fraction = fraction(rest)?;
                    field::SECOND
                }
            }
            DateUnit::Julian => {
                if value < 0 {
                    return Err(Fault::Field);
                }
                self.set_julian(value);
                if rest.is_empty() {
                    field::DATE
                } else {
                    let part: f64 = rest.parse().map_err(|_| Fault::Format)?;
                    let micros = (part * MICROS_PER_DAY as f64) as i64;
                    self.hour = micros / MICROS_PER_HOUR;
                    self.minute = (micros / MICROS_PER_MINUTE % 60) as i32;
                    self.second = (micros / MICROS_PER_SECOND % 60) as i32;
                    self.fraction = (micros % MICROS_PER_SECOND) as i32;
                    field::DATE | field::TIME
                }
            }
            DateUnit::Time => {
                let given = self.run_together(text, known)?;
                if given != field::TIME {
                    return Err(Fault::Format);
                }
                given
            }
            DateUnit::Other => return Err(Fault::Format),
        })
    }

    fn word_token(&mut self, tokens: &[Token], index: usize, text: &str) -> Parse<Option<u32>> {
        if let Some(offset) = zone_word(text) {
            self.zone = Some(Zone::Offset(offset));
            return Ok(Some(field::ZONE));
        }
        if let Some(zone) = abbreviations::zone(text) {
            self.zone = Some(Zone::Named(zone));
            return Ok(Some(field::ZONE));
        }
        let Some(word) = date_word(text) else {
            let zone = TimeZone::named(text).ok_or(Fault::Format)?;
            self.zone = Some(Zone::Named(zone));
            return Ok(Some(field::ZONE));
        };
        let only_time = self.goal == Goal::Time;
        Ok(Some(match word {
            Word::Ignored => return Ok(None),
            Word::Month(_) | Word::Weekday(_) | Word::Today | Word::Tomorrow | Word::Yesterday
                if only_time =>
            {
                return Err(Fault::Format);
            }
            Word::Month(month) => {
                // `8 jan` with the month first: the number was the day.
                let swap = self.has(field::MONTH)
                    && !self.text_month
                    && !self.has(field::DAY)
                    && (1..=31).contains(&self.month);
                if swap {
                    self.day = self.month;
                }
                self.text_month = true;
                self.month = month;
                if swap { field::DAY } else { field::MONTH }
            }
            Word::Weekday(_) => field::WEEKDAY,
            Word::Era { before } => {
                self.before_christ = before;
                field::ERA
            }
            Word::HalfDay { after_noon } => {
                self.after_noon = Some(after_noon);
                field::HALF_DAY
            }
            Word::Unit(unit) => {
                self.unit = Some(unit);
                0
            }
            Word::IsoTime => {
                let next = tokens.get(index + 1).map(|token| token.kind);
                let is_time = matches!(next, Some(Kind::Number | Kind::Time | Kind::Date));
                if !is_time || (!only_time && !self.has(field::DATE)) {
                    return Err(Fault::Format);
                }
                self.unit = Some(DateUnit::Time);
                0
            }
            Word::DaylightSaving => {
                self.daylight = true;
                match &mut self.zone {
                    Some(Zone::Offset(offset)) => *offset += 3600,
                    _ => return Err(Fault::Format),
                }
                field::DAYLIGHT | field::DAYLIGHT_ZONE
            }
            Word::Now => {
                let now = self.settings.now;
                let offset = self.settings.time_zone.offset_at(now);
                let wall = self.settings.time_zone.wall(now);
                self.set_day(Day::of_number(wall.div_euclid(MICROS_PER_DAY)));
                let micros = wall.rem_euclid(MICROS_PER_DAY);
                self.hour = micros / MICROS_PER_HOUR;
                self.minute = (micros / MICROS_PER_MINUTE % 60) as i32;
                self.second = (micros / MICROS_PER_SECOND % 60) as i32;
                self.fraction = (micros % MICROS_PER_SECOND) as i32;
                self.zone = Some(Zone::Offset(offset));
                if only_time {
                    field::TIME
                } else {
                    field::DATE | field::TIME | field::ZONE
                }
            }
            Word::Today | Word::Tomorrow | Word::Yesterday => {
                let wall = self.settings.time_zone.wall(self.settings.now);
                let shift = match word {
                    Word::Tomorrow => 1,
                    Word::Yesterday => -1,
                    _ => 0,
                };
                self.set_day(Day::of_number(wall.div_euclid(MICROS_PER_DAY) + shift));
                field::DATE
            }
            Word::Zulu => {
                self.set_clock((0, 0, 0, 0));
                self.zone = Some(Zone::Offset(0));
                field::TIME | field::ZONE
            }
            Word::Epoch | Word::Infinity | Word::NegInfinity if only_time => {
                return Err(Fault::Format);
            }
            Word::Epoch => self.set_moment(Moment::Epoch),
            Word::Infinity => self.set_moment(Moment::Infinity),
            Word::NegInfinity => self.set_moment(Moment::NegInfinity),
        }))
    }

    fn set_moment(&mut self, moment: Moment) -> u32 {
        self.moment = moment;
        field::DATE | field::TIME | field::ZONE
    }

    fn set_day(&mut self, day: Day) {
        (self.year, self.month, self.day) = (day.year, day.month, day.day);
        // It is in the calendar of astronomers already.
        self.is_julian = true;
    }

    fn set_julian(&mut self, julian: i32) {
        self.set_day(Day::of_number(i64::from(julian) - i64::from(EPOCH_JULIAN)));
    }

    fn set_clock(&mut self, (hour, minute, second, fraction): (i64, i32, i32, i32)) {
        (self.hour, self.minute) = (hour, minute);
        (self.second, self.fraction) = (second, fraction);
    }

    /// A date with separators.
    fn date(&mut self, text: &str) -> Parse<u32> {
        let mut parts: Vec<&str> = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let Some(first) = rest.bytes().next() else {
                break;
            };
            let digits = first.is_ascii_digit();
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() || c.is_ascii_digit() != digits)
                .unwrap_or(rest.len());
            parts.push(&rest[..end]);
            rest = &rest[end..];
        }
        // A mark at the end is one too many.
        if parts.is_empty() || !text.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(Fault::Format);
        }
        let mut given = 0;
        let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        for part in parts.iter().filter(|part| !is_number(part)) {
            match date_word(part) {
                Some(Word::Ignored) => continue,
                Some(Word::Month(month)) => {
                    self.month = month;
                    self.text_month = true;
                }
                _ => return Err(Fault::Format),
            }
            if (self.fields | given) & field::MONTH != 0 {
                return Err(Fault::Format);
            }
            given |= field::MONTH;
        }
        let text_month = given & field::MONTH != 0;
        let before = self.text_month;
        self.text_month = text_month;
        for part in parts.iter().filter(|part| is_number(part)) {
            let known = self.fields | given;
            let more = self.number(part, known)?;
            if known & more != 0 {
                return Err(Fault::Format);
            }
            given |= more;
        }
        self.text_month = before;
        if (self.fields | given) & !(field::YEAR_DAY | field::ZONE) != field::DATE {
            return Err(Fault::Format);
        }
        Ok(given)
    }

    /// A number that says by its place alone what it is.
    fn number(&mut self, text: &str, known: u32) -> Parse<u32> {
        let (value, rest) = leading_number(text)?;
        let digits = text.len() - rest.len();
        if rest.starts_with('.') {
            // More than two digits: a date or a time run together.
            if digits > 2 {
                return self.run_together(text, known | field::DATE);
            }
            self.fraction = fraction(rest)?;
        } else if !rest.is_empty() {
            return Err(Fault::Format);
        }
        let length = text.len();
        let date = known & field::DATE;
        if length == 3 && date == field::YEAR && (1..=366).contains(&value) {
            self.year_day = value;
            return Ok(field::YEAR_DAY | field::MONTH | field::DAY);
        }
        let order = self.settings.date_order;
        const YEAR_MONTH: u32 = field::YEAR | field::MONTH;
        const MONTH_DAY: u32 = field::MONTH | field::DAY;
        let given = match date {
            0 if length >= 3 || order == DateOrder::Ymd => field::YEAR,
            0 if order == DateOrder::Dmy => field::DAY,
            0 => field::MONTH,
            field::YEAR => field::MONTH,
            field::MONTH if self.text_month && (length >= 3 || order == DateOrder::Ymd) => {
                field::YEAR
            }
            field::MONTH => field::DAY,
            YEAR_MONTH if self.text_month && length >= 3 && self.two_digits => {
                // What was taken for a year of two digits was the day.
                self.day = self.year;
                self.year = value;
                self.two_digits = false;
                return Ok(field::DAY);
            }
            YEAR_MONTH => field::DAY,
            field::DAY => field::MONTH,
            MONTH_DAY => field::YEAR,
            field::DATE => return self.run_together(text, known),
            _ => return Err(Fault::Format),
        };
        match given {
            field::YEAR => {
                self.year = value;
                self.two_digits = length <= 2;
            }
            field::MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(given)
    }

    /// `20011225`, `040506`, `040506.789`, `0405`.
    fn run_together(&mut self, text: &str, known: u32) -> Parse<u32> {
        let mut digits = text;
        if let Some(point) = text.find('.') {
            let mut fraction = 0;
            let mut rest = text[point + 1..].bytes();
            for _ in 0..6 {
                let digit = rest.next().unwrap_or(b'0');
                if !digit.is_ascii_digit() {
                    return Err(Fault::Format);
                }
                fraction = fraction * 10 + i32::from(digit - b'0');
            }
            self.fraction = fraction;
            digits = &text[..point];
        }
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        let number = |from: usize, to: usize| -> Parse<i32> {
            digits[from..to].parse().map_err(|_| Fault::Field)
        };
        let length = digits.len();
        let has_point = digits.len() != text.len();
        if !has_point && known & field::DATE != field::DATE && length >= 6 {
            self.day = number(length - 2, length)?;
            self.month = number(length - 4, length - 2)?;
            self.year = number(0, length - 4)?;
            self.two_digits = length == 6;
            return Ok(field::DATE);
        }
        if known & field::TIME != field::TIME {
            match length {
                6 => {
                    self.hour = i64::from(number(0, 2)?);
                    self.minute = number(2, 4)?;
                    self.second = number(4, 6)?;
                    return Ok(field::TIME);
                }
                4 => {
                    self.hour = i64::from(number(0, 2)?);
                    self.minute = number(2, 4)?;
                    self.second = 0;
                    return Ok(field::TIME);
                }
                _ => {}
            }
        }
        Err(Fault::Format)
    }

    fn overflows(&self) -> bool {
        let sound = (0..=24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=1_000_000).contains(&self.fraction);
        !sound || self.micros() > MICROS_PER_DAY
    }

    fn micros(&self) -> i64 {
        self.hour * MICROS_PER_HOUR
            + i64::from(self.minute) * MICROS_PER_MINUTE
            + i64::from(self.second) * MICROS_PER_SECOND
            + i64::from(self.fraction)
    }

    /// The last checks of a date.
    fn check_date(&mut self) -> Parse<()> {
        if self.has(field::YEAR) && !self.is_julian {
            if self.before_christ {
                if self.year <= 0 {
                    return Err(Fault::Field);
                }
                self.year = 1 - self.year;
            } else if self.two_digits {
                match self.year {
                    ..0 => return Err(Fault::Field),
                    0..70 => self.year += 2000,
                    70..100 => self.year += 1900,
                    _ => {}
                }
            } else if self.year <= 0 {
                return Err(Fault::Field);
            }
        }
        if self.has(field::YEAR_DAY) {
            let first = Day {
                year: self.year,
                month: 1,
                day: 1,
            };
            let day = Day::of_number(first.number() + i64::from(self.year_day) - 1);
            (self.year, self.month, self.day) = (day.year, day.month, day.day);
        }
        if self.has(field::MONTH) && !(1..=12).contains(&self.month) {
            return Err(Fault::MonthOrDay);
        }
        if self.has(field::DAY) && !(1..=31).contains(&self.day) {
            return Err(Fault::MonthOrDay);
        }
        if self.has(field::DATE) && self.day > days_in_month(self.year, self.month) {
            return Err(Fault::Field);
        }
        Ok(())
    }

    fn check_half_day(&mut self) -> Parse<()> {
        match self.after_noon {
            Some(_) if self.hour > 12 => return Err(Fault::Field),
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        Ok(())
    }
}

/// Reads the form that programs write, `2024-01-02 03:04:05.678+02:00`, time and offset left out
/// perhaps. `None` for anything else, wrong fields included.
fn parse_iso(text: &str) -> Option<Parsed> {
    let bytes = text.as_bytes();
    let digits = |from: usize, count: usize| -> Option<i32> {
        bytes
            .get(from..from + count)?
            .iter()
            .try_fold(0, |value, byte| {
                byte.is_ascii_digit()
                    .then(|| value * 10 + i32::from(byte - b'0'))
            })
    };
    let mark = |at: usize, wanted: u8| (bytes.get(at) == Some(&wanted)).then_some(());
    mark(4, b'-')?;
    mark(7, b'-')?;
    let day = Day {
        year: digits(0, 4)?,
        month: digits(5, 2)?,
        day: digits(8, 2)?,
    };
    if day.year == 0 || !day.is_real() {
        return None;
    }
    let mut parsed = Parsed {
        moment: Moment::Fields,
        day,
        micros: 0,
        zone: None,
    };
    if bytes.len() == 10 {
        return Some(parsed);
    }
    if !matches!(bytes[10], b' ' | b'T') {
        return None;
    }
    mark(13, b':')?;
    mark(16, b':')?;
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut at = 19;
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        let count = bytes[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if !(1..=6).contains(&count) {
            return None;
        }
        fraction = i64::from(digits(at + 1, count)?) * 10i64.pow(6 - count as u32);
        at += 1 + count;
    }
    parsed.micros = i64::from(hour) * MICROS_PER_HOUR
        + i64::from(minute) * MICROS_PER_MINUTE
        + i64::from(second) * MICROS_PER_SECOND
        + fraction;
    parsed.zone = match (bytes.get(at), bytes.len() - at) {
        (None, _) => None,
        (Some(b'Z'), 1) => Some(Zone::Offset(0)),
        (Some(b'+' | b'-'), 3 | 6) => Some(Zone::Offset(displacement(&text[at..]).ok()?)),
        _ => return None,
    };
    Some(parsed)
}

/// Reads text as what `goal` says.
pub(super) fn parse(text: &str, goal: Goal, settings: &Settings) -> Parse<Parsed> {
    if goal == Goal::DateTime
        && let Some(parsed) = parse_iso(text)
    {
        return Ok(parsed);
    }
    let tokens = tokenize(text)?;
    let mut parser = Parser {
        settings,
        goal,
        fields: 0,
        year: 0,
        month: 0,
        day: 0,
        year_day: 0,
        hour: 0,
        minute: 0,
        second: 0,
        fraction: 0,
        zone: None,
        daylight: false,
        after_noon: None,
        before_christ: false,
        two_digits: false,
        is_julian: false,
        text_month: false,
        unit: None,
        moment: Moment::Fields,
    };
    parser.tokens(&tokens)?;
    if parser.moment == Moment::Fields {
        parser.check_date()?;
        parser.check_half_day()?;
    }
    let day = Day {
        year: parser.year,
        month: parser.month,
        day: parser.day,
    };
    match goal {
        Goal::DateTime => {
            if parser.moment == Moment::Fields && !parser.has(field::DATE) {
                return Err(Fault::Format);
            }
            if parser.daylight && !parser.has(field::ZONE) {
                return Err(Fault::Format);
            }
        }
        Goal::Time => {
            if parser.overflows() {
                return Err(Fault::Field);
            }
            if !parser.has(field::TIME) {
                return Err(Fault::Format);
            }
            // A zone with rules has an offset only on a day.
            let has_rules =
                |zone: &Zone| matches!(zone, Zone::Named(zone) if !zone.is_abbreviated());
            if parser.zone.as_ref().is_some_and(has_rules) && !parser.has(field::DATE) {
                return Err(Fault::Format);
            }
        }
    }
    Ok(Parsed {
        moment: parser.moment,
        day,
        micros: parser.micros(),
        zone: parser.zone,
    })
}
