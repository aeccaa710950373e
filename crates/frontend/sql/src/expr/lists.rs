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
use crate::exec::out_of_memory;
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
    /// Bytes that the run has been charged for them.
    charged: AtomicUsize,
    /// Bytes that they may take where no run is at hand.
    room: AtomicUsize,
}

impl Default for ListSets {
    fn default() -> Self {
        Self::within(usize::MAX)
    }
}

impl ListSets {
    /// Of what is computed where no run is at hand, in so many bytes.
    pub fn within(bytes: usize) -> Self {
        Self {
            by_number: Mutex::default(),
            charged: AtomicUsize::new(0),
            room: AtomicUsize::new(bytes),
        }
    }

    /// Other parameters are given (LS1). Returns the bytes that the run was charged for what was kept.
    pub fn clear(&self) -> usize {
        self.by_number.lock().clear();
        // Relaxed: who gives other parameters is who runs.
        self.charged.swap(0, Ordering::Relaxed)
    }

    /// A set is kept.
    ///
    /// # Errors
    /// `53200`.
    fn charge(&self, bytes: usize, frame: &Frame<'_>) -> Result<()> {
        if let Some(queries) = frame.queries {
            queries.keep_list(bytes)?;
            self.charged.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        // Relaxed: a count, and nothing that is read by it.
        let left = |room: usize| room.checked_sub(bytes);
        let taken = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        taken.map(drop).map_err(|_| out_of_memory())
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
                lists.charge(set.bytes(), frame)?;
                let mut known = lists.by_number.lock();
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
