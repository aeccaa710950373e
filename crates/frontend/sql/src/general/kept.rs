//! Columns of queries in FROM, and of the sides of set operations, that are computed whether anybody reads them or not.
//!
//! Operators compute what is read. A column that draws, or does something (`nextval`, a lock, a setting), is computed of each row all the same, as PostgreSQL does and programs do (V1, UR1).

use super::translate::{Translation, built};
use crate::error::Result;
use crate::plan::{Body, Select, draws};
use vellum_query::Relation;

impl Translation<'_, '_, '_> {
    /// The rows of a query, with such columns kept.
    pub(super) fn keeping(&self, select: &Select, rows: Relation) -> Result<Relation> {
        let Body::From { output, .. } = &select.body else {
            return Ok(rows);
        };
        let pairs = output.iter().zip(rows.columns());
        let drawing = pairs.filter(|(expr, _)| draws(expr, &select.subqueries));
        let columns: Vec<_> = drawing.map(|(_, column)| *column).collect();
        match columns.is_empty() {
            true => Ok(rows),
            false => built(rows.keeping(&self.symbols, &columns)),
        }
    }
}
