//! The one thread that waits for everybody who says nothing: new clients, and connections that are parked.
//!
//! A connection whose client pauses leaves its thread and waits here, as a descriptor in the system's list and the memory of its
//! session. When its client says something, when it has been idle for too long, or when the server stops, it goes back to a thread.
//!
//! Invariants:
//! - D1: a parked connection is in exactly one place: the inbox, the slots, or a thread.
//! - D2: a descriptor is registered while its connection is in a slot, and at no other time. What arrived before it was
//!   registered is reported, too, so no message is overlooked.
//! - D3: this thread never blocks on a client and never runs a statement.
//!
//! Concurrency: others put connections into the inbox and wake the thread; all else is its own.

use crate::connection::{Connection, Rest, Wake};
use crate::login;
use crate::server::Shared;
use crate::sessions::too_many;
use crate::stream::Socket;
use crate::wire::outbound::Outbound;
use crate::wire::report::Report;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustix::net::sockopt;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_base::maps::HashMap;

/// How long a login has that is begun, where others wait for its place: a slow network's ten round trips. Whoever keeps places that long has to come again.
const CROWDED_PATIENCE: Duration = Duration::from_secs(3);

/// Token of the waker.
const WAKE: Token = Token(usize::MAX);
/// How long accepting pauses after the system refused a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// When it is looked again whether there is a place for a login.
const CROWDED_PAUSE: Duration = Duration::from_millis(3);
/// Clients that are let in before those are heard that are in.
const ACCEPTED_MAX: usize = 64;
/// How long a client that was refused has for reading why, and how many may read at a time.
const REFUSED_PATIENCE: Duration = Duration::from_secs(1);
pub const REFUSED_MAX: usize = 64;
/// How soon a client that vanished without a word is noticed: idle time, then probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_PROBES: u32 = 4;

/// Where clients come from.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// The Unix socket.
    Unix(UnixListener),
    /// Nobody comes any more.
    Closed,
}

/// How others reach the thread.
#[derive(Debug)]
pub struct Bell {
    waker: Waker,
    inbox: Mutex<Vec<Parked>>,
    /// Sessions whose clients have to be told something, by their numbers.
    told: Mutex<Vec<u32>>,
}

/// A connection that waits.
#[derive(Debug)]
struct Parked {
    connection: Box<Connection>,
    deadline: Option<u64>,
}

/// The thread's own things.
pub struct Door {
    shared: Arc<Shared>,
    poll: Poll,
    listeners: Vec<Listener>,
    slots: Vec<Option<Parked>>,
    free: Vec<usize>,
    /// Slots of sessions, by their numbers.
    of_process: HashMap<u32, usize>,
    /// (moment, slot) of those that may not wait for ever.
    deadlines: BTreeSet<(u64, usize)>,
    /// When accepting is tried again.
    accept_again: Option<u64>,
    /// Sockets of clients that were told why they are not let in, with the moment when they are closed: closed at once, with what the client has said unread,
    /// they would be reset, and it might never read why.
    refused: VecDeque<(u64, Arc<Socket>)>,
}

impl Bell {
    /// Takes over what a connection is at its rest: parks it, or forgets it.
    pub fn rest(&self, rest: Rest) {
        if let Rest::Parked(connection, deadline) = rest {
            let parked = Parked {
                connection,
                deadline,
            };
            let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            inbox.push(parked);
            drop(inbox);
            self.ring();
        }
    }

    /// A session's client has to be told something: it is woken if it is parked, and looks when it is parked otherwise.
    pub fn tell(&self, process: u32) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(process);
        drop(told);
        self.ring();
    }

    /// Wakes the thread.
    pub fn ring(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake the thread that waits for clients");
        }
    }

    fn take_told(&self) -> Vec<u32> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self) -> Vec<Parked> {
        std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes what the thread waits with.
///
/// # Errors
/// If the system has no such thing to give.
pub fn make() -> io::Result<(Poll, Bell)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKE)?;
    let bell = Bell {
        waker,
        inbox: Mutex::default(),
        told: Mutex::default(),
    };
    Ok((poll, bell))
}

impl Door {
    /// Opens the door for `listeners`, which must not block.
    ///
    /// # Errors
    /// If they cannot be waited for.
    pub fn new(shared: Arc<Shared>, poll: Poll, listeners: Vec<Listener>) -> io::Result<Self> {
        for (number, listener) in listeners.iter().enumerate() {
            if let Some(descriptor) = listener.descriptor() {
                let mut source = SourceFd(&descriptor);
                poll.registry()
                    .register(&mut source, Token(number), Interest::READABLE)?;
            }
        }
        Ok(Self {
            shared,
            poll,
            listeners,
            slots: Vec::new(),
            free: Vec::new(),
            of_process: HashMap::default(),
            deadlines: BTreeSet::new(),
            accept_again: None,
            refused: VecDeque::new(),
        })
    }

    /// The thread's life: until the server stops and no session is left.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(256);
        loop {
            if let Err(error) = self.poll.poll(&mut events, self.patience())
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "waiting for clients failed");
                // Nothing is known to be ready; another try costs nothing but time.
                std::thread::sleep(ACCEPT_PAUSE);
            }
            let stopping = self.shared.sessions.is_stopping();
            for event in &events {
                match event.token() {
                    WAKE => {}
                    Token(number) if number < self.listeners.len() => {
                        if !stopping {
                            self.accept(number);
                        }
                    }
                    Token(number) => self.wake(number - self.listeners.len(), Wake::Readable),
                }
            }
            for parked in self.shared.bell.take() {
                self.park(parked);
            }
            for process in self.shared.bell.take_told() {
                if let Some(slot) = self.of_process.get(&process).copied() {
                    self.wake(slot, Wake::Told);
                }
            }
            self.wake_expired();
            self.close_refused();
            if stopping {
                self.close();
                for slot in 0..self.slots.len() {
                    self.wake(slot, Wake::Stopping);
                }
                if self.shared.sessions.count() == 0 {
                    return;
                }
            } else if self.accept_again.is_some_and(|at| at <= monotonic_nanos()) {
                self.accept_again = None;
                for number in 0..self.listeners.len() {
                    self.accept(number);
                }
            }
        }
    }

    /// How long there is nothing to do unless something happens.
    fn patience(&self) -> Option<Duration> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        let refused = self.refused.front().map(|(at, _)| *at);
        let next = [first, self.accept_again, refused];
        let next = next.into_iter().flatten().min()?;
        // Rounded up: the system's timer has milliseconds.
        let nanos = next
            .saturating_sub(monotonic_nanos())
            .saturating_add(1_000_000);
        Some(Duration::from_nanos(nanos))
    }

    /// Closes the listeners. Tokens of slots count on from theirs, so as many stay.
    fn close(&mut self) {
        for listener in &mut self.listeners {
            if let Some(descriptor) = listener.descriptor() {
                // Closing it would do it, too.
                let _ = self.poll.registry().deregister(&mut SourceFd(&descriptor));
                *listener = Listener::Closed;
            }
        }
    }

    /// Goes on letting clients in after a pause: listeners tell of one that came, and not of those that wait.
    fn accept_after(&mut self, pause: Duration) {
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.accept_again = Some(monotonic_nanos().saturating_add(pause));
    }

    /// How long a login may take where others wait: part of all that it may take.
    fn login_patience(&self) -> Duration {
        let all = Duration::from_secs(self.shared.settings.login_timeout_seconds);
        (all / 4).min(CROWDED_PATIENCE)
    }

    /// Lets in who waits at a listener, as many as there is room for.
    fn accept(&mut self, number: usize) {
        let patience = self.login_patience();
        for _ in 0..ACCEPTED_MAX {
            if self.shared.sessions.is_crowded(patience) {
                self.accept_after(CROWDED_PAUSE);
                return;
            }
            let socket = match self.listeners[number].accept() {
                Ok(Some(socket)) => socket,
                Ok(None) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client left before it was let in, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) =>
                {
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Descriptors that nobody misses.
                    self.refused.clear();
                    self.accept_after(ACCEPT_PAUSE);
                    return;
                }
            };
            self.let_in(socket, patience);
        }
        self.accept_after(Duration::ZERO);
    }

    fn let_in(&mut self, socket: Socket, patience: Duration) {
        let (shared, socket) = (&self.shared, Arc::new(socket));
        shared.counts.accepted.fetch_add(1, Ordering::Relaxed);
        if let Some(address) = socket.address()
            && !shared.rules.may_admit(address)
        {
            let text = format!(
                "no pg_hba.conf entry for host \"{}\"",
                address.ip().to_canonical()
            );
            tracing::debug!(%address, "no rule lets anybody in from there");
            self.refuse(socket, &Report::fatal("28000", text));
            return;
        }
        let Some(login) = shared.sessions.begin_login(&socket, patience) else {
            self.refuse(socket, &too_many());
            return;
        };
        let (of_work, of_client) = (shared.clone(), socket.clone());
        let handed = shared.crew.run(move || {
            let rest = login::run(&of_work, of_client, login);
            of_work.bell.rest(rest);
        });
        if let Err(error) = handed {
            tracing::error!(%error, "no thread for a new connection");
            self.refuse(socket, &too_many());
        }
    }

    /// Tells a client why it is not let in, without waiting for it: what does not fit into the socket's buffer, which is empty, is
    /// not told.
    fn refuse(&mut self, socket: Arc<Socket>, why: &Report) {
        self.shared.counts.refused.fetch_add(1, Ordering::Relaxed);
        let mut out = Outbound::new();
        why.write(&mut out);
        let _ = (&mut &*socket).write(out.as_slice());
        socket.shut_down(Shutdown::Write);
        if self.refused.len() >= REFUSED_MAX {
            self.refused.pop_front();
        }
        let patience = u64::try_from(REFUSED_PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        let at = monotonic_nanos().saturating_add(patience);
        self.refused.push_back((at, socket));
    }

    fn close_refused(&mut self) {
        let now = monotonic_nanos();
        while self.refused.front().is_some_and(|(at, _)| *at <= now) {
            self.refused.pop_front();
        }
    }

    /// Waits for a connection.
    fn park(&mut self, parked: Parked) {
        let descriptor = parked.connection.descriptor();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        debug_assert!(self.slots[slot].is_none(), "D1");
        if let Some(at) = parked.deadline {
            self.deadlines.insert((at, slot));
        }
        // What came before it was parked was told to nobody.
        let has_news = parked.connection.has_news();
        self.of_process.insert(parked.connection.process(), slot);
        self.slots[slot] = Some(parked);
        self.shared.counts.parked.fetch_add(1, Ordering::Relaxed);
        let token = Token(self.listeners.len() + slot);
        let registered =
            self.poll
                .registry()
                .register(&mut SourceFd(&descriptor), token, Interest::READABLE);
        if let Err(error) = registered {
            tracing::error!(%error, "cannot wait for a client");
            // It goes on with a thread of its own, which waits for it again.
            self.wake(slot, Wake::Readable);
        } else if has_news {
            self.wake(slot, Wake::Told);
        }
    }

    /// Gives a connection back to a thread.
    fn wake(&mut self, slot: usize, why: Wake) {
        // An event may be older than a deadline that has woken the same connection.
        let Some(parked) = self.slots.get_mut(slot).and_then(Option::take) else {
            return;
        };
        self.free.push(slot);
        self.of_process.remove(&parked.connection.process());
        if let Some(at) = parked.deadline {
            self.deadlines.remove(&(at, slot));
        }
        self.shared.counts.parked.fetch_sub(1, Ordering::Relaxed);
        let descriptor = parked.connection.descriptor();
        // If it could not be registered, there is nothing to undo (D2).
        let _ = self.poll.registry().deregister(&mut SourceFd(&descriptor));
        let shared = self.shared.clone();
        let handed = self.shared.crew.run(move || {
            let rest = parked.connection.wake(why);
            shared.bell.rest(rest);
        });
        if let Err(error) = handed {
            tracing::error!(%error, "no thread for a connection: it is closed");
        }
    }

    fn wake_expired(&mut self) {
        let now = monotonic_nanos();
        while let Some((at, slot)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.remove(&(at, slot));
            self.wake(slot, Wake::Expired);
        }
    }
}

impl Listener {
    fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::Tcp(listener) => Some(listener.as_raw_fd()),
            Self::Unix(listener) => Some(listener.as_raw_fd()),
            Self::Closed => None,
        }
    }

    /// The next client; none if the door is closed.
    fn accept(&self) -> io::Result<Option<Socket>> {
        match self {
            Self::Tcp(listener) => {
                let (socket, address) = listener.accept()?;
                // Answers are written whole; waiting for more would only delay them.
                socket.set_nodelay(true)?;
                // Without them a client whose machine vanished would keep its place; a system that cannot do it serves all the
                // same.
                let _ = sockopt::set_socket_keepalive(&socket, true)
                    .and_then(|()| sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE))
                    .and_then(|()| sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL))
                    .and_then(|()| sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_PROBES));
                Ok(Some(Socket::tcp(socket, address)))
            }
            Self::Unix(listener) => Ok(Some(Socket::unix(listener.accept()?.0))),
            Self::Closed => Ok(None),
        }
    }
}
