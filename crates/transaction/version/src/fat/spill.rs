//! Old versions that do not fit their row: their bodies go to delta indexes, and the row holds names.
//!
//! So a row of which many snapshots need versions stays fat: the longest go, and only who sees one of those looks elsewhere.
//! (As a chain again it would cost everyone that.)
//!
//! Invariants: F3 and F4 (`decompose`): the copies are in the indexes before the row changes, under its latch. A name is that of the next newer
//! version that stays, which no other copy of the row has: that one was made for a version between the two.
//!
//! Crash: none of it is logged; the past of a row ends with the process.

use crate::delta;
use crate::error::{Result, damaged};
use crate::fat::layout::NAME_BYTES;
use crate::fat::prune::{KeptStep, Pruned, versions_bytes};
use crate::store::VersionStore;
use std::cmp::Reverse;
use vellum_base::PageId;
use vellum_base::planted::Bug;
use vellum_txn::VersionStamp;

impl VersionStore {
    /// Makes names of versions until all take at most `room` bytes, or nothing is won any more: of the longest first, and of none that is much shorter than
    /// the copy it would become. Of none at all if they would take more than `most` then: the row is to be a chain, which has ranges as they are. `newest` and `body`:
    /// of the version that the old ones stand behind. Copies are rewritten on the way ([`Pruned::rewrites`]).
    ///
    /// # Errors
    /// Storage errors; the row as it is does not mind what was done.
    #[cold]
    pub(crate) fn spill(
        &self,
        tree: PageId,
        newest: VersionStamp,
        body: &[u8],
        pruned: &mut Pruned<'_>,
        (room, most): (usize, usize),
    ) -> Result<()> {
        let won = |step: &KeptStep<'_>| match step {
            // Its copy would take more than four times as much elsewhere.
            KeptStep::Ranges(bytes) if 4 * bytes.len() < body.len() => 0,
            KeptStep::Ranges(bytes) | KeptStep::Whole(bytes) => {
                bytes.len().saturating_sub(NAME_BYTES)
            }
            KeptStep::Same | KeptStep::Copy(_) => 0,
        };
        let mut bytes = versions_bytes(&pruned.kept);
        let mut longest: Vec<usize> = (0..pruned.kept.len()).collect();
        longest.sort_by_key(|at| Reverse(won(&pruned.kept[*at].step)));
        longest.retain(|at| {
            let won = won(&pruned.kept[*at].step);
            let goes = won > 0 && bytes > room;
            bytes -= if goes { won } else { 0 };
            goes
        });
        if bytes > most {
            return Ok(());
        }
        self.rewrite_copies(tree, &pruned.rewrites)?;
        pruned.rewrites.clear();
        let mut body = body.to_vec();
        let (mut newer, mut entry) = (newest, Vec::new());
        for (at, kept) in pruned.kept.iter_mut().enumerate() {
            match &kept.step {
                KeptStep::Same => {}
                KeptStep::Ranges(image) => {
                    delta::apply_image(image, &mut body).ok_or_else(|| damaged("fat row", tree))?;
                }
                KeptStep::Whole(_) if self.has(Bug::SpilledStale) => {}
                KeptStep::Whole(whole) => {
                    body.clear();
                    body.extend_from_slice(whole);
                }
                KeptStep::Copy(name) => {
                    if !self.full_copy(name, tree, &mut body)? {
                        // Collected: nobody asks for what is this old.
                        return Ok(());
                    }
                }
            }
            if longest.contains(&at) {
                entry.clear();
                delta::encode_full(&kept.header, &body, &mut entry);
                self.put_delta(tree, &newer, &entry)?;
                kept.step = KeptStep::Copy(newer);
                pruned.gone.retain(|name| *name != newer);
            }
            match kept.header.writer {
                Some(writer) => newer = writer.version,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}
