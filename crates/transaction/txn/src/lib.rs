//! Transactions: time, slots, snapshots, the visibility rule, commit, rollback, verdicts of recovery.
//!
//! | question | module |
//! | --- | --- |
//! | what time is it | `clock` |
//! | who runs, and which snapshots are open | `slot`, `active` |
//! | when did that slot commit | `commit_log` |
//!
//! R-numbers are the rules of docs/design/0006-transactions.md.
//!
//! Not here: pages and tables (`undo` is a trait), what is garbage (`gc`).
#![forbid(unsafe_code)]

mod active;
mod clock;
mod commit_log;
#[cfg(all(debug_assertions, not(loom)))]
mod history;
mod slot;
mod stamp;

pub use active::ActiveSnapshots;
pub use clock::Clock;
pub use commit_log::SlotLatch;
pub use slot::Class;
pub use stamp::VersionStamp;
