//! Which tables of a query an expression reads, what its subqueries read of it included.

use super::{Body, Select, SortBy, Source, SourceKind, Subquery, SubqueryKind};
use crate::bind::{Aggregate, WindowKind};
use crate::expr::{Expr, RowsFrom};
use std::collections::BTreeSet;

/// Calls `each` with the number of every table of the query that an expression stands in. `subqueries` are those of that query.
pub(crate) fn tables_read(expr: &Expr, subqueries: &[Subquery], each: &mut dyn FnMut(u16)) {
    columns_read(expr, subqueries, &mut |table, _| each(table));
}

/// The same with the positions of the columns.
pub(crate) fn columns_read(expr: &Expr, subqueries: &[Subquery], each: &mut dyn FnMut(u16, u16)) {
    Reads::new(each).expression(expr, subqueries);
}

/// Calls `each` with the table and the position of every column that a query reads of its own tables, wherever in it.
pub(super) fn columns_of_own(select: &Select, each: &mut dyn FnMut(u16, u16)) {
    let mut reads = Reads::new(each);
    reads.own_alone = true;
    reads.select(select);
}

/// Whether an expression may have another value each time, or does something twice then; its subqueries included.
pub(crate) fn draws(expr: &Expr, subqueries: &[Subquery]) -> bool {
    let mut nothing = |_, _| {};
    let mut reads = Reads::new(&mut nothing);
    reads.expression(expr, subqueries);
    reads.volatile || reads.locks
}

/// Whether an expression reads no table from number `from` on.
pub(crate) fn reads_before(expr: &Expr, subqueries: &[Subquery], from: u16) -> bool {
    let mut before = true;
    tables_read(expr, subqueries, &mut |table| before &= table < from);
    before
}

/// Whether an expression reads no table before number `from`.
pub(crate) fn reads_from(expr: &Expr, subqueries: &[Subquery], from: u16) -> bool {
    let mut behind = true;
    tables_read(expr, subqueries, &mut |table| behind &= table >= from);
    behind
}

/// A walk, so many queries inside of the one that is asked about.
struct Reads<'e> {
    depth: u16,
    each: &'e mut dyn FnMut(u16, u16),
    /// A query in FROM of the one that is asked about has columns of its own, which are not that one's, and sees none of these.
    own_alone: bool,
    /// Whether two evaluations of something that it came by may differ.
    volatile: bool,
    /// Whether a query that it came by locks rows.
    locks: bool,
    /// The columns that are read of queries around the one that is asked about: how many queries outwards, table, position.
    around: BTreeSet<(u16, u16, u16)>,
}

impl<'e> Reads<'e> {
    fn new(each: &'e mut dyn FnMut(u16, u16)) -> Self {
        Self {
            depth: 0,
            each,
            own_alone: false,
            volatile: false,
            locks: false,
            around: BTreeSet::new(),
        }
    }

    fn expression(&mut self, expr: &Expr, subqueries: &[Subquery]) {
        self.volatile |= expr.is_volatile();
        expr.walk(&mut |expr| match expr {
            Expr::Column { table, position } if self.depth == 0 => (self.each)(*table, *position),
            Expr::Outer {
                level,
                table,
                position,
            } if *level == self.depth => (self.each)(*table, *position),
            Expr::Outer {
                level,
                table,
                position,
            } => {
                if let Some(level) = level.checked_sub(self.depth) {
                    self.around.insert((level, *table, *position));
                }
            }
            Expr::Subquery(number)
            | Expr::InSubquery {
                subquery: number, ..
            }
            | Expr::Rows {
                from: RowsFrom::Subquery(number),
                ..
            } => {
                // One that is not correlated reads none of these columns.
                if let Some(inner) = subqueries.get(usize::from(*number)) {
                    self.depth += 1;
                    self.select(&inner.select);
                    self.depth -= 1;
                }
            }
            _ => {}
        });
    }

    fn aggregate(&mut self, aggregate: &Aggregate, subqueries: &[Subquery]) {
        let arguments = aggregate.arguments.iter().map(|(expr, _)| expr);
        for expr in arguments.chain(&aggregate.filter) {
            self.expression(expr, subqueries);
        }
        for key in &aggregate.order {
            if let SortBy::Expr(expr) = &key.expr {
                self.expression(expr, subqueries);
            }
        }
    }

    fn select(&mut self, select: &Select) {
        let subs = &select.subqueries;
        self.locks |= !select.locks.is_empty();
        for expr in select.limit.iter().chain(&select.offset) {
            self.expression(expr, subs);
        }
        for key in &select.order {
            if let SortBy::Expr(expr) = &key.expr {
                self.expression(expr, subs);
            }
        }
        for (expr, _) in &select.distinct_on {
            self.expression(expr, subs);
        }
        match &select.body {
            Body::Values(rows) => {
                for expr in rows.iter().flatten() {
                    self.expression(expr, subs);
                }
            }
            Body::Set { left, right, .. } => {
                self.select(left);
                self.select(right);
            }
            Body::From {
                sources,
                grouping,
                windows,
                output,
            } => {
                for source in sources {
                    self.source(source, subs);
                }
                for expr in output {
                    self.expression(expr, subs);
                }
                if let Some(grouping) = grouping {
                    for expr in grouping.keys.iter().chain(&grouping.having) {
                        self.expression(expr, subs);
                    }
                    for aggregate in &grouping.aggregates {
                        self.aggregate(aggregate, subs);
                    }
                }
                for window in windows {
                    for (expr, _) in window.arguments.iter().chain(&window.partition) {
                        self.expression(expr, subs);
                    }
                    if let WindowKind::Aggregate(aggregate) = &window.function {
                        self.aggregate(aggregate, subs);
                    }
                    for key in &window.order {
                        if let SortBy::Expr(expr) = &key.expr {
                            self.expression(expr, subs);
                        }
                    }
                }
            }
        }
    }

    fn source(&mut self, source: &Source, subs: &[Subquery]) {
        let conditions = source.filter.iter().chain(&source.on);
        for expr in conditions.chain(&source.covered) {
            self.expression(expr, subs);
        }
        match &source.kind {
            SourceKind::Query(_) | SourceKind::Recursive(_)
                if self.own_alone && self.depth == 0 => {}
            // What the path compares with stands in the conditions.
            SourceKind::Table { .. }
            | SourceKind::System(_)
            | SourceKind::Nothing
            | SourceKind::Work { .. } => {}
            SourceKind::Recursive(recursive) => {
                self.select(&recursive.base);
                self.select(&recursive.step);
            }
            SourceKind::Query(select) => self.select(select),
            SourceKind::Lateral(select) => {
                self.depth += 1;
                self.select(select);
                self.depth -= 1;
            }
            SourceKind::Function { calls, .. } => {
                for expr in calls.iter().flat_map(|call| &call.arguments) {
                    self.expression(expr, subs);
                }
            }
            SourceKind::Series { from, to, step, .. } => {
                for expr in [from, to, step] {
                    self.expression(expr, subs);
                }
            }
        }
    }
}

impl Select {
    /// How many queries around it the furthest is whose columns it reads.
    pub(crate) fn reads_up_to(&self) -> u16 {
        let mut nothing = |_, _| {};
        let mut reads = Reads::new(&mut nothing);
        reads.select(self);
        reads.around.last().map_or(0, |(level, ..)| *level)
    }

    /// How many queries outwards those are whose columns it reads.
    pub(crate) fn levels_read(&self) -> BTreeSet<u16> {
        let mut nothing = |_, _| {};
        let mut reads = Reads::new(&mut nothing);
        reads.select(self);
        reads.around.iter().map(|(level, ..)| *level).collect()
    }

    /// The columns that it reads of queries around it, and nothing else does it depend on: how many queries outwards, table, position. `None` if its rows may be
    /// others each time that it is run.
    pub(crate) fn depends_on(&self) -> Option<BTreeSet<(u16, u16, u16)>> {
        let mut nothing = |_, _| {};
        let mut reads = Reads::new(&mut nothing);
        reads.select(self);
        (!reads.volatile && !reads.locks).then_some(reads.around)
    }

    /// Whether its rows may be others when it is run again, or something is done twice then.
    pub(crate) fn is_volatile(&self) -> bool {
        let mut nothing = |_, _| {};
        let mut reads = Reads::new(&mut nothing);
        reads.select(self);
        reads.volatile
    }

    /// Whether its rows may be others when it is run again, or rows locked by it may be.
    pub(crate) fn is_another_each_time(&self) -> bool {
        let mut nothing = |_, _| {};
        let mut reads = Reads::new(&mut nothing);
        reads.select(self);
        reads.volatile || reads.locks
    }

    /// Whether a table of it is a subquery that reads those before.
    pub(crate) fn has_lateral(&self) -> bool {
        match &self.body {
            Body::Values(_) => false,
            Body::Set { left, right, .. } => left.has_lateral() || right.has_lateral(),
            Body::From { sources, .. } => sources
                .iter()
                .any(|source| matches!(source.kind, SourceKind::Lateral(_))),
        }
    }

    /// Whether the order of rows can be seen in an aggregate: of its own, or of a query that is run together with it.
    pub(crate) fn shows_order(&self) -> bool {
        // A value that is the same for all rows is found before.
        let together = |subquery: &&Subquery| {
            subquery.select.correlated || subquery.kind == SubqueryKind::List
        };
        let mut subqueries = self.subqueries.iter().filter(together);
        subqueries.any(|subquery| subquery.select.shows_order())
            || match &self.body {
                Body::Values(_) => false,
                Body::Set { left, right, .. } => left.shows_order() || right.shows_order(),
                Body::From {
                    sources,
                    grouping,
                    windows,
                    ..
                } => {
                    let grouped = grouping.iter().flat_map(|grouping| &grouping.aggregates);
                    let windowed = windows.iter().filter_map(|window| match &window.function {
                        WindowKind::Aggregate(aggregate) => Some(aggregate),
                        WindowKind::Function(_) => None,
                    });
                    let mut aggregates = grouped.chain(windowed);
                    aggregates.any(|aggregate| aggregate.kind.shows_order())
                        || sources.iter().any(|source| match &source.kind {
                            SourceKind::Query(select) => select.shows_order(),
                            _ => false,
                        })
                }
            }
    }

    /// Whether all that it reads are system relations: these are small, and their subqueries are run row by row.
    pub(crate) fn reads_only_system(&self) -> bool {
        let inner = self
            .subqueries
            .iter()
            .all(|subquery| subquery.select.reads_only_system());
        inner
            && match &self.body {
                Body::Values(_) => true,
                Body::Set { left, right, .. } => {
                    left.reads_only_system() && right.reads_only_system()
                }
                Body::From { sources, .. } => sources.iter().all(|source| match &source.kind {
                    SourceKind::Table { .. } => false,
                    SourceKind::Query(query) | SourceKind::Lateral(query) => {
                        query.reads_only_system()
                    }
                    SourceKind::Recursive(recursive) => {
                        recursive.base.reads_only_system() && recursive.step.reads_only_system()
                    }
                    _ => true,
                }),
            }
    }
}
