//! Checkpoints: what is in the file when one is done.

use super::*;
use crate::{PageHeader, Pool, Space, kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vellum_base::{Gsn, PageId};
use vellum_io::{Call, Fault, Keep, MemoryDirectory, PowerCut, SimulatedDirectory, Torn};

#[test]
fn finished_checkpoint_survives_a_power_cut_that_drops_everything_unsynced() {
    let directory = SimulatedDirectory::new();
    let log = TestLog::at(0);
    let pool = pool_in(&directory, &log, 4096, 16, 16);
    for index in 0..12 {
        make(&pool, nth(&pool, index), index, index + 1);
    }
    make_temporary(&pool, nth(&pool, 12), 12, 1);
    assert_eq!(checkpoint(&pool), 12);
    assert_eq!(
        log.durable.load(Ordering::SeqCst),
        12,
        "the log comes first"
    );
    assert_eq!(checkpoint(&pool), 0, "nothing is dirty but version data");
    let after = directory.power_cut(
        1,
        PowerCut {
            keep: Keep::None,
            torn: Torn::None,
            reorder: false,
        },
    );
    let pool = reopen(&after, 16);
    for index in 0..12 {
        assert_eq!(read(&pool, nth(&pool, index)), Some(index));
    }
}

#[test]
fn page_held_at_the_beginning_is_waited_for() {
    let (pool, _) = memory_pool(4096, 8, 8);
    make(&pool, nth(&pool, 0), 1, 1);
    checkpoint(&pool);
    // Changed before the beginning, but the dirty flag comes with the release.
    let mut guard = pool.exclusive(nth(&pool, 0)).unwrap();
    stamp(&mut guard, 2);
    let mut scan = pool.checkpoint_begin();
    for _ in 0..5 {
        assert!(!pool.checkpoint_step(&mut scan, 4).unwrap());
    }
    drop(guard);
    while !pool.checkpoint_step(&mut scan, 4).unwrap() {}
    assert_eq!(
        value_of(nth(&pool, 0), &in_file(&pool, nth(&pool, 0))),
        Some(2)
    );
}

#[test]
fn durable_page_made_temporary_while_dirty_is_written_all_the_same() {
    // Otherwise: the checkpoint claims changes that are nowhere, and redo would apply later records
    // to the old page in the file.
    let log = TestLog::at(0);
    let pool = pool_in(&MemoryDirectory::new(), &log, 4096, 8, 8);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 100);
    let mut scan = pool.checkpoint_begin();
    make_temporary(&pool, page, 2, 120);
    while !pool.checkpoint_step(&mut scan, 4).unwrap() {}
    assert_eq!(in_file(&pool, page).gsn(), Gsn(120));
    assert!(log.durable.load(Ordering::SeqCst) >= 120);
    // That was all that was owed: from now on it is version data like any other.
    stamp(&mut pool.exclusive(page).unwrap(), 3);
    assert_eq!(checkpoint(&pool), 0);
}

#[test]
fn owed_page_that_is_discarded_or_made_again_is_still_written() {
    for again in [false, true] {
        let (pool, _) = memory_pool(4096, 8, 8);
        let page = nth(&pool, 0);
        make(&pool, page, 1, 100);
        make_temporary(&pool, page, 2, 120);
        pool.exclusive(page).unwrap().discard();
        if again {
            make_temporary(&pool, page, 3, 130);
            pool.exclusive(page).unwrap().discard();
        }
        assert_eq!(checkpoint(&pool), 1);
        assert!(in_file(&pool, page).gsn() >= Gsn(120));
    }
}

#[test]
fn regress_page_that_is_discarded_by_its_maker_stays_owed() {
    let (pool, _) = memory_pool(4096, 8, 8);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 100);
    pool.create(page, kind::FREE, PageId(1), true, Gsn(120))
        .unwrap()
        .discard();
    assert_eq!(checkpoint(&pool), 1);
    assert!(in_file(&pool, page).gsn() >= Gsn(120));
}

#[test]
fn error_in_a_step_skips_nothing() {
    for failing in 0..12 {
        let directory = SimulatedDirectory::new();
        let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, 16, 16);
        for index in 0..10 {
            make(&pool, nth(&pool, index), index, 1);
        }
        directory.fail(Fault::nth(Call::Write, failing));
        let mut scan = pool.checkpoint_begin();
        let mut errors = 0;
        loop {
            match pool.checkpoint_step(&mut scan, 3) {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => errors += 1,
            }
        }
        assert!(errors <= 1);
        for index in 0..10 {
            let page = nth(&pool, index);
            assert_eq!(
                value_of(page, &in_file(&pool, page)),
                Some(index),
                "write {failing}"
            );
        }
    }
}

#[test]
fn scan_ends_under_a_stream_of_changes() {
    let (pool, _) = memory_pool(4096, 16, 8);
    for index in 0..8 {
        make(&pool, nth(&pool, index), 0, 1);
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut value = 0;
            while !stop.load(Ordering::Relaxed) {
                value = (value + 1) % 1000;
                stamp(&mut pool.exclusive(nth(&pool, value % 8)).unwrap(), value);
            }
        });
        for _ in 0..20 {
            checkpoint(&pool);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn full_page_images_are_counted_once_a_page_and_cycle() {
    let (pool, _) = memory_pool(4096, 8, 8);
    for round in 0..3 {
        for index in 0..4 {
            if round == 0 {
                make(&pool, nth(&pool, index), 0, 1);
            }
            stamp(&mut pool.exclusive(nth(&pool, index)).unwrap(), round);
        }
        let statistics = pool.statistics();
        assert_eq!(statistics.full_page_images, 4 * (round + 1));
        assert_eq!(statistics.full_page_image_bytes, 4 * 4096 * (round + 1));
        checkpoint(&pool);
    }
}

#[test]
fn bitmap_pages_are_checkpointed_like_others() {
    let directory = MemoryDirectory::new();
    let log = TestLog::at(u64::MAX);
    let pool = Arc::new(pool_in(&directory, &log, 4096, 8, 100));
    let space = Space::load(pool.clone(), Gsn(1)).unwrap();
    let (page, _) = space.take(false).unwrap();
    let (at, bit) = space.bitmap_of(page);
    assert!(!crate::bitmap::set(
        &mut pool.exclusive(at).unwrap(),
        bit,
        true
    ));
    checkpoint(&pool);
    let pool = Pool::open(data_file(&directory), log, &config(4096, 8)).unwrap();
    let space = Space::load(Arc::new(pool), Gsn(1)).unwrap();
    assert_eq!(space.page_use(page), crate::PageUse::Durable);
    assert_eq!(space.counts().durable, 1);
    assert_eq!(kind::BITMAP, 2);
    assert_ne!(at, PageId::ZERO);
}

/// A log whose flush is the moment at which somebody changes a page.
#[derive(Default)]
struct Interrupting {
    pool: std::sync::OnceLock<Arc<Pool>>,
    durable: std::sync::atomic::AtomicU64,
}

impl vellum_wal::DurableGsn for Interrupting {
    fn durable_gsn(&self) -> Gsn {
        Gsn(self.durable.load(Ordering::SeqCst))
    }

    fn make_durable(&self, gsn: Gsn) -> vellum_base::Result<()> {
        self.durable.store(gsn.get(), Ordering::SeqCst);
        if let Some(pool) = self.pool.get() {
            // Between the copy of the page and its way into the file.
            let mut guard = pool.exclusive(nth(pool, 0)).unwrap();
            stamp(&mut guard, 2);
            guard.set_gsn(Gsn(gsn.get() + 1));
        }
        Ok(())
    }
}

#[test]
fn page_changed_while_its_copy_is_written_stays_dirty() {
    let log = Arc::new(Interrupting::default());
    let file = data_file(&MemoryDirectory::new());
    let pool = Arc::new(Pool::create_file(file, log.clone(), &config(4096, 8)).unwrap());
    pool.extend_file(pool.geometry().first_free().get() + 2)
        .unwrap();
    make(&pool, nth(&pool, 0), 1, 1);
    assert!(log.pool.set(pool.clone()).is_ok());
    checkpoint(&pool);
    let page = nth(&pool, 0);
    assert_eq!(in_file(&pool, page).gsn(), Gsn(1), "the copy was written");
    assert_eq!(read(&pool, page), Some(2));
    // The change is the next checkpoint's.
    log.durable.store(100, Ordering::SeqCst);
    assert_eq!(checkpoint(&pool), 1);
    assert_eq!(value_of(page, &in_file(&pool, page)), Some(2));
}
