//! The PostgreSQL protocol over Vellum: what clients connect to.
//!
//! | module | question |
//! | --- | --- |
//! | `settings` | what can be set, and its defaults |
//! | `server`, `signals` | how does it start and stop? |
//! | `listen` | what is listened on? |
//! | `door` | who waits for clients that say nothing? |
//! | `crew` | which thread serves a client? |
//! | `login` | how does a client get in? |
//! | `auth` | who may come in, and how is that proved? |
//! | `connection` | what happens with each message? |
//! | `sessions` | who is in, who may cancel whom? |
//! | [`wire`] | how do messages look? |
//! | `stream`, `tls` | bytes, with and without TLS |
//! | `http`, `exposition` | metrics and health |
//! | `health`, `troubles` | what does the log say of what goes wrong? |
//!
//! A client that talks has a thread, which blocks as it likes; one that pauses has none. The decision and its numbers:
//! docs/design/0016-server.md.
//!
//! Not here: statements (`vellum-sql`), command line (`vellum-cli`).
#![forbid(unsafe_code)]

mod auth;
mod connection;
mod crew;
mod door;
mod exposition;
mod files;
mod health;
mod http;
mod listen;
mod logging;
mod login;
mod memory;
mod secret;
mod server;
mod sessions;
mod settings;
mod signals;
mod stream;
mod tls;
mod troubles;
pub mod wire;

pub use auth::credentials::keep_password;
pub use files::empty_directory;
pub use logging::start as start_logging;
pub use server::{Server, StartError};
pub use settings::{LogFormat, Settings, SettingsError, VersionPolicy, limit_versions};
pub use signals::StopSignals;
