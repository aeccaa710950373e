//! Writes histories down, from threads and over crashes.
//!
//! Concurrency: one latch around the numbering and the keeping of an event. An event is recorded before its transaction begins, or after it has
//! ended, so one that ended before another began has the smaller number.
//!
//! Crash: [`Recorder::crashed`] ends what was open: nobody knows its end, and its sessions do nothing more.

use crate::event::{Event, Level, Op, Phase};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A history that grows.
#[derive(Debug)]
pub struct Recorder {
    state: Mutex<State>,
    start: Instant,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    next_transaction: u64,
    next_session: u64,
    open: BTreeMap<u64, u64>,
}

/// What runs one transaction after another; after one whose end it does not know, under another number.
#[derive(Debug)]
pub struct Session<'r> {
    recorder: &'r Recorder,
    number: u64,
}

/// A transaction under way; dropped without an end, nobody knows it.
#[derive(Debug)]
#[must_use = "a transaction has an end"]
pub struct Running<'s, 'r> {
    session: &'s mut Session<'r>,
    number: u64,
    level: Level,
    announced: Vec<Op>,
    ended: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// An empty history.
    pub fn new() -> Self {
        Self {
            state: Mutex::default(),
            start: Instant::now(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A thread that panicked while it held it has pushed an event or none.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session.
    pub fn session(&self) -> Session<'_> {
        let mut state = self.state();
        state.next_session += 1;
        Session {
            recorder: self,
            number: state.next_session - 1,
        }
    }

    fn push(&self, p: u64, t: Option<u64>, f: Phase, level: Level, ops: Vec<Op>) -> u64 {
        let mut state = self.state();
        let ts = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let t = t.unwrap_or_else(|| {
            state.next_transaction += 1;
            state.next_transaction - 1
        });
        match f {
            Phase::Invoke => drop(state.open.insert(p, t)),
            _ => drop(state.open.remove(&p)),
        }
        let i = state.events.len() as u64;
        let lvl = Some(level);
        state.events.push(Event {
            i,
            p,
            t,
            f,
            ts,
            lvl,
            ops,
        });
        t
    }

    /// Takes over an event that another process recorded in its life number `life`, which its sessions and transactions do not share with other
    /// lives. Its number follows from the order of the calls.
    pub fn take(&self, life: u64, event: Event) {
        const LIFE: u64 = 1 << 32;
        let (p, t) = (life * LIFE + event.p, life * LIFE + event.t);
        let mut state = self.state();
        match event.f {
            Phase::Invoke => drop(state.open.insert(p, t)),
            _ => drop(state.open.remove(&p)),
        }
        let i = state.events.len() as u64;
        let ts = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        state.events.push(Event {
            i,
            p,
            t,
            ts,
            ..event
        });
    }

    /// Everything that is under way was cut off.
    pub fn crashed(&self) {
        let open: Vec<(u64, u64)> = self.state().open.iter().map(|(p, t)| (*p, *t)).collect();
        for (p, t) in open {
            let mut state = self.state();
            state.open.remove(&p);
            let i = state.events.len() as u64;
            let ts = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let (f, lvl, ops) = (Phase::Info, None, Vec::new());
            state.events.push(Event {
                i,
                p,
                t,
                f,
                ts,
                lvl,
                ops,
            });
        }
    }

    /// The events so far, for a history of one's own.
    pub fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// Writes the history, an event a line.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for event in &self.state().events {
            serde_json::to_writer(&mut out, event)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }
}

impl<'r> Session<'r> {
    /// Records that a transaction is about to begin. What it wants to do is announced, so that whoever reads it knows where it is from
    /// even if its end never gets known: every append that it may do.
    pub fn invoke(&mut self, level: Level, announced: Vec<Op>) -> Running<'_, 'r> {
        let number = self
            .recorder
            .push(self.number, None, Phase::Invoke, level, announced.clone());
        Running {
            session: self,
            number,
            level,
            announced,
            ended: false,
        }
    }
}

impl Running<'_, '_> {
    fn end(mut self, f: Phase, ops: Vec<Op>) {
        self.record(f, ops);
    }

    fn record(&mut self, f: Phase, ops: Vec<Op>) {
        self.ended = true;
        let p = self.session.number;
        self.session
            .recorder
            .push(p, Some(self.number), f, self.level, ops);
    }

    /// Its commit was acknowledged; what it did.
    pub fn committed(self, done: Vec<Op>) {
        self.end(Phase::Ok, done);
    }

    /// It was rolled back for sure.
    pub fn rolled_back(mut self) {
        let announced = std::mem::take(&mut self.announced);
        self.end(Phase::Fail, announced);
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        if !self.ended {
            let announced = std::mem::take(&mut self.announced);
            self.record(Phase::Info, announced);
            // A session does nothing more after that; this one goes on under another number.
            let mut state = self.session.recorder.state();
            state.next_session += 1;
            self.session.number = state.next_session - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, Outcome};

    #[test]
    fn a_recorded_history_is_read_back() {
        let recorder = Recorder::new();
        let mut session = recorder.session();
        let level = Level::Snapshot;
        let append = |value| vec![Op::append(1, value)];
        session.invoke(level, append(1)).committed(append(1));
        session.invoke(level, append(2)).rolled_back();
        drop(session.invoke(level, append(3)));
        session.invoke(level, append(4)).committed(append(4));
        let mut text = Vec::new();
        recorder.write(&mut text).unwrap();
        let history = History::read(text.as_slice()).unwrap();
        use Outcome::{Aborted, Committed, Unknown};
        let outcomes: Vec<Outcome> = history.transactions.iter().map(|t| t.outcome).collect();
        assert_eq!(outcomes, [Committed, Aborted, Unknown, Committed]);
    }

    #[test]
    fn a_crash_ends_what_was_open_and_lives_share_no_numbers() {
        let life = Recorder::new();
        let mut session = life.session();
        let running = session.invoke(Level::Snapshot, vec![Op::append(1, 1)]);
        let events = life.events();
        drop(running);
        let all = Recorder::new();
        for number in 0..2 {
            for event in &events {
                let ops = vec![Op::append(1, number)];
                all.take(
                    number,
                    Event {
                        ops,
                        ..event.clone()
                    },
                );
            }
            all.crashed();
        }
        let history = History::from_events(all.events()).unwrap();
        assert_eq!(history.transactions.len(), 2);
        assert!(
            history
                .transactions
                .iter()
                .all(|t| t.outcome == Outcome::Unknown)
        );
    }
}
