//! Functions that return a set of rows: read in FROM, or behind the tables where they stand in the list of a SELECT.
//!
//! Several of them in one list are stepped through side by side: together they are one table.

use super::JsonRows;
use super::select::{Source, SourceKind};
use crate::bind::{Binder, Bound, ScopeColumn, ScopeTable, undefined};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr, RowsOf, ambiguous, no_polymorphic_type};
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod, Value, cast_between};

/// Which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetFunction {
    /// The elements of an array.
    Unnest,
    /// The subscripts of a dimension of an array.
    Subscripts,
    /// The elements of an array, each with its number from 1.
    Expand,
    /// The rights that an array of `aclitem` says, one by one.
    Acl,
    /// What a sequence is defined as: one row.
    Sequence,
    /// Nothing: there are no partitions.
    PartitionAncestors,
    /// From one value to another in steps: of integers, numbers or times, which are of this type.
    Series(Type),
    /// The key words of SQL.
    Keywords,
    /// What the session listens to.
    Channels,
    /// Rows that are computed of the arguments alone.
    Made(RowsOf),
    /// Of JSON objects.
    JsonRows(JsonRows),
    /// The value of a function that returns no set.
    One,
}

/// A call of one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SetCall {
    pub function: SetFunction,
    pub arguments: Vec<Expr>,
    /// Of the columns of its rows.
    pub types: Vec<Type>,
}

impl SetFunction {
    /// The function of a name.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "unnest" => Self::Unnest,
            "generate_subscripts" => Self::Subscripts,
            "_pg_expandarray" => Self::Expand,
            "aclexplode" => Self::Acl,
            "pg_get_keywords" => Self::Keywords,
            "pg_listening_channels" => Self::Channels,
            "pg_sequence_parameters" => Self::Sequence,
            "pg_partition_ancestors" => Self::PartitionAncestors,
            // Of which type its arguments tell.
            "generate_series" => Self::Series(Type::Int4),
            name => return RowsOf::find(name).map(Self::Made),
        })
    }
}

impl Binder<'_> {
    /// The arguments of a function, and the columns of its rows.
    ///
    /// # Errors
    /// `42883`, `42725` and `42804` for arguments that it does not take.
    pub(super) fn set_arguments(
        &mut self,
        function: SetFunction,
        name: &str,
        args: &[ast::FunctionArg],
    ) -> Result<(SetCall, Vec<(&'static str, Type)>)> {
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = arg else {
                return Err(SqlError::unsupported("this argument"));
            };
            bound.push(self.expr(expr)?);
        }
        let given: Vec<Option<Type>> = bound.iter().map(|bound| bound.ty).collect();
        let settings = self.settings;
        let none = || undefined(settings, name, &given);
        match (function, given.as_slice()) {
            // There is one of `tsvector`, too.
            (SetFunction::Unnest, [None]) => return Err(ambiguous(name, &given)),
            (SetFunction::Subscripts, [None, _]) => return Err(no_polymorphic_type()),
            _ => {}
        }
        if let SetFunction::Series(_) = function {
            return self.series_arguments(bound);
        }
        if let SetFunction::Made(made) = function {
            let types = made.arguments(bound.len()).ok_or_else(none)?;
            let mut arguments = Vec::with_capacity(types.len());
            for (bound, ty) in bound.into_iter().zip(types) {
                arguments.push(self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?);
            }
            let columns = made.columns();
            let call = SetCall {
                function,
                arguments,
                types: columns.iter().map(|(_, ty)| *ty).collect(),
            };
            let columns = columns.into_iter();
            return Ok((
                call,
                columns.map(|(name, ty)| (name.unwrap_or(""), ty)).collect(),
            ));
        }
        if function == SetFunction::Channels && bound.is_empty() {
            let call = SetCall {
                function,
                arguments: Vec::new(),
                types: vec![Type::Text],
            };
            return Ok((call, vec![("pg_listening_channels", Type::Text)]));
        }
        if function == SetFunction::Keywords && bound.is_empty() {
            let columns = vec![
                ("word", Type::Text),
                ("catcode", Type::SingleChar),
                ("barelabel", Type::Bool),
                ("catdesc", Type::Text),
                ("baredesc", Type::Text),
            ];
            let call = SetCall {
                function,
                arguments: Vec::new(),
                types: columns.iter().map(|(_, ty)| *ty).collect(),
            };
            return Ok((call, columns));
        }
        let mut bound = bound.into_iter();
        let first = bound.next().ok_or_else(none)?;
        let mut one =
            |bound: Bound, ty| self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit);
        let (arguments, columns) = match function {
            SetFunction::Series(_)
            | SetFunction::One
            | SetFunction::Made(_)
            | SetFunction::JsonRows(_)
            | SetFunction::Keywords
            | SetFunction::Channels => {
                return Err(none());
            }
            SetFunction::PartitionAncestors => (
                vec![one(first, Type::Regclass)?],
                vec![("relid", Type::Regclass)],
            ),
            SetFunction::Unnest => {
                let element = first.ty.and_then(Type::element).ok_or_else(none)?;
                (vec![first.expr], vec![("unnest", element)])
            }
            SetFunction::Sequence => (
                vec![one(first, Type::Oid)?],
                vec![
                    ("start_value", Type::Int8),
                    ("minimum_value", Type::Int8),
                    ("maximum_value", Type::Int8),
                    ("increment", Type::Int8),
                    ("cycle_option", Type::Bool),
                    ("cache_size", Type::Int8),
                    ("data_type", Type::Oid),
                ],
            ),
            SetFunction::Acl => (
                vec![one(first, Type::AclItem.array())?],
                vec![
                    ("grantor", Type::Oid),
                    ("grantee", Type::Oid),
                    ("privilege_type", Type::Text),
                    ("is_grantable", Type::Bool),
                ],
            ),
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
        let call = SetCall {
            function,
            arguments,
            types: columns.iter().map(|(_, ty)| *ty).collect(),
        };
        Ok((call, columns))
    }

    /// A function in FROM that returns no set: one row, of its value.
    pub(super) fn one_row_of(
        &mut self,
        name: &ast::ObjectName,
        args: &[ast::FunctionArg],
    ) -> Result<(SetCall, Type)> {
        let list = ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: args.to_vec(),
            clauses: Vec::new(),
        };
        let function = ast::Function {
            name: name.clone(),
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::List(list),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        };
        self.one_row(&ast::Expr::Function(function))
    }

    /// The same of an expression that calls one.
    ///
    /// # Errors
    /// As expressions.
    pub(super) fn one_row(&mut self, node: &ast::Expr) -> Result<(SetCall, Type)> {
        let bound = self.expr(node)?;
        let (expr, ty, _) = self.settle(bound)?;
        let call = SetCall {
            function: SetFunction::One,
            arguments: vec![expr],
            types: vec![ty],
        };
        Ok((call, ty))
    }

    /// `generate_series(from, to[, step])`.
    fn series_arguments(
        &mut self,
        mut bounds: Vec<Bound>,
    ) -> Result<(SetCall, Vec<(&'static str, Type)>)> {
        let given: Vec<Option<Type>> = bounds.iter().map(|bound| bound.ty).collect();
        let has = |wanted: &[Type]| {
            let mut known = given.iter().flatten();
            known.any(|ty| wanted.contains(ty))
        };
        let ty = if has(&[Type::Timestamptz, Type::Date]) {
            Type::Timestamptz
        } else if has(&[Type::Timestamp]) {
            Type::Timestamp
        } else if has(&[Type::Numeric]) {
            Type::Numeric
        } else if has(&[Type::Int8]) {
            Type::Int8
        } else {
            Type::Int4
        };
        let settings = self.settings;
        let none = || undefined(settings, "generate_series", &given);
        if given.len() >= 2 && given.iter().all(Option::is_none) {
            return Err(ambiguous("generate_series", &given));
        }
        let timed = matches!(ty, Type::Timestamp | Type::Timestamptz);
        // Steps of time have to be said.
        if bounds.len() == 2 && !timed {
            bounds.push(Bound::new(Expr::Const(Value::Int4(1)), Type::Int4));
        }
        if bounds.len() != 3 {
            return Err(none());
        }
        let mut arguments = Vec::with_capacity(3);
        for (number, bound) in bounds.into_iter().enumerate() {
            let wanted = if timed && number == 2 {
                Type::Interval
            } else {
                ty
            };
            let fits = bound.ty.is_none_or(|own| {
                own == wanted || cast_between(own, wanted) == Some(CastContext::Implicit)
            });
            if !fits {
                return Err(none());
            }
            arguments.push(self.coerce(bound, wanted, Typmod::NONE, CastContext::Implicit)?);
        }
        let call = SetCall {
            function: SetFunction::Series(ty),
            arguments,
            types: vec![ty],
        };
        Ok((call, vec![("generate_series", ty)]))
    }

    /// A function in the list of a SELECT: its rows are read behind the tables. Of several columns, a record.
    pub(crate) fn set_in_list(
        &mut self,
        function: SetFunction,
        name: &str,
        args: &[ast::FunctionArg],
        mut found: Vec<Source>,
    ) -> Result<Bound> {
        let (call, columns) = self.set_arguments(function, name, args)?;
        // Those of a list are the last table.
        let mut calls = match found.pop().map(|source| source.kind) {
            Some(SourceKind::Function { calls, .. }) => calls,
            _ => {
                self.scope.add(ScopeTable {
                    // No name that can be written.
                    name: format!("{name}()#{}", self.scope.tables.len()),
                    own: None,
                    qualified_only: true,
                    is_value: false,
                    may_miss: false,
                    relation: None,
                    columns: Vec::new(),
                })?;
                Vec::new()
            }
        };
        let table = self.scope.tables.len() - 1;
        let known = calls.iter().position(|other| *other == call);
        let before = &calls[..known.unwrap_or(calls.len())];
        let first: usize = before.iter().map(|call| call.types.len()).sum();
        if known.is_none() {
            let made = columns.iter().map(|(name, ty)| ScopeColumn {
                name: (*name).to_owned(),
                ty: *ty,
                typmod: Typmod::NONE,
                number: 0,
                domain: None,
                collation: None,
            });
            self.scope.tables[table].columns.extend(made);
            calls.push(call);
        }
        found.push(Source::inner(SourceKind::Function {
            calls,
            ordinality: false,
        }));
        let table =
            u16::try_from(table).map_err(|_| SqlError::internal("more tables than are counted"))?;
        self.set_functions = Some(found);
        let column = |position: u16| Expr::Column {
            table,
            position: first as u16 + position,
        };
        if let [(_, ty)] = columns.as_slice() {
            return Ok(Bound::new(column(0), *ty));
        }
        let fields = (0u16..).zip(&columns).map(|(position, _)| column(position));
        let expr = Expr::Call {
            function: Builtin::Catalog(CatalogFunction::MakeRecord),
            arguments: fields.collect(),
        };
        let named = columns.iter();
        let named = named.map(|(name, ty)| ((*name).to_owned(), *ty, Typmod::NONE));
        let typmod = self.new_record(named.collect());
        Ok(Bound {
            typmod,
            ..Bound::new(expr, Type::Record)
        })
    }
}
