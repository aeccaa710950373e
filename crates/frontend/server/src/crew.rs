//! Threads for connections that are talking: one each, taken from those that wait for work, or made.
//!
//! A connection that says something may block: for a page, for the log, for a lock, for its client. With a thread of its own it
//! blocks nobody. One that says nothing has no thread (see [`crate::door`]).
//!
//! States of a thread: started with work → waits for more → has had none for [`PATIENCE`] → ends.
//!
//! Invariants:
//! - C1: `waiting` counts the threads that wait, also those that were woken and do not run yet; work in the queue is
//!   at most what they, and the threads being made, will take. Work is done once, by whoever comes first.
//! - C2: `crowded` is a hint, kept under the lock and read without it: nothing but the length of pauses depends on it.
//!
//! Concurrency: one mutex around the queue, held for a few instructions.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for work.
const PATIENCE: Duration = Duration::from_secs(10);

/// From so many threads with work on there is a crowd, until half of them are left.
const CROWD: usize = 64;

/// What a thread does.
type Work = Box<dyn FnOnce() + Send>;

/// The threads. Cheap to clone.
#[derive(Clone, Default)]
pub struct Crew {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    crowded: AtomicBool,
    work_came: Condvar,
    thread_ended: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    waiting: usize,
    threads: usize,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads();
        f.debug_struct("Crew").field("threads", &threads).finish()
    }
}

impl Crew {
    /// Hands work over. Does not wait for it; a panic in it ends the work and not the thread.
    ///
    /// If the system gives no more threads, the work waits for one that becomes free.
    ///
    /// # Errors
    /// If there is no thread at all and the system gives none: the work is dropped.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut state = self.shared.lock();
        state.queue.push_back(Box::new(work));
        // A thread that works may take this before the one that is woken for it: both are counted right then.
        if state.queue.len() <= state.waiting {
            drop(state);
            self.shared.work_came.notify_one();
            return Ok(());
        }
        state.threads += 1;
        self.shared.look_around(&state);
        drop(state);
        let shared = self.shared.clone();
        let made = thread::Builder::new()
            .name("vellum-client".into())
            .stack_size(vellum_sql::STACK_BYTES)
            .spawn(move || shared.serve());
        let Err(error) = made else {
            return Ok(());
        };
        let mut state = self.shared.lock();
        state.threads -= 1;
        if state.threads == 0 {
            // Out of the lock: what is dropped may be large.
            let dropped = std::mem::take(&mut state.queue);
            drop(state);
            drop(dropped);
            return Err(error);
        }
        tracing::warn!(%error, "no more threads: a connection waits for one");
        Ok(())
    }

    /// Whether so many threads have work that one which waits for its client should not wait for long (C2).
    pub fn is_crowded(&self) -> bool {
        self.shared.crowded.load(Ordering::Relaxed)
    }

    /// Threads now.
    pub fn threads(&self) -> usize {
        self.shared.lock().threads
    }

    /// Waits until no thread is left that works, or `time` is over; false then.
    #[cfg(test)]
    fn wait_until_idle(&self, time: Duration) -> bool {
        let state = self.shared.lock();
        let busy = |state: &mut State| state.threads > state.waiting || !state.queue.is_empty();
        let waited = self
            .shared
            .thread_ended
            .wait_timeout_while(state, time, busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Shared {
    /// A panic of a holder leaves the state as it was.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether there is a crowd (C2).
    fn look_around(&self, state: &State) {
        let crowded = self.crowded.load(Ordering::Relaxed);
        let limit = if crowded { CROWD / 2 } else { CROWD };
        let now = state.threads - state.waiting >= limit;
        if now != crowded {
            self.crowded.store(now, Ordering::Relaxed);
        }
    }

    /// The life of a thread.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            while let Some(work) = state.queue.pop_front() {
                drop(state);
                // What the work shares with others is behind locks of its own, consistent at every point that can panic.
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    tracing::error!("a connection ended in a panic");
                }
                state = self.lock();
            }
            state.waiting += 1;
            self.look_around(&state);
            self.thread_ended.notify_all();
            let (next, timeout) = self
                .work_came
                .wait_timeout_while(state, PATIENCE, |state| state.queue.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
            debug_assert!(state.waiting > 0, "C1");
            state.waiting -= 1;
            self.look_around(&state);
            if timeout.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                self.thread_ended.notify_all();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn work_runs_at_once_even_while_all_others_block() {
        let crew = Crew::default();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Arc::new(Mutex::new(hold));
        for _ in 0..3 {
            let hold = hold.clone();
            crew.run(move || assert!(hold.lock().unwrap().recv().is_err()))
                .unwrap();
        }
        let (tell, told) = mpsc::channel();
        crew.run(move || tell.send(7).unwrap()).unwrap();
        assert_eq!(told.recv_timeout(LONG), Ok(7));
        drop(release);
        assert!(crew.wait_until_idle(LONG));
    }

    #[test]
    fn a_thread_that_waits_is_used_again() {
        let crew = Crew::default();
        let done = Arc::new(AtomicUsize::new(0));
        for round in 1..=50 {
            let counter = done.clone();
            crew.run(move || {
                counter.fetch_add(1, Ordering::SeqCst);
            })
            .unwrap();
            assert!(crew.wait_until_idle(LONG));
            assert_eq!(done.load(Ordering::SeqCst), round, "C1");
        }
        assert_eq!(crew.threads(), 1);
    }

    #[test]
    fn a_crowd_is_one_until_half_of_it_has_left() {
        let crew = Crew::default();
        let mut held = Vec::new();
        for number in 1..=CROWD {
            assert!(!crew.is_crowded(), "{number}");
            let (release, hold) = mpsc::channel::<()>();
            crew.run(move || assert!(hold.recv().is_err())).unwrap();
            held.push(release);
        }
        assert!(crew.is_crowded());
        // Those that wait again are none of the crowd.
        let wait_for = |working: usize| {
            let state = crew.shared.lock();
            let more = |state: &mut State| state.threads - state.waiting > working;
            let waited = crew
                .shared
                .thread_ended
                .wait_timeout_while(state, LONG, more);
            assert!(!waited.unwrap().1.timed_out());
        };
        held.truncate(CROWD / 2);
        wait_for(CROWD / 2);
        assert!(crew.is_crowded());
        held.pop();
        wait_for(CROWD / 2 - 1);
        assert!(!crew.is_crowded());
        drop(held);
        assert!(crew.wait_until_idle(LONG));
    }

    #[test]
    fn a_panic_ends_the_work_and_not_the_thread() {
        let crew = Crew::default();
        crew.run(|| panic!("on purpose")).unwrap();
        assert!(crew.wait_until_idle(LONG));
        let (tell, told) = mpsc::channel();
        crew.run(move || tell.send(()).unwrap()).unwrap();
        assert!(told.recv_timeout(LONG).is_ok());
        assert_eq!(crew.threads(), 1);
    }

    #[test]
    fn everything_handed_over_is_done_once() {
        let crew = Crew::default();
        let done = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let done = done.clone();
                        crew.run(move || {
                            done.fetch_add(1, Ordering::SeqCst);
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert!(crew.wait_until_idle(LONG));
        assert_eq!(done.load(Ordering::SeqCst), 800);
    }
}
