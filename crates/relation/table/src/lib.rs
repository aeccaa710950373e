//! Tables: a tree of versioned rows, the indexes beside it, and how both change over time.
#![forbid(unsafe_code)]

mod ahead;
mod error;
mod key_description;
mod large;
mod rows;
mod shape;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use ahead::AHEAD_MAX;
pub use error::{Result, TableError};
pub use key_description::{KeyDescription, KeyPart, PARTS_MAX, Source, prefix_end};
pub use rows::{Buffers, IndexFiller, Mode, Rows, revert_to};
pub use shape::{Index, Shape, ShapeChange};
