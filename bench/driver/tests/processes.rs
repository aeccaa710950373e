//! The program itself compares: each run is a process of it.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn program(flags: &str, out: &Path) -> Command {
    let (comparison, workload) = flags.split_once(" -- ").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-bench"));
    command
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
    assert!(!out.join("data").exists() && !out.join("data.json").exists());
}
