//! Rows of a relation in the engine: their keys, their index entries, and changing both together.
//!
//! Layout: a table's rows are in an engine table, keyed by the primary key's columns (order-preserving), or by a number that
//! ascends (big-endian u64) if there is none; the value is the row as `row::Schema` writes it, key columns included. An index
//! is an engine table of its own; see [`entry`], and [`part`] for what it computes.
//!
//! Not here: which rows (`exec`), constraints other than uniqueness.

mod entry;
mod part;
mod write;

pub(crate) use entry::{entry, primary_key_of};
pub(crate) use part::{Part, Parts, bound_condition, bound_expression, settings as index_settings};
pub(crate) use write::{
    Duplicate, assign, changes_a_key, delete, duplicate_in, insert, insert_entry, key_of, load,
    may_read, update,
};

use crate::catalog::{Relation, Table};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, RowRef};
use std::sync::Arc;
use vellum_row::{KeyCodec, KeyColumn, Value, ValueRef};

/// A relation with what is needed to make keys.
#[derive(Debug)]
pub(crate) struct Shape {
    pub relation: Arc<Relation>,
    /// One an index, in the table's order of them.
    pub keys: Vec<KeyShape>,
}

/// How the key of an index is made.
#[derive(Debug)]
pub(crate) struct KeyShape {
    /// Where its columns come from.
    pub parts: Vec<Part>,
    /// Rows for which it is not true have no entry.
    pub predicate: Option<Expr>,
    /// Positions of the columns that all of that reads.
    pub reads: Vec<usize>,
    unique: bool,
    nulls_distinct: bool,
    pub codec: KeyCodec,
}

impl Shape {
    /// # Errors
    /// `42809` for what is no table.
    pub fn of(relation: &Arc<Relation>) -> Result<Self> {
        let Some(table) = relation.table() else {
            let message = format!("\"{}\" is not a table", relation.name);
            return Err(SqlError::new(crate::sqlstate::WRONG_OBJECT_TYPE, message));
        };
        let keys = table.indexes.iter().map(|index| {
            let parts = Parts::of(relation, index)?;
            let columns = index.columns.iter().zip(&parts.columns);
            let columns = columns.map(|(column, part)| {
                let (ty, typmod) = part::type_of(part, relation);
                KeyColumn {
                    ty,
                    typmod,
                    descending: column.descending,
                    nulls_first: column.nulls_first,
                    // NOT NULL comes and goes; the bytes of keys stay.
                    nullable: !index.primary,
                }
            });
            Ok(KeyShape {
                codec: KeyCodec::new(columns.collect())?,
                reads: parts.reads(),
                parts: parts.columns,
                predicate: match index.method.has_entries() {
                    true => parts.predicate,
                    // Of no row.
                    false => Some(Expr::Const(Value::Bool(false))),
                },
                unique: index.keeps_apart(),
                nulls_distinct: index.nulls_distinct,
            })
        });
        Ok(Self {
            keys: keys.collect::<Result<_>>()?,
            relation: relation.clone(),
        })
    }

    /// The table.
    pub fn table(&self) -> &Table {
        match self.relation.table() {
            Some(table) => table,
            None => unreachable!("checked when the shape was made"),
        }
    }

    /// Whether the primary key orders the table.
    pub fn has_key(&self) -> bool {
        self.table().ordering_key().is_some()
    }
}

impl KeyShape {
    /// The column of the table that one of its columns is.
    pub fn column(&self, number: usize) -> Option<usize> {
        self.parts.get(number)?.column()
    }

    /// Whether it knows of all rows, and of nothing but their columns.
    pub fn is_plain(&self) -> bool {
        let mut parts = self.parts.iter();
        self.predicate.is_none() && parts.all(|part| part.column().is_some())
    }

    /// Whether a row has an entry.
    ///
    /// # Errors
    /// Those of the predicate.
    pub fn has_entry(&self, row: RowRef<'_>) -> Result<bool> {
        match &self.predicate {
            None => Ok(true),
            Some(predicate) => part::holds(predicate, row),
        }
    }

    /// Whether only one row may have a key, `null` or not.
    pub fn is_alone(&self, null: bool) -> bool {
        self.unique && !(null && self.nulls_distinct)
    }

    /// Appends the key of a row that has one; true if a column of it is null.
    ///
    /// # Errors
    /// `54000` for values that make no key; those of its expressions.
    pub fn encode(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let mut null = false;
        for (number, part) in self.parts.iter().enumerate() {
            let computed;
            let value = match part {
                Part::Column(at) => row.get(*at)?,
                Part::Computed { expr, .. } => {
                    computed = part::computed(expr, row)?;
                    computed.as_ref()
                }
            };
            null |= value.is_null();
            self.codec.encode_column(number, value, out)?;
        }
        Ok(null)
    }

    /// The same of anything that has columns, for a key of columns alone.
    pub fn encode_with<'v>(
        &self,
        column: impl Fn(usize) -> Result<ValueRef<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for (number, part) in self.parts.iter().enumerate() {
            let at = part.column();
            let at =
                at.ok_or_else(|| SqlError::internal("a row that is ordered by an expression"))?;
            self.codec.encode_column(number, column(at)?, out)?;
        }
        Ok(())
    }
}
