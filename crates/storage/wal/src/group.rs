//! Who runs the next round, and who waits for it: group commit without a thread of its own.
//!
//! A waiter that finds no round running leads one itself, on its own thread: one client commits
//! without a hand-off. Others wait, each with a bell of its own. When a round ends, those that it reached are rung, who then look at nothing
//! that they would have to wait for, and one of the others, who leads. A commit may wait a little before it leads, for others that are probably on their way
//! (`gather`): whoever completes the number leads, or the one with the timer. Wakers of polled waits count with the others unless they are reached.
//! Who waits for room in a ring is reached once the running round is written, before its sync.
//!
//! States: idle --leader--> running --end--> idle, or failed for good after a failed sync, a panic, or the last attempt that can be
//! numbered (`round` I2). Idle --a commit waits for others--> open --their number, the timer, or who waits for anything but a commit--> running.
//!
//! Invariants:
//! - I1 Whoever waits is woken: while somebody waits, a round is running, or the next one is open (whose timer leads, if nobody else does), or somebody
//!   was rung who has not looked yet. Who was rung without having been reached leads, opens a round, or finds one running or open; or a later
//!   round has reached him by then, at whose end somebody else was rung.
//! - I2 Nobody waits in a loop of rounds that cannot help: a target that a pending timestamp (R11)
//!   holds back waits until one is withdrawn.
//! - I3 Who was rung is not in the list any more.
//!
//! Concurrency: `Turn` under its mutex (innermost); bells are rung, and whoever polls is woken, without it (`Rung`). `horizon` and `durable` are written by the leader,
//! Release, and read by anybody, Acquire: who sees them may rely on what was synced.

mod polled;

use std::task::Waker;

use vellum_base::{Gsn, Lsn, Result, SlotId, StorageError, Timestamp};
use vellum_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use vellum_sync::rank::{Rank, assert_may_wait_below};
use vellum_sync::{Arc, Bell, Condvar, Mutex, thread};

use crate::config::Round;
use crate::core::Core;
use crate::gather::{Gathering, MODEL, Quorum, now};
use crate::round::Outcome;

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `horizon > ts`.
    Hardened(Timestamp),
    /// `durable >= gsn`.
    Durable(Gsn),
    /// The slot's bytes below the lsn are written, perhaps not durable: their room in the ring is free.
    Flushed(SlotId, Lsn),
    /// A round that starts after the call.
    Turn,
}

/// Whom to wake once the mutex is free.
#[must_use]
#[derive(Debug, Default)]
struct Rung {
    bells: Vec<Arc<Bell>>,
    wakers: Vec<Waker>,
}

impl Rung {
    /// Bells first, in their order: a waker is somebody else's code, and may panic.
    fn wake(self) {
        self.bells.iter().for_each(|bell| bell.ring());
        self.wakers.into_iter().for_each(Waker::wake);
    }
}

/// Somebody who waits.
#[derive(Debug)]
struct Waiter {
    target: Target,
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct Turn {
    running: bool,
    /// In the order in which they came.
    waiters: Vec<Waiter>,
    gathering: Gathering,
    /// What a commit that has a timer waits for, and how many rounds were opened before.
    open: Option<Quorum>,
    opened: u64,
    wakers: Vec<(Timestamp, Waker)>,
    /// Polled waits that a pending timestamp holds back; counted in `withdrawal_waiters`.
    held_back: Vec<Waker>,
    /// The last round failed without poisoning: polled waits lead themselves, to get the error.
    last_failed: bool,
    failed: Option<StorageError>,
    serving: bool,
    demand: bool,
    stop: bool,
}

#[derive(Debug)]
pub(crate) struct Group {
    turn: Mutex<Turn>,
    withdrawn: Condvar,
    demanded: Condvar,
    horizon: AtomicU64,
    durable: AtomicU64,
    /// Withdrawals so far, and who waits for one: a Dekker pair.
    withdrawals: AtomicU64,
    withdrawal_waiters: AtomicU64,
    /// Somebody serves, and was not asked yet since its last round.
    pub wants_demand: AtomicBool,
    /// `Turn::failed` is set, for who does not wait for a round.
    failed: AtomicBool,
}

impl Group {
    pub fn new(horizon: Timestamp, durable: Gsn) -> Self {
        Self {
            turn: Mutex::new(Turn::default()),
            withdrawn: Condvar::new(),
            demanded: Condvar::new(),
            horizon: AtomicU64::new(horizon.0),
            durable: AtomicU64::new(durable.0),
            withdrawals: AtomicU64::new(0),
            withdrawal_waiters: AtomicU64::new(0),
            wants_demand: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    /// True once no round can succeed any more.
    pub fn has_failed(&self) -> bool {
        // Acquire: pairs with the release in `fail`.
        self.failed.load(Ordering::Acquire)
    }

    /// Ends the log for good, unless it has ended. Everybody who waits is to hear of it.
    fn fail(&self, turn: &mut Turn, error: StorageError) -> Rung {
        turn.failed.get_or_insert(error);
        // Release: pairs with the acquire in `has_failed`.
        self.failed.store(true, Ordering::Release);
        self.withdrawn.notify_all();
        let mut rung = Rung::default();
        let bells = turn.waiters.drain(..).map(|waiter| waiter.bell);
        rung.bells.extend(bells);
        turn.take_wakers(&mut rung);
        self.release_held_back(turn, &mut rung);
        rung
    }

    pub fn horizon(&self) -> Timestamp {
        // Acquire: pairs with the release store in `publish`.
        Timestamp(self.horizon.load(Ordering::Acquire))
    }

    pub fn durable(&self) -> Gsn {
        // Acquire: pairs with the release store in `publish`.
        Gsn(self.durable.load(Ordering::Acquire))
    }

    pub fn publish(&self, c: Timestamp, m: Gsn) {
        debug_assert!(
            c >= self.horizon() && m >= self.durable(),
            "a round goes back"
        );
        // Release: pair with the acquire loads of `horizon` and `durable`.
        self.durable.store(m.0, Ordering::Release);
        self.horizon.store(c.0, Ordering::Release);
    }

    /// A pending timestamp was withdrawn: who it held back may try again. Called under a slot latch.
    pub fn pending_withdrawn(&self) {
        self.withdrawals.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `register_held_back`: our count before our look for waiters, their
        // registration before their look at the count.
        fence(Ordering::SeqCst);
        if self.withdrawal_waiters.load(Ordering::Relaxed) > 0 {
            let mut rung = Rung::default();
            let mut turn = self.turn.lock();
            self.release_held_back(&mut turn, &mut rung);
            self.withdrawn.notify_all();
            drop(turn);
            rung.wake();
        }
    }

    fn release_held_back(&self, turn: &mut Turn, rung: &mut Rung) {
        self.withdrawal_waiters
            .fetch_sub(turn.held_back.len() as u64, Ordering::Relaxed);
        rung.wakers.append(&mut turn.held_back);
    }

    /// Counts `waiters` as waiting for a withdrawal, under the mutex. False, and nothing is counted,
    /// if there was one since `seen`.
    fn register_held_back(&self, waiters: u64, seen: u64) -> bool {
        self.withdrawal_waiters
            .fetch_add(waiters, Ordering::Relaxed);
        // Pairs with the fence in `pending_withdrawn`.
        fence(Ordering::SeqCst);
        let waits = self.withdrawals.load(Ordering::Relaxed) == seen;
        if !waits {
            self.withdrawal_waiters
                .fetch_sub(waiters, Ordering::Relaxed);
        }
        waits
    }

    /// If nobody leads and somebody waits, says who is to be woken for it (I1): before all that `rung` has.
    fn pass_on(&self, turn: &mut Turn, rung: &mut Rung) {
        if turn.running || turn.open.is_some() {
            return;
        }
        if !turn.waiters.is_empty() {
            rung.bells.insert(0, turn.waiters.remove(0).bell);
        } else if turn.serving && !turn.wakers.is_empty() {
            turn.demand = true;
            self.demanded.notify_one();
        } else {
            // Each polls again; the first one leads. Waking only one would trust it to be polled.
            turn.take_wakers(rung);
        }
    }
}

impl Turn {
    /// Puts a waiter on the list. One that was rung is to be put there again.
    fn add(&mut self, target: Target, bell: &Arc<Bell>) {
        let bell = bell.clone();
        self.waiters.push(Waiter { target, bell });
    }

    /// Takes a waiter from the list; false if it was rung.
    fn remove(&mut self, bell: &Arc<Bell>) -> bool {
        let is_it = |waiter: &Waiter| Arc::ptr_eq(&waiter.bell, bell);
        let at = self.waiters.iter().position(is_it);
        at.map(|at| self.waiters.remove(at)).is_some()
    }

    fn take_wakers(&mut self, rung: &mut Rung) {
        rung.wakers
            .extend(self.wakers.drain(..).map(|(_, waker)| waker));
    }

    fn begin(&mut self) {
        debug_assert!(!self.running);
        self.running = true;
        self.open = None;
    }

    /// What is to be waited for before the next round begins; `None` if it begins now. For one that is not on the list.
    fn plan(&mut self, target: Target) -> Option<Quorum> {
        let is_commit = |target: &Target| matches!(target, Target::Hardened(_));
        let mut targets = self.waiters.iter().map(|waiter| &waiter.target);
        if !is_commit(&target) || !targets.all(is_commit) || !self.wakers.is_empty() {
            return None;
        }
        self.gathering.plan(self.waiters.len() as u32 + 1, now())
    }
}

/// Dropped where a round panics: what it was in the middle of nobody can tell, and those who wait for its end must not wait
/// for ever.
struct Unwinding<'a>(&'a Group);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        let mut turn = self.0.turn.lock();
        turn.running = false;
        let rung = self.0.fail(&mut turn, StorageError::Poisoned);
        self.0.demanded.notify_all();
        drop(turn);
        rung.wake();
    }
}

impl Core {
    /// True if the target is reached.
    pub fn covered(&self, target: Target) -> bool {
        match target {
            Target::Hardened(ts) => self.group.horizon() > ts,
            Target::Durable(gsn) => self.group.durable() >= gsn,
            // Acquire: pairs with the release store in `hand_out`.
            Target::Flushed(slot, lsn) => self.cell(slot).flushed.load(Ordering::Acquire) >= lsn.0,
            Target::Turn => false,
        }
    }

    /// Rings those whom the running round, which is written, has reached before its end: they have room in their rings.
    pub fn ring_reached(&self) {
        let bells = self.take_reached(&mut self.group.turn.lock());
        bells.iter().for_each(|bell| bell.ring());
    }

    /// Takes those from the list who are reached, and are to be rung.
    fn take_reached(&self, turn: &mut Turn) -> Vec<Arc<Bell>> {
        let is_reached = |waiter: &mut Waiter| self.covered(waiter.target);
        let reached = turn.waiters.extract_if(.., is_reached);
        reached.map(|waiter| waiter.bell).collect()
    }

    /// Runs a round that this thread began, and wakes whom it concerns. Also returns how many
    /// withdrawals there had been when it began.
    fn lead(&self) -> (Result<Outcome>, u64) {
        let seen = self.group.withdrawals.load(Ordering::Relaxed);
        let unwinding = Unwinding(&self.group);
        let began = now();
        let result = self.run_round();
        let nanos = now() - began;
        std::mem::forget(unwinding);
        let mut turn = self.group.turn.lock();
        turn.running = false;
        turn.last_failed = result.is_err();
        if result.as_ref().is_ok_and(|outcome| outcome.round.bytes > 0) {
            turn.gathering.round_took(nanos);
        }
        let error = result.as_ref().err();
        let rung = match error {
            Some(error) if self.segments.poisoned() || matches!(error, StorageError::Poisoned) => {
                self.group.fail(&mut turn, error.clone())
            }
            _ => {
                let mut rung = Rung {
                    bells: self.take_reached(&mut turn),
                    wakers: Vec::new(),
                };
                let clock = result.as_ref().map_or(Timestamp::ZERO, |o| o.clock);
                self.sort_wakers(&mut turn, clock, seen, &mut rung);
                // With an error, everybody looks for themselves: who is woken polls, leads a round, and hears what is wrong. (Who serves tries again and
                // again, and tells nobody.)
                if error.is_some() {
                    turn.take_wakers(&mut rung);
                }
                // The next leader first: the device rests until then.
                self.group.pass_on(&mut turn, &mut rung);
                rung
            }
        };
        drop(turn);
        rung.wake();
        (result, seen)
    }

    /// Takes the polled waits that are covered and sets those aside that a pending timestamp holds
    /// back: the round that read `clock` would have covered them (I2).
    fn sort_wakers(&self, turn: &mut Turn, clock: Timestamp, seen: u64, rung: &mut Rung) {
        let horizon = self.group.horizon();
        let held_back = turn
            .wakers
            .iter()
            .filter(|(ts, _)| horizon <= *ts && *ts < clock)
            .count();
        let waits = held_back > 0 && self.group.register_held_back(held_back as u64, seen);
        for (ts, waker) in std::mem::take(&mut turn.wakers) {
            if horizon > ts {
                rung.wakers.push(waker);
            } else if ts < clock && waits {
                turn.held_back.push(waker);
            } else {
                turn.wakers.push((ts, waker));
            }
        }
    }

    /// Runs or waits for rounds until the target is reached. Returns the last round that this call
    /// led.
    pub fn wait_for(&self, target: Target) -> Result<Option<Round>> {
        assert_may_wait_below(Rank::SlotLatch);
        let mut led = None;
        let mut waited = false;
        // Made when it is needed: who is alone leads at once.
        let mut bell = None;
        // The round that this call opened last, by its number.
        let mut mine = None;
        let mut turn = self.group.turn.lock();
        if let Target::Hardened(_) = target {
            turn.gathering.note(thread::current().id());
        }
        loop {
            let done = self.covered(target) || (target == Target::Turn && led.is_some());
            if done || turn.failed.is_some() {
                return match &turn.failed {
                    _ if done => Ok(led),
                    // The first failure goes to who waited for it; later calls hear of the poison.
                    Some(error) if waited => Err(error.clone()),
                    _ => Err(StorageError::Poisoned),
                };
            }
            if turn.running || !self.may_begin(&mut turn, target, &mut mine) {
                let bell = bell.get_or_insert_with(|| Arc::new(Bell::default()));
                turn.add(target, bell);
                let timer = turn
                    .open
                    .filter(|_| !turn.running && mine == Some(turn.opened));
                drop(turn);
                waited = true;
                let was_rung = match timer {
                    None => {
                        bell.wait();
                        true
                    }
                    Some(_) if MODEL => bell.take(),
                    Some(quorum) => bell.wait_timeout(quorum.wait),
                };
                // Without the mutex, which the others want who were rung with us.
                if was_rung && self.covered(target) {
                    return Ok(led);
                }
                turn = self.group.turn.lock();
                if !was_rung && !turn.remove(bell) {
                    // Somebody has taken it from the list since then, and rings; others want the mutex meanwhile.
                    drop(turn);
                    bell.wait();
                    if self.covered(target) {
                        return Ok(led);
                    }
                    turn = self.group.turn.lock();
                }
                continue;
            }
            turn.begin();
            drop(turn);
            let (result, seen) = self.lead();
            let outcome = result?;
            led = Some(outcome.round);
            waited = false;
            if target == Target::Turn || self.covered(target) {
                return Ok(led);
            }
            turn = self.group.turn.lock();
            let held_back = match target {
                Target::Hardened(ts) => ts < outcome.clock && !self.covered(target),
                _ => false,
            };
            if held_back && turn.failed.is_none() && self.group.register_held_back(1, seen) {
                turn = self.group.withdrawn.wait(turn);
                self.group
                    .withdrawal_waiters
                    .fetch_sub(1, Ordering::Relaxed);
                waited = true;
            }
        }
    }

    /// Whether somebody who waits for `target`, and is not on the list, leads now, with nobody else leading. Otherwise the next round is open, perhaps by him:
    /// then `mine` is its number, and he has the timer.
    fn may_begin(&self, turn: &mut Turn, target: Target, mine: &mut Option<u64>) -> bool {
        let next = match turn.open {
            None => turn.plan(target),
            Some(_) if !matches!(target, Target::Hardened(_)) => None,
            Some(quorum) => {
                let waiting = turn.waiters.len() as u32 + 1;
                if waiting >= quorum.want {
                    turn.gathering.reached(quorum, waiting, now());
                    None
                } else if *mine == Some(turn.opened) {
                    turn.gathering.is_late(quorum, waiting, now())
                } else {
                    return false;
                }
            }
        };
        turn.open = next;
        if next.is_some() {
            turn.opened += 1;
            *mine = Some(turn.opened);
        }
        next.is_none()
    }
}
