//! FOREIGN KEY: made, checked against the rows that are there, and in the way of what would break it.
//!
//! A foreign key stands in the definition of the table that has it. Making one takes both tables alone and raises the target's generation,
//! so that who writes the target with an older image starts again and honours it (G1).

use super::Ddl;
use super::deferral::timing_of;
use super::made_names::MadeName;
use super::rewrite::PIECE_BYTES;
use crate::bind::folded;
use crate::catalog::{Action, ForeignKey, Kind, Oid, Relation, SwitchedOff, Timing};
use crate::error::{Result, SqlError};
use crate::exec::no_target;
use crate::plan::{Foreign, column_position};
use crate::sqlstate;
use sqlparser::ast::{self, ReferentialAction};
use std::sync::Arc;
use vellum_row::{CastContext, Column, ColumnId, Type, Value, cast_between};

impl Ddl<'_> {
    /// Adds a foreign key to a relation that is held alone.
    pub(super) fn add_foreign_key(
        &mut self,
        relation: &mut Relation,
        key: &ast::ForeignKeyConstraint,
        column: Option<&str>,
    ) -> Result<()> {
        check_form(key)?;
        if let Some(name) = &key.name {
            super::table::check_name(relation, &folded(name))?;
        }
        let timing = timing_of(key.characteristics.as_ref())?;
        let mut names: Vec<String> = key.columns.iter().map(folded).collect();
        names.extend(column.map(str::to_owned));
        let own = self.is_own_name(relation, &key.foreign_table)?;
        let target = if own {
            Arc::new(relation.clone())
        } else {
            self.table_alone(&key.foreign_table, |ddl, target| {
                ddl.check_right(target, crate::roles::Rights::REFERENCES)
            })?
        };
        let catalog = &self.open.catalog.1;
        let temporary = catalog.is_temporary(relation.namespace);
        if temporary != catalog.is_temporary(target.namespace) {
            let word = if temporary { "temporary" } else { "permanent" };
            let message = format!("constraints on {word} tables may reference only {word} tables");
            return Err(SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, message));
        }
        let target_table = target.table().ok_or_else(|| {
            let message = format!("referenced relation \"{}\" is not a table", target.name);
            SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
        })?;
        let columns = names
            .iter()
            .map(|name| column_position(relation, name))
            .collect::<Result<Vec<_>>>()?;
        let target_columns: Vec<ColumnId> = if key.referred_columns.is_empty() {
            let primary = target_table.primary_key().ok_or_else(|| {
                let message = format!(
                    "there is no primary key for referenced table \"{}\"",
                    target.name
                );
                SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
            })?;
            if primary.timing != Timing::Fixed {
                return Err(deferrable("primary key", &target));
            }
            primary.key_columns().collect()
        } else {
            let names = key.referred_columns.iter().map(folded);
            let positions = names.map(|name| column_position(&target, &name));
            let id = |position: usize| target_table.schema.column(position).id;
            positions
                .map(|position| Ok(id(position?)))
                .collect::<Result<_>>()?
        };
        if columns.len() != target_columns.len() {
            let text = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new(sqlstate::INVALID_FOREIGN_KEY, text));
        }
        if target_table.unique_index(&target_columns).is_none() {
            let mut indexes = target_table.indexes.iter();
            if indexes.any(|index| index.unique && index.is_of(&target_columns)) {
                return Err(deferrable("unique constraint", &target));
            }
            let message = format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                target.name
            );
            return Err(SqlError::new(sqlstate::INVALID_FOREIGN_KEY, message));
        }
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let name = match &key.name {
            Some(name) => folded(name),
            None => {
                let made = MadeName {
                    table: &relation.name,
                    columns: &names.join("_"),
                    label: "fkey",
                };
                made.free(|name| table.has_constraint(name))
            }
        };
        let pairs = columns.iter().zip(&target_columns);
        self.check_key_types(
            &name,
            pairs.map(|(position, target_column)| {
                let to = target_table.position(*target_column);
                (
                    table.schema.column(*position),
                    target_table.schema.column(to),
                )
            }),
        )?;
        let made = ForeignKey {
            oid: self.draw_oid()?,
            name: name.into(),
            columns: columns
                .iter()
                .map(|at| table.schema.column(*at).id)
                .collect(),
            target: target.oid,
            target_columns,
            on_delete: action(key.on_delete),
            on_update: action(key.on_update),
            timing,
            full: key.match_kind == Some(ast::ConstraintReferenceMatchKind::Full),
            off: SwitchedOff::default(),
        };
        if let Kind::Table(table) = &mut relation.kind {
            table.foreign_keys.push(made.clone());
        }
        let child = Arc::new(relation.clone());
        let parent = if own { child.clone() } else { target.clone() };
        self.check_references(&child, &parent, &made)?;
        if !own {
            self.put_table(&target, target_table.clone())?;
        }
        Ok(())
    }

    /// Whether a name is that of the table that is being made or changed.
    fn is_own_name(&self, relation: &Relation, name: &ast::ObjectName) -> Result<bool> {
        let (schema, base) = crate::bind::object_name(name)?;
        let namespace = match schema {
            Some(schema) => {
                let catalog = &self.open.catalog.1;
                catalog.schema_named(&schema, &self.search_path)
            }
            None if self.search_path.contains(&relation.namespace) => Some(relation.namespace),
            None => None,
        };
        Ok(*relation.name == *base && namespace == Some(relation.namespace))
    }

    /// Every row that is there has its target.
    ///
    /// # Errors
    /// `23503`.
    fn check_references(
        &mut self,
        child: &Arc<Relation>,
        parent: &Arc<Relation>,
        key: &ForeignKey,
    ) -> Result<()> {
        if !self.has_rows(child)? {
            return Ok(());
        }
        let foreign = Foreign::new(child, parent, key, Vec::new())?;
        let forms = self.forms.clone();
        let (mut bytes, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            // Some megabytes of rows are read, then looked up.
            let mut rows: Vec<Vec<Value>> = Vec::new();
            after = self.rows_behind(child, after.as_deref(), PIECE_BYTES, |_, values| {
                rows.push(values.to_vec());
                Ok(())
            })?;
            let transaction = &self.open.transaction;
            let storage = self.newest_rows(foreign.target_storage())?;
            for values in &rows {
                let found = match foreign.target_key(values, &forms, &mut bytes)? {
                    None => continue,
                    Some(false) => None,
                    Some(true) => transaction.get(storage, &bytes, |_| ())?,
                };
                if found.is_none() {
                    return Err(no_target(&foreign, values, &forms, &self.open.catalog.1));
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The columns of a key find their equals among those of its target.
    ///
    /// # Errors
    /// `42804`.
    fn check_key_types<'c>(
        &self,
        name: &str,
        pairs: impl Iterator<Item = (&'c Column, &'c Column)>,
    ) -> Result<()> {
        for (from, to) in pairs {
            if !comparable(from.ty, to.ty) {
                let message = format!("foreign key constraint \"{name}\" cannot be implemented");
                let detail = format!(
                    "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    from.name,
                    to.name,
                    self.forms.format_type(from.ty, from.typmod),
                    self.forms.format_type(to.ty, to.typmod)
                );
                return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, message).with_detail(detail));
            }
        }
        Ok(())
    }

    /// The foreign keys of a column that has another type by now, on either side: what refers to something finds it as before.
    ///
    /// # Errors
    /// `42804`, `23503`.
    pub(super) fn check_keys_of(
        &mut self,
        relation: &Arc<Relation>,
        column: ColumnId,
    ) -> Result<()> {
        let own = relation
            .table()
            .map_or(Vec::new(), |table| table.foreign_keys.clone());
        let own = own.into_iter().map(|key| (relation.clone(), key));
        let mut keys: Vec<(Arc<Relation>, ForeignKey)> = own.collect();
        keys.extend(self.referring(relation.oid));
        for (child, key) in keys {
            let mine = child.oid == relation.oid && key.columns.contains(&column);
            let target = key.target == relation.oid && key.target_columns.contains(&column);
            if !mine && !target {
                continue;
            }
            let parent = match key.target == relation.oid {
                true => Some(relation),
                false => self.open.catalog.1.relation(key.target),
            };
            let parent = parent.cloned();
            let parent = parent.ok_or_else(|| SqlError::internal("a key without its target"))?;
            if let (Some(from), Some(to)) = (child.table(), parent.table()) {
                let pairs = key.columns.iter().zip(&key.target_columns);
                self.check_key_types(
                    &key.name,
                    pairs.map(|(own, target)| {
                        let own = from.schema.column(from.position(*own));
                        (own, to.schema.column(to.position(*target)))
                    }),
                )?;
            }
            self.check_references(&child, &parent, &key)?;
        }
        Ok(())
    }

    /// VALIDATE CONSTRAINT of a foreign key: rows may have been written while it was switched off, as those of a CHECK cannot.
    ///
    /// # Errors
    /// `23503`.
    pub(super) fn validate_references(
        &mut self,
        relation: &Arc<Relation>,
        name: &str,
    ) -> Result<()> {
        let found = relation.table().and_then(|table| {
            let mut keys = table.foreign_keys.iter();
            keys.find(|key| *key.name == *name).cloned()
        });
        let Some(key) = found else {
            return Ok(());
        };
        let parent = match key.target == relation.oid {
            true => Some(relation),
            false => self.open.catalog.1.relation(key.target),
        };
        let parent = parent.cloned();
        let parent = parent.ok_or_else(|| SqlError::internal("a key without its target"))?;
        self.check_references(relation, &parent, &key)
    }

    /// Foreign keys of other tables whose target is this one.
    pub(super) fn referring(&self, target: Oid) -> Vec<(Arc<Relation>, ForeignKey)> {
        let mut found = self.open.catalog.1.referring(target);
        found.retain(|(other, _)| other.oid != target);
        found
    }
}

/// Whether values of one type find their equals among keys of another.
fn comparable(from: Type, to: Type) -> bool {
    from == to
        || (from.is_integer() && to.is_integer())
        // As the wider of the two.
        || (from == Type::Float8 && to == Type::Float4)
        || cast_between(from, to) == Some(CastContext::Implicit)
}

fn action(action: Option<ReferentialAction>) -> Action {
    match action {
        None | Some(ReferentialAction::NoAction) => Action::NoAction,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        Some(ReferentialAction::SetDefault) => Action::SetDefault,
    }
}

fn check_form(key: &ast::ForeignKeyConstraint) -> Result<()> {
    use ast::ConstraintReferenceMatchKind as Match;
    match key.match_kind {
        None | Some(Match::Simple | Match::Full) => Ok(()),
        Some(Match::Partial) => {
            let text = "MATCH PARTIAL not yet implemented";
            Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text))
        }
    }
}

/// `55000` for a target whose key may be there twice.
#[cold]
pub(super) fn deferrable(what: &str, target: &Relation) -> SqlError {
    let message = format!(
        "cannot use a deferrable {what} for referenced table \"{}\"",
        target.name
    );
    SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}
