//! The B+-tree of Vellum: ordered byte keys to byte payloads, larger than memory, logged.
//!
//! Paper: LeanStore (optimistic lock coupling, slotted pages with key heads, fence keys, prefix
//! truncation). Differences: pages are reached by page id through the pool, not by swizzled
//! pointers, and leaves have no sibling links: a cursor copies a leaf and goes on at its fence.
//!
//! | call | what |
//! | --- | --- |
//! | `Tree::create(context, slot, kind, entry)`, `Tree::open(context, root, kind)` | a tree is its root page |
//! | `tree.get(key, &mut Vec<u8>) -> Result<bool>`, `find_leaves` | optimistic lookups |
//! | `tree.read_leaf(Seek, &mut LeafCopy)`, `still_current` | cursors: a leaf at a time |
//! | `tree.write(key) -> LeafWrite` | the leaf of a key, latched; `insert`, `replace`, `patch`, `remove` with `Logging` |
//! | `tree.make_room(key, payload_len, slot)`, `tree.rebalance(key, slot)` | structure changes |
//! | `tree.appender()` | right-edge appends |
//! | `tree.remove_below(key, budget, slot)`, `remove_from` | ranges |
//! | `tree.bulk_loader(fill)` | sorted loads into a new tree, written without logging the leaves |
//! | `tree.drop_pages(slot, budget, entry)` | gives all pages back |
//! | `overflow::Writer`, `Reader`, `free` | payloads beyond a page |
//! | `detached::DetachedWriter`, `Detached::link` | the same, written without logging the payload |
//! | `Redo::apply(header, redo)` | recovery |
//! | `tree.watch()`, `count_pages`, `watched_pages` | how many pages it has |
//! | `tree.verify(..)` | checks a quiet tree |
#![forbid(unsafe_code)]

mod append;
mod bulk;
mod change;
mod clean;
mod context;
mod descend;
pub mod detached;
mod merge;
mod near;
pub mod node;
pub mod overflow;
mod prefetch;
mod range;
mod read;
pub mod record;
mod redo;
mod separators;
mod split;
#[cfg(test)]
#[cfg_attr(
    any(loom, shuttle),
    allow(dead_code, reason = "those builds run some of the tests")
)]
mod testing;
mod tree;
mod verify;
mod watch;
mod write;

pub use append::Appender;
pub use bulk::BulkLoader;
pub use context::{
    Cleaner, ImagesRequired, Journal, RowFormat, TreeContext, Verdict, change_log_bytes,
    good_inline_payload, max_inline_payload, max_key, row_log_bytes,
};
pub use near::{LeafHints, Position};
pub use read::{LeafCopy, Seek};
pub use redo::Redo;
pub use tree::{Entry, Tree, TreeKind};
pub use verify::{Finding, RowVisitor, TreeStatistics};
pub use watch::PageCount;
pub use write::{Fill, LeafWrite, Logged, Logging, RowRedo};

#[cfg(test)]
mod tests;
