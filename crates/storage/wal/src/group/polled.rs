//! Waits that are polled, and the thread that serves them: it runs rounds for these and for rings that are half full.
//!
//! Invariants, concurrency: those of `group`. A round for polled waits begins at once: there is nobody who would have a timer.

use std::task::Waker;

use super::{Group, Rung, Target};
use crate::core::Core;
use vellum_base::{Result, StorageError, Timestamp};
use vellum_sync::atomic::Ordering;

impl Group {
    /// Asks who serves for a round, if somebody does.
    #[cold]
    pub fn demand(&self) {
        if self.wants_demand.swap(false, Ordering::Relaxed) {
            self.turn.lock().demand = true;
            self.demanded.notify_one();
        }
    }
}

impl Core {
    /// As [`Core::wait_for`] a hardened timestamp, without blocking for others. `Some` if done.
    pub fn poll_for(&self, ts: Timestamp, waker: &Waker) -> Option<Result<()>> {
        let target = Target::Hardened(ts);
        let mut turn = self.group.turn.lock();
        if self.covered(target) {
            // It may have been woken to lead.
            let mut rung = Rung::default();
            self.group.pass_on(&mut turn, &mut rung);
            drop(turn);
            rung.wake();
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
        turn.begin();
        drop(turn);
        let (result, _) = self.lead();
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
            let mut rung = Rung::default();
            self.group.pass_on(&mut turn, &mut rung);
            let failed = turn.failed.is_some();
            drop(turn);
            rung.wake();
            return if failed {
                Err(StorageError::Poisoned)
            } else {
                Ok(false)
            };
        }
        if turn.running {
            drop(turn);
            return self.wait_for(Target::Turn).map(|_| true);
        }
        turn.begin();
        drop(turn);
        let (result, _) = self.lead();
        result.map(|_| true)
    }

    /// Makes the serving thread return. It may never come here again: from now on who polls leads rounds himself, and who has polled is woken for it.
    pub fn stop_serving(&self) {
        let mut turn = self.group.turn.lock();
        turn.stop = true;
        turn.serving = false;
        let mut rung = Rung::default();
        self.group.pass_on(&mut turn, &mut rung);
        drop(turn);
        self.group.demanded.notify_all();
        rung.wake();
    }
}
