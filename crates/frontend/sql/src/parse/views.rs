//! CREATE RECURSIVE VIEW, which is a view of a query of WITH RECURSIVE, as PostgreSQL makes it. And `WITH [LOCAL | CASCADED] CHECK OPTION` behind the query of a view, which the parser does not know: it is an option of the view, as in PostgreSQL, and stands among these.

use super::dialect::keyword;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Gives recursive views their query, in the statements that make one.
///
/// # Errors
/// `0A000` for one with a check option.
pub(super) fn recursive(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut start = 0;
    while start < tokens.len() {
        let rest = tokens[start..].iter();
        let length = rest.clone().position(|own| own.token == Token::SemiColon);
        let end = length.map_or(tokens.len(), |length| start + length);
        let before = tokens.len();
        recursive_view(tokens, start, end)?;
        start = (end + 1 + tokens.len()).saturating_sub(before);
    }
    Ok(())
}

fn recursive_view(tokens: &mut Vec<TokenWithSpan>, start: usize, end: usize) -> Result<()> {
    let spoken = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF);
    let spoken: Vec<usize> = (start..end).filter(spoken).collect();
    let token = |at: usize| spoken.get(at).map(|at| &tokens[*at].token);
    let word = |at: usize| token(at).map_or(Keyword::NoKeyword, keyword);
    let view = (2..6).find(|at| [word(at - 1), word(*at)] == [Keyword::RECURSIVE, Keyword::VIEW]);
    let (Keyword::CREATE, Some(view)) = (word(0), view) else {
        return Ok(());
    };
    // The name, whose last part the query has, too; the columns; AS.
    let mut open = view + 1;
    while matches!(token(open), Some(Token::Word(_) | Token::Period)) {
        open += 1;
    }
    let mut close = open;
    while matches!(token(close), Some(own) if *own != Token::RParen) {
        close += 1;
    }
    let mut query = close;
    while token(query).is_some() && word(query) != Keyword::AS {
        query += 1;
    }
    let (Some(Token::LParen), Some(_)) = (token(open), token(query + 1)) else {
        return Ok(());
    };
    let last = spoken.len() - 2;
    if [word(last), word(last + 1)] == [Keyword::CHECK, Keyword::OPTION] {
        let text = "WITH CHECK OPTION not supported on recursive views";
        return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
    }
    let blank = || Token::Whitespace(Whitespace::Space);
    let name = tokens[spoken[open - 1]].token.clone();
    let columns: Vec<Token> = (open + 1..close).filter_map(token).cloned().collect();
    let mut before = vec![
        blank(),
        Token::make_keyword("WITH"),
        blank(),
        Token::make_keyword("RECURSIVE"),
        blank(),
        name.clone(),
        Token::LParen,
    ];
    before.extend(columns.iter().cloned());
    before.extend([Token::RParen, Token::make_keyword("AS"), Token::LParen]);
    let mut behind = vec![
        Token::RParen,
        blank(),
        Token::make_keyword("SELECT"),
        blank(),
    ];
    behind.extend(columns);
    behind.extend([blank(), Token::make_keyword("FROM"), blank(), name]);
    let (first, gone) = (spoken[query], spoken[view - 1]);
    let last = spoken[spoken.len() - 1];
    tokens[gone].token = blank();
    for (at, made) in [(last + 1, behind), (first + 1, before)] {
        let span = tokens[at - 1].span;
        let made = made.into_iter().map(|token| TokenWithSpan { token, span });
        tokens.splice(at..at, made);
    }
    Ok(())
}

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
