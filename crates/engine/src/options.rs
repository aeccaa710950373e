//! What a transaction is begun with.

use std::time::Duration;
pub use vellum_txn::{Class, Durability, Isolation};

/// How [`Database::begin_with`](crate::Database::begin_with) begins a transaction.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// What the transaction sees. Default: [`Isolation::Snapshot`].
    pub isolation: Isolation,
    /// What a returned commit promises. Default: [`Durability::Sync`].
    pub durability: Durability,
    /// Refuse writes; such a transaction writes no log and never conflicts.
    pub read_only: bool,
    /// Whether it is analytical. Default: [`Class::Auto`], found out while it lives (see
    /// [`Config::promote_after_ticks`](crate::Config::promote_after_ticks)). A declared class never changes: an old
    /// [`Class::Oltp`] transaction keeps what it does not see in the way of all others.
    pub class: Class,
    /// How long to wait for a worker slot; `None`: [`Config::slot_timeout`](crate::Config::slot_timeout).
    pub slot_timeout: Option<Duration>,
    /// It leaves the slots that are kept back ([`Config::slots_reserved`](crate::Config::slots_reserved)) to others.
    pub leaves_reserved: bool,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::Snapshot,
            durability: Durability::Sync,
            read_only: false,
            class: Class::Auto,
            slot_timeout: None,
            leaves_reserved: false,
        }
    }
}

impl TransactionOptions {
    /// Sets what the transaction sees.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets what a returned commit promises.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Refuses writes.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Declares whether it is analytical.
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Leaves the slots that are kept back to others.
    #[must_use]
    pub fn leaves_reserved(mut self, leaves: bool) -> Self {
        self.leaves_reserved = leaves;
        self
    }

    /// Limits the wait for a worker slot.
    #[must_use]
    pub fn slot_timeout(mut self, timeout: Duration) -> Self {
        self.slot_timeout = Some(timeout);
        self
    }
}
