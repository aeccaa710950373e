//! Functions that act on sessions: `pg_cancel_backend`, `pg_terminate_backend`, `pg_sleep`, advisory locks.

use crate::catalog::{Oid, SIGNAL_BACKEND};
use crate::error::{Fields, Result, SqlError};
use crate::expr::AdvisoryAction;
use crate::lock::{AdvisoryKey, AdvisoryLock};
use crate::session::{CancelHandle, Env, clock_time};
use crate::sqlstate;
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;
use vellum_row::{Array, Type, Value, ValueRef};
use vellum_sync::thread;

/// How long a session sleeps before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(10);

/// What is asked of another session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    /// That its statement ends.
    Cancel,
    /// That it ends.
    Terminate,
}

impl Signal {
    fn give(self, cancel: &CancelHandle) {
        match self {
            Self::Cancel => cancel.cancel(),
            Self::Terminate => cancel.shut_down(),
        }
    }
}

/// Asks it of the session with a number; false, with a warning, if there is none.
///
/// # Errors
/// `42501` for a session of a role that the session's own role has not the rights of.
pub(super) fn signal(env: &Env<'_>, pid: ValueRef<'_>, signal: Signal) -> Result<Value> {
    let pid = pid.as_i64().and_then(|pid| i32::try_from(pid).ok());
    let mut sessions = env.shared.activities.all().into_iter();
    let Some(other) = sessions.find(|session| Some(session.pid) == pid) else {
        let message = format!(
            "PID {} is not a PostgreSQL server process",
            pid.unwrap_or(0)
        );
        let notice = Fields::warning(sqlstate::WARNING, message);
        env.notices.borrow_mut().push(notice);
        return Ok(Value::Bool(false));
    };
    let (verb, what, whose) = match signal {
        Signal::Cancel => ("cancel", "query", "query is being canceled"),
        Signal::Terminate => ("terminate", "process", "process is being terminated"),
    };
    let refused = |message: String| {
        let state = sqlstate::INSUFFICIENT_PRIVILEGE;
        Err(SqlError::new(state, message))
    };
    let is_superuser = |role| env.rights.is_superuser(role);
    if is_superuser(other.role) && !is_superuser(env.acting.role) {
        return refused(format!("must be a superuser to {verb} superuser {what}"));
    }
    let allowing = [other.role, SIGNAL_BACKEND];
    let has_rights_of = |role: Oid| env.rights.has_rights_of(env.acting.role, role);
    if !allowing.into_iter().any(has_rights_of) {
        return refused(format!(
            "must be a member of the role whose {whose} or member of pg_signal_backend"
        ));
    }
    signal.give(&other.cancel);
    if other.pid == env.options.process_id {
        // Who ends its own statement is told nothing else.
        (env.look)()?;
    }
    Ok(Value::Bool(true))
}

/// `pg_blocking_pids`: the sessions that one waits for.
pub(super) fn blocking_pids(env: &Env<'_>, pid: ValueRef<'_>) -> Value {
    let activities = &env.shared.activities;
    let all = activities.all();
    let mut sessions = all.iter();
    let waiting = sessions.find(|session| Some(i64::from(session.pid)) == pid.as_i64());
    let numbers = waiting.map_or_else(Vec::new, |session| {
        env.shared.advisory.blockers_of(session.number)
    });
    let own = waiting.and_then(|session| session.transaction());
    let blockers = own.map_or_else(Vec::new, |own| env.shared.waits.blockers_of(own));
    let of_numbers = numbers
        .into_iter()
        .filter_map(|number| activities.numbered(number));
    let blockers = blockers
        .into_iter()
        .filter_map(|blocker| activities.of(blocker));
    let mut pids: Vec<i32> = blockers
        .chain(of_numbers)
        .map(|session| session.pid)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    let pids: Vec<Value> = pids.into_iter().map(Value::Int4).collect();
    Value::Array(Array::of(Type::Int4, &pids))
}

/// The number or the two numbers that are locked.
pub(super) fn advisory_key(arguments: &[Value]) -> AdvisoryKey {
    match arguments {
        [Value::Int4(first), Value::Int4(second)] => AdvisoryKey::Pair(*first, *second),
        [Value::Int8(key), ..] => AdvisoryKey::Long(*key),
        _ => AdvisoryKey::Long(0),
    }
}

/// Takes or releases an advisory lock.
///
/// # Errors
/// `40P01`, `55P03`, `57014` while it waits.
pub(super) fn advisory(env: &Env<'_>, action: AdvisoryAction, lock: AdvisoryLock) -> Result<Value> {
    match action {
        AdvisoryAction::Take => {
            (env.take_advisory)(lock)?;
            Ok(Value::text(""))
        }
        AdvisoryAction::Try => Ok(Value::Bool(env.advisory.try_take(lock)?)),
        AdvisoryAction::Release => {
            let released = env.advisory.release(lock);
            if !released {
                let mode = if lock.shared {
                    "ShareLock"
                } else {
                    "ExclusiveLock"
                };
                let message = format!("you don't own a lock of type {mode}");
                let notice = Fields::warning(sqlstate::WARNING, message);
                env.notices.borrow_mut().push(notice);
            }
            Ok(Value::Bool(released))
        }
    }
}

/// `pg_sleep`: blocks for some seconds, or until the statement is cancelled.
/// `pg_sleep_until`.
pub(super) fn sleep_until(env: &Env<'_>, time: ValueRef<'_>) -> Result<Value> {
    let ValueRef::Timestamptz(until) = time else {
        return Ok(Value::text(""));
    };
    let left = until.0.saturating_sub(clock_time().0);
    sleep(env, ValueRef::Float8(left as f64 / 1e6))
}

/// `pg_sleep`, `pg_sleep_for`.
pub(super) fn sleep(env: &Env<'_>, time: ValueRef<'_>) -> Result<Value> {
    let seconds = match time {
        ValueRef::Float8(seconds) if seconds > 0.0 => seconds,
        // As EXTRACT(epoch) has it: a month of thirty days, a year of a quarter more than 365.
        ValueRef::Interval(time) => {
            let (years, months) = (time.months / 12, time.months % 12);
            let days = f64::from(years) * 365.25 + f64::from(months) * 30.0 + f64::from(time.days);
            days * 86_400.0 + time.micros as f64 / 1e6
        }
        _ => 0.0,
    };
    let nanos = (seconds * 1e9) as u64;
    let end = monotonic_nanos().saturating_add(nanos);
    loop {
        (env.look)()?;
        let left = end.saturating_sub(monotonic_nanos());
        if left == 0 {
            return Ok(Value::text(""));
        }
        thread::sleep(LOOK.min(Duration::from_nanos(left)));
    }
}
