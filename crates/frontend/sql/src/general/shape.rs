//! What of an expression can be seen without running it: its type, the subqueries and columns in it.

use super::translate::Level;
use crate::expr::{Expr, Form, RowsFrom};
use crate::plan::{SetCall, Subquery, tables_read};
use vellum_query::{Arithmetic, Extent, Kind, Term};
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{Column, Type, Typmod, ValueRef};

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
        | Expr::Among { .. }
        | Expr::InSubquery { .. }
        | Expr::Rows { .. }
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
        Expr::Once { body, .. } => return type_of(body, level),
        Expr::Domain { operand, .. } => return type_of(operand, level),
        Expr::Shown { shown, .. } if shown.as_json => Type::Json,
        Expr::Shown { shown, .. } if matches!(shown.form, Form::Row(_)) => Type::Text,
        Expr::Outer { .. }
        | Expr::Param(_)
        | Expr::Shown { .. }
        | Expr::Subquery(_)
        | Expr::Held
        | Expr::Call { .. } => return None,
    })
}

/// Whether an expression's values are integers.
pub(super) fn is_integer(expr: &Expr, level: &Level) -> bool {
    type_of(expr, level).is_some_and(Type::is_integer)
}

/// What is known of the values of a table's column.
pub(super) fn kind_of(column: &Column) -> Kind {
    let Column { ty, typmod, .. } = column;
    let known = match *ty {
        Type::Numeric => typmod.precision_scale().and_then(|(precision, scale)| {
            let small = precision <= 18 && scale <= precision;
            let scale = u32::try_from(scale).ok()?;
            small.then(|| Kind::decimal(precision as u32, scale))?
        }),
        Type::Char => typmod.length().map(|length| Kind {
            ty: *ty,
            extent: Extent::Padded(length),
        }),
        _ => None,
    };
    known.unwrap_or_else(|| (*ty).into())
}

/// What is known of an expression whose values are decimals; then it cannot fail.
pub(super) fn decimal(expr: &Expr, level: &Level) -> Option<Kind> {
    match expr {
        Expr::Const(value) => match value.as_ref() {
            ValueRef::Numeric(_) => {
                let term = Term::literal(Type::Numeric, value.as_ref()).ok()?;
                is_decimal(term.kind())
            }
            _ => None,
        },
        Expr::Column { table, position } => {
            let table = level.tables.get(usize::from(*table))?;
            is_decimal(table.get(usize::from(*position))?.kind())
        }
        Expr::Slot(number) => is_decimal(level.slot(*number)?.kind()),
        Expr::Cast {
            operand,
            ty: Type::Numeric,
            typmod: Typmod::NONE,
            ..
        } => match &**operand {
            // A number stays what it is.
            operand if decimal(operand, level).is_some() => decimal(operand, level),
            Expr::Const(value) => Kind::decimal(digits_of(value.as_ref().as_i64()?), 0),
            Expr::Column { .. } | Expr::Slot(_) if is_integer(operand, level) => {
                let digits = match type_of(operand, level)? {
                    Type::Int2 => 5,
                    Type::Int4 => 10,
                    _ => 19,
                };
                Kind::decimal(digits, 0)
            }
            _ => None,
        },
        Expr::Arithmetic {
            operator,
            left,
            right,
        } => {
            let (left, right) = (decimal(left, level)?, decimal(right, level)?);
            operation(*operator)?.result(left.extent, right.extent)
        }
        _ => None,
    }
}

fn is_decimal(kind: Kind) -> Option<Kind> {
    matches!(kind.extent, Extent::Decimal { .. }).then_some(kind)
}

fn digits_of(number: i64) -> u32 {
    number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1
}

/// What decimals have of their own.
pub(super) fn operation(operator: Operator) -> Option<Arithmetic> {
    match operator {
        Operator::Add => Some(Arithmetic::Add),
        Operator::Subtract => Some(Arithmetic::Subtract),
        Operator::Multiply => Some(Arithmetic::Multiply),
        Operator::Divide | Operator::Modulo => None,
    }
}

/// Whether an expression has subqueries in it.
pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| {
        found |= matches!(
            expr,
            Expr::Subquery(_)
                | Expr::InSubquery { .. }
                | Expr::Rows {
                    from: RowsFrom::Subquery(_),
                    ..
                }
        );
    });
    found
}

/// Appends the tables that an expression reads: how many queries around its own they are, and their number; `None` for what was grouped.
pub(super) fn places_read(expr: &Expr, places: &mut Vec<Option<(u16, u16)>>) {
    expr.walk(&mut |expr| match expr {
        Expr::Column { table, .. } => places.push(Some((0, *table))),
        Expr::Outer { level, table, .. } => places.push(Some((*level, *table))),
        Expr::Slot(_) => places.push(None),
        _ => {}
    });
}

/// Whether an expression reads columns of one table only, and nothing that stands around the query.
pub(super) fn reads_only(expr: &Expr, number: u16) -> bool {
    let mut only = true;
    expr.walk(&mut |expr| match expr {
        Expr::Column { table, .. } => only &= *table == number,
        Expr::Outer { .. }
        | Expr::Slot(_)
        | Expr::Subquery(_)
        | Expr::InSubquery { .. }
        | Expr::Rows {
            from: RowsFrom::Subquery(_),
            ..
        } => {
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

/// Whether arguments of functions read tables, or subqueries in them do.
pub(super) fn reads_tables(calls: &[SetCall], subs: &[Subquery]) -> bool {
    let mut reads = false;
    for argument in calls.iter().flat_map(|call| &call.arguments) {
        tables_read(argument, subs, &mut |_| reads = true);
        argument.walk(&mut |expr| reads |= matches!(expr, Expr::Outer { .. }));
    }
    reads
}
