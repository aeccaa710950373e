//! Who may come in, and how it proves who it is.
//!
//! | module | concern |
//! | --- | --- |
//! | [`rules`] | host rules: which method for whom from where |
//! | [`verifier`] | what is kept of a password |
//! | [`scram`] | SCRAM-SHA-256: the proof |
//! | [`credentials`] | where verifiers are found |
//!
//! Invariants:
//! - A1: the first rule that matches decides; none is a refusal.
//! - A2: a login that fails does the same work and gives the same answer for a wrong password, a role without one and a role that
//!   does not exist.
//! - A3: no password is kept, sent or logged: verifiers only. Of statements that set one the literal is not shown ([`vellum_sql::without_passwords`]).

pub mod credentials;
pub mod rules;
pub mod scram;
pub mod verifier;
