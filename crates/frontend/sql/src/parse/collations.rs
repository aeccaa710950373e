//! `ALTER TABLE … ALTER COLUMN … TYPE … COLLATE …`, for which the parser's trees have no room. All collations that there are order by bytes, as without one, so that only
//! the name is looked at, when the column is given its type: it is read again then.

use super::dialect::keyword;
use super::tokens;
use crate::error::Result;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace};

/// Leaves them out of the tokens. Places in the text stay as they are.
pub(super) fn adapt(tokens: &mut [TokenWithSpan]) {
    for statement in tokens.split_inclusive_mut(|own| own.token == Token::SemiColon) {
        let spoken = spoken(statement);
        let word = |at: usize| word(statement, &spoken, at);
        if (word(0), word(1)) != (Keyword::ALTER, Keyword::TABLE) {
            continue;
        }
        let mut gone = Vec::new();
        let (mut depth, mut of_type) = (0usize, false);
        for at in 0..spoken.len() {
            match &statement[spoken[at]].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                Token::Comma if depth == 0 => of_type = false,
                _ if depth > 0 => {}
                // Behind the name of a column, or behind SET DATA.
                _ => match word(at) {
                    Keyword::TYPE if at > 3 => of_type = true,
                    Keyword::USING => of_type = false,
                    Keyword::COLLATE if of_type => {
                        let (name, end) = name_at(statement, &spoken, at + 1);
                        if !name.is_empty() {
                            gone.extend_from_slice(&spoken[at..end]);
                        }
                    }
                    _ => {}
                },
            }
        }
        for at in gone {
            statement[at].token = Token::Whitespace(Whitespace::Space);
        }
    }
}

/// The collation of the type that a column is given; its name begins at that place of the text.
///
/// # Errors
/// `42601` for what is no text of SQL.
pub(crate) fn collation_of(text: &str, column: Location) -> Result<Option<ObjectName>> {
    // Few texts have one.
    if !text.to_ascii_lowercase().contains("collate") {
        return Ok(None);
    }
    let mut all = tokens::of(text)?;
    all.retain(|own| own.span.start >= column);
    let spoken = spoken(&all);
    let mut depth = 0usize;
    for at in 0..spoken.len() {
        match &all[spoken[at]].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma | Token::SemiColon if depth == 0 => break,
            _ if depth > 0 => {}
            _ => match word(&all, &spoken, at) {
                Keyword::USING => break,
                Keyword::COLLATE => {
                    let (name, _) = name_at(&all, &spoken, at + 1);
                    return Ok(Some(name)
                        .filter(|name| !name.is_empty())
                        .map(ObjectName::from));
                }
                _ => {}
            },
        }
    }
    Ok(None)
}

/// The places of tokens that are no blanks.
fn spoken(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let is_spoken = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    (0..tokens.len()).filter(is_spoken).collect()
}

fn word(tokens: &[TokenWithSpan], spoken: &[usize], at: usize) -> Keyword {
    let found = spoken.get(at).map(|at| &tokens[*at].token);
    found.map_or(Keyword::NoKeyword, keyword)
}

/// The name that begins there, and where it ends.
fn name_at(tokens: &[TokenWithSpan], spoken: &[usize], at: usize) -> (Vec<Ident>, usize) {
    let token = |at: usize| spoken.get(at).map(|at| &tokens[*at]);
    let (mut name, mut end) = (Vec::new(), at);
    while let Some(own) = token(end)
        && let Token::Word(part) = &own.token
    {
        name.push(Ident {
            value: part.value.clone(),
            quote_style: part.quote_style,
            span: own.span,
        });
        end += 1;
        if token(end).is_none_or(|own| own.token != Token::Period) {
            break;
        }
        end += 1;
    }
    (name, end)
}
