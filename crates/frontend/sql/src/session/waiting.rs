//! Limits of a statement: cancelling, `statement_timeout`, `lock_timeout`; and what it has to wait for.

use super::{CancelHandle, Session};
use crate::error::{Result, SqlError};
use crate::lock::Obstacle;
use crate::sqlstate;
use vellum_base::clock::monotonic_nanos;

/// What a statement looks at while it works or waits.
#[derive(Debug)]
pub(crate) struct Waiting<'w> {
    cancel: &'w CancelHandle,
    /// By the monotonic clock; `None`: no limit.
    deadline: Option<u64>,
    lock_nanos: Option<u64>,
    /// When the wait began that is going on.
    since: Option<u64>,
    /// What the statement has met and fails for, to wait and run again.
    obstacle: Option<Obstacle>,
}

impl<'w> Waiting<'w> {
    /// Of a statement that starts now; limits in milliseconds, 0 for none.
    pub fn new(cancel: &'w CancelHandle, statement_ms: u64, lock_ms: u64) -> Self {
        let nanos = |ms: u64| (ms > 0).then(|| ms.saturating_mul(1_000_000));
        Self {
            cancel,
            deadline: nanos(statement_ms).map(|limit| monotonic_nanos().saturating_add(limit)),
            lock_nanos: nanos(lock_ms),
            since: None,
            obstacle: None,
        }
    }

    /// The same, of a statement that began earlier: it has to end at this moment of the monotonic clock.
    pub fn until(mut self, deadline: Option<u64>) -> Self {
        self.deadline = deadline.or(self.deadline);
        self
    }

    /// When it has to end, by the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// That of the same statement when it begins again: it has to end when it had to.
    pub fn anew(&self) -> Self {
        Self {
            since: None,
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
    }

    /// # Errors
    /// `57014`, `57P01`.
    pub fn look_cancelled(&self) -> Result<()> {
        self.cancel.check()?;
        if self.deadline.is_some_and(|end| monotonic_nanos() >= end) {
            let text = "canceling statement due to statement timeout";
            return Err(SqlError::new(sqlstate::QUERY_CANCELED, text));
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

impl Session {
    /// The limits of a statement that starts now, as they are set. In code those of all of it go on.
    pub(super) fn waiting<'w>(&self, cancel: &'w CancelHandle) -> Waiting<'w> {
        let lock_ms = self.settings.number("lock_timeout");
        match self.code_depth {
            0 => Waiting::new(cancel, self.settings.number("statement_timeout"), lock_ms),
            _ => Waiting::new(cancel, 0, lock_ms).until(self.code_deadline),
        }
    }
}
