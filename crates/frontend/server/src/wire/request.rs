//! What a client asks, after login.
//!
//! A request borrows from the buffer that it arrived in: nothing is copied. Formats are numbers here, and checked: others
//! than text and binary are refused.

use super::reader::{PROTOCOL_VIOLATION, Reader};
use super::report::Report;
use smallvec::SmallVec;

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Statements to be run at once.
    Query(&'a str),
    /// A statement to be prepared.
    Parse(Parse<'a>),
    /// A portal to be made of a prepared statement.
    Bind(Bind<'a>),
    /// Tell parameters and columns.
    Describe(Target, &'a str),
    /// Run a portal.
    Execute {
        /// Its name.
        portal: &'a str,
        /// Most rows; zero for all.
        rows_max: u32,
    },
    /// Forget a statement or a portal.
    Close(Target, &'a str),
    /// End of a group of messages.
    Sync,
    /// Send what there is.
    Flush,
    /// The end of the connection.
    Terminate,
    /// A call of a function by its oid, which is not served.
    FunctionCall,
    /// Part of a login.
    Password(&'a [u8]),
    /// Data of a COPY.
    CopyData(&'a [u8]),
    /// The end of the data.
    CopyDone,
    /// The client gives up a COPY.
    CopyFail(&'a str),
}

/// What Describe and Close are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A statement to be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Its name; empty for the unnamed one.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Oids of its first parameters' types; zero where the server is to find out.
    pub types: SmallVec<[u32; 8]>,
}

/// A portal to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// Its name; empty for the unnamed one.
    pub portal: &'a str,
    /// Name of the statement.
    pub statement: &'a str,
    /// Formats of the parameters: none (text), one for all, or one each.
    pub formats: SmallVec<[i16; 8]>,
    /// The parameters; none is NULL.
    pub values: SmallVec<[Option<&'a [u8]>; 8]>,
    /// Formats of the result's columns: none (text), one for all, or one each.
    pub result_formats: SmallVec<[i16; 8]>,
}

/// Reads the body of a message of `kind`.
///
/// # Errors
/// ERROR if the body is wrong: the connection can go on behind it. FATAL if there is no such kind.
pub fn decode(kind: u8, body: &[u8]) -> Result<Request<'_>, Report> {
    let mut reader = Reader::new(body);
    let request = match kind {
        b'Q' => Request::Query(reader.text()?),
        b'P' => Request::Parse(parse(&mut reader)?),
        b'B' => Request::Bind(bind(&mut reader)?),
        b'D' => Request::Describe(target(&mut reader, "DESCRIBE")?, reader.text()?),
        b'E' => Request::Execute {
            portal: reader.text()?,
            // PostgreSQL takes what is below zero for no limit, too.
            rows_max: u32::try_from(reader.i32()?).unwrap_or(0),
        },
        b'C' => Request::Close(target(&mut reader, "CLOSE")?, reader.text()?),
        b'S' => Request::Sync,
        b'H' => Request::Flush,
        b'X' => Request::Terminate,
        b'F' => return Ok(Request::FunctionCall),
        b'p' => return Ok(Request::Password(reader.rest())),
        b'd' => return Ok(Request::CopyData(reader.rest())),
        b'c' => Request::CopyDone,
        b'f' => Request::CopyFail(reader.text()?),
        kind => {
            return Err(Report::fatal(
                PROTOCOL_VIOLATION,
                format!("invalid frontend message type {kind}"),
            ));
        }
    };
    reader.end()?;
    Ok(request)
}

fn target(reader: &mut Reader<'_>, what: &str) -> Result<Target, Report> {
    match reader.u8()? {
        b'S' => Ok(Target::Statement),
        b'P' => Ok(Target::Portal),
        other => Err(Report::error(
            PROTOCOL_VIOLATION,
            format!("invalid {what} message subtype {other}"),
        )),
    }
}

fn parse<'a>(reader: &mut Reader<'a>) -> Result<Parse<'a>, Report> {
    let (name, text) = (reader.text()?, reader.text()?);
    let count = reader.count()?;
    // All at once, before memory is taken for them (W1).
    let types = reader.bytes(count * 4)?;
    Ok(Parse {
        name,
        text,
        types: types
            .as_chunks::<4>()
            .0
            .iter()
            .map(|chunk| u32::from_be_bytes(*chunk))
            .collect(),
    })
}

fn bind<'a>(reader: &mut Reader<'a>) -> Result<Bind<'a>, Report> {
    let (portal, statement) = (reader.text()?, reader.text()?);
    let formats = formats(reader)?;
    let count = reader.count()?;
    if formats.len() > 1 && formats.len() != count {
        return Err(Report::error(
            PROTOCOL_VIOLATION,
            format!(
                "bind message has {} parameter formats but {count} parameters",
                formats.len()
            ),
        ));
    }
    let mut values = SmallVec::new();
    for _ in 0..count {
        values.push(reader.value()?);
    }
    let result_formats = self::formats(reader)?;
    Ok(Bind {
        portal,
        statement,
        formats,
        values,
        result_formats,
    })
}

fn formats(reader: &mut Reader<'_>) -> Result<SmallVec<[i16; 8]>, Report> {
    let count = reader.count()?;
    let bytes = reader.bytes(count * 2)?;
    let mut formats = SmallVec::with_capacity(count);
    for chunk in bytes.as_chunks::<2>().0 {
        let format = i16::from_be_bytes(*chunk);
        if !(0..=1).contains(&format) {
            return Err(Report::error(
                "22023",
                format!("unsupported format code: {format}"),
            ));
        }
        formats.push(format);
    }
    Ok(formats)
}

/// Whether an error in a message of `kind` is followed by skipping up to the next Sync.
pub fn belongs_to_extended(kind: u8) -> bool {
    matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn a_bind_message_is_read_to_its_last_byte() {
        let body = bytes(&[
            b"portal\0statement\0",
            &[0, 2, 0, 0, 0, 1],
            &[0, 2, 0, 0, 0, 2, b'4', b'2', 0xff, 0xff, 0xff, 0xff],
            &[0, 1, 0, 1],
        ]);
        let Request::Bind(bind) = decode(b'B', &body).unwrap() else {
            panic!("a Bind");
        };
        assert_eq!((bind.portal, bind.statement), ("portal", "statement"));
        assert_eq!(bind.formats[..], [0, 1]);
        assert_eq!(bind.values[..], [Some(&b"42"[..]), None]);
        assert_eq!(bind.result_formats[..], [1]);
        // Every prefix, and one byte more, is an error and no panic.
        for length in 0..body.len() {
            assert!(decode(b'B', &body[..length]).is_err(), "{length} bytes");
        }
        assert!(decode(b'B', &bytes(&[&body, b"x"])).is_err());
    }

    #[test]
    fn counts_have_no_sign_and_are_not_believed() {
        let many = bytes(&[b"\0\0", &[0xff, 0xff], &vec![0; 4 * 65_535]]);
        let Request::Parse(parse) = decode(b'P', &many).unwrap() else {
            panic!("a Parse");
        };
        assert_eq!(parse.types.len(), 65_535);
        assert!(decode(b'P', &many[..many.len() - 1]).is_err());
        assert!(decode(b'P', b"\0\0\xff\xff").is_err());
    }

    #[test]
    fn formats_must_be_known_and_as_many_as_parameters() {
        let unknown = bytes(&[b"\0\0", &[0, 1, 0, 2], &[0, 0], &[0, 0]]);
        assert_eq!(decode(b'B', &unknown).unwrap_err().sqlstate, "22023");
        let two_for_one = bytes(&[
            b"\0\0",
            &[0, 2, 0, 0, 0, 0],
            &[0, 1, 0xff, 0xff, 0xff, 0xff],
            &[0, 0],
        ]);
        let error = decode(b'B', &two_for_one).unwrap_err();
        assert_eq!(
            error.message,
            "bind message has 2 parameter formats but 1 parameters"
        );
    }

    #[test]
    fn a_limit_below_zero_is_none() {
        let request = decode(b'E', b"p\0\xff\xff\xff\xff").unwrap();
        let expected = Request::Execute {
            portal: "p",
            rows_max: 0,
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn something_behind_an_empty_message_is_an_error() {
        for kind in [b'S', b'H', b'X', b'c'] {
            assert!(decode(kind, b"").is_ok());
            assert_eq!(decode(kind, b"x").unwrap_err().sqlstate, "08P01");
        }
    }

    #[test]
    fn only_statements_and_portals_are_described_and_closed() {
        assert_eq!(
            decode(b'D', b"Sname\0").unwrap(),
            Request::Describe(Target::Statement, "name")
        );
        let error = decode(b'C', b"Xname\0").unwrap_err();
        assert_eq!(error.message, "invalid CLOSE message subtype 88");
    }
}
