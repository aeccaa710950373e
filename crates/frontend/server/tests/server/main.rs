//! The server over real sockets: one program of tests, for each more is linked with everything that runs queries.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod hostile;
mod life;
mod login;
mod messages;
mod orders;
mod pipelines;
mod places;
mod support;
mod tls;
