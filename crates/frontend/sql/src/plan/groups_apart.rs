//! Subqueries that read what groups come to: sums of the query around them, keys of several sets, or keys beside an aggregate that they are compared with.
//!
//! Such a query becomes two: the one within makes the groups, and its columns are their keys, aggregates and what GROUPING says; the one around it has the list, HAVING as its
//! condition, window functions and the order, and its subqueries read these columns as those of any table.
//!
//! A subquery that reads keys of one set and nothing else of its groups needs none of that: it is a key itself ([`super::grouping::depending`]).
//!
//! Invariants:
//! - GA1 Both queries have all subqueries under their numbers; those that only the other one asks are empty.

use super::grouping::ungrouped_in_subquery;
use super::reads::columns_read;
use super::select::{Body, Grouping, Source, SourceKind, plain};
use super::{General, SortBy, SortKey, Subquery, SubqueryKind, conjuncts};
use crate::bind::{Binder, COMPARED_MAX, OF_GROUPS, Scope, WINDOW_SLOTS, Window};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use vellum_row::Type;

/// What reads groups once they are made.
pub(super) struct Behind<'b> {
    pub output: &'b mut [Expr],
    pub windows: &'b mut [Window],
    pub sort: &'b mut [SortKey],
    pub apart: &'b mut [(Expr, Type)],
}

/// The number of the subquery that an expression is.
fn asked(expr: &Expr) -> Option<u16> {
    expr.subquery()
}

/// Calls `each` with what stands in an expression beside its keys.
fn beside_keys(expr: &Expr, keys: &[(Expr, Type)], each: &mut dyn FnMut(&Expr)) {
    if keys.iter().any(|(key, _)| key == expr) {
        return;
    }
    each(expr);
    expr.children(&mut |child| beside_keys(child, keys, each));
}

/// Whether subqueries in these expressions, which read the groups of a query, make it two. `several`: there are several sets of keys.
///
/// # Errors
/// `42803` for a key that an aggregate is in.
pub(super) fn is_parted(
    keys: &[(Expr, Type)],
    read: &[Expr],
    several: bool,
    subqueries: &[Subquery],
) -> Result<bool> {
    let reads = |number: u16| {
        let (mut own, mut aggregates) = (false, false);
        columns_read(&Expr::Subquery(number), subqueries, &mut |table, _| {
            own = true;
            aggregates |= table == OF_GROUPS;
        });
        (own, aggregates)
    };
    let mut wrong = false;
    for (key, _) in keys {
        key.walk(&mut |part| wrong |= asked(part).is_some_and(|number| reads(number).1));
    }
    if wrong {
        let text = "aggregate functions are not allowed in GROUP BY";
        return Err(SqlError::new(sqlstate::GROUPING_ERROR, text));
    }
    let mut parted = false;
    for expr in read {
        beside_keys(expr, keys, &mut |part| {
            let Some(number) = asked(part) else {
                return;
            };
            let (own, aggregates) = reads(number);
            let mut computed = false;
            part.walk(&mut |part| computed |= matches!(part, Expr::Slot(_)));
            parted |= own && (several || aggregates || computed);
        });
    }
    Ok(parted)
}

/// Adds columns that subqueries read of tables whose whole primary key is among the keys (`apart`): they are the same for all rows of a group.
pub(super) fn depending_in_subqueries(
    keys: &mut Vec<(Expr, Type)>,
    read: &[Expr],
    apart: &[bool],
    scope: &Scope,
    subqueries: &[Subquery],
) {
    let mut found = Vec::new();
    for expr in read {
        beside_keys(expr, keys, &mut |part| {
            let Some(number) = asked(part) else {
                return;
            };
            let subquery = Expr::Subquery(number);
            columns_read(&subquery, subqueries, &mut |table, position| {
                if apart.get(usize::from(table)) == Some(&true) {
                    found.push((table, position));
                }
            });
        });
    }
    for (table, position) in found {
        let column = Expr::Column { table, position };
        let known = keys.iter().any(|(key, _)| *key == column);
        if !known && keys.len() < usize::from(COMPARED_MAX) {
            let ty = scope.tables[usize::from(table)].columns[usize::from(position)].ty;
            keys.push((column, ty));
        }
    }
}

impl Binder<'_> {
    /// Makes a query of groups two; returns the tables of the one around, whose expressions `behind` are. These have slots of groups in them ([`super::grouping::regroup`]).
    /// `around`: why what the query stands in is no program.
    ///
    /// # Errors
    /// `42803` for a subquery that reads what is no key.
    pub(super) fn groups_apart(
        &mut self,
        sources: Vec<Source>,
        mut grouping: Box<Grouping>,
        behind: Behind<'_>,
        around: Option<General>,
    ) -> Result<Vec<Source>> {
        let (keys, aggregates) = (grouping.keys.clone(), grouping.aggregates.len());
        let mut having = grouping.having.take();
        let mut types = grouping.types.clone();
        types.extend(grouping.aggregates.iter().map(|one| one.result));
        types.extend(grouping.asked.iter().map(|_| Type::Int4));
        let Behind {
            output,
            windows,
            sort,
            apart,
        } = behind;
        let mut asks = Vec::new();
        let mut told = |expr: &mut Expr| {
            behind_groups(expr);
            expr.walk(&mut |part| asks.extend(asked(part)));
        };
        output.iter_mut().for_each(&mut told);
        having.iter_mut().for_each(&mut told);
        for window in &mut *windows {
            window.expressions_mut(&mut told);
        }
        for key in &mut *sort {
            if let SortBy::Expr(expr) = &mut key.expr {
                told(expr);
            }
        }
        apart.iter_mut().for_each(|(expr, _)| told(expr));
        // One may stand in several places (BETWEEN), and is changed once.
        asks.sort_unstable();
        asks.dedup();
        // GA1. What neither list nor order asks is asked within, or by limits, which know nothing of groups.
        let within = self.asked_within(&sources, &grouping);
        let mut inner = Vec::with_capacity(self.subqueries.len());
        for number in 0..self.subqueries.len() {
            let empty = Subquery::new(
                SubqueryKind::Exists,
                plain(Body::Values(Vec::new()), vec![]),
            );
            let own = within.contains(&(number as u16));
            let asked_behind = asks.contains(&(number as u16));
            inner.push(match (own, asked_behind) {
                // A part of a key that stands in the list beside it.
                (true, true) => self.subqueries[number].clone(),
                (true, false) => std::mem::replace(&mut self.subqueries[number], empty),
                (false, _) => empty,
            });
        }
        let scope = &self.scope;
        let mut wrong = None;
        for number in asks {
            let Some(subquery) = self.subqueries.get_mut(usize::from(number)) else {
                continue;
            };
            subquery.select.around_mut(1, &mut |table, position| {
                let at = match *table {
                    OF_GROUPS => Some(keys.len() + usize::from(*position)),
                    _ => {
                        let column = Expr::Column {
                            table: *table,
                            position: *position,
                        };
                        keys.iter().position(|key| *key == column)
                    }
                };
                match at {
                    Some(at) => (*table, *position) = (0, at as u16),
                    None => wrong = Some((*table, *position)),
                }
            });
        }
        if let Some((table, position)) = wrong {
            let table = &scope.tables[usize::from(table)];
            let column = &table.columns[usize::from(position)].name;
            return Err(ungrouped_in_subquery(&table.name, column));
        }
        let slots = 0..keys.len() + aggregates + grouping.asked.len();
        let body = Body::From {
            sources,
            grouping: Some(grouping),
            windows: Vec::new(),
            output: slots.map(|slot| Expr::Slot(slot as u16)).collect(),
        };
        let mut select = plain(body, Vec::new());
        select.types = types;
        select.subqueries = inner;
        select.general = std::mem::replace(&mut self.general, around);
        if !windows.is_empty() {
            self.needs(General::WindowFunction);
        } else if !apart.is_empty() {
            self.needs(General::DistinctOn);
        } else {
            self.needs(General::CorrelatedSubquery);
        }
        let mut table = Source::inner(SourceKind::Query(Box::new(select)));
        if let Some(having) = having {
            conjuncts(having, &mut table.filter);
        }
        Ok(vec![table])
    }

    /// Numbers of the subqueries that the tables of a query, its keys and its aggregates ask.
    fn asked_within(&self, sources: &[Source], grouping: &Grouping) -> Vec<u16> {
        let mut within = Vec::new();
        let mut note = |expr: &Expr| expr.walk(&mut |part| within.extend(asked(part)));
        for source in sources {
            let conditions = source.filter.iter().chain(&source.on);
            conditions.chain(&source.covered).for_each(&mut note);
            match &source.kind {
                SourceKind::Function { calls, .. } => {
                    let arguments = calls.iter().flat_map(|call| &call.arguments);
                    arguments.for_each(&mut note);
                }
                SourceKind::Series { from, to, step, .. } => {
                    [from, to, step].into_iter().for_each(&mut note);
                }
                _ => {}
            }
        }
        grouping.keys.iter().for_each(&mut note);
        for aggregate in &grouping.aggregates {
            aggregate.expressions().for_each(&mut note);
        }
        within
    }
}

/// Slots of groups become columns of the one table that has them.
fn behind_groups(expr: &mut Expr) {
    match *expr {
        Expr::Slot(position) if position < WINDOW_SLOTS => {
            *expr = Expr::Column { table: 0, position };
        }
        _ => expr.children_mut(&mut behind_groups),
    }
}
