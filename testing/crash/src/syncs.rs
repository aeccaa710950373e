//! Takes syncs away, one call site after the other, and sees whether the power cuts notice.
//!
//! A run without a cut tells every sync that a workload makes, with the place in the program that asked for it. Then
//! all syncs of one place are left out (or come one change too late), the power is cut behind them, and what is
//! found is compared as in [`crate::power`]. Some cut must find something wrong: else the sync
//! is not needed, or the power cuts are blind. Syncs of recovery are treated likewise, from a disk that a first cut
//! left.
//!
//! Needs symbols: a place is the first function outside the disk in a backtrace.
//!
//! Not checked: places that no workload reaches.

use crate::power::{Allowed, Open, check, run_until_cut};
use std::backtrace::Backtrace;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use vellum_base::random::Random;
use vellum_io::{Lie, PowerCut, SimulatedDirectory};
use vellum_model::Step;
use vellum_model::model::Model;

/// A place in the program that syncs, and what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Function that asked, innermost first, with the caller if it is the directory's own helper.
    pub function: String,
    /// The file or directory, digits left out.
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.function, self.name)
    }
}

/// The syncs of a run: by place, the numbers of changing calls before them.
pub type Syncs = BTreeMap<Place, BTreeSet<u64>>;

/// What a lie led to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was found wrong first; `None` if nothing was.
    pub caught: Option<String>,
    /// Cuts that were looked at.
    pub cuts: u64,
}

/// Starts noting the syncs of a disk.
fn observe(disk: &SimulatedDirectory) -> Arc<Mutex<Syncs>> {
    let syncs = Arc::new(Mutex::new(Syncs::new()));
    let noted = syncs.clone();
    disk.observe_syncs(Arc::new(move |call, name| {
        let place = Place {
            function: asking_function(&Backtrace::force_capture().to_string()),
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

/// The first function in the text of a backtrace that is the product's but not its disk's, as `file: function`; with
/// its caller where it syncs for others (`write_atomic`). Lines are left out: they move.
fn asking_function(backtrace: &str) -> String {
    let mut found: Vec<String> = Vec::new();
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
        let file = path.split(':').next().unwrap_or_default();
        let name = function.split('<').find(|part| !part.is_empty());
        let name = name
            .unwrap_or_default()
            .rsplit("::")
            .next()
            .unwrap_or_default();
        let helper = name.starts_with("write_atomic");
        if !helper && (file.starts_with("storage/io/") || file.starts_with("foundation/sync/")) {
            continue;
        }
        found.push(format!("{file}: {name}"));
        if !helper {
            break;
        }
    }
    if found.is_empty() {
        return "unknown".to_owned();
    }
    found.join(" < ")
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

/// Lets `calls` of the workload lie and cuts the power behind each, until something wrong is found.
///
/// # Errors
/// The workload does not run.
pub fn try_lie(
    history: &[Step],
    key_limit: usize,
    calls: &BTreeSet<u64>,
    how: Lie,
    open: Open<'_>,
) -> Result<Verdict, String> {
    let mut cuts = 0;
    for cut_at in cuts_behind(calls) {
        let disk = SimulatedDirectory::new();
        disk.lie_at(calls.clone(), how);
        disk.cut_after(cut_at);
        let allowed = run_until_cut(history, key_limit, &disk, open)?;
        if let Some(caught) = look(&disk, &allowed, cut_at, open, &mut cuts) {
            let caught = Some(format!("cut at call {cut_at}: {caught}"));
            return Ok(Verdict { caught, cuts });
        }
        if !disk.is_cut() {
            break;
        }
    }
    Ok(Verdict { caught: None, cuts })
}

/// How many calls behind a lie are cut.
const BEHIND: u64 = 40;

/// The calls to cut, for lies at `calls`: those right behind each first, then further ones.
fn cuts_behind(calls: &BTreeSet<u64>) -> Vec<u64> {
    let mut order = Vec::new();
    let mut known = BTreeSet::new();
    for distance in 1..=BEHIND {
        for call in calls {
            if known.insert(call + distance) {
                order.push(call + distance);
            }
        }
    }
    order
}

/// Looks at what kinds of cut leave of a disk that lied.
fn look(
    disk: &SimulatedDirectory,
    allowed: &Allowed,
    seed: u64,
    open: Open<'_>,
    cuts: &mut u64,
) -> Option<String> {
    let mut draws = Random::new(seed);
    for kind in PowerCut::KINDS {
        if kind == PowerCut::LUCKY {
            continue;
        }
        *cuts += 1;
        let found = disk.power_cut(draws.next_u64(), kind);
        if let Err(what) = check(&found, allowed, open) {
            return Some(format!("{kind:?}: {what}"));
        }
    }
    None
}

/// A disk that a cut left, and what may be on it: where a recovery begins.
pub struct Wreck {
    disk: SimulatedDirectory,
    allowed: Allowed,
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
    (0..count)
        .map(|n| {
            let disk = SimulatedDirectory::new();
            disk.cut_after(calls * (n + 1) / (count + 1));
            let allowed = run_until_cut(history, key_limit, &disk, open)?;
            let kinds = PowerCut::KINDS;
            let kind = kinds[(n as usize) % kinds.len()];
            let disk = disk.power_cut(seed.wrapping_add(n), kind);
            let kept = check(&disk.process_kill(), &allowed, open)?;
            let commits = kept..=kept;
            Ok(Wreck {
                disk,
                allowed: Allowed {
                    model: allowed.model,
                    commits,
                },
            })
        })
        .collect()
}

impl Wreck {
    /// The syncs of the recovery (and of going on a little).
    ///
    /// # Errors
    /// The recovery is wrong even so.
    pub fn syncs(&self, open: Open<'_>) -> Result<Syncs, String> {
        let disk = self.disk.process_kill();
        let syncs = observe(&disk);
        check(&disk, &self.allowed, open)?;
        let syncs = syncs.lock().expect("nobody panics holding it");
        Ok(syncs.clone())
    }

    /// As [`try_lie`], for a recovery.
    pub fn try_lie(&self, calls: &BTreeSet<u64>, how: Lie, open: Open<'_>) -> Verdict {
        let mut cuts = 0;
        for cut_at in cuts_behind(calls) {
            let disk = self.disk.process_kill();
            disk.lie_at(calls.clone(), how);
            disk.cut_after(cut_at);
            // It fails when the power goes.
            let ended = check(&disk, &self.allowed, open);
            let allowed = Allowed {
                model: Model::clone(&self.allowed.model),
                commits: self.allowed.commits.clone(),
            };
            if let Some(caught) = look(&disk, &allowed, cut_at, open, &mut cuts) {
                let caught = Some(format!("recovery cut at call {cut_at}: {caught}"));
                return Verdict { caught, cuts };
            }
            if ended.is_ok() {
                break;
            }
        }
        Verdict { caught: None, cuts }
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
        assert_eq!(asking_function(text), "storage/wal/src/round.rs: flush");
        let text = "   3: write_atomic<vellum_io::S>\n             at \
                    /v/crates/storage/io/src/directory.rs:9:1\n   4: vellum::control::write\n             at \
                    /v/crates/engine/src/control.rs:7:3\n";
        assert_eq!(
            asking_function(text),
            "storage/io/src/directory.rs: write_atomic < engine/src/control.rs: write"
        );
    }
}
