//! What a transaction costs without its work: begin and commit, uncontended and from several threads.
//!
//! `cargo run --release -p vellum-txn --example cost [threads]`

use std::sync::Arc;
use std::time::Duration;
use vellum_base::Timestamp;
use vellum_base::clock::monotonic_nanos;
use vellum_io::MemoryDirectory;
use vellum_txn::{Clock, Config, Durability, Isolation, Manager, Options, VersionStamp};
use vellum_wal::{Log, LogConfig, LogStart};

const TURNS: u64 = 2_000_000;

fn manager() -> Arc<Manager> {
    let clock = Arc::new(Clock::above(Timestamp::ZERO));
    let ticks = clock.clone();
    let log = Log::create(
        Arc::new(MemoryDirectory::new()),
        LogConfig {
            slot_buffer_bytes: 4 << 20,
            ..LogConfig::default()
        },
        Arc::new(move || ticks.now()),
        LogStart::first(),
    );
    let log = Arc::new(log.expect("a new log in memory"));
    Arc::new(Manager::new(log, clock, Config::default()))
}

fn measure(name: &str, turns: u64, mut turn: impl FnMut()) {
    let start = monotonic_nanos();
    (0..turns).for_each(|_| turn());
    let nanos = monotonic_nanos() - start;
    println!("{name:<40} {:>7.1} ns", nanos as f64 / turns as f64);
}

fn suite(manager: &Manager) {
    let options = Options {
        durability: Durability::Async,
        ..Options::default()
    };
    let begin = |options| manager.begin(options, Duration::ZERO).expect("a free slot");
    measure("begin + commit, read-only", TURNS, || {
        begin(options).commit().expect("nothing to fail");
    });
    let rc = Options {
        isolation: Isolation::ReadCommitted,
        ..options
    };
    let transaction = begin(rc);
    measure("read committed statement, others commit", TURNS, || {
        manager.clock().draw();
        transaction.statement();
    });
    measure("operation (raise and lower)", TURNS, || {
        assert!(transaction.operation().is_ok());
    });
    drop(transaction);
    measure("begin + stamp + commit, writer", TURNS / 8, || {
        let transaction = begin(options);
        transaction.stamp().expect("log space");
        transaction.commit().expect("log space");
    });
    let reader = begin(options);
    let snapshot = reader.snapshot();
    let (sees, misses) = {
        let writer = begin(options);
        (writer.slot(), writer.stamp().expect("log space"))
    };
    let version = VersionStamp {
        slot: sees,
        stamp: misses,
        command: 0,
    };
    measure("visible: stamp above the snapshot", TURNS, || {
        std::hint::black_box(reader.visible(std::hint::black_box(&version), snapshot, 0));
    });
    let old = VersionStamp {
        stamp: Timestamp(1),
        ..version
    };
    measure("visible: asked once, then cached", TURNS, || {
        std::hint::black_box(reader.visible(std::hint::black_box(&old), snapshot, 0));
    });
    measure("pass", TURNS / 8, || {
        std::hint::black_box(manager.pass());
    });
}

fn main() {
    let threads = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let manager = manager();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| suite(&manager));
        }
    });
    println!(
        "{} slots in use, {threads} thread(s)",
        manager.slots_in_use()
    );
}
