//! What the parser reads otherwise than PostgreSQL: literals beside each other, those in the frames of windows, and `TABLE t`.

use crate::error::{Result, SqlError};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Joins literals that stand on lines of their own, as SQL has it. On one line they are an error: returns the place of the second.
pub(super) fn join_lines(tokens: &mut [TokenWithSpan]) -> Option<usize> {
    let mut first: Option<usize> = None;
    let mut line_ended = false;
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }) => {
                line_ended = true;
            }
            Token::Whitespace(Whitespace::Space | Whitespace::Tab) => {}
            Token::SingleQuotedString(more) => {
                let Some(known) = first else {
                    first = Some(at);
                    line_ended = false;
                    continue;
                };
                if !line_ended {
                    return Some(at);
                }
                let more = more.clone();
                // Escapes go on behind the end of the line; the parser has read the first line's only.
                let escapes = !matches!(tokens[known].token, Token::SingleQuotedString(_));
                if escapes && more.contains('\\') {
                    return Some(at);
                }
                if let Token::SingleQuotedString(text)
                | Token::EscapedStringLiteral(text)
                | Token::UnicodeStringLiteral(text) = &mut tokens[known].token
                {
                    text.push_str(&more);
                }
                tokens[at].token = Token::Whitespace(Whitespace::Space);
                line_ended = false;
            }
            Token::EscapedStringLiteral(_) | Token::UnicodeStringLiteral(_) => {
                if first.is_some() {
                    return Some(at);
                }
                first = Some(at);
                line_ended = false;
            }
            _ => first = None,
        }
    }
    None
}

/// Puts parentheses around offsets of frames that begin with text in quotes, which the parser takes for an interval and nothing behind it.
pub(super) fn frame_offsets(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut begin = None;
    let mut at = 0;
    while at < tokens.len() {
        match keyword(&tokens[at]) {
            Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS | Keyword::BETWEEN | Keyword::AND => {
                begin = Some(at + 1);
            }
            Keyword::PRECEDING | Keyword::FOLLOWING => {
                let mut offset = begin.take().unwrap_or(at)..at;
                let first = offset.find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
                if let Some(first) = first
                    && matches!(tokens[first].token, Token::SingleQuotedString(_))
                {
                    let beside = |of: &TokenWithSpan, token| TokenWithSpan::new(token, of.span);
                    let (open, close) = (
                        beside(&tokens[first], Token::LParen),
                        beside(&tokens[at], Token::RParen),
                    );
                    tokens.insert(at, close);
                    tokens.insert(first, open);
                    at += 2;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// `TABLE t`, where a query may begin, as `SELECT * FROM t`.
pub(super) fn whole_tables(tokens: &mut Vec<TokenWithSpan>) {
    let mut begins = true;
    let (mut first, mut reindex) = (true, false);
    let mut at = 0;
    while at < tokens.len() {
        let keyword = match &tokens[at].token {
            Token::Whitespace(_) => {
                at += 1;
                continue;
            }
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            Token::SemiColon | Token::LParen | Token::RParen => {
                first |= tokens[at].token == Token::SemiColon;
                begins = true;
                at += 1;
                continue;
            }
            _ => Keyword::NoKeyword,
        };
        if std::mem::take(&mut first) {
            // Behind its options stands a table, too, which is no query.
            reindex = keyword == Keyword::REINDEX;
        }
        if begins && !reindex && keyword == Keyword::TABLE && names_follow(&tokens[at + 1..]) {
            let span = tokens[at].span;
            let blank = Token::Whitespace(Whitespace::Space);
            let words = [
                Token::make_keyword("SELECT"),
                blank.clone(),
                Token::Mul,
                blank,
                Token::make_keyword("FROM"),
            ];
            let words = words.map(|token| TokenWithSpan { token, span });
            at += words.len();
            tokens.splice(at - 5..at - 4, words);
            begins = false;
            continue;
        }
        begins = matches!(
            keyword,
            Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::ALL
                | Keyword::DISTINCT
                | Keyword::AS
                | Keyword::EXPLAIN
                | Keyword::ANALYZE
        );
        at += 1;
    }
}

/// Whether a name stands there, and no list of columns behind it.
fn names_follow(tokens: &[TokenWithSpan]) -> bool {
    let mut spoken = tokens
        .iter()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    matches!(spoken.next(), Some(Token::Word(_))) && spoken.next() != Some(&Token::LParen)
}

/// The text that a literal stands for which this one begins with, `E'…'`, and its bytes in the text. Escapes may say bytes, which together are characters.
/// `None` if it is no such literal.
///
/// # Errors
/// `22021` for bytes that are no text.
#[cold]
pub(super) fn escaped(text: &str) -> Option<Result<(String, usize)>> {
    let mut chars = text.char_indices().peekable();
    let is_escaped = chars.next()?.1.eq_ignore_ascii_case(&'e') && chars.next()?.1 == '\'';
    if !is_escaped {
        return None;
    }
    let mut bytes = Vec::new();
    let length = loop {
        let (at, char) = chars.next()?;
        let char = match char {
            '\'' if chars.next_if(|next| next.1 == '\'').is_none() => break at + 1,
            '\\' => chars.next()?.1,
            char => {
                bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        let (radix, first, most) = match char {
            'x' => (16, None, 2),
            '0'..='7' => (8, char.to_digit(8), 2),
            'u' => (16, None, 4),
            'U' => (16, None, 8),
            _ => {
                let char = match char {
                    'b' => '\x08',
                    'f' => '\x0c',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    char => char,
                };
                bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        let mut number = first.unwrap_or(0);
        let mut digits = 0;
        while let Some((_, digit)) = chars.next_if(|next| digits < most && next.1.is_digit(radix)) {
            number = number * radix + digit.to_digit(radix)?;
            digits += 1;
        }
        match char {
            'x' if digits == 0 => bytes.push(b'x'),
            'u' | 'U' if digits < most => return None,
            'u' | 'U' => {
                let char = char::from_u32(number)?;
                bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => bytes.push((number & 0xff) as u8),
        }
    };
    let read = vellum_row::text_of_bytes(&bytes).map(|text| (text.to_owned(), length));
    Some(read.map_err(SqlError::from))
}
