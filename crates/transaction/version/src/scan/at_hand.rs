//! Steps inside the copy at hand, which need nothing else: one row at a time, all of them, or their count.
//!
//! Concurrency: nothing but the private copy is looked at, so these need no counted operation: what was buried since is in
//! the copy. Not for who may be withdrawn at any moment: old versions in a row are found by what the view does *not* see,
//! which is known of a published snapshot only (R4).

use super::{Body, Place, Scan};
use crate::fat;
use crate::read::{Resolved, View, Visible, visible_as_is};
use std::ops::ControlFlow;

impl Scan {
    /// Moves to the neighbouring record of the copy at hand, if that alone says what the view sees there; false, and the
    /// scan stands where it stood, if it takes more than that.
    #[inline]
    pub fn step_at_hand(&mut self, view: &View<'_>, forward: bool) -> bool {
        self.each_at_hand(view, forward, |_, _| ControlFlow::Break(()))
            .is_break()
    }

    /// Moves over the records of the copy at hand, up to the first that does not alone say what the view sees there, and
    /// hands key and body of each row that the view sees to `each`, until that breaks. The scan stands on the row that was
    /// handed over last (while `each` runs: on that one), or where it stood if there was none.
    ///
    /// What a row costs is this loop: the parts of the page that all rows share are looked up once, and of most rows one
    /// byte says all.
    #[inline]
    pub fn each_at_hand<B>(
        &mut self,
        view: &View<'_>,
        forward: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Place::On(mut index) = self.place else {
            return ControlFlow::Continue(());
        };
        if self.buried.is_on() || !self.leaf.is_whole() {
            return ControlFlow::Continue(());
        }
        let records = self.leaf.records();
        let prefix = records.prefix();
        loop {
            index = if forward {
                index + 1
            } else {
                index.wrapping_sub(1)
            };
            if !self.inside.contains(&index) {
                return ControlFlow::Continue(());
            }
            let (suffix, row) = records.get(index);
            let body = match visible_as_is(view, row) {
                Some(Resolved::Visible(Visible {
                    overflow: false,
                    start,
                    end,
                })) => {
                    self.body = Body::Leaf(index, start, end);
                    &row[start..end]
                }
                Some(Resolved::Absent) => continue,
                Some(_) => return ControlFlow::Continue(()),
                None => match fat::at_hand(view, row, &mut self.row) {
                    Some(Resolved::Visible(Visible {
                        overflow: false,
                        start,
                        ..
                    })) => {
                        self.body = Body::Buffer(start);
                        &self.row[start..]
                    }
                    Some(Resolved::Absent) => continue,
                    _ => return ControlFlow::Continue(()),
                },
            };
            self.overflow = false;
            // It is a key of this copy so far.
            debug_assert!(self.key.starts_with(prefix));
            self.key.truncate(prefix.len());
            push(&mut self.key, suffix);
            self.place = Place::On(index);
            each(&self.key, body)?;
        }
    }

    /// Moves forward over the records of the copy at hand that alone say whether the view sees a row there, up to the
    /// first that takes more than that; stands on the last of them, and returns how many rows it sees. The
    /// next step goes on behind it.
    pub fn count_at_hand(&mut self, view: &View<'_>) -> u64 {
        let Place::On(on) = self.place else {
            return 0;
        };
        if self.buried.is_on() || !self.leaf.is_whole() {
            return 0;
        }
        let records = self.leaf.records();
        let mut seen = 0;
        let mut last = on;
        for index in on + 1..self.inside.end {
            match visible_as_is(view, records.get(index).1) {
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

/// Appends the end of a key. Mostly that is short, for the records of a leaf have much in common: then without a call, in one piece.
#[inline(always)]
fn push(key: &mut Vec<u8>, suffix: &[u8]) {
    let length = suffix.len();
    let (Some(first), Some(last)) = (suffix.first(), suffix.last()) else {
        return;
    };
    // Two pieces that overlap, if need be.
    let word = match (suffix.first_chunk(), suffix.last_chunk()) {
        (Some(first), Some(last)) if length <= 8 => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            u64::from(first) | u64::from(last) << (8 * (length - 4))
        }
        (Some(_), _) => return key.extend_from_slice(suffix),
        _ => {
            let middle = suffix[length / 2];
            u64::from(*first)
                | u64::from(middle) << (8 * (length / 2))
                | u64::from(*last) << (8 * (length - 1))
        }
    };
    let end = key.len() + length;
    key.extend_from_slice(&word.to_le_bytes());
    key.truncate(end);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::push;

    #[test]
    fn ends_of_every_length_are_appended_as_they_are() {
        for length in 0..20_u8 {
            let suffix: Vec<u8> = (0..length).map(|at| 255 - 11 * at).collect();
            let mut key = b"prefix".to_vec();
            push(&mut key, &suffix);
            assert_eq!(key, [b"prefix", &suffix[..]].concat());
        }
    }
}
