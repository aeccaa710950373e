//! GROUP BY and aggregates, in memory.

use super::distinct::DistinctRows;
use super::scan::{OnRows, Tables};
use super::select::compare_keys;
use super::{Flow, Partial, Run, bytes_of, bytes_of_row};
use crate::bind::Aggregate;
use crate::error::Result;
use crate::expr::{Expr, Frame, Out, RowRef, Subresult};
use crate::plan::{Grouping, SortBy};
use vellum_row::{Value, ValueRef};

/// What an aggregate has come to in a group.
#[derive(Default)]
struct State {
    partial: Partial,
    seen: DistinctRows,
    /// What is to be taken in an order, with its keys.
    kept: Vec<(Vec<Value>, Vec<Value>)>,
}

impl Run<'_, '_> {
    /// Groups the rows of the sources; `finish` gets the slots of each group: keys, then aggregates.
    pub(super) fn group(
        &self,
        grouping: &Grouping,
        tables: Tables<'_>,
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
            let frame = self.frame(rows, &[], tables.subqueries);
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
                match aggregate.arguments.as_slice() {
                    [] => state.partial.count += 1,
                    [(argument, _)] => {
                        let value = argument.eval(&frame)?;
                        self.add(aggregate, state, &[value.as_ref()], &frame)?;
                    }
                    several => {
                        let values = several.iter().map(|(argument, _)| argument.eval(&frame));
                        let values = values.collect::<Result<Vec<Out<'_>>>>()?;
                        let values: Vec<ValueRef<'_>> = values.iter().map(Out::as_ref).collect();
                        self.add(aggregate, state, &values, &frame)?;
                    }
                }
            }
            Ok(Flow::More)
        };
        self.join(tables, &[], on_rows)?;
        for (mut slots, states) in groups.into_rows().into_iter().zip(states) {
            for (aggregate, state) in grouping.aggregates.iter().zip(states) {
                slots.push(self.result(aggregate, state)?);
            }
            if let Some(having) = &grouping.having
                && !having_holds(self, having, &slots, tables.subqueries)?
            {
                continue;
            }
            if finish(&[], &slots)? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }

    /// A row's values came.
    fn add(
        &self,
        aggregate: &Aggregate,
        state: &mut State,
        values: &[ValueRef<'_>],
        frame: &Frame<'_>,
    ) -> Result<()> {
        if aggregate.kind.skips(values) {
            return Ok(());
        }
        let mut keys = Vec::with_capacity(aggregate.order.len());
        for key in &aggregate.order {
            if let SortBy::Expr(expr) = &key.expr {
                keys.push(expr.eval(frame)?.into_value());
            }
        }
        if aggregate.distinct {
            // All that tells rows apart is among the keys, if there are keys.
            let refs: Vec<ValueRef<'_>> = keys.iter().map(Value::as_ref).collect();
            let by = if refs.is_empty() { values } else { &refs };
            if !self.number_of(&mut state.seen, by)?.1 {
                return Ok(());
            }
        }
        if aggregate.order.is_empty() {
            return self.fold(aggregate, &mut state.partial, values);
        }
        let values: Vec<Value> = values.iter().map(|value| value.to_value()).collect();
        self.keep_row(&keys)?;
        self.keep_row(&values)?;
        state.kept.push((keys, values));
        Ok(())
    }

    /// Adds to what an aggregate has come to, and counts what that keeps.
    fn fold(
        &self,
        aggregate: &Aggregate,
        partial: &mut Partial,
        values: &[ValueRef<'_>],
    ) -> Result<()> {
        if !aggregate.kind.gathers() && !aggregate.kind.is_ordered_set() {
            return partial.add(aggregate.kind, values, self.env.settings());
        }
        let before = (partial.items.len(), partial.joined_bytes());
        partial.add(aggregate.kind, values, self.env.settings())?;
        let items = partial.items[before.0..].iter().map(bytes_of);
        self.keep(items.sum::<usize>() + partial.joined_bytes() - before.1)
    }

    fn result(&self, aggregate: &Aggregate, mut state: State) -> Result<Value> {
        let settings = self.env.settings();
        let order = &aggregate.order;
        state
            .kept
            .sort_by(|(a, _), (b, _)| compare_keys(order, a, b));
        for (keys, values) in state.kept {
            let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            self.fold(aggregate, &mut state.partial, &refs)?;
            self.give_back(bytes_of_row(&keys) + bytes_of_row(&values));
        }
        let asked = aggregate.asked.as_ref();
        state
            .partial
            .result(aggregate.kind, aggregate.result, asked, settings)
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
