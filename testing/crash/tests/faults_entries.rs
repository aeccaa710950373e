//! Row "foreign directory": what stands in a directory beside regular files with names that are text.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod engine;

use engine::config;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use vellum::{Database, Error, Inspection, verify_path};

/// Everything in a folder, links unfollowed: its kind, and what is in it or where it leads.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (fs::FileType, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let bytes = if kind.is_file() {
            fs::read(&path).unwrap()
        } else if kind.is_symlink() {
            fs::read_link(&path).unwrap().as_os_str().as_bytes().into()
        } else {
            Vec::new()
        };
        if kind.is_dir() {
            found.extend(contents(&path));
        }
        found.insert(path, (kind, bytes));
    }
    found
}

fn make_pipe(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// What was refused, and why.
fn refused<T>(result: Result<T, Error>) -> (String, String) {
    match result.map(drop).unwrap_err() {
        Error::ForeignFormat { file, what } => (file.to_string(), what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn faults_directory_with_an_entry_of_any_kind_is_no_empty_one_for_databases_and_backups() {
    type Make = fn(&Path);
    let cases: [(&str, &[u8], Make); 12] = [
        ("photos", b"photos", |path| fs::create_dir(path).unwrap()),
        ("data", b"data", |path| fs::create_dir(path).unwrap()),
        ("data", b"data", |path| symlink("/nowhere", path).unwrap()),
        ("data", b"data", |path| {
            symlink("/etc/passwd", path).unwrap()
        }),
        ("control", b"control", |path| {
            symlink("/nowhere", path).unwrap()
        }),
        ("control", b"control", |path| fs::create_dir(path).unwrap()),
        ("control.tmp", b"control.tmp", |path| {
            symlink("/nowhere", path).unwrap()
        }),
        ("\u{fffd}\u{fffd}", b"\xff\xfe", |path| {
            fs::write(path, b"latin").unwrap()
        }),
        ("pipe", b"pipe", make_pipe),
        ("LOCK", b"LOCK", make_pipe),
        ("LOCK", b"LOCK", |path| symlink("lock", path).unwrap()),
        ("lost+found", b"lost+found", |path| {
            fs::create_dir(path).unwrap()
        }),
    ];
    let own = tempfile::tempdir().unwrap();
    let database = Database::open(own.path(), config()).unwrap();
    for (name, bytes, make) in cases {
        let folder = tempfile::tempdir().unwrap();
        make(&folder.path().join(OsStr::from_bytes(bytes)));
        let before = contents(folder.path());
        let results = [
            refused(Database::open(folder.path(), config())),
            refused(database.backup(folder.path())),
        ];
        for (file, what) in results {
            assert_eq!(file, name, "{what}");
            assert_eq!(
                what.contains("root of a file system"),
                name == "lost+found",
                "{what}"
            );
        }
        assert!(contents(folder.path()) == before, "{name} was touched");
    }
    database.close().unwrap();
}

#[test]
fn faults_links_and_pipes_in_place_of_a_databases_files_are_refused_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (home, outside) = (folder.path().join("db"), folder.path().join("outside"));
    Database::open(&home, config()).unwrap().close().unwrap();
    let segment = fs::read_dir(home.join("log")).unwrap().next().unwrap();
    let segment = format!("log/{}", segment.unwrap().file_name().to_str().unwrap());
    if !home.join("control.tmp").exists() {
        fs::write(home.join("control.tmp"), b"").unwrap();
    }
    for name in ["data", "control", "control.tmp", "LOCK", &segment] {
        let path = home.join(name);
        fs::rename(&path, &outside).unwrap();
        for make in [
            (|path, to| symlink(to, path).unwrap()) as fn(&Path, &Path),
            |path, _| make_pipe(path),
            |path, _| fs::create_dir(path).unwrap(),
        ] {
            make(&path, &outside);
            let before = contents(folder.path());
            let results = [
                refused(Database::open(&home, config())),
                refused(verify_path(&home, Inspection::default())),
            ];
            for (file, what) in results {
                assert_eq!(file, name, "{what}");
                assert!(what.contains("a regular file"), "{what}");
            }
            assert!(contents(folder.path()) == before, "{name} was touched");
            if path.is_dir() {
                fs::remove_dir(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
        }
        fs::rename(&outside, &path).unwrap();
    }
    Database::open(&home, config()).unwrap().close().unwrap();
}

#[test]
fn the_directory_itself_and_the_logs_folder_may_be_links() {
    let folder = tempfile::tempdir().unwrap();
    let (home, link) = (folder.path().join("db"), folder.path().join("link"));
    Database::open(&home, config()).unwrap().close().unwrap();
    symlink(&home, &link).unwrap();
    let elsewhere = folder.path().join("other disk");
    fs::rename(home.join("log"), &elsewhere).unwrap();
    symlink(&elsewhere, home.join("log")).unwrap();
    // As at the root of a file system.
    fs::create_dir(elsewhere.join("lost+found")).unwrap();
    let database = Database::open(&link, config()).unwrap();
    database
        .retry(|transaction| transaction.create_table("t").map(drop))
        .unwrap();
    // What the link leads to belongs to the database, too.
    for inside in [elsewhere.clone(), elsewhere.join("copy")] {
        let error = database.backup(&inside).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    assert!(!elsewhere.join("copy").exists());
    let copy = folder.path().join("copy");
    database.backup(&copy).unwrap();
    database.close().unwrap();
    for path in [&link, &copy] {
        assert!(verify_path(path, Inspection::default()).unwrap().is_sound());
        let database = Database::open(path, config()).unwrap();
        database
            .retry(|transaction| transaction.table("t").map(drop))
            .unwrap();
    }
    assert!(home.join("log").is_symlink() && link.is_symlink());
}

#[test]
fn faults_folder_of_the_log_that_is_none_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (home, outside) = (folder.path().join("db"), folder.path().join("outside"));
    Database::open(&home, config()).unwrap().close().unwrap();
    let log = home.join("log");
    fs::rename(&log, &outside).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"not a folder").unwrap();
    for make in [
        (|log, _| fs::write(log, b"a file").unwrap()) as fn(&Path, &Path),
        |log, file| symlink(file, log).unwrap(),
        |log, _| symlink("/nowhere", log).unwrap(),
        |log, _| make_pipe(log),
    ] {
        make(&log, &file);
        let before = contents(folder.path());
        for result in [
            refused(Database::open(&home, config())),
            refused(verify_path(&home, Inspection::default())),
        ] {
            assert_eq!(result.0, "log", "{}", result.1);
        }
        assert!(contents(folder.path()) == before, "something was touched");
        fs::remove_file(&log).unwrap();
    }
    fs::rename(&outside, &log).unwrap();
    Database::open(&home, config()).unwrap().close().unwrap();
}

/// A database that is made again removes what the first attempt left: its own files, and nothing else.
#[test]
fn faults_database_that_is_made_again_removes_no_link_and_one_that_was_cut_off_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (home, outside) = (folder.path().join("db"), folder.path().join("outside"));
    Database::open(&home, config()).unwrap().close().unwrap();
    let mut control = fs::read(home.join("control")).unwrap();
    control[16..24].fill(0);
    let end = control.len() - 4;
    let sum = vellum_base::checksum::checksum(0, &control[..end]);
    control[end..].copy_from_slice(&sum.to_le_bytes());
    fs::write(home.join("control"), control).unwrap();
    fs::rename(home.join("data"), &outside).unwrap();
    symlink(&outside, home.join("data")).unwrap();
    let before = contents(folder.path());
    assert_eq!(refused(Database::open(&home, config())).0, "data");
    assert!(contents(folder.path()) == before, "something was touched");
    fs::rename(&outside, home.join("data")).unwrap();
    Database::open(&home, config()).unwrap().close().unwrap();
}
