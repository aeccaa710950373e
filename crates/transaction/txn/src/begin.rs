//! Begin: leasing a slot and publishing the first snapshot.
//!
//! Invariants:
//! - I1 Begin and end of a read-only transaction write no memory that other slots write: the count of owners
//!   that a transaction needs (so that it can be owned, sent and outlive a borrow) is the slot's own,
//!   in its token, not the domain's.
//! - I2 A follower's snapshot is older than R2 allows. It is its leader's, which is published before the follower begins and
//!   until it has ended, so whatever a pass concludes that misses the follower's is right for the leader's, and so for it.
//!   It is analytical, whatever the leader is: a leader that is promoted meanwhile has what it sees moved to
//!   graveyards, where the follower looks, too.
//! - I3 Who begins at another transaction's snapshot ([`Manager::begin_at`]) may outlive that one. A pass that has looked at its slot before it began, and at the
//!   other's after that ended, has missed a snapshot that was open all the time: such passes count for nothing (`slots` I3). It is analytical for the reason of I2.
//!   Its slot may have run a writer that committed behind that snapshot, the other transaction itself before all: of what stands there under its own slot's number it asks the commit log, as of any other's (`visibility`).
//!
//! Concurrency: see `slot` (R2) and `waiters`.

use crate::clock::Clock;
use crate::domain::Domain;
use crate::error::TransactionError;
use crate::handles::SnapshotHandle;
use crate::last_slot;
use crate::lease::{Lease, ParkedWriter};
use crate::protocol::{Policy, Protocol};
use crate::slot::Class;
use crate::transaction::Transaction;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_base::{SlotId, Timestamp};
use vellum_sync::{CachePadded, thread};
use vellum_wal::Log;

/// What a transaction reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed when it started.
    ReadCommitted,
    /// Every statement sees what was committed when the transaction began.
    #[default]
    Snapshot,
    /// A statement sees what was committed when its user said that it starts
    /// ([`Transaction::refresh`](crate::Transaction::refresh)), in all its steps; a row that has changed since is a conflict.
    Statement,
}

/// Whether `commit` waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Commit returns when what was committed, and all that it may have read, survives a crash.
    #[default]
    Sync,
    /// Commit returns at once. A crash may lose it, with everything that committed after it.
    Async,
}

/// What a transaction is begun with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What it reads.
    pub isolation: Isolation,
    /// Whether commit waits.
    pub durability: Durability,
    /// It will not write; a write is an error.
    pub read_only: bool,
    /// Whether it is analytical.
    pub class: Class,
}

/// Settings of a [`Manager`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Transactions that can be open at a time; at most what the log was opened with.
    pub slots_max: u16,
    /// Stamps below it are from before the restart and visible to everyone. At most the clock's
    /// value now.
    pub restart_floor: Timestamp,
    /// Clock ticks after which an undeclared transaction counts as analytical; `u64::MAX` for never.
    pub promote_after: u64,
    /// Whether snapshots may be withdrawn ([`Domain::withdraw`]): then every operation is counted.
    pub may_withdraw: bool,
    /// How commits become visible.
    pub protocol: Protocol,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slots_max: 1024,
            restart_floor: Timestamp::ZERO,
            promote_after: 100_000,
            may_withdraw: false,
            protocol: Protocol::Osic,
        }
    }
}

/// A slot as an owned thing: who holds it keeps the domain alive. Its count of owners is on lines
/// that only the slot's transactions touch (I1).
#[derive(Debug)]
pub(crate) struct Token(CachePadded<TokenParts>);

#[derive(Debug)]
struct TokenParts {
    domain: Arc<Domain>,
    slot: SlotId,
}

impl Token {
    #[inline]
    pub(crate) fn domain(&self) -> &Domain {
        &self.0.domain
    }

    #[inline]
    pub(crate) fn slot(&self) -> SlotId {
        self.0.slot
    }
}

/// Begins transactions. Derefs to the [`Domain`], which answers questions about all of them.
#[derive(Debug)]
pub struct Manager {
    domain: Arc<Domain>,
    tokens: Box<[OnceLock<Arc<Token>>]>,
}

impl Deref for Manager {
    type Target = Domain;

    #[inline]
    fn deref(&self) -> &Domain {
        &self.domain
    }
}

impl Manager {
    /// A manager without transactions, on a log that is open for writing.
    ///
    /// # Panics
    /// If `slots_max` is zero, or the restart floor above the clock.
    pub fn new(log: Arc<Log>, clock: Arc<Clock>, config: Config) -> Self {
        assert!(config.slots_max > 0, "a database needs a slot");
        let slots_max = config.slots_max;
        let domain = Domain::new(log, clock, config);
        Self {
            domain: Arc::new(domain),
            tokens: (0..slots_max).map(|_| OnceLock::new()).collect(),
        }
    }

    /// What transactions share, as an owned thing.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Begins a transaction. Leases a slot, the thread's last one first; waits up to `timeout` if all are taken
    /// (forever for [`Duration::MAX`]).
    ///
    /// # Errors
    /// [`TransactionError::SlotsExhausted`].
    #[inline]
    pub fn begin(
        &self,
        options: Options,
        timeout: Duration,
    ) -> Result<Transaction, TransactionError> {
        let slot = match self.domain.slots.take(options.class, last_slot::get()) {
            Some(slot) => slot,
            None => self.wait_for_slot(options.class, timeout)?,
        };
        Ok(self.open(slot, options))
    }

    /// Begins a transaction that reads what another one sees: of this snapshot of it, and of what it wrote before `command`. For
    /// another thread, which then reads at the same time. None if no slot is free, or where commits become visible by another
    /// protocol than the product's.
    ///
    /// It has to end before the handle goes, and before the leader reverts anything (I2).
    ///
    /// # Errors
    /// [`TransactionError::SnapshotTooOld`] of the leader.
    pub fn follow(
        &self,
        leader: &SnapshotHandle<'_>,
        command: u32,
    ) -> Result<Option<Transaction>, TransactionError> {
        // Counted until the follower has published: the leader's snapshot is not withdrawn before that.
        let operation = leader.transaction().operation()?;
        let options = Options {
            isolation: Isolation::Snapshot,
            durability: Durability::Async,
            read_only: true,
            class: Class::Olap,
        };
        let Some(slot) = self.take_for_snapshot() else {
            return Ok(None);
        };
        let snapshot = leader.snapshot();
        let words = &self.domain.slot(slot).words;
        words.publish_first(options.class, snapshot);
        let follower = Transaction::new(self.token(slot), options, snapshot, None);
        Ok(Some(follower.following(operation.transaction(), command)))
    }

    /// Begins a transaction at the current snapshot of another one, by whichever thread. It sees what was committed before that, and nothing of what the other
    /// one writes; it may write itself, and end after the other one. It is analytical, whatever the options say. None if no slot is free, or where
    /// commits become visible by another protocol than the product's.
    ///
    /// # Errors
    /// [`TransactionError::SnapshotTooOld`] of the other one.
    pub fn begin_at(
        &self,
        other: &Transaction,
        options: Options,
    ) -> Result<Option<Transaction>, TransactionError> {
        let options = Options {
            class: Class::Olap,
            ..options
        };
        // Counted until the snapshot is published here, too: it is not withdrawn before that.
        let _operation = other.operation()?;
        let Some(slot) = self.take_for_snapshot() else {
            return Ok(None);
        };
        let snapshot = other.snapshot();
        let words = &self.domain.slot(slot).words;
        words.publish_first(options.class, snapshot);
        // I3: behind that, and before the other one can end.
        self.domain.slots.has_handed_on();
        let begun = Transaction::new(self.token(slot), options, snapshot, None);
        Ok(Some(begun.inheriting()))
    }

    /// Leases a slot for a snapshot that is open elsewhere.
    fn take_for_snapshot(&self) -> Option<SlotId> {
        if self.domain.protocol() != Protocol::Osic {
            return None;
        }
        self.domain.slots.take(Class::Olap, last_slot::get())
    }

    /// Begins a transaction when a slot is free: for callers that must not block.
    pub fn begin_pending(self: &Arc<Self>, options: Options) -> PendingBegin {
        PendingBegin {
            manager: self.clone(),
            options,
            id: None,
        }
    }

    #[inline]
    fn open(&self, slot: SlotId, options: Options) -> Transaction {
        last_slot::set(slot.get());
        // R2: the slot announces a snapshot by now; the clock is read, then the snapshot published.
        vellum_sync::test_point!("begin: announced");
        let policy = Policy::new(self.domain.protocol());
        let snapshot = self.domain.take_snapshot(policy.as_deref(), false);
        vellum_sync::test_point!("begin: clock read");
        self.domain
            .slot(slot)
            .words
            .publish_first(options.class, snapshot);
        Transaction::new(self.token(slot), options, snapshot, policy)
    }

    #[inline]
    fn token(&self, slot: SlotId) -> Arc<Token> {
        self.tokens[usize::from(slot.get())]
            .get_or_init(|| {
                Arc::new(Token(CachePadded::new(TokenParts {
                    domain: self.domain.clone(),
                    slot,
                })))
            })
            .clone()
    }

    fn exhausted(&self, waited: Duration) -> TransactionError {
        TransactionError::SlotsExhausted {
            taken: self.domain.slots_taken(),
            slots_max: self.tokens.len() as u16,
            waited,
        }
    }

    #[cold]
    fn wait_for_slot(&self, class: Class, timeout: Duration) -> Result<SlotId, TransactionError> {
        if timeout.is_zero() {
            return Err(self.exhausted(timeout));
        }
        let start = monotonic_nanos();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let waiters = self.domain.waiters();
        let id = waiters.register(waker.clone());
        loop {
            if let Some(slot) = self.domain.slots.take(class, last_slot::get()) {
                waiters.leave(id, true);
                return Ok(slot);
            }
            let waited = Duration::from_nanos(monotonic_nanos() - start);
            let Some(rest) = timeout.checked_sub(waited).filter(|rest| !rest.is_zero()) else {
                waiters.leave(id, false);
                return Err(self.exhausted(timeout));
            };
            thread::park_timeout(rest);
            waiters.rearm(id, &waker);
        }
    }

    /// Leases `slot` for maintenance, without a snapshot, if nobody has it. One that is out of use stays so.
    pub fn lease_idle(&self, slot: SlotId) -> Option<Lease> {
        let words = &self.domain.slots.get(slot)?.words;
        if words.try_keep() {
            Some(Lease::new(self.token(slot)))
        } else {
            (words.try_keep_closed()).then(|| Lease::of_closed(self.token(slot)))
        }
    }

    /// Takes over the unfinished writer of a parked slot, to roll it back.
    pub fn take_parked(&self, slot: SlotId) -> Option<ParkedWriter> {
        let parts = self.domain.slots.get(slot)?;
        if !parts.words.unpark() {
            return None;
        }
        let parked = parts
            .parts
            .lock()
            .parked
            .take()
            .expect("a parked slot holds its writer");
        Some(ParkedWriter::new(self.token(slot), parked))
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A begin that waits for a slot without blocking. Dropping it gives up.
#[derive(Debug)]
pub struct PendingBegin {
    manager: Arc<Manager>,
    options: Options,
    id: Option<u64>,
}

impl PendingBegin {
    /// The transaction, once a slot is free; until then `waker` is woken when it is worth asking again.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Transaction> {
        let waiters = self.manager.domain.waiters();
        match self.id {
            Some(id) => waiters.rearm(id, waker),
            None => self.id = Some(waiters.register(waker.clone())),
        }
        let Some(slot) = self
            .manager
            .domain
            .slots
            .take(self.options.class, last_slot::get())
        else {
            return Poll::Pending;
        };
        if let Some(id) = self.id.take() {
            waiters.leave(id, true);
        }
        Poll::Ready(self.manager.open(slot, self.options))
    }
}

impl Drop for PendingBegin {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.manager.domain.waiters().leave(id, false);
        }
    }
}
