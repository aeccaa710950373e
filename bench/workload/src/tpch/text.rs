//! Comments: pieces of one long text of sentences.
//!
//! Paper: TPC Benchmark H, clauses 4.2.2.10 (text strings are pieces of a pool) and 4.2.2.14 (the grammar).
//!
//! Differences: the pool has 4 MiB instead of 300: comments only have to look different from each other.

use super::words::{ADJECTIVES, ADVERBS, AUXILIARIES, NOUNS, PREPOSITIONS, TERMINATORS, VERBS};
use vellum_base::random::Random;

const POOL_BYTES: usize = 4 << 20;

/// The text that comments are cut from. ASCII.
#[derive(Clone, Debug)]
pub(super) struct Pool(String);

/// One of a list.
pub(super) fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len() as u64) as usize]
}

impl Pool {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x0074_6578_7400);
        let mut text = String::with_capacity(POOL_BYTES + 256);
        while text.len() < POOL_BYTES {
            sentence(&mut random, &mut text);
        }
        Self(text)
    }

    /// A piece of `low..=high` bytes.
    pub fn piece(&self, random: &mut Random, low: u64, high: u64) -> &str {
        let length = random.between(low, high) as usize;
        let start = random.below((self.0.len() - length) as u64) as usize;
        &self.0[start..start + length]
    }
}

fn sentence(random: &mut Random, out: &mut String) {
    let parts = one_of(random, &[&b"NV"[..], b"NVP", b"NVN", b"NPVN", b"NPVP"]);
    for part in parts {
        match part {
            b'N' => noun_phrase(random, out),
            b'V' => verb_phrase(random, out),
            _ => {
                word(random, out, &PREPOSITIONS);
                out.push_str("the ");
                noun_phrase(random, out);
            }
        }
    }
    // The terminator stands directly behind the last word.
    out.pop();
    out.push_str(one_of(random, &TERMINATORS));
    out.push(' ');
}

fn word(random: &mut Random, out: &mut String, list: &[&str]) {
    out.push_str(one_of(random, list));
    out.push(' ');
}

fn noun_phrase(random: &mut Random, out: &mut String) {
    match random.below(4) {
        0 => {}
        1 => word(random, out, &ADJECTIVES),
        2 => {
            out.push_str(one_of(random, &ADJECTIVES));
            out.push_str(", ");
            word(random, out, &ADJECTIVES);
        }
        _ => {
            word(random, out, &ADVERBS);
            word(random, out, &ADJECTIVES);
        }
    }
    word(random, out, &NOUNS);
}

fn verb_phrase(random: &mut Random, out: &mut String) {
    let shape = random.below(4);
    if shape % 2 == 1 {
        word(random, out, &AUXILIARIES);
    }
    word(random, out, &VERBS);
    if shape >= 2 {
        word(random, out, &ADVERBS);
    }
}
