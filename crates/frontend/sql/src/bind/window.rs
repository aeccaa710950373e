//! Window functions: which there are, and what their windows are.

use super::frame::{Frame, is_same_for_all};
use super::{Aggregate, AggregateKind, Binder, Bound, COMPARED_MAX, folded};
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
    over: ast::WindowSpec,
    place: Option<u32>,
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
        let bound = self.window_call(name, function, over, place);
        let (slot, result) = match bound {
            Ok(call) => {
                let room = SqlError::check_room(found.len(), COMPARED_MAX, "window functions");
                if let Err(error) = room {
                    self.windows = Some(found);
                    return Err(error);
                }
                let result = call.result;
                found.push(call);
                (found.len() - 1, result)
            }
            Err(error) => {
                self.windows = Some(found);
                return Err(error.at(place));
            }
        };
        self.windows = Some(found);
        self.needs(General::WindowFunction);
        Ok(Bound::new(Expr::Slot(WINDOW_SLOTS + slot as u16), result))
    }

    fn window_call(
        &mut self,
        name: &str,
        function: &ast::Function,
        over: &ast::WindowType,
        place: Option<u32>,
    ) -> Result<WindowCall> {
        let over = self.window_spec(over)?;
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
            return Ok(WindowCall {
                result: aggregate.result,
                function: WindowKind::Aggregate(aggregate),
                arguments: Vec::new(),
                over,
                place,
            });
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
        let (arguments, result) = self.window_arguments(called, bounds, none)?;
        Ok(WindowCall {
            function: WindowKind::Function(called),
            arguments,
            result,
            over,
            place,
        })
    }

    /// The window functions that were found, with their windows, which say of parameters what no other clause has said.
    ///
    /// # Errors
    /// As expressions; `42P20` for a window function in a window.
    pub fn window_functions(&mut self) -> Result<Vec<Window>> {
        let calls = self.windows.take().unwrap_or_default();
        let mut windows = Vec::with_capacity(calls.len());
        for call in calls {
            let place = call.place;
            windows.push(self.with_window(call).map_err(|error| error.at(place))?);
        }
        Ok(windows)
    }

    fn with_window(&mut self, call: WindowCall) -> Result<Window> {
        let order = self.sort_expressions(&call.over.order_by)?;
        let mut partition = Vec::with_capacity(call.over.partition_by.len());
        for node in &call.over.partition_by {
            let bound = self.expr(node)?;
            let (expr, ty, _) = self.settle(bound)?;
            crate::plan::check_equality(ty)?;
            partition.push((expr, ty));
        }
        let frame = call.over.window_frame.as_ref();
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
                let first = given.next().ok_or_else(&none)?;
                if first.ty.is_none() {
                    return Err(no_polymorphic_type());
                }
                let (expr, ty, _) = self.settle(first)?;
                arguments.push((expr, ty));
                if let Some(offset) = given.next() {
                    arguments.push((self.number(called, offset)?, Type::Int8));
                }
                if let Some(default) = given.next() {
                    let expr = self.coerce(default, ty, Typmod::NONE, CastContext::Implicit)?;
                    arguments.push((expr, ty));
                }
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

    /// What OVER names, with what it is built on.
    fn window_spec(&self, over: &ast::WindowType) -> Result<ast::WindowSpec> {
        match over {
            ast::WindowType::NamedWindow(name) => self.named_window(&folded(name)),
            ast::WindowType::WindowSpec(spec) => {
                let mut spec = spec.clone();
                if let Some(base) = spec.window_name.take() {
                    let base = self.named_window(&folded(&base))?;
                    if !spec.partition_by.is_empty() {
                        let text = "cannot override PARTITION BY clause of a window";
                        return Err(SqlError::new(sqlstate::WINDOWING_ERROR, text));
                    }
                    spec.partition_by = base.partition_by;
                    if spec.order_by.is_empty() {
                        spec.order_by = base.order_by;
                    }
                }
                Ok(spec)
            }
        }
    }

    fn named_window(&self, name: &str) -> Result<ast::WindowSpec> {
        let mut wanted = name.to_owned();
        // A definition may be the name of an earlier one.
        for ast::NamedWindowDefinition(own, definition) in self.named_windows.iter().rev() {
            if folded(own) != wanted {
                continue;
            }
            match definition {
                ast::NamedWindowExpr::NamedWindow(other) => wanted = folded(other),
                ast::NamedWindowExpr::WindowSpec(spec) => {
                    let over = ast::WindowType::WindowSpec(spec.clone());
                    return match &spec.window_name {
                        None => Ok(spec.clone()),
                        Some(base) if folded(base) != wanted => self.window_spec(&over),
                        Some(_) => break,
                    };
                }
            }
        }
        let message = format!("window \"{name}\" does not exist");
        Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message))
    }
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
