//! The state word, with a page modelled as two words. Under loom every interleaving and reordering;
//! otherwise real threads, a few hundred times.

use crate::state::{Outcome, PageState};
use vellum_sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_sync::{Arc, model, thread};

const ROUNDS: usize = 300;

/// A page of two words that are always equal when nobody writes.
struct Page {
    state: PageState,
    words: [AtomicU64; 2],
    /// What a write-out has put into the file.
    file: AtomicU64,
}

impl Page {
    /// A resident page with both words at `value`.
    fn resident(value: u64) -> Arc<Self> {
        let page = Self {
            state: PageState::new(),
            words: [AtomicU64::new(value), AtomicU64::new(value)],
            file: AtomicU64::new(value),
        };
        assert!(page.state.try_exclusive(page.state.load()));
        page.state.release_exclusive(Outcome::Clean);
        Arc::new(page)
    }

    fn store(&self, value: u64) {
        for word in &self.words {
            word.store(value, Relaxed);
        }
    }

    /// Latches exclusively; a page is never given up for good in these models.
    fn lock(&self) {
        loop {
            let seen = self.state.load();
            if self.state.try_exclusive(seen) {
                return;
            }
            thread::yield_now();
        }
    }

    fn write(&self, value: u64) {
        self.lock();
        self.store(value);
        self.state.release_exclusive(Outcome::Written(1));
    }

    /// One optimistic read: what was read, if it may be believed.
    fn optimistic(&self) -> Option<(u64, u64)> {
        let seen = self.state.load();
        if !seen.is_readable() {
            return None;
        }
        let read = (self.words[0].load(Relaxed), self.words[1].load(Relaxed));
        self.state
            .load_after_reads()
            .same_version(seen)
            .then_some(read)
    }

    /// Eviction as the pool does it, `DONTNEED` modelled as zeroes.
    fn evict(&self) -> bool {
        let seen = self.state.load();
        if seen.is_unlocked() && !self.state.mark(seen) {
            return false;
        }
        let seen = self.state.load();
        if !seen.is_marked() || seen.is_dirty() || !self.state.try_exclusive(seen) {
            return false;
        }
        self.store(0);
        self.state.release_evicted();
        true
    }

    /// A fault as the pool does it.
    fn fault(&self) -> bool {
        let seen = self.state.load();
        if !seen.is_evicted() || !self.state.try_exclusive(seen) {
            return false;
        }
        self.store(self.file.load(Relaxed));
        self.state.release_exclusive(Outcome::Untouched);
        true
    }
}

#[test]
fn loom_optimistic_reader_never_believes_a_torn_page() {
    model(ROUNDS, || {
        let page = Page::resident(1);
        let writer = page.clone();
        let writer = thread::spawn(move || {
            writer.write(2);
            writer.write(3);
        });
        for _ in 0..2 {
            if let Some((one, two)) = page.optimistic() {
                assert_eq!(one, two);
            }
        }
        writer.join().unwrap();
        assert_eq!(page.optimistic(), Some((3, 3)));
    });
}

#[test]
fn loom_optimistic_reader_sees_neither_eviction_nor_refill() {
    model(ROUNDS, || {
        let page = Page::resident(7);
        let evictor = page.clone();
        let evictor = thread::spawn(move || {
            if evictor.evict() {
                evictor.fault();
            }
        });
        for _ in 0..2 {
            if let Some(read) = page.optimistic() {
                assert_eq!(read, (7, 7));
            }
        }
        evictor.join().unwrap();
    });
}

#[test]
fn loom_upgrade_loses_no_update() {
    model(ROUNDS, || {
        let page = Page::resident(0);
        let add = |page: &Page| {
            loop {
                let seen = page.state.load();
                if !seen.is_readable() {
                    thread::yield_now();
                    continue;
                }
                let value = page.words[0].load(Relaxed);
                let now = page.state.load_after_reads();
                if now.same_version(seen) && page.state.try_exclusive(now) {
                    page.store(value + 1);
                    page.state.release_exclusive(Outcome::Written(1));
                    return;
                }
                thread::yield_now();
            }
        };
        let other = page.clone();
        let other = thread::spawn(move || add(&other));
        add(&page);
        other.join().unwrap();
        assert_eq!(page.optimistic(), Some((2, 2)));
    });
}

/// Reads under a shared latch, if there is no writer.
fn read_shared(page: &Page) {
    if page.state.try_shared(page.state.load()) {
        let one = page.words[0].load(Relaxed);
        let two = page.words[1].load(Relaxed);
        assert_eq!(one, two);
        page.state.release_shared();
    }
}

#[test]
fn loom_shared_holder_sees_a_page_at_rest_and_keeps_writers_out() {
    model(ROUNDS, || {
        let page = Page::resident(1);
        let writer = page.clone();
        let writer = thread::spawn(move || writer.write(2));
        read_shared(&page);
        writer.join().unwrap();
        assert!(page.state.load().is_unlocked());
    });
}

#[test]
fn loom_shared_holders_are_counted() {
    model(ROUNDS, || {
        let page = Page::resident(1);
        let reader = page.clone();
        let reader = thread::spawn(move || read_shared(&reader));
        read_shared(&page);
        reader.join().unwrap();
        assert!(page.state.load().is_unlocked());
    });
}

#[test]
fn loom_page_is_clean_only_if_the_file_has_it() {
    model(ROUNDS, || {
        let page = Page::resident(1);
        page.write(2);
        let writer = page.clone();
        let writer = thread::spawn(move || writer.write(3));
        let seen = page.state.load();
        if page.state.try_shared(seen) {
            let word = page.state.load();
            let copy = page.words[0].load(Relaxed);
            page.state.release_copied();
            page.file.store(copy, Relaxed);
            page.state.written_out(word);
        }
        writer.join().unwrap();
        let memory = page.words[0].load(Relaxed);
        assert!(page.state.load().is_dirty() || memory == page.file.load(Relaxed));
    });
}

#[test]
fn loom_fault_after_eviction_reads_what_was_written_out() {
    model(ROUNDS, || {
        let page = Page::resident(1);
        page.write(2);
        let reader = page.clone();
        // One thread writes out, another evicts (only once it is clean) and reads it in again.
        let reader = thread::spawn(move || {
            if reader.evict() {
                assert!(reader.fault());
                assert_eq!(reader.optimistic(), Some((2, 2)));
            }
        });
        let seen = page.state.load();
        if page.state.try_shared(seen) {
            let word = page.state.load();
            page.state.release_copied();
            page.file.store(2, Relaxed);
            page.state.written_out(word);
        }
        reader.join().unwrap();
    });
}

#[test]
fn loom_downgrade_lets_no_writer_in_between() {
    model(ROUNDS, || {
        let page = Page::resident(1);
        let writer = page.clone();
        let writer = thread::spawn(move || writer.write(5));
        page.lock();
        page.store(2);
        page.state.downgrade(Outcome::Written(1));
        assert_eq!(page.words[0].load(Relaxed), 2);
        page.state.release_shared();
        writer.join().unwrap();
    });
}

#[cfg(not(any(loom, shuttle)))]
mod transitions {
    use super::*;

    #[test]
    fn marked_page_that_was_used_is_not_dropped() {
        let page = Page::resident(1);
        assert!(page.state.mark(page.state.load()));
        let marked = page.state.load();
        assert!(page.state.unmark(marked).is_some());
        assert!(!page.state.try_exclusive(marked));
    }

    #[test]
    fn mark_survives_a_copy_for_write_out_but_not_a_reader() {
        let page = Page::resident(1);
        assert!(page.state.mark(page.state.load()));
        assert!(page.state.try_shared(page.state.load()));
        page.state.release_copied();
        assert!(page.state.load().is_marked());
        assert!(page.state.try_shared(page.state.load()));
        page.state.release_shared();
        assert!(page.state.load().is_unlocked());
    }

    #[test]
    fn shared_count_is_bounded() {
        let page = Page::resident(1);
        let mut holders = 0;
        while page.state.try_shared(page.state.load()) {
            holders += 1;
        }
        assert_eq!(holders, 252);
        assert!(page.state.load().is_readable());
        for _ in 0..holders {
            page.state.release_shared();
        }
        assert!(page.state.load().is_unlocked());
    }

    #[test]
    fn untouched_page_keeps_its_version_and_a_written_one_never_does() {
        let page = Page::resident(1);
        let before = page.state.load();
        page.lock();
        assert!(
            !page.state.load().same_version(before),
            "a held page is at another version"
        );
        page.state.release_exclusive(Outcome::Untouched);
        assert!(page.state.load().same_version(before));
        page.write(1);
        assert!(!page.state.load().same_version(before));
    }

    #[test]
    fn owed_page_stays_dirty_when_discarded_until_it_is_written() {
        let page = Page::resident(1);
        page.lock();
        page.state.release_exclusive(Outcome::Owed(9));
        assert_eq!(page.state.load().cycle(), 9);
        page.lock();
        page.state.release_exclusive(Outcome::Clean);
        let word = page.state.load();
        assert!(word.is_dirty() && word.is_owed());
        assert!(page.state.written_out(word));
        assert!(!page.state.load().is_dirty() && !page.state.load().is_owed());
    }
}
