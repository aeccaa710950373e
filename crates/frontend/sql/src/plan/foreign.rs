//! Foreign keys as a change of rows meets them.

use super::{Conflict, ConflictAction, Rules};
use crate::bind::Binder;
use crate::catalog::{Action, ForeignKey, Oid, Relation, Storage, SwitchedOff, Timing};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::rows::Shape;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::{ColumnId, Settings, Type, Typmod, Value, ValueRef, cast};

/// A foreign key.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub oid: Oid,
    pub name: Box<str>,
    /// The table that has it.
    pub child: Arc<Shape>,
    /// Its target.
    pub parent: Arc<Shape>,
    /// Number of the target's unique index that holds the keys.
    pub index: usize,
    /// Positions of its columns, in the order of that index.
    pub columns: Vec<usize>,
    /// Positions of the target's.
    pub target_columns: Vec<usize>,
    pub on_delete: Action,
    pub on_update: Action,
    pub timing: Timing,
    /// MATCH FULL: either all columns are null or none is.
    pub full: bool,
    pub off: SwitchedOff,
    /// What the columns become by SET DEFAULT.
    pub defaults: Vec<Expr>,
}

/// Of a table that a statement changes, or that one of its actions does.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKeys {
    /// Those that it has.
    pub references: Vec<Arc<Foreign>>,
    /// Those whose target it is.
    pub referred: Vec<Arc<Foreign>>,
    /// What holds for its rows.
    pub rules: Rules,
}

/// The foreign keys that a statement may meet, by table.
pub(crate) type ForeignTables = HashMap<Oid, ForeignKeys>;

impl Foreign {
    /// # Errors
    /// `XX000` if the target has no such index.
    pub fn new(
        child: &Arc<Relation>,
        parent: &Arc<Relation>,
        key: &ForeignKey,
        defaults: Vec<Expr>,
    ) -> Result<Self> {
        let (child, parent) = (Arc::new(Shape::of(child)?), Arc::new(Shape::of(parent)?));
        let (own, target) = (child.table(), parent.table());
        let index = target.unique_index(&key.target_columns);
        let index = index.ok_or_else(|| SqlError::internal("a foreign key without index"))?;
        // In the order of the index.
        let order = target.indexes[index].key_columns().map(|part| {
            let at = key.target_columns.iter().position(|column| *column == part);
            at.ok_or_else(|| SqlError::internal("a foreign key of other columns"))
        });
        let order = order.collect::<Result<Vec<usize>>>()?;
        Ok(Self {
            oid: key.oid,
            name: key.name.clone(),
            columns: order
                .iter()
                .map(|at| own.position(key.columns[*at]))
                .collect(),
            target_columns: order
                .iter()
                .map(|at| target.position(key.target_columns[*at]))
                .collect(),
            defaults: if defaults.is_empty() {
                defaults
            } else {
                order.iter().map(|at| defaults[*at].clone()).collect()
            },
            index,
            child,
            parent,
            on_delete: key.on_delete,
            on_update: key.on_update,
            timing: key.timing,
            full: key.full,
            off: key.off,
        })
    }

    /// What is done when a key goes, or becomes another.
    pub fn action(&self, changed: bool) -> Action {
        if changed {
            self.on_update
        } else {
            self.on_delete
        }
    }

    /// Oid under which the target's keys are locked.
    pub fn target_oid(&self) -> Oid {
        let index = &self.parent.table().indexes[self.index];
        match index.storage {
            None => self.parent.relation.oid,
            Some(_) => index.oid,
        }
    }

    /// The engine table that holds the target's keys.
    pub fn target_storage(&self) -> &Storage {
        let table = self.parent.table();
        table.indexes[self.index]
            .storage
            .as_ref()
            .unwrap_or(&table.storage)
    }

    /// Whether a row has nulls and other values, which MATCH FULL forbids.
    pub fn is_mixed(&self, row: &[Value]) -> bool {
        let nulls = self.columns.iter().filter(|at| row[**at].is_null());
        self.full && !matches!(nulls.count(), 0) && !self.is_empty(row)
    }

    fn is_empty(&self, row: &[Value]) -> bool {
        self.columns.iter().all(|at| row[*at].is_null())
    }

    /// The key of the target of a row. `None` if a column is null, or if all are with MATCH FULL: it has none. `Some(false)` if no target can have these values.
    ///
    /// # Errors
    /// Of casts.
    pub fn target_key(
        &self,
        row: &[Value],
        settings: &Settings,
        key: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        key.clear();
        if self.is_mixed(row) {
            return Ok(Some(false));
        }
        if self.columns.iter().any(|at| row[*at].is_null()) {
            return Ok(None);
        }
        let codec = &self.parent.keys[self.index].codec;
        for (number, at) in self.columns.iter().enumerate() {
            let ty = codec.columns()[number].ty;
            let value = row[*at].as_ref();
            let own = self.child.table().schema.column(*at).ty;
            // Integers are compared whatever their width.
            let fits = value.fits(ty) || (own.is_integer() && ty.is_integer());
            let done = if fits {
                codec.encode_equal(number, value, key)?
            } else if let ValueRef::Float8(wide) = value
                && ty == Type::Float4
            {
                // They are compared as the wider of the two: what is none of the narrower one's values has no equal.
                let narrow = wide as f32;
                let exact = f64::from(narrow) == wide || wide.is_nan();
                exact && codec.encode_equal(number, ValueRef::Float4(narrow), key)?
            } else {
                let value = cast(value, ty, Typmod::NONE, false, settings)?;
                codec.encode_equal(number, value.as_ref(), key)?
            };
            if !done {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

impl Binder<'_> {
    /// The same for an INSERT.
    ///
    /// # Errors
    /// As [`Binder::foreign_tables`].
    pub(super) fn foreign_tables_of_insert(
        &mut self,
        relation: &Arc<Relation>,
        conflict: Option<&Conflict>,
        rules: &Rules,
    ) -> Result<ForeignTables> {
        let assigned = match conflict.map(|conflict| &conflict.action) {
            Some(ConflictAction::Update { assignments, .. }) => &assignments[..],
            _ => &[],
        };
        self.foreign_tables_of(relation, (assigned, rules), true)
    }

    /// The same for a statement that inserts rows or not, and assigns to these columns of rows that are there, and no others. Where no key that others refer to is among them nothing
    /// follows from it, and tables that it does not look into are no targets: who empties or alters one of them is in nobody's way.
    ///
    /// # Errors
    /// As [`Binder::foreign_tables`].
    pub(super) fn foreign_tables_of(
        &mut self,
        relation: &Arc<Relation>,
        (assignments, rules): (&[(usize, Expr)], &Rules),
        inserts: bool,
    ) -> Result<ForeignTables> {
        let mut touched: Vec<usize> = assignments.iter().map(|(at, _)| *at).collect();
        if !touched.is_empty() {
            touched.extend(rules.generated.iter().map(|(at, _)| *at));
        }
        let mut tables = ForeignTables::default();
        let Some(table) = relation.table() else {
            return Ok(tables);
        };
        let is_touched = |columns: &[ColumnId]| {
            let mut columns = columns.iter();
            columns.any(|own| touched.contains(&table.position(*own)))
        };
        let mut referring = self.catalog.referring(relation.oid).into_iter();
        if referring.any(|(_, key)| is_touched(&key.target_columns)) {
            return self.foreign_tables(relation);
        }
        let mut references = Vec::new();
        for key in &table.foreign_keys {
            // A row that is null in a part of a key that is to be whole is looked at whatever was changed (`exec/foreign`).
            if (inserts || key.full || is_touched(&key.columns))
                && let Some(parent) = self.catalog.relation(key.target).cloned()
            {
                self.targets.push(parent.oid);
                references.push(Arc::new(Foreign::new(relation, &parent, key, Vec::new())?));
            }
        }
        if !references.is_empty() {
            let keys = ForeignKeys {
                references,
                referred: Vec::new(),
                rules: self.rules_alone(relation)?,
            };
            tables.insert(relation.oid, keys);
        }
        Ok(tables)
    }

    /// What holds for the rows of a relation, whatever the statement names.
    fn rules_alone(&mut self, relation: &Arc<Relation>) -> Result<Rules> {
        let scope = std::mem::take(&mut self.scope);
        let named = crate::bind::ScopeTable::of(relation, None);
        let rules = named.and_then(|named| {
            self.scope.add(named)?;
            self.rules(relation)
        });
        self.scope = scope;
        rules
    }

    /// The foreign keys that a change of a relation's rows may meet, through the actions of those that refer to it. Their tables are
    /// targets of the statement (G1).
    ///
    /// # Errors
    /// Of defaults and CHECK constraints that cannot be bound.
    pub(super) fn foreign_tables(&mut self, relation: &Arc<Relation>) -> Result<ForeignTables> {
        let mut tables = ForeignTables::default();
        let mut next = vec![relation.clone()];
        while let Some(relation) = next.pop() {
            if tables.contains_key(&relation.oid) {
                continue;
            }
            let own = relation
                .table()
                .map_or(&[][..], |table| &table.foreign_keys);
            let mut references = Vec::with_capacity(own.len());
            for key in own {
                if let Some(parent) = self.catalog.relation(key.target).cloned() {
                    self.targets.push(parent.oid);
                    references.push(Arc::new(Foreign::new(&relation, &parent, key, Vec::new())?));
                }
            }
            let mut referred = Vec::new();
            for (child, key) in self.catalog.referring(relation.oid) {
                self.targets.push(child.oid);
                let sets = [key.on_delete, key.on_update].contains(&Action::SetDefault);
                let defaults = if sets {
                    let table = child
                        .table()
                        .ok_or_else(|| SqlError::internal("no table"))?;
                    let positions = key.columns.iter().map(|column| table.position(*column));
                    let positions: Vec<usize> = positions.collect();
                    let defaults = positions.into_iter().map(|at| self.default(&child, at));
                    defaults.collect::<Result<_>>()?
                } else {
                    Vec::new()
                };
                referred.push(Arc::new(Foreign::new(&child, &relation, &key, defaults)?));
                if [key.on_delete, key.on_update]
                    .iter()
                    .any(|action| action.writes())
                {
                    next.push(child);
                }
            }
            if references.is_empty() && referred.is_empty() {
                // A child has its foreign key at least.
                debug_assert!(tables.is_empty());
                return Ok(tables);
            }
            let keys = ForeignKeys {
                references,
                referred,
                rules: self.rules_alone(&relation)?,
            };
            tables.insert(relation.oid, keys);
        }
        Ok(tables)
    }
}
