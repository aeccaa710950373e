//! `cargo xtask flame WORKLOAD`: where a workload's time goes, as a flame graph (SVG) and as folded stacks, in `target/flame`.
//!
//! By `perf record` where there is a perf that may; else by callgrind's graph of calls. `vellum-flame` draws.
//!
//! What the two show is not the same. Perf samples all threads by time, the load included, and background work is that of `vellum-count`, a
//! step whenever so many operations are done. Callgrind counts instructions of the operations, and knows who called whom but not in which stack: what a function cost below one caller is taken to be spread
//! as it is below all of them ([`fold`]). So a function that does different things for different callers looks alike below each.

use crate::callgrind::{Costs, Profile};
use crate::count::{self, Counted};
use crate::workspace::{Workspace, cargo};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Samples a second. A prime, so that nothing that is done so and so often a second is always met, or never.
const FREQUENCY: &str = "997";
/// What is less than this part of all is not drawn.
const PART_MIN: f64 = 1.0 / 5_000.0;
/// Callers above one another, at most.
const DEPTH_MAX: usize = 60;

/// Draws the workload; false if it cannot be drawn.
///
/// # Errors
/// If a program is not there or cannot be run, or a file not be written.
pub fn run(workspace: &Workspace, name: &str) -> io::Result<bool> {
    let Some(counted) = count::find(name) else {
        println!(
            "flame: no workload {name}; there are {}",
            count::names().join(", ")
        );
        return Ok(false);
    };
    if !count::build(workspace)? {
        return Ok(false);
    }
    let folder = workspace.target().join("flame");
    let scratch = folder.join("run");
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch)?;
    let program = count::program(workspace);
    let drawn = (|| {
        let (form, unit) = match sample(&program, counted, &scratch)? {
            Ok(()) => ("perf", "samples"),
            Err(why) => {
                println!("flame: {why}; callgrind is asked instead, which takes a minute");
                if !call_graph(workspace, counted, &scratch)? {
                    println!("flame: the run of {name} failed");
                    return Ok(false);
                }
                ("folded", "instructions")
            }
        };
        let [folded, svg] =
            ["folded", "svg"].map(|ending| folder.join(name).with_extension(ending));
        let title = format!("{name}, by {unit}");
        let status = cargo()
            .current_dir(&workspace.root)
            .args([
                "run",
                "--quiet",
                "--release",
                "-p",
                "vellum-flame",
                "--",
                form,
            ])
            .args([&scratch.join(STACKS), &folded, &svg])
            .args([title.as_str(), unit])
            .status()?;
        if status.success() {
            println!("flame: {} and {}", svg.display(), folded.display());
        }
        Ok(status.success())
    })();
    std::fs::remove_dir_all(&scratch)?;
    drawn
}

/// What is drawn, in the folder of the run.
const STACKS: &str = "stacks";

/// Samples a run by perf. What it says where it cannot.
fn sample(program: &Path, counted: &Counted, scratch: &Path) -> io::Result<Result<(), String>> {
    let data = scratch.join("perf.data");
    let mut record = Command::new("perf");
    record
        .args([
            "record",
            "--quiet",
            "--freq",
            FREQUENCY,
            "--call-graph",
            "dwarf,16384",
        ])
        .arg("--output")
        .arg(&data)
        .arg("--")
        .args(counted.sampled(program, scratch));
    let recorded = match record.stdin(Stdio::null()).stdout(Stdio::null()).output() {
        Ok(recorded) => recorded,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err("there is no perf on this machine".to_owned()));
        }
        Err(error) => return Err(error),
    };
    if !recorded.status.success() {
        let said = String::from_utf8_lossy(&recorded.stderr);
        let line = said.lines().find(|line| !line.trim().is_empty());
        let line = line.unwrap_or("it says nothing");
        return Ok(Err(format!("perf cannot record here ({line})")));
    }
    let script = std::fs::File::create(scratch.join(STACKS))?;
    let status = Command::new("perf")
        .args(["script", "--no-inline", "--input"])
        .arg(&data)
        .stdout(script)
        .stderr(Stdio::null())
        .status()?;
    Ok(match status.success() {
        true => Ok(()),
        false => Err("perf cannot read what it recorded".to_owned()),
    })
}

/// Folds what callgrind knows of a run. False if the run failed.
fn call_graph(workspace: &Workspace, counted: &Counted, scratch: &Path) -> io::Result<bool> {
    let Some(worker) = count::profile(workspace, counted, scratch)? else {
        return Ok(false);
    };
    let stacks = fold(&worker);
    std::fs::write(scratch.join(STACKS), stacks)?;
    Ok(true)
}

/// Makes stacks of a graph of calls.
fn fold(profile: &Profile) -> String {
    let mut below = BTreeMap::<&str, Vec<(&str, f64)>>::new();
    let mut whole = BTreeMap::<&str, f64>::new();
    let mut called = BTreeMap::<&str, f64>::new();
    let functions = profile.functions();
    for (function, costs) in &functions {
        *whole.entry(function).or_default() += costs.instructions as f64;
    }
    for ((caller, callee), cost) in &profile.calls {
        if caller != callee {
            below
                .entry(caller)
                .or_default()
                .push((callee, *cost as f64));
            *whole.entry(caller).or_default() += *cost as f64;
            *called.entry(callee).or_default() += *cost as f64;
        }
    }
    let mut graph = Graph {
        functions,
        below,
        whole,
        least: 0.0,
        stack: Vec::new(),
        out: String::new(),
    };
    // What nobody was seen to call stands at the bottom.
    let whole = graph.whole.iter();
    let bottom: Vec<(&str, f64)> = whole
        .filter(|(function, _)| !called.contains_key(*function))
        .map(|(function, cost)| (*function, *cost))
        .collect();
    graph.least = bottom.iter().map(|it| it.1).sum::<f64>() * PART_MIN;
    for (function, cost) in bottom {
        graph.walk(function, cost);
    }
    graph.out
}

struct Graph<'p> {
    /// What each costs itself.
    functions: BTreeMap<&'p str, Costs>,
    /// Whom each calls, and what that costs.
    below: BTreeMap<&'p str, Vec<(&'p str, f64)>>,
    /// What each costs with all below.
    whole: BTreeMap<&'p str, f64>,
    least: f64,
    stack: Vec<&'p str>,
    out: String,
}

impl<'p> Graph<'p> {
    /// Writes the stacks from this function on, which cost this much here.
    fn walk(&mut self, function: &'p str, cost: f64) {
        let share = cost / self.whole[function].max(1.0);
        let own = self.functions.get(function);
        let mut own = own.map_or(0.0, |costs| costs.instructions as f64) * share;
        self.stack.push(function);
        let below = self.below.get(function).cloned().unwrap_or_default();
        for (callee, cost) in below {
            let cost = cost * share;
            if cost < self.least || self.stack.len() >= DEPTH_MAX || self.stack.contains(&callee) {
                // Too small to be seen, or a circle: it stays with the caller.
                own += cost;
            } else {
                self.walk(callee, cost);
            }
        }
        if own >= 1.0 {
            // Semicolons part frames, and names of types have some.
            let frames: Vec<String> = self
                .stack
                .iter()
                .map(|name| name.replace(';', ","))
                .collect();
            let _ = writeln!(self.out, "{} {own:.0}", frames.join(";"));
        }
        self.stack.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callgrind::Place;

    fn profile(own: &[(&str, u64)], calls: &[(&str, &str, u64)]) -> Profile {
        let costs = |instructions| Costs {
            instructions,
            ..Costs::default()
        };
        let own = own.iter().map(|(name, cost)| {
            let place = Place {
                function: (*name).to_owned(),
                file: String::new(),
            };
            (place, costs(*cost))
        });
        let calls = calls
            .iter()
            .map(|(caller, callee, cost)| (((*caller).to_owned(), (*callee).to_owned()), *cost));
        Profile {
            places: own.collect(),
            calls: calls.collect(),
        }
    }

    #[test]
    fn what_a_function_cost_is_spread_over_its_callers_by_what_they_paid() {
        let folded = fold(&profile(
            &[("main", 10), ("get", 20), ("put;", 30), ("find", 900)],
            &[
                ("main", "get", 320),
                ("main", "put;", 630),
                ("get", "find", 300),
                ("put;", "find", 600),
            ],
        ));
        let mut lines: Vec<&str> = folded.lines().collect();
        lines.sort_unstable();
        let expected = [
            "main 10",
            "main;get 20",
            "main;get;find 300",
            "main;put, 30",
            "main;put,;find 600",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn circles_end_and_nothing_is_lost() {
        let folded = fold(&profile(
            &[("main", 1), ("a", 50), ("b", 50), ("alone", 7)],
            &[
                ("main", "a", 100),
                ("a", "b", 50),
                ("b", "a", 20),
                ("a", "a", 5),
            ],
        ));
        let sum: u64 = folded
            .lines()
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert!((107..=109).contains(&sum), "{folded}");
        assert!(folded.contains("main;a;b "), "{folded}");
        assert!(folded.contains("alone 7"), "{folded}");
    }
}
