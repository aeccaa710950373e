//! Foreign keys at work: targets of new rows are held, and what refers to a row that goes follows its key's action.
//!
//! All of it at the end of a statement, as in PostgreSQL: a row may refer to one that the same statement inserts behind it.
//!
//! Interleavings (one transaction inserts a child, another deletes its parent): who inserts takes KEY SHARE on the target's key,
//! then looks at the newest version there; who deletes places its tombstone, then looks for locks (L2 of `lock::rows`), so one waits for the
//! other. Who has waited for the inserter, or came after it had committed and released its lock, looks for children in a snapshot that is
//! drawn behind its own tombstone, so it sees what that one committed. Under repeatable read its own snapshot does not: there another
//! transaction looks as of now, and a child that it sees and that is not this transaction's own version is in the way, whether the old
//! snapshot has it elsewhere or not at all. A child of the old snapshot alone forbids nothing.
//!
//! A target that was deleted after the snapshot is `40001` under repeatable read, as in PostgreSQL: for this transaction it is still there.

use super::deferred::Claim;
use super::{Flow, Run};
use crate::catalog::{Action, Catalog};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, RowRef};
use crate::lock::{Obstacle, RowName, Strength};
use crate::plan::{Access, Foreign, ForeignTables};
use crate::rows;
use crate::sqlstate;
use std::collections::VecDeque;
use std::sync::Arc;
use vellum::{Newest, TransactionOptions};
use vellum_row::{Settings, Value, ValueRef, compare, show};

/// What a changed row has yet to answer for.
#[derive(Debug)]
pub(super) enum Due {
    /// A row refers to something: it must be there.
    Target(Arc<Foreign>, Vec<Value>),
    /// A key is gone, or has become another: what refers to it follows.
    Children {
        foreign: Arc<Foreign>,
        old: Vec<Value>,
        /// The row as it is now; `None` if it is gone.
        new: Option<Vec<Value>>,
    },
    /// A row has come into an index in which rows may share a key for a while.
    Alone(Claim),
}

/// Rows that have to have a target, and are looked at together at the end. (What is looked at later finds what the statement inserts behind it.)
const DUES_MAX: usize = 4096;

impl Run<'_, '_> {
    /// A row was inserted, or (with `old`) changed.
    pub(super) fn owes_targets(
        &self,
        tables: &ForeignTables,
        oid: u32,
        old: Option<&[Value]>,
        new: &[Value],
    ) -> Result<()> {
        let Some(keys) = tables.get(&oid) else {
            return Ok(());
        };
        if !self.env.keeps_foreign_keys() {
            return Ok(());
        }
        for foreign in &keys.references {
            // A row that is null in a part of a key that is to be whole is looked at whatever was changed, as in PostgreSQL.
            let is_same = || old.is_some_and(|old| same(old, new, &foreign.columns));
            if foreign.off.references || !foreign.is_mixed(new) && is_same() {
                continue;
            }
            if self.is_deferred(foreign.oid, foreign.timing) {
                self.defer_target(foreign, old.is_none(), new)?;
                continue;
            }
            // What is there now is there at the end, or who takes it away answers for this row, too: so what is kept does not grow with the rows.
            let many = self.dues.borrow().len() >= DUES_MAX;
            if many && self.hold_target(foreign, new)?.is_ok() {
                continue;
            }
            let due = Due::Target(foreign.clone(), new.to_vec());
            self.dues.borrow_mut().push_back(due);
        }
        Ok(())
    }

    /// A row is gone, or (with `new`) has changed.
    pub(super) fn owes_children(
        &self,
        tables: &ForeignTables,
        oid: u32,
        old: &[Value],
        new: Option<&[Value]>,
    ) -> Result<()> {
        let Some(keys) = tables.get(&oid) else {
            return Ok(());
        };
        if !self.env.keeps_foreign_keys() {
            return Ok(());
        }
        for foreign in &keys.referred {
            let columns = &foreign.target_columns;
            let null = columns.iter().any(|at| old[*at].is_null());
            let stays = || new.is_some_and(|new| same_image(old, new, columns));
            if foreign.off.target || null || stays() {
                continue;
            }
            let action = foreign.action(new.is_some());
            if action == Action::NoAction && self.is_deferred(foreign.oid, foreign.timing) {
                self.defer_children(foreign, old)?;
                continue;
            }
            self.dues.borrow_mut().push_back(Due::Children {
                foreign: foreign.clone(),
                old: old.to_vec(),
                new: new.map(<[Value]>::to_vec),
            });
        }
        Ok(())
    }

    /// Settles what is due, at the end of a statement: first what follows from it, then whether rows are alone under their keys, for those that the
    /// actions have changed, too.
    ///
    /// # Errors
    /// `23503`, `23505`, and what the actions meet.
    pub(super) fn settle_keys(&self, tables: &ForeignTables) -> Result<()> {
        self.claim_keys()?;
        let looks = |due: &Due| matches!(due, Due::Children { .. } | Due::Alone(_));
        if self.dues.borrow().iter().any(looks) && !self.repeatable {
            // Behind the tombstones and the claims: whoever has released a lock by now has committed before this snapshot.
            self.transaction.begin_statement()?;
        }
        let (mut alone, mut followed) = (VecDeque::new(), false);
        loop {
            let due = self.dues.borrow_mut().pop_front();
            match due {
                None => break,
                Some(Due::Target(foreign, row)) => self.hold_target(&foreign, &row)??,
                Some(due @ Due::Alone(_)) => alone.push_back(due),
                Some(Due::Children { foreign, old, new }) => {
                    self.step()?;
                    self.follow(tables, &foreign, &old, new.as_deref())?;
                    followed = true;
                }
            }
        }
        if followed && !alone.is_empty() {
            // Actions have put rows under keys, too, and those are not claimed yet.
            *self.dues.borrow_mut() = alone;
            self.claim_keys()?;
            if !self.repeatable {
                self.transaction.begin_statement()?;
            }
            alone = std::mem::take(&mut *self.dues.borrow_mut());
        }
        for due in alone {
            if let Due::Alone(claim) = due {
                self.look_alone(&claim)?;
            }
        }
        Ok(())
    }

    /// The target of a row is there, and stays; `Err` inside `Ok`: it is not.
    ///
    /// # Errors
    /// A conflict if it is to be waited for.
    pub(super) fn hold_target(
        &self,
        foreign: &Foreign,
        row: &[Value],
    ) -> Result<std::result::Result<(), SqlError>> {
        let settings = self.env.settings();
        let mut key = Vec::new();
        match foreign.target_key(row, settings, &mut key)? {
            None => return Ok(Ok(())),
            Some(false) => return Ok(Err(self.without_target(foreign, row))),
            Some(true) => {}
        }
        let name = RowName {
            oid: foreign.target_oid(),
            key: key.as_slice().into(),
        };
        let before = self.locks.count();
        let runtime = &foreign.parent.relation.runtime;
        if !self.locks.take(runtime, &name, Strength::KeyShare) {
            return Err(self.waits_for(Obstacle::Holders(name, Strength::KeyShare)));
        }
        let storage = foreign.target_storage().table(self.transaction)?;
        let there = match self.transaction.newest(storage, &key)? {
            Newest::Seen { live } | Newest::Committed { live } => live,
            Newest::Nothing => false,
            Newest::Running { live: false, by } => {
                self.locks.release_to(before);
                return Err(self.waits_for(Obstacle::Writer(by)));
            }
            // Whoever changes it leaves its key alone, or has inserted it and may take that back: then what is beneath counts, as of now. The statement's
            // snapshot may still show one that was deleted since.
            Newest::Running { live: true, .. } => self.committed(storage, &key, |_| ())?.is_some(),
        };
        if there {
            return Ok(Ok(()));
        }
        if self.repeatable && self.transaction.get(storage, &key, |_| ())?.is_some() {
            return Ok(Err(vellum::Error::Conflict.into()));
        }
        Ok(Err(self.without_target(foreign, row)))
    }

    /// `23503` for a row without its target; the key is told to who may read the row.
    #[cold]
    fn without_target(&self, foreign: &Foreign, row: &[Value]) -> SqlError {
        let error = no_target(foreign, row, self.env.settings(), self.catalog);
        match rows::may_read(self.env, self.catalog, &foreign.child.relation) {
            _ if foreign.is_mixed(row) => error,
            true => error,
            false => {
                let parent = &foreign.parent.relation.name;
                error.with_detail(format!("Key is not present in table \"{parent}\"."))
            }
        }
    }

    /// `23503` for a key that something refers to.
    #[cold]
    fn still_referred(&self, foreign: &Foreign, old: &[Value]) -> SqlError {
        let (child, parent) = (&foreign.child.relation, &foreign.parent.relation);
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            parent.name, foreign.name, child.name
        );
        let settings = self.env.settings();
        let key = match rows::may_read(self.env, self.catalog, parent) {
            true => shown(&foreign.parent, &foreign.target_columns, old, settings),
            false => "Key".to_owned(),
        };
        let detail = format!("{key} is still referenced from table \"{}\".", child.name);
        SqlError::new(sqlstate::FOREIGN_KEY_VIOLATION, message)
            .with_detail(detail)
            .on_table(child, self.catalog)
            .on_constraint(&foreign.name)
    }

    /// What refers to a key that is gone.
    fn follow(
        &self,
        tables: &ForeignTables,
        foreign: &Arc<Foreign>,
        old: &[Value],
        new: Option<&[Value]>,
    ) -> Result<()> {
        let action = foreign.action(new.is_some());
        if !action.writes() {
            return self.nothing_refers(foreign, old, action);
        }
        let mut found = self.followers(foreign, old)?;
        if self.repeatable {
            self.look_beside(foreign, old, action)?;
        }
        let child = &foreign.child;
        let oid = child.relation.oid;
        while let Some((key, bytes)) = found.next()? {
            let values = self.values_of(child, &bytes)?;
            match (action, new) {
                (Action::Cascade, None) => {
                    if rows::delete(self.transaction, child, &key, &values)? {
                        self.honour_locks(child, &key, &values, Strength::Update)?;
                        self.owes_children(tables, oid, &values, None)?;
                    }
                }
                _ => {
                    let mut changes = Vec::with_capacity(foreign.columns.len());
                    for (number, at) in foreign.columns.iter().enumerate() {
                        let value = match (action, new) {
                            (Action::Cascade, Some(new)) => self.as_child(
                                foreign,
                                number,
                                &new[foreign.target_columns[number]],
                            )?,
                            (Action::SetDefault, _) => {
                                let frame = self.frame(&[], &[], &[]);
                                foreign.defaults[number].eval(&frame)?.into_value()
                            }
                            _ => Value::Null,
                        };
                        changes.push((*at, value));
                    }
                    let rules = tables.get(&oid).map(|keys| &keys.rules);
                    let changed = self.change(child, &key, &bytes, &values, changes, rules, &[])?;
                    // A default may be the very key that is gone.
                    let before = (action != Action::SetDefault).then_some(values.as_slice());
                    self.owes_targets(tables, oid, before, &changed)?;
                    self.owes_children(tables, oid, &values, Some(&changed))?;
                }
            }
        }
        self.give_back(found.kept());
        Ok(())
    }

    /// Nothing refers to a key that is gone, under NO ACTION unless another row has it now.
    ///
    /// # Errors
    /// `23503`; a conflict if it is to be waited for.
    pub(super) fn nothing_refers(
        &self,
        foreign: &Foreign,
        old: &[Value],
        action: Action,
    ) -> Result<()> {
        if action == Action::NoAction && self.has_key(foreign, old)? {
            return Ok(());
        }
        // Mostly the first that is found forbids it, however many there are.
        self.each_child(foreign, old, &mut |key, _| {
            self.forbids(foreign, old, key)?;
            Ok(Flow::More)
        })?;
        match self.repeatable {
            true => self.look_beside(foreign, old, action),
            false => Ok(()),
        }
    }

    /// Whether a row has the values of a foreign key that `row` has.
    pub(super) fn has_child(&self, foreign: &Foreign, row: &[Value]) -> Result<bool> {
        let (access, exact) = match foreign.is_mixed(row) {
            // Nulls are found nowhere else.
            true => (Access::all(), false),
            false => path(foreign, true, |number| row[foreign.columns[number]].clone()),
        };
        let schema = &foreign.child.table().schema;
        let mut found = false;
        self.scan(&foreign.child, &access, &[], &[], &mut |_, bytes| {
            self.step()?;
            if !exact {
                let own = schema.view(bytes)?;
                for at in &foreign.columns {
                    let value = own.get(*at)?;
                    let null = row[*at].is_null();
                    if value.is_null() != null
                        || !null && !compare(value, row[*at].as_ref()).is_eq()
                    {
                        return Ok(Flow::More);
                    }
                }
            }
            found = true;
            Ok(Flow::Enough)
        })?;
        Ok(found)
    }

    /// A value of the target as one of the child's column.
    fn as_child(&self, foreign: &Foreign, number: usize, value: &Value) -> Result<Value> {
        let column = foreign.child.table().schema.column(foreign.columns[number]);
        let settings = self.env.settings();
        Ok(vellum_row::cast(
            value.as_ref(),
            column.ty,
            column.typmod,
            false,
            settings,
        )?)
    }

    /// Whether a row has the key that was `old`'s.
    fn has_key(&self, foreign: &Foreign, old: &[Value]) -> Result<bool> {
        let mut key = Vec::new();
        foreign.parent.keys[foreign.index].encode(RowRef::Values(old), &mut key)?;
        let storage = foreign.target_storage().table(self.transaction)?;
        Ok(self.transaction.get(storage, &key, |_| ())?.is_some())
    }

    /// Calls `each` with the key and the bytes of every row that refers to a key.
    pub(super) fn each_child(
        &self,
        foreign: &Foreign,
        old: &[Value],
        each: &mut dyn FnMut(&[u8], &[u8]) -> Result<Flow>,
    ) -> Result<()> {
        let child = &foreign.child;
        let own = |number: usize| old[foreign.target_columns[number]].clone();
        let (access, exact) = path(foreign, false, own);
        let schema = &child.table().schema;
        self.scan(child, &access, &[], &[], &mut |key, bytes| {
            self.step()?;
            let row = RowRef::Stored(schema.view(bytes)?);
            if !exact {
                for (at, target) in foreign.columns.iter().zip(&foreign.target_columns) {
                    let value = row.get(*at)?;
                    if value.is_null()
                        || !equal(
                            foreign,
                            *at,
                            value.to_value(),
                            &old[*target],
                            self.env.settings(),
                        )?
                    {
                        return Ok(Flow::More);
                    }
                }
            }
            each(key, bytes)
        })?;
        Ok(())
    }

    /// A row that this transaction sees referring to a key that is to go forbids that, unless it is gone itself.
    ///
    /// # Errors
    /// `23503`; a conflict if it is to be waited for.
    fn forbids(&self, foreign: &Foreign, old: &[Value], key: &[u8]) -> Result<()> {
        let storage = foreign.child.table().storage.table(self.transaction)?;
        match self.transaction.newest(storage, key)? {
            Newest::Running { live: false, by } => Err(self.waits_for(Obstacle::Writer(by))),
            // Changed since. What became of it is looked at beside; else the statement starts over.
            Newest::Nothing | Newest::Committed { .. } | Newest::Running { live: true, .. }
                if self.repeatable =>
            {
                Ok(())
            }
            Newest::Nothing | Newest::Committed { .. } => Err(vellum::Error::Conflict.into()),
            _ => Err(self.still_referred(foreign, old)),
        }
    }

    /// Under repeatable read: nothing refers to the key that was committed after the snapshot.
    ///
    /// # Errors
    /// `23503` where that forbids it, else `40001`; a conflict if it is to be waited for.
    fn look_beside(&self, foreign: &Foreign, old: &[Value], action: Action) -> Result<()> {
        let options = TransactionOptions::default().read_only(true);
        let now = self.engine.begin_with(options)?;
        let beside = self.beside(&now);
        let storage = foreign.child.table().storage.table(self.transaction)?;
        let forbidden = matches!(action, Action::NoAction | Action::Restrict);
        beside.each_child(foreign, old, &mut |key, _| {
            match self.transaction.newest(storage, key)? {
                // What this transaction sees, or has changed itself.
                Newest::Seen { .. } => Ok(Flow::More),
                Newest::Running { live: false, by } => Err(self.waits_for(Obstacle::Writer(by))),
                Newest::Running { live: true, .. } | Newest::Committed { live: true }
                    if forbidden =>
                {
                    Err(self.still_referred(foreign, old))
                }
                // What is to be changed: whether that is a conflict depends on how the other ends.
                Newest::Running { live: true, by } => Err(self.waits_for(Obstacle::Writer(by))),
                _ => Err(vellum::Error::Conflict.into()),
            }
        })
    }
}

/// The path to the rows of a foreign key's table whose columns have the values that `value` gives by the number of the column in the key, and whether
/// it finds no others. `own`: the values are of the columns' types, not of the target's.
fn path(foreign: &Foreign, own: bool, value: impl Fn(usize) -> Value) -> (Access, bool) {
    let table = foreign.child.table();
    let width = foreign.columns.len();
    let fits = |number: &usize| {
        let keys = &foreign.child.keys[*number];
        let same_types = || {
            let mut columns = foreign.columns.iter().zip(&foreign.target_columns);
            columns.all(|(own, target)| {
                let own = table.schema.column(*own).ty;
                let target = foreign.parent.table().schema.column(*target).ty;
                own == target || (own.is_integer() && target.is_integer())
            })
        };
        // Each column of the key is one of the index's first: that may have one twice, and say nothing of another.
        let place = |part| {
            let at = keys.column(part)?;
            foreign.columns.iter().position(|own| *own == at)
        };
        let has = |number| (0..width).any(|part| place(part) == Some(number));
        let all = (0..width).all(has);
        keys.predicate.is_none() && all && (own || same_types())
    };
    let Some(index) = (0..table.indexes.len()).find(fits) else {
        return (Access::all(), false);
    };
    let keys = &foreign.child.keys[index];
    let values = (0..width).map(|number| {
        let at = keys.column(number);
        let number = foreign.columns.iter().position(|own| Some(*own) == at);
        Expr::Const(number.map_or(Value::Null, &value))
    });
    let access = Access {
        index: Some(index),
        equal: values.collect(),
        ..Access::all()
    };
    (access, true)
}

fn equal(
    foreign: &Foreign,
    at: usize,
    own: Value,
    target: &Value,
    settings: &Settings,
) -> Result<bool> {
    let ty = foreign.child.table().schema.column(at).ty;
    let both_integers = ty.is_integer() && target.as_ref().as_i64().is_some();
    if both_integers || target.ty() == own.ty() {
        return Ok(compare(own.as_ref(), target.as_ref()).is_eq());
    }
    if let (Value::Float8(own), Value::Float4(target)) = (&own, target) {
        let target = ValueRef::Float8(f64::from(*target));
        return Ok(compare(ValueRef::Float8(*own), target).is_eq());
    }
    let wanted = target.ty().unwrap_or(ty);
    let own = vellum_row::cast(
        own.as_ref(),
        wanted,
        vellum_row::Typmod::NONE,
        false,
        settings,
    )?;
    Ok(compare(own.as_ref(), target.as_ref()).is_eq())
}

fn same(old: &[Value], new: &[Value], columns: &[usize]) -> bool {
    let mut columns = columns.iter();
    columns.all(|at| compare(old[*at].as_ref(), new[*at].as_ref()).is_eq())
}

/// Whether a referred key is what it was to the last digit: 1.0 that becomes 1.00 is another one to its actions, as in PostgreSQL.
fn same_image(old: &[Value], new: &[Value], columns: &[usize]) -> bool {
    let mut columns = columns.iter();
    columns.all(|at| match (&old[*at], &new[*at]) {
        (Value::Float4(old), Value::Float4(new)) => old.to_bits() == new.to_bits(),
        (Value::Float8(old), Value::Float8(new)) => old.to_bits() == new.to_bits(),
        (old, new) => old == new,
    })
}

/// `Key (a, b)=(1, 2)`, for details.
fn shown(shape: &rows::Shape, columns: &[usize], row: &[Value], settings: &Settings) -> String {
    let schema = &shape.table().schema;
    let names: Vec<&str> = columns.iter().map(|at| &*schema.column(*at).name).collect();
    let values = columns.iter().map(|at| {
        let mut text = String::new();
        show(row[*at].as_ref(), settings, &mut text);
        text
    });
    let values: Vec<String> = values.collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

const MIXED: &str = "MATCH FULL does not allow mixing of null and nonnull key values.";

/// `23503` for a row without its target.
#[cold]
pub(crate) fn no_target(
    foreign: &Foreign,
    row: &[Value],
    settings: &Settings,
    catalog: &Catalog,
) -> SqlError {
    let (child, parent) = (&foreign.child.relation, &foreign.parent.relation);
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        child.name, foreign.name
    );
    let detail = match foreign.is_mixed(row) {
        true => MIXED.to_owned(),
        false => {
            let key = shown(&foreign.child, &foreign.columns, row, settings);
            format!("{key} is not present in table \"{}\".", parent.name)
        }
    };
    SqlError::new(sqlstate::FOREIGN_KEY_VIOLATION, message)
        .with_detail(detail)
        .on_table(child, catalog)
        .on_constraint(&foreign.name)
}
