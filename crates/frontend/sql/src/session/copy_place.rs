//! Where an error of a COPY is: the line, and its text, or the column and the text in it.

use super::copy::CopyIn;
use crate::error::SqlError;
use crate::sqlstate;

/// Bytes of data that are shown of a line or a field, at most.
const SHOWN_BYTES: usize = 100;

/// A line of a table.
pub(super) fn place(table: &str, line: u64) -> String {
    format!("COPY {table}, line {line}")
}

impl CopyIn {
    /// Says of an error which line it is of, with the text that it has: `None` where that is not to be shown.
    pub(super) fn at_line(&self, error: SqlError, line: u64, text: Option<&[u8]>) -> SqlError {
        let text = text.and_then(|text| str::from_utf8(text).ok());
        error.or_context(|| match text {
            Some(text) => format!("{}: \"{}\"", place(&self.table, line), shown(text)),
            None => place(&self.table, line),
        })
    }

    /// The same of the text of a column, by its number among those that are copied.
    #[cold]
    pub(super) fn at_field(&self, error: SqlError, number: usize, text: &str) -> SqlError {
        let column = self.columns.get(number).map_or("", |name| name);
        error.or_context(|| {
            let place = place(&self.table, self.line);
            format!("{place}, column {column}: \"{}\"", shown(text))
        })
    }

    /// The same of a row that was not inserted. Rows go into indexes together, when their lines are gone; what foreign keys ask is asked behind the last
    /// of them.
    #[cold]
    pub(super) fn at_row(&self, error: SqlError, line: u64, text: &[u8]) -> SqlError {
        match error.sqlstate() {
            sqlstate::FOREIGN_KEY_VIOLATION => error,
            sqlstate::UNIQUE_VIOLATION => self.at_line(error, line, None),
            _ if self.lines.binary => self.at_line(error, line, None),
            _ => self.at_line(error, line, Some(text)),
        }
    }
}

/// What is shown of a text.
fn shown(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_long_text_is_shown_in_part() {
        assert_eq!(shown(&"x".repeat(100)), "x".repeat(100));
        assert_eq!(shown(&"x".repeat(101)), format!("{}...", "x".repeat(100)));
        let text = format!("{}ää", "x".repeat(99));
        assert_eq!(shown(&text), format!("{}...", "x".repeat(99)));
    }
}
