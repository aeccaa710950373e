//! How old the page of benchmarks is: said, never a finding, since every commit to the engine makes it older and a new page is twenty
//! minutes of an idle machine.

use std::path::Path;
use std::process::Command;

/// The page, which names the commit that it was measured at.
const PAGE: &str = "docs/benchmarks.md";
/// What its figures are of: whose, and the folders that they follow from.
const OF: [(&str, &[&str]); 2] = [
    ("bench", &["bench"]),
    (
        "the engine",
        &[
            "crates/foundation",
            "crates/storage",
            "crates/transaction",
            "crates/relation",
            "crates/engine",
        ],
    ),
];

/// Says how much has changed since the page was written; nothing where git cannot tell, as in a shallow clone.
pub fn tell(root: &Path) {
    let page = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.current_dir(root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(text)
    };
    if let Some(age) = age(&page, git) {
        println!("tidy: {age}");
    }
}

/// What there is to say of a page, as `git` knows it; nothing of one that is as new as what it is of.
fn age(page: &str, git: impl Fn(&[&str]) -> Option<String>) -> Option<String> {
    let commit = commit(page)?;
    let since = format!("{commit}..HEAD");
    let mut told = Vec::new();
    for (whose, folders) in OF {
        let arguments = [
            &["rev-list", "--count", "--no-merges", &since, "--"],
            folders,
        ]
        .concat();
        let count: u32 = git(&arguments)?.trim().parse().ok()?;
        match count {
            0 => {}
            1 => told.push(format!("one commit to {whose}")),
            count => told.push(format!("{count} commits to {whose}")),
        }
    }
    (!told.is_empty()).then(|| {
        format!(
            "{PAGE} is of commit {commit:.12}, before {}: `vellum-bench report` makes it anew",
            told.join(" and ")
        )
    })
}

/// The commit that a page names as its own: forty hexadecimal digits.
fn commit(page: &str) -> Option<&str> {
    let mut words = page.split_whitespace();
    words.find(|word| word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "7e99c8959c6b10cb5e7f64b51e5bbd3fc6e60901";

    fn page() -> String {
        format!(
            "# Benchmarks\n\nWritten by `vellum-bench report` of commit {COMMIT} in 15 minutes\n"
        )
    }

    #[test]
    fn what_has_changed_since_a_page_is_counted_by_what_it_is_of() {
        let git = |bench: u32, engine: u32| {
            move |arguments: &[&str]| {
                let since = format!("{COMMIT}..HEAD");
                assert_eq!(
                    arguments[..4],
                    ["rev-list", "--count", "--no-merges", &since]
                );
                let count = if arguments.contains(&"bench") {
                    bench
                } else {
                    engine
                };
                Some(format!("{count}\n"))
            }
        };
        let told = |bench, engine| age(&page(), git(bench, engine));
        assert_eq!(told(0, 0), None, "as new as it can be");
        let both = told(12, 1).expect("it is old");
        assert_eq!(
            both,
            "docs/benchmarks.md is of commit 7e99c8959c6b, before 12 commits to bench and one commit to the engine: \
             `vellum-bench report` makes it anew"
        );
        let engine = told(0, 74).expect("it is old");
        assert!(
            engine.contains("before 74 commits to the engine:"),
            "{engine}"
        );
    }

    #[test]
    fn a_page_without_a_commit_or_a_repository_without_it_says_nothing() {
        assert_eq!(age("# Benchmarks\n", |_| panic!("git is not asked")), None);
        assert_eq!(age(&page(), |_| None), None);
    }

    #[test]
    fn what_the_page_is_of_is_where_it_is_looked_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the repository");
        for folder in OF.iter().flat_map(|(_, folders)| folders.iter()) {
            assert!(root.join(folder).is_dir(), "{folder}");
        }
        let page = std::fs::read_to_string(root.join(PAGE)).expect("the page");
        assert!(commit(&page).is_some(), "it names its commit");
    }
}
