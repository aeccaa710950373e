//! The engine with small settings on a simulated disk, as the tools of this crate want it.
#![allow(dead_code, reason = "each test takes what it needs")]

use vellum::Config;
use vellum_io::SimulatedDirectory;
use vellum_model::engine::EngineSubject;
use vellum_model::{Profile, Subject};

pub const PAGE_SIZE: usize = 4096;
/// Pages of the pool.
pub const FRAMES: usize = 24;
pub const KEY_LIMIT: usize = PAGE_SIZE / 8;
/// A value that surely needs no pages of its own.
pub const INLINE_VALUE: u32 = PAGE_SIZE as u32 / 5;

/// Few frames, a small log, checkpoints all the time, no threads.
pub fn config() -> Config {
    config_of(PAGE_SIZE)
}

/// The same with pages of this size, and as many of them.
pub fn config_of(page_size: usize) -> Config {
    let mut config = Config::default()
        .page_size(page_size)
        .pool_bytes(FRAMES as u64 * page_size as u64);
    config.slots_max = 8;
    config.slot_buffer_bytes = 16 * page_size;
    config.log_segment_bytes = 4 * 16 * page_size as u64;
    config.log_bytes_max = 8 * config.log_segment_bytes;
    config.checkpoint_log_bytes = config.log_segment_bytes;
    config.data_bytes_max = 1 << 28;
    config.background_threads = false;
    // Rows turn fat as soon as they may.
    config.versions.fat_updates = Some(1);
    config
}

pub fn open(disk: &SimulatedDirectory) -> Result<Box<dyn Subject>, String> {
    open_with(disk, &config(), false)
}

/// The same with other settings; `indexed`: every table has an index.
pub fn open_with(
    disk: &SimulatedDirectory,
    config: &Config,
    indexed: bool,
) -> Result<Box<dyn Subject>, String> {
    let subject = EngineSubject::open(disk, config).map_err(|error| format!("{error:?}"))?;
    Ok(match indexed {
        true => Box::new(subject.with_indexes()),
        false => Box::new(subject),
    })
}

pub fn profile() -> Profile {
    Profile {
        page_size: PAGE_SIZE as u32,
        key_limit: KEY_LIMIT,
        open_max: 5,
        power_cuts: false,
        reopens: true,
        ddl: true,
        drops_large_values: true,
        classes: false,
        hot: false,
        words: false,
        burst_max: 60,
    }
}
