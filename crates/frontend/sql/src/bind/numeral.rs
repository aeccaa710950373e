//! Numbers without quotes, and signs in front of them.

use super::Bound;
use crate::error::Result;
use crate::expr::Expr;
use sqlparser::ast::{self, UnaryOperator};
use vellum_row::{Numeric, Type, Value, ValueRef};

/// The constant that a number without quotes is.
pub(super) fn numeral(digits: &str) -> Result<Bound> {
    number(digits).map(|(value, ty)| Bound::new(Expr::Const(value), ty))
}

/// The numeral that a sign in front of this one makes; `None` if it is none. It is one with other signs between, and parentheses, as PostgreSQL reads it.
pub(super) fn negated(node: &ast::Expr) -> Option<String> {
    match node {
        ast::Expr::Nested(inner) => negated(inner),
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => Some(format!("-{digits}")),
            _ => None,
        },
        ast::Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let digits = negated(expr)?;
            Some(match digits.strip_prefix('-') {
                Some(digits) => digits.to_owned(),
                None => format!("-{digits}"),
            })
        }
        _ => None,
    }
}

/// A number without quotes: the first of integer, bigint, numeric that holds it.
pub(crate) fn number(digits: &str) -> Result<(Value, Type)> {
    let digits = digits.replace('_', "");
    let (value, ty) = if let Ok(value) = digits.parse::<i32>() {
        (Value::Int4(value), Type::Int4)
    } else if let Ok(value) = digits.parse::<i64>() {
        (Value::Int8(value), Type::Int8)
    } else {
        (Value::Numeric(Numeric::parse(&digits)?), Type::Numeric)
    };
    debug_assert!(value.as_ref().fits(ty) && !matches!(value.as_ref(), ValueRef::Null));
    Ok((value, ty))
}
