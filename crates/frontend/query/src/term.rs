//! Terms: what is computed of a row.

use crate::batch::single;
use crate::error::{Error, Result};
use crate::function::{KeyFunction, RowFunction, known};
use crate::relation::{Relation, Symbols};
use crate::types::{data_type, is_plain};
use arrow::datatypes::Field;
use datafusion::common::{Column as Name, ScalarValue, Spans};
use datafusion::logical_expr::expr::{Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Case, Cast, Expr, LogicalPlan, Operator, Subquery, and, lit, not, or,
};
use std::sync::Arc;
use vellum_row::{Type, ValueRef};

/// A column of a relation. No two columns of a query have one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Column {
    pub(crate) number: u32,
    /// The type of its values.
    pub ty: Type,
}

/// What is computed of a row: a value of one type, or null.
#[derive(Clone, Debug)]
pub struct Term {
    pub(crate) expr: Expr,
    pub(crate) ty: Type,
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
        }
    }

    /// Its value in the row of a query around this one.
    pub fn outer(self) -> Term {
        let field = Field::new(self.name(), data_type(self.ty), true);
        let name = Name::new_unqualified(self.name());
        Term {
            expr: Expr::OuterReferenceColumn(Arc::new(field), name),
            ty: self.ty,
        }
    }
}

impl Term {
    /// The type of its values.
    pub fn ty(&self) -> Type {
        self.ty
    }

    /// A value.
    ///
    /// # Errors
    /// One of another type.
    pub fn literal(ty: Type, value: ValueRef<'_>) -> Result<Self> {
        let array = single(ty, value)?;
        let value = ScalarValue::try_from_array(&array, 0)?;
        let expr = Expr::Literal(value, None);
        Ok(Self { expr, ty })
    }

    /// The value of a function. A volatile one is called once a row, wherever its arguments come from.
    pub fn call(
        symbols: &Symbols,
        function: Arc<dyn RowFunction>,
        arguments: Vec<Self>,
        ty: Type,
        volatile: bool,
    ) -> Self {
        let types: Vec<Type> = arguments.iter().map(|term| term.ty).collect();
        let func = known(symbols.next(), function, &types, ty, volatile);
        let args = arguments.into_iter().map(|term| term.expr).collect();
        let expr = Expr::ScalarFunction(ScalarFunction { func, args });
        Self { expr, ty }
    }

    fn boolean(expr: Expr) -> Self {
        let ty = Type::Bool;
        Self { expr, ty }
    }

    /// Whether its operators may compare values of these types themselves.
    pub fn compares(left: Type, right: Type) -> bool {
        let whole = |ty: Type| ty.is_integer() || ty.is_oid();
        is_plain(left)
            && is_plain(right)
            && (data_type(left) == data_type(right) || (whole(left) && whole(right)))
    }

    /// A comparison of values of one type, or of integers; null if one side is.
    pub fn compare(symbols: &Symbols, comparison: Comparison, left: Self, right: Self) -> Self {
        let (left, right) = Self::alike(symbols, left, right);
        let (left, right) = (Box::new(left), Box::new(right));
        Self::boolean(Expr::BinaryExpr(BinaryExpr::new(
            left,
            comparison.operator(),
            right,
        )))
    }

    /// IS (NOT) DISTINCT FROM.
    pub fn distinct(symbols: &Symbols, left: Self, right: Self, negated: bool) -> Self {
        let (left, right) = Self::alike(symbols, left, right);
        let operator = match negated {
            true => Operator::IsNotDistinctFrom,
            false => Operator::IsDistinctFrom,
        };
        let (left, right) = (Box::new(left), Box::new(right));
        Self::boolean(Expr::BinaryExpr(BinaryExpr::new(left, operator, right)))
    }

    /// Both as values that Arrow compares as SQL does.
    fn alike(symbols: &Symbols, left: Self, right: Self) -> (Expr, Expr) {
        if !Self::compares(left.ty, right.ty) {
            return (left.key(symbols).expr, right.key(symbols).expr);
        }
        if data_type(left.ty) == data_type(right.ty) {
            return (left.expr, right.expr);
        }
        let wide = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), data_type(Type::Int8)));
        (wide(left.expr), wide(right.expr))
    }

    /// What it is sorted, grouped and joined by.
    pub(crate) fn key(self, symbols: &Symbols) -> Self {
        if is_plain(self.ty) {
            return self;
        }
        let function = Arc::new(KeyFunction(self.ty));
        let func = known(
            symbols.key_of(self.ty),
            function,
            &[self.ty],
            Type::Bytea,
            false,
        );
        let args = vec![self.expr];
        Self {
            expr: Expr::ScalarFunction(ScalarFunction { func, args }),
            ty: Type::Bytea,
        }
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
        let ty = otherwise.ty;
        let branches = branches.into_iter();
        let when_then_expr = branches
            .map(|(condition, result)| (Box::new(condition.expr), Box::new(result.expr)))
            .collect();
        let expr = Expr::Case(Case {
            expr: None,
            when_then_expr,
            else_expr: Some(Box::new(otherwise.expr)),
        });
        Self { expr, ty }
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
        let (expr, relation) = if is_plain(operand.ty) && operand.ty == column.ty {
            (operand.expr, relation)
        } else if Self::compares(operand.ty, column.ty) {
            let wide = Expr::Cast(Cast::new(Box::new(operand.expr), data_type(Type::Int8)));
            let (own, item) = (Type::Int8, column.term());
            let cast = Expr::Cast(Cast::new(Box::new(item.expr), data_type(own)));
            let term = Self {
                expr: cast,
                ty: own,
            };
            (wide, relation.project(symbols, vec![term])?)
        } else {
            let key = column.term().key(symbols);
            (
                operand.key(symbols).expr,
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
        Ok(Self {
            expr,
            ty: column.ty,
        })
    }
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
