//! Expressions that ask a query and stand in a query more than once: as a key of GROUP BY or DISTINCT ON, and where the key's value is read.
//!
//! Each place would be a query of its own, and no two of these are the same expression. So what such a key asks is looked for where the query's clauses are
//! bound, by its text as the parser tells it: all of the same text are one.

use super::array::array_subquery;
use super::{Binder, Bound, query_of};
use crate::parse::walk;
use sha2::{Digest, Sha256};
use sqlparser::ast;

/// An expression of a key, and what it was bound to where it was met first.
#[derive(Debug)]
pub(crate) struct Again {
    /// Of its text, which may be long, and is one of those around it.
    digest: [u8; 32],
    bound: Option<Bound>,
}

fn digest(node: &ast::Expr) -> [u8; 32] {
    Sha256::digest(node.to_string().as_bytes()).into()
}

/// Whether an expression asks a query itself.
fn asks(node: &ast::Expr) -> bool {
    match node {
        ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => true,
        ast::Expr::Function(function) => array_subquery(function).is_some(),
        ast::Expr::AnyOp { right, .. } | ast::Expr::AllOp { right, .. } => {
            query_of(right).is_some()
        }
        _ => false,
    }
}

impl Binder<'_> {
    /// Looks from now on for what these keys ask, until another query is bound or the keys are others.
    pub(crate) fn look_for<'n>(&mut self, keys: impl Iterator<Item = &'n ast::Expr>) {
        self.again.clear();
        for key in keys {
            walk::outermost(key, asks, &mut |node| {
                let digest = digest(node);
                if self.again.iter().all(|known| known.digest != digest) {
                    self.again.push(Again {
                        digest,
                        bound: None,
                    });
                }
            });
        }
    }

    /// The place of an expression among those that are looked for.
    pub(super) fn looked_for(&self, node: &ast::Expr) -> Option<usize> {
        if self.again.is_empty() || !asks(node) {
            return None;
        }
        let digest = digest(node);
        self.again.iter().position(|known| known.digest == digest)
    }

    /// What it was bound to before.
    pub(super) fn known_again(&self, at: Option<usize>) -> Option<Bound> {
        self.again.get(at?)?.bound.clone()
    }

    /// Keeps what it was bound to.
    pub(super) fn keep_again(&mut self, at: Option<usize>, bound: &Bound) {
        if let Some(known) = at.and_then(|at| self.again.get_mut(at)) {
            known.bound = Some(bound.clone());
        }
    }
}
