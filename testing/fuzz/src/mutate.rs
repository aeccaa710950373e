//! Makes other bytes of bytes: a few bits, a few bytes, numbers that are often too large, pieces of other inputs, ends cut off.

use vellum_base::random::Random;

/// Numbers at which arithmetic goes wrong.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes `bytes`; `other` is something of the same kind.
pub fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.between(1, 4) {
        let length = bytes.len() as u64;
        match random.below(8) {
            0 if length > 0 => {
                let at = random.below(length) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            1 if length > 0 => {
                let at = random.below(length) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            2 | 3 if length > 0 => {
                // An edge, or one beside it, in one of the widths.
                let number = EDGES[random.below(EDGES.len() as u64) as usize];
                let number = number
                    .wrapping_add(random.below(3))
                    .wrapping_sub(1)
                    .to_le_bytes();
                let at = random.below(length) as usize;
                let width = (1_usize << random.below(4)).min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            4 if length > 0 => bytes.truncate(random.below(length) as usize),
            5 => {
                let mut more = vec![0; random.between(1, 24) as usize];
                random.fill(&mut more);
                let at = random.below(length + 1) as usize;
                bytes.splice(at..at, more);
            }
            6 if !other.is_empty() && length > 0 => {
                let from = random.below(other.len() as u64) as usize;
                let at = random.below(length) as usize;
                let width = (random.between(1, 64) as usize)
                    .min(other.len() - from)
                    .min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&other[from..from + width]);
            }
            _ if length > 0 => {
                let (from, at) = (random.below(length) as usize, random.below(length) as usize);
                let width = (random.between(1, 32) as usize).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + width, at);
            }
            _ => bytes.push(random.next_u64() as u8),
        }
    }
}
