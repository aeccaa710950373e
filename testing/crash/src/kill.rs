//! Runs a child process and kills it.
//!
//! The child writes what it did (here: [`Notice`]s) to its standard output, a pipe, whose other end this process
//! reads to the end after the kill: what the child said before it died is never lost.

use crate::ledger::{Ledger, NOTICE_BYTES, Notice};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How a life of the child ended.
#[derive(Debug)]
pub struct Life {
    /// Whether it said that the database is open.
    pub opened: bool,
    /// How many notices it gave.
    pub notices: u64,
    /// What it wrote to standard error: empty, unless it failed before it was killed.
    pub complaints: String,
}

/// A child that is killed when dropped, so that no failed test leaves one behind.
#[derive(Debug)]
pub struct Victim(pub Child);

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only if it is dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a child said before it was killed.
#[derive(Debug)]
pub struct Said {
    /// To its standard output.
    pub bytes: Vec<u8>,
    /// To its standard error: empty, unless it failed before it was killed.
    pub complaints: String,
}

/// Runs a command and kills it `after` a while, counted from when it has said its first `first` bytes (0: from its start).
///
/// # Errors
/// If it cannot be run or listened to.
pub fn run_command_and_kill(
    mut command: Command,
    after: Duration,
    first: usize,
) -> io::Result<Said> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut victim = Victim(command.spawn()?);
    let mut said = victim.0.stdout.take().expect("it is piped");
    let mut complaints = victim.0.stderr.take().expect("it is piped");
    let complaints = thread::spawn(move || {
        let mut text = String::new();
        complaints.read_to_string(&mut text).map(|_| text)
    });
    let mut bytes = vec![0; first];
    let mut heard = 0;
    while heard < first {
        match said.read(&mut bytes[heard..])? {
            // It ended by itself.
            0 => break,
            more => heard += more,
        }
    }
    bytes.truncate(heard);
    // Reads on while the child lives, or a full pipe would stop it.
    let reader = thread::spawn(move || said.read_to_end(&mut bytes).map(|_| bytes));
    thread::sleep(after);
    drop(victim);
    let lost = |_| io::Error::other("the reading thread panicked");
    Ok(Said {
        bytes: reader.join().map_err(lost)??,
        complaints: complaints.join().map_err(lost)??,
    })
}

/// Runs `program` on `directory` and kills it `after` a while, counted from its start or from when
/// it has opened the database; takes down what it says.
///
/// # Errors
/// If the program cannot be run, or what it says is no notice.
pub fn run_and_kill(
    program: &Path,
    directory: &Path,
    after: Duration,
    from_open: bool,
    ledger: &mut Ledger,
) -> io::Result<Life> {
    let mut command = Command::new(program);
    command.arg(directory);
    let first = if from_open { NOTICE_BYTES } else { 0 };
    let said = run_command_and_kill(command, after, first)?;
    let mut life = Life {
        opened: false,
        notices: 0,
        complaints: said.complaints,
    };
    for notice in said.bytes.chunks(NOTICE_BYTES) {
        life.take(notice, ledger)?;
    }
    Ok(life)
}

impl Life {
    fn take(&mut self, bytes: &[u8], ledger: &mut Ledger) -> io::Result<()> {
        let notice = Notice::decode(bytes)
            .ok_or_else(|| io::Error::other(format!("no notice: {bytes:?}")))?;
        self.opened |= notice == Notice::Opened;
        self.notices += 1;
        ledger.note(notice);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_fails_by_itself_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::default();
        let run = run_and_kill(
            Path::new("/bin/cat"),
            directory.path(),
            Duration::from_millis(50),
            true,
            &mut ledger,
        );
        let life = run.unwrap();
        assert!(!life.opened && life.notices == 0);
        assert!(life.complaints.contains("directory"), "{life:?}");
    }
}
