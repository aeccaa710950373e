//! Rows of a relation in the engine: their keys, their index entries, and changing both together.
//!
//! Layout: a table's rows are in an engine table, keyed by the primary key's columns (order-preserving), or by a number that
//! ascends (big-endian u64) if there is none; the value is the row as `row::Schema` writes it, key columns included. An index
//! is an engine table of its own; see [`entry`].
//!
//! Not here: which rows (`exec`), constraints other than uniqueness.

mod entry;
mod write;

pub(crate) use entry::{entry, primary_key_of};
pub(crate) use write::{
    Duplicate, assign, changes_a_key, delete, duplicate_in, insert, insert_entry, key_of, load,
    update,
};

use crate::catalog::{Relation, Table};
use crate::error::{Result, SqlError};
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
    pub positions: Vec<usize>,
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
            let positions: Vec<usize> = index
                .columns
                .iter()
                .map(|column| table.position(column.column))
                .collect();
            let parts = index.columns.iter().zip(&positions).map(|(column, at)| {
                let definition = table.schema.column(*at);
                KeyColumn {
                    ty: definition.ty,
                    typmod: definition.typmod,
                    descending: column.descending,
                    nulls_first: column.nulls_first,
                    // NOT NULL comes and goes; the bytes of keys stay.
                    nullable: !index.primary,
                }
            });
            Ok(KeyShape {
                codec: KeyCodec::new(parts.collect())?,
                positions,
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
        self.table().primary_key().is_some()
    }
}

impl KeyShape {
    /// Appends the key of a row; true if a column of it is null.
    ///
    /// # Errors
    /// `54000` for values that make no key.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<bool> {
        self.encode_with(|at| Ok(values[at].as_ref()), out)
    }

    /// The same of anything that has columns.
    pub fn encode_with<'v>(
        &self,
        column: impl Fn(usize) -> Result<ValueRef<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut null = false;
        for (number, position) in self.positions.iter().enumerate() {
            let value = column(*position)?;
            null |= value.is_null();
            self.codec.encode_column(number, value, out)?;
        }
        Ok(null)
    }
}
