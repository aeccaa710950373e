//! What of an expression can be seen without running it: its type, the subqueries and columns in it.

use super::translate::Level;
use crate::expr::Expr;
use vellum_row::{Type, arithmetic};

/// The type of an expression's values, if it is known without asking the binder.
pub(super) fn type_of(expr: &Expr, level: &Level) -> Option<Type> {
    Some(match expr {
        Expr::Const(value) => value.ty()?,
        Expr::Column { table, position } => {
            let table = level.tables.get(usize::from(*table))?;
            table.get(usize::from(*position))?.ty
        }
        Expr::Slot(number) => level.slot(*number)?.ty,
        Expr::Cast { ty, .. } => *ty,
        Expr::Not(_)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::IsNull { .. }
        | Expr::Is { .. }
        | Expr::Compare { .. }
        | Expr::Distinct { .. }
        | Expr::In { .. }
        | Expr::InSubquery { .. }
        | Expr::Like { .. } => Type::Bool,
        Expr::Concat(..) => Type::Text,
        Expr::Negate(operand) => type_of(operand, level)?,
        Expr::Arithmetic {
            operator,
            left,
            right,
        } => {
            let (left, right) = (type_of(left, level)?, type_of(right, level)?);
            arithmetic::resolve(*operator, left, right)?.result
        }
        Expr::Coalesce(list) => list.iter().find_map(|expr| type_of(expr, level))?,
        Expr::Case {
            branches,
            otherwise,
        } => {
            let results = branches.iter().map(|(_, result)| result);
            let mut results = results.chain([&**otherwise]);
            results.find_map(|expr| type_of(expr, level))?
        }
        Expr::Outer { .. } | Expr::Param(_) | Expr::Subquery(_) | Expr::Call { .. } => return None,
    })
}

/// Whether an expression has subqueries in it.
pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| {
        found |= matches!(expr, Expr::Subquery(_) | Expr::InSubquery { .. });
    });
    found
}

/// Whether an expression reads columns of one table only, and nothing that stands around the query.
pub(super) fn reads_only(expr: &Expr, number: u16) -> bool {
    let mut only = true;
    expr.walk(&mut |expr| match expr {
        Expr::Column { table, .. } => only &= *table == number,
        Expr::Outer { .. } | Expr::Slot(_) | Expr::Subquery(_) | Expr::InSubquery { .. } => {
            only = false;
        }
        _ => {}
    });
    only
}

/// The same expression over one table that has number 0.
pub(super) fn alone(expr: &Expr) -> Expr {
    fn renumber(expr: &mut Expr) {
        if let Expr::Column { table, .. } = expr {
            *table = 0;
        }
        expr.children_mut(&mut renumber);
    }
    let mut expr = expr.clone();
    renumber(&mut expr);
    expr
}
