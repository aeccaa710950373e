//! What a commit of `async` costs in system calls, so that engines are of the class that they are told to be of. One test: calls are counted
//! for the whole process.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.
#![cfg(any(
    feature = "canopydb",
    feature = "fjall",
    feature = "lmdb",
    feature = "redb",
    feature = "rocksdb",
    feature = "sqlite"
))]

use vellum_peers::PeerSettings;
use vellum_workload::conformance::TABLES;
use vellum_workload::engine::{Engine, Result, Session, Table, TxOptions};

const COMMITS: u64 = 5000;

/// Writes of this process so far, where the kernel tells.
fn writes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("syscw: "))?;
    line.parse().ok()
}

/// Writes of so many commits.
#[allow(dead_code, reason = "what is built in is measured")]
fn writes_of<E: Engine>(open: impl Fn(&PeerSettings) -> Result<E>) -> Option<u64> {
    let directory = tempfile::tempdir().unwrap();
    let settings = PeerSettings {
        data: directory.path().to_owned(),
        memory_bytes: 64 << 20,
        sync: false,
        sessions: 4,
        tables: TABLES.len(),
        writers: 1,
    };
    let mut engine = open(&settings).unwrap();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    let before = writes()?;
    for number in 0..COMMITS {
        session.begin(TxOptions::READ_WRITE).unwrap();
        let key = number.to_be_bytes();
        session.upsert(Table::at(0), &key, b"value").unwrap();
        session.commit().unwrap();
    }
    Some(writes()? - before)
}

#[test]
fn commits_stay_in_the_process_where_an_engine_can_leave_them_there() {
    let mut told: Vec<(&str, bool, Option<u64>)> = Vec::new();
    #[cfg(feature = "canopydb")]
    {
        use vellum_peers::canopydb::{CanopydbEngine, Log};
        let of = |log| writes_of(move |settings| CanopydbEngine::open(settings, log));
        told.push(("canopydb", false, of(Log::Written)));
        told.push(("canopydb-nowal", true, of(Log::Omitted)));
    }
    #[cfg(feature = "fjall")]
    told.push((
        "fjall",
        true,
        writes_of(vellum_peers::fjall::FjallEngine::open),
    ));
    #[cfg(feature = "rocksdb")]
    told.push((
        "rocksdb",
        true,
        writes_of(vellum_peers::rocksdb::RocksdbEngine::open),
    ));
    #[cfg(feature = "lmdb")]
    {
        use vellum_peers::lmdb::{LmdbEngine, Writes};
        let of = |writes| writes_of(move |settings| LmdbEngine::open(settings, writes));
        told.push(("lmdb", false, of(Writes::BySystemCalls)));
        told.push(("lmdb-writemap", true, of(Writes::InTheMap)));
    }
    #[cfg(feature = "sqlite")]
    told.push((
        "sqlite",
        false,
        writes_of(vellum_peers::sqlite::SqliteEngine::open),
    ));
    #[cfg(feature = "redb")]
    told.push((
        "redb",
        true,
        writes_of(vellum_peers::redb::RedbEngine::open),
    ));
    for (name, stays, writes) in told {
        // Where the kernel counts none, nothing is known.
        if let Some(writes) = writes {
            assert_eq!(writes < COMMITS / 2, stays, "{name}: {writes} writes");
        }
    }
}
