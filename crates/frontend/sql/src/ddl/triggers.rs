//! ENABLE and DISABLE TRIGGER. There are no triggers of users; those of foreign keys are what ALL names.
//!
//! What is switched off stands in the foreign key ([`SwitchedOff`]), in the definition of the table that has it. Whoever writes the table that the statement
//! names with an older image starts again (G1), as its generation is raised.

use super::Ddl;
use super::role::denied;
use crate::bind::folded;
use crate::catalog::{Kind, Relation, SwitchedOff, Table};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use crate::system::trigger_oid;
use sqlparser::ast::{AlterTableOperation as Operation, Ident};
use std::sync::Arc;

/// What is switched on or off.
pub(super) enum Switch<'s> {
    /// All triggers, on or off.
    All(bool),
    /// Those of users, of which there are none; row security that there is none of.
    Nothing,
    Trigger(&'s Ident),
    Rule(&'s Ident),
}

impl<'s> Switch<'s> {
    pub fn of(operation: &'s Operation) -> Option<Self> {
        let triggers = |name: &'s Ident, on: bool| {
            let plain = name.quote_style.is_none();
            match &*name.value.to_lowercase() {
                "all" if plain => Self::All(on),
                "user" if plain => Self::Nothing,
                _ => Self::Trigger(name),
            }
        };
        Some(match operation {
            Operation::DisableTrigger { name } => triggers(name, false),
            Operation::EnableTrigger { name } => triggers(name, true),
            Operation::EnableAlwaysTrigger { name } | Operation::EnableReplicaTrigger { name } => {
                Self::Trigger(name)
            }
            Operation::DisableRule { name }
            | Operation::EnableRule { name }
            | Operation::EnableAlwaysRule { name }
            | Operation::EnableReplicaRule { name } => Self::Rule(name),
            Operation::DisableRowLevelSecurity | Operation::NoForceRowLevelSecurity => {
                Self::Nothing
            }
            _ => return None,
        })
    }
}

impl Ddl<'_> {
    /// Switches the triggers of a table that is held alone; the table as it is then.
    ///
    /// # Errors
    /// `42704`; `42501` for foreign keys, by who is no superuser.
    pub(super) fn switch_triggers(
        &mut self,
        relation: &Arc<Relation>,
        mut next: Table,
        switch: &Switch<'_>,
    ) -> Result<Arc<Relation>> {
        let on = match switch {
            Switch::All(on) => *on,
            Switch::Nothing => return Ok(relation.clone()),
            Switch::Trigger(name) => return Err(missing("trigger", name, "table", relation)),
            Switch::Rule(name) => return Err(missing("rule", name, "relation", relation)),
        };
        let referring = self.referring(relation.oid);
        let first = next.foreign_keys.iter().map(|key| ("c", key.oid));
        let first = first.chain(referring.iter().map(|(_, key)| ("a", key.oid)));
        if let Some((kind, key)) = first.clone().next()
            && !self.own_role()?.superuser
        {
            let oid = trigger_oid(key, if kind == "a" { 0 } else { 2 });
            return Err(denied(format!(
                "permission denied: \"RI_ConstraintTrigger_{kind}_{oid}\" is a system trigger"
            )));
        }
        for key in &mut next.foreign_keys {
            let own = key.target == relation.oid;
            key.off = SwitchedOff {
                references: !on,
                target: if own { !on } else { key.off.target },
            };
        }
        let mut others: Vec<Arc<Relation>> = Vec::new();
        for (other, _) in referring {
            if !others.iter().any(|known| known.oid == other.oid) {
                others.push(other);
            }
        }
        for other in others {
            let other = self.alone(&other)?;
            let Kind::Table(table) = &other.kind else {
                continue;
            };
            let mut table = Table::clone(table);
            for key in &mut table.foreign_keys {
                if key.target == relation.oid {
                    key.off.target = !on;
                }
            }
            self.put_table(&other, table)?;
        }
        self.put_table(relation, next)
    }
}

fn missing(what: &str, name: &Ident, of: &str, relation: &Relation) -> SqlError {
    let message = format!(
        "{what} \"{}\" for {of} \"{}\" does not exist",
        folded(name),
        relation.name
    );
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}
