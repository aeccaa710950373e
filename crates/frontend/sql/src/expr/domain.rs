//! What a domain asks of its values, at work, and within which bounds (U8 of 0022).

use super::{Expr, Frame, RowRef};
use crate::error::{Result, SqlError};
use crate::parse::{too_deep, with_stack};
use crate::sqlstate;
use std::fmt;
use vellum_row::ValueRef;

/// How deep conditions may cast to domains whose conditions cast to others. Each may be as high as a statement, so this bounds the stack.
pub(crate) const NESTED_MAX: usize = 8;
/// How often conditions may be asked, all in all, for one value: two casts each, in domains over each other, are asked 2, 4, 8, … times.
const ASKED_MAX: usize = 10_000;
/// Conditions that are higher get a stack of their own: what is below them may have used the statement's.
const HEIGHT_MAX: usize = 32;

/// What a domain asks of its values, with what those ask that it was made over.
pub(crate) struct DomainRules {
    pub oid: u32,
    /// As messages call it.
    pub shown: String,
    /// Its schema and its name.
    pub name: (Box<str>, Box<str>),
    pub not_null: bool,
    /// CHECK constraints by their names, over a row of the value alone: those of the domain that all others are made over first, and of one domain in the order of
    /// their names, as in PostgreSQL.
    pub checks: Vec<(Box<str>, Expr)>,
    asked: Asked,
}

/// What is known of all conditions together. It is kept, as conditions share those that they cast to: whoever walked through them would meet the last ones as
/// often as they are asked.
#[derive(Clone, Default)]
struct Asked {
    /// How deep they are in each other, and how many of them are asked.
    nested: usize,
    times: usize,
    own_stack: bool,
    volatile: bool,
    of_session: bool,
    /// The domains that they cast to.
    domains: Vec<u32>,
}

impl Asked {
    /// # Errors
    /// `54001`.
    fn of(checks: &[(Box<str>, Expr)]) -> Result<Self> {
        let mut all = Self::default();
        for (_, check) in checks {
            all.times += 1;
            all.own_stack |= height(check) > HEIGHT_MAX;
            all.volatile |= check.is_volatile();
            all.of_session |= check.asks();
            check.walk(&mut |expr| {
                if let Expr::Domain { rules, .. } = expr {
                    all.nested = all.nested.max(rules.asked.nested + 1);
                    all.times = all.times.saturating_add(rules.asked.times);
                    all.domains.push(rules.oid);
                    all.domains.extend(&rules.asked.domains);
                }
            });
            all.domains.sort_unstable();
            all.domains.dedup();
        }
        all.own_stack |= all.nested > 0;
        match all.nested > NESTED_MAX || all.times > ASKED_MAX {
            true => Err(too_deep()),
            false => Ok(all),
        }
    }
}

/// How many expressions stand in each other.
fn height(expr: &Expr) -> usize {
    let mut below = 0;
    expr.children(&mut |child| below = below.max(height(child)));
    below + 1
}

impl DomainRules {
    /// What is asked by `checks`, which stand in their order.
    ///
    /// # Errors
    /// `54001` for conditions that cast to domains too deep in each other, or too often.
    pub fn new(
        (oid, not_null): (u32, bool),
        shown: String,
        name: (Box<str>, Box<str>),
        checks: Vec<(Box<str>, Expr)>,
    ) -> Result<Self> {
        Ok(Self {
            oid,
            shown,
            name,
            not_null,
            asked: Asked::of(&checks)?,
            checks,
        })
    }

    /// # Errors
    /// `23502` for a null that may not be, `23514`; those of the conditions.
    pub fn check(&self, value: ValueRef<'_>, frame: &Frame<'_>) -> Result<()> {
        match self.asked.own_stack {
            true => with_stack(|| self.checked(value, frame)),
            false => self.checked(value, frame),
        }
    }

    fn checked(&self, value: ValueRef<'_>, frame: &Frame<'_>) -> Result<()> {
        if self.not_null && value.is_null() {
            let message = format!("domain {} does not allow null values", self.shown);
            let error = SqlError::new(sqlstate::NOT_NULL_VIOLATION, message);
            return Err(error.on_type(&self.name));
        }
        let value = [value];
        let rows = [RowRef::Lent(&value)];
        let frame = Frame {
            rows: &rows,
            outer: None,
            ..*frame
        };
        for (name, check) in &self.checks {
            if check.eval(&frame)?.as_ref().as_bool() == Some(false) {
                let message = format!(
                    "value for domain {} violates check constraint \"{name}\"",
                    self.shown
                );
                let error = SqlError::new(sqlstate::CHECK_VIOLATION, message);
                return Err(error.on_type(&self.name).on_constraint(name));
            }
        }
        Ok(())
    }

    /// Whether two evaluations in one statement may differ.
    pub fn is_volatile(&self) -> bool {
        self.asked.volatile
    }

    /// Whether a condition asks the session.
    pub fn asks(&self) -> bool {
        self.asked.of_session
    }

    /// The domains that its conditions cast to, and those that their conditions do.
    pub fn domains(&self) -> &[u32] {
        &self.asked.domains
    }
}

impl PartialEq for DomainRules {
    /// Expressions of one statement are compared, in whose image a domain asks one thing.
    fn eq(&self, other: &Self) -> bool {
        self.oid == other.oid
    }
}

impl fmt::Debug for DomainRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DomainRules").field(&self.oid).finish()
    }
}

impl Drop for DomainRules {
    fn drop(&mut self) {
        if self.asked.own_stack {
            let checks = std::mem::take(&mut self.checks);
            with_stack(|| drop(checks));
        }
    }
}
