//! The buffer pool: pages of the data file at fixed addresses, latched by one word each.
//!
//! | question | where |
//! | --- | --- |
//! | the three ways into a page | [`Optimistic`], [`Shared`], [`Exclusive`] (guard.rs) |
//! | why optimistic reads are sound | racy.rs |
//! | huge pages under what stays in memory | huge.rs |
//! | the state word and its transitions | state.rs |
//! | how a page comes in, how it leaves | fault.rs, gate.rs, prefetch.rs, evict.rs, write_out.rs |
//! | torn writes | double_write.rs |
//! | checkpoints | checkpoint.rs |
//! | which pages are in use | [`Space`] (space.rs, bitmap.rs) |
//! | where things stand in the file | geometry.rs, header.rs |
//!
//! Not here: what pages mean (`btree`), when to run eviction and checkpoints (`engine`).

// The models use a part of the crate.
#![cfg_attr(any(loom, shuttle), allow(dead_code, unused_imports))]

pub mod bitmap;
mod burst;
mod checkpoint;
mod config;
mod double_write;
mod evict;
mod fat;
mod fault;
mod frames;
mod gate;
mod geometry;
mod guard;
mod header;
mod huge;
mod memory_ahead;
pub mod page;
mod pool;
mod prefetch;
mod private;
mod racy;
mod space;
mod state;
mod warm;
pub mod words;
mod write_out;

#[cfg(test)]
mod tests;

pub use checkpoint::CheckpointScan;
pub use config::{PoolConfig, PoolStatistics};
pub use fault::{NEWER_THAN_LOG, RedoPage};
pub use geometry::{BITMAP_BITS_AT, Geometry};
pub use guard::{Exclusive, Optimistic, Shared};
pub use header::FORMAT_VERSION;
pub use page::{
    FLAG_FAT, FLAG_PLAIN, FLAG_TEMPORARY, Misfit, PAGE_HEADER_BYTES, PageCheck, PageHeader,
    PageHeaderMut, check_header, kind,
};
pub use pool::{Addresses, Pool};
pub use prefetch::PREFETCH_MAX;
pub use private::PageBuf;
pub use space::{Claim, PageUse, RESERVE_PAGES, Space, SpaceCounts};
pub use words::{PageBytes, PageRead, PageWrite, first_eight};
