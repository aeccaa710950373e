//! A signal ends a run early, and the run is reported.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn interrupted_run_ends_with_its_summary() {
    for flags in [
        "kv --rows 1000 --threads 2",
        "tpcc --tiny --warehouses 1 --idle-writer",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (data, json) = (directory.path().join("data"), directory.path().join("json"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_vellum-bench"))
            .args(flags.split_whitespace())
            .args(["--seconds", "100000", "--pool-mib", "16", "--data"])
            .arg(&data)
            .arg("--json")
            .arg(&json)
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
        let table = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{table}");
        let text = std::fs::read_to_string(&json).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(summary["interrupted"], true);
        assert!(summary["transactions"].as_u64().unwrap() > 0);
        assert!(!summary["samples"].as_array().unwrap().is_empty());
        assert_eq!(summary["consistency"], "unchecked");
        assert!(
            table.contains("interrupted") && table.contains(", async,"),
            "{table}"
        );
    }
}

#[test]
fn interrupted_load_ends_and_leaves_what_it_committed_and_no_empty_report() {
    for flags in [
        "kv --rows 4000000000",
        "load --rows 4000000000",
        "load --rows 4000000000 --order shuffled",
        "queue --rows 4000000000",
        "tpcc --warehouses 10000",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (data, json) = (directory.path().join("data"), directory.path().join("json"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_vellum-bench"))
            .args(flags.split_whitespace())
            .args(["--pool-mib", "16", "--data"])
            .arg(&data)
            .arg("--json")
            .arg(&json)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The signals are listened to before the directory is made.
        while !data.join("data").exists() {
            assert!(child.try_wait().unwrap().is_none(), "{flags}: ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{flags}: {told}");
        assert!(told.ends_with("interrupted\n"), "{flags}: {told}");
        assert!(!json.exists(), "{flags}");
    }
}

#[test]
fn an_interrupted_figure_leaves_no_database_and_can_be_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    for _ in 0..2 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vellum-bench"))
            .args("figure contention --rows 1000 --threads 2 --pool-mib 16".split_whitespace())
            .args(["--seconds", "100000", "--out"])
            .arg(&out)
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
        assert!(!out.join("data").exists());
    }
}
