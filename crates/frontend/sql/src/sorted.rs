//! Entries in the order of their keys (those of a new index, rows that are to be changed): sorted in memory a run at a time, the runs in a temporary file,
//! and merged. Entries of equal keys keep the order in which they came.
//!
//! Memory: what is sorted takes up to a limit; the merge reads each run through a buffer, all of them together about as much.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use vellum_query::{Engine, TemporaryFile};

/// Bytes of a run's buffer at least.
const BUFFER_MIN: usize = 4 << 10;
/// And at most.
const BUFFER_MAX: usize = 256 << 10;

/// An entry in the arena: where it begins, and how long its key and value are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    at: usize,
    key: u32,
    value: u32,
}

impl Place {
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.at..self.at + self.key as usize]
    }

    fn value<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let at = self.at + self.key as usize;
        &arena[at..at + self.value as usize]
    }
}

/// Entries on their way into order.
#[derive(Debug)]
pub(crate) struct Sorter<'q> {
    queries: &'q Engine,
    /// Bytes that may be kept.
    memory: usize,
    arena: Vec<u8>,
    places: Vec<Place>,
    file: Option<TemporaryFile>,
    /// Where the runs lie in the file.
    runs: Vec<(u64, u64)>,
}

/// Whether an entry was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    Yes,
    /// Memory is full, and there is no place for files.
    NoRoom,
}

impl<'q> Sorter<'q> {
    /// One that keeps up to `memory` bytes of entries in memory.
    pub fn new(queries: &'q Engine, memory: usize) -> Self {
        Self {
            queries,
            memory,
            arena: Vec::new(),
            places: Vec::new(),
            file: None,
            runs: Vec::new(),
        }
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// `53100` for a full disk; `58030`; `54000` for an entry of more than 4 GiB.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<Taken> {
        let kept = self.arena.len() + self.places.len() * size_of::<Place>();
        let more = key.len() + value.len() + size_of::<Place>();
        if kept + more > self.memory && !self.places.is_empty() && !self.write_run()? {
            return Ok(Taken::NoRoom);
        }
        let at = self.arena.len();
        let length = |bytes: &[u8]| {
            let text = "entry is too long to be sorted";
            u32::try_from(bytes.len())
                .map_err(|_| SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, text))
        };
        let (key_length, value_length) = (length(key)?, length(value)?);
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        self.places.push(Place {
            at,
            key: key_length,
            value: value_length,
        });
        Ok(Taken::Yes)
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        // What came later lies farther back.
        let order = |a: &Place, b: &Place| a.key(arena).cmp(b.key(arena)).then(a.at.cmp(&b.at));
        self.places.sort_unstable_by(order);
    }

    /// Writes what is in memory as a run; false if there is no place for files.
    fn write_run(&mut self) -> Result<bool> {
        if self.file.is_none() {
            self.file = self.queries.temporary_file().map_err(failed)?;
        }
        self.sort();
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let mut buffer = Vec::with_capacity(2 * BUFFER_MAX);
        let (mut first, mut bytes) = (None, 0);
        for place in &self.places {
            buffer.extend_from_slice(&place.key.to_le_bytes());
            buffer.extend_from_slice(&place.value.to_le_bytes());
            buffer.extend_from_slice(place.key(&self.arena));
            buffer.extend_from_slice(place.value(&self.arena));
            if buffer.len() >= BUFFER_MAX {
                first.get_or_insert(file.append(&buffer).map_err(failed)?);
                bytes += buffer.len() as u64;
                buffer.clear();
            }
        }
        let last = file.append(&buffer).map_err(failed)?;
        bytes += buffer.len() as u64;
        let first = first.unwrap_or(last);
        self.runs.push((first, first + bytes));
        self.arena.clear();
        self.places.clear();
        Ok(true)
    }

    /// All entries in the order of their keys.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub fn sorted(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            let memory = (self.arena, self.places.into_iter());
            return Ok(Sorted::Memory(memory.0, memory.1));
        }
        if !self.places.is_empty() && !self.write_run()? {
            return Err(SqlError::internal("runs without their file"));
        }
        let Some(mut file) = self.file else {
            return Err(SqlError::internal("runs without their file"));
        };
        let buffer = (self.memory / self.runs.len()).clamp(BUFFER_MIN, BUFFER_MAX);
        let mut heads = BinaryHeap::with_capacity(self.runs.len());
        for (number, (at, end)) in self.runs.into_iter().enumerate() {
            let mut run = Run {
                number,
                at,
                end,
                buffer: Vec::new(),
                from: 0,
                key: 0,
                value: 0,
                buffer_bytes: buffer,
            };
            if run.advance(&mut file)? {
                heads.push(Reverse(run));
            }
        }
        Ok(Sorted::Merge(file, heads))
    }
}

/// Entries in order.
#[derive(Debug)]
pub(crate) enum Sorted {
    Memory(Vec<u8>, std::vec::IntoIter<Place>),
    Merge(TemporaryFile, BinaryHeap<Reverse<Run>>),
}

impl Sorted {
    /// Appends the next entry's key and value to these; false at the end.
    ///
    /// # Errors
    /// `58030`.
    pub fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Memory(arena, places) => {
                let Some(place) = places.next() else {
                    return Ok(false);
                };
                key.extend_from_slice(place.key(arena));
                value.extend_from_slice(place.value(arena));
            }
            Self::Merge(file, heads) => {
                let Some(Reverse(mut run)) = heads.pop() else {
                    return Ok(false);
                };
                key.extend_from_slice(run.key());
                value.extend_from_slice(run.value());
                if run.advance(file)? {
                    heads.push(Reverse(run));
                }
            }
        }
        Ok(true)
    }
}

/// A run that is being read, standing at an entry.
#[derive(Debug)]
pub(crate) struct Run {
    /// Which one it is, in the order of their making.
    number: usize,
    /// What of it was not read from the file yet.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where in the buffer the entry's key begins, and how long key and value are.
    from: usize,
    key: usize,
    value: usize,
    buffer_bytes: usize,
}

impl Run {
    fn key(&self) -> &[u8] {
        &self.buffer[self.from..self.from + self.key]
    }

    fn value(&self) -> &[u8] {
        let at = self.from + self.key;
        &self.buffer[at..at + self.value]
    }

    /// Steps to the next entry; false at the end.
    fn advance(&mut self, file: &mut TemporaryFile) -> Result<bool> {
        self.from += self.key + self.value;
        (self.key, self.value) = (0, 0);
        if !self.have(8, file)? {
            return Ok(false);
        }
        let length = |at: usize| {
            let bytes = self.buffer.get(at..).and_then(<[u8]>::first_chunk::<4>);
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
        };
        let (key, value) = (length(self.from), length(self.from + 4));
        self.from += 8;
        if !self.have(key + value, file)? {
            return Err(SqlError::internal("a run ends inside an entry"));
        }
        (self.key, self.value) = (key, value);
        Ok(true)
    }

    /// Sees to it that so many bytes are in the buffer from where it stands; false if the run has fewer.
    fn have(&mut self, bytes: usize, file: &mut TemporaryFile) -> Result<bool> {
        let left = self.buffer.len() - self.from;
        if left >= bytes {
            return Ok(true);
        }
        self.buffer.drain(..self.from);
        self.from = 0;
        let unread = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = unread.min(self.buffer_bytes.max(bytes - left));
        self.buffer.resize(left + more, 0);
        file.read(self.at, &mut self.buffer[left..])
            .map_err(failed)?;
        self.at += more as u64;
        Ok(self.buffer.len() >= bytes)
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Run {}

impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Run {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.key().cmp(other.key());
        order.then(self.number.cmp(&other.number))
    }
}

#[cold]
fn failed(error: io::Error) -> SqlError {
    SqlError::of_temporary_file(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> (Vec<u8>, Vec<u8>) {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut key = mixed.to_be_bytes().to_vec();
        key.resize(8 + (mixed % 40) as usize, 7);
        (key, vec![number as u8; (number % 90) as usize])
    }

    fn in_order(sorter: Sorter<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut sorted = sorter.sorted().unwrap();
        let mut all = Vec::new();
        loop {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            if !sorted.next(&mut key, &mut value).unwrap() {
                return all;
            }
            all.push((key, value));
        }
    }

    #[test]
    fn entries_come_in_order_in_memory_and_from_many_runs() {
        let directory = tempfile::tempdir().unwrap();
        let queries = Engine::new(1 << 20);
        queries.spill_into(directory.path().join("spill"));
        for (memory, runs) in [(usize::MAX, 0), (3000, 100), (200_000, 4)] {
            let mut sorter = Sorter::new(&queries, memory);
            let mut expected = Vec::new();
            for number in 0..6000 {
                // Long ones do not fit into a buffer.
                let (key, mut value) = entry(number % 5000);
                if number % 2000 == 1999 {
                    value = vec![1; 600_000];
                }
                // Of equal keys the later one has the smaller value.
                value.insert(0, 99 - (number / 60) as u8);
                assert_eq!(sorter.push(&key, &value).unwrap(), Taken::Yes);
                expected.push((key, value));
            }
            assert!(sorter.runs.len() >= runs, "{} runs", sorter.runs.len());
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            assert!(in_order(sorter) == expected);
        }
        assert!(in_order(Sorter::new(&queries, 0)).is_empty());
    }

    #[test]
    fn without_a_place_for_files_it_says_when_memory_is_full() {
        let queries = Engine::new(1 << 20);
        let mut sorter = Sorter::new(&queries, 10_000);
        let mut taken = 0;
        while sorter.push(&[1; 100], &[]).unwrap() == Taken::Yes {
            taken += 1;
        }
        assert!((80..90).contains(&taken), "{taken}");
    }
}
