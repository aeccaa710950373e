//! Documents: what they point to exists, and the map of the house shows every crate.

use super::Findings;
use super::tree::{File, Tree};
use crate::workspace::Package;

/// Looks at the links of every document, at documents that code cites, and at ARCHITECTURE.md.
pub fn check(tree: &Tree, packages: &[Package], findings: &mut Findings) {
    for file in &tree.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            let mut targets: Vec<String> = Vec::new();
            if file.path.ends_with(".md") {
                targets.extend(links(line).filter_map(|link| resolve(&file.path, link)));
            }
            // The rules about documents name some that do not exist.
            if !file.path.starts_with("xtask/src/tidy/") {
                targets.extend(cited(line).map(str::to_owned));
            }
            targets.sort();
            targets.dedup();
            for target in targets.iter().filter(|target| !tree.exists(target)) {
                findings.add(&file.path, number, "docs", format!("{target} is not there"));
            }
        }
    }
    match tree.file("ARCHITECTURE.md") {
        Some(map) => check_map(map, tree, packages, findings),
        None => findings.add(
            "ARCHITECTURE.md",
            1,
            "docs",
            "the map of the house is missing",
        ),
    }
}

/// Every member is on the map by its folder, and every crate folder on the map is a member.
fn check_map(map: &File, tree: &Tree, packages: &[Package], findings: &mut Findings) {
    for package in packages {
        let on_map = map.text.match_indices(&package.folder).any(|(at, folder)| {
            let after = map.text[at + folder.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || "/_-".contains(c))
        });
        if !on_map {
            findings.add(
                &map.path,
                1,
                "docs",
                format!("{} is not on the map", package.folder),
            );
        }
    }
    for (number, line) in (1..).zip(map.text.lines()) {
        for folder in paths(line, "crates/").filter(|path| !tree.exists(path)) {
            findings.add(&map.path, number, "docs", format!("{folder} is not there"));
        }
    }
}

/// Targets of the Markdown links of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, open)| {
        let rest = &line[at + open.len()..];
        rest.split_once(')').map(|(target, _)| target)
    })
}

/// Path from the root of what a link in `document` points to; none for other sites and anchors.
fn resolve(document: &str, link: &str) -> Option<String> {
    let target = link.split('#').next().unwrap_or("");
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Documents that a line names by their path: `docs/….md`.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    paths(line, "docs/").filter(|path| path.ends_with(".md"))
}

/// Paths from the root that begin with `start`.
fn paths<'a>(line: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let in_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    line.match_indices(start).filter_map(move |(at, _)| {
        if line[..at].chars().next_back().is_some_and(in_path) {
            return None;
        }
        let rest = &line[at..];
        let end = rest.find(|c| !in_path(c)).unwrap_or(rest.len());
        // A pattern (`docs/*.md`, `docs/design/NNNN-slug.md`) is no path.
        let pattern = rest[end..].starts_with(['*', '{', '<']) || rest[..end].contains("NNNN");
        (!pattern).then(|| rest[..end].trim_end_matches(['.', '/']))
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn package(folder: &str) -> Package {
        Package {
            name: String::new(),
            folder: folder.to_owned(),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn a_link_to_nothing_is_found_and_anchors_and_sites_are_not_followed() {
        let files = [
            ("ARCHITECTURE.md", ""),
            (
                "README.md",
                "[a](docs/a.md) [b](docs/b.md#part) [c](https://x.y/z.md) [d](#here)",
            ),
            (
                "docs/a.md",
                "[up](../README.md) [down](design/x.md)\n[a](./a.md)",
            ),
        ];
        let found = findings(&files, |tree, out| check(tree, &[], out));
        assert_eq!(found, ["README.md:1", "docs/a.md:1"]);
    }

    #[test]
    fn a_document_that_code_cites_and_that_is_gone_is_found() {
        let files = [
            ("ARCHITECTURE.md", ""),
            (
                "crates/a/src/lib.rs",
                "//! See docs/gone.md.\n//! And docs/there.md, docs/*.md, docs/design/NNNN-x.md",
            ),
            ("docs/there.md", ""),
        ];
        assert_eq!(
            findings(&files, |tree, out| check(tree, &[], out)),
            ["crates/a/src/lib.rs:1"]
        );
    }

    #[test]
    fn a_crate_that_is_not_on_the_map_and_a_folder_that_is_gone_are_found() {
        let files = [
            (
                "ARCHITECTURE.md",
                "`crates/storage/io`\n`crates/storage/gone`",
            ),
            ("crates/storage/io", ""),
        ];
        let packages = [package("crates/storage/io"), package("crates/storage/i")];
        let found = findings(&files, |tree, out| check(tree, &packages, out));
        assert_eq!(found, ["ARCHITECTURE.md:1", "ARCHITECTURE.md:2"]);
    }
}
