//! The program as a server, from outside: one program, for each program more is linked and optimized anew.
//!
//! Not here: commands that open a database themselves (`command_line.rs`): a process that is being started holds, for an instant, every lock of the one that
//! starts it, so that these run one at a time.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

mod clients;
mod file_limit;
mod program;
mod psql;
mod serve;
mod tokio;
mod version_limit;
