//! `jsonb` as text.

use super::tree::JsonbKind;
use super::{JsonbRef, parse::DEPTH_MAX};
use crate::error::Result;
use crate::value::{VALUE_BYTES_MAX, check_length};

/// Appends a JSON string with its quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // A sign takes six times its byte.
            _ if out.len() > VALUE_BYTES_MAX => return,
            c if u32::from(c) < 32 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

impl JsonbRef<'_> {
    /// Appends the value's text. Where bytes are damaged, `null` stands.
    ///
    /// # Errors
    /// 54000 if `out` gets longer than a value may be: numbers of few bytes have texts of many.
    pub fn write(self, out: &mut String) -> Result<()> {
        self.write_part(out);
        check_length(out.len())
    }

    /// The same, which ends early then.
    pub(crate) fn write_part(self, out: &mut String) {
        self.write_at(0, out);
    }

    fn write_at(self, depth: usize, out: &mut String) {
        match self.kind() {
            // Only damaged bytes are nested deeper than what can be read.
            _ if depth > DEPTH_MAX => out.push_str("null"),
            None | Some(JsonbKind::Null) => out.push_str("null"),
            Some(JsonbKind::Bool(value)) => out.push_str(if value { "true" } else { "false" }),
            Some(JsonbKind::Number(number)) => number.write(out),
            Some(JsonbKind::String(text)) => write_string(text, out),
            Some(JsonbKind::Array(array)) => {
                out.push('[');
                for index in 0..array.len() {
                    if out.len() > VALUE_BYTES_MAX {
                        return;
                    }
                    if index > 0 {
                        out.push_str(", ");
                    }
                    array
                        .get(index)
                        .unwrap_or(JsonbRef(&[]))
                        .write_at(depth + 1, out);
                }
                out.push(']');
            }
            Some(JsonbKind::Object(object)) => {
                out.push('{');
                for index in 0..object.len() {
                    if out.len() > VALUE_BYTES_MAX {
                        return;
                    }
                    if index > 0 {
                        out.push_str(", ");
                    }
                    write_string(object.key(index).unwrap_or(""), out);
                    out.push_str(": ");
                    object
                        .value(index)
                        .unwrap_or(JsonbRef(&[]))
                        .write_at(depth + 1, out);
                }
                out.push('}');
            }
        }
    }
}
