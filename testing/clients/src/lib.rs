//! Concurrent clients that record what they do and see, and judges of what they recorded.
//!
//! | module | concern |
//! | --- | --- |
//! | [`client`] | a session: one transaction after another, each recorded |
//! | [`run`] | sessions beside each other, over power cuts and kills |
//! | [`intent`] | what transactions on lists are to do, on any store of lists |
//! | [`list`] | lists that are appended to and read: few, many, long forks, skewed writes; judged by the history checker |
//! | [`store`] | how a list lies in a table: as one row in place, one that grows, or a row an element |
//! | [`indexed`] | how a list lies in a table with indexes, and is found by them |
//! | [`bank`] | transfers; the total is constant in every snapshot |
//! | [`counter`] | increments; none is lost |
//! | [`queue`] | elements that go in and out; none is lost, none comes twice |
//!
//! Every workload has sessions that hold a snapshot while others commit, and then look again. What is not checked: README.
#![forbid(unsafe_code)]

pub mod bank;
pub mod client;
pub mod counter;
pub mod indexed;
pub mod intent;
pub mod list;
pub mod queue;
pub mod run;
pub mod store;

pub use run::{Plan, Versions, Workload};

/// The workloads by their names.
pub fn workload(name: &str) -> Option<Box<dyn Workload>> {
    Some(match name {
        "list-few" => Box::new(list::Lists::few()),
        "list-many" => Box::new(list::Lists::many()),
        "list-indexed" => Box::new(list::Lists::indexed()),
        "long-fork" => Box::new(list::Lists::forks()),
        "write-skew" => Box::new(list::Lists::skews()),
        "bank" => Box::new(bank::Bank),
        "counter" => Box::new(counter::Counter),
        "queue" => Box::new(queue::Queue),
        _ => return None,
    })
}

/// Their names.
pub const NAMES: [&str; 8] = [
    "list-few",
    "list-many",
    "list-indexed",
    "long-fork",
    "write-skew",
    "bank",
    "counter",
    "queue",
];
