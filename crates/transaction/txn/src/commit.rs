//! Commit: the one place where a transaction becomes visible.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1 (synchronization), §3.4 (early lock release),
//! §3.5 (transaction commit).
//! Differences: hardening follows one horizon for all slots, taken from consistent cuts of the log (R7),
//! instead of a minimum over per-worker counters: an idle slot holds nobody up.
//!
//! Invariants:
//! - I1 (R6) Under one hold of the slot's latch: draw the commit timestamp, write the commit record that
//!   carries it, append it to the commit log. Everything that may wait (log space, cleaning the commit log)
//!   comes before; nothing after the draw can fail.
//! - I2 (R5) The entry in the commit log is the commit. Snapshots are taken back after it.
//! - I3 A transaction is acknowledged when the horizon is above its commit timestamp; one that did not write, when the
//!   horizon is at or above its newest snapshot: then all that it read is durable.
//!
//! Crash: before the round that covers the commit record is durable, the commit is lost together with
//! everything that committed after it and with everything that has seen it; after that, it is never lost.

use crate::begin::Token;
use crate::error::{CommitError, TransactionError};
use crate::lease::Lease;
use crate::protocol::Policy;
use crate::record::{RedoBytes, TransactionRecord};
use crate::transaction::Transaction;
use std::sync::Arc;
use std::task::{Poll, Waker};
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, StorageError, Timestamp};
use vellum_sync::atomic::Ordering;
use vellum_wal::Purpose;

/// Writers of one slot between two of its passes, at least, where the second is made for a collection.
const WRITERS_PER_PASS: u32 = 4;
/// The same where nobody collects.
const WRITERS_PER_PASS_ALONE: u32 = 16;

/// Slots that passes look at for each writer, about.
const SLOTS_PER_WRITER: u64 = 4;

/// A transaction that committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its commit timestamp; for one that wrote nothing, its newest snapshot.
    pub commit_ts: Timestamp,
}

/// A commit that happened and is waiting to be hardened. Dropping it waits for nothing.
#[derive(Clone, Debug)]
pub struct Ticket {
    token: Arc<Token>,
    commit_ts: Timestamp,
    /// The horizon must be above it; `None` if nothing is to be waited for.
    harden: Option<Timestamp>,
}

impl Ticket {
    /// The commit timestamp; for a transaction that wrote nothing, its newest snapshot.
    pub fn commit_ts(&self) -> Timestamp {
        self.commit_ts
    }

    /// True if the commit is durable, with all that it read.
    pub fn is_hardened(&self) -> bool {
        self.harden
            .is_none_or(|ts| self.token.domain().log().horizon() > ts)
    }

    /// Blocks until the commit is durable. Starts a flush round if nobody does.
    ///
    /// # Errors
    /// `NotHardened`: the flush failed.
    pub fn wait(&self) -> Result<Committed, CommitError> {
        match self.harden {
            Some(ts) if !planted::has(Bug::AcknowledgedEarly) => {
                self.report(self.token.domain().log().harden(ts))
            }
            _ => self.report(Ok(())),
        }
    }

    /// As [`Ticket::wait`], for who must not block: `waker` is woken when it is worth asking again.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<Committed, CommitError>> {
        match self.harden {
            Some(ts) if !planted::has(Bug::PolledEarly) => self
                .token
                .domain()
                .log()
                .poll_harden(ts, waker)
                .map(|result| self.report(result)),
            _ => Poll::Ready(self.report(Ok(()))),
        }
    }

    fn report(&self, result: Result<(), StorageError>) -> Result<Committed, CommitError> {
        let commit_ts = self.commit_ts;
        match result {
            Ok(()) => Ok(Committed { commit_ts }),
            Err(error) => Err(CommitError::NotHardened { commit_ts, error }),
        }
    }
}

impl Transaction {
    /// Commits, gives the slot back, and (under `Durability::Sync`) waits until a crash cannot undo it.
    ///
    /// # Errors
    /// `NotCommitted` gives the transaction back, to be rolled back. After `NotHardened` it is committed, and
    /// a crash may undo that.
    #[inline]
    pub fn commit(mut self) -> Result<Committed, CommitError> {
        let (commit_ts, harden) = match self.commit_in_place() {
            Ok(done) => done,
            Err(error) => return Err(self.not_committed(error)),
        };
        let pass = self.is_pass_due(WRITERS_PER_PASS_ALONE);
        self.end();
        self.pass_if(pass);
        if self.is_sync()
            && !planted::has(Bug::AcknowledgedEarly)
            && let Some(ts) = harden
            && let Err(error) = self.domain().log().harden(ts)
        {
            return Err(CommitError::NotHardened { commit_ts, error });
        }
        Ok(Committed { commit_ts })
    }

    /// Commits and gives the slot back; the ticket is for waiting, whatever the transaction's durability.
    ///
    /// # Errors
    /// `NotCommitted`, as for [`Transaction::commit`].
    pub fn commit_deferred(mut self) -> Result<Ticket, CommitError> {
        let (commit_ts, harden) = match self.commit_in_place() {
            Ok(done) => done,
            Err(error) => return Err(self.not_committed(error)),
        };
        let token = self.token.clone();
        let pass = self.is_pass_due(WRITERS_PER_PASS_ALONE);
        self.end();
        self.pass_if(pass);
        Ok(Ticket {
            token,
            commit_ts,
            harden,
        })
    }

    /// Commits and keeps the slot, which pins nothing from now on: for cleaning between transactions, before
    /// anybody else gets the slot.
    ///
    /// # Errors
    /// `NotCommitted`, as for [`Transaction::commit`].
    pub fn commit_leased(mut self) -> Result<(Ticket, Lease), CommitError> {
        let (commit_ts, harden) = match self.commit_in_place() {
            Ok(done) => done,
            Err(error) => return Err(self.not_committed(error)),
        };
        let token = self.token.clone();
        // With the collection, not beside it: it would go by watermarks of some commits ago, for as long as nothing puts
        // the two in step again.
        let pass = self.is_pass_due(WRITERS_PER_PASS);
        self.end_keeping_slot();
        self.pass_if(pass);
        Ok((
            Ticket {
                token: token.clone(),
                commit_ts,
                harden,
            },
            Lease::new(token),
        ))
    }

    #[cold]
    fn not_committed(self, error: TransactionError) -> CommitError {
        CommitError::NotCommitted {
            transaction: Box::new(self),
            error,
        }
    }

    /// Makes the commit happen. Returns its timestamp and what the horizon has to pass.
    #[inline]
    fn commit_in_place(&self) -> Result<(Timestamp, Option<Timestamp>), TransactionError> {
        if self.has_written() {
            let commit_ts = self.commit_writer()?;
            if let Some(policy) = &self.policy {
                self.visit_rows(policy, commit_ts);
            }
            return Ok((commit_ts, Some(commit_ts)));
        }
        // What it may have read was committed strictly below its newest snapshot.
        let newest = self.snapshot();
        Ok((newest, newest.get().checked_sub(1).map(Timestamp)))
    }

    fn commit_writer(&self) -> Result<Timestamp, TransactionError> {
        let (domain, slot) = (self.domain(), self.slot());
        domain.make_room(slot);
        let log = domain.log().slot(slot);
        // From what was set aside for the undo, if need be: it is not needed after this.
        log.reserve_for(TransactionRecord::BYTES_MAX, Purpose::Undo)?;
        let commit_log = &domain.slot(slot).commit_log;
        let mut latch = log.lock();
        let commit_ts = domain.draw_commit(self.stamp.get());
        vellum_sync::test_point!("commit: timestamp drawn");
        debug_assert!(commit_ts > self.stamp.get());
        let record = TransactionRecord::Commit {
            stamp: self.stamp.get(),
            commit_ts,
        };
        let gsn = latch.draw(Gsn::ZERO);
        latch.append(
            &record.header(gsn),
            &[RedoBytes::of(&record).as_slice()],
            &[],
        );
        if planted::has(Bug::CommitLogTooLate) {
            drop(latch);
            (0..20).for_each(|_| vellum_sync::thread::yield_now());
            latch = log.lock();
        }
        commit_log.append(&latch, commit_ts);
        latch.end_transaction();
        Ok(commit_ts)
    }

    /// Under `Protocol::Stamping`: tells every row that it is committed. Its snapshots are still published, so that the trees
    /// that it wrote to are there.
    #[cold]
    fn visit_rows(&self, policy: &Policy, commit_ts: Timestamp) {
        if let Policy::Stamping(writes) = policy
            && let Some(stamper) = self.domain().stamper()
        {
            stamper.stamp(self.slot(), self.stamp.get(), commit_ts, &writes.borrow());
        }
    }

    /// True once a quarter as many writers of the slot have ended as a pass looks at slots: then all slots together look at about four slots a transaction,
    /// whatever their number (§3.1, interleaved refresh; slots whose sessions idle make no passes, and with as many writers as slots ten idle
    /// snapshots would make passes half as frequent as collections, which then go by old ones). And as many as `writers`.
    #[inline]
    fn is_pass_due(&self, writers: u32) -> bool {
        if !self.has_written() {
            return false;
        }
        let ended = &self.domain().slot(self.slot()).ended;
        let count = ended.load(Ordering::Relaxed) + 1;
        // Where many slots were closed since the last pass, the next one looks at few.
        let domain = self.domain();
        let looks = domain.looks_a_pass().min(domain.slots_in_use() as u64);
        let due = SLOTS_PER_WRITER * u64::from(count) >= looks && count >= writers;
        ended.store(if due { 0 } else { count }, Ordering::Relaxed);
        due
    }

    fn pass_if(&self, due: bool) {
        if due {
            self.domain().pass();
        }
    }
}
