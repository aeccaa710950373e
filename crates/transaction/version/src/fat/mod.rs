//! Fat rows: old versions that stand in the row itself, so that those which nobody sees can be found and thrown away
//! without looking anywhere else.
//!
//! Paper: LeanStore §3.3 (FatTuple), §3.5. Design and cases: docs/design/0013-old-snapshots.md.
//!
//! | question | module |
//! | --- | --- |
//! | what are its bytes | `layout` |
//! | which versions can go, and what becomes of the others | `prune` |
//! | which version does a snapshot see | `resolve` |
//! | when does a row turn fat | `estimate` |
//! | what does an update do to it, how does it turn fat | `update`, `form`, `convert` |
//! | which version gives its place to the next one | `displace` |
//! | what becomes of what does not fit it | `spill` |
//! | how does it turn back | `decompose` |

mod convert;
pub(crate) mod decompose;
mod displace;
mod estimate;
pub(crate) mod form;
pub mod layout;
pub mod prune;
mod resolve;
mod spill;
mod trim;
pub(crate) mod update;

pub(crate) use resolve::at_hand;
pub(crate) use trim::trim;
