//! Patterns of dates and times: `to_char` of them; [`nodes`] are what `to_date` and `to_timestamp` read by, too.

use super::fault;
use crate::error::Result;
use vellum_row::datetime::calendar::{EPOCH_JULIAN, day_of_year, iso_week, weekday};
use vellum_row::datetime::{
    Day, Interval, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, Offset,
    Timestamp,
};

/// A piece of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// The text itself.
    Text { char: char, quoted: bool },
    Field {
        /// The key word, in capitals.
        name: &'static str,
        case: Case,
        /// Without padding.
        fill: bool,
        /// With the ending of an ordinal number.
        ordinal: Option<Case>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    Upper,
    Lower,
    /// The first letter large.
    Title,
}

/// The key words; of those that begin alike the longer one comes first.
const WORDS: [&str; 54] = [
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY",
    "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS",
    "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];

const TITLES: [&str; 4] = ["Day", "Dy", "Month", "Mon"];

fn word_at(rest: &str) -> Option<(&'static str, Case)> {
    let begins = |word: &str| rest.get(..word.len());
    for word in WORDS {
        let Some(own) = begins(word) else { continue };
        if own == word {
            return Some((word, Case::Upper));
        }
        if own == word.to_lowercase() {
            return Some((word, Case::Lower));
        }
        if TITLES.contains(&own) && own.eq_ignore_ascii_case(word) {
            return Some((word, Case::Title));
        }
    }
    None
}

/// The pieces of a pattern.
pub(super) fn nodes(pattern: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let mut after = rest;
        let mut fill = false;
        while let Some(more) = ["FM", "fm", "TM", "tm"]
            .iter()
            .find_map(|prefix| after.strip_prefix(prefix))
        {
            fill |= after.starts_with(['F', 'f']);
            after = more;
        }
        if let Some((name, case)) = word_at(after) {
            after = &after[name.len()..];
            let mut ordinal = None;
            for (ending, case) in [
                ("TH", Some(Case::Upper)),
                ("th", Some(Case::Lower)),
                ("SP", None),
            ] {
                if let Some(more) = after.strip_prefix(ending) {
                    (ordinal, after) = (case, more);
                    break;
                }
            }
            nodes.push(Node::Field {
                name,
                case,
                fill,
                ordinal,
            });
            rest = after;
            continue;
        }
        if after.len() < rest.len() {
            // A prefix of nothing.
            rest = after;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        if first == '"' {
            let mut chars = rest.char_indices();
            let mut end = rest.len();
            while let Some((at, char)) = chars.next() {
                match char {
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    '\\' => {
                        if let Some((_, char)) = chars.next() {
                            nodes.push(Node::Text { char, quoted: true });
                        }
                    }
                    char => nodes.push(Node::Text { char, quoted: true }),
                }
            }
            rest = &rest[end..];
            continue;
        }
        let char = match (first, rest.chars().next()) {
            ('\\', Some('"')) => {
                rest = &rest[1..];
                '"'
            }
            _ => first,
        };
        nodes.push(Node::Text {
            char,
            quoted: false,
        });
    }
    nodes
}

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
pub(super) const ROMAN: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

/// What is shown.
pub(super) struct Clock {
    year: i32,
    month: i32,
    day: i32,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Of the year, from 1.
    year_day: i32,
    /// Days since 2000-01-01; none of an interval.
    number: Option<i64>,
    zone: Option<Offset>,
}

impl Clock {
    pub fn of_wall(at: Timestamp, zone: Option<Offset>) -> Self {
        let number = at.0.div_euclid(MICROS_PER_DAY);
        let clock = at.0.rem_euclid(MICROS_PER_DAY);
        let day = Day::of_number(number);
        Self {
            year: day.year,
            month: day.month,
            day: day.day,
            hour: clock / MICROS_PER_HOUR,
            minute: clock / MICROS_PER_MINUTE % 60,
            second: clock / MICROS_PER_SECOND % 60,
            micros: clock % MICROS_PER_SECOND,
            year_day: day_of_year(day),
            number: Some(number),
            zone,
        }
    }

    pub fn of_interval(interval: Interval) -> Self {
        let micros = interval.micros;
        Self {
            year: interval.months / 12,
            month: interval.months % 12,
            day: interval.days,
            hour: micros / MICROS_PER_HOUR,
            minute: micros / MICROS_PER_MINUTE % 60,
            second: micros / MICROS_PER_SECOND % 60,
            micros: micros % MICROS_PER_SECOND,
            year_day: interval.months.wrapping_mul(30).wrapping_add(interval.days),
            number: None,
            zone: None,
        }
    }

    /// The year as people count it: none is 0, and those before the first are counted back without a sign.
    fn counted(&self, year: i32) -> i32 {
        if self.number.is_some() && year <= 0 {
            1 - year
        } else {
            year
        }
    }
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Title => text.to_owned(),
    }
}

/// The ending of an ordinal number.
pub(super) fn ending(digits: &str, upper: bool) -> &'static str {
    let bytes = digits.as_bytes();
    let teen = bytes.len() > 1 && bytes[bytes.len() - 2] == b'1';
    let (small, large) = match bytes.last() {
        Some(b'1') if !teen => ("st", "ST"),
        Some(b'2') if !teen => ("nd", "ND"),
        Some(b'3') if !teen => ("rd", "RD"),
        _ => ("th", "TH"),
    };
    if upper { large } else { small }
}

/// A moment in the form of a pattern.
///
/// # Errors
/// `22007` for fields that an interval has not.
pub(super) fn shown(pattern: &str, clock: &Clock) -> Result<String> {
    let mut out = String::new();
    for node in nodes(pattern) {
        match node {
            Node::Text { char, .. } => out.push(char),
            Node::Field {
                name,
                case,
                fill,
                ordinal,
            } => {
                let start = out.len();
                field(name, case, fill, clock, &mut out)?;
                let numeric = out[start..].ends_with(|last: char| last.is_ascii_digit());
                if let (Some(case), true) = (ordinal, numeric) {
                    let ending = ending(&out[start..], case == Case::Upper);
                    out.push_str(ending);
                }
            }
        }
    }
    Ok(out)
}

fn padded(value: i64, width: usize, fill: bool) -> String {
    match (fill, value < 0) {
        (true, _) => value.to_string(),
        // The sign stands in front of as many digits.
        (false, true) => format!("-{:0width$}", -value),
        (false, false) => format!("{value:0width$}"),
    }
}

fn named(name: &str, width: usize, case: Case, fill: bool) -> String {
    let name = cased(name, case);
    if fill { name } else { format!("{name:width$}") }
}

fn field(name: &str, case: Case, fill: bool, clock: &Clock, out: &mut String) -> Result<()> {
    let number = || {
        clock.number.ok_or_else(|| {
            fault(
                "22007",
                "invalid format specification for an interval value",
            )
            .with_hint("Intervals are not tied to specific calendar dates.")
        })
    };
    let month = |names: &[&'static str; 12]| {
        let at = usize::try_from(clock.month - 1).ok();
        at.and_then(|at| names.get(at).copied())
    };
    let short = |name: &'static str| &name[..3];
    let text = match name {
        "A.M." | "P.M." | "AM" | "PM" => {
            let late = clock.hour.rem_euclid(24) >= 12;
            let text = match (name.contains('.'), late) {
                (true, true) => "P.M.",
                (true, false) => "A.M.",
                (false, true) => "PM",
                (false, false) => "AM",
            };
            cased(text, case)
        }
        "A.D." | "B.C." | "AD" | "BC" => {
            number()?;
            let text = match (name.contains('.'), clock.year <= 0) {
                (true, true) => "B.C.",
                (true, false) => "A.D.",
                (false, true) => "BC",
                (false, false) => "AD",
            };
            cased(text, case)
        }
        "HH" | "HH12" => {
            let hour = match clock.hour % 12 {
                0 => 12,
                hour => hour,
            };
            padded(hour, 2, fill)
        }
        "HH24" => padded(clock.hour, 2, fill),
        "MI" => padded(clock.minute, 2, fill),
        "SS" => padded(clock.second, 2, fill),
        "SSSS" | "SSSSS" => ((clock.hour * 60 + clock.minute) * 60 + clock.second).to_string(),
        "MS" => padded(clock.micros / 1000, 3, false),
        "US" | "FF6" => padded(clock.micros, 6, false),
        "FF1" => padded(clock.micros / 100_000, 1, false),
        "FF2" => padded(clock.micros / 10_000, 2, false),
        "FF3" => padded(clock.micros / 1000, 3, false),
        "FF4" => padded(clock.micros / 100, 4, false),
        "FF5" => padded(clock.micros / 10, 5, false),
        "TZ" => {
            number()?;
            let zone = clock.zone.as_ref();
            match zone.map(|zone| (zone.abbreviation.as_deref(), zone.seconds)) {
                None => String::new(),
                Some((Some(name), _)) => cased(
                    name,
                    if case == Case::Lower {
                        case
                    } else {
                        Case::Title
                    },
                ),
                Some((None, seconds)) => offset(seconds, true),
            }
        }
        "TZH" => {
            number()?;
            let seconds = clock.zone.as_ref().map_or(0, |zone| zone.seconds);
            let sign = if seconds < 0 { '-' } else { '+' };
            format!("{sign}{:02}", seconds.abs() / 3600)
        }
        "TZM" => {
            number()?;
            let seconds = clock.zone.as_ref().map_or(0, |zone| zone.seconds);
            format!("{:02}", seconds.abs() / 60 % 60)
        }
        "OF" => {
            number()?;
            offset(clock.zone.as_ref().map_or(0, |zone| zone.seconds), !fill)
        }
        "MONTH" => {
            number()?;
            named(month(&MONTHS).unwrap_or_default(), 9, case, fill)
        }
        "MON" => {
            number()?;
            cased(month(&MONTHS).map_or("", short), case)
        }
        "MM" => padded(i64::from(clock.month), 2, fill),
        "DAY" => named(DAYS[weekday(number()?) as usize], 9, case, fill),
        "DY" => cased(short(DAYS[weekday(number()?) as usize]), case),
        "DDD" => padded(i64::from(clock.year_day), 3, fill),
        "IDDD" => {
            let number = number()?;
            let since_monday = (i64::from(weekday(number)) + 6) % 7;
            let week = i64::from(iso_week(number).1);
            padded((week - 1) * 7 + since_monday + 1, 3, fill)
        }
        "DD" => padded(i64::from(clock.day), 2, fill),
        "D" => (weekday(number()?) + 1).to_string(),
        "ID" => match weekday(number()?) {
            0 => "7".to_owned(),
            day => day.to_string(),
        },
        "WW" => {
            let week = (clock.year_day - 1) / 7 + 1;
            // Here a sign is one of the two characters.
            if fill {
                week.to_string()
            } else {
                format!("{week:02}")
            }
        }
        "IW" => padded(i64::from(iso_week(number()?).1), 2, fill),
        "Q" if clock.month == 0 => String::new(),
        "Q" => ((clock.month - 1) / 3 + 1).to_string(),
        "CC" => {
            let century = match (clock.number, clock.year) {
                (None, year) => year / 100,
                (_, year) if year > 0 => (year - 1) / 100 + 1,
                (_, year) => year / 100 - 1,
            };
            if (-99..=99).contains(&century) {
                padded(i64::from(century), 2, fill)
            } else {
                century.to_string()
            }
        }
        "Y,YYY" => {
            let year = clock.counted(clock.year);
            format!("{},{:03}", year / 1000, year % 1000)
        }
        "YYYY" => padded(i64::from(clock.counted(clock.year)), 4, fill),
        "YYY" => padded(i64::from(clock.counted(clock.year) % 1000), 3, fill),
        "YY" => padded(i64::from(clock.counted(clock.year) % 100), 2, fill),
        "Y" => (clock.counted(clock.year) % 10).to_string(),
        "IYYY" | "IYY" | "IY" | "I" => {
            let year = i64::from(clock.counted(iso_week(number()?).0));
            match name {
                "IYYY" => padded(year, 4, fill),
                "IYY" => padded(year % 1000, 3, fill),
                "IY" => padded(year % 100, 2, fill),
                _ => (year % 10).to_string(),
            }
        }
        "RM" if clock.month == 0 && clock.year == 0 => String::new(),
        "RM" => {
            // Those of an interval: of whole years it is the last one, and what is taken away is counted back from there.
            let month = match (clock.month, clock.year) {
                (0, year) if year < 0 => 1,
                (0, _) => 12,
                (month, _) if month < 0 => month + 13,
                (month, _) => month,
            };
            let at = usize::try_from(month - 1).unwrap_or(0);
            named(ROMAN.get(at).copied().unwrap_or_default(), 4, case, fill)
        }
        "W" => ((clock.day - 1) / 7 + 1).to_string(),
        "J" => (number()? + i64::from(EPOCH_JULIAN)).to_string(),
        _ => String::new(),
    };
    out.push_str(&text);
    Ok(())
}

fn offset(seconds: i32, padded: bool) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    let mut text = if padded {
        format!("{sign}{hours:02}")
    } else {
        format!("{sign}{hours}")
    };
    if minutes > 0 {
        text.push_str(&format!(":{minutes:02}"));
    }
    text
}
