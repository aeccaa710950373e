//! Queries of cursors and portals that are run as their rows are asked for: by programs, which begin again at the row that they stood at, and by operators, which stand still.
//!
//! What a piece reads has to be what the first one read (PC1 of `exec/pieces`). Under repeatable read that is the transaction's snapshot, with what it had written by then. Under read committed the
//! next statement draws another one: so the rest has a snapshot of its own, in a transaction of the engine that only reads. It does not see what the session's has written; where that has written
//! anything the query is run to its end instead, and so is one of a program whose rows do not come as they are read, and one for which there is no slot. The session's own definitions
//! take tables away that a rest in its transaction would read: such a rest is run to its end before. What operators have gathered before their first row (a sort, a group) they need not read
//! again: a rest whose tables are all read has no snapshot any more.
//!
//! Invariants:
//! - PI1 The rest goes with its cursor or portal, at the end of the session's transaction at the latest.
//! - PI2 Snapshots of rests are at most [`SNAPSHOTS_MAX`] a session, wait for no slot, and leave the slots that are kept back.
//! - PI3 A program reads a row again at most about as often as rows are asked for: a rest that would do so more often is run to its end.
//! - PI4 A rest that reads the session's transaction reads nothing behind a definition that takes away or changes what is there, nor behind a return to a savepoint that it was begun behind and
//!   that takes definitions back. Rows that are taken back are not found any more, and what is written later is not seen: commands are not numbered anew.

use super::activity::Activity;
use super::encode::Stored;
use super::row_store::RowStore;
use super::run::{Output, Sets};
use super::{Session, Waiting};
use crate::error::{Result, SqlError};
use crate::exec::Place;
use crate::general::Stands;
use crate::plan::{Program, ProgramKind};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use vellum::{OwnWrites, Transaction, TransactionOptions};
use vellum_row::Value;

/// Rows that are read ahead of those that are asked for, at most.
const AHEAD_MAX: u64 = 1024;
/// The same in bytes.
const AHEAD_BYTES: usize = 16 << 10;

/// Snapshots of their own that the cursors and portals of a session have, at most: each takes a slot of the engine.
const SNAPSHOTS_MAX: usize = 2;

/// How much is read of a query.
#[derive(Debug)]
pub(super) struct Piece {
    /// Rows that are asked for.
    asked: u64,
    /// Rows that may be read ahead.
    ahead: u64,
    /// Bytes of those that were.
    bytes: usize,
}

impl Piece {
    /// Counts a row of so many bytes; whether it was the last one.
    pub fn is_enough(&mut self, bytes: usize) -> bool {
        if self.asked > 0 {
            self.asked -= 1;
        } else {
            // What cannot stand still goes on.
            self.ahead = self.ahead.saturating_sub(1);
            self.bytes += bytes;
        }
        self.asked == 0 && (self.ahead == 0 || self.bytes >= AHEAD_BYTES)
    }
}

/// A transaction of the engine that reads and keeps a snapshot.
#[derive(Debug)]
struct OwnSnapshot {
    transaction: Transaction,
    /// Where it is told whose it is.
    told: Arc<Activity>,
}

impl Drop for OwnSnapshot {
    fn drop(&mut self) {
        self.told.drops_snapshot(self.transaction.id());
    }
}

/// What a rest reads.
#[derive(Debug)]
enum Reads {
    /// The session's transaction.
    Own,
    Snapshot(Box<OwnSnapshot>),
    /// No table any more.
    Nothing,
}

/// Where a query stands.
#[derive(Debug)]
enum At {
    Program(Place),
    Operators(Stands),
}

/// What has not been read of a query.
#[derive(Debug)]
pub(super) struct Rest {
    reads: Reads,
    /// Its number among all of the session.
    number: u64,
    at: At,
    /// What it ended with when it was run further than its rows were asked for.
    failure: Option<SqlError>,
    /// What of the session's own writes it sees.
    own: OwnWrites,
    program: Arc<Program>,
    params: Vec<Value>,
    /// Rows of the last piece.
    last: u64,
}

impl Rest {
    /// The transaction that it reads, if that is not the session's.
    pub fn transaction(&self) -> Option<&Transaction> {
        match &self.reads {
            Reads::Snapshot(own) => Some(&own.transaction),
            Reads::Own | Reads::Nothing => None,
        }
    }

    /// Where a program stands.
    pub fn place(&self) -> Option<&Place> {
        match &self.at {
            At::Program(place) => Some(place),
            At::Operators(_) => None,
        }
    }

    /// Where operators stand.
    pub fn stands(&self) -> Option<&Stands> {
        match &self.at {
            At::Program(_) => None,
            At::Operators(stands) => Some(stands),
        }
    }

    fn has_ended(&self) -> bool {
        match &self.at {
            At::Program(place) => place.has_ended(),
            At::Operators(stands) => stands.has_ended(),
        }
    }

    /// Whether it reads the session's transaction, and is the one of this number or a later one.
    pub fn reads_own_from(&self, number: u64) -> bool {
        matches!(self.reads, Reads::Own) && self.number >= number
    }
}

impl Session {
    /// Begins a query that can be run in pieces; `None`: it is to be run to its end. The statement is begun, and its program may be run.
    pub(super) fn begin_pieces(
        &mut self,
        program: &Arc<Program>,
        params: &[Value],
    ) -> Result<Option<Box<Rest>>> {
        let ProgramKind::Select(select) = &program.kind else {
            return Ok(None);
        };
        let alone = program.with.is_empty() && !program.reads_beside_its_writes();
        let at = match select.has_pieces() {
            true => At::Program(Place::default()),
            false if select.may_stand() => At::Operators(Stands::default()),
            false => return Ok(None),
        };
        let Some(open) = self.open.as_ref().filter(|_| alone) else {
            return Ok(None);
        };
        if params.len() < program.params.len() || self.explaining.is_some() {
            return Ok(None);
        }
        let mut reads = Reads::Own;
        if !open.characteristics.repeatable {
            if open.transaction.has_written() || self.activity.snapshots() >= SNAPSHOTS_MAX {
                return Ok(None);
            }
            let options = TransactionOptions::default()
                .read_only(true)
                .slot_timeout(Duration::ZERO)
                .leaves_reserved(true);
            vellum_sync::test_point!("pieces: a snapshot is drawn");
            let Ok(transaction) = self.shared.engine.begin_with(options) else {
                return Ok(None);
            };
            self.activity.keeps_snapshot(transaction.id());
            reads = Reads::Snapshot(Box::new(OwnSnapshot {
                transaction,
                told: self.activity.clone(),
            }));
            // The end of the session's transaction waits until what that has read is durable (R7): it reads nothing older than the rows that are told in it.
            open.transaction.begin_statement()?;
            // Tables may have become others between the statement's snapshot and this one.
            if self.shared.catalog.number() != open.catalog.0 {
                self.refresh_image()?;
                return Ok(None);
            }
        }
        self.check_program(program)?;
        let number = self.pieces_begun;
        self.pieces_begun += 1;
        Ok(Some(Box::new(Rest {
            reads,
            number,
            at,
            failure: None,
            own: open.transaction.own_writes(),
            program: program.clone(),
            params: params.to_vec(),
            last: 0,
        })))
    }

    /// Reads on until so many rows are kept, or all, and then there is no rest; a few more if it has been asked before. What fails behind as many is told when it is asked for.
    ///
    /// # Errors
    /// The query's. Rows before it are kept.
    pub(super) fn read_pieces(
        &mut self,
        unread: &mut Option<Box<Rest>>,
        wanted: Option<u64>,
        (rows, stored): (&mut RowStore, &Stored),
    ) -> Result<()> {
        let missing = wanted.map_or(u64::MAX, |wanted| wanted.saturating_sub(rows.len()));
        let Some(rest) = unread.as_mut().filter(|_| missing > 0) else {
            return Ok(());
        };
        if let Some(failure) = &rest.failure {
            return Err(failure.clone());
        }
        let rows_before = rows.len();
        // Who asks again asks for more.
        let mut piece = Piece {
            asked: missing,
            ahead: rest
                .last
                .saturating_mul(2)
                .min(AHEAD_MAX)
                .saturating_sub(missing),
            bytes: 0,
        };
        // One row of the first table that has many partners, each piece of which begins with them all again (PI3).
        let repeats = rest.place().map_or(0, Place::repeats);
        if repeats / 2 > missing.max(AHEAD_MAX) {
            piece.asked = u64::MAX;
        }
        let cancel = self.cancel.clone();
        let waiting: Waiting<'_> = self.waiting(&cancel);
        let lists = [rest.params.as_slice()];
        let mut sets = Sets::of(&lists, None);
        sets.rest = Some(&**rest);
        let mut output = Output::Piece(rows, &stored.schema, &mut piece);
        let all = self.see_own_writes(rest.own);
        let done = self.run_once(
            &rest.program,
            &mut sets,
            &[],
            &RefCell::new(waiting),
            &mut output,
        );
        if let Some(all) = all {
            self.see_own_writes(all);
        }
        rest.last = rows.len() - rows_before;
        if rest.stands().is_some_and(|stands| !stands.reads()) {
            rest.reads = Reads::Nothing;
        }
        match &done {
            // Operators fail once.
            Err(error) if rest.stands().is_some() => rest.failure = Some(error.clone()),
            _ if rest.has_ended() => *unread = None,
            _ => {}
        }
        match done {
            Err(error) if error.is_of_data() && wanted.is_some_and(|all| rows.len() >= all) => {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// Before the session's transaction changes the catalog, or takes changes of it back: rests that read it are run to their end, those that were begun from this number on (PI4).
    ///
    /// # Errors
    /// What ends a statement from outside, and limits; what a query fails with is told when its rows are asked for.
    pub(super) fn end_pieces(&mut self, from: u64) -> Result<()> {
        self.end_cursors(from)?;
        self.end_portals(from)
    }

    /// The same of one.
    pub(super) fn end_rest(
        &mut self,
        unread: &mut Option<Box<Rest>>,
        from: u64,
        kept: (&mut RowStore, &Stored),
    ) -> Result<()> {
        let reads = |rest: &&mut Box<Rest>| rest.reads_own_from(from) && rest.failure.is_none();
        if unread.as_mut().filter(reads).is_none() {
            return Ok(());
        }
        match self.read_pieces(unread, None, kept) {
            Err(error) if error.is_of_data() => {
                if let Some(rest) = unread {
                    rest.failure = Some(error);
                }
                Ok(())
            }
            done => done,
        }
    }

    /// From now on the session's transaction sees these of its own writes; which it saw before.
    fn see_own_writes(&self, seen: OwnWrites) -> Option<OwnWrites> {
        let open = self.open.as_ref()?;
        Some(open.transaction.see_own_writes(seen))
    }
}
