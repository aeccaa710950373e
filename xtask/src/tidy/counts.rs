//! The table of what operations cost is whole, and whoever wrote something dearer into it said so.
//!
//! What can be told without counting: the table has a line for each workload that `cargo xtask count all` counts, and no other; and
//! each commit that changed the table since this rule is there names in its message each workload that it made dearer by more than `count --check`
//! lets pass. Where the engine has changed since the table's numbers did, that is told, and is no finding.
//!
//! Not here: whether the table is that of the engine as it is; that takes valgrind and a release build (`cargo xtask count few --check`,
//! which `.ci/run` does, looks at some of its lines; `count all --check` at all of them).

use super::Findings;
use super::tree::Tree;
use crate::count::{names as counted, table};
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
    if names != counted() {
        let what = format!("lines are those of {}, in this order", counted().join(", "));
        findings.add(table::PATH, 1, "counts", what);
    }
    if table::made_with(&file.text).is_none() {
        let what = "it does not say what it was made with";
        findings.add(table::PATH, 1, "counts", what);
    }
}

/// Where this rule is.
const RULE: &str = "xtask/src/tidy/counts.rs";
/// What the table is about.
const COUNTED: [&str; 3] = ["crates/engine", "crates/storage", "crates/transaction"];

/// Looks at the commits that changed the table, as far as they and their parents are here (no git, a shallow clone), and tells how much of
/// the engine has changed since it was made.
pub fn check_history(root: &Path, findings: &mut Findings) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(root)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(text)
    };
    // What was written before there was this rule is not judged by it.
    let rule = ["log", "--diff-filter=A", "--format=%H", "--", RULE];
    let rule = git(&rule).unwrap_or_default();
    let judged = rule.lines().last().map(|rule| format!("{rule}..HEAD"));
    let judged = judged.as_deref().unwrap_or("HEAD");
    let changes = ["log", "--format=%H %P", judged, "--", table::PATH];
    let changes = git(&changes).unwrap_or_default();
    let (mut looked_at, mut made) = (0, None);
    for line in changes.lines() {
        let mut commits = line.split_whitespace();
        let Some(commit) = commits.next() else {
            continue;
        };
        let at = |commit: &str| git(&["show", &format!("{commit}:{}", table::PATH)]);
        let Some(now) = at(commit) else { continue };
        let before: Option<Vec<String>> = commits.map(at).collect();
        // The first one has nothing before it.
        let Some(before) = before.filter(|before| !before.is_empty()) else {
            continue;
        };
        let message = git(&["log", "-1", "--format=%B", commit]).unwrap_or_default();
        for what in unnamed(&before, &now, &message) {
            let what = format!(
                "commit {commit:.12} made this dearer, and its message does not name it: {what}"
            );
            findings.add(table::PATH, 1, "counts", what);
        }
        looked_at += 1;
        let rows = table::rows(&now);
        if made.is_none() && before.iter().all(|before| table::rows(before) != rows) {
            made = Some(commit.to_owned());
        }
    }
    if looked_at == 0 {
        println!(
            "tidy: no commit that changed {} is here with the one before",
            table::PATH
        );
    }
    if let Some(made) = made {
        let since = format!("{made}..HEAD");
        let mut log = vec!["log", "--no-merges", "--format=%h %s", &since, "--"];
        log.extend(COUNTED);
        let later = git(&log).unwrap_or_default();
        if let Some(last) = later.lines().next() {
            println!(
                "tidy: {} is of commit {made:.12}; {} since have changed what it counts, the last is {last}",
                table::PATH,
                later.lines().count()
            );
        }
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
        let lines: Vec<(&str, u32)> = counted().into_iter().map(|name| (name, 1)).collect();
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

    /// A repository whose commits are tables with their messages.
    fn repository(commits: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let status = Command::new("git")
                .current_dir(folder.path())
                .args(["-c", "user.name=n", "-c", "user.email=e"])
                .args(arguments)
                .status();
            assert!(status.unwrap().success(), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        let path = folder.path().join(table::PATH);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for (text, message) in commits {
            std::fs::write(&path, text).unwrap();
            git(&["add", "."]);
            git(&["commit", "--quiet", "--message", message]);
        }
        folder
    }

    #[test]
    fn a_commit_behind_a_bad_one_does_not_hide_it() {
        let cheap = table(&[("read", 1000), ("scan", 1000)]);
        let dear = table(&[("read", 1100), ("scan", 1000)]);
        let text_only = format!("{dear}More words.\n");
        let found = |second: &str| {
            let folder = repository(&[
                (&cheap, "table: a new one"),
                (&dear, second),
                (&text_only, "docs: more words"),
            ]);
            let mut findings = Findings::default();
            check_history(folder.path(), &mut findings);
            findings.0.len()
        };
        assert_eq!(found("engine: something"), 1);
        assert_eq!(found("engine: read 1,100 (1,000), for something"), 0);
    }
}
