//! From text to tokens. Literals whose escapes say bytes beyond ASCII (`E'\xc3\xa9'`), which the tokenizer refuses, are read here, and it goes on behind them.

use super::{literal, position, tokenizer_message};
use crate::error::{Result, SqlError};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

/// The tokens of a text.
///
/// # Errors
/// `42601` with the place, `22021` for bytes that are no text.
pub(super) fn of(text: &str) -> Result<Vec<TokenWithSpan>> {
    let dialect = PostgreSqlDialect {};
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut start = Location { line: 1, column: 1 };
    loop {
        let moved = |own| moved(own, start);
        let mut tokenizer = Tokenizer::new(&dialect, rest);
        let read = tokenizer.tokenize_with_location_into_buf_with_mapper(&mut tokens, moved);
        let Err(error) = read else {
            check_numerals(&tokens, text)?;
            return Ok(tokens);
        };
        let at = byte_at(rest, error.location);
        let place = place_from(error.location, start);
        let literal = at.and_then(|at| Some((at, literal::escaped(&rest[at..])?)));
        let Some((at, found)) = literal else {
            let mut message = tokenizer_message(&error.message);
            // As PostgreSQL does, which has read to the end.
            if let (Some(at), true) = (at, message.starts_with("unterminated quoted")) {
                message = format!("{message} at or near \"{}\"", &rest[at..]);
            }
            let error = SqlError::syntax(message);
            return Err(error.at(position(text, place.line, place.column)));
        };
        let (value, length) = found?;
        let end = behind(place, &rest[at..at + length]);
        tokens.push(TokenWithSpan {
            token: Token::EscapedStringLiteral(value),
            span: Span::new(place, end),
        });
        rest = &rest[at + length..];
        start = end;
    }
}

/// That numerals end where a blank or a sign stands: the tokenizer reads `1_000` as a thousand and `1a` as a column called so, which PostgreSQL 15 refuses.
///
/// # Errors
/// `42601`.
fn check_numerals(tokens: &[TokenWithSpan], text: &str) -> Result<()> {
    let begins_word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.quote_style.is_none(),
        _ => false,
    };
    // Looked for once: a text of a megabyte may have two hundred thousand of those that need it.
    let mut starts_known = None;
    for (at, own) in tokens.iter().enumerate() {
        let start = own.span.start;
        let behind = tokens.get(at + 1).filter(|next| begins_word(next));
        let shown = match &own.token {
            Token::Number(digits, _) if behind.is_some() || digits.contains('_') => digits.clone(),
            // `0x1F`, which is the same token as `X'1F'`.
            Token::HexStringLiteral(digits) => {
                let starts = starts_known.get_or_insert_with(|| starts(text, tokens));
                let begins = text.get(starts[at]..).and_then(|own| own.chars().next());
                match begins {
                    Some('0') => format!("0x{digits}"),
                    _ => continue,
                }
            }
            _ => continue,
        };
        let word = behind.map_or_else(String::new, |next| next.token.to_string());
        let message = format!("trailing junk after numeric literal at or near \"{shown}{word}\"");
        let error = SqlError::syntax(message);
        return Err(error.at(position(text, start.line, start.column)));
    }
    Ok(())
}

/// A token as it can be read again. What the tokenizer's own words for it leave out is written: quotes within quotes.
pub(super) fn written(token: &Token) -> String {
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match token {
        Token::Word(word) if word.quote_style.is_some() => {
            format!("\"{}\"", word.value.replace('"', "\"\""))
        }
        Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text) => literal(text),
        Token::NationalStringLiteral(text) => format!("N{}", literal(text)),
        Token::EscapedStringLiteral(text) => {
            format!("E{}", literal(&text.replace('\\', "\\\\")))
        }
        other => other.to_string(),
    }
}

/// Where the tokens of a text begin, in bytes, and behind them where it ends: each ends where the next begins.
pub(super) fn starts(text: &str, tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut chars = text.char_indices();
    let (mut at, mut place) = (0, Location { line: 1, column: 1 });
    let mut starts = Vec::with_capacity(tokens.len() + 1);
    for own in tokens {
        let start = own.span.start;
        while (place.line, place.column) < (start.line, start.column) {
            let Some((byte, char)) = chars.next() else {
                break;
            };
            at = byte + char.len_utf8();
            place = behind(place, &text[byte..at]);
        }
        starts.push(at);
    }
    starts.push(text.len());
    starts
}

/// A token of a text that begins at a place of another.
pub(super) fn moved(mut own: TokenWithSpan, start: Location) -> TokenWithSpan {
    own.span.start = place_from(own.span.start, start);
    own.span.end = place_from(own.span.end, start);
    own
}

fn place_from(place: Location, start: Location) -> Location {
    Location {
        line: place.line + start.line.saturating_sub(1),
        column: match place.line {
            1 => place.column + start.column.saturating_sub(1),
            _ => place.column,
        },
    }
}

fn byte_at(text: &str, place: Location) -> Option<usize> {
    let mut line = 1;
    let mut begin = 0;
    while line < place.line {
        begin += text[begin..].find('\n')? + 1;
        line += 1;
    }
    let column = usize::try_from(place.column.checked_sub(1)?).ok()?;
    let (at, _) = text[begin..].char_indices().nth(column)?;
    Some(begin + at)
}

/// The place behind a part of a text.
fn behind(place: Location, part: &str) -> Location {
    part.chars().fold(place, |place, char| match char {
        '\n' => Location {
            line: place.line + 1,
            column: 1,
        },
        _ => Location {
            line: place.line,
            column: place.column + 1,
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn bytes_are_characters_and_what_follows_is_where_it_was() {
        let text =
            "select E'a\\xc3\\xa9\\n''\n\\303\\251\\u00e9' as x,\n  E'\\xE2\\x82\\xac', 'é' b";
        let tokens = of(text).unwrap();
        let literals = tokens.iter().filter_map(|own| match &own.token {
            Token::EscapedStringLiteral(text) => Some(&**text),
            _ => None,
        });
        let literals: Vec<&str> = literals.collect();
        assert_eq!(literals, ["aé\n'\néé", "€"]);
        let last = tokens.last().unwrap().span.start;
        assert_eq!((last.line, last.column), (3, 24));
        let wrong = of("select 1, E'\\xc3'").unwrap_err();
        assert_eq!(wrong.sqlstate().to_string(), "22021");
        let open = of("select E'\\xc3\\xa9', 'x").unwrap_err();
        assert_eq!(open.sqlstate().to_string(), "42601");
        assert_eq!(open.fields().position, Some(21));
    }
}
