//! GROUP BY and aggregates, in memory.

use super::distinct::DistinctRows;
use super::scan::OnRows;
use super::select::compare_keys;
use super::system::KeptRows;
use super::{Flow, Partial, Run};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::Result;
use crate::expr::{Expr, Frame, RowRef, Subresult};
use crate::plan::{Grouping, SortBy, Source};
use std::rc::Rc;
use vellum_row::{Value, ValueRef};

/// What an aggregate has come to in a group.
#[derive(Default)]
struct State {
    partial: Partial,
    seen: DistinctRows,
    /// What is to be taken in an order, with its keys.
    kept: Vec<(Vec<Value>, Value)>,
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
                    None => state.partial.count += 1,
                    Some(argument) => {
                        let value = argument.eval(&frame)?;
                        if self.counts(aggregate, state, value.as_ref())? {
                            self.add(aggregate, state, value.as_ref(), &frame)?;
                        }
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

    /// Whether a value counts: not if it is null, or has come before and counts once.
    fn counts(
        &self,
        aggregate: &Aggregate,
        state: &mut State,
        value: ValueRef<'_>,
    ) -> Result<bool> {
        if value.is_null() && !aggregate.kind.takes_nulls() {
            return Ok(false);
        }
        if !aggregate.distinct {
            return Ok(true);
        }
        // Of a text and what stands in front of it, the text decides.
        let text = match (aggregate.kind, value) {
            (AggregateKind::Join, ValueRef::Array(pair)) => pair.items().next(),
            _ => None,
        };
        let decides = text.as_ref().map_or(value, Value::as_ref);
        if decides.is_null() && !aggregate.kind.takes_nulls() {
            return Ok(false);
        }
        Ok(self.number_of(&mut state.seen, &[decides])?.1)
    }

    fn add(
        &self,
        aggregate: &Aggregate,
        state: &mut State,
        value: ValueRef<'_>,
        frame: &Frame<'_>,
    ) -> Result<()> {
        if aggregate.order.is_empty() {
            if aggregate.kind.takes_nulls() {
                self.keep_row(&[value.to_value()])?;
            }
            let settings = self.env.settings();
            return state.partial.add(aggregate.kind, value, settings);
        }
        let mut keys = Vec::with_capacity(aggregate.order.len() + 1);
        for key in &aggregate.order {
            if let SortBy::Expr(expr) = &key.expr {
                keys.push(expr.eval(frame)?.into_value());
            }
        }
        let value = value.to_value();
        self.keep_row(&keys)?;
        self.keep_row(std::slice::from_ref(&value))?;
        state.kept.push((keys, value));
        Ok(())
    }

    fn result(&self, aggregate: &Aggregate, mut state: State) -> Result<Value> {
        let settings = self.env.settings();
        let order = &aggregate.order;
        state
            .kept
            .sort_by(|(a, _), (b, _)| compare_keys(order, a, b));
        for (_, value) in state.kept {
            let kind = aggregate.kind;
            state.partial.add(kind, value.as_ref(), settings)?;
        }
        state
            .partial
            .result(aggregate.kind, aggregate.result, settings)
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
