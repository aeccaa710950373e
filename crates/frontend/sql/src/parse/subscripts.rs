//! Subscripts behind the columns that SET gives values: `SET a[1] = …, j['key'] = …`. The parser takes names there; a name may end in a call of what the
//! dialect says, so what is assigned is read as `a.mark(a[1])`, whose argument is the element as any expression names it.

use super::dialect::keyword;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The last part of the name of what is assigned, where it has subscripts. No name in a text can be it: it is too long, and names in texts are cut.
pub(super) const SUBSCRIPTED: &str =
    "the element of a column that is assigned, longer than any name in a text";

/// Marks them.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let found = targets(tokens);
    if found.is_empty() {
        return;
    }
    let mut found = found.into_iter().peekable();
    let mut made = Vec::with_capacity(tokens.len() + 16);
    // Where an argument ends, while one is open.
    let mut end = None;
    for (at, own) in tokens.iter().enumerate() {
        if let Some(target) = found.next_if(|target| target.first == at) {
            let span = own.span;
            let name = tokens[target.first..target.behind].iter().cloned();
            let marks = [
                Token::Period,
                Token::make_word(SUBSCRIPTED, Some('"')),
                Token::LParen,
            ];
            made.extend(name);
            made.extend(marks.map(|token| TokenWithSpan { token, span }));
            end = Some(target.last);
        }
        made.push(own.clone());
        if end == Some(at) {
            made.push(TokenWithSpan {
                token: Token::RParen,
                span: own.span,
            });
            end = None;
        }
    }
    *tokens = made;
}

/// A column with subscripts.
struct Target {
    first: usize,
    /// Behind its name.
    behind: usize,
    /// The last subscript's bracket.
    last: usize,
}

/// What an open bracket is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// What is assigned stands at its begin, and behind each comma.
    Assignments,
    /// The columns of `(a, b) = …`.
    Columns,
    Other,
}

fn targets(tokens: &[TokenWithSpan]) -> Vec<Target> {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let token = |at: usize| spoken.get(at).map(|at| &tokens[*at].token);
    let mut found = Vec::new();
    let mut open = vec![Inside::Other];
    // Whether what is assigned may stand here.
    let mut begins = false;
    let mut at = 0;
    while let Some(own) = token(at) {
        let inside = open.last().copied().unwrap_or(Inside::Other);
        let here = std::mem::take(&mut begins);
        match own {
            Token::LParen => {
                let columns = here && inside == Inside::Assignments;
                open.push(if columns {
                    Inside::Columns
                } else {
                    Inside::Other
                });
                begins = columns;
            }
            Token::LBracket => open.push(Inside::Other),
            Token::RParen | Token::RBracket => {
                open.pop();
            }
            Token::SemiColon => open = vec![Inside::Other],
            Token::Comma => begins = inside != Inside::Other,
            Token::Word(_) if here => {
                if let Some((name, last)) = subscripted(&token, at) {
                    found.push(Target {
                        first: spoken[at],
                        behind: spoken[name] + 1,
                        last: spoken[last],
                    });
                    at = last;
                }
            }
            word => match (keyword(word), open.last_mut()) {
                (Keyword::SET, Some(inside)) if *inside != Inside::Columns => {
                    *inside = Inside::Assignments;
                    begins = true;
                }
                (
                    Keyword::FROM | Keyword::WHERE | Keyword::RETURNING | Keyword::WHEN,
                    Some(inside),
                ) if *inside == Inside::Assignments => *inside = Inside::Other,
                _ => {}
            },
        }
        at += 1;
    }
    found
}

/// The last word of the name that begins here, and the last bracket of the subscripts behind it.
fn subscripted<'t>(
    token: &impl Fn(usize) -> Option<&'t Token>,
    first: usize,
) -> Option<(usize, usize)> {
    let mut name = first;
    while let (Some(Token::Period), Some(Token::Word(_))) = (token(name + 1), token(name + 2)) {
        name += 2;
    }
    let (mut depth, mut at) = (0usize, name + 1);
    loop {
        match token(at)? {
            Token::LBracket => depth += 1,
            Token::RBracket => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && token(at + 1) != Some(&Token::LBracket) {
                    return Some((name, at));
                }
            }
            Token::SemiColon | Token::EOF => return None,
            _ if depth == 0 => return None,
            _ => {}
        }
        at += 1;
    }
}
