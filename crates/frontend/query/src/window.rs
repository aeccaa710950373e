//! Window functions: a value for each row, of the rows around it.

use crate::aggregate::Aggregate;
use crate::error::{Error, Result};
use crate::frames::{Computed, Edge, FrameFunction, Framed, Framing, Side};
use crate::known::Known;
use crate::relation::{Relation, SortKey, Symbols};
use crate::term::{Column, Term};
use crate::types::{Kind, data_type};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_window::cume_dist::cume_dist_udwf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion::functions_window::ntile::ntile_udwf;
use datafusion::functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{self, WindowFunctionParams};
use datafusion::logical_expr::{
    Cast, Expr, LogicalPlanBuilder, SortExpr, Volatility, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowFunctionDefinition, WindowUDF,
};
use std::sync::Arc;
use vellum_row::Type;

/// Digits of keys and distances of ranges, and of these behind the point: what lies a distance from a key has room, whatever both are. (DataFusion
/// takes what has none for the end of the window, where nulls may be.)
const DISTANCE: (u8, i8) = (38, 0);

/// A function that is of windows only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "SQL's words")]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lead,
    Lag,
    First,
    Last,
    Nth,
}

impl WindowFunction {
    /// Which of its arguments is a number that is the same for all rows, if one is.
    pub fn number(self) -> Option<usize> {
        match self {
            Self::Ntile => Some(0),
            Self::Lead | Self::Lag | Self::Nth => Some(1),
            _ => None,
        }
    }

    /// Whether its value depends on which rows count.
    pub fn heeds_frame(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Nth)
    }

    fn definition(self) -> Arc<WindowUDF> {
        match self {
            Self::RowNumber => row_number_udwf(),
            Self::Rank => rank_udwf(),
            Self::DenseRank => dense_rank_udwf(),
            Self::PercentRank => percent_rank_udwf(),
            Self::CumeDist => cume_dist_udwf(),
            Self::Ntile => ntile_udwf(),
            Self::Lead => lead_udwf(),
            Self::Lag => lag_udwf(),
            Self::First => first_value_udwf(),
            Self::Last => last_value_udwf(),
            Self::Nth => nth_value_udwf(),
        }
    }
}

/// What is computed over a window.
#[derive(Clone, Debug)]
pub enum Windowed {
    /// What the function says.
    Function(WindowFunction),
    /// What the rows of the frame are folded into.
    Aggregate(Box<Aggregate>),
}

/// What a frame is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "SQL's words")]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// An end of a frame; `None` for no bound. Of ranges the distance is one of values, which are integers then, dates (days) or timestamps
/// (microseconds), and the only key of the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "SQL's words")]
pub enum FrameBound {
    Preceding(Option<u64>),
    CurrentRow,
    Following(Option<u64>),
}

impl FrameBound {
    /// Rows and groups are counted; distances are of the type of the key.
    fn bound(self, units: WindowFrameUnits) -> WindowFrameBound {
        let distance = |count: Option<u64>| match units {
            WindowFrameUnits::Range => {
                let (digits, scale) = DISTANCE;
                ScalarValue::Decimal128(count.map(i128::from), digits, scale)
            }
            WindowFrameUnits::Rows | WindowFrameUnits::Groups => ScalarValue::UInt64(count),
        };
        match self {
            Self::Preceding(count) => WindowFrameBound::Preceding(distance(count)),
            Self::CurrentRow => WindowFrameBound::CurrentRow,
            Self::Following(count) => WindowFrameBound::Following(distance(count)),
        }
    }

    fn is_distance(self) -> bool {
        matches!(self, Self::Preceding(Some(_)) | Self::Following(Some(_)))
    }
}

/// Which rows of a window count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// What its ends are counted in.
    pub unit: FrameUnit,
    /// Its first rows.
    pub start: FrameBound,
    /// Its last rows.
    pub end: FrameBound,
}

impl Frame {
    /// Whether it ends before it begins, so that no row is in it.
    pub fn is_empty(&self) -> bool {
        use FrameBound::{Following, Preceding};
        match (self.start, self.end) {
            (Preceding(Some(start)), Preceding(Some(end))) => start < end,
            (Following(Some(start)), Following(Some(end))) => start > end,
            _ => false,
        }
    }
}

/// A window function over its window.
#[derive(Clone, Debug)]
pub struct Window {
    /// What is computed.
    pub function: Windowed,
    /// Its arguments; an aggregate has its own.
    pub arguments: Vec<Term>,
    /// The type of its value.
    pub result: Type,
    /// Rows that are equal in these are together.
    pub partition: Vec<Term>,
    /// Their order.
    pub order: Vec<SortKey>,
    /// Which of them count; `None` for what SQL takes then.
    pub frame: Option<Frame>,
    /// The same where a [`Frame`] cannot say it; of an aggregate that is a fold, or of a function that takes one of the rows.
    pub framing: Option<Framing>,
}

impl Window {
    fn frame(&self) -> WindowFrame {
        let all = (FrameBound::Preceding(None), FrameBound::Following(None));
        let so_far = Frame {
            unit: FrameUnit::Range,
            start: FrameBound::Preceding(None),
            end: FrameBound::CurrentRow,
        };
        let Frame { unit, start, end } = self.frame.unwrap_or(so_far);
        let ordered = !self.order.is_empty();
        let (units, (start, end)) = match unit {
            FrameUnit::Rows => (WindowFrameUnits::Rows, (start, end)),
            // Without an order all rows are equals.
            FrameUnit::Range if !ordered => (WindowFrameUnits::Rows, all),
            FrameUnit::Range if start.is_distance() || end.is_distance() => {
                (WindowFrameUnits::Range, (start, end))
            }
            // Without a distance ranges go by equals, whatever their type.
            FrameUnit::Range | FrameUnit::Groups => (WindowFrameUnits::Groups, (start, end)),
        };
        WindowFrame::new_bounds(units, start.bound(units), end.bound(units))
    }
}

fn names_of(columns: &[Column]) -> Vec<Expr> {
    columns.iter().map(|column| column.term().expr).collect()
}

impl Relation {
    /// The rows with the values of window functions behind their columns.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn windows(self, symbols: &Symbols, windows: Vec<Window>) -> Result<Self> {
        let mut relation = self;
        for window in windows {
            relation = relation.window(symbols, window)?;
        }
        Ok(relation)
    }

    fn window(self, symbols: &Symbols, mut window: Window) -> Result<Self> {
        if let Some(framing) = window.framing.take() {
            return self.framed(symbols, window, framing);
        }
        let before = self.columns.clone();
        let result = window.result;
        let window_frame = window.frame();
        // Keys are computed once a row, in front.
        let mut keys: Vec<Term> = Vec::new();
        for term in window.partition {
            keys.push(term.key(symbols));
        }
        let partitions = keys.len();
        let mut directions = Vec::new();
        for key in window.order {
            directions.push((!key.descending, key.nulls_first));
            keys.push(key.term.key(symbols));
        }
        let relation = self.extend(symbols, keys)?;
        let keys: Vec<Column> = relation.columns[before.len()..].to_vec();
        let order = keys[partitions..].iter().zip(directions);
        let by_distance = window_frame.units == WindowFrameUnits::Range;
        let order: Vec<SortExpr> = order
            .map(|(column, (ascending, first))| {
                let mut key = column.term().expr;
                if by_distance {
                    let (digits, scale) = DISTANCE;
                    let ty = DataType::Decimal128(digits, scale);
                    key = Expr::Cast(Cast::new(Box::new(key), ty));
                }
                key.sort(ascending, first)
            })
            .collect();
        let arguments = window.arguments.into_iter();
        let arguments = arguments.map(|term| term.stored().expr);
        let mut args: Vec<Expr> = arguments.collect();
        let mut filter = None;
        let fun = match window.function {
            Windowed::Function(function) => {
                WindowFunctionDefinition::WindowUDF(function.definition())
            }
            Windowed::Aggregate(aggregate) => {
                let (function, own, filtered) = aggregate.function(symbols)?;
                args = own;
                filter = filtered.map(Box::new);
                WindowFunctionDefinition::AggregateUDF(function)
            }
        };
        let raw = symbols.column(result);
        let function = Expr::WindowFunction(Box::new(expr::WindowFunction {
            fun,
            params: WindowFunctionParams {
                args,
                partition_by: names_of(&keys[..partitions]),
                order_by: order,
                window_frame,
                filter,
                null_treatment: None,
                distinct: false,
            },
        }));
        relation.with_value(symbols, before, (function, raw), result)
    }

    /// The columns of before, and behind them the value of a window function.
    fn with_value(
        self,
        symbols: &Symbols,
        before: Vec<Column>,
        (function, raw): (Expr, Column),
        result: Type,
    ) -> Result<Self> {
        let plan = LogicalPlanBuilder::new(self.plan);
        let plan = plan.window([function.alias(raw.name())])?;
        // Ranks are unsigned there.
        let value = Expr::Cast(Cast::new(Box::new(raw.term().expr), data_type(result)));
        let made = symbols.column(result);
        let mut columns = before;
        let mut named = names_of(&columns);
        named.push(value.alias(made.name()));
        columns.push(made);
        let plan = plan.project(named)?.build()?;
        Ok(Self { plan, columns })
    }

    /// A function over frames that are computed here (`frames`).
    fn framed(self, symbols: &Symbols, mut window: Window, framing: Framing) -> Result<Self> {
        let before = self.columns.clone();
        // They are compared, and sorted by.
        let keys = window.order.iter_mut().map(|key| &mut key.term);
        let drawn = self.drawn(symbols, keys.collect())?;
        let width = drawn.columns.len();
        let (framed, own, filter) = match window.function {
            Windowed::Aggregate(aggregate) => {
                let (fold, arguments, filter) = aggregate.into_fold()?;
                (Framed::Fold(fold), arguments, filter)
            }
            Windowed::Function(WindowFunction::First) => (Framed::First, window.arguments, None),
            Windowed::Function(WindowFunction::Last) => (Framed::Last, window.arguments, None),
            Windowed::Function(WindowFunction::Nth) => (Framed::Nth, window.arguments, None),
            Windowed::Function(_) => return Err(Error::internal("a function without a frame")),
        };
        let keys = window.order.iter();
        let mut computed = Computed {
            framed,
            of_rows: framing.of_rows,
            start: Side::Unbounded,
            end: Side::Unbounded,
            exclusion: framing.exclusion,
            own: own.len(),
            filtered: filter.is_some(),
            keys: keys.map(|key| (key.descending, key.nulls_first)).collect(),
            line: framing.line,
        };
        let mut arguments = own;
        arguments.extend(filter);
        arguments.extend(window.order.iter().map(|key| key.term.clone()));
        for (edge, side) in [
            (framing.start, &mut computed.start),
            (framing.end, &mut computed.end),
        ] {
            *side = match edge {
                Edge::Unbounded => Side::Unbounded,
                Edge::CurrentRow => Side::CurrentRow,
                Edge::Count(count) => Side::Count(count),
                Edge::Value(value) => {
                    arguments.push(value);
                    Side::Value
                }
            };
        }
        let arguments: Vec<Term> = arguments.into_iter().map(Term::readable).collect();
        let kinds: Vec<Kind> = arguments.iter().map(Term::kind).collect();
        // Keys, then arguments: computed once a row, in front.
        let mut terms: Vec<Term> = Vec::new();
        terms.extend(window.partition.into_iter().map(|term| term.key(symbols)));
        let partitions = terms.len();
        let directions = computed.keys.clone();
        let order = window.order.into_iter();
        terms.extend(order.map(|key| key.term.key(symbols)));
        let ordered = terms.len();
        terms.extend(arguments);
        let relation = drawn.extend(symbols, terms)?;
        let made = relation.columns[width..].to_vec();
        let (number, function) = (symbols.next(), Arc::new(computed));
        let known = Known::new(
            'w',
            number,
            function,
            &kinds,
            window.result,
            Volatility::Immutable,
        );
        let order_by = made[partitions..ordered].iter().zip(directions);
        let order_by = order_by.map(|(column, (descends, first))| {
            let key = column.term().expr;
            key.sort(!descends, first)
        });
        let all = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
        let last = WindowFrameBound::Following(ScalarValue::UInt64(None));
        let udf = WindowUDF::from(FrameFunction(known));
        let function = Expr::WindowFunction(Box::new(expr::WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(Arc::new(udf)),
            params: WindowFunctionParams {
                args: names_of(&made[ordered..]),
                partition_by: names_of(&made[..partitions]),
                order_by: order_by.collect(),
                window_frame: WindowFrame::new_bounds(WindowFrameUnits::Rows, all, last),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        }));
        let raw = symbols.column(window.result);
        relation.with_value(symbols, before, (function, raw), window.result)
    }

    /// The rows with their number among equal ones, from 1.
    pub(crate) fn numbered(self, symbols: &Symbols) -> Result<Self> {
        let partition = self.columns.iter().map(|column| column.term()).collect();
        let window = Window {
            function: Windowed::Function(WindowFunction::RowNumber),
            arguments: Vec::new(),
            result: Type::Int8,
            partition,
            order: Vec::new(),
            frame: None,
            framing: None,
        };
        self.window(symbols, window)
    }

    /// As [`Self::matched`], but each row of the other stands for one only: INTERSECT ALL and EXCEPT ALL.
    ///
    /// # Errors
    /// Columns of different types.
    pub fn matched_singly(self, symbols: &Symbols, other: Self, found: bool) -> Result<Self> {
        let columns = self.columns.clone();
        let (left, right) = (self.numbered(symbols)?, other.numbered(symbols)?);
        left.matched(symbols, right, found)?.only(columns)
    }
}
