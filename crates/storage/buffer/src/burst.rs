//! Copies of many words of a page at once, by registers of 32 bytes where the processor has them.
//!
//! Scans copy whole leaves. Word by word that takes a load and a store for every eight bytes, since the compiler joins no atomic accesses: 190 ns
//! for 6 KiB in the first cache, and 73 by registers of 32 bytes; 1,110 and 810 from memory.
//!
//! Concurrency: what racy.rs says of single words holds here too. The instructions load each aligned word of eight bytes as a whole (they
//! are cut at 16 bytes, if at all), in any order, like relaxed loads; later loads stay behind them, as x86 orders all loads
//! from ordinary memory. Even if a processor tore a word, that word would have been written to in the meantime, and the caller's
//! validation says so.

use crate::racy::PageWords;
use std::sync::atomic::Ordering;

/// Words of a step of the wide copy: one line of the caches.
const STEP: usize = 8;

/// Loads each word once. In native order: the words in memory are the bytes of the page.
///
/// # Panics
/// If the two are not of one length.
#[inline]
pub(crate) fn load_all(words: &PageWords, to: &mut [u64]) {
    assert_eq!(words.len(), to.len(), "as many words");
    let done = load_wide(words, to);
    load_each(&words[done..], &mut to[done..]);
}

/// Word by word.
#[inline]
fn load_each(words: &PageWords, to: &mut [u64]) {
    // Eight at a time: the compiler does not unroll loops over atomics.
    let ((words, last), (to, rest)) = (words.as_chunks::<STEP>(), to.as_chunks_mut::<STEP>());
    for (words, to) in words.iter().zip(to) {
        for (word, to) in words.iter().zip(to) {
            *to = word.load(Ordering::Relaxed);
        }
    }
    for (word, to) in last.iter().zip(rest) {
        *to = word.load(Ordering::Relaxed);
    }
}

/// Loads as many words from the first on as make whole steps, and says how many: none where that cannot be done.
#[cfg(all(target_arch = "x86_64", not(any(miri, loom, shuttle))))]
#[inline]
fn load_wide(words: &PageWords, to: &mut [u64]) -> usize {
    use std::arch::asm;

    #[target_feature(enable = "avx")]
    fn steps(words: &[[crate::racy::PageWord; STEP]], to: &mut [[u64; STEP]]) {
        let steps = words.len().min(to.len());
        if steps == 0 {
            return;
        }
        let bytes = steps * size_of::<[u64; STEP]>();
        // SAFETY: reads and writes `bytes` bytes from the start of each on, which both have; nobody else has a reference to what is written, and
        // what is read may be written meanwhile (see the head of this file). The count runs from `-bytes` to zero, a step at a time.
        unsafe {
            asm!(
                "2:",
                "vmovups {low}, [{from} + {at}]",
                "vmovups {high}, [{from} + {at} + 32]",
                "vmovups [{to} + {at}], {low}",
                "vmovups [{to} + {at} + 32], {high}",
                "add {at}, 64",
                "jnz 2b",
                "vzeroupper",
                from = in(reg) words.as_ptr().wrapping_add(steps),
                to = in(reg) to.as_mut_ptr().wrapping_add(steps),
                at = inout(reg) 0_usize.wrapping_sub(bytes) => _,
                low = out(ymm_reg) _,
                high = out(ymm_reg) _,
                options(nostack),
            );
        }
    }

    if words.len() < 2 * STEP || !std::arch::is_x86_feature_detected!("avx") {
        return 0;
    }
    let ((words, _), (to, _)) = (words.as_chunks::<STEP>(), to.as_chunks_mut::<STEP>());
    // SAFETY: the processor has these instructions.
    unsafe { steps(words, to) };
    words.len() * STEP
}

/// Where there are no such registers, or where every access is to be seen by a checker.
#[cfg(not(all(target_arch = "x86_64", not(any(miri, loom, shuttle)))))]
#[inline]
fn load_wide(_words: &PageWords, _to: &mut [u64]) -> usize {
    0
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::racy::PageWord;

    #[test]
    fn every_length_is_copied_whole_and_nothing_beside_it() {
        for length in 0..70 {
            let words: Vec<_> = (1..=length as u64).map(PageWord::new).collect();
            for start in 0..3.min(length) {
                let mut to = vec![u64::MAX; length + 2];
                load_all(&words[start..], &mut to[1..=length - start]);
                let expected = 1 + start as u64..=length as u64;
                assert!(to[1..=length - start].iter().copied().eq(expected));
                assert_eq!((to[0], to[length - start + 1]), (u64::MAX, u64::MAX));
            }
        }
    }

    /// Words that are written meanwhile are old or new, and each comes from its own place.
    #[test]
    fn words_that_are_written_meanwhile_are_not_torn() {
        const ROUNDS: u64 = if cfg!(miri) { 20 } else { 20_000 };
        let words: Vec<_> = (0..131).map(|_| PageWord::new(0)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    for (at, word) in words.iter().enumerate() {
                        word.store(round << 32 | round << 8 | at as u64, Ordering::Relaxed);
                    }
                }
            });
            let mut to = vec![0; words.len()];
            let mut seen = 0;
            while seen < ROUNDS {
                load_all(&words, &mut to);
                for (at, word) in to.iter().enumerate() {
                    let round = word >> 32;
                    let whole = round << 32 | round << 8 | if round == 0 { 0 } else { at as u64 };
                    assert_eq!(*word, whole, "word {at}");
                }
                // Relaxed stores are seen in any order, but the last ones are seen at last.
                seen = to.iter().map(|word| word >> 32).min().unwrap_or(0);
            }
        });
    }
}
