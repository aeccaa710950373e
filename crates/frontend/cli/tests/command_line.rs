//! The program itself: what it prints, how it ends, and that it leaves the directory alone.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vellum::{Config, Database, KeyDescription, KeyPart, Source};

/// One test at a time: a process that is being started by another test holds, for an instant, every lock of this
/// one.
static ALONE: Mutex<()> = Mutex::new(());

struct World {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Everything in a directory, byte for byte.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

fn vellum(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(arguments)
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn config() -> Config {
    let mut config = Config::default()
        .page_size(4096)
        .pool_bytes(1 << 20)
        .background_threads(false);
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 256 << 10;
    config.log_bytes_max = 8 << 20;
    config
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A database with two tables, an index, and a large value.
    fn open(&self) -> Database {
        let database = Database::open(self.path("db"), config()).unwrap();
        database
            .retry(|tx| {
                let fruit = tx.create_table("fruit")?;
                let part = KeyPart {
                    source: Source::Value,
                    start: 0,
                    end: Some(2),
                };
                tx.create_index(
                    &fruit,
                    "by_price",
                    KeyDescription::new(vec![part], false).unwrap(),
                )?;
                tx.insert(&fruit, b"apple", b"20 a\tfew")?;
                tx.insert(&fruit, b"apricot", b"45\xff")?;
                tx.insert(&fruit, b"pear", b"30")?;
                let many = tx.create_table("many rows")?;
                for number in 0u32..500 {
                    let length = if number == 7 { 20_000 } else { 50 };
                    tx.insert(&many, &number.to_be_bytes(), &vec![1; length])?;
                }
                Ok(())
            })
            .unwrap();
        database
    }

    fn closed(&self) -> String {
        self.open().close().unwrap();
        self.path("db")
    }

    /// As it is after a crash.
    fn crashed(&self) -> String {
        let database = self.open();
        database.sync().unwrap();
        let (from, to) = (
            PathBuf::from(self.path("db")),
            PathBuf::from(self.path("crashed")),
        );
        for (path, bytes) in contents(&from) {
            let path = to.join(path.strip_prefix(&from).unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        self.path("crashed")
    }
}

#[test]
fn verify_of_a_sound_database_says_so_and_writes_nothing() {
    let world = World::new();
    let db = world.closed();
    let before = contents(db.as_ref());
    let output = vellum(&["verify", &db]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stdout(&output).contains("sound; 2 tables, 503 rows"),
        "{}",
        stdout(&output)
    );
    let output = vellum(&["verify", "--json", &db]);
    let report = json(&output);
    assert_eq!(report["sound"], true);
    assert_eq!(report["complete"], true);
    assert_eq!(report["recovery"], "not due");
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
    assert!(contents(db.as_ref()) == before, "nothing was touched");
}

#[test]
fn verify_and_stat_after_a_crash_rehearse_the_recovery_and_write_nothing() {
    let world = World::new();
    let db = world.crashed();
    let before = contents(db.as_ref());
    for command in ["verify", "stat"] {
        let output = vellum(&[command, &db]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(
            stdout(&output).contains("recovery is due: it was rehearsed"),
            "{command}"
        );
        let report = json(&vellum(&[command, "--json", &db]));
        assert_eq!(
            (&report["recovery"], &report["log"]["closed_cleanly"]),
            (&"rehearsed".into(), &false.into())
        );
        assert_eq!(report["tables"][1]["rows"], 500);
        let small = vellum(&[command, &db, "--memory-mib", "0"]);
        assert_eq!(code(&small), 1);
        assert!(stdout(&small).contains("more memory than --memory-mib allows"));
    }
    assert_does_not_fit(&db);
    assert_eq!(code(&vellum(&["dump", &db, "--table", "fruit"])), 0);
    assert!(contents(db.as_ref()) == before, "nothing was touched");
    assert_eq!(
        code(&vellum(&["dump", &db, "--table", "fruit", "--recover"])),
        0
    );
    assert_eq!(
        json(&vellum(&["stat", "--json", &db]))["recovery"],
        "not due"
    );
    // What was closed cleanly is opened by writing, too.
    assert_does_not_fit(&db);
}

#[test]
fn stat_shows_rows_pages_indexes_and_the_log() {
    let world = World::new();
    let db = world.closed();
    let output = vellum(&["stat", &db]);
    assert_eq!(code(&output), 0);
    let text = stdout(&output);
    for part in [
        "pages of 4.0 KiB",
        "data file",
        "log",
        "fruit",
        "  index by_price",
        "many rows",
        "  large values",
        "(catalog)",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let report = json(&vellum(&["stat", "--json", &db]));
    let (fruit, many) = (&report["tables"][0], &report["tables"][1]);
    assert_eq!(
        (&fruit["name"], &fruit["rows"]),
        (&"fruit".into(), &3.into())
    );
    assert_eq!(
        (&fruit["indexes"][0]["name"], &fruit["indexes"][0]["rows"]),
        (&"by_price".into(), &3.into())
    );
    assert_eq!(
        (&many["chains"], &many["chain_bytes"]),
        (&1.into(), &20_000.into())
    );
    let pages = &report["pages"];
    let sum: u64 = ["in_use", "free", "reserved"]
        .iter()
        .map(|key| pages[key].as_u64().unwrap())
        .sum();
    assert_eq!(pages["file"], sum);
    assert!(report["log"]["bytes"].as_u64().unwrap() >= 512 << 10);
}

#[test]
fn dump_prints_rows_escaped_or_in_hexadecimal_and_ranges_of_them() {
    let world = World::new();
    let db = world.closed();
    let rows = |more: &[&str]| {
        let output = vellum(&[&["dump", &db, "--table", "fruit"], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(rows(&[]), "apple\t20 a\\tfew\napricot\t45\\xff\npear\t30\n");
    assert_eq!(rows(&["--limit", "1"]), "apple\t20 a\\tfew\n");
    assert_eq!(
        rows(&["--hex", "--limit", "1"]),
        "6170706c65\t32302061096665770a\n".replace("770a", "77")
    );
}

#[test]
fn dump_takes_prefixes_bounds_and_all_tables() {
    let world = World::new();
    let db = world.closed();
    let rows = |more: &[&str]| stdout(&vellum(&[&["dump", &db], more].concat()));
    let fruit = |more: &[&str]| rows(&[&["--table", "fruit"], more].concat());
    assert_eq!(
        fruit(&["--prefix", "ap"]),
        "apple\t20 a\\tfew\napricot\t45\\xff\n"
    );
    assert_eq!(
        fruit(&["--from", "apricot", "--to", "pear"]),
        "apricot\t45\\xff\n"
    );
    assert_eq!(fruit(&["--hex", "--prefix", "7065"]), "70656172\t3330\n");
    assert_eq!(
        rows(&["--limit", "1"])
            .lines()
            .filter(|line| line.starts_with("# table"))
            .count(),
        2
    );
    let large = rows(&[
        "--table",
        "many rows",
        "--hex",
        "--from",
        "00000007",
        "--limit",
        "1",
    ]);
    assert_eq!(large.trim_end().len(), 8 + 1 + 2 * 20_000);
    let output = vellum(&["dump", &db, "--table", "none"]);
    assert_eq!(
        (code(&output), &*stderr(&output)),
        (1, "vellum: no table \"none\"\n")
    );
}

#[test]
fn backup_makes_a_database_and_leaves_the_source_as_it_was() {
    for make in [World::closed, World::crashed] {
        let world = World::new();
        let (db, copy) = (make(&world), world.path("copy"));
        let before = contents(db.as_ref());
        let output = vellum(&["backup", &db, &copy]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(contents(db.as_ref()) == before, "nothing was touched");
        assert_eq!(code(&vellum(&["verify", &copy])), 0);
        assert_eq!(
            stdout(&vellum(&["dump", &copy])),
            stdout(&vellum(&["dump", &db]))
        );
        let again = vellum(&["backup", &db, &copy]);
        assert_eq!(code(&again), 1);
        assert!(
            stderr(&again).contains("must be empty"),
            "{}",
            stderr(&again)
        );
    }
}

#[test]
fn backup_into_the_database_itself_is_a_usage_error_and_makes_nothing() {
    let world = World::new();
    let db = world.closed();
    let before = contents(db.as_ref());
    for inside in ["", "/copy", "/log/copy", "/./copy"] {
        let output = vellum(&["backup", &db, &format!("{db}{inside}")]);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(contents(db.as_ref()) == before, "nothing was touched");
    }
    // Beside it, under a name that begins alike.
    assert_eq!(code(&vellum(&["backup", &db, &format!("{db}-copy")])), 0);
}

#[test]
fn damaged_page_is_named_with_what_was_expected_and_found() {
    let world = World::new();
    let db = world.closed();
    let database = Database::open(&db, config()).unwrap();
    database
        .retry(|tx| tx.insert(&tx.create_table("nuts")?, b"hazel", b"12"))
        .unwrap();
    database.close().unwrap();
    let root = json(&vellum(&["stat", "--json", &db]))["tables"][1]["root"]
        .as_u64()
        .unwrap();
    let data = Path::new(&db).join("data");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[root as usize * 4096 + 100] ^= 4;
    // Opening would restore the page if the double-write area still had it.
    let reserved = json(&vellum(&["stat", "--json", &db]))["pages"]["reserved"]
        .as_u64()
        .unwrap();
    bytes[2 * 4096..reserved as usize * 4096].fill(0);
    std::fs::write(&data, bytes).unwrap();
    let output = vellum(&["verify", &db]);
    assert_eq!(code(&output), 1);
    let line = format!("table \"many rows\": data, page {root}: checksum (expected ");
    assert!(stdout(&output).contains(&line), "{}", stdout(&output));
    let report = json(&vellum(&["verify", "--json", &db]));
    assert_eq!(report["sound"], false);
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["page"], &finding["what"]),
        (&root.into(), &"checksum".into())
    );
    assert_ne!(finding["expected"], finding["found"]);
    assert_eq!(code(&vellum(&["stat", &db])), 1);
    let dump = vellum(&["dump", &db, "--table", "many rows"]);
    assert_eq!(code(&dump), 1);
    assert!(
        stderr(&dump).contains(&format!("page {root}")),
        "{}",
        stderr(&dump)
    );
    assert_eq!(
        code(&vellum(&["dump", &db, "--table", "fruit"])),
        0,
        "other tables go on"
    );
    // Also behind the one that is damaged.
    let dump = vellum(&["dump", &db]);
    assert_eq!(code(&dump), 1);
    assert!(stdout(&dump).ends_with("# table nuts\nhazel\t12\n"));
    assert!(
        stderr(&dump).contains("table \"many rows\": "),
        "{}",
        stderr(&dump)
    );
    let copy = world.path("copy");
    assert_eq!(
        code(&vellum(&["backup", &db, &copy])),
        1,
        "damage is not copied"
    );
    assert_eq!(code(&vellum(&["verify", &copy])), 4);
}

#[test]
fn open_database_is_refused_with_the_process_that_holds_it() {
    let world = World::new();
    let database = world.open();
    let (db, copy) = (world.path("db"), world.path("copy"));
    let before = contents(db.as_ref());
    for arguments in [
        &["verify", &*db][..],
        &["stat", &db],
        &["dump", &db],
        &["dump", &db, "--recover"],
        &["backup", &db, &copy],
    ] {
        let output = vellum(arguments);
        assert_eq!(code(&output), 3, "{arguments:?}");
        let pid = format!("is open in process {};", std::process::id());
        assert!(stderr(&output).contains(&pid), "{}", stderr(&output));
    }
    assert!(contents(db.as_ref()) == before, "nothing was touched");
    assert!(!Path::new(&copy).exists());
    drop(database);
    assert_eq!(code(&vellum(&["verify", &db])), 0);
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let world = World::new();
    let (empty, garbage, newer) = (
        world.path("empty"),
        world.path("garbage"),
        world.path("newer"),
    );
    std::fs::create_dir(&empty).unwrap();
    std::fs::create_dir(&garbage).unwrap();
    std::fs::write(
        Path::new(&garbage).join("control"),
        b"#!/bin/sh\necho no database here\n",
    )
    .unwrap();
    std::fs::write(Path::new(&garbage).join("data"), vec![0xa5; 100_000]).unwrap();
    std::fs::rename(world.closed(), &newer).unwrap();
    let control = Path::new(&newer).join("control");
    let mut bytes = std::fs::read(&control).unwrap();
    bytes[8] = 99;
    std::fs::write(&control, bytes).unwrap();
    let missing = world.path("missing");
    let file = world.path("garbage/data");
    let before = contents(world.folder.path());
    for db in [&empty, &garbage, &newer, &missing, &file] {
        for command in [
            &["verify", db][..],
            &["stat", db],
            &["dump", db],
            &["backup", db, &world.path("copy")],
        ] {
            let output = vellum(command);
            assert_eq!(code(&output), 4, "{command:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(&**db) && stdout(&output).is_empty());
        }
        // Recovering in place makes nothing either.
        assert_eq!(code(&vellum(&["dump", db, "--recover"])), 4, "{db}");
    }
    let mut after = contents(world.folder.path());
    // An opener locks before it looks.
    after.retain(|path, _| path.file_name().is_none_or(|name| name != "LOCK"));
    let mut before = before;
    before.retain(|path, _| path.file_name().is_none_or(|name| name != "LOCK"));
    assert!(after == before, "nothing was touched");
    assert!(!Path::new(&missing).exists() && !Path::new(&world.path("copy")).exists());
}

#[test]
fn open_database_whose_lock_file_was_removed_is_refused_by_every_command() {
    let world = World::new();
    let database = world.open();
    let (db, lock) = (world.path("db"), Path::new(&world.path("db")).join("LOCK"));
    std::fs::remove_file(&lock).unwrap();
    for command in [
        &["verify", &db][..],
        &["stat", &db],
        &["dump", &db],
        &["dump", &db, "--recover"],
        &["backup", &db, &world.path("copy")],
        &["sql", "--data", &db, "-c", "SELECT 1"],
    ] {
        let output = vellum(command);
        assert_eq!(code(&output), 3, "{command:?}: {}", stderr(&output));
    }
    assert!(!lock.exists() && !Path::new(&world.path("copy")).exists());
    database.close().unwrap();
    assert_eq!(code(&vellum(&["verify", &db])), 0);
}

#[test]
fn usage_errors_have_a_code_of_their_own_and_help_explains() {
    let _world = World::new();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["verify"],
        &["dump", "db", "--limit", "many"],
        &["dump", "db", "--prefix", "a", "--from", "b"],
        &["dump", "db", "--hex", "--from", "xyz"],
        &["stat", "db", "--pool-mib", "0"],
    ] {
        assert_eq!(code(&vellum(arguments)), 2, "{arguments:?}");
    }
    let help = vellum(&["--help"]);
    assert_eq!(code(&help), 0);
    assert!(
        stdout(&help).contains("Exit codes:") && stdout(&help).contains("3  the database is open")
    );
    for command in ["verify", "stat", "dump", "backup"] {
        let help = vellum(&[command, "--help"]);
        assert_eq!(code(&help), 0);
        let text = stdout(&help);
        assert!(
            text.contains("Example") && text.contains("Never writes"),
            "{text}"
        );
    }
}

#[test]
fn a_role_that_may_not_log_in_runs_nothing() {
    let world = World::new();
    let db = world.folder.path().join("shell");
    let db = db.to_str().unwrap();
    let sql = |arguments: &[&str]| vellum(&[&["sql", "--data", db][..], arguments].concat());
    let made = sql(&["-c", "create role reader; create role guest login"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    for (user, text) in [
        ("nobody", "role \"nobody\" does not exist"),
        ("reader", "role \"reader\" is not permitted to log in"),
    ] {
        let refused = sql(&["--user", user, "-c", "create table t (a int)"]);
        assert_eq!(code(&refused), 1);
        assert!(stderr(&refused).contains(text), "{}", stderr(&refused));
    }
    let guest = sql(&["--user", "guest", "-q", "-c", "select current_user"]);
    assert_eq!(code(&guest), 0, "{}", stderr(&guest));
}

#[test]
fn a_server_that_cannot_listen_or_log_says_so_in_a_line() {
    let world = World::new();
    let db = world.folder.path().join("served");
    let db = db.to_str().unwrap();
    // An address for documents, which no machine has.
    let address = "192.0.2.1:5432";
    for (arguments, seen, text) in [
        (
            vec!["--listen", address, "--insecure-listen"],
            1,
            format!("cannot listen on {address}: "),
        ),
        (
            vec![
                "--listen",
                "127.0.0.1:0",
                "--http",
                address,
                "--insecure-http",
            ],
            1,
            format!("cannot listen on {address} (http): "),
        ),
        (
            vec!["--listen", "127.0.0.1:0", "--log", "nonsense"],
            2,
            "log: `nonsense`: `nonsense` is no level: off, error, warn, info, debug, trace"
                .to_owned(),
        ),
        (
            vec!["--listen", "127.0.0.1:0", "--transactions-max", "1"],
            2,
            "transactions_max is at least 4".to_owned(),
        ),
    ] {
        let all = [
            &["serve", "--data", db, "--unix-socket", "false"][..],
            &arguments,
        ]
        .concat();
        let output = vellum(&all);
        assert_eq!(code(&output), seen, "{arguments:?}: {}", stderr(&output));
        let told = stderr(&output);
        let last = told.lines().last().unwrap_or_default();
        assert!(last.contains(&text), "{told}");
    }
}

#[test]
fn a_variable_that_is_misspelled_is_said_to_be_none() {
    let output = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["serve", "--data", "/nowhere", "--unix-socket", "false"])
        .args(["--listen", "127.0.0.1:0", "--transactions-max", "1"])
        .env("VELLUM_LISTNE", "127.0.0.1:5433")
        .env("VELLUM_LOG_FORMAT", "text")
        .output()
        .unwrap();
    assert_eq!(code(&output), 2);
    let told = stderr(&output);
    assert!(
        told.contains("the variable VELLUM_LISTNE is none of a setting"),
        "{told}"
    );
    assert!(!told.contains("VELLUM_LOG_FORMAT"), "{told}");
}

#[test]
fn output_that_nobody_reads_any_more_is_no_error() {
    let world = World::new();
    let db = world.closed();
    let mut child = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["dump", &db])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), &*stderr(&output)), (0, ""));
}

/// Symptom: the statements behind the one whose results nobody read were not run, and the code was 0.
#[test]
fn regress_a_shell_whose_results_nobody_reads_says_what_was_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db").display().to_string();
    let run = |commands: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let commands = commands.iter().flat_map(|command| ["-c", command]);
        let output = Command::new(env!("CARGO_BIN_EXE_vellum"))
            .args(["sql", "--data", &db])
            .args(commands)
            .stdin(std::process::Stdio::null())
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        (code(&output), stderr(&output))
    };
    let many = "select * from generate_series(1, 100000)";
    assert_eq!(run(&[many]), (0, String::new()));
    for commands in [
        &[many, "create table t (a int)"][..],
        &["select * from generate_series(1, 100000); create table t (a int)"],
        &["select * from generate_series(1, 100000);\ncreate table t (a int)"],
        &["begin", many],
    ] {
        let (code, told) = run(commands);
        assert_eq!(code, 1, "{commands:?}: {told}");
        assert!(told.contains("was not run"), "{commands:?}: {told}");
    }
    // All were run before anybody noticed.
    assert_eq!(run(&["select 1", "create table t (a int)"]).0, 0);
    assert_eq!(run(&["select 1", "select 1 / 0"]).0, 1);
}

#[test]
fn error_that_nobody_reads_keeps_its_code() {
    for arguments in [
        vec!["stat", "/nowhere/at/all"],
        vec!["stat"],
        vec!["sql", "--no-such-option"],
    ] {
        let seen = code(&vellum(&arguments));
        assert!((1..=4).contains(&seen), "{arguments:?}: {seen}");
        // A pipe without a reader.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_vellum"))
            .args(&arguments)
            .stdin(std::process::Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(seen), "{arguments:?}");
    }
}

#[test]
fn closed_database_is_looked_at_with_few_addresses() {
    for crashed in [false, true] {
        let world = World::new();
        let (db, commands) = match crashed {
            true => (world.crashed(), ["stat", "verify"]),
            false => (world.closed(), ["verify", "dump"]),
        };
        for arguments in commands {
            let few = format!("ulimit -v 4000000 && exec \"$0\" {arguments} \"$1\"");
            let output = Command::new("sh")
                .args(["-c", &few, env!("CARGO_BIN_EXE_vellum"), &db])
                .output()
                .unwrap();
            assert_eq!(code(&output), 0, "{arguments}: {}", stderr(&output));
        }
    }
}

/// A dump in no memory at all: says what to do, and nothing of a recovery.
fn assert_does_not_fit(db: &str) {
    let output = vellum(&["dump", db, "--memory-mib", "0"]);
    let told = stderr(&output);
    assert_eq!(code(&output), 1);
    assert!(
        told.contains("--memory-mib") && told.contains("--recover"),
        "{told}"
    );
    assert!(!told.contains("needs a recovery"), "{told}");
}

#[test]
fn a_statement_that_fails_prints_no_result() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db").display().to_string();
    let sql = "select 1 / (n - 3) as q from generate_series(1, 5) n; select 1 / 0 as q";
    for (form, expected) in [
        ("table", " q \n---\n 7\n(1 row)\n\n"),
        ("expanded", "-[ RECORD 1 ]\nq | 7\n\n"),
        ("csv", "q\n7\n"),
        ("json", "[\n{\"q\": 7}\n]\n"),
    ] {
        let said = ["select 1 / 0 as q", "select 7 as q"];
        let output = vellum(&[
            "sql", "--data", &db, "--format", form, "-c", said[0], "-c", said[1],
        ]);
        assert_eq!(stdout(&output), expected, "{form}");
        assert!(stderr(&output).contains("22012"), "{form}");
        // Rows that came before are printed as they come, where they can be.
        let output = vellum(&["sql", "--data", &db, "--format", form, "-c", sql]);
        let text = stdout(&output);
        match form {
            "table" => assert_eq!(text, ""),
            "json" => assert!(text.is_empty() || serde_json::from_str::<Value>(&text).is_ok()),
            _ => assert!(!text.contains("(0 rows)"), "{text}"),
        }
    }
    let output = vellum(&[
        "sql",
        "--data",
        &db,
        "--format",
        "csv",
        "-c",
        "select 1 as q where false",
    ]);
    assert_eq!(stdout(&output), "q\n");
}

/// Whoever can read the files has all that is in the database, past its passwords.
#[test]
fn what_is_made_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let (db, copy) = (world.path("made"), world.path("copied"));
    let made = vellum(&["sql", "--data", &db, "-c", "CREATE TABLE t (a int)"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let copied = vellum(&["backup", &db, &copy]);
    assert_eq!(code(&copied), 0, "{}", stderr(&copied));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for root in [&db, &copy] {
        assert_eq!(mode(Path::new(root)), 0o700, "{root}");
        for path in contents(Path::new(root)).keys() {
            assert_eq!(mode(path), 0o600, "{path:?}");
        }
    }
}

/// There is one transaction at a time: what it has changed itself is what meets the limit.
#[test]
fn shell_has_a_limit_of_old_versions() {
    let world = World::new();
    let path = world.path("limited");
    let run = |more: &[&str]| vellum(&[&["sql", "--data", &path], more].concat());
    let fill =
        "CREATE TABLE t AS SELECT n, repeat('a', 600) AS v FROM generate_series(1, 5000) AS s(n)";
    let change = "UPDATE t SET v = repeat('b', 599)";
    let limit = ["--version-mib-max", "1", "--version-policy", "refuse"];
    let filled = run(&[&limit[..], &["-c", fill]].concat());
    assert_eq!(code(&filled), 0, "{}", stderr(&filled));
    let refused = run(&[&limit[..], &["-c", change]].concat());
    assert_eq!(code(&refused), 1);
    let told = stderr(&refused);
    assert!(
        told.contains("53400") && told.contains("own changes"),
        "{told}"
    );
    let done = run(&["-c", change]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let wrong = run(&["--version-policy", "refuse", "-c", "SELECT 1"]);
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).contains("version_mib_max"));
    // The server's variables are not the shell's.
    let mut beside = Command::new(env!("CARGO_BIN_EXE_vellum"));
    beside.args(["sql", "--data", &path, "-c", "SELECT 1"]);
    beside.env("VELLUM_VERSION_POLICY", "refuse");
    assert_eq!(code(&beside.output().unwrap()), 0);
}
