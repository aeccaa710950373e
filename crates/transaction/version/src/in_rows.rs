//! What old versions in rows come to, of however many pages: a look that goes on where the last one ended.
//!
//! Frames of the pool are looked at in chunks of 64, and each chunk counts as it was found when it was last looked at. So what is told is neither
//! a sample nor scaled up, and is at most one round behind; how long a round takes is for who asks for the steps.
//!
//! Invariants:
//! - V73 The sum is that of the chunks. What was written since its chunk was looked at is not in it, and a page that came back in another frame meanwhile is in it twice,
//!   or not at all, until both chunks were looked at again.
//! - V74 Who asks whether everything was looked at since a moment is told so only if each chunk was begun after that moment.
//! - V75 A version is needed by a snapshot that lies between who made it and who replaced it, as of the list that the look was given, or by the undo of a
//!   writer that is at work; by the same rule as holders are charged (`census`). Others stay in the row until it is pruned, and nobody is to blame.
//!
//! Cost: a load for each frame, and a copy of each page that is marked as having fat rows; 12 bytes a chunk. Nothing on the way of a write.
//!
//! Alternative: a sum for each slot, raised and lowered by who writes a version into a row and takes one out. That is one addition a write, but all that makes such
//! versions go has to tell (displacing, pruning, decomposing, undo, burial, trees that are dropped with all that is in them, pages that redo reduces), and a sum that is
//! wrong once stays wrong until a restart; it would not say who needs them either.

use crate::census::Found;
use crate::store::VersionStore;
use std::collections::BTreeMap;
use vellum_base::{SlotId, Timestamp};
use vellum_txn::Holder;

/// Frames that are counted together.
const CHUNK: usize = 64;

/// Old versions in rows of pages that are in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InRows {
    /// Pages that are marked as having some.
    pub pages: u64,
    /// Bytes of the old versions there.
    pub bytes: u64,
    /// Of these, what an open snapshot or the undo of a writer needs (V75).
    pub needed: u64,
}

/// Where a look has come to, and what it has found.
#[derive(Debug, Default)]
pub struct RowsLook {
    chunks: Vec<Chunk>,
    next: usize,
    /// Chunks that were looked at since the database was opened.
    looked: u64,
    sum: InRows,
}

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    pages: u32,
    bytes: u32,
    needed: u32,
}

// A chunk's bytes fit, with the largest pages.
const _: () = assert!(CHUNK * 16384 <= u32::MAX as usize);

impl Chunk {
    fn parts(self) -> [u64; 3] {
        [self.pages, self.bytes, self.needed].map(u64::from)
    }
}

impl RowsLook {
    /// What was found in all of them, each as it was when it was last looked at (V73).
    pub fn sum(&self) -> InRows {
        self.sum
    }

    /// A moment, for [`RowsLook::is_whole_since`].
    pub fn moment(&self) -> u64 {
        self.looked
    }

    /// Whether everything was looked at since that moment (V74).
    pub fn is_whole_since(&self, moment: u64) -> bool {
        !self.chunks.is_empty() && self.looked - moment >= self.chunks.len() as u64
    }

    /// Puts what was found in the next chunk in the place of what was there.
    fn note(&mut self, found: Chunk) {
        let before = std::mem::replace(&mut self.chunks[self.next], found);
        let sum = &mut self.sum;
        let sums = [&mut sum.pages, &mut sum.bytes, &mut sum.needed];
        for (sum, (now, before)) in sums
            .into_iter()
            .zip(found.parts().into_iter().zip(before.parts()))
        {
            *sum = *sum + now - before;
        }
        self.next = (self.next + 1) % self.chunks.len();
        self.looked += 1;
    }
}

/// Who needs versions, in a form that is asked for each of them.
struct Open {
    /// Oldest first.
    snapshots: Vec<Timestamp>,
    /// The oldest snapshot of the writer in each slot.
    writers: BTreeMap<SlotId, Timestamp>,
}

impl Open {
    fn of(holders: &[Holder]) -> Self {
        let both = holders.iter().flat_map(|it| [it.oldest, it.newest]);
        let mut snapshots: Vec<_> = both.collect();
        snapshots.sort_unstable();
        let writers = holders.iter().filter(|it| it.writer);
        Self {
            snapshots,
            writers: writers.map(|it| (it.id.slot, it.oldest)).collect(),
        }
    }

    /// V75.
    fn needs(&self, found: &Found) -> bool {
        let above = self.snapshots.partition_point(|it| *it <= found.made);
        let next = self.snapshots.get(above);
        let writer = self.writers.get(&found.by);
        next.is_some_and(|it| *it <= found.replaced)
            || writer.is_some_and(|oldest| *oldest <= found.replaced)
    }
}

impl VersionStore {
    /// Goes on with a look at old versions in rows: at frames of the pool, until it has looked at so many or has copied so many pages (a chunk more at most), or has been
    /// through all. `holders` are those that are open.
    pub fn look_further(
        &self,
        look: &mut RowsLook,
        holders: &[Holder],
        frames_max: usize,
        pages_max: usize,
    ) {
        let pool = self.context().pool();
        let chunks = pool.frames().div_ceil(CHUNK);
        look.chunks.resize(chunks, Chunk::default());
        let open = Open::of(holders);
        let mut pages = 0;
        for _ in 0..chunks.min(frames_max.div_ceil(CHUNK)) {
            let from = look.next * CHUNK;
            let mut found = Chunk::default();
            for page in pool.fat_pages_in(from..from + CHUNK) {
                found.pages += 1;
                self.look_at_page(page, &mut |version| {
                    // A page's bytes.
                    let bytes = version.tally.bytes as u32;
                    found.bytes += bytes;
                    found.needed += bytes * u32::from(open.needs(&version));
                });
            }
            pages += found.pages as usize;
            look.note(found);
            if pages >= pages_max {
                return;
            }
        }
    }
}
