//! A figure for people: the medians as a table, which is what a folder of `bench/experiments` quotes.

use super::{Document, Row};
use crate::machine::Machine;
use crate::report::Summary;
use std::fmt::Write as _;

/// A column: its title, digits behind the point, and what it is of a row.
type Column = (&'static str, usize, fn(&Row) -> Option<f64>);

const COLUMNS: [Column; 10] = [
    ("transactions a second", 0, |row| {
        // A load is one transaction: its rows count.
        row.rows_per_s.is_none().then_some(row.tx_per_s)
    }),
    ("rows a second", 0, |row| row.rows_per_s),
    ("attempts that lost", 3, |row| Some(row.abort_share)),
    ("processors", 2, |row| Some(row.processors)),
    ("held ratio", 3, |row| row.held_ratio),
    (
        "slowest second after the end, over the median without a snapshot",
        3,
        |row| row.release_min_ratio,
    ),
    ("old scan over a fresh one", 2, |row| row.scan_ratio),
    ("index operations a transaction", 1, |row| {
        row.index_operations_per_tx
    }),
    ("page reads a transaction", 3, |row| {
        Some(row.pages_read_per_tx)
    }),
    ("MB more on disk", 0, |row| {
        row.disk_growth_bytes.map(|bytes| bytes / 1e6)
    }),
];

/// The rows, with the columns in which some row has more than nothing.
pub(super) fn markdown(document: &Document<'_>) -> String {
    let Document {
        figure,
        rounds,
        rows,
        ..
    } = document;
    let has_any = |(_, _, of): &Column| rows.iter().any(|row| of(row).is_some_and(|it| it != 0.0));
    let columns: Vec<Column> = COLUMNS.into_iter().filter(has_any).collect();
    let grouped = rows.iter().any(|row| !row.group.is_empty());
    let titles: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let group = if grouped { " of |" } else { "" };
    let machine = document.runs.first().map(|run| Summary::machine(&run.1));
    let spread = match rounds {
        1 => "one run, no spread".to_owned(),
        _ => format!("medians of {rounds} rounds"),
    };
    let mut out = format!(
        "Figure {figure}, {spread}; {}; commit {}\n\n| variant |{group} {} |\n",
        machine.map(Machine::words).unwrap_or_default(),
        env!("VELLUM_COMMIT"),
        titles.join(" | ")
    );
    let names = 1 + usize::from(grouped);
    let _ = writeln!(out, "|{}", " --- |".repeat(names + columns.len()));
    for row in *rows {
        let _ = write!(out, "| {} |", row.label);
        if grouped {
            let _ = write!(out, " {} |", row.group);
        }
        for (_, digits, of) in &columns {
            let _ = match of(row) {
                Some(number) => write!(out, " {number:.digits$} |"),
                None => write!(out, " - |"),
            };
        }
        out.push('\n');
    }
    out
}
