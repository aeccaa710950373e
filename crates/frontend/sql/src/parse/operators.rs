//! Where operators end: one of several signs ends with + or - only if a sign is in it that none of SQL's own operators has, so that `a>-1` is a
//! comparison with a negative number.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Signs that let an operator end with + or -.
const OF_OPERATORS: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

/// Takes the signs off that the parser's tokenizer took for parts of operators. In one pass: a text may have many.
pub(super) fn split(tokens: &mut Vec<TokenWithSpan>) {
    let is_split = |token: &TokenWithSpan| matches!(&token.token, Token::CustomBinaryOperator(whole) if own_part(whole).is_some());
    if !tokens.iter().any(is_split) {
        return;
    }
    let mut made = Vec::with_capacity(2 * tokens.len());
    for token in tokens.drain(..) {
        let parts = match &token.token {
            Token::CustomBinaryOperator(whole) => parts(whole),
            _ => None,
        };
        let Some(parts) = parts else {
            made.push(token);
            continue;
        };
        let mut span = token.span;
        for token in parts {
            // Each sign is one byte, and one column.
            span.end.column = span.start.column + token.to_string().len() as u64;
            made.push(TokenWithSpan { token, span });
            span.start.column = span.end.column;
        }
    }
    *tokens = made;
}

/// What an operator is without the signs behind it; `None` if it is whole.
fn own_part(whole: &str) -> Option<&str> {
    let own = whole.trim_end_matches(['+', '-']);
    let is_whole = own.is_empty() || own.len() == whole.len() || whole.contains(OF_OPERATORS);
    (!is_whole).then_some(own)
}

/// The operator and the signs behind it; `None` if it is whole.
fn parts(whole: &str) -> Option<Vec<Token>> {
    let own = own_part(whole)?;
    let dialect = PostgreSqlDialect {};
    let mut parts = Tokenizer::new(&dialect, own).tokenize().ok()?;
    parts.extend(whole[own.len()..].chars().map(|sign| match sign {
        '+' => Token::Plus,
        _ => Token::Minus,
    }));
    Some(parts)
}
