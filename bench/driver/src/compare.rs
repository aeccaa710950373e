//! Engines beside each other: in turn, each in a fresh directory, round after round, so that other users of the machine
//! hit all of them alike. Figures are medians over the rounds; what is quoted is the ratio to the best peer.

use crate::charts;
use crate::cli::{Cli, Command, Compare, Workload, WorkloadName};
use crate::engines::{EngineName, Runner};
use crate::figure::{check_file, write_file};
use crate::machine::{Machine, load_average};
use crate::median::median;
use crate::plot::{Chart, picture};
use crate::report::{Summary, rounded};
use crate::{Failure, directory_has_entries};
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
struct Metric {
    /// Its key.
    name: &'static str,
    unit: &'static str,
    /// More is better.
    grows: bool,
    of: fn(&Summary) -> Option<f64>,
}

/// All that a workload may have; those count that a run has.
const METRICS: [Metric; 9] = [
    Metric {
        name: "tx_per_s",
        unit: "transactions a second",
        grows: true,
        // A load is one transaction, a scan is counted in rows.
        of: |summary| summary.rows_per_s.is_none().then_some(summary.tx_per_s),
    },
    Metric {
        name: "succeeded_per_s",
        unit: "transactions a second that found what they wanted",
        grows: true,
        of: |summary| summary.succeeded_per_s,
    },
    Metric {
        name: "rows_per_s",
        unit: "rows a second",
        grows: true,
        of: |summary| summary.rows_per_s,
    },
    Metric {
        name: "long_rows_per_s",
        unit: "rows a second of long readers beside",
        grows: true,
        of: |summary| summary.long_rows_per_s,
    },
    Metric {
        name: "updates_per_s",
        unit: "updates a second beside the scans",
        grows: true,
        of: |summary| summary.updates_per_s,
    },
    Metric {
        name: "tx_per_s_before_hold",
        unit: "transactions a second before the snapshot",
        grows: true,
        of: |summary| summary.tx_per_s_before_hold,
    },
    Metric {
        name: "held_ratio",
        unit: "rate beside a held snapshot over the rate before",
        grows: true,
        of: |summary| summary.held_ratio,
    },
    Metric {
        name: "p50_us",
        unit: "µs, median of the slowest kind",
        grows: false,
        of: |summary| summary.slowest_us().map(|it| it.0),
    },
    Metric {
        name: "p99_us",
        unit: "µs, 99 of 100 of the slowest kind",
        grows: false,
        of: |summary| summary.slowest_us().map(|it| it.1),
    },
];

/// One engine's figures of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(numbers: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(numbers.iter().copied())?,
            min: numbers.iter().copied().reduce(f64::min)?,
            max: numbers.iter().copied().reduce(f64::max)?,
        })
    }
}

/// An engine that did not run.
#[derive(Debug, Serialize)]
struct Skipped {
    engine: &'static str,
    why: String,
}

/// What is written as JSON.
#[derive(Serialize)]
struct Document<'d> {
    workload: &'static str,
    arguments: &'d [String],
    rounds: u32,
    commit: &'static str,
    machine: Machine,
    /// Before the first run and after the last.
    load_before: [f64; 3],
    load_after: [f64; 3],
    /// By engine and metric.
    results: &'d BTreeMap<&'static str, BTreeMap<&'static str, Spread>>,
    /// Vellum's median to that of the best peer; above 1 Vellum is better, also where less is better.
    ratio_to_best_peer: &'d BTreeMap<&'static str, f64>,
    skipped: &'d [Skipped],
    /// Every run of every round, whole: settings, isolation and durability of each engine among it.
    runs: &'d [(EngineName, Summary)],
}

/// What is compared, and where its files go.
pub(crate) struct Comparison<'c> {
    pub(crate) workload: WorkloadName,
    /// Flags of the workload, as it has them alone.
    pub(crate) arguments: &'c [String],
    pub(crate) engines: &'c [EngineName],
    pub(crate) rounds: u32,
    /// Each run makes its database there, and it is removed again.
    pub(crate) data: PathBuf,
}

/// How Vellum stands by one metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) metric: &'static str,
    /// Medians.
    pub(crate) own: f64,
    pub(crate) best: f64,
    pub(crate) best_peer: &'static str,
    /// As `ratio_to_best_peer`.
    pub(crate) ratio: f64,
}

/// What a comparison found.
pub(crate) struct Compared {
    /// All data were consistent, the peers' too.
    pub(crate) is_consistent: bool,
    /// Table, who is left out, settings: Markdown.
    pub(crate) text: String,
    /// Everything, as JSON.
    pub(crate) json: String,
    /// SVG.
    pub(crate) picture: String,
    /// By metric, where Vellum and a peer have it.
    pub(crate) standings: Vec<Standing>,
}

/// Compares and tells. Returns whether all data were consistent.
pub(crate) fn run(
    flags: &Compare,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    let comparison = Comparison {
        workload: flags.workload,
        arguments: &flags.arguments,
        engines: &flags.engines,
        rounds: flags.rounds,
        data: flags.out.join("data"),
    };
    comparison.parse()?.check().map_err(Failure::Usage)?;
    let file = |ending: &str| {
        let name = flags.workload.name();
        flags.out.join(format!("compare-{name}.{ending}"))
    };
    for ending in ["json", "svg", "md"] {
        check_file(&file(ending))?;
    }
    std::fs::create_dir_all(&flags.out).map_err(failed("create", &flags.out))?;
    let compared = compare(&comparison, runner, lines, table)?;
    write_file(&file("json"), &compared.json)?;
    write_file(&file("svg"), &compared.picture)?;
    write_file(&file("md"), &compared.text)?;
    tell(table, &format!("\n{}", compared.text))?;
    Ok(compared.is_consistent)
}

/// Runs every engine that can, round after round.
///
/// A peer that fails, by a panic too, is left out from there on, with what it said; Vellum's failure is the comparison's.
///
/// # Errors
/// As a run of the workload; if no engine is left.
pub(crate) fn compare(
    comparison: &Comparison<'_>,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<Compared, Failure> {
    let data = &comparison.data;
    let (workload, words) = (comparison.parse()?, comparison.words());
    workload.check().map_err(Failure::Usage)?;
    if directory_has_entries(data) {
        return Err(Failure::Usage(format!(
            "{} is not empty, and each run wants to begin there",
            data.display()
        )));
    }
    let (mut skipped, mut engines) = (Vec::new(), Vec::new());
    for &engine in comparison.engines {
        match runner.check(engine, &workload) {
            Ok(()) => engines.push(engine),
            Err(why) => leave_out(engine, why, &mut skipped, table)?,
        }
    }
    if engines.is_empty() {
        return Err(Failure::Usage("no engine is left to run".to_owned()));
    }
    let load_before = load_average();
    let mut runs: Vec<(EngineName, Summary)> = Vec::new();
    for round in 1..=comparison.rounds {
        for engine in engines.clone() {
            let (name, rounds) = (engine.name(), comparison.rounds);
            tell(table, &format!("round {round} of {rounds}: {name}"))?;
            let measured = AssertUnwindSafe(|| runner.measure(engine, &workload, &words, lines));
            // Unwind safety: what a run that panicked has left is not looked at again, but for its directory.
            let result = catch_unwind(measured)
                .unwrap_or_else(|panic| Err(Failure::panicked(panic.as_ref())));
            // Whatever a run that failed has left goes, too: the next one begins with nothing.
            if result.is_ok() || data.exists() {
                std::fs::remove_dir_all(data).map_err(failed("remove", data))?;
            }
            match result {
                Ok(summary) if summary.interrupted => return Err(Failure::Interrupted),
                Ok(summary) => runs.push((engine, summary)),
                Err(
                    failure @ (Failure::Engine { .. }
                    | Failure::Fruitless { .. }
                    | Failure::Panicked(_)
                    | Failure::Process(_)),
                ) if engine != EngineName::Vellum => {
                    engines.retain(|other| *other != engine);
                    runs.retain(|run| run.0 != engine);
                    leave_out(engine, failure.to_string(), &mut skipped, table)?;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    if engines.is_empty() {
        let told = skipped
            .iter()
            .map(|it| format!("{}: {}", it.engine, it.why));
        return Err(Failure::NobodyLeft(told.collect::<Vec<_>>().join("; ")));
    }
    let results = results(&engines, &runs);
    let standings = standings(&results);
    let ratios = standings.iter().map(|it| (it.metric, it.ratio)).collect();
    let name = workload.name();
    let document = Document {
        workload: name,
        arguments: comparison.arguments,
        rounds: comparison.rounds,
        commit: env!("VELLUM_COMMIT"),
        machine: Machine::here(),
        load_before,
        load_after: load_average(),
        results: &results,
        ratio_to_best_peer: &ratios,
        skipped: &skipped,
        runs: &runs,
    };
    let mut json = serde_json::to_string_pretty(&document)
        .map_err(|source| failed("write", Path::new("the document"))(source.into()))?;
    json.push('\n');
    let mut charts = pictures(name, &engines, &results, &ratios);
    charts.extend(over_time(&workload, &engines, &runs));
    for chart in &mut charts {
        name_who_is_missing(chart, &skipped);
    }
    Ok(Compared {
        json,
        picture: picture(&charts),
        is_consistent: runs.iter().all(|(_, summary)| summary.is_consistent()),
        text: markdown(&document, &engines),
        standings,
    })
}

/// For `map_err`: a file or directory could not be used.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.to_owned();
    move |source| Failure::File {
        action,
        path,
        source,
    }
}

/// Notes and tells that an engine does not run.
fn leave_out(
    engine: EngineName,
    why: String,
    skipped: &mut Vec<Skipped>,
    table: &mut dyn Write,
) -> Result<(), Failure> {
    let engine = engine.name();
    tell(table, &format!("{engine} is left out: {why}"))?;
    skipped.push(Skipped { engine, why });
    Ok(())
}

pub(crate) fn tell(table: &mut dyn Write, text: &str) -> Result<(), Failure> {
    writeln!(table, "{text}").map_err(failed("write", Path::new("the table")))
}

impl Comparison<'_> {
    /// The workload with its flags, on its database, as on the command line.
    fn words(&self) -> Vec<String> {
        let mut words = vec![self.workload.name().to_owned()];
        words.extend_from_slice(self.arguments);
        words.extend(["--data".to_owned(), self.data.display().to_string()]);
        words
    }

    fn parse(&self) -> Result<Workload, Failure> {
        let words = std::iter::once("vellum-bench".to_owned()).chain(self.words());
        let cli = Cli::try_parse_from(words).map_err(|error| Failure::Usage(error.to_string()))?;
        match cli.command {
            Command::Run(workload) => Ok(workload),
            Command::Figure(_) | Command::Compare(_) | Command::Report(_) => {
                Err(Failure::Usage("only workloads are compared".to_owned()))
            }
        }
    }
}

fn results(
    engines: &[EngineName],
    runs: &[(EngineName, Summary)],
) -> BTreeMap<&'static str, BTreeMap<&'static str, Spread>> {
    let of = |engine: EngineName| {
        let spread = |metric: &Metric| {
            let own = runs.iter().filter(|run| run.0 == engine);
            let numbers: Vec<f64> = own.filter_map(|run| (metric.of)(&run.1)).collect();
            Some((metric.name, Spread::of(&numbers)?))
        };
        (engine.name(), METRICS.iter().filter_map(spread).collect())
    };
    engines.iter().map(|engine| of(*engine)).collect()
}

/// By metric, where there are Vellum and a peer.
fn standings(results: &BTreeMap<&'static str, BTreeMap<&'static str, Spread>>) -> Vec<Standing> {
    let vellum = EngineName::Vellum.name();
    let standing = |metric: &Metric| {
        let median = |name: &str| Some(results.get(name)?.get(metric.name)?.median);
        let peers = results.keys().filter(|name| **name != vellum);
        let peers = peers.filter_map(|name| Some((*name, median(name)?)));
        let (best_peer, best) = match metric.grows {
            true => peers.max_by(|one, other| one.1.total_cmp(&other.1))?,
            false => peers.min_by(|one, other| one.1.total_cmp(&other.1))?,
        };
        let own = median(vellum)?;
        let ratio = if metric.grows { own / best } else { best / own };
        ratio.is_finite().then_some(Standing {
            metric: metric.name,
            own,
            best,
            best_peer,
            ratio: rounded(ratio),
        })
    };
    METRICS.iter().filter_map(standing).collect()
}

/// A chart a metric, with all engines: where Vellum is furthest behind first.
fn pictures(
    workload: &str,
    engines: &[EngineName],
    results: &BTreeMap<&'static str, BTreeMap<&'static str, Spread>>,
    ratios: &BTreeMap<&'static str, f64>,
) -> Vec<Chart> {
    let mut metrics: Vec<&Metric> = METRICS
        .iter()
        .filter(|metric| results.values().any(|own| own.contains_key(metric.name)))
        .collect();
    let ratio = |metric: &Metric| ratios.get(metric.name).copied().unwrap_or(f64::MAX);
    metrics.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let chart = |metric: &Metric| {
        let height = |engine: &EngineName| {
            let own = results.get(engine.name());
            match own.and_then(|own| own.get(metric.name)) {
                Some(own) => (engine.name().to_owned(), own.median),
                // Who is not there would not be missed.
                None => (format!("{} (none)", engine.name()), 0.0),
            }
        };
        let better = if metric.grows { "more" } else { "less" };
        let title = format!("{workload}: {} ({better} is better)", metric.name);
        charts::bars(title, metric.unit, engines.iter().map(height))
    };
    metrics.into_iter().map(chart).collect()
}

/// Says below a chart who is not in it.
fn name_who_is_missing(chart: &mut Chart, skipped: &[Skipped]) {
    if skipped.is_empty() {
        return;
    }
    let names: Vec<&str> = skipped.iter().map(|it| it.engine).collect();
    let missing = format!("left out: {}", names.join(", "));
    chart.x = match chart.x.as_str() {
        "" => missing,
        axis => format!("{axis} ({missing})"),
    };
}

/// Where a snapshot is held, how each engine's rate takes it: the last round.
fn over_time(
    workload: &Workload,
    engines: &[EngineName],
    runs: &[(EngineName, Summary)],
) -> Option<Chart> {
    let hold = workload.hold()?;
    let held_at = hold.hold_snapshot_at?;
    let line = |engine: &EngineName| {
        let last = runs.iter().rev().find(|run| run.0 == *engine)?;
        let rates = charts::by_second(last.1.samples(), |sample| Some(sample.tx as f64));
        Some((engine.name().to_owned(), rates))
    };
    Some(charts::rates(
        &format!("{} beside an old snapshot", workload.name()),
        engines.iter().filter_map(line).collect(),
        charts::marks(Some(held_at), hold.release_snapshot_at),
    ))
}

fn markdown(document: &Document<'_>, engines: &[EngineName]) -> String {
    let mut out = format!("`{}`", document.workload);
    for word in document.arguments {
        let _ = write!(out, " `{word}`");
    }
    let (machine, rounds) = (&document.machine, document.rounds);
    let _ = writeln!(
        out,
        ", medians of {rounds} rounds (smallest to largest); {}; load {:.1} before, {:.1} after; commit {}\n",
        machine.words(),
        document.load_before[0],
        document.load_after[0],
        document.commit
    );
    let metrics = METRICS.iter().filter(|metric| {
        document
            .results
            .values()
            .any(|own| own.contains_key(metric.name))
    });
    let metrics: Vec<&Metric> = metrics.collect();
    out.push_str("| engine |");
    for metric in &metrics {
        let _ = write!(out, " {} |", metric.name);
    }
    out.push_str("\n| --- |");
    out.push_str(&" --- |".repeat(metrics.len()));
    out.push('\n');
    for engine in engines {
        let _ = write!(out, "| {} |", engine.name());
        for metric in &metrics {
            let own = document.results.get(engine.name());
            let _ = match own.and_then(|own| own.get(metric.name)) {
                Some(Spread { median, min, max }) => {
                    write!(out, " {median:.1} ({min:.1} to {max:.1}) |")
                }
                None => write!(out, " - |"),
            };
        }
        out.push('\n');
    }
    out.push_str("| **Vellum to the best peer** |");
    for metric in &metrics {
        let _ = match document.ratio_to_best_peer.get(metric.name) {
            Some(ratio) => write!(out, " **{ratio:.2}** |"),
            None => write!(out, " - |"),
        };
    }
    out.push('\n');
    if document.results.len() == 1 {
        let alone = engines.first().map_or("", |engine| engine.name());
        let _ = writeln!(
            out,
            "\nOnly {alone} ran: there is nobody to compare it with."
        );
    }
    for Skipped { engine, why } in document.skipped {
        let _ = writeln!(out, "\nLeft out: {engine}, {why}.");
    }
    let mut told = Vec::new();
    for (engine, summary) in document.runs {
        if !told.contains(engine) {
            told.push(*engine);
            let _ = writeln!(out, "\n{}: {}.", engine.name(), summary.engine_settings());
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use vellum_workload::engine::{Description, EngineError};

    type Judge = dyn FnMut(EngineName, &Workload) -> Result<f64, Failure>;

    /// Measures nothing: a rate is what the closure says.
    pub(crate) struct Faked(pub(crate) Box<Judge>);

    impl Runner for Faked {
        fn check(&self, engine: EngineName, _: &Workload) -> Result<(), String> {
            match engine {
                EngineName::Rocksdb => Err("rocksdb is not here".to_owned()),
                _ => Ok(()),
            }
        }

        fn measure(
            &mut self,
            engine: EngineName,
            workload: &Workload,
            _: &[String],
            _: &mut dyn Write,
        ) -> Result<Summary, Failure> {
            let settings = workload.settings();
            std::fs::create_dir_all(&settings.data).expect("a directory");
            let rate = (self.0)(engine, workload)?;
            let mut summary = Summary::new(workload, &settings, &Description::default());
            summary.tx_per_s = rate;
            Ok(summary)
        }
    }

    pub(crate) fn broken() -> Failure {
        Failure::engine("run rmw")(EngineError::failed("its file is damaged"))
    }

    fn comparison(folder: &Path) -> Comparison<'static> {
        const ENGINES: [EngineName; 4] = [
            EngineName::Vellum,
            EngineName::Lmdb,
            EngineName::Redb,
            EngineName::Rocksdb,
        ];
        Comparison {
            workload: WorkloadName::Kv,
            arguments: &[],
            engines: &ENGINES,
            rounds: 3,
            data: folder.join("data"),
        }
    }

    #[test]
    fn a_peer_that_fails_in_the_middle_is_left_out_with_its_earlier_rounds() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        let mut rounds = [0; 2];
        let judge = move |engine, _: &Workload| match engine {
            EngineName::Lmdb => {
                rounds[0] += 1;
                assert!(rounds[0] < 3, "who failed is not asked again");
                if rounds[0] == 2 {
                    Err(broken())
                } else {
                    Ok(1e9)
                }
            }
            EngineName::Redb => {
                rounds[1] += 1;
                Ok(f64::from(rounds[1]) * 100.0)
            }
            _ => Ok(400.0),
        };
        let (mut lines, mut table) = (Vec::new(), Vec::new());
        let mut faked = Faked(Box::new(judge));
        let compared = compare(&comparison, &mut faked, &mut lines, &mut table);
        let compared = compared.unwrap_or_else(|failure| panic!("{failure}"));
        // The best peer is among those that are left, by its median.
        let standing = &compared.standings[0];
        assert_eq!((standing.best_peer, standing.best), ("redb", 200.0));
        assert_eq!(standing.ratio, 2.0);
        let told = String::from_utf8(table).expect("text");
        for text in [&told, &compared.text] {
            for who in ["lmdb", "its file is damaged", "rocksdb is not here"] {
                assert!(text.contains(who), "{who}: {text}");
            }
        }
        let document: serde_json::Value = serde_json::from_str(&compared.json).expect("JSON");
        let results = document["results"].as_object().expect("results");
        assert_eq!(results.keys().collect::<Vec<_>>(), ["redb", "vellum"]);
        assert_eq!(document["runs"].as_array().map(Vec::len), Some(6));
        assert_eq!(document["skipped"].as_array().map(Vec::len), Some(2));
        let picture = compared.picture;
        assert!(picture.contains(">redb<") && picture.contains(">vellum<"));
        assert!(picture.contains("left out: rocksdb, lmdb"), "{picture}");
        assert!(!comparison.data.exists(), "what it left is removed");
    }

    #[test]
    fn vellums_failure_ends_the_comparison_and_so_does_a_signal() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        for failing in [EngineName::Vellum, EngineName::Redb] {
            let judge = move |engine, _: &Workload| match engine {
                EngineName::Vellum if failing == engine => Err(broken()),
                EngineName::Redb if failing == engine => Err(Failure::Interrupted),
                _ => Ok(1.0),
            };
            let mut faked = Faked(Box::new(judge));
            let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
            assert!(compared.is_err(), "{failing:?}");
            assert!(!comparison.data.exists());
        }
    }

    #[test]
    fn a_panic_of_a_peer_is_its_failure_and_vellum_alone_is_said_to_be_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let comparison = comparison(folder.path());
        let judge = |engine, _: &Workload| match engine {
            EngineName::Vellum => Ok(1.0),
            EngineName::Lmdb => panic!("its map is gone"),
            _ => Err(Failure::Panicked("a thread of it".to_owned())),
        };
        let mut faked = Faked(Box::new(judge));
        let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
        let compared = compared.unwrap_or_else(|failure| panic!("{failure}"));
        for told in ["its map is gone", "a thread of it", "Only vellum ran"] {
            assert!(compared.text.contains(told), "{told}: {}", compared.text);
        }
        assert!(compared.standings.is_empty());
        assert!(!comparison.data.exists());
    }

    #[test]
    fn a_comparison_in_which_all_fail_fails() {
        let folder = tempfile::tempdir().expect("a directory");
        let mut comparison = comparison(folder.path());
        comparison.engines = &[EngineName::Lmdb, EngineName::Redb];
        let mut faked = Faked(Box::new(|_, _: &Workload| Err(broken())));
        let compared = compare(&comparison, &mut faked, &mut Vec::new(), &mut Vec::new());
        let Err(failure) = compared else {
            panic!("nobody is left")
        };
        assert_eq!(failure.exit_code(), 1);
        let told = failure.to_string();
        for who in ["lmdb: ", "redb: ", "its file is damaged"] {
            assert!(told.contains(who), "{told}");
        }
    }
}
