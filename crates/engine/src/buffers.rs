//! Buffers of a transaction's operations, kept from one operation and one transaction of a slot to the next.

use std::cell::Cell;
use std::fmt;
use vellum_table::Buffers;

/// Operations inside each other whose buffers are kept: who is shown a row changes it before he is done with it. Deeper ones make their own.
const DEPTH: usize = 2;

/// Buffers that no operation uses now.
#[derive(Default)]
pub(crate) struct KeptBuffers([Cell<Option<Box<Buffers>>>; DEPTH]);

impl fmt::Debug for KeptBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptBuffers")
    }
}

impl KeptBuffers {
    /// Those of an operation that begins; new ones if all are in use.
    #[inline]
    pub fn take(&self) -> Box<Buffers> {
        let mut kept = self.0.iter();
        kept.find_map(Cell::take).unwrap_or_default()
    }

    /// An operation has ended. With more than are kept its buffers are dropped.
    #[inline]
    pub fn give(&self, buffers: Box<Buffers>) {
        let mut buffers = Some(buffers);
        for place in &self.0 {
            buffers = match (place.take(), buffers) {
                (None, ended) => {
                    place.set(ended);
                    return;
                }
                (kept, ended) => {
                    place.set(kept);
                    ended
                }
            };
        }
    }

    /// Gives back the memory of large values.
    #[inline]
    pub fn trim(&mut self) {
        for place in &mut self.0 {
            if let Some(buffers) = place.get_mut() {
                buffers.trim();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_inside_each_other_have_buffers_of_their_own_that_are_kept() {
        let kept = KeptBuffers::default();
        let address = |buffers: &Buffers| std::ptr::from_ref(buffers) as usize;
        let (outer, inner) = (kept.take(), kept.take());
        let mut first = [address(&outer), address(&inner)];
        assert_ne!(first[0], first[1]);
        kept.give(inner);
        kept.give(outer);
        kept.give(Box::default());
        let again = (kept.take(), kept.take());
        let mut second = [address(&again.0), address(&again.1)];
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!(first, second, "no new ones");
    }
}
