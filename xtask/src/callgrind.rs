//! Runs programs under callgrind and reads what it writes: costs by thread, function and file, and who called whom.
//!
//! Instructions do not depend on what else the machine does. The caches are simulated with sizes of our own ([`CACHES`]), so that
//! misses do not depend on the machine either; they depend a little on where memory happens to lie.
//!
//! Layout of a file (callgrind's manual, "Callgrind Format Specification"): `events:` names the numbers of a line of costs, `fl=(1)
//! name` the file of the function that follows, `fn=(1) name` begins a function (`(1)` alone from the second time on; files and functions
//! are numbered apart), `fi=` and `fe=` change the file for the lines of costs that follow, where what is there was inlined from another file, or ends.
//! `cfi=` or `cfl=`, `cfn=` and `calls=` come before a line that holds the costs of the calls, what was called below included. Numbers at the
//! end of a line that are zero are left out. Lines of costs are in the order of their addresses.
//!
//! Whose the code of a library is that was inlined (`core`, of which half of a search consists): nothing says so, but what is beside
//! it in the program was mostly inlined with it. So its costs are those of the file of ours that was named last before it in the function
//! ([`Place::file`]).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is simulated: first-level caches of 32 KiB, and 8 MiB of the last level.
pub const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

/// What something cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Instructions; each byte of a string instruction counts.
    pub instructions: u64,
    /// Reads and writes of data that the first level did not hold.
    pub first_misses: u64,
    /// Those of them that the last level did not hold either.
    pub last_misses: u64,
}

impl Costs {
    /// Adds `more`.
    pub fn add(&mut self, more: Self) {
        self.instructions += more.instructions;
        self.first_misses += more.first_misses;
        self.last_misses += more.last_misses;
    }
}

/// Where something was spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function that was not inlined.
    pub function: String,
    /// The file of the workspace, from its root, whose code it is; of a function that has none, the file as the compiler names it.
    pub file: String,
}

/// One thread of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// What each place cost itself.
    pub places: BTreeMap<Place, Costs>,
    /// Instructions of calls, what was called below included, by caller and callee.
    pub calls: BTreeMap<(String, String), u64>,
}

impl Profile {
    /// What each function cost itself.
    pub fn functions(&self) -> BTreeMap<&str, Costs> {
        let mut functions = BTreeMap::<&str, Costs>::new();
        for (place, costs) in &self.places {
            functions.entry(&place.function).or_default().add(*costs);
        }
        functions
    }

    /// What the whole thread cost.
    pub fn sum(&self) -> Costs {
        let mut sum = Costs::default();
        for costs in self.places.values() {
            sum.add(*costs);
        }
        sum
    }
}

/// Runs `command` with its output thrown away, and returns its threads by callgrind's numbers; what is counted is what happens inside of
/// functions whose names `counted` matches (callgrind's pattern). Files are made in `folder`; the workspace is in `root`. Nothing if the
/// program failed.
///
/// # Errors
/// If valgrind is not there, or its files cannot be read.
pub fn profile(
    command: &[OsString],
    counted: &str,
    folder: &Path,
    root: &Path,
) -> io::Result<Option<BTreeMap<String, Profile>>> {
    let out = folder.join("calls");
    let status = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--separate-threads=yes",
            // Threads take turns in the order they came: with valgrind's own choice a background thread may wait for seconds, and what
            // it was to collect is then walked by the operations.
            "--fair-sched=yes",
            "--cache-sim=yes",
        ])
        .args(CACHES)
        .arg(format!("--toggle-collect={counted}"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .args(command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(missing)?;
    if !status.success() {
        return Ok(None);
    }
    let mut threads = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(thread) = name.strip_prefix("calls-") {
            // Names of symbols are what compilers made of them.
            let text = std::fs::read(&path)?;
            let profile = parse(&String::from_utf8_lossy(&text), &root.to_string_lossy());
            threads.insert(thread.to_owned(), profile);
        }
    }
    Ok(Some(threads))
}

/// What valgrind calls itself.
///
/// # Errors
/// If it is not there.
pub fn version() -> io::Result<String> {
    let output = Command::new("valgrind")
        .arg("--version")
        .output()
        .map_err(missing)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn missing(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    io::Error::new(
        error.kind(),
        "there is no valgrind on this machine; distributions have it as the package `valgrind`",
    )
}

/// Names that come once in a file of callgrind's, by their numbers.
#[derive(Default)]
struct Names<'t>(BTreeMap<&'t str, &'t str>);

impl<'t> Names<'t> {
    fn read(&mut self, text: &'t str) -> &'t str {
        let (number, name) = text_of(text);
        if !name.is_empty() {
            self.0.insert(number, name);
        }
        self.0.get(number).copied().unwrap_or(number)
    }
}

/// Reads one file; `root` is the workspace's.
fn parse(text: &str, root: &str) -> Profile {
    let mut profile = Profile::default();
    let (mut functions, mut files) = (Names::default(), Names::default());
    let mut events = Vec::new();
    let (mut place, mut callee) = (Place::default(), "");
    // The file of the function to come.
    let mut own = "";
    let mut of_call = false;
    for line in text.lines() {
        if let Some(list) = line.strip_prefix("events: ") {
            events = list.split(' ').collect();
        } else if let Some(text) = line.strip_prefix("fl=") {
            own = files.read(text);
        } else if let Some(text) = line.strip_prefix("fn=") {
            functions.read(text).clone_into(&mut place.function);
            let file = ours(own, root).unwrap_or(own);
            file.clone_into(&mut place.file);
        } else if let Some(text) = line.strip_prefix("fi=").or(line.strip_prefix("fe=")) {
            if let Some(file) = ours(files.read(text), root) {
                file.clone_into(&mut place.file);
            }
        } else if let Some(text) = line.strip_prefix("cfi=").or(line.strip_prefix("cfl=")) {
            files.read(text);
        } else if let Some(text) = line.strip_prefix("cfn=") {
            callee = functions.read(text);
        } else if line.starts_with("calls=") {
            of_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let costs = costs(&events, line);
            if std::mem::take(&mut of_call) {
                let call = (place.function.clone(), callee.to_owned());
                *profile.calls.entry(call).or_default() += costs.instructions;
            } else if let Some(known) = profile.places.get_mut(&place) {
                known.add(costs);
            } else {
                profile.places.insert(place.clone(), costs);
            }
        }
    }
    profile
}

/// The file from the root, if it is one of the workspace.
fn ours<'f>(file: &'f str, root: &str) -> Option<&'f str> {
    let file = match file.strip_prefix(root) {
        Some(inside) => inside.trim_start_matches('/'),
        None => file,
    };
    (file.starts_with("crates/") || file.starts_with("bench/")).then_some(file)
}

/// `(number) name`, of which the name comes once in a file.
fn text_of(text: &str) -> (&str, &str) {
    let end = text.find(')').map_or(text.len(), |at| at + 1);
    (&text[..end], text[end..].trim())
}

fn costs(events: &[&str], line: &str) -> Costs {
    let mut costs = Costs::default();
    // The first word is the line of the source.
    for (event, number) in events.iter().zip(line.split(' ').skip(1)) {
        let number: u64 = number.parse().unwrap_or(0);
        match *event {
            "Ir" => costs.instructions += number,
            "D1mr" | "D1mw" => costs.first_misses += number,
            "DLmr" | "DLmw" => costs.last_misses += number,
            _ => {}
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(instructions: u64, first_misses: u64, last_misses: u64) -> Costs {
        Costs {
            instructions,
            first_misses,
            last_misses,
        }
    }

    #[test]
    fn functions_and_calls_are_read_with_names_that_come_once() {
        let text = "version: 1\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\nsummary: 9 9\n\n\
            fl=(1) src/slot.rs\nfn=(1) wal::append\n31 100 2 0 9 4 1 9 1 2\n+1 20\n\
            cfi=(3) other.rs\ncfn=(2) memcpy\ncalls=2 +3 \n* 1000 1 1 1 50 1 1 7\n-3 5\n\n\
            fn=(2)\n12 700 0 0 0 3\nfn=(1)\n* 1\n";
        let profile = parse(text, "/w");
        let functions = profile.functions();
        assert_eq!(functions["wal::append"], costs(126, 5, 3));
        assert_eq!(functions["memcpy"], costs(700, 3, 0));
        assert_eq!(functions.len(), 2);
        assert_eq!(profile.sum(), costs(826, 8, 3));
        let call = ("wal::append".to_owned(), "memcpy".to_owned());
        assert_eq!(profile.calls, BTreeMap::from([(call, 1000)]));
    }

    #[test]
    fn costs_of_inlined_code_are_those_of_its_file_and_a_librarys_are_its_neighbours() {
        let text = "events: Ir\n\n\
            fl=(1) /w/crates/engine/src/transaction.rs\nfn=(1) vellum::get\n10 3\n\
            fi=(2) /rustc/abc/library/core/src/option.rs\n5 4\n\
            fi=(3) crates/storage/buffer/src/guard.rs\n7 10\n\
            fi=(2)\n9 20\n\
            cfi=(4) /w/crates/storage/wal/src/slot.rs\ncfn=(2) wal::append\ncalls=1 8\n9 5000\n+2 2\n\
            fe=(1)\n11 100\n\
            fl=(4)\nfn=(2)\n8 1000\nfi=(2)\n9 30\n\
            fl=(5) ./malloc/malloc.c\nfn=(3) free\n9 7\n\
            fl=(6) /elsewhere/crates/b.rs\nfn=(4) other\n9 1\nfi=(2)\n1 1\n";
        let profile = parse(text, "/w");
        let place = |function: &str, file: &str| Place {
            function: function.to_owned(),
            file: file.to_owned(),
        };
        let expected = [
            (place("free", "./malloc/malloc.c"), 7),
            (place("other", "/elsewhere/crates/b.rs"), 2),
            (
                place("vellum::get", "crates/engine/src/transaction.rs"),
                107,
            ),
            (
                place("vellum::get", "crates/storage/buffer/src/guard.rs"),
                32,
            ),
            (place("wal::append", "crates/storage/wal/src/slot.rs"), 1030),
        ];
        let expected = expected.map(|(place, instructions)| (place, costs(instructions, 0, 0)));
        assert_eq!(profile.places, BTreeMap::from(expected));
        let call = ("vellum::get".to_owned(), "wal::append".to_owned());
        assert_eq!(profile.calls, BTreeMap::from([(call, 5000)]));
    }

    #[test]
    fn what_is_not_there_is_named_with_its_package() {
        let error = missing(io::ErrorKind::NotFound.into());
        assert!(error.to_string().contains("package `valgrind`"), "{error}");
        let other = missing(io::ErrorKind::PermissionDenied.into());
        assert_eq!(other.kind(), io::ErrorKind::PermissionDenied);
        assert!(!other.to_string().contains("package"), "{other}");
    }
}
