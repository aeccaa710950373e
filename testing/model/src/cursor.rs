//! Where a cursor of the model stands and what it sees.
//!
//! A cursor stands on the row that it returned last: `next` goes to the first row above it, `prev`
//! to the last below it. A new cursor stands before its range when it is asked forward first and
//! behind it when it is asked backward first; at an end it stays until it is asked the other way.
//!
//! Invariants: I1 What a cursor sees is fixed when it is opened: the snapshot of its statement and
//! its transaction's writes from before. Only rollback to a savepoint takes something away.

use crate::rows::View;
use crate::step::{Key, KeyRange};
use std::ops::Bound;

/// The place of a cursor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Not asked yet.
    Fresh,
    /// The gap below everything in the range.
    Start,
    /// The gap above everything in the range.
    End,
    /// On a row that was returned last: next is the first above, prev the last below.
    On(Key),
    /// The gap right below this key.
    Before(Key),
}

/// An open cursor.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// Number of its table.
    pub table: u32,
    /// Its range.
    pub range: KeyRange,
    /// What it sees.
    pub view: View,
    /// Where it stands.
    pub place: Place,
}

impl Cursor {
    /// The part of the range that lies ahead, going forward; `None` if nothing does.
    pub fn ahead(&self) -> Option<KeyRange> {
        let low = match &self.place {
            Place::Fresh | Place::Start => return Some(self.range.clone()),
            Place::End => return None,
            Place::On(key) => Bound::Excluded(key.clone()),
            Place::Before(key) => Bound::Included(key.clone()),
        };
        Some((higher_start(&low, &self.range.0), self.range.1.clone()))
    }

    /// The part of the range that lies behind, going backward; `None` if nothing does.
    pub fn behind(&self) -> Option<KeyRange> {
        let high = match &self.place {
            Place::Fresh | Place::End => return Some(self.range.clone()),
            Place::Start => return None,
            Place::On(key) | Place::Before(key) => Bound::Excluded(key.clone()),
        };
        Some((self.range.0.clone(), lower_end(&high, &self.range.1)))
    }
}

fn higher_start(a: &Bound<Key>, b: &Bound<Key>) -> Bound<Key> {
    match (a, b) {
        (Bound::Unbounded, other) | (other, Bound::Unbounded) => other.clone(),
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let a_wins = x > y || (x == y && matches!(a, Bound::Excluded(_)));
            if a_wins { a.clone() } else { b.clone() }
        }
    }
}

fn lower_end(a: &Bound<Key>, b: &Bound<Key>) -> Bound<Key> {
    match (a, b) {
        (Bound::Unbounded, other) | (other, Bound::Unbounded) => other.clone(),
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let a_wins = x < y || (x == y && matches!(a, Bound::Excluded(_)));
            if a_wins { a.clone() } else { b.clone() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key(text.as_bytes().to_vec())
    }

    fn cursor(low: &str, high: &str, place: Place) -> Cursor {
        Cursor {
            table: 1,
            range: (Bound::Included(key(low)), Bound::Excluded(key(high))),
            view: View {
                reader: 1,
                snapshot: 0,
                command: 0,
            },
            place,
        }
    }

    #[test]
    fn what_lies_ahead_and_behind_is_cut_at_the_place() {
        let on = cursor("b", "y", Place::On(key("m")));
        assert_eq!(
            on.ahead(),
            Some((Bound::Excluded(key("m")), Bound::Excluded(key("y"))))
        );
        assert_eq!(
            on.behind(),
            Some((Bound::Included(key("b")), Bound::Excluded(key("m"))))
        );
        let before = cursor("b", "y", Place::Before(key("m")));
        assert_eq!(
            before.ahead(),
            Some((Bound::Included(key("m")), Bound::Excluded(key("y"))))
        );
    }

    #[test]
    fn a_place_outside_the_range_does_not_widen_it() {
        let low = cursor("b", "y", Place::Before(key("a")));
        assert_eq!(
            low.ahead(),
            Some((Bound::Included(key("b")), Bound::Excluded(key("y"))))
        );
        let high = cursor("b", "y", Place::Before(key("z")));
        assert_eq!(
            high.behind(),
            Some((Bound::Included(key("b")), Bound::Excluded(key("y"))))
        );
    }

    #[test]
    fn the_ends_hold_nothing_in_their_direction() {
        assert_eq!(cursor("b", "y", Place::End).ahead(), None);
        assert_eq!(cursor("b", "y", Place::Start).behind(), None);
    }
}
