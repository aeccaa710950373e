//! Each peer that is built in does what every engine must do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unused_imports, reason = "a build without peers has nothing to check")]

use std::io::Write;
use vellum_peers::PeerSettings;
use vellum_workload::conformance::check;
use vellum_workload::engine::Engine;

/// LMDB in both ways, opened as the others are.
#[cfg(feature = "lmdb")]
mod lmdb {
    use vellum_peers::PeerSettings;
    use vellum_peers::lmdb::{LmdbEngine, Writes};
    use vellum_workload::engine::Result;

    pub struct BySystemCalls;
    pub struct InTheMap;

    impl BySystemCalls {
        pub fn open(settings: &PeerSettings) -> Result<LmdbEngine> {
            LmdbEngine::open(settings, Writes::BySystemCalls)
        }
    }

    impl InTheMap {
        pub fn open(settings: &PeerSettings) -> Result<LmdbEngine> {
            LmdbEngine::open(settings, Writes::InTheMap)
        }
    }
}

/// canopydb in both ways.
#[cfg(feature = "canopydb")]
mod canopydb {
    use vellum_peers::PeerSettings;
    use vellum_peers::canopydb::{CanopydbEngine, Log};
    use vellum_workload::engine::Result;

    pub struct Logged;
    pub struct Unlogged;

    impl Logged {
        pub fn open(settings: &PeerSettings) -> Result<CanopydbEngine> {
            CanopydbEngine::open(settings, Log::Written)
        }
    }

    impl Unlogged {
        /// As in `async`: it has nothing else.
        pub fn open(settings: &PeerSettings) -> Result<CanopydbEngine> {
            let sync = false;
            CanopydbEngine::open(
                &PeerSettings {
                    sync,
                    ..settings.clone()
                },
                Log::Omitted,
            )
        }
    }
}

/// Makes a test of a peer, in both durabilities; as an engine that so many clients at a time write to, where that makes a difference.
macro_rules! conforms {
    ($name:ident, $feature:literal, $engine:path) => {
        conforms!($name, $feature, $engine, 4);
    };
    ($name:ident, $feature:literal, $engine:path, $writers:literal) => {
        #[cfg(feature = $feature)]
        #[test]
        fn $name() {
            if let Some(lacking) = vellum_peers::lacking($feature) {
                // Past the capture of libtest, so that it is counted.
                let _ = writeln!(std::io::stderr(), "test skipped: there is no {lacking}");
                return;
            }
            for sync in [false, true] {
                let directory = tempfile::tempdir().unwrap();
                let settings = PeerSettings {
                    data: directory.path().to_owned(),
                    memory_bytes: 64 << 20,
                    sync,
                    sessions: 4,
                    tables: vellum_workload::conformance::TABLES.len(),
                    writers: $writers,
                };
                check(|| <$engine>::open(&settings).unwrap());
                let engine = <$engine>::open(&settings).unwrap();
                // PostgreSQL's has two numbers and the distribution's words.
                let version = engine.describe().version;
                let numbers = version
                    .split('.')
                    .filter(|part| part.parse::<u32>().is_ok());
                assert!(
                    numbers.count() == 3 || $feature == "postgresql",
                    "{version}"
                );
            }
        }
    };
}

conforms!(canopydb_conforms, "canopydb", canopydb::Logged);
// It is told of one, and waits where there are two all the same.
conforms!(
    canopydb_conforms_where_writers_are_exclusive,
    "canopydb",
    canopydb::Logged,
    1
);
conforms!(
    canopydb_conforms_without_its_log,
    "canopydb",
    canopydb::Unlogged
);
conforms!(fjall_conforms, "fjall", vellum_peers::fjall::FjallEngine);
conforms!(
    fjall_conforms_where_it_has_one_writer,
    "fjall",
    vellum_peers::fjall::FjallEngine,
    1
);
conforms!(lmdb_conforms, "lmdb", lmdb::BySystemCalls);
conforms!(lmdb_conforms_in_its_map, "lmdb", lmdb::InTheMap);
conforms!(
    postgresql_conforms,
    "postgresql",
    vellum_peers::postgresql::PostgresqlEngine
);
conforms!(redb_conforms, "redb", vellum_peers::redb::RedbEngine);
conforms!(
    rocksdb_conforms,
    "rocksdb",
    vellum_peers::rocksdb::RocksdbEngine
);
conforms!(
    sqlite_conforms,
    "sqlite",
    vellum_peers::sqlite::SqliteEngine
);
conforms!(
    wiredtiger_conforms,
    "wiredtiger",
    vellum_peers::wiredtiger::WiredtigerEngine
);

#[test]
fn what_is_built_in_has_the_names_of_the_features() {
    for (name, built) in [
        ("canopydb", cfg!(feature = "canopydb")),
        ("fjall", cfg!(feature = "fjall")),
        ("lmdb", cfg!(feature = "lmdb")),
        ("postgresql", cfg!(feature = "postgresql")),
        ("redb", cfg!(feature = "redb")),
        ("rocksdb", cfg!(feature = "rocksdb")),
        ("sqlite", cfg!(feature = "sqlite")),
        ("wiredtiger", cfg!(feature = "wiredtiger")),
    ] {
        assert_eq!(vellum_peers::BUILT.contains(&name), built, "{name}");
    }
}
