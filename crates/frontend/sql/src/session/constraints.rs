//! SET CONSTRAINTS, and the checks that a transaction still owes: made before it commits, or when SET CONSTRAINTS asks for them.
//!
//! The checks are a statement of their own: under read committed in a snapshot of then, undone and made again if they have to wait for somebody, with the limits of any
//! statement. They change nothing, but hold what they found: targets of foreign keys stay until the transaction ends, which nobody can
//! tell from now on.

use super::Session;
use super::maintenance::no_schema;
use super::run::{RETRIES, is_conflict};
use crate::bind::object_name;
use crate::catalog::{Catalog, Oid, Relation, Timing};
use crate::error::{Result, SqlError};
use crate::exec::{Owed, Run};
use crate::expr::Plain;
use crate::sqlstate;
use crate::wire::{CommandTag, Sink};
use sqlparser::ast;
use std::cell::RefCell;
use std::sync::Arc;
use vellum_base::maps::HashMap;

impl Session {
    /// SET CONSTRAINTS of these, or of all.
    ///
    /// # Errors
    /// `42704`, `42809`, `3F000`; of checks that are made now: `23503`, `23505`, and what waiting meets.
    pub(super) fn set_constraints(
        &mut self,
        names: &[ast::ObjectName],
        deferred: bool,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.warn_outside_block("SET CONSTRAINTS", sink)?;
        self.start_statement()?;
        let (catalog, search_path) = (self.image().clone(), self.search_path());
        let mut named = Vec::new();
        for name in names {
            let (schema, name) = object_name(name)?;
            let schemas = match &schema {
                None => search_path.to_vec(),
                Some(schema) => {
                    let found = catalog.schema_named(schema, &search_path);
                    vec![found.ok_or_else(|| no_schema(schema))?]
                }
            };
            named.extend(deferrable(&catalog, &schemas, &name, deferred)?);
        }
        if let Some(open) = &self.open {
            let named = (!names.is_empty()).then_some(named.as_slice());
            open.deferred.borrow_mut().set(named, deferred);
        }
        if !deferred {
            self.settle(false)?;
        }
        Ok(CommandTag::plain("SET CONSTRAINTS"))
    }

    /// Makes the checks that the transaction still owes: it is about to commit.
    ///
    /// # Errors
    /// `23503`, `23505`, and what waiting meets: the transaction is to be rolled back.
    pub(super) fn settle_deferred(&mut self) -> Result<()> {
        self.settle(true)
    }

    /// Makes the checks of `all` constraints, or of those that are not deferred any more.
    fn settle(&mut self, all: bool) -> Result<()> {
        let owes = |open: &super::Open| open.deferred.borrow().owed().next().is_some();
        if !self.open.as_deref().is_some_and(owes) {
            return Ok(());
        }
        let cancel = self.cancel.clone();
        let waiting = RefCell::new(self.waiting(&cancel));
        let shared = self.shared.clone();
        let memory = self.work_memory();
        let mut point = None;
        for tries in 0.. {
            let forms = self.settings.forms.clone();
            let Some(open) = &mut self.open else {
                return Err(SqlError::internal("checks without transaction"));
            };
            if point.is_none() {
                open.begin_statement(&shared)?;
                point = Some(open.point()?);
            }
            let catalog = &open.catalog.1;
            let mut wanted: HashMap<Oid, bool> = HashMap::default();
            let due: Vec<Owed> = {
                let deferred = open.deferred.borrow();
                let is_due = |owed: &Owed| {
                    let timing = timing_of(catalog, owed).unwrap_or_default();
                    all || !deferred.is_deferred(owed.constraint, timing)
                };
                let due = deferred.owed().filter(|owed| {
                    let asked = wanted.entry(owed.constraint);
                    *asked.or_insert_with(|| is_due(owed))
                });
                due.cloned().collect()
            };
            let env = Plain(&forms);
            let run = Run::new(&shared, open, &env, &waiting, memory);
            let done = run.settle_owed(&due, catalog);
            drop(run);
            match (done, &point) {
                (Ok(()), _) => {
                    let is_settled = |owed: &Owed| wanted.get(&owed.constraint) == Some(&true);
                    let keep = open.has_savepoints();
                    open.deferred.borrow_mut().settle(is_settled, keep);
                    return Ok(());
                }
                (Err(error), Some(point)) if is_conflict(&error) && tries < RETRIES => {
                    if !self.wait_and_return(point, &mut waiting.borrow_mut())? {
                        return Err(error);
                    }
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The constraints of this name that are deferrable, in the first of the schemas that has one.
///
/// # Errors
/// `42809` for one that is not, if it is to be deferred; `42704` if there is none.
fn deferrable(catalog: &Catalog, schemas: &[Oid], name: &str, deferred: bool) -> Result<Vec<Oid>> {
    let refuse = |state, what: &str| {
        let message = format!("constraint \"{name}\" {what}");
        Err(SqlError::new(state, message))
    };
    for schema in schemas {
        let relations = catalog.relations().into_iter();
        let relations = relations.filter(|relation| relation.namespace == *schema);
        let found = relations.flat_map(|relation| constraints(relation));
        let found = found.filter(|(own, ..)| *own == name);
        let found: Vec<(Oid, Timing)> = found.map(|(_, oid, timing)| (oid, timing)).collect();
        if found.is_empty() {
            continue;
        }
        if deferred && found.iter().any(|(_, timing)| !timing.is_deferrable()) {
            return refuse(sqlstate::WRONG_OBJECT_TYPE, "is not deferrable");
        }
        let found = found.into_iter();
        let found = found.filter(|(_, timing)| timing.is_deferrable());
        return Ok(found.map(|(oid, _)| oid).collect());
    }
    refuse(sqlstate::UNDEFINED_OBJECT, "does not exist")
}

/// Names, oids and timings of the constraints of a relation.
fn constraints(relation: &Arc<Relation>) -> Vec<(&str, Oid, Timing)> {
    let Some(table) = relation.table() else {
        return Vec::new();
    };
    let checks = table.checks.iter();
    let checks = checks.map(|check| (&*check.name, check.oid, Timing::Fixed));
    let keys = table.foreign_keys.iter();
    let keys = keys.map(|key| (&*key.name, key.oid, key.timing));
    let indexes = table.indexes.iter();
    let indexes = indexes.filter_map(|index| Some((&*index.name, index.constraint?, index.timing)));
    checks.chain(keys).chain(indexes).collect()
}

/// When the constraint of a check is checked by itself.
fn timing_of(catalog: &Catalog, owed: &Owed) -> Option<Timing> {
    let own = constraints(catalog.relation(owed.relation)?);
    let own = own.iter().find(|(_, oid, _)| *oid == owed.constraint);
    let referring = || {
        let mut keys = catalog.referring(owed.relation).into_iter();
        let found = keys.find(|(_, key)| key.oid == owed.constraint);
        found.map(|(_, key)| key.timing)
    };
    own.map(|(_, _, timing)| *timing).or_else(referring)
}
