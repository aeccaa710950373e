//! The workloads that can be counted, and how much of each is.
//!
//! What they do is told in `bench/count`, by the same names.

use std::ffi::OsString;
use std::path::Path;

/// Instead of a name: every workload.
pub const ALL: &str = "all";
/// Instead of a name: what is judged in each commit.
pub const FEW: &str = "few";
/// A begin, a lookup and an end; the same with an update and a commit; and what Vellum promises: an insert and a deletion at the ends of a queue
/// beside an old snapshot.
const IN_FEW: [&str; 3] = ["read", "update", "queue-held"];

/// A workload that can be counted.
#[derive(Debug)]
pub struct Counted {
    /// Its name.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// Operations that are run before; of a load, its rows.
    before: u64,
    /// Operations that are counted.
    operations: u64,
    /// How many units are in one of them.
    times: u64,
}

impl Counted {
    const fn operations(name: &'static str, before: u64, operations: u64) -> Self {
        Self {
            name,
            unit: "operation",
            before,
            operations,
            times: 1,
        }
    }

    /// The command of the run that is counted, with its data in `scratch`.
    pub fn command(&self, program: &Path, scratch: &Path) -> Vec<OsString> {
        let counted = self.operations.to_string();
        self.words(program, self.before, counted, scratch)
    }

    /// The command of a run that is long enough to be sampled.
    pub fn sampled(&self, program: &Path, scratch: &Path) -> Vec<OsString> {
        match self.name {
            // One transaction.
            "load" => self.words(program, 10 * self.before, "1".to_owned(), scratch),
            _ => self.words(program, self.before, "5s".to_owned(), scratch),
        }
    }

    fn words(&self, program: &Path, before: u64, counted: String, scratch: &Path) -> Vec<OsString> {
        vec![
            program.into(),
            self.name.into(),
            before.to_string().into(),
            counted.into(),
            scratch.join("data").into_os_string(),
        ]
    }

    /// How many units are counted.
    pub fn units(&self) -> u64 {
        self.operations * self.times
    }
}

/// Rows of the load that is counted.
const LOADED: u64 = 500_000;

/// All of them, in the order of the table.
pub const WORKLOADS: [Counted; 15] = [
    Counted::operations("read", 20_000, 60_000),
    Counted::operations("rmw", 5_000, 30_000),
    Counted::operations("update", 5_000, 30_000),
    // Each leads its own flush.
    Counted::operations("sync", 1_000, 10_000),
    // One transaction.
    Counted {
        name: "load",
        unit: "row",
        before: LOADED,
        operations: 1,
        times: LOADED,
    },
    // All rows of `kv`, each time in a snapshot of its own.
    Counted {
        name: "scan",
        unit: "row",
        before: 2,
        operations: 10,
        times: 200_000,
    },
    Counted::operations("tpcc", 1_000, 3_000),
    Counted::operations("tatp", 5_000, 40_000),
    Counted::operations("queue", 5_000, 30_000),
    Counted::operations("hot", 5_000, 60_000),
    // The same beside a snapshot that was taken before their first operation: what Vellum promises is that these are no dearer. What is not
    // counted is long enough to have promoted its holder.
    Counted::operations("queue-held", 25_000, 20_000),
    Counted::operations("hot-held", 25_000, 60_000),
    Counted::operations("tpcc-held", 2_000, 3_000),
    // Without graveyards, fat rows and shortcuts: what these cost where nobody holds a snapshot.
    Counted::operations("tpcc-osic", 1_000, 3_000),
    Counted::operations("hekaton", 2_000, 10_000),
];

/// The workloads of this name, or of `few` or `all`.
pub fn chosen(name: &str) -> Vec<&'static Counted> {
    let is_meant = |counted: &&Counted| match name {
        ALL => true,
        FEW => IN_FEW.contains(&counted.name),
        _ => counted.name == name,
    };
    WORKLOADS.iter().filter(is_meant).collect()
}

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Counted> {
    WORKLOADS.iter().find(|counted| counted.name == name)
}

/// Names of all workloads, in the table's order.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|counted| counted.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::table;

    #[test]
    fn workloads_have_names_of_their_own() {
        for (at, counted) in WORKLOADS.iter().enumerate() {
            assert!(counted.units() > 0, "{}", counted.name);
            let others = &WORKLOADS[at + 1..];
            assert!(others.iter().all(|other| other.name != counted.name));
            let (program, scratch) = (Path::new("count"), Path::new("/s"));
            for command in [
                counted.command(program, scratch),
                counted.sampled(program, scratch),
            ] {
                assert_eq!(command[..2], ["count", counted.name]);
                assert!(command.ends_with(&["/s/data".into()]));
                assert_eq!(command.len(), 5);
            }
            assert_eq!(find(counted.name).map(|it| it.name), Some(counted.name));
        }
    }

    #[test]
    fn few_are_some_of_all() {
        let of = |name| -> Vec<&str> { chosen(name).iter().map(|it| it.name).collect() };
        assert_eq!(of(ALL), names());
        assert_eq!(of(FEW), IN_FEW);
        assert_eq!(of("sync"), ["sync"]);
        assert_eq!(of("nothing"), [""; 0]);
    }

    /// So that `count all --check` finds a row for everything that it counts.
    #[test]
    fn the_table_has_a_row_for_each_workload_that_is_counted_by_all() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let path = root.expect("the workspace").join(table::PATH);
        let text = std::fs::read_to_string(path).expect("the table");
        let rows = table::rows(&text);
        let rows: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(rows, names());
    }
}
