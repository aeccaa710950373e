//! Lists of IN and arrays of ANY and ALL that a value is looked for in.
//!
//! A short list is compared item by item. A long one that is the same for all rows is kept as a set: one of constants with the expression, one that comes with
//! the parameters for the run that these were given for, from the second row on.
//!
//! Invariants:
//! - LS1 What is kept of a list by its number is of these items and of one run's parameters: whoever changes the items gives the list another number, whoever
//!   runs with other parameters forgets all.

use super::{Builtin, CatalogFunction, Expr, Frame, Out, RowSet};
use crate::error::Result;
use crate::exec::{Account, Room, out_of_memory};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use vellum_base::maps::HashMap;
use vellum_row::{ValueRef, compare};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The most items that are compared one by one.
const FEW: usize = 8;

/// The items of an IN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    items: Box<[Expr]>,
    // Apart: what an expression takes is a part of every other.
    kept: Box<Kept>,
}

impl Listed {
    pub fn new(items: Box<[Expr]>) -> Self {
        Self {
            items,
            kept: Box::default(),
        }
    }
}

impl Deref for Listed {
    type Target = [Expr];

    fn deref(&self) -> &[Expr] {
        &self.items
    }
}

impl DerefMut for Listed {
    fn deref_mut(&mut self) -> &mut [Expr] {
        // LS1.
        *self.kept = Kept::default();
        &mut self.items
    }
}

/// An array that a value is looked for in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Searched {
    array: Expr,
    kept: Kept,
}

impl Searched {
    pub fn new(array: Expr) -> Box<Self> {
        Box::new(Self {
            array,
            kept: Kept::default(),
        })
    }
}

impl Deref for Searched {
    type Target = Expr;

    fn deref(&self) -> &Expr {
        &self.array
    }
}

impl DerefMut for Searched {
    fn deref_mut(&mut self) -> &mut Expr {
        // LS1.
        self.kept = Kept::default();
        &mut self.array
    }
}

/// What is kept of a list.
#[derive(Clone, Debug)]
struct Kept {
    number: u64,
    /// What its items are of.
    of: OnceLock<Of>,
    /// Of constants.
    set: OnceLock<Set>,
}

impl Default for Kept {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            // Relaxed: that no two are the same is all.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            of: OnceLock::new(),
            set: OnceLock::new(),
        }
    }
}

/// Of lists that are the same the same may be kept.
impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What a list is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Constants,
    /// Constants and parameters.
    Given,
    /// It may be another for each row.
    Rows,
}

impl Of {
    fn one(expr: &Expr) -> Self {
        match expr {
            Expr::Const(_) => Self::Constants,
            Expr::Param(_) => Self::Given,
            Expr::Cast { operand, .. } if Self::one(operand) != Self::Rows => Self::Given,
            Expr::Call {
                function: Builtin::Catalog(CatalogFunction::MakeArray(_)),
                arguments,
            } => Self::all(arguments),
            _ => Self::Rows,
        }
    }

    fn all(items: &[Expr]) -> Self {
        let mut of = Self::Constants;
        for item in items {
            match Self::one(item) {
                Self::Constants => {}
                Self::Given => of = Self::Given,
                Self::Rows => return Self::Rows,
            }
        }
        of
    }
}

/// The values of a list.
#[derive(Clone, Debug)]
enum Set {
    /// The array is null.
    Null,
    /// They are compared one by one.
    Few,
    Many(Arc<RowSet>),
}

impl Set {
    /// Bytes that it takes in memory.
    fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Few => 0,
            Self::Many(set) => set.bytes(),
        }
    }
}

/// What a run keeps of the lists that come with its parameters.
#[derive(Debug)]
pub(crate) struct ListSets {
    /// `None`: it was asked for once.
    by_number: Mutex<HashMap<u64, Option<Set>>>,
    /// Bytes that the run has been charged for them, of its memory and of what it may keep in lists.
    charged: [AtomicUsize; 2],
    /// Bytes that they may take where no run is at hand, which others take of, too.
    room: Arc<AtomicUsize>,
    /// What they have taken of that.
    taken: AtomicUsize,
}

impl Default for ListSets {
    fn default() -> Self {
        Self::within(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl Drop for ListSets {
    fn drop(&mut self) {
        self.clear();
    }
}

impl ListSets {
    /// Of what is computed where no run is at hand, in so many bytes.
    pub fn within(room: Arc<AtomicUsize>) -> Self {
        Self {
            by_number: Mutex::default(),
            charged: [AtomicUsize::new(0), AtomicUsize::new(0)],
            room,
            taken: AtomicUsize::new(0),
        }
    }

    /// What the run has been charged.
    pub fn charged(&self) -> Room {
        // Relaxed, here and below: counts, and nothing that is read by them; who forgets what was kept is who runs.
        let [memory, listed] = &self.charged;
        Room {
            memory: memory.load(Ordering::Relaxed),
            listed: listed.load(Ordering::Relaxed),
        }
    }

    /// Other parameters are given (LS1), or the run is told that what it was charged is its own again.
    pub fn clear(&self) {
        self.by_number.lock().clear();
        for account in &self.charged {
            account.store(0, Ordering::Relaxed);
        }
        let taken = self.taken.swap(0, Ordering::Relaxed);
        self.room.fetch_add(taken, Ordering::Relaxed);
    }

    /// A set is kept.
    ///
    /// # Errors
    /// `53200`.
    fn charge(&self, bytes: usize, frame: &Frame<'_>) -> Result<()> {
        let [memory, listed] = &self.charged;
        if let Some(queries) = frame.queries {
            let account = match queries.keep_list(bytes)? {
                Some(Account::Memory) => memory,
                Some(Account::Lists) => listed,
                None => return Ok(()),
            };
            account.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        self.take(bytes)
    }

    /// The same where no run is at hand.
    ///
    /// # Errors
    /// `53200`.
    fn take(&self, bytes: usize) -> Result<()> {
        let left = |room: usize| room.checked_sub(bytes);
        let had = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        had.map_err(|_| out_of_memory())?;
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Kept {
    /// The values of a list, if they are kept, or are to be from now on.
    fn set(
        &self,
        of: impl FnOnce() -> Of,
        frame: &Frame<'_>,
        make: impl FnOnce() -> Result<Set>,
    ) -> Result<Option<Set>> {
        match self.of.get_or_init(of) {
            Of::Rows => Ok(None),
            Of::Constants => {
                if let Some(set) = self.set.get() {
                    return Ok(Some(set.clone()));
                }
                let set = make()?;
                Ok(Some(self.set.get_or_init(|| set).clone()))
            }
            Of::Given => {
                let Some(lists) = frame.env.lists() else {
                    return Ok(None);
                };
                let mut known = lists.by_number.lock();
                if let Some(Some(set)) = known.get(&self.number) {
                    return Ok(Some(set.clone()));
                }
                // Of one that is asked once there is nothing to be gained.
                if known.insert(self.number, None).is_none() {
                    return Ok(None);
                }
                drop(known);
                let set = make()?;
                let bytes = set.bytes();
                let mut known = lists.by_number.lock();
                // Another thread may have made it meanwhile: it is kept once, and charged once.
                if let Some(Some(set)) = known.get(&self.number) {
                    return Ok(Some(set.clone()));
                }
                lists.charge(bytes, frame)?;
                known.insert(self.number, Some(set.clone()));
                Ok(Some(set))
            }
        }
    }
}

/// Whether a value is in the list of an IN, or (`negated`) is not; `None` is null.
///
/// # Errors
/// Those of the functions in its items.
pub(super) fn in_list<'a>(
    value: ValueRef<'_>,
    list: &'a Listed,
    negated: bool,
    frame: &Frame<'a>,
) -> Result<Option<bool>> {
    if list.len() > FEW {
        let make = || {
            let mut set = RowSet::default();
            for item in list.iter() {
                set.add(&[item.eval(frame)?.as_ref()]);
            }
            Ok(Set::Many(Arc::new(set)))
        };
        if let Some(Set::Many(set)) = list.kept.set(|| Of::all(list), frame, make)? {
            return Ok(set.among(&[value], negated));
        }
    }
    if list.is_empty() {
        return Ok(Some(negated));
    }
    if value.is_null() {
        return Ok(None);
    }
    let mut null = false;
    for item in list.iter() {
        let item = item.eval(frame)?;
        let item = item.as_ref();
        if item.is_null() {
            null = true;
        } else if compare(value, item).is_eq() {
            return Ok(Some(!negated));
        }
    }
    Ok((!null).then_some(negated))
}

/// Whether a value is an element of an array, or (`negated`) is not; `None` is null.
///
/// # Errors
/// Those of the functions in the array's expression.
pub(super) fn in_array<'a>(
    value: ValueRef<'_>,
    array: &'a Searched,
    negated: bool,
    frame: &Frame<'a>,
) -> Result<Option<bool>> {
    let make = || {
        let found = array.array.eval(frame)?;
        let ValueRef::Array(items) = found.as_ref() else {
            return Ok(Set::Null);
        };
        if items.len() <= FEW {
            return Ok(Set::Few);
        }
        let mut set = RowSet::default();
        for item in items.items() {
            set.add(&[item.as_ref()]);
        }
        Ok(Set::Many(Arc::new(set)))
    };
    match array.kept.set(|| Of::one(&array.array), frame, make)? {
        Some(Set::Null) => return Ok(None),
        Some(Set::Many(set)) => return Ok(set.among(&[value], negated)),
        Some(Set::Few) | None => {}
    }
    let found: Out<'_> = array.array.eval(frame)?;
    let ValueRef::Array(items) = found.as_ref() else {
        return Ok(None);
    };
    let mut null = false;
    for item in items.items() {
        if value.is_null() || item.is_null() {
            null = true;
        } else if compare(value, item.as_ref()).is_eq() {
            return Ok(Some(!negated));
        }
    }
    Ok((!null).then_some(negated))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn lists_of_several_queries_take_of_one_room_and_give_it_back() {
        let room = Arc::new(AtomicUsize::new(100));
        let [first, second] = [(); 2].map(|()| ListSets::within(room.clone()));
        first.take(60).unwrap();
        assert_eq!(
            second.take(60).unwrap_err().sqlstate(),
            crate::sqlstate::OUT_OF_MEMORY
        );
        second.take(40).unwrap();
        first.clear();
        second.take(60).unwrap();
        drop(second);
        first.take(100).unwrap();
        assert!(first.take(1).is_err());
    }
}
