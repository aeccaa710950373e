//! What a call says that only aggregates may say: DISTINCT, ORDER BY, FILTER.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;

/// That a call of a function that is no aggregate says nothing of the kind. It is looked at when the function is found.
///
/// # Errors
/// `42809`.
pub(super) fn check_plain(function: &ast::Function) -> Result<()> {
    let mut said = None;
    if let ast::FunctionArguments::List(list) = &function.args {
        let orders = |clause: &ast::FunctionArgumentClause| {
            matches!(clause, ast::FunctionArgumentClause::OrderBy(_))
        };
        if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            said = Some("DISTINCT");
        } else if list.clauses.iter().any(orders) {
            said = Some("ORDER BY");
        }
    }
    if said.is_none() && !function.within_group.is_empty() {
        said = Some("WITHIN GROUP");
    }
    if said.is_none() && function.filter.is_some() {
        said = Some("FILTER");
    }
    let Some(said) = said else {
        return Ok(());
    };
    let parts = function.name.0.iter().filter_map(|part| part.as_ident());
    let name: Vec<String> = parts.map(super::folded).collect();
    let message = format!(
        "{said} specified, but {} is not an aggregate function",
        name.join(".")
    );
    Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message))
}
