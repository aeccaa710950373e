//! Relations: rows, and what is made of them.

use crate::aggregate::Aggregate;
use crate::batch::{Batch, schema};
use crate::error::{Error, Result};
use crate::scan::{Rows, Scanned};
use crate::term::{Column, Term};
use crate::types::{Extent, Kind};
use arrow::array::RecordBatch;
use datafusion::catalog::MemTable;
use datafusion::common::{Column as Name, NullEquality};
use datafusion::datasource::provider_as_source;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, SortExpr};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use vellum_row::{Type, Value};

/// Numbers of a query's columns and functions.
#[derive(Debug, Default)]
pub struct Symbols {
    last: Cell<u32>,
    /// The functions that make keys, by their type.
    keys: RefCell<Vec<(Type, u32)>>,
}

impl Symbols {
    pub(crate) fn next(&self) -> u32 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// The number of the function that makes keys of a type: one, so that equal keys are known to be.
    pub(crate) fn key_of(&self, ty: Type) -> u32 {
        let mut keys = self.keys.borrow_mut();
        if let Some((_, number)) = keys.iter().find(|(known, _)| *known == ty) {
            return *number;
        }
        let number = self.next();
        keys.push((ty, number));
        number
    }

    pub(crate) fn column(&self, kind: impl Into<Kind>) -> Column {
        let number = self.next();
        let Kind { ty, extent } = kind.into();
        Column { number, ty, extent }
    }
}

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
        keys: Vec<Term>,
        aggregates: Vec<Aggregate>,
    ) -> Result<Self> {
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
        let (builder, _) = self.builder();
        let grouped = Self::with(builder.aggregate(exprs, folded)?, Vec::new())?;
        grouped.only(columns)
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
