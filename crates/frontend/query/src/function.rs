//! Functions of rows: what DataFusion calls where it has no operator of its own that means the same.

use crate::batch::{ColumnReader, computed, readers};
use crate::error::{Error, Failure, carried};
use crate::known::Known;
use crate::types::{Kind, data_type};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use std::fmt::Debug;
use std::sync::Arc;
use vellum_row::{Type, Value, ValueRef};

/// A function of the values of a row.
pub trait RowFunction: Debug + Send + Sync {
    /// Its value. Runs in a thread of the operators.
    ///
    /// # Errors
    /// What the query is to fail with.
    fn call(&self, arguments: &[ValueRef<'_>]) -> std::result::Result<Value, Failure>;
    /// Whether it never fails, whatever it is called with.
    fn is_total(&self) -> bool {
        false
    }
}

/// One as DataFusion calls it.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Called(Known<dyn RowFunction>);

/// The function as DataFusion knows it.
pub(crate) fn known(
    number: u32,
    function: Arc<dyn RowFunction>,
    arguments: &[Kind],
    result: Type,
    volatile: bool,
) -> Arc<ScalarUDF> {
    let volatility = if volatile {
        Volatility::Volatile
    } else {
        Volatility::Immutable
    };
    let known = Known::new('f', number, function, arguments, result, volatility);
    Arc::new(ScalarUDF::from(Called(known)))
}

/// Whether a function may fail.
fn may_fail(function: &ScalarUDF) -> bool {
    let called = function.inner().downcast_ref::<Called>();
    called.is_some_and(|called| !called.0.function.is_total())
}

/// Whether computing a term may fail.
pub(crate) fn term_may_fail(term: &Expr) -> bool {
    let found = term
        .exists(|part| Ok(matches!(part, Expr::ScalarFunction(called) if may_fail(&called.func))));
    // Nothing that is asked fails.
    found.unwrap_or(true)
}

/// The same of a term of a step.
pub(crate) fn step_may_fail(term: &Arc<dyn PhysicalExpr>) -> bool {
    let found = term.exists(|part| {
        let called = part.downcast_ref::<ScalarFunctionExpr>();
        Ok(called.is_some_and(|called| may_fail(called.fun())))
    });
    found.unwrap_or(true)
}

impl ScalarUDFImpl for Called {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn signature(&self) -> &Signature {
        &self.0.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(data_type(self.0.result))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let all_scalar = args.args.iter().all(scalar);
        let constants: Vec<bool> = args.args.iter().map(scalar).collect();
        let arrays = args.args.iter().map(|value| match value {
            ColumnarValue::Array(array) => Ok(array.clone()),
            ColumnarValue::Scalar(value) => value.to_array(),
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let readers = self.0.arguments.iter().zip(&arrays).zip(constants);
        let readers =
            readers.map(|((ty, array), constant)| ColumnReader::new(*ty, array, constant));
        let readers: Vec<ColumnReader<'_>> = readers
            .collect::<std::result::Result<_, Error>>()
            .map_err(|error| carried(Box::new(error)))?;
        // A volatile function without columns has a value of its own for each row.
        let volatile = self.0.signature.volatility == Volatility::Volatile;
        let rows = if all_scalar && !volatile {
            1
        } else {
            args.number_rows
        };
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(readers.len());
        let made = computed(self.0.result, rows, |row| {
            values.clear();
            for reader in &readers {
                values.push(reader.get(row)?);
            }
            self.0.function.call(&values)
        });
        let made = made.map_err(carried)?;
        if all_scalar && !volatile {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &made, 0,
            )?));
        }
        Ok(ColumnarValue::Array(made))
    }
}

/// Makes keys: bytes whose equality and order are those of SQL.
#[derive(Debug)]
pub(crate) struct KeyFunction(pub Type);

impl RowFunction for KeyFunction {
    fn call(&self, arguments: &[ValueRef<'_>]) -> std::result::Result<Value, Failure> {
        let [value] = arguments else {
            return Err(Box::new(Error::internal("a key of one value")));
        };
        if value.is_null() {
            return Ok(Value::Null);
        }
        let mut bytes = Vec::with_capacity(16);
        key(self.0, *value, &mut bytes)?;
        Ok(Value::Bytea(bytes.into()))
    }

    fn is_total(&self) -> bool {
        true
    }
}

/// Behind the last element of an array: before [`MORE`], so that a shorter array comes first.
const END: u8 = 0;
const MORE: u8 = 1;
const NULL: u8 = 2;

/// Appends the key of a value that is not null.
pub(crate) fn key(
    ty: Type,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> std::result::Result<(), Failure> {
    use vellum_row::{KeyCodec, KeyColumn, Typmod};
    if let ValueRef::Array(array) = value {
        let element = array.element();
        for item in array.items() {
            if item.is_null() {
                out.push(NULL);
                continue;
            }
            out.push(MORE);
            key(element, item.as_ref(), out)?;
        }
        out.push(END);
        // What tells arrays of the same elements apart, in the order of `compare`.
        out.push(array.dimensions().count() as u8);
        for dimension in array.dimensions() {
            for bound in [dimension.length, dimension.lower] {
                out.extend_from_slice(&(bound as u32 ^ 1 << 31).to_be_bytes());
            }
        }
        return Ok(());
    }
    let codec = KeyCodec::new(vec![KeyColumn::new(ty, Typmod::NONE, false)])?;
    codec.encode(&[value], out)?;
    Ok(())
}

/// Readers of the arguments of an aggregate.
pub(crate) fn argument_readers<'a>(
    types: &[Type],
    arrays: &'a [ArrayRef],
) -> Result<Vec<ColumnReader<'a>>> {
    readers(types, arrays).map_err(|error| carried(Box::new(error)))
}
