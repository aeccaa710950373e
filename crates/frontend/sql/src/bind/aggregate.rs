//! Aggregates: which there are, and what they return.

use super::call::undefined;
use super::{Binder, Bound, COMPARED_MAX};
use crate::error::{Result, SqlError};
use crate::expr::{Casting, Expr, no_polymorphic_type};
use crate::plan::{SortBy, SortKey};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::moments::{Pairing, Spread};
use vellum_row::{CastContext, Settings, Type, Typmod, Value, ValueRef};

/// An aggregate of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub kind: AggregateKind,
    /// What is computed of each row, with its type; nothing for `count(*)`.
    pub arguments: Vec<(Expr, Type)>,
    /// Whether rows count once: those that are equal in all keys of the order, if there are any, else in all arguments.
    pub distinct: bool,
    /// In which order the rows are taken; empty where none was said.
    pub order: Vec<SortKey>,
    pub filter: Option<Expr>,
    /// What an ordered-set aggregate is asked for, if it is constant; else it stands behind its argument.
    pub asked: Option<Value>,
    pub result: Type,
}

impl Aggregate {
    /// The type of its first argument.
    pub fn ty(&self) -> Type {
        self.arguments.first().map_or(Type::Int8, |(_, ty)| *ty)
    }

    /// What it computes of each row.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let arguments = self.arguments.iter().map(|(expr, _)| expr);
        let order = self.order.iter().filter_map(|key| match &key.expr {
            SortBy::Expr(expr) => Some(expr),
            SortBy::Output(_) => None,
        });
        arguments.chain(order).chain(&self.filter)
    }

    /// The same, to change it.
    pub fn expressions_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        for (expr, _) in &mut self.arguments {
            each(expr);
        }
        self.filter.iter_mut().for_each(&mut *each);
        for key in &mut self.order {
            if let SortBy::Expr(expr) = &mut key.expr {
                each(expr);
            }
        }
    }
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
    BitAnd,
    BitOr,
    BitXor,
    /// Variances and standard deviations.
    Spread(Spread),
    /// Of pairs of floats.
    Pair(Pairing),
    /// Of texts and what stands in front of each.
    Join,
    /// The same of bytes.
    JoinBytes,
    /// An array of all, nulls too.
    Array,
    /// Of arrays one with a dimension more.
    Arrays,
    /// A JSON array of all, which are JSON already.
    Json {
        binary: bool,
        /// Whether each begins a line.
        lines: bool,
    },
    /// A JSON object of names and values, which are JSON already.
    Members {
        binary: bool,
    },
    /// `percentile_cont`
    Continuous,
    /// `percentile_disc`
    Discrete,
    Mode,
}

impl AggregateKind {
    /// The aggregate of a name.
    pub fn find(name: &str) -> Option<Self> {
        use Pairing as P;
        let spread = |root, sample| Some(Self::Spread(Spread { root, sample }));
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "avg" => Self::Average,
            "min" => Self::Minimum,
            "max" => Self::Maximum,
            "bool_and" | "every" => Self::BoolAnd,
            "bool_or" => Self::BoolOr,
            "bit_and" => Self::BitAnd,
            "bit_or" => Self::BitOr,
            "bit_xor" => Self::BitXor,
            "stddev" | "stddev_samp" => return spread(true, true),
            "stddev_pop" => return spread(true, false),
            "variance" | "var_samp" => return spread(false, true),
            "var_pop" => return spread(false, false),
            "regr_count" => Self::Pair(P::Count),
            "regr_sxx" => Self::Pair(P::SumXX),
            "regr_syy" => Self::Pair(P::SumYY),
            "regr_sxy" => Self::Pair(P::SumXY),
            "regr_avgx" => Self::Pair(P::MeanX),
            "regr_avgy" => Self::Pair(P::MeanY),
            "regr_r2" => Self::Pair(P::Determination),
            "regr_slope" => Self::Pair(P::Slope),
            "regr_intercept" => Self::Pair(P::Intercept),
            "covar_pop" => Self::Pair(P::CovariancePopulation),
            "covar_samp" => Self::Pair(P::CovarianceSample),
            "corr" => Self::Pair(P::Correlation),
            "string_agg" => Self::Join,
            "array_agg" => Self::Array,
            "json_agg" => Self::Json {
                binary: false,
                lines: false,
            },
            "jsonb_agg" => Self::Json {
                binary: true,
                lines: false,
            },
            "json_object_agg" => Self::Members { binary: false },
            "jsonb_object_agg" => Self::Members { binary: true },
            "percentile_cont" => Self::Continuous,
            "percentile_disc" => Self::Discrete,
            "mode" => Self::Mode,
            _ => return None,
        })
    }

    /// The one for arguments of these types, where their types decide how it is computed.
    fn of(self, written: &[Type], result: Type) -> Self {
        let composed = |ty: &Type| *ty == Type::Record || ty.element().is_some();
        match self {
            Self::Join if result == Type::Bytea => Self::JoinBytes,
            Self::Array if written == [result] => Self::Arrays,
            Self::Json { binary: false, .. } => Self::Json {
                binary: false,
                lines: written.iter().any(composed),
            },
            other => other,
        }
    }

    /// Whether a row counts for nothing.
    pub fn skips(self, values: &[ValueRef<'_>]) -> bool {
        match self {
            Self::Array | Self::Arrays | Self::Json { .. } | Self::Members { .. } => false,
            Self::Pair(_) => values.iter().any(|value| value.is_null()),
            _ => values.first().is_some_and(|value| value.is_null()),
        }
    }

    /// Whether it keeps what came.
    pub fn gathers(self) -> bool {
        matches!(
            self,
            Self::Join
                | Self::JoinBytes
                | Self::Array
                | Self::Arrays
                | Self::Json { .. }
                | Self::Members { .. }
        )
    }

    /// Whether the order of the rows can be seen in what it comes to.
    pub fn shows_order(self) -> bool {
        self.gathers()
    }

    /// Whether it is asked of values in an order, WITHIN GROUP.
    pub fn is_ordered_set(self) -> bool {
        matches!(self, Self::Continuous | Self::Discrete | Self::Mode)
    }
}

/// Which clause it is, whoever binds that says ([`SqlError::not_allowed_in`]).
const NOT_HERE: &str = "aggregate functions are not allowed here";

pub(super) const NESTED: &str = "aggregate function calls cannot be nested";

/// What the arguments are as they were written, where rows are told apart by them: [`Aggregate::arguments`] may be JSON of them.
type Written = Vec<(Expr, Type)>;

impl Binder<'_> {
    /// A call of an aggregate: the slot of its result, counted from that of the first aggregate.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> Result<Bound> {
        let place = self.place(&function.name);
        let others = self.aggregates.take();
        // It may be one of a query around this one, which may have it there.
        let around = self.outer.iter().any(|outer| outer.aggregates.is_some());
        if others.is_none() && !around {
            return Err(not_here().at(place));
        }
        // Inside an aggregate nothing of the group is known yet.
        let windows = self.windows.take();
        let again = std::mem::take(&mut self.again);
        let inside = std::mem::replace(&mut self.in_aggregate, true);
        let bound = self.without_sets("aggregate function", |binder| {
            binder.aggregate_bound(name, kind, function)
        });
        self.in_aggregate = inside;
        self.windows = windows;
        self.again = again;
        let has_own = others.is_some();
        self.aggregates = others;
        let (mut aggregate, ordered) = bound.map_err(|error| match has_own {
            true => error.worded(NOT_HERE, NESTED),
            false => not_here().at(place),
        })?;
        // An order that cannot be seen says whose it is all the same.
        let level = self.level_of(&aggregate)?;
        if !ordered {
            aggregate.order.clear();
        }
        if level > 0 {
            return self.aggregate_around(aggregate, level, place);
        }
        let Some(others) = &mut self.aggregates else {
            return Err(not_here().at(place));
        };
        let result = aggregate.result;
        let number = noted(others, aggregate, self.in_order_by)?;
        Ok(Bound::new(Expr::Slot(number), result))
    }

    pub(super) fn aggregate_call(
        &mut self,
        name: &str,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> Result<Aggregate> {
        let (mut aggregate, ordered) = self.aggregate_bound(name, kind, function)?;
        if !ordered {
            aggregate.order.clear();
        }
        Ok(aggregate)
    }

    /// A call, and whether its order can be seen in what it comes to.
    fn aggregate_bound(
        &mut self,
        name: &str,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> Result<(Aggregate, bool)> {
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::syntax("an aggregate needs arguments"));
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        let mut sorted: &[ast::OrderByExpr] = &[];
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => sorted = keys,
                _ => return Err(SqlError::unsupported("this form of an aggregate")),
            }
        }
        let filter = function.filter.as_ref();
        // PostgreSQL looks for a function of all that it is given, before and within: the message is of the one that there is.
        let wrong = |found: bool, text: String| {
            Err(if found {
                SqlError::new(sqlstate::WRONG_OBJECT_TYPE, text)
            } else {
                self.no_function(name, &[])
            })
        };
        match (kind.is_ordered_set(), function.within_group.is_empty()) {
            (false, true) => {}
            (true, true) => {
                let count = 1 + usize::from(kind != AggregateKind::Mode);
                let text = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
                return wrong(list.args.len() == count, text);
            }
            (false, false) => {
                let text = format!(
                    "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                );
                return wrong(list.args.is_empty(), text);
            }
            (true, false) if distinct => {
                return Err(SqlError::syntax("cannot use DISTINCT with WITHIN GROUP"));
            }
            (true, false) if !sorted.is_empty() => {
                let text = "cannot use multiple ORDER BY clauses with WITHIN GROUP";
                return Err(SqlError::syntax(text));
            }
            (true, false) => {
                let mut aggregate =
                    self.ordered_set(name, kind, &list.args, &function.within_group)?;
                aggregate.filter = filter
                    .map(|filter| self.condition(filter, "FILTER"))
                    .transpose()?;
                return Ok((aggregate, true));
            }
        }
        let mut given: Vec<Bound> = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) if distinct => {
                    return Err(SqlError::syntax("DISTINCT of all columns"));
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)
                    if kind == AggregateKind::Count && list.args.len() == 1 => {}
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => {
                    let bound = self.expr(expr)?;
                    let table = match (kind, expr) {
                        (AggregateKind::Count, ast::Expr::Identifier(table)) => {
                            vec![super::folded(table)]
                        }
                        (AggregateKind::Count, ast::Expr::QualifiedWildcard(table, _)) => {
                            let parts = table.0.iter().filter_map(ast::ObjectNamePart::as_ident);
                            parts.map(super::folded).collect()
                        }
                        _ => Vec::new(),
                    };
                    let row = match table.is_empty() || distinct {
                        true => None,
                        false => self.row_is_there(self.table_named(&table, "*")?, &bound),
                    };
                    given.push(row.unwrap_or(bound));
                }
                _ => return Err(self.no_function(name, &[])),
            }
        }
        if kind == AggregateKind::Count && list.args.is_empty() {
            let text = "count(*) must be used to call a parameterless aggregate function";
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, text));
        }
        if kind == AggregateKind::Count && !distinct {
            given = given
                .into_iter()
                .map(|bound| self.undecided(bound))
                .collect();
        }
        // A row is never null, and told apart by what is in it.
        let of_rows = match given.as_slice() {
            [row] if distinct && kind == AggregateKind::Count && row.ty == Some(Type::Record) => {
                self.told_apart(row)?
            }
            _ => None,
        };
        let (written, arguments, result) = self.aggregate_arguments(name, kind, given)?;
        let filter = filter
            .map(|filter| self.condition(filter, "FILTER"))
            .transpose()?;
        if distinct && of_rows.is_none() {
            for (_, ty) in &written {
                crate::plan::check_equality(*ty)?;
            }
        }
        let written_types: Vec<Type> = written.iter().map(|(_, ty)| *ty).collect();
        let mut order = self.sort_expressions(sorted)?;
        let counts_rows = of_rows.is_some();
        // The last digit of floats depends on their order, and PostgreSQL sorts what it tells apart.
        let rounds = arguments.iter().any(|(_, ty)| *ty == Type::Float8);
        if distinct {
            let is = |key: &SortKey, expr: &Expr| {
                [expr, without_cast(expr)]
                    .into_iter()
                    .any(|expr| key.expr == SortBy::Expr(expr.clone()))
            };
            if order
                .iter()
                .any(|key| !written.iter().any(|(expr, _)| is(key, expr)))
            {
                let text = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text));
            }
            let is_row = of_rows.is_some();
            for (expr, ty) in of_rows.unwrap_or(written) {
                if is_row || !order.iter().any(|key| is(key, &expr)) {
                    order.push(SortKey {
                        expr: SortBy::Expr(expr),
                        ty,
                        descending: false,
                        nulls_first: false,
                    });
                }
            }
        }
        let ordered = kind.shows_order() || distinct && (rounds || counts_rows);
        let kind = kind.of(&written_types, result);
        let aggregate = Aggregate {
            kind,
            arguments,
            distinct,
            order,
            filter,
            asked: None,
            result,
        };
        Ok((aggregate, ordered))
    }

    /// The arguments as they were written and as they are computed with, and the type of the result.
    fn aggregate_arguments(
        &mut self,
        name: &str,
        kind: AggregateKind,
        given: Vec<Bound>,
    ) -> Result<(Written, Vec<(Expr, Type)>, Type)> {
        use AggregateKind as K;
        let types: Vec<Option<Type>> = given.iter().map(|bound| bound.ty).collect();
        let settings = self.settings;
        let none = || undefined(settings, name, &types);
        let count = match kind {
            K::Join | K::Members { .. } | K::Pair(_) => 2,
            K::Count if given.is_empty() => return Ok((Vec::new(), Vec::new(), Type::Int8)),
            _ => 1,
        };
        if given.len() != count {
            return Err(none());
        }
        let each = |binder: &mut Self, ty: Type| {
            let cast = given.iter().cloned().map(|bound| {
                let implicit = CastContext::Implicit;
                let cast = binder.coerce(bound, ty, Typmod::NONE, implicit);
                Ok((cast.map_err(|_| none())?, ty))
            });
            cast.collect::<Result<Written>>()
        };
        if types == [None] {
            unknown_argument(name, kind)?;
        }
        match kind {
            K::Pair(pairing) => {
                let pair = each(self, Type::Float8)?;
                let result = match pairing {
                    Pairing::Count => Type::Int8,
                    _ => Type::Float8,
                };
                return Ok((pair.clone(), pair, result));
            }
            K::Join => {
                let ty = match types.contains(&Some(Type::Bytea)) {
                    true => Type::Bytea,
                    false => Type::Text,
                };
                let pair = each(self, ty)?;
                return Ok((pair.clone(), pair, ty));
            }
            K::Json { binary, .. } | K::Members { binary } => {
                let (mut written, mut made) = (Vec::new(), Vec::new());
                for (number, bound) in given.into_iter().enumerate() {
                    let (expr, ty, typmod) = self.settle(bound)?;
                    let is_name = count == 2 && number == 0;
                    let composed = matches!(ty, Type::Json | Type::Jsonb | Type::Record);
                    if is_name && (composed || ty.element().is_some()) {
                        let text = "key value must be scalar, not array, composite, or json";
                        return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text));
                    }
                    let bound = Bound {
                        expr: expr.clone(),
                        ty: Some(ty),
                        typmod,
                        start: None,
                    };
                    // Members are JSON until all of them are there.
                    let binary = binary && count == 1;
                    let json = self.json_of(bound, binary)?;
                    written.push((expr, ty));
                    let json_ty = if binary { Type::Jsonb } else { Type::Json };
                    made.push((json.expr, json_ty));
                }
                let result = if binary { Type::Jsonb } else { Type::Json };
                return Ok((written, made, result));
            }
            _ => {}
        }
        let mut bound = given.into_iter().next().ok_or_else(none)?;
        let only = match kind {
            K::BoolAnd | K::BoolOr => Some(Type::Bool),
            K::Spread(_) => Some(Type::Float8),
            _ => None,
        };
        if let (Some(ty), None) = (only, bound.ty) {
            let expr = self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?;
            bound = Bound::new(expr, ty);
        }
        let (expr, ty, _) = self.settle(bound)?;
        let written = vec![(expr.clone(), ty)];
        let (expr, ty, result) = self.aggregate_type(name, kind, expr, ty)?;
        Ok((written, vec![(expr, ty)], result))
    }

    /// `percentile_cont(…) WITHIN GROUP (ORDER BY …)` and its like.
    fn ordered_set(
        &mut self,
        name: &str,
        kind: AggregateKind,
        direct: &[ast::FunctionArg],
        within: &[ast::OrderByExpr],
    ) -> Result<Aggregate> {
        let mut given = Vec::with_capacity(direct.len());
        for argument in direct {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(node)) = argument else {
                return Err(self.no_function(name, &[]));
            };
            given.push(self.expr(node)?);
        }
        let mut order = self.sort_expressions(within)?;
        let mut types: Vec<Option<Type>> = given.iter().map(|bound| bound.ty).collect();
        types.extend(order.iter().map(|key| Some(key.ty)));
        let settings = self.settings;
        let none = || undefined(settings, name, &types);
        let asked = match (kind, given.pop()) {
            (AggregateKind::Mode, None) => None,
            (AggregateKind::Mode, Some(_)) | (_, None) => return Err(none()),
            (_, Some(asked)) => Some(asked),
        };
        let ([key], true) = (order.as_mut_slice(), given.is_empty()) else {
            return Err(none());
        };
        let SortBy::Expr(expr) = &key.expr else {
            return Err(SqlError::internal("an aggregate by a column of the result"));
        };
        let implicit = CastContext::Implicit;
        if kind == AggregateKind::Continuous && key.ty != Type::Interval {
            let bound = Bound::new(expr.clone(), key.ty);
            let cast = self.coerce(bound, Type::Float8, Typmod::NONE, implicit);
            key.expr = SortBy::Expr(cast.map_err(|_| none())?);
            key.ty = Type::Float8;
        }
        let SortBy::Expr(expr) = &key.expr else {
            return Err(none());
        };
        let ty = key.ty;
        let mut arguments = vec![(expr.clone(), ty)];
        let (mut constant, mut result) = (None, ty);
        if let Some(asked) = asked {
            let several = asked.ty.is_some_and(|ty| ty.element().is_some());
            if several && ty.element().is_some() {
                return Err(SqlError::unsupported(format!(
                    "several fractions in {name} of arrays"
                )));
            }
            let wanted = if several {
                result = ty.array();
                Type::Float8.array()
            } else {
                Type::Float8
            };
            let asked = self.coerce(asked, wanted, Typmod::NONE, implicit);
            let asked = asked.map_err(|_| none())?;
            let mut reads = false;
            asked.walk(&mut |expr| {
                reads |= matches!(expr, Expr::Column { .. } | Expr::Slot(_));
            });
            if reads {
                return Err(SqlError::unsupported(format!(
                    "columns in the direct arguments of {name}"
                )));
            }
            constant = constant_of(&asked)?;
            if constant.is_none() {
                arguments.push((asked, wanted));
            }
        }
        Ok(Aggregate {
            kind,
            arguments,
            distinct: false,
            order,
            filter: None,
            asked: constant,
            result,
        })
    }

    /// The argument as it is computed with, its type, and that of the result.
    fn aggregate_type(
        &mut self,
        name: &str,
        kind: AggregateKind,
        expr: Expr,
        ty: Type,
    ) -> Result<(Expr, Type, Type)> {
        use AggregateKind as K;
        let result = match (kind, ty) {
            (K::Count, _) => Type::Int8,
            // There is none of varchar and of name, which are text as well.
            (K::Minimum | K::Maximum, Type::Varchar | Type::Name) => Type::Text,
            (K::Minimum | K::Maximum, Type::Cidr) => Type::Inet,
            // Nor of oids by other names.
            (K::Minimum | K::Maximum, ty) if ty.is_reg() => Type::Oid,
            (K::Minimum | K::Maximum, ty) if ty.is_orderable() && has_ends(ty) => ty,
            (K::Sum, Type::Int2 | Type::Int4) => Type::Int8,
            (K::Sum | K::Average, Type::Int8 | Type::Numeric) => Type::Numeric,
            (K::Average, Type::Int2 | Type::Int4) => Type::Numeric,
            (K::Sum, Type::Float4) => Type::Float4,
            (K::Sum | K::Average, Type::Float8 | Type::Float4) => Type::Float8,
            (K::Sum | K::Average, Type::Interval) => Type::Interval,
            (K::Spread(_), Type::Float8 | Type::Float4) => Type::Float8,
            (K::Spread(_), Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric) => Type::Numeric,
            (K::BoolAnd | K::BoolOr, Type::Bool) => Type::Bool,
            (K::BitAnd | K::BitOr | K::BitXor, Type::Int2 | Type::Int4 | Type::Int8) => ty,
            (K::Array, Type::Void) => {
                let text = "could not find array type for data type void";
                return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, text));
            }
            (K::Array, Type::Array(_)) => ty,
            (K::Array, ty) if ty.element().is_none() && ty != Type::Record => ty.array(),
            (K::Array, _) => return Err(SqlError::unsupported("array_agg of this type")),
            _ => return Err(self.no_function(name, &[Some(ty)])),
        };
        // What is summed is summed as what it sums up to.
        let computed = match (kind, result) {
            (K::Sum | K::Average | K::Spread(_), Type::Numeric) => Type::Numeric,
            (K::Sum | K::Average, Type::Int8) => Type::Int8,
            (K::Sum | K::Average | K::Spread(_), Type::Float8) => Type::Float8,
            (K::Minimum | K::Maximum, Type::Text | Type::Inet | Type::Oid) if ty != result => {
                result
            }
            _ => return Ok((expr, ty, result)),
        };
        let bound = Bound::new(expr, ty);
        let expr = self.coerce(bound, computed, Typmod::NONE, CastContext::Explicit)?;
        Ok((expr, computed, result))
    }
}

/// Whether `min` and `max` are there for a type that can be sorted.
fn has_ends(ty: Type) -> bool {
    !matches!(
        ty,
        Type::Bool | Type::Uuid | Type::Bytea | Type::Jsonb | Type::Xid
    )
}

#[cold]
pub(super) fn not_here() -> SqlError {
    SqlError::new(sqlstate::GROUPING_ERROR, NOT_HERE)
}

/// The number of an aggregate among those of its query. One that draws is another each time that it is written, but where it is the `same`.
///
/// # Errors
/// `54000` for one too many.
pub(super) fn noted(others: &mut Vec<Aggregate>, aggregate: Aggregate, same: bool) -> Result<u16> {
    let same = same || !aggregate.expressions().any(Expr::is_volatile);
    let known = others.iter().position(|other| same && *other == aggregate);
    let number = known.unwrap_or(others.len());
    SqlError::check_room(number, COMPARED_MAX, "aggregates")?;
    if known.is_none() {
        others.push(aggregate);
    }
    Ok(number as u16)
}

/// That an aggregate is found for what has no type.
///
/// # Errors
/// `42725`, `42804`.
fn unknown_argument(name: &str, kind: AggregateKind) -> Result<()> {
    use AggregateKind as K;
    match kind {
        K::Sum | K::Average | K::Array | K::BitAnd | K::BitOr | K::BitXor => {
            let message = format!("function {name}(unknown) is not unique");
            Err(SqlError::new(sqlstate::AMBIGUOUS_FUNCTION, message).with_hint(
                "Could not choose a best candidate function. You might need to add explicit type casts.",
            ))
        }
        K::Json { .. } => Err(no_polymorphic_type()),
        _ => Ok(()),
    }
}

/// What an implicit cast is of, which PostgreSQL looks through where it compares what was written.
fn without_cast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast {
            operand,
            casting: Casting::Implicit | Casting::Compared,
            ..
        } => operand,
        other => other,
    }
}

/// The value of a constant that may be cast; none if it is no constant.
pub(super) fn constant_of(expr: &Expr) -> Result<Option<Value>> {
    Ok(match expr {
        Expr::Const(value) => Some(value.clone()),
        Expr::Cast {
            operand,
            ty,
            typmod,
            casting,
        } => match constant_of(operand)? {
            Some(value) if value.is_null() => Some(value),
            Some(value) => {
                let settings = Settings::default();
                Some(casting.apply(value.as_ref(), *ty, *typmod, &settings)?)
            }
            None => None,
        },
        _ => None,
    })
}
