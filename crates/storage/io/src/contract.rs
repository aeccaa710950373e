//! What every directory promises, as a test that each implementation runs.

use crate::{Directory, Entry, EntryKind, File, OpenOptions};
use std::io::ErrorKind;
use std::sync::Arc;
use vellum_base::StorageError;

fn fails_with<T>(result: vellum_base::Result<T>, kind: ErrorKind) {
    match result {
        Err(StorageError::Io { source, .. }) => assert_eq!(source.kind(), kind),
        Err(other) => panic!("{other} instead of {kind}"),
        Ok(_) => panic!("success instead of {kind}"),
    }
}

pub(crate) fn check(directory: &dyn Directory) {
    names(directory);
    contents(directory);
    atomic(directory);
}

fn names(directory: &dyn Directory) {
    fails_with(
        directory.open("a", OpenOptions::existing()),
        ErrorKind::NotFound,
    );
    fails_with(
        directory.open("no/a", OpenOptions::create()),
        ErrorKind::NotFound,
    );
    fails_with(
        directory.open("../a", OpenOptions::create()),
        ErrorKind::InvalidInput,
    );
    fails_with(directory.remove("a"), ErrorKind::NotFound);
    fails_with(directory.rename("a", "b"), ErrorKind::NotFound);
    fails_with(directory.list("no"), ErrorKind::NotFound);
    directory.open("a", OpenOptions::create_new()).unwrap();
    fails_with(
        directory.open("a", OpenOptions::create_new()),
        ErrorKind::AlreadyExists,
    );
    directory.create_dir("log").unwrap();
    directory.create_dir("log").unwrap();
    fails_with(directory.create_dir("no/log"), ErrorKind::NotFound);
    directory
        .open("log/2", OpenOptions::create())
        .unwrap()
        .write_at(b"two", 0)
        .unwrap();
    directory
        .open("log/1", OpenOptions::create())
        .unwrap()
        .write_at(b"one", 0)
        .unwrap();
    assert_eq!(directory.list("").unwrap(), ["a"]);
    assert_eq!(directory.list("log").unwrap(), ["1", "2"]);
    let entry = |name: &str, kind| Entry {
        name: name.to_owned(),
        kind,
    };
    assert_eq!(
        directory.entries("").unwrap(),
        [
            entry("a", EntryKind::File),
            entry("log", EntryKind::Directory)
        ]
    );
    assert_eq!(
        directory.entries("log").unwrap(),
        ["1", "2"].map(|name| entry(name, EntryKind::File))
    );
    fails_with(directory.entries("no"), ErrorKind::NotFound);
    assert!(directory.exists("log").unwrap() && directory.exists("log/1").unwrap());
    assert!(!directory.exists("log/3").unwrap());
    let old = directory.open("log/2", OpenOptions::existing()).unwrap();
    directory.rename("log/1", "log/2").unwrap();
    assert_eq!(directory.list("log").unwrap(), ["2"]);
    assert_eq!(directory.read_all("log/2").unwrap(), b"one");
    let mut bytes = [0; 3];
    old.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"two", "an open handle outlives its name");
    directory.rename("log/2", "log/2").unwrap();
    directory.rename("log/2", "top").unwrap();
    directory.remove("top").unwrap();
    assert_eq!(directory.entries("log").unwrap(), []);
    directory.sync_dir("log").unwrap();
    directory.sync_dir("").unwrap();
}

fn contents(directory: &dyn Directory) {
    let file: Arc<dyn File> = directory.open("data", OpenOptions::create()).unwrap();
    assert_eq!(&**file.name(), "data");
    assert!(file.is_empty().unwrap());
    file.write_at(b"", 100).unwrap();
    assert_eq!(file.len().unwrap(), 0, "nothing written, nothing grown");
    file.write_at(b"world", 4094).unwrap();
    file.write_batch(&[(0, b"hel"), (3, b"lo"), (9, b"x")])
        .unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 4099);
    let mut bytes = [1; 10];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"hello\0\0\0\0x");
    fails_with(file.read_at(&mut bytes, 4090), ErrorKind::UnexpectedEof);
    file.read_at(&mut bytes, 4089).unwrap();
    assert_eq!(&bytes, b"\0\0\0\0\0world");
    file.set_len(4096).unwrap();
    file.set_len(5000).unwrap();
    file.read_at(&mut bytes[..5], 4094).unwrap();
    assert_eq!(
        &bytes[..5],
        b"wo\0\0\0",
        "what was cut off is zero when the file grows again"
    );
    file.allocate(4000, 2000).unwrap();
    file.allocate(0, 10).unwrap();
    file.allocate(1 << 20, 0).unwrap();
    assert_eq!(file.len().unwrap(), 6000);
    file.read_at(&mut bytes[..5], 0).unwrap();
    assert_eq!(&bytes[..5], b"hello");
    let reader = directory.open("data", OpenOptions::read_only()).unwrap();
    fails_with(reader.write_at(b"no", 0), ErrorKind::PermissionDenied);
    fails_with(reader.set_len(0), ErrorKind::PermissionDenied);
    fails_with(reader.allocate(0, 1), ErrorKind::PermissionDenied);
    fails_with(
        directory.open("none", OpenOptions::read_only()),
        ErrorKind::NotFound,
    );
    file.sync_data().unwrap();
}

fn atomic(directory: &dyn Directory) {
    directory.write_atomic("control", b"first content").unwrap();
    directory
        .open("control.tmp", OpenOptions::create())
        .unwrap()
        .write_at(&[9; 99], 0)
        .unwrap();
    directory.write_atomic("control", b"second").unwrap();
    assert_eq!(directory.read_all("control").unwrap(), b"second");
    for length in [50, 5000, 1, 0] {
        directory.write_atomic("control", &vec![3; length]).unwrap();
        assert_eq!(directory.read_all("control").unwrap(), vec![3; length]);
    }
    directory.create_dir("names").unwrap();
    for (name, content) in [("one", b"first"), ("names/other", b"other")] {
        let file = directory.open(name, OpenOptions::create_new()).unwrap();
        file.write_at(content, 0).unwrap();
    }
    directory.exchange("one", "names/other").unwrap();
    assert_eq!(directory.read_all("names/other").unwrap(), b"first");
    if directory.exists("one").unwrap() {
        assert_eq!(directory.read_all("one").unwrap(), b"other");
    }
    fails_with(directory.exchange("none", "one"), ErrorKind::NotFound);
    assert!(!directory.poisoned());
    let guard = directory.try_lock().unwrap();
    assert!(
        matches!(directory.try_lock(), Err(StorageError::Locked { pid })
        if pid == std::process::id())
    );
    assert!(matches!(
        directory.try_lock_shared(),
        Err(StorageError::Locked { pid }) if pid == std::process::id()
    ));
    drop(guard);
    let readers = [
        directory.try_lock_shared().unwrap(),
        directory.try_lock_shared().unwrap(),
    ];
    assert!(matches!(
        directory.try_lock(),
        Err(StorageError::Locked { .. })
    ));
    drop(readers);
    drop(directory.try_lock().unwrap());
}
