//! A client: transactions of some reads and some writes.

use super::{ROWS, account};
use crate::engine::{EngineError, Isolation, Result, Session, TxOptions};
use crate::field::{exact, exact_mut};
use crate::kv::key;
use crate::zipf::Keys;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use vellum_base::random::Random;

/// Writes of a transaction, at most.
pub const WRITES_MAX: usize = 256;

/// What the transactions do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Rows that a transaction reads.
    pub reads: usize,
    /// Rows that one which writes changes besides, at most [`WRITES_MAX`].
    pub writes: usize,
    /// Share of the transactions, from 0 to 1, that only read.
    pub read_only_share: f64,
    /// What they see.
    pub isolation: Isolation,
}

/// What a drawn transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It writes.
    Update,
    /// It only reads.
    Read,
}

/// Mutexes over stripes of the keys, for transactions that take theirs in ascending order before they begin: none of
/// them meets another's write, and so none conflicts.
#[derive(Debug)]
pub struct Stripes {
    locks: Vec<Mutex<()>>,
    rows: u64,
}

impl Stripes {
    /// As many as the leaves of a tree would be, a hundred rows each.
    pub fn new(rows: u64) -> Self {
        let count = rows.div_ceil(100).clamp(1, 1 << 16);
        Self {
            locks: (0..count).map(|_| Mutex::new(())).collect(),
            rows,
        }
    }

    fn of(&self, id: u64) -> usize {
        (id as u128 * self.locks.len() as u128 / u128::from(self.rows)) as usize
    }

    fn lock(&self, stripe: usize) -> MutexGuard<'_, ()> {
        // It protects nothing that a panic could leave half done.
        self.locks[stripe]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client.
#[derive(Debug)]
pub struct Client<'s> {
    keys: Keys,
    rows: u64,
    random: Random,
    mix: Mix,
    /// Of 2^32 transactions so many only read.
    read_only: u64,
    kind: Kind,
    read: Vec<[u8; 8]>,
    /// Rows and what is added to each; the sum is zero.
    written: Vec<(u64, i64)>,
    stripes: Option<&'s Stripes>,
    /// Stripes of the drawn transaction, ascending.
    taken: Vec<usize>,
}

/// All of a row changes.
const RANGES: [Range<usize>; 1] = [0..account::LENGTH];

impl<'s> Client<'s> {
    /// A client of a table of `rows` rows whose transactions follow from `seed` and `number`.
    ///
    /// # Panics
    /// If a transaction could not draw its rows without repetition.
    pub fn new(rows: u64, zipf: f64, mix: Mix, seed: u64, number: u64) -> Self {
        assert!(
            mix.writes <= WRITES_MAX && mix.writes as u64 <= rows,
            "a transaction writes each of its rows once"
        );
        Self {
            keys: Keys::new(rows, zipf),
            rows,
            random: Random::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            mix,
            read_only: (mix.read_only_share.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64,
            kind: Kind::Read,
            read: Vec::with_capacity(mix.reads),
            written: Vec::with_capacity(mix.writes),
            stripes: None,
            taken: Vec::new(),
        }
    }

    /// Makes those that write take their stripes first, in ascending order.
    #[must_use]
    pub fn with_stripes(mut self, stripes: Option<&'s Stripes>) -> Self {
        self.stripes = stripes;
        self
    }

    /// Draws the next transaction and its rows.
    #[inline]
    pub fn draw(&mut self) -> Kind {
        let reads = self.mix.writes == 0
            || self.read_only > 0 && self.random.below(1 << 32) < self.read_only;
        self.kind = if reads { Kind::Read } else { Kind::Update };
        self.read.clear();
        for _ in 0..self.mix.reads {
            self.read.push(key(self.keys.next(&mut self.random)));
        }
        self.written.clear();
        if self.kind == Kind::Update {
            self.draw_writes();
        }
        self.kind
    }

    fn draw_writes(&mut self) {
        let mut sum = 0;
        for left in (0..self.mix.writes).rev() {
            let mut id = self.keys.next(&mut self.random);
            // The next one that is free: a few hot rows do not keep it drawing.
            while self.written.iter().any(|(other, _)| *other == id) {
                id = (id + 1) % self.rows;
            }
            let amount = match left {
                0 => -sum,
                _ => self.random.below(201) as i64 - 100,
            };
            sum += amount;
            self.written.push((id, amount));
        }
        if let Some(stripes) = self.stripes {
            self.taken.clear();
            self.taken
                .extend(self.written.iter().map(|(id, _)| stripes.of(*id)));
            self.taken.sort_unstable();
            self.taken.dedup();
        }
    }

    /// Runs the transaction that was drawn. After an error it is rolled back.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::WrongData`] if a row is missing.
    #[inline]
    pub fn attempt<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let attempted = match (self.kind, self.stripes) {
            (Kind::Update, Some(stripes)) => {
                let locks = self.taken.iter().map(|stripe| stripes.lock(*stripe));
                let _locks: Vec<_> = locks.collect();
                self.transact(session)
            }
            _ => self.transact(session),
        };
        if attempted.is_err() {
            session.rollback()?;
        }
        attempted
    }

    fn transact<S: Session>(&self, session: &mut S) -> Result<()> {
        let options = match self.kind {
            Kind::Read => TxOptions::READ_ONLY,
            Kind::Update => TxOptions::READ_WRITE,
        };
        session.begin(options.with_isolation(self.mix.isolation))?;
        session.prefetch(self.read.iter().map(|key| (ROWS, &key[..])))?;
        let mut seen = 0_i64;
        for key in &self.read {
            let balance = session.get_with(ROWS, key, |row| {
                account::BALANCE.get(exact::<{ account::LENGTH }>(row))
            })?;
            // What is read is looked at, so that an engine cannot leave it out.
            seen ^= balance.ok_or_else(|| EngineError::missing(ROWS))?;
        }
        std::hint::black_box(seen);
        for (id, amount) in &self.written {
            let found = session.update(ROWS, &key(*id), &RANGES, |row| {
                let row = exact_mut::<{ account::LENGTH }>(row);
                account::BALANCE.change(row, |balance| balance.wrapping_add(*amount));
                account::WRITES.change(row, |writes| writes.wrapping_add(1));
            })?;
            if !found {
                return Err(EngineError::missing(ROWS));
            }
        }
        session.commit()
    }
}
