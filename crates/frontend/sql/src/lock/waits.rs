//! Waiting for transactions to end, and circles of waits.
//!
//! Invariants:
//! - W1 Who waits is entered with all whom it waits for before it looks whether they are still in its way, and rung when one of them
//!   ends after that: no end is missed. (It looks again after [`LOOK`] whatever happens, for cancels and timeouts.)
//! - W2 A circle is found when its last wait is entered: entering and looking for it is one step under the latch. The one that
//!   closes it gives up, as in PostgreSQL, where it is the first whose `deadlock_timeout` finds the circle.
//! - W3 Nobody gives up for a circle that goes over one who waits politely, behind others that only wait: that one goes past them instead.
//!
//! Concurrency: one latch for all waits; an end takes it only while somebody waits. A Dekker pair: a waiter counts itself, fences, then looks
//! at the engine; an ending transaction has ended in the engine, fences, then looks at the count.

use crate::catalog::{Mode, Oid};
use crate::error::{Result, SqlError};
use crate::session::{Waiting, clock_time};
use crate::sqlstate;
use std::sync::Arc;
use std::time::Duration;
use vellum::TransactionId;
use vellum_base::maps::HashMap;
use vellum_row::datetime::Timestamp;
use vellum_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use vellum_sync::{Condvar, Mutex};

/// How long a wait parks before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    count: AtomicU32,
    /// Circles that ended a transaction.
    circles: AtomicU64,
    entered: Mutex<HashMap<TransactionId, Wait>>,
}

/// What a transaction waits at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitsAt {
    /// Rows that others have written or locked: their ends.
    Rows,
    /// The gate of a relation, a type or a schema, to hold it so.
    Gate(Oid, Mode),
    /// An advisory lock: the table of these knows which.
    Advisory,
}

/// A wait as others see it.
#[derive(Clone, Debug)]
pub(crate) struct ShownWait {
    pub transaction: TransactionId,
    pub at: WaitsAt,
    /// For whom.
    pub on: Vec<TransactionId>,
    pub since: Timestamp,
}

/// One that waits.
#[derive(Debug)]
struct Wait {
    at: WaitsAt,
    since: Timestamp,
    on: Vec<TransactionId>,
    bell: Arc<Condvar>,
    rung: bool,
    manners: Manners,
}

/// Whether one that waits has to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manners {
    /// What it wants others have.
    Must,
    /// What it wants others have asked for before.
    Polite,
    /// The same, and it was told to go past them.
    GoesPast,
}

impl Waits {
    /// A transaction has ended, or released locks: whoever waits for it looks again.
    pub fn ended(&self, id: TransactionId) {
        // W1: pairs with the fence of `wait`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut bells = Vec::new();
        for wait in self.entered.lock().values_mut() {
            if wait.on.contains(&id) {
                wait.rung = true;
                bells.push(wait.bell.clone());
            }
        }
        // Without the latch: whoever wakes wants it first of all, and would go to sleep again.
        for bell in bells {
            bell.notify_one();
        }
    }

    /// Waits until one of those that are in the way has ended; `in_the_way` says who they are, now. Returns at once if nobody is.
    ///
    /// # Errors
    /// `40P01` if they wait for `own`; `57014`, `57P01`, `55P03`.
    pub fn wait(
        &self,
        own: TransactionId,
        in_the_way: &dyn Fn() -> Vec<TransactionId>,
        waiting: &mut Waiting<'_>,
    ) -> Result<()> {
        waiting.start();
        self.count.fetch_add(1, Ordering::SeqCst);
        let done = self.wait_counted(own, in_the_way, waiting);
        self.entered.lock().remove(&own);
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.counted(done)
    }

    /// The same, counted if a transaction ends for a circle.
    pub fn counted<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done
            && error.sqlstate() == sqlstate::DEADLOCK_DETECTED
        {
            self.circles.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// A transaction waits, by other means, for those who are in its way now: until [`Waits::waits_no_more`]. Said again as they change.
    ///
    /// # Errors
    /// `40P01` if they wait for it; whoever tells that to a client has it counted.
    pub fn waits_elsewhere(
        &self,
        own: TransactionId,
        at: WaitsAt,
        on: Vec<TransactionId>,
    ) -> Result<()> {
        let mut entered = self.entered.lock();
        let before = entered.get(&own).map(|wait| wait.since);
        let wait = Wait {
            at,
            since: before.unwrap_or_else(clock_time),
            on,
            bell: Arc::new(Condvar::new()),
            rung: false,
            manners: Manners::Must,
        };
        entered.insert(own, wait);
        match closed(&mut entered, own) {
            Some(circle) => {
                // At once: others must not find the circle, too.
                entered.remove(&own);
                Err(deadlock(&circle))
            }
            None => Ok(()),
        }
    }

    /// A transaction waits, by other means, behind those who wait at `ahead` now and have what it wants no more than it has. Says whether it goes past them: waiting would
    /// close a circle (W3).
    pub fn waits_behind(&self, own: TransactionId, at: WaitsAt, ahead: WaitsAt) -> bool {
        let mut entered = self.entered.lock();
        let before = entered.get(&own);
        if before.is_some_and(|wait| wait.manners == Manners::GoesPast) {
            return true;
        }
        let since = before.map_or_else(clock_time, |wait| wait.since);
        let waits = entered.iter();
        let others = waits.filter(|(other, wait)| wait.at == ahead && **other != own);
        let wait = Wait {
            at,
            since,
            on: others.map(|(other, _)| *other).collect(),
            bell: Arc::new(Condvar::new()),
            rung: false,
            manners: Manners::Polite,
        };
        entered.insert(own, wait);
        // Its own wait is in every circle that there is now: it is polite, so it is told to go past, or another is.
        let circle = closed(&mut entered, own);
        debug_assert!(circle.is_none(), "W3");
        entered
            .get(&own)
            .is_some_and(|wait| wait.manners == Manners::GoesPast)
    }

    /// It does not any more.
    pub fn waits_no_more(&self, own: TransactionId) {
        self.entered.lock().remove(&own);
    }

    /// How many circles ended a transaction.
    pub fn circles(&self) -> u64 {
        self.circles.load(Ordering::Relaxed)
    }

    /// All waits that go on.
    pub fn all(&self) -> Vec<ShownWait> {
        let entered = self.entered.lock();
        let waits = entered.iter().filter(|(_, wait)| !wait.rung);
        waits
            .map(|(transaction, wait)| ShownWait {
                transaction: *transaction,
                at: wait.at,
                on: wait.on.clone(),
                since: wait.since,
            })
            .collect()
    }

    /// For whom a transaction waits; nobody if it does not.
    pub fn blockers_of(&self, own: TransactionId) -> Vec<TransactionId> {
        let entered = self.entered.lock();
        entered
            .get(&own)
            .filter(|wait| !wait.rung)
            .map_or_else(Vec::new, |wait| wait.on.clone())
    }

    fn wait_counted(
        &self,
        own: TransactionId,
        in_the_way: &dyn Fn() -> Vec<TransactionId>,
        waiting: &mut Waiting<'_>,
    ) -> Result<()> {
        let bell = Arc::new(Condvar::new());
        let since = clock_time();
        loop {
            waiting.look()?;
            let mut entered = self.entered.lock();
            fence(Ordering::SeqCst);
            // Under the latch: it is innermost but for those of the engine's slots and of the locks' parts.
            let on = in_the_way();
            if on.is_empty() {
                return Ok(());
            }
            let wait = Wait {
                at: WaitsAt::Rows,
                since,
                on,
                bell: bell.clone(),
                rung: false,
                manners: Manners::Must,
            };
            entered.insert(own, wait);
            if let Some(circle) = closed(&mut entered, own) {
                return Err(deadlock(&circle));
            }
            let (entered, _) = bell.wait_timeout(entered, LOOK);
            if entered.get(&own).is_some_and(|wait| wait.rung) {
                return Ok(());
            }
        }
    }
}

/// A circle that the wait of `own` closes, and in which nobody waits politely; who does is told to go past (W3).
fn closed(
    entered: &mut HashMap<TransactionId, Wait>,
    own: TransactionId,
) -> Option<Vec<TransactionId>> {
    loop {
        let circle = circle(entered, own)?;
        let polite = circle.iter().find_map(|id| {
            let wait = entered.get(id)?;
            (wait.manners == Manners::Polite).then_some(*id)
        });
        let Some(wait) = polite.and_then(|id| entered.get_mut(&id)) else {
            return Some(circle);
        };
        wait.manners = Manners::GoesPast;
        wait.on.clear();
    }
}

/// A way along the waits from `own` back to it, without its end (W2).
fn circle(
    entered: &HashMap<TransactionId, Wait>,
    own: TransactionId,
) -> Option<Vec<TransactionId>> {
    // Each node once, with the one that led to it.
    let mut from: HashMap<TransactionId, TransactionId> = HashMap::default();
    let mut next = vec![own];
    while let Some(at) = next.pop() {
        for on in entered.get(&at).map_or(&[][..], |wait| &wait.on) {
            if *on == own {
                let mut way = vec![at];
                let mut at = at;
                while let Some(before) = from.get(&at) {
                    way.push(*before);
                    at = *before;
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(on) {
                from.insert(*on, at);
                next.push(*on);
            }
        }
    }
    None
}

#[cold]
fn deadlock(circle: &[TransactionId]) -> SqlError {
    let next = circle.iter().cycle().skip(1);
    let lines: Vec<String> = circle
        .iter()
        .zip(next)
        .map(|(waiter, blocker)| format!("Transaction {waiter} waits for transaction {blocker}."))
        .collect();
    SqlError::new(sqlstate::DEADLOCK_DETECTED, "deadlock detected")
        .with_detail(lines.join("\n"))
        .with_hint("Run the transaction again.")
}
