//! Aggregates: which there are, and what they return.

use super::{Binder, Bound, COMPARED_MAX};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr};
use crate::plan::{SortBy, SortKey};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod};

/// An aggregate of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub kind: AggregateKind,
    /// `None` for `count(*)`.
    pub argument: Option<Expr>,
    /// The argument's type.
    pub ty: Type,
    pub distinct: bool,
    /// In which order the rows are taken; empty where none was said.
    pub order: Vec<SortKey>,
    pub filter: Option<Expr>,
    pub result: Type,
}

/// What it computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AggregateKind {
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    BoolAnd,
    BoolOr,
    /// Its argument is an array of the text and what stands in front of it.
    Join,
    /// An array of all, nulls too.
    Array,
    /// A JSON array of all, which are JSON already.
    Json {
        binary: bool,
    },
}

impl AggregateKind {
    /// The aggregate of a name.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "avg" => Self::Average,
            "min" => Self::Minimum,
            "max" => Self::Maximum,
            "bool_and" | "every" => Self::BoolAnd,
            "bool_or" => Self::BoolOr,
            "string_agg" => Self::Join,
            "array_agg" => Self::Array,
            "json_agg" => Self::Json { binary: false },
            "jsonb_agg" => Self::Json { binary: true },
            _ => return None,
        })
    }

    /// Whether nulls are values like others.
    pub fn takes_nulls(self) -> bool {
        matches!(self, Self::Array | Self::Json { .. })
    }

    /// Whether the order of the rows can be seen in what it comes to.
    pub fn shows_order(self) -> bool {
        matches!(self, Self::Join | Self::Array | Self::Json { .. })
    }
}

impl Binder<'_> {
    /// A call of an aggregate: the slot of its result, counted from that of the first aggregate.
    pub(super) fn aggregate(
        &mut self,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> Result<Bound> {
        let place = self.place(&function.name);
        let Some(mut others) = self.aggregates.take() else {
            let text = "aggregate functions are not allowed here";
            return Err(SqlError::new(sqlstate::GROUPING_ERROR, text).at(place));
        };
        // Inside an aggregate nothing of the group is known yet.
        let windows = self.windows.take();
        let around = std::mem::replace(&mut self.in_aggregate, true);
        let bound = self.aggregate_call(kind, function);
        self.in_aggregate = around;
        self.windows = windows;
        let aggregate = match bound {
            Ok(aggregate) => aggregate,
            Err(error) => {
                self.aggregates = Some(others);
                return Err(error);
            }
        };
        let result = aggregate.result;
        let known = others.iter().position(|other| *other == aggregate);
        let number = known.unwrap_or_else(|| {
            others.push(aggregate);
            others.len() - 1
        });
        let room = SqlError::check_room(number, COMPARED_MAX, "aggregates");
        self.aggregates = Some(others);
        room.map(|()| Bound::new(Expr::Slot(number as u16), result))
    }

    pub(super) fn aggregate_call(
        &mut self,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> Result<Aggregate> {
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::syntax("an aggregate needs arguments"));
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        if !function.within_group.is_empty() {
            return Err(SqlError::unsupported("this form of an aggregate"));
        }
        let mut sorted: &[ast::OrderByExpr] = &[];
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => sorted = keys,
                _ => return Err(SqlError::unsupported("this form of an aggregate")),
            }
        }
        let argument = match list.args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)]
                if kind == AggregateKind::Count =>
            {
                None
            }
            [
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(text)),
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(between)),
            ] if kind == AggregateKind::Join => {
                let mut side = |node| {
                    let bound = self.expr(node)?;
                    self.coerce(bound, Type::Text, Typmod::NONE, CastContext::Implicit)
                };
                let pair = Expr::Call {
                    function: Builtin::Catalog(CatalogFunction::MakeArray(Type::Text)),
                    arguments: [side(text)?, side(between)?].into(),
                };
                Some(Bound::new(pair, Type::Text.array()))
            }
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr))]
                if kind != AggregateKind::Join =>
            {
                let bound = self.expr(expr)?;
                Some(match kind {
                    AggregateKind::Json { binary } => self.json_of(bound, binary)?,
                    _ => bound,
                })
            }
            _ => {
                let message = format!("function {} does not exist", function.name);
                return Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message));
            }
        };
        let filter = function.filter.as_ref();
        let filter = filter
            .map(|filter| self.condition(filter, "FILTER"))
            .transpose()?;
        let (argument, ty, result) = match argument {
            None => (None, Type::Int8, Type::Int8),
            Some(bound) => {
                let (expr, ty, _) = self.settle(bound)?;
                if distinct {
                    crate::plan::check_equality(ty)?;
                }
                let (expr, ty, result) = self.aggregate_type(kind, expr, ty)?;
                (Some(expr), ty, result)
            }
        };
        let mut order = self.sort_expressions(sorted)?;
        if distinct && kind.shows_order() {
            let argument = argument.as_ref();
            let argument = argument.ok_or_else(|| SqlError::internal("DISTINCT of nothing"))?;
            let decides = decisive(kind, argument);
            if order
                .iter()
                .any(|key| key.expr != SortBy::Expr(decides.clone()))
            {
                let text = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text));
            }
            // As PostgreSQL, which sorts them to tell them apart.
            if order.is_empty() {
                order.push(SortKey {
                    expr: SortBy::Expr(decides.clone()),
                    ty: if kind == AggregateKind::Join {
                        Type::Text
                    } else {
                        ty
                    },
                    descending: false,
                    nulls_first: false,
                });
            }
        }
        if !kind.shows_order() {
            order.clear();
        }
        Ok(Aggregate {
            kind,
            argument,
            ty,
            distinct,
            order,
            filter,
            result,
        })
    }

    /// The argument as it is computed with, its type, and that of the result.
    fn aggregate_type(
        &mut self,
        kind: AggregateKind,
        expr: Expr,
        ty: Type,
    ) -> Result<(Expr, Type, Type)> {
        use AggregateKind as K;
        let result = match (kind, ty) {
            (K::Count, _) => Type::Int8,
            (K::Minimum | K::Maximum, ty) if ty.is_orderable() && ty != Type::Bool => ty,
            (K::Sum, Type::Int2 | Type::Int4) => Type::Int8,
            (K::Sum | K::Average, Type::Int8 | Type::Numeric) => Type::Numeric,
            (K::Average, Type::Int2 | Type::Int4) => Type::Numeric,
            (K::Sum, Type::Float4) => Type::Float4,
            (K::Sum | K::Average, Type::Float8 | Type::Float4) => Type::Float8,
            (K::Sum | K::Average, Type::Interval) => Type::Interval,
            (K::BoolAnd | K::BoolOr, Type::Bool) => Type::Bool,
            (K::Join, _) => Type::Text,
            (K::Array, ty) if ty.element().is_none() && ty != Type::Record => ty.array(),
            (K::Array, _) => return Err(SqlError::unsupported("array_agg of this type")),
            (K::Json { binary: false }, _) => Type::Json,
            (K::Json { binary: true }, _) => Type::Jsonb,
            _ => {
                let name = match kind {
                    K::Sum => "sum",
                    K::Average => "avg",
                    K::Minimum => "min",
                    K::Maximum => "max",
                    K::BoolAnd => "bool_and",
                    K::BoolOr => "bool_or",
                    K::Count => "count",
                    K::Join => "string_agg",
                    K::Array => "array_agg",
                    K::Json { .. } => "json_agg",
                };
                let message = format!("function {name}({}) does not exist", ty.sql_name());
                return Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message));
            }
        };
        // What is summed is summed as what it sums up to.
        let computed = match (kind, result) {
            (K::Sum | K::Average, Type::Numeric) => Type::Numeric,
            (K::Sum | K::Average, Type::Int8) => Type::Int8,
            (K::Sum | K::Average, Type::Float8) => Type::Float8,
            _ => return Ok((expr, ty, result)),
        };
        let bound = Bound::new(expr, ty);
        let expr = self.coerce(bound, computed, Typmod::NONE, CastContext::Explicit)?;
        Ok((expr, computed, result))
    }
}

/// Of a text and what stands in front of it, the text decides whether two are equal.
fn decisive(kind: AggregateKind, argument: &Expr) -> &Expr {
    match argument {
        Expr::Call { arguments, .. } if kind == AggregateKind::Join => {
            arguments.first().unwrap_or(argument)
        }
        argument => argument,
    }
}
