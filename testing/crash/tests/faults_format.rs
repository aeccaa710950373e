//! Rows "second process opens the directory; read-only directory; foreign or newer format" and
//! "bit flip in data or log".
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod engine;

use engine::config;
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use vellum::{Config, Database, Error, Family, TransactionOptions};
use vellum_base::random::Random;
use vellum_io::{Directory, OpenOptions, SimulatedDirectory};
use vellum_model::run::{first_seed, rounds};

fn real() -> Config {
    let mut config = config();
    config.background_threads = true;
    config
}

#[test]
fn faults_second_opener_gets_the_holders_process_id_and_touches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let first = Database::open(directory.path(), real()).unwrap();
    first
        .retry(|transaction| transaction.create_table("t").map(drop))
        .unwrap();
    let error = Database::open(directory.path(), real())
        .map(drop)
        .unwrap_err();
    match error {
        Error::Locked { pid, path } => {
            assert_eq!(pid, std::process::id());
            assert_eq!(path, directory.path());
        }
        other => panic!("{other:?}"),
    }
    // The first one does not notice.
    first
        .retry(|transaction| transaction.table("t").map(drop))
        .unwrap();
    first.close().unwrap();
    Database::open(directory.path(), real())
        .unwrap()
        .close()
        .unwrap();
}

#[test]
fn faults_foreign_directory_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("control"),
        b"not of this program, but a file",
    )
    .unwrap();
    let error = Database::open(directory.path(), real())
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, Error::ForeignFormat { .. }), "{error:?}");
    assert_eq!(error.family(), Family::Corrupt);
    let left = std::fs::read(directory.path().join("control")).unwrap();
    assert_eq!(left, b"not of this program, but a file");
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        names.iter().all(|name| name == "control" || name == "LOCK"),
        "{names:?}"
    );
}

#[test]
fn faults_lock_files_of_others_are_neither_made_nor_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let (file, lock) = (
        directory.path().join("CURRENT"),
        directory.path().join("LOCK"),
    );
    std::fs::write(&file, b"of another store").unwrap();
    let refused = |path: &std::path::Path| {
        let error = Database::open(path, real()).map(drop).unwrap_err();
        assert!(matches!(error, Error::ForeignFormat { .. }), "{error:?}");
    };
    refused(directory.path());
    assert!(!lock.exists(), "a lock file was made");
    std::fs::write(&lock, b"precious").unwrap();
    refused(directory.path());
    std::fs::remove_file(&file).unwrap();
    refused(directory.path());
    assert_eq!(std::fs::read(&lock).unwrap(), b"precious");

    let own = tempfile::tempdir().unwrap();
    let database = Database::open(own.path(), real()).unwrap();
    let error = database.backup(directory.path()).unwrap_err();
    assert!(matches!(error, Error::ForeignFormat { .. }), "{error:?}");
    assert_eq!(std::fs::read(&lock).unwrap(), b"precious");
    std::fs::remove_file(&lock).unwrap();
    std::fs::write(&file, b"of another store").unwrap();
    database.backup(directory.path()).unwrap_err();
    assert!(!lock.exists(), "a lock file was made");
    database.close().unwrap();
}

#[test]
fn faults_newer_format_of_any_file_is_refused_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    Database::open(directory.path(), real())
        .unwrap()
        .close()
        .unwrap();
    let segments: Vec<_> = std::fs::read_dir(directory.path().join("log"))
        .unwrap()
        .map(|entry| format!("log/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    // Where each file has the version of its format.
    let mut places = vec![("control", 8), ("data", 32)];
    places.extend(segments.iter().map(|name| (name.as_str(), 8)));
    let mut tried = 0;
    for (name, at) in places {
        let path = directory.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        if bytes[..8].iter().all(|byte| *byte == 0) && name.starts_with("log") {
            // Allocated, and not a segment yet.
            continue;
        }
        tried += 1;
        let mut newer = bytes.clone();
        newer[at] += 1;
        std::fs::write(&path, &newer).unwrap();
        let before = contents(directory.path());
        match Database::open(directory.path(), real())
            .map(drop)
            .unwrap_err()
        {
            Error::ForeignFormat { file, what } => {
                assert_eq!(&*file, name);
                assert!(what.contains(&newer[at].to_string()), "{what}");
            }
            other => panic!("{name}: {other:?}"),
        }
        let mut after = contents(directory.path());
        // Who opens writes his process id there.
        let lock = directory.path().join("LOCK");
        after.insert(lock.clone(), before[&lock].clone());
        assert!(after == before, "something was touched: {name}");
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(tried >= 3, "{tried} files");
    Database::open(directory.path(), real())
        .unwrap()
        .close()
        .unwrap();
}

#[test]
fn faults_missing_directory_without_create_is_an_error_and_makes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let mut config = real();
    config.create = false;
    assert!(Database::open(&missing, config).is_err());
    assert!(!missing.exists());
}

/// Every file below a folder, with when it was written and what is in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let written = path.metadata().unwrap().modified().unwrap();
            found.insert(path.clone(), (written, std::fs::read(&path).unwrap()));
        }
    }
    found
}

/// Gives a folder and what is in it to `user`.
fn give(folder: &Path, user: u32) {
    chown(folder, Some(user), Some(user)).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            give(&path, user);
        } else {
            chown(&path, Some(user), Some(user)).unwrap();
        }
    }
}

#[test]
fn faults_read_only_directory_is_a_clear_error_and_nothing_is_touched() {
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().unwrap();
    let (live, copy) = (directory.path().join("live"), directory.path().join("copy"));
    // No thread writes while it is copied.
    let database = Database::open(&live, config().background_threads(false)).unwrap();
    let table = database.retry(|transaction| transaction.create_table("t"));
    let table = table.unwrap();
    for n in 0..200_u32 {
        database
            .retry(|transaction| transaction.insert(&table, &n.to_be_bytes(), &[1; 300]))
            .unwrap();
    }
    // As a crash would leave it: recovery has pages to write.
    std::fs::create_dir_all(copy.join("log")).unwrap();
    for (path, (_, bytes)) in contents(&live) {
        std::fs::write(copy.join(path.strip_prefix(&live).unwrap()), bytes).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        give(directory.path(), NOBODY);
    }
    let before = contents(&copy);
    for folder in [copy.clone(), copy.join("log")] {
        let mode = |mode| std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode));
        // The files may be written, but none can be made.
        mode(0o555).unwrap();
        // Whoever may do everything is not stopped by permissions: a thread becomes somebody else, for good.
        let path = copy.clone();
        let refused = std::thread::spawn(move || {
            if is_root {
                let nobody = rustix::process::Uid::from_raw(NOBODY);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            Database::open(&path, real()).map(drop)
        });
        let error = refused.join().unwrap().unwrap_err();
        assert_eq!(error.family(), Family::Io, "{error:?}");
        assert!(
            error.to_string().contains(folder.to_str().unwrap()),
            "{error}"
        );
        assert!(contents(&copy) == before, "something was touched");
        mode(0o755).unwrap();
    }
    let database = Database::open(&copy, real()).unwrap();
    let reader = database.begin().unwrap();
    let table = reader.table("t").unwrap();
    assert_eq!(reader.count(&table, ..).unwrap(), 200);
}

fn filled(disk: &SimulatedDirectory) {
    let database = Database::open_directory(Arc::new(disk.clone()), config()).unwrap();
    database
        .retry(|transaction| {
            for name in ["first", "second"] {
                let table = transaction.create_table(name)?;
                for n in 0..400_u32 {
                    transaction.insert(&table, &n.to_be_bytes(), &value(name, n))?;
                }
            }
            Ok(())
        })
        .unwrap();
    database.checkpoint().unwrap();
    database.close().unwrap();
}

/// Rows of the first table that are rewritten, one after the other.
const REWRITTEN: u32 = 30;

/// How many of the rewritten rows have their newer values; fails unless these are the first ones, and all else is as it was.
fn rewritten(database: &Database) -> u32 {
    let options = TransactionOptions::default().read_only(true);
    let transaction = database.begin_with(options).unwrap();
    let mut newer = 0;
    for name in ["first", "second"] {
        let table = transaction.table(name).unwrap();
        let mut cursor = transaction.cursor(&table, ..).unwrap();
        let mut count = 0;
        while let Some((key, bytes)) = cursor.next().unwrap() {
            let n = u32::from_be_bytes(key.try_into().unwrap());
            assert_eq!(n, count, "rows are missing");
            count += 1;
            if name == "first" && n < REWRITTEN && n == newer && bytes == value("newer", n) {
                newer += 1;
            } else {
                assert!(bytes == value(name, n), "wrong data in row {n} of {name}");
            }
        }
        assert_eq!(count, 400, "rows are missing");
    }
    newer
}

fn value(table: &str, n: u32) -> Vec<u8> {
    format!("{table} {n} ")
        .into_bytes()
        .repeat(if n.is_multiple_of(50) { 800 } else { 12 })
}

/// Reads both tables; `None` for one that is damaged. Wrong data fails the test.
fn read(database: &Database) -> [Option<u32>; 2] {
    ["first", "second"].map(|name| {
        let transaction = database
            .begin_with(TransactionOptions::default().read_only(true))
            .unwrap();
        let mut count = 0;
        let mut read = || -> vellum::Result<()> {
            let table = transaction.table(name)?;
            let mut cursor = transaction.cursor(&table, ..)?;
            while let Some((key, bytes)) = cursor.next()? {
                let n = u32::from_be_bytes(key.try_into().unwrap());
                assert_eq!((n, bytes), (count, value(name, n).as_slice()), "wrong data");
                count += 1;
            }
            assert_eq!(count, 400, "rows are missing");
            Ok(())
        };
        match read() {
            Ok(()) => Some(count),
            Err(error) => {
                assert!(matches!(error, Error::Corruption { .. }), "{error:?}");
                None
            }
        }
    })
}

#[test]
fn faults_bit_flip_in_data_is_detected_and_other_tables_go_on() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = Random::new(seed);
    let disk = SimulatedDirectory::new();
    filled(&disk);
    let length = disk
        .open("data", OpenOptions::read_only())
        .unwrap()
        .len()
        .unwrap();
    let (mut damaged, mut one_goes_on) = (0, 0);
    for _ in 0..rounds(150) {
        let disk = disk.process_kill();
        let (offset, bit) = (random.below(length), random.below(8) as u8);
        disk.flip_bit("data", offset, bit).unwrap();
        let database = match Database::open_directory(Arc::new(disk.clone()), config()) {
            Ok(database) => database,
            Err(error) => {
                assert_eq!(error.family(), Family::Corrupt, "{error:?} at {offset}");
                damaged += 1;
                continue;
            }
        };
        let found = read(&database);
        let lost = found.iter().filter(|table| table.is_none()).count();
        if lost > 0 {
            damaged += 1;
            one_goes_on += u32::from(lost == 1);
            let report = database.verify();
            assert!(
                !report.is_ok_and(|report| report.is_sound()),
                "verify saw nothing"
            );
        }
    }
    assert!(damaged > 0 && one_goes_on > 0, "{damaged} {one_goes_on}");
}

#[test]
fn faults_bit_flip_in_the_log_is_refused_or_loses_the_newest_commits_only() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = Random::new(seed);
    let disk = SimulatedDirectory::new();
    filled(&disk);
    // A life after it that is killed, so that the log has to be read.
    let database = Database::open_directory(Arc::new(disk.clone()), config()).unwrap();
    for n in 0..REWRITTEN {
        database
            .retry(|transaction| {
                let table = transaction.table("first")?;
                transaction
                    .upsert(&table, &n.to_be_bytes(), &value("newer", n))
                    .map(drop)
            })
            .unwrap();
    }
    let disk = disk.process_kill();
    drop(database);
    let whole = disk.process_kill();
    let database = Database::open_directory(Arc::new(whole), config()).unwrap();
    assert_eq!(rewritten(&database), REWRITTEN, "nothing was flipped");
    drop(database);
    let (mut refused, mut short) = (0, 0);
    for _ in 0..rounds(1000) {
        let disk = disk.process_kill();
        let files = disk.list("log").unwrap();
        let file = format!("log/{}", files[random.below(files.len() as u64) as usize]);
        let bytes = disk.read_all(&file).unwrap();
        // Behind the last byte that was written nothing is read.
        let used = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(1, |at| at + 1);
        let (offset, bit) = (random.below(used as u64), random.below(8) as u8);
        disk.flip_bit(&file, offset, bit).unwrap();
        match Database::open_directory(Arc::new(disk.clone()), config()) {
            // A flip in what ends the log may look like its end: then the newest commits are missing, and no others.
            Ok(database) => short += u32::from(rewritten(&database) < REWRITTEN),
            Err(error) => {
                assert_eq!(error.family(), Family::Corrupt, "{error:?} in {file}");
                refused += 1;
            }
        }
    }
    eprintln!("{refused} refused, {short} without the newest commits");
    assert!(refused > 0, "no flip was found");
}
