//! Takes syncs away, one place after the other, and sees whether a power cut misses them.
//!
//! A scene is a run on a disk, from an empty one or a wreck on, and a judge of what is found after it. All syncs of one place are left out, or
//! come some changes too late, the last of which is durable before ([`Lie`]); the power is cut behind them, and the judge must find something wrong: else
//! the sync is not needed, or the scene is blind. The same cut without the lie must leave nothing wrong.
//!
//! Not checked: two places at once.

use crate::power::{Open, check, check_unchanged, run_until_cut};
use crate::syncs::{Syncs, Wreck, observe};
use std::collections::BTreeSet;
use vellum_base::random::Random;
use vellum_io::{Lie, PowerCut, SimulatedDirectory};
use vellum_model::Step;

/// Says what is wrong with what was found.
pub type Judge<'s> = Box<dyn Fn(&SimulatedDirectory) -> Result<(), String> + 's>;
/// Runs on a disk until it ends, or the power goes.
type Run<'s> = Box<dyn Fn(&SimulatedDirectory) -> Result<Judge<'s>, String> + 's>;

/// How many calls behind a lie are cut.
const BEHIND: u64 = 40;
/// How many more than it is late, behind a late one.
const BEHIND_LATE: u64 = 8;

/// A run that is cut.
pub struct Scene<'s> {
    start: SimulatedDirectory,
    run: Run<'s>,
    /// How often each kind of cut is drawn at a call.
    seeds: u64,
}

/// The cut that missed a sync.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The call that was cut.
    pub call: u64,
    /// How.
    pub kind: PowerCut,
    /// What was wrong.
    pub what: String,
}

/// What a lie led to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was found wrong first; `None` if nothing was.
    pub caught: Option<Caught>,
    /// Cuts that were looked at.
    pub cuts: u64,
}

impl<'s> Scene<'s> {
    /// A run on a disk; it returns who judges what is found, and fails if it is wrong by itself.
    pub fn new(
        start: SimulatedDirectory,
        run: impl Fn(&SimulatedDirectory) -> Result<Judge<'s>, String> + 's,
    ) -> Self {
        let run = Box::new(run);
        let seeds = 1;
        Self { start, run, seeds }
    }

    /// A workload on an empty disk.
    pub fn workload(history: Vec<Step>, key_limit: usize, open: Open<'s>) -> Self {
        Self::new(SimulatedDirectory::new(), move |disk| {
            let allowed = run_until_cut(&history, key_limit, disk, open)?;
            Ok(Box::new(move |found| {
                check(found, &allowed, open).map(drop)
            }))
        })
    }

    /// A workload on an empty disk, whose machine has no room left when it comes back.
    pub fn workload_then_full(history: Vec<Step>, key_limit: usize, open: Open<'s>) -> Self {
        Self::new(SimulatedDirectory::new(), move |disk| {
            let allowed = run_until_cut(&history, key_limit, disk, open)?;
            Ok(Box::new(move |found| {
                if *allowed.commits.start() == 0 {
                    // Perhaps no database yet, and there is no room to make one.
                    return Ok(());
                }
                found.set_space_limit(Some(found.used_space()));
                check_unchanged(found, &allowed, open).map(drop)
            }))
        })
    }

    /// A workload on an empty disk; `judge` looks at what its end left, closed or not, once something was acknowledged.
    pub fn workload_judged_by(
        history: Vec<Step>,
        key_limit: usize,
        open: Open<'s>,
        judge: fn(&SimulatedDirectory) -> Result<(), String>,
    ) -> Self {
        Self::new(SimulatedDirectory::new(), move |disk| {
            let allowed = run_until_cut(&history, key_limit, disk, open)?;
            let sure = *allowed.commits.start() > 0;
            Ok(Box::new(
                move |found| if sure { judge(found) } else { Ok(()) },
            ))
        })
    }

    /// A recovery, and going on a little.
    pub fn recovery(wreck: Wreck, open: Open<'s>) -> Self {
        let start = wreck.disk.process_kill();
        Self::new(start, move |disk| {
            // It fails when the power goes.
            if let Err(what) = check(disk, &wreck.allowed, open)
                && !disk.is_cut()
            {
                return Err(what);
            }
            let allowed = wreck.allowed.clone();
            Ok(Box::new(move |found| {
                check(found, &allowed, open).map(drop)
            }))
        })
    }

    /// The same with each kind of cut drawn so often.
    #[must_use]
    pub fn with_seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// The syncs of it.
    ///
    /// # Errors
    /// It is wrong even without a cut.
    pub fn syncs(&self) -> Result<Syncs, String> {
        let disk = self.start.process_kill();
        let syncs = observe(&disk);
        let judge = (self.run)(&disk)?;
        judge(&disk.process_kill())?;
        let syncs = syncs.lock().expect("nobody panics holding it");
        Ok(syncs.clone())
    }

    /// Lets the syncs that are `calls` lie and cuts the power behind each, until something wrong is found; first at the calls around
    /// `near`.
    ///
    /// # Errors
    /// Something is wrong without a lie, too.
    pub fn search(
        &self,
        calls: &BTreeSet<u64>,
        how: Lie,
        near: Option<u64>,
    ) -> Result<Verdict, String> {
        let (mut cuts, mut end) = (0, u64::MAX);
        for call in near.into_iter().chain(cuts_behind(calls, how)) {
            // A run that ends before a cut ends before every later one.
            if call >= end {
                continue;
            }
            let (found, is_cut) = self.cut(call, Some((calls, how)), &mut cuts)?;
            if let Some((kind, what)) = found {
                if let (Some((kind, what)), _) = self.cut(call, None, &mut 0)? {
                    return Err(format!("cut at call {call}, no lie: {kind:?}: {what}"));
                }
                let caught = Some(Caught { call, kind, what });
                return Ok(Verdict { caught, cuts });
            }
            if !is_cut {
                end = call;
            }
        }
        Ok(Verdict { caught: None, cuts })
    }

    /// What is wrong first after one call, and whether the run came to it.
    fn cut(
        &self,
        call: u64,
        lie: Option<(&BTreeSet<u64>, Lie)>,
        cuts: &mut u64,
    ) -> Result<(Option<(PowerCut, String)>, bool), String> {
        let disk = self.start.process_kill();
        if let Some((calls, how)) = lie {
            disk.lie_at(calls.clone(), how);
        }
        disk.cut_after(call);
        let judge = (self.run)(&disk)?;
        let mut draws = Random::new(call);
        for _ in 0..self.seeds {
            for kind in PowerCut::KINDS {
                if kind == PowerCut::LUCKY {
                    continue;
                }
                *cuts += 1;
                let found = disk.power_cut(draws.next_u64(), kind);
                if let Err(what) = judge(&found) {
                    return Ok((Some((kind, what)), disk.is_cut()));
                }
            }
        }
        Ok((None, disk.is_cut()))
    }
}

/// The calls to cut, for lies at `calls`: those right behind each first, then further ones.
fn cuts_behind(calls: &BTreeSet<u64>, how: Lie) -> Vec<u64> {
    let behind = match how {
        Lie::Omitted => BEHIND,
        Lie::Late { changes, .. } => u64::from(changes) + BEHIND_LATE,
    };
    let mut order = Vec::new();
    let mut known = BTreeSet::new();
    for distance in 1..=behind {
        for call in calls {
            if known.insert(call + distance) {
                order.push(call + distance);
            }
        }
    }
    order
}
