//! `GROUP BY ALL` and `GROUP BY DISTINCT`, of which the parser knows the first alone, as another thing.
//!
//! ALL says nothing. DISTINCT becomes a first key, with a name that no text can have ([`TOLD_APART`]).

use super::spellings::put_behind;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The name that stands first in a GROUP BY DISTINCT.
pub(crate) const TOLD_APART: &str =
    "sets of keys that are told apart in a list of groups, longer than any name in a text";

/// Changes them.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let is_spoken = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| is_spoken(&tokens[*at]))
        .collect();
    let word = |own: &TokenWithSpan| super::dialect::keyword(&own.token);
    let mut marked = Vec::new();
    for part in spoken.windows(3) {
        let [group, by, said] = *part else { continue };
        if word(&tokens[group]) != Keyword::GROUP || word(&tokens[by]) != Keyword::BY {
            continue;
        }
        match word(&tokens[said]) {
            Keyword::ALL => tokens[said].token = Token::Whitespace(Whitespace::Space),
            Keyword::DISTINCT => {
                tokens[said].token = Token::make_word(TOLD_APART, Some('"'));
                marked.push(said);
            }
            _ => {}
        }
    }
    put_behind(tokens, &marked, &[Token::Comma]);
}
