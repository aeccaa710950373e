//! The set of slots that a round visits, one bit each.
//!
//! Concurrency: a slot's bit is changed under the slot's latch, read by the round leader without.
//! The order against the published M is made by the fences of `Core::activate` and
//! `Core::visit_all`.

use vellum_base::SlotId;
use vellum_sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct ActiveSlots {
    words: Box<[AtomicU64]>,
}

impl ActiveSlots {
    pub fn new(slots: u16) -> Self {
        let words = usize::from(slots).div_ceil(64);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn word(&self, slot: SlotId) -> (&AtomicU64, u64) {
        (&self.words[usize::from(slot.0) / 64], 1 << (slot.0 % 64))
    }

    pub fn set(&self, slot: SlotId) {
        let (word, bit) = self.word(slot);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    pub fn clear(&self, slot: SlotId) {
        let (word, bit) = self.word(slot);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Calls `visit` for each active slot, in order. Slots that change meanwhile may be missed or
    /// met.
    pub fn for_each(&self, mut visit: impl FnMut(SlotId)) {
        for (index, word) in self.words.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                visit(SlotId((index * 64) as u16 + bits.trailing_zeros() as u16));
                bits &= bits - 1;
            }
        }
    }
}
