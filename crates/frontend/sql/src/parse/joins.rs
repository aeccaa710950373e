//! What stands in FROM in ways that the parser does not read, changed among the tokens into ways that it does. Places in the text stay as they are.
//!
//! - A join whose right side is joined with others before its own condition comes (`a JOIN b JOIN c ON … ON …`, `a JOIN b NATURAL JOIN c ON …`) gets the
//!   brackets that it does without: `a JOIN (b JOIN c ON …) ON …`.
//! - What the columns of USING are called together (`USING (id) AS x`) becomes one more name in the brackets, which no text has ([`together_as`]).
//! - `ROWS FROM (f(), g())` becomes a call of what no text has ([`ROWS`]), with the functions in place of arguments.

use super::dialect::{is_word, keyword};
use super::{NESTING_MAX, too_deep};
use crate::bind::folded;
use crate::error::Result;
use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// Words of a text that may have some.
pub(super) const WORDS: &[Keyword] = &[Keyword::JOIN, Keyword::ROWS];

/// What the function is called that ROWS FROM has become.
pub(crate) const ROWS: &str = "\0rows from";

/// In front of the name that columns of USING have together.
const TOGETHER: char = '\0';

/// The name that an item in the brackets of USING gives all of them.
pub(crate) fn together_as(item: &str) -> Option<&str> {
    item.strip_prefix(TOGETHER)
}

/// A join that waits for its condition.
#[derive(Clone, Copy)]
struct Waiting {
    /// The token behind JOIN.
    right: usize,
    /// Whether its right side is a join.
    joined: bool,
}

/// Between two brackets.
#[derive(Default)]
struct Level {
    waiting: Vec<Waiting>,
    /// NATURAL and CROSS were said of the next join.
    alone: bool,
    in_from: bool,
}

/// What is changed: tokens that are replaced, and those that come in front of others.
#[derive(Default)]
struct Changes {
    replaced: Vec<(usize, Token)>,
    inserted: Vec<(usize, Token)>,
}

/// Changes them.
///
/// # Errors
/// `54001` for too many joins that wait for their conditions, together with brackets around them.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let changes = changes(tokens)?;
    let blank = changes.inserted.is_empty() && changes.replaced.is_empty();
    if blank {
        return Ok(());
    }
    for (at, token) in changes.replaced {
        tokens[at].token = token;
    }
    let mut inserted = changes.inserted;
    // Those of one place stay in their order.
    inserted.sort_by_key(|(at, _)| *at);
    let mut inserted = inserted.into_iter().peekable();
    let mut all = Vec::with_capacity(tokens.len() + inserted.len());
    for (at, own) in std::mem::take(tokens).into_iter().enumerate() {
        while let Some((_, token)) = inserted.next_if(|(place, _)| *place == at) {
            all.push(TokenWithSpan {
                token,
                span: own.span,
            });
        }
        all.push(own);
    }
    *tokens = all;
    Ok(())
}

fn changes(tokens: &[TokenWithSpan]) -> Result<Changes> {
    let is_spoken = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let spoken: Vec<usize> = (0..tokens.len()).filter(is_spoken).collect();
    let mut changes = Changes::default();
    let mut outer: Vec<Level> = Vec::new();
    let mut own = Level::default();
    let mut waiting = 0_usize;
    let mut skipped = None;
    for (at, place) in spoken.iter().enumerate() {
        let token = &tokens[*place].token;
        let next = |more: usize| spoken.get(at + more).map(|next| &tokens[*next].token);
        let before = at.checked_sub(1).map(|at| &tokens[spoken[at]].token);
        // Names, what is compared by IS DISTINCT FROM, and the FROM of ROWS FROM.
        let is_other = before == Some(&Token::Period)
            || keyword(token) == Keyword::FROM && before.map(keyword) == Some(Keyword::DISTINCT)
            || skipped == Some(at);
        if is_other {
            continue;
        }
        if own.in_from && is_word(token, "rows") && begins_item(before) && is_rows_from(&next) {
            changes.replaced.push((*place, quoted(ROWS.to_owned())));
            let from = spoken[at + 1];
            let blank = Token::Whitespace(Whitespace::Space);
            changes.replaced.push((from, blank));
            skipped = Some(at + 1);
            continue;
        }
        match token {
            Token::LParen => {
                let around = std::mem::take(&mut own);
                // A join in brackets.
                own.in_from = around.in_from && begins_item(before);
                outer.push(around);
            }
            Token::RParen => {
                waiting -= own.waiting.len();
                own = outer.pop().unwrap_or_default();
            }
            Token::SemiColon => {
                waiting -= own.waiting.len();
                own = Level::default();
            }
            token => match keyword(token) {
                Keyword::NATURAL | Keyword::CROSS => own.alone = true,
                Keyword::JOIN => {
                    if let Some(around) = own.waiting.last_mut() {
                        around.joined = true;
                    }
                    if !std::mem::take(&mut own.alone) {
                        waiting += 1;
                        own.waiting.push(Waiting {
                            right: place + 1,
                            joined: false,
                        });
                    }
                }
                Keyword::ON | Keyword::USING => {
                    own.in_from |= keyword(token) == Keyword::USING;
                    if let Some(join) = own.waiting.pop() {
                        waiting -= 1;
                        if join.joined {
                            changes.inserted.push((join.right, Token::LParen));
                            changes.inserted.push((*place, Token::RParen));
                        }
                        if keyword(token) == Keyword::USING {
                            name_together(tokens, &spoken[at + 1..], &mut changes);
                        }
                    }
                }
                word @ (Keyword::FROM | Keyword::SELECT) => {
                    waiting -= own.waiting.len();
                    own = Level {
                        in_from: word == Keyword::FROM,
                        ..Level::default()
                    };
                }
                Keyword::WHERE | Keyword::GROUP | Keyword::ORDER | Keyword::RETURNING => {
                    own.in_from = false;
                }
                _ => {}
            },
        }
        // Each is read by a call within the one before, as brackets are.
        if waiting + outer.len() > NESTING_MAX && waiting > 0 {
            return Err(too_deep());
        }
    }
    Ok(changes)
}

/// Whether a token stands in front of an item of FROM.
fn begins_item(before: Option<&Token>) -> bool {
    let word = before.map_or(Keyword::NoKeyword, keyword);
    before == Some(&Token::Comma)
        || before == Some(&Token::LParen)
        || matches!(
            word,
            Keyword::FROM | Keyword::JOIN | Keyword::LATERAL | Keyword::USING
        )
}

fn is_rows_from<'t>(next: &impl Fn(usize) -> Option<&'t Token>) -> bool {
    next(1).map(keyword) == Some(Keyword::FROM) && next(2) == Some(&Token::LParen)
}

/// The name behind the brackets of USING, which these tokens begin with, as one in them.
fn name_together(tokens: &[TokenWithSpan], spoken: &[usize], changes: &mut Changes) {
    let token = |at: usize| spoken.get(at).map(|place| &tokens[*place].token);
    if token(0) != Some(&Token::LParen) {
        return;
    }
    let mut close = 1;
    while let Some(Token::Word(_) | Token::Comma) = token(close) {
        close += 1;
    }
    let (Some(Token::RParen), Some(word), Some(Token::Word(name))) =
        (token(close), token(close + 1), token(close + 2))
    else {
        return;
    };
    if keyword(word) != Keyword::AS {
        return;
    }
    let name = folded(&Ident {
        value: name.value.clone(),
        quote_style: name.quote_style,
        span: tokens[spoken[close + 2]].span,
    });
    changes.inserted.push((spoken[close], Token::Comma));
    let name = quoted(format!("{TOGETHER}{name}"));
    changes.inserted.push((spoken[close], name));
    for at in [close + 1, close + 2] {
        let blank = Token::Whitespace(Whitespace::Space);
        changes.replaced.push((spoken[at], blank));
    }
}

/// A name in quotes.
fn quoted(value: String) -> Token {
    Token::Word(Word {
        value,
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    })
}

/// A query that the catalog keeps as it is written: what was changed is changed back.
pub(crate) fn as_written(kept: &str) -> String {
    let rows = format!("\"{ROWS}\"(");
    let kept = kept.replace(&rows, "ROWS FROM (");
    let mark = format!(", \"{TOGETHER}");
    let mut text = String::with_capacity(kept.len());
    let mut rest = &*kept;
    while let Some((before, name)) = rest.split_once(&mark) {
        let (name, behind) = quoted_name(name);
        text.push_str(before);
        text.push_str(") AS ");
        text.push_str(&crate::names::quoted(&name));
        rest = behind.strip_prefix(')').unwrap_or(behind);
    }
    text.push_str(rest);
    text
}

/// A name whose first quote is before this text, in which quotes are doubled, and what is behind its last.
fn quoted_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if char == '"' && chars.next_if(|(_, next)| *next == '"').is_none() {
            return (name, &text[at + 1..]);
        }
        name.push(char);
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::statements;
    use super::*;

    fn shown(text: &str) -> String {
        let all = statements(text).unwrap();
        as_written(&all[0].to_string())
    }

    #[test]
    fn joins_that_wait_for_their_conditions_get_brackets() {
        for (text, read) in [
            ("a JOIN b ON x JOIN c ON y", "a JOIN b ON x JOIN c ON y"),
            ("a JOIN b JOIN c ON x ON y", "a JOIN (b JOIN c ON x) ON y"),
            (
                "a LEFT JOIN b JOIN c ON x FULL JOIN d USING (k) ON y",
                "a LEFT JOIN (b JOIN c ON x FULL JOIN d USING(k)) ON y",
            ),
            (
                "a JOIN b NATURAL JOIN c ON x",
                "a JOIN (b NATURAL JOIN c) ON x",
            ),
            (
                "a NATURAL JOIN b JOIN c JOIN d ON x ON y",
                "a NATURAL JOIN b JOIN (c JOIN d ON x) ON y",
            ),
            ("a JOIN b CROSS JOIN c ON x", "a JOIN (b CROSS JOIN c) ON x"),
            (
                "a JOIN b JOIN c JOIN d ON x ON y ON z",
                "a JOIN (b JOIN (c JOIN d ON x) ON y) ON z",
            ),
        ] {
            let text = format!("SELECT * FROM {text}");
            assert_eq!(shown(&text), format!("SELECT * FROM {read}"), "{text}");
        }
    }

    #[test]
    fn names_behind_using_and_rows_from_are_shown_as_they_were_written() {
        for text in [
            "SELECT x.k FROM a JOIN b USING(k) AS x",
            "SELECT * FROM a JOIN b USING(k, l) AS \"X \"\")y\" WHERE true",
            "SELECT * FROM a JOIN b USING(k, l) AS \"X \"\"y\" WHERE true",
            "SELECT * FROM a JOIN b USING(k) AS \"x\"\")\" WHERE true",
            "SELECT * FROM (ROWS FROM (f(1)) CROSS JOIN t)",
            "SELECT * FROM ROWS FROM (f(1), g(2)) WITH ORDINALITY AS t (a, b)",
        ] {
            assert_eq!(shown(text), text);
        }
        // Columns that are called so are none.
        assert_eq!(
            shown("SELECT a, rows FROM (SELECT 1 AS rows) AS s"),
            "SELECT a, rows FROM (SELECT 1 AS rows) AS s"
        );
        assert!(statements("delete from a using (select 1) as b").is_ok());
    }

    #[test]
    fn joins_that_wait_within_brackets_are_counted_together() {
        let many = |count: usize| {
            let inner = "a JOIN (b JOIN ".repeat(count);
            format!("select * from {inner} c {}", "on x) on y ".repeat(count))
        };
        let refused = statements(&many(NESTING_MAX)).unwrap_err();
        assert_eq!(refused.sqlstate(), crate::sqlstate::STATEMENT_TOO_COMPLEX);
        crate::parse::with_stack(|| drop(statements(&many(60)).unwrap()));
    }
}
