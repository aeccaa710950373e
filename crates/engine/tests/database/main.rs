//! The embedded API, from outside: one program, for each program more is linked and optimized anew.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod addresses;
mod backup;
mod chunks;
mod classes;
mod concurrent;
mod crash_old_snapshots;
mod crash_recoveries;
mod crashes;
mod dropped_tables;
mod experiments;
mod faults;
mod full;
mod garbage;
mod given_loads;
mod joins;
mod limits;
mod loads;
mod log_space;
mod misuse;
mod old_snapshots;
mod pending;
mod reentry;
mod regress;
mod rules;
mod schema;
mod share;
mod statement;
mod support;
mod transactions;
mod traps;
mod undo;
mod verify;
mod version_budget;
mod versions_in_rows;
mod withdrawn;
