//! Says whether what concurrent clients saw can have come from a database that keeps its promise.
//!
//! Clients append unique values to lists and read the lists. So the order of a key's versions can be read off, and with it which
//! transaction must come before which: the checker builds that graph and names the cycles in it.
//!
//! | module | concern |
//! | --- | --- |
//! | [`anomaly`] | the names |
//! | [`event`] | one line of a history: its format |
//! | [`history`] | events put together to transactions; what no recorder may write |
//! | [`recorder`] | writes histories down, from threads and over crashes |
//! | [`versions`] | the order of each key's versions; what single reads and appends tell |
//! | `finals` | appends that final reads do not show |
//! | [`internal`] | whether a transaction agrees with itself |
//! | [`dependencies`] | who comes before whom |
//! | [`graph`] | components, shortest ways |
//! | [`unread`] | the order of appends that nobody read
//! | [`search`] | cycles, by the names that they have |
//! | [`story`] | an anomaly told to a person |
//! | [`generate`] | a long history to measure with |
//! | [`mod@check`] | all of it, with a verdict |
//!
//! Paper: Adya, Liskov, O'Neil: Generalized Isolation Level Definitions (ICDE 2000) for the names; Cerone, Gotsman: Analysing Snapshot
//! Isolation (PODC 2016) for what snapshot isolation forbids; Kingsbury, Alvaro: Elle (PVLDB 14(3), 2020) for lists as registers that
//! remember.
//!
//! What is not checked: README.
#![forbid(unsafe_code)]

pub mod anomaly;
pub mod check;
pub mod dependencies;
mod detour;
pub mod event;
mod finals;
pub mod generate;
pub mod graph;
pub mod history;
pub mod internal;
pub mod recorder;
pub mod search;
pub mod story;
pub mod unread;
pub mod versions;

pub use anomaly::{Anomaly, Kind, Name};
pub use check::{Options, Report, check};
pub use event::{Event, Key, Level, Op, Phase};
pub use history::{History, Malformed};
pub use recorder::Recorder;
