//! `cargo xtask count WORKLOAD`: instructions and cache misses of one operation, by what they are for; and a table of them in the
//! repository that a change may not make worse without saying so.
//!
//! Two runs of `vellum-bench` under callgrind that differ in the number of operations only; the difference, divided by
//! it, is what an operation costs, without the load. Neither depends on what else the machine does: the caches are simulated.
//!
//! What is counted: the thread that runs the operations. Callgrind counts each byte of a string instruction (`rep
//! stosb`), so clearing of memory looks dearer than it is.
//!
//! Not here: time, system calls, background threads.

mod parts;
pub mod table;

use crate::callgrind::{self, Costs, Profile};
use crate::workspace::{Workspace, cargo};
use parts::Parts;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use table::Row;

/// Instead of a name: every workload that the table has.
const ALL: &str = "all";
/// Instead of a name: what the check of each commit has time for.
const FEW: &str = "few";
/// A begin, a lookup and an end; the same with an update and a commit.
const IN_FEW: [&str; 2] = ["read", "update"];
/// Waits for the device: who leads a flush is chance, so that no two counts of it agree. Told where it is asked for, and in no table.
const BY_CHANCE: &str = "sync";

/// A workload that can be counted.
pub struct Counted {
    name: &'static str,
    /// What is counted.
    unit: &'static str,
    /// What the short and the long run differ in, and how much of it each does.
    flag: &'static str,
    amounts: (u64, u64),
    /// How many of what is counted are in one of these.
    times: u64,
    arguments: &'static [&'static str],
}

impl Counted {
    /// Operations of `kv` on 200 thousand rows, or of TPC-C.
    const fn operations(
        name: &'static str,
        amounts: (u64, u64),
        arguments: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            unit: "operation",
            flag: "--operations",
            amounts,
            times: 1,
            arguments,
        }
    }

    /// The command of the short run, and of the long one, with its data in `scratch`.
    pub fn commands(&self, program: &Path, scratch: &Path) -> [Vec<OsString>; 2] {
        let (few, many) = self.amounts;
        [few, many].map(|amount| self.command(program, scratch, self.flag, amount))
    }

    /// The command of a run that is long enough to be sampled.
    pub fn sampled(&self, program: &Path, scratch: &Path) -> Vec<OsString> {
        match self.flag {
            "--operations" => self.command(program, scratch, "--seconds", 5),
            flag => self.command(program, scratch, flag, 3 * self.amounts.1),
        }
    }

    fn command(&self, program: &Path, scratch: &Path, flag: &str, amount: u64) -> Vec<OsString> {
        let mut words = vec![program.into()];
        words.extend(self.arguments.iter().map(OsString::from));
        let all = ["--pool-mib", "512", "--file-gib", "8", "--no-check"];
        words.extend(all.map(OsString::from));
        words.extend([flag.into(), amount.to_string().into(), "--data".into()]);
        words.push(scratch.join("data").into_os_string());
        words
    }

    /// How many more of what is counted the long run does.
    fn more(&self) -> u64 {
        (self.amounts.1 - self.amounts.0) * self.times
    }
}

const WORKLOADS: [Counted; 15] = [
    Counted::operations(
        "read",
        (20_000, 220_000),
        &["kv", "--mix", "read", "--rows", "200000"],
    ),
    Counted::operations(
        "rmw",
        (5_000, 45_000),
        &["kv", "--mix", "rmw", "--rows", "200000"],
    ),
    Counted::operations(
        "update",
        (5_000, 45_000),
        &["kv", "--mix", "update", "--rows", "200000"],
    ),
    Counted::operations(
        "sync",
        (5_000, 45_000),
        &[
            "kv",
            "--mix",
            "update",
            "--durability",
            "sync",
            "--rows",
            "200000",
        ],
    ),
    // One transaction, whose end is in both.
    Counted {
        name: "load",
        unit: "row",
        flag: "--rows",
        amounts: (100_000, 1_100_000),
        times: 1,
        arguments: &["load"],
    },
    // All rows, each time in a snapshot of its own.
    Counted {
        name: "scan",
        unit: "row",
        flag: "--operations",
        amounts: (5, 55),
        times: 200_000,
        arguments: &["scan", "--rows", "200000"],
    },
    Counted::operations("tpcc", (1_000, 5_000), &["tpcc", "--warehouses", "1"]),
    Counted::operations("tatp", (5_000, 45_000), &["tatp", "--subscribers", "20000"]),
    Counted::operations("queue", (5_000, 105_000), &["queue"]),
    Counted::operations("hot", (5_000, 205_000), &["hot"]),
    // The same beside a snapshot that was taken before their first operation: what Vellum promises is that these are no dearer. The short
    // run is long enough to have promoted its holder.
    Counted::operations(
        "queue-held",
        (25_000, 125_000),
        &["queue", "--hold-snapshot-at", "0"],
    ),
    Counted::operations(
        "hot-held",
        (25_000, 225_000),
        &["hot", "--hold-snapshot-at", "0"],
    ),
    Counted::operations(
        "tpcc-held",
        (2_000, 6_000),
        &["tpcc", "--warehouses", "1", "--hold-snapshot-at", "0"],
    ),
    // Without graveyards, fat rows and shortcuts: what these cost where nobody holds a snapshot.
    Counted::operations(
        "tpcc-osic",
        (1_000, 5_000),
        &["tpcc", "--warehouses", "1", "--variant", "osic"],
    ),
    Counted::operations("hekaton", (2_000, 12_000), &["hekaton", "--rows", "200000"]),
];

/// What functions are for, by a part of their names; the first that fits counts.
const PARTS: [(&str, &[&str]); 10] = [
    (
        "clearing and copying",
        &["__mem", "copy_payload", "copy_to", "copy_out"],
    ),
    ("allocation", &["mi_", "alloc::", "RawVec"]),
    (
        "making room",
        &[
            "make_room",
            "split",
            "compact",
            "move_shifted",
            "move_words",
            "move_within",
            "sort::",
            "same_rows",
            "Builder",
            "Change",
            "judge_row",
            "Freezer",
        ],
    ),
    (
        "descent and search",
        &[
            "try_descend",
            "lower_bound",
            "compare",
            "try_remembered",
            "look_up",
            "write_near",
            "LeafWrite::new",
            "find",
            "covers",
            "read_leaf",
            "LeafCopy",
        ],
    ),
    ("latches and pages", &["vellum_buffer", "vellum_sync"]),
    ("leaf", &["node::edit", "LeafWrite"]),
    (
        "versions",
        &["vellum_version", "Appender", "range::", "vellum_gc"],
    ),
    ("log", &["vellum_wal", "crc32c", "LeafWrite::log"]),
    ("begin, commit, visibility", &["vellum_txn"]),
    (
        "interface",
        &["vellum_table", "vellum::", "vellum_catalog", "<vellum"],
    ),
];
const WORKLOAD_ITSELF: &str = "the workload itself, and what is not named here";

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
    let made = made_with()?;
    if !build(workspace)? {
        return Ok(false);
    }
    let (mut rows, mut for_what) = (Vec::new(), BTreeMap::new());
    for counted in chosen {
        let Some(worker) = count(workspace, counted)? else {
            println!("count: the run of {} failed", counted.name);
            return Ok(false);
        };
        tell(counted, &worker);
        for_what.insert(counted.name, parts(counted, &worker));
        rows.push(Row {
            name: counted.name.to_owned(),
            unit: counted.unit.to_owned(),
            each: Each::of(sum(&worker), counted.more()),
        });
    }
    let path = workspace.root.join(table::PATH);
    if name == BY_CHANCE && then != Then::Tell {
        println!("count: {name} waits for the device: it is in no table");
        return Ok(true);
    }
    match then {
        Then::Tell => Ok(true),
        Then::Check => {
            let text = std::fs::read_to_string(&path)?;
            let judge = match name {
                FEW => table::judge_instructions,
                _ => table::judge,
            };
            let well = judged(&judge(&text, &rows));
            let same = table::made_with(&text) == Some(made.as_str());
            if !same {
                println!(
                    "count: the table was made with {}; here it is {made}: its numbers differ for that, too, so this is no verdict",
                    table::made_with(&text).unwrap_or("nothing that it names")
                );
            }
            Ok(well || !same)
        }
        Then::Update => {
            let text = std::fs::read_to_string(&path)?;
            let text = table::replaced(&text, &rows, &in_table(), &made);
            std::fs::write(&path, text)?;
            let path = workspace.root.join(parts::PATH);
            let text = std::fs::read_to_string(&path)?;
            let columns: Vec<&str> = PARTS.iter().map(|it| it.0).collect();
            let columns = [&columns[..], &[WORKLOAD_ITSELF]].concat();
            let text = parts::replaced(&text, &for_what, &in_table(), &columns);
            std::fs::write(&path, text)?;
            println!("count: {} and {} are written", table::PATH, parts::PATH);
            Ok(true)
        }
    }
}

/// The workloads of this name, or of `few` or `all`.
fn chosen(name: &str) -> Vec<&'static Counted> {
    let is_meant = |counted: &&Counted| match name {
        ALL => counted.name != BY_CHANCE,
        FEW => IN_FEW.contains(&counted.name),
        _ => counted.name == name,
    };
    WORKLOADS.iter().filter(is_meant).collect()
}

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Counted> {
    WORKLOADS.iter().find(|counted| counted.name == name)
}

/// Names of all workloads.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|counted| counted.name).collect()
}

/// Names of the workloads that the table has, in its order.
pub fn in_table() -> Vec<&'static str> {
    let mut names = names();
    names.retain(|name| *name != BY_CHANCE);
    names
}

/// Says what got dearer or cheaper. True if nothing got dearer.
fn judged(judgement: &table::Judgement) -> bool {
    println!();
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

/// Compiler and valgrind, by which the numbers may differ.
fn made_with() -> io::Result<String> {
    let valgrind = callgrind::version()?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    let rustc = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(format!("{rustc}, {valgrind}."))
}

/// Builds what is counted.
///
/// # Errors
/// If cargo cannot be run.
pub fn build(workspace: &Workspace) -> io::Result<bool> {
    let status = cargo()
        .current_dir(&workspace.root)
        .args(["build", "--release", "-p", "vellum-bench"])
        .status()?;
    Ok(status.success())
}

type Functions = BTreeMap<String, Costs>;

/// What the thread that runs the operations costs more in the long run, by function.
fn count(workspace: &Workspace, counted: &Counted) -> io::Result<Option<Functions>> {
    let folder = workspace.target().join("count");
    let program = workspace.target().join("release/vellum-bench");
    let mut runs = Vec::new();
    for command in counted.commands(&program, &folder) {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        match callgrind::profile(&command, &folder)? {
            Some(threads) => runs.push(threads),
            None => return Ok(None),
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(Some(worker(&runs[0], &runs[1])))
}

/// The difference of two runs, of the thread that more operations make dearer: the one that runs them.
fn worker(few: &BTreeMap<String, Profile>, many: &BTreeMap<String, Profile>) -> Functions {
    let more = |(thread, profile): (&String, &Profile)| -> Functions {
        let before = few.get(thread).map(|before| &before.functions);
        let more = |(name, now): (&String, &Costs)| {
            let before = before.and_then(|before| before.get(name));
            (
                name.clone(),
                now.without(before.copied().unwrap_or_default()),
            )
        };
        profile.functions.iter().map(more).collect()
    };
    let threads = many.iter().map(more);
    let dearest = threads.max_by_key(|functions| sum(functions).instructions);
    dearest.unwrap_or_default()
}

fn sum(functions: &Functions) -> Costs {
    let mut sum = Costs::default();
    for costs in functions.values() {
        sum.add(*costs);
    }
    sum
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
    fn of(costs: Costs, more: u64) -> Self {
        let each = |cost: u64| cost as f64 / more as f64;
        Self {
            instructions: each(costs.instructions),
            first_misses: each(costs.first_misses),
            last_misses: each(costs.last_misses),
        }
    }
}

/// What a function is for.
fn part_of(function: &str) -> &'static str {
    PARTS
        .iter()
        .find(|(_, names)| names.iter().any(|name| function.contains(name)))
        .map_or(WORKLOAD_ITSELF, |(part, _)| part)
}

/// Instructions of one operation, by what they are for.
fn parts(counted: &Counted, worker: &Functions) -> Parts {
    let mut parts = Parts::new();
    for (name, costs) in worker {
        *parts.entry(part_of(name)).or_default() += Each::of(*costs, counted.more()).instructions;
    }
    parts
}

fn tell(counted: &Counted, worker: &Functions) {
    let line = |costs: Costs, what: &str| {
        let each = Each::of(costs, counted.more());
        let [instructions, first, last] =
            [each.instructions, each.first_misses, each.last_misses].map(table::short);
        println!("{instructions:>9} {first:>9} {last:>9}  {what}");
    };
    println!(
        "\n{}: instructions, misses of the first and of the last level, of one {}",
        counted.name, counted.unit
    );
    line(sum(worker), "all");
    let mut parts: BTreeMap<&str, Costs> = BTreeMap::new();
    for (name, costs) in worker {
        parts.entry(part_of(name)).or_default().add(*costs);
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(_, costs)| Reverse(costs.instructions));
    println!("by what they are for:");
    for (part, costs) in parts {
        line(costs, part);
    }
    println!("the dearest functions:");
    let mut functions: Vec<_> = worker.iter().collect();
    functions.sort_by_key(|(_, costs)| Reverse(costs.instructions));
    for (name, costs) in functions.into_iter().take(20) {
        line(*costs, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_have_names_of_their_own_and_runs_that_differ() {
        for (at, counted) in WORKLOADS.iter().enumerate() {
            assert!(counted.more() > 0, "{}", counted.name);
            let others = &WORKLOADS[at + 1..];
            assert!(others.iter().all(|other| other.name != counted.name));
            assert!(!counted.arguments.contains(&counted.flag));
            let (program, scratch) = (Path::new("bench"), Path::new("/s"));
            let [few, many] = counted.commands(program, scratch);
            assert_ne!(few, many);
            let differ = few.iter().zip(&many).filter(|(one, other)| one != other);
            assert_eq!(differ.count(), 1, "{few:?}");
            let sampled = counted.sampled(program, scratch);
            assert!(sampled.ends_with(&["--data".into(), "/s/data".into()]));
            assert_eq!(find(counted.name).map(|it| it.name), Some(counted.name));
        }
    }

    #[test]
    fn few_are_some_of_all() {
        let names = |name| -> Vec<&str> { chosen(name).iter().map(|it| it.name).collect() };
        assert_eq!(names(ALL), in_table());
        assert_eq!(names(FEW), IN_FEW);
        assert_eq!(names("sync"), ["sync"]);
        assert_eq!(names("nothing"), [""; 0]);
    }

    /// So that `count all --check` finds a row for everything that it counts.
    #[test]
    fn the_table_has_a_row_for_each_workload_that_is_counted_by_all() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let path = root.expect("the workspace").join(table::PATH);
        let text = std::fs::read_to_string(path).expect("the table");
        let rows = table::rows(&text);
        let rows: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(rows, in_table());
    }

    #[test]
    fn the_worker_is_the_thread_that_more_operations_make_dearer() {
        let profile = |functions: &[(&str, u64)]| Profile {
            functions: functions
                .iter()
                .map(|(name, instructions)| {
                    let costs = Costs {
                        instructions: *instructions,
                        first_misses: *instructions / 10,
                        last_misses: 1,
                    };
                    ((*name).to_owned(), costs)
                })
                .collect(),
            ..Profile::default()
        };
        let threads = |main, worker: &[(&str, u64)]| {
            BTreeMap::from([
                ("01".to_owned(), profile(main)),
                ("06".to_owned(), profile(worker)),
            ])
        };
        let few = threads(&[("load", 9_000)], &[("get", 100), ("ends", 50)]);
        let many = threads(
            &[("load", 9_010)],
            &[("get", 1_100), ("ends", 40), ("new", 20)],
        );
        let worker = worker(&few, &many);
        let each = Each::of(sum(&worker), 100);
        assert_eq!((each.instructions, each.first_misses), (10.2, 1.02));
        assert_eq!(worker["ends"].instructions, 0, "never less than nothing");
    }

    #[test]
    fn functions_are_counted_for_what_they_do() {
        assert_eq!(
            part_of("__memcpy_avx_unaligned_erms"),
            "clearing and copying"
        );
        assert_eq!(part_of("vellum_wal::slot::SlotGuard::append"), "log");
        assert_eq!(
            part_of("vellum_btree::node::layout::NodeRead::lower_bound"),
            "descent and search"
        );
        assert_eq!(part_of("main"), WORKLOAD_ITSELF);
    }
}
