//! The last rows of a load, put into order: rows that are nearly sorted are loaded too.
//!
//! Who dumps a table, or many rows of each of many keys, often has an order that differs from the key's in short stretches only. The window keeps the last
//! rows sorted; the lowest of them leave it when it is full. A row below one that has left has come too late.
//!
//! Invariants:
//! - W1 `places` ascend by key, no key twice, all above the last that left.

/// Bytes of rows that the window keeps, about.
pub(super) const WINDOW_BYTES: usize = 256 << 10;

/// A row in the arena.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    key: usize,
    value: usize,
}

impl Place {
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.at..self.at + self.key]
    }

    fn bytes<'a>(&self, arena: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        arena[self.at..self.at + self.key + self.value].split_at(self.key)
    }
}

/// The last rows of a load.
#[derive(Debug, Default)]
pub(super) struct Window {
    arena: Vec<u8>,
    places: Vec<Place>,
    /// The key that left last.
    left: Option<Vec<u8>>,
}

impl Window {
    /// Whether a key is above all, those that have left too.
    pub fn is_behind_all(&self, key: &[u8]) -> bool {
        match self.places.last() {
            Some(last) => last.key(&self.arena) < key,
            None => self.left.as_deref().is_none_or(|left| left < key),
        }
    }

    /// Takes a row; false if its key is not above the one that left last, or is there.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        let to = if self.is_behind_all(key) {
            self.places.len()
        } else {
            let arena = &self.arena;
            let found = self
                .places
                .binary_search_by(|place| place.key(arena).cmp(key));
            match found {
                Err(to) if to > 0 || self.left.as_deref().is_none_or(|left| left < key) => to,
                _ => return false,
            }
        };
        let at = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        let (key, value) = (key.len(), value.len());
        self.places.insert(to, Place { at, key, value });
        true
    }

    /// Rows that leave now, lowest first: the lower half of a full window, none of another one.
    pub fn leaving(&self) -> usize {
        if self.arena.len() < WINDOW_BYTES {
            0
        } else {
            self.places.len().div_ceil(2)
        }
    }

    /// All rows that there are.
    pub fn all(&self) -> usize {
        self.places.len()
    }

    /// The row with number `index` in the order of the keys.
    pub fn row(&self, index: usize) -> (&[u8], &[u8]) {
        self.places[index].bytes(&self.arena)
    }

    /// Notes a key that left without having been here.
    pub fn note_left(&mut self, key: &[u8]) {
        let left = self.left.get_or_insert_default();
        left.clear();
        left.extend_from_slice(key);
    }

    /// Lets the lowest rows go.
    pub fn forget(&mut self, rows: usize) {
        let Some(last) = rows.checked_sub(1) else {
            return;
        };
        let key = self.places[last].key(&self.arena).to_vec();
        self.note_left(&key);
        self.places.drain(..rows);
        let mut arena = Vec::with_capacity(self.arena.capacity());
        for place in &mut self.places {
            let at = arena.len();
            let end = place.at + place.key + place.value;
            arena.extend_from_slice(&self.arena[place.at..end]);
            place.at = at;
        }
        self.arena = arena;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    #[test]
    fn prop_rows_leave_in_order_and_what_comes_too_late_is_refused() {
        let seed = vellum_base::replay::seed();
        println!("replay with: VELLUM_SEED={seed} cargo test -p vellum prop_rows_leave_in_order");
        let mut random = Random::new(seed);
        let (mut window, mut taken, mut refused) = (Window::default(), 0, 0);
        let mut left: Vec<Vec<u8>> = Vec::new();
        for number in 0..40_000_u64 {
            let far = if random.chance(1, 100) { 10_000 } else { 30 };
            let key = (number + random.below(far)).to_be_bytes();
            let value = vec![7; random.below(100) as usize];
            let there = (0..window.all()).any(|row| number % 50 == 0 && window.row(row).0 == key);
            let late = left
                .last()
                .is_some_and(|last| key.as_slice() <= last.as_slice());
            let took = window.take(&key, &value);
            assert!(!(took && (late || there)));
            taken += u64::from(took);
            refused += u64::from(!took);
            let leaving = window.leaving();
            assert!(leaving > 0 || window.arena.len() < WINDOW_BYTES);
            left.extend((0..leaving).map(|row| window.row(row).0.to_vec()));
            window.forget(leaving);
        }
        let rest = window.all();
        left.extend((0..rest).map(|row| window.row(row).0.to_vec()));
        window.forget(rest);
        assert!(left.is_sorted_by(|a, b| a < b));
        assert_eq!(left.len() as u64, taken);
        assert!(refused > 1000 && taken > 10_000, "{taken}, {refused}");
        assert!(window.arena.is_empty());
    }
}
