//! Large values where the process has few addresses left (`ulimit -v`): what asks for the memory of one is refused, and nothing else.
//!
//! Not here: memory that the system promises and does not have; a process is killed for that.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use vellum::{Config, Database, Error, KeyDescription, KeyPart, Source, TransactionOptions};

/// Where the process that runs short finds its database.
const DIRECTORY: &str = "VELLUM_MEMORY_SHORT";
/// Bytes of a large value.
const LENGTH: usize = 192 << 20;

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

fn value() -> Vec<u8> {
    (0..LENGTH).map(byte).collect()
}

fn open(path: &Path) -> Database {
    let mut config = Config::default().pool_bytes(16 << 20);
    config.data_bytes_max = 8 << 30;
    Database::open(path, config).unwrap()
}

/// Allows this many bytes of addresses beyond those that the process has.
fn allow(more: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmSize:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    limit(Some((kib << 10) + more));
}

fn limit(current: Option<u64>) {
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current, maximum }).unwrap();
}

fn is_refused<T>(what: &str, result: vellum::Result<T>) {
    let error = result.map(drop).unwrap_err();
    assert!(
        matches!(error, Error::MemoryLimit { .. }),
        "{what}: {error}"
    );
}

fn first_bytes(end: Option<u32>) -> KeyDescription {
    let part = KeyPart {
        source: Source::Value,
        start: 0,
        end,
    };
    KeyDescription::new(vec![part], false).unwrap()
}

/// What the process that runs short does.
fn run_short(path: &Path) {
    let database = open(path);
    let (table, indexed) = database
        .retry(|tx| Ok((tx.create_table("t")?, tx.create_table("indexed")?)))
        .unwrap();
    let large = value();
    database
        .retry(|tx| {
            tx.create_index(&indexed, "by start", first_bytes(Some(8)))?;
            for table in [&table, &indexed] {
                tx.insert(table, b"a", b"small")?;
                tx.upsert(table, b"large", &large)?;
                tx.insert(table, b"z", b"small")?;
            }
            Ok(())
        })
        .unwrap();
    drop(large);
    let tx = database.begin().unwrap();
    // Room for what the engine does beside it, and for half of a value.
    allow(LENGTH as u64 / 2);
    is_refused("get", tx.get(&table, b"large", |_| ()));
    is_refused("get_into", tx.get_into(&table, b"large", &mut Vec::new()));
    is_refused("update", tx.update(&table, b"large", &[0..1], |v| v[0] = 9));
    let of_all = first_bytes(None);
    is_refused("index", tx.create_index(&table, "of all", of_all));
    let mut cursor = tx.cursor(&table, ..).unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().0, b"a");
    is_refused("next", cursor.next().map(|_| ()));
    is_refused("next, again", cursor.next().map(|_| ()));
    cursor.seek(b"m");
    assert_eq!(cursor.next().unwrap().unwrap().0, b"z");
    drop(cursor);
    assert_eq!(tx.count(&table, ..).unwrap(), 3);
    // What needs no copy of the value, or little of it, goes on.
    let mut at = 0;
    let found = tx.get_chunks(&table, b"large", |chunk| {
        assert!(chunk.iter().zip(at..).all(|(b, at)| *b == byte(at)));
        at += chunk.len();
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(found.unwrap(), Some(ControlFlow::Continue(())));
    assert_eq!(at, LENGTH);
    tx.create_index(&table, "by start", first_bytes(Some(8)))
        .unwrap();
    assert!(tx.replace(&indexed, b"large", b"now small").unwrap());
    assert!(tx.upsert(&table, b"a", b"after all that").unwrap());
    tx.commit().unwrap();
    // Entries are made of first bytes: nor does a check gather more.
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    // One copy and some is enough for a change of the value.
    allow(LENGTH as u64 * 3 / 2);
    let tx = database.begin().unwrap();
    let changed = tx.update(&table, b"large", &[1..2], |value| {
        value[..3].fill(255);
        value[LENGTH - 1] = 255;
    });
    assert!(changed.unwrap());
    tx.commit().unwrap();
    limit(getrlimit(Resource::As).maximum);
    database.close().unwrap();
}

#[test]
fn values_for_which_there_is_no_memory_are_refused_and_the_database_goes_on() {
    const NAME: &str = "values_for_which_there_is_no_memory_are_refused_and_the_database_goes_on";
    if let Some(path) = std::env::var_os(DIRECTORY) {
        return run_short(Path::new(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("database");
    let child = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(DIRECTORY, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{}: {text}", child.status);
    let database = open(&path);
    let tx = database
        .begin_with(TransactionOptions::default().read_only(true))
        .unwrap();
    let (table, indexed) = (tx.table("t").unwrap(), tx.table("indexed").unwrap());
    let mut right = value();
    right[1] = 255;
    let mut read = Vec::new();
    assert!(tx.get_into(&table, b"large", &mut read).unwrap());
    assert!(read == right, "one byte is another, as declared");
    assert_eq!(tx.indexes(&table).unwrap(), ["by start"]);
    assert!(tx.get_into(&table, b"a", &mut read).unwrap());
    assert_eq!(read, b"after all that");
    assert!(tx.get_into(&indexed, b"large", &mut read).unwrap());
    assert_eq!(read, b"now small");
    tx.commit().unwrap();
    assert!(database.verify().unwrap().is_sound());
}
