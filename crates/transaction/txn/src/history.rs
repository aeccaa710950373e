//! A brute-force model of the commit log, kept in builds with debug assertions: every commit, never
//! cleaned by the rules that it checks.
//!
//! It is only trimmed from the old end, below the newest entry that the oldest snapshot of a list
//! can ask for: a rule so much simpler than R4 that a mistake in one does not hide in the other.
//!
//! What was trimmed nobody can ask for who is open at that time. Who collected a list before may still hold snapshots that
//! have ended since: of these the model says that it does not know. (Interleaving otherwise: a check collects snapshot S; S ends; a commit
//! cleans and trims by a list without S; the check finds no commit below S, and takes for lost what S was the last to need.)
//!
//! What it does NOT check: that the list of snapshots is complete (loom tests of `slot` do).

use crate::active::ActiveSnapshots;
use vellum_base::Timestamp;
use vellum_sync::Mutex;

/// Entries kept before trimming is tried.
const TRIM_AT: usize = 1 << 14;

#[derive(Debug)]
pub(crate) struct History {
    commits: Mutex<Commits>,
}

#[derive(Debug, Default)]
struct Commits {
    /// Ascending.
    kept: Vec<Timestamp>,
    /// Older ones are gone.
    is_trimmed: bool,
}

impl Commits {
    fn below(&self, ts: Timestamp) -> usize {
        self.kept.partition_point(|&commit| commit < ts)
    }
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            commits: Mutex::default(),
        }
    }

    pub(crate) fn append(&self, commit_ts: Timestamp) {
        let commits = &mut self.commits.lock().kept;
        assert!(commits.last().is_none_or(|last| *last < commit_ts));
        commits.push(commit_ts);
    }

    /// The last commit below `ts`, zero for none. `None` if that was trimmed: no snapshot `ts` is open any more.
    pub(crate) fn lcb(&self, ts: Timestamp) -> Option<Timestamp> {
        let commits = self.commits.lock();
        match commits.below(ts).checked_sub(1) {
            Some(index) => Some(commits.kept[index]),
            None => (!commits.is_trimmed).then_some(Timestamp::ZERO),
        }
    }

    /// Asserts that a cleaning by `active` left every answer as it was.
    pub(crate) fn check_cleaning(
        &self,
        active: &ActiveSnapshots,
        lcb: impl Fn(Timestamp) -> Timestamp,
    ) {
        for &ts in active
            .snapshots()
            .iter()
            .chain([&active.clock(), &Timestamp::MAX])
        {
            // Cleanings of a slot come one after the other, so what an earlier one trimmed this list knows nothing of.
            assert_eq!(
                Some(lcb(ts)),
                self.lcb(ts),
                "R4: a cleaning lost the last commit below {ts}"
            );
        }
        let mut commits = self.commits.lock();
        if commits.kept.len() >= TRIM_AT {
            let gone = commits.below(active.oldest()).saturating_sub(1);
            commits.kept.drain(..gone);
            commits.is_trimmed |= gone > 0;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn regress_what_was_trimmed_is_not_known_instead_of_none() {
        let history = History::new();
        let commits = TRIM_AT as u64;
        (1..=commits).for_each(|commit| history.append(Timestamp(2 * commit)));
        let (ended, open) = (Timestamp(101), Timestamp(201));
        assert_eq!(history.lcb(ended), Some(Timestamp(100)));
        assert_eq!(history.lcb(Timestamp(2)), Some(Timestamp::ZERO));
        let clock = Timestamp(2 * commits + 1);
        let active = ActiveSnapshots::from_parts(clock, [open]);
        let newest_below = |ts: Timestamp| Timestamp((ts.get() - 1).min(2 * commits) & !1);
        history.check_cleaning(&active, newest_below);
        assert_eq!(history.lcb(open), Some(Timestamp(200)));
        assert_eq!(history.lcb(clock), Some(Timestamp(2 * commits)));
        for gone in [ended, Timestamp(2), Timestamp(200)] {
            assert_eq!(history.lcb(gone), None, "{gone}");
        }
    }
}
