//! From text to syntax trees, within bounds: no text makes the parser or those who walk its trees overflow a stack.
//!
//! Invariants:
//! - P1 A tree's depth is bounded: nesting by the parser's own limit ([`NESTING_MAX`]), chains of operators, which the
//!   parser turns into left-deep trees without nesting, by what its tokens can make of it ([`height`]).
//! - P2 Work is bounded by the length of the text ([`dialect`], and [`height`] where tables are expected).
//! - P3 Trees, and the programs that are made of them, are made, walked, run and dropped on a stack that has room for P1 ([`with_stack`]).

mod absent;
mod array_types;
mod code;
mod collations;
mod commands;
mod conditions;
mod conflicts;
mod constraints;
mod copies;
mod dialect;
mod domains;
mod exclusions;
mod extensions;
mod fetch;
mod fragment;
mod groups;
mod height;
mod infix;
mod joins;
mod literal;
mod locks;
mod moves;
mod normalize;
mod operators;
mod options;
mod parameters;
mod passwords;
mod rows;
mod said;
mod schemas;
mod sequences;
mod spellings;
mod subscripts;
mod table_forms;
mod tables;
mod tablespaces;
mod tokens;
mod typed;
mod types;
mod views;
pub(crate) mod walk;

pub(crate) use absent::{Absent, Name as AbsentName, Shape as AbsentShape};
pub(crate) use code::{
    CodeBlock, Condition, Declared, DeclaredType, Executed, Raise, Step, Targets, Told, Turns,
    code, names_in, selected_into,
};
pub(crate) use collations::collation_of;
pub(crate) use commands::{Command, Reindexed};
pub(crate) use conditions::{state_of, states_named};
pub(crate) use conflicts::ConflictTarget;
pub(crate) use constraints::altered_constraint;
pub(crate) use copies::{CopyArgument, CopyOption, copy_options, filtered};
pub(crate) use dialect::VARIADIC;
pub(crate) use domains::{DomainClause, Refused, drops_domains};
pub(crate) use exclusions::{of_bound, with_exclusions};
pub(crate) use fetch::COUNT_OF_LIMIT;
pub(crate) use fragment::{IndexItem, expression, expression_at, index_item};
pub(crate) use groups::TOLD_APART;
pub(crate) use joins::{ROWS, as_written, together_as};
pub(crate) use locks::{LOCKED_LIST, with_lock_words};
pub(crate) use moves::MOVE;
pub(crate) use normalize::Normalized;
pub(crate) use options::{KEY_LOCK, MERGE_NOTHING, NAME_ALONE, OF_TABLE};
pub(crate) use parameters::{KeyTail, RESET};
pub use passwords::without_passwords;
pub(crate) use said::{Definition, On, RightsChange, definition};
pub(crate) use schemas::element;
pub(crate) use sequences::{Altered, Clause, Overriding};
pub(crate) use table_forms::Form;
pub(crate) use tables::{Like, executed};
pub(crate) use tablespaces::check as check_tablespace;

use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{SetExpr, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::collections::VecDeque;

/// How deep expressions, subqueries and parentheses may be nested.
const NESTING_MAX: usize = 200;
/// Stack of a thread that runs statements: memory is what is touched of it. A thread that has less is lent one for each statement.
pub const STACK_BYTES: usize = 32 << 20;
/// What of it a statement may find used.
const STACK_BYTES_USED: usize = 2 << 20;

/// Runs `work` with enough stack for any tree that the parser makes (P3).
pub(crate) fn with_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK_BYTES - STACK_BYTES_USED, STACK_BYTES, work)
}

/// The statements of a text.
///
/// # Errors
/// `42601` with the position, `54001` for nesting beyond the limits.
pub(crate) fn statements(text: &str) -> Result<Vec<Statement>> {
    let mut tokens = tokens::of(text)?;
    operators::split(&mut tokens);
    height::check(&tokens)?;
    if let Some(second) = literal::join_lines(&mut tokens) {
        return Err(at_token(text, &tokens[second]));
    }
    let words = options::Words::of(&tokens);
    // Before any other token is moved: they are found in the text.
    if words.any(&[Keyword::CONFLICT]) {
        conflicts::adapt(&mut tokens, text);
    }
    if words.any(&[Keyword::ONLY]) {
        commands::only(&mut tokens);
    }
    if words.any(&[Keyword::UNLOGGED]) {
        commands::unlogged(&mut tokens);
    }
    // In front of the query that is inserted, which may be TABLE.
    if words.any(&[Keyword::VALUE]) {
        sequences::overriding(&mut tokens);
    }
    if words.any(&[Keyword::TABLE]) {
        if let Some(word) = tables::transient(&tokens) {
            return Err(at_token(text, &tokens[word]));
        }
        literal::whole_tables(&mut tokens);
    }
    if words.any(&[Keyword::TABLESPACE]) {
        tablespaces::adapt(&mut tokens)?;
    }
    if words.any(&[Keyword::CREATE]) && words.any(&[Keyword::USING, Keyword::WITHOUT]) {
        table_forms::adapt(&mut tokens)?;
    }
    if words.any(&[Keyword::RECURSIVE]) && words.any(&[Keyword::VIEW]) {
        views::recursive(&mut tokens)?;
    }
    if words.any(&[Keyword::OPTION]) && words.any(&[Keyword::VIEW]) {
        views::adapt(&mut tokens);
    }
    if words.any(&[Keyword::CURRENT]) {
        commands::no_current_row(&tokens)?;
    }
    if words.any(&[Keyword::TABLE, Keyword::INDEX, Keyword::VIEW]) && words.any(parameters::WORDS) {
        parameters::adapt(&mut tokens);
    }
    if words.any(&[Keyword::COLLATE]) && words.any(&[Keyword::ALTER]) {
        collations::adapt(&mut tokens);
    }
    if words.any(&[Keyword::ARRAY]) {
        array_types::adapt(&mut tokens);
    }
    if words.any(&[Keyword::CREATE]) {
        tables::adapt(&mut tokens);
    }
    if words.any(&[Keyword::FETCH]) {
        fetch::adapt(&mut tokens);
    }
    if words.any(&[Keyword::FOR]) {
        locks::limits_first(&mut tokens);
        locks::lists(&mut tokens);
        locks::without_tables(&mut tokens);
    }
    if words.any(&[Keyword::PRECEDING, Keyword::FOLLOWING]) {
        literal::frame_offsets(&mut tokens);
    }
    if words.any(&[Keyword::SELECT]) {
        spellings::empty_lists(&mut tokens);
    }
    if words.any(&[Keyword::GROUP]) && words.any(&[Keyword::ALL, Keyword::DISTINCT]) {
        groups::adapt(&mut tokens);
    }
    if words.any(spellings::WORDS) || tokens.iter().any(|own| own.token == Token::Mul) {
        spellings::adapt(&mut tokens);
    }
    if words.any(&[Keyword::SET]) {
        subscripts::adapt(&mut tokens);
    }
    let stars = rows::has_stars(&tokens);
    if stars {
        rows::adapt(&mut tokens);
    }
    options::adapt(&mut tokens, &words);
    let mut copied = if words.any(&[Keyword::COPY]) {
        copies::take_rests(&mut tokens, text)
    } else {
        VecDeque::new()
    };
    if words.any(joins::WORDS) {
        joins::adapt(&mut tokens)?;
    }
    let dialect = dialect::Bounded::new(&tokens);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTING_MAX)
        .with_tokens_with_locations(tokens);
    let mut found = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        if parser.peek_token_ref().token == Token::EOF {
            return Ok(found);
        }
        let start = parser.index();
        let parsed = parser.parse_statement();
        let mut statement = parsed.map_err(|error| {
            if dialect.is_spent() {
                return too_deep();
            }
            syntax_error(text, &parser, error)
        })?;
        if let Statement::Insert(insert) = &statement
            && !insert.into
        {
            // The parser can do without INTO.
            let spoken = (start..parser.index()).map(|at| parser.token_at(at));
            let mut spoken = spoken.filter(|own| !matches!(own.token, Token::Whitespace(_)));
            if let Some(table) = spoken.nth(1) {
                return Err(at_token(text, table));
            }
        }
        if matches!(statement, Statement::Copy { .. })
            && let Some(rest) = copied.pop_front()
        {
            rest?.put_into(&mut statement);
        }
        if let Statement::CreateSchema { if_not_exists, .. } = &statement {
            let next = parser.peek_token_ref();
            if *if_not_exists && schemas::follows(&parser) {
                let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
                let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message);
                let start = next.span.start;
                return Err(error.at(position(text, start.line, start.column)));
            }
            statement = schemas::with_elements(&mut parser, statement, start)
                .map_err(|error| syntax_error(text, &parser, error))?;
        }
        if stars {
            rows::as_arguments(&mut statement);
        }
        found.push(into_table(statement));
        let next = parser.peek_token_ref();
        if !matches!(next.token, Token::SemiColon | Token::EOF) {
            return Err(at_token(text, next));
        }
    }
}

/// The names of a text that are longer than a name can be, each with what is kept of it.
pub(crate) fn long_names(text: &str) -> Vec<(String, String)> {
    // Few texts have any.
    let mut run = 0usize;
    let long = text.bytes().any(|byte| {
        let blank = byte.is_ascii_whitespace() || matches!(byte, b',' | b'(' | b')' | b';');
        run = if blank { 0 } else { run + 1 };
        run > crate::bind::NAME_BYTES
    });
    if !long {
        return Vec::new();
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize();
    let words = tokens.unwrap_or_default().into_iter();
    let names = words.filter_map(|token| match token {
        Token::Word(word) => Some(match word.quote_style {
            Some(_) => word.value,
            None => word.value.to_ascii_lowercase(),
        }),
        _ => None,
    });
    let cut = names.filter_map(|name| {
        let kept = crate::bind::cut(&name);
        (kept.len() < name.len()).then(|| (name.clone(), kept.to_owned()))
    });
    cut.collect()
}

/// SELECT … INTO is CREATE TABLE … AS.
fn into_table(statement: Statement) -> Statement {
    let Statement::Query(mut query) = statement else {
        return statement;
    };
    let into = match query.body.as_mut() {
        SetExpr::Select(select) => select.into.take(),
        _ => None,
    };
    match into {
        None => Statement::Query(query),
        Some(into) => CreateTableBuilder::new(into.name)
            .temporary(into.temporary)
            .query(Some(query))
            .build()
            .into(),
    }
}

/// `54001`.
pub(crate) fn too_deep() -> SqlError {
    SqlError::new(
        sqlstate::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .with_hint("The statement is nested too deeply; write it flatter.")
}

/// Whether a parser stopped behind a query of WITH, at a clause that PostgreSQL has and the parser does not.
fn clause_behind_with(parser: &Parser<'_>) -> Option<&'static str> {
    let near = parser.index().saturating_sub(3)..parser.index() + 3;
    let tokens = near.map(|at| &parser.token_at(at).token);
    let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
    let tokens: Vec<&Token> = tokens.collect();
    tokens.windows(2).find_map(|pair| match pair {
        [Token::RParen, Token::Word(word)] if word.quote_style.is_none() => {
            match &*word.value.to_ascii_lowercase() {
                "search" => Some("SEARCH"),
                "cycle" => Some("CYCLE"),
                _ => None,
            }
        }
        _ => None,
    })
}

#[cold]
fn syntax_error(text: &str, parser: &Parser<'_>, error: ParserError) -> SqlError {
    if let Some(clause) = clause_behind_with(parser) {
        return SqlError::unsupported(format!("{clause} of WITH RECURSIVE"));
    }
    match error {
        ParserError::RecursionLimitExceeded => too_deep(),
        ParserError::TokenizerError(message) => SqlError::syntax(tokenizer_message(&message)),
        ParserError::ParserError(message) => {
            // "…, found: TOKEN at Line: 1, Column: 8": the place is in the text of the error only.
            let place = message
                .rsplit_once(" at Line: ")
                .and_then(|(before, rest)| {
                    let (line, column) = rest.split_once(", Column: ")?;
                    let found = before.rsplit_once("found: ").map(|(_, found)| found);
                    Some((line.parse().ok()?, column.parse().ok()?, found?.to_owned()))
                });
            match place {
                Some((line, column, found)) => {
                    let position = position(text, line, column);
                    SqlError::syntax(near(&found)).at(position)
                }
                None if message.contains("found: EOF") => {
                    SqlError::syntax(near("EOF")).at(u32::try_from(text.chars().count() + 1).ok())
                }
                None => {
                    let next = parser.peek_token_ref();
                    let mut error = at_token(text, next);
                    if next.token == Token::EOF {
                        error = SqlError::syntax(message);
                    }
                    error
                }
            }
        }
    }
}

#[cold]
fn at_token(text: &str, token: &TokenWithSpan) -> SqlError {
    let start = token.span.start;
    let error = SqlError::syntax(near(&token.token.to_string()));
    error.at(position(text, start.line, start.column))
}

fn near(found: &str) -> String {
    if found == "EOF" {
        "syntax error at end of input".to_owned()
    } else {
        format!("syntax error at or near \"{found}\"")
    }
}

fn tokenizer_message(message: &str) -> String {
    if message.starts_with("Unterminated string literal") {
        "unterminated quoted string".to_owned()
    } else if message.contains("double quote") || message.contains("close delimiter") {
        "unterminated quoted identifier".to_owned()
    } else {
        format!("syntax error: {message}")
    }
}

/// Characters before a line and column (both from 1), plus one; `None` where there is no such place.
pub(crate) fn position(text: &str, line: u64, column: u64) -> Option<u32> {
    if line == 0 {
        return None;
    }
    let skipped = usize::try_from(line - 1).ok()?;
    let before: usize = text
        .split_inclusive('\n')
        .take(skipped)
        .map(|line| line.chars().count())
        .sum();
    u32::try_from(u64::try_from(before).ok()? + column).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn fails(text: &str) -> SqlError {
        with_stack(|| statements(text).unwrap_err())
    }

    #[test]
    fn syntax_errors_name_the_token_and_its_place() {
        let error = fails("select 1;\n selec 2");
        assert_eq!(error.message(), "syntax error at or near \"selec\"");
        assert_eq!(error.fields().position, Some(12));
        let error = fails("select * from t where");
        assert_eq!(error.message(), "syntax error at end of input");
        assert_eq!(error.sqlstate(), sqlstate::SYNTAX_ERROR);
    }

    #[test]
    fn nesting_is_refused_before_the_stack_ends() {
        for text in [
            format!("select {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
            format!("select {}1", "1+".repeat(20_000)),
            format!("select {} 1", "- ".repeat(20_000)),
            format!("select {} true", "not ".repeat(20_000)),
            format!("select 1{}", "::int".repeat(20_000)),
            format!("select 1 {}", "union select 1 ".repeat(20_000)),
            format!("select * from {}", "(select * from ".repeat(10_000)),
            format!("select * from {}a b c", "(".repeat(10_000)),
            format!("select {}1 as", "cast(".repeat(100)),
        ] {
            let error = fails(&text);
            assert_eq!(
                error.sqlstate(),
                sqlstate::STATEMENT_TOO_COMPLEX,
                "{:.60}: {error}",
                text
            );
        }
        // Read as a name in the end, where it is no CASE.
        fails(&format!("select {}", "case when true then ".repeat(10_000)));
        let long = format!("select {}1", "1+".repeat(height::CHAIN_MAX));
        with_stack(|| drop(statements(&long).unwrap()));
    }

    #[test]
    fn several_statements_come_one_by_one_and_empty_ones_are_none() {
        assert_eq!(statements(";; ;").unwrap().len(), 0);
        assert_eq!(statements("select 1; begin;").unwrap().len(), 2);
        assert_eq!(statements("-- nothing").unwrap().len(), 0);
    }
}
