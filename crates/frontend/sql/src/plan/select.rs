//! SELECT and VALUES.

use super::apart::Readers;
use super::general::reads_much;
use super::grouping::{asked_keys, check_distinct_order, depending, regroup};
use super::groups_apart::{Behind as AskedBehind, is_parted};
use super::output::check_targets;
use super::path::{self, Access, Wanted, wanted_order};
use super::reads::reads_before;
use super::sets_behind::{Leaves, arguments_of, check_known, divide, windows_before};
use super::{General, OutputColumn, RowLock, SetCall, Subquery, factored};
use crate::bind::{Aggregate, Binder, Bound, Window};
use crate::catalog::Relation;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::general::STEPS_MAX;
use crate::rows::Shape;
use crate::sqlstate;
use crate::system::Definition;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::Type;

/// A query.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub subqueries: Vec<Subquery>,
    pub body: Body,
    /// Types of its columns.
    pub types: Vec<Type>,
    pub distinct: bool,
    /// Numbers of the tables behind whose columns the key of their row stands.
    pub keyed: Vec<u16>,
    /// Of rows that are equal in these the first is taken.
    pub distinct_on: Vec<(Expr, Type)>,
    pub order: Vec<SortKey>,
    /// Whether the path of the first table gives the order, so that a program need not sort.
    pub ordered: bool,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// Whether rows that are equal to the last one in all keys of the order come, too.
    pub ties: bool,
    /// Rows that are locked before they are returned.
    pub locks: Vec<RowLock>,
    /// Whether it reads columns of a query that it is in.
    pub correlated: bool,
    /// Why no program runs it, if none does.
    pub general: Option<General>,
    pub origin: Origin,
}

/// What a query in FROM was written as.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A query.
    Own,
    /// The name of one of WITH.
    With,
    /// The name of a view.
    View(Arc<Relation>),
}

/// Where its rows come from.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    From {
        sources: Vec<Source>,
        grouping: Option<Box<Grouping>>,
        windows: Vec<Window>,
        output: Vec<Expr>,
    },
    Values(Vec<Vec<Expr>>),
    Set {
        operator: ast::SetOperator,
        all: bool,
        left: Box<Select>,
        right: Box<Select>,
    },
}

/// GROUP BY and aggregates. Slots: the keys, then the aggregates, then what GROUPING says.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub keys: Vec<Expr>,
    pub types: Vec<Type>,
    /// Of several sets of keys: numbers of their keys.
    pub sets: Option<Vec<Vec<usize>>>,
    pub aggregates: Vec<Aggregate>,
    /// Numbers of the keys that GROUPING asks for.
    pub asked: Vec<Vec<usize>>,
    pub having: Option<Expr>,
}

/// A key to sort by: of the output, by position, or an expression of its own.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SortKey {
    pub expr: SortBy,
    pub ty: Type,
    pub descending: bool,
    pub nulls_first: bool,
}

/// What a sort key is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum SortBy {
    Output(usize),
    Expr(Expr),
}

/// A table of a FROM, in the order in which they are read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub kind: SourceKind,
    pub join: Join,
    /// So many tables behind it are joined with it before all of them are joined to those before: a join in parentheses.
    pub nested: u16,
    /// The first table of the join in parentheses, or of the item of FROM, that it is joined in: an outer join keeps no rows of what stands before.
    pub item: u16,
    /// Whether a RIGHT or FULL JOIN has it as the first table of its left side.
    pub begins_late: bool,
    /// Looked at for each row, when the tables before are known, and those that are nested.
    pub filter: Vec<Expr>,
    /// Of an outer join: what decides whether a row matches. Rows without match stand alone, then `filter` is looked at. What reads nested
    /// tables is their filter, unless one of these keeps rows of its own: then all stands here.
    pub on: Vec<Expr>,
    /// Of those that decide, the ones that the path fulfils.
    pub covered: Vec<Expr>,
    /// Of rows that are kept: a column that has to equal something, by which they are found.
    pub lookup: Option<(u16, Expr)>,
}

/// What is read.
#[derive(Clone, Debug)]
pub(crate) enum SourceKind {
    Table {
        shape: Arc<Shape>,
        access: Access,
    },
    Query(Box<Select>),
    /// A query that reads the tables before it: run for each of their rows.
    Lateral(Box<Select>),
    System(&'static Definition),
    /// Functions that return sets, of columns of the tables before them, side by side: who ends first goes on with nulls.
    Function {
        calls: Vec<SetCall>,
        /// With a column that counts.
        ordinality: bool,
    },
    Series {
        from: Expr,
        to: Expr,
        step: Expr,
        ty: Type,
    },
    /// No FROM: one row without columns.
    Nothing,
    /// A query of WITH that reads itself.
    Recursive(Box<Recursive>),
    /// What the last step of one has made, in its next.
    Work {
        number: usize,
        types: Vec<Type>,
    },
}

/// `base UNION step`, the step run again with what it made, until that is nothing.
#[derive(Clone, Debug)]
pub(crate) struct Recursive {
    /// Under which the step knows what it is run with.
    pub number: usize,
    pub base: Select,
    pub step: Select,
    /// UNION ALL: rows may come again.
    pub all: bool,
}

/// How it is joined to those before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Join {
    Inner,
    Left,
    Right,
    Full,
}

impl Binder<'_> {
    /// Binds a query; its subqueries are its own.
    ///
    /// # Errors
    /// Of names and types; `0A000` for clauses that no program has.
    pub fn query(&mut self, query: &ast::Query) -> Result<(Select, Vec<OutputColumn>)> {
        self.inner(|binder| binder.query_inner(query))
    }

    fn query_inner(&mut self, query: &ast::Query) -> Result<(Select, Vec<OutputColumn>)> {
        self.step()?;
        let at_top = std::mem::take(&mut self.at_top);
        if let Some(with) = &query.with {
            self.with_queries(with, at_top)?;
        }
        if query.for_clause.is_some() || !query.pipe_operators.is_empty() {
            return Err(SqlError::unsupported("this clause of a query"));
        }
        let order: &[ast::OrderByExpr] = match query.order_by.as_ref().map(|order| &order.kind) {
            None => &[],
            Some(ast::OrderByKind::Expressions(list)) => list,
            Some(ast::OrderByKind::All(_)) => return Err(SqlError::unsupported("ORDER BY ALL")),
        };
        if let (ast::SetExpr::Query(inner), [], None, None) = (
            &*query.body,
            order,
            query.limit_clause.as_ref(),
            query.fetch.as_ref(),
        ) {
            // Parentheses alone: the inner query as it is, with its own limits and subqueries.
            let (mut select, columns) = self.query(inner)?;
            self.locks(&mut select, &query.locks)?;
            if !select.locks.is_empty() {
                select.general = self.general.or(select.general);
            }
            return Ok((select, columns));
        }
        let literals_as = std::mem::take(&mut self.literals_as);
        // What they say of parameters they say behind all other clauses: then they are bound again.
        let again = self.may_decide(&query.limit_clause) || self.may_decide(&query.fetch);
        let (known, asked) = (self.params_known(), self.subqueries.len());
        let mut limits = self.limits(query, !order.is_empty());
        if again {
            self.take_back(known);
            self.subqueries.truncate(asked);
        }
        if matches!(*query.body, ast::SetExpr::Select(_)) {
            self.literals_as = literals_as;
        }
        let (mut select, columns) = self.body(&query.body, order)?;
        if again {
            let around = std::mem::take(&mut self.scope);
            limits = self.limits(query, !order.is_empty());
            self.scope = around;
        }
        let limits = limits.map_err(|error| self.limits_error(query, error))?;
        self.locks(&mut select, &query.locks)?;
        select.general = self.general;
        select.limits(limits);
        super::lock::check_ties(&select)?;
        select.subqueries = std::mem::take(&mut self.subqueries);
        Ok((select, columns))
    }

    pub(super) fn body(
        &mut self,
        body: &ast::SetExpr,
        order: &[ast::OrderByExpr],
    ) -> Result<(Select, Vec<OutputColumn>)> {
        let (mut select, columns) = self.body_inner(body, order)?;
        select.types = columns.iter().map(|column| column.ty).collect();
        Ok((select, columns))
    }

    fn body_inner(
        &mut self,
        body: &ast::SetExpr,
        order: &[ast::OrderByExpr],
    ) -> Result<(Select, Vec<OutputColumn>)> {
        match body {
            ast::SetExpr::Select(select) => self.select(select, order),
            ast::SetExpr::Values(values) => {
                let (rows, columns) = self.values(&values.rows)?;
                let order = self.order_of_output(order, &columns)?;
                Ok((plain(Body::Values(rows), order), columns))
            }
            ast::SetExpr::Query(query) => {
                let (inner, columns) = self.query(query)?;
                let output = (0..columns.len()).map(|at| Expr::Column {
                    table: 0,
                    position: at as u16,
                });
                let body = Body::From {
                    output: output.collect(),
                    sources: vec![Source::inner(SourceKind::Query(Box::new(inner)))],
                    grouping: None,
                    windows: Vec::new(),
                };
                let order = self.order_of_output(order, &columns)?;
                Ok((plain(body, order), columns))
            }
            ast::SetExpr::SetOperation { .. } => self.set_operations(body, order),
            other => Err(SqlError::unsupported(format!("the query {other}"))),
        }
    }

    /// Rows of expressions, each column of one type.
    pub fn values(
        &mut self,
        rows: &[ast::Parens<Vec<ast::Expr>>],
    ) -> Result<(Vec<Vec<Expr>>, Vec<OutputColumn>)> {
        let mut by_column: Vec<Vec<Bound>> = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let items: Vec<&ast::Expr> = row.content.iter().collect();
            let items = self.spelled_out(&items)?;
            if number == 0 {
                check_targets(items.len())?;
                by_column = items.iter().map(|_| Vec::new()).collect();
            }
            if items.len() != by_column.len() {
                let error = SqlError::syntax("VALUES lists must all be the same length");
                let first = row.content.first();
                return Err(error.at(first.and_then(|expr| self.place(expr))));
            }
            for (column, item) in by_column.iter_mut().zip(items) {
                column.push(item);
            }
        }
        let width = by_column.len();
        let mut out: Vec<Vec<Expr>> = rows.iter().map(|_| Vec::with_capacity(width)).collect();
        let mut columns = Vec::with_capacity(width);
        for (number, column) in (1..).zip(by_column) {
            let (exprs, ty, typmod) = self.unify("VALUES", column)?;
            for (row, expr) in out.iter_mut().zip(exprs) {
                row.push(expr);
            }
            columns.push(OutputColumn {
                name: format!("column{number}"),
                ty,
                typmod,
                origin: (0, 0),
                domain: None,
                collation: None,
                collated: false,
            });
        }
        Ok((out, columns))
    }

    fn select(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
    ) -> Result<(Select, Vec<OutputColumn>)> {
        check_clauses(select)?;
        // Nothing in its limits asks a query, or has to be known to who sorts.
        let reason = self.general;
        let alone = self.subqueries.is_empty() && reason != Some(General::Ties);
        let literals_as = std::mem::take(&mut self.literals_as);
        // Not in FROM and WHERE.
        let asked_around = self.groupings.take();
        let mut distinct = match &select.distinct {
            None | Some(ast::Distinct::All) => false,
            Some(ast::Distinct::Distinct) => true,
            Some(ast::Distinct::On(_)) => {
                self.needs(General::DistinctOn);
                false
            }
        };
        let mut sources = Vec::new();
        for table in &select.from {
            self.from(table, &mut sources)?;
        }
        if sources.is_empty() {
            // One row, which a condition may refuse.
            sources.push(Source::inner(SourceKind::Nothing));
        }
        let group_by: &[ast::Expr] = match &select.group_by {
            ast::GroupByExpr::Expressions(list, modifiers) if modifiers.is_empty() => list,
            _ => return Err(SqlError::unsupported("this form of GROUP BY")),
        };
        let (group_by, sets_apart) = super::grouping::without_mark(group_by);
        let told = match &select.distinct {
            Some(ast::Distinct::On(nodes)) => nodes.as_slice(),
            _ => &[],
        };
        let sorted = order.iter().filter(|_| distinct).map(|own| &own.expr);
        self.look_for(group_by.iter().chain(told).chain(sorted))?;
        self.groupings = Some(Vec::new());
        self.aggregates = Some(Vec::new());
        self.windows = Some(Vec::new());
        self.name_windows(&select.named_window)?;
        let around = self.set_functions.replace(Vec::new());
        if !distinct {
            self.literals_as = literals_as;
        }
        let listed = self.listed(&select.projection);
        let called = std::mem::replace(&mut self.set_functions, around);
        let listed = listed?;
        // PostgreSQL's order, in which the first use of a parameter decides its type: the list, WHERE, HAVING, then the list's columns that are of none, and windows last.
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            let (aggregates, windows) = (self.aggregates.take(), self.windows.take());
            let groupings = self.groupings.take();
            // What is asked elsewhere may have aggregates in it, and is asked of groups.
            let again = std::mem::take(&mut self.again);
            let condition = self.condition(selection, "WHERE");
            (self.aggregates, self.windows) = (aggregates, windows);
            (self.groupings, self.again) = (groupings, again);
            factored(condition?, &mut conditions);
        }
        let found = self.windows.take();
        let having = select.having.as_ref();
        let having = having.map(|having| self.condition(having, "HAVING"));
        self.windows = found;
        let mut having = having.transpose()?;
        let (mut output, columns) = self.settled(listed)?;
        let rows_apart = match distinct {
            true => self.rows_told_apart(&output, &columns)?,
            false => None,
        };
        let (sort, typmods) = self.sort_keys(order, &output, &columns)?;
        let (mut keys, mut sets) = self.group_by(group_by, &output, &columns)?;
        if let Some(sets) = sets.as_mut().filter(|_| sets_apart) {
            super::grouping::tell_apart(sets);
        }
        let mut keys_apart = order.iter().zip(&sort);
        let apart = keys_apart.find(|(_, key)| matches!(key.expr, SortBy::Expr(_)));
        if let (true, Some((node, _))) = (distinct, apart) {
            let text = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            let error = SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text);
            return Err(error.at(self.place(&node.expr)));
        }
        let mut apart = self.distinct_on(select, &output, &columns)?;
        let mut sort = self.sorted_rows(sort, &typmods, &output)?;
        if let Some(rows_apart) = rows_apart {
            self.needs(General::DistinctOn);
            (distinct, apart) = (false, rows_apart);
        }
        check_distinct_order(&apart, &sort, &output)?;
        let around = std::mem::replace(&mut self.set_functions, called);
        let windows = self.window_functions();
        self.again.clear();
        let called = std::mem::replace(&mut self.set_functions, around);
        let mut windows = windows?;
        let lists_sets = called.as_ref().is_some_and(|called| !called.is_empty());
        sources.extend(called.into_iter().flatten());
        // Without FROM the first of those functions is the first table.
        if sources.len() > 1 && matches!(sources[0].kind, SourceKind::Nothing) {
            sources.remove(0);
        }
        let aggregates = self.aggregates.take().unwrap_or_default();
        let asked = std::mem::replace(&mut self.groupings, asked_around);
        let grouped =
            !keys.is_empty() || sets.is_some() || !aggregates.is_empty() || having.is_some();
        let mut asked_behind = false;
        if grouped {
            let sorted = sort.iter().filter_map(|key| match &key.expr {
                SortBy::Expr(expr) => Some(expr),
                SortBy::Output(_) => None,
            });
            let apart = apart.iter().map(|(expr, _)| expr);
            let mut read: Vec<Expr> = output
                .iter()
                .chain(&having)
                .chain(sorted)
                .chain(apart)
                .cloned()
                .collect();
            for window in &mut windows {
                window.expressions_mut(&mut |expr| read.push(expr.clone()));
            }
            if lists_sets {
                read.extend(arguments_of(&sources).cloned());
            }
            let several = sets.is_some();
            asked_behind = is_parted(&keys, &read, several, &self.subqueries)?;
            if asked_behind && lists_sets {
                let text = "a subquery that reads groups beside a function that returns sets";
                return Err(SqlError::unsupported(text));
            }
            let how = (several, asked_behind);
            depending(&mut keys, &read, how, &self.scope, &self.subqueries)?;
        }
        let mut behind = None;
        let parted = grouped || !windows.is_empty();
        if lists_sets && parted && !windows_before(&mut windows, &self.scope.tables) {
            let leaves = Leaves {
                tables: &self.scope.tables,
                keys: &keys,
                aggregates: &aggregates,
                windows: &windows,
                subqueries: &self.subqueries,
            };
            let list = (&mut output, &columns[..]);
            let alone = alone && apart.is_empty();
            behind = divide(
                &mut sources,
                leaves,
                (having.as_ref(), alone),
                list,
                &mut sort,
            )?;
        }
        if lists_sets && behind.is_none() {
            check_known(&sources)?;
        }
        let (keys, types): (Vec<Expr>, Vec<Type>) = keys.into_iter().unzip();
        let asked = asked_keys(asked.unwrap_or_default(), &keys)?;
        if sets.is_some() || !asked.is_empty() {
            self.needs(General::GroupingSets);
        }
        if grouped {
            let names = &self.scope;
            let count = aggregates.len();
            let regroup = |expr: &mut Expr| {
                let done = regroup(expr, &keys, count, names);
                done.map_err(|error| self.at_ungrouped(error, select))
            };
            output.iter_mut().try_for_each(regroup)?;
            having.iter_mut().try_for_each(regroup)?;
            for key in &mut sort {
                if let SortBy::Expr(expr) = &mut key.expr {
                    regroup(expr)?;
                }
            }
            apart.iter_mut().try_for_each(|(expr, _)| regroup(expr))?;
            let mut result = Ok(());
            for window in &mut windows {
                window.expressions_mut(&mut |expr| {
                    if result.is_ok() {
                        result = regroup(expr);
                    }
                });
            }
            result?;
        }
        let wanted = (!grouped && !distinct)
            .then(|| wanted_order(&sort, &output))
            .flatten();
        let ordered = self.place_conditions(&mut sources, conditions, wanted.as_deref());
        // What programs sort and tell apart has to fit into memory.
        let kept = grouped || distinct || (!sort.is_empty() && !ordered);
        if kept && reads_much(&sources) {
            self.needs(General::LargeScan);
        }
        // What is read again for each row programs read.
        let mut kinds = sources.iter().map(|source| &source.kind);
        let row_by_row = kinds.any(|kind| kind.is_row_by_row(&self.subqueries));
        if row_by_row && self.general.is_some_and(General::may_be_row_by_row) {
            self.general = None;
        }
        let mut grouping = grouped.then(|| {
            Box::new(Grouping {
                keys,
                types,
                sets,
                aggregates,
                asked,
                having,
            })
        });
        if !lists_sets {
            let readers = Readers {
                output: &mut output,
                grouping: grouping.as_deref_mut(),
                windows: &mut windows,
                sort: &mut sort,
                apart: &mut apart,
            };
            self.read_apart(&mut sources, readers);
        }
        if asked_behind && let Some(grouping) = grouping.take() {
            let behind = AskedBehind {
                output: &mut output,
                windows: &mut windows,
                sort: &mut sort,
                apart: &mut apart,
            };
            sources = self.groups_apart(sources, grouping, behind, reason)?;
        }
        let body = Body::From {
            sources,
            grouping,
            windows,
            output,
        };
        let ordered = ordered && behind.is_none();
        let (body, sort) = match behind {
            Some(behind) => self.set_behind(body, behind, reason),
            None => (body, sort),
        };
        let mut select = plain(body, sort);
        select.distinct = distinct;
        select.distinct_on = apart;
        select.ordered = ordered;
        Ok((select, columns))
    }

    /// Gives each condition to the first table where everything in it is known, and each table its path.
    pub(super) fn place_conditions(
        &mut self,
        sources: &mut [Source],
        conditions: Vec<Expr>,
        wanted: Option<&[Wanted]>,
    ) -> bool {
        let count = sources.len();
        if count == 0 {
            return false;
        }
        // Rows of the tables before may be missing behind such a join: conditions wait for the last.
        let mut wanted = wanted;
        if sources.iter().any(Source::is_late) {
            // Rows without a partner come last.
            wanted = None;
            let last = outermost(sources, 0, count - 1).unwrap_or(count - 1);
            sources[last].filter.extend(conditions);
        } else {
            place(sources, 0, conditions, &self.subqueries);
        }
        let whole: Vec<bool> = (0..count).map(|at| is_whole(sources, at)).collect();
        let mut ordered = false;
        for (number, source) in sources.iter_mut().enumerate() {
            if whole[number] {
                continue;
            }
            if source.kind.is_kept() {
                let deciding = if source.join == Join::Left {
                    &source.on
                } else {
                    &source.filter
                };
                source.lookup = path::lookup(number as u16, deciding, &self.subqueries);
            }
            let late = source.is_late();
            let SourceKind::Table { shape, access } = &mut source.kind else {
                continue;
            };
            let deciding = if source.join == Join::Left {
                &mut source.on
            } else {
                &mut source.filter
            };
            if late {
                // Which of its rows have no partner is known at the end only.
                continue;
            }
            // The first table's order is that of the result: every later one is read for each of its rows.
            let wanted = wanted.filter(|_| number == 0);
            let (chosen, mut covered, gives) =
                path::choose(shape, number as u16, deciding, &self.subqueries, wanted);
            covered.sort_unstable();
            if chosen.any.is_none() {
                for at in covered.into_iter().rev() {
                    source.covered.push(deciding.remove(at));
                }
            }
            if number == 0 {
                ordered = gives && source.join == Join::Inner;
            }
            if number > 0 && chosen.index.is_none() && count <= STEPS_MAX {
                self.needs(General::JoinWithoutIndex);
            }
            *access = chosen;
        }
        ordered && wanted.is_some()
    }
}

impl Source {
    /// Whether rows of the tables before it may be missing behind its join.
    pub fn is_late(&self) -> bool {
        matches!(self.join, Join::Right | Join::Full)
    }

    /// Joined to all before it.
    pub fn inner(kind: SourceKind) -> Self {
        Self {
            kind,
            join: Join::Inner,
            nested: 0,
            item: 0,
            begins_late: false,
            filter: Vec::new(),
            on: Vec::new(),
            covered: Vec::new(),
            lookup: None,
        }
    }
}

impl SourceKind {
    /// Whether its rows are made once and kept.
    pub fn is_kept(&self) -> bool {
        matches!(
            self,
            Self::System(_) | Self::Query(_) | Self::Recursive(_) | Self::Work { .. }
        )
    }
}

/// Gives each condition to the first table from number `from` on where everything in it is known: to those of a join that begins with `from`, if
/// one does, so that it decides whether they match.
pub(super) fn place(
    sources: &mut [Source],
    from: usize,
    conditions: Vec<Expr>,
    subqueries: &[Subquery],
) {
    let Some(last) = sources.len().checked_sub(1) else {
        return;
    };
    // One that is joined from the left begins what is looked at before its own filter is.
    let decides = sources[from].join == Join::Left;
    let inside = from + usize::from(decides);
    for condition in conditions {
        let known = |at: &usize| reads_before(&condition, subqueries, *at as u16 + 1);
        let home = (from..last).find(known).unwrap_or(last);
        let home = outermost(sources, inside, home).unwrap_or(home);
        match decides && home == from {
            true => sources[home].on.push(condition),
            false => sources[home].filter.push(condition),
        }
    }
}

/// The first table of the outermost join in parentheses, of those that begin from number `from` on, that a table stands in.
fn outermost(sources: &[Source], from: usize, at: usize) -> Option<usize> {
    (from..=at).find(|first| {
        let nested = usize::from(sources[*first].nested);
        nested > 0 && at <= first + nested
    })
}

/// Whether a table begins a join that keeps rows of its own side: all of the table's rows have a part in that.
pub(crate) fn is_whole(sources: &[Source], first: usize) -> bool {
    let nested = &sources[first + 1..=first + usize::from(sources[first].nested)];
    nested
        .iter()
        .any(|source| source.is_late() && usize::from(source.item) == first)
}

/// Whether an outer join may have no row of a table.
pub(super) fn may_miss(sources: &[Source], at: usize) -> bool {
    let mut before = sources[..=at].iter().enumerate();
    let on_right = before.any(|(first, source)| {
        matches!(source.join, Join::Left | Join::Full) && at <= first + usize::from(source.nested)
    });
    let mut behind = sources[at + 1..].iter();
    on_right || behind.any(|other| other.is_late() && usize::from(other.item) <= at)
}

pub(super) fn plain(body: Body, order: Vec<SortKey>) -> Select {
    Select {
        subqueries: Vec::new(),
        body,
        types: Vec::new(),
        distinct: false,
        keyed: Vec::new(),
        distinct_on: Vec::new(),
        order,
        ordered: false,
        limit: None,
        offset: None,
        ties: false,
        locks: Vec::new(),
        correlated: false,
        general: None,
        origin: Origin::Own,
    }
}

fn check_clauses(select: &ast::Select) -> Result<()> {
    let odd = select.top.is_some()
        || select.into.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || select.qualify.is_some()
        || !select.cluster_by.is_empty()
        || !select.sort_by.is_empty();
    if odd {
        return Err(SqlError::unsupported("this clause of SELECT"));
    }
    Ok(())
}
