//! What a session is started with.

/// Who connects, and how.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Role, after authentication.
    pub user: String,
    /// Database that was asked for; empty: as the user.
    pub database: String,
    /// Settings of the startup message or of a connection string, in order: names and values.
    pub settings: Vec<(String, String)>,
    /// What `pg_backend_pid()` returns.
    pub process_id: i32,
    /// Address of the client, for `pg_stat_activity`; empty in process.
    pub client_address: String,
}
