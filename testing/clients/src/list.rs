//! Lists that are appended to and read; the history checker judges, with the order of real time.
//!
//! | workload | what its transactions do |
//! | --- | --- |
//! | few | mixed, over three lists, one of each style |
//! | many | the same over sixty |
//! | indexed | the same over twelve, which are found by their keys or by one of three indexes |
//! | forks, skews | as they are called, over four lists |
//!
//! What mixed, forks and skews are: [`crate::intent`]. In `few`, `many` and `indexed` some sessions are promised read committed; these append in place only, where reading and writing are one statement.

use crate::client::{Client, Decision, Gone, How, Life};
use crate::indexed::Indexed;
use crate::intent::{Appends, Intent, Scheme, Shape, read_all};
use crate::run::Workload;
use crate::store::{Store, Style, TABLE};
use vellum::{Database, Error, Result, Transaction};
use vellum_base::random::Random;
use vellum_history::{Event, History, Level, Name, Options, check};

/// Appends to a list before there are new ones.
const APPENDS: u64 = 40;

/// A workload of lists.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    scheme: Scheme,
    /// Whether they lie in a table with indexes.
    indexed: bool,
}

impl Lists {
    fn mixed(window: u64, indexed: bool) -> Self {
        let scheme = Scheme {
            shape: Shape::Mixed,
            window,
            appends: APPENDS,
        };
        Self { scheme, indexed }
    }

    fn four(shape: Shape, appends: u64) -> Self {
        let scheme = Scheme {
            shape,
            window: 4,
            appends,
        };
        Self {
            scheme,
            indexed: false,
        }
    }

    /// Three lists at a time.
    pub fn few() -> Self {
        Self::mixed(3, false)
    }

    /// Sixty lists at a time.
    pub fn many() -> Self {
        Self::mixed(60, false)
    }

    /// Twelve lists at a time, which are found by indexes.
    pub fn indexed() -> Self {
        Self::mixed(12, true)
    }

    /// Four lists at a time, each appended to by transactions that do nothing else.
    pub fn forks() -> Self {
        Self::four(Shape::Forks, 10)
    }

    /// Groups of four lists; a list gets a value if the group has none.
    pub fn skews() -> Self {
        Self::four(Shape::Skews, 2)
    }

    fn run(&self, client: &mut Client<'_>, how: How, intent: &Intent) -> Ended {
        let (indexed, life) = (self.indexed, client.life);
        let done = client.transact(how, intent.announced(), |transaction, random, done| {
            intent.run(
                &mut Open::new(transaction, indexed, how, life)?,
                random,
                done,
            )
        });
        done.map(drop)
    }
}

type Ended = std::result::Result<(), Gone>;

/// The lists in a transaction that is open.
#[derive(Debug)]
pub struct Open<'t> {
    transaction: &'t Transaction,
    store: Store,
    /// Its snapshot may be older than the list.
    blind: bool,
    life: &'t Life,
}

impl<'t> Open<'t> {
    /// Finds the tables.
    ///
    /// # Errors
    /// What the database says.
    pub fn new(
        transaction: &'t Transaction,
        indexed: bool,
        how: How,
        life: &'t Life,
    ) -> Result<Self> {
        Ok(Self {
            transaction,
            store: Store::open(transaction, indexed)?,
            blind: how.level == Level::ReadCommitted,
            life,
        })
    }
}

impl Appends for Open<'_> {
    type Error = Error;

    fn append(&mut self, random: &mut Random, key: u64, value: u64) -> Result<bool> {
        let transaction = self.transaction;
        self.store
            .append(transaction, random, key, value, self.blind)
    }

    fn append_and_revert(&mut self, random: &mut Random, key: u64, value: u64) -> Result<()> {
        let savepoint = self.transaction.savepoint()?;
        self.append(random, key, value)?;
        self.transaction.rollback_to(&savepoint)
    }

    fn read(&mut self, random: &mut Random, key: u64) -> Result<Vec<u64>> {
        self.store.read(self.transaction, random, key, self.blind)
    }

    fn read_range(&mut self, random: &mut Random, first: u64, count: u64) -> Result<Vec<Vec<u64>>> {
        let keys = first..first + count;
        self.store
            .read_range(self.transaction, random, keys, self.blind)
    }

    fn wait(&mut self, random: &mut Random) {
        self.life.wait_for_commits(random.between(10, 200));
    }
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

    fn step(&self, client: &mut Client<'_>) -> Ended {
        let base = self.scheme.base(client.life.values_drawn() % (1 << 24));
        if client.holds() && client.random.chance(2, 3) {
            let how = How::looking(&mut client.random);
            let looks = client.random.between(2, 6);
            return self.run(client, how, &self.scheme.hold(base, 12, looks));
        }
        let blind = self.scheme.shape == Shape::Mixed && client.number == client.holders;
        let may = |key| !blind || self.indexed || Style::of(key) == Style::Packed;
        let (life, session) = (client.life, client.number as u64);
        let value = || life.value();
        let intent = self
            .scheme
            .draw(&mut client.random, session, base, value, may);
        let how = match (blind, intent.only_reads()) {
            (true, _) => How::READ_COMMITTED,
            (false, true) => How::READ_ONLY,
            (false, false) => How::SNAPSHOT,
        };
        self.run(client, how, &intent)
    }

    fn read_all(&self, client: &mut Client<'_>, events: &[Event]) -> Ended {
        let (how, life) = (How::READ_ONLY, client.life);
        let read = client.transact(how, Vec::new(), |transaction, random, done| {
            let mut lists = Open::new(transaction, self.indexed, how, life)?;
            read_all(&mut lists, random, events, done)?;
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
        if report.edges < report.committed / 4 {
            return Err(format!(
                "{} dependencies between {} transactions: they did not meet",
                report.edges, report.committed
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
