//! Old snapshots beside the workloads: figures, checks, and an engine that cheats.

use crate::support::{bench, json, program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use vellum_bench::cli::{Settings, Variant};
use vellum_bench::vellum_engine;
use vellum_workload::engine::{
    Description, Direction, Engine, Result, Session, Statistics, Table, TableSpec, TxOptions,
};
use vellum_workload::reference::{Reference, ReferenceSession};

/// Runs `flags` on Vellum in a directory of its own; the summary.
fn summary(flags: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("summary.json");
    let flags = format!("{flags} --pool-mib 64 --json {}", file.display());
    let ended = bench(&flags, directory.path(), vellum_engine::open);
    assert_eq!(ended.code, 0, "{flags}: {}", ended.table);
    let summary = json(&file);
    assert_eq!(summary["consistency"], "ok", "{flags}");
    assert_eq!(summary["samples"].as_array().unwrap(), &ended.lines);
    summary
}

/// The figures that every run with an old snapshot has.
fn check_figures(summary: &Value, seconds: usize) {
    assert!(summary["held_ratio"].as_f64().unwrap() > 0.0);
    assert!(summary["disk_growth_bytes"].is_i64());
    assert!(summary["durable_pages_growth"].is_i64());
    let samples = summary["samples"].as_array().unwrap();
    assert_eq!(samples.len(), seconds);
    for sample in samples {
        for key in [
            "tx",
            "disk_bytes",
            "pages_durable",
            "pages_of_versions",
            "version_bytes",
            "rows_buried",
            "index_operations",
        ] {
            assert!(sample[key].is_u64(), "{key} in {sample}");
        }
        assert!(sample["disk_bytes"].as_u64() > Some(0));
    }
}

fn check_scans(summary: &Value, rows: u64) {
    let scans = summary["scans"].as_array().unwrap();
    assert_eq!(scans.len(), 2, "at its begin and after a second");
    for (scan, age) in scans.iter().zip([0.0, 1.0]) {
        assert!(scan["age_s"].as_f64().unwrap() >= age);
        assert_eq!(scan["rows"], rows);
        for key in ["held_us", "held_first_us", "fresh_us", "fresh_first_us"] {
            assert!(scan[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
}

#[test]
fn queue_runs_beside_every_kind_of_holder() {
    for holder in ["idle", "writer", "olap", "scan"] {
        let summary = summary(&format!(
            "queue --rows 50 --operations 200 --hold-snapshot-at 0 --holder {holder}"
        ));
        assert_eq!(summary["hold"]["holder"], holder);
        assert_eq!(summary["transactions"], 200);
    }
    let summary = summary("queue --rows 50 --seconds 2 --hold-snapshot-at 1");
    check_figures(&summary, 2);
    assert_eq!(summary["hold"]["at_s"], 1);
    assert!(summary["release_min_ratio"].is_null());
    assert!(summary["transactions"].as_u64() > Some(10));
    let samples = summary["samples"].as_array().unwrap();
    assert!(samples.iter().all(|sample| sample["leaf_pages"].is_u64()));
    let searches = |sample: &Value| sample["index_operations"].as_u64().unwrap();
    assert!(searches(&samples[1]) > searches(&samples[0]) + 20);
    let last = samples[1]["old_versions"].as_object().unwrap();
    assert!(
        last.iter().any(|(kind, count)| {
            kind.starts_with("queue_rows ") && kind.ends_with(" bytes") && count.as_u64() > Some(0)
        }),
        "{last:?}"
    );
    // Who holds them back: the session that idles, first of all.
    let holder = &samples[1]["holders"][0];
    assert!(holder["age_ticks"].as_u64() > Some(0), "{holder}");
    assert_eq!(holder["writer"], false);
    assert!(["oltp", "olap"].contains(&holder["class"].as_str().unwrap()));
    assert!(holder["version_bytes"].is_u64() && holder["age_s"].is_f64());
    assert!(
        samples[0]
            .get("holders")
            .is_none_or(|holders| holders[0]["age_ticks"].as_u64() < holder["age_ticks"].as_u64())
    );
}

#[test]
fn hot_keys_are_scanned_at_set_ages_by_several_holders() {
    let summary = summary(
        "hot --keys 20 --seconds 3 --hold-snapshot-at 1 --holders 2 --scan-at 1 --threads 2",
    );
    check_figures(&summary, 3);
    check_scans(&summary, 20);
    assert_eq!(summary["hold"]["holders"], 2);
}

#[test]
fn tpcc_scans_what_everybody_updates() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("run.svg");
    let summary = summary(&format!(
        "tpcc --tiny --warehouses 2 --seconds 3 --hold-snapshot-at 1 --scan-at 1 --holder olap --plot {}",
        picture.display()
    ));
    let picture = std::fs::read_to_string(picture).unwrap();
    for word in ["transactions a second", ">snapshot<", ">MiB<", ">fresh<"] {
        assert!(picture.contains(word), "{word} in {picture}");
    }
    check_figures(&summary, 3);
    check_scans(&summary, 2 + 20);
}

#[test]
fn every_variant_keeps_what_it_is_told_beside_an_old_snapshot() {
    for variant in Variant::ALL {
        let name = variant.name();
        let hold = "--hold-snapshot-at 0 --operations 100 --threads 2";
        for flags in [
            "queue --rows 20 --holder writer",
            "hot --keys 5 --scan-at 0",
            "tpcc --tiny --warehouses 1 --holder olap",
        ] {
            let summary = summary(&format!("{flags} {hold} --variant {name}"));
            assert_eq!(summary["settings"]["variant"], name);
            assert_eq!(summary["transactions"], 100);
        }
    }
}

#[test]
fn figures_run_their_variants_and_leave_json_a_picture_and_a_table() {
    for (figure, flags, labels, groups) in [
        ("9", "--warehouses 1 --pool-mib 16", 5, 1),
        ("10", "--warehouses 1 --pool-mib 16 --threads 1", 5, 1),
        ("11", "--warehouses 1 --pool-mib 16 --threads 1", 5, 2),
        ("oom", "--warehouses 1 --pool-mib 16", 5, 5),
        // Four pools, and one or two threads.
        ("12", "--pool-mib 64 --threads 3", 4, 6),
        ("contention", "--pool-mib 16 --threads 2", 4, 6),
        ("release", "--warehouses 1 --pool-mib 16", 3, 1),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let flags = format!("figure {figure} --tiny {flags} --out {}", out.display());
        let ended = program(&flags, vellum_engine::open);
        assert_eq!(ended.code, 0, "{}", ended.table);
        let written = json(&out.join(format!("figure-{figure}.json")));
        let rows = written["rows"].as_array().unwrap();
        let count = |key: &str| {
            let all = rows.iter().map(|row| row[key].as_str().unwrap());
            all.collect::<BTreeSet<_>>().len()
        };
        assert_eq!((count("label"), count("group")), (labels, groups));
        for row in rows {
            assert!(row["tx_per_s"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["pages_read_per_tx"].is_number());
            if row["label"] == "full, ordered" {
                assert_eq!(row["abort_share"], 0.0, "{row}");
            }
            let load = row["part"] == "load";
            assert_eq!(row["rows_per_s"].as_f64().is_some(), load, "{row}");
        }
        assert_eq!(written["runs"].as_array().unwrap().len(), rows.len());
        let picture = std::fs::read_to_string(out.join(format!("figure-{figure}.svg"))).unwrap();
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        let page = std::fs::read_to_string(out.join(format!("figure-{figure}.md"))).unwrap();
        let lines = page.lines().filter(|line| line.starts_with("| "));
        // Titles and the rule below them.
        assert_eq!(lines.count(), 2 + rows.len(), "{page}");
        assert!(ended.table.ends_with(&format!("{page}\n")), "it is told");
        assert!(!out.join("data").exists(), "databases are removed");
    }
}

/// What is in a run's directory is somebody's where the run refuses it, also in the middle of a figure.
#[test]
fn what_a_run_of_a_figure_refused_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "figure contention --tiny --threads 2 --out {}",
        out.display()
    );
    let mut opened = 0;
    let ended = program(&flags, |settings| {
        opened += 1;
        if opened == 3 {
            std::fs::write(settings.data.join("letter"), "dear").unwrap();
        }
        Ok(Letters(Reference::new(), opened == 3))
    });
    assert_eq!(ended.code, 2, "{}", ended.table);
    assert!(
        ended.table.contains("holds table \"letters\""),
        "{}",
        ended.table
    );
    let left = std::fs::read_to_string(out.join("data/letter")).unwrap();
    assert_eq!((&*left, opened), ("dear", 3));
    assert!(!out.join("figure-contention.json").exists());
    let never = |_: &Settings| -> Result<Reference> { panic!("opened") };
    assert_eq!(program(&flags, never).code, 2);
    assert!(out.join("data/letter").exists());
}

/// Symptom: a snapshot that ended was told of one workload, by a command that stood in no folder. Guard: a figure of its own.
#[test]
fn what_follows_the_end_of_a_snapshot_is_measured_on_all_workloads_that_can_hold_one() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "figure release --tiny --warehouses 1 --pool-mib 64 --seconds 4 --out {}",
        out.display()
    );
    let ended = program(&flags, vellum_engine::open);
    assert_eq!(ended.code, 0, "{}", ended.table);
    let written = json(&out.join("figure-release.json"));
    let rows = written["rows"].as_array().unwrap();
    let labels: Vec<_> = rows.iter().map(|row| row["label"].as_str()).collect();
    assert_eq!(labels, ["tpcc", "queue", "hot"].map(Some));
    for (row, run) in rows.iter().zip(written["runs"].as_array().unwrap()) {
        let told = &run[1];
        assert_eq!(row["release_min_ratio"], told["release_min_ratio"], "{row}");
        let (at, release) = (&told["hold"]["at_s"], &told["hold"]["release_s"]);
        assert_eq!((at, release), (&1.into(), &2.into()));
        // The slowest of the last two seconds over what a second without a snapshot is: the first, or the middle of those two.
        let samples = told["samples"].as_array().unwrap();
        let rates: Vec<_> = samples
            .iter()
            .map(|it| it["tx"].as_f64().unwrap())
            .collect();
        let slowest = rates[2].min(rates[3]);
        let ratio = slowest / f64::midpoint(rates[2], rates[3]).max(rates[0]);
        let found = row["release_min_ratio"].as_f64().unwrap();
        assert!((found - ratio).abs() < 0.001, "{found}, not {ratio}");
    }
}

/// What only a run of some seconds has.
#[test]
fn figures_have_what_is_measured_by_the_second() {
    let directory = tempfile::tempdir().unwrap();
    for figure in ["oom", "10"] {
        let out = directory.path().join(figure);
        let flags = format!(
            "figure {figure} --tiny --warehouses 1 --pool-mib 16 --seconds 6 --out {}",
            out.display()
        );
        let ended = program(&flags, vellum_engine::open);
        assert_eq!(ended.code, 0, "{}", ended.table);
        let written = json(&out.join(format!("figure-{figure}.json")));
        let has = |row: &Value, key: &str| row[key].as_f64().is_some_and(|number| number > 0.0);
        let rows = written["rows"].as_array().unwrap();
        for row in rows {
            assert!(
                has(row, "index_operations_per_tx") && has(row, "tx_per_s"),
                "{row}"
            );
            let held = row["label"] != "no snapshot";
            assert_eq!(has(row, "held_ratio"), held, "{row}");
        }
        // Of a variant whose scans take too long nothing may come in time.
        assert!(rows.iter().any(|row| has(row, "scan_ratio")), "{rows:?}");
    }
}

#[test]
fn slow_scan_reads_every_row_and_the_release_is_measured() {
    let summary = summary(
        "queue --rows 20 --seconds 4 --hold-snapshot-at 1 --release-snapshot-at 3 --holder scan",
    );
    check_figures(&summary, 4);
    assert_eq!(summary["hold"]["release_s"], 3);
    assert!(summary["release_min_ratio"].as_f64().unwrap() > 0.0);
    let idle = self::summary("tpcc --tiny --warehouses 1 --operations 50 --hold-snapshot-at 0");
    assert!(idle["held_ratio"].is_null(), "nothing was ever before it");
}

#[test]
fn queue_of_another_run_is_continued_and_checked() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("summary.json");
    let flags = format!(
        "queue --rows 30 --value-size 20 --operations 100 --threads 2 --json {}",
        file.display()
    );
    for _ in 0..2 {
        let ended = bench(&flags, directory.path(), vellum_engine::open);
        assert_eq!(ended.code, 0, "{}", ended.table);
        assert_eq!(json(&file)["transactions"], 100);
    }
    let check = "queue --rows 30 --value-size 20 --check";
    let ended = bench(check, directory.path(), vellum_engine::open);
    assert_eq!(ended.code, 0, "{}", ended.table);
    let check = "queue --rows 31 --value-size 20 --check";
    let ended = bench(check, directory.path(), vellum_engine::open);
    assert!(
        ended.code == 1 && ended.table.contains("30 rows are in the queue, not 31"),
        "{}",
        ended.table
    );
    let other = "queue --rows 30 --value-size 21 --operations 1";
    let ended = bench(other, directory.path(), vellum_engine::open);
    assert!(
        ended.code == 2 && ended.table.contains("30 of them not"),
        "{}",
        ended.table
    );
}

#[test]
fn limit_of_old_versions_and_its_policy_are_told_and_kept() {
    // A version of each key is kept, which is 6 MiB, for seconds: maintenance looks some twenty times a second.
    let run = "hot --keys 20000 --operations 400000 --hold-snapshot-at 0 --holder scan";
    for policy in ["spill", "too-old"] {
        let limit = format!("--version-mib-max 1 --version-policy {policy}");
        let summary = summary(&format!("{run} {limit}"));
        assert_eq!(summary["settings"]["version_bytes_max"], "1048576");
        assert_eq!(summary["settings"]["version_policy"], policy);
        let withdrawn = summary["engine_counters"]["snapshots_withdrawn"].as_u64();
        // A holder that is told so ends, and not the run.
        assert_eq!(withdrawn > Some(0), policy == "too-old", "{withdrawn:?}");
        assert!(summary["engine_counters"]["version_bytes_in_rows"].is_u64());
    }
    let summary = summary("queue --rows 200 --operations 100");
    assert!(summary["settings"].get("version_policy").is_none());
}

/// Each is refused before a database is opened or a file written, and says why.
#[test]
fn flags_that_do_not_fit_together_are_refused_at_once_with_the_reason() {
    let never = |_: &Settings| -> Result<Reference> { panic!("opened") };
    for (flags, reason) in [
        ("queue --scan-at 1", "need --hold-snapshot-at"),
        ("queue --holder olap", "need --hold-snapshot-at"),
        ("hot --holders 2", "need --hold-snapshot-at"),
        ("hot --release-snapshot-at 3", "need --hold-snapshot-at"),
        (
            "tpcc --hold-snapshot-at 3 --release-snapshot-at 3",
            "must be after --hold-snapshot-at",
        ),
        ("tpcc --hold-snapshot-at 3 --scan-at 5,4", "ascend"),
        ("tpcc --hold-snapshot-at 3 --scan-at 4,4", "ascend"),
        (
            "tpcc --hold-snapshot-at 3 --scan-at 5 --holder scan",
            "two scans by one transaction",
        ),
        // What the run is too short for.
        ("queue --hold-snapshot-at 10", "--seconds 10"),
        ("hot --seconds 3 --hold-snapshot-at 4", "--seconds 3"),
        (
            "queue --seconds 9 --hold-snapshot-at 1 --release-snapshot-at 9",
            "--release-snapshot-at 9 is not before the end",
        ),
        (
            "hot --seconds 3 --hold-snapshot-at 1 --holders 5",
            "taken in second 5, and the end of the run is second 3",
        ),
        (
            "hot --seconds 30 --hold-snapshot-at 1 --holders 5 --release-snapshot-at 4",
            "taken in second 5, and the release is second 4",
        ),
        (
            "tpcc --seconds 20 --hold-snapshot-at 10 --scan-at 1,10",
            "not that old before the end",
        ),
        (
            "tpcc --seconds 20 --hold-snapshot-at 1 --scan-at 5 --release-snapshot-at 6",
            "not that old before the release",
        ),
        // What a number of transactions says nothing about.
        (
            "queue --operations 100 --hold-snapshot-at 1",
            "may be over before any second",
        ),
        (
            "queue --operations 100 --hold-snapshot-at 0 --holders 2",
            "may be over before any second",
        ),
        (
            "tpcc --operations 100 --hold-snapshot-at 0 --scan-at 1",
            "may be over before any second",
        ),
        (
            "hot --operations 9 --hold-snapshot-at 0 --release-snapshot-at 1",
            "may be over before any second",
        ),
        // What no run would look at.
        (
            "tpcc --affinity --threads 3 --warehouses 2",
            "3 threads need as many, and there are 2",
        ),
        ("load --threads 2", "one transaction of one thread"),
        ("load --seconds 5", "one transaction of one thread"),
        ("kv --json same --plot same", "name one file"),
        ("figure 9 --threads 2 --out DIR", "one thread"),
        ("figure 1 --threads 2 --out DIR", "one thread"),
        ("figure release --threads 2 --out DIR", "one thread"),
        ("figure 9 --engines lmdb --out DIR", "of vellum alone"),
        ("figure 1 --engines lmdb,lmdb --out DIR", "lmdb twice"),
        ("figure oom --threads 2 --out DIR", "one thread"),
        ("figure 12 --warehouses 2 --out DIR", "no TPC-C"),
        ("figure contention --warehouses 2 --out DIR", "no TPC-C"),
        ("figure 11 --rows 100 --out DIR", "is TPC-C"),
        // What would find no figure in the end.
        ("figure 10 --seconds 2 --out DIR", "at least 3"),
        ("figure oom --seconds 2 --out DIR", "at least 3"),
        ("figure release --seconds 2 --out DIR", "at least 3"),
        (
            "figure 11 --warehouses 1 --out DIR",
            "2 threads need as many, and there are 1",
        ),
        (
            "figure 11 --threads 5 --out DIR",
            "5 threads need as many, and there are 4",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let flags = flags.replace("DIR", &out.display().to_string());
        let ended = match flags.starts_with("figure") {
            true => program(&flags, never),
            false => bench(&flags, directory.path(), never),
        };
        assert_eq!(ended.code, 2, "{flags}: {}", ended.table);
        assert!(ended.table.contains(reason), "{flags}: {}", ended.table);
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 0, "{flags}: nothing is made");
    }
    // These the parser of the command line refuses, and tells on standard error.
    for flags in [
        "queue --hold-snapshot-at 3 --holder nobody",
        "queue --hold-snapshot-at 3 --check",
        "queue --version-policy too-old",
        "queue --version-mib-max 0",
        "kv --hold-snapshot-at 3",
        "queue --seconds 3 --operations 100",
        "tpcc --check --operations 3",
        "tpcc --check --seconds 3",
        "tpcc --check --threads 2",
        "hot --check --idle-writer",
        "hot --check --plot run.svg",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ended = bench(flags, directory.path(), never);
        assert_eq!(ended.code, 2, "{flags}: {}", ended.table);
    }
}

/// Has a table that is no workload's, where it is said so.
struct Letters(Reference, bool);

impl Engine for Letters {
    type Session<'e> = ReferenceSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.0.ensure_tables(tables)
    }
    fn table_names(&self) -> Result<Option<Vec<String>>> {
        Ok(self.1.then(|| vec!["letters".to_owned()]))
    }
    fn open_session(&self) -> Result<ReferenceSession<'_>> {
        self.0.open_session()
    }
    fn checkpoint(&self) -> Result<()> {
        self.0.checkpoint()
    }
    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
    fn describe(&self) -> Description {
        self.0.describe()
    }
}

/// Takes a new snapshot for every scan.
struct Restless(Reference);
struct RestlessSession<'e>(ReferenceSession<'e>, TxOptions, bool);

impl Engine for Restless {
    type Session<'e> = RestlessSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.0.ensure_tables(tables)
    }
    fn open_session(&self) -> Result<RestlessSession<'_>> {
        let session = self.0.open_session()?;
        Ok(RestlessSession(session, TxOptions::READ_ONLY, false))
    }
    fn checkpoint(&self) -> Result<()> {
        self.0.checkpoint()
    }
    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
    fn describe(&self) -> Description {
        self.0.describe()
    }
}

impl Session for RestlessSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        (self.1, self.2) = (options, false);
        self.0.begin(options)
    }
    fn commit(&mut self) -> Result<()> {
        self.0.commit()
    }
    fn rollback(&mut self) -> Result<()> {
        self.0.rollback()
    }
    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.0.get_with(table, key, read)
    }
    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.2 = true;
        self.0.insert(table, key, value)
    }
    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.2 = true;
        self.0.upsert(table, key, value)
    }
    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        ranges: &[Range<usize>],
        change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        self.2 = true;
        self.0.update(table, key, ranges, change)
    }
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.2 = true;
        self.0.delete(table, key)
    }
    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        if !self.2 {
            self.0.rollback()?;
            self.0.begin(self.1)?;
        }
        self.0.scan(table, from, direction, each)
    }
}

#[test]
fn snapshot_that_moves_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "hot --keys 5 --seconds 2 --hold-snapshot-at 0 --scan-at 1";
    let ended = bench(flags, directory.path(), |_| Ok(Restless(Reference::new())));
    assert_eq!(ended.code, 1, "{}", ended.table);
    assert!(
        ended.table.contains("a held snapshot showed 5 rows"),
        "{}",
        ended.table
    );
}
