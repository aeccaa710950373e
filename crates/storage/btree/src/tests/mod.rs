//! Tests of whole trees.

#[cfg(not(any(loom, shuttle)))]
mod bulk_append;
#[cfg(not(any(loom, shuttle)))]
mod bulk_crash;
#[cfg(not(any(loom, shuttle)))]
mod chains;
#[cfg(not(any(loom, shuttle)))]
mod cleaning;
#[cfg(not(loom))]
mod concurrent;
#[cfg(not(any(loom, shuttle)))]
mod detached;
#[cfg(not(any(loom, shuttle)))]
mod glimpses;
#[cfg(not(any(loom, shuttle)))]
mod merging;
#[cfg(not(any(loom, shuttle)))]
mod model;
#[cfg(not(any(loom, shuttle)))]
mod near;
#[cfg(not(any(loom, shuttle)))]
mod ranges;
#[cfg(not(any(loom, shuttle)))]
mod redo;
#[cfg(not(any(loom, shuttle)))]
mod stale_child;
