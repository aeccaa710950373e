//! A store of numbers under numbers, over the real log and the real transactions: one "page", whose
//! versions live in memory, redone and undone from log records. What the tests here drive.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vellum_base::codec::Reader;
use vellum_base::{Gsn, PageId, Result, SlotId, Timestamp};
use vellum_io::{Directory, MemoryDirectory};
use vellum_sync::{Mutex, MutexGuard};
use vellum_txn::{
    Analysis, Class, Clock, Config, Durability, Isolation, Manager, Options, Outcome, Protocol,
    Transaction, TransactionError, Undo, VersionStamp, log_verdict, undo_losers,
};
use vellum_wal::{
    FLAG_COMPENSATION, FLAG_UNDOABLE, Log, LogConfig, LogPosition, LogReader, Purpose,
    RECORD_HEADER_BYTES, Record, RecordHeader, Verdict,
};

const WRITE: u8 = 16;
const REVERT: u8 = 17;

/// The seed of a random test: `VELLUM_SEED`, else a fresh one. Prints how to run `test` again.
pub fn seed(test: &str) -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-txn {test}");
    seed
}

/// Rounds of a random test: `VELLUM_ROUNDS`, else `default`.
pub fn rounds(default: u64) -> u64 {
    vellum_base::replay::rounds(default)
}

/// The protocol that this binary tests: its name says so.
pub fn protocol() -> Protocol {
    match env!("CARGO_CRATE_NAME") {
        "read_view" => Protocol::ReadView,
        "stamping" => Protocol::Stamping,
        _ => Protocol::Osic,
    }
}

/// Why a write did not happen.
#[derive(Debug)]
pub enum Refused {
    /// First writer wins.
    Conflict,
    /// The transaction or the log refused.
    Transaction(TransactionError),
}

#[derive(Debug, Default)]
struct Page {
    gsn: Gsn,
    /// Versions by key, newest last.
    rows: BTreeMap<u64, Vec<(VersionStamp, u64)>>,
}

/// The store, its log and its transactions.
pub struct World {
    pub manager: Arc<Manager>,
    page: Mutex<Page>,
    /// What recovery found, for a world that was recovered.
    pub outcome: Outcome,
}

pub fn log_config(slots_max: u16) -> LogConfig {
    LogConfig {
        slots_max,
        slot_buffer_bytes: 4096,
        segment_bytes: 64 << 10,
        log_bytes_max: 4 << 20,
    }
}

fn number(reader: &mut Reader<'_>) -> u64 {
    reader.u64().expect("a record of this store")
}

impl World {
    pub fn new(directory: Arc<dyn Directory>, slots_max: u16) -> Arc<Self> {
        Self::open(directory, slots_max).expect("a new log")
    }

    /// Opens, recovering if there is a log already.
    pub fn open(directory: Arc<dyn Directory>, slots_max: u16) -> Result<Arc<Self>> {
        let mut reader = LogReader::open(&*directory, LogPosition::default(), Verdict::default())?;
        let mut analysis = Analysis::new(Timestamp::ZERO);
        let mut rounds = Vec::new();
        while let Some(round) = reader.next_round()? {
            analysis.round(&round)?;
            rounds.push(round);
        }
        let outcome = analysis.finish();
        let mut page = Page::default();
        let mut records = Vec::new();
        for round in &rounds {
            let end = reader
                .ends()
                .iter()
                .find(|end| end.incarnation == round.incarnation);
            let m = end.map_or(Gsn::ZERO, |end| end.m);
            let all = round.chunks.iter().flat_map(|chunk| chunk.records());
            records.extend(
                all.filter(|r| r.header.gsn <= m)
                    .map(|r| (chunk_slot(round, &r), r)),
            );
        }
        records.sort_by_key(|(_, record)| record.header.gsn);
        for (slot, record) in &records {
            page.redo(*slot, record);
        }
        let old = !rounds.is_empty();
        let start = reader.start_after(0);
        page.gsn = Gsn(start.first_gsn.get());
        let clock = Arc::new(Clock::above(outcome.highest));
        let ticks = clock.clone();
        let log = Log::create(
            directory,
            log_config(slots_max),
            Arc::new(move || ticks.now()),
            start,
        )?;
        let config = Config {
            slots_max,
            restart_floor: clock.now(),
            may_withdraw: true,
            protocol: protocol(),
            ..Config::default()
        };
        let log = Arc::new(log);
        let manager = Arc::new(Manager::new(log.clone(), clock, config));
        let world = Arc::new(Self {
            manager,
            page: Mutex::new(page),
            outcome,
        });
        if old {
            log_verdict(&log, SlotId(0), world.outcome.verdict)?;
            log.flush_round()?;
            let losers = &world.outcome.losers;
            undo_losers(
                &log,
                SlotId(0),
                reader.files(),
                losers,
                &mut world.undo(SlotId(0)),
            )?;
            log.flush_round()?;
        }
        Ok(world)
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock()
    }

    pub fn begin(&self, options: Options) -> Transaction {
        self.manager
            .begin(options, Duration::MAX)
            .expect("waits as long as it takes")
    }

    pub fn undo(&self, slot: SlotId) -> StoreUndo<'_> {
        StoreUndo {
            world: self,
            slot,
            undone: Vec::new(),
        }
    }

    /// Writes a version, if the newest is visible to the statement's snapshot.
    pub fn write(
        &self,
        transaction: &Transaction,
        command: u32,
        key: u64,
        value: u64,
    ) -> std::result::Result<VersionStamp, Refused> {
        let name = transaction.version(command).map_err(Refused::Transaction)?;
        let log = self.manager.log().slot(name.slot);
        log.reserve(RECORD_HEADER_BYTES + 16 + 12)
            .map_err(|e| Refused::Transaction(e.into()))?;
        let mut page = self.page();
        if let Some((newest, _)) = page.rows.get(&key).and_then(|versions| versions.last())
            && !transaction.is_own(newest)
            && !transaction.visible(newest, transaction.snapshot(), command)
        {
            return Err(Refused::Conflict);
        }
        let mut latch = log.lock();
        let gsn = latch.draw(page.gsn);
        page.gsn = gsn;
        let redo = [key.to_le_bytes(), value.to_le_bytes()].concat();
        let stamp = name.stamp.get().to_le_bytes();
        let header = header(WRITE, FLAG_UNDOABLE, gsn);
        latch.append(&header, &[&redo], &[&stamp, &command.to_le_bytes()]);
        page.rows.entry(key).or_default().push((name, value));
        Ok(name)
    }

    /// The value that a snapshot of the transaction sees.
    pub fn read(
        &self,
        transaction: &Transaction,
        snapshot: Timestamp,
        command: u32,
        key: u64,
    ) -> Option<u64> {
        let versions = self.page().rows.get(&key).cloned().unwrap_or_default();
        let seen = versions
            .iter()
            .rev()
            .find(|(v, _)| transaction.visible(v, snapshot, command));
        seen.map(|(_, value)| *value)
    }

    /// All versions of a key, oldest first.
    pub fn versions(&self, key: u64) -> Vec<(VersionStamp, u64)> {
        self.page().rows.get(&key).cloned().unwrap_or_default()
    }

    /// The newest value of every key.
    pub fn newest(&self) -> BTreeMap<u64, u64> {
        let page = self.page();
        page.rows
            .iter()
            .filter_map(|(k, v)| v.last().map(|(_, value)| (*k, *value)))
            .collect()
    }
}

fn chunk_slot(round: &vellum_wal::RoundData, record: &Record<'_>) -> SlotId {
    let at = record.redo.as_ptr();
    let holds = |chunk: &&vellum_wal::Chunk| chunk.bytes.as_ptr_range().contains(&at);
    round
        .chunks
        .iter()
        .find(holds)
        .map_or(SlotId::ZERO, |chunk| chunk.slot)
}

fn header(kind: u8, flags: u8, gsn: Gsn) -> RecordHeader {
    RecordHeader {
        kind,
        flags,
        page: PageId(1),
        tree: PageId(1),
        gsn,
    }
}

impl Page {
    fn redo(&mut self, slot: SlotId, record: &Record<'_>) {
        let mut redo = Reader::new(record.redo);
        match record.header.kind {
            WRITE => {
                let (key, value) = (number(&mut redo), number(&mut redo));
                let mut undo = Reader::new(record.undo);
                let stamp = Timestamp(number(&mut undo));
                let command = undo.u32().expect("a record of this store");
                let name = VersionStamp {
                    slot,
                    stamp,
                    command,
                };
                self.rows.entry(key).or_default().push((name, value));
            }
            REVERT => {
                let key = number(&mut redo);
                self.rows
                    .get_mut(&key)
                    .and_then(Vec::pop)
                    .expect("redo in order");
            }
            _ => {}
        }
    }
}

/// Reverts writes to the store.
pub struct StoreUndo<'w> {
    world: &'w World,
    slot: SlotId,
    /// GSNs of what was undone, in order.
    pub undone: Vec<Gsn>,
}

impl Undo for StoreUndo<'_> {
    fn undo(&mut self, record: &Record<'_>) -> Result<()> {
        let key = number(&mut Reader::new(record.redo));
        let stamp = record.stamp().expect("an undoable record");
        let log = self.world.manager.log().slot(self.slot);
        log.reserve_for(RECORD_HEADER_BYTES + 8 + 16, Purpose::Undo)?;
        let mut page = self.world.page();
        let newest = page.rows.get_mut(&key).and_then(Vec::pop);
        assert_eq!(
            newest.map(|(name, _)| name.stamp),
            Some(stamp),
            "undo in descending order"
        );
        let mut latch = log.lock();
        let gsn = latch.draw(page.gsn);
        page.gsn = gsn;
        let undo = [
            stamp.get().to_le_bytes(),
            record.header.gsn.get().to_le_bytes(),
        ]
        .concat();
        latch.append(
            &header(REVERT, FLAG_COMPENSATION, gsn),
            &[&key.to_le_bytes()],
            &[&undo],
        );
        self.undone.push(record.header.gsn);
        Ok(())
    }

    fn carried(&mut self, _: Timestamp, _: Gsn, _: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }
}

/// A store with so many slots, in memory.
pub fn world(slots: u16) -> Arc<World> {
    World::new(Arc::new(MemoryDirectory::new()), slots)
}

/// How most transactions of the tests begin.
pub const ASYNC: Options = Options {
    isolation: Isolation::Snapshot,
    durability: Durability::Async,
    read_only: false,
    class: Class::Auto,
};
/// The same under read committed.
pub const READ_COMMITTED: Options = Options {
    isolation: Isolation::ReadCommitted,
    ..ASYNC
};

/// Commits one number under another; returns the version's name.
pub fn put(world: &World, key: u64, value: u64) -> VersionStamp {
    let transaction = world.begin(ASYNC);
    let command = transaction.next_command().unwrap();
    let name = world.write(&transaction, command, key, value).unwrap();
    transaction.commit().unwrap();
    name
}

/// What a new transaction sees.
pub fn get(world: &World, key: u64) -> Option<u64> {
    let transaction = world.begin(ASYNC);
    let value = world.read(&transaction, transaction.snapshot(), 0, key);
    transaction.commit().unwrap();
    value
}
