//! `FETCH FIRST (…) ROWS ONLY` and `WITH TIES`: the parser takes a number or a parameter, without brackets.

use super::dialect::is_word;
use super::spellings::put_behind;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The count of a FETCH WITH TIES whose expression stands in a LIMIT in front of it.
pub(crate) const COUNT_OF_LIMIT: &str = "the count of the LIMIT before";

/// Frees a number or a parameter of its brackets, and makes a LIMIT of any other expression in them. Behind that of WITH TIES stands a FETCH of [`COUNT_OF_LIMIT`].
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let mut with_ties = Vec::new();
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for (at, three) in spoken.windows(3).enumerate() {
        let word =
            |tokens: &[TokenWithSpan], place: usize, word| is_word(&tokens[place].token, word);
        let is_fetch = word(tokens, three[0], "fetch")
            && (word(tokens, three[1], "first") || word(tokens, three[1], "next"))
            && tokens[three[2]].token == Token::LParen;
        if !is_fetch {
            continue;
        }
        let Some(inside) = bracketed(tokens, &spoken[at + 2..]) else {
            continue;
        };
        let (open, behind) = (at + 2, at + 2 + inside + 2);
        let close = spoken[behind - 1];
        let blank = Token::Whitespace(Whitespace::Space);
        let is_plain = matches!(
            tokens[spoken[open + 1]].token,
            Token::Number(..) | Token::Placeholder(_)
        );
        if inside == 1 && is_plain {
            tokens[spoken[open]].token = blank.clone();
            tokens[close].token = blank;
        } else if let Some([rows, only]) = spoken.get(behind..behind + 2)
            && (word(tokens, *rows, "rows") || word(tokens, *rows, "row"))
            && word(tokens, *only, "only")
        {
            tokens[three[0]].token = Token::make_keyword("LIMIT");
            for place in [three[1], *rows, *only] {
                tokens[place].token = blank.clone();
            }
        } else if let Some([rows, with, ties]) = spoken.get(behind..behind + 3)
            && (word(tokens, *rows, "rows") || word(tokens, *rows, "row"))
            && word(tokens, *with, "with")
            && word(tokens, *ties, "ties")
        {
            tokens[three[0]].token = Token::make_keyword("LIMIT");
            tokens[three[1]].token = blank;
            with_ties.push(close);
        }
    }
    let fetch = [
        Token::make_keyword("FETCH"),
        Token::make_keyword("FIRST"),
        Token::SingleQuotedString(COUNT_OF_LIMIT.to_owned()),
    ];
    put_behind(tokens, &with_ties, &fetch);
}

/// How many tokens stand in the brackets that begin with the first of these; `None` if they are empty, or do not end.
fn bracketed(tokens: &[TokenWithSpan], spoken: &[usize]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, place) in spoken.iter().enumerate() {
        match tokens[*place].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at.checked_sub(1).filter(|inside| *inside > 0);
        }
    }
    None
}
