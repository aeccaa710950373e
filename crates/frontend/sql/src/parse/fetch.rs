//! `FETCH FIRST (…) ROWS ONLY`: the parser takes a number or a parameter, without brackets.

use super::dialect::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Frees a number or a parameter of its brackets, and makes a LIMIT of any other expression in them. That of WITH TIES is left alone: LIMIT has none.
pub(super) fn adapt(tokens: &mut [TokenWithSpan]) {
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
        }
    }
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
