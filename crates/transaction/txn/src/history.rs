//! A brute-force model of the commit log, kept in builds with debug assertions: every commit, never
//! cleaned by the rules that it checks.
//!
//! It is only trimmed from the old end, below the newest entry that the oldest snapshot of a list
//! can ask for: a rule so much simpler than R4 that a mistake in one does not hide in the other.
//!
//! What it does NOT check: that the list of snapshots is complete (loom tests of `slot` do).

use crate::active::ActiveSnapshots;
use vellum_base::Timestamp;
use vellum_sync::Mutex;

/// Entries kept before trimming is tried.
const TRIM_AT: usize = 1 << 14;

#[derive(Debug)]
pub(crate) struct History {
    commits: Mutex<Vec<Timestamp>>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            commits: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn append(&self, commit_ts: Timestamp) {
        let mut commits = self.commits.lock();
        assert!(commits.last().is_none_or(|last| *last < commit_ts));
        commits.push(commit_ts);
    }

    /// The last commit below `ts`.
    pub(crate) fn lcb(&self, ts: Timestamp) -> Timestamp {
        let commits = self.commits.lock();
        // A slot's commits ascend.
        let below = commits.partition_point(|&commit| commit < ts);
        below
            .checked_sub(1)
            .map_or(Timestamp::ZERO, |index| commits[index])
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
            assert_eq!(
                lcb(ts),
                self.lcb(ts),
                "R4: a cleaning lost the last commit below {ts}"
            );
        }
        let mut commits = self.commits.lock();
        if commits.len() >= TRIM_AT {
            let below = commits.partition_point(|&commit| commit < active.oldest());
            commits.drain(..below.saturating_sub(1));
        }
    }
}
