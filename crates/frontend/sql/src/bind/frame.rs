//! Frames of windows: which of the rows around a row count for it.
//!
//! A distance is a constant. That of RANGE goes by the values of the only key of the order: by numbers, days or microseconds, of which
//! a month and, where clocks are put forward, a day are no fixed count.

use super::aggregate::constant_of;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::SortKey;
use crate::sqlstate;
use sqlparser::ast;
use vellum_query::{Frame, FrameBound, FrameUnit};
use vellum_row::datetime::Interval;
use vellum_row::{CastContext, Type, Typmod, Value};

const DAY_MICROS: i128 = 86_400_000_000;

/// An end of a frame.
#[derive(Clone, Copy)]
enum End {
    Start,
    Last,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "starting",
            Self::Last => "ending",
        }
    }
}

impl Binder<'_> {
    /// The frame of a window with this order.
    ///
    /// # Errors
    /// `42P20` for ends that are none; `22013`, `22004`, `0A000` for distances.
    pub(super) fn frame(&mut self, node: &ast::WindowFrame, order: &[SortKey]) -> Result<Frame> {
        let unit = match node.units {
            ast::WindowFrameUnits::Rows => FrameUnit::Rows,
            ast::WindowFrameUnits::Range => FrameUnit::Range,
            ast::WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        let wrong = |text: &str| Err(SqlError::new(sqlstate::WINDOWING_ERROR, text));
        let current = ast::WindowFrameBound::CurrentRow;
        let last = node.end_bound.as_ref().unwrap_or(&current);
        use ast::WindowFrameBound as B;
        match (&node.start_bound, last) {
            (B::Following(None), _) => {
                return wrong("frame start cannot be UNBOUNDED FOLLOWING");
            }
            (_, B::Preceding(None)) => {
                return wrong("frame end cannot be UNBOUNDED PRECEDING");
            }
            (B::CurrentRow, B::Preceding(_)) => {
                return wrong("frame starting from current row cannot have preceding rows");
            }
            (B::Following(_), B::CurrentRow | B::Preceding(_)) => {
                return wrong("frame starting from following row cannot have preceding rows");
            }
            _ => {}
        }
        if unit == FrameUnit::Groups && order.is_empty() {
            return wrong("GROUPS mode requires an ORDER BY clause");
        }
        Ok(Frame {
            unit,
            start: self.frame_bound(&node.start_bound, End::Start, unit, order)?,
            end: self.frame_bound(last, End::Last, unit, order)?,
        })
    }

    fn frame_bound(
        &mut self,
        bound: &ast::WindowFrameBound,
        end: End,
        unit: FrameUnit,
        order: &[SortKey],
    ) -> Result<FrameBound> {
        let mut distance = |node: &Option<Box<ast::Expr>>| -> Result<Option<u64>> {
            let Some(node) = node else {
                return Ok(None);
            };
            let bound = self.expr(node)?;
            if unit != FrameUnit::Range {
                return self.frame_count(bound, end, unit).map(Some);
            }
            let [key] = order else {
                let text =
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                return Err(SqlError::new(sqlstate::WINDOWING_ERROR, text));
            };
            self.frame_distance(bound, end, key.ty).map(Some)
        };
        Ok(match bound {
            ast::WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::WindowFrameBound::Preceding(node) => FrameBound::Preceding(distance(node)?),
            ast::WindowFrameBound::Following(node) => FrameBound::Following(distance(node)?),
        })
    }

    /// How many rows or groups.
    fn frame_count(&mut self, bound: Bound, end: End, unit: FrameUnit) -> Result<u64> {
        let number = self.frame_constant(bound, end, (unit, Type::Int8))?;
        let number = number.as_ref().as_i64().unwrap_or(-1);
        u64::try_from(number).map_err(|_| {
            let message = format!("frame {} offset must not be negative", end.name());
            SqlError::new(sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message)
        })
    }

    /// How far, in what values of the type of the key are counted in.
    fn frame_distance(&mut self, bound: Bound, end: End, key: Type) -> Result<u64> {
        let given = bound.ty;
        let wanted = match key {
            Type::Int2 | Type::Int4 | Type::Int8 => Type::Int8,
            Type::Date | Type::Timestamp | Type::Timestamptz => Type::Interval,
            _ => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    self.settings.name_of(key)
                );
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
        };
        let fits = given.is_none_or(|given| {
            given == wanted || wanted == Type::Int8 && matches!(given, Type::Int2 | Type::Int4)
        });
        if !fits {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}",
                self.settings.name_of(key),
                self.name_of(given)
            );
            let hint = "Cast the offset value to an appropriate type.";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).with_hint(hint));
        }
        let distance = match self.frame_constant(bound, end, (FrameUnit::Range, wanted))? {
            Value::Interval(interval) => interval_distance(interval, key)?,
            number => number.as_ref().as_i64().map_or(-1, i128::from),
        };
        // Of an interval that no key can be apart, all rows are within.
        u64::try_from(distance.min(i128::from(i64::MAX))).map_err(|_| {
            let text = "invalid preceding or following size in window function";
            SqlError::new(sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE, text)
        })
    }

    fn frame_constant(
        &mut self,
        bound: Bound,
        end: End,
        (unit, ty): (FrameUnit, Type),
    ) -> Result<Value> {
        let expr = self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?;
        match constant_of(&expr)? {
            Some(value) if value.is_null() => {
                let message = format!("frame {} offset must not be null", end.name());
                Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, message))
            }
            Some(value) => Ok(value),
            None if has_variables(&expr) => {
                let message = format!("argument of {} must not contain variables", word(unit));
                Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message))
            }
            None => Err(SqlError::unsupported(
                "an offset of a window's frame that is no constant",
            )),
        }
    }
}

fn word(unit: FrameUnit) -> &'static str {
    match unit {
        FrameUnit::Rows => "ROWS",
        FrameUnit::Range => "RANGE",
        FrameUnit::Groups => "GROUPS",
    }
}

/// Whether rows, or groups of them, are asked for something.
fn has_variables(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Column { .. } | Expr::Slot(_)));
    found
}

/// An interval in days, or in microseconds.
fn interval_distance(interval: Interval, key: Type) -> Result<i128> {
    if interval.months != 0 {
        return Err(SqlError::unsupported("RANGE with a distance in months"));
    }
    if key == Type::Timestamptz && interval.days != 0 {
        let text = "RANGE with a distance in days over timestamp with time zone";
        return Err(SqlError::unsupported(text));
    }
    let micros = i128::from(interval.days) * DAY_MICROS + i128::from(interval.micros);
    Ok(match key {
        // A part of a day reaches no other.
        Type::Date => micros.div_euclid(DAY_MICROS),
        _ => micros,
    })
}
