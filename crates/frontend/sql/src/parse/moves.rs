//! FETCH and MOVE, of which the parser knows one form, changed among the tokens.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Where a FETCH puts its rows that was a MOVE. No name in a statement can be it, as [`super::KEY_LOCK`].
pub(crate) const MOVE: &str =
    "nowhere: the cursor moves; this is longer than any name in a text is";

/// FETCH and MOVE with all that may be left out: the parser knows FETCH, with a direction, its count, and FROM.
pub(super) fn cursor_moves(tokens: &mut Vec<TokenWithSpan>) {
    let mut start = true;
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::Whitespace(_) => {}
            Token::SemiColon => start = true,
            Token::Word(word) if start => {
                start = false;
                if word.keyword == Keyword::FETCH || is_move(&tokens[at].token) {
                    at = cursor_move(tokens, at);
                    continue;
                }
            }
            _ => start = false,
        }
        at += 1;
    }
}

pub(super) fn is_move(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("move"))
}

/// The same of the statement whose first word is at `first`; returns where it ends.
fn cursor_move(tokens: &mut Vec<TokenWithSpan>, first: usize) -> usize {
    let rest = &tokens[first..];
    let length = rest
        .iter()
        .position(|token| token.token == Token::SemiColon);
    let end = first + length.unwrap_or(rest.len());
    let spoken: Vec<TokenWithSpan> = tokens[first..end]
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .cloned()
        .collect();
    let keyword = |at: usize| match spoken.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    // A number with its sign, from there on.
    let number = |at: usize| {
        let signed = matches!(
            spoken.get(at).map(|token| &token.token),
            Some(Token::Minus | Token::Plus)
        );
        let digits = at + usize::from(signed);
        let is_number = matches!(
            spoken.get(digits).map(|token| &token.token),
            Some(Token::Number(..))
        );
        if is_number { digits + 1 - at } else { 0 }
    };
    let mut direction: Vec<Token> = Vec::new();
    let taken = match keyword(1) {
        Keyword::NEXT | Keyword::PRIOR | Keyword::FIRST | Keyword::LAST | Keyword::ALL => 1,
        Keyword::ABSOLUTE | Keyword::RELATIVE => 1 + number(2),
        Keyword::FORWARD | Keyword::BACKWARD if keyword(2) == Keyword::ALL => 2,
        Keyword::FORWARD | Keyword::BACKWARD => 1 + number(2),
        _ => number(1),
    };
    let mut negative = false;
    for token in spoken.iter().skip(1).take(taken) {
        match &token.token {
            Token::Plus => {}
            Token::Minus => negative = true,
            // The parser takes no sign apart from its number.
            Token::Number(digits, long) if negative => {
                direction.push(Token::Number(format!("-{digits}"), *long));
            }
            token => direction.push(token.clone()),
        }
    }
    match (keyword(1), taken) {
        (_, 0) => direction.push(Token::make_keyword("NEXT")),
        (Keyword::FORWARD | Keyword::BACKWARD, 1) => {
            direction.push(Token::Number("1".to_owned(), false));
        }
        _ => {}
    }
    let mut name = 1 + taken;
    if matches!(keyword(name), Keyword::FROM | Keyword::IN) {
        name += 1;
    }
    let mut all = vec![Token::make_keyword("FETCH")];
    all.append(&mut direction);
    all.push(Token::make_keyword("FROM"));
    all.extend(spoken.iter().skip(name).map(|token| token.token.clone()));
    if is_move(&tokens[first].token) {
        all.push(Token::make_keyword("INTO"));
        all.push(Token::make_word(MOVE, Some('"')));
    }
    // Each stands where the first word stood, but for what the text has at the end.
    let place = tokens[first].span;
    let last = spoken.last().map_or(place, |token| token.span);
    let count = all.len();
    let placed = all
        .into_iter()
        .enumerate()
        .map(|(at, token)| TokenWithSpan {
            token,
            span: if at + 1 == count { last } else { place },
        });
    tokens.splice(first..end, placed);
    first + count
}
