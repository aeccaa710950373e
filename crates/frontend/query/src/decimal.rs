//! Arithmetic of decimals, a column at a time.
//!
//! Invariants: T2 (`types`). Amounts are bounded by the digits of the operands, so nothing here overflows, and nothing fails.
//!
//! Not here: division, and what has more digits: `vellum_row`'s numbers, a row at a time.

use crate::batch::ColumnBuilder;
use crate::error::carried;
use crate::term::Term;
use crate::types::{DIGITS_MAX, Extent, Kind, NOT_A_NUMBER, SMALL_DIGITS, data_type};
use arrow::array::{Array as _, ArrayRef, Decimal128Array, Int64Array};
use arrow::compute::{binary, cast};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::any::Any;
use std::sync::Arc;
use vellum_row::{Numeric, Type, Value};

/// What is done with decimals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

impl Arithmetic {
    /// What is known of the result; none if it may have too many digits.
    pub fn result(self, left: Extent, right: Extent) -> Option<Kind> {
        let (
            Extent::Decimal {
                digits: a,
                scale: x,
            },
            Extent::Decimal {
                digits: b,
                scale: y,
            },
        ) = (left, right)
        else {
            return None;
        };
        let [a, b, x, y] = [a, b, x, y].map(u32::from);
        match self {
            Self::Multiply => Kind::decimal(a + b, x + y),
            Self::Add | Self::Subtract => {
                let scale = x.max(y);
                Kind::decimal((a - x).max(b - y) + scale + 1, scale)
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
        }
    }
}

impl Term {
    /// Of two decimals; none if the result may have too many digits, or they are none.
    pub fn arithmetic(operation: Arithmetic, left: Self, right: Self) -> Option<Self> {
        let kind = operation.result(left.extent, right.extent)?;
        let (left, right) = match (operation, kind.extent) {
            (Arithmetic::Add | Arithmetic::Subtract, Extent::Decimal { scale, .. }) => {
                (left.scaled(scale), right.scaled(scale))
            }
            _ => (left, right),
        };
        Some(Kernel::Arithmetic(operation).of(vec![left, right], kind))
    }

    /// An integer as a decimal; none if it is something else.
    pub fn whole(self) -> Option<Self> {
        let digits = match self.ty {
            Type::Int2 => 5,
            Type::Int4 => 10,
            Type::Int8 => 19,
            _ => return None,
        };
        let kind = Kind::decimal(digits, 0)?;
        Some(Kernel::Whole.of(vec![self], kind))
    }

    /// A decimal with so many digits behind the point, which are not less than it has; it has room for them.
    pub(crate) fn scaled(self, to: u8) -> Self {
        match self.extent {
            Extent::Decimal { digits, scale } if scale < to => {
                let digits = (digits + (to - scale)).min(DIGITS_MAX);
                let extent = Extent::Decimal { digits, scale: to };
                let kind = Kind {
                    ty: self.ty,
                    extent,
                };
                Kernel::Scale(to - scale).of(vec![self], kind)
            }
            _ => self,
        }
    }

    /// As values of its type lie of which nothing is known.
    pub(crate) fn stored(self) -> Self {
        match self.extent {
            Extent::Decimal { .. } => {
                let kind = self.ty.into();
                Kernel::Store.of(vec![self], kind)
            }
            Extent::Any | Extent::Padded(_) => Self {
                extent: Extent::Any,
                ..self
            },
        }
    }

    /// As functions of rows read it: decimals of one word stay what they are.
    pub(crate) fn readable(self) -> Self {
        match self.extent {
            Extent::Decimal { digits, .. } if digits > SMALL_DIGITS => self.stored(),
            _ => self,
        }
    }
}

/// A function as DataFusion knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kernel {
    Arithmetic(Arithmetic),
    /// Integers as decimals.
    Whole,
    /// So many digits more behind the point.
    Scale(u8),
    /// Decimals as `numeric` is stored.
    Store,
}

impl Kernel {
    fn of(self, arguments: Vec<Term>, kind: Kind) -> Term {
        let types = arguments.iter().map(|term| term.kind().data_type());
        let known = Known {
            kernel: self,
            result: kind.data_type(),
            signature: Signature::exact(types.collect(), Volatility::Immutable),
        };
        let func = Arc::new(ScalarUDF::from(known));
        let args = arguments.into_iter().map(|term| term.expr).collect();
        Term::new(Expr::ScalarFunction(ScalarFunction { func, args }), kind)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Known {
    kernel: Kernel,
    result: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Known {
    fn name(&self) -> &str {
        match self.kernel {
            Kernel::Arithmetic(operation) => operation.name(),
            Kernel::Whole => "decimal",
            Kernel::Scale(_) => "scale",
            Kernel::Store => "numeric",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let all_scalar = args.args.iter().all(scalar);
        let made: ArrayRef = match (self.kernel, &args.args[..]) {
            (Kernel::Arithmetic(operation), [left, right]) => {
                self.arithmetic(operation, left, right)?
            }
            (Kernel::Whole, [value]) => {
                let wide = cast(&array(value)?, &DataType::Int64)?;
                let wide = primitive::<Int64Array>(&wide)?;
                let made: Decimal128Array = wide.unary(i128::from);
                Arc::new(made.with_data_type(self.result.clone()))
            }
            (Kernel::Scale(digits), [value]) => {
                let unit = 10i128.pow(u32::from(digits));
                let value = array(value)?;
                let made: Decimal128Array =
                    primitive::<Decimal128Array>(&value)?.unary(|value| multiply(value, unit));
                Arc::new(made.with_data_type(self.result.clone()))
            }
            (Kernel::Store, [value]) => stored(primitive::<Decimal128Array>(&array(value)?)?)?,
            _ => return Err(wrong()),
        };
        if all_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &made, 0,
            )?));
        }
        Ok(ColumnarValue::Array(made))
    }
}

impl Known {
    fn arithmetic(
        &self,
        operation: Arithmetic,
        left: &ColumnarValue,
        right: &ColumnarValue,
    ) -> Result<ArrayRef> {
        let compute = match operation {
            Arithmetic::Add => |a: i128, b: i128| defined(a, b, a.wrapping_add(b)),
            Arithmetic::Subtract => |a: i128, b: i128| defined(a, b, a.wrapping_sub(b)),
            Arithmetic::Multiply => multiply,
        };
        let made: Decimal128Array = match (constant(left), constant(right)) {
            (Some(Some(left)), None) => {
                let right = array(right)?;
                primitive::<Decimal128Array>(&right)?.unary(|right| compute(left, right))
            }
            (None, Some(Some(right))) => {
                let left = array(left)?;
                primitive::<Decimal128Array>(&left)?.unary(|left| compute(left, right))
            }
            _ => {
                let rows = [left, right].map(|side| match side {
                    ColumnarValue::Array(array) => array.len(),
                    ColumnarValue::Scalar(_) => 1,
                });
                let rows = rows[0].max(rows[1]);
                let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
                let (left, right) = (
                    primitive::<Decimal128Array>(&left)?,
                    primitive::<Decimal128Array>(&right)?,
                );
                binary(left, right, compute)?
            }
        };
        Ok(Arc::new(made.with_data_type(self.result.clone())))
    }
}

/// T2.
fn defined(a: i128, b: i128, value: i128) -> i128 {
    if a == NOT_A_NUMBER || b == NOT_A_NUMBER {
        NOT_A_NUMBER
    } else {
        value
    }
}

fn multiply(a: i128, b: i128) -> i128 {
    // Most factors have one word: the machine multiplies these at once.
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
        _ => defined(a, b, a.wrapping_mul(b)),
    }
}

/// The value of a constant; the inner none is null.
fn constant(value: &ColumnarValue) -> Option<Option<i128>> {
    match value {
        ColumnarValue::Scalar(ScalarValue::Decimal128(value, ..)) => Some(*value),
        _ => None,
    }
}

fn array(value: &ColumnarValue) -> Result<ArrayRef> {
    match value {
        ColumnarValue::Array(array) => Ok(array.clone()),
        ColumnarValue::Scalar(value) => value.to_array(),
    }
}

fn primitive<A: 'static>(array: &ArrayRef) -> Result<&A> {
    let array: &dyn Any = array.as_any();
    array.downcast_ref::<A>().ok_or_else(wrong)
}

fn wrong() -> datafusion::common::DataFusionError {
    carried("a decimal of another form".into())
}

/// The number of a decimal.
pub(crate) fn numeric(value: i128, scale: u16) -> Numeric {
    match value {
        NOT_A_NUMBER => Numeric::NAN,
        value => Numeric::from_scaled(value, scale),
    }
}

fn stored(values: &Decimal128Array) -> Result<ArrayRef> {
    let scale = u16::try_from(values.scale()).map_err(|_| wrong())?;
    let mut column = ColumnBuilder::new(Type::Numeric);
    for value in values {
        let value = value.map_or(Value::Null, |value| Value::Numeric(numeric(value, scale)));
        let pushed = column.push(value.as_ref());
        pushed.map_err(|error| carried(Box::new(error)))?;
    }
    debug_assert_eq!(data_type(Type::Numeric), DataType::BinaryView);
    Ok(column.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(digits: u32, scale: u32) -> Extent {
        Kind::decimal(digits, scale).unwrap().extent
    }

    #[test]
    fn results_have_the_digits_that_they_need() {
        let (price, rate) = (decimal(15, 2), decimal(3, 2));
        let of = |operation: Arithmetic, a, b| operation.result(a, b).map(|kind| kind.extent);
        assert_eq!(of(Arithmetic::Multiply, price, rate), Some(decimal(18, 4)));
        assert_eq!(
            of(Arithmetic::Add, price, decimal(4, 4)),
            Some(decimal(18, 4))
        );
        assert_eq!(
            of(Arithmetic::Subtract, decimal(1, 0), rate),
            Some(decimal(4, 2))
        );
        assert_eq!(
            of(Arithmetic::Multiply, decimal(20, 2), decimal(17, 2)),
            None
        );
    }

    #[test]
    fn what_is_no_number_stays_none() {
        assert_eq!(multiply(NOT_A_NUMBER, 0), NOT_A_NUMBER);
        assert_eq!(multiply(7, NOT_A_NUMBER), NOT_A_NUMBER);
        assert_eq!(defined(NOT_A_NUMBER, 1, 2), NOT_A_NUMBER);
        assert!(numeric(NOT_A_NUMBER, 3).is_nan());
        assert_eq!(multiply(1 << 70, -3), -3 << 70);
    }
}
