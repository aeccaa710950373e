//! What conditions imply: whether all rows that fulfil them are in an index with a predicate, and whether an index is keyed by an expression of theirs.
//!
//! Only what is plain is seen: a conjunct of the predicate is one of the conditions, or an `x IS NOT NULL` of an `x` that a condition compares, or a
//! comparison with a constant that follows from one with another. Not to see it costs a slower path, never a row.

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
    let (condition, conjunct) = (plain(condition), plain(conjunct));
    if is_same(condition, source, conjunct) {
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
        } => match (against_constant(condition), &**right) {
            (Some((operand, own, value)), Expr::Const(bound)) => {
                is_same(operand, source, left) && follows((own, value), (*comparison, bound))
            }
            _ => false,
        },
        _ => false,
    }
}

/// A condition without what says nothing: `x = true` is `x`.
fn plain(condition: &Expr) -> &Expr {
    match condition {
        Expr::Compare {
            comparison: Comparison::Equal,
            left,
            right,
        } => match (&**left, &**right) {
            (operand, Expr::Const(Value::Bool(true)))
            | (Expr::Const(Value::Bool(true)), operand) => operand,
            _ => condition,
        },
        Expr::Is {
            operand,
            truth: true,
            negated: false,
        } => operand,
        _ => condition,
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
        } => is_operand(own),
        Expr::Like { operand: own, .. } => is_operand(own),
        own => is_operand(own),
    }
}

/// A comparison of something with a constant.
fn against_constant(condition: &Expr) -> Option<(&Expr, Comparison, &Value)> {
    let Expr::Compare {
        comparison,
        left,
        right,
    } = condition
    else {
        return None;
    };
    match (&**left, &**right) {
        (operand, Expr::Const(value)) => Some((operand, *comparison, value)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_with(comparison: Comparison, value: i32) -> Expr {
        let operand = Expr::Column {
            table: 0,
            position: 1,
        };
        Expr::Compare {
            comparison,
            left: Box::new(operand),
            right: Box::new(Expr::Const(Value::Int4(value))),
        }
    }

    /// What is said to follow does: for all comparisons with small numbers, by all small numbers.
    #[test]
    fn what_follows_is_true_of_every_value() {
        use Comparison as C;
        let all = [
            C::Equal,
            C::NotEqual,
            C::Less,
            C::LessEqual,
            C::Greater,
            C::GreaterEqual,
        ];
        let mut seen = 0;
        for (given, asked) in all.iter().flat_map(|one| all.map(|other| (*one, other))) {
            for (value, bound) in (0..5).flat_map(|value| (0..5).map(move |bound| (value, bound))) {
                let predicate = compare_with(asked, bound);
                if !is_implied(&predicate, 0, &[compare_with(given, value)]) {
                    continue;
                }
                seen += 1;
                let wrong =
                    (-1..6i32).find(|x| given.holds(x.cmp(&value)) && !asked.holds(x.cmp(&bound)));
                assert_eq!(wrong, None, "{given:?} {value} implies {asked:?} {bound}");
            }
        }
        assert!(seen > 100, "{seen}");
    }
}
