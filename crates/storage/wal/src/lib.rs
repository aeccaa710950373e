//! The write-ahead log: a log buffer a slot, one flush round for all, segments used again and again.
//!
//! Public API (0004-log.md has the why):
//!
//! | call | what |
//! | --- | --- |
//! | `Log::create(dir, config, clock, start)` | a log that starts a new incarnation |
//! | `Log::slot(SlotId) -> &SlotLog` | one slot's log |
//! | `SlotLog::reserve(bytes)`, `reserve_for(bytes, Purpose)` | space, before any latch is taken |
//! | `SlotLog::lock() -> SlotGuard` | the slot's one latch |
//! | `SlotGuard::draw(page_gsn) -> Gsn` | a sequence number for one structure change |
//! | `SlotGuard::append(&RecordHeader, &[&[u8]], &[&[u8]]) -> Lsn` | a record; cannot fail |
//! | `SlotGuard::begin_transaction(stamp)`, `end_transaction()` | bounds of the live transaction |
//! | `SlotGuard::set_pending(Option<Timestamp>)` | R11: the horizon stays at or below it |
//! | `Log::harden(ts)`, `poll_harden(ts, &Waker)` | until `horizon() > ts` |
//! | `Log::make_durable(gsn)`, `durable_gsn()` | [`DurableGsn`] |
//! | `Log::flush_round()` | one round now |
//! | `Log::position()`, `release_before(LogPosition)` | for checkpoints |
//! | `SlotLog::backward(from, to)`, `Uncompensated` | undo |
//! | `LogReader`, `RedoWindows` | recovery |
#![forbid(unsafe_code)]

mod active;
mod backward;
mod config;
mod core;
mod frame;
mod gather;
mod group;
mod log;
mod reader;
mod record;
mod ring;
mod ring_memory;
mod round;
mod segment;
mod segment_file;
mod slot;
mod window;

pub use crate::core::Clock;
pub use backward::{BackwardRecords, Carry, Uncompensated};
pub use config::*;
pub use log::Log;
pub use reader::{Chunk, LogReader, RoundData};
pub use record::*;
pub use segment::SegmentFiles;
pub use slot::{SlotGuard, SlotLog};
pub use window::{RedoWindow, RedoWindows};
