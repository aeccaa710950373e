//! Each sync of the engine is needed, or its reason to be there is known: taken away, a power cut finds something wrong.
//!
//! `VELLUM_THOROUGH=1 cargo test -p vellum-crash --test crash_syncs -- --nocapture` tries also those that others cover, and
//! prints the whole list.

mod engine;

use engine::{KEY_LIMIT, open};
use std::collections::{BTreeMap, BTreeSet};
use vellum_crash::syncs::{Place, Verdict, syncs_of, try_lie, wrecks};
use vellum_crash::workload;
use vellum_io::Lie;
use vellum_model::Step;
use vellum_model::run::thorough;

/// Syncs that no cut misses, and why: another one comes before anything relies on them.
const COVERED: [(&str, &str, &str); 10] = [
    (
        "engine/src/open.rs: create",
        "",
        "the control file is written next, which syncs the same directory",
    ),
    (
        "engine/src/open.rs: create",
        "log",
        "leftovers of an interrupted creation; segments are made with a sync of their own",
    ),
    (
        "storage/buffer/src/checkpoint.rs: checkpoint_step",
        "data",
        "earlier batches are durable by the sync of the last half, the last batch stands in the double-write area (D2)",
    ),
    (
        "storage/buffer/src/pool.rs: create_file",
        "data",
        "nothing of a new database counts before its first checkpoint",
    ),
    (
        "storage/buffer/src/space.rs: grow_to_free",
        "data",
        "pages beyond the end are free; the next sync of the file comes before a record about them is relied on",
    ),
    (
        "storage/buffer/src/space.rs: cut_file",
        "data",
        "a file that is longer than it need be",
    ),
    (
        "storage/buffer/src/double_write.rs: repair_torn_pages",
        "data",
        "repair is repeated as long as the halves stand, and the first half that is overwritten is synced first",
    ),
    (
        "storage/wal/src/reader.rs: make_durable",
        "log/",
        "after a power cut all that stands is durable; a killed process leaves what is not: \
         regress_crash_recovery_builds_on_no_log_that_a_killed_process_left_unsynced in engine/tests/crashes.rs",
    ),
    (
        "storage/wal/src/segment.rs: fill",
        "log/",
        "the header is written, and the file synced, before a round is",
    ),
    (
        "storage/wal/src/segment.rs: open",
        "",
        "the control file is written next, which syncs the same directory",
    ),
];

/// Syncs that keep two writes in order of which a swap alone, with both done in the end, must be noticed.
const ORDERED: [(&str, &str); 2] = [
    ("storage/wal/src/round.rs: write_all", "log/"),
    (
        "storage/io/src/directory.rs: write_atomic < engine/src/control.rs: write",
        "control.tmp",
    ),
];

/// Syncs that are missed if they are taken away, but not if the next write alone passes them.
const SWAPPED: [(&str, &str, &str); 2] = [
    (
        "storage/buffer/src/write_out.rs: write_half",
        "data",
        "the one page that passes is whole, and its log is durable; the copies are for pages that are torn, of which there are more when it is left out",
    ),
    (
        "storage/wal/src/segment.rs: fill",
        "log",
        "whatever relies on the name is acknowledged after a sync of its own, before which the late one comes",
    ),
];

fn reason(how: Lie, place: &Place) -> Option<&'static str> {
    let swapped: &[(&str, &str, &str)] = match how {
        Lie::Omitted => &[],
        Lie::Late => &SWAPPED,
    };
    let found = COVERED
        .iter()
        .chain(swapped)
        .find(|(function, name, _)| *function == place.function && *name == place.name);
    found.map(|(_, _, reason)| *reason)
}

fn is_ordered(place: &Place) -> bool {
    ORDERED
        .iter()
        .any(|(function, name)| *function == place.function && *name == place.name)
}

/// What each place's lie led to; a place once caught is not tried again.
#[derive(Default)]
struct List(BTreeMap<Place, Verdict>);

impl List {
    fn note(&mut self, place: &Place, judge: impl FnOnce() -> Verdict) {
        if self
            .0
            .get(place)
            .is_some_and(|known| known.caught.is_some())
        {
            return;
        }
        let before = self.0.get(place).map_or(0, |known| known.cuts);
        let mut verdict = judge();
        verdict.cuts += before;
        self.0.insert(place.clone(), verdict);
    }

    fn print(&self, how: Lie) {
        for (place, verdict) in &self.0 {
            let line = match (&verdict.caught, reason(how, place)) {
                (Some(what), _) => what.lines().next().unwrap_or_default().to_owned(),
                (None, Some(reason)) => format!("covered: {reason}"),
                (None, None) => "not caught".to_owned(),
            };
            let cuts = verdict.cuts;
            eprintln!("| {how:?} | {place} | {cuts} | {line} |");
        }
    }
}

/// Tries all places that `wanted` names, in workloads and in recoveries from cuts of them.
fn try_all(how: Lie, wanted: impl Fn(&Place) -> bool) -> List {
    let workloads: [Vec<Step>; 4] = [
        workload::commits(),
        workload::rollbacks(),
        workload::tables(engine::INLINE_VALUE),
        workload::bulk_load(300),
    ];
    let mut list = List::default();
    for (number, history) in (0_u64..).zip(&workloads) {
        let syncs = syncs_of(history, KEY_LIMIT, &open).expect("the workload runs");
        for (place, calls) in syncs.iter().filter(|(place, _)| wanted(place)) {
            list.note(place, || {
                try_lie(history, KEY_LIMIT, calls, how, &open).expect("the workload runs")
            });
        }
        for wreck in wrecks(history, KEY_LIMIT, 3, number, &open).expect("the workload runs") {
            let syncs = wreck.syncs(&open).expect("recovery is right without lies");
            for (place, calls) in syncs.iter().filter(|(place, _)| wanted(place)) {
                list.note(place, || wreck.try_lie(calls, how, &open));
            }
        }
    }
    list
}

#[test]
fn crash_every_sync_that_is_taken_away_is_missed() {
    let thorough = thorough();
    let list = try_all(Lie::Omitted, |place| {
        thorough || reason(Lie::Omitted, place).is_none()
    });
    list.print(Lie::Omitted);
    let found: BTreeSet<bool> = list
        .0
        .values()
        .map(|verdict| verdict.caught.is_some())
        .collect();
    assert!(
        found.contains(&true),
        "no place was found: are there symbols?"
    );
    for (place, verdict) in &list.0 {
        assert_ne!(place.function, "unknown", "a sync from nowhere");
        match (&verdict.caught, reason(Lie::Omitted, place)) {
            (None, None) => panic!("nothing misses the sync in {place}"),
            (Some(what), Some(reason)) => {
                panic!("{place} is said to be covered ({reason}), but: {what}")
            }
            _ => {}
        }
    }
}

#[test]
fn crash_writes_that_are_swapped_are_missed() {
    let thorough = thorough();
    let list = try_all(Lie::Late, |place| thorough || is_ordered(place));
    list.print(Lie::Late);
    for (place, verdict) in &list.0 {
        let known = verdict.caught.is_some() || reason(Lie::Late, place).is_some();
        assert!(
            known,
            "nobody notices that a write passes the sync in {place}"
        );
    }
    let caught: Vec<&Place> = list
        .0
        .iter()
        .filter(|(place, verdict)| is_ordered(place) && verdict.caught.is_some())
        .map(|(place, _)| place)
        .collect();
    assert_eq!(caught.len(), ORDERED.len(), "only {caught:?} were noticed");
}
