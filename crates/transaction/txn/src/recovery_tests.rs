//! Verdicts on hand-made rounds: each rule of `recovery` on the smallest log that needs it.

use crate::record::{RedoBytes, TransactionRecord};
use crate::recovery::{Analysis, Outcome};
use vellum_base::{Gsn, Lsn, PageId, SlotId, Timestamp};
use vellum_wal::{
    Chunk, ChunkPosition, FLAG_COMPENSATION, FLAG_UNDOABLE, LogPosition, RoundData, Verdict,
};

const SLOT: SlotId = SlotId(3);

fn ts(value: u64) -> Timestamp {
    Timestamp(value)
}

/// The bytes of a record, as the log lays them out.
fn bytes(kind: u8, flags: u8, gsn: u64, redo: &[u8], undo: &[u8]) -> Vec<u8> {
    let length = 32 + redo.len() + undo.len();
    let mut out = (length as u32).to_le_bytes().to_vec();
    out.extend([kind, flags]);
    out.extend((redo.len() as u16).to_le_bytes());
    for word in [gsn, PageId::ZERO.get(), PageId::ZERO.get()] {
        out.extend(word.to_le_bytes());
    }
    out.extend(redo);
    out.extend(undo);
    out
}

fn mark(gsn: u64, record: TransactionRecord) -> Vec<u8> {
    bytes(
        record.header(Gsn(gsn)).kind,
        0,
        gsn,
        RedoBytes::of(&record).as_slice(),
        &[],
    )
}

fn begin(gsn: u64, stamp: u64) -> Vec<u8> {
    mark(
        gsn,
        TransactionRecord::Begin {
            stamp: ts(stamp),
            slot: SLOT,
        },
    )
}

fn commit(gsn: u64, stamp: u64, commit_ts: u64) -> Vec<u8> {
    mark(
        gsn,
        TransactionRecord::Commit {
            stamp: ts(stamp),
            commit_ts: ts(commit_ts),
        },
    )
}

fn abort(gsn: u64, stamp: u64) -> Vec<u8> {
    mark(gsn, TransactionRecord::Abort { stamp: ts(stamp) })
}

fn change(gsn: u64, stamp: u64) -> Vec<u8> {
    let undo = [stamp.to_le_bytes().as_slice(), &0_u32.to_le_bytes()].concat();
    bytes(20, FLAG_UNDOABLE, gsn, b"", &undo)
}

fn compensation(gsn: u64, stamp: u64, compensated: u64) -> Vec<u8> {
    let undo = [stamp.to_le_bytes(), compensated.to_le_bytes()].concat();
    bytes(20, FLAG_COMPENSATION, gsn, b"", &undo)
}

fn round(incarnation: u64, number: u64, c: u64, m: u64, records: &[Vec<u8>]) -> RoundData {
    let chunk = Chunk {
        slot: SLOT,
        start_lsn: Lsn(1000 * number),
        stamp: Timestamp::ZERO,
        bytes: records.concat(),
        position: ChunkPosition {
            segment: number,
            ..ChunkPosition::default()
        },
    };
    let position = LogPosition::default();
    RoundData {
        number,
        incarnation,
        c: ts(c),
        m: Gsn(m),
        position,
        chunks: vec![chunk],
    }
}

fn judge(rounds: &[RoundData]) -> Outcome {
    let mut analysis = Analysis::new(ts(1));
    for round in rounds {
        analysis.round(round).expect("rounds in order");
    }
    analysis.finish()
}

fn losers(rounds: &[RoundData]) -> Vec<u64> {
    judge(rounds)
        .losers
        .iter()
        .map(|loser| loser.stamp.get())
        .collect()
}

#[test]
fn r8_commit_at_or_above_c_is_a_loser_and_below_c_a_winner() {
    let records = [begin(1, 10), change(2, 10), commit(3, 10, 20)];
    assert_eq!(losers(&[round(1, 1, 20, 3, &records)]), [10]);
    assert_eq!(losers(&[round(1, 1, 21, 3, &records)]), []);
}

#[test]
fn r8_commit_above_m_does_not_exist_although_it_was_written() {
    let records = [begin(1, 10), change(2, 10), commit(3, 10, 20)];
    let loser = judge(&[round(1, 1, 21, 2, &records)]).losers[0];
    assert_eq!(loser.stamp, ts(10));
    assert_eq!(
        loser.end,
        Lsn(1000 + 42 + 44),
        "begin and change exist, the commit does not"
    );
    assert_eq!(
        losers(&[round(1, 1, 21, 0, &records)]),
        [],
        "and here nothing does"
    );
}

#[test]
fn r8_a_later_round_of_the_same_incarnation_lets_earlier_records_exist() {
    let records = [begin(1, 10), change(2, 10), commit(3, 10, 20)];
    let rounds = [round(1, 1, 15, 2, &records), round(1, 2, 30, 3, &[])];
    assert_eq!(losers(&rounds), []);
}

#[test]
fn r8_a_later_incarnation_does_not() {
    let records = [begin(1, 10), change(2, 10), commit(3, 10, 20)];
    let rounds = [
        round(1, 1, 15, 3, &records),
        round(2, 2, 100, 50, &[begin(40, 90)]),
    ];
    let outcome = judge(&rounds);
    assert_eq!(
        outcome
            .losers
            .iter()
            .map(|l| l.stamp.get())
            .collect::<Vec<_>>(),
        [10, 90]
    );
    assert_eq!(outcome.losers[0].incarnation, 1);
    assert_eq!(
        (outcome.verdict.incarnation, outcome.verdict.c),
        (2, ts(100))
    );
}

#[test]
fn r8_recovery_that_was_cut_off_goes_on_below_what_it_compensated() {
    let first = round(
        1,
        1,
        15,
        4,
        &[begin(1, 10), change(2, 10), change(3, 10), change(4, 10)],
    );
    let undone = [compensation(40, 10, 4), compensation(41, 10, 3)];
    let outcome = judge(&[first.clone(), round(2, 2, 100, 41, &undone)]);
    assert_eq!(
        (outcome.losers.len(), outcome.losers[0].void_from),
        (1, Gsn(3))
    );
    assert_eq!(
        outcome.losers[0].incarnation, 1,
        "its records are where it ran"
    );
    // Compensation above the second incarnation's M does not exist.
    let outcome = judge(&[first.clone(), round(2, 2, 100, 40, &undone)]);
    assert_eq!(outcome.losers[0].void_from, Gsn(4));
    // And an abort ends it.
    assert_eq!(losers(&[first, round(2, 2, 100, 42, &[abort(42, 10)])]), []);
}

#[test]
fn r8_recorded_verdict_that_contradicts_the_log_is_corruption() {
    let first = round(1, 1, 15, 4, &[begin(1, 10)]);
    let named = |c| Verdict {
        incarnation: 1,
        last_round: 1,
        c: ts(c),
        m: Gsn(4),
    };
    let second = |c| {
        round(
            2,
            2,
            100,
            50,
            &[mark(40, TransactionRecord::Verdict(named(c)))],
        )
    };
    let mut analysis = Analysis::new(ts(1));
    analysis.round(&first).unwrap();
    assert!(analysis.round(&second(16)).is_err());
    assert_eq!(losers(&[first, second(15)]), [10]);
}

#[test]
fn r1_the_clock_starts_above_every_timestamp_seen_even_of_what_does_not_exist() {
    assert_eq!(
        judge(&[round(1, 1, 15, 0, &[commit(1, 10, 77)])]).highest,
        ts(77)
    );
    assert_eq!(
        judge(&[round(1, 1, 15, 1, &[begin(1, 99)])]).highest,
        ts(99)
    );
    assert_eq!(judge(&[round(1, 1, 500, 1, &[])]).highest, ts(500));
    assert_eq!(Analysis::new(ts(9)).finish().highest, ts(9));
}

#[test]
fn r9_carried_records_of_an_ended_transaction_make_no_loser() {
    let mut analysis = Analysis::new(ts(1));
    analysis
        .round(&round(1, 1, 30, 3, &[commit(3, 10, 20), change(2, 11)]))
        .unwrap();
    analysis.carried(ts(10));
    analysis.carried(ts(11));
    analysis.carried(ts(12));
    let outcome = analysis.finish();
    let found: Vec<_> = outcome
        .losers
        .iter()
        .map(|l| (l.stamp.get(), l.slot))
        .collect();
    assert_eq!(found, [(11, Some(SLOT)), (12, None)]);
}

#[test]
fn regress_parts_of_a_flush_that_repeat_the_cut_before_them_do_not_judge() {
    let parts = |last: bool| {
        let mut rounds = vec![
            round(1, 1, 20, 3, &[begin(3, 10)]),
            // Two parts of one flush, and its last part.
            round(
                1,
                2,
                20,
                3,
                &[change(4, 10), commit(5, 10, 25), begin(6, 27)],
            ),
            round(1, 3, 20, 3, &[change(7, 27)]),
        ];
        if last {
            rounds.push(round(1, 4, 30, 8, &[abort(8, 27)]));
        }
        rounds
    };
    assert_eq!(losers(&parts(true)), [] as [u64; 0]);
    // Without the last part nothing of the others counts.
    assert_eq!(losers(&parts(false)), [10]);
}

#[test]
fn regress_carried_records_of_a_transaction_that_ended_in_a_later_segment_make_no_loser() {
    // The log has the end of the rollback only.
    let mut analysis = Analysis::new(ts(1));
    let records = [compensation(3, 10, 1), abort(4, 10)];
    analysis.round(&round(1, 1, 30, 4, &records)).unwrap();
    analysis.carried(ts(10));
    assert_eq!(analysis.finish().losers.len(), 0);
    // It has all of it, because the checkpoint that carried did not come to its end.
    let mut analysis = Analysis::new(ts(1));
    let records = [begin(1, 10), change(2, 10)];
    analysis.round(&round(1, 1, 5, 2, &records)).unwrap();
    analysis
        .round(&round(1, 2, 30, 3, &[commit(3, 10, 20)]))
        .unwrap();
    analysis.carried(ts(10));
    assert_eq!(analysis.finish().losers.len(), 0);
}

#[test]
fn rounds_out_of_order_are_corruption() {
    for wrong in [
        round(1, 1, 20, 5, &[]),
        round(1, 2, 20, 3, &[]),
        round(1, 2, 10, 5, &[]),
    ] {
        let mut analysis = Analysis::new(ts(1));
        analysis.round(&round(1, 1, 20, 5, &[])).unwrap();
        assert!(analysis.round(&wrong).is_err(), "{wrong:?}");
    }
}
