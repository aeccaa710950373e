//! INSERT, UPDATE, DELETE.

use super::found::Of;
use super::{Each, Flow, Run, Way};
use crate::catalog::Relation;
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Out, RowRef, Subresult};
use crate::lock::{Obstacle, Strength};
use crate::plan::{
    Arbiters, Asked, Conflict, ConflictAction, Delete, Given, Insert, InsertSource, Rules, Update,
};
use crate::rows::{self, Duplicate, Shape};
use crate::sqlstate;
use std::sync::Arc;
use vellum_row::{Value, show};

impl Run<'_, '_> {
    pub(super) fn insert(
        &self,
        insert: &Insert,
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        let inferred;
        let asked = match insert.conflict.as_ref().map(|own| &own.arbiters) {
            None => None,
            Some(Arbiters::Known(asked)) => Some(asked),
            Some(Arbiters::Inferred(rule)) => {
                inferred = rule.asked(insert.shape.table(), &self.frame(&[], &[], subqueries))?;
                Some(&inferred)
            }
        };
        if insert.conflict.is_some() {
            self.began.set(self.transaction.own_writes());
            self.unchanged.borrow_mut().clear();
        }
        if self.ready && insert.as_given {
            self.step()?;
            return self.insert_values((insert, asked), self.params, subqueries, each);
        }
        let mut count = 0;
        match &insert.source {
            InsertSource::Rows(list) => {
                for row in list {
                    self.step()?;
                    let frame = self.frame(&[], &[], subqueries);
                    let mut source = Vec::with_capacity(row.len());
                    for expr in row {
                        source.push(expr.eval(&frame)?.into_value());
                    }
                    count += self.insert_row((insert, asked), source, subqueries, each)?;
                }
            }
            InsertSource::Select(select) => {
                self.writes_as_it_reads.set(true);
                let own_load = self.begin_own_load(insert)?;
                self.select(select, &mut |row| {
                    let source = row.iter().map(|out| out.as_ref().to_value()).collect();
                    count += self.insert_row((insert, asked), source, subqueries, each)?;
                    Ok(Flow::More)
                })?;
                if own_load && self.transaction.is_loading() {
                    self.write(|| Ok(self.transaction.end_load()?))?;
                }
            }
        }
        Ok(count)
    }

    /// Begins the load of a statement that is to have one of its own.
    fn begin_own_load(&self, insert: &Insert) -> Result<bool> {
        if self.way.get() != Way::OwnLoad {
            return Ok(false);
        }
        let storage = insert.shape.table().storage.table(self.transaction)?;
        let begun = self.write(|| Ok(self.transaction.begin_load(storage)?))?;
        self.way.set(if begun { Way::Load } else { Way::Insert });
        Ok(begun)
    }

    /// Makes a row of what a statement gives, and inserts it.
    pub(super) fn insert_row(
        &self,
        (insert, asked): (&Insert, Option<&Asked>),
        mut source: Vec<Value>,
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        let mut values = Vec::with_capacity(insert.columns.len());
        for given in &insert.columns {
            values.push(match given {
                Given::Source(at) => std::mem::replace(&mut source[*at], Value::Null),
                Given::Cast(expr) => {
                    let rows = [RowRef::Values(&source)];
                    let frame = self.frame(&rows, &[], subqueries);
                    expr.eval(&frame)?.into_value()
                }
                Given::Default(expr) => {
                    let frame = self.frame(&[], &[], subqueries);
                    expr.eval(&frame)?.into_value()
                }
            });
        }
        self.generate(&insert.rules, &mut values, subqueries)?;
        self.insert_values((insert, asked), &values, subqueries, each)
    }

    /// Inserts a row of the columns' types.
    fn insert_values(
        &self,
        (insert, asked): (&Insert, Option<&Asked>),
        values: &[Value],
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        self.check(&insert.shape, values, Some(&insert.rules), subqueries)?;
        if let Some((conflict, asked)) = insert.conflict.as_ref().zip(asked)
            && let Some(refused) = &asked.refused
        {
            let duplicate = self.duplicate_among(&insert.shape, &refused.before, values)?;
            let relation = &insert.shape.relation;
            let duplicate = duplicate.ok_or_else(|| refused.error(relation, self.catalog))?;
            return self.resolve(insert, conflict, &duplicate, values, subqueries, each);
        }
        let mut key = Vec::new();
        // A duplicate may be found when some of the row is written.
        let savepoint = match &insert.conflict {
            Some(_) => Some(self.transaction.savepoint()?),
            None => None,
        };
        if self.way.get() == Way::Load {
            if rows::load(self.transaction, &insert.shape, values, &mut key)? {
                return Ok(1);
            }
            // From here on keys are in any order.
            self.write(|| Ok(self.transaction.end_load()?))?;
            self.way.set(Way::Insert);
        }
        let inserted =
            self.write(|| rows::insert(self.transaction, &insert.shape, values, &mut key))?;
        match inserted {
            Ok(()) => {}
            Err(duplicate) => {
                let Some((conflict, savepoint)) = insert.conflict.as_ref().zip(savepoint) else {
                    return Err(self.not_unique(&duplicate, &insert.shape, values));
                };
                let commands = self.transaction.commands_since(&savepoint);
                self.transaction.rollback_to(&savepoint)?;
                // What is refused by the key itself, which is first, has written nothing that others can have met.
                if insert.shape.table().indexes[duplicate.index]
                    .storage
                    .is_some()
                {
                    self.locks.reverted(commands);
                }
                let duplicate = match asked.and_then(|asked| asked.indexes.as_ref()) {
                    Some(indexes) if !indexes.contains(&duplicate.index) => {
                        // An index that is asked for decides, whichever was looked at first.
                        let shape = &insert.shape;
                        let found = self.duplicate_among(shape, indexes, values)?;
                        found.ok_or_else(|| self.not_unique(&duplicate, shape, values))?
                    }
                    _ => self.settled(duplicate)?,
                };
                return self.resolve(insert, conflict, &duplicate, values, subqueries, each);
            }
        }
        self.check_options(&insert.shape, &insert.rules, values, subqueries)?;
        self.owes_alone(&insert.shape, None, values)?;
        self.owes_targets(&insert.keys, insert.shape.relation.oid, None, values)?;
        self.return_inserted(insert, values, false, subqueries, each)?;
        Ok(1)
    }

    /// RETURNING of a row that was inserted, or that was there.
    fn return_inserted(
        &self,
        insert: &Insert,
        values: &[Value],
        was_there: bool,
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<()> {
        let returning = insert.returning.as_deref();
        if !insert.tells_xmax {
            return self.return_row(returning, values, subqueries, each);
        }
        let number = match was_there {
            false => 0,
            // As many bits as it has room for, and not zero.
            true => (self.transaction.id().number() as u32).max(1),
        };
        let (rows, slots) = ([RowRef::Values(values)], [Value::Oid(number)]);
        self.return_rows(returning, &rows, &slots, subqueries, each)
    }

    /// What stands in the way of a row in the first of these indexes in which something does.
    fn duplicate_among(
        &self,
        shape: &Shape,
        indexes: &[usize],
        values: &[Value],
    ) -> Result<Option<Duplicate>> {
        for index in indexes {
            let look = || rows::duplicate_in(self.transaction, shape, *index, values);
            if let Some(found) = self.write(look)? {
                return self.settled(found).map(Some);
            }
        }
        Ok(None)
    }

    /// A duplicate that is one, however others end.
    ///
    /// # Errors
    /// The conflict that has the statement wait for the one whose end decides.
    fn settled(&self, duplicate: Duplicate) -> Result<Duplicate> {
        match duplicate.unsettled {
            Some(by) => Err(self.waits_for(Obstacle::Writer(by))),
            // One whose row is not known was committed since: it is there, and a statement of many rows beside many writers would begin anew at each.
            None if self.is_outdated(&duplicate) && !duplicate.row_key.is_empty() => {
                Err(vellum::Error::Conflict.into())
            }
            None => Ok(duplicate),
        }
    }

    /// Whether a later snapshot tells more of a duplicate, and the statement can have one: it is run again.
    fn is_outdated(&self, duplicate: &Duplicate) -> bool {
        duplicate.outdated && !self.repeatable
    }

    /// `23505`, or the conflict of [`Run::settled`].
    #[cold]
    fn not_unique(&self, duplicate: &Duplicate, shape: &Shape, values: &[Value]) -> SqlError {
        match duplicate.unsettled {
            Some(by) => self.waits_for(Obstacle::Writer(by)),
            None if self.is_outdated(duplicate) => vellum::Error::Conflict.into(),
            None => duplicate.error(shape, values, self.env, self.catalog),
        }
    }

    /// ON CONFLICT: the row is there.
    fn resolve(
        &self,
        insert: &Insert,
        conflict: &Conflict,
        duplicate: &Duplicate,
        values: &[Value],
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        let ConflictAction::Update {
            assignments,
            filter,
        } = &conflict.action
        else {
            return Ok(0);
        };
        let shape = &insert.shape;
        let storage = shape.table().storage.table(self.transaction)?;
        let key = &duplicate.row_key;
        let found = self.write(|| Ok(self.transaction.get(storage, key, <[u8]>::to_vec)?))?;
        let Some(row) = found else {
            // Its writer is one that this statement does not see.
            return Err(vellum::Error::Conflict.into());
        };
        // As it was before this statement.
        let seen = self.transaction.see_own_writes(self.began.get());
        let before = self.row_of(shape, key);
        self.transaction.see_own_writes(seen);
        if before?.is_none_or(|before| before != row) || self.unchanged.borrow().contains(key) {
            return Err(twice());
        }
        let old = self.values_of(shape, &row)?;
        let both = [RowRef::Values(&old), RowRef::Values(values)];
        let frame = self.frame(&both, &[], subqueries);
        if let Some(filter) = filter
            && !filter.is_true(&frame)?
        {
            return Ok(0);
        }
        let mut changes = Vec::with_capacity(assignments.len());
        for (position, expr) in assignments {
            changes.push((*position, expr.eval(&frame)?.into_value()));
        }
        let new = self.change(
            shape,
            key,
            &row,
            &old,
            changes,
            Some(&insert.rules),
            subqueries,
        )?;
        if new == old {
            self.keep(2 * key.len() + 64)?;
            self.unchanged.borrow_mut().insert(key.clone());
        }
        self.owes_targets(&insert.keys, shape.relation.oid, Some(&old), &new)?;
        self.owes_children(&insert.keys, shape.relation.oid, &old, Some(&new))?;
        self.return_inserted(insert, &new, true, subqueries, each)?;
        Ok(1)
    }

    pub(super) fn update(
        &self,
        update: &Update,
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        let shape = &update.shape;
        let mut count = 0;
        if let Some(joined) = &update.joined {
            let mut found = self.found_by(joined, Of::Changed)?;
            while let Some((Some(key), given)) = found.next()? {
                self.step()?;
                let Some(row) = self.row_of(shape, &key)? else {
                    continue;
                };
                if self.is_changed(shape, &key, &row)? {
                    continue;
                }
                let (values, others) = given.split_at(update.assignments.len());
                let positions = update.assignments.iter().map(|(position, _)| *position);
                let changes = positions.zip(values.iter().cloned()).collect();
                let old = self.values_of(shape, &row)?;
                let new = self.change(
                    shape,
                    &key,
                    &row,
                    &old,
                    changes,
                    Some(&update.rules),
                    subqueries,
                )?;
                self.owes_targets(&update.keys, shape.relation.oid, Some(&old), &new)?;
                self.owes_children(&update.keys, shape.relation.oid, &old, Some(&new))?;
                let rows = joined_rows(&new, others, &joined.widths);
                self.return_rows(update.returning.as_deref(), &rows, &[], subqueries, each)?;
                count += 1;
            }
            return Ok(count);
        }
        let narrow = is_narrow(update);
        self.scan(shape, &update.access, &[], subqueries, &mut |key, bytes| {
            self.step()?;
            let rows = [RowRef::Stored(shape.table().schema.view(bytes)?)];
            let frame = self.frame(&rows, &[], subqueries);
            for condition in &update.filter {
                if !condition.is_true(&frame)? {
                    return Ok(Flow::More);
                }
            }
            if self.is_changed(shape, key, bytes)? {
                return Ok(Flow::More);
            }
            let mut changes = Vec::with_capacity(update.assignments.len());
            for (position, expr) in &update.assignments {
                changes.push((*position, expr.eval(&frame)?.into_value()));
            }
            if narrow && !leaves_null(shape, &changes) {
                self.write(|| rows::assign(self.transaction, shape, key, bytes, &changes))?;
                self.honour_locks(shape, key, &[], Strength::NoKeyUpdate)?;
                count += 1;
                return Ok(Flow::More);
            }
            let old = self.values_of(shape, bytes)?;
            let new = self.change(
                shape,
                key,
                bytes,
                &old,
                changes,
                Some(&update.rules),
                subqueries,
            )?;
            self.owes_targets(&update.keys, shape.relation.oid, Some(&old), &new)?;
            self.owes_children(&update.keys, shape.relation.oid, &old, Some(&new))?;
            self.return_row(update.returning.as_deref(), &new, subqueries, each)?;
            count += 1;
            Ok(Flow::More)
        })?;
        Ok(count)
    }

    pub(super) fn delete(
        &self,
        delete: &Delete,
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<u64> {
        let shape = &delete.shape;
        let mut count = 0;
        if let Some(joined) = &delete.joined {
            let mut found = self.found_by(joined, Of::Changed)?;
            while let Some((Some(key), others)) = found.next()? {
                self.step()?;
                let Some(row) = self.row_of(shape, &key)? else {
                    continue;
                };
                if self.is_changed(shape, &key, &row)? {
                    continue;
                }
                let old = self.values_of(shape, &row)?;
                if self.write(|| rows::delete(self.transaction, shape, &key, &old))? {
                    self.honour_locks(shape, &key, &old, Strength::Update)?;
                    self.owes_children(&delete.keys, shape.relation.oid, &old, None)?;
                    let rows = joined_rows(&old, &others, &joined.widths);
                    self.return_rows(delete.returning.as_deref(), &rows, &[], subqueries, each)?;
                    count += 1;
                }
            }
            return Ok(count);
        }
        self.scan(shape, &delete.access, &[], subqueries, &mut |key, bytes| {
            self.step()?;
            let rows = [RowRef::Stored(shape.table().schema.view(bytes)?)];
            let frame = self.frame(&rows, &[], subqueries);
            for condition in &delete.filter {
                if !condition.is_true(&frame)? {
                    return Ok(Flow::More);
                }
            }
            if self.is_changed(shape, key, bytes)? {
                return Ok(Flow::More);
            }
            let old = self.values_of(shape, bytes)?;
            if self.write(|| rows::delete(self.transaction, shape, key, &old))? {
                self.honour_locks(shape, key, &old, Strength::Update)?;
                self.owes_children(&delete.keys, shape.relation.oid, &old, None)?;
                self.return_row(delete.returning.as_deref(), &old, subqueries, each)?;
                count += 1;
            }
            Ok(Flow::More)
        })?;
        Ok(count)
    }

    /// A row by its key, if it is there.
    pub(super) fn row_of(&self, shape: &Shape, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let storage = shape.table().storage.table(self.transaction)?;
        Ok(self.transaction.get(storage, key, <[u8]>::to_vec)?)
    }

    /// Writes changed columns of a row; returns the new row.
    #[expect(clippy::too_many_arguments, reason = "all of one change")]
    pub(super) fn change(
        &self,
        shape: &Arc<Shape>,
        key: &[u8],
        row: &[u8],
        old: &[Value],
        mut changes: Vec<(usize, Value)>,
        rules: Option<&Rules>,
        subqueries: &[Subresult],
    ) -> Result<Vec<Value>> {
        let mut new = old.to_vec();
        for (position, value) in &changes {
            new[*position] = value.clone();
        }
        if let Some(rules) = rules {
            self.generate(rules, &mut new, subqueries)?;
            changes.retain(|(at, _)| !rules.generated.iter().any(|(own, _)| own == at));
            for (at, _) in &rules.generated {
                if new[*at] != old[*at] {
                    changes.push((*at, new[*at].clone()));
                }
            }
        }
        self.check(shape, &new, rules, subqueries)?;
        let keys = rows::changes_a_key(shape, old, &changes);
        let updated =
            self.write(|| rows::update(self.transaction, shape, key, row, old, &changes))?;
        match updated {
            Ok(()) => {
                let strength = if keys {
                    Strength::Update
                } else {
                    Strength::NoKeyUpdate
                };
                self.honour_locks(shape, key, old, strength)?;
                if let Some(rules) = rules {
                    self.check_options(shape, rules, &new, subqueries)?;
                }
                self.owes_alone(shape, Some(old), &new)?;
                Ok(new)
            }
            Err(duplicate) => Err(self.not_unique(&duplicate, shape, &new)),
        }
    }

    pub(super) fn values_of(&self, shape: &Shape, row: &[u8]) -> Result<Vec<Value>> {
        let schema = &shape.table().schema;
        let view = schema.view(row)?;
        (0..schema.len())
            .map(|position| Ok(view.get(position)?.to_value()))
            .collect()
    }

    /// Computes the generated columns of a row.
    fn generate(
        &self,
        rules: &Rules,
        values: &mut [Value],
        subqueries: &[Subresult],
    ) -> Result<()> {
        for (position, expr) in &rules.generated {
            let rows = [RowRef::Values(values)];
            let frame = self.frame(&rows, &[], subqueries);
            let value = expr.eval(&frame)?.into_value();
            values[*position] = value;
        }
        Ok(())
    }

    /// What domains ask, NOT NULL and CHECK.
    fn check(
        &self,
        shape: &Shape,
        values: &[Value],
        rules: Option<&Rules>,
        subqueries: &[Subresult],
    ) -> Result<()> {
        let rows = [RowRef::Values(values)];
        let frame = self.frame(&rows, &[], subqueries);
        for (position, domain) in rules.map_or(&[][..], |rules| &rules.domains) {
            domain.check(values[*position].as_ref(), &frame)?;
        }
        let schema = &shape.table().schema;
        let given = rules.and_then(|rules| rules.given.as_deref());
        for (column, value) in schema.columns().zip(values) {
            if !column.nullable && value.is_null() {
                let relation = &shape.relation.name;
                let message = format!(
                    "null value in column \"{}\" of relation \"{relation}\" violates not-null constraint",
                    column.name
                );
                let error = SqlError::new(sqlstate::NOT_NULL_VIOLATION, message);
                return Err(self
                    .refused_row(error, &shape.relation, given, values)
                    .on_table(&shape.relation, self.catalog)
                    .on_column(&column.name));
            }
        }
        for (name, check) in rules.map_or(&[][..], |rules| &rules.checks) {
            if check.eval(&frame)?.as_ref().as_bool() == Some(false) {
                let relation = &shape.relation.name;
                let message = format!(
                    "new row for relation \"{relation}\" violates check constraint \"{name}\""
                );
                let error = SqlError::new(sqlstate::CHECK_VIOLATION, message);
                return Err(self
                    .refused_row(error, &shape.relation, given, values)
                    .on_table(&shape.relation, self.catalog)
                    .on_constraint(name));
            }
        }
        Ok(())
    }

    /// Check options, when a row is written.
    fn check_options(
        &self,
        shape: &Shape,
        rules: &Rules,
        values: &[Value],
        subqueries: &[Subresult],
    ) -> Result<()> {
        let rows = [RowRef::Values(values)];
        let frame = self.frame(&rows, &[], subqueries);
        for (view, conditions) in &rules.options {
            for condition in conditions {
                if !condition.is_true(&frame)? {
                    let message = format!("new row violates check option for view \"{view}\"");
                    let error = SqlError::new(sqlstate::WITH_CHECK_OPTION_VIOLATION, message);
                    let given = rules.given.as_deref();
                    return Err(self.refused_row(error, &shape.relation, given, values));
                }
            }
        }
        Ok(())
    }

    /// An error of a row that is refused, with the row: as much of it as the user has given, or may read.
    fn refused_row(
        &self,
        error: SqlError,
        relation: &Relation,
        given: Option<&[usize]>,
        values: &[Value],
    ) -> SqlError {
        let text = |at: usize| {
            let mut text = String::new();
            if values[at].is_null() {
                text.push_str("null");
            } else {
                show(values[at].as_ref(), self.env.settings(), &mut text);
            }
            text
        };
        let row = |among: &mut dyn Iterator<Item = usize>| {
            let shown: Vec<String> = among.map(text).collect();
            format!("({})", shown.join(", "))
        };
        let given = given.filter(|_| !rows::may_read(self.env, self.catalog, relation));
        let (Some(given), Some(table)) = (given, relation.table()) else {
            let row = row(&mut (0..values.len()));
            return error.with_detail(format!("Failing row contains {row}."));
        };
        if given.is_empty() {
            return error;
        }
        let names = given.iter().map(|at| &*table.schema.column(*at).name);
        let names: Vec<&str> = names.collect();
        let row = row(&mut given.iter().copied());
        error.with_detail(format!(
            "Failing row contains ({}) = {row}.",
            names.join(", ")
        ))
    }

    fn return_row(
        &self,
        returning: Option<&[Expr]>,
        values: &[Value],
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<()> {
        self.return_rows(returning, &[RowRef::Values(values)], &[], subqueries, each)
    }

    /// The same over rows of several tables.
    fn return_rows(
        &self,
        returning: Option<&[Expr]>,
        rows: &[RowRef<'_>],
        slots: &[Value],
        subqueries: &[Subresult],
        each: &mut Each<'_>,
    ) -> Result<()> {
        let Some(returning) = returning else {
            return Ok(());
        };
        let frame = self.frame(rows, slots, subqueries);
        let mut out: Vec<Out<'_>> = Vec::with_capacity(returning.len());
        for expr in returning {
            out.push(expr.eval(&frame)?);
        }
        each(&out).map(|_| ())
    }
}

/// The row that was changed, and those of the other tables that found it.
fn joined_rows<'v>(own: &'v [Value], others: &'v [Value], widths: &[usize]) -> Vec<RowRef<'v>> {
    let mut rows = vec![RowRef::Values(own)];
    let mut rest = others;
    for width in widths {
        let (row, behind) = rest.split_at(*width);
        rows.push(RowRef::Values(row));
        rest = behind;
    }
    rows
}

/// Whether an update touches nothing but columns that no index, no foreign key and no rule knows: then what else stands in its rows need not be read.
fn is_narrow(update: &Update) -> bool {
    let assigned = |positions: &[usize]| {
        let mut all = update.assignments.iter();
        all.any(|(position, _)| positions.contains(position))
    };
    let oid = update.shape.relation.oid;
    let in_foreign_key = update.keys.get(&oid).is_some_and(|keys| {
        keys.references.iter().any(|key| assigned(&key.columns))
            || keys
                .referred
                .iter()
                .any(|key| assigned(&key.target_columns))
    });
    update.returning.is_none()
        && update.rules.generated.is_empty()
        && update.rules.allow_all()
        && !in_foreign_key
        && !update.shape.keys.iter().any(|keys| assigned(&keys.reads))
}

/// Whether a column that takes no null is given one.
fn leaves_null(shape: &Shape, changes: &[(usize, Value)]) -> bool {
    let schema = &shape.table().schema;
    let mut changes = changes.iter();
    changes.any(|(position, value)| value.is_null() && !schema.column(*position).nullable)
}

#[cold]
fn twice() -> SqlError {
    let text = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
    SqlError::new(sqlstate::CARDINALITY_VIOLATION, text).with_hint(hint)
}
