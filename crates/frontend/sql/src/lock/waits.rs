//! Waiting for transactions to end, and circles of waits.
//!
//! Invariants:
//! - W1 Who waits is entered with all whom it waits for before it looks whether they are still in its way, and rung when one of them
//!   ends after that: no end is missed. (It looks again after [`LOOK`] whatever happens, for cancels and timeouts.)
//! - W2 A circle is found when its last wait is entered: entering and looking for it is one step under the latch. The one that
//!   closes it gives up, as in PostgreSQL, where it is the first whose `deadlock_timeout` finds the circle.
//! - W3 Nobody gives up for a circle that goes over one who waits politely, behind others that only wait: that one goes past them instead.
//! - W4 Nobody gives up for a wait that is over and whose waiter has not looked again yet: whoever closes a circle asks for each wait in it whether it still holds.
//!   What was in the way may be gone though its transaction goes on: a version that was reverted with its statement, or with a savepoint, and a lock or a gate that was given back.
//!
//! Concurrency: one latch for all waits; an end takes it only while somebody waits. A Dekker pair: a waiter counts itself, fences, then looks
//! at the engine; an ending transaction has ended in the engine, fences, then looks at the count. Who reverts a part of itself notes it under the latch, behind the reverting and
//! before it waits itself: whoever has met one of those versions either finds the note when it enters its wait, or is rung. The latches of the tables of locks and of what sessions do are
//! taken under it, never the other way round.

use super::{AdvisoryLocks, Obstacle, RowLocks, RowName};
use crate::catalog::{Mode, Oid};
use crate::error::{Result, SqlError};
use crate::session::{Activities, Waiting, clock_time};
use crate::sqlstate;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use vellum::{Blocker, Database, TransactionId};
use vellum_base::maps::HashMap;
use vellum_row::datetime::Timestamp;
use vellum_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use vellum_sync::{Condvar, Mutex};

/// How long a wait parks before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// Everybody who waits.
#[derive(Debug)]
pub(crate) struct Waits {
    engine: Database,
    locks: Arc<RowLocks>,
    advisory: Arc<AdvisoryLocks>,
    activities: Arc<Activities>,
    count: AtomicU32,
    /// Circles that ended a transaction.
    circles: AtomicU64,
    all: Mutex<All>,
}

/// What is under the latch.
#[derive(Debug, Default)]
struct All {
    entered: HashMap<TransactionId, Wait>,
    /// Commands whose versions transactions have reverted that go on, in their order.
    reverted: HashMap<TransactionId, Vec<Range<u64>>>,
}

impl All {
    /// Whether a version was reverted though its writer goes on.
    fn is_reverted(&self, version: &Blocker) -> bool {
        let parts = self.reverted.get(&version.transaction());
        parts.is_some_and(|parts| contains(parts, version.command().into()))
    }
}

/// Whether one of these, which are in order and apart, contains it.
fn contains(parts: &[Range<u64>], command: u64) -> bool {
    let at = parts.partition_point(|part| part.end <= command);
    parts.get(at).is_some_and(|part| part.contains(&command))
}

/// Adds the commands since a point to those that were reverted before, and are in order and apart: what was reverted within, and what a statement reverted that is run again, is a part of it.
fn add(parts: &mut Vec<Range<u64>>, commands: Range<u64>) {
    let mut whole = commands;
    while let Some(part) = parts.pop_if(|part| part.end >= whole.start) {
        whole.start = whole.start.min(part.start);
    }
    parts.push(whole);
}

/// What a transaction waits at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitsAt {
    /// Rows that others have written or locked: their ends.
    Rows,
    /// The gate of a relation, a type, a schema, an extension or a role, to hold it so.
    Gate(Oid, Mode),
    /// An advisory lock, for a session: the table of these knows which.
    Advisory(u64),
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
    /// What `on` comes of; `None`: of what the waiter tells.
    obstacle: Option<Obstacle>,
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
    /// Nobody.
    pub fn new(
        engine: Database,
        locks: Arc<RowLocks>,
        advisory: Arc<AdvisoryLocks>,
        activities: Arc<Activities>,
    ) -> Self {
        Self {
            engine,
            locks,
            advisory,
            activities,
            count: AtomicU32::new(0),
            circles: AtomicU64::new(0),
            all: Mutex::default(),
        }
    }

    /// A transaction has ended: whoever waits for it looks again.
    pub fn ended(&self, id: TransactionId) {
        self.ring_those(|wait| wait.on.contains(&id));
    }

    /// A transaction has given back locks on these rows, and may go on: whoever waits for one of them looks again. Who waits for something else of it waits on.
    pub fn released(&self, id: TransactionId, names: &[&RowName]) {
        self.ring_those(|wait| match &wait.obstacle {
            Some(Obstacle::Holders(name, _)) => names.contains(&name) && wait.on.contains(&id),
            _ => false,
        });
    }

    fn ring_those(&self, are_over: impl Fn(&Wait) -> bool) {
        // W1: pairs with the fence of `wait`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut all = self.all.lock();
        let waits = all.entered.values_mut();
        let bells = rung(waits.filter(|wait| are_over(wait)));
        drop(all);
        ring(bells);
    }

    /// A transaction that goes on has reverted what these commands of its wrote: whoever waits for one of those versions looks again, and whoever
    /// has met one and has not entered its wait yet finds that it need not. Noted until [`Waits::forget`].
    pub fn reverted(&self, id: TransactionId, commands: Range<u64>) {
        debug_assert!(!commands.is_empty(), "nothing was reverted");
        let mut all = self.all.lock();
        add(all.reverted.entry(id).or_default(), commands.clone());
        let is_gone = |wait: &&mut Wait| match &wait.obstacle {
            Some(Obstacle::Writer(by)) => {
                by.transaction() == id && commands.contains(&u64::from(by.command()))
            }
            _ => false,
        };
        let bells = rung(all.entered.values_mut().filter(is_gone));
        drop(all);
        ring(bells);
    }

    /// One that has noted what it has reverted has ended.
    pub fn forget(&self, id: TransactionId) {
        self.all.lock().reverted.remove(&id);
    }

    /// Waits until one of those that are in the way has ended. Returns at once if nobody is.
    ///
    /// # Errors
    /// `40P01` if they wait for `own`; `57014`, `57P01`, `55P03`.
    pub fn wait(
        &self,
        own: TransactionId,
        obstacle: &Obstacle,
        waiting: &mut Waiting<'_>,
    ) -> Result<()> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let done = self.wait_counted(own, obstacle, waiting);
        waiting.stop();
        self.all.lock().entered.remove(&own);
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
        let mut all = self.all.lock();
        let before = all.entered.get(&own).map(|wait| wait.since);
        let wait = Wait {
            at,
            since: before.unwrap_or_else(clock_time),
            on,
            obstacle: None,
            bell: Arc::new(Condvar::new()),
            rung: false,
            manners: Manners::Must,
        };
        all.entered.insert(own, wait);
        match self.closed(&mut all, own) {
            Some(circle) => {
                // At once: others must not find the circle, too.
                all.entered.remove(&own);
                Err(deadlock(&circle))
            }
            None => Ok(()),
        }
    }

    /// A transaction waits, by other means, behind those who wait at `ahead` now and have what it wants no more than it has. Says whether it goes past them: waiting would
    /// close a circle (W3).
    pub fn waits_behind(&self, own: TransactionId, at: WaitsAt, ahead: WaitsAt) -> bool {
        let mut all = self.all.lock();
        let before = all.entered.get(&own);
        if before.is_some_and(|wait| wait.manners == Manners::GoesPast) {
            return true;
        }
        let since = before.map_or_else(clock_time, |wait| wait.since);
        let waits = all.entered.iter();
        let others = waits.filter(|(other, wait)| wait.at == ahead && **other != own);
        let wait = Wait {
            at,
            since,
            on: others.map(|(other, _)| *other).collect(),
            obstacle: None,
            bell: Arc::new(Condvar::new()),
            rung: false,
            manners: Manners::Polite,
        };
        all.entered.insert(own, wait);
        // Its own wait is in every circle that there is now: it is polite, so it is told to go past, or another is.
        let circle = self.closed(&mut all, own);
        debug_assert!(circle.is_none(), "W3");
        all.entered
            .get(&own)
            .is_some_and(|wait| wait.manners == Manners::GoesPast)
    }

    /// It does not any more.
    pub fn waits_no_more(&self, own: TransactionId) {
        self.all.lock().entered.remove(&own);
    }

    /// How many circles ended a transaction.
    pub fn circles(&self) -> u64 {
        self.circles.load(Ordering::Relaxed)
    }

    /// All waits that go on.
    pub fn all(&self) -> Vec<ShownWait> {
        let all = self.all.lock();
        let waits = all.entered.iter().filter(|(_, wait)| !wait.rung);
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
        let all = self.all.lock();
        all.entered
            .get(&own)
            .filter(|wait| !wait.rung)
            .map_or_else(Vec::new, |wait| wait.on.clone())
    }

    fn wait_counted(
        &self,
        own: TransactionId,
        obstacle: &Obstacle,
        waiting: &mut Waiting<'_>,
    ) -> Result<()> {
        let bell = Arc::new(Condvar::new());
        let since = clock_time();
        let mut begun = false;
        loop {
            waiting.look_cancelled()?;
            let mut all = self.all.lock();
            fence(Ordering::SeqCst);
            let on = self.in_the_way(&all, obstacle, own);
            if on.is_empty() {
                return Ok(());
            }
            if !std::mem::replace(&mut begun, true) {
                waiting.start_for(&on);
            }
            waiting.look()?;
            let wait = Wait {
                at: WaitsAt::Rows,
                since,
                on,
                obstacle: Some(obstacle.clone()),
                bell: bell.clone(),
                rung: false,
                manners: Manners::Must,
            };
            all.entered.insert(own, wait);
            if let Some(circle) = self.closed(&mut all, own) {
                return Err(deadlock(&circle));
            }
            let (all, _) = bell.wait_timeout(all, LOOK);
            if all.entered.get(&own).is_some_and(|wait| wait.rung) {
                return Ok(());
            }
        }
    }

    /// Of whom an obstacle consists now. Under the latch: it is innermost but for those of the engine's slots and of the locks' parts.
    fn in_the_way(&self, all: &All, obstacle: &Obstacle, own: TransactionId) -> Vec<TransactionId> {
        match obstacle {
            Obstacle::Writer(by) if all.is_reverted(by) || !self.engine.is_running(by) => {
                Vec::new()
            }
            Obstacle::Writer(by) => vec![by.transaction()],
            Obstacle::Holders(name, strength) => self.locks.blockers(name, own, *strength),
        }
    }

    /// For whom one waits now; `None` if that is over with their transactions only.
    fn still_waits_for(&self, all: &All, id: TransactionId) -> Option<Vec<TransactionId>> {
        let wait = all.entered.get(&id)?;
        match (&wait.obstacle, wait.at) {
            (Some(obstacle), _) => Some(self.in_the_way(all, obstacle, id)),
            (None, WaitsAt::Advisory(session)) => {
                let blockers = self.advisory.blockers_of(session).into_iter();
                let on = blockers.filter_map(|blocker| self.activities.transaction_of(blocker));
                Some(on.collect())
            }
            // Who waits behind others that wait is told to go past them.
            (None, WaitsAt::Gate(oid, mode)) if wait.manners == Manners::Must => {
                Some(self.activities.in_the_way(id, oid, mode))
            }
            (None, WaitsAt::Rows | WaitsAt::Gate(..)) => None,
        }
    }

    /// A circle that the wait of `own` closes, and in which nobody waits politely; who does is told to go past (W3).
    fn closed(&self, all: &mut All, own: TransactionId) -> Option<Vec<TransactionId>> {
        loop {
            let circle = circle(&all.entered, own)?;
            if self.drops_what_is_over(all, &circle) {
                continue;
            }
            let polite = circle.iter().find_map(|id| {
                let wait = all.entered.get(id)?;
                (wait.manners == Manners::Polite).then_some(*id)
            });
            let Some(wait) = polite.and_then(|id| all.entered.get_mut(&id)) else {
                return Some(circle);
            };
            wait.manners = Manners::GoesPast;
            wait.on.clear();
        }
    }

    /// Whether the circle goes over waits for others that are in nobody's way any more (W4): those are forgotten, and whoever waits so is rung.
    fn drops_what_is_over(&self, all: &mut All, circle: &[TransactionId]) -> bool {
        let nexts = circle.iter().cycle().skip(1);
        let over = circle.iter().zip(nexts).find_map(|(id, next)| {
            let on = self.still_waits_for(all, *id)?;
            (!on.contains(next)).then_some((*id, on))
        });
        let Some((id, on)) = over else {
            return false;
        };
        if let Some(wait) = all.entered.get_mut(&id) {
            (wait.on, wait.rung) = (on, true);
            wait.bell.notify_one();
        }
        true
    }
}

/// Marks waits as over; their bells. To be rung without the latch: whoever wakes wants it first of all, and would go to sleep again.
fn rung<'w>(waits: impl Iterator<Item = &'w mut Wait>) -> Vec<Arc<Condvar>> {
    let waits = waits.map(|wait| {
        wait.rung = true;
        wait.bell.clone()
    });
    waits.collect()
}

fn ring(bells: Vec<Arc<Condvar>>) {
    for bell in bells {
        bell.notify_one();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverted_commands_are_in_order_and_apart() {
        let mut parts = Vec::new();
        let steps: [(Range<u64>, &[Range<u64>]); 5] = [
            (2..3, &[2..3]),
            (5..6, &[2..3, 5..6]),
            (6..8, &[2..3, 5..8]),
            (9..12, &[2..3, 5..8, 9..12]),
            (4..14, &[2..3, 4..14]),
        ];
        for (commands, expected) in steps {
            add(&mut parts, commands);
            assert_eq!(parts, expected);
            for command in 0..15 {
                let one_by_one = expected.iter().any(|part| part.contains(&command));
                assert_eq!(contains(&parts, command), one_by_one, "{command}");
            }
        }
    }
}
