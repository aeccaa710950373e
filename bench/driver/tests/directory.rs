//! What a directory holds decides what a run on it does; files that may not grow end no process.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

fn bench(flags: &str, data: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vellum-bench"))
        .args(flags.split_whitespace())
        .args(["--pool-mib", "16", "--data"])
        .arg(data)
        .output()
        .unwrap()
}

fn code(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

#[test]
fn a_check_takes_the_rows_of_the_directory_and_not_a_flags_default() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let made = code(&bench("load --rows 700 --value-size 40", &data));
    assert_eq!(made.0, Some(0), "{}", made.1);
    for flags in [
        "load --check",
        "kv --check",
        "scan --check",
        "kv --check --rows 700",
        "kv --mix update --operations 10",
        "load --check",
    ] {
        let ended = code(&bench(flags, &data));
        assert_eq!(ended.0, Some(0), "{flags}: {}", ended.1);
    }
    for flags in ["kv --check --rows 701", "kv --operations 1 --value-size 41"] {
        let ended = code(&bench(flags, &data));
        assert_eq!(ended.0, Some(2), "{flags}: {}", ended.1);
        assert!(ended.1.contains("holds 700 rows with values of 40 bytes"));
    }
    let ended = code(&bench("load --check --rows 701", &data));
    assert_eq!(ended.0, Some(1), "{}", ended.1);
}

#[test]
fn a_check_of_a_database_without_the_workloads_tables_makes_none() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut config = vellum::Config::default();
    config.pool_bytes = 16 << 20;
    drop(vellum::Database::open(&data, config.clone()).unwrap());
    for (flags, what) in [
        ("tpcc --check", "holds no TPC-C"),
        ("kv --check", "holds no rows of kv"),
        ("queue --check", "holds no queue"),
        ("tatp --check", "holds no TATP"),
    ] {
        let ended = code(&bench(flags, &data));
        assert_eq!(ended.0, Some(2), "{flags}: {}", ended.1);
        assert!(ended.1.contains(what), "{flags}: {}", ended.1);
    }
    let database = vellum::Database::open(&data, config).unwrap();
    assert_eq!(database.begin().unwrap().tables().unwrap(), [""; 0]);
}

#[test]
fn what_another_workload_made_is_refused_by_name_and_another_page_size_by_both_figures() {
    let directory = tempfile::tempdir().unwrap();
    let data = |name: &str| directory.path().join(name);
    for (name, flags) in [
        ("tpcc", "tpcc --tiny --warehouses 1 --seconds 1"),
        ("kv", "load --rows 10"),
        ("queue", "queue --rows 10 --operations 10"),
        (
            "tatp",
            "tatp --subscribers 300 --threads 2 --operations 5000",
        ),
    ] {
        let made = code(&bench(flags, &data(name)));
        assert_eq!(made.0, Some(0), "{}", made.1);
    }
    for (flags, on, held) in [
        (
            "kv --rows 10 --operations 1",
            "tpcc",
            "holds TPC-C, not rows of kv",
        ),
        ("load --rows 10", "tpcc", "holds TPC-C"),
        ("scan --check", "tpcc", "holds TPC-C"),
        (
            "queue --operations 1",
            "kv",
            "holds rows of kv, not a queue",
        ),
        (
            "tpcc --tiny --seconds 1",
            "kv",
            "holds rows of kv, not TPC-C",
        ),
        ("hot --operations 1", "queue", "holds a queue"),
        ("tpcc --check", "queue", "holds a queue"),
        ("tatp --operations 1", "kv", "holds rows of kv, not TATP"),
        ("tpcc --check", "tatp", "holds TATP, not TPC-C"),
        (
            "kv --check --page-size 4096",
            "kv",
            "has pages of 8192 bytes, not 4096",
        ),
        (
            "tpcc --check --page-size 16384",
            "tpcc",
            "has pages of 8192 bytes, not 16384",
        ),
    ] {
        let ended = code(&bench(flags, &data(on)));
        assert_eq!(ended.0, Some(2), "{flags}: {}", ended.1);
        assert!(ended.1.contains(held), "{flags}: {}", ended.1);
    }
    // None of these left a table there.
    for (flags, on) in [
        ("tpcc --check --page-size 8192", "tpcc"),
        ("kv --check", "kv"),
        ("queue --check --rows 10", "queue"),
        ("tatp --check", "tatp"),
        ("tatp --uniform --threads 2 --operations 5000", "tatp"),
    ] {
        let ended = code(&bench(flags, &data(on)));
        assert_eq!(ended.0, Some(0), "{flags}: {}", ended.1);
    }
}

#[test]
fn what_no_run_or_another_engine_has_made_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let letters = directory.path().join("letters");
    std::fs::create_dir(&letters).unwrap();
    std::fs::write(letters.join("letter"), "dear").unwrap();
    for flags in [
        "kv --rows 10 --operations 1",
        "load --rows 10",
        "kv --check",
    ] {
        let ended = code(&bench(flags, &letters));
        assert_eq!(ended.0, Some(2), "{flags}: {}", ended.1);
        assert!(ended.1.contains("no run on vellum has made"), "{}", ended.1);
    }
    let left = std::fs::read_to_string(letters.join("letter")).unwrap();
    assert_eq!(left, "dear");
    assert_eq!(std::fs::read_dir(&letters).unwrap().count(), 1);
    let data = directory.path().join("data");
    let made = code(&bench("load --rows 10", &data));
    assert_eq!(made.0, Some(0), "{}", made.1);
    let other = code(&bench("kv --engine lmdb --rows 10 --operations 1", &data));
    assert_eq!(other.0, Some(2), "{}", other.1);
    let why = match cfg!(feature = "lmdb") {
        true => "holds a database of vellum, not of lmdb",
        false => "--features lmdb",
    };
    assert!(other.1.contains(why), "{}", other.1);
    let ended = code(&bench("kv --check --rows 10", &data));
    assert_eq!(ended.0, Some(0), "{}", ended.1);
}

/// Everything below a directory: what it holds, and when that was written.
fn below(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let (path, written) = {
            let entry = entry.unwrap();
            (entry.path(), entry.metadata().unwrap().modified().unwrap())
        };
        if path.is_dir() {
            all.extend(below(&path));
            all.insert(path, (Vec::new(), written));
        } else {
            let bytes = fs::read(&path).unwrap();
            all.insert(path, (bytes, written));
        }
    }
    all
}

/// Each makes databases in `DIR/data` and removes them again.
const SERIES: [&str; 7] = [
    "compare kv --engines vellum --rounds 1 --out DIR -- --rows 10 --operations 10 --pool-mib 16",
    "compare kv --out DIR -- --rows 10 --operations 10 --pool-mib 16",
    "figure 1 --engines vellum --tiny --pool-mib 64 --out DIR",
    "figure 9 --tiny --warehouses 1 --pool-mib 16 --out DIR",
    "figure contention --tiny --threads 2 --pool-mib 16 --out DIR",
    "figure release --tiny --warehouses 1 --pool-mib 16 --out DIR",
    "report --set tiny --engines vellum --out DIR/page --data DIR/data",
];

fn series(flags: &str, out: &Path) -> (Option<i32>, String) {
    let flags = flags.replace("DIR", &out.display().to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-bench"));
    code(&command.args(flags.split_whitespace()).output().unwrap())
}

#[test]
fn comparisons_figures_and_reports_leave_a_directory_alone_that_is_somebodys() {
    let directory = tempfile::tempdir().unwrap();
    for whose in ["letters", "lmdb", "closed", "unmarked"] {
        let out = directory.path().join(whose);
        let data = out.join("data");
        fs::create_dir_all(&data).unwrap();
        match whose {
            "letters" => fs::write(data.join("letter"), "dear").unwrap(),
            // As a run of a peer leaves it.
            "lmdb" => {
                fs::write(data.join("vellum-bench.engine"), "lmdb\n").unwrap();
                fs::write(data.join("data.mdb"), "rows").unwrap();
            }
            // A run's own, and one that was made outside of the bench.
            _ => {
                let made = code(&bench("load --rows 10", &data));
                assert_eq!(made.0, Some(0), "{}", made.1);
                if whose == "unmarked" {
                    fs::remove_file(data.join("vellum-bench.engine")).unwrap();
                }
            }
        }
        let before = below(&out);
        for flags in SERIES {
            let ended = series(flags, &out);
            assert_eq!(ended.0, Some(2), "{whose}, {flags}: {}", ended.1);
            assert!(ended.1.contains("is not empty"), "{flags}: {}", ended.1);
            assert!(below(&out) == before, "{whose}, {flags}");
        }
    }
}

/// A run that has the directory goes on.
#[test]
fn comparisons_and_figures_leave_a_database_alone_that_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut run = Command::new(env!("CARGO_BIN_EXE_vellum-bench"))
        .args("kv --mix update --rows 100 --seconds 100000 --pool-mib 16 --data".split_whitespace())
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    for flags in SERIES {
        let ended = series(flags, directory.path());
        assert_eq!(ended.0, Some(2), "{flags}: {}", ended.1);
        let names = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(names, 1, "{flags}: only its directory is there");
    }
    lines.next().unwrap().unwrap();
    let told = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(told.unwrap().success());
    lines.for_each(drop);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let ended = code(&bench("kv --check --rows 100", &data));
    assert_eq!(ended.0, Some(0), "{}", ended.1);
}

#[test]
fn two_runs_have_no_directory_together() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut first = Command::new(env!("CARGO_BIN_EXE_vellum-bench"))
        .args("kv --rows 100 --seconds 100000 --pool-mib 16 --data".split_whitespace())
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let second = code(&bench("kv --rows 100 --operations 1", &data));
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.0, Some(1), "{}", second.1);
    assert!(second.1.contains("is open in process"), "{}", second.1);
    // It ended with the process, however that ended.
    let third = code(&bench("kv --rows 100 --operations 1", &data));
    assert_eq!(third.0, Some(0), "{}", third.1);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_ends_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let ended = Command::new("sh")
        // Blocks of 512 bytes or of 1 KiB: enough to begin, whichever.
        .args(["-c", "ulimit -f 65536; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_vellum-bench"))
        .args(["load", "--rows", "2000000", "--pool-mib", "16", "--data"])
        .arg(directory.path().join("data"))
        .output()
        .unwrap();
    let (code, text) = code(&ended);
    // None: a signal ended it.
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("vellum-bench: "), "{text}");
}
