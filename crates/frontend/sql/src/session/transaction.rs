//! The transaction of a session: begun by a statement or by BEGIN, with the image of the catalog that belongs to its
//! snapshot, the gates that it holds, and its savepoints.
//!
//! Levels: both are the engine's `Statement` isolation, which leaves the transaction usable after a conflict. Under read committed each statement
//! draws a snapshot, and one that meets a conflict waits and runs again as of later. Under repeatable read there is the first snapshot
//! only: a statement runs again if whoever was in its way has rolled back, and else fails with `40001`.
//!
//! Crash: a commit with DDL publishes its image only after the engine has committed (C2); a crash before publishing loses
//! nothing, because the image is read from the engine's rows at the next open.

use super::activity::Activity;
use super::exports::{Exported, Exporting, OwnExports};
use super::{Saying, Waiting, forgotten};
use crate::catalog::{Catalog, Change, Gate, Gated, Mode, Next, Oid, Store};
use crate::database::Shared;
use crate::error::{Result, SqlError};
use crate::exec::{Deferred, OwedMark, OwedPoint};
use crate::lock::{HeldAdvisory, HeldLocks, WaitsAt};
use crate::numbers::OwnNumber;
use crate::sqlstate;
use std::cell::RefCell;
use std::sync::Arc;
use vellum::{Durability, Isolation, Savepoint, Transaction, TransactionOptions};
use vellum_row::datetime::Timestamp;

/// How a transaction is begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Characteristics {
    pub repeatable: bool,
    /// READ UNCOMMITTED was asked for, which is read committed by another name.
    pub uncommitted: bool,
    pub read_only: bool,
    pub asynchronous: bool,
}

impl Characteristics {
    /// The name of its level.
    pub fn level(self) -> &'static str {
        match self {
            Self {
                repeatable: true, ..
            } => "repeatable read",
            Self {
                uncommitted: true, ..
            } => "read uncommitted",
            _ => "read committed",
        }
    }
}

impl Characteristics {
    /// What its transaction of the engine is begun with.
    fn options(self) -> TransactionOptions {
        let durability = match self.asynchronous {
            true => Durability::Async,
            false => Durability::Sync,
        };
        TransactionOptions::default()
            .isolation(Isolation::Statement)
            .durability(durability)
            .read_only(self.read_only)
    }
}

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Open {
    // First: dropped before the gates open.
    pub transaction: Transaction,
    pub number: OwnNumber,
    gates: Gates,
    /// Locks on rows.
    pub held: HeldLocks,
    /// Locks on numbers.
    pub advisory: HeldAdvisory,
    /// What it says when it has committed.
    pub saying: Saying,
    /// What it has yet to check.
    pub deferred: RefCell<Deferred>,
    /// The number and the image that it works with (C1, C2).
    pub catalog: (u64, Arc<Catalog>),
    /// The number and the image that tell who may do what, if they are not those that it works with: its snapshot stays, rights do not.
    rights: Option<(u64, Arc<Catalog>)>,
    changes: Vec<Change>,
    /// The number and the image of its snapshot without its changes, if it has made any.
    unchanged: Option<(u64, Arc<Catalog>)>,
    /// The snapshots that it has exported.
    exports: OwnExports,
    savepoints: Vec<Mark>,
    pub characteristics: Characteristics,
    /// `now()`.
    pub now: Timestamp,
    /// Whether a statement has run in it.
    pub used: bool,
    /// Whether it was begun before its first statement, by BEGIN.
    pub begun_before: bool,
}

/// What a session has done by a savepoint, beside its transaction: what it did later is undone with that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// How many cursors it had declared.
    pub cursors: u64,
    /// How many portals it had bound.
    pub portals: u64,
    /// How many settings it had changed.
    pub settings: usize,
    /// How many queries in pieces it had begun.
    pub pieces: u64,
}

/// A SAVEPOINT.
#[derive(Debug)]
struct Mark {
    name: String,
    at: Savepoint,
    locks: usize,
    advisory: usize,
    said: (usize, usize),
    deferred: OwedMark,
    beside: Beside,
    catalog: (u64, Arc<Catalog>),
    changes: usize,
    /// Gates that are taken behind it are given back with what was done there.
    gates: HeldGates,
    /// What it was said to be is so behind it, too.
    read_only: bool,
}

/// A point in a transaction to go back to within a statement.
#[derive(Debug)]
pub(crate) struct Point {
    at: Savepoint,
    locks: usize,
    advisory: usize,
    said: (usize, usize),
    deferred: OwedPoint,
}

/// The same before a statement that may change the catalog.
#[derive(Debug)]
pub(crate) struct DefinitionPoint {
    statement: Point,
    catalog: (u64, Arc<Catalog>),
    changes: usize,
}

/// Gates that are held; they open when this is dropped.
#[derive(Debug, Default)]
struct Gates {
    held: Vec<(Oid, Arc<Gate>, Mode)>,
    /// How often one was taken, or taken alone that was held with others.
    taken: usize,
    /// Where it is told that they are, each time.
    told: Option<Arc<Activity>>,
}

/// The gates that are held at a point.
#[derive(Debug)]
struct HeldGates {
    modes: Box<[Mode]>,
    taken: usize,
}

impl Gates {
    fn point(&self) -> HeldGates {
        HeldGates {
            modes: self.held.iter().map(|(.., mode)| *mode).collect(),
            taken: self.taken,
        }
    }

    /// Gives back what was taken behind a point.
    fn go_back(&mut self, point: &HeldGates) {
        if self.taken <= point.taken {
            return;
        }
        self.taken = point.taken;
        if let Some(told) = &self.told {
            told.holds_first(point.taken);
        }
        for (_, gate, mode) in self.held.drain(point.modes.len()..) {
            gate.leave(mode);
        }
        for ((_, gate, mode), before) in self.held.iter_mut().zip(&point.modes) {
            if *mode != *before {
                *mode = *before;
                gate.let_others_write();
            }
        }
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        if self.held.is_empty() {
            return;
        }
        if let Some(told) = &self.told {
            told.holds_none();
        }
        for (_, gate, mode) in self.held.drain(..) {
            gate.leave(mode);
        }
    }
}

/// A session that begins a transaction.
pub(crate) struct Beginner<'b> {
    pub activity: &'b Arc<Activity>,
    pub waiting: Waiting<'b>,
    /// A superuser has logged in: it may have the slots that are kept back.
    pub superuser: bool,
}

impl Beginner<'_> {
    /// Begins a transaction of the engine.
    fn lease(&self, shared: &Shared, options: TransactionOptions) -> Result<Transaction> {
        let options = options.leaves_reserved(!self.superuser);
        self.waiting.begin(&shared.engine, options)
    }
}

/// Microseconds from 1970 to 2000.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// The time of day.
pub(crate) fn clock_time() -> Timestamp {
    Timestamp(vellum_base::clock::calendar_micros() - EPOCH_MICROS)
}

impl Open {
    /// Begins; `session` is whose it is, if it is one's. Waits for a slot of the engine, and hears of what ends the statement meanwhile.
    ///
    /// # Errors
    /// `53300` if all slots are taken; `57014`, `57P01`.
    pub fn begin(
        shared: &Shared,
        session: Option<Beginner<'_>>,
        known: &mut (u64, Arc<Catalog>),
        characteristics: Characteristics,
    ) -> Result<Box<Self>> {
        let options = characteristics.options();
        let begin = || match &session {
            Some(session) => session.lease(shared, options),
            None => Ok(shared.engine.begin_with(options)?),
        };
        let transaction = shared.catalog.with_snapshot(known, begin)?;
        let session = session.map(|session| session.activity);
        Ok(Self::of(
            shared,
            session,
            transaction,
            known.clone(),
            characteristics,
        ))
    }

    /// Begins at an exported snapshot.
    ///
    /// # Errors
    /// `53300` if all slots are taken; `72000` if the snapshot was withdrawn.
    pub fn begin_at(
        shared: &Shared,
        session: Beginner<'_>,
        exported: &Exported,
        characteristics: Characteristics,
    ) -> Result<Box<Self>> {
        let options = characteristics.options();
        let options = options.leaves_reserved(!session.superuser);
        let transaction = shared.engine.begin_at(&exported.kept, options)?;
        let catalog = exported.catalog.clone();
        Ok(Self::of(
            shared,
            Some(session.activity),
            transaction,
            catalog,
            characteristics,
        ))
    }

    fn of(
        shared: &Shared,
        session: Option<&Arc<Activity>>,
        transaction: Transaction,
        catalog: (u64, Arc<Catalog>),
        characteristics: Characteristics,
    ) -> Box<Self> {
        let held = HeldLocks::new(shared.locks.clone(), shared.waits.clone(), transaction.id());
        let now = clock_time();
        if let Some(session) = session {
            session.is_in(transaction.id(), now);
        }
        let number = session.map_or(0, |session| session.number);
        let advisory = HeldAdvisory::new(shared.advisory.clone(), number, transaction.id());
        // Too large to be moved from hand to hand, for each statement.
        Box::new(Self {
            transaction,
            number: OwnNumber::default(),
            gates: Gates {
                held: Vec::new(),
                taken: 0,
                told: session.cloned(),
            },
            held,
            advisory,
            saying: Saying::default(),
            deferred: RefCell::default(),
            catalog,
            rights: None,
            changes: Vec::new(),
            unchanged: None,
            exports: OwnExports::default(),
            savepoints: Vec::new(),
            characteristics,
            now,
            used: false,
            begun_before: false,
        })
    }

    /// What `pg_export_snapshot` exports.
    pub fn exporting(&self) -> Exporting<'_> {
        let unchanged = self.unchanged.as_ref().filter(|_| self.has_changes());
        Exporting {
            transaction: &self.transaction,
            own: &self.exports,
            catalog: unchanged.unwrap_or(&self.catalog),
            within: self.has_savepoints(),
        }
    }

    /// A statement starts.
    ///
    /// # Errors
    /// `72000` for a snapshot that was withdrawn.
    pub fn begin_statement(&mut self, shared: &Shared) -> Result<()> {
        let first = !std::mem::replace(&mut self.used, true);
        // Whoever has said BEGIN may have waited since: the first statement sees what was committed by then.
        if (first && self.begun_before) || (!first && !self.characteristics.repeatable) {
            let transaction = &self.transaction;
            let draw = || transaction.begin_statement();
            // Those of the snapshot's image are the newest again.
            self.rights = None;
            if self.changes.is_empty() {
                shared.catalog.with_snapshot(&mut self.catalog, draw)?;
                return Ok(());
            }
            let mut newest = self.catalog.clone();
            shared.catalog.with_snapshot(&mut newest, draw)?;
            if newest.0 != self.catalog.0 {
                // What it has changed itself goes on top of what others have committed since: gates, and conflicts of the catalog's rows, have
                // kept these from the same relations.
                let version = shared.catalog.draw_version();
                self.unchanged = Some(newest.clone());
                newest.1 = Arc::new(newest.1.with_all(&self.changes, version));
                self.catalog = newest;
            }
        } else if !first {
            self.look_at_rights(shared);
        }
        Ok(())
    }

    /// Has the rights of now, with what it has changed of them itself. Says whether others have changed the catalog since it had those that it had.
    pub fn look_at_rights(&mut self, shared: &Shared) -> bool {
        if self.rights().0 == shared.catalog.number() {
            return false;
        }
        self.rights = Some(self.rights_now(shared));
        true
    }

    /// The image that tells who may do what, as of this moment.
    pub fn rights_now(&self, shared: &Shared) -> (u64, Arc<Catalog>) {
        let (number, mut newest) = shared.catalog.numbered();
        if !self.changes.is_empty() {
            let version = shared.catalog.draw_version();
            newest = Arc::new(newest.with_all(&self.changes, version));
        }
        (number, newest)
    }

    /// The image that tells who may do what, as of when the statement began, whatever the snapshot: who has lost a right has lost it. Relations that others have dropped
    /// since are not there.
    pub fn rights(&self) -> &(u64, Arc<Catalog>) {
        self.rights.as_ref().unwrap_or(&self.catalog)
    }

    /// Where a statement begins.
    ///
    /// # Errors
    /// As the engine's.
    pub fn point(&self) -> Result<Point> {
        Ok(Point {
            at: self.transaction.savepoint()?,
            locks: self.held.count(),
            advisory: self.advisory.count(),
            said: self.saying.point(),
            deferred: self.deferred.borrow().point(),
        })
    }

    /// Reverts what a statement did, so that it is in nobody's way while it waits.
    ///
    /// # Errors
    /// Storage errors.
    pub fn undo_statement(&mut self, point: &Point) -> Result<()> {
        self.revert_to(&point.at)?;
        self.advisory.undo_statement(point.advisory);
        self.saying.go_back(point.said);
        self.deferred.get_mut().go_back(point.deferred);
        self.held.release_to(point.locks);
        Ok(())
    }

    /// Takes back what was written behind a point, and tells those that have met it.
    fn revert_to(&self, at: &Savepoint) -> Result<()> {
        let commands = self.transaction.commands_since(at);
        self.transaction.rollback_to(at)?;
        self.held.reverted(commands);
        Ok(())
    }

    /// Where a statement begins that may change the catalog.
    ///
    /// # Errors
    /// As the engine's.
    pub fn definition_point(&self) -> Result<DefinitionPoint> {
        Ok(DefinitionPoint {
            statement: self.point()?,
            catalog: self.catalog.clone(),
            changes: self.changes.len(),
        })
    }

    /// Reverts such a statement. The gates that it has taken stay held.
    ///
    /// # Errors
    /// Storage errors.
    pub fn undo_definition(&mut self, shared: &Shared, point: &DefinitionPoint) -> Result<()> {
        self.undo_statement(&point.statement)?;
        self.take_changes_back(shared, &point.catalog, point.changes);
        Ok(())
    }

    /// The catalog is as it was when so many changes had been made.
    fn take_changes_back(
        &mut self,
        shared: &Shared,
        catalog: &(u64, Arc<Catalog>),
        changes: usize,
    ) {
        self.catalog = catalog.clone();
        let undone = self.changes.split_off(changes);
        if self.rights.take().is_some() {
            self.look_at_rights(shared);
        }
        forgotten::behind_rollback(shared, &undone, Some(&catalog.1));
    }

    /// Takes the gate of a relation, and says whether the image is still right about it (G1). Without `waiting` at once or not at all.
    ///
    /// # Errors
    /// `57014`, `40P01` while waiting; `55P03`.
    pub fn enter(
        &mut self,
        shared: &Shared,
        oid: Oid,
        mode: Mode,
        waiting: Option<&mut Waiting<'_>>,
    ) -> Result<bool> {
        let Some(relation) = self.catalog.1.relation(oid).cloned() else {
            return Ok(false);
        };
        let gate = &relation.runtime.gate;
        if self.pass(shared, (oid, gate), mode, waiting, || {
            format!("relation \"{}\"", relation.name)
        })? {
            return Ok(true);
        }
        let own = self.changes.iter().any(|change| match change {
            Change::PutRelation(changed) => changed.oid == oid,
            Change::DropRelation(dropped) => *dropped == oid,
            _ => false,
        });
        let published = shared.catalog.now();
        let now = published.relation(oid).map(|relation| relation.generation);
        Ok(own || now == Some(relation.generation))
    }

    /// Takes the gate of what is no relation, and says whether it is still there.
    ///
    /// # Errors
    /// `57014`, `40P01` while waiting; `55P03`.
    pub fn enter_gated(
        &mut self,
        shared: &Shared,
        (what, oid): (Gated, Oid),
        mode: Mode,
        waiting: &mut Waiting<'_>,
    ) -> Result<bool> {
        // Roles are those of now, whatever the snapshot.
        let image = match what {
            Gated::Role => &self.rights().1,
            Gated::Schema | Gated::Extension => &self.catalog.1,
        };
        let Some(called) = what.called(image, oid) else {
            return Ok(false);
        };
        let gate = shared.gates.of(oid);
        let name = || called.clone();
        self.pass(shared, (oid, &gate), mode, Some(waiting), name)?;
        let own = self
            .changes
            .iter()
            .any(|change| what.is_put_by(change, oid));
        Ok(own || what.called(&shared.catalog.now(), oid).is_some())
    }

    /// Takes a gate, and says whether the transaction had it before.
    fn pass(
        &mut self,
        shared: &Shared,
        (oid, gate): (Oid, &Arc<Gate>),
        mode: Mode,
        waiting: Option<&mut Waiting<'_>>,
        name: impl Fn() -> String,
    ) -> Result<bool> {
        let at = self.gates.held.iter().position(|(other, ..)| *other == oid);
        let held = at.map(|at| self.gates.held[at].2);
        if held >= Some(mode) {
            return Ok(true);
        }
        if !gate.try_enter(held, mode) {
            let Some(waiting) = waiting else {
                let message = format!("could not obtain lock on {}", name());
                return Err(SqlError::new(sqlstate::LOCK_NOT_AVAILABLE, message));
            };
            let own = self.held.own();
            waiting.start();
            let done = gate.enter(held, mode, waiting, || {
                let (waits, at) = (&shared.waits, WaitsAt::Gate(oid, mode));
                let others = shared.activities.in_the_way(own, oid, mode);
                if mode == Mode::Write && others.is_empty() {
                    let past = waits.waits_behind(own, at, WaitsAt::Gate(oid, Mode::Alone));
                    return Ok(if past { Next::GoPast } else { Next::Wait });
                }
                waits.waits_elsewhere(own, at, others)?;
                Ok(Next::Wait)
            });
            shared.waits.waits_no_more(own);
            shared.waits.counted(done)?;
        }
        match at {
            Some(at) => self.gates.held[at].2 = mode,
            None => self.gates.held.push((oid, gate.clone(), mode)),
        }
        self.gates.taken += 1;
        if let Some(told) = &self.gates.told {
            told.holds(self.held.own(), oid, mode);
        }
        Ok(held.is_some())
    }

    /// Whether it holds a relation's gate, as `mode` at least.
    pub fn holds(&self, oid: Oid, mode: Mode) -> bool {
        let mut gates = self.gates.held.iter();
        gates.any(|(held, _, how)| *held == oid && *how >= mode)
    }

    /// Whether it has changed the catalog.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Whether it holds any gate.
    pub fn holds_any(&self) -> bool {
        !self.gates.held.is_empty()
    }

    /// Changes the catalog, for this transaction until it commits.
    ///
    /// # Errors
    /// `42P07`, conflicts; `XX000` for a table that would refer to what is not there (C4).
    pub fn change(&mut self, shared: &Shared, change: Change) -> Result<()> {
        let version = shared.catalog.draw_version();
        let next = self.catalog.1.with(&change, version);
        if let Change::PutRelation(relation) = &change
            && !next.is_whole_around(relation)
        {
            let message = format!("relation \"{}\" refers to what is not there", relation.name);
            return Err(SqlError::internal(message));
        }
        Store::write(&self.transaction, &self.catalog.1, &change)?;
        if self.changes.is_empty() {
            self.unchanged = Some(self.catalog.clone());
        }
        // No published image has this number: the next refresh would replace it, and is not asked for.
        self.catalog.1 = Arc::new(next);
        if let Some((_, rights)) = &mut self.rights {
            let version = shared.catalog.draw_version();
            *rights = Arc::new(rights.with(&change, version));
        }
        self.changes.push(change);
        Ok(())
    }

    /// Commits; waits until it is durable if it is to be.
    ///
    /// # Errors
    /// What the engine reports.
    pub fn commit(self: Box<Self>, shared: &Shared) -> Result<()> {
        let Self {
            transaction,
            number,
            gates,
            held,
            advisory,
            changes,
            characteristics,
            ..
        } = *self;
        let id = held.own();
        if changes.is_empty() {
            let pending = transaction.commit_deferred()?;
            number.committed();
            drop((gates, held, advisory));
            shared.waits.ended(id);
            // What it read must last, too (R7).
            if !characteristics.asynchronous && !pending.is_durable() {
                pending.wait()?;
            }
            return Ok(());
        }
        let before = shared.catalog.now();
        let pending = shared
            .catalog
            .publish(&changes, || transaction.commit_deferred())?;
        number.committed();
        drop((gates, held, advisory));
        shared.waits.ended(id);
        forgotten::behind_commit(shared, &changes, &before);
        if !characteristics.asynchronous {
            pending.wait()?;
        }
        Ok(())
    }

    /// Rolls back.
    pub fn roll_back(self: Box<Self>, shared: &Shared) {
        let Self {
            transaction,
            gates,
            held,
            advisory,
            changes,
            ..
        } = *self;
        let id = held.own();
        // What fails here, maintenance tries again; nobody sees anything of it.
        let _ = transaction.rollback();
        drop((gates, held, advisory));
        shared.waits.ended(id);
        forgotten::behind_rollback(shared, &changes, None);
    }

    /// SAVEPOINT.
    ///
    /// # Errors
    /// `25P02` and its like.
    pub fn savepoint(&mut self, name: String, beside: Beside) -> Result<()> {
        let at = self.transaction.savepoint()?;
        self.savepoints.push(Mark {
            name,
            at,
            locks: self.held.count(),
            advisory: self.advisory.count(),
            said: self.saying.point(),
            deferred: self.deferred.borrow().mark(),
            beside,
            catalog: self.catalog.clone(),
            changes: self.changes.len(),
            gates: self.gates.point(),
            read_only: self.characteristics.read_only,
        });
        Ok(())
    }

    /// RELEASE.
    ///
    /// # Errors
    /// `3B001`.
    pub fn release(&mut self, name: &str) -> Result<()> {
        let at = self.mark(name)?;
        self.characteristics.read_only = self.savepoints[at].read_only;
        self.savepoints.truncate(at);
        Ok(())
    }

    /// ROLLBACK TO. Returns what the session had done by then. Gates that were taken behind the savepoint are given back: what they were taken for is gone, and all that stays was
    /// written behind gates that had been taken before (G4).
    ///
    /// # Errors
    /// `3B001`; storage errors.
    pub fn roll_back_to(&mut self, shared: &Shared, name: &str) -> Result<Beside> {
        let at = self.mark(name)?;
        self.savepoints.truncate(at + 1);
        let mark = &self.savepoints[at];
        let (catalog, changes) = (mark.catalog.clone(), mark.changes);
        let beside = mark.beside;
        self.characteristics.read_only = mark.read_only;
        self.revert_to(&mark.at)?;
        self.held.release_to(mark.locks);
        self.advisory.release_to(mark.advisory);
        self.saying.go_back(mark.said);
        self.deferred.get_mut().go_back_to(&mark.deferred);
        self.take_changes_back(shared, &catalog, changes);
        // Last: who enters finds nothing of what was taken back.
        self.gates.go_back(&self.savepoints[at].gates);
        Ok(beside)
    }

    /// Whether there is a savepoint to go back to.
    pub fn has_savepoints(&self) -> bool {
        !self.savepoints.is_empty()
    }

    /// What had been done beside the transaction by the last savepoint, and whether the catalog was changed behind it; `None`, if there is none.
    pub fn beside_at_last(&self) -> Option<(Beside, bool)> {
        self.savepoints.last().map(|mark| self.beside_of(mark))
    }

    /// The same of the savepoint of a name.
    ///
    /// # Errors
    /// `3B001`.
    pub fn beside_at(&self, name: &str) -> Result<(Beside, bool)> {
        Ok(self.beside_of(&self.savepoints[self.mark(name)?]))
    }

    fn beside_of(&self, mark: &Mark) -> (Beside, bool) {
        (mark.beside, self.changes.len() > mark.changes)
    }

    /// Undoes what was done behind the last savepoint, if there is one.
    ///
    /// # Errors
    /// Storage errors.
    pub fn undo_to_last_savepoint(&mut self, shared: &Shared) -> Result<()> {
        match self.savepoints.last().map(|mark| mark.name.clone()) {
            Some(name) => self.roll_back_to(shared, &name).map(|_| ()),
            None => Ok(()),
        }
    }

    fn mark(&self, name: &str) -> Result<usize> {
        let at = self.savepoints.iter().rposition(|mark| mark.name == name);
        at.ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(sqlstate::INVALID_SAVEPOINT_SPECIFICATION, message)
        })
    }
}

/// `0A000`.
#[cold]
pub(crate) fn no_serializable() -> SqlError {
    SqlError::unsupported("the isolation level SERIALIZABLE")
        .with_hint("Use REPEATABLE READ, which is snapshot isolation.")
}
