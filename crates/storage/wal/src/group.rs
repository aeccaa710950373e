//! Who runs the next round, and who waits for it: group commit without a thread of its own.
//!
//! A waiter that finds no round running leads one itself, on its own thread: one client commits
//! without a hand-off. Others wait, those that the running round covers apart from those that
//! need the next one. When a round ends, the first kind is woken, and one of the second
//! kind to lead. Wakers of polled waits count as the second kind unless they are covered.
//! Who waits for room in a ring waits apart from both: it is there once the running round is written, before its sync. At a round's end
//! all of these are woken, too: who still has no room leads, or waits for who does.
//!
//! States: idle --leader--> running --end--> idle, or failed for good after a failed sync, a panic, or the last attempt that can be
//! numbered (`round` I2).
//!
//! Invariants:
//! - I1 Whoever waits is woken: while somebody waits, a round is running, or somebody was woken who
//!   has not looked yet and passes the baton on if they do not lead.
//! - I2 Nobody waits in a loop of rounds that cannot help: a target that a pending timestamp (R11)
//!   holds back waits until one is withdrawn.
//!
//! Concurrency: `Turn` under its mutex (innermost). `horizon` and `durable` are written by the leader,
//! Release, and read by anybody, Acquire: who sees them may rely on what was synced.

use std::task::Waker;

use vellum_base::{Gsn, Lsn, Result, SlotId, StorageError, Timestamp};
use vellum_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use vellum_sync::rank::{Rank, assert_may_wait_below};
use vellum_sync::{Condvar, Mutex, MutexGuard};

use crate::config::Round;
use crate::core::Core;
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

#[derive(Debug, Default)]
struct Turn {
    running: bool,
    /// Rounds begun; its parity picks the condvar.
    begun: u64,
    parked: [u32; 2],
    /// Who waits for room in a ring: told when a round is written, before its sync, and at its end.
    parked_for_room: u32,
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
    ends: [Condvar; 2],
    room: Condvar,
    withdrawn: Condvar,
    demanded: Condvar,
    horizon: AtomicU64,
    durable: AtomicU64,
    /// C as the running round read it.
    running_c: AtomicU64,
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
            ends: [Condvar::new(), Condvar::new()],
            room: Condvar::new(),
            withdrawn: Condvar::new(),
            demanded: Condvar::new(),
            horizon: AtomicU64::new(horizon.0),
            durable: AtomicU64::new(durable.0),
            running_c: AtomicU64::new(horizon.0),
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

    /// Ends the log for good, unless it has ended.
    fn fail(&self, turn: &mut Turn, error: StorageError) {
        turn.failed.get_or_insert(error);
        // Release: pairs with the acquire in `has_failed`.
        self.failed.store(true, Ordering::Release);
    }

    pub fn horizon(&self) -> Timestamp {
        // Acquire: pairs with the release store in `publish`.
        Timestamp(self.horizon.load(Ordering::Acquire))
    }

    pub fn durable(&self) -> Gsn {
        // Acquire: pairs with the release store in `publish`.
        Gsn(self.durable.load(Ordering::Acquire))
    }

    pub fn round_reads_clock(&self, clock: Timestamp) {
        self.running_c.store(clock.0, Ordering::Relaxed);
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
        // Pairs with the fence in `wait_for_withdrawal`: our count before our look for waiters, their
        // registration before their look at the count.
        fence(Ordering::SeqCst);
        if self.withdrawal_waiters.load(Ordering::Relaxed) > 0 {
            let mut turn = self.turn.lock();
            self.release_held_back(&mut turn);
            self.withdrawn.notify_all();
        }
    }

    fn release_held_back(&self, turn: &mut Turn) {
        self.withdrawal_waiters
            .fetch_sub(turn.held_back.len() as u64, Ordering::Relaxed);
        turn.held_back.drain(..).for_each(Waker::wake);
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

    /// A round was written, or is over: slots have room in their rings. Who has not leads the next round.
    pub fn room_in_rings(&self) {
        let turn = self.turn.lock();
        self.wake_for_room(&turn);
    }

    fn wake_for_room(&self, turn: &Turn) {
        if turn.parked_for_room > 0 {
            self.room.notify_all();
        }
    }

    /// Asks who serves for a round, if somebody does.
    #[cold]
    pub fn demand(&self) {
        if self.wants_demand.swap(false, Ordering::Relaxed) {
            self.turn.lock().demand = true;
            self.demanded.notify_one();
        }
    }

    /// Hands the baton on if nobody runs and somebody waits (I1).
    fn pass_on(&self, turn: &mut Turn) {
        if turn.running {
            return;
        }
        let next = ((turn.begun + 1) & 1) as usize;
        for parity in [next, 1 - next] {
            if turn.parked[parity] > 0 {
                self.ends[parity].notify_one();
                return;
            }
        }
        if turn.serving && !turn.wakers.is_empty() {
            turn.demand = true;
            self.demanded.notify_one();
        } else {
            // Each polls again; the first one leads. Waking only one would trust it to be polled.
            for (_, waker) in turn.wakers.drain(..) {
                waker.wake();
            }
        }
    }
}

/// Dropped where a round panics: what it was in the middle of nobody can tell, and those who wait for its end must not wait
/// for ever.
struct Unwinding<'a>(&'a Group);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        let mut turn = self.0.turn.lock();
        turn.running = false;
        self.0.fail(&mut turn, StorageError::Poisoned);
        self.0.ends.iter().for_each(Condvar::notify_all);
        self.0.room.notify_all();
        self.0.withdrawn.notify_all();
        self.0.demanded.notify_all();
        turn.wakers.drain(..).for_each(|(_, waker)| waker.wake());
        self.0.release_held_back(&mut turn);
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

    /// Waits for the end of a round that surely or probably covers the target: that of the running one or the one after. For room
    /// in a ring, until the running one is written.
    fn park<'t>(&'t self, mut turn: MutexGuard<'t, Turn>, target: Target) {
        let running = match target {
            Target::Hardened(ts) => ts.0 < self.group.running_c.load(Ordering::Relaxed),
            Target::Durable(gsn) => gsn.0 <= self.published_m.load(Ordering::Relaxed),
            Target::Turn => false,
            Target::Flushed(..) => {
                turn.parked_for_room += 1;
                let mut turn = self.group.room.wait(turn);
                turn.parked_for_room -= 1;
                return;
            }
        };
        let parity = ((turn.begun + u64::from(!running)) & 1) as usize;
        turn.parked[parity] += 1;
        let mut turn = self.group.ends[parity].wait(turn);
        turn.parked[parity] -= 1;
    }

    fn begin(&self, turn: &mut Turn) {
        debug_assert!(!turn.running);
        turn.running = true;
        turn.begun += 1;
    }

    /// Runs a round that this thread began, and wakes whom it concerns. Also returns how many
    /// withdrawals there had been when it began.
    fn lead(&self) -> (Result<Outcome>, u64, MutexGuard<'_, Turn>) {
        let seen = self.group.withdrawals.load(Ordering::Relaxed);
        let unwinding = Unwinding(&self.group);
        let result = self.run_round();
        std::mem::forget(unwinding);
        let mut turn = self.group.turn.lock();
        turn.running = false;
        turn.last_failed = result.is_err();
        if let Err(error) = &result
            && (self.segments.poisoned() || matches!(error, StorageError::Poisoned))
        {
            self.group.fail(&mut turn, error.clone());
        }
        let parity = (turn.begun & 1) as usize;
        self.group.ends[parity].notify_all();
        self.group.wake_for_room(&turn);
        if turn.failed.is_some() {
            self.group.ends[1 - parity].notify_all();
            self.group.withdrawn.notify_all();
            turn.wakers.drain(..).for_each(|(_, waker)| waker.wake());
            self.group.release_held_back(&mut turn);
        } else {
            self.sort_wakers(
                &mut turn,
                result.as_ref().map_or(Timestamp::ZERO, |o| o.clock),
                seen,
            );
            // With an error, everybody looks for themselves: who is woken polls, leads a round, and hears what is wrong. (Who serves tries again and
            // again, and tells nobody.)
            if result.is_err() {
                turn.wakers.drain(..).for_each(|(_, waker)| waker.wake());
            }
            if result.is_err() || turn.parked[1 - parity] > 0 || !turn.wakers.is_empty() {
                self.group.pass_on(&mut turn);
            }
        }
        (result, seen, turn)
    }

    /// Wakes the polled waits that are covered and sets those aside that a pending timestamp holds
    /// back: the round that read `clock` would have covered them (I2).
    fn sort_wakers(&self, turn: &mut Turn, clock: Timestamp, seen: u64) {
        let horizon = self.group.horizon();
        let held_back = turn
            .wakers
            .iter()
            .filter(|(ts, _)| horizon <= *ts && *ts < clock)
            .count();
        let waits = held_back > 0 && self.group.register_held_back(held_back as u64, seen);
        for (ts, waker) in std::mem::take(&mut turn.wakers) {
            if horizon > ts {
                waker.wake();
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
        loop {
            let mut turn = self.group.turn.lock();
            let done = self.covered(target) || (target == Target::Turn && led.is_some());
            if done || turn.failed.is_some() {
                // Reached without leading: the baton may have been meant for us.
                if waited {
                    self.group.pass_on(&mut turn);
                }
                return match &turn.failed {
                    _ if done => Ok(led),
                    // The first failure goes to who waited for it; later calls hear of the poison.
                    Some(error) if waited => Err(error.clone()),
                    _ => Err(StorageError::Poisoned),
                };
            }
            if turn.running {
                self.park(turn, target);
                waited = true;
                continue;
            }
            self.begin(&mut turn);
            drop(turn);
            let (result, seen, turn) = self.lead();
            let outcome = result?;
            led = Some(outcome.round);
            waited = false;
            let held_back = match target {
                Target::Hardened(ts) => ts < outcome.clock && !self.covered(target),
                _ => false,
            };
            if held_back && turn.failed.is_none() && self.group.register_held_back(1, seen) {
                let turn = self.group.withdrawn.wait(turn);
                self.group
                    .withdrawal_waiters
                    .fetch_sub(1, Ordering::Relaxed);
                drop(turn);
                waited = true;
            }
        }
    }

    /// As [`Core::wait_for`] a hardened timestamp, without blocking for others. `Some` if done.
    pub fn poll_for(&self, ts: Timestamp, waker: &Waker) -> Option<Result<()>> {
        let target = Target::Hardened(ts);
        let mut turn = self.group.turn.lock();
        if self.covered(target) {
            self.group.pass_on(&mut turn);
            return Some(Ok(()));
        }
        if turn.failed.is_some() {
            return Some(Err(StorageError::Poisoned));
        }
        if !turn
            .wakers
            .iter()
            .any(|(t, w)| *t == ts && w.will_wake(waker))
        {
            turn.wakers.push((ts, waker.clone()));
        }
        if turn.running {
            return None;
        }
        if turn.serving && !turn.last_failed {
            turn.demand = true;
            self.group.demanded.notify_one();
            return None;
        }
        self.begin(&mut turn);
        drop(turn);
        let (result, _, turn) = self.lead();
        drop(turn);
        match result {
            Err(error) => Some(Err(error)),
            Ok(_) if self.covered(target) => Some(Ok(())),
            // Registered: woken by the next round or by a withdrawal.
            Ok(_) => None,
        }
    }

    /// A step of the thread that serves polled waiters and half-full rings: waits until a round is
    /// wanted, and runs it. False after [`Core::stop_serving`].
    pub fn serve_one(&self) -> Result<bool> {
        let mut turn = self.group.turn.lock();
        if turn.stop {
            turn.stop = false;
            turn.serving = false;
            return Ok(false);
        }
        turn.serving = true;
        while !turn.demand && !turn.stop && turn.failed.is_none() {
            self.group.wants_demand.store(true, Ordering::Relaxed);
            turn = self.group.demanded.wait(turn);
        }
        self.group.wants_demand.store(false, Ordering::Relaxed);
        turn.demand = false;
        if turn.stop || turn.failed.is_some() {
            turn.stop = false;
            turn.serving = false;
            self.group.pass_on(&mut turn);
            return if turn.failed.is_some() {
                Err(StorageError::Poisoned)
            } else {
                Ok(false)
            };
        }
        if turn.running {
            drop(turn);
            return self.wait_for(Target::Turn).map(|_| true);
        }
        self.begin(&mut turn);
        drop(turn);
        let (result, _, turn) = self.lead();
        drop(turn);
        result.map(|_| true)
    }

    /// Makes the serving thread return.
    pub fn stop_serving(&self) {
        self.group.turn.lock().stop = true;
        self.group.demanded.notify_all();
    }
}
