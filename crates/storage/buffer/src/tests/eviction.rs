//! Eviction: order, the WAL rule, temporary pages, errors, limits.

use super::*;
use crate::{PageHeader, PageWrite, kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vellum_base::{Gsn, PageId, StorageError};
use vellum_io::{Call, Fault, FaultError, MemoryDirectory, SimulatedDirectory};

#[test]
fn page_ahead_of_the_log_never_reaches_the_file_before_it() {
    let log = TestLog::at(10);
    let pool = pool_in(&MemoryDirectory::new(), &log, 4096, 8, 8);
    make(&pool, nth(&pool, 0), 1, 10);
    make(&pool, nth(&pool, 1), 2, 11);
    // One page may go: no reason to ask the log.
    assert!(pool.evict_step(7).unwrap() >= 1);
    assert_eq!(log.asked.load(Ordering::SeqCst), 0);
    assert_eq!(in_file(&pool, nth(&pool, 0)).gsn(), Gsn(10));
    assert_eq!(in_file(&pool, nth(&pool, 1)).gsn(), Gsn(0));
    // Nothing else is left: now the log is asked, once.
    assert_eq!(pool.evict_step(8).unwrap(), 1);
    assert_eq!(log.asked.load(Ordering::SeqCst), 1);
    assert_eq!(in_file(&pool, nth(&pool, 1)).gsn(), Gsn(11));
}

#[test]
fn clean_pages_go_before_dirty_ones_and_used_ones_stay() {
    let (pool, _) = memory_pool(4096, 8, 16);
    for index in 0..6 {
        make(&pool, nth(&pool, index), index, 1);
    }
    checkpoint(&pool);
    for index in 0..3 {
        stamp(&mut pool.exclusive(nth(&pool, index)).unwrap(), 99);
    }
    let written = pool.statistics().written;
    // The first turn marks; then page 3 is used again and must survive.
    assert_eq!(pool.evict_step(3).unwrap(), 1);
    for index in 3..6 {
        let _ = pool.try_optimistic(nth(&pool, index));
    }
    pool.evict_step(4).unwrap();
    assert_eq!(pool.statistics().written, written, "clean pages sufficed");
    for index in 0..3 {
        assert!(
            pool.try_optimistic(nth(&pool, index)).is_some(),
            "dirty page {index} was dropped"
        );
    }
}

#[test]
fn temporary_pages_take_neither_double_write_nor_sync() {
    let directory = SimulatedDirectory::new();
    let log = TestLog::at(u64::MAX);
    let pool = pool_in(&directory, &log, 4096, 8, 40);
    let syncs = directory.counts().of(Call::Sync);
    for index in 0..20 {
        make_temporary(&pool, nth(&pool, index), index, 1);
    }
    evict_all(&pool);
    for index in 0..20 {
        assert_eq!(read(&pool, nth(&pool, index)), Some(index));
    }
    let statistics = pool.statistics();
    assert_eq!(directory.counts().of(Call::Sync), syncs);
    assert_eq!((statistics.batches, statistics.double_write_bytes), (0, 0));
    assert_eq!((statistics.written, statistics.written_once), (20, 20));
    assert_eq!(statistics.full_page_images, 0);
}

#[test]
fn temporary_page_obeys_the_gsn_floor() {
    let log = TestLog::at(5);
    let pool = pool_in(&MemoryDirectory::new(), &log, 4096, 8, 4);
    make_temporary(&pool, nth(&pool, 0), 1, 6);
    evict_all(&pool);
    assert_eq!(
        log.durable.load(Ordering::SeqCst),
        6,
        "the free was made durable first"
    );
}

#[test]
fn discarded_temporary_page_is_never_written() {
    let (pool, _) = memory_pool(4096, 8, 4);
    make_temporary(&pool, nth(&pool, 0), 1, 1);
    pool.exclusive(nth(&pool, 0)).unwrap().discard();
    evict_all(&pool);
    assert_eq!(pool.statistics().written, 0);
}

#[test]
fn neighbours_in_a_batch_are_one_double_write_with_one_sync() {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, 8, 8);
    make(&pool, nth(&pool, 7), 0, 1);
    evict_all(&pool);
    let (syncs, batches) = (directory.counts().of(Call::Sync), pool.statistics().batches);
    for index in [2, 0, 3, 1] {
        make(&pool, nth(&pool, index), index, 1);
    }
    evict_all(&pool);
    assert_eq!(pool.statistics().batches - batches, 1);
    assert_eq!(directory.counts().of(Call::Sync) - syncs, 1);
    assert_eq!(pool.statistics().double_write_bytes, (2 + 5) * 4096);
    assert_eq!(pool.statistics().in_place_bytes, 5 * 4096);
}

#[test]
fn evicted_page_has_no_memory() {
    let (pool, _) = memory_pool(4096, 8, 8);
    make(&pool, nth(&pool, 0), 1, 1);
    evict_all(&pool);
    let words = pool.range.page(nth(&pool, 0));
    assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    assert_eq!(read(&pool, nth(&pool, 0)), Some(1));
}

#[test]
fn latched_pages_are_left_alone() {
    let (pool, _) = memory_pool(4096, 8, 8);
    for index in 0..3 {
        make(&pool, nth(&pool, index), index, 1);
    }
    let shared = pool.shared(nth(&pool, 0)).unwrap();
    let exclusive = pool.exclusive(nth(&pool, 1)).unwrap();
    for _ in 0..4 {
        pool.evict_step(8).unwrap();
    }
    assert_eq!(pool.free_frames(), 6);
    assert_eq!(value_of(shared.page_id(), &shared), Some(0));
    assert_eq!(value_of(exclusive.page_id(), &exclusive), Some(1));
}

#[test]
fn pool_full_of_latched_pages_is_an_error_and_recovers() {
    let (pool, _) = memory_pool(4096, 8, 10);
    let held: Vec<_> = (0..8)
        .map(|index| {
            pool.create(nth(&pool, index), kind::LEAF, PageId(0), false, Gsn(1))
                .unwrap()
        })
        .collect();
    let result = pool
        .create(nth(&pool, 8), kind::LEAF, PageId(0), false, Gsn(1))
        .map(|_| ());
    assert!(matches!(result, Err(StorageError::MemoryLimit { .. })));
    drop(held);
    make(&pool, nth(&pool, 8), 8, 1);
    assert_eq!(read(&pool, nth(&pool, 8)), Some(8));
}

#[test]
fn readers_go_on_while_writes_fail_and_nothing_is_lost() {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, 8, 20);
    for index in 0..20 {
        make(&pool, nth(&pool, index), index, 1);
    }
    evict_all(&pool);
    for index in 0..3 {
        stamp(&mut pool.exclusive(nth(&pool, index)).unwrap(), 100 + index);
    }
    directory.fail(
        Fault::nth(Call::Write, 0)
            .with(FaultError::Enospc)
            .forever(),
    );
    for round in 0..3 {
        for index in 0..20 {
            let expected = if index < 3 { 100 + index } else { index };
            assert_eq!(
                read(&pool, nth(&pool, index)),
                Some(expected),
                "round {round}"
            );
        }
    }
    // With dirty pages alone there is nothing to evict: the error tells.
    for index in 3..8 {
        stamp(&mut pool.exclusive(nth(&pool, index)).unwrap(), 100 + index);
    }
    let error = pool.shared(nth(&pool, 15)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StorageError::OutOfSpace { .. }), "{error}");
    directory.clear_faults();
    for index in 0..20 {
        let expected = if index < 8 { 100 + index } else { index };
        assert_eq!(read(&pool, nth(&pool, index)), Some(expected));
    }
}

#[test]
fn failed_write_in_place_is_repeated_before_anything_else_is_written() {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, 8, 20);
    make(&pool, nth(&pool, 0), 1, 1);
    // The half is written, the page in place is not.
    directory.fail(Fault::nth(Call::Write, 1).with(FaultError::Short));
    while pool.statistics().batches == 0 {
        let _ = pool.evict_step(8);
    }
    assert!(
        pool.try_optimistic(nth(&pool, 0)).is_some(),
        "the page stays"
    );
    assert_eq!(pool.writer.lock().pending, [nth(&pool, 0)]);
    make(&pool, nth(&pool, 1), 2, 2);
    evict_all(&pool);
    assert_eq!(
        (read(&pool, nth(&pool, 0)), read(&pool, nth(&pool, 1))),
        (Some(1), Some(2))
    );
}

#[test]
fn low_water_wakes_and_steps_refill_to_the_target() {
    let (pool, _) = memory_pool(4096, 64, 100);
    let woken = Arc::new(AtomicU64::new(0));
    let counter = woken.clone();
    pool.set_wake(Box::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!((pool.low_water(), pool.high_water()), (2, 4));
    for index in 0..62 {
        make(&pool, nth(&pool, index), index, 1);
    }
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    make(&pool, nth(&pool, 62), 62, 1);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    pool.evict_step(pool.high_water()).unwrap();
    assert!(pool.free_frames() >= pool.high_water());
}

#[test]
fn pages_with_fat_rows_stay_while_others_can_go_and_are_named() {
    let (pool, _) = memory_pool(4096, 16, 32);
    // Two of them may be spared.
    for index in 0..12 {
        make(&pool, nth(&pool, index), index, 1);
        if index < 4 {
            let mut page = pool.exclusive(nth(&pool, index)).unwrap();
            page.set_u8(5, crate::FLAG_FAT);
        }
    }
    checkpoint(&pool);
    pool.evict_step(14).unwrap();
    assert_eq!(pool.free_frames(), 14);
    let named = pool.take_fat_pages();
    assert!(
        named.len() == 2 && named.iter().all(|page| *page < nth(&pool, 4)),
        "{named:?}"
    );
    for page in named {
        assert!(
            pool.try_optimistic(page).is_some(),
            "{page} was dropped while others could be"
        );
    }
    assert_eq!(pool.take_fat_pages(), [], "named once");
    // Nothing else is there: they go as they are.
    pool.evict_step(16).unwrap();
    assert_eq!(pool.free_frames(), 16);
}

#[test]
fn pages_that_left_memory_with_fat_rows_are_counted_and_known_until_they_are_back() {
    let (pool, _) = memory_pool(4096, 16, 200);
    let out = |pool: &crate::Pool| (pool.fat_pages_out(), pool.statistics().fat_evicted);
    // Far enough from each other for several words of the set.
    let fat = [0, 1, 70, 140];
    for index in [0, 1, 2, 70, 140, 141] {
        make(&pool, nth(&pool, index), index, 1);
        if fat.contains(&index) {
            let mut page = pool.exclusive(nth(&pool, index)).unwrap();
            page.set_u8(5, crate::FLAG_FAT);
        }
    }
    assert_eq!(out(&pool), (0, 0));
    checkpoint(&pool);
    assert_eq!(pool.statistics().fat_written, 4);
    evict_all(&pool);
    assert_eq!(out(&pool), (4, 4));
    assert_eq!(pool.fat_pages(100), []);
    // Read by itself, and several together.
    assert_eq!(read(&pool, nth(&pool, 70)), Some(70));
    assert_eq!(out(&pool), (3, 4));
    pool.prefetch(&[nth(&pool, 0), nth(&pool, 2)]);
    assert_eq!(out(&pool), (2, 4));
    // Made anew, without a look at what it was.
    make(&pool, nth(&pool, 140), 9, 2);
    assert_eq!(out(&pool), (1, 4));
    let mut here = pool.fat_pages(100);
    here.sort_unstable();
    assert_eq!(here, [nth(&pool, 0), nth(&pool, 70)]);
    let of_frames = (0..16).flat_map(|frame| pool.fat_pages_in(frame..frame + 1));
    assert_eq!(of_frames.count(), 2);
    // They go again, clean as they are; the one that is plain now is none of them.
    evict_all(&pool);
    assert_eq!(out(&pool), (3, 6));
    assert_eq!(pool.statistics().fat_written, 4);
}

/// What a page was before it was freed says nothing.
#[test]
fn free_page_has_no_fat_rows_whatever_its_flags_say() {
    let (pool, _) = memory_pool(4096, 16, 32);
    make(&pool, nth(&pool, 0), 0, 1);
    let mut page = pool.exclusive(nth(&pool, 0)).unwrap();
    page.set_u8(4, crate::page::kind::FREE);
    page.set_u8(5, crate::FLAG_FAT);
    drop(page);
    assert_eq!(pool.fat_pages(100), []);
    evict_all(&pool);
    assert_eq!(pool.fat_pages_out(), 0);
}

#[test]
fn pages_dropped_together_are_gone_but_for_those_that_were_used_or_changed_since_the_look() {
    let (pool, _) = memory_pool(4096, 8, 8);
    for index in 0..6 {
        make(&pool, nth(&pool, index), index, 1);
    }
    checkpoint(&pool);
    let look = |index: u64| {
        let page = nth(&pool, index);
        let state = pool.states.get(page).unwrap();
        assert!(state.mark(state.load()));
        let frame = (0..8).find(|frame| pool.frames.page(*frame) == Some(page));
        (frame.unwrap(), page, state.load())
    };
    let mut cold: Vec<_> = (0..6).map(look).collect();
    assert!(pool.try_optimistic(nth(&pool, 1)).is_some(), "used");
    stamp(&mut pool.exclusive(nth(&pool, 2)).unwrap(), 99);
    let held = pool.shared(nth(&pool, 3)).unwrap();
    // Twice on the list, as in a pool that the hand has gone round.
    cold.push(cold[0]);
    // In another frame by now.
    cold[4].0 = cold[5].0;
    let evicted = pool.statistics().evicted;
    assert_eq!(pool.drop_pages(&mut cold), 2);
    assert!(cold.is_empty());
    assert_eq!(pool.statistics().evicted - evicted, 2);
    let resident: Vec<u64> = (0..6)
        .filter(|index| pool.is_resident(nth(&pool, *index)))
        .collect();
    assert_eq!((resident, pool.free_frames()), (vec![1, 2, 3, 4], 4));
    drop(held);
    for index in 0..6 {
        let value = if index == 2 { 99 } else { index };
        assert_eq!(read(&pool, nth(&pool, index)), Some(value));
    }
}

#[test]
fn step_frees_what_it_is_asked_for_and_not_much_more() {
    let (pool, _) = memory_pool(4096, 256, 256);
    for index in 0..256 {
        make(&pool, nth(&pool, index), index, 1);
    }
    checkpoint(&pool);
    for target in [1, 10, 100] {
        let before = pool.free_frames();
        let freed = pool.evict_step(target).unwrap();
        assert_eq!((before + freed, pool.free_frames()), (target, target));
    }
}

#[test]
fn regress_page_that_is_newer_than_the_durable_log_is_damage() {
    let log = TestLog::at(10);
    let pool = pool_in(&MemoryDirectory::new(), &log, 4096, 16, 16);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 100);
    checkpoint(&pool);
    evict_all(&pool);
    assert_eq!(
        log.durable.load(Ordering::SeqCst),
        100,
        "the log came first"
    );
    assert_eq!(read(&pool, page), Some(1));
    evict_all(&pool);
    // As if the newest part of the log was lost.
    log.durable.store(99, Ordering::SeqCst);
    let found = pool.shared(page).map(drop);
    assert!(
        matches!(found, Err(StorageError::Corruption { .. })),
        "{found:?}"
    );
    assert_eq!(pool.prefetch(&[page]), 0);
    log.durable.store(100, Ordering::SeqCst);
    assert_eq!(read(&pool, page), Some(1));
}
