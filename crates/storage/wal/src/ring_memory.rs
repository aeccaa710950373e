//! How much memory the rings of all slots take together: the slots of a server that writes through hundreds of them must stay
//! within what a database may take beside its pool.
//!
//! Invariants:
//! - I1 `bytes` is the sum of all rings' capacities: whoever changes one does it here.
//! - I2 Above [`FIRST_RINGS_MAX`] rings of the first size no ring gets more than its writer's next reservation needs, or
//!   [`LEAST_BYTES`]. So the sum is at most that many rings of the first size, and for each further slot that has unflushed
//!   bytes the largest reservation, rounded up.
//! - I3 A slot that rests keeps a ring of the first size while all take less than half of that, and none otherwise: rings
//!   that nobody writes to are in nobody's way.
//!
//! Concurrency: one counter, relaxed. Two slots that grow at once may both find room for one: a ring or two too much.

use crate::ring::Ring;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// How many rings of the first size all slots may have together.
const FIRST_RINGS_MAX: u64 = 128;
/// How many times its first size a ring gets before its writer waits for a round.
const GROWTH: usize = 4;
/// The least that a ring has.
const LEAST_BYTES: usize = 16 << 10;

/// The memory of all rings.
#[derive(Debug)]
pub(crate) struct RingMemory {
    /// The first size of a ring.
    first: usize,
    bytes: AtomicU64,
}

impl RingMemory {
    pub fn new(first: usize) -> Self {
        Self {
            first,
            bytes: AtomicU64::new(0),
        }
    }

    /// Bytes of all rings.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn max(&self) -> u64 {
        FIRST_RINGS_MAX * self.first as u64
    }

    fn has_room_for(&self, more: usize) -> bool {
        self.bytes() + more as u64 <= self.max()
    }

    /// Gives the ring at least what a reservation of `bytes` needs.
    pub fn provide(&self, ring: &mut Ring, bytes: usize) {
        let first = if self.has_room_for(self.first) {
            self.first
        } else {
            self.first.min(LEAST_BYTES)
        };
        self.resize(ring, bytes.next_power_of_two().max(first));
    }

    /// Doubles the ring of who writes faster than rounds go to the disk. False where it is large enough, or others need the
    /// memory: its writer waits for a round then.
    pub fn double(&self, ring: &mut Ring) -> bool {
        let capacity = ring.capacity();
        let doubles = 2 * capacity <= GROWTH * self.first && self.has_room_for(capacity);
        if doubles {
            self.resize(ring, 2 * capacity);
        }
        doubles
    }

    /// Takes from the ring of a slot that rests what it does not need (I3).
    pub fn rest(&self, ring: &mut Ring) {
        let keeps = if self.bytes() <= self.max() / 2 {
            self.first
        } else {
            0
        };
        let before = ring.capacity();
        ring.rest(keeps);
        self.bytes
            .fetch_sub((before - ring.capacity()) as u64, Ordering::Relaxed);
    }

    fn resize(&self, ring: &mut Ring, capacity: usize) {
        let before = ring.capacity();
        ring.grow(capacity);
        self.bytes
            .fetch_add((ring.capacity() - before) as u64, Ordering::Relaxed);
    }
}
