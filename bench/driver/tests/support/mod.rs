//! What the tests of the program share: it is run in this process, on any engine.
#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use vellum_bench::cli::Settings;
use vellum_bench::{Output, run};
use vellum_workload::engine::{Engine, Result};

/// How a run of the program ended.
pub struct Ended {
    pub code: u8,
    pub lines: Vec<Value>,
    pub table: String,
}

/// Runs the program with `arguments`, the data in `directory`.
pub fn bench<E: Engine>(
    arguments: &str,
    directory: &Path,
    open: impl FnMut(&Settings) -> Result<E>,
) -> Ended {
    let data = directory.join("data");
    program(&format!("{arguments} --data {}", data.display()), open)
}

/// Runs the program with `arguments` alone.
pub fn program<E: Engine>(arguments: &str, open: impl FnMut(&Settings) -> Result<E>) -> Ended {
    let mut words: Vec<OsString> = vec!["vellum-bench".into()];
    words.extend(arguments.split_whitespace().map(OsString::from));
    let (mut lines, mut table) = (Vec::new(), Vec::new());
    let code = run(
        words,
        open,
        Output {
            lines: &mut lines,
            table: &mut table,
        },
    );
    let lines = String::from_utf8(lines).unwrap();
    Ended {
        code,
        lines: lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        table: String::from_utf8(table).unwrap(),
    }
}

/// What a file says.
pub fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Makes the directory look used: the reference engine leaves no files.
pub fn occupy(directory: &Path) {
    std::fs::write(directory.join("data/file"), b"").unwrap();
}
