//! Arbitrary and damaged bytes for everything that reads bytes.
//!
//! | module | concern |
//! | --- | --- |
//! | [`corpus`] | a database whose files hold pages and records of most kinds; pages and records cut out of them |
//! | [`mutate`] | makes other bytes of them |
//! | [`targets`] | the decoders, each as a function of bytes |
//! | [`relation`] | the decoders of rows, keys and schemas of SQL |
//! | [`sql`] | statements that nobody would write, at sessions of a database |
//! | [`double_write`] | the double-write area with something changed, and pages that need it |
//! | [`kept`] | real files that earlier commits wrote: `testing/corpus/decoders` |
//! | [`misplaced`] | writes that land elsewhere, or nowhere |
//! | [`each`] | every byte of a page and of a chunk of each kind, before the pool and the log's reader |
//! | [`kinds`] | every kind of record of the log, each in a chunk of its own |
//! | [`aged`] | an open database with old snapshots, whose disk is changed under it |
//! | [`damage`] | copies of the files with something changed, with and without the checksum that it then needs; opened and read |
//! | [`garbage`] | a database with garbage that nobody has freed, and pages of that changed |
//!
//! What is not checked: README.
#![forbid(unsafe_code)]

pub mod aged;
pub mod corpus;
pub mod damage;
pub mod double_write;
pub mod each;
pub mod garbage;
pub mod kept;
pub mod kinds;
pub mod misplaced;
pub mod mutate;
pub mod relation;
#[cfg(feature = "sql")]
pub mod sql;
pub mod targets;
