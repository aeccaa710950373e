//! TPC-C itself, the real program past its memory, killed at random instants: while it loads, runs and recovers.
//!
//! Not checked: power cuts (nothing here is lost by the kernel), which transactions were acknowledged one by one (testing/crash has a
//! ledger of them): of these only that there are not fewer than were counted.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vellum::{Inspection, Recovery, Report, verify_path};
use vellum_base::random::Random;

const POOL_BYTES: u64 = 1 << 20;

/// Seed and rounds: `VELLUM_SEED` and `VELLUM_ROUNDS`, else a fresh one and `rounds`.
fn plan(test: &str, rounds: u64) -> (Random, u64) {
    let seed = vellum_base::replay::seed();
    let rounds = vellum_base::replay::rounds(rounds);
    println!(
        "replay with VELLUM_SEED={seed} VELLUM_ROUNDS={rounds} cargo test -p vellum-bench {test}"
    );
    (Random::new(seed), rounds)
}

fn tpcc(data: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-bench"));
    command
        .args(["tpcc", "--pool-mib", "1", "--data"])
        .arg(data)
        .args(flags);
    command
}

/// A process that is killed when it is dropped, so that no failed test leaves one behind.
struct Victim(Child);

impl Victim {
    fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Kills it after a while, counted from its first sample if `sampled`; the transactions that it counted until then.
    fn kill_after(mut self, micros: u64, sampled: bool) -> u64 {
        let mut first = Vec::new();
        while sampled && first.last() != Some(&b'\n') {
            let mut byte = [0];
            let read = self.0.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            assert_eq!(read, 1, "{}", self.ended());
            first.push(byte[0]);
        }
        std::thread::sleep(Duration::from_micros(micros));
        assert!(self.0.try_wait().unwrap().is_none(), "{}", self.ended());
        self.0.kill().unwrap();
        // A sample a second: they all fit into the pipe.
        let (lines, complaints) = self.said();
        assert_eq!(complaints, "");
        let first = String::from_utf8(first).unwrap();
        let samples = first
            .lines()
            .chain(lines.lines())
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        samples.map(|sample| sample["tx"].as_u64().unwrap()).sum()
    }

    fn said(&mut self) -> (String, String) {
        let (mut lines, mut complaints) = (String::new(), String::new());
        let child = &mut self.0;
        let (told, complained) = (child.stdout.as_mut(), child.stderr.as_mut());
        told.unwrap().read_to_string(&mut lines).unwrap();
        complained.unwrap().read_to_string(&mut complaints).unwrap();
        child.wait().unwrap();
        (lines, complaints)
    }

    fn ended(&mut self) -> String {
        format!("it ended by itself: {:?}", self.said())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only if it is dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs to the end; the report must say that all conditions hold.
fn run_and_check(data: &Path, flags: &[&str]) -> Value {
    let json = data.with_extension("json");
    let ended = tpcc(data, flags).arg("--json").arg(&json).output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{flags:?}: {told}");
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(summary["consistency"], "ok", "{flags:?}: {told}");
    summary
}

/// What `vellum verify` says: nothing.
fn verified(data: &Path) -> Report {
    let report = verify_path(data, Inspection::default()).unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert!(report.is_complete(), "{:?}", report.recovery);
    report
}

/// Rows that committed New-Order and Payment transactions leave for ever.
fn rows(report: &Report) -> u64 {
    let kept = |name: &str| matches!(name, "tpcc_order" | "tpcc_history");
    let tables = report.tables.iter().map(|table| &table.tree);
    tables.filter(|tree| kept(&tree.name)).map(|t| t.rows).sum()
}

#[test]
fn crash_tpcc_that_is_killed_at_any_instant_is_consistent_and_keeps_what_it_counted() {
    let (mut random, rounds) = plan("crash_tpcc_that_is_killed", 8);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    run_and_check(
        &data,
        &["--tiny", "--warehouses", "2", "--operations", "10"],
    );
    let mut before = rows(&verified(&data));
    assert!(before > 0);
    let (mut redone, mut counted) = (0, 0);
    for round in 0..rounds {
        let durability = ["sync", "async"][round as usize % 2];
        let flags = [
            "--tiny",
            "--threads",
            "2",
            "--seconds",
            "100000",
            "--durability",
            durability,
            "--seed",
            &round.to_string(),
        ];
        // A sample is certain to be there in the first of them.
        let (least, most, sampled) = match round {
            0 => (0, 900_000, true),
            _ => (200_000, 2_000_000, false),
        };
        let micros = random.between(least, most);
        let told = Victim::start(tpcc(&data, &flags)).kill_after(micros, sampled);
        let left = verified(&data);
        let log = left.log.unwrap();
        // In the middle of the recovery, too, or a little after it.
        let again = random.chance(1, 2).then(|| random.below(60_000));
        if let Some(micros) = again {
            Victim::start(tpcc(&data, &flags)).kill_after(micros, false);
            verified(&data);
        }
        println!(
            "round {round}, {durability}: killed after {micros} us and {again:?} more, {told} transactions counted, {} bytes of log to redo",
            log.record_bytes
        );
        assert!(!log.closed_cleanly, "round {round}");
        assert_eq!(left.recovery, Recovery::Rehearsed, "round {round}");
        redone += u64::from(log.record_bytes > 0 && log.rounds > 0);
        // Nine in ten transactions leave a row, and one in a hundred of these is rolled back. Of few that were counted it may be half, by chance.
        let after = rows(&left);
        if durability == "sync" {
            assert!(
                (after - before + 10) * 10 >= told * 7,
                "round {round}: {told} transactions were counted, {} rows are new",
                after - before
            );
            counted += told;
        }
        run_and_check(&data, &["--check"]);
        let checked = verified(&data);
        assert_eq!(checked.recovery, Recovery::NotDue, "round {round}");
        before = rows(&checked);
        assert!(before >= after, "round {round}: {before} of {after}");
    }
    // Else nothing was shown.
    assert!(
        redone > rounds / 2,
        "{redone} of {rounds} had something to redo"
    );
    assert!(counted > 0, "nothing was counted that had to be there");
    let report = verified(&data);
    let bytes = report.pages.in_use * report.page_bytes;
    assert!(bytes > 4 * POOL_BYTES, "{bytes} bytes fit into memory");
}

#[test]
fn crash_tpcc_whose_load_is_killed_is_finished_by_the_next_run() {
    let (mut random, rounds) = plan("crash_tpcc_whose_load", 3);
    let directory = tempfile::tempdir().unwrap();
    let load = ["--tiny", "--warehouses", "20", "--operations", "100"];
    // How long opening and loading take here.
    let whole = directory.path().join("whole");
    let summary = run_and_check(&whole, &load);
    let seconds = ["open_s", "load_s"].map(|key| summary[key].as_f64().unwrap());
    let most = (seconds.iter().sum::<f64>() * 1e6) as u64;
    let customers = |report: &Report| {
        let mut trees = report.tables.iter().map(|table| &table.tree);
        let found = trees.find(|tree| tree.name == "tpcc_customer");
        found.map_or(0, |tree| tree.rows)
    };
    let all = customers(&verified(&whole));
    let (mut interrupted, mut kills) = (0, 0);
    while interrupted < rounds {
        kills += 1;
        assert!(kills < 20 * rounds, "the load was never met");
        let data = directory.path().join(format!("data{kills}"));
        let victim = Victim::start(tpcc(&data, &load));
        let micros = random.below(most);
        std::thread::sleep(Duration::from_micros(micros));
        drop(victim);
        // It may not have come as far as to make a database.
        let found = match verify_path(&data, Inspection::default()) {
            Ok(report) => customers(&report),
            Err(_) => 0,
        };
        println!("killed after {micros} of {most} us: {found} customers of {all}");
        interrupted += u64::from(0 < found && found < all);
        run_and_check(&data, &load);
        assert_eq!(customers(&verified(&data)), all);
    }
}
