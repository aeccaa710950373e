//! What a killed process had acknowledged, kept outside of it, and what must therefore be found.
//!
//! The workload: thread `t` commits the transactions `n = 1, 2, …`, each of which writes `n` to row
//! `t` of two tables, adds row `(t, n)` to a history and takes `(t, n - KEPT)` from it. Some
//! also take the next number of a row that all threads share and add it to `orders`. Thread 0 puts
//! every [`LOADS_EVERY`]th of them together with a bulk load into a new table and drops the table before.
//!
//! Layout of a notice (16 bytes, one write to a pipe, so never torn): `0 u8 kind, 1 u8 thread,
//! 2 six zeroes, 8 u64 number`, little-endian.
//!
//! Invariants (of what is found; `r(t)` is what row `t` says):
//! - I1 Both tables say the same: no transaction is half there.
//! - I2 `r(t)` is at least the last commit of `t` that waited and was acknowledged, and at least every commit
//!   of `t` that was acknowledged before a transaction began that waited and was acknowledged: what is lost
//!   is a suffix of the commit order.
//! - I3 `r(t)` is above the last commit that was acknowledged in whatever way by at most one for each life
//!   since the last look: a life can end between a commit and its notice.
//! - I4 The history of `t` holds exactly the last `KEPT` numbers up to `r(t)`, each whole.
//! - I5 `orders` holds exactly the numbers up to that of the shared row; each names a transaction that
//!   is there: across threads, what is there is a prefix of the commit order too.
//! - I6 Exactly the last loaded table is there, whole.

use std::collections::{BTreeMap, BTreeSet};

/// Length of a notice.
pub const NOTICE_BYTES: usize = 16;
/// How many rows of its history a thread keeps.
pub const KEPT: u64 = 40;
/// Every so many transactions of thread 0 load a table.
pub const LOADS_EVERY: u64 = 50;
/// Rows of a loaded table.
pub const LOADED_ROWS: u64 = 300;
/// How many threads commit.
pub const THREADS: u8 = 3;

/// What the child says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The database is open.
    Opened,
    /// Begins a transaction whose commit waits.
    Begins(u8, u64),
    /// Such a commit returned.
    Durable(u8, u64),
    /// A commit that does not wait returned.
    Committed(u8, u64),
}

impl Notice {
    /// The bytes for the pipe.
    pub fn encode(self) -> [u8; NOTICE_BYTES] {
        let (kind, thread, number) = match self {
            Self::Opened => (1, 0, 0),
            Self::Begins(thread, number) => (2, thread, number),
            Self::Durable(thread, number) => (3, thread, number),
            Self::Committed(thread, number) => (4, thread, number),
        };
        let mut bytes = [0; NOTICE_BYTES];
        (bytes[0], bytes[1]) = (kind, thread);
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Reads the bytes of the pipe; `None` if they are no notice.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; NOTICE_BYTES] = bytes.try_into().ok()?;
        let [kind, thread, ..] = *bytes;
        let number = u64::from_le_bytes(bytes[8..].try_into().expect("eight bytes"));
        match kind {
            1 => Some(Self::Opened),
            2 => Some(Self::Begins(thread, number)),
            3 => Some(Self::Durable(thread, number)),
            4 => Some(Self::Committed(thread, number)),
            _ => None,
        }
    }
}

/// Numbers of transactions by thread.
type Numbers = BTreeMap<u8, u64>;

/// What was acknowledged so far, over all lives of the child.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// I2.
    must: Numbers,
    /// What was acknowledged in this life, or survives from earlier ones for sure.
    acknowledged: Numbers,
    /// I3: what was acknowledged in any life since the last look.
    most: Numbers,
    /// What was acknowledged when a thread's waiting transaction began.
    before: BTreeMap<u8, Numbers>,
    opened: u64,
    /// Lives since the last look.
    lives: u64,
}

/// What is found in the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Row by thread of the one table.
    pub first: Numbers,
    /// Row by thread of the other.
    pub second: Numbers,
    /// The numbers in each thread's history, if their rows are whole.
    pub history: BTreeMap<u8, BTreeSet<u64>>,
    /// The shared row.
    pub last_order: u64,
    /// Orders: number, thread and transaction.
    pub orders: Vec<(u64, u8, u64)>,
    /// Loaded tables: of which transaction, how many rows of it are right.
    pub loaded: Vec<(u64, u64)>,
}

fn raise(numbers: &mut Numbers, thread: u8, number: u64) {
    let entry = numbers.entry(thread).or_default();
    *entry = (*entry).max(number);
}

impl Ledger {
    /// Takes a notice down.
    pub fn note(&mut self, notice: Notice) {
        match notice {
            Notice::Opened => {
                self.opened += 1;
                self.lives += 1;
                // The new life goes on from what it found; its numbers may come again.
                self.acknowledged = self.must.clone();
                self.before.clear();
            }
            Notice::Begins(thread, _) => {
                self.before.insert(thread, self.acknowledged.clone());
            }
            Notice::Committed(thread, number) => {
                raise(&mut self.acknowledged, thread, number);
                raise(&mut self.most, thread, number);
            }
            Notice::Durable(thread, number) => {
                raise(&mut self.acknowledged, thread, number);
                raise(&mut self.most, thread, number);
                raise(&mut self.must, thread, number);
                for (thread, number) in self.before.remove(&thread).unwrap_or_default() {
                    raise(&mut self.must, thread, number);
                }
            }
        }
    }

    /// How often the database was opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// How many commits that waited were acknowledged, at least.
    pub fn durable(&self) -> u64 {
        self.must.values().sum()
    }

    /// Compares with what is found after a crash, and goes on from there: what was lost is
    /// forgotten, what is there stays there.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check(&mut self, found: &Found) -> Result<(), String> {
        let wrong = |what: String| Err(format!("{what}\nledger {self:?}\nfound {found:?}"));
        if found.first != found.second {
            return wrong("I1: a transaction is half there".into());
        }
        let reached = |thread| found.first.get(&thread).copied().unwrap_or_default();
        for thread in 0..THREADS {
            let at = reached(thread);
            let must = self.must.get(&thread).copied().unwrap_or_default();
            if at < must {
                return wrong(format!(
                    "I2: thread {thread} is at {at}, {must} was acknowledged"
                ));
            }
            let most = self.most.get(&thread).copied().unwrap_or_default() + self.lives.max(1);
            if at > most {
                return wrong(format!("I3: thread {thread} is at {at}, above {most}"));
            }
            let expected: BTreeSet<u64> = (at.saturating_sub(KEPT) + 1..=at).collect();
            let history = found.history.get(&thread).cloned().unwrap_or_default();
            if history != expected {
                return wrong(format!("I4: the history of thread {thread} at {at}"));
            }
        }
        let numbers: Vec<u64> = found.orders.iter().map(|(order, ..)| *order).collect();
        if numbers != (1..=found.last_order).collect::<Vec<_>>() {
            return wrong("I5: the orders have a hole or go on behind the last".into());
        }
        if let Some(order) = found
            .orders
            .iter()
            .find(|(_, thread, n)| *n > reached(*thread))
        {
            return wrong(format!(
                "I5: order {order:?} is of a transaction that is not there"
            ));
        }
        let last_load = reached(0) / LOADS_EVERY * LOADS_EVERY;
        let expected = if last_load > 0 {
            vec![(last_load, LOADED_ROWS)]
        } else {
            Vec::new()
        };
        if found.loaded != expected {
            return wrong(format!("I6: the loaded table should be {expected:?}"));
        }
        self.acknowledged = found.first.clone();
        self.must = found.first.clone();
        self.most = found.first.clone();
        self.before.clear();
        self.lives = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(numbers: [u64; 3]) -> Found {
        let rows: Numbers = (0..).zip(numbers).filter(|(_, n)| *n > 0).collect();
        let kept = |n: u64| (n.saturating_sub(KEPT) + 1..=n).collect();
        Found {
            first: rows.clone(),
            second: rows.clone(),
            history: rows.iter().map(|(thread, n)| (*thread, kept(*n))).collect(),
            last_order: 2,
            orders: vec![(1, 0, 1), (2, 1, 2)],
            loaded: Vec::new(),
        }
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.note(Notice::Durable(0, 5));
        ledger.note(Notice::Committed(1, 7));
        ledger.note(Notice::Begins(2, 3));
        ledger.note(Notice::Committed(1, 8));
        ledger
    }

    #[test]
    fn notices_are_read_back() {
        for notice in [
            Notice::Opened,
            Notice::Begins(1, 2),
            Notice::Durable(3, u64::MAX),
            Notice::Committed(0, 9),
        ] {
            assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        }
        assert_eq!(Notice::decode(&[9; 16]), None);
        assert_eq!(Notice::decode(&[1; 15]), None);
    }

    #[test]
    fn what_was_not_waited_for_may_be_lost_from_the_end() {
        assert_eq!(ledger().check(&found([5, 2, 0])), Ok(()));
        assert_eq!(ledger().check(&found([6, 9, 1])), Ok(()));
    }

    #[test]
    fn a_commit_that_waited_covers_what_was_acknowledged_before_it_began() {
        let mut ledger = ledger();
        ledger.note(Notice::Durable(2, 3));
        assert_eq!(ledger.clone().check(&found([5, 7, 3])), Ok(()));
        let error = ledger.check(&found([5, 6, 3])).unwrap_err();
        assert!(error.starts_with("I2"), "{error}");
    }

    #[test]
    fn each_broken_invariant_is_named() {
        type Break = (&'static str, fn(&mut Found));
        let breaks: [Break; 8] = [
            ("I1", |found| *found.second.entry(0).or_default() = 4),
            ("I2", |found| {
                *found = Found {
                    loaded: Vec::new(),
                    ..super::tests::found([4, 2, 0])
                }
            }),
            ("I3", |found| *found = super::tests::found([7, 2, 0])),
            ("I4", |found| {
                drop(found.history.insert(1, BTreeSet::from([2])))
            }),
            ("I5", |found| found.last_order = 3),
            ("I5", |found| found.orders[1].2 = 3),
            ("I5", |found| found.orders.truncate(1)),
            ("I6", |found| found.loaded.push((50, 299))),
        ];
        for (name, break_it) in breaks {
            let mut broken = found([5, 2, 0]);
            break_it(&mut broken);
            let error = ledger().check(&broken).unwrap_err();
            assert!(error.starts_with(name), "{name}: {error}");
        }
    }

    #[test]
    fn what_an_earlier_life_may_have_lost_is_not_covered_by_a_later_commit() {
        let mut ledger = ledger();
        ledger.note(Notice::Opened);
        ledger.note(Notice::Begins(2, 3));
        ledger.note(Notice::Durable(2, 3));
        assert_eq!(ledger.check(&found([5, 2, 3])), Ok(()));
    }

    #[test]
    fn each_life_may_end_between_a_commit_and_its_notice() {
        let mut ledger = ledger();
        for _ in 0..2 {
            ledger.note(Notice::Opened);
        }
        assert_eq!(ledger.clone().check(&found([7, 2, 0])), Ok(()));
        assert!(ledger.check(&found([8, 2, 0])).is_err());
    }

    #[test]
    fn what_was_found_once_must_be_found_again() {
        let mut ledger = ledger();
        ledger.check(&found([6, 8, 0])).unwrap();
        let error = ledger.check(&found([6, 7, 0])).unwrap_err();
        assert!(error.starts_with("I2"), "{error}");
    }
}
