//! Conditions taken apart: what all branches of an OR say is said once, and what they say of one table is asked of it early.
//!
//! Invariants:
//! - F1 What is moved out of an OR cannot fail: whether a branch is looked at decides nothing else.

use super::conjuncts;
use crate::expr::{Comparison, Expr};

/// Splits a condition at its ANDs. Equalities of columns that stand in all branches of an OR stand beside it then: they are what joins.
pub(crate) fn factored(condition: Expr, out: &mut Vec<Expr>) {
    let mut parts = Vec::new();
    conjuncts(condition, &mut parts);
    for part in parts {
        let Expr::Or(list) = part else {
            out.push(part);
            continue;
        };
        let mut branches = Vec::new();
        alternatives(list, &mut branches);
        let mut branches: Vec<Vec<Expr>> = branches
            .into_iter()
            .map(|branch| {
                let mut parts = Vec::new();
                conjuncts(branch, &mut parts);
                parts
            })
            .collect();
        let (first, others) = match branches.split_first() {
            Some((first, others)) => (first, others),
            None => continue,
        };
        let shared = first.iter().filter(|part| joins(part));
        let shared = shared.filter(|part| others.iter().all(|branch| branch.contains(part)));
        let shared: Vec<Expr> = shared.cloned().collect();
        for branch in &mut branches {
            branch.retain(|part| !shared.contains(part));
        }
        out.extend(shared);
        // A branch that said nothing else is true.
        if branches.iter().all(|branch| !branch.is_empty()) {
            out.push(Expr::Or(branches.into_iter().map(all).collect()));
        }
    }
}

/// What an OR says of one table alone, if each branch says something of it: true wherever the OR is.
pub(crate) fn implied(condition: &Expr, table: u16) -> Option<Expr> {
    let Expr::Or(list) = condition else {
        return None;
    };
    let branches = list.iter().map(|branch| {
        let mut parts = Vec::new();
        conjuncts(branch.clone(), &mut parts);
        parts.retain(|part| is_harmless(part) && reads_one(part, table));
        (!parts.is_empty()).then(|| all(parts))
    });
    Some(Expr::Or(branches.collect::<Option<_>>()?))
}

fn alternatives(list: Box<[Expr]>, out: &mut Vec<Expr>) {
    for branch in list.into_vec() {
        match branch {
            Expr::Or(inner) => alternatives(inner, out),
            branch => out.push(branch),
        }
    }
}

fn all(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => Expr::And(parts.into()),
    }
}

fn joins(expr: &Expr) -> bool {
    let Expr::Compare {
        comparison: Comparison::Equal,
        left,
        right,
    } = expr
    else {
        return false;
    };
    let column = |side: &Expr| matches!(side, Expr::Column { .. });
    column(left) && column(right)
}

/// F1.
fn is_harmless(expr: &Expr) -> bool {
    let leaf = |expr: &Expr| matches!(expr, Expr::Column { .. } | Expr::Const(_));
    match expr {
        Expr::Compare { left, right, .. } => leaf(left) && leaf(right),
        Expr::In { operand, list, .. } => leaf(operand) && list.iter().all(leaf),
        Expr::IsNull { operand, .. } => leaf(operand),
        Expr::And(list) | Expr::Or(list) => list.iter().all(is_harmless),
        _ => false,
    }
}

fn reads_one(expr: &Expr, table: u16) -> bool {
    let mut only = true;
    expr.walk(&mut |expr| {
        if let Expr::Column { table: own, .. } = expr {
            only &= *own == table;
        }
    });
    only
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_row::Value;

    fn column(table: u16) -> Expr {
        Expr::Column { table, position: 0 }
    }

    fn equal(left: Expr, right: Expr) -> Expr {
        Expr::Compare {
            comparison: Comparison::Equal,
            left: Box::new(left),
            right: Box::new(right),
        }
    }

    fn is(table: u16, value: i32) -> Expr {
        equal(column(table), Expr::Const(Value::Int4(value)))
    }

    fn both(parts: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::And(parts.into_iter().collect())
    }

    #[test]
    fn what_joins_in_every_branch_stands_beside() {
        let join = || equal(column(0), column(1));
        let branches = [
            both([join(), is(0, 1), is(1, 5)]),
            both([is(0, 2), join(), is(1, 6)]),
        ];
        let mut out = Vec::new();
        factored(Expr::Or(branches.into()), &mut out);
        let rest = Expr::Or([both([is(0, 1), is(1, 5)]), both([is(0, 2), is(1, 6)])].into());
        assert_eq!(out, [join(), rest.clone()]);
        let of = |table: u16| implied(&rest, table);
        assert_eq!(of(0), Some(Expr::Or([is(0, 1), is(0, 2)].into())));
        assert_eq!(of(1), Some(Expr::Or([is(1, 5), is(1, 6)].into())));
        assert_eq!(of(2), None);
    }

    #[test]
    fn what_one_branch_lacks_stays() {
        let join = || equal(column(0), column(1));
        let condition = Expr::Or([both([join(), is(0, 1)]), is(0, 2)].into());
        let mut out = Vec::new();
        factored(condition.clone(), &mut out);
        assert_eq!(out, std::slice::from_ref(&condition));
        assert_eq!(implied(&condition, 1), None);
        // A branch that is the join alone makes the rest true.
        let mut out = Vec::new();
        factored(
            Expr::Or([both([join(), is(0, 1)]), join()].into()),
            &mut out,
        );
        assert_eq!(out, [join()]);
    }
}
