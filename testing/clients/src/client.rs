//! A session: one transaction after another, each recorded.
//!
//! What is recorded of a transaction:
//! - `ok`: its commit returned, and what it did is durable;
//! - `fail`: it was rolled back, by its own will, for a conflict, or because an operation failed before its commit was asked for;
//! - `info`: its commit failed, or the process was killed inside it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use vellum::{
    Class, Database, Durability, Error, Isolation, Result, Transaction, TransactionOptions,
};
use vellum_base::random::Random;
use vellum_history::recorder::Session;
use vellum_history::{Level, Op};
use vellum_model::engine::wait_by_polling;

/// What the sessions of one life share.
#[derive(Debug)]
pub struct Life {
    /// The next value that nobody appended yet.
    values: AtomicU64,
    commits: Mutex<u64>,
    committed: Condvar,
    over: AtomicBool,
}

impl Life {
    /// A life whose values begin at `first`.
    pub fn new(first: u64) -> Self {
        Self {
            values: AtomicU64::new(first),
            commits: Mutex::new(0),
            committed: Condvar::new(),
            over: AtomicBool::new(false),
        }
    }

    /// A value that nobody else gets.
    pub fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed)
    }

    /// The value that would be next.
    pub fn values_drawn(&self) -> u64 {
        self.values.load(Ordering::Relaxed)
    }

    /// Ends it: nobody waits any more.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        let _commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        self.committed.notify_all();
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn count_commit(&self) {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.committed.notify_all();
    }

    /// Waits until the others have committed so many times, or the life is over.
    pub fn wait_for_commits(&self, count: u64) {
        let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let until = *commits + count;
        let more = |commits: &mut u64| *commits < until && !self.is_over();
        drop(self.committed.wait_while(commits, more));
    }
}

/// The database is gone: the disk was cut, or something is wrong with it.
#[derive(Debug)]
pub struct Gone(pub Error);

/// One client.
#[derive(Debug)]
pub struct Client<'r> {
    /// What it talks to.
    pub database: &'r Database,
    /// What it shares with the others.
    pub life: &'r Life,
    /// Where what it does is written down.
    pub session: Session<'r>,
    /// What it does follows from this, and from what it sees.
    pub random: Random,
    /// Its place among the sessions.
    pub number: usize,
    /// How many of the sessions, the first ones, hold snapshots most of the time.
    pub holders: usize,
}

/// How a transaction is begun.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Its promise; none is more than a snapshot.
    pub level: Level,
    /// Whether it may write.
    pub read_only: bool,
    /// Whether it says that it is analytical, or is found out.
    pub class: Class,
}

impl How {
    /// A snapshot.
    pub const SNAPSHOT: Self = Self {
        level: Level::Snapshot,
        read_only: false,
        class: Class::Auto,
    };

    /// A snapshot that only reads.
    pub const READ_ONLY: Self = Self {
        read_only: true,
        ..Self::SNAPSHOT
    };

    /// A snapshot that only reads; one in three says that it is analytical.
    pub fn looking(random: &mut Random) -> Self {
        let class = match random.chance(1, 3) {
            true => Class::Olap,
            false => Class::Auto,
        };
        Self {
            class,
            ..Self::READ_ONLY
        }
    }

    /// A snapshot a statement.
    pub const READ_COMMITTED: Self = Self {
        level: Level::ReadCommitted,
        ..Self::SNAPSHOT
    };
}

/// What a transaction decides in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Commit.
    Commit,
    /// Roll back.
    RollBack,
}

impl Client<'_> {
    /// Whether it holds snapshots most of the time.
    pub fn holds(&self) -> bool {
        self.number < self.holders
    }

    /// Looks in one snapshot; who holds snapshots looks again, up to six times, each after others have committed so many times at most.
    ///
    /// # Errors
    /// As [`Self::transact`].
    pub fn look(
        &mut self,
        commits_max: u64,
        look: impl Fn(&Transaction, &mut Random, &mut Vec<Op>) -> Result<()>,
    ) -> std::result::Result<(), Gone> {
        let (how, life) = (How::looking(&mut self.random), self.life);
        let again = match self.holds() {
            true => self.random.between(1, 6),
            false => 0,
        };
        let looked = self.transact(how, Vec::new(), |transaction, random, done| {
            look(transaction, random, done)?;
            for _ in 0..again {
                life.wait_for_commits(random.between(10, commits_max));
                look(transaction, random, done)?;
            }
            Ok(Decision::Commit)
        });
        looked.map(drop)
    }

    /// Runs one transaction and records it. `announced` is every append that it may do; `work` notes what it did. True if it
    /// committed.
    ///
    /// # Errors
    /// What ends the session: everything but conflicts.
    pub fn transact(
        &mut self,
        how: How,
        announced: Vec<Op>,
        work: impl FnOnce(&Transaction, &mut Random, &mut Vec<Op>) -> Result<Decision>,
    ) -> std::result::Result<bool, Gone> {
        let isolation = match how.level {
            Level::ReadCommitted => Isolation::ReadCommitted,
            _ => Isolation::Snapshot,
        };
        // What does not wait is made durable by the round of somebody else, before it is called acknowledged.
        let waits = how.read_only || self.random.chance(1, 2);
        let durability = if waits {
            Durability::Sync
        } else {
            Durability::Async
        };
        let options = TransactionOptions::default()
            .isolation(isolation)
            .durability(durability)
            .read_only(how.read_only)
            .class(how.class);
        let how_to_commit = self.random.below(4);
        let running = self.session.invoke(how.level, announced);
        let transaction = match self.database.begin_with(options) {
            Ok(transaction) => transaction,
            Err(error) => {
                running.rolled_back();
                return Err(Gone(error));
            }
        };
        let mut done = Vec::new();
        match work(&transaction, &mut self.random, &mut done) {
            Ok(Decision::Commit) => {}
            Ok(Decision::RollBack) => {
                let rolled_back = transaction.rollback();
                running.rolled_back();
                return rolled_back.map(|()| false).map_err(Gone);
            }
            Err(error) => {
                let rolled_back = transaction.rollback();
                running.rolled_back();
                // Two that add the same row: the second may hear of the row, not of the conflict.
                return match error {
                    Error::KeyExists { .. } => rolled_back.map(|()| false).map_err(Gone),
                    error if error.is_retryable() => rolled_back.map(|()| false).map_err(Gone),
                    error => Err(Gone(error)),
                };
            }
        }
        let committed = match how_to_commit {
            0 if waits => transaction.commit_deferred().and_then(|it| it.wait()),
            1 if waits => (transaction.commit_deferred()).and_then(|it| wait_by_polling(&it)),
            _ if waits => transaction.commit(),
            _ => transaction.commit().and_then(|()| self.database.sync()),
        };
        match committed {
            Ok(()) => {
                running.committed(done);
                self.life.count_commit();
                Ok(true)
            }
            Err(error) => {
                // Dropped without an end: nobody knows.
                drop(running);
                Err(Gone(error))
            }
        }
    }
}
