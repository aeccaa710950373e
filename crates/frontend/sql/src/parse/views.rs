//! `WITH [LOCAL | CASCADED] CHECK OPTION` behind the query of a view, which the parser does not know: it is an option of the view, as in PostgreSQL, and stands among these.

use super::dialect::keyword;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Puts it there, in the statements that have it.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let mut end = tokens.len();
    loop {
        let before = tokens[..end].iter();
        let semicolon = before
            .clone()
            .rposition(|own| own.token == Token::SemiColon);
        let start = semicolon.map_or(0, |at| at + 1);
        statement(tokens, start, end);
        match semicolon {
            None => return,
            Some(at) => end = at,
        }
    }
}

fn statement(tokens: &mut Vec<TokenWithSpan>, start: usize, end: usize) {
    let spoken = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF);
    let spoken: Vec<usize> = (start..end).filter(spoken).collect();
    let word = |at: usize| match spoken.get(at) {
        Some(at) => keyword(&tokens[*at].token),
        None => Keyword::NoKeyword,
    };
    let Some(last) = spoken.len().checked_sub(3) else {
        return;
    };
    let view = (1..5).find(|at| word(*at) == Keyword::VIEW);
    let (Keyword::CREATE, Some(view)) = (word(0), view) else {
        return;
    };
    if [word(last + 1), word(last + 2)] != [Keyword::CHECK, Keyword::OPTION] {
        return;
    }
    let (with, kind) = match word(last) {
        Keyword::WITH => (last, "cascaded"),
        Keyword::CASCADED => (last - 1, "cascaded"),
        Keyword::LOCAL => (last - 1, "local"),
        _ => return,
    };
    if word(with) != Keyword::WITH {
        return;
    }
    // In front of AS, behind the names of columns; options may stand there.
    let (mut depth, mut place) = (0usize, None);
    for (at, token) in spoken.iter().enumerate().skip(view) {
        match tokens[*token].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && word(at) == Keyword::AS => {
                place = Some(at);
                break;
            }
            _ => {}
        }
    }
    let Some(place) = place.filter(|place| *place < with) else {
        return;
    };
    let options = (view..place).find(|at| word(*at) == Keyword::WITH);
    let said = [
        Token::make_word("check_option", Some('"')),
        Token::Eq,
        Token::SingleQuotedString(kind.to_owned()),
    ];
    let (at, made): (usize, Vec<Token>) = match options {
        Some(_) => (
            spoken[place - 1],
            std::iter::once(Token::Comma).chain(said).collect(),
        ),
        None => {
            let open = [Token::make_keyword("WITH"), Token::LParen];
            let close = [Token::RParen, Token::Whitespace(Whitespace::Space)];
            (
                spoken[place],
                open.into_iter().chain(said).chain(close).collect(),
            )
        }
    };
    for token in &spoken[with..] {
        tokens[*token].token = Token::Whitespace(Whitespace::Space);
    }
    let span = tokens[at].span;
    let made = made.into_iter().map(|token| TokenWithSpan { token, span });
    tokens.splice(at..at, made);
}
