//! Power cuts under R6-R8: what was acknowledged is there, what is there is a prefix of the commit order, and
//! nothing of a loser is, whatever the number of crashes during recovery.
//!
//! What it does NOT check: pages on disk (the store's page is rebuilt from the log), carried undo (R9: the engine's
//! tests).
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use store::World;
use vellum_base::Timestamp;
use vellum_base::random::Random;
use vellum_io::{Keep, PowerCut, SimulatedDirectory, Torn};
use vellum_txn::{Durability, Options, Savepoint, Transaction};

const KEYS: u64 = 6;
const SLOTS: u16 = 4;

/// What the outside world knows.
#[derive(Default)]
struct Ledger {
    /// Commits in the order of their timestamps, with what they wrote.
    commits: Vec<(Timestamp, Vec<(u64, u64)>)>,
    /// Everything that committed below it was acknowledged to somebody, as a commit or as a read.
    acknowledged: Timestamp,
}

impl Ledger {
    fn state_after(&self, count: usize) -> BTreeMap<u64, u64> {
        self.commits[..count]
            .iter()
            .flat_map(|(_, writes)| writes.iter().copied())
            .collect()
    }

    /// Asserts that `state` is that after some prefix which contains all that was acknowledged.
    fn check(&self, state: &BTreeMap<u64, u64>) {
        let least = self
            .commits
            .partition_point(|(ts, _)| *ts < self.acknowledged);
        assert!(
            (least..=self.commits.len()).any(|count| self.state_after(count) == *state),
            "{state:?} is no prefix of {:?} from {least} on",
            self.commits
        );
    }
}

struct Open {
    transaction: Transaction,
    writes: Vec<(u64, u64)>,
    savepoint: Option<(Savepoint, usize)>,
}

fn options(random: &mut Random) -> Options {
    let durability = if random.chance(1, 3) {
        Durability::Sync
    } else {
        Durability::Async
    };
    Options {
        durability,
        ..Options::default()
    }
}

/// Random steps of up to three transactions at a time, until a call fails or `steps` are done.
fn workload(world: &World, random: &mut Random, steps: u64, ledger: &mut Ledger) {
    let mut open: Vec<Open> = Vec::new();
    let mut value = 0;
    for _ in 0..steps {
        if open.len() < 3 {
            let transaction = world.begin(options(random));
            open.push(Open {
                transaction,
                writes: Vec::new(),
                savepoint: None,
            });
        }
        let index = random.below(open.len() as u64) as usize;
        let one = &mut open[index];
        match random.below(10) {
            0..=4 => {
                let (key, command) = (random.below(KEYS), one.transaction.next_command().unwrap());
                value += 1;
                match world.write(&one.transaction, command, key, value) {
                    Ok(_) => one.writes.push((key, value)),
                    Err(store::Refused::Conflict) => {}
                    Err(store::Refused::Transaction(_)) => return,
                }
            }
            5 => one.savepoint = Some((one.transaction.savepoint(), one.writes.len())),
            6 => {
                let Some((savepoint, kept)) = &one.savepoint else {
                    continue;
                };
                let mut undo = world.undo(one.transaction.slot());
                if one.transaction.rollback_to(savepoint, &mut undo).is_err() {
                    return;
                }
                one.writes.truncate(*kept);
            }
            7 => {
                let one = open.swap_remove(index);
                let slot = one.transaction.slot();
                if one.transaction.rollback(&mut world.undo(slot)).is_err() {
                    return;
                }
            }
            _ => {
                let Open {
                    transaction,
                    writes,
                    ..
                } = open.swap_remove(index);
                let wrote = transaction.has_written();
                let sync = transaction.options().durability == Durability::Sync;
                let Ok(ticket) = transaction.commit_deferred() else {
                    return;
                };
                if wrote {
                    ledger.commits.push((ticket.commit_ts(), writes));
                }
                if sync {
                    if ticket.wait().is_err() {
                        return;
                    }
                    // A writer saw its own commit, a reader what was committed below its snapshot.
                    let seen = Timestamp(ticket.commit_ts().get() + u64::from(wrote));
                    ledger.acknowledged = ledger.acknowledged.max(seen);
                }
            }
        }
    }
}

fn cut(random: &mut Random) -> PowerCut {
    PowerCut {
        keep: [Keep::None, Keep::All, Keep::Random][random.below(3) as usize],
        torn: [Torn::None, Torn::Sector512, Torn::Block4096][random.below(3) as usize],
        reorder: random.chance(1, 2),
    }
}

/// One life: work until the power goes after `calls` mutating calls (`None`: stop without a cut).
fn live(disk: &SimulatedDirectory, seed: u64, calls: Option<u64>) -> Ledger {
    let mut ledger = Ledger::default();
    if let Some(calls) = calls {
        disk.cut_after(calls);
    }
    if let Ok(world) = World::open(Arc::new(disk.clone()), SLOTS) {
        workload(&world, &mut Random::new(seed), 240, &mut ledger);
    }
    ledger
}

/// Recovers after `crashes` attempts that are cut off, checks, and returns the disk as it is then.
fn recover(mut disk: SimulatedDirectory, random: &mut Random, crashes: u64, ledger: &Ledger) {
    let mut verdict = None;
    for _ in 0..crashes {
        disk.cut_after(random.between(1, 12));
        let result = World::open(Arc::new(disk.clone()), SLOTS);
        drop(result);
        let (seed, cut) = (random.next_u64(), cut(random));
        disk = disk.power_cut(seed, cut);
    }
    for _ in 0..2 {
        let world = World::open(Arc::new(disk.clone()), SLOTS).expect("recovers");
        ledger.check(&world.newest());
        // A second recovery comes to the same result: later horizons never change the verdict.
        let state = world.newest();
        assert_eq!(*verdict.get_or_insert_with(|| state.clone()), state);
        let floor = world.manager.restart_floor();
        assert!(
            ledger
                .commits
                .iter()
                .all(|(ts, _)| *ts < floor || !state_has(&state, ledger, *ts))
        );
        drop(world);
        disk = disk.power_cut(random.next_u64(), PowerCut::CLEAN);
    }
}

/// True if the state shows the commit at `ts` by a value that it wrote.
fn state_has(state: &BTreeMap<u64, u64>, ledger: &Ledger, ts: Timestamp) -> bool {
    let commit = ledger
        .commits
        .iter()
        .find(|(commit_ts, _)| *commit_ts == ts);
    commit.is_some_and(|(_, writes)| {
        writes
            .iter()
            .any(|(key, value)| state.get(key) == Some(value))
    })
}

#[test]
fn crash_r6_r7_r8_every_cut_of_a_workload_recovers_to_a_prefix_of_commits() {
    // A seed whose workload hardly flushes gives its place to the next: opening alone makes 15 calls.
    let first = store::seed("crash_r6_r7_r8");
    let mut tried = (0..20).map(|more| {
        let (seed, whole) = (first.wrapping_add(more), SimulatedDirectory::new());
        live(&whole, seed, None);
        (seed, whole.mutating_calls())
    });
    let (seed, calls) = tried
        .find(|(_, calls)| *calls > 20)
        .expect("a workload flushes");
    eprintln!("{calls} calls with seed {seed}");
    let mut random = Random::new(seed ^ 1);
    for call in 0..calls {
        let disk = SimulatedDirectory::new();
        let ledger = live(&disk, seed, Some(call));
        let after = disk.power_cut(random.next_u64(), cut(&mut random));
        recover(after, &mut random, 0, &ledger);
    }
}

#[test]
fn crash_r8_random_workloads_with_crashes_during_recovery() {
    let seed = store::seed("crash_r8_random");
    for turn in 0..store::rounds(60) {
        let mut random = Random::new(seed.wrapping_add(turn));
        let disk = SimulatedDirectory::new();
        let ledger = live(&disk, random.next_u64(), Some(random.between(10, 100)));
        let after = disk.power_cut(random.next_u64(), cut(&mut random));
        let crashes = random.below(4);
        recover(after, &mut random, crashes, &ledger);
    }
}

#[test]
fn r6_acknowledged_async_commit_may_be_lost_but_only_with_all_that_follow() {
    let disk = SimulatedDirectory::new();
    let world = World::new(Arc::new(disk.clone()), SLOTS);
    let put = |key, durability| {
        let transaction = world.begin(Options {
            durability,
            ..Options::default()
        });
        let command = transaction.next_command().unwrap();
        world.write(&transaction, command, key, 1).unwrap();
        transaction.commit().unwrap().commit_ts
    };
    let first = put(1, Durability::Async);
    let second = put(2, Durability::Sync);
    assert!(first < second && world.manager.log().horizon() > second);
    put(3, Durability::Async);
    let after = World::open(Arc::new(disk.power_cut(1, PowerCut::CLEAN)), SLOTS).unwrap();
    assert_eq!(after.newest().into_keys().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn r7_reader_is_acknowledged_only_when_what_it_read_is_durable() {
    let disk = SimulatedDirectory::new();
    let world = World::new(Arc::new(disk.clone()), SLOTS);
    let writer = world.begin(Options {
        durability: Durability::Async,
        ..Options::default()
    });
    let command = writer.next_command().unwrap();
    world.write(&writer, command, 1, 1).unwrap();
    writer.commit().unwrap();
    let reader = world.begin(Options {
        read_only: true,
        ..Options::default()
    });
    assert_eq!(world.read(&reader, reader.snapshot(), 0, 1), Some(1));
    let ticket = reader.commit_deferred().unwrap();
    assert!(!ticket.is_hardened());
    ticket.wait().unwrap();
    let after = World::open(Arc::new(disk.power_cut(1, PowerCut::CLEAN)), SLOTS).unwrap();
    assert_eq!(after.newest().into_keys().collect::<Vec<_>>(), [1]);
}

#[test]
fn r8_versions_from_before_the_restart_are_visible_and_losers_are_gone() {
    let disk = SimulatedDirectory::new();
    let world = World::new(Arc::new(disk.clone()), SLOTS);
    let (winner, loser) = (
        world.begin(Options::default()),
        world.begin(Options::default()),
    );
    for (transaction, key) in [(&winner, 1), (&loser, 2)] {
        let command = transaction.next_command().unwrap();
        world.write(transaction, command, key, 7).unwrap();
    }
    let loser_stamp = loser.stamp().unwrap();
    winner.commit().unwrap();
    let after = World::open(Arc::new(disk.power_cut(1, PowerCut::CLEAN)), SLOTS).unwrap();
    let stamps: Vec<_> = after
        .outcome
        .losers
        .iter()
        .map(|loser| loser.stamp)
        .collect();
    assert_eq!(stamps, [loser_stamp]);
    let reader = after.begin(Options::default());
    let read = |key| after.read(&reader, reader.snapshot(), 0, key);
    assert_eq!((read(1), read(2)), (Some(7), None));
    assert!(after.manager.clock().now() > loser_stamp);
}
