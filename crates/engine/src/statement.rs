//! Statements of a transaction under [`Isolation::Statement`](crate::Isolation): each sees one snapshot in all its steps, and
//! one that met a conflict can be run again as of later.
//!
//! [`Isolation::ReadCommitted`](crate::Isolation) draws a snapshot a step and lets a write replace whatever is committed by then: right for who
//! changes a row by its key, wrong for who has read it before and writes what follows from that, in another step. Here such a
//! write conflicts, nothing is lost, and the statement starts over.
//!
//! The operation that conflicted is undone (A2), what the statement did before it is not: who commits instead of starting
//! over commits a part of the statement, but never a part of an operation.

use crate::error::Result;
use crate::transaction::{Savepoint, Transaction};

/// Which of its own writes a transaction sees when it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnWrites(Option<u32>);

impl OwnWrites {
    /// All of them.
    pub const ALL: Self = Self(None);
}

impl Transaction {
    /// The writes that the transaction has made by now, and no later ones.
    pub fn own_writes(&self) -> OwnWrites {
        OwnWrites(Some(self.inner().commands_drawn()))
    }

    /// From now on what reads (lookups, counts, cursors that are opened, snapshots that are shared) sees these of the transaction's own writes and no
    /// others, until the next call. Returns which they were before. Writes look at rows in the same way to find out whether a key exists: who writes sees
    /// all of them ([`OwnWrites::ALL`]).
    pub fn see_own_writes(&self, seen: OwnWrites) -> OwnWrites {
        OwnWrites(self.inner().read_below(seen.0))
    }

    /// Starts a statement: what it reads is what was committed by now, and what the transaction wrote. Open cursors keep
    /// what they see. Does nothing under snapshot isolation.
    ///
    /// # Errors
    /// `TransactionOver` after a withdrawal or an error that could not be undone; `InvalidArgument` in the callback of an update or
    /// a load, which are steps of the statement before.
    pub fn begin_statement(&self) -> Result<()> {
        self.check_usable()?;
        self.check_not_in_write("the begin of a statement")?;
        self.inner().refresh();
        Ok(())
    }

    /// Reverts what was done after `savepoint` and starts a statement anew. Under
    /// [`Isolation::Statement`](crate::Isolation) that is possible after `Conflict`, too.
    ///
    /// # Errors
    /// As [`Transaction::rollback_to`].
    pub fn restart_statement(&self, savepoint: &Savepoint) -> Result<()> {
        self.check_not_in_write("the begin of a statement")?;
        self.rollback_to(savepoint)?;
        self.begin_statement()
    }

    /// The logical clock when the snapshot of the current statement was drawn: it sees what was committed before the clock was there, beside what the transaction
    /// itself has written.
    pub fn snapshot_time(&self) -> u64 {
        self.inner().snapshot().get()
    }

    /// True once it has written anything.
    pub fn has_written(&self) -> bool {
        self.inner().has_written()
    }
}
