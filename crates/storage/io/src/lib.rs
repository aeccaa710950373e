//! Files of a database directory, behind two traits: the only crate that asks the operating system
//! for them.
//!
//! | directory | what for |
//! | --- | --- |
//! | [`RealDirectory`] | the file system, with direct I/O where it is possible |
//! | [`MemoryDirectory`] | tests that want files and nothing else |
//! | [`OverlayDirectory`] | working on another directory's files without changing them |
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
//! Not here: threads (the layers above batch their writes, real/ring.rs has many under way), what files mean.
#![deny(unsafe_code)]

mod aligned;
#[cfg(test)]
mod contract;
mod directory;
mod exact;
mod file_limit;
mod lock;
mod memory;
mod overlay;
mod poison;
mod real;
mod simulated;

pub use aligned::{ALIGNMENT, AlignedBuf, is_aligned};
pub use directory::{Directory, Entry, EntryKind, File, OpenOptions, check_name, parent_of};
pub use file_limit::outlive_file_limits;
pub use lock::LockGuard;
pub use memory::MemoryDirectory;
pub use overlay::OverlayDirectory;
pub use poison::Poison;
pub use real::RealDirectory;
pub use simulated::{
    Call, Counts, Fault, FaultError, Keep, Lie, PowerCut, SimulatedDirectory, SyncObserver, Torn,
    TraceEntry, WriteLie,
};

/// The seed of a random test: `VELLUM_SEED`, or a fresh one; printed with how to use it again.
#[cfg(test)]
pub(crate) fn test_seed() -> u64 {
    let seed = vellum_base::replay::seed();
    println!("to replay: VELLUM_SEED={seed} cargo test -p vellum-io <name of the test>");
    seed
}
