//! Relations: rows, and what is made of them.

use crate::aggregate::Aggregate;
use crate::batch::{Batch, schema};
use crate::error::{Error, Failure, Result};
use crate::function::{KeyFunction, RowFunction};
use crate::scan::{Rows, Scanned};
use crate::term::{Column, Term};
use crate::types::{Extent, Kind};
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column as Name, NullEquality};
use datafusion::datasource::provider_as_source;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate as GroupedBy, Expr, GroupingSet, JoinType, LogicalPlan, LogicalPlanBuilder, SortExpr,
    bitwise_and, bitwise_or, bitwise_shift_left, bitwise_shift_right, cast, lit, when,
};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use vellum_row::{Type, Value, ValueRef};

/// Numbers of a query's columns and functions.
#[derive(Debug, Default)]
pub struct Symbols {
    last: Cell<u32>,
    /// The functions that make keys, by their type.
    keys: RefCell<Vec<(Type, u32, Arc<dyn RowFunction>)>>,
}

impl Symbols {
    pub(crate) fn next(&self) -> u32 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// The function that makes keys of a type, and its number: one, so that equal keys are known to be. A step that computes two of one name, and takes them for different ones, is none.
    pub(crate) fn key_of(&self, ty: Type) -> (u32, Arc<dyn RowFunction>) {
        let mut keys = self.keys.borrow_mut();
        if let Some((_, number, function)) = keys.iter().find(|(known, ..)| *known == ty) {
            return (*number, function.clone());
        }
        let number = self.next();
        let function: Arc<dyn RowFunction> = Arc::new(KeyFunction(ty));
        keys.push((ty, number, function.clone()));
        (number, function)
    }

    pub(crate) fn column(&self, kind: impl Into<Kind>) -> Column {
        let number = self.next();
        let Kind { ty, extent } = kind.into();
        Column { number, ty, extent }
    }
}

/// Keys of grouping sets, at most.
const GROUPING_KEYS_MAX: usize = 48;

/// Rows of some columns.
#[derive(Clone, Debug)]
pub struct Relation {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Vec<Column>,
}

/// How two relations are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "SQL's words")]
pub enum Joined {
    Inner,
    Left,
    Right,
    Full,
}

/// A key to sort by.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// What is compared.
    pub term: Term,
    /// Whether the largest comes first.
    pub descending: bool,
    /// Whether nulls come before all.
    pub nulls_first: bool,
}

impl SortKey {
    pub(crate) fn expr(self, symbols: &Symbols) -> SortExpr {
        let key = self.term.key(symbols).expr;
        key.sort(!self.descending, self.nulls_first)
    }
}

impl Relation {
    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn with(plan: LogicalPlanBuilder, columns: Vec<Column>) -> Result<Self> {
        let plan = plan.build()?;
        Ok(Self { plan, columns })
    }

    fn builder(self) -> (LogicalPlanBuilder, Vec<Column>) {
        (LogicalPlanBuilder::new(self.plan), self.columns)
    }

    /// The rows of a table, which the host is asked for.
    ///
    /// # Errors
    /// None that is known.
    pub fn scan(symbols: &Symbols, scanned: Scanned) -> Result<Self> {
        let columns: Vec<Column> = scanned
            .kinds
            .iter()
            .map(|kind| symbols.column(*kind))
            .collect();
        let name = format!("{} {}", scanned.name, symbols.next());
        let rows = Arc::new(Rows::new(scanned, &columns));
        Self::named(name, provider_as_source(rows), columns)
    }

    fn named(
        name: String,
        source: Arc<dyn datafusion::logical_expr::TableSource>,
        columns: Vec<Column>,
    ) -> Result<Self> {
        let reference = datafusion::common::TableReference::bare(name);
        let builder = LogicalPlanBuilder::scan(reference.clone(), source, None)?;
        // Columns go by their numbers alone.
        let plain = columns.iter().map(|column| {
            let name = column.name();
            Expr::Column(Name::new(Some(reference.clone()), name.clone())).alias(name)
        });
        let plain: Vec<Expr> = plain.collect();
        Self::with(builder.project(plain)?, columns)
    }

    /// These rows.
    ///
    /// # Errors
    /// Values that are not of their column's type.
    pub fn values(symbols: &Symbols, types: &[Type], rows: &[Vec<Value>]) -> Result<Self> {
        let columns: Vec<Column> = types.iter().map(|ty| symbols.column(*ty)).collect();
        let schema = schema(columns.iter().map(|column| (column.name(), column.kind())));
        let kinds: Vec<Kind> = types.iter().map(|ty| Kind::from(*ty)).collect();
        let mut batches: Vec<RecordBatch> = Vec::new();
        for rows in rows.chunks(crate::BATCH_ROWS) {
            let mut batch = Batch::new(&kinds);
            for row in rows {
                batch.push(row.iter().map(Value::as_ref))?;
            }
            batches.push(batch.finish(&schema)?);
        }
        let table = MemTable::try_new(schema, vec![batches])?;
        let name = format!("values {}", symbols.next());
        Self::named(name, provider_as_source(Arc::new(table)), columns)
    }

    /// One row without columns.
    ///
    /// # Errors
    /// None that is known.
    pub fn one_row() -> Result<Self> {
        Self::with(LogicalPlanBuilder::empty(true), Vec::new())
    }

    /// The rows for which a term is true.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn filter(self, condition: Term) -> Result<Self> {
        let (builder, columns) = self.builder();
        Self::with(builder.filter(condition.expr)?, columns)
    }

    /// A row of terms for each row.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn project(self, symbols: &Symbols, terms: Vec<Term>) -> Result<Self> {
        let columns: Vec<Column> = terms
            .iter()
            .map(|term| symbols.column(term.kind()))
            .collect();
        let named = terms.into_iter().zip(&columns);
        let named: Vec<Expr> = named
            .map(|(term, column)| term.expr.alias(column.name()))
            .collect();
        let (builder, _) = self.builder();
        Self::with(builder.project(named)?, columns)
    }

    /// The rows as they are, however few of their columns are read: the others, which draw, are computed all the same. DataFusion leaves out what nobody reads; so a condition reads them, which
    /// is true.
    ///
    /// # Errors
    /// None that is known.
    pub fn keeping(self, symbols: &Symbols, columns: &[Column]) -> Result<Self> {
        let terms = columns.iter().map(|column| column.term()).collect();
        let read = Term::call(symbols, Arc::new(Read), terms, Type::Bool, true);
        self.filter(read)
    }

    /// The rows with terms behind their columns.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn extend(self, symbols: &Symbols, terms: Vec<Term>) -> Result<Self> {
        if terms.is_empty() {
            return Ok(self);
        }
        let mut columns = self.columns.clone();
        let mut named: Vec<Expr> = columns.iter().map(|column| column.term().expr).collect();
        for term in terms {
            let column = symbols.column(term.kind());
            named.push(term.expr.alias(column.name()));
            columns.push(column);
        }
        let (builder, _) = self.builder();
        Self::with(builder.project(named)?, columns)
    }

    /// The rows with what of these terms may be another value each time behind their columns: each of these, and all that are equal, is such a column then, computed once a row.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub(crate) fn drawn(self, symbols: &Symbols, terms: Vec<&mut Term>) -> Result<Self> {
        let width = self.columns.len();
        let mut volatile: Vec<&mut Term> = terms
            .into_iter()
            .filter(|term| term.expr.is_volatile())
            .collect();
        let mut made: Vec<Term> = Vec::new();
        let mut places = Vec::with_capacity(volatile.len());
        for term in &volatile {
            let known = made.iter().position(|other| other.expr == term.expr);
            places.push(known.unwrap_or(made.len()));
            if known.is_none() {
                made.push(Term::clone(term));
            }
        }
        let drawn = self.extend(symbols, made)?;
        for (term, place) in volatile.iter_mut().zip(places) {
            **term = drawn.columns[width + place].term();
        }
        Ok(drawn)
    }

    /// These of its columns.
    ///
    /// # Errors
    /// Columns that it has not.
    pub fn only(self, columns: Vec<Column>) -> Result<Self> {
        let named: Vec<Expr> = columns.iter().map(|column| column.term().expr).collect();
        let (builder, _) = self.builder();
        Self::with(builder.project(named)?, columns)
    }

    /// The rows of both together where all conditions are true; of an outer join those without partner, too.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn join(self, right: Self, joined: Joined, conditions: Vec<Term>) -> Result<Self> {
        let kind = match joined {
            Joined::Inner => JoinType::Inner,
            Joined::Left => JoinType::Left,
            Joined::Right => JoinType::Right,
            Joined::Full => JoinType::Full,
        };
        let (builder, mut columns) = self.builder();
        columns.extend(&right.columns);
        let alone = conditions.is_empty();
        let condition = Term::all(conditions).expr;
        let plan = match (kind, alone) {
            (JoinType::Inner, true) => builder.cross_join(right.plan)?,
            _ => builder.join_on(right.plan, kind, [condition])?,
        };
        Self::with(plan, columns)
    }

    /// One row for each set of equal keys: the keys, then the aggregates.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn group(
        self,
        symbols: &Symbols,
        mut keys: Vec<Term>,
        mut aggregates: Vec<Aggregate>,
    ) -> Result<Self> {
        // A key is compared and shown, an argument of an aggregate may be a key of its order.
        let own = aggregates.iter_mut().flat_map(Aggregate::terms_mut);
        let terms = keys.iter_mut().chain(own).collect();
        let drawn = self.drawn(symbols, terms)?;
        let mut exprs = Vec::with_capacity(keys.len());
        let mut folded = Vec::new();
        let mut columns = Vec::new();
        for term in keys {
            let column = symbols.column(term.kind());
            columns.push(column);
            if term.kind().is_exact() {
                exprs.push(term.expr.alias(column.name()));
                continue;
            }
            // Equal values may look different: one of them is shown.
            let key = symbols.column(Type::Bytea);
            folded.push(first_of(term.expr.clone()).alias(column.name()));
            exprs.push(term.key(symbols).expr.alias(key.name()));
        }
        for aggregate in aggregates {
            let column = symbols.column(aggregate.kind());
            folded.push(aggregate.expr(symbols)?.alias(column.name()));
            columns.push(column);
        }
        let (builder, _) = drawn.builder();
        let grouped = Self::with(builder.aggregate(exprs, folded)?, Vec::new())?;
        grouped.only(columns)
    }

    /// The rows grouped by several sets of these keys, given by their numbers, one behind the other: the keys (null where they are not of the set),
    /// the aggregates, then for each of `asked` a number whose bits say, key by key, that it is not of the set.
    ///
    /// # Errors
    /// Sets of too many keys; several sets without keys, and no other, of rows or aggregates that would differ if they were computed again.
    pub fn group_sets(
        self,
        symbols: &Symbols,
        keys: Vec<Term>,
        aggregates: Vec<Aggregate>,
        sets: &[Vec<usize>],
        asked: &[Vec<usize>],
    ) -> Result<Self> {
        // The number has 64 bits, of which some tell equal sets apart.
        if keys.len() > GROUPING_KEYS_MAX {
            return Err(Error::Unplanned("sets of so many keys".to_owned()));
        }
        let (empty, full): (Vec<&Vec<usize>>, Vec<&Vec<usize>>) =
            sets.iter().partition(|set| set.is_empty());
        // Each set without keys reads the rows anew, and so do the others together.
        let again = empty.len() + usize::from(!full.is_empty()) > 1;
        // Keys are of the others alone.
        let volatile = aggregates.iter().any(Aggregate::is_volatile);
        if again && (volatile || self.is_volatile()?) {
            if !full.is_empty() {
                return self.group_sets_once(symbols, keys, aggregates, sets, asked);
            }
            return Err(Error::Unplanned(
                "sets without keys of rows that are not the same when they are read again"
                    .to_owned(),
            ));
        }
        let mut parts = Vec::new();
        if !full.is_empty() {
            let (keys, aggregates) = (keys.clone(), aggregates.clone());
            let part = self
                .clone()
                .grouped_by(symbols, keys, aggregates, &full, asked);
            parts.push(part?);
        }
        // One row, also of no rows: so it is not for the step that makes the others.
        for _ in empty {
            let count = aggregates.len();
            let mut aggregates = aggregates.clone();
            if aggregates.is_empty() {
                // No step groups by nothing to find nothing.
                aggregates.push(Aggregate::count_rows());
            }
            let grouped = self.clone().group(symbols, Vec::new(), aggregates)?;
            let nulls = keys
                .iter()
                .map(|key| Term::literal(key.ty(), ValueRef::Null));
            let mut terms = nulls.collect::<Result<Vec<Term>>>()?;
            let found = &grouped.columns[..count];
            terms.extend(found.iter().map(|column| column.term()));
            for asked in asked {
                let all = (1i64 << asked.len()) - 1;
                let all = i32::try_from(all).unwrap_or(i32::MAX);
                terms.push(Term::literal(Type::Int4, ValueRef::Int4(all))?);
            }
            parts.push(grouped.project(symbols, terms)?);
        }
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| Error::internal("no sets"))?;
        parts.try_fold(first, |all, part| all.union(symbols, part))
    }

    /// Whether its rows may be others when they are made again.
    fn is_volatile(&self) -> Result<bool> {
        let mut volatile = false;
        self.plan.apply_with_subqueries(|step| {
            volatile |= step.expressions().iter().any(Expr::is_volatile);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(volatile)
    }

    /// The same of sets that all have keys, or of rows of which there is one at least.
    pub(crate) fn grouped_by(
        self,
        symbols: &Symbols,
        mut keys: Vec<Term>,
        mut aggregates: Vec<Aggregate>,
        sets: &[&Vec<usize>],
        asked: &[Vec<usize>],
    ) -> Result<Self> {
        let own = aggregates.iter_mut().flat_map(Aggregate::terms_mut);
        let terms = keys.iter_mut().chain(own).collect();
        let drawn = self.drawn(symbols, terms)?;
        let width = drawn.columns.len();
        let shown: Vec<Kind> = keys.iter().map(Term::kind).collect();
        // What is compared, and behind these what is shown of keys of which equal ones may look different.
        let inexact = keys.iter().filter(|key| !key.kind().is_exact()).cloned();
        let inexact: Vec<Term> = inexact.collect();
        let compared = keys.into_iter().map(|key| match key.kind().is_exact() {
            true => key,
            false => key.key(symbols),
        });
        let mut made: Vec<Term> = compared.collect();
        let count = made.len();
        made.extend(inexact);
        let extended = drawn.extend(symbols, made)?;
        let compared = extended.columns[width..width + count].to_vec();
        let mut folded = Vec::new();
        let mut showing = Vec::new();
        for column in &extended.columns[width + count..] {
            let first = symbols.column(column.kind());
            folded.push(first_of(column.term().expr).alias(first.name()));
            showing.push(first);
        }
        let mut made = Vec::new();
        for aggregate in aggregates {
            let column = symbols.column(aggregate.kind());
            folded.push(aggregate.expr(symbols)?.alias(column.name()));
            made.push(column);
        }
        // Bits stand in the order in which keys come first.
        let mut order: Vec<usize> = Vec::new();
        for key in sets.iter().flat_map(|set| set.iter()) {
            if !order.contains(key) {
                order.push(*key);
            }
        }
        let exprs = |set: &&Vec<usize>| -> Vec<Expr> {
            set.iter().map(|key| compared[*key].term().expr).collect()
        };
        let sets = sets.iter().map(exprs).collect();
        let sets = Expr::GroupingSet(GroupingSet::GroupingSets(sets));
        let (builder, _) = extended.builder();
        let grouped = Self::with(builder.aggregate(vec![sets], folded)?, Vec::new())?;
        let mut showing = showing.into_iter();
        let mut columns = Vec::new();
        let mut named = Vec::new();
        for (number, kind) in shown.into_iter().enumerate() {
            let column = symbols.column(kind);
            let key = compared[number].term().expr;
            let first = (!kind.is_exact()).then(|| showing.next()).flatten();
            let shown = match first {
                _ if !order.contains(&number) => Term::literal(kind.ty, ValueRef::Null)?.expr,
                None => key,
                // Of another set's rows there is a first value, too.
                Some(first) => when(key.is_not_null(), first.term().expr).end()?,
            };
            named.push(shown.alias(column.name()));
            columns.push(column);
        }
        for column in made {
            named.push(column.term().expr);
            columns.push(column);
        }
        let id = cast(
            Expr::Column(Name::from_name(GroupedBy::INTERNAL_GROUPING_ID)),
            DataType::Int64,
        );
        for asked in asked {
            let mut bits = lit(0i64);
            for key in asked {
                let bit = match order.iter().position(|other| other == key) {
                    Some(at) => {
                        let at = order.len() - 1 - at;
                        bitwise_and(bitwise_shift_right(id.clone(), lit(at as i64)), lit(1i64))
                    }
                    None => lit(1i64),
                };
                bits = bitwise_or(bitwise_shift_left(bits, lit(1i64)), bit);
            }
            let column = symbols.column(Type::Int4);
            named.push(cast(bits, DataType::Int32).alias(column.name()));
            columns.push(column);
        }
        let (builder, _) = grouped.builder();
        Self::with(builder.project(named)?, columns)
    }

    /// Each row once.
    ///
    /// # Errors
    /// None that is known.
    pub fn distinct(self, symbols: &Symbols) -> Result<Self> {
        let keys = self.columns.iter().map(|column| column.term()).collect();
        self.group(symbols, keys, Vec::new())
    }

    /// The rows in order.
    ///
    /// # Errors
    /// A term of columns that are not there.
    pub fn sort(self, symbols: &Symbols, keys: Vec<SortKey>) -> Result<Self> {
        let keys: Vec<SortExpr> = keys.into_iter().map(|key| key.expr(symbols)).collect();
        let (builder, columns) = self.builder();
        Self::with(builder.sort(keys)?, columns)
    }

    /// The rows behind the first `skip`, `most` of them at most.
    ///
    /// # Errors
    /// None that is known.
    pub fn limit(self, skip: u64, most: Option<u64>) -> Result<Self> {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (builder, columns) = self.builder();
        // DataFusion counts them as signed numbers.
        let most = most.map(count).filter(|most| *most <= i64::MAX as usize);
        let skip = count(skip).min(i64::MAX as usize);
        Self::with(builder.limit(skip, most)?, columns)
    }

    /// The rows of both, one behind the other; their columns have the same types.
    ///
    /// # Errors
    /// Columns of different types.
    pub fn union(self, symbols: &Symbols, other: Self) -> Result<Self> {
        let fits = self.columns.len() == other.columns.len();
        if !fits {
            return Err(Error::internal("a union of different widths"));
        }
        // What is known of one side only is not known of both.
        let pairs = self.columns.iter().zip(&other.columns);
        let columns: Vec<Column> = pairs
            .map(|(own, other)| match own.extent == other.extent {
                true => symbols.column(own.kind()),
                false => symbols.column(own.ty),
            })
            .collect();
        let renamed = |side: Self| -> Result<LogicalPlan> {
            let pairs = side.columns.iter().zip(&columns);
            let named: Vec<Expr> = pairs
                .map(|(own, column)| match column.extent {
                    Extent::Any => own.term().stored().expr.alias(column.name()),
                    _ => own.term().expr.alias(column.name()),
                })
                .collect();
            Ok(LogicalPlanBuilder::new(side.plan).project(named)?.build()?)
        };
        let (left, right) = (renamed(self)?, renamed(other)?);
        Self::with(LogicalPlanBuilder::new(left).union(right)?, columns)
    }

    /// The rows of this one that have an equal row in the other, or none: nulls are equal.
    ///
    /// # Errors
    /// Columns of different types.
    pub fn matched(self, symbols: &Symbols, other: Self, found: bool) -> Result<Self> {
        let columns = self.columns.clone();
        let key = |side: Self| -> Result<(LogicalPlan, Vec<Name>)> {
            let width = side.columns.len();
            let keys = side.columns.iter();
            let keys = keys
                .map(|column| column.term().stored().key(symbols))
                .collect();
            let side = side.extend(symbols, keys)?;
            let keys = side.columns[width..].iter();
            let keys = keys.map(|column| Name::new_unqualified(column.name()));
            Ok((side.plan, keys.collect()))
        };
        let ((left, left_keys), (right, right_keys)) = (key(self)?, key(other)?);
        let kind = if found {
            JoinType::LeftSemi
        } else {
            JoinType::LeftAnti
        };
        let nulls = NullEquality::NullEqualsNull;
        let keys = (left_keys, right_keys);
        let joined = LogicalPlanBuilder::new(left).join_detailed(right, kind, keys, None, nulls)?;
        Self::with(joined, Vec::new())?.only(columns)
    }

    /// With all values as the host reads them: what is run at last.
    ///
    /// # Errors
    /// None that is known.
    pub fn readable(self, symbols: &Symbols) -> Result<Self> {
        let long = |column: &Column| column.term().readable().extent != column.extent;
        if !self.columns.iter().any(long) {
            return Ok(self);
        }
        let terms = self.columns.iter().map(|column| column.term().readable());
        let terms = terms.collect();
        self.project(symbols, terms)
    }

    /// The plan as DataFusion shows it, a line a step.
    pub fn lines(&self) -> Vec<String> {
        let shown = self.plan.display_indent().to_string();
        shown.lines().map(str::to_owned).collect()
    }
}

/// Reads what it is called with.
#[derive(Debug)]
struct Read;

impl RowFunction for Read {
    fn call(&self, _: &[ValueRef<'_>]) -> std::result::Result<Value, Failure> {
        Ok(Value::Bool(true))
    }

    fn is_total(&self) -> bool {
        true
    }
}

/// Any of a group's values.
fn first_of(expr: Expr) -> Expr {
    Expr::AggregateFunction(AggregateFunction {
        func: first_value_udaf(),
        params: AggregateFunctionParams {
            args: vec![expr],
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            null_treatment: None,
        },
    })
}
