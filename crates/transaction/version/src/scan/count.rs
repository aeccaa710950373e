//! Counting by leaves: the rows of a copy at hand that need no chain are counted in one go, without their keys.
//!
//! Concurrency: as [`Scan::step_at_hand`]: nothing but the private copy is looked at, and not for who may be withdrawn at
//! any moment.

use super::{Place, Scan};
use crate::read::{Resolved, View, visible_as_is};

impl Scan {
    /// Moves forward over the records of the copy at hand that alone say whether the view sees a row there, up to the
    /// first that takes more than that; stands on the last of them, and returns how many rows it sees. The
    /// next step goes on behind it.
    pub fn count_at_hand(&mut self, view: &View<'_>) -> u64 {
        let Place::On(on) = self.place else {
            return 0;
        };
        if self.buried.is_on() {
            return 0;
        }
        let mut seen = 0;
        let mut last = on;
        for index in on + 1..self.inside.end {
            match visible_as_is(view, self.leaf.payload(index)) {
                Some(Resolved::Visible(_)) => seen += 1,
                Some(Resolved::Absent) => {}
                Some(Resolved::Changed) | None => break,
            }
            last = index;
        }
        if last != on {
            self.leaf.key(last, &mut self.key);
            self.place = Place::On(last);
        }
        seen
    }
}
