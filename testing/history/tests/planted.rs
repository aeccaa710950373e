//! One planted history for each anomaly: it is found by its exact name, at the levels that forbid it and at no other.

use vellum_history::{Event, History, Kind, Level, Name, Op, Options, Phase, Report, check};

/// A history by hand: transactions as `level? outcome: steps`, in the order of their begins and ends.
///
/// `begin T…` and `end T…` lines are made from the order of `lines`: each is begun and ended before the next, unless it says `|`, which puts it
/// beside the ones before it.
fn history(lines: &[(&str, &str)]) -> History {
    let mut text = String::new();
    let mut number = 0;
    let mut open: Vec<(usize, &str, &str)> = Vec::new();
    let mut event = |at: usize, f: &str, ops: &str| {
        number += 1;
        let end = if f == "info" { "[]" } else { ops };
        let ops = if f == "invoke" {
            ops_announced(ops)
        } else {
            end.to_owned()
        };
        text.push_str(&format!(
            "{{\"i\":{number},\"p\":{at},\"t\":{at},\"f\":\"{f}\",\"ts\":{number},\"lvl\":\"si\",\"ops\":{ops}}}\n"
        ));
    };
    for (at, (how, ops)) in lines.iter().enumerate() {
        let beside = how.starts_with('|');
        if !beside {
            for (at, f, ops) in open.drain(..) {
                event(at, f, ops);
            }
        }
        event(at, "invoke", ops);
        open.push((at, how.trim_start_matches('|'), ops));
    }
    for (at, f, ops) in open {
        event(at, f, ops);
    }
    History::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What is announced: the appends; the answers of reads are not known yet.
fn ops_announced(ops: &str) -> String {
    let ops: Vec<serde_json::Value> = serde_json::from_str(ops).expect("operations");
    let appends: Vec<_> = ops.into_iter().filter(|op| op[0] == "a").collect();
    serde_json::to_string(&appends).expect("operations")
}

fn at(history: &History, level: Level) -> Report {
    let level = Some(level);
    check(
        history,
        Options {
            level,
            real_time: false,
        },
    )
}

/// The planted histories: name, common name, whether read committed, snapshot and serializable allow it, and the history.
type Planted = (
    Name,
    Option<Kind>,
    [bool; 3],
    &'static [(&'static str, &'static str)],
);

const NONE: [bool; 3] = [false; 3];

const PLANTED: [Planted; 17] = [
    (
        Name::Internal,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1],["r",1,[]]]"#),
            ("ok", r#"[["r",1,[1]]]"#),
        ],
    ),
    (
        Name::Internal,
        None,
        [true, false, false],
        &[
            ("ok", r#"[["r",1,[]],["r",1,[1]]]"#),
            ("|ok", r#"[["a",1,1]]"#),
            ("ok", r#"[["r",1,[1]]]"#),
        ],
    ),
    (
        Name::Internal,
        None,
        NONE,
        &[
            ("ok", r#"[["r",1,[1]],["a",1,1]]"#),
            ("ok", r#"[["r",1,[1]]]"#),
        ],
    ),
    (
        Name::Internal,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1],["a",1,2],["a",1,3]]"#),
            ("ok", r#"[["r",1,[2,1,3]]]"#),
        ],
    ),
    (
        Name::LostAppend,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1]]"#),
            ("ok", r#"[["a",1,2]]"#),
            ("ok", r#"[["r",1,[1]]]"#),
        ],
    ),
    // There by half, though it was never acknowledged.
    (
        Name::LostAppend,
        None,
        NONE,
        &[
            ("info", r#"[["a",1,1],["a",2,1]]"#),
            ("ok", r#"[["r",1,[1]],["r",2,[]]]"#),
        ],
    ),
    (
        Name::DuplicateAppend,
        None,
        NONE,
        &[("ok", r#"[["a",1,1]]"#), ("ok", r#"[["r",1,[1,1]]]"#)],
    ),
    (Name::GarbageRead, None, NONE, &[("ok", r#"[["r",1,[7]]]"#)]),
    (
        Name::IncompatibleOrder,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1]]"#),
            ("|ok", r#"[["a",1,2]]"#),
            ("ok", r#"[["r",1,[2]]]"#),
            ("ok", r#"[["r",1,[1,2]]]"#),
        ],
    ),
    (
        Name::G1a,
        None,
        NONE,
        &[("fail", r#"[["a",1,1]]"#), ("ok", r#"[["r",1,[1]]]"#)],
    ),
    (
        Name::G1b,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1],["a",1,2]]"#),
            ("|ok", r#"[["r",1,[1]]]"#),
            ("ok", r#"[["r",1,[1,2]]]"#),
        ],
    ),
    (
        Name::G0,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1],["a",2,1]]"#),
            ("|ok", r#"[["a",1,2],["a",2,2]]"#),
            ("ok", r#"[["r",1,[1,2]],["r",2,[2,1]]]"#),
        ],
    ),
    (
        Name::G1c,
        None,
        NONE,
        &[
            ("ok", r#"[["a",1,1],["r",2,[1]]]"#),
            ("|ok", r#"[["a",2,1],["r",1,[1]]]"#),
            ("ok", r#"[["r",1,[1]],["r",2,[1]]]"#),
        ],
    ),
    (
        Name::GSingle,
        Some(Kind::LostUpdate),
        [true, false, false],
        &[
            ("ok", r#"[["r",1,[]],["a",1,1]]"#),
            ("|ok", r#"[["r",1,[]],["a",1,2]]"#),
            ("ok", r#"[["r",1,[1,2]]]"#),
        ],
    ),
    (
        Name::GSingle,
        Some(Kind::ReadSkew),
        [true, false, false],
        &[
            ("ok", r#"[["a",1,1],["a",2,1]]"#),
            ("|ok", r#"[["r",1,[]],["r",2,[1]]]"#),
            ("ok", r#"[["r",1,[1]],["r",2,[1]]]"#),
        ],
    ),
    (
        Name::GNonadjacent,
        Some(Kind::LongFork),
        [true, false, false],
        &[
            ("ok", r#"[["a",1,1]]"#),
            ("|ok", r#"[["a",2,1]]"#),
            ("|ok", r#"[["r",1,[1]],["r",2,[]]]"#),
            ("|ok", r#"[["r",1,[]],["r",2,[1]]]"#),
            ("ok", r#"[["r",1,[1]],["r",2,[1]]]"#),
        ],
    ),
    (
        Name::G2Item,
        Some(Kind::WriteSkew),
        [true, true, false],
        &[
            ("ok", r#"[["r",1,[]],["a",2,1]]"#),
            ("|ok", r#"[["r",2,[]],["a",1,1]]"#),
            ("ok", r#"[["r",1,[1]],["r",2,[1]]]"#),
        ],
    ),
];

/// A long fork of five transactions, two of whose pairs are a read skew each: all have their names.
#[test]
fn planted_long_fork_beside_read_skews_is_found_by_its_name() {
    let history = history(&[
        ("ok", r#"[["a",1,1],["a",4,1]]"#),
        ("|ok", r#"[["a",2,1],["a",5,1]]"#),
        ("|ok", r#"[["r",3,[1]],["r",2,[]],["r",5,[1]]]"#),
        ("|ok", r#"[["r",2,[1]],["r",1,[]],["r",4,[1]]]"#),
        ("|ok", r#"[["r",1,[1]],["a",3,1]]"#),
        (
            "ok",
            r#"[["r",1,[1]],["r",2,[1]],["r",3,[1]],["r",4,[1]],["r",5,[1]]]"#,
        ),
    ]);
    let report = at(&history, Level::Snapshot);
    let found: Vec<_> = report
        .forbidden()
        .map(|found| (found.name, found.kind))
        .collect();
    let expected = [
        (Name::GSingle, Some(Kind::ReadSkew)),
        (Name::GNonadjacent, Some(Kind::LongFork)),
    ];
    for expected in expected {
        assert!(
            found.contains(&expected),
            "{expected:?}: {found:?}\n{report}"
        );
    }
    let fork = report
        .forbidden()
        .find(|found| found.name == Name::GNonadjacent);
    assert_eq!(fork.map(|fork| fork.cycle.len()), Some(5), "{report}");
}

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::Snapshot, Level::Serializable];

#[test]
fn every_planted_anomaly_is_found_by_its_exact_name_where_it_is_forbidden() {
    for (name, kind, allowed, lines) in PLANTED {
        let history = history(lines);
        for (level, allowed) in LEVELS.into_iter().zip(allowed) {
            let report = at(&history, level);
            assert_eq!(report.is_clean(), allowed, "{name} at {level}:\n{report}");
            let names: Vec<Name> = report.forbidden().map(|anomaly| anomaly.name).collect();
            let expected = if allowed { vec![] } else { vec![name] };
            assert_eq!(names, expected, "{name} at {level}:\n{report}");
            for anomaly in report.forbidden() {
                assert_eq!(anomaly.kind, kind, "{report}");
                assert!(!anomaly.story.is_empty());
            }
        }
    }
    let planted: std::collections::HashSet<Name> =
        PLANTED.iter().map(|planted| planted.0).collect();
    assert_eq!(
        planted.len(),
        Name::ALL.len(),
        "every name has a planted history"
    );
}

#[test]
fn the_witness_is_the_shortest_cycle_told_as_a_story() {
    // Lost update of T1 and T2 beside a longer cycle through T3 and T4.
    let history = history(&[
        ("ok", r#"[["a",9,9]]"#),
        ("ok", r#"[["r",1,[]],["a",1,1]]"#),
        ("|ok", r#"[["r",1,[]],["a",1,2],["a",2,1]]"#),
        ("|ok", r#"[["r",2,[1]],["a",3,1]]"#),
        ("|ok", r#"[["r",3,[1]],["r",1,[1]]]"#),
        ("ok", r#"[["r",1,[1,2]],["r",2,[1]],["r",3,[1]]]"#),
    ]);
    let report = at(&history, Level::Snapshot);
    let anomaly = report.forbidden().next().unwrap();
    assert_eq!(anomaly.title(), "G-single (lost update)");
    assert_eq!(anomaly.transactions.len(), 2, "{report}");
    let text = report.to_string();
    for part in [
        "T2 read key 1 without 1, which T1 appended",
        "T1 appended 1 to key 1, T2 appended 2 behind it",
        "is before itself",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn without_a_final_read_a_lost_update_is_one_and_a_write_skew_is_one() {
    let lost = history(&[
        ("ok", r#"[["r",1,[]],["a",1,1]]"#),
        ("|ok", r#"[["r",1,[]],["a",1,2]]"#),
    ]);
    let report = at(&lost, Level::Snapshot);
    assert_eq!(
        report.forbidden().next().unwrap().title(),
        "G-single (lost update)"
    );
    assert_eq!(report.keys_without_final_read, 1);
    let skew = history(&[
        ("ok", r#"[["r",1,[]],["a",2,1]]"#),
        ("|ok", r#"[["r",2,[]],["a",1,1]]"#),
    ]);
    assert!(at(&skew, Level::Snapshot).is_clean());
    assert!(!at(&skew, Level::Serializable).is_clean());
}

/// Each of many read many lists that nobody had appended to, and appended: what came before what are more edges than memory holds, so not all are
/// looked at. Had they been limited by the list only, 100 lists of 1,000 appends took 12 GB.
#[test]
fn a_history_without_final_reads_has_no_more_edges_than_memory_and_its_lost_updates_are_found() {
    const KEYS: u64 = 6;
    let event = |i, t, f, ops| Event {
        i,
        p: t,
        t,
        f,
        ts: i,
        lvl: Some(Level::Snapshot),
        ops,
    };
    let history = |each: u64, updates: bool| {
        let count = KEYS * each;
        let begun = (0..count).map(|t| {
            let announced = vec![Op::append(t % KEYS, t)];
            event(t, t, Phase::Invoke, announced)
        });
        let done = (0..count).map(|t| {
            // The last list alone is read by those that append to it.
            let own = updates && t % KEYS == KEYS - 1;
            let read = if own {
                t % KEYS
            } else {
                (t % KEYS + 1) % (KEYS - 1)
            };
            let ops = vec![Op::read(read, []), Op::append(t % KEYS, t)];
            event(count + t, t, Phase::Ok, ops)
        });
        History::from_events(begun.chain(done)).unwrap()
    };
    let report = at(&history(900, false), Level::Snapshot);
    assert!(report.edges < 1_100_000, "{} edges", report.edges);
    assert!(report.is_clean(), "{report}");
    let report = at(&history(900, true), Level::Snapshot);
    let titles: Vec<String> = report.forbidden().map(|anomaly| anomaly.title()).collect();
    assert!(!titles.is_empty(), "{report}");
    let lost = titles.iter().all(|title| title == "G-single (lost update)");
    assert!(lost, "{titles:?}");
}

#[test]
fn an_end_that_nobody_knows_may_be_either() {
    for values in ["[]", "[1]"] {
        let read = format!(r#"[["r",1,{values}],["r",2,{values}]]"#);
        let history = history(&[("info", r#"[["a",1,1],["a",2,1]]"#), ("ok", &read)]);
        let report = at(&history, Level::Serializable);
        assert!(report.anomalies.is_empty(), "{report}");
    }
}

#[test]
fn a_stale_read_is_found_at_every_level_by_who_asks_for_real_time() {
    let history = history(&[
        ("ok", r#"[["a",1,1]]"#),
        ("ok", r#"[["r",1,[]]]"#),
        ("ok", r#"[["r",1,[1]]]"#),
    ]);
    for level in LEVELS {
        assert!(at(&history, level).is_clean());
        let report = in_time(&history, level);
        let titles: Vec<String> = report.forbidden().map(|anomaly| anomaly.title()).collect();
        assert_eq!(titles, ["G-single-realtime"], "{level}: {report}");
        assert_eq!(report.forbidden().next().unwrap().cycle.len(), 2);
    }
}

fn in_time(history: &History, level: Level) -> Report {
    let (level, real_time) = (Some(level), true);
    check(history, Options { level, real_time })
}

#[test]
fn what_is_overwritten_while_a_transaction_of_read_committed_runs_is_not_stale() {
    // T1 began before T0 ended, and reads before and after.
    let history = history(&[
        ("ok", r#"[["a",1,1]]"#),
        ("|ok", r#"[["r",1,[]],["r",1,[1]]]"#),
        ("ok", r#"[["r",1,[1]]]"#),
    ]);
    let report = in_time(&history, Level::ReadCommitted);
    assert!(report.is_clean(), "{report}");
    assert!(!in_time(&history, Level::Snapshot).is_clean());
}

#[test]
fn a_cycle_over_two_keys_is_no_lost_update() {
    // T1 overwrites key 2, which T0 wrote, and did not see what T0 wrote to key 1.
    let two = history(&[
        ("ok", r#"[["a",1,1],["a",2,1]]"#),
        ("|ok", r#"[["r",1,[]],["a",2,2]]"#),
        ("ok", r#"[["r",1,[1]],["r",2,[1,2]]]"#),
    ]);
    let report = at(&two, Level::Snapshot);
    let titles: Vec<String> = report.forbidden().map(|anomaly| anomaly.title()).collect();
    assert_eq!(titles, ["G-single"], "{report}");
    // A lost update of key 1 is one, whatever else the two wrote.
    let one = history(&[
        ("ok", r#"[["r",1,[]],["a",1,1],["a",2,1]]"#),
        ("|ok", r#"[["a",2,2],["r",1,[]],["a",1,2]]"#),
        ("ok", r#"[["r",2,[1,2]],["r",1,[1,2]]]"#),
    ]);
    let report = at(&one, Level::Snapshot);
    let titles: Vec<String> = report.forbidden().map(|anomaly| anomaly.title()).collect();
    assert_eq!(titles, ["G-single (lost update)"], "{report}");
}

#[test]
fn two_that_appended_beside_each_other_are_found_though_nobody_read_what_they_appended() {
    // Each read what the other did not write yet: a skew, but for key 3, which both wrote: whoever was first, the other had not seen it.
    let history = history(&[
        ("ok", r#"[["r",1,[]],["a",2,1],["a",3,1]]"#),
        ("|ok", r#"[["r",2,[]],["a",1,1],["a",3,2]]"#),
    ]);
    let report = at(&history, Level::Snapshot);
    let names: Vec<Name> = report.forbidden().map(|anomaly| anomaly.name).collect();
    assert_eq!(names, [Name::GSingle], "{report}");
    assert!(at(&history, Level::ReadCommitted).is_clean());
}

#[test]
fn an_append_of_a_transaction_whose_end_is_unknown_may_come_behind_a_final_read() {
    // T2 reads what T0 appended to key 2; when T1 read key 1, T0 may not have committed yet.
    let history_of = |last: &str| {
        history(&[
            ("info", r#"[["a",1,1],["a",2,1]]"#),
            ("ok", r#"[["r",1,[]]]"#),
            ("ok", r#"[["r",2,[1]]]"#),
            ("ok", last),
        ])
    };
    for level in LEVELS {
        let report = at(&history_of("[]"), level);
        assert!(report.anomalies.is_empty(), "{level}: {report}");
        // Who begins after T2 has ended must see it.
        let report = at(&history_of(r#"[["r",1,[]]]"#), level);
        let names: Vec<Name> = report.forbidden().map(|anomaly| anomaly.name).collect();
        assert_eq!(names, [Name::LostAppend], "{level}: {report}");
    }
}

/// A random history found this: without a final read the missing append passed for one that nobody had read yet.
#[test]
fn a_list_with_the_second_append_of_a_transaction_has_the_first_one() {
    for order in [
        r#"[["a",1,1],["a",1,4]]"#,
        r#"[["a",1,1],["a",2,2],["a",1,4]]"#,
    ] {
        let history = history(&[("ok", order), ("|ok", r#"[["r",1,[4]]]"#)]);
        for level in LEVELS {
            let report = at(&history, level);
            let lost = |anomaly: &&vellum_history::Anomaly| anomaly.name == Name::LostAppend;
            assert_eq!(
                report.forbidden().filter(lost).count(),
                1,
                "{level}: {report}"
            );
        }
    }
}

/// A random history found this: the one who reads everything was the first to read anything of T0's, and passed for the only proof that T0 had committed.
#[test]
fn who_appended_behind_a_transaction_whose_end_is_unknown_has_proven_that_it_committed() {
    // T2 appended behind what T0 appended to key 1, so T0 had committed when T3 began, and key 2 misses what it appended.
    let history_of = |begins: &str| {
        history(&[
            ("info", r#"[["a",1,1],["a",2,3]]"#),
            ("ok", r#"[["a",1,5]]"#),
            (begins, r#"[["r",2,[]],["r",1,[1,5]]]"#),
        ])
    };
    let report = at(&history_of("ok"), Level::ReadCommitted);
    let names: Vec<Name> = report.forbidden().map(|anomaly| anomaly.name).collect();
    assert_eq!(names, [Name::LostAppend], "{report}");
    // Beside it nothing is proven: both may have committed between the two reads.
    assert!(at(&history_of("|ok"), Level::ReadCommitted).is_clean());
    // The proof goes from list to list: T1, of unknown end, too, stands behind T0 in one, and T2 behind T1 in another.
    let report = at(
        &history(&[
            ("info", r#"[["a",1,1],["a",2,3]]"#),
            ("info", r#"[["a",1,2],["a",3,4]]"#),
            ("ok", r#"[["a",3,5]]"#),
            ("ok", r#"[["r",2,[]],["r",1,[1,2]],["r",3,[4,5]]]"#),
        ]),
        Level::ReadCommitted,
    );
    let names: Vec<Name> = report.forbidden().map(|anomaly| anomaly.name).collect();
    assert_eq!(names, [Name::LostAppend], "{report}");
}

#[test]
fn levels_may_be_mixed() {
    // The skew is between two; it is forbidden only if both were promised more than a snapshot.
    let text = |first: &str, second: &str| {
        [
            (1, 0, "invoke", first, r#"[["a",2,1]]"#),
            (2, 1, "invoke", second, r#"[["a",1,1]]"#),
            (3, 0, "ok", first, r#"[["r",1,[]],["a",2,1]]"#),
            (4, 1, "ok", second, r#"[["r",2,[]],["a",1,1]]"#),
        ]
        .map(|(i, p, f, lvl, ops)| {
            format!(
                "{{\"i\":{i},\"p\":{p},\"t\":{p},\"f\":\"{f}\",\"lvl\":\"{lvl}\",\"ops\":{ops}}}\n"
            )
        })
        .concat()
    };
    for (first, second, clean) in [
        ("si", "si", true),
        ("si", "ser", true),
        ("ser", "ser", false),
    ] {
        let history = History::read(text(first, second).as_bytes()).unwrap();
        let report = check(&history, Options::default());
        assert_eq!(report.is_clean(), clean, "{first} {second}\n{report}");
    }
}
