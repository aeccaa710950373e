//! `cargo xtask count WORKLOAD`: instructions of one operation, by what they are for.
//!
//! Two runs of `vellum-bench` under callgrind that differ in the number of operations only; the difference, divided by
//! it, is what an operation costs, without the load. Instructions do not depend on what else the machine does.
//!
//! What is counted: the thread that runs the operations. Callgrind counts each byte of a string instruction (`rep
//! stosb`), so clearing of memory looks dearer than it is.
//!
//! Not here: time, cache misses, system calls, background threads.

use crate::workspace::{Workspace, cargo};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// A workload that can be counted.
struct Counted {
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

    /// How many more of what is counted the long run does.
    fn more(&self) -> u64 {
        (self.amounts.1 - self.amounts.0) * self.times
    }
}

const WORKLOADS: [Counted; 7] = [
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

/// Counts the workload; false if it could not be counted.
///
/// # Errors
/// If a program cannot be run.
pub fn run(workspace: &Workspace, name: &str) -> io::Result<bool> {
    let Some(counted) = WORKLOADS.iter().find(|counted| counted.name == name) else {
        let known: Vec<&str> = WORKLOADS.iter().map(|counted| counted.name).collect();
        println!("count: no workload {name}; there are {}", known.join(", "));
        return Ok(false);
    };
    let build = Command::new(cargo())
        .current_dir(&workspace.root)
        .args(["build", "--release", "-p", "vellum-bench"])
        .status()?;
    if !build.success() {
        return Ok(false);
    }
    let folder = workspace.root.join("target").join("count");
    let (few, many) = counted.amounts;
    let mut runs = Vec::new();
    for amount in [few, many] {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        match count_run(&workspace.root, &folder, counted, amount)? {
            Some(threads) => runs.push(threads),
            None => return Ok(false),
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    report(counted, &runs[0], &runs[1]);
    Ok(true)
}

type Functions = BTreeMap<String, u64>;

/// Instructions by thread and function of one run.
fn count_run(
    root: &Path,
    folder: &Path,
    counted: &Counted,
    amount: u64,
) -> io::Result<Option<BTreeMap<String, Functions>>> {
    let out = folder.join("calls");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(root.join("target/release/vellum-bench"))
        .args(counted.arguments)
        .args(["--pool-mib", "512", "--file-gib", "8", "--no-check"])
        .args([counted.flag, &amount.to_string()])
        .arg("--data")
        .arg(folder.join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        println!("count: the run failed");
        return Ok(None);
    }
    let mut threads = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(thread) = name.strip_prefix("calls-") else {
            continue;
        };
        let annotated = Command::new("callgrind_annotate")
            .args([
                "--threshold=100",
                "--auto=no",
                "--tree=none",
                "--show-percs=no",
            ])
            .arg(&path)
            .output()?;
        let text = String::from_utf8_lossy(&annotated.stdout);
        threads.insert(thread.to_owned(), functions(&text));
    }
    Ok(Some(threads))
}

/// Reads the listing of `callgrind_annotate`: `1,234  file:function [object]`.
fn functions(listing: &str) -> Functions {
    let mut functions = Functions::new();
    for line in listing.lines() {
        let Some((number, rest)) = line.trim_start().split_once("  ") else {
            continue;
        };
        let Ok(number) = number.trim().replace(',', "").parse::<u64>() else {
            continue;
        };
        let Some((_, function)) = rest.split_once(':') else {
            continue;
        };
        let function = function.split(" [").next().unwrap_or(function);
        *functions.entry(function.to_owned()).or_default() += number;
    }
    functions
}

/// What a function is for.
fn part_of(function: &str) -> &'static str {
    PARTS
        .iter()
        .find(|(_, names)| names.iter().any(|name| function.contains(name)))
        .map_or(WORKLOAD_ITSELF, |(part, _)| part)
}

fn report(
    counted: &Counted,
    few: &BTreeMap<String, Functions>,
    many: &BTreeMap<String, Functions>,
) {
    let none = Functions::new();
    let cost = |thread: &str| {
        let before = few.get(thread).unwrap_or(&none);
        many[thread]
            .iter()
            .map(|(name, now)| {
                let before = before.get(name).copied().unwrap_or(0);
                (name.as_str(), now.saturating_sub(before))
            })
            .collect::<Vec<_>>()
    };
    let sum = |costs: &[(&str, u64)]| costs.iter().map(|(_, cost)| cost).sum::<u64>();
    // The thread that runs the operations is the one that more of them make dearer.
    let worker = many
        .keys()
        .map(|thread| cost(thread))
        .max_by_key(|costs| sum(costs));
    let mut worker = worker.unwrap_or_default();
    let each = |cost: u64| per(cost, counted.more());
    println!(
        "{}: {} instructions of one {}",
        counted.name,
        each(sum(&worker)),
        counted.unit
    );
    let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, cost) in &worker {
        *parts.entry(part_of(name)).or_default() += cost;
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    for (part, cost) in parts {
        println!("{:>9}  {part}", each(cost));
    }
    println!("the dearest functions:");
    worker.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    for (name, cost) in worker.iter().take(20) {
        println!("{:>9}  {name}", each(*cost));
    }
}

/// What one costs of which `more` cost this; with a digit behind the point where it is little.
fn per(cost: u64, more: u64) -> String {
    match cost / more {
        few @ 0..1000 => format!("{few}.{}", cost % more * 10 / more),
        many => many.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_costs_has_a_digit_behind_the_point() {
        assert_eq!(per(10_000_000, 200_000), "50.0");
        assert_eq!(per(9_990_000, 200_000), "49.9");
        assert_eq!(per(999_999, 1_000), "999.9");
        assert_eq!(per(1_234_567, 1_000), "1234");
    }

    #[test]
    fn workloads_have_names_of_their_own_and_runs_that_differ() {
        for (at, counted) in WORKLOADS.iter().enumerate() {
            assert!(counted.more() > 0, "{}", counted.name);
            let others = &WORKLOADS[at + 1..];
            assert!(others.iter().all(|other| other.name != counted.name));
            assert!(!counted.arguments.contains(&counted.flag));
        }
    }

    #[test]
    fn listing_of_callgrind_annotate_becomes_functions() {
        let listing = "--------\nIr\n\n1,234,567  PROGRAM TOTALS\n\n  file:function\n\
            1,200,000  src/slot.rs:vellum_wal::slot::append [/bin/bench]\n   \
            4,500  ./string/memset.S:__memset_avx2 [/lib/libc.so]\n   \
            67  src/other.rs:vellum_wal::slot::append [/bin/bench]\n";
        let found = functions(listing);
        assert_eq!(found["vellum_wal::slot::append"], 1_200_067);
        assert_eq!(found["__memset_avx2"], 4_500);
        assert_eq!(found.len(), 2);
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
