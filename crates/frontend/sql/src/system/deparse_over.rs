//! Expressions over the columns of a table, and the columns of its indexes, as SQL again.

use super::deparse::{Called, Named, Writer};
use crate::bind::{Scope, ScopeTable};
use crate::catalog::Relation;
use crate::expr::{Builtin, Expr};
use crate::names::quoted;
use crate::rows::Part;
use std::sync::Arc;
use vellum_row::{Settings, Type};

/// An expression over the columns of a table, of type `ty`.
pub(crate) fn expression_over(
    relation: &Arc<Relation>,
    expr: &Expr,
    ty: Type,
    (settings, function, named): (&Settings, Called<'_>, Named<'_>),
    pretty: bool,
) -> String {
    let shown = (settings, function, named);
    written_over(relation, expr, ty, shown, (pretty, false))
}

/// The same, so that it is bound to the same again.
pub(crate) fn exact_expression_over(
    relation: &Arc<Relation>,
    expr: &Expr,
    ty: Type,
    settings: &Settings,
) -> String {
    let kept = |own| crate::bind::kept_function(own).to_string();
    let named = |_, name: &str| name.to_owned();
    written_over(relation, expr, ty, (settings, &kept, &named), (false, true))
}

fn written_over(
    relation: &Arc<Relation>,
    expr: &Expr,
    ty: Type,
    (settings, function, named): (&Settings, Called<'_>, Named<'_>),
    (pretty, exact): (bool, bool),
) -> String {
    let mut scope = Scope::default();
    scope.tables.extend(ScopeTable::of(relation, None));
    let writer = Writer {
        scope: &scope,
        settings,
        named,
        function,
        pretty,
        exact,
    };
    writer.whole(expr, ty)
}

/// A column of an index, as its definition shows it: what is not called like a function stands in parentheses.
pub(crate) fn part_text(
    relation: &Arc<Relation>,
    part: &Part,
    shown: (&Settings, Called<'_>, Named<'_>),
    pretty: bool,
) -> String {
    match part {
        Part::Column(at) => {
            let table = relation.table();
            table.map_or_else(String::new, |table| quoted(&table.schema.column(*at).name))
        }
        Part::Computed { expr, ty } => {
            let text = expression_over(relation, expr, *ty, shown, pretty);
            let is_call = match expr {
                Expr::Coalesce(_) => true,
                Expr::Call {
                    function: Builtin::Scalar(own),
                    ..
                } if own.extension().is_some() => true,
                Expr::Call { function, .. } => {
                    // An operator's name is its sign, and some functions are written as something else.
                    let name = function.name();
                    let named =
                        name.starts_with(|first: char| first.is_alphabetic() || first == '"');
                    named && text.starts_with(name)
                }
                _ => false,
            };
            if is_call { text } else { format!("({text})") }
        }
    }
}
