//! Rows of a statement that are told later: what a portal with a row limit or a cursor has yet to hand out, and what a
//! statement that writes returns. In memory up to a limit, in a temporary file behind that: a client that reads a large table a thousand rows at a time
//! costs the server no more memory than that.
//!
//! Rows lie in blocks, in the order of their coming; a block is in memory or in the file, and what is read of the file is one block.
//!
//! Invariants:
//! - KR1 Blocks hold rows without gaps: each begins with the row behind the last one of the block before it.
//! - KR2 What was kept is handed out unchanged, in any order, as often as it is asked for.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::io;
use std::sync::Arc;
use vellum_query::{Engine, TemporaryFile};

/// A block is closed when it is this long.
const BLOCK_BYTES: usize = 64 << 10;

/// Where a block's bytes are: for each of its rows a length (`u32`) and the bytes.
#[derive(Debug)]
enum Place {
    Memory(Box<[u8]>),
    File { at: u64, length: usize },
}

#[derive(Debug)]
struct Block {
    /// Number of its first row.
    first: u64,
    place: Place,
}

/// Where the row that was read last begins, in its block: who reads in order goes on behind it.
#[derive(Clone, Copy, Debug)]
struct Near {
    block: usize,
    row: u64,
    at: usize,
}

/// Rows that are kept.
#[derive(Debug)]
pub(super) struct RowStore {
    queries: Arc<Engine>,
    /// Bytes that may yet be kept in memory.
    memory: usize,
    blocks: Vec<Block>,
    /// The block that is being filled, and the number of its first row.
    tail: Vec<u8>,
    tail_first: u64,
    count: u64,
    file: Option<TemporaryFile>,
    /// The block that was read from the file last.
    loaded: Option<usize>,
    buffer: Vec<u8>,
    near: Option<Near>,
}

impl RowStore {
    /// No rows; up to `memory` bytes of them are kept in memory.
    pub fn new(queries: Arc<Engine>, memory: usize) -> Self {
        Self {
            queries,
            memory,
            blocks: Vec::new(),
            tail: Vec::new(),
            tail_first: 0,
            count: 0,
            file: None,
            loaded: None,
            buffer: Vec::new(),
            near: None,
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        let in_memory = self.in_memory();
        self.blocks.clear();
        self.queries.keep_no_more(in_memory);
        self.memory += in_memory;
        self.tail.clear();
        (self.tail_first, self.count) = (0, 0);
        (self.file, self.loaded, self.near) = (None, None, None);
    }

    fn in_memory(&self) -> usize {
        let in_memory = self.blocks.iter().map(|block| match &block.place {
            Place::Memory(bytes) => bytes.len(),
            Place::File { .. } => 0,
        });
        in_memory.sum()
    }

    /// Puts a row behind the others.
    ///
    /// # Errors
    /// `53200` if they are too long for memory and there is no place for files; `53100` for a full disk; `58030`.
    pub fn push(&mut self, row: &[u8]) -> Result<()> {
        let length = u32::try_from(row.len()).map_err(|_| {
            SqlError::new(
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                "row is too long to be kept",
            )
        })?;
        self.tail.extend_from_slice(&length.to_le_bytes());
        self.tail.extend_from_slice(row);
        self.count += 1;
        if self.tail.len() >= BLOCK_BYTES {
            self.close_tail()?;
        }
        Ok(())
    }

    fn close_tail(&mut self) -> Result<()> {
        let length = self.tail.len();
        let left = self.memory.checked_sub(length);
        // However many clients have however many portals: what all of them keep in memory is bounded, too.
        let left = left.filter(|_| self.queries.may_keep(length));
        let place = match left {
            Some(left) => {
                self.memory = left;
                Place::Memory(self.tail.as_slice().into())
            }
            None => {
                // The order of rows is that of blocks, wherever they are.
                self.memory = 0;
                let file = match &mut self.file {
                    Some(file) => file,
                    none => {
                        let made = self.queries.temporary_file().map_err(failed)?;
                        none.insert(made.ok_or_else(out_of_memory)?)
                    }
                };
                let at = file.append(&self.tail).map_err(failed)?;
                Place::File { at, length }
            }
        };
        let first = std::mem::replace(&mut self.tail_first, self.count);
        self.blocks.push(Block { first, place });
        self.tail.clear();
        // It may have been in the tail.
        self.near = None;
        Ok(())
    }

    /// The row of a number, from 0 on.
    ///
    /// # Errors
    /// `58030`; an internal error for a number that no row has.
    pub fn row(&mut self, number: u64) -> Result<&[u8]> {
        let block = match self.near {
            Some(near) if self.is_in(near.block, number) => near.block,
            _ if number >= self.tail_first => self.blocks.len(),
            _ => self.blocks.partition_point(|block| block.first <= number) - 1,
        };
        self.load(block)?;
        let (mut row, mut at) = match self.near {
            Some(near) if near.block == block && near.row <= number => (near.row, near.at),
            _ => (self.first_of(block), 0),
        };
        let bytes: &[u8] = match self.blocks.get(block).map(|block| &block.place) {
            None => &self.tail,
            Some(Place::Memory(bytes)) => bytes,
            Some(Place::File { .. }) => &self.buffer,
        };
        loop {
            let missing = || SqlError::internal("a kept row is not there");
            let length = bytes.get(at..).and_then(<[u8]>::first_chunk);
            let length = u32::from_le_bytes(*length.ok_or_else(missing)?) as usize;
            let end = at + 4 + length;
            if row == number {
                self.near = Some(Near { block, row, at });
                return bytes.get(at + 4..end).ok_or_else(missing);
            }
            (row, at) = (row + 1, end);
        }
    }

    fn first_of(&self, block: usize) -> u64 {
        self.blocks
            .get(block)
            .map_or(self.tail_first, |block| block.first)
    }

    fn is_in(&self, block: usize, number: u64) -> bool {
        let end = match block < self.blocks.len() {
            true => self.first_of(block + 1),
            false => self.count,
        };
        (self.first_of(block)..end).contains(&number)
    }

    /// Reads a block that is in the file.
    fn load(&mut self, block: usize) -> Result<()> {
        let place = self.blocks.get(block).map(|block| &block.place);
        let Some(&Place::File { at, length }) = place else {
            return Ok(());
        };
        if self.loaded == Some(block) {
            return Ok(());
        }
        let lost = || SqlError::internal("kept rows without their file");
        let file = self.file.as_mut().ok_or_else(lost)?;
        self.loaded = None;
        self.buffer.resize(length, 0);
        file.read(at, &mut self.buffer).map_err(failed)?;
        self.loaded = Some(block);
        Ok(())
    }
}

impl Drop for RowStore {
    fn drop(&mut self) {
        self.queries.keep_no_more(self.in_memory());
    }
}

#[cold]
fn out_of_memory() -> SqlError {
    SqlError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
        .with_detail("The rows that are kept for the client exceed their limit.")
        .with_hint("Raise work_mem.")
}

#[cold]
fn failed(error: io::Error) -> SqlError {
    SqlError::of_temporary_file(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(memory: usize, spill: Option<&std::path::Path>) -> RowStore {
        let queries = Engine::new(64 << 20);
        if let Some(directory) = spill {
            queries.spill_into(directory.to_path_buf());
        }
        RowStore::new(Arc::new(queries), memory)
    }

    fn bytes_of(number: u64) -> Vec<u8> {
        let length = (number * 7919 % 3000) as usize;
        vec![number as u8; if number % 50 == 49 { 90_000 } else { length }]
    }

    #[test]
    fn rows_are_handed_out_as_they_came_in_memory_and_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        for memory in [0, 200_000, usize::MAX] {
            let mut kept = kept(memory, Some(&directory.path().join("spill")));
            for number in 0..600 {
                kept.push(&bytes_of(number)).unwrap();
                // What is in the tail is there, too.
                assert_eq!(kept.row(number).unwrap(), bytes_of(number));
            }
            assert_eq!(kept.len(), 600);
            assert_eq!(kept.file.is_some(), memory != usize::MAX);
            let orders: [Vec<u64>; 3] = [
                (0..600).collect(),
                (0..600).rev().collect(),
                (0..600).map(|number| number * 347 % 600).collect(),
            ];
            for number in orders.into_iter().flatten() {
                assert!(kept.row(number).unwrap() == bytes_of(number), "{number}");
            }
            assert!(kept.row(600).is_err());
            kept.clear();
            assert_eq!(kept.len(), 0);
            kept.push(b"again").unwrap();
            assert_eq!(kept.row(0).unwrap(), b"again");
        }
    }

    #[test]
    fn without_a_place_for_files_memory_is_the_limit() {
        let mut kept = kept(200_000, None);
        let mut rows = 0;
        let error = loop {
            match kept.push(&[7; 1000]) {
                Ok(()) => rows += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.sqlstate(), sqlstate::OUT_OF_MEMORY);
        assert!((190..330).contains(&rows), "{rows}");
    }

    #[test]
    fn the_file_goes_with_the_rows() {
        let directory = tempfile::tempdir().unwrap();
        let spill = directory.path().join("spill");
        let files = || -> usize {
            let inner = std::fs::read_dir(&spill).unwrap();
            inner
                .map(|entry| std::fs::read_dir(entry.unwrap().path()).unwrap().count())
                .sum()
        };
        let mut kept = kept(0, Some(&spill));
        for _ in 0..200 {
            kept.push(&[7; 1000]).unwrap();
        }
        assert_eq!(files(), 1);
        kept.clear();
        assert_eq!(files(), 0);
    }

    /// Two stores have room for one: the other goes into its file, and into memory again when the first is gone.
    #[test]
    fn what_all_keep_in_memory_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let queries = Engine::new(1 << 20);
        queries.spill_into(directory.path().to_path_buf());
        let queries = Arc::new(queries);
        let filled = || {
            let mut store = RowStore::new(queries.clone(), 1 << 30);
            (0..4000).for_each(|number| store.push(&[number as u8; 256]).unwrap());
            store
        };
        let (first, mut second) = (filled(), filled());
        assert!(first.file.is_none() && second.file.is_some());
        assert!(first.in_memory() + second.in_memory() <= 1 << 20);
        assert_eq!(second.row(3999).unwrap(), [3999_u32 as u8; 256]);
        drop(first);
        second.clear();
        drop(second);
        assert!(filled().file.is_none());
    }
}
