//! The word-wise accessors against plain byte slices.

use super::{make, memory_pool, nth, random};
use crate::{PageBuf, PageRead, PageWrite, first_eight};

/// A page that has only the required methods, so that the provided ones are tested.
struct Plain(Vec<u64>);

impl PageRead for Plain {
    fn size(&self) -> usize {
        self.0.len() * 8
    }
    fn word(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

impl PageWrite for Plain {
    fn set_word(&mut self, index: usize, value: u64) {
        self.0[index] = value;
    }
}

impl Plain {
    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

const SIZE: usize = 128;

/// Everything is a thousand times slower under miri.
const ROUNDS: usize = if cfg!(miri) { 300 } else { 20_000 };

#[test]
fn prop_writes_and_moves_equal_those_of_a_byte_slice() {
    let mut random = random();
    let mut plain = Plain(vec![0; SIZE / 8]);
    let mut buffer = PageBuf::new(SIZE);
    let mut bytes = vec![0_u8; SIZE];
    for _ in 0..ROUNDS {
        let at = random.below(SIZE as u64 + 1) as usize;
        let length = random.below((SIZE - at) as u64 + 1) as usize;
        let value = random.next_u64();
        match random.below(7) {
            0 => {
                let mut run = vec![0; length];
                random.fill(&mut run);
                plain.write(at, &run);
                buffer.write(at, &run);
                bytes[at..at + length].copy_from_slice(&run);
            }
            1 => {
                let to = random.below((SIZE - length) as u64 + 1) as usize;
                plain.move_within(at, to, length);
                buffer.move_within(at, to, length);
                bytes.copy_within(at..at + length, to);
            }
            2 => {
                plain.fill(at, length, value as u8);
                buffer.fill(at, length, value as u8);
                bytes[at..at + length].fill(value as u8);
            }
            3 if at + 8 <= SIZE => {
                plain.set_u64(at, value);
                buffer.set_u64(at, value);
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            4 if at + 4 <= SIZE => {
                plain.set_u32(at, value as u32);
                buffer.set_u32(at, value as u32);
                bytes[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
            }
            5 if at + 2 <= SIZE => {
                plain.set_u16(at, value as u16);
                buffer.set_u16(at, value as u16);
                bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
            }
            6 if at < SIZE => {
                plain.set_u8(at, value as u8);
                buffer.set_u8(at, value as u8);
                bytes[at] = value as u8;
            }
            _ => {}
        }
        assert_eq!(plain.bytes(), bytes);
        assert_eq!(buffer.as_bytes(), bytes);
    }
}

/// Long runs go by another way than short ones in a page of the pool, and may overlap.
#[test]
fn prop_long_runs_of_a_latched_page_are_written_moved_and_read_as_those_of_a_byte_slice() {
    const SIZE: usize = 4096;
    let mut random = random();
    let (pool, _) = memory_pool(SIZE, 32, 4);
    let page = nth(&pool, 0);
    make(&pool, page, 0, 1);
    let mut bytes = vec![0_u8; SIZE];
    random.fill(&mut bytes);
    let mut whole = PageBuf::new(SIZE);
    whole.write(0, &bytes);
    let mut exclusive = pool.exclusive(page).unwrap();
    exclusive.copy_from(&whole);
    for round in 0..ROUNDS / 10 {
        // Near one another, or anywhere.
        let at = random.below(SIZE as u64 + 1) as usize;
        let length = random.below((SIZE - at) as u64 + 1) as usize;
        let near = (at + random.below(40) as usize).saturating_sub(20);
        let to = match round % 2 {
            0 => near.min(SIZE - length),
            _ => random.below((SIZE - length) as u64 + 1) as usize,
        };
        match random.below(3) {
            0 => {
                let mut run = vec![0; length];
                random.fill(&mut run);
                exclusive.write(at, &run);
                bytes[at..at + length].copy_from_slice(&run);
            }
            1 => {
                exclusive.move_within(at, to, length);
                bytes.copy_within(at..at + length, to);
            }
            _ => {
                let (from, to, count) = (at / 8, to / 8, length / 8);
                exclusive.move_words(from, to, count);
                bytes.copy_within(8 * from..8 * (from + count), 8 * to);
            }
        }
        let mut out = vec![1; length];
        exclusive.copy_out(at, &mut out);
        assert_eq!(out, bytes[at..at + length], "{length} from {at}, {to}");
        exclusive.copy_to(&mut whole);
        assert!(whole.as_bytes() == bytes, "{length} from {at} to {to}");
    }
}

#[test]
fn prop_reads_equal_those_of_a_byte_slice_and_are_zero_outside() {
    let mut random = random();
    let mut bytes = vec![0_u8; SIZE];
    random.fill(&mut bytes);
    let mut buffer = PageBuf::new(SIZE);
    buffer.write(0, &bytes);
    let plain = Plain((0..SIZE / 8).map(|index| buffer.word(index)).collect());
    bytes.resize(2 * SIZE, 0);
    for at in 0..SIZE + 16 {
        assert_eq!(plain.u8_at(at), bytes[at]);
        assert_eq!(plain.u16_at(at).to_le_bytes(), bytes[at..at + 2]);
        assert_eq!(plain.u32_at(at).to_le_bytes(), bytes[at..at + 4]);
        assert_eq!(plain.u64_at(at).to_le_bytes(), bytes[at..at + 8]);
        for length in [0, 1, 7, 8, 9, 31] {
            let (mut one, mut two) = (vec![9; length], vec![9; length]);
            plain.copy_out(at, &mut one);
            buffer.copy_out(at, &mut two);
            assert_eq!(one, bytes[at..at + length]);
            assert_eq!(two, bytes[at..at + length]);
            let mut key = bytes[at..at + length].to_vec();
            assert_eq!(plain.compare(at, length, &key), std::cmp::Ordering::Equal);
            if let Some(byte) = key.last_mut() {
                *byte ^= 1;
                assert_eq!(
                    plain.compare(at, length, &key),
                    bytes[at..at + length].cmp(&key)
                );
            }
            key.push(0);
            assert_eq!(
                plain.compare(at, length, &key),
                bytes[at..at + length].cmp(&key)
            );
        }
    }
}

#[test]
fn reads_at_absurd_offsets_are_zero_and_do_not_panic() {
    let plain = Plain(vec![u64::MAX; SIZE / 8]);
    for offset in [usize::MAX, usize::MAX - 7, usize::MAX / 2, SIZE] {
        assert_eq!(plain.u64_at(offset), 0);
        assert_eq!(plain.u16_at(offset), 0);
        let mut out = [1; 5];
        plain.copy_out(offset, &mut out);
        assert_eq!(out, [0; 5]);
        let _ = plain.compare(offset, 20, &[0; 20]);
    }
}

#[test]
fn runs_outside_the_page_panic_for_writers() {
    for body in [
        |page: &mut Plain| page.write(SIZE - 1, &[0; 2]),
        |page: &mut Plain| page.move_within(8, SIZE - 7, 8),
        |page: &mut Plain| page.move_within(SIZE - 7, 8, 8),
        |page: &mut Plain| page.fill(1, SIZE, 0),
        |page: &mut Plain| page.set_u32(SIZE - 2, 0),
    ] {
        let result = std::panic::catch_unwind(|| body(&mut Plain(vec![0; SIZE / 8])));
        assert!(result.is_err());
    }
}

#[test]
fn prop_words_below_are_counted_as_one_by_one_on_every_kind_of_page() {
    let mut random = random();
    let (pool, _) = memory_pool(4096, 32, 4);
    let page = nth(&pool, 0);
    make(&pool, page, 0, 1);
    for round in 0..ROUNDS / 20 {
        let words = 4096 / 8;
        let from = 5 + random.below(20) as usize;
        let to = from + random.below((words - from) as u64 + 1) as usize;
        // Few different numbers, so that many are equal; or many.
        let most = [3, 1 << 32][round % 2];
        let mut uppers: Vec<u64> = (from..to).map(|_| random.below(most)).collect();
        uppers.sort_unstable();
        let mut plain = Plain(vec![0; words]);
        let mut buffer = PageBuf::new(4096);
        let mut exclusive = pool.exclusive(page).unwrap();
        for (at, upper) in (from..to).zip(&uppers) {
            let word = upper << 32 | random.below(1 << 32);
            plain.set_word(at, word);
            buffer.set_word(at, word);
            exclusive.set_word(at, word);
        }
        for limit in [0, 1, 2, random.below(most), u64::from(u32::MAX), 1 << 32] {
            let expected = uppers.iter().filter(|upper| **upper < limit).count();
            assert_eq!(plain.uppers_below(from, to, limit), expected);
            assert_eq!(buffer.uppers_below(from, to, limit), expected);
            assert_eq!(exclusive.uppers_below(from, to, limit), expected);
            let outside = exclusive.uppers_below(from, usize::MAX, limit);
            assert!(outside <= words - from, "words beyond the page are none");
        }
        drop(exclusive);
        let view = pool.optimistic(page).unwrap();
        let expected = uppers.iter().filter(|upper| **upper < 2).count();
        assert_eq!(view.uppers_below(from, to, 2), expected);
        assert_eq!(view.uppers_below(words + 7, to, 2), 0);
        // What is not in order (a torn page) counts as something, at most as all.
        assert!(view.uppers_below(0, words, random.below(1 << 32)) <= words);
    }
}

#[test]
fn first_eight_bytes_compare_like_the_strings_that_they_begin() {
    let bytes = [0x9f, 1, 0, 0xff, 7, 0x80, 0, 3, 200, 1];
    for length in 0..=bytes.len() {
        let mut padded = [0; 8];
        let count = length.min(8);
        padded[..count].copy_from_slice(&bytes[..count]);
        assert_eq!(first_eight(&bytes[..length]), u64::from_be_bytes(padded));
    }
}
