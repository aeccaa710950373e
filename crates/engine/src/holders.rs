//! Who holds old versions back.

use crate::database::Database;
use crate::error::Result;
use crate::transaction::Transaction;
use crate::versions::PAGES_MAX;
use std::time::Duration;
use vellum_version::Tally;

/// What tells a transaction from all others since the database was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId {
    slot: u16,
    number: u64,
}

impl TransactionId {
    /// A number that no other transaction has while the database is open; later ones of the same slot have larger ones. Its low 32 bits are those of no other
    /// transaction that is open.
    pub fn number(self) -> u64 {
        self.number << 16 | u64::from(self.slot)
    }
}

impl std::fmt::Display for TransactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.slot, self.number)
    }
}

impl From<vellum_txn::TransactionId> for TransactionId {
    fn from(id: vellum_txn::TransactionId) -> Self {
        Self {
            slot: id.slot.get(),
            number: id.number,
        }
    }
}

/// An open transaction whose snapshot keeps old versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Which: [`Transaction::id`].
    pub transaction: TransactionId,
    /// It counts as analytical: what it needs is in no OLTP transaction's way.
    pub analytical: bool,
    /// It has written.
    pub writer: bool,
    /// The clock when its oldest snapshot was drawn.
    pub snapshot: u64,
    /// Ticks of the clock since.
    pub age_ticks: u64,
    /// How long it has been known to be open, within a maintenance step (a twentieth of a second).
    pub age: Duration,
    /// Old versions that are kept for this transaction or for older ones, and not for any younger: about what would go if
    /// these ended. Those in rows and the marks of deleted rows, in tables and graveyards, included; so are pages of dropped tables and
    /// indexes, each of which counts as one (those of their rows' large values where the policy is not to spill).
    pub versions: u64,
    /// Bytes of these.
    pub version_bytes: u64,
    /// All were counted. `false`: there are more in rows, or more deleted rows, than one look goes through, or some in rows are not in memory, or pages of a dropped table are not
    /// counted yet, and those are missing in the two figures above.
    pub complete: bool,
}

impl Transaction {
    /// What tells this transaction from all others; [`Database::holders`] names it by this.
    pub fn id(&self) -> TransactionId {
        self.inner().id().into()
    }
}

impl Database {
    /// The open transactions, oldest snapshot first: the first is what keeps the oldest versions. (Those that are open when what they keep has been looked
    /// for.)
    ///
    /// Costs some thirty nanoseconds a worker slot in use, for each holder some microseconds a slot that has made
    /// versions, and a look at up to 4,096 pages for deleted rows, and as many for versions in rows (some ten milliseconds).
    ///
    /// # Errors
    /// Storage errors.
    pub fn holders(&self) -> Result<Vec<Holder>> {
        let engine = self.engine();
        let before = engine.manager.clock().now();
        if engine.manager.holders().is_empty() {
            return Ok(Vec::new());
        }
        let mut holders = Vec::new();
        let domain = engine.manager.domain();
        let (pinned, complete) = engine.store.pinned_by(domain, before, PAGES_MAX, || {
            holders = engine.manager.holders();
            holders.clone()
        })?;
        let now = engine.manager.clock().now();
        let describe = |(holder, pinned): (&vellum_txn::Holder, Tally)| Holder {
            transaction: holder.id.into(),
            analytical: holder.olap,
            writer: holder.writer,
            snapshot: holder.oldest.get(),
            age_ticks: now.get().saturating_sub(holder.oldest.get()),
            age: holder.age,
            versions: pinned.count,
            version_bytes: pinned.bytes,
            complete,
        };
        Ok(holders.iter().zip(pinned).map(describe).collect())
    }
}
