//! What ON CONFLICT names beyond columns: expressions, and the predicate of an index. The parser knows lists of names there, so each of these is put
//! into a name, as SQL.

use super::dialect::keyword;
use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The name that such a list begins with; the predicate follows, empty if there is none, then what is in parentheses. No name in a statement can be it, as
/// [`super::KEY_LOCK`].
const TARGET: &str =
    "what a conflict is about: a predicate and expressions; this is longer than any name in a text";

/// What decides which indexes ON CONFLICT is about: SQL of what stands in the parentheses, and of what stands behind WHERE, each with its place in the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConflictTarget<'n> {
    pub items: Vec<&'n Ident>,
    pub predicate: Option<&'n Ident>,
}

impl<'n> ConflictTarget<'n> {
    /// The target that a list of names stands for; `None`: they are columns.
    pub fn of(names: &'n [Ident]) -> Option<Self> {
        let (first, rest) = names.split_first()?;
        let (predicate, items) = rest.split_first()?;
        (first.value == TARGET).then(|| Self {
            items: items.iter().collect(),
            predicate: Some(predicate).filter(|sql| !sql.value.is_empty()),
        })
    }
}

/// Puts such targets into names. `text` is what the tokens were read from.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>, text: &str) {
    let mut from = 0;
    while let Some((open, close)) = target_behind(tokens, from) {
        from = close;
        let (items, only_names) = items(tokens, open, close);
        let condition = predicate(tokens, close);
        if only_names && condition.is_none() {
            continue;
        }
        let written = |first: usize, end: usize| TokenWithSpan {
            token: Token::make_word(&between(text, tokens, first, end), Some('"')),
            span: tokens[first].span,
        };
        let span = tokens[open].span;
        let made = |token| TokenWithSpan { token, span };
        let mut names = vec![made(Token::make_word(TARGET, Some('"')))];
        names.push(match condition {
            Some((first, end)) => written(first, end),
            None => made(Token::make_word("", Some('"'))),
        });
        names.extend(items.into_iter().map(|(first, end)| written(first, end)));
        let mut list = Vec::with_capacity(2 * names.len());
        for name in names {
            if !list.is_empty() {
                list.push(made(Token::Comma));
            }
            list.push(name);
        }
        if let Some((first, end)) = condition {
            // The word WHERE, too.
            let word = (close..first)
                .rev()
                .find(|at| keyword(&tokens[*at].token) == Keyword::WHERE);
            tokens.drain(word.unwrap_or(first)..end);
        }
        tokens.splice(open + 1..close, list);
        from = open + 1;
    }
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The first token from one on that is no space.
fn next(tokens: &[TokenWithSpan], from: usize) -> usize {
    let spaces = tokens[from..].iter().take_while(|token| is_space(token));
    from + spaces.count()
}

/// The parentheses behind the next ON CONFLICT.
fn target_behind(tokens: &[TokenWithSpan], from: usize) -> Option<(usize, usize)> {
    let word = |at: usize| {
        tokens
            .get(at)
            .map_or(Keyword::NoKeyword, |own| keyword(&own.token))
    };
    let open = (from..tokens.len()).find_map(|at| {
        let conflict = next(tokens, at + 1);
        let open = next(tokens, (conflict + 1).min(tokens.len()));
        let is_target = word(at) == Keyword::ON
            && word(conflict) == Keyword::CONFLICT
            && tokens.get(open)?.token == Token::LParen;
        is_target.then_some(open)
    })?;
    let mut depth = 0;
    let close = tokens[open..].iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some((open, open + close))
}

/// Where each item between parentheses begins and ends, and whether all of them are names.
fn items(tokens: &[TokenWithSpan], open: usize, close: usize) -> (Vec<(usize, usize)>, bool) {
    let mut items = Vec::new();
    let mut only_names = true;
    let (mut depth, mut first) = (0, open + 1);
    for at in open + 1..=close {
        match tokens[at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if at < close => depth -= 1,
            Token::Comma if depth > 0 => {}
            Token::Comma | Token::RParen => {
                let mut words = tokens[first..at].iter().filter(|token| !is_space(token));
                let is_name = matches!(words.next().map(|own| &own.token), Some(Token::Word(_)));
                only_names &= is_name && words.next().is_none();
                items.push((next(tokens, first), at));
                first = at + 1;
            }
            _ => {}
        }
    }
    (items, only_names)
}

/// Where the condition behind the parentheses begins and ends, if there is one: in front of DO.
fn predicate(tokens: &[TokenWithSpan], close: usize) -> Option<(usize, usize)> {
    let word = next(tokens, close + 1);
    if keyword(&tokens.get(word)?.token) != Keyword::WHERE {
        return None;
    }
    let length = tokens[word..]
        .iter()
        .position(|token| matches!(keyword(&token.token), Keyword::DO))?;
    Some((next(tokens, word + 1), word + length))
}

/// What the text says from one token up to another.
fn between(text: &str, tokens: &[TokenWithSpan], first: usize, end: usize) -> String {
    let place = |at: usize| {
        let start = tokens[at].span.start;
        super::position(text, start.line, start.column).map_or(0, |place| place as usize - 1)
    };
    let (from, to) = (place(first), place(end));
    let part = text.chars().skip(from).take(to.saturating_sub(from));
    part.collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use sqlparser::ast::{ConflictTarget as Parsed, OnConflict, OnInsert, Statement};

    fn target(sql: &str) -> Vec<Ident> {
        let statements = crate::parse::statements(sql).unwrap();
        let [Statement::Insert(insert)] = statements.as_slice() else {
            panic!("{statements:?}");
        };
        match &insert.on {
            Some(OnInsert::OnConflict(OnConflict {
                conflict_target: Some(Parsed::Columns(names)),
                ..
            })) => names.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn expressions_and_predicates_are_read_and_columns_stay_names() {
        let names =
            target("insert into t values ('on conflict (x)') on conflict (a, \"B\") do nothing");
        assert_eq!(ConflictTarget::of(&names), None);
        assert_eq!(names.len(), 2);
        let names = target(
            "insert into t values ('ä') on conflict (lower(a), (b + 1), c) where d > 'it''s' and e do update set a = 'x' where t.b > 1",
        );
        let shown = |names: &[Ident]| {
            let target = ConflictTarget::of(names).unwrap();
            let own = |name: &Ident| (name.value.clone(), name.span.start.column);
            let items: Vec<_> = target.items.into_iter().map(own).collect();
            (items, target.predicate.map(own))
        };
        let item = |text: &str, column: u64| (text.to_owned(), column);
        assert_eq!(
            shown(&names),
            (
                vec![item("lower(a)", 41), item("(b + 1)", 51), item("c", 60)],
                Some(item("d > 'it''s' and e", 69))
            )
        );
        let names = target("insert into u values (1) on conflict (f(a, 2)) do nothing");
        assert_eq!(shown(&names), (vec![item("f(a, 2)", 39)], None));
    }
}
