//! What an old snapshot costs a workload, where the machine's own seconds differ by more than that.
//!
//! Two processes run at the same time, each bound to a processor with all its threads: one beside snapshots, one without; then the other way around. What the
//! machine does to both is divided out of their rates, and their processor time an operation is told, which waits for nobody.

use crate::workspace::{Workspace, build_release};
use serde_json::Value;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Seconds before the snapshots.
const BEFORE: u64 = 20;
/// The first of them say nothing yet.
const WARM_UP: usize = 3;
/// The last seconds are compared with those before.
const LAST: usize = 20;

/// One run.
struct Run {
    /// Operations of each second.
    rates: Vec<f64>,
    /// Processor time of an operation, in microseconds.
    processor: f64,
}

impl Run {
    fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let run: Value = serde_json::from_str(&text)?;
        let number = |value: &Value| {
            value
                .as_f64()
                .ok_or_else(|| Error::other(format!("{}: a number is missing", path.display())))
        };
        let samples = run["samples"].as_array().map_or(&[][..], Vec::as_slice);
        let rates = samples.iter().map(|sample| number(&sample["tx"]));
        let rates = rates.collect::<io::Result<Vec<f64>>>()?;
        if rates.len() < BEFORE as usize + LAST {
            return Err(Error::other("the run was too short"));
        }
        let seconds = number(&run["processor_user_s"])? + number(&run["processor_system_s"])?;
        Ok(Self {
            rates,
            processor: seconds * 1e6 / number(&run["transactions"])?,
        })
    }

    /// The rate of the last seconds over that before the snapshots.
    fn ratio(&self) -> f64 {
        let before = &self.rates[WARM_UP..BEFORE as usize];
        mean(&self.rates[self.rates.len() - LAST..]) / mean(before)
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Runs `workload` for so many seconds with those further arguments of `vellum-bench`, and prints a table.
pub fn run(workspace: &Workspace, workload: &str, seconds: u64, more: &[&str]) -> io::Result<bool> {
    if seconds < BEFORE + LAST as u64 {
        println!("held: {} seconds at least", BEFORE + LAST as u64);
        return Ok(false);
    }
    if !build_release(workspace, "vellum-bench")? {
        return Ok(false);
    }
    let program = workspace.target().join("release/vellum-bench");
    let scratch = workspace.target().join("held");
    println!(
        "| processors | beside snapshots | without | one over the other | processor us beside, without |\n| --- | --- | --- | --- | --- |"
    );
    for [beside, without] in [[0, 1], [1, 0]] {
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch)?;
        let at = BEFORE.to_string();
        let mut held = vec!["--hold-snapshot-at", &at];
        held.extend(more);
        // What is said of holders needs one.
        let plain: Vec<&str> = without_holders(more);
        let begin = |name: &str, processor, own: &[&str]| {
            let mut command = Command::new("taskset");
            command
                .args(["-c", &u32::to_string(&processor)])
                .arg(&program);
            command
                .args([workload, "--seconds", &seconds.to_string()])
                .args(own);
            let json = scratch.join(name).with_extension("json");
            command.arg("--data").arg(scratch.join(name));
            command.arg("--json").arg(&json);
            command.stdout(Stdio::null());
            Ok::<_, Error>((command.spawn()?, json))
        };
        let first = begin("held", beside, &held)?;
        let second = begin("plain", without, &plain);
        // Both are waited for, whatever becomes of one.
        let ended = [Ok(first), second].map(|begun| begun.and_then(end));
        let [first, second] = ended;
        let (first, second) = (first?, second?);
        println!(
            "| {beside}, {without} | {:.3} | {:.3} | {:.3} | {:.2}, {:.2} |",
            first.ratio(),
            second.ratio(),
            first.ratio() / second.ratio(),
            first.processor,
            second.processor
        );
    }
    std::fs::remove_dir_all(&scratch)?;
    Ok(true)
}

/// Waits for a run; what it measured.
fn end((mut child, json): (Child, PathBuf)) -> io::Result<Run> {
    match child.wait()?.success() {
        true => Run::read(&json),
        false => Err(Error::other("a run failed")),
    }
}

/// The arguments without those that are about snapshots.
fn without_holders<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, is_whole) = match argument.split_once('=') {
            Some((name, _)) => (name, true),
            None => (*argument, false),
        };
        match name {
            "--holder"
            | "--holders"
            | "--scan-at"
            | "--release-snapshot-at"
            | "--hold-snapshot-at" => {
                if !is_whole {
                    rest.next();
                }
            }
            _ => kept.push(*argument),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_processor_time_are_those_of_the_run() {
        let path = std::env::temp_dir().join(format!("xtask-held-{}.json", std::process::id()));
        let write = |seconds: usize| {
            let tx = |second| if second < 20 { 100 } else { 90 };
            let samples: Vec<Value> = (0..seconds)
                .map(|second| serde_json::json!({ "s": second + 1, "tx": tx(second) }))
                .collect();
            let run = serde_json::json!({
                "samples": samples, "transactions": 1000, "processor_user_s": 0.5, "processor_system_s": 0.25,
            });
            std::fs::write(&path, run.to_string()).unwrap();
            Run::read(&path)
        };
        let run = write(60).unwrap();
        assert!((run.ratio() - 0.9).abs() < 1e-9);
        assert!((run.processor - 750.0).abs() < 1e-9);
        assert!(write(30).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn runs_without_snapshots_get_no_argument_about_them() {
        let all = [
            "--holders",
            "10",
            "--keys",
            "100",
            "--scan-at=1,2",
            "--hold-snapshot-at",
            "3",
            "--no-check",
        ];
        assert_eq!(without_holders(&all), ["--keys", "100", "--no-check"]);
    }
}
