//! Many threads, few frames: pages check themselves. Under shuttle with chosen schedules.

use super::*;
use crate::{Pool, Space};
use std::sync::Arc;
use vellum_base::random::Random;
use vellum_base::{Gsn, PageId};
use vellum_sync::{atomic::AtomicU64, atomic::Ordering, model, thread};

/// One thread's work: every kind of access at random. Word 4's value of a page counts its writes.
fn client(pool: &Pool, pages: u64, seed: u64, steps: u64, writes: &[AtomicU64]) {
    let mut random = Random::new(seed);
    for _ in 0..steps {
        let index = random.below(pages);
        let page = nth(pool, index);
        match random.below(9) {
            0 | 1 => {
                let mut guard = pool.exclusive(page).unwrap();
                let value = value_of(page, &guard).expect("whole under a latch");
                stamp(&mut guard, value + 1);
                let gsn = guard.gsn();
                guard.set_gsn(Gsn(gsn.get() + 1));
                writes[index as usize].fetch_add(1, Ordering::SeqCst);
            }
            2 => {
                let guard = pool.shared(page).unwrap();
                value_of(page, &guard).expect("whole under a latch");
            }
            3 => {
                let view = pool.optimistic(page).unwrap();
                let value = value_of(page, &view);
                if let Some(mut guard) = view.try_exclusive() {
                    let value = value.expect("whole when it was validated");
                    assert_eq!(
                        value_of(page, &guard),
                        Some(value),
                        "nobody came in between"
                    );
                    stamp(&mut guard, value + 1);
                    writes[index as usize].fetch_add(1, Ordering::SeqCst);
                }
            }
            4 => {
                pool.evict_step(2).unwrap();
            }
            5 => {
                let wanted = [0; 3].map(|_| nth(pool, random.below(pages)));
                assert!(pool.prefetch(&wanted) <= 3);
            }
            _ => {
                let view = pool.optimistic(page).unwrap();
                let value = value_of(page, &view);
                if view.validate() {
                    value.expect("whole when it was validated");
                }
            }
        }
        assert!(pool.free_frames() <= pool.frames());
    }
}

fn run(threads: u64, steps: u64, pages: u64, page_size: usize, seed: u64) {
    let log = TestLog::at(0);
    let directory = vellum_io::MemoryDirectory::new();
    let pool = Arc::new(pool_in(&directory, &log, page_size, 8, pages));
    for index in 0..pages {
        make(&pool, nth(&pool, index), 0, 1);
    }
    let writes: Arc<Vec<AtomicU64>> = Arc::new((0..pages).map(|_| AtomicU64::new(0)).collect());
    let clients: Vec<_> = (0..threads)
        .map(|client_number| {
            let (pool, writes) = (pool.clone(), writes.clone());
            thread::spawn(move || {
                client(&pool, pages, seed ^ client_number, steps, &writes);
            })
        })
        .collect();
    checkpoint(&pool);
    for client in clients {
        client.join().unwrap();
    }
    for index in 0..pages {
        let expected = writes[index as usize].load(Ordering::SeqCst);
        assert_eq!(
            read(&pool, nth(&pool, index)),
            Some(expected),
            "a write was lost"
        );
    }
    // What is in the file is what was in memory.
    checkpoint(&pool);
    let log = TestLog::at(u64::MAX);
    let pool = Pool::open(data_file(&directory), log, &config(4096, 64)).unwrap();
    for index in 0..pages {
        let expected = writes[index as usize].load(Ordering::SeqCst);
        assert_eq!(
            read(&pool, nth(&pool, index)),
            Some(expected),
            "the file has another state"
        );
    }
}

#[test]
#[cfg(not(shuttle))]
fn prop_no_write_is_lost_and_no_torn_page_believed_while_pages_come_and_go() {
    let mut random = random();
    for page_size in PAGE_SIZES {
        for pages in [9, 24] {
            run(4, 2000, pages, page_size, random.next_u64());
        }
    }
}

#[test]
#[cfg(not(shuttle))]
fn prop_pages_created_and_given_back_by_many_threads_keep_their_content() {
    let seed = random().next_u64();
    let log = TestLog::at(0);
    let directory = vellum_io::MemoryDirectory::new();
    let pool = Arc::new(pool_in(&directory, &log, 4096, 16, 0));
    let space = Arc::new(Space::load(pool.clone(), Gsn(1)).unwrap());
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (pool, space) = (pool.clone(), space.clone());
            thread::spawn(move || {
                let mut random = Random::new(seed ^ number);
                let mut mine: Vec<(PageId, u64, bool)> = Vec::new();
                for step in 0..1500 {
                    if mine.len() < 20 && random.chance(1, 2) {
                        let temporary = random.chance(1, 2);
                        let (page, floor) = space.take(temporary).unwrap();
                        let value = number << 16 | step;
                        if temporary {
                            make_temporary(&pool, page, value, floor.get());
                        } else {
                            make(&pool, page, value, floor.get());
                        }
                        mine.push((page, value, temporary));
                    } else if !mine.is_empty() {
                        let index = random.below(mine.len() as u64) as usize;
                        let (page, value, temporary) = mine[index];
                        assert_eq!(read(&pool, page), Some(value));
                        if random.chance(1, 2) {
                            mine.swap_remove(index);
                            if temporary {
                                pool.exclusive(page).unwrap().discard();
                            }
                            space.give(page, Gsn(step));
                        }
                    }
                }
                for (page, value, _) in mine {
                    assert_eq!(read(&pool, page), Some(value));
                }
            })
        })
        .collect();
    checkpoint(&pool);
    space.truncate_tail().unwrap();
    for client in clients {
        client.join().unwrap();
    }
}

#[test]
fn shuttle_small_pool_under_chosen_schedules() {
    model(if cfg!(shuttle) { 1000 } else { 5 }, || {
        run(3, 12, 10, 4096, 42)
    });
}
