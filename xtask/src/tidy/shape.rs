//! The shape of a source file: its length, its header, its name.

use super::Findings;
use super::tree::{File, Tree};

/// Lines up to which a file is good to read at once.
pub const GOOD_LINES: usize = 400;
/// Lines above which a file holds more than one concern.
const MOST_LINES: usize = 800;
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 9] = [
    "util", "utils", "common", "helper", "helpers", "manager", "misc", "stuff", "shared",
];

/// Looks at the shape of every Rust file.
pub fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust() {
        let lines = length(file);
        if lines > MOST_LINES {
            findings.add(
                &file.path,
                MOST_LINES,
                "size",
                format!("{lines} lines, at most {MOST_LINES}"),
            );
        }
        let first = file.text.lines().find(|line| !line.trim().is_empty());
        if !first.is_some_and(|line| line.starts_with("//!")) {
            findings.add(
                &file.path,
                1,
                "header",
                "a file begins with //! and says what it is",
            );
        }
        let names = file.path.trim_end_matches(".rs").split('/');
        if let Some(name) = names.into_iter().find(|name| EMPTY_NAMES.contains(name)) {
            findings.add(
                &file.path,
                1,
                "name",
                format!("`{name}` does not say what is inside"),
            );
        }
    }
}

/// Files longer than [`GOOD_LINES`], with their length.
pub fn long_files(tree: &Tree) -> Vec<(&str, usize)> {
    let long = |lines: usize| (GOOD_LINES + 1..=MOST_LINES).contains(&lines);
    tree.rust()
        .filter(|file| long(length(file)))
        .map(|file| (file.path.as_str(), length(file)))
        .collect()
}

fn length(file: &File) -> usize {
    file.text.lines().count()
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_found_and_a_long_one_is_warned_of() {
        let text = |lines: usize| format!("//! x\n{}", "x();\n".repeat(lines - 1));
        let (most, more, long) = (text(800), text(801), text(401));
        let files = [
            ("a/most.rs", most.as_str()),
            ("a/more.rs", &more),
            ("a/long.rs", &long),
        ];
        assert_eq!(findings(&files, check), ["a/more.rs:800"]);
        assert_eq!(
            long_files(&Tree::of(&files)),
            [("a/long.rs", 401), ("a/most.rs", 800)]
        );
    }

    #[test]
    fn a_file_without_header_and_one_without_a_saying_name_are_found() {
        let files = [
            ("a/x.rs", "\n//! x"),
            ("a/y.rs", "// y\n"),
            ("a/util.rs", "//! x"),
            ("misc/a.rs", "//! x"),
        ];
        assert_eq!(
            findings(&files, check),
            ["a/util.rs:1", "a/y.rs:1", "misc/a.rs:1"]
        );
    }
}
