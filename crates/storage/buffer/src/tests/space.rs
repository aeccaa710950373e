//! Allocation.

use super::*;
use crate::{Claim, PageUse, Pool, RESERVE_PAGES, Space, SpaceCounts, bitmap, kind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vellum_base::{Gsn, PageId, StorageError};
use vellum_io::{Call, Fault, MemoryDirectory, SimulatedDirectory};
use vellum_sync::test_point::TestPoints;

fn space_in(directory: &dyn vellum_io::Directory, page_size: usize) -> (Arc<Pool>, Space) {
    let pool = Arc::new(pool_in(directory, &TestLog::at(u64::MAX), page_size, 16, 0));
    let space = Space::load(pool.clone(), Gsn(7)).unwrap();
    (pool, space)
}

/// Sets or clears the bit of a page, as the tree's records would.
fn log_bit(pool: &Pool, page: PageId, value: bool) {
    let (at, bit) = pool.geometry().bitmap_of(page);
    assert_ne!(
        bitmap::set(&mut pool.exclusive(at).unwrap(), bit, value),
        value
    );
}

fn check_sum(space: &Space) -> SpaceCounts {
    let counts = space.counts();
    assert_eq!(
        counts.durable + counts.temporary + counts.free + counts.reserved,
        counts.file
    );
    counts
}

#[test]
fn prop_pages_have_one_user_at_a_time_and_reopening_finds_the_durable_ones() {
    let mut random = random();
    for page_size in PAGE_SIZES {
        let directory = MemoryDirectory::new();
        let (pool, space) = space_in(&directory, page_size);
        let mut taken: BTreeMap<PageId, bool> = BTreeMap::new();
        let mut freed = 7;
        for _ in 0..2000 {
            if random.chance(3, 5) || taken.is_empty() {
                let temporary = random.chance(1, 3);
                let count = random.between(1, 5) as usize;
                let (pages, floor) = space.take_many(count, temporary).unwrap();
                assert_eq!((pages.len(), floor), (count, Gsn(freed)));
                for page in pages {
                    assert!(!pool.geometry().is_reserved(page) && page.get() < pool.file_pages());
                    assert!(taken.insert(page, temporary).is_none(), "page {page} twice");
                    if !temporary {
                        log_bit(&pool, page, true);
                    }
                }
            } else {
                let index = random.below(taken.len() as u64) as usize;
                let (page, temporary) = taken.iter().nth(index).map(|(k, v)| (*k, *v)).unwrap();
                taken.remove(&page);
                if temporary {
                    space.give(page, Gsn::ZERO);
                } else {
                    freed += random.below(3);
                    log_bit(&pool, page, false);
                    space.give(page, Gsn(freed));
                }
            }
        }
        let counts = check_sum(&space);
        assert_eq!(counts.durable + counts.temporary, taken.len() as u64);
        checkpoint(&pool);
        drop((pool, space));
        let log = TestLog::at(u64::MAX);
        let pool = Pool::open(data_file(&directory), log, &config(page_size, 16)).unwrap();
        let space = Space::load(Arc::new(pool), Gsn(1)).unwrap();
        let counts = check_sum(&space);
        assert_eq!(counts.temporary, 0, "a restart gives version data back");
        let durable: BTreeSet<_> = taken
            .iter()
            .filter(|entry| !entry.1)
            .map(|e| *e.0)
            .collect();
        assert_eq!(counts.durable, durable.len() as u64);
        for (page, temporary) in taken {
            let expected = if temporary {
                PageUse::Free
            } else {
                PageUse::Durable
            };
            assert_eq!(space.page_use(page), expected);
        }
    }
}

#[test]
fn groups_beyond_the_first_get_their_bitmaps() {
    let (pool, space) = space_in(&MemoryDirectory::new(), 4096);
    let group = pool.geometry().group_pages();
    let count = group + 100;
    let (pages, _) = space.take_many(count as usize, true).unwrap();
    let distinct: BTreeSet<_> = pages.iter().collect();
    assert_eq!(distinct.len() as u64, count);
    assert!(pages.iter().all(|page| !pool.geometry().is_bitmap(*page)));
    assert!(pages.iter().any(|page| page.get() > group + 1));
    assert_eq!(space.page_use(PageId(group + 1)), PageUse::Reserved);
    check_sum(&space);
}

#[test]
fn full_disk_takes_nothing_and_leaves_the_reserve_for_critical_work() {
    let directory = SimulatedDirectory::new();
    let (_, space) = space_in(&directory, 4096);
    directory.set_space_limit(Some(directory.used_space() + 40 * 4096));
    let mut taken = Vec::new();
    let error = loop {
        match space.take_many(3, false) {
            Ok((pages, _)) => taken.extend(pages),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StorageError::OutOfSpace { .. }));
    let aside = space.set_aside(space.counts().file);
    assert!(
        taken.len() as u64 + RESERVE_PAGES + aside >= 30,
        "a nearly full disk gives what it has"
    );
    let counts = check_sum(&space);
    assert!(counts.free >= RESERVE_PAGES && counts.free <= 2 + RESERVE_PAGES + aside);
    assert_eq!(counts.durable, taken.len() as u64, "all or none");
    let mut upkeep = 0;
    loop {
        // Version data, and what deletes need.
        match space.take_for(Claim::Upkeep, upkeep % 2 == 0) {
            Ok((page, _)) => taken.push(page),
            Err(error) => break assert!(matches!(error, StorageError::OutOfSpace { .. })),
        }
        upkeep += 1;
    }
    assert!(
        upkeep >= aside && aside > 0,
        "{upkeep} pages, {aside} set aside"
    );
    assert_eq!(check_sum(&space).free, RESERVE_PAGES);
    let critical: Vec<_> = (0..RESERVE_PAGES)
        .map(|_| space.take_for(Claim::Critical, false).unwrap().0)
        .collect();
    assert!(space.take_for(Claim::Critical, true).is_err());
    // Space that is given back can be taken again, and the disk may be enlarged.
    for page in taken.iter().chain(&critical) {
        space.give(*page, Gsn(20));
    }
    assert_eq!(space.take(false).unwrap().1, Gsn(20));
    directory.set_space_limit(None);
    space.take_many(1000, false).unwrap();
    check_sum(&space);
}

#[test]
fn failed_growth_changes_nothing() {
    let directory = SimulatedDirectory::new();
    let (pool, space) = space_in(&directory, 4096);
    directory.fail(Fault::nth(Call::Allocate, 0));
    let before = (space.counts(), pool.file_pages());
    assert!(matches!(space.take(true), Err(StorageError::Io { .. })));
    assert_eq!((space.counts(), pool.file_pages()), before);
    space.take(true).unwrap();
}

#[test]
fn range_of_addresses_bounds_the_file() {
    let directory = MemoryDirectory::new();
    let settings = crate::PoolConfig {
        pages_max: 100,
        ..config(4096, 16)
    };
    let pool = Pool::create_file(data_file(&directory), TestLog::at(0), &settings).unwrap();
    let space = Space::load(Arc::new(pool), Gsn(1)).unwrap();
    while space.take(true).is_ok() {}
    assert!(space.counts().file <= 100 && space.counts().free == RESERVE_PAGES);
}

#[test]
fn growth_ahead_of_need_spares_the_taker() {
    let directory = SimulatedDirectory::new();
    let (_, space) = space_in(&directory, 4096);
    assert!(space.runs_short());
    while space.runs_short() {
        space.grow().unwrap();
    }
    let calls = directory.counts().of(Call::Allocate);
    space.take_many(10, false).unwrap();
    assert_eq!(directory.counts().of(Call::Allocate), calls);
}

#[test]
#[should_panic(expected = "was given back while it is Free")]
fn page_given_back_twice_panics() {
    let (_, space) = space_in(&MemoryDirectory::new(), 4096);
    let (page, _) = space.take(true).unwrap();
    space.give(page, Gsn(1));
    space.give(page, Gsn(1));
}

#[test]
fn bitmap_that_is_something_else_or_claims_too_much_is_corruption() {
    for case in 0..3 {
        let directory = MemoryDirectory::new();
        let (pool, space) = space_in(&directory, 4096);
        drop(space);
        match case {
            0 => drop(
                pool.create(PageId(1), kind::LEAF, PageId(0), false, Gsn(1))
                    .unwrap(),
            ),
            1 => log_bit(&pool, PageId(5), true),
            _ => log_bit(&pool, PageId(pool.file_pages()), true),
        }
        let error = Space::load(pool, Gsn(1)).map(|_| ()).unwrap_err();
        assert!(
            matches!(error, StorageError::Corruption { .. }),
            "case {case}: {error}"
        );
    }
}

#[test]
fn truncation_cuts_free_tail_and_forgets_its_pages() {
    let directory = SimulatedDirectory::new();
    let (pool, space) = space_in(&directory, 4096);
    let count = pool.geometry().group_pages() + 50;
    let (pages, _) = space.take_many(count as usize, false).unwrap();
    let keep = pages[10];
    make(&pool, keep, 1, 10);
    log_bit(&pool, keep, true);
    // Pages of the tail are resident and dirty when they go.
    for page in &pages[pages.len() - 3..] {
        make(&pool, *page, 9, 10);
    }
    for page in pages.iter().filter(|page| **page != keep) {
        space.give(*page, Gsn(30));
    }
    let before = check_sum(&space).file;
    let removed = space.truncate_tail().unwrap();
    assert_eq!(before - removed, keep.get() + 1);
    assert_eq!(check_sum(&space).file, keep.get() + 1);
    assert_eq!(pool.file.len().unwrap(), (keep.get() + 1) * 4096);
    assert_eq!(space.truncate_tail().unwrap(), 0);
    assert!(pool.shared(*pages.last().unwrap()).is_err());
    evict_all(&pool);
    assert_eq!(
        pool.file.len().unwrap(),
        (keep.get() + 1) * 4096,
        "nothing wrote beyond the end"
    );
    assert_eq!(read(&pool, keep), Some(1));
    // And it grows again, into pages that know nothing of their earlier life.
    let (again, floor) = space.take_many(count as usize, false).unwrap();
    assert_eq!(floor, Gsn(30));
    let last = *again.last().unwrap();
    assert_eq!(
        crate::PageHeader::kind(&pool.shared(last).unwrap()),
        kind::FREE
    );
    check_sum(&space);
}

#[test]
fn failed_truncation_leaves_the_file_usable() {
    let directory = SimulatedDirectory::new();
    let (pool, space) = space_in(&directory, 4096);
    let (pages, _) = space.take_many(300, false).unwrap();
    for page in &pages {
        space.give(*page, Gsn(30));
    }
    let before = space.counts();
    directory.fail(Fault::nth(Call::SetLen, 0));
    assert!(space.truncate_tail().is_err());
    assert_eq!((space.counts(), pool.file_pages()), (before, before.file));
    assert!(space.truncate_tail().unwrap() > 0);
    assert_eq!(space.counts().file, pool.geometry().first_free().get());
}

#[test]
fn truncation_gives_up_while_somebody_holds_a_page_of_the_tail() {
    let (pool, space) = space_in(&MemoryDirectory::new(), 4096);
    let (pages, _) = space.take_many(30, true).unwrap();
    make_temporary(&pool, pages[29], 1, 7);
    let held = pool.shared(pages[29]).unwrap();
    for page in &pages {
        space.give(*page, Gsn(7));
    }
    let before = space.counts();
    assert_eq!(space.truncate_tail().unwrap(), 0);
    assert_eq!((space.counts(), pool.file_pages()), (before, before.file));
    drop(held);
    assert!(space.truncate_tail().unwrap() >= 30);
}

/// A page at the end of the file that was given back, and is in the file but not in memory.
fn given_back(pool: &Pool, space: &Space) -> PageId {
    let (pages, _) = space.take_many(30, true).unwrap();
    make_temporary(pool, pages[29], 1, 7);
    evict_all(pool);
    for page in &pages {
        space.give(*page, Gsn(7));
    }
    assert!(!pool.is_resident(pages[29]));
    pages[29]
}

#[test]
fn regress_late_reader_of_a_page_that_is_being_cut_off_does_not_bring_it_back() {
    type Read = fn(&Pool, PageId) -> bool;
    let ways: [(&str, Read); 2] = [
        ("fault: before the latch", |pool, page| {
            pool.shared(page).is_ok()
        }),
        ("prefetch: before the latch", |pool, page| {
            pool.prefetch(&[page]) > 0
        }),
    ];
    for (at, read) in ways {
        let (pool, space) = space_in(&MemoryDirectory::new(), 4096);
        let page = given_back(&pool, &space);
        let points = TestPoints::new();
        let reads = points.pause(at);
        let cuts = points.pause("truncation: before the cut");
        std::thread::scope(|scope| {
            let (pool, space, points) = (&pool, &space, &points);
            let reader = scope.spawn(move || {
                let _entered = points.enter();
                read(pool, page)
            });
            reads.wait_reached();
            let truncation = scope.spawn(move || {
                let _entered = points.enter();
                space.truncate_tail()
            });
            cuts.wait_reached();
            reads.release();
            let brought_back = reader.join().unwrap();
            cuts.release();
            let cut = truncation.join().unwrap().unwrap();
            assert!(!brought_back, "{at}: a page beyond the end was read");
            assert!(cut >= 30);
        });
        assert!(!pool.is_resident(page), "{at}");
    }
}

#[test]
fn regress_truncation_gives_up_while_a_page_of_the_tail_is_being_read() {
    let (pool, space) = space_in(&MemoryDirectory::new(), 4096);
    let page = given_back(&pool, &space);
    let points = TestPoints::new();
    let reads = points.pause("fault: before the file is read");
    std::thread::scope(|scope| {
        let (pool, points) = (&pool, &points);
        let reader = scope.spawn(move || {
            let _entered = points.enter();
            pool.shared(page).map(drop)
        });
        reads.wait_reached();
        let before = space.counts();
        let cut = space.truncate_tail();
        let now = (space.counts(), pool.file_pages());
        reads.release();
        let read = reader.join().unwrap();
        assert_eq!(cut.unwrap(), 0);
        assert_eq!(now, (before, before.file));
        read.unwrap();
    });
    assert!(space.truncate_tail().unwrap() >= 30);
    assert!(!pool.is_resident(page));
}

#[test]
fn regress_repair_after_truncation_shows_no_page_that_lacks_changes() {
    let directory = SimulatedDirectory::new();
    let (pool, space) = space_in(&directory, 4096);
    let (page, _) = space.take(false).unwrap();
    make(&pool, page, 1, 90);
    checkpoint(&pool);
    // Changes that only memory has, of which the log may know nothing any more.
    stamp(&mut pool.exclusive(page).unwrap(), 2);
    space.give(page, Gsn(120));
    assert!(space.truncate_tail().unwrap() > 0);
    space.grow().unwrap();
    assert!(page.get() < pool.file_pages());
    drop((space, pool));
    let pool = reopen(&directory.process_kill(), 16);
    pool.repair_torn_pages().unwrap();
    if let crate::RedoPage::Readable(guard) = pool.redo(page).unwrap() {
        assert_eq!(
            value_of(page, &guard),
            Some(2),
            "the file shows an old life"
        );
    }
}
