//! Frames of windows: which of the rows around a row count for it.
//!
//! A distance is the same for all rows: a constant, which is looked at when the statement is compiled, or what parameters make, which is computed when it
//! runs. That of RANGE goes by the values of the only key of the order: by numbers, days or microseconds, of which a month and, where clocks are put
//! forward, a day are no fixed count.

use super::aggregate::constant_of;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::SortKey;
use crate::sqlstate;
use sqlparser::ast;
use vellum_query::{Frame as Settled, FrameBound, FrameUnit};
use vellum_row::datetime::Interval;
use vellum_row::{CastContext, Type, Typmod, Value};

const DAY_MICROS: i128 = 86_400_000_000;

/// Which rows of a window count.
#[derive(Debug)]
pub(crate) struct Frame {
    unit: FrameUnit,
    start: Side,
    end: Side,
}

/// Where a frame begins or ends; `None` for no bound.
#[derive(Debug)]
enum Side {
    Preceding(Option<Offset>),
    CurrentRow,
    Following(Option<Offset>),
}

/// How far an end is from the current row.
#[derive(Debug)]
struct Offset {
    /// Of the type that the unit and the key want.
    value: Expr,
    end: End,
    /// The type of the key that a RANGE goes by.
    key: Option<Type>,
}

impl Frame {
    /// The frame with its distances, which `value` computes.
    ///
    /// # Errors
    /// `22013`, `22004`, `0A000` for distances, and those of computing them.
    pub fn settled(&self, mut value: impl FnMut(&Expr) -> Result<Value>) -> Result<Settled> {
        let mut side = |side: &Side| -> Result<FrameBound> {
            let mut distance = |offset: &Option<Offset>| {
                let offset = offset.as_ref();
                offset
                    .map(|own| own.distance(value(&own.value)?))
                    .transpose()
            };
            Ok(match side {
                Side::Preceding(offset) => FrameBound::Preceding(distance(offset)?),
                Side::CurrentRow => FrameBound::CurrentRow,
                Side::Following(offset) => FrameBound::Following(distance(offset)?),
            })
        };
        Ok(Settled {
            unit: self.unit,
            start: side(&self.start)?,
            end: side(&self.end)?,
        })
    }

    /// Calls `each` with every expression in it.
    pub(super) fn expressions_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        for side in [&mut self.start, &mut self.end] {
            if let Side::Preceding(Some(offset)) | Side::Following(Some(offset)) = side {
                each(&mut offset.value);
            }
        }
    }
}

impl Offset {
    /// How many rows or groups, or how far in what values of the type of the key are counted in.
    fn distance(&self, value: Value) -> Result<u64> {
        if value.is_null() {
            let message = format!("frame {} offset must not be null", self.end.name());
            return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, message));
        }
        let wrong =
            |message: String| SqlError::new(sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message);
        let Some(key) = self.key else {
            let number = value.as_ref().as_i64().unwrap_or(-1);
            return u64::try_from(number).map_err(|_| {
                wrong(format!(
                    "frame {} offset must not be negative",
                    self.end.name()
                ))
            });
        };
        let distance = match value {
            Value::Interval(interval) => interval_distance(interval, key)?,
            number => number.as_ref().as_i64().map_or(-1, i128::from),
        };
        // Of an interval that no key can be apart, all rows are within.
        u64::try_from(distance.min(i128::from(i64::MAX)))
            .map_err(|_| wrong("invalid preceding or following size in window function".into()))
    }
}

/// An end of a frame.
#[derive(Clone, Copy, Debug)]
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
            start: self.frame_side(&node.start_bound, End::Start, unit, order)?,
            end: self.frame_side(last, End::Last, unit, order)?,
        })
    }

    fn frame_side(
        &mut self,
        bound: &ast::WindowFrameBound,
        end: End,
        unit: FrameUnit,
        order: &[SortKey],
    ) -> Result<Side> {
        let mut offset = |node: &Option<Box<ast::Expr>>| -> Result<Option<Offset>> {
            let Some(node) = node else {
                return Ok(None);
            };
            let bound = self.expr(node)?;
            if unit != FrameUnit::Range {
                return self
                    .frame_offset(bound, end, (unit, Type::Int8), None)
                    .map(Some);
            }
            let [key] = order else {
                let text =
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                return Err(SqlError::new(sqlstate::WINDOWING_ERROR, text));
            };
            self.range_offset(bound, end, key.ty).map(Some)
        };
        Ok(match bound {
            ast::WindowFrameBound::CurrentRow => Side::CurrentRow,
            ast::WindowFrameBound::Preceding(node) => Side::Preceding(offset(node)?),
            ast::WindowFrameBound::Following(node) => Side::Following(offset(node)?),
        })
    }

    fn range_offset(&mut self, bound: Bound, end: End, key: Type) -> Result<Offset> {
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
        self.frame_offset(bound, end, (FrameUnit::Range, wanted), Some(key))
    }

    fn frame_offset(
        &mut self,
        bound: Bound,
        end: End,
        (unit, ty): (FrameUnit, Type),
        key: Option<Type>,
    ) -> Result<Offset> {
        let value = self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?;
        let offset = Offset { value, end, key };
        if let Some(value) = constant_of(&offset.value)? {
            offset.distance(value)?;
        } else if asks(&offset.value, &|part| {
            matches!(part, Expr::Column { .. } | Expr::Slot(_))
        }) {
            let message = format!("argument of {} must not contain variables", word(unit));
            return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message));
        } else if asks(&offset.value, &is_asked) {
            let what = "an offset of a window's frame that asks a query";
            return Err(SqlError::unsupported(what));
        }
        Ok(offset)
    }
}

/// Whether it is computed of constants and parameters alone.
pub(super) fn is_same_for_all(expr: &Expr) -> bool {
    let reads = |part: &Expr| {
        is_asked(part) || matches!(part, Expr::Column { .. } | Expr::Slot(_) | Expr::Held)
    };
    !expr.is_volatile() && !asks(expr, &reads)
}

/// What is known only where a query is run, or one around it stands.
fn is_asked(part: &Expr) -> bool {
    matches!(
        part,
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Outer { .. }
    )
}

fn word(unit: FrameUnit) -> &'static str {
    match unit {
        FrameUnit::Rows => "ROWS",
        FrameUnit::Range => "RANGE",
        FrameUnit::Groups => "GROUPS",
    }
}

/// Whether a part of an expression is so.
fn asks(expr: &Expr, what: &dyn Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= what(part));
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
