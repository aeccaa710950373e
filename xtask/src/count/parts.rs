//! The table of what the instructions of an operation are for (`docs/benchmarks/instructions.md`).
//!
//! Layout: a line of Markdown's table for each workload, a column for each part, behind the one of all. Everything else is text, and stays
//! as it is where lines are replaced.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where it is, from the root.
pub const PATH: &str = "docs/benchmarks/instructions.md";
/// What its first line begins with.
const HEAD: &str = "| instructions of one |";

/// Instructions of one operation, by part.
pub type Parts = BTreeMap<&'static str, f64>;

/// The text with the lines of these workloads anew, in the order of `names`; others stay. The columns are `parts`, so a line that was
/// written for other ones goes.
pub fn replaced(text: &str, new: &BTreeMap<&str, Parts>, names: &[&str], parts: &[&str]) -> String {
    let head = format!("{HEAD} all | {} |", parts.join(" | "));
    let old: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != head)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let mut table = format!("{head}\n| --- |{}\n", " --- |".repeat(parts.len() + 1));
    for name in names {
        let begin = format!("| {name} |");
        if let Some(counted) = new.get(name) {
            let all: f64 = counted.values().sum();
            let _ = write!(table, "{begin} {all:.0} |");
            for part in parts {
                let own = counted.get(part).copied().unwrap_or(0.0);
                let _ = write!(table, " {own:.0} |");
            }
            table.push('\n');
        } else if let Some(line) = old.iter().find(|line| line.starts_with(&begin)) {
            let _ = writeln!(table, "{line}");
        }
    }
    let before = text.lines().take_while(|line| !line.starts_with(HEAD));
    let behind = text.lines().skip_while(|line| !line.starts_with(HEAD));
    let behind = behind.skip_while(|line| line.starts_with('|'));
    let mut out = String::new();
    for line in before {
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&table);
    for line in behind {
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Parts\n\n| instructions of one | all | descent | log |\n| --- | --- | --- | --- |\n\
        | read | 9 | 9 | 0 |\n| scan | 5 | 2 | 3 |\n\n| another | table |\n";

    #[test]
    fn lines_of_what_was_counted_are_new_and_others_stay() {
        let counted = BTreeMap::from([
            ("read", Parts::from([("descent", 10.4), ("log", 0.2)])),
            ("rmw", Parts::from([("descent", 20.0)])),
        ]);
        let parts = ["descent", "log"];
        let text = replaced(TEXT, &counted, &["rmw", "read", "scan"], &parts);
        let expected = TEXT.replace(
            "| read | 9 | 9 | 0 |\n",
            "| rmw | 20 | 20 | 0 |\n| read | 11 | 10 | 0 |\n",
        );
        assert_eq!(text, expected);
        // Columns of other parts say nothing any more.
        let other = replaced(TEXT, &BTreeMap::new(), &["read"], &["descent"]);
        assert!(!other.contains("| read |"), "{other}");
        assert!(other.contains("| instructions of one | all | descent |\n"));
        assert!(other.ends_with("\n\n| another | table |\n"), "{other}");
    }
}
