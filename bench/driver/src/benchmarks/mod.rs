//! `vellum-bench report`: all comparisons that there are, as one page with pictures. Where Vellum is furthest behind
//! stands first.
//!
//! Not here: data past the memory that engines are given. Most peers read through the kernel's memory as well, which nothing bounds but
//! a control group around the run, for which a bench would have to ask for rights; `kv` alone compares Vellum with the device there.

mod entries;
mod ran;

use crate::Failure;
use crate::charts;
use crate::cli::{Report, ReportSet};
use crate::compare::{Comparison, Standing, compare, failed, tell};
use crate::directory::has_entries;
use crate::engines::Runner;
use crate::machine::{Machine, load_average};
use crate::output::{check_file, write_file};
use crate::plot::picture;
use entries::{Entry, entries};
use ran::{Ran, summary};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

/// Runs all comparisons and writes the page. Returns whether all data were consistent.
pub(crate) fn run(
    report: &Report,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    if has_entries(&report.data) {
        return Err(Failure::Usage(format!(
            "{} is not empty, and each run wants to begin there",
            report.data.display()
        )));
    }
    // Before the work: a path that cannot be written is told at once.
    let folder = report.out.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(failed("create", &folder))?;
    let path = report.out.join("benchmarks.md");
    let file = |name: &str, ending: &str| folder.join(format!("{name}.{ending}"));
    let names = entries(report.set).map(|entry| entry.name);
    for name in names.chain(["overview"]) {
        check_file(&file(name, "json"))?;
        check_file(&file(name, "svg"))?;
    }
    check_file(&path)?;
    let (start, load_before) = (Instant::now(), load_average());
    let mut ran = Vec::new();
    let costs = costs(report, runner)?;
    let all: f64 = costs.iter().sum();
    let of = costs.len();
    tell(
        table,
        &format!(
            "{of} comparisons, {} of each: about {}",
            rounds_told(report.rounds()),
            minutes_told(all)
        ),
    )?;
    let mut done = 0.0;
    for (at, (entry, cost)) in entries(report.set).zip(&costs).enumerate() {
        let so_far = start.elapsed().as_secs_f64();
        let (left, so_far) = (minutes_told(left(all, done, so_far)), minutes_told(so_far));
        let title = entry.title;
        tell(
            table,
            &format!(
                "{} of {of}: {title} ({so_far} so far, about {left} left)",
                at + 1
            ),
        )?;
        done += cost;
        let arguments = entry.arguments(report.set);
        let comparison = Comparison {
            workload: entry.workload,
            arguments: &arguments,
            engines: &report.engines,
            rounds: report.rounds(),
            data: report.data.clone(),
        };
        let compared = compare(&comparison, runner, lines, table)?;
        ran.push(Ran { entry, compared });
    }
    ran.sort_by(|one, other| one.worst_ratio().total_cmp(&other.worst_ratio()));
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let page = page(report, &ran, minutes, load_before);
    let overview = |by: &str, of: fn(&Ran) -> Option<&Standing>| {
        charts::bars(
            format!("Vellum to the best peer, by {by} (above 1 Vellum is better)"),
            "ratio of medians",
            ran.iter()
                .filter_map(|ran| Some((ran.entry.name.to_owned(), of(ran)?.ratio.into()))),
        )
    };
    let overview = [
        overview("the worst figure of each", Ran::worst),
        overview("rate", Ran::rate),
    ];
    // All at the end: no page stands beside pictures of another report.
    for Ran { entry, compared } in &ran {
        write_file(&file(entry.name, "json"), &compared.json)?;
        write_file(&file(entry.name, "svg"), &compared.picture)?;
    }
    write_file(&file("overview", "svg"), &picture(&overview))?;
    write_file(&path, &page)?;
    // Nor do those stay that an earlier report with more comparisons has left.
    for entry in left_out(report.set) {
        for file in ["json", "svg"].map(|ending| file(entry.name, ending)) {
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(failed("remove", &file)(error));
                }
                _ => {}
            }
        }
    }
    let took = format!("{}, after {minutes:.1} minutes", path.display());
    tell(table, &format!("\n{}\n{took}", summary(&ran)))?;
    Ok(ran.iter().all(|ran| ran.compared.is_consistent))
}

/// Where pictures and figures are, seen from the page.
const FOLDER: &str = "benchmarks/report";

/// About how many seconds each entry takes, with the engines that can run it.
fn costs(report: &Report, runner: &mut dyn Runner) -> Result<Vec<f64>, Failure> {
    let cost = |entry: &Entry| {
        let workload = entry.parse(report.set)?;
        let engines = report.engines.iter();
        let engines = engines.filter(|engine| runner.check(**engine, &workload).is_ok());
        let runs = engines.count() as f64 * f64::from(report.rounds());
        Ok(runs * entry.run_s(report.set)?)
    };
    entries(report.set).map(cost).collect()
}

/// Seconds that are left of about `all`, when what was to take `done` of them took `so_far`.
fn left(all: f64, done: f64, so_far: f64) -> f64 {
    let pace = if done > 0.0 { so_far / done } else { 1.0 };
    (all - done) * pace
}

fn minutes_told(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    match minutes {
        90.0.. => format!("{:.1} hours", minutes / 60.0),
        _ => format!("{minutes:.1} minutes"),
    }
}

fn rounds_told(rounds: u32) -> String {
    match rounds {
        1 => "one round".to_owned(),
        rounds => format!("{rounds} rounds"),
    }
}

fn page(report: &Report, ran: &[Ran], minutes: f64, load_before: [f64; 3]) -> String {
    let (machine, load_after) = (Machine::here(&report.data), load_average());
    let commit = env!("VELLUM_COMMIT");
    let spread = match report.rounds() {
        1 => "**one run of each, so nothing tells how far another one would be from it**",
        _ => {
            "figures are medians over the rounds, a ratio with ~ is one where some round of Vellum and some round of that peer \
             are in the other order or alike"
        }
    };
    let mut out = format!(
        "# Benchmarks\n\n\
         Written by `vellum-bench report --set {} --rounds {}` of commit {commit} in {minutes:.0} minutes, on {}, \
         load {:.1} before and {:.1} after. What has changed since: `git log --oneline {commit:.12}..HEAD -- bench crates`.\n\n\
         Engines run in turn, each round begins with another one, each run in a fresh directory and, on the command line, in a process of its own, `async` where nothing else is said; {spread}. \
         Ratios are Vellum's to the best peer's, above 1 Vellum is better, also where less is better; **where Vellum is furthest behind stands first, and the column in bold says by which figure**: rates, p50 and p99 of each kind of transactions by itself, and what a snapshot leaves of the rate count; p99.9, of a few transactions in runs as short, does not. \
         Of a run beside a snapshot the rate is that before it. Axes begin at zero; a bar that is very much longer than the others is cut, with a mark and its number. Below each table is what each engine was set to: isolation, durability (what a kill of its process and what a power loss take) and memory are not the same everywhere. \
         Not here: data past the memory, where most peers read through the kernel's memory as well, which nothing bounds.{}\n\n",
        report.set.name(),
        report.rounds(),
        machine.words(),
        load_before[0],
        load_after[0],
        not_in(report.set),
    );
    out.push_str(&summary(ran));
    let _ = writeln!(out, "\n![Ratios]({FOLDER}/overview.svg)");
    for ran in ran {
        let Entry { name, title, .. } = ran.entry;
        let files = Path::new(FOLDER).join(name);
        let _ = writeln!(
            out,
            "\n## {title}\n{}\n![{name}]({}.svg)\n\nEvery run: [{name}.json]({}.json)",
            ran.compared.text,
            files.display(),
            files.display()
        );
    }
    out
}

/// The comparisons that a set leaves out.
fn left_out(set: ReportSet) -> impl Iterator<Item = &'static Entry> {
    let is_missing = move |entry: &&Entry| entries(set).all(|other| other.name != entry.name);
    entries(ReportSet::Full).filter(is_missing)
}

/// Names them.
fn not_in(set: ReportSet) -> String {
    let missing: Vec<String> = left_out(set)
        .map(|entry| format!("`{}`", entry.name))
        .collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!(
            " In the full set only, for want of time: {}.",
            missing.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Workload;
    use crate::compare::tests::{Faked, broken};
    use crate::engines::EngineName;

    #[test]
    fn where_vellum_is_furthest_behind_stands_first_and_a_peer_that_fails_is_no_peer() {
        let folder = tempfile::tempdir().expect("a directory");
        let report = Report {
            set: ReportSet::Tiny,
            engines: vec![EngineName::Vellum, EngineName::Lmdb, EngineName::Redb],
            rounds: None,
            out: folder.path().join("docs"),
            data: folder.path().join("data"),
        };
        // Ratios go up and down over the entries; lmdb fails in every third.
        let mut begun = 0_u32;
        let judge = move |engine, _: &Workload| match engine {
            EngineName::Vellum => {
                begun += 1;
                Ok(f64::from(begun * 8 % 21 + 1))
            }
            EngineName::Lmdb if begun.is_multiple_of(3) => Err(broken()),
            EngineName::Lmdb => Ok(8.0),
            _ => Ok(4.0),
        };
        let mut faked = Faked(Box::new(judge));
        let ran = run(&report, &mut faked, &mut Vec::new(), &mut Vec::new());
        assert!(ran.unwrap_or_else(|failure| panic!("{failure}")));
        let page = std::fs::read_to_string(report.out.join("benchmarks.md")).expect("a page");
        let mut expected: Vec<(f64, &str)> = (1_u32..)
            .zip(entries(ReportSet::Tiny))
            .map(|(n, entry)| {
                let best = if n % 3 == 0 { 4.0 } else { 8.0 };
                (f64::from(n * 8 % 21 + 1) / best, entry.name)
            })
            .collect();
        let by_entries: Vec<&str> = expected.iter().map(|it| it.1).collect();
        expected.sort_by(|one, other| one.0.total_cmp(&other.0));
        let names: Vec<&str> = expected.iter().map(|it| it.1).collect();
        assert_ne!(
            names, by_entries,
            "an order that is there anyway shows nothing"
        );
        let listed = page
            .lines()
            .filter(|line| line.starts_with('|'))
            .filter_map(|line| line.split("(`").nth(1)?.split("`)").next());
        let listed: Vec<&str> = listed.take(names.len()).collect();
        assert_eq!(listed, names);
        let pictures = page
            .lines()
            .filter_map(|line| line.strip_prefix("![")?.split(']').next());
        let pictures: Vec<&str> = pictures.filter(|name| *name != "Ratios").collect();
        assert_eq!(pictures, names);
        assert!(page.contains("its file is damaged"), "{page}");
    }

    #[test]
    fn a_report_that_ends_early_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a directory");
        let report = Report {
            set: ReportSet::Tiny,
            engines: vec![EngineName::Vellum, EngineName::Lmdb],
            rounds: None,
            out: folder.path().join("docs"),
            data: folder.path().join("data"),
        };
        let mut runs = 0;
        let judge = move |_, _: &Workload| {
            runs += 1;
            match runs {
                9 => Err(Failure::Interrupted),
                _ => Ok(1.0),
            }
        };
        let mut faked = Faked(Box::new(judge));
        let ran = run(&report, &mut faked, &mut Vec::new(), &mut Vec::new());
        assert!(matches!(ran, Err(Failure::Interrupted)));
        let left = std::fs::read_dir(report.out.join(FOLDER)).expect("its folder");
        assert_eq!(left.count(), 0);
        assert!(!report.out.join("benchmarks.md").exists());
        // What cannot be written is told before the work.
        std::fs::create_dir(report.out.join(FOLDER).join("hot.svg")).expect("a directory");
        let mut faked = Faked(Box::new(|_, _: &Workload| panic!("nothing runs")));
        let ran = run(&report, &mut faked, &mut Vec::new(), &mut Vec::new());
        let told = ran.expect_err("a directory is no file").to_string();
        assert!(told.contains("hot.svg"), "{told}");
    }

    #[test]
    fn a_report_says_how_long_it_takes_and_how_much_of_it_is_left() {
        assert_eq!(left(600.0, 0.0, 0.0), 600.0);
        // Half as fast as was thought.
        assert_eq!(left(600.0, 200.0, 400.0), 800.0);
        assert_eq!(left(600.0, 600.0, 500.0), 0.0);
        assert_eq!(minutes_told(90.0), "1.5 minutes");
        assert_eq!(minutes_told(9000.0), "2.5 hours");
        let folder = tempfile::tempdir().expect("a directory");
        let report = Report {
            set: ReportSet::Tiny,
            engines: vec![EngineName::Vellum, EngineName::Rocksdb, EngineName::Redb],
            rounds: None,
            out: folder.path().join("docs"),
            data: folder.path().join("data"),
        };
        let mut faked = Faked(Box::new(|_, _: &Workload| Ok(1.0)));
        // Who cannot run costs nothing.
        let costs = costs(&report, &mut faked).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(costs[0], 2.0 * 0.5);
        let mut told = Vec::new();
        let ran = run(&report, &mut faked, &mut Vec::new(), &mut told);
        assert!(ran.unwrap_or_else(|failure| panic!("{failure}")));
        let told = String::from_utf8(told).expect("text");
        let first = format!("{} comparisons, one round of each: about ", costs.len());
        assert!(told.starts_with(&first), "{told}");
        assert!(
            told.contains(
                "\n2 of 21: Point reads, two threads (0.0 minutes so far, about 0.0 minutes left)\n"
            ),
            "{told}"
        );
        let page = std::fs::read_to_string(report.out.join("benchmarks.md")).expect("a page");
        assert!(
            page.contains("**one run of each, so nothing tells"),
            "{page}"
        );
    }

    #[test]
    fn the_page_names_its_commit_its_disk_and_what_its_set_leaves_out() {
        let folder = tempfile::tempdir().expect("a directory");
        let report = Report {
            set: ReportSet::Quick,
            engines: vec![EngineName::Vellum, EngineName::Redb],
            rounds: None,
            out: folder.path().join("docs"),
            data: folder.path().join("data"),
        };
        // A full report was here, and something that is none of a report's.
        let files = report.out.join(FOLDER);
        std::fs::create_dir_all(&files).expect("a directory");
        for file in ["hot.json", "hot.svg", "notes.md"] {
            std::fs::write(files.join(file), "of before").expect("a file");
        }
        let mut faked = Faked(Box::new(|_, _: &Workload| Ok(1.0)));
        let ran = run(&report, &mut faked, &mut Vec::new(), &mut Vec::new());
        assert!(ran.unwrap_or_else(|failure| panic!("{failure}")));
        let is_there =
            ["hot.json", "hot.svg", "notes.md", "queue.svg"].map(|file| files.join(file).exists());
        assert_eq!(is_there, [false, false, true, true]);
        let page = std::fs::read_to_string(report.out.join("benchmarks.md")).expect("a page");
        let commit = env!("VELLUM_COMMIT");
        let since = format!("of commit {commit} in");
        assert!(page.contains(&since), "{page}");
        let since = format!("`git log --oneline {commit:.12}..HEAD -- bench crates`");
        assert!(page.contains(&since), "{page}");
        assert!(page.contains(", data on "), "{page}");
        assert!(
            page.contains("figures are medians over the rounds"),
            "{page}"
        );
        let (_, missing) = page.split_once("In the full set only").expect("a list");
        let missing = missing.lines().next().expect("a line");
        for entry in entries(ReportSet::Full) {
            let name = format!("`{}`", entry.name);
            let is_there = page.contains(&format!("({name})"));
            assert_ne!(is_there, missing.contains(&name), "{name}");
        }
        assert_eq!(not_in(ReportSet::Full), "");
    }
}
