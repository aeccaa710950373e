//! A long history to measure the checker with: a small store in memory that keeps snapshot isolation, or forgets to look for conflicts.
//!
//! Ten sessions take turns; transactions of one to six operations over eight lists at a time, each given up for a new one after 64 appends, so
//! that reads stay short.

use crate::event::{Level, Op};
use crate::recorder::Recorder;
use vellum_base::random::Random;

const SESSIONS: usize = 10;
const LISTS: u64 = 8;
const LONGEST: usize = 64;

struct Open {
    /// How long each list was at its begin.
    snapshot: Vec<usize>,
    steps: Vec<(u64, Option<u64>)>,
}

/// Records `transactions` transactions and a final read of everything.
pub fn generate(transactions: u64, seed: u64, conflicts: bool) -> Recorder {
    let recorder = Recorder::new();
    let mut random = Random::new(seed);
    let mut lists: Vec<Vec<u64>> = vec![Vec::new(); LISTS as usize];
    let mut value = 0;
    let mut sessions: Vec<_> = (0..SESSIONS).map(|_| recorder.session()).collect();
    // A session runs a batch at a time: all of them begin, then each ends.
    let mut done = 0;
    while done < transactions {
        let at_once = random.between(1, SESSIONS as u64).min(transactions - done) as usize;
        done += at_once as u64;
        let newest = lists.len() as u64;
        let mut running = Vec::new();
        for session in &mut sessions[..at_once] {
            let steps = (0..random.between(1, 6)).map(|_| {
                let key = newest - 1 - random.below(LISTS);
                let appends = random.chance(1, 2);
                value += u64::from(appends);
                (key, appends.then_some(value))
            });
            let steps: Vec<_> = steps.collect();
            let announced = steps
                .iter()
                .filter_map(|(key, value)| Some(Op::append(*key, (*value)?)));
            let snapshot = lists
                .iter()
                .skip((newest - LISTS) as usize)
                .map(Vec::len)
                .collect();
            let announced = announced.collect();
            running.push((
                session.invoke(Level::Snapshot, announced),
                Open { snapshot, steps },
            ));
        }
        for (transaction, open) in running {
            let seen = |key: u64| open.snapshot[(key + LISTS - newest) as usize];
            let lost = open
                .steps
                .iter()
                .any(|(key, value)| value.is_some() && lists[*key as usize].len() > seen(*key));
            if lost && conflicts {
                transaction.rolled_back();
                continue;
            }
            let mut own: Vec<(u64, u64)> = Vec::new();
            let mut ops = Vec::with_capacity(open.steps.len());
            for (key, value) in &open.steps {
                if let Some(value) = value {
                    own.push((*key, *value));
                    ops.push(Op::append(*key, *value));
                    continue;
                }
                let mut values = lists[*key as usize][..seen(*key)].to_vec();
                values.extend(
                    own.iter()
                        .filter(|(other, _)| other == key)
                        .map(|(_, value)| *value),
                );
                ops.push(Op::read(*key, values));
            }
            for (key, value) in own {
                lists[key as usize].push(value);
            }
            transaction.committed(ops);
        }
        while lists[lists.len() - LISTS as usize..]
            .iter()
            .any(|list| list.len() > LONGEST)
        {
            lists.push(Vec::new());
        }
    }
    let last = sessions[0].invoke(Level::Snapshot, Vec::new());
    let reads = (0..)
        .zip(&lists)
        .map(|(key, list)| Op::read(key, list.as_slice()));
    last.committed(reads.collect());
    drop(sessions);
    recorder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Options, check};
    use crate::history::History;

    #[test]
    fn the_right_store_is_judged_right_and_the_wrong_one_wrong() {
        for conflicts in [true, false] {
            let recorder = generate(3000, 7, conflicts);
            let history = History::from_events(recorder.events()).unwrap();
            let report = check(
                &history,
                Options {
                    level: None,
                    real_time: true,
                },
            );
            assert_eq!(report.is_clean(), conflicts, "{report}");
        }
    }
}
