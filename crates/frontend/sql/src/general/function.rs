//! Expressions as functions that operators call.

use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Environment, Expr, Frame, ListSets, RowRef, RowTest};
use crate::plan::Subquery;
use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use vellum_query::{Failure, Line, RowFunction};
use vellum_row::{Settings, Value, ValueRef};

/// An expression whose columns are the arguments, in their order.
#[derive(Debug)]
pub(super) struct Evaluated {
    pub expr: Expr,
    pub away: Arc<Away>,
}

/// What an expression asks of its session, from a thread that is not the session's.
#[derive(Debug)]
pub(super) struct Away {
    pub params: Arc<[Value]>,
    pub settings: Settings,
    pub line: Line,
    pub lists: ListSets,
}

/// What the session is asked.
pub(super) enum Question {
    Call {
        function: Builtin,
        arguments: Vec<Value>,
        answer: Sender<Result<Value>>,
    },
    /// The value of a subquery, or of an expression with subqueries in it, for a row of the query around it.
    Subquery {
        /// Its number among what is asked for.
        number: usize,
        row: Vec<Value>,
        answer: Sender<Result<Value>>,
    },
}

impl Away {
    fn ask(&self, question: impl FnOnce(Sender<Result<Value>>) -> Question) -> Result<Value> {
        let boxed = |answer| -> Box<dyn Any + Send> { Box::new(question(answer)) };
        self.line.ask(boxed).ok_or_else(ended)?
    }
}

impl Environment for Away {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn look(&self) -> Result<()> {
        if self.line.is_over() {
            return Err(ended());
        }
        Ok(())
    }

    fn hears_ends(&self) -> bool {
        true
    }

    fn lists(&self) -> Option<&ListSets> {
        Some(&self.lists)
    }

    fn ask(&self, function: Builtin, arguments: &[Value]) -> Result<Value> {
        let arguments = arguments.to_vec();
        self.ask(|answer| Question::Call {
            function,
            arguments,
            answer,
        })
    }
}

/// What expressions have where nobody may be asked: who reads a part of a table is waited for by the session, and may be its own thread.
#[derive(Debug)]
pub(super) struct Alone(pub Arc<Away>);

impl Environment for Alone {
    fn settings(&self) -> &Settings {
        &self.0.settings
    }

    fn look(&self) -> Result<()> {
        self.0.look()
    }

    fn hears_ends(&self) -> bool {
        true
    }

    fn ask(&self, function: Builtin, _: &[Value]) -> Result<Value> {
        let text = format!("{} is asked for by who reads a table", function.name());
        Err(SqlError::internal(text))
    }
}

#[cold]
fn ended() -> SqlError {
    SqlError::internal("the statement has ended")
}

impl RowFunction for Evaluated {
    fn call(&self, arguments: &[ValueRef<'_>]) -> std::result::Result<Value, Failure> {
        // Batches have many rows, and some functions take long.
        self.away.look()?;
        let frame = Frame {
            params: &self.away.params,
            slots: &[],
            subqueries: &[],
            rows: &[RowRef::Lent(arguments)],
            env: &*self.away,
            held: None,
            outer: None,
            queries: None,
        };
        Ok(self.expr.eval(&frame)?.into_value())
    }
}

/// What the host is asked for each row.
#[derive(Debug)]
pub(super) struct Asked {
    pub number: usize,
    pub away: Arc<Away>,
}

impl RowFunction for Asked {
    fn call(&self, arguments: &[ValueRef<'_>]) -> std::result::Result<Value, Failure> {
        let row = arguments.iter().map(|value| value.to_value()).collect();
        let number = self.number;
        let value = self.away.ask(|answer| Question::Subquery {
            number,
            row,
            answer,
        })?;
        Ok(value)
    }
}

/// What is asked of a subquery.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// Its value.
    Value,
    /// Whether a value is among its rows, or is not.
    Among { negated: bool },
    /// What a row is to its rows.
    Rows(RowTest),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) enum AskedOf<'t> {
    /// A subquery, and what becomes of its rows and of the values that stand behind the columns.
    Subquery(&'t Subquery, Test),
    /// An expression with some of these subqueries in it.
    Expression(Expr, &'t [Subquery]),
}

/// A question for each row, and what of the row it is about.
#[derive(Clone, Debug)]
pub(super) struct AskedFor<'t> {
    pub of: AskedOf<'t>,
    /// How many columns each table has.
    pub widths: Vec<usize>,
    /// The columns that it reads, which its function is called with: table and position.
    pub places: Vec<(u16, u16)>,
}
