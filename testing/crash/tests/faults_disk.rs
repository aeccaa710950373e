//! Rows "EIO or short read/write" and "fsync fails" of the table of faults.

mod backups;
mod engine;

use backups::Source;
use engine::{KEY_LIMIT, open, profile};
use vellum_crash::power::Open;
use vellum_crash::syncs::{Wreck, half_made, wreck, wrecks};
use vellum_crash::{fault, workload};
use vellum_io::{Call, Directory, Fault, FaultError, OpenOptions, PowerCut, SimulatedDirectory};
use vellum_model::engine::EngineSubject;
use vellum_model::run::{first_seed, rounds, thorough};
use vellum_model::{Step, Subject};

/// Tries errors of calls of one kind: of every `stride`th call.
fn try_calls(history: &[Step], call: Call, samples: u64) -> u64 {
    let calls = fault::count(history, KEY_LIMIT, call, &open).expect("runs without a fault");
    let stride = (calls / samples).max(1);
    let numbers = (0..calls).step_by(stride as usize);
    numbers.map(|n| try_call(history, call, n).0).sum()
}

/// Every way in which the `n`th call of a kind can fail, once and for good.
fn faults(call: Call, n: u64) -> Vec<Fault> {
    let fault = Fault::nth(call, n);
    let mut errors = vec![fault.clone()];
    if matches!(call, Call::Write | Call::Read) {
        errors.push(fault.clone().with(FaultError::Short));
    }
    // Names take space, too; where a file system copies what it changes, so does what makes files shorter or takes them away.
    let takes_space = matches!(
        call,
        Call::Write
            | Call::Allocate
            | Call::SetLen
            | Call::Open
            | Call::CreateDir
            | Call::Rename
            | Call::Remove
            | Call::Sync
            | Call::SyncDir
    );
    if takes_space {
        errors.push(fault.with(FaultError::Enospc));
    }
    let both = errors
        .into_iter()
        .flat_map(|once| [once.clone(), once.forever()]);
    both.collect()
}

/// Tries these: how many steps were refused, and how many faults were met.
fn try_call(history: &[Step], call: Call, n: u64) -> (u64, u64) {
    let (mut refused, mut met) = (0, 0);
    for fault in faults(call, n) {
        let disk = SimulatedDirectory::new();
        let felt = fault::run_with(history, KEY_LIMIT, &disk, Some(fault.clone()), &open);
        let felt = felt.unwrap_or_else(|what| panic!("{fault:?}: {what}"));
        let sync = matches!(call, Call::Sync | Call::SyncDir);
        assert!(
            felt.kept_shut || !felt.poisoned || sync,
            "{fault:?} poisoned"
        );
        refused += felt.refused;
        met += u64::from(disk.counts().failed(call) > 0);
    }
    (refused, met)
}

/// Lets call after call of a kind fail until a run has no failure; how many runs had one.
fn until_none_fails(call: Call, mut run: impl FnMut(u64) -> u64) -> u64 {
    let mut runs = 0;
    for n in 0.. {
        assert!(n < 10_000, "{call:?}: a run without a failure comes");
        match run(n) {
            0 => break,
            met => runs += met,
        }
    }
    runs
}

#[test]
fn faults_each_call_of_a_short_workload_fails_until_a_run_has_no_failure() {
    let history: Vec<Step> = workload::commits().into_iter().take(24).collect();
    for call in Call::ALL {
        let mut met = until_none_fails(call, |n| try_call(&history, call, n).1);
        if call == Call::SetLen {
            // The one maintenance call that shortens a file.
            let shrinks = workload::shrinks();
            met += until_none_fails(call, |n| try_call(&shrinks, call, n).1);
        }
        eprintln!("{call:?}: {met} runs met a fault");
        // Files are removed when leftovers of a crash are found, see below.
        assert!(met > 0 || call == Call::Remove, "{call:?}: none was met");
    }
}

/// What crashes leave: in the middle of creating a database, of making a segment of the log, and of work.
fn wrecks_of(history: &[Step]) -> Vec<Wreck> {
    let half = half_made(history, KEY_LIMIT, &open).expect("the workload runs");
    let mut wrecks = wrecks(history, KEY_LIMIT, 2, 7, &open).expect("the workload runs");
    wrecks.extend(half);
    // A database that is half made: with nothing but its data file, and with its folder and a file in that.
    for call in [7, 12] {
        let killed = SimulatedDirectory::process_kill;
        let created = wreck(history, KEY_LIMIT, &open, call, killed);
        wrecks.push(created.expect("the workload runs"));
    }
    wrecks
}

#[test]
fn faults_each_call_of_a_recovery_fails_until_one_has_no_failure() {
    let history: Vec<Step> = workload::commits().into_iter().take(24).collect();
    let wrecks = wrecks_of(&history);
    // A sample, where a recovery makes many such calls.
    let most = if thorough() { u64::MAX } else { 12 };
    for call in Call::ALL {
        let mut met = 0;
        for wreck in &wrecks {
            let calls = fault::recovery_calls(wreck, call, &open).expect("it recovers");
            let stride = (calls / most).max(1);
            met += until_none_fails(call, |n| {
                let tried = faults(call, n * stride).into_iter().map(|fault| {
                    let recovered = fault::recover_with(wreck, (call, fault.clone()), &open);
                    recovered.unwrap_or_else(|what| panic!("{fault:?}: {what}"))
                });
                tried.map(u64::from).sum()
            });
        }
        eprintln!("{call:?}: {met} recoveries met a fault");
        // Lengths are changed where something is left over, see below.
        assert!(met > 0 || call == Call::SetLen, "{call:?}: none was met");
    }
}

/// The engine with segments of twice the size: those that are there are of another setting.
fn open_larger(disk: &SimulatedDirectory) -> Result<Box<dyn Subject>, String> {
    let mut config = engine::config();
    config.log_segment_bytes *= 2;
    config.log_bytes_max *= 2;
    config.checkpoint_log_bytes *= 2;
    EngineSubject::open(disk, &config)
        .map(|subject| Box::new(subject) as Box<dyn Subject>)
        .map_err(|error| format!("{error:?}"))
}

/// What a recovery removes and makes shorter: files of the log that a killed process had half made, and those of another setting; what stood beside the
/// control file; a database that was made half.
#[test]
fn faults_each_removal_and_length_of_a_recovery_fails_until_one_has_no_failure() {
    let commits: Vec<Step> = workload::commits().into_iter().take(24).collect();
    let mut wrecks = wrecks_of(&commits);
    wrecks.extend(wrecks_of(&workload::shrinks()));
    let longer = wrecks.iter().map(|wreck| {
        wreck.with(|disk| {
            let file = disk.open("control.tmp", OpenOptions::create());
            let written = file.and_then(|file| {
                file.write_at(&[0xa5; 700], 0)?;
                file.sync_data()
            });
            written.map_err(|error| error.to_string())
        })
    });
    let longer: Result<Vec<Wreck>, String> = longer.collect();
    wrecks.extend(longer.expect("a sound disk"));
    let opens: [(&str, Open<'_>); 2] = [("the same setting", &open), ("another", &open_larger)];
    for call in [Call::SetLen, Call::Remove] {
        for (setting, open) in opens {
            let mut met = 0;
            for (number, wreck) in wrecks.iter().enumerate() {
                met += until_none_fails(call, |n| {
                    let tried = faults(call, n).into_iter().map(|fault| {
                        let recovered = fault::recover_with(wreck, (call, fault.clone()), open);
                        recovered.unwrap_or_else(|what| {
                            panic!("wreck {number}, {setting}, {fault:?}: {what}")
                        })
                    });
                    tried.map(u64::from).sum()
                });
            }
            eprintln!("{call:?}, {setting}: {met} recoveries met a fault");
            assert!(met > 0, "{call:?}, {setting}: none was met");
        }
    }
}

#[test]
fn faults_each_call_of_a_backup_fails_and_leaves_no_half_of_a_database() {
    let source = Source::new();
    let run = |fault: Option<&Fault>, then: Option<Fault>| {
        let disk = SimulatedDirectory::new();
        for fault in fault.into_iter().cloned().chain(then) {
            disk.fail(fault);
        }
        let done = source.back_up(&disk).is_ok();
        disk.clear_faults();
        for found in [disk.process_kill(), disk.power_cut(1, PowerCut::CLEAN)] {
            let judged = source.judge(&found, done);
            judged.unwrap_or_else(|what| panic!("{fault:?}: {what}"));
        }
        disk.counts()
    };
    let whole = run(None, None);
    for call in Call::ALL {
        let calls = whole.of(call);
        let stride = (calls / 12).max(1);
        let mut met = 0;
        for n in (0..calls).step_by(stride as usize) {
            for fault in faults(call, n) {
                // Half of a copy cannot even be taken away.
                for then in [None, Some(Fault::nth(Call::Remove, 0).forever())] {
                    met += run(Some(&fault), then).failed(call);
                }
            }
        }
        assert!(met > 0 || calls == 0, "{call:?}: none was met");
    }
}

#[test]
fn faults_eio_or_short_write_is_an_error_to_the_caller_and_nothing_is_half_done() {
    let mut refused = 0;
    for history in [
        workload::commits(),
        workload::rollbacks(),
        workload::tables(engine::INLINE_VALUE),
    ] {
        for call in [Call::Write, Call::Allocate, Call::SetLen] {
            refused += try_calls(&history, call, 25);
        }
    }
    assert!(refused > 0, "no fault was felt");
}

#[test]
fn faults_eio_or_short_read_is_an_error_to_the_caller_and_nothing_is_half_done() {
    // More rows than frames, so that reads come in the middle.
    let refused = try_calls(&workload::bulk_load(1500), Call::Read, 40);
    assert!(refused > 0, "no fault was felt");
}

#[test]
fn faults_a_name_that_cannot_be_made_or_changed_is_an_error() {
    for history in [workload::commits(), workload::tables(engine::INLINE_VALUE)] {
        for call in [Call::Open, Call::Rename, Call::CreateDir, Call::Remove] {
            try_calls(&history, call, 20);
        }
    }
}

#[test]
fn faults_fsync_fails_once_and_the_database_is_poisoned_and_never_tries_again() {
    let mut refused = 0;
    for history in [
        workload::commits(),
        workload::rollbacks(),
        workload::tables(engine::INLINE_VALUE),
    ] {
        for call in [Call::Sync, Call::SyncDir] {
            refused += try_calls(&history, call, 40);
        }
    }
    assert!(refused > 0, "no fault was felt");
}

#[test]
fn prop_faults_in_random_histories_are_felt_by_who_asked_only() {
    let first = first_seed();
    eprintln!("VELLUM_SEED={first}");
    for seed in (0..rounds(6)).map(|round| first.wrapping_add(round)) {
        let history = workload::random(seed, 150, &profile());
        for call in [Call::Write, Call::Read, Call::Sync] {
            try_calls(&history, call, 4);
        }
    }
}
