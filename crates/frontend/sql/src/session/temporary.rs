//! Temporary relations: what a session has for itself, and when it goes.
//!
//! They are relations like others, with their rows in the engine and in the catalog, in a schema of the session's own (`pg_temp_N`, N its oid), which
//! names are looked up in first. Nobody else's names find it, and who names it is refused. The schema is dropped with all in it when the session ends.
//!
//! Crash: the schemas of sessions that were open stay behind, and are dropped when the database is opened.

use super::Session;
use super::environment::Asked;
use super::run::is_conflict;
use super::transaction::{Characteristics, Open};
use crate::catalog::{Catalog, Change, Kind, Oid};
use crate::database::Shared;
use crate::ddl::Ddl;
use crate::error::{Fields, Result, SqlError};
use crate::lock::Obstacle;
use std::sync::Arc;

/// What becomes of a temporary table when a transaction commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtCommit {
    DeleteRows,
    Drop,
}

/// The temporary relations of a session.
#[derive(Debug, Default)]
pub(crate) struct Temporary {
    /// Their schema, once it was asked for. Images have it only if the transaction that made it has committed, or is this one.
    pub namespace: Option<Oid>,
    /// Tables that commits do something to; those whose transaction was rolled back are among them until the next one.
    pub at_commit: Vec<(Oid, AtCommit)>,
}

impl Temporary {
    /// Their schema, if this image has it.
    pub fn namespace_in(&self, image: &Catalog) -> Option<Oid> {
        self.namespace
            .filter(|oid| image.namespace_by_oid(*oid).is_some())
    }
}

/// How often a definition begins again because of what was committed between its snapshot and what it wants to write; it waits for nobody then.
const NEWER_MAX: u32 = 100;

impl Session {
    /// What ON COMMIT says, before the transaction commits.
    ///
    /// # Errors
    /// What the engine reports; the transaction is not to be committed.
    pub(super) fn act_at_commit(&mut self) -> Result<()> {
        if self.open.is_none() || self.temporary.at_commit.is_empty() {
            return Ok(());
        }
        self.with_ddl("", |ddl| ddl.act_at_commit())
            .map(|((), _)| ())
    }

    /// DISCARD TEMP.
    ///
    /// # Errors
    /// As DROP.
    pub(super) fn discard_temporary(&mut self) -> Result<()> {
        self.start_statement()?;
        self.with_ddl("", |ddl| ddl.drop_temporary())
            .map(|((), _)| ())
    }

    /// Runs what changes the catalog, in the transaction that is open; from its beginning again where others have changed the catalog until it had its gates
    /// (`ddl::gates`), and when whoever has written what it wants to write, such as a name, has ended. What it says stands behind its result.
    ///
    /// # Errors
    /// Those of the work.
    pub(super) fn with_ddl<R>(
        &mut self,
        text: &str,
        mut work: impl FnMut(&mut Ddl<'_>) -> Result<R>,
    ) -> Result<(R, Vec<Fields>)> {
        let cancel = self.cancel.clone();
        let memory = self.settings.number("maintenance_work_mem");
        let acting = self.acting();
        let mut waiting = self.waiting(&cancel);
        let mut tries = 0;
        let at_commit = self.temporary.at_commit.clone();
        let mut point = None;
        loop {
            let search_path = self.search_path();
            let forms = self.settings.forms.clone();
            let Some(open) = &mut self.open else {
                return Err(SqlError::internal("a statement without transaction"));
            };
            // Between messages of one transaction it was told that the session rests.
            self.activity.is_in(open.transaction.id(), open.now);
            if point.is_none() {
                point = Some(open.definition_point()?);
            }
            let mut ddl = Ddl {
                shared: &self.shared,
                open,
                search_path: search_path.to_vec(),
                forms: &forms,
                text,
                role: acting.role,
                waiting: waiting.anew(),
                memory: usize::try_from(memory.saturating_mul(1024)).unwrap_or(usize::MAX),
                notices: Vec::new(),
                temporary: &mut self.temporary,
                asked: Asked {
                    settings: &self.settings,
                    options: &self.options,
                    acting,
                    sequences: &self.sequences,
                    random: &self.random,
                    statements: &self.statements,
                    cursors: &self.cursors,
                    portals: &self.portals,
                    session: self.activity.number,
                },
                again: false,
            };
            let done = work(&mut ddl);
            let meets = matches!(&done, Err(error) if is_conflict(error));
            let blocker = ddl.open.transaction.take_blocker().filter(|_| meets);
            // What it has met has been committed since its snapshot, unless that is the transaction's.
            let newer = meets && !ddl.open.characteristics.repeatable && tries < NEWER_MAX;
            if done.is_ok() || !(ddl.again || newer || blocker.is_some()) {
                return Ok((done?, ddl.notices));
            }
            tries += u32::from(newer && blocker.is_none());
            if let Some(point) = &point {
                ddl.open.undo_definition(&self.shared, point)?;
            }
            if let Some(blocker) = blocker {
                let own = open.held.own();
                let writer = Obstacle::Writer(blocker);
                self.shared.waits.wait(own, &writer, &mut waiting)?;
            } else {
                waiting.look_cancelled()?;
            }
            open.begin_statement(&self.shared)?;
            self.temporary.at_commit.clone_from(&at_commit);
            self.know_types();
        }
    }

    /// The session ends: its temporary relations go.
    pub(super) fn leave_temporary(&mut self) {
        let namespace = self.temporary.namespace;
        let image = self.shared.catalog.now();
        if let Some(oid) = namespace.filter(|oid| image.namespace_by_oid(*oid).is_some()) {
            self.shared.left_behind.lock().push(oid);
            drop_left_behind(&self.shared);
        }
    }
}

/// Drops the schemas of sessions that have ended. What cannot be dropped now, because no slot is free or the disk is full, is tried again when the next
/// session ends, and when the database is opened.
pub(crate) fn drop_left_behind(shared: &Shared) {
    let ended = std::mem::take(&mut *shared.left_behind.lock());
    for namespace in ended {
        if drop_schema(shared, namespace).is_err() {
            shared.left_behind.lock().push(namespace);
        }
    }
}

fn drop_schema(shared: &Shared, namespace: Oid) -> Result<()> {
    let characteristics = Characteristics {
        repeatable: false,
        uncommitted: false,
        read_only: false,
        asynchronous: true,
    };
    let mut known = (u64::MAX, shared.catalog.now());
    let mut open = Open::begin(shared, None, &mut known, characteristics)?;
    let done = drop_all_in(shared, &mut open, namespace);
    match done {
        Ok(()) => open.commit(shared),
        Err(error) => {
            open.roll_back(shared);
            Err(error)
        }
    }
}

/// Nobody writes these tables and nobody changes them: their session has ended, and others are refused. So no gate is taken.
fn drop_all_in(shared: &Shared, open: &mut Open, namespace: Oid) -> Result<()> {
    let image: Arc<Catalog> = open.catalog.1.clone();
    if image.namespace_by_oid(namespace).is_none() {
        return Ok(());
    }
    // Types behind the tables that have columns of them.
    for relation in image.relations().into_iter().chain(image.user_types()) {
        if relation.namespace != namespace {
            continue;
        }
        if let Kind::Table(table) = &relation.kind {
            for storage in table.storages() {
                open.transaction.drop_table(&storage.name)?;
            }
        }
        open.change(shared, Change::DropRelation(relation.oid))?;
    }
    open.change(shared, Change::DropNamespace(namespace))
}
