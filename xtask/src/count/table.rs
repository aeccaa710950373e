//! The table of what operations cost (`docs/benchmarks/counts.md`): Markdown that people read and this program, too.
//!
//! Layout: a line of Markdown's table for each workload: name, what is counted, instructions, misses of the first and of the last
//! level. Everything else is text, and stays as it is where lines are replaced.

use super::Each;
use std::fmt::Write as _;

/// Where it is, from the root.
pub const PATH: &str = "docs/benchmarks/counts.md";
/// What something may get dearer, as a share of what it cost.
pub const SHARE: f64 = 0.02;
/// Misses that are nothing to speak of: where memory lies makes as many.
const MISSES: f64 = 0.5;
const HEAD: &str = "| name | of one | instructions | misses, first level | misses, last level |";
const RULE: &str = "| --- | --- | --- | --- | --- |";
/// Before the text that says what the numbers were made with.
const MADE: &str = "Made with ";

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The workload.
    pub name: String,
    /// What is counted of it.
    pub unit: String,
    /// What one costs.
    pub each: Each,
}

/// The rows of a table.
pub fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, unit, instructions, first, last] = cells[..] else {
            return None;
        };
        Some(Row {
            name: name.to_owned(),
            unit: unit.to_owned(),
            each: Each {
                instructions: instructions.parse().ok()?,
                first_misses: first.parse().ok()?,
                last_misses: last.parse().ok()?,
            },
        })
    };
    text.lines().filter_map(row).collect()
}

/// What the numbers were made with.
pub fn made_with(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix(MADE))
}

/// The text with these rows in the place of those of their names, in the order of `names`, and what they were made with.
pub fn replaced(text: &str, new: &[Row], names: &[&str], made: &str) -> String {
    let mut all = rows(text);
    for row in new {
        match all.iter_mut().find(|old| old.name == row.name) {
            Some(old) => *old = row.clone(),
            None => all.push(row.clone()),
        }
    }
    let place = |row: &Row| names.iter().position(|name| *name == row.name);
    all.retain(|row| place(row).is_some());
    all.sort_by_key(place);
    let mut table = format!("{HEAD}\n{RULE}\n");
    for Row { name, unit, each } in &all {
        let _ = writeln!(
            table,
            "| {name} | {unit} | {} | {} | {} |",
            short(each.instructions),
            short(each.first_misses),
            short(each.last_misses)
        );
    }
    let before = text.lines().take_while(|line| *line != HEAD);
    let behind = text.lines().skip_while(|line| *line != HEAD);
    let behind = behind.skip_while(|line| line.starts_with('|'));
    let mut out = String::new();
    for line in before {
        match line.starts_with(MADE) {
            true => out.push_str(&format!("{MADE}{made}")),
            false => out.push_str(line),
        }
        out.push('\n');
    }
    out.push_str(&table);
    for line in behind {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// A number as the table has it.
pub fn short(number: f64) -> String {
    match number {
        1000.0.. => format!("{number:.0}"),
        10.0..1000.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// What is wrong with these rows by the table, and what could be better in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What got dearer, or is not in the table.
    pub dearer: Vec<String>,
    /// What got cheaper by so much that the table should say so.
    pub cheaper: Vec<String>,
}

/// Compares what was counted with the table, misses too.
pub fn judge(text: &str, counted: &[Row]) -> Judgement {
    judge_first(text, counted, 3)
}

/// Compares the instructions alone: misses depend a little on where memory lies, which another machine's environment decides.
pub fn judge_instructions(text: &str, counted: &[Row]) -> Judgement {
    judge_first(text, counted, 1)
}

/// Compares the first so many of a row's numbers.
fn judge_first(text: &str, counted: &[Row], numbers: usize) -> Judgement {
    let (mut judgement, known) = (Judgement::default(), rows(text));
    for row in counted {
        let Some(old) = known.iter().find(|old| old.name == row.name) else {
            let what = format!("{}: not in {PATH}", row.name);
            judgement.dearer.push(what);
            continue;
        };
        for (what, was, is, slack) in [
            (
                "instructions",
                old.each.instructions,
                row.each.instructions,
                0.0,
            ),
            (
                "misses of the first level",
                old.each.first_misses,
                row.each.first_misses,
                MISSES,
            ),
            (
                "misses of the last level",
                old.each.last_misses,
                row.each.last_misses,
                MISSES,
            ),
        ]
        .into_iter()
        .take(numbers)
        {
            let change = format!(
                "{}: {} {what} of one {}, {} in the table ({:+.1} %)",
                row.name,
                short(is),
                row.unit,
                short(was),
                (is / was - 1.0) * 100.0
            );
            let most = (was * SHARE).max(slack);
            if is > was + most {
                judgement.dearer.push(change);
            } else if is < was - most {
                judgement.cheaper.push(change);
            }
        }
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Costs\n\nMade with an old one.\n\n\
        | name | of one | instructions | misses, first level | misses, last level |\n\
        | --- | --- | --- | --- | --- |\n\
        | read | operation | 3463 | 20.0 | 0.10 |\n\
        | scan | row | 50.0 | 2.00 | 1.00 |\n\nBehind it.\n";

    fn row(name: &str, instructions: f64, first_misses: f64, last_misses: f64) -> Row {
        Row {
            name: name.to_owned(),
            unit: "operation".to_owned(),
            each: Each {
                instructions,
                first_misses,
                last_misses,
            },
        }
    }

    #[test]
    fn what_is_dearer_than_two_per_cent_is_told_and_what_is_cheaper_too() {
        let judged = |row| judge(TEXT, &[row]);
        let well = Judgement::default();
        assert_eq!(judged(row("read", 3463.0 * 1.019, 20.4, 0.6)), well);
        assert_eq!(judged(row("read", 3463.0 * 0.981, 19.6, 0.0)), well);
        for dear in [
            row("read", 3463.0 * 1.021, 20.0, 0.1),
            row("read", 3463.0, 20.6, 0.1),
            row("read", 3463.0, 20.0, 0.7),
            row("unheard-of", 1.0, 1.0, 1.0),
        ] {
            let found = judged(dear.clone());
            assert_eq!(
                (found.dearer.len(), found.cheaper.len()),
                (1, 0),
                "{dear:?}"
            );
        }
        let instructions = |row| judge_instructions(TEXT, &[row]);
        assert_eq!(instructions(row("read", 3463.0, 40.0, 9.0)), well);
        assert_eq!(instructions(row("read", 3533.0, 20.0, 0.1)).dearer.len(), 1);
        let found = judged(row("read", 3000.0, 20.0, 0.1));
        assert_eq!((found.dearer.len(), found.cheaper.len()), (0, 1));
        assert!(found.cheaper[0].contains("(-13.4 %)"), "{found:?}");
    }

    #[test]
    fn rows_are_replaced_where_they_stand_and_the_rest_stays() {
        let names = ["rmw", "read", "scan"];
        let new = [
            row("read", 3000.0, 19.0, 0.25),
            row("rmw", 12000.0, 80.0, 12.34),
        ];
        let text = replaced(TEXT, &new, &names, "a new one.");
        assert_eq!(made_with(&text), Some("a new one."));
        assert!(text.starts_with("# Costs\n") && text.ends_with("\n\nBehind it.\n"));
        let found = rows(&text);
        let order: Vec<&str> = found.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(order, names);
        assert_eq!(found[0], row("rmw", 12000.0, 80.0, 12.3));
        assert_eq!(found[1], new[0]);
        assert_eq!(found[2].unit, "row");
        // A workload that is no more goes.
        let fewer = replaced(&text, &[], &["read"], "a new one.");
        assert_eq!(rows(&fewer), [new[0].clone()]);
        assert_eq!(judge(&fewer, &new[..1]), Judgement::default());
    }
}
