//! What conditions imply: whether all rows that fulfil them are in an index with a predicate, and whether an index is keyed by an expression of theirs.
//!
//! Only what is plain is seen: a conjunct of the predicate is one of the conditions, or an `x IS NOT NULL` of an `x` that a condition compares, or a
//! comparison with constants that follows from one with others. Not to see it costs a slower path, never a row.

use crate::expr::{Comparison, Expr};
use vellum_row::{Value, ValueRef, compare};

/// Whether rows of table number `source` for which these conditions are true fulfil a predicate over that table as number 0.
pub(super) fn is_implied(predicate: &Expr, source: u16, conjuncts: &[Expr]) -> bool {
    match predicate {
        Expr::And(all) => all.iter().all(|one| is_implied(one, source, conjuncts)),
        one => {
            let either = match one {
                Expr::Or(any) => &**any,
                _ => &[],
            };
            let mut either = either.iter();
            either.any(|one| is_implied(one, source, conjuncts))
                || conjuncts
                    .iter()
                    .any(|conjunct| implies(conjunct, source, one))
        }
    }
}

/// Whether an expression over table number `source` is the same as one over that table as number 0.
pub(super) fn is_same(expr: &Expr, source: u16, own: &Expr) -> bool {
    if source == 0 {
        return expr == own;
    }
    // Seldom: most expressions differ in what they are.
    if std::mem::discriminant(expr) != std::mem::discriminant(own) {
        return false;
    }
    let mut own = own.clone();
    renumber(&mut own, source);
    *expr == own
}

fn renumber(expr: &mut Expr, source: u16) {
    if let Expr::Column { table, .. } = expr {
        *table = source;
    }
    expr.children_mut(&mut |child| renumber(child, source));
}

/// Whether a condition, where it is true, makes one conjunct of a predicate true.
fn implies(condition: &Expr, source: u16, conjunct: &Expr) -> bool {
    let (given, asked) = (truth(condition), truth(conjunct));
    if given.1 == asked.1 && is_same(given.0, source, asked.0) {
        return true;
    }
    match conjunct {
        Expr::IsNull {
            operand,
            negated: true,
        } => needs(condition, source, operand),
        Expr::Compare {
            comparison,
            left,
            right,
        } => {
            let asked = against_constant(*comparison, left, right);
            asked.is_some_and(|(operand, comparison, bound)| {
                let given = values(condition, source, operand);
                given.is_some_and(|given| {
                    let mut all = given.into_iter();
                    all.all(|given| follows(given, (comparison, bound)))
                })
            })
        }
        Expr::In {
            operand,
            list,
            negated: false,
        } => values(condition, source, operand).is_some_and(|given| {
            let among = |(comparison, value): (Comparison, &Value)| {
                let mut list = list.iter();
                list.any(|item| match item {
                    Expr::Const(item) => follows((comparison, value), (Comparison::Equal, item)),
                    _ => false,
                })
            };
            given.into_iter().all(among)
        }),
        _ => false,
    }
}

/// What a condition says the truth of, and which: `x`, `x = true` and `x IS TRUE` say that `x` is true, `NOT x` and its like that it is false.
fn truth(condition: &Expr) -> (&Expr, bool) {
    match condition {
        Expr::Not(operand) => (operand, false),
        Expr::Is {
            operand,
            truth,
            negated: false,
        } => (operand, *truth),
        Expr::Compare {
            comparison: comparison @ (Comparison::Equal | Comparison::NotEqual),
            left,
            right,
        } => match (&**left, &**right) {
            (operand, Expr::Const(Value::Bool(value)))
            | (Expr::Const(Value::Bool(value)), operand) => {
                (operand, *value == (*comparison == Comparison::Equal))
            }
            _ => (condition, true),
        },
        _ => (condition, true),
    }
}

/// Whether a condition cannot be true where `operand` is null.
fn needs(condition: &Expr, source: u16, operand: &Expr) -> bool {
    let is_operand = |expr: &Expr| is_same(expr, source, operand);
    match condition {
        Expr::Compare { left, right, .. } => is_operand(left) || is_operand(right),
        Expr::In {
            operand: own,
            negated: false,
            ..
        }
        | Expr::Among {
            operand: own,
            negated: false,
            ..
        }
        | Expr::Like { operand: own, .. } => is_operand(own),
        own => is_operand(truth(own).0),
    }
}

/// The comparisons with constants of which a condition says that one is true of `operand`.
fn values<'e>(
    condition: &'e Expr,
    source: u16,
    operand: &Expr,
) -> Option<Vec<(Comparison, &'e Value)>> {
    match condition {
        Expr::Compare {
            comparison,
            left,
            right,
        } => {
            let (own, comparison, value) = against_constant(*comparison, left, right)?;
            is_same(own, source, operand).then(|| vec![(comparison, value)])
        }
        Expr::In {
            operand: own,
            list,
            negated: false,
        } if is_same(own, source, operand) => {
            let list = list.iter().map(|item| match item {
                Expr::Const(value) => Some((Comparison::Equal, value)),
                _ => None,
            });
            list.collect()
        }
        _ => None,
    }
}

/// A comparison of something with a constant.
fn against_constant<'e>(
    comparison: Comparison,
    left: &'e Expr,
    right: &'e Expr,
) -> Option<(&'e Expr, Comparison, &'e Value)> {
    match (left, right) {
        (operand, Expr::Const(value)) => Some((operand, comparison, value)),
        (Expr::Const(value), operand) => Some((operand, comparison.swapped(), value)),
        _ => None,
    }
}

/// Whether `x ? value` follows from another comparison of `x`.
fn follows((given, value): (Comparison, &Value), (asked, bound): (Comparison, &Value)) -> bool {
    use Comparison as C;
    let (value, bound) = (value.as_ref(), bound.as_ref());
    let Some(order) = order(value, bound) else {
        return false;
    };
    match (given, asked) {
        (C::Equal, asked) => asked.holds(order),
        (C::Greater, C::Greater | C::GreaterEqual | C::NotEqual)
        | (C::GreaterEqual, C::GreaterEqual) => order.is_ge(),
        (C::GreaterEqual, C::Greater | C::NotEqual) => order.is_gt(),
        (C::Less, C::Less | C::LessEqual | C::NotEqual) | (C::LessEqual, C::LessEqual) => {
            order.is_le()
        }
        (C::LessEqual, C::Less | C::NotEqual) => order.is_lt(),
        _ => false,
    }
}

/// How two constants compare, if they are of one kind.
fn order(value: ValueRef<'_>, bound: ValueRef<'_>) -> Option<std::cmp::Ordering> {
    if value.is_null() || bound.is_null() {
        return None;
    }
    match (value.as_i64(), bound.as_i64()) {
        (Some(value), Some(bound)) => Some(value.cmp(&bound)),
        _ if value.ty() == bound.ty() => Some(compare(value, bound)),
        _ => None,
    }
}
