//! What a session says while it works, and in what form: the border between `sql` and whoever carries it to a client.
//!
//! A [`Sink`] is called in the order in which PostgreSQL's protocol sends messages. Rows come encoded: for every column
//! its length (big-endian i32, -1 for NULL) and its bytes in the format that was asked for, which is the body of a
//! DataRow message behind its column count. The buffer is the session's and is used again for the next row: no
//! allocation a row, and one copy.
//!
//! Not here: message framing, sockets (`server`).

use crate::error::Fields;

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// As text.
    #[default]
    Text,
    /// As PostgreSQL's send functions write it.
    Binary,
}

impl Format {
    /// The code of the protocol; `None` for an unknown one.
    pub fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Text),
            1 => Some(Self::Binary),
            _ => None,
        }
    }

    /// The code of the protocol.
    pub fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Oid of the table that it comes from unchanged; 0 for none.
    pub table_oid: u32,
    /// Number of the column in that table, from 1; 0 for none.
    pub column_number: i16,
    /// Oid of its type.
    pub type_oid: u32,
    /// Bytes of its type; negative for types of varying length.
    pub type_length: i16,
    /// Modifier of its type, e.g. the length of a varchar; -1 for none.
    pub type_modifier: i32,
}

/// A row of a result.
#[derive(Clone, Copy, Debug)]
pub struct OutputRow<'r> {
    columns: u16,
    body: &'r [u8],
}

impl<'r> OutputRow<'r> {
    /// A row of `columns` encoded columns.
    pub fn new(columns: u16, body: &'r [u8]) -> Self {
        let row = Self { columns, body };
        debug_assert_eq!(row.iter().count(), usize::from(columns));
        row
    }

    /// Number of columns.
    pub fn columns(&self) -> u16 {
        self.columns
    }

    /// The columns one after the other: length (big-endian i32, -1 for NULL), bytes.
    pub fn body(&self) -> &'r [u8] {
        self.body
    }

    /// The columns' bytes; `None` for NULL.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'r [u8]>> + use<'r> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let length = i32::from_be_bytes(*length);
            let Ok(length) = usize::try_from(length) else {
                rest = after;
                return Some(None);
            };
            let (value, after) = after.split_at_checked(length)?;
            rest = after;
            Some(Some(value))
        })
    }
}

/// What a finished statement did: the text of CommandComplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandTag {
    /// The command's name.
    pub name: &'static str,
    /// Rows that it counted, where the command has a count.
    pub rows: Option<u64>,
}

impl CommandTag {
    /// A tag without a count.
    pub const fn plain(name: &'static str) -> Self {
        Self { name, rows: None }
    }

    /// A tag with a count.
    pub const fn counted(name: &'static str, rows: u64) -> Self {
        Self {
            name,
            rows: Some(rows),
        }
    }

    /// The count; 0 for a tag without one.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.unwrap_or(0)
    }
}

impl std::fmt::Display for CommandTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        if let Some(rows) = self.rows {
            // The zero was once an oid.
            let zero = if self.name == "INSERT" { " 0" } else { "" };
            write!(f, "{zero} {rows}")?;
        }
        Ok(())
    }
}

/// Columns of a COPY.
#[derive(Clone, Debug)]
pub struct CopyShape {
    /// Text and csv are text.
    pub format: Format,
    /// Number of columns.
    pub columns: u16,
}

/// The client is gone, or its connection is over: the statement ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

/// Result of telling a client something.
pub type Told = std::result::Result<(), Gone>;

/// Who is told what a session finds. Calls may block for a slow client: no latch is held and no operation of the
/// engine is counted meanwhile.
pub trait Sink {
    /// Rows of this shape follow. Called for simple queries only: in the extended protocol Describe tells.
    ///
    /// # Errors
    /// [`Gone`]: the statement is undone.
    fn row_description(&mut self, fields: &[Field], formats: &[Format]) -> Told;

    /// The next row.
    ///
    /// # Errors
    /// [`Gone`].
    fn row(&mut self, row: OutputRow<'_>) -> Told;

    /// A statement is finished.
    ///
    /// # Errors
    /// [`Gone`].
    fn command_complete(&mut self, tag: &CommandTag) -> Told;

    /// There was no statement in the text.
    ///
    /// # Errors
    /// [`Gone`].
    fn empty_query(&mut self) -> Told;

    /// A notice or warning.
    ///
    /// # Errors
    /// [`Gone`].
    fn notice(&mut self, notice: &Fields) -> Told;

    /// The session waits for data: it is handed over by `Session::copy_data`, ended by `copy_done` or `copy_fail`.
    ///
    /// # Errors
    /// [`Gone`].
    fn copy_in(&mut self, shape: &CopyShape) -> Told;

    /// Data of a COPY to the client follow.
    ///
    /// # Errors
    /// [`Gone`].
    fn copy_out(&mut self, shape: &CopyShape) -> Told;

    /// A piece of it: one row with its end, or a header or trailer.
    ///
    /// # Errors
    /// [`Gone`].
    fn copy_data(&mut self, bytes: &[u8]) -> Told;

    /// The end of it.
    ///
    /// # Errors
    /// [`Gone`].
    fn copy_done(&mut self) -> Told;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn columns_of_a_row_are_found_again() {
        let mut body = Vec::new();
        body.extend_from_slice(&2i32.to_be_bytes());
        body.extend_from_slice(b"ab");
        body.extend_from_slice(&(-1i32).to_be_bytes());
        body.extend_from_slice(&0i32.to_be_bytes());
        let row = OutputRow::new(3, &body);
        let columns: Vec<_> = row.iter().collect();
        assert_eq!(columns, [Some(&b"ab"[..]), None, Some(&b""[..])]);
    }

    #[test]
    fn tags_read_as_clients_expect_them() {
        assert_eq!(CommandTag::counted("INSERT", 3).to_string(), "INSERT 0 3");
        assert_eq!(CommandTag::counted("SELECT", 1).to_string(), "SELECT 1");
        assert_eq!(CommandTag::plain("BEGIN").to_string(), "BEGIN");
    }
}
