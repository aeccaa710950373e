//! Who waits for whom: the ends of transactions that are waited for, circles of waits, and locks on rows.
//!
//! An uncommitted version is its writer's lock on the row: the engine refuses to overwrite it and names the writer. What a version cannot
//! say (FOR SHARE, FOR UPDATE, a foreign key's hold on its target) stands in a table in memory (`rows`), which writers look into
//! after they wrote. Cases and interleavings: `docs/design/0018-row-locks.md`.

mod advisory;
mod rows;
mod waits;

pub(crate) use advisory::{AdvisoryKey, AdvisoryLock, AdvisoryLocks, HeldAdvisory};
pub(crate) use rows::{HeldLocks, RowLocks, RowName, Strength};
pub(crate) use waits::{Waits, WaitsAt};

use vellum::Blocker;

/// What is in the way of a statement; [`Waits`] tells who that is.
#[derive(Clone, Debug)]
pub(crate) enum Obstacle {
    /// The writer of an uncommitted version.
    Writer(Blocker),
    /// Holders of locks on a row that do not go with this strength.
    Holders(RowName, Strength),
}
