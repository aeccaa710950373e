//! Addresses of a process are shared by the databases that it opens. (A process of its own: other tests reserve them, too.)

use std::path::Path;
use vellum::{Config, Database, Error};

/// The largest data file: half of the addresses that a process has.
const MOST: u64 = 1 << 46;

fn open(path: &Path, data_bytes_max: u64) -> vellum::Result<Database> {
    let mut config = Config::default()
        .pool_bytes(1 << 20)
        .background_threads(false);
    config.data_bytes_max = data_bytes_max;
    Database::open(path, config)
}

fn names(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries.map(|e| name(e).into_string().unwrap()).collect()
}

#[test]
fn database_for_which_no_addresses_are_left_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let first = open(&one, MOST).unwrap();
    let error = open(&two, MOST).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{text}");
    for part in ["data_bytes_max", &MOST.to_string(), "other databases"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(names(&two), [] as [&str; 0]);
    // Less is there.
    let second = open(&two, 1 << 40).unwrap();
    second.retry(|tx| tx.create_table("t").map(drop)).unwrap();
    second.close().unwrap();
    // Refused where a database is, too, which is as it was.
    let control = std::fs::read(two.join("control")).unwrap();
    assert!(matches!(
        open(&two, MOST).map(drop),
        Err(Error::InvalidArgument { .. })
    ));
    assert_eq!(std::fs::read(two.join("control")).unwrap(), control);
    first.close().unwrap();
    let second = open(&two, MOST).unwrap();
    assert_eq!(second.begin().unwrap().tables().unwrap(), ["t"]);
}
