//! What an access to a resident page costs: `cargo run --release -p vellum-buffer --example access`.

use std::hint::black_box;
use std::sync::Arc;
use vellum_base::clock::monotonic_nanos;
use vellum_base::random::Random;
use vellum_base::{Gsn, PageId, Result};
use vellum_buffer::{PageRead, PageWrite, Pool, PoolConfig, kind};
use vellum_io::{Directory, MemoryDirectory, OpenOptions};
use vellum_wal::DurableGsn;

/// A log that is always durable.
struct NoLog;

impl DurableGsn for NoLog {
    fn durable_gsn(&self) -> Gsn {
        Gsn::MAX
    }
    fn make_durable(&self, _: Gsn) -> Result<()> {
        Ok(())
    }
}

const ROUNDS: u64 = 2_000_000;

fn measure(what: &str, mut body: impl FnMut(u64)) {
    let start = monotonic_nanos();
    (0..ROUNDS).for_each(&mut body);
    let nanos = (monotonic_nanos() - start) as f64 / ROUNDS as f64;
    println!("{what:50} {nanos:8.1} ns");
}

fn main() -> Result<()> {
    let file = MemoryDirectory::new().open("data", OpenOptions::create())?;
    let config = PoolConfig::new(8192, 256 << 20);
    let pool = Pool::create_file(file, Arc::new(NoLog), &config)?;
    let first = pool.geometry().first_free().get();
    for (count, place) in [(64_u64, "cached"), (16_384, "in memory")] {
        for page in (first..first + count).map(PageId) {
            drop(pool.redo_create(page, kind::LEAF, page, Gsn(1))?);
        }
        let mut random = Random::new(1);
        let pages: Vec<_> = (0..4096)
            .map(|_| PageId(first + random.below(count)))
            .collect();
        let at = |round: u64| pages[(round % 4096) as usize];
        println!("{count} pages, {place}");
        measure("  optimistic + validate", |round| {
            let view = pool.optimistic(at(round)).expect("the page is resident");
            black_box(view.word(1));
            assert!(view.validate());
        });
        measure(
            "  optimistic + 40 dependent word reads + validate",
            |round| {
                let view = pool.optimistic(at(round)).expect("the page is resident");
                let mut offset = 24;
                for _ in 0..40 {
                    // An even offset that follows from what was read, as in a search.
                    offset = 24 + ((offset * 5 + view.u16_at(offset) as usize + 8) & 510);
                }
                black_box(offset);
                assert!(view.validate());
            },
        );
        measure("  shared", |round| {
            black_box(
                pool.shared(at(round))
                    .expect("the page is resident")
                    .word(1),
            );
        });
        measure("  exclusive + one word written", |round| {
            let mut guard = pool.exclusive(at(round)).expect("the page is resident");
            guard.set_word(5, round);
        });
    }
    Ok(())
}
