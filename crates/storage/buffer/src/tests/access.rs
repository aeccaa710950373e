//! Guards, faults, errors.

use super::*;
use crate::{Misfit, PageBuf, PageHeader, PageRead, PageWrite, Pool, RedoPage, kind};
use std::panic::AssertUnwindSafe;
use vellum_base::{Gsn, PageId, StorageError};
use vellum_io::{Call, Fault, MemoryDirectory, SimulatedDirectory};

#[test]
fn pages_survive_eviction_and_reopening_in_every_page_size() {
    for page_size in PAGE_SIZES {
        let directory = MemoryDirectory::new();
        let log = TestLog::at(u64::MAX);
        let pool = pool_in(&directory, &log, page_size, 8, 40);
        for index in 0..40 {
            make(&pool, nth(&pool, index), index + 1, index + 10);
        }
        for index in 0..40 {
            let page = pool.shared(nth(&pool, index)).unwrap();
            assert_eq!(value_of(page.page_id(), &page), Some(index + 1));
            assert_eq!(page.gsn(), Gsn(index + 10));
            assert_eq!((page.kind(), page.tree()), (kind::LEAF, page.page_id()));
        }
        checkpoint(&pool);
        drop(pool);
        // The file's page size wins over the settings.
        let pool = Pool::open(data_file(&directory), log, &config(4096, 64)).unwrap();
        assert_eq!(pool.page_size(), page_size);
        assert_eq!(read(&pool, nth(&pool, 39)), Some(40));
    }
}

#[test]
fn resident_pages_never_exceed_the_frames() {
    let (pool, _) = memory_pool(4096, 8, 100);
    for index in 0..100 {
        make(&pool, nth(&pool, index), index, 1);
        let resident = (0..100)
            .filter(|&other| pool.try_shared(nth(&pool, other)).is_some())
            .count();
        assert!(resident <= 8, "{resident} pages in 8 frames");
    }
    let resident = (pool.frames() - pool.free_frames()) as u64;
    assert_eq!(pool.statistics().evicted, 100 - resident);
}

#[test]
fn optimistic_view_is_invalid_after_a_write_and_valid_after_a_look() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    let view = pool.optimistic(page).unwrap();
    assert_eq!(value_of(page, &view), Some(1));
    drop(pool.exclusive(page).unwrap());
    drop(pool.shared(page).unwrap());
    assert!(view.validate(), "nothing was written");
    let mut guard = pool.exclusive(page).unwrap();
    assert!(!view.validate(), "somebody may be writing");
    stamp(&mut guard, 2);
    drop(guard);
    assert!(!view.validate());
    assert!(view.try_shared().is_none() && view.try_exclusive().is_none());
}

#[test]
fn optimistic_view_is_invalid_after_eviction_and_return() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    let view = pool.optimistic(page).unwrap();
    evict_all(&pool);
    assert!(!view.validate());
    assert_eq!(read(&pool, page), Some(1));
    assert!(!view.validate());
}

#[test]
fn upgrade_succeeds_on_the_version_that_was_read() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    let view = pool.optimistic(page).unwrap();
    let shared = view.try_shared().unwrap();
    assert!(view.try_exclusive().is_none(), "a reader is inside");
    assert!(pool.try_exclusive(page).is_none());
    drop(shared);
    let mut guard = view.try_exclusive().unwrap();
    assert!(pool.try_shared(page).is_none() && pool.try_optimistic(page).is_none());
    stamp(&mut guard, 3);
    let after = guard.into_optimistic();
    assert!(after.validate());
    assert_eq!(value_of(page, &after), Some(3));
}

#[test]
fn downgraded_page_is_dirty_and_shared() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    checkpoint(&pool);
    let mut guard = pool.exclusive(page).unwrap();
    stamp(&mut guard, 2);
    let shared = guard.downgrade();
    assert!(pool.try_shared(page).is_some() && pool.try_exclusive(page).is_none());
    let view = shared.optimistic();
    drop(shared);
    assert!(view.validate());
    evict_all(&pool);
    assert_eq!(read(&pool, page), Some(2));
}

#[test]
fn created_page_is_zero_but_for_its_header() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let page = nth(&pool, 0);
    make(&pool, page, u64::from(u32::MAX), 1);
    let guard = pool
        .create(page, kind::INNER, PageId(77), true, Gsn(5))
        .unwrap();
    assert_eq!(
        (guard.kind(), guard.tree(), guard.gsn()),
        (kind::INNER, PageId(77), Gsn(5))
    );
    assert!(guard.is_temporary());
    assert!((3..guard.size() / 8).all(|index| guard.word(index) == 0));
}

#[test]
fn words_outside_a_page_read_as_zero_and_are_not_written() {
    let (pool, _) = memory_pool(4096, 8, 2);
    make(&pool, nth(&pool, 0), 1, 1);
    make(&pool, nth(&pool, 1), 1, 1);
    let view = pool.optimistic(nth(&pool, 0)).unwrap();
    assert_eq!(
        (
            view.word(512),
            view.word(usize::MAX),
            view.u64_at(4092) >> 32
        ),
        (0, 0, 0)
    );
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        pool.exclusive(nth(&pool, 0)).unwrap().set_word(512, 1);
    }));
    assert!(result.is_err());
    assert_eq!(read(&pool, nth(&pool, 1)), Some(1));
}

#[test]
fn page_ids_that_are_no_pages_are_corruption() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let first = pool.geometry().first_free().get();
    for page in [0, 2, first - 1, first + 2, 1 << 20, u64::MAX] {
        let error = pool.optimistic(PageId(page)).map(|_| ()).unwrap_err();
        assert!(
            matches!(error, StorageError::Corruption { .. }),
            "page {page}: {error}"
        );
        assert!(
            pool.exclusive(PageId(page)).is_err() && pool.try_optimistic(PageId(page)).is_none()
        );
    }
    assert_eq!(pool.free_frames(), 8);
    assert!(pool.shared(PageId(1)).is_ok(), "the bitmap");
}

#[test]
fn flipped_bit_is_corruption_of_that_page_alone_and_costs_no_frame() {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, 8, 3);
    for index in 0..2 {
        make(&pool, nth(&pool, index), index, 1);
    }
    evict_all(&pool);
    let page = nth(&pool, 0);
    for bit_at in [0, 5, 100, 4095] {
        let offset = pool.geometry().offset(page) + bit_at;
        directory.flip_bit("data", offset, 3).unwrap();
        match pool.shared(page).map(|_| ()).unwrap_err() {
            StorageError::Corruption {
                page: named,
                expected,
                found,
                ..
            } => {
                assert_eq!(named, Some(page));
                assert_ne!(expected, found);
            }
            other => panic!("{other}"),
        }
        assert_eq!(pool.free_frames(), 8);
        directory.flip_bit("data", offset, 3).unwrap();
        assert_eq!(read(&pool, page), Some(0));
        assert_eq!(read(&pool, nth(&pool, 1)), Some(1));
        evict_all(&pool);
    }
}

#[test]
fn page_of_another_place_is_corruption() {
    let (pool, _) = memory_pool(4096, 8, 2);
    make(&pool, nth(&pool, 0), 1, 1);
    evict_all(&pool);
    let mut copy = vellum_io::AlignedBuf::zeroed(4096).unwrap();
    copy.copy_from_slice(in_file(&pool, nth(&pool, 0)).as_bytes());
    pool.file
        .write_at(&copy, pool.geometry().offset(nth(&pool, 1)))
        .unwrap();
    assert!(matches!(
        pool.shared(nth(&pool, 1)),
        Err(StorageError::Corruption { .. })
    ));
}

#[test]
fn page_that_fails_the_registered_check_is_corruption_and_costs_no_frame() {
    let (pool, _) = memory_pool(4096, 8, 2);
    for index in 0..2 {
        make(&pool, nth(&pool, index), index, index + 1);
    }
    evict_all(&pool);
    pool.set_check(|bytes| match bytes.gsn() {
        Gsn(2) => Err(Misfit {
            what: "another number",
            expected: 1,
            found: 2,
        }),
        _ => Ok(()),
    });
    let bad = nth(&pool, 1);
    let error = pool.shared(bad).map(|_| ()).unwrap_err();
    let StorageError::Corruption { page, what, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((page, what), (Some(bad), "another number"));
    assert_eq!((pool.prefetch(&[bad]), pool.free_frames()), (0, 8));
    assert_eq!(read(&pool, nth(&pool, 0)), Some(0));
}

#[test]
fn page_whose_gsn_no_record_has_is_corruption() {
    let directory = vellum_io::MemoryDirectory::new();
    let log = TestLog::at(7);
    let pool = pool_in(&directory, &log, 4096, 8, 2);
    for (index, gsn) in [(0, 7), (1, 8)] {
        make(&pool, nth(&pool, index), 9, gsn);
    }
    evict_all(&pool);
    let at_least = vellum_wal::DurableGsn::durable_gsn(&*log);
    assert_eq!(at_least, Gsn(8), "the WAL rule");
    assert_eq!(read(&pool, nth(&pool, 1)), Some(9));
    // The log of another time, which ends one record before.
    let pool = Pool::open(data_file(&directory), TestLog::at(7), &config(4096, 8)).unwrap();
    assert_eq!(read(&pool, nth(&pool, 0)), Some(9));
    let error = pool.shared(nth(&pool, 1)).map(drop).unwrap_err();
    let StorageError::Corruption {
        what,
        expected,
        found,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((what, expected, found), (crate::NEWER_THAN_LOG, 7, 8));
}

#[test]
fn read_error_leaves_the_page_readable_later() {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, 8, 2);
    make(&pool, nth(&pool, 0), 9, 1);
    evict_all(&pool);
    directory.fail(Fault::nth(Call::Read, 0));
    assert!(matches!(
        pool.optimistic(nth(&pool, 0)),
        Err(StorageError::Io { .. })
    ));
    assert_eq!(pool.free_frames(), 8);
    assert_eq!(read(&pool, nth(&pool, 0)), Some(9));
}

#[test]
fn never_written_page_reads_as_free_and_is_broken_for_redo() {
    let (pool, _) = memory_pool(4096, 8, 2);
    assert_eq!(pool.shared(nth(&pool, 0)).unwrap().kind(), kind::FREE);
    evict_all(&pool);
    assert!(matches!(
        pool.redo(nth(&pool, 0)).unwrap(),
        RedoPage::Broken(_)
    ));
    let beyond = nth(&pool, 500);
    assert!(matches!(pool.redo(beyond).unwrap(), RedoPage::Broken(_)));
    drop(
        pool.redo_create(beyond, kind::LEAF, beyond, Gsn(4))
            .unwrap(),
    );
    assert_eq!(pool.file_pages(), beyond.get() + 1);
    match pool.redo(beyond).unwrap() {
        RedoPage::Readable(guard) => assert_eq!(guard.gsn(), Gsn(4)),
        RedoPage::Broken(error) => panic!("{error}"),
    }
    // A bitmap page that the file does not even reach has no bits set.
    let bitmap = pool.geometry().bitmap_page(1);
    match pool.redo(bitmap).unwrap() {
        RedoPage::Readable(mut guard) => assert!(!crate::bitmap::set(&mut guard, 3, true)),
        RedoPage::Broken(error) => panic!("{error}"),
    }
    assert_eq!(pool.file_pages(), bitmap.get() + 1);
}

#[test]
fn foreign_newer_and_damaged_headers_are_told_apart() {
    const WHOLE: u64 = u64::MAX;
    let open = |change: &dyn Fn(&mut [u8]), length: u64| {
        let directory = MemoryDirectory::new();
        drop(pool_in(&directory, &TestLog::at(0), 8192, 8, 2));
        let file = data_file(&directory);
        let mut bytes = vellum_io::AlignedBuf::zeroed(4096).unwrap();
        file.read_at(&mut bytes, 0).unwrap();
        change(&mut bytes);
        file.write_at(&bytes, 0).unwrap();
        if length < WHOLE {
            file.set_len(length).unwrap();
        }
        Pool::open(file, TestLog::at(0), &config(4096, 16)).map(|_| ())
    };
    assert!(open(&|_| {}, WHOLE).is_ok());
    let foreign = |result| matches!(result, Err(StorageError::ForeignFormat { .. }));
    assert!(foreign(open(&|bytes| bytes[24] = b'X', WHOLE)));
    assert!(foreign(open(&|bytes| bytes[32] = 2, WHOLE)));
    assert!(foreign(open(&|bytes| bytes.fill(0), WHOLE)));
    let corrupt = |result| matches!(result, Err(StorageError::Corruption { .. }));
    assert!(corrupt(open(&|bytes| bytes[37] ^= 1, WHOLE)));
    assert!(corrupt(open(&|bytes| bytes[4000] ^= 1, WHOLE)));
    assert!(corrupt(open(&|bytes| bytes[44] = 1, WHOLE)));
    assert!(corrupt(open(&|_| {}, 8192)));
    assert!(corrupt(open(&|_| {}, 100)));
}

#[test]
fn pool_that_is_too_small_is_refused() {
    let file = data_file(&MemoryDirectory::new());
    let result = Pool::create_file(file, TestLog::at(0), &config(4096, 7)).map(|_| ());
    assert!(matches!(result, Err(StorageError::MemoryLimit { .. })));
}

#[test]
fn prop_moves_in_a_latched_page_equal_those_of_a_buffer() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    let mut random = random();
    let mut guard = pool.exclusive(page).unwrap();
    let mut buffer = PageBuf::new(4096);
    for word in 0..512 {
        let value = random.next_u64();
        guard.set_word(word, value);
        buffer.set_word(word, value);
    }
    for step in 0..4000 {
        let longest = if step % 2 == 0 { 4096 } else { 40 };
        let length = random.below(longest + 1);
        let from = random.below(4096 - length + 1) as usize;
        let to = random.below(4096 - length + 1) as usize;
        guard.move_within(from, to, length as usize);
        buffer.move_within(from, to, length as usize);
        let words = random.below(20) as usize;
        let (from, to) = (random.below(492) as usize, random.below(492) as usize);
        guard.move_words(from, to, words);
        buffer.move_words(from, to, words);
        let mut now = PageBuf::new(4096);
        guard.copy_to(&mut now);
        assert!(now == buffer, "step {step}");
    }
}

#[test]
fn prop_runs_written_through_a_guard_change_their_bytes_and_no_others() {
    let (pool, _) = memory_pool(4096, 8, 2);
    let mut random = super::random();
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    let mut guard = pool.exclusive(page).unwrap();
    let size = guard.size();
    let mut bytes = vec![0; size];
    guard.copy_out(0, &mut bytes);
    for _ in 0..4000 {
        // Behind the header, which has a meaning; short runs and ends of the page as well.
        let at = 64 + random.below((size - 64) as u64 + 1) as usize;
        let most = [8, 40, size][random.below(3) as usize].min(size - at);
        let mut run = vec![0; random.below(most as u64 + 1) as usize];
        random.fill(&mut run);
        guard.write(at, &run);
        bytes[at..at + run.len()].copy_from_slice(&run);
        let mut now = vec![0; size];
        guard.copy_out(0, &mut now);
        assert_eq!(now, bytes, "{} bytes at {at}", run.len());
    }
}
