//! Huge pages: who joins a region and who takes a page away from it see each other; contents stay.

use crate::huge::Regions;
use crate::state::{Outcome, PageState};
use vellum_sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_sync::{Arc, model, thread};

const ROUNDS: usize = 300;

#[test]
fn loom_memory_of_a_page_is_given_back_only_from_a_region_that_is_not_joined() {
    model(ROUNDS, || {
        let shared = Arc::new((PageState::new(), Regions::new(1), AtomicBool::new(false)));
        let (page, ..) = &*shared;
        assert!(page.try_exclusive(page.load()));
        page.release_exclusive(Outcome::Clean);
        let other = shared.clone();
        let evictor = thread::spawn(move || {
            let (page, regions, huge) = &*other;
            let seen = page.load();
            assert!(page.try_exclusive(seen), "nobody else latches");
            regions.before_discard(0, || huge.store(false, Relaxed));
            assert!(!huge.load(Relaxed), "a part of a huge page is given back");
            page.release_evicted();
        });
        let (page, regions, huge) = &*shared;
        let stays = || {
            let now = page.load();
            !now.is_evicted() && !now.is_exclusive()
        };
        regions.join(0, stays, || {
            huge.store(true, Relaxed);
            true
        });
        evictor.join().unwrap();
        assert!(!huge.load(Relaxed), "a region without one of its pages");
    });
}

#[cfg(not(any(loom, shuttle)))]
mod whole {
    use crate::huge::REGION_BYTES;
    use crate::tests::{make, memory_pool, nth, read};

    #[test]
    fn pages_of_a_joined_region_keep_their_contents_and_leave_one_by_one() {
        let in_region = (REGION_BYTES / 4096) as u64;
        let pages = 3 * in_region;
        let (pool, _) = memory_pool(4096, 2 * pages, pages);
        for index in 0..pages {
            make(&pool, nth(&pool, index), index, 1);
        }
        // Many came: the first step waits for the next.
        assert!(!pool.join_step());
        let joined = (0..1000).filter(|_| pool.join_step()).count() as u64;
        println!("{joined} regions joined (none where the system has no huge pages)");
        assert!(joined <= 3);
        assert_eq!(pool.statistics().joined, joined);
        for index in 0..pages {
            assert_eq!(read(&pool, nth(&pool, index)), Some(index));
        }
        let before = pool.free_frames();
        assert!(pool.evict_step(before + 700).unwrap() > 0);
        assert!(!pool.join_step(), "not while pages are evicted");
        for index in 0..pages {
            assert_eq!(read(&pool, nth(&pool, index)), Some(index));
        }
    }

    #[test]
    fn region_that_lacks_a_page_or_a_pool_that_is_nearly_full_joins_nothing() {
        let in_region = (REGION_BYTES / 4096) as u64;
        let (pool, _) = memory_pool(4096, 4 * in_region, 3 * in_region);
        for index in (0..3 * in_region).filter(|index| !index.is_multiple_of(in_region / 2)) {
            make(&pool, nth(&pool, index), index, 1);
        }
        assert!((0..1000).all(|_| !pool.join_step()));
        let (pool, _) = memory_pool(4096, 2 * in_region + 8, 2 * in_region);
        for index in 0..2 * in_region {
            make(&pool, nth(&pool, index), index, 1);
        }
        assert!((0..1000).all(|_| !pool.join_step()));
    }
}
