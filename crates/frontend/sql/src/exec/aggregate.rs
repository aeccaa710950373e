//! GROUP BY and aggregates, in memory.

use super::distinct::DistinctRows;
use super::scan::OnRows;
use super::system::KeptRows;
use super::{Flow, Run};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::Result;
use crate::expr::{Expr, RowRef, Subresult};
use crate::plan::{Grouping, Source};
use std::rc::Rc;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{Type, Typmod, Value, ValueRef, cast, compare};

/// What an aggregate has come to in a group.
#[derive(Default)]
struct State {
    count: i64,
    value: Option<Value>,
    seen: DistinctRows,
}

impl Run<'_, '_> {
    /// Groups the rows of the sources; `finish` gets the slots of each group: keys, then aggregates.
    pub(super) fn group(
        &self,
        grouping: &Grouping,
        sources: &[Source],
        inner: &[Rc<KeptRows>],
        subqueries: &[Subresult],
        finish: &mut dyn FnMut(&[RowRef<'_>], &[Value]) -> Result<Flow>,
    ) -> Result<()> {
        let mut groups = DistinctRows::default();
        let mut states: Vec<Vec<State>> = Vec::new();
        let new_states = || -> Vec<State> {
            let all = grouping.aggregates.iter();
            all.map(|_| State::default()).collect()
        };
        if grouping.keys.is_empty() {
            // One group, whatever there is.
            groups.add(Vec::new());
            states.push(new_states());
        }
        let on_rows: &mut OnRows<'_> = &mut |rows| {
            let frame = self.frame(rows, &[], subqueries);
            let at = if grouping.keys.is_empty() {
                0
            } else {
                let mut keys = Vec::with_capacity(grouping.keys.len());
                for expr in &grouping.keys {
                    keys.push(expr.eval(&frame)?);
                }
                let (number, new) = self.number(&mut groups, &keys)?;
                if new {
                    states.push(new_states());
                }
                number
            };
            for (aggregate, state) in grouping.aggregates.iter().zip(&mut states[at]) {
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
        for (mut slots, states) in groups.into_rows().into_iter().zip(states) {
            for (aggregate, state) in grouping.aggregates.iter().zip(states) {
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
        if let (AggregateKind::Join, ValueRef::Array(pair)) = (aggregate.kind, value) {
            let mut pair = pair.items();
            let (text, between) = (pair.next(), pair.next());
            let Some(text) = text.filter(|text| !text.is_null()) else {
                return Ok(());
            };
            if aggregate.distinct && !self.number_of(&mut state.seen, &[text.as_ref()])?.1 {
                return Ok(());
            }
            let joined = match &state.value {
                None => text,
                Some(had) => {
                    let part = |value: &Value| value.as_ref().as_str().unwrap_or("").to_owned();
                    let between = between.as_ref().map_or_else(String::new, part);
                    Value::text(part(had) + &between + &part(&text))
                }
            };
            state.value = Some(joined);
            return Ok(());
        }
        if aggregate.distinct && !self.number_of(&mut state.seen, &[value])?.1 {
            return Ok(());
        }
        state.count += 1;
        let Some(had) = &state.value else {
            if aggregate.kind != AggregateKind::Count {
                state.value = Some(value.to_value());
            }
            return Ok(());
        };
        let next = match aggregate.kind {
            AggregateKind::Count | AggregateKind::Join => return Ok(()),
            AggregateKind::Sum | AggregateKind::Average => {
                arithmetic::apply(Operator::Add, had.as_ref(), value, self.env.settings())?
            }
            AggregateKind::Minimum if compare(value, had.as_ref()).is_lt() => value.to_value(),
            AggregateKind::Maximum if compare(value, had.as_ref()).is_gt() => value.to_value(),
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
                let count = cast(count, ty, Typmod::NONE, true, settings)?;
                let mean =
                    arithmetic::apply(Operator::Divide, sum.as_ref(), count.as_ref(), settings);
                Ok(mean?)
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
