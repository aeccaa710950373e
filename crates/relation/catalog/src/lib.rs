//! Names of tables and indexes, and where their trees are.
#![forbid(unsafe_code)]

pub mod entry;

pub use entry::{IndexEntry, TableEntry};
