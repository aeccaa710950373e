//! Flags that do not fit together: refused before anything is opened, loaded or written, with what is wrong.
//!
//! What one flag alone may be, and which two exclude each other whatever they say, is told in [`crate::cli`].
//!
//! Not here: what depends on the data that is there (rows, warehouses); the workloads look at that before they load.

use crate::cli::{Command, Compare, Figure, FigureName, Hekaton, Hold, Holder, MixName, Workload};
use crate::engines::check_list;
use crate::hold::APART_S;

impl Command {
    /// What is wrong with flags that do not fit together.
    ///
    /// # Errors
    /// A text for the user.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Run(workload) => workload.check(),
            Self::Figure(figure) => figure.check(),
            Self::Compare(compare) => compare.check(),
            Self::Report(report) => check_list(&report.engines),
        }
    }
}

/// What a comparison gives to each run by itself, or does not take from it.
const OF_COMPARISONS: [(&str, &str); 5] = [
    ("--engine", "say --engines in front of --"),
    ("--data", "say --out in front of --"),
    ("--json", "it writes a document of its own below --out"),
    ("--plot", "it draws a picture of its own below --out"),
    ("--check", "it makes every database anew"),
];

impl Compare {
    /// What can be told before the flags of the workload are read; that is checked once they are.
    fn check(&self) -> Result<(), String> {
        for word in &self.arguments {
            let flag = word.split('=').next().unwrap_or(word);
            if let Some((_, why)) = OF_COMPARISONS.iter().find(|it| it.0 == flag) {
                return Err(format!(
                    "{flag} behind -- is not of a workload that is compared: {why}"
                ));
            }
        }
        check_list(&self.engines)
    }
}

impl Workload {
    /// As [`Command::check`].
    ///
    /// # Errors
    /// A text for the user.
    pub fn check(&self) -> Result<(), String> {
        let common = self.common();
        if common.json.is_some() && common.json == common.plot {
            return Err("--json and --plot name one file".into());
        }
        match self {
            Self::Load(_) => {
                if common.threads > 1 || common.seconds.is_some() || common.operations.is_some() {
                    return Err("a load is one transaction of one thread: --threads, --seconds and --operations say nothing about it".into());
                }
            }
            Self::Tpcc(tpcc) => {
                if let Some(warehouses) = tpcc.warehouses.filter(|_| tpcc.affinity) {
                    check_affinity(common.threads, warehouses)?;
                }
            }
            Self::Kv(kv) => {
                if kv.read_share > 0.0 && kv.mix == MixName::Read {
                    return Err(
                        "--mix read only reads: --read-share is of the mixes that write".into(),
                    );
                }
            }
            Self::Scan(scan) => {
                if scan.update_threads > 0 && common.operations.is_some() {
                    return Err("scans and updates beside them share no number of transactions: --update-threads goes with --seconds".into());
                }
            }
            Self::Hekaton(hekaton) => hekaton.check_itself()?,
            Self::Hot(hot) if hot.value_size_min > Some(hot.value_size) => {
                return Err("--value-size-min is above --value-size".into());
            }
            Self::Tatp(_) | Self::Queue(_) | Self::Hot(_) => {}
        }
        let end = match common.operations {
            Some(_) => End::Operations,
            None => End::Second(common.seconds()),
        };
        self.hold().map_or(Ok(()), |hold| hold.check(end))
    }
}

impl Hekaton {
    fn check_itself(&self) -> Result<(), String> {
        if self.reads == 0 && self.writes == 0 {
            return Err("--reads 0 --writes 0 is a transaction that does nothing".into());
        }
        if self.read_only_share > 0.0 && (self.reads == 0 || self.writes == 0) {
            return Err("--read-only-share is of transactions that read and write: it needs --reads and --writes".into());
        }
        if self.deterministic && self.writes == 0 {
            return Err("--deterministic is about writes: it needs --writes".into());
        }
        if self.long_readers > 0 && self.common.operations.is_some() {
            return Err("long readers and the transactions beside them share no number of transactions: --long-readers goes with --seconds".into());
        }
        Ok(())
    }
}

/// Whether threads that want warehouses of their own get them.
///
/// # Errors
/// A text for the user.
pub(crate) fn check_affinity(threads: u32, warehouses: u32) -> Result<(), String> {
    if threads <= warehouses {
        return Ok(());
    }
    Err(format!(
        "--affinity gives each thread warehouses of its own: {threads} threads need as many, and there are {warehouses}"
    ))
}

/// When a run ends.
#[derive(Clone, Copy)]
enum End {
    Second(u64),
    /// After some transactions: nobody knows when.
    Operations,
}

impl Hold {
    fn check(&self, end: End) -> Result<(), String> {
        let Some(at) = self.hold_snapshot_at else {
            let others = self.holder != Holder::Idle
                || self.holders > 1
                || self.release_snapshot_at.is_some()
                || !self.scan_at.is_empty();
            return match others {
                true => Err("--holder, --holders, --release-snapshot-at and --scan-at need --hold-snapshot-at".into()),
                false => Ok(()),
            };
        };
        if !self.scan_at.is_sorted_by(|a, b| a < b) {
            return Err("--scan-at wants ages that ascend".into());
        }
        if !self.scan_at.is_empty() && self.holder == Holder::Scan {
            return Err("--scan-at and --holder scan are two scans by one transaction".into());
        }
        let last = at.saturating_add(u64::from(self.holders - 1) * APART_S);
        let oldest = self.scan_at.last().copied().unwrap_or(0);
        match end {
            End::Operations if last > 0 || oldest > 0 || self.release_snapshot_at.is_some() => {
                Err("a run of --operations may be over before any second of it: with it goes one snapshot that is held from second 0 to the end, and a scan at age 0".into())
            }
            End::Operations => Ok(()),
            End::Second(seconds) => self.check_times(at, last, oldest, seconds),
        }
    }

    /// The first and the last snapshot are taken in seconds `at` and `last`, the first is scanned up to an age, the run ends in `seconds`.
    fn check_times(&self, at: u64, last: u64, oldest: u64, seconds: u64) -> Result<(), String> {
        if at >= seconds {
            return Err(format!(
                "--hold-snapshot-at {at} is not before the end of the run: --seconds {seconds}"
            ));
        }
        let release = self.release_snapshot_at;
        if let Some(release) = release {
            if release <= at {
                return Err("--release-snapshot-at must be after --hold-snapshot-at".into());
            }
            if release >= seconds {
                return Err(format!(
                    "--release-snapshot-at {release} is not before the end of the run: --seconds {seconds}"
                ));
            }
        }
        let (held_until, what) = match release {
            Some(release) => (release, "the release"),
            None => (seconds, "the end of the run"),
        };
        if last >= held_until {
            return Err(format!(
                "--holders {}: the last snapshot would be taken in second {last}, and {what} is second {held_until}",
                self.holders
            ));
        }
        if at.saturating_add(oldest) >= held_until && oldest > 0 {
            return Err(format!(
                "--scan-at {oldest}: the snapshot of second {at} is not that old before {what} in second {held_until}"
            ));
        }
        Ok(())
    }
}

impl Figure {
    /// As [`Command::check`].
    ///
    /// # Errors
    /// A text for the user.
    pub fn check(&self) -> Result<(), String> {
        let (name, seconds) = (self.which.name(), self.seconds());
        // The snapshot is taken in the first of them at the soonest, and scanned, or ended, when it is a second old.
        let least = match self.which {
            FigureName::One | FigureName::Nine | FigureName::Eleven => 2,
            FigureName::Ten | FigureName::Oom | FigureName::Release => 3,
            FigureName::Twelve | FigureName::Contention => 0,
        };
        if seconds < least {
            return Err(format!(
                "figure {name} has a second before its snapshot, and is about what follows: it needs --seconds of at least {least}"
            ));
        }
        let keyed = matches!(self.which, FigureName::Twelve | FigureName::Contention);
        if keyed && self.warehouses.is_some() {
            return Err(format!("figure {name} is no TPC-C: it has no --warehouses"));
        }
        if !keyed && self.rows.is_some() {
            return Err(format!(
                "figure {name} is TPC-C: --rows is of figures 12 and contention"
            ));
        }
        if !self.engines.is_empty() && self.which != FigureName::One {
            return Err(format!(
                "figure {name} is of vellum alone: --engines is of figure 1"
            ));
        }
        check_list(&self.engines)?;
        match self.which {
            FigureName::One | FigureName::Nine | FigureName::Oom | FigureName::Release
                if self.threads.is_some() =>
            {
                Err(format!(
                    "figure {name} has one thread: --threads is of figures 10, 11, 12 and contention"
                ))
            }
            FigureName::Eleven => check_affinity(self.threads(), self.warehouses())
                .map_err(|what| format!("figure 11 runs with --affinity, too. {what}")),
            _ => Ok(()),
        }
    }
}
