//! Messages of the PostgreSQL protocol, version 3, as bytes.
//!
//! Layout: every message is a kind (one byte), a length (big-endian i32 that counts itself) and a body; the first
//! message of a connection has no kind. Text is UTF-8 and ends in a zero byte.
//!
//! | module | concern |
//! | --- | --- |
//! | [`inbound`] | bytes that arrived, cut into frames |
//! | [`reader`] | fields of a body, in order |
//! | [`request`] | what a client asks, after login |
//! | [`startup`] | the first packet of a connection |
//! | [`outbound`] | answers, gathered until they are flushed |
//! | [`report`] | errors and notices with their fields |
//!
//! Invariants:
//! - W1: no count or length from the wire is believed before the bytes that it promises are there: memory that a client makes
//!   us take is at most twice what it sent.
//! - W2: a body is decoded to its last byte; what is left over is an error.
//!
//! Not here: what an answer is (connection/), values of types (crate `vellum-sql`).

pub mod inbound;
pub mod outbound;
pub mod reader;
pub mod report;
pub mod request;
pub mod startup;

/// Longest message before login, in bytes with its length word.
pub const LOGIN_MESSAGE_BYTES_MAX: usize = 10_000;
/// Longest message that carries names and numbers only, as in PostgreSQL.
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;
