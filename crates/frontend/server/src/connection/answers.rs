//! What a session tells, as messages.
//!
//! Cost: a row is copied once, from the session's buffer behind its header in ours.
//!
//! Concurrency: a write may block for a slow client; the session holds no latch meanwhile.

use crate::sessions::Tally;
use crate::stream::Stream;
use crate::wire::outbound::Outbound;
use crate::wire::report::{Fields as Message, Severity};
use std::io;
use vellum_sql::{
    CommandTag, CopyShape, Field, Fields, Format, Gone, Notification, OutputRow,
    Severity as SqlSeverity, Sink, SqlError, Told,
};

/// Gathers messages; writes when enough are gathered.
pub struct Answers<'c> {
    /// Where they are gathered.
    pub out: &'c mut Outbound,
    /// Where they go.
    pub stream: &'c mut Stream,
    /// What is counted.
    pub tally: &'c Tally,
    /// Why the client cannot be written to any more.
    pub lost: Option<io::Error>,
}

impl Answers<'_> {
    /// Writes if enough is gathered.
    fn told(&mut self) -> Told {
        if self.out.is_full() {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> Told {
        if self.lost.is_some() {
            return Err(Gone);
        }
        super::write_out(self.stream, self.out, self.tally).map_err(|error| {
            self.lost = Some(error);
            Gone
        })
    }
}

impl Sink for Answers<'_> {
    fn row_description(&mut self, fields: &[Field], formats: &[Format]) -> Told {
        row_description(self.out, fields, formats);
        self.told()
    }

    #[inline]
    fn row(&mut self, row: OutputRow<'_>) -> Told {
        let start = self.out.begin(b'D');
        self.out.u16(row.columns());
        self.out.raw(row.body());
        self.out.end(start);
        self.told()
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        let start = self.out.begin(b'C');
        tag_text(self.out, tag);
        self.out.u8(0);
        self.out.end(start);
        self.told()
    }

    fn empty_query(&mut self) -> Told {
        self.out.bare(b'I');
        self.told()
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        message(self.out, notice);
        self.told()
    }

    fn copy_in(&mut self, shape: &CopyShape) -> Told {
        copy_response(self.out, b'G', shape);
        // The client waits for it before it sends anything.
        self.write()
    }

    fn copy_out(&mut self, shape: &CopyShape) -> Told {
        copy_response(self.out, b'H', shape);
        self.told()
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Told {
        let start = self.out.begin(b'd');
        self.out.raw(bytes);
        self.out.end(start);
        self.told()
    }

    fn copy_done(&mut self) -> Told {
        self.out.bare(b'c');
        self.told()
    }
}

/// The text of a tag, without a formatter on the way of every statement.
fn tag_text(out: &mut Outbound, tag: &CommandTag) {
    out.raw(tag.name.as_bytes());
    if let Some(rows) = tag.rows {
        out.raw(if tag.name == "INSERT" { b" 0 " } else { b" " });
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = rows;
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        out.raw(&digits[at..]);
    }
}

/// RowDescription. Formats as in Bind: none is text, one is for all.
pub fn row_description(out: &mut Outbound, fields: &[Field], formats: &[Format]) {
    let start = out.begin(b'T');
    out.u16(u16::try_from(fields.len()).expect("a row has at most 1,664 columns"));
    for (number, field) in fields.iter().enumerate() {
        let format = match formats {
            [] => Format::Text,
            [all] => *all,
            each => each.get(number).copied().unwrap_or_default(),
        };
        out.text(&field.name);
        out.u32(field.table_oid);
        out.i16(field.column_number);
        out.u32(field.type_oid);
        out.i16(field.type_length);
        out.i32(field.type_modifier);
        out.i16(format.code());
    }
    out.end(start);
}

/// ParameterDescription.
pub fn parameter_description(out: &mut Outbound, types: &[u32]) {
    let start = out.begin(b't');
    out.u16(u16::try_from(types.len()).expect("a statement has at most 65,535 parameters"));
    for oid in types {
        out.u32(*oid);
    }
    out.end(start);
}

/// NotificationResponse.
pub fn notification(out: &mut Outbound, news: &Notification) {
    let start = out.begin(b'A');
    out.i32(news.process_id);
    out.text(&news.channel);
    out.text(&news.payload);
    out.end(start);
}

fn copy_response(out: &mut Outbound, kind: u8, shape: &CopyShape) {
    let start = out.begin(kind);
    let format = shape.format.code();
    out.u8(u8::try_from(format).expect("0 or 1"));
    out.u16(shape.columns);
    for _ in 0..shape.columns {
        out.i16(format);
    }
    out.end(start);
}

/// ErrorResponse of a session's error.
pub fn error(out: &mut Outbound, error: &SqlError) {
    message(out, error.fields());
}

/// ErrorResponse or NoticeResponse.
fn message(out: &mut Outbound, fields: &Fields) {
    let severity = match fields.severity {
        SqlSeverity::Error => Severity::Error,
        SqlSeverity::Fatal => Severity::Fatal,
        SqlSeverity::Warning => Severity::Warning,
        SqlSeverity::Notice => Severity::Notice,
        SqlSeverity::Info => Severity::Info,
    };
    let sqlstate = fields.sqlstate.to_string();
    let mut message = Message::begin(out, severity, &sqlstate, &fields.message);
    message.optional(b'D', fields.detail.as_deref());
    message.optional(b'H', fields.hint.as_deref());
    if let Some(position) = fields.position {
        message.field(b'P', &position.to_string());
    }
    message.optional(b'W', fields.context.as_deref());
    message.optional(b's', fields.schema.as_deref());
    message.optional(b't', fields.table.as_deref());
    message.optional(b'c', fields.column.as_deref());
    message.optional(b'd', fields.data_type.as_deref());
    message.optional(b'n', fields.constraint.as_deref());
    message.optional(b'R', fields.routine);
    message.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_written_as_the_session_shows_them() {
        for tag in [
            CommandTag::plain("BEGIN"),
            CommandTag::counted("INSERT", 0),
            CommandTag::counted("SELECT", 10),
            CommandTag::counted("UPDATE", u64::MAX),
        ] {
            let mut out = Outbound::new();
            tag_text(&mut out, &tag);
            assert_eq!(out.as_slice(), tag.to_string().as_bytes());
        }
    }

    #[test]
    fn one_format_is_for_all_columns() {
        let field = Field {
            name: "a".into(),
            table_oid: 1,
            column_number: 2,
            type_oid: 23,
            type_length: 4,
            type_modifier: -1,
        };
        let mut out = Outbound::new();
        row_description(&mut out, &[field.clone(), field], &[Format::Binary]);
        let column = b"a\0\0\0\0\x01\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01";
        assert_eq!(&out.as_slice()[5..7], b"\0\x02");
        assert_eq!(&out.as_slice()[7..], [&column[..], column].concat());
    }
}
