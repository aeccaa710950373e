//! Settings of the server: defaults, a file, and what they must fulfil.
//!
//! A file is TOML with the names of [`Settings`]' fields; unknown names are errors, so that a misspelled limit is no lost limit.
//! Environment and flags are laid over it by the program (`vellum serve`).

use crate::memory::default_pool_mib;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use thiserror::Error;
use vellum::Config;

/// Longest file of settings that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Largest size in MiB.
const MIB_MAX: u64 = 1 << 30;
/// Largest data file in GiB: what the engine addresses.
const DATA_GIB_MAX: u64 = 1 << 16;
/// Fewest transactions at once that the engine works with.
const TRANSACTIONS_LEAST: u16 = 4;

/// Settings of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory of the database.
    pub data: PathBuf,
    /// Whether a database is made where there is none.
    pub create: bool,
    /// Addresses for clients, `HOST:PORT`; port 0 is any that is free.
    pub listen: Vec<String>,
    /// Whether there is a Unix socket, named for the first port.
    pub unix_socket: bool,
    /// Its directory; empty for the data directory.
    pub unix_socket_directory: PathBuf,
    /// Address for metrics and health, `HOST:PORT`; empty for none.
    pub http: String,
    /// Whether clients may use TLS.
    pub tls: bool,
    /// Certificate chain as PEM; empty for one that is made in the data directory.
    pub tls_certificate: PathBuf,
    /// Its key as PEM; nobody else may be able to read it.
    pub tls_key: PathBuf,
    /// File of host rules; empty for a password from everywhere, and TLS from other machines.
    pub host_rules: PathBuf,
    /// Whether to listen beyond this machine without TLS or without passwords.
    pub insecure_listen: bool,
    /// Whether metrics and health may be read from other machines: they show no data, but what goes on.
    pub insecure_http: bool,
    /// Most sessions.
    pub connections_max: usize,
    /// Of these, for superusers; and as many of the transactions.
    pub connections_reserved: usize,
    /// Longest message of a client, in MiB.
    pub message_mib_max: usize,
    /// Time for a login.
    pub login_timeout_seconds: u64,
    /// How long a failed login waits for its answer.
    pub login_failure_delay_ms: u64,
    /// When a session that says nothing ends; 0 for never.
    pub idle_timeout_seconds: u64,
    /// The same in a transaction.
    pub idle_in_transaction_timeout_seconds: u64,
    /// How long a write waits for a client that does not read; 0 for ever.
    pub write_timeout_seconds: u64,
    /// How long statements may go on when the server stops.
    pub shutdown_grace_seconds: u64,
    /// What is logged: a level, or levels of modules, as in `info,vellum_server=debug`.
    pub log: String,
    /// How.
    pub log_format: LogFormat,
    /// Statements that take at least as long are logged; negative for none.
    pub log_statements_ms: i64,
    /// Memory for pages, in MiB. Default: a quarter of what this process may use.
    pub pool_mib: u64,
    /// Most of the log on disk, in MiB; 256 at least.
    pub log_mib_max: u64,
    /// Most of the data file, in GiB: so many addresses of the process are reserved.
    pub data_gib_max: u64,
    /// Most of the temporary files of queries together, in MiB; 0 for half of what is free where they are when the server starts, 256 at least.
    pub spill_mib_max: u64,
    /// Most transactions at once, the last [`connections_reserved`](Self::connections_reserved) of them superusers'.
    pub transactions_max: u16,
    /// Most of old versions, on disk and in memory together, in MiB; 0 for no limit.
    pub version_mib_max: u64,
    /// What happens where they take more.
    pub version_policy: VersionPolicy,
}

/// The engine keeps at least eight segments.
fn log_mib_least() -> u64 {
    (8 * Config::default().log_segment_bytes) >> 20
}

/// What happens where old versions take more than [`Settings::version_mib_max`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionPolicy {
    /// They go on growing, on disk.
    #[default]
    Spill,
    /// Statements that change rows fail (`53400`) until old transactions have ended.
    Refuse,
    /// The oldest transaction is given up: its next statement fails (`72000`).
    TooOld,
}

impl From<VersionPolicy> for vellum::VersionPolicy {
    fn from(policy: VersionPolicy) -> Self {
        match policy {
            VersionPolicy::Spill => Self::Spill,
            VersionPolicy::Refuse => Self::RefuseWriter,
            VersionPolicy::TooOld => Self::SnapshotTooOld,
        }
    }
}

/// Limits old versions to `mib_max` MiB; 0 for no limit.
///
/// # Errors
/// A policy without a limit, or a limit above 2^30.
pub fn limit_versions(
    config: Config,
    mib_max: u64,
    policy: VersionPolicy,
) -> Result<Config, SettingsError> {
    let invalid = |what: &str| Err(SettingsError::Value(what.to_owned()));
    match mib_max {
        0 if policy == VersionPolicy::Spill => Ok(config),
        0 => invalid("version_policy needs a limit, and version_mib_max is 0, which is none"),
        1..=MIB_MAX => Ok(config.version_bytes_max(mib_max << 20, policy.into())),
        _ => invalid("version_mib_max is at most 2^30"),
    }
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// An object a line.
    Json,
}

/// Why settings cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings: {0}")]
    File(#[from] std::io::Error),
    /// The file is no TOML, or has a name or value that is none.
    #[error("{path}: {error}")]
    Syntax {
        /// The file.
        path: String,
        /// What is wrong, with line and column.
        error: Box<toml::de::Error>,
    },
    /// A value makes no sense.
    #[error("{0}")]
    Value(String),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            create: true,
            listen: vec!["127.0.0.1:5432".into()],
            unix_socket: true,
            unix_socket_directory: PathBuf::new(),
            http: String::new(),
            tls: false,
            tls_certificate: PathBuf::new(),
            tls_key: PathBuf::new(),
            host_rules: PathBuf::new(),
            insecure_listen: false,
            insecure_http: false,
            connections_max: 1000,
            connections_reserved: 3,
            message_mib_max: 64,
            login_timeout_seconds: 60,
            login_failure_delay_ms: 500,
            idle_timeout_seconds: 0,
            idle_in_transaction_timeout_seconds: 0,
            write_timeout_seconds: 600,
            shutdown_grace_seconds: 10,
            log: "info".into(),
            log_format: LogFormat::Text,
            log_statements_ms: -1,
            pool_mib: default_pool_mib(),
            log_mib_max: 1024,
            data_gib_max: 1024,
            spill_mib_max: 0,
            transactions_max: 1024,
            version_mib_max: 0,
            version_policy: VersionPolicy::default(),
        }
    }
}

impl Settings {
    /// Reads a file of settings.
    ///
    /// # Errors
    /// If it is missing or is none.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = crate::files::read_text(path, FILE_BYTES_MAX)?.ok_or_else(|| {
            let what = format!("{}: there is no such file", path.display());
            std::io::Error::new(std::io::ErrorKind::NotFound, what)
        })?;
        toml::from_str(&text).map_err(|error| SettingsError::Syntax {
            path: path.display().to_string(),
            error: Box::new(error),
        })
    }

    /// The settings as a file.
    ///
    /// # Errors
    /// A path that is no UTF-8: a file cannot say it.
    pub fn to_toml(&self) -> Result<String, SettingsError> {
        toml::to_string(self).map_err(|error| {
            SettingsError::Value(format!("the settings have no form as a file: {error}"))
        })
    }

    /// The engine's settings.
    ///
    /// # Errors
    /// Those that it would refuse.
    pub fn engine(&self) -> Result<Config, SettingsError> {
        let mut config = Config::default().pool_bytes(self.pool_mib << 20);
        config.create = self.create;
        config.log_bytes_max = self.log_mib_max << 20;
        config.data_bytes_max = self.data_gib_max << 30;
        config.slots_max = self.transactions_max;
        config.slots_reserved = u16::try_from(self.connections_reserved).unwrap_or(u16::MAX);
        let config = limit_versions(config, self.version_mib_max, self.version_policy)?;
        let checked = config.check();
        checked.map_err(|error| SettingsError::Value(error.to_string()))?;
        Ok(config)
    }

    /// Checks what can be checked before anything is opened.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn check(&self) -> Result<(), SettingsError> {
        let invalid = |what: &str| Err(SettingsError::Value(what.to_owned()));
        if self.data.as_os_str().is_empty() {
            return invalid("no data directory is given (--data DIR)");
        }
        let least = log_mib_least();
        if self.log_mib_max < least {
            return Err(SettingsError::Value(format!(
                "log_mib_max is at least {least}"
            )));
        }
        if self.listen.is_empty() && !self.unix_socket {
            return invalid("there is neither an address to listen on nor a Unix socket");
        }
        if self.connections_reserved >= self.connections_max {
            return invalid("connections_reserved must be below connections_max");
        }
        if self.transactions_max < TRANSACTIONS_LEAST {
            return Err(SettingsError::Value(format!(
                "transactions_max is at least {TRANSACTIONS_LEAST}"
            )));
        }
        if self.connections_reserved >= usize::from(self.transactions_max) {
            return invalid("connections_reserved must be below transactions_max");
        }
        if !(1..=1024).contains(&self.message_mib_max) {
            return invalid("message_mib_max is not in 1..=1024");
        }
        if self.login_timeout_seconds == 0 {
            return invalid("login_timeout_seconds must not be 0");
        }
        if self.pool_mib == 0 || self.pool_mib > MIB_MAX || self.log_mib_max > MIB_MAX {
            return invalid("pool_mib and log_mib_max are at most 2^30, and pool_mib is not 0");
        }
        if !(1..=DATA_GIB_MAX).contains(&self.data_gib_max) {
            return Err(SettingsError::Value(format!(
                "data_gib_max is not in 1..={DATA_GIB_MAX}"
            )));
        }
        if self.spill_mib_max > MIB_MAX {
            return invalid("spill_mib_max is at most 2^30");
        }
        self.engine()?;
        if self.tls_certificate.as_os_str().is_empty() != self.tls_key.as_os_str().is_empty() {
            return invalid("tls_certificate and tls_key belong together");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable() -> Settings {
        Settings {
            data: "db".into(),
            ..Settings::default()
        }
    }

    #[test]
    fn settings_are_read_as_they_were_printed() {
        let settings = Settings {
            tls: true,
            log_format: LogFormat::Json,
            version_mib_max: 512,
            version_policy: VersionPolicy::TooOld,
            listen: vec!["[::1]:5433".into(), "127.0.0.1:0".into()],
            ..usable()
        };
        let read: Settings = toml::from_str(&settings.to_toml().unwrap()).unwrap();
        assert_eq!(read, settings);
        assert!(settings.check().is_ok());
        use std::os::unix::ffi::OsStrExt;
        let no_text = Settings {
            data: std::ffi::OsStr::from_bytes(b"\xff").into(),
            ..usable()
        };
        assert!(no_text.to_toml().is_err());
    }

    #[test]
    fn what_a_file_leaves_out_is_the_default_and_a_misspelled_name_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vellum.toml");
        std::fs::write(&path, "connections_max = 7\n").unwrap();
        let expected = Settings {
            connections_max: 7,
            ..Settings::default()
        };
        assert_eq!(Settings::read(&path).unwrap(), expected);
        std::fs::write(&path, "conections_max = 7\n").unwrap();
        let error = Settings::read(&path).unwrap_err().to_string();
        assert!(error.contains("conections_max"), "{error}");
    }

    #[test]
    fn a_log_that_is_too_small_is_told_in_the_words_of_the_setting() {
        let settings = Settings {
            log_mib_max: 255,
            ..usable()
        };
        let error = settings.check().unwrap_err().to_string();
        assert_eq!(error, "log_mib_max is at least 256");
        let settings = Settings {
            log_mib_max: 256,
            ..usable()
        };
        assert!(settings.check().is_ok());
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        let cases: [fn(&mut Settings); 17] = [
            |s| s.data_gib_max = 0,
            |s| s.data_gib_max = DATA_GIB_MAX + 1,
            |s| s.transactions_max = 0,
            |s| s.transactions_max = TRANSACTIONS_LEAST - 1,
            |s| s.transactions_max = u16::MAX,
            |s| s.log_mib_max = 1,
            |s| s.data = PathBuf::new(),
            |s| (s.listen, s.unix_socket) = (vec![], false),
            |s| s.connections_reserved = s.connections_max,
            |s| s.transactions_max = 3,
            |s| s.message_mib_max = 0,
            |s| s.login_timeout_seconds = 0,
            |s| s.pool_mib = 0,
            |s| s.version_policy = VersionPolicy::Refuse,
            |s| s.version_mib_max = u64::MAX,
            |s| s.spill_mib_max = u64::MAX,
            |s| s.tls_key = "key".into(),
        ];
        for (number, change) in cases.into_iter().enumerate() {
            let mut settings = usable();
            change(&mut settings);
            assert!(settings.check().is_err(), "case {number}");
        }
    }
}
