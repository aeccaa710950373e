//! Names of columns with a schema in front of their table's.
//!
//! Such a name means a relation of the catalog that the statement reads or writes under its own name: neither an alias, though it be the same word, nor a query of WITH, nor a table of another schema
//! that is called so.

use super::types::folded;
use super::{Binder, Bound};
use crate::catalog::Named;
use crate::database::DATABASE;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;

impl Binder<'_> {
    /// A column of `schema.table` or of `database.schema.table`.
    ///
    /// # Errors
    /// As [`Self::check_schema`] and [`Self::column`].
    pub(super) fn qualified_column(&mut self, parts: &[ast::Ident]) -> Result<Bound> {
        let Some((column, [.., table])) = parts.split_last() else {
            return Err(SqlError::internal("a name of one part"));
        };
        let names = parts.iter().map(folded).collect::<Vec<_>>();
        self.check_schema(&names[..names.len() - 1], &names.join("."))?;
        self.column(Some(&folded(table)), &folded(column))
    }

    /// That what FROM has under a table's name is the table of the schema in front of it; `whole` is all that is written.
    ///
    /// # Errors
    /// `42P01`; `0A000` for another database, `42601` for too many names.
    pub(crate) fn check_schema(&self, names: &[String], whole: &str) -> Result<()> {
        let (schema, table) = match names {
            [schema, table] => (schema, table),
            [database, schema, table] if database == DATABASE => (schema, table),
            [_, _, _] => {
                let message = format!("cross-database references are not implemented: {whole}");
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            _ => {
                let message = format!("improper qualified name (too many dotted names): {whole}");
                return Err(SqlError::syntax(message));
            }
        };
        let outer = self.outer.iter().rev().map(|outer| &outer.scope);
        let mut scopes = std::iter::once(&self.scope).chain(outer);
        // Whoever asks for the column says that there is none.
        let Some((scope, found)) = scopes.find_map(|scope| Some((scope, scope.named(table)?)))
        else {
            return Ok(());
        };
        let namespace = self.catalog.schema_named(schema, self.search_path);
        let meant = namespace.and_then(|namespace| self.catalog.named(namespace, table));
        let is_meant = match meant {
            Some(Named::Relation(oid)) => found.own() == Some(oid),
            _ => false,
        };
        match is_meant {
            true => Ok(()),
            false => Err(scope.no_table(table)),
        }
    }
}
