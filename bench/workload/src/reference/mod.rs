//! An engine in memory that tests run the workloads on: slow, plain, and snapshot isolated; read committed where that is asked for.
//!
//! All tables live behind one mutex, held for one operation at a time. A row is a list of versions
//! with commit numbers; a write to a row whose newest version is not in the writer's snapshot is a
//! conflict, under read committed only if it is not committed. An open transaction's own versions carry [`PENDING`] and its session number.
//!
//! Not here: durability (a clone of the engine shares its rows, which is how tests reopen it),
//! speed, and bounds on memory.

#[cfg(test)]
mod tests;

use crate::engine::{
    Description, Direction, Engine, EngineError, Isolation, Result, Session, Statistics, Table,
    TableSpec, Terms, TxOptions,
};
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Commit number of a version that is not committed.
const PENDING: u64 = u64::MAX;

#[derive(Clone, Debug)]
struct Version {
    /// Its commit number.
    commit: u64,
    /// The session that wrote it.
    owner: u64,
    /// None where the row was deleted.
    value: Option<Vec<u8>>,
}

type Rows = BTreeMap<Vec<u8>, Vec<Version>>;

#[derive(Debug, Default)]
struct State {
    names: Vec<String>,
    tables: Vec<Rows>,
    clock: u64,
    sessions: u64,
    statistics: Statistics,
    /// Snapshots of open transactions.
    open: BTreeMap<u64, u64>,
}

/// The engine. Clones share their rows.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    state: Arc<Mutex<State>>,
    /// Position of each of the workload's tables in `State::tables`.
    positions: Vec<usize>,
}

impl Reference {
    /// An empty engine.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock has failed already; others may go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of versions of all rows, for tests of this engine.
    pub fn versions(&self) -> usize {
        self.lock()
            .tables
            .iter()
            .flat_map(|rows| rows.values())
            .map(Vec::len)
            .sum()
    }
}

impl Engine for Reference {
    type Session<'e> = ReferenceSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let mut positions = Vec::new();
        {
            let mut state = self.lock();
            for (position, spec) in tables.iter().enumerate() {
                assert_eq!(
                    spec.table.position(),
                    position,
                    "a list in the order of its positions"
                );
                let known = state.names.iter().position(|name| name == spec.name);
                positions.push(known.unwrap_or(state.names.len()));
                if known.is_none() {
                    state.names.push(spec.name.to_owned());
                    state.tables.push(Rows::new());
                }
            }
        }
        self.positions = positions;
        Ok(())
    }

    fn open_session(&self) -> Result<ReferenceSession<'_>> {
        let mut state = self.lock();
        state.sessions += 1;
        Ok(ReferenceSession {
            engine: self,
            id: state.sessions,
            open: None,
            writes: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        self.lock().statistics.clone()
    }

    fn describe(&self) -> Description {
        Description::new(
            "reference",
            env!("CARGO_PKG_VERSION"),
            Terms {
                isolation: "snapshot, first to write wins".to_owned(),
                durability: "none".to_owned(),
                lost_by_kill: "everything".to_owned(),
                lost_by_power_loss: "everything".to_owned(),
                memory: "all of it".to_owned(),
            },
            Vec::new(),
        )
    }
}

/// A client of [`Reference`].
#[derive(Debug)]
pub struct ReferenceSession<'e> {
    engine: &'e Reference,
    id: u64,
    /// Snapshot and promise of the open transaction.
    open: Option<(u64, TxOptions)>,
    writes: Vec<(usize, Vec<u8>)>,
}

impl ReferenceSession<'_> {
    fn at(&self, table: Table) -> usize {
        self.engine.positions[table.position()]
    }

    /// The last commit that an operation sees which begins at `clock`.
    fn snapshot(&self, clock: u64) -> u64 {
        let (begun, options) = self.open.expect("an operation inside a transaction");
        match options.isolation {
            Isolation::Snapshot => begun,
            Isolation::ReadCommitted => clock,
        }
    }

    fn visible<'v>(&self, versions: &'v [Version], clock: u64) -> Option<&'v [u8]> {
        let snapshot = self.snapshot(clock);
        let seen = |v: &&Version| {
            if v.commit == PENDING {
                v.owner == self.id
            } else {
                v.commit <= snapshot
            }
        };
        versions.iter().rev().find(seen)?.value.as_deref()
    }

    /// Replaces what this transaction sees under `key`: `make` gets the visible value and returns
    /// the new one.
    fn write<R>(
        &mut self,
        table: Table,
        key: &[u8],
        make: impl FnOnce(Option<&[u8]>) -> (R, Option<Option<Vec<u8>>>),
    ) -> Result<R> {
        let (_, options) = self.open.expect("a write inside a transaction");
        assert!(
            !options.read_only,
            "a write in a transaction that promised none"
        );
        let position = self.at(table);
        let mut state = self.engine.lock();
        let state = &mut *state;
        let snapshot = self.snapshot(state.clock);
        let versions = state.tables[position]
            .get(key)
            .map_or(&[][..], Vec::as_slice);
        let foreign = versions.last().is_some_and(|newest| {
            if newest.commit == PENDING {
                newest.owner != self.id
            } else {
                newest.commit > snapshot
            }
        });
        if foreign {
            return Err(EngineError::Conflict);
        }
        let (result, value) = make(self.visible(versions, state.clock));
        if let Some(value) = value {
            state.statistics.log_bytes += (key.len() + value.as_ref().map_or(0, Vec::len)) as u64;
            let versions = state.tables[position].entry(key.to_vec()).or_default();
            match versions.last_mut() {
                Some(own) if own.commit == PENDING => own.value = value,
                _ => {
                    versions.push(Version {
                        commit: PENDING,
                        owner: self.id,
                        value,
                    });
                    self.writes.push((position, key.to_vec()));
                }
            }
        }
        Ok(result)
    }
}

impl Drop for ReferenceSession<'_> {
    fn drop(&mut self) {
        let undone = self.rollback();
        debug_assert!(undone.is_ok());
    }
}

impl Session for ReferenceSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        assert!(self.open.is_none(), "one transaction at a time");
        let mut state = self.engine.lock();
        let snapshot = state.clock;
        state.open.insert(self.id, snapshot);
        self.open = Some((snapshot, options));
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        assert!(self.open.take().is_some(), "a transaction to commit");
        let mut state = self.engine.lock();
        let state = &mut *state;
        state.open.remove(&self.id);
        if self.writes.is_empty() {
            return Ok(());
        }
        state.clock += 1;
        let oldest = state.open.values().copied().min().unwrap_or(state.clock);
        for (position, key) in self.writes.drain(..) {
            let versions = state.tables[position]
                .get_mut(&key)
                .expect("the row that was written");
            versions
                .last_mut()
                .expect("the version that was written")
                .commit = state.clock;
            // What the oldest snapshot reads stays, and everything newer.
            let keep = versions
                .iter()
                .rposition(|v| v.commit <= oldest)
                .unwrap_or(0);
            versions.drain(..keep);
            if versions.len() == 1 && versions[0].value.is_none() && versions[0].commit <= oldest {
                state.tables[position].remove(&key);
            }
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        let mut state = self.engine.lock();
        let state = &mut *state;
        self.open = None;
        state.open.remove(&self.id);
        for (position, key) in self.writes.drain(..) {
            let versions = state.tables[position]
                .get_mut(&key)
                .expect("the row that was written");
            let undone = versions.pop().expect("the version that was written");
            debug_assert_eq!((undone.commit, undone.owner), (PENDING, self.id));
            if versions.is_empty() {
                state.tables[position].remove(&key);
            }
        }
        Ok(())
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let position = self.at(table);
        let mut state = self.engine.lock();
        state.statistics.pages_read += 1;
        let versions = state.tables[position]
            .get(key)
            .map_or(&[][..], Vec::as_slice);
        Ok(self.visible(versions, state.clock).map(&mut read))
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, key, |old| match old {
            Some(_) => (Err(EngineError::KeyExists(table)), None),
            None => (Ok(()), Some(Some(value.to_vec()))),
        })?
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, key, |_| ((), Some(Some(value.to_vec()))))
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        debug_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        self.write(table, key, |old| match old {
            None => (false, None),
            Some(old) => {
                let mut new = old.to_vec();
                // Twice, because an engine may: a workload must not count calls.
                change(&mut new);
                new.copy_from_slice(old);
                change(&mut new);
                let declared = |at: usize| ranges.iter().any(|range| range.contains(&at));
                assert!(
                    (0..old.len()).all(|at| old[at] == new[at] || declared(at)),
                    "an update changed bytes outside its ranges"
                );
                (true, Some(Some(new)))
            }
        })
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.write(table, key, |old| {
            (old.is_some(), old.is_some().then_some(None))
        })
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let position = self.at(table);
        let state = self.engine.lock();
        let rows = &state.tables[position];
        let visit = |(key, versions): (&Vec<u8>, &Vec<Version>)| {
            self.visible(versions, state.clock)
                .is_none_or(|value| each(key, value))
        };
        let whole = match direction {
            Direction::Forward => rows
                .range::<[u8], _>((Bound::Included(from), Bound::Unbounded))
                .all(visit),
            Direction::Backward => rows
                .range::<[u8], _>((Bound::Unbounded, Bound::Included(from)))
                .rev()
                .all(visit),
        };
        // Stopping early and reaching the end are both fine.
        let _ = whole;
        Ok(())
    }
}
