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
    next_event: u64,
    next_transaction: u64,
    next_session: u64,
    open: BTreeMap<u64, u64>,
    sink: Option<Sink>,
}

/// Where events go instead of being kept.
struct Sink(Box<dyn Write + Send>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl State {
    fn add(&mut self, event: Event) {
        match event.f {
            Phase::Invoke => drop(self.open.insert(event.p, event.t)),
            _ => drop(self.open.remove(&event.p)),
        }
        let i = self.next_event;
        self.next_event += 1;
        let event = Event { i, ..event };
        match &mut self.sink {
            None => self.events.push(event),
            Some(sink) => {
                let mut line = serde_json::to_vec(&event).unwrap_or_default();
                line.push(b'\n');
                // Fails only if the other side is gone, which ends this process, too.
                let _ = sink.0.write_all(&line);
            }
        }
    }
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

    /// A history that is written to `sink` event by event, each as one line in one write, and not kept: for a process that is killed.
    pub fn streaming(sink: Box<dyn Write + Send>) -> Self {
        let recorder = Self::new();
        recorder.state().sink = Some(Sink(sink));
        recorder
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A thread that panicked while it held it has added an event or none.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session.
    pub fn session(&self) -> Session<'_> {
        let mut state = self.state();
        state.next_session += 1;
        let number = state.next_session - 1;
        Session {
            recorder: self,
            number,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn invoke(&self, p: u64, level: Level, ops: Vec<Op>) -> u64 {
        let (ts, mut state) = (self.now(), self.state());
        let t = state.next_transaction;
        state.next_transaction += 1;
        state.add(event(p, t, Phase::Invoke, ts, Some(level), ops));
        t
    }

    fn end(&self, p: u64, t: u64, f: Phase, level: Level, ops: Vec<Op>) {
        let (ts, mut state) = (self.now(), self.state());
        state.add(event(p, t, f, ts, Some(level), ops));
    }

    /// Takes over an event that another process recorded in its life number `life`, from one: lives share neither sessions nor transactions.
    /// What comes after what follows from the order of the calls.
    pub fn take(&self, life: u64, event: Event) {
        const LIFE: u64 = 1 << 32;
        debug_assert!(life > 0 && event.p < LIFE && event.t < LIFE);
        let (p, t) = (life * LIFE + event.p, life * LIFE + event.t);
        let (ts, mut state) = (self.now(), self.state());
        state.add(Event { p, t, ts, ..event });
    }

    /// Everything that is under way was cut off.
    pub fn crashed(&self) {
        let (ts, mut state) = (self.now(), self.state());
        for (p, t) in state.open.clone() {
            state.add(event(p, t, Phase::Info, ts, None, Vec::new()));
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
    /// Records that a transaction is about to begin. The appends that it will do are announced, so that whoever reads one knows where it is
    /// from even if its end never gets known; of several that are announced it does all or none.
    pub fn invoke(&mut self, level: Level, announced: Vec<Op>) -> Running<'_, 'r> {
        let number = self.recorder.invoke(self.number, level, announced.clone());
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
            .end(p, self.number, f, self.level, ops);
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

/// An event whose number is not yet drawn.
fn event(p: u64, t: u64, f: Phase, ts: u64, lvl: Option<Level>, ops: Vec<Op>) -> Event {
    let i = 0;
    Event {
        i,
        p,
        t,
        f,
        ts,
        lvl,
        ops,
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
        for number in 1..3 {
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
