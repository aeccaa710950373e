//! Forms of CREATE TABLE that the parser does not read, changed among the tokens: LIKE with options, and among columns; AS EXECUTE; WITH NO DATA.

use super::dialect::keyword;
use crate::error::{Result, SqlError};
use sqlparser::ast::{
    ColumnDef, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Query,
    SelectItem, SetExpr,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Name of the column that stands for a LIKE; its type's modifiers are the parts of the table's name, then an empty one, then the options.
/// No name in a statement can be it, as [`super::KEY_LOCK`].
const LIKE: &str = "the columns of another table, which stands in the type; this is longer than any name in a text";

/// Name of the first column of a query that stands for an EXECUTE; the second is the call of the statement that it names. No name in a statement can be it.
const EXECUTED: &str = "the rows of a prepared statement, which is called behind it; this is longer than any name in a text";

/// What LIKE can copy.
const PARTS: [&str; 10] = [
    "ALL",
    "COMMENTS",
    "COMPRESSION",
    "CONSTRAINTS",
    "DEFAULTS",
    "GENERATED",
    "IDENTITY",
    "INDEXES",
    "STATISTICS",
    "STORAGE",
];

/// A LIKE among the columns of CREATE TABLE.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Like {
    /// The table: its name, or schema and name.
    pub table: Vec<String>,
    /// INCLUDING (true) and EXCLUDING of parts, in order.
    options: Vec<(bool, String)>,
}

impl Like {
    /// The LIKE that a column stands for, if it does.
    pub fn of(column: &ColumnDef) -> Option<Self> {
        let DataType::Custom(_, modifiers) = &column.data_type else {
            return None;
        };
        if column.name.value != LIKE {
            return None;
        }
        let mut parts = modifiers.split(String::is_empty);
        let table = parts.next().unwrap_or_default().to_vec();
        let options = parts.next().unwrap_or_default().iter();
        let options = options.filter_map(|option| {
            let (word, part) = option.split_once(' ')?;
            Some((word == "INCLUDING", part.to_owned()))
        });
        let options = options.collect();
        Some(Self { table, options })
    }

    /// Whether a part is copied: what was said last counts.
    pub fn includes(&self, part: &str) -> bool {
        let mut said = self.options.iter().rev();
        said.find(|(_, named)| named == part || named == "ALL")
            .is_some_and(|(including, _)| *including)
    }
}

/// The EXECUTE that stands in the place of a query, if one does: the name of the statement, and its arguments.
///
/// # Errors
/// `42601` for what is more than that.
pub(crate) fn executed(query: &Query) -> Result<Option<(ObjectName, Vec<Expr>)>> {
    // In front of other queries, too, where it is refused.
    let mut body = &*query.body;
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    let SetExpr::Select(select) = body else {
        return Ok(None);
    };
    let (mark, call) = match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(Expr::Identifier(mark)), call @ ..] => (mark, call),
        _ => return Ok(None),
    };
    if mark.value != EXECUTED {
        return Ok(None);
    }
    let wrong = || SqlError::syntax("EXECUTE takes the name of a statement, and its arguments");
    let [SelectItem::UnnamedExpr(call)] = call else {
        return Err(wrong());
    };
    // No other clause.
    if query.to_string() != format!("SELECT {mark}, {call}") {
        return Err(wrong());
    }
    let called = match call {
        Expr::Identifier(name) => (ObjectName::from(vec![name.clone()]), Vec::new()),
        Expr::Function(function) => {
            let FunctionArguments::List(list) = &function.args else {
                return Err(wrong());
            };
            let arguments = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Ok(argument.clone()),
                _ => Err(wrong()),
            });
            (function.name.clone(), arguments.collect::<Result<_>>()?)
        }
        _ => return Err(wrong()),
    };
    Ok(Some(called))
}

/// Turns them into what the parser reads.
pub(super) fn adapt(tokens: &mut Vec<TokenWithSpan>) {
    let (mut start, mut in_schema) = (0, false);
    while start < tokens.len() {
        let statement = |tokens: &[TokenWithSpan]| {
            let end = tokens[start..]
                .iter()
                .position(|token| token.token == Token::SemiColon);
            end.map_or(tokens.len(), |end| start + end)
        };
        let end = statement(tokens);
        if let Some(table) = table_word(tokens, start, end) {
            without_data(tokens, table, end);
            let end = statement(tokens);
            execute(tokens, table, end);
            let end = statement(tokens);
            likes(tokens, table, end);
        }
        // What is in a schema is made by statements of its own.
        let end = statement(tokens);
        let mut words = spoken(tokens, start, end).into_iter();
        let mut begins = [Keyword::CREATE, Keyword::SCHEMA].into_iter();
        in_schema |= begins.all(|word| {
            words
                .next()
                .is_some_and(|at| keyword(&tokens[at].token) == word)
        });
        let next = words.find(|at| keyword(&tokens[*at].token) == Keyword::CREATE);
        let next = next.filter(|_| in_schema);
        in_schema = next.is_some();
        start = next.unwrap_or(end + 1);
    }
}

fn spoken(tokens: &[TokenWithSpan], start: usize, end: usize) -> Vec<usize> {
    (start..end)
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF))
        .collect()
}

/// Place of the word TABLE, or of TEMP in front of it, in a statement that makes one.
fn table_word(tokens: &[TokenWithSpan], start: usize, end: usize) -> Option<usize> {
    let mut words = spoken(tokens, start, end).into_iter();
    let first = words.next()?;
    if keyword(&tokens[first].token) != Keyword::CREATE {
        return None;
    }
    let mut words = words.skip_while(|at| {
        matches!(
            keyword(&tokens[*at].token),
            Keyword::GLOBAL | Keyword::LOCAL
        )
    });
    let at = words.next()?;
    match keyword(&tokens[at].token) {
        Keyword::TABLE => Some(at),
        Keyword::TEMP | Keyword::TEMPORARY => {
            let next = words.next()?;
            (keyword(&tokens[next].token) == Keyword::TABLE).then_some(at)
        }
        _ => None,
    }
}

/// … AS query WITH NO DATA is a TRANSIENT table, of which PostgreSQL has none; WITH DATA says nothing.
fn without_data(tokens: &mut Vec<TokenWithSpan>, table: usize, end: usize) {
    let words = spoken(tokens, table, end);
    let from_end = |back: usize| {
        let at = words.len().checked_sub(back).map(|at| words[at]);
        at.map_or(Keyword::NoKeyword, |at| keyword(&tokens[at].token))
    };
    let queried = words
        .iter()
        .any(|at| keyword(&tokens[*at].token) == Keyword::AS);
    let count = match [from_end(3), from_end(2), from_end(1)] {
        [Keyword::WITH, Keyword::NO, Keyword::DATA] => 3,
        [_, Keyword::WITH, Keyword::DATA] => 2,
        _ => return,
    };
    if !queried {
        return;
    }
    for at in &words[words.len() - count..] {
        tokens[*at].token = Token::Whitespace(Whitespace::Space);
    }
    if count == 3 {
        let span = tokens[table].span;
        let words = [
            Token::make_keyword("TRANSIENT"),
            Token::Whitespace(Whitespace::Space),
        ];
        tokens.splice(
            table..table,
            words.map(|token| TokenWithSpan { token, span }),
        );
    }
}

/// … AS EXECUTE name (…) is a query of [`EXECUTED`] and of the call.
fn execute(tokens: &mut Vec<TokenWithSpan>, table: usize, end: usize) {
    let words = spoken(tokens, table, end);
    // The first AS that is in no brackets is the table's: any other calls a column so.
    let mut depth = 0usize;
    let queried = words.iter().position(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && keyword(&tokens[*at].token) == Keyword::AS
    });
    let found = queried.and_then(|queried| words.get(queried + 1).copied());
    let Some(at) = found.filter(|at| keyword(&tokens[*at].token) == Keyword::EXECUTE) else {
        return;
    };
    let span = tokens[at].span;
    let words = [
        Token::make_keyword("SELECT"),
        Token::Whitespace(Whitespace::Space),
        Token::make_word(EXECUTED, Some('"')),
        Token::Comma,
    ];
    tokens.splice(at..=at, words.map(|token| TokenWithSpan { token, span }));
}

/// The place of the word in CREATE TRANSIENT TABLE, which the parser would take.
pub(super) fn transient(tokens: &[TokenWithSpan]) -> Option<usize> {
    let words = spoken(tokens, 0, tokens.len());
    let found = words.windows(2).find(|two| {
        let two = [two[0], two[1]].map(|at| keyword(&tokens[at].token));
        two == [Keyword::TRANSIENT, Keyword::TABLE]
    });
    found.map(|two| two[0])
}

/// LIKE where a column could be.
fn likes(tokens: &mut Vec<TokenWithSpan>, table: usize, end: usize) {
    let words = spoken(tokens, table, end);
    let mut depth = 0;
    let mut changes = Vec::new();
    for (number, at) in words.iter().enumerate() {
        let begins = match tokens[*at].token {
            Token::LParen => {
                depth += 1;
                depth == 1
            }
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                false
            }
            Token::Comma => depth == 1,
            _ if depth == 0 && keyword(&tokens[*at].token) == Keyword::AS => break,
            _ => false,
        };
        if begins && let Some(like) = like(tokens, &words[number + 1..]) {
            changes.push(like);
        }
    }
    for (first, last, made) in changes.into_iter().rev() {
        let span = tokens[first].span;
        let made = made.into_iter().map(|token| TokenWithSpan { token, span });
        tokens.splice(first..=last, made);
    }
}

/// The places from which to which a LIKE goes, and what stands for it.
fn like(tokens: &[TokenWithSpan], words: &[usize]) -> Option<(usize, usize, Vec<Token>)> {
    let token = |at: usize| words.get(at).map(|at| &tokens[*at].token);
    if keyword(token(0)?) != Keyword::LIKE {
        return None;
    }
    let mut modifiers = Vec::new();
    let mut at = 1;
    loop {
        let Some(Token::Word(word)) = token(at) else {
            return None;
        };
        modifiers.push(match word.quote_style {
            None => word.value.to_ascii_lowercase(),
            Some(_) => word.value.clone(),
        });
        at += 1;
        if token(at) != Some(&Token::Period) {
            break;
        }
        at += 1;
    }
    modifiers.push(String::new());
    while let (Some(Token::Word(how)), Some(Token::Word(part))) = (token(at), token(at + 1)) {
        let (how, part) = (how.value.to_uppercase(), part.value.to_uppercase());
        let known = PARTS.contains(&part.as_str());
        if !known || !matches!(how.as_str(), "INCLUDING" | "EXCLUDING") {
            return None;
        }
        modifiers.push(format!("{how} {part}"));
        at += 2;
    }
    if !matches!(token(at), Some(Token::Comma | Token::RParen)) {
        return None;
    }
    let mut made = vec![
        Token::make_word(LIKE, Some('"')),
        Token::Whitespace(Whitespace::Space),
        Token::make_word("like_of", None),
        Token::LParen,
    ];
    for modifier in modifiers {
        made.push(Token::SingleQuotedString(modifier));
        made.push(Token::Comma);
    }
    made.pop();
    made.push(Token::RParen);
    Some((words[0], words[at - 1], made))
}
