//! Figures of the paper, each from one command: the variants run in turn on databases of their own, and what they did
//! is written as JSON and as a picture.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §4.
//! | figure | what is run |
//! | --- | --- |
//! | 9 (and 1) | TPC-C, one thread, an idle session holds a snapshot from a sixth of the time on |
//! | 10 | TPC-C; warehouse and district are scanned in a held snapshot of growing age |
//! | 11 | TPC-C by threads, with and without affinity, and beside a held snapshot |
//! | oom | TPC-C in a pool that holds a part of it, beside a held snapshot |
//! | 12 | rows are inserted in one transaction, in pools of several sizes; lookups by threads, in a pool that holds a part |
//! | contention | skewed updates of several keys a transaction, as they come and in an order |
//!
//! Differences: threads and pool are this machine's; the protocol of precise collection over delta indexes
//! (OSIC+PGC) is not a variant, and neither is one without versions; the snapshot's holder declares nothing; what puts transactions into an
//! order is a layer of the bench over the engine, with locks of stripes of keys and not of leaves, and who loses a conflict
//! pauses before he tries again.
//!
//! A round runs each variant once (A B C, A B C), so that other users of the machine hit all of them alike. Figures are
//! medians over the rounds.

mod pictures;
mod runs;

use crate::cli::Figure;
use crate::directory::Series;
use crate::engines::EngineName;
use crate::median::median;
use crate::output::{check_file, write_file};
use crate::plot::picture;
use crate::report::{Summary, rounded};
use crate::{Failure, measure_workload};
use runs::{Part, Run, runs};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use vellum_workload::engine::{Engine, Result as EngineResult};

/// What is written as JSON.
#[derive(Serialize)]
struct Document<'d> {
    figure: &'static str,
    rounds: u32,
    /// What the picture shows: medians over the rounds.
    rows: &'d [Row],
    /// Every run of every round, whole.
    runs: &'d [(String, Summary)],
}

/// One variant's figures.
#[derive(Serialize)]
struct Row {
    label: String,
    group: String,
    /// Of a figure that has several.
    part: Part,
    /// Where it stands on a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<f64>,
    tx_per_s: f64,
    /// Of loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_per_s: Option<f64>,
    /// Of all attempts, those that lost a conflict.
    abort_share: f64,
    /// Processors in use, the kernel's part included.
    processors: f64,
    /// Random page reads that the device makes a second with as many threads, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_reads_per_s: Option<f64>,
    pages_read_per_tx: f64,
    /// Where the build counts them.
    index_operations_per_tx: Option<f64>,
    held_ratio: Option<f64>,
    /// The scan at the oldest age that was asked for over one in a fresh snapshot; none where a run ended before it.
    scan_ratio: Option<f64>,
    disk_growth_bytes: Option<f64>,
}

/// Runs a figure. Returns whether all data were consistent.
pub(crate) fn run<E: Engine>(
    figure: &Figure,
    mut open: impl FnMut(&crate::cli::Settings) -> EngineResult<E>,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Failure::File {
            action,
            path,
            source,
        }
    };
    let runs = runs(figure);
    let data = figure.out.join("data");
    // All of them, before the first takes its time.
    for run in &runs {
        run.parse(&data)?.check().map_err(Failure::Usage)?;
    }
    let series = Series::begin(&data)?;
    std::fs::create_dir_all(&figure.out).map_err(failed("create", &figure.out))?;
    let name = figure.which.name();
    let file = |ending| figure.out.join(format!("figure-{name}.{ending}"));
    for ending in ENDINGS {
        check_file(&file(ending))?;
    }
    let mut done: Vec<(String, Summary)> = Vec::new();
    for round in 0..figure.rounds {
        for run in &runs {
            let tell = writeln!(
                table,
                "round {} of {}: vellum-bench {}",
                round + 1,
                figure.rounds,
                run.arguments.join(" ")
            );
            tell.map_err(failed("write", Path::new("the table")))?;
            let workload = run.parse(&data)?;
            series.check_empty()?;
            let result = measure_workload(EngineName::Vellum, &workload, &mut open, lines);
            // The engine is closed; the next variant, or the next attempt, begins with an empty directory.
            // What was refused because of files that are there is somebody's.
            if !matches!(result, Err(Failure::Usage(_))) {
                series.clear()?;
            }
            let summary = result?;
            if summary.interrupted {
                return Err(Failure::Interrupted);
            }
            done.push((run.label.clone(), summary));
        }
    }
    // Rounds follow one another, so the runs of one variant are as far apart as there are variants.
    let of = |index: usize| -> Vec<&Summary> {
        let all = done.iter().skip(index).step_by(runs.len());
        all.map(|(_, summary)| summary).collect()
    };
    let rows: Vec<Row> = runs
        .iter()
        .enumerate()
        .map(|(index, run)| row(run, &of(index)))
        .collect();
    let charts = pictures::charts(figure, &runs, &rows, of);
    let document = Document {
        figure: name,
        rounds: figure.rounds,
        rows: &rows,
        runs: &done,
    };
    let mut json = serde_json::to_string_pretty(&document).map_err(|source| Failure::File {
        action: "write",
        path: figure.out.clone(),
        source: source.into(),
    })?;
    json.push('\n');
    for (ending, text) in ENDINGS.into_iter().zip([json, picture(&charts)]) {
        write_file(&file(ending), &text)?;
    }
    print(&rows, table).map_err(failed("write", Path::new("the table")))?;
    Ok(done.iter().all(|(_, summary)| summary.is_consistent()))
}

/// Of the document and of the picture.
const ENDINGS: [&str; 2] = ["json", "svg"];

fn row(run: &Run, summaries: &[&Summary]) -> Row {
    let of = |number: &dyn Fn(&Summary) -> Option<f64>| {
        median(summaries.iter().filter_map(|summary| number(summary))).map(rounded)
    };
    Row {
        label: run.label.clone(),
        group: run.group.clone(),
        part: run.part,
        x: run.x,
        rows_per_s: of(&|summary| summary.rows_per_s),
        abort_share: of(&|summary| Some(summary.abort_share())).unwrap_or(0.0),
        processors: of(&|summary| Some(summary.processors())).unwrap_or(0.0),
        device_reads_per_s: of(&|summary| summary.device_reads_per_s),
        tx_per_s: of(&|summary| Some(summary.tx_per_s)).unwrap_or(0.0),
        pages_read_per_tx: of(&|summary| Some(summary.pages_read_per_transaction())).unwrap_or(0.0),
        index_operations_per_tx: of(&index_operations),
        held_ratio: of(&|summary| summary.held_ratio),
        scan_ratio: of(&|summary| {
            let oldest = summary.oldest_scan()?;
            Some(oldest.held_us / oldest.fresh_us)
        }),
        disk_growth_bytes: of(&|summary| summary.disk_growth_bytes.map(|bytes| bytes as f64)),
    }
}

/// Searches of trees a transaction, after the first second.
fn index_operations(summary: &Summary) -> Option<f64> {
    let samples = summary.samples();
    let (first, last) = (samples.first()?, samples.last()?);
    let count = last.more.get("index_operations")? - first.more.get("index_operations")?;
    let transactions: u64 = samples[1..].iter().map(|sample| sample.tx).sum();
    (transactions > 0).then(|| count as f64 / transactions as f64)
}

/// The rows, for people.
fn print(rows: &[Row], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "\n  {:<16}{:<26}{:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "", "tx/s", "aborts", "held", "scan", "index/tx", "reads/tx"
    )?;
    for row in rows {
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |n| format!("{n:.3}"));
        let group = if row.group == row.label {
            ""
        } else {
            &row.group
        };
        // A load is one transaction: its rows count.
        let (rate, unit) = match row.rows_per_s {
            Some(rows) => (rows, " rows"),
            None => (row.tx_per_s, ""),
        };
        writeln!(
            out,
            "  {:<16}{group:<26}{rate:>10.0} {:>10.3} {:>10} {:>10} {:>10} {:>10.3}{unit}",
            row.label,
            row.abort_share,
            number(row.held_ratio),
            number(row.scan_ratio),
            number(row.index_operations_per_tx),
            row.pages_read_per_tx
        )?;
    }
    Ok(())
}
