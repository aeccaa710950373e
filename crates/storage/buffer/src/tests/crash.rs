//! Power cuts at every call of small workloads: torn pages are restored, nothing that a checkpoint
//! claimed is lost, and whatever lies in the file is a state that redo can build on.
//!
//! Not checked: that redo itself gets everything back (recovery's tests).

use super::*;
use crate::{Pool, RedoPage};
use std::collections::BTreeMap;
use vellum_base::random::Random;
use vellum_base::{Gsn, PageId};
use vellum_io::{Fault, Keep, PowerCut, SimulatedDirectory, Torn};

const PAGES: u64 = 14;
const FRAMES: u64 = 8;

/// What the workload knows when the power goes.
#[derive(Default)]
struct Ledger {
    /// Last GSN that a page was given, and whether it was temporary then.
    last: BTreeMap<PageId, (u64, bool)>,
    /// GSN of each durable page that a finished checkpoint has claimed.
    claimed: BTreeMap<PageId, u64>,
    /// The same of pages that are being overwritten by what nothing names: they may be torn, but not older.
    overwritten: BTreeMap<PageId, u64>,
}

/// Random changes, evictions and checkpoints, until a call fails. The value of a page is its GSN.
fn work(pool: &Pool, seed: u64, ledger: &mut Ledger, temporaries: bool) {
    let mut random = Random::new(seed);
    let mut gsn = 10;
    let mut steps = || -> vellum_base::Result<()> {
        for _ in 0..60 {
            let page = nth(pool, random.below(PAGES));
            gsn += 1;
            match random.below(10) {
                0 => {
                    let claimed: Vec<_> = ledger.last.iter().map(|(k, v)| (*k, *v)).collect();
                    let mut scan = pool.checkpoint_begin();
                    while !pool.checkpoint_step(&mut scan, 4)? {}
                    for (page, (gsn, temporary)) in claimed {
                        if temporary {
                            ledger.claimed.remove(&page);
                        } else {
                            ledger.claimed.insert(page, gsn);
                        }
                    }
                }
                1 => {
                    pool.evict_step(6)?;
                }
                2 if temporaries => {
                    // Freed and taken as version data; the GSN floor is the GSN of the free.
                    let mut guard = pool.create(page, crate::kind::LEAF, page, true, Gsn(gsn))?;
                    stamp(&mut guard, gsn);
                    ledger.last.insert(page, (gsn, true));
                    ledger.claimed.remove(&page);
                }
                3 | 4 if temporaries => {
                    // Freed, which changes it, and taken by a load, which brings it into the file before anything names it.
                    if ledger.last.get(&page).is_some_and(|known| !known.1) {
                        let mut guard = pool.exclusive(page)?;
                        ledger.last.insert(page, (gsn, false));
                        stamp(&mut guard, gsn);
                        guard.set_gsn(Gsn(gsn));
                        drop(guard);
                        if random.chance(1, 3) {
                            pool.evict_step(FRAMES as usize)?;
                        }
                        gsn += 1;
                    }
                    let mut guard = pool.create(page, crate::kind::LEAF, page, false, Gsn(gsn))?;
                    stamp(&mut guard, gsn);
                    drop(guard);
                    ledger.last.insert(page, (gsn, false));
                    if let Some(claimed) = ledger.claimed.remove(&page) {
                        ledger.overwritten.insert(page, claimed);
                    }
                    pool.write_unnamed(&[page])?;
                    ledger.overwritten.remove(&page);
                    ledger.claimed.insert(page, gsn);
                }
                _ => {
                    let known = ledger.last.get(&page);
                    let mut guard = if known.is_none_or(|known| known.1) {
                        pool.create(page, crate::kind::LEAF, page, false, Gsn(gsn))?
                    } else {
                        pool.exclusive(page)?
                    };
                    ledger.last.insert(page, (gsn, false));
                    stamp(&mut guard, gsn);
                    guard.set_gsn(Gsn(gsn));
                }
            }
        }
        Ok(())
    };
    let _ = steps();
}

/// Checks what a machine finds.
fn check(after: &SimulatedDirectory, ledger: &Ledger, what: &str) {
    let pool = reopen(after, FRAMES);
    pool.repair_torn_pages().unwrap();
    for (page, (last, _)) in &ledger.last {
        let claimed = ledger.claimed.get(page).copied();
        let overwritten = ledger.overwritten.get(page).copied();
        match pool.redo(*page).unwrap() {
            RedoPage::Readable(guard) => {
                let gsn = guard.gsn().get();
                assert!(
                    gsn <= *last,
                    "{what}: page {page} has GSN {gsn} of the future"
                );
                assert_eq!(
                    value_of(*page, &guard),
                    Some(gsn),
                    "{what}: page {page} is mixed"
                );
                if let Some(claimed) = claimed.max(overwritten) {
                    assert!(
                        gsn >= claimed,
                        "{what}: page {page} lost {claimed}, has {gsn}"
                    );
                }
            }
            RedoPage::Broken(error) => {
                assert!(claimed.is_none(), "{what}: claimed page {page}: {error}");
            }
        }
    }
    // Repair can be repeated, and finds nothing more to do.
    assert_eq!(pool.repair_torn_pages_again(), 0, "{what}");
}

impl Pool {
    fn repair_torn_pages_again(&self) -> u64 {
        evict_all(self);
        self.repair_torn_pages().unwrap()
    }
}

const CUTS: [PowerCut; 4] = [
    PowerCut {
        keep: Keep::None,
        torn: Torn::None,
        reorder: false,
    },
    PowerCut {
        keep: Keep::All,
        torn: Torn::None,
        reorder: false,
    },
    PowerCut {
        keep: Keep::Random,
        torn: Torn::Sector512,
        reorder: true,
    },
    PowerCut {
        keep: Keep::Random,
        torn: Torn::Block4096,
        reorder: true,
    },
];

/// Works until the call with this number; returns how many there were.
fn run(cut_after: Option<u64>, seed: u64, temporaries: bool) -> (u64, SimulatedDirectory, Ledger) {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, FRAMES, PAGES);
    let setup = directory.mutating_calls();
    if let Some(calls) = cut_after {
        directory.cut_after(calls);
    }
    let mut ledger = Ledger::default();
    work(&pool, seed, &mut ledger, temporaries);
    (directory.mutating_calls() - setup, directory, ledger)
}

fn crash_everywhere(seed: u64, temporaries: bool) {
    let run = |cut_after| run(cut_after, seed, temporaries);
    let calls = run(None).0;
    assert!(calls > 20, "the workload writes");
    for at in 0..calls {
        let (_, directory, ledger) = run(Some(at));
        for (kind, cut) in CUTS.into_iter().enumerate() {
            let what = format!("seed {seed}, call {at} of {calls}, cut {kind}");
            check(&directory.power_cut(seed ^ at, cut), &ledger, &what);
        }
        check(
            &directory.process_kill(),
            &ledger,
            &format!("seed {seed}, call {at}, kill"),
        );
    }
}

#[test]
fn crash_at_every_call_leaves_no_torn_page_and_loses_no_checkpoint() {
    let mut random = random();
    for _ in 0..3 {
        crash_everywhere(random.next_u64(), false);
    }
}

#[test]
fn crash_with_version_data_between_leaves_pages_that_redo_can_build_on() {
    let mut random = random();
    for _ in 0..3 {
        crash_everywhere(random.next_u64(), true);
    }
}

#[test]
fn crash_after_failed_writes_in_place_still_finds_whole_images() {
    let mut random = random();
    for round in 0..40 {
        let seed = random.next_u64();
        let directory = SimulatedDirectory::new();
        let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, FRAMES, PAGES);
        let mut ledger = Ledger::default();
        // A failed write, then more work as if nothing had happened, then the cut.
        directory.fail(
            Fault::nth(vellum_io::Call::Write, random.below(12)).with(vellum_io::FaultError::Short),
        );
        work(&pool, seed, &mut ledger, false);
        directory.cut_after(random.below(20));
        let before = ledger.last.len();
        for index in 0..PAGES {
            let page = nth(&pool, index);
            let Some((gsn, _)) = ledger.last.get(&page).copied() else {
                continue;
            };
            let Ok(mut guard) = pool.exclusive(page) else {
                break;
            };
            ledger.last.insert(page, (gsn + 1000, false));
            stamp(&mut guard, gsn + 1000);
            guard.set_gsn(Gsn(gsn + 1000));
            drop(guard);
            if pool.evict_step(6).is_err() {
                break;
            }
        }
        assert_eq!(before, ledger.last.len());
        for (kind, cut) in CUTS.into_iter().enumerate() {
            let what = format!("round {round}, seed {seed}, cut {kind}");
            check(&directory.power_cut(seed, cut), &ledger, &what);
        }
    }
}

#[test]
fn crash_during_repair_is_repaired_again() {
    let mut random = random();
    let seed = random.next_u64();
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, FRAMES, PAGES);
    directory.cut_after(40);
    let mut ledger = Ledger::default();
    work(&pool, seed, &mut ledger, false);
    let torn = PowerCut {
        keep: Keep::Random,
        torn: Torn::Sector512,
        reorder: true,
    };
    for calls in 0..6 {
        let first = directory.power_cut(seed, torn);
        first.cut_after(calls);
        let _ = reopen(&first, FRAMES).repair_torn_pages();
        check(
            &first.power_cut(seed ^ calls, torn),
            &ledger,
            &format!("seed {seed}, {calls}"),
        );
    }
}

/// A process was killed between the write of a half and its sync. The next one put the images that it read there in place; the power went: the
/// page was torn, and so was its only image, which nobody had synced. Now repair syncs what it reads before it writes.
#[test]
fn regress_crash_during_repair_after_a_killed_process_leaves_no_torn_page() {
    let seed = random().next_u64();
    let calls = run(None, seed, false).0;
    for at in 0..calls {
        let (_, directory, ledger) = run(Some(at), seed, false);
        for call in 0..4 {
            let second = directory.process_kill();
            second.cut_after(call);
            let _ = reopen(&second, FRAMES).repair_torn_pages();
            for (kind, cut) in CUTS.into_iter().enumerate() {
                let what =
                    format!("seed {seed}, killed at {at}, call {call} of repair, cut {kind}");
                check(&second.power_cut(seed ^ at, cut), &ledger, &what);
            }
        }
    }
}

#[test]
fn crash_long_after_a_failed_write_in_place_finds_the_page_whole() {
    let directory = SimulatedDirectory::new();
    let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, FRAMES, PAGES);
    let page = nth(&pool, 0);
    make(&pool, page, 1, 1);
    checkpoint(&pool);
    let mut guard = pool.exclusive(page).unwrap();
    stamp(&mut guard, 2);
    guard.set_gsn(Gsn(2));
    drop(guard);
    // The half is written, the page in place only by half.
    directory.fail(Fault::nth(vellum_io::Call::Write, 1).with(vellum_io::FaultError::Short));
    assert!((0..10).any(|_| {
        let _ = pool.evict_step(FRAMES as usize);
        pool.writer.lock().pending == [page]
    }));
    // Nobody writes that page again, and both halves are used for others.
    let held = pool.exclusive(page).unwrap();
    for index in 1..5 {
        make(&pool, nth(&pool, index), 9, 9);
        for _ in 0..4 {
            pool.evict_step(FRAMES as usize).unwrap();
        }
    }
    assert!(pool.statistics().batches >= 6);
    drop(held);
    for cut in CUTS {
        let pool = reopen(&directory.power_cut(7, cut), FRAMES);
        pool.repair_torn_pages().unwrap();
        assert_eq!(read(&pool, page), Some(2));
    }
}

#[test]
fn crash_soon_after_a_killed_process_still_finds_its_images() {
    let mut random = random();
    for round in 0..30 {
        let directory = SimulatedDirectory::new();
        let pool = pool_in(&directory, &TestLog::at(u64::MAX), 4096, FRAMES, PAGES);
        for batch in 0..1 + round % 2 {
            make(&pool, nth(&pool, batch), 5, 5);
            evict_all(&pool);
        }
        let last = nth(&pool, round % 2);
        // The last batch is in place, not synced; the next process does not even repair.
        let second = directory.process_kill();
        let pool = reopen(&second, FRAMES);
        second.cut_after(random.below(6));
        for index in 2..5 {
            make(&pool, nth(&pool, index), 9, 9);
            if pool.evict_step(FRAMES as usize).is_err() {
                break;
            }
        }
        for cut in CUTS {
            let pool = reopen(&second.power_cut(random.next_u64(), cut), FRAMES);
            pool.repair_torn_pages().unwrap();
            assert_eq!(read(&pool, last), Some(5), "round {round}");
        }
    }
}
