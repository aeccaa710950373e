//! Rows of JSON objects: their members as values of columns.
//!
//! A member becomes what the type reads of its text, of a string what is in it; an array becomes an array of the type's elements.

use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Environment, Form, Keep, field};
use crate::plan::JsonRows;
use crate::sqlstate;
use std::borrow::Cow;
use vellum_row::json::{JsonParts, parts, plain_text};
use vellum_row::{Array, ArrayRef, Jsonb, Type, Typmod, Value, ValueRef, input};

/// What the rows are made of.
struct Columns<'c> {
    names: Vec<Value>,
    typmods: Vec<Typmod>,
    types: &'c [Type],
    /// What stands where an object has no member; as many as columns, or none.
    base: &'c [Value],
}

/// The rows of a call with these arguments (`plan/json_rows`). Each is told to `keep`.
///
/// # Errors
/// `22023` for what is no object, or no array of objects; those of reading values; those of `keep`.
pub(super) fn rows(
    kind: JsonRows,
    arguments: &[Value],
    types: &[Type],
    env: &dyn Environment,
    keep: &Keep<'_>,
) -> Result<Vec<Vec<Value>>> {
    let [json, Value::Array(names), Value::Array(typmods), row @ ..] = arguments else {
        return Err(SqlError::internal("columns of JSON that have no names"));
    };
    let typmods = typmods.as_ref().items();
    let typmods = typmods.map(|value| Typmod(value.as_ref().as_i64().unwrap_or(-1) as i32));
    let mut base = Vec::new();
    if let Some(row) = row.first().filter(|row| !row.as_ref().is_null()) {
        for (number, ty) in types.iter().enumerate() {
            base.push(field(row.as_ref(), number, *ty, env.settings())?);
        }
    }
    let columns = Columns {
        names: names.as_ref().items().collect(),
        typmods: typmods.collect(),
        types,
        base: &base,
    };
    let text = match json.as_ref() {
        ValueRef::Json(text) => text.to_owned(),
        ValueRef::Jsonb(value) => {
            let mut text = String::new();
            value.write(&mut text)?;
            text
        }
        _ if kind.many => return Ok(Vec::new()),
        _ => {
            let row = columns.row(&[], env)?;
            keep(&row)?;
            return Ok(vec![row]);
        }
    };
    let mut rows = Vec::new();
    let mut one = |members: &[(Cow<'_, str>, &str)]| -> Result<()> {
        let row = columns.row(members, env)?;
        keep(&row)?;
        rows.push(row);
        Ok(())
    };
    if !kind.many {
        match parts(&text, true)? {
            JsonParts::Object(members) => one(&members)?,
            JsonParts::Array(_) => {
                return Err(invalid("cannot call populate_composite on an array"));
            }
            JsonParts::Scalar(_) => {
                return Err(invalid("cannot call populate_composite on a scalar"));
            }
        }
        return Ok(rows);
    }
    let name = kind.name();
    let JsonParts::Array(items) = parts(&text, true)? else {
        let what = match (parts(&text, true)?, kind.binary) {
            (JsonParts::Object(_), false) => "an object",
            (_, false) => "a scalar",
            (_, true) => "a non-array",
        };
        return Err(invalid(&format!("cannot call {name} on {what}")));
    };
    for item in items {
        match parts(item, true)? {
            JsonParts::Object(members) => one(&members)?,
            _ => {
                let text = format!("argument of {name} must be an array of objects");
                return Err(invalid(&text));
            }
        }
    }
    Ok(rows)
}

/// `22023`.
#[cold]
fn invalid(text: &str) -> SqlError {
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text)
}

impl Columns<'_> {
    fn row(&self, members: &[(Cow<'_, str>, &str)], env: &dyn Environment) -> Result<Vec<Value>> {
        let mut row = Vec::with_capacity(self.types.len());
        for (number, name) in self.names.iter().enumerate() {
            let name = name.as_ref().as_str().unwrap_or_default();
            // Of equal names the last counts.
            let member = members.iter().rev().find(|(own, _)| own == name);
            let base = self.base.get(number).cloned().unwrap_or(Value::Null);
            row.push(match member {
                None => base,
                Some((_, text)) => {
                    let typmod = self.typmods.get(number).copied().unwrap_or(Typmod::NONE);
                    let wanted = (self.types[number], typmod);
                    value_of(text, wanted, env, &mut Place::of(name))?
                }
            });
        }
        Ok(row)
    }
}

/// Where in an object something stands: a member, and the elements of arrays in it.
struct Place<'n> {
    name: &'n str,
    elements: Vec<usize>,
}

impl<'n> Place<'n> {
    fn of(name: &'n str) -> Self {
        Self {
            name,
            elements: Vec::new(),
        }
    }

    fn no_array(&self) -> SqlError {
        let text = "expected JSON array";
        let name = self.name;
        let hint = match self.elements.is_empty() {
            true => format!("See the value of key \"{name}\"."),
            false => {
                let subscripts = self.elements.iter().map(|at| format!("[{at}]"));
                let subscripts: String = subscripts.collect();
                format!("See the array element {subscripts} of key \"{name}\".")
            }
        };
        SqlError::new(sqlstate::INVALID_TEXT_REPRESENTATION, text).with_hint(hint)
    }
}

/// What a type reads of a JSON text.
fn value_of(
    text: &str,
    (ty, typmod): (Type, Typmod),
    env: &dyn Environment,
    place: &mut Place<'_>,
) -> Result<Value> {
    let Some(plain) = plain_text(text)? else {
        return Ok(Value::Null);
    };
    match ty {
        Type::Json => return Ok(Value::Json(text.trim().into())),
        Type::Jsonb => return Ok(Value::Jsonb(Jsonb::parse(text)?)),
        _ => {}
    }
    let Some(element) = ty.element() else {
        return read(&plain, (ty, typmod), env);
    };
    match parts(text, true)? {
        JsonParts::Array(items) => {
            let wanted = (element, typmod);
            Ok(Value::Array(array_of(&items, wanted, env, place)?))
        }
        JsonParts::Scalar("string") => read(&plain, (ty, typmod), env),
        _ => Err(place.no_array()),
    }
}

/// What a type reads of a text: of the name of an oid the catalog tells which one that is.
fn read(text: &str, (ty, typmod): (Type, Typmod), env: &dyn Environment) -> Result<Value> {
    let Form::Name(named) = Form::of(ty) else {
        return Ok(input(ty, typmod, text, env.settings())?);
    };
    let name = match ty.element() {
        None => Value::text(text),
        Some(_) => input(Type::Text.array(), Typmod::NONE, text, env.settings())?,
    };
    env.ask(Builtin::Catalog(CatalogFunction::RegOf(named)), &[name])
}

/// An array of JSON texts: of arrays, if the first one is an array.
fn array_of(
    items: &[&str],
    (element, typmod): (Type, Typmod),
    env: &dyn Environment,
    place: &mut Place<'_>,
) -> Result<Array> {
    let is_array =
        |item: &str| Ok::<_, SqlError>(matches!(parts(item, true)?, JsonParts::Array(_)));
    let nests = match items.first() {
        Some(first) => is_array(first)?,
        None => false,
    };
    let depth = place.elements.len();
    if !nests {
        let mut values = Vec::with_capacity(items.len());
        for (number, item) in items.iter().enumerate() {
            place.elements.push(number);
            values.push(value_of(item, (element, typmod), env, place)?);
            place.elements.truncate(depth);
        }
        return Ok(Array::list(element, &values)?);
    }
    let mut arrays = Vec::with_capacity(items.len());
    for (number, item) in items.iter().enumerate() {
        place.elements.push(number);
        let JsonParts::Array(inner) = parts(item, true)? else {
            return Err(place.no_array());
        };
        arrays.push(array_of(&inner, (element, typmod), env, place)?);
        place.elements.truncate(depth);
    }
    let refs: Vec<ArrayRef<'_>> = arrays.iter().map(Array::as_ref).collect();
    let dimensions =
        |array: &ArrayRef<'_>| -> Vec<i32> { array.dimensions().map(|one| one.length).collect() };
    let first = refs.first().map(dimensions);
    let alike = refs.iter().all(|array| Some(dimensions(array)) == first);
    let nested = match alike {
        true => Array::nested(element, &refs)?,
        false => None,
    };
    nested.ok_or_else(|| {
        SqlError::new(
            sqlstate::INVALID_TEXT_REPRESENTATION,
            "malformed JSON array",
        )
        .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
    })
}
