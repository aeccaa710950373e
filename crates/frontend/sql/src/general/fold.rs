//! Aggregates as folds of operators.

use crate::bind::{Aggregate, AggregateKind};
use crate::exec::{Partial, bytes_of};
use std::sync::Arc;
use vellum_query::{Failure, Finish, Fold, Folding};
use vellum_row::{Array, Numeric, Settings, Type, Value, ValueRef};

/// An aggregate.
#[derive(Clone, Debug)]
pub(super) struct AggregateFold {
    kind: AggregateKind,
    /// Of what is kept.
    ty: Type,
    result: Type,
    settings: Arc<Settings>,
}

impl AggregateFold {
    pub fn new(aggregate: &Aggregate, settings: Arc<Settings>) -> Self {
        let ty = match aggregate.kind {
            AggregateKind::Join => Type::Text,
            AggregateKind::Array => aggregate.result,
            AggregateKind::Json { .. } => aggregate.ty.array(),
            _ => aggregate.ty,
        };
        Self {
            kind: aggregate.kind,
            ty,
            result: aggregate.result,
            settings,
        }
    }
}

impl Fold for AggregateFold {
    fn start(&self) -> Box<dyn Folding> {
        Box::new(Group {
            partial: Partial::default(),
            fold: self.clone(),
        })
    }

    fn saved(&self) -> Vec<Type> {
        match self.kind {
            AggregateKind::Join => vec![Type::Int8, self.ty, Type::Text],
            _ => vec![Type::Int8, self.ty],
        }
    }
}

impl Finish for AggregateFold {
    fn finish(&self, sum: Numeric, count: i64) -> Result<Value, Failure> {
        let value = match self.ty {
            Type::Int8 if self.kind == AggregateKind::Sum => Value::Int8(sum.to_i64()?),
            _ => Value::Numeric(sum),
        };
        let value = Some(value);
        let partial = Partial {
            count,
            value,
            ..Partial::default()
        };
        Ok(partial.result(self.kind, self.result, &self.settings)?)
    }
}

/// A group of one.
#[derive(Debug)]
struct Group {
    partial: Partial,
    fold: AggregateFold,
}

impl Folding for Group {
    fn add(&mut self, arguments: &[ValueRef<'_>]) -> Result<(), Failure> {
        let AggregateFold { kind, settings, .. } = &self.fold;
        let value = arguments.first().copied().unwrap_or(ValueRef::Null);
        Ok(self.partial.add(*kind, value, settings)?)
    }

    fn finish(&mut self) -> Result<Value, Failure> {
        let AggregateFold {
            kind,
            result,
            settings,
            ..
        } = &self.fold;
        let partial = self.partial.clone();
        Ok(partial.result(*kind, *result, settings)?)
    }

    fn save(&self) -> Vec<Value> {
        let value = match self.fold.ty.element() {
            Some(element) if self.fold.kind.takes_nulls() => {
                Some(Value::Array(Array::of(element, &self.partial.items)))
            }
            _ if self.fold.kind == AggregateKind::Join => {
                self.partial.joined.as_deref().map(Value::text)
            }
            _ => self.partial.value.clone(),
        };
        let mut saved = vec![
            Value::Int8(self.partial.count),
            value.unwrap_or(Value::Null),
        ];
        if self.fold.kind == AggregateKind::Join {
            saved.push(self.partial.between.clone().unwrap_or(Value::Null));
        }
        saved
    }

    fn merge(&mut self, saved: &[ValueRef<'_>]) -> Result<(), Failure> {
        let (count, parts) = match saved {
            [ValueRef::Int8(count), value] => (count, (*value, ValueRef::Null)),
            [ValueRef::Int8(count), value, between] => (count, (*value, *between)),
            _ => return Err("a part of a group that is none".into()),
        };
        let AggregateFold { kind, settings, .. } = &self.fold;
        Ok(self.partial.merge(*kind, *count, parts, settings)?)
    }

    fn bytes(&self) -> usize {
        let value = self.partial.value.as_ref();
        let text = value.and_then(|value| value.as_ref().as_str());
        let items: usize = self.partial.items.iter().map(bytes_of).sum();
        let joined = self.partial.joined.as_ref().map_or(0, String::capacity);
        size_of::<Self>() + text.map_or(0, str::len) + joined + items
    }
}
