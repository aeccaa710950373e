//! What a transaction has changed of the session's settings: undone with it, or with the savepoint that it goes back to.
//!
//! SET LOCAL ends with the transaction whatever becomes of it; what SET said before or behind it stays then.

use super::Session;
use super::identity::Who;
use super::settings::is_reported;
use crate::error::Result;
use vellum_base::maps::HashSet;

/// A setting that was changed.
#[derive(Debug)]
pub(super) struct Changed {
    pub name: String,
    pub before: Kept,
    pub after: Kept,
    pub local: bool,
}

/// What a setting is gone back to.
#[derive(Debug)]
pub(super) enum Kept {
    /// `None`: its default.
    Text(Option<String>),
    /// Of a setting that says who the session is. `None`: no role.
    Who(Option<Who>),
}

impl Session {
    /// Notes a change.
    pub(super) fn note_changed(&mut self, changed: Changed) {
        self.changed.push(changed);
    }

    /// The transaction has committed: what was LOCAL is as SET has left it, or as it was before.
    pub(super) fn settle_settings(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        let mut done = HashSet::default();
        for change in changed.iter().filter(|change| change.local) {
            if !done.insert(change.name.as_str()) {
                continue;
            }
            let mut own = changed.iter().filter(|other| other.name == change.name);
            let lasting = own.clone().rfind(|other| !other.local);
            let value = match (lasting, own.next()) {
                (Some(lasting), _) => &lasting.after,
                (None, Some(first)) => &first.before,
                (None, None) => continue,
            };
            self.restore_setting(&change.name, value);
        }
    }

    /// The transaction is rolled back to where so many settings had been changed.
    pub(super) fn undo_settings(&mut self, count: usize) {
        while self.changed.len() > count {
            if let Some(change) = self.changed.pop() {
                self.restore_setting(&change.name, &change.before);
            }
        }
    }

    fn restore_setting(&mut self, name: &str, value: &Kept) {
        let value = match value {
            Kept::Text(value) => value.as_deref(),
            Kept::Who(who) => return self.take_identity_back(name, who.clone()),
        };
        if is_reported(name) {
            self.keep_told();
        }
        // It was its value before: it can be it again.
        let _ = self.settings.set(name, value);
        if name == "application_name" {
            let named = self.settings.get(name).unwrap_or_default();
            self.activity.is_called(&named);
        }
        // Programs depend on what names and literals mean.
        self.plans.clear();
    }

    /// What `set_config` has said while a statement ran.
    ///
    /// # Errors
    /// As SET.
    pub(super) fn apply_config(&mut self, said: Vec<Config>) -> Result<()> {
        for Config { name, value, local } in said {
            if name == "role" {
                self.set_role(value.as_deref(), local)?;
                continue;
            }
            self.set_noted(&name, value.as_deref(), local)?;
        }
        Ok(())
    }

    /// Sets a setting, and notes it.
    ///
    /// # Errors
    /// As SET.
    pub(super) fn set_noted(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        self.check_setting(name)?;
        self.put_noted(name, value, local)
    }

    /// The same whoever asks.
    fn put_noted(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        if is_reported(name) {
            self.keep_told();
        }
        let before = Kept::Text(self.settings.given(name));
        let value = value.or_else(|| self.begun_with(name));
        let value = value.map(str::to_owned);
        self.settings.set(name, value.as_deref())?;
        if name == "application_name" {
            self.activity.is_called(&self.settings.get(name)?);
        }
        self.note_changed(Changed {
            name: name.to_owned(),
            before,
            after: Kept::Text(self.settings.given(name)),
            local,
        });
        // Programs depend on what names and literals mean.
        self.plans.clear();
        Ok(())
    }

    /// What the session was begun with: what RESET goes back to.
    fn begun_with(&self, name: &str) -> Option<&str> {
        let mut begun_with = self.options.settings.iter();
        let found = begun_with.find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// RESET ALL: as the session was begun, but for who it is. Undone with the transaction, as SET is. It asks for no rights, as in PostgreSQL.
    ///
    /// # Errors
    /// As SET.
    pub(super) fn reset_settings(&mut self) -> Result<()> {
        for name in self.settings.changeable() {
            if self.settings.given(&name).as_deref() == self.begun_with(&name) {
                continue;
            }
            self.put_noted(&name, None, false)?;
        }
        Ok(())
    }
}

/// A call of `set_config`.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub name: String,
    /// `None`: its default.
    pub value: Option<String>,
    pub local: bool,
}
