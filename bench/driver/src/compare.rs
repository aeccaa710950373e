//! Engines beside each other: in turn, each in a fresh directory, round after round, so that other users of the machine
//! hit all of them alike. Figures are medians over the rounds; what is quoted is the ratio to the best peer.

use crate::charts;
use crate::cli::{Cli, Command, Compare, Settings, Workload};
use crate::engines::{EngineName, measure_on};
use crate::figure::{median, write_file};
use crate::machine::{Machine, load_average};
use crate::plot::{Chart, picture};
use crate::report::{Summary, rounded};
use crate::{Failure, directory_has_entries};
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use vellum_workload::engine::{Engine, Result as EngineResult};

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
const METRICS: [Metric; 6] = [
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

/// Compares. Returns whether all data were consistent.
pub(crate) fn run<E: Engine>(
    compare: &Compare,
    mut open: impl FnMut(&Settings) -> EngineResult<E>,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    let data = compare.out.join("data");
    let workload = parse(compare, &data)?;
    workload.check().map_err(Failure::Usage)?;
    if directory_has_entries(&data) {
        return Err(Failure::Usage(format!(
            "{} is not empty, and each run wants to begin there",
            data.display()
        )));
    }
    let (mut skipped, mut engines) = (Vec::new(), Vec::new());
    for &engine in &compare.engines {
        match engine.check(&workload) {
            Ok(()) => engines.push(engine),
            Err(why) => {
                tell(table, &format!("{} is left out: {why}", engine.name()))?;
                let engine = engine.name();
                skipped.push(Skipped { engine, why });
            }
        }
    }
    if engines.is_empty() {
        return Err(Failure::Usage("no engine is left to run".to_owned()));
    }
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Failure::File {
            action,
            path,
            source,
        }
    };
    std::fs::create_dir_all(&compare.out).map_err(failed("create", &compare.out))?;
    let load_before = load_average();
    let mut runs: Vec<(EngineName, Summary)> = Vec::new();
    for round in 1..=compare.rounds {
        for &engine in &engines {
            let (name, rounds) = (engine.name(), compare.rounds);
            tell(table, &format!("round {round} of {rounds}: {name}"))?;
            let summary = measure_on(engine, &workload, &mut open, lines)?;
            if summary.interrupted {
                return Err(Failure::Interrupted);
            }
            std::fs::remove_dir_all(&data).map_err(failed("remove", &data))?;
            runs.push((engine, summary));
        }
    }
    let results = results(&engines, &runs);
    let ratios = ratios(&results);
    let name = workload.name();
    let document = Document {
        workload: name,
        arguments: &compare.arguments,
        rounds: compare.rounds,
        commit: env!("VELLUM_COMMIT"),
        machine: Machine::here(),
        load_before,
        load_after: load_average(),
        results: &results,
        ratio_to_best_peer: &ratios,
        skipped: &skipped,
        runs: &runs,
    };
    let mut json = serde_json::to_string_pretty(&document).map_err(|source| Failure::File {
        action: "write",
        path: compare.out.clone(),
        source: source.into(),
    })?;
    json.push('\n');
    let text = markdown(&document, &engines);
    let mut charts = pictures(name, &engines, &results, &ratios);
    charts.extend(over_time(&workload, &engines, &runs));
    let svg = picture(&charts);
    for (ending, text) in [("json", &json), ("svg", &svg), ("md", &text)] {
        write_file(&compare.out.join(format!("compare-{name}.{ending}")), text)?;
    }
    tell(table, &format!("\n{text}"))?;
    Ok(runs.iter().all(|(_, summary)| summary.is_consistent()))
}

fn tell(table: &mut dyn Write, text: &str) -> Result<(), Failure> {
    writeln!(table, "{text}").map_err(|source| Failure::File {
        action: "write",
        path: "the table".into(),
        source,
    })
}

/// The workload with its flags, on a database below the directory of the results.
fn parse(compare: &Compare, data: &Path) -> Result<Workload, Failure> {
    let words = ["vellum-bench", compare.workload.name()].map(str::to_owned);
    let data = ["--data".to_owned(), data.display().to_string()];
    let words = words
        .into_iter()
        .chain(compare.arguments.iter().cloned())
        .chain(data);
    let cli = Cli::try_parse_from(words).map_err(|error| Failure::Usage(error.to_string()))?;
    match cli.command {
        Command::Run(workload) => Ok(workload),
        Command::Figure(_) | Command::Compare(_) => {
            Err(Failure::Usage("only workloads are compared".to_owned()))
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

/// Where there are Vellum and a peer.
fn ratios(
    results: &BTreeMap<&'static str, BTreeMap<&'static str, Spread>>,
) -> BTreeMap<&'static str, f64> {
    let vellum = EngineName::Vellum.name();
    let ratio = |metric: &Metric| {
        let median = |name: &str| Some(results.get(name)?.get(metric.name)?.median);
        let peers = results.keys().filter(|name| **name != vellum);
        let peers = peers.filter_map(|name| median(name));
        let best = peers.reduce(if metric.grows { f64::max } else { f64::min })?;
        let own = median(vellum)?;
        let ratio = if metric.grows { own / best } else { best / own };
        ratio.is_finite().then(|| (metric.name, rounded(ratio)))
    };
    METRICS.iter().filter_map(ratio).collect()
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
            let own = results.get(engine.name())?.get(metric.name)?;
            Some((engine.name().to_owned(), own.median))
        };
        let better = if metric.grows { "more" } else { "less" };
        let title = format!("{workload}: {} ({better} is better)", metric.name);
        charts::bars(title, metric.unit, engines.iter().filter_map(height))
    };
    metrics.into_iter().map(chart).collect()
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
        ", medians of {rounds} rounds (smallest to largest); {} cores, {} MiB, {}; load {:.1} before, {:.1} after; commit {}\n",
        machine.cores,
        machine.memory_mib,
        machine.kernel,
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
