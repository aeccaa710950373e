//! Workloads that measure a database and then prove that it did not cheat: TPC-C, TATP, TPC-H, Hekaton's reads and
//! writes, key-value operations, a queue, bulk loads and scans.
//!
//! Everything here is generic over [`engine::Engine`] and monomorphised for each engine, allocates
//! nothing an operation, and draws all it does from a seed. Threads, clocks and reports are the
//! driver's.
#![forbid(unsafe_code)]
// Updates declare lists of ranges, often of one.
#![allow(clippy::single_range_in_vec_init)]

pub mod ch;
#[cfg(any(test, feature = "reference"))]
pub mod conformance;
pub mod digest;
pub mod engine;
pub mod field;
pub mod hekaton;
pub mod kv;
pub mod queue;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod schema;
pub mod tatp;
pub mod tpcc;
pub mod tpch;
pub mod zipf;
