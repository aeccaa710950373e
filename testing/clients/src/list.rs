//! Lists that are appended to and read; the history checker judges, with the order of real time.
//!
//! | workload | what its transactions do |
//! | --- | --- |
//! | few | appends to and reads of three lists, one of each style |
//! | many | the same over sixty |
//! | indexed | the same over twelve, which are found by their keys or by one of three indexes |
//! | forks | one append to one of four lists; or reads of all four, in any order |
//! | skews | look at a group of lists by its rows, and append to one if all are empty |
//!
//! In `few`, `many` and `indexed` some sessions are promised read committed; these append in place only, where reading and writing are one statement.

use crate::client::{Client, Decision, Gone, How};
use crate::indexed::Indexed;
use crate::run::Workload;
use crate::store::{Store, Style, TABLE};
use std::collections::BTreeSet;
use vellum::{Class, Database, Error, Result, Transaction};
use vellum_base::random::Random;
use vellum_history::{Event, History, Key, Name, Op, Options, check};

/// Appends to a list before there are new ones.
const APPENDS: u64 = 40;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Mixed,
    Forks,
    Skews,
}

/// A workload of lists.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    shape: Shape,
    /// Lists at a time.
    window: u64,
    appends: u64,
    /// Whether they lie in a table with indexes.
    indexed: bool,
}

impl Lists {
    /// Three lists at a time.
    pub fn few() -> Self {
        Self {
            shape: Shape::Mixed,
            window: 3,
            appends: APPENDS,
            indexed: false,
        }
    }

    /// Sixty lists at a time.
    pub fn many() -> Self {
        Self {
            shape: Shape::Mixed,
            window: 60,
            appends: APPENDS,
            indexed: false,
        }
    }

    /// Twelve lists at a time, which are found by indexes.
    pub fn indexed() -> Self {
        Self {
            shape: Shape::Mixed,
            window: 12,
            appends: APPENDS,
            indexed: true,
        }
    }

    /// Four lists at a time, each appended to by transactions that do nothing else.
    pub fn forks() -> Self {
        Self {
            shape: Shape::Forks,
            window: 4,
            appends: 10,
            indexed: false,
        }
    }

    /// Groups of four lists; a list gets a value if the group has none.
    pub fn skews() -> Self {
        Self {
            shape: Shape::Skews,
            window: 4,
            appends: 2,
            indexed: false,
        }
    }

    /// The first of the lists that are worked on now.
    fn base(&self, client: &Client<'_>) -> u64 {
        let drawn = client.life.values_drawn() % (1 << 24);
        drawn / (self.window * self.appends) * self.window
    }

    fn mixed(&self, client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let base = self.base(client);
        let blind = client.number == 1;
        let how = if blind {
            How::READ_COMMITTED
        } else {
            How::SNAPSHOT
        };
        let mut steps = Vec::new();
        for _ in 0..client.random.between(1, 5) {
            let key = base + client.random.below(self.window);
            let may = !blind || self.indexed || Style::of(key) == Style::Packed;
            let value = (may && client.random.chance(1, 2)).then(|| client.life.value());
            steps.push((key, value));
        }
        let reverts = client
            .random
            .chance(1, 8)
            .then(|| client.random.below(steps.len() as u64));
        // Exactly what it does if it commits: one that is there by half is found by that.
        let kept = (0..).zip(&steps).filter(|(at, _)| reverts != Some(*at));
        let announced = kept.filter_map(|(_, (key, value))| Some(Op::append(*key, (*value)?)));
        let announced = announced.collect();
        let decision = if client.random.chance(1, 12) {
            Decision::RollBack
        } else {
            Decision::Commit
        };
        client.transact(how, announced, |transaction, random, done| {
            let lists = Store::open(transaction, self.indexed)?;
            for (at, (key, value)) in (0..).zip(steps) {
                let savepoint = (reverts == Some(at)).then(|| transaction.savepoint());
                match value {
                    None => {
                        let values = lists.read(transaction, random, key, blind)?;
                        done.push(Op::read(key, values));
                    }
                    Some(value) => {
                        let room = lists.append(transaction, random, key, value, blind)?;
                        if let Some(savepoint) = savepoint {
                            transaction.rollback_to(&savepoint?)?;
                        } else if room {
                            done.push(Op::append(key, value));
                        } else {
                            return Ok(Decision::RollBack);
                        }
                    }
                }
            }
            Ok(decision)
        })
    }

    fn fork(&self, client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let base = self.base(client);
        if client.number.is_multiple_of(2) {
            let (key, value) = (base + client.random.below(self.window), client.life.value());
            let announced = vec![Op::append(key, value)];
            return client.transact(How::SNAPSHOT, announced, |transaction, random, done| {
                let lists = Store::open(transaction, false)?;
                if lists.append(transaction, random, key, value, false)? {
                    done.push(Op::append(key, value));
                }
                Ok(Decision::Commit)
            });
        }
        let window = self.window;
        client.transact(How::READ_ONLY, Vec::new(), |transaction, random, done| {
            let lists = Store::open(transaction, false)?;
            let first = random.below(window);
            read_window(transaction, &lists, random, base, window, first, done)?;
            Ok(Decision::Commit)
        })
    }

    fn skew(&self, client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let base = self.base(client);
        let (key, value) = (base + client.random.below(self.window), client.life.value());
        let announced = vec![Op::append(key, value)];
        client.transact(How::SNAPSHOT, announced, |transaction, random, done| {
            skew_step(transaction, random, base, self.window, (key, value), done)?;
            Ok(Decision::Commit)
        })
    }

    /// Reads all lists, waits for others, and reads them again.
    fn hold(&self, client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let (base, window) = (self.base(client), self.window.min(12));
        let class = if client.random.chance(1, 3) {
            Class::Olap
        } else {
            Class::Auto
        };
        let life = client.life;
        let how = How {
            class,
            ..How::READ_ONLY
        };
        client.transact(how, Vec::new(), |transaction, random, done| {
            let lists = Store::open(transaction, self.indexed)?;
            for _ in 0..3 {
                let first = random.below(window);
                read_window(transaction, &lists, random, base, window, first, done)?;
                life.wait_for_commits(random.between(10, 200));
            }
            read_window(transaction, &lists, random, base, window, 0, done)?;
            Ok(Decision::Commit)
        })
    }
}

/// Reads a window of lists, from one on and round.
fn read_window(
    transaction: &Transaction,
    lists: &Store,
    random: &mut Random,
    base: u64,
    window: u64,
    first: u64,
    done: &mut Vec<Op>,
) -> Result<()> {
    for at in 0..window {
        let key = base + (first + at) % window;
        let values = lists.read(transaction, random, key, false)?;
        done.push(Op::read(key, values));
    }
    Ok(())
}

/// Looks at a group, and appends if nothing is there.
pub fn skew_step(
    transaction: &Transaction,
    random: &mut Random,
    base: u64,
    window: u64,
    (key, value): (u64, u64),
    done: &mut Vec<Op>,
) -> Result<()> {
    let lists = Store::open(transaction, false)?;
    read_window(transaction, &lists, random, base, window, 0, done)?;
    let empty = |op: &Op| matches!(op, Op::Read(_, Some(values)) if values.is_empty());
    if done.iter().all(empty) && lists.append(transaction, random, key, value, false)? {
        done.push(Op::append(key, value));
    }
    Ok(())
}

/// Makes a table if it is not there.
pub(crate) fn make_table(database: &Database, name: &str) -> Result<()> {
    database.retry(|transaction| match transaction.table(name) {
        Err(Error::NoSuchTable { .. }) => transaction.create_table(name).map(drop),
        other => other.map(drop),
    })
}

impl Workload for Lists {
    fn prepare(&self, database: &Database) -> Result<()> {
        match self.indexed {
            true => Indexed::prepare(database),
            false => make_table(database, TABLE),
        }
    }

    fn step(&self, client: &mut Client<'_>) -> std::result::Result<(), Gone> {
        // The first session holds snapshots most of the time.
        if client.number == 0 && client.random.chance(2, 3) {
            return self.hold(client).map(drop);
        }
        match self.shape {
            Shape::Mixed => self.mixed(client),
            Shape::Forks => self.fork(client),
            Shape::Skews => self.skew(client),
        }
        .map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, events: &[Event]) -> std::result::Result<(), Gone> {
        let key = |op: &Op| match op {
            Op::Append(Key::Number(key), _) | Op::Read(Key::Number(key), _) => Some(*key),
            _ => None,
        };
        let keys: BTreeSet<u64> = events
            .iter()
            .flat_map(|event| event.ops.iter().filter_map(key))
            .collect();
        let read = client.transact(How::READ_ONLY, Vec::new(), |transaction, random, done| {
            let lists = Store::open(transaction, self.indexed)?;
            for key in keys {
                done.push(Op::read(key, lists.read(transaction, random, key, false)?));
            }
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        let history = History::from_events(events).map_err(|error| error.to_string())?;
        let report = check(
            &history,
            Options {
                level: None,
                real_time: true,
            },
        );
        if !report.is_clean() {
            return Err(report.to_string());
        }
        if report.keys_without_final_read > 0 {
            return Err(format!(
                "{} keys were not read in the end",
                report.keys_without_final_read
            ));
        }
        let skews = report.has(Name::G2Item);
        Ok(format!(
            "{} committed, {} rolled back, {} unknown; {} lists, {} dependencies; write skew {}",
            report.committed,
            report.aborted,
            report.unknown,
            report.keys,
            report.edges,
            if skews { "met" } else { "not met" }
        ))
    }
}
