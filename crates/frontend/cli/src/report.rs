//! What `verify` and `stat` print: for people, and as JSON.

use crate::relations::Relations;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use vellum::{Recovery, Report, TableReport, TreeReport};
use vellum_sql::StoredRelation;

/// Prints what a verification found.
pub fn write_verified(out: &mut dyn Write, directory: &Path, report: &Report) -> io::Result<()> {
    write_recovery(out, report)?;
    for finding in &report.findings {
        writeln!(out, "{finding}")?;
    }
    if report.findings_left_out > 0 {
        writeln!(out, "and {} more", report.findings_left_out)?;
    }
    let count = report.findings.len() as u64 + report.findings_left_out;
    let rows: u64 = report.tables.iter().map(|table| table.tree.rows).sum();
    let what = match (report.is_sound(), report.is_complete()) {
        (true, true) => "sound".to_owned(),
        (true, false) => "not checked completely".to_owned(),
        (false, _) => format!(
            "{count} {}",
            if count == 1 { "finding" } else { "findings" }
        ),
    };
    writeln!(
        out,
        "{}: {what}; {} tables, {rows} rows, {} pages checked",
        directory.display(),
        report.tables.len(),
        report.pages.checked,
    )
}

/// Prints what takes how much space.
pub fn write_figures(
    out: &mut dyn Write,
    directory: &Path,
    report: &Report,
    relations: &Relations,
) -> io::Result<()> {
    let pages = report.pages;
    let bytes = |pages: u64| size(pages * report.page_bytes);
    writeln!(
        out,
        "{}: pages of {}",
        directory.display(),
        size(report.page_bytes)
    )?;
    write_recovery(out, report)?;
    writeln!(
        out,
        "data file   {:>10}: {} in use, {} free, {} reserved, {} still to be freed",
        bytes(pages.file),
        bytes(pages.in_use),
        bytes(pages.free),
        bytes(pages.reserved),
        bytes(pages.pending),
    )?;
    if let Some(log) = report.log {
        writeln!(
            out,
            "log         {:>10}: {} segments; from the checkpoint on {} in {} rounds",
            size(log.bytes),
            log.segments,
            size(log.record_bytes),
            log.rounds,
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "{:<32} {:>12} {:>10} {:>10} {:>6} {:>10}",
        "table", "rows", "deleted", "size", "fill", "row bytes"
    )?;
    // The indexes of SQL behind their tables, which are behind what is the engine's own.
    let mut tables: Vec<_> = report
        .tables
        .iter()
        .map(|table| (relations.get(&table.tree.name), table))
        .collect();
    tables.sort_by_key(|(relation, _)| relation.map(|one| (&one.table, &one.index)));
    for (relation, table) in tables {
        let name = match relation {
            None => table.tree.name.clone(),
            Some(StoredRelation {
                index: Some(index), ..
            }) => format!("  index {index}"),
            Some(relation) => relation.table.clone(),
        };
        write_tree(out, &name, &table.tree, report)?;
        if table.chains > 0 {
            let fill = percent(table.chain_bytes, table.chain_pages * report.page_bytes);
            writeln!(
                out,
                "{:<32} {:>12} {:>10} {:>10} {fill:>6} {:>10}",
                "  large values",
                table.chains,
                "",
                bytes(table.chain_pages),
                size(table.chain_bytes),
            )?;
        }
        for index in &table.indexes {
            let kind = if index.unique {
                "unique index"
            } else {
                "index"
            };
            write_tree(
                out,
                &format!("  {kind} {}", index.tree.name),
                &index.tree,
                report,
            )?;
        }
    }
    for tree in &report.system {
        write_tree(out, &format!("({})", tree.name), tree, report)?;
    }
    for finding in &report.findings {
        writeln!(out, "damage: {finding}")?;
    }
    Ok(())
}

fn write_tree(
    out: &mut dyn Write,
    name: &str,
    tree: &TreeReport,
    report: &Report,
) -> io::Result<()> {
    let bytes = tree.pages * report.page_bytes;
    writeln!(
        out,
        "{:<32} {:>12} {:>10} {:>10} {:>6} {:>10}",
        name.escape_debug().to_string(),
        tree.rows,
        tree.tombstones,
        size(bytes),
        percent(tree.bytes_used, bytes),
        size(tree.row_bytes),
    )
}

fn write_recovery(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let text = match report.recovery {
        Recovery::NotDue => return Ok(()),
        Recovery::Rehearsed => {
            "recovery is due: it was rehearsed in memory, and this is what the next open will find"
        }
        Recovery::TooLarge => {
            "recovery is due, and needs more memory than --memory-mib allows: only control file, \
             header and log were checked"
        }
        Recovery::Failed => {
            "recovery is due, and fails: only control file, header and log were checked"
        }
    };
    writeln!(out, "{text}")
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", UNITS[unit])
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.0} %", part as f64 * 100.0 / whole as f64)
}

/// Everything as one object; docs/operating/command-line.md names its keys.
pub fn json(directory: &Path, report: &Report, relations: &Relations) -> Value {
    let recovery = match report.recovery {
        Recovery::NotDue => "not due",
        Recovery::Rehearsed => "rehearsed",
        Recovery::TooLarge => "too large",
        Recovery::Failed => "failed",
    };
    let pages = report.pages;
    let findings = report.findings.iter().map(|finding| {
        json!({
            "object": finding.object,
            "file": &*finding.file,
            "page": finding.page,
            "what": finding.what,
            "expected": finding.expected,
            "found": finding.found,
        })
    });
    let log = report.log.map(|log| {
        json!({
            "segments": log.segments,
            "bytes": log.bytes,
            "checkpoint_segment": log.checkpoint_segment,
            "checkpoint_offset": log.checkpoint_offset,
            "rounds": log.rounds,
            "record_bytes": log.record_bytes,
            "closed_cleanly": log.closed_cleanly,
        })
    });
    let tables = report.tables.iter().map(|table| {
        let mut value = json_of_table(table);
        let relation = relations.get(&table.tree.name);
        value["relation"] = relation.map(|one| &*one.table).into();
        value["relation_index"] = relation.and_then(|one| one.index.as_deref()).into();
        value
    });
    json!({
        "directory": directory.display().to_string(),
        "sound": report.is_sound(),
        "complete": report.is_complete(),
        "recovery": recovery,
        "page_bytes": report.page_bytes,
        "pages": {
            "file": pages.file,
            "in_use": pages.in_use,
            "free": pages.free,
            "reserved": pages.reserved,
            "pending": pages.pending,
            "checked": pages.checked,
        },
        "log": log,
        "tables": tables.collect::<Vec<_>>(),
        "system": report.system.iter().map(json_of_tree).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "findings_left_out": report.findings_left_out,
    })
}

fn json_of_table(table: &TableReport) -> Value {
    let mut value = json_of_tree(&table.tree);
    let indexes = table.indexes.iter().map(|index| {
        let mut value = json_of_tree(&index.tree);
        value["unique"] = index.unique.into();
        value
    });
    value["indexes"] = indexes.collect::<Vec<_>>().into();
    value["chains"] = table.chains.into();
    value["chain_pages"] = table.chain_pages.into();
    value["chain_bytes"] = table.chain_bytes.into();
    value
}

fn json_of_tree(tree: &TreeReport) -> Value {
    json!({
        "name": tree.name,
        "root": tree.root,
        "rows": tree.rows,
        "tombstones": tree.tombstones,
        "height": tree.height,
        "pages": tree.pages,
        "bytes_used": tree.bytes_used,
        "row_bytes": tree.row_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_a_unit() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(300 << 20), "300 MiB");
        assert_eq!(size(u64::MAX), "16777216 TiB");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(1, 3), "33 %");
    }
}
