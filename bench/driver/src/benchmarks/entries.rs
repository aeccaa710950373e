//! The comparisons of a report, and how long they take.
//!
//! The quick set has each kind of workload once, in the shape in which Vellum is further behind or that is a goal: three rounds of all
//! shapes would be an hour. What it leaves out the page names.

use crate::Failure;
use crate::cli::{Cli, Command, ReportSet, Workload, WorkloadName};
use crate::measure::Limit;
use clap::Parser;

/// A comparison of the report.
pub(super) struct Entry {
    /// Of its files and its bar.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) workload: WorkloadName,
    /// Flags in every set.
    common: &'static str,
    /// And in one.
    tiny: &'static str,
    /// None where only the full set has it.
    quick: Option<Length>,
    full: Length,
}

/// How much an entry runs.
#[derive(Clone, Copy)]
struct Length {
    flags: &'static str,
    /// What a run takes beside its `--seconds`: start, load, check, end. A mean over the engines, for the estimate alone: measured of the
    /// quick set, guessed of the full one.
    beside_s: f64,
}

const fn length(flags: &'static str, beside_s: f64) -> Length {
    Length { flags, beside_s }
}

const HELD_TINY: &str = "--operations 200 --hold-snapshot-at 0";
// Two seconds of warm-up.
const HELD_QUICK: Length = length("--seconds 8 --hold-snapshot-at 4", 0.7);
const HELD_FULL: Length = length(
    "--seconds 150 --hold-snapshot-at 20 --release-snapshot-at 120",
    2.0,
);
const ROWS_TINY: &str = "--rows 200 --operations 100";
const ROWS_QUICK: Length = length("--rows 300000 --seconds 2", 1.1);
const ROWS_FULL: Length = length("--rows 2000000 --seconds 10", 5.0);

/// Only the full set has it, until [`Entry::in_quick`].
const fn rows(
    name: &'static str,
    title: &'static str,
    workload: WorkloadName,
    common: &'static str,
) -> Entry {
    Entry {
        name,
        title,
        workload,
        common,
        tiny: ROWS_TINY,
        quick: None,
        full: ROWS_FULL,
    }
}

/// The same beside an old snapshot.
const fn held(
    name: &'static str,
    title: &'static str,
    workload: WorkloadName,
    common: &'static str,
) -> Entry {
    rows(name, title, workload, common).with(HELD_TINY, HELD_FULL)
}

impl Entry {
    const fn in_quick(mut self, length: Length) -> Self {
        self.quick = Some(length);
        self
    }

    const fn with(mut self, tiny: &'static str, full: Length) -> Self {
        self.tiny = tiny;
        self.full = full;
        self
    }
}

pub(super) const ENTRIES: [Entry; 21] = [
    rows(
        "read",
        "Point reads, a transaction each",
        WorkloadName::Kv,
        "--mix read",
    )
    .in_quick(ROWS_QUICK),
    rows(
        "read-2",
        "Point reads, two threads",
        WorkloadName::Kv,
        "--mix read --threads 2",
    ),
    rows(
        "rmw",
        "A row is read and updated, a transaction each",
        WorkloadName::Kv,
        "--mix rmw",
    )
    .in_quick(ROWS_QUICK),
    rows(
        "rmw-2",
        "A row is read and updated, two threads",
        WorkloadName::Kv,
        "--mix rmw --threads 2",
    ),
    rows(
        "sync",
        "Durable updates, one thread",
        WorkloadName::Kv,
        "--mix update --durability sync",
    ),
    rows(
        "sync-8",
        "Durable updates, eight threads",
        WorkloadName::Kv,
        "--mix update --durability sync --threads 8",
    ),
    rows(
        "sync-64",
        "Durable updates, 64 threads",
        WorkloadName::Kv,
        "--mix update --durability sync --threads 64",
    )
    // The device is measured before and behind the run, three seconds in all.
    .in_quick(length("--rows 100000 --seconds 1", 3.5)),
    rows(
        "scan",
        "Full scan, in one snapshot each time",
        WorkloadName::Scan,
        "",
    )
    .in_quick(ROWS_QUICK),
    rows(
        "scan-upd",
        "Full scan beside a thread that updates",
        WorkloadName::Scan,
        "--update-threads 1",
    )
    // It ends by time only.
    .with("--rows 200 --seconds 1", ROWS_FULL),
    rows(
        "load",
        "Sorted load of rows of 100 bytes, one transaction",
        WorkloadName::Load,
        "",
    )
    .in_quick(length("--rows 1000000", 2.0))
    .with("--rows 200", length("--rows 5000000", 12.0)),
    rows(
        "load-shuffled",
        "Load of rows of 100 bytes in no order, one transaction",
        WorkloadName::Load,
        "--order shuffled",
    )
    .with("--rows 200", length("--rows 2000000", 15.0)),
    rows("tpcc", "TPC-C, one thread", WorkloadName::Tpcc, "")
        .in_quick(length("--warehouses 1 --seconds 2", 1.6))
        .with(
            "--tiny --warehouses 1 --operations 30",
            length("--warehouses 4 --seconds 30", 8.0),
        ),
    rows(
        "tpcc-2",
        "TPC-C, two threads, each in warehouses of its own",
        WorkloadName::Tpcc,
        "--threads 2 --affinity",
    )
    .in_quick(length("--warehouses 2 --seconds 2", 2.5))
    .with(
        "--tiny --warehouses 2 --operations 30",
        length("--warehouses 4 --seconds 30", 8.0),
    ),
    rows("tatp", "TATP, one thread", WorkloadName::Tatp, "")
        .in_quick(length("--subscribers 20000 --seconds 2", 0.9))
        .with(
            "--subscribers 50 --operations 1000",
            length("--subscribers 100000 --seconds 30", 4.0),
        ),
    rows(
        "tatp-2",
        "TATP, two threads",
        WorkloadName::Tatp,
        "--threads 2",
    )
    .with(
        "--subscribers 50 --operations 1000",
        length("--subscribers 100000 --seconds 30", 4.0),
    ),
    rows(
        "hekaton",
        "Ten rows are read and two written, two threads",
        WorkloadName::Hekaton,
        "--threads 2",
    )
    .with(ROWS_TINY, length("--rows 10000000 --seconds 10", 20.0)),
    rows(
        "hekaton-hot",
        "The same on a thousand rows, half of the transactions only read",
        WorkloadName::Hekaton,
        "--threads 2 --rows 1000 --read-only-share 0.5",
    )
    .with("--operations 100", length("--seconds 10", 1.5)),
    held(
        "queue",
        "A queue of a thousand rows beside an old snapshot",
        WorkloadName::Queue,
        // What an engine with one writer can hold, too; and so below.
        "--holder olap",
    )
    .in_quick(HELD_QUICK),
    held(
        "queue-2",
        "A queue of a thousand rows beside an old snapshot, two threads",
        WorkloadName::Queue,
        "--holder olap --threads 2",
    ),
    held(
        "hot",
        "A hundred hot rows beside an old snapshot",
        WorkloadName::Hot,
        "--holder olap",
    ),
    held(
        "hot-2",
        "A hundred hot rows beside an old snapshot, two threads",
        WorkloadName::Hot,
        "--holder olap --threads 2",
    ),
];

/// Those of a set.
pub(super) fn entries(set: ReportSet) -> impl Iterator<Item = &'static Entry> {
    const ALL: &[Entry] = &ENTRIES;
    ALL.iter()
        .filter(move |entry| set != ReportSet::Quick || entry.quick.is_some())
}

impl Entry {
    /// Flags of the workload; none in a set that has not got the entry.
    pub(super) fn arguments(&self, set: ReportSet) -> Vec<String> {
        let length = match set {
            ReportSet::Tiny => self.tiny,
            ReportSet::Quick => self.quick.map_or("", |quick| quick.flags),
            ReportSet::Full => self.full.flags,
        };
        let words = self.common.split_whitespace();
        words
            .chain(length.split_whitespace())
            .map(str::to_owned)
            .collect()
    }

    /// What is run.
    ///
    /// # Errors
    /// Of the parser.
    pub(super) fn parse(&self, set: ReportSet) -> Result<Workload, Failure> {
        let words = ["vellum-bench", self.workload.name()].map(str::to_owned);
        let words = words.into_iter().chain(self.arguments(set));
        let cli = Cli::try_parse_from(words).map_err(|error| Failure::Usage(error.to_string()))?;
        match cli.command {
            Command::Run(workload) => Ok(workload),
            _ => unreachable!("an entry names a workload"),
        }
    }

    /// About how many seconds a run takes, whole.
    ///
    /// # Errors
    /// Of the parser.
    pub(super) fn run_s(&self, set: ReportSet) -> Result<f64, Failure> {
        let beside = match set {
            ReportSet::Tiny => 0.5,
            ReportSet::Quick => self.quick.map_or(0.0, |quick| quick.beside_s),
            ReportSet::Full => self.full.beside_s,
        };
        // A load ends by its rows.
        let seconds = match (self.workload, self.parse(set)?.common().limit()) {
            (WorkloadName::Load, _) | (_, Limit::Operations(_)) => 0,
            (_, Limit::Seconds(seconds)) => seconds,
        };
        Ok(seconds as f64 + beside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Report;
    use crate::engines::EngineName;
    use clap::ValueEnum;

    const SETS: [ReportSet; 3] = [ReportSet::Tiny, ReportSet::Quick, ReportSet::Full];

    #[test]
    fn every_entry_of_every_set_is_a_command_line_with_a_name_of_its_own() {
        for set in SETS {
            for entry in entries(set) {
                let workload = entry.parse(set);
                let workload = workload.unwrap_or_else(|why| panic!("{}: {why}", entry.name));
                workload.check().expect(entry.name);
            }
        }
        for (at, entry) in ENTRIES.iter().enumerate() {
            let others = &ENTRIES[at + 1..];
            assert!(others.iter().all(|other| other.name != entry.name));
        }
        assert_eq!(entries(ReportSet::Full).count(), ENTRIES.len());
    }

    #[test]
    fn rates_before_a_snapshot_are_those_of_a_warm_engine_and_the_full_set_releases_it() {
        for set in [ReportSet::Quick, ReportSet::Full] {
            for entry in entries(set) {
                let workload = entry.parse(set).unwrap_or_else(|why| panic!("{why}"));
                let hold = workload.hold();
                let Some(at) = hold.and_then(|hold| hold.hold_snapshot_at) else {
                    continue;
                };
                assert!(crate::ratio::warm_up_s(at) >= 2, "{}", entry.name);
                let release = hold.and_then(|hold| hold.release_snapshot_at);
                assert_eq!(release.is_some(), set == ReportSet::Full, "{}", entry.name);
            }
        }
    }

    #[test]
    fn the_quick_set_has_each_workload_and_three_rounds_of_it_are_less_than_twenty_minutes() {
        for workload in WorkloadName::value_variants() {
            // Its rows are those of the others, and so are its transactions.
            if *workload == WorkloadName::Hekaton || *workload == WorkloadName::Hot {
                continue;
            }
            let mut quick = entries(ReportSet::Quick);
            assert!(
                quick.any(|entry| entry.workload == *workload),
                "{workload:?}"
            );
        }
        let words = ["vellum-bench", "report"];
        let Command::Report(report) = Cli::try_parse_from(words).expect("flags").command else {
            panic!("a report")
        };
        let Report { set, .. } = report;
        assert_eq!((set, report.rounds()), (ReportSet::Quick, 3));
        let runs = EngineName::value_variants().len() as f64 * f64::from(report.rounds());
        let each = entries(set).map(|entry| entry.run_s(set));
        let each: f64 = each
            .map(|it| it.unwrap_or_else(|why| panic!("{why}")))
            .sum();
        let minutes = runs * each / 60.0;
        assert!((10.0..20.0).contains(&minutes), "{minutes}");
    }

    #[test]
    fn goals_are_in_both_sets() {
        for (name, flags) in [
            ("tpcc-2", "--threads 2 --affinity"),
            ("sync-64", "--durability sync --threads 64"),
        ] {
            for set in SETS {
                let entry = entries(set).find(|entry| entry.name == name);
                let words = entry.expect(name).arguments(set).join(" ");
                assert!(words.contains(flags), "{words}");
            }
        }
    }
}
