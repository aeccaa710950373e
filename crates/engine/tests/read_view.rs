//! What the product promises of isolation, a database with read views keeps, too.
#![allow(
    clippy::duplicate_mod,
    reason = "each suite brings what it shares with others"
)]

#[path = "concurrent.rs"]
mod concurrent;
#[path = "rules.rs"]
mod rules;
#[path = "transactions.rs"]
mod transactions;
#[path = "traps.rs"]
mod traps;
