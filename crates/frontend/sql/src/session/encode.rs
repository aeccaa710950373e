//! Values as columns of a row of the protocol: a length and bytes.

use crate::error::{Result, SqlError};
use crate::expr::{Form, send_record};
use crate::plan::Program;
use crate::wire::Format;
use vellum_row::{
    Column, Schema, Settings, Snapshot, Type, Typmod, Value, ValueRef, check_length, output,
    send_to_client,
};

/// What the rows of a query are kept as, so that they can be told in any format.
#[derive(Debug)]
pub(super) struct Stored {
    pub schema: Schema,
    special: Vec<Option<Special>>,
}

impl Stored {
    /// # Errors
    /// Of columns that no row can have.
    pub fn of(program: &Program) -> Result<Self> {
        // Names say nothing here, and may come twice.
        let columns = (program.columns.iter().enumerate())
            .map(|(number, column)| Column::new(number.to_string(), column.ty, Typmod::NONE, true));
        Ok(Self {
            schema: Schema::new(columns.collect())?,
            special: special_columns(program),
        })
    }

    /// Makes `body` the columns of a row that was kept. `name_of` tells the name of an oid.
    ///
    /// # Errors
    /// `XX001`; of a record that is none.
    pub fn encode(
        &self,
        row: &[u8],
        formats: &[Format],
        (forms, name_of): (&Settings, &dyn Fn(Type, u32) -> String),
        text: &mut String,
        body: &mut Vec<u8>,
    ) -> Result<()> {
        body.clear();
        let row = self.schema.view(row)?;
        for number in 0..self.schema.len() {
            let format = format_of(formats, number);
            let value = row.get(number)?;
            match self.special.get(number) {
                Some(Some(special)) => {
                    special.encode(value, format, (forms, name_of), text, body)?;
                }
                _ => encode(value, format, forms, text, body)?,
            }
        }
        Ok(())
    }
}

/// A column whose values do not say by themselves how they are written.
#[derive(Clone, Debug)]
pub(super) enum Special {
    /// Oids that are names as text, or arrays of such.
    Name(Type),
    /// `"char"`, whose binary form is a byte, also where there is none.
    Byte,
    /// Records, of fields that may be known.
    Row(Form),
    /// Snapshots, whose binary form is another than text's.
    Snapshot,
}

/// Of each column that is special, what it is; nothing if none is.
pub(super) fn special_columns(program: &Program) -> Vec<Option<Special>> {
    let named = |ty: Type| match ty {
        Type::Array(element) => Some(element.ty()).filter(|element| element.is_reg()),
        ty => Some(ty).filter(|ty| ty.is_reg()),
    };
    let special = |ty: Type| {
        let of_form = matches!(ty, Type::Record | Type::SingleChar);
        of_form || ty.is_snapshot() || named(ty).is_some()
    };
    if !program.columns.iter().any(|column| special(column.ty)) {
        return Vec::new();
    }
    let columns = program.columns.iter().enumerate();
    let columns = columns.map(|(number, column)| match column.ty {
        Type::Record => {
            let known = program.records.get(number).cloned().flatten();
            Some(Special::Row(Form::Row(known)))
        }
        Type::SingleChar => Some(Special::Byte),
        ty if ty.is_snapshot() => Some(Special::Snapshot),
        ty => named(ty).map(Special::Name),
    });
    columns.collect()
}

impl Special {
    /// Appends such a column. `name_of` tells the name of an oid.
    ///
    /// # Errors
    /// Of a record that is none.
    pub fn encode(
        &self,
        value: ValueRef<'_>,
        format: Format,
        (forms, name_of): (&Settings, &dyn Fn(Type, u32) -> String),
        text: &mut String,
        body: &mut Vec<u8>,
    ) -> Result<()> {
        match (self, format, value) {
            (Self::Name(ty), Format::Text, ValueRef::Oid(oid)) => {
                let name = Value::text(name_of(*ty, oid));
                encode(name.as_ref(), format, forms, text, body)
            }
            (Self::Name(ty), Format::Text, ValueRef::Array(oids)) => {
                let names = oids.map(Type::Text, |oid| {
                    Ok(match oid {
                        Value::Oid(oid) => Value::text(name_of(*ty, oid)),
                        other => other,
                    })
                })?;
                let names = Value::Array(names);
                encode(names.as_ref(), format, forms, text, body)
            }
            (Self::Row(form), Format::Text, value) if form.makes_text() => {
                let name_of = |ty, oid| Ok(name_of(ty, oid));
                let shown = form.text(value, forms, &name_of)?;
                encode(shown.as_ref(), format, forms, text, body)
            }
            (Self::Row(Form::Row(known)), Format::Binary, ValueRef::Text(row)) => {
                let at = body.len();
                body.extend_from_slice(&[0; 4]);
                send_record(row, known.as_deref(), forms, body)?;
                set_length(body, at)
            }
            (Self::Snapshot, Format::Binary, ValueRef::Text(snapshot)) => {
                let at = body.len();
                body.extend_from_slice(&[0; 4]);
                Snapshot::parse(snapshot)?.send(body);
                set_length(body, at)
            }
            (Self::Byte, Format::Binary, ValueRef::Text("")) => {
                body.extend_from_slice(&1i32.to_be_bytes());
                body.push(0);
                Ok(())
            }
            (_, _, value) => encode(value, format, forms, text, body),
        }
    }
}

/// The format of a column.
pub(super) fn format_of(formats: &[Format], number: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        all => all.get(number).copied().unwrap_or_default(),
    }
}

/// Appends a column of a row: length and bytes.
///
/// # Errors
/// `54000` if a value or the row is too long.
pub(super) fn encode(
    value: ValueRef<'_>,
    format: Format,
    forms: &Settings,
    text: &mut String,
    body: &mut Vec<u8>,
) -> Result<()> {
    if value.is_null() {
        body.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let at = body.len();
    body.extend_from_slice(&[0; 4]);
    match (format, value) {
        (Format::Text, ValueRef::Text(plain)) => body.extend_from_slice(plain.as_bytes()),
        (Format::Text, value) => {
            text.clear();
            output(value, forms, text)?;
            body.extend_from_slice(text.as_bytes());
        }
        (Format::Binary, value) => send_to_client(value, forms, body)?,
    }
    set_length(body, at)
}

/// Writes how long what stands behind a place for a length is.
///
/// # Errors
/// `54000` if the row gets longer than a message may be.
fn set_length(body: &mut [u8], at: usize) -> Result<()> {
    check_length(body.len())?;
    let length = i32::try_from(body.len() - at - 4);
    let length = length.map_err(|_| SqlError::internal("a value of more than 1 GiB"))?;
    body[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
