//! The bytes of a file: blocks that clones share until one writes, holes that read as zero.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes in a block, the unit in which files take space.
pub(super) const BLOCK: u64 = 4096;
const BLOCK_BYTES: usize = 4096;

type Block = [u8; BLOCK_BYTES];

/// Content of a file. Invariant: bytes at and beyond `length` in existing blocks are zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    length: u64,
    blocks: BTreeMap<u64, Arc<Block>>,
}

/// Splits a range at multiples of `unit`: (offset, position in the range, bytes).
pub(super) fn pieces(
    offset: u64,
    length: usize,
    unit: u64,
) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        // Bounded by `unit`, a few kilobytes, and by `length`.
        let count = (length - done).min((unit - at % unit) as usize);
        let piece = (at, done, count);
        done += count;
        Some(piece)
    })
}

impl Image {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn has_block(&self, index: u64) -> bool {
        self.blocks.contains_key(&index)
    }

    /// Fills `out` as far as the file goes and returns how far that is.
    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> usize {
        let available = self.length.saturating_sub(offset);
        let count = usize::try_from(available).map_or(out.len(), |count| count.min(out.len()));
        for (at, position, count) in pieces(offset, count, BLOCK) {
            let out = &mut out[position..position + count];
            let start = (at % BLOCK) as usize;
            match self.blocks.get(&(at / BLOCK)) {
                Some(block) => out.copy_from_slice(&block[start..start + count]),
                None => out.fill(0),
            }
        }
        count
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        for (at, position, count) in pieces(offset, bytes.len(), BLOCK) {
            let start = (at % BLOCK) as usize;
            let block = Arc::make_mut(self.block(at / BLOCK));
            block[start..start + count].copy_from_slice(&bytes[position..position + count]);
        }
        if !bytes.is_empty() {
            self.length = self.length.max(offset + bytes.len() as u64);
        }
    }

    fn block(&mut self, index: u64) -> &mut Arc<Block> {
        self.blocks
            .entry(index)
            .or_insert_with(|| Arc::new([0; BLOCK_BYTES]))
    }

    pub(super) fn set_len(&mut self, length: u64) {
        if length < self.length {
            let _ = self.blocks.split_off(&length.div_ceil(BLOCK));
            if let Some(last) = self.blocks.get_mut(&(length / BLOCK)) {
                Arc::make_mut(last)[(length % BLOCK) as usize..].fill(0);
            }
        }
        self.length = length;
    }

    /// Gives every block of the range space, and the file at least its end as length.
    pub(super) fn allocate(&mut self, offset: u64, length: u64) {
        let end = offset + length;
        for index in offset / BLOCK..end.div_ceil(BLOCK) {
            self.block(index);
        }
        self.length = self.length.max(end);
    }

    /// False if there is no such byte.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) -> bool {
        if offset >= self.length {
            return false;
        }
        let block = Arc::make_mut(self.block(offset / BLOCK));
        block[(offset % BLOCK) as usize] ^= 1 << bit;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    #[test]
    fn prop_image_behaves_like_a_vector_of_bytes() {
        let seed = crate::test_seed();
        let mut random = Random::new(seed);
        let (mut image, mut model) = (Image::default(), Vec::<u8>::new());
        for _ in 0..2000 {
            let offset = random.below(40_000);
            let index = usize::try_from(offset).unwrap();
            match random.below(10) {
                0 => {
                    image.set_len(offset);
                    model.resize(index, 0);
                }
                1 => {
                    let length = random.below(9000);
                    image.allocate(offset, length);
                    let end = index + usize::try_from(length).unwrap();
                    model.resize(model.len().max(end), 0);
                }
                2..=6 => {
                    let mut bytes = vec![0; usize::try_from(random.below(9000)).unwrap()];
                    random.fill(&mut bytes);
                    image.write(&bytes, offset);
                    let end = index + bytes.len();
                    if !bytes.is_empty() {
                        model.resize(model.len().max(end), 0);
                        model[index..end].copy_from_slice(&bytes);
                    }
                }
                _ => {
                    let mut out = vec![1; usize::try_from(random.below(9000)).unwrap()];
                    let count = image.read(&mut out, offset);
                    let expected = &model[index.min(model.len())..];
                    let expected = &expected[..expected.len().min(out.len())];
                    assert_eq!(count, expected.len());
                    assert!(out[..count] == *expected);
                }
            }
            assert_eq!(image.length(), model.len() as u64);
        }
    }

    #[test]
    fn clones_share_blocks_and_do_not_see_later_writes() {
        let mut one = Image::default();
        one.write(&[1; 5000], 0);
        let two = one.clone();
        one.write(&[2; 10], 4080);
        let mut bytes = [0; 20];
        two.read(&mut bytes, 4075);
        assert_eq!(bytes, [1; 20]);
        assert!(!Arc::ptr_eq(&two.blocks[&0], &one.blocks[&0]));
        assert!(Arc::ptr_eq(&two.blocks[&1], &one.blocks[&1]));
    }
}
