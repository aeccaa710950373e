//! The specification's random values: NURand (clause 2.1.6), last names (4.3.2.3), strings
//! (4.3.2.2).

use crate::field::Text;
use vellum_base::random::Random;

/// The constants C of NURand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For last names, when they are looked up.
    pub last: u32,
    /// For customers.
    pub customer: u32,
    /// For items.
    pub item: u32,
}

impl Constants {
    /// Constants of a run on a database whose last names were loaded with `loaded_last`. All
    /// terminals of a run share them.
    pub fn for_run(seed: u64, loaded_last: u32) -> Self {
        let mut random = Random::new(seed ^ 0x6e75_7261_6e64);
        let last = loop {
            let last = random.below(256) as u32;
            // Clause 2.1.6.1: the distance to the load's constant.
            let distance = last.abs_diff(loaded_last);
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                break last;
            }
        };
        Self {
            last,
            customer: random.below(1024) as u32,
            item: random.below(8192) as u32,
        }
    }

    /// The constant of last names for a load.
    pub fn last_for_load(seed: u64) -> u32 {
        Random::new(seed ^ 0x6c6f_6164_6564).below(256) as u32
    }
}

/// Uniform in `low..=high`.
#[inline]
pub fn between(random: &mut Random, low: u32, high: u32) -> u32 {
    random.between(u64::from(low), u64::from(high)) as u32
}

/// The non-uniform distribution of clause 2.1.6 over `low..=high`.
#[inline]
pub fn nurand(random: &mut Random, a: u32, c: u32, low: u32, high: u32) -> u32 {
    let mixed = between(random, 0, a) | between(random, low, high);
    (mixed + c) % (high - low + 1) + low
}

const SYLLABLES: [&[u8]; 10] = [
    b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING",
];

/// The last name of a number below 1000, padded with zero bytes.
pub fn last_name(number: u32) -> [u8; 16] {
    debug_assert!(number < 1000);
    let mut name = [0; 16];
    let mut used = 0;
    for digit in [number / 100, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize % 10];
        name[used..used + syllable.len()].copy_from_slice(syllable);
        used += syllable.len();
    }
    name
}

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Fills `out` with characters from the first `characters` of digits, capital and small letters.
fn fill(random: &mut Random, out: &mut [u8], characters: usize) {
    for chunk in out.chunks_mut(8) {
        let bytes = random.next_u64().to_le_bytes();
        for (to, from) in chunk.iter_mut().zip(bytes) {
            *to = LETTERS[(usize::from(from) * characters) >> 8];
        }
    }
}

/// Stores a random alphanumeric string of at least `shortest` bytes; returns its length.
pub fn letters(random: &mut Random, row: &mut [u8], column: Text, shortest: usize) -> usize {
    let bytes = column.padded_mut(row);
    let length = random.between(shortest as u64, bytes.len() as u64) as usize;
    fill(random, &mut bytes[..length], LETTERS.len());
    bytes[length..].fill(0);
    length
}

/// Fills a column with random digits.
pub fn digits(random: &mut Random, row: &mut [u8], column: Text) {
    fill(random, column.padded_mut(row), 10);
}

/// Two capital letters.
pub fn state(random: &mut Random, row: &mut [u8], column: Text) {
    for byte in column.padded_mut(row) {
        *byte = b'A' + random.below(26) as u8;
    }
}

/// Four random digits and "11111" (clause 4.3.2.7).
pub fn zip(random: &mut Random, row: &mut [u8], column: Text) {
    let bytes = column.padded_mut(row);
    fill(random, &mut bytes[..4], 10);
    bytes[4..].fill(b'1');
}

/// What one in ten brands contains.
pub const ORIGINAL: &[u8; 8] = b"ORIGINAL";

/// A string of 26 to 50 bytes; one in ten contains [`ORIGINAL`] somewhere.
pub fn brand(random: &mut Random, row: &mut [u8], column: Text) {
    let length = letters(random, row, column, 26);
    if random.chance(1, 10) {
        let at = random.below((length - ORIGINAL.len() + 1) as u64) as usize;
        column.padded_mut(row)[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

/// True if a brand contains [`ORIGINAL`].
#[inline]
pub fn is_original(brand: &[u8]) -> bool {
    brand
        .windows(ORIGINAL.len())
        .any(|window| window == ORIGINAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_specifications() {
        assert_eq!(&last_name(371)[..13], b"PRICALLYOUGHT");
        assert_eq!(&last_name(0)[..9], b"BARBARBAR");
        assert_eq!(&last_name(777), b"CALLYCALLYCALLY\0");
    }

    #[test]
    fn constants_keep_the_distance_of_clause_2_1_6_1() {
        for seed in 0..2000 {
            let load = Constants::last_for_load(seed);
            let run = Constants::for_run(seed + 1, load);
            let distance = run.last.abs_diff(load);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
            assert!(run.last < 256 && run.customer < 1024 && run.item < 8192);
        }
    }

    #[test]
    fn nurand_stays_in_range_and_is_not_uniform() {
        let mut random = Random::new(5);
        let mut hits = [0_u32; 3001];
        for _ in 0..300_000 {
            hits[nurand(&mut random, 1023, 259, 1, 3000) as usize] += 1;
        }
        assert_eq!(hits[0], 0);
        let drawn = hits.iter().filter(|&&h| h > 0).count();
        assert!(drawn > 2500, "only {drawn} customers are ever drawn");
        // Uniform draws would give each about 100.
        let (often, rarely) = (hits.iter().max(), hits.iter().filter(|&&h| h < 10).count());
        assert!(
            often > Some(&1000) && rarely > 300,
            "at most {often:?}, rarely {rarely}"
        );
    }

    #[test]
    fn one_brand_in_ten_is_original() {
        let mut random = Random::new(6);
        let column = Text::at(0, 50);
        let originals = (0..10_000)
            .filter(|_| {
                let mut row = [0; 50];
                brand(&mut random, &mut row, column);
                let length = column.get(&row).len();
                assert!((26..=50).contains(&length));
                is_original(column.get(&row))
            })
            .count();
        assert!((850..1150).contains(&originals), "{originals} of 10000");
    }

    #[test]
    fn strings_have_their_lengths_and_alphabets() {
        let mut random = Random::new(7);
        let mut row = [0; 24];
        for _ in 0..1000 {
            let length = letters(&mut random, &mut row, Text::at(0, 24), 14);
            assert!((14..=24).contains(&length));
            assert!(row[..length].iter().all(u8::is_ascii_alphanumeric));
            digits(&mut random, &mut row, Text::at(0, 16));
            assert!(row[..16].iter().all(u8::is_ascii_digit));
            zip(&mut random, &mut row, Text::at(0, 9));
            assert!(row[..9].iter().all(u8::is_ascii_digit) && row.starts_with(&row[..4]));
            assert_eq!(&row[4..9], b"11111");
            state(&mut random, &mut row, Text::at(0, 2));
            assert!(row[..2].iter().all(u8::is_ascii_uppercase));
        }
    }
}
