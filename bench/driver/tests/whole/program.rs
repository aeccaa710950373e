//! The whole program on the reference engine: reports, checks, exit codes, failures of threads.

use crate::support::{Forgetful, bench, json, occupy};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use vellum_bench::cli::Settings;
use vellum_workload::engine::{
    Description, Engine, EngineError, Result, Session, Statistics, TableSpec, TxOptions,
};
use vellum_workload::reference::{Reference, ReferenceSession};
use vellum_workload::tpcc;

#[test]
fn tpcc_loads_runs_checks_and_reports_under_the_agreed_keys() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let summary = directory.path().join("summary.json");
    let flags = format!(
        "tpcc --tiny --warehouses 2 --threads 2 --affinity --seconds 2 --idle-writer --json {}",
        summary.display()
    );
    let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let summary = json(&summary);
    assert_eq!(summary["consistency"], "ok");
    assert_eq!(summary["violations"].as_array().unwrap().len(), 0);
    for kind in [
        "new_order",
        "payment",
        "order_status",
        "delivery",
        "stock_level",
    ] {
        let [p50, p99] = ["p50_us", "p99_us"].map(|key| summary[key][kind].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p99, "{kind}: {p50} {p99}");
    }
    let samples = summary["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples, &ended.lines);
    assert_eq!(
        (&samples[0]["s"], &samples[1]["s"]),
        (&Value::from(1), &Value::from(2))
    );
    let sampled: u64 = samples
        .iter()
        .map(|sample| sample["tx"].as_u64().unwrap())
        .sum();
    let all = summary["transactions"].as_u64().unwrap();
    assert!(0 < sampled && sampled <= all);
    let rate = summary["tx_per_s"].as_f64().unwrap();
    assert!((rate * summary["seconds"].as_f64().unwrap() / all as f64 - 1.0).abs() < 0.01);
    let new_orders = summary["new_order_per_s"].as_f64().unwrap();
    assert!(
        (0.35..0.55).contains(&(new_orders / rate)),
        "{new_orders} of {rate}"
    );
    assert!(summary["log_bytes"].as_u64().unwrap() > 0);
    for key in [
        "aborts",
        "pages_read",
        "pages_written",
        "engine",
        "settings",
        "commit",
        "machine",
        "load_before",
        "load_after",
        "durability",
        "seed",
        "load_s",
        "open_s",
    ] {
        assert!(!summary[key].is_null(), "{key}");
    }
    assert_eq!(summary["settings"]["warehouses"], "2");
    assert_eq!(summary["interrupted"], false);
    assert_eq!(
        (&summary["durability"], &summary["seed"]),
        (&"async".into(), &42.into())
    );
    assert!(summary["machine"]["cores"].as_u64() > Some(0));
    assert!(ended.table.contains("new_order") && ended.table.contains("consistency           ok"));
}

#[test]
fn a_load_that_was_interrupted_is_named_with_what_finishes_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    engine.ensure_tables(tpcc::schema::TABLES).unwrap();
    let wanted = tpcc::population::Population::new(tpcc::Scale::tiny(3), 42);
    let mut session = engine.open_session().unwrap();
    let mut tables = 0;
    // Items and the first warehouse have eleven tables: ends inside the second.
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tpcc::population::load(&mut session, wanted, 1, |_| {
            tables += 1;
            assert!(tables < 15, "enough");
            Ok(())
        })
    }));
    assert!(ended.is_err());
    session.rollback().unwrap();
    drop(session);
    std::fs::create_dir(directory.path().join("data")).unwrap();
    occupy(directory.path());
    let run = |flags: &str| bench(flags, directory.path(), |_| Ok(engine.clone()));
    for flags in [
        "tpcc --tiny --warehouses 2 --operations 1",
        "tpcc --operations 1",
        "tpcc --check",
    ] {
        let ended = run(flags);
        assert_eq!(ended.code, 2, "{flags}: {}", ended.table);
        for part in [
            "1 of them loaded (the load was interrupted)",
            "--tiny --warehouses 3 loads the rest",
        ] {
            assert!(ended.table.contains(part), "{flags}: {}", ended.table);
        }
    }
    let finished = run("tpcc --tiny --warehouses 3 --operations 10");
    assert_eq!(finished.code, 0, "{}", finished.table);
}

#[test]
fn second_run_goes_on_and_check_finds_damage() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    let flags = "tpcc --tiny --warehouses 1 --operations 300";
    assert_eq!(
        bench(flags, directory.path(), |_| Ok(engine.clone())).code,
        0
    );
    occupy(directory.path());
    let again = "tpcc --tiny --operations 300 --threads 3 --seed 7";
    let ended = bench(again, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    assert!(!ended.table.contains("seconds of loading"));
    assert!(ended.table.contains("300"), "{}", ended.table);
    let other = "tpcc --tiny --warehouses 2 --operations 1";
    let ended = bench(other, directory.path(), |_| Ok(engine.clone()));
    assert!(
        ended.code == 2
            && ended
                .table
                .contains("a tiny TPC-C of 1 warehouses: run it with --tiny --warehouses 1"),
        "{}",
        ended.table
    );

    let summary = directory.path().join("summary.json");
    let check = format!("tpcc --check --json {}", summary.display());
    assert_eq!(
        bench(&check, directory.path(), |_| Ok(engine.clone())).code,
        0
    );
    assert_eq!(json(&summary)["consistency"], "ok");
    engine.ensure_tables(tpcc::schema::TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    let order = tpcc::schema::order_key(1, 3, 1);
    assert!(session.delete(tpcc::schema::ORDER, &order).unwrap());
    session.commit().unwrap();
    drop(session);
    let ended = bench(&check, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 1);
    assert!(ended.table.contains("FAILED"), "{}", ended.table);
    let summary = json(&summary);
    assert_eq!(summary["consistency"], "failed");
    let violations = summary["violations"].as_array().unwrap();
    let about = |text| {
        violations
            .iter()
            .any(|line| line.as_str().unwrap().contains(text))
    };
    assert!(about("condition 3.3.2.4: district 1/3") && about("condition 3.3.2.6"));
}

#[test]
fn kv_counts_updates_and_sync_is_compared_with_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let summary = directory.path().join("summary.json");
    let rows = "--rows 500 --value-size 40";
    let flags = format!(
        "kv {rows} --mix rmw --zipf 0.8 --threads 2 --seconds 1 --durability sync --idle-writer \
         --json {}",
        summary.display()
    );
    let ended = bench(&flags, directory.path(), |settings| {
        assert_eq!(settings.durability, vellum_bench::cli::Durability::Sync);
        assert_eq!(settings.sessions, 4);
        Ok(engine.clone())
    });
    assert_eq!(ended.code, 0, "{}", ended.table);
    let summary = json(&summary);
    assert!(summary["device_sync_per_s"].as_f64().unwrap() > 0.0);
    assert!(summary["sync_ratio"].as_f64().unwrap() > 0.0);
    assert!(summary["p50_us"]["rmw"].as_f64().unwrap() > 0.0);

    // Updates of an earlier run are not taken for this one's.
    let more = format!("kv {rows} --mix update --operations 100");
    assert_eq!(
        bench(&more, directory.path(), |_| Ok(engine.clone())).code,
        0
    );
    let read = format!("kv {rows} --operations 100");
    assert_eq!(
        bench(&read, directory.path(), |_| Ok(engine.clone())).code,
        0
    );
    let other = bench("kv --rows 501 --operations 1", directory.path(), |_| {
        Ok(engine.clone())
    });
    assert!(
        other.code == 2 && other.table.contains("holds 500 rows"),
        "{}",
        other.table
    );
}

#[test]
fn share_of_reads_is_a_class_of_its_own_and_only_the_rest_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let summary = directory.path().join("summary.json");
    let flags = "kv --rows 50 --mix update --read-share 0.5 --operations 4000 --threads 2 --json";
    let flags = format!("{flags} {}", summary.display());
    for _ in 0..2 {
        let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
        assert_eq!(ended.code, 0, "{}", ended.table);
        let summary = json(&summary);
        assert_eq!(summary["consistency"], "ok");
        let count = |class: &str| summary["counts"][class].as_u64().unwrap();
        assert_eq!(count("read") + count("update"), 4000);
        assert!((1700..2300).contains(&count("read")), "{summary}");
    }
    let ended = bench(&flags, directory.path(), |_| Ok(Forgetful(engine.clone())));
    assert_eq!(ended.code, 1, "{}", ended.table);
}

#[test]
fn scans_of_ranges_beside_updates_are_counted_apart() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let summary = directory.path().join("summary.json");
    let flags = "scan --rows 400 --value-size 24 --range 50 --update-threads 2 --threads 1 --seconds 1 --json";
    let flags = format!("{flags} {}", summary.display());
    let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let found = json(&summary);
    assert_eq!(found["consistency"], "ok");
    let count = |class: &str| found["counts"][class].as_u64().unwrap();
    assert!(count("scan") > 0 && count("update") > 0, "{found}");
    assert_eq!(found["settings"]["range"], "50");
    let ended = bench(&flags, directory.path(), |_| Ok(Forgetful(engine.clone())));
    assert_eq!(ended.code, 1, "{}", ended.table);
    // More rows than there are.
    let flags = "scan --rows 400 --value-size 24 --range 401 --seconds 1";
    let ended = bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 2, "{}", ended.table);
    assert!(
        ended.table.contains("there are 400 rows"),
        "{}",
        ended.table
    );
}

#[test]
fn lost_commit_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "kv --rows 50 --mix update --operations 250";
    let ended = bench(flags, directory.path(), |_| Ok(Forgetful(Reference::new())));
    assert_eq!(ended.code, 1);
    assert!(
        ended.table.contains("248 updates are in the rows, 250"),
        "{}",
        ended.table
    );
}

#[test]
fn load_and_scan_count_rows() {
    let directory = tempfile::tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    for order in ["sorted", "shuffled"] {
        let engine = Reference::new();
        let flags = format!(
            "load --rows 5000 --value-size 20 --order {order} --json {}",
            summary.display()
        );
        let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
        assert_eq!(ended.code, 0, "{}", ended.table);
        assert!(json(&summary)["rows_per_s"].as_f64().unwrap() > 0.0);
        let again = bench(&flags, directory.path(), |_| Ok(engine.clone()));
        assert!(
            again.code == 2 && again.table.contains("5000 rows already"),
            "{}",
            again.table
        );
        let flags = format!(
            "scan --rows 5000 --value-size 20 --operations 7 --threads 2 --json {}",
            summary.display()
        );
        let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
        assert_eq!(ended.code, 0, "{}", ended.table);
        let summary = json(&summary);
        assert_eq!(summary["transactions"], 7);
        let rows = summary["rows_per_s"].as_f64().unwrap() * summary["seconds"].as_f64().unwrap();
        assert!(rows > 30_000.0, "{rows} rows in 7 scans of 5000");
        occupy(directory.path());
        // What was updated since is as good as what was loaded.
        for flags in ["kv --mix update --operations 50", "load --check"] {
            let flags = format!("{flags} --rows 5000 --value-size 20");
            let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
            assert_eq!(ended.code, 0, "{}", ended.table);
        }
    }
}

/// Opens only so many sessions.
struct Limited {
    engine: Reference,
    left: AtomicUsize,
}

impl Engine for Limited {
    type Session<'e> = ReferenceSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.engine.ensure_tables(tables)
    }
    fn open_session(&self) -> Result<ReferenceSession<'_>> {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        taken.map_err(|_| EngineError::failed("no session is left"))?;
        self.engine.open_session()
    }
    fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }
    fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }
    fn describe(&self) -> Description {
        self.engine.describe()
    }
}

#[test]
fn check_that_cannot_read_the_data_is_a_finding_and_the_summary_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let summary = directory.path().join("summary.json");
    let run = |flags: &str, left: usize| {
        let mut limited = Some(Limited {
            engine: engine.clone(),
            left: AtomicUsize::new(left),
        });
        std::fs::write(&summary, b"").unwrap();
        let flags = format!("{flags} --rows 10 --json {}", summary.display());
        bench(&flags, directory.path(), |_| Ok(limited.take().unwrap()))
    };
    assert_eq!(run("kv --operations 1", 100).code, 0);
    occupy(directory.path());
    for (flags, left) in [("kv --check", 0), ("kv --check", 1), ("load --check", 0)] {
        let ended = run(flags, left);
        assert_eq!(ended.code, 1);
        let summary = json(&summary);
        assert_eq!(summary["consistency"], "failed", "{flags}");
        let finding = summary["violations"][0].as_str().unwrap();
        assert!(finding.contains("no session is left"), "{finding}");
    }
    // One session to look, one to run, none to check.
    let ended = run("kv --operations 7", 2);
    assert_eq!(ended.code, 1, "{}", ended.table);
    let summary = json(&summary);
    assert_eq!(summary["transactions"], 7);
    assert_eq!(summary["consistency"], "failed");
}

#[test]
fn thread_that_cannot_start_ends_the_run() {
    for sessions in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let engine = Limited {
            engine: Reference::new(),
            left: AtomicUsize::new(sessions),
        };
        let flags = "kv --rows 10 --threads 3 --seconds 1000 --idle-writer";
        let mut engine = Some(engine);
        let ended = bench(flags, directory.path(), |_| Ok(engine.take().unwrap()));
        assert_eq!(ended.code, 1);
        assert!(
            ended
                .table
                .contains("cannot open a session: no session is left")
                || ended
                    .table
                    .contains("cannot keep an idle writer: no session is left"),
            "{}",
            ended.table
        );
    }
}

#[test]
fn thread_that_fails_or_panics_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    let flags = "tpcc --tiny --warehouses 1 --operations 1";
    assert_eq!(
        bench(flags, directory.path(), |_| Ok(engine.clone())).code,
        0
    );
    engine.ensure_tables(tpcc::schema::TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    let warehouse = tpcc::schema::warehouse_key(1);
    session.begin(TxOptions::READ_WRITE).unwrap();
    session
        .upsert(tpcc::schema::WAREHOUSE, &warehouse, b"short")
        .unwrap();
    session.commit().unwrap();
    let flags = "tpcc --tiny --threads 2 --seconds 1000";
    let ended = bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 1);
    assert!(ended.table.contains("a row of 5 bytes"), "{}", ended.table);
    session.begin(TxOptions::READ_WRITE).unwrap();
    session.delete(tpcc::schema::WAREHOUSE, &warehouse).unwrap();
    session.commit().unwrap();
    let ended = bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 1);
    assert!(
        ended.table.contains("row that must exist is missing"),
        "{}",
        ended.table
    );
}

#[test]
fn wrong_usage_and_unusable_paths_are_told_before_any_work() {
    let directory = tempfile::tempdir().unwrap();
    let never = |_: &Settings| -> Result<Reference> { panic!("opened") };
    for (flags, code) in [
        ("tpcc --no-such-flag", 2),
        ("tpcc --warehouses 0", 2),
        ("tpcc --threads 0", 2),
        ("tpcc --durability maybe", 2),
        ("tpcc --page-size 5000", 2),
        ("tpcc --check --no-check", 2),
        ("kv --zipf -1", 2),
        ("kv --zipf NaN", 2),
        ("kv --mix update --read-share 1.1", 2),
        ("kv --mix update --read-share NaN", 2),
        ("kv --read-share 0.5", 2),
        ("scan --range 0", 2),
        ("scan --update-threads 1 --operations 5", 2),
        ("scan --update-threads 1 --check", 2),
        ("kv --mix write", 2),
        ("tatp --subscribers 0", 2),
        ("tatp --uniform --check", 2),
        ("nothing", 2),
        ("tpcc --check", 2),
        ("tpcc --json /nonexistent/summary.json", 1),
    ] {
        assert_eq!(bench(flags, directory.path(), never).code, code, "{flags}");
    }
    let file = directory.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let ended = bench("tpcc", &file, never);
    assert_eq!(ended.code, 1);
    assert!(
        ended.table.starts_with("vellum-bench: cannot create "),
        "{}",
        ended.table
    );
    let refused = bench("kv", directory.path(), |_| -> Result<Reference> {
        Err(EngineError::failed("the door is shut"))
    });
    assert_eq!(refused.code, 1);
    assert!(
        refused.table.ends_with("data: the door is shut\n"),
        "{}",
        refused.table
    );
    let none = Reference::new();
    occupy(directory.path());
    for flags in ["tpcc --check", "tatp --check", "kv --check", "scan --check"] {
        let ended = bench(flags, directory.path(), |_| Ok(none.clone()));
        assert!(
            ended.code == 2 && ended.table.contains("holds no"),
            "{flags}: {}",
            ended.table
        );
    }
}

#[test]
fn more_threads_than_warehouses_have_no_warehouses_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let told = "3 threads need as many, and there are 2";
    let flags = "tpcc --tiny --warehouses 2 --threads 3 --affinity --seconds 1";
    let ended = bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 2);
    assert!(ended.table.contains(told), "{}", ended.table);
    // The same where the directory says how many there are.
    let load = "tpcc --tiny --warehouses 2 --operations 10";
    assert_eq!(
        bench(load, directory.path(), |_| Ok(engine.clone())).code,
        0
    );
    let flags = "tpcc --tiny --threads 3 --affinity --seconds 1";
    let ended = bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 2);
    assert!(ended.table.contains(told), "{}", ended.table);
}
