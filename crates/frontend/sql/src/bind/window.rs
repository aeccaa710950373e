//! Window functions: which there are, and what their windows are.

use super::frame::{Frame, is_same_for_all};
use super::named_windows::Definition;
use super::{Aggregate, AggregateKind, Binder, Bound, COMPARED_MAX, undefined};
use crate::error::{Result, SqlError};
use crate::expr::{Casting, Expr, no_polymorphic_type};
use crate::plan::{General, SortKey};
use crate::sqlstate;
use sqlparser::ast;
use vellum_query::WindowFunction;
use vellum_row::{CastContext, Type, Typmod, Value};

/// Slots from here on are those of window functions.
pub(crate) const WINDOW_SLOTS: u16 = 0x8000;

const CALLED: &str = "window function";

/// A window function of a query.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub function: WindowKind,
    pub arguments: Vec<(Expr, Type)>,
    pub result: Type,
    pub partition: Vec<(Expr, Type)>,
    pub order: Vec<SortKey>,
    pub frame: Option<Frame>,
}

/// A window function whose window is not bound yet.
#[derive(Debug)]
pub(crate) struct WindowCall {
    function: WindowKind,
    arguments: Vec<(Expr, Type)>,
    result: Type,
    over: Definition,
    place: Option<u32>,
}

/// A call as it was bound.
struct Called {
    /// `None`: of no number, and null for all rows.
    call: Option<WindowCall>,
    result: Type,
    /// Of rows: what is in them.
    typmod: Typmod,
    /// What stands in the place of a row that is not there, where the function does not take that itself: what is not the same for all rows.
    default: Option<Expr>,
}

impl Called {
    fn of(call: WindowCall, typmod: Typmod, default: Option<Expr>) -> Self {
        let result = call.result;
        Self {
            call: Some(call),
            result,
            typmod,
            default,
        }
    }

    /// Adds it to the window functions that were found; its value.
    fn put(self, found: &mut Vec<WindowCall>) -> Bound {
        let mut put = |call: WindowCall| {
            found.push(call);
            Expr::Slot(WINDOW_SLOTS + (found.len() - 1) as u16)
        };
        let expr = match (self.call, self.default) {
            (None, _) => Expr::Const(Value::Null),
            (Some(call), None) => put(call),
            (Some(call), Some(default)) => {
                // Whether there is such a row: a null that stands in it is no other.
                let one = std::iter::once((Expr::Const(Value::Bool(true)), Type::Bool));
                let there = WindowCall {
                    function: call.function.clone(),
                    arguments: one.chain(call.arguments.iter().skip(1).cloned()).collect(),
                    result: Type::Bool,
                    over: call.over.clone(),
                    place: call.place,
                };
                let there = put(there);
                let value = put(call);
                Expr::Case {
                    branches: [(there, value)].into(),
                    otherwise: Box::new(default),
                }
            }
        };
        Bound {
            typmod: self.typmod,
            ..Bound::new(expr, self.result)
        }
    }
}

/// What it computes.
#[derive(Clone, Debug)]
pub(crate) enum WindowKind {
    Function(WindowFunction),
    Aggregate(Aggregate),
}

/// The function of windows of this name.
fn find(name: &str) -> Option<WindowFunction> {
    use WindowFunction as F;
    Some(match name {
        "row_number" => F::RowNumber,
        "rank" => F::Rank,
        "dense_rank" => F::DenseRank,
        "percent_rank" => F::PercentRank,
        "cume_dist" => F::CumeDist,
        "ntile" => F::Ntile,
        "lead" => F::Lead,
        "lag" => F::Lag,
        "first_value" => F::First,
        "last_value" => F::Last,
        "nth_value" => F::Nth,
        _ => return None,
    })
}

/// Whether the name is that of a function that needs a window.
pub(super) fn needs_window(name: &str) -> bool {
    find(name).is_some()
}

impl Window {
    /// Calls `each` with every expression in it.
    pub fn expressions_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        for (expr, _) in self.arguments.iter_mut().chain(&mut self.partition) {
            each(expr);
        }
        if let WindowKind::Aggregate(aggregate) = &mut self.function {
            aggregate.expressions_mut(each);
        }
        for key in &mut self.order {
            if let crate::plan::SortBy::Expr(expr) = &mut key.expr {
                each(expr);
            }
        }
        if let Some(frame) = &mut self.frame {
            frame.expressions_mut(each);
        }
    }
}

/// `42809`.
#[cold]
pub(super) fn over_specified(name: &str) -> SqlError {
    let message =
        format!("OVER specified, but {name} is not a window function nor an aggregate function");
    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
}

impl Binder<'_> {
    /// A call with OVER: the slot of its result.
    pub(super) fn window(
        &mut self,
        name: &str,
        function: &ast::Function,
        over: &ast::WindowType,
    ) -> Result<Bound> {
        let place = self.place(&function.name);
        let Some(mut found) = self.windows.take() else {
            let (state, text) = if self.in_aggregate {
                let text = "aggregate function calls cannot contain window function calls";
                (sqlstate::GROUPING_ERROR, text)
            } else {
                let text = "window functions are not allowed here";
                (sqlstate::WINDOWING_ERROR, text)
            };
            return Err(SqlError::new(state, text).at(place));
        };
        let called = self.window_call(name, function, over, place);
        let made = called.and_then(|called| {
            let first = found.len() + usize::from(called.default.is_some());
            SqlError::check_room(first, COMPARED_MAX, "window functions")?;
            Ok(called.put(&mut found))
        });
        self.windows = Some(found);
        let made = made.map_err(|error| error.at(place))?;
        self.needs(General::WindowFunction);
        Ok(made)
    }

    fn window_call(
        &mut self,
        name: &str,
        function: &ast::Function,
        over: &ast::WindowType,
        place: Option<u32>,
    ) -> Result<Called> {
        let over = self.window_definition(over)?;
        if let Some(kind) = AggregateKind::find(name) {
            if kind.is_ordered_set() {
                let message = format!("OVER is not supported for ordered-set aggregate {name}");
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            let aggregate =
                self.without_sets(CALLED, |binder| binder.aggregate_call(name, kind, function))?;
            if aggregate.distinct {
                let text = "DISTINCT is not implemented for window functions";
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
            }
            if !aggregate.order.is_empty() {
                let text = "aggregate ORDER BY is not implemented for window functions";
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
            }
            let call = WindowCall {
                result: aggregate.result,
                function: WindowKind::Aggregate(aggregate),
                arguments: Vec::new(),
                over,
                place,
            };
            return Ok(Called::of(call, Typmod::NONE, None));
        }
        let none = || {
            let message = format!("function {name} does not exist as a window function");
            SqlError::new(sqlstate::UNDEFINED_FUNCTION, message)
        };
        let Some(called) = find(name) else {
            return Err(self.no_window(name, function));
        };
        if function.filter.is_some() {
            let text = "FILTER is not implemented for non-aggregate window functions";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        if function.null_treatment.is_some() {
            return Err(SqlError::unsupported("IGNORE NULLS"));
        }
        let mut bounds = Vec::new();
        if let ast::FunctionArguments::List(list) = &function.args {
            for argument in &list.args {
                let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(node)) = argument else {
                    return Err(none());
                };
                bounds.push(self.without_sets(CALLED, |binder| binder.expr(node))?);
            }
        }
        let types: Vec<Option<Type>> = bounds.iter().map(|bound| bound.ty).collect();
        let settings = self.settings;
        let differ = || undefined(settings, name, &types);
        let typmod = match called {
            WindowFunction::Lead | WindowFunction::Lag => {
                let (first, default) = (bounds.first(), bounds.get(2));
                self.common_row(first.into_iter().chain(default))
            }
            _ => self.common_row(bounds.first().into_iter()),
        };
        let (mut arguments, result) = self.window_arguments(called, bounds, none, differ)?;
        let number = called.number().and_then(|at| arguments.get(at));
        if number.is_some_and(|(number, _)| is_null(number)) {
            return Ok(Called {
                call: None,
                result,
                typmod,
                default: None,
            });
        }
        let is_const = |(default, _): &(Expr, Type)| matches!(default, Expr::Const(_));
        let default = match arguments.get(2).is_none_or(is_const) {
            true => None,
            false => arguments.pop().map(|(default, _)| default),
        };
        let call = WindowCall {
            function: WindowKind::Function(called),
            arguments,
            result,
            over,
            place,
        };
        Ok(Called::of(call, typmod, default))
    }

    /// The window functions that were found, with their windows, which say of parameters what no other clause has said.
    ///
    /// # Errors
    /// As expressions; `42P20` for a window function in a window; `54000` for more keys of windows than 65,534.
    pub fn window_functions(&mut self) -> Result<Vec<Window>> {
        let calls = self.windows.take().unwrap_or_default();
        let mut windows = Vec::with_capacity(calls.len());
        let mut keys = 0;
        for call in calls {
            let place = call.place;
            // Each has keys of its own, though many may name one window.
            keys += call.over.partition_by.len() + call.over.order_by.len();
            SqlError::check_room(keys, u16::MAX, "keys of windows")?;
            windows.push(self.with_window(call).map_err(|error| error.at(place))?);
        }
        Ok(windows)
    }

    fn with_window(&mut self, call: WindowCall) -> Result<Window> {
        let order = self.sort_expressions(&call.over.order_by)?;
        let mut partition = Vec::with_capacity(call.over.partition_by.len());
        for node in &*call.over.partition_by {
            let bound = self.expr(node)?;
            let (expr, ty, _) = self.settle(bound)?;
            crate::plan::check_equality(ty)?;
            partition.push((expr, ty));
        }
        let frame = call.over.frame.as_deref();
        let frame = frame.map(|node| self.frame(node, &order)).transpose()?;
        Ok(Window {
            function: call.function,
            arguments: call.arguments,
            result: call.result,
            partition,
            order,
            frame,
        })
    }

    /// What is wrong with OVER behind what is no window function: `42809` if it is another function.
    #[cold]
    fn no_window(&mut self, name: &str, function: &ast::Function) -> SqlError {
        let plain = ast::Function {
            over: None,
            ..function.clone()
        };
        match self.expr(&ast::Expr::Function(plain)) {
            Ok(_) => over_specified(name),
            Err(error) => error,
        }
    }

    fn window_arguments(
        &mut self,
        called: WindowFunction,
        given: Vec<Bound>,
        none: impl Fn() -> SqlError,
        differ: impl Fn() -> SqlError,
    ) -> Result<(Vec<(Expr, Type)>, Type)> {
        use WindowFunction as F;
        let count = given.len();
        let fits = match called {
            F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => count == 0,
            F::Ntile | F::First | F::Last => count == 1,
            F::Nth => count == 2,
            F::Lead | F::Lag => (1..=3).contains(&count),
        };
        if !fits {
            return Err(none());
        }
        let mut given = given.into_iter();
        let mut arguments = Vec::with_capacity(count);
        let result = match called {
            F::RowNumber | F::Rank | F::DenseRank => Type::Int8,
            F::PercentRank | F::CumeDist => Type::Float8,
            F::Ntile => {
                let buckets = given.next().ok_or_else(&none)?;
                arguments.push((self.number(called, buckets)?, Type::Int8));
                Type::Int4
            }
            F::First | F::Last | F::Nth | F::Lead | F::Lag => {
                let mut first = given.next().ok_or_else(&none)?;
                let (offset, default) = (given.next(), given.next());
                let mut of_default = None;
                if let Some(default) = default {
                    let both = vec![first, default];
                    self.common_type(CALLED, &both).map_err(|_| differ())?;
                    let (exprs, ty, _) = self.unify(CALLED, both)?;
                    let mut exprs = exprs.into_iter();
                    first = Bound::new(exprs.next().ok_or_else(&none)?, ty);
                    of_default = exprs.next();
                } else if first.ty.is_none() {
                    return Err(no_polymorphic_type());
                }
                let (expr, ty, _) = self.settle(first)?;
                arguments.push((expr, ty));
                if let Some(offset) = offset {
                    arguments.push((self.number(called, offset)?, Type::Int8));
                }
                arguments.extend(of_default.map(|default| (default, ty)));
                ty
            }
        };
        Ok((arguments, result))
    }

    /// A number (an `int`) that is the same for all rows: a constant, or what is made of parameters.
    fn number(&mut self, called: WindowFunction, bound: Bound) -> Result<Expr> {
        let expr = self.coerce(bound, Type::Int4, Typmod::NONE, CastContext::Implicit)?;
        let value = match &expr {
            Expr::Const(value) => Some(value),
            Expr::Cast { operand, .. } => match &**operand {
                Expr::Const(value) => Some(value),
                _ => None,
            },
            _ => None,
        };
        if value.is_some_and(|value| value.is_null()) {
            return Ok(Expr::Const(Value::Null));
        }
        if let Some(number) = value.and_then(|value| value.as_ref().as_i64()) {
            check_number(called, number)?;
            return Ok(Expr::Const(Value::Int8(number)));
        }
        if !is_same_for_all(&expr) {
            let what =
                "a number that is not the same for all rows as an argument of a window function";
            return Err(SqlError::unsupported(what));
        }
        Ok(Expr::Cast {
            operand: Box::new(expr),
            ty: Type::Int8,
            typmod: Typmod::NONE,
            casting: Casting::Implicit,
        })
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(Value::Null))
}

/// Looks at the number that a window function is given.
///
/// # Errors
/// `22014`, `22016`.
pub(crate) fn check_number(called: WindowFunction, number: i64) -> Result<()> {
    let (state, name) = match called {
        WindowFunction::Ntile => ("22014", "ntile"),
        WindowFunction::Nth => ("22016", "nth_value"),
        _ => return Ok(()),
    };
    if number > 0 {
        return Ok(());
    }
    let text = format!("argument of {name} must be greater than zero");
    Err(SqlError::new(sqlstate::SqlState::of(state), text))
}
