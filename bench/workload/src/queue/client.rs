//! A client of the queue.

use super::QUEUE;
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::kv::{key, write_value};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the queue ends, and what its clients did to it.
#[derive(Debug)]
pub struct Tail {
    next: AtomicU64,
    added: AtomicU64,
    deleted: AtomicU64,
}

impl Tail {
    /// A queue whose next row has the number `next`.
    pub const fn new(next: u64) -> Self {
        Self {
            next: AtomicU64::new(next),
            added: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
        }
    }

    /// By how much the sum of the rows' numbers has grown, modulo 2^64, by the commits of all clients that are gone.
    pub fn sum_growth(&self) -> u64 {
        let (added, deleted) = (&self.added, &self.deleted);
        added
            .load(Ordering::Relaxed)
            .wrapping_sub(deleted.load(Ordering::Relaxed))
    }
}

/// A client that adds a row and deletes the smallest in each transaction.
#[derive(Debug)]
pub struct Client<'q> {
    tail: &'q Tail,
    number: u64,
    value: Vec<u8>,
    smallest: [u8; 8],
    /// Sums of the numbers that it added and deleted, committed.
    added: u64,
    deleted: u64,
}

impl<'q> Client<'q> {
    /// A client of the queue that ends at `tail`, with values of `size` bytes.
    pub fn new(tail: &'q Tail, size: usize) -> Self {
        Self {
            tail,
            number: 0,
            value: vec![0; size],
            smallest: [0; 8],
            added: 0,
            deleted: 0,
        }
    }

    /// Draws the number of the next row.
    #[inline]
    pub fn draw(&mut self) {
        // Only for a number that nobody else has.
        self.number = self.tail.next.fetch_add(1, Ordering::Relaxed);
        write_value(&mut self.value, self.number, 0);
    }

    /// Runs one transaction. After an error it is rolled back.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::WrongData`] if the smallest row is not there to be deleted.
    #[inline]
    pub fn attempt<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let attempted = self.advance(session);
        if attempted.is_err() {
            session.rollback()?;
        }
        attempted
    }

    fn advance<S: Session>(&mut self, session: &mut S) -> Result<()> {
        session.begin(TxOptions::READ_WRITE)?;
        session.insert(QUEUE, &key(self.number), &self.value)?;
        let mut found = false;
        let smallest = &mut self.smallest;
        session.scan(QUEUE, &[], Direction::Forward, |found_key, _| {
            found = found_key.len() == smallest.len();
            if found {
                smallest.copy_from_slice(found_key);
            }
            false
        })?;
        if !found || !session.delete(QUEUE, &self.smallest)? {
            return Err(EngineError::missing(QUEUE));
        }
        session.commit()?;
        self.added = self.added.wrapping_add(self.number);
        let deleted = u64::from_be_bytes(self.smallest);
        self.deleted = self.deleted.wrapping_add(deleted);
        Ok(())
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let tail = self.tail;
        // Both wrap around. Read after the clients' threads were joined.
        tail.added.fetch_add(self.added, Ordering::Relaxed);
        tail.deleted.fetch_add(self.deleted, Ordering::Relaxed);
    }
}
