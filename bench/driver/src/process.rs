//! Runs of a comparison as processes of their own: this program, asked for one run on one engine. A peer that takes its process with it (LMDB on
//! a full disk gets SIGBUS, C libraries abort, the kernel kills who has too much memory) fails alone, and every run begins with
//! memory that nobody has used.
//!
//! The summary comes through a file beside the run's database, samples as lines, and why a run failed is what it said on standard error.
//!
//! Concurrency: a process is in a group of its own, so that a terminal's interrupt reaches us only; it is handed on once. One whose parent was
//! killed ends by itself when it has a sample to tell.

use crate::cli::Workload;
use crate::engines::{EngineName, Runner};
use crate::report::Summary;
use crate::{Failure, compare, interrupt};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often it is looked whether we were asked to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Lines of standard error that a failure quotes, at most.
const QUOTED: usize = 5;

/// Makes processes.
pub(crate) struct Processes {
    program: PathBuf,
}

impl Processes {
    /// Processes of this program.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program }
    }
}

impl Runner for Processes {
    fn check(&self, engine: EngineName, workload: &Workload) -> Result<(), String> {
        engine.check(workload)
    }

    fn measure(
        &mut self,
        engine: EngineName,
        workload: &Workload,
        words: &[String],
        lines: &mut dyn Write,
    ) -> Result<Summary, Failure> {
        let document = beside(&workload.settings().data)?;
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .args(["--engine", engine.name(), "--json"])
            .arg(&document)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let ended = run(&mut command, lines);
        // A run that failed leaves none, but for one that was killed.
        let written = fs::read_to_string(&document).unwrap_or_default();
        let _ = fs::remove_file(&document);
        let (status, said) = ended?;
        if written.is_empty() {
            return Err(failure(status, &said));
        }
        Summary::read(written)
            .map_err(|error| Failure::Process(format!("its summary cannot be read: {error}")))
    }
}

/// Where the summary of a run goes whose database is there.
fn beside(data: &Path) -> Result<PathBuf, Failure> {
    if let Some(parent) = data.parent() {
        fs::create_dir_all(parent).map_err(compare::failed("create", parent))?;
    }
    let name = data.file_name().unwrap_or(OsStr::new("run"));
    let mut name = OsString::from(name);
    name.push(".json");
    Ok(data.with_file_name(name))
}

/// Runs it to its end. Returns how it ended, and what it said on standard error.
fn run(command: &mut Command, lines: &mut dyn Write) -> Result<(ExitStatus, String), Failure> {
    let program = Path::new(command.get_program()).to_owned();
    let failed = |action| compare::failed(action, &program);
    let mut child = command.spawn().map_err(failed("run"))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let said = scope.spawn(|| {
            let mut said = Vec::new();
            // What cannot be read was not said.
            let _ = err.map(|mut err| err.read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        });
        let (sender, receiver) = channel();
        scope.spawn(move || {
            let all = out.map(|out| BufReader::new(out).lines());
            // Who gets them may have gone: then nobody wants more.
            let _ = all
                .into_iter()
                .flatten()
                .try_for_each(|line| sender.send(line));
        });
        let handed = hand_on(&receiver, &mut child, lines);
        drop(receiver);
        if handed.is_err() {
            // Nobody reads what it tells. It may have ended by itself.
            let _ = child.kill();
        }
        let status = child.wait().map_err(failed("wait for"))?;
        let said = said.join().unwrap_or_default();
        handed
            .map_err(compare::failed("write", Path::new("standard output")))
            .map(|()| (status, said))
    })
}

/// Hands lines on until there are no more; a wish to stop goes the other way.
fn hand_on(
    receiver: &Receiver<io::Result<String>>,
    child: &mut Child,
    lines: &mut dyn Write,
) -> io::Result<()> {
    let mut told = false;
    loop {
        if interrupt::requested() && !told {
            told = true;
            let id = child.id().to_string();
            Command::new("kill").args(["-INT", "--", &id]).status()?;
        }
        match receiver.recv_timeout(LOOK) {
            Ok(line) => {
                writeln!(lines, "{}", line?)?;
                lines.flush()?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Why a run has left no summary.
fn failure(status: ExitStatus, said: &str) -> Failure {
    let own = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("vellum-bench: "));
    let quoted = || {
        let all: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        all[all.len().saturating_sub(QUOTED)..].join("; ")
    };
    let told = own.map_or_else(quoted, str::to_owned);
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(interrupt::EXIT_CODE) => Failure::Interrupted,
        (Some(2), _) => Failure::Usage(told),
        (_, Some(signal)) => {
            let told = if told.is_empty() {
                told
            } else {
                format!(": {told}")
            };
            Failure::Process(format!("its process was ended by signal {signal}{told}"))
        }
        _ if told.is_empty() => Failure::Process(format!("its process failed: {status}")),
        _ => Failure::Process(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command as Asked};
    use clap::Parser;
    use std::os::unix::fs::PermissionsExt;
    use vellum_workload::engine::Description;

    /// What comes of a run of a program that is this script.
    fn measure(script: &str) -> (Result<Summary, Failure>, String) {
        let folder = tempfile::tempdir().expect("a directory");
        let program = folder.path().join("program");
        let text = format!("#!/bin/sh\n{script}\n");
        fs::write(&program, text).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        let data = folder.path().join("below/data").display().to_string();
        let words = ["kv", "--data", &data].map(str::to_owned);
        let parsed = Cli::try_parse_from(
            ["vellum-bench"]
                .iter()
                .copied()
                .chain(words.iter().map(String::as_str)),
        );
        let Ok(Asked::Run(workload)) = parsed.map(|cli| cli.command) else {
            panic!("a workload")
        };
        let mut lines = Vec::new();
        let measured =
            Processes::new(program).measure(EngineName::Lmdb, &workload, &words, &mut lines);
        assert!(!folder.path().join("below/data.json").exists());
        (measured, String::from_utf8(lines).expect("text"))
    }

    fn why(script: &str) -> String {
        let failure = measure(script).0.expect_err("it failed");
        assert_eq!(failure.exit_code(), 1, "{failure}");
        failure.to_string()
    }

    #[test]
    fn a_run_that_a_signal_ends_is_a_failure_that_names_it() {
        let why = why("echo 'the map is gone' >&2; kill -BUS $$");
        assert!(why.contains("signal 7: the map is gone"), "{why}");
    }

    #[test]
    fn a_run_that_fails_says_why() {
        let told = why("echo 'vellum-bench: cannot run kv: no room' >&2; echo more >&2; exit 1");
        assert_eq!(told, "cannot run kv: no room");
        assert!(why("exit 1").contains("exit status: 1"));
        assert!(why("echo no summary >\"$7\"").contains("cannot be read"));
        let usage = measure("echo 'vellum-bench: no such flag' >&2; exit 2").0;
        assert!(matches!(usage, Err(Failure::Usage(_))));
        let stopped = measure("exit 130").0;
        assert!(matches!(stopped, Err(Failure::Interrupted)));
    }

    #[test]
    fn a_run_is_asked_for_its_engine_and_its_lines_and_summary_come_back() {
        let flags = "vellum-bench tpcc --hold-snapshot-at 1";
        let cli = Cli::try_parse_from(flags.split_whitespace()).expect("flags");
        let Asked::Run(workload) = cli.command else {
            panic!("a workload")
        };
        let engine = Description {
            name: "that".to_owned(),
            version: "1".to_owned(),
            settings: vec![("way".to_owned(), "a \"quoted\" one".to_owned())],
        };
        let summary = Summary::new(&workload, &workload.settings(), &engine);
        let text = crate::report::json(&summary).expect("a document");
        let script = format!("echo \"$@\"; cat >\"$7\" <<'END'\n{text}END\nexit 1");
        let (measured, lines) = measure(&script);
        let measured = measured.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(crate::report::json(&measured).expect("a document"), text);
        assert_eq!(
            measured.engine_settings(),
            "version 1; way: a \"quoted\" one"
        );
        assert!(lines.starts_with("kv --data "), "{lines}");
        assert!(lines.contains(" --engine lmdb --json "), "{lines}");
    }
}
