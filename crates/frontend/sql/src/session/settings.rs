//! SET and SHOW: the settings of a session.

use crate::error::{Result, SqlError};
use crate::session::transaction::Characteristics;
use crate::sqlstate;
use std::collections::{BTreeMap, BTreeSet};
use vellum_row::datetime::TimeZone;
use vellum_row::{ByteaOutput, DateOrder, DateStyle, IntervalStyle, Settings as Forms};

/// A setting that there is.
struct Known {
    name: &'static str,
    default: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bool,
    /// With a unit of milliseconds where none is given.
    Milliseconds,
    Kilobytes,
    Integer,
    /// Cannot be set.
    Fixed,
}

const fn known(name: &'static str, default: &'static str, kind: Kind) -> Known {
    Known {
        name,
        default,
        kind,
    }
}

/// Units of times in milliseconds, the largest first.
const TIMES: [(u64, &str); 5] = [
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "min"),
    (1000, "s"),
    (1, "ms"),
];
/// Units of sizes in kilobytes.
const SIZES: [(u64, &str); 4] = [(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB"), (1, "kB")];

const KNOWN: [Known; 52] = [
    known("application_name", "", Kind::Text),
    known("bytea_output", "hex", Kind::Text),
    known("check_function_bodies", "on", Kind::Bool),
    known("client_encoding", "UTF8", Kind::Text),
    known("client_min_messages", "notice", Kind::Text),
    known("datestyle", "ISO, MDY", Kind::Text),
    // Circles of waits are found when they close, whatever this says.
    known("deadlock_timeout", "1000", Kind::Milliseconds),
    known("default_table_access_method", "heap", Kind::Text),
    known("default_tablespace", "", Kind::Text),
    known(
        "default_transaction_isolation",
        "read committed",
        Kind::Text,
    ),
    known("default_transaction_read_only", "off", Kind::Bool),
    // What PostgreSQL's planner and scans are told: clients set these, and here they say nothing.
    known("enable_bitmapscan", "on", Kind::Bool),
    known("enable_hashagg", "on", Kind::Bool),
    known("enable_hashjoin", "on", Kind::Bool),
    known("enable_indexonlyscan", "on", Kind::Bool),
    known("enable_indexscan", "on", Kind::Bool),
    known("enable_material", "on", Kind::Bool),
    known("enable_memoize", "on", Kind::Bool),
    known("enable_mergejoin", "on", Kind::Bool),
    known("enable_nestloop", "on", Kind::Bool),
    known("enable_seqscan", "on", Kind::Bool),
    known("enable_sort", "on", Kind::Bool),
    known("jit", "on", Kind::Bool),
    known("synchronize_seqscans", "on", Kind::Bool),
    known("extra_float_digits", "1", Kind::Integer),
    known(
        "idle_in_transaction_session_timeout",
        "0",
        Kind::Milliseconds,
    ),
    known("idle_session_timeout", "0", Kind::Milliseconds),
    known("in_hot_standby", "off", Kind::Fixed),
    known("integer_datetimes", "on", Kind::Fixed),
    known("intervalstyle", "postgres", Kind::Text),
    known("is_superuser", "on", Kind::Fixed),
    known("lc_collate", "C", Kind::Fixed),
    known("lc_ctype", "C", Kind::Fixed),
    known("lock_timeout", "0", Kind::Milliseconds),
    known("max_identifier_length", "63", Kind::Fixed),
    known("max_index_keys", "32", Kind::Fixed),
    known("role", "none", Kind::Fixed),
    known("row_security", "on", Kind::Bool),
    known("search_path", "\"$user\", public", Kind::Text),
    known("server_encoding", "UTF8", Kind::Fixed),
    known("server_version", "15.0", Kind::Fixed),
    known("server_version_num", "150000", Kind::Fixed),
    known("session_authorization", "", Kind::Fixed),
    known("standard_conforming_strings", "on", Kind::Fixed),
    known("statement_timeout", "0", Kind::Milliseconds),
    known("synchronous_commit", "on", Kind::Text),
    known("timezone", "UTC", Kind::Text),
    known("transaction_isolation", "", Kind::Text),
    known("transaction_read_only", "off", Kind::Bool),
    known("work_mem", "65536", Kind::Kilobytes),
    known("xmloption", "content", Kind::Text),
    known("maintenance_work_mem", "65536", Kind::Kilobytes),
];

/// A setting as `pg_settings` tells it.
pub(crate) struct Described {
    pub name: &'static str,
    pub value: String,
    pub default: &'static str,
    pub unit: Option<&'static str>,
    /// `vartype`.
    pub kind: &'static str,
    /// Cannot be set.
    pub fixed: bool,
    /// Set in this session.
    pub changed: bool,
}

/// Settings that a client is told of when they change, under the names that it knows.
const REPORTED: [(&str, &str); 13] = [
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("datestyle", "DateStyle"),
    (
        "default_transaction_read_only",
        "default_transaction_read_only",
    ),
    ("in_hot_standby", "in_hot_standby"),
    ("integer_datetimes", "integer_datetimes"),
    ("intervalstyle", "IntervalStyle"),
    ("is_superuser", "is_superuser"),
    ("server_encoding", "server_encoding"),
    ("server_version", "server_version"),
    ("session_authorization", "session_authorization"),
    ("standard_conforming_strings", "standard_conforming_strings"),
    ("timezone", "TimeZone"),
];

/// The settings of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionSettings {
    values: BTreeMap<String, String>,
    /// What forms of values follow from them.
    pub forms: Forms,
    often: Often,
}

/// What each statement asks for, read once.
#[derive(Clone, Copy, Debug, Default)]
struct Often {
    numbers: [u64; OFTEN.len()],
    defaults: Characteristics,
}

/// The settings that are numbers and asked for by each statement or message.
const OFTEN: [&str; 5] = [
    "statement_timeout",
    "lock_timeout",
    "work_mem",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
];

impl SessionSettings {
    pub fn new(user: &str) -> Self {
        let mut values = BTreeMap::new();
        values.insert("session_authorization".to_owned(), user.to_owned());
        let mut settings = Self {
            values,
            forms: Forms::default(),
            often: Often::default(),
        };
        settings.read_often();
        settings
    }

    fn read_often(&mut self) {
        self.often.numbers = OFTEN.map(|name| self.parsed(name));
        let level = self.get("default_transaction_isolation");
        self.often.defaults = Characteristics {
            repeatable: level.is_ok_and(|level| level.eq_ignore_ascii_case("repeatable read")),
            read_only: self.is_on("default_transaction_read_only"),
            asynchronous: self
                .get("synchronous_commit")
                .is_ok_and(|value| value == "off"),
        };
    }

    /// What a transaction is that says nothing of it.
    pub fn characteristics(&self) -> Characteristics {
        self.often.defaults
    }

    /// The value of a setting.
    ///
    /// # Errors
    /// `42704`.
    pub fn get(&self, name: &str) -> Result<String> {
        let name = name.to_lowercase();
        if let Some(value) = self.values.get(&name) {
            return Ok(value.clone());
        }
        match KNOWN.iter().find(|known| known.name == name) {
            Some(known) => Ok(known.default.to_owned()),
            None => Err(unknown(&name)),
        }
    }

    /// The value of a setting as SHOW tells it: times and sizes in the largest unit that leaves a whole number.
    ///
    /// # Errors
    /// `42704`.
    pub fn shown(&self, name: &str) -> Result<String> {
        let value = self.get(name)?;
        let known = KNOWN
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name));
        let units: &[(u64, &str)] = match known.map(|known| known.kind) {
            Some(Kind::Milliseconds) => &TIMES,
            Some(Kind::Kilobytes) => &SIZES,
            _ => return Ok(value),
        };
        let number: u64 = value.parse().unwrap_or(0);
        let mut fits = units
            .iter()
            .filter(|(unit, _)| number.is_multiple_of(*unit));
        Ok(match fits.next() {
            Some((unit, name)) if number > 0 => format!("{}{name}", number / unit),
            _ => value,
        })
    }

    /// The value of a setting that was given one.
    pub fn given(&self, name: &str) -> Option<String> {
        self.values.get(&name.to_lowercase()).cloned()
    }

    /// What `is_superuser` says.
    pub fn is_superuser(&mut self, yes: bool) {
        self.fix("is_superuser", if yes { "on" } else { "off" });
    }

    /// Says what a setting is that SET cannot change.
    pub fn fix(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
        self.read_often();
    }

    /// A number of milliseconds, kilobytes or nothing.
    pub fn number(&self, name: &str) -> u64 {
        let known = OFTEN.iter().position(|often| *often == name);
        known.map_or_else(|| self.parsed(name), |at| self.often.numbers[at])
    }

    fn parsed(&self, name: &str) -> u64 {
        self.get(name)
            .ok()
            .and_then(|value| value.parse().ok())
            .unwrap_or(0)
    }

    /// Whether it is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_ok_and(|value| value == "on")
    }

    /// Sets it; `None`: back to its default. Returns the name under which a client is told, if it is.
    ///
    /// # Errors
    /// `42704`, `22023`, `55P02`.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<Option<&'static str>> {
        let name = name.to_lowercase();
        // Settings of programs have a point in their name.
        let known = KNOWN.iter().find(|known| known.name == name);
        if known.is_none() && !name.contains('.') {
            return Err(unknown(&name));
        }
        let kind = known.map_or(Kind::Text, |known| known.kind);
        // The one way in which it can be set is the one in which it stands: `pg_dump` says so.
        let stands = name == "standard_conforming_strings"
            && value
                .is_none_or(|value| matches!(&*value.to_lowercase(), "on" | "true" | "yes" | "1"));
        if stands {
            return Ok(None);
        }
        if kind == Kind::Fixed {
            let message = format!("parameter \"{name}\" cannot be changed");
            return Err(SqlError::new(sqlstate::CANT_CHANGE_RUNTIME_PARAM, message));
        }
        let text = match value {
            Some(value) => Some(checked(&name, kind, value)?),
            None => None,
        };
        let before = self.values.clone();
        match text {
            Some(text) => self.values.insert(name.clone(), text),
            // One of a program is known from then on.
            None if known.is_none() => self.values.insert(name.clone(), String::new()),
            None => self.values.remove(&name),
        };
        if let Err(error) = self.apply(&name) {
            self.values = before;
            return Err(error);
        }
        self.read_often();
        let reported = REPORTED.iter().find(|(own, _)| *own == name);
        Ok(reported.map(|(_, shown)| *shown))
    }

    /// What a client is told when it connects.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        REPORTED
            .iter()
            .map(|(name, shown)| (*shown, self.get(name).unwrap_or_default()))
            .collect()
    }

    /// All of them in order, with what `pg_settings` tells.
    pub fn described(&self) -> Vec<Described> {
        let mut all: Vec<Described> = KNOWN
            .iter()
            .map(|known| {
                let value = self.values.get(known.name);
                Described {
                    name: known.name,
                    value: value.cloned().unwrap_or_else(|| known.default.to_owned()),
                    default: known.default,
                    unit: match known.kind {
                        Kind::Milliseconds => Some("ms"),
                        Kind::Kilobytes => Some("kB"),
                        _ => None,
                    },
                    kind: match known.kind {
                        Kind::Bool => "bool",
                        Kind::Milliseconds | Kind::Kilobytes | Kind::Integer => "integer",
                        Kind::Text | Kind::Fixed => "string",
                    },
                    fixed: known.kind == Kind::Fixed,
                    changed: value.is_some(),
                }
            })
            .collect();
        all.sort_by_key(|setting| setting.name);
        all
    }

    /// Those that were given a value and that SET can change.
    pub fn changeable(&self) -> Vec<String> {
        let is_fixed = |name: &str| {
            let mut known = KNOWN.iter();
            known.any(|known| known.name == name && known.kind == Kind::Fixed)
        };
        let names = self.values.keys().filter(|name| !is_fixed(name));
        names.cloned().collect()
    }

    /// All of them, in order.
    pub fn all(&self) -> Vec<(String, String)> {
        let known = KNOWN.iter().map(|known| known.name);
        let names: BTreeSet<&str> = known
            .chain(self.values.keys().map(String::as_str))
            .collect();
        let shown = |name: &str| self.shown(name).unwrap_or_default();
        names
            .into_iter()
            .map(|name| (name.to_owned(), shown(name)))
            .collect()
    }

    fn apply(&mut self, name: &str) -> Result<()> {
        let value = self.get(name).unwrap_or_default();
        let invalid = || {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
        };
        match name {
            "timezone" => {
                let zone = match seconds_east(&value)? {
                    None => TimeZone::named(&value),
                    Some(seconds) => {
                        let name = zone_of(seconds).ok_or_else(invalid)?;
                        self.values.insert("timezone".to_owned(), name.clone());
                        TimeZone::named(&name).or_else(|| Some(TimeZone::fixed(seconds)))
                    }
                };
                self.forms.time_zone = zone.ok_or_else(invalid)?;
            }
            "datestyle" => {
                for word in value.split(',') {
                    match word.trim().to_lowercase().as_str() {
                        "iso" => self.forms.date_style = DateStyle::Iso,
                        "sql" => self.forms.date_style = DateStyle::Sql,
                        "postgres" => self.forms.date_style = DateStyle::Postgres,
                        "german" => self.forms.date_style = DateStyle::German,
                        "mdy" | "us" => self.forms.date_order = DateOrder::Mdy,
                        "dmy" | "european" => self.forms.date_order = DateOrder::Dmy,
                        "ymd" => self.forms.date_order = DateOrder::Ymd,
                        _ => return Err(invalid()),
                    }
                }
            }
            "intervalstyle" => {
                self.forms.interval_style = match value.to_lowercase().as_str() {
                    "postgres" => IntervalStyle::Postgres,
                    "postgres_verbose" => IntervalStyle::PostgresVerbose,
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => return Err(invalid()),
                };
            }
            "bytea_output" => {
                self.forms.bytea_output = match value.to_lowercase().as_str() {
                    "hex" => ByteaOutput::Hex,
                    "escape" => ByteaOutput::Escape,
                    _ => return Err(invalid()),
                };
            }
            "extra_float_digits" => {
                let digits: i32 = value.parse().map_err(|_| invalid())?;
                if !(-15..=3).contains(&digits) {
                    return Err(invalid());
                }
                self.forms.extra_float_digits = digits;
            }
            "client_encoding" => {
                let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
                if !matches!(plain.to_lowercase().as_str(), "utf8" | "unicode") {
                    return Err(SqlError::unsupported(format!("the encoding {value}")));
                }
                // However it was written, clients are told its name.
                self.values.insert(name.to_owned(), "UTF8".to_owned());
            }
            "default_transaction_isolation" | "transaction_isolation" => {
                match value.to_lowercase().as_str() {
                    "read committed" | "read uncommitted" | "repeatable read" => {}
                    "serializable" => return Err(super::transaction::no_serializable()),
                    _ => return Err(invalid()),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Seconds east of Greenwich, if a time zone is said by hours or by an interval.
///
/// # Errors
/// `22023` for an interval of days or months.
fn seconds_east(value: &str) -> Result<Option<i32>> {
    let value = value.trim();
    // What SET TIME ZONE INTERVAL says, as it is written.
    if value
        .get(..8)
        .is_some_and(|word| word.eq_ignore_ascii_case("interval"))
    {
        let mut quotes = value.splitn(3, '\'');
        let text = quotes.nth(1).unwrap_or_default();
        let read = vellum_row::input(
            vellum_row::Type::Interval,
            vellum_row::Typmod::NONE,
            text,
            &Forms::default(),
        )?;
        let vellum_row::Value::Interval(interval) = read else {
            return Err(SqlError::internal("no interval"));
        };
        let what = match (interval.months, interval.days) {
            (0, 0) => return Ok(i32::try_from(interval.micros / 1_000_000).ok()),
            (0, _) => "days",
            _ => "months",
        };
        let message = format!("invalid value for parameter \"TimeZone\": \"{value}\"");
        return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
            .with_detail(format!("Cannot specify {what} in time zone interval.")));
    }
    let hours: Option<f64> = value.parse().ok();
    let hours = hours.filter(|hours| hours.is_finite());
    Ok(hours.map(|hours| (hours * 3600.0) as i32))
}

/// The name of a zone that is so far east, as a POSIX rule, whose sign is the other way round; `None` if none is.
fn zone_of(seconds: i32) -> Option<String> {
    const HOURS_MAX: u32 = 24 * 7;
    let far = seconds.unsigned_abs();
    let (hours, minutes, rest) = (far / 3600, far / 60 % 60, far % 60);
    let mut name = format!("{hours:02}");
    if minutes > 0 || rest > 0 {
        name.push_str(&format!(":{minutes:02}"));
    }
    if rest > 0 {
        name.push_str(&format!(":{rest:02}"));
    }
    let (own, other) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
    (hours < HOURS_MAX).then(|| format!("<{own}{name}>{other}{name}"))
}

fn checked(name: &str, kind: Kind, value: &str) -> Result<String> {
    let invalid = || {
        let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
        SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
    };
    Ok(match kind {
        Kind::Text | Kind::Fixed => value.to_owned(),
        Kind::Bool => match value.to_lowercase().as_str() {
            "on" | "true" | "yes" | "1" | "t" | "y" => "on".to_owned(),
            "off" | "false" | "no" | "0" | "f" | "n" => "off".to_owned(),
            _ => {
                let message = format!("parameter \"{name}\" requires a Boolean value");
                return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
            }
        },
        Kind::Integer => {
            let number: i64 = value.parse().map_err(|_| invalid())?;
            number.to_string()
        }
        Kind::Milliseconds | Kind::Kilobytes => {
            let digits = value.trim_end_matches(|char: char| !char.is_ascii_digit());
            let number: u64 = digits.parse().map_err(|_| invalid())?;
            let unit = value[digits.len()..].trim();
            let factor = match (kind, unit) {
                (_, "") | (Kind::Milliseconds, "ms") | (Kind::Kilobytes, "kB") => 1,
                (Kind::Milliseconds, "s") => 1000,
                (Kind::Milliseconds, "min") => 60_000,
                (Kind::Milliseconds, "h") => 3_600_000,
                (Kind::Milliseconds, "d") => 86_400_000,
                (Kind::Kilobytes, "MB") => 1024,
                (Kind::Kilobytes, "GB") => 1024 * 1024,
                _ => return Err(invalid()),
            };
            number.checked_mul(factor).ok_or_else(invalid)?.to_string()
        }
    })
}

#[cold]
fn unknown(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}
