//! Sums and means of integers and decimals: exact, a column at a time, for many groups at once.
//!
//! A group's sum is an integer of 128 bits; what has no room in it is a number of `vellum_row`, beside. A sum may be of products of two
//! decimals that have too many digits to be decimals themselves: most are short all the same.
//!
//! Layout of what is saved: the sum, how many there were, and the stored form of what had no room.

use crate::batch::ColumnBuilder;
use crate::decimal::numeric;
use crate::error::{Error, Failure, carried};
use crate::relation::Symbols;
use crate::term::Term;
use crate::types::{Extent, Kind, NOT_A_NUMBER, data_type};
use arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryViewArray, BooleanArray, Decimal128Array, Int64Array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Int16Type, Int32Type, Int64Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::{Numeric, NumericRef, Type, Value};

/// What becomes of a group's sum.
pub trait Finish: Debug + Send + Sync {
    /// Its value; `count` is not 0.
    ///
    /// # Errors
    /// What the query is to fail with.
    fn finish(&self, sum: Numeric, count: i64) -> std::result::Result<Value, Failure>;
}

/// What is known of decimals' digits when so many are summed as no table has rows.
const ROWS_DIGITS: u32 = 12;

/// What is known of a sum of such values, if it always has room in a decimal.
pub(crate) fn sum_kind(extent: Extent) -> Option<Kind> {
    match extent {
        Extent::Decimal { digits, scale } => {
            Kind::decimal(u32::from(digits) + ROWS_DIGITS, scale.into())
        }
        Extent::Any | Extent::Padded(_) => None,
    }
}

/// The function for arguments that are one term, or two that are multiplied. Without `finish` the sum is a decimal itself.
pub(crate) fn sum_of(
    symbols: &Symbols,
    arguments: &[Term],
    finish: Option<Arc<dyn Finish>>,
    result: Kind,
) -> Arc<AggregateUDF> {
    let scales = arguments.iter().map(|term| match term.extent {
        Extent::Decimal { scale, .. } => u16::from(scale),
        Extent::Any | Extent::Padded(_) => 0,
    });
    let types = arguments.iter().map(|term| term.kind().data_type());
    let number = symbols.next();
    Arc::new(AggregateUDF::from(Known {
        number,
        name: format!("sum{number}"),
        scale: scales.sum(),
        finish,
        result,
        signature: Signature::exact(types.collect(), Volatility::Immutable),
    }))
}

#[derive(Debug)]
struct Known {
    number: u32,
    name: String,
    scale: u16,
    finish: Option<Arc<dyn Finish>>,
    result: Kind,
    signature: Signature,
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.signature == other.signature
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// What is saved of a sum.
const SUM: DataType = DataType::Decimal128(38, 0);

impl Known {
    fn totals(&self) -> Totals {
        Totals {
            scale: self.scale,
            finish: self.finish.clone(),
            result: self.result,
            sums: Vec::new(),
            counts: Vec::new(),
            beyond: HashMap::default(),
        }
    }
}

impl AggregateUDFImpl for Known {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.data_type())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let mut totals = self.totals();
        totals.room(1);
        Ok(Box::new(One(totals)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.totals()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let saved = [SUM, DataType::Int64, data_type(Type::Numeric)];
        let fields = saved.into_iter().enumerate().map(|(number, ty)| {
            let name = format!("{}[{number}]", args.name);
            Arc::new(Field::new(name, ty, true))
        });
        Ok(fields.collect())
    }
}

/// What groups have come to.
#[derive(Debug)]
struct Totals {
    scale: u16,
    finish: Option<Arc<dyn Finish>>,
    result: Kind,
    sums: Vec<i128>,
    counts: Vec<i64>,
    /// What had no room in the sums.
    beyond: HashMap<usize, Numeric>,
}

/// A value of a row.
enum Item {
    Short(i128),
    Product(i128, i128),
}

impl Totals {
    fn room(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }

    #[inline]
    fn add(&mut self, group: usize, value: i128) -> Result<()> {
        self.counts[group] += 1;
        let sum = &mut self.sums[group];
        if value != NOT_A_NUMBER
            && let Some(next) = sum.checked_add(value)
        {
            *sum = next;
            return Ok(());
        }
        self.add_beyond(group, &numeric(value, self.scale))
    }

    #[cold]
    fn add_beyond(&mut self, group: usize, value: &Numeric) -> Result<()> {
        let had = self.beyond.entry(group).or_insert_with(|| 0i64.into());
        *had = had.add(value).map_err(|error| carried(Box::new(error)))?;
        Ok(())
    }

    #[inline]
    fn add_item(&mut self, group: usize, item: Item, scales: (u16, u16)) -> Result<()> {
        match item {
            Item::Short(value) => self.add(group, value),
            Item::Product(a, b) => {
                let known = a != NOT_A_NUMBER && b != NOT_A_NUMBER;
                match a.checked_mul(b) {
                    Some(value) if known && value != NOT_A_NUMBER => self.add(group, value),
                    _ => {
                        self.counts[group] += 1;
                        let product = numeric(a, scales.0).multiply(&numeric(b, scales.1));
                        let product = product.map_err(|error| carried(Box::new(error)))?;
                        self.add_beyond(group, &product)
                    }
                }
            }
        }
    }

    /// Adds the rows of a batch, each to the group that `group` says.
    fn add_rows(
        &mut self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        group: impl Fn(usize) -> usize,
    ) -> Result<()> {
        match values {
            [value] => match value.data_type() {
                DataType::Int16 => self.add_column::<Int16Type>(value, filter, group),
                DataType::Int32 => self.add_column::<Int32Type>(value, filter, group),
                DataType::Int64 => self.add_column::<Int64Type>(value, filter, group),
                _ => self.add_column::<Decimal128Type>(value, filter, group),
            },
            [left, right] => {
                let (left, right): (&Decimal128Array, &Decimal128Array) = (
                    left.as_primitive_opt().ok_or_else(wrong)?,
                    right.as_primitive_opt().ok_or_else(wrong)?,
                );
                let scales = (left.scale() as u16, right.scale() as u16);
                for row in 0..left.len() {
                    if left.is_valid(row) && right.is_valid(row) && takes(filter, row) {
                        let item = Item::Product(left.value(row), right.value(row));
                        self.add_item(group(row), item, scales)?;
                    }
                }
                Ok(())
            }
            _ => Err(wrong()),
        }
    }

    fn add_column<T>(
        &mut self,
        value: &ArrayRef,
        filter: Option<&BooleanArray>,
        group: impl Fn(usize) -> usize,
    ) -> Result<()>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i128>,
    {
        let column = value.as_primitive_opt::<T>().ok_or_else(wrong)?;
        if column.null_count() == 0 && filter.is_none() {
            for (row, value) in column.values().iter().enumerate() {
                self.add(group(row), (*value).into())?;
            }
            return Ok(());
        }
        for row in 0..column.len() {
            if column.is_valid(row) && takes(filter, row) {
                let item = Item::Short(column.value(row).into());
                self.add_item(group(row), item, (0, 0))?;
            }
        }
        Ok(())
    }

    fn merge_rows(&mut self, states: &[ArrayRef], group: impl Fn(usize) -> usize) -> Result<()> {
        let [sums, counts, beyond] = states else {
            return Err(wrong());
        };
        let sums: &Decimal128Array = sums.as_primitive_opt().ok_or_else(wrong)?;
        let counts: &Int64Array = counts.as_primitive_opt().ok_or_else(wrong)?;
        let beyond: &BinaryViewArray = beyond.as_binary_view_opt().ok_or_else(wrong)?;
        for row in 0..sums.len() {
            let group = group(row);
            let before = self.counts[group];
            self.add(group, sums.value(row))?;
            self.counts[group] = before + counts.value(row);
            if beyond.is_valid(row) {
                let value = NumericRef::from_stored(beyond.value(row)).ok_or_else(wrong)?;
                self.add_beyond(group, &value.to_numeric())?;
            }
        }
        Ok(())
    }

    /// Takes the first groups, or all.
    fn take(&mut self, emit: EmitTo) -> Self {
        let sums = emit.take_needed(&mut self.sums);
        let counts = emit.take_needed(&mut self.counts);
        let taken = sums.len();
        let mut beyond = HashMap::default();
        for (group, value) in std::mem::take(&mut self.beyond) {
            match group.checked_sub(taken) {
                Some(later) => self.beyond.insert(later, value),
                None => beyond.insert(group, value),
            };
        }
        Self {
            scale: self.scale,
            finish: self.finish.clone(),
            result: self.result,
            sums,
            counts,
            beyond,
        }
    }

    /// The values of its groups.
    fn finished(&self) -> Result<ArrayRef> {
        let Some(finish) = &self.finish else {
            let found = (0..self.sums.len()).map(|group| {
                let value = match self.beyond.contains_key(&group) {
                    // It has room for every number.
                    true => NOT_A_NUMBER,
                    false => self.sums[group],
                };
                (self.counts[group] > 0).then_some(value)
            });
            let array: Decimal128Array = found.collect();
            return Ok(Arc::new(array.with_data_type(self.result.data_type())));
        };
        let mut column = ColumnBuilder::new(self.result);
        for group in 0..self.sums.len() {
            let value = self.value(&**finish, group).map_err(carried)?;
            let pushed = column.push(value.as_ref());
            pushed.map_err(|error| carried(Box::new(error)))?;
        }
        Ok(column.finish())
    }

    fn value(&self, finish: &dyn Finish, group: usize) -> std::result::Result<Value, Failure> {
        if self.counts[group] == 0 {
            return Ok(Value::Null);
        }
        let mut sum = numeric(self.sums[group], self.scale);
        if let Some(more) = self.beyond.get(&group) {
            sum = sum.add(more)?;
        }
        finish.finish(sum, self.counts[group])
    }

    fn saved(&self) -> Result<Vec<ArrayRef>> {
        let sums = Decimal128Array::from(self.sums.clone()).with_data_type(SUM);
        let counts = Int64Array::from(self.counts.clone());
        let mut beyond = ColumnBuilder::new(Type::Numeric);
        for group in 0..self.sums.len() {
            let value = self.beyond.get(&group).cloned();
            let value = value.map_or(Value::Null, Value::Numeric);
            let pushed = beyond.push(value.as_ref());
            pushed.map_err(|error| carried(Box::new(error)))?;
        }
        Ok(vec![Arc::new(sums), Arc::new(counts), beyond.finish()])
    }
}

fn takes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

fn wrong() -> datafusion::common::DataFusionError {
    carried(Box::new(Error::internal("a sum of something else")))
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.room(total_num_groups);
        self.add_rows(values, opt_filter, |row| group_indices[row])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.take(emit_to).finished()
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.take(emit_to).saved()
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.room(total_num_groups);
        self.merge_rows(values, |row| group_indices[row])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut each = Self {
            scale: self.scale,
            finish: None,
            result: self.result,
            sums: Vec::new(),
            counts: Vec::new(),
            beyond: HashMap::default(),
        };
        each.room(values.first().map_or(0, |values| values.len()));
        each.add_rows(values, opt_filter, |row| row)?;
        each.saved()
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + self.sums.capacity() * size_of::<i128>()
            + self.counts.capacity() * size_of::<i64>()
            + self.beyond.capacity() * size_of::<(usize, Numeric)>()
    }
}

/// One group of all rows.
#[derive(Debug)]
struct One(Totals);

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.add_rows(values, None, |_| 0)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.finished()?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let saved = self.0.saved()?;
        let values = saved
            .iter()
            .map(|array| ScalarValue::try_from_array(array, 0));
        values.collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_rows(states, |_| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Plain;

    impl Finish for Plain {
        fn finish(&self, sum: Numeric, _: i64) -> std::result::Result<Value, Failure> {
            Ok(Value::Numeric(sum))
        }
    }

    fn totals() -> Totals {
        Totals {
            scale: 2,
            finish: Some(Arc::new(Plain)),
            result: Type::Numeric.into(),
            sums: Vec::new(),
            counts: Vec::new(),
            beyond: HashMap::default(),
        }
    }

    fn text(totals: &Totals, group: usize) -> String {
        match totals.value(&Plain, group).unwrap() {
            Value::Numeric(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_has_no_room_is_summed_beside_and_survives_saving() {
        let mut totals = totals();
        totals.room(3);
        let large = i128::MAX - 1;
        for _ in 0..3 {
            totals.add(1, large).unwrap();
        }
        totals.add(0, 5).unwrap();
        let exact = numeric(large, 2).add(&numeric(large, 2)).unwrap();
        let exact = exact.add(&numeric(large, 2)).unwrap();
        assert_eq!(text(&totals, 1), exact.to_string());
        assert_eq!(
            (text(&totals, 0), text(&totals, 2)),
            ("0.05".into(), "Null".into())
        );
        let saved = totals.saved().unwrap();
        let mut other = super::tests::totals();
        other.room(1);
        other.merge_rows(&saved, |_| 0).unwrap();
        let all = numeric(5, 2).add(&exact).unwrap().to_string();
        assert_eq!(text(&other, 0), all);
        assert_eq!(other.counts, [4]);
    }

    #[test]
    fn long_products_and_what_is_no_number_are_summed_too() {
        let mut totals = totals();
        totals.room(2);
        let long = 10i128.pow(30);
        totals
            .add_item(0, Item::Product(long, long), (1, 1))
            .unwrap();
        totals.add_item(0, Item::Product(3, 7), (1, 1)).unwrap();
        assert_eq!(text(&totals, 0), format!("1{}.21", "0".repeat(58)));
        totals
            .add_item(1, Item::Product(NOT_A_NUMBER, 0), (1, 1))
            .unwrap();
        totals.add(1, 100).unwrap();
        assert_eq!(text(&totals, 1), "NaN");
    }

    #[test]
    fn the_first_groups_are_taken_with_what_had_no_room() {
        let mut totals = totals();
        totals.room(3);
        totals.add(0, NOT_A_NUMBER).unwrap();
        totals.add(1, 100).unwrap();
        totals.add(2, NOT_A_NUMBER).unwrap();
        let first = totals.take(EmitTo::First(2));
        assert_eq!(
            (text(&first, 0), text(&first, 1)),
            ("NaN".into(), "1.00".into())
        );
        assert_eq!(text(&totals, 0), "NaN");
    }
}
