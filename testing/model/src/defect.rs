//! Mistakes that a wrong subject makes on purpose. A comparison that cannot tell such a subject
//! from the model proves nothing about a right one.

/// One mistake. Each is a line in `rows`, `model` or `cursor`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A write over a row that a committed concurrent transaction wrote is let through.
    ForgetsCommittedConflict,
    /// A write over a row that an open transaction wrote is let through.
    ForgetsOpenConflict,
    /// An insert over a concurrent delete is let through.
    ForgetsConflictOnTombstone,
    /// A deleted row is returned with an empty value.
    ShowsTombstone,
    /// A commit at exactly the snapshot's time is taken for a part of it.
    SeesTheNextCommit,
    /// Rows of open transactions are seen.
    SeesUncommitted,
    /// A cursor sees what its transaction writes after it was opened.
    CursorSeesLaterWrites,
    /// A cursor of a read-committed transaction follows the transaction's newer snapshots.
    CursorForgetsItsSnapshot,
    /// Rollback to a savepoint forgets the oldest write after it.
    SavepointKeepsAWrite,
    /// Rollback to a savepoint undoes one write too many.
    SavepointLosesAWrite,
    /// Rollback leaves deleted rows deleted.
    RollbackForgetsDeletes,
    /// Read committed keeps the snapshot of its begin.
    ReadCommittedIsStale,
    /// Snapshot isolation takes a new snapshot with each operation.
    SnapshotIsFresh,
    /// A backward scan leaves out the last row of its range.
    BackwardSkipsTheLast,
    /// A count includes deleted rows.
    CountsTombstones,
    /// An update in place changes one byte too few.
    UpdateFallsShort,
    /// A table that was dropped and created again shows its old rows.
    RecreatedTableKeepsRows,
    /// A table that an open transaction created is listed for everybody.
    ListsUncommittedTables,
    /// A power cut loses a transaction that was acknowledged.
    LosesAcknowledged,
    /// A power cut loses a transaction in the middle of those that it keeps.
    LosesFromTheMiddle,
    /// A power cut leaves half of a transaction.
    KeepsHalfATransaction,
    /// A backup lacks the last commit.
    CopiesThePast,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::ForgetsCommittedConflict,
        Self::ForgetsOpenConflict,
        Self::ForgetsConflictOnTombstone,
        Self::ShowsTombstone,
        Self::SeesTheNextCommit,
        Self::SeesUncommitted,
        Self::CursorSeesLaterWrites,
        Self::CursorForgetsItsSnapshot,
        Self::SavepointKeepsAWrite,
        Self::SavepointLosesAWrite,
        Self::RollbackForgetsDeletes,
        Self::ReadCommittedIsStale,
        Self::SnapshotIsFresh,
        Self::BackwardSkipsTheLast,
        Self::CountsTombstones,
        Self::UpdateFallsShort,
        Self::RecreatedTableKeepsRows,
        Self::ListsUncommittedTables,
        Self::LosesAcknowledged,
        Self::LosesFromTheMiddle,
        Self::KeepsHalfATransaction,
        Self::CopiesThePast,
    ];
}
