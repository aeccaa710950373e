//! Who may write a table, and who may change its definition: held to the end of the transaction, or until it goes back to a savepoint before it. Types, schemas, extensions and roles have gates, too: who uses one
//! in a definition is a writer, who drops it is alone.
//!
//! Writers share, a DDL statement that changes what writers must do (columns, indexes, constraints, TRUNCATE, DROP) is alone.
//! Readers take nothing: their snapshot shows them the table as it was.
//!
//! Who comes to write while somebody waits to be alone waits behind that one: transactions that overlap would keep it out for ever. Who writes the relation
//! already goes on. If waiting behind others closes a circle of waits, a writer goes past them (`lock::Waits::waits_behind`).
//!
//! Invariants:
//! - G1 Who writes a relation holds its gate, and has compared the relation's generation with the published one after
//!   taking it: no writer misses an index or a constraint that was committed before.
//! - G2 A transaction counts once, however often it asks.
//! - G3 Who holds a gate has told so before anybody can wait for it longer than one look (`session::activity`): circles of waits are found.
//! - G4 What a transaction has written behind a gate, in rows or in the catalog, and has not taken back, it has written while it held that gate. So behind ROLLBACK TO a savepoint it needs
//!   those gates only that it held when the savepoint was made, and as it held them then.
//!
//! Concurrency: one word; writers enter and leave by one locked instruction. Who must wait parks on a condition variable;
//! leaving wakes only if the waiting bit is set.

use super::{Catalog, Change, Oid};
use crate::error::{Result, SqlError};
use crate::session::Waiting;
use crate::sqlstate;
use std::sync::Arc;
use std::time::Duration;
use vellum_base::maps::HashMap;
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Condvar, Mutex};

const ALONE: u64 = 1 << 63;
const WAITED_FOR: u64 = 1 << 62;
/// One who waits to be alone.
const WANTS: u64 = 1 << 32;
const WANTED: u64 = WAITED_FOR - WANTS;
const WRITERS: u64 = WANTS - 1;

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

/// What has a gate and is no relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gated {
    /// Whoever makes something in it enters with others, who drops it alone.
    Schema,
    /// Whoever makes something that calls its functions, who drops or moves it.
    Extension,
    /// Whoever makes it an owner, gives it rights or members, who drops it.
    Role,
}

impl Gated {
    /// What it is called in messages, if an image has it.
    pub fn called(self, image: &Catalog, oid: Oid) -> Option<String> {
        let (word, name) = match self {
            Self::Schema => ("schema", &*image.namespace_by_oid(oid)?.name),
            Self::Extension => ("extension", &*image.extension_by_oid(oid)?.name),
            Self::Role => ("role", image.role_by_oid(oid)?.name.as_str()),
        };
        Some(format!("{word} \"{name}\""))
    }

    /// Whether a change adds or replaces it.
    pub fn is_put_by(self, change: &Change, oid: Oid) -> bool {
        match (self, change) {
            (Self::Schema, Change::PutNamespace(put)) => put.oid == oid,
            (Self::Extension, Change::PutExtension(put)) => put.oid == oid,
            (Self::Role, Change::PutRole(put)) => put.oid == oid,
            _ => false,
        }
    }
}

/// What one who cannot enter does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// It waits.
    Wait,
    /// It enters before those who wait to be alone.
    GoPast,
}

/// The gate of a relation.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU64,
    latch: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    /// Enters; from nothing, or from `Write` to `Alone`. `look` is called whenever it goes on waiting, and says whether a writer goes past those who wait
    /// to be alone.
    ///
    /// # Errors
    /// `57014`, `55P03` as `waiting` decides; what `look` reports.
    pub fn enter(
        &self,
        held: Option<Mode>,
        mode: Mode,
        waiting: &mut Waiting<'_>,
        look: impl Fn() -> Result<Next>,
    ) -> Result<()> {
        debug_assert!(held < Some(mode), "G2");
        // Dropped behind the latch.
        let _wanted = (mode == Mode::Alone).then(|| Wanted::new(self));
        let mut guard = self.latch.lock();
        loop {
            self.state.fetch_or(WAITED_FOR, Ordering::AcqRel);
            if self.try_enter(held, mode) {
                return Ok(());
            }
            if look()? == Next::GoPast && self.enter_past(mode) {
                return Ok(());
            }
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
                Mode::Write if state & (ALONE | WANTED) == 0 => Some(state + 1),
                Mode::Alone if state & ALONE == 0 && state & WRITERS == own => {
                    Some((state & !WRITERS) | ALONE)
                }
                _ => None,
            });
        entered.is_ok()
    }

    /// A writer enters, whoever waits to be alone.
    fn enter_past(&self, mode: Mode) -> bool {
        let next = |state| (state & ALONE == 0).then_some(state + 1);
        mode == Mode::Write
            && self
                .state
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
                .is_ok()
    }

    /// Who is alone goes on as a writer.
    pub fn let_others_write(&self) {
        // Nobody else is inside: one writer, where there was none.
        let before = self.state.fetch_sub(ALONE - 1, Ordering::AcqRel);
        debug_assert!(before & ALONE != 0 && before & WRITERS == 0);
        if before & WAITED_FOR != 0 {
            self.wake();
        }
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
            self.wake();
        }
    }

    fn wake(&self) {
        // Taken, so that nobody is between looking and parking.
        let _latch = self.latch.lock();
        self.state.fetch_and(!WAITED_FOR, Ordering::AcqRel);
        self.opened.notify_all();
    }
}

/// The gates of what is no relation ([`Gated`]), by oid.
#[derive(Debug, Default)]
pub(crate) struct GatesByOid {
    made: Mutex<HashMap<Oid, Arc<Gate>>>,
}

impl GatesByOid {
    /// That of an object; made when it is first asked for.
    pub fn of(&self, oid: Oid) -> Arc<Gate> {
        self.made.lock().entry(oid).or_default().clone()
    }

    /// The object is gone: who comes now finds out, whatever gate it takes.
    pub fn forget(&self, oid: Oid) {
        self.made.lock().remove(&oid);
    }

    /// How many there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.made.lock().len()
    }
}

/// Somebody waits to be alone, until this is dropped: it is, or has given up.
#[derive(Debug)]
struct Wanted<'g>(&'g Gate);

impl<'g> Wanted<'g> {
    fn new(gate: &'g Gate) -> Self {
        gate.state.fetch_add(WANTS, Ordering::AcqRel);
        Self(gate)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(WANTS, Ordering::AcqRel);
        debug_assert!(before & WANTED != 0);
        // If it gave up, writers wait for nobody.
        if before & (ALONE | WAITED_FOR) == WAITED_FOR {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_alone_and_goes_on_as_a_writer_lets_writers_in_and_nobody_else() {
        let gate = Gate::default();
        assert!(gate.try_enter(None, Mode::Write));
        assert!(gate.try_enter(Some(Mode::Write), Mode::Alone));
        assert!(!gate.try_enter(None, Mode::Write));
        gate.let_others_write();
        assert!(!gate.try_enter(None, Mode::Alone));
        assert!(gate.try_enter(None, Mode::Write));
        assert!(!gate.try_enter(Some(Mode::Write), Mode::Alone), "two write");
        gate.leave(Mode::Write);
        // The first one again, and to its end.
        assert!(gate.try_enter(Some(Mode::Write), Mode::Alone));
        gate.let_others_write();
        gate.leave(Mode::Write);
        assert!(gate.try_enter(None, Mode::Alone));
        gate.leave(Mode::Alone);
        assert_eq!(
            gate.state.load(Ordering::Relaxed) & (ALONE | WRITERS | WANTED),
            0
        );
    }
}
