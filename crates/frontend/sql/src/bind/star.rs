//! Stars: `t.*`, which is the row of a table where a value is wanted, and `(row).*`, which is a row's fields; where a list or ROW() has them, each of its columns.

use super::row::taken_apart;
use super::types::folded;
use super::{Binder, Bound, TableName};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::Type;

/// A star that is none of multiplication, nor one alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Star<'e> {
    /// `t.*`
    Table(&'e ast::ObjectName),
    /// `(row).field.*`: the row, and what stands between.
    Row(&'e ast::Expr, &'e [ast::AccessExpr]),
}

/// The star that an expression is; parentheses say nothing.
pub(crate) fn star_of(node: &ast::Expr) -> Option<Star<'_>> {
    match node {
        ast::Expr::Nested(inner) => star_of(inner),
        ast::Expr::QualifiedWildcard(table, _) => Some(Star::Table(table)),
        ast::Expr::CompoundFieldAccess { root, access_chain } => match access_chain.as_slice() {
            [before @ .., ast::AccessExpr::Dot(ast::Expr::Wildcard(_))] => {
                Some(Star::Row(root, before))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `0A000`, as PostgreSQL has it: a list has them.
#[cold]
pub(super) fn no_expansion() -> SqlError {
    let text = "row expansion via \"*\" is not supported here";
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
}

impl Binder<'_> {
    /// The names of a table in front of a star.
    fn starred_table<R>(
        &mut self,
        table: &ast::ObjectName,
        work: impl FnOnce(&mut Self, TableName<'_>) -> Result<R>,
    ) -> Result<R> {
        let place = self.place(table);
        let parts = table.0.iter().filter_map(ast::ObjectNamePart::as_ident);
        let names: Vec<String> = parts.map(folded).collect();
        let name = self.table_named(&names, "*");
        let done = name.and_then(|name| work(self, name));
        done.map_err(|error| match error.is_placed() {
            true => error,
            false => error.at(place),
        })
    }

    /// `t.*` as a value: the row.
    ///
    /// # Errors
    /// `42P01`, `42P09`.
    pub(super) fn star_row(&mut self, table: &ast::ObjectName) -> Result<Bound> {
        self.starred_table(table, |binder, name| match binder.whole_row(name)? {
            Some(row) => {
                binder.copying(&row.expr)?;
                Ok(row)
            }
            None => match binder.record_starred(name) {
                Some(record) => Ok(record),
                None => Err(binder.scope.no_table(name.name())),
            },
        })
    }

    /// What a star stands for in a list: names and values.
    ///
    /// # Errors
    /// `42P01`, `42P09`; `42809` for what is no row, or one of which it is not known what is in it.
    pub(crate) fn starred(&mut self, star: Star<'_>) -> Result<Vec<(String, Bound)>> {
        let (root, before) = match star {
            Star::Table(table) => {
                return self.starred_table(table, |binder, name| {
                    binder.refuse_record(name.name())?;
                    binder.columns_around(name)
                });
            }
            Star::Row(root, before) => (root, before),
        };
        let record = self.subscript(root, before)?;
        self.fields_of(record)
    }

    /// The fields of a row.
    fn fields_of(&mut self, record: Bound) -> Result<Vec<(String, Bound)>> {
        let ty = record.ty.unwrap_or(Type::Text);
        let known = self.record_columns(record.typmod).map(<[_]>::to_vec);
        let columns = match known {
            Some(columns) if ty == Type::Record => columns,
            _ => {
                let name = self.name_of(Some(ty));
                let message = match ty {
                    Type::Record => "record type has not been registered".to_owned(),
                    _ => format!("type {name} is not composite"),
                };
                return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
            }
        };
        // Where there is no row all that is in it is null as well.
        let parts = taken_apart(&record.expr).map(|(_, parts)| parts.to_vec());
        let exprs = match parts {
            Some(parts) => parts,
            None => {
                let mut exprs = Vec::with_capacity(columns.len());
                for (number, (_, ty, _)) in (0u16..).zip(&columns) {
                    self.copying(&record.expr)?;
                    exprs.push(Expr::Call {
                        function: Builtin::Catalog(CatalogFunction::Field(number, *ty)),
                        arguments: [record.expr.clone()].into(),
                    });
                }
                exprs
            }
        };
        let fields = columns.into_iter().zip(exprs);
        let fields = fields.map(|((name, ty, typmod), expr)| {
            let value = Bound {
                typmod,
                ..Bound::new(expr, ty)
            };
            (name, value)
        });
        Ok(fields.collect())
    }

    /// Values, with those that stars among them stand for.
    ///
    /// # Errors
    /// As expressions, and [`Binder::starred`].
    pub(crate) fn spelled_out(&mut self, items: &[&ast::Expr]) -> Result<Vec<Bound>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match star_of(item) {
                Some(star) => {
                    let all = self.starred(star)?;
                    values.extend(all.into_iter().map(|(_, value)| value));
                }
                None => values.push(self.expr(item)?),
            }
        }
        Ok(values)
    }
}
