//! What sessions are doing, for others to see (`pg_stat_activity`).
//!
//! Concurrency: a session writes its own entry, twice a statement and for every gate, under a latch that only those who look share.

use super::CancelHandle;
use super::transaction::clock_time;
use crate::catalog::{Mode, Oid};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use vellum::TransactionId;
use vellum_row::datetime::Timestamp;
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// A session, as others see it.
#[derive(Debug)]
pub(crate) struct Activity {
    /// Its number among all sessions.
    pub number: u64,
    pub pid: i32,
    /// The role that logged in; 0 if there is none.
    pub role: Oid,
    /// Where its client is, if it came by TCP.
    pub client: Option<SocketAddr>,
    pub started: Timestamp,
    /// What ends its statement, or the session.
    pub cancel: CancelHandle,
    now: Mutex<Now>,
    /// Transactions that it has committed, and rolled back. Written by its thread alone.
    ends: [AtomicU64; 2],
    /// Statements that were compiled for it. Written by its thread alone.
    compiled: AtomicU64,
    /// The gates that its transaction holds.
    gates: Mutex<Vec<(TransactionId, Oid, Mode)>>,
    /// Transactions of the engine that only keep a snapshot for one of its cursors or portals.
    snapshots: Mutex<Vec<TransactionId>>,
}

/// Bytes of a statement that others are shown: an idle session does not keep a text of megabytes for them.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// What it does now, or did last.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    pub query: Arc<str>,
    pub state: &'static str,
    pub application_name: String,
    pub query_start: Option<Timestamp>,
    pub transaction_start: Option<Timestamp>,
    pub state_change: Timestamp,
    /// Whether its statement waits for what its client sends: a COPY.
    pub copies_in: bool,
    transaction: Option<TransactionId>,
}

impl Activity {
    /// A copy of what it does.
    pub fn now(&self) -> Now {
        self.now.lock().clone()
    }

    /// A statement starts.
    pub fn runs(&self, query: &Arc<str>) {
        let mut now = self.now.lock();
        let time = clock_time();
        now.query = if query.len() <= SHOWN_BYTES_MAX {
            query.clone()
        } else {
            query[..query.floor_char_boundary(SHOWN_BYTES_MAX)].into()
        };
        now.state = "active";
        now.copies_in = false;
        (now.query_start, now.state_change) = (Some(time), time);
    }

    /// The transaction that it is in.
    pub fn transaction(&self) -> Option<TransactionId> {
        self.now.lock().transaction
    }

    /// It belongs to this transaction.
    pub fn is_in(&self, transaction: TransactionId, since: Timestamp) {
        let mut now = self.now.lock();
        now.transaction = Some(transaction);
        now.transaction_start = Some(since);
    }

    /// A transaction of it has ended.
    pub fn has_ended_one(&self, committed: bool) {
        count_one(&self.ends[usize::from(!committed)]);
    }

    /// A statement was compiled for it.
    pub fn has_compiled(&self) {
        count_one(&self.compiled);
    }

    /// Its transaction holds a gate.
    pub fn holds(&self, transaction: TransactionId, relation: Oid, mode: Mode) {
        self.gates.lock().push((transaction, relation, mode));
    }

    /// Its transaction holds only the gates that it told of first, so many times.
    pub fn holds_first(&self, times: usize) {
        self.gates.lock().truncate(times);
    }

    /// Its transaction holds no gate any more.
    pub fn holds_none(&self) {
        self.gates.lock().clear();
    }

    /// A cursor or a portal of it has a snapshot of its own.
    pub fn keeps_snapshot(&self, of: TransactionId) {
        self.snapshots.lock().push(of);
    }

    /// That one has gone.
    pub fn drops_snapshot(&self, of: TransactionId) {
        self.snapshots.lock().retain(|kept| *kept != of);
    }

    /// How many of its cursors and portals have a snapshot of their own.
    pub fn snapshots(&self) -> usize {
        self.snapshots.lock().len()
    }

    /// Its statement waits for what its client sends.
    pub fn copies_in(&self) {
        self.now.lock().copies_in = true;
    }

    /// The gates that its transaction holds, in the order in which it took them.
    pub fn gates(&self) -> Vec<(TransactionId, Oid, Mode)> {
        self.gates.lock().clone()
    }

    /// A statement has ended.
    pub fn rests(&self, state: &'static str) {
        let mut now = self.now.lock();
        now.state = state;
        now.copies_in = false;
        now.state_change = clock_time();
        if state == "idle" {
            (now.transaction, now.transaction_start) = (None, None);
        }
    }

    /// The client has named itself.
    pub fn is_called(&self, application_name: &str) {
        application_name.clone_into(&mut self.now.lock().application_name);
    }
}

/// Adds one to a count that no other thread writes: no locked instruction.
fn count_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// What all sessions have counted since the database was opened, those that have ended included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub sessions: u64,
    pub committed: u64,
    pub rolled_back: u64,
    /// Statements that were compiled.
    pub compiled: u64,
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    open: BTreeMap<u64, Arc<Activity>>,
    /// How many there have been, and what those counted that have ended.
    tally: Tally,
}

impl Activities {
    /// A session starts.
    pub fn enter(
        &self,
        role: Oid,
        pid: i32,
        client: Option<SocketAddr>,
        cancel: CancelHandle,
    ) -> Arc<Activity> {
        let started = clock_time();
        let now = Now {
            query: "".into(),
            state: "idle",
            application_name: String::new(),
            query_start: None,
            transaction_start: None,
            state_change: started,
            copies_in: false,
            transaction: None,
        };
        let mut all = self.all.lock();
        all.tally.sessions += 1;
        let number = all.tally.sessions;
        let activity = Arc::new(Activity {
            number,
            pid,
            role,
            client,
            started,
            cancel,
            now: Mutex::new(now),
            ends: Default::default(),
            compiled: AtomicU64::default(),
            gates: Mutex::default(),
            snapshots: Mutex::default(),
        });
        all.open.insert(number, activity.clone());
        activity
    }

    /// A session has ended.
    pub fn leave(&self, number: u64) {
        let mut all = self.all.lock();
        if let Some(session) = all.open.remove(&number) {
            all.tally.add(&session);
        }
    }

    /// All of them, in the order in which they came.
    pub fn all(&self) -> Vec<Arc<Activity>> {
        self.all.lock().open.values().cloned().collect()
    }

    /// What they have counted.
    pub fn tally(&self) -> Tally {
        let all = self.all.lock();
        let mut tally = all.tally;
        for session in all.open.values() {
            tally.add(session);
        }
        tally
    }

    /// Transactions other than `own` that hold the gate of a relation in a way that does not go with `mode`.
    pub fn in_the_way(&self, own: TransactionId, relation: Oid, mode: Mode) -> Vec<TransactionId> {
        let mut found = Vec::new();
        for session in self.all() {
            for (transaction, held, how) in session.gates.lock().iter() {
                let conflicts = mode == Mode::Alone || *how == Mode::Alone;
                if *held == relation && conflicts && *transaction != own {
                    found.push(*transaction);
                }
            }
        }
        found
    }

    /// The transaction that a session is in.
    pub fn transaction_of(&self, number: u64) -> Option<TransactionId> {
        let all = self.all.lock();
        all.open
            .get(&number)
            .and_then(|session| session.transaction())
    }

    /// The session of this number.
    pub fn numbered(&self, number: u64) -> Option<Arc<Activity>> {
        self.all.lock().open.get(&number).cloned()
    }

    /// The session of a transaction that it is in, or that keeps a snapshot for it.
    pub fn of(&self, transaction: TransactionId) -> Option<Arc<Activity>> {
        let all = self.all.lock();
        let mut sessions = all.open.values();
        let is_of = |session: &&Arc<Activity>| {
            session.now.lock().transaction == Some(transaction)
                || session.snapshots.lock().contains(&transaction)
        };
        sessions.find(is_of).cloned()
    }
}

impl Tally {
    /// Adds what a session has counted.
    fn add(&mut self, session: &Activity) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.committed += of(&session.ends[0]);
        self.rolled_back += of(&session.ends[1]);
        self.compiled += of(&session.compiled);
    }
}
