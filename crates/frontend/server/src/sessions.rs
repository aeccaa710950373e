//! The sessions that are open: how many there may be, who may cancel them, and how all of them are ended.
//!
//! Invariants:
//! - N1: at most `connections_max` sessions; the last `connections_reserved` of them are for the superuser.
//! - N2: at most [`LOGINS_MAX`] logins are under way, so that a flood of connections that say nothing takes no more threads. One more takes the place of the oldest
//!   one that has not sent its first packet for a second, or that takes long: strangers who say nothing keep nobody out for longer, and no request to cancel. Until then, or
//!   while others have come within a second, it waits at the door ([`Sessions::is_crowded`]): so many that come at once all get in.
//! - N3: a key of a session is compared in constant time, and whether a process exists cannot be told from outside.
//!
//! Concurrency: one mutex, held for a look-up; a session's own counters are written by its thread alone.

use crate::auth::credentials::Account;
use crate::secret;
use crate::stream::Socket;
use crate::wire::report::Report;
use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_base::maps::HashMap;
use vellum_sql::CancelHandle;

/// Most logins under way.
pub const LOGINS_MAX: usize = 256;
/// How long a client may take to say who it is where others wait, in nanoseconds; and how long others wait for those who have just come. A client that means it says
/// it at once: only many that come in the same instant take longer, on a machine that has much to do.
const CROWDED_NANOS: u64 = 1_000_000_000;

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    state: Mutex<State>,
    one_ended: Condvar,
    connections_max: usize,
    reserved: usize,
    stopping: AtomicBool,
    /// What sessions that ended had counted.
    ended: Tally,
    /// Logins that made way for others.
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    seats: HashMap<u32, Arc<Seat>>,
    next_process: u32,
    /// Logins under way, in the order in which they came.
    logins: BTreeMap<u64, Entering>,
    next_login: u64,
}

/// A login under way.
#[derive(Debug)]
struct Entering {
    socket: Arc<Socket>,
    /// When it came, by the monotonic clock.
    since: u64,
    /// It has said who it is.
    has_spoken: bool,
}

/// A session, as others see it.
#[derive(Debug)]
pub struct Seat {
    /// Number of the session.
    pub process: u32,
    /// What proves that a request to cancel is its client's.
    pub key: u32,
    /// The role that logged in.
    role: u32,
    /// What the session counts.
    pub tally: Tally,
    socket: Arc<Socket>,
    cancel: Mutex<Option<CancelHandle>>,
}

/// What sessions count. Written by one thread at a time; nothing depends on it.
#[derive(Debug, Default)]
pub struct Tally {
    /// Statements that were run: simple queries and executions of portals.
    pub statements: AtomicU64,
    /// Errors that were sent.
    pub errors: AtomicU64,
    /// Bytes received.
    pub bytes_received: AtomicU64,
    /// Bytes sent.
    pub bytes_sent: AtomicU64,
    /// Nanoseconds that statements took, parsing and binding included, with the time that their clients took to read, and to send the data of a COPY.
    pub statement_nanos: AtomicU64,
}

impl Tally {
    /// Adds to a counter that no other thread writes: no locked instruction.
    pub fn count(counter: &AtomicU64, by: u64) {
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(by),
            Ordering::Relaxed,
        );
    }

    fn all(&self) -> [&AtomicU64; 5] {
        [
            &self.statements,
            &self.errors,
            &self.bytes_received,
            &self.bytes_sent,
            &self.statement_nanos,
        ]
    }

    fn add(&self, other: &Self) {
        for (sum, part) in self.all().into_iter().zip(other.all()) {
            sum.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Holds a place among the sessions; dropping it gives the place back.
#[derive(Debug)]
pub struct Place {
    sessions: Arc<Sessions>,
    seat: Arc<Seat>,
}

/// Holds a place among the logins.
#[derive(Debug)]
pub struct Login {
    sessions: Arc<Sessions>,
    number: u64,
}

impl State {
    /// The login that another one may take the place of.
    fn to_make_way(&self, now: u64, patience: Duration) -> Option<u64> {
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let takes = |login: &Entering| now.saturating_sub(login.since);
        let mut silent = self.logins.iter();
        let silent = silent.find(|(_, login)| !login.has_spoken && takes(login) >= CROWDED_NANOS);
        let late = || {
            let mut all = self.logins.iter();
            all.find(|(_, login)| takes(login) >= patience)
        };
        silent.or_else(late).map(|(number, _)| *number)
    }
}

impl Sessions {
    /// None yet.
    pub fn new(connections_max: usize, reserved: usize) -> Arc<Self> {
        debug_assert!(reserved < connections_max);
        Arc::new(Self {
            state: Mutex::default(),
            one_ended: Condvar::new(),
            connections_max,
            reserved,
            stopping: AtomicBool::new(false),
            ended: Tally::default(),
            evicted: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is no place for another login, and may soon be one: who comes now waits (N2).
    pub fn is_crowded(&self, patience: Duration) -> bool {
        let (now, state) = (monotonic_nanos(), self.lock());
        let mut logins = state.logins.values();
        state.logins.len() >= LOGINS_MAX
            && state.to_make_way(now, patience).is_none()
            && logins.any(|login| now.saturating_sub(login.since) < CROWDED_NANOS)
    }

    /// A place for the login of a client; none if too many are under way, and none of them makes way (N2): one that has said who it is does if it
    /// has taken longer than `patience`.
    pub fn begin_login(
        self: &Arc<Self>,
        socket: &Arc<Socket>,
        patience: Duration,
    ) -> Option<Login> {
        let now = monotonic_nanos();
        let mut state = self.lock();
        if state.logins.len() >= LOGINS_MAX {
            let number = state.to_make_way(now, patience)?;
            self.evicted.fetch_add(1, Ordering::Relaxed);
            if let Some(login) = state.logins.remove(&number) {
                // Its thread sees the end, and ends.
                login.socket.shut_down(Shutdown::Both);
            }
        }
        let number = state.next_login;
        state.next_login += 1;
        let login = Entering {
            socket: socket.clone(),
            since: now,
            has_spoken: false,
        };
        state.logins.insert(number, login);
        Some(Login {
            sessions: self.clone(),
            number,
        })
    }

    /// A place for a session of a role (N1).
    ///
    /// # Errors
    /// FATAL 53300, of all sessions or of the role's, whose limit is not for superusers; 57P03 while the server stops; the outer one if the system gives no
    /// random bytes.
    pub fn enter(
        self: &Arc<Self>,
        socket: Arc<Socket>,
        account: &Account,
    ) -> io::Result<Result<Place, Report>> {
        let key = u32::from_be_bytes(secret::random()?);
        let mut state = self.lock();
        // Under the lock: who stops sees every session, or the session sees that it stops.
        if self.is_stopping() {
            return Ok(Err(Report::fatal(
                "57P03",
                "the database system is shutting down",
            )));
        }
        let taken = state.seats.len();
        if taken >= self.connections_max {
            return Ok(Err(too_many()));
        }
        if taken >= self.connections_max - self.reserved && !account.superuser {
            return Ok(Err(Report::fatal(
                "53300",
                "remaining connection slots are reserved for non-replication superuser connections",
            )));
        }
        if let Some(most) = account.connections_max.filter(|_| !account.superuser) {
            let own = state.seats.values().filter(|seat| seat.role == account.oid);
            if own.count() >= most as usize {
                let text = format!("too many connections for role \"{}\"", account.name);
                return Ok(Err(Report::fatal("53300", text)));
            }
        }
        let process = loop {
            // Positive as an i32, which is what clients take it for.
            state.next_process = state.next_process % (i32::MAX as u32) + 1;
            if !state.seats.contains_key(&state.next_process) {
                break state.next_process;
            }
        };
        let seat = Arc::new(Seat {
            process,
            key,
            role: account.oid,
            tally: Tally::default(),
            socket,
            cancel: Mutex::new(None),
        });
        state.seats.insert(process, seat.clone());
        Ok(Ok(Place {
            sessions: self.clone(),
            seat,
        }))
    }

    /// Cancels what a session runs, if the key is its own (N3). True if it was.
    pub fn cancel(&self, process: u32, key: u32) -> bool {
        let seat = self.lock().seats.get(&process).cloned();
        // Compared in any case: a number that nobody has is no faster.
        let real = seat.as_ref().map_or(!key, |seat| seat.key);
        let equal = secret::equal(&real.to_be_bytes(), &key.to_be_bytes());
        match seat {
            Some(seat) if equal => {
                if let Some(cancel) = &*seat.lock_cancel() {
                    cancel.cancel();
                }
                true
            }
            _ => false,
        }
    }

    /// Whether the server stops.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Lets nobody in any more, and no session read another message: what runs goes on.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for seat in self.seats() {
            seat.socket.shut_down(Shutdown::Read);
        }
    }

    /// Ends what runs with 57P01.
    pub fn cancel_all(&self) {
        for seat in self.seats() {
            if let Some(cancel) = &*seat.lock_cancel() {
                cancel.shut_down();
            }
        }
    }

    /// Ends the sockets, also of clients that do not read.
    pub fn disconnect_all(&self) {
        for seat in self.seats() {
            seat.socket.shut_down(Shutdown::Both);
        }
    }

    /// Waits until no session is left, or `time` is over; false then.
    pub fn wait_until_empty(&self, time: Duration) -> bool {
        let waited = self
            .one_ended
            .wait_timeout_while(self.lock(), time, |state| !state.seats.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        !waited.1.timed_out()
    }

    /// Sessions now.
    pub fn count(&self) -> usize {
        self.lock().seats.len()
    }

    /// Logins under way.
    pub fn logins(&self) -> usize {
        self.lock().logins.len()
    }

    /// Logins that made way for others.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Most sessions.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// What all sessions have counted.
    pub fn tally(&self) -> Tally {
        let sum = Tally::default();
        // Under the lock a session is either open or added to those that ended.
        let state = self.lock();
        sum.add(&self.ended);
        for seat in state.seats.values() {
            sum.add(&seat.tally);
        }
        sum
    }

    fn seats(&self) -> Vec<Arc<Seat>> {
        self.lock().seats.values().cloned().collect()
    }
}

/// The answer to one connection too many.
pub fn too_many() -> Report {
    Report::fatal("53300", "sorry, too many clients already")
}

impl Seat {
    fn lock_cancel(&self) -> MutexGuard<'_, Option<CancelHandle>> {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What cancels its statements, from now on.
    pub fn set_cancel(&self, cancel: CancelHandle) {
        *self.lock_cancel() = Some(cancel);
    }
}

impl Place {
    /// The session, as others see it.
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// All sessions.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.sessions.lock();
        state.seats.remove(&self.seat.process);
        self.sessions.ended.add(&self.seat.tally);
        drop(state);
        self.sessions.one_ended.notify_all();
    }
}

impl Login {
    /// The client has said who it is.
    pub fn has_spoken(&self) {
        if let Some(login) = self.sessions.lock().logins.get_mut(&self.number) {
            login.has_spoken = true;
        }
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // Gone already, if it had to make way.
        self.sessions.lock().logins.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    const LONG: Duration = Duration::from_secs(600);

    fn socket() -> Arc<Socket> {
        Arc::new(Socket::unix(UnixStream::pair().unwrap().0))
    }

    fn enter(sessions: &Arc<Sessions>, superuser: bool) -> Result<Place, Report> {
        let account = Account {
            superuser,
            ..account("ann", 20)
        };
        sessions.enter(socket(), &account).unwrap()
    }

    fn account(name: &str, oid: u32) -> Account {
        Account {
            name: name.to_owned(),
            oid,
            connections_max: None,
            verifier: None,
            superuser: false,
            login: true,
        }
    }

    #[test]
    fn a_role_has_no_more_sessions_than_its_limit_unless_it_may_do_anything() {
        let sessions = Sessions::new(9, 1);
        let mut ann = account("ann", 20);
        ann.connections_max = Some(1);
        let enter = |account: &Account| sessions.enter(socket(), account).unwrap();
        let one = enter(&ann).unwrap();
        let error = enter(&ann).unwrap_err();
        assert_eq!(error.sqlstate, "53300");
        assert_eq!(error.message, "too many connections for role \"ann\"");
        let bob = enter(&account("bob", 21)).unwrap();
        drop(one);
        let one = enter(&ann).unwrap();
        ann.superuser = true;
        assert!(enter(&ann).is_ok());
        drop((one, bob));
    }

    #[test]
    fn the_last_places_are_the_superusers() {
        let sessions = Sessions::new(3, 1);
        let one = enter(&sessions, false).unwrap();
        let two = enter(&sessions, false).unwrap();
        assert_ne!(one.seat().process, two.seat().process);
        let error = enter(&sessions, false).unwrap_err();
        assert!(error.message.starts_with("remaining connection slots"));
        let three = enter(&sessions, true).unwrap();
        assert_eq!(enter(&sessions, true).unwrap_err(), too_many());
        drop((one, three));
        assert!(enter(&sessions, false).is_ok());
    }

    #[test]
    fn only_the_right_key_cancels() {
        let sessions = Sessions::new(3, 1);
        let place = enter(&sessions, false).unwrap();
        let (process, key) = (place.seat().process, place.seat().key);
        assert!(!sessions.cancel(process, key ^ 1));
        assert!(!sessions.cancel(process + 1, key));
        assert!(sessions.cancel(process, key));
        drop(place);
        assert!(!sessions.cancel(process, key));
    }

    #[test]
    fn who_stops_lets_nobody_in_and_waits_for_those_inside() {
        let sessions = Sessions::new(3, 1);
        let place = enter(&sessions, false).unwrap();
        sessions.stop();
        assert_eq!(enter(&sessions, true).unwrap_err().sqlstate, "57P03");
        assert!(!sessions.wait_until_empty(Duration::ZERO));
        drop(place);
        assert!(sessions.wait_until_empty(Duration::ZERO));
    }

    #[test]
    fn logins_are_bounded_and_those_that_say_nothing_make_way() {
        let sessions = Sessions::new(3, 1);
        let begin = |patience| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let login = sessions.begin_login(&Arc::new(Socket::unix(ours)), patience);
            (login, theirs)
        };
        let is_open = |mut client: &UnixStream| {
            client.set_nonblocking(true).unwrap();
            std::io::Read::read(&mut client, &mut [0]).is_err()
        };
        let logins: Vec<_> = (0..LOGINS_MAX).map(|_| begin(LONG)).collect();
        for (login, _) in &logins {
            login.as_ref().unwrap().has_spoken();
        }
        let (refused, _client) = begin(LONG);
        assert!(refused.is_none(), "all of them are proving themselves");
        assert!(sessions.is_crowded(LONG), "there may soon be a place");
        sessions.lock().logins.get_mut(&7).unwrap().has_spoken = false;
        assert!(begin(LONG).0.is_none(), "it has not had its second");
        std::thread::sleep(Duration::from_nanos(CROWDED_NANOS));
        assert!(!sessions.is_crowded(LONG));
        let (login, client) = begin(LONG);
        assert!(login.is_some() && is_open(&client));
        let open = |at: &usize| is_open(&logins[*at].1);
        let gone: Vec<usize> = (0..LOGINS_MAX).filter(|at| !open(at)).collect();
        assert_eq!(gone, [7], "only the silent one made way");
        login.as_ref().unwrap().has_spoken();
        assert!(begin(Duration::ZERO).0.is_some() && !open(&0), "late");
        assert_eq!(sessions.evicted(), 2);
        drop((logins, login));
        assert_eq!(sessions.logins(), 0);
    }

    #[test]
    fn what_a_session_counted_stays_when_it_ends() {
        let sessions = Sessions::new(3, 1);
        let place = enter(&sessions, false).unwrap();
        Tally::count(&place.seat().tally.statements, 5);
        let statements = || sessions.tally().statements.load(Ordering::Relaxed);
        assert_eq!(statements(), 5);
        drop(place);
        assert_eq!(statements(), 5);
    }
}
