//! Names of tables in front of columns, with a schema and without.
//!
//! One with a schema means a relation of the catalog that the statement reads or writes under its own name: neither an alias, though it be the same word, nor a query of WITH, nor a table of another schema
//! that is called so. Around a query whose tables are called so it finds the one that is meant.

use super::types::{folded, folded_before};
use super::{Binder, Bound, Found, NamedTable};
use crate::catalog::{Named, Oid};
use crate::database::DATABASE;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{Type, Typmod};

/// What stands in front of a column, or of `*`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TableName<'n> {
    /// A name alone: an alias, or a relation's that has none.
    Plain(&'n str),
    /// With its schema: the relation that it means, if there is one.
    Qualified(&'n str, Option<Oid>),
}

impl<'n> TableName<'n> {
    /// Without its schema.
    pub fn name(self) -> &'n str {
        match self {
            Self::Plain(name) | Self::Qualified(name, _) => name,
        }
    }

    /// Whether it stands for a table or a join of a FROM.
    pub fn is_of(self, named: NamedTable<'_>) -> bool {
        match self {
            Self::Plain(name) => named.name() == Some(name),
            Self::Qualified(_, oid) => oid.is_some() && named.own() == oid,
        }
    }
}

impl Binder<'_> {
    /// The table or the join of a name, of this query or of the nearest one around it that has it, and how many queries around that is.
    ///
    /// # Errors
    /// `42P09` for a name of several, `42P10` for one that LATERAL must not read.
    pub(super) fn named_around(
        &self,
        name: TableName<'_>,
    ) -> Result<Option<(usize, NamedTable<'_>)>> {
        let around = self.outer.iter().rev().map(|outer| &outer.scope);
        for (level, scope) in std::iter::once(&self.scope).chain(around).enumerate() {
            if let Some(found) = scope.named(name)? {
                scope.check_barred(found)?;
                return Ok(Some((level, found)));
            }
        }
        Ok(None)
    }

    /// Notes that columns are read of the query so many queries around.
    pub(super) fn reads_around(&mut self, level: usize) {
        let outside = self.outer.len() - level;
        let within = self.outer[outside..].iter_mut();
        within.for_each(|outer| outer.read = true);
    }

    /// The columns of a table or of a join, with their names.
    ///
    /// # Errors
    /// As [`Self::named_around`]; `42P01`.
    pub(super) fn columns_around(&mut self, name: TableName<'_>) -> Result<Vec<(String, Bound)>> {
        let Some((level, found)) = self.named_around(name)? else {
            return Err(self.scope.no_table(name.name()));
        };
        let columns = found.columns();
        self.reads_around(level);
        let mut all = Vec::with_capacity(columns.len());
        for column in columns {
            self.reads_columns(level, &column.expr);
            all.push((
                column.name,
                self.outwards(level, column.expr, column.ty, column.typmod)?,
            ));
        }
        Ok(all)
    }

    /// A value of the query so many queries around, in this one.
    ///
    /// # Errors
    /// `0A000` for one that asks a query there.
    pub(super) fn outwards(
        &self,
        level: usize,
        expr: Expr,
        ty: Type,
        typmod: Typmod,
    ) -> Result<Bound> {
        // Of a view that is written: its queries are the statement's.
        if level > 0 && expr.asks_a_query() {
            let text = "a column that a view computes by a query, read by a query";
            return Err(SqlError::unsupported(text));
        }
        let level = u16::try_from(level).map_err(|_| crate::parse::too_deep())?;
        let expr = Found { expr, ty, typmod }.expr(level);
        Ok(Bound {
            typmod,
            ..Bound::new(expr, ty)
        })
    }

    /// A column of `schema.table` or of `database.schema.table`.
    ///
    /// # Errors
    /// As [`Self::table_named`] and [`Self::column`].
    pub(super) fn qualified_column(&mut self, parts: &[ast::Ident]) -> Result<Bound> {
        let Some((column, tables)) = parts.split_last() else {
            return Err(SqlError::internal("a name of no part"));
        };
        let names = tables.iter().map(folded).collect::<Vec<_>>();
        let column = folded(column);
        let table = self.table_named(&names, &column)?;
        self.column(Some(table), &column)
    }

    /// The table of a name, with what stands before it; `column` stands behind it.
    ///
    /// # Errors
    /// `0A000` for another database, `42601` for too many names.
    pub(crate) fn table_named<'n>(
        &self,
        names: &'n [String],
        column: &str,
    ) -> Result<TableName<'n>> {
        let whole = || format!("{}.{column}", names.join("."));
        let (schema, table) = match names {
            [table] => return Ok(TableName::Plain(table)),
            [schema, table] => (schema, table),
            [database, schema, table] if database == DATABASE => (schema, table),
            [_, _, _] => {
                let message = format!("cross-database references are not implemented: {}", whole());
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            _ => {
                let message = format!(
                    "improper qualified name (too many dotted names): {}",
                    whole()
                );
                return Err(SqlError::syntax(message));
            }
        };
        let meant = self.catalog.schema_named(schema, self.search_path);
        let meant = meant.and_then(|schema| {
            let named = |name: &str| self.catalog.named(schema, name);
            named(table).or_else(|| named(&folded_before(table)?))
        });
        let oid = match meant {
            Some(Named::Relation(oid)) => Some(oid),
            _ => None,
        };
        Ok(TableName::Qualified(table, oid))
    }
}
