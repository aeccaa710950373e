//! What PostgreSQL lets one write in more ways than the parser does, changed among the tokens into the way that both have. Places in the text stay as they are.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Words of a text that may have some, beside a star.
pub(super) const WORDS: &[Keyword] = &[
    Keyword::USING,
    Keyword::SIMILAR,
    Keyword::CONCURRENTLY,
    Keyword::EXCLUDE,
];

/// Changes them.
pub(super) fn adapt(tokens: &mut [TokenWithSpan]) {
    let is_spoken = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| is_spoken(&tokens[*at]))
        .collect();
    // For each open bracket whether it is that of SUBSTRING, and SIMILAR was found in it.
    let mut brackets: Vec<(bool, bool)> = Vec::new();
    let blank = || Token::Whitespace(Whitespace::Space);
    for at in 0..spoken.len() {
        let place = spoken[at];
        let next = |more: usize| spoken.get(at + more).map(|next| &tokens[*next].token);
        let before = |less: usize| Some(&tokens[spoken[at.checked_sub(less)?]].token);
        match (&tokens[place].token, keyword(Some(&tokens[place].token))) {
            (Token::LParen, _) => {
                let of_substring = keyword(before(1)) == Keyword::SUBSTRING;
                brackets.push((of_substring, false));
            }
            (Token::RParen, _) => {
                brackets.pop();
            }
            // `FROM t *`: with what inherits from it, as without the star.
            (Token::Mul, _) if is_table(&before) && ends_table(next(1), next(2)) => {
                tokens[place].token = blank();
            }
            // `ORDER BY a USING >`.
            (_, Keyword::USING) => {
                let order = match next(1) {
                    Some(Token::Lt) => "ASC",
                    Some(Token::Gt) => "DESC",
                    _ => continue,
                };
                tokens[place].token = blank();
                tokens[spoken[at + 1]].token = Token::make_keyword(order);
            }
            // `SUBSTRING(a SIMILAR b ESCAPE c)`.
            (_, Keyword::SIMILAR) if keyword(next(1)) != Keyword::TO => {
                if let Some((true, similar)) = brackets.last_mut() {
                    *similar = true;
                    tokens[place].token = Token::make_keyword("FROM");
                }
            }
            (_, Keyword::ESCAPE) if brackets.last() == Some(&(true, true)) => {
                tokens[place].token = Token::make_keyword("FOR");
            }
            // An index is dropped at once: nobody reads by one that is gone.
            (_, Keyword::CONCURRENTLY)
                if keyword(before(1)) == Keyword::INDEX && keyword(before(2)) == Keyword::DROP =>
            {
                tokens[place].token = blank();
            }
            (_, Keyword::EXCLUDE) if is_frame(&before) => {
                super::exclusions::adapt(tokens, &spoken, at);
            }
            _ => {}
        }
    }
}

/// Names the one row of a SELECT without list and without tables: what nobody calls a table.
const NO_TABLE: &str =
    "the row of a query that has neither columns nor tables, longer than any name in a text";

/// `SELECT` alone, or with a WHERE behind it: a row without columns. The parser takes a list that is empty in front of FROM only.
pub(super) fn empty_lists(tokens: &mut Vec<TokenWithSpan>) {
    let is_spoken = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut found = Vec::new();
    let (mut selects, mut before) = (None, Keyword::NoKeyword);
    for (at, own) in tokens.iter().enumerate().filter(|(_, own)| is_spoken(own)) {
        let ends = matches!(own.token, Token::EOF | Token::SemiColon | Token::RParen)
            || keyword(Some(&own.token)) == Keyword::WHERE;
        if let Some(select) = selects.take().filter(|_| ends) {
            found.push(select);
        }
        let word = keyword(Some(&own.token));
        // As a name, behind AS; the query of a table or view stands there, too, and has something behind it.
        selects = (word == Keyword::SELECT && before != Keyword::AS).then_some(at);
        before = word;
    }
    // A last one, where no token tells the end.
    found.extend(selects);
    put_behind(
        tokens,
        &found,
        &[
            Token::make_keyword("FROM"),
            Token::LParen,
            Token::make_keyword("VALUES"),
            Token::LParen,
            Token::Number("1".to_owned(), false),
            Token::RParen,
            Token::RParen,
            Token::make_keyword("AS"),
            Token::make_word(NO_TABLE, Some('"')),
        ],
    );
}

/// Puts tokens behind those at some places, which ascend, with their place in the text. In one pass: a text may have many.
pub(super) fn put_behind(tokens: &mut Vec<TokenWithSpan>, places: &[usize], more: &[Token]) {
    if places.is_empty() {
        return;
    }
    let mut places = places.iter().copied().peekable();
    let mut made = Vec::with_capacity(tokens.len() + places.len() * (more.len() + 2));
    for (at, own) in tokens.drain(..).enumerate() {
        let span = own.span;
        made.push(own);
        if places.next_if_eq(&at).is_some() {
            let space = std::iter::once(Token::Whitespace(Whitespace::Space));
            let all = space.clone().chain(more.iter().cloned()).chain(space);
            made.extend(all.map(|token| TokenWithSpan { token, span }));
        }
    }
    *tokens = made;
}

fn keyword(token: Option<&Token>) -> Keyword {
    token.map_or(Keyword::NoKeyword, super::dialect::keyword)
}

/// Whether a table's name stands before, behind a word that tables stand behind.
fn is_table<'t>(before: &impl Fn(usize) -> Option<&'t Token>) -> bool {
    let mut less = 1;
    while let Some(Token::Word(_)) = before(less) {
        match before(less + 1) {
            Some(Token::Period) => less += 2,
            other => {
                let distinct = keyword(before(less + 2)) == Keyword::DISTINCT;
                return match keyword(other) {
                    Keyword::FROM => !distinct,
                    Keyword::JOIN | Keyword::UPDATE | Keyword::ONLY => true,
                    _ => false,
                };
            }
        }
    }
    false
}

/// Whether a star is no sign between two operands: `extract(year FROM a * b)`.
fn ends_table(next: Option<&Token>, behind: Option<&Token>) -> bool {
    match next {
        // Functions, too.
        next if matches!(keyword(next), Keyword::LEFT | Keyword::RIGHT)
            && matches!(behind, Some(Token::LParen)) =>
        {
            false
        }
        None | Some(Token::EOF | Token::SemiColon | Token::Comma | Token::RParen) => true,
        next => matches!(
            keyword(next),
            Keyword::AS
                | Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::OFFSET
                | Keyword::FETCH
                | Keyword::FOR
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
                | Keyword::INNER
                | Keyword::LEFT
                | Keyword::RIGHT
                | Keyword::FULL
                | Keyword::CROSS
                | Keyword::NATURAL
                | Keyword::ON
                | Keyword::USING
                | Keyword::SET
                | Keyword::RETURNING
        ),
    }
}

/// Whether the bounds of a window's frame end before.
fn is_frame<'t>(before: &impl Fn(usize) -> Option<&'t Token>) -> bool {
    matches!(
        keyword(before(1)),
        Keyword::ROW | Keyword::PRECEDING | Keyword::FOLLOWING
    )
}
