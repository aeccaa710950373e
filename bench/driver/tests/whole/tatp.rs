//! TATP by the whole program: what is reported, what is loaded, what a check finds.

use crate::support::{Forgetful, bench, json, occupy};
use vellum_workload::engine::{Engine, Session, TxOptions};
use vellum_workload::reference::Reference;
use vellum_workload::tatp::population::{Population, load};
use vellum_workload::tatp::rates::expected;
use vellum_workload::tatp::schema::{
    ACCESS_INFO, CALL_FORWARDING, START_TIMES, SUBSCRIBER_BY_NUMBER, TABLES, TYPES, forwarding_key,
    number, typed_key,
};
use vellum_workload::tatp::{Kind, check};

#[test]
fn tatp_loads_runs_checks_and_reports_how_many_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let (file, plot) = ["summary.json", "plot.svg"]
        .map(|name| directory.path().join(name))
        .into();
    let flags = format!(
        "tatp --subscribers 3000 --uniform --threads 2 --operations 40000 --idle-writer --json {} --plot {}",
        file.display(),
        plot.display()
    );
    let ended = bench(&flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(ended.code, 0, "{}", ended.table);
    let summary = json(&file);
    assert_eq!(summary["consistency"], "ok");
    assert_eq!(summary["workload"], "tatp");
    assert_eq!(summary["settings"]["subscribers"], "3000");
    assert_eq!(summary["settings"]["uniform"], "true");
    assert!(summary["load_s"].as_f64().is_some());
    let (mut all, mut failed) = (0, 0.0);
    for kind in Kind::ALL {
        let count = summary["counts"][kind.name()].as_u64().unwrap();
        all += count;
        let expected_count = 400 * kind.share();
        assert!(
            count.abs_diff(expected_count) < 5 * expected_count.isqrt(),
            "{}: {count}",
            kind.name()
        );
        let share = summary["success_share"][kind.name()].as_f64().unwrap();
        let (least, most) = expected(kind);
        assert!(
            least - 0.1 < share && share < most + 0.1,
            "{}: {share}",
            kind.name()
        );
        failed += count as f64 * (1.0 - share);
        assert!(ended.table.contains(kind.name()), "{}", ended.table);
    }
    assert_eq!(all, 40_000);
    let rolled_back = summary["rolled_back"].as_f64().unwrap();
    assert!(
        (rolled_back - failed).abs() < 100.0,
        "{rolled_back}, {failed}"
    );
    let of = |key: &str| summary[key].as_f64().unwrap();
    let succeeded = of("succeeded_per_s") * of("seconds");
    assert!((succeeded + rolled_back - 40_000.0).abs() < 10.0);
    assert!(std::fs::read_to_string(plot).unwrap().contains("tatp"));
}

#[test]
fn second_run_takes_the_population_that_is_there_and_another_size_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Reference::new();
    let file = directory.path().join("summary.json");
    let run = |flags: &str| bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(run("tatp --subscribers 100 --operations 2000").code, 0);
    occupy(directory.path());
    let again = format!("tatp --operations 2000 --seed 7 --json {}", file.display());
    let ended = run(&again);
    assert_eq!(ended.code, 0, "{}", ended.table);
    let summary = json(&file);
    assert_eq!(summary["settings"]["subscribers"], "100");
    assert_eq!(summary["settings"]["uniform"], "false");
    assert!(summary["load_s"].is_null());
    for flags in [
        "tatp --subscribers 101 --operations 1",
        "tatp --check --subscribers 99",
    ] {
        let ended = run(flags);
        assert_eq!(ended.code, 2, "{flags}");
        let told = "holds TATP of 100 subscribers: run it with --subscribers 100";
        assert!(ended.table.contains(told), "{}", ended.table);
    }
    assert_eq!(run("tatp --check").code, 0);
}

#[test]
fn a_load_that_was_interrupted_is_named_with_what_finishes_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    let mut tables = 0;
    // Five tables a transaction: fails in the second one.
    let ended = load(&mut session, Population::new(100_010, 42), |_| {
        tables += 1;
        match tables {
            7 => Err(vellum_workload::engine::EngineError::Interrupted),
            _ => Ok(()),
        }
    });
    assert!(ended.is_err());
    drop(session);
    std::fs::create_dir(directory.path().join("data")).unwrap();
    occupy(directory.path());
    let run = |flags: &str| bench(flags, directory.path(), |_| Ok(engine.clone()));
    for flags in [
        "tatp --subscribers 7 --operations 1",
        "tatp --operations 1",
        "tatp --check",
    ] {
        let ended = run(flags);
        assert_eq!(ended.code, 2, "{flags}: {}", ended.table);
        for part in [
            "100000 of them loaded (the load was interrupted)",
            "--subscribers 100010 loads the rest",
        ] {
            assert!(ended.table.contains(part), "{flags}: {}", ended.table);
        }
    }
    let finished = run("tatp --subscribers 100010 --operations 10");
    assert_eq!(finished.code, 0, "{}", finished.table);
}

#[test]
fn check_finds_damage_and_a_lost_commit() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    let run =
        |engine: &Reference, flags: &str| bench(flags, directory.path(), |_| Ok(engine.clone()));
    assert_eq!(
        run(&engine, "tatp --subscribers 60 --operations 100").code,
        0
    );
    occupy(directory.path());

    // Some of the thousands of lost commits are inserts or deletes.
    let flags = "tatp --operations 200000 --seed 5";
    let ended = bench(flags, directory.path(), |_| Ok(Forgetful(engine.clone())));
    assert_eq!(ended.code, 1, "{}", ended.table);
    assert!(
        ended
            .table
            .contains("by those that were inserted and deleted"),
        "{}",
        ended.table
    );
    // What was lost is nothing that the rows themselves tell.
    assert_eq!(run(&engine, "tatp --check").code, 0);

    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    assert!(session.delete(SUBSCRIBER_BY_NUMBER, &number(9)).unwrap());
    session.commit().unwrap();
    drop(session);
    let ended = run(&engine, "tatp --check");
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .table
            .contains("subscriber_by_number: 000000000000009 is missing"),
        "{}",
        ended.table
    );
}

#[test]
fn shares_that_chance_does_not_explain_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Reference::new();
    let run =
        |engine: &Reference, flags: &str| bench(flags, directory.path(), |_| Ok(engine.clone()));
    let flags = "tatp --subscribers 2000 --uniform --operations 100";
    assert_eq!(run(&engine, flags).code, 0);
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    // Every access info goes that can, and every call forwarding is there that can be.
    let population = Population::read(&mut session).unwrap().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    for s in 1..=2000 {
        let person = population.person(s);
        for kind in 2..=TYPES {
            session.delete(ACCESS_INFO, &typed_key(s, kind)).unwrap();
        }
        for kind in (1..=TYPES).filter(|kind| person.facilities.has(kind - 1)) {
            for start in START_TIMES {
                let key = forwarding_key(s, kind, start);
                let row = [&[24], &number(s)[..]].concat();
                session.upsert(CALL_FORWARDING, &key, &row).unwrap();
            }
        }
    }
    session.commit().unwrap();
    let findings = check::check(&mut session, |_| {}).unwrap();
    assert!(
        findings
            .violations
            .iter()
            .all(|line| line.starts_with("access_info"))
    );
    drop(session);
    let ended = run(&engine, "tatp --uniform --operations 20000");
    assert_eq!(ended.code, 1, "{}", ended.table);
    for kind in [
        Kind::GetAccessData,
        Kind::GetNewDestination,
        Kind::InsertCallForwarding,
        Kind::DeleteCallForwarding,
    ] {
        let told = format!("{}: ", kind.name());
        assert!(ended.table.contains(&told), "{}", ended.table);
    }
    assert!(
        !ended.table.contains("get_subscriber_data: "),
        "{}",
        ended.table
    );
}
