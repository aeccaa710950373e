//! FOR UPDATE and its like: which rows of a query are locked.

use super::select::{Body, Join, Select, SourceKind};
use crate::bind::{Binder, folded};
use crate::error::{Result, SqlError};
use crate::lock::Strength;
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;

/// Rows of a table that a query locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowLock {
    /// Number of the table in the FROM.
    pub source: usize,
    pub strength: Strength,
    pub wait: LockWait,
}

/// What is done about a row that somebody else has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockWait {
    /// It is waited for.
    Block,
    /// NOWAIT: an error.
    Never,
    /// SKIP LOCKED: it is no row of the result.
    Skip,
}

impl Binder<'_> {
    /// Binds the clauses behind a query; its FROM is the scope.
    ///
    /// # Errors
    /// `0A000` for queries whose rows are none of a table; `42P01` for a table that is not in the FROM.
    pub(super) fn locks(&mut self, select: &mut Select, clauses: &[ast::LockClause]) -> Result<()> {
        for clause in clauses {
            let (strength, of) = strength_of(clause);
            let word = word_of(strength);
            let refused = |what: &str| {
                let message = format!("{word} is not allowed with {what}");
                SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            };
            let sources = match &select.body {
                Body::Set { .. } => return Err(refused("UNION/INTERSECT/EXCEPT")),
                Body::Values(_) => {
                    let message = format!("{word} cannot be applied to VALUES");
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
                }
                Body::From {
                    grouping: Some(grouping),
                    ..
                } => {
                    let what = if grouping.keys.is_empty() {
                        "aggregate functions"
                    } else {
                        "GROUP BY clause"
                    };
                    return Err(refused(what));
                }
                Body::From { .. } if select.distinct => return Err(refused("DISTINCT clause")),
                Body::From { sources, .. } => sources,
            };
            let wait = match clause.nonblock {
                None => LockWait::Block,
                Some(ast::NonBlock::Nowait) => LockWait::Never,
                Some(ast::NonBlock::SkipLocked) => LockWait::Skip,
            };
            let mut known = of.is_none();
            for (source, table) in sources.iter().enumerate() {
                let name = self
                    .scope
                    .tables
                    .get(source)
                    .map(|table| table.name.as_str());
                if of.is_some() && of.as_deref() != name {
                    continue;
                }
                known = true;
                let SourceKind::Table { shape, .. } = &table.kind else {
                    continue;
                };
                if table.join == Join::Left {
                    let message =
                        format!("{word} cannot be applied to the nullable side of an outer join");
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
                }
                // As PostgreSQL: who may only read keeps no writer waiting.
                let relation = shape.relation.clone();
                self.uses(&relation, Rights::UPDATE);
                self.targets.push(relation.oid);
                select.locks.push(RowLock {
                    source,
                    strength,
                    wait,
                });
            }
            if let (false, Some(of)) = (known, of) {
                let message =
                    format!("relation \"{of}\" in {word} clause not found in FROM clause");
                return Err(SqlError::new(sqlstate::UNDEFINED_TABLE, message));
            }
        }
        Ok(())
    }
}

/// Strength, and the table that it is for. The weaker kinds are told by a name in front of the table's (`parse::options`).
fn strength_of(clause: &ast::LockClause) -> (Strength, Option<String>) {
    let mut names: Vec<&ast::Ident> = match &clause.of {
        None => Vec::new(),
        Some(name) => name.0.iter().filter_map(|part| part.as_ident()).collect(),
    };
    let weak = names
        .first()
        .is_some_and(|name| name.value == crate::parse::KEY_LOCK);
    let of = names
        .pop()
        .filter(|_| !(weak && names.is_empty()))
        .map(folded);
    let strength = match (clause.lock_type, weak) {
        (ast::LockType::Share, true) => Strength::KeyShare,
        (ast::LockType::Share, false) => Strength::Share,
        (ast::LockType::Update, true) => Strength::NoKeyUpdate,
        (ast::LockType::Update, false) => Strength::Update,
    };
    (strength, of)
}

fn word_of(strength: Strength) -> &'static str {
    match strength {
        Strength::KeyShare => "FOR KEY SHARE",
        Strength::Share => "FOR SHARE",
        Strength::NoKeyUpdate => "FOR NO KEY UPDATE",
        Strength::Update => "FOR UPDATE",
    }
}
