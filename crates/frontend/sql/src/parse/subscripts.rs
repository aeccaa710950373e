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
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    /// What is assigned stands at its begin, and behind each comma.
    Assignments,
    /// The columns of `(a, b) = …`.
    Columns,
    #[default]
    Other,
}

/// An open bracket.
#[derive(Clone, Copy, Default)]
struct Bracket {
    inside: Inside,
    /// UPDATE was said, and no SET behind it: elsewhere it is a name, or sets something else.
    update: bool,
    /// CASEs without END.
    cases: usize,
}

fn is_distinct(token: &Token) -> bool {
    keyword(token) == Keyword::DISTINCT
}

fn targets(tokens: &[TokenWithSpan]) -> Vec<Target> {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let token = |at: usize| spoken.get(at).map(|at| &tokens[*at].token);
    let mut found = Vec::new();
    let mut open = vec![Bracket::default()];
    // Whether what is assigned may stand here.
    let mut begins = false;
    let mut at = 0;
    while let Some(own) = token(at) {
        let before = at.checked_sub(1).and_then(token);
        let inside = open.last().copied().unwrap_or_default().inside;
        let here = std::mem::take(&mut begins);
        match own {
            Token::LParen => {
                let columns = here && inside == Inside::Assignments;
                let inside = match columns {
                    true => Inside::Columns,
                    false => Inside::Other,
                };
                open.push(Bracket {
                    inside,
                    ..Bracket::default()
                });
                begins = columns;
            }
            Token::LBracket => open.push(Bracket::default()),
            Token::RParen | Token::RBracket => {
                open.pop();
            }
            Token::SemiColon => open = vec![Bracket::default()],
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
            // A name behind its table's.
            Token::Word(_) if before == Some(&Token::Period) => {}
            word => match (keyword(word), open.last_mut()) {
                (Keyword::UPDATE, Some(own)) => own.update = true,
                (Keyword::SET, Some(own)) if own.update => {
                    (own.inside, own.update) = (Inside::Assignments, false);
                    begins = true;
                }
                (Keyword::CASE, Some(own)) => own.cases += 1,
                (Keyword::END, Some(own)) => own.cases = own.cases.saturating_sub(1),
                (Keyword::WHEN, Some(own)) if own.cases > 0 => {}
                // What is compared by IS DISTINCT FROM.
                (Keyword::FROM, _) if before.is_some_and(is_distinct) => {}
                (
                    Keyword::FROM | Keyword::WHERE | Keyword::RETURNING | Keyword::WHEN,
                    Some(own),
                ) => own.inside = Inside::Other,
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
