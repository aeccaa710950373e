//! Cleaning a leaf before it is split: rows go that nobody needs, others get shorter, by what the registered [`Cleaner`](crate::Cleaner) says.
//!
//! The rows are judged in a private copy, and the leaf that is left is built in another one, with its free bytes in one piece: to shorten rows where they stand leaves
//! a hole behind each, and the next row that wants room has all of them compacted. Under the latch it is copied in, if the leaf has the rows that were judged.
//!
//! Crash: what goes is logged; shorter rows are not, since redo reduces every row before it redoes anything.

use crate::context::{Journal, Verdict};
use crate::node::build::{Builder, Entry, Incoming, entry, frame_of};
use crate::node::edit::NodeWrite;
use crate::node::layout::{Fences, NodeRead};
use crate::read::{LeafCopy, Seek};
use crate::record::CLEAN;
use crate::tree::Tree;
use crate::write::LeafWrite;
use smallvec::SmallVec;
use std::ops::Range;
use vellum_base::Result;
use vellum_buffer::{Exclusive, PageBuf, PageRead, PageWrite};
use vellum_wal::{FLAG_FIRST, RecordHeader};

impl Tree {
    /// Has the cleaner judge the rows of the leaf. True if there is room now.
    pub(crate) fn clean(
        &self,
        incoming: &Incoming<'_>,
        journal: Option<Journal<'_>>,
    ) -> Result<bool> {
        let Some(cleaner) = self.context().cleaner() else {
            return Ok(false);
        };
        let mut copy = LeafCopy::new(self.context().page_size());
        self.read_leaf(Seek::AtOrAfter(incoming.key), &mut copy)?;
        // On a private copy: the cleaner may take time and latches of its own.
        let mut judged = Judged::default();
        for index in 0..copy.len() {
            judged.judge(index, copy.payload(index), |payload, shorter| {
                cleaner.judge(self.root(), payload, shorter)
            });
        }
        if judged.changes.is_empty() {
            return Ok(false);
        }
        let mut cleaned = judged.carry_out(copy.page());
        self.reserve_change(journal)?;
        // The rows that were judged are the rows that are there, or nothing is done.
        let unchanged = self.try_unchanged(copy.page_id(), copy.version());
        let known = unchanged.is_some();
        let mut leaf = match unchanged {
            Some(page) => {
                self.check_covers(&page, incoming.key)?;
                LeafWrite::new(self, page, incoming.key)
            }
            None => self.write(incoming.key)?,
        };
        let found = leaf.found();
        let page = leaf.page_mut();
        if !known && (page.page_id() != copy.page_id() || !same_rows(page, &copy)) {
            return Ok(leaf.fits(incoming.payload));
        }
        let mut gsn = page.page_gsn();
        if !judged.removed.is_empty() {
            let journal = journal.expect("trees with rows are durable");
            let mut slot = journal.slot.lock();
            let header = RecordHeader {
                kind: CLEAN,
                flags: FLAG_FIRST,
                page: page.page_id(),
                tree: self.root(),
                gsn: slot.draw(gsn),
            };
            slot.append(&header, &[&judged.removed_suffixes(copy.page())], &[]);
            gsn = header.gsn;
        }
        // Not what the copy says of these: the same rows may have been marked meanwhile.
        debug_assert!(gsn >= page.page_gsn());
        cleaned.set_u8(5, page.kind_and_flags().1);
        cleaned.set_word(1, gsn.get());
        page.copy_from(&cleaned);
        // Positions have moved.
        leaf.find_again();
        Ok(leaf.fits(incoming.payload)
            && leaf.found() == found
            && leaf.free_bytes() >= incoming.spare)
    }
}

/// What a cleaner said of the rows of a leaf.
#[derive(Default)]
struct Judged {
    /// By record, ascending: its shorter payload, which stands there in `shorter`, or nothing: it goes.
    changes: SmallVec<[(usize, Option<Range<usize>>); 128]>,
    shorter: Vec<u8>,
    /// The records that go.
    removed: Vec<usize>,
}

impl Judged {
    /// Has the next record judged.
    fn judge(
        &mut self,
        index: usize,
        payload: &[u8],
        judge: impl FnOnce(&[u8], &mut Vec<u8>) -> Verdict,
    ) {
        let start = self.shorter.len();
        match judge(payload, &mut self.shorter) {
            Verdict::Keep => {}
            Verdict::Shrink => {
                let shorter = start..self.shorter.len();
                assert!(
                    shorter.len() <= payload.len(),
                    "a cleaner makes rows shorter"
                );
                self.changes.push((index, Some(shorter)));
            }
            Verdict::Remove => {
                self.changes.push((index, None));
                self.removed.push(index);
            }
        }
    }

    /// The leaf without what goes, its free bytes in one piece.
    fn carry_out(&self, leaf: &PageBuf) -> PageBuf {
        let mut cleaned = PageBuf::to_overwrite(leaf.size());
        let mut builder = Builder::new(&mut cleaned, &frame_of(leaf));
        let (mut next, mut fits) = (0, true);
        for (index, shorter) in &self.changes {
            fits &= builder.push_range(leaf, next..*index);
            if let Some(shorter) = shorter {
                let Entry { prefix, suffix, .. } = entry(leaf, *index);
                fits &= builder.push((prefix, suffix), &[&self.shorter[shorter.clone()]]);
            }
            next = index + 1;
        }
        fits &= builder.push_range(leaf, next..leaf.shape().count);
        assert!(fits, "rows that got no longer fit where they were");
        builder.finish();
        let last_insert = leaf.fences().last_insert;
        let before = self.removed.partition_point(|index| *index <= last_insert);
        let fences = cleaned.fences();
        cleaned.set_fences(Fences {
            last_insert: last_insert.saturating_sub(before),
            ..fences
        });
        cleaned
    }

    /// The redo bytes of what goes.
    fn removed_suffixes(&self, leaf: &PageBuf) -> Vec<u8> {
        let mut suffixes = Vec::new();
        for index in &self.removed {
            let suffix = entry(leaf, *index).suffix;
            suffixes.extend_from_slice(&(suffix.len() as u16).to_le_bytes());
            suffixes.extend_from_slice(suffix);
        }
        suffixes
    }
}

/// True if the leaf holds exactly the rows of the copy.
fn same_rows(page: &Exclusive<'_>, copy: &LeafCopy) -> bool {
    let mut now = PageBuf::to_overwrite(page.size());
    page.copy_to(&mut now);
    copy.same_rows(&now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::build::Frame;
    use crate::node::check::check_node;
    use crate::node::layout::record_bytes;
    use crate::testing::seed;
    use vellum_base::PageId;
    use vellum_base::random::Random;

    /// Rows by their last byte: one part goes, one loses its first bytes, one stays.
    fn judge(payload: &[u8], shorter: &mut Vec<u8>) -> Verdict {
        match payload.last() {
            Some(0..60) => Verdict::Remove,
            Some(60..160) => {
                shorter.extend_from_slice(&payload[payload.len() / 2..]);
                Verdict::Shrink
            }
            _ => Verdict::Keep,
        }
    }

    #[test]
    fn prop_cleaned_leaf_is_what_removals_and_replacements_in_place_make_of_it_in_one_piece() {
        let seed = seed("prop_cleaned_leaf");
        let mut random = Random::new(seed);
        for _ in 0..200 {
            let mut leaf = PageBuf::new(4096);
            let frame = Frame {
                tree: PageId(7),
                flags: 0,
                level: 0,
                lower: Some(b"rows/aa"),
                upper: Some(b"rows/zz"),
                rightmost: PageId::ZERO,
            };
            Builder::new(&mut leaf, &frame).finish();
            for _ in 0..random.below(120) {
                let key = format!("rows/b{}", random.below(500));
                let mut payload = vec![0; 1 + random.below(40) as usize];
                random.fill(&mut payload);
                let suffix = leaf.suffix_of(key.as_bytes()).to_vec();
                let (index, found) = leaf.find(key.as_bytes());
                if found {
                    // A hole, and another place of the last insert.
                    leaf.remove_at(index);
                }
                if record_bytes(suffix.len(), payload.len()) <= leaf.shape().free {
                    leaf.insert_at(index, &suffix, &[&payload]);
                }
            }
            let (mut judged, mut expected) = (Judged::default(), leaf.clone());
            for index in 0..leaf.shape().count {
                judged.judge(index, entry(&leaf, index).payload, judge);
            }
            for index in (0..leaf.shape().count).rev() {
                let mut shorter = Vec::new();
                match judge(entry(&leaf, index).payload, &mut shorter) {
                    Verdict::Keep => {}
                    Verdict::Shrink => expected.replace_at(index, &[&shorter]),
                    Verdict::Remove => expected.remove_at(index),
                }
            }
            let cleaned = judged.carry_out(&leaf);
            assert_eq!(check_node(&cleaned), Ok(()), "seed {seed}");
            let (shape, other) = (cleaned.shape(), expected.shape());
            assert_eq!((shape.count, shape.free), (other.count, other.free));
            assert_eq!(shape.gap(), shape.free, "in one piece");
            assert_eq!(cleaned.fences(), expected.fences(), "the hint for splits");
            for index in 0..shape.count {
                let (one, other) = (entry(&cleaned, index), entry(&expected, index));
                assert_eq!((one.key(), one.payload), (other.key(), other.payload));
            }
            let mut suffixes = judged.removed.iter().map(|at| entry(&leaf, *at).suffix);
            let mut logged = &judged.removed_suffixes(&leaf)[..];
            while let Some((length, rest)) = logged.split_first_chunk() {
                let (suffix, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
                assert_eq!(Some(suffix), suffixes.next());
                logged = rest;
            }
            assert_eq!(suffixes.next(), None);
        }
    }
}
