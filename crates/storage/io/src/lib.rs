//! Files of a database directory, behind two traits: the only crate that asks the operating system
//! for them.
//!
//! | directory | what for |
//! | --- | --- |
//! | [`RealDirectory`] | the file system, with direct I/O where it is possible |
//! | [`MemoryDirectory`] | tests that want files and nothing else |
//! | [`SimulatedDirectory`] | crash tests: power cuts, torn and reordered writes, faults, full disks |
//!
//! Invariants:
//! - I1 Names are relative paths with `/`, without `..`; nothing outside the directory is touched.
//! - I2 What [`File::sync_data`] returned `Ok` for survives a power cut, and nothing else
//!   is promised to. A name (create, rename, remove) survives once [`Directory::sync_dir`] of its
//!   parent returned `Ok`.
//! - I3 After a failed sync, nothing more is changed through the directory ([`Poison`]).
//!
//! What is assumed of the medium: docs/media.md. Why it is built so: docs/design/0002-io.md.
//!
//! Not here: threads and queues (the layers above batch their writes), what files mean.
#![forbid(unsafe_code)]

mod aligned;
mod directory;
mod exact;
mod lock;
mod memory;
mod poison;

pub use aligned::{ALIGNMENT, AlignedBuf, is_aligned};
pub use directory::{Directory, File, OpenOptions, check_name, parent_of};
pub use lock::LockGuard;
pub use memory::MemoryDirectory;
pub use poison::Poison;
