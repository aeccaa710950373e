//! INSERT … VALUES with functions that return sets: one row of them is the list of a SELECT, as in PostgreSQL. Several rows cannot have any.

use super::SetFunction;
use crate::parse::walk;
use sqlparser::ast;

/// The SELECT that the source of an INSERT is, if it is one row with such a function.
pub(super) fn as_select(source: Option<&ast::Query>) -> Option<ast::Query> {
    let query = source?;
    let ast::SetExpr::Values(values) = query.body.as_ref() else {
        return None;
    };
    let [row] = values.rows.as_slice() else {
        return None;
    };
    let mut returns_sets = false;
    for expr in &row.content {
        walk::expressions(expr, &mut |node| {
            if let ast::Expr::Function(function) = node {
                let name = crate::bind::called_name(&function.name);
                returns_sets |= name.is_ok_and(|name| SetFunction::find(&name).is_some());
            }
        });
    }
    // DEFAULT is no value of a list.
    let is_default = |expr: &ast::Expr| match expr {
        ast::Expr::Identifier(name) => {
            name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default")
        }
        _ => false,
    };
    if !returns_sets || row.content.iter().any(is_default) {
        return None;
    }
    let Some(ast::Statement::Query(mut made)) = crate::parse::statements("SELECT 1").ok()?.pop()
    else {
        return None;
    };
    if let ast::SetExpr::Select(select) = made.body.as_mut() {
        let items = row.content.iter().cloned();
        select.projection = items.map(ast::SelectItem::UnnamedExpr).collect();
    }
    Some(ast::Query {
        body: made.body,
        ..query.clone()
    })
}
