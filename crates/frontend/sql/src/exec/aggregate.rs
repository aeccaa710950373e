//! GROUP BY and aggregates, in memory.

use super::scan::OnRows;
use super::{Flow, Run};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::Result;
use crate::expr::{Expr, RowRef, Subresult};
use crate::plan::{Grouping, Source};
use crate::scalar::{self, Operator};
use std::collections::{HashMap, HashSet};
use vellum_row::{Type, Typmod, Value, ValueRef};

/// A group: its key's values, one state an aggregate, and a row of it.
struct Group {
    keys: Vec<Value>,
    states: Vec<State>,
}

#[derive(Default)]
struct State {
    count: i64,
    value: Option<Value>,
    seen: HashSet<Vec<u8>>,
}

impl Run<'_, '_> {
    /// Groups the rows of the sources; `finish` gets the slots of each group: keys, then aggregates.
    pub(super) fn group(
        &self,
        grouping: &Grouping,
        sources: &[Source],
        inner: &[Vec<Vec<Value>>],
        subqueries: &[Subresult],
        finish: &mut dyn FnMut(&[RowRef<'_>], &[Value]) -> Result<Flow>,
    ) -> Result<()> {
        let mut groups: Vec<Group> = Vec::new();
        let mut by_key: HashMap<Vec<u8>, usize> = HashMap::new();
        let new_states = || {
            grouping
                .aggregates
                .iter()
                .map(|_| State::default())
                .collect()
        };
        if grouping.keys.is_empty() {
            // One group, whatever there is.
            groups.push(Group {
                keys: Vec::new(),
                states: new_states(),
            });
        }
        let mut key = Vec::new();
        let on_rows: &mut OnRows<'_> = &mut |rows| {
            let frame = self.frame(rows, &[], subqueries);
            let at = if grouping.keys.is_empty() {
                0
            } else {
                key.clear();
                for expr in &grouping.keys {
                    let value = expr.eval(&frame)?;
                    scalar::key::group([value.as_ref()].into_iter(), &mut key);
                }
                match by_key.get(&key) {
                    Some(at) => *at,
                    None => {
                        let mut keys = Vec::with_capacity(grouping.keys.len());
                        for expr in &grouping.keys {
                            keys.push(expr.eval(&frame)?.into_value());
                        }
                        self.keep_row(&keys)?;
                        self.keep(2 * key.len())?;
                        groups.push(Group {
                            keys,
                            states: new_states(),
                        });
                        by_key.insert(key.clone(), groups.len() - 1);
                        groups.len() - 1
                    }
                }
            };
            for (aggregate, state) in grouping.aggregates.iter().zip(&mut groups[at].states) {
                if let Some(filter) = &aggregate.filter
                    && !filter.is_true(&frame)?
                {
                    continue;
                }
                match &aggregate.argument {
                    None => state.count += 1,
                    Some(argument) => {
                        let value = argument.eval(&frame)?;
                        self.add(aggregate, state, value.as_ref())?;
                    }
                }
            }
            Ok(Flow::More)
        };
        self.join(sources, inner, subqueries, &[], on_rows)?;
        for group in groups {
            let mut slots = group.keys;
            for (aggregate, state) in grouping.aggregates.iter().zip(group.states) {
                slots.push(self.result(aggregate, state)?);
            }
            if let Some(having) = &grouping.having
                && !having_holds(self, having, &slots, subqueries)?
            {
                continue;
            }
            if finish(&[], &slots)? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }

    fn add(&self, aggregate: &Aggregate, state: &mut State, value: ValueRef<'_>) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        if aggregate.distinct {
            let mut key = Vec::new();
            scalar::key::group([value].into_iter(), &mut key);
            self.keep(key.len())?;
            if !state.seen.insert(key) {
                return Ok(());
            }
        }
        state.count += 1;
        let Some(had) = &state.value else {
            if aggregate.kind != AggregateKind::Count {
                state.value = Some(value.to_value());
            }
            return Ok(());
        };
        let next = match aggregate.kind {
            AggregateKind::Count => return Ok(()),
            AggregateKind::Sum | AggregateKind::Average => {
                scalar::arithmetic(Operator::Add, had.as_ref(), value, self.env.settings())?
            }
            AggregateKind::Minimum if scalar::compare(value, had.as_ref()).is_lt() => {
                value.to_value()
            }
            AggregateKind::Maximum if scalar::compare(value, had.as_ref()).is_gt() => {
                value.to_value()
            }
            AggregateKind::Minimum | AggregateKind::Maximum => return Ok(()),
            AggregateKind::BoolAnd => {
                Value::Bool(had.as_ref().as_bool() == Some(true) && value.as_bool() == Some(true))
            }
            AggregateKind::BoolOr => {
                Value::Bool(had.as_ref().as_bool() == Some(true) || value.as_bool() == Some(true))
            }
        };
        state.value = Some(next);
        Ok(())
    }

    fn result(&self, aggregate: &Aggregate, state: State) -> Result<Value> {
        let settings = self.env.settings();
        match (aggregate.kind, state.value) {
            (AggregateKind::Count, _) => Ok(Value::Int8(state.count)),
            (_, None) => Ok(Value::Null),
            (AggregateKind::Average, Some(sum)) => {
                let ty = match aggregate.result {
                    Type::Interval => Type::Float8,
                    ty => ty,
                };
                let count = ValueRef::Int8(state.count);
                let count = scalar::cast(count, ty, Typmod::NONE, true, settings)?;
                scalar::arithmetic(Operator::Divide, sum.as_ref(), count.as_ref(), settings)
            }
            (_, Some(value)) => Ok(value),
        }
    }
}

fn having_holds(
    run: &Run<'_, '_>,
    having: &Expr,
    slots: &[Value],
    subqueries: &[Subresult],
) -> Result<bool> {
    having.is_true(&run.frame(&[], slots, subqueries))
}
