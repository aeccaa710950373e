//! What a statement may keep in memory, and which account was charged for lists.

use super::Run;
use crate::error::Result;
use crate::expr::ListSets;

/// Bytes that a statement may still keep, or has kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Room {
    pub memory: usize,
    /// In lists that rows and values are looked up in.
    pub listed: usize,
}

/// Which of them was charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Account {
    Memory,
    Lists,
}

impl Run<'_, '_> {
    /// Bytes are kept in a list that rows are looked up in.
    ///
    /// # Errors
    /// As [`Self::keep`].
    pub(super) fn keep_listed(&self, bytes: usize) -> Result<Account> {
        match self.listed.get().checked_sub(bytes) {
            Some(left) => {
                self.listed.set(left);
                Ok(Account::Lists)
            }
            None => self.keep(bytes).map(|()| Account::Memory),
        }
    }

    /// Lists that it keeps itself: one that runs a query for a row has ended before they are forgotten.
    fn own_lists(&self) -> Option<&ListSets> {
        self.env.lists().filter(|_| self.outer.is_none())
    }

    /// The bytes that it may still keep without the lists of values that it keeps: for who begins a query anew.
    pub(crate) fn room(&self) -> Room {
        let kept = self.own_lists().map_or(Room::default(), ListSets::charged);
        Room {
            memory: self.memory.get().saturating_add(kept.memory),
            listed: self.listed.get().saturating_add(kept.listed),
        }
    }

    /// It has kept no more than when it had this room, and forgets lists of values.
    pub(crate) fn set_room(&self, room: Room) {
        if let Some(lists) = self.own_lists() {
            lists.clear();
        }
        self.memory.set(room.memory);
        self.listed.set(room.listed);
    }
}
