//! The server as a whole: how it starts, and how it stops.
//!
//! States: [`Server::start`] (settings checked → directory private → database open, recovered if that is due → first password
//! → sockets → serving) → [`Server::stop`] (nobody is let in; idle clients are told 57P01; what runs has a grace, then is
//! cancelled, then cut off) → database closed with a last checkpoint.
//!
//! Crash: a server that is killed loses nothing that it acknowledged: the next start recovers.

use crate::auth::credentials;
use crate::auth::rules::Rules;
use crate::auth::verifier::KEY_BYTES;
use crate::connection::Limits;
use crate::crew::Crew;
use crate::door::{self, Bell, Door, REFUSED_MAX};
use crate::exposition::Counts;
use crate::files;
use crate::health::Watch;
use crate::http::{CONNECTIONS_MAX, Http};
use crate::listen;
use crate::sessions::{LOGINS_MAX, Sessions};
use crate::settings::{Settings, SettingsError};
use crate::signals::StopSignals;
use crate::tls::Tls;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use thiserror::Error;
use vellum::Database;
use vellum_sql::{SqlDatabase, SqlError};

/// Longest file of host rules that is read.
const RULES_BYTES_MAX: u64 = 1 << 20;
/// File of the database that every one has.
const CONTROL: &str = "control";
/// Directory of its log.
const LOG: &str = "log";
/// Directory of what queries write that does not fit into memory.
const SPILL: &str = "spill";
/// What temporary files may take at least if nobody says how much: a disk that is full now may have room later.
const SPILL_BYTES_LEAST: u64 = 256 << 20;
/// How long cancelled statements may take to notice, and then sockets that were cut off.
const LAST_GRACE: Duration = Duration::from_secs(5);
/// Descriptors that the database needs: files of tables, of the log, of what queries write beside; and the server for itself.
const OTHER_DESCRIPTORS: usize = 1024;

/// What all threads of a server share.
#[derive(Debug)]
pub struct Shared {
    /// The settings.
    pub settings: Settings,
    /// What connections need of them.
    pub limits: Arc<Limits>,
    /// The database.
    pub database: SqlDatabase,
    /// Who may come in.
    pub rules: Rules,
    /// Certificate and key, if clients may use TLS.
    pub tls: Option<Tls>,
    /// Makes verifiers of roles that do not exist; always the same.
    pub login_secret: [u8; KEY_BYTES],
    /// Who is in.
    pub sessions: Arc<Sessions>,
    /// The threads of clients that are talking.
    pub crew: Crew,
    /// How connections are parked.
    pub bell: Bell,
    /// What is counted.
    pub counts: Counts,
}

/// A server that runs. Dropping it without [`Server::stop`] leaves it running until the process ends.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    door: JoinHandle<()>,
    http: Option<Http>,
    watch: Option<Watch>,
    addresses: Vec<SocketAddr>,
    http_address: Option<SocketAddr>,
    unix: Option<PathBuf>,
    new_password: Option<PathBuf>,
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The engine did not open.
    #[error("cannot open the database in {directory}: {error}")]
    Database {
        /// Its directory.
        directory: String,
        /// Why.
        error: vellum::Error,
    },
    /// The catalog did not open.
    #[error("cannot open the catalog: {0}")]
    Catalog(SqlError),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Server {
    /// Starts a server. Blocks for the recovery of the database, if one is due.
    ///
    /// # Errors
    /// See [`StartError`]; nothing listens then.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        settings.check()?;
        let rules = read_rules(&settings)?;
        listen::check(&settings, &rules)?;
        let tls = given_tls(&settings)?;
        if settings.create {
            files::make_directory(&settings.data)?;
        }
        allow_descriptors(descriptors(settings.connections_max));
        let engine = open_engine(&settings)?;
        Self::serve(settings, rules, tls, engine)
    }

    /// Serves an open database, with a certificate that was given; what settings say of the engine is the caller's business. Files of the server's own are in the data directory.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub(crate) fn serve(
        settings: Settings,
        rules: Rules,
        given: Option<Tls>,
        engine: Database,
    ) -> Result<Self, StartError> {
        // The engine refuses a directory that holds something else, so this one is ours.
        files::make_directory_private(&settings.data)?;
        let database = SqlDatabase::open(engine).map_err(StartError::Catalog)?;
        for key in database.keys_left_out() {
            tracing::error!(%key, "a foreign key is left out: what it refers to is not there");
        }
        database.set_password_maker(credentials::keep_password);
        let spill = settings.data.join(SPILL);
        if let Err(error) = files::empty_directory(&spill) {
            // A disk of its own has files of its own.
            tracing::warn!(%error, "files of queries that were cut off cannot be removed");
        }
        // It may be another disk, and is made by the first query that needs it.
        let disk = [&spill, &settings.data]
            .into_iter()
            .find(|path| files::is_there(path));
        database.set_spill_bytes_max(match settings.spill_mib_max {
            0 => (files::free_bytes(disk.unwrap_or(&settings.data))? / 2).max(SPILL_BYTES_LEAST),
            mib => mib << 20,
        });
        database.set_spill_directory(spill);
        let new_password = credentials::make_first_password(&settings.data, &database)?;
        let login_secret = credentials::login_secret(&settings.data)?;
        let tls = match given {
            // In the data directory, which is one now.
            None if settings.tls => Some(Tls::own(
                &settings.data,
                vec!["localhost".into(), "127.0.0.1".into()],
            )?),
            given => given,
        };
        let bound = listen::bind(&settings, &rules)?;
        let http_listener = listen::bind_http(&settings)?;
        let (poll, bell) = door::make()?;
        let shared = Arc::new(Shared {
            limits: Arc::new(Limits::new(&settings)),
            sessions: Sessions::new(settings.connections_max, settings.connections_reserved),
            login_secret,
            crew: Crew::default(),
            counts: Counts::default(),
            settings,
            database,
            rules,
            tls,
            bell,
        });
        let http_address = http_listener
            .as_ref()
            .map(std::net::TcpListener::local_addr)
            .transpose()?;
        let http = http_listener
            .map(|listener| Http::start(listener, &shared))
            .transpose()?;
        let door = Door::new(shared.clone(), poll, bound.listeners)?;
        let door = thread::Builder::new()
            .name("vellum-door".into())
            .spawn(move || door.run())?;
        let watch = Watch::start(shared.database.engine().clone())?;
        for address in &bound.addresses {
            tracing::info!(%address, "listening");
        }
        Ok(Self {
            shared,
            door,
            http,
            watch: Some(watch),
            addresses: bound.addresses,
            http_address,
            unix: bound.unix,
            new_password,
        })
    }

    /// Addresses for clients; a port that was 0 is the one that was free.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Address of metrics and health.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Path of the Unix socket.
    pub fn unix_socket(&self) -> Option<&Path> {
        self.unix.as_deref()
    }

    /// Where the password is written, if this start made it.
    pub fn new_password(&self) -> Option<&Path> {
        self.new_password.as_deref()
    }

    /// The command that connects to it.
    pub fn connect_command(&self) -> String {
        let user = credentials::SUPERUSER;
        let password = credentials::password_path(&self.shared.settings.data);
        let prefix = if files::is_there(&password) {
            format!("PGPASSWORD=$(cat {}) ", quoted(&password))
        } else {
            String::new()
        };
        let place = match (self.addresses.first(), &self.unix) {
            (Some(address), _) => {
                let host = if address.ip().is_unspecified() {
                    "localhost".to_owned()
                } else {
                    address.ip().to_string()
                };
                format!("-h {host} -p {}", address.port())
            }
            (None, Some(path)) => {
                format!("-h {}", quoted(path.parent().unwrap_or(Path::new("."))))
            }
            (None, None) => String::new(),
        };
        format!("{prefix}psql {place} -U {user} {user}")
    }

    /// Serves until SIGTERM or SIGINT, then stops; a second signal ends what still runs, a third one the process.
    ///
    /// # Errors
    /// As [`Server::stop`].
    pub fn run(self, signals: StopSignals) -> Result<(), StartError> {
        if let Some(signal) = signals.wait() {
            tracing::info!(signal, "stopping");
        }
        let sessions = self.shared.sessions.clone();
        let impatient = signals.beside(move || {
            sessions.cancel_all();
            sessions.disconnect_all();
        });
        let stopped = self.stop();
        drop(impatient);
        stopped
    }

    /// Stops: lets nobody in, tells clients, closes the database. Blocks for at most the grace of the settings, two times five
    /// seconds, and a checkpoint.
    ///
    /// # Errors
    /// If the database did not close in good order: the next start recovers.
    pub fn stop(mut self) -> Result<(), StartError> {
        let sessions = &self.shared.sessions;
        sessions.stop();
        self.shared.bell.ring();
        let grace = Duration::from_secs(self.shared.settings.shutdown_grace_seconds);
        let mut empty = sessions.wait_until_empty(grace);
        if !empty {
            sessions.cancel_all();
            empty = sessions.wait_until_empty(LAST_GRACE);
        }
        if !empty {
            sessions.disconnect_all();
            empty = sessions.wait_until_empty(LAST_GRACE);
        }
        self.http = None;
        self.watch = None;
        if empty {
            self.shared.bell.ring();
            // A panic in it was reported when it happened.
            let _ = self.door.join();
        } else {
            tracing::error!(sessions = sessions.count(), "sessions did not end");
        }
        if let Some(path) = &self.unix
            && let Err(error) = files::remove(path)
        {
            // The next start takes it for one that a crash has left.
            tracing::warn!(%error, "the Unix socket stays");
        }
        let engine = self.shared.database.engine().clone();
        engine.close().map_err(|error| StartError::Database {
            directory: self.shared.settings.data.display().to_string(),
            error,
        })?;
        tracing::info!("stopped");
        Ok(())
    }
}

fn read_rules(settings: &Settings) -> Result<Rules, SettingsError> {
    let path = &settings.host_rules;
    if path.as_os_str().is_empty() {
        return Ok(Rules::standard(settings.insecure_listen));
    }
    let named = |what: String| SettingsError::Value(format!("{}: {what}", path.display()));
    let text = files::read_text(path, RULES_BYTES_MAX)?
        .ok_or_else(|| named("there is no such file".into()))?;
    Rules::parse(&text).map_err(|error| named(error.to_string()))
}

/// The certificate and the key that the settings name.
fn given_tls(settings: &Settings) -> io::Result<Option<Tls>> {
    if !settings.tls || settings.tls_certificate.as_os_str().is_empty() {
        return Ok(None);
    }
    Tls::load(&settings.tls_certificate, &settings.tls_key).map(Some)
}

fn open_engine(settings: &Settings) -> Result<Database, StartError> {
    let is_new = !files::is_there(&settings.data.join(CONTROL));
    let directory = settings.data.display();
    if !is_new {
        let log_bytes = files::bytes_in(&settings.data.join(LOG));
        tracing::info!(%directory, log_bytes, "opening the database: after a crash its log is read first");
    }
    let opened = Database::open(&settings.data, settings.engine()?);
    let engine = opened.map_err(|error| StartError::Database {
        directory: directory.to_string(),
        error,
    })?;
    if is_new {
        tracing::warn!(%directory, "a new database was made");
    }
    Ok(engine)
}

/// Most descriptors that are in use at a time: whoever comes to the door, and however many, the database has its own.
fn descriptors(connections_max: usize) -> u64 {
    let strangers = LOGINS_MAX + REFUSED_MAX + CONNECTIONS_MAX;
    let all = connections_max.saturating_add(strangers + OTHER_DESCRIPTORS);
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// Raises the limit of descriptors to what the system allows. What is missing shows when clients come.
fn allow_descriptors(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    // Without a limit of the limit there may be one of the system all the same, which is not told.
    let most = limit.maximum.unwrap_or(wanted);
    if limit.current.is_some_and(|current| current < most) {
        let raised = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(most),
                maximum: limit.maximum,
            },
        );
        if let Err(error) = raised {
            tracing::warn!(%error, "the limit of descriptors stays as it is");
        }
    }
    let allowed = getrlimit(Resource::Nofile).current;
    if let Some(allowed) = allowed.filter(|allowed| *allowed < wanted) {
        tracing::warn!(
            allowed,
            wanted,
            "the system allows fewer descriptors than connections_max needs"
        );
    }
}

/// A path as a word of a shell's command.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,=@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_the_printed_command_are_words() {
        assert_eq!(quoted(Path::new("/var/db-1")), "/var/db-1");
        assert_eq!(quoted(Path::new("my db")), "'my db'");
        assert_eq!(quoted(Path::new("it's")), "'it'\\''s'");
    }
}
