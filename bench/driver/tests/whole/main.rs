//! The whole program: one program of tests, for each more of them has all workloads on all engines compiled anew.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod compare;
mod conformance;
mod hekaton;
mod held;
mod program;
mod support;
mod tatp;
