//! Writes that report success and land elsewhere, or nowhere, while a database is made; then its process is killed, and it is opened, read and
//! verified.
//!
//! What may come of it (docs/media.md):
//! - where a write landed that belongs elsewhere, its checksum, bound to the page or segment, says so;
//! - where it did not land, what was there before stays, and its checksum is right. It is told where other pages, the log or an index contradict it. Else
//!   the past is shown: values that these keys once had, never bytes of something else.
//!
//! Whatever came of it, the database is then worked on, as a database is that nobody knows to be damaged; and writes are misplaced while it is worked on, so
//! that what a pool of few frames wrote out comes back as something else. All that is asked then is an end without a panic.
//!
//! Not checked: that a lost write is detected, because it cannot be; answers after work on a damaged database.

use crate::corpus::{self, Wrong};
use crate::damage::in_time;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum::{Database, Error, Family, Inspection, inspect_directory};
use vellum_io::{Call, SimulatedDirectory, TraceEntry, WriteLie};

/// What came of a write that was misplaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything is shown as some commit left it.
    Harmless,
    /// An error, or a finding of `verify`, said that something is wrong.
    Detected,
    /// Something that was once written is shown, and `verify` finds nothing.
    Past,
}

/// The writes that are made while the database is, in order.
///
/// # Errors
/// What the database says.
pub fn writes() -> vellum::Result<Vec<TraceEntry>> {
    let disk = SimulatedDirectory::new();
    corpus::make_on(&disk)?;
    Ok(writes_of(&disk))
}

fn writes_of(disk: &SimulatedDirectory) -> Vec<TraceEntry> {
    let mut trace = disk.trace();
    trace.retain(|entry| entry.call == Call::Write);
    trace
}

/// A database that is worked on, and the writes of that.
pub struct Work {
    found: SimulatedDirectory,
    /// In order.
    pub writes: Vec<TraceEntry>,
}

impl Work {
    /// Makes the database and works on a copy.
    ///
    /// # Errors
    /// What the database says.
    pub fn new() -> vellum::Result<Self> {
        let found = corpus::make()?;
        let disk = found.process_kill();
        let database = Database::open_directory(Arc::new(disk.clone()), corpus::config())?;
        corpus::work_on(&database);
        drop(database);
        let writes = writes_of(&disk);
        Ok(Self { found, writes })
    }

    /// Works on another copy with one write misplaced; opens what is left, reads, verifies and works on it again.
    ///
    /// # Errors
    /// A panic, a hang.
    pub fn misplace(&self, write: &TraceEntry, lie: WriteLie) -> Result<(), String> {
        let (call, disk) = (write.mutating_calls, self.found.process_kill());
        in_time(move || {
            disk.lie_about_writes(BTreeMap::from([(call, lie)]));
            for _ in 0..2 {
                let opened = Database::open_directory(Arc::new(disk.clone()), corpus::config());
                let Ok(database) = opened else { break };
                // An answer or an error, but an end.
                let _ = corpus::right(&database);
                corpus::work_on(&database);
            }
            let _ = inspect_directory(Arc::new(disk), Inspection::default().pool_bytes(1 << 20));
            Ok(())
        })
        .map_err(|what| format!("at work, {write}: {lie:?}: {what}"))
    }
}

/// Makes the database with one write misplaced, and looks at it.
///
/// # Errors
/// A panic, a hang, an error of the wrong family, a value that was never written.
pub fn misplace(write: &TraceEntry, lie: WriteLie) -> Result<Outcome, String> {
    let call = write.mutating_calls;
    in_time(move || {
        let disk = SimulatedDirectory::new();
        disk.lie_about_writes(BTreeMap::from([(call, lie)]));
        match corpus::make_on(&disk) {
            Ok(found) => look(&found),
            Err(error) => told("making it", error),
        }
    })
    .map_err(|what| format!("{write}: {lie:?}: {what}"))
}

fn told(when: &str, error: Error) -> Result<Outcome, String> {
    match error.family() {
        Family::Corrupt => Ok(Outcome::Detected),
        // A catalog of the past has no table yet, or still a row that was deleted.
        Family::Usage => Ok(Outcome::Past),
        _ => Err(format!("{when}: {error}")),
    }
}

fn look(disk: &SimulatedDirectory) -> Result<Outcome, String> {
    let copy = Arc::new(disk.process_kill());
    match inspect_directory(copy, Inspection::default().pool_bytes(1 << 20)) {
        Ok(report) if report.is_sound() => {}
        // What is known to be damaged may be shown as it is.
        Ok(_) => {
            let opened = Database::open_directory(Arc::new(disk.clone()), corpus::config());
            if let Ok(database) = opened {
                // An answer or an error, but an end.
                let _ = corpus::right(&database);
                corpus::work_on(&database);
            }
            return Ok(Outcome::Detected);
        }
        Err(error) => return told("verify", error),
    }
    let database = match Database::open_directory(Arc::new(disk.clone()), corpus::config()) {
        Ok(database) => database,
        Err(error) => return told("open", error),
    };
    let outcome = match corpus::right(&database) {
        Ok(_) => Ok(Outcome::Harmless),
        Err(Wrong::Error(error)) => told("read", error),
        Err(Wrong::Answer(what)) => match corpus::of_the_past(&database) {
            Ok(()) => Ok(Outcome::Past),
            Err(Wrong::Error(error)) => told("read", error),
            Err(Wrong::Answer(never)) => Err(format!("{what}; {never}")),
        },
    };
    corpus::work_on(&database);
    outcome
}
