//! What every layer of Vellum agrees on: identifiers, byte codec, checksums, storage errors, the
//! one place that reads clocks, a seedable random generator, and maps whose order is the same in every run.
//!
//! Nothing here knows of pages' contents, of logs or of transactions.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod clock;
pub mod codec;
pub mod error;
pub mod ids;
pub mod maps;
pub mod planted;
pub mod random;
pub mod replay;

pub use error::{Result, StorageError};
pub use ids::{Gsn, Lsn, PageId, SlotId, TableId, Timestamp};
