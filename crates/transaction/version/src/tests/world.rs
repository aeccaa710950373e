//! What the tests of this crate share: a store with everything that it stands on.

use crate::RowStamper;
use crate::VersionOptions;
use crate::collect::{Collected, Freezer, Reducer};
use crate::delta::Home;
use crate::row::Shape;
use crate::store::VersionStore;
use crate::undo::Reverter;
use crate::{Change, Current, KeyRange, Result, Scan, Scratch, VersionError, View, Written};
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;
use vellum_base::{Gsn, SlotId, Timestamp};
use vellum_btree::overflow::ChainRef;
use vellum_btree::{Journal, Tree, TreeContext, TreeKind};
use vellum_buffer::{Pool, PoolConfig, Space};
use vellum_gc::Budget;
use vellum_io::{Directory, OpenOptions, SimulatedDirectory};
use vellum_sync::Mutex;
#[cfg(not(any(loom, shuttle)))]
use vellum_sync::{test_point::TestPoints, thread};
use vellum_txn::{
    Class, Clock, Config, Durability, Holder, Isolation, Manager, Options, Protocol, Savepoint,
    Transaction, TransactionError, TransactionId,
};
use vellum_wal::{Log, LogConfig, LogSpace, LogStart, SlotLog};

/// Slots of transactions of a world, unless it says otherwise.
pub(crate) const SLOTS: u16 = 6;

/// Settings of transactions of a world, unless it says otherwise.
pub(crate) fn settings() -> Config {
    Config {
        slots_max: SLOTS,
        // A schedule has few steps: who is a few ticks behind is promoted.
        promote_after: if cfg!(shuttle) { 8 } else { 100_000 },
        ..Config::default()
    }
}

/// Holders that have these snapshots and have written nothing.
pub(crate) fn holding(snapshots: &[Timestamp]) -> Vec<Holder> {
    let of = |snapshot: &Timestamp| Holder {
        id: TransactionId {
            slot: SlotId(u16::MAX),
            number: snapshot.get(),
        },
        olap: true,
        writer: false,
        oldest: *snapshot,
        newest: *snapshot,
        age: Duration::ZERO,
    };
    snapshots.iter().map(of).collect()
}

/// The seed of a random test, from `VELLUM_SEED` or fresh, printed with the way to replay it.
pub(crate) fn seed(test: &str) -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with: VELLUM_SEED={seed} cargo test -p vellum-version {test}");
    seed
}

/// Recycles the log without any checkpoint: nothing here replays it.
struct Forget(std::sync::Weak<Log>);

impl LogSpace for Forget {
    fn make_space(&self) -> vellum_base::Result<bool> {
        let Some(log) = self.0.upgrade() else {
            return Ok(false);
        };
        log.flush_round()?;
        log.release_before(log.position())
            .map(|segments| segments > 0)
    }
}

pub(crate) struct World {
    pub directory: Arc<SimulatedDirectory>,
    pub log: Arc<Log>,
    pub manager: Arc<Manager>,
    pub space: Arc<Space>,
    pub store: VersionStore,
    pub carried: Tree,
    /// Slots of transactions; the one above is for the world itself.
    pub slots: u16,
    /// Held by who logs in the world's own slot beside other threads: one reservation at a time, as the engine has it.
    maintenance: Mutex<()>,
}

impl World {
    pub(crate) fn new(page_size: usize, frames: u64) -> Self {
        Self::with_options(page_size, frames, VersionOptions::default())
    }

    /// A world in which snapshots may be withdrawn.
    pub(crate) fn withdrawing(page_size: usize, frames: u64) -> Self {
        let config = Config {
            may_withdraw: true,
            ..settings()
        };
        Self::with(page_size, frames, VersionOptions::default(), config)
    }

    /// A world whose rows turn fat as these options say.
    pub(crate) fn with_options(page_size: usize, frames: u64, options: VersionOptions) -> Self {
        Self::with(page_size, frames, options, settings())
    }

    /// A world with another protocol than the product's.
    pub(crate) fn with_protocol(page_size: usize, frames: u64, protocol: Protocol) -> Self {
        let options = VersionOptions {
            fat: false,
            ..VersionOptions::default()
        };
        let config = Config {
            protocol,
            ..settings()
        };
        Self::with(page_size, frames, options, config)
    }

    /// A world whose transactions are as `settings` say.
    pub(crate) fn with(
        page_size: usize,
        frames: u64,
        options: VersionOptions,
        settings: Config,
    ) -> Self {
        let slots = settings.slots_max;
        let directory = Arc::new(SimulatedDirectory::new());
        let config = LogConfig {
            slots_max: slots + 1,
            slot_buffer_bytes: 128 << 10,
            segment_bytes: 1 << 20,
            log_bytes_max: 8 << 20,
        };
        let clock = Arc::new(Clock::above(Timestamp::ZERO));
        let ticks = clock.clone();
        let now = Arc::new(move || ticks.now());
        let log = Log::create(directory.clone(), config, now, LogStart::first()).unwrap();
        let log = Arc::new(log);
        log.set_log_space(Arc::new(Forget(Arc::downgrade(&log))));
        let file = directory.open("data", OpenOptions::create()).unwrap();
        let pool = PoolConfig {
            page_size,
            pool_bytes: frames * page_size as u64,
            pages_max: if cfg!(shuttle) { 4096 } else { 1 << 16 },
            batch_pages: 4,
            evictors_max: 1,
        };
        let pool = Arc::new(Pool::create_file(file, log.clone(), &pool).unwrap());
        let space = Arc::new(Space::load(pool.clone(), Gsn(1)).unwrap());
        let manager = Arc::new(Manager::new(log.clone(), clock, settings));
        let context = TreeContext::new(pool, space.clone())
            .with_rows(Arc::new(Reducer))
            .with_cleaner(Arc::new(Freezer::new(manager.domain().clone())));
        let context = Arc::new(context);
        let stamper = Box::new(RowStamper::new(&context));
        manager.domain().set_commit_stamper(stamper);
        let journal = Some(Journal::forward(log.slot(SlotId(slots))));
        let plain = || Tree::create(&context, journal, TreeKind::Plain, None).unwrap();
        let (pending, carried) = (plain(), plain());
        let store = VersionStore::with_options(context, slots, pending, options);
        Self {
            directory,
            log,
            manager,
            space,
            store,
            carried,
            slots,
            maintenance: Mutex::new(()),
        }
    }

    /// An empty table.
    pub(crate) fn table(&self) -> Tree {
        let journal = Some(Journal::forward(self.log.slot(SlotId(self.slots))));
        Tree::create(self.store.context(), journal, TreeKind::Rows, None).unwrap()
    }

    /// Gives a tree up, as part of `transaction`.
    pub(crate) fn disown(&self, transaction: &Transaction, tree: &Tree) {
        let table = "t".into();
        self.store
            .disown_tree(transaction, tree.root(), &table)
            .unwrap();
    }

    pub(crate) fn begin(&self) -> Transaction {
        self.begin_at(Isolation::Snapshot)
    }

    pub(crate) fn begin_at(&self, isolation: Isolation) -> Transaction {
        self.begin_with(isolation, Class::Auto)
    }

    pub(crate) fn begin_olap(&self) -> Transaction {
        self.begin_with(Isolation::Snapshot, Class::Olap)
    }

    pub(crate) fn begin_with(&self, isolation: Isolation, class: Class) -> Transaction {
        let options = Options {
            isolation,
            durability: Durability::Async,
            class,
            ..Options::default()
        };
        self.manager.begin(options, Duration::MAX).unwrap()
    }

    pub(crate) fn log_of(&self, transaction: &Transaction) -> &SlotLog {
        self.log.slot(transaction.slot())
    }

    pub(crate) fn change<'c>(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        key: &[u8],
        change: impl Fn(Option<Current<'_>>) -> Change<'c>,
    ) -> Result<Written> {
        let mut scratch = Scratch::default();
        let view = view(transaction);
        self.store
            .write(&view, tree, key, &mut scratch, |now| Ok(change(now)))
    }

    pub(crate) fn put(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        key: &[u8],
        value: &[u8],
    ) -> Result<Written> {
        self.change(transaction, tree, key, |_| {
            Change::Put(Shape::INLINE, value)
        })
    }

    pub(crate) fn delete(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        key: &[u8],
    ) -> Result<Written> {
        self.change(transaction, tree, key, |now| match now {
            Some(_) => Change::Delete,
            None => Change::Nothing,
        })
    }

    /// Writes `byte` over a range of a value.
    pub(crate) fn patch(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        key: &[u8],
        range: Range<usize>,
        byte: u8,
    ) -> Result<Written> {
        let mut body = self.get(transaction, tree, key).unwrap();
        body[range.clone()].fill(byte);
        let ranges = [range];
        self.change(transaction, tree, key, |_| Change::Patch(&ranges, &body))
    }

    pub(crate) fn get(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        key: &[u8],
    ) -> Option<Vec<u8>> {
        let (mut row, mut delta) = (Vec::new(), Vec::new());
        // Counted: the class stays (R10).
        let _operation = transaction.operation().unwrap();
        let found = self
            .store
            .read(&view(transaction), tree, key, &mut row, &mut delta)
            .unwrap();
        found.map(|visible| row.split_off(visible.start))
    }

    /// Writes a large value, which is listed until it is adopted.
    pub(crate) fn write_chain(&self, transaction: &Transaction, value: &[u8]) -> ChainRef {
        let mut operation = transaction.operation().unwrap();
        self.store.write_chain(&mut operation, value).unwrap()
    }

    /// The large value that the body of a row refers to.
    pub(crate) fn read_chain(&self, transaction: &Transaction, body: &[u8]) -> Vec<u8> {
        let mut operation = transaction.operation().unwrap();
        let mut value = Vec::new();
        let read = self.store.read_chain_into(&mut operation, body, &mut value);
        read.unwrap();
        value
    }

    /// What a statement sees that began at `command`.
    pub(crate) fn get_of_command(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        key: &[u8],
        command: u32,
    ) -> Option<Vec<u8>> {
        let (mut row, mut delta) = (Vec::new(), Vec::new());
        let _operation = transaction.operation().unwrap();
        let view = View {
            command,
            ..view(transaction)
        };
        let found = self.store.read(&view, tree, key, &mut row, &mut delta);
        found.unwrap().map(|visible| row.split_off(visible.start))
    }

    /// Headers of the rows in the tree.
    pub(crate) fn headers(&self, tree: &Tree) -> Vec<crate::row::Header> {
        let mut headers = Vec::new();
        self.each_row(tree, |_, row| {
            headers.push(crate::row::Header::decode(row).unwrap());
        });
        headers
    }

    pub(crate) fn each_row(&self, tree: &Tree, mut each: impl FnMut(&[u8], &[u8])) {
        let mut leaf = vellum_btree::LeafCopy::new(self.store.context().page_size());
        let (mut from, mut key) = (Vec::new(), Vec::new());
        loop {
            tree.read_leaf(vellum_btree::Seek::AtOrAfter(&from), &mut leaf)
                .unwrap();
            for index in 0..leaf.len() {
                leaf.key(index, &mut key);
                each(&key, leaf.payload(index));
            }
            match leaf.upper_fence() {
                Some(fence) => from = fence.to_vec(),
                None => return,
            }
        }
    }

    /// Every row that the transaction sees, forward and backward alike.
    pub(crate) fn rows(&self, transaction: &Transaction, tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.rows_in(transaction, tree, (Bound::Unbounded, Bound::Unbounded))
    }

    /// All rows in one direction, each step an operation of its own, as a cursor's; and whether the transaction was promoted behind the first row
    /// and before the end. `between` runs between two operations and is told how many rows there are so far. An error once the snapshot is too old.
    pub(crate) fn rows_in_steps(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        forward: bool,
        mut between: impl FnMut(usize),
    ) -> std::result::Result<(Vec<(Vec<u8>, Vec<u8>)>, bool), TransactionError> {
        let page_size = self.store.context().page_size();
        let mut scan = Scan::new(page_size, (Bound::Unbounded, Bound::Unbounded));
        let (mut rows, mut class, mut promoted) = (Vec::new(), None, false);
        loop {
            let operation = transaction.operation()?;
            let view = View::of_statement(&operation);
            promoted |= class == Some(false) && view.olap;
            let row = match forward {
                true => scan.next_within(&self.store, &view, tree),
                false => scan.prev_within(&self.store, &view, tree),
            };
            if let Some(row) = row.unwrap() {
                rows.push((row.key.to_vec(), row.body.to_vec()));
                class = Some(view.olap);
            } else if !scan.is_under_way() {
                break;
            }
            drop(operation);
            between(rows.len());
        }
        if !forward {
            rows.reverse();
        }
        Ok((rows, promoted))
    }

    /// The rows of a range, forward and backward alike, by steps that look at the copy at hand only where they can, and by count.
    pub(crate) fn rows_in(
        &self,
        transaction: &Transaction,
        tree: &Tree,
        range: KeyRange,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let page_size = self.store.context().page_size();
        let mut scan = Scan::new(page_size, range.clone());
        // Counted: the class stays (R10).
        let _operation = transaction.operation().unwrap();
        let view = view(transaction);
        let mut rows = Vec::new();
        while let Some(row) = scan.next(&self.store, &view, tree).unwrap() {
            rows.push((row.key.to_vec(), row.body.to_vec()));
        }
        let mut backward = Vec::new();
        let mut scan = Scan::new(page_size, range.clone());
        while let Some(row) = scan.prev(&self.store, &view, tree).unwrap() {
            backward.push((row.key.to_vec(), row.body.to_vec()));
        }
        backward.reverse();
        assert_eq!(rows, backward, "both ways");
        let mut at_hand = Vec::new();
        let mut scan = Scan::new(page_size, range.clone());
        while scan.step_at_hand(&view, true)
            || scan.next(&self.store, &view, tree).unwrap().is_some()
        {
            let row = scan.current();
            at_hand.push((row.key.to_vec(), row.body.to_vec()));
        }
        assert_eq!(rows, at_hand, "by steps at hand");
        for forward in [true, false] {
            let mut found = Vec::new();
            let mut scan = Scan::new(page_size, range.clone());
            loop {
                let stepped = match forward {
                    true => scan.next(&self.store, &view, tree),
                    false => scan.prev(&self.store, &view, tree),
                };
                let Some(row) = stepped.unwrap() else { break };
                found.push((row.key.to_vec(), row.body.to_vec()));
                // Stops at rows here and there, and goes on behind them.
                while scan
                    .each_at_hand(&view, forward, |key, body| {
                        found.push((key.to_vec(), body.to_vec()));
                        match found.len() % 7 {
                            0 => ControlFlow::Break(()),
                            _ => ControlFlow::Continue(()),
                        }
                    })
                    .is_break()
                {
                    let row = scan.current();
                    let last = found.last().unwrap();
                    assert_eq!((row.key, row.body), (&last.0[..], &last.1[..]));
                }
            }
            if !forward {
                found.reverse();
            }
            assert_eq!(rows, found, "all that are at hand, forward: {forward}");
        }
        let mut counted = 0;
        let mut scan = Scan::new(page_size, range);
        while scan.next(&self.store, &view, tree).unwrap().is_some() {
            counted += 1 + scan.count_at_hand(&view);
        }
        assert_eq!(counted, rows.len() as u64, "by leaves");
        rows
    }

    /// Rows in the tree, tombstones included.
    pub(crate) fn heads(&self, tree: &Tree) -> usize {
        let mut count = 0;
        self.each_row(tree, |_, _| count += 1);
        count
    }

    /// Keys of the rows that are fat now, and the bytes of their payloads.
    pub(crate) fn fat_rows(&self, tree: &Tree) -> Vec<(Vec<u8>, usize)> {
        let mut found = Vec::new();
        self.each_row(tree, |key, row| {
            if crate::row::Header::decode(row).unwrap().fat {
                assert!(crate::fat::layout::FatRow::decode(row).unwrap().is_sound());
                found.push((key.to_vec(), row.len()));
            }
        });
        found
    }

    #[cfg(not(any(loom, shuttle)))]
    /// What `tx` finds under `key` if it stops at `point` while `meanwhile` runs; it is rolled back then.
    pub(crate) fn read_around(
        self: &Arc<Self>,
        (tree, key): (&Tree, &'static [u8]),
        tx: Transaction,
        point: &'static str,
        meanwhile: impl FnOnce(),
    ) -> Option<Vec<u8>> {
        let points = TestPoints::new();
        let pause = points.pause(point);
        let reader = {
            let (world, tree) = (self.clone(), tree.clone());
            thread::spawn(move || {
                let _entered = points.enter();
                let found = world.get(&tx, &tree, key);
                world.rollback(tx);
                found
            })
        };
        pause.wait_reached();
        meanwhile();
        pause.release();
        reader.join().unwrap()
    }

    /// Turns a row back into a chain, if it is fat.
    pub(crate) fn decompose(&self, tree: &Tree, key: &[u8]) -> bool {
        let mut active = vellum_txn::ActiveSnapshots::new();
        let domain = self.manager.domain();
        domain.active_snapshots(&mut active);
        self.store
            .decompose(domain, &active, tree, key, None)
            .unwrap()
    }

    /// Deltas of all slots.
    pub(crate) fn deltas(&self) -> usize {
        let slots = (0..self.slots).map(SlotId);
        slots.map(|slot| self.deltas_of(slot)).sum()
    }

    /// Deltas of a slot.
    pub(crate) fn deltas_of(&self, slot: SlotId) -> usize {
        self.delta_trees(slot).map(|tree| self.heads(tree)).sum()
    }

    /// The delta indexes of a slot.
    pub(crate) fn delta_trees(&self, slot: SlotId) -> impl Iterator<Item = &Tree> {
        let homes = [Home::Lasting, Home::Transient];
        homes
            .into_iter()
            .filter_map(move |home| self.store.deltas(slot, home))
    }

    pub(crate) fn commit(&self, transaction: Transaction) {
        transaction.commit_deferred().map(|_| ()).unwrap();
    }

    pub(crate) fn rollback(&self, transaction: Transaction) {
        let log = self.log_of(&transaction);
        let mut reverter = Reverter::running(&self.store, log, &self.carried);
        let slot = transaction.slot();
        transaction.rollback(&mut reverter).unwrap();
        let log = self.log.slot(slot);
        self.store.free_ownerless_and(Vec::new, log).unwrap();
    }

    pub(crate) fn rollback_to(&self, transaction: &Transaction, savepoint: &Savepoint) {
        let log = self.log_of(transaction);
        let mut reverter = Reverter::running(&self.store, log, &self.carried);
        transaction.rollback_to(savepoint, &mut reverter).unwrap();
        self.store.free_given_up(transaction);
    }

    /// One step of collection of a slot, by maintenance if a transaction runs in it, after a pass.
    pub(crate) fn collect_slot(&self, slot: SlotId, budget: &mut Budget) -> Result<Collected> {
        self.manager.pass();
        self.collect_slot_by_last_pass(slot, budget)
    }

    /// The same by the watermarks that there are: a commit's collection makes no pass.
    pub(crate) fn collect_slot_by_last_pass(
        &self,
        slot: SlotId,
        budget: &mut Budget,
    ) -> Result<Collected> {
        let lease = self.manager.lease_idle(slot);
        let _one = lease.is_none().then(|| self.maintenance.lock());
        let log = lease
            .as_ref()
            .map_or(SlotId(self.slots), |lease| lease.slot());
        let domain = self.manager.domain();
        self.store.collect(domain, slot, self.log.slot(log), budget)
    }

    /// Collects what can be collected, after a flush round. Returns how many deltas were swept.
    pub(crate) fn collect(&self) -> u64 {
        self.log.flush_round().unwrap();
        let mut swept = 0;
        loop {
            let mut more = false;
            for slot in (0..self.slots).map(SlotId) {
                let mut budget = Budget::UNBOUNDED;
                let collected = self.collect_slot(slot, &mut budget).unwrap();
                more |= collected.more;
                swept += collected.swept;
            }
            if !more {
                return swept;
            }
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.heads(self.store.pending_free())
    }

    pub(crate) fn pages_in_use(&self) -> u64 {
        let counts = self.space.counts();
        counts.durable + counts.temporary
    }
}

pub(crate) fn view(transaction: &Transaction) -> View<'_> {
    View {
        transaction,
        snapshot: transaction.statement(),
        command: transaction.commands_drawn(),
        olap: transaction.is_olap(),
    }
}

pub(crate) fn is_conflict(result: Result<Written>) -> bool {
    matches!(result, Err(VersionError::Conflict))
}
