//! What stands behind the target of a COPY: its options, in either spelling, and its condition. The parser has words for some of them only, and takes what
//! follows a COPY FROM STDIN for its data.
//!
//! All of it is taken out of the text before the parser reads it, and put into the statement behind it ([`Rest::put_into`]): a COPY FROM with a condition has
//! the query for its source that would return its rows; options stand where the parser keeps data, as no user can write any there.

use super::dialect::{Bounded, is_word};
use super::{NESTING_MAX, at_token, position, syntax_error};
use crate::error::{Result, SqlError};
use sqlparser::ast::{CopySource, Expr, Query, SetExpr, Statement};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::VecDeque;

/// An option of a COPY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CopyOption {
    /// Lower case, if it was not quoted.
    pub name: String,
    pub argument: CopyArgument,
    /// Where it stands in the text.
    pub place: Option<u32>,
}

/// What an option is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CopyArgument {
    Nothing,
    /// A word or a text.
    Text(String),
    /// A number, as it was written.
    Number(String),
    /// `*`.
    All,
    List(Vec<String>),
}

/// What stands behind the target of a COPY.
#[derive(Debug)]
pub(super) struct Rest {
    options: Vec<CopyOption>,
    /// The query whose rows are copied, of a COPY FROM with a condition.
    query: Option<Box<Query>>,
}

impl Rest {
    /// Puts it into the statement that was parsed without.
    pub fn put_into(self, copy: &mut Statement) {
        let Statement::Copy { source, values, .. } = copy else {
            return;
        };
        *values = self.options.into_iter().flat_map(written).collect();
        if let Some(query) = self.query {
            *source = CopySource::Query(query);
        }
    }
}

/// The options of a COPY, from where the parser would keep its data.
pub(crate) fn copy_options(values: &[Option<String>]) -> Vec<CopyOption> {
    values.split(Option::is_none).filter_map(read).collect()
}

/// An option as texts, and none behind it: its name, its place, the kind of its argument, and that.
fn written(option: CopyOption) -> impl Iterator<Item = Option<String>> {
    let place = option.place.map_or_else(String::new, |at| at.to_string());
    let mut texts = vec![option.name, place];
    let (kind, argument) = match option.argument {
        CopyArgument::Nothing => ("nothing", Vec::new()),
        CopyArgument::Text(text) => ("text", vec![text]),
        CopyArgument::Number(text) => ("number", vec![text]),
        CopyArgument::All => ("all", Vec::new()),
        CopyArgument::List(texts) => ("list", texts),
    };
    texts.push(kind.to_owned());
    texts.extend(argument);
    texts.into_iter().map(Some).chain([None])
}

/// What [`written`] wrote.
fn read(texts: &[Option<String>]) -> Option<CopyOption> {
    let mut texts = texts.iter().flatten().cloned();
    let (name, place, kind) = (texts.next()?, texts.next()?, texts.next()?);
    let argument = match &*kind {
        "text" => CopyArgument::Text(texts.next()?),
        "number" => CopyArgument::Number(texts.next()?),
        "all" => CopyArgument::All,
        "list" => CopyArgument::List(texts.collect()),
        _ => CopyArgument::Nothing,
    };
    Some(CopyOption {
        name,
        argument,
        place: place.parse().ok(),
    })
}

/// Takes out what stands behind the targets of COPY, one for each of them, in order; or what is wrong with it. In one pass: a text may have many.
pub(super) fn take_rests(tokens: &mut Vec<TokenWithSpan>, text: &str) -> VecDeque<Result<Rest>> {
    let mut rests = VecDeque::new();
    let mut kept = Vec::with_capacity(tokens.len() + 3);
    for statement in tokens.split_inclusive(|own| own.token == Token::SemiColon) {
        let is_spoken = |own: &&TokenWithSpan| !matches!(own.token, Token::Whitespace(_));
        let spoken: Vec<&TokenWithSpan> = statement.iter().filter(is_spoken).collect();
        let Some(parts) = Parts::of(&spoken) else {
            kept.extend_from_slice(statement);
            continue;
        };
        rests.push_back(parts.rest(text, statement));
        kept.extend(parts.first.iter().copied().cloned());
        let Some(last) = parts.rest.last().copied() else {
            continue;
        };
        let end = |token: Token| TokenWithSpan {
            token,
            ..last.clone()
        };
        if is_word(&parts.target.token, "stdin") {
            // The data that the parser looks for end at once: they come in messages of their own.
            let ends = [Token::SemiColon, Token::Backslash, Token::Period];
            kept.extend(ends.map(end));
        }
        kept.push(end(match last.token {
            Token::EOF => Token::EOF,
            _ => Token::SemiColon,
        }));
    }
    *tokens = kept;
    rests
}

/// A COPY in parts.
struct Parts<'t> {
    /// Up to its target, without BINARY.
    first: Vec<&'t TokenWithSpan>,
    /// BINARY in front of the table.
    binary: Option<&'t TokenWithSpan>,
    /// STDIN, STDOUT, or the name of a file.
    target: &'t TokenWithSpan,
    /// Behind it, with what ends the statement.
    rest: &'t [&'t TokenWithSpan],
    is_from: bool,
}

impl<'t> Parts<'t> {
    /// Those of a statement; `None` if it is no COPY, or none as far as its target.
    fn of(spoken: &'t [&'t TokenWithSpan]) -> Option<Self> {
        if !is_word(&spoken.first()?.token, "copy") {
            return None;
        }
        let binary = spoken.get(1).copied();
        let binary = binary.filter(|own| is_word(&own.token, "binary"));
        let mut depth = 0usize;
        let direction = spoken.iter().position(|own| {
            match &own.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                token => return depth == 0 && (is_word(token, "from") || is_word(token, "to")),
            }
            false
        })?;
        let is_program = is_word(&spoken.get(direction + 1)?.token, "program");
        let target = direction + 1 + usize::from(is_program);
        let first = spoken.get(..=target)?.iter().copied();
        // What ends the text is no target.
        if matches!(spoken[target].token, Token::EOF | Token::SemiColon) {
            return None;
        }
        Some(Self {
            first: first
                .filter(|own| binary.is_none_or(|binary| !std::ptr::eq(*own, binary)))
                .collect(),
            binary,
            target: spoken[target],
            rest: &spoken[target + 1..],
            is_from: is_word(&spoken[direction].token, "from"),
        })
    }

    fn rest(&self, text: &str, statement: &[TokenWithSpan]) -> Result<Rest> {
        let mut reader = Reader {
            text,
            tokens: self.rest,
            at: 0,
            options: Vec::new(),
        };
        if let Some(binary) = self.binary {
            let text = CopyArgument::Text("binary".to_owned());
            reader.push("format", text, binary);
        }
        reader.options()?;
        let next = reader.peek();
        let query = match next {
            Some(own) if is_word(&own.token, "where") => {
                if !self.is_from {
                    let text_of = "WHERE clause not allowed with COPY TO";
                    return Err(SqlError::syntax(text_of).at(place(text, own)));
                }
                Some(self.query(text, own, statement)?)
            }
            _ => {
                reader.end()?;
                None
            }
        };
        Ok(Rest {
            options: reader.options,
            query,
        })
    }

    /// `SELECT columns FROM table WHERE condition`.
    fn query(
        &self,
        text: &str,
        word: &TokenWithSpan,
        statement: &[TokenWithSpan],
    ) -> Result<Box<Query>> {
        let behind = statement.iter().position(|own| own.span == word.span);
        let condition = &statement[behind.map_or(statement.len(), |at| at + 1)..];
        let condition = parsed(text, condition.to_vec(), |parser| parser.parse_expr())?;
        let source = self.first.get(1..).unwrap_or_default().iter();
        let source: Vec<&TokenWithSpan> = source
            .take_while(|own| !is_word(&own.token, "from"))
            .copied()
            .collect();
        let columns = source.iter().position(|own| own.token == Token::LParen);
        let (name, columns) = source.split_at(columns.unwrap_or(source.len()));
        let made = |token: Token| TokenWithSpan {
            token,
            ..word.clone()
        };
        let mut tokens = vec![made(Token::make_keyword("SELECT"))];
        match columns {
            [] => tokens.push(made(Token::Mul)),
            [_, inner @ .., _] => tokens.extend(inner.iter().copied().cloned()),
            [one] => return Err(at_token(text, one)),
        }
        tokens.push(made(Token::make_keyword("FROM")));
        tokens.extend(name.iter().copied().cloned());
        let mut query = parsed(text, tokens, |parser| parser.parse_query())?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.selection = Some(condition);
        }
        Ok(query)
    }
}

/// What the parser makes of tokens, all of them but what ends a statement.
fn parsed<T>(
    text: &str,
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, sqlparser::parser::ParserError>,
) -> Result<T> {
    let dialect = Bounded::new(&tokens);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTING_MAX)
        .with_tokens_with_locations(tokens);
    match parse(&mut parser) {
        Err(_) if dialect.is_spent() => Err(super::too_deep()),
        Err(error) => Err(syntax_error(text, &parser, error)),
        Ok(found) => match parser.peek_token_ref() {
            next if matches!(next.token, Token::SemiColon | Token::EOF) => Ok(found),
            next => Err(at_token(text, next)),
        },
    }
}

fn place(text: &str, token: &TokenWithSpan) -> Option<u32> {
    position(text, token.span.start.line, token.span.start.column)
}

/// Reads options.
struct Reader<'t> {
    text: &'t str,
    tokens: &'t [&'t TokenWithSpan],
    at: usize,
    options: Vec<CopyOption>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<&'t TokenWithSpan> {
        let next = self.tokens.get(self.at).copied();
        next.filter(|own| !matches!(own.token, Token::EOF | Token::SemiColon))
    }

    /// Whether the next word is this one, which is passed over then.
    fn word(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|own| is_word(&own.token, word));
        self.at += usize::from(is);
        is
    }

    fn sign(&mut self, sign: &Token) -> bool {
        let is = self.peek().is_some_and(|own| own.token == *sign);
        self.at += usize::from(is);
        is
    }

    /// `42601` at the next token.
    fn wrong(&self) -> SqlError {
        match self.tokens.get(self.at) {
            Some(own) if own.token != Token::EOF => at_token(self.text, own),
            _ => {
                let end = u32::try_from(self.text.chars().count() + 1).ok();
                SqlError::syntax("syntax error at end of input").at(end)
            }
        }
    }

    fn end(&self) -> Result<()> {
        self.peek().map_or(Ok(()), |_| Err(self.wrong()))
    }

    fn text(&mut self) -> Result<String> {
        let text = self.peek().and_then(|own| literal(&own.token));
        let text = text.ok_or_else(|| self.wrong())?;
        self.at += 1;
        Ok(text)
    }

    /// A name: as it was written if it was quoted.
    fn name(&mut self) -> Result<String> {
        match self.peek().map(|own| &own.token) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(match word.quote_style {
                    Some(_) => word.value.clone(),
                    None => word.value.to_lowercase(),
                })
            }
            _ => Err(self.wrong()),
        }
    }

    fn push(&mut self, name: &str, argument: CopyArgument, at: &TokenWithSpan) {
        self.options.push(CopyOption {
            name: name.to_owned(),
            argument,
            place: place(self.text, at),
        });
    }

    /// `[[USING] DELIMITERS 'c'] [WITH] (…)`, or words.
    fn options(&mut self) -> Result<()> {
        if let Some(first) = self.peek() {
            let using = self.word("using");
            if self.word("delimiters") {
                let text = CopyArgument::Text(self.text()?);
                self.push("delimiter", text, first);
            } else if using {
                return Err(self.wrong());
            }
        }
        self.word("with");
        if !self.sign(&Token::LParen) {
            while self.legacy()? {}
            return Ok(());
        }
        loop {
            let at = self.peek().ok_or_else(|| self.wrong())?;
            let name = self.name()?;
            let argument = self.argument()?;
            self.push(&name, argument, at);
            if self.sign(&Token::RParen) {
                return Ok(());
            }
            if !self.sign(&Token::Comma) {
                return Err(self.wrong());
            }
        }
    }

    fn argument(&mut self) -> Result<CopyArgument> {
        let Some(own) = self.peek() else {
            return Err(self.wrong());
        };
        Ok(match &own.token {
            Token::Comma | Token::RParen => CopyArgument::Nothing,
            Token::Mul => {
                self.at += 1;
                CopyArgument::All
            }
            Token::LParen => {
                self.at += 1;
                let mut texts = vec![self.word_or_text()?];
                while self.sign(&Token::Comma) {
                    texts.push(self.word_or_text()?);
                }
                if !self.sign(&Token::RParen) {
                    return Err(self.wrong());
                }
                CopyArgument::List(texts)
            }
            Token::Plus | Token::Minus | Token::Number(..) => {
                let minus = self.sign(&Token::Minus);
                if !minus {
                    self.sign(&Token::Plus);
                }
                match self.peek().map(|own| &own.token) {
                    Some(Token::Number(digits, _)) => {
                        self.at += 1;
                        let sign = if minus { "-" } else { "" };
                        CopyArgument::Number(format!("{sign}{digits}"))
                    }
                    _ => return Err(self.wrong()),
                }
            }
            _ => CopyArgument::Text(self.word_or_text()?),
        })
    }

    fn word_or_text(&mut self) -> Result<String> {
        match self.peek().map(|own| &own.token) {
            Some(Token::Word(_)) => self.name(),
            _ => self.text(),
        }
    }

    /// An option as it was written before there were lists of them; false if none follows.
    fn legacy(&mut self) -> Result<bool> {
        let Some(at) = self.peek() else {
            return Ok(false);
        };
        for (word, format) in [("binary", "binary"), ("csv", "csv")] {
            if self.word(word) {
                self.push("format", CopyArgument::Text(format.to_owned()), at);
                return Ok(true);
            }
        }
        for word in ["freeze", "header"] {
            if self.word(word) {
                self.push(word, CopyArgument::Nothing, at);
                return Ok(true);
            }
        }
        for word in ["delimiter", "null", "quote", "escape", "encoding"] {
            if self.word(word) {
                if word != "encoding" {
                    self.word("as");
                }
                let text = CopyArgument::Text(self.text()?);
                self.push(word, text, at);
                return Ok(true);
            }
        }
        if !self.word("force") {
            return Ok(false);
        }
        let name = if self.word("quote") {
            "force_quote"
        } else if self.word("null") {
            "force_null"
        } else if self.word("not") && self.word("null") {
            "force_not_null"
        } else {
            return Err(self.wrong());
        };
        let argument = if name == "force_quote" && self.sign(&Token::Mul) {
            CopyArgument::All
        } else {
            let mut names = vec![self.name()?];
            while self.sign(&Token::Comma) {
                names.push(self.name()?);
            }
            CopyArgument::List(names)
        };
        self.push(name, argument, at);
        Ok(true)
    }
}

/// The text of a literal.
fn literal(token: &Token) -> Option<String> {
    match token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Some(text.clone()),
        Token::UnicodeStringLiteral(text) => Some(text.clone()),
        Token::DollarQuotedString(text) => Some(text.value.clone()),
        _ => None,
    }
}

/// The table, the columns and the condition of a query that stands for the source of a COPY FROM.
pub(crate) fn filtered(
    query: &Query,
) -> Option<(
    &sqlparser::ast::ObjectName,
    Vec<sqlparser::ast::Ident>,
    &Expr,
)> {
    use sqlparser::ast::{SelectItem, TableFactor};
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let TableFactor::Table { name, .. } = &select.from.first()?.relation else {
        return None;
    };
    let columns = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(column)) => Some(column.clone()),
        _ => None,
    });
    Some((name, columns.collect(), select.selection.as_ref()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::parse::statements;

    fn options(text: &str) -> Vec<(String, CopyArgument)> {
        let options = match statements(text).unwrap().pop() {
            Some(Statement::Copy { values, .. }) => copy_options(&values),
            other => panic!("{other:?}"),
        };
        let pair = |option: CopyOption| (option.name, option.argument);
        options.into_iter().map(pair).collect()
    }

    #[test]
    fn options_are_read_in_either_spelling() {
        let text = |text: &str| CopyArgument::Text(text.to_owned());
        let list = |names: &[&str]| {
            CopyArgument::List(names.iter().map(|name| (*name).to_owned()).collect())
        };
        let expected = vec![
            ("format".to_owned(), text("csv")),
            ("header".to_owned(), CopyArgument::Nothing),
            ("null".to_owned(), text("")),
            ("force_not_null".to_owned(), list(&["a", "B"])),
            ("force_quote".to_owned(), CopyArgument::All),
        ];
        for written in [
            "select 1; copy t from stdin (format csv, header, null '', force_not_null (a, \"B\"), force_quote *); select 2",
            "select 1; copy t from stdin with csv header null as '' force not null a, \"B\" force quote *; select 2",
        ] {
            let first = &written[..written.rfind(';').unwrap()];
            assert_eq!(options(first), expected, "{first}");
            assert_eq!(statements(written).unwrap().len(), 3, "{written}");
        }
        let one = |argument| vec![("header".to_owned(), argument)];
        let number = CopyArgument::Number("-1".to_owned());
        assert_eq!(options("copy t to stdout (header -1)"), one(number));
        assert_eq!(options("copy t to stdout (header on)"), one(text("on")));
        let query =
            "copy (select a from header join freeze on true where true) to stdout (header off)";
        assert_eq!(options(query), one(text("off")));
        // Columns of that name are no options.
        statements("copy t (freeze on) from stdin").unwrap_err();
    }

    #[test]
    fn a_condition_is_that_of_a_query() {
        let text = "copy s.t (a, b) from stdin csv where a > 1 and b in (1, 2); select 1";
        let copy = statements(text).unwrap().remove(0);
        let Statement::Copy { source, .. } = copy else {
            panic!("{copy}");
        };
        let CopySource::Query(query) = source else {
            panic!("{source:?}");
        };
        assert_eq!(
            query.to_string(),
            "SELECT a, b FROM s.t WHERE a > 1 AND b IN (1, 2)"
        );
        for (text, near) in [
            ("copy t from stdin where", "end of input"),
            ("copy t from stdin where a b", "\"b\""),
            ("copy t from stdin where a;", ""),
            ("copy t from stdin where;", "\";\""),
        ] {
            match statements(text) {
                Ok(_) => assert_eq!(near, ""),
                Err(error) => assert!(error.message().contains(near), "{text}: {error}"),
            }
        }
    }
}
