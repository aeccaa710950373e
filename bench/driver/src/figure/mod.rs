//! Figures of the paper, each from one command: the variants run in turn on databases of their own, and what they did
//! is written as JSON, as a picture, and as a table for people.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §4.
//! | figure | what is run |
//! | --- | --- |
//! | 1 | the same as 9 on every engine of this build: a comparison |
//! | 9 | TPC-C, one thread, an idle session holds a snapshot from a sixth of the time on |
//! | 10 | TPC-C; warehouse and district are scanned in a held snapshot of growing age |
//! | 11 | TPC-C by threads, with and without affinity, and beside a held snapshot |
//! | oom | TPC-C in a pool that holds a part of it, beside a held snapshot |
//! | 12 | rows are inserted in one transaction, in pools of several sizes; lookups by threads, in a pool that holds a part |
//! | contention | skewed updates of several keys a transaction, as they come and in an order |
//! | release | none of the paper's: TPC-C, queue and hot rows while a snapshot is held, and when it has ended in the middle of the run |
//!
//! Differences: threads and pool are this machine's; the protocol of precise collection over delta indexes
//! (OSIC+PGC) is not a variant, and neither is one without versions; the snapshot's holder declares nothing; what puts transactions into an
//! order is a layer of the bench over the engine, with locks of stripes of keys and not of leaves, and who loses a conflict
//! pauses before he tries again.
//!
//! A round runs each variant once (A B C, A B C), so that other users of the machine hit all of them alike. Figures are
//! medians over the rounds.

mod page;
mod pictures;
mod runs;

use crate::cli::{Figure, WorkloadName};
use crate::compare::{Comparison, ENDINGS, failed, run_into, tell};
use crate::directory::Series;
use crate::engines::{EngineName, Runner};
use crate::median::median;
use crate::output::{check_file, write_file};
use crate::plot::picture;
use crate::report::{Summary, rounded};
use crate::{Failure, measure_workload};
use runs::{Part, Run, runs};
use serde::Serialize;
use std::io::Write;
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
    /// The slowest second after the snapshot has ended over the median second, where it ends before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    release_min_ratio: Option<f64>,
    /// The scan at the oldest age that was asked for over one in a fresh snapshot; none where a run ended before it.
    scan_ratio: Option<f64>,
    disk_growth_bytes: Option<f64>,
}

/// Runs figure 1. Returns whether all data were consistent.
pub(crate) fn beside_peers(
    figure: &Figure,
    runner: &mut dyn Runner,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
    let comparison = Comparison {
        workload: WorkloadName::Tpcc,
        arguments: &runs::beside_peers(figure),
        engines: figure.engines(),
        rounds: figure.rounds,
        data: figure.out.join("data"),
    };
    let name = format!("figure-{}", figure.which.name());
    run_into(&figure.out, &name, &comparison, runner, lines, table)
}

/// Runs any other figure. Returns whether all data were consistent.
pub(crate) fn run<E: Engine>(
    figure: &Figure,
    mut open: impl FnMut(&crate::cli::Settings) -> EngineResult<E>,
    lines: &mut dyn Write,
    table: &mut dyn Write,
) -> Result<bool, Failure> {
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
            let (rounds, words) = (figure.rounds, run.arguments.join(" "));
            let begins = format!("round {} of {rounds}: vellum-bench {words}", round + 1);
            tell(table, &begins)?;
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
    let texts = written(figure, &runs, &done)?;
    for (ending, text) in ENDINGS.into_iter().zip(&texts) {
        write_file(&file(ending), text)?;
    }
    tell(table, &format!("\n{}", texts[2]))?;
    Ok(done.iter().all(|(_, summary)| summary.is_consistent()))
}

/// Document, picture and page of what the runs have done, round after round.
fn written(
    figure: &Figure,
    runs: &[Run],
    done: &[(String, Summary)],
) -> Result<[String; 3], Failure> {
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
    let charts = pictures::charts(figure, runs, &rows, of);
    let document = Document {
        figure: figure.which.name(),
        rounds: figure.rounds,
        rows: &rows,
        runs: done,
    };
    let mut json = serde_json::to_string_pretty(&document).map_err(|source| Failure::File {
        action: "write",
        path: figure.out.clone(),
        source: source.into(),
    })?;
    json.push('\n');
    let page = page::markdown(&document);
    Ok([json, picture(&charts), page])
}

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
        release_min_ratio: of(&|summary| summary.release_min_ratio),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::measure::Sample;
    use clap::Parser;
    use std::path::Path;
    use vellum_workload::engine::Description;

    fn figure(flags: &str) -> Figure {
        let words = format!("vellum-bench figure {flags} --out nowhere");
        let cli = Cli::try_parse_from(words.split_whitespace()).expect("flags");
        match cli.command {
            Command::Figure(figure) => figure,
            _ => panic!("a figure"),
        }
    }

    /// What three rounds write whose runs made these rates, in every second of theirs.
    fn three_rounds(figure: &Figure, rates: [u64; 3]) -> [String; 3] {
        let runs = runs(figure);
        let mut done = Vec::new();
        for rate in rates {
            for run in &runs {
                let workload = run.parse(Path::new("nowhere")).expect("flags");
                let of = Description::default();
                let summary = Summary::new(&workload, &workload.settings(), &of);
                let sample = |s| Sample {
                    s,
                    tx: rate,
                    ..Sample::default()
                };
                let mut summary = summary.with_samples((1..=60).map(sample).collect());
                summary.tx_per_s = rate as f64;
                summary.release_min_ratio = Some(rate as f64 / 1000.0);
                done.push((run.label.clone(), summary));
            }
        }
        written(figure, &runs, &done).expect("they are written")
    }

    #[test]
    fn document_picture_and_page_have_the_medians_of_the_rounds() {
        let [json, picture, page] = three_rounds(&figure("11 --rounds 3"), [700, 100, 400]);
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let rows = document["rows"].as_array().expect("rows");
        assert_eq!((rows.len(), &document["rounds"]), (20, &3.into()));
        assert!(rows.iter().all(|row| row["tx_per_s"] == 400.0), "{rows:?}");
        assert_eq!(document["runs"].as_array().map(Vec::len), Some(60));
        let bars = picture.matches(">400</text>").count();
        // One is the axis'.
        assert!((20..=22).contains(&bars), "{bars}: {picture}");
        assert!(!picture.contains(">700</text>"), "{picture}");
        assert_eq!(page.matches("| 400 |").count(), 20, "{page}");
        assert!(page.starts_with("Figure 11, medians of 3 rounds; "));
    }

    #[test]
    fn lines_are_the_medians_of_each_second() {
        for which in ["9", "release"] {
            let figure = figure(&format!("{which} --rounds 3"));
            let [one, three] =
                [[400; 3], [700, 100, 400]].map(|rates| three_rounds(&figure, rates)[1].clone());
            assert_eq!(one, three, "{which}");
        }
    }

    #[test]
    fn what_follows_the_end_of_a_snapshot_is_told_of_each_workload() {
        let figure = figure("release");
        let runs: Vec<_> = runs(&figure).into_iter().map(|run| run.arguments).collect();
        for (run, workload) in runs.iter().zip(["tpcc", "queue", "hot"]) {
            assert_eq!(run[0], workload);
            let words = run.join(" ");
            assert!(
                words.contains("--hold-snapshot-at 10 --release-snapshot-at 40"),
                "{words}"
            );
        }
        let [json, picture, page] = three_rounds(&figure, [700, 810, 820]);
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        for row in document["rows"].as_array().expect("rows") {
            assert_eq!(row["release_min_ratio"], 0.81, "{row}");
        }
        assert_eq!(page.matches("| 0.810 |").count(), 3, "{page}");
        for workload in ["tpcc", "queue", "hot"] {
            let title = format!("{workload}: an idle snapshot, and after it");
            assert!(picture.contains(&title), "{picture}");
        }
        assert_eq!(picture.matches(">released<").count(), 3, "{picture}");
    }
}
