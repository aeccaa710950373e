//! Aggregates: what becomes of the rows of a group.

use crate::batch::{ColumnReader, single};
use crate::collect::Collecting;
use crate::error::{Error, Failure, Result as Own, carried};
use crate::function::argument_readers;
use crate::known::Known;
use crate::relation::{SortKey, Symbols};
use crate::sum::{Finish, sum_kind, sum_of};
use crate::term::Term;
use crate::types::{Extent, Kind, data_type};
use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility, lit,
};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use vellum_row::{Type, Value, ValueRef};

/// How values are folded into one.
pub trait Fold: Debug + Send + Sync {
    /// Begins a group.
    fn start(&self) -> Box<dyn Folding>;
    /// Types of what [`Folding::save`] returns.
    fn saved(&self) -> Vec<Type>;
}

/// A group while its rows come.
pub trait Folding: Debug + Send + Sync {
    /// A row came.
    ///
    /// # Errors
    /// What the query is to fail with.
    fn add(&mut self, arguments: &[ValueRef<'_>]) -> std::result::Result<(), Failure>;
    /// What it has come to; more rows may follow.
    ///
    /// # Errors
    /// What the query is to fail with.
    fn finish(&mut self) -> std::result::Result<Value, Failure>;
    /// What it has come to, to go on from elsewhere.
    fn save(&self) -> Vec<Value>;
    /// Takes what another part of the group was saved as.
    ///
    /// # Errors
    /// What the query is to fail with.
    fn merge(&mut self, saved: &[ValueRef<'_>]) -> std::result::Result<(), Failure>;
    /// Bytes that it keeps.
    fn bytes(&self) -> usize;
}

/// An aggregate of a group's rows.
#[derive(Clone, Debug)]
pub struct Aggregate {
    what: What,
    arguments: Vec<Term>,
    result: Kind,
    distinct: bool,
    order: Vec<SortKey>,
    filter: Option<Term>,
}

/// What becomes of the rows.
#[derive(Clone, Debug)]
enum What {
    Count,
    /// The least or the greatest of plain values.
    Minimum,
    Maximum,
    /// Of one argument, or of two that are multiplied.
    Sum(Option<Arc<dyn Finish>>),
    Fold(Arc<dyn Fold>),
}

impl Aggregate {
    /// The number of rows.
    pub fn count_rows() -> Self {
        Self {
            what: What::Count,
            arguments: Vec::new(),
            result: Type::Int8.into(),
            distinct: false,
            order: Vec::new(),
            filter: None,
        }
    }

    /// The number of rows in which a term is not null.
    pub fn count(term: Term) -> Self {
        Self {
            arguments: vec![term],
            ..Self::count_rows()
        }
    }

    /// What values are folded into.
    pub fn fold(fold: Arc<dyn Fold>, arguments: Vec<Term>, result: Type) -> Self {
        Self {
            what: What::Fold(fold),
            arguments,
            result: result.into(),
            ..Self::count_rows()
        }
    }

    /// The least value, or the greatest; none if operators cannot tell it themselves.
    pub fn extreme(greatest: bool, term: Term) -> Option<Self> {
        let result = term.kind();
        result.is_plain().then(|| Self {
            what: if greatest {
                What::Maximum
            } else {
                What::Minimum
            },
            arguments: vec![term],
            result,
            ..Self::count_rows()
        })
    }

    /// The number of different values; none if operators cannot tell them apart themselves.
    pub fn count_distinct(term: Term) -> Option<Self> {
        let exact = term.kind().is_exact();
        exact.then(|| Self::count(term).distinct())
    }

    /// What becomes of the sum of integers or decimals, or of products of two decimals; none if they are something else. Where `plain`, the
    /// sum itself is wanted as a `numeric`.
    pub fn sum(
        arguments: Vec<Term>,
        finish: Arc<dyn Finish>,
        plain: bool,
        result: Type,
    ) -> Option<Self> {
        let decimal = |term: &Term| matches!(term.extent, Extent::Decimal { .. });
        let (what, result) = match &arguments[..] {
            [term] if term.ty.is_integer() => (What::Sum(Some(finish)), result.into()),
            [term] if decimal(term) => match sum_kind(term.extent).filter(|_| plain) {
                Some(kind) => (What::Sum(None), kind),
                None => (What::Sum(Some(finish)), result.into()),
            },
            [left, right] if decimal(left) && decimal(right) => {
                (What::Sum(Some(finish)), result.into())
            }
            _ => return None,
        };
        Some(Self {
            what,
            arguments,
            result,
            ..Self::count_rows()
        })
    }

    /// Takes equal arguments once.
    #[must_use]
    pub fn distinct(mut self) -> Self {
        self.distinct = true;
        self
    }

    /// Takes the rows in this order.
    #[must_use]
    pub fn ordered(mut self, order: Vec<SortKey>) -> Self {
        self.order = order;
        self
    }

    /// Takes the rows only where this is true.
    #[must_use]
    pub fn filtered(mut self, filter: Option<Term>) -> Self {
        self.filter = filter;
        self
    }

    /// Takes, of the rows that it takes, only those where this is true, too.
    pub(crate) fn leave_out_but(&mut self, condition: &Term) {
        let own = self.filter.take();
        let both = [condition.clone()].into_iter().chain(own);
        self.filter = Some(Term::all(both));
    }

    /// The type of its value, and what else is known.
    pub(crate) fn kind(&self) -> Kind {
        self.result
    }

    /// What it computes of each row.
    pub(crate) fn terms_mut(&mut self) -> impl Iterator<Item = &mut Term> {
        let order = self.order.iter_mut().map(|key| &mut key.term);
        self.arguments
            .iter_mut()
            .chain(&mut self.filter)
            .chain(order)
    }

    /// Whether it may come to something else when it is computed again.
    pub(crate) fn is_volatile(&self) -> bool {
        let order = self.order.iter().map(|key| &key.term);
        let mut terms = self.arguments.iter().chain(&self.filter).chain(order);
        terms.any(|term| term.expr.is_volatile())
    }

    /// The fold that it is, its arguments, and which rows count.
    ///
    /// # Errors
    /// One that operators have of their own.
    pub(crate) fn into_fold(self) -> Own<(Arc<dyn Fold>, Vec<Term>, Option<Term>)> {
        match self.what {
            What::Fold(fold) => Ok((fold, self.arguments, self.filter)),
            _ => Err(Error::internal("an aggregate that is no fold")),
        }
    }

    /// Itself as a function, and its arguments.
    pub(crate) fn function(
        mut self,
        symbols: &Symbols,
    ) -> Own<(Arc<AggregateUDF>, Vec<Expr>, Option<Expr>)> {
        let filter = self.filter.take().map(|filter| filter.expr);
        let exprs = |terms: Vec<Term>| terms.into_iter().map(|term| term.expr).collect();
        let fold = match self.what {
            What::Count => {
                let mut args: Vec<Expr> = exprs(self.arguments);
                if args.is_empty() {
                    args.push(lit(1i64));
                }
                return Ok((count_udaf(), args, filter));
            }
            What::Minimum => return Ok((min_udaf(), exprs(self.arguments), filter)),
            What::Maximum => return Ok((max_udaf(), exprs(self.arguments), filter)),
            What::Sum(finish) => {
                let function = sum_of(symbols, &self.arguments, finish, self.result);
                return Ok((function, exprs(self.arguments), filter));
            }
            What::Fold(fold) => fold,
        };
        let own = self.arguments.len();
        let directions = self.order.iter();
        let directions = directions.map(|key| (key.descending, key.nulls_first));
        let directions: Vec<(bool, bool)> = directions.collect();
        let mut terms = self.arguments;
        terms.extend(self.order.into_iter().map(|key| key.term));
        let terms: Vec<Term> = terms.into_iter().map(Term::readable).collect();
        let number = symbols.next();
        let kinds: Vec<Kind> = terms.iter().map(Term::kind).collect();
        let collects = self.distinct || !directions.is_empty();
        let folded = Folded {
            known: Known::new(
                'a',
                number,
                fold,
                &kinds,
                self.result.ty,
                Volatility::Immutable,
            ),
            own,
            collecting: collects.then(|| Arc::new((self.distinct, directions))),
        };
        let args = terms.into_iter().map(|term| term.expr).collect();
        Ok((Arc::new(AggregateUDF::from(folded)), args, filter))
    }

    pub(crate) fn expr(self, symbols: &Symbols) -> Own<Expr> {
        // A fold sees to it itself, with SQL's equality.
        let distinct = self.distinct && matches!(self.what, What::Count);
        let (func, args, filter) = self.function(symbols)?;
        Ok(Expr::AggregateFunction(AggregateFunction {
            func,
            params: AggregateFunctionParams {
                args,
                distinct,
                filter: filter.map(Box::new),
                order_by: Vec::new(),
                null_treatment: None,
            },
        }))
    }
}

/// One as DataFusion calls it.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Folded {
    known: Known<dyn Fold>,
    /// Arguments of the fold; keys of the order stand behind them.
    own: usize,
    /// Distinct or not, and for each key of the order whether it descends, and whether nulls come first.
    collecting: Option<Arc<(bool, Vec<(bool, bool)>)>>,
}

impl Folded {
    fn start(&self) -> Box<dyn Folding> {
        match &self.collecting {
            None => self.known.function.start(),
            Some(how) => Box::new(Collecting::new(
                self.known.function.clone(),
                self.known.arguments.clone(),
                self.own,
                how.clone(),
            )),
        }
    }

    fn saved(&self) -> Vec<Type> {
        match &self.collecting {
            None => self.known.function.saved(),
            Some(_) => vec![Type::Bytea],
        }
    }
}

impl AggregateUDFImpl for Folded {
    fn name(&self) -> &str {
        &self.known.name
    }

    fn signature(&self) -> &Signature {
        &self.known.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(data_type(self.known.result))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Group {
            folding: self.start(),
            types: self.known.arguments.clone(),
            saved: self.saved(),
            result: self.known.result,
        }))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sliding {
            fold: self.known.function.clone(),
            types: self.known.arguments.clone(),
            result: self.known.result,
            rows: VecDeque::new(),
            bytes: 0,
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let saved = self.saved();
        let fields = saved.iter().enumerate().map(|(number, ty)| {
            let name = format!("{}[{number}]", args.name);
            Arc::new(Field::new(name, data_type(*ty), true))
        });
        Ok(fields.collect())
    }
}

/// A group as DataFusion knows it.
#[derive(Debug)]
struct Group {
    folding: Box<dyn Folding>,
    types: Vec<Type>,
    saved: Vec<Type>,
    result: Type,
}

impl Group {
    fn each(
        types: &[Type],
        arrays: &[ArrayRef],
        mut each: impl FnMut(&[ValueRef<'_>]) -> std::result::Result<(), Failure>,
    ) -> Result<()> {
        let readers = argument_readers(types, arrays)?;
        let rows = arrays.first().map_or(0, |array| array.len());
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(readers.len());
        for row in 0..rows {
            values.clear();
            let row = readers
                .iter()
                .map(|reader: &ColumnReader<'_>| reader.get(row));
            for value in row {
                values.push(value.map_err(|error| carried(Box::new(error)))?);
            }
            each(&values).map_err(carried)?;
        }
        Ok(())
    }
}

impl Accumulator for Group {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let folding = &mut self.folding;
        Self::each(&self.types, values, |row| folding.add(row))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.folding.finish().map_err(carried)?;
        scalar(self.result, value.as_ref())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.folding.bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.folding.save();
        let pairs = self.saved.iter().zip(&values);
        pairs
            .map(|(ty, value)| scalar(*ty, value.as_ref()))
            .collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let folding = &mut self.folding;
        Self::each(&self.saved, states, |row| folding.merge(row))
    }
}

/// A frame of a window that loses rows at its beginning: they are folded anew for each row.
#[derive(Debug)]
struct Sliding {
    fold: Arc<dyn Fold>,
    types: Vec<Type>,
    result: Type,
    rows: VecDeque<Vec<Value>>,
    /// Bytes that they take.
    bytes: usize,
}

/// Bytes that a row of a frame takes.
fn bytes_of_row(row: &[Value]) -> usize {
    let heap = row.iter().map(|value| value.as_ref().heap_bytes());
    size_of::<Vec<Value>>() + size_of_val(row) + heap.sum::<usize>()
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (rows, bytes) = (&mut self.rows, &mut self.bytes);
        Group::each(&self.types, values, |row| {
            let row: Vec<Value> = row.iter().map(|value| value.to_value()).collect();
            *bytes += bytes_of_row(&row);
            rows.push_back(row);
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let gone = values.first().map_or(0, |array| array.len());
        let gone = self.rows.drain(..gone.min(self.rows.len()));
        self.bytes -= gone.map(|row| bytes_of_row(&row)).sum::<usize>();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut folding = self.fold.start();
        for row in &self.rows {
            let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            folding.add(&row).map_err(carried)?;
        }
        let value = folding.finish().map_err(carried)?;
        scalar(self.result, value.as_ref())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(not_saved())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(not_saved())
    }
}

/// Frames are of one place.
fn not_saved() -> DataFusionError {
    carried(Box::new(Error::internal("a frame that is moved")))
}

fn scalar(ty: Type, value: ValueRef<'_>) -> Result<ScalarValue> {
    let array = single(ty, value).map_err(|error| carried(Box::new(error)))?;
    ScalarValue::try_from_array(&array, 0)
}
