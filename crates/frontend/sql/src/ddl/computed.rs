//! Defaults: what they may be, and their values for the rows that a table has when ADD COLUMN gives it another column.
//!
//! A default that is the same for the whole statement is computed once, and no row is written: it is what old rows have in the column. One that
//! may differ from row to row (`nextval`, `random`) is computed for each, and the rows are written anew.

use super::Ddl;
use super::rewrite::contains_nulls;
use crate::bind::Binder;
use crate::catalog::{Default, Relation, Table};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Frame};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Column, Type, Typmod, Value};

impl Ddl<'_> {
    /// The default that a column is given, as it is kept.
    ///
    /// # Errors
    /// Of names and types; `0A000` for a subquery.
    pub(super) fn new_default(
        &mut self,
        expr: &ast::Expr,
        ty: Type,
        typmod: Typmod,
    ) -> Result<Default> {
        let mut binder = self.binder();
        let bound = binder.expr(expr).map_err(no_column)?;
        if !binder.subqueries.is_empty() {
            let text = "cannot use subquery in DEFAULT expression";
            let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text);
            return Err(error.at(binder.place_of_error(expr)));
        }
        binder.coerce(bound, ty, typmod, CastContext::Assignment)?;
        // A literal that names a relation is told by its cast.
        let named = matches!(expr, ast::Expr::Value(value) if matches!(value.value, ast::Value::SingleQuotedString(_)));
        let text = match ty {
            Type::Regclass if named => {
                let cast = crate::parse::expression(&format!("{expr}::regclass"))?;
                self.default_text(&cast)?
            }
            _ => self.default_text(expr)?,
        };
        Ok(Default::Expression(text))
    }

    /// A default that is kept as SQL, as an expression of the type of its column.
    pub(super) fn bound_default(&self, sql: &str, column: &Column) -> Result<Expr> {
        let node = crate::parse::expression(sql)?;
        let mut binder = self.binder();
        let bound = binder.expr(&node)?;
        binder.coerce(bound, column.ty, column.typmod, CastContext::Assignment)
    }

    /// The value of an expression that reads no row.
    ///
    /// # Errors
    /// Those of the expression.
    pub(super) fn value_of(&self, expr: &Expr) -> Result<Value> {
        self.asked
            .with(self.shared, self.open, &self.search_path, |env| {
                Ok(expr.eval(&Frame::over(&[], env))?.into_value())
            })
    }

    /// Computes the last column of `next` for each of the rows that are there: writes them anew.
    ///
    /// # Errors
    /// Those of the expression; `23502`.
    pub(super) fn compute_rows(
        &mut self,
        relation: &Relation,
        next: Table,
        expr: &Expr,
    ) -> Result<Table> {
        let last = next.schema.columns().last().cloned();
        let column = last.ok_or_else(|| SqlError::internal("no column"))?;
        self.add_values(relation, next, |ddl, rows| {
            ddl.asked
                .with(ddl.shared, ddl.open, &ddl.search_path, |env| {
                    for row in rows {
                        let value = expr.eval(&Frame::over(&[], env))?.into_value();
                        if value.is_null() && !column.nullable {
                            return Err(contains_nulls(relation, &column.name, env.catalog));
                        }
                        row.push(value);
                    }
                    Ok(())
                })
        })
    }
}

/// The error of a default. `0A000` where it reads a column: there is none that it could.
#[cold]
fn no_column(error: SqlError) -> SqlError {
    let error = error.not_allowed_in("DEFAULT expressions");
    // A relation that a value names is another matter.
    let of_table = error.sqlstate() == sqlstate::UNDEFINED_TABLE
        && error.message().contains("FROM-clause entry");
    if error.sqlstate() != sqlstate::UNDEFINED_COLUMN && !of_table {
        return error;
    }
    let text = "cannot use column reference in DEFAULT expression";
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text).at(error.fields().position)
}

/// What is kept and computed again asks no query.
///
/// # Errors
/// `0A000`.
pub(super) fn check_no_subquery(binder: &Binder<'_>, what: &str) -> Result<()> {
    if binder.subqueries.is_empty() {
        return Ok(());
    }
    let message = format!("cannot use subquery in {what}");
    Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
}

/// An expression over the columns of a table that says no more whose they are: the table may be called otherwise tomorrow.
pub(super) fn over_own_columns(expr: &ast::Expr, table: &str) -> ast::Expr {
    let mut expr = expr.clone();
    crate::parse::walk::change_expressions(&mut expr, &mut |node| {
        if let ast::Expr::CompoundIdentifier(parts) = node
            && let [.., of, column] = &parts[..]
            && crate::bind::folded(of) == table
        {
            *node = ast::Expr::Identifier(column.clone());
        }
        std::ops::ControlFlow::Continue(())
    });
    expr
}
