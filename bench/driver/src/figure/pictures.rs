//! What the figures show.

use super::Row;
use super::runs::{Part, Run};
use crate::charts::{self, Line, by_second};
use crate::cli::{Figure, FigureName};
use crate::plot::{Bar, Chart, Data};
use crate::report::Summary;

pub(super) fn charts<'s>(
    figure: &Figure,
    runs: &[Run],
    rows: &[Row],
    of: impl Fn(usize) -> Vec<&'s Summary>,
) -> Vec<Chart> {
    let lines = |points: &dyn Fn(&Summary) -> Vec<(f64, f64)>| -> Vec<Line> {
        let line = |(index, run): (usize, &Run)| {
            let every = of(index).into_iter().map(points);
            (run.label.clone(), charts::median_line(every))
        };
        runs.iter().enumerate().map(line).collect()
    };
    let rates = || lines(&|summary| by_second(summary.samples(), |sample| Some(sample.tx as f64)));
    let marks = charts::marks(Some(figure.hold_at()), figure.release_at());
    let bars = |title: &str, y: &str, number: &dyn Fn(&Row) -> f64| Chart {
        title: title.to_owned(),
        y: y.to_owned(),
        data: self::bars(&of_part(rows, Part::All), number),
        ..Chart::default()
    };
    match figure.which {
        // A comparison draws its own.
        FigureName::One => Vec::new(),
        FigureName::Nine => vec![
            charts::rates("TPC-C beside an idle old snapshot", rates(), marks.clone()),
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
        FigureName::Twelve => vec![
            Chart {
                title: "Rows inserted in one transaction, by the size of the pool".to_owned(),
                y: "rows a second".to_owned(),
                data: self::bars(&of_part(rows, Part::Load), &|row| {
                    row.rows_per_s.unwrap_or(0.0)
                }),
                ..Chart::default()
            },
            Chart {
                title: "Lookups in a pool that holds a part of the rows".to_owned(),
                x: "threads".to_owned(),
                y: "lookups a second".to_owned(),
                data: Data::Lines(lookups(rows)),
                marks: Vec::new(),
            },
        ],
        FigureName::Contention => {
            let chart = |title: &str, y: &str, number: fn(&Row) -> f64| Chart {
                title: title.to_owned(),
                x: "keys that a transaction updates".to_owned(),
                y: y.to_owned(),
                data: Data::Lines(by_x(&of_part(rows, Part::All), &|row| Some(number(row)))),
                marks: Vec::new(),
            };
            vec![
                chart("Skewed updates", "transactions a second", |row| {
                    row.tx_per_s
                }),
                chart("Attempts that lose a conflict", "share of all", |row| {
                    row.abort_share
                }),
                chart("Processors in use", "processors", |row| row.processors),
            ]
        }
        FigureName::Release => {
            let chart = |line: Line| {
                let title = format!("{}: an idle snapshot, and after it", line.0);
                charts::rates(&title, vec![line], marks.clone())
            };
            rates().into_iter().map(chart).collect()
        }
    }
}

fn of_part(rows: &[Row], part: Part) -> Vec<&Row> {
    rows.iter().filter(|row| row.part == part).collect()
}

/// Lookups by threads, and what the device reads beside.
fn lookups(rows: &[Row]) -> Vec<Line> {
    let rows = of_part(rows, Part::Lookup);
    let mut lines = by_x(&rows, &|row| Some(row.tx_per_s));
    let device = by_x(&rows, &|row| row.device_reads_per_s);
    // Each run has measured it; one line says enough.
    if let Some((_, points)) = device.into_iter().find(|(_, points)| !points.is_empty()) {
        lines.push(("device alone".to_owned(), points));
    }
    lines
}

/// A line for each label.
fn by_x(rows: &[&Row], number: &dyn Fn(&Row) -> Option<f64>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let point = row.x.zip(number(row));
        match lines.iter_mut().find(|line| line.0 == row.label) {
            Some(line) => line.1.extend(point),
            None => lines.push((row.label.clone(), point.into_iter().collect())),
        }
    }
    lines
}

/// Rows as bars: one for each label, in the group of its row.
fn bars(rows: &[&Row], number: &dyn Fn(&Row) -> f64) -> Data {
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
        let heights = rows.iter().map(|row| number(row).into()).collect();
        return Data::Bars(groups, vec![(String::new(), heights)]);
    }
    let bar = |label: &String| {
        let height = |group: &String| {
            let found = rows
                .iter()
                .find(|row| row.group == *group && row.label == *label);
            Bar::from(found.map_or(0.0, |row| number(row)))
        };
        (label.clone(), groups.iter().map(height).collect())
    };
    let bars = labels.iter().map(bar).collect();
    Data::Bars(groups.clone(), bars)
}
