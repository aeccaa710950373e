//! Each sync of the engine is needed, or its reason to be there is known: taken away, a power cut finds something wrong.
//!
//! `VELLUM_THOROUGH=1 cargo test -p vellum-crash --test crash_syncs -- --nocapture` tries also those that others cover, and
//! prints the whole list. That the list has every sync of the source is always asked.

mod backups;
mod engine;

use engine::{KEY_LIMIT, open};
use std::collections::{BTreeMap, BTreeSet};
use vellum_crash::sites::Sites;
use vellum_crash::syncs::{
    Making, Place, Syncs, Verdict, half_made, killed_before, syncs_of, try_lie, wrecks,
};
use vellum_crash::workload;
use vellum_io::Lie;
use vellum_model::Step;
use vellum_model::run::thorough;

/// Syncs that no cut misses, and why: another one comes before anything relies on them.
const COVERED: [(&str, &str); 13] = [
    (
        "engine/src/backup.rs: backup, sync 3 of 3, of \"\"",
        "the control file is written next, which syncs the same directory",
    ),
    (
        "engine/src/open.rs: create, sync 2 of 2, of \"\"",
        "the control file is written next, which syncs the same directory",
    ),
    (
        "engine/src/open.rs: create, sync 1 of 2, of \"log\"",
        "leftovers of an interrupted creation; segments are made with a sync of their own",
    ),
    (
        "storage/buffer/src/checkpoint.rs: checkpoint_step of \"data\"",
        "earlier batches are durable by the sync of the last half, the last batch stands in the double-write area (D2)",
    ),
    (
        "storage/buffer/src/pool.rs: create_file_at of \"data\"",
        "nothing of a new database counts before its first checkpoint",
    ),
    (
        "storage/buffer/src/space.rs: grow_to_free of \"data\"",
        "pages beyond the end are free; the next sync of the file comes before a record about them is relied on",
    ),
    (
        "storage/buffer/src/space.rs: cut_file of \"data\"",
        "a file that is longer than it need be",
    ),
    (
        "storage/buffer/src/double_write.rs: repair_torn_pages, sync 1 of 2, of \"data\"",
        "after a power cut all that stands is durable; a killed process leaves what is not: \
         regress_crash_during_repair_after_a_killed_process_leaves_no_torn_page in buffer/src/tests/crash.rs",
    ),
    (
        "storage/buffer/src/double_write.rs: repair_torn_pages, sync 2 of 2, of \"data\"",
        "repair is repeated as long as the halves stand, and the first half that is overwritten is synced first",
    ),
    (
        "storage/io/src/directory.rs: write_atomic < engine/src/control.rs: write, sync 1 of 3, of \"\"",
        "what is written over under the other name is one sector: the old control file or the new one",
    ),
    (
        "storage/wal/src/reader.rs: make_durable of \"log/\"",
        "after a power cut all that stands is durable; a killed process leaves what is not: \
         regress_crash_recovery_builds_on_no_log_that_a_killed_process_left_unsynced in engine/tests/crashes.rs",
    ),
    (
        "storage/wal/src/segment.rs: fill, sync 1 of 2, of \"log/\"",
        "the header is written, and the file synced, before a round is",
    ),
    (
        "storage/wal/src/segment.rs: open, sync 1 of 2, of \"\"",
        "the control file is written next, which syncs the same directory",
    ),
];

/// Syncs that keep two writes in order of which a swap alone, with both done in the end, must be noticed.
const ORDERED: [&str; 2] = [
    "storage/wal/src/round.rs: write_all of \"log/\"",
    "storage/io/src/directory.rs: write_atomic < engine/src/control.rs: write, sync 2 of 3, of \"control.tmp\"",
];

const COPY: &str =
    "nothing of a copy counts before its control file, behind which no late one comes";

/// Syncs that are missed if they are taken away, but not if the next write alone passes them.
const SWAPPED: [(&str, &str); 6] = [
    (
        "engine/src/backup.rs: backup, sync 1 of 3, of \"data\"",
        COPY,
    ),
    (
        "engine/src/backup.rs: backup, sync 2 of 3, of \"log\"",
        COPY,
    ),
    (
        "engine/src/backup/log_copy.rs: copy_segment of \"log/\"",
        COPY,
    ),
    (
        "storage/buffer/src/write_out.rs: write_half of \"data\"",
        "the one page that passes is whole, and its log is durable; the copies are for pages that are torn, of which there are more when it is left out",
    ),
    (
        "storage/wal/src/segment.rs: fill, sync 2 of 2, of \"log\"",
        "whatever relies on the name is acknowledged after a sync of its own, before which the late one comes",
    ),
    (
        "storage/wal/src/segment.rs: open, sync 2 of 2, of \"log\"",
        "the header that is written next is synced before anything relies on the name, and the late one comes before that",
    ),
];

fn reason(how: Lie, place: &Place) -> Option<&'static str> {
    let swapped: &[(&str, &str)] = match how {
        Lie::Omitted => &[],
        Lie::Late => &SWAPPED,
    };
    let place = place.to_string();
    let found = COVERED
        .iter()
        .chain(swapped)
        .find(|(name, _)| *name == place);
    found.map(|(_, reason)| *reason)
}

fn is_ordered(place: &Place) -> bool {
    ORDERED.contains(&&*place.to_string())
}

/// What each place's lie led to; a place once caught is not tried again.
#[derive(Default)]
struct List {
    tried: BTreeMap<Place, Verdict>,
    /// Every place that was met, tried or not.
    met: BTreeSet<Place>,
}

impl List {
    fn note(
        &mut self,
        syncs: &Syncs,
        wanted: &dyn Fn(&Place) -> bool,
        judge: &dyn Fn(&BTreeSet<u64>) -> Verdict,
    ) {
        self.met.extend(syncs.keys().cloned());
        for (place, calls) in syncs.iter().filter(|(place, _)| wanted(place)) {
            let known = self.tried.get(place);
            if known.is_some_and(|known| known.caught.is_some()) {
                continue;
            }
            let before = known.map_or(0, |known| known.cuts);
            let mut verdict = judge(calls);
            verdict.cuts += before;
            self.tried.insert(place.clone(), verdict);
        }
    }

    fn print(&self, how: Lie) {
        for (place, verdict) in &self.tried {
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

/// Tries all places that `wanted` names, in workloads, in recoveries from cuts of them, and in backups.
fn try_all(how: Lie, wanted: &dyn Fn(&Place) -> bool) -> List {
    let workloads: [Vec<Step>; 4] = [
        workload::commits(),
        workload::rollbacks(),
        workload::tables(engine::INLINE_VALUE),
        workload::bulk_load(300),
    ];
    let mut list = List::default();
    for (number, history) in (0_u64..).zip(&workloads) {
        let syncs = syncs_of(history, KEY_LIMIT, &open).expect("the workload runs");
        list.note(&syncs, wanted, &|calls| {
            try_lie(history, KEY_LIMIT, calls, how, &open).expect("the workload runs")
        });
        let spread = wrecks(history, KEY_LIMIT, 3, number, &open).expect("the workload runs");
        let half = half_made(history, KEY_LIMIT, &open).expect("the workload runs");
        // The control file has changed places with the one beside it, but nobody has synced that.
        let exchanged =
            |place: &Place| place.function.contains(": write_atomic") && place.sync.0 == 3;
        let exchanged = killed_before(history, KEY_LIMIT, (exchanged, 0), &open);
        let exchanged = exchanged.expect("the workload runs");
        for wreck in spread.into_iter().chain(half).chain(exchanged) {
            let syncs = wreck.syncs(&open).expect("recovery is right without lies");
            list.note(&syncs, wanted, &|calls| wreck.try_lie(calls, how, &open));
        }
    }
    let source = backups::Source::new();
    let backup = Making {
        make: &|target| source.back_up(target),
        judge: &|found, done| source.judge(found, done),
    };
    let syncs = backup.syncs().expect("a backup without lies is right");
    // What opens the copy is met above.
    let backup_only = |place: &Place| wanted(place) && place.function.contains("backup");
    list.note(&syncs, &backup_only, &|calls| backup.try_lie(calls, how));
    list
}

/// Every sync that stands in the source was met, so it is tried (if not always, then in a thorough run), and docs/syncs.md has what came of it.
fn is_complete(how: Lie, list: &List) {
    const DOCUMENT: &str = include_str!("../../../docs/syncs.md");
    let sites = Sites::of_product().expect("the sources are there");
    for (function, count) in sites.iter() {
        for at in 1..=count {
            let met = list.met.iter().any(|place| {
                let innermost = place.function.split(" < ").next();
                innermost == Some(function) && place.sync == (at, count)
            });
            assert!(
                met,
                "no workload comes to sync {at} of {count} in {function}"
            );
        }
    }
    for place in &list.met {
        let row = format!("| {how:?} | {place} |");
        assert!(DOCUMENT.contains(&row), "docs/syncs.md lacks {row}");
    }
    let rows = DOCUMENT
        .lines()
        .filter(|line| line.starts_with(&format!("| {how:?} |")));
    assert_eq!(rows.count(), list.met.len(), "docs/syncs.md has more");
}

#[test]
fn crash_every_sync_that_is_taken_away_is_missed() {
    let thorough = thorough();
    let list = try_all(Lie::Omitted, &|place| {
        thorough || reason(Lie::Omitted, place).is_none()
    });
    list.print(Lie::Omitted);
    let caught = list
        .tried
        .values()
        .filter(|verdict| verdict.caught.is_some());
    assert!(caught.count() > 0, "no place was found: are there symbols?");
    for (place, verdict) in &list.tried {
        match (&verdict.caught, reason(Lie::Omitted, place)) {
            (None, None) => panic!("nothing misses the sync in {place}"),
            (Some(what), Some(reason)) => {
                panic!("{place} is said to be covered ({reason}), but: {what}")
            }
            _ => {}
        }
    }
    is_complete(Lie::Omitted, &list);
}

#[test]
fn crash_writes_that_are_swapped_are_missed() {
    let thorough = thorough();
    let list = try_all(Lie::Late, &|place| thorough || is_ordered(place));
    list.print(Lie::Late);
    for (place, verdict) in &list.tried {
        let known = verdict.caught.is_some() || reason(Lie::Late, place).is_some();
        assert!(
            known,
            "nobody notices that a write passes the sync in {place}"
        );
    }
    let caught = list
        .tried
        .iter()
        .filter(|(_, verdict)| verdict.caught.is_some());
    let caught: Vec<&Place> = caught
        .map(|(place, _)| place)
        .filter(|place| is_ordered(place))
        .collect();
    assert_eq!(caught.len(), ORDERED.len(), "only {caught:?} were noticed");
    is_complete(Lie::Late, &list);
}
