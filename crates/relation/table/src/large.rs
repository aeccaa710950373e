//! Values outside their rows: changed in memory with one copy, or read by chunks with none.
//!
//! Invariants:
//! - T7 A value is in memory once at most, and its memory is asked for: `MemoryLimit`, and nothing is changed, where there is none.

use crate::error::{Result, TableError};
use crate::rows::{Rows, When, check_ranges};
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use vellum_base::Timestamp;
use vellum_version::large::Stretch;
use vellum_version::write::inline_body_max;

impl Rows<'_> {
    /// Looks a key up as of `snapshot` and `command` ([`Rows::get_as_of`]) and hands its value to `each`, a chunk at a time (private
    /// bytes, no latch held, not counted), until it breaks. `rollbacks` counts the transaction's: `each` may roll back to before
    /// the value was written, and its pages are free then.
    ///
    /// # Errors
    /// Storage errors; `ValueGone` after such a rollback.
    pub fn get_chunks<B>(
        &mut self,
        (snapshot, command): (Timestamp, u32),
        key: &[u8],
        rollbacks: impl Fn() -> u64,
        mut each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<Option<ControlFlow<B>>> {
        let Some(found) = self.find((snapshot, command), key)? else {
            return Ok(None);
        };
        let row = &self.buffers.row[found.start..];
        if !found.overflow {
            self.operation.pause();
            let all = match row {
                [] => ControlFlow::Continue(()),
                bytes => each(bytes),
            };
            return Ok(Some(all));
        }
        let chain = row.to_vec();
        let store = self.store;
        let mut reader = store.chain_reader(&chain)?;
        let mut seen = rollbacks();
        while let Some(chunk) = reader.next_chunk()? {
            self.operation.pause();
            if let ControlFlow::Break(with) = each(chunk) {
                return Ok(Some(ControlFlow::Break(with)));
            }
            self.operation.resume()?;
            if rollbacks() != seen {
                seen = rollbacks();
                // What was rolled back may have made the tree: its pages are gone.
                if self.shape.is_void() {
                    return Err(TableError::ValueGone);
                }
                // Commands are not drawn twice: what was written since is not taken for it.
                if !self.holds((snapshot, command), key, &chain)? {
                    return Err(TableError::ValueGone);
                }
            }
        }
        Ok(Some(ControlFlow::Continue(())))
    }

    /// Whether the version at a key refers to this chain.
    fn holds(&mut self, as_of: (Timestamp, u32), key: &[u8], chain: &[u8]) -> Result<bool> {
        let found = self.find(as_of, key)?;
        let row = &self.buffers.row;
        Ok(found.is_some_and(|found| found.overflow && row[found.start..] == *chain))
    }

    /// Replaces the large value whose reference is in the row buffer by a new chain, if it is still the newest one;
    /// false if it is not. A chain is immutable, and this one is not freed while the statement's snapshot sees it:
    /// the same reference is the same value.
    pub(crate) fn update_large(
        &mut self,
        key: &[u8],
        ranges: &[Range<usize>],
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool> {
        let chain = self.buffers.row.clone();
        let mut value = std::mem::take(&mut self.buffers.work);
        self.store
            .read_chain_into(&mut self.operation, &chain, &mut value)?;
        check_ranges(ranges, value.len())?;
        self.run_user_code(key, || change(&mut value))?;
        // User code may have rolled back to before the chain was made, whose pages are free then.
        let transaction = self.transaction;
        let as_of = (transaction.statement(), transaction.commands_seen());
        let done = self.holds(as_of, key, &chain)? && {
            self.restore(ranges, &chain, &mut value)?;
            let inline = value.len() <= inline_body_max(self.page_size(), key.len());
            let when = When::Chain(&chain);
            let written = self.atomically(|rows| rows.put_all(key, &value, inline, when))?;
            written.changed
        };
        self.buffers.work = value;
        Ok(done)
    }

    /// Takes back what user code wrote outside the ranges that it declared: reads the chain again, which costs less than a second copy.
    fn restore(&mut self, ranges: &[Range<usize>], chain: &[u8], value: &mut [u8]) -> Result<()> {
        let ranges = ascending(ranges);
        let mut reader = self.store.chain_reader(chain)?;
        let mut stretch = Stretch::begin(&mut self.operation);
        let mut at = 0;
        while let Some(chunk) = reader.next_chunk()? {
            restore_outside(&ranges, at, chunk, value);
            at += chunk.len();
            stretch.further()?;
        }
        Ok(())
    }
}

/// Takes back what user code wrote outside the ranges that it declared.
#[inline]
pub(crate) fn keep_only(ranges: &[Range<usize>], old: &[u8], new: &mut [u8]) {
    restore_outside(&ascending(ranges), 0, old, new);
}

/// The same bytes as ranges of which none begins before another's end, ascending.
#[inline]
fn ascending(ranges: &[Range<usize>]) -> Cow<'_, [Range<usize>]> {
    if ranges.windows(2).all(|pair| pair[0].end <= pair[1].start) {
        return Cow::Borrowed(ranges);
    }
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    sorted.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    Cow::Owned(sorted)
}

/// Puts `old`, the old bytes from `start` on, back into `new` (all bytes of the value) outside of `ranges`, which ascend.
#[inline]
fn restore_outside(ranges: &[Range<usize>], start: usize, old: &[u8], new: &mut [u8]) {
    let end = start + old.len();
    let mut at = start;
    let mut put_back = |from: usize, to: usize| {
        new[from..to].copy_from_slice(&old[from - start..to - start]);
    };
    for range in &ranges[ranges.partition_point(|range| range.end <= start)..] {
        if range.start >= end {
            break;
        }
        if range.start > at {
            put_back(at, range.start);
        }
        at = range.end;
    }
    if at < end {
        put_back(at, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_outside_the_ranges_is_taken_back_however_the_value_is_cut() {
        let lists: [&[Range<usize>]; 8] = [
            &[],
            &[0..20],
            &[3..3],
            &[0..1, 1..2, 19..20],
            &[5..9, 2..6, 3..4],
            &[7..7, 4..12],
            &[10..15, 0..5],
            &[6..6, 6..7, 13..13],
        ];
        for ranges in lists {
            for step in 1..=20 {
                let old: Vec<u8> = (0..20).collect();
                let mut new = vec![99; 20];
                let sorted = ascending(ranges);
                for (number, chunk) in old.chunks(step).enumerate() {
                    restore_outside(&sorted, number * step, chunk, &mut new);
                }
                for (at, byte) in new.iter().enumerate() {
                    let inside = ranges.iter().any(|range| range.contains(&at));
                    let right = if inside { 99 } else { old[at] };
                    assert_eq!(*byte, right, "{ranges:?} by {step} at {at}");
                }
            }
        }
    }
}
