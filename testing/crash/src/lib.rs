//! Tools that break a database on purpose and look at what is left.
//!
//! | module | concern |
//! | --- | --- |
//! | [`fault`] | calls of the disk that fail, once or for good, and full disks |
//! | [`kill`] | a child process that is killed at random instants |
//! | [`load`] | the load that is killed |
//! | [`ledger`] | what the child acknowledged, and what must be found |
//! | [`power`] | power cuts at every I/O call of a workload on a simulated disk, also during recovery |
//! | [`syncs`] | which syncs a store makes, and the wrecks that recoveries begin at |
//! | [`scene`] | runs in which a sync is taken away, or passed by a write, and the power cut |
//! | [`sites`] | which syncs stand in the product's source |
//! | [`mod@reference`] | a small durable store, right or wrong on purpose: it tests the tools |
//! | [`workload`] | the workloads that are cut |
//!
//! The tests are named after the rows of the table of faults in the design. What is not checked: README.
#![forbid(unsafe_code)]

pub mod fault;
pub mod kill;
pub mod ledger;
pub mod load;
pub mod power;
pub mod reference;
pub mod scene;
pub mod sites;
pub mod syncs;
pub mod workload;
