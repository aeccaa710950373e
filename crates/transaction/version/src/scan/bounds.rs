//! Where a scan begins and ends: bounds of keys, and the records of a leaf copy that lie between them.

use std::ops::{Bound, Range};
use vellum_btree::{LeafCopy, Seek};

/// Bounds of a scan, owned.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Where a forward scan that goes on at `from` reads its leaf.
pub(super) fn seek_forward(from: Bound<&[u8]>) -> Seek<'_> {
    match from {
        Bound::Unbounded => Seek::First,
        Bound::Included(key) => Seek::AtOrAfter(key),
        Bound::Excluded(key) => Seek::After(key),
    }
}

/// Where a backward scan that goes on at `from` reads its leaf.
pub(super) fn seek_backward(from: Bound<&[u8]>) -> Seek<'_> {
    match from {
        Bound::Unbounded => Seek::Last,
        Bound::Included(key) => Seek::AtOrBefore(key),
        Bound::Excluded(key) => Seek::Before(key),
    }
}

/// The key of a bound; `None` if there is none.
pub(super) fn key_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
    }
}

/// The records of a leaf copy that lie in the range: two searches a leaf instead of two comparisons a row.
pub(super) fn inside(range: &KeyRange, leaf: &LeafCopy) -> Range<usize> {
    let count = leaf.len();
    let outside = |key: &[u8]| {
        let is_above = leaf.upper_fence().is_some_and(|fence| fence <= key);
        if is_above { count } else { 0 }
    };
    let start = match &range.0 {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => {
            if leaf.covers(key) {
                let (index, found) = leaf.find(key);
                let skip = found && matches!(range.0, Bound::Excluded(_));
                index + usize::from(skip)
            } else {
                outside(key)
            }
        }
    };
    let end = match &range.1 {
        Bound::Unbounded => count,
        Bound::Included(key) | Bound::Excluded(key) => {
            if leaf.covers(key) {
                let (index, found) = leaf.find(key);
                let keep = found && matches!(range.1, Bound::Included(_));
                index + usize::from(keep)
            } else {
                outside(key)
            }
        }
    };
    start.min(end)..end
}

/// True if no key at or above `fence` is inside the end of the range.
pub(super) fn beyond_end(end: &Bound<Vec<u8>>, fence: &[u8]) -> bool {
    match end {
        Bound::Unbounded => false,
        Bound::Included(key) => key.as_slice() < fence,
        Bound::Excluded(key) => key.as_slice() <= fence,
    }
}

/// True if no key below `fence` is inside the start of the range.
pub(super) fn beyond_start(start: &Bound<Vec<u8>>, fence: &[u8]) -> bool {
    match start {
        Bound::Unbounded => false,
        Bound::Included(key) | Bound::Excluded(key) => key.as_slice() >= fence,
    }
}

pub(super) fn below_start(start: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match start {
        Bound::Unbounded => false,
        Bound::Included(start) | Bound::Excluded(start) => key < start.as_slice(),
    }
}

pub(super) fn above_end(end: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match end {
        Bound::Unbounded => false,
        Bound::Included(end) | Bound::Excluded(end) => key > end.as_slice(),
    }
}
