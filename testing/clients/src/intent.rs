//! What transactions on lists are to do: drawn before they begin, so that it can be announced; then done on any store of lists.
//!
//! | shape | what its transactions do |
//! | --- | --- |
//! | mixed | a few appends and reads; now and then one append is taken back to a savepoint, or all of it rolled back |
//! | forks | one append to one of the lists; or reads of all of them, in any order |
//! | skews | look at a group of lists, most often as one range of rows, and append to one if all are empty |
//!
//! Not here: how a list lies in tables ([`crate::store`], [`crate::indexed`], `vellum-sessions`).

use crate::client::Decision;
use std::collections::BTreeSet;
use vellum_base::random::Random;
use vellum_history::{Event, Key, Op};

/// Lists in a transaction that is open.
pub trait Appends {
    /// What ends the transaction, or the session.
    type Error;

    /// Appends a value; false if the list has no room.
    ///
    /// # Errors
    /// What the database says.
    fn append(&mut self, random: &mut Random, key: u64, value: u64) -> Result<bool, Self::Error>;

    /// Appends a value and takes it back to a savepoint.
    ///
    /// # Errors
    /// What the database says.
    fn append_and_revert(
        &mut self,
        random: &mut Random,
        key: u64,
        value: u64,
    ) -> Result<(), Self::Error>;

    /// Reads a list, in one of the ways that there are.
    ///
    /// # Errors
    /// What the database says, or what is wrong with the list.
    fn read(&mut self, random: &mut Random, key: u64) -> Result<Vec<u64>, Self::Error>;

    /// Reads `count` lists from `first` on as one range of rows, whatever lies in it: what is not there is part of the answer.
    ///
    /// # Errors
    /// What the database says, or what is wrong with a list.
    fn read_range(
        &mut self,
        random: &mut Random,
        first: u64,
        count: u64,
    ) -> Result<Vec<Vec<u64>>, Self::Error>;

    /// Lets others go on.
    fn wait(&mut self, random: &mut Random);
}

/// What transactions of a workload do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Appends and reads.
    Mixed,
    /// Single appends, and reads of everything.
    Forks,
    /// Appends that depend on what a group shows.
    Skews,
}

/// A workload of lists: a window of them is worked on, then the next one.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// What its transactions do.
    pub shape: Shape,
    /// Lists at a time.
    pub window: u64,
    /// Values drawn, for each of them, before there are new ones.
    pub appends: u64,
}

impl Scheme {
    /// The first of the lists that are worked on once so many values were drawn.
    pub fn base(&self, drawn: u64) -> u64 {
        drawn / (self.window * self.appends) * self.window
    }

    /// What the next transaction of a session does. Lists from `base` on; `value` draws one that nobody else appends; only lists that `may`
    /// are appended to.
    pub fn draw(
        &self,
        random: &mut Random,
        session: u64,
        base: u64,
        mut value: impl FnMut() -> u64,
        may: impl Fn(u64) -> bool,
    ) -> Intent {
        let (window, key) = (self.window, base + random.below(self.window));
        let work = match self.shape {
            Shape::Forks if !session.is_multiple_of(2) => Work::Look { base, window },
            Shape::Forks => Work::Steps(vec![(key, Some(value()))], None),
            Shape::Skews => {
                let value = value();
                Work::Skew(Skew {
                    base,
                    window,
                    key,
                    value,
                })
            }
            Shape::Mixed => {
                let steps = (0..random.between(1, 5)).map(|_| {
                    let key = base + random.below(window);
                    let value = (may(key) && random.chance(1, 2)).then(&mut value);
                    (key, value)
                });
                let steps: Vec<_> = steps.collect();
                let count = steps.len() as u64;
                let reverts = random.chance(1, 8).then(|| random.below(count) as usize);
                Work::Steps(steps, reverts)
            }
        };
        let rolls_back = self.shape == Shape::Mixed && random.chance(1, 12);
        let decision = match rolls_back {
            true => Decision::RollBack,
            false => Decision::Commit,
        };
        Intent { work, decision }
    }

    /// Reads lists, lets others go on, and reads them again, `looks` times.
    pub fn hold(&self, base: u64, most: u64, looks: u64) -> Intent {
        let window = self.window.min(most);
        Intent {
            work: Work::Hold {
                base,
                window,
                looks,
            },
            decision: Decision::Commit,
        }
    }
}

/// What one transaction does.
#[derive(Clone, Debug)]
pub struct Intent {
    work: Work,
    decision: Decision,
}

#[derive(Clone, Debug)]
enum Work {
    /// Reads, and appends of a value; one of the appends may be taken back.
    Steps(Vec<(u64, Option<u64>)>, Option<usize>),
    Look {
        base: u64,
        window: u64,
    },
    Skew(Skew),
    Hold {
        base: u64,
        window: u64,
        looks: u64,
    },
}

/// A look at a group of lists, and an append if nothing is there.
#[derive(Clone, Copy, Debug)]
pub struct Skew {
    /// The first list of the group.
    pub base: u64,
    /// How many there are.
    pub window: u64,
    /// The list that gets a value.
    pub key: u64,
    /// The value.
    pub value: u64,
}

impl Skew {
    /// Does it; notes what it did.
    ///
    /// # Errors
    /// What the lists say.
    pub fn run<A: Appends>(
        &self,
        lists: &mut A,
        random: &mut Random,
        done: &mut Vec<Op>,
    ) -> Result<(), A::Error> {
        // Now and then by the keys of rows that are not there, which is no range.
        if random.chance(1, 4) {
            read_window(lists, random, self.base, self.window, done)?;
        } else {
            let found = lists.read_range(random, self.base, self.window)?;
            done.extend(
                (self.base..)
                    .zip(found)
                    .map(|(key, list)| Op::read(key, list)),
            );
        }
        let empty = |op: &Op| matches!(op, Op::Read(_, Some(values)) if values.is_empty());
        if done.iter().all(empty) && lists.append(random, self.key, self.value)? {
            done.push(Op::append(self.key, self.value));
        }
        Ok(())
    }
}

impl Intent {
    /// Whether it only reads.
    pub fn only_reads(&self) -> bool {
        matches!(self.work, Work::Look { .. } | Work::Hold { .. })
    }

    /// The appends that it may do. Exactly those of a transaction of steps that commits: one that is there by half is found by that.
    pub fn announced(&self) -> Vec<Op> {
        match &self.work {
            Work::Steps(steps, reverts) => {
                let kept = steps.iter().enumerate();
                let kept = kept.filter(|(at, _)| *reverts != Some(*at));
                let appends =
                    kept.filter_map(|(_, (key, value))| Some(Op::append(*key, (*value)?)));
                appends.collect()
            }
            Work::Skew(skew) => vec![Op::append(skew.key, skew.value)],
            Work::Look { .. } | Work::Hold { .. } => Vec::new(),
        }
    }

    /// Does it; notes what it did.
    ///
    /// # Errors
    /// What the lists say.
    pub fn run<A: Appends>(
        &self,
        lists: &mut A,
        random: &mut Random,
        done: &mut Vec<Op>,
    ) -> Result<Decision, A::Error> {
        match &self.work {
            Work::Steps(steps, reverts) => {
                for (at, (key, value)) in steps.iter().enumerate() {
                    match value {
                        None => done.push(Op::read(*key, lists.read(random, *key)?)),
                        Some(value) if *reverts == Some(at) => {
                            lists.append_and_revert(random, *key, *value)?;
                        }
                        Some(value) => {
                            if !lists.append(random, *key, *value)? {
                                return Ok(Decision::RollBack);
                            }
                            done.push(Op::append(*key, *value));
                        }
                    }
                }
            }
            Work::Look { base, window } => read_window(lists, random, *base, *window, done)?,
            Work::Skew(skew) => skew.run(lists, random, done)?,
            Work::Hold {
                base,
                window,
                looks,
            } => {
                for _ in 1..*looks {
                    read_window(lists, random, *base, *window, done)?;
                    lists.wait(random);
                }
                read_window(lists, random, *base, *window, done)?;
            }
        }
        Ok(self.decision)
    }
}

/// Reads a window of lists, from one of them on and round.
fn read_window<A: Appends>(
    lists: &mut A,
    random: &mut Random,
    base: u64,
    window: u64,
    done: &mut Vec<Op>,
) -> Result<(), A::Error> {
    let first = random.below(window);
    for at in 0..window {
        let key = base + (first + at) % window;
        done.push(Op::read(key, lists.read(random, key)?));
    }
    Ok(())
}

/// Reads every list that `events` are about.
///
/// # Errors
/// What the lists say.
pub fn read_all<A: Appends>(
    lists: &mut A,
    random: &mut Random,
    events: &[Event],
    done: &mut Vec<Op>,
) -> Result<(), A::Error> {
    let key = |op: &Op| match op {
        Op::Append(Key::Number(key), _) | Op::Read(Key::Number(key), _) => Some(*key),
        _ => None,
    };
    let ops = events.iter().flat_map(|event| &event.ops);
    let keys: BTreeSet<u64> = ops.filter_map(key).collect();
    for key in keys {
        done.push(Op::read(key, lists.read(random, key)?));
    }
    Ok(())
}
