//! Runs programs under callgrind and reads what it writes: costs by thread and function, and who called whom.
//!
//! Instructions do not depend on what else the machine does. The caches are simulated with sizes of our own ([`CACHES`]), so that
//! misses do not depend on the machine either; they depend a little on where memory happens to lie.
//!
//! Layout of a file (callgrind's manual, "Callgrind Format Specification"): `events:` names the numbers of a line of costs, `fn=(1)
//! name` begins a function (`fn=(1)` from the second time on), `cfn=` and `calls=` come before a line that holds the costs of the
//! calls, what was called below included. Numbers at the end of a line that are zero are left out.

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

    /// What is left without `less`, zero where that is more.
    #[must_use]
    pub fn without(self, less: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(less.instructions),
            first_misses: self.first_misses.saturating_sub(less.first_misses),
            last_misses: self.last_misses.saturating_sub(less.last_misses),
        }
    }
}

/// One thread of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// What each function cost itself.
    pub functions: BTreeMap<String, Costs>,
    /// Instructions of calls, what was called below included, by caller and callee.
    pub calls: BTreeMap<(String, String), u64>,
}

/// Runs `command` with its output thrown away, and returns its threads by callgrind's numbers. Its files are made in `folder`. Nothing if
/// the program failed.
///
/// # Errors
/// If valgrind is not there, or its files cannot be read.
pub fn profile(
    command: &[OsString],
    folder: &Path,
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
            threads.insert(thread.to_owned(), parse(&String::from_utf8_lossy(&text)));
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

/// Reads one file.
fn parse(text: &str) -> Profile {
    let mut profile = Profile::default();
    let mut names = BTreeMap::<&str, &str>::new();
    let mut events = Vec::new();
    let (mut function, mut callee) = (String::new(), String::new());
    let mut of_call = false;
    let mut name = |text| {
        let (number, name) = text_of(text);
        if !name.is_empty() {
            names.insert(number, name);
        }
        names.get(number).copied().unwrap_or(number).to_owned()
    };
    for line in text.lines() {
        if let Some(list) = line.strip_prefix("events: ") {
            events = list.split(' ').collect();
        } else if let Some(text) = line.strip_prefix("fn=") {
            function = name(text);
        } else if let Some(text) = line.strip_prefix("cfn=") {
            callee = name(text);
        } else if line.starts_with("calls=") {
            of_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let costs = costs(&events, line);
            if std::mem::take(&mut of_call) {
                let call = (function.clone(), callee.clone());
                *profile.calls.entry(call).or_default() += costs.instructions;
            } else {
                let own = profile.functions.entry(function.clone()).or_default();
                own.add(costs);
            }
        }
    }
    profile
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

    #[test]
    fn functions_and_calls_are_read_with_names_that_come_once() {
        let text = "version: 1\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\nsummary: 9 9\n\n\
            fl=(1) src/slot.rs\nfn=(1) wal::append\n31 100 2 0 9 4 1 9 1 2\n+1 20\n\
            cfi=(3) other.rs\ncfn=(2) memcpy\ncalls=2 +3 \n* 1000 1 1 1 50 1 1 7\n-3 5\n\n\
            fn=(2)\n12 700 0 0 0 3\nfn=(1)\n* 1\n";
        let profile = parse(text);
        let costs = |instructions, first_misses, last_misses| Costs {
            instructions,
            first_misses,
            last_misses,
        };
        assert_eq!(profile.functions["wal::append"], costs(126, 5, 3));
        assert_eq!(profile.functions["memcpy"], costs(700, 3, 0));
        assert_eq!(profile.functions.len(), 2);
        let call = ("wal::append".to_owned(), "memcpy".to_owned());
        assert_eq!(profile.calls, BTreeMap::from([(call, 1000)]));
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
