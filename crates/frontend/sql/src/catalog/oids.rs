//! Numbers of catalog objects, and values of sequences: what is drawn outside transactions, and never drawn twice.
//!
//! Layout: rows of the engine table [`TABLE`]; key: the number that the values of a sequence are known by (big-endian u32, an oid; 0: the oids themselves); value: `i64
//! last value given out` (little-endian).
//!
//! Crash: the store runs ahead of what is given out by up to [`AHEAD`] values; a crash skips those. The row is written by
//! a transaction of its own that commits before the value is used, and commits are durable in their order: whoever used a
//! value durably has its row. Who is told a value uses it, too, if the transaction that drew it wrote nothing: the commit of that waits for
//! the commit of the row (`Taken::stored`), whoever wrote it. The row of a sequence that is gone is removed behind the commit that dropped it, or
//! behind the rollback of the transaction that made it; what a crash leaves in between goes when the database is opened.
//!
//! Concurrency: what is known of a sequence is behind a latch, and so is asking the store. Nobody waits for a slot of the engine there: who finds none waits outside, where it hears of what
//! ends its statement ([`with_slot`]), and begins again.

use super::runtime::Taken;
use super::{FIRST_USER_OID, Oid, Runtime, SequenceDefinition};
use crate::error::{Result, SqlError};
use crate::session::begin_hearing;
use crate::sqlstate;
use std::time::Duration;
use vellum::{Database, Durability, PendingCommit, Transaction, TransactionOptions};
use vellum_sync::Mutex;

/// The engine table.
pub(crate) const TABLE: &str = "sql.sequences";

/// Values that the store runs ahead.
const AHEAD: u64 = 32;

/// Draws oids.
#[derive(Debug, Default)]
pub(crate) struct Oids {
    drawn: Mutex<Option<Taken>>,
}

const OIDS: SequenceDefinition = SequenceDefinition {
    start: FIRST_USER_OID as i64,
    begin: FIRST_USER_OID as i64,
    increment: 1,
    minimum: FIRST_USER_OID as i64,
    maximum: u32::MAX as i64,
    cycle: false,
    cache: 1,
    type_oid: 26,
    owner: (0, 0),
    values: 0,
};

/// Who asks the store: its engine, and what fails when its statement is to end.
pub(crate) type Asking<'a> = (&'a Database, &'a dyn Fn() -> Result<()>);

/// Runs `work`, which takes a slot of the engine at once or fails, until there was one.
///
/// # Errors
/// Those of `work`; `53300` if all slots stay taken; what ends the statement.
fn with_slot<R>((engine, look): Asking<'_>, mut work: impl FnMut() -> Result<R>) -> Result<R> {
    loop {
        match work() {
            Err(error) if error.sqlstate() == sqlstate::TOO_MANY_CONNECTIONS => {
                // For whoever comes first: what is read is read behind the latch.
                drop(begin_hearing(engine, at_once(), look)?);
            }
            done => return done,
        }
    }
}

/// Of transactions that read or write a row of the store.
fn at_once() -> TransactionOptions {
    TransactionOptions::default()
        .durability(Durability::Async)
        .slot_timeout(Duration::ZERO)
}

impl Oids {
    /// The next two oids, of which the first is even (C3): what an enum and the type of its arrays have.
    ///
    /// # Errors
    /// What the engine reports; what ends the statement.
    pub fn draw_pair(&self, asking: Asking<'_>) -> Result<Oid> {
        loop {
            let pair = with_slot(asking, || {
                let mut taken = self.drawn.lock();
                let first = next(asking.0, "oids", &OIDS, &mut taken)?;
                if first % 2 != 0 {
                    return Ok(None);
                }
                next(asking.0, "oids", &OIDS, &mut taken)?;
                Ok(Some(first))
            })?;
            if let Some(first) = pair {
                return Oid::try_from(first)
                    .map_err(|_| SqlError::internal("an oid outside its range"));
            }
        }
    }

    /// The next oid (C3).
    ///
    /// # Errors
    /// As above.
    pub fn draw(&self, asking: Asking<'_>) -> Result<Oid> {
        let drawn = || next(asking.0, "oids", &OIDS, &mut self.drawn.lock());
        Oid::try_from(with_slot(asking, drawn)?)
            .map_err(|_| SqlError::internal("an oid outside its range"))
    }
}

/// The next value of a sequence, and the commit that makes it last if it may not be durable yet.
///
/// # Errors
/// `2200H` at its end; what the engine reports; what ends the statement.
pub(crate) fn next_value(
    asking: Asking<'_>,
    name: &str,
    definition: &SequenceDefinition,
    runtime: &Runtime,
) -> Result<(i64, Option<PendingCommit>)> {
    with_slot(asking, || {
        let mut taken = runtime.sequence.lock();
        let value = next(asking.0, name, definition, &mut taken)?;
        let Some(taken) = &mut *taken else {
            return Ok((value, None));
        };
        taken.stored.take_if(|stored| stored.is_durable());
        Ok((value, taken.stored.clone()))
    })
}

/// Where a sequence stands, as far as its store knows: what it has given out last, or what it begins with.
///
/// # Errors
/// What the engine reports.
pub(crate) fn state(
    engine: &Database,
    definition: &SequenceDefinition,
    runtime: &Runtime,
) -> Result<Taken> {
    with_slot((engine, &|| Ok(())), || {
        current(engine, definition, runtime.sequence.lock().as_ref())
    })
}

/// Sets a sequence: the next value is `value`, or what follows it if `called`. Returns the commit of that.
///
/// # Errors
/// What the engine reports; what ends the statement.
pub(crate) fn set_value(
    asking: Asking<'_>,
    runtime: &Runtime,
    value: i64,
    called: bool,
    definition: &SequenceDefinition,
) -> Result<PendingCommit> {
    // A value that was not given out is stored as the one before it.
    let last = if called {
        Some(value)
    } else {
        value.checked_sub(definition.increment)
    };
    with_slot(asking, || {
        let mut taken = runtime.sequence.lock();
        let stored = write(asking.0, definition.values, last.unwrap_or(value))?;
        *taken = Some(Taken {
            last: value,
            called,
            ahead: 0,
            step: definition.increment,
            stored: Some(stored.clone()),
        });
        Ok(stored)
    })
}

/// A sequence is about to have other bounds: the store knows of no value any more that was not given out.
///
/// # Errors
/// What the engine reports; what ends the statement.
pub(crate) fn settle(
    asking: Asking<'_>,
    runtime: &Runtime,
    definition: &SequenceDefinition,
) -> Result<()> {
    with_slot(asking, || {
        let mut taken = runtime.sequence.lock();
        let Some(known) = &mut *taken else {
            return Ok(());
        };
        // Whose row was removed has nothing to write.
        if known.called && known.ahead > 0 && known.ahead <= AHEAD {
            known.stored = Some(write(asking.0, definition.values, known.last)?);
            known.ahead = 0;
        }
        Ok(())
    })
}

/// A sequence is gone, or was started again, and the row of its values goes. Whose snapshot still has it draws from memory from then on: no row comes back.
///
/// # Errors
/// What the engine reports; the row stays until the database is opened again ([`sweep`]).
pub(crate) fn remove(
    engine: &Database,
    runtime: &Runtime,
    definition: &SequenceDefinition,
) -> Result<()> {
    with_slot((engine, &|| Ok(())), || {
        let mut taken = runtime.sequence.lock();
        let current = current(engine, definition, taken.as_ref())?;
        *taken = Some(Taken {
            ahead: u64::MAX,
            ..current
        });
        engine.retry_with(at_once(), |transaction| {
            let table = transaction.table(TABLE)?;
            transaction
                .delete(&table, &definition.values.to_be_bytes())
                .map(drop)
        })?;
        Ok(())
    })
}

/// Removes the rows that a crash has left of sequences that are gone. Nobody draws values yet.
///
/// # Errors
/// `XX001` for a row that cannot be read; what the engine reports.
pub(crate) fn sweep(engine: &Database, is_there: impl Fn(Oid) -> bool) -> Result<()> {
    let mut gone = Vec::new();
    each(&engine.begin()?, |oid, _| {
        if oid != 0 && !is_there(oid) {
            gone.push(oid);
        }
    })?;
    if gone.is_empty() {
        return Ok(());
    }
    engine.retry(|transaction| {
        let table = transaction.table(TABLE)?;
        let mut gone = gone.iter();
        gone.try_for_each(|oid| transaction.delete(&table, &oid.to_be_bytes()).map(drop))
    })?;
    Ok(())
}

/// Looks whether all rows can be read.
///
/// # Errors
/// `XX001` for one that cannot; what the engine reports.
pub(crate) fn check(transaction: &Transaction) -> Result<()> {
    let mut all = true;
    each(transaction, |_, value| all &= decode(value).is_some())?;
    all.then_some(()).ok_or_else(unreadable)
}

/// Calls `each` with the number and the value of every row.
fn each(transaction: &Transaction, mut each: impl FnMut(Oid, &[u8])) -> Result<()> {
    let table = transaction.table(TABLE)?;
    let mut cursor = transaction.cursor(&table, ..)?;
    while let Some((key, value)) = cursor.next()? {
        let oid = key.try_into().map(Oid::from_be_bytes);
        each(oid.map_err(|_| unreadable())?, value);
    }
    Ok(())
}

fn decode(value: &[u8]) -> Option<i64> {
    value.try_into().map(i64::from_le_bytes).ok()
}

fn current(
    engine: &Database,
    definition: &SequenceDefinition,
    taken: Option<&Taken>,
) -> Result<Taken> {
    if let Some(taken) = taken {
        return Ok(taken.clone());
    }
    let last = read(engine, definition.values)?;
    Ok(Taken {
        last: last.unwrap_or(definition.begin),
        called: last.is_some(),
        ahead: 0,
        step: definition.increment,
        stored: None,
    })
}

fn next(
    engine: &Database,
    name: &str,
    definition: &SequenceDefinition,
    taken: &mut Option<Taken>,
) -> Result<i64> {
    let current = current(engine, definition, taken.as_ref())?;
    let value = if current.called {
        step(current.last, name, definition)?
    } else {
        current.last
    };
    let mut stored = current.stored;
    // With another increment the store knows other values. Nothing is written of a sequence that is gone.
    let ahead = match current.ahead {
        counted if current.step == definition.increment || counted > AHEAD => counted,
        _ => 0,
    };
    let ahead = match ahead.checked_sub(1) {
        Some(ahead) => ahead,
        None => {
            let jump = i64::try_from(AHEAD).ok().and_then(|count| {
                let last = definition.increment.checked_mul(count)?;
                let last = value.checked_add(last)?;
                (definition.minimum..=definition.maximum)
                    .contains(&last)
                    .then_some(last)
            });
            // At the ends it goes one by one.
            stored = Some(write(engine, definition.values, jump.unwrap_or(value))?);
            if jump.is_some() { AHEAD } else { 0 }
        }
    };
    *taken = Some(Taken {
        last: value,
        called: true,
        ahead,
        step: definition.increment,
        stored,
    });
    Ok(value)
}

fn step(last: i64, name: &str, definition: &SequenceDefinition) -> Result<i64> {
    let next = last.checked_add(definition.increment);
    let next = next.filter(|next| (definition.minimum..=definition.maximum).contains(next));
    match next {
        Some(next) => Ok(next),
        None if definition.cycle && definition.increment > 0 => Ok(definition.minimum),
        None if definition.cycle => Ok(definition.maximum),
        None => {
            let (word, bound) = if definition.increment > 0 {
                ("maximum", definition.maximum)
            } else {
                ("minimum", definition.minimum)
            };
            let message = format!("nextval: reached {word} value of sequence \"{name}\" ({bound})");
            Err(SqlError::new(
                sqlstate::SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                message,
            ))
        }
    }
}

fn read(engine: &Database, oid: Oid) -> Result<Option<i64>> {
    let transaction = engine.begin_with(at_once())?;
    let table = transaction.table(TABLE)?;
    match transaction.get(&table, &oid.to_be_bytes(), decode)? {
        None => Ok(None),
        Some(value) => value.map(Some).ok_or_else(unreadable),
    }
}

#[cold]
fn unreadable() -> SqlError {
    SqlError::new(
        sqlstate::DATA_CORRUPTED,
        "a row of the sequences cannot be read",
    )
}

fn write(engine: &Database, oid: Oid, last: i64) -> Result<PendingCommit> {
    let ((), pending) = engine.retry_deferred(at_once(), |transaction| {
        let table = transaction.table(TABLE)?;
        transaction.upsert(&table, &oid.to_be_bytes(), &last.to_le_bytes())?;
        Ok(())
    })?;
    Ok(pending)
}
