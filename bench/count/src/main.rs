//! `vellum-count WORKLOAD BEFORE COUNTED DIRECTORY`: loads a workload into an empty directory, runs BEFORE of its operations and then
//! those that are counted; what counts them is another program (`cargo xtask count`: valgrind). COUNTED is a number, or seconds
//! (`5s`) for who samples.
//!
//! Every run does the same, whatever else the machine does: one client; no background threads, but a thread that does a step of
//! background work whenever so many operations are done, while the client waits ([`steps`]); no clock and no chance in what is
//! written. Small, so that it is built soon: nothing of `vellum-bench` is in it.
//!
//! Not here: time, several clients, other engines, checks of the data: `vellum-bench`.
#![forbid(unsafe_code)]

mod steps;
mod workloads;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// When the operations that are counted end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    After(u64),
    /// For who samples, not for who counts.
    Seconds(Duration),
}

/// What is run.
#[derive(Debug)]
struct Run {
    workload: String,
    /// Operations that are not counted: caches are warm behind them, and buffers made.
    before: u64,
    end: End,
    directory: PathBuf,
}

impl Run {
    fn parse(words: &[OsString]) -> Option<Self> {
        let [workload, before, counted, directory] = words else {
            return None;
        };
        let counted = counted.to_str()?;
        let end = match counted.strip_suffix('s') {
            Some(seconds) => End::Seconds(Duration::from_secs(seconds.parse().ok()?)),
            None => End::After(counted.parse().ok()?),
        };
        Some(Self {
            workload: workload.to_str()?.to_owned(),
            before: before.to_str()?.parse().ok()?,
            end,
            directory: directory.into(),
        })
    }
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(run) = Run::parse(&words) else {
        eprintln!("usage: vellum-count WORKLOAD BEFORE COUNTED DIRECTORY");
        return ExitCode::from(2);
    };
    match workloads::run(&run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vellum-count: {}: {error}", run.workload);
            ExitCode::FAILURE
        }
    }
}
