//! Expressions that ask a query and stand in a query more than once: as a key of GROUP BY or DISTINCT ON, and where the key's value is read.
//!
//! Each place would be a query of its own, and no two of these are the same expression. So what such a key asks is looked for where the query's clauses are
//! bound, by its text as the parser tells it: all of the same text are one.

use super::array::array_subquery;
use super::{Binder, Bound, query_of};
use crate::error::Result;
use crate::parse::walk;
use sha2::{Digest, Sha256};
use sqlparser::ast;

/// Of an expression's text, which may be long, and is one of those around it.
pub(crate) type TextDigest = [u8; 32];

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
    fn digest(&mut self, node: &ast::Expr) -> Result<TextDigest> {
        let text = node.to_string();
        self.tells(text.len())?;
        Ok(Sha256::digest(text.as_bytes()).into())
    }

    /// Looks from now on for what these keys ask, until another query is bound or the keys are others.
    ///
    /// # Errors
    /// `54001` for what asks in what asks, too deeply.
    pub(crate) fn look_for<'n>(&mut self, keys: impl Iterator<Item = &'n ast::Expr>) -> Result<()> {
        self.again.clear();
        for key in keys {
            self.step()?;
            let mut done = Ok(());
            walk::outermost(key, asks, &mut |node| {
                if done.is_ok() {
                    done = self.digest(node).map(|digest| {
                        self.again.insert(digest, None);
                    });
                }
            });
            done?;
        }
        Ok(())
    }

    /// An expression by its text, if it is looked for.
    ///
    /// # Errors
    /// As [`Binder::look_for`].
    pub(super) fn looked_for(&mut self, node: &ast::Expr) -> Result<Option<TextDigest>> {
        if self.again.is_empty() || !asks(node) {
            return Ok(None);
        }
        let digest = self.digest(node)?;
        Ok(self.again.contains_key(&digest).then_some(digest))
    }

    /// What it was bound to before.
    pub(super) fn known_again(&self, digest: Option<TextDigest>) -> Option<Bound> {
        self.again.get(&digest?)?.clone()
    }

    /// Keeps what it was bound to.
    pub(super) fn keep_again(&mut self, digest: Option<TextDigest>, bound: &Bound) {
        if let Some(known) = digest.and_then(|digest| self.again.get_mut(&digest)) {
            *known = Some(bound.clone());
        }
    }
}
