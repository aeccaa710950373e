//! What a session is started with.

use std::net::SocketAddr;

/// Who connects, and how.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Role, after authentication.
    pub user: String,
    /// Database that was asked for; empty: as the user.
    pub database: String,
    /// Settings of the startup message or of a connection string, in order: names and values.
    pub settings: Vec<(String, String)>,
    /// What `pg_backend_pid()` returns.
    pub process_id: i32,
    /// Address of the client; none in process and over the Unix socket.
    pub client: Option<SocketAddr>,
    /// Where it found the server; none likewise.
    pub server: Option<SocketAddr>,
    /// How many sessions there may be at a time: `max_connections`.
    pub sessions_max: u32,
    /// Longest row of a COPY from the client, in bytes as they come; 1 GiB as in PostgreSQL, if nothing else is said. It stands in memory until its
    /// end has come.
    pub copy_row_bytes_max: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            user: String::new(),
            database: String::new(),
            settings: Vec::new(),
            process_id: 0,
            client: None,
            server: None,
            sessions_max: 1,
            copy_row_bytes_max: 1 << 30,
        }
    }
}
