//! A connection after login: messages in, answers out.
//!
//! States: between messages; copying (the client sends data of a COPY); skipping (an extended query failed: everything up to
//! Sync is thrown away). Each of them lasts while the connection is parked, too.
//!
//! | module | concern |
//! | --- | --- |
//! | this one | the loop: read, dispatch, flush, rest |
//! | [`requests`] | what each message does |
//! | [`answers`] | what a session tells, as messages |
//! | [`work`] | what statements cost |
//!
//! Invariants:
//! - P1: the client is written to when it has something to wait for: at ReadyForQuery, at Flush, before a COPY's data, after an
//!   error, and when [`crate::wire::outbound::FLUSH_BYTES`] are gathered. So a group of messages up to a Sync has one write.
//! - P2: whatever a message contains, the answer is an error of this connection. What follows a broken frame cannot be
//!   read, so that ends it (FATAL); what follows a broken body can.
//! - P3: after an error in an extended query nothing is done before the next Sync.
//! - P4: idle limits are counted from ReadyForQuery, or else from the last whole message, to the next whole one.
//! - P5: what clients are told of settings is told before ReadyForQuery, whatever has changed them: a statement, the end of a transaction or a COPY, an error.
//!
//! Concurrency: one thread at a time.

pub mod answers;
pub mod requests;
pub mod work;

use crate::crew::Crew;
use crate::sessions::{Place, Tally};
use crate::settings::Settings;
use crate::stream::Stream;
use crate::troubles::Troubles;
use crate::wire::inbound::{Frame, Inbound};
use crate::wire::outbound::Outbound;
use crate::wire::report::Report;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_sql::{Session, TransactionStatus};

/// How long a connection keeps its thread while its client says nothing.
pub const PAUSE: Duration = Duration::from_millis(200);
/// The same in a crowd. What a session holds is allocated on the thread that lets it in, and a page of the allocator stays with
/// the process while a session has a block of it: thousands that log in at once on a thread each keep some 800 KiB of each thread.
const PAUSE_CROWDED: Duration = Duration::from_millis(20);
/// The same of one whose session listens to others: only a parked one can be told what they say.
const PAUSE_LISTENING: Duration = Duration::from_millis(1);

/// What connections need of the settings.
#[derive(Debug)]
pub struct Limits {
    /// Longest body of a message.
    pub message_bytes_max: usize,
    /// When a session that says nothing ends.
    pub idle: Option<Duration>,
    /// The same in a transaction.
    pub idle_in_transaction: Option<Duration>,
    /// How long a write waits.
    pub write: Option<Duration>,
    /// Statements that take at least as long are logged.
    pub log_statement_nanos: Option<u64>,
    /// How many errors that are the operator's business are logged.
    pub troubles: Troubles,
}

impl Limits {
    /// Those of the settings.
    pub fn new(settings: &Settings) -> Self {
        let seconds = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        Self {
            message_bytes_max: settings.message_mib_max << 20,
            idle: seconds(settings.idle_timeout_seconds),
            idle_in_transaction: seconds(settings.idle_in_transaction_timeout_seconds),
            write: seconds(settings.write_timeout_seconds),
            log_statement_nanos: u64::try_from(settings.log_statements_ms)
                .ok()
                .map(|ms| ms.saturating_mul(1_000_000)),
            troubles: Troubles::default(),
        }
    }
}

/// A client that has logged in.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    inbound: Inbound,
    out: Outbound,
    session: Session,
    mode: Mode,
    /// An error waits to be sent although nobody asked for a flush.
    urgent: bool,
    /// The client was told that it may say something new, and has not.
    awaited: bool,
    /// Since when nothing whole has come from it (monotonic, nanoseconds), once somebody has asked: whatever wakes the connection, and bytes of a message that does
    /// not end, leave it (P4).
    silent_since: Option<u64>,
    /// How long it waits for its client.
    pause: Duration,
    crew: Crew,
    limits: Arc<Limits>,
    place: Place,
    /// The statement that waits for the data of its COPY.
    unfinished: Option<work::Unfinished>,
}

/// What the connection does with messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// What they say.
    Serving,
    /// Nothing before the next Sync.
    Skipping,
    /// They are data of a COPY, which an extended query began, or a simple one.
    Copying { extended: bool },
}

/// Why a parked connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Its client said something, or left.
    Readable,
    /// It has been idle for too long.
    Expired,
    /// Others have said something to its session, or have asked the COPY to end that it waits for.
    Told,
    /// The server stops.
    Stopping,
}

/// How a connection leaves its thread.
#[derive(Debug)]
pub enum Rest {
    /// Its client says nothing: it waits elsewhere, until the moment (monotonic, nanoseconds) if there is one.
    Parked(Box<Connection>, Option<u64>),
    /// It is over.
    Ended,
}

/// The connection is over.
#[derive(Debug)]
enum End {
    /// As its client asked.
    Asked,
    /// The client is told why.
    Told(Report),
    /// The client cannot be told any more.
    Lost(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl Connection {
    /// A connection whose login is done; `out` holds what the client was not sent yet.
    pub fn new(
        stream: Stream,
        out: Outbound,
        session: Session,
        crew: Crew,
        limits: Arc<Limits>,
        place: Place,
    ) -> Self {
        Self {
            stream,
            inbound: Inbound::new(),
            out,
            session,
            mode: Mode::Serving,
            urgent: false,
            awaited: false,
            silent_since: None,
            pause: PAUSE,
            crew,
            limits,
            place,
            unfinished: None,
        }
    }

    /// Number of the session.
    pub fn process(&self) -> u32 {
        self.place.seat().process
    }

    /// Whether its client has to be told something, and may be now: what others said, unless it is in the middle of something; that its
    /// COPY is over.
    pub fn has_news(&self) -> bool {
        match self.mode {
            Mode::Serving => self.session.has_notifications(),
            Mode::Copying { .. } => self.session.is_copy_over(),
            Mode::Skipping => false,
        }
    }

    /// Tells its client what others said.
    fn tell_news(&mut self) {
        if self.mode == Mode::Serving {
            for news in self.session.take_notifications() {
                answers::notification(&mut self.out, &news);
            }
        }
    }

    /// Pauses are short while the session listens, and in a crowd.
    fn keep_pace(&mut self) -> io::Result<()> {
        let pause = if self.session.is_listening() {
            PAUSE_LISTENING
        } else if self.crew.is_crowded() {
            PAUSE_CROWDED
        } else {
            PAUSE
        };
        if pause != self.pause {
            self.pause = pause;
            self.stream.set_pace(pause, self.limits.write)?;
        }
        Ok(())
    }

    /// Number of the socket's descriptor.
    pub fn descriptor(&self) -> std::os::fd::RawFd {
        self.stream.socket().descriptor()
    }

    /// Tells the client that login is done, and serves it.
    pub fn begin(mut self: Box<Self>) -> Rest {
        let begun = self
            .stream
            .set_pace(self.pause, self.limits.write)
            .map_err(End::Lost)
            .and_then(|()| self.ready());
        match begun {
            Ok(()) => self.serve(),
            Err(end) => self.end(end),
        }
    }

    /// Goes on after it was parked.
    pub fn wake(mut self: Box<Self>, why: Wake) -> Rest {
        match why {
            Wake::Readable => self.serve(),
            Wake::Told => {
                self.tell_news();
                match self.end_copy().and_then(|()| self.flush()) {
                    Ok(()) => self.serve(),
                    Err(end) => self.end(end),
                }
            }
            Wake::Expired if matches!(self.mode, Mode::Copying { .. }) => self.wake(Wake::Told),
            Wake::Expired => {
                match self.end_pipeline().transpose() {
                    Some(Ok(())) => return self.serve(),
                    Some(Err(end)) => return self.end(end),
                    None => {}
                }
                let report = if !self.is_in_transaction() {
                    let text = "terminating connection due to idle-session timeout";
                    Report::fatal("57P05", text)
                } else {
                    let text = "terminating connection due to idle-in-transaction timeout";
                    Report::fatal("25P03", text)
                };
                self.end(End::Told(report))
            }
            Wake::Stopping => self.end(End::Told(stopping())),
        }
    }

    /// Handles messages until the client pauses or the connection ends.
    fn serve(mut self: Box<Self>) -> Rest {
        loop {
            if let Err(end) = self.handle_all() {
                return self.end(end);
            }
            if self.is_stopping() {
                return self.end(End::Told(stopping()));
            }
            if let Err(error) = self.keep_pace() {
                return self.end(End::Lost(error));
            }
            if !self.inbound.is_empty() && self.is_overdue() {
                return self.wake(Wake::Expired);
            }
            match self.inbound.fill(&mut self.stream) {
                Ok(0) => {
                    // A server that stops shuts the reading side down: that looks like a client that left.
                    let end = if self.is_stopping() {
                        End::Told(stopping())
                    } else {
                        End::Lost(io::ErrorKind::UnexpectedEof.into())
                    };
                    return self.end(end);
                }
                Ok(count) => {
                    Tally::count(&self.place.seat().tally.bytes_received, count as u64);
                }
                Err(error) if is_pause(&error) => return self.park(),
                Err(error) => {
                    let end = if self.is_stopping() {
                        End::Told(stopping())
                    } else {
                        End::Lost(error)
                    };
                    return self.end(end);
                }
            }
        }
    }

    /// Whether the server stops, or somebody ended this session.
    fn is_stopping(&self) -> bool {
        self.place.sessions().is_stopping() || self.session.is_shut_down()
    }

    /// Handles every message that has arrived.
    fn handle_all(&mut self) -> Result<(), End> {
        loop {
            match self.inbound.next(self.limits.message_bytes_max) {
                Ok(Frame::Message { kind, body }) => self.handle(kind, body)?,
                Ok(Frame::TooLong { kind, bytes }) => self.refuse_long(kind, bytes)?,
                Ok(Frame::Incomplete) => break,
                Err(report) => return Err(End::Told(report)),
            }
        }
        if self.urgent {
            self.flush()?;
        }
        Ok(())
    }

    /// Leaves the thread with as little memory as possible.
    fn park(mut self: Box<Self>) -> Rest {
        if self.inbound.is_empty() {
            self.inbound.release();
        }
        if self.out.is_empty() {
            self.out.release();
        }
        // What it has waited for by now counts.
        let pause = u64::try_from(self.pause.as_nanos()).unwrap_or(u64::MAX);
        let deadline = self.deadline(monotonic_nanos().saturating_sub(pause));
        Rest::Parked(self, deadline)
    }

    /// When its client has to have said something whole. If nobody has asked since it did, it says nothing since `now`.
    fn deadline(&mut self, now: u64) -> Option<u64> {
        let of_statement = self.session.deadline();
        if matches!(self.mode, Mode::Copying { .. }) {
            // It is not idle: it is in the middle of a statement.
            return of_statement;
        }
        let (name, limit) = match self.is_in_transaction() {
            false => ("idle_session_timeout", self.limits.idle),
            true => (
                "idle_in_transaction_session_timeout",
                self.limits.idle_in_transaction,
            ),
        };
        // What the session has set goes before what the server has, and says nothing in the middle of a pipeline.
        let own = match self.awaited {
            true => self.session.milliseconds(name),
            false => 0,
        };
        let limit = match own {
            0 => limit,
            own => Some(Duration::from_millis(own)),
        };
        let since = *self.silent_since.get_or_insert(now);
        let of_silence = limit.map(|limit| {
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            since.saturating_add(nanos)
        });
        [of_statement, of_silence].into_iter().flatten().min()
    }

    /// Whether its client, which has said a part of a message, is late with the rest.
    fn is_overdue(&mut self) -> bool {
        let now = monotonic_nanos();
        self.deadline(now).is_some_and(|deadline| deadline <= now)
    }

    /// Whether a transaction is open, in a block or in a pipeline, or has failed and waits for its end.
    fn is_in_transaction(&self) -> bool {
        self.session.status() != TransactionStatus::Idle || self.session.has_open_transaction()
    }

    /// ReadyForQuery, and the write that every group of messages ends with (P1).
    fn ready(&mut self) -> Result<(), End> {
        self.tell_news();
        for (name, value) in self.session.changed_statuses() {
            self.out.parameter_status(name, &value);
        }
        self.out.ready(self.session.status().byte());
        (self.awaited, self.silent_since) = (true, None);
        self.flush()
    }

    /// Writes what is gathered.
    fn flush(&mut self) -> Result<(), End> {
        self.urgent = false;
        Ok(write_out(
            &mut self.stream,
            &mut self.out,
            &self.place.seat().tally,
        )?)
    }

    /// The end: tells the client, if it listens. The session's transaction is rolled back when it is dropped.
    fn end(&mut self, end: End) -> Rest {
        let process = self.place.seat().process;
        match end {
            End::Asked => tracing::debug!(process, "client left"),
            End::Told(report) => {
                tracing::info!(
                    process,
                    sqlstate = %report.sqlstate,
                    "connection ended: {}", report.message
                );
                report.write(&mut self.out);
                Tally::count(&self.place.seat().tally.errors, 1);
                // If it cannot be told, it is gone already.
                let _ = self.flush();
            }
            End::Lost(error) => {
                let open = self.is_in_transaction();
                if open || !matches!(error.kind(), io::ErrorKind::UnexpectedEof) {
                    tracing::info!(process, %error, open_transaction = open, "client lost");
                }
            }
        }
        self.stream.close();
        Rest::Ended
    }
}

/// Writes what is gathered, in as few calls as the socket allows.
fn write_out(stream: &mut Stream, out: &mut Outbound, tally: &Tally) -> io::Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    stream.write_all(out.as_slice())?;
    stream.flush()?;
    Tally::count(&tally.bytes_sent, out.as_slice().len() as u64);
    out.clear();
    Ok(())
}

fn stopping() -> Report {
    Report::fatal(
        "57P01",
        "terminating connection due to administrator command",
    )
}

/// Whether a read ended because the client says nothing.
fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
