//! Fields of a message's body, read in order.

use super::report::Report;

/// SQLSTATE of a message that breaks the protocol.
pub const PROTOCOL_VIOLATION: &str = "08P01";
/// SQLSTATE of bytes that are no text.
const NOT_IN_REPERTOIRE: &str = "22021";

/// Reads a body from its first byte to its last.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// A body that ends too early, or too late.
pub fn invalid_format() -> Report {
    Report::error(PROTOCOL_VIOLATION, "invalid message format")
}

fn too_short() -> Report {
    Report::error(PROTOCOL_VIOLATION, "insufficient data left in message")
}

impl<'a> Reader<'a> {
    /// Reads `body`.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// 08P01 if there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Report> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(too_short)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Report> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(too_short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// A byte.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn u8(&mut self) -> Result<u8, Report> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number of 16 bits.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn i16(&mut self) -> Result<i16, Report> {
        self.array().map(i16::from_be_bytes)
    }

    /// A count, which the protocol writes with 16 bits. As in PostgreSQL's clients it has no sign: up to 65,535.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn count(&mut self) -> Result<usize, Report> {
        self.array().map(u16::from_be_bytes).map(usize::from)
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn i32(&mut self) -> Result<i32, Report> {
        self.array().map(i32::from_be_bytes)
    }

    /// A number of 32 bits without sign.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn u32(&mut self) -> Result<u32, Report> {
        self.array().map(u32::from_be_bytes)
    }

    /// Text up to the next zero byte, which is read too.
    ///
    /// # Errors
    /// 08P01 if there is no zero byte, 22021 if it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Report> {
        self.text_bytes().and_then(utf8)
    }

    /// The same, whatever its bytes are.
    ///
    /// # Errors
    /// 08P01 if there is no zero byte.
    pub fn text_bytes(&mut self) -> Result<&'a [u8], Report> {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let Some(end) = end else {
            return Err(Report::error(
                PROTOCOL_VIOLATION,
                "invalid string in message",
            ));
        };
        let bytes = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(bytes)
    }

    /// Bytes behind a length of 32 bits; none for -1, which is NULL.
    ///
    /// # Errors
    /// 08P01 if there are fewer, or the length is below -1.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Report> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| invalid_format())?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// Everything that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Ends the body (W2).
    ///
    /// # Errors
    /// 08P01 if something is left.
    pub fn end(self) -> Result<(), Report> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(invalid_format())
        }
    }
}

/// Bytes as text.
///
/// # Errors
/// 22021 with the first bytes that are wrong.
pub fn utf8(bytes: &[u8]) -> Result<&str, Report> {
    std::str::from_utf8(bytes).map_err(|error| {
        let wrong = &bytes[error.valid_up_to()..];
        // Told as PostgreSQL tells it: as many bytes as the first one announces.
        let announced = match wrong.first() {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf7) => 4,
            _ => 1,
        };
        let shown: Vec<String> = wrong
            .iter()
            .take(announced)
            .map(|byte| format!("0x{byte:02x}"))
            .collect();
        let text = format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            shown.join(" ")
        );
        Report::error(NOT_IN_REPERTOIRE, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order_and_the_end_is_checked() {
        let mut reader = Reader::new(b"ab\0\0\x05\xff\xff\xff\xff\0\0\0\x01z");
        assert_eq!(reader.text().unwrap(), "ab");
        assert_eq!(reader.i16().unwrap(), 5);
        assert_eq!(reader.value().unwrap(), None);
        assert_eq!(reader.clone().end().unwrap_err().sqlstate, "08P01");
        assert_eq!(reader.value().unwrap(), Some(&b"z"[..]));
        assert!(reader.clone().end().is_ok());
        assert_eq!(reader.u8().unwrap_err().sqlstate, "08P01");
    }

    #[test]
    fn a_negative_length_and_one_beyond_the_body_are_refused() {
        for length in [-2i32, i32::MIN, 2, i32::MAX] {
            let mut body = length.to_be_bytes().to_vec();
            body.push(b'x');
            let error = Reader::new(&body).value().unwrap_err();
            assert_eq!(error.sqlstate, "08P01", "{length}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_postgresql_shows_them() {
        let error = Reader::new(b"a\xe2\x28\xa1\0").text().unwrap_err();
        assert_eq!(error.sqlstate, "22021");
        assert_eq!(
            error.message,
            "invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1"
        );
    }
}
