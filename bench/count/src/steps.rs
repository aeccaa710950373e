//! The client that is counted, and background work beside it.
//!
//! Background work costs the client nothing but two meetings: another thread does it ([`Steps::take`]), and the client waits until it
//! is done. So its instructions are another thread's, and when it is done does not depend on the scheduler.

use crate::End;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;
use vellum_adapter::{VellumEngine, VellumSession};
use vellum_workload::engine::{Engine, Result, Session};

/// What runs one operation after another.
pub trait Client {
    /// Runs the next one.
    ///
    /// # Errors
    /// Whatever the engine reports: nobody is there to lose a conflict to.
    fn once<S: Session>(&mut self, session: &mut S, steps: &Steps<'_>) -> Result<()>;
}

/// A thread that does background work when it is asked.
pub struct Steps<'e> {
    engine: &'e VellumEngine,
    meeting: Barrier,
    over: AtomicBool,
    done: Mutex<Result<()>>,
}

impl<'e> Steps<'e> {
    fn new(engine: &'e VellumEngine) -> Self {
        Self {
            engine,
            meeting: Barrier::new(2),
            over: AtomicBool::new(false),
            done: Mutex::new(Ok(())),
        }
    }

    /// Has a step done, and waits for it.
    ///
    /// # Errors
    /// What it failed with.
    pub fn take(&self) -> Result<()> {
        self.meeting.wait();
        self.meeting.wait();
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *done, Ok(()))
    }

    fn work(&self) {
        loop {
            self.meeting.wait();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            *self.done.lock().unwrap_or_else(PoisonError::into_inner) = self.engine.step();
            self.meeting.wait();
        }
    }
}

/// Ends the thread that does the steps, also where the client has panicked.
struct Ending<'s, 'e>(&'s Steps<'e>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        // The meeting orders it.
        self.0.over.store(true, Ordering::Relaxed);
        self.0.meeting.wait();
    }
}

/// Runs `before` operations, and then those that are counted, with a step of background work behind each `every`.
///
/// # Errors
/// Whatever the engine reports.
pub fn run<C: Client + Send>(
    engine: &VellumEngine,
    mut client: C,
    every: u64,
    before: u64,
    end: End,
) -> Result<()> {
    let steps = &Steps::new(engine);
    std::thread::scope(|scope| {
        scope.spawn(|| steps.work());
        let counted = scope.spawn(move || {
            let _ending = Ending(steps);
            let mut session = engine.open_session()?;
            let (client, session) = (&mut client, &mut session);
            some(client, session, steps, every, before)?;
            match end {
                End::After(count) => counted_operations(client, session, steps, every, count),
                End::Seconds(long) => {
                    let start = Instant::now();
                    while start.elapsed() < long {
                        counted_operations(client, session, steps, every, every)?;
                    }
                    Ok(())
                }
            }
        });
        // A panic of it goes on here.
        counted
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What is counted: valgrind is told to by this function's name.
#[inline(never)]
fn counted_operations<C: Client>(
    client: &mut C,
    session: &mut VellumSession<'_>,
    steps: &Steps<'_>,
    every: u64,
    count: u64,
) -> Result<()> {
    some(client, session, steps, every, count)
}

fn some<C: Client>(
    client: &mut C,
    session: &mut VellumSession<'_>,
    steps: &Steps<'_>,
    every: u64,
    count: u64,
) -> Result<()> {
    let mut until_step = every;
    for _ in 0..count {
        client.once(session, steps)?;
        until_step -= 1;
        if until_step == 0 {
            steps.take()?;
            until_step = every;
        }
    }
    Ok(())
}
