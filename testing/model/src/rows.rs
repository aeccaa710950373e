//! The versions of the rows of one table: the visibility rule and first writer wins.
//!
//! Time is the number of commits that wrote something: a snapshot `s` sees the commits `0..s`.
//!
//! Invariants:
//! - I1 In a chain (oldest first) all committed versions come before the versions of the one
//!   open transaction that writes the row, and commit numbers never decrease.
//! - I2 Commands of one writer ascend in a chain.
//! - I3 No chain is empty.

use crate::defect::Defect;
use crate::step::{Key, KeyRange, Refusal, TxNumber};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// One version of a row.
#[derive(Clone, Debug)]
pub struct Version {
    /// Who wrote it.
    pub writer: TxNumber,
    /// With which command.
    pub command: u64,
    /// The number of its commit, if it is committed.
    pub commit: Option<u64>,
    /// Its value; `None` is a delete.
    pub value: Option<Arc<[u8]>>,
}

/// Who reads, and as of when.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The reading transaction.
    pub reader: TxNumber,
    /// Commits below this are seen.
    pub snapshot: u64,
    /// The reader's own writes are seen up to, without, this command.
    pub command: u64,
}

/// All versions of all rows of a table.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    chains: BTreeMap<Key, Vec<Version>>,
}

impl View {
    /// The visibility rule.
    pub fn sees(&self, version: &Version, defect: Option<Defect>) -> bool {
        match version.commit {
            _ if version.writer == self.reader => version.command < self.command,
            Some(commit) if defect == Some(Defect::SeesTheNextCommit) => commit <= self.snapshot,
            Some(commit) => commit < self.snapshot,
            None => defect == Some(Defect::SeesUncommitted),
        }
    }

    fn pick(&self, chain: &[Version], defect: Option<Defect>) -> Option<Arc<[u8]>> {
        let version = chain
            .iter()
            .rev()
            .find(|version| self.sees(version, defect))?;
        match &version.value {
            None if defect == Some(Defect::ShowsTombstone) => Some(Arc::from([])),
            value => value.clone(),
        }
    }
}

/// True if no key can lie in the range (std's maps panic on those).
pub fn is_empty_range(range: &KeyRange) -> bool {
    match (&range.0, &range.1) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
        _ => false,
    }
}

impl Rows {
    /// The row that a view sees.
    pub fn get(&self, key: &Key, view: View, defect: Option<Defect>) -> Option<Arc<[u8]>> {
        view.pick(self.chains.get(key)?, defect)
    }

    /// The rows of a range that a view sees, ascending; both ends can be taken from.
    pub fn range<'a>(
        &'a self,
        range: &KeyRange,
        view: View,
        defect: Option<Defect>,
    ) -> impl DoubleEndedIterator<Item = (&'a Key, Arc<[u8]>)> {
        let chains = (!is_empty_range(range)).then(|| self.chains.range(range.clone()));
        chains
            .into_iter()
            .flatten()
            .filter_map(move |(key, chain)| Some((key, view.pick(chain, defect)?)))
    }

    /// The number of rows of a range that a view sees.
    pub fn count(&self, range: &KeyRange, view: View, defect: Option<Defect>) -> u64 {
        if defect == Some(Defect::CountsTombstones) && !is_empty_range(range) {
            return self.chains.range(range.clone()).count() as u64;
        }
        self.range(range, view, defect).count() as u64
    }

    /// First writer wins: a row can be written if its newest version is seen by the writer.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] if it is not.
    pub fn check_writable(
        &self,
        key: &Key,
        view: View,
        defect: Option<Defect>,
    ) -> Result<(), Refusal> {
        let Some(newest) = self.chains.get(key).and_then(|chain| chain.last()) else {
            return Ok(());
        };
        let forgiven = match defect {
            Some(Defect::ForgetsCommittedConflict) => newest.commit.is_some(),
            Some(Defect::ForgetsOpenConflict) => newest.commit.is_none(),
            Some(Defect::ForgetsConflictOnTombstone) => newest.value.is_none(),
            _ => false,
        };
        if forgiven || view.sees(newest, defect) {
            Ok(())
        } else {
            Err(Refusal::Conflict)
        }
    }

    /// True if the newest version of a key is a committed delete.
    pub fn newest_is_deleted(&self, key: &Key) -> bool {
        let newest = self.chains.get(key).and_then(|chain| chain.last());
        newest.is_some_and(|newest| newest.commit.is_some() && newest.value.is_none())
    }

    /// True if a view sees the newest version of every row, deletes included.
    pub fn are_seen(&self, view: View) -> bool {
        let mut newest = self.chains.values().filter_map(|chain| chain.last());
        newest.all(|version| view.sees(version, None))
    }

    /// True if nobody ever wrote here, or everything was rolled back.
    pub fn is_untouched(&self) -> bool {
        self.chains.is_empty()
    }

    /// True if some row is in the table whatever was collected: one that is not deleted, or whose delete is
    /// not committed.
    pub fn holds_something(&self) -> bool {
        let newest = self.chains.values().filter_map(|chain| chain.last());
        newest
            .into_iter()
            .any(|version| version.value.is_some() || version.commit.is_none())
    }

    /// Adds a version on top.
    pub fn push(&mut self, key: Key, version: Version) {
        self.chains.entry(key).or_default().push(version);
    }

    /// Takes away the open versions of `writer` with at least this command.
    pub fn revert(&mut self, key: &Key, writer: TxNumber, command: u64, defect: Option<Defect>) {
        let Some(chain) = self.chains.get_mut(key) else {
            return;
        };
        chain.retain(|version| {
            let kept = defect == Some(Defect::RollbackForgetsDeletes) && version.value.is_none();
            kept || version.writer != writer
                || version.commit.is_some()
                || version.command < command
        });
        if chain.is_empty() {
            self.chains.remove(key);
        }
    }

    /// Commits the open versions of `writer`.
    pub fn commit(&mut self, key: &Key, writer: TxNumber, commit: u64) {
        for version in self.chains.get_mut(key).into_iter().flatten() {
            if version.writer == writer && version.commit.is_none() {
                version.commit = Some(commit);
            }
        }
    }

    /// Makes the table what it was after the first `commits` commits; nothing stays open.
    pub fn truncate(&mut self, commits: u64) {
        self.retain(|version| version.commit.is_some_and(|commit| commit < commits));
    }

    /// Keeps some versions.
    pub fn retain(&mut self, mut keep: impl FnMut(&Version) -> bool) {
        self.chains.retain(|_, chain| {
            chain.retain(&mut keep);
            !chain.is_empty()
        });
    }

    /// A key at or after `from` of which the newest version is a row (for generators: likely to
    /// be found).
    pub fn some_key_from(&self, from: &Key) -> Option<&Key> {
        self.chains
            .range((Bound::Included(from.clone()), Bound::Unbounded))
            .find(|(_, chain)| chain.last().is_some_and(|version| version.value.is_some()))
            .map(|(key, _)| key)
    }

    /// Asserts I1 to I3.
    pub fn check(&self) {
        for (key, chain) in &self.chains {
            assert!(!chain.is_empty(), "I3 at {key:?}");
            for pair in chain.windows(2) {
                let (old, new) = (&pair[0], &pair[1]);
                match (old.commit, new.commit) {
                    (Some(first), Some(second)) => assert!(first <= second, "I1 at {key:?}"),
                    (None, Some(_)) => panic!("I1 at {key:?}"),
                    (None, None) => assert_eq!(old.writer, new.writer, "I1 at {key:?}"),
                    (Some(_), None) => {}
                }
                if old.writer == new.writer {
                    assert!(old.command < new.command, "I2 at {key:?}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key(text.as_bytes().to_vec())
    }

    fn version(writer: TxNumber, command: u64, commit: Option<u64>, row: Option<&str>) -> Version {
        Version {
            writer,
            command,
            commit,
            value: row.map(|text| Arc::from(text.as_bytes())),
        }
    }

    #[test]
    fn snapshot_is_strictly_below_its_time() {
        let view = View {
            reader: 9,
            snapshot: 5,
            command: 0,
        };
        assert!(view.sees(&version(1, 0, Some(4), None), None));
        assert!(!view.sees(&version(1, 0, Some(5), None), None));
        assert!(!view.sees(&version(1, 0, None, None), None));
    }

    #[test]
    fn own_writes_are_seen_from_the_next_command_on() {
        let mut rows = Rows::default();
        rows.push(key("a"), version(1, 3, None, Some("x")));
        let at = |command| View {
            reader: 1,
            snapshot: 0,
            command,
        };
        assert!(rows.get(&key("a"), at(3), None).is_none());
        assert!(rows.get(&key("a"), at(4), None).is_some());
    }

    #[test]
    fn concurrent_delete_is_a_conflict_for_insert_and_update() {
        let mut rows = Rows::default();
        rows.push(key("a"), version(1, 0, Some(0), Some("x")));
        rows.push(key("a"), version(2, 0, Some(1), None));
        let old = View {
            reader: 3,
            snapshot: 1,
            command: 9,
        };
        assert_eq!(
            rows.check_writable(&key("a"), old, None),
            Err(Refusal::Conflict)
        );
        let new = View { snapshot: 2, ..old };
        assert_eq!(rows.check_writable(&key("a"), new, None), Ok(()));
        assert!(rows.get(&key("a"), new, None).is_none());
    }

    #[test]
    fn ranges_that_hold_nothing_are_known() {
        use Bound::{Excluded, Included, Unbounded};
        assert!(is_empty_range(&(Excluded(key("a")), Excluded(key("a")))));
        assert!(is_empty_range(&(Included(key("b")), Included(key("a")))));
        assert!(!is_empty_range(&(Included(key("a")), Included(key("a")))));
        assert!(!is_empty_range(&(Excluded(key("b")), Unbounded)));
    }
}
