//! Rows "power loss" and "process killed … also during recovery, checkpoint, DDL, bulk load". Workloads that are written by hand are cut at every call,
//! long and random ones at a sample of them (at all with `VELLUM_THOROUGH=1`).

mod engine;

use engine::{KEY_LIMIT, open, profile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use vellum::{Database, Transaction};
use vellum_crash::power::{Effort, Tried, every_call, some_calls};
use vellum_crash::syncs::half_made;
use vellum_crash::workload;
use vellum_io::{PowerCut, SimulatedDirectory};
use vellum_model::engine::EngineSubject;
use vellum_model::run::{first_seed, thorough};
use vellum_model::{Answer, Step, Subject};
use vellum_sync::test_point::TestPoints;

/// All calls if it is to be thorough; else a sample that differs from run to run.
fn cut(name: &str, history: &[Step]) -> Tried {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let result = match thorough() {
        false => some_calls(
            history,
            KEY_LIMIT,
            Effort {
                seeds: 1,
                second_cuts: 1,
            },
            12,
            seed,
            &open,
        ),
        true => every_call(
            history,
            KEY_LIMIT,
            Effort {
                seeds: 2,
                second_cuts: 2,
            },
            seed,
            &open,
        ),
    };
    let tried = result.unwrap_or_else(|failure| {
        panic!("VELLUM_SEED={seed} cargo test -p vellum-crash {name}\n{failure:?}")
    });
    eprintln!("{tried:?}");
    tried
}

#[test]
fn crash_power_during_a_long_bulk_load_keeps_what_was_acknowledged() {
    cut("crash_power_during_a_long_bulk", &workload::bulk_load(2000));
}

#[test]
fn crash_power_during_random_histories_keeps_what_was_acknowledged() {
    let seed = first_seed();
    cut(
        "crash_power_during_random",
        &workload::random(seed, 200, &profile()),
    );
}

/// Cuts every call of a workload that is written by hand, with every kind of cut and a kill, for each of these page sizes. There are `calls` of them at
/// least, of which `lengths` change the length of a file, or reserve one: what is cut does not shrink unseen.
fn cut_every(
    name: &str,
    make: impl Fn(u32) -> Vec<Step>,
    page_sizes: &[usize],
    indexed: bool,
    (calls, lengths): (u64, u64),
) {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    for page_size in page_sizes {
        let config = engine::config_of(*page_size);
        let open = |disk: &SimulatedDirectory| engine::open_with(disk, &config, indexed);
        let effort = match thorough() {
            // Recovery is the same code whatever the size of its pages.
            false => Effort {
                seeds: 1,
                second_cuts: u64::from(*page_size == engine::PAGE_SIZE),
            },
            true => Effort {
                seeds: 3,
                second_cuts: 2,
            },
        };
        let history = make(*page_size as u32);
        let tried = every_call(&history, page_size / 8, effort, seed, &open);
        let tried = tried.unwrap_or_else(|failure| {
            let replay = format!("VELLUM_SEED={seed} cargo test -p vellum-crash {name}");
            panic!("{replay}\npages of {page_size} bytes: {failure:?}")
        });
        eprintln!("pages of {page_size} bytes: {tried:?}");
        assert!(tried.calls >= calls, "{} calls", tried.calls);
        assert!(tried.lengths >= lengths, "{} lengths", tried.lengths);
        let ways = PowerCut::KINDS.len() as u64 + 1;
        assert!(tried.cuts >= tried.calls * ways, "{} cuts", tried.cuts);
    }
}

/// A workload whose pages are large is torn in more places: at 512 bytes and at 4 KiB.
const SIZES: [usize; 3] = [4 << 10, 8 << 10, 16 << 10];

#[test]
fn crash_power_at_every_call_of_commits_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_commits";
    cut_every(name, |_| workload::commits(), &SIZES[..1], false, (60, 5));
}

#[test]
fn crash_power_at_every_call_of_transactions_longer_than_their_buffer_keeps_what_was_acknowledged()
{
    let make = |page| workload::long_transactions(page / 5);
    let name = "crash_power_at_every_call_of_transactions_longer";
    cut_every(name, make, &SIZES[..1], false, (130, 9));
}

#[test]
fn crash_power_at_every_call_of_rollbacks_and_checkpoints_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_rollbacks";
    cut_every(name, |_| workload::rollbacks(), &SIZES[..2], true, (70, 5));
}

#[test]
fn crash_power_at_every_call_of_several_losers_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_several_losers";
    cut_every(name, |_| workload::losers(), &SIZES[..1], false, (60, 5));
}

#[test]
fn crash_power_at_every_call_of_ddl_keeps_what_was_acknowledged() {
    let make = |_| workload::tables(u32::MAX);
    let name = "crash_power_at_every_call_of_ddl";
    cut_every(name, make, &SIZES[..1], false, (90, 6));
}

#[test]
fn crash_power_at_every_call_of_what_shortens_the_file_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_what_shortens";
    cut_every(name, |_| workload::shrinks(), &SIZES[..2], false, (90, 6));
}

#[test]
fn crash_power_at_every_call_of_updates_of_fat_rows_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_updates_of_fat_rows";
    cut_every(name, |_| workload::hot_rows(), &SIZES[..1], false, (80, 5));
}

#[test]
fn crash_power_at_every_call_of_a_bulk_load_keeps_what_was_acknowledged() {
    let make = |_| workload::bulk_load(300);
    let name = "crash_power_at_every_call_of_a_bulk_load";
    cut_every(name, make, &SIZES[..1], false, (65, 5));
}

#[test]
fn crash_power_at_every_call_of_values_of_many_pages_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_values";
    cut_every(name, workload::large_values, &SIZES, false, (180, 8));
}

#[test]
fn crash_power_at_every_call_of_splits_and_merges_keeps_what_was_acknowledged() {
    let name = "crash_power_at_every_call_of_splits";
    let make = workload::splits_and_merges;
    cut_every(name, make, &SIZES, true, (90, 5));
}

/// Others write all that the log has room for just when a checkpoint has found out which segments it will give back: none of those is used again
/// before the control file that needs it no more is durable. The calls of one thread, which all other tests here cut, never come to that.
#[test]
fn crash_power_right_before_the_control_file_of_a_checkpoint_keeps_what_was_acknowledged() {
    let disk = SimulatedDirectory::new();
    let config = engine::config();
    let open = |disk: &SimulatedDirectory| {
        Database::open_directory(Arc::new(disk.clone()), config.clone()).expect("opens")
    };
    let database = open(&disk);
    let table = database.retry(|tx| tx.create_table("a")).expect("is made");
    let acknowledged = AtomicU32::new(0);
    let written = || database.statistics().log_bytes_written;
    let write = |segments: u64| {
        let until = written() + segments * config.log_segment_bytes;
        while written() < until {
            let from = acknowledged.load(Ordering::SeqCst);
            let put = |tx: &Transaction| {
                (from..from + 10)
                    .try_for_each(|row| tx.insert(&table, &row.to_be_bytes(), &[7; 500]))
            };
            database.retry(put).expect("is acknowledged");
            acknowledged.store(from + 10, Ordering::SeqCst);
        }
    };
    write(3);
    let points = TestPoints::new();
    let pause = points.pause("checkpoint: control file not written");
    let found = thread::scope(|scope| {
        let checkpoint = scope.spawn(|| {
            let _inside = points.enter();
            database.checkpoint()
        });
        pause.wait_reached();
        // More than there is room for until the checkpoint has ended.
        let writer = scope.spawn(|| write(config.log_bytes_max / config.log_segment_bytes));
        let mut last = 0;
        while last != written() && !writer.is_finished() {
            last = written();
            thread::sleep(Duration::from_millis(200));
        }
        let rows = acknowledged.load(Ordering::SeqCst);
        let found = [disk.process_kill(), disk.power_cut(1, PowerCut::CLEAN)];
        pause.release();
        let done = checkpoint.join().expect("no panic");
        done.expect("a checkpoint");
        writer.join().expect("no panic");
        found.map(|disk| (disk, rows))
    });
    let after = (disk.process_kill(), acknowledged.load(Ordering::SeqCst));
    for (disk, rows) in found.iter().chain([&after]) {
        let database = open(disk);
        let table = database
            .begin()
            .and_then(|tx| tx.table("a"))
            .expect("is there");
        let count = database.begin().and_then(|tx| tx.count(&table, ..));
        // What was under way may be there, too.
        let expected = u64::from(*rows)..=u64::from(*rows) + 10;
        let count = count.expect("is read");
        assert!(expected.contains(&count), "{count} rows, not {expected:?}");
        assert!(database.verify().expect("is read").is_sound());
    }
}

/// Pages in use and of the file after each step of a workload, without a cut.
fn pages_of(history: &[Step], page_size: usize) -> Vec<(u64, u64)> {
    let disk = SimulatedDirectory::new();
    let mut subject = EngineSubject::open(&disk, &engine::config_of(page_size)).expect("opens");
    let pages = history.iter().map(|step| {
        let answer = subject.apply(step);
        let refused = matches!(answer, Answer::Refused(_) | Answer::Skipped);
        assert!(!refused, "{step:?}: {answer:?}");
        let statistics = subject.statistics().expect("is open");
        (statistics.pages_durable, statistics.file_pages)
    });
    pages.collect()
}

/// That the workloads do what their cuts are for.
#[test]
fn workloads_write_chains_and_trees_whose_pages_are_given_back_and_taken_again() {
    for page_size in SIZES {
        let history = workload::large_values(page_size as u32);
        let pages = pages_of(&history, page_size);
        let background = history
            .iter()
            .position(|step| matches!(step, Step::Background { .. }))
            .expect("there is one");
        let reopens = history.iter().position(|step| *step == Step::Reopen);
        let (before, after) = (pages[background - 1], pages[background]);
        // Three and two pages that were replaced, two and four, some of them by what is in a row.
        assert!(before.0 - after.0 >= 9, "{before:?} {after:?}");
        let between = &pages[background..reopens.expect("there is one")];
        let most = between.iter().max().expect("some");
        assert!(most.0 - after.0 >= 7, "{after:?} {most:?}");
        assert!(most.1 == after.1, "the file grew: {after:?} {most:?}");
        let files = pages.windows(2).filter(|two| two[1].1 < two[0].1).count();
        assert_eq!(files, 1, "the file is shortened once: {pages:?}");

        let history = workload::splits_and_merges(page_size as u32);
        let pages = pages_of(&history, page_size);
        let most = pages.iter().max().expect("some");
        let merged = history
            .iter()
            .position(|step| matches!(step, Step::Background { .. }))
            .expect("there is one");
        assert!(most.0 - pages[2].0 >= 4, "{:?} {most:?}", pages[2]);
        assert!(
            most.0 - pages[merged].0 >= 2,
            "{:?} {most:?}",
            pages[merged]
        );
    }
}

/// A process was killed while it made a file of the log, and the power was cut while the next one opened: the database did not open any more, "length of
/// log segment". Opening took the file over as a free one; the cut kept the header that was written into it, and lost its length, which nobody had
/// synced. Now a file that is taken over is synced before it gets a header. No cut had met what a killed process leaves to the kernel; now every
/// call that is cut is also one at which the process is killed, and the recovery from that cut.
#[test]
fn regress_crash_a_log_file_whose_length_a_killed_process_left_unsynced_gets_no_header() {
    let history: Vec<Step> = workload::commits().into_iter().take(24).collect();
    let wreck = half_made(&history, KEY_LIMIT, &open).expect("the workload runs");
    let wreck = wreck.expect("a file is made");
    // The file is taken over in one of the first calls; what a cut keeps of it is drawn.
    for (calls, seeds) in [(0..8, 24), (8..u64::MAX, 1)] {
        let cut = wreck.cut_calls(calls, seeds, &open);
        let cuts = cut.unwrap_or_else(|what| panic!("{what}"));
        assert!(cuts > 100, "{cuts} cuts");
    }
}
