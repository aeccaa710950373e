//! The slot that this thread leased last: begin tries it first, because its lines are in this core's
//! cache. A hint: any number is correct, also one of another database.

#[cfg(not(any(loom, shuttle)))]
mod imp {
    use std::cell::Cell;

    thread_local! {
        static LAST: Cell<u16> = const { Cell::new(u16::MAX) };
    }

    #[inline]
    pub(crate) fn get() -> u16 {
        LAST.try_with(Cell::get).unwrap_or(u16::MAX)
    }

    #[inline]
    pub(crate) fn set(slot: u16) {
        // A transaction that begins while its thread is torn down leaves no hint.
        let _ = LAST.try_with(|last| last.set(slot));
    }
}

/// The model checkers run all threads on one thread of the system.
#[cfg(any(loom, shuttle))]
mod imp {
    pub(crate) fn get() -> u16 {
        u16::MAX
    }

    pub(crate) fn set(_slot: u16) {}
}

pub(crate) use imp::{get, set};
