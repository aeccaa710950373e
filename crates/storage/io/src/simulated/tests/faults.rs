//! Faults, full disks, and what the disk does when nothing breaks.

use super::*;

#[test]
fn simulated_directory_keeps_the_contract_of_directories() {
    crate::contract::check(&SimulatedDirectory::new());
}

#[test]
fn failed_sync_poisons_makes_nothing_durable_and_refuses_every_change() {
    let (directory, file) = with_file("data", b"old");
    let other = directory.open("other", OpenOptions::create()).unwrap();
    file.write_at(b"new", 0).unwrap();
    directory.fail(Fault::nth(Call::Sync, 0));
    let error = file.sync_data().unwrap_err();
    assert!(matches!(
        error,
        StorageError::Io {
            action: "fsync",
            ..
        }
    ));
    assert!(directory.poisoned());
    let calls = directory.mutating_calls();
    let refused: [Result<()>; 10] = [
        file.sync_data(),
        other.sync_data(),
        other.write_at(b"x", 0),
        other.set_len(0),
        other.allocate(0, 1),
        directory.sync_dir(""),
        directory.rename("data", "b"),
        directory.remove("data"),
        directory.create_dir("dir"),
        directory.open("new", OpenOptions::create()).map(drop),
    ];
    for (index, result) in refused.into_iter().enumerate() {
        assert!(
            matches!(result, Err(StorageError::Poisoned)),
            "change {index}"
        );
    }
    assert_eq!(
        directory.mutating_calls(),
        calls,
        "nothing reached the disk"
    );
    assert_eq!(
        directory.counts().of(Call::Sync),
        2,
        "the failed sync was not repeated"
    );
    assert_eq!(directory.read_all("data").unwrap(), b"new", "readers go on");
    assert_eq!(
        directory
            .power_cut(0, PowerCut::CLEAN)
            .read_all("data")
            .unwrap(),
        b"old"
    );
    assert!(!directory.process_kill().poisoned());
}

#[test]
fn failed_sync_of_a_directory_poisons_too() {
    let (directory, file) = with_file("data", b"old");
    directory.fail(Fault::nth(Call::SyncDir, 0).with(FaultError::Enospc));
    assert!(matches!(
        directory.sync_dir(""),
        Err(StorageError::Io {
            action: "fsync",
            ..
        })
    ));
    assert!(matches!(
        file.write_at(b"x", 0),
        Err(StorageError::Poisoned)
    ));
}

#[test]
fn planned_call_fails_once_or_for_good_on_the_files_that_were_named() {
    let (directory, file) = with_file("data", &[1; 100]);
    let log = directory.open("log", OpenOptions::create()).unwrap();
    directory.fail(Fault::nth(Call::Write, 1).on("log"));
    file.write_at(b"a", 0).unwrap();
    log.write_at(b"a", 0).unwrap();
    file.write_at(b"a", 0).unwrap();
    let error = log.write_at(b"b", 0).unwrap_err();
    assert!(
        matches!(&error, StorageError::Io { action: "write", source, .. }
        if source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()))
    );
    log.write_at(b"c", 0).unwrap();
    assert_eq!(directory.read_all("log").unwrap(), b"c");
    directory.fail(Fault::nth(Call::Read, 0).forever());
    let mut byte = [0];
    assert!(file.read_at(&mut byte, 0).is_err() && file.read_at(&mut byte, 0).is_err());
    directory.clear_faults();
    file.read_at(&mut byte, 0).unwrap();
    for call in [
        Call::Open,
        Call::SetLen,
        Call::Allocate,
        Call::Rename,
        Call::Remove,
    ] {
        directory.fail(Fault::nth(call, 0));
        let result = match call {
            Call::Open => directory.open("data", OpenOptions::existing()).map(drop),
            Call::SetLen => file.set_len(1),
            Call::Allocate => file.allocate(0, 1 << 20),
            Call::Rename => directory.rename("data", "b"),
            _ => directory.remove("data"),
        };
        assert!(matches!(result, Err(StorageError::Io { .. })), "{call:?}");
        assert_eq!(file.len().unwrap(), 100);
        assert!(directory.exists("data").unwrap());
    }
}

#[test]
fn short_transfer_moves_half_and_fails() {
    let (directory, file) = with_file("data", &[1; 8]);
    directory.fail(Fault::nth(Call::Write, 0).with(FaultError::Short));
    directory.fail(Fault::nth(Call::Read, 0).with(FaultError::Short));
    assert!(is_io(
        &file.write_at(&[2; 8], 0).unwrap_err(),
        ErrorKind::WriteZero
    ));
    let mut bytes = [0; 8];
    assert!(is_io(
        &file.read_at(&mut bytes, 0).unwrap_err(),
        ErrorKind::UnexpectedEof
    ));
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [2, 2, 2, 2, 1, 1, 1, 1]);
}

#[test]
fn full_disk_refuses_new_blocks_only_and_goes_on_when_space_is_given() {
    let (directory, file) = with_file("data", &[1; 8192]);
    directory.set_space_limit(Some(3 * 4096));
    assert_eq!(directory.used_space(), 8192);
    file.write_at(&[2; 8192], 0).unwrap();
    let full = file.write_at(&[3; 8192], 8192);
    assert!(matches!(full, Err(StorageError::OutOfSpace { .. })));
    assert_eq!(file.len().unwrap(), 12288, "what fitted was written");
    assert!(matches!(
        file.allocate(0, 16384),
        Err(StorageError::OutOfSpace { .. })
    ));
    file.set_len(1 << 30).unwrap();
    assert_eq!(directory.used_space(), 12288, "a hole takes no space");
    directory.set_space_limit(Some(4 * 4096));
    file.write_at(&[3; 10], 1 << 29).unwrap();
    assert!(file.write_at(&[3; 10], 1 << 28).is_err());
    file.set_len(4096).unwrap();
    file.write_at(&[3; 10], 1 << 28).unwrap();
    assert!(!directory.poisoned());
    let planned = Fault::nth(Call::Write, 0).with(FaultError::Enospc);
    directory.fail(planned);
    assert!(matches!(
        file.write_at(b"x", 0),
        Err(StorageError::OutOfSpace { .. })
    ));
}

#[test]
fn cut_on_a_full_disk_is_a_cut() {
    let (directory, file) = with_file("data", b"");
    directory.set_space_limit(Some(0));
    directory.cut_after(0);
    assert!(is_io(
        &file.write_at(b"x", 0).unwrap_err(),
        ErrorKind::Other
    ));
    assert!(directory.is_cut());
}

#[test]
fn allocated_space_is_there_when_the_disk_is_full() {
    let (directory, file) = with_file("data", b"");
    file.allocate(0, 16384).unwrap();
    directory.set_space_limit(Some(16384));
    file.write_at(&[1; 16384], 0).unwrap();
    assert!(file.write_at(&[1], 16384).is_err());
}

#[test]
fn removed_file_gives_its_space_back_when_its_last_handle_goes() {
    let (directory, file) = with_file("data", &[1; 8192]);
    directory.remove("data").unwrap();
    assert_eq!(directory.used_space(), 8192);
    drop(file);
    assert_eq!(directory.used_space(), 0);
    // Until the removal is durable, a cut brings the file back.
    let after = directory.power_cut(0, PowerCut::CLEAN);
    assert_eq!(after.read_all("data").unwrap(), [1; 8192]);
    directory.sync_dir("").unwrap();
    assert!(
        !directory
            .power_cut(0, PowerCut::CLEAN)
            .exists("data")
            .unwrap()
    );
}

#[test]
fn flipped_bit_is_read_and_survives_a_cut() {
    let (directory, file) = with_file("data", &[0; 10]);
    directory.flip_bit("data", 7, 3).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 7).unwrap();
    assert_eq!(byte, [8]);
    assert_eq!(
        directory
            .power_cut(0, PowerCut::CLEAN)
            .read_all("data")
            .unwrap()[7],
        8
    );
    assert!(directory.flip_bit("data", 10, 0).is_err());
    assert!(directory.flip_bit("none", 0, 0).is_err());
}

#[test]
fn calls_are_counted_and_traced_with_the_number_that_cuts_there() {
    let (directory, file) = with_file("data", &[0; 10]);
    let at = directory.mutating_calls();
    directory.fail(Fault::nth(Call::Write, 0));
    assert!(file.write_at(b"xyz", 5).is_err());
    file.read_at(&mut [0; 4], 2).unwrap();
    let counts = directory.counts();
    assert_eq!((counts.of(Call::Write), counts.bytes_written), (2, 13));
    assert_eq!((counts.of(Call::Read), counts.bytes_read), (1, 4));
    let trace = directory.trace();
    let write = &trace[trace.len() - 2];
    assert_eq!(
        (write.mutating_calls, write.call, &*write.file),
        (at, Call::Write, "data")
    );
    assert!(
        write.to_string().contains("Write data at 5 +3 fails: Eio"),
        "{write}"
    );
}

#[test]
fn unaligned_direct_call_panics_as_on_a_disk_that_would_refuse_it() {
    let directory = SimulatedDirectory::new();
    let file = directory
        .open("data", OpenOptions::create().direct())
        .unwrap();
    let block = AlignedBuf::zeroed(4096).unwrap();
    file.write_at(&block, 4096).unwrap();
    let unaligned = std::panic::AssertUnwindSafe(|| file.write_at(&block, 512));
    assert!(std::panic::catch_unwind(unaligned).is_err());
}

#[test]
fn write_beyond_every_file_system_is_an_error() {
    let (_directory, file) = with_file("data", b"x");
    for offset in [1 << 50, u64::MAX] {
        for result in [
            file.write_at(b"x", offset),
            file.set_len(offset),
            file.allocate(offset, 1),
        ] {
            let error = result.unwrap_err();
            assert!(
                matches!(error, StorageError::OutOfSpace { .. }),
                "{error:?}"
            );
        }
        let error = file.read_at(&mut [0], offset).unwrap_err();
        assert!(is_io(&error, ErrorKind::UnexpectedEof));
    }
}
