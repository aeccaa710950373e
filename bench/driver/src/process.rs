//! Runs of a comparison as processes of their own: this program, asked for one run on one engine. A peer that takes its
//! process with it (LMDB on a full disk gets SIGBUS, C libraries abort, the kernel kills who has too much memory) fails alone,
//! and every run begins with memory that nobody has used.
//!
//! The summary comes through a file beside the run's database, of a name that nobody had, and counts only where the process ended
//! by itself, as one that has a summary does. Samples come as lines. Why a run failed is what it said on standard error, which is
//! handed on whole then. A file that it could not use is such a failure, too: its engine is left out.
//!
//! Concurrency: a process is in a group of its own, so that a terminal's interrupt reaches us only; it is handed on once, and nothing
//! is started behind it. One whose parent is gone, however that ended, ends at the end of its standard input, a pipe that only
//! we hold.

use crate::cli::Workload;
use crate::engines::{EngineName, Runner};
use crate::measure::Limit;
use crate::report::Summary;
use crate::{Failure, compare, interrupt, progress};
use indicatif::ProgressBar;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// What the processes are called in lists of them and in their own messages.
const NAME: &str = "vellum-bench";
/// How often it is looked whether we were asked to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Lines of standard error that a failure quotes, at most.
const QUOTED: usize = 5;

/// Makes processes.
pub(crate) struct Processes<W> {
    program: PathBuf,
    /// Where it goes what a run that failed has said.
    errors: W,
    /// Whether we were asked to stop.
    stopped: Box<dyn Fn() -> bool>,
}

impl<W: Write> Processes<W> {
    /// Processes of this program.
    pub(crate) fn new(program: PathBuf, errors: W) -> Self {
        Self {
            program,
            errors,
            stopped: Box::new(interrupt::requested),
        }
    }

    /// Runs it to its end. Returns how it ended, and what it said on standard error.
    fn run(
        &self,
        command: &mut Command,
        bar: &ProgressBar,
        lines: &mut dyn Write,
    ) -> Result<(ExitStatus, String), Failure> {
        let failed = |action| compare::failed(action, &self.program);
        let mut child = command.spawn().map_err(failed("run"))?;
        // Held until it has ended: its end is that of the process.
        let input = child.stdin.take();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let ended = std::thread::scope(|scope| {
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
            let handed = self.hand_on(&receiver, &mut child, bar, lines);
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
        });
        drop(input);
        ended
    }

    /// Hands lines on until there are no more; a wish to stop goes the other way.
    fn hand_on(
        &self,
        receiver: &Receiver<io::Result<String>>,
        child: &mut Child,
        bar: &ProgressBar,
        lines: &mut dyn Write,
    ) -> io::Result<()> {
        let mut told = false;
        loop {
            if !told && (self.stopped)() {
                told = true;
                let id = child.id().to_string();
                Command::new("kill").args(["-INT", "--", &id]).status()?;
            }
            match receiver.recv_timeout(LOOK) {
                Ok(line) => {
                    let line = line?;
                    progress::line(bar, &line);
                    writeln!(lines, "{line}")?;
                    lines.flush()?;
                }
                Err(RecvTimeoutError::Timeout) => bar.tick(),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }
}

impl<W: Write> Runner for Processes<W> {
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
        if (self.stopped)() {
            return Err(Failure::Interrupted);
        }
        let document = Document::beside(&workload.settings().data)?;
        let mut command = Command::new(&self.program);
        command
            .arg0(NAME)
            .args(words)
            .args(["--engine", engine.name(), "--json"])
            .arg(&document.0)
            .arg("--end-with-input")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let bar = progress::seconds(match workload.common().limit() {
            Limit::Seconds(seconds) => Some(seconds),
            Limit::Operations(_) => None,
        });
        let ended = self.run(&mut command, &bar, lines);
        bar.finish_and_clear();
        let (status, said) = ended?;
        let written = fs::read_to_string(&document.0).unwrap_or_default();
        if !written.is_empty() && has_summary(status) {
            return Summary::read(written)
                .map_err(|error| Failure::Process(format!("its summary cannot be read: {error}")));
        }
        // It may have been told before it listened.
        if (self.stopped)() {
            return Err(Failure::Interrupted);
        }
        for line in said.lines() {
            // Nobody may read it; why it failed is told all the same.
            let _ = writeln!(self.errors, "{}: {line}", engine.name());
        }
        Err(failure(status, &said))
    }
}

/// A file for the summary of a run, gone with this.
struct Document(PathBuf);

impl Document {
    /// One beside the run's database, of a name that nobody had.
    fn beside(data: &Path) -> Result<Self, Failure> {
        if let Some(parent) = data.parent() {
            fs::create_dir_all(parent).map_err(compare::failed("create", parent))?;
        }
        let mut number = 0_u32;
        loop {
            let mut name = OsString::from(data.file_name().unwrap_or(OsStr::new("run")));
            name.push(format!(".{}-{number}.json", std::process::id()));
            let path = data.with_file_name(name);
            match File::create_new(&path) {
                Ok(_) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(compare::failed("create", &path)(error)),
            }
        }
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether one that ended so has written its summary whole: consistent, inconsistent, or interrupted.
fn has_summary(status: ExitStatus) -> bool {
    let codes = [0, 1, i32::from(interrupt::EXIT_CODE)];
    status.code().is_some_and(|code| codes.contains(&code))
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
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;
    use vellum_workload::engine::Description;

    /// What stands in the documents of runs.
    const OLD: &str = "what was there";

    /// What came of a run.
    struct Came {
        measured: Result<Summary, Failure>,
        lines: String,
        errors: String,
    }

    /// What comes of a run of a program that is this script, whose `$7` is its document.
    fn measure(script: &str) -> Came {
        measure_until(script, || false)
    }

    fn measure_until(script: &str, stopped: impl Fn() -> bool + 'static) -> Came {
        let folder = tempfile::tempdir().expect("a directory");
        let program = folder.path().join("program");
        let text = format!("#!/bin/sh\n{script}\n");
        fs::write(&program, text).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        let below = folder.path().join("below");
        // Somebody's files: by the name of the database, and by that which a run would have first.
        fs::create_dir(&below).expect("a directory");
        let kept = [
            "data.json".to_owned(),
            format!("data.{}-0.json", std::process::id()),
        ];
        for name in &kept {
            fs::write(below.join(name), OLD).expect("a file");
        }
        let data = below.join("data").display().to_string();
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
        let (mut lines, mut errors) = (Vec::new(), Vec::new());
        let mut processes = Processes {
            program,
            errors: &mut errors,
            stopped: Box::new(stopped),
        };
        let measured = processes.measure(EngineName::Lmdb, &workload, &words, &mut lines);
        for name in &kept {
            let left = fs::read_to_string(below.join(name)).expect("it is still there");
            assert_eq!(left, OLD, "{name}");
        }
        assert_eq!(
            fs::read_dir(&below).expect("its folder").count(),
            2,
            "nothing else"
        );
        Came {
            measured,
            lines: String::from_utf8(lines).expect("text"),
            errors: String::from_utf8(errors).expect("text"),
        }
    }

    fn why(script: &str) -> String {
        let failure = measure(script).measured.expect_err("it failed");
        assert_eq!(failure.exit_code(), 1, "{failure}");
        failure.to_string()
    }

    /// A summary, and a script's lines that write it.
    fn summary() -> (String, String) {
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
        let script = format!("cat >\"$7\" <<'END'\n{text}END");
        (text, script)
    }

    #[test]
    fn a_run_that_a_signal_ends_is_a_failure_that_names_it() {
        let why = why("echo 'the map is gone' >&2; kill -BUS $$");
        assert!(why.contains("signal 7: the map is gone"), "{why}");
    }

    #[test]
    fn a_summary_counts_where_its_run_ended_by_itself_only() {
        let (_, writes) = summary();
        for ends in ["kill -BUS $$", "exit 3", "exit 2"] {
            let came = measure(&format!("{writes}\n{ends}"));
            assert!(came.measured.is_err(), "{ends}");
        }
        for ends in ["exit 0", "exit 1", "exit 130"] {
            let came = measure(&format!("{writes}\n{ends}"));
            assert!(came.measured.is_ok(), "{ends}");
        }
    }

    #[test]
    fn a_wish_to_stop_is_no_failure_of_a_run() {
        let came = measure_until("echo it runs", || true);
        assert!(matches!(came.measured, Err(Failure::Interrupted)));
        assert_eq!(came.lines, "", "nothing is started");
        // It is told before it listens, and fails of it; or by something else.
        // Who started the tests in the background of a shell has left SIGINT ignored, which scripts cannot take back.
        for script in [
            "exec env --default-signal=INT sleep 1000",
            "exec env --default-signal=INT sh -c \"trap 'exit 1' INT; while :; do sleep 0.05; done\"",
        ] {
            let looks = Cell::new(0);
            let came = measure_until(script, move || looks.replace(looks.get() + 1) > 0);
            let Err(failure) = came.measured else {
                panic!("it has no summary")
            };
            assert!(matches!(failure, Failure::Interrupted), "{failure}");
            assert_eq!(came.errors, "");
        }
    }

    #[test]
    fn a_run_can_see_that_its_parent_is_there() {
        // It would read nothing at once, if there were no pipe, and it is no terminal of somebody's.
        let came = measure("[ -p /dev/stdin ] && echo \"$8\"");
        assert_eq!(came.lines, "--end-with-input\n");
    }

    #[test]
    fn a_run_that_fails_says_why() {
        let script = "echo 'vellum-bench: cannot run kv: no room' >&2; echo more >&2; exit 1";
        assert_eq!(why(script), "cannot run kv: no room");
        let whole = "lmdb: vellum-bench: cannot run kv: no room\nlmdb: more\n";
        assert_eq!(measure(script).errors, whole);
        assert!(why("exit 1").contains("exit status: 1"));
        assert!(why("echo no summary >\"$7\"").contains("cannot be read"));
        let usage = measure("echo 'vellum-bench: no such flag' >&2; exit 2").measured;
        assert!(matches!(usage, Err(Failure::Usage(_))));
        let stopped = measure("exit 130").measured;
        assert!(matches!(stopped, Err(Failure::Interrupted)));
    }

    #[test]
    fn a_run_is_asked_for_its_engine_and_its_lines_and_summary_come_back() {
        let (text, writes) = summary();
        let came = measure(&format!("echo \"$@\"; echo a table >&2; {writes}\nexit 1"));
        let measured = came.measured.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(crate::report::json(&measured).expect("a document"), text);
        assert_eq!(
            measured.told().collect::<Vec<_>>(),
            [("way", "a \"quoted\" one")]
        );
        let lines = came.lines;
        assert!(lines.starts_with("kv --data "), "{lines}");
        assert!(lines.contains(" --engine lmdb --json "), "{lines}");
        // The table of a run that has a summary is nobody's matter.
        assert_eq!(came.errors, "");
    }
}
