//! Transactions: time, slots, snapshots, the visibility rule, commit, rollback, verdicts of recovery.
//!
//! | question | module |
//! | --- | --- |
//! | what time is it | `clock` |
//! | who runs, and which snapshots are open | `slot`, `slots`, `quiet`, `active`, `watermarks` |
//! | who holds versions back, and how a snapshot is withdrawn | `holders` |
//! | who waits for a slot | `waiters` |
//! | when did that slot commit | `commit_log` |
//! | does this snapshot see that version | `visibility` |
//! | how else could that be done, to be measured | `protocol` |
//! | how does one begin, commit, roll back | `begin`, `commit`, `rollback`, `lease` |
//! | what does the log say about transactions | `record` |
//! | which transactions of a crashed database never happened | `recovery`, `undo_losers` |
//!
//! R-numbers are the rules of docs/design/0006-transactions.md.
//!
//! Not here: pages and tables (`Undo` is a trait), what is garbage (`gc`).
#![forbid(unsafe_code)]

mod active;
mod begin;
mod clock;
mod commit;
mod commit_log;
mod domain;
mod error;
mod handles;
#[cfg(all(debug_assertions, not(loom)))]
mod history;
mod holders;
mod last_slot;
mod lease;
#[cfg(all(test, loom))]
mod loom_tests;
mod protocol;
mod quiet;
mod record;
mod recovery;
#[cfg(all(test, not(any(loom, shuttle))))]
mod recovery_tests;
mod rollback;
mod slot;
mod slots;
mod stamp;
#[cfg(all(test, not(loom)))]
mod testing;
mod transaction;
mod undo_losers;
mod visibility;
mod waiters;
mod watermarks;

pub use active::ActiveSnapshots;
pub use begin::{Config, Durability, Isolation, Manager, Options, PendingBegin};
pub use clock::Clock;
pub use commit::{Committed, Ticket};
pub use commit_log::SlotLatch;
pub use domain::{Domain, promotion_ticks};
pub use error::{CommitError, TransactionError};
pub use handles::{Operation, SnapshotHandle};
pub use holders::{Holder, TransactionId};
pub use lease::{Lease, ParkedWriter};
pub use protocol::{CommitStamper, Protocol, WriteSet};
pub use record::{KINDS, TransactionRecord};
pub use recovery::{Analysis, Loser, Outcome};
pub use rollback::{Savepoint, Undo};
pub use slot::Class;
pub use stamp::VersionStamp;
pub use transaction::{Touched, Transaction};
pub use undo_losers::{log_verdict, loser_records, undo_losers};
pub use watermarks::Watermarks;
