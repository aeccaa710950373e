//! What power cuts and kills leave behind.

use super::*;

#[test]
fn synced_bytes_and_names_survive_every_cut() {
    let (directory, file) = with_file("data", b"durable");
    file.write_at(&[9; 5000], 100).unwrap();
    directory.open("other", OpenOptions::create()).unwrap();
    for cut in PowerCut::KINDS {
        for seed in 0..50 {
            let after = directory.power_cut(seed, cut);
            assert_eq!(
                &after.read_all("data").unwrap()[..7],
                b"durable",
                "{cut:?} {seed}"
            );
            assert_eq!(after.unsynced_changes(), 0);
        }
    }
}

#[test]
fn clean_cut_loses_what_was_not_synced_and_lucky_cut_loses_nothing() {
    let (directory, file) = with_file("data", b"old");
    file.write_at(b"new and longer", 0).unwrap();
    directory.open("other", OpenOptions::create()).unwrap();
    let clean = directory.power_cut(1, PowerCut::CLEAN);
    assert_eq!(clean.read_all("data").unwrap(), b"old");
    assert!(!clean.exists("other").unwrap());
    let lucky = directory.power_cut(1, PowerCut::LUCKY);
    assert_eq!(lucky.read_all("data").unwrap(), b"new and longer");
    assert!(lucky.exists("other").unwrap());
    // The machine before the cut goes on undisturbed, and the one after is its own.
    lucky
        .open("data", OpenOptions::existing())
        .unwrap()
        .set_len(0)
        .unwrap();
    assert_eq!(directory.read_all("data").unwrap(), b"new and longer");
}

#[test]
fn bytes_synced_under_a_name_that_was_not_are_lost_with_it() {
    let directory = SimulatedDirectory::new();
    let file = directory.open("data", OpenOptions::create()).unwrap();
    file.write_at(b"bytes", 0).unwrap();
    file.sync_data().unwrap();
    assert!(
        !directory
            .power_cut(0, PowerCut::CLEAN)
            .exists("data")
            .unwrap()
    );
    directory.sync_dir("").unwrap();
    assert_eq!(
        directory
            .power_cut(0, PowerCut::CLEAN)
            .read_all("data")
            .unwrap(),
        b"bytes"
    );
}

#[test]
fn subdirectory_that_was_not_synced_takes_its_files_with_it() {
    let directory = SimulatedDirectory::new();
    directory.create_dir("log").unwrap();
    directory.open("log/1", OpenOptions::create()).unwrap();
    directory.sync_dir("log").unwrap();
    let after = directory.power_cut(0, PowerCut::CLEAN);
    assert!(!after.exists("log").unwrap() && !after.exists("log/1").unwrap());
    directory.sync_dir("").unwrap();
    assert!(
        directory
            .power_cut(0, PowerCut::CLEAN)
            .exists("log/1")
            .unwrap()
    );
}

/// Cuts one unsynced write of four sectors over ones with many seeds; returns the survivors as
/// patterns of sectors, and checks that no sector is torn in itself.
fn patterns(cut: PowerCut, unit: usize) -> BTreeSet<Vec<bool>> {
    let (directory, file) = with_file("data", &vec![1; unit * 4]);
    file.write_at(&vec![2; unit * 4], 0).unwrap();
    let cuts = (0..400).map(|seed| directory.power_cut(seed, cut));
    cuts.map(|after| {
        let bytes = after.read_all("data").unwrap();
        let sectors = bytes.chunks(unit);
        sectors
            .map(|sector| {
                assert!(
                    sector.iter().all(|&byte| byte == sector[0]),
                    "a sector is never torn"
                );
                sector[0] == 2
            })
            .collect()
    })
    .collect()
}

#[test]
fn out_of_order_every_subset_of_sectors_is_found() {
    let cut = PowerCut {
        keep: Keep::Random,
        torn: Torn::Sector512,
        reorder: true,
    };
    assert_eq!(patterns(cut, 512).len(), 16);
    let cut = PowerCut {
        torn: Torn::Block4096,
        ..cut
    };
    assert_eq!(patterns(cut, 4096).len(), 16);
    assert_eq!(
        patterns(
            PowerCut {
                torn: Torn::None,
                ..cut
            },
            512
        )
        .len(),
        2
    );
}

#[test]
fn in_order_only_prefixes_are_found() {
    let cut = PowerCut {
        keep: Keep::Random,
        torn: Torn::Sector512,
        reorder: false,
    };
    let prefixes: BTreeSet<Vec<bool>> = (0..=4)
        .map(|kept| (0..4).map(|sector| sector < kept).collect())
        .collect();
    assert_eq!(patterns(cut, 512), prefixes);
}

#[test]
fn in_order_a_later_file_or_name_never_survives_an_earlier_one() {
    let (directory, one) = with_file("one", b"0");
    let two = directory.open("two", OpenOptions::create()).unwrap();
    directory.sync_dir("").unwrap();
    one.write_at(b"1", 0).unwrap();
    two.write_at(b"2", 0).unwrap();
    directory.rename("two", "three").unwrap();
    let cut = PowerCut {
        keep: Keep::Random,
        torn: Torn::None,
        reorder: false,
    };
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let after = directory.power_cut(seed, cut);
        let first = after.read_all("one").unwrap() == b"1";
        let renamed = after.exists("three").unwrap();
        let second = !after
            .read_all(if renamed { "three" } else { "two" })
            .unwrap()
            .is_empty();
        assert!(renamed <= second && second <= first, "seed {seed}");
        seen.insert((first, second, renamed));
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn out_of_order_a_later_change_can_survive_an_earlier_one() {
    let (directory, file) = with_file("data", &[0; 1024]);
    file.write_at(&[1; 512], 0).unwrap();
    file.write_at(&[2; 512], 512).unwrap();
    let reordered = (0..100).any(|seed| {
        let bytes = directory
            .power_cut(seed, PowerCut::HARSH)
            .read_all("data")
            .unwrap();
        bytes[0] == 0 && bytes[1023] == 2
    });
    assert!(reordered);
}

#[test]
fn length_may_be_lost_kept_or_come_without_its_bytes() {
    let (directory, file) = with_file("data", &[1; 512]);
    file.write_at(&[2; 512], 512).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let bytes = directory
            .power_cut(seed, PowerCut::HARSH)
            .read_all("data")
            .unwrap();
        seen.insert((bytes.len(), bytes[bytes.len() - 1]));
    }
    assert_eq!(seen, BTreeSet::from([(512, 1), (1024, 0), (1024, 2)]));
}

#[test]
fn rename_is_whole_in_every_cut() {
    let (directory, _file) = with_file("control", b"old");
    let next = directory
        .open("control.tmp", OpenOptions::create())
        .unwrap();
    next.write_at(b"new", 0).unwrap();
    next.sync_data().unwrap();
    directory.rename("control.tmp", "control").unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        for cut in PowerCut::KINDS {
            seen.insert(directory.power_cut(seed, cut).read_all("control").unwrap());
        }
    }
    assert_eq!(seen, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn rename_between_directories_loses_the_file_in_no_cut() {
    let (directory, _file) = with_file("a", b"x");
    directory.create_dir("log").unwrap();
    directory.sync_dir("").unwrap();
    directory.rename("a", "log/b").unwrap();
    for synced in ["", "log"] {
        for seed in 0..50 {
            for cut in PowerCut::KINDS {
                let after = directory.power_cut(seed, cut);
                let names = (after.exists("a").unwrap(), after.exists("log/b").unwrap());
                assert!(names.0 != names.1, "{names:?}");
            }
        }
        directory.sync_dir(synced).unwrap();
    }
    let after = directory.power_cut(0, PowerCut::CLEAN);
    assert!(!after.exists("a").unwrap() && after.exists("log/b").unwrap());
}

/// Cuts the power at every call of a replacement: `control` is one of `olds` or "new", and that once acknowledged.
fn replace_at_every_call(base: &SimulatedDirectory, expected_calls: u64, olds: &[&[u8]]) {
    let counting = base.process_kill();
    counting.write_atomic("control", b"new").unwrap();
    let calls = counting.mutating_calls();
    assert_eq!(calls, expected_calls);
    for n in 0..=calls {
        let directory = base.process_kill();
        directory.cut_after(n);
        let result = directory.write_atomic("control", b"new");
        assert_eq!(result.is_ok(), n == calls);
        assert_eq!(directory.is_cut(), n < calls);
        for seed in 0..40 {
            for cut in PowerCut::KINDS {
                let found = directory.power_cut(seed, cut).read_all("control").unwrap();
                let fits = found == b"new" || (n < calls && olds.contains(&found.as_slice()));
                assert!(fits, "call {n}, seed {seed}, {cut:?}: {found:?}");
            }
        }
    }
}

#[test]
fn crash_atomic_replacement_shows_old_or_new_at_every_call_and_new_once_acknowledged() {
    let base = with_file("control", b"old content").0;
    // Create, write, sync, exchange, directory.
    replace_at_every_call(&base, 5, &[b"old content"]);
    base.write_atomic("control", b"older").unwrap();
    // Write, length, sync, exchange, directory: into the space of the first content.
    replace_at_every_call(&base, 5, &[b"older"]);
    base.write_atomic("control", b"old").unwrap();
    // After a process that ended before its last sync: the disk may have the names as before, and whoever comes next syncs them.
    base.fail(Fault::nth(Call::SyncDir, 0));
    assert!(base.write_atomic("control", b"unsynced").is_err());
    let next = base.process_kill();
    for seed in 0..40 {
        for cut in PowerCut::KINDS {
            let found = next.power_cut(seed, cut).read_all("control").unwrap();
            assert!([&b"old"[..], b"unsynced"].contains(&&*found), "{found:?}");
        }
    }
    next.sync_dir("").unwrap();
    replace_at_every_call(&next.power_cut(1, PowerCut::CLEAN), 4, &[b"unsynced"]);
    let longer = with_file("control", &[1; 2000]).0;
    longer.write_atomic("control", &[2; 2000]).unwrap();
    longer.write_atomic("control", &[3; 2000]).unwrap();
    replace_at_every_call(&longer, 5, &[&[3; 2000]]);
}

#[test]
fn full_disk_refuses_no_replacement_but_the_first() {
    let directory = with_file("data", &[1; 10_000]).0;
    directory.write_atomic("control", b"one").unwrap();
    directory.set_space_limit(Some(directory.used_space()));
    assert!(matches!(
        directory.write_atomic("control", b"two"),
        Err(StorageError::OutOfSpace { .. })
    ));
    assert_eq!(directory.read_all("control").unwrap(), b"one");
    directory.set_space_limit(None);
    directory.write_atomic("control", b"two").unwrap();
    directory.set_space_limit(Some(directory.used_space()));
    for content in [b"tri", b"for", b"fiv"] {
        directory.write_atomic("control", content).unwrap();
        assert_eq!(directory.read_all("control").unwrap(), content);
    }
}

#[test]
fn same_seed_finds_the_same_disk() {
    let seed = crate::test_seed();
    let mut random = Random::new(seed);
    let directory = SimulatedDirectory::new();
    let files: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| directory.open(name, OpenOptions::create()).unwrap())
        .collect();
    for _ in 0..50 {
        let file = &files[usize::try_from(random.below(3)).unwrap()];
        file.write_at(&[random.next_u64() as u8; 700], random.below(10_000))
            .unwrap();
    }
    let content = |directory: &SimulatedDirectory| {
        let names = directory.list("").unwrap();
        names
            .iter()
            .map(|name| directory.read_all(name).unwrap())
            .collect::<Vec<_>>()
    };
    let all: BTreeSet<_> = (0..20)
        .map(|cut_seed| {
            let once = content(&directory.power_cut(cut_seed, PowerCut::HARSH));
            assert!(once == content(&directory.power_cut(cut_seed, PowerCut::HARSH)));
            once
        })
        .collect();
    assert!(all.len() > 5, "different seeds find different disks");
}

#[test]
fn killed_process_leaves_everything_written_and_a_later_cut_can_still_lose_it() {
    let (directory, file) = with_file("data", b"old");
    file.write_at(b"new", 0).unwrap();
    let _guard = directory.try_lock().unwrap();
    let next = directory.process_kill();
    assert_eq!(next.read_all("data").unwrap(), b"new");
    assert!(next.try_lock().is_ok());
    assert_eq!(
        next.power_cut(0, PowerCut::CLEAN).read_all("data").unwrap(),
        b"old"
    );
    next.open("data", OpenOptions::existing())
        .unwrap()
        .sync_data()
        .unwrap();
    assert_eq!(
        next.power_cut(0, PowerCut::CLEAN).read_all("data").unwrap(),
        b"new"
    );
}

#[test]
fn cut_stops_every_call_and_the_call_in_flight_may_have_taken_effect() {
    let (directory, file) = with_file("data", b"0");
    directory.cut_after(1);
    file.write_at(b"1", 0).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 0).unwrap();
    assert!(file.write_at(b"2", 0).is_err() && directory.is_cut());
    assert!(file.read_at(&mut byte, 0).is_err() && file.len().is_err());
    assert!(file.write_at(b"3", 0).is_err() && file.sync_data().is_err());
    assert!(directory.open("data", OpenOptions::existing()).is_err());
    assert!(directory.list("").is_err() && directory.exists("data").is_err());
    assert!(directory.try_lock().is_err());
    let found: BTreeSet<Vec<u8>> = (0..100)
        .map(|seed| {
            directory
                .power_cut(seed, PowerCut::HARSH)
                .read_all("data")
                .unwrap()
        })
        .collect();
    assert_eq!(
        found,
        BTreeSet::from([b"0".to_vec(), b"1".to_vec(), b"2".to_vec()])
    );
}

/// Random calls on the simulated disk against a plain model of "what must survive": the last synced
/// content of each file, byte by byte where nothing was written since.
#[test]
fn prop_no_cut_changes_a_byte_that_was_synced_and_not_written_since() {
    let seed = crate::test_seed();
    let mut random = Random::new(seed);
    for round in 0..60 {
        let directory = SimulatedDirectory::new();
        let file = directory.open("data", OpenOptions::create()).unwrap();
        directory.sync_dir("").unwrap();
        let mut synced = Vec::<u8>::new();
        let mut touched = vec![false; 1 << 16];
        let mut floor = 0;
        for _ in 0..random.between(1, 60) {
            let offset = random.below(30_000);
            let start = usize::try_from(offset).unwrap();
            match random.below(8) {
                0 => {
                    file.sync_data().unwrap();
                    synced = directory.read_all("data").unwrap();
                    touched.fill(false);
                    floor = synced.len();
                }
                1 => {
                    file.set_len(offset).unwrap();
                    floor = floor.min(start);
                    touched[start..].fill(true);
                }
                _ => {
                    let length = usize::try_from(random.between(1, 6000)).unwrap();
                    file.write_at(&vec![random.next_u64() as u8; length], offset)
                        .unwrap();
                    touched[start..start + length].fill(true);
                }
            }
        }
        for cut in PowerCut::KINDS {
            let found = directory
                .power_cut(random.next_u64(), cut)
                .read_all("data")
                .unwrap();
            assert!(found.len() >= floor, "round {round}, {cut:?}: length lost");
            let shared = found.len().min(synced.len());
            let changed = (0..shared).find(|&at| !touched[at] && found[at] != synced[at]);
            assert_eq!(changed, None, "round {round}, {cut:?}");
        }
    }
}

#[test]
fn file_that_got_the_old_name_of_a_half_synced_rename_stays_in_every_cut() {
    let (directory, _file) = with_file("a", b"first");
    directory.create_dir("log").unwrap();
    directory.sync_dir("").unwrap();
    directory.rename("a", "log/a").unwrap();
    directory.open("a", OpenOptions::create_new()).unwrap();
    directory.sync_dir("").unwrap();
    for seed in 0..50 {
        for cut in PowerCut::KINDS {
            assert!(
                directory.power_cut(seed, cut).exists("a").unwrap(),
                "{seed} {cut:?}"
            );
        }
    }
}

#[test]
fn one_file_may_keep_everything_while_another_loses_everything() {
    let (directory, one) = with_file("one", &[0; 20]);
    let two = directory.open("two", OpenOptions::create()).unwrap();
    two.write_at(&[0; 20], 0).unwrap();
    two.sync_data().unwrap();
    directory.sync_dir("").unwrap();
    for offset in 0..20 {
        one.write_at(&[1], offset).unwrap();
        two.write_at(&[1], offset).unwrap();
    }
    let extreme = (0..200).any(|seed| {
        let after = directory.power_cut(seed, PowerCut::HARSH);
        after.read_all("one").unwrap() == [1; 20] && after.read_all("two").unwrap() == [0; 20]
    });
    assert!(extreme, "the case that breaks a log rule");
}

#[test]
fn directory_in_a_lost_directory_is_lost_with_its_files() {
    let directory = SimulatedDirectory::new();
    directory.create_dir("a").unwrap();
    directory.create_dir("a/b").unwrap();
    directory.open("a/b/c", OpenOptions::create()).unwrap();
    directory.sync_dir("a/b").unwrap();
    directory.sync_dir("a").unwrap();
    let after = directory.power_cut(0, PowerCut::CLEAN);
    assert!(!after.exists("a/b").unwrap() && !after.exists("a/b/c").unwrap());
}
