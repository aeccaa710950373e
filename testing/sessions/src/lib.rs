//! Sessions at a server, each in a process of its own, over kills of the server and of sessions; recorded, and judged as in `vellum-clients`.
//!
//! | module | concern |
//! | --- | --- |
//! | [`packets`] | what several processes say, in one order |
//! | [`client`] | a session: one transaction after another by SQL, each recorded |
//! | [`run`] | lives of a server; who is killed when |
//! | [`lists`] | lists: few, many, long forks, skewed writes; found by keys and by indexes |
//! | [`bank`] | transfers, increments and a queue |
//!
//! What is not checked: README.
#![forbid(unsafe_code)]

pub mod bank;
pub mod client;
pub mod lists;
pub mod packets;
pub mod run;

use client::{Client, Gone};
use postgres::Client as Connection;
use vellum_history::Event;

/// What sessions do, and what must come of it.
pub trait Workload: Sync {
    /// Makes what is not there.
    ///
    /// # Errors
    /// What the server says.
    fn prepare(&self, connection: &mut Connection) -> Result<(), postgres::Error>;

    /// Does one thing.
    ///
    /// # Errors
    /// What ends the session.
    fn step(&self, client: &mut Client<'_>) -> Result<(), Gone>;

    /// Reads everything, when nobody else is there. `events` is what was recorded.
    ///
    /// # Errors
    /// What ends the session.
    fn read_all(&self, client: &mut Client<'_>, events: &[Event]) -> Result<(), Gone>;

    /// Judges what was recorded; what it says is for people.
    ///
    /// # Errors
    /// What is wrong.
    fn judge(&self, events: Vec<Event>) -> Result<String, String>;
}

/// The workloads by their names.
pub fn workload(name: &str) -> Option<Box<dyn Workload>> {
    Some(match name {
        "list-few" => Box::new(lists::Lists::few()),
        "list-many" => Box::new(lists::Lists::many()),
        "long-fork" => Box::new(lists::Lists::forks()),
        "write-skew" => Box::new(lists::Lists::skews()),
        "bank" => Box::new(bank::Transfers),
        "counter" => Box::new(bank::Increments),
        "queue" => Box::new(bank::Elements),
        _ => return None,
    })
}

/// Their names.
pub const NAMES: [&str; 7] = [
    "list-few",
    "list-many",
    "long-fork",
    "write-skew",
    "bank",
    "counter",
    "queue",
];
