//! Errors and notices: their fields, and their bytes.
//!
//! Layout: `E` or `N`, then fields of a letter and text, then a zero byte. `V` repeats the severity for programs.

use super::outbound::Outbound;
use std::borrow::Cow;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Ends the statement.
    Error,
    /// Ends the connection.
    Fatal,
    /// Tells, and ends nothing.
    Notice,
    /// Tells that something may not be as it was meant.
    Warning,
    /// Tells what was asked for.
    Info,
}

impl Severity {
    /// The word of the protocol.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
            Self::Info => "INFO",
        }
    }
}

/// An error or a notice that the server itself makes: about the protocol, the login, the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How bad it is.
    pub severity: Severity,
    /// Five characters that programs read.
    pub sqlstate: Cow<'static, str>,
    /// One line, lower case.
    pub message: Cow<'static, str>,
    /// More about the cause.
    pub detail: Option<Cow<'static, str>>,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
}

impl Report {
    /// An error.
    pub fn error(sqlstate: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            severity: Severity::Error,
            sqlstate: sqlstate.into(),
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// An error that ends the connection.
    pub fn fatal(sqlstate: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            severity: Severity::Fatal,
            ..Self::error(sqlstate, message)
        }
    }

    /// The same with a detail.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, ending the connection.
    #[must_use]
    pub fn ends_connection(mut self) -> Self {
        self.severity = Severity::Fatal;
        self
    }

    /// Whether the connection ends after it.
    pub fn is_fatal(&self) -> bool {
        self.severity == Severity::Fatal
    }

    /// Writes it.
    pub fn write(&self, out: &mut Outbound) {
        let mut fields = Fields::begin(out, self.severity, &self.sqlstate, &self.message);
        fields.optional(b'D', self.detail.as_deref());
        fields.optional(b'H', self.hint.as_deref());
        fields.end();
    }
}

/// Writes the fields of an error or a notice one after the other.
pub struct Fields<'o> {
    out: &'o mut Outbound,
    start: usize,
}

impl<'o> Fields<'o> {
    /// Begins with the fields that every report has.
    pub fn begin(out: &'o mut Outbound, severity: Severity, sqlstate: &str, message: &str) -> Self {
        let kind = match severity {
            Severity::Error | Severity::Fatal => b'E',
            Severity::Notice | Severity::Warning | Severity::Info => b'N',
        };
        let start = out.begin(kind);
        let mut fields = Self { out, start };
        fields.field(b'S', severity.word());
        fields.field(b'V', severity.word());
        fields.field(b'C', sqlstate);
        fields.field(b'M', message);
        fields
    }

    /// A field.
    pub fn field(&mut self, letter: u8, text: &str) {
        self.out.u8(letter);
        self.out.text(text);
    }

    /// A field that may be absent.
    pub fn optional(&mut self, letter: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.field(letter, text);
        }
    }

    /// Ends the message.
    pub fn end(self) {
        self.out.u8(0);
        self.out.end(self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_severity_twice_then_code_message_and_what_else_is_known() {
        let mut out = Outbound::new();
        Report::fatal("53300", "too many")
            .hint("wait")
            .write(&mut out);
        let expected = b"SFATAL\0VFATAL\0C53300\0Mtoo many\0Hwait\0\0";
        let bytes = out.as_slice();
        assert_eq!(bytes[0], b'E');
        let length = i32::from_be_bytes(bytes[1..5].try_into().unwrap());
        assert_eq!(usize::try_from(length).unwrap(), expected.len() + 4);
        assert_eq!(&bytes[5..], expected);
    }

    #[test]
    fn a_zero_byte_in_a_text_ends_no_field() {
        let mut out = Outbound::new();
        Report::error("22021", "a\0b").write(&mut out);
        assert!(out.as_slice().ends_with(b"Mab\0\0"));
    }
}
