//! Bugs that are planted on purpose, to see that the tools of `testing` catch them.
//!
//! With the feature `planted`, which no product build has, `VELLUM_PLANTED=name` switches one on when the process begins; without the
//! feature [`has`] is a constant `false`, and the code behind it is not there.
//!
//! `cargo xtask planted` runs them all. A name stands in one place below, and at the one place of the code that it breaks.

/// A mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A row is overwritten though its newest version is not seen.
    NoConflictCheck,
    /// The watermarks are one timestamp too new.
    WatermarkTooNew,
    /// A commit enters the commit log after its timestamp may have been passed by a snapshot.
    CommitLogTooLate,
    /// Rollback leaves every fourth change as it is.
    UndoSkipped,
    /// A rollback to a savepoint does nothing.
    SavepointKept,
    /// A statement sees its own writes.
    OwnCommandSeen,
    /// What was cached of a writer for one snapshot is believed for all.
    LcbCacheStale,
    /// A commit is acknowledged before it is durable.
    AcknowledgedEarly,
    /// Who polls for a commit hears that it is durable before it is.
    PolledEarly,
    /// A round of the log is not synced.
    LogNotSynced,
    /// A checkpoint releases segments of the log before its control file is durable.
    LogReleasedEarly,
    /// Torn pages are not repaired.
    TornPagesKept,
    /// Recovery leaves every eighth record out.
    RedoSkipped,
    /// Recovery does not undo losers.
    LosersKept,
    /// Recovery does not undo the youngest of several losers.
    OneLoserKept,
    /// Nobody looks into graveyards.
    GraveyardSkipped,
    /// Before-images go while somebody needs them.
    DeltasTooEarly,
    /// Pruning a fat row takes one version more than it may.
    PrunedTooMuch,
    /// Tombstones leave the main index although an OLTP snapshot sees the row.
    SettledTooEarly,
    /// Deleted rows are dropped that some snapshot sees.
    DroppedTooEarly,
    /// Before-images that only snapshots of short transactions may need are swept whoever needs them.
    SweptTooEarly,
    /// What a graveyard holds goes though an analytical snapshot sees it.
    PurgedTooEarly,
    /// The newest old version of a fat row gives its place to the next one whoever sees it.
    DisplacedTooMuch,
    /// A body that stands whole in a fat row and has to leave it is kept as that of the next newer version.
    SpilledStale,
    /// An old snapshot goes past versions by a shortcut that is for older ones.
    ShortcutTooFar,
    /// A tree or chain that is adopted is not listed again by a rollback.
    AdoptedForGood,
    /// A ring that grows keeps what lies before its end only, and not what went around it.
    RingCutShort,
    /// A row that changes its place in an index keeps the old entry.
    IndexEntryKept,
    /// A page is taken for what it should be, whatever its checksum is.
    ChecksumIgnored,
    /// A node of a tree is believed as it was read.
    NodesUnchecked,
    /// Rows are dropped without a note for writers with old snapshots.
    DropsUnnoted,
    /// A row that was found dead is dropped without a second look at its chain.
    ChainNotFollowedAgain,
    /// A transaction becomes analytical in the middle of an operation.
    PromotedMidway,
    /// Analytical readers look into the graveyard first, and into the leaf second.
    GraveyardFirst,
    /// Maintenance collects all slots of a round by the watermarks of its first.
    WatermarksStale,
    /// A deleted row is dropped by the birth of its last version, though it had others before.
    BornLate,
    /// Rows that are younger than the oldest snapshot count as younger than every analytical one.
    AfterOldest,
    /// A slot becomes quiet by what a pass saw before, without a second look.
    QuietUnchecked,
    /// A slot stays quiet when its analytical transaction has ended.
    QuietForGood,
    /// A fat row that is turned back leaves its oldest version behind.
    DecomposedShort,
}

/// The bugs by their names.
pub const BUGS: [(&str, Bug); 40] = [
    ("no-conflict-check", Bug::NoConflictCheck),
    ("watermark-too-new", Bug::WatermarkTooNew),
    ("commit-log-too-late", Bug::CommitLogTooLate),
    ("undo-skipped", Bug::UndoSkipped),
    ("savepoint-kept", Bug::SavepointKept),
    ("own-command-seen", Bug::OwnCommandSeen),
    ("lcb-cache-stale", Bug::LcbCacheStale),
    ("acknowledged-early", Bug::AcknowledgedEarly),
    ("polled-early", Bug::PolledEarly),
    ("log-not-synced", Bug::LogNotSynced),
    ("log-released-early", Bug::LogReleasedEarly),
    ("torn-pages-kept", Bug::TornPagesKept),
    ("redo-skipped", Bug::RedoSkipped),
    ("losers-kept", Bug::LosersKept),
    ("one-loser-kept", Bug::OneLoserKept),
    ("graveyard-skipped", Bug::GraveyardSkipped),
    ("deltas-too-early", Bug::DeltasTooEarly),
    ("pruned-too-much", Bug::PrunedTooMuch),
    ("settled-too-early", Bug::SettledTooEarly),
    ("dropped-too-early", Bug::DroppedTooEarly),
    ("swept-too-early", Bug::SweptTooEarly),
    ("purged-too-early", Bug::PurgedTooEarly),
    ("displaced-too-much", Bug::DisplacedTooMuch),
    ("spilled-stale", Bug::SpilledStale),
    ("shortcut-too-far", Bug::ShortcutTooFar),
    ("adopted-for-good", Bug::AdoptedForGood),
    ("ring-cut-short", Bug::RingCutShort),
    ("index-entry-kept", Bug::IndexEntryKept),
    ("checksum-ignored", Bug::ChecksumIgnored),
    ("nodes-unchecked", Bug::NodesUnchecked),
    ("drops-unnoted", Bug::DropsUnnoted),
    ("chain-not-followed-again", Bug::ChainNotFollowedAgain),
    ("promoted-midway", Bug::PromotedMidway),
    ("graveyard-first", Bug::GraveyardFirst),
    ("watermarks-stale", Bug::WatermarksStale),
    ("born-late", Bug::BornLate),
    ("after-oldest", Bug::AfterOldest),
    ("quiet-unchecked", Bug::QuietUnchecked),
    ("quiet-for-good", Bug::QuietForGood),
    ("decomposed-short", Bug::DecomposedShort),
];

/// Whether the process has this bug.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn has(_bug: Bug) -> bool {
    false
}

/// Whether the process has this bug.
///
/// # Panics
/// If `VELLUM_PLANTED` is no name.
#[cfg(feature = "planted")]
#[inline]
pub fn has(bug: Bug) -> bool {
    static PLANTED: std::sync::OnceLock<Option<Bug>> = std::sync::OnceLock::new();
    let planted = PLANTED.get_or_init(|| {
        let name = std::env::var("VELLUM_PLANTED").ok()?;
        let found = BUGS.iter().find(|(other, _)| *other == name);
        Some(found.unwrap_or_else(|| panic!("no bug is called {name}")).1)
    });
    *planted == Some(bug)
}
