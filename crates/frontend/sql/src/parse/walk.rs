//! Walks over syntax trees, whatever their roots: for every closure that the parser's own walks are given, they are compiled anew with a function for each kind
//! of node there is, which was two thirds of this crate.

use sqlparser::ast::{Expr, ObjectName, Query, TableFactor, Visit, VisitMut, Visitor, VisitorMut};
use std::ops::ControlFlow;

/// What a walk looks at.
enum Seen<'f> {
    Queries(&'f mut dyn FnMut(&Query)),
    Expressions(&'f mut dyn FnMut(&Expr)),
    Relations(&'f mut dyn FnMut(&ObjectName)),
    Outermost {
        is: fn(&Expr) -> bool,
        /// In how many of them the walk is.
        inside: usize,
        each: &'f mut dyn FnMut(&Expr),
    },
}

impl Visitor for Seen<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Self::Queries(each) = self {
            each(query);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match self {
            Self::Expressions(each) => each(expr),
            Self::Outermost { is, inside, each } if (*is)(expr) => {
                if *inside == 0 {
                    each(expr);
                }
                *inside += 1;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Self::Outermost { is, inside, .. } = self
            && (*is)(expr)
        {
            *inside -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let Self::Relations(each) = self {
            each(name);
        }
        ControlFlow::Continue(())
    }
}

/// What a walk changes.
enum Changed<'f> {
    Expressions(&'f mut dyn FnMut(&mut Expr) -> ControlFlow<()>),
    BothWays(&'f mut dyn FnMut(&mut Expr, bool)),
    Relations(&'f mut dyn FnMut(&mut ObjectName)),
    Factors(&'f mut dyn FnMut(&mut TableFactor)),
}

impl VisitorMut for Changed<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Self::BothWays(each) = self {
            each(expr, true);
        }
        ControlFlow::Continue(())
    }

    // Behind what is in it: what an expression is changed to is not walked over.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match self {
            Self::Expressions(each) => each(expr),
            Self::BothWays(each) => {
                each(expr, false);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<()> {
        if let Self::Relations(each) = self {
            each(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let Self::Factors(each) = self {
            each(factor);
        }
        ControlFlow::Continue(())
    }
}

/// Calls `each` with every query, those in it behind it.
pub(crate) fn queries(node: &impl Visit, each: &mut dyn FnMut(&Query)) {
    let _ = node.visit(&mut Seen::Queries(each));
}

/// Calls `each` with every expression, those in it behind it.
pub(crate) fn expressions(node: &impl Visit, each: &mut dyn FnMut(&Expr)) {
    let _ = node.visit(&mut Seen::Expressions(each));
}

/// Calls `each` with the expressions of a kind that stand in no other of it.
pub(crate) fn outermost(node: &impl Visit, is: fn(&Expr) -> bool, each: &mut dyn FnMut(&Expr)) {
    let inside = 0;
    let _ = node.visit(&mut Seen::Outermost { is, inside, each });
}

/// Calls `each` with the name of everything that stands where a relation is named.
pub(crate) fn relations(node: &impl Visit, each: &mut dyn FnMut(&ObjectName)) {
    let _ = node.visit(&mut Seen::Relations(each));
}

/// Calls `each` with every expression, those in it before it, until it breaks off; says whether it did.
pub(crate) fn change_expressions(
    node: &mut impl VisitMut,
    each: &mut dyn FnMut(&mut Expr) -> ControlFlow<()>,
) -> bool {
    node.visit(&mut Changed::Expressions(each)).is_break()
}

/// Calls `each` with every expression twice: before what is in it (true), which is that of what it was changed to, and behind it.
pub(crate) fn change_both_ways(node: &mut impl VisitMut, each: &mut dyn FnMut(&mut Expr, bool)) {
    let _ = node.visit(&mut Changed::BothWays(each));
}

/// Calls `each` with the name of everything that stands where a relation is named.
pub(crate) fn change_relations(node: &mut impl VisitMut, each: &mut dyn FnMut(&mut ObjectName)) {
    let _ = node.visit(&mut Changed::Relations(each));
}

/// Calls `each` with everything that FROM names, before what is in it.
pub(crate) fn change_factors(node: &mut impl VisitMut, each: &mut dyn FnMut(&mut TableFactor)) {
    let _ = node.visit(&mut Changed::Factors(each));
}
