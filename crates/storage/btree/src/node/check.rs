//! Is this a well-formed tree page? Total: any bytes give an answer, never a panic.
//!
//! Asked of every page that comes from the file ([`check_read_page`], registered with the pool), of images before redo makes pages of them,
//! and by verify. So the code that works on pages in memory may assert what stands here.
//!
//! Cost: one pass over slots and records, no memory beyond a bit a byte on the stack; about as much as the checksum.
//!
//! Not here: what needs other pages (fences against the parent, levels, reachability).

use super::build::{entry, lower_fence, upper_fence};
use super::layout::{
    CHILD_BYTES, HEADER_BYTES, KIND_INNER, KIND_LEAF, NodeRead, OPEN_LOWER, OPEN_UPPER, SLOT_BYTES,
    common_prefix, head_of, record_bytes,
};
use vellum_base::planted::{self, Bug};
use vellum_buffer::{Misfit, PageBytes, check_header};

/// What is wrong with a page: the check, what was expected, what was found.
pub type Defect = Misfit;

/// The largest page, in words of bits: one for each byte.
const WORDS_MAX: usize = 16384 / 64;

fn expect(what: &'static str, expected: usize, found: usize) -> Result<(), Defect> {
    if expected == found {
        return Ok(());
    }
    Err(Defect {
        what,
        expected: expected as u64,
        found: found as u64,
    })
}

fn at_most(what: &'static str, limit: usize, found: usize) -> Result<(), Defect> {
    if found <= limit {
        return Ok(());
    }
    Err(Defect {
        what,
        expected: limit as u64,
        found: found as u64,
    })
}

/// What the pool asks of the bytes of a page that it read ([`vellum_buffer::PageCheck`]): pages of trees are nodes; what others are, their
/// own readers find out.
///
/// # Errors
/// The first defect of a node.
pub fn check_read_page(bytes: &[u8]) -> Result<(), Defect> {
    match bytes.kind_and_flags().0 {
        KIND_LEAF | KIND_INNER if !planted::has(Bug::NodesUnchecked) => check_node(bytes),
        _ => Ok(()),
    }
}

/// Checks N1-N4 and that every offset stays inside the page and no two records overlap.
///
/// # Errors
/// The first defect.
pub fn check_node<P: PageBytes + ?Sized>(page: &P) -> Result<(), Defect> {
    check_header(page)?;
    let (size, shape, fences) = (page.size(), page.shape(), page.fences());
    let kind = usize::from(page.kind_and_flags().0);
    let wanted = usize::from(if shape.level == 0 {
        KIND_LEAF
    } else {
        KIND_INNER
    });
    expect("page kind", wanted, kind)?;
    if shape.level == 0 && !page.rightmost().is_zero() {
        return Err(Defect {
            what: "bytes 40 to 48 of a leaf",
            expected: 0,
            found: page.rightmost().get(),
        });
    }
    at_most(
        "open bounds",
        usize::from(OPEN_LOWER | OPEN_UPPER),
        usize::from(shape.open),
    )?;
    at_most(
        "fences inside the page",
        size - HEADER_BYTES,
        fences.lower + fences.upper,
    )?;
    if shape.open & OPEN_LOWER != 0 {
        expect("no lower fence where the bound is open", 0, fences.lower)?;
    }
    if shape.open & OPEN_UPPER != 0 {
        expect("no upper fence where the bound is open", 0, fences.upper)?;
    }
    let heap_end = size - fences.lower - fences.upper;
    at_most(
        "slots inside the page",
        heap_end,
        HEADER_BYTES + shape.count * SLOT_BYTES,
    )?;
    at_most("heap inside the page", heap_end, shape.heap)?;
    at_most(
        "slots below the heap",
        shape.heap,
        HEADER_BYTES + shape.count * SLOT_BYTES,
    )?;
    let (lower, upper) = (lower_fence(page), upper_fence(page));
    let prefix = match (lower, upper) {
        (Some(lower), Some(upper)) => {
            if lower >= upper {
                return Err(Defect {
                    what: "fences in order",
                    expected: 0,
                    found: 1,
                });
            }
            common_prefix(lower, upper)
        }
        _ => 0,
    };
    expect("prefix of the fences", prefix, fences.prefix)?;
    let mut used = 0;
    let mut taken = [0_u64; WORDS_MAX];
    for index in 0..shape.count {
        let slot = page.slot(index);
        if slot.offset < shape.heap || slot.payload_at() > heap_end {
            return Err(Defect {
                what: "record inside the heap",
                expected: shape.heap as u64,
                found: slot.offset as u64,
            });
        }
        let length = usize::from(page.u16_at(slot.offset));
        at_most(
            "payload inside the heap",
            heap_end,
            slot.payload_at() + length,
        )?;
        if shape.level > 0 {
            expect("length of a child pointer", CHILD_BYTES, length)?;
        }
        used += record_bytes(slot.suffix, length);
        if !take(&mut taken, slot.offset, slot.payload_at() + length) {
            return Err(Defect {
                what: "records apart",
                expected: 0,
                found: slot.offset as u64,
            });
        }
    }
    expect("free bytes", heap_end - HEADER_BYTES, used + shape.free)?;
    check_keys(page, lower, upper)
}

/// Marks the bytes `from..to`; false if one of them was marked, or there is no room for such a page.
fn take(taken: &mut [u64; WORDS_MAX], from: usize, to: usize) -> bool {
    let mut at = from;
    while at < to {
        let end = to.min((at / 64 + 1) * 64);
        let mask = (u64::MAX >> (64 - (end - at))) << (at % 64);
        match taken.get_mut(at / 64) {
            Some(word) if *word & mask == 0 => *word |= mask,
            _ => return false,
        }
        at = end;
    }
    true
}

fn check_keys<P: PageBytes + ?Sized>(
    page: &P,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
) -> Result<(), Defect> {
    let (shape, prefix) = (page.shape(), page.fences().prefix);
    let mut before: Option<(u32, &[u8])> = None;
    for index in 0..shape.count {
        let this = entry(page, index).suffix;
        let (head, wanted) = (page.slot(index).head, head_of(this));
        if head != wanted {
            return Err(Defect {
                what: "key head",
                expected: wanted.into(),
                found: head.into(),
            });
        }
        // Heads that differ order as the keys do.
        if before.is_some_and(|(least, key)| head < least || (head == least && key >= this)) {
            return Err(Defect {
                what: "keys in order",
                expected: index as u64 - 1,
                found: index as u64,
            });
        }
        before = Some((head, this));
    }
    // Keys ascend, so the outer ones stand for all. All keys and fences begin with the prefix.
    if let Some((_, last)) = before {
        let first = entry(page, 0).suffix;
        let lower = lower.map(|fence| fence.get(prefix..).unwrap_or_default());
        let upper = upper.map(|fence| fence.get(prefix..).unwrap_or_default());
        let below = lower.is_some_and(|lower| first < lower);
        // A separator equal to the lower fence would leave an empty range to its left.
        let empty = shape.level > 0 && lower == Some(first);
        if below || empty || upper.is_some_and(|upper| last >= upper) {
            return Err(Defect {
                what: "keys between the fences",
                expected: 0,
                found: 1,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    #[test]
    fn prop_bytes_are_taken_once() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let (mut taken, mut model) = ([0; WORDS_MAX], [false; 16384]);
            for _ in 0..40 {
                let from = random.below(16384) as usize;
                let to = (from + random.below(700) as usize).min(16384);
                let free = model[from..to].iter().all(|byte| !byte);
                assert_eq!(take(&mut taken, from, to), free, "{from}..{to}");
                if !free {
                    break;
                }
                model[from..to].fill(true);
            }
        }
        assert!(!take(&mut [0; WORDS_MAX], 16380, 16385));
    }
}
