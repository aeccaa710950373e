//! Which call forwardings there must be: what was there, what clients inserted and deleted since.
//!
//! A number alone would let a lost insert and a lost delete pass for nothing; keys add up, too.
//!
//! Concurrency: a client counts by itself and adds to the ledger when it goes. Read after the clients' threads were joined.

use std::sync::atomic::{AtomicU64, Ordering};

/// A set of call forwardings, as far as it can be told by sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwardings {
    /// How many.
    pub count: u64,
    /// A sum over their keys, modulo 2^64.
    pub keys: u64,
}

impl Forwardings {
    /// Adds one.
    #[inline]
    pub fn add(&mut self, key: &[u8; 6]) {
        self.count = self.count.wrapping_add(1);
        self.keys = self.keys.wrapping_add(weight(key));
    }

    /// Takes one away, even of none: what a client has deleted may be more than what it has inserted.
    #[inline]
    pub fn remove(&mut self, key: &[u8; 6]) {
        self.count = self.count.wrapping_sub(1);
        self.keys = self.keys.wrapping_sub(weight(key));
    }
}

/// What a key adds: no few keys add up to what few others do.
#[inline]
fn weight(key: &[u8; 6]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(key);
    let mixed = u64::from_le_bytes(bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// What the clients of a run changed.
#[derive(Debug, Default)]
pub struct Ledger {
    count: AtomicU64,
    keys: AtomicU64,
}

impl Ledger {
    /// Adds what one client changed.
    pub(super) fn enter(&self, changed: Forwardings) {
        // Both wrap around.
        self.count.fetch_add(changed.count, Ordering::Relaxed);
        self.keys.fetch_add(changed.keys, Ordering::Relaxed);
    }

    /// What there must be, where `before` was there, once all clients are gone.
    pub fn after(&self, before: Forwardings) -> Forwardings {
        Forwardings {
            count: before
                .count
                .wrapping_add(self.count.load(Ordering::Relaxed)),
            keys: before.keys.wrapping_add(self.keys.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tatp::schema::forwarding_key;

    #[test]
    fn a_lost_insert_and_a_lost_delete_do_not_make_up_for_each_other() {
        let (ledger, mut there) = (Ledger::default(), Forwardings::default());
        let [one, two, three] = [1, 2, 3].map(|s| forwarding_key(s, 1, 8));
        there.add(&one);
        let before = there;
        let mut changed = Forwardings::default();
        changed.remove(&one);
        changed.add(&two);
        changed.add(&three);
        changed.remove(&three);
        ledger.enter(changed);
        assert_ne!(ledger.after(before), before);
        there.remove(&one);
        there.add(&two);
        assert_eq!(ledger.after(before), there);
    }
}
