//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! A rule is a function from the tree of files to findings; each has a test that feeds it a bad
//! sample. A finding is one line, `file:line: rule: what`, and any finding fails the run. Files
//! above the size that is good to read are warnings, and how old the page of benchmarks is is said.

mod age;
mod counts;
mod docs;
mod homes;
mod layers;
mod manifests;
mod regions;
mod shape;
mod source;
mod tree;
mod unsafety;
mod words;

use crate::workspace::{Package, Workspace};
use std::fmt;
use tree::Tree;

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.path, self.line, self.rule, self.what
        )
    }
}

/// The findings of all rules so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    /// Notes that line `line` (from 1) of `path` breaks `rule`.
    fn add(&mut self, path: &str, line: usize, rule: &'static str, what: impl Into<String>) {
        self.0.push(Finding {
            path: path.to_owned(),
            line,
            rule,
            what: what.into(),
        });
    }
}

/// Runs every rule over the repository and prints what was found. True if that is nothing.
///
/// # Errors
/// If a file of the repository cannot be read.
pub fn run(workspace: &Workspace) -> std::io::Result<bool> {
    let tree = Tree::read(&workspace.root)?;
    for (path, lines) in shape::long_files(&tree) {
        eprintln!(
            "{path}:1: warning: {lines} lines, above the {} that are good to read",
            shape::GOOD_LINES
        );
    }
    let mut findings = check(&tree, &workspace.packages);
    let mut of_history = Findings::default();
    counts::check_history(&workspace.root, &mut of_history);
    age::tell(&workspace.root);
    findings.extend(of_history.0);
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "tidy: {} files, {} findings",
        tree.files.len(),
        findings.len()
    );
    Ok(findings.is_empty())
}

fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Findings::default();
    layers::check(packages, &mut findings);
    manifests::check(tree, &mut findings);
    shape::check(tree, &mut findings);
    homes::check(tree, &mut findings);
    words::check(tree, &mut findings);
    unsafety::check(tree, &mut findings);
    docs::check(tree, packages, &mut findings);
    counts::check(tree, &mut findings);
    findings.0.sort();
    findings.0
}

/// For the tests of the rules: runs `rule` over files given as (path, text).
#[cfg(test)]
fn findings(files: &[(&str, &str)], rule: impl Fn(&Tree, &mut Findings)) -> Vec<String> {
    let mut findings = Findings::default();
    rule(&Tree::of(files), &mut findings);
    findings
        .0
        .iter()
        .map(|f| format!("{}:{}", f.path, f.line))
        .collect()
}
