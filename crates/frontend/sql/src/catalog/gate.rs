//! Who may write a table, and who may change its definition: held to the end of the transaction.
//!
//! Writers share, a DDL statement that changes what writers must do (columns, indexes, constraints, TRUNCATE, DROP) is alone.
//! Readers take nothing: their snapshot shows them the table as it was.
//!
//! Invariants:
//! - G1 Who writes a relation holds its gate, and has compared the relation's generation with the published one after
//!   taking it: no writer misses an index or a constraint that was committed before.
//! - G2 A transaction counts once, however often it asks.
//! - G3 Who holds a gate has told so before anybody can wait for it longer than one look (`session::activity`): circles of waits are found.
//!
//! Concurrency: one word; writers enter and leave by one locked instruction. Who must wait parks on a condition variable;
//! leaving wakes only if the waiting bit is set.

use crate::error::{Result, SqlError};
use crate::session::Waiting;
use crate::sqlstate;
use std::time::Duration;
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Condvar, Mutex};

const ALONE: u64 = 1 << 63;
const WAITED_FOR: u64 = 1 << 62;
const WRITERS: u64 = WAITED_FOR - 1;

/// How long a wait parks before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// How a transaction holds a gate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mode {
    /// With other writers.
    Write,
    /// With nobody.
    Alone,
}

/// The gate of a relation.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU64,
    latch: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    /// Enters; from nothing, or from `Write` to `Alone`. `look` is called whenever it goes on waiting.
    ///
    /// # Errors
    /// `57014`, `55P03` as `waiting` decides; what `look` reports.
    pub fn enter(
        &self,
        held: Option<Mode>,
        mode: Mode,
        waiting: &mut Waiting<'_>,
        look: impl Fn() -> Result<()>,
    ) -> Result<()> {
        debug_assert!(held < Some(mode), "G2");
        let mut guard = self.latch.lock();
        loop {
            self.state.fetch_or(WAITED_FOR, Ordering::AcqRel);
            if self.try_enter(held, mode) {
                return Ok(());
            }
            look()?;
            let (next, _) = self.opened.wait_timeout(guard, LOOK);
            guard = next;
            waiting.look().map_err(|error| match error.sqlstate() {
                sqlstate::LOCK_NOT_AVAILABLE => SqlError::new(
                    sqlstate::LOCK_NOT_AVAILABLE,
                    "canceling statement due to lock timeout",
                ),
                _ => error,
            })?;
        }
    }

    /// The same, at once or not at all.
    pub fn try_enter(&self, held: Option<Mode>, mode: Mode) -> bool {
        let own = u64::from(held.is_some());
        let entered = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match mode {
                Mode::Write if state & ALONE == 0 => Some(state + 1),
                Mode::Alone if state & ALONE == 0 && state & WRITERS == own => {
                    Some((state & WAITED_FOR) | ALONE)
                }
                _ => None,
            });
        entered.is_ok()
    }

    /// Leaves.
    pub fn leave(&self, mode: Mode) {
        let before = match mode {
            Mode::Write => self.state.fetch_sub(1, Ordering::AcqRel),
            Mode::Alone => self.state.fetch_and(!ALONE, Ordering::AcqRel),
        };
        debug_assert!(match mode {
            Mode::Write => before & WRITERS > 0,
            Mode::Alone => before & ALONE != 0,
        });
        if before & WAITED_FOR != 0 {
            // Taken, so that nobody is between looking and parking.
            let _latch = self.latch.lock();
            self.state.fetch_and(!WAITED_FOR, Ordering::AcqRel);
            self.opened.notify_all();
        }
    }
}
