//! Aggregates step by step: what the rows of a group have come to, and how two parts of it come together.
//!
//! Not here: groups, DISTINCT (`aggregate`, `vellum_query`).

use crate::bind::AggregateKind;
use crate::error::Result;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{Array, Settings, Type, Typmod, Value, ValueRef, cast, compare, json};

/// What an aggregate has come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    pub count: i64,
    pub value: Option<Value>,
    /// What is gathered, of aggregates that gather.
    pub items: Vec<Value>,
    /// Texts that are joined: it grows in place, so that each is copied a constant number of times.
    pub joined: Option<String>,
    /// Of texts that are joined: the separator of the first one. It is written once another part of the group stands before.
    pub between: Option<Value>,
}

impl Partial {
    /// A value came; nulls count for nothing.
    ///
    /// # Errors
    /// `22003`.
    pub fn add(
        &mut self,
        kind: AggregateKind,
        value: ValueRef<'_>,
        settings: &Settings,
    ) -> Result<()> {
        if kind.takes_nulls() {
            self.items.push(value.to_value());
            return Ok(());
        }
        if value.is_null() {
            return Ok(());
        }
        if let (AggregateKind::Join, ValueRef::Array(pair)) = (kind, value) {
            let mut pair = pair.items();
            let (text, between) = (pair.next(), pair.next());
            let Some(text) = text.filter(|text| !text.is_null()) else {
                return Ok(());
            };
            let between = between
                .as_ref()
                .and_then(|between| between.as_ref().as_str());
            self.join(text.as_ref(), between.unwrap_or(""));
            return Ok(());
        }
        self.count += 1;
        self.step(kind, value, settings)
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
            AggregateKind::Count
            | AggregateKind::Join
            | AggregateKind::Array
            | AggregateKind::Json { .. } => return Ok(()),
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
        };
        self.value = Some(next);
        Ok(())
    }

    /// Takes what another part of the group has come to: its count, its value or items, and its separator.
    ///
    /// # Errors
    /// `22003`.
    pub fn merge(
        &mut self,
        kind: AggregateKind,
        count: i64,
        (value, between): (ValueRef<'_>, ValueRef<'_>),
        settings: &Settings,
    ) -> Result<()> {
        self.count += count;
        match (kind, value) {
            (_, ValueRef::Null) => Ok(()),
            (AggregateKind::Array | AggregateKind::Json { .. }, ValueRef::Array(items)) => {
                self.items.extend(items.items());
                Ok(())
            }
            (AggregateKind::Join, text) => {
                self.join(text, between.as_str().unwrap_or(""));
                Ok(())
            }
            (_, value) => self.step(kind, value, settings),
        }
    }

    /// The aggregate's value.
    ///
    /// # Errors
    /// `22003`.
    pub fn result(self, kind: AggregateKind, ty: Type, settings: &Settings) -> Result<Value> {
        match (kind, self.value) {
            (AggregateKind::Count, _) => Ok(Value::Int8(self.count)),
            (AggregateKind::Array | AggregateKind::Json { .. }, _) if self.items.is_empty() => {
                Ok(Value::Null)
            }
            (AggregateKind::Array, _) => {
                let element = ty.element().unwrap_or(Type::Text);
                Ok(Value::Array(Array::of(element, &self.items)))
            }
            (AggregateKind::Json { binary }, _) => {
                Ok(json::array_of(&self.items, ", ", binary, settings)?)
            }
            (AggregateKind::Join, _) => Ok(self.joined.map_or(Value::Null, Value::text)),
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
}
