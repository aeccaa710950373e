//! Syncs that lie.

use super::super::SimulatedDirectory;
use crate::{Directory, Lie, OpenOptions, PowerCut, WriteLie};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Calls: open 0, sync of the directory 1, write 2, sync 3, write 4, sync 5.
fn run(disk: &SimulatedDirectory) {
    let file = disk.open("a", OpenOptions::create_new()).unwrap();
    disk.sync_dir("").unwrap();
    file.write_at(b"1", 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(b"2", 1).unwrap();
    file.sync_data().unwrap();
}

fn found(calls: &[u64], how: Lie, cut_after: Option<u64>) -> Option<Vec<u8>> {
    let disk = SimulatedDirectory::new();
    disk.lie_at(calls.iter().copied().collect(), how);
    if let Some(calls) = cut_after {
        disk.cut_after(calls);
        let run = std::panic::AssertUnwindSafe(|| run(&disk));
        std::panic::catch_unwind(run).unwrap_err();
    } else {
        run(&disk);
    }
    disk.power_cut(1, PowerCut::CLEAN).read_all("a").ok()
}

#[test]
fn omitted_sync_makes_nothing_durable() {
    assert_eq!(found(&[], Lie::Omitted, None).unwrap(), b"12");
    assert_eq!(found(&[5], Lie::Omitted, None).unwrap(), b"1");
    assert_eq!(found(&[3, 5], Lie::Omitted, None).unwrap(), b"");
    assert_eq!(found(&[1], Lie::Omitted, None), None, "the name is lost");
}

#[test]
fn late_sync_lets_the_next_write_pass() {
    assert_eq!(found(&[3], Lie::LATE, Some(3)).unwrap(), b"");
    assert_eq!(
        found(&[3], Lie::LATE, Some(5)).unwrap(),
        b"\x002",
        "the second write came first"
    );
    assert_eq!(found(&[3], Lie::LATE, None).unwrap(), b"12");
    assert_eq!(
        found(&[5], Lie::LATE, None).unwrap(),
        b"1",
        "nothing came after it"
    );
}

#[test]
fn late_sync_lets_several_changes_pass_and_the_last_of_them_in_part() {
    let changed = |changes, torn| {
        let disk = SimulatedDirectory::new();
        let files = ["a", "b"].map(|name| disk.open(name, OpenOptions::create_new()).unwrap());
        disk.sync_dir("").unwrap();
        // The sync of a is call number 4.
        disk.lie_at(BTreeSet::from([4]), Lie::Late { changes, torn });
        files[0].write_at(b"1", 0).unwrap();
        files[0].sync_data().unwrap();
        files[1].write_at(b"2", 0).unwrap();
        files[1].write_at(&[3; 1024], 0).unwrap();
        let found = disk.power_cut(1, PowerCut::CLEAN);
        ["a", "b"].map(|name| found.read_all(name).unwrap())
    };
    assert_eq!(changed(1, false), [b"1".to_vec(), b"2".to_vec()]);
    assert_eq!(changed(2, false), [vec![], vec![3; 1024]]);
    assert_eq!(changed(2, true), [vec![], vec![3; 512]]);
    assert_eq!(changed(3, false), [vec![], vec![]], "nothing passed it");
}

#[test]
fn name_that_passes_a_late_sync_is_not_taken_away_by_what_it_passed() {
    let disk = SimulatedDirectory::new();
    disk.open("a", OpenOptions::create_new()).unwrap();
    disk.sync_dir("").unwrap();
    disk.remove("a").unwrap();
    disk.lie_at(BTreeSet::from([3]), Lie::LATE);
    disk.sync_dir("").unwrap();
    disk.open("a", OpenOptions::create_new()).unwrap();
    for kind in PowerCut::KINDS {
        assert!(disk.power_cut(1, kind).exists("a").unwrap(), "{kind:?}");
    }
    disk.sync_dir("").unwrap();
    assert!(disk.power_cut(1, PowerCut::CLEAN).exists("a").unwrap());
    assert_eq!(disk.unsynced_changes(), 0);
}

#[test]
fn observer_is_told_every_sync_with_its_number() {
    let disk = SimulatedDirectory::new();
    let calls = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = calls.clone();
    disk.observe_syncs(Arc::new(move |call, name| {
        noted.lock().unwrap().insert((call, name.to_owned()));
    }));
    run(&disk);
    let expected = [(1, ""), (3, "a"), (5, "a")].map(|(call, name)| (call, name.to_owned()));
    assert_eq!(*calls.lock().unwrap(), BTreeSet::from(expected));
}

#[test]
fn write_that_is_lost_or_misdirected_reports_success_and_leaves_what_was_there() {
    let after = |lie: WriteLie| {
        let disk = SimulatedDirectory::new();
        disk.lie_about_writes(BTreeMap::from([(4, lie)]));
        run(&disk);
        let synced = disk.power_cut(1, PowerCut::CLEAN).read_all("a").unwrap();
        assert_eq!(disk.read_all("a").unwrap(), synced, "a cut changes nothing");
        synced
    };
    assert_eq!(after(WriteLie::Lost), b"1");
    assert_eq!(after(WriteLie::Misdirected(0)), b"2");
    assert_eq!(after(WriteLie::Misdirected(3)), b"1\0\x002");
}
