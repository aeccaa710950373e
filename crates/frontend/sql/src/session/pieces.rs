//! Queries of cursors and portals that are run as their rows are asked for.
//!
//! What a piece reads has to be what the first one read (PC1 of `exec/pieces`). Under repeatable read that is the transaction's snapshot, with what it had written by then. Under read committed the
//! next statement draws another one: so the rest has a snapshot of its own, in a transaction of the engine that only reads. It does not see what the session's has written; where that has written
//! anything the query is run to its end instead, and so is one whose rows do not come as they are read, WITH HOLD, and one for which there is no slot.
//!
//! Invariants:
//! - PI1 The rest goes with its cursor or portal, at the end of the session's transaction at the latest.

use super::encode::Stored;
use super::row_store::RowStore;
use super::run::{Output, Sets};
use super::{Session, Waiting};
use crate::error::Result;
use crate::exec::Place;
use crate::plan::{Program, ProgramKind};
use std::cell::RefCell;
use std::sync::Arc;
use vellum::{OwnWrites, Transaction, TransactionOptions};
use vellum_row::Value;

/// Rows that are read ahead of those that are asked for, at most.
const AHEAD_MAX: u64 = 1024;
/// The same in bytes.
const AHEAD_BYTES: usize = 16 << 10;

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
            self.ahead -= 1;
            self.bytes += bytes;
        }
        self.asked == 0 && (self.ahead == 0 || self.bytes >= AHEAD_BYTES)
    }
}

/// What has not been read of a query.
#[derive(Debug)]
pub(super) struct Rest {
    /// Whose snapshot it reads; `None`: the session's.
    pub transaction: Option<Transaction>,
    pub place: Place,
    /// What of the session's own writes it sees.
    own: OwnWrites,
    program: Arc<Program>,
    params: Vec<Value>,
    /// Rows of the last piece.
    last: u64,
}

impl Session {
    /// Begins a query that can be run in pieces; `None`: it is to be run to its end. The statement is begun, and its program may be run.
    pub(super) fn begin_pieces(
        &self,
        program: &Arc<Program>,
        params: &[Value],
    ) -> Result<Option<Box<Rest>>> {
        let ProgramKind::Select(select) = &program.kind else {
            return Ok(None);
        };
        let alone = program.with.is_empty() && !program.reads_beside_its_writes();
        let Some(open) = self.open.as_ref().filter(|_| alone && select.has_pieces()) else {
            return Ok(None);
        };
        if params.len() < program.params.len() || self.explaining.is_some() {
            return Ok(None);
        }
        let mut transaction = None;
        if !open.characteristics.repeatable {
            if open.transaction.has_written() {
                return Ok(None);
            }
            let options = TransactionOptions::default().read_only(true);
            let Ok(own) = self.shared.engine.begin_with(options) else {
                return Ok(None);
            };
            // Tables may have become others between the statement's snapshot and this one.
            if self.shared.catalog.number() != open.catalog.0 {
                return Ok(None);
            }
            transaction = Some(own);
        }
        self.check_program(program)?;
        Ok(Some(Box::new(Rest {
            transaction,
            place: Place::default(),
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
        if rest.place.has_ended() {
            *unread = None;
        }
        match done {
            Err(error) if error.is_of_data() && wanted.is_some_and(|all| rows.len() >= all) => {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// From now on the session's transaction sees these of its own writes; which it saw before.
    fn see_own_writes(&self, seen: OwnWrites) -> Option<OwnWrites> {
        let open = self.open.as_ref()?;
        Some(open.transaction.see_own_writes(seen))
    }
}
