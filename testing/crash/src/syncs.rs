//! The syncs of a run, by the place in the program that asks for them, and the wrecks that recoveries begin at.
//!
//! A run without a cut tells every sync that it makes. [`crate::scene`] takes those of one place away.
//!
//! Needs symbols: a place is the first function outside the disk in a backtrace, and which of its syncs it is ([`crate::sites`], which also tells
//! the places that no workload reaches).

use crate::power::{Allowed, Open, check, run_until_cut};
use crate::sites::Sites;
use std::backtrace::Backtrace;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use vellum_io::{PowerCut, SimulatedDirectory};
use vellum_model::Step;

/// A place in the program that syncs, and what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Function that asked, innermost first, with the caller if it is the directory's own helper.
    pub function: String,
    /// Which of the syncs that the (innermost) function asks for, from 1, and how many there are.
    pub sync: (usize, usize),
    /// The file or directory, digits left out.
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            function,
            sync: (at, of),
            name,
        } = self;
        match of {
            1 => write!(f, "{function} of {name:?}"),
            _ => write!(f, "{function}, sync {at} of {of}, of {name:?}"),
        }
    }
}

/// The syncs of a run: by place, the numbers of changing calls before them.
pub type Syncs = BTreeMap<Place, BTreeSet<u64>>;

/// Starts noting the syncs of a disk.
pub(crate) fn observe(disk: &SimulatedDirectory) -> Arc<Mutex<Syncs>> {
    static SITES: OnceLock<Sites> = OnceLock::new();
    let sites = SITES.get_or_init(|| Sites::of_product().expect("the sources are there"));
    let syncs = Arc::new(Mutex::new(Syncs::new()));
    let noted = syncs.clone();
    disk.observe_syncs(Arc::new(move |call, name| {
        let (function, line) = asking_function(&Backtrace::force_capture().to_string());
        let innermost = function.split(" < ").next().unwrap_or_default();
        let place = Place {
            sync: sites.which(innermost, line),
            function,
            name: without_digits(name),
        };
        let mut noted = noted.lock().expect("nobody panics holding it");
        noted.entry(place).or_default().insert(call);
    }));
    syncs
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The first function in the text of a backtrace that is the product's but not its disk's, as `file: function`, and the line in it; with
/// its caller where it syncs for others (`write_atomic`). Who only hands a sync on is called as it is.
fn asking_function(backtrace: &str) -> (String, u32) {
    let mut found: Vec<String> = Vec::new();
    let mut line_found = None;
    let mut function = "";
    for line in backtrace.lines() {
        let line = line.trim_start();
        let Some(place) = line.strip_prefix("at ") else {
            function = line.split_once(": ").map_or("", |(_, function)| function);
            continue;
        };
        let Some((_, path)) = place.rsplit_once("crates/") else {
            continue;
        };
        let mut parts = path.split(':');
        let file = parts.next().unwrap_or_default();
        let line_here = parts.next().and_then(|line| line.parse().ok());
        let name = name_of(function);
        let helper = name.starts_with("write_atomic");
        let hands_on = ["sync_data", "sync_dir"].contains(&name);
        let below = file.starts_with("storage/io/") || file.starts_with("foundation/sync/");
        if !helper && (below || hands_on) {
            continue;
        }
        line_found = line_found.or(line_here);
        if name.is_empty() {
            // A closure, whose function comes behind it.
            continue;
        }
        found.push(format!("{file}: {name}"));
        if !helper {
            break;
        }
    }
    if found.is_empty() {
        return ("unknown".to_owned(), 0);
    }
    (found.join(" < "), line_found.unwrap_or_default())
}

/// The name of a function in a backtrace, without its path, its generics, and the closure in it; empty for a closure that is named without
/// its function.
fn name_of(function: &str) -> &str {
    // `{closure#0}`, `{{closure}}`.
    let end = function.find("{closure").unwrap_or(function.len());
    let function = function[..end].trim_end_matches('{');
    let mut function = function.strip_suffix("::").unwrap_or(function);
    // Generics at the end; those before a `::` are of the path.
    while let Some(inside) = function.strip_suffix('>') {
        let mut depth = 1;
        let open = inside.rfind(|letter| {
            depth += i32::from(letter == '>') - i32::from(letter == '<');
            depth == 0
        });
        let Some(open) = open else {
            break;
        };
        function = function[..open].trim_end_matches("::");
    }
    function.rsplit("::").next().unwrap_or_default()
}

/// The syncs of a workload.
///
/// # Errors
/// The workload does not run.
pub fn syncs_of(history: &[Step], key_limit: usize, open: Open<'_>) -> Result<Syncs, String> {
    let disk = SimulatedDirectory::new();
    let syncs = observe(&disk);
    run_until_cut(history, key_limit, &disk, open)?;
    let syncs = syncs.lock().expect("nobody panics holding it");
    Ok(syncs.clone())
}

/// A disk that a cut left, and what may be on it: where a recovery begins.
pub struct Wreck {
    pub(crate) disk: SimulatedDirectory,
    pub(crate) allowed: Allowed,
}

/// Wrecks from cuts of a workload, spread over its calls.
///
/// # Errors
/// The workload does not run.
pub fn wrecks(
    history: &[Step],
    key_limit: usize,
    count: u64,
    seed: u64,
    open: Open<'_>,
) -> Result<Vec<Wreck>, String> {
    let whole = SimulatedDirectory::new();
    run_until_cut(history, key_limit, &whole, open)?;
    let calls = whole.mutating_calls();
    let spread = (0..count).map(|n| {
        let kinds = PowerCut::KINDS;
        let kind = kinds[(n as usize) % kinds.len()];
        let cut_at = calls * (n + 1) / (count + 1);
        wreck(history, key_limit, open, cut_at, |disk| {
            disk.power_cut(seed.wrapping_add(n), kind)
        })
    });
    spread.collect()
}

/// The wreck that a killed process leaves: what it wrote is there, synced or not. It is killed so many calls before its last sync of a place, 0: in
/// that sync. `None` if there is no such sync.
///
/// # Errors
/// The workload does not run.
fn killed_before(
    history: &[Step],
    key_limit: usize,
    (is_place, calls): (impl Fn(&Place) -> bool, u64),
    open: Open<'_>,
) -> Result<Option<Wreck>, String> {
    let syncs = syncs_of(history, key_limit, open)?;
    let found = syncs.iter().filter(|(place, _)| is_place(place));
    let last = found.filter_map(|(_, calls)| calls.last()).max();
    let Some(cut_at) = last.and_then(|call| call.checked_sub(calls)) else {
        return Ok(None);
    };
    let killed = SimulatedDirectory::process_kill;
    wreck(history, key_limit, open, cut_at, killed).map(Some)
}

/// The same of a process that is killed while it makes a segment of the log: there is a file, and its name is not synced.
///
/// # Errors
/// The workload does not run.
pub fn half_made(
    history: &[Step],
    key_limit: usize,
    open: Open<'_>,
) -> Result<Option<Wreck>, String> {
    /// From opening a file to its sync: the space, the write.
    const CALLS: u64 = 2;
    let segment = |place: &Place| place.name == "log/" && place.function.ends_with(": fill");
    killed_before(history, key_limit, (segment, CALLS), open)
}

/// What `found` makes of a disk that stops at a call.
///
/// # Errors
/// The workload does not run.
pub fn wreck(
    history: &[Step],
    key_limit: usize,
    open: Open<'_>,
    cut_at: u64,
    found: impl Fn(&SimulatedDirectory) -> SimulatedDirectory,
) -> Result<Wreck, String> {
    let disk = SimulatedDirectory::new();
    disk.cut_after(cut_at);
    let allowed = run_until_cut(history, key_limit, &disk, open)?;
    let disk = found(&disk);
    let kept = check(&disk.process_kill(), &allowed, open)?;
    // What only the kernel has may still be lost.
    let commits = match disk.unsynced_changes() {
        0 => kept..=kept,
        _ => allowed.commits,
    };
    Ok(Wreck {
        disk,
        allowed: Allowed {
            model: allowed.model,
            commits,
        },
    })
}

impl Wreck {
    /// The same with files changed, in ways that do not change what the store holds.
    ///
    /// # Errors
    /// What `change` says.
    pub fn with(
        &self,
        change: impl FnOnce(&SimulatedDirectory) -> Result<(), String>,
    ) -> Result<Self, String> {
        let disk = self.disk.process_kill();
        change(&disk)?;
        let allowed = self.allowed.clone();
        Ok(Self { disk, allowed })
    }

    /// What a process leaves that is killed at a call of the recovery.
    ///
    /// # Errors
    /// The next recovery does not find what may be there.
    pub fn killed_at(&self, call: u64, open: Open<'_>) -> Result<Self, String> {
        let disk = self.disk.process_kill();
        disk.cut_after(call);
        // It fails when the process ends.
        let _ = open(&disk);
        let disk = disk.process_kill();
        check(&disk.process_kill(), &self.allowed, open)?;
        let allowed = self.allowed.clone();
        Ok(Self { disk, allowed })
    }

    /// Cuts these calls of the recovery, without a lie; how many cuts there were.
    ///
    /// # Errors
    /// The first cut that leaves something wrong.
    pub fn cut_calls(&self, calls: Range<u64>, seeds: u64, open: Open<'_>) -> Result<u64, String> {
        let mut cuts = 0;
        for call in calls {
            let disk = self.disk.process_kill();
            disk.cut_after(call);
            // It fails when the power goes.
            let _ = open(&disk);
            for (seed, kind) in (0..seeds).flat_map(|seed| PowerCut::KINDS.map(|kind| (seed, kind)))
            {
                let found = disk.power_cut(seed, kind);
                cuts += 1;
                check(&found, &self.allowed, open)
                    .map_err(|what| format!("call {call}, {kind:?}, seed {seed}: {what}"))?;
            }
            if !disk.is_cut() {
                break;
            }
        }
        Ok(cuts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_the_first_function_outside_the_disk() {
        let text = "   0: force_capture\n             at /rustc/x/library/std/src/backtrace.rs:1:2\n   1: \
                    {closure#0}\n             at /v/testing/crash/src/syncs.rs:5:1\n   2: sync_data\n             at \
                    /v/crates/storage/io/src/simulated/file.rs:9:1\n   3: flush<u8>\n             at \
                    /v/crates/storage/wal/src/round.rs:7:3\n   4: run\n             at \
                    /v/crates/storage/wal/src/log.rs:3:4\n";
        let flush = "storage/wal/src/round.rs: flush".to_owned();
        assert_eq!(asking_function(text), (flush, 7));
        let text = "   3: write_atomic<vellum_io::S>\n             at \
                    /v/crates/storage/io/src/directory.rs:9:1\n   4: vellum::control::write\n             at \
                    /v/crates/engine/src/control.rs:7:3\n";
        let write =
            "storage/io/src/directory.rs: write_atomic < engine/src/control.rs: write".to_owned();
        assert_eq!(asking_function(text), (write, 9));
        let text = "   3: <vellum_wal::segment_file::SegmentFile as vellum_io::File>::sync_data\n             at \
                    /v/crates/storage/wal/src/segment_file.rs:9:1\n   4: vellum::backup::<impl vellum::Engine>::backup::{{closure}}\n             at \
                    /v/crates/engine/src/backup.rs:7:3\n";
        let backup = "engine/src/backup.rs: backup".to_owned();
        assert_eq!(asking_function(text), (backup, 7));
    }
}
