//! The gates that a statement takes, and what it knows when it has them.
//!
//! Whatever a statement has read of the catalog (names, types, labels of enums, what depends on what it drops) may be different when it gets a gate: it has
//! waited for somebody who changes the catalog, or somebody has committed between its snapshot and the gate. So a statement that takes a gate draws a new snapshot, and if
//! others have changed anything but temporary relations since the last one, it gives up and runs from its beginning (`Session::with_ddl`), with the gates that
//! it has. This ends: each time it holds a gate more. Its cost is what the statement had done by then, so gates come first where rows are written.
//!
//! Names have no gates. Each is a row of the catalog (`catalog::store`), which the first who writes it has locked: who wants to write it, too, is undone, waits for that transaction
//! and runs from its beginning, as a statement does that meets somebody's row (0018). So two that make one name end as if the second had come when the first had ended.
//!
//! Invariants:
//! - W1 What a statement writes into the catalog it has read in an image that was drawn when it held all its gates.
//!
//! - W2 Who may not do what it needs a gate for does not wait for it, and keeps nobody out: the right is looked at before the gate is taken. Behind it, again: it may have been lost meanwhile.
//!
//! Under repeatable read the image stays what it was: a relation that others have changed is `40001`, and so is a schema, a type or an extension that is dropped and that they have made
//! something in or of. Roles are looked at as they are now all the same (`Ddl::roles`): who is given something by name is whoever is called so when the statement begins, and is kept by oid. So is a relation that is dropped or called otherwise, and that views or defaults have come to read, which does not change it.

use super::role::no_role;
use super::{Ddl, check_no_system};
use crate::catalog::{Catalog, Change, Extension, Gated, Mode, NOBODY, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::Type;

impl Ddl<'_> {
    /// Takes the gate of a relation or a type, unless the transaction has it (G1, W1).
    ///
    /// # Errors
    /// `40001` if the statement is to begin again, or cannot go on with its image; those of waiting.
    pub(super) fn enter(&mut self, oid: Oid, mode: Mode) -> Result<()> {
        if self.open.holds(oid, mode) {
            return Ok(());
        }
        let waiting = Some(&mut self.waiting);
        let right = self.open.enter(self.shared, oid, mode, waiting)?;
        if right && self.shared.catalog.now().relation(oid).is_none() {
            // Made by this transaction: nobody was waited for, and it has another oid the next time.
            return Ok(());
        }
        self.look_again(right)
    }

    /// The same of what is no relation.
    ///
    /// # Errors
    /// Those of [`Ddl::enter`].
    pub(super) fn enter_gated(&mut self, what: Gated, oid: Oid, mode: Mode) -> Result<()> {
        if self.open.holds(oid, mode) {
            return Ok(());
        }
        let waiting = &mut self.waiting;
        let right = self
            .open
            .enter_gated(self.shared, (what, oid), mode, waiting)?;
        if right && what.called(&self.shared.catalog.now(), oid).is_none() {
            // As in `enter`.
            return Ok(());
        }
        self.look_again(right)
    }

    /// The same, alone, for whom `may` lets (W2).
    ///
    /// # Errors
    /// Those of `may` and of [`Ddl::enter`].
    pub(super) fn gated_alone_if(
        &mut self,
        what: Gated,
        oid: Oid,
        may: impl Fn(&Self) -> Result<()>,
    ) -> Result<()> {
        may(self)?;
        self.enter_gated(what, oid, Mode::Alone)?;
        may(self)
    }

    /// Changes the catalog. The roles that it names from then on stay as long as the transaction may do so: DROP ROLE waits, or they are gone before.
    ///
    /// # Errors
    /// Those of [`Open::change`](crate::session::Open::change) and [`Ddl::enter`]; `42704` for an owner that is gone: a session whose role was dropped makes nothing.
    pub(super) fn change(&mut self, change: Change) -> Result<()> {
        if let Some(owner) = self.open.catalog.1.owner_given(&change)
            && self.roles().role_by_oid(owner).is_none()
        {
            return Err(no_role(NOBODY));
        }
        let added = self.open.catalog.1.roles_added(&change, self.roles());
        for role in added {
            self.enter_gated(Gated::Role, role, Mode::Write)?;
        }
        self.open.change(self.shared, change)
    }

    /// Behind a gate. `right`: whether the image was right about what it is the gate of.
    fn look_again(&mut self, right: bool) -> Result<()> {
        let before = self.open.catalog.1.base();
        self.open.begin_statement(self.shared)?;
        self.again = self.open.catalog.1.base() != before;
        match right && !self.again {
            true => Ok(()),
            false => Err(SqlError::changed_meanwhile()),
        }
    }

    /// A table that is to be changed, alone, by whom `may` lets (W2).
    ///
    /// # Errors
    /// `42P01`, `3F000`; those of `may` and of [`Ddl::alone`].
    pub(super) fn table_alone(
        &mut self,
        name: &ast::ObjectName,
        may: impl Fn(&Self, &Relation) -> Result<()>,
    ) -> Result<Arc<Relation>> {
        self.check_schema(name)?;
        let relation = self.binder().relation(name);
        // Found out when the statement runs.
        let relation = relation.map_err(SqlError::without_place)?;
        self.alone_if(&relation, may)
    }

    /// The gate of a relation, for whom `may` lets (W2); the relation as it is then.
    ///
    /// # Errors
    /// Those of `may` and of [`Ddl::alone`].
    pub(super) fn alone_if(
        &mut self,
        relation: &Arc<Relation>,
        may: impl Fn(&Self, &Relation) -> Result<()>,
    ) -> Result<Arc<Relation>> {
        may(self, relation)?;
        let relation = self.alone(relation)?;
        may(self, &relation)?;
        Ok(relation)
    }

    /// The gate of a relation; the relation as it is then.
    ///
    /// # Errors
    /// Those of [`Ddl::enter`]; `42P01` or `42704` if this transaction has dropped it.
    pub(super) fn alone(&mut self, relation: &Arc<Relation>) -> Result<Arc<Relation>> {
        check_no_system(relation)?;
        self.enter(relation.oid, Mode::Alone)?;
        let found = self.open.catalog.1.relation(relation.oid).cloned();
        found.ok_or_else(|| {
            let (word, state) = match relation.is_type() {
                true => ("type", sqlstate::UNDEFINED_OBJECT),
                false => ("relation", sqlstate::UNDEFINED_TABLE),
            };
            SqlError::new(
                state,
                format!("{word} \"{}\" does not exist", relation.name),
            )
        })
    }

    /// Holds the gate of a type that users have made, with others that name it.
    ///
    /// # Errors
    /// Those of [`Ddl::enter`].
    pub(super) fn hold_type(&mut self, ty: Type) -> Result<()> {
        match ty.enum_id() {
            Some(id) => self.enter(id.oid(), Mode::Write),
            None => Ok(()),
        }
    }

    /// Holds the gates of the types that a relation names, in its columns or in its texts, with others that do; of the extensions whose functions it calls; and of the
    /// sequences, and whatever else, that its defaults have come to read.
    ///
    /// # Errors
    /// Those of [`Ddl::enter`]; `0A000` for a type or a sequence that goes when the session ends, named by what stays.
    pub(super) fn hold_types(&mut self, relation: &Relation) -> Result<()> {
        for oid in self.extensions_of(relation) {
            self.enter_gated(Gated::Extension, oid, Mode::Write)?;
        }
        let types = super::type_texts::types_of(relation);
        for oid in &types {
            self.hold_named(*oid)?;
        }
        let read = self.sequences_read_by(&self.open.catalog.1, relation);
        self.hold_sequences(&read, relation.oid)?;
        let catalog = &self.open.catalog.1;
        if catalog.is_temporary(relation.namespace) {
            return Ok(());
        }
        let types = types.into_iter().chain(read);
        let mut named = types.filter_map(|oid| catalog.relation(oid));
        match named.find(|own| catalog.is_temporary(own.namespace)) {
            None => Ok(()),
            Some(own) => {
                let word = super::kind_word(&relation.kind);
                let gone = self.described(own);
                let what = format!("a {word} that outlives its temporary {gone}");
                Err(SqlError::unsupported(what))
            }
        }
    }

    /// Holds the gates of sequences that defaults of a relation read, but for those that they read before: who drops these finds the relation.
    ///
    /// # Errors
    /// Those of [`Ddl::enter`].
    fn hold_sequences(&mut self, read: &[Oid], by: Oid) -> Result<()> {
        let catalog = &self.open.catalog.1;
        let before = catalog.relation(by);
        let before = before.map_or(Vec::new(), |before| self.sequences_read_by(catalog, before));
        for oid in read {
            if *oid != by && !before.contains(oid) {
                self.enter(*oid, Mode::Write)?;
            }
        }
        Ok(())
    }

    /// The same of one type; of a domain, with those that it was made over: their conditions are its own.
    ///
    /// # Errors
    /// Those of [`Ddl::enter`].
    pub(super) fn hold_named(&mut self, oid: Oid) -> Result<()> {
        self.enter(oid, Mode::Write)?;
        let below = self.open.catalog.1.domains_of(oid);
        let below: Vec<Oid> = below.iter().map(|(relation, _)| relation.oid).collect();
        for oid in below {
            self.enter(oid, Mode::Write)?;
        }
        Ok(())
    }

    /// Under repeatable read, the image has all that is of a type that is held alone: what others have made of it since the snapshot would not be found.
    ///
    /// # Errors
    /// `40001`.
    pub(super) fn check_users_known(&self, of: Oid) -> Result<()> {
        self.check_known(|now, relation| {
            let mut types = super::type_texts::types_of(relation).into_iter();
            types.any(|oid| oid == of || now.is_domain_over(oid, of))
        })
    }

    /// The same of a schema that is held alone, and what is in it.
    ///
    /// # Errors
    /// `40001`.
    pub(super) fn check_inside_known(&self, schema: Oid) -> Result<()> {
        self.check_known(|_, relation| relation.namespace == schema)?;
        if !self.open.characteristics.repeatable {
            return Ok(());
        }
        let is_known = |other: &Extension| {
            let known = self.open.catalog.1.extension_by_oid(other.oid);
            known.is_some_and(|known| known.namespace == schema)
                || self.open.holds(other.oid, Mode::Alone)
        };
        let now = self.shared.catalog.now();
        let mut inside = now.extensions().into_iter();
        match inside.any(|other| other.namespace == schema && !is_known(other)) {
            false => Ok(()),
            true => Err(SqlError::changed_meanwhile()),
        }
    }

    /// The same of whatever `names` says of a relation in the image that all see.
    ///
    /// # Errors
    /// `40001`.
    pub(super) fn check_known(
        &self,
        names: impl Fn(&Catalog, &Arc<Relation>) -> bool,
    ) -> Result<()> {
        if !self.open.characteristics.repeatable {
            return Ok(());
        }
        let (own, now) = (&self.open.catalog.1, self.shared.catalog.now());
        for other in now.relations().into_iter().chain(now.user_types()) {
            let known = own.relation(other.oid);
            let is_same = known.is_some_and(|known| known.generation == other.generation);
            // What this transaction has changed or dropped it holds alone.
            if !is_same && names(&now, other) && !self.open.holds(other.oid, Mode::Alone) {
                return Err(SqlError::changed_meanwhile());
            }
        }
        Ok(())
    }
}
