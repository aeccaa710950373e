//! Aggregates as folds of operators.

use crate::bind::{Aggregate, AggregateKind};
use crate::exec::{Partial, Squares, arrays_saved, bytes_of};
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
    /// What an ordered-set aggregate is asked for, if that is constant.
    asked: Option<Value>,
    settings: Arc<Settings>,
}

impl AggregateFold {
    pub fn new(aggregate: &Aggregate, settings: Arc<Settings>) -> Self {
        let ty = match aggregate.kind {
            AggregateKind::Join | AggregateKind::Json { .. } | AggregateKind::Members { .. } => {
                Type::Text
            }
            AggregateKind::JoinBytes => Type::Bytea,
            AggregateKind::Array => aggregate.result,
            AggregateKind::Arrays => Type::Bytea.array(),
            AggregateKind::Spread(_) => aggregate.result.array(),
            AggregateKind::Pair(_) => Type::Float8.array(),
            _ => aggregate.ty(),
        };
        Self {
            kind: aggregate.kind,
            ty,
            result: aggregate.result,
            asked: aggregate.asked.clone(),
            settings,
        }
    }
}

impl Fold for AggregateFold {
    fn start(&self) -> Box<dyn Folding> {
        Box::new(Group {
            partial: Partial::default(),
            fold: self.clone(),
            counted: 0,
            gathered: 0,
        })
    }

    fn saved(&self) -> Vec<Type> {
        match self.kind {
            AggregateKind::Join | AggregateKind::JoinBytes => {
                vec![Type::Int8, self.ty, self.ty]
            }
            // Its rows are kept by who sorts them.
            kind if kind.is_ordered_set() => vec![Type::Int8],
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
        let asked = self.asked.as_ref();
        Ok(partial.result(self.kind, self.result, asked, &self.settings)?)
    }
}

/// A group of one.
#[derive(Debug)]
struct Group {
    partial: Partial,
    fold: AggregateFold,
    /// How many of the items are counted, and bytes that these take: who keeps groups asks with each batch.
    counted: usize,
    gathered: usize,
}

impl Group {
    /// Counts the items that have come since.
    fn count(&mut self) {
        let items = &self.partial.items;
        self.gathered += items[self.counted..].iter().map(bytes_of).sum::<usize>();
        self.counted = items.len();
    }
}

impl Folding for Group {
    fn add(&mut self, arguments: &[ValueRef<'_>]) -> Result<(), Failure> {
        let AggregateFold { kind, settings, .. } = &self.fold;
        self.partial.add(*kind, arguments, settings)?;
        self.count();
        Ok(())
    }

    fn finish(&mut self) -> Result<Value, Failure> {
        let AggregateFold {
            kind,
            result,
            asked,
            settings,
            ..
        } = &self.fold;
        Ok(self
            .partial
            .result(*kind, *result, asked.as_ref(), settings)?)
    }

    fn save(&self) -> Vec<Value> {
        let Partial {
            count,
            value,
            items,
            joined,
            bytes,
            between,
            squares,
        } = &self.partial;
        let mut saved = vec![Value::Int8(*count)];
        match (self.fold.kind, self.fold.ty.element()) {
            (AggregateKind::Array, Some(element)) => {
                saved.push(Value::Array(Array::of(element, items)));
            }
            (AggregateKind::Json { .. } | AggregateKind::Members { .. }, _) => {
                saved.push(joined.as_deref().map_or(Value::Null, Value::text));
            }
            (AggregateKind::Arrays, _) => saved.push(arrays_saved(items)),
            (AggregateKind::JoinBytes, _) => {
                let joined = bytes.as_deref();
                let joined = joined.map(|bytes| Value::Bytea(bytes.into()));
                saved.push(joined.unwrap_or(Value::Null));
                saved.push(between.clone().unwrap_or(Value::Null));
            }
            (AggregateKind::Join, _) => {
                saved.push(joined.as_deref().map_or(Value::Null, Value::text));
                saved.push(between.clone().unwrap_or(Value::Null));
            }
            (AggregateKind::Spread(_) | AggregateKind::Pair(_), _) => {
                let squares = squares.as_deref().map(Squares::saved);
                saved.push(squares.unwrap_or(Value::Null));
            }
            (kind, _) if kind.is_ordered_set() => {}
            _ => saved.push(value.clone().unwrap_or(Value::Null)),
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
        self.partial.merge(*kind, *count, parts, settings)?;
        self.count();
        Ok(())
    }

    fn bytes(&self) -> usize {
        let value = self.partial.value.as_ref();
        let value = value.map_or(0, |value| value.as_ref().heap_bytes());
        let joined = self.partial.joined_bytes();
        size_of::<Self>() + value + joined + self.gathered
    }
}
