//! Joins whose conditions stand behind several tables, without parentheses: `a JOIN b JOIN c ON … ON …`.
//!
//! The parser reads these if it is told so, and then takes what stands behind a table of NATURAL JOIN for a join within it, and reads joins within each other
//! without a bound.

use super::dialect::keyword;
use super::{NESTING_MAX, too_deep};
use crate::error::{Result, SqlError};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Joins of a query.
#[derive(Clone, Copy, Default)]
struct Joins {
    /// Those that wait for their condition.
    waiting: usize,
    nested: bool,
}

/// Whether a text has such joins.
///
/// # Errors
/// `54001` for too many that wait for their conditions, `0A000` for those beside a NATURAL JOIN.
pub(super) fn are_nested(tokens: &[TokenWithSpan]) -> Result<bool> {
    let mut outer = Vec::new();
    let mut own = Joins::default();
    // The parser is told once for the whole text.
    let (mut nested, mut natural) = (false, false);
    // NATURAL and CROSS were said of the next join.
    let mut alone = false;
    let mut before = &Token::EOF;
    let spoken = tokens.iter().map(|own| &own.token);
    for token in spoken.filter(|token| !matches!(token, Token::Whitespace(_))) {
        let before = std::mem::replace(&mut before, token);
        // Names, and what is compared by IS DISTINCT FROM.
        let is_other = *before == Token::Period
            || keyword(token) == Keyword::FROM && keyword(before) == Keyword::DISTINCT;
        match token {
            _ if is_other => {}
            Token::LParen => outer.push(std::mem::take(&mut own)),
            Token::RParen => own = outer.pop().unwrap_or_default(),
            token => match keyword(token) {
                Keyword::NATURAL => (natural, alone) = (true, true),
                Keyword::CROSS => alone = true,
                Keyword::JOIN if std::mem::take(&mut alone) => {}
                Keyword::JOIN => {
                    own.waiting += 1;
                    own.nested |= own.waiting > 1;
                }
                Keyword::ON | Keyword::USING => own.waiting = own.waiting.saturating_sub(1),
                Keyword::FROM | Keyword::SELECT => (own, alone) = (Joins::default(), false),
                _ if *token == Token::SemiColon => (own, alone) = (Joins::default(), false),
                _ => {}
            },
        }
        if own.waiting > NESTING_MAX {
            return Err(too_deep());
        }
        nested |= own.nested;
    }
    if nested && natural {
        return Err(SqlError::unsupported(
            "NATURAL JOIN beside joins whose conditions stand behind several tables",
        ));
    }
    Ok(nested)
}
