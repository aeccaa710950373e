//! Runs the steps of a chore one after the other and says what each took.
//!
//! Every step runs even if one before it failed, so that one run shows all that is wrong.

use crate::tally::Tally;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest time that the tests of one step may take where nobody watches (`CI` is set): a test that
/// hangs is a failure there, not a job without an end.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// The steps so far.
#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<(String, Duration, bool)>,
    /// What the tests of all steps add up to.
    pub tally: Tally,
}

impl Steps {
    /// Runs `action` as a step; it answers whether all is well.
    pub fn step(&mut self, name: &str, action: impl FnOnce() -> std::io::Result<bool>) {
        println!("\n=== {name}");
        let start = Instant::now();
        let ok = action().unwrap_or_else(|error| {
            println!("{name}: {error}");
            false
        });
        self.done.push((name.to_owned(), start.elapsed(), ok));
    }

    /// Runs a program as a step.
    pub fn program(&mut self, name: &str, command: &mut Command) {
        self.step(name, || {
            Ok(command.stdin(Stdio::null()).status()?.success())
        });
    }

    /// Runs test binaries as a step and counts their tests; fewer than `least` of them are a failure
    /// too (a suite that silently runs nothing protects nothing).
    pub fn tests(&mut self, name: &str, least: u64, command: &mut Command) {
        let mut tally = Tally::default();
        self.step(name, || {
            let limit = std::env::var_os("CI").map(|_| LIMIT);
            let mut ok = stream(command, limit, |line| tally.line(line))?;
            if ok && tally.seen() < least {
                println!("{name}: {} tests ran, {least} are written", tally.seen());
                ok = false;
            }
            Ok(ok)
        });
        let ok = self.done.last().is_some_and(|(_, _, ok)| *ok);
        tally.close(ok);
        self.tally.add(tally);
    }

    /// Prints durations and failures. True if every step is well.
    pub fn summary(&self) -> bool {
        println!("\n=== steps");
        for (name, duration, ok) in &self.done {
            println!(
                "{:>7.1} s  {}  {name}",
                duration.as_secs_f64(),
                if *ok { "ok    " } else { "FAILED" }
            );
        }
        self.done.iter().all(|(_, _, ok)| *ok)
    }
}

/// Runs `command`, shows its standard output as it comes, and hands each line to `each`. With a limit
/// the command and everything that it started is killed after that time, which is a failure.
pub fn stream(
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> std::io::Result<bool> {
    if limit.is_some() {
        // A group of its own, so that the tests below cargo can be ended with it.
        command.process_group(0);
    }
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child
        .stdout
        .take()
        .ok_or_else(|| std::io::Error::other("no output"))?;
    let (sender, lines) = mpsc::channel::<Vec<u8>>();
    // Ends when the last process that holds the other end of the pipe has ended.
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output
            .read_until(b'\n', &mut line)
            .is_ok_and(|count| count > 0)
        {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    loop {
        let received = match limit {
            None => lines.recv().ok(),
            Some(limit) => match lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
                Ok(line) => Some(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => None,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    println!("no end after {limit:?}: killed");
                    let group = format!("-{}", child.id());
                    Command::new("kill")
                        .args(["-KILL", "--", &group])
                        .status()?;
                    child.wait()?;
                    return Ok(false);
                }
            },
        };
        let Some(line) = received else { break };
        // By the macro, which the harness captures: these lines are not its own results.
        print!("{}", String::from_utf8_lossy(&line));
        std::io::stdout().flush()?;
        each(String::from_utf8_lossy(&line).trim_end());
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const RESULT: &str =
        "echo running 2 tests; echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";

    #[test]
    fn steps_after_a_failed_one_run_and_the_sum_is_a_failure() {
        let mut steps = Steps::default();
        steps.program("first", &mut shell("exit 1"));
        steps.tests("second", 2, &mut shell(RESULT));
        assert_eq!(steps.tally.to_string(), "2 passed, 0 failed");
        assert!(!steps.summary());
    }

    #[test]
    fn a_suite_that_runs_fewer_tests_than_are_written_fails() {
        let mut steps = Steps::default();
        steps.tests("few", 3, &mut shell(RESULT));
        assert!(!steps.summary());
        assert_eq!(steps.tally.failed, 1);
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_everything_below_it_at_its_limit() {
        let mut lines = Vec::new();
        let mut hangs = shell("echo first; sleep 1000 & echo $!; wait");
        let limit = Some(Duration::from_secs(1));
        let ok = stream(&mut hangs, limit, |line| lines.push(line.to_owned())).unwrap();
        assert!(!ok);
        assert_eq!(lines[0], "first");
        let gone = format!(
            "for i in $(seq 1000); do s=$(cat /proc/{}/stat 2>/dev/null) || exit 0; \
             case $s in *') Z '*) exit 0;; esac; sleep 0.01; done; exit 1",
            lines[1]
        );
        assert!(
            shell(&gone).status().unwrap().success(),
            "process {} is still there",
            lines[1]
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failed_step() {
        let mut steps = Steps::default();
        steps.tests("gone", 0, &mut Command::new("no-such-program-here"));
        assert!(!steps.summary());
        assert_eq!(steps.tally.failed, 1);
    }
}
