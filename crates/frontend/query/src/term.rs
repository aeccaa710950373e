//! Terms: what is computed of a row.

use crate::batch::single;
use crate::error::{Error, Result};
use crate::function::{RowFunction, known};
use crate::relation::{Relation, Symbols};
use crate::types::{DIGITS_MAX, Extent, Kind, data_type, is_plain};
use arrow::datatypes::Field;
use datafusion::common::{Column as Name, ScalarValue, Spans};
use datafusion::logical_expr::expr::{Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Case, Cast, Expr, LogicalPlan, Operator, Subquery, and, lit, not, or,
};
use std::sync::Arc;
use vellum_row::{NumericRef, Type, ValueRef};

/// A column of a relation. No two columns of a query have one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Column {
    pub(crate) number: u32,
    /// The type of its values.
    pub ty: Type,
    /// What else is known of them.
    pub extent: Extent,
}

/// What is computed of a row: a value of one type, or null.
#[derive(Clone, Debug)]
pub struct Term {
    pub(crate) expr: Expr,
    pub(crate) ty: Type,
    pub(crate) extent: Extent,
}

/// How two values are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    fn operator(self) -> Operator {
        match self {
            Self::Equal => Operator::Eq,
            Self::NotEqual => Operator::NotEq,
            Self::Less => Operator::Lt,
            Self::LessEqual => Operator::LtEq,
            Self::Greater => Operator::Gt,
            Self::GreaterEqual => Operator::GtEq,
        }
    }
}

impl Column {
    pub(crate) fn name(self) -> String {
        format!("c{}", self.number)
    }

    /// Its value.
    pub fn term(self) -> Term {
        Term {
            expr: Expr::Column(Name::new_unqualified(self.name())),
            ty: self.ty,
            extent: self.extent,
        }
    }

    /// Its type, and what else is known.
    pub fn kind(self) -> Kind {
        let Self { ty, extent, .. } = self;
        Kind { ty, extent }
    }

    /// Its value in the row of a query around this one.
    pub fn outer(self) -> Term {
        let field = Field::new(self.name(), self.kind().data_type(), true);
        let name = Name::new_unqualified(self.name());
        Term {
            expr: Expr::OuterReferenceColumn(Arc::new(field), name),
            ty: self.ty,
            extent: self.extent,
        }
    }
}

impl Term {
    /// The type of its values.
    pub fn ty(&self) -> Type {
        self.ty
    }

    /// Its type, and what else is known.
    pub fn kind(&self) -> Kind {
        let Self { ty, extent, .. } = *self;
        Kind { ty, extent }
    }

    pub(crate) fn new(expr: Expr, kind: impl Into<Kind>) -> Self {
        let Kind { ty, extent } = kind.into();
        Self { expr, ty, extent }
    }

    /// A value.
    ///
    /// # Errors
    /// One of another type.
    pub fn literal(ty: Type, value: ValueRef<'_>) -> Result<Self> {
        let kind = kind_of(value).unwrap_or_else(|| ty.into());
        let array = single(kind, value)?;
        let value = ScalarValue::try_from_array(&array, 0)?;
        Ok(Self::new(Expr::Literal(value, None), kind))
    }

    /// The value of a function. A volatile one is called once a row, wherever its arguments come from.
    pub fn call(
        symbols: &Symbols,
        function: Arc<dyn RowFunction>,
        arguments: Vec<Self>,
        ty: Type,
        volatile: bool,
    ) -> Self {
        let arguments: Vec<Self> = arguments.into_iter().map(Self::readable).collect();
        let kinds: Vec<Kind> = arguments.iter().map(Self::kind).collect();
        let func = known(symbols.next(), function, &kinds, ty, volatile);
        let args = arguments.into_iter().map(|term| term.expr).collect();
        let expr = Expr::ScalarFunction(ScalarFunction { func, args });
        Self::new(expr, ty)
    }

    fn boolean(expr: Expr) -> Self {
        Self::new(expr, Type::Bool)
    }

    /// Whether its operators may compare values of these types themselves.
    pub fn compares(left: Type, right: Type) -> bool {
        let whole = |ty: Type| ty.is_integer() || ty.is_oid();
        is_plain(left)
            && is_plain(right)
            && (data_type(left) == data_type(right) || (whole(left) && whole(right)))
    }

    /// Whether operators may compare these values for equality themselves.
    pub fn is_equal_plainly(left: &Self, right: &Self) -> bool {
        Self::is_ordered_plainly(left, right) || padded(left, right)
    }

    /// Whether operators may tell the order of these values themselves.
    pub fn is_ordered_plainly(left: &Self, right: &Self) -> bool {
        Self::compares(left.ty, right.ty) || same_scale(left.kind(), right.kind()).is_some()
    }

    /// A comparison of values of one type, or of integers; null if one side is.
    pub fn compare(symbols: &Symbols, comparison: Comparison, left: Self, right: Self) -> Self {
        let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let (left, right) = Self::alike(symbols, equality, left, right);
        let (left, right) = (Box::new(left), Box::new(right));
        Self::boolean(Expr::BinaryExpr(BinaryExpr::new(
            left,
            comparison.operator(),
            right,
        )))
    }

    /// IS (NOT) DISTINCT FROM.
    pub fn distinct(symbols: &Symbols, left: Self, right: Self, negated: bool) -> Self {
        let (left, right) = Self::alike(symbols, true, left, right);
        let operator = match negated {
            true => Operator::IsNotDistinctFrom,
            false => Operator::IsDistinctFrom,
        };
        let (left, right) = (Box::new(left), Box::new(right));
        Self::boolean(Expr::BinaryExpr(BinaryExpr::new(left, operator, right)))
    }

    /// Both as values that Arrow compares as SQL does; only their equality, if that is all that is asked for.
    fn alike(symbols: &Symbols, equality: bool, left: Self, right: Self) -> (Expr, Expr) {
        if let Some(scale) = same_scale(left.kind(), right.kind()) {
            return (left.scaled(scale).expr, right.scaled(scale).expr);
        }
        if equality && padded(&left, &right) {
            let (a, b) = (left.extent, right.extent);
            return (left.padded(b).expr, right.padded(a).expr);
        }
        let (left, right) = (left.stored(), right.stored());
        if !Self::compares(left.ty, right.ty) {
            return (left.key(symbols).expr, right.key(symbols).expr);
        }
        if data_type(left.ty) == data_type(right.ty) {
            return (left.expr, right.expr);
        }
        let wide = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), data_type(Type::Int8)));
        (wide(left.expr), wide(right.expr))
    }

    /// A constant of `char(n)` as long as the text that it is compared with.
    fn padded(mut self, other: Extent) -> Self {
        if let (Expr::Literal(ScalarValue::Utf8View(Some(text)), _), Extent::Padded(length)) =
            (&mut self.expr, other)
            && self.extent == Extent::Any
        {
            let own = text.trim_end_matches(' ');
            *text = format!("{own:<length$}");
        }
        self
    }

    /// What it is sorted by.
    pub(crate) fn key(self, symbols: &Symbols) -> Self {
        if self.kind().is_plain() {
            return self;
        }
        let kind = self.kind();
        let (number, function) = symbols.key_of(self.ty);
        let func = known(number, function, &[kind], Type::Bytea, false);
        let args = vec![self.expr];
        Self::new(
            Expr::ScalarFunction(ScalarFunction { func, args }),
            Type::Bytea,
        )
    }

    /// AND; true for none.
    pub fn all(terms: impl IntoIterator<Item = Self>) -> Self {
        let exprs = terms.into_iter().map(|term| term.expr).collect();
        Self::boolean(balanced(exprs, and).unwrap_or_else(|| lit(true)))
    }

    /// OR; false for none.
    pub fn any(terms: impl IntoIterator<Item = Self>) -> Self {
        let exprs = terms.into_iter().map(|term| term.expr).collect();
        Self::boolean(balanced(exprs, or).unwrap_or_else(|| lit(false)))
    }

    /// NOT.
    pub fn negated(self) -> Self {
        Self::boolean(not(self.expr))
    }

    /// IS (NOT) NULL.
    pub fn is_null(self, negated: bool) -> Self {
        Self::boolean(match negated {
            true => self.expr.is_not_null(),
            false => self.expr.is_null(),
        })
    }

    /// IS (NOT) TRUE or FALSE.
    pub fn is_truth(self, truth: bool, negated: bool) -> Self {
        Self::boolean(match (truth, negated) {
            (true, false) => self.expr.is_true(),
            (true, true) => self.expr.is_not_true(),
            (false, false) => self.expr.is_false(),
            (false, true) => self.expr.is_not_false(),
        })
    }

    /// CASE: the result behind the first condition that is true.
    pub fn case(branches: Vec<(Self, Self)>, otherwise: Self) -> Self {
        let kind = otherwise.kind();
        let same = branches.iter().all(|(_, result)| result.kind() == kind);
        let kind = if same { kind } else { kind.ty.into() };
        let result = |term: Self| if same { term } else { term.stored() };
        let branches = branches.into_iter();
        let branches = branches.map(|(condition, value)| (condition, result(value)));
        let otherwise = result(otherwise);
        let when_then_expr = branches
            .map(|(condition, result)| (Box::new(condition.expr), Box::new(result.expr)))
            .collect();
        let expr = Expr::Case(Case {
            expr: None,
            when_then_expr,
            else_expr: Some(Box::new(otherwise.expr)),
        });
        Self::new(expr, kind)
    }

    /// (NOT) EXISTS.
    pub fn exists(relation: Relation, negated: bool) -> Self {
        let subquery = subquery(relation);
        Self::boolean(Expr::Exists(Exists { subquery, negated }))
    }

    /// (NOT) IN a relation of one column.
    pub fn is_in(
        symbols: &Symbols,
        operand: Self,
        relation: Relation,
        negated: bool,
    ) -> Result<Self> {
        let [column] = relation.columns[..] else {
            return Err(Error::internal("a list of several columns"));
        };
        let same = operand.kind().is_exact() && operand.kind() == column.kind();
        // Texts of several types lie alike; numbers are made wide.
        let alike =
            Self::compares(operand.ty, column.ty) && data_type(operand.ty) == data_type(column.ty);
        let (expr, relation) = if same || alike {
            (operand.expr, relation)
        } else if Self::compares(operand.ty, column.ty) {
            let wide = Expr::Cast(Cast::new(Box::new(operand.expr), data_type(Type::Int8)));
            let (own, item) = (Type::Int8, column.term());
            let cast = Expr::Cast(Cast::new(Box::new(item.expr), data_type(own)));
            let term = Self::new(cast, own);
            (wide, relation.project(symbols, vec![term])?)
        } else {
            let key = column.term().stored().key(symbols);
            (
                operand.stored().key(symbols).expr,
                relation.project(symbols, vec![key])?,
            )
        };
        let (expr, subquery) = (Box::new(expr), subquery(relation));
        Ok(Self::boolean(Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated,
        })))
    }

    /// The value of a relation of one column and one row at most.
    pub fn scalar(relation: Relation) -> Result<Self> {
        let [column] = relation.columns[..] else {
            return Err(Error::internal("a value of several columns"));
        };
        let expr = Expr::ScalarSubquery(subquery(relation));
        Ok(Self::new(expr, column.kind()))
    }
}

/// The scale at which two decimals are compared, if they have room at it.
fn same_scale(left: Kind, right: Kind) -> Option<u8> {
    let (
        Extent::Decimal {
            digits: a,
            scale: x,
        },
        Extent::Decimal {
            digits: b,
            scale: y,
        },
    ) = (left.extent, right.extent)
    else {
        return None;
    };
    let scale = x.max(y);
    let room = |digits: u8, own: u8| digits + (scale - own) <= DIGITS_MAX;
    (room(a, x) && room(b, y)).then_some(scale)
}

/// Whether both are of `char(n)` with one length, or a constant can be made as long as the other.
fn padded(left: &Term, right: &Term) -> bool {
    let constant = |term: &Term| matches!(term.expr, Expr::Literal(ScalarValue::Utf8View(_), _));
    let known = |term: &Term| matches!(term.extent, Extent::Padded(_));
    left.ty == Type::Char
        && right.ty == Type::Char
        && match (known(left), known(right)) {
            (true, true) => left.extent == right.extent,
            (true, false) => constant(right),
            (false, true) => constant(left),
            (false, false) => false,
        }
}

/// What is known of a constant.
fn kind_of(value: ValueRef<'_>) -> Option<Kind> {
    let ValueRef::Numeric(NumericRef::Small { coefficient, scale }) = value else {
        return None;
    };
    let digits = coefficient.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    Kind::decimal(digits.max(scale.into()), scale.into())
}

/// All of them joined, in their order, as a tree that is no higher than it must be: what walks it recurses.
fn balanced(mut exprs: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while exprs.len() > 1 {
        let mut pairs = Vec::with_capacity(exprs.len().div_ceil(2));
        let mut rest = exprs.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        exprs = pairs;
    }
    exprs.pop()
}

fn subquery(relation: Relation) -> Subquery {
    let outer_ref_columns = relation.plan.all_out_ref_exprs();
    let plan: LogicalPlan = relation.plan;
    Subquery {
        subquery: Arc::new(plan),
        outer_ref_columns,
        spans: Spans::new(),
    }
}
