//! Tests of the store on the whole stack below it: log, transactions, pool, trees, in memory.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg_attr(
    shuttle,
    allow(dead_code, reason = "that build runs some of the tests")
)]

#[cfg(not(shuttle))]
mod accounts;
#[cfg(not(shuttle))]
mod bounds;
#[cfg(not(shuttle))]
mod buried;
#[cfg(not(shuttle))]
mod chains;
#[cfg(not(shuttle))]
mod damage;
#[cfg(not(shuttle))]
mod dropped_pages;
#[cfg(not(shuttle))]
mod drops;
#[cfg(not(shuttle))]
mod early;
#[cfg(not(shuttle))]
mod fat;
#[cfg(not(shuttle))]
mod fat_lengths;
#[cfg(not(shuttle))]
mod fat_model;
#[cfg(not(shuttle))]
mod faults;
#[cfg(not(shuttle))]
mod given_up;
mod glances;
#[cfg(not(shuttle))]
mod glimpses;
#[cfg(not(shuttle))]
mod histories;
#[cfg(not(shuttle))]
mod in_rows;
#[cfg(not(shuttle))]
mod joins;
mod moves;
#[cfg(not(shuttle))]
mod order;
#[cfg(not(shuttle))]
mod promotion;
#[cfg(not(shuttle))]
mod rollback;
#[cfg(not(shuttle))]
mod rounds;
#[cfg(shuttle)]
mod schedules;
#[cfg(not(shuttle))]
mod shortcuts;
#[cfg(not(shuttle))]
mod stamping;
mod withdrawals;
#[cfg(not(shuttle))]
mod work;
pub(crate) mod world;

#[cfg(not(shuttle))]
pub(crate) use world::seed as world_seed;
