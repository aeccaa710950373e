//! `ALTER TABLE … ALTER COLUMN … TYPE … COLLATE …`. All collations that there are order by bytes, as without one, so that only the name is looked at.

use super::dialect::keyword;
use crate::bind::check_collation;
use crate::error::Result;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Leaves them out of the tokens. Places in the text stay as they are.
///
/// # Errors
/// `42704` for one that there is not.
pub(super) fn adapt(tokens: &mut [TokenWithSpan]) -> Result<()> {
    let is_spoken = |own: &TokenWithSpan| !matches!(own.token, Token::Whitespace(_));
    for statement in tokens.split_inclusive_mut(|own| own.token == Token::SemiColon) {
        let spoken: Vec<usize> = (0..statement.len())
            .filter(|at| is_spoken(&statement[*at]))
            .collect();
        let token = |at: usize| spoken.get(at).map(|at| &statement[*at].token);
        let word = |at: usize| token(at).map_or(Keyword::NoKeyword, keyword);
        if (word(0), word(1)) != (Keyword::ALTER, Keyword::TABLE) {
            continue;
        }
        let mut gone = Vec::new();
        let (mut depth, mut of_type) = (0usize, false);
        for at in 0..spoken.len() {
            match token(at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                Some(Token::Comma) if depth == 0 => of_type = false,
                _ if depth > 0 => {}
                // Behind the name of a column, or behind SET DATA.
                _ => match word(at) {
                    Keyword::TYPE if at > 3 => of_type = true,
                    Keyword::USING => of_type = false,
                    Keyword::COLLATE if of_type => {
                        let mut name = Vec::new();
                        let mut end = at + 1;
                        while let Some(Token::Word(part)) = token(end) {
                            name.push(Ident {
                                value: part.value.clone(),
                                quote_style: part.quote_style,
                                span: statement[spoken[end]].span,
                            });
                            end += 1;
                            if token(end) != Some(&Token::Period) {
                                break;
                            }
                            end += 1;
                        }
                        if !name.is_empty() {
                            check_collation(&ObjectName::from(name))?;
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
    Ok(())
}
