//! Frames of windows: which of the rows around a row count for it.
//!
//! A distance is the same for all rows: a constant, which is looked at when the statement is compiled, or what parameters make, which is computed when it
//! runs. That of RANGE goes by the values of the only key of the order. Where these are counted (integers, days, microseconds) so is the distance; where not (`numeric`, floats, months,
//! days where clocks are put forward), the value that lies this far from a row's key is computed for each row, by the arithmetic of its type.

use super::aggregate::constant_of;
use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::of_bound;
use crate::plan::{SortBy, SortKey};
use crate::sqlstate;
use sqlparser::ast;
use vellum_query::{Exclusion, Frame as Settled, FrameBound, FrameUnit};
use vellum_row::datetime::Interval;
use vellum_row::{CastContext, Numeric, Settings, Type, Typmod, Value, cast_between, compare};

const DAY_MICROS: i128 = 86_400_000_000;

/// Which rows of a window count.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    unit: FrameUnit,
    start: Side,
    end: Side,
    exclusion: Exclusion,
    /// The key of a RANGE with a distance, of the type that distances from it are of.
    key: Option<(Expr, Type)>,
}

/// Where a frame begins or ends; `None` for no bound.
#[derive(Clone, Debug)]
enum Side {
    Preceding(Option<Offset>),
    CurrentRow,
    Following(Option<Offset>),
}

/// How far an end is from the current row.
#[derive(Clone, Debug)]
struct Offset {
    /// Of the type that the unit and the key want.
    value: Expr,
    end: End,
    /// Of a RANGE.
    range: Option<Distance>,
}

/// A distance of a RANGE.
#[derive(Clone, Debug)]
struct Distance {
    /// The type of the key that it goes by.
    key: Type,
    /// What lies this far from a row's key.
    limit: Expr,
    /// Whether it is a count.
    is_count: bool,
}

impl Frame {
    /// Whether an end of it is computed for each row, or rows are left out of it.
    pub fn is_computed(&self) -> bool {
        if self.exclusion != Exclusion::Nothing {
            return true;
        }
        let mut offsets = [&self.start, &self.end]
            .into_iter()
            .filter_map(Side::offset);
        offsets.any(|offset| offset.range.as_ref().is_some_and(|range| !range.is_count))
    }

    /// The ends of such a frame, and the key that these are values of, with its type, if they are. Distances are looked at, which `value` computes.
    ///
    /// # Errors
    /// As [`Frame::settled`].
    pub fn computed(
        &self,
        mut value: impl FnMut(&Expr) -> Result<Value>,
    ) -> Result<([Limit<'_>; 2], Option<(&Expr, Type)>)> {
        let mut limits = [self.start.limit(), self.end.limit()];
        for (side, limit) in [&self.start, &self.end].into_iter().zip(&mut limits) {
            let Some(offset) = side.offset() else {
                continue;
            };
            let value = value(&offset.value)?;
            if offset.range.is_some() {
                offset.check(&value)?;
                continue;
            }
            let count = i64::try_from(offset.distance(value)?).unwrap_or(i64::MAX);
            *limit = Limit::Count(match side {
                Side::Preceding(_) => -count,
                _ => count,
            });
        }
        let key = self.key.as_ref().map(|(expr, ty)| (expr, *ty));
        Ok((limits, key))
    }

    /// Whether its ends are rows, not groups of equals or values.
    pub fn is_of_rows(&self) -> bool {
        self.unit == FrameUnit::Rows
    }

    /// The rows that are left out of it.
    pub fn exclusion(&self) -> Exclusion {
        self.exclusion
    }

    /// The frame with its distances, which `value` computes.
    ///
    /// # Errors
    /// `22013`, `22004` for distances, and those of computing them.
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
                if let Some(range) = &mut offset.range {
                    each(&mut range.limit);
                }
            }
        }
        if let Some((key, _)) = &mut self.key {
            each(key);
        }
    }
}

/// An end of a frame that is computed for each row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit<'f> {
    Unbounded,
    CurrentRow,
    /// A value of the key.
    At(&'f Expr),
    /// So many rows or groups behind the row, or in front of it.
    Count(i64),
}

impl Side {
    fn offset(&self) -> Option<&Offset> {
        match self {
            Self::Preceding(offset) | Self::Following(offset) => offset.as_ref(),
            Self::CurrentRow => None,
        }
    }

    fn limit(&self) -> Limit<'_> {
        let range = self.offset().and_then(|offset| offset.range.as_ref());
        match (self, range) {
            (Self::CurrentRow, _) => Limit::CurrentRow,
            (_, Some(range)) => Limit::At(&range.limit),
            (_, None) => Limit::Unbounded,
        }
    }
}

impl Offset {
    /// Looks at a distance.
    ///
    /// # Errors
    /// `22004`, `22013`.
    fn check(&self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.distance(Value::Null).map(|_| ()),
            Value::Interval(_) | Value::Numeric(_) | Value::Float8(_) => {
                let zero = match value {
                    Value::Interval(_) => Value::Interval(Interval::default()),
                    Value::Float8(_) => Value::Float8(0.0),
                    _ => Value::Numeric(Numeric::from(0)),
                };
                let mut text = String::new();
                vellum_row::output(value.as_ref(), &Settings::default(), &mut text)?;
                match compare(value.as_ref(), zero.as_ref()).is_lt() || text == "NaN" {
                    true => Err(wrong_size()),
                    false => Ok(()),
                }
            }
            other => self.distance(other.clone()).map(|_| ()),
        }
    }

    /// How many rows or groups, or how far in what values of the type of the key are counted in.
    fn distance(&self, value: Value) -> Result<u64> {
        if value.is_null() {
            let message = format!("frame {} offset must not be null", self.end.name());
            return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, message));
        }
        let wrong =
            |message: String| SqlError::new(sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message);
        let Some(key) = self.range.as_ref().map(|range| range.key) else {
            let number = value.as_ref().as_i64().unwrap_or(-1);
            return u64::try_from(number).map_err(|_| {
                wrong(format!(
                    "frame {} offset must not be negative",
                    self.end.name()
                ))
            });
        };
        let distance = match value {
            Value::Interval(interval) => interval_distance(interval, key),
            number => number.as_ref().as_i64().map_or(-1, i128::from),
        };
        // Of an interval that no key can be apart, all rows are within.
        u64::try_from(distance.min(i128::from(i64::MAX))).map_err(|_| wrong_size())
    }
}

/// `22013`.
#[cold]
fn wrong_size() -> SqlError {
    let text = "invalid preceding or following size in window function";
    SqlError::new(sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE, text)
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
        // The EXCLUDE stands in the last that is written.
        let (first, mut exclusion) = of_bound(&node.start_bound);
        let mut last = ast::WindowFrameBound::CurrentRow;
        if let Some(bound) = &node.end_bound {
            (last, exclusion) = of_bound(bound);
        }
        use ast::WindowFrameBound as B;
        match (&first, &last) {
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
        let start = self.frame_side(&first, End::Start, unit, order)?;
        let end = self.frame_side(&last, End::Last, unit, order)?;
        let by_distance = [&start, &end]
            .into_iter()
            .any(|side| side.offset().is_some());
        let key = match order {
            [key] if unit == FrameUnit::Range && by_distance => {
                let key = self.range_key(key)?;
                key.ty.map(|ty| (key.expr, ty))
            }
            _ => None,
        };
        Ok(Frame {
            unit,
            start,
            end,
            exclusion,
            key,
        })
    }

    /// The key of a RANGE as what distances from it are computed of.
    fn range_key(&mut self, key: &SortKey) -> Result<Bound> {
        let SortBy::Expr(expr) = &key.expr else {
            return Err(SqlError::internal("a window by a column of the result"));
        };
        let bound = Bound::new(expr.clone(), key.ty);
        let ty = match key.ty {
            Type::Date => Type::Timestamp,
            Type::Float4 => Type::Float8,
            // What lies beyond the last integer is a number.
            Type::Int2 | Type::Int4 | Type::Int8 => Type::Numeric,
            own => {
                return Ok(Bound {
                    ty: Some(own),
                    ..bound
                });
            }
        };
        let expr = self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?;
        Ok(Bound::new(expr, ty))
    }

    fn frame_side(
        &mut self,
        bound: &ast::WindowFrameBound,
        end: End,
        unit: FrameUnit,
        order: &[SortKey],
    ) -> Result<Side> {
        let mut offset = |node: &Option<Box<ast::Expr>>, before| -> Result<Option<Offset>> {
            let Some(node) = node else {
                return Ok(None);
            };
            let bound = self.expr(node)?;
            if unit != FrameUnit::Range {
                return self.frame_offset(bound, end, (unit, Type::Int8)).map(Some);
            }
            let [key] = order else {
                let text =
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                return Err(SqlError::new(sqlstate::WINDOWING_ERROR, text));
            };
            self.range_offset(bound, end, key, before).map(Some)
        };
        Ok(match bound {
            ast::WindowFrameBound::CurrentRow => Side::CurrentRow,
            ast::WindowFrameBound::Preceding(node) => Side::Preceding(offset(node, true)?),
            ast::WindowFrameBound::Following(node) => Side::Following(offset(node, false)?),
        })
    }

    fn range_offset(
        &mut self,
        bound: Bound,
        end: End,
        key: &SortKey,
        before: bool,
    ) -> Result<Offset> {
        let given = bound.ty;
        let wanted = match key.ty {
            Type::Int2 | Type::Int4 | Type::Int8 => Type::Int8,
            Type::Date | Type::Timestamp | Type::Timestamptz | Type::Interval => Type::Interval,
            Type::Numeric => Type::Numeric,
            Type::Float4 | Type::Float8 => Type::Float8,
            own => {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    self.settings.name_of(own)
                );
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
        };
        let fits = given.is_none_or(|given| {
            given == wanted || cast_between(given, wanted) == Some(CastContext::Implicit)
        });
        if !fits {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}",
                self.settings.name_of(key.ty),
                self.name_of(given)
            );
            let hint = "Cast the offset value to an appropriate type.";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).with_hint(hint));
        }
        let mut offset = self.frame_offset(bound, end, (FrameUnit::Range, wanted))?;
        let constant = constant_of(&offset.value)?;
        let is_count = match (wanted, &constant) {
            (Type::Int8, _) => true,
            (Type::Interval, Some(Value::Interval(interval))) => is_counted(*interval, key.ty),
            _ => false,
        };
        // What is further away comes first in an order that descends.
        let operator = match before == key.descending {
            true => ast::BinaryOperator::Plus,
            false => ast::BinaryOperator::Minus,
        };
        let from = self.range_key(key)?;
        let distance = Bound::new(offset.value.clone(), wanted);
        // The end where rows begin is the least value in an order that ascends.
        let is_least = matches!(end, End::Start) != key.descending;
        let limit = self.limit(&operator, (from, key.ty), distance, is_least)?;
        offset.range = Some(Distance {
            key: key.ty,
            limit,
            is_count,
        });
        if let Some(value) = constant {
            offset.check(&value)?;
        }
        Ok(offset)
    }

    /// What lies a distance from a key. A float beyond the largest one is infinite; what lies infinitely far from what is infinite is as far as can be, at the
    /// side that the end is of.
    fn limit(
        &mut self,
        operator: &ast::BinaryOperator,
        (from, key): (Bound, Type),
        distance: Bound,
        is_least: bool,
    ) -> Result<Expr> {
        use ast::BinaryOperator as B;
        let plain = self.binary(operator, from.clone(), distance.clone())?.expr;
        let ty = match key {
            Type::Float4 | Type::Float8 => Type::Float8,
            Type::Numeric => Type::Numeric,
            _ => return Ok(plain),
        };
        let infinite = |negative: bool| -> Result<Bound> {
            let text = if negative { "-Infinity" } else { "Infinity" };
            let value = vellum_row::input(ty, Typmod::NONE, text, &Settings::default())?;
            Ok(Bound::new(Expr::Const(value), ty))
        };
        let adds = *operator == B::Plus;
        let both = [
            self.binary(&B::Eq, from.clone(), infinite(adds)?)?.expr,
            self.binary(&B::Eq, distance.clone(), infinite(false)?)?
                .expr,
        ];
        let mut branches = vec![(Expr::And(both.into()), infinite(is_least)?.expr)];
        if ty == Type::Float8 {
            let float = |value| Bound::new(Expr::Const(Value::Float8(value)), Type::Float8);
            let (largest, no_number) = (float(f64::MAX), float(f64::NAN));
            let is_none = self.binary(&B::Eq, from.clone(), no_number.clone())?.expr;
            branches.insert(0, (is_none, no_number.expr));
            let beyond = match adds {
                true => {
                    let most = self.binary(&B::Minus, largest, distance)?;
                    self.binary(&B::Gt, from, most)?
                }
                false => {
                    let least = self.binary(&B::Minus, distance, largest)?;
                    self.binary(&B::Lt, from, least)?
                }
            };
            branches.push((beyond.expr, infinite(!adds)?.expr));
        }
        Ok(Expr::Case {
            branches: branches.into(),
            otherwise: Box::new(plain),
        })
    }

    fn frame_offset(
        &mut self,
        bound: Bound,
        end: End,
        (unit, ty): (FrameUnit, Type),
    ) -> Result<Offset> {
        let value = self.coerce(bound, ty, Typmod::NONE, CastContext::Implicit)?;
        let range = None;
        let offset = Offset { value, end, range };
        if let Some(value) = constant_of(&offset.value)? {
            if unit != FrameUnit::Range {
                offset.distance(value)?;
            }
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

/// Whether an interval is a fixed count of what keys of a type are counted in.
fn is_counted(interval: Interval, key: Type) -> bool {
    let days = key != Type::Timestamptz || interval.days == 0;
    interval.months == 0 && days && key != Type::Interval
}

/// An interval in days, or in microseconds.
fn interval_distance(interval: Interval, key: Type) -> i128 {
    debug_assert!(is_counted(interval, key), "an interval of no fixed length");
    let micros = i128::from(interval.days) * DAY_MICROS + i128::from(interval.micros);
    match key {
        // A part of a day reaches no other.
        Type::Date => micros.div_euclid(DAY_MICROS),
        _ => micros,
    }
}
