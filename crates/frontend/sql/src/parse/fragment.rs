//! Parts of statements that are read by themselves: what the catalog keeps as SQL, and what stands in the place of a name.

use super::{NESTING_MAX, dialect, rows, tokens};
use crate::error::{Result, SqlError};
use sqlparser::ast::{Expr, ObjectName, OrderByOptions};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, TokenWithSpan};

/// What stands between the commas of an index.
#[derive(Debug)]
pub(crate) struct IndexItem {
    pub expr: Expr,
    /// The name of an operator class.
    pub class: Option<ObjectName>,
    pub options: OrderByOptions,
}

/// An expression that the catalog keeps as SQL.
///
/// # Errors
/// `42601` if it is none.
pub(crate) fn expression(sql: &str) -> Result<Expr> {
    one(read_tokens(sql)?)
}

/// One that begins at a place of the statement's text: names and literals are where they are there.
///
/// # Errors
/// `42601` if it is none.
pub(crate) fn expression_at(sql: &str, start: Location) -> Result<Expr> {
    one(moved(read_tokens(sql)?, start))
}

fn one(tokens: Vec<TokenWithSpan>) -> Result<Expr> {
    let stars = rows::has_stars(&tokens);
    let mut expr = read(tokens, |parser| parser.parse_expr())?;
    if stars {
        rows::as_arguments(&mut expr);
    }
    Ok(expr)
}

/// What stands between the commas of an index, at a place of the statement's text.
///
/// # Errors
/// `42601` if it is none.
pub(crate) fn index_item(sql: &str, start: Location) -> Result<IndexItem> {
    let column = read(moved(read_tokens(sql)?, start), |parser| {
        parser.parse_create_index_expr()
    })?;
    Ok(IndexItem {
        expr: column.column.expr,
        class: column.operator_class,
        options: column.column.options,
    })
}

/// What is read again from its words.
///
/// # Errors
/// `42601` if it is none.
pub(super) fn said<T>(
    sql: &str,
    parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    read(read_tokens(sql)?, parse)
}

fn read_tokens(sql: &str) -> Result<Vec<TokenWithSpan>> {
    tokens::of(sql)
}

/// The tokens of a text that begins at a place of another.
fn moved(tokens: Vec<TokenWithSpan>, start: Location) -> Vec<TokenWithSpan> {
    let moved = tokens.into_iter().map(|own| tokens::moved(own, start));
    moved.collect()
}

fn read<T>(
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    // As in statements: the same operators bind first.
    let dialect = dialect::Bounded::new(&tokens);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTING_MAX)
        .with_tokens_with_locations(tokens);
    parse(&mut parser).map_err(|error| SqlError::syntax(error.to_string()))
}
