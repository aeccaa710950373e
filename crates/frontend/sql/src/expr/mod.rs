//! Typed expressions, and their evaluation over rows.
//!
//! The binder has resolved names, types and casts: evaluation looks nothing up and decides nothing. Values of fixed width,
//! and text that stands in a row, a parameter or a constant, are handed on by reference: no allocation.
//!
//! Invariants:
//! - E1 Both sides of a comparison have one type, or are integers.
//! - E2 NULL is handled here; the functions of `row` see values only.
//!
//! Not here: aggregates (`exec`), which leave their results in slots.

mod function;
mod pattern;

pub(crate) use function::Builtin;

use crate::error::Result;
use crate::scalar::{self, Operator, Settings};
use std::cmp::Ordering;
use vellum_row::{RowView, Type, Typmod, Value, ValueRef};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Const(Value),
    /// A column of one of the tables, by position.
    Column {
        table: u16,
        position: u16,
    },
    Param(u16),
    /// What was computed before: a group's key, an aggregate.
    Slot(u16),
    /// The value of a scalar subquery, or whether an EXISTS has rows.
    Subquery(u16),
    InSubquery {
        operand: Box<Expr>,
        subquery: u16,
        negated: bool,
    },
    Not(Box<Expr>),
    And(Box<[Expr]>),
    Or(Box<[Expr]>),
    /// IS [NOT] NULL.
    IsNull {
        operand: Box<Expr>,
        negated: bool,
    },
    /// IS [NOT] TRUE, FALSE; never null.
    Is {
        operand: Box<Expr>,
        truth: bool,
        negated: bool,
    },
    Compare {
        comparison: Comparison,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// IS [NOT] DISTINCT FROM.
    Distinct {
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
    },
    Arithmetic {
        operator: Operator,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Negate(Box<Expr>),
    Cast {
        operand: Box<Expr>,
        ty: Type,
        typmod: Typmod,
        explicit: bool,
    },
    Case {
        branches: Box<[(Expr, Expr)]>,
        otherwise: Box<Expr>,
    },
    Coalesce(Box<[Expr]>),
    In {
        operand: Box<Expr>,
        list: Box<[Expr]>,
        negated: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<char>,
        fold: bool,
        negated: bool,
    },
    Concat(Box<Expr>, Box<Expr>),
    Call {
        function: Builtin,
        arguments: Box<[Expr]>,
    },
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// Whether an order fulfils it.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }

    /// The same with the sides swapped.
    pub fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }
}

/// A row that columns are read of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowRef<'a> {
    /// As it stands in a table.
    Stored(RowView<'a>),
    Values(&'a [Value]),
    /// The missing side of an outer join.
    Missing,
}

impl<'a> RowRef<'a> {
    /// The value of a column.
    ///
    /// # Errors
    /// `XX001` for a damaged row.
    #[inline]
    pub fn get(&self, position: usize) -> Result<ValueRef<'a>> {
        match self {
            Self::Stored(row) => Ok(row.get(position)?),
            Self::Values(values) => Ok(values[position].as_ref()),
            Self::Missing => Ok(ValueRef::Null),
        }
    }
}

/// What an expression is evaluated over.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub params: &'a [Value],
    pub slots: &'a [Value],
    pub subqueries: &'a [Subresult],
    pub rows: &'a [RowRef<'a>],
    pub env: &'a dyn Environment,
}

/// What a subquery has returned, before the statement that it is in began.
#[derive(Clone, Debug)]
pub(crate) enum Subresult {
    Value(Value),
    List(Vec<Value>),
}

/// What expressions ask of their session.
pub(crate) trait Environment {
    /// What forms of values depend on.
    fn settings(&self) -> &Settings;
    /// `now()`, `current_user`, `nextval` and the like.
    ///
    /// # Errors
    /// The function's.
    fn ask(&self, function: Builtin, arguments: &[Value]) -> Result<Value>;
}

/// A value, lent or computed.
#[derive(Debug)]
pub(crate) enum Out<'a> {
    Lent(ValueRef<'a>),
    Own(Value),
}

impl<'a> Out<'a> {
    pub const NULL: Out<'static> = Out::Lent(ValueRef::Null);

    /// To look at.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Lent(value) => *value,
            Self::Own(value) => value.as_ref(),
        }
    }

    /// To keep.
    pub fn into_value(self) -> Value {
        match self {
            Self::Lent(value) => value.to_value(),
            Self::Own(value) => value,
        }
    }

    #[inline]
    pub fn is_null(&self) -> bool {
        self.as_ref().is_null()
    }

    fn bool(value: bool) -> Self {
        Self::Lent(ValueRef::Bool(value))
    }
}

impl Expr {
    /// Evaluates.
    ///
    /// # Errors
    /// Those of the functions in it.
    pub fn eval<'a>(&'a self, frame: &Frame<'a>) -> Result<Out<'a>> {
        Ok(match self {
            Self::Const(value) => Out::Lent(value.as_ref()),
            Self::Column { table, position } => {
                Out::Lent(frame.rows[usize::from(*table)].get(usize::from(*position))?)
            }
            Self::Param(number) => Out::Lent(frame.params[usize::from(*number)].as_ref()),
            Self::Slot(number) => Out::Lent(frame.slots[usize::from(*number)].as_ref()),
            Self::Subquery(number) => match &frame.subqueries[usize::from(*number)] {
                Subresult::Value(value) => Out::Lent(value.as_ref()),
                Subresult::List(list) => Out::bool(!list.is_empty()),
            },
            Self::InSubquery {
                operand,
                subquery,
                negated,
            } => {
                let value = operand.eval(frame)?;
                match &frame.subqueries[usize::from(*subquery)] {
                    Subresult::List(list) => {
                        let items = list.iter().map(|item| Ok(Out::Lent(item.as_ref())));
                        is_in(value.as_ref(), list.is_empty(), items, *negated)?
                    }
                    Subresult::Value(_) => Out::NULL,
                }
            }
            Self::Not(operand) => match operand.eval(frame)?.as_ref().as_bool() {
                Some(value) => Out::bool(!value),
                None => Out::NULL,
            },
            Self::And(operands) => all(operands, frame, false)?,
            Self::Or(operands) => all(operands, frame, true)?,
            Self::IsNull { operand, negated } => {
                Out::bool(operand.eval(frame)?.is_null() != *negated)
            }
            Self::Is {
                operand,
                truth,
                negated,
            } => {
                let value = operand.eval(frame)?.as_ref().as_bool();
                Out::bool((value == Some(*truth)) != *negated)
            }
            Self::Compare {
                comparison,
                left,
                right,
            } => {
                let (left, right) = (left.eval(frame)?, right.eval(frame)?);
                let (left, right) = (left.as_ref(), right.as_ref());
                if left.is_null() || right.is_null() {
                    return Ok(Out::NULL);
                }
                Out::bool(comparison.holds(scalar::compare(left, right)))
            }
            Self::Distinct {
                left,
                right,
                negated,
            } => {
                let (left, right) = (left.eval(frame)?, right.eval(frame)?);
                let (left, right) = (left.as_ref(), right.as_ref());
                let distinct = match (left.is_null(), right.is_null()) {
                    (true, true) => false,
                    (false, false) => scalar::compare(left, right).is_ne(),
                    _ => true,
                };
                Out::bool(distinct != *negated)
            }
            Self::Arithmetic {
                operator,
                left,
                right,
            } => {
                let (left, right) = (left.eval(frame)?, right.eval(frame)?);
                let (left, right) = (left.as_ref(), right.as_ref());
                if left.is_null() || right.is_null() {
                    return Ok(Out::NULL);
                }
                Out::Own(scalar::arithmetic(
                    *operator,
                    left,
                    right,
                    frame.env.settings(),
                )?)
            }
            Self::Negate(operand) => {
                let value = operand.eval(frame)?;
                if value.is_null() {
                    return Ok(Out::NULL);
                }
                Out::Own(scalar::negate(value.as_ref())?)
            }
            Self::Cast {
                operand,
                ty,
                typmod,
                explicit,
            } => {
                let value = operand.eval(frame)?;
                if value.is_null() {
                    return Ok(Out::NULL);
                }
                let settings = frame.env.settings();
                Out::Own(scalar::cast(
                    value.as_ref(),
                    *ty,
                    *typmod,
                    *explicit,
                    settings,
                )?)
            }
            Self::Case {
                branches,
                otherwise,
            } => {
                for (condition, result) in branches {
                    if condition.is_true(frame)? {
                        return result.eval(frame);
                    }
                }
                otherwise.eval(frame)?
            }
            Self::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.eval(frame)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Out::NULL
            }
            Self::In {
                operand,
                list,
                negated,
            } => {
                let value = operand.eval(frame)?;
                let items = list.iter().map(|item| item.eval(frame));
                is_in(value.as_ref(), list.is_empty(), items, *negated)?
            }
            Self::Like {
                operand,
                pattern,
                escape,
                fold,
                negated,
            } => {
                let (text, pattern) = (operand.eval(frame)?, pattern.eval(frame)?);
                let (Some(text), Some(pattern)) =
                    (text.as_ref().as_str(), pattern.as_ref().as_str())
                else {
                    return Ok(Out::NULL);
                };
                let found = if *fold {
                    pattern::like(&text.to_lowercase(), &pattern.to_lowercase(), *escape)?
                } else {
                    pattern::like(text, pattern, *escape)?
                };
                Out::bool(found != *negated)
            }
            Self::Concat(left, right) => {
                let (left, right) = (left.eval(frame)?, right.eval(frame)?);
                if left.is_null() || right.is_null() {
                    return Ok(Out::NULL);
                }
                Out::Own(function::concat(left.as_ref(), right.as_ref(), frame)?)
            }
            Self::Call {
                function,
                arguments,
            } => function::call(*function, arguments, frame)?,
        })
    }

    /// Whether it is true; null is not.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[inline]
    pub fn is_true<'a>(&'a self, frame: &Frame<'a>) -> Result<bool> {
        Ok(self.eval(frame)?.as_ref().as_bool() == Some(true))
    }

    /// Calls `each` with every expression in it, itself included.
    pub fn walk<'e>(&'e self, each: &mut dyn FnMut(&'e Expr)) {
        each(self);
        match self {
            Self::Const(_)
            | Self::Column { .. }
            | Self::Param(_)
            | Self::Slot(_)
            | Self::Subquery(_) => {}
            Self::InSubquery { operand, .. } => operand.walk(each),
            Self::Not(operand)
            | Self::Negate(operand)
            | Self::IsNull { operand, .. }
            | Self::Is { operand, .. }
            | Self::Cast { operand, .. } => operand.walk(each),
            Self::And(list) | Self::Or(list) | Self::Coalesce(list) => {
                list.iter().for_each(|expr| expr.walk(each));
            }
            Self::Compare { left, right, .. }
            | Self::Distinct { left, right, .. }
            | Self::Arithmetic { left, right, .. }
            | Self::Concat(left, right)
            | Self::Like {
                operand: left,
                pattern: right,
                ..
            } => {
                left.walk(each);
                right.walk(each);
            }
            Self::Case {
                branches,
                otherwise,
            } => {
                for (condition, result) in branches {
                    condition.walk(each);
                    result.walk(each);
                }
                otherwise.walk(each);
            }
            Self::In { operand, list, .. } => {
                operand.walk(each);
                for expr in list {
                    expr.walk(each);
                }
            }
            Self::Call { arguments, .. } => arguments.iter().for_each(|expr| expr.walk(each)),
        }
    }

    /// Calls `each` with the expressions directly in it.
    pub fn children_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match self {
            Self::Const(_)
            | Self::Column { .. }
            | Self::Param(_)
            | Self::Slot(_)
            | Self::Subquery(_) => {}
            Self::Not(operand)
            | Self::Negate(operand)
            | Self::IsNull { operand, .. }
            | Self::Is { operand, .. }
            | Self::InSubquery { operand, .. }
            | Self::Cast { operand, .. } => each(operand),
            Self::And(list) | Self::Or(list) | Self::Coalesce(list) => {
                list.iter_mut().for_each(each);
            }
            Self::Compare { left, right, .. }
            | Self::Distinct { left, right, .. }
            | Self::Arithmetic { left, right, .. }
            | Self::Concat(left, right)
            | Self::Like {
                operand: left,
                pattern: right,
                ..
            } => {
                each(left);
                each(right);
            }
            Self::Case {
                branches,
                otherwise,
            } => {
                for (condition, result) in branches {
                    each(condition);
                    each(result);
                }
                each(otherwise);
            }
            Self::In { operand, list, .. } => {
                each(operand);
                list.iter_mut().for_each(each);
            }
            Self::Call { arguments, .. } => arguments.iter_mut().for_each(each),
        }
    }

    /// Whether it reads no table from number `from` on.
    pub fn reads_only_before(&self, from: u16) -> bool {
        let mut only = true;
        self.walk(&mut |expr| {
            if let Expr::Column { table, .. } = expr {
                only &= *table < from;
            }
        });
        only
    }

    /// Whether two evaluations in one statement may differ.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.walk(&mut |expr| {
            if let Expr::Call { function, .. } = expr {
                volatile |= function.is_volatile();
            }
        });
        volatile
    }
}

/// AND and OR: `decisive` decides at once, null if nothing decides and something is null.
fn all<'a>(operands: &'a [Expr], frame: &Frame<'a>, decisive: bool) -> Result<Out<'a>> {
    let mut null = false;
    for operand in operands {
        match operand.eval(frame)?.as_ref().as_bool() {
            Some(value) if value == decisive => return Ok(Out::bool(decisive)),
            Some(_) => {}
            None => null = true,
        }
    }
    Ok(if null {
        Out::NULL
    } else {
        Out::bool(!decisive)
    })
}

fn is_in<'a>(
    value: ValueRef<'_>,
    is_empty: bool,
    items: impl Iterator<Item = Result<Out<'a>>>,
    negated: bool,
) -> Result<Out<'a>> {
    if is_empty {
        return Ok(Out::bool(negated));
    }
    if value.is_null() {
        return Ok(Out::NULL);
    }
    let mut null = false;
    for item in items {
        let item = item?;
        let item = item.as_ref();
        if item.is_null() {
            null = true;
        } else if scalar::compare(value, item).is_eq() {
            return Ok(Out::bool(!negated));
        }
    }
    Ok(if null { Out::NULL } else { Out::bool(negated) })
}
