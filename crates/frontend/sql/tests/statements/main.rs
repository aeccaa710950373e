//! Statements through sessions, in process.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod advisory;
mod catalogs;
mod changes;
mod channels;
mod client;
mod copies;
mod corpus;
mod cursors;
mod deferred;
mod definitions;
mod direct;
mod drops;
mod enums;
mod filled;
mod foreign;
mod forms;
mod gates;
mod general;
mod indexes;
mod isolation;
mod keys;
mod like;
mod loads;
mod locks;
mod parts;
mod promoted;
mod protocol;
mod queries;
mod roles;
mod sequences;
mod sessions;
mod statistics;
mod temporary;
mod views;
mod waits;
