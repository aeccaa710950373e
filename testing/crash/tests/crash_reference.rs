//! The tools tested on themselves: a store that is right survives every cut, and each mistake is
//! caught.

use vellum_crash::power::{Effort, every_call};
use vellum_crash::reference::{Mistake, Reference};
use vellum_crash::workload;
use vellum_io::SimulatedDirectory;
use vellum_model::{Profile, Step, Subject};

const KEY_LIMIT: usize = 512;
const EFFORT: Effort = Effort {
    seeds: 3,
    second_cuts: 2,
};

fn open(
    mistake: Option<Mistake>,
) -> impl Fn(&SimulatedDirectory) -> Result<Box<dyn Subject>, String> {
    move |disk| Reference::open(disk, KEY_LIMIT, mistake)
}

fn workloads() -> Vec<(&'static str, Vec<Step>)> {
    let profile = Profile {
        page_size: 4096,
        key_limit: KEY_LIMIT,
        open_max: 4,
        power_cuts: false,
        reopens: true,
        burst_max: 10,
    };
    vec![
        ("commits", workload::commits()),
        ("rollbacks", workload::rollbacks()),
        ("tables", workload::tables()),
        ("bulk load", workload::bulk_load(60)),
        ("random", workload::random(5, 80, &profile)),
    ]
}

#[test]
fn crash_power_a_store_that_is_right_survives_every_cut() {
    for (name, history) in workloads() {
        let tried = every_call(&history, KEY_LIMIT, EFFORT, 1, &open(None));
        let tried = tried.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        eprintln!("{name}: {tried:?}");
        assert!(tried.cuts >= 8 * tried.calls && tried.second_cuts > 0);
    }
}

#[test]
fn crash_power_every_mistake_of_a_store_is_caught() {
    let mistakes = [
        Mistake::AnswersBeforeSync,
        Mistake::ForgetsDirectorySync,
        Mistake::BelievesTornRecords,
        Mistake::WritesUncommitted,
        Mistake::RewritesInPlace,
    ];
    for mistake in mistakes {
        let caught = workloads().into_iter().find_map(|(_, history)| {
            every_call(&history, KEY_LIMIT, EFFORT, 1, &open(Some(mistake))).err()
        });
        let failure = caught.unwrap_or_else(|| panic!("{mistake:?} is never caught"));
        eprintln!(
            "{mistake:?}: {}",
            failure.what.lines().next().unwrap_or_default()
        );
        if mistake == Mistake::RewritesInPlace {
            assert!(
                failure.second.is_some(),
                "only a second cut can show it: {failure:?}"
            );
        }
    }
}
