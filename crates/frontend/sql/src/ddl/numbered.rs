//! ADD COLUMN of a column that a sequence numbers: serial, or GENERATED AS IDENTITY.

use super::Ddl;
use crate::catalog::{Asking, Default, Kind, Oid, Relation, Table, next_value};
use crate::error::{Result, SqlError};
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
        let numbers = self.open.catalog.1.relation(sequence).cloned();
        let numbers = numbers.ok_or_else(|| SqlError::internal("no sequence"))?;
        let Kind::Sequence(definition) = &numbers.kind else {
            return Err(SqlError::internal("no sequence"));
        };
        let ty = next.schema.columns().last().map(|column| column.ty);
        let ty = ty.ok_or_else(|| SqlError::internal("no column"))?;
        let forms = self.forms;
        self.add_values(relation, next, |ddl, rows| {
            let look = || ddl.waiting.look_cancelled();
            let asking: Asking<'_> = (&ddl.shared.engine, &look);
            for row in rows {
                let name = &numbers.name;
                // The column is durable behind it.
                let (number, _) = next_value(asking, name, definition, &numbers.runtime)?;
                let number = Value::Int8(number);
                row.push(cast(number.as_ref(), ty, Typmod::NONE, false, forms)?);
            }
            Ok(())
        })
    }
}
