//! `cargo xtask count WORKLOAD`: instructions and cache misses of one operation, by what they are for; and a table of them in the
//! repository that a change may not make worse without saying so.
//!
//! A run of `vellum-count` under callgrind, which counts inside of one function: operations behind a load and a warm-up. Neither number depends on what else
//! the machine does: the caches are simulated, and background work is done by a thread of its own while the one that is counted waits,
//! whenever so many operations are done. So two counts of one program differ by some hundredths of a per cent, on a machine that is busy, too.
//!
//! What is counted: the thread that runs the operations. Callgrind counts each byte of a string instruction (`rep
//! stosb`), so clearing of memory looks dearer than it is.
//!
//! Not here: time, system calls, background work.

mod parts;
mod purpose;
pub mod table;
mod workloads;

use crate::callgrind::{self, Costs, Profile};
use crate::workspace::{Workspace, build_release};
use parts::Parts;
use purpose::{PARTS, part_of};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use table::Row;
use workloads::{ALL, FEW, chosen};
pub use workloads::{Counted, find, names};

/// What is counted of `vellum-count`, as callgrind matches names.
const FUNCTION: &str = "vellum_count::steps::counted_operations*";

/// What is to be done with what was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is told.
    Tell,
    /// And compared with the table: what got dearer is an error.
    Check,
    /// And written to the table, and to that of what it is for.
    Update,
}

/// Counts a workload, or `few`, or `all`; false if one could not be counted, or if it got dearer and that was asked.
///
/// # Errors
/// If a program is not there or cannot be run, or the table not be read or written.
pub fn run(workspace: &Workspace, name: &str, then: Then) -> io::Result<bool> {
    let chosen = chosen(name);
    if chosen.is_empty() {
        println!(
            "count: no workload {name}; there are {}, and {FEW} or {ALL} of them",
            names().join(", ")
        );
        return Ok(false);
    }
    let path = workspace.root.join(table::PATH);
    let text = std::fs::read_to_string(&path)?;
    let made = made_with()?;
    if then == Then::Check && table::made_with(&text) != Some(made.as_str()) {
        println!(
            "count: NOTHING IS JUDGED, and nothing counted: the table was made with {}\n\
             count: NOTHING IS JUDGED: here it is {made} These count otherwise.",
            table::made_with(&text).unwrap_or("nothing that it names")
        );
        return Ok(true);
    }
    let start = Instant::now();
    if !build(workspace)? {
        return Ok(false);
    }
    let built = start.elapsed().as_secs();
    let (mut rows, mut for_what) = (Vec::new(), BTreeMap::new());
    for (counted, worker) in chosen.iter().zip(count_all(workspace, &chosen)) {
        let Some(worker) = worker? else {
            println!("count: the run of {} failed", counted.name);
            return Ok(false);
        };
        tell(counted, &worker);
        for_what.insert(counted.name, parts(counted, &worker));
        rows.push(Row {
            name: counted.name.to_owned(),
            unit: counted.unit.to_owned(),
            each: Each::of(worker.sum(), counted.units()),
        });
    }
    println!(
        "\ncount: {built} s for the build, {} s for the runs",
        start.elapsed().as_secs() - built
    );
    match then {
        Then::Tell => Ok(true),
        Then::Check => {
            let judge = match name {
                FEW => table::judge_instructions,
                _ => table::judge,
            };
            Ok(judged(&judge(&text, &rows)))
        }
        Then::Update => {
            // As it is now: others may have been counted in the meantime.
            let text = std::fs::read_to_string(&path)?;
            let text = table::replaced(&text, &rows, &names(), &made);
            std::fs::write(&path, text)?;
            let path = workspace.root.join(parts::PATH);
            let text = std::fs::read_to_string(&path)?;
            let text = parts::replaced(&text, &for_what, &names(), &PARTS);
            std::fs::write(&path, text)?;
            println!("count: {} and {} are written", table::PATH, parts::PATH);
            Ok(true)
        }
    }
}

/// Says what got dearer or cheaper. True if nothing got dearer.
fn judged(judgement: &table::Judgement) -> bool {
    for line in &judgement.cheaper {
        println!("count: cheaper: {line}");
    }
    for line in &judgement.dearer {
        println!("count: DEARER: {line}");
    }
    if judgement.dearer.is_empty() {
        println!(
            "count: nothing is more than {} % dearer",
            table::SHARE * 100.0
        );
        return true;
    }
    println!(
        "count: a change that makes something dearer writes the table anew (--update), and its commit says what it is for"
    );
    false
}

/// What the numbers depend on besides the program: compiler, valgrind, and of the C library's copies which is taken.
fn made_with() -> io::Result<String> {
    let valgrind = callgrind::version()?;
    let said = |program: &str, arguments: &[&str]| -> io::Result<String> {
        let output = Command::new(program).args(arguments).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = said(&rustc, &["--version"])?;
    let library = said("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_default();
    let wide = std::fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.split_whitespace().any(|word| word == "avx2"));
    let wide = if wide { "avx2" } else { "no avx2" };
    Ok(format!("{rustc}, {valgrind}, {library}, {wide}."))
}

/// Builds what is counted.
///
/// # Errors
/// If cargo cannot be run.
pub fn build(workspace: &Workspace) -> io::Result<bool> {
    build_release(workspace, "vellum-count")
}

/// What is counted, once it is built.
pub fn program(workspace: &Workspace) -> PathBuf {
    workspace.target().join("release/vellum-count")
}

/// Counts these, as many at a time as there are processors: valgrind has one.
fn count_all(workspace: &Workspace, chosen: &[&Counted]) -> Vec<io::Result<Option<Profile>>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut counted = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(workload) = chosen.get(at) else {
                return counted;
            };
            counted.push((at, count(workspace, workload)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let all = threads.into_iter().flat_map(|thread| {
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        all.collect::<Vec<_>>()
    });
    all.sort_by_key(|it| it.0);
    all.into_iter().map(|it| it.1).collect()
}

fn count(workspace: &Workspace, counted: &Counted) -> io::Result<Option<Profile>> {
    let folder = workspace.target().join("count").join(counted.name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let profile = profile(workspace, counted, &folder);
    std::fs::remove_dir_all(&folder)?;
    profile
}

/// What the operations of a workload cost, of which a run leaves its files in `folder`; nothing if it failed.
///
/// # Errors
/// If valgrind is not there, or its files cannot be read.
pub fn profile(
    workspace: &Workspace,
    counted: &Counted,
    folder: &Path,
) -> io::Result<Option<Profile>> {
    let command = counted.command(&program(workspace), folder);
    let threads = callgrind::profile(&command, FUNCTION, folder, &workspace.root)?;
    // One thread runs what is counted.
    let dearest = |threads: BTreeMap<String, Profile>| {
        let threads = threads.into_values();
        threads.max_by_key(|profile| profile.sum().instructions)
    };
    let worker = threads.and_then(dearest);
    Ok(worker.filter(|profile| profile.sum().instructions > 0))
}

/// What one operation costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Each {
    /// Instructions.
    pub instructions: f64,
    /// Misses of the first level of the caches, of data.
    pub first_misses: f64,
    /// Those of the last level.
    pub last_misses: f64,
}

impl Each {
    fn of(costs: Costs, units: u64) -> Self {
        let each = |cost: u64| cost as f64 / units as f64;
        Self {
            instructions: each(costs.instructions),
            first_misses: each(costs.first_misses),
            last_misses: each(costs.last_misses),
        }
    }
}

/// Instructions of one operation, by what they are for.
fn parts(counted: &Counted, worker: &Profile) -> Parts {
    let mut parts = Parts::new();
    for (place, costs) in &worker.places {
        let each = Each::of(*costs, counted.units());
        *parts.entry(part_of(place)).or_default() += each.instructions;
    }
    parts
}

fn tell(counted: &Counted, worker: &Profile) {
    let line = |costs: Costs, what: &str| {
        let each = Each::of(costs, counted.units());
        let [instructions, first, last] =
            [each.instructions, each.first_misses, each.last_misses].map(table::short);
        println!("{instructions:>9} {first:>9} {last:>9}  {what}");
    };
    fn dearest(costs: BTreeMap<&str, Costs>) -> Vec<(&str, Costs)> {
        let mut costs: Vec<_> = costs.into_iter().collect();
        costs.sort_by_key(|(_, costs)| Reverse(costs.instructions));
        costs
    }
    println!(
        "\n{}: instructions, misses of the first and of the last level, of one {}",
        counted.name, counted.unit
    );
    line(worker.sum(), "all");
    let (mut parts, mut files) = (BTreeMap::<&str, Costs>::new(), BTreeMap::new());
    for (place, costs) in &worker.places {
        parts.entry(part_of(place)).or_default().add(*costs);
        let file: &mut Costs = files.entry(place.file.as_str()).or_default();
        file.add(*costs);
    }
    println!("by what they are for:");
    for (part, costs) in dearest(parts) {
        line(costs, part);
    }
    println!("the dearest files:");
    for (file, costs) in dearest(files).into_iter().take(20) {
        line(costs, file);
    }
    println!("the dearest functions:");
    for (name, costs) in dearest(worker.functions()).into_iter().take(20) {
        line(costs, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callgrind::Place;

    #[test]
    fn an_operation_costs_its_share_and_its_parts_make_it_up() {
        let place = |file: &str| Place {
            function: "get".to_owned(),
            file: file.to_owned(),
        };
        let costs = |instructions| Costs {
            instructions,
            first_misses: instructions / 10,
            last_misses: 1,
        };
        let counted = find("read").expect("reads are counted");
        let units = counted.units();
        let worker = Profile {
            places: BTreeMap::from([
                (
                    place("crates/storage/btree/src/descend.rs"),
                    costs(300 * units),
                ),
                (place("crates/storage/btree/src/near.rs"), costs(20 * units)),
                (
                    place("crates/transaction/txn/src/begin.rs"),
                    costs(10 * units),
                ),
            ]),
            ..Profile::default()
        };
        let each = Each::of(worker.sum(), units);
        assert_eq!((each.instructions, each.first_misses), (330.0, 33.0));
        let parts = parts(counted, &worker);
        let expected = Parts::from([("descent, search", 320.0), ("begin", 10.0)]);
        assert_eq!(parts, expected);
    }
}
