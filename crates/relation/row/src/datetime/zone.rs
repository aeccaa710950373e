//! Time zones: the offset of an instant, and of a time on the wall.
//!
//! The rules are those of the IANA database that is built into the program, so that two machines with
//! the same data agree. Rules repeat every 400 years as the calendar does; an instant outside of the
//! library's range is looked up in a year of the same form.
//!
//! On the wall a time may not exist (clocks were put forward) or exist twice (put back). The first is
//! read with the offset before the change, the second with the one after it: both are standard time.

use super::calendar::{DAYS_PER_400_YEARS, UNIX_EPOCH_DAYS};
use super::{Day, MICROS_PER_DAY, MICROS_PER_SECOND, Timestamp};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZoneDatabase};
use std::sync::{Arc, OnceLock};

/// A time zone. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TimeZone(Zone);

#[derive(Clone, Debug)]
enum Zone {
    /// Seconds east of Greenwich.
    Fixed(i32),
    Posix(Arc<Posix>),
    Named(Arc<Named>),
}

/// A POSIX rule without summer time.
#[derive(Debug)]
struct Posix {
    name: String,
    /// What its clocks are called: may be empty.
    abbreviation: String,
    /// Seconds east of Greenwich.
    seconds: i32,
}

#[derive(Debug)]
struct Named {
    name: String,
    rules: jiff::tz::TimeZone,
    /// What its clocks are called, if that is all that is known of the offset.
    abbreviation: Option<&'static str>,
}

/// Changes of a zone's clocks that are looked through for an abbreviation.
const CHANGES_MAX: usize = 1000;

impl Named {
    /// The offset at an instant: the one that the abbreviation had last, or will have first; the zone's own if it has none.
    fn offset_at(&self, instant: jiff::Timestamp) -> i32 {
        let own = || self.rules.to_offset(instant).seconds();
        let Some(abbreviation) = self.abbreviation else {
            return own();
        };
        let is = |change: &jiff::tz::TimeZoneTransition<'_>| change.abbreviation() == abbreviation;
        // A change at the instant has come.
        let behind = jiff::Timestamp::from_second(instant.as_second().saturating_add(1));
        let behind = behind.unwrap_or(instant);
        let before = self.rules.preceding(behind).take(CHANGES_MAX).find(is);
        let found = before.or_else(|| self.rules.following(instant).take(CHANGES_MAX).find(is));
        found.map_or_else(own, |change| change.offset().seconds())
    }
}

/// Where the clock of a zone stands, and what people call it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offset {
    /// Seconds east of Greenwich.
    pub seconds: i32,
    /// `CET`, `CEST`; `None` if the zone is just an offset.
    pub abbreviation: Option<String>,
    /// Whether that is summer time.
    pub is_dst: bool,
}

fn database() -> &'static TimeZoneDatabase {
    static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
    DATABASE.get_or_init(TimeZoneDatabase::bundled)
}

/// Days that a day must be moved by, in whole calendar cycles, to come into the library's years.
fn cycles(day: i64) -> i64 {
    // 1600-01-01 .. 2400-01-01 holds every rule there was; years outside of -9000 .. 9000 are moved.
    let year = i64::from(Day::of_number(day).year);
    if (-9000..=9000).contains(&year) {
        0
    } else {
        -((year - 2000).div_euclid(400)) * DAYS_PER_400_YEARS
    }
}

impl TimeZone {
    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self::named("UTC").unwrap_or(Self(Zone::Fixed(0)))
    }

    /// A zone that is so many seconds east of Greenwich all year.
    pub fn fixed(seconds_east: i32) -> Self {
        Self(Zone::Fixed(seconds_east))
    }

    /// The zone of this name, upper or lower case: one of the IANA database (`Europe/Berlin`) or a
    /// POSIX rule (`EST5EDT`, `<+03>-3`, `-10:30`), whose sign is positive to the west. `None` if there
    /// is none.
    pub fn named(name: &str) -> Option<Self> {
        if let Ok(rules) = database().get(name) {
            let name = rules.iana_name().unwrap_or(name).to_owned();
            return Some(Self::ruled(name, rules, None));
        }
        let is_rule = name.len() < 100 && name.bytes().any(|byte| byte.is_ascii_digit());
        if !is_rule {
            return None;
        }
        // A rule is known by its capitals, as no database has its spelling.
        let name = name.to_ascii_uppercase();
        if let Some((abbreviation, seconds)) = posix_offset(&name) {
            let abbreviation = abbreviation.to_owned();
            return Some(Self(Zone::Posix(Arc::new(Posix {
                name,
                abbreviation,
                seconds,
            }))));
        }
        let rules = jiff::tz::TimeZone::posix(&name).ok()?;
        Some(Self::ruled(name, rules, None))
    }

    fn ruled(name: String, rules: jiff::tz::TimeZone, abbreviation: Option<&'static str>) -> Self {
        Self(Zone::Named(Arc::new(Named {
            name,
            rules,
            abbreviation,
        })))
    }

    /// A zone of the IANA database by an abbreviation of its clocks (`MSK`): at any time the offset is the one that they had last while they were called
    /// that, or else the zone's own. `None` if there is no such zone.
    pub(super) fn abbreviated(name: &str, abbreviation: &'static str) -> Option<Self> {
        let rules = database().get(name).ok()?;
        Some(Self::ruled(name.to_owned(), rules, Some(abbreviation)))
    }

    /// Whether it was named by an abbreviation.
    pub(super) fn is_abbreviated(&self) -> bool {
        matches!(&self.0, Zone::Named(named) if named.abbreviation.is_some())
    }

    /// Whether its clocks show whole minutes when those of Greenwich do: none else is a session's zone.
    pub fn has_whole_minutes(&self) -> bool {
        self.offset_at(Timestamp(0)) % 60 == 0
    }

    /// The zone's name; for a fixed one the POSIX rule for it (`<+03>-03`).
    pub fn name(&self) -> String {
        match &self.0 {
            Zone::Named(named) => named.name.clone(),
            Zone::Posix(posix) => posix.name.clone(),
            Zone::Fixed(seconds) => {
                let mut east = String::new();
                super::write::write_zone(*seconds, false, &mut east);
                let mut west = String::new();
                super::write::write_zone(-*seconds, false, &mut west);
                let west = if *seconds == 0 { "+00" } else { &west };
                format!("<{east}>{west}")
            }
        }
    }

    /// The names of all zones of the IANA database, in order.
    pub fn names() -> Vec<String> {
        let names = database().available();
        let mut names: Vec<String> = names.map(|name| name.as_str().to_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Seconds east of Greenwich at an instant.
    pub fn offset_at(&self, instant: Timestamp) -> i32 {
        match &self.0 {
            Zone::Fixed(seconds) => *seconds,
            Zone::Posix(posix) => posix.seconds,
            Zone::Named(named) => match jiff_instant(instant) {
                Some(instant) => named.offset_at(instant),
                None => 0,
            },
        }
    }

    /// Offset and abbreviation at an instant.
    pub fn offset_info_at(&self, instant: Timestamp) -> Offset {
        match &self.0 {
            Zone::Fixed(seconds) => Offset {
                seconds: *seconds,
                abbreviation: None,
                is_dst: false,
            },
            Zone::Posix(posix) => Offset {
                seconds: posix.seconds,
                abbreviation: Some(posix.abbreviation.clone()),
                is_dst: false,
            },
            Zone::Named(named) => match jiff_instant(instant) {
                Some(instant) => {
                    let info = named.rules.to_offset_info(instant);
                    Offset {
                        seconds: info.offset().seconds(),
                        abbreviation: Some(info.abbreviation().to_owned()),
                        is_dst: info.dst().is_dst(),
                    }
                }
                None => Offset {
                    seconds: 0,
                    abbreviation: None,
                    is_dst: false,
                },
            },
        }
    }

    /// Seconds east of Greenwich when clocks in this zone show `wall` (microseconds since
    /// 2000-01-01 00:00 there).
    pub fn offset_of_wall(&self, wall: i64) -> i32 {
        let named = match &self.0 {
            Zone::Fixed(seconds) => return *seconds,
            Zone::Posix(posix) => return posix.seconds,
            Zone::Named(named) => named,
        };
        let day = wall.div_euclid(MICROS_PER_DAY);
        let Some(time) = jiff_wall(day + cycles(day), wall.rem_euclid(MICROS_PER_DAY)) else {
            return 0;
        };
        let own = match named.rules.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
            AmbiguousOffset::Gap { before, .. } => before.seconds(),
            AmbiguousOffset::Fold { after, .. } => after.seconds(),
        };
        if named.abbreviation.is_none() {
            return own;
        }
        let instant = wall.saturating_sub(i64::from(own) * MICROS_PER_SECOND);
        jiff_instant(Timestamp(instant)).map_or(own, |instant| named.offset_at(instant))
    }

    /// What a clock in this zone shows at an instant.
    pub fn wall(&self, instant: Timestamp) -> i64 {
        let offset = i64::from(self.offset_at(instant)) * MICROS_PER_SECOND;
        instant.0.saturating_add(offset)
    }

    /// The instant at which a clock in this zone shows `wall`; `None` if it is beyond 64 bits.
    pub fn instant(&self, wall: i64) -> Option<i64> {
        wall.checked_sub(i64::from(self.offset_of_wall(wall)) * MICROS_PER_SECOND)
    }
}

/// The abbreviation and the seconds east of a POSIX rule without summer time: letters, or anything in angle brackets,
/// and an offset to the west. PostgreSQL takes fewer letters than POSIX wants, even none, and offsets below a week.
fn posix_offset(rule: &str) -> Option<(&str, i32)> {
    let (abbreviation, offset) = match rule.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?,
        None => {
            let offset = rule.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            (&rule[..rule.len() - offset.len()], offset)
        }
    };
    let (sign, offset) = match offset.as_bytes().first()? {
        b'-' => (1, &offset[1..]),
        b'+' => (-1, &offset[1..]),
        _ => (-1, offset),
    };
    let mut seconds = 0;
    let mut parts = offset.split(':');
    for (unit, largest) in [(3600, 167), (60, 59), (1, 59)] {
        let Some(part) = parts.next() else { break };
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let value: i32 = part.parse().ok().filter(|value| *value <= largest)?;
        seconds += value * unit;
    }
    parts
        .next()
        .is_none()
        .then_some((abbreviation, sign * seconds))
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Zone::Fixed(a), Zone::Fixed(b)) => a == b,
            (Zone::Posix(a), Zone::Posix(b)) => a.name == b.name,
            (Zone::Named(a), Zone::Named(b)) => {
                (&a.name, a.abbreviation) == (&b.name, b.abbreviation)
            }
            _ => false,
        }
    }
}

fn jiff_instant(instant: Timestamp) -> Option<jiff::Timestamp> {
    let day = instant.0.div_euclid(MICROS_PER_DAY);
    let day = day + cycles(day) + i64::from(UNIX_EPOCH_DAYS);
    let seconds = day * 86_400 + instant.0.rem_euclid(MICROS_PER_DAY) / MICROS_PER_SECOND;
    jiff::Timestamp::from_second(seconds).ok()
}

fn jiff_wall(day: i64, micros: i64) -> Option<DateTime> {
    let Day { year, month, day } = Day::of_number(day);
    let second = micros / MICROS_PER_SECOND;
    DateTime::new(
        i16::try_from(year).ok()?,
        month as i8,
        day as i8,
        (second / 3600) as i8,
        (second / 60 % 60) as i8,
        (second % 60) as i8,
        0,
    )
    .ok()
}
