//! Where operators end: one of several signs ends with + or - only if a sign is in it that none of SQL's own operators has, so that `a>-1` is a
//! comparison with a negative number.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Signs that let an operator end with + or -.
const OF_OPERATORS: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

/// Takes the signs off that the parser's tokenizer took for parts of operators.
pub(super) fn split(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if let Token::CustomBinaryOperator(whole) = &tokens[at].token
            && let Some(parts) = parts(whole)
        {
            let span = tokens[at].span;
            let mut column = span.start.column;
            let made: Vec<TokenWithSpan> = parts
                .into_iter()
                .map(|token| {
                    let mut own = span;
                    own.start.column = column;
                    // Each sign is one byte, and one column.
                    column += token.to_string().len() as u64;
                    own.end.column = column;
                    TokenWithSpan { token, span: own }
                })
                .collect();
            let count = made.len();
            tokens.splice(at..=at, made);
            at += count;
        } else {
            at += 1;
        }
    }
}

/// The operator and the signs behind it; `None` if it is whole.
fn parts(whole: &str) -> Option<Vec<Token>> {
    let own = whole.trim_end_matches(['+', '-']);
    if own.is_empty() || own.len() == whole.len() || whole.contains(OF_OPERATORS) {
        return None;
    }
    let dialect = PostgreSqlDialect {};
    let mut parts = Tokenizer::new(&dialect, own).tokenize().ok()?;
    parts.extend(whole[own.len()..].chars().map(|sign| match sign {
        '+' => Token::Plus,
        _ => Token::Minus,
    }));
    Some(parts)
}
