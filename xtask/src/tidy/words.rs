//! Words that do not belong in the repository: marks of unfinished work, paths of one machine,
//! tests that are switched off without a reason.
//!
//! The whole text is read, comments and strings included; this file, which must name the words,
//! is the one exception to the marks.

use super::Findings;
use super::source::has_word;
use super::tree::Tree;

/// Marks of unfinished work, as whole words.
const MARKS: [&str; 8] = [
    "todo!",
    "unimplemented!",
    "dbg!",
    "TODO",
    "FIXME",
    "XXX",
    "HACK",
    "for now",
];

/// Folders of one machine. In pieces, so that a search for them does not end here.
const PRIVATE: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("bash", "_jobs"),
    concat!(".lib", "rary"),
];

const HERE: &str = "xtask/src/tidy/words.rs";

/// Looks at every line of every file.
pub fn check(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            if file.path != HERE {
                for mark in MARKS.iter().filter(|mark| has_mark(line, mark)) {
                    findings.add(
                        &file.path,
                        number,
                        "words",
                        format!("`{mark}`: finish it or say why it is so"),
                    );
                }
            }
            for path in PRIVATE.iter().filter(|path| has_path(line, path)) {
                findings.add(
                    &file.path,
                    number,
                    "words",
                    format!("`{path}` is a path of one machine"),
                );
            }
        }
        for (number, line) in (1..).zip(&file.lines) {
            let code = line.code.replace(' ', "");
            if code.contains("#[ignore]") || code.contains(",ignore)]") {
                findings.add(
                    &file.path,
                    number,
                    "words",
                    "#[ignore = \"…\"] says why the test is off",
                );
            }
        }
    }
}

/// A mark that ends in `!` is a macro: nothing needs to end it.
fn has_mark(line: &str, mark: &str) -> bool {
    match mark.strip_suffix('!') {
        None => has_word(line, mark),
        Some(name) => line.contains(mark) && has_word(line, name),
    }
}

/// A path counts where it begins, not as the middle of a longer relative one.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || "._-)}>".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn caught(text: &str) -> bool {
        !findings(&[("crates/a/src/b.rs", text)], check).is_empty()
    }

    #[test]
    fn marks_of_unfinished_work_are_caught_in_code_comments_and_strings() {
        for text in [
            "todo!()",
            "// FIXME later",
            "dbg!(x)",
            "// good enough for now",
            "\"XXX\"",
            "unimplemented!()",
        ] {
            assert!(caught(text), "{text}");
        }
        for text in [
            "let todos = 1;",
            "// wait for nowhere",
            "// XXXL",
            "my_todo!()",
        ] {
            assert!(!caught(text), "{text}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_caught() {
        assert!(caught(concat!("// see /wo", "rk/x")));
        assert!(caught(concat!("open(\"/ho", "me/me/x\")")));
        assert!(!caught(concat!("// see docs/wo", "rk/x")));
    }

    #[test]
    fn a_test_that_is_off_without_a_reason_is_caught() {
        assert!(caught("#[test]\n#[ignore]\nfn f() {}"));
        assert!(!caught(
            "#[test]\n#[ignore = \"takes an hour; soak runs it\"]\nfn f() {}"
        ));
    }
}
