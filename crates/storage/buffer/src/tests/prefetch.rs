//! Reading several pages at once.

use super::*;
use crate::Pool;
use vellum_base::PageId;
use vellum_base::StorageError;
use vellum_io::{Call, Fault, MemoryDirectory, SimulatedDirectory};

/// Twelve pages in the file, none of them in a memory of `frames` frames.
fn pages_on_disk(directory: &SimulatedDirectory, frames: u64) -> Pool {
    let log = TestLog::at(u64::MAX);
    let pool = pool_in(directory, &log, 4096, 64, 12);
    for index in 0..12 {
        make(&pool, nth(&pool, index), 100 + index, 1);
    }
    checkpoint(&pool);
    drop(pool);
    Pool::open(data_file(directory), log, &config(4096, frames)).unwrap()
}

#[test]
fn prefetched_pages_are_in_memory_and_whole_and_counted_once() {
    let directory = SimulatedDirectory::new();
    let pool = pages_on_disk(&directory, 64);
    assert_eq!(read(&pool, nth(&pool, 3)), Some(103));
    let before = pool.statistics();
    let wanted: Vec<PageId> = [5, 3, 1, 5, 9].map(|index| nth(&pool, index)).to_vec();
    assert_eq!(
        pool.prefetch(&wanted),
        3,
        "one was there, one is asked for twice"
    );
    for index in [1, 3, 5, 9] {
        assert!(pool.is_resident(nth(&pool, index)));
        assert_eq!(read(&pool, nth(&pool, index)), Some(100 + index));
    }
    assert!(!pool.is_resident(nth(&pool, 2)));
    let after = pool.statistics();
    assert_eq!(after.faults - before.faults, 3);
    assert_eq!(after.prefetched - before.prefetched, 3);
    assert_eq!(pool.frames() - pool.free_frames(), 4);
    assert_eq!(pool.prefetch(&wanted), 0, "nothing is missing now");
}

#[test]
fn prefetch_takes_no_frame_that_would_have_to_be_made_free() {
    let directory = SimulatedDirectory::new();
    let pool = pages_on_disk(&directory, 8);
    for index in 0..8 {
        assert_eq!(read(&pool, nth(&pool, index)), Some(100 + index));
    }
    let evicted = pool.statistics().evicted;
    let wanted: Vec<PageId> = (8..12).map(|index| nth(&pool, index)).collect();
    assert_eq!(pool.prefetch(&wanted), 0);
    assert_eq!(
        (pool.free_frames(), pool.statistics().evicted),
        (0, evicted)
    );
    assert!(pool.evict_step(8).unwrap() == 8);
    assert_eq!(pool.prefetch(&wanted), 2, "a quarter of a pool");
}

#[test]
fn prefetch_goes_on_while_eviction_is_behind_and_leaves_the_last_frames_alone() {
    let directory = SimulatedDirectory::new();
    let log = TestLog::at(u64::MAX);
    let pool = pool_in(&directory, &log, 4096, 512, 530);
    for index in 0..530 {
        make(&pool, nth(&pool, index), index, 1);
    }
    checkpoint(&pool);
    drop(pool);
    let pool = Pool::open(data_file(&directory), log, &config(4096, 512)).unwrap();
    let low_water = pool.low_water();
    let mut next = 0;
    while pool.free_frames() > low_water / 4 {
        assert_eq!(read(&pool, nth(&pool, next)), Some(next));
        next += 1;
    }
    let spare = low_water / 4 - low_water / 8;
    assert!(spare >= 2, "or this test shows nothing");
    let wanted: Vec<PageId> = (520..530).map(|index| nth(&pool, index)).collect();
    assert_eq!(pool.prefetch(&wanted), spare);
    assert_eq!(pool.free_frames(), low_water / 8);
    assert_eq!(pool.prefetch(&wanted[spare..]), 0);
}

#[test]
fn page_that_cannot_be_prefetched_stays_evicted_and_its_reader_finds_out() {
    let directory = SimulatedDirectory::new();
    let pool = pages_on_disk(&directory, 64);
    let damaged = nth(&pool, 4);
    let at = damaged.get() * 4096 + 100;
    data_file(&directory)
        .write_at(b"something else", at)
        .unwrap();
    let beyond = PageId(pool.file_pages() + 3);
    let wanted = [nth(&pool, 2), damaged, beyond, PageId::ZERO, nth(&pool, 6)];
    assert_eq!(pool.prefetch(&wanted), 2);
    assert!(!pool.is_resident(damaged));
    assert_eq!(
        pool.frames() - pool.free_frames(),
        2,
        "the frame is free again"
    );
    assert!(matches!(
        pool.optimistic(damaged),
        Err(StorageError::Corruption { .. })
    ));
    assert_eq!(read(&pool, nth(&pool, 6)), Some(106));
}

#[test]
fn failed_read_leaves_all_pages_of_a_prefetch_evicted() {
    let directory = SimulatedDirectory::new();
    let pool = pages_on_disk(&directory, 64);
    let wanted = [nth(&pool, 2), nth(&pool, 4), nth(&pool, 6)];
    directory.fail(Fault::nth(Call::Read, 1));
    assert_eq!(pool.prefetch(&wanted), 0);
    assert_eq!(pool.free_frames(), pool.frames());
    directory.clear_faults();
    assert_eq!(pool.prefetch(&wanted), 3);
}

#[test]
fn pool_is_outgrown_when_the_file_is_larger() {
    let directory = MemoryDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(0), 4096, 64, 12);
    assert!(!pool.is_outgrown());
    let pool = pool_in(&MemoryDirectory::new(), &TestLog::at(0), 4096, 8, 12);
    assert!(pool.is_outgrown());
}
