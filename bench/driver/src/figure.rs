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
//!
//! Differences: threads and pool are this machine's; the protocol of precise collection over delta indexes
//! (OSIC+PGC) is not a variant; the snapshot's holder declares nothing.
//!
//! A round runs each variant once (A B C, A B C), so that other users of the machine hit all of them alike. Figures are
//! medians over the rounds.

use crate::charts::{self, Line, by_second};
use crate::cli::{Cli, Command, Figure, FigureName, Variant, Workload};
use crate::plot::{Chart, Data, picture};
use crate::report::{Summary, rounded};
use crate::{Failure, measure_workload};
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use vellum_workload::engine::{Engine, Result as EngineResult};

/// What one variant does in each round.
struct Run {
    /// Of the line or bar.
    label: String,
    /// Of the group of bars.
    group: String,
    arguments: Vec<String>,
}

impl Run {
    fn new(figure: &Figure, label: &str, group: &str, variant: Variant, more: &str) -> Self {
        let length = match figure.tiny {
            // To try the program, not the engine.
            true => "--tiny --operations 60".to_owned(),
            false => format!("--seconds {}", figure.seconds()),
        };
        let arguments = format!(
            "tpcc --variant {} {length} --warehouses {} --pool-mib {} --seed {} {more}",
            variant.name(),
            figure.warehouses(),
            figure.pool_mib(),
            figure.seed
        );
        Self {
            label: label.to_owned(),
            group: group.to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// The command line of this run.
    fn parse(&self, data: &Path) -> Result<Workload, Failure> {
        let program = "vellum-bench".to_owned();
        let data = ["--data".to_owned(), data.display().to_string()];
        let words = [program].into_iter().chain(self.arguments.clone());
        let cli = Cli::try_parse_from(words.chain(data))
            .map_err(|error| Failure::Usage(error.to_string()))?;
        match cli.command {
            Command::Run(workload) => Ok(workload),
            Command::Figure(_) | Command::Compare(_) | Command::Report(_) => Err(Failure::Usage(
                "only workloads are runs of a figure".to_owned(),
            )),
        }
    }
}

/// The runs of a round.
fn runs(figure: &Figure) -> Vec<Run> {
    use Variant::{Basic, Fat, Full, Graveyard, Osic, Stamping};
    let hold = format!("--hold-snapshot-at {}", figure.hold_at());
    match figure.which {
        FigureName::Nine => [Basic, Osic, Fat, Graveyard, Full]
            .map(|variant| Run::new(figure, variant.name(), "", variant, &hold))
            .into(),
        FigureName::Ten => {
            let last = figure.seconds() - figure.hold_at();
            let ages: Vec<String> = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600]
                .into_iter()
                .filter(|age| *age < last && !figure.tiny)
                .map(|age: u64| age.to_string())
                .collect();
            let threads = figure.threads();
            let scan = match ages.is_empty() {
                // At its begin only.
                true => "--scan-at 0".to_owned(),
                false => format!("--scan-at {}", ages.join(",")),
            };
            let flags = format!("{hold} {scan} --threads {threads}");
            [Basic, Osic, Graveyard, Fat, Full]
                .map(|variant| Run::new(figure, variant.name(), "", variant, &flags))
                .into()
        }
        FigureName::Eleven => {
            let mut runs = Vec::new();
            for home in ["--affinity", ""] {
                for threads in 1..=figure.threads() {
                    let flags = format!("--threads {threads} {home}");
                    let group = match home {
                        "" => format!("{threads} threads, any warehouse"),
                        _ => format!("{threads} threads, own warehouses"),
                    };
                    for variant in [Basic, Stamping, Osic, Full] {
                        runs.push(Run::new(figure, variant.name(), &group, variant, &flags));
                    }
                    // The others' rates fall for as long as one looks.
                    let flags = format!("{flags} {hold}");
                    runs.push(Run::new(figure, "full, snapshot", &group, Full, &flags));
                }
            }
            runs
        }
        FigureName::Oom => {
            let age = (figure.seconds() - figure.hold_at())
                .saturating_sub(2)
                .max(1);
            let age = if figure.tiny { 0 } else { age };
            let flags = format!("{hold} --scan-at {age}");
            [Osic, Fat, Graveyard, Full]
                .map(|variant| Run::new(figure, variant.name(), variant.name(), variant, &flags))
                .into()
        }
    }
}

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
    tx_per_s: f64,
    pages_read_per_tx: f64,
    /// Where the build counts them.
    index_operations_per_tx: Option<f64>,
    held_ratio: Option<f64>,
    /// The oldest scan over one in a fresh snapshot.
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
    if crate::directory_has_entries(&data) {
        return Err(Failure::Usage(format!(
            "{} is not empty, and each run wants to begin there",
            data.display()
        )));
    }
    std::fs::create_dir_all(&figure.out).map_err(failed("create", &figure.out))?;
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
            let summary = measure_workload(&workload, &mut open, lines)?;
            if summary.interrupted {
                return Err(Failure::Interrupted);
            }
            // The engine is closed; the next variant begins with an empty directory.
            std::fs::remove_dir_all(&data).map_err(failed("remove", &data))?;
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
    let charts = charts(figure, &runs, &rows, of);
    let name = figure.which.name();
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
    for (ending, text) in [("json", json), ("svg", picture(&charts))] {
        write_file(&figure.out.join(format!("figure-{name}.{ending}")), &text)?;
    }
    print(&rows, table).map_err(failed("write", Path::new("the table")))?;
    Ok(done.iter().all(|(_, summary)| summary.is_consistent()))
}

/// Writes a whole file.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

fn row(run: &Run, summaries: &[&Summary]) -> Row {
    let of = |number: &dyn Fn(&Summary) -> Option<f64>| {
        median(summaries.iter().filter_map(|summary| number(summary))).map(rounded)
    };
    Row {
        label: run.label.clone(),
        group: run.group.clone(),
        tx_per_s: of(&|summary| Some(summary.tx_per_s)).unwrap_or(0.0),
        pages_read_per_tx: of(&|summary| Some(summary.pages_read_per_transaction())).unwrap_or(0.0),
        index_operations_per_tx: of(&index_operations),
        held_ratio: of(&|summary| summary.held_ratio),
        scan_ratio: of(&|summary| {
            let oldest = summary.scans.last()?;
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

pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

/// The median of lines, point by point.
fn median_line(lines: Vec<Vec<(f64, f64)>>) -> Vec<(f64, f64)> {
    let mut points = BTreeMap::<u64, Vec<(f64, f64)>>::new();
    for line in lines {
        for (x, y) in line {
            // Ages of scans differ a little from round to round.
            points.entry(x.round() as u64).or_default().push((x, y));
        }
    }
    points
        .into_values()
        .filter_map(|found| {
            let x = median(found.iter().map(|(x, _)| *x))?;
            Some((x, median(found.iter().map(|(_, y)| *y))?))
        })
        .collect()
}

fn charts<'s>(
    figure: &Figure,
    runs: &[Run],
    rows: &[Row],
    of: impl Fn(usize) -> Vec<&'s Summary>,
) -> Vec<Chart> {
    let lines = |points: &dyn Fn(&Summary) -> Vec<(f64, f64)>| -> Vec<Line> {
        let line = |(index, run): (usize, &Run)| {
            let every = of(index).into_iter().map(points).collect();
            (run.label.clone(), median_line(every))
        };
        runs.iter().enumerate().map(line).collect()
    };
    let marks = charts::marks(Some(figure.hold_at()), None);
    let bars = |title: &str, y: &str, number: &dyn Fn(&Row) -> f64| Chart {
        title: title.to_owned(),
        y: y.to_owned(),
        data: bars(rows, number),
        ..Chart::default()
    };
    match figure.which {
        FigureName::Nine => vec![
            charts::rates(
                "TPC-C beside an idle old snapshot",
                lines(&|summary| by_second(summary.samples(), |sample| Some(sample.tx as f64))),
                marks.clone(),
            ),
            Chart {
                title: "Old versions".to_owned(),
                x: "seconds".to_owned(),
                y: "MiB".to_owned(),
                data: Data::Lines(lines(&|summary| {
                    by_second(summary.samples(), |sample| {
                        Some(*sample.more.get("version_bytes")? as f64 / f64::from(1 << 20))
                    })
                })),
                marks,
            },
        ],
        FigureName::Ten => {
            let scans = |number: fn(u64, f64) -> f64| {
                lines(&|summary| {
                    let point = |scan: &crate::hold::AgedScan| {
                        (scan.age_s, number(scan.rows, scan.held_us))
                    };
                    summary.scans.iter().map(point).collect()
                })
            };
            let chart = |y: &str, data| Chart {
                title: "Scan of warehouse and district in a held snapshot".to_owned(),
                x: "age of the snapshot in seconds".to_owned(),
                y: y.to_owned(),
                data: Data::Lines(data),
                marks: Vec::new(),
            };
            vec![
                chart(
                    "rows a millisecond",
                    scans(|rows, us| rows as f64 * 1000.0 / us),
                ),
                chart("µs", scans(|_, us| us)),
            ]
        }
        FigureName::Eleven => vec![bars("TPC-C", "transactions a second", &|row| row.tx_per_s)],
        FigureName::Oom => vec![
            bars(
                "TPC-C, larger than memory",
                "transactions a second",
                &|row| row.tx_per_s,
            ),
            bars("Index operations", "a transaction", &|row| {
                row.index_operations_per_tx.unwrap_or(0.0)
            }),
            bars("Pages read", "a transaction", &|row| row.pages_read_per_tx),
        ],
    }
}

/// Rows as bars: one for each label, in the group of its row.
fn bars(rows: &[Row], number: &dyn Fn(&Row) -> f64) -> Data {
    let (mut groups, mut labels): (Vec<String>, Vec<String>) = Default::default();
    for row in rows {
        for (names, name) in [(&mut groups, &row.group), (&mut labels, &row.label)] {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    if labels == groups {
        // One bar each: the groups' names say it all.
        let heights = rows.iter().map(number).collect();
        return Data::Bars(groups, vec![(String::new(), heights)]);
    }
    let bar = |label: &String| {
        let height = |group: &String| {
            let found = rows
                .iter()
                .find(|row| row.group == *group && row.label == *label);
            found.map_or(0.0, number)
        };
        (label.clone(), groups.iter().map(height).collect())
    };
    let bars = labels.iter().map(bar).collect();
    Data::Bars(groups.clone(), bars)
}

/// The rows, for people.
fn print(rows: &[Row], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "\n  {:<16}{:<26}{:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "", "tx/s", "held", "scan", "index/tx", "reads/tx"
    )?;
    for row in rows {
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |n| format!("{n:.3}"));
        let group = if row.group == row.label {
            ""
        } else {
            &row.group
        };
        writeln!(
            out,
            "  {:<16}{group:<26}{:>10.0} {:>10} {:>10} {:>10} {:>10.3}",
            row.label,
            row.tx_per_s,
            number(row.held_ratio),
            number(row.scan_ratio),
            number(row.index_operations_per_tx),
            row.pages_read_per_tx
        )?;
    }
    Ok(())
}
