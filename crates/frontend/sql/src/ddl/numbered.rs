//! ADD COLUMN of a column that a sequence numbers: serial, or GENERATED AS IDENTITY.

use super::Ddl;
use crate::catalog::{Default, Kind, Oid, Relation, Table, next_value};
use crate::error::{Result, SqlError};
use crate::rows::Shape;
use std::sync::Arc;
use vellum_row::{Typmod, Value, cast};

impl Ddl<'_> {
    /// The sequence that numbers a column which was just defined, if one does.
    ///
    /// # Errors
    /// None that is known.
    pub(super) fn sequence_behind(
        &self,
        default: Option<&Default>,
        serial: bool,
    ) -> Result<Option<Oid>> {
        match default {
            Some(Default::Identity { sequence, .. }) => Ok(Some(*sequence)),
            Some(_) if serial => self.last_made().map(Some),
            _ => Ok(None),
        }
    }

    /// Numbers the rows that are there: writes them anew, with the last column of `next`.
    ///
    /// # Errors
    /// `2200H` where the sequence ends, `22003` where the column does.
    pub(super) fn number_rows(
        &mut self,
        relation: &Relation,
        next: Table,
        sequence: Oid,
    ) -> Result<Table> {
        if !self.has_rows(relation)? {
            return Ok(next);
        }
        let numbers = self.open.catalog.1.relation(sequence).cloned();
        let numbers = numbers.ok_or_else(|| SqlError::internal("no sequence"))?;
        let Kind::Sequence(definition) = &numbers.kind else {
            return Err(SqlError::internal("no sequence"));
        };
        let next = self.with_new_storage(relation, &next)?;
        let target = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..relation.clone()
        });
        let shape = Shape::of(&target)?;
        let ty = next.schema.columns().last().map(|column| column.ty);
        let ty = ty.ok_or_else(|| SqlError::internal("no column"))?;
        let (engine, forms) = (&self.shared.engine, self.forms);
        self.move_rows(relation, &shape, |values| {
            let name = &numbers.name;
            let number = next_value(engine, name, definition, &numbers.runtime)?;
            let number = Value::Int8(number);
            let mut row = values.to_vec();
            row.push(cast(number.as_ref(), ty, Typmod::NONE, false, forms)?);
            Ok(row)
        })?;
        if let Some(old) = relation.table() {
            self.drop_storage(old)?;
        }
        Ok(next)
    }
}
