//! Aggregates step by step: what the rows of a group have come to, and how two parts of it come together.
//!
//! Not here: groups, DISTINCT, the order of rows (`aggregate`, `vellum_query`).

use crate::bind::AggregateKind;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::moments::{Moments, Pairing};
use vellum_row::{
    Array, ArrayRef, Numeric, Settings, Type, Typmod, Value, ValueRef, cast, compare, json,
};

/// What an aggregate has come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    pub count: i64,
    pub value: Option<Value>,
    /// What is gathered, of aggregates of arrays and of sets in an order.
    pub items: Vec<Value>,
    /// Texts that are joined, or the text of a JSON array or object but for what closes it: it grows in place, so that each is copied a constant number of times.
    pub joined: Option<String>,
    /// The same of bytes.
    pub bytes: Option<Vec<u8>>,
    /// Of what is joined: the separator of the first one. It is written once another part of the group stands before.
    pub between: Option<Value>,
    /// Of spreads and regressions.
    pub squares: Option<Box<Squares>>,
}

/// Sums of squares.
#[derive(Clone, Debug)]
pub(crate) enum Squares {
    Exact { sum: Numeric, squares: Numeric },
    Floating(Moments),
}

impl Squares {
    /// As an array, to go on from elsewhere.
    pub fn saved(&self) -> Value {
        match self {
            Self::Exact { sum, squares } => {
                let both = [sum.clone(), squares.clone()].map(Value::Numeric);
                Value::Array(Array::of(Type::Numeric, &both))
            }
            Self::Floating(moments) => {
                Value::Array(Array::of(Type::Float8, &moments.saved().map(Value::Float8)))
            }
        }
    }

    /// What [`Squares::saved`] returned.
    fn restored(saved: ValueRef<'_>) -> Option<Self> {
        let ValueRef::Array(saved) = saved else {
            return None;
        };
        let items: Vec<Value> = saved.items().collect();
        match items.as_slice() {
            [Value::Numeric(sum), Value::Numeric(squares)] => Some(Self::Exact {
                sum: sum.clone(),
                squares: squares.clone(),
            }),
            [
                Value::Float8(x),
                Value::Float8(xx),
                Value::Float8(y),
                Value::Float8(yy),
                Value::Float8(xy),
            ] => Some(Self::Floating(Moments::restored([*x, *xx, *y, *yy, *xy]))),
            _ => None,
        }
    }
}

impl Partial {
    /// A row came; what an aggregate does not count is passed over.
    ///
    /// # Errors
    /// `22003`; `22023` for a name that is null.
    pub fn add(
        &mut self,
        kind: AggregateKind,
        values: &[ValueRef<'_>],
        settings: &Settings,
    ) -> Result<()> {
        if kind.skips(values) {
            return Ok(());
        }
        let [value, others @ ..] = values else {
            self.count += 1;
            return Ok(());
        };
        let other = others.first().copied().unwrap_or(ValueRef::Null);
        match kind {
            AggregateKind::Array | AggregateKind::Arrays => self.items.push(value.to_value()),
            AggregateKind::Json { lines, .. } => {
                let text = self.item("[", lines && !value.is_null());
                json::append(*value, settings, text)?;
            }
            AggregateKind::Members { .. } => {
                if value.is_null() {
                    let text = "field name must not be null";
                    return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text));
                }
                json::append_member(*value, other, settings, self.item("{ ", false))?;
            }
            AggregateKind::Join => self.join(*value, other.as_str().unwrap_or("")),
            AggregateKind::JoinBytes => self.join_bytes(*value, other),
            AggregateKind::Spread(_) | AggregateKind::Pair(_) => self.square(*value, other)?,
            kind if kind.is_ordered_set() => {
                self.items.push(value.to_value());
                // What was asked for stands behind each value, and is the same behind all.
                if !others.is_empty() && self.value.is_none() {
                    self.value = Some(other.to_value());
                }
            }
            _ => {
                self.count += 1;
                self.step(kind, *value, settings)?;
            }
        }
        Ok(())
    }

    /// A value whose squares are summed; of a pair the first is `y`.
    fn square(&mut self, value: ValueRef<'_>, other: ValueRef<'_>) -> Result<()> {
        let before = self.count;
        self.count += 1;
        match (value, other) {
            (ValueRef::Numeric(value), _) => {
                let value = value.to_numeric();
                let square = value.multiply(&value)?;
                self.squares = Some(Box::new(match self.squares.take().map(|had| *had) {
                    Some(Squares::Exact { sum, squares }) => Squares::Exact {
                        sum: sum.add(&value)?,
                        squares: squares.add(&square)?,
                    },
                    _ => Squares::Exact {
                        sum: value,
                        squares: square,
                    },
                }));
            }
            (ValueRef::Float8(value), other) => {
                let fresh = || Box::new(Squares::Floating(Moments::default()));
                if let Squares::Floating(moments) = &mut **self.squares.get_or_insert_with(fresh) {
                    match other {
                        ValueRef::Float8(x) => moments.add_pair(before, value, x)?,
                        _ => moments.add(before, value)?,
                    }
                }
            }
            _ => return Err(SqlError::internal("a square of what is no number")),
        }
        Ok(())
    }

    /// The text of a JSON array or object that another item comes to: with what opens it, or with what stands between items. Of rows and arrays, which are JSON
    /// already, each but the first begins a line, a null does not.
    fn item(&mut self, open: &str, line: bool) -> &mut String {
        let first = self.count == 0;
        self.count += 1;
        let text = self.joined.get_or_insert_default();
        text.push_str(match (first, line) {
            (true, _) => open,
            (false, true) => ", \n ",
            (false, false) => ", ",
        });
        text
    }

    /// Bytes of what is joined.
    pub fn joined_bytes(&self) -> usize {
        let texts = self.joined.as_ref().map_or(0, String::capacity);
        texts + self.bytes.as_ref().map_or(0, Vec::capacity)
    }

    fn join(&mut self, text: ValueRef<'_>, between: &str) {
        let text = text.as_str().unwrap_or("");
        match &mut self.joined {
            None => {
                self.between = Some(Value::text(between));
                self.joined = Some(text.to_owned());
            }
            Some(joined) => {
                joined.push_str(between);
                joined.push_str(text);
            }
        }
    }

    fn join_bytes(&mut self, bytes: ValueRef<'_>, between: ValueRef<'_>) {
        let (ValueRef::Bytea(bytes), between) = (bytes, bytes_in(between)) else {
            return;
        };
        match &mut self.bytes {
            None => {
                self.between = Some(Value::Bytea(between.into()));
                self.bytes = Some(bytes.to_vec());
            }
            Some(joined) => {
                joined.extend_from_slice(between);
                joined.extend_from_slice(bytes);
            }
        }
    }

    fn step(
        &mut self,
        kind: AggregateKind,
        value: ValueRef<'_>,
        settings: &Settings,
    ) -> Result<()> {
        let Some(had) = &self.value else {
            if kind != AggregateKind::Count {
                self.value = Some(value.to_value());
            }
            return Ok(());
        };
        let next = match kind {
            AggregateKind::BitAnd => bits(had.as_ref(), value, |a, b| a & b),
            AggregateKind::BitOr => bits(had.as_ref(), value, |a, b| a | b),
            AggregateKind::BitXor => bits(had.as_ref(), value, |a, b| a ^ b),
            AggregateKind::Sum | AggregateKind::Average => {
                arithmetic::apply(Operator::Add, had.as_ref(), value, settings)?
            }
            // Of equal values that look different PostgreSQL takes the last.
            AggregateKind::Minimum if compare(value, had.as_ref()).is_le() => value.to_value(),
            AggregateKind::Maximum if compare(value, had.as_ref()).is_ge() => value.to_value(),
            AggregateKind::Minimum | AggregateKind::Maximum => return Ok(()),
            AggregateKind::BoolAnd => {
                Value::Bool(had.as_ref().as_bool() == Some(true) && value.as_bool() == Some(true))
            }
            AggregateKind::BoolOr => {
                Value::Bool(had.as_ref().as_bool() == Some(true) || value.as_bool() == Some(true))
            }
            // Those that count, gather or square have no value.
            _ => return Ok(()),
        };
        self.value = Some(next);
        Ok(())
    }

    /// Takes what another part of the group has come to: its count, its value, items or squares, and what stands behind these.
    ///
    /// # Errors
    /// `22003`.
    pub fn merge(
        &mut self,
        kind: AggregateKind,
        count: i64,
        (value, further): (ValueRef<'_>, ValueRef<'_>),
        settings: &Settings,
    ) -> Result<()> {
        let before = self.count;
        self.count += count;
        match (kind, value, further) {
            (_, ValueRef::Null, _) => Ok(()),
            (AggregateKind::Json { .. } | AggregateKind::Members { .. }, text, _) => {
                let text = text.as_str().unwrap_or_default();
                self.join_json(kind, text)
            }
            (AggregateKind::Array, ValueRef::Array(items), _) => {
                self.items.extend(items.items());
                Ok(())
            }
            (AggregateKind::Arrays, ValueRef::Array(items), _) => {
                self.items.extend(items.items().map(array_restored));
                Ok(())
            }
            (AggregateKind::Spread(_) | AggregateKind::Pair(_), saved, _) => {
                let other = Squares::restored(saved);
                let other = other.ok_or_else(|| SqlError::internal("squares that are none"))?;
                self.merge_squares(before, other, count)
            }
            (AggregateKind::Join, text, between) => {
                self.join(text, between.as_str().unwrap_or(""));
                Ok(())
            }
            (AggregateKind::JoinBytes, bytes, between) => {
                self.join_bytes(bytes, between);
                Ok(())
            }
            (_, value, _) => self.step(kind, value, settings),
        }
    }

    /// Takes the text of another JSON array or object of the kind, which is not closed either.
    ///
    /// # Errors
    /// `54000` for one that is too long.
    fn join_json(&mut self, kind: AggregateKind, text: &str) -> Result<()> {
        let Some(joined) = &mut self.joined else {
            self.joined = Some(text.to_owned());
            return Ok(());
        };
        let (open, lines) = match kind {
            AggregateKind::Json { lines, .. } => ("[", lines),
            _ => ("{ ", false),
        };
        let items = text.strip_prefix(open).unwrap_or(text);
        // What has lines is a row or an array, or null.
        let line = lines && !items.starts_with("null");
        joined.push_str(if line { ", \n " } else { ", " });
        joined.push_str(items);
        Ok(vellum_row::check_length(joined.len())?)
    }

    fn merge_squares(&mut self, own: i64, other: Squares, others: i64) -> Result<()> {
        let Some(had) = self.squares.take() else {
            self.squares = Some(Box::new(other));
            return Ok(());
        };
        self.squares = Some(Box::new(match (*had, other) {
            (
                Squares::Exact { sum, squares },
                Squares::Exact {
                    sum: more,
                    squares: more_squares,
                },
            ) => Squares::Exact {
                sum: sum.add(&more)?,
                squares: squares.add(&more_squares)?,
            },
            (Squares::Floating(mut moments), Squares::Floating(more)) => {
                moments.merge(own, &more, others)?;
                Squares::Floating(moments)
            }
            _ => return Err(SqlError::internal("squares of two kinds")),
        }));
        Ok(())
    }

    /// The aggregate's value; `asked` is what an ordered-set aggregate is asked for, where that is known without its rows.
    ///
    /// # Errors
    /// `22003`.
    pub fn result(
        &self,
        kind: AggregateKind,
        ty: Type,
        asked: Option<&Value>,
        settings: &Settings,
    ) -> Result<Value> {
        match (kind, self.value.clone()) {
            (AggregateKind::Count, _) | (AggregateKind::Pair(Pairing::Count), _) => {
                Ok(Value::Int8(self.count))
            }
            (kind, value) if kind.is_ordered_set() => {
                let asked = asked.or(value.as_ref()).unwrap_or(&Value::Null);
                super::ordered::result(kind, &self.items, asked, ty, settings)
            }
            (AggregateKind::Spread(spread), _) => Ok(match self.squares.as_deref() {
                None => Value::Null,
                Some(Squares::Exact { sum, squares }) => {
                    let found = spread.exact(self.count, sum, squares)?;
                    found.map_or(Value::Null, Value::Numeric)
                }
                Some(Squares::Floating(moments)) => {
                    let found = spread.floating(self.count, moments);
                    found.map_or(Value::Null, Value::Float8)
                }
            }),
            (AggregateKind::Pair(pairing), _) => Ok(match self.squares.as_deref() {
                Some(Squares::Floating(moments)) => {
                    let found = moments.of_pairs(self.count, pairing);
                    found.map_or(Value::Null, Value::Float8)
                }
                _ => Value::Null,
            }),
            (AggregateKind::Array | AggregateKind::Arrays, _) if self.items.is_empty() => {
                Ok(Value::Null)
            }
            (AggregateKind::Array, _) => {
                let element = ty.element().unwrap_or(Type::Text);
                Ok(Value::Array(Array::list(element, &self.items)?))
            }
            (AggregateKind::Arrays, _) => Ok(Value::Array(super::gathered(ty, &self.items)?)),
            (AggregateKind::Json { binary, .. }, _) => self.closed("]", binary),
            (AggregateKind::Members { binary }, _) => self.closed(" }", binary),
            (AggregateKind::Join, _) => Ok(self.joined.as_deref().map_or(Value::Null, Value::text)),
            (AggregateKind::JoinBytes, _) => {
                let joined = self.bytes.as_deref();
                Ok(joined.map_or(Value::Null, |bytes| Value::Bytea(bytes.into())))
            }
            (_, None) => Ok(Value::Null),
            (AggregateKind::Average, Some(sum)) => {
                let ty = match ty {
                    Type::Interval => Type::Float8,
                    ty => ty,
                };
                let count = ValueRef::Int8(self.count);
                let count = cast(count, ty, Typmod::NONE, true, settings)?;
                let mean =
                    arithmetic::apply(Operator::Divide, sum.as_ref(), count.as_ref(), settings);
                Ok(mean?)
            }
            (_, Some(value)) => Ok(value),
        }
    }

    /// A JSON array or object, closed; null if nothing came.
    ///
    /// # Errors
    /// Of what no `jsonb` can hold.
    fn closed(&self, close: &str, binary: bool) -> Result<Value> {
        match &self.joined {
            None => Ok(Value::Null),
            Some(joined) => Ok(json::of_text([joined.as_str(), close].concat(), binary)?),
        }
    }
}

fn bytes_in(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Bytea(bytes) => bytes,
        _ => &[],
    }
}

/// Arrays among values, as an array of their bytes: of several forms none has a place in another array. What is wrong with them is said at the end.
pub(crate) fn arrays_saved(arrays: &[Value]) -> Value {
    let bytes = arrays.iter().map(|value| match value {
        Value::Array(array) => Value::Bytea(array.as_ref().bytes().into()),
        _ => Value::Null,
    });
    Value::Array(Array::of(Type::Bytea, &bytes.collect::<Vec<_>>()))
}

/// One that [`arrays_saved`] has made bytes of.
fn array_restored(saved: Value) -> Value {
    let array = match &saved {
        Value::Bytea(bytes) => ArrayRef::from_stored(bytes),
        _ => None,
    };
    array.map_or(Value::Null, |array| Value::Array(array.to_array()))
}

/// Of two integers of one type.
fn bits(a: ValueRef<'_>, b: ValueRef<'_>, of: impl Fn(i64, i64) -> i64) -> Value {
    // The bits of two that fit make one that does.
    let made = of(a.as_i64().unwrap_or(0), b.as_i64().unwrap_or(0));
    match a {
        ValueRef::Int2(_) => Value::Int2(made as i16),
        ValueRef::Int4(_) => Value::Int4(made as i32),
        _ => Value::Int8(made),
    }
}
