//! R9: undo of transactions whose records were carried forward and whose log segments are gone.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vellum_base::{Gsn, PageId, Result, SlotId, Timestamp};
use vellum_io::{Directory, MemoryDirectory};
use vellum_txn::{
    Analysis, Clock, Config, Manager, Options, Outcome, Transaction, Undo, undo_losers,
};
use vellum_wal::{
    FLAG_COMPENSATION, FLAG_UNDOABLE, Log, LogPosition, LogReader, LogStart, Purpose, Record,
    RecordHeader, Verdict,
};

const PAYLOAD: [u8; 300] = [7; 300];

fn header(flags: u8, gsn: Gsn) -> RecordHeader {
    RecordHeader {
        kind: 16,
        flags,
        page: PageId(1),
        tree: PageId(1),
        gsn,
    }
}

fn open(
    directory: &Arc<MemoryDirectory>,
    floor: Timestamp,
    start: LogStart,
) -> (Arc<Log>, Manager) {
    let clock = Arc::new(Clock::above(floor));
    let ticks = clock.clone();
    let now = Arc::new(move || ticks.now());
    let log = Log::create(directory.clone(), store::log_config(4), now, start).unwrap();
    let log = Arc::new(log);
    let config = Config {
        slots_max: 4,
        restart_floor: clock.now(),
        ..Config::default()
    };
    (log.clone(), Manager::new(log, clock, config))
}

/// Undo that only notes what is undone, and the place where carried records are kept.
struct Tape {
    log: Arc<Log>,
    slot: SlotId,
    undone: Vec<Gsn>,
    carried: BTreeMap<(Timestamp, Gsn), Vec<u8>>,
    /// Carry everything forward after that many undo steps.
    carry_after: Option<usize>,
}

impl Tape {
    fn new(log: &Arc<Log>, slot: SlotId) -> Self {
        let (undone, carried) = (Vec::new(), BTreeMap::new());
        Self {
            log: log.clone(),
            slot,
            undone,
            carried,
            carry_after: None,
        }
    }

    /// What a checkpoint does: copies what is not compensated, then gives the segments back.
    fn carry(&mut self) {
        self.log.flush_round().unwrap();
        let position = self.log.position();
        let slot = self.log.slot(self.slot);
        if let Some(mut carry) = slot.carry(position.segment) {
            while let Some(record) = carry.records.next_record().unwrap() {
                let mut bytes = Vec::new();
                record.encode_to(&mut bytes);
                self.carried.insert((carry.stamp, record.header.gsn), bytes);
            }
            assert!(slot.lock().set_carried(carry.stamp, carry.to));
        }
        self.log.release_before(position).unwrap();
    }
}

impl Undo for Tape {
    fn undo(&mut self, record: &Record<'_>) -> Result<()> {
        assert_eq!(record.redo, PAYLOAD);
        let (stamp, gsn) = (record.stamp().unwrap(), record.header.gsn);
        let slot = self.log.slot(self.slot);
        slot.reserve_for(32 + 16, Purpose::Undo)?;
        let mut latch = slot.lock();
        let own = latch.draw(Gsn::ZERO);
        let undo = [stamp.get().to_le_bytes(), gsn.get().to_le_bytes()].concat();
        latch.append(&header(FLAG_COMPENSATION, own), &[], &[&undo]);
        drop(latch);
        self.undone.push(gsn);
        if self.carry_after == Some(self.undone.len()) {
            self.carry();
        }
        Ok(())
    }

    fn carried(&mut self, stamp: Timestamp, below: Gsn, out: &mut Vec<u8>) -> Result<bool> {
        let found = self
            .carried
            .range((stamp, Gsn::ZERO)..(stamp, below))
            .next_back();
        out.extend(found.map(|(_, bytes)| bytes.as_slice()).unwrap_or_default());
        Ok(found.is_some())
    }
}

/// Logs `count` undoable records; returns their GSNs.
fn write(transaction: &Transaction, log: &Log, count: usize) -> Vec<Gsn> {
    let command = transaction.next_command().unwrap();
    let stamp = transaction.stamp().unwrap();
    let slot = log.slot(transaction.slot());
    let write_one = |index: usize| {
        slot.reserve(32 + PAYLOAD.len() + 12).unwrap();
        let mut latch = slot.lock();
        let gsn = latch.draw(Gsn::ZERO);
        let undo = [&stamp.get().to_le_bytes()[..], &command.to_le_bytes()].concat();
        latch.append(&header(FLAG_UNDOABLE, gsn), &[&PAYLOAD], &[&undo]);
        drop(latch);
        if index.is_multiple_of(10) {
            log.flush_round().unwrap();
        }
        gsn
    };
    (0..count).map(write_one).collect()
}

/// A transaction of several segments with a savepoint rolled back in the middle. Returns what rollback has
/// to undo, newest first.
fn long_transaction(manager: &Manager, log: &Log, tape: &mut Tape) -> (Transaction, Vec<Gsn>) {
    let transaction = manager.begin(Options::default(), Duration::ZERO).unwrap();
    tape.slot = transaction.slot();
    let mut gsns = write(&transaction, log, 300);
    let savepoint = transaction.savepoint();
    let voided = write(&transaction, log, 20);
    transaction.rollback_to(&savepoint, tape).unwrap();
    assert_eq!(tape.undone, voided.into_iter().rev().collect::<Vec<_>>());
    tape.undone.clear();
    gsns.extend(write(&transaction, log, 300));
    gsns.reverse();
    (transaction, gsns)
}

#[test]
fn r9_rollback_undoes_what_was_carried_forward_once_and_in_order() {
    let (log, manager) = open(&Arc::default(), Timestamp::ZERO, LogStart::first());
    let mut tape = Tape::new(&log, SlotId(0));
    let (transaction, mut expected) = long_transaction(&manager, &log, &mut tape);
    assert_eq!(
        log.oldest_segment(),
        1,
        "the transaction keeps its segments"
    );
    tape.carry();
    assert!(log.oldest_segment() > 1 && !tape.carried.is_empty());
    let later = write(&transaction, &log, 5);
    expected.splice(0..0, later.into_iter().rev());
    transaction.rollback(&mut tape).unwrap();
    assert_eq!(tape.undone, expected);
}

#[test]
fn r9_savepoint_within_the_carried_part_keeps_what_is_older() {
    let (log, manager) = open(&Arc::default(), Timestamp::ZERO, LogStart::first());
    let mut tape = Tape::new(&log, SlotId(0));
    let transaction = manager.begin(Options::default(), Duration::ZERO).unwrap();
    let kept = write(&transaction, &log, 100);
    let savepoint = transaction.savepoint();
    let mut expected = write(&transaction, &log, 400);
    tape.carry();
    expected.reverse();
    transaction.rollback_to(&savepoint, &mut tape).unwrap();
    assert_eq!(tape.undone, expected);
    tape.undone.clear();
    transaction.rollback(&mut tape).unwrap();
    assert_eq!(tape.undone, kept.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn r9_checkpoint_that_carries_during_a_rollback_does_not_disturb_it() {
    for after in [1, 50, 299, 310, 599] {
        let (log, manager) = open(&Arc::default(), Timestamp::ZERO, LogStart::first());
        let mut tape = Tape::new(&log, SlotId(0));
        let (transaction, expected) = long_transaction(&manager, &log, &mut tape);
        tape.carry_after = Some(after);
        transaction.rollback(&mut tape).unwrap();
        assert!(tape.undone == expected, "carried after {after} steps");
    }
}

/// Reads the log back and judges it.
fn analyse(
    directory: &MemoryDirectory,
    carried: &BTreeMap<(Timestamp, Gsn), Vec<u8>>,
) -> (LogReader, Outcome) {
    let directory: &dyn Directory = directory;
    let mut reader =
        LogReader::open(directory, LogPosition::default(), Verdict::default()).unwrap();
    let mut analysis = Analysis::new(Timestamp::ZERO);
    while let Some(round) = reader.next_round().unwrap() {
        analysis.round(&round).unwrap();
    }
    carried
        .keys()
        .for_each(|(stamp, _)| analysis.carried(*stamp));
    (reader, analysis.finish())
}

#[test]
fn r8_losers_are_undone_in_descending_gsn_over_all_of_them() {
    let directory = Arc::new(MemoryDirectory::new());
    let (log, manager) = open(&directory, Timestamp::ZERO, LogStart::first());
    let begin = || manager.begin(Options::default(), Duration::ZERO).unwrap();
    let (one, two) = (begin(), begin());
    let mut written = Vec::new();
    for count in [3, 1, 4, 1, 5] {
        // Each call flushes, which lifts both slots' GSNs above all before.
        written.extend(write(&one, &log, count));
        written.extend(write(&two, &log, count));
    }
    log.flush_round().unwrap();
    drop((one, two, manager, log));
    let (reader, outcome) = analyse(&directory, &BTreeMap::new());
    assert_eq!(outcome.losers.len(), 2);
    let (log, _manager) = open(&directory, outcome.highest, reader.start_after(0));
    let mut tape = Tape::new(&log, SlotId(0));
    undo_losers(&log, SlotId(0), reader.files(), &outcome.losers, &mut tape).unwrap();
    written.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(tape.undone, written);
}

#[test]
fn r9_recovery_undoes_carried_records_after_those_in_the_log() {
    let directory = Arc::new(MemoryDirectory::new());
    let (log, manager) = open(&directory, Timestamp::ZERO, LogStart::first());
    let mut tape = Tape::new(&log, SlotId(0));
    let (transaction, mut expected) = long_transaction(&manager, &log, &mut tape);
    tape.carry();
    let later = write(&transaction, &log, 5);
    expected.splice(0..0, later.into_iter().rev());
    let stamp = transaction.stamp().unwrap();
    log.flush_round().unwrap();
    drop((transaction, manager, log));
    let carried = tape.carried;
    let (reader, outcome) = analyse(&directory, &carried);
    assert_eq!(
        outcome
            .losers
            .iter()
            .map(|loser| loser.stamp)
            .collect::<Vec<_>>(),
        [stamp]
    );
    let (log, _manager) = open(&directory, outcome.highest, reader.start_after(0));
    let mut tape = Tape {
        carried,
        ..Tape::new(&log, SlotId(0))
    };
    undo_losers(&log, SlotId(0), reader.files(), &outcome.losers, &mut tape).unwrap();
    assert_eq!(tape.undone, expected);
}
