//! Is this a well-formed tree page? Total: any bytes give an answer, never a panic.
//!
//! Used by redo before an image becomes a page, and by verify.
//!
//! Not here: what needs other pages (fences against the parent, levels, reachability).

use super::build::{entry, lower_fence, upper_fence};
use super::layout::{
    CHILD_BYTES, HEADER_BYTES, KIND_INNER, KIND_LEAF, NodeRead, OPEN_LOWER, OPEN_UPPER,
    RECORD_OVERHEAD, SLOT_BYTES, common_prefix, head_of, record_bytes,
};
use vellum_buffer::{PageBuf, PageRead};

/// What is wrong with a page: the check, what was expected, what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Which check failed.
    pub what: &'static str,
    /// What should have been there.
    pub expected: u64,
    /// What was there.
    pub found: u64,
}

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

/// Checks N1-N4 and that every offset stays inside the page and no two records overlap.
///
/// # Errors
/// The first defect.
pub fn check_node(page: &PageBuf) -> Result<(), Defect> {
    let (size, shape, fences) = (page.size(), page.shape(), page.fences());
    let kind = usize::from(page.kind_and_flags().0);
    let wanted = usize::from(if shape.level == 0 {
        KIND_LEAF
    } else {
        KIND_INNER
    });
    expect("page kind", wanted, kind)?;
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
    let mut extents = Vec::with_capacity(shape.count);
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
        extents.push((
            slot.offset,
            slot.offset + RECORD_OVERHEAD + slot.suffix + length,
        ));
    }
    extents.sort_unstable();
    for pair in extents.windows(2) {
        at_most("records apart", pair[1].0, pair[0].1)?;
    }
    expect("free bytes", heap_end - HEADER_BYTES, used + shape.free)?;
    check_keys(page, lower, upper)
}

fn check_keys(page: &PageBuf, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<(), Defect> {
    let shape = page.shape();
    for index in 0..shape.count {
        let this = entry(page, index);
        let (head, wanted) = (page.slot(index).head, head_of(this.suffix));
        if head != wanted {
            return Err(Defect {
                what: "key head",
                expected: wanted.into(),
                found: head.into(),
            });
        }
        if index > 0 && entry(page, index - 1).suffix >= this.suffix {
            return Err(Defect {
                what: "keys in order",
                expected: index as u64 - 1,
                found: index as u64,
            });
        }
    }
    // Keys ascend, so the outer ones stand for all.
    if shape.count > 0 {
        let (first, last) = (entry(page, 0).key(), entry(page, shape.count - 1).key());
        let below = lower.is_some_and(|lower| first.as_slice() < lower);
        // A separator equal to the lower fence would leave an empty range to its left.
        let empty = shape.level > 0 && lower.is_some_and(|lower| first.as_slice() == lower);
        if below || empty || upper.is_some_and(|upper| last.as_slice() >= upper) {
            return Err(Defect {
                what: "keys between the fences",
                expected: 0,
                found: 1,
            });
        }
    }
    Ok(())
}
