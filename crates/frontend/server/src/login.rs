//! From an accepted socket to a session: encryption, cancel requests, the startup packet, the proof of who it is.
//!
//! States: first packet → (TLS asked for: granted or not → first packet, once) → startup → proof → session → connection.
//!
//! Invariants:
//! - L1: everything up to the session happens within `login_timeout_seconds`, in all.
//! - L2: nothing that arrived before a TLS handshake is read after it: packets are read exactly, so what a stranger put
//!   behind a request for TLS is taken for the handshake, which fails.
//! - L3: the role that logs in is looked up after host rules let it, and what a failure costs and says does not tell whether it
//!   exists (A2).
//!
//! Not here: what is in the packets (wire/startup.rs), the proof's mathematics (auth/scram.rs).

use crate::auth::credentials::{self, Account};
use crate::auth::rules::{Method, Origin};
use crate::auth::scram::{self, Exchange, Outcome};
use crate::auth::verifier::Verifier;
use crate::connection::{Connection, Rest};
use crate::server::Shared;
use crate::sessions::{Login, Place};
use crate::stream::{Socket, Stream};
use crate::wire::inbound::{Frame, Inbound, LOGIN_BODY_BYTES_MAX};
use crate::wire::outbound::Outbound;
use crate::wire::reader::{PROTOCOL_VIOLATION, Reader};
use crate::wire::report::Report;
use crate::wire::startup::{self, First, Startup};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tracing::field::display;
use vellum_sql::SessionOptions;

/// A login under way.
struct Entrance<'s> {
    shared: &'s Arc<Shared>,
    login: &'s Login,
    stream: Stream,
    out: Outbound,
}

/// Why a login ended without a session.
#[derive(Debug)]
enum Turned {
    /// The client asked for nothing more.
    Away,
    /// The client is told why.
    Told(Report),
    /// No TLS came about: the client cannot be told anything.
    Insecure(io::Error),
    /// The client left, or took too long.
    Lost(io::Error),
}

impl From<io::Error> for Turned {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Report> for Turned {
    fn from(report: Report) -> Self {
        Self::Told(report)
    }
}

/// Logs a client in and serves it until it pauses. Blocks.
pub fn run(shared: &Arc<Shared>, socket: Arc<Socket>, login: Login) -> Rest {
    let address = socket.address().map(display);
    let mut entrance = Entrance {
        shared,
        login: &login,
        stream: Stream::new(socket),
        out: Outbound::new(),
    };
    entrance
        .stream
        .set_deadline(Duration::from_secs(shared.settings.login_timeout_seconds));
    let turned = match entrance.let_in() {
        Ok((session, place)) => {
            let Entrance { stream, out, .. } = entrance;
            drop(login);
            let limits = shared.limits.clone();
            return Box::new(Connection::new(
                stream,
                out,
                session,
                shared.crew.clone(),
                limits,
                place,
            ))
            .begin();
        }
        Err(turned) => turned,
    };
    match turned {
        Turned::Away => {}
        Turned::Told(report) => {
            shared.counts.logins_failed.fetch_add(1, Ordering::Relaxed);
            tracing::info!(address, sqlstate = %report.sqlstate, "login failed: {}", report.message);
            report.write(&mut entrance.out);
            // If it cannot be told, it is gone already.
            let _ = entrance.send();
        }
        Turned::Insecure(error) => {
            shared.counts.logins_failed.fetch_add(1, Ordering::Relaxed);
            tracing::info!(address, %error, "login failed: no TLS");
        }
        Turned::Lost(error) => tracing::debug!(address, %error, "login not completed"),
    }
    entrance.stream.close();
    Rest::Ended
}

impl Entrance<'_> {
    fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(self.out.as_slice())?;
        self.stream.flush()?;
        self.out.clear();
        Ok(())
    }

    fn let_in(&mut self) -> Result<(vellum_sql::Session, Place), Turned> {
        let startup = self.startup()?;
        if startup.minor > 0 || !startup.unknown_options.is_empty() {
            let unknown: Vec<&str> = startup.unknown_options.iter().map(|o| &**o).collect();
            self.out.negotiate_version(startup::VERSION, &unknown);
        }
        let origin = self.origin();
        let method = self
            .shared
            .rules
            .method(origin, &startup.database, &startup.user);
        let account = match method {
            None => return Err(no_rule("no pg_hba.conf entry", origin, &startup).into()),
            Some(Method::Reject) => {
                return Err(no_rule("pg_hba.conf rejects connection", origin, &startup).into());
            }
            Some(Method::Trust) => self.account(&startup.user),
            Some(Method::Scram) => {
                let account = self.account(&startup.user);
                self.prove(&startup.user, account)?
            }
        };
        let Some(account) = account else {
            let text = format!("role \"{}\" does not exist", startup.user);
            return Err(Report::fatal("28000", text).into());
        };
        if !account.login {
            let text = format!("role \"{}\" is not permitted to log in", startup.user);
            return Err(Report::fatal("28000", text).into());
        }
        self.out.authentication_ok();
        let socket = self.stream.socket().clone();
        let place = self.shared.sessions.enter(socket, &account)??;
        let seat = place.seat();
        let address = self.stream.socket().address();
        let options = SessionOptions {
            user: startup.user,
            database: startup.database,
            settings: startup.settings,
            process_id: i32::try_from(seat.process).expect("processes count up to i32::MAX"),
            client: address.map(canonical),
            server: self.stream.socket().own_address().map(canonical),
            sessions_max: u32::try_from(self.shared.sessions.connections_max()).unwrap_or(u32::MAX),
            ..SessionOptions::default()
        };
        let session = self.shared.database.session(options).map_err(refused)?;
        let cancel = session.cancel_handle();
        let socket = self.stream.socket().clone();
        cancel.when_shut_down(Box::new(move || socket.terminate()));
        // Weak: what the session keeps must not keep the server.
        let (shared, process) = (Arc::downgrade(self.shared), seat.process);
        let wake = move || {
            if let Some(shared) = shared.upgrade() {
                shared.bell.tell(process);
            }
        };
        cancel.when_cancelled(Box::new(wake.clone()));
        seat.set_cancel(cancel);
        session.when_notified(Box::new(wake));
        for (name, value) in session.parameter_statuses() {
            self.out.parameter_status(name, &value);
        }
        self.out.backend_key(seat.process, seat.key);
        Ok((session, place))
    }

    /// The startup packet, after what may come before it: requests for encryption, or one to cancel instead.
    fn startup(&mut self) -> Result<Startup, Turned> {
        let (mut tls_asked, mut gss_asked) = (false, false);
        loop {
            let Some(first) = startup::read(&mut self.stream)? else {
                return Err(Turned::Away);
            };
            match first? {
                First::Startup(startup) => {
                    // Not before: who asks for encryption, and for nothing else, keeps others out for as long as it likes.
                    self.login.has_spoken();
                    return Ok(startup);
                }
                First::Cancel { process, key } => {
                    let done = self.shared.sessions.cancel(process, key);
                    self.shared.counts.cancels.fetch_add(1, Ordering::Relaxed);
                    if !done {
                        tracing::info!(process, "wrong key in a request to cancel");
                    }
                    return Err(Turned::Away);
                }
                First::Tls if !std::mem::replace(&mut tls_asked, true) => self.negotiate_tls()?,
                First::Gss if !std::mem::replace(&mut gss_asked, true) => {
                    self.stream.write_all(b"N")?;
                }
                First::Tls | First::Gss => {
                    let text = "encryption was asked for twice";
                    return Err(Report::fatal(PROTOCOL_VIOLATION, text).into());
                }
            }
        }
    }

    /// Goes over to TLS, or says that there is none.
    fn negotiate_tls(&mut self) -> Result<(), Turned> {
        match &self.shared.tls {
            Some(tls) if self.stream.socket().address().is_some() => {
                self.stream.write_all(b"S")?;
                self.stream.secure(tls).map_err(Turned::Insecure)?;
            }
            _ => self.stream.write_all(b"N")?,
        }
        Ok(())
    }

    fn origin(&self) -> Origin {
        match self.stream.socket().address() {
            None => Origin::Local,
            Some(address) => Origin::Tcp {
                address,
                tls: self.stream.is_secure(),
            },
        }
    }

    fn account(&self, user: &str) -> Option<Account> {
        credentials::account(&self.shared.database, user)
    }

    /// Has the client prove that it knows the password of a role. A failure is answered late, whatever the client did wrong.
    fn prove(&mut self, user: &str, account: Option<Account>) -> Result<Option<Account>, Turned> {
        let proved = self.exchange(user, account);
        if let Err(Turned::Told(_)) = proved {
            let delay = self.shared.settings.login_failure_delay_ms;
            std::thread::sleep(Duration::from_millis(delay));
        }
        proved
    }

    fn exchange(
        &mut self,
        user: &str,
        account: Option<Account>,
    ) -> Result<Option<Account>, Turned> {
        let known = account.as_ref().and_then(|a| a.verifier.clone());
        let reason = match (&account, &known) {
            (None, _) => "no such role",
            (_, None) => "the role has no password",
            _ => "wrong password",
        };
        let possible = known.is_some();
        let verifier =
            known.unwrap_or_else(|| Verifier::impossible(user, &self.shared.login_secret));
        let end_point = self
            .shared
            .tls
            .as_ref()
            .filter(|_| self.stream.is_secure())
            .and_then(|tls| tls.end_point.clone());
        let mechanisms: &[&str] = if end_point.is_some() {
            &[scram::PLUS, scram::PLAIN]
        } else {
            &[scram::PLAIN]
        };
        self.out.authentication_sasl(mechanisms);
        self.send()?;
        let mut inbound = Inbound::new();
        let first = self.password_message(&mut inbound)?;
        let mut reader = Reader::new(&first);
        let mechanism = reader.text().map_err(Report::ends_connection)?;
        let data = reader
            .value()
            .and_then(|data| reader.end().map(|()| data))
            .map_err(Report::ends_connection)?;
        let asked_for;
        let data: &[u8] = match data {
            Some(data) => data,
            // What it would have begun with is what it answers an empty challenge with.
            None => {
                self.out.authentication_sasl_continue(b"");
                self.send()?;
                asked_for = self.password_message(&mut inbound)?;
                &asked_for
            }
        };
        let (exchange, answer) = Exchange::begin(mechanism, data, verifier, end_point.as_deref())??;
        self.out.authentication_sasl_continue(&answer);
        self.send()?;
        let last = self.password_message(&mut inbound)?;
        // Both are looked at: the work is the same.
        match (exchange.finish(&last)?, possible) {
            (Outcome::Proved(answer), true) => {
                self.out.authentication_sasl_final(&answer);
                Ok(account)
            }
            _ => {
                let address = self.stream.socket().address().map(display);
                tracing::warn!(user, address, reason, "authentication failed");
                let text = format!("password authentication failed for user \"{user}\"");
                Err(Report::fatal("28P01", text).into())
            }
        }
    }

    /// The body of the next message, which must be part of a login.
    fn password_message(&mut self, inbound: &mut Inbound) -> Result<Vec<u8>, Turned> {
        loop {
            match inbound.next(LOGIN_BODY_BYTES_MAX)? {
                Frame::Message { kind: b'p', body } => return Ok(inbound.body(body).to_vec()),
                Frame::Message { kind: b'X', .. } => return Err(Turned::Away),
                Frame::Message { kind, .. } => {
                    let text = format!("expected SASL response, got message type {kind}");
                    return Err(Report::fatal(PROTOCOL_VIOLATION, text).into());
                }
                Frame::TooLong { .. } => {
                    let text = "invalid message length";
                    return Err(Report::fatal(PROTOCOL_VIOLATION, text).into());
                }
                Frame::Incomplete => {
                    if inbound.fill(&mut self.stream)? == 0 {
                        return Err(Turned::Away);
                    }
                }
            }
        }
    }
}

/// An error of a session that did not begin: it ends the connection.
fn refused(error: vellum_sql::SqlError) -> Report {
    let mut report = Report::fatal("XX000", error.message().to_owned());
    report.sqlstate = error.sqlstate().to_string().into();
    report.detail = error.fields().detail.clone().map(Into::into);
    report.hint = error.fields().hint.clone().map(Into::into);
    report
}

/// No rule lets this client in.
fn no_rule(what: &str, origin: Origin, startup: &Startup) -> Report {
    let (host, encryption) = match origin {
        Origin::Local => ("[local]".to_owned(), "no encryption"),
        Origin::Tcp { address, tls } => (
            address.ip().to_canonical().to_string(),
            if tls {
                "SSL encryption"
            } else {
                "no encryption"
            },
        ),
    };
    let text = format!(
        "{what} for host \"{host}\", user \"{}\", database \"{}\", {encryption}",
        startup.user, startup.database
    );
    Report::fatal("28000", text)
}

/// An address of IPv4 as one, however the socket came by it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
