//! SET and SHOW: the settings of a session.

use super::encoding::Encoding;
use super::known_settings::{self, Kind, LEVELS, REPLICATION_ROLE, shown_name};
use super::setting_zone::zone_of;
use super::{date_style, setting_value};
use crate::error::{Result, Severity, SqlError};
use crate::session::transaction::Characteristics;
use crate::sqlstate;
use std::collections::{BTreeMap, BTreeSet};
use vellum_row::{ByteaOutput, IntervalStyle, Settings as Forms};

/// Units of times in milliseconds, the largest first.
pub(super) const TIMES: [(u64, &str); 5] = [
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "min"),
    (1000, "s"),
    (1, "ms"),
];
/// Units of sizes in kilobytes.
pub(super) const SIZES: [(u64, &str); 4] =
    [(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB"), (1, "kB")];

/// Units of times in seconds.
pub(super) const SECONDS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
/// Units of sizes in bytes.
pub(super) const BYTES: [(u64, &str); 5] = [
    (1 << 40, "TB"),
    (1 << 30, "GB"),
    (1 << 20, "MB"),
    (1 << 10, "kB"),
    (1, "B"),
];
/// Units of sizes in pages that are at least as large as one.
pub(super) const PAGES: [(u64, &str); 4] =
    [(1 << 27, "TB"), (1 << 17, "GB"), (1 << 7, "MB"), (1, "8kB")];
const PAGE_KILOBYTES: u64 = 8;

/// A setting as `pg_settings` tells it.
pub(crate) struct Described {
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    pub value: String,
    pub default: &'static str,
    pub unit: Option<&'static str>,
    /// `vartype`.
    pub kind: &'static str,
    /// Who may set it: nobody, a superuser, everybody.
    pub context: &'static str,
    /// What it is at least and at most.
    pub range: Option<(String, String)>,
    /// The words that it can be.
    pub words: Option<&'static [&'static str]>,
    /// Set in this session.
    pub changed: bool,
}

/// Settings that a client is told of when they change.
const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "datestyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "intervalstyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "timezone",
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
    /// `client_min_messages`, by its place among the levels.
    level: usize,
    /// Whether `session_replication_role` is that of a replica.
    replica: bool,
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
    /// Those of a session of this role, where so many sessions may be at a time.
    pub fn new(user: &str, sessions_max: u32) -> Self {
        let mut values = BTreeMap::new();
        values.insert("session_authorization".to_owned(), user.to_owned());
        values.insert("max_connections".to_owned(), sessions_max.to_string());
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
        let least = self.get("client_min_messages").unwrap_or_default();
        // The one that is not told of stands in front of NOTICE.
        let least = if least == "info" { "notice" } else { &*least };
        self.often.level = level(least);
        let role = self.values.get(REPLICATION_ROLE);
        self.often.replica = role.is_some_and(|role| role == "replica");
        let level = self.get("default_transaction_isolation");
        let is = |wanted: &str| {
            let level = level.as_ref();
            level.is_ok_and(|level| level.eq_ignore_ascii_case(wanted))
        };
        self.often.defaults = Characteristics {
            repeatable: is("repeatable read"),
            uncommitted: is("read uncommitted"),
            read_only: self.is_on("default_transaction_read_only"),
            asynchronous: self
                .get("synchronous_commit")
                .is_ok_and(|value| value == "off"),
        };
    }

    /// Whether a client wants to be told of what is as bad as this (`client_min_messages`).
    pub fn hears(&self, severity: Severity) -> bool {
        match severity {
            Severity::Notice => level("notice") >= self.often.level,
            Severity::Warning => level("warning") >= self.often.level,
            Severity::Info | Severity::Error | Severity::Fatal => true,
        }
    }

    /// Whether foreign keys are not looked at.
    pub fn is_replica(&self) -> bool {
        self.often.replica
    }

    /// # Errors
    /// `42501` for a setting that only a superuser may change, for who is none.
    pub fn check_right(name: &str, superuser: impl FnOnce() -> bool) -> Result<()> {
        let name = name.to_lowercase();
        let guarded = known_settings::named(&name).is_some_and(|known| known.superuser);
        if !guarded || superuser() {
            return Ok(());
        }
        let message = format!("permission denied to set parameter \"{name}\"");
        Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
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
        match known_settings::named(&name) {
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
        let known = known_settings::named(&name.to_lowercase());
        let mut number: u64 = value.parse().unwrap_or(0);
        let units: &[(u64, &str)] = match known.map(|known| known.kind) {
            Some(Kind::Milliseconds(..)) => &TIMES,
            Some(Kind::Seconds(..)) => &SECONDS,
            Some(Kind::Bytes(..)) => &BYTES,
            Some(Kind::Kilobytes(..)) => &SIZES,
            Some(Kind::Pages(..)) => {
                number *= PAGE_KILOBYTES;
                &SIZES
            }
            Some(Kind::RealMilliseconds(..)) => {
                let microseconds = value.parse::<f64>().unwrap_or(0.0) * 1000.0;
                if microseconds.round() % 1000.0 != 0.0 {
                    return Ok(format!("{}us", setting_value::six_digits(microseconds)));
                }
                number = (microseconds.round() / 1000.0) as u64;
                &TIMES
            }
            _ => return Ok(value),
        };
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

    /// Sets it; `None`: back to its default.
    ///
    /// # Errors
    /// `42704`, `22023`, `55P02`.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let name = name.to_lowercase();
        // Settings of programs have a point in their name.
        let known = known_settings::named(&name);
        if known.is_none() && !name.contains('.') {
            return Err(unknown(&name));
        }
        let kind = known.map_or(Kind::Text, |known| known.kind);
        // The one way in which it can be set is the one in which it stands: `pg_dump` says so.
        let stands = name == "standard_conforming_strings"
            && value
                .is_none_or(|value| matches!(&*value.to_lowercase(), "on" | "true" | "yes" | "1"));
        if stands {
            return Ok(());
        }
        if kind == Kind::Fixed {
            let message = format!("parameter \"{name}\" cannot be changed");
            return Err(SqlError::new(sqlstate::CANT_CHANGE_RUNTIME_PARAM, message));
        }
        let text = match value {
            Some(value) => Some(setting_value::checked(&name, kind, value)?),
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
        Ok(())
    }

    /// What a client is told when it connects.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        REPORTED
            .iter()
            .map(|name| (shown_name(name), self.get(name).unwrap_or_default()))
            .collect()
    }

    /// All of them in order, with what `pg_settings` tells.
    pub fn described(&self) -> Vec<Described> {
        let mut all: Vec<Described> = known_settings::all()
            .map(|known| {
                let value = self.values.get(known.name);
                Described {
                    name: shown_name(known.name),
                    about: known.about,
                    value: value.cloned().unwrap_or_else(|| known.default.to_owned()),
                    default: known.default,
                    unit: known.kind.unit(),
                    kind: match known.kind {
                        Kind::Fixed => vartype_of(value.map_or(known.default, String::as_str)),
                        kind => kind.vartype(),
                    },
                    context: match known.kind {
                        Kind::Fixed => "internal",
                        _ if known.superuser => "superuser",
                        _ => "user",
                    },
                    range: known.kind.range(),
                    words: match known.kind {
                        Kind::OneOf(words) => Some(words),
                        _ => None,
                    },
                    changed: value.is_some() && known.kind != Kind::Fixed,
                }
            })
            .collect();
        all.sort_by_key(|setting| setting.name.to_lowercase());
        all
    }

    /// Those that were given a value and that SET can change.
    pub fn changeable(&self) -> Vec<String> {
        let is_fixed =
            |name: &str| known_settings::named(name).is_some_and(|known| known.kind == Kind::Fixed);
        let names = self.values.keys().filter(|name| !is_fixed(name));
        names.cloned().collect()
    }

    /// All of them, in order: names, values, and what they are about.
    pub fn all(&self) -> Vec<[String; 3]> {
        let known = known_settings::all().map(|known| known.name);
        let names: BTreeSet<&str> = known
            .chain(self.values.keys().map(String::as_str))
            .collect();
        let shown = |name: &str| self.shown(name).unwrap_or_default();
        let about = |name: &str| known_settings::named(name).map_or("", |known| known.about);
        names
            .into_iter()
            .map(|name| {
                [
                    shown_name(name).to_owned(),
                    shown(name),
                    about(name).to_owned(),
                ]
            })
            .collect()
    }

    /// How a value is kept that was given otherwise. A default stays one.
    fn keep_as(&mut self, name: &str, value: String) {
        if let Some(kept) = self.values.get_mut(name) {
            *kept = value;
        }
    }

    fn apply(&mut self, name: &str) -> Result<()> {
        let value = self.get(name).unwrap_or_default();
        let invalid = || setting_value::invalid(name, &value);
        match name {
            "timezone" => {
                let zone = zone_of(&value)?;
                self.keep_as(name, zone.name());
                self.forms.time_zone = zone;
            }
            "datestyle" => {
                let (style, order) = date_style::read(&value, invalid)?;
                self.forms.date_style = style.unwrap_or(self.forms.date_style);
                self.forms.date_order = order.unwrap_or(self.forms.date_order);
                let shown = date_style::shown(self.forms.date_style, self.forms.date_order);
                self.keep_as(name, shown);
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
                self.forms.extra_float_digits = value.parse().map_err(|_| invalid())?;
            }
            "client_encoding" => {
                let own = match Encoding::named(&value) {
                    Some(Encoding::Utf8) => "UTF8",
                    Some(Encoding::Bytes) => "SQL_ASCII",
                    Some(Encoding::Other) => {
                        return Err(SqlError::unsupported(format!("the encoding {value}")));
                    }
                    None => return Err(invalid()),
                };
                // However it was written, clients are told its name.
                self.keep_as(name, own.to_owned());
            }
            "search_path" if crate::names::list(&value).is_none() => {
                return Err(invalid().with_detail("List syntax is invalid."));
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

/// Whether clients are told of a setting.
pub(super) fn is_reported(name: &str) -> bool {
    REPORTED.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// `vartype` of what cannot be set, by its value.
fn vartype_of(value: &str) -> &'static str {
    match value {
        "on" | "off" => "bool",
        value if value.parse::<i64>().is_ok() => "integer",
        _ => "string",
    }
}

/// The place of a level among those of messages.
fn level(name: &str) -> usize {
    let found = LEVELS.iter().position(|level| *level == name);
    found.unwrap_or(LEVELS.len())
}

#[cold]
fn unknown(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}
