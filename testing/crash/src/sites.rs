//! The places in the source of the product that ask the `io` traits for a sync.
//!
//! Read from the text, function by function: [`crate::syncs`] sees only the syncs that its workloads come to, and a new one that none
//! comes to would be taken away unnoticed.
//!
//! Not here: syncs of files that are no database's (the server's password and certificate), and those below the traits (`crates/storage/io`, but for
//! what the traits themselves do for their callers).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Functions that only hand a sync on: whoever calls them asked for it.
const HAND_ON: [&str; 2] = ["sync_data", "sync_dir"];
/// How a sync looks.
const CALLS: [&str; 3] = [".sync_data()", ".sync_dir(", ".sync_all()"];
/// Crates whose files are a database's.
const FOLDERS: [&str; 4] = ["storage", "transaction", "relation", "engine"];
/// The one file of the `io` crate that asks: a provided method of its trait.
const PROVIDED: &str = "storage/io/src/directory.rs";

/// Lines at which functions sync, by `file: function`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites(BTreeMap<String, Vec<u32>>);

impl Sites {
    /// Those of the product.
    ///
    /// # Errors
    /// If the sources cannot be read.
    pub fn of_product() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
        let mut files = Vec::new();
        for folder in FOLDERS {
            sources(&root.join(folder), &mut files)?;
        }
        let mut sites = Self::default();
        for file in files {
            let name = file.strip_prefix(&root).unwrap_or(&file);
            let name = name.display().to_string();
            if name.starts_with("storage/io/") && name != PROVIDED {
                continue;
            }
            sites.read(&name, &std::fs::read_to_string(&file)?);
        }
        Ok(sites)
    }

    fn read(&mut self, file: &str, text: &str) {
        let mut function = "";
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line == "#[cfg(test)]" {
                // Tests stand at the end of a file.
                break;
            }
            if line.starts_with("//") {
                continue;
            }
            if let Some(name) = function_in(line) {
                function = name;
            }
            if CALLS.iter().any(|call| line.contains(call)) && !HAND_ON.contains(&function) {
                let place = format!("{file}: {function}");
                self.0.entry(place).or_default().push(number);
            }
        }
    }

    /// Which sync of a function stands at a line, from 1, and how many it has; the nearest one before, as a statement may take several lines.
    pub fn which(&self, function: &str, line: u32) -> (usize, usize) {
        let lines = self.0.get(function).map_or(&[][..], Vec::as_slice);
        let at = lines.iter().position(|site| *site >= line);
        (at.unwrap_or(lines.len()) + 1, lines.len())
    }

    /// Every function, and how many syncs it asks for.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0
            .iter()
            .map(|(function, lines)| (function.as_str(), lines.len()))
    }
}

/// The name of the function that begins in a line.
fn function_in(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let words = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    let is_word = |word: &str| words.contains(&word) || word.starts_with("pub(");
    if !before.split_whitespace().all(is_word) {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0).then(|| &after[..end])
}

/// The sources below a folder that are the product's.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !["tests", "benches", "examples"].contains(&&*name) {
                sources(&path, files)?;
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_found_with_their_functions() {
        let text = "impl X {\n    pub(super) fn close(&self) {\n        self.file\n            .sync_data()\n            .and_then(|()| \
                    dir.sync_dir(\"\"))\n    }\n    // .sync_data() in words\n    fn sync_data(&self) {\n        below.sync_data()\n    \
                    }\n}\n#[cfg(test)]\nmod tests {\n    fn test() { file.sync_data() }\n}\n";
        let mut sites = Sites::default();
        sites.read("a.rs", text);
        assert_eq!(sites.iter().collect::<Vec<_>>(), [("a.rs: close", 2)]);
        assert_eq!(sites.which("a.rs: close", 3), (1, 2));
        assert_eq!(sites.which("a.rs: close", 5), (2, 2));
        assert_eq!(sites.which("a.rs: other", 5), (1, 0));
    }

    #[test]
    fn the_product_syncs() {
        let sites = Sites::of_product().unwrap();
        let found = |function: &str| sites.iter().find(|(name, _)| *name == function);
        assert!(found("storage/wal/src/round.rs: sync_all").is_some());
        assert!(found("storage/io/src/directory.rs: write_atomic").is_some());
    }
}
