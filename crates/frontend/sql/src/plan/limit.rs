//! LIMIT, OFFSET and FETCH.

use super::{General, Select};
use crate::bind::Binder;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::COUNT_OF_LIMIT;
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{CastContext, Type, Typmod, Value};

/// How many rows of a query there are.
pub(super) struct Limits {
    limit: Option<Expr>,
    offset: Option<Expr>,
    ties: bool,
}

impl Select {
    pub(super) fn limits(&mut self, limits: Limits) {
        self.limit = limits.limit;
        self.offset = limits.offset;
        self.ties = limits.ties;
    }
}

impl Binder<'_> {
    /// What was wrong with a clause that names what is unknown in front of FROM: that it may not name it, if it is known behind.
    pub(super) fn limits_error(&mut self, query: &ast::Query, error: SqlError) -> SqlError {
        let unknown = [sqlstate::UNDEFINED_COLUMN, sqlstate::UNDEFINED_TABLE];
        if !unknown.contains(&error.sqlstate()) || self.limits(query, true).is_err() {
            return error;
        }
        let state = sqlstate::INVALID_COLUMN_REFERENCE;
        let limit = match &query.limit_clause {
            Some(ast::LimitClause::LimitOffset {
                limit: Some(limit), ..
            }) => Some(limit),
            _ => None,
        };
        let mut alone = Binder::new(self.catalog, self.search_path, self.settings, self.text);
        alone.params.clone_from(&self.params);
        let of_limit = limit.is_some_and(|limit| alone.expr(limit).is_err());
        let clause = if of_limit { "LIMIT" } else { "OFFSET" };
        let message = format!("argument of {clause} must not contain variables");
        SqlError::new(state, message).at(error.fields().position)
    }

    /// What the clauses of a query say.
    pub(super) fn limits(&mut self, query: &ast::Query, ordered: bool) -> Result<Limits> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(SqlError::unsupported("this form of LIMIT")),
        };
        let mut count = |expr: Option<&ast::Expr>| -> Result<Option<Expr>> {
            let Some(expr) = expr else {
                return Ok(None);
            };
            let bound = self.expr(expr)?;
            let expr = self.coerce(bound, Type::Int8, Typmod::NONE, CastContext::Assignment)?;
            Ok(Some(expr))
        };
        // In this order, whatever stands first.
        let offset = count(offset)?;
        let mut limit = count(limit)?;
        let mut ties = false;
        if let Some(fetch) = &query.fetch {
            let said = fetch.quantity.as_ref().is_some_and(is_of_limit);
            if limit.is_some() && !said {
                return Err(SqlError::syntax("multiple LIMIT clauses not allowed"));
            }
            if fetch.percent {
                return Err(SqlError::syntax("PERCENT of FETCH"));
            }
            limit = match &fetch.quantity {
                _ if said => limit,
                Some(quantity) => count(Some(quantity))?,
                None => Some(Expr::Const(Value::Int8(1))),
            };
            ties = fetch.with_ties;
            let null = |quantity: &ast::Expr| matches!(quantity, ast::Expr::Value(value) if value.value == ast::Value::Null);
            if ties && fetch.quantity.as_ref().is_some_and(null) {
                let text = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
                let state = sqlstate::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE;
                return Err(SqlError::new(state, text));
            }
        }
        if ties {
            if !ordered {
                let text = "WITH TIES cannot be specified without ORDER BY clause";
                return Err(SqlError::syntax(text));
            }
            self.needs(General::Ties);
        }
        Ok(Limits {
            limit,
            offset,
            ties,
        })
    }
}

/// Whether the count of a FETCH is that of the LIMIT.
fn is_of_limit(quantity: &ast::Expr) -> bool {
    let ast::Expr::Value(value) = quantity else {
        return false;
    };
    matches!(&value.value, ast::Value::SingleQuotedString(text) if text == COUNT_OF_LIMIT)
}
