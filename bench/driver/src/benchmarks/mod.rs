//! `vellum-bench report`: all comparisons that there are, as one page with pictures. Where Vellum is furthest behind
//! stands first.
//!
//! Not here: data past the memory that engines are given. Most peers read through the kernel's memory as well, which
//! nothing bounds, so that nothing would be equal; `kv` alone compares Vellum with the device there.

use crate::Failure;
use crate::charts;
use crate::cli::{Report, ReportSet, WorkloadName};
use crate::compare::{Compared, Comparison, Standing, compare, failed, is_p99, tell};
use crate::directory::has_entries;
use crate::engines::Runner;
use crate::machine::{Machine, load_average};
use crate::output::{check_file, write_file};
use crate::plot::picture;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// A comparison of the report.
struct Entry {
    /// Of its files and its bar.
    name: &'static str,
    title: &'static str,
    workload: WorkloadName,
    /// Flags in every set.
    common: &'static str,
    /// And in one.
    tiny: &'static str,
    quick: &'static str,
    full: &'static str,
}

const HELD_TINY: &str = "--operations 200 --hold-snapshot-at 0";
// Two seconds of warm-up.
const HELD_QUICK: &str = "--seconds 20 --hold-snapshot-at 8";
const HELD_FULL: &str = "--seconds 120 --hold-snapshot-at 20";
const ROWS_TINY: &str = "--rows 200 --operations 100";
const ROWS_QUICK: &str = "--rows 500000 --seconds 3";
const ROWS_FULL: &str = "--rows 2000000 --seconds 10";

const fn rows(
    name: &'static str,
    title: &'static str,
    workload: WorkloadName,
    common: &'static str,
) -> Entry {
    Entry {
        name,
        title,
        workload,
        common,
        tiny: ROWS_TINY,
        quick: ROWS_QUICK,
        full: ROWS_FULL,
    }
}

const fn held(name: &'static str, title: &'static str, workload: WorkloadName) -> Entry {
    Entry {
        name,
        title,
        workload,
        // What an engine with one writer can hold, too.
        common: "--holder olap",
        tiny: HELD_TINY,
        quick: HELD_QUICK,
        full: HELD_FULL,
    }
}

const ENTRIES: [Entry; 15] = [
    rows(
        "read",
        "Point reads, a transaction each",
        WorkloadName::Kv,
        "--mix read",
    ),
    rows(
        "read-2",
        "Point reads, two threads",
        WorkloadName::Kv,
        "--mix read --threads 2",
    ),
    rows(
        "rmw",
        "A row is read and updated, a transaction each",
        WorkloadName::Kv,
        "--mix rmw",
    ),
    rows(
        "rmw-2",
        "A row is read and updated, two threads",
        WorkloadName::Kv,
        "--mix rmw --threads 2",
    ),
    rows(
        "sync",
        "Durable updates, one thread",
        WorkloadName::Kv,
        "--mix update --durability sync",
    ),
    rows(
        "sync-8",
        "Durable updates, eight threads",
        WorkloadName::Kv,
        "--mix update --durability sync --threads 8",
    ),
    rows(
        "scan",
        "Full scan, in one snapshot each time",
        WorkloadName::Scan,
        "",
    ),
    Entry {
        name: "scan-upd",
        title: "Full scan beside a thread that updates",
        workload: WorkloadName::Scan,
        common: "--update-threads 1",
        // It ends by time only.
        tiny: "--rows 200 --seconds 1",
        quick: ROWS_QUICK,
        full: ROWS_FULL,
    },
    Entry {
        name: "load",
        title: "Sorted load of rows of 100 bytes, one transaction",
        workload: WorkloadName::Load,
        common: "",
        tiny: "--rows 200",
        quick: "--rows 1000000",
        full: "--rows 5000000",
    },
    Entry {
        name: "tpcc",
        title: "TPC-C, one thread",
        workload: WorkloadName::Tpcc,
        common: "",
        tiny: "--tiny --warehouses 1 --operations 30",
        quick: "--warehouses 1 --seconds 5",
        full: "--warehouses 4 --seconds 30",
    },
    Entry {
        name: "tatp",
        title: "TATP, one thread",
        workload: WorkloadName::Tatp,
        common: "",
        tiny: "--subscribers 50 --operations 1000",
        quick: "--subscribers 20000 --seconds 3",
        full: "--subscribers 100000 --seconds 30",
    },
    Entry {
        name: "hekaton",
        title: "Ten rows are read and two written, two threads",
        workload: WorkloadName::Hekaton,
        common: "--threads 2",
        tiny: ROWS_TINY,
        quick: ROWS_QUICK,
        full: "--rows 10000000 --seconds 10",
    },
    Entry {
        name: "hekaton-hot",
        title: "The same on a thousand rows, half of the transactions only read",
        workload: WorkloadName::Hekaton,
        common: "--threads 2 --rows 1000 --read-only-share 0.5",
        tiny: "--operations 100",
        quick: "--seconds 3",
        full: "--seconds 10",
    },
    held(
        "queue",
        "A queue of a thousand rows beside an old snapshot",
        WorkloadName::Queue,
    ),
    held(
        "hot",
        "A hundred hot rows beside an old snapshot",
        WorkloadName::Hot,
    ),
];

impl Entry {
    fn arguments(&self, set: ReportSet) -> Vec<String> {
        let length = match set {
            ReportSet::Tiny => self.tiny,
            ReportSet::Quick => self.quick,
            ReportSet::Full => self.full,
        };
        let words = self.common.split_whitespace();
        words
            .chain(length.split_whitespace())
            .map(str::to_owned)
            .collect()
    }
}

/// An entry that ran.
struct Ran {
    entry: &'static Entry,
    compared: Compared,
}

impl Ran {
    fn standing(&self, metric: &str) -> Option<&Standing> {
        let standings = &self.compared.standings;
        standings.iter().find(|it| it.metric == metric)
    }

    /// The rate that the workload is about.
    fn rate(&self) -> Option<&Standing> {
        let of = |metric| self.standing(metric);
        of("succeeded_per_s").or_else(|| of("rows_per_s").or_else(|| of("tx_per_s")))
    }

    /// The worst p99 of its kinds of transactions.
    fn p99(&self) -> Option<&Standing> {
        let all = self.compared.standings.iter();
        all.filter(|it| is_p99(&it.metric))
            .min_by(|one, other| one.ratio.total_cmp(&other.ratio))
    }

    /// Its worst figure; the median latency is the rate once more.
    fn worst(&self) -> Option<&Standing> {
        let all = [
            self.rate(),
            self.standing("updates_per_s"),
            self.standing("tx_per_s_before_hold"),
            self.standing("held_ratio"),
            self.p99(),
        ];
        let all = all.into_iter().flatten();
        all.min_by(|one, other| one.ratio.total_cmp(&other.ratio))
    }

    /// By this the entries are ordered, those without a peer last.
    fn worst_ratio(&self) -> f64 {
        self.worst().map_or(f64::INFINITY, |it| it.ratio)
    }
}

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
    let names = ENTRIES.iter().map(|entry| entry.name);
    for name in names.chain(["overview"]) {
        check_file(&file(name, "json"))?;
        check_file(&file(name, "svg"))?;
    }
    check_file(&path)?;
    let (start, load_before) = (Instant::now(), load_average());
    let mut ran = Vec::new();
    for (at, entry) in ENTRIES.iter().enumerate() {
        let of = ENTRIES.len();
        tell(table, &format!("{} of {of}: {}", at + 1, entry.title))?;
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
    let took = format!("{}, after {minutes:.1} minutes", path.display());
    tell(table, &format!("\n{}\n{took}", summary(&ran)))?;
    Ok(ran.iter().all(|ran| ran.compared.is_consistent))
}

/// Where pictures and figures are, seen from the page.
const FOLDER: &str = "benchmarks/report";

/// A line for each entry.
fn summary(ran: &[Ran]) -> String {
    let mut out = "| what | Vellum, a second | best peer | ratio | its worst p99 of a kind | held ratio, and the best peer's |\n\
         | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for ran in ran {
        let (rate, ratio) = match ran.rate() {
            Some(rate) => (
                format!(
                    "{} | {} of {}",
                    count(rate.own),
                    count(rate.best),
                    rate.best_peer
                ),
                format!("**{:.2}**", rate.ratio),
            ),
            None => ("- | -".to_owned(), "-".to_owned()),
        };
        let p99 = ran.p99();
        let p99 = p99.map_or("-".to_owned(), |it| format!("{:.2}", it.ratio));
        let held = match ran.standing("held_ratio") {
            Some(it) => format!("{:.3}; {:.3} of {}", it.own, it.best, it.best_peer),
            None => "-".to_owned(),
        };
        let (title, name) = (ran.entry.title, ran.entry.name);
        let _ = writeln!(
            out,
            "| {title} (`{name}`) | {rate} | {ratio} | {p99} | {held} |"
        );
    }
    out
}

/// A rate for people.
fn count(rate: f64) -> String {
    match rate {
        1e6.. => format!("{:.2} M", rate / 1e6),
        1e4..1e6 => format!("{:.0} k", rate / 1e3),
        _ => format!("{rate:.0}"),
    }
}

fn page(report: &Report, ran: &[Ran], minutes: f64, load_before: [f64; 3]) -> String {
    let (machine, load_after) = (Machine::here(), load_average());
    let mut out = format!(
        "# Benchmarks\n\n\
         Written by `vellum-bench report --set {} --rounds {}` of commit {} in {minutes:.0} minutes, on {}, \
         load {:.1} before and {:.1} after. Engines run in turn, each in a fresh directory and, on the command line, in a process of its own, `async` where nothing else is said; figures are medians over the rounds. \
         Ratios are Vellum's to the best peer's, above 1 Vellum is better, also where less is better; **where Vellum is furthest behind, by whichever of its figures, stands first**. \
         Axes begin at zero; a bar that is very much longer than the others is cut, with a mark and its number. Latencies are of one kind of transactions each. Below each table is what each engine was set to: isolation, durability (what a kill of its process and what a power loss take) and memory are not the same everywhere.\n\n",
        report.set.name(),
        report.rounds(),
        env!("VELLUM_COMMIT"),
        machine.words(),
        load_before[0],
        load_after[0],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command, Workload};
    use crate::compare::tests::{Faked, broken};
    use crate::engines::EngineName;
    use clap::Parser;

    #[test]
    fn every_entry_of_every_set_is_a_command_line_with_a_name_of_its_own() {
        for (at, entry) in ENTRIES.iter().enumerate() {
            for set in [ReportSet::Tiny, ReportSet::Quick, ReportSet::Full] {
                let words = ["vellum-bench", entry.workload.name()].map(str::to_owned);
                let words = words.into_iter().chain(entry.arguments(set));
                let cli = Cli::try_parse_from(words).expect(entry.name);
                assert!(matches!(cli.command, Command::Run(_)));
                cli.command.check().expect(entry.name);
            }
            let others = &ENTRIES[at + 1..];
            assert!(others.iter().all(|other| other.name != entry.name));
        }
    }

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
        let mut entries = 0_u32;
        let judge = move |engine, _: &Workload| match engine {
            EngineName::Vellum => {
                entries += 1;
                Ok(f64::from(entries * 7 % 15 + 1))
            }
            EngineName::Lmdb if entries.is_multiple_of(3) => Err(broken()),
            EngineName::Lmdb => Ok(8.0),
            _ => Ok(4.0),
        };
        let mut faked = Faked(Box::new(judge));
        let ran = run(&report, &mut faked, &mut Vec::new(), &mut Vec::new());
        assert!(ran.unwrap_or_else(|failure| panic!("{failure}")));
        let page = std::fs::read_to_string(report.out.join("benchmarks.md")).expect("a page");
        let mut expected: Vec<(f64, &str)> = (1_u32..)
            .zip(&ENTRIES)
            .map(|(n, entry)| {
                let best = if n % 3 == 0 { 4.0 } else { 8.0 };
                (f64::from(n * 7 % 15 + 1) / best, entry.name)
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
        let listed: Vec<&str> = listed.take(ENTRIES.len()).collect();
        assert_eq!(listed, names);
        let pictures = page
            .lines()
            .filter_map(|line| line.strip_prefix("![")?.split(']').next());
        let pictures: Vec<&str> = pictures.filter(|name| *name != "Ratios").collect();
        assert_eq!(pictures, names);
        assert!(page.contains("its file is damaged"), "{page}");
    }

    #[test]
    fn an_entry_stands_where_its_worst_figure_puts_it() {
        let standing = |metric: &str, ratio| Standing {
            metric: metric.to_owned(),
            own: 1.0,
            best: 1.0,
            best_peer: "lmdb",
            ratio,
        };
        let ran = |standings| Ran {
            entry: &ENTRIES[0],
            compared: Compared {
                is_consistent: true,
                text: String::new(),
                json: String::new(),
                picture: String::new(),
                standings,
            },
        };
        let worst = |standings| ran(standings).worst_ratio();
        let others = [
            "updates_per_s",
            "tx_per_s_before_hold",
            "held_ratio",
            "p99_us",
            "p99_us payment",
        ];
        for other in others {
            let standings = vec![standing("tx_per_s", 2.0), standing(other, 0.5)];
            assert_eq!(worst(standings), 0.5, "{other}");
        }
        // Where transactions may find nothing, those that found something are the rate.
        let standings = vec![standing("tx_per_s", 0.5), standing("succeeded_per_s", 2.0)];
        assert_eq!(worst(standings), 2.0);
        assert_eq!(worst(Vec::new()), f64::INFINITY);
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
    fn rates_before_a_snapshot_are_those_of_a_warm_engine() {
        for entry in ENTRIES {
            for set in [ReportSet::Quick, ReportSet::Full] {
                let words = ["vellum-bench", entry.workload.name()].map(str::to_owned);
                let words = words.into_iter().chain(entry.arguments(set));
                let cli = Cli::try_parse_from(words).expect(entry.name);
                let Command::Run(workload) = cli.command else {
                    panic!("{} is a workload", entry.name)
                };
                let at = workload.hold().and_then(|hold| hold.hold_snapshot_at);
                assert!(
                    at.is_none_or(|at| crate::ratio::warm_up_s(at) >= 2),
                    "{}",
                    entry.name
                );
            }
        }
    }

    #[test]
    fn rates_are_told_in_three_digits() {
        assert_eq!(count(1_234_567.0), "1.23 M");
        assert_eq!(count(45_678.0), "46 k");
        assert_eq!(count(3_210.4), "3210");
    }
}
