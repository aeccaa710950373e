//! Parameters of tables, indexes and views (`WITH (fillfactor = 70)`), and what stands behind the columns of a key: INCLUDE and such parameters.
//!
//! The parser knows parameters as names with expressions, and neither values left out, nor RESET, nor anything behind a key but when it is checked. Each parameter
//! is given the form `"name" = 'value'`; what stands behind a key is put among its columns, behind a name that no text can have.

use super::dialect::keyword;
use sqlparser::ast::{Expr, Ident, IndexColumn};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// In front of the name of a parameter of which nothing is to be said any more.
pub(crate) const RESET: &str =
    "a parameter that is as if nothing were said of it; this is longer than any name in a text: ";
/// Behind it stand columns that a key includes.
const INCLUDED: &str = "the columns behind are included in a key; this is longer than any name";
/// Behind it stand parameters of a key's index, name and value in turn.
const OPTIONS: &str = "the names behind are parameters of an index, longer than any name in a text";

/// The words without which there is none of it.
pub(super) const WORDS: &[Keyword] = &[
    Keyword::WITH,
    Keyword::SET,
    Keyword::RESET,
    Keyword::INCLUDE,
];

/// The columns of a key, and what stands behind them.
#[derive(Debug)]
pub(crate) struct KeyTail<'k> {
    pub columns: &'k [IndexColumn],
    pub include: Vec<&'k Ident>,
    /// Names and values.
    pub options: Vec<(&'k str, &'k str)>,
}

impl<'k> KeyTail<'k> {
    /// What a list of columns says.
    pub fn of(columns: &'k [IndexColumn]) -> Self {
        let name = |column: &'k IndexColumn| match &column.column.expr {
            Expr::Identifier(name) => Some(name),
            _ => None,
        };
        let place = |marker: &str| {
            let is_marker = |name: &Ident| name.value == marker;
            let mut all = columns.iter();
            all.position(|column| name(column).is_some_and(is_marker))
                .unwrap_or(columns.len())
        };
        let options = place(OPTIONS);
        let include = place(INCLUDED).min(options);
        let behind = |from: usize, to: usize| columns[from..to].iter().skip(1).filter_map(name);
        let said: Vec<&Ident> = behind(options, columns.len()).collect();
        let pairs = said.chunks_exact(2);
        Self {
            columns: &columns[..include],
            include: behind(include, options).collect(),
            options: pairs
                .map(|pair| (&*pair[0].value, &*pair[1].value))
                .collect(),
        }
    }
}

/// Gives them such forms, in the statements that have any.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let mut start = 0;
    while start < tokens.len() {
        let length = tokens[start..]
            .iter()
            .position(|own| own.token == Token::SemiColon);
        let end = length.map_or(tokens.len(), |length| start + length);
        let before = tokens.len();
        if let Some(changes) = Statement::of(tokens, start, end).map(|own| own.changes()) {
            for change in changes.into_iter().rev() {
                let span = tokens[change.first].span;
                let made = change.made.into_iter();
                let made = made.map(|token| TokenWithSpan { token, span });
                tokens.splice(change.first..change.end, made);
            }
        }
        start = (end + 1 + tokens.len()).saturating_sub(before);
    }
}

/// Tokens that take the place of others.
struct Change {
    first: usize,
    end: usize,
    made: Vec<Token>,
}

/// A statement that makes or changes a table, an index or a view.
struct Statement<'t> {
    tokens: &'t [TokenWithSpan],
    /// Places of its tokens but for spaces.
    spoken: Vec<usize>,
    alters: bool,
    of_index: bool,
}

impl<'t> Statement<'t> {
    fn of(tokens: &'t [TokenWithSpan], start: usize, end: usize) -> Option<Self> {
        let is_spoken =
            |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF);
        let mut words = (start..end).filter(is_spoken);
        let word =
            |at: Option<usize>| at.map_or(Keyword::NoKeyword, |at| keyword(&tokens[at].token));
        let first = word(words.next());
        let mut next = word(words.next());
        let alters = match first {
            Keyword::CREATE => false,
            Keyword::ALTER => true,
            _ => return None,
        };
        while matches!(
            next,
            Keyword::UNIQUE
                | Keyword::TEMP
                | Keyword::TEMPORARY
                | Keyword::UNLOGGED
                | Keyword::GLOBAL
                | Keyword::LOCAL
                | Keyword::OR
                | Keyword::REPLACE
        ) {
            next = word(words.next());
        }
        let of_index = next == Keyword::INDEX;
        (of_index || matches!(next, Keyword::TABLE | Keyword::VIEW)).then(|| Self {
            tokens,
            spoken: (start..end).filter(is_spoken).collect(),
            alters,
            of_index,
        })
    }

    fn token(&self, at: usize) -> Option<&'t Token> {
        self.spoken.get(at).map(|at| &self.tokens[*at].token)
    }

    fn word(&self, at: usize) -> Keyword {
        self.token(at).map_or(Keyword::NoKeyword, keyword)
    }

    /// The bracket that closes one.
    fn close(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        (open..self.spoken.len()).find(|at| {
            match self.token(*at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        })
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut depth = 0usize;
        let mut at = 0;
        while at < self.spoken.len() {
            match self.token(at) {
                Some(Token::LParen) => {
                    if let Some((change, close)) = self.key(at) {
                        changes.push(change);
                        at = close + 1;
                        continue;
                    }
                    depth += 1;
                }
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                _ if depth > 0 || self.token(at + 1) != Some(&Token::LParen) => match self.word(at)
                {
                    // The query, and the condition, of which nothing is to be changed.
                    Keyword::AS | Keyword::WHERE if depth == 0 && !self.alters => break,
                    _ => {}
                },
                _ => {
                    let of_column =
                        at > 1 && matches!(self.word(at - 2), Keyword::ALTER | Keyword::COLUMN);
                    let reset = match self.word(at) {
                        Keyword::WITH if !self.alters => Some(false),
                        Keyword::SET if self.alters && !of_column => Some(false),
                        Keyword::RESET if self.alters && !of_column => Some(true),
                        Keyword::AS | Keyword::WHERE if !self.alters => break,
                        _ => None,
                    };
                    if let Some(reset) = reset
                        && let Some(close) = self.close(at + 1)
                        && let Some(items) = self.items(at + 1, close)
                    {
                        changes.push(self.parameters(at, close, items, reset));
                        at = close + 1;
                        continue;
                    }
                }
            }
            at += 1;
        }
        changes
    }

    /// Names and values between brackets; none if something else stands there.
    fn items(&self, open: usize, close: usize) -> Option<Vec<(String, String)>> {
        let name = |token: &Token| match token {
            Token::Word(word) => Some(match word.quote_style {
                None => word.value.to_lowercase(),
                Some(_) => word.value.clone(),
            }),
            _ => None,
        };
        let all: Vec<&Token> = (open + 1..close).filter_map(|at| self.token(at)).collect();
        let items = all.split(|token| **token == Token::Comma).map(|item| {
            let (own, value) = match item {
                [first, Token::Period, second, rest @ ..] => {
                    (format!("{}.{}", name(first)?, name(second)?), rest)
                }
                [first, rest @ ..] => (name(first)?, rest),
                [] => return None,
            };
            let value = match value {
                [] => "true".to_owned(),
                [Token::Eq, Token::Number(number, _)] => number.clone(),
                [Token::Eq, Token::Minus, Token::Number(number, _)] => format!("-{number}"),
                [Token::Eq, Token::Plus, Token::Number(number, _)] => number.clone(),
                [Token::Eq, Token::SingleQuotedString(text)] => text.clone(),
                [Token::Eq, word] => name(word)?,
                _ => return None,
            };
            Some((own, value))
        });
        items.collect()
    }

    fn parameters(
        &self,
        at: usize,
        close: usize,
        items: Vec<(String, String)>,
        reset: bool,
    ) -> Change {
        let word = if self.alters { "SET" } else { "WITH" };
        let mut made = vec![Token::make_keyword(word), blank(), Token::LParen];
        for (number, (name, value)) in items.into_iter().enumerate() {
            if number > 0 {
                made.push(Token::Comma);
            }
            let name = if reset {
                format!("{RESET}{name}")
            } else {
                name
            };
            made.extend([
                Token::make_word(&name, Some('"')),
                Token::Eq,
                Token::SingleQuotedString(value),
            ]);
        }
        made.push(Token::RParen);
        Change {
            first: self.spoken[at],
            end: self.spoken[close] + 1,
            made,
        }
    }

    /// What stands behind the columns of a key, which this bracket opens, put among them; and where it ends.
    fn key(&self, open: usize) -> Option<(Change, usize)> {
        let mut behind = open;
        while behind > 0
            && matches!(
                self.word(behind - 1),
                Keyword::NULLS | Keyword::NOT | Keyword::DISTINCT
            )
        {
            behind -= 1;
        }
        let word = self.word(behind.checked_sub(1)?);
        // `key` may be the name of a table.
        let primary = || behind >= 2 && self.word(behind - 2) == Keyword::PRIMARY;
        let is_key = word == Keyword::UNIQUE || word == Keyword::KEY && primary();
        if self.of_index || !is_key {
            return None;
        }
        let columns = self.close(open)?;
        let mut made = Vec::new();
        let mut end = columns;
        if self.word(end + 1) == Keyword::INCLUDE && self.token(end + 2) == Some(&Token::LParen) {
            let close = self.close(end + 2)?;
            made.extend([
                Token::Comma,
                Token::make_word(INCLUDED, Some('"')),
                Token::Comma,
            ]);
            made.extend((end + 3..close).filter_map(|at| self.token(at)).cloned());
            end = close;
        }
        if self.word(end + 1) == Keyword::WITH && self.token(end + 2) == Some(&Token::LParen) {
            let close = self.close(end + 2)?;
            made.extend([Token::Comma, Token::make_word(OPTIONS, Some('"'))]);
            for (name, value) in self.items(end + 2, close)? {
                for text in [name, value] {
                    made.extend([Token::Comma, Token::make_word(&text, Some('"'))]);
                }
            }
            end = close;
        }
        if made.is_empty() {
            return None;
        }
        made.push(Token::RParen);
        let change = Change {
            first: self.spoken[columns],
            end: self.spoken[end] + 1,
            made,
        };
        Some((change, end))
    }
}

fn blank() -> Token {
    Token::Whitespace(Whitespace::Space)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use sqlparser::ast::{Statement as Parsed, TableConstraint};

    #[test]
    fn parameters_have_one_form() {
        let shown = |text| crate::parse::statements(text).unwrap()[0].to_string();
        assert_eq!(
            shown("create index i on t (a) with (FillFactor = 70, fastupdate, \"X\" = off)"),
            "CREATE INDEX i ON t(a) WITH (\"fillfactor\" = '70', \"fastupdate\" = 'true', \"X\" = 'off')"
        );
        assert_eq!(
            shown("create table t (a int) with (toast.a = -0.5)"),
            "CREATE TABLE t (a INT) WITH (\"toast.a\" = '-0.5')"
        );
        assert_eq!(
            shown("alter table t reset (a), set (b = 'c d')"),
            format!("ALTER TABLE t SET (\"{RESET}a\" = ''), SET (\"b\" = 'c d')")
                .replace("= ''", "= 'true'")
        );
    }

    #[test]
    fn what_stands_behind_a_key_is_found_among_its_columns() {
        let text = "create table t (a int, unique nulls not distinct (a, b) include (c, d) with (fillfactor = 50) deferrable)";
        let parsed = crate::parse::statements(text).unwrap();
        let Parsed::CreateTable(create) = &parsed[0] else {
            panic!("{parsed:?}");
        };
        let TableConstraint::Unique(key) = &create.constraints[0] else {
            panic!("{create}");
        };
        let tail = KeyTail::of(&key.columns);
        assert_eq!(tail.columns.len(), 2);
        let included: Vec<&str> = tail.include.iter().map(|name| &*name.value).collect();
        assert_eq!(included, ["c", "d"]);
        assert_eq!(tail.options, [("fillfactor", "50")]);
    }
}
