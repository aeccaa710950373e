//! The ring buffer of one slot: the newest bytes of the slot's log, addressed by lsn.
//!
//! Layout: byte `lsn` lies at `lsn % capacity`. Old bytes stay readable until they are overwritten.
//!
//! Invariants:
//! - I1 `flushed <= end <= flushed + capacity`: bytes that are not in a file are never overwritten.
//! - I2 Bytes in `start..end` are readable.
//!
//! Concurrency: under the slot's latch.

use vellum_base::Lsn;
use vellum_base::planted::{self, Bug};

/// Bytes of a slot's log that are in memory.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    end: u64,
    flushed: u64,
    /// The oldest readable byte; above `end - capacity` after the ring grew.
    oldest: u64,
}

impl Ring {
    /// Bytes that the ring holds at most; zero before its first use.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that may be appended now.
    #[inline]
    pub fn free(&self) -> usize {
        self.bytes.len() - (self.end - self.flushed) as usize
    }

    /// The lsn after the last byte.
    #[inline]
    pub fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// The lsn up to which bytes are in files, though perhaps not durable.
    #[inline]
    pub fn flushed(&self) -> Lsn {
        Lsn(self.flushed)
    }

    /// The lsn of the oldest byte that can be read here.
    pub fn start(&self) -> Lsn {
        Lsn(self
            .oldest
            .max(self.end.saturating_sub(self.bytes.len() as u64)))
    }

    /// Gives the ring at least `capacity` bytes (a power of two), keeping what is not flushed.
    pub fn grow(&mut self, capacity: usize) {
        debug_assert!(capacity.is_power_of_two());
        if capacity <= self.bytes.len() {
            return;
        }
        let keep = self.flushed;
        let mut bytes = vec![0; capacity].into_boxed_slice();
        let mask = capacity as u64 - 1;
        let parts = if planted::has(Bug::RingCutShort) {
            1
        } else {
            2
        };
        for (at, part) in self.parts(keep, self.end).take(parts) {
            // A part of the old ring may wrap in the new one.
            for (i, byte) in part.iter().enumerate() {
                bytes[((at + i as u64) & mask) as usize] = *byte;
            }
        }
        self.bytes = bytes;
        self.oldest = keep;
    }

    /// Gives back what is more than `capacity`. All is in files, and nobody reads here what was.
    pub fn rest(&mut self, capacity: usize) {
        debug_assert_eq!(self.flushed, self.end);
        if self.bytes.len() > capacity {
            self.bytes = vec![0; capacity].into_boxed_slice();
            self.oldest = self.end;
        }
    }

    /// Appends bytes; there is room (`free`).
    #[inline]
    pub fn put(&mut self, data: &[u8]) {
        debug_assert!(data.len() <= self.free(), "space was not reserved");
        let at = (self.end & (self.bytes.len() as u64 - 1)) as usize;
        let room = self.bytes.len() - at;
        if data.len() <= room {
            self.bytes[at..at + data.len()].copy_from_slice(data);
        } else {
            let (head, tail) = data.split_at(room);
            self.bytes[at..].copy_from_slice(head);
            self.bytes[..tail.len()].copy_from_slice(tail);
        }
        self.end += data.len() as u64;
    }

    /// Appends bytes that stand in several places, `length` together; there is room (`free`). In groups, as their owners have them: a chain of
    /// iterators asks itself at each part where it stands.
    #[inline]
    pub fn put_all(&mut self, length: usize, groups: [&[&[u8]]; 3]) {
        debug_assert!(length <= self.free(), "space was not reserved");
        let at = (self.end & (self.bytes.len() as u64 - 1)) as usize;
        let Some(mut to) = self.bytes.get_mut(at..at + length) else {
            // Around the end of the ring.
            return groups
                .iter()
                .copied()
                .flatten()
                .for_each(|part| self.put(part));
        };
        for group in groups {
            for part in group {
                let (here, behind) = to.split_at_mut(part.len());
                here.copy_from_slice(part);
                to = behind;
            }
        }
        debug_assert!(to.is_empty(), "as long as was said");
        self.end += length as u64;
    }

    /// The one or two runs that hold `from..to`, with the lsn of each.
    fn parts(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let length = (to - from) as usize;
        let (first, second): (&[u8], &[u8]) = if length == 0 {
            (&[], &[])
        } else {
            let at = (from & (self.bytes.len() as u64 - 1)) as usize;
            let room = self.bytes.len() - at;
            if length <= room {
                (&self.bytes[at..at + length], &[])
            } else {
                (&self.bytes[at..], &self.bytes[..length - room])
            }
        };
        let middle = from + first.len() as u64;
        [(from, first), (middle, second)]
            .into_iter()
            .filter(|(_, part)| !part.is_empty())
    }

    /// Copies the bytes from `from` on into `out`.
    pub fn copy_to(&self, from: Lsn, out: &mut [u8]) {
        let to = from.0 + out.len() as u64;
        assert!(self.start() <= from && to <= self.end, "outside the ring");
        for (at, part) in self.parts(from.0, to) {
            let at = (at - from.0) as usize;
            out[at..at + part.len()].copy_from_slice(part);
        }
    }

    /// Appends the bytes `from..to` to `out`.
    pub fn copy_out(&self, from: Lsn, to: Lsn, out: &mut Vec<u8>) {
        assert!(
            self.start() <= from && from <= to && to <= self.end(),
            "outside the ring"
        );
        for (_, part) in self.parts(from.0, to.0) {
            out.extend_from_slice(part);
        }
    }

    /// Notes that everything below `to` is written to files.
    pub fn set_flushed(&mut self, to: Lsn) {
        debug_assert!(self.flushed <= to.0 && to.0 <= self.end);
        self.flushed = to.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_wrapping_and_growing() {
        let mut ring = Ring::default();
        ring.grow(16);
        let mut model = Vec::new();
        for step in 0..200_u32 {
            let data = vec![step as u8; (step % 7) as usize + 1];
            if ring.free() < data.len() {
                ring.set_flushed(ring.end());
            }
            ring.put(&data);
            model.extend_from_slice(&data);
            if step == 100 {
                ring.grow(64);
            }
            if step == 150 {
                ring.set_flushed(ring.end());
                ring.rest(32);
                assert_eq!((ring.capacity(), ring.start()), (32, ring.end()));
            }
            let mut out = Vec::new();
            ring.copy_out(ring.start(), ring.end(), &mut out);
            assert_eq!(out, model[ring.start().0 as usize..]);
            assert!(ring.start() <= ring.flushed());
        }
    }
}
