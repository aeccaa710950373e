//! What the embedded API must answer, executable: an MVCC store over standard maps, random
//! histories, and a runner that compares every answer of a [`Subject`] with the model's.
//!
//! | module | concern |
//! | --- | --- |
//! | [`step`] | what a history is made of: steps and answers |
//! | [`rows`] | versions of the rows of one table, the visibility rule, first writer wins |
//! | [`model`] | transactions over tables: the answers that are right |
//! | [`cursor`] | where a cursor stands and what it sees |
//! | [`subject`] | what is compared with the model; the model as a subject of itself |
//! | [`defect`] | the mistakes that a wrong subject can make, to show that the comparison sees them |
//! | [`generate`] | random histories from a seed |
//! | [`engine`] | Vellum's engine as a subject |
//! | [`draw`] | keys and values that collide, share prefixes and reach the limits |
//! | [`run`] | applying a history to both, comparing, reporting |
//! | [`shrink`] | making a failing history small |
//!
//! Not checked here (see the README): speed, memory, real concurrency (one thread interleaves the
//! transactions), anomalies of parallel clients.
#![forbid(unsafe_code)]

pub mod cursor;
pub mod defect;
pub mod draw;
pub mod engine;
pub mod generate;
mod given;
pub mod model;
pub mod rows;
pub mod run;
pub mod shrink;
pub mod step;
pub mod subject;

pub use defect::Defect;
pub use generate::Profile;
pub use model::Model;
pub use run::{Failure, Outcome, run_history};
pub use step::{Answer, Operation, Refusal, Step};
pub use subject::Subject;
