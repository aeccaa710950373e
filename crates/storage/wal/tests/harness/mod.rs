//! A small engine over the log: transactions that write records and commit, a model of what was
//! appended, and the check of what a crash left.
//!
//! Not checked: what records mean; pages.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vellum_base::{Gsn, Lsn, PageId, Result, SlotId, Timestamp};
use vellum_io::Directory;
use vellum_wal::*;

pub const CHANGE: u8 = 16;
pub const COMMIT: u8 = 2;
pub const UNDONE: u8 = 17;

pub fn small() -> LogConfig {
    LogConfig {
        slots_max: 8,
        slot_buffer_bytes: 16 << 10,
        segment_bytes: 64 << 10,
        log_bytes_max: 3 * (64 << 10),
    }
}

pub fn seed() -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-wal");
    seed
}

/// A record as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    pub lsn: Lsn,
    pub header: RecordHeader,
    pub redo: Vec<u8>,
    pub undo: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub slots: BTreeMap<SlotId, Vec<Appended>>,
    /// Commit timestamps with the GSNs of their records.
    pub commits: Vec<(Timestamp, Gsn)>,
    pub hardened: Vec<Timestamp>,
    pub durable: Gsn,
}

pub struct Engine {
    pub log: Log,
    pub clock: Arc<AtomicU64>,
    pub model: Model,
    pub page_gsn: Gsn,
}

pub fn open(dir: Arc<dyn Directory>, config: LogConfig, start: LogStart) -> Result<Engine> {
    let clock = Arc::new(AtomicU64::new(start.horizon.0.max(1)));
    let reader = clock.clone();
    let read = move || Timestamp(reader.load(Ordering::SeqCst));
    let log = Log::create(dir, config, Arc::new(read), start)?;
    Ok(Engine {
        log,
        clock,
        model: Model::default(),
        page_gsn: Gsn::ZERO,
    })
}

pub fn header(kind: u8, flags: u8, page: u64, gsn: Gsn) -> RecordHeader {
    RecordHeader {
        kind,
        flags,
        page: PageId(page),
        tree: PageId(2),
        gsn,
    }
}

impl Engine {
    pub fn tick(&self) -> Timestamp {
        Timestamp(self.clock.fetch_add(1, Ordering::SeqCst))
    }

    /// Begins a transaction; returns its stamp.
    pub fn begin(&mut self, slot: SlotId) -> Timestamp {
        let stamp = self.tick();
        self.log.slot(slot).lock().begin_transaction(stamp);
        stamp
    }

    /// One undoable change of `bytes` payload.
    pub fn change(&mut self, slot: SlotId, stamp: Timestamp, bytes: usize) -> Result<Gsn> {
        let mut undo = stamp.0.to_le_bytes().to_vec();
        undo.extend_from_slice(&1_u32.to_le_bytes());
        undo.extend((0..bytes / 2).map(|i| i as u8));
        let redo: Vec<u8> = (0..bytes / 2).map(|i| (i * 7) as u8).collect();
        let total = RECORD_HEADER_BYTES + redo.len() + undo.len();
        self.log.slot(slot).reserve(total)?;
        let page = 1 + self.page_gsn.0 % 5;
        Ok(self.append(slot, CHANGE, FLAG_UNDOABLE, page, &redo, &undo))
    }

    /// Compensates the transaction's change `gsn`.
    pub fn compensate(&mut self, slot: SlotId, stamp: Timestamp, gsn: Gsn) -> Result<Gsn> {
        self.compensate_with(slot, stamp, gsn, 4)
    }

    /// The same with so many redo bytes.
    pub fn compensate_with(
        &mut self,
        slot: SlotId,
        stamp: Timestamp,
        gsn: Gsn,
        redo: usize,
    ) -> Result<Gsn> {
        let mut undo = stamp.0.to_le_bytes().to_vec();
        undo.extend_from_slice(&gsn.0.to_le_bytes());
        let total = RECORD_HEADER_BYTES + undo.len() + redo;
        self.log.slot(slot).reserve_for(total, Purpose::Undo)?;
        Ok(self.append(slot, UNDONE, FLAG_COMPENSATION, 3, &vec![1; redo], &undo))
    }

    pub fn append(
        &mut self,
        slot: SlotId,
        kind: u8,
        flags: u8,
        page: u64,
        redo: &[u8],
        undo: &[u8],
    ) -> Gsn {
        let mut guard = self.log.slot(slot).lock();
        let gsn = guard.draw(self.page_gsn);
        let header = header(kind, flags, page, gsn);
        let (a, b) = redo.split_at(redo.len() / 3);
        let lsn = guard.append(&header, &[a, b], &[undo]);
        drop(guard);
        let (redo, undo) = (redo.to_vec(), undo.to_vec());
        self.model.slots.entry(slot).or_default().push(Appended {
            lsn,
            header,
            redo,
            undo,
        });
        gsn
    }

    /// Commits the slot's transaction; returns the commit timestamp, not hardened.
    pub fn commit(&mut self, slot: SlotId) -> Result<Timestamp> {
        self.log.slot(slot).reserve(RECORD_HEADER_BYTES + 8)?;
        let mut guard = self.log.slot(slot).lock();
        let ts = self.tick();
        let gsn = guard.draw(Gsn::ZERO);
        let header = header(COMMIT, 0, 0, gsn);
        let redo = ts.0.to_le_bytes().to_vec();
        let lsn = guard.append(&header, &[&redo], &[]);
        guard.end_transaction();
        drop(guard);
        let records = self.model.slots.entry(slot).or_default();
        records.push(Appended {
            lsn,
            header,
            redo,
            undo: Vec::new(),
        });
        self.model.commits.push((ts, gsn));
        Ok(ts)
    }

    pub fn harden(&mut self, ts: Timestamp) -> Result<()> {
        self.log.harden(ts)?;
        assert!(self.log.horizon() > ts);
        self.model.hardened.push(ts);
        self.model.durable = self.model.durable.max(self.log.durable_gsn());
        Ok(())
    }
}

/// What the log has of one incarnation.
#[derive(Debug, Default)]
pub struct Recovered {
    pub slots: BTreeMap<SlotId, Vec<Appended>>,
    pub rounds: u64,
}

/// Reads everything from `from` on.
pub fn recover(
    dir: &dyn Directory,
    from: LogPosition,
    known: Verdict,
) -> Result<(BTreeMap<u64, Recovered>, LogReader)> {
    let mut reader = LogReader::open(dir, from, known)?;
    let mut incarnations: BTreeMap<u64, Recovered> = BTreeMap::new();
    while let Some(round) = reader.next_round()? {
        let recovered = incarnations.entry(round.incarnation).or_default();
        recovered.rounds += 1;
        for chunk in &round.chunks {
            let records = recovered.slots.entry(chunk.slot).or_default();
            for record in chunk.records() {
                records.push(Appended {
                    lsn: record.lsn,
                    header: record.header,
                    redo: record.redo.to_vec(),
                    undo: record.undo.to_vec(),
                });
            }
        }
    }
    Ok((incarnations, reader))
}

impl Model {
    /// Checks the promise: a prefix of each slot, with everything at or below M, every commit below C,
    /// and everything that was hardened.
    pub fn check(&self, recovered: &Recovered, verdict: Verdict) {
        for (slot, appended) in &self.slots {
            let empty = Vec::new();
            let found = recovered.slots.get(slot).unwrap_or(&empty);
            assert!(
                found.len() <= appended.len(),
                "{slot} has more than was appended"
            );
            assert_eq!(found[..], appended[..found.len()], "{slot} is no prefix");
            let missing = appended[found.len()..]
                .iter()
                .find(|r| r.header.gsn <= verdict.m);
            assert!(
                missing.is_none(),
                "{slot} lacks {missing:?}, M is {}",
                verdict.m
            );
        }
        for (ts, gsn) in &self.commits {
            assert!(
                *ts >= verdict.c || *gsn <= verdict.m,
                "commit {ts} is below C, above M"
            );
        }
        for ts in &self.hardened {
            assert!(*ts < verdict.c, "{ts} was hardened, C is {}", verdict.c);
        }
        assert!(verdict.m >= self.durable, "durable gsn went back");
    }
}
