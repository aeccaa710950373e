//! Copies of many words of a page at once, by registers of 32 bytes where the processor has them.
//!
//! Scans copy whole leaves, structure changes whole pages, and a row that grows moves half of its leaf. Word by word that takes a load and a store for
//! every eight bytes, since the compiler joins no atomic accesses: 190 ns for 6 KiB in the first cache, and 73 by registers of 32 bytes; 1,110 and 810 from
//! memory.
//!
//! Concurrency: what racy.rs says of single words holds here too. The instructions store aligned words of eight bytes as wholes, and load them so where they
//! begin at one (they are cut at 16 bytes, if at all), in any order, like relaxed accesses; later loads stay behind these loads, and these stores behind earlier ones and before
//! later ones, as x86 orders accesses to ordinary memory. Even if a processor tore a word, that word would have been written to in the meantime, and the reader's
//! validation says so; the same of records, which begin anywhere: they are read in words of which some consist of parts of two. (Whoever moves bytes of a page reads such
//! words, too, but holds it: nobody else writes to them.)

use crate::racy::PageWords;
use std::sync::atomic::Ordering;

/// Words of a step of the wide copy: one line of the caches.
const STEP: usize = 8;

/// Which word of a run is copied first. Where runs overlap, what is overwritten has to be copied before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Lowest,
    Highest,
}

/// Loads each word once. In native order: the words in memory are the bytes of the page.
///
/// # Panics
/// If the two are not of one length.
#[inline]
pub(crate) fn load_all(words: &PageWords, to: &mut [u64]) {
    assert_eq!(words.len(), to.len(), "as many words");
    let (from, into) = (words.as_ptr().cast(), to.as_mut_ptr().cast());
    // SAFETY: both are as long, and nobody else has a reference to what is written; what is read may be written meanwhile (see above).
    let done = unsafe { copy_wide(from, into, words.len(), First::Lowest) };
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

/// Stores each word once, in native order; for who holds the page.
///
/// # Panics
/// If the two are not of one length.
#[inline]
pub(crate) fn store_all(from: &[u64], words: &PageWords) {
    assert_eq!(words.len(), from.len(), "as many words");
    let into = words.as_ptr().cast_mut().cast();
    // SAFETY: both are as long, and what is written are atomics, whose readers find out (see above).
    let done = unsafe { copy_wide(from.as_ptr().cast(), into, from.len(), First::Lowest) };
    for (word, from) in words[done..].iter().zip(&from[done..]) {
        word.store(*from, Ordering::Relaxed);
    }
}

/// Loads the bytes from number `offset` on, as many from the first on as make whole steps, and says how many.
///
/// # Panics
/// If they are not inside the page.
#[inline]
pub(crate) fn load_most(words: &PageWords, offset: usize, out: &mut [u8]) -> usize {
    let size = 8 * words.len();
    assert!(
        out.len() <= size && offset <= size - out.len(),
        "read of a run inside the page"
    );
    let from = words.as_ptr().cast::<u8>().wrapping_add(offset);
    // SAFETY: inside the page, as was asserted, and nobody else has a reference to what is written; what is read may be written meanwhile (see above).
    8 * unsafe { copy_wide(from, out.as_mut_ptr(), out.len() / 8, First::Lowest) }
}

/// Stores bytes, as many from the first on as make whole steps, and says how many words that is; for who holds the page.
///
/// # Panics
/// If there are fewer words.
#[inline]
pub(crate) fn store_most(from: &[u8], words: &PageWords) -> usize {
    let count = from.len() / 8;
    assert!(count <= words.len(), "as many words");
    let into = words.as_ptr().cast_mut().cast();
    // SAFETY: both are as long, as was asserted, and what is written are atomics, whose readers find out (see above).
    unsafe { copy_wide(from.as_ptr(), into, count, First::Lowest) }
}

/// Moves the bytes from number `from` on into `count` words from number `to` on, as many as make whole steps, and says how many words that is: the
/// first ones where they move to a lower place, else the last ones. For who holds the page; the rest, which he moves next, is where it was.
///
/// # Panics
/// If a range is outside the page.
#[inline]
pub(crate) fn move_most(words: &PageWords, from: usize, to: usize, count: usize) -> usize {
    let size = 8 * words.len();
    assert!(
        count <= words.len() && from <= size - 8 * count && to <= words.len() - count,
        "move of a run outside the page"
    );
    let first = if 8 * to < from {
        First::Lowest
    } else {
        First::Highest
    };
    let start: *mut u8 = words.as_ptr().cast_mut().cast();
    // Inside the page, as was asserted.
    let (from, into) = (start.wrapping_add(from), start.wrapping_add(8 * to));
    // SAFETY: both runs of `count` words are inside the page, of which nobody else writes anything; each step loads before it stores, and what it overwrites of
    // the other run was loaded by then, by the order. Readers find out (see above).
    unsafe { copy_wide(from, into, count, first) }
}

/// Copies as many words as make whole steps, the first ones or (from the highest down) the last ones, and says how many: none where that cannot be done.
///
/// # Safety
/// `count` words may be read from `from` on, which need not be aligned, and written from `to` on by nobody else; where the runs overlap, `to` is not behind
/// `from` with [`First::Lowest`], and not before it with the other.
#[cfg(all(target_arch = "x86_64", not(any(miri, loom, shuttle))))]
#[inline]
unsafe fn copy_wide(from: *const u8, to: *mut u8, count: usize, first: First) -> usize {
    use std::arch::asm;

    // A call of its own, whatever the program is compiled for: `vzeroupper` clears what a caller with wide registers of its own may keep there, and knows not to
    // across a call.
    #[target_feature(enable = "avx")]
    #[inline(never)]
    unsafe fn steps(from: *const u8, to: *mut u8, bytes: usize, first: First) {
        match first {
            // SAFETY: reads and writes `bytes` bytes, which are some steps, from the start of each on, as the caller may. The count runs from `-bytes`
            // to zero, a step at a time.
            First::Lowest => unsafe {
                asm!(
                    "2:",
                    "vmovups {low}, [{from} + {at}]",
                    "vmovups {high}, [{from} + {at} + 32]",
                    "vmovups [{to} + {at}], {low}",
                    "vmovups [{to} + {at} + 32], {high}",
                    "add {at}, 64",
                    "jnz 2b",
                    "vzeroupper",
                    from = in(reg) from.wrapping_add(bytes),
                    to = in(reg) to.wrapping_add(bytes),
                    at = inout(reg) 0_usize.wrapping_sub(bytes) => _,
                    low = out(ymm_reg) _,
                    high = out(ymm_reg) _,
                    options(nostack),
                );
            },
            // SAFETY: the same, from `bytes` down to zero.
            First::Highest => unsafe {
                asm!(
                    "2:",
                    "vmovups {low}, [{from} + {at} - 64]",
                    "vmovups {high}, [{from} + {at} - 32]",
                    "vmovups [{to} + {at} - 64], {low}",
                    "vmovups [{to} + {at} - 32], {high}",
                    "sub {at}, 64",
                    "jnz 2b",
                    "vzeroupper",
                    from = in(reg) from,
                    to = in(reg) to,
                    at = inout(reg) bytes => _,
                    low = out(ymm_reg) _,
                    high = out(ymm_reg) _,
                    options(nostack),
                );
            },
        }
    }

    if count < 2 * STEP || !std::arch::is_x86_feature_detected!("avx") {
        return 0;
    }
    let rest = count % STEP;
    let skipped = match first {
        First::Lowest => 0,
        First::Highest => 8 * rest,
    };
    let (from, to) = (from.wrapping_add(skipped), to.wrapping_add(skipped));
    // SAFETY: the processor has these instructions; the rest is the caller's.
    unsafe { steps(from, to, 8 * (count - rest), first) };
    count - rest
}

/// Where there are no such registers, or where every access is to be seen by a checker.
///
/// # Safety
/// None is needed.
#[cfg(not(all(target_arch = "x86_64", not(any(miri, loom, shuttle)))))]
#[inline]
unsafe fn copy_wide(_from: *const u8, _to: *mut u8, _count: usize, _first: First) -> usize {
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

    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 20_000 };

    /// Reads all words, each of which somebody sets to round and place meanwhile, in [`ROUNDS`] rounds: each is one of these, whole.
    fn read_until_the_last_round(words: &PageWords, read: fn(&PageWords, &mut [u64])) {
        let mut to = vec![0; words.len()];
        let mut seen = 0;
        while seen < ROUNDS {
            read(words, &mut to);
            for (at, word) in to.iter().enumerate() {
                let round = word >> 32;
                let whole = round << 32 | round << 8 | if round == 0 { 0 } else { at as u64 };
                assert_eq!(*word, whole, "word {at}");
            }
            // Relaxed stores are seen in any order, but the last ones are seen at last.
            seen = to.iter().map(|word| word >> 32).min().unwrap_or(0);
        }
    }

    /// Words that are stored several at a time are old or new for who reads them one by one.
    #[test]
    fn words_that_are_stored_wide_are_not_torn() {
        let words: Vec<_> = (0..131).map(|_| PageWord::new(0)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut bytes = Vec::new();
                for round in 1..=ROUNDS {
                    let new = |at: usize| round << 32 | round << 8 | at as u64;
                    let all: Vec<u64> = (0..words.len()).map(new).collect();
                    if round % 2 == 0 || round == ROUNDS {
                        store_all(&all, &words);
                        continue;
                    }
                    bytes.clear();
                    bytes.extend(all.iter().flat_map(|word| word.to_ne_bytes()));
                    let done = store_most(&bytes, &words);
                    for (word, new) in words.iter().zip(&all).skip(done) {
                        word.store(*new, Ordering::Relaxed);
                    }
                }
            });
            read_until_the_last_round(&words, load_each);
        });
    }

    /// Words that are written meanwhile are old or new, and each comes from its own place.
    #[test]
    fn words_that_are_written_meanwhile_are_not_torn() {
        let words: Vec<_> = (0..131).map(|_| PageWord::new(0)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    for (at, word) in words.iter().enumerate() {
                        word.store(round << 32 | round << 8 | at as u64, Ordering::Relaxed);
                    }
                }
            });
            read_until_the_last_round(&words, load_all);
        });
    }
}
