//! A comparison for people: pictures and Markdown.

use super::metrics::{BEFORE_HOLD, Counts, Metric, Results, Spread, TX_PER_S};
use super::{Document, Skipped};
use crate::charts;
use crate::cli::Workload;
use crate::engines::EngineName;
use crate::plot::{Bar, Chart};
use crate::report::{P99_TIMED_MIN, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use vellum_workload::engine::TERMS;

/// A chart a metric that is drawn, with all engines: where Vellum is furthest behind first.
pub(super) fn pictures(
    workload: &str,
    metrics: &[Metric],
    engines: &[EngineName],
    results: &Results,
    ratios: &BTreeMap<String, f64>,
) -> Vec<Chart> {
    let mut drawn: Vec<&Metric> = metrics.iter().filter(|metric| metric.drawn).collect();
    let ratio = |metric: &Metric| ratios.get(&metric.name).copied().unwrap_or(f64::MAX);
    drawn.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let chart = |metric: &Metric| {
        let bar = |engine: &EngineName| {
            let own = results.get(engine.name());
            match own.and_then(|own| own.get(&metric.name)) {
                Some(own) => {
                    let bar = Bar::with_spread(own.median, own.min, own.max);
                    (engine.name().to_owned(), bar)
                }
                // Who is not there would not be missed.
                None => (format!("{} (none)", engine.name()), Bar::default()),
            }
        };
        let better = if metric.grows { "more" } else { "less" };
        let title = format!("{workload}: {} ({better} is better)", metric.name);
        charts::bars(title, &metric.unit, engines.iter().map(bar))
    };
    drawn.into_iter().map(chart).collect()
}

/// Says below a chart who is not in it.
pub(super) fn name_who_is_missing(chart: &mut Chart, skipped: &[Skipped]) {
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

/// Where a snapshot is held, how each engine's rate takes it: each second's median over the rounds.
pub(super) fn over_time(
    workload: &Workload,
    engines: &[EngineName],
    runs: &[(EngineName, Summary)],
) -> Option<Chart> {
    let hold = workload.hold()?;
    let held_at = hold.hold_snapshot_at?;
    let line = |engine: &EngineName| {
        let own = runs.iter().filter(|run| run.0 == *engine);
        let rates = own.map(|(_, run)| charts::by_second(run.samples(), |it| Some(it.tx as f64)));
        (engine.name().to_owned(), charts::median_line(rates))
    };
    Some(charts::rates(
        &format!("{} beside an old snapshot", workload.name()),
        engines.iter().map(line).collect(),
        charts::marks(Some(held_at), hold.release_snapshot_at),
    ))
}

/// Figures, who is left out, and what everybody was opened with.
pub(super) fn markdown(
    document: &Document<'_>,
    metrics: &[Metric],
    engines: &[EngineName],
) -> String {
    let mut out = format!("`{}`", document.workload);
    for word in document.arguments {
        let _ = write!(out, " `{word}`");
    }
    let machine = &document.machine;
    let spread = match document.rounds {
        1 => "one run, no spread".to_owned(),
        rounds => format!("medians of {rounds} rounds (smallest to largest)"),
    };
    let _ = writeln!(
        out,
        ", {spread}; {}; load {:.1} before, {:.1} after; commit {}\n",
        machine.words(),
        document.load_before[0],
        document.load_after[0],
        document.commit
    );
    let (rates, latencies): (Vec<&Metric>, Vec<&Metric>) =
        metrics.iter().partition(|metric| metric.grows);
    table(&mut out, document, &rates, engines);
    let held = rates.iter().any(|metric| metric.name == BEFORE_HOLD);
    if held {
        let _ = writeln!(
            out,
            "\n`{TX_PER_S}` is a mean over the whole run, with the snapshot and without it, and is not counted."
        );
    }
    if !latencies.is_empty() {
        let _ = writeln!(
            out,
            "\nLatencies in µs, of each kind of transactions by itself, a p99 of {P99_TIMED_MIN} that were timed or more{}:\n",
            if held {
                "; of the whole run, so that who is slow beside the snapshot has mostly those before it"
            } else {
                ""
            }
        );
        table(&mut out, document, &latencies, engines);
    }
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
    terms(&mut out, document);
    let clients = document.runs.iter().filter(|run| run.1.is_of_a_client());
    let clients: BTreeSet<&str> = clients.map(|run| run.0.name()).collect();
    for client in clients {
        let _ = writeln!(
            out,
            "\nProcessor seconds and resident memory of {client} in the document are its client's only."
        );
    }
    out
}

/// A line an engine, a column a metric, and how Vellum stands.
fn table(out: &mut String, document: &Document<'_>, metrics: &[&Metric], engines: &[EngineName]) {
    out.push_str("| engine |");
    for metric in metrics {
        let _ = write!(out, " {} |", metric.name);
    }
    out.push_str("\n| --- |");
    out.push_str(&" --- |".repeat(metrics.len()));
    out.push('\n');
    for engine in engines {
        let _ = write!(out, "| {} |", engine.name());
        for metric in metrics {
            let own = document.results.get(engine.name());
            let digits = match Counts::of(&metric.name) {
                Counts::Ratio => 3,
                _ => 1,
            };
            let _ = match own.and_then(|own| own.get(&metric.name)) {
                Some(Spread { median, .. }) if document.rounds == 1 => {
                    write!(out, " {median:.digits$} |")
                }
                Some(Spread { median, min, max }) => {
                    write!(
                        out,
                        " {median:.digits$} ({min:.digits$} to {max:.digits$}) |"
                    )
                }
                None => write!(out, " - |"),
            };
        }
        out.push('\n');
    }
    out.push_str("| **Vellum to the best peer** |");
    for metric in metrics {
        let _ = match document.ratio_to_best_peer.get(&metric.name) {
            Some(ratio) => write!(out, " **{ratio:.2}** |"),
            None => write!(out, " - |"),
        };
    }
    out.push('\n');
}

/// What everybody was opened with, in columns what all tell.
fn terms(out: &mut String, document: &Document<'_>) {
    out.push_str("\n| engine |");
    for name in TERMS {
        let _ = write!(out, " {} |", name.replace('_', " "));
    }
    let _ = writeln!(out, " and |\n| --- |{}", " --- |".repeat(TERMS.len() + 1));
    let mut told = Vec::new();
    for (engine, summary) in document.runs {
        if told.contains(engine) {
            continue;
        }
        told.push(*engine);
        let _ = write!(out, "| {} {} |", engine.name(), summary.engine_version());
        for name in TERMS {
            let term = summary.told().find(|it| it.0 == name);
            let _ = write!(out, " {} |", term.map_or("-", |it| it.1).replace('|', "/"));
        }
        let more = summary.told().filter(|it| !TERMS.contains(&it.0));
        let more: Vec<String> = more.map(|(name, told)| format!("{name}: {told}")).collect();
        let _ = writeln!(out, " {} |", more.join("; ").replace('|', "/"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::measure::Sample;
    use crate::plot::Data;
    use clap::Parser;
    use vellum_workload::engine::Description;

    #[test]
    fn lines_over_time_are_the_medians_of_all_rounds() {
        let flags = "vellum-bench queue --hold-snapshot-at 1 --release-snapshot-at 2";
        let cli = Cli::try_parse_from(flags.split_whitespace()).expect("flags");
        let Command::Run(workload) = cli.command else {
            panic!("a workload")
        };
        let engines = [EngineName::Vellum, EngineName::Redb];
        let run = |(engine, rates): (EngineName, [u64; 2])| {
            let summary = Summary::new(&workload, &workload.settings(), &Description::default());
            let sample = |(index, tx)| Sample {
                s: index as u64 + 1,
                tx,
                ..Sample::default()
            };
            let samples = rates.into_iter().enumerate().map(sample).collect();
            (engine, summary.with_samples(samples))
        };
        let rounds = [[10, 40], [20, 20], [90, 30]].map(|rates| (engines[0], rates));
        let runs: Vec<_> = [(engines[1], [7, 8])]
            .into_iter()
            .chain(rounds)
            .map(run)
            .collect();
        let chart = over_time(&workload, &engines, &runs).expect("a snapshot is held");
        let Data::Lines(lines) = chart.data else {
            panic!("lines")
        };
        let line =
            |name: &str, rates: [f64; 2]| (name.to_owned(), vec![(1.0, rates[0]), (2.0, rates[1])]);
        assert_eq!(
            lines,
            [line("vellum", [20.0, 30.0]), line("redb", [7.0, 8.0])]
        );
        assert_eq!(chart.marks.len(), 2);
    }
}
