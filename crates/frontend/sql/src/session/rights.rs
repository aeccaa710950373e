//! Whether a session may do what a program does.
//!
//! Invariants: R1: rights are those of when the statement begins, whatever the snapshot (`Open::rights`): who has lost one has lost it in transactions that are open, too.

use super::Session;
use crate::bind::Lender;
use crate::catalog::{Catalog, Kind, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::plan::Program;
use crate::roles::Rights;
use crate::sqlstate;

impl Session {
    /// # Errors
    /// `42501` for a right on a relation that the session's role has not, or that who owns a view has not on what that reads or writes.
    pub(super) fn check_program(&self, program: &Program) -> Result<()> {
        self.check_uses(&program.accesses, Some(&program.column_uses))?;
        for schema in &program.looks_into {
            let rights = self.rights();
            rights.check_look(self.acting().role, self.image(), Some(*schema))?;
        }
        for (oid, right, lender) in &program.lent {
            // What it says now (R1); one that others have dropped, what it said.
            let view = self.rights().relation(lender.view);
            let now = view.map_or(*lender, |view| Lender::of(view));
            let role = now.owner.unwrap_or(self.acting().role);
            // Which columns a view reads is not noted.
            self.check_right(role, (*oid, *right), None)?;
        }
        Ok(())
    }

    /// # Errors
    /// `42501` for a right on a relation that the session's role has not.
    pub(super) fn check_rights(&self, accesses: &[(Oid, Rights)]) -> Result<()> {
        self.check_uses(accesses, None)
    }

    /// The same where the columns may be known that the rights are needed for; `None`: for all of the relation.
    fn check_uses(
        &self,
        accesses: &[(Oid, Rights)],
        columns: Option<&[(Oid, Rights, u16)]>,
    ) -> Result<()> {
        let catalog = self.rights();
        let user = self.acting().role;
        let version = catalog.version(self.temporary.namespace);
        let find = || catalog.is_superuser(user);
        if self.plans.is_superuser(version, find) {
            return Ok(());
        }
        for (oid, right) in accesses {
            let relation = catalog.relation(*oid);
            let relation = relation.or_else(|| self.image().relation(*oid));
            let relation = relation.map(|relation| relation.namespace);
            // Of an extension whose function is called.
            let extension = || catalog.extension_by_oid(*oid).map(|own| own.namespace);
            let place = relation.or_else(extension);
            let schema = place.and_then(|place| catalog.namespace_by_oid(place));
            if let Some(schema) = schema
                && !catalog.allows_in_schema(user, schema, false)
            {
                return Err(denied(&format!("schema {}", schema.name)));
            }
            self.check_right(user, (*oid, *right), columns)?;
        }
        Ok(())
    }

    /// # Errors
    /// `42501` for a right on a relation that a role has not.
    fn check_right(
        &self,
        role: Oid,
        (oid, right): (Oid, Rights),
        columns: Option<&[(Oid, Rights, u16)]>,
    ) -> Result<()> {
        let catalog = self.rights();
        // What others have dropped the snapshot may still see, with the rights that were on it.
        let found = catalog.relation(oid);
        let Some(relation) = found.or_else(|| self.image().relation(oid)) else {
            return Ok(());
        };
        let by_columns =
            || columns.is_some_and(|all| has_columns(catalog, role, (relation, right), all));
        if catalog.allows(role, relation, right) || by_columns() {
            return Ok(());
        }
        let word = match relation.kind {
            Kind::View(_) => "view",
            Kind::Sequence(_) => "sequence",
            Kind::Enum(_) | Kind::Domain(_) => "type",
            Kind::Table(_) | Kind::System(_) => "table",
        };
        Err(denied(&format!("{word} {}", relation.name)))
    }
}

/// Whether a role has a right on all columns that it is needed for; of a query that reads none, on any.
fn has_columns(
    catalog: &Catalog,
    role: Oid,
    (relation, right): (&Relation, Rights),
    columns: &[(Oid, Rights, u16)],
) -> bool {
    if relation.column_acls.is_empty() || matches!(relation.kind, Kind::System(_)) {
        return false;
    }
    let has = |column: u16| catalog.allows_column(role, relation, column, right);
    let used = columns.iter();
    let mut used = used
        .filter(|(oid, wanted, _)| (*oid, *wanted) == (relation.oid, right))
        .peekable();
    if used.peek().is_none() {
        let mut all = relation.column_acls.iter();
        return right == Rights::SELECT && all.any(|(column, _)| has(*column));
    }
    used.all(|(.., column)| *column != 0 && has(*column))
}

#[cold]
fn denied(what: &str) -> SqlError {
    let message = format!("permission denied for {what}");
    SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
}
