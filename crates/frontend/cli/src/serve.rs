//! `vellum serve`: settings from a file, the environment and flags, in that order, and a server with them.

use crate::args::{Arguments, VersionLimit};
use crate::exit::Failure;
use crate::relations::unreadable;
use clap::{Arg, Args, Command, CommandFactory};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use vellum_server::{LogFormat, Server, Settings, SettingsError, StartError, StopSignals};

/// Variables of random tests, which start servers.
const OF_TESTS: [&str; 2] = ["VELLUM_SEED", "VELLUM_ROUNDS"];

/// Options of `serve`; what is not given is as in the file, or the default. The variable of an option is its name
/// in capitals, behind VELLUM_.
#[derive(Debug, Args)]
pub struct Options {
    /// Directory of the database; made if it is not there
    #[arg(long, value_name = "DIR", env = "VELLUM_DATA")]
    data: Option<PathBuf>,
    /// Make a database where there is none; `false`: it must be there
    #[arg(long, value_name = "BOOL", env = "VELLUM_CREATE")]
    create: Option<bool>,
    /// File of settings (TOML; --print-config shows one)
    #[arg(long, value_name = "FILE", env = "VELLUM_CONFIG")]
    config: Option<PathBuf>,
    /// Addresses for clients, several with commas; port 0: any that is free
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "VELLUM_LISTEN",
        value_delimiter = ','
    )]
    listen: Option<Vec<String>>,
    /// Address for metrics (/metrics) and health (/health)
    #[arg(long, value_name = "HOST:PORT", env = "VELLUM_HTTP")]
    http: Option<String>,
    /// Whether there is a Unix socket
    #[arg(long, value_name = "BOOL", env = "VELLUM_UNIX_SOCKET")]
    unix_socket: Option<bool>,
    /// Directory of the Unix socket, instead of the database's
    #[arg(long, value_name = "DIR", env = "VELLUM_UNIX_SOCKET_DIRECTORY")]
    unix_socket_directory: Option<PathBuf>,
    /// Let clients use TLS; without a certificate one is made
    #[arg(long, value_name = "BOOL", env = "VELLUM_TLS", num_args = 0..=1, default_missing_value = "true")]
    tls: Option<bool>,
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE", env = "VELLUM_TLS_CERTIFICATE")]
    tls_certificate: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", env = "VELLUM_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Host rules, as in pg_hba.conf
    #[arg(long, value_name = "FILE", env = "VELLUM_HOST_RULES")]
    host_rules: Option<PathBuf>,
    /// Listen beyond this machine even without TLS or passwords
    #[arg(long, value_name = "BOOL", env = "VELLUM_INSECURE_LISTEN", num_args = 0..=1, default_missing_value = "true")]
    insecure_listen: Option<bool>,
    /// Let other machines read metrics and health
    #[arg(long, value_name = "BOOL", env = "VELLUM_INSECURE_HTTP", num_args = 0..=1, default_missing_value = "true")]
    insecure_http: Option<bool>,
    /// Most sessions
    #[arg(long, value_name = "N", env = "VELLUM_CONNECTIONS_MAX")]
    connections_max: Option<usize>,
    /// Of these, for the superuser
    #[arg(long, value_name = "N", env = "VELLUM_CONNECTIONS_RESERVED")]
    connections_reserved: Option<usize>,
    /// Longest message of a client, in MiB
    #[arg(long, value_name = "MIB", env = "VELLUM_MESSAGE_MIB_MAX")]
    message_mib_max: Option<usize>,
    /// Time for a login
    #[arg(long, value_name = "SECONDS", env = "VELLUM_LOGIN_TIMEOUT_SECONDS")]
    login_timeout_seconds: Option<u64>,
    /// How long a failed login waits for its answer
    #[arg(long, value_name = "MS", env = "VELLUM_LOGIN_FAILURE_DELAY_MS")]
    login_failure_delay_ms: Option<u64>,
    /// When a session that says nothing ends; 0: never
    #[arg(long, value_name = "SECONDS", env = "VELLUM_IDLE_TIMEOUT_SECONDS")]
    idle_timeout_seconds: Option<u64>,
    /// The same in a transaction
    #[arg(
        long,
        value_name = "SECONDS",
        env = "VELLUM_IDLE_IN_TRANSACTION_TIMEOUT_SECONDS"
    )]
    idle_in_transaction_timeout_seconds: Option<u64>,
    /// How long a write waits for a client that does not read; 0: for ever
    #[arg(long, value_name = "SECONDS", env = "VELLUM_WRITE_TIMEOUT_SECONDS")]
    write_timeout_seconds: Option<u64>,
    /// How long statements may go on when the server stops
    #[arg(long, value_name = "SECONDS", env = "VELLUM_SHUTDOWN_GRACE_SECONDS")]
    shutdown_grace_seconds: Option<u64>,
    /// What is logged: a level, or levels of modules
    #[arg(long, value_name = "LEVEL", env = "VELLUM_LOG")]
    log: Option<String>,
    /// How it is logged
    #[arg(long, value_name = "FORM", env = "VELLUM_LOG_FORMAT", value_parser = log_format)]
    log_format: Option<LogFormat>,
    /// Log statements that take at least as long; negative: none
    #[arg(
        long,
        value_name = "MS",
        env = "VELLUM_LOG_STATEMENTS_MS",
        allow_negative_numbers = true
    )]
    log_statements_ms: Option<i64>,
    /// Memory for pages, in MiB; default: a quarter of the memory of the machine, or of the control group
    #[arg(long, value_name = "MIB", env = "VELLUM_POOL_MIB")]
    pool_mib: Option<u64>,
    /// Most of the log on disk, in MiB; 256 at least
    #[arg(long, value_name = "MIB", env = "VELLUM_LOG_MIB_MAX")]
    log_mib_max: Option<u64>,
    /// Most of the data file, in GiB
    #[arg(long, value_name = "GIB", env = "VELLUM_DATA_GIB_MAX")]
    data_gib_max: Option<u64>,
    /// Most of the temporary files of queries together, in MiB; default: half of what is free on their disk at the start, 256 at least
    #[arg(long, value_name = "MIB", env = "VELLUM_SPILL_MIB_MAX")]
    spill_mib_max: Option<u64>,
    /// Most transactions at once
    #[arg(long, value_name = "N", env = "VELLUM_TRANSACTIONS_MAX")]
    transactions_max: Option<u16>,
    #[command(flatten)]
    versions: VersionLimit,
    /// Print the settings as a file and end
    #[arg(long)]
    print_config: bool,
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("`text` or `json`".into()),
    }
}

/// Puts what is given in the place of what was there.
fn lay<T: Clone>(given: &Option<T>, over: &mut T) {
    if let Some(value) = given {
        over.clone_from(value);
    }
}

impl Options {
    /// The settings: defaults, under the file, under environment and flags.
    fn settings(&self) -> Result<Settings, SettingsError> {
        let mut settings = match &self.config {
            Some(path) => Settings::read(path)?,
            None => Settings::default(),
        };
        let s = &mut settings;
        lay(&self.data, &mut s.data);
        lay(&self.create, &mut s.create);
        lay(&self.listen, &mut s.listen);
        lay(&self.http, &mut s.http);
        lay(&self.unix_socket, &mut s.unix_socket);
        lay(&self.unix_socket_directory, &mut s.unix_socket_directory);
        lay(&self.tls, &mut s.tls);
        lay(&self.tls_certificate, &mut s.tls_certificate);
        lay(&self.tls_key, &mut s.tls_key);
        lay(&self.host_rules, &mut s.host_rules);
        lay(&self.insecure_listen, &mut s.insecure_listen);
        lay(&self.insecure_http, &mut s.insecure_http);
        lay(&self.connections_max, &mut s.connections_max);
        lay(&self.connections_reserved, &mut s.connections_reserved);
        lay(&self.message_mib_max, &mut s.message_mib_max);
        lay(&self.login_timeout_seconds, &mut s.login_timeout_seconds);
        lay(&self.login_failure_delay_ms, &mut s.login_failure_delay_ms);
        lay(&self.idle_timeout_seconds, &mut s.idle_timeout_seconds);
        lay(
            &self.idle_in_transaction_timeout_seconds,
            &mut s.idle_in_transaction_timeout_seconds,
        );
        lay(&self.write_timeout_seconds, &mut s.write_timeout_seconds);
        lay(&self.shutdown_grace_seconds, &mut s.shutdown_grace_seconds);
        lay(&self.log, &mut s.log);
        lay(&self.log_format, &mut s.log_format);
        lay(&self.log_statements_ms, &mut s.log_statements_ms);
        lay(&self.pool_mib, &mut s.pool_mib);
        lay(&self.log_mib_max, &mut s.log_mib_max);
        lay(&self.data_gib_max, &mut s.data_gib_max);
        lay(&self.spill_mib_max, &mut s.spill_mib_max);
        lay(&self.transactions_max, &mut s.transactions_max);
        lay(&self.versions.version_mib_max, &mut s.version_mib_max);
        lay(&self.versions.version_policy, &mut s.version_policy);
        Ok(settings)
    }
}

/// Variables of the environment that are named like those of settings, and belong to none: misspelled, most likely.
fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    // Of other commands as well: who works with all of them exports theirs.
    let command = Arguments::command();
    let all = std::iter::once(&command).chain(command.get_subcommands());
    let known: Vec<&OsStr> = all
        .flat_map(Command::get_arguments)
        .filter_map(Arg::get_env)
        .collect();
    let ours = names.filter(|name| !known.contains(&name.as_os_str()));
    let ours = ours.map(|name| name.to_string_lossy().into_owned());
    ours.filter(|name| name.starts_with("VELLUM_") && !OF_TESTS.contains(&&**name))
        .collect()
}

/// Serves until a signal comes, or prints the settings.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<bool, Failure> {
    let told = |error: SettingsError| Failure::usage(error.to_string());
    let settings = options.settings().map_err(told)?;
    if options.print_config {
        out.write_all(settings.to_toml().map_err(told)?.as_bytes())?;
        return Ok(true);
    }
    for name in unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        crate::complain!("vellum: the variable {name} is none of a setting, and says nothing");
    }
    vellum_server::start_logging(&settings).map_err(told)?;
    let data = settings.data.clone();
    let failed = |error: StartError| match error {
        StartError::Settings(error) => Failure::usage(error.to_string()),
        StartError::Database { error, .. } => Failure::database(&data, error),
        StartError::Catalog(error) => unreadable(&data, &error),
        other => Failure::failed(other.to_string()),
    };
    // While it starts they end the process: a recovery may be cut anywhere.
    let signals = StopSignals::new()?;
    let server = Server::start(settings).map_err(&failed)?;
    // Before anything is said: whoever reads it may send one.
    signals.serving();
    if let Err(error) = announce(&server, out) {
        crate::complain!("vellum: nobody reads where the server listens: {error}");
    }
    server.run(signals).map_err(failed)?;
    Ok(true)
}

/// Says where the server is, and how to connect.
fn announce(server: &Server, out: &mut dyn Write) -> io::Result<()> {
    for address in server.addresses() {
        writeln!(out, "listening on {address}")?;
    }
    if let Some(path) = server.unix_socket() {
        writeln!(out, "listening on {}", path.display())?;
    }
    if let Some(address) = server.http_address() {
        writeln!(out, "metrics on http://{address}/metrics")?;
    }
    if let Some(path) = server.new_password() {
        writeln!(
            out,
            "the password of `vellum` was made and written to {}",
            path.display()
        )?;
    }
    writeln!(out, "connect with: {}", server.connect_command())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::unknown_variables;
    use crate::args::{Arguments, Command};
    use clap::Parser;
    use std::ffi::OsString;
    use vellum_server::VersionPolicy;

    #[test]
    fn variables_that_are_named_like_settings_and_are_none_are_noticed() {
        let names = [
            "VELLUM_LISTEN",
            "VELLUM_LISTNE",
            "VELLUM_VERSION_MIB_MAX",
            "VELLUM_CONFIG",
            "VELLUM_SEED",
            "VELLUM_TLS_CERT",
            "VELLUM_HISTORY",
            "PATH",
        ];
        let unknown = unknown_variables(names.into_iter().map(OsString::from));
        assert_eq!(unknown, ["VELLUM_LISTNE", "VELLUM_TLS_CERT"]);
    }

    #[test]
    fn flags_are_laid_over_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("vellum.toml");
        std::fs::write(
            &file,
            "data = \"x\"\nconnections_max = 7\nlog = \"warn\"\nversion_policy = \"too-old\"\n",
        )
        .unwrap();
        let arguments = [
            "vellum",
            "serve",
            "--config",
            file.to_str().unwrap(),
            "--data",
            "y",
            "--listen",
            "[::1]:1,127.0.0.1:2",
            "--tls",
            "--log-statements-ms",
            "-1",
            "--version-mib-max",
            "9",
        ];
        let Command::Serve { options } = Arguments::try_parse_from(arguments).unwrap().command
        else {
            panic!("another command");
        };
        let settings = options.settings().unwrap();
        assert_eq!(settings.data.to_str(), Some("y"));
        assert_eq!(settings.listen, ["[::1]:1", "127.0.0.1:2"]);
        assert!(settings.tls);
        assert_eq!((settings.connections_max, &*settings.log), (7, "warn"));
        let limit = (settings.version_mib_max, settings.version_policy);
        assert_eq!(limit, (9, VersionPolicy::TooOld));
    }
}
