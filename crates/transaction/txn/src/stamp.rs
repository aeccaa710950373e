//! The name of a version: who wrote it, written once and never touched at commit.

use vellum_base::{SlotId, Timestamp};

/// The name of one version. Unique for all time (R1): a stamp is drawn once, a command id is never
/// used twice within its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionStamp {
    /// The slot whose commit log answers for the version.
    pub slot: SlotId,
    /// The writing transaction.
    pub stamp: Timestamp,
    /// The statement (or finer step) of the transaction that wrote it.
    pub command: u32,
}

impl VersionStamp {
    /// A name from its parts.
    #[inline]
    pub const fn new(slot: SlotId, stamp: Timestamp, command: u32) -> Self {
        Self {
            slot,
            stamp,
            command,
        }
    }
}
