//! What redo reads: the log in windows, each with its records sorted by page.
//!
//! A window takes rounds until it has enough bytes; of them, the records at or below the last round's M
//! are given out, sorted by (page, GSN, place in the log), so that a page is fetched once a window.
//! Records above M wait for the round that covers them, or vanish with their incarnation (R8).
//!
//! Invariants:
//! - I1 Records of one page come in GSN order, over windows too: a later window's records lie above the
//!   M of the earlier one.
//!
//! Not here: events of transactions (page zero): analysis reads rounds itself.

use vellum_base::{Gsn, Lsn, PageId, Result, SlotId};

use crate::reader::{Chunk, LogReader};
use crate::record::Record;

/// A place of a record in a window's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    page: PageId,
    gsn: Gsn,
    /// Index of the chunk, then offset in it: the order of the log within a slot.
    chunk: u32,
    offset: u32,
}

/// The records of some rounds, sorted for redo.
#[derive(Debug, Default)]
pub struct RedoWindow {
    /// The incarnation they belong to; a window never mixes two.
    pub incarnation: u64,
    /// Their M: everything at or below it has now been given out.
    pub m: Gsn,
    /// First and last round.
    pub rounds: (u64, u64),
    chunks: Vec<Chunk>,
    entries: Vec<Entry>,
}

impl RedoWindow {
    /// The records that change pages, sorted by (page, GSN), with the slot that wrote each.
    pub fn records(&self) -> impl ExactSizeIterator<Item = (SlotId, Record<'_>)> {
        self.entries.iter().map(|entry| self.record(entry))
    }

    /// The same, page by page: for distribution over threads.
    pub fn pages(&self) -> impl Iterator<Item = (PageId, Vec<(SlotId, Record<'_>)>)> {
        self.entries.chunk_by(|a, b| a.page == b.page).map(|group| {
            (
                group[0].page,
                group.iter().map(|entry| self.record(entry)).collect(),
            )
        })
    }

    fn record(&self, entry: &Entry) -> (SlotId, Record<'_>) {
        let chunk = &self.chunks[entry.chunk as usize];
        let lsn = Lsn(chunk.start_lsn.0 + u64::from(entry.offset));
        let record = Record::decode(&chunk.bytes[entry.offset as usize..], lsn);
        (
            chunk.slot,
            record.expect("was decoded when the window was made"),
        )
    }
}

/// Makes windows of what a [`LogReader`] reads.
#[derive(Debug)]
pub struct RedoWindows {
    reader: LogReader,
    window_bytes: usize,
    /// Records above the M of the last window, in chunks of their own.
    held: Vec<Chunk>,
    incarnation: u64,
    /// A round of the next incarnation, read too early.
    next: Option<crate::reader::RoundData>,
}

impl RedoWindows {
    /// Windows of about `window_bytes` of records; at least a round each.
    pub fn new(reader: LogReader, window_bytes: usize) -> Self {
        Self {
            reader,
            window_bytes,
            held: Vec::new(),
            incarnation: 0,
            next: None,
        }
    }

    /// The next window, `None` at the end of the log.
    ///
    /// # Errors
    /// As [`LogReader::next_round`].
    pub fn next_window(&mut self) -> Result<Option<RedoWindow>> {
        let mut window = RedoWindow::default();
        let mut bytes = 0;
        loop {
            let round = match self.next.take() {
                Some(round) => round,
                None => match self.reader.next_round()? {
                    Some(round) => round,
                    None => break,
                },
            };
            if round.incarnation != self.incarnation {
                if window.rounds.0 != 0 {
                    self.next = Some(round);
                    break;
                }
                // What was held back lies above the M of an incarnation that has ended.
                self.held.clear();
                self.incarnation = round.incarnation;
            }
            if window.rounds.0 == 0 {
                window.rounds.0 = round.number;
            }
            window.rounds.1 = round.number;
            (window.m, window.incarnation) = (round.m, round.incarnation);
            bytes += round
                .chunks
                .iter()
                .map(|chunk| chunk.bytes.len())
                .sum::<usize>();
            window.chunks.extend(round.chunks);
            if bytes >= self.window_bytes {
                break;
            }
        }
        if window.rounds.0 == 0 {
            return Ok(None);
        }
        let mut chunks = std::mem::take(&mut self.held);
        chunks.append(&mut window.chunks);
        window.chunks = chunks;
        self.sort(&mut window);
        Ok(Some(window))
    }

    fn sort(&mut self, window: &mut RedoWindow) {
        for (index, chunk) in window.chunks.iter().enumerate() {
            let mut kept: Option<Chunk> = None;
            for record in chunk.records() {
                if record.header.gsn > window.m {
                    // A slot's GSNs do not fall, so all that follows in the chunk is above M, too.
                    let at = (record.lsn.0 - chunk.start_lsn.0) as usize;
                    let bytes = chunk.bytes[at..].to_vec();
                    kept = Some(Chunk {
                        start_lsn: record.lsn,
                        bytes,
                        ..*chunk
                    });
                    break;
                }
                if !record.header.page.is_zero() {
                    window.entries.push(Entry {
                        page: record.header.page,
                        gsn: record.header.gsn,
                        chunk: index as u32,
                        offset: (record.lsn.0 - chunk.start_lsn.0) as u32,
                    });
                }
            }
            self.held.extend(kept);
        }
        window.entries.sort_unstable();
    }

    /// The reader, once all was read.
    pub fn into_reader(self) -> LogReader {
        self.reader
    }
}
