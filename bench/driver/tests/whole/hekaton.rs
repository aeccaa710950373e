//! Hekaton's workload by the whole program: what is reported, what is refused, what a check finds.

use crate::support::{Forgetful, bench, json, occupy, program};
use vellum_bench::vellum_engine;
use vellum_workload::engine::{Engine, Session, TxOptions};
use vellum_workload::hekaton::{ROWS, TABLES};
use vellum_workload::kv::key;
use vellum_workload::reference::Reference;

#[test]
fn transactions_short_readers_and_long_ones_are_counted_apart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("summary.json");
    for level in ["snapshot", "read-committed"] {
        let engine = Reference::new();
        let flags = format!(
            "hekaton --rows 500 --reads 3 --writes 2 --isolation {level} --read-only-share 0.5 --zipf 0.5 \
             --threads 2 --long-readers 1 --long-share 1 --seconds 1 --idle-writer --json {}",
            file.display()
        );
        let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
        assert_eq!(ended.code, 0, "{}", ended.table);
        let summary = json(&file);
        assert_eq!(summary["workload"], "hekaton");
        assert_eq!(summary["consistency"], "ok");
        for (setting, value) in [
            ("rows", "500"),
            ("reads", "3"),
            ("writes", "2"),
            ("isolation_asked", level),
            ("read_only_share", "0.5"),
            ("zipf", "0.5"),
            ("long_readers", "1"),
            ("long_rows", "500"),
            ("deterministic", "false"),
        ] {
            assert_eq!(summary["settings"][setting], value, "{setting}");
        }
        let of = |kind: &str| summary["counts"][kind].as_u64().unwrap();
        let (updates, reads, long) = (of("update"), of("read"), of("long_read"));
        assert!(updates > 0 && long > 0, "{summary}");
        assert!((0.3..3.0).contains(&(reads as f64 / updates as f64)));
        let all = summary["transactions"].as_u64().unwrap();
        assert_eq!(updates + reads + long, all);
        let rate = summary["long_rows_per_s"].as_f64().unwrap();
        let seconds = summary["seconds"].as_f64().unwrap();
        // The last one is stopped, or not.
        assert!(
            (rate * seconds / 500.0 - long as f64).abs() <= 1.1,
            "{rate}"
        );
        assert!(ended.table.contains("long_read"), "{}", ended.table);
        assert!(ended.lines[0].get("rows").is_none(), "{}", ended.lines[0]);
    }
}

#[test]
fn vellum_keeps_the_sums_at_both_levels_and_with_ordered_locks() {
    for (flags, conflicts) in [
        ("--isolation read-committed --long-readers 1", true),
        ("--isolation snapshot --long-readers 1 --long-share 1", true),
        ("--deterministic --zipf 1.2", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("summary.json");
        let flags = format!(
            "hekaton --rows 30 --reads 2 --writes 4 --threads 2 --seconds 1 --pool-mib 32 {flags} --json {}",
            file.display()
        );
        let ended = bench(&flags, directory.path(), vellum_engine::open);
        assert_eq!(ended.code, 0, "{flags}: {}", ended.table);
        let summary = json(&file);
        assert_eq!(summary["consistency"], "ok");
        assert!(summary["counts"]["update"].as_u64().unwrap() > 0);
        // Two that meet conflict, at both levels, unless they take their locks first.
        if !conflicts {
            assert_eq!(summary["aborts"], 0);
        }
    }
}

#[test]
fn second_run_takes_the_rows_that_are_there_and_check_finds_what_was_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    let run =
        |engine: &Reference, flags: &str| bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(run(&engine, "hekaton --rows 80 --operations 300").code, 0);
    occupy(directory.path());
    assert_eq!(run(&engine, "hekaton --operations 300 --threads 2").code, 0);
    for flags in [
        "hekaton --rows 81 --operations 1",
        "hekaton --writes 81 --operations 1",
    ] {
        let ended = run(&engine, flags);
        assert_eq!(ended.code, 2, "{flags}");
        assert!(ended.table.contains("80 rows"), "{}", ended.table);
    }
    assert_eq!(run(&engine, "hekaton --check").code, 0);

    let flags = "hekaton --operations 1000 --read-only-share 0.2";
    let ended = bench(flags, directory.path(), |_| Ok(Forgetful(engine.clone())));
    assert_eq!(ended.code, 1);
    assert!(ended.table.contains("were committed"), "{}", ended.table);
    // What is lost whole leaves the balances as they were.
    assert_eq!(run(&engine, "hekaton --check").code, 0);

    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    let half = |row: &mut [u8]| row[0] ^= 1;
    assert!(session.update(ROWS, &key(3), &[0..1], half).unwrap());
    session.commit().unwrap();
    drop(session);
    let ended = run(&engine, "hekaton --check");
    assert_eq!(ended.code, 1);
    assert!(
        ended.table.contains("half a transaction"),
        "{}",
        ended.table
    );
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for (flags, word) in [
        ("--reads 0 --writes 0", "nothing"),
        ("--writes 0 --read-only-share 0.5", "--writes"),
        ("--reads 0 --read-only-share 0.5", "--reads"),
        ("--deterministic --writes 0", "--deterministic"),
        ("--long-readers 1 --operations 5", "--long-readers"),
        ("--engine lmdb --isolation read-committed", "lmdb"),
        ("--engine canopydb-nowal --durability sync", "has no log"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ended = bench(&format!("hekaton {flags}"), directory.path(), |_| {
            Ok(Reference::new())
        });
        assert_eq!(ended.code, 2, "{flags}");
        assert!(ended.table.contains(word), "{flags}: {}", ended.table);
        assert!(!directory.path().join("data").exists(), "{flags}");
    }
}

#[test]
fn hekaton_is_compared_by_transactions_and_by_the_rows_of_long_readers() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare hekaton --engines vellum,lmdb --rounds 1 --out {} -- --rows 300 --seconds 1 --long-readers 1",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let results = &json(&out.join("compare-hekaton.json"))["results"];
    for engine in ["vellum", "lmdb"] {
        if engine == "lmdb" && !cfg!(feature = "lmdb") {
            continue;
        }
        for metric in ["tx_per_s", "long_rows_per_s"] {
            let median = results[engine][metric]["median"].as_f64().unwrap();
            assert!(median > 0.0, "{results}");
        }
    }
}
