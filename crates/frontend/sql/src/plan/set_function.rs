//! Functions that return a set of rows: read in FROM, or behind the tables where they stand in the list of a SELECT.
//!
//! Differences: several of them in one list that are not equal are read one inside the other; PostgreSQL steps through them side by side.

use super::select::{Source, SourceKind};
use crate::bind::{Binder, Bound, ScopeColumn, ScopeTable};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr, expanded};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod};

/// Which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetFunction {
    /// The elements of an array.
    Unnest,
    /// The subscripts of a dimension of an array.
    Subscripts,
    /// The elements of an array, each with its number from 1.
    Expand,
    /// Nothing: there are no partitions.
    PartitionAncestors,
}

impl SetFunction {
    /// The function of a name.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "unnest" => Self::Unnest,
            "generate_subscripts" => Self::Subscripts,
            "_pg_expandarray" => Self::Expand,
            "pg_partition_ancestors" => Self::PartitionAncestors,
            _ => return None,
        })
    }
}

impl Binder<'_> {
    /// The arguments of a function, and the columns of its rows.
    pub(super) fn set_arguments(
        &mut self,
        function: SetFunction,
        args: &[ast::FunctionArg],
    ) -> Result<(Vec<Expr>, Vec<(&'static str, Type)>)> {
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = arg else {
                return Err(SqlError::unsupported("this argument"));
            };
            bound.push(self.expr(expr)?);
        }
        let none = || {
            let message = format!("function {function:?} does not exist for these arguments");
            SqlError::new(sqlstate::UNDEFINED_FUNCTION, message)
        };
        let mut bound = bound.into_iter();
        let first = bound.next().ok_or_else(none)?;
        let mut one =
            |bound: Bound, ty| self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit);
        let (arguments, columns) = match function {
            SetFunction::PartitionAncestors => (
                vec![one(first, Type::Regclass)?],
                vec![("relid", Type::Regclass)],
            ),
            SetFunction::Unnest => {
                let element = first.ty.and_then(Type::element).ok_or_else(none)?;
                (vec![first.expr], vec![("unnest", element)])
            }
            SetFunction::Expand => {
                let element = first.ty.and_then(Type::element).ok_or_else(none)?;
                (vec![first.expr], vec![("x", element), ("n", Type::Int4)])
            }
            SetFunction::Subscripts => {
                first.ty.and_then(Type::element).ok_or_else(none)?;
                let dimension = one(bound.next().ok_or_else(none)?, Type::Int4)?;
                let columns = vec![("generate_subscripts", Type::Int4)];
                (vec![first.expr, dimension], columns)
            }
        };
        if bound.next().is_some() {
            return Err(none());
        }
        Ok((arguments, columns))
    }

    /// A function in the list of a SELECT: its rows are read behind the tables. Of several columns, a record.
    pub(crate) fn set_in_list(
        &mut self,
        function: SetFunction,
        name: &str,
        args: &[ast::FunctionArg],
        mut found: Vec<Source>,
    ) -> Result<Bound> {
        let (arguments, columns) = self.set_arguments(function, args)?;
        // Functions of a list are the last tables.
        let first = self.scope.tables.len() - found.len();
        let known = found.iter().position(|source| {
            matches!(&source.kind, SourceKind::Function { function: other, arguments: given, .. }
                if *other == function && *given == arguments)
        });
        let table = match known {
            // Called twice, they step through the same rows side by side.
            Some(at) => u16::try_from(first + at)
                .map_err(|_| SqlError::internal("more tables than are counted"))?,
            None => {
                let name = format!("{name}()#{}", self.scope.tables.len());
                let table = self.scope.add(ScopeTable {
                    // No name that can be written.
                    name,
                    qualified_only: true,
                    relation: None,
                    columns: columns
                        .iter()
                        .map(|(name, ty)| ScopeColumn {
                            name: (*name).to_owned(),
                            ty: *ty,
                            typmod: Typmod::NONE,
                            number: 0,
                            hidden: false,
                        })
                        .collect(),
                })?;
                found.push(Source::inner(SourceKind::Function {
                    function,
                    arguments,
                    ordinality: false,
                }));
                table
            }
        };
        self.set_functions = Some(found);
        let column = |position| Expr::Column { table, position };
        Ok(match columns.as_slice() {
            [(_, ty)] => Bound::new(column(0), *ty),
            [(_, element), _] => Bound {
                expr: Expr::Call {
                    function: Builtin::Catalog(CatalogFunction::MakeRecord),
                    arguments: Box::new([column(0), column(1)]),
                },
                ty: Some(Type::Record),
                typmod: expanded(*element),
            },
            _ => {
                let message = format!("the function {name} in a list");
                return Err(SqlError::unsupported(message));
            }
        })
    }
}
