//! A slot that is held without a transaction: by maintenance, by who cleans after commit, by who rolls
//! back a writer that was dropped.
//!
//! Invariants:
//! - I1 A held slot pins nothing: it publishes no snapshot. Given back, it holds no log space either.
//! - I2 A parked writer leaves PARKED only when every change of it is reverted and its abort record is in
//!   the log. Until then nobody else runs in its slot, so its versions stay what they are: not
//!   committed.

use crate::begin::Token;
use crate::domain::Domain;
use crate::rollback::{self, Savepoint, Undo};
use crate::slots::Parked;
use std::sync::Arc;
use vellum_base::{Result, SlotId, Timestamp};

/// A slot that is held without a transaction. Dropping it gives the slot back.
#[derive(Debug)]
pub struct Lease {
    token: Arc<Token>,
    was_closed: bool,
}

impl Lease {
    /// Wraps a slot that is in the state KEPT.
    pub(crate) fn new(token: Arc<Token>) -> Self {
        Self {
            token,
            was_closed: false,
        }
    }

    /// Wraps a slot that is in the state KEPT and closed to transactions.
    pub(crate) fn of_closed(token: Arc<Token>) -> Self {
        Self {
            token,
            was_closed: true,
        }
    }

    /// The slot.
    pub fn slot(&self) -> SlotId {
        self.token.slot()
    }

    /// What all transactions share.
    pub fn domain(&self) -> &Domain {
        self.token.domain()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Who cleans reserves for the worst. What he did not need must not keep the slot from coming to rest.
        self.domain().log().slot(self.slot()).withdraw();
        let slots = &self.domain().slots;
        if self.was_closed {
            slots.release_closed(self.slot());
        } else {
            slots.release(self.slot());
        }
    }
}

/// A writer whose owner dropped it unfinished. It can only be rolled back; dropped again, it is parked
/// again.
#[derive(Debug)]
pub struct ParkedWriter {
    token: Arc<Token>,
    parked: Parked,
    finished: bool,
}

impl ParkedWriter {
    pub(crate) fn new(token: Arc<Token>, parked: Parked) -> Self {
        Self {
            token,
            parked,
            finished: false,
        }
    }

    /// Its slot.
    pub fn slot(&self) -> SlotId {
        self.token.slot()
    }

    /// Its stamp.
    pub fn stamp(&self) -> Timestamp {
        self.parked.stamp
    }

    /// A command id above all that the writer used.
    pub fn next_command(&self) -> u64 {
        self.parked.next_command
    }

    /// Reverts every change, logs the abort, gives the slot back.
    ///
    /// # Errors
    /// What `undo` or the log reports. The writer is parked again; what was reverted is compensated
    /// and not reverted twice.
    pub fn rollback(mut self, undo: &mut dyn Undo) -> Result<()> {
        let (domain, slot) = (self.token.domain(), self.token.slot());
        rollback::revert(domain, slot, self.parked.stamp, &Savepoint::START, undo)?;
        undo.all_is_reverted()?;
        rollback::log_abort(domain, slot, self.parked.stamp)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for ParkedWriter {
    fn drop(&mut self) {
        let (domain, slot) = (self.token.domain(), self.token.slot());
        if self.finished {
            domain.unpark_one();
            domain.slots.release(slot);
        } else {
            let parts = domain.slot(slot);
            parts.parts.lock().parked = Some(self.parked);
            parts.words.park();
        }
    }
}
