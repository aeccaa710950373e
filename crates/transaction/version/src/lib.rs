//! Old versions of rows: where they are kept, how they are read, reverted and collected.
//!
//! Paper: LeanStore, Scalable and Robust Snapshot Isolation, §3.2-§3.5. Design and cases:
//! docs/design/0007-versions.md, docs/design/0013-old-snapshots.md.
//!
//! | question | module |
//! | --- | --- |
//! | what does a row look like | `row`, `delta`, `undo_record`; with its old versions in it: `fat` |
//! | which version does a snapshot see | `read`, `scan` (the rule itself: `txn`) |
//! | what does a write do | `write`, `large`, `pending`; what would it meet: `look` |
//! | how is it reverted | `undo`; when the log has moved on: `carried` |
//! | what is visited twice, in a measurement | `stamping` |
//! | when do old versions go | `collect` (who can still see them: `gc`); deleted rows: `settle`, `held`, `fate`; between two snapshots: `sweep`, `early` |
//! | how does an old snapshot get past versions that it does not see | `shortcut` |
//! | in which index are deltas | `delta_index` |
//! | where are rows that only old snapshots see | `graveyard`, `pair`; which are not even there: `drops` |
//! | how many are there | `accounts`, `census` |
#![forbid(unsafe_code)]

mod accounts;
pub mod carried;
mod census;
pub mod collect;
pub mod delta;
mod delta_index;
mod dropped;
mod dropped_pages;
mod drops;
mod early;
mod error;
pub mod fat;
mod fate;
mod given_up;
mod graveyard;
mod held;
mod in_rows;
pub mod large;
mod look;
mod options;
mod pair;
pub mod pending;
pub mod read;
pub mod row;
pub mod scan;
mod settle;
pub mod shortcut;
mod stamping;
mod store;
mod sweep;
pub mod undo;
pub mod undo_record;
mod unjoined;
mod work;
pub mod write;

#[cfg(all(test, not(loom)))]
mod tests;

pub use accounts::{Tally, VersionKind, VersionSums};
pub use census::Census;
pub use error::{Result, VersionError, concerns_one};
pub use graveyard::buried_key_max;
pub use in_rows::{InRows, RowsLook};
pub use look::Newest;
pub use options::VersionOptions;
pub use read::{View, Visible};
pub use scan::{KeyRange, Scan, ScannedRow};
pub use stamping::RowStamper;
pub use store::VersionStore;
pub use undo::Reverter;
/// What log space is for: calls that give pages back are told.
pub use write::{Change, Current, Scratch, Written};
