//! Reads JSON text, with the errors that PostgreSQL gives.
//!
//! The parser is one token ahead, so that a wrong token is reported before what stands there is
//! missed. It keeps nothing: whoever wants something of the text is told what stands there, in its order ([`Listener`]). A text of a few letters a value
//! would be a tree of many times its bytes.

use crate::error::{Result, SqlError, SqlState};
use std::borrow::Cow;
use std::ops::Range;

/// How deep arrays and objects may be nested.
pub(super) const DEPTH_MAX: usize = 1500;

/// A value that is neither an array nor an object.
#[derive(Debug)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    /// Its text.
    Number(&'a str),
    /// Decoded, if the parser does that.
    String(Cow<'a, str>),
}

/// What is told of a text.
pub(super) trait Listener<'a> {
    /// A value, and where it stands.
    fn scalar(&mut self, value: Scalar<'a>, span: Range<usize>) -> Result<()>;
    /// An array or an object begins.
    fn open(&mut self, is_object: bool, start: usize) -> Result<()>;
    /// The name of a member, whose value is told next. Of equal names all are told.
    fn key(&mut self, key: Cow<'a, str>) -> Result<()>;
    /// The array or object that began last ends.
    fn close(&mut self, end: usize) -> Result<()>;
}

/// Who wants to know only whether a text is JSON.
impl Listener<'_> for () {
    fn scalar(&mut self, _: Scalar<'_>, _: Range<usize>) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, _: bool, _: usize) -> Result<()> {
        Ok(())
    }

    fn key(&mut self, _: Cow<'_, str>) -> Result<()> {
        Ok(())
    }

    fn close(&mut self, _: usize) -> Result<()> {
        Ok(())
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Token<'a> {
    Punctuation(u8),
    True,
    False,
    Null,
    Number,
    String(Cow<'a, str>),
    End,
}

struct Parser<'a, 'l> {
    text: &'a str,
    /// The token ahead and where it stands.
    token: Token<'a>,
    span: Range<usize>,
    /// Whether escapes are looked into, as `jsonb` must.
    decode: bool,
    listener: &'l mut dyn Listener<'a>,
}

/// Reads a JSON value. With `decode` strings are decoded and must be text; without, they are only
/// checked, and told without what is escaped.
///
/// # Errors
/// 22P02 for other text, 54001 if it is nested too deeply; with `decode` 22P05 for `\u0000`; those of the listener.
pub(super) fn parse<'a>(
    text: &'a str,
    decode: bool,
    listener: &mut dyn Listener<'a>,
) -> Result<()> {
    let mut parser = Parser {
        text,
        token: Token::End,
        span: 0..0,
        decode,
        listener,
    };
    parser.advance()?;
    parser.value(0)?;
    if parser.token != Token::End {
        return Err(parser.unexpected("Expected end of input"));
    }
    Ok(())
}

#[cold]
fn invalid(detail: String) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT, "invalid input syntax for type json").with_detail(detail)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Parser<'a, '_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> SqlError {
        if self.token == Token::End {
            return invalid("The input string ended unexpectedly.".to_owned());
        }
        invalid(format!(
            "{expected}, but found \"{}\".",
            &self.text[self.span.clone()]
        ))
    }

    #[cold]
    fn invalid_token(&self, span: Range<usize>) -> SqlError {
        let end = self.text.ceil_char_boundary(span.end);
        invalid(format!(
            "Token \"{}\" is invalid.",
            &self.text[span.start..end]
        ))
    }

    fn advance(&mut self) -> Result<()> {
        let blanks = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let mut start = self.span.end;
        while self.byte(start).is_some_and(blanks) {
            start += 1;
        }
        let Some(first) = self.byte(start) else {
            (self.token, self.span) = (Token::End, start..start);
            return Ok(());
        };
        let (token, end) = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => (Token::Punctuation(first), start + 1),
            b'"' => self.string(start)?,
            b'-' | b'0'..=b'9' => (Token::Number, self.number(start)?),
            _ => {
                let mut end = start;
                while self.byte(end).is_some_and(is_word) {
                    end += 1;
                }
                let token = match &self.text[start..end] {
                    "true" => Token::True,
                    "false" => Token::False,
                    "null" => Token::Null,
                    "" => return Err(self.invalid_token(start..start + 1)),
                    _ => return Err(self.invalid_token(start..end)),
                };
                (token, end)
            }
        };
        (self.token, self.span) = (token, start..end);
        Ok(())
    }

    /// The end of the number that begins at `start`.
    fn number(&self, start: usize) -> Result<usize> {
        let digits = |mut at: usize| {
            while self.byte(at).is_some_and(|byte| byte.is_ascii_digit()) {
                at += 1;
            }
            at
        };
        let mut sound = true;
        let mut at = start;
        if self.byte(at) == Some(b'-') {
            at += 1;
        }
        match self.byte(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at = digits(at),
            _ => sound = false,
        }
        if self.byte(at) == Some(b'.') {
            let end = digits(at + 1);
            sound &= end > at + 1;
            at = end;
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(self.byte(at), Some(b'+' | b'-')) {
                at += 1;
            }
            let end = digits(at);
            sound &= end > at;
            at = end;
        }
        // What follows without a blank belongs to the token that is wrong.
        while self.byte(at).is_some_and(is_word) {
            sound = false;
            at += 1;
        }
        if sound {
            Ok(at)
        } else {
            Err(self.invalid_token(start..at))
        }
    }

    fn string(&self, start: usize) -> Result<(Token<'a>, usize)> {
        let mut at = start + 1;
        let mut out: Option<String> = None;
        let mut high: Option<u32> = None;
        let lone_high = || {
            let error = SqlError::new(SqlState::INVALID_TEXT, "invalid input syntax for type json");
            Err(error.with_detail("Unicode low surrogate must follow a high surrogate."))
        };
        loop {
            let run = at;
            while self
                .byte(at)
                .is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= 32)
            {
                at += 1;
            }
            if self.decode && high.is_some() && at > run {
                return lone_high();
            }
            if let Some(out) = &mut out {
                out.push_str(&self.text[run..at]);
            }
            match self.byte(at) {
                None => return Err(self.invalid_token(start..at)),
                Some(b'"') => {
                    if self.decode && high.is_some() {
                        return lone_high();
                    }
                    let text = match out {
                        Some(out) => Cow::Owned(out),
                        None => Cow::Borrowed(&self.text[start + 1..at]),
                    };
                    return Ok((Token::String(text), at + 1));
                }
                Some(b'\\') => {
                    let out = out.get_or_insert_with(|| self.text[start + 1..at].to_owned());
                    at = self.escape(start, at + 1, &mut high, out)?;
                }
                Some(byte) => {
                    return Err(invalid(format!(
                        "Character with value 0x{byte:02x} must be escaped."
                    )));
                }
            }
        }
    }

    /// Reads what follows a backslash; the position behind it.
    fn escape(
        &self,
        start: usize,
        at: usize,
        high: &mut Option<u32>,
        out: &mut String,
    ) -> Result<usize> {
        let Some(byte) = self.byte(at) else {
            return Err(self.invalid_token(start..at));
        };
        let low_missing = "Unicode low surrogate must follow a high surrogate.";
        if byte == b'u' {
            let mut code = 0;
            for offset in 1..=4 {
                let Some(byte) = self.byte(at + offset) else {
                    return Err(self.invalid_token(start..at + offset));
                };
                let Some(digit) = char::from(byte).to_digit(16) else {
                    return Err(invalid(
                        "\"\\u\" must be followed by four hexadecimal digits.".to_owned(),
                    ));
                };
                code = code * 16 + digit;
            }
            if !self.decode {
                return Ok(at + 5);
            }
            let scalar = match (code, high.take()) {
                (0xd800..=0xdbff, None) => {
                    *high = Some(code);
                    return Ok(at + 5);
                }
                (0xd800..=0xdbff, Some(_)) => {
                    return Err(invalid(
                        "Unicode high surrogate must not follow a high surrogate.".to_owned(),
                    ));
                }
                (0xdc00..=0xdfff, Some(high)) => {
                    0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00)
                }
                (0xdc00..=0xdfff, None) | (_, Some(_)) => {
                    return Err(invalid(low_missing.to_owned()));
                }
                (code, None) => code,
            };
            if scalar == 0 {
                let state = SqlState::UNTRANSLATABLE_CHARACTER;
                let error = SqlError::new(state, "unsupported Unicode escape sequence");
                return Err(error.with_detail("\\u0000 cannot be converted to text."));
            }
            out.extend(char::from_u32(scalar));
            return Ok(at + 5);
        }
        if self.decode && high.is_some() {
            return Err(invalid(low_missing.to_owned()));
        }
        out.push(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ => {
                let end = self.text.ceil_char_boundary(at + 1);
                let found = &self.text[at..end];
                return Err(invalid(format!(
                    "Escape sequence \"\\{found}\" is invalid."
                )));
            }
        });
        Ok(at + 1)
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        let text = self.text;
        let token = std::mem::replace(&mut self.token, Token::Null);
        let value = match token {
            Token::Punctuation(b'{') => return self.object(depth + 1),
            Token::Punctuation(b'[') => return self.array(depth + 1),
            Token::True => Scalar::Bool(true),
            Token::False => Scalar::Bool(false),
            Token::Null => Scalar::Null,
            Token::Number => Scalar::Number(&text[self.span.clone()]),
            Token::String(string) => Scalar::String(string),
            other => {
                self.token = other;
                return Err(self.unexpected("Expected JSON value"));
            }
        };
        let span = self.span.clone();
        self.advance()?;
        self.listener.scalar(value, span)
    }

    fn array(&mut self, depth: usize) -> Result<()> {
        check_depth(depth)?;
        self.listener.open(false, self.span.start)?;
        self.advance()?;
        if self.token != Token::Punctuation(b']') {
            self.value(depth)?;
            while self.token == Token::Punctuation(b',') {
                self.advance()?;
                self.value(depth)?;
            }
        }
        if self.token != Token::Punctuation(b']') {
            return Err(self.unexpected("Expected \",\" or \"]\""));
        }
        self.close()
    }

    fn object(&mut self, depth: usize) -> Result<()> {
        check_depth(depth)?;
        self.listener.open(true, self.span.start)?;
        self.advance()?;
        match &self.token {
            Token::Punctuation(b'}') => {}
            Token::String(_) => {
                self.pair(depth)?;
                while self.token == Token::Punctuation(b',') {
                    self.advance()?;
                    self.pair(depth)?;
                }
                if self.token != Token::Punctuation(b'}') {
                    return Err(self.unexpected("Expected \",\" or \"}\""));
                }
            }
            _ => return Err(self.unexpected("Expected string or \"}\"")),
        }
        self.close()
    }

    fn close(&mut self) -> Result<()> {
        let end = self.span.end;
        self.advance()?;
        self.listener.close(end)
    }

    fn pair(&mut self, depth: usize) -> Result<()> {
        let Token::String(key) = &self.token else {
            return Err(self.unexpected("Expected string"));
        };
        let key = key.clone();
        self.advance()?;
        if self.token != Token::Punctuation(b':') {
            return Err(self.unexpected("Expected \":\""));
        }
        self.advance()?;
        self.listener.key(key)?;
        self.value(depth)
    }
}

fn check_depth(depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    Ok(())
}

pub(super) fn too_deep() -> SqlError {
    let error = SqlError::new(SqlState::TOO_COMPLEX, "stack depth limit exceeded");
    let detail = format!("JSON is nested more than {DEPTH_MAX} deep.");
    error.with_detail(detail)
}
