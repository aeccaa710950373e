//! CREATE SCHEMA with the statements that make what is in it, which the parser does not know.

use super::commands::Command;
use super::dialect::is_word;
use super::{fragment, tokens};
use crate::error::Result as Found;
use sqlparser::ast::Statement;
use sqlparser::parser::{Parser, ParserError};

/// The statement that begins with a schema that was just read, whose first token is number `start`.
pub(super) fn with_elements(
    parser: &mut Parser<'_>,
    schema: Statement,
    start: usize,
) -> Result<Statement, ParserError> {
    let said = |parser: &Parser<'_>, start: usize| -> String {
        let all = (start..parser.index()).map(|at| tokens::written(&parser.token_at(at).token));
        all.collect()
    };
    if !follows(parser) {
        return Ok(schema);
    }
    let mut all = vec![said(parser, start)];
    while follows(parser) {
        let start = parser.index();
        parser.parse_statement()?;
        all.push(said(parser, start));
    }
    Ok(Command::Schema(all).carried())
}

/// Whether such a statement comes next.
pub(super) fn follows(parser: &Parser<'_>) -> bool {
    let next = &parser.peek_token_ref().token;
    is_word(next, "create") || is_word(next, "grant")
}

/// One of these statements, read again.
///
/// # Errors
/// `42601` for what is none.
pub(crate) fn element(said: &str) -> Found<Statement> {
    fragment::said(said, |parser| parser.parse_statement())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::parse::statements;

    #[test]
    fn what_is_in_a_schema_is_read_again_as_it_was_written() {
        let text = "create schema \"s\"\"t\" create table t (a text default 'it''s', like u including all) create view v as select e'a\\'b'; select 1";
        let parsed = statements(text).unwrap();
        assert_eq!(parsed.len(), 2);
        let Some(Command::Schema(all)) = Command::of(&parsed[0]) else {
            panic!("{parsed:?}");
        };
        let read: Vec<Statement> = all.iter().map(|said| element(said).unwrap()).collect();
        assert!(matches!(
            read[..],
            [
                Statement::CreateSchema { .. },
                Statement::CreateTable(_),
                Statement::CreateView(_)
            ]
        ));
        let alone = statements("create table t (a text default 'it''s', like u including all)");
        assert_eq!(read[1].to_string(), alone.unwrap()[0].to_string());
        assert!(matches!(
            statements("create schema s").unwrap()[..],
            [Statement::CreateSchema { .. }]
        ));
        statements("create schema s create foo").unwrap_err();
    }
}
