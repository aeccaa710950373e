//! The files that the rules look at: everything that is written by hand and lies in the repository.

use super::regions::{self, Regions};
use super::source::{self, Line};
use std::path::Path;

/// Folders that are searched, beside the files of the top level.
const FOLDERS: [&str; 9] = [
    ".cargo", ".ci", ".github", "bench", "bindings", "crates", "docs", "testing", "xtask",
];

/// One file.
#[derive(Debug)]
pub struct File {
    /// Path from the root of the repository, with slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// For Rust files: the lines taken apart; else empty.
    pub lines: Vec<Line>,
    /// For Rust files, line by line: compiled for tests only.
    pub test: Vec<bool>,
}

impl File {
    /// True for Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// The repository.
#[derive(Debug)]
pub struct Tree {
    /// Every file, ordered by path.
    pub files: Vec<File>,
    /// Every folder below [`FOLDERS`], as paths from the root.
    pub folders: Vec<String>,
}

impl Tree {
    /// Reads the repository at `root`. Files that are not text are left out.
    ///
    /// # Errors
    /// If a folder or a file cannot be read.
    pub fn read(root: &Path) -> std::io::Result<Self> {
        let mut texts = Vec::new();
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(root)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file() && name != "Cargo.lock" && name != ".git" {
                read_text(&entry.path(), name, &mut texts)?;
            } else if FOLDERS.contains(&name.as_str()) {
                walk(&entry.path(), &name, &mut texts, &mut folders)?;
            }
        }
        Ok(Self::build(texts, folders))
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let texts = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self::build(texts.collect(), Vec::new())
    }

    fn build(mut texts: Vec<(String, String)>, folders: Vec<String>) -> Self {
        texts.sort();
        let mut test_paths: Vec<String> = Vec::new();
        let mut files: Vec<File> = Vec::new();
        for (path, text) in texts {
            let lines = if path.ends_with(".rs") {
                source::split(&text)
            } else {
                Vec::new()
            };
            let Regions { test, test_modules } = regions::find(&lines);
            test_paths.extend(test_modules.iter().map(|name| module_path(&path, name)));
            files.push(File {
                path,
                text,
                lines,
                test,
            });
        }
        for file in &mut files {
            let of_tests = file
                .path
                .split('/')
                .any(|part| ["tests", "benches", "examples"].contains(&part));
            let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
            let declared = test_paths.iter().any(|module| {
                stem.strip_prefix(module.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            if of_tests || declared {
                file.test.fill(true);
            }
        }
        Self { files, folders }
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .ok()
            .map(|at| &self.files[at])
    }

    /// True if `path` is a file or a folder of the repository.
    pub fn exists(&self, path: &str) -> bool {
        self.file(path).is_some() || self.folders.iter().any(|folder| folder == path)
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

/// Path without `.rs` of module `name` that the file at `parent` declares.
fn module_path(parent: &str, name: &str) -> String {
    let (folder, file) = parent.rsplit_once('/').unwrap_or(("", parent));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{name}"),
        _ => format!("{folder}/{}/{name}", file.trim_end_matches(".rs")),
    }
}

fn walk(
    folder: &Path,
    path: &str,
    texts: &mut Vec<(String, String)>,
    folders: &mut Vec<String>,
) -> std::io::Result<()> {
    folders.push(path.to_owned());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let below = format!("{path}/{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with("target") {
            walk(&entry.path(), &below, texts, folders)?;
        } else if kind.is_file() {
            read_text(&entry.path(), below, texts)?;
        }
    }
    Ok(())
}

fn read_text(file: &Path, path: String, texts: &mut Vec<(String, String)>) -> std::io::Result<()> {
    if let Ok(text) = String::from_utf8(std::fs::read(file)?) {
        texts.push((path, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_declared_for_tests_is_test_code_with_everything_below_it() {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "#[cfg(test)]\nmod model;\nmod real;"),
            ("crates/x/src/model.rs", "a();"),
            ("crates/x/src/model/deep.rs", "a();"),
            ("crates/x/src/real.rs", "a();\n#[cfg(test)] mod checks;"),
            ("crates/x/src/real/checks.rs", "a();"),
            ("crates/x/tests/all.rs", "a();"),
        ]);
        let tested = |path: &str| tree.file(path).unwrap().test.first().copied();
        assert_eq!(tested("crates/x/src/model.rs"), Some(true));
        assert_eq!(tested("crates/x/src/model/deep.rs"), Some(true));
        assert_eq!(tested("crates/x/src/real.rs"), Some(false));
        assert_eq!(tested("crates/x/src/real/checks.rs"), Some(true));
        assert_eq!(tested("crates/x/tests/all.rs"), Some(true));
    }
}
