//! Rows without a type of their own (`record`): values are texts in PostgreSQL's form of a composite value, and the type's modifier says what
//! the columns are, as it does in PostgreSQL.
//!
//! Layout: `(a,b,…)`; nothing for NULL; a value that is empty or holds a delimiter is quoted, with quotes and backslashes doubled. Whatever the
//! session's settings, a value has the text that leads back to it ([`held_forms`]), and an oid is a number: what is taken out is what was put in. Who shows a
//! record gives it the session's forms (`form`); one of which nobody knows what is in it is shown as it is held.
//!
//! In binary form a record is what PostgreSQL's is: how many fields, then of each its type, its length and its bytes. A field of which nothing is
//! known is a text there.
//!
//! Not here: composite types with names, `ROW(…)`.

use super::form::{Form, RowField};
use crate::error::{Result, SqlError};
use std::borrow::Cow;
use vellum_row::{
    ByteaOutput, DateOrder, DateStyle, IntervalStyle, Settings, Type, Typmod, Value, ValueRef,
    check_length, input, output,
};

/// The forms that values in a record have: those of the session, but for what would lose some of them.
pub(super) fn held_forms(settings: &Settings) -> Cow<'_, Settings> {
    if are_held(settings) {
        return Cow::Borrowed(settings);
    }
    Cow::Owned(Settings {
        date_style: DateStyle::Iso,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        bytea_output: ByteaOutput::Hex,
        extra_float_digits: 1,
        ..settings.clone()
    })
}

/// Whether a session shows values as records hold them.
pub(super) fn are_held(settings: &Settings) -> bool {
    settings.date_style == DateStyle::Iso
        && settings.interval_style == IntervalStyle::Postgres
        && settings.bytea_output == ByteaOutput::Hex
        && settings.extra_float_digits > 0
}

/// Whether values of a type, or of its elements, may have another text in a session than in a record.
pub(super) fn has_settings(ty: Type) -> bool {
    matches!(
        ty.element().unwrap_or(ty),
        Type::Float4
            | Type::Float8
            | Type::Bytea
            | Type::Date
            | Type::Timestamp
            | Type::Timestamptz
            | Type::Interval
    )
}

/// Appends the binary form of a row that [`make`] has made.
///
/// # Errors
/// As [`field`].
pub(crate) fn send(
    row: &str,
    known: Option<&[RowField]>,
    settings: &Settings,
    out: &mut Vec<u8>,
) -> Result<()> {
    let parts = field_values(row, known.map_or(usize::MAX, <[_]>::len))?;
    let held = held_forms(settings);
    out.extend_from_slice(&i32::try_from(parts.len()).unwrap_or(0).to_be_bytes());
    for (number, text) in parts.into_iter().enumerate() {
        let (ty, within) = match known.and_then(|known| known.get(number)) {
            Some(RowField { ty, form, .. }) => match form {
                Form::Row(within) => (*ty, within.as_deref()),
                _ => (*ty, None),
            },
            None => (Type::Text, None),
        };
        out.extend_from_slice(&ty.oid().to_be_bytes());
        let at = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        let Some(text) = text else {
            continue;
        };
        if ty == Type::Record {
            send(&text, within, settings, out)?;
        } else {
            let value = input(ty, Typmod::NONE, &text, &held)?;
            vellum_row::send_to_client(value.as_ref(), settings, out)?;
        }
        let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// A row of these values.
///
/// # Errors
/// `54000` for one that is too long.
pub(super) fn make(values: &[Value], settings: &Settings) -> Result<Value> {
    let held = held_forms(settings);
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
        output(value.as_ref(), &held, &mut text)?;
        push_field(&text, &mut out)?;
    }
    out.push(')');
    Ok(Value::text(out))
}

/// Appends the text of a value that is in a row.
///
/// # Errors
/// `54000` if the row gets too long.
pub(super) fn push_field(text: &str, out: &mut String) -> Result<()> {
    let special = |char: char| matches!(char, '"' | '\\' | '(' | ')' | ',') || is_space(char);
    if !text.is_empty() && !text.contains(special) {
        out.push_str(text);
        return Ok(check_length(out.len())?);
    }
    out.push('"');
    for char in text.chars() {
        if matches!(char, '"' | '\\') {
            out.push(char);
        }
        out.push(char);
    }
    out.push('"');
    Ok(check_length(out.len())?)
}

/// The texts of a row's values, of which there are so many; `None` for NULL.
///
/// # Errors
/// `XX000` for what [`make`] has not made.
pub(super) fn field_values(row: &str, count: usize) -> Result<Vec<Option<String>>> {
    let mut values = parts(inner(row)?);
    // Of no field at all there is no text either.
    values.truncate(count);
    Ok(values)
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
        Some(text) => Ok(input(ty, Typmod::NONE, &text, &held_forms(settings))?),
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
    fn regress_what_is_put_into_a_record_comes_out_of_it_whatever_the_settings() {
        let session = Settings {
            date_style: DateStyle::Sql,
            date_order: DateOrder::Dmy,
            interval_style: IntervalStyle::SqlStandard,
            bytea_output: ByteaOutput::Escape,
            extra_float_digits: 0,
            ..Settings::default()
        };
        let plain = Settings::default();
        let all = [
            (Type::Float8, "0.30000000000000004"),
            (Type::Float4, "0.10000001"),
            (Type::Date, "2012-02-03"),
            (Type::Timestamptz, "2012-02-03 04:05:06.000007+00"),
            (Type::Interval, "-1 mons +2 days -00:00:03"),
            (Type::Bytea, "\\x005c"),
            (Type::Float8.array(), "{0.30000000000000004,NaN}"),
        ];
        let values = all.map(|(ty, text)| input(ty, Typmod::NONE, text, &plain).unwrap());
        let record = make(&values, &session).unwrap();
        // Whatever is set, and set meanwhile, it is the same row.
        assert_eq!(make(&values, &plain).unwrap(), record);
        for settings in [&session, &plain] {
            for (number, (ty, text)) in all.into_iter().enumerate() {
                let found = field(record.as_ref(), number, ty, settings).unwrap();
                let mut shown = String::new();
                output(found.as_ref(), &plain, &mut shown).unwrap();
                assert_eq!(shown, text);
            }
        }
        // It is shown in the session's forms.
        let fields = all.map(|(ty, _)| RowField {
            name: "".into(),
            ty,
            form: Form::of(ty),
        });
        let form = Form::Row(Some(fields.into()));
        let name_of = |_: Type, _: u32| Ok(String::new());
        let shown = |settings| form.text(record.as_ref(), settings, &name_of).unwrap();
        let text = r#"(0.3,0.1,03/02/2012,"03/02/2012 04:05:06.000007 UTC","-0-1 +2 -0:00:03","\\000\\\\","{0.3,NaN}")"#;
        assert_eq!(shown(&session), Value::text(text));
        assert_eq!(shown(&plain), record);
    }

    #[test]
    fn the_binary_form_tells_types_lengths_and_values() {
        let settings = Settings::default();
        let known = [Type::Int2, Type::Int4].map(|ty| RowField {
            name: "".into(),
            ty,
            form: Form::Plain,
        });
        let mut out = Vec::new();
        send("(3,)", Some(&known[..]), &settings, &mut out).unwrap();
        let expected = [
            &[0, 0, 0, 2][..],
            &[0, 0, 0, 21, 0, 0, 0, 2, 0, 3],
            &[0, 0, 0, 23, 255, 255, 255, 255],
        ];
        assert_eq!(out, expected.concat());
        out.clear();
        send("()", Some(&[][..]), &settings, &mut out).unwrap();
        assert_eq!(out, [0; 4]);
        out.clear();
        send("(ab)", None, &settings, &mut out).unwrap();
        assert_eq!(out, [0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 2, b'a', b'b']);
    }
}
