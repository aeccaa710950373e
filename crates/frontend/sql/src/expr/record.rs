//! Rows without a type of their own (`record`): values are texts in PostgreSQL's form of a composite value, and the type's modifier says what
//! the columns are, as it does in PostgreSQL.
//!
//! Layout: `(a,b,…)`; nothing for NULL; a value that is empty or holds a delimiter is quoted, with quotes and backslashes doubled.
//!
//! Not here: composite types with names, `ROW(…)`, the binary form.

use crate::error::{Result, SqlError};
use vellum_row::{Settings, Type, Typmod, Value, ValueRef, input, output};

/// The modifier of the rows that `_pg_expandarray` returns for elements of a type.
pub(crate) fn expanded(element: Type) -> Typmod {
    Typmod(i32::from(element.code()))
}

/// The columns of rows with this modifier.
pub(crate) fn fields(typmod: Typmod) -> Option<[(&'static str, Type); 2]> {
    let element = Type::from_code(u8::try_from(typmod.0).ok()?)?;
    Some([("x", element), ("n", Type::Int4)])
}

/// A row of these values.
pub(super) fn make(values: &[Value], settings: &Settings) -> Value {
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
        output(value.as_ref(), settings, &mut text);
        let special = |char: char| matches!(char, '"' | '\\' | '(' | ')' | ',') || is_space(char);
        if !text.is_empty() && !text.contains(special) {
            out.push_str(&text);
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
    }
    out.push(')');
    Value::text(out)
}

/// One of a row's values.
///
/// # Errors
/// What reading a value of the type may report; `XX000` for what [`make`] has not made.
pub(super) fn field(
    row: ValueRef<'_>,
    number: usize,
    ty: Type,
    settings: &Settings,
) -> Result<Value> {
    let text = row.as_str().unwrap_or_default();
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'))
        .ok_or_else(|| SqlError::internal("a record that is none"))?;
    match parts(inner).into_iter().nth(number).flatten() {
        Some(text) => Ok(input(ty, Typmod::NONE, &text, settings)?),
        None => Ok(Value::Null),
    }
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
            let record = make(&values, &settings);
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
    fn the_modifier_tells_the_columns() {
        let columns = fields(expanded(Type::Int2));
        assert_eq!(columns, Some([("x", Type::Int2), ("n", Type::Int4)]));
        assert_eq!(fields(Typmod::NONE), None);
    }
}
