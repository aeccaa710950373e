//! A client: point reads, updates, read-modify-writes.

use super::{ROWS, Sizes, counter, key, write_value};
use crate::engine::{EngineError, Result, Session, TxOptions};
use crate::zipf::Keys;
use std::ops::Range;
use vellum_base::random::Random;

/// What one transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Reads one key.
    Read,
    /// Updates one key: in place, or where its value gets another size by a new one.
    Update,
    /// Reads one key, then updates it.
    ReadModifyWrite,
}

impl Mix {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::ReadModifyWrite => "rmw",
        }
    }
}

/// A client that runs one operation a transaction.
#[derive(Debug)]
pub struct Client {
    keys: Keys,
    random: Random,
    mix: Mix,
    /// Of 2^32 transactions so many only read.
    reads: u64,
    /// What the drawn transaction does: `mix`, or a read.
    drawn: Mix,
    pub(super) id: u64,
    value: Vec<u8>,
    sizes: Sizes,
    /// The whole value changes.
    range: [Range<usize>; 1],
}

impl Client {
    /// A client whose operations follow from `seed` and `number`.
    pub fn new(keys: Keys, sizes: impl Into<Sizes>, mix: Mix, seed: u64, number: u64) -> Self {
        let sizes = sizes.into();
        let random = Random::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            keys,
            random,
            mix,
            reads: 0,
            drawn: mix,
            id: 0,
            value: vec![0; sizes.most],
            sizes,
            range: std::array::from_fn(|_| 0..sizes.most),
        }
    }

    /// Makes a share of the transactions, from 0 to 1, reads, whatever the mix.
    #[must_use]
    pub fn with_read_share(mut self, share: f64) -> Self {
        self.reads = (share.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64;
        self
    }

    /// Draws the next transaction and its key. True if it is one of the share of reads.
    #[inline]
    pub fn draw(&mut self) -> bool {
        let read = self.reads > 0 && self.random.below(1 << 32) < self.reads;
        self.drawn = if read { Mix::Read } else { self.mix };
        self.id = self.keys.next(&mut self.random);
        read
    }

    /// Runs one transaction on the key that was drawn. After an error it is rolled back.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::WrongData`] if the row is missing or another's.
    #[inline]
    pub fn attempt<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let attempted = match self.drawn {
            Mix::Read => self.read(session),
            Mix::Update | Mix::ReadModifyWrite if self.sizes.vary() => self.replace(session),
            Mix::Update => self.update(session),
            Mix::ReadModifyWrite => self.read_modify_write(session),
        };
        if attempted.is_err() {
            session.rollback()?;
        }
        attempted
    }

    fn read<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_ONLY)?;
        self.read_row(session)?;
        session.commit()
    }

    fn read_row<S: Session>(&mut self, session: &mut S) -> Result<()> {
        if !session.get(ROWS, &key(self.id), &mut self.value)? {
            return Err(EngineError::missing(ROWS));
        }
        let size = self.sizes.of(self.id, counter(&self.value));
        let compared = size.min(8);
        if self.value.len() != size || self.value[..compared] != self.id.to_le_bytes()[..compared] {
            return Err(self.wrong());
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self) -> EngineError {
        let what = format!(
            "row {} holds {} bytes of another row",
            self.id,
            self.value.len()
        );
        EngineError::WrongData { table: ROWS, what }
    }

    fn update<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_WRITE)?;
        let id = self.id;
        let found = session.update(ROWS, &key(id), &self.range, |value| {
            let next = counter(value) + 1;
            write_value(value, id, next);
        })?;
        if !found {
            return Err(EngineError::missing(ROWS));
        }
        session.commit()
    }

    fn replace<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_WRITE)?;
        self.read_row(session)?;
        let (id, next) = (self.id, counter(&self.value) + 1);
        self.value.resize(self.sizes.of(id, next), 0);
        write_value(&mut self.value, id, next);
        session.upsert(ROWS, &key(id), &self.value)?;
        session.commit()
    }

    fn read_modify_write<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_WRITE)?;
        self.read_row(session)?;
        let (id, next) = (self.id, counter(&self.value) + 1);
        write_value(&mut self.value, id, next);
        let new = &self.value;
        // What was read is written back: an engine that lets two of these pass loses one.
        let found = session.update(ROWS, &key(id), &self.range, |value| {
            value.copy_from_slice(new);
        })?;
        if !found {
            return Err(EngineError::missing(ROWS));
        }
        session.commit()
    }
}
