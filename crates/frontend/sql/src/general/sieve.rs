//! Conditions of one table, made so that they can be looked at where a row stands.
//!
//! Most rows of a large scan go by a condition that compares a column with what is the same for all rows. Asked of an expression such a question costs some
//! 50 ns and more where the column is cast; here it is a range of numbers, or a text among texts, and costs a few.
//!
//! Invariants:
//! - V1 A test passes where its condition is true; of one that is false or null it tells no more. So no test stands below a NOT.
//! - V2 A test that is made of a condition does not fail where the condition would not, but for rows that are damaged.

use crate::error::Result;
use crate::expr::{Comparison, Expr, Frame};
use vellum_row::datetime::{MICROS_PER_DAY, Timestamp};
use vellum_row::{Column, FixedPlace, NumericRef, RowView, Schema, Stored, Type, Value, ValueRef};

/// Values of a list that are compared one by one, at most.
const LIST_MAX: usize = 32;

/// Conditions that all have to be true.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    tests: Vec<Test>,
}

/// A condition.
#[derive(Debug)]
enum Test {
    /// The number in a column of fixed width lies in a range, bounds included, or lies outside.
    Number {
        column: Numbers,
        low: i64,
        high: i64,
        outside: bool,
    },
    /// The numbers in two columns of one width compare so.
    Both {
        left: Numbers,
        comparison: Comparison,
        right: Numbers,
    },
    /// The text in a column is one of these, or none of them.
    Text {
        position: usize,
        /// Without the blanks at the end, here and there.
        padded: bool,
        texts: Box<[Box<str>]>,
        outside: bool,
    },
    Null {
        position: usize,
        negated: bool,
    },
    All(Box<[Test]>),
    Any(Box<[Test]>),
    /// Any other condition.
    Asked(Expr),
}

/// A column of numbers of fixed width.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    position: usize,
    /// In rows of the schema as it is now.
    place: Option<FixedPlace>,
    width: Width,
}

/// How a number stands in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    Two,
    Four,
    Eight,
    /// The units of a `numeric(p,s)`.
    Units,
}

/// A number that a column is compared with, in the column's units: `floor`, and something more if it is not `exact`.
#[derive(Clone, Copy, Debug)]
struct Bound {
    floor: i128,
    exact: bool,
}

impl Sieve {
    /// Of conditions of one table, as number 0, with what is the same for all rows computed. `take` says of each that can be looked at nowhere but in an
    /// expression whether it is to be part of it; those that it does not want are returned.
    pub fn new(
        schema: &Schema,
        params: &[Value],
        conditions: Vec<Expr>,
        take: impl Fn(&Expr) -> bool,
    ) -> (Self, Vec<Expr>) {
        let maker = Maker { schema, params };
        let (mut tests, mut others) = (Vec::new(), Vec::new());
        for condition in conditions {
            match maker.test(&condition) {
                Test::Asked(_) if !take(&condition) => others.push(condition),
                test => tests.push(test),
            }
        }
        // What costs nothing first; the others keep their order, which their errors depend on.
        tests.sort_by_key(|test| matches!(test, Test::Asked(_)));
        (Self { tests }, others)
    }

    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether a row passes; the frame is the row's.
    ///
    /// # Errors
    /// Those of conditions; `XX001` for a damaged row.
    #[inline]
    pub fn passes(&self, row: RowView<'_>, frame: &Frame<'_>) -> Result<bool> {
        for test in &self.tests {
            if !test.passes(row, frame)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Test {
    fn passes(&self, row: RowView<'_>, frame: &Frame<'_>) -> Result<bool> {
        Ok(match self {
            Self::Number {
                column,
                low,
                high,
                outside,
            } => match column.read(row)? {
                Some(number) => (*low <= number && number <= *high) != *outside,
                None => false,
            },
            Self::Both {
                left,
                comparison,
                right,
            } => match (left.read(row)?, right.read(row)?) {
                (Some(left), Some(right)) => comparison.holds(left.cmp(&right)),
                _ => false,
            },
            Self::Text {
                position,
                padded,
                texts,
                outside,
            } => {
                let found = match row.varying(*position) {
                    Some(bytes) => bytes,
                    None => match row.get(*position)?.as_str() {
                        Some(text) => text.as_bytes(),
                        None => return Ok(false),
                    },
                };
                let found = if *padded { unpadded(found) } else { found };
                texts.iter().any(|text| text.as_bytes() == found) != *outside
            }
            Self::Null { position, negated } => row.is_null(*position) != *negated,
            Self::All(tests) => {
                for test in tests {
                    if !test.passes(row, frame)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(tests) => {
                for test in tests {
                    if test.passes(row, frame)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::Asked(condition) => condition.is_true(frame)?,
        })
    }
}

impl Numbers {
    /// What stands in the column; `None` for null.
    #[inline]
    fn read(&self, row: RowView<'_>) -> Result<Option<i64>> {
        let placed = self.place.and_then(|place| row.stored_at(place));
        let stored = placed.unwrap_or_else(|| row.stored(self.position));
        let bytes = match stored {
            Stored::Fixed(bytes) => bytes,
            Stored::Null => return Ok(None),
            Stored::Other => return Ok(plain(row.get(self.position)?)),
        };
        let found = match self.width {
            Width::Two => bytes
                .first_chunk()
                .map(|bytes| i16::from_le_bytes(*bytes).into()),
            Width::Four => bytes
                .first_chunk()
                .map(|bytes| i32::from_le_bytes(*bytes).into()),
            Width::Eight => bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)),
            Width::Units => bytes
                .first_chunk()
                .map(|bytes| i64::from_le_bytes(*bytes))
                .filter(|units| Stored::is_units(*units)),
        };
        match found {
            Some(number) => Ok(Some(number)),
            // It says what is wrong.
            None => Ok(plain(row.get(self.position)?)),
        }
    }
}

/// A value as it would stand in a row; `None` for null.
fn plain(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Date(date) => Some(date.0.into()),
        ValueRef::Timestamp(Timestamp(micros)) | ValueRef::Timestamptz(Timestamp(micros)) => {
            Some(micros)
        }
        ValueRef::Numeric(NumericRef::Small { coefficient, .. }) => Some(coefficient),
        ValueRef::Numeric(NumericRef::NaN) => Some(Stored::NOT_A_NUMBER),
        value => value.as_i64(),
    }
}

fn unpadded(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().rev().take_while(|byte| **byte == b' ').count();
    &bytes[..bytes.len() - blanks]
}

struct Maker<'m> {
    schema: &'m Schema,
    params: &'m [Value],
}

impl Maker<'_> {
    fn test(&self, condition: &Expr) -> Test {
        let found = match condition {
            Expr::And(list) => Some(Test::All(self.tests(list))),
            Expr::Or(list) => Some(Test::Any(self.tests(list))),
            Expr::Compare {
                comparison,
                left,
                right,
            } => match (self.value(left), self.value(right)) {
                (None, Some(value)) => self.compared(left, *comparison, value),
                (Some(value), None) => self.compared(right, comparison.swapped(), value),
                _ => self.both(left, *comparison, right),
            },
            Expr::In {
                operand,
                list,
                negated,
            } => self.among(operand, list, *negated),
            Expr::IsNull { operand, negated } => match &**operand {
                Expr::Column { table: 0, position }
                    if usize::from(*position) < self.schema.len() =>
                {
                    Some(Test::Null {
                        position: usize::from(*position),
                        negated: *negated,
                    })
                }
                _ => None,
            },
            _ => None,
        };
        match found {
            // Then it is as good as a whole.
            Some(Test::All(tests) | Test::Any(tests)) if tests.iter().all(Test::is_asked) => None,
            found => found,
        }
        .unwrap_or_else(|| Test::Asked(condition.clone()))
    }

    fn tests(&self, list: &[Expr]) -> Box<[Test]> {
        list.iter().map(|condition| self.test(condition)).collect()
    }

    /// What is the same for all rows.
    fn value<'v>(&'v self, expr: &'v Expr) -> Option<ValueRef<'v>> {
        match expr {
            Expr::Const(value) => Some(value.as_ref()),
            Expr::Param(number) => self.params.get(usize::from(*number)).map(Value::as_ref),
            _ => None,
        }
    }

    /// A column, and what it is cast to.
    fn column(&self, expr: &Expr) -> Option<(usize, &Column, Option<Type>)> {
        let (position, cast) = match expr {
            Expr::Column { table: 0, position } => (*position, None),
            Expr::Cast {
                operand,
                ty,
                typmod,
                ..
            } if typmod.is_none() => match &**operand {
                Expr::Column { table: 0, position } => (*position, Some(*ty)),
                _ => return None,
            },
            _ => return None,
        };
        let position = usize::from(position);
        // The key stands behind the last column.
        (position < self.schema.len()).then(|| (position, self.schema.column(position), cast))
    }

    fn compared(
        &self,
        operand: &Expr,
        comparison: Comparison,
        value: ValueRef<'_>,
    ) -> Option<Test> {
        let (position, column, cast) = self.column(operand)?;
        if let Some(padded) = is_text(column, cast)
            && matches!(comparison, Comparison::Equal | Comparison::NotEqual)
        {
            return Some(Test::Text {
                position,
                padded,
                texts: Box::new([text(value, padded)?]),
                outside: comparison == Comparison::NotEqual,
            });
        }
        let numbers = self.numbers(position, column)?;
        let bound = bound(column, cast, value)?;
        Some(ranged(numbers, comparison, bound))
    }

    fn numbers(&self, position: usize, column: &Column) -> Option<Numbers> {
        Some(Numbers {
            position,
            place: self.schema.fixed_place(position),
            width: width(column)?,
        })
    }

    /// Two columns whose numbers count the same.
    fn both(&self, left: &Expr, comparison: Comparison, right: &Expr) -> Option<Test> {
        let columns = [self.column(left)?, self.column(right)?];
        let [(_, first, None), (_, second, None)] = columns else {
            return None;
        };
        let integer = |column: &Column| matches!(column.ty, Type::Int2 | Type::Int4 | Type::Int8);
        let same = first.ty == second.ty && first.fixed_scale() == second.fixed_scale();
        let comparable = same || (integer(first) && integer(second));
        if !comparable {
            return None;
        }
        Some(Test::Both {
            left: self.numbers(columns[0].0, first)?,
            comparison,
            right: self.numbers(columns[1].0, second)?,
        })
    }

    fn among(&self, operand: &Expr, list: &[Expr], negated: bool) -> Option<Test> {
        let values: Vec<ValueRef<'_>> = list
            .iter()
            .map(|item| self.value(item))
            .collect::<Option<_>>()?;
        let nulls = values.iter().any(|value| value.is_null());
        if values.len() > LIST_MAX || (negated && nulls) {
            return None;
        }
        let values = values.into_iter().filter(|value| !value.is_null());
        let (position, column, cast) = self.column(operand)?;
        if let Some(padded) = is_text(column, cast) {
            return Some(Test::Text {
                position,
                padded,
                texts: values
                    .map(|value| text(value, padded))
                    .collect::<Option<_>>()?,
                outside: negated,
            });
        }
        let numbers = self.numbers(position, column)?;
        let comparison = match negated {
            true => Comparison::NotEqual,
            false => Comparison::Equal,
        };
        let tests = values.map(|value| {
            let bound = bound(column, cast, value)?;
            Some(ranged(numbers, comparison, bound))
        });
        let tests: Box<[Test]> = tests.collect::<Option<_>>()?;
        Some(match negated {
            true => Test::All(tests),
            false => Test::Any(tests),
        })
    }
}

impl Test {
    fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_))
    }
}

/// Whether a column is text that is compared by its bytes, and whether blanks at the end count for nothing then.
fn is_text(column: &Column, cast: Option<Type>) -> Option<bool> {
    match (column.ty, cast) {
        (Type::Char, None) => Some(true),
        (Type::Text | Type::Varchar, None | Some(Type::Text | Type::Varchar)) => Some(false),
        _ => None,
    }
}

fn text(value: ValueRef<'_>, padded: bool) -> Option<Box<str>> {
    let text = value.as_str()?;
    Some(match padded {
        true => text.trim_end_matches(' ').into(),
        false => text.into(),
    })
}

/// How the numbers of a column stand in its rows.
fn width(column: &Column) -> Option<Width> {
    match column.ty {
        Type::Int2 => Some(Width::Two),
        Type::Int4 | Type::Date => Some(Width::Four),
        Type::Int8 | Type::Timestamp | Type::Timestamptz => Some(Width::Eight),
        Type::Numeric => column.fixed_scale().map(|_| Width::Units),
        _ => None,
    }
}

/// What a column is compared with, in its own units.
fn bound(column: &Column, cast: Option<Type>, value: ValueRef<'_>) -> Option<Bound> {
    let whole = |number: i64| Bound {
        floor: number.into(),
        exact: true,
    };
    Some(match (column.ty, cast, value) {
        // A cast that may fail is none of these.
        (
            Type::Int2 | Type::Int4 | Type::Int8,
            None | Some(Type::Int8),
            ValueRef::Int2(_) | ValueRef::Int4(_) | ValueRef::Int8(_),
        )
        | (
            Type::Int2 | Type::Int4,
            Some(Type::Int4),
            ValueRef::Int2(_) | ValueRef::Int4(_) | ValueRef::Int8(_),
        ) => whole(value.as_i64()?),
        (Type::Date, None, ValueRef::Date(date)) => whole(date.0.into()),
        (Type::Timestamp, None, ValueRef::Timestamp(Timestamp(micros)))
        | (Type::Timestamptz, None, ValueRef::Timestamptz(Timestamp(micros))) => whole(micros),
        (Type::Date, Some(Type::Timestamp), ValueRef::Timestamp(moment)) if moment.is_finite() => {
            divided(moment.0.into(), MICROS_PER_DAY.into())
        }
        (
            Type::Int2 | Type::Int4 | Type::Int8,
            Some(Type::Numeric),
            ValueRef::Numeric(NumericRef::Small { coefficient, scale }),
        ) => scaled(coefficient, scale, 0),
        (
            Type::Numeric,
            None | Some(Type::Numeric),
            ValueRef::Numeric(NumericRef::Small { coefficient, scale }),
        ) => scaled(coefficient, scale, column.fixed_scale()?),
        _ => return None,
    })
}

/// `coefficient / 10^scale` in units of `10^-to`.
fn scaled(coefficient: i64, scale: u8, to: u8) -> Bound {
    match to.checked_sub(scale) {
        Some(more) => Bound {
            floor: i128::from(coefficient) * 10i128.pow(more.into()),
            exact: true,
        },
        None => divided(coefficient.into(), 10i128.pow((scale - to).into())),
    }
}

fn divided(number: i128, by: i128) -> Bound {
    Bound {
        floor: number.div_euclid(by),
        exact: number.rem_euclid(by) == 0,
    }
}

/// The numbers that compare so. Of units `NaN` is above all numbers.
fn ranged(column: Numbers, comparison: Comparison, bound: Bound) -> Test {
    let Bound { floor, exact } = bound;
    let top = i128::from(i64::MAX);
    let (least, largest) = match column.width {
        Width::Units => (-i128::from(Stored::UNITS_MAX), Stored::UNITS_MAX.into()),
        _ => (i64::MIN.into(), top),
    };
    let above = floor + 1;
    let below = if exact { floor - 1 } else { floor };
    let (low, high) = match comparison {
        Comparison::Less => (least, below.min(largest)),
        Comparison::LessEqual => (least, floor.min(largest)),
        Comparison::Greater => (above, top),
        Comparison::GreaterEqual => (if exact { floor } else { above }, top),
        Comparison::Equal | Comparison::NotEqual if exact && floor <= largest => (floor, floor),
        Comparison::Equal | Comparison::NotEqual => (1, 0),
    };
    let low = match column.width {
        // What is above all numbers is below `NaN` still.
        Width::Units if low > largest => top,
        _ => low.max(least),
    };
    let (low, high) = match (i64::try_from(low), i64::try_from(high)) {
        (Ok(low), Ok(high)) => (low, high),
        // None of them.
        _ => (1, 0),
    };
    Test::Number {
        column,
        low,
        high,
        outside: comparison == Comparison::NotEqual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_row::compare;

    fn column_of(width: Width) -> Numbers {
        Numbers {
            position: 0,
            place: None,
            width,
        }
    }

    /// Numbers that are looked at, and how they compare as values.
    fn passes(test: &Test, number: i64) -> bool {
        let Test::Number {
            low, high, outside, ..
        } = test
        else {
            panic!("{test:?}");
        };
        (*low <= number && number <= *high) != *outside
    }

    const ALL: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessEqual,
        Comparison::Greater,
        Comparison::GreaterEqual,
    ];

    #[test]
    fn ranges_of_units_are_what_comparisons_of_numerics_say() {
        let most = Stored::UNITS_MAX;
        let numbers = [
            -most, -12_346, -12_345, -1, 0, 1, 24, 12_344, 12_345, 12_346, most,
        ];
        for scale in [0u8, 2, 18] {
            for constant in [
                (0, 0),
                (24, 0),
                (12_345, 2),
                (123_455, 3),
                (-123_455, 3),
                (-1, 18),
            ]
            .into_iter()
            .chain([
                (most, 0),
                (-most, 0),
                (most, 18),
                (92_233_720_368_547_758, 0),
            ]) {
                let (coefficient, own) = constant;
                for comparison in ALL {
                    let bound = scaled(coefficient, own, scale);
                    let test = ranged(column_of(Width::Units), comparison, bound);
                    let value = ValueRef::Numeric(NumericRef::Small {
                        coefficient,
                        scale: own,
                    });
                    for units in numbers {
                        let number = ValueRef::Numeric(NumericRef::Small {
                            coefficient: units,
                            scale,
                        });
                        let wanted = comparison.holds(compare(number, value));
                        assert_eq!(
                            passes(&test, units),
                            wanted,
                            "{units} at {scale} {comparison:?} {constant:?}: {test:?}"
                        );
                    }
                    let wanted =
                        comparison.holds(compare(ValueRef::Numeric(NumericRef::NaN), value));
                    assert_eq!(
                        passes(&test, Stored::NOT_A_NUMBER),
                        wanted,
                        "NaN at {scale} {comparison:?} {constant:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn ranges_of_whole_numbers_are_what_comparisons_say() {
        let numbers = [
            i64::MIN,
            i64::MIN + 1,
            -3,
            -2,
            0,
            1,
            2,
            i64::MAX - 1,
            i64::MAX,
        ];
        for constant in [i64::MIN, -3, 0, 1, i64::MAX] {
            for comparison in ALL {
                let bound = Bound {
                    floor: constant.into(),
                    exact: true,
                };
                let test = ranged(column_of(Width::Eight), comparison, bound);
                for number in numbers {
                    let wanted = comparison.holds(number.cmp(&constant));
                    assert_eq!(
                        passes(&test, number),
                        wanted,
                        "{number} {comparison:?} {constant}"
                    );
                }
            }
        }
        // Days and moments.
        for micros in [
            -MICROS_PER_DAY - 1,
            -MICROS_PER_DAY,
            -1,
            0,
            1,
            MICROS_PER_DAY,
        ] {
            for comparison in ALL {
                let bound = divided(micros.into(), MICROS_PER_DAY.into());
                let test = ranged(column_of(Width::Four), comparison, bound);
                for day in -3..3 {
                    let wanted = comparison.holds((day * MICROS_PER_DAY).cmp(&micros));
                    assert_eq!(passes(&test, day), wanted, "{day} {comparison:?} {micros}");
                }
            }
        }
    }
}
