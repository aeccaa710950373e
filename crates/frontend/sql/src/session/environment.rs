//! What expressions ask of their session.

use super::cursor::Cursors;
use super::exports::Exporting;
use super::identity::Acting;
use super::portals::Portals;
use super::randomness::Randomness;
use super::setting_value;
use super::settings::SessionSettings;
use super::transaction::{Characteristics, Open, clock_time};
use super::{Config, NamedStatement, Saying, SessionOptions};
use crate::catalog::{Catalog, Kind, Named, Oid, Relation};
use crate::database::{DATABASE, Shared};
use crate::error::{Fields, Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Environment, Explain, ListSets};
use crate::lock::{AdvisoryLock, HeldAdvisory};
use crate::numbers::OwnNumber;
use crate::roles::Rights;
use crate::sqlstate;
use crate::system::{self, Definition, Scan};
use std::cell::RefCell;
use std::sync::Arc;
use vellum::{PendingCommit, Transaction};
use vellum_base::maps::HashMap;
use vellum_row::Settings;
use vellum_row::datetime::{Date, MICROS_PER_DAY, Time, Timestamp};
use vellum_row::{Value, ValueRef};

/// What a session has drawn of sequences.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    /// The last value of each.
    values: HashMap<Oid, i64>,
    /// The sequence that was drawn of last.
    last: Option<Oid>,
    /// For each that was drawn of or set, what is to be durable when the transaction commits.
    stored: Vec<(Oid, PendingCommit)>,
}

impl Drawn {
    /// Rows of sequences are durable in the order of their commits: the last one of each is enough.
    fn note_stored(&mut self, sequence: Oid, stored: PendingCommit) {
        match self.stored.iter_mut().find(|(oid, _)| *oid == sequence) {
            Some((_, before)) => *before = stored,
            None => self.stored.push((sequence, stored)),
        }
    }

    /// DISCARD SEQUENCES: the values are forgotten, and still have to last.
    pub fn discard(&mut self) {
        self.values.clear();
        self.last = None;
    }

    /// What its values wait for, once.
    pub fn take_stored(&mut self) -> Vec<(Oid, PendingCommit)> {
        std::mem::take(&mut self.stored)
    }
}

/// The session's side of a statement.
pub(crate) struct Env<'s> {
    pub shared: &'s Shared,
    pub settings: &'s SessionSettings,
    pub forms: &'s Settings,
    pub options: &'s SessionOptions,
    pub acting: Acting,
    pub catalog: &'s Catalog,
    /// Who may do what, as of now ([`Open::rights`]).
    pub rights: &'s Catalog,
    pub search_path: &'s [Oid],
    /// What the session has drawn of sequences.
    pub sequences: &'s RefCell<Drawn>,
    pub random: &'s RefCell<Randomness>,
    pub now: Timestamp,
    pub transaction: &'s Transaction,
    /// The number that the transaction tells of itself, if it has one.
    pub number: &'s OwnNumber,
    /// What it exports.
    pub exporting: Exporting<'s>,
    /// Where the steps of queries are told.
    pub explain: Option<(&'s RefCell<Vec<String>>, Explain)>,
    /// How the transaction was begun.
    pub characteristics: Characteristics,
    /// The session's prepared statements.
    pub statements: &'s HashMap<String, NamedStatement>,
    pub cursors: &'s Cursors,
    pub portals: &'s Portals,
    /// Fails if the statement is to end.
    pub look: &'s dyn Fn() -> Result<()>,
    /// Takes a lock on a number, and waits for it.
    pub take_advisory: &'s dyn Fn(AdvisoryLock) -> Result<()>,
    /// The transaction's locks on numbers.
    pub advisory: &'s HeldAdvisory,
    /// What `set_config` has said so far, and how the settings are by that.
    pub said: &'s RefCell<Vec<Config>>,
    pub settings_said: &'s RefCell<Option<SessionSettings>>,
    /// What it says when it has committed.
    pub saying: &'s Saying,
    /// Number of the session among all.
    pub session: u64,
    /// What the client is told when the statement is done.
    pub notices: &'s RefCell<Vec<Fields>>,
    /// What is kept of lists that come with the parameters.
    pub lists: ListSets,
}

/// What expressions in definitions may ask of their session.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub settings: &'a SessionSettings,
    pub options: &'a SessionOptions,
    pub acting: Acting,
    pub sequences: &'a RefCell<Drawn>,
    pub random: &'a RefCell<Randomness>,
    pub statements: &'a HashMap<String, NamedStatement>,
    pub cursors: &'a Cursors,
    pub portals: &'a Portals,
    /// Number of the session among all.
    pub session: u64,
}

impl Asked<'_> {
    /// Runs `work` with the session's side of a definition, in the transaction that is open. What it sets and says is of no account.
    pub fn with<R>(
        &self,
        shared: &Shared,
        open: &Open,
        search_path: &[Oid],
        work: impl FnOnce(&Env<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut forms = self.settings.forms.clone();
        forms.now = open.now;
        let look = || Ok(());
        let take_advisory = |_| Err(SqlError::unsupported("an advisory lock in a definition"));
        let (said, settings_said) = (RefCell::default(), RefCell::default());
        work(&Env {
            shared,
            settings: self.settings,
            forms: &forms,
            options: self.options,
            acting: self.acting,
            catalog: &open.catalog.1,
            rights: &open.rights().1,
            search_path,
            sequences: self.sequences,
            random: self.random,
            now: open.now,
            transaction: &open.transaction,
            number: &open.number,
            exporting: open.exporting(),
            explain: None,
            characteristics: open.characteristics,
            statements: self.statements,
            cursors: self.cursors,
            portals: self.portals,
            look: &look,
            take_advisory: &take_advisory,
            advisory: &open.advisory,
            said: &said,
            settings_said: &settings_said,
            saying: &open.saying,
            session: self.session,
            notices: &RefCell::default(),
            lists: ListSets::default(),
        })
    }
}

impl Environment for Env<'_> {
    fn settings(&self) -> &Settings {
        self.forms
    }

    fn look(&self) -> Result<()> {
        (self.look)()
    }

    fn hears_ends(&self) -> bool {
        true
    }

    fn keeps_foreign_keys(&self) -> bool {
        !self.settings.is_replica()
    }

    fn role(&self) -> Option<Oid> {
        Some(self.acting.role)
    }

    fn lists(&self) -> Option<&ListSets> {
        Some(&self.lists)
    }

    fn explain(&self) -> Option<(&RefCell<Vec<String>>, Explain)> {
        self.explain
    }

    fn system_rows(&self, definition: &Definition) -> Result<Vec<Vec<Value>>> {
        definition.rows(&Scan {
            catalog: self.catalog,
            env: self,
        })
    }

    fn ask(&self, function: Builtin, arguments: &[Value]) -> Result<Value> {
        if let Builtin::Catalog(own) = function {
            if own == CatalogFunction::ClientEncoding {
                return self.setting("client_encoding").map(Value::text);
            }
            return system::ask(self, own, arguments);
        }
        let text = |at: usize| {
            let value = arguments.get(at).map(Value::as_ref);
            value.and_then(ValueRef::as_str).unwrap_or_default()
        };
        Ok(match function {
            Builtin::Now | Builtin::CurrentTimestamp | Builtin::StatementTimestamp => {
                Value::Timestamptz(self.now)
            }
            Builtin::ClockTimestamp => Value::Timestamptz(clock_time()),
            Builtin::CurrentDate => {
                let wall = self.forms.time_zone.wall(self.now);
                let days = wall.div_euclid(MICROS_PER_DAY);
                Value::Date(Date(i32::try_from(days).unwrap_or(i32::MAX)))
            }
            Builtin::LocalTimestamp => {
                Value::Timestamp(Timestamp(self.forms.time_zone.wall(self.now)))
            }
            Builtin::LocalTime => {
                let wall = self.forms.time_zone.wall(self.now);
                Value::Time(Time(wall.rem_euclid(MICROS_PER_DAY)))
            }
            Builtin::CurrentUser | Builtin::CurrentRole | Builtin::User => {
                Value::text(self.rights.role_name(self.acting.role))
            }
            Builtin::SessionUser => Value::text(self.rights.role_name(self.acting.session)),
            Builtin::CurrentDatabase | Builtin::CurrentCatalog => Value::text(DATABASE),
            Builtin::CurrentSchema | Builtin::CurrentSchemaWord => {
                match self.schemas(false).into_iter().next() {
                    Some(name) => Value::text(name),
                    None => Value::Null,
                }
            }
            // These are the transaction's own.
            Builtin::CurrentSetting if text(0).eq_ignore_ascii_case("transaction_isolation") => {
                Value::text(self.characteristics.level())
            }
            Builtin::CurrentSetting if text(0).eq_ignore_ascii_case("transaction_read_only") => {
                Value::text(if self.characteristics.read_only {
                    "on"
                } else {
                    "off"
                })
            }
            Builtin::SetConfig => self.set_config(arguments)?,
            Builtin::CurrentSetting => match self.setting(text(0)) {
                Ok(value) => Value::text(value),
                Err(_) if arguments.get(1) == Some(&Value::Bool(true)) => Value::Null,
                Err(error) => return Err(error),
            },
            Builtin::Version => Value::text(concat!(
                "PostgreSQL 15.0 compatible (Vellum ",
                env!("CARGO_PKG_VERSION"),
                ")"
            )),
            Builtin::BackendPid => Value::Int4(self.options.process_id),
            Builtin::Random => Value::Float8(self.random.borrow_mut().fraction()),
            Builtin::RandomUuid => Value::Uuid(self.random.borrow_mut().uuid()?),
            Builtin::NextValue => {
                let sequence = self.sequence(&arguments[0])?;
                let Kind::Sequence(definition) = &sequence.kind else {
                    return Err(not_a_sequence(&sequence.name));
                };
                self.check_sequence(&sequence, &[Rights::USAGE, Rights::UPDATE])?;
                let (oid, name) = (sequence.oid, &sequence.name);
                let asking = (&self.shared.engine, self.look);
                let runtime = &sequence.runtime;
                let next = crate::catalog::next_value(asking, name, definition, runtime)?;
                let (value, stored) = next;
                let mut drawn = self.sequences.borrow_mut();
                if let Some(stored) = stored {
                    drawn.note_stored(oid, stored);
                }
                drawn.values.insert(oid, value);
                drawn.last = Some(oid);
                Value::Int8(value)
            }
            Builtin::CurrentValue => {
                let sequence = self.sequence(&arguments[0])?;
                let last = self.sequences.borrow().values.get(&sequence.oid).copied();
                Value::Int8(last.ok_or_else(|| {
                    let message = format!(
                        "currval of sequence \"{}\" is not yet defined in this session",
                        sequence.name
                    );
                    SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                })?)
            }
            Builtin::SetValue => {
                let sequence = self.sequence(&arguments[0])?;
                let Kind::Sequence(definition) = &sequence.kind else {
                    return Err(not_a_sequence(&sequence.name));
                };
                self.check_sequence(&sequence, &[Rights::UPDATE])?;
                let value = arguments[1].as_ref().as_i64().unwrap_or(0);
                if !(definition.minimum..=definition.maximum).contains(&value) {
                    let message = format!(
                        "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                        sequence.name, definition.minimum, definition.maximum
                    );
                    return Err(SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message));
                }
                let called = arguments.get(2) != Some(&Value::Bool(false));
                let asking = (&self.shared.engine, self.look);
                let runtime = &sequence.runtime;
                let stored = crate::catalog::set_value(asking, runtime, value, called, definition)?;
                let mut drawn = self.sequences.borrow_mut();
                drawn.note_stored(sequence.oid, stored);
                if called {
                    drawn.values.insert(sequence.oid, value);
                }
                Value::Int8(value)
            }
            other => return Err(SqlError::unsupported(format!("the function {other:?}"))),
        })
    }
}

impl Env<'_> {
    fn setting(&self, name: &str) -> Result<String> {
        match &*self.settings_said.borrow() {
            Some(settings) => settings.shown(name),
            None => self.settings.shown(name),
        }
    }

    /// `set_config`: the session is told when the statement is done.
    ///
    /// # Errors
    /// As SET.
    fn set_config(&self, arguments: &[Value]) -> Result<Value> {
        let text = |at: usize| arguments.get(at).and_then(|value| value.as_ref().as_str());
        let Some(name) = text(0) else {
            let state = sqlstate::NULL_VALUE_NOT_ALLOWED;
            return Err(SqlError::new(state, "SET requires parameter name"));
        };
        let (name, value) = (name.to_lowercase(), text(1));
        if name == "role" {
            let role = value.unwrap_or("none");
            let found = self.rights.role(role).map(|role| role.oid);
            match found {
                _ if role == "none" => {}
                None => {
                    let message = format!("role \"{role}\" does not exist");
                    return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
                }
                Some(oid) if !self.rights.is_member(self.acting.session, oid) => {
                    let message = format!("permission denied to set role \"{role}\"");
                    return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
                }
                Some(_) => {}
            }
        }
        let mut said = self.settings_said.borrow_mut();
        let settings = said.get_or_insert_with(|| self.settings.clone());
        if name == "role" {
            settings.fix(&name, value.unwrap_or("none"));
        } else {
            let superuser = || self.rights.is_superuser(self.acting.role);
            SessionSettings::check_right(&name, superuser)?;
            settings.set(&name, value)?;
            let notice = value.and_then(|value| setting_value::cut_notice(&name, value));
            self.notices.borrow_mut().extend(notice);
        }
        let shown = settings.shown(&name)?;
        self.said.borrow_mut().push(Config {
            name,
            value: value.map(str::to_owned),
            local: arguments.get(2) == Some(&Value::Bool(true)),
        });
        Ok(Value::text(shown))
    }

    /// `lastval()`.
    ///
    /// # Errors
    /// `55000` before any value was drawn, or if the sequence is gone.
    pub fn last_value(&self) -> Result<Value> {
        let drawn = self.sequences.borrow();
        let last = drawn.last.and_then(|oid| self.catalog.relation(oid));
        let value = drawn.last.and_then(|oid| drawn.values.get(&oid).copied());
        let (Some(sequence), Some(value)) = (last, value) else {
            let text = "lastval is not yet defined in this session";
            let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(state, text));
        };
        self.check_sequence(sequence, &[Rights::SELECT, Rights::USAGE])?;
        Ok(Value::Int8(value))
    }

    /// # Errors
    /// `42501` for who has none of these rights on a sequence.
    fn check_sequence(&self, sequence: &Relation, rights: &[Rights]) -> Result<()> {
        let now = self.rights.relation(sequence.oid);
        let now = now.map_or(sequence, |now| &**now);
        let mut rights = rights.iter();
        if rights.any(|right| self.rights.allows(self.acting.role, now, *right)) {
            return Ok(());
        }
        let message = format!("permission denied for sequence {}", sequence.name);
        Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
    }

    /// A sequence by name or oid.
    fn sequence(&self, argument: &Value) -> Result<Arc<Relation>> {
        let missing = |name: &str| {
            let message = format!("relation \"{name}\" does not exist");
            SqlError::new(sqlstate::UNDEFINED_TABLE, message)
        };
        if let Some(oid) = argument.as_ref().as_i64() {
            let oid = u32::try_from(oid).unwrap_or(0);
            let found = self.catalog.relation(oid).cloned();
            return found.ok_or_else(|| missing(&oid.to_string()));
        }
        let name = argument.as_ref().as_str().unwrap_or_default();
        let parts = crate::names::parts(name).unwrap_or_default();
        let found = match parts.as_slice() {
            [.., schema, name] => {
                let namespace = self.catalog.schema_named(schema, self.search_path);
                namespace.and_then(|schema| self.catalog.named(schema, name))
            }
            [name] => {
                let mut path = self.search_path.iter();
                path.find_map(|schema| self.catalog.named(*schema, name))
            }
            [] => None,
        };
        match found {
            Some(Named::Relation(oid)) => self
                .catalog
                .relation(oid)
                .cloned()
                .ok_or_else(|| missing(name)),
            _ => Err(missing(name)),
        }
    }
}

#[cold]
fn not_a_sequence(name: &str) -> SqlError {
    let message = format!("\"{name}\" is not a sequence");
    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
}
