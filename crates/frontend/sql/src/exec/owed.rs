//! The checks of deferred constraints that a transaction still owes, and what SET CONSTRAINTS has said.
//!
//! Invariants:
//! - O1 What is owed is known by its constraint and the values of its columns, not by rows: the same check is owed once, however many rows ask for it,
//!   and is made of whatever stands in the tables by then.
//! - O2 ROLLBACK TO a savepoint takes back what has come since, and what was settled since is owed again.
//!
//! Memory: one entry a constraint and key, which is about what the lock takes that its check will hold on the key. It is not spilled, as locks are not.

use crate::catalog::{Oid, Timing};
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::Value;

/// What is to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Check {
    /// Rows with this foreign key have their target.
    Target,
    /// Nothing refers to a key that is gone.
    Children,
    /// One row at most has this key.
    Alone,
}

/// A check that is owed.
#[derive(Clone, Debug)]
pub(crate) struct Owed {
    pub check: Check,
    /// The foreign key, or the index.
    pub constraint: Oid,
    /// The table whose change asks for it.
    pub relation: Oid,
    /// Of the key's columns, in the order of the unique index; `None` of a row that has a null there, and needs no target.
    pub values: Option<Arc<[Value]>>,
    name: Option<Name>,
    /// The settlement that has made it; 0: none has.
    settled: u32,
}

/// What the same check has in common.
type Name = (Check, Oid, Arc<[u8]>);

/// What SET CONSTRAINTS has said.
#[derive(Clone, Default, Debug)]
struct Modes {
    all: Option<bool>,
    each: Vec<(Oid, bool)>,
}

/// Of a transaction.
#[derive(Default, Debug)]
pub(crate) struct Deferred {
    modes: Modes,
    owed: Vec<Owed>,
    /// Where the same check stands already.
    known: HashMap<Name, usize>,
    settlements: u32,
}

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwedPoint {
    owed: usize,
    settlements: u32,
}

/// A savepoint: the point, and what SET CONSTRAINTS had said by then.
#[derive(Clone, Debug)]
pub(crate) struct OwedMark {
    point: OwedPoint,
    modes: Modes,
}

impl Deferred {
    /// Whether a constraint is checked later than at the end of the statement.
    pub fn is_deferred(&self, constraint: Oid, timing: Timing) -> bool {
        if !timing.is_deferrable() {
            return false;
        }
        let mut each = self.modes.each.iter();
        let own = each.find(|(oid, _)| *oid == constraint);
        let said = own.map(|(_, deferred)| *deferred).or(self.modes.all);
        said.unwrap_or(timing == Timing::Deferred)
    }

    /// SET CONSTRAINTS of these; `None`: of all.
    pub fn set(&mut self, constraints: Option<&[Oid]>, deferred: bool) {
        let Some(constraints) = constraints else {
            self.modes.all = Some(deferred);
            self.modes.each.clear();
            return;
        };
        for constraint in constraints {
            self.modes.each.retain(|(oid, _)| oid != constraint);
            self.modes.each.push((*constraint, deferred));
        }
    }

    /// Notes a check; `key`: the bytes of the key that it is about, if it has any.
    pub fn owe(
        &mut self,
        check: Check,
        (constraint, relation): (Oid, Oid),
        key: Option<&[u8]>,
        values: impl FnOnce() -> Option<Arc<[Value]>>,
    ) {
        let name = key.map(|key| (check, constraint, Arc::from(key)));
        if let Some(name) = &name
            && let Some(at) = self.known.get(name)
            && self.owed[*at].settled == 0
        {
            return;
        }
        if let Some(name) = &name {
            self.known.insert(name.clone(), self.owed.len());
        }
        self.owed.push(Owed {
            check,
            constraint,
            relation,
            values: values(),
            name,
            settled: 0,
        });
    }

    /// The checks that are still owed, in the order in which they came.
    pub fn owed(&self) -> impl Iterator<Item = &Owed> {
        self.owed.iter().filter(|owed| owed.settled == 0)
    }

    /// Whether a change of a table has a check that is still owed.
    pub fn is_about(&self, relation: Oid) -> bool {
        self.owed().any(|owed| owed.relation == relation)
    }

    /// Those that `which` names were made and found nothing. They are kept if there is a savepoint to go back to (O2).
    pub fn settle(&mut self, which: impl Fn(&Owed) -> bool, keep: bool) {
        if !keep {
            self.owed.retain(|owed| owed.settled == 0 && !which(owed));
            self.known.clear();
            let named = self.owed.iter().enumerate();
            let named = named.filter_map(|(at, owed)| Some((owed.name.clone()?, at)));
            self.known.extend(named);
            return;
        }
        self.settlements += 1;
        for owed in &mut self.owed {
            if owed.settled == 0 && which(owed) {
                owed.settled = self.settlements;
            }
        }
    }

    /// A point to go back to.
    pub fn point(&self) -> OwedPoint {
        OwedPoint {
            owed: self.owed.len(),
            settlements: self.settlements,
        }
    }

    /// The same with what SET CONSTRAINTS has said.
    pub fn mark(&self) -> OwedMark {
        OwedMark {
            point: self.point(),
            modes: self.modes.clone(),
        }
    }

    /// Takes back what has come since (O2).
    pub fn go_back(&mut self, point: OwedPoint) {
        for gone in self.owed.drain(point.owed.min(self.owed.len())..) {
            if let Some(name) = gone.name {
                self.known.remove(&name);
            }
        }
        if self.settlements == point.settlements {
            return;
        }
        for owed in &mut self.owed {
            if owed.settled > point.settlements {
                owed.settled = 0;
            }
        }
        self.settlements = point.settlements;
    }

    /// The same, and what SET CONSTRAINTS had said counts again.
    pub fn go_back_to(&mut self, mark: &OwedMark) {
        self.go_back(mark.point);
        self.modes = mark.modes.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owe(deferred: &mut Deferred, constraint: Oid, key: u8) {
        let values = || Some(Arc::from([Value::Int4(key.into())]));
        deferred.owe(Check::Target, (constraint, 1), Some(&[key]), values);
    }

    fn keys(deferred: &Deferred) -> Vec<i32> {
        let values = deferred.owed().filter_map(|owed| owed.values.clone());
        let key = |values: Arc<[Value]>| match values[0] {
            Value::Int4(key) => key,
            _ => unreachable!("they are integers"),
        };
        values.map(key).collect()
    }

    #[test]
    fn a_check_is_owed_once() {
        let mut deferred = Deferred::default();
        for key in [1, 2, 1, 2, 3] {
            owe(&mut deferred, 7, key);
        }
        owe(&mut deferred, 8, 1);
        assert_eq!(keys(&deferred), [1, 2, 3, 1]);
        assert!(deferred.is_about(1) && !deferred.is_about(7));
        deferred.settle(|owed| owed.constraint == 7, false);
        assert_eq!(keys(&deferred), [1]);
        owe(&mut deferred, 7, 2);
        owe(&mut deferred, 7, 2);
        assert_eq!(keys(&deferred), [1, 2], "settled, and owed again");
        deferred.settle(|_| true, false);
        assert!(deferred.owed.is_empty() && deferred.known.is_empty());
    }

    #[test]
    fn a_savepoint_brings_back_what_was_owed_and_said() {
        let mut deferred = Deferred::default();
        owe(&mut deferred, 7, 1);
        let mark = deferred.mark();
        deferred.set(None, true);
        deferred.settle(|_| true, true);
        owe(&mut deferred, 7, 1);
        owe(&mut deferred, 7, 2);
        assert_eq!(keys(&deferred), [1, 2]);
        assert!(deferred.is_deferred(7, Timing::Immediate));
        deferred.go_back_to(&mark);
        assert_eq!(keys(&deferred), [1]);
        assert!(!deferred.is_deferred(7, Timing::Immediate));
        deferred.settle(|_| true, false);
        owe(&mut deferred, 7, 2);
        assert_eq!(keys(&deferred), [2]);
    }

    #[test]
    fn what_is_said_of_all_replaces_what_was_said_of_one() {
        let mut deferred = Deferred::default();
        assert!(deferred.is_deferred(7, Timing::Deferred));
        assert!(!deferred.is_deferred(7, Timing::Immediate));
        deferred.set(Some(&[7]), true);
        assert!(deferred.is_deferred(7, Timing::Immediate));
        assert!(!deferred.is_deferred(8, Timing::Immediate));
        deferred.set(None, false);
        assert!(!deferred.is_deferred(7, Timing::Deferred));
        deferred.set(Some(&[7]), true);
        assert!(deferred.is_deferred(7, Timing::Deferred));
        assert!(!deferred.is_deferred(8, Timing::Deferred));
        assert!(!deferred.is_deferred(7, Timing::Fixed));
    }
}
