//! Garbage: "who can still see this?" answered in one place, and how much cleaning one step may do.
//!
//! | question | module |
//! | --- | --- |
//! | is it dead, may it be buried, may it be frozen | `horizon` |
//! | does anybody need a deleted row | `snapshots` |
//! | how much work now | `budget` |
//!
//! Not here: what garbage looks like and how it is removed (`version`), which snapshots are open
//! (`txn`).
#![forbid(unsafe_code)]

mod budget;
mod horizon;
mod snapshots;

pub use budget::Budget;
pub use horizon::{Horizon, is_dead_above, is_dead_between, is_plainly_dead};
pub use snapshots::OpenSnapshots;
