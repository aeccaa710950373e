//! One transaction: its snapshots, its names, what it sees.
//!
//! States: running → `commit…` → ended; running → `rollback` → ended; running, never wrote → drop → ended;
//! running, wrote → drop → parked (`lease`).
//!
//! Invariants:
//! - I1 (R1) The stamp is drawn once, at the first write; a command id is given out once, also after a
//!   rollback to a savepoint.
//! - I2 (R3) Every snapshot that a statement or a [`SnapshotHandle`] holds is published, each in a word
//!   of the slot that does not change while it is held.
//! - I3 A snapshot never goes back: a later statement's is at or above an earlier one's.
//!
//! Concurrency: one thread at a time (`Send`, not `Sync`).

use crate::begin::{Durability, Isolation, Options, Token};
use crate::domain::Domain;
use crate::error::TransactionError;
use crate::handles::{Operation, SnapshotHandle};
use crate::holders::TransactionId;
use crate::protocol::Policy;
use crate::record::{RedoBytes, TransactionRecord};
use crate::rollback::Savepoint;
use crate::slot::Class;
use crate::slots::Parked;
use crate::stamp::VersionStamp;
use crate::visibility::{Reader, SnapshotCache, decide_alone, decide_by_writer};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use vellum_base::{Gsn, PageId, SlotId, Timestamp};

/// A published snapshot: its word in the slot and how many hold it.
#[derive(Clone, Copy, Debug)]
struct Open {
    snapshot: Timestamp,
    index: usize,
    holders: u32,
}

/// What reading has touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Touched {
    /// Leaves that were looked into or copied.
    pub pages: u64,
    /// Versions behind the newest of their rows.
    pub versions: u64,
}

/// A transaction. Owns its slot from begin to end.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) token: Arc<Token>,
    options: Options,
    /// Zero until the first write.
    pub(crate) stamp: Cell<Timestamp>,
    /// Wider than a command id, so that "none left" can be said.
    next_command: Cell<u64>,
    /// Own versions of commands from this one on are not seen by what reads from now on; its largest value: all are.
    reads_below: Cell<u64>,
    /// The current statement's snapshot.
    current: Cell<Open>,
    /// Earlier snapshots that cursors still hold, and that of a read-committed writer's first write.
    earlier: RefCell<Vec<Open>>,
    cache: RefCell<Option<Box<SnapshotCache>>>,
    /// The version that its last conflict was about.
    met: Cell<Option<VersionStamp>>,
    /// None under the product's protocol.
    pub(crate) policy: Option<Box<Policy>>,
    /// What it has touched so far.
    touched: Cell<Touched>,
    /// Slot and stamp of the transaction whose snapshot and writes this one reads ([`Manager::follow`](crate::Manager::follow)).
    leader: Option<(SlotId, Timestamp)>,
    /// Its snapshot was drawn before it had its slot, or its leader's was ([`Manager::begin_at`](crate::Manager::begin_at)).
    inherits: bool,
    pub(crate) ended: bool,
}

impl Transaction {
    #[inline]
    pub(crate) fn new(
        token: Arc<Token>,
        options: Options,
        snapshot: Timestamp,
        policy: Option<Box<Policy>>,
    ) -> Self {
        Self {
            token,
            options,
            stamp: Cell::new(Timestamp::ZERO),
            next_command: Cell::new(0),
            reads_below: Cell::new(u64::MAX),
            current: Cell::new(Open {
                snapshot,
                index: 0,
                holders: 1,
            }),
            earlier: RefCell::new(Vec::new()),
            cache: RefCell::new(None),
            met: Cell::new(None),
            policy,
            touched: Cell::default(),
            leader: None,
            inherits: false,
            ended: false,
        }
    }

    /// One that sees what `leader` sees of a snapshot of its, with what that wrote before `command`.
    pub(crate) fn following(mut self, leader: &Self, command: u32) -> Self {
        debug_assert!(self.options.read_only && leader.is_open(self.snapshot()));
        self.leader = Some(leader.seen_as());
        self.inherits = leader.inherits;
        self.next_command = Cell::new(command.into());
        self
    }

    /// One whose snapshot was drawn before it had its slot.
    pub(crate) fn inheriting(mut self) -> Self {
        self.inherits = true;
        self
    }

    /// Slot and stamp by which its own versions are known.
    #[inline]
    fn seen_as(&self) -> (SlotId, Timestamp) {
        self.leader.unwrap_or((self.slot(), self.stamp.get()))
    }

    /// The slot that it leases.
    #[inline]
    pub fn slot(&self) -> SlotId {
        self.token.slot()
    }

    /// What all transactions share.
    #[inline]
    pub fn domain(&self) -> &Domain {
        self.token.domain()
    }

    /// What it was begun with.
    #[inline]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// True if commit waits until what it did or read is hardened.
    pub(crate) fn is_sync(&self) -> bool {
        self.options.durability == Durability::Sync
    }

    /// The snapshot of the current statement.
    #[inline]
    pub fn snapshot(&self) -> Timestamp {
        self.current.get().snapshot
    }

    /// Starts a statement and returns the snapshot that it reads in: under read committed a fresh one, else
    /// that of the transaction. Snapshots that a [`SnapshotHandle`] holds stay open.
    pub fn statement(&self) -> Timestamp {
        // Not even a look at the clock for the others: its line is written by every commit.
        if self.options.isolation != Isolation::ReadCommitted {
            return self.snapshot();
        }
        self.draw_snapshot()
    }

    /// Starts a statement of a transaction under [`Isolation::Statement`]: draws the snapshot of all its steps. Under the
    /// other levels as [`Transaction::statement`].
    pub fn refresh(&self) -> Timestamp {
        if self.options.isolation == Isolation::Snapshot {
            return self.snapshot();
        }
        self.draw_snapshot()
    }

    fn draw_snapshot(&self) -> Timestamp {
        let current = self.current.get();
        if self.domain().clock().now() == current.snapshot {
            return current.snapshot;
        }
        let index = if current.holders == 1 {
            current.index
        } else {
            let mut earlier = self.earlier.borrow_mut();
            earlier.push(Open {
                holders: current.holders - 1,
                ..current
            });
            // The lowest word that holds none of them: passes look at as few as possible.
            (0..)
                .find(|index| earlier.iter().all(|open| open.index != *index))
                .expect("there are more words than open snapshots")
        };
        let slots = &self.domain().slots;
        let words = &self.domain().slot(self.slot()).words;
        if words.announce() {
            slots.stir(self.slot());
        }
        vellum_sync::test_point!("refresh: announced");
        // R2: read after the announcement; `now` from above may be too old by now.
        let snapshot = self
            .domain()
            .take_snapshot(self.policy.as_deref(), current.holders > 1);
        vellum_sync::test_point!("refresh: clock read");
        if words.publish(index, snapshot) && index == current.index {
            // The last statement's snapshot was in that word.
            slots.olap_has_ended();
        }
        debug_assert!(snapshot > current.snapshot, "I3");
        self.current.set(Open {
            snapshot,
            index,
            holders: 1,
        });
        snapshot
    }

    /// Keeps the current statement's snapshot open for as long as the handle lives: for a cursor that outlives
    /// its statement.
    pub fn open_snapshot(&self) -> SnapshotHandle<'_> {
        let mut current = self.current.get();
        current.holders += 1;
        self.current.set(current);
        SnapshotHandle::new(self, current.snapshot, current.index)
    }

    pub(crate) fn close_snapshot(&self, index: usize) {
        let mut current = self.current.get();
        if current.index == index {
            current.holders -= 1;
            debug_assert!(
                current.holders > 0,
                "the statement itself holds its snapshot"
            );
            self.current.set(current);
            return;
        }
        let mut earlier = self.earlier.borrow_mut();
        let position = earlier.iter().position(|open| open.index == index);
        let position = position.expect("a handle names an open snapshot");
        earlier[position].holders -= 1;
        if earlier[position].holders == 0 {
            let closed = earlier.swap_remove(position);
            if let Some(policy) = &self.policy {
                policy.closed(closed.snapshot);
            }
            let words = &self.domain().slot(self.slot()).words;
            words.unpublish(index);
            if words.is_olap() {
                let slots = &self.domain().slots;
                slots.stir(self.slot());
                slots.olap_has_ended();
            }
        }
    }

    /// True if `snapshot` is one of its open ones.
    fn is_open(&self, snapshot: Timestamp) -> bool {
        self.snapshot() == snapshot
            || self
                .earlier
                .borrow()
                .iter()
                .any(|open| open.snapshot == snapshot)
    }

    /// True once it has drawn its stamp.
    #[inline]
    pub fn has_written(&self) -> bool {
        !self.stamp.get().is_zero()
    }

    /// Its stamp. The first call draws it and logs that the transaction began; so call it before latching
    /// anything: it may wait for log space.
    ///
    /// # Errors
    /// `ReadOnly`, `SnapshotTooOld`; what the log reports (the transaction has not written then).
    #[inline]
    pub fn stamp(&self) -> Result<Timestamp, TransactionError> {
        match self.stamp.get() {
            Timestamp::ZERO => self.draw_stamp(),
            stamp => Ok(stamp),
        }
    }

    fn draw_stamp(&self) -> Result<Timestamp, TransactionError> {
        if self.options.read_only {
            return Err(TransactionError::ReadOnly);
        }
        let log = self.domain().log().slot(self.slot());
        log.reserve(TransactionRecord::BYTES_MAX)?;
        if !self.domain().slot(self.slot()).words.begin_writing() {
            return Err(TransactionError::SnapshotTooOld);
        }
        let mut latch = log.lock();
        let stamp = self.domain().draw_stamp();
        debug_assert!(
            stamp >= self.snapshot(),
            "a stamp is drawn after the snapshot was read"
        );
        let gsn = latch.draw(Gsn::ZERO);
        latch.begin_transaction(stamp);
        let record = TransactionRecord::Begin {
            stamp,
            slot: self.slot(),
        };
        latch.append(
            &record.header(gsn),
            &[RedoBytes::of(&record).as_slice()],
            &[],
        );
        drop(latch);
        self.stamp.set(stamp);
        if self.options.isolation != Isolation::Snapshot {
            // Held to the end: what a writer wrote into must not be given back while it may have to be
            // reverted there (a table that is dropped after it), and later statements' snapshots would
            // let that go.
            let mut current = self.current.get();
            current.holders += 1;
            self.current.set(current);
        }
        Ok(stamp)
    }

    /// Draws a command id, for a statement or a finer step of one: what the statement writes carries it, and it
    /// reads its own versions from earlier commands only.
    ///
    /// # Errors
    /// `TooManyCommands` after 2^32 - 1 of them: ids are never used again (R1).
    #[inline]
    pub fn next_command(&self) -> Result<u32, TransactionError> {
        let command = self.next_command.get();
        // The last number stays free: `commands_drawn` must be able to say "all of them".
        let id = u32::try_from(command).ok().filter(|id| *id < u32::MAX);
        let id = id.ok_or(TransactionError::TooManyCommands)?;
        self.next_command.set(command + 1);
        Ok(id)
    }

    /// Command ids that were drawn so far: a statement that reads as of now sees own versions of commands below
    /// it.
    #[inline]
    pub fn commands_drawn(&self) -> u32 {
        u32::try_from(self.next_command.get()).unwrap_or(u32::MAX)
    }

    /// The command below which what reads now sees own versions: all that were drawn, or fewer ([`Transaction::read_below`]).
    #[inline]
    pub fn commands_seen(&self) -> u32 {
        let seen = self.next_command.get().min(self.reads_below.get());
        u32::try_from(seen).unwrap_or(u32::MAX)
    }

    /// What reads from now on sees no own version of `command` and later ones; `None`: all. Returns what held before. What a write looks at to find out
    /// whether it may is a read, too.
    pub fn read_below(&self, command: Option<u32>) -> Option<u32> {
        let below = command.map_or(u64::MAX, u64::from);
        u32::try_from(self.reads_below.replace(below)).ok()
    }

    /// The name of a version written by `command`; draws the stamp at the first write (see
    /// [`Transaction::stamp`]).
    ///
    /// # Errors
    /// As [`Transaction::stamp`].
    #[inline]
    pub fn version(&self, command: u32) -> Result<VersionStamp, TransactionError> {
        debug_assert!(
            u64::from(command) < self.next_command.get(),
            "a command id was drawn"
        );
        Ok(VersionStamp {
            slot: self.slot(),
            stamp: self.stamp()?,
            command,
        })
    }

    /// True if the version is this transaction's own, whatever the command.
    #[inline]
    pub fn is_own(&self, version: &VersionStamp) -> bool {
        (version.slot, version.stamp) == self.seen_as()
    }

    /// THE visibility rule: does `snapshot` (an open one of this transaction) see `version`, read by the
    /// statement `reading_command`? May take the writer's slot latch, so the caller holds no slot's.
    #[inline]
    pub fn visible(
        &self,
        version: &VersionStamp,
        snapshot: Timestamp,
        reading_command: u32,
    ) -> bool {
        debug_assert!(
            self.is_open(snapshot),
            "a snapshot that is not published may be gone (R4)"
        );
        let (slot, stamp) = self.seen_as();
        let reader = Reader {
            slot,
            stamp,
            snapshot,
            command: reading_command,
            inherits: self.inherits,
        };
        let domain = self.domain();
        if let Some(policy) = &self.policy
            && let Some(seen) = self.visible_by(policy, version, &reader)
        {
            return seen;
        }
        if let Some(known) = decide_alone(version, &reader, domain.restart_floor()) {
            return known;
        }
        domain.is_settled(version) || self.ask_writer(version, snapshot)
    }

    /// The rule of another protocol than the product's; none where that has the last word.
    #[cold]
    fn visible_by(&self, policy: &Policy, version: &VersionStamp, reader: &Reader) -> Option<bool> {
        if version.stamp < self.domain().restart_floor() {
            return Some(true);
        }
        if self.is_own(version) {
            return Some(version.command < reader.command);
        }
        policy.sees(version.stamp, reader.snapshot)
    }

    /// True if rows carry the commit timestamps of their writers (`protocol::stamping`).
    #[inline]
    pub fn reads_commit_stamps(&self) -> bool {
        self.policy
            .as_deref()
            .is_some_and(|policy| matches!(policy, Policy::Stamping(_)))
    }

    /// Notes that `command` wrote a row of the tree with root page `tree`: a protocol may have to visit it at commit.
    #[inline]
    pub fn wrote(&self, tree: PageId, key: &[u8], command: u32) {
        if let Some(policy) = &self.policy {
            policy.wrote(tree, key, command);
        }
    }

    fn ask_writer(&self, version: &VersionStamp, snapshot: Timestamp) -> bool {
        let mut cache = self.cache.borrow_mut();
        let cache = cache.get_or_insert_with(|| self.take_cache());
        decide_by_writer(self.domain(), version, snapshot, cache)
    }

    #[cold]
    fn take_cache(&self) -> Box<SnapshotCache> {
        let kept = self.domain().slot(self.slot()).parts.lock().cache.take();
        kept.unwrap_or_default()
    }

    /// Starts an operation (R10): the class does not change while the guard lives. Hold it for a lookup, a write or
    /// a leaf of a scan, not while user code runs, while parked, or while writing to a client.
    ///
    /// Costs one locked instruction on the slot's own line; nothing where the class was declared and nobody withdraws
    /// snapshots.
    ///
    /// # Errors
    /// `SnapshotTooOld`: the transaction can only be ended.
    #[inline]
    pub fn operation(&self) -> Result<Operation<'_>, TransactionError> {
        Operation::start(self)
    }

    /// True if its operations are counted: its class may change, or its snapshots may be withdrawn.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.options.class == Class::Auto || self.domain().may_withdraw()
    }

    /// What tells it from all others of this run.
    pub fn id(&self) -> TransactionId {
        TransactionId {
            slot: self.slot(),
            number: self.domain().slot(self.slot()).words.number(),
        }
    }

    /// What it has touched so far, and what was added.
    pub fn touched(&self) -> Touched {
        self.touched.get()
    }

    /// Counts what it touched.
    #[inline]
    pub fn touch(&self, pages: u64, versions: u64) {
        let before = self.touched.get();
        self.touched.set(Touched {
            pages: before.pages + pages,
            versions: before.versions + versions,
        });
    }

    /// Notes the version that a write of this transaction could not replace.
    #[cold]
    pub fn note_conflict(&self, version: VersionStamp) {
        self.met.set(Some(version));
    }

    /// The version that its last conflict was about, once.
    pub fn take_conflict(&self) -> Option<VersionStamp> {
        self.met.take()
    }

    /// True once its snapshots were withdrawn: every further operation fails.
    #[inline]
    pub fn is_withdrawn(&self) -> bool {
        self.domain().slot(self.slot()).words.is_withdrawn()
    }

    /// True if it counts as analytical now. It may become so at any time outside an [`Operation`].
    pub fn is_olap(&self) -> bool {
        self.domain().slot(self.slot()).words.is_olap()
    }

    /// A point to roll back to: what was done before stays.
    pub fn savepoint(&self) -> Savepoint {
        if !self.has_written() {
            return Savepoint {
                command: self.next_command.get(),
                ..Savepoint::START
            };
        }
        let latch = self.domain().log().slot(self.slot()).lock();
        Savepoint {
            lsn: latch.end(),
            gsn: latch.slot_gsn(),
            command: self.next_command.get(),
        }
    }

    /// Takes back every published snapshot but word 0, which counts only while the slot runs a
    /// transaction, and gives the cache back to the slot.
    #[inline]
    fn retire(&mut self) {
        let one_snapshot = self.current.get_mut().index == 0 && self.earlier.get_mut().is_empty();
        if !one_snapshot || self.cache.get_mut().is_some() {
            self.retire_slowly();
        }
    }

    fn retire_slowly(&mut self) {
        let parts = self.token.domain().slot(self.token.slot());
        let current = self.current.get().index;
        for index in self
            .earlier
            .get_mut()
            .drain(..)
            .map(|open| open.index)
            .chain([current])
        {
            if index != 0 {
                parts.words.unpublish(index);
            }
        }
        if let Some(cache) = self.cache.get_mut().take() {
            parts.parts.lock().cache = Some(cache);
        }
    }

    /// Ends the transaction and gives its slot back.
    #[inline]
    pub(crate) fn end(&mut self) {
        debug_assert!(!self.ended);
        self.ended = true;
        self.retire();
        self.domain().slots.release(self.slot());
    }

    /// Ends the transaction but keeps its slot.
    pub(crate) fn end_keeping_slot(&mut self) {
        debug_assert!(!self.ended);
        self.ended = true;
        self.retire();
        self.domain().slots.keep(self.slot());
    }

    #[cold]
    fn park(&mut self) {
        self.domain().park_one();
        self.retire();
        let parts = self.domain().slot(self.slot());
        let parked = Parked {
            stamp: self.stamp.get(),
            next_command: self.next_command.get(),
        };
        parts.parts.lock().parked = Some(parked);
        // It counts as parked by now. Whoever rolls it back gives the slot back: not before what is to be done for its end is done.
        self.domain().slots.keep(self.slot());
        parts.words.park();
    }
}

impl Drop for Transaction {
    #[inline]
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.has_written() {
            self.park();
        } else {
            self.end();
        }
    }
}

// A transaction moves between threads; nothing shares it.
const _: () = {
    const fn sendable<T: Send>() {}
    sendable::<Transaction>();
};

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use crate::{Clock, Config, Manager, Options, TransactionError};
    use std::sync::Arc;
    use std::time::Duration;
    use vellum_base::Timestamp;
    use vellum_io::MemoryDirectory;
    use vellum_wal::{Log, LogConfig, LogStart};

    #[test]
    fn r1_the_last_command_is_seen_by_the_next_statement_and_then_there_is_none() {
        let clock = Arc::new(Clock::above(Timestamp::ZERO));
        let ticks = clock.clone();
        let now = Arc::new(move || ticks.now());
        let (directory, config) = (Arc::new(MemoryDirectory::new()), LogConfig::default());
        let log = Log::create(directory, config, now, LogStart::first()).unwrap();
        let manager = Manager::new(Arc::new(log), clock, Config::default());
        let transaction = manager.begin(Options::default(), Duration::MAX).unwrap();
        transaction.next_command.set(u64::from(u32::MAX) - 1);
        let last = transaction.next_command().unwrap();
        let version = transaction.version(last).unwrap();
        let reading = transaction.commands_drawn();
        assert!(transaction.visible(&version, transaction.snapshot(), reading));
        for _ in 0..3 {
            let none = transaction.next_command();
            assert!(matches!(none, Err(TransactionError::TooManyCommands)));
        }
    }
}
