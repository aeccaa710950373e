//! What values are shown as where that is told by their type: the text and the JSON of oids with names, and of rows (`expr/form`).
//!
//! Of a row an expression's modifier tells the columns, wherever the row comes from: a table, ROW, a subquery, WITH, VALUES, CASE, a window function. JSON of
//! one that is written down where it is asked for is made of its parts, so that groups and indexes find these; of any other it is made of the row's value.

use super::row::{null_where, taken_apart};
use super::{Binder, Bound};
use crate::error::Result;
use crate::expr::{Expr, Form, RowField, RowType, Shown, unknown_row};
use std::sync::Arc;
use vellum_row::{CastContext, Type, Typmod, Value};

/// Functions that make texts of values of any type.
const TEXTS: [&str; 6] = [
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "quote_literal",
    "quote_nullable",
];

impl Binder<'_> {
    /// The fields of a row, and of rows in it, as far as they are known.
    pub fn row_type(&self, typmod: Typmod) -> Option<RowType> {
        let columns = self.record_columns(typmod)?.iter();
        let fields = columns.map(|(name, ty, typmod)| RowField {
            name: name.as_str().into(),
            ty: *ty,
            form: self.form_of(*ty, *typmod),
        });
        Some(fields.collect())
    }

    /// What values of a type are shown by.
    pub(super) fn form_of(&self, ty: Type, typmod: Typmod) -> Form {
        match ty {
            Type::Record => Form::Row(self.row_type(typmod)),
            ty => Form::of(ty),
        }
    }

    /// A value as the text of its form, an array of texts if it is an array.
    pub(super) fn shown(&self, bound: Bound, ty: Type, form: Form) -> Bound {
        let shown = Shown {
            form,
            as_json: false,
        };
        let expr = Expr::Shown {
            operand: Box::new(bound.expr),
            shown: Arc::new(shown),
        };
        let text = match ty.element() {
            Some(_) => Type::Text.array(),
            None => Type::Text,
        };
        Bound::new(expr, text)
    }

    /// The arguments of a function that makes text of values of any type, as these are shown.
    pub(super) fn texts_of_any(&self, name: &str, arguments: &mut [Bound]) {
        let of_json = name == "array_to_json";
        if !of_json && !TEXTS.contains(&name) {
            return;
        }
        for argument in arguments {
            let Some(ty) = argument.ty else {
                continue;
            };
            let form = self.form_of(ty, argument.typmod);
            if form.makes_text() || of_json && form == Form::Number {
                *argument = self.shown(argument.clone(), ty, form);
            }
        }
    }

    /// What JSON is made of where a value stands in it: what is shown by its form is JSON, or the text that is a string there.
    ///
    /// # Errors
    /// `0A000` for a row of which it is not known what is in it.
    pub(super) fn jsonable(&mut self, bound: Bound) -> Result<Expr> {
        if bound.ty == Some(Type::Record)
            && let Some(row) = self.written_row_to_json(&bound)?
        {
            return Ok(row);
        }
        let bound = self.undecided(bound);
        let (expr, ty, typmod) = self.settle(bound)?;
        let form = self.form_of(ty, typmod);
        match (&form, &expr) {
            (Form::Plain, _) | (_, Expr::Const(Value::Null)) => return Ok(expr),
            (Form::Row(None), _) => return Err(unknown_row()),
            (Form::Name(_) | Form::Number, _) if ty.element().is_none() => {
                let bound = Bound::new(expr, ty);
                return self.coerce(bound, Type::Text, Typmod::NONE, CastContext::Explicit);
            }
            _ => {}
        }
        let shown = Shown {
            form,
            as_json: true,
        };
        Ok(Expr::Shown {
            operand: Box::new(expr),
            shown: Arc::new(shown),
        })
    }

    /// A row that is written down, or a table's, as a JSON object of its columns: those that have no names are `f1`, `f2` …
    fn written_row_to_json(&mut self, bound: &Bound) -> Result<Option<Expr>> {
        let Some((missing, arguments)) = taken_apart(&bound.expr) else {
            return Ok(None);
        };
        let columns = self.record_columns(bound.typmod).unwrap_or_default();
        let columns = columns.to_vec();
        let mut pairs = Vec::with_capacity(2 * arguments.len());
        for (at, value) in arguments.iter().enumerate() {
            let (name, value) = match columns.get(at) {
                Some((name, ty, typmod)) => {
                    let value = Bound {
                        typmod: *typmod,
                        ..Bound::new(value.clone(), *ty)
                    };
                    (name.clone(), self.jsonable(value)?)
                }
                None => (format!("f{}", at + 1), value.clone()),
            };
            pairs.push(Bound::new(Expr::Const(Value::text(name)), Type::Text));
            pairs.push(Bound::new(value, Type::Text));
        }
        let made = match pairs.is_empty() {
            true => Expr::Const(Value::Json("{}".into())),
            false => self.scalar_operator("%row_to_json", pairs)?.expr,
        };
        Ok(Some(match missing {
            Some(missing) => null_where(missing.clone(), made),
            None => made,
        }))
    }

    /// The modifier of what is one of several rows: their columns, if they have as many of the same types, by their names where these are the same. What is
    /// null, or of no type yet, is any row.
    pub(crate) fn common_row<'b>(&mut self, all: impl Iterator<Item = &'b Bound>) -> Typmod {
        let rows = all.filter(|bound| {
            bound.ty == Some(Type::Record) && !matches!(bound.expr, Expr::Const(Value::Null))
        });
        let mut rows = rows.map(|bound| bound.typmod);
        let Some(first) = rows.next() else {
            return Typmod::NONE;
        };
        let typmods: Vec<Typmod> = rows.collect();
        let merged = typmods
            .into_iter()
            .try_fold(first, |common, typmod| self.common_columns(common, typmod));
        merged.unwrap_or(Typmod::NONE)
    }

    /// The modifier of a row that is one of two; `None` if nothing is known of it.
    pub(crate) fn common_columns(&mut self, one: Typmod, other: Typmod) -> Option<Typmod> {
        if one == other {
            return Some(one);
        }
        let columns = |typmod| self.record_columns(typmod).map(<[_]>::to_vec);
        let (left, right) = (columns(one)?, columns(other)?);
        if left.len() != right.len() {
            return None;
        }
        let mut columns = Vec::with_capacity(left.len());
        for (number, (left, right)) in (1..).zip(left.into_iter().zip(right)) {
            if left.1 != right.1 {
                return None;
            }
            let typmod = match left.1 {
                Type::Record => self.common_columns(left.2, right.2)?,
                _ if left.2 == right.2 => left.2,
                _ => Typmod::NONE,
            };
            let name = match left.0 == right.0 {
                true => left.0,
                false => format!("f{number}"),
            };
            columns.push((name, left.1, typmod));
        }
        Some(self.new_record(columns))
    }
}
