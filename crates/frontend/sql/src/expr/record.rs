//! Rows without a type of their own (`record`): values are texts in PostgreSQL's form of a composite value, and the type's modifier says what
//! the columns are, as it does in PostgreSQL.
//!
//! Layout: `(a,b,…)`; nothing for NULL; a value that is empty or holds a delimiter is quoted, with quotes and backslashes doubled.
//!
//! In binary form a record is what PostgreSQL's is: how many fields, then of each its type, its length and its bytes. A field of which nothing is
//! known is a text there.
//!
//! Not here: composite types with names, `ROW(…)`.

use crate::error::{Result, SqlError};
use std::sync::Arc;
use vellum_row::{Settings, Type, Typmod, Value, ValueRef, check_length, input, output};

/// Types of a record's fields; of those that are records, what is in them, as far as that is known.
pub(crate) type RowType = Arc<[(Type, Option<RowFields>)]>;

/// The fields of a record in a record.
#[derive(Clone, Debug)]
pub(crate) struct RowFields(pub RowType);

/// Appends the binary form of a row that [`make`] has made.
///
/// # Errors
/// As [`field`].
pub(crate) fn send(
    row: &str,
    known: Option<&RowType>,
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut parts = parts(inner(row)?);
    if let Some(known) = known {
        // Of no field at all there is no text either.
        parts.truncate(known.len());
    }
    out.extend_from_slice(&i32::try_from(parts.len()).unwrap_or(0).to_be_bytes());
    for (number, text) in parts.into_iter().enumerate() {
        let (ty, within) = match known.and_then(|known| known.get(number)) {
            Some((ty, within)) => (*ty, within.as_ref()),
            None => (Type::Text, None),
        };
        out.extend_from_slice(&ty.oid().to_be_bytes());
        let at = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        let Some(text) = text else {
            continue;
        };
        if ty == Type::Record {
            send(&text, within.map(|fields| &fields.0), settings, out)?;
        } else {
            let value = input(ty, Typmod::NONE, &text, settings)?;
            vellum_row::send_to_client(value.as_ref(), settings, out)?;
        }
        let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Set in a modifier that has the oid of a type, and not the number of a row: a statement has not so many of these, nor a database
/// so many types.
const EXPANDED: i32 = 1 << 30;

/// The modifier of the rows that `_pg_expandarray` returns for elements of a type.
pub(crate) fn expanded(element: Type) -> Typmod {
    Typmod(EXPANDED | element.oid() as i32)
}

/// The columns of rows with this modifier.
pub(crate) fn fields(typmod: Typmod) -> Option<[(&'static str, Type); 2]> {
    let oid = (typmod.0 >= EXPANDED).then_some(typmod.0 & !EXPANDED)?;
    let element = Type::from_oid(oid as u32)?;
    Some([("x", element), ("n", Type::Int4)])
}

/// A row of these values.
///
/// # Errors
/// `54000` for one that is too long.
pub(super) fn make(values: &[Value], settings: &Settings) -> Result<Value> {
    let mut out = String::from("(");
    let mut text = String::new();
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        if value.as_ref().is_null() {
            continue;
        }
        text.clear();
        output(value.as_ref(), settings, &mut text)?;
        let special = |char: char| matches!(char, '"' | '\\' | '(' | ')' | ',') || is_space(char);
        if !text.is_empty() && !text.contains(special) {
            out.push_str(&text);
            check_length(out.len())?;
            continue;
        }
        out.push('"');
        for char in text.chars() {
            if matches!(char, '"' | '\\') {
                out.push(char);
            }
            out.push(char);
        }
        out.push('"');
        check_length(out.len())?;
    }
    out.push(')');
    Ok(Value::text(out))
}

/// One of a row's values.
///
/// # Errors
/// What reading a value of the type may report; `XX000` for what [`make`] has not made.
pub(crate) fn field(
    row: ValueRef<'_>,
    number: usize,
    ty: Type,
    settings: &Settings,
) -> Result<Value> {
    let inner = inner(row.as_str().unwrap_or_default())?;
    match parts(inner).into_iter().nth(number).flatten() {
        // What is in it is told by its text as well.
        Some(text) if ty == Type::Record => Ok(Value::text(text)),
        Some(text) => Ok(input(ty, Typmod::NONE, &text, settings)?),
        None => Ok(Value::Null),
    }
}

/// What stands between the parentheses.
fn inner(row: &str) -> Result<&str> {
    let inner = row.strip_prefix('(').and_then(|row| row.strip_suffix(')'));
    inner.ok_or_else(|| SqlError::internal("a record that is none"))
}

/// The texts between the parentheses; `None` for NULL.
fn parts(inner: &str) -> Vec<Option<String>> {
    let mut parts = vec![None];
    let mut chars = inner.chars().peekable();
    let mut quoted = false;
    while let Some(char) = chars.next() {
        let last = parts.len() - 1;
        let mut push = |char: Option<char>| {
            let text: &mut String = parts[last].get_or_insert_default();
            text.extend(char);
        };
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => push(chars.next()),
            '"' => {
                quoted = !quoted;
                push(None);
            }
            '\\' => push(chars.next()),
            ',' if !quoted => parts.push(None),
            char => push(Some(char)),
        }
    }
    parts
}

/// What PostgreSQL takes for a blank there.
fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn what_is_put_into_a_record_comes_out_of_it() {
        let settings = Settings::default();
        for (values, text) in [
            (vec![Value::Int2(3), Value::Int4(1)], "(3,1)"),
            (vec![Value::Null, Value::text("")], r#"(,"")"#),
            (
                vec![Value::text(r#"a "b\,"#), Value::text("(")],
                r#"("a ""b\\,","(")"#,
            ),
        ] {
            let record = make(&values, &settings).unwrap();
            assert_eq!(record, Value::text(text));
            for (number, value) in values.iter().enumerate() {
                let ty = value.ty().unwrap_or(Type::Text);
                let found = field(record.as_ref(), number, ty, &settings).unwrap();
                assert_eq!(found, *value, "{text}");
            }
        }
        assert!(field(ValueRef::Text("x"), 0, Type::Text, &settings).is_err());
    }

    #[test]
    fn the_binary_form_tells_types_lengths_and_values() {
        let settings = Settings::default();
        let known: RowType = vec![(Type::Int2, None), (Type::Int4, None)].into();
        let mut out = Vec::new();
        send("(3,)", Some(&known), &settings, &mut out).unwrap();
        let expected = [
            &[0, 0, 0, 2][..],
            &[0, 0, 0, 21, 0, 0, 0, 2, 0, 3],
            &[0, 0, 0, 23, 255, 255, 255, 255],
        ];
        assert_eq!(out, expected.concat());
        out.clear();
        send("()", Some(&Vec::new().into()), &settings, &mut out).unwrap();
        assert_eq!(out, [0; 4]);
        out.clear();
        send("(ab)", None, &settings, &mut out).unwrap();
        assert_eq!(out, [0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 2, b'a', b'b']);
    }

    #[test]
    fn the_modifier_tells_the_columns() {
        let columns = fields(expanded(Type::Int2));
        assert_eq!(columns, Some([("x", Type::Int2), ("n", Type::Int4)]));
        assert_eq!(fields(Typmod::NONE), None);
    }
}
