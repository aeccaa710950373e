//! Limits of a statement: cancelling, `statement_timeout`, `lock_timeout`; and what it has to wait for.

use super::{CancelHandle, Session};
use crate::error::{Result, SqlError};
use crate::lock::Obstacle;
use crate::sqlstate;
use std::time::Duration;
use vellum::{Database, Error, Transaction, TransactionId, TransactionOptions};
use vellum_base::clock::monotonic_nanos;

/// How long a wait for a slot goes on without a look at what ends the statement.
const SLOT_LOOK: Duration = Duration::from_millis(20);

/// What a statement looks at while it works or waits.
#[derive(Debug)]
pub(crate) struct Waiting<'w> {
    cancel: &'w CancelHandle,
    /// By the monotonic clock; `None`: no limit.
    deadline: Option<u64>,
    lock_nanos: Option<u64>,
    /// When the wait began that is going on, earlier by what was waited for the same transactions before.
    since: Option<u64>,
    /// How long it has waited for those that it waited for last.
    waited: u64,
    /// Those.
    on: Vec<TransactionId>,
    /// What the statement has met and fails for, to wait and run again.
    obstacle: Option<Obstacle>,
}

/// Begins a transaction of the engine. Waits for a slot as long as the engine says, and hears of what ends the statement meanwhile: `look` fails then.
///
/// # Errors
/// `53300` if all slots are taken; what `look` fails with.
pub(crate) fn begin_hearing(
    engine: &Database,
    options: TransactionOptions,
    look: &dyn Fn() -> Result<()>,
) -> Result<Transaction> {
    let begin = |time| engine.begin_with(options.slot_timeout(time));
    match begin(Duration::ZERO) {
        Err(Error::Timeout { .. }) => {}
        begun => return Ok(begun?),
    }
    let timeout = engine.config().slot_timeout;
    let start = monotonic_nanos();
    loop {
        look()?;
        let waited = Duration::from_nanos(monotonic_nanos() - start);
        let rest = timeout.saturating_sub(waited);
        match begin(rest.min(SLOT_LOOK)) {
            Err(Error::Timeout { .. }) if rest > SLOT_LOOK => {}
            begun => return Ok(begun?),
        }
    }
}

impl<'w> Waiting<'w> {
    /// Of a statement that has to end at this moment of the monotonic clock, if there is one; the other limit in milliseconds, 0 for none.
    pub fn new(cancel: &'w CancelHandle, deadline: Option<u64>, lock_ms: u64) -> Self {
        Self {
            cancel,
            deadline,
            lock_nanos: nanos(lock_ms),
            since: None,
            waited: 0,
            on: Vec::new(),
            obstacle: None,
        }
    }

    /// Begins a transaction of the engine, as [`begin_hearing`].
    ///
    /// # Errors
    /// `53300` if all slots are taken; `57014`, `57P01`.
    pub fn begin(&self, engine: &Database, options: TransactionOptions) -> Result<Transaction> {
        begin_hearing(engine, options, &|| self.look_cancelled())
    }

    /// When it has to end, by the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// That of the same statement when it begins again: it has to end when it had to.
    pub fn anew(&self) -> Self {
        Self {
            since: None,
            on: Vec::new(),
            obstacle: None,
            ..*self
        }
    }

    /// Notes what is in the statement's way.
    pub fn set_obstacle(&mut self, obstacle: Obstacle) {
        self.obstacle = Some(obstacle);
    }

    /// What was noted.
    pub fn take_obstacle(&mut self) -> Option<Obstacle> {
        self.obstacle.take()
    }

    /// Another wait begins: `lock_timeout` is for each.
    pub fn start(&mut self) {
        self.since = None;
        self.on.clear();
    }

    /// A wait for transactions begins. One for those for whom the statement has waited before goes on: it was rung, and has found them in its way again.
    pub fn start_for(&mut self, on: &[TransactionId]) {
        if !self.on.iter().any(|before| on.contains(before)) {
            self.waited = 0;
        }
        self.on.clear();
        self.on.extend_from_slice(on);
        self.since = Some(monotonic_nanos().saturating_sub(self.waited));
    }

    /// It has ended, if it has begun.
    pub fn stop(&mut self) {
        if let Some(since) = self.since.take() {
            self.waited = monotonic_nanos().saturating_sub(since);
        }
    }

    /// # Errors
    /// `57014`, `57P01`.
    pub fn look_cancelled(&self) -> Result<()> {
        self.cancel.check()?;
        if self.deadline.is_some_and(|end| monotonic_nanos() >= end) {
            return Err(late());
        }
        Ok(())
    }

    /// The same while it waits for others.
    ///
    /// # Errors
    /// `55P03` too.
    pub fn look(&mut self) -> Result<()> {
        self.look_cancelled()?;
        let now = monotonic_nanos();
        let since = *self.since.get_or_insert(now);
        if self.lock_nanos.is_some_and(|limit| now - since >= limit) {
            let text = "canceling statement due to lock timeout";
            return Err(SqlError::new(sqlstate::LOCK_NOT_AVAILABLE, text));
        }
        Ok(())
    }
}

fn nanos(ms: u64) -> Option<u64> {
    (ms > 0).then(|| ms.saturating_mul(1_000_000))
}

#[cold]
fn late() -> SqlError {
    let text = "canceling statement due to statement timeout";
    SqlError::new(sqlstate::QUERY_CANCELED, text)
}

/// The clock of `statement_timeout`, as in PostgreSQL: of a text it is each statement's, the first one with the reading of the text; of the extended protocol
/// it starts with the first message of a statement, and runs until an Execute has come to its end, or to Sync.
impl Session {
    /// Starts the clock, unless it runs.
    pub(super) fn start_clock(&mut self) {
        if self.deadline.is_none() {
            let limit = nanos(self.settings.number("statement_timeout"));
            self.deadline = limit.map(|limit| monotonic_nanos().saturating_add(limit));
        }
    }

    /// What it was started for is done.
    pub(super) fn stop_clock(&mut self) {
        self.deadline = None;
    }

    /// A message of the extended protocol is to be answered.
    ///
    /// # Errors
    /// `57014` where what the messages before have begun has taken too long.
    pub(super) fn begin_message(&mut self) -> Result<()> {
        self.cancel.start();
        self.start_clock();
        match self.is_late() {
            true => Err(late()),
            false => Ok(()),
        }
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|end| monotonic_nanos() >= end)
    }

    /// When what the client has begun has to end, by the monotonic clock in nanoseconds: a COPY that waits for data, a pipeline whose statement was
    /// not run to its end.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// Ends a pipeline whose statement has taken too long while its client said nothing. Returns the error that the client is owed, once.
    pub fn end_pipeline(&mut self) -> Option<SqlError> {
        if !self.is_late() {
            return None;
        }
        self.failed();
        Some(late())
    }

    /// The limits of the statement that runs.
    pub(super) fn waiting<'w>(&self, cancel: &'w CancelHandle) -> Waiting<'w> {
        Waiting::new(cancel, self.deadline, self.settings.number("lock_timeout"))
    }
}
