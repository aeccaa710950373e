//! The table of what operations cost is whole, and whoever wrote something dearer into it said so.
//!
//! What can be told without counting: the table has a line for each workload that `cargo xtask count all` counts, and no other; the
//! last commit that changed the table names, in its message, each workload that it made dearer by more than `count --check` lets pass.
//!
//! Not here: whether the table is that of the engine as it is; that takes valgrind, a release build and some ten minutes of a core
//! (`cargo xtask count all --check`; `.ci/run` looks at two of its lines).

use super::Findings;
use super::tree::Tree;
use crate::count::{in_table, table};
use std::path::Path;
use std::process::Command;

/// Looks at the lines of the table.
pub fn check(tree: &Tree, findings: &mut Findings) {
    let Some(file) = tree.file(table::PATH) else {
        findings.add(table::PATH, 1, "counts", "the table is missing");
        return;
    };
    let rows = table::rows(&file.text);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    if names != in_table() {
        let what = format!(
            "lines are those of {}, in this order",
            in_table().join(", ")
        );
        findings.add(table::PATH, 1, "counts", what);
    }
    if table::made_with(&file.text).is_none() {
        let what = "it does not say what it was made with";
        findings.add(table::PATH, 1, "counts", what);
    }
}

/// Looks at the last commit that changed the table; says nothing where its parent is not there (no git, a shallow clone).
pub fn check_change(root: &Path, findings: &mut Findings) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(root)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(text)
    };
    let at = |commit: &str| git(&["show", &format!("{commit}:{}", table::PATH)]);
    let told = || {
        let commit = git(&["log", "-1", "--format=%H", "--", table::PATH])?;
        let commit = commit.trim();
        let message = git(&["log", "-1", "--format=%B", commit])?;
        let parents = git(&["log", "-1", "--format=%P", commit])?;
        let before = parents.split_whitespace().map(at);
        let before = before.collect::<Option<Vec<String>>>()?;
        let now = at(commit)?;
        (!before.is_empty()).then(|| (commit.to_owned(), unnamed(&before, &now, &message)))
    };
    let Some((commit, unnamed)) = told() else {
        println!(
            "tidy: no commit before the last one that changed {} is here",
            table::PATH
        );
        return;
    };
    for what in unnamed {
        let what = format!(
            "commit {commit:.12} made this dearer, and its message does not name it: {what}"
        );
        findings.add(table::PATH, 1, "counts", what);
    }
}

/// What is dearer than in each commit before and is not named: what a merge takes from one side was named there.
fn unnamed(before: &[String], now: &str, message: &str) -> Vec<String> {
    let mut all = Vec::new();
    for row in table::rows(now) {
        if names(message, &row.name) {
            continue;
        }
        let dearer = before.iter().map(|before| {
            // What is new has no price that it could be above.
            let known = table::rows(before).iter().any(|old| old.name == row.name);
            let judged = table::judge(before, std::slice::from_ref(&row)).dearer;
            if known { judged } else { Vec::new() }
        });
        let dearer: Vec<Vec<String>> = dearer.collect();
        if dearer.iter().all(|found| !found.is_empty()) {
            all.extend(dearer.into_iter().next().unwrap_or_default());
        }
    }
    all
}

/// Whether a text has this word: `queue-held` is another one than `queue`.
fn names(text: &str, word: &str) -> bool {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    words.into_iter().any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::findings;

    fn table(lines: &[(&str, u32)]) -> String {
        let mut text = "Made with care.\n\n".to_owned();
        for (name, instructions) in lines {
            text.push_str(&format!(
                "| {name} | operation | {instructions} | 1.0 | 1.0 |\n"
            ));
        }
        text
    }

    #[test]
    fn the_table_has_the_lines_that_are_counted() {
        let lines: Vec<(&str, u32)> = in_table().into_iter().map(|name| (name, 1)).collect();
        let found = |text: &str| findings(&[(table::PATH, text)], check);
        assert_eq!(found(&table(&lines)), [""; 0]);
        let finding = format!("{}:1", table::PATH);
        assert_eq!(found(&table(&lines[1..])), [finding.as_str()]);
        let more = [&lines[..], &[("nothing", 1)]].concat();
        assert_eq!(found(&table(&more)), [finding.as_str()]);
        let unsaid = table(&lines).replace("Made with", "Made of");
        assert_eq!(found(&unsaid), [finding.as_str()]);
        assert_eq!(findings(&[("README.md", "")], check), [finding.as_str()]);
    }

    #[test]
    fn what_got_dearer_is_named_in_the_message() {
        let before = table(&[("queue", 1000), ("queue-held", 1000), ("read", 1000)]);
        let dearer = table(&[("queue", 1000), ("queue-held", 1021), ("read", 1019)]);
        let before = [before];
        let count = |now: &str, message| unnamed(&before, now, message).len();
        assert_eq!(count(&dearer, "engine: queue 1,000, read 1,019"), 1);
        assert_eq!(
            count(&dearer, "engine: collections\n\nqueue-held 1,021 (1,000)"),
            0
        );
        assert_eq!(count(&dearer.replace("1021", "980"), "engine: cheaper"), 0);
        assert_eq!(count(&table(&[("new", 5000)]), "count: a new one"), 0);
        // A merge of a side that was dearer already, and said so.
        let sides = [before[0].clone(), dearer.clone()];
        assert!(unnamed(&sides, &dearer, "merge: a side").is_empty());
    }
}
