//! Tests of the real directory: direct I/O, the lock, poison, allocation, batches.

use super::*;
use crate::real::file::RealFile;

fn scratch() -> (tempfile::TempDir, RealDirectory) {
    let temporary = tempfile::tempdir().unwrap();
    let directory = RealDirectory::create(temporary.path().join("db")).unwrap();
    (temporary, directory)
}

fn kind_of(error: &StorageError) -> Option<io::ErrorKind> {
    match error {
        StorageError::Io { source, .. } => Some(source.kind()),
        _ => None,
    }
}

#[test]
fn real_directory_keeps_the_contract_of_directories() {
    let (_temporary, directory) = scratch();
    crate::contract::check(&directory);
}

#[test]
fn direct_files_read_back_what_was_written_and_demand_alignment() {
    let (_temporary, directory) = scratch();
    let file = directory
        .open("data", OpenOptions::create().direct())
        .unwrap();
    let mut block = AlignedBuf::zeroed(8192).unwrap();
    block.fill(3);
    file.write_at(&block, 4096).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 12288);
    let mut back = AlignedBuf::zeroed(12288).unwrap();
    file.read_at(&mut back, 0).unwrap();
    assert!(back[..4096].iter().all(|&byte| byte == 0) && back[4096..] == block[..]);
    let reader = directory
        .open("data", OpenOptions::read_only().direct())
        .unwrap();
    assert_eq!(reader.is_direct(), file.is_direct());
    let unaligned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = file.write_at(&[1; 100], 0);
    }));
    assert!(unaligned.is_err());
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "the trial leaves nothing"
    );
}

#[test]
fn left_over_trial_file_is_not_listed_and_stops_no_later_trial() {
    let (_temporary, directory) = scratch();
    fs::write(directory.path().join(TRIAL_NAME), b"from a crash").unwrap();
    assert!(directory.list("").unwrap().is_empty());
    directory
        .open("data", OpenOptions::create().direct())
        .unwrap();
    assert_eq!(directory.list("").unwrap(), ["data"]);
    assert!(!fs::exists(directory.path().join(TRIAL_NAME)).unwrap());
}

#[test]
fn second_opener_in_the_same_process_is_locked_out_until_the_guard_goes() {
    let (_temporary, directory) = scratch();
    let other = RealDirectory::open(directory.path()).unwrap();
    let guard = directory.try_lock().unwrap();
    let error = other.try_lock().unwrap_err();
    assert!(matches!(error, StorageError::Locked { pid } if pid == std::process::id()));
    drop(guard);
    let guard = other.try_lock().unwrap();
    assert!(matches!(
        directory.try_lock(),
        Err(StorageError::Locked { .. })
    ));
    drop(guard);
}

/// Names the directory to the process in which the test below runs again.
const CHILD_ROOT: &str = "VELLUM_TEST_LOCKED_ROOT";

#[test]
fn second_process_is_locked_out_though_the_lock_file_was_removed() {
    let locked_out = |directory: &RealDirectory, pid: u32| {
        for result in [directory.try_lock(), directory.try_lock_shared()] {
            match result.map(drop) {
                Err(StorageError::Locked { pid: found }) => assert_eq!(found, pid),
                other => panic!("{other:?}"),
            }
        }
    };
    if let Ok(root) = std::env::var(CHILD_ROOT) {
        let (pid, root) = root.split_once(',').unwrap();
        locked_out(&RealDirectory::open(root).unwrap(), pid.parse().unwrap());
        return;
    }
    let (_temporary, directory) = scratch();
    let lock = directory.path().join("LOCK");
    let child = |pid: u32| {
        let root = format!("{pid},{}", directory.path().display());
        let name = "real::tests::second_process_is_locked_out_though_the_lock_file_was_removed";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(CHILD_ROOT, root)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
    };
    let guard = directory.try_lock().unwrap();
    child(std::process::id());
    fs::remove_file(&lock).unwrap();
    child(0);
    assert!(!lock.exists(), "who is refused makes no lock file");
    // A copy of another's file does not help, either.
    fs::write(&lock, b"").unwrap();
    child(0);
    drop(guard);
    drop(directory.try_lock().unwrap());
    // A reader, too, keeps openers out without the file.
    let reader = directory.try_lock_shared().unwrap();
    fs::remove_file(&lock).unwrap();
    assert!(matches!(
        directory.try_lock(),
        Err(StorageError::Locked { pid: 0 })
    ));
    drop(reader);
    drop(directory.try_lock().unwrap());
}

#[test]
fn directory_that_cannot_be_written_gives_an_error_that_names_the_lock() {
    // Nobody, root included, makes files here.
    let directory = RealDirectory::open("/sys/kernel").unwrap();
    let error = directory.try_lock().unwrap_err();
    assert!(error.to_string().contains("lock of LOCK failed"), "{error}");
    assert!(matches!(error, StorageError::Io { .. }));
}

#[test]
fn path_that_is_no_directory_is_refused() {
    let (temporary, directory) = scratch();
    directory.open("file", OpenOptions::create()).unwrap();
    let error = RealDirectory::open(directory.path().join("file")).unwrap_err();
    assert_eq!(kind_of(&error), Some(io::ErrorKind::NotADirectory));
    let error = RealDirectory::create(temporary.path().join("a/b")).unwrap_err();
    assert_eq!(kind_of(&error), Some(io::ErrorKind::NotFound));
}

/// A sync of a pipe fails with EINVAL: the only failing fsync that needs no broken disk.
fn make_pipe(directory: &RealDirectory, name: &str) {
    let path = directory.path().join(name);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[test]
fn failed_sync_poisons_every_file_of_the_directory_and_is_not_repeated() {
    let (_temporary, directory) = scratch();
    let good = directory.open("good", OpenOptions::create()).unwrap();
    good.write_at(b"before", 0).unwrap();
    make_pipe(&directory, "pipe");
    // A directory opens no pipe.
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(directory.path().join("pipe"));
    let pipe = RealFile {
        name: Arc::from("pipe"),
        file: opened.unwrap(),
        options: OpenOptions::existing(),
        is_direct: false,
        poison: directory.poison.clone(),
        rings: ring::Rings::default(),
    };
    let error = pipe.sync_data().unwrap_err();
    assert!(matches!(
        error,
        StorageError::Io {
            action: "fsync",
            ..
        }
    ));
    assert!(directory.poisoned());
    let refused: [Result<()>; 11] = [
        pipe.sync_data(),
        good.sync_data(),
        good.write_at(b"after", 0),
        good.write_batch(&[(0, b"after")]),
        good.set_len(0),
        good.allocate(0, 4096),
        directory.rename("good", "other"),
        directory.remove("good"),
        directory.create_dir("dir"),
        directory.sync_dir(""),
        directory.open("new", OpenOptions::create()).map(drop),
    ];
    for (index, result) in refused.into_iter().enumerate() {
        assert!(
            matches!(result, Err(StorageError::Poisoned)),
            "change {index}"
        );
    }
    // Nothing reached the disk, and readers go on.
    assert_eq!(directory.read_all("good").unwrap(), b"before");
    assert!(!directory.exists("new").unwrap() && !directory.exists("dir").unwrap());
}

#[test]
fn zeroes_written_in_place_of_an_allocation_keep_existing_bytes() {
    let (_temporary, directory) = scratch();
    for direct in [false, true] {
        let path = directory.path().join("data");
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .unwrap();
        let file = RealFile {
            name: Arc::from("data"),
            file,
            options: OpenOptions {
                direct,
                ..OpenOptions::existing()
            },
            is_direct: false,
            poison: Arc::default(),
            rings: ring::Rings::default(),
        };
        file.file.write_at(b"head", 0).unwrap();
        file.extend_by_zeroes(3 << 20).unwrap();
        let bytes = directory.read_all("data").unwrap();
        assert_eq!(bytes.len(), 3 << 20);
        assert_eq!(&bytes[..4], b"head");
        assert!(bytes[4..].iter().all(|&byte| byte == 0));
        file.extend_by_zeroes(4096).unwrap();
        assert_eq!(file.len().unwrap(), 3 << 20, "an allocation never shortens");
    }
}

#[test]
fn batch_of_more_slices_than_one_call_takes_is_written_whole() {
    let (_temporary, directory) = scratch();
    let file = directory.open("data", OpenOptions::create()).unwrap();
    let pieces: Vec<[u8; 3]> = (0..2500_u16)
        .map(|n| [n.to_le_bytes()[0], n.to_le_bytes()[1], 9])
        .collect();
    let mut runs: Vec<(u64, &[u8])> = pieces
        .iter()
        .enumerate()
        .map(|(n, piece)| (n as u64 * 3, &piece[..]))
        .collect();
    runs.push((100_000, b"far"));
    runs.push((50_000, b""));
    runs.push((20_000, b"back"));
    file.write_batch(&runs).unwrap();
    let bytes = directory.read_all("data").unwrap();
    assert_eq!(bytes.len(), 100_003);
    assert_eq!(&bytes[..7500], pieces.as_flattened());
    assert_eq!(&bytes[20_000..20_004], b"back");
    assert_eq!(&bytes[100_000..], b"far");
}

/// A file with direct I/O and what its ring is to be; `None` where the file system has no direct I/O.
fn direct_file(directory: &RealDirectory, rings: ring::Rings) -> Option<RealFile> {
    if !directory.direct_works("").unwrap() {
        return None;
    }
    let options = OpenOptions::create().direct();
    let file = directory.open_direct("data", options).unwrap()?;
    Some(RealFile {
        name: Arc::from("data"),
        file,
        options,
        is_direct: true,
        poison: Arc::default(),
        rings,
    })
}

/// Whether this kernel gives rings at all.
fn rings_exist() -> bool {
    io_uring::IoUring::new(1).is_ok()
}

const BLOCK: usize = ALIGNMENT;

/// Blocks of random bytes.
fn random_blocks(random: &mut vellum_base::random::Random, blocks: usize) -> AlignedBuf {
    let mut bytes = AlignedBuf::zeroed(blocks * BLOCK).unwrap();
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = random.next_u64().to_ne_bytes();
    }
    bytes
}

#[test]
fn prop_batches_of_direct_reads_give_what_single_reads_would_with_and_without_ring() {
    use vellum_base::random::Random;
    const PLACES: usize = 300;
    let mut random = Random::new(crate::test_seed());
    for refused in [false, true] {
        let (_temporary, directory) = scratch();
        let Some(mut file) = direct_file(&directory, ring::Rings::default()) else {
            return;
        };
        if refused {
            file.rings = ring::Rings::refused();
        }
        let content = random_blocks(&mut random, PLACES);
        file.write_at(&content, 0).unwrap();
        for round in 0..20 {
            // Up to more runs than the ring has room for, some of them empty, some twice the same.
            let mut back = AlignedBuf::zeroed(2 * PLACES * BLOCK).unwrap();
            let mut runs: Vec<(u64, &mut [u8])> = Vec::new();
            for bytes in back.chunks_mut(2 * BLOCK).take(random.below(150) as usize) {
                let length = random.below(3) as usize;
                let place = random.below((PLACES - length + 1) as u64);
                runs.push((place * BLOCK as u64, &mut bytes[..length * BLOCK]));
            }
            if round % 4 == 3 {
                // One that the file does not have all of.
                let bytes = AlignedBuf::zeroed(2 * BLOCK).unwrap();
                let bytes = Box::leak(Box::new(bytes));
                runs.push((((PLACES - 1) * BLOCK) as u64, bytes));
                let error = file.read_batch(&mut runs).unwrap_err();
                assert!(matches!(error, StorageError::Io { .. }), "{error}");
                continue;
            }
            file.read_batch(&mut runs).unwrap();
            for (offset, bytes) in &runs {
                let at = *offset as usize;
                assert!(bytes[..] == content[at..at + bytes.len()], "at {at}");
            }
        }
        assert_eq!(file.rings.idle() == 1, !refused && rings_exist());
    }
}

#[test]
fn prop_scattered_direct_batches_write_what_single_writes_would_with_and_without_ring() {
    use vellum_base::random::Random;
    const PLACES: usize = 512;
    let mut random = Random::new(crate::test_seed());
    for refused in [false, true] {
        let (_temporary, directory) = scratch();
        let rings = if refused {
            ring::Rings::refused()
        } else {
            ring::Rings::default()
        };
        let Some(file) = direct_file(&directory, rings) else {
            return;
        };
        let mut model = vec![0; PLACES * BLOCK];
        file.set_len((PLACES * BLOCK) as u64).unwrap();
        for _ in 0..12 {
            // Up to more runs than the ring has room for, in any order, some of them empty, some neighbours.
            let bytes = random_blocks(&mut random, 250);
            let mut places: Vec<usize> = (0..PLACES / 2).collect();
            for at in (1..places.len()).rev() {
                places.swap(at, random.below(at as u64 + 1) as usize);
            }
            let count = random.below(200) as usize;
            let mut runs: Vec<(u64, &[u8])> = Vec::new();
            for (index, &place) in places[..count].iter().enumerate() {
                let length = random.below(3) as usize * BLOCK;
                let run = &bytes[index * BLOCK..][..length];
                let at = 2 * place * BLOCK;
                model[at..at + length].copy_from_slice(run);
                runs.push((at as u64, run));
            }
            file.write_batch(&runs).unwrap();
            let mut back = AlignedBuf::zeroed(PLACES * BLOCK).unwrap();
            file.read_at(&mut back, 0).unwrap();
            assert!(back[..] == model[..], "refused: {refused}");
        }
        assert_eq!(file.rings.idle() == 1, !refused && rings_exist());
    }
}

#[test]
fn failed_write_in_the_middle_of_a_batch_is_reported_and_the_next_batch_goes_through() {
    for refused in [false, true] {
        let (_temporary, directory) = scratch();
        let rings = if refused {
            ring::Rings::refused()
        } else {
            ring::Rings::default()
        };
        let Some(file) = direct_file(&directory, rings) else {
            return;
        };
        let mut block = AlignedBuf::zeroed(BLOCK).unwrap();
        block.fill(7);
        let mut runs: Vec<(u64, &[u8])> = (0..150)
            .map(|n| (2 * n * BLOCK as u64, &block[..]))
            .collect();
        // No file is that long.
        runs[70].0 = i64::MAX as u64 - (2 * BLOCK as u64 - 1);
        let error = file.write_batch(&runs).unwrap_err();
        assert!(matches!(error, StorageError::OutOfSpace { .. }), "{error}");
        assert!(!file.poison.is_set(), "a failed write poisons nothing");
        runs.remove(70);
        file.write_batch(&runs).unwrap();
        let mut back = AlignedBuf::zeroed(BLOCK).unwrap();
        for (offset, _) in runs {
            file.read_at(&mut back, offset).unwrap();
            assert!(back[..] == block[..]);
        }
        assert_eq!(file.rings.idle() == 1, !refused && rings_exist());
    }
}

#[test]
fn batch_on_a_descriptor_that_cannot_write_fails_as_a_single_write_does() {
    let (_temporary, directory) = scratch();
    if direct_file(&directory, ring::Rings::default()).is_none() {
        return;
    }
    let read_only = OpenOptions::read_only().direct();
    let mut block = AlignedBuf::zeroed(BLOCK).unwrap();
    block.fill(7);
    directory
        .open("data", OpenOptions::existing().direct())
        .unwrap()
        .write_at(&block, 0)
        .unwrap();
    let file = RealFile {
        name: Arc::from("data"),
        file: directory.open_direct("data", read_only).unwrap().unwrap(),
        // Lets the write through to the kernel.
        options: OpenOptions::existing().direct(),
        is_direct: true,
        poison: Arc::default(),
        rings: ring::Rings::default(),
    };
    let runs: Vec<(u64, &[u8])> = (0..100)
        .map(|n| (2 * n * BLOCK as u64, &block[..]))
        .collect();
    let code = |error: StorageError| match error {
        StorageError::Io { source, .. } => source.raw_os_error(),
        other => panic!("{other}"),
    };
    let single = code(file.write_at(&block, 0).unwrap_err());
    assert!(single.is_some());
    assert_eq!(code(file.write_batch(&runs).unwrap_err()), single);
    assert_eq!(file.len().unwrap(), BLOCK as u64);
}

#[test]
fn batches_of_many_threads_on_one_file_all_arrive() {
    const THREADS: u64 = 4;
    let (_temporary, directory) = scratch();
    let Some(file) = direct_file(&directory, ring::Rings::default()) else {
        return;
    };
    let place = |thread: u64, n: u64| (n * THREADS + thread) * BLOCK as u64;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let file = &file;
            scope.spawn(move || {
                let mut block = AlignedBuf::zeroed(BLOCK).unwrap();
                for round in 1..=10 {
                    block.fill(thread as u8 * 10 + round);
                    let runs: Vec<(u64, &[u8])> =
                        (0..100).map(|n| (place(thread, n), &block[..])).collect();
                    file.write_batch(&runs).unwrap();
                }
            });
        }
    });
    let mut back = AlignedBuf::zeroed(BLOCK).unwrap();
    for thread in 0..THREADS {
        for n in 0..100 {
            file.read_at(&mut back, place(thread, n)).unwrap();
            assert!(back.iter().all(|&byte| byte == thread as u8 * 10 + 10));
        }
    }
}
