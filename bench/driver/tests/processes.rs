//! The program itself compares: each run is a process of it.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vellum-bench");

fn program(flags: &str, out: &Path) -> Command {
    program_at(Path::new(PROGRAM), flags, out)
}

fn program_at(file: &Path, flags: &str, out: &Path) -> Command {
    let (comparison, workload) = flags.split_once(" -- ").unwrap();
    // `nohup` and shells leave signals ignored in what they start; whoever is sent one here has it.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP,INT"])
        .arg(file)
        .args(comparison.split_whitespace())
        .arg("--out")
        .arg(out)
        .arg("--")
        .args(workload.split_whitespace())
        .args(["--pool-mib", "16"]);
    command
}

#[test]
fn what_the_runs_tell_comes_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = "compare queue --engines vellum --rounds 2 -- --rows 100 --seconds 2 --hold-snapshot-at 1 --scan-at 0";
    let ended = program(flags, &out).output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{told}");
    let samples = String::from_utf8(ended.stdout).unwrap();
    let samples: Vec<serde_json::Value> = samples
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(samples.len(), 4);
    let document = std::fs::read_to_string(out.join("compare-queue.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let told: Vec<_> = runs
        .iter()
        .flat_map(|run| run[1]["samples"].as_array().unwrap())
        .collect();
    assert_eq!(told, samples.iter().collect::<Vec<_>>());
    for run in runs {
        assert_eq!(run[1]["consistency"], "ok");
        assert!(!run[1]["scans"].as_array().unwrap().is_empty(), "{run}");
    }
    // Where the runs made their databases and left their summaries.
    let mut left: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort_unstable();
    assert_eq!(
        left,
        [
            "compare-queue.json",
            "compare-queue.md",
            "compare-queue.svg"
        ]
    );
}

#[test]
fn an_interrupt_ends_the_run_and_the_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = "compare kv --engines vellum -- --rows 1000 --seconds 100000";
    let mut child = program(flags, &out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    lines.for_each(drop);
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{told}");
    assert!(told.ends_with("interrupted\n"), "{told}");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
}

#[test]
fn runs_go_on_where_another_program_has_taken_the_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("program");
    std::fs::copy(PROGRAM, &file).unwrap();
    let out = directory.path().join("out");
    let flags = "compare kv --engines vellum --rounds 2 -- --rows 100 --seconds 1";
    let mut child = program_at(&file, flags, &out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::copy("/bin/false", &file).unwrap();
    assert_eq!(lines.count(), 1, "a second of the other round");
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{told}");
}

/// The process that this one has started.
fn child_of(parent: &Child) -> Option<u32> {
    let number = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u32> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let is_child = |id: &u32| state(*id).is_some_and(|it| it.1 == parent.id());
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(number)
        .find(is_child)
}

/// A process's state and its parent.
fn state(id: u32) -> Option<(String, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut words = text.rsplit_once(") ")?.1.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

#[test]
fn a_run_that_loads_ends_with_its_parent_however_that_ends() {
    for signal in ["-HUP", "-KILL"] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let flags = "compare kv --engines vellum -- --rows 4000000000";
        let mut parent = program(flags, &out)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !out.join("data/data").exists() {
            assert!(parent.try_wait().unwrap().is_none(), "ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        let run = child_of(&parent).unwrap();
        let kill = |signal: &str, id: u32| {
            let id = id.to_string();
            Command::new("kill").args([signal, &id]).status().unwrap()
        };
        assert!(kill(signal, parent.id()).success());
        parent.wait().unwrap();
        // Whoever it belongs to now may not ask how it ended.
        let runs = || state(run).is_some_and(|it| it.0 != "Z");
        let begin = Instant::now();
        while runs() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let still = runs();
        if still {
            kill("-KILL", run);
        }
        assert!(!still, "{signal}: it goes on");
    }
}
