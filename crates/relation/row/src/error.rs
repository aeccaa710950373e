//! What goes wrong with values: an error with the SQLSTATE, message, detail and hint that a
//! PostgreSQL server would send.
//!
//! Not here: position, table and constraint of an error; the layer that knows them adds them.

use std::borrow::Cow;
use std::fmt;

/// A five-character error code of the SQL standard.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState::of($code);)*
        }
    };
}

states! {
    /// 0A000: the feature is not there.
    FEATURE_NOT_SUPPORTED = "0A000";
    /// 2201E: the logarithm of something that has none.
    INVALID_LOGARITHM = "2201E";
    /// 2201F: a power that is not defined.
    INVALID_POWER = "2201F";
    /// 22000: a wrong value.
    DATA_EXCEPTION = "22000";
    /// 22001: a string is too long for its type.
    STRING_TOO_LONG = "22001";
    /// 22003: a number is out of its type's range.
    NUMERIC_OUT_OF_RANGE = "22003";
    /// 22004: a null where none may be.
    NULL_NOT_ALLOWED = "22004";
    /// 22007: not a date or time.
    INVALID_DATETIME = "22007";
    /// 22008: a date or time out of range.
    DATETIME_OVERFLOW = "22008";
    /// 22009: a time zone displacement out of range.
    INVALID_TIME_ZONE_DISPLACEMENT = "22009";
    /// 22011: a substring that is not defined.
    SUBSTRING_ERROR = "22011";
    /// 22012: division by zero.
    DIVISION_BY_ZERO = "22012";
    /// 22015: an interval's field is out of range.
    INTERVAL_OVERFLOW = "22015";
    /// 22021: bytes that are no text.
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    /// 22023: a parameter that a function does not take.
    INVALID_PARAMETER = "22023";
    /// 22025: an escape that is not one.
    INVALID_ESCAPE = "22025";
    /// 2202E: a wrong number of subscripts.
    ARRAY_SUBSCRIPT = "2202E";
    /// 22P02: text that is not of the type.
    INVALID_TEXT = "22P02";
    /// 22P03: bytes that are not of the type.
    INVALID_BINARY = "22P03";
    /// 22P05: a character that the encoding lacks.
    UNTRANSLATABLE_CHARACTER = "22P05";
    /// 42501: not allowed.
    INSUFFICIENT_PRIVILEGE = "42501";
    /// 42601: syntax error.
    SYNTAX_ERROR = "42601";
    /// 42701: the column is there already.
    DUPLICATE_COLUMN = "42701";
    /// 42703: no such column.
    UNDEFINED_COLUMN = "42703";
    /// 42704: no such thing.
    UNDEFINED_OBJECT = "42704";
    /// 42804: the types do not match.
    DATATYPE_MISMATCH = "42804";
    /// 42846: there is no such cast.
    CANNOT_COERCE = "42846";
    /// 42883: there is no such function or operator.
    UNDEFINED_FUNCTION = "42883";
    /// 54000: a limit of the program.
    PROGRAM_LIMIT = "54000";
    /// 54001: nested too deeply.
    TOO_COMPLEX = "54001";
    /// 54011: more columns than a table may have.
    TOO_MANY_COLUMNS = "54011";
    /// 55P04: a value of an enum that has not committed.
    UNSAFE_NEW_ENUM_VALUE = "55P04";
    /// 57014: it was to stop.
    QUERY_CANCELED = "57014";
    /// XX000: an error of ours.
    INTERNAL = "XX000";
    /// XX001: stored bytes are damaged.
    DATA_CORRUPTED = "XX001";
}

impl SqlState {
    /// The state with this code. A code that is not five bytes long does not compile as a constant.
    ///
    /// # Panics
    /// If `code` is not five bytes long.
    pub const fn of(code: &str) -> Self {
        let code = code.as_bytes();
        assert!(code.len() == 5, "a state has five characters");
        Self([code[0], code[1], code[2], code[3], code[4]])
    }

    /// Its five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }

    /// The class: its first two characters.
    pub fn class(&self) -> &str {
        &self.as_str()[..2]
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as a client sees it. One word: it is the cold side of every result here.
#[derive(Clone, PartialEq, Eq)]
pub struct SqlError(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    state: SqlState,
    message: Cow<'static, str>,
    detail: Option<Cow<'static, str>>,
    hint: Option<Cow<'static, str>>,
}

/// The result of everything here that a value can make fail.
pub type Result<T> = std::result::Result<T, SqlError>;

impl SqlError {
    /// An error without detail and hint.
    #[cold]
    pub fn new(state: SqlState, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Parts {
            state,
            message: message.into(),
            detail: None,
            hint: None,
        }))
    }

    /// The same with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Its code.
    pub fn state(&self) -> SqlState {
        self.0.state
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The detail, if there is one.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The hint, if there is one.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Text that is not of its type (22P02).
    #[cold]
    pub fn invalid_text(type_name: &str, text: &str) -> Self {
        let message = format!("invalid input syntax for type {type_name}: \"{text}\"");
        Self::new(SqlState::INVALID_TEXT, message)
    }

    /// A number out of its type's range (22003), as arithmetic reports it.
    #[cold]
    pub fn out_of_range(type_name: &str) -> Self {
        Self::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            format!("{type_name} out of range"),
        )
    }

    /// Division by zero (22012).
    #[cold]
    pub fn division_by_zero() -> Self {
        Self::new(SqlState::DIVISION_BY_ZERO, "division by zero")
    }

    /// Bytes of a stored row or key that cannot be (XX001).
    #[cold]
    pub(crate) fn damaged(what: &'static str) -> Self {
        Self::new(
            SqlState::DATA_CORRUPTED,
            format!("stored {what} is damaged"),
        )
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.state, self.0.message)?;
        if let Some(detail) = &self.0.detail {
            write!(f, " (detail: {detail})")?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_word_and_keeps_its_parts() {
        assert_eq!(size_of::<SqlError>(), size_of::<usize>());
        let error = SqlError::new(SqlState::STRING_TOO_LONG, "too long")
            .with_detail("by one")
            .with_hint("shorten it");
        assert_eq!(error.state().as_str(), "22001");
        assert_eq!(error.state().class(), "22");
        assert_eq!(error.detail(), Some("by one"));
        assert_eq!(
            format!("{error:?}"),
            "22001: too long (detail: by one) (hint: shorten it)"
        );
    }
}
