//! What SET gives to an element of an array, to a slice of one, or to what a path of a `jsonb` leads to: the column's value with the change in it.

use super::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Expr};
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{Array, CastContext, Type, Typmod, Value};

/// A column that is assigned, with its subscripts; none for the whole of it.
#[derive(Debug)]
pub(crate) struct Target {
    /// Without subscripts, to be named.
    pub name: ast::ObjectName,
    pub subscripts: Vec<ast::Subscript>,
}

impl Target {
    /// Reads what stands left of `=`.
    ///
    /// # Errors
    /// `42601` for another name that ends in a call, which no text has.
    pub fn of(name: &ast::ObjectName) -> Result<Self> {
        let Some((ast::ObjectNamePart::Function(marked), own)) = name.0.split_last() else {
            return Ok(Self {
                name: name.clone(),
                subscripts: Vec::new(),
            });
        };
        let wrong = || SqlError::syntax("improper qualified name");
        let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(element))] =
            marked.args.as_slice()
        else {
            return Err(wrong());
        };
        let ast::Expr::CompoundFieldAccess { access_chain, .. } = element else {
            return Err(wrong());
        };
        // Names of a schema or a table come as fields.
        let subscripts = access_chain.iter().filter_map(|access| match access {
            ast::AccessExpr::Subscript(subscript) => Some(subscript.clone()),
            ast::AccessExpr::Dot(_) => None,
        });
        Ok(Self {
            name: ast::ObjectName(own.to_vec()),
            subscripts: subscripts.collect(),
        })
    }
}

impl Binder<'_> {
    /// The value of `base`, a column of type `ty` that is called `name`, with `value` where the subscripts lead.
    ///
    /// # Errors
    /// `42804` for a type without subscripts, and for a value of another type than the element's.
    pub(crate) fn with_element(
        &mut self,
        name: &str,
        (base, ty, typmod): (Expr, Type, Typmod),
        subscripts: &[ast::Subscript],
        value: Bound,
    ) -> Result<Expr> {
        let base = Bound::new(base, ty);
        match ty {
            Type::Jsonb => {
                let path = self.json_path(subscripts)?;
                let value = self.subscripted(name, value, Type::Jsonb, Typmod::NONE)?;
                let mut arguments = vec![base, value];
                arguments.extend(path);
                Ok(self.scalar_operator("%assigned", arguments)?.expr)
            }
            Type::Array(element) => {
                let element = element.ty();
                // Nulls do not tell the type of their elements.
                let empty = Expr::Const(Value::Array(Array::of(element, &[])));
                let mut arguments = vec![Bound::new(empty, ty), base];
                let slice = |one: &ast::Subscript| matches!(one, ast::Subscript::Slice { .. });
                if subscripts.iter().any(slice) {
                    let value = self.subscripted(name, value, ty, typmod)?;
                    arguments.push(value);
                    arguments.extend(self.slice_bounds(subscripts)?);
                    return Ok(self.scalar_operator("%assigned_slice", arguments)?.expr);
                }
                let value = self.subscripted(name, value, element, typmod)?;
                arguments.push(value);
                for subscript in subscripts {
                    let ast::Subscript::Index { index } = subscript else {
                        continue;
                    };
                    let index = self.expr(index)?;
                    let context = CastContext::Assignment;
                    let index = self.coerce(index, Type::Int4, Typmod::NONE, context)?;
                    arguments.push(Bound::new(index, Type::Int4));
                }
                Ok(self.scalar_operator("%assigned", arguments)?.expr)
            }
            _ => {
                let shown = self.name_of(Some(ty));
                let text = format!(
                    "cannot subscript type {shown} because it does not support subscripting"
                );
                Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, text))
            }
        }
    }

    /// A value as the element's type wants it.
    fn subscripted(&mut self, name: &str, bound: Bound, ty: Type, typmod: Typmod) -> Result<Bound> {
        let (from, start) = (bound.ty, bound.start);
        let cast = self.coerce(bound, ty, typmod, CastContext::Assignment);
        let cast = cast.map_err(|error| match from {
            Some(_) if error.sqlstate() == sqlstate::CANNOT_COERCE => {
                let (wanted, from) = (self.name_of(Some(ty)), self.name_of(from));
                let text = format!(
                    "subscripted assignment to \"{name}\" requires type {wanted} but expression is of type {from}"
                );
                SqlError::new(sqlstate::DATATYPE_MISMATCH, text)
                    .with_hint("You will need to rewrite or cast the expression.")
                    .at(start.and_then(|start| self.place_of(start)))
            }
            _ => error,
        })?;
        Ok(Bound {
            typmod,
            ..Bound::new(cast, ty)
        })
    }

    /// Whether the first step is the number of an element, and the steps as texts.
    fn json_path(&mut self, subscripts: &[ast::Subscript]) -> Result<[Bound; 2]> {
        let mut numbered = false;
        let mut path = Vec::with_capacity(subscripts.len());
        for (at, subscript) in subscripts.iter().enumerate() {
            let ast::Subscript::Index { index } = subscript else {
                let text = "jsonb subscript does not support slices";
                return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, text));
            };
            let mut bound = self.expr(index)?;
            let place = self.place(index);
            let number = matches!(bound.ty, Some(Type::Int2 | Type::Int4));
            if let Some(ty) = bound.ty.filter(|ty| !number && ty.category() != 'S') {
                let text = format!("subscript type {} is not supported", self.name_of(Some(ty)));
                let hint = "jsonb subscript must be coercible to either integer or text.";
                let error = SqlError::new(sqlstate::DATATYPE_MISMATCH, text);
                return Err(error.with_hint(hint).at(place));
            }
            bound.start = None;
            path.push(self.coerce(bound, Type::Text, Typmod::NONE, CastContext::Assignment)?);
            numbered |= at == 0 && number;
        }
        let path = Expr::Call {
            function: Builtin::Catalog(CatalogFunction::MakeArray(Type::Text)),
            arguments: path.into(),
        };
        Ok([
            Bound::new(Expr::Const(Value::Bool(numbered)), Type::Bool),
            Bound::new(path, Type::Text.array()),
        ])
    }
}
