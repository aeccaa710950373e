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
    let pipe = directory.open("pipe", OpenOptions::existing()).unwrap();
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
