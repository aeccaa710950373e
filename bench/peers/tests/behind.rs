//! Engines whose `async` leaves commits in the process's memory hand them to the disk by themselves.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.
#![cfg(any(feature = "fjall", feature = "rocksdb"))]

use std::path::Path;
use std::time::Duration;
use vellum_peers::PeerSettings;
use vellum_workload::conformance::TABLES;
use vellum_workload::engine::{Engine, Result, Session, Table, TxOptions};

/// How often it is looked, at most.
const LOOKS: u32 = 1000;
/// Of the row that is looked for.
const KEY: &[u8] = b"key";

fn settings(directory: &Path) -> PeerSettings {
    PeerSettings {
        data: directory.to_owned(),
        memory_bytes: 64 << 20,
        sync: false,
        sessions: 4,
        tables: TABLES.len(),
        writers: 1,
    }
}

/// Whether a copy of the files, as a kill would leave them, has the row.
fn is_in_the_files<E: Engine>(
    directory: &Path,
    open: &impl Fn(&PeerSettings) -> Result<E>,
) -> Result<bool> {
    let copy = tempfile::tempdir().unwrap();
    copy_files(directory, copy.path());
    let mut engine = open(&settings(copy.path()))?;
    engine.ensure_tables(TABLES)?;
    let mut session = engine.open_session()?;
    session.begin(TxOptions::READ_ONLY)?;
    let found = session.get_with(Table::at(0), KEY, |value| value == b"value")?;
    session.commit()?;
    Ok(found == Some(true))
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_files(&entry.path(), &to);
        } else {
            // One that went meanwhile is of no use to anybody.
            let _ = std::fs::copy(entry.path(), to);
        }
    }
}

fn commits_reach_the_files<E: Engine>(open: impl Fn(&PeerSettings) -> Result<E>) {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(&settings(directory.path())).unwrap();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    session.insert(Table::at(0), KEY, b"value").unwrap();
    session.commit().unwrap();
    // Files that are being written may be no database.
    let looks = (0..LOOKS).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_in_the_files(directory.path(), &open).unwrap_or(false)
    });
    assert!(looks, "nobody writes it");
}

/// A load that nobody waits for is not of the last moment: it is past all commits, so it must not be lost where they are kept.
fn a_load_is_in_the_files<E: Engine>(open: impl Fn(&PeerSettings) -> Result<E>) {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(&settings(directory.path())).unwrap();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    let mut keys = std::iter::once(KEY);
    let loaded = session.bulk_load(Table::at(0), |key, value| match keys.next() {
        Some(next) => {
            (*key, *value) = (next.to_vec(), b"value".to_vec());
            true
        }
        None => false,
    });
    assert_eq!(loaded.unwrap(), 1);
    // Files may change while they are copied, as what is behind the load is not waited for.
    let looks = (0..LOOKS / 50).any(|_| is_in_the_files(directory.path(), &open).unwrap_or(false));
    session.rollback().unwrap();
    assert!(looks, "the load is in memory only");
}

#[cfg(feature = "fjall")]
#[test]
fn a_load_of_fjall_is_in_the_files_when_it_ends() {
    a_load_is_in_the_files(vellum_peers::fjall::FjallEngine::open);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_load_of_rocksdb_is_in_the_files_when_it_ends() {
    a_load_is_in_the_files(vellum_peers::rocksdb::RocksdbEngine::open);
}

#[cfg(feature = "fjall")]
#[test]
fn commits_of_fjall_reach_the_files_while_nobody_waits_for_them() {
    commits_reach_the_files(vellum_peers::fjall::FjallEngine::open);
}

#[cfg(feature = "rocksdb")]
#[test]
fn commits_of_rocksdb_reach_the_files_while_nobody_waits_for_them() {
    commits_reach_the_files(vellum_peers::rocksdb::RocksdbEngine::open);
}
