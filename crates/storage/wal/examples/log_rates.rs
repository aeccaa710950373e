//! Measures the log: nanoseconds an append, and hardened commits a second with 1 and 8 clients
//! against the device's own rate of overwriting 4 KiB and syncing, alternating in one run.
//!
//! `cargo run --release -p vellum-wal --example log_rates -- DIRECTORY [SECONDS]`
//!
//! Not measured: latency percentiles, other processes' writes.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use vellum_base::clock::monotonic_nanos;
use vellum_base::{Gsn, PageId, SlotId, Timestamp};
use vellum_io::{AlignedBuf, Directory, OpenOptions, RealDirectory};
use vellum_wal::*;

/// What the engine's checkpointer does, without pages: everything before now may go.
struct Recycle(std::sync::OnceLock<Arc<Log>>);

impl LogSpace for Recycle {
    fn make_space(&self) -> vellum_base::Result<bool> {
        let log = self.0.get().unwrap();
        log.flush_round()?;
        Ok(log.release_before(log.position())? > 0)
    }
}

fn header(kind: u8, gsn: Gsn) -> RecordHeader {
    RecordHeader {
        kind,
        flags: 0,
        page: PageId(1),
        tree: PageId(1),
        gsn,
    }
}

/// One transaction: a change of 150 bytes and a commit record.
fn commit(log: &Log, clock: &AtomicU64, slot: u16, payload: &[u8]) -> Timestamp {
    let slot = log.slot(SlotId(slot));
    slot.reserve(2 * RECORD_HEADER_BYTES + payload.len() + 8)
        .unwrap();
    let mut guard = slot.lock();
    let gsn = guard.draw(Gsn::ZERO);
    guard.append(&header(16, gsn), &[payload], &[]);
    let ts = Timestamp(clock.fetch_add(1, Ordering::SeqCst));
    let gsn = guard.draw(Gsn::ZERO);
    guard.append(&header(2, gsn), &[&ts.0.to_le_bytes()], &[]);
    ts
}

fn per_second(count: u64, from: u64) -> f64 {
    count as f64 * 1e9 / (monotonic_nanos() - from) as f64
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().expect("usage: log_rates DIRECTORY [SECONDS]"));
    let seconds: u64 = args
        .next()
        .map_or(1, |text| text.parse().expect("a number"));
    let path = path.join("log_rates.tmp");
    let real = RealDirectory::create(&path).unwrap();
    let dir: Arc<dyn Directory> = Arc::new(real);
    let clock = Arc::new(AtomicU64::new(1));
    let read = clock.clone();
    let now: Clock = Arc::new(move || Timestamp(read.load(Ordering::SeqCst)));
    let log = Log::create(dir.clone(), LogConfig::default(), now, LogStart::first()).unwrap();
    let log = Arc::new(log);
    let hook = Arc::new(Recycle(std::sync::OnceLock::new()));
    assert!(hook.0.set(log.clone()).is_ok());
    log.set_log_space(hook);
    let payload = [7; 118];

    // Appends: reserve, latch, draw, append, for a ring's worth at a time, the rounds not counted.
    let slot = log.slot(SlotId(100));
    let (mut spent, mut count, mut bare) = (0, 0, 0);
    for _ in 0..60 {
        log.flush_round().unwrap();
        slot.reserve(150).unwrap();
        let from = monotonic_nanos();
        for _ in 0..700 {
            slot.reserve(150).unwrap();
            let mut guard = slot.lock();
            let gsn = guard.draw(Gsn(1));
            guard.append(&header(16, gsn), &[&payload], &[]);
        }
        spent += monotonic_nanos() - from;
        log.flush_round().unwrap();
        slot.reserve(150 * 150).unwrap();
        let mut guard = slot.lock();
        let from = monotonic_nanos();
        for _ in 0..150 {
            let gsn = guard.draw(Gsn(1));
            guard.append(&header(16, gsn), &[&payload], &[]);
        }
        bare += monotonic_nanos() - from;
        count += 1;
    }
    println!(
        "reserve + latch + draw + append of 150 bytes: {} ns",
        spent / (count * 700)
    );
    println!("draw + append of 150 bytes: {} ns", bare / (count * 150));

    // The device, then one client, in turns.
    let raw = dir.open("raw", OpenOptions::create()).unwrap();
    let mut block = AlignedBuf::zeroed(1 << 20).unwrap();
    for at in 0..32 {
        raw.write_at(&block, at << 20).unwrap();
    }
    raw.sync_data().unwrap();
    for turn in 0..3 {
        let (from, mut raws) = (monotonic_nanos(), 0);
        while monotonic_nanos() - from < seconds * 1_000_000_000 {
            block[0] = block[0].wrapping_add(1);
            raw.write_at(&block[..4096], (raws * 4096) % (32 << 20))
                .unwrap();
            raw.sync_data().unwrap();
            raws += 1;
        }
        let device = per_second(raws, from);
        let (from, mut commits) = (monotonic_nanos(), 0);
        while monotonic_nanos() - from < seconds * 1_000_000_000 {
            let ts = commit(&log, &clock, 0, &payload);
            log.harden(ts).unwrap();
            commits += 1;
        }
        let one = per_second(commits, from);
        println!(
            "turn {turn}: overwrite + fdatasync {device:.0}/s; one client {one:.0}/s ({:.2})",
            one / device
        );
    }
    for clients in [8_u16, 64] {
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let before = log.statistics();
        let from = monotonic_nanos();
        let mut rate = 0.0;
        std::thread::scope(|scope| {
            for id in 0..clients {
                let (log, clock, stop, done) = (&log, &clock, &stop, &done);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let ts = commit(log, clock, id, &payload);
                        log.harden(ts).unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_secs(seconds));
            rate = per_second(done.load(Ordering::Relaxed), from);
            stop.store(true, Ordering::Relaxed);
        });
        let after = log.statistics();
        let rounds = after.rounds - before.rounds;
        let share = done.load(Ordering::Relaxed) as f64 / rounds as f64;
        println!("{clients} clients: {rate:.0} commits/s, {share:.1} commits a round");
    }
    println!("{:?}", log.statistics());
    drop(log);
    std::fs::remove_dir_all(&path).unwrap();
}
