//! Values whose text is told by their type, and not by themselves: oids that are shown as names, rows, and arrays and rows with such in them.
//!
//! A value is held by what carries it, and most are shown by that alone. What is not has a form, which the binder makes of the type (`bind/shown`): text and
//! JSON of the value are made here and nowhere else. A row is held as the text of its values, in forms that do not depend on the session (`record`), with oids
//! as numbers: so a field is read back as what it was, whatever it is called and whatever is set meanwhile. Where a row is shown its values get the session's
//! forms and names.

use super::record::{are_held, field_values, has_settings, held_forms, push_field};
use super::{CatalogFunction, Environment};
use crate::error::{Result, SqlError};
use crate::expr::Builtin;
use std::sync::Arc;
use vellum_row::json::{self, write_string};
use vellum_row::{Settings, Type, Typmod, Value, ValueRef, check_length, input, output};

/// What the text and the JSON of a value are made by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// Of the value itself.
    Plain,
    /// A number, or an array of such, that is a string in JSON.
    Number,
    /// An oid, or an array of such, that is shown as the name of what it is the number of.
    Name(Type),
    /// A row; `None`: it is not known what is in it.
    Row(Option<RowType>),
}

/// The fields of a row.
pub(crate) type RowType = Arc<[RowField]>;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowField {
    pub name: Box<str>,
    pub ty: Type,
    pub form: Form,
}

/// What a value is made into by its form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub form: Form,
    pub as_json: bool,
}

/// Tells the name of an oid.
pub(crate) type NameOf<'a> = dyn Fn(Type, u32) -> Result<String> + 'a;

impl Form {
    /// Of a value that is no row.
    pub fn of(ty: Type) -> Self {
        match ty.element().unwrap_or(ty) {
            Type::Oid | Type::Xid | Type::Xid8 => Self::Number,
            one if one.is_reg() => Self::Name(one),
            _ => Self::Plain,
        }
    }

    /// Whether the text of a value has names in it that the value has not.
    pub fn has_names(&self) -> bool {
        match self {
            Self::Plain | Self::Number | Self::Row(None) => false,
            Self::Name(_) => true,
            Self::Row(Some(fields)) => fields.iter().any(|field| field.form.has_names()),
        }
    }

    /// Whether the text of a value may be another one than the value makes by itself: of names, or of the session's forms in a row.
    pub fn makes_text(&self) -> bool {
        match self {
            Self::Row(Some(fields)) => {
                let mut fields = fields.iter();
                fields.any(|field| has_settings(field.ty) || field.form.makes_text())
            }
            _ => self.has_names(),
        }
    }

    /// The same in a session of these settings.
    fn makes_text_in(&self, settings: &Settings) -> bool {
        match are_held(settings) {
            true => self.has_names(),
            false => self.makes_text(),
        }
    }

    /// A value that is, as text or as array of texts, what it is shown as.
    ///
    /// # Errors
    /// `54000` for one that is too long; those of [`NameOf`].
    pub fn text(
        &self,
        value: ValueRef<'_>,
        settings: &Settings,
        name_of: &NameOf<'_>,
    ) -> Result<Value> {
        let one = |value: ValueRef<'_>| match (self, value) {
            (_, ValueRef::Null) => Ok(Value::Null),
            (Self::Name(ty), ValueRef::Oid(oid)) => name_of(*ty, oid).map(Value::text),
            (_, value) => {
                let mut text = String::new();
                output(value, settings, &mut text)?;
                Ok(Value::text(text))
            }
        };
        Ok(match (self, value) {
            (Self::Plain, value) => value.to_value(),
            (Self::Row(Some(fields)), ValueRef::Text(row)) if self.makes_text_in(settings) => {
                let mut out = String::new();
                row_text(row, fields, settings, name_of, &mut out)?;
                Value::text(out)
            }
            (Self::Row(_), value) => value.to_value(),
            (_, ValueRef::Array(array)) => {
                let mut failed = None;
                let texts = array.map(Type::Text, |item| {
                    Ok(one(item.as_ref()).unwrap_or_else(|error| {
                        failed.get_or_insert(error);
                        Value::Null
                    }))
                })?;
                match failed {
                    Some(error) => return Err(error),
                    None => Value::Array(texts),
                }
            }
            (_, value) => one(value)?,
        })
    }

    /// Appends a value as JSON.
    ///
    /// # Errors
    /// `0A000` for a row of which it is not known what is in it, and as [`Form::text`].
    pub fn json(
        &self,
        value: ValueRef<'_>,
        settings: &Settings,
        name_of: &NameOf<'_>,
        out: &mut String,
    ) -> Result<()> {
        match (self, value) {
            (Self::Row(None), ValueRef::Text(_)) => return Err(unknown_row()),
            (Self::Row(Some(fields)), ValueRef::Text(row)) => {
                row_json(row, fields, settings, name_of, out)?;
            }
            (Self::Plain | Self::Row(_), value) => json::append(value, settings, out)?,
            (_, value) => {
                let text = self.text(value, settings, name_of)?;
                json::append(text.as_ref(), settings, out)?;
            }
        }
        Ok(check_length(out.len())?)
    }
}

/// `0A000`
#[cold]
pub(crate) fn unknown_row() -> SqlError {
    SqlError::unsupported("JSON of a row of which it is not known what is in it")
}

/// A row with its values as the session shows them.
fn row_text(
    row: &str,
    fields: &[RowField],
    settings: &Settings,
    name_of: &NameOf<'_>,
    out: &mut String,
) -> Result<()> {
    out.push('(');
    let held = held_forms(settings);
    let differs = !are_held(settings);
    let mut inner = String::new();
    for (number, (text, field)) in field_values(row, fields.len())?
        .into_iter()
        .zip(fields)
        .enumerate()
    {
        if number > 0 {
            out.push(',');
        }
        let Some(text) = text else {
            continue;
        };
        match &field.form {
            Form::Row(Some(within)) if field.form.makes_text_in(settings) => {
                inner.clear();
                row_text(&text, within, settings, name_of, &mut inner)?;
                push_field(&inner, out)?;
            }
            form if form.has_names() || differs && has_settings(field.ty) => {
                let value = input(field.ty, Typmod::NONE, &text, &held)?;
                let shown = form.text(value.as_ref(), settings, name_of)?;
                inner.clear();
                output(shown.as_ref(), settings, &mut inner)?;
                push_field(&inner, out)?;
            }
            _ => push_field(&text, out)?,
        }
    }
    out.push(')');
    Ok(())
}

/// An object of the fields of a row.
fn row_json(
    row: &str,
    fields: &[RowField],
    settings: &Settings,
    name_of: &NameOf<'_>,
    out: &mut String,
) -> Result<()> {
    out.push('{');
    let held = held_forms(settings);
    for (number, (text, field)) in field_values(row, fields.len())?
        .into_iter()
        .zip(fields)
        .enumerate()
    {
        if number > 0 {
            out.push(',');
        }
        write_string(&field.name, out);
        out.push(':');
        match (text, &field.form) {
            (None, _) => out.push_str("null"),
            (Some(text), Form::Row(_)) => {
                field
                    .form
                    .json(ValueRef::Text(&text), settings, name_of, out)?;
            }
            (Some(text), form) => {
                let value = input(field.ty, Typmod::NONE, &text, &held)?;
                form.json(value.as_ref(), settings, name_of, out)?;
            }
        }
    }
    out.push('}');
    Ok(check_length(out.len())?)
}

impl Shown {
    /// Makes it of a value that is not null.
    ///
    /// # Errors
    /// As [`Form::json`].
    pub fn of(&self, value: ValueRef<'_>, env: &dyn Environment) -> Result<Value> {
        let name_of = |ty, oid| {
            let function = Builtin::Catalog(CatalogFunction::RegText(ty));
            match env.ask(function, &[Value::Oid(oid)])? {
                Value::Text(name) => Ok(name.into_string()),
                _ => Err(SqlError::internal("an oid without a name")),
            }
        };
        if !self.as_json {
            return self.form.text(value, env.settings(), &name_of);
        }
        let mut out = String::new();
        self.form.json(value, env.settings(), &name_of, &mut out)?;
        Ok(Value::Json(out.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn named(ty: Type, oid: u32) -> Result<String> {
        assert_eq!(ty, Type::Regtype);
        Ok(match oid {
            23 => "integer".to_owned(),
            oid => format!("a, {oid}"),
        })
    }

    fn field(name: &str, ty: Type, form: Form) -> RowField {
        RowField {
            name: name.into(),
            ty,
            form,
        }
    }

    #[test]
    fn names_stand_in_texts_of_rows_however_deep() {
        let settings = Settings::default();
        let reg = Form::of(Type::Regtype);
        let inner: RowType = [
            field("n", Type::Int4, Form::Plain),
            field("r", Type::Regtype, reg.clone()),
        ]
        .into();
        let outer = Form::Row(Some(
            [
                field("a", Type::Record, Form::Row(Some(inner))),
                field("b", Type::Regtype.array(), Form::of(Type::Regtype.array())),
                field("c", Type::Text, Form::Plain),
            ]
            .into(),
        ));
        let row = r#"("(1,23)","{23,7}",)"#;
        let text = outer.text(ValueRef::Text(row), &settings, &named).unwrap();
        assert_eq!(
            text,
            Value::text(r#"("(1,integer)","{integer,""a, 7""}",)"#)
        );
        let mut out = String::new();
        outer
            .json(ValueRef::Text(row), &settings, &named, &mut out)
            .unwrap();
        assert_eq!(
            out,
            r#"{"a":{"n":1,"r":"integer"},"b":["integer","a, 7"],"c":null}"#
        );
    }

    #[test]
    fn a_row_without_known_fields_is_no_json_and_stays_a_text() {
        let settings = Settings::default();
        let form = Form::Row(None);
        let row = ValueRef::Text("(1)");
        assert!(
            form.json(row, &settings, &named, &mut String::new())
                .is_err()
        );
        assert_eq!(
            form.text(row, &settings, &named).unwrap(),
            Value::text("(1)")
        );
    }
}
