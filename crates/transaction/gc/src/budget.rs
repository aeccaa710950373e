//! How much one step of cleaning may do, so that no single commit pays for a long snapshot's garbage.

/// Work that one cleaning step may still do: items looked at, bytes given back, and bytes of pages given back, each of which may have to be read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    items: u32,
    bytes: u64,
    pages: u64,
    lazy: bool,
    far: bool,
}

impl Budget {
    /// No bound: for maintenance that nobody waits for.
    pub const UNBOUNDED: Self = Self {
        items: u32::MAX,
        bytes: u64::MAX,
        pages: u64::MAX,
        lazy: false,
        far: true,
    };

    /// At most `items` looked at, `bytes` given back, and as many bytes of pages; the last item may go over `bytes`.
    pub const fn new(items: u32, bytes: u64) -> Self {
        Self {
            items,
            bytes,
            pages: bytes,
            lazy: false,
            far: true,
        }
    }

    /// The same with at most `bytes` of pages of large values and dropped trees; the last of them may go over that.
    pub const fn with_pages(self, bytes: u64) -> Self {
        Self {
            pages: bytes,
            ..self
        }
    }

    /// The same for who comes again soon: what is cheaper to remove together with more of it may stay.
    pub const fn lazy(self) -> Self {
        Self { lazy: true, ..self }
    }

    /// The same without the one look that may take some milliseconds: another slot had it in this step.
    pub const fn without_far_look(self) -> Self {
        Self { far: false, ..self }
    }

    /// True if the one long look was not taken, and may be: who comes again soon takes none.
    pub const fn has_far_look(&self) -> bool {
        self.far && !self.lazy
    }

    /// Takes the one long look; false if there is none, or nothing is left.
    pub const fn take_far_look(&mut self) -> bool {
        let may = self.has_far_look() && !self.is_spent();
        self.far &= !may;
        may
    }

    /// Takes `items` that were looked at.
    pub const fn charge(&mut self, items: u32) {
        if self.items != u32::MAX {
            self.items = self.items.saturating_sub(items);
        }
    }

    /// True if some may stay ([`Budget::lazy`]).
    #[inline]
    pub const fn is_lazy(&self) -> bool {
        self.lazy
    }

    /// Takes one item of `bytes` from the budget; false, and nothing taken, if it is spent.
    #[inline]
    pub fn spend(&mut self, bytes: u64) -> bool {
        if self.is_spent() {
            return false;
        }
        if self.items != u32::MAX {
            self.items -= 1;
        }
        if self.bytes != u64::MAX {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        true
    }

    /// Takes `bytes` of pages that are given back next from the budget; false, and nothing taken, if there is none left for pages.
    pub fn spend_pages(&mut self, bytes: u64) -> bool {
        if self.pages == 0 {
            return false;
        }
        if self.pages != u64::MAX {
            self.pages = self.pages.saturating_sub(bytes);
        }
        true
    }

    /// Takes a quarter of what is left out, for what comes behind: so that it has its turn. To be [given back](Budget::give_back).
    pub fn set_aside(&mut self) -> Self {
        let mut aside = *self;
        if self.items != u32::MAX {
            aside.items = self.items / 4;
            self.items -= aside.items;
        }
        if self.bytes != u64::MAX {
            aside.bytes = self.bytes / 4;
            self.bytes -= aside.bytes;
        }
        aside
    }

    /// Puts back what was [set aside](Budget::set_aside).
    pub fn give_back(&mut self, aside: Self) {
        self.items = self.items.saturating_add(aside.items);
        self.bytes = self.bytes.saturating_add(aside.bytes);
    }

    /// True if the step is over.
    #[inline]
    pub const fn is_spent(&self) -> bool {
        self.items == 0 || self.bytes == 0
    }

    /// Items that may still be looked at.
    pub const fn items(&self) -> u32 {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_with_items_or_bytes_whichever_comes_first() {
        let mut by_items = Budget::new(2, 1000);
        assert!(by_items.spend(1) && by_items.spend(1) && !by_items.spend(1));
        let mut by_bytes = Budget::new(100, 10);
        assert!(by_bytes.spend(9) && by_bytes.spend(9) && !by_bytes.spend(1));
        assert_eq!(by_bytes.items(), 98);
        let mut by_pages = Budget::new(100, 1000).with_pages(20);
        assert!(by_pages.spend(500) && by_pages.spend_pages(19) && by_pages.spend_pages(8));
        assert!(!by_pages.spend_pages(1) && !by_pages.is_spent() && by_pages.spend(1));
        assert_eq!(by_pages, Budget::new(98, 499).with_pages(0));
        let mut shared = Budget::new(100, 1000);
        let aside = shared.set_aside();
        assert_eq!((shared.items(), aside.items()), (75, 25));
        while shared.spend(1) {}
        shared.give_back(aside);
        assert_eq!(shared, Budget::new(25, 925).with_pages(1000));
        let mut unbounded = Budget::UNBOUNDED;
        let aside = unbounded.set_aside();
        assert!(aside == unbounded && unbounded == Budget::UNBOUNDED);
        unbounded.give_back(aside);
        let mut far = Budget::new(100, 1000);
        assert!(far.take_far_look() && !far.take_far_look() && !far.has_far_look());
        far.charge(99);
        assert_eq!(far, Budget::new(1, 1000).without_far_look());
        assert!(!Budget::new(100, 1000).lazy().take_far_look());
        assert!((0..1000).all(|_| unbounded.spend(u64::MAX) && unbounded.spend_pages(u64::MAX)));
    }
}
