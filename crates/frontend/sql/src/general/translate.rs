//! Bound queries as relations.

use super::fold::AggregateFold;
use super::function::Away;
use super::host::{SourceRows, Sources};
use super::order::Estimate;
use super::shape::{alone, is_integer, kind_of, reads_tables, type_of};
use super::sieve::Sieve;
use crate::bind::{Aggregate, AggregateKind, WINDOW_SLOTS};
use crate::error::{Result, SqlError};
use crate::exec::{KeptRows, Run};
use crate::expr::{Explain, Expr, ListSets};
use crate::plan::{Body, Grouping, Select, SortBy, Source, SourceKind, Subquery, choose};
use sqlparser::ast::SetOperator;
use std::sync::Arc;
use vellum_query::{
    Aggregate as Folded, Column, Comparison as Compared, Expected, Kind, Line, Relation, Scanned,
    SortKey, Symbols, Term, Window as Windowing, WindowFunction, Windowed,
};
use vellum_row::{Settings, Type, Typmod, ValueRef};

/// What becomes of subqueries that read the query around them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Subqueries {
    /// Joins.
    Joined,
    /// Functions that run them for each row.
    Asked,
}

/// Queries inside each other.
const HEIGHT_MAX: usize = 100;
/// Tables that are joined, and window functions, in one query.
pub(crate) const STEPS_MAX: usize = 100;

/// What a query can name: the columns of its tables, and what was grouped.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub tables: Vec<Vec<Column>>,
    pub slots: Vec<Column>,
    pub windows: Vec<Column>,
}

impl Level {
    /// The column of a slot.
    pub fn slot(&self, number: u16) -> Option<Column> {
        match number.checked_sub(WINDOW_SLOTS) {
            Some(number) => self.windows.get(usize::from(number)).copied(),
            None => self.slots.get(usize::from(number)).copied(),
        }
    }
}

/// A query while it is translated.
pub(super) struct Translation<'t, 'r, 'w> {
    pub run: &'t Run<'r, 'w>,
    pub symbols: Symbols,
    pub levels: Vec<Level>,
    pub sources: Sources<'t>,
    pub subqueries: Subqueries,
    /// Whether all tables are read by the host, in their order: that can be seen in what becomes of some of the rows, or the transaction writes
    /// meanwhile. All, since operators that run beside each other for one table have their shares of the others, too.
    pub in_order: bool,
    /// Expressions that it is inside of for which false and null are not the same.
    pub exact: u32,
    /// ORs that it is inside of.
    pub below_or: u32,
    /// Queries that it is inside of.
    height: usize,
    line: Line,
    away: Arc<Away>,
    settings: Arc<Settings>,
}

pub(super) fn built<T>(made: vellum_query::Result<T>) -> Result<T> {
    made.map_err(super::told)
}

impl<'t, 'r, 'w> Translation<'t, 'r, 'w> {
    pub fn new(run: &'t Run<'r, 'w>, line: Line, subqueries: Subqueries) -> Self {
        let away = Arc::new(Away {
            params: run.params.into(),
            settings: run.env.settings().clone(),
            line: line.clone(),
            lists: ListSets::within(run.listed_away.clone()),
        });
        Self {
            run,
            exact: 0,
            below_or: 0,
            symbols: Symbols::default(),
            levels: Vec::new(),
            sources: Sources::default(),
            subqueries,
            in_order: run.writes_as_it_reads.get(),
            height: 0,
            line,
            away,
            settings: Arc::new(run.env.settings().clone()),
        }
    }

    /// What its scans read.
    pub fn into_sources(self) -> Sources<'t> {
        self.sources
    }

    /// Tells operators whether the statement is over.
    pub fn line(&self) -> Line {
        self.line.clone()
    }

    pub fn away(&self) -> Arc<Away> {
        self.away.clone()
    }

    /// The query that is translated.
    pub fn level(&self) -> &Level {
        const NONE: &Level = &Level {
            tables: Vec::new(),
            slots: Vec::new(),
            windows: Vec::new(),
        };
        self.levels.last().unwrap_or(NONE)
    }

    pub(super) fn level_mut(&mut self) -> Result<&mut Level> {
        let level = self.levels.last_mut();
        level.ok_or_else(|| SqlError::internal("a query without level"))
    }

    /// A query that is a whole, or a table of another: it sees nothing of that, only what is around both.
    ///
    /// # Errors
    /// What it cannot be run for; those of subqueries that are run first.
    pub fn query(&mut self, select: &'t Select) -> Result<Relation> {
        let beside = self.levels.pop();
        let relation = match select.locks.is_empty() || self.levels.is_empty() {
            true => self
                .inner(select)
                .and_then(|rows| self.keeping(select, rows)),
            // It may read what is around both, and is run by itself.
            false => Err(SqlError::unsupported("FOR UPDATE of such a query")),
        };
        self.levels.extend(beside);
        relation
    }

    /// The whole statement's query. If it locks rows, their keys stand behind its columns, one for each of [`Select::locks`], and its limits are left
    /// to who takes the locks.
    pub fn top(&mut self, select: &'t Select) -> Result<Relation> {
        self.nested(select, true)
    }

    /// A query that sees those around it.
    pub fn inner(&mut self, select: &'t Select) -> Result<Relation> {
        if !select.locks.is_empty() {
            return self.locked(select);
        }
        self.nested(select, false)
    }

    /// A query inside of another that locks its rows: run by itself, first.
    fn locked(&mut self, select: &'t Select) -> Result<Relation> {
        if select.correlated {
            return Err(SqlError::unsupported("FOR UPDATE of such a query"));
        }
        let rows = match self.run.env.explain() {
            // Who asks for a plan locks nothing.
            Some((_, Explain::Plan)) => KeptRows::new(Vec::new()),
            _ => self.run.kept(select)?,
        };
        let kinds = select.types.iter().map(|ty| (*ty).into());
        let name = "locked".to_owned();
        self.scan(
            SourceRows::Kept(rows.rows.clone()),
            name,
            kinds.collect(),
            None,
            1,
        )
    }

    fn nested(&mut self, select: &'t Select, top: bool) -> Result<Relation> {
        // The plan's height: those who walk it recurse.
        if self.height >= HEIGHT_MAX {
            return Err(crate::parse::too_deep());
        }
        self.height += 1;
        self.levels.push(Level::default());
        let exact = std::mem::take(&mut self.exact);
        let below_or = std::mem::take(&mut self.below_or);
        let relation = self.whole(select, top && !select.locks.is_empty());
        (self.exact, self.below_or) = (exact, below_or);
        self.levels.pop();
        self.height -= 1;
        relation
    }

    /// `locked`: its rows are to be locked, as [`Self::top`] says.
    fn whole(&mut self, select: &'t Select, locked: bool) -> Result<Relation> {
        let subs = &select.subqueries;
        let (mut limit, mut offset) = (None, None);
        if !locked {
            let count = |expr: &Option<Expr>, what| {
                let expr = expr.as_ref().map(|expr| self.before(expr, subs));
                self.run.count_of(expr.transpose()?.as_deref(), subs, what)
            };
            limit = count(&select.limit, "LIMIT")?;
            offset = count(&select.offset, "OFFSET")?;
        } else if select.ties {
            return Err(SqlError::unsupported("FOR UPDATE with WITH TIES"));
        }
        let (mut relation, width) = self.body(select, locked)?;
        if select.distinct {
            relation = built(relation.distinct(&self.symbols))?;
        }
        let keys = order_of(select, &relation, width)?;
        if !select.distinct_on.is_empty() {
            relation = self.first_of(relation, select.distinct_on.len(), keys.clone())?;
        }
        if let (true, Some(limit)) = (select.ties, limit) {
            let skip = offset.unwrap_or(0);
            relation = self.with_ties(relation, keys.clone(), skip, limit)?;
            relation = built(relation.sort(&self.symbols, keys))?;
        } else {
            if !keys.is_empty() {
                relation = built(relation.sort(&self.symbols, keys))?;
            }
            if limit.is_some() || offset.is_some() {
                relation = built(relation.limit(offset.unwrap_or(0), limit))?;
            }
        }
        if relation.columns().len() > width {
            let columns = relation.columns()[..width].to_vec();
            relation = built(relation.only(columns))?;
        }
        self.computed_last(relation, select, locked)
    }

    /// The rows of a query, which are sorted, with the columns that are computed last instead of what was kept for these behind all others.
    fn computed_last(
        &mut self,
        relation: Relation,
        select: &'t Select,
        locked: bool,
    ) -> Result<Relation> {
        let last = select.computed_last();
        if last.is_empty() {
            return Ok(relation);
        }
        let locks = if locked { select.locks.len() } else { 0 };
        let columns = &relation.columns()[..select.types.len() + locks];
        let mut terms: Vec<Term> = columns.iter().map(|column| column.term()).collect();
        for (at, expr) in last {
            terms[at] = self.term(expr, select.types[at], &select.subqueries)?;
        }
        built(relation.project(&self.symbols, terms))
    }

    /// So many rows behind those that are skipped, and those that are equal to the last of them: the rank of none of these is above its place.
    fn with_ties(
        &mut self,
        relation: Relation,
        keys: Vec<SortKey>,
        skip: u64,
        limit: u64,
    ) -> Result<Relation> {
        if limit == 0 {
            return built(relation.limit(0, Some(0)));
        }
        let numbered = |function| Windowing {
            function: Windowed::Function(function),
            arguments: Vec::new(),
            result: Type::Int8,
            partition: Vec::new(),
            order: keys.clone(),
            frame: None,
            framing: None,
        };
        let made = vec![
            numbered(WindowFunction::RowNumber),
            numbered(WindowFunction::Rank),
        ];
        let width = relation.columns().len();
        let relation = built(relation.windows(&self.symbols, made))?;
        let [place, rank] = [width, width + 1].map(|at| relation.columns()[at].term());
        let number = |number: u64| {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            Term::literal(Type::Int8, ValueRef::Int8(number)).map_err(super::told)
        };
        let last = skip.saturating_add(limit);
        let conditions = [
            Term::compare(&self.symbols, Compared::Greater, place, number(skip)?),
            Term::compare(&self.symbols, Compared::LessEqual, rank, number(last)?),
        ];
        let relation = built(relation.filter(Term::all(conditions)))?;
        let columns = relation.columns()[..width].to_vec();
        built(relation.only(columns))
    }

    /// Of rows that are equal in the last `count` columns the first in this order.
    fn first_of(
        &mut self,
        relation: Relation,
        count: usize,
        order: Vec<SortKey>,
    ) -> Result<Relation> {
        let columns = relation.columns().to_vec();
        let (_, apart) = columns.split_at(columns.len() - count);
        let window = Windowing {
            function: Windowed::Function(WindowFunction::RowNumber),
            arguments: Vec::new(),
            result: Type::Int8,
            partition: apart.iter().map(|column| column.term()).collect(),
            order,
            frame: None,
            framing: None,
        };
        let symbols = &self.symbols;
        let numbered = built(relation.windows(symbols, vec![window]))?;
        let number = numbered.columns()[columns.len()].term();
        let one = built(Term::literal(Type::Int8, ValueRef::Int8(1)))?;
        let first = Term::compare(symbols, vellum_query::Comparison::Equal, number, one);
        built(numbered.filter(first).and_then(|rows| rows.only(columns)))
    }

    /// The rows of a query before they are made distinct and sorted: its columns, of one that is `locked` the keys of its rows, and if some are computed last all that these may read; behind so
    /// many in all the keys of the order.
    fn body(&mut self, select: &'t Select, locked: bool) -> Result<(Relation, usize)> {
        let subs = &select.subqueries;
        let mut width = select.types.len();
        match &select.body {
            Body::Values(rows) => {
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    let mut made = Vec::with_capacity(row.len());
                    for expr in row {
                        let expr = self.before(expr, subs)?;
                        made.push(self.run.value_of(&expr, subs)?);
                    }
                    values.push(made);
                }
                let made = Relation::values(&self.symbols, &select.types, &values);
                Ok((built(made)?, width))
            }
            Body::Set {
                operator,
                all,
                left,
                right,
            } => {
                // A chain of the same operation is one step of many parts.
                let mut parts = vec![&**right];
                let mut first = &**left;
                while *operator == SetOperator::Union
                    && let Body::Set {
                        operator: SetOperator::Union,
                        all: inner,
                        left,
                        right,
                    } = &first.body
                    && inner == all
                    && first.order.is_empty()
                    && first.limit.is_none()
                    && first.offset.is_none()
                {
                    parts.push(right);
                    first = left;
                }
                let mut relation = self.query(first)?;
                if parts.len() > STEPS_MAX {
                    return Err(crate::parse::too_deep());
                }
                let last = parts.len() - 1;
                for (number, part) in parts.into_iter().rev().enumerate() {
                    let right = self.query(part)?;
                    let all = *all || (*operator == SetOperator::Union && number < last);
                    relation = self.set(*operator, all, relation, right)?;
                }
                Ok((relation, width))
            }
            Body::From {
                sources,
                grouping,
                windows,
                output,
            } => {
                let mut keyed = select.keyed.clone();
                let locks = if locked { &select.locks[..] } else { &[] };
                let of_tables = locks.iter().filter(|lock| lock.column.is_none());
                keyed.extend(of_tables.map(|lock| lock.source as u16));
                let mut relation = self.from(sources, subs, &keyed)?;
                if let Some(grouping) = grouping {
                    relation = self.group(relation, grouping, subs)?;
                }
                if !windows.is_empty() {
                    relation = self.windows(relation, windows, subs)?;
                }
                let last = select.computed_last();
                let mut terms = Vec::with_capacity(output.len());
                for (at, (expr, ty)) in output.iter().zip(&select.types).enumerate() {
                    terms.push(match last.iter().any(|(other, _)| *other == at) {
                        true => built(Term::literal(*ty, ValueRef::Null))?,
                        false => self.term(expr, *ty, subs)?,
                    });
                }
                for lock in locks {
                    let table = self.level().tables.get(lock.source);
                    let key = table.and_then(|columns| match lock.column {
                        None => columns.last(),
                        Some(at) => columns.get(usize::from(at)),
                    });
                    let key = key.ok_or_else(|| SqlError::internal("a lock of no table"))?;
                    terms.push(key.term());
                }
                width += locks.len();
                for key in &select.order {
                    if let SortBy::Expr(expr) = &key.expr {
                        terms.push(self.term(expr, key.ty, subs)?);
                    }
                }
                for (expr, ty) in &select.distinct_on {
                    terms.push(self.term(expr, *ty, subs)?);
                }
                if last.is_empty() {
                    return Ok((built(relation.project(&self.symbols, terms))?, width));
                }
                let read = relation.columns().to_vec();
                let relation = built(relation.extend(&self.symbols, terms))?;
                let made = &relation.columns()[read.len()..];
                let columns = [&made[..width], &read, &made[width..]].concat();
                let width = width + read.len();
                Ok((built(relation.only(columns))?, width))
            }
        }
    }

    fn set(
        &mut self,
        operator: SetOperator,
        all: bool,
        left: Relation,
        right: Relation,
    ) -> Result<Relation> {
        let symbols = &self.symbols;
        built(match (operator, all) {
            (SetOperator::Union, true) => left.union(symbols, right),
            (SetOperator::Union, false) => {
                let both = left.union(symbols, right);
                both.and_then(|both| both.distinct(symbols))
            }
            (SetOperator::Intersect | SetOperator::Except, false) => {
                let found = operator == SetOperator::Intersect;
                let left = left.distinct(symbols);
                left.and_then(|left| left.matched(symbols, right, found))
            }
            (SetOperator::Intersect, true) => left.matched_singly(symbols, right, true),
            (SetOperator::Except, true) => left.matched_singly(symbols, right, false),
            _ => return Err(SqlError::unsupported(format!("{operator} here"))),
        })
    }

    /// Whether it reads nothing of what surrounds the query.
    pub(super) fn is_inside(&self, expr: &Expr) -> bool {
        let mut inside = true;
        expr.walk(&mut |expr| inside &= !matches!(expr, Expr::Outer { .. }));
        inside
    }

    pub(super) fn all_of(
        &mut self,
        conditions: &[&Expr],
        subs: &'t [Subquery],
    ) -> Result<Vec<Term>> {
        let terms = conditions.iter().map(|expr| self.condition(expr, subs));
        terms.collect()
    }

    /// Rows for which all are true.
    pub(super) fn filter(
        &mut self,
        relation: Relation,
        conditions: Vec<&Expr>,
        subs: &'t [Subquery],
    ) -> Result<Relation> {
        if conditions.is_empty() {
            return Ok(relation);
        }
        // One step: of several, DataFusion takes apart a subquery wrongly that reads the query around it in more than one.
        let terms = self.guarded(&conditions, &[], subs)?;
        built(relation.filter(Term::all(terms)))
    }

    /// The rows of a source; of a table those for which `own` is true.
    pub(super) fn source(
        &mut self,
        source: &'t Source,
        own: &[&Expr],
        subs: &'t [Subquery],
        keyed: bool,
    ) -> Result<(Relation, Estimate)> {
        let estimate = self.estimate(source, own)?;
        let (rows, name, kinds) = match &source.kind {
            SourceKind::Nothing => return Ok((built(Relation::one_row())?, estimate)),
            SourceKind::Query(select) if select.is_row_by_row() => {
                self.check_before(select, 0)?;
                let rows = SourceRows::Kept(self.run.rows_by_program(select)?.rows.clone());
                let kinds = select.types.iter().map(|ty| (*ty).into());
                (rows, "lateral".to_owned(), kinds.collect())
            }
            SourceKind::Query(select) => return Ok((self.query(select)?, estimate)),
            SourceKind::Lateral(_) => {
                return Err(SqlError::unsupported("LATERAL in such a query"));
            }
            SourceKind::Table { shape, .. } => {
                let conditions = own.iter().map(|expr| self.computed(alone(expr)));
                let conditions: Vec<Expr> = conditions.collect();
                let (access, ..) = choose(shape, 0, &conditions, &[], None);
                // Readers ask nobody: an answer per row would cost more than reading beside each other gains.
                let asks = conditions.iter().any(Expr::asks);
                let rows = estimate.found(&access);
                if !asks && let Some(ranges) = self.ranges(shape, &access, rows)? {
                    let expected = estimate.expected(source, shape.table().schema.len());
                    let relation = self.parted(shape, ranges, conditions, expected, keyed)?;
                    return Ok((relation, estimate));
                }
                let columns = shape.table().schema.columns();
                let mut kinds: Vec<Kind> = columns.map(kind_of).collect();
                if keyed {
                    kinds.push(Type::Bytea.into());
                }
                let name = shape.relation.name.to_string();
                let schema = &shape.table().schema;
                let (sieve, _) = Sieve::new(schema, &self.away.params, conditions, |_| true);
                let rows = SourceRows::Table {
                    shape: shape.clone(),
                    access,
                    sieve,
                };
                (rows, name, kinds)
            }
            SourceKind::Recursive(recursive) => {
                self.check_before(&recursive.base, 0)?;
                self.check_before(&recursive.step, 0)?;
                let rows = SourceRows::Kept(self.run.recursive_rows(recursive)?.rows.clone());
                let kinds = recursive.base.types.iter().map(|ty| (*ty).into());
                (rows, "recursive".to_owned(), kinds.collect())
            }
            SourceKind::Work { number, types } => {
                let rows = SourceRows::Kept(self.run.work(*number)?.rows.clone());
                let kinds = types.iter().map(|ty| (*ty).into());
                (rows, "work".to_owned(), kinds.collect())
            }
            SourceKind::System(definition) => {
                let rows = SourceRows::Kept(self.run.system_rows(definition)?.rows.clone());
                let kinds = definition.columns.iter().map(|column| column.ty.into());
                (rows, definition.name.to_owned(), kinds.collect())
            }
            SourceKind::Series { from, to, step, ty } => {
                let mut bounds = [Some(0); 3];
                for (bound, expr) in bounds.iter_mut().zip([from, to, step]) {
                    let expr = self.before(expr, subs)?;
                    *bound = self.run.value_of(&expr, subs)?.as_ref().as_i64();
                }
                let rows = match bounds {
                    [Some(_), Some(_), Some(0)] => return Err(crate::exec::no_step()),
                    [Some(from), Some(to), Some(step)] => SourceRows::Series {
                        from,
                        to,
                        step,
                        ty: *ty,
                    },
                    _ => SourceRows::Kept(Arc::default()),
                };
                (rows, "generate_series".to_owned(), vec![(*ty).into()])
            }
            SourceKind::Function { calls, ordinality } if !reads_tables(calls, subs) => {
                let rows = self.run.rows_of(calls, *ordinality, subs)?;
                let types = calls.iter().flat_map(|call| &call.types);
                let mut kinds: Vec<_> = types.map(|ty| (*ty).into()).collect();
                kinds.extend(ordinality.then_some(Kind::from(Type::Int8)));
                let rows = SourceRows::Kept(Arc::new(rows));
                (rows, "function".to_owned(), kinds)
            }
            SourceKind::Function { .. } => {
                return Err(SqlError::unsupported(
                    "this function in FROM of such a query",
                ));
            }
        };
        let expected = estimate.expected(source, kinds.len());
        let relation = self.scan(rows, name, kinds, expected, 1)?;
        Ok((relation, estimate))
    }

    /// The rows of a source that is read in so many parts.
    pub(super) fn scan(
        &mut self,
        rows: SourceRows,
        name: String,
        kinds: Vec<Kind>,
        expected: Option<Expected>,
        parts: usize,
    ) -> Result<Relation> {
        self.sources.scans.push(rows);
        let scanned = Scanned {
            line: self.line.clone(),
            source: self.sources.scans.len() - 1,
            name,
            expected,
            kinds,
            parts,
        };
        built(Relation::scan(&self.symbols, scanned))
    }

    fn group(
        &mut self,
        relation: Relation,
        grouping: &'t Grouping,
        subs: &'t [Subquery],
    ) -> Result<Relation> {
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for (expr, ty) in grouping.keys.iter().zip(&grouping.types) {
            keys.push(self.term(expr, *ty, subs)?);
        }
        let mut folded = Vec::with_capacity(grouping.aggregates.len());
        for aggregate in &grouping.aggregates {
            folded.push(self.aggregate(aggregate, subs, false)?);
        }
        let symbols = &self.symbols;
        let grouped = match &grouping.sets {
            None if grouping.asked.is_empty() => relation.group(symbols, keys, folded),
            None => {
                let all = [(0..keys.len()).collect()];
                relation.group_sets(symbols, keys, folded, &all, &grouping.asked)
            }
            Some(sets) => relation.group_sets(symbols, keys, folded, sets, &grouping.asked),
        };
        let grouped = built(grouped)?;
        let level = self.level_mut()?;
        level.slots = grouped.columns().to_vec();
        level.tables.clear();
        match &grouping.having {
            Some(having) => self.filter(grouped, vec![having], subs),
            None => Ok(grouped),
        }
    }

    /// What operators have of their own.
    fn own_aggregate(
        &mut self,
        aggregate: &'t Aggregate,
        argument: &'t Expr,
        finish: Arc<AggregateFold>,
        subs: &'t [Subquery],
    ) -> Result<Option<Folded>> {
        let kind = aggregate.kind;
        match kind {
            AggregateKind::Minimum | AggregateKind::Maximum => {
                let term = self.term(argument, aggregate.ty(), subs)?;
                Ok(Folded::extreme(kind == AggregateKind::Maximum, term))
            }
            AggregateKind::Sum | AggregateKind::Average
                if matches!(aggregate.ty(), Type::Numeric | Type::Int8) =>
            {
                // An integer that is summed as a number is summed as what it is, unless the number is rounded.
                let (argument, ty) = match argument {
                    Expr::Cast {
                        operand,
                        typmod: Typmod::NONE,
                        ..
                    } if is_integer(operand, self.level()) => {
                        let ty = type_of(operand, self.level()).unwrap_or(aggregate.ty());
                        (&**operand, ty)
                    }
                    other => (other, aggregate.ty()),
                };
                let terms = match self.long_product(argument, subs)? {
                    Some((left, right)) => vec![left, right],
                    None => vec![self.term(argument, ty, subs)?],
                };
                let plain = kind == AggregateKind::Sum && aggregate.result == Type::Numeric;
                // The sum of integers has no digits behind the point, and they are not decimals.
                Ok(Folded::sum(terms, finish, plain, aggregate.result))
            }
            _ => Ok(None),
        }
    }

    /// An aggregate that operators have nothing of their own for.
    pub(super) fn fold_of(
        &mut self,
        aggregate: &'t Aggregate,
        subs: &'t [Subquery],
    ) -> Result<Folded> {
        let filter = aggregate.filter.as_ref();
        let filter = filter
            .map(|filter| self.condition(filter, subs))
            .transpose()?;
        let mut arguments = Vec::with_capacity(aggregate.arguments.len());
        for (argument, ty) in &aggregate.arguments {
            arguments.push(self.term(argument, *ty, subs)?);
        }
        let fold = Arc::new(AggregateFold::new(aggregate, self.settings.clone()));
        Ok(Folded::fold(fold, arguments, aggregate.result).filtered(filter))
    }

    pub(super) fn aggregate(
        &mut self,
        aggregate: &'t Aggregate,
        subs: &'t [Subquery],
        in_window: bool,
    ) -> Result<Folded> {
        let filter = aggregate.filter.as_ref();
        let filter = filter
            .map(|filter| self.condition(filter, subs))
            .transpose()?;
        let Some((argument, ty)) = aggregate.arguments.first() else {
            return Ok(Folded::count_rows().filtered(filter));
        };
        let fold = Arc::new(AggregateFold::new(aggregate, self.settings.clone()));
        // Frames of windows lose rows at their beginning, which only folds know of.
        let own = match aggregate.distinct || in_window {
            true => None,
            false => self.own_aggregate(aggregate, argument, fold.clone(), subs)?,
        };
        if let Some(own) = own {
            return Ok(own.filtered(filter));
        }
        let mut arguments = vec![self.term(argument, *ty, subs)?];
        if aggregate.kind == AggregateKind::Count {
            let argument = &arguments[0];
            let own = match aggregate.distinct {
                false => Some(Folded::count(argument.clone())),
                true if in_window || !aggregate.order.is_empty() => None,
                true => Folded::count_distinct(argument.clone()),
            };
            if let Some(own) = own {
                return Ok(own.filtered(filter));
            }
        }
        for (argument, ty) in &aggregate.arguments[1..] {
            arguments.push(self.term(argument, *ty, subs)?);
        }
        let mut order = Vec::with_capacity(aggregate.order.len());
        for key in &aggregate.order {
            let SortBy::Expr(expr) = &key.expr else {
                return Err(SqlError::internal("an aggregate by a column of the result"));
            };
            // What is an argument, too, is one value for both.
            let mut own = aggregate.arguments.iter();
            let own = own.position(|(argument, ty)| argument == expr && *ty == key.ty);
            order.push(SortKey {
                term: match own {
                    Some(at) => arguments[at].clone(),
                    None => self.term(expr, key.ty, subs)?,
                },
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
        }
        let folded = Folded::fold(fold, arguments, aggregate.result).ordered(order);
        let folded = match aggregate.distinct {
            true => folded.distinct(),
            false => folded,
        };
        Ok(folded.filtered(filter))
    }
}

/// The keys of ORDER BY over rows of `width` columns of the result and what stands behind them.
fn order_of(select: &Select, relation: &Relation, width: usize) -> Result<Vec<SortKey>> {
    let columns = relation.columns();
    let mut extra = columns[width..].iter().copied();
    let mut keys = Vec::with_capacity(select.order.len());
    for key in &select.order {
        let column = match &key.expr {
            SortBy::Output(at) => Some(columns[*at]),
            SortBy::Expr(_) => extra.next(),
        };
        let column = column.ok_or_else(|| SqlError::internal("a key of nothing"))?;
        keys.push(SortKey {
            term: column.term(),
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
    }
    Ok(keys)
}
