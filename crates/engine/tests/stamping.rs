//! What the product promises of isolation, a database with commit timestamps in rows keeps, too.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "database/concurrent.rs"]
mod concurrent;
#[path = "database/rules.rs"]
mod rules;
#[path = "database/support/mod.rs"]
mod support;
#[path = "database/transactions.rs"]
mod transactions;
#[path = "database/traps.rs"]
mod traps;
