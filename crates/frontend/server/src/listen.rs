//! Listening: addresses, the Unix socket, and what may be listened on at all.
//!
//! Invariants: V1: nobody on another machine reaches the database in plain text or without a password, unless a flag says so.

use crate::auth::rules::{Exposure, Rules};
use crate::door::Listener;
use crate::files;
use crate::server::StartError;
use crate::settings::{Settings, SettingsError};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Clients that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest path of a Unix socket: its address has a byte more, for its end.
const UNIX_PATH_BYTES_MAX: usize = 107;
/// The port that clients take if they are told none.
const USUAL_PORT: u16 = 5432;

/// What is listened on.
#[derive(Debug, Default)]
pub struct Bound {
    /// The sockets; they do not block.
    pub listeners: Vec<Listener>,
    /// Their addresses.
    pub addresses: Vec<SocketAddr>,
    /// Path of the Unix socket.
    pub unix: Option<PathBuf>,
}

/// Checks what is to be listened on, before anything is opened.
///
/// # Errors
/// If an address is none or may not be listened on (V1).
pub fn check(settings: &Settings, rules: &Rules) -> Result<(), SettingsError> {
    for text in &settings.listen {
        for address in resolve(text)? {
            check_exposure(settings, rules, address)?;
        }
    }
    if !settings.http.is_empty() {
        for address in resolve(&settings.http)? {
            check_http(settings, address)?;
        }
    }
    // With the longest port: which one it is may not be known yet.
    let path = unix_path(unix_directory(settings), u16::MAX);
    if settings.unix_socket && path.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        return Err(SettingsError::Value(format!(
            "{} is too long for a Unix socket ({UNIX_PATH_BYTES_MAX} bytes at most): \
             --unix-socket-directory names a shorter place, --unix-socket false does without",
            path.display()
        )));
    }
    Ok(())
}

fn unix_directory(settings: &Settings) -> &Path {
    if settings.unix_socket_directory.as_os_str().is_empty() {
        return &settings.data;
    }
    &settings.unix_socket_directory
}

fn unix_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// That the machine has no such address, or none of its family.
fn is_missing(error: &io::Error) -> bool {
    let family = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(family)
}

/// Opens everything that clients may come through.
///
/// # Errors
/// As [`check`], and if an address is taken.
pub fn bind(settings: &Settings, rules: &Rules) -> Result<Bound, StartError> {
    let mut bound = Bound::default();
    for text in &settings.listen {
        let addresses = resolve(text)?;
        for address in &addresses {
            // A name may mean something else than when it was checked.
            check_exposure(settings, rules, *address)?;
        }
        let mut last = None;
        let before = bound.addresses.len();
        let named = |address: SocketAddr, error: io::Error| {
            let what = format!("cannot listen on {address}: {error}");
            io::Error::new(error.kind(), what)
        };
        for address in addresses {
            match listen(address) {
                Ok(listener) => {
                    bound.addresses.push(listener.local_addr()?);
                    bound.listeners.push(Listener::Tcp(listener));
                }
                // A name has addresses of families that a machine may not have.
                Err(error) if is_missing(&error) => last = Some((address, error)),
                Err(error) => return Err(named(address, error).into()),
            }
        }
        if let (true, Some((address, error))) = (bound.addresses.len() == before, last) {
            return Err(named(address, error).into());
        }
    }
    if settings.unix_socket {
        let port = bound.addresses.first().map_or(USUAL_PORT, SocketAddr::port);
        let (listener, path) = listen_unix(unix_directory(settings), port)?;
        bound.listeners.push(Listener::Unix(listener));
        bound.unix = Some(path);
    }
    Ok(bound)
}

/// Opens the socket for metrics and health.
///
/// # Errors
/// As [`bind`].
pub fn bind_http(settings: &Settings) -> Result<Option<TcpListener>, StartError> {
    if settings.http.is_empty() {
        return Ok(None);
    }
    let addresses = resolve(&settings.http)?;
    for address in &addresses {
        check_http(settings, *address)?;
    }
    let listener = TcpListener::bind(&addresses[..]).map_err(|error| {
        let what = format!("cannot listen on {} (http): {error}", settings.http);
        io::Error::new(error.kind(), what)
    })?;
    Ok(Some(listener))
}

fn resolve(text: &str) -> Result<Vec<SocketAddr>, SettingsError> {
    let invalid =
        |error: String| SettingsError::Value(format!("`{text}` is no HOST:PORT: {error}"));
    let addresses: Vec<SocketAddr> = text
        .to_socket_addrs()
        .map_err(|error| invalid(error.to_string()))?
        .collect();
    if addresses.is_empty() {
        return Err(invalid("no such host".into()));
    }
    Ok(addresses)
}

fn check_http(settings: &Settings, address: SocketAddr) -> Result<(), SettingsError> {
    if address.ip().to_canonical().is_loopback() || settings.insecure_http {
        return Ok(());
    }
    Err(SettingsError::Value(format!(
        "http: {address} can be reached from other machines, and whoever reads it proves nothing: \
         --insecure-http allows it"
    )))
}

fn check_exposure(
    settings: &Settings,
    rules: &Rules,
    address: SocketAddr,
) -> Result<(), SettingsError> {
    if address.ip().to_canonical().is_loopback() || settings.insecure_listen {
        return Ok(());
    }
    let what = match rules.exposure() {
        _ if !settings.tls => {
            "passwords and data would cross the network in plain text: turn TLS on (--tls)".into()
        }
        Some(Exposure::Trusted(line)) => {
            format!("the host rule in line {line} lets them in without a password: take it out")
        }
        Some(Exposure::PlainText(line)) => format!(
            "the host rule in line {line} lets them in without TLS: make it one of `hostssl`, or put \
             `hostnossl all all all reject` before it"
        ),
        None => return Ok(()),
    };
    Err(SettingsError::Value(format!(
        "{address} can be reached from other machines, and {what}, or say --insecure-listen"
    )))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // The standard library's backlog is short for many clients that come at once.
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn listen_unix(directory: &Path, port: u16) -> io::Result<(UnixListener, PathBuf)> {
    let path = unix_path(directory, port);
    let named = |error: io::Error| {
        let what = format!("cannot listen on {}: {error}", path.display());
        io::Error::new(error.kind(), what)
    };
    // A socket that somebody answers at is not ours to take; one that a crash left is nobody's.
    if UnixStream::connect(&path).is_ok() {
        return Err(named(io::ErrorKind::AddrInUse.into()));
    }
    files::remove(&path).map_err(named)?;
    let listener = UnixListener::bind(&path).map_err(named)?;
    files::make_private(&path)?;
    listener.set_nonblocking(true)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok((listener, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listen: &str) -> Settings {
        Settings {
            listen: vec![listen.into()],
            unix_socket: false,
            ..Settings::default()
        }
    }

    #[test]
    fn other_machines_need_tls_and_a_password_or_a_flag() {
        let standard = Rules::standard(false);
        let open = Rules::parse("host all all all trust").unwrap();
        let plain = Rules::parse("host all all all scram-sha-256").unwrap();
        let address = "0.0.0.0:1".parse().unwrap();
        let mut settings = settings("");
        let check = |settings: &Settings, rules| check_exposure(settings, rules, address).is_ok();
        assert!(!check(&settings, &standard));
        settings.tls = true;
        assert!(check(&settings, &standard));
        assert!(!check(&settings, &open));
        assert!(!check(&settings, &plain));
        let error = check_exposure(&settings, &plain, address).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
        settings.insecure_listen = true;
        assert!(check(&settings, &open));
        assert!(check(&settings, &plain));
        settings.tls = false;
        assert!(check(&settings, &standard));
        let loopback = "[::ffff:127.0.0.1]:1".parse().unwrap();
        settings.insecure_listen = false;
        assert!(check_exposure(&settings, &open, loopback).is_ok());
    }

    #[test]
    fn an_address_that_is_taken_is_named() {
        let first = bind(&settings("127.0.0.1:0"), &Rules::standard(false)).unwrap();
        let address = first.addresses[0].to_string();
        let error = bind(&settings(&address), &Rules::standard(false)).unwrap_err();
        assert!(error.to_string().contains(&address), "{error}");
        assert!(bind(&settings("nonsense"), &Rules::standard(false)).is_err());
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_told_before_anything_is_made() {
        let mut long = settings("127.0.0.1:0");
        long.data = format!("/{}", "d".repeat(UNIX_PATH_BYTES_MAX - 15)).into();
        assert!(check(&long, &Rules::standard(false)).is_ok());
        long.unix_socket = true;
        let error = check(&long, &Rules::standard(false)).unwrap_err();
        assert!(error.to_string().contains("--unix-socket false"), "{error}");
        long.unix_socket_directory = "/run".into();
        assert!(check(&long, &Rules::standard(false)).is_ok());
    }

    #[test]
    fn a_socket_that_a_crash_left_is_replaced_and_one_in_use_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let (listener, path) = listen_unix(directory.path(), 1).unwrap();
        let error = listen_unix(directory.path(), 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(path.exists());
        assert!(listen_unix(directory.path(), 1).is_ok());
    }

    #[test]
    fn metrics_are_for_this_machine_unless_a_flag_says_so() {
        let mut settings = settings("127.0.0.1:0");
        assert!(bind_http(&settings).unwrap().is_none());
        settings.http = "0.0.0.0:0".into();
        assert!(bind_http(&settings).is_err());
        settings.insecure_http = true;
        assert!(bind_http(&settings).unwrap().is_some());
    }
}
