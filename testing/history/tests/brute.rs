//! Agreement with brute force: a small history keeps a promise if and only if some order of its begins and commits explains it.
//!
//! The histories come from small stores, right and wrong, and are spoiled a little. The last transaction reads everything after all others
//! have ended, as every recorded history does.

mod orders;
mod stores;

use orders::explained;
use stores::random_history;
use vellum_base::random::Random;
use vellum_history::{History, Level, Options, check};

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::Snapshot, Level::Serializable];

#[test]
fn prop_verdicts_agree_with_brute_force_over_all_orders() {
    let seed = vellum_base::replay::seed();
    let rounds = vellum_base::replay::rounds(10_000);
    eprintln!("VELLUM_SEED={seed}");
    let mut verdicts = [[0_u64; 2]; 3];
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let events = random_history(&mut Random::new(seed));
        let history = History::from_events(events.clone()).expect("a history");
        assert!(history.transactions.len() <= 6);
        for (at, level) in LEVELS.into_iter().enumerate() {
            let history = history.clone().at_level(level);
            let report = check(&history, Options::default());
            let right = explained(&history, level);
            let lines: Vec<String> = events
                .iter()
                .map(|event| serde_json::to_string(event).expect("a line"))
                .collect();
            assert_eq!(
                report.is_clean(),
                right,
                "VELLUM_SEED={seed} VELLUM_ROUNDS=1, {level}: brute force says {right}\n{}\n{report}",
                lines.join("\n")
            );
            verdicts[at][usize::from(right)] += 1;
        }
    }
    eprintln!("wrong and right by level: {verdicts:?}");
    // Or the histories would say nothing.
    if rounds >= 1000 {
        assert!(
            verdicts.iter().flatten().all(|count| *count > rounds / 20),
            "{verdicts:?}"
        );
    }
}
