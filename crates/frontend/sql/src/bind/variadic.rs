//! `f(…, VARIADIC array)`: an array in the place of the arguments that a function takes any number of.
//!
//! An array that is written item by item is its items. Of others, each function has to have another name under which it takes an array.

use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::VARIADIC;
use sqlparser::ast::{self, BinaryOperator};
use vellum_row::{CastContext, Type, Typmod, Value};

/// Functions that take any number of arguments at their end.
const NAMES: [&str; 13] = [
    "concat",
    "concat_ws",
    "format",
    "json_build_array",
    "json_build_object",
    "json_extract_path",
    "json_extract_path_text",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "num_nonnulls",
    "num_nulls",
];

impl Binder<'_> {
    /// A call whose last argument is such an array; `None` for another.
    ///
    /// # Errors
    /// `42883` for a function that takes none; `0A000` for an array that is not written item by item, where the function has no other name.
    pub(super) fn variadic(
        &mut self,
        name: &str,
        list: &ast::FunctionArgumentList,
    ) -> Result<Option<Bound>> {
        let Some((ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(last)), before)) =
            list.args.split_last()
        else {
            return Ok(None);
        };
        let value = match last {
            ast::Expr::Prefixed { prefix, value } if prefix.value == VARIADIC => value,
            _ => return Ok(None),
        };
        let before = ast::FunctionArgumentList {
            args: before.to_vec(),
            ..list.clone()
        };
        let mut arguments = self.arguments(name, &before)?;
        if !NAMES.contains(&name) {
            arguments.push(self.expr(value)?);
            let types: Vec<Option<Type>> = arguments.iter().map(|own| own.ty).collect();
            return Err(self.no_function(name, &types));
        }
        if let ast::Expr::Array(array) = &**value {
            // Its dimensions are none of the function's.
            let mut rest: Vec<&ast::Expr> = array.elem.iter().rev().collect();
            while let Some(item) = rest.pop() {
                match item {
                    ast::Expr::Array(inner) => rest.extend(inner.elem.iter().rev()),
                    item => arguments.push(self.expr(item)?),
                }
            }
            return self.call(name, arguments).map(Some);
        }
        let array = self.expr(value)?;
        let path = match name {
            "json_extract_path" | "jsonb_extract_path" => Some(BinaryOperator::HashArrow),
            "json_extract_path_text" | "jsonb_extract_path_text" => {
                Some(BinaryOperator::HashLongArrow)
            }
            _ => None,
        };
        let first = arguments.pop();
        match (name, path, first) {
            (_, Some(path), Some(document)) if arguments.is_empty() => {
                let ty = match name.starts_with("jsonb") {
                    true => Type::Jsonb,
                    false => Type::Json,
                };
                let document = self.coerce(document, ty, Typmod::NONE, CastContext::Implicit)?;
                self.binary(&path, Bound::new(document, ty), array)
                    .map(Some)
            }
            ("concat", None, None) => {
                let nothing = Bound::new(Expr::Const(Value::text("")), Type::Text);
                self.call("array_to_string", vec![array, nothing]).map(Some)
            }
            ("concat_ws", None, Some(separator)) if arguments.is_empty() => {
                let both = vec![array, separator];
                self.call("array_to_string", both).map(Some)
            }
            _ => Err(SqlError::unsupported(format!(
                "VARIADIC of an array that is not written item by item, in {name}"
            ))),
        }
    }
}
