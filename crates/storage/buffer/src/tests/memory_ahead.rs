//! Memory got ahead of need: as much as is said, only where there is room, and nobody's content changes.

use super::{make, memory_pool, nth, read};
use crate::huge::REGION_BYTES;
use crate::{Pool, Space, bitmap};
use std::sync::Arc;
use vellum_base::Gsn;

/// Makes the page with this number, as the next one that is taken.
fn make_next(pool: &Pool, index: u64) {
    pool.note_in_use(nth(pool, index).get() + 1);
    make(pool, nth(pool, index), index, 1);
}

/// Pages of 4 KiB that are got ahead in a pool of so many frames.
fn bound(frames: u64) -> u64 {
    (frames / 64).min(2048)
}

#[test]
fn memory_is_got_for_the_next_pages_and_no_further_than_a_64th_of_the_pool() {
    let frames = 64 * 100;
    let (pool, _) = memory_pool(4096, frames, 2000);
    assert!(!pool.get_memory_ahead(), "no page was made");
    make_next(&pool, 0);
    let first = pool.get_memory_ahead();
    println!("the system does this: {first}");
    let got = || pool.statistics().got_ahead;
    assert_eq!(got(), if first { bound(frames) } else { 0 });
    assert!(!pool.get_memory_ahead(), "that is all");
    // As pages are made it goes on, and gets nothing twice.
    for index in 1..1500 {
        make_next(&pool, index);
        pool.get_memory_ahead();
        assert!(got() <= index + 1 + bound(frames) + 1);
    }
    if first {
        assert!(got() >= 1500);
    }
    for index in 0..1500 {
        assert_eq!(read(&pool, nth(&pool, index)), Some(index));
    }
}

#[test]
fn memory_is_got_neither_beyond_the_file_nor_where_frames_run_short() {
    let (pool, _) = memory_pool(4096, 64 * 100, 50);
    for index in 0..50 {
        make_next(&pool, index);
        while pool.get_memory_ahead() {}
    }
    assert!(pool.statistics().got_ahead <= pool.file_pages());
    let (pool, _) = memory_pool(4096, 640, 2000);
    for index in 0..600 {
        make_next(&pool, index);
    }
    assert!(pool.free_frames() <= 2 * pool.high_water());
    assert!(!pool.get_memory_ahead());
    assert_eq!(pool.statistics().got_ahead, 0);
}

#[test]
fn pages_that_are_written_while_memory_is_got_keep_what_was_written() {
    let pages = 8000;
    let (pool, _) = memory_pool(4096, 64 * 2048, pages);
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            for index in 0..pages {
                make_next(&pool, index);
            }
        });
        while !maker.is_finished() {
            pool.get_memory_ahead();
        }
    });
    for index in 0..pages {
        assert_eq!(read(&pool, nth(&pool, index)), Some(index));
    }
}

#[test]
fn whole_regions_are_got_before_their_pages_and_leave_one_by_one() {
    // As much is got ahead as two regions.
    let in_region = (REGION_BYTES / 4096) as u64;
    let pages = 10 * in_region;
    let (pool, _) = memory_pool(4096, 64 * 2 * in_region, pages);
    let mut got = false;
    for index in 0..pages {
        make_next(&pool, index);
        got |= pool.get_memory_ahead();
    }
    let joined = pool.statistics().joined;
    println!("the system does this: {got}; {joined} regions at once");
    if got {
        assert!((8..=10).contains(&joined), "{joined}");
    }
    for index in 0..pages {
        assert_eq!(read(&pool, nth(&pool, index)), Some(index));
    }
    // Pages of the middle leave, and come back as they were; so do those of the regions around them.
    let before = pool.free_frames();
    assert!(pool.evict_step(before + 3 * in_region as usize).unwrap() > 0);
    for index in 0..pages {
        assert_eq!(read(&pool, nth(&pool, index)), Some(index));
    }
}

#[test]
fn regress_pages_made_in_holes_get_no_memory_for_those_in_use_behind_them() {
    // As a file is found whose pages are in use but for some, far from each other.
    let (pool, _) = memory_pool(4096, 64 * 100, 20_000);
    let pool = Arc::new(pool);
    for index in (0..19_000).filter(|index| index % 100 > 0) {
        let (at, bit) = pool.geometry().bitmap_of(nth(&pool, index));
        bitmap::set(&mut pool.exclusive(at).unwrap(), bit, true);
    }
    let space = Space::load(pool.clone(), Gsn(1)).unwrap();
    let got = || pool.statistics().got_ahead;
    // The last hole is near the end.
    for hole in 0..189 {
        let (page, _) = space.take(false).unwrap();
        make(&pool, page, hole, 1);
        pool.get_memory_ahead();
        assert_eq!(got(), 0, "for page {page}");
    }
    // Behind the last page in use it is got.
    let (pages, _) = space.take_many(300, false).unwrap();
    make(&pool, pages[299], 1, 1);
    if pool.get_memory_ahead() {
        assert_eq!(got(), bound(6400));
    }
    pages.iter().for_each(|page| space.give(*page, Gsn(1)));
}
