//! Comparisons: what is written, what is left out and why. Vellum's place is taken by the reference engine.

use crate::support::{bench, json, program};
use clap::ValueEnum;
use std::path::Path;
use vellum_bench::engines::EngineName;
use vellum_workload::reference::Reference;

#[test]
fn a_comparison_writes_medians_a_picture_and_a_table_and_names_who_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare kv --engines vellum,canopydb,lmdb,redb,rocksdb --rounds 2 --out {} -- --mix rmw --rows 200 --operations 1000",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let document = json(&out.join("compare-kv.json"));
    assert_eq!(document["workload"], "kv");
    assert_eq!(document["rounds"], 2);
    let rate = &document["results"]["vellum"]["tx_per_s"];
    let [min, median, max] = ["min", "median", "max"].map(|key| rate[key].as_f64().unwrap());
    assert!(0.0 < min && min <= median && median <= max, "{rate}");
    assert!(
        document["results"]["vellum"]["p99_us"]["median"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let skipped = document["skipped"].as_array().unwrap();
    let ratios = document["ratio_to_best_peer"].as_object().unwrap();
    let built = [
        ("canopydb", cfg!(feature = "canopydb")),
        ("lmdb", cfg!(feature = "lmdb")),
        ("redb", cfg!(feature = "redb")),
        ("rocksdb", cfg!(feature = "rocksdb")),
    ];
    for (name, is_built) in built {
        let left_out = skipped.iter().find(|it| it["engine"] == name);
        assert_eq!(left_out.is_none(), is_built, "{name}");
        assert_eq!(document["results"].get(name).is_some(), is_built, "{name}");
        if let Some(left_out) = left_out {
            let why = left_out["why"].as_str().unwrap();
            assert!(why.contains(&format!("--features {name}")), "{why}");
            assert!(ended.table.contains(why), "{}", ended.table);
        }
    }
    let any = built.iter().any(|it| it.1);
    assert_eq!(ratios.contains_key("tx_per_s"), any);
    assert_eq!(ratios.contains_key("p99_us"), any);
    let rounds = document["runs"].as_array().unwrap().len();
    assert_eq!(rounds, 2 * (1 + built.iter().filter(|it| it.1).count()));
    let table = std::fs::read_to_string(out.join("compare-kv.md")).unwrap();
    assert!(table.contains("| vellum | "), "{table}");
    assert!(
        std::fs::read_to_string(out.join("compare-kv.svg"))
            .unwrap()
            .contains("tx_per_s")
    );
    assert!(!out.join("data").exists(), "databases are removed");
    // What a kill and a power loss lose of each is beside the figures.
    let terms = document["engines"]["vellum"]["lost_by_kill"].as_str();
    assert_eq!(terms, Some("everything"), "of the reference");
    assert!(table.contains("| lost by kill |"), "{table}");
    assert!(
        ended.table.contains("lost by power loss"),
        "{}",
        ended.table
    );
}

#[test]
fn latencies_are_compared_by_kind_of_transactions() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare kv --engines vellum --rounds 1 --out {} -- --mix rmw --read-share 0.5 --rows 200 --operations 40000",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let own = &json(&out.join("compare-kv.json"))["results"]["vellum"];
    for kind in ["read", "rmw"] {
        let of = |share: &str| own[format!("{share} {kind}")]["median"].as_f64().unwrap();
        let [p50, p99, p999] = ["p50_us", "p99_us", "p999_us"].map(of);
        assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{kind}: {own}");
    }
    assert!(own.get("p99_us").is_none(), "of no kind: {own}");
    let picture = std::fs::read_to_string(out.join("compare-kv.svg")).unwrap();
    assert!(picture.contains("kv: p99_us read (less"), "{picture}");
}

/// A load is one transaction: its p99 would be its rate once more.
#[test]
fn a_p99_of_a_few_transactions_is_not_told() {
    for (length, p99, p999) in [
        ("load -- --rows 200", false, false),
        (
            "kv -- --rows 200 --operations 99 --durability sync",
            false,
            false,
        ),
        (
            "kv -- --rows 200 --operations 100 --durability sync",
            true,
            false,
        ),
        (
            "kv -- --rows 200 --operations 1000 --durability sync",
            true,
            true,
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let (workload, flags) = length.split_once(" -- ").unwrap();
        let flags = format!(
            "compare {workload} --engines vellum --rounds 1 --out {} -- {flags}",
            out.display()
        );
        let ended = program(&flags, |_| Ok(Reference::new()));
        assert_eq!(ended.code, 0, "{}", ended.table);
        let document = json(&out.join(format!("compare-{workload}.json")));
        let (run, own) = (&document["runs"][0][1], &document["results"]["vellum"]);
        for (key, is_told) in [("p50_us", true), ("p99_us", p99), ("p999_us", p999)] {
            assert_eq!(own.get(key).is_some(), is_told, "{length}: {key}: {own}");
            let kinds = run[key].as_object().unwrap();
            assert_eq!(!kinds.is_empty(), is_told, "{length}: {key}: {kinds:?}");
        }
        let timed = run["timed"].as_object().unwrap();
        let timed: u64 = timed.values().map(|it| it.as_u64().unwrap()).sum();
        assert_eq!(timed, run["transactions"].as_u64().unwrap(), "{length}");
        let machine = &document["machine"]["data"];
        assert!(machine["in_memory"].is_boolean(), "{machine}");
        assert!(
            !machine["file_system"].as_str().unwrap().is_empty(),
            "{machine}"
        );
        assert_eq!(run["machine"]["data"], *machine);
        assert_eq!(run["processor_and_memory_of"], "engine");
    }
}

#[test]
fn what_a_servers_client_takes_is_told_as_the_clients() {
    if !cfg!(feature = "postgresql") || vellum_peers::lacking("postgresql").is_some() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare kv --engines postgresql --rounds 1 --out {} -- --rows 200 --operations 100",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let run = &json(&out.join("compare-kv.json"))["runs"][0][1];
    assert_eq!(run["processor_and_memory_of"], "client");
    assert!(
        ended
            .table
            .contains("of postgresql in the document are its client's only"),
        "{}",
        ended.table
    );
    let ended = bench(
        "kv --engine postgresql --rows 200 --operations 100",
        directory.path(),
        |_| Ok(Reference::new()),
    );
    assert_eq!(
        ended.table.matches(", the client's only").count(),
        2,
        "{}",
        ended.table
    );
}

#[test]
fn tatp_is_compared_by_what_succeeded_too() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare tatp --engines vellum,lmdb --rounds 1 --out {} -- --subscribers 50 --operations 2000",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let results = &json(&out.join("compare-tatp.json"))["results"];
    for engine in ["vellum", "lmdb"] {
        let own = &results[engine];
        if engine == "lmdb" && !cfg!(feature = "lmdb") {
            continue;
        }
        let [all, succeeded] =
            ["tx_per_s", "succeeded_per_s"].map(|metric| own[metric]["median"].as_f64().unwrap());
        assert!(0.6 * all < succeeded && succeeded < 0.9 * all, "{own}");
    }
}

#[test]
fn loads_and_scans_are_compared_by_rows() {
    for workload in ["load", "scan"] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let length = if workload == "scan" {
            "--operations 3"
        } else {
            ""
        };
        let flags = format!(
            "compare {workload} --engines vellum --rounds 1 --out {} -- --rows 200 {length}",
            out.display()
        );
        let ended = program(&flags, |_| Ok(Reference::new()));
        assert_eq!(ended.code, 0, "{}", ended.table);
        let own = &json(&out.join(format!("compare-{workload}.json")))["results"]["vellum"];
        assert!(own["rows_per_s"]["median"].as_f64().unwrap() > 0.0, "{own}");
        assert!(own.get("tx_per_s").is_none(), "{own}");
    }
}

#[test]
fn the_picture_of_a_held_snapshot_shows_the_rates_over_time() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare queue --engines vellum --rounds 1 --out {} -- --rows 50 --seconds 3 --hold-snapshot-at 1 --holder olap",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let picture = std::fs::read_to_string(out.join("compare-queue.svg")).unwrap();
    assert!(
        picture.contains("queue beside an old snapshot"),
        "{picture}"
    );
    assert!(picture.contains(">snapshot</text>"), "{picture}");
}

/// Figure 1 of the paper has other systems' lines beside its own.
#[test]
fn figure_1_asks_every_engine_of_the_build_and_names_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "figure 1 --tiny --rounds 3 --pool-mib 64 --out {}",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let document = json(&out.join("figure-1.json"));
    assert_eq!(document["rounds"], 3);
    let results = document["results"].as_object().unwrap();
    let skipped = document["skipped"].as_array().unwrap();
    let page = std::fs::read_to_string(out.join("figure-1.md")).unwrap();
    for engine in EngineName::value_variants() {
        let name = engine.name();
        let left_out = skipped.iter().find(|it| it["engine"] == name);
        assert_eq!(results.contains_key(name), left_out.is_none(), "{name}");
        match left_out {
            Some(left_out) if !engine.is_built() => {
                let why = left_out["why"].as_str().unwrap();
                assert!(why.contains("--features ") && page.contains(why), "{why}");
            }
            // Its adapter starts a server, which not every machine has.
            Some(_) => assert_eq!(name, "postgresql"),
            None => assert!(page.contains(&format!("| {name} | ")), "{page}"),
        }
    }
    let mut rates: Vec<f64> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run[0] == "vellum")
        .map(|run| run[1]["tx_per_s"].as_f64().unwrap())
        .collect();
    rates.sort_by(f64::total_cmp);
    assert_eq!(rates.len(), 3);
    let rate = &results["vellum"]["tx_per_s"];
    let [min, median, max] = ["min", "median", "max"].map(|key| rate[key].as_f64().unwrap());
    assert_eq!([min, median, max], rates[..]);
    assert!(
        page.contains(&format!("{median:.1} ({min:.1} to {max:.1})")),
        "{page}"
    );
    let picture = std::fs::read_to_string(out.join("figure-1.svg")).unwrap();
    assert!(picture.contains("tpcc beside an old snapshot"), "{picture}");
    assert!(!out.join("data").exists(), "databases are removed");
    let held = &document["runs"][0][1]["hold"];
    assert_eq!(
        (&held["holder"], &held["at_s"]),
        (&"olap".into(), &0.into())
    );
}

#[test]
fn comparisons_that_make_no_sense_are_refused() {
    for (flags, word) in [
        ("compare kv --engines oracle", "oracle"),
        ("compare nothing", "nothing"),
        (
            "compare kv --engines vellum -- --no-such-flag",
            "--no-such-flag",
        ),
        ("compare kv --engines vellum -- --json a", "--json"),
        ("compare kv --engines vellum -- --plot=a", "--plot"),
        ("compare kv --engines vellum -- --engine lmdb", "--engines"),
        ("compare kv --engines vellum -- --data a", "--out"),
        ("compare kv --engines vellum -- --check", "--check"),
        ("compare kv --engines vellum,lmdb,vellum", "vellum twice"),
        ("report --engines lmdb,lmdb", "lmdb twice"),
        ("kv --engine lmdb --variant basic", "lmdb"),
        ("kv --engine redb --idle-writer --rows 10", "redb"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ended = match flags.starts_with("compare") {
            true => program(
                &flags.replace("compare", "compare --out nowhere-to-write"),
                |_| Ok(Reference::new()),
            ),
            false => bench(flags, directory.path(), |_| Ok(Reference::new())),
        };
        assert_eq!(ended.code, 2, "{flags}: {}", ended.table);
        // What the parser refuses it tells on standard error itself.
        assert!(
            ended.table.is_empty() || ended.table.contains(word),
            "{flags}: {}",
            ended.table
        );
        assert!(!Path::new("nowhere-to-write").exists(), "{flags}");
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    std::fs::write(directory.path().join("data/file"), b"").unwrap();
    let flags = format!(
        "compare kv --engines vellum --out {}",
        directory.path().display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 2);
    assert!(ended.table.contains("is not empty"), "{}", ended.table);
}

#[test]
fn a_result_that_cannot_be_written_is_told_before_the_work() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    for (command, file) in [
        ("compare kv --engines vellum", "compare-kv.json"),
        ("compare kv --engines vellum", "compare-kv.md"),
        ("figure contention --tiny", "figure-contention.svg"),
    ] {
        std::fs::create_dir(out.join(file)).unwrap();
        let ended = program(
            &format!("{command} --out {}", out.display()),
            |_| -> vellum_workload::engine::Result<Reference> { panic!("nothing is opened") },
        );
        assert_eq!(ended.code, 1, "{command}: {}", ended.table);
        assert!(ended.table.contains(file), "{}", ended.table);
        std::fs::remove_dir(out.join(file)).unwrap();
    }
}

#[test]
fn a_comparison_without_an_engine_that_is_built_writes_nothing_and_fails() {
    let unbuilt = ["rocksdb", "canopydb", "lmdb"].into_iter().zip([
        cfg!(feature = "rocksdb"),
        cfg!(feature = "canopydb"),
        cfg!(feature = "lmdb"),
    ]);
    for (name, _) in unbuilt.filter(|it| !it.1) {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let flags = format!("compare kv --engines {name} --out {}", out.display());
        let ended = program(&flags, |_| Ok(Reference::new()));
        assert_ne!(ended.code, 0, "{}", ended.table);
        assert!(!out.join("compare-kv.md").exists());
    }
}

#[test]
fn updates_beside_scans_are_compared_too() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = format!(
        "compare scan --engines vellum --rounds 1 --out {} -- --rows 200 --seconds 1 --update-threads 1",
        out.display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let own = &json(&out.join("compare-scan.json"))["results"]["vellum"];
    let median = own["updates_per_s"]["median"].as_f64().unwrap();
    assert!(median > 0.0, "{own}");
}

#[test]
fn a_peers_directory_of_another_workload_is_refused() {
    for (name, is_built) in [
        ("canopydb", cfg!(feature = "canopydb")),
        ("fjall", cfg!(feature = "fjall")),
        ("lmdb", cfg!(feature = "lmdb")),
        ("postgresql", cfg!(feature = "postgresql")),
        ("redb", cfg!(feature = "redb")),
        ("rocksdb", cfg!(feature = "rocksdb")),
        ("sqlite", cfg!(feature = "sqlite")),
        ("wiredtiger", cfg!(feature = "wiredtiger")),
    ] {
        if !is_built || vellum_peers::lacking(name).is_some() {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let open = |flags: &str| {
            let flags = format!("{flags} --engine {name} --operations 10 --pool-mib 16");
            bench(&flags, directory.path(), |_| Ok(Reference::new()))
        };
        for _ in 0..2 {
            let ended = open("kv --rows 100");
            assert_eq!(ended.code, 0, "{name}: {}", ended.table);
        }
        let ended = open("queue --rows 10");
        assert_eq!(ended.code, 2, "{name}: {}", ended.table);
        assert!(
            ended.table.contains("rows of kv"),
            "{name}: {}",
            ended.table
        );
    }
}

#[test]
fn a_report_has_every_comparison_and_where_vellum_is_furthest_behind_stands_first() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("docs");
    let flags = format!(
        "report --set tiny --engines vellum,lmdb --out {} --data {}",
        out.display(),
        directory.path().join("data").display()
    );
    let ended = program(&flags, |_| Ok(Reference::new()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let page = std::fs::read_to_string(out.join("benchmarks.md")).unwrap();
    let names = [
        "read",
        "read-2",
        "rmw",
        "rmw-2",
        "sync",
        "sync-8",
        "sync-64",
        "scan",
        "scan-upd",
        "load",
        "load-shuffled",
        "tpcc",
        "tpcc-2",
        "tatp",
        "tatp-2",
        "hekaton",
        "hekaton-hot",
        "queue",
        "queue-2",
        "hot",
        "hot-2",
    ];
    let folder = out.join("benchmarks/report");
    let mut worst = Vec::new();
    for name in names {
        let picture = format!("benchmarks/report/{name}.svg");
        assert!(page.contains(&format!("![{name}]({picture})")), "{name}");
        assert!(out.join(picture).is_file(), "{name}");
        let ratios = &json(&folder.join(format!("{name}.json")))["ratio_to_best_peer"];
        let of = |metric: &str| ratios[metric].as_f64();
        let rate = of("succeeded_per_s")
            .or(of("rows_per_s"))
            .or(of("tx_per_s"));
        assert_eq!(rate.is_some(), cfg!(feature = "lmdb"), "{name}: {ratios}");
        // And median and p99 of each kind of transactions.
        let all = ratios.as_object().unwrap().iter();
        let counts = ["p50_us", "p99_us"];
        let latencies = all.filter(|(metric, _)| {
            metric
                .split(' ')
                .next()
                .is_some_and(|it| counts.contains(&it))
        });
        let least = [
            rate,
            of("updates_per_s"),
            of("tx_per_s_before_hold"),
            of("held_ratio"),
            of("release_min_ratio"),
        ]
        .into_iter()
        .chain(latencies.map(|(_, ratio)| ratio.as_f64()))
        .flatten()
        .fold(f64::INFINITY, f64::min);
        let row = page.find(&format!("(`{name}`)")).unwrap();
        // It stands there, in bold, and is what the page is sorted by.
        let told = page[row..].split_once("**").map(|it| it.1);
        let line = page[row..].lines().next().unwrap();
        if least.is_finite() {
            let told: f64 = told
                .and_then(|it| it.split("**").next()?.parse().ok())
                .unwrap();
            assert!((told - least).abs() <= 0.006, "{least}: {line}");
        } else {
            assert!(!line.contains("**"), "{line}");
        }
        worst.push((row, least));
    }
    worst.sort_by_key(|(row, _)| *row);
    assert!(
        worst.is_sorted_by(|one, other| one.1 <= other.1),
        "{worst:?}\n{page}"
    );
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        2 * names.len() + 1
    );
    assert!(!directory.path().join("data").exists());
}
