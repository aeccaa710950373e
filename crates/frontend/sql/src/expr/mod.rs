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

mod casting;
mod catalog_function;
mod catalog_objects;
mod domain;
mod form;
mod function;
mod lists;
mod plain;
mod record;
mod returned;
mod rows;
mod scalar;

pub(crate) use casting::Casting;
pub(crate) use catalog_function::{AdvisoryAction, CatalogFunction, Quantifier};
pub(crate) use catalog_function::{CatalogEntry, VOID, catalog_functions, type_oid};
pub(crate) use domain::{DomainRules, NESTED_MAX};
pub(crate) use form::{Form, RowField, RowType, Shown, unknown_row};
pub(crate) use function::{Builtin, Signature, as_called};
pub(crate) use lists::{ListSets, Listed, Searched};
pub(crate) use plain::Plain;
pub(crate) use record::{field, send as send_record};
pub(crate) use returned::{Queries, Returned, Subresult};
pub(crate) use rows::{RowSet, RowTest, RowsFrom};
pub(crate) use scalar::{
    Entry, Keep, PGCRYPTO, RowsOf, Scalar, UUID_OSSP, ambiguous, common_of, fill_random,
    find as find_scalar, find_of as find_among, functions as scalar_functions, letters, md5_text,
    no_polymorphic_type,
};

use crate::error::{Result, SqlError};
use crate::system::Definition;
use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{
    Pattern, RowView, Settings, Type, Typmod, Value, ValueRef, compare, functions, is_ready,
};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Const(Value),
    /// A column of one of the tables, by position.
    Column {
        table: u16,
        position: u16,
    },
    /// A column of a query around this one: `level` queries outwards.
    Outer {
        level: u16,
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
    /// A row among others.
    Rows {
        operands: Box<[Expr]>,
        from: RowsFrom,
        test: RowTest,
    },
    /// What reads a value several times that is to be computed once, as [`Expr::Held`]. One inside another has a value of its own, and neither is read
    /// from inside the other.
    Once {
        value: Box<Expr>,
        body: Box<Expr>,
    },
    Held,
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
        casting: Casting,
    },
    /// A value of the type of a domain, as one of the domain.
    Domain {
        operand: Box<Expr>,
        rules: Arc<DomainRules>,
    },
    /// Text or JSON of a value that does not tell it by itself.
    Shown {
        operand: Box<Expr>,
        shown: Arc<Shown>,
    },
    Case {
        branches: Box<[(Expr, Expr)]>,
        otherwise: Box<Expr>,
    },
    Coalesce(Box<[Expr]>),
    In {
        operand: Box<Expr>,
        list: Listed,
        negated: bool,
    },
    /// `= ANY (array)`, or `<> ALL (array)`.
    Among {
        operand: Box<Expr>,
        array: Box<Searched>,
        negated: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        /// The pattern, if it is a constant.
        constant: Option<Pattern>,
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
    /// Handed over by an operator.
    Lent(&'a [ValueRef<'a>]),
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
            Self::Lent(values) => Ok(values[position]),
            Self::Missing => Ok(ValueRef::Null),
        }
    }
}

/// What an expression is evaluated over.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub params: &'a [Value],
    pub slots: &'a [Value],
    pub subqueries: &'a [Subresult<'a>],
    pub rows: &'a [RowRef<'a>],
    pub env: &'a dyn Environment,
    /// What [`Expr::Held`] is.
    pub held: Option<&'a Value>,
    /// What the query around this one stands at.
    pub outer: Option<&'a Frame<'a>>,
    /// Who runs subqueries that read this frame.
    pub queries: Option<&'a dyn Queries>,
}

/// What is to be told of queries that no program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Explain {
    /// Their steps; they are not run.
    Plan,
    /// Their steps and what these did.
    Analyze,
}

/// What expressions ask of their session.
pub(crate) trait Environment {
    /// Where the steps of queries are told, if they are to be.
    fn explain(&self) -> Option<(&RefCell<Vec<String>>, Explain)> {
        None
    }
    /// What forms of values depend on.
    fn settings(&self) -> &Settings;
    /// Asked now and then by what takes long.
    ///
    /// # Errors
    /// `57014`, `57P01` if the statement is to end, or has ended.
    fn look(&self) -> Result<()> {
        Ok(())
    }
    /// Whether [`Environment::look`] hears that: what may take for ever is refused where nobody does.
    fn hears_ends(&self) -> bool {
        false
    }
    /// `now()`, `current_user`, `nextval` and the like.
    ///
    /// # Errors
    /// The function's.
    fn ask(&self, function: Builtin, arguments: &[Value]) -> Result<Value>;
    /// Whether changes of rows look at foreign keys.
    fn keeps_foreign_keys(&self) -> bool {
        true
    }
    /// The role whose rights count; `None` where nobody's are asked for.
    fn role(&self) -> Option<u32> {
        None
    }
    /// What is kept of lists for the run.
    fn lists(&self) -> Option<&ListSets> {
        None
    }
    /// The rows of a system relation.
    ///
    /// # Errors
    /// Storage errors; `42501`.
    fn system_rows(&self, definition: &Definition) -> Result<Vec<Vec<Value>>> {
        Err(SqlError::internal(definition.name))
    }
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

/// Runs `work` for every expression directly in one: lent or changeable, as `iter` says.
macro_rules! children {
    ($expr:expr, $iter:ident, |$child:ident| $work:expr) => {
        match $expr {
            Expr::Const(_)
            | Expr::Column { .. }
            | Expr::Outer { .. }
            | Expr::Param(_)
            | Expr::Slot(_)
            | Expr::Held
            | Expr::Subquery(_) => {}
            Expr::Not($child)
            | Expr::Negate($child)
            | Expr::IsNull {
                operand: $child, ..
            }
            | Expr::Is {
                operand: $child, ..
            }
            | Expr::InSubquery {
                operand: $child, ..
            }
            | Expr::Cast {
                operand: $child, ..
            }
            | Expr::Domain {
                operand: $child, ..
            }
            | Expr::Shown {
                operand: $child, ..
            } => $work,
            Expr::And(list)
            | Expr::Or(list)
            | Expr::Coalesce(list)
            | Expr::Call {
                arguments: list, ..
            } => list.$iter().for_each(|$child| $work),
            Expr::Compare { left, right, .. }
            | Expr::Distinct { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::Concat(left, right)
            | Expr::Once {
                value: left,
                body: right,
            }
            | Expr::Like {
                operand: left,
                pattern: right,
                ..
            } => {
                for $child in [left, right] {
                    $work;
                }
            }
            Expr::Case {
                branches,
                otherwise,
            } => {
                for (condition, result) in branches.$iter() {
                    for $child in [condition, result] {
                        $work;
                    }
                }
                let $child = otherwise;
                $work
            }
            Expr::Rows { operands, from, .. } => {
                operands.$iter().for_each(|$child| $work);
                if let RowsFrom::Row(others) = from {
                    others.$iter().for_each(|$child| $work);
                }
            }
            Expr::In { operand, list, .. } => {
                let $child = operand;
                $work;
                list.$iter().for_each(|$child| $work);
            }
            Expr::Among { operand, array, .. } => {
                let $child = operand;
                $work;
                let $child = array;
                $work;
            }
        }
    };
}

impl Expr {
    /// The number of the subquery that it asks, itself and not in what it is made of.
    pub fn subquery(&self) -> Option<u16> {
        match self {
            Self::Subquery(number)
            | Self::InSubquery {
                subquery: number, ..
            }
            | Self::Rows {
                from: RowsFrom::Subquery(number),
                ..
            } => Some(*number),
            _ => None,
        }
    }

    /// Whether it is, or has in it, what a query of its statement has found.
    pub fn asks_a_query(&self) -> bool {
        let mut asks = false;
        self.walk(&mut |expr| asks |= expr.subquery().is_some());
        asks
    }

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
            Self::Outer {
                level,
                table,
                position,
            } => {
                let mut around = frame.outer;
                for _ in 1..*level {
                    around = around.and_then(|frame| frame.outer);
                }
                let row = around.and_then(|frame| frame.rows.get(usize::from(*table)));
                let row = row.ok_or_else(|| SqlError::unsupported("a correlated subquery here"))?;
                Out::Own(row.get(usize::from(*position))?.to_value())
            }
            Self::Param(number) => Out::Lent(frame.params[usize::from(*number)].as_ref()),
            Self::Slot(number) => Out::Lent(frame.slots[usize::from(*number)].as_ref()),
            Self::Subquery(number) => {
                match frame.subqueries[usize::from(*number)].returned(frame)? {
                    Cow::Borrowed(Returned::Value(value)) => Out::Lent(value.as_ref()),
                    Cow::Owned(Returned::Value(value)) => Out::Own(value),
                    rows => match &*rows {
                        Returned::Rows(set) => Out::bool(!set.is_empty()),
                        Returned::Value(_) => Out::NULL,
                    },
                }
            }
            Self::InSubquery {
                operand,
                subquery,
                negated,
            } => {
                let operands = std::slice::from_ref(&**operand);
                let found = match &*frame.subqueries[usize::from(*subquery)].returned(frame)? {
                    Returned::Rows(set) => among(operands, set, RowTest::among(*negated), frame)?,
                    Returned::Value(_) => None,
                };
                found.map_or(Out::NULL, Out::bool)
            }
            Self::Rows {
                operands,
                from,
                test,
            } => {
                let found = match from {
                    RowsFrom::Row(others) => match *test {
                        RowTest::Values(comparison) => {
                            Some(rows::values_in_order(operands, others, comparison, frame)?)
                        }
                        RowTest::Any(comparison)
                        | RowTest::All(comparison)
                        | RowTest::One(comparison) => {
                            rows::one_with_one(operands, others, comparison, frame)?
                        }
                    },
                    RowsFrom::Known(set) => among(operands, set, *test, frame)?,
                    RowsFrom::Subquery(number) => {
                        match &*frame.subqueries[usize::from(*number)].returned(frame)? {
                            Returned::Rows(set) => among(operands, set, *test, frame)?,
                            Returned::Value(_) => None,
                        }
                    }
                };
                found.map_or(Out::NULL, Out::bool)
            }
            Self::Once { value, body } => {
                let value = value.eval(frame)?.into_value();
                let frame = Frame {
                    held: Some(&value),
                    ..*frame
                };
                Out::Own(body.eval(&frame)?.into_value())
            }
            Self::Held => match frame.held {
                Some(value) => Out::Lent(value.as_ref()),
                None => return Err(SqlError::internal("a value that nobody holds")),
            },
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
                Out::bool(comparison.holds(compare(left, right)))
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
                    (false, false) => compare(left, right).is_ne(),
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
                let settings = frame.env.settings();
                Out::Own(arithmetic::apply(*operator, left, right, settings)?)
            }
            Self::Negate(operand) => {
                let value = operand.eval(frame)?;
                if value.is_null() {
                    return Ok(Out::NULL);
                }
                Out::Own(arithmetic::negate(value.as_ref())?)
            }
            Self::Cast {
                operand,
                ty,
                typmod,
                casting,
            } => {
                let value = operand.eval(frame)?;
                if is_ready(value.as_ref(), *ty, *typmod) {
                    return Ok(value);
                }
                let settings = frame.env.settings();
                Out::Own(casting.apply(value.as_ref(), *ty, *typmod, settings)?)
            }
            Self::Domain { operand, rules } => {
                let value = operand.eval(frame)?;
                rules.check(value.as_ref(), frame)?;
                value
            }
            Self::Shown { operand, shown } => {
                let value = operand.eval(frame)?;
                if value.is_null() {
                    return Ok(Out::NULL);
                }
                Out::Own(shown.of(value.as_ref(), frame.env)?)
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
                let found = lists::in_list(value.as_ref(), list, *negated, frame)?;
                found.map_or(Out::NULL, Out::bool)
            }
            Self::Among {
                operand,
                array,
                negated,
            } => {
                let value = operand.eval(frame)?;
                let found = lists::in_array(value.as_ref(), array, *negated, frame)?;
                found.map_or(Out::NULL, Out::bool)
            }
            Self::Like {
                operand,
                pattern,
                constant,
                escape,
                fold,
                negated,
            } => {
                let text = operand.eval(frame)?;
                let Some(text) = letters(text.as_ref()) else {
                    return Ok(Out::NULL);
                };
                let found = match constant {
                    Some(pattern) => pattern.matches(&text)?,
                    None => match letters(pattern.eval(frame)?.as_ref()) {
                        Some(pattern) => Pattern::new(&pattern, *escape, *fold).matches(&text)?,
                        None => return Ok(Out::NULL),
                    },
                };
                Out::bool(found != *negated)
            }
            Self::Concat(left, right) => {
                let (left, right) = (left.eval(frame)?, right.eval(frame)?);
                let (left, right) = (left.as_ref(), right.as_ref());
                match (left.as_str(), right.as_str()) {
                    (Some(left), Some(right)) => {
                        vellum_row::check_length(left.len() + right.len())?;
                        Out::Own(Value::text(functions::concat(left, right)))
                    }
                    _ => Out::NULL,
                }
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
        children!(self, iter, |child| child.walk(each));
    }

    /// How many expressions it is made of, itself among them.
    pub fn parts(&self) -> usize {
        let mut count = 0;
        self.walk(&mut |_| count += 1);
        count
    }

    /// Calls `each` with the expressions directly in it.
    pub fn children<'e>(&'e self, each: &mut dyn FnMut(&'e Expr)) {
        children!(self, iter, |child| each(child));
    }

    /// The same, to change them.
    pub fn children_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        children!(self, iter_mut, |child| each(child));
    }

    /// Whether two evaluations in one statement may differ.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.walk(&mut |expr| match expr {
            Expr::Call { function, .. } => volatile |= function.is_volatile(),
            Expr::Domain { rules, .. } => volatile |= rules.is_volatile(),
            _ => {}
        });
        volatile
    }

    /// Whether its value is asked of the session, in part at least.
    pub fn asks(&self) -> bool {
        let mut asks = false;
        self.walk(&mut |expr| match expr {
            Expr::Call { function, .. } => asks |= function.asks(),
            Expr::Domain { rules, .. } => asks |= rules.asks(),
            Expr::Shown { shown, .. } => asks |= shown.form.has_names(),
            _ => {}
        });
        asks
    }
}

/// Whether a row is among others as it is asked. Of none nothing is asked: the row is not computed, as in PostgreSQL.
fn among(
    operands: &[Expr],
    set: &RowSet,
    test: RowTest,
    frame: &Frame<'_>,
) -> Result<Option<bool>> {
    if set.is_empty() {
        return Ok(set.test(&[], test));
    }
    let values = operands.iter().map(|operand| operand.eval(frame));
    let values = values.collect::<Result<Vec<Out<'_>>>>()?;
    let values: Vec<ValueRef<'_>> = values.iter().map(Out::as_ref).collect();
    Ok(set.test(&values, test))
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
