//! How a commit becomes visible: the product's protocol, and two that it is measured against.
//!
//! | protocol | a snapshot is | a version is visible | a commit |
//! | --- | --- | --- | --- |
//! | [`Protocol::Osic`] | a clock value | if its writer's slot committed later, below it (`visibility`) | appends to its commit log |
//! | [`Protocol::ReadView`] | a clock value and the writers that were active | if its writer was not (`read_view`) | leaves the list of writers |
//! | [`Protocol::Stamping`] | a clock value | if the commit timestamp in its row lies below (`stamping`) | visits every row that it wrote |
//!
//! Paper: Scalable and Robust Snapshot Isolation, §2.4 (Table 1), §4 (variants Basic and NoSteal).
//! Differences: all three keep commit logs and watermarks, which the collector asks: what is compared is how
//! transactions begin, look and commit, not who removes garbage. So whatever the others call visible must be what
//! the commit log calls visible.
//!
//! Invariants:
//! - I1 Every protocol sees a commit exactly from the snapshots above its commit timestamp: a snapshot drawn by one
//!   could be judged by another.
//!
//! A transaction of the product's protocol carries no [`Policy`]: that is the one branch it pays, on a field of its own.

mod read_view;
mod stamping;

pub(crate) use read_view::ActiveWriters;
pub use stamping::{CommitStamper, WriteSet};

use read_view::Views;
use std::cell::RefCell;
use vellum_base::{PageId, Timestamp};

/// How a commit becomes visible. Chosen when a database is opened, for all of its transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Ordered snapshots, instant commit: the product's.
    #[default]
    Osic,
    /// A snapshot copies the list of writers that are active.
    ReadView,
    /// A commit writes its timestamp into every row that it wrote.
    Stamping,
}

/// What a transaction of another protocol than the product's has to remember.
#[derive(Debug)]
pub(crate) enum Policy {
    /// What its snapshots must not see.
    ReadView(RefCell<Views>),
    /// What it wrote.
    Stamping(RefCell<WriteSet>),
}

impl Policy {
    /// What a transaction of `protocol` begins with; none for the product's.
    pub(crate) fn new(protocol: Protocol) -> Option<Box<Self>> {
        match protocol {
            Protocol::Osic => None,
            Protocol::ReadView => Some(Box::new(Self::ReadView(RefCell::default()))),
            Protocol::Stamping => Some(Box::new(Self::Stamping(RefCell::default()))),
        }
    }

    /// Whether `snapshot` sees what `stamp`, another transaction, wrote; none where the commit log must say.
    #[inline]
    pub(crate) fn sees(&self, stamp: Timestamp, snapshot: Timestamp) -> Option<bool> {
        match self {
            Self::ReadView(views) => Some(views.borrow().sees(stamp, snapshot)),
            Self::Stamping(_) => None,
        }
    }

    /// Notes a row that was written.
    pub(crate) fn wrote(&self, tree: PageId, key: &[u8], command: u32) {
        if let Self::Stamping(writes) = self {
            writes.borrow_mut().add(tree, key, command);
        }
    }

    /// Forgets rows that were written by `command` or later: they are reverted, and their trees may go.
    pub(crate) fn reverted(&self, command: u64) {
        if let Self::Stamping(writes) = self {
            writes.borrow_mut().forget_from(command);
        }
    }

    /// Forgets the view of a snapshot that is closed.
    pub(crate) fn closed(&self, snapshot: Timestamp) {
        if let Self::ReadView(views) = self {
            views.borrow_mut().close(snapshot);
        }
    }
}
