//! Transactions of R reads and W writes over N rows, at an isolation level; readers that write nothing, and long ones that
//! read a share of the table.
//!
//! Paper: High-Performance Concurrency Control Mechanisms for Main-Memory Databases, §5.1 and §5.2.
//! Differences: the paper's table is a hash index, and its long reader looks up a million keys; here keys are ordered, and a long
//! reader scans as many rows from a random one on. The rows of a transaction are known when it begins, so they are asked for
//! together. A writer draws its rows without repetition; which rows it reads has nothing to do with them. Keys may be skewed.
//!
//! Layout of a row, 24 bytes as in the paper: eight of the key (big-endian), `0 i64 balance`, `8 u64 writes` (how often it was
//! written).
//!
//! What proves that nothing was lost, at every level: a writer moves amounts between its rows, so the sum of the balances stays;
//! and the sum of `writes` grows by W for each commit. A write is a change of what the row holds when it is made: an engine that lets
//! two of them pass, at whatever level, changes one of the sums. A long reader has one snapshot, and where it reads all rows their sum
//! is that of the load, too.

mod client;
mod scan;
#[cfg(test)]
mod tests;

pub use client::{Client, Kind, Mix, Stripes, WRITES_MAX};
pub use scan::{Found, expected_balance, load, long_read, look, rows};

use crate::engine::{Table, TableSpec};
use crate::schema::row;

/// The rows.
pub const ROWS: Table = Table::at(0);
/// One row that an idle writer keeps locked; nobody else touches it.
pub const IDLE: Table = Table::at(1);
/// All tables, in the order of their positions.
pub const TABLES: &[TableSpec] = &[
    TableSpec {
        table: ROWS,
        name: "hekaton_rows",
        is_queue: false,
    },
    TableSpec {
        table: IDLE,
        name: "hekaton_idle",
        is_queue: false,
    },
];

/// What each row holds at first.
pub const INITIAL_BALANCE: i64 = 1_000;

row! {
    /// A row.
    account {
        /// What it holds.
        BALANCE: i64,
        /// How often it was written.
        WRITES: u64,
    }
}
